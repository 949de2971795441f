//! The innermost loop: a tile of the result that stays in registers while the contracted dimension
//! runs.
//!
//! A vector holds neighbouring columns. Each step loads a row of rhs, `VECS` vectors, and multiplies
//! it with one number of each of `ROWS` rows of lhs. The tile is chosen so that the sums, the
//! row of rhs and one number of lhs fill the registers: 14×2+2+1 of 32 with AVX-512.

use std::any::Any;
use std::ops::Range;

use super::engine::LINE_BYTES;
use super::few_steps::FewStepsKernel;
use super::simd::{Halved, Loops, Simd, WindowLoops};
use crate::kernels::isa::{prefetch_far, prefetch_line};

/// How tiles of sums `A` are computed from packed words `W` (several numbers, if one instruction
/// multiplies several). A value proves that the machine has the instructions. (The loops around tiles
/// know them as `dyn Tiled`, so that they are compiled once for all instruction sets.)
pub(super) trait Tiled<W, A>: Send + Sync {
    /// What the tiles look like.
    fn format(&self) -> Format;

    /// The function for tiles of `rows` (one of the heights) by `vecs` (1 to the most) vectors.
    fn tile(&self, rows: usize, vecs: usize, packed: bool) -> Tile<W, A>;

    /// The function for tiles of `rows` rows of `vecs` whole vectors, if there is one. It takes more for granted than
    /// [`Tiled::tile`]'s: see [`run_whole`].
    fn whole_tile(&self, rows: usize, vecs: usize, packed: bool) -> Option<Tile<W, A>> {
        let _ = (rows, vecs, packed);
        None
    }

    /// The function for tiles of `rows` rows of `whole` vectors and half of one, if there is one. It takes for
    /// granted what [`Tiled::whole_tile`]'s does, but that the last half may have fewer lanes that count.
    fn half_tile(&self, rows: usize, whole: usize, packed: bool) -> Option<Tile<W, A>> {
        let _ = (rows, whole, packed);
        None
    }

    /// The function for products with few steps, of columns that are so many `whole` vectors and, if `is_half`, at most half of
    /// one, if there is one.
    fn few_steps(&self, whole: usize, is_half: bool) -> Option<FewStepsKernel<W, A>> {
        let _ = (whole, is_half);
        None
    }

    /// The function for tiles below each other, if tiles take steps in blocks.
    fn column(&self) -> Option<Column<W, A>> {
        None
    }

    /// What a thread holds while it computes tiles.
    fn session(&self) -> Box<dyn Any> {
        Box::new(())
    }

    /// Loops for products that need no tiles, if there are any.
    fn loops(&self) -> Option<&dyn Loops<W, A>> {
        None
    }

    /// Loops for convolutions whose windows have a few rows, if there are any. (They are many functions, which take
    /// long to compile.)
    fn windows(&self) -> Option<&dyn WindowLoops<W, A>> {
        None
    }
}

/// What tiles look like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// Neighbouring sums that are one vector.
    pub lanes: usize,
    /// How many rows a tile may have, ascending from 1. (Each is a function of its own; where it
    /// matters less there are fewer, which are quicker to compile.)
    pub heights: &'static [usize],
    /// The most vectors in a row of a tile.
    pub vecs: usize,
    /// Whether there are tiles that read lhs where it lies.
    pub in_place: bool,
    /// If a tile takes [`BLOCK`] steps at once: lhs is packed in blocks of them
    /// ([`Source::pack_blocks`](super::pack::Source::pack_blocks)), rhs always in panels of the whole
    /// width, and both with zeros for steps that a last block lacks.
    pub in_blocks: bool,
    /// The most steps for which operands are packed, and tiles run, at once.
    pub most_steps: usize,
}

impl Format {
    /// The most rows of a tile.
    pub(super) fn rows(&self) -> usize {
        self.heights.last().copied().unwrap_or(1)
    }

    /// The most columns of a tile.
    pub(super) fn width(&self) -> usize {
        self.lanes * self.vecs
    }

