//! Convolutions whose results have neighbouring positions, as arrays with channels first have: the
//! kernel times the patches of the input.
//!
//! Rows are outputs, steps are features and taps in the order of the kernel, so that its rows are read
//! as they lie; columns are positions. Panels of patches are copied straight from rows of the input,
//! as vectors: the lanes of a vector that one row of the input has are one load, and what lies beyond
//! the input is lanes that are not loaded, hence zeros.

use std::ops::Range;

use smallvec::SmallVec;

use super::few_positions::Kernel;
use super::{Convolution, Route, Spatial};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::TASKS;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::chunks;
use crate::kernels::gemm::engine::{Product, Rhs, Shared, Sink};
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::pack::{Block, Elements, Items, Source, Strided, check_bounds};
use crate::kernels::gemm::tile::{Tiled, block_steps};
use crate::kernels::isa::{Isa, Kind};
use crate::kernels::scratch;

/// Lanes of a vector that is copied at once.
pub(super) const LANES: usize = 16;
/// Columns of a block at most: for as many a product reads weights where they lie.
const BLOCK_COLUMNS: usize = 512;
/// Words of a block with few rows: it stays in the second-level cache then.
const BLOCK_WORDS: usize = 1 << 17;
/// Rows from which on it does not matter that a block is fetched from the third-level cache, but that
/// weights are read for each block.
const MANY_ROWS: usize = 192;
/// Positions of an image that are no whole number of vectors are joined with those of the next image
/// if they are at most these: otherwise too few lanes are empty to be worth a copy of the sums.
const JOINED_POSITIONS: usize = 1024;
/// Positions below which vectors of outputs are better filled.
const FEW_POSITIONS: usize = 12;
/// Taps of a window that are too many: where the words of each lie has to be found for every panel and every
/// block of steps, and would be used for the features of the block alone, of which there would be one.
const MANY_TAPS: usize = 512;

impl Convolution {
    /// Whether the result has neighbouring positions, and those of a row of the input are neighbours,
    /// too, or `stride` apart.
    pub(super) fn has_patches(&self) -> bool {
        let Some(last) = self.spatial.last() else { return false };
        let positions = Axis::new(self.spatial.iter().map(|dim| (dim.output, dim.out)));
        let is_dense = positions.stride() == Some(1) && last.lhs == 1;
        let holes = self.spatial.iter().any(|dim| dim.lhs_dilation > 1 && dim.input > 1);
        let columns = positions.len().saturating_mul(self.batch.size);
        // Offsets of taps beyond the input must not overflow.
        let reach = |dim: &Spatial| {
            let outside = dim.pad_low.unsigned_abs() as u128
                + dim.input as u128
                + dim.output as u128 * dim.stride as u128
                + dim.kernel as u128 * dim.rhs_dilation as u128;
            outside * dim.lhs.max(1) as u128 <= 1 << 48
        };
        let are_enough = columns >= FEW_POSITIONS || self.fills_vectors_with_outputs();
        let taps = self.spatial.iter().map(|dim| dim.kernel).fold(1, usize::saturating_mul);
        let is_small = taps <= MANY_TAPS && self.spatial.iter().all(reach);
        is_dense && !holes && are_enough && is_small
    }

    /// Whether this product, if it is one of the kernel with the input, is faster with panels of patches:
    /// its columns are not neighbours in the input, several small images fill vectors better, or outputs do.
    pub(super) fn are_better_packed(&self, route: &Route) -> bool {
        let Route::Product { product, swapped: true, .. } = route else { return false };
        product.rhs_cols.stride() != Some(1)
            || self.batch.size > 1 && self.joins_images(LANES)
            || self.fills_vectors_with_outputs()
    }

    /// Whether vectors of `width` lanes have positions of several images.
    pub(super) fn joins_images(&self, width: usize) -> bool {
        let positions: usize = self.spatial.iter().map(|dim| dim.output).product();
        positions <= JOINED_POSITIONS && !positions.is_multiple_of(width)
    }

