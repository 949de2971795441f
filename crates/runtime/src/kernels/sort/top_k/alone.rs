//! The largest or smallest elements of long rows, one row after the other.

use super::super::super::bytes::{Scratch, scratch_for};
use super::super::super::isa::vectorised;
use super::super::keys::Ranks;
use super::super::lane::{Key, sorted};
use super::super::radix::Record;
use super::TopK;

/// Elements are compared with the worst of the best so far this many at a time.
const BLOCK: usize = 64;
/// Elements of each group that the first limit is computed from.
const OF_EACH_GROUP: usize = 64;
/// The fewest elements of each group: of fewer, the limit would let nearly all elements pass; ...
const MIN_OF_EACH_GROUP: usize = 4;
/// ... and the same if there are [`MANY_GROUPS`] times as many groups as elements are wanted, most of which are
/// the best of a group then.
const MIN_OF_MANY_GROUPS: usize = 2;
const MANY_GROUPS: usize = 8;
/// If no more than this part of a row is wanted, to find it takes less than to sort the row.
const SMALL_PART: usize = 4;

impl TopK {
    /// How much working memory [`TopK::best`] needs.
    pub(super) fn room_bytes(&self) -> usize {
        let room = self.room();
        let (records, group) = match self.element_size {
            8 => (scratch_for::<u128>(room), scratch_for::<u64>(self.groups())),
            _ => (scratch_for::<u64>(room), scratch_for::<u32>(self.groups())),
        };
        records.saturating_mul(2).saturating_add(group)
    }

    /// The number of groups of elements that the first limit is computed from, chosen so that about half
    /// of them contain one of the best.
    fn groups(&self) -> usize {
        self.k.saturating_mul(2).max(1).next_multiple_of(BLOCK)
    }

    /// Whether `k` is too large a part of the row for a limit to exclude much.
    fn has_no_limit(&self) -> bool {
        let groups = self.groups();
        let are_many = self.k <= groups / MANY_GROUPS;
        let least = if are_many { MIN_OF_MANY_GROUPS } else { MIN_OF_EACH_GROUP };
        self.row_size < groups.saturating_mul(least)
    }

    /// The number of candidates that are kept before the worst are dropped: at least a block more than
    /// `k`, and several times `k`, so that dropping costs little for each.
    fn room(&self) -> usize {
        match self.has_no_limit() {
            true => self.row_size,
            false => self.k.saturating_mul(4).max(16 * BLOCK).min(self.row_size),
        }
    }

    /// The places of the best elements of a row, in order.
    pub(super) fn best<T: Key>(
        &self,
        ranks: &Ranks<T>,
        row: &[T],
        mut scratch: Scratch<'_>,
    ) -> impl Iterator<Item = usize> + Clone {
        let records = self.best_records(ranks, row, &mut scratch);
        records.iter().map(|record| record.low() as usize)
    }

    /// The records of the best elements of a row and perhaps of worse ones, in order.
    fn best_records<'a, T: Key>(
        &self,
        ranks: &Ranks<T>,
        row: &[T],
        scratch: &mut Scratch<'a>,
    ) -> &'a [T::Tagged] {
        let candidates = scratch.take::<T::Tagged>(self.room());
        let record = |i: usize| T::Tagged::new(ranks.rank(row[i]).widen(), i as u32);
        if self.has_no_limit() {
            for (i, candidate) in candidates.iter_mut().enumerate() {
                *candidate = record(i);
            }
            if self.k > row.len() / SMALL_PART {
                return sorted(candidates, scratch.take::<T::Tagged>(row.len()));
            }
            return self.first_in_order(candidates);
        }
        let mut limit = first_limit(ranks, row, self.k, scratch.take(self.groups()));
        let mut count = 0;
        vectorised(
            #[inline(always)]
            || {
                for (n, block) in row.chunks(BLOCK).enumerate() {
                    if !block.iter().fold(false, |any, &v| any | (ranks.rank(v) <= limit)) {
                        continue;
                    }
                    if count + block.len() > candidates.len() {
                        let worst = drop_worst(&mut candidates[..count], self.k);
                        count = self.k;
                        // What only equals the worst comes behind it.
                        let Some(less) = worst.checked_sub(1) else { break };
                        limit = T::narrow(less);
                    }
                    each(&within(ranks, block, limit), |i| {
                        candidates[count] = record(n * BLOCK + i);
                        count += 1;
                    });
                }
            },
        );
        self.first_in_order(&mut candidates[..count])
    }

    /// The best of some candidates, in order.
    fn first_in_order<'a, R: Record + Ord>(&self, candidates: &'a mut [R]) -> &'a [R] {
        drop_worst(candidates, self.k);
        // Candidates are in no order of their places: whole records decide.
        let best = &mut candidates[..self.k];
        best.sort_unstable();
        best
    }
}

/// A rank that at least `k` elements do not exceed, and not many more: some groups have an element
/// of at most this rank.
fn first_limit<T: Key>(ranks: &Ranks<T>, row: &[T], k: usize, lowest: &mut [T]) -> T {
    lowest.fill(T::ALL);
    vectorised(
        #[inline(always)]
        || {
            for elements in row.chunks_exact(lowest.len()).take(OF_EACH_GROUP) {
                for (lowest, &element) in lowest.iter_mut().zip(elements) {
                    *lowest = (*lowest).min(ranks.rank(element));
                }
            }
        },
    );
    *lowest.select_nth_unstable(k - 1).1
}

/// For each element of a block, whether its rank is within the limit.
#[inline(always)]
fn within<T: Key>(ranks: &Ranks<T>, block: &[T], limit: T) -> [u8; BLOCK] {
    let mut flags = [0; BLOCK];
    for (flag, &element) in flags.iter_mut().zip(block) {
        *flag = u8::from(ranks.rank(element) <= limit);
    }
    flags
}

/// Calls `f` for the places of flags that are set.
#[inline(always)]
fn each(flags: &[u8; BLOCK], mut f: impl FnMut(usize)) {
    for (word, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        let mut flags = u64::from_le_bytes(*flags);
        while flags != 0 {
            f(8 * word + flags.trailing_zeros() as usize / 8);
            flags &= flags - 1;
        }
    }
}

/// Moves the `k` first of the candidates to the front, in any order; returns the last rank of them.
fn drop_worst<R: Record>(candidates: &mut [R], k: usize) -> u64 {
    candidates.select_nth_unstable(k - 1).1.rank()
}
