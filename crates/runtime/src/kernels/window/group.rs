//! Positions of a window that are treated side by side.

use std::ops::Range;

use helio_limits::Reservation;

use super::super::fold_code::NOWHERE;
use super::super::sort::PAIRS;
use super::Windows;
use crate::bounds;

/// At most [`PAIRS`] positions, and the elements under the window at each.
#[derive(Default)]
pub(super) struct Group {
    /// The number of a position, where its first element is, and where in `places` the others are.
    of: Vec<(usize, usize, Range<usize>)>,
    places: Vec<usize>,
    /// The memory of `places`.
    counted: Vec<Reservation>,
}

impl Group {
    /// Calls `body` for all positions in these rows, in order.
    pub(super) fn each(windows: &Windows, rows: Range<usize>, mut body: impl FnMut(&Group)) {
        let mut group = Group::default();
        windows.each(rows, &mut |positions, places| {
            let bytes = places.len().saturating_mul(2 * size_of::<usize>());
            let Some(counted) = bounds::reserve(bytes) else { return };
            group.counted.push(counted);
            let first = group.places.len();
            group.places.extend_from_slice(places);
            let list = first..group.places.len();
            for (number, start) in (positions.number..).zip(positions.starts()) {
                for lane in 0..windows.lanes {
                    group.of.push((number * windows.lanes + lane, start + lane, list.clone()));
                    if group.of.len() == PAIRS {
                        body(&group);
                        group.of.clear();
                    }
                }
            }
            if group.of.is_empty() {
                group.places.clear();
                group.counted.clear();
            }
        });
        if !group.of.is_empty() {
            body(&group);
        }
    }

    /// How many positions.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// How many elements are under the window at most.
    pub(super) fn longest(&self) -> usize {
        self.of.iter().map(|(_, _, list)| list.len()).max().unwrap_or(0)
    }

    /// The place of element `i` at each position; nowhere where there are fewer.
    pub(super) fn elements(&self, i: usize, places: &mut [usize]) {
        for (place, (_, start, list)) in places.iter_mut().zip(&self.of) {
            let at = list.start + i;
            *place = if at < list.end { start + self.places[at] } else { NOWHERE };
        }
    }

    /// The numbers of the positions.
    pub(super) fn positions(&self, numbers: &mut [usize]) {
        for (to, &(number, ..)) in numbers.iter_mut().zip(&self.of) {
            *to = number;
        }
    }
}
