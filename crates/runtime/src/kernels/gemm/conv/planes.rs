//! Convolutions of many small groups whose results have neighbouring positions, as depthwise ones with
//! channels first: vectors hold neighbouring positions of a row.
//!
//! A task copies a strip of a group's planes with the padding around it, then each tap is a weight times
//! vectors of that copy. Where the window moves by several elements, elements that many apart are put
//! side by side, so that vectors are neighbours there, too.

use std::ops::Range;

use super::{Convolution, POINT, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASK_WORK;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::simd::{Loops, Simd};
use crate::kernels::scratch;

/// Words of a strip with its padding: they should fit the first-level cache.
const STRIP_WORDS: usize = 1 << 12;
/// The most words of a strip, if a row of the result takes so many.
const MOST_WORDS: usize = 1 << 18;
/// Positions of a row below which vectors of groups are better filled.
const FEW_POSITIONS: usize = 5;
/// No vector has more lanes.
const MAX_LANES: usize = 16;

/// The two spatial dimensions, and how a strip of rows of the result is copied.
struct Layout {
    rows: Spatial,
    columns: Spatial,
    /// Rows of the result in a strip at most.
    strip: usize,
    /// From a row of the copy to the next.
    pitch: usize,
    /// Within a row, from the elements that are met by one tap to those of the next.
    phase: usize,
    /// From the plane of a feature to the next.
    plane: usize,
}

impl Convolution {
    /// Whether rows of input and result are neighbours, and long enough to be vectors.
    pub(super) fn has_planes(&self) -> bool {
        self.layout().is_some()
    }

    fn layout(&self) -> Option<Layout> {
        let (rows, columns) = match self.spatial[..] {
            [columns] => (POINT, columns),
            [rows, columns] => (rows, columns),
            _ => return None,
        };
        let is_plain = |dim: &Spatial| {
            let has_holes = dim.lhs_dilation > 1 && dim.input > 1;
            !has_holes
                && (dim.stride > 0 || dim.output <= 1)
                && dim.pad_low.unsigned_abs() < 1 << 40
        };
        let are_rows = (columns.lhs, columns.out) == (1, 1) && columns.output >= FEW_POSITIONS;
        if !are_rows || ![rows, columns].iter().all(is_plain) {
            return None;
        }
        let extent = |dim: &Spatial, outputs: usize| {
            let taps = (dim.kernel - 1).checked_mul(dim.rhs_dilation)?;
            (outputs - 1).checked_mul(dim.stride)?.checked_add(taps)?.checked_add(1)
        };
        // The last vector of a row may go beyond what is met.
        let width = extent(&columns, columns.output.next_multiple_of(MAX_LANES))?;
        let phase = width.div_ceil(columns.stride.max(1));
        let pitch = phase.checked_mul(columns.stride.max(1))?;
        let most = (STRIP_WORDS / pitch / self.features.size.max(1)).max(1);
        let taps = extent(&rows, 1)?;
        let strip = (most.saturating_sub(taps) / rows.stride.max(1)).max(1).min(rows.output);
        let plane = extent(&rows, strip)?.checked_mul(pitch)?;
        let words = plane.checked_mul(self.features.size)?;
        (words <= MOST_WORDS).then_some(Layout { rows, columns, strip, pitch, phase, plane })
    }

    /// Computes the convolution with vectors of neighbouring positions.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    pub(super) unsafe fn run_planes<W: Plain + Default, A: Plain + Default>(
        &self,
        loops: &dyn Loops<W, A>,
        [lhs, rhs]: [&[W]; 2],
        out: Shared<A>,
        threads: Threads<'_>,
    ) {
        let layout = self.layout().expect("checked when the route was chosen");
        self.check_places(lhs.len(), rhs.len());
        let spatial = self.spatial.iter().map(|dim| (dim.kernel, dim.rhs));
        let steps = Axis::new([(self.features.size, self.features.rhs)].into_iter().chain(spatial));
        let taps = layout.taps(&steps);
        let strips: Vec<_> = even_chunks(layout.rows.output, layout.strip).collect();
        let planes = self.batch.size * self.group.size;
        let work = taps.len() * self.outputs.size * layout.strip * layout.columns.output;
        let chunks: Vec<_> = even_chunks(planes, (TASK_WORK / work.max(1)).max(1)).collect();
        let planes = Planes { conv: self, layout: &layout, lhs, rhs, taps: &taps, out };
        threads.for_each(strips.len() * chunks.len(), &|task| {
            let (strip, chunk) = (&strips[task / chunks.len()], &chunks[task % chunks.len()]);
            scratch::with(layout.plane * self.features.size, |region: &mut [W]| {
                // What is padding for one plane is for all.
                region.fill_with(W::default);
                // SAFETY: the caller's promise; each task has other rows.
                unsafe { loops.planes(&planes, chunk.clone(), strip.clone(), region) };
            });
        });
    }
}

