//! Convolutions in tasks, each with a region of the input of its own.

use std::ops::Range;

use super::Convolution;
use super::few_positions::Kernel;
use super::finish::FinishRows;
use super::joined::add;
use super::pieces::{Cut, Piece};
use super::region::{Line, Region};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASKS;
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::dots::{most_few, runs_along_lines};
use crate::kernels::gemm::engine::{Product, Rhs, Shared, Sink};
use crate::kernels::gemm::number::Element;
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::pack::{Elements, Strided};
use crate::kernels::gemm::panels::{pack_whole, whole_len};
use crate::kernels::gemm::simd::MulAdd;
use crate::kernels::gemm::tile::Tiled;
use crate::kernels::gemm::transpose::Rows;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Columns of a task at most.
const TASK_COLS: usize = 1024;
/// Words of a packed kernel that are too many to keep.
const KERNEL_WORDS: usize = 1 << 23;

impl Convolution {
    /// Computes the convolution with vectors of output features, and adds corrections, one for each
    /// of the outputs of all groups, if there are any. Rows are finished if tasks have
    /// [whole ones](Convolution::has_whole_rows).
    ///
    /// # Safety
    /// The result lies in `out`, which nothing else accesses; none of its elements is another.
    pub(super) unsafe fn run_tasks<W: Plain + Default + Element<W>, A: MulAdd>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        (lhs, kernel, corrections): (&dyn Elements<W>, Kernel<'_, W>, Option<&[A]>),
        out: &dyn Destination<A>,
        finish: Option<FinishRows<'_, A>>,
        threads: Threads<'_>,
    ) {
        let format = tiled.format();
        let batch_is_minor = self.batch_is_minor();
        let cut = Cut::new(self, batch_is_minor, 1).expect("checked when the route was chosen");
        let pieces = self.pieces(&cut);
        let col_blocks: Vec<_> = even_chunks(self.outputs.size, TASK_COLS).collect();
        let steps = self.task_kernel_axes().1.len();
        let lens: Vec<_> =
            col_blocks.iter().map(|cols| whole_len(format, cols.len(), steps)).collect();
        let whole: usize = lens.iter().sum();
        // A kernel that several tasks need is packed once.
        let kept = match kernel {
            Kernel::Elements(elements)
                if pieces.len() > 1 && self.packs_whole(&cut, whole, format.lanes) =>
            {
                Some(elements)
            }
            _ => None,
        };
        let is_alone = self.group.size * pieces.len() * col_blocks.len() == 1;
        threads.for_each(self.group.size, &|group| {
            let tasks = Tasks {
                conv: self,
                tiled,
                isa,
                cut: &cut,
                batch_is_minor,
                lhs: (lhs, group * self.group.lhs),
                rhs: group * self.group.rhs,
                corrections: corrections.map(|all| &all[group * self.outputs.size..]),
                out: (out, group * self.group.out),
                finish: finish.filter(|_| self.has_whole_rows()),
                is_alone,
                threads: if is_alone { threads } else { Threads::single() },
            };
            scratch::with(kept.map_or(0, |_| whole), |packed: &mut [W]| {
                let mut kernels = vec![kernel; col_blocks.len()];
                let mut rest = packed;
                if let Some(elements) = kept {
                    for ((kernel, cols), &len) in kernels.iter_mut().zip(&col_blocks).zip(&lens) {
                        let (packed, later) = rest.split_at_mut(len);
                        let (items, steps) = tasks.kernel_axes(cols.len(), 0..self.features.size);
                        let start = tasks.rhs + cols.start * self.outputs.rhs;
                        let source = Strided::new(isa, elements, start, &items, &steps);
                        pack_whole(format, &source, cols.len(), steps.len(), packed, threads);
                        *kernel = Kernel::Packed(packed);
                        rest = later;
                    }
                }
                threads.for_each(pieces.len() * col_blocks.len(), &|i| {
                    let (piece, block) = (i / col_blocks.len(), i % col_blocks.len());
                    let cols = col_blocks[block].clone();
                    let task = Task { piece: &pieces[piece], cols, kernel: kernels[block] };
                    // SAFETY: the caller's promise; each task has other elements of the result.
                    unsafe { tasks.run(&task) };
                });
            });
        });
    }
}

