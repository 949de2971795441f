//! Merges of neighbouring runs, cut into pieces of about equal length.

use std::ops::Range;

/// The merges of neighbouring runs of a width in all lanes; the last runs of a lane may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    lanes: usize,
    count: usize,
    width: usize,
    /// Elements that a piece gives.
    piece: usize,
    merges_per_lane: usize,
    pieces_per_merge: usize,
}

/// A merge of two runs that lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Merge {
    pub start: usize,
    pub middle: usize,
    pub end: usize,
}

/// The fewest pieces that a level is cut into, unless that makes them short.
const PIECES: usize = 1 << 10;
/// Lengths are odd multiples of this, within bounds: pieces that begin a multiple of a page apart
/// would be in each other's way in the caches.
const UNIT: usize = 16;
const BOUNDS: (usize, usize) = (80, 1024);

impl Level {
    pub fn new(lanes: usize, count: usize, width: usize) -> Self {
        let both = width.saturating_mul(2);
        let merges_per_lane = count.div_ceil(both);
        let longest = both.min(count);
        let wanted = (lanes.saturating_mul(count) / PIECES).clamp(BOUNDS.0, BOUNDS.1);
        let piece = match longest.div_ceil(wanted) {
            1 => longest,
            pieces => (longest.div_ceil(pieces * UNIT) | 1) * UNIT,
        };
        let pieces_per_merge = longest.div_ceil(piece);
        Level { lanes, count, width, piece, merges_per_lane, pieces_per_merge }
    }

    /// How many pieces there are; some may be empty.
    pub fn pieces(&self) -> usize {
        self.lanes * self.merges_per_lane * self.pieces_per_merge
    }

    /// How many cuts there are: one where each piece begins, if any merge is cut.
    pub fn cuts(&self) -> usize {
        if self.pieces_per_merge > 1 { self.pieces() } else { 0 }
    }

    fn merge(&self, merge: usize) -> Merge {
        let lane = merge / self.merges_per_lane * self.count;
        let within = |at: usize| lane + at.min(self.count);
        let start = merge % self.merges_per_lane * 2 * self.width;
        let [middle, end] = [1, 2].map(|runs| within(start + runs * self.width));
        Merge { start: lane + start, middle, end }
    }

    /// The merge that a piece belongs to, and which of its elements the piece gives.
    pub fn piece(&self, piece: usize) -> (Merge, Range<usize>) {
        let merge = self.merge(piece / self.pieces_per_merge);
        let at = |n: usize| n.saturating_mul(self.piece).min(merge.end - merge.start);
        let n = piece % self.pieces_per_merge;
        (merge, at(n)..at(n + 1))
    }

    /// What a piece takes of its merge's runs; `cuts` say how many elements of the left run come
    /// before each piece.
    pub fn sources(&self, piece: usize, cuts: &[u32]) -> [Range<usize>; 2] {
        let (Merge { start, middle, .. }, given) = self.piece(piece);
        let cut = |piece: usize, at_ends: usize| match piece % self.pieces_per_merge {
            0 => at_ends,
            _ => cuts[piece] as usize,
        };
        let (from, to) = (cut(piece, 0), cut(piece + 1, middle - start));
        [start + from..start + to, middle + given.start - from..middle + given.end - to]
    }

    /// Makes cuts that an inconsistent comparator has led astray follow each other: from one piece to
    /// the next, no run is gone through backwards.
    pub fn straighten(&self, cuts: &mut [u32]) {
        for merge in cuts.chunks_exact_mut(self.pieces_per_merge) {
            let mut before = 0;
            for cut in &mut merge[1..] {
                *cut = (*cut).clamp(before, before + self.piece as u32);
                before = *cut;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_all_elements_in_order() {
        for (lanes, count, width) in [(1, 9, 8), (3, 1000, 64), (2, 5000, 2048), (700, 17, 8)] {
            let level = Level::new(lanes, count, width);
            let mut next = 0;
            for piece in 0..level.pieces() {
                let (merge, given) = level.piece(piece);
                assert!(merge.start <= merge.middle && merge.middle <= merge.end);
                if !given.is_empty() {
                    assert_eq!(merge.start + given.start, next);
                    next = merge.start + given.end;
                }
            }
            assert_eq!(next, lanes * count);
        }
    }

    #[test]
    fn any_cuts_are_straightened_to_a_partition() {
        let level = Level::new(1, 3000, 1024);
        let mut random = 1u64;
        let mut next = |most: usize| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
            (random >> 33) as usize % (most + 1)
        };
        let mut cuts = vec![0; level.cuts()];
        for (piece, cut) in cuts.iter_mut().enumerate() {
            let (Merge { start, middle, end }, given) = level.piece(piece);
            let least = given.start.saturating_sub(end - middle);
            let most = given.start.min(middle - start);
            *cut = (least + next(most - least)) as u32;
        }
        level.straighten(&mut cuts);
        let mut taken = vec![0; 3000];
        for piece in 0..level.pieces() {
            let sources = level.sources(piece, &cuts);
            let given = level.piece(piece).1;
            assert_eq!(sources.iter().map(|range| range.len()).sum::<usize>(), given.len());
            sources.into_iter().flatten().for_each(|i| taken[i] += 1);
        }
        assert!(taken.iter().all(|&times| times == 1));
    }
}
