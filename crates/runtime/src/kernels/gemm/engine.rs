//! The loops around tiles: blocks that fit the caches, packing, and tasks.
//!
//! For each block of steps rhs is packed, all tasks together; then each task packs a block of rows
//! of lhs and runs through its tiles. A panel of rhs stays in the second-level cache while the rows
//! of the block pass, as do these; meanwhile the next panel is fetched. Where an operand is read
//! only a few times, or is small, it is not packed but read where it lies.
//!
//! A sum is formed by one task, a block of steps after the other: the blocks of steps depend on the
//! sizes alone, so the result does not depend on the threads.

use std::ops::Range;

use smallvec::SmallVec;

use super::TASK_WORK;
use super::axis::Axis;
use super::block::{Lhs, Offsets, SumRows, TileBlock};
use super::cut::{Tiles, chunks, even_parts};
use super::few_steps::{ROWS_AT_ONCE, row_groups};
use super::pack::{InPlace, MAX_WIDTH, Source};
use super::panels::{pack_rhs, step_chunks, whole_len};
use super::streamed::is_large;
use super::sub_blocks::COLUMN_TILES;
use super::tile::{Ahead, MAX_ROWS, Run, Tiled, block_steps};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::cache::{is_third_level_far, second_level_bytes};
use crate::kernels::scratch;

/// Rows of a block, in tiles: the block should take about a third of the second-level cache. If it
/// has few steps it may have several times the rows.
const BLOCK_TILES: usize = 7;
const MAX_TIMES: usize = 8;
/// Columns of rhs packed at once: they should fit the last level of cache.
const BLOCK_COLUMNS: usize = 2048;
/// Columns that a task takes at least, and at which an epilogue is called at the latest.
pub(super) const GROUP_COLUMNS: usize = 512;
/// Rows whose sums are kept until they are converted.
const BLOCK_SUMS: usize = 2048;
/// The most tiles of rows for which rhs is read where it lies: packing it would take longer than its
/// reuse saves.
const UNPACKED_TILES: usize = 24;
/// The same for an rhs larger than the second-level cache where the third level is not near, or whose rows
/// do not begin with cache lines, so that each vector is read from two.
const SLOW_UNPACKED_TILES: usize = 2;
pub(super) const LINE_BYTES: usize = 64;
/// The most bytes of an rhs that is read where it lies for any number of tiles, if its rows have at
/// most [`SHORT_ROW_BYTES`].
const UNPACKED_BYTES: usize = 1 << 20;
/// Bytes of a row of rhs whose tiles' cache lines still spread over the sets of the caches.
const SHORT_ROW_BYTES: usize = 2048;
/// Rows between the row of rhs that is prefetched and the one that is read, where rhs is not packed.
const ROWS_AHEAD: usize = 32;
/// The most bytes of an rhs that stays in the first-level cache while tiles run: half of what most have.
const NEAREST_BYTES: usize = 16 << 10;
/// Bytes of the rows of the result that are finished at once, by the code that changes a product in
/// place: they should still be in the second-level cache.
const DONE_BYTES: usize = 256 << 10;

/// A matrix product: `rows` of lhs with `cols` of rhs, over `steps`.
pub(super) struct Product<'a, W, A> {
    pub tiled: &'a dyn Tiled<W, A>,
    pub rows: usize,
    pub cols: usize,
    pub steps: usize,
    pub lhs: &'a dyn Source<W>,
    pub rhs: Rhs<'a, W>,
    pub sink: Sink<'a, A>,
    pub done: Option<RowsCallback<'a>>,
    /// Whether to add to what is in memory. Not for a [`Sink::Function`].
    pub add: bool,
    /// How many tasks there should be, if there is enough to do.
    pub tasks: usize,
    /// How many products of this size are computed one after the other, each of other operands.
    pub batches: usize,
}

