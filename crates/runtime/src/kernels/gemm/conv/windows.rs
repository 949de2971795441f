//! Convolutions whose windows have a few rows, of a few features and with channels first: vectors hold
//! neighbouring positions of a row of the result, and read the input where it lies.
//!
//! Lanes beyond the edges of the input are left out by masks. Of each row that several rows of
//! the result meet, vectors are loaded once for all of them: what a vector costs to load, which mostly crosses a
//! cache line, is as much as two multiplications.

use std::ops::Range;

use super::{Convolution, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::gemm::simd::{Lanes, WindowLoops};
use crate::kernels::gemm::strips::{Column, Line, Strip, within};

/// Rows of the result whose sums are computed together: enough to hide the latency of additions.
const ROWS: usize = 7;
/// The same, for windows of three rows that move by one, where there are registers for so many sums: of a row that is
/// loaded, more of them meet three.
const MANY_ROWS: usize = 14;
/// Rows of the result together if there are fewer.
const FEW_ROWS: usize = 2;
/// Multiplications that a task has at least.
const TASK_WORK: usize = 1 << 18;
/// The most columns of a window: where each of them lies is found for every vector of a row.
const MOST_COLUMNS: usize = 16;
/// Sizes and distances of this kind are so small that sums and products of two do not overflow.
const FAR: usize = 1 << 30;

impl Convolution {
    /// The rows and columns of windows, if they are of this kind.
    pub(super) fn windows(&self) -> Option<[Spatial; 2]> {
        let [rows, columns] = self.spatial[..] else { return None };
        let is_near = |dim: &Spatial| {
            let sizes = [dim.input, dim.output, dim.kernel, dim.rhs_dilation];
            let has_holes = dim.lhs_dilation > 1 && dim.input > 1;
            !has_holes
                && sizes.iter().all(|&size| size < FAR)
                && dim.pad_low.unsigned_abs() < FAR as u64
        };
        let are_rows = columns.lhs == 1 && columns.out == 1 && rows.output >= FEW_ROWS;
        let has_kernel = rows.rhs_dilation == 1
            && rows.stride == columns.stride
            && columns.kernel <= MOST_COLUMNS
            && matches!((rows.kernel, rows.stride), (3 | 5 | 7, 1 | 2));
        if !(are_rows && has_kernel && is_near(&rows) && is_near(&columns)) {
            return None;
        }
        // Each window meets a row of the input.
        let last = ((rows.output - 1) * rows.stride) as i64;
        let meets = rows.pad_low < rows.kernel as i64 && last - rows.pad_low < rows.input as i64;
        meets.then_some([rows, columns])
    }

    /// Computes the convolution with vectors of neighbouring positions.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`]; the windows are `windows`.
    pub(super) unsafe fn run_windows<W: Plain, A>(
        &self,
        [rows, columns]: [Spatial; 2],
        loops: &dyn WindowLoops<W, A>,
        [lhs, rhs]: [&[W]; 2],
        out: Shared<A>,
        threads: Threads<'_>,
    ) {
        self.check_places(lhs.len(), rhs.len());
        let windows = Windows { conv: self, rows, columns, lhs, rhs, out };
        let planes = self.batch.size * self.group.size;
        let taps = rows.kernel * columns.kernel * self.features.size * self.outputs.size;
        let row_work = (taps * columns.output).max(1);
        let strip = (TASK_WORK / row_work).clamp(MANY_ROWS, rows.output.max(MANY_ROWS));
        let strips: Vec<_> = even_chunks(rows.output, strip).collect();
        let at_once = TASK_WORK / row_work.saturating_mul(strip);
        let chunks: Vec<_> = even_chunks(planes, at_once.max(1)).collect();
        threads.for_each(strips.len() * chunks.len(), &|task| {
            let (strip, chunk) = (&strips[task / chunks.len()], &chunks[task % chunks.len()]);
            // SAFETY: the caller's promise; each task has other rows.
            unsafe { loops.windows(&windows, chunk.clone(), strip.clone()) };
        });
    }

    /// Checks that all that is met lies in operands of these lengths.
    ///
    /// # Panics
    /// If it does not.
    pub(super) fn check_places(&self, lhs: usize, rhs: usize) {
        let spatial = || self.spatial.iter();
        let input = [(self.group.size, self.group.lhs), (self.batch.size, self.batch.lhs)];
        let input = Axis::new(input.into_iter().chain(spatial().map(|dim| (dim.input, dim.lhs))));
        check_bounds(lhs, 0, &input, &Axis::new([(self.features.size, self.features.lhs)]));
        let outputs = [(self.group.size, self.group.rhs), (self.outputs.size, self.outputs.rhs)];
        let taps = spatial().map(|dim| (dim.kernel, dim.rhs));
        let steps = [(self.features.size, self.features.rhs)].into_iter().chain(taps);
        check_bounds(rhs, 0, &Axis::new(outputs), &Axis::new(steps));
    }
}

/// What the tasks of a convolution share.
pub(in crate::kernels) struct Windows<'a, W, A> {
    conv: &'a Convolution,
    rows: Spatial,
    columns: Spatial,
    /// The input.
    lhs: &'a [W],
    /// The kernel.
    rhs: &'a [W],
    out: Shared<A>,
}