    /// Columns that are packed at once, all blocks but the last of whole panels of `width`.
    fn column_blocks<W>(&self, columns: usize, steps: usize, width: usize) -> Vec<Range<usize>> {
        let most = match steps.clamp(1, block_steps::<W>()) {
            steps if self.outputs.size < MANY_ROWS => (BLOCK_WORDS / steps).min(BLOCK_COLUMNS),
            _ => BLOCK_COLUMNS,
        };
        let parts = columns.div_ceil(most.max(width)).max(1);
        chunks(0..columns, columns.div_ceil(parts).next_multiple_of(width)).collect()
    }

    /// Computes the convolution as the kernel times patches.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    pub(super) unsafe fn run_patches<W: Plain + Default, A: Plain + Default>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        lhs: &dyn Elements<W>,
        kernel: Kernel<'_, W>,
        out: &dyn Destination<A>,
        threads: Threads<'_>,
    ) {
        let spatial = self.spatial.iter().map(|dim| (dim.input, dim.lhs));
        let all = [(self.group.size, self.group.lhs), (self.batch.size, self.batch.lhs)];
        let all = Axis::new(all.into_iter().chain(spatial));
        let features = Axis::new([(self.features.size, self.features.lhs)]);
        check_bounds(lhs.count(), 0, &all, &features);
        if all.len() == 0 {
            // No tap meets an element.
            // SAFETY: the caller's promise.
            return unsafe { self.write_zeros(isa, out) };
        }
        // SAFETY: the caller's promise.
        let run = |words: &[W]| unsafe {
            match kernel {
                Kernel::Elements(kernel) if !self.fills_vectors_with_outputs() => {
                    self.run_words_of_patches((tiled, isa), words, kernel, out, threads);
                }
                _ => self.run_few_positions((tiled, isa), words, kernel, out, threads),
            }
        };
        if let Some(words) = lhs.words() {
            return run(words);
        }
        let count = all.last() + features.last() + 1;
        scratch::with(count, |words: &mut [W]| {
            const PART: usize = 1 << 14;
            threads.for_chunks(words, PART, &|part, words| {
                let (start, items) = (part * PART, Items::Row(words.len()));
                let (stride, pitch) = (words.len(), words.len());
                lhs.copy(isa, &Block { start, items, steps: 1, stride, pitch, padding: 0 }, words);
            });
            run(words);
        });
    }

    /// As [`Convolution::run_patches`], from an input of words, in which all elements lie.
    ///
    /// # Safety
    /// As for [`Convolution::run_tasks`].
    unsafe fn run_words_of_patches<W: Plain + Default, A: Plain + Default>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        words: &[W],
        rhs: &dyn Elements<W>,
        out: &dyn Destination<A>,
        threads: Threads<'_>,
    ) {
        let positions: usize = self.spatial.iter().map(|dim| dim.output).product();
        let width = tiled.format().width();
        let images = if self.joins_images(width) { self.batch.size } else { 1 };
        let kernel_steps = self.kernel_steps();
        let columns = images * positions;
        let blocks = self.column_blocks::<W>(columns, kernel_steps.len(), width);
        let outputs = self.kernel_cols();
        let out_rows = Axis::new([(self.outputs.size, self.outputs.out)]);
        let each = self.batch.size / images;
        let tasks = TASKS.div_ceil(self.group.size * each * blocks.len());
        threads.for_each(self.group.size * each * blocks.len(), &|task| {
            let (image, block) = (task / blocks.len(), &blocks[task % blocks.len()]);
            let (group, image) = (image / each, image % each);
            let source = Patches {
                conv: self,
                isa,
                words,
                start: group * self.group.lhs + image * self.batch.lhs,
                first: block.start,
                positions,
            };
            let kernel = Strided::new(isa, rhs, group * self.group.rhs, &outputs, &kernel_steps);
            let start = group * self.group.out + image * self.batch.out;
            let convert = |row, col, sums: &[A]| {
                let (mut column, mut sums) = (block.start + col, sums);
                while !sums.is_empty() {
                    let (image, position) = (column / positions, column % positions);
                    let (now, later) = sums.split_at(sums.len().min(positions - position));
                    let place = start + out_rows.offset(row) + image * self.batch.out + position;
                    // SAFETY: the caller's promise; each task has other columns.
                    unsafe { out.write(isa, place, 1, now) };
                    (column, sums) = (column + now.len(), later);
                }
            };
            let sink = match out.sums() {
                Some(sums) if images == 1 => Sink::Memory {
                    start: Shared(sums.get().wrapping_add(start + block.start)),
                    rows: &out_rows,
                    finish: None,
                },
                _ => Sink::Function(&convert),
            };
            let product = Product {
                tiled,
                rows: self.outputs.size,
                cols: block.len(),
                steps: kernel_steps.len(),
                lhs: &kernel,
                rhs: Rhs::Source(&source),
                sink,
                done: None,
                add: false,
                tasks,
                batches: 1,
            };
            // SAFETY: `Strided` checked that the kernel lies in its memory; patches are packed; the
            // caller promises that the result may be written.
            unsafe { product.run(threads) };
        });
    }
}

