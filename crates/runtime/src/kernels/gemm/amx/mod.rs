//! Products by instructions that multiply whole tiles: Intel's AMX.
//!
//! A tile register holds up to 16 rows of 64 bytes. One instruction multiplies 16×16 words of one
//! with 16×16 words of another, where a word is two `bf16` or four bytes, and adds the products to
//! a tile of 16×16 sums. A tile of [`engine`](super::engine) is four of these.
//!
//! The instructions are behind [`Tiles`], which the processor implements ([`hardware`]) and a
//! model of their documented meaning ([`model`]): all that surrounds them is tested with the model on
//! any machine. Where there are such instructions they are believed only after they have computed a
//! product as the model does, once per process.

// Elsewhere there is only the model, for the tests.
#![cfg_attr(not(all(target_arch = "x86_64", target_os = "linux")), allow(dead_code))]

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod hardware;
mod model;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::cell::{RefCell, RefMut};
use std::marker::PhantomData;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use self::hardware::Hardware;
#[cfg(test)]
pub(super) use self::model::Model;
use super::narrow::{Joined, Narrow};
use super::number::{Bf16, ProductType, Types};
use super::simd::MulAdd;
use super::tile::{BLOCK, Column, ColumnArgs, Format, Tile, TileArgs, Tiled, block_steps};
use super::types::Call;
use super::{Contraction, arithmetic::Arithmetic};
use crate::float_mode::FloatMode;
use crate::kernels::bytes::{Plain, cast};

/// Rows of a tile register.
const ROWS: usize = 16;
/// Words in a row of one: also the sums, and the steps that an instruction takes.
const LANES: usize = 16;
const _: () = assert!(LANES == BLOCK);
/// How many tile registers there are.
const REGISTERS: usize = 8;

/// What numbers a word holds, and so what one instruction does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dot {
    /// Two `bf16` each, summed in `f32`.
    Bf16,
    /// Four bytes each, of lhs and of rhs signed or not, summed in `i32`, wrapping.
    Bytes { signed: [bool; 2] },
}

/// Rows and bytes per row of each tile register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    rows: [usize; REGISTERS],
    row_bytes: [usize; REGISTERS],
}

/// The tile registers of a thread, and the instructions on them. A tile is named by its number.
pub(super) trait Tiles {
    /// Registers without configuration, if there are any.
    fn new() -> Option<Self>
    where
        Self: Sized;

    /// Sets the shape of all tiles, and all their words to zero.
    fn configure(&mut self, config: &Config);

    /// The shape of all tiles.
    fn config(&self) -> &Config;

    /// Sets all words of a tile to zero.
    ///
    /// # Safety
    /// The tile is configured.
    unsafe fn zero<const TILE: usize>(&mut self);

    /// Loads a tile from rows `stride` words apart, the first at `from`.
    ///
    /// # Safety
    /// The tile is configured, and its rows may be read.
    unsafe fn load<const TILE: usize>(&mut self, from: *const u32, stride: usize);

    /// Stores a tile to rows `stride` words apart, the first at `to`.
    ///
    /// # Safety
    /// The tile is configured, and its rows may be written.
    unsafe fn store<const TILE: usize>(&mut self, to: *mut u32, stride: usize);

    /// Adds to `SUM` the products of the words of `LHS` with those of `RHS`: row `i` of `SUM`, lane
    /// `j` gets those of row `i`, lane `k` of `LHS` with row `k`, lane `j` of `RHS`.
    ///
    /// # Safety
    /// The tiles are configured and different; `SUM` has the rows of `LHS` and the lanes of `RHS`, which has a
    /// row for each lane of `LHS`.
    unsafe fn dot<const SUM: usize, const LHS: usize, const RHS: usize>(&mut self, dot: Dot);

    /// Gives the registers back.
    fn release(&mut self);
}

/// The registers that a tile of `rows` needs: sums in 0 to 3, first those of the upper 16 rows; rows
/// of lhs in 4 and 5; columns of rhs in 6 and 7.
fn config(rows: usize) -> Config {
    let (upper, lower) = (rows.min(ROWS), rows.saturating_sub(ROWS));
    let rows = [upper, upper, lower, lower, upper, lower, LANES, LANES];
    Config { rows, row_bytes: rows.map(|rows| if rows == 0 { 0 } else { 4 * LANES }) }
}

/// The sums of a tile in memory: rows of 16 or, if it is wide, 32 words.
#[derive(Clone, Copy)]
struct Place {
    start: *mut u32,
    /// From row to row, in words.
    stride: usize,
    /// Whether the products are added to what is there, or replace it.
    add: bool,
}