/// Neighbouring rows of an output that are computed together.
struct Block {
    /// The first of them.
    row: usize,
    /// Where the first row of the input that they meet would be in a plane.
    first: isize,
    /// Which of those that they meet are there, a bit for each.
    there: u32,
}

/// An output of a group, for one of the batch.
struct Output<'a, W, A, M, const STRIDE: usize> {
    /// The first plane of the input that it meets.
    input: *const W,
    kernel: *const W,
    out: *mut A,
    /// All positions of a row.
    strips: &'a [Strip<M, STRIDE>],
}

impl Windows<'_, f32, f32> {
    /// Computes a strip of rows of the outputs of some groups, each for one of the batch.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for these rows, which are [`FEW_ROWS`] at least; the features are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Lanes>(
        &self,
        planes: Range<usize>,
        strip: Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.rows.kernel, self.rows.stride) {
                (3, 1) => self.run_planes::<S, 3, 1>(planes, strip),
                (3, 2) => self.run_planes::<S, 3, 2>(planes, strip),
                (5, 1) => self.run_planes::<S, 5, 1>(planes, strip),
                (5, 2) => self.run_planes::<S, 5, 2>(planes, strip),
                (7, 1) => self.run_planes::<S, 7, 1>(planes, strip),
                (7, 2) => self.run_planes::<S, 7, 2>(planes, strip),
                _ => unreachable!("checked when the route was chosen"),
            }
        }
    }

    /// The same, for windows of `WINDOW` rows that move by `STRIDE`.
    ///
    /// # Safety
    /// As for [`Windows::run`].
    #[inline(always)]
    unsafe fn run_planes<S: Lanes, const WINDOW: usize, const STRIDE: usize>(
        &self,
        planes: Range<usize>,
        rows: Range<usize>,
    ) {
        let conv = self.conv;
        let columns = &self.columns;
        let line = Line {
            input: columns.input,
            points: columns.kernel,
            pad_low: columns.pad_low,
            dilation: columns.rhs_dilation,
        };
        let strips: Vec<_> = line.strips::<S, STRIDE>(0..columns.output).collect();
        let count = self.rows_at_once::<S>(rows.len());
        let met = (count - 1) * STRIDE + WINDOW;
        let block = |row: usize| {
            let first = (row * STRIDE) as isize - self.rows.pad_low as isize;
            let there = within(first, self.rows.input, met);
            let there = (1 << there.end) - (1 << there.start);
            Block { row, first: first * self.rows.lhs as isize, there }
        };
        // The last rows may be computed twice.
        let firsts = rows.clone().step_by(count).map(|row| row.min(rows.end - count));
        let blocks: Vec<_> = firsts.map(block).collect();
        for plane in planes {
            let (batch, group) = (plane / conv.group.size, plane % conv.group.size);
            let input = batch * conv.batch.lhs + group * conv.group.lhs;
            let out = batch * conv.batch.out + group * conv.group.out;
            for output in 0..conv.outputs.size {
                let kernel = group * conv.group.rhs + output * conv.outputs.rhs;
                let output = Output {
                    input: self.lhs.as_ptr().wrapping_add(input),
                    kernel: self.rhs.as_ptr().wrapping_add(kernel),
                    out: self.out.get().wrapping_add(out + output * conv.outputs.out),
                    strips: &strips,
                };
                for block in &blocks {
                    // SAFETY: the caller's promise, for these rows.
                    unsafe {
                        match count {
                            MANY_ROWS => {
                                self.sums::<S, MANY_ROWS, WINDOW, STRIDE>(&output, block);
                            }
                            ROWS => self.sums::<S, ROWS, WINDOW, STRIDE>(&output, block),
                            _ => self.sums::<S, FEW_ROWS, WINDOW, STRIDE>(&output, block),
                        }
                    }
                }
            }
        }
    }

    /// How many of so many rows are computed together.
    #[inline(always)]
    fn rows_at_once<S: Lanes>(&self, rows: usize) -> usize {
        // Sums and weights are in registers, of which there are 32 if they are so long.
        let are_many = size_of::<S::Vec>() >= 64 && rows.div_ceil(ROWS).is_multiple_of(2);
        match (rows, self.rows.kernel, self.rows.stride) {
            (MANY_ROWS.., 3, 1) if are_many => MANY_ROWS,
            (ROWS.., ..) => ROWS,
            _ => FEW_ROWS,
        }
    }

    /// Computes all positions of a block of `COUNT` rows.
    ///
    /// # Safety
    /// As for [`Windows::run`].
    #[inline(always)]
    unsafe fn sums<S: Lanes, const COUNT: usize, const WINDOW: usize, const STRIDE: usize>(
        &self,
        output: &Output<'_, f32, f32, S::Mask, STRIDE>,
        block: &Block,
    ) {
        let features = self.conv.features;
        let apart = self.rows.out;
        let input = output.input.wrapping_offset(block.first);
        let out = output.out.wrapping_add(block.row * apart);
        for strip in output.strips {
            let (out, lanes) = (out.wrapping_add(strip.x), strip.lanes);
            let mut sums = [S::zero(); COUNT];
            for feature in 0..features.size {
                let input = input.wrapping_add(feature * features.lhs);
                let kernel = output.kernel.wrapping_add(feature * features.rhs);
                for column in &strip.columns {
                    // SAFETY: the caller's promise: of rows that are there, lanes that are there may be read, and so
                    // may the kernel.
                    unsafe {
                        // (The first is known while compiling, so that there is no code for the other.)
                        match STRIDE == 2 && column.are_two {
                            true => self.add::<S, COUNT, WINDOW, STRIDE, true>(
                                column,
                                input,
                                block.there,
                                kernel,
                                &mut sums,
                            ),
                            false => self.add::<S, COUNT, WINDOW, STRIDE, false>(
                                column,
                                input,
                                block.there,
                                kernel,
                                &mut sums,
                            ),
                        }
                    }
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { S::store(out.wrapping_add(i * apart), lanes, sum, false) };
            }
        }
    }

    /// Adds the products of a column of windows, the first of which begins at `input`.
    ///
    /// # Safety
    /// As for [`Windows::run`]; of rows that are `there`, lanes that are there may be read.
    #[inline(always)]
    unsafe fn add<
        S: Lanes,
        const COUNT: usize,
        const WINDOW: usize,
        const STRIDE: usize,
        const TWO: bool,
    >(
        &self,
        column: &Column<S::Mask, STRIDE>,
        input: *const f32,
        there: u32,
        kernel: *const f32,
        sums: &mut [S::Vec; COUNT],
    ) {
        let input = input.wrapping_offset(column.offset);
        let kernel = kernel.wrapping_add(column.point * self.columns.rhs);
        let (masks, apart) = (column.masks, self.rows.lhs);
        // SAFETY: the caller's promise.
        unsafe {
            let weights = self.weights::<S, WINDOW>(kernel);
            let second = match TWO {
                true => self.weights::<S, WINDOW>(kernel.wrapping_add(self.columns.rhs)),
                false => weights,
            };
            // (Written out, or sums would be in memory: the compiler does not unroll loops of so many instructions.)
            macro_rules! each_place {
                ($($place:literal)*) => { $(
                    let met = (COUNT - 1) * STRIDE + WINDOW;
                    // In between, all rows are there.
                    let is_edge = $place < WINDOW - 1 || $place + WINDOW > met;
                    if $place < met && (!is_edge || there & 1 << $place != 0) {
                        let from = input.wrapping_add($place * apart);
                        let low = S::load_masked(from, masks[0]);
                        if STRIDE == 1 {
                            meet::<S, COUNT, WINDOW, STRIDE>($place, low, &weights, sums);
                        } else {
                            let high = from.wrapping_add(S::LANES);
                            let high = S::load_masked(high, masks[STRIDE - 1]);
                            let even = S::even(low, high);
                            meet::<S, COUNT, WINDOW, STRIDE>($place, even, &weights, sums);
                            if TWO {
                                let odd = S::odd(low, high);
                                meet::<S, COUNT, WINDOW, STRIDE>($place, odd, &second, sums);
                            }
                        }
                    }
                )* };
            }
            each_place!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18);
        }
    }

    /// The weights of a column of the kernel.
    ///
    /// # Safety
    /// As for [`Windows::run`]; the column begins at `kernel`.
    #[inline(always)]
    unsafe fn weights<S: Lanes, const WINDOW: usize>(
        &self,
        kernel: *const f32,
    ) -> [S::Words; WINDOW] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut weights = [S::splat(kernel); WINDOW];
            for (k, weight) in weights.iter_mut().enumerate().skip(1) {
                *weight = S::splat(kernel.wrapping_add(k * self.rows.rhs));
            }
            weights
        }
    }
}

/// Adds what windows that move by `STRIDE` rows make of a row that the first of them has at `place`.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn meet<S: Lanes, const COUNT: usize, const WINDOW: usize, const STRIDE: usize>(
    place: usize,
    words: S::Words,
    weights: &[S::Words; WINDOW],
    sums: &mut [S::Vec; COUNT],
) {
    for (k, &weight) in weights.iter().enumerate() {
        if place >= k && (place - k).is_multiple_of(STRIDE) && (place - k) / STRIDE < COUNT {
            let sum = &mut sums[(place - k) / STRIDE];
            // SAFETY: the caller's promise.
            *sum = unsafe { S::mul_add(words, weight, *sum) };
        }
    }
}
