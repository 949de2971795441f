//! Batches of small products.
//!
//! What [`engine`](super::engine) decides for a product takes longer than the multiplications of a
//! small one. Here it is decided once for the batch: the tiles of one product are those of all, but
//! for where they begin.

use std::ops::Range;

use super::axis::Axis;
use super::cut::{Tiles, chunks};
use super::dots::{Dots, Line, most_few, words_ahead};
use super::engine::Shared;
use super::operand::Operand;
use super::pack::{Block, Elements, Items, MAX_WIDTH, check_bounds};
use super::simd::Loops;
use super::sweep;
use super::tile::{Ahead, MAX_ROWS, Run, Tile, TileArgs, Tiled};
use super::{Contraction, Out, TASK_WORK};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Multiplications of a product that is small, and its steps at most.
const MAX_WORK: usize = 1 << 17;
const MAX_STEPS: usize = 512;
/// Multiplications of a product with one row that is small, and of one with a few rows.
const MAX_ROW_WORK: usize = 1 << 10;
const MAX_ROWS_WORK: usize = 1 << 14;
/// The fewest steps with which products of few rows or few columns are vectorised along the steps.
const DOT_STEPS: usize = 8;
/// Rows for each column from which on columns are turned to lie along their steps.
const MIN_TURNED_ROWS: usize = 4;
/// The fewest steps of these, and of the same times the lanes of a vector.
const MIN_TURNED_STEPS: usize = 16;
const MIN_TURNED_VECTORS: usize = 256;
/// Products along their steps that are computed one after the other, before what follows each.
const AT_ONCE: usize = 32;

/// What is the same for all products of a batch.
struct BatchShape {
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

impl BatchShape {
    /// `None` if the indices of a dimension are not evenly spread.
    fn of(product: &Contraction) -> Option<Self> {
        let (rows, cols, steps) = (&product.lhs_rows, &product.rhs_cols, &product.lhs_steps);
        Some(BatchShape {
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
        let most = most_few(self.steps);
        along && (self.rows <= most || self.cols <= most) && self.steps >= DOT_STEPS
    }

    /// Whether there are few columns, which would leave most of a vector's `lanes` empty, and are best turned to lie along
    /// their steps as lhs does.
    fn has_columns_to_turn(&self, lanes: usize) -> bool {
        let lies_across = self.rhs.is_some_and(|[_, step]| step > 1);
        let are_few = self.cols <= most_few(self.steps)
            && 2 * self.cols <= lanes
            && self.cols * MIN_TURNED_ROWS <= self.rows;
        let are_long = self.steps >= MIN_TURNED_STEPS.max(MIN_TURNED_VECTORS / lanes);
        self.lhs[1] == 1 && lies_across && are_few && are_long
    }

    /// Whether the matrix is best read by rows, by a loop of its own for each product.
    fn is_swept(&self) -> bool {
        let is_by_rows = self.rhs.is_some_and(|[col, _]| col == 1);
        match self.rows {
            1 => self.work() > MAX_ROW_WORK,
            rows => rows <= sweep::FEW && is_by_rows && self.work() > MAX_ROWS_WORK,
        }
    }
}

/// Some columns of a product, a tile wide.
struct ColumnGroup {
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
    group: &'g ColumnGroup,
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
        if self.batch[0].len() < 2 || !tiled.format().in_place {
            return false;
        }
        let Some(shape) = BatchShape::of(self).filter(BatchShape::is_small) else { return false };
        let (Some((lhs, lhs_start)), Some(out)) = (lhs.elements(), out.places.sums()) else {
            return false;
        };
        let Some(lhs_words) = lhs.words() else { return false };
        let [lhs_batch, rhs_batch, _] = &self.batch;
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
        let batch = SmallBatch {
            of: self,
            shape,
            tiled,
            isa,
            lhs: (lhs_words, lhs_start),
            rhs,
            rhs_start: elements.map_or(0, |(_, start)| start),
            rhs_elements: elements.map(|(elements, _)| elements),
            out,
            done,
        };
        let rhs_words = batch.rhs_elements.and_then(|elements| elements.words());
        if let (Some(words), Some(loops), true) =
            (rhs_words, tiled.loops(), batch.shape.runs_along_steps())
        {
            // SAFETY: the caller's promise; that operands lie in memory was checked above.
            unsafe { batch.run_along_steps(words, loops, threads) };
            return true;
        }
        if let (Some(words), Some(loops), true) =
            (rhs_words, tiled.loops(), batch.shape.has_columns_to_turn(tiled.format().lanes))
        {
            // SAFETY: the caller's promise; that operands lie in memory was checked above.
            unsafe { batch.run_turned(words, loops, threads) };
            return true;
        }
        if batch.shape.is_swept() {
            return false;
        }
        // SAFETY: the caller's promise; that operands lie in memory was checked above.
        unsafe { batch.run_tiles(rhs_words, threads) };
        true
    }
}

/// A batch of small products whose operands lie in memory.
struct SmallBatch<'a, W, A> {
    of: &'a Contraction,
    shape: BatchShape,
    tiled: &'a dyn Tiled<W, A>,
    isa: Isa,
    /// lhs, and where the first product's begins in it.
    lhs: (&'a [W], usize),
    rhs: &'a dyn Operand<W>,
    /// The elements of rhs, if each becomes a word, …
    rhs_elements: Option<&'a dyn Elements<W>>,
    /// … and where the first product's begin.
    rhs_start: usize,
    out: Shared<A>,
    done: &'a (dyn Fn(usize) + Sync),
}

impl<W: Plain + Default, A> SmallBatch<'_, W, A> {
    /// Where a product's lhs and result begin, and its rhs among the elements.
    #[inline(always)]
    fn at(&self, batch: usize) -> (*const W, usize, *mut A) {
        let [lhs_batch, rhs_batch, out_batch] = &self.of.batch;
        let (lhs, start) = self.lhs;
        (
            lhs.as_ptr().wrapping_add(start + lhs_batch.offset(batch)),
            self.rhs_start + rhs_batch.offset(batch),
            self.out.get().wrapping_add(out_batch.offset(batch)),
        )
    }

