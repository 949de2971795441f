//! Products of some rows with an rhs that is larger than the caches, such as a layer's weights.
//!
//! Such an rhs is read once, from memory. Packing all of it before the tiles begin would wait for
//! memory first, and let go by the last level of cache what could stay in the second. So a task packs
//! one panel of columns at a time, just before the tiles of all rows read it. While these run they ask for
//! the next panel, and between them it is packed, a share after each tile: no more than the sets of the
//! second-level cache hold of rows that are far apart. lhs is packed once for all tasks, in blocks of steps
//! that stay in the second-level cache beside two panels. (Patches of a convolution are not packed in
//! parts, and smaller than the weights, which are lhs there.)
//! (docs/design/products.md has the measurements.)

use std::ops::Range;

use smallvec::SmallVec;

use super::TASK_WORK;
use super::block::{Lhs, Offsets, TileBlock};
use super::cut::{Tiles, chunks};
use super::engine::{GROUP_COLUMNS, Product, ProductBlock, Rhs};
use super::pack::{InPlace, Source};
use super::panels::whole_len;
use super::tile::{Ahead, Format, Run};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::cache::second_level_bytes;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::scratch;

/// The fewest steps of a block, unless there are fewer: with less, reading and writing sums shows, and
/// packing rhs whole for these many rows is as fast.
const LEAST_STEPS: usize = 512;
/// Words that are worth a task of packing lhs.
const PACK_WORDS: usize = 1 << 14;

