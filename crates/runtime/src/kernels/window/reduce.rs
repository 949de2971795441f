//! The kernel of `reduce-window` with a known fold.

use std::ops::Range;

use super::super::bytes::{cast, cast_mut, element_count};
use super::super::disjoint::Disjoint;
use super::super::gemm::window_loops;
use super::super::isa::Isa;
use super::super::number::{Fold, FoldOp, Folding, Number, NumberType, with_fold, with_folding};
use super::super::sort::Lanes;
use super::rows::RowWindows;
use super::{Positions, Scan, WindowDim, Windows, are_possible, split_lanes};
use crate::Threads;
use crate::bounds::{self, Lookout};

/// Folds the elements under each position of a window, and an initial value once.
#[derive(Clone, Debug)]
pub struct ReduceWindow {
    plan: ReduceRoute,
    /// How vectors fold the windows, if they are few rows and columns of `f32`, and there are instructions for it.
    rows: Option<RowWindows>,
    ty: NumberType,
    fold: Fold,
}

#[derive(Clone, Debug)]
enum ReduceRoute {
    /// Each position folds what the one before did, and one more.
    Scan(Scan),
    /// Neighbours in memory are folded side by side.
    Lanes { windows: Windows, points: usize },
    /// Neighbouring positions are folded side by side.
    Line { outer: Windows, line: Line, points: usize },
}

/// The last dimension of a window, where it is the last of the array, or nearly.
#[derive(Clone, Copy, Debug)]
struct Line {
    dim: WindowDim,
    /// How many neighbours share a position.
    lanes: usize,
}

/// With this many neighbours to fold side by side, positions need not be.
const ENOUGH_LANES: usize = 16;
/// Neighbouring lanes that are folded together; of those beyond a multiple of that, [`VECTOR`] are,
/// and the last ones by themselves.
const WIDTH: usize = 64;
const VECTOR: usize = 16;
/// Elements under a window that are folded at once.
const PLACES: usize = 4;

impl ReduceWindow {
    /// A plan for these dimensions. `None` if there is none but the general way: windows of very
    /// many points (unless they are those of a cumulative fold), or very large dilations.
    pub fn new(window: &[WindowDim], ty: NumberType, fold: Fold) -> Option<Self> {
        let plan = match scan(window) {
            Some((lanes, is_reversed)) => ReduceRoute::Scan(Scan { lanes, ty, fold, is_reversed }),
            None => ReduceRoute::new(window)?,
        };
        let is_vectors = ty == NumberType::F32 && fold != Fold::Mul;
        let rows = if is_vectors { RowWindows::new(window) } else { None };
        Some(ReduceWindow { plan, rows, ty, fold })
    }

    /// Folds `init` and the elements of `from`. All are bytes of elements of the type.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(&self, from: &[u8], init: &[u8], to: &mut [u8], threads: Threads<'_>) {
        self.run_on(Isa::best(), from, init, to, threads);
    }

    pub(super) fn run_on(
        &self,
        isa: Isa,
        from: &[u8],
        init: &[u8],
        to: &mut [u8],
        threads: Threads<'_>,
    ) {
        if let ReduceRoute::Scan(scan) = &self.plan {
            return scan.run(from, init, to, threads);
        }
        if let (Some(rows), Some(loops)) = (&self.rows, window_loops(isa)) {
            return rows.run(loops, self.fold, cast(from), cast(init)[0], cast_mut(to), threads);
        }
        with_folding!(self.ty, self.fold, folding => {
            self.plan.run(isa, folding, cast(from), cast(init)[0], cast_mut(to), threads);
        });
    }
}

/// If this is a cumulative fold, the lanes that it goes along, and whether it does so backwards.
pub(super) fn scan(window: &[WindowDim]) -> Option<(Lanes, bool)> {
    let d = window.iter().position(|dim| !dim.is_trivial())?;
    let dim = &window[d];
    element_count(&window.iter().map(|dim| dim.base).collect::<Vec<_>>())?;
    let others = window.iter().skip(d + 1).all(WindowDim::is_trivial);
    let is_plain = dim.stride == 1 && dim.window_dilation == 1 && dim.base_dilation == 1;
    let covers_all = dim.size == dim.base && dim.positions == dim.base;
    let is_reversed = match usize::try_from(dim.pad_low).ok()? {
        0 => true,
        low if low + 1 == dim.base => false,
        _ => return None,
    };
    let product = |dims: &[WindowDim]| dims.iter().map(|dim| dim.base).product();
    let (outer, inner) = (product(&window[..d]), product(&window[d + 1..]));
    let lanes = Lanes { outer, count: dim.base, inner };
    (others && is_plain && covers_all).then_some((lanes, is_reversed))
}

