//! Pairs of elements that a comparator is asked about.

use smallvec::SmallVec;

use super::super::super::bytes::{Scratch, cast, cast_mut, with_size};
use super::super::super::scratch;

/// The most pairs that one call of a comparator compares: enough to make the call worth it, and few
/// enough for the ends of all merges to stay in the caches.
pub const PAIRS: usize = 128;

/// For each number of a compared operand, the left elements of pairs and the right ones.
pub type Pairs<'p> = dyn Fn(usize) -> [&'p [u8]; 2] + 'p;

/// A comparator: the number of pairs, the pairs, and a byte for each pair, which it sets to 1 if the
/// right element comes before the left one, else to 0. Slices have room for [`PAIRS`] pairs.
pub type Precedes<'a> = dyn Fn(usize, &Pairs<'_>, &mut [u8]) + Sync + 'a;

/// A comparator, and what is moved by its answers.
pub(super) struct PairComparator<'a> {
    pub precedes: &'a Precedes<'a>,
    /// Bytes of an element of each column.
    pub sizes: &'a [usize],
    /// The number of columns that the comparator reads: the first ones.
    pub compared: usize,
}

/// A list with an item for each column.
pub(super) type PerColumn<T> = SmallVec<[T; 4]>;

impl PairComparator<'_> {
    /// Calls `body` with room for `rows` times [`PAIRS`] elements of each column.
    pub fn with_rows(&self, rows: usize, body: impl FnOnce(PerColumn<&mut [u8]>)) {
        // Rows of all elements are whole cache lines.
        let bytes = self.sizes.iter().map(|size| rows * PAIRS * size).sum::<usize>();
        scratch::with(bytes + 64 * self.sizes.len(), |memory: &mut [u8]| {
            let mut scratch = Scratch::new(memory);
            body(self.sizes.iter().map(|size| scratch.take(rows * PAIRS * size)).collect());
        });
    }

    /// Writes the elements at these pairs of places to two rows, for each column that is compared.
    pub fn show(&self, places: &[[usize; 2]], from: &[&mut [u8]], rows: &mut [&mut [u8]]) {
        let compared = rows.iter_mut().zip(from).zip(self.sizes).take(self.compared);
        for ((rows, from), &size) in compared {
            with_size!(size, T => {
                let (left, right) = cast_mut::<T>(rows).split_at_mut(PAIRS);
                let from = cast::<T>(from);
                for (places, (left, right)) in places.iter().zip(left.iter_mut().zip(right)) {
                    (*left, *right) = (from[places[0]], from[places[1]]);
                }
            });
        }
    }
}

/// Left elements and right ones.
pub(super) fn halves(rows: &[u8]) -> [&[u8]; 2] {
    let (left, right) = rows.split_at(rows.len() / 2);
    [left, right]
}
