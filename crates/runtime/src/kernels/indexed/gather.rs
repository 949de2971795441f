//! Gather.

use std::ops::Range;

use super::super::bytes::{cast, cast_mut, with_size};
use super::super::disjoint::Disjoint;
use super::super::isa::prefetch;
use super::super::stream::{self, STREAM_BYTES};
use super::places::{BLOCK, Found, Outside};
use super::{Axis, IndexedWindows, Plan};
use crate::Threads;

/// Copies windows of an array into a list; windows that would reach out are moved inside.
#[derive(Clone, Debug)]
pub struct Gather {
    plan: Plan,
    /// Axes of a window whose neighbours are further apart in the list than windows.
    outer: Vec<Axis>,
    /// How many points those have.
    points: usize,
    element_size: usize,
    /// The size of the list in bytes.
    bytes: usize,
}

/// Tasks write about this many bytes.
const TASK_BYTES: usize = 1 << 17;
/// Shorter rows are left to the cache.
const LEAST_STREAMED: usize = 256;
/// Rows lie anywhere; the processor is told of one so many before it is copied.
const ROWS_AHEAD: usize = 6;

impl Gather {
    /// A plan for elements of this many bytes. `None` if the description is not consistent, or
    /// elements have no size that types have.
    pub fn new(windows: &IndexedWindows, element_size: usize) -> Option<Self> {
        if ![1, 2, 4, 8, 16].contains(&element_size) {
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
        with_size!(self.element_size, T => {
            self.typed(cast::<T>(array), indices, cast_mut::<T>(to), threads);
        });
    }

    fn typed<T: Copy + Send + Sync>(
        &self,
        array: &[T],
        indices: &[u8],
        to: &mut [T],
        threads: Threads<'_>,
    ) {
        let Plan { places, row, .. } = &self.plan;
        let (count, to) = (places.count(), Disjoint::new(to));
        let grain = (TASK_BYTES / (self.bytes / count)).clamp(1, 16 * BLOCK);
        threads.for_ranges(count, grain, &|vectors| {
            let mut found = Found::new();
            for first in vectors.clone().step_by(BLOCK) {
                let block = first..vectors.end.min(first + BLOCK);
                places.find(indices, block, Outside::Clamp, &mut found);
                let found = &found;
                each(&self.outer, 0..self.points, |array_at, list_at| {
                    let array = &array[array_at..];
                    match self.plan.window[..] {
                        [] if *row == 1 => elements(array, &to, found, list_at),
                        [] => self.rows(array, &to, found, list_at),
                        _ => self.windows(array, &to, found, list_at),
                    }
                });
            }
            if self.is_streamed() {
                stream::finish();
            }
        });
    }

    fn is_streamed(&self) -> bool {
        self.bytes >= STREAM_BYTES && self.plan.row * self.element_size >= LEAST_STREAMED
    }

    /// Copies windows of one row each.
    fn rows<T: Copy + Send + Sync>(
        &self,
        array: &[T],
        to: &Disjoint<'_, T>,
        found: &Found,
        list_at: usize,
    ) {
        let (row, is_streamed) = (self.plan.row, self.is_streamed());
        for (i, (place, list)) in found.places().enumerate() {
            if let Some((next, _)) = found.get(i + ROWS_AHEAD) {
                prefetch(&array[next..][..row]);
            }
            copy(&array[place..][..row], to, list + list_at, is_streamed);
        }
    }

    /// Copies windows of several rows.
    fn windows<T: Copy + Send + Sync>(
        &self,
        array: &[T],
        to: &Disjoint<'_, T>,
        found: &Found,
        list_at: usize,
    ) {
        let (row, is_streamed) = (self.plan.row, self.is_streamed());
        let rows = points(&self.plan.window);
        for (place, list) in found.places() {
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
    found: &Found,
    list_at: usize,
) {
    for (place, list) in found.places() {
        // SAFETY: each element of the list belongs to one index vector, and that to one task.
        let to = unsafe { to.part(list + list_at, 1) };
        to[0] = array[place];
    }
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
    let Some((last, outer)) = axes.split_last() else {
        // Of no axes there is one point. (`for_each` would not be inlined.)
        for _ in points {
            f(0, 0);
        }
        return;
    };
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