    /// `steps`, rounded up to whole blocks if the tile takes its steps in blocks.
    pub(super) fn whole_steps(&self, steps: usize) -> usize {
        if self.in_blocks { steps.next_multiple_of(BLOCK) } else { steps }
    }
}

/// Steps that some tiles take at once.
pub(super) const BLOCK: usize = 16;

/// Bytes of a row or column in a block of steps. A panel of rhs is larger than the first-level cache
/// then, and comes from the second, which is fast enough for instructions on vectors; fewer passes over
/// the result are worth more (measured at 1000 to 2048).
const BLOCK_BYTES: usize = 4096;

/// Steps of a block, of words of this type, for tiles of vectors.
pub(super) const fn block_steps<W>() -> usize {
    BLOCK_BYTES / size_of::<W>()
}

/// Where a tile finds its operands and puts its result.
pub(super) struct TileArgs<'a, W, A> {
    /// What [`Tiled::session`] made.
    pub session: &'a dyn Any,
    /// Rows of the tile.
    pub rows: usize,
    /// Vectors in each.
    pub vecs: usize,
    /// Where lhs begins. In a packed panel number `i` of step `k` is at `k * rows + i`.
    pub lhs: *const W,
    /// How far from there its rows are, if it is not packed.
    pub lhs_rows: &'a [usize; MAX_ROWS],
    /// The steps of lhs.
    pub runs: &'a [Run],
    /// From a step to the next of a run in each row of lhs that is not packed.
    pub lhs_step: usize,
    /// The row of rhs for the first step.
    pub rhs: *const W,
    /// From a step to the next in rhs.
    pub rhs_step: usize,
    /// Where the result begins.
    pub out: *mut A,
    /// How far from there its rows are.
    pub out_rows: &'a [usize; MAX_ROWS],
    /// Whether these are as far from each other as the first two.
    pub out_is_even: bool,
    /// Lanes of the last vector that count.
    pub last_lanes: usize,
    /// Whether to add to the result.
    pub add: bool,
    /// What is wanted in the second-level cache meanwhile.
    pub ahead: Ahead,
}

/// Memory that a tile asks for while it runs, so that it has come nearer when it is needed: places as
/// long as a row of rhs, as many as go by in the tile's steps. The places are at the same distance from
/// each other, or are those of a column, followed by the ones next to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The first place.
    pub start: *const u8,
    /// By how many places a step goes on, in 2^-32 of a place.
    pub pace: u64,
    /// From a place of a column to the next, in bytes.
    pub stride: usize,
    /// The logarithm, base 2, of how many places a column has.
    pub column_log2: u32,
    /// From a column to the next, in bytes.
    pub next_column: usize,
}

impl Ahead {
    /// From where a place begins to where it is best asked for, if it need not begin with a cache line: to
    /// the lines in which its vectors end. That in which it begins is the end of the place before it.
    pub(super) const LINE_END: usize = 63;
    /// The logarithm of places that no tile goes beyond.
    const ONE_COLUMN: u32 = usize::BITS - 1;

    /// The same place in each step; best one that is in the first-level cache.
    pub(super) fn nothing(place: *const u8) -> Self {
        Ahead::rows(place, 0, 0)
    }

    /// Places that are `stride` bytes apart, a step going on by `pace` of them, in 2^-32.
    pub(super) fn rows(start: *const u8, stride: usize, pace: u64) -> Self {
        Ahead { start, pace, stride, column_log2: Ahead::ONE_COLUMN, next_column: 0 }
    }

    /// Whether nothing is left out if only every second step asks for a place of so many bytes: places go by
    /// half as fast as steps, or overlap.
    pub(super) fn suits_pairs(&self, place_bytes: usize) -> bool {
        self.pace <= 1 << 31 || self.stride <= place_bytes / 2
    }

    /// The place that is asked for after `passed` places, in 2^-32.
    #[inline(always)]
    fn place(&self, passed: u64) -> *const u8 {
        let place = (passed >> 32) as usize;
        let in_column = place & ((1_usize << self.column_log2) - 1);
        let start = self.start.wrapping_add(in_column.wrapping_mul(self.stride));
        start.wrapping_add((place >> self.column_log2).wrapping_mul(self.next_column))
    }
}

