//! The loops around tiles: blocks that fit the caches, packing, and tasks.
//!
//! For each block of steps rhs is packed, all tasks together; then each task packs a block of rows
//! of lhs and runs through its tiles. A panel of rhs stays in the first-level cache while the rows
//! of the block pass, which come from the second. Where an operand is read only a few times it is
//! not packed but read where it lies.
//!
//! A sum is formed by one task, a block of steps after the other: the blocks of steps depend on the
//! sizes alone, so the result does not depend on the threads.

use std::ops::Range;

use super::axis::{Axis, even_parts};
use super::pack::{MAX_WIDTH, Plain, Source};
use super::simd::Simd;
use super::tile::{MAX_ROWS, TileArgs};
use crate::Threads;
use crate::kernels::scratch;

/// Steps of a block: a panel of rhs should take about half of the first-level cache.
const BLOCK_STEPS: usize = 320;
/// Rows of a block, in tiles: the block should take about a third of the second-level cache.
const BLOCK_TILES: usize = 18;
/// Columns of rhs packed at once: they should fit the last level of cache.
const BLOCK_COLUMNS: usize = 2048;
/// Columns that a task takes at least, and at which an epilogue is called at the latest.
const GROUP_COLUMNS: usize = 512;
/// Rows whose sums are kept until they are converted.
const BLOCK_SUMS: usize = 2048;
/// At most so many tiles of rows read rhs where it lies.
const UNPACKED_TILES: usize = 4;
/// Multiplications that are worth waking a thread for.
const TASK_WORK: usize = 1 << 17;

/// A matrix product: `rows` of lhs with `cols` of rhs, over `steps`.
pub(super) struct Product<'a, S: Simd> {
    pub simd: S,
    pub rows: usize,
    pub cols: usize,
    pub steps: usize,
    pub lhs: &'a dyn Source<S::Word>,
    pub rhs: &'a dyn Source<S::Word>,
    pub sink: Sink<'a, S::Acc>,
}

/// What is called with the row, the first column and the sums of part of a row, once complete.
pub(super) type Finish<'a, T> = &'a (dyn Fn(usize, usize, &mut [T]) + Sync);

/// Where sums go.
pub(super) enum Sink<'a, T> {
    /// To memory. The columns of a row are neighbours.
    Memory {
        /// The first sum.
        start: Shared<T>,
        /// The rows.
        rows: &'a Axis,
        /// Called when sums are complete.
        finish: Option<Finish<'a, T>>,
    },
    /// To a function alone.
    Function(Finish<'a, T>),
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
// SAFETY: as above.
unsafe impl<T> Send for Shared<T> {}

/// Where the sums of a block of rows are while they are formed.
#[derive(Clone, Copy)]
enum Place<'a, T> {
    Axis(Shared<T>, &'a Axis),
    /// Buffered rows from `row`, columns from `col`, `stride` apart.
    Buffer {
        start: Shared<T>,
        row: usize,
        col: usize,
        stride: usize,
    },
}

impl<T> Place<'_, T> {
    /// Pointers to the first columns of rows.
    fn rows(&self, rows: Range<usize>, col: usize) -> [*mut T; MAX_ROWS] {
        let mut pointers = [std::ptr::null_mut(); MAX_ROWS];
        match *self {
            Place::Axis(start, axis) => {
                let mut offsets = [0; MAX_ROWS];
                axis.offsets(rows.start, &mut offsets[..rows.len()]);
                for (pointer, offset) in pointers.iter_mut().zip(offsets).take(rows.len()) {
                    *pointer = start.get().wrapping_add(offset + col);
                }
            }
            Place::Buffer { start, row, col: first, stride } => {
                for (i, pointer) in pointers.iter_mut().enumerate().take(rows.len()) {
                    let offset = (rows.start - row + i) * stride + (col - first);
                    *pointer = start.get().wrapping_add(offset);
                }
            }
        }
        pointers
    }
}

