//! Products with few rows or few columns whose other operand has its steps side by side, such as a
//! matrix times a vector.
//!
//! Such an operand is read once, so it is not packed: vectors run along its steps, some of its items
//! at a time, and lanes are added up at the end.

use std::cell::Cell;
use std::ops::Range;

use smallvec::SmallVec;

use super::axis::Axis;
use super::cut::chunks;
use super::engine::{Product, Rhs, Shared, Sink};
use super::pack::Source;
use super::simd::{Loops, MulAdd, Simd};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::cache::second_level_bytes;
use crate::kernels::isa::prefetch_far;
use crate::kernels::scratch;

/// The most items of the operand with few, if there are [`LONG`] steps.
const FEW: usize = 8;
/// The most if there are fewer, and how many are multiplied at once.
pub(super) const SIDE_BY_SIDE: usize = 4;
/// Steps from which on adding up lanes takes little of the time.
const LONG: usize = 64;
/// Items of the other operand at once.
const MANY: usize = 4;
/// Bytes of an item that is so short that the processor does not see in time where the next one begins.
const SHORT_BYTES: usize = 8 << 10;
/// How many bytes of items are on their way from memory at least, where they are asked for.
const AHEAD_BYTES: usize = 8 << 10;
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
    /// How far behind an item the one is that is asked for while it is read ([`words_ahead`]).
    pub ahead: Option<usize>,
    /// The steps, line after line.
    pub lines: &'a [Line],
    /// The result, and its rows.
    pub start: Shared<A>,
    pub rows: &'a Axis,
    /// Whether the items of `many` are rows of the result.
    pub many_are_rows: bool,
    pub add: bool,
    /// How many products there are, one after the other.
    pub products: usize,
    /// From one product to the next: in `few`, in `many` and in the result.
    pub between: [usize; 3],
}

/// Steps that are neighbours in both operands.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// Where they begin in each row of the operand with few items, ...
    pub few: usize,
    /// ... and in each item of the other.
    pub many: usize,
    pub steps: usize,
}

/// How many items are few, in products of so many steps.
pub(super) fn most_few(steps: usize) -> usize {
    if steps >= LONG { FEW } else { SIDE_BY_SIDE }
}

/// How many words behind an item the one is that is best asked for while it is read, so that it has come when
/// its turn is; `None` if `count` items of so many steps are near, or so long that the processor asks by
/// itself.
pub(super) fn words_ahead<W>(items: &Axis, count: usize, steps: usize) -> Option<usize> {
    let item_bytes = steps * size_of::<W>();
    let is_far = count.saturating_mul(item_bytes) > second_level_bytes();
    let asks = is_far && (1..=SHORT_BYTES).contains(&item_bytes);
    let blocks = AHEAD_BYTES.div_ceil(MANY * item_bytes.max(1));
    items.stride().filter(|_| asks).map(|stride| stride.wrapping_mul(blocks * MANY))
}

/// Whether steps are neighbours, or lines of neighbours that are long enough to be taken one after the other
/// for so `few` items.
fn are_lines(steps: &Axis, few: usize, lanes: usize) -> bool {
    if steps.stride().is_some() {
        return steps.stride() == Some(1);
    }
    let (_, len, stride) = steps.run(0, steps.len());
    stride == 1 && runs_along_lines(few, len, lanes)
}

/// Whether a product of `few` items with many, whose steps are lines of so many neighbours, is computed along
/// those lines, as one operand lies: where tiles would leave half of a vector empty, if lines fill theirs.
pub(super) fn runs_along_lines(few: usize, len: usize, lanes: usize) -> bool {
    let are_filled = 4 * len > 3 * len.next_multiple_of(lanes);
    len >= 2 * lanes && (few <= SIDE_BY_SIDE || few <= lanes / 2 && are_filled)
}

