//! Convolutions whose windows have a few rows, of a few features and with channels first: vectors hold
//! neighbouring positions of a row of the result, and read the input where it lies.
//!
//! Lanes beyond the edges of the input are left out by masks. Of each row that several rows of
//! the result meet, vectors are loaded once for all of them: what a vector costs to load, which mostly crosses a
//! cache line, is as much as two multiplications.

use std::ops::Range;

use super::row_blocks::{Block, MANY_ROWS, each_count, each_kind, each_place, meet};
use super::{Convolution, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASK_WORK;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::gemm::simd::{Lanes, WindowLoops};
use crate::kernels::gemm::strips::{Column, Line, Strip};

/// The most columns of a window: where each of them lies is found for every vector of a row.
const MOST_COLUMNS: usize = 16;

impl Convolution {
    /// The rows and columns of windows, if they are of this kind.
    pub(super) fn windows(&self) -> Option<[Spatial; 2]> {
        let [rows, columns] = self.spatial[..] else { return None };
        let are_columns = columns.lhs == 1 && columns.out == 1 && columns.kernel <= MOST_COLUMNS;
        let is_one = rows.is_near()
            && columns.is_near()
            && are_columns
            && rows.stride == columns.stride
            && rows.are_rows_of_windows();
        is_one.then_some([rows, columns])
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

    /// Checks that all elements that are met lie in an input of this length.
    ///
    /// # Panics
    /// If they do not.
    pub(super) fn check_input(&self, lhs: usize) {
        let spatial = self.spatial.iter().map(|dim| (dim.input, dim.lhs));
        let input = [(self.group.size, self.group.lhs), (self.batch.size, self.batch.lhs)];
        let input = Axis::new(input.into_iter().chain(spatial));
        check_bounds(lhs, 0, &input, &Axis::new([(self.features.size, self.features.lhs)]));
    }

    /// Checks that all that is met lies in operands of these lengths.
    ///
    /// # Panics
    /// If it does not.
    pub(super) fn check_places(&self, lhs: usize, rhs: usize) {
        self.check_input(lhs);
        let outputs = [(self.group.size, self.group.rhs), (self.outputs.size, self.outputs.rhs)];
        let taps = self.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
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
            each_kind!(self.rows, self.run_planes::<S>(planes, strip));
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
        let count = self.rows.rows_at_once::<S>(rows.len());
        let blocks = self.rows.row_blocks(rows, count);
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
                        each_count!(count, self.sums::<S, WINDOW, STRIDE>(&output, block));
                    }
                }
            }
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
            each_place::<COUNT, WINDOW, STRIDE>(there, |place| {
                let from = input.wrapping_add(place * apart);
                let low = S::load_masked(from, masks[0]);
                if STRIDE == 1 {
                    return meet::<S, COUNT, WINDOW, STRIDE>(place, low, &weights, sums);
                }
                let high = S::load_masked(from.wrapping_add(S::LANES), masks[STRIDE - 1]);
                let even = S::even(low, high);
                meet::<S, COUNT, WINDOW, STRIDE>(place, even, &weights, sums);
                if TWO {
                    let odd = S::odd(low, high);
                    meet::<S, COUNT, WINDOW, STRIDE>(place, odd, &second, sums);
                }
            });
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