impl<W: Plain + Default, A: Plain + Default> Product<'_, W, A> {
    /// How many steps a block should have, if the panels of rhs should pass one by one, for this many rows:
    /// packed just before tiles read them, if they are not yet.
    pub(super) fn streamed_steps(&self, rows: usize) -> Option<usize> {
        let is_possible = match self.rhs {
            Rhs::Source(source) => source.packs_in_parts(),
            Rhs::Packed(_) => false,
            Rhs::Panels(_) => true,
        };
        let format = self.tiled.format();
        // lhs should take up to five eighths of the second-level cache; the panels have the rest.
        let steps = second_level_bytes() / 8 * 5 / size_of::<W>() / rows.max(1);
        let steps = steps.min(format.most_steps);
        let fits = steps >= LEAST_STEPS.min(self.steps) && self.steps >= format.width();
        let is_wanted = self.is_rhs_large() && fits && !format.in_blocks && self.done.is_none();
        (is_possible && is_wanted && self.unpacked_rhs(rows).is_none()).then_some(steps)
    }

    /// Whether rhs is [large](is_large).
    pub(super) fn is_rhs_large(&self) -> bool {
        is_large::<W>(self.cols, self.steps)
    }

    /// Computes a part.
    ///
    /// # Safety
    /// As for [`Product::run`], for the part.
    pub(super) unsafe fn run_streamed(&self, part: &ProductBlock<'_, A>, threads: Threads<'_>) {
        let (format, steps) = (self.tiled.format(), part.steps.len());
        let tiles = Tiles::new(part.rows.clone(), format.heights);
        let work = part.rows.len().saturating_mul(part.cols.len()).saturating_mul(steps);
        let tasks = (work / TASK_WORK).clamp(1, self.tasks);
        // As many panels for each as can be, one more or less: three of two panels would be two and one for two threads.
        let panels = part.cols.len().div_ceil(format.width());
        let tasks = tasks.min(panels);
        let bound = |task: usize| (panels * task / tasks * format.width()).min(part.cols.len());
        scratch::with(part.rows.len() * steps, |packed: &mut [W]| {
            self.pack_lhs(part, tiles.clone(), packed, threads);
            let packed = &*packed;
            threads.for_each(tasks, &|task| {
                let cols = part.cols.start + bound(task)..part.cols.start + bound(task + 1);
                let start = packed.as_ptr().wrapping_sub(part.rows.start * steps);
                let (offsets, runs) = (Offsets::even(steps), [Run { offset: 0, len: steps }]);
                let lhs = Lhs { packed: true, start, offsets, runs: &runs, step: 0 };
                let block = TileBlock::new(self.tiled, part, tiles.clone(), lhs);
                match self.rhs {
                    // SAFETY: the caller's promise; lhs was just packed; tasks have different columns.
                    Rhs::Source(source) => unsafe { self.run_stream(part, &block, source, cols) },
                    // SAFETY: the caller's promise; lhs was just packed; tasks have different columns.
                    Rhs::Packed(panels) | Rhs::Panels(panels) => unsafe {
                        self.run_panels(part, &block, panels, cols);
                    },
                }
            });
        });
    }

    /// Packs the rows of a part, a tile's after the other's.
    fn pack_lhs(
        &self,
        part: &ProductBlock<'_, A>,
        tiles: Tiles,
        packed: &mut [W],
        threads: Threads<'_>,
    ) {
        let steps = part.steps.len();
        let tiles: SmallVec<[Range<usize>; 16]> = tiles.collect();
        let panels = Disjoint::new(packed);
        let grain = PACK_WORDS / (self.tiled.format().rows() * steps).max(1);
        threads.for_ranges(tiles.len(), grain, &|range| {
            for tile in &tiles[range] {
                let (first, count) = (tile.start - part.rows.start, tile.len());
                // SAFETY: tiles have different rows.
                let panel = unsafe { panels.part(first * steps, count * steps) };
                self.lhs.pack(tile.clone(), part.steps.clone(), count, panel);
            }
        });
    }

    /// Computes some columns of a part.
    ///
    /// # Safety
    /// As for [`Product::run`], for these columns; the block may be computed.
    unsafe fn run_stream(
        &self,
        part: &ProductBlock<'_, A>,
        block: &TileBlock<'_, W, A>,
        source: &dyn Source<W>,
        cols: Range<usize>,
    ) {
        let (format, steps) = (self.tiled.format(), &part.steps);
        let (width, panel) = (format.width(), format.width() * steps.len());
        scratch::with(2 * panel, |panels: &mut [W]| {
            let (mut now, mut next) = panels.split_at_mut(panel);
            source.pack(cols.start..cols.end.min(cols.start + width), steps.clone(), width, now);
            for group in chunks(cols.clone(), GROUP_COLUMNS) {
                for panel_cols in chunks(group.clone(), width) {
                    // What follows in the part, even if it is another task's: that may be ours as well.
                    let first = panel_cols.end;
                    let following = first..part.cols.end.min(first + width);
                    let ours = if first < cols.end { following.clone() } else { first..first };
                    let shares = Shares { source, format, steps, tiles: block.tiles().len() };
                    let ahead = |tile: usize| {
                        if tile > 0 {
                            shares.pack(tile - 1, ours.clone(), next);
                        }
                        shares.ahead(tile, following.clone(), now)
                    };
                    let panel = block.panel(panel_cols, (now.as_ptr(), width), true);
                    // SAFETY: the caller's promise; the panel is packed.
                    unsafe { block.run(&panel, ahead) };
                    shares.pack(block.tiles().len() - 1, ours.clone(), next);
                    std::mem::swap(&mut now, &mut next);
                }
                if part.last {
                    // SAFETY: the caller's promise; the sums of the group are complete.
                    unsafe { self.finish(part, part.rows.clone(), group) };
                }
            }
        });
    }
}

/// Whether an rhs takes more than half of the second-level cache. (Otherwise it could as well be packed at
/// once.)
pub(super) fn is_large<W>(cols: usize, steps: usize) -> bool {
    steps.saturating_mul(cols) > second_level_bytes() / 2 / size_of::<W>()
}

