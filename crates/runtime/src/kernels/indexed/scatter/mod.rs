//! Scatter.
//!
//! Every element of the array gets its updates in the order of index vectors, whichever thread does
//! it. So threads share the array, not the index vectors: by the indices of batching dimensions, by
//! points of a window along axes on which windows do not move, or by stretches of the array that
//! windows do not leave: a few threads pass over other threads' windows, for more windows are sorted first.

mod combine;

use std::ops::Range;

use super::super::bytes::{Plain, Scratch, cast, cast_mut, scratch_for, with_size};
use super::super::cache::second_level_bytes;
use super::super::disjoint::Disjoint;
use super::super::number::{Fold, NumberType, with_fold, with_folding};
use super::buckets::{Buckets, Sorted};
use super::found::{BLOCK, WindowStarts};
use super::gather::points;
use super::places::OutOfBounds;
use super::{Axis, IndexedPlan, IndexedWindows};
use crate::Threads;
use crate::bounds::Lookout;
use combine::{Combination, Folded, Set, combine_at_indices};

/// Rows lie anywhere in the array. A row is prefetched when the row this many before it is changed,
/// if the array is larger than the near caches.
const ROWS_AHEAD: usize = 6;
/// Elements of updates below which one thread does all.
const MIN_SHARED: usize = 1 << 14;
/// Elements of the array that a task changes, about.
const TASK_ELEMENTS: usize = 1 << 15;
/// Where every task computes all places, the least elements that it changes at each place: computing
/// the places takes little of its time then.
const MIN_AT_PLACE: usize = 64;
/// Bytes of the largest array that is taken to lie in the first- or second-level cache.
const NEAR_BYTES: usize = 1 << 18;
/// The fewest threads for which sorting windows, and reading updates in an order other than
/// memory's, takes less time than it saves.
const SORTING_THREADS: usize = 4;
/// Windows of one element that are combined between two looks at the limits of the run.
const DIRECT: usize = 1 << 14;
/// Bytes of the smallest window that may as well be read anywhere in the updates: some lines side by side.
const MIN_SORTED: usize = 256;
/// How many second-level caches an array fills from which on it takes longer to bring its lines there once for each
/// window than to sort the windows. (Rows of 128 numbers on two threads of an AMD Zen 4 with 1 MB each: 2.5 MB 3.1 ms,
/// sorted 3.8; 16 MB 0.80 and 0.71.)
const LARGE: usize = 8;
/// Bytes that a task copies.
const COPY_BYTES: usize = 1 << 20;

/// What becomes of an element of the array and one of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// The window's element replaces the array's; both have this many bytes.
    Set(usize),
    /// The fold of both elements, which are of this type.
    Fold(NumberType, Fold),
}

/// Combines windows into an array, one index vector after the other; windows that reach out are
/// left out as a whole.
#[derive(Clone, Debug)]
pub struct Scatter {
    plan: IndexedPlan,
    /// Axes of a window on which windows do not move; the others are in `plan`.
    outer: Vec<Axis>,
    /// How many points those have.
    points: usize,
    combine: Combine,
    element_size: usize,
    len: usize,
    /// How windows are sorted by parts of the array, if they can be.
    buckets: Option<Buckets>,
    /// Whether all updates are one number.
    is_splat: bool,
}

/// How the work is divided into tasks such that no two change the same element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// One task does it all.
    Whole,
    /// A task has this many index vectors; no two windows overlap.
    Vectors(usize),
    /// A task has this many points of the outer axes, for all index vectors.
    Points(usize),
    /// A task has this many elements of each row, for all index vectors.
    Columns(usize),
    /// A task has this many elements of the array, and looks through all index vectors for windows there.
    Shares(usize),
    /// A task has one of the parts of the array by which the windows are sorted.
    Parts,
}

/// What of each window is combined.
struct Strip<'p> {
    points: Range<usize>,
    columns: Range<usize>,
    window: &'p [Axis],
    /// Rows between the one that is fetched and the one that is changed.
    rows_ahead: usize,
}

/// The windows in the order of the parts of the array.
struct Windows<'s> {
    sorted: Sorted<'s>,
    /// The elements of the updates in that order, if they are sorted along.
    carried: Option<&'s [u8]>,
}

