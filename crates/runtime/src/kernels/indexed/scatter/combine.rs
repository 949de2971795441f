//! Windows that are combined into the array, block by block.

use std::ops::Range;

use super::super::super::bytes::Plain;
use super::super::super::disjoint::Disjoint;
use super::super::super::isa::{Isa, prefetch};
use super::super::super::number::Folding;
use super::super::found::WindowStarts;
use super::super::gather::{each, points};
use super::super::places::IndexVectors;
use super::{Scatter, Strip};

/// Bytes of the longest row that is not prefetched: the hardware is fast enough by itself.
const SHORT_ROW: usize = 128;

impl Scatter {
    /// Combines a strip of some windows.
    pub(super) fn combine_block<T: Plain>(
        &self,
        found: &WindowStarts,
        strip: &Strip<'_>,
        updates: &[T],
        to: &Disjoint<'_, T>,
        combine: impl Fn(T, T) -> T,
    ) {
        let is_element = strip.window.is_empty() && self.plan.row == 1;
        let isa = Isa::best();
        each(&self.outer, strip.points.clone(), |array_at, list_at| match is_element {
            // Vectors have nothing to do there.
            true => combine_elements(found, (array_at, list_at), updates, to, &combine),
            false => isa.run(
                #[inline(always)]
                || combine_rows(found, (array_at, list_at), strip, updates, to, &combine),
            ),
        });
    }
}

/// Combines windows of one element each. There is little else in this loop, so that the processor
/// has many loads under way.
fn combine_elements<T: Plain>(
    found: &WindowStarts,
    (array_at, list_at): (usize, usize),
    updates: &[T],
    to: &Disjoint<'_, T>,
    combine: &impl Fn(T, T) -> T,
) {
    let to = *to;
    let change = move |place: usize, update: T| {
        // SAFETY: each element of the array is one task's, which has one reference at a time.
        let to = &mut unsafe { to.part(place + array_at, 1) }[0];
        *to = combine(*to, update);
    };
    match found.even() {
        Some((first, 1)) => {
            let updates = &updates[first + list_at..][..found.array().len()];
            found.array().iter().zip(updates).for_each(|(&place, &update)| change(place, update));
        }
        Some((first, 0)) => {
            let update = updates[first + list_at];
            found.array().iter().for_each(|&place| change(place, update));
        }
        _ => found.each(move |place, list| change(place, updates[list + list_at])),
    }
}

/// How an element of the array and one of a window become one.
pub(super) trait Combination<T>: Copy + Sync {
    /// The element that the array has then.
    fn combine(self, to: T, update: T) -> T;

    /// Whether [`Self::combine_decided`] may be called with this update and any element of the array; `false` where it
    /// is no faster.
    #[inline(always)]
    fn is_decided(self, _update: T) -> bool {
        false
    }

    /// The same as [`Self::combine`], for an update such that [`Self::is_decided`].
    #[inline(always)]
    fn combine_decided(self, to: T, update: T) -> T {
        self.combine(to, update)
    }
}

/// The update.
#[derive(Clone, Copy)]
pub(super) struct Set;

impl<T> Combination<T> for Set {
    #[inline(always)]
    fn combine(self, _: T, update: T) -> T {
        update
    }
}

/// What they are folded to.
#[derive(Clone, Copy)]
pub(super) struct Folded<F>(pub F);

impl<F: Folding> Combination<F::Element> for Folded<F> {
    #[inline(always)]
    fn combine(self, to: F::Element, update: F::Element) -> F::Element {
        self.0.fold(to, update)
    }

    #[inline(always)]
    fn is_decided(self, update: F::Element) -> bool {
        self.0.is_decided(update)
    }

    #[inline(always)]
    fn combine_decided(self, to: F::Element, update: F::Element) -> F::Element {
        self.0.fold_decided(to, update)
    }
}

/// Combines windows of one element each that move to indices as they stand ([`IndexVectors::are_indices`]). It is a
/// function of its own so that all that the loop needs is in registers.
#[inline(never)]
pub(super) fn combine_at_indices<T: Plain>(
    places: &IndexVectors,
    (indices, vectors): (&[u8], Range<usize>),
    updates: &[T],
    to: &Disjoint<'_, T>,
    combination: impl Combination<T>,
) {
    let to = *to;
    let is_decided = |update| combination.is_decided(update);
    places.each_place(indices, vectors, updates, is_decided, move |place, update, decided| {
        // SAFETY: each element of the array is one task's, which has one reference at a time.
        let to = &mut unsafe { to.part(place, 1) }[0];
        *to = match decided {
            true => combination.combine_decided(*to, update),
            false => combination.combine(*to, update),
        };
    });
}

