//! Products of matrices, and of anything else that sums products over common dimensions.
//!
//! The result is formed in tiles that stay in registers (`tile`), from operands packed in the
//! order in which tiles read them (`pack`), in blocks that fit the caches (`engine`). Packing
//! takes operands of any strides, so that none has to be transposed first.

mod amx;
mod arithmetic;
mod axis;
mod block;
mod bytes8;
pub mod conv;
pub(super) mod cut;
mod dots;
mod engine;
#[cfg(target_arch = "x86_64")]
mod few;
mod few_steps;
mod narrow;
mod number;
mod operand;
mod output;
mod pack;
mod pairs;
mod panels;
mod prepared;
pub(super) mod simd;
mod small;
mod streamed;
pub(super) mod strips;
mod sub_blocks;
mod sweep;
mod tile;
mod transpose;
mod types;

#[cfg(test)]
mod tests;

use std::ops::Range;

use self::arithmetic::{Arithmetic, Float};
use self::axis::Axis;
use self::engine::{Product, Rhs, Shared, Sink};
pub(super) use self::number::{Bf16, F16};
pub use self::number::{ProductType, Types};
use self::operand::{Each, Operand};
use self::output::Destination;
pub use self::prepared::RightLayout;
use self::tile::Tiled;
use super::bytes::{Plain, cast_mut};
use super::isa::Isa;
use crate::Threads;

/// Loops over windows of `f32`, if there are any for these instructions.
pub(super) fn window_loops(isa: Isa) -> Option<&'static dyn simd::WindowLoops<f32, f32>> {
    f32::instructions(isa).windows()
}

/// How many tasks a product or a convolution should be, so that threads share it evenly.
const TASKS: usize = 4;
/// Multiplications that are worth a task: about five microseconds of a core that makes 100 GFLOP/s. (What threads pass
/// each other takes time where cores share no cache: design/products.md, "Tasks".)
const TASK_WORK: usize = 1 << 18;

/// A dimension of a product: its size, and how many elements apart its indices are in each operand
/// and in the result. Where it does not occur, that number is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// How many indices it has.
    pub size: usize,
    /// In the left operand.
    pub lhs: usize,
    /// In the right operand.
    pub rhs: usize,
    /// In the result.
    pub out: usize,
}

/// Part of a row of the result: which of the batch, which row, and its first column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    batch: usize,
    row: usize,
    col: usize,
}

/// What is done with neighbouring rows of the result once they are complete: at which place in the
/// result they begin, and the rows.
pub type Finish<'a, T> = &'a (dyn Fn(usize, &mut [T]) + Sync);

/// What is done with the bytes of a part of a row once it is complete.
type FinishPart<'a> = &'a (dyn Fn(At, &mut [u8]) + Sync);

/// The epilogue of a product: what is done with its elements once their sums are complete.
#[derive(Clone, Copy, Default)]
struct Epilogue<'a> {
    /// With the bytes of a part of a row, before anything is with rows.
    part: Option<FinishPart<'a>>,
    /// With the bytes of whole rows.
    rows: Option<Finish<'a, u8>>,
}

/// What a product multiplies and sums: `out[b, r, c] = Σ lhs[b, r, s] * rhs[b, s, c]` over steps
/// `s`, where each of the four indices stands for any number of dimensions.
///
/// The dimensions may be listed in any order; it is that in which they are run through, the last
/// fastest. The columns of the result must be neighbours. If instead its rows are, swap the operands.
#[derive(Clone, Debug)]
pub struct Contraction {
    batch: [Axis; 3],
    lhs_rows: Axis,
    out_rows: Axis,
    rhs_cols: Axis,
    lhs_steps: Axis,
    rhs_steps: Axis,
}

impl Contraction {
    /// The product of the dimensions that both operands and the result have (`batch`), those of lhs
    /// and result (`rows`), of rhs and result (`cols`), and of the operands only (`steps`).
    ///
    /// # Panics
    /// If the columns of the result are not neighbours, or two elements of it are one in memory, or
    /// dimensions reach further than memory does.
    pub fn new(batch: &[Dim], rows: &[Dim], cols: &[Dim], steps: &[Dim]) -> Self {
        let axis = |dims: &[Dim], stride: fn(&Dim) -> usize| {
            Axis::new(dims.iter().map(|dim| (dim.size, stride(dim))))
        };
        let (lhs, rhs, out) = (|dim: &Dim| dim.lhs, |dim: &Dim| dim.rhs, |dim: &Dim| dim.out);
        let out_cols = axis(cols, out);
        assert!(
            out_cols.len() == 0 || out_cols.stride() == Some(1),
            "the columns of the result are neighbours"
        );
        let all_rows = axis(&[batch, rows].concat(), out);
        assert!(
            all_rows.len() == 0 || all_rows.keeps_apart(out_cols.len()),
            "the elements of the result are apart"
        );
        Contraction {
            batch: [axis(batch, lhs), axis(batch, rhs), axis(batch, out)],
            lhs_rows: axis(rows, lhs),
            out_rows: axis(rows, out),
            rhs_cols: axis(cols, rhs),
            lhs_steps: axis(steps, lhs),
            rhs_steps: axis(steps, rhs),
        }
    }

