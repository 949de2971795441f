//! Batches of small products.
//!
//! What [`engine`](super::engine) decides for a product takes longer than the multiplications of a
//! small one. Here it is decided once for the batch: the tiles of one product are those of all, but
//! for where they begin.

use std::ops::Range;

use super::cut::{Tiles, chunks};
use super::dots::{Dots, FEW};
use super::engine::Shared;
use super::operand::Operand;
use super::pack::{Block, Items, MAX_WIDTH, check_bounds};
use super::tile::{MAX_ROWS, Run, Tile, TileArgs, Tiled};
use super::{Contraction, Out};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Multiplications of a product that is small, and its steps at most.
const MAX_WORK: usize = 1 << 17;
const MAX_STEPS: usize = 512;
/// Multiplications of a product with one row that is small.
const MAX_ROW_WORK: usize = 1 << 10;
/// The fewest steps with which products of few rows or few columns are vectorised along the steps.
const DOT_STEPS: usize = 8;
/// Multiplications that are worth a task.
const TASK_WORK: usize = 1 << 18;

/// What is the same for all products of a batch.
struct Shape {
    rows: usize,
    cols: usize,
    steps: usize,
    /// From row to row and from step to step of lhs.
    lhs: [usize; 2],
    /// From column to column and from step to step of rhs, if these are even.
    rhs: Option<[usize; 2]>,
    /// From row to row of the result.
    out: usize,
}

impl Shape {
    /// `None` if the indices of a dimension are not evenly spread.
    fn of(product: &Contraction) -> Option<Self> {
        let (rows, cols, steps) = (&product.lhs_rows, &product.rhs_cols, &product.lhs_steps);
        Some(Shape {
            rows: rows.len(),
            cols: cols.len(),
            steps: steps.len(),
            lhs: [rows.stride()?, steps.stride()?],
            rhs: cols.stride().zip(product.rhs_steps.stride()).map(|(col, step)| [col, step]),
            out: product.out_rows.stride()?,
        })
    }

    fn work(&self) -> usize {
        self.rows.saturating_mul(self.cols).saturating_mul(self.steps)
    }

    fn is_small(&self) -> bool {
        (1..=MAX_WORK).contains(&self.work()) && self.steps <= MAX_STEPS
    }

    /// Whether one operand has few items, and both are best read along their steps.
    fn runs_along_steps(&self) -> bool {
        let along = self.lhs[1] == 1 && self.rhs.is_some_and(|[_, step]| step == 1);
        along && (self.rows <= FEW || self.cols <= FEW) && self.steps >= DOT_STEPS
    }
}

/// Some columns of a product, a tile wide.
struct Group {
    cols: Range<usize>,
    /// Where it begins, and how far its steps are apart, in rhs or its copy.
    rhs: usize,
    rhs_step: usize,
}

/// Where one tile of each product of a batch begins.
struct TilePosition<'g, W, A> {
    tile: Tile<W, A>,
    rows: usize,
    vecs: usize,
    group: &'g Group,
    lhs: usize,
    out: usize,
    last_lanes: usize,
}