/// The patches of an image, or of several, as an operand: its items are positions, its steps features
/// and taps.
pub(super) struct Patches<'a, W> {
    pub conv: &'a Convolution,
    pub isa: Isa,
    /// The input. All elements of the convolution's dimensions lie in it.
    pub words: &'a [W],
    /// Where the first image begins.
    pub start: usize,
    /// The position that is the first item.
    pub first: usize,
    /// Positions of an image.
    pub positions: usize,
}

/// Lanes of a vector that lie in one row of the input.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Span {
    /// Where lane 0 would be, from the start of the first feature; a number modulo 2^64.
    offset: u64,
    /// The words there, counted from lane 0: every second one if lanes lie two apart.
    words: u32,
    /// Which lanes there are, of the lowest bits.
    lanes: u32,
}

// SAFETY: numbers in this order leave no padding, and any bits are numbers.
unsafe impl Plain for Span {}

/// Neighbouring positions in one row of the result, and lanes of a panel.
struct Segment {
    /// The first lane, and how many.
    lane: usize,
    count: usize,
    image: usize,
    /// The position of the first.
    position: SmallVec<[usize; 4]>,
}

/// Which words of the input each vector of a panel takes, for each tap:
/// `spans[(tap * vectors + vector) * depth + n]` is the nth row of the input that it takes lanes from.
/// Unused spans are empty.
struct Spans<'a> {
    spans: &'a [Span],
    depth: usize,
    vectors: usize,
    taps: usize,
}

impl<W> Patches<'_, W> {
    /// The segments of some items, none of which crosses a vector.
    fn segments(&self, items: Range<usize>) -> SmallVec<[Segment; 16]> {
        let spatial = &self.conv.spatial;
        let row = spatial.last().map_or(1, |dim| dim.output);
        let (mut segments, mut lane) = (SmallVec::new(), 0);
        while lane < items.len() {
            let item = self.first + items.start + lane;
            let (image, mut rest) = (item / self.positions, item % self.positions);
            let mut position = SmallVec::from_elem(0, spatial.len());
            for (at, dim) in position.iter_mut().zip(spatial).rev() {
                *at = rest % dim.output;
                rest /= dim.output;
            }
            let x = position.last().copied().unwrap_or(0);
            let count = (row - x).min(items.len() - lane).min(LANES - lane % LANES);
            segments.push(Segment { lane, count, image, position });
            lane += count;
        }
        segments
    }

    /// Calls `body` with the spans of some items in a panel of `width`, if there is memory for them.
    fn with_spans(&self, items: Range<usize>, width: usize, body: impl FnOnce(&Spans<'_>)) {
        let conv = self.conv;
        let segments = self.segments(items);
        let vectors = width.div_ceil(LANES);
        let mut counts: SmallVec<[usize; 8]> = SmallVec::from_elem(0, vectors);
        segments.iter().for_each(|segment| counts[segment.lane / LANES] += 1);
        let depth = counts.iter().copied().max().unwrap_or(0).max(1);
        let Some((last, outer)) = conv.spatial.split_last() else {
            unreachable!("there is a dimension")
        };
        let lines: usize = outer.iter().map(|dim| dim.kernel).product();
        let taps = lines * last.kernel;
        let per_tap = vectors * depth;
        scratch::with(taps * per_tap, |spans: &mut [Span]| {
            spans.fill(Span::default());
            let (mut vector, mut nth) = (0, 0);
            for segment in &segments {
                if segment.lane / LANES != vector {
                    (vector, nth) = (segment.lane / LANES, 0);
                }
                let slot = vector * depth + nth;
                nth += 1;
                let in_line: SmallVec<[Span; 8]> =
                    (0..last.kernel).map(|k| Span::in_line(last, segment, k)).collect();
                let mut tap: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
                for line in spans.chunks_exact_mut(last.kernel * per_tap).take(lines) {
                    if let Some(offset) = self.line(segment, &tap) {
                        for (of_tap, span) in line.chunks_exact_mut(per_tap).zip(&in_line) {
                            let offset = span.offset.wrapping_add(offset as u64);
                            of_tap[slot] = Span { offset, ..*span };
                        }
                    }
                    super::advance(&mut tap, outer.iter().map(|dim| dim.kernel));
                }
            }
            body(&Spans { spans, depth, vectors, taps });
        });
    }

    /// Where the row begins that a tap, but for its last dimension, meets at the positions of a segment.
    fn line(&self, segment: &Segment, tap: &[usize]) -> Option<usize> {
        let start = self.start + segment.image * self.conv.batch.lhs;
        let outer = self.conv.spatial.iter().zip(&segment.position).zip(tap);
        outer.into_iter().try_fold(start, |offset, ((dim, &at), &k)| {
            let element = usize::try_from(place(dim, at, k)).ok()?;
            (element < dim.input).then_some(offset + element * dim.lhs)
        })
    }

    /// How far apart lanes are.
    fn stride(&self) -> usize {
        self.conv.spatial.last().map_or(1, |dim| dim.stride.max(1))
    }
}