    /// The number of products.
    fn count(&self) -> usize {
        self.of.batch[0].len()
    }

    /// The products of a task.
    fn grain(&self) -> usize {
        TASK_WORK / self.shape.work()
    }

    /// The steps of a product, which are neighbours in both operands.
    fn line(&self) -> [Line; 1] {
        [Line { few: 0, many: 0, steps: self.shape.steps }]
    }

    /// One product along its steps: the rows of the operand with few items, their distance and number, and the items of the
    /// other, which are rows of the result.
    fn dots<'d>(
        &'d self,
        (few, few_stride, few_count): (Shared<W>, usize, usize),
        (many, many_items, many_count): (Shared<W>, &'d Axis, usize),
        lines: &'d [Line],
        start: Shared<A>,
    ) -> Dots<'d, W, A> {
        Dots {
            few,
            few_stride,
            few_count,
            many,
            many_items,
            many_range: 0..many_count,
            ahead: words_ahead::<W>(many_items, self.count() * many_count, self.shape.steps),
            lines,
            start,
            rows: &self.of.out_rows,
            many_are_rows: true,
            add: false,
            products: 1,
            between: [0; 3],
        }
    }

    /// Computes products of which one operand has few items, along their steps.
    ///
    /// # Safety
    /// As for [`Contraction::run_small`]; all operands lie in memory, rhs in `rhs`.
    unsafe fn run_along_steps(&self, rhs: &[W], loops: &dyn Loops<W, A>, threads: Threads<'_>) {
        let (of, shape) = (self.of, &self.shape);
        let few_is_lhs = shape.rows <= most_few(shape.steps);
        // Several at a time, if they are evenly spread.
        let [lhs_between, rhs_between, out_between] = of.batch.each_ref().map(Axis::stride);
        let between = lhs_between.zip(rhs_between).zip(out_between);
        let (at_once, between) = match between {
            Some(((lhs, rhs), out)) if few_is_lhs => (AT_ONCE, [lhs, rhs, out]),
            Some(((lhs, rhs), out)) => (AT_ONCE, [rhs, lhs, out]),
            None => (1, [0; 3]),
        };
        threads.for_ranges(self.count(), self.grain(), &|batches| {
            for batches in chunks(batches, at_once) {
                let (lhs, rhs_start, out) = self.at(batches.start);
                let lhs = (Shared(lhs.cast_mut()), &of.lhs_rows, shape.rows);
                let rhs = rhs.as_ptr().wrapping_add(rhs_start).cast_mut();
                let rhs = (Shared(rhs), &of.rhs_cols, shape.cols);
                let (few, many) = if few_is_lhs { (lhs, rhs) } else { (rhs, lhs) };
                let few = (few.0, few.1.stride().unwrap_or_default(), few.2);
                let lines = self.line();
                let one = self.dots(few, many, &lines, Shared(out));
                let many_are_rows = !few_is_lhs;
                let dots = Dots { many_are_rows, products: batches.len(), between, ..one };
                // SAFETY: the caller's promise for operands and result; each product is computed by
                // one task.
                unsafe { loops.dots(&dots) };
                batches.for_each(self.done);
            }
        });
    }