impl Scatter {
    /// `None` if the description is not consistent, or elements have no size that types have.
    pub fn new(windows: &IndexedWindows, combine: Combine) -> Option<Self> {
        let element_size = match combine {
            Combine::Set(size) => size,
            Combine::Fold(ty, _) => ty.size(),
        };
        if ![1, 2, 4, 8, 16].contains(&element_size) {
            return None;
        }
        let mut plan = windows.plan()?;
        let (outer, window): (Vec<_>, _) = plan.window.into_iter().partition(|axis| axis.is_fixed);
        plan.window = window;
        let len = windows.array.iter().product();
        let list_len = windows.list.iter().product();
        // Windows have one index of these leading dimensions, so those of different ones do not
        // meet.
        let is_left_out = |d: &usize| {
            windows.left_out.contains(d) || windows.batching.iter().any(|(array, _)| array == d)
        };
        let leading = (0..windows.array.len()).take_while(is_left_out).count();
        let stretch: usize = windows.array[leading..].iter().product();
        let count = plan.places.count();
        let buckets = Buckets::new(count, (len, list_len), stretch, element_size);
        let points = points(&outer);
        let is_splat = windows.is_splat;
        Some(Scatter { plan, outer, points, combine, element_size, len, buckets, is_splat })
    }

    /// How the work is divided for `threads` threads. (That this depends on their number changes no
    /// result: whatever the way, each element gets its updates in the same order.)
    fn way(&self, threads: usize) -> Division {
        if threads == 1 {
            return Division::Whole;
        }
        let IndexedPlan { places, window, row, is_row_fixed } = &self.plan;
        let (count, at_point) = (places.count(), points(window) * row);
        let work = count.saturating_mul(at_point).saturating_mul(self.points);
        if work < MIN_SHARED {
            return Division::Whole;
        }
        if let Some(each) = self.apart() {
            let work = (each * at_point).saturating_mul(self.points).max(1);
            return Division::Vectors((TASK_ELEMENTS / work).max(1) * each);
        }
        let enough = MIN_AT_PLACE.max(TASK_ELEMENTS / count);
        let of_points = enough.div_ceil(at_point.max(1));
        if self.points.div_ceil(of_points) > 1 {
            return Division::Points(of_points);
        }
        if self.is_better_sorted() {
            return Division::Parts;
        }
        // Threads that change parts of one row take lines from each other that they have not asked for: the
        // processor fetches a line's neighbours by itself.
        if let Some(buckets) = &self.buckets
            && at_point >= 2 * MIN_AT_PLACE
            && threads < SORTING_THREADS
        {
            return Division::Shares(buckets.share_len(self.len, threads));
        }
        let of_columns = row.div_ceil(threads).next_multiple_of(MIN_AT_PLACE);
        if *is_row_fixed && row.div_ceil(of_columns) >= threads {
            return Division::Columns(of_columns);
        }
        let pays = threads >= SORTING_THREADS;
        if self.buckets.is_some() && pays { Division::Parts } else { Division::Whole }
    }

    /// Whether windows are sorted by parts of the array also for two or three threads: each part is then copied, and
    /// changed many times, while it is in the second-level cache.
    fn is_better_sorted(&self) -> bool {
        let IndexedPlan { places, window, row, .. } = &self.plan;
        let Some(buckets) = &self.buckets else { return false };
        points(window) * row * self.element_size >= MIN_SORTED
            && self.len * self.element_size >= LARGE * second_level_bytes()
            && places.count() >= 2 * buckets.parts()
    }

    /// How many index vectors share an index of the outermost axis, if windows of different ones
    /// are apart.
    fn apart(&self) -> Option<usize> {
        let IndexedPlan { places, window, row, .. } = &self.plan;
        let (outermost, inner) = places.batches().split_first()?;
        let reach = |axis: &Axis| axis.size.saturating_sub(1) * axis.array;
        let window: usize = window.iter().chain(&self.outer).map(reach).sum();
        let is_apart = outermost.array >= places.reach_inside() + window + row;
        is_apart.then(|| inner.iter().map(|batch| batch.size).product())
    }

    /// How much working memory [`Scatter::run`] needs for this many threads to work at once.
    pub fn scratch_bytes(&self, threads: usize) -> usize {
        self.scratch_by(self.way(threads))
    }

