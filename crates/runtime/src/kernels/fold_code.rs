//! Code that folds elements of arrays, which may compute anything.
//!
//! It is fast only if it folds many elements at once. So elements are read into rows, folded side by
//! side with rows of accumulators, and those are written where they belong.

use smallvec::SmallVec;

use super::bytes::{Plain, Scratch, cast, cast_mut, with_size};
use super::scratch;
use super::sort::{PAIRS, Pairs};

/// Code that folds: the number of pairs, the accumulators and elements of each array, and where the
/// new accumulators of each array go. Slices have room for [`PAIRS`] pairs.
pub type FoldCode<'a> = dyn Fn(usize, &Pairs<'_>, &mut [&mut [u8]]) + Sync + 'a;

/// The place of no element.
pub(super) const NOWHERE: usize = usize::MAX;

/// A list with an item for each array.
pub(super) type PerArray<T> = SmallVec<[T; 4]>;

/// Calls `body` with rows for arrays whose elements have these sizes.
pub(super) fn with_rows(sizes: &[usize], body: impl FnOnce(&mut Rows<'_>)) {
    let bytes: usize = sizes.iter().map(|size| 3 * (PAIRS * size + 64)).sum();
    scratch::with(bytes, |memory: &mut [u8]| {
        let mut memory = Scratch::new(memory);
        let mut rows = || sizes.iter().map(|size| memory.take(PAIRS * size)).collect();
        let (accumulators, elements, next) = (rows(), rows(), rows());
        body(&mut Rows { sizes, accumulators, elements, next });
    });
}

/// What is folded side by side, for each array.
pub(super) struct Rows<'s> {
    sizes: &'s [usize],
    pub(super) accumulators: PerArray<&'s mut [u8]>,
    pub(super) elements: PerArray<&'s mut [u8]>,
    /// New accumulators.
    next: PerArray<&'s mut [u8]>,
}

impl Rows<'_> {
    /// Lets accumulators be initial values.
    pub(super) fn start(&mut self, inits: &[&[u8]], count: usize) {
        for ((row, init), &size) in self.accumulators.iter_mut().zip(inits).zip(self.sizes) {
            with_size!(size, T => cast_mut::<T>(row)[..count].fill(cast(init)[0]));
        }
    }

    /// Lets accumulators be the elements.
    pub(super) fn begin(&mut self) {
        std::mem::swap(&mut self.accumulators, &mut self.elements);
    }

    /// Reads elements; of nowhere, nothing.
    pub(super) fn read(&mut self, from: &[&[u8]], places: &[usize]) {
        fn typed<T: Plain>(from: &[T], places: &[usize], row: &mut [T]) {
            for (to, &place) in row.iter_mut().zip(places) {
                if let Some(&element) = from.get(place) {
                    *to = element;
                }
            }
        }
        for ((row, from), &size) in self.elements.iter_mut().zip(from).zip(self.sizes) {
            with_size!(size, T => typed::<T>(cast(from), places, cast_mut(row)));
        }
    }

    /// Folds elements into accumulators, on the right unless they come before.
    pub(super) fn fold(&mut self, code: &FoldCode<'_>, count: usize, come_before: bool) {
        let (accumulators, elements) = (&self.accumulators, &self.elements);
        let pairs = |array: usize| match come_before {
            true => [&*elements[array], &*accumulators[array]],
            false => [&*accumulators[array], &*elements[array]],
        };
        code(count, &pairs, &mut self.next);
        std::mem::swap(&mut self.accumulators, &mut self.next);
    }

    /// Folds elements of `from` at these places into those of `to`, all of them different.
    fn update(
        &mut self,
        code: &FoldCode<'_>,
        (places, to): (&[usize], &mut [&mut [u8]]),
        (updates, from): (&[usize], &[&[u8]]),
    ) {
        {
            let now: PerArray<&[u8]> = to.iter().map(|to| &**to).collect();
            self.read(&now, places);
        }
        self.begin();
        self.read(from, updates);
        self.fold(code, places.len(), false);
        for ((to, row), &size) in to.iter_mut().zip(&self.accumulators).zip(self.sizes) {
            with_size!(size, T => {
                let to = cast_mut::<T>(to);
                for (&value, &place) in cast::<T>(row).iter().zip(places) {
                    to[place] = value;
                }
            });
        }
    }

    /// Lets accumulators be the elements where it is not said that they stay.
    pub(super) fn replace(&mut self, stays: &[u8]) {
        for ((row, new), &size) in self.accumulators.iter_mut().zip(&self.elements).zip(self.sizes)
        {
            with_size!(size, T => {
                let pairs = cast_mut::<T>(row).iter_mut().zip(cast::<T>(new));
                for ((now, &new), &stays) in pairs.zip(stays) {
                    *now = if stays != 0 { *now } else { new };
                }
            });
        }
    }

    /// Takes back what was folded for nowhere.
    pub(super) fn keep(&mut self, places: &[usize]) {
        for ((row, old), &size) in self.accumulators.iter_mut().zip(&self.next).zip(self.sizes) {
            with_size!(size, T => {
                let (row, old) = (cast_mut::<T>(row), cast::<T>(old));
                for (i, _) in places.iter().enumerate().filter(|&(_, &place)| place == NOWHERE) {
                    row[i] = old[i];
                }
            });
        }
    }
}

