//! Stable sorting by a comparator that may say anything.
//!
//! A comparator that is code is fast only if it is asked about many pairs at once. So short runs are
//! sorted by networks that exchange neighbours ([`runs`]), many runs side by side, and then merged,
//! many merges side by side, one element of each at a time ([`merges`]). Where there are few merges,
//! they are cut into pieces ([`level`]). (Of few elements, all pairs are compared: [`tournament`].)
//! That is some `n log n` comparisons; whatever the answers are, it ends, and the result is a
//! permutation.

mod level;
mod merges;
mod pairs;
mod runs;
mod tournament;

use std::ops::Range;

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for, with_size};
use super::super::disjoint::Disjoint;
use super::Lanes;
use crate::Threads;
use level::Level;
pub use pairs::{PAIRS, Pairs, Precedes};

/// Elements of a run that a sorting network sorts. No power of two: merges would lie a page apart.
const RUN: usize = 9;
/// Elements that are sorted together, in whole lanes, about; at least one lane.
const CHUNK: usize = 1 << 20;
/// Blocks of lanes that are not contiguous, and of elements that are, are moved by one task.
const LANES_PER_TASK: usize = 16;
const MOVED_PER_TASK: usize = 1 << 16;

/// A stable sort of one or more arrays of the same sizes along a dimension, by a comparator.
#[derive(Clone, Debug)]
pub struct MergeSort {
    element_sizes: Vec<usize>,
    lanes: Lanes,
    /// How many of `moved` the comparator is shown.
    compared: usize,
    moved: Vec<MergeColumn>,
    /// Operands that are brought into order at the end.
    permuted: Vec<usize>,
}

/// What merges move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MergeColumn {
    /// The elements of an operand.
    Operand(usize),
    /// Where in its lane an element was.
    Place,
}

impl MergeSort {
    /// A sort of arrays whose elements have these sizes in bytes by what a comparator says of the
    /// elements of `compared`. Of the others, only those in `used` matter. `None` if lanes are too
    /// long for indices of 32 bits.
    pub fn new(
        compared: &[usize],
        used: &[bool],
        element_sizes: Vec<usize>,
        lanes: Lanes,
    ) -> Option<Self> {
        let operands = 0..element_sizes.len();
        let mut permuted: Vec<usize> =
            operands.filter(|&i| used[i] && !compared.contains(&i)).collect();
        let mut moved: Vec<MergeColumn> =
            compared.iter().map(|&i| MergeColumn::Operand(i)).collect();
        match permuted[..] {
            [] => {}
            // Cheaper than a place that then has to be looked up.
            [operand] => {
                moved.push(MergeColumn::Operand(operand));
                permuted.clear();
            }
            _ => moved.push(MergeColumn::Place),
        }
        let compared = compared.len();
        let sort = MergeSort { element_sizes, lanes, compared, moved, permuted };
        (lanes.count <= u32::MAX as usize && lanes.len().is_some()).then_some(sort)
    }

    /// Bytes of an element of what is moved.
    fn size(&self, moved: MergeColumn) -> usize {
        match moved {
            MergeColumn::Operand(i) => self.element_sizes[i],
            MergeColumn::Place => size_of::<u32>(),
        }
    }

    /// How many lanes are sorted at once.
    fn lanes_at_once(&self) -> usize {
        let Lanes { outer, count, inner } = self.lanes;
        (CHUNK / count.max(1)).clamp(1, outer.saturating_mul(inner).max(1))
    }

    /// The levels of merges in `lanes` lanes, from the bottom up.
    fn levels(&self, lanes: usize) -> impl Iterator<Item = Level> {
        let count = self.lanes.count;
        let widths = std::iter::successors(Some(RUN), |width| width.checked_mul(2));
        widths.take_while(move |&width| width < count).map(move |w| Level::new(lanes, count, w))
    }

    /// How much working memory [`MergeSort::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        let lanes = self.lanes_at_once();
        let elements = lanes.saturating_mul(self.lanes.count);
        let columns = self.moved.iter().map(|&moved| {
            let column = scratch_for::<u8>(elements.saturating_mul(self.size(moved)));
            column.saturating_mul(2)
        });
        let cuts = self.levels(lanes).map(|level| level.cuts()).max().unwrap_or(0);
        columns.fold(scratch_for::<u32>(cuts), usize::saturating_add)
    }

    /// Sorts `from` into `to`. A result that nobody needs may be given as an empty slice.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(
        &self,
        precedes: &Precedes<'_>,
        from: &[&[u8]],
        to: &mut [&mut [u8]],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        if self.lanes.is_empty() {
            return;
        }
        let Lanes { outer, count, inner } = self.lanes;
        let to = Disjoint::all(to);
        let (lanes, at_once) = (outer * inner, self.lanes_at_once());
        let sizes: Vec<usize> = self.moved.iter().map(|&moved| self.size(moved)).collect();
        for first in (0..lanes).step_by(at_once) {
            let part = LaneRange { sort: self, lanes: first..lanes.min(first + at_once), threads };
            let elements = part.lanes.len() * count;
            let mut scratch = Scratch::new(&mut *scratch);
            let mut column = |&size: &usize| scratch.take::<u8>(elements * size);
            let mut now: Vec<&mut [u8]> = sizes.iter().map(&mut column).collect();
            let mut next: Vec<&mut [u8]> = sizes.iter().map(&mut column).collect();
            for (&moved, column) in self.moved.iter().zip(&mut now) {
                part.load(moved, from, column);
            }
            let asked = pairs::PairComparator { precedes, sizes: &sizes, compared: self.compared };
            let is_few = elements <= tournament::MAX_ELEMENTS;
            if is_few && tournament::sort(&asked, (part.lanes.len(), count), &now, &mut next) {
                std::mem::swap(&mut now, &mut next);
            } else {
                runs::sort(&asked, part.lanes.len(), count, &mut now, threads);
                for level in self.levels(part.lanes.len()) {
                    let cuts = scratch.again().take::<u32>(level.cuts());
                    merges::merge(&asked, &level, &now, &mut next, cuts, threads);
                    std::mem::swap(&mut now, &mut next);
                }
            }
            // Places that were not sorted, or not even written, are none.
            if threads.is_stopped() {
                return;
            }
            for (&moved, column) in self.moved.iter().zip(&now) {
                match moved {
                    MergeColumn::Operand(i) => part.store(i, column, &to[i]),
                    MergeColumn::Place => self.permuted.iter().for_each(|&i| {
                        part.permute(i, from[i], cast(column), &to[i]);
                    }),
                }
            }
        }
    }
}