    pub(super) fn scratch_by(&self, way: Division) -> usize {
        let sorting = match (way, &self.buckets) {
            (Division::Parts, Some(buckets)) => {
                let carried = if self.is_carried() { self.plan.places.count() } else { 0 };
                let carried = scratch_for::<u8>(carried.saturating_mul(self.element_size));
                buckets.scratch_bytes().saturating_add(carried)
            }
            _ => 0,
        };
        let row = if self.is_splat { scratch_for::<u8>(self.splat_bytes()) } else { 0 };
        sorting.saturating_add(row)
    }

    /// The bytes of a row of updates that are one number.
    fn splat_bytes(&self) -> usize {
        self.plan.row.saturating_mul(self.element_size)
    }

    /// All ways in which it can be done, in the smallest tasks.
    #[cfg(test)]
    pub(super) fn ways(&self) -> Vec<Division> {
        let columns = self.plan.is_row_fixed.then_some(Division::Columns(1));
        let parts = self.buckets.as_ref().map(|_| Division::Parts);
        let shares = self.buckets.as_ref().map(|b| Division::Shares(b.share_len(self.len, 5)));
        let vectors = self.apart().filter(|&each| each > 0).map(Division::Vectors);
        let ways = [Division::Whole, Division::Points(1)].into_iter();
        ways.chain(columns).chain(shares).chain(parts).chain(vectors).collect()
    }

    /// Whether windows, being single elements, are sorted along with their places.
    fn is_carried(&self) -> bool {
        let is_element = self.plan.row == 1 && self.plan.window.is_empty() && self.outer.is_empty();
        is_element && !self.is_splat
    }

