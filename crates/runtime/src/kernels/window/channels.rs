//! Folds of windows of a few rows and columns whose positions are several numbers each, channels: vectors hold channels
//! of a position, and what its window has of them is read where it lies.
//!
//! The rows that windows of neighbouring rows have in common are read for each. To fold them along themselves once, as
//! [`rows`](super::rows) does, takes as many folds where windows of three rows move by two (nine), and memory for what
//! they are folded to.

use std::ops::Range;

use super::super::gemm::simd::Lanes;
use super::Covered;
use super::rows::{RowFolds, RowPart, SeenNan, VectorFold};

/// Vectors of channels, of one position or several, whose folds are computed side by side: enough to hide the latency of
/// folds.
const SIDE_BY_SIDE: usize = 4;

/// The points of windows that lie over the array.
struct Points {
    rows: usize,
    /// From a row to the next, in numbers.
    row_step: usize,
    columns: usize,
    /// From a column to the next, in numbers.
    column_step: usize,
}

/// Some channels of neighbouring positions whose windows lie over as many columns.
struct Run<'a> {
    /// The columns of each.
    covered: &'a [Covered],
    /// The first position.
    position: usize,
    channels: Range<usize>,
}

/// Vectors that are folded side by side.
struct Vectors<const COUNT: usize> {
    /// What the first point of each window has.
    from: [*const f32; COUNT],
    /// Where it goes, in numbers,
    to: [usize; COUNT],
    /// and how many of them.
    lanes: [usize; COUNT],
}

impl RowFolds<'_> {
    /// Folds the windows at some positions, each of several numbers.
    ///
    /// # Safety
    /// As for [`RowFolds::run`].
    #[inline(always)]
    pub(super) unsafe fn run_channels<S: Lanes, F: VectorFold>(&self, part: RowPart) {
        let (rows, columns, channels) =
            (self.windows.rows, self.windows.columns, self.windows.lanes);
        let (row_base, row_len) = (columns.base * channels, columns.positions * channels);
        let numbers = part.columns;
        let positions = numbers.start / channels..numbers.end.div_ceil(channels);
        let covered: Vec<Covered> = positions.clone().map(|x| columns.covered(x)).collect();
        let runs = runs(&covered, positions.start, channels, &numbers);
        for plane in part.planes {
            let plane_from = &self.from[plane * rows.base * row_base..];
            for row in part.rows.clone() {
                let met = rows.covered(row);
                let from = plane_from[met.first * row_base..].as_ptr();
                let to = (plane * rows.positions + row) * row_len;
                for run in &runs {
                    let points = Points {
                        rows: met.count,
                        row_step: rows.window_dilation * row_base,
                        columns: run.covered[0].count,
                        column_step: columns.window_dilation * channels,
                    };
                    // SAFETY: the caller's promise: nothing else accesses these positions, and their windows lie over
                    // these points.
                    unsafe { self.run_of::<S, F>(run, (from, to), &points) };
                }
            }
        }
    }

    /// Folds the windows of a run in a row, whose first numbers in the array and in the result these are.
    ///
    /// # Safety
    /// As for [`RowFolds::run`]; windows lie over these points.
    #[inline(always)]
    unsafe fn run_of<S: Lanes, F: VectorFold>(
        &self,
        run: &Run<'_>,
        (from, to): (*const f32, usize),
        points: &Points,
    ) {
        let channels = self.windows.lanes;
        let len = run.channels.len();
        let beside = run.channels.start..run.channels.start + len - len % (SIDE_BY_SIDE * S::LANES);
        for (i, covered) in run.covered.iter().enumerate() {
            for channel in beside.clone().step_by(SIDE_BY_SIDE * S::LANES) {
                let from = from.wrapping_add(covered.first * channels + channel);
                let to = to + (run.position + i) * channels + channel;
                let vectors = Vectors::beside(from, to, S::LANES);
                // SAFETY: the caller's promise.
                unsafe { self.fold::<S, F, SIDE_BY_SIDE, true>(&vectors, points) };
            }
        }
        // What is left of several positions goes side by side.
        let rest = beside.end..run.channels.end;
        let mut left = run.covered.len() * rest.len().div_ceil(S::LANES);
        // The next vector: of which position, and which of its channels.
        let (mut position, mut channel) = (0, rest.start);
        let mut next = || {
            let first = run.covered[position].first * channels + channel;
            let place = to + (run.position + position) * channels + channel;
            let lanes = S::LANES.min(rest.end - channel);
            channel += lanes;
            if channel == rest.end {
                (position, channel) = (position + 1, rest.start);
            }
            (from.wrapping_add(first), place, lanes)
        };
        // SAFETY: the caller's promise.
        unsafe {
            while left >= SIDE_BY_SIDE {
                self.fold::<S, F, SIDE_BY_SIDE, false>(&Vectors::of(&mut next), points);
                left -= SIDE_BY_SIDE;
            }
            while left > 0 {
                self.fold::<S, F, 1, false>(&Vectors::of(&mut next), points);
                left -= 1;
            }
        }
    }

    /// Folds what the windows of vectors meet. If `BESIDE`, they are neighbours of which all lanes count: one address is
    /// enough for them.
    ///
    /// # Safety
    /// As for [`RowFolds::run`]; the points may be read, and the vectors written.
    #[inline(always)]
    unsafe fn fold<S: Lanes, F: VectorFold, const COUNT: usize, const BESIDE: bool>(
        &self,
        vectors: &Vectors<COUNT>,
        points: &Points,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let is_done =
                !self.init.is_nan() && self.fold_as::<S, F, COUNT, true, BESIDE>(vectors, points);
            if !is_done {
                self.fold_as::<S, F, COUNT, false, BESIDE>(vectors, points);
            }
        }
    }

    /// The same. If `NUMBERS`, what is met is taken for numbers, and the result says whether it is.
    ///
    /// # Safety
    /// As for [`RowFolds::fold`].
    #[inline(always)]
    unsafe fn fold_as<
        S: Lanes,
        F: VectorFold,
        const COUNT: usize,
        const NUMBERS: bool,
        const BESIDE: bool,
    >(
        &self,
        vectors: &Vectors<COUNT>,
        points: &Points,
    ) -> bool {
        let masks = vectors.lanes.map(S::mask);
        // SAFETY: the caller's promise; these are numbers.
        let [init, neutral] = unsafe { [S::splat(&self.init), S::splat(&F::NEUTRAL)] };
        let mut sums = [init; COUNT];
        // SAFETY: the caller's promise.
        let mut nan = unsafe { SeenNan::<S>::none() };
        for row in 0..points.rows {
            let mut offset = row * points.row_step;
            for _ in 0..points.columns {
                let first = vectors.from[0].wrapping_add(offset);
                for (v, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: the caller's promise.
                    unsafe {
                        let met = match BESIDE {
                            true => S::load(first.wrapping_add(v * S::LANES)),
                            false => {
                                let from = vectors.from[v].wrapping_add(offset);
                                S::load_or(from, masks[v], neutral)
                            }
                        };
                        *sum = F::of::<S, NUMBERS>(*sum, met);
                        if NUMBERS && F::LOSES_NAN {
                            nan.look_at(met);
                        }
                    }
                }
                nan.look_at_last();
                offset += points.column_step;
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            if NUMBERS && nan.is_any() {
                return false;
            }
            for (v, sum) in sums.into_iter().enumerate() {
                let to = self.to.part(vectors.to[v], vectors.lanes[v]).as_mut_ptr();
                match BESIDE {
                    true => S::store_all(to, sum, false),
                    false => S::store(to, masks[v], sum, false),
                }
            }
        }
        true
    }
}

