//! Buffer assignment: the slot of each storage, and where it lies: in the arena or in a block of its own.

use std::collections::{BTreeMap, BTreeSet};

use helio_runtime::program::{Home, Slot, SlotId};

use super::{Planner, Source, StorageId};

/// Where the storages of a plan lie: the slots, and the arena that most of them share.
pub(super) struct BufferAssignment {
    pub(super) slots: Vec<Slot>,
    pub(super) arena_bytes: usize,
    /// Storage → slot.
    slot_of: Vec<SlotId>,
}

impl BufferAssignment {
    /// The slot of a storage.
    pub(super) fn slot(&self, id: StorageId) -> SlotId {
        self.slot_of[id.index()]
    }
}

/// Gives every storage a slot.
pub(super) fn place(planner: &Planner<'_>) -> BufferAssignment {
    let mut slots = Vec::new();
    // (Those that were merged get the slot of what they were merged with, below.)
    let mut slot_of = vec![SlotId(0); planner.storages.len()];
    let mut in_arena = Vec::new();
    let mut blocks = 0;
    for (i, storage) in planner.storages.iter().enumerate() {
        if storage.merged.is_some() {
            continue;
        }
        let slot = SlotId(slots.len() as u32);
        slot_of[i] = slot;
        let home = match storage.source {
            _ if storage.part_of.is_some() => Home::Part(SlotId(0)),
            Source::Argument(n) => Home::Argument(n),
            Source::Constant(n) => Home::Constant(n),
            Source::Nothing if storage.block => {
                blocks += 1;
                Home::Block(blocks - 1)
            }
            Source::Nothing => {
                in_arena.push(Interval {
                    slot: slot.index(),
                    bytes: storage.bytes,
                    first: storage.first,
                    last: storage.last,
                });
                Home::Arena(0)
            }
        };
        slots.push(Slot { bytes: storage.bytes, home });
    }
    for i in 0..planner.storages.len() {
        slot_of[i] = slot_of[planner.find(StorageId(i as u32)).index()];
    }
    for (i, storage) in planner.storages.iter().enumerate() {
        if let Some(of) = storage.part_of {
            slots[slot_of[i].index()].home = Home::Part(slot_of[of.index()]);
        }
    }
    let arena_bytes = arena(in_arena, |slot, offset| slots[slot].home = Home::Arena(offset));
    BufferAssignment { slots, arena_bytes, slot_of }
}

/// A stretch of steps during which memory is needed.
struct Interval {
    slot: usize,
    bytes: usize,
    first: usize,
    last: usize,
}

/// Every place in the arena begins at a multiple of this: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// Gives each interval a place such that intervals that overlap in time do not in memory; gives the
/// size of the whole. Walks through time and takes the smallest free piece that is large enough, so
/// it is fast on long programs, and what is freed is reused soon, while it is in cache.
fn arena(mut intervals: Vec<Interval>, mut set: impl FnMut(usize, usize)) -> usize {
    intervals.sort_by_key(|interval| interval.first);
    let mut free = FreeList::default();
    let mut ends: BTreeSet<(usize, usize, usize)> = BTreeSet::new();
    for Interval { slot, bytes, first, last } in intervals {
        while let Some(&(end, offset, bytes)) = ends.first() {
            if end >= first {
                break;
            }
            ends.pop_first();
            free.give(offset, bytes);
        }
        let bytes = bytes.next_multiple_of(ALIGN);
        let offset = free.take(bytes);
        set(slot, offset);
        if bytes > 0 {
            ends.insert((last, offset, bytes));
        }
    }
    free.end
}

/// Free pieces of a growing arena.
#[derive(Default)]
struct FreeList {
    /// Offset → bytes; neighbours are joined.
    pieces: BTreeMap<usize, usize>,
    /// (bytes, offset)
    by_size: BTreeSet<(usize, usize)>,
    /// The size of the arena.
    end: usize,
}

impl FreeList {
    fn remove(&mut self, offset: usize, bytes: usize) {
        self.pieces.remove(&offset);
        self.by_size.remove(&(bytes, offset));
    }

    fn insert(&mut self, offset: usize, bytes: usize) {
        self.pieces.insert(offset, bytes);
        self.by_size.insert((bytes, offset));
    }

    fn take(&mut self, bytes: usize) -> usize {
        if bytes == 0 {
            return 0;
        }
        if let Some(&(found, offset)) = self.by_size.range((bytes, 0)..).next() {
            self.remove(offset, found);
            if found > bytes {
                self.insert(offset + bytes, found - bytes);
            }
            return offset;
        }
        // The arena grows; a free piece at its end is the beginning of the new one.
        let last = self.pieces.last_key_value().map(|(&offset, &bytes)| (offset, bytes));
        let offset = match last {
            Some((offset, found)) if offset + found == self.end => {
                self.remove(offset, found);
                offset
            }
            _ => self.end,
        };
        self.end = offset + bytes;
        offset
    }

    fn give(&mut self, mut offset: usize, mut bytes: usize) {
        if let Some((&before, &size)) = self.pieces.range(..offset).next_back()
            && before + size == offset
        {
            self.remove(before, size);
            (offset, bytes) = (before, bytes + size);
        }
        if let Some(&size) = self.pieces.get(&(offset + bytes)) {
            self.remove(offset + bytes, size);
            bytes += size;
        }
        self.insert(offset, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places intervals, checks that those that overlap in time do not in memory, and gives the size
    /// of the arena.
    fn checked(intervals: &[(usize, usize, usize)]) -> usize {
        let of = |(slot, &(bytes, first, last)): (usize, &(usize, usize, usize))| Interval {
            slot,
            bytes,
            first,
            last,
        };
        let mut offsets = vec![0; intervals.len()];
        let end = arena(intervals.iter().enumerate().map(of).collect(), |slot, offset| {
            offsets[slot] = offset;
        });
        for (i, &(bytes, first, last)) in intervals.iter().enumerate() {
            assert_eq!(offsets[i] % ALIGN, 0);
            assert!(offsets[i] + bytes <= end);
            for (j, &(other, begin, stop)) in intervals.iter().enumerate().take(i) {
                let at_once = first <= stop && begin <= last;
                let apart = offsets[i] + bytes <= offsets[j] || offsets[j] + other <= offsets[i];
                assert!(!at_once || apart || bytes == 0 || other == 0, "{i} and {j}");
            }
        }
        end
    }

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<_> = (0..1000).map(|i| (4096, i, i + 1)).collect();
        assert_eq!(checked(&chain), 2 * 4096);
    }

    #[test]
    fn random_intervals_do_not_collide() {
        let mut rng = oorandom::Rand32::new(7);
        for _ in 0..50 {
            let intervals: Vec<_> = (0..60)
                .map(|_| {
                    let first = rng.rand_range(0..50) as usize;
                    let last = first + rng.rand_range(0..10) as usize;
                    (rng.rand_range(0..2000) as usize, first, last)
                })
                .collect();
            checked(&intervals);
        }
    }
}