impl ReduceRoute {
    fn new(window: &[WindowDim]) -> Option<Self> {
        let (windowed, lanes) = split_lanes(window);
        // (Of those that are too many there is no plan.)
        let points = window.iter().fold(1, |points: usize, dim| points.saturating_mul(dim.size));
        if let Some((&dim, outer)) = windowed.split_last()
            && (1..ENOUGH_LANES).contains(&lanes)
            && dim.base_dilation == 1
            && window.iter().all(|dim| dim.positions > 0)
            && are_possible(window, lanes)
        {
            // The last dimension is left to the line, for which its base is all one element.
            let outer = Windows::of_elements(outer, dim.base.checked_mul(lanes)?)?;
            return Some(ReduceRoute::Line { outer, line: Line { dim, lanes }, points });
        }
        Some(ReduceRoute::Lanes { windows: Windows::new(window)?, points })
    }

    fn run<G: Folding>(
        &self,
        isa: Isa,
        folding: G,
        from: &[G::Element],
        init: G::Element,
        to: &mut [G::Element],
        threads: Threads<'_>,
    ) {
        let (to, init) = (Disjoint::new(to), folding.widen(init));
        match self {
            ReduceRoute::Scan(_) => {} // Has another way.
            ReduceRoute::Lanes { windows, points } => {
                let lanes = windows.lanes;
                threads.for_ranges(windows.rows(), windows.rows_per_task(*points), &|rows| {
                    let mut lookout = Lookout::default();
                    windows.each(rows, &mut |positions, places| {
                        let Positions { number, count, .. } = positions;
                        // SAFETY: each position belongs to one task.
                        let to = unsafe { to.part(number * lanes, count * lanes) };
                        isa.run(
                            #[inline(always)]
                            || {
                                for (i, start) in positions.starts().enumerate() {
                                    let to = &mut to[i * lanes..][..lanes];
                                    if !lookout.goes_on(places.len() * lanes) {
                                        return;
                                    }
                                    fold_lanes(folding, from, (start, places), init, to);
                                }
                            },
                        );
                    });
                });
            }
            ReduceRoute::Line { outer, line, points } => {
                let bytes = line.dim.size.saturating_mul(2 * size_of::<Reach>());
                let Some(_counted) = bounds::reserve(bytes) else { return };
                let (inner, reaches) = (line.inner(), line.reaches());
                let line = PlannedLine { line: *line, inner, reaches };
                threads.for_ranges(outer.rows(), outer.rows_per_task(*points), &|rows| {
                    line.run(isa, folding, (outer, rows), from, init, &to);
                });
            }
        }
    }
}

/// Folds neighbours side by side: elements at `places` from `start` on into each.
#[inline(always)]
fn fold_lanes<G: Folding>(
    folding: G,
    from: &[G::Element],
    (start, places): (usize, &[usize]),
    init: G::Wide,
    to: &mut [G::Element],
) {
    let (wide, rest) = to.as_chunks_mut::<WIDTH>();
    fold_chunks(folding, wide, from, (start, places), init);
    let start = start + wide.len() * WIDTH;
    let (narrow, rest) = rest.as_chunks_mut::<VECTOR>();
    fold_chunks(folding, narrow, from, (start, places), init);
    if rest.is_empty() {
        return;
    }
    let start = start + narrow.len() * VECTOR;
    let mut folded = [init; VECTOR];
    for place in places {
        let from = &from[start + place..][..rest.len()];
        for (folded, &v) in folded.iter_mut().zip(from) {
            *folded = G::Op::apply(*folded, folding.widen(v));
        }
    }
    for (to, folded) in rest.iter_mut().zip(folded) {
        *to = folding.narrow(folded);
    }
}