    /// The product of dense matrices, `rows`×`steps` and `steps`×`cols`, for each of a batch.
    pub fn dense(batch: usize, rows: usize, steps: usize, cols: usize) -> Self {
        let dim = |size, lhs, rhs, out| [Dim { size, lhs, rhs, out }];
        Contraction::new(
            &dim(batch, rows * steps, steps * cols, rows * cols),
            &dim(rows, steps, 0, cols),
            &dim(cols, 0, 1, 1),
            &dim(steps, 1, cols, 0),
        )
    }

    /// The elements of a row of the result, if the rows of each of the batch are neighbours.
    pub fn row_len(&self) -> Option<usize> {
        let cols = self.rhs_cols.len();
        let dense = self.out_rows.len() <= 1 || self.out_rows.stride() == Some(cols);
        dense.then_some(cols)
    }

    /// Whether words of the right operand take no more than half of the second-level cache.
    pub fn is_right_near(&self) -> bool {
        !streamed::is_large::<f32>(self.rhs_cols.len(), self.rhs_steps.len())
    }

    /// Computes the product of `f32`. Rows are given to `finish` once they are complete, each once,
    /// some neighbours at a time; if they are not too long, while they are in cache.
    ///
    /// # Panics
    /// If an operand or the result is longer than its slice, or rows are to be finished that are no
    /// neighbours ([`Contraction::row_len`]).
    pub fn f32(
        &self,
        lhs: &[f32],
        rhs: &[f32],
        out: &mut [f32],
        finish: Option<Finish<'_, f32>>,
        threads: Threads<'_>,
    ) {
        self.float(Isa::best(), lhs, rhs, out, finish, threads);
    }

    /// Computes the product of `f64`; see [`Contraction::f32`].
    ///
    /// # Panics
    /// As there.
    pub fn f64(
        &self,
        lhs: &[f64],
        rhs: &[f64],
        out: &mut [f64],
        finish: Option<Finish<'_, f64>>,
        threads: Threads<'_>,
    ) {
        self.float(Isa::best(), lhs, rhs, out, finish, threads);
    }