impl Convolution {
    /// The kernel of a group as rhs of a product: its outputs, and taps and features in the order of a region.
    pub(super) fn task_kernel_axes(&self) -> (Axis, Axis) {
        let taps = self.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
        let features = (self.features.size, self.features.rhs);
        let steps = region_steps(self.batch_is_minor(), features, taps);
        (Axis::new([(self.outputs.size, self.outputs.rhs)]), steps)
    }

    /// Whether tasks compute whole rows of the result.
    pub(super) fn has_whole_rows(&self) -> bool {
        self.group.size == 1 && self.outputs.size <= TASK_COLS
    }

    /// Whether tasks of `f32` take the kernel as a whole, packed, and always the same.
    pub(super) fn keeps_kernel(&self) -> bool {
        let Some(cut) = Cut::new(self, self.batch_is_minor(), 1) else { return false };
        let format = f32::instructions(Isa::best()).format();
        let whole = whole_len(format, self.outputs.size, self.task_kernel_axes().1.len());
        self.has_whole_rows() && self.packs_whole(&cut, whole, format.lanes)
    }

    /// Whether a kernel of so many words, packed, is that of tasks as a whole: they need all of it at once, and it is
    /// not so small that sums run along the features.
    fn packs_whole(&self, cut: &Cut, words: usize, lanes: usize) -> bool {
        let line = self.spatial.last().map_or(1, |dim| dim.kernel) * self.features.size;
        let few = self.outputs.size;
        let along = !self.batch_is_minor()
            && few <= most_few(self.kernel_steps().len())
            && runs_along_lines(few, line, lanes);
        cut.features == self.features.size && words <= KERNEL_WORDS && !along
    }
}

/// Steps in the order of a region.
fn region_steps(
    batch_is_minor: bool,
    features: (usize, usize),
    taps: impl Iterator<Item = (usize, usize)>,
) -> Axis {
    let (before, after) =
        if batch_is_minor { (Some(features), None) } else { (None, Some(features)) };
    Axis::new(before.into_iter().chain(taps).chain(after))
}

/// What the tasks of a group share: the arrays, and where the group begins in each.
struct Tasks<'a, W, A> {
    conv: &'a Convolution,
    tiled: &'a dyn Tiled<W, A>,
    isa: Isa,
    cut: &'a Cut,
    batch_is_minor: bool,
    lhs: (&'a dyn Elements<W>, usize),
    /// Where the group's kernel begins, if it lies as it is.
    rhs: usize,
    /// What is added to the sums of each output.
    corrections: Option<&'a [A]>,
    out: (&'a dyn Destination<A>, usize),
    /// What is done with complete rows.
    finish: Option<FinishRows<'a, A>>,
    /// Whether there is one task.
    is_alone: bool,
    /// The threads that a task may use: one, unless it is alone.
    threads: Threads<'a>,
}

/// What a task computes: a piece of the result, for some output features.
struct Task<'a, W> {
    piece: &'a Piece,
    /// The output features.
    cols: Range<usize>,
    /// The kernel: all of it, or panels of these.
    kernel: Kernel<'a, W>,
}

