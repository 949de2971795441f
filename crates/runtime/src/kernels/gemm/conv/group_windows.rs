//! Convolutions of groups with a few features and outputs each, channels last, whose windows have three rows: vectors
//! hold neighbouring outputs, of one group or of several.
//!
//! Each group of such a convolution is a product with so few columns that tiles would be mostly empty. Outputs of several
//! groups meet features of their own: those are picked from a vector of the input, which has the features of the same
//! groups. Rows and columns of windows that lie beyond the input are left out. Sums are of a column of several rows of
//! the result, so that what is picked is picked once for all rows that meet it.

use std::ops::Range;

use super::finish::FinishRows;
use super::grouped::Filter;
use super::row_blocks::{Block, FEW_ROWS, MANY_ROWS, Points, ROWS, each_place, meet};
use super::{Convolution, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASK_WORK;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::{chunks, even_chunks};
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::gemm::simd::{Lanes, WindowLoops};
use crate::kernels::scratch;

/// Rows of the windows.
const WINDOW: usize = 3;
/// Channels that tasks have whole vectors of.
const CHANNELS: usize = 16;
/// The most features and outputs of a group; of 32, tiles are faster.
const MOST_CHANNELS: usize = 24;
/// Words that a part of the input is copied to: they fit the first-level cache.
const REGION_WORDS: usize = 1 << 13;
/// Positions of a row that are computed together at least.
const LEAST_POSITIONS: usize = 8;
/// The most columns of the input from the first to the last of a window.
const MOST_REACH: usize = 32;
/// The most features that vectors of several groups have of each.
const MOST_PICKED: usize = 8;

impl Convolution {
    /// The rows and columns of windows, if they are of this kind.
    pub(super) fn group_windows(&self) -> Option<[Spatial; 2]> {
        let [rows, columns] = self.spatial[..] else { return None };
        let (features, outputs) = (self.features, self.outputs);
        let are_last = features.lhs == 1
            && outputs.out == 1
            && self.group.lhs == features.size
            && self.group.out == outputs.size;
        // Several groups to a vector, or several vectors to a group, the last of which may be half full.
        let are_few = match outputs.size {
            size @ (2 | 4 | MOST_PICKED) => features.size == size,
            size => {
                size >= CHANNELS
                    && size.is_multiple_of(CHANNELS / 2)
                    && size.max(features.size) <= MOST_CHANNELS
            }
        };
        let is_one = self.group.size > 1
            && are_last
            && are_few
            && rows.is_near()
            && columns.is_near()
            && columns.reach() <= MOST_REACH
            && rows.kernel == WINDOW
            && rows.are_rows_of_windows();
        is_one.then_some([rows, columns])
    }

    /// Computes the convolution with vectors of neighbouring outputs.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`]; the windows are `group_windows`.
    pub(super) unsafe fn run_group_windows<W: Plain, A>(
        &self,
        [rows, columns]: [Spatial; 2],
        loops: &dyn WindowLoops<W, A>,
        (lhs, kernel): (&[W], Filter<'_, W>),
        (out, finish): (Shared<A>, Option<FinishRows<'_, A>>),
        threads: Threads<'_>,
    ) {
        let count = self.filter_channels().len();
        self.check_input(lhs.len());
        check_bounds(kernel.words.len(), 0, &Axis::new([(count, 1)]), kernel.steps);
        let at_once = self.outputs.size.max(CHANNELS);
        let row_work = [rows.kernel, columns.kernel, columns.output, self.features.size, at_once];
        let row_work = row_work.into_iter().fold(1, usize::saturating_mul);
        let parts: Vec<_> = chunks(0..count, at_once).collect();
        let beside = self.batch.size.saturating_mul(parts.len());
        let strips = rows.strips(TASK_WORK / row_work.max(1), beside, threads.count());
        // What windows of some rows and columns meet is copied to where it is near.
        let column = self.features.size.next_multiple_of(CHANNELS);
        let met_rows = (MANY_ROWS - 1) + rows.kernel;
        let met_columns = (REGION_WORDS / (met_rows * column)).saturating_sub(columns.reach());
        let most = (met_columns / columns.stride + 1).max(LEAST_POSITIONS);
        let positions: Vec<_> = even_chunks(columns.output, most).collect();
        let row = (most - 1).saturating_mul(columns.stride).saturating_add(columns.reach());
        let copied = Copied { row: row.min(columns.input) * column, column };
        let windows =
            GroupWindows { conv: self, rows, columns, lhs, kernel, out, positions, copied };
        // SAFETY: the caller's promise; each task has other elements.
        unsafe {
            let shared = (&strips[..], &parts[..]);
            self.each_part([rows, columns], shared, finish, threads, &|image, strip, part| {
                scratch::with(met_rows * windows.copied.row, |region: &mut [W]| {
                    loops.group_windows(&windows, image, strip.clone(), part.clone(), region);
                });
            });
        }
    }
}

/// What the tasks of a convolution share.
pub(in crate::kernels) struct GroupWindows<'a, W, A> {
    conv: &'a Convolution,
    rows: Spatial,
    columns: Spatial,
    /// The input.
    lhs: &'a [W],
    kernel: Filter<'a, W>,
    out: Shared<A>,
    /// Positions of a row, some at a time.
    positions: Vec<Range<usize>>,
    /// How the input is copied.
    copied: Copied,
}

/// How far words are from each other in the copy of a part of the input.
#[derive(Clone, Copy)]
struct Copied {
    row: usize,
    column: usize,
}

/// How far weights are from each other.
struct Weights {
    rows: usize,
    columns: usize,
    features: usize,
}

/// What is computed from one copy.
struct Part<'a> {
    block: &'a Block,
    positions: Range<usize>,
    /// The columns of the input that their windows meet.
    met: Range<usize>,
    /// The first feature, by its number in a position of the input.
    features: usize,
    outputs: Range<usize>,
    /// For each feature of a group, which word of a vector of the input has it, for each lane.
    picked: [[i32; CHANNELS]; MOST_PICKED],
}

/// A vector of outputs at a position.
struct Place<W, A, M> {
    /// What the first point of its window meets, in the first row of the copy.
    input: *const W,
    /// The weights of that point in the first row of the kernel, of the first feature.
    kernel: *const W,
    /// In the first row of the result.
    out: *mut A,
    lanes: M,
    /// How many columns of its window there are.
    points: usize,
}

impl GroupWindows<'_, f32, f32> {
    /// Computes some outputs in some rows of an image.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for these rows, which are two at least, and these outputs, which are those of
    /// whole groups; the features are there, and the region has room for what windows of [`MANY_ROWS`] rows meet.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Lanes>(
        &self,
        image: usize,
        rows: Range<usize>,
        outputs: Range<usize>,
        region: &mut [f32],
    ) {
        let count = self.rows.rows_at_once::<S>(rows.len());
        let group = self.conv.outputs.size;
        // Several groups to a vector, or one at a time.
        let picks = group < S::LANES;
        let at_once = if picks { S::LANES } else { group };
        let lane = |k, lane: usize| (lane / group * group + k) as i32;
        let picked = std::array::from_fn(|k| std::array::from_fn(|at| lane(k, at)));
        let blocks = self.rows.row_blocks(rows, count);
        for outputs in chunks(outputs, at_once) {
            for positions in &self.positions {
                for block in &blocks {
                    let part = Part {
                        block,
                        positions: positions.clone(),
                        met: self.columns.met(positions.clone()),
                        features: outputs.start / group * self.conv.features.size,
                        outputs: outputs.clone(),
                        picked,
                    };
                    // SAFETY: the caller's promise.
                    unsafe {
                        self.copy::<S>(image, &part, region);
                        let region = &*region;
                        match (self.rows.stride, count, picks) {
                            (1, MANY_ROWS, true) => {
                                self.sum::<S, MANY_ROWS, 1, true>(image, &part, region);
                            }
                            (1, MANY_ROWS, false) => {
                                self.sum::<S, MANY_ROWS, 1, false>(image, &part, region);
                            }
                            (1, ROWS, true) => self.sum::<S, ROWS, 1, true>(image, &part, region),
                            (1, ROWS, false) => self.sum::<S, ROWS, 1, false>(image, &part, region),
                            (1, _, true) => self.sum::<S, FEW_ROWS, 1, true>(image, &part, region),
                            (1, _, false) => {
                                self.sum::<S, FEW_ROWS, 1, false>(image, &part, region)
                            }
                            (_, ROWS, true) => self.sum::<S, ROWS, 2, true>(image, &part, region),
                            (_, ROWS, false) => self.sum::<S, ROWS, 2, false>(image, &part, region),
                            (_, _, true) => self.sum::<S, FEW_ROWS, 2, true>(image, &part, region),
                            (_, _, false) => {
                                self.sum::<S, FEW_ROWS, 2, false>(image, &part, region)
                            }
                        }
                    }
                }
            }
        }
    }

    /// Copies the rows and columns of the input that a part meets, where there are any.
    ///
    /// # Safety
    /// As for [`GroupWindows::run`].
    #[inline(always)]
    unsafe fn copy<S: Lanes>(&self, image: usize, part: &Part<'_>, region: &mut [f32]) {
        let (conv, Copied { row, column }) = (self.conv, self.copied);
        let groups = part.outputs.len().div_ceil(conv.outputs.size);
        let width = groups * conv.features.size;
        let start = image * conv.batch.lhs + part.features + part.met.start * self.columns.lhs;
        let first = self.lhs.as_ptr().wrapping_add(start).wrapping_offset(part.block.first);
        for place in part.block.places() {
            let from = first.wrapping_add(place * self.rows.lhs);
            let to = region[place * row..][..part.met.len() * column].as_mut_ptr();
            for k in (0..width).step_by(S::LANES) {
                let lanes = S::mask(S::LANES.min(width - k));
                for x in 0..part.met.len() {
                    // SAFETY: the caller's promise: the input has these words; the region has whole vectors.
                    unsafe {
                        let words =
                            S::load_masked(from.wrapping_add(x * self.columns.lhs + k), lanes);
                        S::store_all(to.wrapping_add(x * column + k), words, false);
                    }
                }
            }
        }
    }

    /// Computes a part, `COUNT` rows that move by `STRIDE`; `PICK` if vectors have outputs of several groups.
    ///
    /// # Safety
    /// As for [`GroupWindows::run`]; the region is the copy of what is met.
    #[inline(always)]
    unsafe fn sum<S: Lanes, const COUNT: usize, const STRIDE: usize, const PICK: bool>(
        &self,
        image: usize,
        part: &Part<'_>,
        region: &[f32],
    ) {
        let (conv, kernel) = (self.conv, &self.kernel);
        let taps = WINDOW * self.columns.kernel;
        let offset =
            |step: usize, count: usize| if count > 1 { kernel.steps.offset(step) } else { 0 };
        let weights = Weights {
            rows: kernel.steps.offset(self.columns.kernel),
            columns: offset(1, self.columns.kernel),
            features: offset(taps, conv.features.size),
        };
        let out = image * conv.batch.out + part.block.row * self.rows.out;
        for output in part.outputs.clone().step_by(S::LANES) {
            let lanes = S::mask(S::LANES.min(part.outputs.end - output));
            let out = self.out.get().wrapping_add(out + output);
            for x in part.positions.clone() {
                let Points { points, first } = self.columns.points_at(x);
                let column = first.wrapping_sub(part.met.start as isize);
                // (If no column is there, this is no address, and nothing is read.)
                let offset = column.wrapping_mul(self.copied.column as isize);
                let input = region.as_ptr().wrapping_offset(offset);
                let kernel = kernel.words.as_ptr().wrapping_add(output);
                let place = Place {
                    input,
                    kernel: kernel.wrapping_add(points.start * weights.columns),
                    out: out.wrapping_add(x * self.columns.out),
                    lanes,
                    points: points.len(),
                };
                // SAFETY: the caller's promise, for these outputs.
                unsafe { self.sums::<S, COUNT, STRIDE, PICK>(&place, part, &weights) };
            }
        }
    }

    /// Computes a vector of outputs in a column of rows.
    ///
    /// # Safety
    /// As for [`GroupWindows::sum`].
    #[inline(always)]
    unsafe fn sums<S: Lanes, const COUNT: usize, const STRIDE: usize, const PICK: bool>(
        &self,
        place: &Place<f32, f32, S::Mask>,
        part: &Part<'_>,
        weights: &Weights,
    ) {
        let (lanes, Copied { row, column }) = (place.lanes, self.copied);
        let mut sums = [S::zero(); COUNT];
        for point in 0..place.points {
            let input = place.input.wrapping_add(point * self.columns.rhs_dilation * column);
            let mut kernel = place.kernel.wrapping_add(point * weights.columns);
            for k in 0..self.conv.features.size {
                // SAFETY: the caller's promise: rows and columns that are there have been copied; the kernel has the
                // weights of these outputs.
                unsafe {
                    let mut taps = [S::load_masked(kernel, lanes); WINDOW];
                    for (i, tap) in taps.iter_mut().enumerate().skip(1) {
                        *tap = S::load_masked(kernel.wrapping_add(i * weights.rows), lanes);
                    }
                    let choice = S::choice(&part.picked[if PICK { k } else { 0 }]);
                    each_place::<COUNT, WINDOW, STRIDE>(part.block.there, |place| {
                        let from = input.wrapping_add(place * row);
                        let words = match PICK {
                            true => S::pick(S::load(from), choice),
                            false => S::splat(from.wrapping_add(k)),
                        };
                        meet::<S, COUNT, WINDOW, STRIDE>(place, words, &taps, &mut sums);
                    });
                }
                kernel = kernel.wrapping_add(weights.features);
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { S::store(place.out.wrapping_add(i * self.rows.out), lanes, sum, false) };
        }
    }
}