/// What the tasks of a convolution share.
pub(in crate::kernels::gemm) struct Planes<'a, W, A> {
    conv: &'a Convolution,
    layout: &'a Layout,
    /// The input.
    lhs: &'a [W],
    /// The kernel: all taps of all outputs lie in it.
    rhs: &'a [W],
    taps: &'a [Tap],
    out: Shared<A>,
}

impl<W: Plain, A> Planes<'_, W, A> {
    /// Computes a strip of rows of the outputs of some groups, each for one of the batch. `region` is the copy,
    /// its padding already there.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`], for these rows; the features are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Simd<Word = W, Acc = A>>(
        &self,
        planes: Range<usize>,
        strip: Range<usize>,
        region: &mut [W],
    ) {
        let (conv, layout) = (self.conv, self.layout);
        for plane in planes {
            let (batch, group) = (plane / conv.group.size, plane % conv.group.size);
            let start = batch * conv.batch.lhs + group * conv.group.lhs;
            for (feature, region) in region.chunks_exact_mut(layout.plane).enumerate() {
                let input = self.lhs.get(start + feature * conv.features.lhs..).unwrap_or_default();
                layout.fill(input, &strip, region);
            }
            for output in 0..conv.outputs.size {
                let kernel = group * conv.group.rhs + output * conv.outputs.rhs;
                let to = batch * conv.batch.out
                    + group * conv.group.out
                    + output * conv.outputs.out
                    + strip.start * layout.rows.out;
                let plane = Plane {
                    taps: self.taps,
                    region: region.as_ptr(),
                    move_by: layout.rows.stride * layout.pitch,
                    kernel: self.rhs[kernel..].as_ptr(),
                    start: self.out.get().wrapping_add(to),
                    stride: layout.rows.out,
                    rows: strip.len(),
                    width: layout.columns.output,
                };
                // SAFETY: the taps of the last vector of the last row are within the region, whose extents
                // were made for them; those in the kernel were checked by `run_planes`; the caller promises
                // that the result may be written, and the features.
                unsafe { plane.run::<S>() };
            }
        }
    }
}

impl Layout {
    /// The taps, `steps` being the features and then the positions of the kernel.
    fn taps(&self, steps: &Axis) -> Vec<Tap> {
        let (rows, columns) = (&self.rows, &self.columns);
        let tap = |step| {
            let (place, column) = (step / columns.kernel, step % columns.kernel);
            let (feature, row) = (place / rows.kernel, place % rows.kernel);
            let (row, column) = (row * rows.rhs_dilation, column * columns.rhs_dilation);
            let stride = columns.stride.max(1);
            let column = column % stride * self.phase + column / stride;
            let region = feature * self.plane + row * self.pitch + column;
            Tap { region, kernel: steps.offset(step) }
        };
        (0..steps.len()).map(tap).collect()
    }

    /// Copies the elements that a strip of rows of the result meets in the plane of a feature; padding
    /// stays as it is.
    #[inline(always)]
    fn fill<W: Plain>(&self, input: &[W], strip: &Range<usize>, region: &mut [W]) {
        let (rows, columns) = (&self.rows, &self.columns);
        let first = (strip.start * rows.stride) as i64 - rows.pad_low;
        let width = self.pitch;
        // The first element that is met, and at which column of the copy it is.
        let from = usize::try_from(-columns.pad_low).unwrap_or(0);
        let to = usize::try_from(columns.pad_low).unwrap_or(0);
        let count = columns.input.saturating_sub(from).min(width.saturating_sub(to));
        if count == 0 {
            return;
        }
        for (i, row) in region.chunks_exact_mut(self.pitch).enumerate() {
            let Some(at) = usize::try_from(first + i as i64).ok().filter(|&at| at < rows.input)
            else {
                continue;
            };
            let elements = &input[at * rows.lhs + from..][..count];
            self.fill_row(elements, to, row);
        }
    }

    /// Copies elements that begin at column `to` of a row of the copy.
    #[inline(always)]
    fn fill_row<W: Plain>(&self, elements: &[W], to: usize, row: &mut [W]) {
        let stride = self.columns.stride.max(1);
        match stride {
            1 => copy_row(elements, &mut row[to..to + elements.len()]),
            2 => {
                let (even, odd) = row.split_at_mut(self.phase);
                // The first element may be met by an odd tap.
                let (even, odd, elements) = match to % 2 {
                    0 => (&mut even[to / 2..], &mut odd[to / 2..], elements),
                    _ => {
                        odd[to / 2] = elements[0];
                        (&mut even[to / 2 + 1..], &mut odd[to / 2 + 1..], &elements[1..])
                    }
                };
                let (pairs, rest) = elements.as_chunks::<2>();
                // (A last element without another has a place among the even ones only if a tap meets it.)
                if let ([last], Some(word)) = (rest, even.get_mut(pairs.len())) {
                    *word = *last;
                }
                for ((even, odd), pair) in even.iter_mut().zip(odd).zip(pairs) {
                    (*even, *odd) = (pair[0], pair[1]);
                }
            }
            _ => {
                for offset in 0..stride.min(elements.len()) {
                    let column = to + offset;
                    let row = &mut row[column % stride * self.phase + column / stride..];
                    let elements = elements[offset..].iter().step_by(stride);
                    row.iter_mut().zip(elements).for_each(|(word, &element)| *word = element);
                }
            }
        }
    }
}