impl Place {
    /// Where a quarter of the tile begins.
    fn quarter(&self, right: bool, lower: bool) -> *mut u32 {
        let offset = usize::from(right) * LANES + usize::from(lower) * ROWS * self.stride;
        self.start.wrapping_add(offset)
    }
}

/// The operands of a tile.
#[derive(Clone, Copy)]
struct Operands {
    /// Blocks of the tile's rows of lhs ([`Source::pack_blocks`](super::pack::Source::pack_blocks)), one after
    /// the other.
    lhs: *const u32,
    /// Rows of rhs, of 16 or, if the tile is wide, 32 words.
    rhs: *const u32,
    /// From row to row of rhs, in words.
    rhs_step: usize,
    /// How many blocks of steps there are.
    blocks: usize,
}

/// Multiplies a tile of `rows` rows of lhs with 16 or, if `wide`, 32 columns of rhs.
///
/// # Safety
/// The tiles are configured for `rows` rows, the operands may be read, and the sums read and written.
#[inline(always)]
unsafe fn multiply<T: Tiles>(
    tiles: &mut T,
    dot: Dot,
    (rows, wide): (usize, bool),
    operands: Operands,
    sums: Place,
) {
    debug_assert_eq!(*tiles.config(), config(rows), "the tiles are configured for these rows");
    // SAFETY: the caller's promise.
    unsafe {
        match (rows > ROWS, wide) {
            (true, true) => multiply_as::<T, true, true>(tiles, dot, rows, operands, sums),
            (true, false) => multiply_as::<T, true, false>(tiles, dot, rows, operands, sums),
            (false, true) => multiply_as::<T, false, true>(tiles, dot, rows, operands, sums),
            (false, false) => multiply_as::<T, false, false>(tiles, dot, rows, operands, sums),
        }
    }
}

/// As [`multiply`], for more than 16 rows (`HIGH`) or columns (`WIDE`).
///
/// # Safety
/// The tiles are configured for `rows` rows, the operands may be read, and the sums read and written.
#[inline(always)]
unsafe fn multiply_as<T: Tiles, const HIGH: bool, const WIDE: bool>(
    tiles: &mut T,
    dot: Dot,
    rows: usize,
    operands: Operands,
    sums: Place,
) {
    let stride = sums.stride;
    let at = [(false, false), (true, false), (false, true), (true, true)]
        .map(|(right, lower)| sums.quarter(right, lower));
    let Operands { mut lhs, mut rhs, rhs_step, blocks } = operands;
    // SAFETY: the tiles are configured, and match each other (`config`); the operands may be read and the sums read
    // and written, as the caller promises; a block of lhs has `rows` rows of 16 words, one of rhs 16 rows.
    unsafe {
        if sums.add {
            tiles.load::<0>(at[0], stride);
            if WIDE {
                tiles.load::<1>(at[1], stride);
            }
            if HIGH {
                tiles.load::<2>(at[2], stride);
            }
            if WIDE && HIGH {
                tiles.load::<3>(at[3], stride);
            }
        } else {
            tiles.zero::<0>();
            if WIDE {
                tiles.zero::<1>();
            }
            if HIGH {
                tiles.zero::<2>();
            }
            if WIDE && HIGH {
                tiles.zero::<3>();
            }
        }
        for _ in 0..blocks {
            tiles.load::<4>(lhs, LANES);
            tiles.load::<6>(rhs, rhs_step);
            tiles.dot::<0, 4, 6>(dot);
            if WIDE {
                tiles.load::<7>(rhs.wrapping_add(LANES), rhs_step);
                tiles.dot::<1, 4, 7>(dot);
            }
            if HIGH {
                tiles.load::<5>(lhs.wrapping_add(ROWS * LANES), LANES);
                tiles.dot::<2, 5, 6>(dot);
            }
            if WIDE && HIGH {
                tiles.dot::<3, 5, 7>(dot);
            }
            lhs = lhs.wrapping_add(rows * BLOCK);
            rhs = rhs.wrapping_add(rhs_step * BLOCK);
        }
        tiles.store::<0>(at[0], stride);
        if WIDE {
            tiles.store::<1>(at[1], stride);
        }
        if HIGH {
            tiles.store::<2>(at[2], stride);
        }
        if WIDE && HIGH {
            tiles.store::<3>(at[3], stride);
        }
    }
}

/// The bits of the sums of a tile: 32 rows of 32.
type Sums = [u32; 2 * ROWS * 2 * LANES];

/// What words hold, as a type.
pub(super) trait Words: Copy + Send + Sync + 'static {
    /// A sum, which has 32 bits.
    type Sum: MulAdd + Plain;
    /// The instruction.
    const DOT: Dot;
}