    /// Computes products with few columns along their steps, as which columns are copied.
    ///
    /// # Safety
    /// As for [`Contraction::run_small`]; all operands lie in memory, rhs in `rhs`, and evenly.
    unsafe fn run_turned(&self, rhs: &[W], loops: &dyn Loops<W, A>, threads: Threads<'_>) {
        let (of, shape) = (self.of, &self.shape);
        let [col, step] = shape.rhs.expect("columns and steps are evenly spread");
        threads.for_ranges(self.count(), self.grain(), &|batches| {
            scratch::with(shape.cols * shape.steps, |columns: &mut [W]| {
                for batch in batches {
                    let (lhs, rhs_start, out) = self.at(batch);
                    for (i, column) in columns.chunks_exact_mut(shape.steps).enumerate() {
                        let from = rhs[rhs_start + i * col..].iter().step_by(step);
                        column.iter_mut().zip(from).for_each(|(to, &word)| *to = word);
                    }
                    let few = (Shared(columns.as_mut_ptr()), shape.steps, shape.cols);
                    let many = (Shared(lhs.cast_mut()), &of.lhs_rows, shape.rows);
                    let lines = self.line();
                    let dots = self.dots(few, many, &lines, Shared(out));
                    // SAFETY: the caller's promise for operands and result; each product is computed
                    // by one task.
                    unsafe { loops.dots(&dots) };
                    (self.done)(batch);
                }
            });
        });
    }

    /// Computes products in tiles.
    ///
    /// # Safety
    /// As for [`Contraction::run_small`]; all operands lie in memory, rhs in `rhs_words` if that is
    /// something.
    unsafe fn run_tiles(&self, rhs_words: Option<&[W]>, threads: Threads<'_>) {
        let shape = &self.shape;
        // rhs is read where it lies if columns are neighbours, else from a copy, group after group.
        let in_place = rhs_words.zip(shape.rhs).filter(|(_, strides)| strides[0] == 1);
        let (groups, copied) = self.groups(in_place.map(|(_, [_, step])| step));
        let positions = self.positions(&groups);
        let rows_at = |stride| std::array::from_fn::<usize, MAX_ROWS, _>(|i| i * stride);
        let (lhs_rows, out_rows) = (rows_at(shape.lhs[0]), rows_at(shape.out));
        let runs = [Run { offset: 0, len: shape.steps }];
        let offsets = shape.rhs.map(|[col, _]| std::array::from_fn(|i| i * col));
        threads.for_ranges(self.count(), self.grain(), &|batches| {
            let session = self.tiled.session();
            scratch::with(copied, |copy: &mut [W]| {
                for batch in batches {
                    let (lhs, rhs_start, out) = self.at(batch);
                    let rhs_words = match in_place {
                        Some((words, _)) => words.as_ptr().wrapping_add(rhs_start),
                        None => {
                            self.copy_rhs(batch, &groups, offsets.as_ref(), copy);
                            copy.as_ptr()
                        }
                    };
                    for position in &positions {
                        let rhs = rhs_words.wrapping_add(position.group.rhs);
                        let args = TileArgs {
                            session: &*session,
                            rows: position.rows,
                            vecs: position.vecs,
                            lhs: lhs.wrapping_add(position.lhs),
                            lhs_rows: &lhs_rows,
                            runs: &runs,
                            lhs_step: shape.lhs[1],
                            rhs,
                            rhs_step: position.group.rhs_step,
                            out: out.wrapping_add(position.out),
                            out_rows: &out_rows,
                            out_is_even: true,
                            last_lanes: position.last_lanes,
                            add: false,
                            ahead: Ahead::nothing(rhs.cast()),
                        };
                        // SAFETY: `tiled` proves the features; the caller promises that operands lie
                        // in memory and the result may be written, each product by one task, and a
                        // copy has all steps of its group.
                        unsafe { (position.tile)(&args) };
                    }
                    (self.done)(batch);
                }
            });
        });
    }