/// Folds chunks of neighbours, whose size the compiler knows.
#[inline(always)]
fn fold_chunks<G: Folding, const SIZE: usize>(
    folding: G,
    chunks: &mut [[G::Element; SIZE]],
    from: &[G::Element],
    (start, places): (usize, &[usize]),
    init: G::Wide,
) {
    for (start, to) in (start..).step_by(SIZE).zip(chunks) {
        let mut folded = [init; SIZE];
        let at = |place: &usize| -> &[_; SIZE] {
            from[start + place..].first_chunk().expect("a whole lane")
        };
        // Several places at a time: what is folded goes through memory each time.
        let (groups, rest) = places.as_chunks::<PLACES>();
        for group in groups {
            let from = group.each_ref().map(at);
            for (lane, folded) in folded.iter_mut().enumerate() {
                let fold =
                    |folded, from: &[_; SIZE]| G::Op::apply(folded, folding.widen(from[lane]));
                *folded = from.into_iter().fold(*folded, fold);
            }
        }
        for from in rest.iter().map(at) {
            for (folded, &v) in folded.iter_mut().zip(from) {
                *folded = G::Op::apply(*folded, folding.widen(v));
            }
        }
        for (to, folded) in to.iter_mut().zip(folded) {
            *to = folding.narrow(folded);
        }
    }
}

/// A line, and what its dimension says about positions.
struct PlannedLine {
    line: Line,
    inner: Range<usize>,
    reaches: Vec<Reach>,
}

/// Positions at which a point of the window lies over elements, and over which at the first.
struct Reach {
    element: usize,
    positions: Range<usize>,
}

impl PlannedLine {
    /// Folds neighbouring positions side by side, for each position of the outer windows in some
    /// rows.
    fn run<G: Folding>(
        &self,
        isa: Isa,
        folding: G,
        (outer, rows): (&Windows, Range<usize>),
        from: &[G::Element],
        init: G::Wide,
        to: &Disjoint<'_, G::Element>,
    ) {
        let Line { dim, lanes } = self.line;
        let (len, width) = (dim.positions * lanes, dim.base * lanes);
        let bytes = len.saturating_add(width).saturating_mul(size_of::<G::Wide>());
        let Some(_counted) = bounds::reserve(bytes) else { return };
        let (mut folded, mut line) = (vec![init; len], vec![init; width]);
        let mut lookout = Lookout::default();
        outer.each(rows, &mut |positions, places| {
            let Positions { number, count, .. } = positions;
            // SAFETY: each position of the outer windows belongs to one task.
            let to = unsafe { to.part(number * len, count * len) };
            isa.run(
                #[inline(always)]
                || {
                    for (i, start) in positions.starts().enumerate() {
                        if !lookout.goes_on(places.len() * width) {
                            return;
                        }
                        let to = &mut to[i * len..][..len];
                        folded.fill(init);
                        // First across lines, where neighbours in memory are folded; then along the
                        // line.
                        if let Some((first, others)) = places.split_first() {
                            let under = |place: &usize| &from[start + place..][..width];
                            for (line, &v) in line.iter_mut().zip(under(first)) {
                                *line = folding.widen(v);
                            }
                            for place in others {
                                for (line, &v) in line.iter_mut().zip(under(place)) {
                                    *line = G::Op::apply(*line, folding.widen(v));
                                }
                            }
                            self.along::<G::Wide, G::Op>(&line, &mut folded, &mut lookout);
                        }
                        for (to, &folded) in to.iter_mut().zip(&folded) {
                            *to = folding.narrow(folded);
                        }
                    }
                },
            );
        });
    }

    /// Folds the elements of a line under the window at each position.
    #[inline(always)]
    fn along<T: Number, F: FoldOp>(&self, line: &[T], folded: &mut [T], lookout: &mut Lookout) {
        let Line { dim, lanes } = self.line;
        for Reach { element, positions } in &self.reaches {
            let line = &line[element * lanes..];
            let folded = &mut folded[positions.start * lanes..positions.end * lanes];
            if !lookout.goes_on(positions.len() * lanes) {
                return;
            }
            fold_strided::<T, F>(folded, line, dim.stride, lanes);
        }
        if !self.inner.is_empty() {
            self.line.points::<T, F>(self.inner.clone(), line, folded, lookout);
        }
    }
}

impl Line {
    /// The element under a point of the window at position 0, or before the first of all.
    fn offset(&self, point: usize) -> i128 {
        point as i128 * self.dim.window_dilation as i128 - i128::from(self.dim.pad_low)
    }

