//! Windows folded by code that may compute anything, of one array or several.
//!
//! Code is fast only if it folds many elements at once, so positions are folded side by side, an
//! element of each at a time. Cumulative folds go along many lanes side by side; where there are few,
//! lanes are cut into segments, folded for themselves first.

use std::ops::Range;

use super::super::bytes::{Scratch, cast, cast_mut, with_size};
use super::super::disjoint::Disjoint;
use super::super::fold_code::{FoldCode, NOWHERE, PerArray, Rows, with_rows};
use super::super::scratch;
use super::super::sort::{Lanes, PAIRS};
use super::group::Group;
use super::reduce::scan;
use super::{WindowDim, Windows};
use crate::Threads;
use crate::bounds::Lookout;

/// Folds the elements under each position of a window, and initial values once, by code.
#[derive(Clone, Debug)]
pub struct FoldWindow {
    /// Bytes of an element of each array.
    sizes: Vec<usize>,
    plan: CodeRoute,
}

#[derive(Clone, Debug)]
enum CodeRoute {
    /// Each position folds what the one before did, and one more; lanes may be cut into segments.
    Scan { lanes: Lanes, is_reversed: bool, may_cut: bool },
    /// Each position for itself.
    Windows { windows: Windows, points: usize },
}

/// The number of lanes from which on they are folded side by side, and lines are not cut into
/// segments.
const MANY_LANES: usize = 64;
/// The most segments of all lines together, and the fewest positions of a segment.
const SEGMENTS: usize = 1 << 10;
const SEGMENT: usize = 32;
impl FoldWindow {
    /// A plan for windows over arrays whose elements have these sizes; `may_reorder` says that elements
    /// may be folded with each other before they are folded with the initial values. `None` if
    /// dilations or windows are too large.
    pub fn new(window: &[WindowDim], sizes: Vec<usize>, may_reorder: bool) -> Option<Self> {
        let plan = match scan(window) {
            Some((lanes, is_reversed)) if may_reorder || !is_reversed => {
                CodeRoute::Scan { lanes, is_reversed, may_cut: may_reorder }
            }
            _ => {
                let points = window.iter().map(|dim| dim.size).product();
                CodeRoute::Windows { windows: Windows::new(window)?, points }
            }
        };
        Some(FoldWindow { sizes, plan })
    }

    /// Folds `inits` and the elements of `from`.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(
        &self,
        code: &FoldCode<'_>,
        from: &[&[u8]],
        inits: &[&[u8]],
        to: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) {
        let to = Disjoint::all(to);
        let fold = Fold { code, sizes: &self.sizes, from, inits, to: &to };
        match &self.plan {
            CodeRoute::Windows { windows, points } => {
                threads.for_ranges(windows.rows(), windows.rows_per_task(*points), &|rows| {
                    fold.windows(windows, rows);
                });
            }
            &CodeRoute::Scan { lanes, is_reversed, may_cut } => {
                let lines = lanes.outer * lanes.inner;
                if lines * lanes.count == 0 {
                    return;
                }
                let segments = match may_cut && lines < MANY_LANES {
                    true => (SEGMENTS / lines).min(lanes.count / SEGMENT).max(1),
                    false => 1,
                };
                let len = lanes.count.div_ceil(segments);
                let scan = CutScan { lanes, is_reversed, len, segments: lanes.count.div_ceil(len) };
                fold.scan(&scan, threads);
            }
        }
    }
}

/// A cumulative fold whose lanes are cut into segments. Elements of a lane are counted in the order
/// in which they are folded.
struct CutScan {
    lanes: Lanes,
    is_reversed: bool,
    /// Elements of a segment; the last of a lane may have fewer.
    len: usize,
    /// Segments of a lane.
    segments: usize,
}

impl CutScan {
    /// All segments.
    fn count(&self) -> usize {
        self.lanes.outer * self.lanes.inner * self.segments
    }