/// Lanes of a sort that one thread, or several, sort.
struct LaneRange<'s> {
    sort: &'s MergeSort,
    lanes: Range<usize>,
    threads: Threads<'s>,
}

impl LaneRange<'_> {
    /// Calls `body` with neighbouring lanes, by their numbers in this part.
    fn each_block(&self, body: &(dyn Fn(Range<usize>) + Sync)) {
        self.threads.for_ranges(self.lanes.len(), LANES_PER_TASK, body);
    }

    /// Where the elements of a lane begin.
    fn start(&self, lane: usize) -> usize {
        let Lanes { count, inner, .. } = self.sort.lanes;
        let lane = self.lanes.start + lane;
        lane / inner * count * inner + lane % inner
    }

    /// Writes what is moved, lane by lane.
    fn load(&self, moved: MergeColumn, from: &[&[u8]], column: &mut [u8]) {
        let Lanes { count, inner, .. } = self.sort.lanes;
        let operand = match moved {
            MergeColumn::Operand(operand) => operand,
            MergeColumn::Place => {
                return self.threads.for_chunks(cast_mut::<u32>(column), count, &|_, lane| {
                    for (place, i) in lane.iter_mut().zip(0..) {
                        *place = i;
                    }
                });
            }
        };
        with_size!(self.sort.element_sizes[operand], T => {
            let (from, column) = (cast::<T>(from[operand]), cast_mut::<T>(column));
            if inner == 1 {
                let from = &from[self.lanes.start * count..];
                return self.threads.for_chunks(column, MOVED_PER_TASK, &|i, part| {
                    part.copy_from_slice(&from[i * MOVED_PER_TASK..][..part.len()]);
                });
            }
            let column = Disjoint::new(column);
            self.each_block(&|lanes| {
                // SAFETY: lanes lie one behind the other, and each is in one block.
                let column = unsafe { column.part(lanes.start * count, lanes.len() * count) };
                let starts: Vec<usize> = lanes.map(|lane| self.start(lane)).collect();
                for i in 0..count {
                    for (lane, start) in starts.iter().enumerate() {
                        column[lane * count + i] = from[start + i * inner];
                    }
                }
            });
        });
    }

    /// Writes the elements of a result, which lie lane by lane in `column`.
    fn store(&self, operand: usize, column: &[u8], to: &Disjoint<'_, u8>) {
        self.write(operand, to, |lane, i, count| lane * count + i, column);
    }

    /// Writes the elements of a result that is to be brought into order.
    fn permute(&self, operand: usize, from: &[u8], places: &[u32], to: &Disjoint<'_, u8>) {
        let inner = self.sort.lanes.inner;
        let at = |lane, i, count| self.start(lane) + places[lane * count + i] as usize * inner;
        self.write(operand, to, at, from);
    }

    /// Writes a result: element `i` of a lane is that of `from` at `at(lane, i, count)`.
    fn write(
        &self,
        operand: usize,
        to: &Disjoint<'_, u8>,
        at: impl Fn(usize, usize, usize) -> usize + Sync,
        from: &[u8],
    ) {
        let Lanes { count, inner, .. } = self.sort.lanes;
        if to.is_empty() {
            return;
        }
        let size = self.sort.element_sizes[operand];
        with_size!(size, T => {
            let from = cast::<T>(from);
            if inner == 1 {
                let elements = self.lanes.len() * count;
                return self.threads.for_ranges(elements, MOVED_PER_TASK, &|part| {
                    let start = self.lanes.start * count + part.start;
                    // SAFETY: each element is in one part.
                    let to = unsafe { to.part(start * size, part.len() * size) };
                    for (to, i) in cast_mut::<T>(to).iter_mut().zip(part) {
                        *to = from[at(i / count, i % count, count)];
                    }
                });
            }
            self.each_block(&|lanes| for i in 0..count {
                for lane in lanes.clone() {
                    let place = self.start(lane) + i * inner;
                    // SAFETY: no other task writes this lane.
                    let to = unsafe { to.part(place * size, size) };
                    cast_mut::<T>(to)[0] = from[at(lane, i, count)];
                }
            });
        });
    }
}

#[cfg(test)]
mod tests;