    /// Positions at which every point of a window that moves by one element lies over one. (There may
    /// be others.)
    fn inner(&self) -> Range<usize> {
        let WindowDim { size, stride, base, positions, .. } = self.dim;
        let first = (-self.offset(0)).clamp(0, positions as i128);
        let end = base as i128 - self.offset(size.saturating_sub(1));
        let end = end.clamp(first, positions as i128);
        if stride == 1 { first as usize..end as usize } else { 0..0 }
    }

    /// Folds what lies under all points of the window at inner positions: some neighbours at a time,
    /// which stay in registers.
    #[inline(always)]
    fn points<T: Number, F: FoldOp>(
        &self,
        inner: Range<usize>,
        line: &[T],
        folded: &mut [T],
        lookout: &mut Lookout,
    ) {
        let lanes = self.lanes;
        let first = (inner.start as i128 + self.offset(0)) as usize * lanes;
        let start = |point| first + point * self.dim.window_dilation * lanes;
        let (blocks, rest) =
            folded[inner.start * lanes..inner.end * lanes].as_chunks_mut::<WIDTH>();
        let done = blocks.len() * WIDTH;
        for (block, at) in blocks.iter_mut().zip((0..).step_by(WIDTH)) {
            if !lookout.goes_on(self.dim.size * (WIDTH / 4)) {
                return;
            }
            let mut sums = *block;
            for point in 0..self.dim.size {
                let from: &[T; WIDTH] =
                    line[start(point) + at..].first_chunk().expect("an inner position");
                fold::<T, F>(&mut sums, from.iter());
            }
            *block = sums;
        }
        for point in 0..self.dim.size {
            fold::<T, F>(rest, line[start(point) + done..][..rest.len()].iter());
        }
    }

    /// What lies under each point of the window, but at inner positions.
    fn reaches(&self) -> Vec<Reach> {
        let inner = self.inner();
        let outside = [0..inner.start, inner.end..self.dim.positions];
        let outside = outside.into_iter().filter(|positions| !positions.is_empty());
        let outside: Vec<_> = outside.collect();
        let points = 0..if outside.is_empty() { 0 } else { self.dim.size };
        points
            .flat_map(|point| outside.iter().filter_map(move |within| self.reach(point, within)))
            .collect()
    }

    /// What lies under a point of the window at these positions, if anything does.
    fn reach(&self, point: usize, within: &Range<usize>) -> Option<Reach> {
        let WindowDim { stride, base, .. } = self.dim;
        // At position `p` it lies over element `p * stride + offset`.
        let offset = self.offset(point);
        let stride_wide = stride as i128;
        let first = (-offset).max(0) as u128;
        let first = first.div_ceil(stride as u128).min(within.end as u128) as usize;
        let first = first.max(within.start);
        let end = (base as i128 - 1 - offset).div_euclid(stride_wide) + 1;
        let end = end.clamp(first as i128, within.end as i128) as usize;
        let element = || (first as i128 * stride_wide + offset) as usize;
        (first < end).then(|| Reach { element: element(), positions: first..end })
    }
}

/// Folds every `stride`-th element of a line, each of `lanes` numbers, into the elements of `folded`.
#[inline(always)]
fn fold_strided<T: Number, F: FoldOp>(folded: &mut [T], line: &[T], stride: usize, lanes: usize) {
    match (stride, lanes) {
        (1, _) => fold::<T, F>(folded, line.iter()),
        (2, 1) => {
            // A stride that the compiler knows becomes vector code.
            let Some((last, folded)) = folded.split_last_mut() else { return };
            *last = F::apply(*last, line[2 * folded.len()]);
            fold::<T, F>(folded, line.as_chunks::<2>().0.iter().map(|[v, _]| v));
        }
        (_, 1) => fold::<T, F>(folded, line.iter().step_by(stride)),
        _ => {
            let elements = line.chunks(lanes).step_by(stride);
            for (folded, element) in folded.chunks_exact_mut(lanes).zip(elements) {
                fold::<T, F>(folded, element.iter());
            }
        }
    }
}

/// Folds values into others, one into each.
#[inline(always)]
fn fold<'a, T: Number, F: FoldOp>(folded: &mut [T], values: impl Iterator<Item = &'a T>) {
    for (folded, &v) in folded.iter_mut().zip(values) {
        *folded = F::apply(*folded, v);
    }
}
