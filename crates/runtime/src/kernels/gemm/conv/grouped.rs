//! Convolutions of many small groups: vectors hold neighbouring groups.
//!
//! Each group of a depthwise convolution is a product with one column, for which a vector of columns
//! would be mostly empty. Its multiplications are few for each element of the input, so they cost
//! little next to reading it once.

use std::ops::Range;

use super::few_positions::Kernel;
use super::finish::FinishRows;
use super::pieces::{Cut, Piece};
use super::region::{Line, Region};
use super::tasks::store;
use super::{Convolution, advance};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::pack::{Elements, check_bounds};
use crate::kernels::gemm::simd::{Loops, Simd};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Neighbouring positions whose sums are formed at once: enough to hide the latency of additions.
const POSITIONS: usize = 4;

/// Where a tap is in a region and in the kernel.
#[derive(Clone, Copy)]
struct Tap {
    region: usize,
    kernel: usize,
}

impl Convolution {
    /// All groups' output features, in an array where they have these strides.
    fn channels(&self, group: usize, output: usize) -> Axis {
        Axis::new([(self.group.size, group), (self.outputs.size, output)])
    }

    /// Computes the convolution with vectors of groups. Returns whether rows have been finished.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    pub(super) unsafe fn run_grouped<W: Plain + Default, A: Plain + Default>(
        &self,
        (loops, isa): (&dyn Loops<W, A>, Isa),
        (lhs, kernel): (&dyn Elements<W>, Kernel<'_, W>),
        out: &dyn Destination<A>,
        finish: Option<FinishRows<'_, A>>,
        threads: Threads<'_>,
    ) -> bool {
        let in_place = lhs.words().zip(out.sums()).zip(loops.windows());
        let (channels, groups) = (self.channel_windows(), self.group_windows());
        let run = |kernel: Filter<'_, W>| match (in_place, channels, groups) {
            // SAFETY: the caller's promise.
            (Some(((words, sums), loops)), Some(windows), _) => unsafe {
                let operands = (words, kernel);
                self.run_channel_windows(windows, loops, operands, (sums, finish), threads);
            },
            // SAFETY: the caller's promise.
            (Some(((words, sums), loops)), None, Some(windows)) => unsafe {
                let operands = (words, kernel);
                self.run_group_windows(windows, loops, operands, (sums, finish), threads);
            },
            // SAFETY: the caller's promise.
            _ => unsafe { self.run_grouped_tasks((loops, isa), lhs, kernel, out, threads) },
        };
        let packed_steps = Axis::new([(self.kernel_steps().len(), self.filter_channels().len())]);
        match kernel {
            Kernel::Packed(words) => run(Filter { words, steps: &packed_steps }),
            Kernel::Elements(rhs) => match (rhs.words(), self.filter_channels().stride()) {
                (Some(words), Some(1)) => run(Filter { words, steps: &self.kernel_steps() }),
                _ => scratch::with(self.filter_len(), |words: &mut [W]| {
                    self.pack_filter(rhs, words);
                    run(Filter { words, steps: &packed_steps });
                }),
            },
        }
        in_place.is_some() && (channels.is_some() || groups.is_some()) && finish.is_some()
    }

    /// All groups' output features in the kernel.
    pub(super) fn filter_channels(&self) -> Axis {
        self.channels(self.group.rhs, self.outputs.rhs)
    }

    /// The words of a kernel whose channels are neighbours.
    pub(super) fn filter_len(&self) -> usize {
        self.filter_channels().len() * self.kernel_steps().len()
    }

    /// Makes the channels of a kernel neighbours, all of each tap.
    ///
    /// # Panics
    /// If the kernel is longer than its slice.
    pub(super) fn pack_filter<W: Plain>(&self, rhs: &dyn Elements<W>, packed: &mut [W]) {
        let (channels, steps) = (self.filter_channels(), self.kernel_steps());
        check_bounds(rhs.count(), 0, &channels, &steps);
        for (step, row) in packed.chunks_exact_mut(channels.len()).enumerate() {
            let from = steps.offset(step);
            match (rhs.words(), channels.stride()) {
                (Some(words), Some(stride)) => {
                    let words = words[from..].iter().step_by(stride.max(1));
                    row.iter_mut().zip(words).for_each(|(to, word)| *to = *word);
                }
                _ => {
                    for (channel, to) in row.iter_mut().enumerate() {
                        *to = rhs.word(from + channels.offset(channel));
                    }
                }
            }
        }
    }

    /// Computes the convolution with vectors of groups, in tasks that copy their part of the input.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    unsafe fn run_grouped_tasks<W: Plain + Default, A: Plain + Default>(
        &self,
        (loops, isa): (&dyn Loops<W, A>, Isa),
        lhs: &dyn Elements<W>,
        kernel: Filter<'_, W>,
        out: &dyn Destination<A>,
        threads: Threads<'_>,
    ) {
        let count = self.group.size * self.outputs.size;
        let (cut, channels) = self.grouped_cut().expect("checked when the route was chosen");
        let pieces = self.pieces(&cut);
        let chunks: Vec<_> = even_chunks(count, channels).collect();
        check_bounds(kernel.words.len(), 0, &Axis::new([(count, 1)]), kernel.steps);
        let grouped = Grouped { conv: self, loops, isa, cut: &cut, lhs, kernel, out };
        threads.for_each(pieces.len() * chunks.len(), &|i| {
            let (piece, chunk) = (&pieces[i / chunks.len()], chunks[i % chunks.len()].clone());
            // SAFETY: the caller's promise; each task has other elements of the result.
            unsafe { grouped.run(piece, chunk) };
        });
    }
}

