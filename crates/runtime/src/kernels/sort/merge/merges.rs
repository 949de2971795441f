//! Merges in lockstep: each gives one element after each round of comparisons.

use super::super::super::bytes::{Plain, cast, cast_mut, with_size};
use super::super::super::disjoint::Disjoint;
use super::super::super::isa::{prefetch_line, vectorised};
use super::level::{Level, Merge};
use super::pairs::{PAIRS, PairComparator, PerColumn, halves};
use crate::Threads;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Merges the runs of all columns of `from` into `to`; `cuts` are memory for [`Level::cuts`].
pub(super) fn merge(
    asked: &PairComparator<'_>,
    level: &Level,
    from: &[&mut [u8]],
    to: &mut [&mut [u8]],
    cuts: &mut [u32],
    threads: Threads<'_>,
) {
    threads.for_chunks(cuts, PAIRS, &|group, cuts| find_cuts(asked, level, from, group, cuts));
    if threads.is_stopped() {
        return;
    }
    level.straighten(cuts);
    let cuts = &*cuts;
    let to = Disjoint::all(to);
    threads.for_ranges(level.pieces(), PAIRS, &|pieces| {
        let place = |piece: usize| {
            let (merge, given) = level.piece(piece);
            [merge.start + given.start, merge.start + given.end]
        };
        let ([start, _], [_, end]) = (place(pieces.start), place(pieces.end - 1));
        let mut state = State::default();
        for piece in pieces {
            state.push(level.sources(piece, cuts), place(piece)[0] - start);
        }
        let parts = to.iter().zip(asked.sizes).map(|(to, size)| {
            // SAFETY: pieces give elements one behind the other, and each is in one task.
            unsafe { to.part(start * size, (end - start) * size) }
        });
        state.run(asked, from, &mut parts.collect::<PerColumn<_>>());
    });
}

/// Finds how many elements of the left run come before each piece of a group: a search by halves in
/// all of them at once.
fn find_cuts(
    asked: &PairComparator<'_>,
    level: &Level,
    from: &[&mut [u8]],
    group: usize,
    cuts: &mut [u32],
) {
    let mut low = [0usize; PAIRS];
    let mut high = [0usize; PAIRS];
    let mut places = [[0usize; 2]; PAIRS];
    for i in 0..cuts.len() {
        let (Merge { start, middle, end }, given) = level.piece(group * PAIRS + i);
        low[i] = given.start.saturating_sub(end - middle);
        high[i] = given.start.min(middle - start);
    }
    let mut answers = [0; PAIRS];
    asked.with_rows(2, |mut rows| {
        while (0..cuts.len()).any(|i| low[i] < high[i]) {
            for i in 0..cuts.len() {
                let (Merge { start, middle, .. }, given) = level.piece(group * PAIRS + i);
                let half = (low[i] + high[i]) / 2;
                // Where nothing is left to be found, any pair will do.
                places[i] = match low[i] < high[i] {
                    true => [start + half, middle + given.start - 1 - half],
                    false => [start; 2],
                };
            }
            asked.show(&places[..cuts.len()], from, &mut rows);
            (asked.precedes)(cuts.len(), &|column| halves(rows[column]), &mut answers);
            for i in 0..cuts.len() {
                let half = (low[i] + high[i]) / 2;
                match (low[i] < high[i], answers[i] != 0) {
                    (false, _) => {}
                    (true, true) => high[i] = half,
                    (true, false) => low[i] = half + 1,
                }
            }
        }
    });
    for (cut, &low) in cuts.iter_mut().zip(&low) {
        *cut = low as u32;
    }
}

/// Merges that proceed side by side, as lists with an item for each.
struct State {
    /// How many there are.
    count: usize,
    /// What is left of both runs.
    left: [u32; PAIRS],
    left_end: [u32; PAIRS],
    right: [u32; PAIRS],
    right_end: [u32; PAIRS],
    /// Where the next element goes.
    to: [u32; PAIRS],
    /// Whether the right element was taken in this round.
    takes_right: [u8; PAIRS],
    /// The element behind the one that was taken.
    next: [u32; PAIRS],
}

impl Default for State {
    fn default() -> Self {
        let none = [0; PAIRS];
        State {
            count: 0,
            left: none,
            left_end: none,
            right: none,
            right_end: none,
            to: none,
            takes_right: [0; PAIRS],
            next: none,
        }
    }
}

impl State {
    /// Adds a merge of these elements, unless there are none.
    fn push(&mut self, [left, right]: [std::ops::Range<usize>; 2], to: usize) {
        if left.is_empty() && right.is_empty() {
            return;
        }
        let i = self.count;
        (self.left[i], self.left_end[i]) = (left.start as u32, left.end as u32);
        (self.right[i], self.right_end[i]) = (right.start as u32, right.end as u32);
        self.to[i] = to as u32;
        self.count += 1;
    }

