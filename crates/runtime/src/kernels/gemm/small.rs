//! Batches of small products.
//!
//! What [`engine`](super::engine) decides for a product takes longer than the multiplications of a
//! small one. Here it is decided once for the batch: the tiles of one product are those of all, but
//! for where they begin.

use std::ops::Range;

use super::engine::{Tiles, chunks};
use super::isa::Isa;
use super::operand::Operand;
use super::pack::{Block, Items, MAX_WIDTH, check_bounds};
use super::tile::{MAX_ROWS, Run, Tile, TileArgs, Tiled};
use super::{Contraction, Out};
use crate::Threads;
use crate::kernels::scratch;

/// Multiplications of a product that is small, and its steps at most.
const MOST_WORK: usize = 1 << 17;
const MOST_STEPS: usize = 512;
/// From so many multiplications on, products with one row, or with so few items in an operand that
/// the other is best read along its steps, go to loops made for that.
const FEW_WORK: usize = 1 << 10;
const FEW: usize = 4;
/// Multiplications that are worth a task.
const TASK_WORK: usize = 1 << 18;

/// What is the same for all products of a batch.
struct Shape {
    rows: usize,
    cols: usize,
    steps: usize,
    /// From row to row and from step to step of lhs.
    lhs: [usize; 2],
    /// From column to column and from step to step of rhs.
    rhs: [usize; 2],
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
            rhs: [cols.stride()?, product.rhs_steps.stride()?],
            out: product.out_rows.stride()?,
        })
    }

    fn work(&self) -> usize {
        self.rows.saturating_mul(self.cols).saturating_mul(self.steps)
    }

    /// Whether this is the way to compute such products.
    fn is_small(&self) -> bool {
        let along = self.rows <= FEW && self.rhs[1] == 1 || self.cols <= FEW && self.lhs[1] == 1;
        let has_loops = along || self.rows == 1;
        let most = if has_loops { FEW_WORK } else { MOST_WORK };
        (1..=most).contains(&self.work()) && self.steps <= MOST_STEPS
    }
}

/// Some columns of a product, a tile wide.
struct Group {
    cols: Range<usize>,
    /// Where it begins, and how far its steps are apart, in rhs or its copy.
    rhs: usize,
    rhs_step: usize,
}

/// A tile of each product: where it begins.
struct Place<'g, S: Tiled> {
    tile: Tile<S>,
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
    pub(super) unsafe fn run_small<S: Tiled>(
        &self,
        (simd, isa): (S, Isa),
        [lhs, rhs]: [&dyn Operand<S::Word>; 2],
        out: Out<'_, S::Acc>,
        done: &(dyn Fn(usize) + Sync),
        threads: Threads<'_>,
    ) -> bool {
        let count = self.batch[0].len();
        if count < 2 || !S::IN_PLACE {
            return false;
        }
        let Some(shape) = Shape::of(self).filter(Shape::is_small) else { return false };
        let (Some((lhs, lhs_start)), Some((rhs, rhs_start)), Some(out)) =
            (lhs.elements(), rhs.elements(), out.places.sums())
        else {
            return false;
        };
        let Some(lhs_words) = lhs.words() else { return false };
        let [lhs_batch, rhs_batch, out_batch] = &self.batch;
        let (lhs_last, rhs_last) = (lhs_start + lhs_batch.last(), rhs_start + rhs_batch.last());
        check_bounds(lhs.count(), lhs_last, &self.lhs_rows, &self.lhs_steps);
        check_bounds(rhs.count(), rhs_last, &self.rhs_cols, &self.rhs_steps);

        // rhs is read where it lies if columns are neighbours, else from a copy, group after group.
        let in_place = rhs.words().filter(|_| shape.rhs[0] == 1);
        let mut copied = 0;
        let groups: Vec<Group> = chunks(0..shape.cols, S::LANES * S::VECS)
            .map(|cols| {
                if in_place.is_some() {
                    return Group { rhs: cols.start, rhs_step: shape.rhs[1], cols };
                }
                let (rhs, rhs_step) = (copied, cols.len().next_multiple_of(S::LANES));
                copied += rhs_step * shape.steps;
                Group { cols, rhs, rhs_step }
            })
            .collect();
        let tiles = || Tiles::new(0..shape.rows, S::HEIGHTS);
        let places = groups.iter().flat_map(|group| {
            let vecs = group.cols.len().div_ceil(S::LANES);
            let (lhs_row, out_row) = (shape.lhs[0], shape.out);
            tiles().map(move |rows| Place {
                tile: simd.tile(rows.len(), vecs, false),
                rows: rows.len(),
                vecs,
                group,
                lhs: lhs_start + rows.start * lhs_row,
                out: rows.start * out_row + group.cols.start,
                last_lanes: group.cols.len() - (vecs - 1) * S::LANES,
            })
        });
        let places: Vec<Place<'_, S>> = places.collect();
        let rows_at = |stride| std::array::from_fn::<usize, MAX_ROWS, _>(|i| i * stride);
        let (lhs_rows, out_rows) = (rows_at(shape.lhs[0]), rows_at(shape.out));
        let col_offsets: [usize; MAX_WIDTH] = std::array::from_fn(|i| i * shape.rhs[0]);
        let runs = [Run { offset: 0, len: shape.steps }];

        threads.for_ranges(count, TASK_WORK / shape.work(), &|batches| {
            let session = simd.session();
            scratch::with(copied, |copy: &mut [S::Word]| {
                for batch in batches {
                    let rhs_start = rhs_start + rhs_batch.offset(batch);
                    let rhs_words = match in_place {
                        Some(words) => words.as_ptr().wrapping_add(rhs_start),
                        None => {
                            for group in &groups {
                                let start = rhs_start + group.cols.start * shape.rhs[0];
                                let items = Items::Scattered(&col_offsets[..group.cols.len()]);
                                let ([_, stride], pitch) = (shape.rhs, group.rhs_step);
                                let steps = shape.steps;
                                let block =
                                    Block { start, items, steps, stride, pitch, padding: 0 };
                                rhs.copy(isa, &block, &mut copy[group.rhs..]);
                            }
                            copy.as_ptr()
                        }
                    };
                    let lhs = lhs_words.as_ptr().wrapping_add(lhs_batch.offset(batch));
                    let out = out.get().wrapping_add(out_batch.offset(batch));
                    for place in &places {
                        let rhs = rhs_words.wrapping_add(place.group.rhs);
                        let args = TileArgs {
                            session: &session,
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
                        // SAFETY: that the operands of the whole batch lie in memory was checked
                        // above, and a copy has all steps of its group; the caller promises that
                        // the result may be written, each product by one task; `simd` proves the
                        // features.
                        unsafe { (place.tile)(&args) };
                    }
                    done(batch);
                }
            });
        });
        true
    }
}