    fn float<T: Float>(
        &self,
        isa: Isa,
        lhs: &[T],
        rhs: &[T],
        out: &mut [T],
        finish: Option<Finish<'_, T>>,
        threads: Threads<'_>,
    ) {
        let finish_bytes = |at, bytes: &mut [u8]| {
            if let Some(finish) = finish {
                finish(at / size_of::<T>(), cast_mut(bytes));
            }
        };
        let out = Out { len: out.len(), places: &Shared(out.as_mut_ptr()) };
        let rows = finish.is_some().then_some(&finish_bytes as Finish<'_, u8>);
        let epilogue = Epilogue { part: None, rows };
        let (lhs, rhs) = (&Each::all(&lhs), &Each::all(&rhs));
        // SAFETY: `out` is borrowed mutably.
        unsafe { self.run(T::instructions(isa), isa, [lhs, rhs], out, epilogue, threads) };
    }

    /// Computes the product in tiles.
    ///
    /// # Safety
    /// Nothing else accesses the places of `out`.
    unsafe fn run<W: Plain + Default, A: Plain + Default>(
        &self,
        tiled: &dyn Tiled<W, A>,
        isa: Isa,
        [lhs, rhs]: [&dyn Operand<W>; 2],
        out: Out<'_, A>,
        epilogue: Epilogue<'_>,
        threads: Threads<'_>,
    ) {
        let operands = (lhs, RightOperand::Operand(rhs));
        // SAFETY: the caller's promise.
        unsafe { self.run_with((tiled, isa), operands, out, epilogue, threads) };
    }

    /// Computes the product in tiles, of a right operand that may have been packed before.
    ///
    /// # Safety
    /// Nothing else accesses the places of `out`.
    unsafe fn run_with<W: Plain + Default, A: Plain + Default>(
        &self,
        (tiled, isa): (&dyn Tiled<W, A>, Isa),
        (lhs, rhs): (&dyn Operand<W>, RightOperand<'_, W>),
        out: Out<'_, A>,
        epilogue: Epilogue<'_>,
        threads: Threads<'_>,
    ) {
        let (rows, cols) = (self.lhs_rows.len(), self.rhs_cols.len());
        let batches = self.batch[0].len();
        if batches == 0 || rows == 0 || cols == 0 {
            return;
        }
        let last = self.batch[2].last().checked_add(self.out_rows.last());
        let last = last.and_then(|last| last.checked_add(cols - 1));
        assert!(last.is_some_and(|last| last < out.len), "the result lies in its memory");
        assert!(epilogue.rows.is_none() || self.row_len().is_some(), "the rows are neighbours");
        let is_single = batches == 1 || matches!(rhs, RightOperand::Operand(_));
        assert!(is_single, "panels are those of one product");
        let finish_rows = |batch: usize, rows: Range<usize>| {
            if let Some(finish) = epilogue.rows {
                let at = self.batch[2].offset(batch) + self.out_rows.offset(rows.start);
                let count = rows.len() * cols;
                // SAFETY: these rows lie in memory, as asserted above, are neighbours, as asserted,
                // complete, and given to one call alone; parts of them are in use no more.
                let bytes = unsafe { out.places.bytes(at, count) };
                finish(bytes.len() / count * at, bytes);
            }
        };
        if let (None, RightOperand::Operand(rhs)) = (epilogue.part, rhs) {
            let done = |batch| finish_rows(batch, 0..rows);
            // SAFETY: the caller's promise; the result lies in its memory, as asserted above, and
            // its elements are apart, by the assertion of `new`.
            if unsafe { self.run_small((tiled, isa), [lhs, rhs], out, &done, threads) } {
                return;
            }
        }
        let steps = lhs.steps(self.lhs_steps.len());
        let tasks = TASKS.div_ceil(batches);
        threads.for_each(batches, &|batch| {
            let [lhs_start, rhs_start, out_start] =
                self.batch.each_ref().map(|axis| axis.offset(batch));
            let place = |row, col| out_start + self.out_rows.offset(row) + col;
            let finish_part = |row, col, count| {
                if let Some(finish) = epilogue.part {
                    // SAFETY: this part of the result lies in memory, as asserted above, is
                    // complete, and given to one call alone.
                    let bytes = unsafe { out.places.bytes(place(row, col), count) };
                    finish(At { batch, row, col }, bytes);
                }
            };
            let convert = |row, col, sums: &[A]| {
                // SAFETY: this part of the result lies in memory, as asserted above, and is no other
                // task's.
                unsafe { out.places.write(isa, place(row, col), 1, sums) };
                finish_part(row, col, sums.len());
            };
            let finish_rows = |rows| finish_rows(batch, rows);
            let done = epilogue.rows.is_some().then_some(&finish_rows as engine::RowsCallback<'_>);
            let sink = match out.places.sums() {
                Some(start) => Sink::Memory {
                    start: Shared(start.get().wrapping_add(out_start)),
                    rows: &self.out_rows,
                    finish: epilogue
                        .part
                        .is_some()
                        .then_some(&finish_part as engine::PartCallback<'_>),
                },
                None => Sink::Function(&convert),
            };
            lhs.with_source(isa, lhs_start, &self.lhs_rows, &self.lhs_steps, &mut |lhs| {
                let run = |rhs: Rhs<'_, W>| {
                    let add = false;
                    let product = Product {
                        tiled,
                        rows,
                        cols,
                        steps,
                        lhs,
                        rhs,
                        sink,
                        done,
                        add,
                        tasks,
                        batches,
                    };
                    // SAFETY: sources lie in memory, as they checked; so does the result, by the
                    // assertion above, and no two of its elements are one, by that of `new`.
                    unsafe { product.run(threads) };
                };
                let (cols, steps) = (&self.rhs_cols, &self.rhs_steps);
                match rhs {
                    RightOperand::Panels(panels) => run(Rhs::Panels(panels)),
                    RightOperand::Operand(rhs) => {
                        rhs.with_source(isa, rhs_start, cols, steps, &mut |rhs| {
                            run(Rhs::Source(rhs));
                        });
                    }
                }
            });
        });
    }
}

/// The right operand of a product.
#[derive(Clone, Copy)]
enum RightOperand<'a, W> {
    /// Anything.
    Operand(&'a dyn Operand<W>),
    /// What a product without a batch has packed before.
    Panels(&'a [W]),
}

/// Where the result of a product goes.
#[derive(Clone, Copy)]
struct Out<'a, A> {
    places: &'a dyn Destination<A>,
    /// How many places there are.
    len: usize,
}