/// Pairs of `bf16`.
#[derive(Clone, Copy)]
pub(super) struct Pairs;

impl Words for Pairs {
    type Sum = f32;
    const DOT: Dot = Dot::Bf16;
}

/// Four bytes, signed or not.
#[derive(Clone, Copy)]
pub(super) struct Bytes<const LHS_SIGNED: bool, const RHS_SIGNED: bool>;

impl<const LHS: bool, const RHS: bool> Words for Bytes<LHS, RHS> {
    type Sum = i32;
    const DOT: Dot = Dot::Bytes { signed: [LHS, RHS] };
}

/// Tiles of 32×32 sums, by these registers and for words of these numbers. Subnormal `bf16` count as
/// zero, and so do subnormal sums.
pub(super) struct Amx<T, W>(PhantomData<fn() -> (T, W)>);

impl<T: Tiles + 'static, W: Words> Amx<T, W> {
    /// The token, if there are such registers.
    fn get() -> Option<&'static Self> {
        T::new().map(|_| &Amx(PhantomData))
    }
}

/// A thread's tile registers, which are given back when this ends.
struct Session<T: Tiles> {
    tiles: T,
    /// For how many rows the registers are configured.
    rows: usize,
    /// Sums on their way between registers and a result that has not all lanes.
    sums: Sums,
}

impl<T: Tiles> Drop for Session<T> {
    fn drop(&mut self) {
        self.tiles.release();
    }
}

impl<T: Tiles + 'static, W: Words> Tiled<u32, W::Sum> for Amx<T, W> {
    fn format(&self) -> Format {
        Format {
            lanes: LANES,
            heights: &[
                1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                24, 25, 26, 27, 28, 29, 30, 31, 32,
            ],
            vecs: 2,
            in_place: false,
            in_blocks: true,
            most_steps: block_steps::<u32>(),
        }
    }

    fn tile(&self, _: usize, _: usize, _: bool) -> Tile<u32, W::Sum> {
        tile::<T, W>
    }

    fn column(&self) -> Option<Column<u32, W::Sum>> {
        Some(column::<T, W>)
    }

    fn session(&self) -> Box<dyn Any> {
        let tiles = T::new().expect("the token proves that there are registers");
        Box::new(RefCell::new(Session { tiles, rows: 0, sums: [0; 2 * ROWS * 2 * LANES] }))
    }
}

/// What [`Tiled::session`] made.
#[inline(always)]
fn session<T: Tiles + 'static>(made: &dyn Any) -> RefMut<'_, Session<T>> {
    made.downcast_ref::<RefCell<Session<T>>>().expect("what `session` made").borrow_mut()
}

/// Computes a tile.
///
/// # Safety
/// That of [`Tile`].
unsafe fn tile<T: Tiles + 'static, W: Words>(args: &TileArgs<'_, u32, W::Sum>) {
    let TileArgs { rows, vecs, lhs, rhs, rhs_step, .. } = *args;
    let steps: usize = args.runs.iter().map(|run| run.len).sum();
    let operands = Operands { lhs, rhs, rhs_step, blocks: steps / BLOCK };
    let mut session = session::<T>(args.session);
    let Session { tiles, rows: configured, sums } = &mut *session;
    configure(tiles, configured, rows);
    let wide = vecs > 1;
    let lanes = (vecs - 1) * LANES + args.last_lanes;
    let out_rows = &args.out_rows[..rows];
    if args.last_lanes == LANES && args.out_is_even {
        let stride = args.out_rows[1].wrapping_sub(args.out_rows[0]);
        let start = args.out.wrapping_add(out_rows[0]).cast();
        let place = Place { start, stride, add: args.add };
        // SAFETY: the tiles were configured above; the caller promises that operands, whose panels are packed whole,
        // may be read, and these sums, of 32 bits each, read and written.
        unsafe { multiply(tiles, W::DOT, (rows, wide), operands, place) };
        return;
    }
    // The result has no room for what lanes beyond the last hold.
    let out = |row: usize| {
        let start = args.out.wrapping_add(row).cast::<u32>();
        // SAFETY: the caller promises that these sums of the row, of 32 bits each, may be read and
        // written.
        unsafe { std::slice::from_raw_parts_mut(start, lanes) }
    };
    let of_rows = |sums: &mut Sums, copy: &dyn Fn(&mut [u32], &mut [u32])| {
        for (sums, &row) in sums.chunks_exact_mut(2 * LANES).zip(out_rows) {
            copy(&mut sums[..lanes], out(row));
        }
    };
    if args.add {
        of_rows(sums, &|sums, out| sums.copy_from_slice(out));
    }
    let place = Place { start: sums.as_mut_ptr(), stride: 2 * LANES, add: args.add };
    // SAFETY: the tiles were configured above; the caller promises that operands, whose panels are packed whole, may
    // be read; `sums` has 32 rows of 32 sums.
    unsafe { multiply(tiles, W::DOT, (rows, wide), operands, place) };
    of_rows(sums, &|sums, out| out.copy_from_slice(sums));
}

