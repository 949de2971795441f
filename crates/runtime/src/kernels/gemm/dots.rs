//! Products with few rows or few columns whose other operand has its steps side by side, such as a
//! matrix times a vector.
//!
//! Such an operand is read once, so it is not packed: vectors run along its steps, some of its items
//! at a time, and lanes are added up at the end.

use std::ops::Range;

use super::axis::Axis;
use super::engine::{Product, Rhs, Shared, Sink, even_chunks};
use super::pack::{InPlace, Source};
use super::simd::Simd;
use crate::Threads;
use crate::kernels::scratch;

/// Items of the operand with few that are multiplied at once.
const FEW: usize = 4;
/// Items of the other operand at once.
const MANY: usize = 4;
/// Words that are worth a task.
const TASK_WORDS: usize = 1 << 16;

/// A product of this kind.
struct Dots<'a, S: Simd> {
    few: &'a dyn Source<S::Word>,
    few_count: usize,
    many: InPlace<'a, S::Word>,
    many_count: usize,
    steps: usize,
    start: Shared<S::Acc>,
    rows: &'a Axis,
    /// Whether the items of `many` are rows of the result.
    many_are_rows: bool,
    add: bool,
}

impl<S: Simd> Product<'_, S> {
    /// Computes the product if it is of this kind; otherwise returns false.
    ///
    /// # Safety
    /// As for [`Product::run`].
    pub(super) unsafe fn run_dots(&self, threads: Threads<'_>) -> bool {
        let (Rhs::Source(rhs), Sink::Memory { start, rows, finish: None }) = (&self.rhs, self.sink)
        else {
            return false;
        };
        let along = |source: &dyn Source<S::Word>| {
            source.in_place().is_some_and(|place| {
                place.steps.stride() == Some(1) && place.items.stride() != Some(1)
            })
        };
        let many_are_rows = match (self.rows <= FEW, self.cols <= FEW) {
            (true, _) if along(*rhs) => false,
            (_, true) if along(self.lhs) => true,
            _ => return false,
        };
        let (few, many) = if many_are_rows { (*rhs, self.lhs) } else { (self.lhs, *rhs) };
        let (few_count, many_count) =
            if many_are_rows { (self.cols, self.rows) } else { (self.rows, self.cols) };
        let Some(many) = many.in_place() else { return false };
        let (steps, add) = (self.steps, self.add);
        let dots =
            Dots::<S> { few, few_count, many, many_count, steps, start, rows, many_are_rows, add };
        // SAFETY: the caller's promise.
        unsafe { dots.run(self.simd, threads) };
        true
    }
}

impl<S: Simd> Dots<'_, S> {
    /// # Safety
    /// As for [`Product::run`].
    unsafe fn run(&self, simd: S, threads: Threads<'_>) {
        let len = self.steps.next_multiple_of(S::LANES);
        scratch::with(self.few_count * len, |few: &mut [S::Word]| {
            for (i, row) in few.chunks_exact_mut(len.max(1)).enumerate() {
                self.few.pack(i..i + 1, 0..self.steps, 1, &mut row[..self.steps]);
            }
            let few = &*few;
            let items = (TASK_WORDS / self.steps.max(1)).clamp(MANY, 1024).next_multiple_of(MANY);
            threads.for_ranges(self.many_count, items, &|range| {
                simd.vectorise(
                    #[inline(always)]
                    || {
                        for many in even_chunks(range.len(), MANY) {
                            let many = range.start + many.start..range.start + many.end;
                            // SAFETY: the caller's promise; `simd` proves the features; the rows of
                            // `few` have all steps.
                            unsafe {
                                match self.few_count {
                                    1 => self.block::<1>(few, len, many),
                                    2 => self.block::<2>(few, len, many),
                                    3 => self.block::<3>(few, len, many),
                                    _ => self.block::<FEW>(few, len, many),
                                }
                            };
                        }
                    },
                );
            });
        });
    }

    /// Computes the sums of all few items with at most [`MANY`] others.
    ///
    /// # Safety
    /// As for [`Product::run`]; the features are there; `few` has `COUNT` rows of all steps, `len`
    /// apart.
    #[inline(always)]
    unsafe fn block<const COUNT: usize>(&self, few: &[S::Word], len: usize, many: Range<usize>) {
        let mut offsets = [0; MANY];
        self.many.items.offsets(many.start, &mut offsets[..many.len()]);
        // Where there are fewer items the first is multiplied again, for nothing.
        for i in many.len()..MANY {
            offsets[i] = offsets[0];
        }
        let rows = offsets.map(|offset| self.many.start.get().cast_const().wrapping_add(offset));
        let mut sums = [[S::zero(); MANY]; COUNT];
        let whole = self.steps / S::LANES * S::LANES;
        for step in (0..whole).step_by(S::LANES) {
            // SAFETY: the caller's promise: these steps of all rows may be read.
            unsafe {
                let words = rows.map(|row| S::load(row.wrapping_add(step)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let few = S::load(few.as_ptr().wrapping_add(i * len + step));
                    for (sum, words) in sums.iter_mut().zip(words) {
                        *sum = S::mul_add(few, words, *sum);
                    }
                }
            }
        }
        if whole < self.steps {
            let mask = S::mask(self.steps - whole);
            // SAFETY: as above; lanes outside the mask are not accessed.
            unsafe {
                let words = rows.map(|row| S::load_masked(row.wrapping_add(whole), mask));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let few = S::load_masked(few.as_ptr().wrapping_add(i * len + whole), mask);
                    for (sum, words) in sums.iter_mut().zip(words) {
                        *sum = S::mul_add(few, words, *sum);
                    }
                }
            }
        }
        for (i, sums) in sums.into_iter().enumerate() {
            for (item, sum) in many.clone().zip(sums) {
                let (row, col) = if self.many_are_rows { (item, i) } else { (i, item) };
                let place = self.start.get().wrapping_add(self.rows.offset(row) + col);
                // SAFETY: the caller's promise: the place may be written.
                unsafe { S::store_total(place, sum, self.add) };
            }
        }
    }
}