/// The right operand.
pub(super) enum Rhs<'a, W> {
    /// To be packed, or read where it lies.
    Source(&'a dyn Source<W>),
    /// What [`pack_whole`](super::panels::pack_whole) packed for several products.
    Packed(&'a [W]),
    /// The same, if all of its columns are for this product: best taken panel by panel, as those of a
    /// large operand that is packed meanwhile.
    Panels(&'a [W]),
}

/// What is called with the row, the first column and the number of columns of part of a row that is
/// complete.
pub(super) type PartCallback<'a> = &'a (dyn Fn(usize, usize, usize) + Sync);

/// What is called with rows of the result that are complete, and have been given to [`PartCallback`].
pub(super) type RowsCallback<'a> = &'a (dyn Fn(Range<usize>) + Sync);

/// What is called with the row, the first column and the complete sums of part of a row.
pub(super) type SumsCallback<'a, T> = &'a (dyn Fn(usize, usize, &[T]) + Sync);

/// Where sums go.
#[derive(Clone, Copy)]
pub(super) enum Sink<'a, T> {
    /// To memory. The columns of a row are neighbours.
    Memory {
        /// The first sum.
        start: Shared<T>,
        /// The rows.
        rows: &'a Axis,
        /// Called when sums are complete.
        finish: Option<PartCallback<'a>>,
    },
    /// To a function alone.
    Function(SumsCallback<'a, T>),
}

/// A pointer that tasks share. Whoever makes one answers for what is done with it.
pub(super) struct Shared<T>(pub *mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T> Shared<T> {
    /// The pointer. (A method, so that closures capture the whole.)
    pub(super) fn get(self) -> *mut T {
        self.0
    }
}

// SAFETY: an address; the code that accesses memory there states why it may.
unsafe impl<T> Sync for Shared<T> {}
// SAFETY: as an address it is any thread's; who accesses memory there states why it may.
unsafe impl<T> Send for Shared<T> {}

/// rhs for a block of steps and columns.
#[derive(Clone, Copy)]
enum BlockRhs<W> {
    /// Panels one after the other, the first for column `col`, each with this many steps, of which the
    /// block's first is at `start`.
    Packed { start: Shared<W>, col: usize, panel_steps: usize },
    /// Where it lies.
    Plain { start: Shared<W>, step_stride: usize },
}

impl<W> BlockRhs<W> {
    /// Whether panels are as wide as a tile.
    fn is_packed(&self) -> bool {
        matches!(self, BlockRhs::Packed { .. })
    }
}

impl<W: Plain + Default, A: Plain + Default> Product<'_, W, A> {
    /// Computes the product.
    ///
    /// # Safety
    /// What a [`InPlace`] of the operands describes may be read, and what `sink` describes written,
    /// for all rows, columns and steps; nothing else writes to the former or accesses the latter.
    pub(super) unsafe fn run(&self, threads: Threads<'_>) {
        if self.rows == 0 || self.cols == 0 {
            return;
        }
        if let Some(loops) = self.tiled.loops() {
            // SAFETY: the caller's promise.
            if unsafe { self.run_dots(loops, threads) || self.run_sweep(loops, threads) } {
                return self.done(0..self.rows);
            }
        }
        match self.sink {
            // SAFETY: the caller's promise.
            Sink::Memory { start, rows, .. } => unsafe {
                let place = SumRows { origin: start, rows };
                let is_streamed = self.streamed_steps(self.rows).is_some();
                let block = if is_streamed { self.cols } else { BLOCK_COLUMNS };
                self.run_columns(0..self.rows, block, threads, |_| place);
            },
            // The sums wait elsewhere until they are complete.
            Sink::Function(_) if self.completes_sums() => {
                let nowhere = Axis::new([(self.rows, 0)]);
                let place = SumRows { origin: Shared(std::ptr::null_mut()), rows: &nowhere };
                // SAFETY: the caller's promise; the place is not used.
                unsafe { self.run_columns(0..self.rows, BLOCK_COLUMNS, threads, |_| place) };
            }
            Sink::Function(_) => {
                let (blocks, rows) = even_parts(self.rows, BLOCK_SUMS);
                let groups = self.streamed_steps(rows).map_or(1, |_| BLOCK_SUMS / rows);
                let width = self.cols.min(groups * GROUP_COLUMNS);
                let dense = Axis::new([(self.rows.max(2), width)]); // one row has a stride, too
                for block in 0..blocks {
                    let rows = block * rows..self.rows.min((block + 1) * rows);
                    scratch::with(rows.len() * width, |sums: &mut [A]| {
                        let start = sums.as_mut_ptr().wrapping_sub(rows.start * width);
                        // SAFETY: the caller's promise for the operands; `sums` has a place for
                        // each row of the block and column of a group.
                        unsafe {
                            self.run_columns(rows.clone(), width, threads, |col| SumRows {
                                origin: Shared(start.wrapping_sub(col)),
                                rows: &dense,
                            });
                        }
                    });
                }
            }
        }
    }

    /// Computes some rows, `block` columns at a time, into the place that `place` tells.
    ///
    /// # Safety
    /// As for [`Product::run`]; the place may be written.
    unsafe fn run_columns<'p>(
        &self,
        rows: Range<usize>,
        block: usize,
        threads: Threads<'_>,
        place: impl Fn(usize) -> SumRows<'p, A>,
    ) {
        let format = self.tiled.format();
        let streamed = self.streamed_steps(rows.len());
        let plain = self.unpacked_rhs(rows.len());
        let most_steps = streamed.unwrap_or(format.most_steps);
        for cols in chunks(0..self.cols, block) {
            let place = place(cols.start);
            for steps in step_chunks(format, self.steps, most_steps) {
                let part = ProductBlock {
                    rows: rows.clone(),
                    cols: cols.clone(),
                    steps: steps.clone(),
                    place,
                    add: self.add || steps.start > 0,
                    last: steps.end >= self.steps,
                };
                if streamed.is_some() {
                    // SAFETY: the caller's promise.
                    unsafe { self.run_streamed(&part, threads) };
                    continue;
                }
                let rhs = match (&self.rhs, plain) {
                    (Rhs::Packed(whole) | Rhs::Panels(whole), _) => {
                        let panel_steps = format.whole_steps(self.steps);
                        let needed = whole_len(format, self.cols, self.steps);
                        let start = whole[..needed][steps.start * format.width()..].as_ptr();
                        BlockRhs::Packed { start: Shared(start.cast_mut()), col: 0, panel_steps }
                    }
                    (Rhs::Source(_), Some((start, step_stride))) => {
                        let start = start.wrapping_add(steps.start * step_stride).cast_mut();
                        BlockRhs::Plain { start: Shared(start), step_stride }
                    }
                    (Rhs::Source(source), None) => {
                        let width = cols.len().next_multiple_of(format.width());
                        scratch::with(width * steps.len(), |packed: &mut [W]| {
                            let which = (cols.clone(), steps.clone());
                            pack_rhs(format, *source, self.steps, which, packed, threads);
                            let start = Shared(packed.as_mut_ptr());
                            let (col, panel_steps) = (cols.start, steps.len());
                            let rhs = BlockRhs::Packed { start, col, panel_steps };
                            // SAFETY: the caller's promise.
                            unsafe { self.run_part(&part, rhs, threads) };
                        });
                        continue;
                    }
                };
                // SAFETY: the caller's promise.
                unsafe { self.run_part(&part, rhs, threads) };
            }
        }
    }

    /// The first element of rhs and its distance from step to step, if tiles should read rhs where it
    /// lies rather than have it packed for `rows` rows of the result.
    pub(super) fn unpacked_rhs(&self, rows: usize) -> Option<(*const W, usize)> {
        let Rhs::Source(source) = self.rhs else { return None };
        let format = self.tiled.format();
        let plain = source.in_place().filter(|_| !format.in_blocks)?;
        let row = plain.items.stride() == Some(1);
        let step_stride = plain.steps.stride()?;
        let row_bytes = step_stride.saturating_mul(size_of::<W>());
        let small = row_bytes.saturating_mul(self.steps) <= UNPACKED_BYTES;
        let is_split = row_bytes % LINE_BYTES != 0 || plain.start.get().addr() % LINE_BYTES != 0;
        let is_slow = self.is_rhs_large() && (is_split || is_third_level_far());
        let tiles = if is_slow { SLOW_UNPACKED_TILES } else { UNPACKED_TILES };
        let few = rows <= tiles * format.rows() || small && row_bytes <= SHORT_ROW_BYTES;
        (row && few).then_some((plain.start.get().cast_const(), step_stride))
    }

    /// Computes a part in tasks.
    ///
    /// # Safety
    /// As for [`Product::run`], for the part.
    unsafe fn run_part(&self, part: &ProductBlock<'_, A>, rhs: BlockRhs<W>, threads: Threads<'_>) {
        let (height, panel) = (self.tiled.format().rows(), self.tiled.format().width());
        let work = part.rows.len().saturating_mul(part.cols.len());
        let work = work.saturating_mul(part.steps.len()) / TASK_WORK;
        // Whether there are no more sums for these rows.
        let is_end = part.last && part.cols.end == self.cols;
        if work == 0 && part.cols.len() <= GROUP_COLUMNS {
            // SAFETY: the caller's promise.
            unsafe { self.run_task(part, rhs, part.rows.clone(), part.cols.clone()) };
            if is_end {
                self.done(part.rows.clone());
            }
            return;
        }
        // Full tiles, but in the last block; and if several blocks, then an even number, since
        // threads often are.
        let tiles = part.rows.len().div_ceil(height);
        let times = (block_steps::<W>() / part.steps.len().max(1)).clamp(1, MAX_TIMES);
        let times = match self.done {
            Some(_) => {
                let bytes = self.cols * BLOCK_TILES * height * size_of::<A>();
                times.min(DONE_BYTES / bytes).max(1)
            }
            None => times,
        };
        let wanted = work.min(self.tasks).min(tiles / 2);
        let (most, wanted) = match self.sub_block_column() {
            Some(_) => (COLUMN_TILES, wanted.min(threads.count())),
            None => (BLOCK_TILES * times, wanted),
        };
        let row_blocks = match tiles.div_ceil(most).max(wanted) {
            0 | 1 => 1,
            several => several.next_multiple_of(2),
        };
        // A block ends where rows of lhs are no longer equally far apart, if there are some of these runs in each.
        let run =
            self.lhs.in_place().map_or(height, |plain| plain.items.run(0, usize::MAX).1.max(1));
        let ends_runs =
            part.rows.start.is_multiple_of(run) && part.rows.len() / run >= 2 * row_blocks;
        let unit = if ends_runs { run.max(height) } else { height };
        let units = part.rows.len().div_ceil(unit);
        let row_of = |block: usize| (block * units / row_blocks * unit).min(part.rows.len());
        let block_rows = units.div_ceil(row_blocks) * unit;
        // Groups of columns only where the rows alone give few tasks: each packs lhs anew.
        let width = if row_blocks >= self.tasks { BLOCK_COLUMNS } else { GROUP_COLUMNS };
        let width = width.max(TASK_WORK / (block_rows * part.steps.len()).max(1));
        let width = width.min(part.cols.len()).next_multiple_of(panel);
        let groups = part.cols.len().div_ceil(width);
        let are_whole_rows = groups == 1 && part.cols.len() == self.cols;
        threads.for_each(row_blocks * groups, &|task| {
            let (block, group) = (task / groups, task % groups);
            let rows = part.rows.start + row_of(block)..part.rows.start + row_of(block + 1);
            let first = part.cols.start + group * width;
            let cols = first..part.cols.end.min(first + width);
            // SAFETY: the caller's promise; tasks have different rows or columns.
            unsafe { self.run_task(part, rhs, rows.clone(), cols) };
            if is_end && are_whole_rows {
                self.done(rows);
            }
        });
        if is_end && !are_whole_rows {
            self.done(part.rows.clone());
        }
    }

    /// Passes complete rows on.
    fn done(&self, rows: Range<usize>) {
        if let Some(done) = self.done.filter(|_| !rows.is_empty()) {
            done(rows);
        }
    }

    /// Computes a block of rows and columns of a part.
    ///
    /// # Safety
    /// As for [`Product::run`], for the block.
    unsafe fn run_task(
        &self,
        part: &ProductBlock<'_, A>,
        rhs: BlockRhs<W>,
        rows: Range<usize>,
        cols: Range<usize>,
    ) {
        let format = self.tiled.format();
        let tiles = Tiles::new(rows.clone(), format.heights);
        if let Some(plain) =
            self.lhs.in_place().filter(|plain| format.in_place && reads_well(plain, cols.len()))
        {
            let (mut lhs_step, mut step) = (1, part.steps.start);
            let mut runs = SmallVec::<[Run; 4]>::new();
            while step < part.steps.end {
                let (offset, len, stride) = plain.steps.run(step, part.steps.end - step);
                runs.push(Run { offset, len });
                (step, lhs_step) = (step + len, stride);
            }
            let start = plain.start.get().cast_const();
            let tiles = tiles.in_runs(plain.items);
            let offsets = Offsets::of(plain.items, tiles.clone());
            let lhs = Lhs { packed: false, start, offsets, runs: &runs, step: lhs_step };
            // SAFETY: the caller's promise; the pointers are to rows of lhs.
            unsafe { self.run_tiles(part, rhs, tiles, cols, lhs) };
            return;
        }
        if let (BlockRhs::Packed { start, col, panel_steps }, Some(column)) =
            (rhs, self.sub_block_column())
        {
            let panel =
                |first: usize| start.get().wrapping_add((first - col) * panel_steps).cast_const();
            // SAFETY: the caller's promise; `panel` tells where rhs is packed.
            unsafe { self.run_sub_blocks(part, rows, cols, (column, &panel)) };
            return;
        }
        let steps = part.steps.len();
        scratch::with(rows.len() * steps, |packed: &mut [W]| {
            for tile in tiles.clone() {
                let panel = &mut packed[(tile.start - rows.start) * steps..][..tile.len() * steps];
                let height = tile.len();
                if format.in_blocks {
                    let steps = part.steps.start..part.steps.end.min(self.steps);
                    self.lhs.pack_blocks(tile, steps, height, panel);
                } else {
                    self.lhs.pack(tile, part.steps.clone(), height, panel);
                }
            }
            let start = packed.as_ptr().wrapping_sub(rows.start * steps);
            let (offsets, runs) = (Offsets::even(steps), [Run { offset: 0, len: steps }]);
            let lhs = Lhs { packed: true, start, offsets, runs: &runs, step: 0 };
            // SAFETY: the caller's promise; the pointers are to the panels just packed.
            unsafe { self.run_tiles(part, rhs, tiles, cols, lhs) };
        });
    }

    /// Computes tiles.
    ///
    /// # Safety
    /// As for [`Product::run`], for the tiles and columns; what `lhs` tells may be read.
    unsafe fn run_tiles(
        &self,
        part: &ProductBlock<'_, A>,
        rhs: BlockRhs<W>,
        tiles: Tiles,
        cols: Range<usize>,
        lhs: Lhs<'_, W>,
    ) {
        let all_rows = tiles.rows.clone();
        let format = self.tiled.format();
        let block = TileBlock::new(self.tiled, part, tiles, lhs);
        // What was packed a moment ago is still in the second-level cache then. Constants were packed long ago:
        // other operands of the program have taken their place.
        let is_constant = matches!(self.rhs, Rhs::Panels(_));
        let is_far =
            is_large::<W>(part.cols.len(), part.steps.len()) || is_constant && is_third_level_far();
        // And what was packed for this product alone is near, too, if in the next level.
        let is_fresh = !is_far || matches!(self.rhs, Rhs::Source(_));
        let stride = part.place.rows.stride().unwrap_or(1).wrapping_mul(size_of::<A>());
        let is_split = !(stride | part.place.origin.get().addr()).is_multiple_of(LINE_BYTES);
        // (Tiles of blocks of numbers read a panel faster than the second level gives it.)
        let is_packed = rhs.is_packed() && !format.in_blocks;
        // The most bytes of a group of columns whose panels are gone through for each tile of rows.
        let by_rows = match (is_packed && is_fresh && is_split, format.in_blocks) {
            (true, _) => second_level_bytes(),
            (false, true) => 0,
            (false, false) => NEAREST_BYTES,
        };
        let steps = part.steps.len();
        let panel = |first: usize| match rhs {
            BlockRhs::Packed { start, col, panel_steps } => {
                let panel = (first - col) * panel_steps;
                (start.get().wrapping_add(panel).cast_const(), format.width())
            }
            BlockRhs::Plain { start, step_stride } => {
                (start.get().wrapping_add(first).cast_const(), step_stride)
            }
        };
        for group in chunks(cols, GROUP_COLUMNS) {
            let panels = || chunks(group.clone(), format.width());
            let group_bytes = group.len() * steps * size_of::<W>();
            let few_steps = panels().map(|cols| {
                let panel = block.panel(cols.clone(), panel(cols.start), rhs.is_packed());
                block.few_steps(&panel, steps).map(|kernel| (kernel, panel))
            });
            let few_steps: Option<SmallVec<[_; 16]>> = few_steps.collect();
            if let Some(panels) = few_steps {
                let most = if group_bytes <= by_rows { ROWS_AT_ONCE } else { usize::MAX };
                for rows in row_groups(block.rows(), block.run_rows(), most) {
                    for (i, (kernel, panel)) in panels.iter().enumerate() {
                        // The next panel comes closer meanwhile.
                        let ahead = match panels.get(i + 1) {
                            Some((_, next)) if is_far && rhs.is_packed() => next.bytes(steps),
                            _ => panel.bytes(0),
                        };
                        // SAFETY: the caller's promise; the kernel is for this panel.
                        unsafe { block.run_few_steps(*kernel, panel, rows.clone(), ahead) };
                    }
                }
            } else if group_bytes <= by_rows {
                // Row by row of tiles: a cache line in which one panel's sums end and the next one's begin is written
                // by both while it is near.
                let panels = panels()
                    .map(|cols| block.panel(cols.clone(), panel(cols.start), rhs.is_packed()));
                let panels: SmallVec<[_; 16]> = panels.collect();
                let nothing = Ahead::nothing(panel(group.start).0.cast());
                for number in 0..block.tiles().len() {
                    for panel in &panels {
                        // SAFETY: the caller's promise.
                        unsafe { block.run_tile(number, panel, nothing) };
                    }
                }
            } else {
                let count = block.tiles().len();
                for cols in panels() {
                    let (start, step) = panel(cols.start);
                    let (bytes, at) = (step * size_of::<W>(), start.cast::<u8>());
                    let one = 1 << 32;
                    let ahead = |tile: usize| match rhs {
                        BlockRhs::Packed { .. } if !is_far => Ahead::nothing(at),
                        // While tiles read a panel the next one comes closer, a share with each.
                        BlockRhs::Packed { panel_steps, .. } => {
                            let share = bytes / count;
                            let from = at.wrapping_add(bytes * panel_steps + share * steps * tile);
                            Ahead::rows(from, share, one)
                        }
                        // The first tile fetches the panel, whose rows lie apart.
                        BlockRhs::Plain { .. } if tile == 0 && steps > ROWS_AHEAD => Ahead::rows(
                            at.wrapping_add(bytes * ROWS_AHEAD + Ahead::LINE_END),
                            bytes,
                            one,
                        ),
                        BlockRhs::Plain { .. } => Ahead::nothing(at),
                    };
                    // SAFETY: the caller's promise.
                    unsafe { block.run(&block.panel(cols, (start, step), rhs.is_packed()), ahead) };
                }
            }
            if part.last {
                // SAFETY: the caller's promise; the sums of the group are this task's.
                unsafe { self.finish(part, all_rows.clone(), group) };
            }
        }
    }

    /// Passes complete sums on.
    ///
    /// # Safety
    /// The sums may be read.
    pub(super) unsafe fn finish(
        &self,
        part: &ProductBlock<'_, A>,
        rows: Range<usize>,
        cols: Range<usize>,
    ) {
        for row in rows {
            match self.sink {
                Sink::Memory { finish: None, .. } => return,
                Sink::Memory { finish: Some(finish), .. } => finish(row, cols.start, cols.len()),
                Sink::Function(take) => {
                    let offset = part.place.rows.offset(row) + cols.start;
                    let start = part.place.origin.get().wrapping_add(offset);
                    // SAFETY: the caller's promise; the columns of a row are neighbours.
                    take(row, cols.start, unsafe { std::slice::from_raw_parts(start, cols.len()) });
                }
            }
        }
    }
}

/// A block of steps of some rows and columns.
pub(super) struct ProductBlock<'p, A> {
    pub rows: Range<usize>,
    pub cols: Range<usize>,
    pub steps: Range<usize>,
    pub place: SumRows<'p, A>,
    /// Whether there were steps before.
    pub add: bool,
    /// Whether there are no more.
    pub last: bool,
}

/// Whether tiles should read lhs where it lies, rather than have it packed, for `cols` columns of the
/// result.
fn reads_well<W>(plain: &InPlace<'_, W>, cols: usize) -> bool {
    // Numbers that a tile needs one after the other should share cache lines: those of a row, or
    // those of a step.
    let (_, run, stride) = plain.steps.run(0, usize::MAX);
    let distance = plain.items.run(0, usize::MAX).2;
    let close = stride == 1 && run >= 4 && !shares_sets::<W>(distance) || distance == 1;
    close && cols <= GROUP_COLUMNS
}

/// Whether rows that are so far apart fall into so few sets of the first-level cache that those of a tile
/// displace each other: 14 rows in one set, or in two (measured at 4096 and 2048 bytes: 77 and 97 GFLOP/s
/// of 118, beside 105 at 1024).
fn shares_sets<W>(distance: usize) -> bool {
    const SETS: usize = 64;
    const LINE: usize = 64;
    let bytes = distance.saturating_mul(size_of::<W>());
    bytes.is_multiple_of(LINE) && (bytes / LINE).is_multiple_of(SETS / 2) && bytes > 0
}

const _: () = assert!(MAX_ROWS <= MAX_WIDTH);
