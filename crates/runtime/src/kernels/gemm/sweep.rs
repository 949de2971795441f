//! Products of a few rows with a matrix each of whose rows is contiguous.
//!
//! The matrix is read once, in the order of memory: a few of its rows at a time, all columns of them (or as
//! many as the result has room for in the first-level cache), each multiplied by its element of each row of
//! lhs and added to the result, which stays in cache.

use super::cut::{chunks, even_chunks};
use super::engine::{Product, Rhs, Shared, Sink};
use super::simd::{Loops, Simd};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::scratch;

/// The most rows of the result. With more, tiles read the matrix as fast as they can multiply.
pub(super) const FEW: usize = 4;
/// Rows of the matrix that are read side by side.
const ROWS: usize = 8;
/// Bytes of rows that are read side by side where eight have fewer: what they are added to is loaded and stored
/// less often.
const ROWS_BYTES: usize = 8 << 10;
/// Vectors of the matrix's columns that meet an element of lhs once it is in a register.
const VECS: usize = 4;
/// The fewest columns of a task, unless the product has fewer.
const TASK_COLUMNS: usize = 2048;
/// Bytes of a line of the cache.
const LINE_BYTES: usize = 64;
/// Bytes of the result that are added to before the next columns: half of a first-level cache.
const BLOCK_BYTES: usize = 16 << 10;

/// Some columns of a product of a few rows and a matrix, for one task.
pub(super) struct Sweep<'a, W, A> {
    /// The first row of lhs, ...
    lhs: *const W,
    /// ... how far apart its rows are, and in each the elements for the rows of the matrix, ...
    lhs_strides: [usize; 2],
    /// ... and how many of these each has.
    steps: usize,
    /// The first of these columns in the matrix's first row.
    matrix: *const W,
    /// The distance of the matrix's rows, in elements.
    stride: usize,
    /// The first of these columns in each row of the result.
    out: &'a [Shared<A>],
    /// How many columns there are.
    cols: usize,
    /// Whether sums are added to what is in the result.
    add: bool,
}

