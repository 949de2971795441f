//! The largest or smallest elements of rows.

mod alone;
mod side_by_side;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::super::bytes::{Scratch, cast, cast_mut, element_count, slots, with_word};
use super::super::disjoint::Disjoint;
use super::keys::{KeyOrder, Ranks};
use super::lane::Key;
use crate::Threads;
use side_by_side::SideBySide;

/// The `k` largest or smallest elements of each row, in order, and where they were; of equals, the
/// first come first.
#[derive(Clone, Debug)]
pub struct TopK {
    rows: usize,
    row_size: usize,
    k: usize,
    element_size: usize,
    order: KeyOrder,
    largest: bool,
    /// How short rows are dealt with.
    side_by_side: Option<SideBySide>,
}

/// Tasks are this large, or a single row or a group of those that are side by side.
const TASK_ELEMENTS: usize = 1 << 14;

/// Where results go; slices of those that nobody needs are empty.
struct Results<'t, T> {
    values: Disjoint<'t, T>,
    places: Disjoint<'t, i32>,
}

impl TopK {
    /// Of `rows` rows of `row_size` elements of `element_size` bytes that compare by `order`.
    /// `None` if indices do not fit 32 bits with a sign, elements are wider than 64 bits or more than
    /// fit memory, or `k` exceeds `row_size`.
    pub fn new(
        (rows, row_size): (usize, usize),
        k: usize,
        element_size: usize,
        order: KeyOrder,
        largest: bool,
    ) -> Option<Self> {
        if row_size > i32::MAX as usize || k > row_size || element_size > 8 {
            return None;
        }
        element_count(&[rows, row_size])?;
        let side_by_side = SideBySide::new((rows, row_size), k, element_size);
        Some(TopK { rows, row_size, k, element_size, order, largest, side_by_side })
    }

    /// How much working memory [`TopK::run`] needs for this many threads to work at once.
    pub fn scratch_bytes(&self, threads: usize) -> usize {
        threads.min(self.tasks()).max(1).saturating_mul(self.slot_bytes())
    }

    fn slot_bytes(&self) -> usize {
        match &self.side_by_side {
            Some(rows) => rows.scratch_bytes(),
            None => self.room_bytes(),
        }
    }

    fn rows_per_task(&self) -> usize {
        let rows = (TASK_ELEMENTS / self.row_size.max(1)).max(1);
        if self.side_by_side.is_some() { rows.next_multiple_of(side_by_side::ROWS) } else { rows }
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.rows_per_task())
    }

    /// Writes the elements to `values` and their places in their rows to `indices`; either may be
    /// empty if nobody needs it.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(
        &self,
        from: &[u8],
        values: &mut [u8],
        indices: &mut [i32],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        if self.rows * self.k == 0 {
            return;
        }
        with_word!(self.element_size, T => {
            let from: &[T] = cast(from);
            let values = Disjoint::new(cast_mut::<T>(values));
            let to = Results { values, places: Disjoint::new(indices) };
            let slot_bytes = self.slot_bytes();
            let scratch = slots(scratch, slot_bytes, threads);
            let slots = scratch.len() / slot_bytes;
            threads.for_chunks(scratch, slot_bytes, &|slot, scratch| {
                for task in (slot..self.tasks()).step_by(slots) {
                    let first = task * self.rows_per_task();
                    let rows = first..(first + self.rows_per_task()).min(self.rows);
                    self.rows(rows, from, &to, Scratch::new(&mut *scratch));
                }
            });
        });
    }

    /// Finds the best of the rows of a task.
    fn rows<T: Key>(
        &self,
        rows: Range<usize>,
        from: &[T],
        to: &Results<'_, T>,
        mut scratch: Scratch<'_>,
    ) {
        let ranks = Ranks::new(self.order, self.largest);
        if let Some(plan) = &self.side_by_side {
            for first in rows.clone().step_by(side_by_side::ROWS) {
                let count = side_by_side::ROWS.min(rows.end - first);
                let group = &from[first * self.row_size..][..count * self.row_size];
                let best = plan.best(&ranks, group, scratch.again());
                for (i, row) in group.chunks_exact(self.row_size).enumerate() {
                    let places = best.iter().map(|places| places[i].widen() as usize);
                    self.write(first + i, row, places, to);
                }
            }
            return;
        }
        for row in rows {
            let elements = &from[row * self.row_size..][..self.row_size];
            let best = self.best(&ranks, elements, scratch.again());
            self.write(row, elements, best, to);
        }
    }

    /// Writes the elements at these places of a row.
    #[inline(always)]
    fn write<T: Key>(
        &self,
        row: usize,
        elements: &[T],
        best: impl Iterator<Item = usize> + Clone,
        to: &Results<'_, T>,
    ) {
        if !to.values.is_empty() {
            // SAFETY: each row belongs to one task, which writes it once.
            let values = unsafe { to.values.part(row * self.k, self.k) };
            for (value, place) in values.iter_mut().zip(best.clone()) {
                *value = elements[place];
            }
        }
        if !to.places.is_empty() {
            // SAFETY: each row belongs to one task, which writes its places once.
            let places = unsafe { to.places.part(row * self.k, self.k) };
            for (to, place) in places.iter_mut().zip(best) {
                *to = place as i32;
            }
        }
    }
}
