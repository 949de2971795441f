//! Sums that wait in the second-level cache: for tiles that multiply faster than that cache gives them operands.
//!
//! An instruction that multiplies whole tiles ([`amx`](super::amx)) does in 16 cycles what takes 128 by vectors, so
//! the panel of rhs that all tiles of rows read must come from the first-level cache. It does if it has few
//! steps. The sums of some columns go to memory of their own after each such sub-block of steps, and from there
//! to the result when all steps of the block are done.

use std::ops::Range;

use super::block::SumRows;
use super::cut::{chunks, even_parts};
use super::engine::{Product, ProductBlock, Sink};
use super::tile::{BLOCK, Column, ColumnArgs};
use crate::kernels::bytes::Plain;
use crate::kernels::scratch;

/// Steps of a sub-block: a panel of rhs, of 32 words each step, takes a third of a first-level cache of 48 KB,
/// and so does a tile's part of lhs.
const SUB_STEPS: usize = 128;
/// Columns whose sums are kept, and tiles of rows below each other: more tiles use a panel of rhs more often while
/// it is in the first-level cache, but their sums, and rows of lhs, have to stay in the second. (1024 by 1024 by 1024
/// `bf16`, L2 of 2 MB, ms: 2 tiles 2.1, 4 1.8, 8 1.6, 16 1.9; with 128 columns 2.1, 1.9, 1.65, 1.8.)
const COLUMNS: usize = 256;
pub(super) const COLUMN_TILES: usize = 8;
/// Tiles of rows below each other that gain nothing: rhs comes from where it was packed in any case.
const FEW_TILES: usize = 2;
/// Words between rows of sums, so that those of a tile, 1024 bytes apart, do not fall into a few sets of the
/// first-level cache.
const ROW_GAP: usize = 32;
/// Rows whose places are found at once.
const ROWS_AT_ONCE: usize = 64;

/// Whole blocks of steps, about [`SUB_STEPS`] each.
fn sub_blocks(steps: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = (steps + SUB_STEPS / 2) / SUB_STEPS;
    chunks(0..steps, steps.div_ceil(parts.max(1)).next_multiple_of(BLOCK))
}

/// Sums of some rows and columns.
struct Sums<'a, A> {
    /// Rows, `step` apart.
    sums: &'a mut [A],
    step: usize,
    rows: Range<usize>,
    cols: Range<usize>,
}

impl<A: Copy> Sums<'_, A> {
    /// The sums of a row.
    fn row(&mut self, row: usize) -> &mut [A] {
        &mut self.sums[(row - self.rows.start) * self.step..][..self.cols.len()]
    }

    /// Calls `copy` with the sums of each row and their place in the result.
    ///
    /// # Safety
    /// The place of these rows and columns may be read and written, and nothing else accesses it.
    unsafe fn with_place(&mut self, place: &SumRows<'_, A>, copy: impl Fn(&mut [A], &mut [A])) {
        for rows in chunks(self.rows.clone(), ROWS_AT_ONCE) {
            let mut offsets = [0; ROWS_AT_ONCE];
            let offsets = &mut offsets[..rows.len()];
            place.rows.offsets(rows.start, offsets);
            for (row, &offset) in rows.zip(&*offsets) {
                let start = place.origin.get().wrapping_add(offset + self.cols.start);
                // SAFETY: the caller's promise; the columns of a row are neighbours.
                let out = unsafe { std::slice::from_raw_parts_mut(start, self.cols.len()) };
                copy(self.row(row), out);
            }
        }
    }
}

impl<W: Plain + Default, A: Plain + Default> Product<'_, W, A> {
    /// The function for columns of tiles, if steps should go by in sub-blocks.
    pub(super) fn sub_block_column(&self) -> Option<Column<W, A>> {
        let few_rows = FEW_TILES * self.tiled.format().rows();
        let is_worth_it = || self.rows > few_rows && sub_blocks(self.steps).nth(1).is_some();
        self.tiled.column().filter(|_| is_worth_it())
    }

    /// Whether sums leave the memory that they wait in only when they are complete.
    pub(super) fn completes_sums(&self) -> bool {
        self.sub_block_column().is_some() && self.steps <= self.tiled.format().most_steps
    }

    /// Computes a block of rows and columns of a part. `column` computes tiles, and `panel` tells where rhs begins
    /// for the panel of a column.
    ///
    /// # Safety
    /// As for [`Product::run`], for the block; the panels may be read.
    pub(super) unsafe fn run_sub_blocks(
        &self,
        part: &ProductBlock<'_, A>,
        rows: Range<usize>,
        cols: Range<usize>,
        (column, panel): (Column<W, A>, &dyn Fn(usize) -> *const W),
    ) {
        let format = self.tiled.format();
        let (width, steps) = (format.width(), part.steps.len());
        let (tiles, height) = even_parts(rows.len(), format.rows());
        scratch::with(tiles * height * steps, |lhs: &mut [W]| {
            let items = chunks(rows.clone(), height);
            for (items, panel) in items.zip(lhs.chunks_exact_mut(height * steps)) {
                let steps = part.steps.start..part.steps.end.min(self.steps);
                self.lhs.pack_blocks(items, steps, height, panel);
            }
            let session = self.tiled.session();
            for group in chunks(cols.clone(), COLUMNS) {
                let step = group.len().next_multiple_of(width) + ROW_GAP;
                // (Tiles have one height, so that their registers are configured once: the last may have rows
                // that do not count.)
                scratch::with(tiles * height * step, |sums: &mut [A]| {
                    let mut sums = Sums { sums, step, rows: rows.clone(), cols: group.clone() };
                    if part.add {
                        // SAFETY: the caller's promise; the sums of the group are this task's.
                        unsafe {
                            sums.with_place(&part.place, |sums, out| sums.copy_from_slice(out));
                        }
                    }
                    for sub in sub_blocks(steps) {
                        for first in group.clone().step_by(width) {
                            let args = ColumnArgs {
                                session: &*session,
                                tiles,
                                height,
                                steps: sub.clone(),
                                lhs: lhs.as_ptr(),
                                packed_steps: steps,
                                rhs: panel(first).wrapping_add(sub.start * width),
                                sums: sums.sums[first - group.start..].as_mut_ptr(),
                                sums_step: step,
                                add: part.add || sub.start > 0,
                            };
                            // SAFETY: the caller's promise for rhs; lhs has these steps of all tiles, and there
                            // is a row of sums for each of their rows; `self.tiled` proves the features.
                            unsafe { column(&args) };
                        }
                    }
                    // SAFETY: the caller's promise; the sums of the group are this task's.
                    unsafe { self.pass_on(part, &mut sums) };
                });
            }
        });
    }

    /// Takes sums of all steps of a block to where they go.
    ///
    /// # Safety
    /// As for [`Product::run`], for these sums.
    unsafe fn pass_on(&self, part: &ProductBlock<'_, A>, sums: &mut Sums<'_, A>) {
        let (rows, cols) = (sums.rows.clone(), sums.cols.clone());
        if let Sink::Function(take) = self.sink
            && part.last
        {
            rows.for_each(|row| take(row, cols.start, sums.row(row)));
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            sums.with_place(&part.place, |sums, out| out.copy_from_slice(sums));
            if part.last {
                self.finish(part, rows, cols);
            }
        }
    }
}
