//! Scatter.

use std::ops::Range;

use super::super::bytes::{cast, cast_mut, with_size};
use super::super::disjoint::Disjoint;
use super::super::isa::{prefetch, vectorised};
use super::super::number::{Fold, FoldOp, NumberType, with_fold, with_number};
use super::gather::each;
use super::places::{BLOCK, Found, Outside};
use super::{IndexedWindows, Plan};
use crate::Threads;

/// Rows between the one that is fetched and the one that is changed.
const ROWS_AHEAD: usize = 6;

/// What becomes of an element of the array and one of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The window's, of so many bytes.
    Set(usize),
    /// Both of this type, folded.
    Fold(NumberType, Fold),
}

/// Combines windows into an array, one index vector after the other; windows that reach out are
/// left out as a whole.
#[derive(Clone, Debug)]
pub struct Scatter {
    plan: Plan,
    combine: Combine,
    /// Windows are as wide as one of these stretches of the array and lie in one: so many elements.
    /// None if windows can overlap in part.
    stretch: Option<usize>,
    len: usize,
}

impl Scatter {
    /// `None` if the description is not consistent, or elements have no size that types have.
    pub fn new(windows: &IndexedWindows, combine: Combine) -> Option<Self> {
        if matches!(combine, Combine::Set(size) if ![1, 2, 4, 8, 16].contains(&size)) {
            return None;
        }
        let plan = windows.plan()?;
        // Where windows have one index of an array's first dimension, those of different indices
        // do not meet.
        let is_first = |d: usize| d == 0 && windows.array.len() > 1;
        let first = windows.left_out.iter().any(|&d| is_first(d))
            || windows.batching.iter().any(|&(d, _)| is_first(d));
        let stretch = first.then(|| windows.array[1..].iter().product());
        Some(Scatter { plan, combine, stretch, len: windows.array.iter().product() })
    }

    /// Combines the windows of `updates` into `to`, which holds the array.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(&self, indices: &[u8], updates: &[u8], to: &mut [u8], threads: Threads<'_>) {
        if self.len == 0 {
            return;
        }
        match self.combine {
            Combine::Set(size) => with_size!(size, T => {
                let set = |_: T, v: T| v;
                self.typed(indices, cast::<T>(updates), cast_mut::<T>(to), set, threads);
            }),
            Combine::Fold(ty, fold) => with_number!(ty, T => with_fold!(fold, F => {
                let fold = <F as FoldOp>::apply::<T>;
                self.typed(indices, cast::<T>(updates), cast_mut::<T>(to), fold, threads);
            })),
        }
    }

    fn typed<T: Copy + Send + Sync>(
        &self,
        indices: &[u8],
        updates: &[T],
        to: &mut [T],
        combine: impl Fn(T, T) -> T + Copy + Sync,
        threads: Threads<'_>,
    ) {
        // Each part of the array gets its windows in the order of index vectors, however many
        // parts there are.
        let to = &mut to[..self.len];
        let (parts, stretch) = match self.stretch {
            Some(stretch) if stretch > 0 => (threads.count().min(self.len / stretch), stretch),
            _ => (1, self.len),
        };
        let part = (self.len / stretch).div_ceil(parts.max(1)) * stretch;
        let to = Disjoint::new(to);
        threads.for_ranges(self.len, part, &|range| {
            // SAFETY: the parts are disjoint, and a window that begins in one lies in it: windows
            // do not leave a stretch, or there is one part.
            let to = unsafe { to.part(range.start, range.len()) };
            vectorised(
                #[inline(always)]
                || self.part(indices, updates, to, range, combine),
            );
        });
    }

    /// Combines the windows that begin in this range of the array.
    #[inline(always)]
    fn part<T: Copy>(
        &self,
        indices: &[u8],
        updates: &[T],
        to: &mut [T],
        range: Range<usize>,
        combine: impl Fn(T, T) -> T,
    ) {
        let Plan { places, window, row } = &self.plan;
        let count = places.count();
        let mut found = Found::new();
        for first in (0..count).step_by(BLOCK) {
            let block = first..count.min(first + BLOCK);
            places.find(indices, block, Outside::Skip, &mut found);
            let found = found.places().filter(|(place, _)| range.contains(place));
            match window[..] {
                // There is little else in this loop, so that many loads are under way.
                [] if *row == 1 => found.for_each(|(place, list)| {
                    let to = &mut to[place - range.start];
                    *to = combine(*to, updates[list]);
                }),
                _ => {
                    // Rows lie anywhere; the processor is told of one some time before it is needed.
                    let mut ahead = found.clone().skip(ROWS_AHEAD);
                    found.for_each(|(place, list)| {
                        if let Some((next, _)) = ahead.next() {
                            prefetch(&to[next - range.start..][..*row]);
                        }
                        let to = &mut to[place - range.start..];
                        each(window, |array_at, list_at| {
                            let to = &mut to[array_at..][..*row];
                            let updates = &updates[list + list_at..][..*row];
                            for (to, &update) in to.iter_mut().zip(updates) {
                                *to = combine(*to, update);
                            }
                        });
                    })
                }
            }
        }
    }
}
