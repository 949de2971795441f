//! Gather.

use std::ops::Range;

use super::super::bytes::{cast, cast_mut, with_size};
use super::super::disjoint::Disjoint;
use super::super::isa::{prefetch, vectorised};
use super::super::stream::{self, STREAM_BYTES};
use super::found::{BLOCK, WindowStarts};
use super::places::OutOfBounds;
use super::{Axis, IndexedPlan, IndexedWindows};
use crate::Threads;

/// Copies windows of an array into a list; windows that would reach out are moved inside.
#[derive(Clone, Debug)]
pub struct Gather {
    plan: IndexedPlan,
    /// Axes of a window whose neighbours are further apart in the list than windows.
    outer: Vec<Axis>,
    /// The number of points of the outer axes.
    points: usize,
    element_size: usize,
    /// The size of the list in bytes.
    bytes: usize,
}

/// Bytes that a task writes, about.
const TASK_BYTES: usize = 1 << 17;
/// Points of the outer axes that share one computation of places, if there are more points.
const POINTS_AT_ONCE: usize = 8;
/// Bytes of the longest row that is copied in pieces of a fixed size, inline; longer ones are
/// copied by a call of `memcpy`.
const MAX_INLINE: usize = 1024;
/// Bytes of the shortest row that is stored past the caches; cache lines of shorter ones would be
/// written in parts.
const MIN_STREAMED: usize = 256;
/// Rows lie anywhere in the array: a row is prefetched when the row this many before it is copied.
const ROWS_AHEAD: usize = 6;

impl Gather {
    /// A plan for elements of `element_size` bytes. `None` if the description is not consistent, or no
    /// element type has that size.
    pub fn new(windows: &IndexedWindows, element_size: usize) -> Option<Self> {
        // (Of one number there is no list to write.)
        if ![1, 2, 4, 8, 16].contains(&element_size) || windows.is_splat {
            return None;
        }
        let mut plan = windows.plan()?;
        let apart = plan.places.list_step().unwrap_or(0);
        let (outer, window): (Vec<_>, _) =
            plan.window.into_iter().partition(|axis| axis.list > apart);
        plan.window = window;
        let bytes = windows.list.iter().product::<usize>().checked_mul(element_size)?;
        Some(Gather { points: points(&outer), plan, outer, element_size, bytes })
    }

    /// Fills the list `to`.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(&self, array: &[u8], indices: &[u8], to: &mut [u8], threads: Threads<'_>) {
        if self.bytes == 0 {
            return;
        }
        let (row, row_bytes) = (self.plan.row, self.plan.row * self.element_size);
        let is_long = row_bytes > MAX_INLINE || self.is_streamed();
        if row > 1 && is_long || row == 1 && !self.plan.window.is_empty() {
            return with_size!(self.element_size, T => {
                let (array, to) = (cast::<T>(array), Disjoint::new(cast_mut::<T>(to)));
                self.blocks(indices, threads, |found, array_at, list_at| {
                    self.windows(&array[array_at..], &to, found, list_at);
                });
            });
        }
        if row == 1 {
            return with_size!(self.element_size, T => {
                let (array, to) = (cast::<T>(array), Disjoint::new(cast_mut::<T>(to)));
                self.blocks(indices, threads, |found, array_at, list_at| {
                    elements(&array[array_at..], &to, found, list_at);
                });
            });
        }
        let to = Disjoint::new(to);
        macro_rules! rows {
            ($($log:literal $size:literal),*) => {
                match row_bytes.ilog2() {
                    $($log if row_bytes == $size => {
                        self.blocks(indices, threads, |found, array_at, list_at| {
                            self.rows::<$size, true>(array, &to, found, (array_at, list_at));
                        });
                    }
                    $log => self.blocks(indices, threads, |found, array_at, list_at| {
                        self.rows::<$size, false>(array, &to, found, (array_at, list_at));
                    }),)*
                    _ => self.blocks(indices, threads, |found, array_at, list_at| {
                        self.rows::<64, false>(array, &to, found, (array_at, list_at));
                    }),
                }
            };
        }
        rows!(1 2, 2 4, 3 8, 4 16, 5 32);
    }

    /// Calls `f` for some windows at a time and each point of the outer axes, with what the point
    /// adds to places in the array and in the list.
    fn blocks(
        &self,
        indices: &[u8],
        threads: Threads<'_>,
        f: impl Fn(&WindowStarts, usize, usize) + Sync,
    ) {
        let places = &self.plan.places;
        let count = places.count();
        let some = |vectors: Range<usize>, points: Range<usize>| {
            let mut found = WindowStarts::new();
            for first in vectors.clone().step_by(BLOCK) {
                let block = first..vectors.end.min(first + BLOCK);
                places.find(indices, block, OutOfBounds::Clamp, &mut found);
                let points = points.clone();
                each(&self.outer, points, |array_at, list_at| f(&found, array_at, list_at));
            }
            if self.is_streamed() {
                stream::finish();
            }
        };
        // What neighbouring points take of the array is near to each other, so they come first.
        let of_points = (TASK_BYTES / (self.bytes / self.points)).max(POINTS_AT_ONCE);
        if self.points > of_points {
            threads.for_ranges(self.points, of_points, &|points| some(0..count, points));
        } else {
            let of_vectors = (TASK_BYTES / (self.bytes / count)).clamp(1, 16 * BLOCK);
            threads.for_ranges(count, of_vectors, &|vectors| some(vectors, 0..self.points));
        }
    }

    fn is_streamed(&self) -> bool {
        self.bytes >= STREAM_BYTES && self.plan.row * self.element_size >= MIN_STREAMED
    }

    /// Copies windows of rows of at least `N` bytes, or `N` if `EXACT`.
    fn rows<const N: usize, const EXACT: bool>(
        &self,
        array: &[u8],
        to: &Disjoint<'_, u8>,
        found: &WindowStarts,
        (array_at, list_at): (usize, usize),
    ) {
        let (row, size, to) = (self.plan.row, self.element_size, *to);
        let bytes = if EXACT { N } else { row * size };
        let window = &self.plan.window[..];
        let array = &array[array_at * size..];
        vectorised(
            #[inline(always)]
            move || {
                if !window.is_empty() {
                    found.each(
                        #[inline(always)]
                        |place, list| {
                            each(window, 0..points(window), |array_row, list_row| {
                                let list = list + list_at + list_row;
                                // SAFETY: each element of the list belongs to one index vector, and
                                // that to one task.
                                let to = unsafe { to.part(list * size, bytes) };
                                copy_row::<N>(&array[(place + array_row) * size..][..bytes], to);
                            });
                        },
                    );
                } else if let Some(first) = found.first_of_row(row) {
                    let all = found.array().len() * bytes;
                    // SAFETY: each element of the list belongs to one index vector, and that to one
                    // task.
                    let to = unsafe { to.part((first + list_at) * size, all) };
                    for (to, &place) in to.chunks_exact_mut(bytes).zip(found.array()) {
                        copy_row::<N>(&array[place * size..][..bytes], to);
                    }
                } else {
                    found.each(
                        #[inline(always)]
                        move |place, list| {
                            // SAFETY: each element of the list belongs to one index vector, and
                            // that to one task.
                            let to = unsafe { to.part((list + list_at) * size, bytes) };
                            copy_row::<N>(&array[place * size..][..bytes], to);
                        },
                    );
                }
            },
        );
    }

    /// Copies windows of long rows, or several.
    fn windows<T: Copy + Send + Sync>(
        &self,
        array: &[T],
        to: &Disjoint<'_, T>,
        found: &WindowStarts,
        list_at: usize,
    ) {
        let (row, is_streamed) = (self.plan.row, self.is_streamed());
        let rows = points(&self.plan.window);
        if row == 1 {
            return found.each(|place, list| {
                each(&self.plan.window, 0..rows, |array_at, row_at| {
                    set(to, list + list_at + row_at, array[place + array_at]);
                });
            });
        }
        for i in 0..found.array().len() {
            let Some((place, list)) = found.get(i) else { break };
            match found.get(i + ROWS_AHEAD) {
                Some((next, _)) if rows == 1 => prefetch(&array[next..][..row]),
                _ => {}
            }
            each(&self.plan.window, 0..rows, |array_at, row_at| {
                let from = &array[place + array_at..][..row];
                copy(from, to, list + list_at + row_at, is_streamed);
            });
        }
    }
}