/// Whether the operand at this address is read from its end on: every other time, so that what was read last, and is still
/// in a cache that does not hold all of it, is read first.
fn turn_back(address: usize) -> bool {
    thread_local! {
        /// For operands by their addresses: which were read from their beginning on.
        static FORWARDS: Cell<u64> = const { Cell::new(0) };
    }
    // A page or more from one to the next: a multiplication spreads their numbers.
    let page = (address >> 12) as u64;
    let bit = 1 << (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58);
    let was_forwards = FORWARDS.get() & bit != 0;
    FORWARDS.set(FORWARDS.get() ^ bit);
    was_forwards
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
        let lanes = loops.format().lanes;
        let along = |source: &dyn Source<W>| {
            source.in_place().is_some_and(|place| {
                let few = self.rows.min(self.cols);
                place.items.stride() != Some(1) && are_lines(place.steps, few, lanes)
            })
        };
        let most = most_few(self.steps);
        let many_are_rows = match (self.rows <= most, self.cols <= most) {
            (true, _) if along(*rhs) => false,
            (_, true) if along(self.lhs) => true,
            _ => return false,
        };
        let (few, many) = if many_are_rows { (*rhs, self.lhs) } else { (self.lhs, *rhs) };
        let (few_count, many_count) =
            if many_are_rows { (self.cols, self.rows) } else { (self.rows, self.cols) };
        let Some(many) = many.in_place() else { return false };
        let steps = self.steps;
        let few_stride = steps.next_multiple_of(lanes);
        let mut lines = SmallVec::<[Line; 8]>::new();
        let mut step = 0;
        while step < steps {
            let (offset, len, _) = many.steps.run(step, steps - step);
            lines.push(Line { few: step, many: offset, steps: len });
            step += len;
        }
        let ahead = words_ahead::<W>(many.items, self.batches.saturating_mul(many_count), steps);
        let bytes = many_count.saturating_mul(steps).saturating_mul(size_of::<W>());
        // (Each of several threads has a part of its own, and would take another's.)
        let backwards = threads.count() == 1
            && bytes > second_level_bytes() / 2
            && turn_back(many.start.get().addr());
        let compute = |few: Shared<W>, few_stride: usize| {
            let items = (TASK_WORDS / steps.max(1)).clamp(MANY, 1024).next_multiple_of(MANY);
            threads.for_ranges(many_count, items, &|range| {
                let many_range = match backwards {
                    true => many_count - range.end..many_count - range.start,
                    false => range,
                };
                let dots = Dots {
                    few,
                    few_stride,
                    few_count,
                    many: many.start,
                    many_items: many.items,
                    many_range,
                    ahead,
                    lines: &lines,
                    start,
                    rows,
                    many_are_rows,
                    add: self.add,
                    products: 1,
                    between: [0; 3],
                };
                // SAFETY: the caller's promise; the rows of `few` have all steps.
                unsafe { loops.dots(&dots) };
            });
        };
        // Rows of neighbours are read where they lie.
        let few_place = few.in_place().filter(|place| place.steps.stride() == Some(1));
        if let Some((place, stride)) = few_place.and_then(|p| Some((p, p.items.stride()?))) {
            compute(place.start, stride);
            return true;
        }
        scratch::with(few_count * few_stride, |words: &mut [W]| {
            for (i, row) in words.chunks_exact_mut(few_stride.max(1)).enumerate() {
                few.pack(i..i + 1, 0..steps, 1, &mut row[..steps]);
            }
            compute(Shared(words.as_mut_ptr()), few_stride);
        });
        true
    }
}

