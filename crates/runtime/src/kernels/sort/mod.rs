//! Sorting along a dimension: by keys that have a rank, with counted digits, or by any comparator.

mod keys;
mod lane;
mod merge;
mod network;
mod radix;
mod side_by_side;
mod top_k;

use std::ops::Range;

pub use keys::{KeyOrder, SortKey};
pub use merge::{MergeSort, PAIRS, Pairs, Precedes};
pub use top_k::TopK;

use side_by_side::Group;

use super::bytes::{Scratch, cast, cast_mut, element_count, scratch_for, slots, with_size};
use super::disjoint::Disjoint;
use crate::Threads;

/// Lanes of an array along one of its dimensions: element `i` of lane `(o, j)` is at
/// `(o * count + i) * inner + j`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The product of the sizes of the dimensions before.
    pub outer: usize,
    /// The size of the dimension.
    pub count: usize,
    /// The product of the sizes of the dimensions behind.
    pub inner: usize,
}

impl Lanes {
    /// Whether there is no element.
    fn is_empty(&self) -> bool {
        [self.outer, self.count, self.inner].contains(&0)
    }

    /// How many elements there are; `None` if they are more than memory has bytes.
    pub(super) fn len(&self) -> Option<usize> {
        element_count(&[self.outer, self.count, self.inner])
    }
}

/// A stable sort of one or more arrays of the same sizes along a dimension.
#[derive(Clone, Debug)]
pub struct Sort {
    keys: Vec<SortKey>,
    element_sizes: Vec<usize>,
    lanes: Lanes,
}

/// Lanes that are not contiguous are sorted this many bytes of a row at a time.
const BLOCK_BYTES: usize = 64;
/// Where lanes are long, fewer of them.
const BLOCK_LIMIT_BYTES: usize = 1 << 20;
/// Tasks are this large or a single lane.
const TASK_ELEMENTS: usize = 1 << 14;

impl Sort {
    /// A sort of arrays whose elements have these sizes in bytes by keys, the most significant
    /// first. `None` if lanes are too long for indices of 32 bits, or more than fit memory, if there
    /// is no key, or if a key has elements of more than 64 bits.
    pub fn new(keys: Vec<SortKey>, element_sizes: Vec<usize>, lanes: Lanes) -> Option<Self> {
        let is_possible = lanes.count <= u32::MAX as usize
            && lanes.len().is_some()
            && !keys.is_empty()
            && keys.iter().all(|k| element_sizes.get(k.operand).is_some_and(|&size| size <= 8));
        is_possible.then_some(Sort { keys, element_sizes, lanes })
    }

    /// How much working memory [`Sort::run`] needs for this many threads to work at once.
    pub fn scratch_bytes(&self, threads: usize) -> usize {
        threads.min(self.tasks()).max(1).saturating_mul(self.slot_bytes())
    }

    /// Working memory of one thread: a lane's, and blocks of all operands before and after.
    fn slot_bytes(&self) -> usize {
        let mut bytes = self.lane_bytes().max(self.together_bytes());
        if self.lanes.inner > 1 {
            let elements = self.lanes.count.saturating_mul(self.block());
            for &size in &self.element_sizes {
                let block = scratch_for::<u8>(elements.saturating_mul(size));
                bytes = bytes.saturating_add(block.saturating_mul(2));
            }
        }
        bytes
    }

    /// How many lanes that are not contiguous a task sorts.
    fn block(&self) -> usize {
        let widest = self.element_sizes.iter().copied().max().unwrap_or(1);
        let fitting = BLOCK_LIMIT_BYTES / self.lanes.count.saturating_mul(widest).max(1);
        (BLOCK_BYTES / widest).min(fitting).min(self.lanes.inner).max(1)
    }

    /// How many contiguous lanes a task sorts: as many as are sorted together, or some times that.
    fn lanes_per_task(&self) -> usize {
        let lanes = (TASK_ELEMENTS / self.lanes.count.max(1)).max(1);
        lanes.next_multiple_of(self.width(|_| false))
    }

    fn tasks(&self) -> usize {
        match self.lanes.inner {
            1 => self.lanes.outer.div_ceil(self.lanes_per_task()),
            inner => self.lanes.outer.saturating_mul(inner.div_ceil(self.block())),
        }
    }