    /// The place of an element of a segment; nowhere if the segment is shorter.
    fn place(&self, segment: usize, i: usize) -> usize {
        let Lanes { count, inner, .. } = self.lanes;
        let (lane, i) = (segment / self.segments, segment % self.segments * self.len + i);
        if i >= count {
            return NOWHERE;
        }
        let i = if self.is_reversed { count - 1 - i } else { i };
        (lane / inner * count + i) * inner + lane % inner
    }
}

/// What is folded, and where it goes.
struct Fold<'a> {
    code: &'a FoldCode<'a>,
    sizes: &'a [usize],
    from: &'a [&'a [u8]],
    inits: &'a [&'a [u8]],
    to: &'a [Disjoint<'a, u8>],
}

impl Fold<'_> {
    /// Folds at the positions in these rows.
    fn windows(&self, windows: &Windows, rows: Range<usize>) {
        with_rows(self.sizes, |state| {
            let mut lookout = Lookout::default();
            Group::each(windows, rows, |group| self.group(group, state, &mut lookout));
        });
    }

    /// Folds at the positions of a group.
    fn group(&self, group: &Group, state: &mut Rows<'_>, lookout: &mut Lookout) {
        let count = group.len();
        state.start(self.inits, count);
        let mut places = [NOWHERE; PAIRS];
        let places = &mut places[..count];
        for i in 0..group.longest() {
            if !lookout.goes_on(PAIRS) {
                return;
            }
            group.elements(i, places);
            state.read(self.from, places);
            state.fold(self.code, count, false);
            state.keep(places);
        }
        group.positions(places);
        self.write(places, state);
    }

    /// Cumulative folds: of each segment, then of segments, then of what is folded before a segment and
    /// its own. Initial values come first: backwards, they are folded with what all others give.
    fn scan(&self, scan: &CutScan, threads: Threads<'_>) {
        let is_cut = scan.segments > 1;
        let begins_with_elements = is_cut || scan.is_reversed;
        threads.for_ranges(scan.count(), PAIRS, &|segments| {
            with_rows(self.sizes, |state| {
                let mut places = [NOWHERE; PAIRS];
                let places = &mut places[..segments.len()];
                state.start(self.inits, places.len());
                for i in 0..scan.len {
                    let all = places.iter_mut().zip(segments.clone());
                    all.for_each(|(place, segment)| *place = scan.place(segment, i));
                    state.read(self.from, places);
                    match begins_with_elements && i == 0 {
                        true => state.begin(),
                        false => state.fold(self.code, places.len(), scan.is_reversed),
                    }
                    self.write(places, state);
                }
            });
        });
        if is_cut {
            self.join(scan, threads);
        }
        if scan.is_reversed {
            let Lanes { outer, count, inner } = scan.lanes;
            threads.for_ranges(outer * count * inner, 16 * PAIRS, &|elements| {
                with_rows(self.sizes, |state| self.begin_with_inits(elements, state));
            });
        }
    }

    /// Folds what comes before each segment with what its elements have become.
    fn join(&self, scan: &CutScan, threads: Threads<'_>) {
        let bytes: usize = self.sizes.iter().map(|size| scan.count() * size + 64).sum();
        scratch::with(bytes, |memory: &mut [u8]| {
            let mut memory = Scratch::new(memory);
            let before = |size: &usize| memory.take::<u8>(scan.count() * size);
            let mut before: PerArray<&mut [u8]> = self.sizes.iter().map(before).collect();
            self.before(scan, &mut before);
            let before: PerArray<&[u8]> = before.iter().map(|before| &**before).collect();
            threads.for_ranges(scan.count(), 1, &|segments| {
                let comes_first = |segment: &usize| segment.is_multiple_of(scan.segments);
                for segment in segments.filter(|at| !(scan.is_reversed && comes_first(at))) {
                    with_rows(self.sizes, |state| self.complete(scan, segment, &before, state));
                }
            });
        });
    }

    /// What is folded before each segment: initial values, unless it goes backwards, and then other
    /// segments; of nothing, anything.
    fn before(&self, scan: &CutScan, before: &mut [&mut [u8]]) {
        let results: PerArray<&[u8]> = self
            .to
            .iter()
            .zip(self.sizes)
            // SAFETY: no task runs that writes results.
            .map(|(to, size)| &*unsafe {
                to.part(0, scan.lanes.outer * scan.lanes.count * scan.lanes.inner * size)
            })
            .collect();
        let lines = scan.count() / scan.segments;
        let to = Disjoint::all(before);
        let carried = Fold { to: &to, ..*self };
        with_rows(self.sizes, |state| {
            let mut places = [NOWHERE; PAIRS];
            // Fewer lanes than this are cut.
            let places = &mut places[..lines];
            state.start(self.inits, lines);
            for segment in 0..scan.segments {
                let of = |line: usize| line * scan.segments + segment;
                places.iter_mut().zip(0..).for_each(|(place, line)| *place = of(line));
                carried.write(places, state);
                let last = |line: usize| scan.place(of(line), scan.len - 1);
                places.iter_mut().zip(0..).for_each(|(place, line)| *place = last(line));
                if places.contains(&NOWHERE) {
                    break; // The last segment, behind which there is none.
                }
                state.read(&results, places);
                match scan.is_reversed && segment == 0 {
                    true => state.begin(),
                    false => state.fold(self.code, lines, scan.is_reversed),
                }
            }
        });
    }

    /// Folds initial values with what these elements have become.
    fn begin_with_inits(&self, elements: Range<usize>, state: &mut Rows<'_>) {
        let mut places = [NOWHERE; PAIRS];
        for first in elements.clone().step_by(PAIRS) {
            let count = PAIRS.min(elements.end - first);
            let places = &mut places[..count];
            places.iter_mut().zip(first..).for_each(|(place, at)| *place = at);
            state.start(self.inits, count);
            self.read_results(places, state);
            state.fold(self.code, count, false);
            self.write(places, state);
        }
    }

    /// Reads what elements have become, each of them given to one task.
    fn read_results(&self, places: &[usize], state: &mut Rows<'_>) {
        for ((to, row), &size) in self.to.iter().zip(&mut state.elements).zip(self.sizes) {
            with_size!(size, T => for (element, &place) in cast_mut::<T>(row).iter_mut().zip(places) {
                if place != NOWHERE {
                    // SAFETY: no two tasks are given one place.
                    *element = cast::<T>(unsafe { to.part(place * size, size) })[0];
                }
            });
        }
    }

    /// Folds what comes before a segment with what its elements have become.
    fn complete(&self, scan: &CutScan, segment: usize, before: &[&[u8]], state: &mut Rows<'_>) {
        let mut places = [NOWHERE; PAIRS];
        for first in (0..scan.len).step_by(PAIRS) {
            let count = PAIRS.min(scan.len - first);
            let places = &mut places[..count];
            places.fill(segment);
            state.read(before, places);
            state.begin();
            places.iter_mut().zip(first..).for_each(|(place, i)| *place = scan.place(segment, i));
            // Each element is in one segment, and each segment in one task.
            self.read_results(places, state);
            state.fold(self.code, count, scan.is_reversed);
            self.write(places, state);
        }
    }

    /// Writes accumulators; each place is given to one task.
    fn write(&self, places: &[usize], state: &Rows<'_>) {
        for ((to, row), &size) in self.to.iter().zip(&state.accumulators).zip(self.sizes) {
            with_size!(size, T => for (&value, &place) in cast::<T>(row).iter().zip(places) {
                if place != NOWHERE {
                    // SAFETY: no two positions have a place in common, nor are two tasks given one.
                    cast_mut::<T>(unsafe { to.part(place * size, size) })[0] = value;
                }
            });
        }
    }
}
