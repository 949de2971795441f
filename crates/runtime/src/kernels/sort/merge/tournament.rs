//! Few elements: each is compared with every other of its lane.
//!
//! How many come before an element is its place, if the answers are those of an order. There is then
//! one order that agrees with all of them, so it is also the one that merges find (unless the
//! comparator says that each of two elements comes before the other).

use super::super::super::bytes::{cast, cast_mut, with_size};
use super::pairs::{PAIRS, PairComparator, halves};

/// The most elements, of all lanes, that are sorted by comparing all pairs; of more, merges take fewer
/// calls of the comparator.
pub(super) const MAX_ELEMENTS: usize = 128;

/// Sorts at most [`MAX_ELEMENTS`] elements to `to`; `false` if the answers are not those of an order.
pub(super) fn sort(
    asked: &PairComparator<'_>,
    (lanes, count): (usize, usize),
    from: &[&mut [u8]],
    to: &mut [&mut [u8]],
) -> bool {
    let mut before = [0; MAX_ELEMENTS];
    asked.with_rows(2, |mut rows| {
        let mut pairs = [[0; 2]; PAIRS];
        let mut next = 0;
        let mut compare = |pairs: &[[usize; 2]]| {
            let mut answers = [0; PAIRS];
            asked.show(pairs, from, &mut rows);
            (asked.precedes)(pairs.len(), &|column| halves(rows[column]), &mut answers);
            for (&[left, right], &answer) in pairs.iter().zip(&answers) {
                before[left] += usize::from(answer != 0);
                before[right] += usize::from(answer == 0);
            }
        };
        for left in 0..lanes * count {
            for right in left + 1..(left / count + 1) * count {
                pairs[next] = [left, right];
                next += 1;
                if next == PAIRS {
                    compare(&pairs);
                    next = 0;
                }
            }
        }
        if next > 0 {
            compare(&pairs[..next]);
        }
    });
    let mut is_taken = [false; MAX_ELEMENTS];
    for (i, before) in before[..lanes * count].iter_mut().enumerate() {
        *before += i / count * count;
        if std::mem::replace(&mut is_taken[*before], true) {
            return false;
        }
    }
    for ((from, to), &size) in from.iter().zip(to).zip(asked.sizes) {
        with_size!(size, T => {
            let to = cast_mut::<T>(to);
            for (&element, &place) in cast::<T>(from).iter().zip(&before) {
                to[place] = element;
            }
        });
    }
    true
}
