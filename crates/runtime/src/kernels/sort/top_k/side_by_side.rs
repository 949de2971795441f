//! Short rows, many of them side by side: an element of each at a time finds its place among the
//! best so far.

use super::super::super::bytes::{Scratch, bytes_of, bytes_of_mut, scratch_for};
use super::super::super::copy::{Axis, Copy};
use super::super::super::isa::vectorised;
use super::super::keys::{Bits, Ranks};
use crate::Threads;

/// Rows that are processed side by side, one in each lane.
pub(super) const ROWS: usize = 64;
/// Each element of a row is compared with all of the best, so that there must not be many of both.
/// Places fit into a byte.
const MAX_ELEMENTS: usize = 1 << 8;
const MAX_COMPARED: usize = 1 << 11;

/// How the rows of a group are made columns.
#[derive(Clone, Debug)]
pub(super) struct SideBySide {
    row_size: usize,
    k: usize,
    element_size: usize,
    group: Copy,
    /// The last group, if it has fewer rows.
    last: Copy,
}

/// Something of each row.
type Column<T> = [T; ROWS];

impl SideBySide {
    /// `None` if rows are few or too long for that.
    pub(super) fn new(
        (rows, row_size): (usize, usize),
        k: usize,
        element_size: usize,
    ) -> Option<Self> {
        if rows < ROWS / 4 || row_size > MAX_ELEMENTS || row_size * k > MAX_COMPARED {
            return None;
        }
        let columns = |rows: usize| {
            let row = Axis { size: rows, from: row_size as isize, to: 1 };
            let element = Axis { size: row_size, from: 1, to: ROWS as isize };
            Copy::new(&[row, element], element_size)
        };
        let (group, last) = (columns(ROWS)?, columns(rows % ROWS)?);
        Some(SideBySide { row_size, k, element_size, group, last })
    }

    /// How much working memory [`SideBySide::best`] needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        let columns = self.row_size + 2 * self.k;
        scratch_for::<u8>(columns * ROWS * self.element_size) + 2 * scratch_for::<u8>(0)
    }

    /// The places of the best elements, in order, of each row of a group.
    pub(super) fn best<'a, T: Bits>(
        &self,
        ranks: &Ranks<T>,
        rows: &[T],
        mut scratch: Scratch<'a>,
    ) -> &'a [Column<T>] {
        let mut columns = |count: usize| scratch.take::<T>(count * ROWS).as_chunks_mut().0;
        let elements: &mut [Column<T>] = columns(self.row_size);
        let (best, places) = (columns(self.k), columns(self.k));
        let is_whole = rows.len() == ROWS * self.row_size;
        let copy = if is_whole { &self.group } else { &self.last };
        let to = bytes_of_mut(elements.as_flattened_mut());
        copy.run((bytes_of(rows), 0), (to, 0), Threads::single());
        vectorised(
            #[inline(always)]
            || {
                for (i, column) in elements.iter_mut().enumerate() {
                    column.iter_mut().for_each(|v| *v = ranks.rank(*v));
                    let place = T::narrow(i as u64);
                    if let (Some(best), Some(places)) = (best.get_mut(i), places.get_mut(i)) {
                        // Worse than everything, so that an element that equals it is found here.
                        (*best, *places) = ([T::ALL; ROWS], [place; ROWS]);
                    }
                    let count = self.k.min(i + 1);
                    insert(column, place, &mut best[..count], &mut places[..count]);
                }
            },
        );
        places
    }
}

/// Puts a rank of each row among the lowest so far, behind those that are equal, and its place among
/// theirs; the highest is dropped.
#[inline(always)]
fn insert<T: Bits>(
    ranks: &Column<T>,
    place: T,
    lowest: &mut [Column<T>],
    places: &mut [Column<T>],
) {
    for at in (1..lowest.len()).rev() {
        let [before, now] = [lowest[at - 1], lowest[at]];
        let [place_before, place_now] = [places[at - 1], places[at]];
        for i in 0..ROWS {
            lowest[at][i] = ranks[i].max(before[i]).min(now[i]);
            let found = if ranks[i] < now[i] { place } else { place_now[i] };
            places[at][i] = if ranks[i] < before[i] { place_before[i] } else { found };
        }
    }
    let (lowest, places) = (&mut lowest[0], &mut places[0]);
    for i in 0..ROWS {
        places[i] = if ranks[i] < lowest[i] { place } else { places[i] };
        lowest[i] = lowest[i].min(ranks[i]);
    }
}