    /// Combines the windows of `updates`, or the one number that all updates are, into `to`, which
    /// holds the array or, if `array` is given, becomes a copy of it first.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(
        &self,
        array: Option<&[u8]>,
        (indices, updates): (&[u8], &[u8]),
        to: &mut [u8],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        let way = self.way(threads.count());
        self.run_by(way, array, (indices, updates), to, scratch, threads);
    }

    pub(super) fn run_by(
        &self,
        way: Division,
        array: Option<&[u8]>,
        (indices, updates): (&[u8], &[u8]),
        to: &mut [u8],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        let to = &mut to[..self.len * self.element_size];
        // Parts are copied when their turn comes.
        let array = array.filter(|_| !to.is_empty());
        if let (Some(array), true) = (array, way != Division::Parts) {
            threads.for_chunks(to, COPY_BYTES, &|i, to| {
                to.copy_from_slice(&array[i * COPY_BYTES..][..to.len()]);
            });
        }
        if to.is_empty() {
            return;
        }
        let mut scratch = Scratch::new(scratch);
        let updates = match self.is_splat {
            true => self.splat(updates, &mut scratch),
            false => updates,
        };
        let sorted = match (way, &self.buckets) {
            (Division::Parts, Some(buckets)) => {
                Some(self.sort(buckets, indices, updates, &mut scratch, threads))
            }
            _ => None,
        };
        let updates = match &sorted {
            Some(Windows { carried: Some(carried), .. }) => *carried,
            _ => updates,
        };
        macro_rules! typed {
            ($T:ty, $combination:expr) => {{
                let arrays = (array.map(cast::<$T>), indices, cast::<$T>(updates));
                self.typed(way, arrays, cast_mut::<$T>(to), sorted.as_ref(), $combination, threads);
            }};
        }
        match self.combine {
            Combine::Set(size) => with_size!(size, T => typed!(T, Set)),
            Combine::Fold(ty, fold) => with_folding!(ty, fold, folding => {
                typed!(_, Folded(folding))
            }),
        }
    }

    /// Sorts the windows by the parts of the array, and along with them updates that are single
    /// elements.
    fn sort<'s>(
        &self,
        buckets: &Buckets,
        indices: &[u8],
        updates: &[u8],
        scratch: &mut Scratch<'s>,
        threads: Threads<'_>,
    ) -> Windows<'s> {
        let places = &self.plan.places;
        if !self.is_carried() {
            let sorted = buckets.sort(places, indices, scratch, threads, |_, _| {});
            return Windows { sorted, carried: None };
        }
        let carried = scratch.take::<u8>(places.count() * self.element_size);
        let sorted = with_size!(self.element_size, T => {
            let (carried, updates) = (Disjoint::new(cast_mut::<T>(carried)), cast::<T>(updates));
            buckets.sort(places, indices, scratch, threads, |at, list| {
                // SAFETY: no two windows have one place.
                let carried = unsafe { carried.part(at, 1) };
                carried[0] = updates[list];
            })
        });
        Windows { sorted, carried: Some(carried) }
    }

    /// A row of a number.
    fn splat<'s>(&self, number: &[u8], scratch: &mut Scratch<'s>) -> &'s [u8] {
        let row = scratch.take::<u8>(self.splat_bytes());
        with_size!(self.element_size, T => cast_mut::<T>(row).fill(cast(number)[0]));
        row
    }

    fn typed<T: Plain>(
        &self,
        way: Division,
        (array, indices, updates): (Option<&[T]>, &[u8], &[T]),
        to: &mut [T],
        windows: Option<&Windows<'_>>,
        combination: impl Combination<T>,
        threads: Threads<'_>,
    ) {
        let combine = move |to, update| combination.combine(to, update);
        let IndexedPlan { places, window, row, .. } = &self.plan;
        let count = places.count();
        let to = Disjoint::new(to);
        // Elements that move to indices as they stand take one loop.
        let are_elements = self.is_carried() && places.are_indices();
        let is_far = self.len.saturating_mul(self.element_size) > NEAR_BYTES;
        let rows_ahead = if is_far { ROWS_AHEAD } else { BLOCK };
        let whole = || Strip { points: 0..self.points, columns: 0..*row, window, rows_ahead };
        // Combines a strip of the windows of these vectors.
        let combine_strip =
            |vectors: Range<usize>, strip: Strip<'_>, share: Option<Range<usize>>| {
                let mut found = WindowStarts::new();
                let mut lookout = Lookout::default();
                let size = strip.points.len().saturating_mul(strip.columns.len());
                let work = |count: usize| size.saturating_add(8).saturating_mul(count);
                if are_elements && share.is_none() {
                    for first in vectors.clone().step_by(DIRECT) {
                        let block = first..vectors.end.min(first + DIRECT);
                        if !lookout.goes_on(work(block.len())) {
                            return;
                        }
                        combine_at_indices(places, (indices, block), updates, &to, combination);
                    }
                    return;
                }
                for first in vectors.clone().step_by(BLOCK) {
                    let block = first..vectors.end.min(first + BLOCK);
                    if !lookout.goes_on(work(block.len())) {
                        return;
                    }
                    places.find(indices, block, OutOfBounds::Skip, &mut found);
                    if let Some(share) = &share {
                        found.keep_within(share);
                    }
                    self.combine_block(&found, &strip, updates, &to, combine);
                }
            };
        match (way, &self.buckets, windows) {
            (Division::Vectors(grain), ..) => {
                threads.for_ranges(count, grain, &|vectors| combine_strip(vectors, whole(), None));
            }
            (Division::Points(grain), ..) => threads.for_ranges(self.points, grain, &|points| {
                combine_strip(0..count, Strip { points, ..whole() }, None);
            }),
            (Division::Columns(grain), ..) => threads.for_ranges(*row, grain, &|columns| {
                combine_strip(0..count, Strip { columns, ..whole() }, None);
            }),
            (Division::Shares(len), ..) => threads.for_ranges(self.len, len, &|share| {
                combine_strip(0..count, whole(), Some(share));
            }),
            (Division::Parts, Some(buckets), Some(Windows { sorted, carried })) => {
                let len = buckets.part_len();
                threads.for_each(buckets.parts(), &|part| {
                    if let Some(array) = array {
                        let from = &array[part * len..self.len.min((part + 1) * len)];
                        // SAFETY: parts are disjoint, and each is one task's.
                        unsafe { to.part(part * len, from.len()) }.copy_from_slice(from);
                    }
                    let mut found = WindowStarts::new();
                    // Sorted, updates lie anywhere, too.
                    let strip = Strip { rows_ahead: ROWS_AHEAD, ..whole() };
                    sorted.blocks(part, &mut found, carried.is_some(), |found| {
                        self.combine_block(found, &strip, updates, &to, combine);
                    });
                });
            }
            (Division::Whole | Division::Parts, ..) => combine_strip(0..count, whole(), None),
        }
    }
}