    /// The columns of a product in groups, and the words that a copy of its rhs takes. `in_place` is the
    /// distance of steps if rhs is read where it lies.
    fn groups(&self, in_place: Option<usize>) -> (Vec<ColumnGroup>, usize) {
        let format = self.tiled.format();
        let mut copied = 0;
        let groups = chunks(0..self.shape.cols, format.width()).map(|cols| {
            if let Some(rhs_step) = in_place {
                return ColumnGroup { rhs: cols.start, rhs_step, cols };
            }
            let (rhs, rhs_step) = (copied, cols.len().next_multiple_of(format.lanes));
            copied += rhs_step * self.shape.steps;
            ColumnGroup { cols, rhs, rhs_step }
        });
        let groups = groups.collect();
        (groups, copied)
    }

    /// The tiles of a product.
    fn positions<'g>(&self, groups: &'g [ColumnGroup]) -> Vec<TilePosition<'g, W, A>> {
        let (format, shape) = (self.tiled.format(), &self.shape);
        let positions = groups.iter().flat_map(|group| {
            let vecs = group.cols.len().div_ceil(format.lanes);
            Tiles::new(0..shape.rows, format.heights).map(move |rows| TilePosition {
                tile: self.tiled.tile(rows.len(), vecs, false),
                rows: rows.len(),
                vecs,
                group,
                lhs: rows.start * shape.lhs[0],
                out: rows.start * shape.out + group.cols.start,
                last_lanes: group.cols.len() - (vecs - 1) * format.lanes,
            })
        });
        positions.collect()
    }

    /// Copies a product's rhs, group after group. `offsets` are those of a group's columns, if they are
    /// evenly spread.
    fn copy_rhs(
        &self,
        batch: usize,
        groups: &[ColumnGroup],
        offsets: Option<&[usize; MAX_WIDTH]>,
        copy: &mut [W],
    ) {
        let shape = &self.shape;
        let even = self.rhs_elements.zip(shape.rhs).zip(offsets);
        let Some(((elements, [col, stride]), offsets)) = even else {
            let (start, steps) = (self.of.batch[1].offset(batch), 0..shape.steps);
            let axes = (&self.of.rhs_cols, &self.of.rhs_steps);
            return self.rhs.with_source(self.isa, start, axes.0, axes.1, &mut |rhs| {
                for group in groups {
                    let panel = &mut copy[group.rhs..][..group.rhs_step * shape.steps];
                    rhs.pack(group.cols.clone(), steps.clone(), group.rhs_step, panel);
                }
            });
        };
        let (_, start, _) = self.at(batch);
        for group in groups {
            let start = start + group.cols.start * col;
            let items = Items::Scattered(&offsets[..group.cols.len()]);
            let (steps, pitch) = (shape.steps, group.rhs_step);
            let block = Block { start, items, steps, stride, pitch, padding: 0 };
            elements.copy(self.isa, &block, &mut copy[group.rhs..]);
        }
    }
}