impl Span {
    /// The words that a tap meets in a row, at the positions of a segment.
    fn in_line(dim: &Spatial, segment: &Segment, tap: usize) -> Span {
        let position = segment.position.last().copied().unwrap_or(0);
        let first = place(dim, position, tap);
        let stride = dim.stride.max(1) as i64;
        let (input, count) = (dim.input as i64, segment.count as i64);
        let (mut before, mut end) = (0, count);
        // Without a division where a segment has all its words, as most have.
        if first < 0 {
            before = (-first + stride - 1) / stride;
        }
        if first + (count - 1) * stride >= input {
            end = (input - first + stride - 1).div_euclid(stride);
        }
        if before >= end.min(count) {
            return Span::default();
        }
        let lane = segment.lane % LANES;
        let (from, to) = (lane + before as usize, lane + end as usize);
        let lanes = (1_u32 << to) - (1_u32 << from);
        let words = if dim.stride == 2 { spread(lanes) } else { lanes };
        let offset = (first - lane as i64 * stride).cast_unsigned();
        Span { offset, words, lanes }
    }
}

/// The position in the input that a tap meets at a position of the result. ([`Convolution::has_patches`]
/// has seen that this does not overflow.)
fn place(dim: &Spatial, position: usize, tap: usize) -> i64 {
    (position * dim.stride + tap * dim.rhs_dilation) as i64 - dim.pad_low
}

/// Every one of the lower 16 bits, followed by a zero.
fn spread(lanes: u32) -> u32 {
    let mut bits = lanes;
    for (shift, mask) in [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f), (2, 0x3333_3333), (1, 0x5555_5555)] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

impl<W: Plain + Default> Source<W> for Patches<'_, W> {
    /// It takes a while to find the words of a panel.
    fn packs_in_parts(&self) -> bool {
        false
    }

    fn pack(&self, items: Range<usize>, steps: Range<usize>, width: usize, panel: &mut [W]) {
        self.with_spans(items, width, |spans| self.pack_spans(spans, steps, width, panel));
    }
}

