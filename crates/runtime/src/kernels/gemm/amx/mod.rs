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
use std::cell::RefCell;
use std::marker::PhantomData;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use self::hardware::Hardware;
#[cfg(test)]
pub(super) use self::model::Model;
use super::narrow::{Joined, Narrow};
use super::number::{Bf16, ProductType, Types};
use super::simd::MulAdd;
use super::tile::{BLOCK, Format, Tile, TileArgs, Tiled};
use super::types::Call;
use super::{Contraction, arithmetic::Arithmetic};
use crate::float_mode::FloatMode;
use crate::kernels::bytes::cast;

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

impl Config {
    /// How many words from the first of a tile to its last, in memory with rows `stride` words
    /// apart.
    fn span(&self, tile: usize, stride: usize) -> usize {
        (self.rows[tile].max(1) - 1) * stride + self.row_bytes[tile] / 4
    }
}

/// The tile registers of a thread, and the instructions on them. A tile is named by its number.
pub(super) trait Tiles {
    /// Registers without configuration, if there are any.
    fn new() -> Option<Self>
    where
        Self: Sized;

    /// Sets the shape of all tiles, and all their words to zero.
    fn configure(&mut self, config: &Config);

    /// Sets all words of a tile to zero.
    fn zero<const TILE: usize>(&mut self);

    /// Loads a tile from rows `stride` words apart.
    ///
    /// # Panics
    /// If `from` does not hold them.
    fn load<const TILE: usize>(&mut self, from: &[u32], stride: usize);

    /// Stores a tile to rows `stride` words apart.
    ///
    /// # Panics
    /// If `to` does not hold them.
    fn store<const TILE: usize>(&mut self, to: &mut [u32], stride: usize);

    /// Adds to `SUM` the products of the words of `LHS` with those of `RHS`: row `i` of `SUM`, lane
    /// `j` gets those of row `i`, lane `k` of `LHS` with row `k`, lane `j` of `RHS`.
    fn dot<const SUM: usize, const LHS: usize, const RHS: usize>(&mut self, dot: Dot);

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

/// Multiplies blocks of `rows` of lhs ([`Source::pack_blocks`](super::pack::Source::pack_blocks))
/// with as many steps of rhs, `rhs_step` words apart, of which 16 or, if `wide`, 32 are columns. The
/// sums' rows are 32 words apart. The tiles must be configured for `rows` rows.
#[inline(always)]
fn multiply<T: Tiles>(
    tiles: &mut T,
    dot: Dot,
    (rows, wide): (usize, bool),
    lhs: &[u32],
    (rhs, rhs_step): (&[u32], usize),
    sums: &mut [u32; 2 * ROWS * 2 * LANES],
) {
    let high = rows > ROWS;
    tiles.zero::<0>();
    if wide {
        tiles.zero::<1>();
    }
    if high {
        tiles.zero::<2>();
        if wide {
            tiles.zero::<3>();
        }
    }
    let blocks = lhs.chunks_exact(rows * BLOCK);
    for (lhs, rhs) in blocks.zip(rhs.chunks_exact(rhs_step * BLOCK)) {
        tiles.load::<4>(lhs, LANES);
        tiles.load::<6>(rhs, rhs_step);
        tiles.dot::<0, 4, 6>(dot);
        if wide {
            tiles.load::<7>(&rhs[LANES..], rhs_step);
            tiles.dot::<1, 4, 7>(dot);
        }
        if high {
            tiles.load::<5>(&lhs[ROWS * LANES..], LANES);
            tiles.dot::<2, 5, 6>(dot);
            if wide {
                tiles.dot::<3, 5, 7>(dot);
            }
        }
    }
    let stride = 2 * LANES;
    tiles.store::<0>(sums, stride);
    if wide {
        tiles.store::<1>(&mut sums[LANES..], stride);
    }
    if high {
        let lower = &mut sums[ROWS * stride..];
        tiles.store::<2>(lower, stride);
        if wide {
            tiles.store::<3>(&mut lower[LANES..], stride);
        }
    }
}

/// What words hold, as a type.
pub(super) trait Words: Copy + Send + Sync + 'static {
    /// A sum.
    type Sum: MulAdd;
    /// The instruction.
    const DOT: Dot;

    /// The sum with these bits.
    fn sum(bits: u32) -> Self::Sum;
}

/// Pairs of `bf16`.
#[derive(Clone, Copy)]
pub(super) struct Pairs;

impl Words for Pairs {
    type Sum = f32;
    const DOT: Dot = Dot::Bf16;

    #[inline(always)]
    fn sum(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
}

/// Four bytes, signed or not.
#[derive(Clone, Copy)]
pub(super) struct Bytes<const LHS_SIGNED: bool, const RHS_SIGNED: bool>;

impl<const LHS: bool, const RHS: bool> Words for Bytes<LHS, RHS> {
    type Sum = i32;
    const DOT: Dot = Dot::Bytes { signed: [LHS, RHS] };

    #[inline(always)]
    fn sum(bits: u32) -> i32 {
        bits.cast_signed()
    }
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

/// A thread's tile registers, and for how many rows they are configured. They are given back when
/// this ends.
struct Session<T: Tiles> {
    tiles: RefCell<(T, usize)>,
}

impl<T: Tiles> Drop for Session<T> {
    fn drop(&mut self) {
        self.tiles.get_mut().0.release();
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
        }
    }

    fn tile(&self, _: usize, _: usize, _: bool) -> Tile<u32, W::Sum> {
        tile::<T, W>
    }

    fn session(&self) -> Box<dyn Any> {
        let tiles = T::new().expect("the token proves that there are registers");
        Box::new(Session { tiles: RefCell::new((tiles, 0)) })
    }
}

/// Computes a tile.
///
/// # Safety
/// That of [`Tile`].
unsafe fn tile<T: Tiles + 'static, W: Words>(args: &TileArgs<'_, u32, W::Sum>) {
    let TileArgs { rows, vecs, rhs_step, .. } = *args;
    let steps: usize = args.runs.iter().map(|run| run.len).sum();
    // SAFETY: the panels of a type with blocks are packed whole, as the caller promises.
    let (lhs, rhs) = unsafe {
        (
            std::slice::from_raw_parts(args.lhs, rows * steps),
            std::slice::from_raw_parts(args.rhs, rhs_step * steps),
        )
    };
    let mut sums = [0; 2 * ROWS * 2 * LANES];
    let session = args.session.downcast_ref::<Session<T>>().expect("what `session` made");
    let (tiles, configured) = &mut *session.tiles.borrow_mut();
    if *configured != rows {
        tiles.configure(&config(rows));
        *configured = rows;
    }
    multiply(tiles, W::DOT, (rows, vecs > 1), lhs, (rhs, rhs_step), &mut sums);
    let lanes = (vecs - 1) * LANES + args.last_lanes;
    for (sums, row) in sums.chunks_exact(2 * LANES).zip(&args.out_rows[..rows]) {
        // SAFETY: the caller promises that these sums of the row may be read and written.
        let out = unsafe { std::slice::from_raw_parts_mut(args.out.wrapping_add(*row), lanes) };
        for (to, &bits) in out.iter_mut().zip(sums) {
            let sum = W::sum(bits);
            *to = if args.add { to.add(sum) } else { sum };
        }
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
