//! The largest or smallest elements of rows.

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for, slots, with_word};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::keys::{KeyOrder, Ranks};
use super::lane::{Key, sorted};
use super::radix::Record;
use crate::Threads;

/// The `k` largest or smallest elements of each row, in order, and where they were; of equals, the
/// first come first.
#[derive(Clone, Copy, Debug)]
pub struct TopK {
    rows: usize,
    row_size: usize,
    k: usize,
    element_size: usize,
    order: KeyOrder,
    largest: bool,
}

/// Elements are compared with the worst of the best so far this many at a time.
const BLOCK: usize = 64;
/// Tasks are this large or a single row.
const TASK_ELEMENTS: usize = 1 << 14;

impl TopK {
    /// Of `rows` rows of `row_size` elements of `element_size` bytes that compare by `order`.
    /// `None` if indices do not fit 32 bits with a sign, elements are wider than 64 bits, or `k`
    /// exceeds `row_size`.
    pub fn new(
        (rows, row_size): (usize, usize),
        k: usize,
        element_size: usize,
        order: KeyOrder,
        largest: bool,
    ) -> Option<Self> {
        let is_possible = row_size <= i32::MAX as usize && k <= row_size && element_size <= 8;
        is_possible.then_some(TopK { rows, row_size, k, element_size, order, largest })
    }

    /// How much working memory [`TopK::run`] needs for this many threads to work at once.
    pub fn scratch_bytes(&self, threads: usize) -> usize {
        threads.min(self.tasks()).max(1).saturating_mul(self.slot_bytes())
    }

    fn slot_bytes(&self) -> usize {
        let room = self.room();
        let records = if self.element_size == 8 {
            scratch_for::<u128>(room)
        } else {
            scratch_for::<u64>(room)
        };
        records.saturating_mul(2)
    }

    fn rows_per_task(&self) -> usize {
        (TASK_ELEMENTS / self.row_size.max(1)).max(1)
    }

    fn tasks(&self) -> usize {
        self.rows.div_ceil(self.rows_per_task())
    }

    /// How many candidates are kept before the worst are dropped; at least a block more than `k`,
    /// and so many that dropping costs little for each.
    fn room(&self) -> usize {
        (self.k.saturating_mul(4)).max(16 * BLOCK).min(self.row_size)
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
            let (from, values) = (cast::<T>(from), Disjoint::new(cast_mut::<T>(values)));
            let indices = Disjoint::new(indices);
            let slot_bytes = self.slot_bytes();
            let scratch = slots(scratch, slot_bytes, threads);
            let slots = scratch.len() / slot_bytes;
            threads.for_chunks(scratch, slot_bytes, &|slot, scratch| {
                for task in (slot..self.tasks()).step_by(slots) {
                    let first = task * self.rows_per_task();
                    for row in first..(first + self.rows_per_task()).min(self.rows) {
                        let from = &from[row * self.row_size..][..self.row_size];
                        let best = self.best(from, Scratch::new(&mut *scratch));
                        if !values.is_empty() {
                            // SAFETY: each row belongs to one task.
                            let values = unsafe { values.part(row * self.k, self.k) };
                            for (value, record) in values.iter_mut().zip(&*best) {
                                *value = from[record.low() as usize];
                            }
                        }
                        if !indices.is_empty() {
                            // SAFETY: each row belongs to one task.
                            let indices = unsafe { indices.part(row * self.k, self.k) };
                            for (index, record) in indices.iter_mut().zip(&*best) {
                                *index = record.low() as i32;
                            }
                        }
                    }
                }
            });
        });
    }

    /// The records of the best elements of a row and perhaps of worse ones, in order.
    fn best<'a, T: Key>(&self, row: &[T], mut scratch: Scratch<'a>) -> &'a mut [T::Tagged] {
        let ranks = Ranks::new::<T>(self.order, self.largest);
        let room = self.room();
        let candidates = scratch.take::<T::Tagged>(room);
        let record = |i: usize| T::Tagged::new(ranks.rank(row[i].widen()), i as u32);
        for (i, candidate) in candidates.iter_mut().enumerate() {
            *candidate = record(i);
        }
        if room == row.len() {
            return sorted(candidates, scratch.take::<T::Tagged>(room));
        }
        let mut worst = drop_worst(candidates, self.k);
        let mut count = self.k;
        let mut start = room;
        while let Some(blocks) = better_block(&ranks, &row[start..], worst) {
            start += blocks * BLOCK;
            let end = (start + BLOCK).min(row.len());
            if count + (end - start) > room {
                worst = drop_worst(&mut candidates[..count], self.k);
                count = self.k;
            }
            for record in (start..end).map(record) {
                // What only equals the worst comes behind it.
                if record.rank() < worst {
                    candidates[count] = record;
                    count += 1;
                }
            }
            start = end;
        }
        drop_worst(&mut candidates[..count], self.k);
        // Candidates are in no order of their places: whole records decide.
        let best = &mut candidates[..self.k];
        best.sort_unstable();
        best
    }
}

