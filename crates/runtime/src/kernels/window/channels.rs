//! Folds of windows of a few rows and columns whose positions are several numbers each, channels: vectors hold channels
//! of a position, and what its window has of them is read where it lies.
//!
//! The rows that windows of neighbouring rows have in common are read for each. To fold them along themselves once, as
//! [`rows`](super::rows) does, takes as many folds where windows of three rows move by two (nine), and memory for what
//! they are folded to.

use super::super::gemm::simd::Lanes;
use super::Covered;
use super::rows::{RowFolds, RowPart, SeenNan, VectorFold};

/// Vectors of channels whose folds are computed side by side: enough to hide the latency of folds.
const SIDE_BY_SIDE: usize = 4;

/// The points of a window that lie over the array.
struct Points {
    rows: usize,
    /// From a row to the next, in numbers.
    row_step: usize,
    columns: usize,
    /// From a column to the next, in numbers.
    column_step: usize,
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
        for plane in part.planes {
            let plane_from = &self.from[plane * rows.base * row_base..];
            for row in part.rows.clone() {
                let met = rows.covered(row);
                let from = plane_from[met.first * row_base..].as_ptr();
                let to = (plane * rows.positions + row) * row_len;
                for (x, column) in positions.clone().zip(&covered) {
                    let points = Points {
                        rows: met.count,
                        row_step: rows.window_dilation * row_base,
                        columns: column.count,
                        column_step: columns.window_dilation * channels,
                    };
                    let start = x * channels;
                    let end = numbers.end.min(start + channels) - start;
                    let mut channel = numbers.start.max(start) - start;
                    while channel < end {
                        let from = from.wrapping_add(column.first * channels + channel);
                        let to = to + start + channel;
                        let is_many = channel + SIDE_BY_SIDE * S::LANES <= end;
                        let count = if is_many { SIDE_BY_SIDE * S::LANES } else { S::LANES };
                        let count = count.min(end - channel);
                        // SAFETY: the caller's promise: nothing else accesses these positions, and their windows lie over
                        // these points.
                        unsafe {
                            let to = self.to.part(to, count).as_mut_ptr();
                            match is_many {
                                true => {
                                    self.fold::<S, F, SIDE_BY_SIDE>(from, &points, to, S::LANES)
                                }
                                false => self.fold::<S, F, 1>(from, &points, to, count),
                            }
                        }
                        channel += count;
                    }
                }
            }
        }
    }

    /// Folds what neighbouring vectors meet, of the last of which so many lanes count.
    ///
    /// # Safety
    /// As for [`RowFolds::run`]; the points may be read from `from` on, and the vectors written.
    #[inline(always)]
    unsafe fn fold<S: Lanes, F: VectorFold, const COUNT: usize>(
        &self,
        from: *const f32,
        points: &Points,
        to: *mut f32,
        last_lanes: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let is_done = !self.init.is_nan()
                && self.fold_as::<S, F, COUNT, true>(from, points, to, last_lanes);
            if !is_done {
                self.fold_as::<S, F, COUNT, false>(from, points, to, last_lanes);
            }
        }
    }

    /// The same. If `NUMBERS`, what is met is taken for numbers, and the result says whether it is.
    ///
    /// # Safety
    /// As for [`RowFolds::fold`].
    #[inline(always)]
    unsafe fn fold_as<S: Lanes, F: VectorFold, const COUNT: usize, const NUMBERS: bool>(
        &self,
        from: *const f32,
        points: &Points,
        to: *mut f32,
        last_lanes: usize,
    ) -> bool {
        let (mask, is_whole) = (S::mask(last_lanes), last_lanes == S::LANES);
        // SAFETY: the caller's promise; these are numbers.
        let [init, neutral] = unsafe { [S::splat(&self.init), S::splat(&F::NEUTRAL)] };
        let mut sums = [init; COUNT];
        // SAFETY: the caller's promise.
        let mut nan = unsafe { SeenNan::<S>::none() };
        for row in 0..points.rows {
            let mut from = from.wrapping_add(row * points.row_step);
            for _ in 0..points.columns {
                for (v, sum) in sums.iter_mut().enumerate() {
                    let from = from.wrapping_add(v * S::LANES);
                    // SAFETY: the caller's promise.
                    unsafe {
                        let met = match v + 1 < COUNT || is_whole {
                            true => S::load(from),
                            false => S::load_or(from, mask, neutral),
                        };
                        *sum = F::of::<S, NUMBERS>(*sum, met);
                        if NUMBERS && F::LOSES_NAN {
                            nan.look_at(met);
                        }
                    }
                }
                nan.look_at_last();
                from = from.wrapping_add(points.column_step);
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            if NUMBERS && nan.is_any() {
                return false;
            }
            for (v, sum) in sums.into_iter().enumerate() {
                let to = to.wrapping_add(v * S::LANES);
                match v + 1 < COUNT || is_whole {
                    true => S::store_all(to, sum, false),
                    false => S::store(to, mask, sum, false),
                }
            }
        }
        true
    }
}