impl<W, A: MulAdd> Dots<'_, W, A> {
    /// Computes the products.
    ///
    /// # Safety
    /// The features are there; the steps of all items of both operands may be read, and what they are
    /// for written in the result; nothing else writes to the former or accesses the latter.
    #[inline(always)]
    pub(super) unsafe fn run<S: Simd<Word = W, Acc = A>>(&self) {
        if self.few_count <= SIDE_BY_SIDE {
            // The items of all products are read once.
            // SAFETY: the caller's promise.
            return unsafe { self.run_all::<S>() };
        }
        for number in 0..self.products {
            let [few, many, start] = self.between.map(|between| number * between);
            let product = Dots {
                few: Shared(self.few.get().wrapping_add(few)),
                many: Shared(self.many.get().wrapping_add(many)),
                start: Shared(self.start.get().wrapping_add(start)),
                many_range: self.many_range.clone(),
                products: 1,
                ..*self
            };
            // SAFETY: the caller's promise.
            unsafe { product.run_all::<S>() };
        }
    }

    /// Computes the products, some items of all of them before the next ones.
    ///
    /// # Safety
    /// As for [`Dots::run`].
    #[inline(always)]
    unsafe fn run_all<S: Simd<Word = W, Acc = A>>(&self) {
        // All of the few meet what has just been read.
        let together = match self.few_count {
            0..=SIDE_BY_SIDE => self.many_range.len(),
            _ => MANY,
        };
        for many in chunks(self.many_range.clone(), together.max(1)) {
            for first in (0..self.few_count).step_by(SIDE_BY_SIDE) {
                // SAFETY: the caller's promise.
                unsafe {
                    match self.few_count - first {
                        1 => self.sums::<S, 1>(first, many.clone()),
                        2 => self.sums::<S, 2>(first, many.clone()),
                        3 => self.sums::<S, 3>(first, many.clone()),
                        _ => self.sums::<S, SIDE_BY_SIDE>(first, many.clone()),
                    }
                };
            }
        }
    }

    /// Computes the sums of `COUNT` of the few items with others, of all products.
    ///
    /// # Safety
    /// As for [`Dots::run`]; `few` has `COUNT` rows from `first_few` on.
    #[inline(always)]
    unsafe fn sums<S: Simd<Word = W, Acc = A>, const COUNT: usize>(
        &self,
        first_few: usize,
        range: Range<usize>,
    ) {
        let Range { start: mut at, end } = range;
        while at < end {
            // Items that are evenly spread, and so are their sums.
            let (item, mut count, apart) = self.many_items.run(at, end - at);
            let (mut place, mut places_apart) = (at, 1);
            if self.many_are_rows {
                (place, count, places_apart) = self.rows.run(at, count);
            }
            // Where the results of each of the few begin.
            let starts: [usize; COUNT] = std::array::from_fn(|i| {
                let i = first_few + i;
                place + if self.many_are_rows { i } else { self.rows.offset(i) }
            });
            let first = [first_few * self.few_stride, item];
            for number in 0..self.products {
                let [few, many, start] = self.between.map(|between| number * between);
                let few = self.few.get().cast_const().wrapping_add(few + first[0]);
                let many = self.many.get().cast_const().wrapping_add(many + first[1]);
                let start = self.start.get().wrapping_add(start);
                let items = Spread { start: many, apart, len: count };
                let places = starts.map(|place| start.wrapping_add(place));
                // SAFETY: the caller's promise: the steps of these items may be read, and their places written.
                unsafe { self.evenly::<S, COUNT>((few, first_few), items, (places, places_apart)) };
            }
            at += count;
        }
    }

    /// Computes the sums of `COUNT` of the few items, which begin at `few`, with others, and writes them from `places` on,
    /// each so many elements after the one before.
    ///
    /// # Safety
    /// As for [`Dots::run`]; `few` points to row `first_few` of at least `COUNT` more, `items` to items of the other operand,
    /// and `places` to where their sums go.
    #[inline(always)]
    unsafe fn evenly<S: Simd<Word = W, Acc = A>, const COUNT: usize>(
        &self,
        (few, first_few): (*const W, usize),
        items: Spread<*const W>,
        (places, places_apart): ([*mut A; COUNT], usize),
    ) {
        let mut done = 0;
        let some = |done: usize, len: usize| Spread {
            start: items.start.wrapping_add(done * items.apart),
            apart: items.apart,
            len,
        };
        // SAFETY: the caller's promise.
        unsafe {
            // Of one of the few, registers have room for more sums, so that fewer wait for each other.
            while COUNT == 1 && done + 2 * MANY <= items.len {
                let items = some(done, 2 * MANY);
                let sums = self.block::<S, COUNT, { 2 * MANY }>(few, first_few, items);
                for (start, [a, b, c, d, e, f, g, h]) in places.into_iter().zip(sums) {
                    let places = |i: usize| Spread {
                        start: start.wrapping_add((done + i) * places_apart),
                        apart: places_apart,
                        len: MANY,
                    };
                    self.write::<S>(places(0), [a, b, c, d]);
                    self.write::<S>(places(MANY), [e, f, g, h]);
                }
                done += 2 * MANY;
            }
            while done < items.len {
                let len = (items.len - done).min(MANY);
                let sums = self.block::<S, COUNT, MANY>(few, first_few, some(done, len));
                for (start, sums) in places.into_iter().zip(sums) {
                    let start = start.wrapping_add(done * places_apart);
                    self.write::<S>(Spread { start, apart: places_apart, len }, sums);
                }
                done += len;
            }
        }
    }

    /// The sums, lane by lane, of `COUNT` of the few items, which begin at `few`, with the first `ITEMS` of others.
    ///
    /// # Safety
    /// As for [`Dots::run`]; `few` points to the first of `COUNT` rows, and `items` to items of the other operand.
    #[inline(always)]
    unsafe fn block<S: Simd<Word = W, Acc = A>, const COUNT: usize, const ITEMS: usize>(
        &self,
        few: *const W,
        first_few: usize,
        items: Spread<*const W>,
    ) -> [[S::Vec; ITEMS]; COUNT] {
        // Where there are fewer items the last is multiplied again, for nothing.
        let last = if ITEMS == MANY { items.len - 1 } else { ITEMS - 1 };
        let items: [*const W; ITEMS] =
            std::array::from_fn(|i| items.start.wrapping_add(i.min(last) * items.apart));
        let mut sums = [[S::zero(); ITEMS]; COUNT];
        // Once for all of the few.
        let ahead = self.ahead.filter(|_| first_few == 0);
        for line in self.lines {
            let few = few.wrapping_add(line.few);
            let whole = line.steps / S::LANES * S::LANES;
            for step in (0..whole).step_by(S::LANES) {
                if let Some(ahead) = ahead {
                    for item in items {
                        prefetch_far(item.wrapping_add(line.many + ahead + step).cast());
                    }
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's promise: these steps of all items may be read.
                    unsafe {
                        let few = S::load(few.wrapping_add(i * self.few_stride + step));
                        for (sum, item) in sums.iter_mut().zip(items) {
                            let words = S::load(item.wrapping_add(line.many + step));
                            *sum = S::mul_add(few, words, *sum);
                        }
                    }
                }
            }
            if whole < line.steps {
                let mask = S::mask(line.steps - whole);
                for (i, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's promise: these steps of all items may be read, and lanes outside the
                    // mask are not accessed.
                    unsafe {
                        let few = few.wrapping_add(i * self.few_stride + whole);
                        let few = S::load_masked(few, mask);
                        for (sum, item) in sums.iter_mut().zip(items) {
                            let words = S::load_masked(item.wrapping_add(line.many + whole), mask);
                            *sum = S::mul_add(few, words, *sum);
                        }
                    }
                }
            }
        }
        sums
    }

    /// Writes the totals of a block's sums, as many as there are places.
    ///
    /// # Safety
    /// As for [`Dots::run`]; the places may be written.
    #[inline(always)]
    unsafe fn write<S: Simd<Word = W, Acc = A>>(
        &self,
        places: Spread<*mut A>,
        sums: [S::Vec; MANY],
    ) {
        // SAFETY: the caller's promise.
        let totals = unsafe { S::totals(sums) };
        if (places.apart, places.len) == (1, MANY) && !self.add {
            // SAFETY: the caller's promise for `MANY` neighbours.
            unsafe { places.start.cast::<[A; MANY]>().write(totals) };
            return;
        }
        for (i, total) in totals.into_iter().enumerate().take(places.len) {
            let to = places.start.wrapping_add(i * places.apart);
            // SAFETY: the caller's promise: the place may be written.
            unsafe { to.write(if self.add { to.read().add(total) } else { total }) };
        }
    }
}

/// Evenly spread places.
#[derive(Clone, Copy)]
struct Spread<P> {
    start: P,
    /// Elements from one to the next.
    apart: usize,
    /// How many there are; at least one.
    len: usize,
}