/// Combines the rows of windows.
#[inline(always)]
fn combine_rows<T: Plain>(
    found: &WindowStarts,
    (array_at, list_at): (usize, usize),
    strip: &Strip<'_>,
    updates: &[T],
    to: &Disjoint<'_, T>,
    combine: &impl Fn(T, T) -> T,
) {
    let to = *to;
    let (first, width) = (strip.columns.start, strip.columns.len());
    let (array_at, list_at) = (array_at + first, list_at + first);
    // So short that the processor has many of them under way.
    if strip.window.is_empty()
        && width * size_of::<T>() <= SHORT_ROW
        && let Some((list, step)) = found.even()
    {
        if step == width && size_of::<T>() >= 4 {
            let at = (found.array(), array_at);
            match width {
                2 => return combine_fixed::<T, 2>(at, &updates[list + list_at..], to, combine),
                3 => return combine_fixed::<T, 3>(at, &updates[list + list_at..], to, combine),
                4 => return combine_fixed::<T, 4>(at, &updates[list + list_at..], to, combine),
                8 => return combine_fixed::<T, 8>(at, &updates[list + list_at..], to, combine),
                16 => return combine_fixed::<T, 16>(at, &updates[list + list_at..], to, combine),
                _ => {}
            }
        }
        for (i, &place) in found.array().iter().enumerate() {
            let at = (place + array_at, list + list_at + i * step);
            combine_row(at, width, updates, to, combine);
        }
        return;
    }
    let rows = points(strip.window);
    for i in 0..found.array().len() {
        let Some((place, list)) = found.get(i) else { break };
        if let Some((place, list)) = found.get(i + strip.rows_ahead) {
            // SAFETY: each element of the array is one task's, which has no other reference now; this
            // one ends at once.
            prefetch(unsafe { to.part(place + array_at, width) });
            prefetch(&updates[list + list_at..][..width]);
        }
        let (place, list) = (place + array_at, list + list_at);
        each(
            strip.window,
            0..rows,
            #[inline(always)]
            |array_row, list_row| {
                let at = (place + array_row, list + list_row);
                combine_row(at, width, updates, to, combine);
            },
        );
    }
}

/// Combines rows of `N` elements, whose updates follow each other, at places that are counted from `array_at`. (Where
/// the length of a row is found out for each anew, that takes longer than to combine it: 20,000 of 16 elements take
/// twice as long.)
#[inline(always)]
fn combine_fixed<T: Plain, const N: usize>(
    (places, array_at): (&[usize], usize),
    updates: &[T],
    to: Disjoint<'_, T>,
    combine: &impl Fn(T, T) -> T,
) {
    let updates = &updates[..places.len() * N];
    for (&place, updates) in places.iter().zip(updates.as_chunks::<N>().0) {
        // SAFETY: each element of the array is one task's, which has one reference at a time.
        let to = unsafe { to.part(place + array_at, N) };
        combine_chunks::<T, N>(to, updates, combine);
    }
}

/// Combines a row of this many elements.
#[inline(always)]
fn combine_row<T: Plain>(
    (place, list): (usize, usize),
    width: usize,
    updates: &[T],
    to: Disjoint<'_, T>,
    combine: &impl Fn(T, T) -> T,
) {
    // SAFETY: each element of the array is one task's, which has one reference at a time.
    let to = unsafe { to.part(place, width) };
    let updates = &updates[list..][..width];
    // Chunks of a fixed size are vector code however short the row is.
    let (to, updates) = combine_chunks::<T, 8>(to, updates, combine);
    let (to, updates) = combine_chunks::<T, 4>(to, updates, combine);
    for (to, &update) in to.iter_mut().zip(updates) {
        *to = combine(*to, update);
    }
}

/// Combines the whole chunks of `N` elements of a row; returns the elements after the last of them.
#[inline(always)]
fn combine_chunks<'a, T: Plain, const N: usize>(
    to: &'a mut [T],
    updates: &'a [T],
    combine: &impl Fn(T, T) -> T,
) -> (&'a mut [T], &'a [T]) {
    let (to, to_rest) = to.as_chunks_mut::<N>();
    let (updates, updates_rest) = updates.as_chunks::<N>();
    for (to, updates) in to.iter_mut().zip(updates) {
        // By value, as the compiler cannot know that the two do not overlap.
        let (mut combined, updates) = (*to, *updates);
        for (combined, update) in combined.iter_mut().zip(updates) {
            *combined = combine(*combined, update);
        }
        *to = combined;
    }
    (to_rest, updates_rest)
}