/// Configures tiles for `rows` rows, unless they are.
#[inline(always)]
fn configure<T: Tiles>(tiles: &mut T, configured: &mut usize, rows: usize) {
    if *configured != rows {
        tiles.configure(&config(rows));
        *configured = rows;
    }
}

/// Computes tiles below each other.
///
/// # Safety
/// That of [`Column`].
unsafe fn column<T: Tiles + 'static, W: Words>(args: &ColumnArgs<'_, u32, W::Sum>) {
    let ColumnArgs { tiles: count, height, packed_steps, rhs, add, .. } = *args;
    let mut session = session::<T>(args.session);
    let Session { tiles, rows: configured, .. } = &mut *session;
    let (rhs_step, blocks) = (2 * LANES, args.steps.len() / BLOCK);
    configure(tiles, configured, height);
    let mut lhs = args.lhs.wrapping_add(args.steps.start * height);
    let mut start = args.sums.cast::<u32>();
    for _ in 0..count {
        let operands = Operands { lhs, rhs, rhs_step, blocks };
        let place = Place { start, stride: args.sums_step, add };
        // SAFETY: the tiles are configured; the caller promises that operands may be read, and the sums, of 32 bits
        // each, read and written.
        unsafe { multiply(tiles, W::DOT, (height, true), operands, place) };
        lhs = lhs.wrapping_add(packed_steps * height);
        start = start.wrapping_add(args.sums_step * height);
    }
}

/// What is done with tiles for some type of numbers.
pub(super) trait WithTiles {
    /// Called with the tiles, and the numbers that are joined to words.
    fn run<A: Arithmetic, N: Narrow>(self, tiled: &dyn Tiled<u32, A>);
}

/// Calls `body` with tiles of the processor, if it has them, both operands are `bf16` or bytes, and
/// sums have 32 bits; otherwise returns false. Of `bf16` only where subnormal numbers are flushed, as they
/// are by its instructions in any case.
pub(super) fn with_tiles(types: Types, body: impl WithTiles) -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    if hardware::works()
        && (types.lhs != ProductType::Bf16 || FloatMode::current() == FloatMode::FlushToZero)
    {
        return with_tiles_of::<Hardware>(types, body);
    }
    let _ = (types, body);
    false
}

/// As [`with_tiles`], with these.
pub(super) fn with_tiles_of<T: Tiles + 'static>(types: Types, body: impl WithTiles) -> bool {
    use ProductType::{Bf16 as B, S8, U8};
    match (types.lhs, types.rhs) {
        (B, B) if f32::makes(types.out) => with_words::<T, Pairs, Bf16>(body),
        _ if !i32::makes(types.out) => false,
        (S8, S8) => with_words::<T, Bytes<true, true>, u8>(body),
        (S8, U8) => with_words::<T, Bytes<true, false>, u8>(body),
        (U8, S8) => with_words::<T, Bytes<false, true>, u8>(body),
        (U8, U8) => with_words::<T, Bytes<false, false>, u8>(body),
        _ => false,
    }
}

fn with_words<T: Tiles + 'static, W: Words, N: Narrow>(body: impl WithTiles) -> bool
where
    W::Sum: Arithmetic,
{
    let tiled = Amx::<T, W>::get();
    tiled.map(|tiled| body.run::<W::Sum, N>(tiled)).is_some()
}

/// A product on tiles of the processor.
pub(super) struct OnTiles<'a, 'c> {
    pub product: &'a Contraction,
    pub call: &'a Call<'c>,
    pub out: &'a mut [u8],
}

impl WithTiles for OnTiles<'_, '_> {
    fn run<A: Arithmetic, N: Narrow>(self, tiled: &dyn Tiled<u32, A>) {
        let &Call { isa, types, epilogue, threads, .. } = self.call;
        let joined = |bytes| Joined { data: cast::<N>(bytes), flip: N::default() };
        let (lhs, rhs) = (&joined(self.call.lhs), &joined(self.call.rhs));
        A::with_places(types.out, self.out, &mut |out| {
            // SAFETY: the result is borrowed mutably.
            unsafe { self.product.run(tiled, isa, [lhs, rhs], out, epilogue, threads) };
        });
    }
}