impl Contraction {
    /// Computes the products, and gives the number of each to `done`, if they are small and there
    /// are several; otherwise returns false.
    ///
    /// # Safety
    /// The result lies in `out`, which nothing else accesses; no two of its elements are one.
    pub(super) unsafe fn run_small<W: Plain + Default, A>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        [lhs, rhs]: [&dyn Operand<W>; 2],
        out: Out<'_, A>,
        done: &(dyn Fn(usize) + Sync),
        threads: Threads<'_>,
    ) -> bool {
        let (count, format) = (self.batch[0].len(), tiled.format());
        if count < 2 || !format.in_place {
            return false;
        }
        let Some(shape) = Shape::of(self).filter(Shape::is_small) else { return false };
        let (Some((lhs, lhs_start)), Some(out)) = (lhs.elements(), out.places.sums()) else {
            return false;
        };
        let Some(lhs_words) = lhs.words() else { return false };
        let [lhs_batch, rhs_batch, out_batch] = &self.batch;
        check_bounds(lhs.count(), lhs_start + lhs_batch.last(), &self.lhs_rows, &self.lhs_steps);
        let elements = rhs.elements();
        if let Some((elements, start)) = elements {
            check_bounds(
                elements.count(),
                start + rhs_batch.last(),
                &self.rhs_cols,
                &self.rhs_steps,
            );
        }
        let rhs_start = elements.map_or(0, |(_, start)| start);
        let rhs_words = elements.and_then(|(elements, _)| elements.words());
        let all_at = |batch| {
            let lhs = lhs_words.as_ptr().wrapping_add(lhs_start + lhs_batch.offset(batch));
            (
                lhs,
                rhs_start + rhs_batch.offset(batch),
                out.get().wrapping_add(out_batch.offset(batch)),
            )
        };
        let grain = TASK_WORK / shape.work();

        if let (Some(words), Some(loops), true) =
            (rhs_words, tiled.loops(), shape.runs_along_steps())
        {
            let (rhs_cols, lhs_rows) = (&self.rhs_cols, &self.lhs_rows);
            let few_is_lhs = shape.rows <= FEW;
            threads.for_ranges(count, grain, &|batches| {
                for batch in batches {
                    let (lhs, rhs_start, out) = all_at(batch);
                    let lhs = (Shared(lhs.cast_mut()), lhs_rows, shape.rows);
                    let rhs = words.as_ptr().wrapping_add(rhs_start).cast_mut();
                    let rhs = (Shared(rhs), rhs_cols, shape.cols);
                    let (few, many) = if few_is_lhs { (lhs, rhs) } else { (rhs, lhs) };
                    let dots = Dots {
                        few: few.0,
                        few_stride: few.1.stride().unwrap_or_default(),
                        few_count: few.2,
                        many: many.0,
                        many_items: many.1,
                        many_range: 0..many.2,
                        steps: shape.steps,
                        start: Shared(out),
                        rows: &self.out_rows,
                        many_are_rows: !few_is_lhs,
                        add: false,
                    };
                    // SAFETY: that the operands of the whole batch lie in memory was checked above;
                    // the caller promises that the result may be written, each product by one task.
                    unsafe { loops.dots(&dots) };
                    done(batch);
                }
            });
            return true;
        }
        if shape.rows == 1 && shape.work() > MAX_ROW_WORK {
            return false;
        }

        // rhs is read where it lies if columns are neighbours, else from a copy, group after group.
        let in_place = rhs_words.zip(shape.rhs).filter(|(_, strides)| strides[0] == 1);
        let mut copied = 0;
        let groups: Vec<Group> = chunks(0..shape.cols, format.width())
            .map(|cols| {
                if let Some((_, [_, rhs_step])) = in_place {
                    return Group { rhs: cols.start, rhs_step, cols };
                }
                let (rhs, rhs_step) = (copied, cols.len().next_multiple_of(format.lanes));
                copied += rhs_step * shape.steps;
                Group { cols, rhs, rhs_step }
            })
            .collect();
        let tiles = || Tiles::new(0..shape.rows, format.heights);
        let places = groups.iter().flat_map(|group| {
            let vecs = group.cols.len().div_ceil(format.lanes);
            let (lhs_row, out_row) = (shape.lhs[0], shape.out);
            tiles().map(move |rows| TilePosition {
                tile: tiled.tile(rows.len(), vecs, false),
                rows: rows.len(),
                vecs,
                group,
                lhs: rows.start * lhs_row,
                out: rows.start * out_row + group.cols.start,
                last_lanes: group.cols.len() - (vecs - 1) * format.lanes,
            })
        });
        let places: Vec<TilePosition<'_, W, A>> = places.collect();
        let rows_at = |stride| std::array::from_fn::<usize, MAX_ROWS, _>(|i| i * stride);
        let (lhs_rows, out_rows) = (rows_at(shape.lhs[0]), rows_at(shape.out));
        let runs = [Run { offset: 0, len: shape.steps }];
        let even = elements.zip(shape.rhs).map(|((elements, _), strides)| (elements, strides));
        let offsets = even.map(|(_, [col, _])| std::array::from_fn(|i| i * col));
        let copy_rhs = |batch, start, copy: &mut [W]| {
            let (Some((elements, [col, stride])), Some(offsets)) = (even, &offsets) else {
                let (start, steps) = (rhs_batch.offset(batch), 0..shape.steps);
                return rhs.with_source(isa, start, &self.rhs_cols, &self.rhs_steps, &mut |rhs| {
                    for group in &groups {
                        let panel = &mut copy[group.rhs..][..group.rhs_step * shape.steps];
                        rhs.pack(group.cols.clone(), steps.clone(), group.rhs_step, panel);
                    }
                });
            };
            let offsets: &[usize; MAX_WIDTH] = offsets;
            for group in &groups {
                let start = start + group.cols.start * col;
                let items = Items::Scattered(&offsets[..group.cols.len()]);
                let (steps, pitch) = (shape.steps, group.rhs_step);
                let block = Block { start, items, steps, stride, pitch, padding: 0 };
                elements.copy(isa, &block, &mut copy[group.rhs..]);
            }
        };

        threads.for_ranges(count, grain, &|batches| {
            let session = tiled.session();
            scratch::with(copied, |copy: &mut [W]| {
                for batch in batches {
                    let (lhs, rhs_start, out) = all_at(batch);
                    let rhs_words = match in_place {
                        Some((words, _)) => words.as_ptr().wrapping_add(rhs_start),
                        None => {
                            copy_rhs(batch, rhs_start, copy);
                            copy.as_ptr()
                        }
                    };
                    for place in &places {
                        let rhs = rhs_words.wrapping_add(place.group.rhs);
                        let args = TileArgs {
                            session: &*session,
                            rows: place.rows,
                            vecs: place.vecs,
                            lhs: lhs.wrapping_add(place.lhs),
                            lhs_rows: &lhs_rows,
                            runs: &runs,
                            lhs_step: shape.lhs[1],
                            rhs,
                            rhs_step: place.group.rhs_step,
                            out: out.wrapping_add(place.out),
                            out_rows: &out_rows,
                            last_lanes: place.last_lanes,
                            add: false,
                            ahead: rhs.cast(),
                            ahead_step: 0,
                        };
                        // SAFETY: `tiled` proves the features; the batch's operands were checked
                        // to lie in memory, and a copy has all steps of its group; the caller
                        // promises that the result may be written, each product by one task.
                        unsafe { (place.tile)(&args) };
                    }
                    done(batch);
                }
            });
        });
        true
    }
}