/// Updates that are collected before they are combined.
const COLLECTED: usize = 4 * PAIRS;
/// Bits of a hash of an element's place: elements with the same hash are taken for the same one,
/// which is slower but right.
const BITS: u32 = 14;

/// Elements of arrays, and those of others that are folded into them one after the other.
///
/// They are folded side by side as long as they are for different elements: the first that is for
/// the same one as any before it begins the next batch.
pub(super) struct Updates<'s, 'r> {
    /// Which elements of the arrays, and which are folded into them.
    places: [usize; COLLECTED],
    updates: [usize; COLLECTED],
    count: usize,
    rows: &'s mut Rows<'r>,
    /// For each combination of [`BITS`], the first place that has it.
    firsts: &'s mut [u8],
}

/// Calls `body` with no updates yet, for arrays whose elements have these sizes.
pub(super) fn with_updates(sizes: &[usize], body: impl FnOnce(&mut Updates<'_, '_>)) {
    with_rows(sizes, |rows| {
        scratch::with(1 << BITS, |firsts: &mut [u8]| {
            let (places, updates) = ([0; COLLECTED], [0; COLLECTED]);
            body(&mut Updates { places, updates, count: 0, rows, firsts });
        });
    });
}

impl Updates<'_, '_> {
    /// Whether they must be folded before there are others.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.count == COLLECTED
    }

    /// Adds one.
    #[inline(always)]
    pub(super) fn push(&mut self, place: usize, update: usize) {
        (self.places[self.count], self.updates[self.count]) = (place, update);
        self.count += 1;
    }

    /// Folds all of them, which are elements of `from`, into `to`; none is left.
    pub(super) fn fold(&mut self, code: &FoldCode<'_>, from: &[&[u8]], to: &mut [&mut [u8]]) {
        let (mut at, mut most) = (0, PAIRS);
        while at < self.count {
            let end = self.count.min(at + most);
            let count = different(&self.places[at..end], self.firsts);
            let (places, updates) = (&self.places[at..][..count], &self.updates[at..][..count]);
            self.rows.update(code, (places, to), (updates, from));
            at += count;
            // Where there are few in a batch, it does not pay to look far.
            most = (2 * count + 8).min(PAIRS);
        }
        self.count = 0;
    }
}

/// How many places, at most [`PAIRS`], differ from all before them; at least one.
fn different(places: &[usize], firsts: &mut [u8]) -> usize {
    // As long as places have no more bits, the bits are their own.
    let bits =
        |place: usize| place.wrapping_add((place >> BITS).wrapping_mul(0x9e37_79b9)) % (1 << BITS);
    for (i, &place) in places.iter().enumerate().rev() {
        firsts[bits(place)] = i as u8;
    }
    let is_second = |(i, &place): (usize, &usize)| firsts[bits(place)] != i as u8;
    places.iter().enumerate().position(is_second).unwrap_or(places.len())
}