/// Steps that follow each other at the same distance in lhs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Where they begin in a row.
    pub offset: usize,
    /// How many they are.
    pub len: usize,
}

/// No instruction set has tiles of more rows.
pub(super) const MAX_ROWS: usize = 32;

/// Computes a tile.
///
/// # Safety
/// The features are there. For the tile's `rows` and `vecs`, `(vecs - 1) * lanes + last_lanes`
/// words of rhs may be read in each step, all runs in each row of lhs, and as many sums as words
/// of rhs may be read and written in each row of the result, which nothing else accesses.
pub(super) type Tile<W, A> = unsafe fn(&TileArgs<'_, W, A>);

/// Tiles below each other, for some of the steps that operands are packed for.
pub(super) struct ColumnArgs<'a, W, A> {
    /// What [`Tiled::session`] made.
    pub session: &'a dyn Any,
    /// How many tiles there are.
    pub tiles: usize,
    /// Rows of each.
    pub height: usize,
    /// The steps: whole blocks.
    pub steps: Range<usize>,
    /// Where lhs begins: the blocks of one tile, of all `packed_steps`, after those of the other.
    pub lhs: *const W,
    /// How many steps lhs is packed for.
    pub packed_steps: usize,
    /// The row of rhs for the first of the steps; the next follows it.
    pub rhs: *const W,
    /// Where the sums begin: rows as wide as a tile.
    pub sums: *mut A,
    /// From row to row of the sums.
    pub sums_step: usize,
    /// Whether to add to the sums.
    pub add: bool,
}

/// Computes tiles below each other.
///
/// # Safety
/// The features are there. lhs may be read for all tiles, a row of rhs as wide as a tile for each of the steps, and
/// the sums of all tiles read and written, which nothing else accesses.
pub(super) type Column<W, A> = unsafe fn(&ColumnArgs<'_, W, A>);

/// The body of a [`Tile`], to be inlined where the features are enabled.
///
/// # Safety
/// That of [`Tile`].
#[inline(always)]
pub(super) unsafe fn run<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    let mask = S::mask(args.last_lanes);
    let mut sums = [[S::zero(); VECS]; ROWS];
    let mut rows = [args.lhs; ROWS];
    for (i, row) in rows.iter_mut().enumerate() {
        *row = row.wrapping_add(if PACKED { i } else { args.lhs_rows[i] });
    }
    let (mut rhs, rhs_step) = (args.rhs, args.rhs_step);
    let lhs_step = if PACKED { ROWS } else { args.lhs_step };
    ask_for_result::<S, ROWS>(args, VECS, args.last_lanes);
    let ahead = args.ahead;
    let mut passed = 0_u64;
    for run in args.runs {
        let mut offset = run.offset;
        for _ in 0..run.len {
            if !PACKED {
                opaque(&mut offset);
            }
            // SAFETY: the caller promises that this step's words may be read; the pointers move
            // past the last step's words without being read there.
            unsafe {
                let row: [S::Words; VECS] = std::array::from_fn(|v| {
                    let from = rhs.wrapping_add(v * S::LANES);
                    if v + 1 < VECS { S::load(from) } else { S::load_masked(from, mask) }
                });
                for (i, sums) in sums.iter_mut().enumerate() {
                    let number = S::splat(rows[i].wrapping_add(offset));
                    for (sum, row) in sums.iter_mut().zip(&row) {
                        *sum = S::mul_add(number, *row, *sum);
                    }
                }
            }
            let place = ahead.place(passed);
            for v in 0..VECS {
                prefetch_far(place.wrapping_add(v * size_of::<S::Words>()));
            }
            passed = passed.wrapping_add(ahead.pace);
            offset += lhs_step;
            rhs = rhs.wrapping_add(rhs_step);
        }
    }
    // SAFETY: the caller promises that these sums may be read and written.
    unsafe { store_rows::<S, ROWS, VECS>(args, &sums) };
}

