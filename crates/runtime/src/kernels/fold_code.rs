//! Code that folds elements of arrays, which may compute anything.
//!
//! It is fast only if it folds many elements at once. So elements are read into rows, folded side by
//! side with rows of accumulators, and those are written where they belong.

use smallvec::SmallVec;

use super::bytes::{Plain, Scratch, cast, cast_mut, with_size};
use super::scratch;
use super::sort::{PAIRS, Pairs};

/// Code that folds: for each of the first so many accumulators and elements, of each array, new
/// accumulators. Slices have room for [`PAIRS`].
pub type FoldCode<'a> = dyn Fn(usize, &Pairs<'_>, &mut [&mut [u8]]) + Sync + 'a;

/// The place of no element.
pub(super) const NOWHERE: usize = usize::MAX;

/// A list with an item for each array.
pub(super) type PerArray<T> = SmallVec<[T; 4]>;

/// Calls `body` with rows for arrays whose elements have these sizes.
pub(super) fn with_rows<R>(sizes: &[usize], body: impl FnOnce(&mut Rows<'_>) -> R) -> R {
    let bytes: usize = sizes.iter().map(|size| 3 * (PAIRS * size + 64)).sum();
    scratch::with(bytes, |memory: &mut [u8]| {
        let mut memory = Scratch::new(memory);
        let mut rows = || sizes.iter().map(|size| memory.take(PAIRS * size)).collect();
        let (accumulators, elements, next) = (rows(), rows(), rows());
        body(&mut Rows { sizes, accumulators, elements, next })
    })
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
