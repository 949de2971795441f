//! Depthwise convolutions with channels last whose windows have a few rows: vectors hold neighbouring channels, and read
//! the input where it lies.
//!
//! Rows and columns of windows that lie beyond the input are left out. Sums are of a column of several rows of the
//! result, so that vectors of the input are loaded once for all rows that meet them.

use std::ops::Range;

use super::finish::FinishRows;
use super::grouped::Filter;
use super::row_blocks::{Block, each_count, each_kind, each_place, meet};
use super::{Convolution, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::cache::second_level_bytes;
use crate::kernels::gemm::TASK_WORK;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::chunks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::gemm::simd::{Lanes, WindowLoops};
use crate::kernels::isa::prefetch_line;

/// Channels of a position that are computed before those of the next: what the columns of a window meet of them in some
/// 16 rows fits the first-level cache.
const CHANNELS: usize = 128;
/// Positions between the one that is computed and the one whose part of the input is asked for, if the input is far
/// larger than the second-level cache: the rows of a block are too many streams for the processor to see.
const AHEAD: usize = 2;
/// An input of at least this many times the second-level cache is asked for. Below, that costs more than it saves.
const FAR: usize = 4;

impl Convolution {
    /// The rows and columns of windows, if they are of this kind.
    pub(super) fn channel_windows(&self) -> Option<[Spatial; 2]> {
        let [rows, columns] = self.spatial[..] else { return None };
        let is_depthwise = (self.features.size, self.outputs.size) == (1, 1);
        let are_last = self.group.lhs == 1 && self.group.out == 1;
        let is_one = is_depthwise
            && are_last
            && rows.is_near()
            && columns.is_near()
            && rows.are_rows_of_windows();
        is_one.then_some([rows, columns])
    }

    /// Computes the convolution with vectors of neighbouring channels.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`]; the windows are `channel_windows`.
    pub(super) unsafe fn run_channel_windows<W: Plain, A>(
        &self,
        [rows, columns]: [Spatial; 2],
        loops: &dyn WindowLoops<W, A>,
        (lhs, kernel): (&[W], Filter<'_, W>),
        (out, finish): (Shared<A>, Option<FinishRows<'_, A>>),
        threads: Threads<'_>,
    ) {
        let count = self.group.size;
        self.check_input(lhs.len());
        check_bounds(kernel.words.len(), 0, &Axis::new([(count, 1)]), kernel.steps);
        let is_far = size_of_val(lhs) / FAR >= second_level_bytes();
        let ahead = if is_far { AHEAD } else { 0 };
        let windows = ChannelWindows { conv: self, rows, columns, lhs, kernel, out, ahead };
        let row_work = [rows.kernel, columns.kernel, columns.output, count];
        let row_work = row_work.into_iter().fold(1, usize::saturating_mul);
        let strips = rows.strips(TASK_WORK / row_work.max(1), self.batch.size, threads.count());
        // Channels are shared out where there are few rows.
        let is_few = self.batch.size * strips.len() < threads.count();
        let at_once = match is_few {
            true => count.div_ceil(2 * threads.count()).next_multiple_of(16),
            false => count,
        };
        let parts: Vec<_> = chunks(0..count, at_once).collect();
        // SAFETY: the caller's promise; each task has other elements.
        unsafe {
            let shared = (&strips[..], &parts[..]);
            self.each_part([rows, columns], shared, finish, threads, &|image, strip, part| {
                loops.channel_windows(&windows, image, strip.clone(), part.clone());
            });
        }
    }
}

/// What the tasks of a convolution share.
pub(in crate::kernels) struct ChannelWindows<'a, W, A> {
    conv: &'a Convolution,
    rows: Spatial,
    columns: Spatial,
    /// The input.
    lhs: &'a [W],
    kernel: Filter<'a, W>,
    out: Shared<A>,
    /// How many positions ahead of what is read the input is asked for; zero if it is not.
    ahead: usize,
}

/// How far the weights of rows and columns of windows are apart.
struct Weights {
    rows: usize,
    columns: usize,
}

/// A vector of channels at a position of an image.
struct Place<W, A, M> {
    /// Where what the first point of its window meets would be in the first row of the image.
    input: *const W,
    /// The weights of that point in the first row of the kernel.
    kernel: *const W,
    /// In the first row of the result.
    out: *mut A,
    lanes: M,
    /// How many columns of its window there are.
    points: usize,
}

impl<W, A> ChannelWindows<'_, W, A> {
    /// Asks for the columns of the input that the window at a position has and the one before it has not, in the rows of a
    /// block.
    #[inline(never)]
    fn ask_for(&self, image: usize, x: usize, block: &Block, channels: Range<usize>) {
        let met = self.columns.met(x..x + 1);
        let columns = met.start.max(met.end.saturating_sub(self.columns.stride))..met.end;
        let image = self.lhs.as_ptr().wrapping_add(image * self.conv.batch.lhs + channels.start);
        let image = image.wrapping_offset(block.first);
        let bytes = channels.len() * size_of::<W>();
        for column in columns {
            for row in block.places() {
                let place = image.wrapping_add(row * self.rows.lhs + column * self.columns.lhs);
                for offset in (0..bytes).step_by(64) {
                    prefetch_line(place.cast::<u8>().wrapping_add(offset));
                }
            }
        }
    }
}

impl ChannelWindows<'_, f32, f32> {
    /// Computes some rows of some channels of an image.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for these rows, which are two at least; the features are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Lanes>(
        &self,
        image: usize,
        rows: Range<usize>,
        channels: Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { each_kind!(self.rows, self.run_kind::<S>(image, rows, channels)) }
    }

    /// The same, for windows of `WINDOW` rows that move by `STRIDE`.
    ///
    /// # Safety
    /// As for [`ChannelWindows::run`].
    #[inline(always)]
    unsafe fn run_kind<S: Lanes, const WINDOW: usize, const STRIDE: usize>(
        &self,
        image: usize,
        rows: Range<usize>,
        channels: Range<usize>,
    ) {
        let (conv, kernel) = (self.conv, &self.kernel);
        let weights = Weights {
            rows: kernel.steps.offset(self.columns.kernel),
            columns: if self.columns.kernel > 1 { kernel.steps.offset(1) } else { 0 },
        };
        let columns: Vec<_> = (0..self.columns.output).map(|x| self.columns.points_at(x)).collect();
        let input = self.lhs.as_ptr().wrapping_add(image * conv.batch.lhs);
        let out = self.out.get().wrapping_add(image * conv.batch.out);
        let count = self.rows.rows_at_once::<S>(rows.len());
        for block in self.rows.row_blocks(rows, count) {
            for channels in chunks(channels.clone(), CHANNELS) {
                for (x, columns) in columns.iter().enumerate() {
                    let first = columns.first.wrapping_mul(self.columns.lhs as isize);
                    let input = input.wrapping_offset(first);
                    let point = kernel.words.as_ptr();
                    let point = point.wrapping_add(columns.points.start * weights.columns);
                    let out = out.wrapping_add(x * self.columns.out);
                    if self.ahead > 0 {
                        self.ask_for(image, x + self.ahead, &block, channels.clone());
                    }
                    for channel in channels.clone().step_by(S::LANES) {
                        let place = Place {
                            input: input.wrapping_add(channel),
                            kernel: point.wrapping_add(channel),
                            out: out.wrapping_add(channel),
                            lanes: S::mask(S::LANES.min(channels.end - channel)),
                            points: columns.points.len(),
                        };
                        // SAFETY: the caller's promise, for these channels.
                        unsafe {
                            each_count!(
                                count,
                                self.sums::<S, WINDOW, STRIDE>(&place, &block, &weights)
                            );
                        }
                    }
                }
            }
        }
    }

    /// Computes a vector of channels in a column of a block of `COUNT` rows.
    ///
    /// # Safety
    /// As for [`ChannelWindows::run`].
    #[inline(always)]
    unsafe fn sums<S: Lanes, const COUNT: usize, const WINDOW: usize, const STRIDE: usize>(
        &self,
        place: &Place<f32, f32, S::Mask>,
        block: &Block,
        weights: &Weights,
    ) {
        let (apart, lanes) = (self.rows.lhs, place.lanes);
        let input = place.input.wrapping_offset(block.first);
        let out = place.out.wrapping_add(block.row * self.rows.out);
        let next = self.columns.rhs_dilation * self.columns.lhs;
        let mut sums = [S::zero(); COUNT];
        for point in 0..place.points {
            let input = input.wrapping_add(point * next);
            let kernel = place.kernel.wrapping_add(point * weights.columns);
            // SAFETY: the caller's promise: of rows and columns that are there, the channels may be read, and so may
            // those of the kernel.
            unsafe {
                let mut column = [S::load_masked(kernel, lanes); WINDOW];
                for (k, weight) in column.iter_mut().enumerate().skip(1) {
                    *weight = S::load_masked(kernel.wrapping_add(k * weights.rows), lanes);
                }
                each_place::<COUNT, WINDOW, STRIDE>(block.there, |place| {
                    let words = S::load_masked(input.wrapping_add(place * apart), lanes);
                    meet::<S, COUNT, WINDOW, STRIDE>(place, words, &column, &mut sums);
                });
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { S::store(out.wrapping_add(i * self.rows.out), lanes, sum, false) };
        }
    }
}