/// Copies windows of one element each. There is little else in this loop, so that the processor has
/// many loads under way.
fn elements<T: Copy + Send + Sync>(
    array: &[T],
    to: &Disjoint<'_, T>,
    found: &WindowStarts,
    list_at: usize,
) {
    let to = *to;
    let Some(first) = found.first_of_row(1) else {
        return found.each(move |place, list| set(&to, list + list_at, array[place]));
    };
    // SAFETY: each element of the list belongs to one index vector, and that to one task.
    let to = unsafe { to.part(first + list_at, found.array().len()) };
    for (to, &place) in to.iter_mut().zip(found.array()) {
        *to = array[place];
    }
}

/// Puts an element at this place in the list.
#[inline(always)]
fn set<T: Copy + Send + Sync>(to: &Disjoint<'_, T>, place: usize, element: T) {
    // SAFETY: each element of the list belongs to one index vector, and that to one task.
    let to = unsafe { to.part(place, 1) };
    to[0] = element;
}

/// Copies a row of at least `N` bytes: `N` at a time from its start, and `N` at its end.
#[inline(always)]
fn copy_row<const N: usize>(from: &[u8], to: &mut [u8]) {
    let (end, mut at) = (from.len() - N, 0);
    while at < end {
        to[at..][..N].copy_from_slice(&from[at..][..N]);
        at += N;
    }
    to[end..][..N].copy_from_slice(&from[end..][..N]);
}

/// Copies a row to this place in the list.
#[inline(always)]
fn copy<T: Copy + Send + Sync>(from: &[T], to: &Disjoint<'_, T>, place: usize, is_streamed: bool) {
    // SAFETY: each element of the list belongs to one index vector, and that to one task.
    let to = unsafe { to.part(place, from.len()) };
    if is_streamed {
        // SAFETY: both slices are of one length, and one of them is exclusive.
        unsafe { stream::copy(from.as_ptr().cast(), to.as_mut_ptr().cast(), size_of_val(from)) };
    } else {
        to.copy_from_slice(from);
    }
}

/// How many points the axes have.
pub(super) fn points(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.size).product()
}

/// Calls `f` for these points of the axes, in row-major order, with its places in array and list.
#[inline(always)]
pub(super) fn each(axes: &[Axis], points: Range<usize>, mut f: impl FnMut(usize, usize)) {
    // Of no axes there is one point. (One loop for both, as `f` is inlined wherever it is called.)
    let none = Axis { size: 1, array: 0, list: 0, is_fixed: true };
    let (last, outer) = axes.split_last().unwrap_or((&none, &[]));
    let mut point = points.start;
    while point < points.end {
        let (mut rest, first) = (point / last.size, point % last.size);
        let (mut array, mut list) = (first * last.array, first * last.list);
        for axis in outer.iter().rev() {
            array += rest % axis.size * axis.array;
            list += rest % axis.size * axis.list;
            rest /= axis.size;
        }
        let end = last.size.min(first + (points.end - point));
        point += end - first;
        for _ in first..end {
            f(array, list);
            array += last.array;
            list += last.list;
        }
    }
}
