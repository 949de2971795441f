//! The chunks of memory that a pool keeps for later instead of giving them back.

use std::collections::BTreeMap;

use super::chunk::Chunk;

/// The most bytes of small chunks that are kept.
const SMALL_BYTES: usize = 32 << 20;

/// Chunks that wait to be used again; of large ones, those unused longest are given up first.
pub(super) struct Cache {
    /// By capacity.
    small: BTreeMap<usize, Vec<Chunk>>,
    small_bytes: usize,
    /// In the order in which they came.
    large: Vec<Chunk>,
    large_bytes: usize,
    /// The most bytes that are kept.
    limit: usize,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Cache { small: BTreeMap::new(), small_bytes: 0, large: Vec::new(), large_bytes: 0, limit }
    }

    pub(super) fn bytes(&self) -> usize {
        self.small_bytes + self.large_bytes
    }

    /// A chunk of at least this capacity and at most half as much more.
    pub(super) fn take(&mut self, capacity: usize) -> Option<Chunk> {
        let most = capacity.saturating_add(capacity / 2);
        if let Some((_, chunks)) =
            self.small.range_mut(capacity..=most).find(|(_, chunks)| !chunks.is_empty())
        {
            let chunk = chunks.pop()?;
            self.small_bytes -= chunk.capacity();
            return Some(chunk);
        }
        let fits = |chunk: &Chunk| (capacity..=most).contains(&chunk.capacity());
        // The smallest; of equals the one that came last, which is most likely in a cache.
        let best = (0..self.large.len())
            .rev()
            .filter(|&i| fits(&self.large[i]))
            .min_by_key(|&i| self.large[i].capacity())?;
        let chunk = self.large.remove(best);
        self.large_bytes -= chunk.capacity();
        Some(chunk)
    }

    /// Keeps a chunk, and no more than `room` bytes of all. What it gives up is returned, to be
    /// dropped where there is time.
    pub(super) fn put(&mut self, chunk: Chunk, room: usize) -> Vec<Chunk> {
        let capacity = chunk.capacity();
        if chunk.is_large() {
            self.large_bytes += capacity;
            self.large.push(chunk);
        } else if self.small_bytes + capacity <= SMALL_BYTES.min(self.limit) {
            self.small_bytes += capacity;
            self.small.entry(capacity).or_default().push(chunk);
        } else {
            return vec![chunk];
        }
        self.shrink_to(room.min(self.limit))
    }

    /// Gives up chunks until at most `bytes` are kept.
    pub(super) fn shrink_to(&mut self, bytes: usize) -> Vec<Chunk> {
        let mut evicted = Vec::new();
        let mut count = 0;
        while self.bytes() > bytes && count < self.large.len() {
            self.large_bytes -= self.large[count].capacity();
            count += 1;
        }
        evicted.extend(self.large.drain(..count));
        while self.bytes() > bytes {
            let Some(mut entry) = self.small.last_entry() else { break };
            match entry.get_mut().pop() {
                Some(chunk) => {
                    self.small_bytes -= chunk.capacity();
                    evicted.push(chunk);
                }
                None => drop(entry.remove()),
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn capacities(chunks: Vec<Chunk>) -> Vec<usize> {
        chunks.iter().map(Chunk::capacity).collect()
    }

    fn chunk(len: usize) -> Chunk {
        Chunk::new(Chunk::capacity_for(len).unwrap()).unwrap()
    }

    #[test]
    fn the_smallest_that_fits_is_taken_and_the_oldest_given_up() {
        let mut cache = Cache::new(16 * MIB);
        for mib in [8, 4, 2] {
            assert!(cache.put(chunk(mib * MIB), usize::MAX).is_empty());
        }
        assert_eq!(cache.take(4 * MIB).map(|c| c.capacity()), Some(4 * MIB));
        assert_eq!(cache.take(4 * MIB).map(|c| c.capacity()), None);
        assert_eq!(cache.take(6 * MIB).map(|c| c.capacity()), Some(8 * MIB));
        assert_eq!(cache.bytes(), 2 * MIB);
        assert_eq!(capacities(cache.put(chunk(14 * MIB), usize::MAX)), []);
        assert_eq!(capacities(cache.put(chunk(2 * MIB), usize::MAX)), [2 * MIB]);
        assert_eq!(capacities(cache.put(chunk(64), 2 * MIB)), [14 * MIB, 2 * MIB]);
        assert_eq!(capacities(cache.shrink_to(0)), [64]);
    }

    #[test]
    fn small_chunks_do_not_add_up_without_end() {
        let mut cache = Cache::new(usize::MAX);
        for _ in 0..100 {
            drop(cache.put(chunk(MIB / 2), usize::MAX));
        }
        assert!(cache.bytes() <= SMALL_BYTES);
    }
}
