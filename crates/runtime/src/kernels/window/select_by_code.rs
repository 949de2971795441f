//! The gradient of pooling, selected and added up by code that may compute anything.

use super::super::bytes::{Scratch, cast, cast_mut, scratch_for, with_size};
use super::super::disjoint::Disjoint;
use super::super::fold_code::{FoldCode, NOWHERE, with_rows, with_updates};
use super::super::sort::PAIRS;
use super::group::Group;
use super::{WindowDim, Windows};
use crate::Threads;
use crate::bounds::Lookout;

/// Code that compares pairs of elements: the number of pairs, the elements selected so far and those
/// they are compared with, and a byte for each pair, set to 1 if the selected element stays, else to
/// 0. Slices have room for [`PAIRS`] pairs.
pub type SelectCode<'a> = dyn Fn(usize, [&[u8]; 2], &mut [u8]) + Sync + 'a;

/// Positions between two questions whether the run has stopped.
const LOOK_EVERY: usize = 1 << 14;

/// As [`SelectAndScatter`](super::SelectAndScatter), for any type and any functions.
#[derive(Clone, Debug)]
pub struct SelectByCode {
    /// Bytes of an element.
    size: usize,
    windows: Windows,
    /// Points of the window, and how many positions it has.
    points: usize,
    positions: usize,
}

impl SelectByCode {
    /// A plan for elements of `size` bytes. `None` if no element type has that size, or dilations or
    /// windows are too large.
    pub fn new(window: &[WindowDim], size: usize) -> Option<Self> {
        let windows = Windows::new(window)?;
        let points = window.iter().map(|dim| dim.size).product();
        let positions = window.iter().map(|dim| dim.positions).product();
        let is_possible = [1, 2, 4, 8, 16].contains(&size);
        is_possible.then_some(SelectByCode { size, windows, points, positions })
    }

    /// How much working memory [`SelectByCode::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        scratch_for::<u64>(self.positions)
    }

    /// Folds each element of `source` into that of `to` which its window selects from `operand`, in
    /// the order of positions; `to` is `init` everywhere at first.
    ///
    /// # Panics
    ///
    /// If an array or `scratch` is too short, or an array is not aligned for its elements.
    pub fn run(
        &self,
        (select, fold): (&SelectCode<'_>, &FoldCode<'_>),
        (operand, source, init): (&[u8], &[u8], &[u8]),
        to: &mut [u8],
        scratch: &mut [u8],
        threads: Threads<'_>,
    ) {
        with_size!(self.size, T => cast_mut::<T>(to).fill(cast(init)[0]));
        let selected = Scratch::new(scratch).take::<u64>(self.positions);
        self.select(select, operand, selected, threads);
        if threads.is_stopped() {
            return;
        }
        with_updates(&[self.size], |updates| {
            let (from, to) = (&[source], &mut [to]);
            for (position, &place) in selected.iter().enumerate() {
                if position.is_multiple_of(LOOK_EVERY) && threads.is_stopped() {
                    return;
                }
                if place == NOWHERE as u64 {
                    continue;
                }
                if updates.is_full() {
                    updates.fold(fold, from, to);
                }
                updates.push(place as usize, position);
            }
            updates.fold(fold, from, to);
        });
    }

    /// Finds the place that is selected at each position; nowhere, if the window has no element.
    fn select(
        &self,
        select: &SelectCode<'_>,
        operand: &[u8],
        selected: &mut [u64],
        threads: Threads<'_>,
    ) {
        let windows = &self.windows;
        let selected = Disjoint::new(selected);
        threads.for_ranges(windows.rows(), windows.rows_per_task(self.points), &|rows| {
            with_rows(&[self.size], |state| {
                let mut lookout = Lookout::default();
                Group::each(windows, rows, |group| {
                    let count = group.len();
                    let (mut best, mut places) = ([NOWHERE; PAIRS], [NOWHERE; PAIRS]);
                    let (best, places) = (&mut best[..count], &mut places[..count]);
                    // The first element is under all windows that have any.
                    group.elements(0, best);
                    state.read(&[operand], best);
                    state.begin();
                    let mut stays = [0; PAIRS];
                    for i in 1..group.longest() {
                        if !lookout.goes_on(PAIRS) {
                            return;
                        }
                        group.elements(i, places);
                        state.read(&[operand], places);
                        select(count, [&*state.accumulators[0], &*state.elements[0]], &mut stays);
                        let all = stays.iter_mut().zip(best.iter_mut().zip(&*places));
                        for (stays, (best, &place)) in all {
                            *stays |= u8::from(place == NOWHERE);
                            *best = if *stays != 0 { *best } else { place };
                        }
                        state.replace(&stays[..count]);
                    }
                    group.positions(places);
                    for (&best, &position) in best.iter().zip(&*places) {
                        // SAFETY: each position is in one row, and that in one task.
                        let to = unsafe { selected.part(position, 1) };
                        to[0] = best as u64;
                    }
                });
            });
        });
    }
}