impl<W: Plain + Default + Element<W>, A: MulAdd> Tasks<'_, W, A> {
    /// The kernel as rhs of a product: its columns are `cols` output features, its steps the taps with
    /// the summed features `features`.
    fn kernel_axes(&self, cols: usize, features: Range<usize>) -> (Axis, Axis) {
        let Convolution { features: feature, outputs, .. } = self.conv;
        let taps = self.conv.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
        let steps = region_steps(self.batch_is_minor, (features.len(), feature.rhs), taps);
        (Axis::new([(cols, outputs.rhs)]), steps)
    }

    /// Computes what a task is to.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for this part of the result.
    unsafe fn run(&self, task: &Task<'_, W>) {
        let (conv, cols) = (self.conv, &task.cols);
        let out_rows = conv.out_rows(task.piece, self.batch_is_minor);
        let out_cols = Axis::new([(cols.len(), conv.outputs.out)]);
        let (out, start) = self.out;
        let place = start + conv.out_start(task.piece) + cols.start * conv.outputs.out;
        if let (Some(sums), Some(1)) = (out.sums(), out_cols.stride()) {
            let start = Shared(sums.get().wrapping_add(place));
            // SAFETY: the caller's promise.
            unsafe {
                self.sum(task, start, &out_rows);
                self.correct(cols.clone(), start, &out_rows);
            }
            // SAFETY: the caller's promise: the rows are this task's, and complete.
            return unsafe { self.finish(&out_rows, place, cols.len()) };
        }
        let rows = out_rows.len();
        scratch::with(rows * cols.len(), |sums: &mut [A]| {
            let dense = Axis::new([(rows, cols.len())]);
            // SAFETY: `dense` are the rows of `sums`.
            unsafe {
                let sums = Shared(sums.as_mut_ptr());
                self.sum(task, sums, &dense);
                self.correct(cols.clone(), sums, &dense);
            }
            // SAFETY: the caller's promise.
            unsafe { store(self.isa, sums, (out, place), &out_rows, (&out_cols, 0..cols.len())) };
        });
        // SAFETY: the caller's promise: the rows are this task's, and complete.
        unsafe { self.finish(&out_rows, place, cols.len()) };
    }

    /// Hands over complete rows.
    ///
    /// # Safety
    /// As for [`FinishRows::rows`].
    unsafe fn finish(&self, rows: &Axis, start: usize, len: usize) {
        if let Some(finish) = self.finish {
            // SAFETY: the caller's promise.
            unsafe { finish.rows(start, rows, len) };
        }
    }

    /// Adds the corrections of some output features to complete sums.
    ///
    /// # Safety
    /// As for [`Tasks::sum`].
    unsafe fn correct(&self, cols: Range<usize>, start: Shared<A>, rows: &Axis) {
        let Some(corrections) = self.corrections else { return };
        let corrections = &corrections[cols];
        let mut row = 0;
        while row < rows.len() {
            let (place, count, stride) = rows.run(row, rows.len() - row);
            self.isa.run(
                #[inline(always)]
                || {
                    for i in 0..count {
                        let sums = start.get().wrapping_add(place + i * stride);
                        // SAFETY: the caller's promise: the columns of a row are neighbours.
                        let sums =
                            unsafe { std::slice::from_raw_parts_mut(sums, corrections.len()) };
                        add(sums, corrections);
                    }
                },
            );
            row += count;
        }
    }

    /// Computes the sums of a task, to `start`, where rows are at `out_rows`.
    ///
    /// # Safety
    /// From `start` on the rows may be written, and read, and nothing else accesses them.
    unsafe fn sum(&self, task: &Task<'_, W>, start: Shared<A>, out_rows: &Axis) {
        let (conv, isa) = (self.conv, self.isa);
        let Task { piece, cols, kernel } = task;
        let spatial: Vec<Line> = conv.lines(piece, self.cut).collect();
        for features in even_chunks(conv.features.size, self.cut.features) {
            let batch = (piece.batch.clone(), conv.batch.lhs);
            let feature = (features.clone(), conv.features.lhs);
            let (outer, minor) =
                if self.batch_is_minor { (feature, batch) } else { (batch, feature) };
            let lines = [&[Line::plain(outer.0.clone(), outer.1)], &spatial[..]].concat();
            let region = Region {
                lines: &lines,
                minor: &Axis::new([(minor.0.end, minor.1)]),
                indices: minor.0.clone(),
            };
            let sizes = lines.iter().map(|line| line.extent).chain([minor.0.len()]);
            let strides = dense_strides(&sizes.collect::<Vec<_>>());
            let (rows, steps) = self.axes(piece, features.len(), &strides[1..]);
            let (kernel_cols, kernel_steps) = self.kernel_axes(cols.len(), features.clone());
            let rhs_start =
                self.rhs + cols.start * conv.outputs.rhs + features.start * conv.features.rhs;
            scratch::with(strides[0], |words: &mut [W]| {
                region.fill(isa, self.lhs.0, self.lhs.1, words, self.threads);
                let words = &*words;
                let source;
                let rhs = match *kernel {
                    // (All columns are for this task then.)
                    Kernel::Packed(panels) if self.is_alone => Rhs::Panels(panels),
                    Kernel::Packed(panels) => Rhs::Packed(panels),
                    Kernel::Elements(rhs) => {
                        source = Strided::new(isa, rhs, rhs_start, &kernel_cols, &kernel_steps);
                        Rhs::Source(&source)
                    }
                };
                let product = Product {
                    tiled: self.tiled,
                    rows: rows.len(),
                    cols: cols.len(),
                    steps: steps.len(),
                    lhs: &Strided::new(isa, &words, 0, &rows, &steps),
                    rhs,
                    sink: Sink::Memory { start, rows: out_rows, finish: None },
                    done: None,
                    add: features.start > 0,
                    tasks: if self.is_alone { TASKS } else { 1 },
                    batches: 1,
                };
                // SAFETY: `Strided` checked that the region has all rows and steps; the caller
                // promises that the result may be written.
                unsafe { product.run(self.threads) };
            });
        }
    }

    /// A region as lhs of a product: its rows are batch and positions, its steps the taps with
    /// `features` summed features. `strides` are those of the region's lines, and of what varies
    /// fastest.
    fn axes(&self, piece: &Piece, features: usize, strides: &[usize]) -> (Axis, Axis) {
        let (batch_stride, feature_stride) =
            if self.batch_is_minor { (1, strides[0]) } else { (strides[0], 1) };
        let batch = (piece.batch.len(), batch_stride);
        let spatial = || self.conv.spatial.iter().zip(&strides[1..]);
        let positions = self.conv.positions(piece).zip(spatial());
        let positions = positions.map(|(n, (dim, stride))| (n, dim.stride * stride));
        let rows = if self.batch_is_minor {
            Axis::new(positions.chain([batch]))
        } else {
            Axis::new([batch].into_iter().chain(positions))
        };
        let taps = spatial().map(|(dim, stride)| (dim.kernel, dim.rhs_dilation * stride));
        (rows, region_steps(self.batch_is_minor, (features, feature_stride), taps))
    }
}