/// What the tasks of a grouped convolution share.
struct Grouped<'a, W, A> {
    conv: &'a Convolution,
    loops: &'a dyn Loops<W, A>,
    isa: Isa,
    cut: &'a Cut,
    lhs: &'a dyn Elements<W>,
    kernel: Filter<'a, W>,
    out: &'a dyn Destination<A>,
}

impl<W: Plain + Default, A: Plain + Default> Grouped<'_, W, A> {
    /// Computes a piece of the result for some channels.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for this part of the result.
    unsafe fn run(&self, piece: &Piece, channels: Range<usize>) {
        let conv = self.conv;
        let batch = (piece.batch.len(), conv.batch.out);
        let positions = conv.positions(piece).zip(conv.spatial.iter().map(|dim| dim.out));
        let out_rows: Vec<_> = [batch].into_iter().chain(positions).collect();
        let out_channels = conv.channels(conv.group.out, conv.outputs.out);
        let start = conv.out_start(piece);
        if let (Some(sums), Some(1)) = (self.out.sums(), out_channels.stride()) {
            let start = Shared(sums.get().wrapping_add(start + channels.start));
            // SAFETY: the caller's promise.
            unsafe { self.sum(piece, channels, (start, &out_rows)) };
            return;
        }
        let width = channels.len();
        let rows: usize = out_rows.iter().map(|row| row.0).product();
        scratch::with(rows * width, |sums: &mut [A]| {
            let mut stride = rows * width;
            let dense: Vec<_> = out_rows
                .iter()
                .map(|row| {
                    stride /= row.0;
                    (row.0, stride)
                })
                .collect();
            // SAFETY: `dense` are the rows of `sums`.
            unsafe { self.sum(piece, channels.clone(), (Shared(sums.as_mut_ptr()), &dense)) };
            let rows = Axis::new(out_rows.iter().copied());
            // SAFETY: the caller's promise.
            unsafe { store(self.isa, sums, (self.out, start), &rows, (&out_channels, channels)) };
        });
    }

    /// Computes the sums of a piece for some channels, to `start`, in rows of these sizes and strides.
    ///
    /// # Safety
    /// From `start` on, channels that are neighbours in rows with these sizes and strides may be
    /// read and written, and nothing else accesses them.
    unsafe fn sum(
        &self,
        piece: &Piece,
        channels: Range<usize>,
        (start, out_rows): (Shared<A>, &[(usize, usize)]),
    ) {
        let (conv, kernel) = (self.conv, self.kernel);
        let taps: usize = conv.spatial.iter().map(|dim| dim.kernel).product();
        let spatial: Vec<Line> = conv.lines(piece, self.cut).collect();
        for features in even_chunks(conv.features.size, self.cut.features) {
            let batch = Line::plain(piece.batch.clone(), conv.batch.lhs);
            let feature = Line::plain(features.clone(), conv.features.lhs);
            let lines = [&[batch, feature], &spatial[..]].concat();
            let region = Region {
                lines: &lines,
                minor: &conv.channels(conv.group.lhs, 0),
                indices: channels.clone(),
            };
            let mut len = channels.len();
            let mut strides = vec![0; lines.len()];
            for (stride, line) in strides.iter_mut().zip(&lines).rev() {
                *stride = len;
                len *= line.extent;
            }
            let dims = || conv.spatial.iter().zip(&strides[2..]);
            let steps = dims().map(|(dim, stride)| (dim.kernel, dim.rhs_dilation * stride));
            let steps = Axis::new([(features.len(), strides[1])].into_iter().chain(steps));
            let tap = |step| Tap {
                region: steps.offset(step),
                kernel: kernel.steps.offset(features.start * taps + step) + channels.start,
            };
            let moves = dims().map(|(dim, stride)| dim.stride * stride);
            let moves: Vec<_> = [strides[0]].into_iter().chain(moves).collect();
            scratch::with(len, |words: &mut [W]| {
                region.fill(self.isa, self.lhs, 0, words, Threads::single());
                let channels = Channels {
                    taps: &(0..steps.len()).map(tap).collect::<Vec<_>>(),
                    region: words.as_ptr(),
                    moves: &moves,
                    kernel: kernel.words.as_ptr(),
                    count: channels.len(),
                    start,
                    rows: out_rows,
                    add: features.start > 0,
                };
                // SAFETY: the taps of the last position are within the region, whose extents were
                // made for them; those in the kernel were checked by `run_grouped`; the caller
                // promises that the result may be written.
                unsafe { self.loops.channels(&channels) };
            });
        }
    }
}