    /// How many elements a merge still gives.
    fn remaining(&self, i: usize) -> u32 {
        (self.left_end[i] - self.left[i]) + (self.right_end[i] - self.right[i])
    }

    /// Merges until nothing is left.
    fn run(&mut self, asked: &PairComparator<'_>, from: &[&mut [u8]], to: &mut [&mut [u8]]) {
        let mut answers = [0; PAIRS];
        asked.with_rows(2, |mut heads| {
            let columns = || with_sizes(from, asked.sizes);
            for (heads, (from, size)) in heads.iter_mut().zip(columns()) {
                with_size!(size, T => {
                    let (left, right) = cast_mut::<T>(heads).split_at_mut(PAIRS);
                    self.first::<T>(cast(from), left, right);
                });
            }
            while let Some(rounds) = (0..self.count).map(|i| self.remaining(i)).min() {
                for round in 0..rounds {
                    (asked.precedes)(self.count, &|column| halves(heads[column]), &mut answers);
                    self.advance(&answers);
                    for ((heads, to), (from, size)) in heads.iter_mut().zip(&mut *to).zip(columns())
                    {
                        with_size!(size, T => {
                            let (left, right) = cast_mut::<T>(heads).split_at_mut(PAIRS);
                            self.take::<T>(cast(from), cast_mut(to), round, left, right);
                        });
                    }
                }
                self.to[..self.count].iter_mut().for_each(|to| *to += rounds);
                // Those that are done make room.
                for i in
                    (0..self.count).rev().filter(|&i| self.remaining(i) == 0).collect::<Vec<_>>()
                {
                    self.count -= 1;
                    for list in [
                        &mut self.left,
                        &mut self.left_end,
                        &mut self.right,
                        &mut self.right_end,
                        &mut self.to,
                    ] {
                        list.swap(i, self.count);
                    }
                    for (heads, &size) in heads.iter_mut().zip(asked.sizes) {
                        with_size!(size, T => {
                            let heads = cast_mut::<T>(heads);
                            heads.swap(i, self.count);
                            heads.swap(PAIRS + i, PAIRS + self.count);
                        });
                    }
                }
            }
        });
    }

    /// The first elements of both runs; of an empty run, any.
    fn first<T: Plain>(&self, from: &[T], left: &mut [T], right: &mut [T]) {
        let last = from.len() - 1;
        for i in 0..self.count {
            left[i] = from[last.min(self.left[i] as usize)];
            right[i] = from[last.min(self.right[i] as usize)];
        }
    }

    /// Goes on by one element in each merge: the right one, if it comes before the left one or is
    /// all there is.
    fn advance(&mut self, answers: &[u8; PAIRS]) {
        vectorised(
            #[inline(always)]
            || {
                for (i, &answer) in answers.iter().enumerate() {
                    let has_left = self.left[i] < self.left_end[i];
                    let has_right = self.right[i] < self.right_end[i];
                    let takes_right = has_right & (!has_left | (answer != 0));
                    self.left[i] += u32::from(!takes_right);
                    self.right[i] += u32::from(takes_right);
                    self.takes_right[i] = u8::from(takes_right);
                    self.next[i] = if takes_right { self.right[i] } else { self.left[i] };
                }
            },
        );
    }

    /// Writes what was taken, and puts what is behind it in its place.
    fn take<T: Plain>(
        &self,
        from: &[T],
        to: &mut [T],
        round: u32,
        left: &mut [T],
        right: &mut [T],
    ) {
        vectorised(
            #[inline(always)]
            || {
                let last = from.len() - 1;
                for i in 0..self.count {
                    let takes_right = self.takes_right[i] != 0;
                    let (l, r) = (left[i], right[i]);
                    let next = last.min(self.next[i] as usize);
                    // There are more streams than the processor foresees by itself.
                    prefetch_line(from.as_ptr().wrapping_add(next).wrapping_byte_add(LINE).cast());
                    let next = from[next];
                    to[(self.to[i] + round) as usize] = if takes_right { r } else { l };
                    left[i] = if takes_right { l } else { next };
                    right[i] = if takes_right { next } else { r };
                }
            },
        );
    }
}

/// Columns and the sizes of their elements.
fn with_sizes<'c>(
    columns: &'c [&mut [u8]],
    sizes: &'c [usize],
) -> impl Iterator<Item = (&'c [u8], usize)> {
    columns.iter().map(|column| &**column).zip(sizes.iter().copied())
}