/// The elements of a dense array of these sizes, then the strides of its dimensions.
fn dense_strides(sizes: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; sizes.len() + 1];
    for i in (0..sizes.len()).rev() {
        strides[i] = strides[i + 1] * sizes[i];
    }
    strides
}

/// Writes dense sums to where rows and these columns of the result are.
///
/// # Safety
/// From `start` on the rows and columns may be written, and nothing else accesses them.
pub(super) unsafe fn store<A: Plain>(
    isa: Isa,
    sums: &[A],
    (out, start): (&dyn Destination<A>, usize),
    rows: &Axis,
    (cols, which): (&Axis, Range<usize>),
) {
    let (count, len) = (rows.len(), which.len());
    let mut row = 0;
    while row < count {
        let (place, count, stride) = rows.run(row, 64.min(count - row));
        let start = start + place;
        let offsets: [usize; 64] = std::array::from_fn(|i| (row + i) * len);
        let offsets = &offsets[..count];
        row += count;
        if let (Some(to), 1, Some(pitch)) = (out.sums(), stride, cols.stride()) {
            let rows = Rows { data: sums, offsets, start: 0, steps: len, padding: 0, pitch };
            let to = to.get().wrapping_add(start + cols.offset(which.start));
            // SAFETY: the caller's promise: these rows are neighbours in each column.
            if unsafe { rows.transpose_to(isa, to) } {
                continue;
            }
        }
        for (i, &offset) in offsets.iter().enumerate() {
            let mut col = 0;
            while col < len {
                let (place, count, col_stride) = cols.run(which.start + col, len - col);
                let sums = &sums[offset + col..][..count];
                // SAFETY: the caller's promise.
                unsafe { out.write(isa, start + i * stride + place, col_stride, sums) };
                col += count;
            }
        }
    }
}
