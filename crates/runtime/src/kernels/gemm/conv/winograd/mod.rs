//! Convolutions with windows of 3×3 by fewer multiplications: Winograd's F(2×2, 3×3).
//!
//! A tile of 2×2 positions of the result meets 4×4 elements of the input. In one dimension two results
//! of three taps `g` take four products of sums instead of six of elements:
//!
//! ```text
//! m0 = (d0 - d2) g0                    y0 = m0 + m1 + m2
//! m1 = (d1 + d2) (g0 + g1 + g2) / 2    y1 = m1 - m2 - m3
//! m2 = (d2 - d1) (g0 - g1 + g2) / 2
//! m3 = (d1 - d3) g2
//! ```
//!
//! In two, done in rows and columns, a tile takes 16 products instead of 36. Products of features are
//! summed before the `m` are: for each of the 16 *points* there is a product of matrices, of the kernel's
//! sums (outputs × features) and the input's (features × tiles).
//!
//! Sums of the input cancel, so errors are relative to the largest elements that a tile meets, not to each
//! product: `docs/design/convolutions.md` has the bound. Where an element is not finite, so are all
//! results of the tiles that meet it; such a result, and one whose sums overflowed, makes the caller compute
//! the convolution from its products.

mod input;
mod kernel;
mod output;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

pub(in crate::kernels::gemm) use self::input::TileInput;
pub(in crate::kernels::gemm) use self::kernel::{TAPS, of_taps};
use self::output::Out;
pub(in crate::kernels::gemm) use self::output::{Places, TileResults};
use super::{Convolution, Route, Spatial};
use crate::Threads;
use crate::kernels::gemm::Finish;
use crate::kernels::gemm::arithmetic::Arithmetic;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::{even_chunks, even_parts};
use crate::kernels::gemm::engine::{Product, Rhs, Shared, Sink};
use crate::kernels::gemm::pack::Strided;
use crate::kernels::gemm::panels::whole_len;
use crate::kernels::gemm::simd::Sums;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Products of a tile, for each pair of features.
const POINTS: usize = 16;
/// Words of a cache line, which no vector has more than.
const LINE: usize = 16;
/// Multiplications that take as long as the sums of a feature of a tile, or as its results of an output.
const SUM_WORK: i128 = 140;
/// The same for a convolution as a whole: 16 products, and where everything lies.
const CALL_WORK: i128 = 200_000;
/// The same for the sums of a feature and an output of the kernel, if these have to be computed.
const KERNEL_WORK: i128 = 260;
/// Words of the sums of a block of tiles, which should stay in the second-level cache.
const BLOCK_WORDS: usize = 3 << 16;
/// Tiles of a block at least, if there are as many: the kernel's sums are read for each block.
const BLOCK_TILES: usize = 96;
/// Words of the sums of a row of tiles that are too many for it to be computed at once.
const WIDE_WORDS: usize = 1 << 24;
/// Padding so large, or so negative, that where tiles begin may be no number.
const FAR: u64 = 1 << 40;
/// Elements of the input that are looked at first, for some that are not finite: where there are, there are
/// often many, and what is computed until they show in results is lost.
const LOOKED_AT: usize = 1 << 16;

/// Which dimension of input and result has neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Positions of a row. Vectors of the input hold tiles, so its sums are rows of features; results are
    /// turned around at the end.
    ChannelsFirst,
    /// Features, and outputs. The input's sums are rows of tiles.
    ChannelsLast,
}