    /// Sorts `from` into `to`. A result that nobody needs may be given as an empty slice.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(
        &self,
        from: &[&[u8]],
        to: &mut [&mut [u8]],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        if self.lanes.is_empty() {
            return;
        }
        let Lanes { outer, inner, .. } = self.lanes;
        let to = Disjoint::all(to);
        let (tasks, slot_bytes) = (self.tasks(), self.slot_bytes());
        let scratch = slots(scratch, slot_bytes, threads);
        let slots = scratch.len() / slot_bytes;
        threads.for_chunks(scratch, slot_bytes, &|slot, scratch| {
            for task in (slot..tasks).step_by(slots) {
                let scratch = Scratch::new(&mut *scratch);
                if inner == 1 {
                    let first = task * self.lanes_per_task();
                    let rows = first..(first + self.lanes_per_task()).min(outer);
                    self.rows(rows, from, &to, scratch);
                } else {
                    let blocks = inner.div_ceil(self.block());
                    let first = task % blocks * self.block();
                    let columns = first..(first + self.block()).min(inner);
                    self.columns(task / blocks, columns, from, &to, scratch);
                }
            }
        });
    }

    /// Sorts contiguous lanes.
    fn rows(
        &self,
        rows: Range<usize>,
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        mut scratch: Scratch<'_>,
    ) {
        let (count, width) = (self.lanes.count, self.width(|i| !to[i].is_empty()));
        for first in rows.clone().step_by(width) {
            let group = first..rows.end.min(first + width);
            let lanes = Group { first: first * count, width: group.len(), step: 1 };
            // SAFETY: each row belongs to one task, which sorts it once.
            if !unsafe { self.together((lanes, width), from, to, scratch.again()) } {
                self.rows_alone(group, from, to, scratch.again());
            }
        }
    }

    /// Sorts contiguous lanes, one after the other.
    fn rows_alone(
        &self,
        rows: Range<usize>,
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        mut scratch: Scratch<'_>,
    ) {
        for row in rows {
            let bytes = |i: usize| self.lanes.count * self.element_sizes[i];
            let from = from.iter().enumerate().map(|(i, v)| &v[row * bytes(i)..][..bytes(i)]);
            let to = to.iter().enumerate().map(|(i, to)| match to.is_empty() {
                true => &mut [],
                // SAFETY: each row belongs to one task, which sorts it once.
                false => unsafe { to.part(row * bytes(i), bytes(i)) },
            });
            self.lane(&from.collect::<Vec<_>>(), &mut to.collect::<Vec<_>>(), scratch.again());
        }
    }

    /// Sorts neighbouring lanes that are not contiguous.
    fn columns(
        &self,
        outer: usize,
        columns: Range<usize>,
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        mut scratch: Scratch<'_>,
    ) {
        let Lanes { count, inner, .. } = self.lanes;
        let width = self.width(|i| !to[i].is_empty());
        // Those that are sorted alone, up to the next that are sorted together.
        let mut alone = columns.start..columns.start;
        for first in columns.clone().step_by(width) {
            let end = columns.end.min(first + width);
            let start = outer * count * inner + first;
            let lanes = Group { first: start, width: end - first, step: inner };
            // SAFETY: each column belongs to one task, which sorts it once.
            if unsafe { self.together((lanes, width), from, to, scratch.again()) } {
                self.columns_alone(outer, alone, from, to, scratch.again());
                alone = end..end;
            } else {
                alone.end = end;
            }
        }
        self.columns_alone(outer, alone, from, to, scratch.again());
    }

    /// Sorts neighbouring lanes that are not contiguous, one after the other.
    fn columns_alone(
        &self,
        outer: usize,
        columns: Range<usize>,
        from: &[&[u8]],
        to: &[Disjoint<'_, u8>],
        mut scratch: Scratch<'_>,
    ) {
        let Lanes { count, inner, .. } = self.lanes;
        let width = columns.len();
        if width == 0 {
            return;
        }
        let blocks = from.iter().zip(&self.element_sizes).map(|(from, &size)| {
            let block = scratch.take::<u8>(count * width * size);
            with_size!(size, T => {
                let (from, block) = (cast::<T>(from), cast_mut::<T>(block));
                for i in 0..count {
                    let row = &from[(outer * count + i) * inner..][columns.clone()];
                    for (j, &v) in row.iter().enumerate() {
                        block[j * count + i] = v;
                    }
                }
            });
            &*block
        });
        let blocks: Vec<&[u8]> = blocks.collect();
        let sorted = to.iter().zip(&self.element_sizes).map(|(to, &size)| {
            let needed = if to.is_empty() { 0 } else { count * width * size };
            scratch.take::<u8>(needed)
        });
        let mut sorted: Vec<&mut [u8]> = sorted.collect();
        for j in 0..width {
            let bytes = |i: usize| count * self.element_sizes[i];
            let from = blocks.iter().enumerate().map(|(i, v)| &v[j * bytes(i)..][..bytes(i)]);
            let to = sorted.iter_mut().enumerate().map(|(i, to)| match to.is_empty() {
                true => &mut [][..],
                false => &mut to[j * bytes(i)..][..bytes(i)],
            });
            self.lane(&from.collect::<Vec<_>>(), &mut to.collect::<Vec<_>>(), scratch.again());
        }
        for ((to, sorted), &size) in to.iter().zip(sorted).zip(&self.element_sizes) {
            if to.is_empty() {
                continue;
            }
            with_size!(size, T => for i in 0..count {
                let start = (outer * count + i) * inner + columns.start;
                // SAFETY: this part of a row is these columns', which belong to this task.
                let row = cast_mut::<T>(unsafe { to.part(start * size, width * size) });
                for (to, &v) in row.iter_mut().zip(cast::<T>(sorted)[i..].iter().step_by(count)) {
                    *to = v;
                }
            });
        }
    }
}

#[cfg(test)]
mod tests;