impl<W: Plain + Default, A: Plain + Default> Product<'_, W, A> {
    /// Computes some columns of a part from panels that are packed already.
    ///
    /// # Safety
    /// As for [`Product::run`], for these columns; the block may be computed.
    unsafe fn run_panels(
        &self,
        part: &ProductBlock<'_, A>,
        block: &TileBlock<'_, W, A>,
        panels: &[W],
        cols: Range<usize>,
    ) {
        let (format, steps) = (self.tiled.format(), &part.steps);
        let (width, panel_steps) = (format.width(), format.whole_steps(self.steps));
        let panels = &panels[..whole_len(format, self.cols, self.steps)];
        let at = |col: usize, step: usize| panels[col * panel_steps + step * width..].as_ptr();
        for group in chunks(cols, GROUP_COLUMNS) {
            for panel_cols in chunks(group.clone(), width) {
                let now = at(panel_cols.start, steps.start);
                // What comes next, even if it is another task's: that may be ours as well.
                let next = match panel_cols.end < part.cols.end {
                    true => at(panel_cols.end, steps.start),
                    false if !part.last => at(part.cols.start, steps.end),
                    false => now,
                };
                let row_bytes = width * size_of::<W>();
                let ahead = |tile: usize| {
                    let bound = |tile: usize| steps.len() * tile / block.tiles().len();
                    let (first, end) = (bound(tile), bound(tile + 1));
                    let place = next.cast::<u8>().wrapping_add(first * row_bytes);
                    Ahead::rows(place, row_bytes, pace(end - first, steps.len()))
                };
                // SAFETY: the caller's promise; the panels hold these steps of these columns.
                unsafe { block.run(&block.panel(panel_cols, (now, width), true), ahead) };
            }
            if part.last {
                // SAFETY: the caller's promise; the sums of the group are complete.
                unsafe { self.finish(part, part.rows.clone(), group) };
            }
        }
    }
}

/// At which pace so many places are gone through in as many steps, as [`Ahead`] has it.
fn pace(places: usize, steps: usize) -> u64 {
    ((places as u64) << 32) / steps as u64
}

/// How the steps of a panel are shared among the tiles that run before it is needed.
struct Shares<'a, W> {
    source: &'a dyn Source<W>,
    format: Format,
    steps: &'a Range<usize>,
    tiles: usize,
}

impl<W: Plain> Shares<'_, W> {
    /// The steps of the share of a tile: whole cache lines of each column, if a column's steps are
    /// neighbours.
    fn steps(&self, tile: usize) -> Range<usize> {
        let unit = self.format.width();
        let units = self.steps.len().div_ceil(unit);
        let bound =
            |tile: usize| (self.steps.start + units * tile / self.tiles * unit).min(self.steps.end);
        bound(tile)..bound(tile + 1)
    }

    /// Packs the share of a tile into its place in a panel.
    fn pack(&self, tile: usize, cols: Range<usize>, panel: &mut [W]) {
        let (steps, width) = (self.steps(tile), self.format.width());
        if !cols.is_empty() && !steps.is_empty() {
            let first = (steps.start - self.steps.start) * width;
            let share = &mut panel[first..][..steps.len() * width];
            self.source.pack(cols, steps, width, share);
        }
    }

    /// The memory of the share of a tile, at the pace at which its steps go by; or if that cannot be told,
    /// the panel that the tile reads.
    fn ahead(&self, tile: usize, cols: Range<usize>, now: &[W]) -> Ahead {
        let steps = self.steps(tile);
        let place = self.source.in_place().filter(|_| !cols.is_empty() && !steps.is_empty());
        let memory = place.and_then(|place| self.memory(&place, cols, steps));
        memory.unwrap_or(Ahead::nothing(now.as_ptr().cast()))
    }

    fn memory(
        &self,
        place: &InPlace<'_, W>,
        cols: Range<usize>,
        steps: Range<usize>,
    ) -> Option<Ahead> {
        let (width, size) = (self.format.width(), size_of::<W>());
        let at = |offset: usize| {
            let place = place.start.get().wrapping_add(offset).cast::<u8>().cast_const();
            place.wrapping_add(Ahead::LINE_END)
        };
        let pace = |places: usize| pace(places, self.steps.len());
        match (place.items.stride(), place.steps.stride()) {
            (Some(1), Some(stride)) => {
                let start = at(cols.start + steps.start * stride);
                Some(Ahead::rows(start, stride * size, pace(steps.len())))
            }
            (Some(stride), Some(1)) if width.is_power_of_two() => Some(Ahead {
                start: at(cols.start * stride + steps.start),
                pace: pace(steps.len().div_ceil(width) * width),
                stride: stride * size,
                column_log2: width.ilog2(),
                next_column: width * size,
            }),
            _ => None,
        }
    }
}