impl<const COUNT: usize> Vectors<COUNT> {
    /// The next of vectors: where what they fold begins, where it goes, and how many lanes of each count.
    #[inline(always)]
    fn of(next: &mut impl FnMut() -> (*const f32, usize, usize)) -> Self {
        let (mut from, mut to, mut lanes) = ([std::ptr::null(); COUNT], [0; COUNT], [0; COUNT]);
        for v in 0..COUNT {
            (from[v], to[v], lanes[v]) = next();
        }
        Vectors { from, to, lanes }
    }

    /// Neighbours, of which all lanes count.
    #[inline(always)]
    fn beside(from: *const f32, to: usize, lanes: usize) -> Self {
        Vectors {
            from: std::array::from_fn(|v| from.wrapping_add(v * lanes)),
            to: std::array::from_fn(|v| to + v * lanes),
            lanes: [lanes; COUNT],
        }
    }
}

/// The `numbers` of a row, of which each position has so many, in runs; `covered` begins with the `first` position.
fn runs<'a>(
    covered: &'a [Covered],
    first: usize,
    channels: usize,
    numbers: &Range<usize>,
) -> Vec<Run<'a>> {
    // Of the first and the last position, some channels may be another part's.
    let of = |i: usize| {
        let start = (first + i) * channels;
        numbers.start.max(start) - start..numbers.end.min(start + channels) - start
    };
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (i, next) in covered.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.channels == of(i) && run.covered[0].count == next.count => {
                run.covered = &covered[run.position - first..=i];
            }
            _ => runs.push(Run { covered: &covered[i..=i], position: first + i, channels: of(i) }),
        }
    }
    runs
}