/// Writes a tile's sums.
///
/// # Safety
/// That of [`Tile`], for the result.
#[inline(always)]
unsafe fn store_rows<S: Simd, const ROWS: usize, const VECS: usize>(
    args: &TileArgs<'_, S::Word, S::Acc>,
    sums: &[[S::Vec; VECS]; ROWS],
) {
    let mask = S::mask(args.last_lanes);
    // A store under a mask, even one of all lanes, reads the line that it writes to, and takes processors
    // without AVX-512 a dozen cycles.
    let is_full = args.last_lanes == S::LANES;
    for (sums, row) in sums.iter().zip(args.out_rows) {
        for (v, &sums) in sums.iter().enumerate() {
            let to = args.out.wrapping_add(row + v * S::LANES);
            // SAFETY: the caller's promise.
            unsafe {
                if v + 1 < VECS || is_full {
                    S::store_all(to, sums, args.add);
                } else {
                    S::store(to, mask, sums, args.add);
                }
            }
        }
    }
}

/// Steps after which a tile of whole vectors asks for memory, for all of them at once: to do so takes a dozen
/// instructions, and registers that rows of lhs need.
const STEPS_AT_ONCE: usize = 8;

/// As [`run`], for a tile whose vectors may all be read, with rows of lhs that are as far from each other, and with
/// memory ahead that [`Ahead::suits_pairs`]. There is less to do besides multiplications: a load under a
/// mask takes one of the two ports that Intel's processors multiply vectors on, a pointer for each row of lhs is
/// more than there are registers for, and memory is asked for only now and then.
///
/// # Safety
/// That of [`Tile`]. The tile has `VECS` vectors, all lanes of which may be read in rows of rhs, and unless lhs is packed,
/// its rows are as far from each other as the first two.
#[inline(always)]
pub(super) unsafe fn run_whole<
    S: Simd,
    const ROWS: usize,
    const VECS: usize,
    const PACKED: bool,
>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    let mut sums = [[S::zero(); VECS]; ROWS];
    ask_for_result::<S, ROWS>(args, VECS, args.last_lanes);
    each_step::<S, ROWS, VECS, PACKED>(args, |lhs, rhs| {
        // SAFETY: the caller promises that this step's words may be read.
        unsafe { add_step::<S, _, _>(|i| lhs.row(i), rhs, &mut sums) };
    });
    // SAFETY: the caller promises that these sums may be read and written.
    unsafe { store_rows::<S, ROWS, VECS>(args, &sums) };
}

/// As [`run_whole`], for a tile of `WHOLE` vectors and one of half as many lanes, of which the last may not count:
/// there is half as much to multiply as by a whole one where vectors of `S` are multiplied in halves.
///
/// # Safety
/// That of [`Tile`]. The tile has `WHOLE` vectors and one more, of which no more than half of the lanes count, and unless lhs
/// is packed, its rows are as far from each other as the first two.
#[inline(always)]
pub(super) unsafe fn run_half<
    S: Halved,
    const ROWS: usize,
    const WHOLE: usize,
    const PACKED: bool,
>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    let mask = S::Half::mask(args.last_lanes);
    let mut sums = [([S::zero(); WHOLE], S::Half::zero()); ROWS];
    ask_for_result::<S, ROWS>(args, WHOLE + 1, args.last_lanes);
    each_step::<S, ROWS, WHOLE, PACKED>(args, |lhs, rhs| {
        // SAFETY: the caller promises that this step's words may be read.
        unsafe { add_half_step::<S, _, _>(|i| lhs.row(i), (rhs, mask), &mut sums) };
    });
    for ((sums, last), row) in sums.iter().zip(args.out_rows) {
        for (v, &sums) in sums.iter().enumerate() {
            let to = args.out.wrapping_add(row + v * S::LANES);
            // SAFETY: the caller promises that these sums may be read and written.
            unsafe { S::store_all(to, sums, args.add) };
        }
        let to = args.out.wrapping_add(row + WHOLE * S::LANES);
        // SAFETY: the caller promises that the sums of lanes that count may be read and written.
        unsafe {
            match args.last_lanes == S::Half::LANES {
                true => S::Half::store_all(to, *last, args.add),
                false => S::Half::store(to, mask, *last, args.add),
            }
        }
    }
}