/// The kernel of a convolution.
#[derive(Clone, Copy)]
pub(super) enum Kernel<'a> {
    /// As it lies in memory.
    Elements(&'a [f32]),
    /// Its sums at all points.
    Points(&'a [f32]),
}

/// Sizes of the sums of a convolution.
struct Sizes {
    layout: Layout,
    features: usize,
    outputs: usize,
    /// Tiles in a row.
    columns: usize,
    /// Rows of tiles of an image.
    rows: usize,
}

/// Some rows of tiles, of all images one after the other, and where their sums lie.
struct Block {
    rows: Range<usize>,
    /// Words from a feature, or a tile, to the next.
    input_pitch: usize,
    /// Words from an output, or a tile, to the next.
    output_pitch: usize,
}

impl Convolution {
    /// How its tiles lie, if it is one of those that this computes.
    pub(super) fn winograd_layout(&self) -> Option<Layout> {
        let [rows, columns] = &self.spatial[..] else { return None };
        let is_plain = |dim: &Spatial| {
            let dilations = [dim.lhs_dilation, dim.rhs_dilation];
            let is_near = dim.pad_low.unsigned_abs() < FAR;
            dim.kernel == 3 && dim.stride == 1 && dilations == [1; 2] && dim.output > 0 && is_near
        };
        let is_known = !matches!(self.route, Route::Zeros | Route::Loops | Route::Phases(_));
        let is_one = self.group.size == 1 && self.batch.size > 0;
        if !(is_known && is_one && is_plain(rows) && is_plain(columns)) {
            return None;
        }
        let layout = match (columns.lhs, columns.out, self.features.lhs, self.outputs.out) {
            (1, 1, ..) => Layout::ChannelsFirst,
            (_, _, 1, 1) => Layout::ChannelsLast,
            _ => return None,
        };
        let sizes = self.sizes(layout);
        let is_narrow = sizes.words_of_tile().saturating_mul(sizes.columns) <= WIDE_WORDS;
        is_narrow.then_some(layout)
    }

    /// Whether it is faster so, if the kernel's sums are there.
    pub(super) fn pays_for_sums(&self, layout: Layout) -> bool {
        self.saved_work(layout) >= 0
    }

    /// Whether it is faster so with a kernel that is not packed.
    pub(super) fn pays_for_sums_of_kernel(&self) -> bool {
        let [features, outputs] = [self.features.size, self.outputs.size].map(|n| n as i128);
        let all = KERNEL_WORK.saturating_mul(features).saturating_mul(outputs);
        self.winograd.is_some_and(|layout| self.saved_work(layout) >= all)
    }

    /// How many multiplications it saves, less those that take as long as what it does besides.
    fn saved_work(&self, layout: Layout) -> i128 {
        let [features, outputs] = [self.features.size, self.outputs.size].map(|n| n as i128);
        if features.min(outputs) < LINE as i128 {
            return i128::MIN;
        }
        let sizes = self.sizes(layout);
        let tiles =
            [sizes.rows, sizes.columns].into_iter().fold(self.batch.size, usize::saturating_mul);
        let fewer = 9 * self.all_positions() as i128 - POINTS as i128 * tiles as i128;
        let sums = SUM_WORK * tiles as i128;
        fewer
            .saturating_mul(features)
            .saturating_mul(outputs)
            .saturating_sub(sums.saturating_mul(features + outputs))
            .saturating_sub(CALL_WORK)
    }

    /// Positions of all images.
    fn all_positions(&self) -> usize {
        let positions = self.spatial.iter().map(|dim| dim.output);
        positions.fold(self.batch.size, usize::saturating_mul)
    }

    /// The words of the kernel's sums.
    pub(super) fn points_len(&self, isa: Isa, layout: Layout) -> usize {
        POINTS * self.sizes(layout).kernel_len(isa)
    }

    fn sizes(&self, layout: Layout) -> Sizes {
        let tiles = |dim: &Spatial| dim.output.div_ceil(2);
        let (features, outputs) = (self.features.size, self.outputs.size);
        let (rows, columns) = (tiles(&self.spatial[0]), tiles(&self.spatial[1]));
        Sizes { layout, features, outputs, columns, rows }
    }

    /// Computes the convolution. Returns whether all results are finite; if not, some may be wrong, or not
    /// written. Rows are finished if [channels are last](Layout::ChannelsLast), some of them even if others are not finite.
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice.
    pub(super) fn run_winograd(
        &self,
        isa: Isa,
        layout: Layout,
        (lhs, kernel): (&[f32], Kernel<'_>),
        out: &mut [f32],
        finish: Option<Finish<'_, u8>>,
        threads: Threads<'_>,
    ) -> bool {
        let some = &lhs[..lhs.len().min(LOOKED_AT)];
        if !isa.run(
            #[inline(always)]
            || are_finite(some),
        ) {
            return false;
        }
        let sizes = self.sizes(layout);
        assert!(self.out.last() < out.len(), "the result lies in its memory");
        let start = Shared(out.as_mut_ptr());
        let out = Out { start: &start, finish };
        let is_finite = AtomicBool::new(true);
        let blocks: Vec<_> = sizes.blocks(self.batch.size).collect();
        let run = |points: &[f32]| {
            threads.for_each(blocks.len(), &|i| {
                if is_finite.load(Ordering::Relaxed) {
                    let block = sizes.block(blocks[i].clone());
                    // SAFETY: each block has other positions of the result.
                    let is =
                        unsafe { self.run_block(isa, &sizes, &block, (lhs, points), out, threads) };
                    if !is {
                        is_finite.store(false, Ordering::Relaxed);
                    }
                }
            });
        };
        match kernel {
            Kernel::Points(points) => run(points),
            Kernel::Elements(rhs) => {
                scratch::with(self.points_len(isa, layout), |points: &mut [f32]| {
                    self.kernel_points(isa, rhs, points, threads);
                    run(points);
                });
            }
        }
        is_finite.into_inner()
    }

    /// Computes the positions of a block. Returns whether all are finite.
    ///
    /// # Safety
    /// Nothing else accesses these positions of the result.
    unsafe fn run_block(
        &self,
        isa: Isa,
        sizes: &Sizes,
        block: &Block,
        (lhs, points): (&[f32], &[f32]),
        out: Out<'_>,
        threads: Threads<'_>,
    ) -> bool {
        let mut is_finite = true;
        let (inputs, outputs) = (sizes.input_len(block), sizes.output_len(block));
        scratch::with(POINTS * (inputs + outputs), |sums: &mut [f32]| {
            let (inputs, outputs) = sums.split_at_mut(POINTS * inputs);
            self.input_points(isa, sizes, block, lhs, inputs, threads);
            sizes.multiply(isa, block, inputs, points, outputs, threads);
            // SAFETY: the caller's promise.
            is_finite = unsafe { self.results(isa, sizes, block, outputs, out, threads) };
        });
        is_finite
    }
}

impl Sizes {
    /// Words of the sums and products of a tile.
    fn words_of_tile(&self) -> usize {
        POINTS.saturating_mul(self.features.saturating_add(self.outputs))
    }

    /// Rows of tiles that are computed at once, of all images one after the other. Several blocks are an even number, as
    /// threads often are.
    fn blocks(&self, images: usize) -> impl Iterator<Item = Range<usize>> {
        let tiles = (BLOCK_WORDS / self.words_of_tile()).max(BLOCK_TILES);
        let rows = images * self.rows;
        let (blocks, at_once) = even_parts(rows, tiles.div_ceil(self.columns));
        let at_once = match blocks {
            1 => at_once,
            several => rows.div_ceil(several.next_multiple_of(2)),
        };
        even_chunks(rows, at_once)
    }

    fn block(&self, rows: Range<usize>) -> Block {
        // An odd number of cache lines, so that rows spread over all sets of a cache.
        let pitch = |words: usize| words.div_ceil(LINE) / 2 * 2 * LINE + LINE;
        let input_pitch = match self.layout {
            Layout::ChannelsFirst => {
                // Vectors of tiles begin with rows of tiles, and may end behind the last.
                let before = (rows.len() - 1) * self.columns;
                pitch(before + self.columns.next_multiple_of(LINE))
            }
            Layout::ChannelsLast => pitch(self.features),
        };
        let output_pitch = pitch(self.outputs);
        Block { rows, input_pitch, output_pitch }
    }

    /// Tiles of a block.
    fn tiles(&self, block: &Block) -> usize {
        block.rows.len() * self.columns
    }

    /// Words of the input's sums at a point.
    fn input_len(&self, block: &Block) -> usize {
        let rows = match self.layout {
            Layout::ChannelsFirst => self.features,
            Layout::ChannelsLast => self.tiles(block),
        };
        point_len(rows * block.input_pitch)
    }

    /// Words of the products at a point.
    fn output_len(&self, block: &Block) -> usize {
        point_len(self.tiles(block) * block.output_pitch)
    }

    /// Words of the kernel's sums at a point.
    fn kernel_len(&self, isa: Isa) -> usize {
        whole_len(f32::instructions(isa).format(), self.outputs, self.features)
    }

    /// Multiplies the sums of the input with those of the kernel, at all points.
    fn multiply(
        &self,
        isa: Isa,
        block: &Block,
        inputs: &[f32],
        kernel: &[f32],
        outputs: &mut [f32],
        threads: Threads<'_>,
    ) {
        let tiles = self.tiles(block);
        let (input_len, kernel_len) = (self.input_len(block), self.kernel_len(isa));
        let (row, step) = match self.layout {
            Layout::ChannelsFirst => (1, block.input_pitch),
            Layout::ChannelsLast => (block.input_pitch, 1),
        };
        let (rows, steps) = (Axis::new([(tiles, row)]), Axis::new([(self.features, step)]));
        let sum_rows = Axis::new([(tiles.max(2), block.output_pitch)]); // one row has a stride, too
        threads.for_chunks(outputs, self.output_len(block), &|point, outputs| {
            let inputs = &inputs[point * input_len..][..input_len];
            let kernel = &kernel[point * kernel_len..][..kernel_len];
            let start = Shared(outputs.as_mut_ptr());
            let product = Product {
                tiled: f32::instructions(isa),
                rows: tiles,
                cols: self.outputs,
                steps: self.features,
                lhs: &Strided::new(isa, &inputs, 0, &rows, &steps),
                rhs: Rhs::Packed(kernel),
                sink: Sink::Memory { start, rows: &sum_rows, finish: None },
                done: None,
                add: false,
                tasks: 1,
                batches: 1,
            };
            // SAFETY: `Strided` checked that the input's sums lie in their memory, and there are all panels; the
            // products of a point have a place for each row and column.
            unsafe { product.run(threads) };
        });
    }
}

/// Words from a point to the next, for so many of a point. 16 points of the same row are accessed in turn: an odd number of
/// cache lines apart they are in 16 sets of a cache, five or more so that neighbours of a line are, too.
fn point_len(words: usize) -> usize {
    const APART: usize = 5;
    let lines = words.div_ceil(LINE);
    (lines + (APART + 8 - lines % 8) % 8) * LINE
}

/// The vectors of some channels, or tiles: the last one ends with the last of them, and has some of those before it again,
/// if there are as many.
#[inline(always)]
fn vectors<S: Sums>(count: usize) -> impl Iterator<Item = Range<usize>> {
    let last = count.saturating_sub(S::LANES);
    (0..count).step_by(S::LANES).map(move |first| {
        let first = first.min(last);
        first..count.min(first + S::LANES)
    })
}

/// Loads the first `count` lanes.
///
/// # Safety
/// The features are there, and these words may be read.
#[inline(always)]
unsafe fn load<S: Sums>(from: *const f32, count: usize) -> S::Vec {
    // SAFETY: the caller's promise.
    unsafe {
        match count == S::LANES {
            true => S::load(from),
            false => S::load_masked(from, S::mask(count)),
        }
    }
}

/// The sums of four neighbours of the input.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn of_input<S: Sums>(d: [S::Vec; 4]) -> [S::Vec; 4] {
    // SAFETY: the caller's promise.
    unsafe { [S::sub(d[0], d[2]), S::add(d[1], d[2]), S::sub(d[2], d[1]), S::sub(d[1], d[3])] }
}

/// The sums of three taps.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn sums_of_taps<S: Sums>(g: [S::Vec; 3]) -> [S::Vec; 4] {
    // SAFETY: the caller's promise; the word is there.
    unsafe {
        let half = S::splat(&0.5);
        let ends = S::add(g[0], g[2]);
        let sum = S::mul_add(S::add(ends, g[1]), half, S::zero());
        let difference = S::mul_add(S::sub(ends, g[1]), half, S::zero());
        [g[0], sum, difference, g[2]]
    }
}

/// Two neighbours of the result.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn of_products<S: Sums>(m: [S::Vec; 4]) -> [S::Vec; 2] {
    // SAFETY: the caller's promise.
    unsafe { [S::add(S::add(m[0], m[1]), m[2]), S::sub(S::sub(m[1], m[2]), m[3])] }
}

/// Whether all are.
#[inline(always)]
fn are_finite(values: &[f32]) -> bool {
    // (All are looked at, so that neighbours become vector code.)
    values.iter().fold(true, |all, value| all & value.is_finite())
}