impl<W: Plain + Default> Patches<'_, W> {
    /// Packs steps of the items whose spans these are.
    fn pack_spans(&self, spans: &Spans<'_>, steps: Range<usize>, width: usize, panel: &mut [W]) {
        #[cfg(target_arch = "x86_64")]
        if self.isa.kind() == Kind::Avx512 && size_of::<W>() == 4 && self.stride() <= 2 {
            assert!(steps.len() * width <= panel.len(), "the panel has room");
            // SAFETY: an `Isa` of this kind proves the features; words have 4 bytes; those that spans
            // name are elements of the input, whose bounds `run_patches` checked, and the panel has
            // room, as just checked.
            unsafe { avx512::pack(self, spans, steps, (width, panel.as_mut_ptr().cast())) };
            return;
        }
        let (mut feature, mut tap) = (steps.start / spans.taps, steps.start % spans.taps);
        let (per_tap, stride) = (spans.vectors * spans.depth, self.stride());
        for row in panel.chunks_exact_mut(width).take(steps.len()) {
            let base = feature * self.conv.features.lhs;
            let vectors = spans.spans[tap * per_tap..][..per_tap].chunks_exact(spans.depth);
            for (to, spans) in row.chunks_mut(LANES).zip(vectors) {
                to.fill_with(W::default);
                for span in spans.iter().filter(|span| span.lanes != 0) {
                    let first = span.lanes.trailing_zeros() as usize;
                    let from = base.wrapping_add(span.offset as usize);
                    let words = &self.words[from.wrapping_add(first * stride)..];
                    let count = span.lanes.count_ones() as usize;
                    let words = words.iter().step_by(stride);
                    to[first..][..count].iter_mut().zip(words).for_each(|(to, &word)| *to = word);
                }
            }
            tap += 1;
            if tap == spans.taps {
                (feature, tap) = (feature + 1, 0);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use super::{LANES, Patches, Spans};

    /// Copies the steps to a panel.
    ///
    /// # Safety
    /// The features are there; words have 4 bytes; the words of all spans may be read for the features
    /// of these steps, and the panel may be written.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn pack<W>(
        patches: &Patches<'_, W>,
        spans: &Spans<'_>,
        steps: Range<usize>,
        (width, panel): (usize, *mut i32),
    ) {
        let stride = patches.conv.features.lhs;
        let feature = steps.start / spans.taps * stride;
        let mut from = patches.words.as_ptr().cast::<i32>().wrapping_add(feature);
        let per_tap = spans.vectors * spans.depth;
        let mut rest = &spans.spans[steps.start % spans.taps * per_tap..];
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let (is_dense, is_single) = (patches.stride() == 1, spans.depth == 1);
        let (whole, tail) = (width / LANES, (1_u32 << (width % LANES)) - 1);
        // A store under a mask, even one of all lanes, reads the line that it writes to.
        let store = |to: *mut i32, v: usize, vector: __m512i| {
            let to = to.wrapping_add(v * LANES);
            if v < whole {
                // SAFETY: the caller's promise: the row has `width` words.
                unsafe { _mm512_storeu_epi32(to, vector) };
            } else {
                // SAFETY: the caller's promise: these lanes are the last of the row's `width` words.
                unsafe { _mm512_mask_storeu_epi32(to, tail as __mmask16, vector) };
            }
        };
        let mut to = panel;
        for _ in steps {
            if rest.is_empty() {
                (rest, from) = (spans.spans, from.wrapping_add(stride));
            }
            let (now, later) = rest.split_at(per_tap);
            rest = later;
            if is_dense && is_single {
                for (v, span) in now.iter().enumerate() {
                    let from = from.wrapping_add(span.offset as usize);
                    // SAFETY: the caller's promise; other lanes are not accessed.
                    let vector = unsafe { _mm512_maskz_loadu_epi32(span.lanes as u16, from) };
                    store(to, v, vector);
                }
                to = to.wrapping_add(width);
                continue;
            }
            for (v, spans) in now.chunks_exact(spans.depth).enumerate() {
                let mut vector = _mm512_setzero_si512();
                for span in spans {
                    let from = from.wrapping_add(span.offset as usize);
                    // SAFETY: the caller's promise; other lanes are not accessed.
                    unsafe {
                        if is_dense {
                            let lanes = span.lanes as u16;
                            vector = _mm512_mask_loadu_epi32(vector, lanes, from);
                        } else {
                            let (low, high) = (span.words as u16, (span.words >> 16) as u16);
                            let low = _mm512_maskz_loadu_epi32(low, from);
                            let high = _mm512_maskz_loadu_epi32(high, from.wrapping_add(LANES));
                            let both = _mm512_permutex2var_epi32(low, even, high);
                            vector = _mm512_or_si512(vector, both);
                        }
                    }
                }
                store(to, v, vector);
            }
            to = to.wrapping_add(width);
        }
    }
}