/// Adds the products of a step to the sums of whole vectors. `lhs` tells where the number of a row is, and rhs has a row of
/// vectors.
///
/// # Safety
/// The features are there, and these words may be read.
#[inline(always)]
pub(super) unsafe fn add_step<S: Simd, const ROWS: usize, const VECS: usize>(
    lhs: impl Fn(usize) -> *const S::Word,
    rhs: *const S::Word,
    sums: &mut [[S::Vec; VECS]; ROWS],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let row: [S::Words; VECS] =
            std::array::from_fn(|v| S::load(rhs.wrapping_add(v * S::LANES)));
        for (i, sums) in sums.iter_mut().enumerate() {
            let number = S::splat(lhs(i));
            for (sum, row) in sums.iter_mut().zip(&row) {
                *sum = S::mul_add(number, *row, *sum);
            }
        }
    }
}

/// The sums of a row: whole vectors and half of one.
pub(super) type HalfRow<S, const WHOLE: usize> =
    ([<S as Simd>::Vec; WHOLE], <<S as Halved>::Half as Simd>::Vec);

/// As [`add_step`], for whole vectors and half of one, the lanes of `mask`.
///
/// # Safety
/// As there, but for other lanes of the half.
#[inline(always)]
pub(super) unsafe fn add_half_step<S: Halved, const ROWS: usize, const WHOLE: usize>(
    lhs: impl Fn(usize) -> *const S::Word,
    (rhs, mask): (*const S::Word, <S::Half as Simd>::Mask),
    sums: &mut [HalfRow<S, WHOLE>; ROWS],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let row: [S::Words; WHOLE] =
            std::array::from_fn(|v| S::load(rhs.wrapping_add(v * S::LANES)));
        let words = S::Half::load_masked(rhs.wrapping_add(WHOLE * S::LANES), mask);
        for (i, (sums, sum)) in sums.iter_mut().enumerate() {
            let half = match WHOLE {
                0 => S::Half::splat(lhs(i)),
                _ => {
                    let (number, half) = S::splat_both(lhs(i));
                    for (sum, row) in sums.iter_mut().zip(&row) {
                        *sum = S::mul_add(number, *row, *sum);
                    }
                    half
                }
            };
            *sum = S::Half::mul_add(half, words, *sum);
        }
    }
}

/// Calls `step` with where the rows of lhs and the row of rhs are in each of a tile's steps, and asks for memory ahead.
/// (The rows of lhs are as far from each other as the first two, unless lhs is packed.)
#[inline(always)]
fn each_step<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S::Word, S::Acc>,
    mut step: impl FnMut(LhsStep<'_, S::Word, PACKED>, *const S::Word),
) {
    let [first, second] = if PACKED { [0, 1] } else { [args.lhs_rows[0], args.lhs_rows[1]] };
    let mut rows = LhsRows::new(second.wrapping_sub(first).wrapping_mul(size_of::<S::Word>()));
    let lhs_step = if PACKED { ROWS } else { args.lhs_step };
    let (mut rhs, rhs_step) = (args.rhs, args.rhs_step);
    let (ahead, asks) = (args.ahead, args.ahead.pace != 0);
    let mut passed = 0_u64;
    for run in args.runs {
        let mut at = args.lhs.wrapping_add(first.wrapping_add(run.offset));
        let mut left = run.len;
        while left > 0 {
            let some = if asks { left.min(STEPS_AT_ONCE) } else { left };
            for _ in 0..some {
                // (The pointers move past the last step's words without being read there.)
                if !PACKED {
                    rows.each_opaque();
                }
                step(LhsStep { at, rows: &rows }, rhs);
                at = at.wrapping_add(lhs_step);
                rhs = rhs.wrapping_add(rhs_step);
            }
            left -= some;
            if !asks {
                continue;
            }
            for _ in 0..some.div_ceil(2) {
                let place = ahead.place(passed);
                (0..VECS).for_each(|v| prefetch_far(place.wrapping_add(v * size_of::<S::Words>())));
                passed = passed.wrapping_add(ahead.pace.wrapping_mul(2));
            }
        }
    }
}