/// The convolution's kernel: channels are neighbours.
pub(super) struct Filter<'a, W> {
    pub words: &'a [W],
    /// Features, then taps.
    pub steps: &'a Axis,
}

impl<W> Clone for Filter<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for Filter<'_, W> {}

/// All positions of a piece, for some channels.
pub(in crate::kernels::gemm) struct Channels<'a, W, A> {
    taps: &'a [Tap],
    region: *const W,
    /// How far the region moves with each index of `rows`.
    moves: &'a [usize],
    kernel: *const W,
    /// How many channels.
    count: usize,
    start: Shared<A>,
    /// Sizes and strides of batch and positions in the result.
    rows: &'a [(usize, usize)],
    add: bool,
}

impl<W, A> Channels<'_, W, A> {
    /// Computes all positions.
    ///
    /// # Safety
    /// The features are there; the taps may be read for all positions and channels, and the result
    /// read and written.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Simd<Word = W, Acc = A>>(&self) {
        let (Some((&(count, stride), outer)), Some((&step, moves))) =
            (self.rows.split_last(), self.moves.split_last())
        else {
            return;
        };
        let mut place = vec![0; outer.len()];
        let lines: usize = outer.iter().map(|row| row.0).product();
        for _ in 0..lines {
            let mut region = self.region;
            let mut out = self.start.get();
            for ((&at, row), &step) in place.iter().zip(outer).zip(moves) {
                region = region.wrapping_add(at * step);
                out = out.wrapping_add(at * row.1);
            }
            for channel in (0..self.count).step_by(S::LANES) {
                let mut x = 0;
                while x < count {
                    let region = region.wrapping_add(x * step + channel);
                    let out = out.wrapping_add(x * stride + channel);
                    // SAFETY: the caller's promise, for these positions and channels.
                    unsafe {
                        if x + POSITIONS <= count {
                            self.sums::<S, POSITIONS>(region, step, channel, out, stride);
                            x += POSITIONS;
                        } else {
                            self.sums::<S, 1>(region, step, channel, out, stride);
                            x += 1;
                        }
                    }
                }
            }
            advance(&mut place, outer.iter().map(|row| row.0));
        }
    }

    /// Computes neighbouring positions for a vector of channels.
    ///
    /// # Safety
    /// As for [`Channels::run`].
    #[inline(always)]
    unsafe fn sums<S: Simd<Word = W, Acc = A>, const COUNT: usize>(
        &self,
        region: *const W,
        step: usize,
        channel: usize,
        out: *mut A,
        stride: usize,
    ) {
        let lanes = S::LANES.min(self.count - channel);
        let mask = S::mask(lanes);
        let kernel = self.kernel.wrapping_add(channel);
        let mut sums = [S::zero(); COUNT];
        for tap in self.taps {
            let region = region.wrapping_add(tap.region);
            // SAFETY: the caller's promise; lanes beyond the channels are not accessed.
            unsafe {
                let weights = S::load_masked(kernel.wrapping_add(tap.kernel), mask);
                for (i, sum) in sums.iter_mut().enumerate() {
                    let words = S::load_masked(region.wrapping_add(i * step), mask);
                    *sum = S::mul_add(words, weights, *sum);
                }
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let to = out.wrapping_add(i * stride);
                match lanes == S::LANES {
                    true => S::store_all(to, sum, self.add),
                    false => S::store(to, mask, sum, self.add),
                }
            }
        }
    }
}