impl<W: Plain + Default, A: Plain> Product<'_, W, A> {
    /// Computes the product if lhs has few rows and rhs lies in memory with contiguous rows;
    /// otherwise returns false.
    ///
    /// # Safety
    /// As for [`Product::run`].
    pub(super) unsafe fn run_sweep(&self, loops: &dyn Loops<W, A>, threads: Threads<'_>) -> bool {
        if self.steps == 0 || self.rows > FEW {
            return false;
        }
        let (Rhs::Source(rhs), Sink::Memory { start, rows, finish: None }) = (&self.rhs, self.sink)
        else {
            return false;
        };
        let Some(matrix) = rhs.in_place() else { return false };
        let (Some(1), Some(stride)) = (matrix.items.stride(), matrix.steps.stride()) else {
            return false;
        };
        let steps = self.steps;
        let compute = |lhs: Shared<W>, lhs_strides: [usize; 2]| {
            threads.for_ranges(self.cols, TASK_COLUMNS, &|cols| {
                let mut out = [start; FEW];
                for (i, out) in out.iter_mut().enumerate().take(self.rows) {
                    *out = Shared(start.get().wrapping_add(rows.offset(i) + cols.start));
                }
                let sweep = Sweep {
                    lhs: lhs.get().cast_const(),
                    lhs_strides,
                    steps,
                    matrix: matrix.start.get().cast_const().wrapping_add(cols.start),
                    stride,
                    out: &out[..self.rows],
                    cols: cols.len(),
                    add: self.add,
                };
                // SAFETY: the caller's promise: these columns of all steps may be read, and so may lhs, where it
                // lies or as packed; the columns of the result may be written, by this task alone.
                unsafe { loops.sweep(&sweep) };
            });
        };
        // lhs is read where it lies if each step is in the line of the cache that has the one before, or the next.
        // (A single row of neighbours is soon copied: 1×300 by 300×256 take 2.5 µs, and 3.1 if it is read where it lies.)
        let near = self.lhs.in_place().and_then(|lhs| {
            let strides = [lhs.items.stride()?, lhs.steps.stride()?];
            let is_near = (1..=LINE_BYTES / size_of::<W>()).contains(&strides[1]);
            (is_near && (strides[1] > 1 || self.rows > 1)).then_some((lhs.start, strides))
        });
        if let Some((lhs, strides)) = near {
            compute(lhs, strides);
            return true;
        }
        scratch::with(self.rows * steps, |lhs: &mut [W]| {
            for (i, row) in lhs.chunks_exact_mut(steps).enumerate() {
                self.lhs.pack(i..i + 1, 0..steps, 1, row);
            }
            compute(Shared(lhs.as_mut_ptr()), [steps, 1]);
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
        // SAFETY: the caller's promise; there are as many rows as stated.
        unsafe {
            match self.out.len() {
                1 => self.rows::<S, 1>(),
                2 => self.rows::<S, 2>(),
                3 => self.rows::<S, 3>(),
                _ => self.rows::<S, FEW>(),
            }
        }
    }

    /// Computes the columns of `COUNT` rows of the result.
    ///
    /// # Safety
    /// As for [`Sweep::run`]; there are `COUNT` rows.
    #[inline(always)]
    unsafe fn rows<S: Simd<Word = W, Acc = A>, const COUNT: usize>(&self) {
        let row_bytes = self.cols * size_of::<W>();
        let side_by_side = (ROWS_BYTES / row_bytes.max(1)).max(ROWS);
        let Sweep { lhs, lhs_strides: [apart, step], steps, matrix, stride, out, cols, add } =
            *self;
        for cols in chunks(0..cols, BLOCK_BYTES / (COUNT * size_of::<A>())) {
            for part in even_chunks(steps, side_by_side) {
                let rows = Rows::<S, COUNT> {
                    lhs: std::array::from_fn(|i| lhs.wrapping_add(i * apart + part.start * step)),
                    step,
                    from: matrix.wrapping_add(part.start * stride + cols.start),
                    stride,
                    out: std::array::from_fn(|i| out[i].get().wrapping_add(cols.start)),
                    add: add || part.start > 0,
                };
                // SAFETY: the caller's promise, of which this is a part.
                unsafe {
                    match part.len() {
                        ROWS => rows.add(ROWS, cols.len()),
                        fewer => rows.add(fewer, cols.len()),
                    }
                }
            }
        }
    }
}

/// Some rows of a matrix, and what they are multiplied with and added to.
struct Rows<S: Simd, const COUNT: usize> {
    /// In each row of lhs the element for the first row of the matrix, ...
    lhs: [*const S::Word; COUNT],
    /// ... and how far apart those for the others are.
    step: usize,
    /// The first row of the matrix.
    from: *const S::Word,
    /// The distance of its rows, in elements.
    stride: usize,
    /// The rows of the result.
    out: [*mut S::Acc; COUNT],
    /// Whether they are added to, rather than written.
    add: bool,
}

impl<S: Simd, const COUNT: usize> Rows<S, COUNT> {
    /// Adds `rows` rows of the matrix, times their elements of lhs.
    ///
    /// # Safety
    /// The processor has the instructions of `S`. So many elements of each row of lhs may be read, and `cols`
    /// words of each row of the matrix; `cols` sums may be read and written in each row of the result.
    #[inline(always)]
    unsafe fn add(&self, rows: usize, cols: usize) {
        let vectors = cols / S::LANES;
        let (mut col, wide) = (0, VECS * S::LANES);
        // SAFETY: the caller's promise; lanes outside the mask are not accessed.
        unsafe {
            while col + wide <= cols {
                let sums = self.sums::<VECS>(rows, col, |from| S::load(from));
                self.store_all(sums, col);
                col += wide;
            }
            while col < vectors * S::LANES {
                let sums = self.sums::<1>(rows, col, |from| S::load(from));
                self.store_all(sums, col);
                col += S::LANES;
            }
            if col < cols {
                let mask = S::mask(cols - col);
                let sums = self.sums::<1>(rows, col, |from| S::load_masked(from, mask));
                for (out, [sum]) in self.out.iter().zip(sums) {
                    S::store(out.wrapping_add(col), mask, sum, self.add);
                }
            }
        }
    }

    /// The sums for `N` vectors of columns from `col` on.
    ///
    /// # Safety
    /// As for [`Rows::add`]; `load` may be called for these columns.
    #[inline(always)]
    unsafe fn sums<const N: usize>(
        &self,
        rows: usize,
        col: usize,
        load: impl Fn(*const S::Word) -> S::Words,
    ) -> [[S::Vec; N]; COUNT] {
        let mut sums = [[S::zero(); N]; COUNT];
        // (Pointers go on from row to row: the compiler would have a register for the address of each vector.)
        let (mut lhs, mut from) = (self.lhs, self.from.wrapping_add(col));
        for _ in 0..rows {
            let words: [S::Words; N] =
                std::array::from_fn(|i| load(from.wrapping_add(i * S::LANES)));
            for (sums, lhs) in sums.iter_mut().zip(&mut lhs) {
                // SAFETY: the caller's promise: the element may be read.
                let element = unsafe { S::splat(*lhs) };
                for (sum, words) in sums.iter_mut().zip(words) {
                    // SAFETY: the caller's promise: the instructions are there.
                    *sum = unsafe { S::mul_add(element, words, *sum) };
                }
                *lhs = lhs.wrapping_add(self.step);
            }
            from = from.wrapping_add(self.stride);
        }
        sums
    }

    /// Writes or adds whole vectors from `col` on.
    ///
    /// # Safety
    /// As for [`Rows::add`], for these columns.
    #[inline(always)]
    unsafe fn store_all<const N: usize>(&self, sums: [[S::Vec; N]; COUNT], col: usize) {
        for (out, sums) in self.out.iter().zip(sums) {
            for (i, sum) in sums.into_iter().enumerate() {
                let to = out.wrapping_add(col + i * S::LANES);
                // SAFETY: the caller's promise.
                unsafe { S::store_all(to, sum, self.add) };
            }
        }
    }
}