/// rhs for a block of steps and columns.
#[derive(Clone, Copy)]
enum Rhs<W> {
    /// Panels one after the other, the first for column `col`.
    Packed { start: Shared<W>, col: usize },
    /// Where it lies.
    Plain { start: Shared<W>, step_stride: usize },
}

impl<S: Simd> Product<'_, S> {
    const WIDTH: usize = S::LANES * S::VECS;

    /// Computes the product.
    ///
    /// # Safety
    /// What a [`Plain`] of the operands describes may be read, and what `sink` describes written,
    /// for all rows, columns and steps; nothing else writes to the former or accesses the latter.
    pub(super) unsafe fn run(&self, threads: Threads<'_>) {
        if self.rows == 0 || self.cols == 0 {
            return;
        }
        match self.sink {
            // SAFETY: the caller's promise.
            Sink::Memory { start, rows, .. } => unsafe {
                let place = Place::Axis(start, rows);
                self.run_columns(0..self.rows, BLOCK_COLUMNS, threads, |_| place);
            },
            Sink::Function(_) => {
                let (blocks, rows) = even_parts(self.rows, BLOCK_SUMS);
                let width = self.cols.min(GROUP_COLUMNS);
                for block in 0..blocks {
                    let rows = block * rows..self.rows.min((block + 1) * rows);
                    scratch::with(rows.len() * width, |sums: &mut [S::Acc]| {
                        let start = Shared(sums.as_mut_ptr());
                        let row = rows.start;
                        // SAFETY: the caller's promise for the operands; `sums` has a place for
                        // each row of the block and column of a group.
                        unsafe {
                            self.run_columns(rows.clone(), GROUP_COLUMNS, threads, |col| {
                                Place::Buffer { start, row, col, stride: width }
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
        place: impl Fn(usize) -> Place<'p, S::Acc>,
    ) {
        let rhs = self.unpacked_rhs(rows.len());
        let thin = rhs.is_some() && rows.len() <= S::ROWS;
        // A matrix that is read once should be read in the order of memory: few steps at a time,
        // all columns, so that it streams.
        let most_steps = match rows.len() {
            1..=4 if thin => 16,
            _ if thin => 64,
            _ => BLOCK_STEPS,
        };
        let block = if thin { block.max(4096 / rows.len()) } else { block };
        let (step_blocks, block_steps) = even_parts(self.steps, most_steps);
        let mut col = 0;
        while col < self.cols {
            let cols = col..self.cols.min(col + block);
            col = cols.end;
            let place = place(cols.start);
            for step_block in 0..step_blocks {
                let first = step_block * block_steps;
                let steps = first.min(self.steps)..self.steps.min(first + block_steps);
                let mut part = Part {
                    rows: rows.clone(),
                    cols: cols.clone(),
                    steps: steps.clone(),
                    rhs: Rhs::Packed { start: Shared(std::ptr::null_mut()), col: cols.start },
                    place,
                    add: step_block > 0,
                    last: step_block + 1 == step_blocks,
                };
                if let Some(plain) = rhs {
                    let start = plain.start.wrapping_add(steps.start * plain.step_stride);
                    part.rhs = Rhs::Plain {
                        start: Shared(start.cast_mut()),
                        step_stride: plain.step_stride,
                    };
                    // SAFETY: the caller's promise.
                    unsafe { self.run_part(&part, threads) };
                    continue;
                }
                let panels = cols.len().div_ceil(Self::WIDTH);
                scratch::with(panels * Self::WIDTH * steps.len(), |packed: &mut [S::Word]| {
                    self.pack_rhs(cols.clone(), steps.clone(), packed, threads);
                    let start = Shared(packed.as_mut_ptr());
                    part.rhs = Rhs::Packed { start, col: cols.start };
                    // SAFETY: the caller's promise.
                    unsafe { self.run_part(&part, threads) };
                });
            }
        }
    }

    /// rhs where it lies, if that is better than packing it for so many rows.
    fn unpacked_rhs(&self, rows: usize) -> Option<Plain<S::Word>> {
        let plain = self.rhs.plain()?;
        let few = rows <= UNPACKED_TILES * S::ROWS;
        ((plain.item_stride == 1 || self.cols == 1) && few).then_some(plain)
    }

    /// Packs columns of rhs, panel after panel.
    fn pack_rhs(
        &self,
        cols: Range<usize>,
        steps: Range<usize>,
        packed: &mut [S::Word],
        threads: Threads<'_>,
    ) {
        let panel = Self::WIDTH * steps.len();
        if panel == 0 {
            return;
        }
        // A few panels at once, so that a task is not too short.
        let panels_per_task = (TASK_WORK / 8 / panel).max(1);
        threads.for_chunks(packed, panels_per_task * panel, &|task, packed| {
            for (i, panel) in packed.chunks_exact_mut(panel).enumerate() {
                let first = cols.start + (task * panels_per_task + i) * Self::WIDTH;
                let items = first..cols.end.min(first + Self::WIDTH);
                self.rhs.pack(items, steps.clone(), Self::WIDTH, panel);
            }
        });
    }

    /// Computes a part in tasks.
    ///
    /// # Safety
    /// As for [`Product::run`], for the part.
    unsafe fn run_part(&self, part: &Part<'_, S>, threads: Threads<'_>) {
        let (row_blocks, block_rows) = even_parts(part.rows.len(), BLOCK_TILES * S::ROWS);
        // Full tiles, but in the last block.
        let block_rows =
            if row_blocks > 1 { block_rows.next_multiple_of(S::ROWS) } else { block_rows };
        let row_blocks = part.rows.len().div_ceil(block_rows);
        // Groups of columns only where the rows alone give few tasks: each packs lhs anew.
        let width = if row_blocks >= 4 { BLOCK_COLUMNS } else { GROUP_COLUMNS };
        let width = width.max(TASK_WORK / (block_rows * part.steps.len()).max(1));
        let width = width.min(part.cols.len()).next_multiple_of(Self::WIDTH);
        let groups = part.cols.len().div_ceil(width);
        threads.for_each(row_blocks * groups, &|task| {
            let (block, group) = (task / groups, task % groups);
            let first = part.rows.start + block * block_rows;
            let rows = first..part.rows.end.min(first + block_rows);
            let first = part.cols.start + group * width;
            let cols = first..part.cols.end.min(first + width);
            // SAFETY: the caller's promise; tasks have different rows or columns.
            unsafe { self.run_task(part, rows, cols) };
        });
    }

    /// Computes a block of rows and columns of a part.
    ///
    /// # Safety
    /// As for [`Product::run`], for the block.
    unsafe fn run_task(&self, part: &Part<'_, S>, rows: Range<usize>, cols: Range<usize>) {
        let steps = part.steps.len();
        let mut tiles = Tiles::new(rows.clone(), S::ROWS);
        let plain = self.lhs.plain().filter(|plain| {
            // Rows whose steps are neighbours stream by themselves. Each number of others comes
            // with a cache line of its own, which packing uses fully.
            plain.step_stride == 1 && cols.len() <= GROUP_COLUMNS
        });
        if let Some(plain) = plain {
            let start = plain.start.wrapping_add(part.steps.start);
            let lhs = |tile: &Range<usize>| {
                let mut pointers = [start; MAX_ROWS];
                for (i, pointer) in pointers.iter_mut().enumerate().take(tile.len()) {
                    *pointer = start.wrapping_add((tile.start + i) * plain.item_stride);
                }
                pointers
            };
            // SAFETY: the caller's promise; the pointers are to rows of lhs.
            unsafe { self.run_tiles(part, tiles, cols, false, lhs) };
            return;
        }
        scratch::with(rows.len() * steps, |packed: &mut [S::Word]| {
            for tile in &mut tiles {
                let panel = &mut packed[(tile.start - rows.start) * steps..][..tile.len() * steps];
                let width = tile.len();
                self.lhs.pack(tile, part.steps.clone(), width, panel);
            }
            let start = packed.as_ptr();
            let lhs = |tile: &Range<usize>| {
                [start.wrapping_add((tile.start - rows.start) * steps); MAX_ROWS]
            };
            // SAFETY: the caller's promise; the pointers are to the panels just packed.
            unsafe { self.run_tiles(part, Tiles::new(rows.clone(), S::ROWS), cols, true, lhs) };
        });
    }

    /// Computes tiles, for which `lhs` tells the rows, or the packed panel.
    ///
    /// # Safety
    /// As for [`Product::run`], for the tiles and columns; what `lhs` tells may be read.
    unsafe fn run_tiles(
        &self,
        part: &Part<'_, S>,
        tiles: Tiles,
        cols: Range<usize>,
        packed: bool,
        lhs: impl Fn(&Range<usize>) -> [*const S::Word; MAX_ROWS],
    ) {
        for group in chunks(cols, GROUP_COLUMNS) {
            for cols in chunks(group.clone(), Self::WIDTH) {
                let vecs = cols.len().div_ceil(S::LANES);
                let (rhs, rhs_step) = match part.rhs {
                    Rhs::Packed { start, col } => {
                        let panel = (cols.start - col) * part.steps.len();
                        (start.get().wrapping_add(panel), Self::WIDTH)
                    }
                    Rhs::Plain { start, step_stride } => {
                        (start.get().wrapping_add(cols.start), step_stride)
                    }
                };
                for tile in tiles.clone() {
                    let args = TileArgs {
                        steps: part.steps.len(),
                        lhs: lhs(&tile),
                        lhs_step: 1,
                        rhs,
                        rhs_step,
                        out: part.place.rows(tile.clone(), cols.start),
                        last_lanes: cols.len() - (vecs - 1) * S::LANES,
                        add: part.add,
                    };
                    // SAFETY: the caller's promise; `self.simd` proves the features.
                    unsafe { self.simd.tile(tile.len(), vecs, packed)(&args) };
                }
            }
            if part.last {
                // SAFETY: the caller's promise; the sums of the group are this task's.
                unsafe { self.finish(part, tiles.rows.clone(), group) };
            }
        }
    }

    /// Passes complete sums on.
    ///
    /// # Safety
    /// The sums may be read and written.
    unsafe fn finish(&self, part: &Part<'_, S>, rows: Range<usize>, cols: Range<usize>) {
        let finish = match self.sink {
            Sink::Memory { finish: None, .. } => return,
            Sink::Memory { finish: Some(finish), .. } | Sink::Function(finish) => finish,
        };
        for row in rows {
            let start = part.place.rows(row..row + 1, cols.start)[0];
            // SAFETY: the caller's promise; the columns of a row are neighbours.
            let sums = unsafe { std::slice::from_raw_parts_mut(start, cols.len()) };
            finish(row, cols.start, sums);
        }
    }
}

/// A block of steps of some rows and columns.
struct Part<'p, S: Simd> {
    rows: Range<usize>,
    cols: Range<usize>,
    steps: Range<usize>,
    rhs: Rhs<S::Word>,
    place: Place<'p, S::Acc>,
    /// Whether there were steps before.
    add: bool,
    /// Whether there are no more.
    last: bool,
}

/// Rows cut into tiles that are as high as each other, or lower by one.
#[derive(Clone)]
struct Tiles {
    rows: Range<usize>,
    next: usize,
    left: usize,
}

impl Tiles {
    fn new(rows: Range<usize>, most: usize) -> Self {
        Tiles { next: rows.start, left: rows.len().div_ceil(most), rows }
    }
}

impl Iterator for Tiles {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.left == 0 {
            return None;
        }
        let start = self.next;
        self.next += (self.rows.end - start).div_ceil(self.left);
        self.left -= 1;
        Some(start..self.next)
    }
}

/// A range cut into pieces of `size`, the last shorter.
fn chunks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(size).map(move |first| first..range.end.min(first + size))
}

const _: () = assert!(MAX_ROWS <= MAX_WIDTH);
