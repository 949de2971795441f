//! Products of one row: a vector times a matrix, each of whose rows is contiguous.
//!
//! The matrix is read once, in the order of memory: a few of its rows at a time, all columns of
//! them, each multiplied by its element of the vector and added to the result, which stays in cache.

use super::cut::even_chunks;
use super::engine::{Product, Rhs, Shared, Sink};
use super::simd::{Loops, Simd};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::scratch;

/// Rows of the matrix that are read side by side.
const ROWS: usize = 8;
/// The fewest columns of a task, unless the product has fewer.
const TASK_COLUMNS: usize = 2048;

/// Some columns of a product of a vector and a matrix, for one task.
pub(super) struct Sweep<'a, W, A> {
    /// An element for each row of the matrix.
    vector: &'a [W],
    /// The first of these columns in the matrix's first row.
    matrix: *const W,
    /// The distance of the matrix's rows, in elements.
    stride: usize,
    /// The first of these columns in the result.
    out: Shared<A>,
    /// How many columns there are.
    cols: usize,
    /// Whether sums are added to what is in the result.
    add: bool,
}

impl<W: Plain + Default, A: Plain> Product<'_, W, A> {
    /// Computes the product if lhs has one row and rhs lies in memory with contiguous rows;
    /// otherwise returns false.
    ///
    /// # Safety
    /// As for [`Product::run`].
    pub(super) unsafe fn run_sweep(&self, loops: &dyn Loops<W, A>, threads: Threads<'_>) -> bool {
        if self.steps == 0 {
            return false;
        }
        let (1, Rhs::Source(rhs), Sink::Memory { start, rows, finish: None }) =
            (self.rows, &self.rhs, self.sink)
        else {
            return false;
        };
        let Some(matrix) = rhs.in_place() else { return false };
        let (Some(1), Some(stride)) = (matrix.items.stride(), matrix.steps.stride()) else {
            return false;
        };
        scratch::with(self.steps, |vector: &mut [W]| {
            self.lhs.pack(0..1, 0..self.steps, 1, vector);
            let vector = &*vector;
            threads.for_ranges(self.cols, TASK_COLUMNS, &|cols| {
                let sweep = Sweep {
                    vector,
                    matrix: matrix.start.get().cast_const().wrapping_add(cols.start),
                    stride,
                    out: Shared(start.get().wrapping_add(rows.offset(0) + cols.start)),
                    cols: cols.len(),
                    add: self.add,
                };
                // SAFETY: the caller's promise: these columns of all steps may be read, and the
                // columns of the result written, by this task alone.
                unsafe { loops.sweep(&sweep) };
            });
        });
        true
    }
}

impl<W, A> Sweep<'_, W, A> {
    /// Computes the columns.
    ///
    /// # Safety
    /// The features are there; the columns may be read in all rows of the matrix, and written in the
    /// result, which nothing else accesses.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd<Word = W, Acc = A>>(&self) {
        let Sweep { stride, cols, .. } = *self;
        let out = self.out.get();
        for steps in even_chunks(self.vector.len(), ROWS) {
            let add = self.add || steps.start > 0;
            let from = self.matrix.wrapping_add(steps.start * stride);
            let vector = &self.vector[steps];
            // SAFETY: the caller's promise, of which this is a part.
            unsafe {
                match vector.len() {
                    ROWS => add_rows::<S>(&vector[..ROWS], from, stride, out, cols, add),
                    _ => add_rows::<S>(vector, from, stride, out, cols, add),
                }
            }
        }
    }
}

/// Adds rows of a matrix, `stride` apart, each times its element of `vector`, to `out`, or writes
/// their sum there unless `add`.
///
/// # Safety
/// The processor has the instructions of `S`. From each of `vector.len()` rows, `cols` words may be
/// read, and `cols` sums may be read and written at `out`.
#[inline(always)]
unsafe fn add_rows<S: Simd>(
    vector: &[S::Word],
    from: *const S::Word,
    stride: usize,
    out: *mut S::Acc,
    cols: usize,
    add: bool,
) {
    let whole = cols / S::LANES * S::LANES;
    for col in (0..whole).step_by(S::LANES) {
        let mut sum = S::zero();
        for (row, element) in vector.iter().enumerate() {
            let row = from.wrapping_add(row * stride + col);
            // SAFETY: the caller's promise.
            sum = unsafe { S::mul_add(S::splat(element), S::load(row), sum) };
        }
        // SAFETY: the caller's promise.
        unsafe { S::store_all(out.wrapping_add(col), sum, add) };
    }
    if whole < cols {
        let mask = S::mask(cols - whole);
        let mut sum = S::zero();
        for (row, element) in vector.iter().enumerate() {
            let row = from.wrapping_add(row * stride + whole);
            // SAFETY: the caller's promise; lanes outside the mask are not accessed.
            sum = unsafe { S::mul_add(S::splat(element), S::load_masked(row, mask), sum) };
        }
        // SAFETY: the caller's promise; lanes outside the mask are not accessed.
        unsafe { S::store(out.wrapping_add(whole), mask, sum, add) };
    }
}