/// The first block that has an element of a lower rank.
fn better_block<T: Key>(ranks: &Ranks, elements: &[T], worst: u64) -> Option<usize> {
    vectorised(
        #[inline(always)]
        || {
            let is_better = |v: &T| ranks.rank(v.widen()) < worst;
            let mut blocks = elements.chunks(BLOCK);
            blocks.position(|block| block.iter().fold(false, |any, v| any | is_better(v)))
        },
    )
}

/// Moves the `k` first of the candidates to the front, in any order; returns the last rank of them.
fn drop_worst<R: Record>(candidates: &mut [R], k: usize) -> u64 {
    candidates.select_nth_unstable(k - 1).1.rank()
}

#[cfg(test)]
mod tests {
    use super::super::super::bytes::{bytes_of, bytes_of_mut};
    use super::*;

    fn check<T: Key>(rows: usize, row: &[T], order: KeyOrder, k: usize, largest: bool) {
        let row_size = row.len() / rows;
        let top = TopK::new((rows, row_size), k, size_of::<T>(), order, largest).unwrap();
        let ranks = Ranks::new::<T>(order, largest);
        let (mut values, mut indices) = (vec![T::narrow(0); rows * k], vec![0; rows * k]);
        let mut scratch = vec![1; top.scratch_bytes(1)];
        top.run(
            bytes_of(row),
            bytes_of_mut(&mut values),
            &mut indices,
            &mut scratch,
            Threads::single(),
        );
        for r in 0..rows {
            let row = &row[r * row_size..][..row_size];
            let mut expected: Vec<usize> = (0..row_size).collect();
            expected.sort_by_key(|&i| ranks.rank(row[i].widen()));
            let found = indices[r * k..][..k].iter().map(|&i| i as usize);
            assert!(found.eq(expected[..k].iter().copied()), "{row_size} {k}");
            let values = values[r * k..][..k].iter().map(|v| v.widen());
            assert!(values.eq(expected[..k].iter().map(|&i| row[i].widen())));
        }
    }

    #[test]
    fn as_a_stable_sort_has_it() {
        for (rows, row_size) in [(1, 1), (3, 17), (2, 1000), (1, 5000), (1, 70_000)] {
            for k in [0, 1, 2, 63, 100, row_size / 2, row_size] {
                if k > row_size {
                    continue;
                }
                // Falling, rising, and equal ranks.
                for step in [u32::MAX, 1, 0, 0x9e37_79b9] {
                    let row = |i: usize| (i as u32).wrapping_mul(step);
                    let words: Vec<u32> = (0..rows * row_size).map(row).collect();
                    check(rows, &words, KeyOrder::Total, k, true);
                    check(rows, &words, KeyOrder::Signed, k, false);
                    let wide: Vec<u64> = words.iter().map(|&v| u64::from(v) << 20).collect();
                    check(rows, &wide, KeyOrder::Unsigned, k, true);
                    let narrow: Vec<u8> = words.iter().map(|&v| v as u8).collect();
                    check(rows, &narrow, KeyOrder::Unsigned, k, true);
                }
            }
        }
    }
}
