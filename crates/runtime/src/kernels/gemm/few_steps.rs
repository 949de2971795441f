//! Products with few steps, of many rows that are read where they lie, as of the layers of a network that meet each position
//! of an image by itself, or a few channels of some positions.
//!
//! A tile of 16 steps has 448 multiplications of vectors. To call a function, to tell it where operands and result are, and
//! to ask for memory takes as long as 100 to 150 of them. Here all tiles of some rows are computed without a call.
//! (docs/design/products.md has the measurements.)

use std::ops::Range;

use super::engine::LINE_BYTES;
use super::simd::{Halved, Simd};
use super::tile::{LhsRows, Run, add_half_step, add_step};
use crate::kernels::isa::prefetch_far;

/// Rows of a tile.
const HEIGHT: usize = 14;
/// The fewest rows. If fewer are left than a tile has, the last one computes rows of the one before again: one tile in eight
/// at most.
pub(super) const LEAST_ROWS: usize = 8 * HEIGHT;
/// Rows that are computed of all panels before the next where panels stay in a near cache, so that neighbouring lines of the
/// result are written while they are near.
pub(super) const ROWS_AT_ONCE: usize = 32 * HEIGHT;
/// The most steps: of 128, rows take 0.97 of the time.
pub(super) const MOST_STEPS: usize = 128;
/// Steps whose addresses differ by a constant.
const STEPS_AT_ONCE: usize = 4;

/// Some rows of a product, and columns of a panel.
pub(super) struct FewSteps<'a, W, A> {
    /// At least as many as a tile has.
    pub rows: usize,
    /// No more than a panel has.
    pub cols: usize,
    /// The steps: those of a run are neighbours in lhs.
    pub runs: &'a [Run],
    /// The first row of lhs,
    pub lhs: *const W,
    /// and from one to the next, in elements.
    pub lhs_row: usize,
    /// The columns of rhs,
    pub rhs: *const W,
    /// and from step to step.
    pub rhs_step: usize,
    /// The first element of the result,
    pub out: *mut A,
    /// and from one row to the next, in elements.
    pub out_row: usize,
    /// What is asked for meanwhile.
    pub ahead: Range<*const u8>,
}