/// Copies a row: what a call to copy a few elements takes is longer than the copy.
#[inline(always)]
fn copy_row<W: Copy>(from: &[W], to: &mut [W]) {
    in_blocks(from.len(), |range| to[range.clone()].copy_from_slice(&from[range]));
}

/// Calls `body` with ranges of constant lengths that cover `len` elements, some twice.
#[inline(always)]
fn in_blocks(len: usize, mut body: impl FnMut(Range<usize>)) {
    match len {
        0 => {}
        16.. => cover::<16>(len, &mut body),
        8.. => cover::<8>(len, &mut body),
        4.. => cover::<4>(len, &mut body),
        _ => cover::<1>(len, &mut body),
    }
}

/// Calls `body` with ranges of `BLOCK` that cover `len` elements, which are that many at least.
#[inline(always)]
fn cover<const BLOCK: usize>(len: usize, body: &mut impl FnMut(Range<usize>)) {
    let mut at = 0;
    while at + BLOCK <= len {
        body(at..at + BLOCK);
        at += BLOCK;
    }
    if at < len {
        body(len - BLOCK..len);
    }
}

/// Where a tap is in a region and in the kernel.
#[derive(Clone, Copy)]
struct Tap {
    region: usize,
    kernel: usize,
}

/// Rows of the result of one output.
struct Plane<'a, W, A> {
    taps: &'a [Tap],
    region: *const W,
    /// How far the region moves from row to row.
    move_by: usize,
    kernel: *const W,
    /// The first row of the result.
    start: *mut A,
    /// From one to the next.
    stride: usize,
    rows: usize,
    /// Positions in each.
    width: usize,
}

impl<W, A> Plane<'_, W, A> {
    /// Computes all rows.
    ///
    /// # Safety
    /// The features are there; the taps may be read for all rows and whole vectors of positions, and the
    /// result written.
    #[inline(always)]
    unsafe fn run<S: Simd<Word = W, Acc = A>>(&self) {
        // A long row is as good as several short ones.
        let whole = self.width / S::LANES;
        let (vectors, rest) = match self.rows {
            1 if whole > 1 => (whole, self.width % S::LANES),
            _ => (0, self.width),
        };
        if vectors > 0 {
            let (move_by, stride) = (S::LANES, S::LANES);
            let rows = Plane { move_by, stride, rows: vectors, width: S::LANES, ..*self };
            // SAFETY: the caller's promise: these are vectors of the row.
            unsafe { rows.run_rows::<S>() };
        }
        if rest > 0 {
            let done = vectors * S::LANES;
            let (region, start) = (self.region.wrapping_add(done), self.start.wrapping_add(done));
            // SAFETY: the caller's promise: this is what is left of the row, or all.
            unsafe { Plane { region, start, width: rest, ..*self }.run_rows::<S>() };
        }
    }

    /// Computes all rows, each by itself.
    ///
    /// # Safety
    /// As for [`Plane::run`].
    #[inline(always)]
    unsafe fn run_rows<S: Simd<Word = W, Acc = A>>(&self) {
        for x in (0..self.width).step_by(S::LANES) {
            let mut row = 0;
            while row < self.rows {
                // SAFETY: the caller's promise, for these rows and positions. Sums of as many rows hide the
                // latency of additions.
                unsafe {
                    match self.rows - row {
                        7.. => {
                            self.sums::<S, 7>(row, x);
                            row += 7;
                        }
                        4.. => {
                            self.sums::<S, 4>(row, x);
                            row += 4;
                        }
                        _ => {
                            self.sums::<S, 1>(row, x);
                            row += 1;
                        }
                    }
                }
            }
        }
    }

    /// Computes a vector of positions from `x` on in some neighbouring rows.
    ///
    /// # Safety
    /// As for [`Plane::run`].
    #[inline(always)]
    unsafe fn sums<S: Simd<Word = W, Acc = A>, const COUNT: usize>(&self, row: usize, x: usize) {
        let lanes = S::LANES.min(self.width - x);
        let mask = S::mask(lanes);
        let region = self.region.wrapping_add(row * self.move_by + x);
        let mut sums = [S::zero(); COUNT];
        for tap in self.taps {
            let region = region.wrapping_add(tap.region);
            // SAFETY: the caller's promise.
            unsafe {
                let weight = S::splat(self.kernel.wrapping_add(tap.kernel));
                for (i, sum) in sums.iter_mut().enumerate() {
                    let words = S::load(region.wrapping_add(i * self.move_by));
                    *sum = S::mul_add(words, weight, *sum);
                }
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            let to = self.start.wrapping_add((row + i) * self.stride + x);
            // SAFETY: the caller's promise.
            unsafe {
                match lanes == S::LANES {
                    true => S::store_all(to, sum, false),
                    false => S::store(to, mask, sum, false),
                }
            }
        }
    }
}
