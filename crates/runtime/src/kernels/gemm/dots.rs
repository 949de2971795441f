//! Products with few rows or few columns whose other operand has its steps side by side, such as a
//! matrix times a vector.
//!
//! Such an operand is read once, so it is not packed: vectors run along its steps, some of its items
//! at a time, and lanes are added up at the end.

use std::ops::Range;

use super::axis::Axis;
use super::cut::even_chunks;
use super::engine::{Product, Rhs, Shared, Sink};
use super::pack::Source;
use super::simd::{Loops, MulAdd, Simd};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::cache::second_level_bytes;
use crate::kernels::isa::prefetch_far;
use crate::kernels::scratch;

/// Items of the operand with few that are multiplied at once.
pub(super) const FEW: usize = 4;
/// Items of the other operand at once.
const MANY: usize = 4;
/// Bytes of an item that is short in this sense: [`Dots::asks_ahead`].
const SHORT_BYTES: usize = 8 << 10;
/// Words that are worth a task.
const TASK_WORDS: usize = 1 << 16;

/// A product of this kind.
pub(super) struct Dots<'a, W, A> {
    /// The operand with few items: each a row of `steps` words.
    pub few: Shared<W>,
    /// Words from one row of `few` to the next.
    pub few_stride: usize,
    /// The rows of `few`; at most [`FEW`].
    pub few_count: usize,
    /// The other operand, whose steps are neighbours, and which of its items to multiply.
    pub many: Shared<W>,
    pub many_items: &'a Axis,
    pub many_range: Range<usize>,
    /// Whether its items come from memory and are so short that the processor does not see in time where
    /// the next ones begin.
    pub asks_ahead: bool,
    pub steps: usize,
    /// The result, and its rows.
    pub start: Shared<A>,
    pub rows: &'a Axis,
    /// Whether the items of `many` are rows of the result.
    pub many_are_rows: bool,
    pub add: bool,
}

impl<W: Plain + Default, A: Plain> Product<'_, W, A> {
    /// Computes the product if it is of this kind; otherwise returns false.
    ///
    /// # Safety
    /// As for [`Product::run`].
    pub(super) unsafe fn run_dots(&self, loops: &dyn Loops<W, A>, threads: Threads<'_>) -> bool {
        let (Rhs::Source(rhs), Sink::Memory { start, rows, finish: None }) = (&self.rhs, self.sink)
        else {
            return false;
        };
        let along = |source: &dyn Source<W>| {
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
        let steps = self.steps;
        let few_stride = steps.next_multiple_of(loops.format().lanes);
        let (item_bytes, cached) = (steps * size_of::<W>(), second_level_bytes() / 2);
        let asks_ahead =
            item_bytes <= SHORT_BYTES && many_count.saturating_mul(item_bytes) > cached;
        scratch::with(few_count * few_stride, |words: &mut [W]| {
            for (i, row) in words.chunks_exact_mut(few_stride.max(1)).enumerate() {
                few.pack(i..i + 1, 0..steps, 1, &mut row[..steps]);
            }
            let few = Shared(words.as_mut_ptr());
            let items = (TASK_WORDS / steps.max(1)).clamp(MANY, 1024).next_multiple_of(MANY);
            threads.for_ranges(many_count, items, &|many_range| {
                let dots = Dots {
                    few,
                    few_stride,
                    few_count,
                    many: many.start,
                    many_items: many.items,
                    many_range,
                    asks_ahead,
                    steps,
                    start,
                    rows,
                    many_are_rows,
                    add: self.add,
                };
                // SAFETY: the caller's promise; the rows of `words` have all steps.
                unsafe { loops.dots(&dots) };
            });
        });
        true
    }
}

impl<W, A: MulAdd> Dots<'_, W, A> {
    /// Computes the product.
    ///
    /// # Safety
    /// The features are there; the steps of all items of both operands may be read, and what they are
    /// for written in the result; nothing else writes to the former or accesses the latter.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd<Word = W, Acc = A>>(&self) {
        let range = &self.many_range;
        for many in even_chunks(range.len(), MANY) {
            let many = range.start + many.start..range.start + many.end;
            // SAFETY: the caller's promise.
            unsafe {
                match self.few_count {
                    1 => self.block::<S, 1>(many),
                    2 => self.block::<S, 2>(many),
                    3 => self.block::<S, 3>(many),
                    _ => self.block::<S, FEW>(many),
                }
            };
        }
    }

    /// Computes the sums of all few items with at most [`MANY`] others.
    ///
    /// # Safety
    /// As for [`Dots::run`]; `few` has `COUNT` rows.
    #[inline(always)]
    unsafe fn block<S: Simd<Word = W, Acc = A>, const COUNT: usize>(&self, many: Range<usize>) {
        let few = self.few.get().cast_const();
        let mut offsets = [0; MANY];
        self.many_items.offsets(many.start, &mut offsets[..many.len()]);
        // Where there are fewer items the first is multiplied again, for nothing.
        for i in many.len()..MANY {
            offsets[i] = offsets[0];
        }
        let rows = offsets.map(|offset| self.many.get().cast_const().wrapping_add(offset));
        let mut sums = [[S::zero(); MANY]; COUNT];
        let whole = self.steps / S::LANES * S::LANES;
        // What the next block reads is asked for.
        let stride = self.many_items.stride().filter(|_| self.asks_ahead);
        let ahead = stride.map(|stride| MANY * stride);
        for step in (0..whole).step_by(S::LANES) {
            if let Some(ahead) = ahead {
                for row in rows {
                    prefetch_far(row.wrapping_add(ahead + step).cast());
                }
            }
            // SAFETY: the caller's promise: these steps of all rows may be read.
            unsafe {
                let words = rows.map(|row| S::load(row.wrapping_add(step)));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let few = S::load(few.wrapping_add(i * self.few_stride + step));
                    for (sum, words) in sums.iter_mut().zip(words) {
                        *sum = S::mul_add(few, words, *sum);
                    }
                }
            }
        }
        if whole < self.steps {
            let mask = S::mask(self.steps - whole);
            // SAFETY: the caller's promise: these steps of all rows may be read, and lanes outside the
            // mask are not accessed.
            unsafe {
                let words = rows.map(|row| S::load_masked(row.wrapping_add(whole), mask));
                for (i, sums) in sums.iter_mut().enumerate() {
                    let few = S::load_masked(few.wrapping_add(i * self.few_stride + whole), mask);
                    for (sum, words) in sums.iter_mut().zip(words) {
                        *sum = S::mul_add(few, words, *sum);
                    }
                }
            }
        }
        // Where the first item's sum is, and how far from item to item.
        let mut places = [0; MANY];
        let places = &mut places[..many.len()];
        if self.many_are_rows {
            self.rows.offsets(many.start, places);
        } else {
            places.iter_mut().zip(many).for_each(|(place, col)| *place = col);
        }
        for (i, sums) in sums.into_iter().enumerate() {
            let first = if self.many_are_rows { i } else { self.rows.offset(i) };
            // SAFETY: the caller's promise.
            let totals = unsafe { S::totals(sums) };
            for (&place, total) in places.iter().zip(totals) {
                let to = self.start.get().wrapping_add(first + place);
                // SAFETY: the caller's promise: the place may be written.
                unsafe { to.write(if self.add { to.read().add(total) } else { total }) };
            }
        }
    }
}
