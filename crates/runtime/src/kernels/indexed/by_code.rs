//! Scatter by code that may compute anything, of one array or several.
//!
//! Updates are combined side by side, as long as they are for different elements of the array: the
//! first that is for the same element as one before it begins the next batch.

use super::super::bytes::{cast, cast_mut, with_size};
use super::super::fold_code::{FoldCode, PerArray, Rows, with_rows};
use super::super::scratch;
use super::super::sort::PAIRS;
use super::found::{BLOCK, Found};
use super::gather::{each, points};
use super::places::Outside;
use super::{IndexedWindows, Plan};

/// So many updates are collected before they are combined.
const COLLECTED: usize = 4 * PAIRS;
/// By so many bits of their places, elements are told apart; others may be taken for the same.
const BITS: u32 = 14;

/// Combines windows into arrays of the same sizes, one index vector after the other; windows that
/// reach out are left out as a whole.
#[derive(Clone, Debug)]
pub struct ScatterByCode {
    plan: Plan,
    /// Bytes of an element of each array.
    sizes: Vec<usize>,
    is_splat: bool,
}

/// Updates in order: which elements of the arrays, and of the updates.
struct Collected {
    places: [usize; COLLECTED],
    lists: [usize; COLLECTED],
    count: usize,
}

impl ScatterByCode {
    /// A plan for arrays whose elements have these sizes. `None` if the description is not
    /// consistent, or elements have no size that types have.
    pub fn new(windows: &IndexedWindows, sizes: Vec<usize>) -> Option<Self> {
        if !sizes.iter().all(|size| [1, 2, 4, 8, 16].contains(size)) {
            return None;
        }
        let is_splat = windows.is_splat;
        Some(ScatterByCode { plan: windows.plan()?, sizes, is_splat })
    }

    /// Combines the windows of `updates` (or the one number that all updates are) into `to`.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(
        &self,
        code: &FoldCode<'_>,
        indices: &[u8],
        updates: &[&[u8]],
        to: &mut [&mut [u8]],
    ) {
        let Plan { places, window, row, .. } = &self.plan;
        let mut collected = Collected { places: [0; COLLECTED], lists: [0; COLLECTED], count: 0 };
        with_rows(&self.sizes, |rows| {
            scratch::with(1 << BITS, |firsts: &mut [u8]| {
                let mut combine = |collected: &mut Collected| {
                    collected.batches(firsts, |places, lists| {
                        self.combine(code, (places, lists), updates, to, rows);
                    });
                };
                let mut found = Found::new();
                for first in (0..places.count()).step_by(BLOCK) {
                    let block = first..places.count().min(first + BLOCK);
                    places.find(indices, block, Outside::Skip, &mut found);
                    found.each(|place, list| {
                        each(window, 0..points(window), |array_at, list_at| {
                            for i in 0..*row {
                                let list = if self.is_splat { 0 } else { list + list_at + i };
                                collected.push(place + array_at + i, list);
                                if collected.count == COLLECTED {
                                    combine(&mut collected);
                                }
                            }
                        });
                    });
                }
                combine(&mut collected);
            });
        });
    }

    /// Combines updates of different elements.
    fn combine(
        &self,
        code: &FoldCode<'_>,
        (places, lists): (&[usize], &[usize]),
        updates: &[&[u8]],
        to: &mut [&mut [u8]],
        rows: &mut Rows<'_>,
    ) {
        {
            let now: PerArray<&[u8]> = to.iter().map(|to| &**to).collect();
            rows.read(&now, places);
        }
        rows.begin();
        rows.read(updates, lists);
        rows.fold(code, places.len(), false);
        for ((to, row), &size) in to.iter_mut().zip(&rows.accumulators).zip(&self.sizes) {
            with_size!(size, T => {
                let to = cast_mut::<T>(to);
                for (&value, &place) in cast::<T>(row).iter().zip(places) {
                    to[place] = value;
                }
            });
        }
    }
}

impl Collected {
    #[inline(always)]
    fn push(&mut self, place: usize, list: usize) {
        (self.places[self.count], self.lists[self.count]) = (place, list);
        self.count += 1;
    }

    /// Calls `combine` for batches of updates of different elements, until none is left. `firsts` is
    /// memory for a byte for each combination of [`BITS`].
    fn batches(&mut self, firsts: &mut [u8], mut combine: impl FnMut(&[usize], &[usize])) {
        let (mut at, mut most) = (0, PAIRS);
        while at < self.count {
            let end = self.count.min(at + most);
            let count = different(&self.places[at..end], firsts);
            combine(&self.places[at..][..count], &self.lists[at..][..count]);
            at += count;
            // Where there are few in a batch, it does not pay to look far.
            most = (2 * count + 8).min(PAIRS);
        }
        self.count = 0;
    }
}

/// How many places, at most [`PAIRS`], differ from all before them; at least one.
fn different(places: &[usize], firsts: &mut [u8]) -> usize {
    // As long as places have no more bits, the bits are their own.
    let bits =
        |place: usize| place.wrapping_add((place >> BITS).wrapping_mul(0x9e37_79b9)) % (1 << BITS);
    for (i, &place) in places.iter().enumerate().rev() {
        firsts[bits(place)] = i as u8;
    }
    let is_second = |(i, &place): (usize, &usize)| firsts[bits(place)] != i as u8;
    places.iter().enumerate().position(is_second).unwrap_or(places.len())
}
