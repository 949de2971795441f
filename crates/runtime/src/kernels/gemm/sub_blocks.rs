//! Sums that wait in the second-level cache: for tiles that multiply faster than that cache gives them operands.
//!
//! An instruction that multiplies whole tiles ([`amx`](super::amx)) does in 16 cycles what takes 128 by vectors, so
//! the panel of rhs that all tiles of rows read must come from the first-level cache. It does if it has few
//! steps. The sums of some columns go to memory of their own, in the order of tiles, after each such
//! sub-block of steps, and from there to the result when all steps of the block are done.

use std::ops::Range;

use smallvec::SmallVec;

use super::block::SumRows;
use super::cut::{Tiles, chunks};
use super::engine::{Product, ProductBlock, Sink};
use super::tile::{Column, ColumnArgs};
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Steps of a sub-block: a panel of rhs, of 32 words each step, takes a third of a first-level cache of 48 KB,
/// and so does a tile's part of lhs.
pub(super) const SUB_STEPS: usize = 128;
/// Columns whose sums are kept: with those of some hundred rows they should take a quarter of the second-level
/// cache at most.
const COLUMNS: usize = 256;

/// Sums of some rows and columns, panel after panel of `width` columns, each with all rows.
struct Sums<'a, A> {
    sums: &'a mut [A],
    rows: Range<usize>,
    cols: Range<usize>,
    width: usize,
}

impl<A: Copy> Sums<'_, A> {
    /// The sums of a panel.
    fn panel(&mut self, panel: usize) -> &mut [A] {
        let len = self.rows.len() * self.width;
        &mut self.sums[panel * len..][..len]
    }

    /// Copies a row's columns from or to `part`.
    #[inline(always)]
    fn with_row(&mut self, row: usize, part: &mut [A], copy: impl Fn(&mut [A], &mut [A])) {
        let (row, count) = (row - self.rows.start, self.rows.len());
        for (panel, part) in part.chunks_mut(self.width).enumerate() {
            let sums = &mut self.sums[(panel * count + row) * self.width..][..part.len()];
            copy(sums, part);
        }
    }

    /// Copies sums between here and the place of the result.
    ///
    /// # Safety
    /// The place of these rows and columns may be read and written, and nothing else accesses it.
    unsafe fn with_place(&mut self, place: &SumRows<'_, A>, copy: impl Fn(&mut [A], &mut [A])) {
        let (isa, rows) = (Isa::best(), self.rows.clone());
        isa.run(
            #[inline(always)]
            || {
                for row in rows {
                    let offset = place.rows.offset(row) + self.cols.start;
                    let start = place.origin.get().wrapping_add(offset);
                    // SAFETY: the caller's promise; the columns of a row are neighbours.
                    let part = unsafe { std::slice::from_raw_parts_mut(start, self.cols.len()) };
                    self.with_row(row, part, &copy);
                }
            },
        );
    }
}

/// Copies a row of a panel. Nearly all are those of a whole panel; knowing it spares a call.
#[inline(always)]
fn copy<A: Copy>(from: &[A], to: &mut [A]) {
    match (<&[A; 32]>::try_from(from), <&mut [A; 32]>::try_from(&mut *to)) {
        (Ok(from), Ok(to)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}

impl<W: Plain + Default, A: Plain + Default> Product<'_, W, A> {
    /// Whether all steps are one block of several sub-blocks, so that sums are complete when they leave their
    /// memory.
    pub(super) fn has_sub_blocks(&self) -> bool {
        let format = self.tiled.format();
        self.tiled.column().is_some() && (SUB_STEPS + 1..=format.most_steps).contains(&self.steps)
    }

    /// Computes tiles of `cols` in sub-blocks of steps. `lhs` has the blocks of the tiles' rows;
    /// `column` computes tiles, and `panel` tells where rhs begins for the panel of a column.
    ///
    /// # Safety
    /// As for [`Product::run`], for the tiles and columns; the panels may be read.
    pub(super) unsafe fn run_sub_blocks(
        &self,
        part: &ProductBlock<'_, A>,
        lhs: &[W],
        tiles: Tiles,
        cols: Range<usize>,
        (column, panel): (Column<W, A>, &dyn Fn(usize) -> *const W),
    ) {
        let format = self.tiled.format();
        let (width, rows, steps) = (format.width(), tiles.rows.clone(), part.steps.len());
        let heights: SmallVec<[usize; 16]> = tiles.map(|tile| tile.len()).collect();
        assert!(lhs.len() >= rows.len() * steps, "lhs is packed for these rows and steps");
        let session = self.tiled.session();
        for group in chunks(cols, COLUMNS) {
            let panels = group.len().div_ceil(width);
            scratch::with(panels * rows.len() * width, |sums: &mut [A]| {
                let mut sums = Sums { sums, rows: rows.clone(), cols: group.clone(), width };
                if part.add {
                    // SAFETY: the caller's promise; the sums of the group are this task's.
                    unsafe {
                        sums.with_place(
                            &part.place,
                            #[inline(always)]
                            |sums, out| copy(out, sums),
                        )
                    };
                }
                for sub in chunks(0..steps, SUB_STEPS) {
                    for (i, first) in group.clone().step_by(width).enumerate() {
                        let args = ColumnArgs {
                            session: &*session,
                            heights: &heights,
                            steps: sub.clone(),
                            lhs: lhs.as_ptr(),
                            packed_steps: steps,
                            rhs: panel(first).wrapping_add(sub.start * width),
                            sums: sums.panel(i).as_mut_ptr(),
                            add: part.add || sub.start > 0,
                        };
                        // SAFETY: the caller's promise for rhs; lhs has these steps of all rows, as just checked, and
                        // the panel the sums of all rows; `self.tiled` proves the features.
                        unsafe { column(&args) };
                    }
                }
                // SAFETY: the caller's promise; the sums of the group are this task's.
                unsafe { self.pass_on(part, &mut sums) };
            });
        }
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
            let mut row_sums = [A::default(); COLUMNS];
            let row_sums = &mut row_sums[..cols.len()];
            let isa = Isa::best();
            for row in rows {
                isa.run(
                    #[inline(always)]
                    || {
                        sums.with_row(
                            row,
                            row_sums,
                            #[inline(always)]
                            |sums, row| copy(sums, row),
                        )
                    },
                );
                take(row, cols.start, row_sums);
            }
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            sums.with_place(
                &part.place,
                #[inline(always)]
                |sums, out| copy(sums, out),
            );
            if part.last {
                self.finish(part, rows, cols);
            }
        }
    }
}