/// The numbers of lhs in a step.
struct LhsStep<'a, W, const PACKED: bool> {
    /// That of the first row.
    at: *const W,
    rows: &'a LhsRows,
}

impl<W, const PACKED: bool> LhsStep<'_, W, PACKED> {
    /// Where that of a row below 15 is.
    #[inline(always)]
    fn row(&self, row: usize) -> *const W {
        match PACKED {
            true => self.at.wrapping_add(row),
            false => self.at.wrapping_byte_add(self.rows.offset(row)),
        }
    }
}

/// Asks for the memory of a tile's result, which is needed only at the end: by then it has come. Its rows have so many
/// vectors, of the last of which so many lanes count.
#[inline(always)]
fn ask_for_result<S: Simd, const ROWS: usize>(
    args: &TileArgs<'_, S::Word, S::Acc>,
    vecs: usize,
    last_lanes: usize,
) {
    let place = |row: usize, element: usize| {
        args.out.wrapping_add(args.out_rows[row].wrapping_add(element)).cast::<u8>()
    };
    for row in 0..ROWS {
        for v in 0..vecs {
            prefetch_line(place(row, v * S::LANES));
        }
    }
    // Where vectors do not begin with cache lines, the last one of a row ends in the next line.
    if (place(0, 0).addr() | place(1, 0).addr()) % LINE_BYTES != 0 {
        for row in 0..ROWS {
            prefetch_line(place(row, (vecs - 1) * S::LANES + last_lanes - 1));
        }
    }
}

/// Odd multiples of the distance from row to row, in bytes. With these as the index of an address, which
/// instructions multiply by 1, 2, 4 or 8, fifteen rows are reached from one pointer.
pub(super) struct LhsRows([usize; 7]);

impl LhsRows {
    /// Rows that are so many bytes from each other.
    pub(super) fn new(distance: usize) -> Self {
        LhsRows(std::array::from_fn(|k| distance.wrapping_mul(2 * k + 1)))
    }

    /// How far a row below 15 is from the first.
    #[inline(always)]
    pub(super) fn offset(&self, row: usize) -> usize {
        match row.trailing_zeros() {
            _ if row == 0 => 0,
            twos => self.0[row >> twos >> 1] << twos,
        }
    }

    /// Hides from the compiler what the distances are: see [`opaque`].
    #[inline(always)]
    pub(super) fn each_opaque(&mut self) {
        self.0.iter_mut().for_each(opaque);
    }
}

/// Hides from the compiler how a number changes. Otherwise it would advance the pointers to all rows
/// in each step, most of them in memory, rather than one offset.
#[inline(always)]
fn opaque(number: &mut usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {0} */", inout(reg) * number, options(nomem, nostack, preserves_flags))
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = number;
}

/// For a size of tile the instance of `$wrapper`, a [`Tile`] with the features enabled. `$rows` and
/// `$in_place` are what the [`Format`] says.
macro_rules! tiles {
    ($wrapper:ident, ($row_count:ident, $vec_count:ident, $packed:ident), $in_place:tt,
     [$($rows:literal)*], $vecs:tt) => {
        match $row_count {
            $($rows => tiles!(@vecs $wrapper, $rows, $vec_count, $packed, $in_place, $vecs),)*
            _ => unreachable!("tiles have one of the heights"),
        }
    };
    (@vecs $wrapper:ident, $rows:literal, $count:ident, $packed:ident, $in_place:tt,
     [$($vecs:literal)*]) => {
        match $count {
            $($vecs => tiles!(@packed $wrapper, $rows, $vecs, $packed, $in_place),)*
            _ => unreachable!("no tile has more vectors in a row"),
        }
    };
    (@packed $wrapper:ident, $rows:literal, $vecs:literal, $packed:ident, true) => {
        if $packed {
            $wrapper::<Self, $rows, $vecs, true>
        } else {
            $wrapper::<Self, $rows, $vecs, false>
        }
    };
    (@packed $wrapper:ident, $rows:literal, $vecs:literal, $packed:ident, false) => {{
        debug_assert!($packed, "lhs is packed unless tiles read it in place");
        $wrapper::<Self, $rows, $vecs, true>
    }};
}
pub(super) use tiles;