/// Computes some rows of a panel.
///
/// # Safety
/// The features are there. The rows of lhs may be read, and the columns of rhs, of which all lanes of the last vector may be,
/// unless no more than half of them count; those of the result may be written, and nothing else accesses them.
pub(super) type FewStepsKernel<W, A> = unsafe fn(&FewSteps<'_, W, A>);

/// Whether tiles of so many rows that are equally far apart compute few of them twice.
pub(super) fn fill_tiles(rows: usize) -> bool {
    rows >= HEIGHT && (rows.next_multiple_of(HEIGHT) - rows) * 8 <= rows
}

/// Rows in groups of about so many, each of whole units, of which rows are at least one, but the last. A unit is a tile, or
/// a run of rows.
pub(super) fn row_groups(
    rows: Range<usize>,
    unit: Option<usize>,
    most: usize,
) -> impl Iterator<Item = Range<usize>> {
    let unit = unit.unwrap_or(HEIGHT);
    let units = (rows.len() / unit).max(1);
    let groups = (rows.len() / most).clamp(1, units);
    let bound = move |group: usize| match group < groups {
        true => rows.start + units * group / groups * unit,
        false => rows.end,
    };
    (0..groups).map(move |group| bound(group)..bound(group + 1))
}

impl<W, A> FewSteps<'_, W, A> {
    /// Calls `compute` with where each tile is, and asks for what is ahead, a share with each.
    #[inline(always)]
    fn each_tile(&self, mut compute: impl FnMut(*const W, *mut A)) {
        let tiles = self.rows.div_ceil(HEIGHT);
        let ahead = self.ahead.end.addr() - self.ahead.start.addr();
        let share = (ahead / tiles).next_multiple_of(LINE_BYTES);
        for tile in 0..tiles {
            for offset in (share * tile..(share * (tile + 1)).min(ahead)).step_by(LINE_BYTES) {
                prefetch_far(self.ahead.start.wrapping_add(offset));
            }
            let row = (tile * HEIGHT).min(self.rows - HEIGHT);
            let lhs = self.lhs.wrapping_add(row * self.lhs_row);
            compute(lhs, self.out.wrapping_add(row * self.out_row));
        }
    }

    /// Computes columns of `COUNT` vectors: the body of a [`FewStepsKernel`], to be inlined where the features are enabled.
    ///
    /// # Safety
    /// As for a [`FewStepsKernel`].
    #[inline(always)]
    pub(super) unsafe fn wholes<S: Simd<Word = W, Acc = A>, const COUNT: usize>(&self) {
        // SAFETY: the caller's promise.
        self.each_tile(|lhs, out| unsafe { self.whole::<S, COUNT>(lhs, out) });
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// As for [`FewSteps::wholes`].
    #[inline(always)]
    unsafe fn whole<S: Simd<Word = W, Acc = A>, const COUNT: usize>(
        &self,
        lhs: *const W,
        out: *mut A,
    ) {
        let mut sums = [[S::zero(); COUNT]; HEIGHT];
        self.each_step(lhs, |lhs, rhs, rows| {
            // SAFETY: the caller's promise: this step's words may be read.
            unsafe {
                add_step::<S, _, _>(|i| lhs.wrapping_byte_add(rows.offset(i)), rhs, &mut sums);
            }
        });
        let last = self.cols - (COUNT - 1) * S::LANES;
        // (Two loops: to ask for each row takes 5 to 7 % of 16 or 32 steps.)
        if last == S::LANES {
            for (i, sums) in sums.into_iter().enumerate() {
                for (v, sum) in sums.into_iter().enumerate() {
                    let to = out.wrapping_add(i * self.out_row + v * S::LANES);
                    // SAFETY: the caller's promise.
                    unsafe { S::store_all(to, sum, false) };
                }
            }
            return;
        }
        let mask = S::mask(last);
        for (i, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                let to = out.wrapping_add(i * self.out_row + v * S::LANES);
                // SAFETY: the caller's promise.
                unsafe {
                    match v + 1 < COUNT {
                        true => S::store_all(to, sum, false),
                        false => S::store(to, mask, sum, false),
                    }
                }
            }
        }
    }

    /// Computes columns of `WHOLE` vectors and at most half of one: the body of a [`FewStepsKernel`], to be inlined where the
    /// features are enabled.
    ///
    /// # Safety
    /// As for a [`FewStepsKernel`].
    #[inline(always)]
    pub(super) unsafe fn halves<S: Halved<Word = W, Acc = A>, const WHOLE: usize>(&self) {
        // SAFETY: the caller's promise.
        self.each_tile(|lhs, out| unsafe { self.half::<S, WHOLE>(lhs, out) });
    }

    /// Computes a tile.
    ///
    /// # Safety
    /// As for [`FewSteps::halves`].
    #[inline(always)]
    unsafe fn half<S: Halved<Word = W, Acc = A>, const WHOLE: usize>(
        &self,
        lhs: *const W,
        out: *mut A,
    ) {
        let mut sums = [([S::zero(); WHOLE], S::Half::zero()); HEIGHT];
        let last = self.cols - WHOLE * S::LANES;
        let mask = S::Half::mask(last);
        self.each_step(lhs, |lhs, rhs, rows| {
            // SAFETY: the caller's promise: this step's words may be read.
            unsafe {
                let from = |i| lhs.wrapping_byte_add(rows.offset(i));
                add_half_step::<S, _, _>(from, (rhs, mask), &mut sums);
            }
        });
        for (i, (sums, half)) in sums.into_iter().enumerate() {
            let to = out.wrapping_add(i * self.out_row);
            // SAFETY: the caller's promise.
            unsafe {
                for (v, sum) in sums.into_iter().enumerate() {
                    S::store_all(to.wrapping_add(v * S::LANES), sum, false);
                }
                let to = to.wrapping_add(WHOLE * S::LANES);
                S::Half::store(to, mask, half, false);
            }
        }
    }

    /// Calls `step` with where the first row of lhs and the row of rhs are in each step, and how far the other rows are.
    #[inline(always)]
    fn each_step(&self, lhs: *const W, mut step: impl FnMut(*const W, *const W, &LhsRows)) {
        let mut rows = LhsRows::new(self.lhs_row * size_of::<W>());
        let mut rhs = self.rhs;
        for run in self.runs {
            let mut lhs = lhs.wrapping_add(run.offset);
            for _ in 0..run.len / STEPS_AT_ONCE {
                rows.each_opaque();
                for k in 0..STEPS_AT_ONCE {
                    step(lhs.wrapping_add(k), rhs, &rows);
                    rhs = rhs.wrapping_add(self.rhs_step);
                }
                lhs = lhs.wrapping_add(STEPS_AT_ONCE);
            }
            for _ in 0..run.len % STEPS_AT_ONCE {
                rows.each_opaque();
                step(lhs, rhs, &rows);
                lhs = lhs.wrapping_add(1);
                rhs = rhs.wrapping_add(self.rhs_step);
            }
        }
    }
}
