//! Folds of windows of a few rows and columns, as pooling has them: vectors hold neighbouring positions of a row,
//! and read the array where it lies.
//!
//! Each row of the array is folded along itself once for several rows of the result, whose windows meet it. (Where
//! positions are several numbers, which windows do not move by one: [`channels`](super::channels).)
//! (docs/design/pooling.md has the measurements.)

use std::ops::Range;

use super::super::disjoint::Disjoint;
use super::super::gemm::cut::even_chunks;
use super::super::gemm::simd::{Lanes, WindowLoops};
use super::super::gemm::strips::{Column, Line, Strip, StripRun, within};
use super::super::number::Fold;
use super::{WindowDim, split_lanes};
use crate::Threads;

/// Rows of the array that a block of rows of the result meets, at most: what they are folded to stays in the
/// first-level cache.
const MOST_MET: usize = 48;
/// Rows of the array that are folded along themselves side by side: enough to hide the latency of folds.
const SIDE_BY_SIDE: usize = 4;
/// Rows of a block at most, ...
const MOST_ROWS: usize = 16;
/// ... or for each that windows have in common: these are folded for each block.
const ROWS_OF_REACH: usize = 3;
/// The most columns of a window: each is read for itself.
const MOST_COLUMNS: usize = 16;
/// Elements that a task folds at least, ...
const TASK_WORK: usize = 1 << 17;
/// ... and at most, if other threads have no use for a part of them: rows that tasks' windows have in common are folded for each.
const MOST_TASK_WORK: usize = 1 << 21;
/// Tasks for each thread: of fewer one may end late.
const TASKS_PER_THREAD: usize = 4;
/// Positions of a row that a task computes.
const SEGMENT: usize = 1 << 12;
/// Sizes and distances of this kind are so small that sums and products of two do not overflow.
const FAR: usize = 1 << 30;
/// The most points of a window where positions are several numbers: each is read for itself.
const MOST_POINTS: usize = 128;
/// The fewest numbers of a position that fill the longest vectors, ...
const FULL_LANES: usize = 16;
/// ... and half of them.
const ENOUGH_LANES: usize = 8;

/// Windows along the last two dimensions, each position of which may be several numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowWindows {
    /// How many arrays of two dimensions there are.
    planes: usize,
    pub rows: WindowDim,
    pub columns: WindowDim,
    /// Neighbours that share a position of the columns.
    pub lanes: usize,
    /// Rows of the result that are computed together.
    at_once: usize,
}

impl RowWindows {
    /// `None` unless windows are of this kind: along the last two dimensions, or the last, of a few rows and
    /// columns, moving by one or two columns; or along those before channels, of which there are enough to fill vectors.
    pub(super) fn new(window: &[WindowDim]) -> Option<Self> {
        let (windowed, mut lanes) = split_lanes(window);
        let (&(mut columns), outer) = windowed.split_last()?;
        let count = |dims: &[WindowDim]| {
            dims.iter().try_fold(1_usize, |count, dim| count.checked_mul(dim.base))
        };
        let (mut rows, mut planes, outer) = match outer.split_last() {
            Some((&rows, outer)) if !rows.is_trivial() => (rows, count(outer)?, outer),
            // All others are one, along which windows have one point.
            _ => {
                let base = count(outer)?;
                (WindowDim { base, positions: base, ..super::POINT }, 1, outer)
            }
        };
        let is_near = |dim: &WindowDim| {
            let sizes = [dim.base, dim.positions, dim.size, dim.stride, dim.window_dilation];
            dim.base_dilation == 1
                && sizes.iter().all(|size| (1..FAR).contains(size))
                && dim.pad_low.unsigned_abs() < FAR as u64
        };
        // Windows along one dimension, each position of which is enough numbers to fill vectors: a position is a row, and
        // what is before that dimension are planes.
        let is_alone = rows.is_trivial() && outer.iter().all(WindowDim::is_trivial);
        let is_within = |dim: &WindowDim| {
            let reach = dim.size.saturating_sub(1).saturating_mul(dim.window_dilation);
            reach < MOST_MET
        };
        if is_alone && columns.stride == 1 && lanes >= FULL_LANES && is_within(&columns) {
            planes = planes.checked_mul(rows.base)?;
            (rows, columns) =
                (columns, WindowDim { base: lanes, positions: lanes, ..super::POINT });
            lanes = 1;
        }
        let is_moved = matches!(columns.stride, 1 | 2) || lanes > 1;
        let are_few = columns.size <= MOST_COLUMNS && is_moved && (1..FAR).contains(&lanes);
        if !(outer.iter().all(WindowDim::is_trivial)
            && is_near(&rows)
            && is_near(&columns)
            && are_few)
        {
            return None;
        }
        if lanes > 1 && columns.stride == 1 {
            // Points are as many numbers further apart, and positions as many more.
            let far = |size: usize| size.checked_mul(lanes).filter(|&size| size < FAR);
            columns.base = far(columns.base)?;
            columns.positions = far(columns.positions)?;
            columns.window_dilation = far(columns.window_dilation)?;
            columns.pad_low = columns.pad_low.checked_mul(lanes as i64)?;
            lanes = 1;
            if !is_near(&columns) {
                return None;
            }
        }
        let points = rows.size.saturating_mul(columns.size);
        if lanes > 1 && (lanes < ENOUGH_LANES || points > MOST_POINTS) {
            return None;
        }
        let reach = (rows.size - 1) * rows.window_dilation;
        let more = MOST_MET.checked_sub(reach + 1)? / rows.stride;
        let at_once = (more + 1).min(MOST_ROWS.max(ROWS_OF_REACH * reach)).min(rows.positions);
        Some(RowWindows { planes, rows, columns, lanes, at_once })
    }

    /// Folds `init` and the elements of `from`.
    ///
    /// # Panics
    /// If an array is too short.
    pub(super) fn run(
        &self,
        loops: &dyn WindowLoops<f32, f32>,
        fold: Fold,
        from: &[f32],
        init: f32,
        to: &mut [f32],
        threads: Threads<'_>,
    ) {
        let RowWindows { planes, rows, columns, lanes, at_once } = *self;
        let from = &from[..planes * rows.base * columns.base * lanes];
        let to = &mut to[..planes * rows.positions * columns.positions * lanes];
        let row_len = columns.positions * lanes;
        let positions: Vec<_> = even_chunks(row_len, SEGMENT).collect();
        // Along each dimension by itself, or, with channels, along both together.
        let folds = match lanes {
            1 => columns.size + rows.size,
            _ => columns.size * rows.size,
        };
        let row_work = row_len.min(SEGMENT) * folds;
        let all = [planes, rows.positions, row_len.div_ceil(SEGMENT)];
        let all = all.into_iter().fold(row_work, usize::saturating_mul);
        let least = match threads.count() {
            1 => MOST_TASK_WORK,
            count => (all / (count * TASKS_PER_THREAD)).clamp(TASK_WORK, MOST_TASK_WORK),
        };
        // (Half of the rows that are folded together fold as fast.)
        let strip = (least / row_work).clamp(at_once.div_ceil(2), rows.positions);
        let strips: Vec<_> = even_chunks(rows.positions, strip).collect();
        let planes_together = least / row_work.saturating_mul(strip);
        let chunks: Vec<_> = even_chunks(planes, planes_together.max(1)).collect();
        let folds = RowFolds { windows: *self, fold, from, init, to: Disjoint::new(to) };
        threads.for_each(positions.len() * strips.len() * chunks.len(), &|task| {
            let (strip, columns) = (task / positions.len(), task % positions.len());
            let part = RowPart {
                planes: chunks[strip / strips.len()].clone(),
                rows: strips[strip % strips.len()].clone(),
                columns: positions[columns].clone(),
            };
            // SAFETY: the arrays have all planes, as just checked; each task has other positions.
            unsafe { loops.fold_rows(&folds, part) };
        });
    }
}

/// What a task computes: these columns of these rows of some planes of the result.
pub(in crate::kernels) struct RowPart {
    pub(super) planes: Range<usize>,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// What the tasks of a fold share.
pub(in crate::kernels) struct RowFolds<'a> {
    pub(super) windows: RowWindows,
    fold: Fold,
    /// The elements of all planes.
    pub(super) from: &'a [f32],
    pub(super) init: f32,
    pub(super) to: Disjoint<'a, f32>,
}

impl RowFolds<'_> {
    /// Folds the windows at some positions.
    ///
    /// # Safety
    /// The features are there, and so are the positions, which nothing else accesses in the result.
    #[inline(always)]
    pub(in crate::kernels) unsafe fn run<S: Lanes>(&self, part: RowPart) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.windows.lanes > 1 {
                return match self.fold {
                    Fold::Add => self.run_channels::<S, Add>(part),
                    Fold::Max => self.run_channels::<S, Max>(part),
                    Fold::Min => self.run_channels::<S, Min>(part),
                    _ => unreachable!("checked when there was a plan"),
                };
            }
            match (self.fold, self.windows.columns.stride) {
                (Fold::Add, 1) => self.run_part::<S, Add, 1>(part),
                (Fold::Add, 2) => self.run_part::<S, Add, 2>(part),
                (Fold::Max, 1) => self.run_part::<S, Max, 1>(part),
                (Fold::Max, 2) => self.run_part::<S, Max, 2>(part),
                (Fold::Min, 1) => self.run_part::<S, Min, 1>(part),
                (Fold::Min, 2) => self.run_part::<S, Min, 2>(part),
                _ => unreachable!("checked when there was a plan"),
            }
        }
    }

    /// The same.
    ///
    /// # Safety
    /// As for [`RowFolds::run`].
    #[inline(always)]
    unsafe fn run_part<S: Lanes, F: VectorFold, const STRIDE: usize>(&self, part: RowPart) {
        let RowWindows { rows, columns, at_once, .. } = self.windows;
        let (row_base, row_len) = (columns.base, columns.positions);
        let line = Line {
            input: columns.base,
            points: columns.size,
            pad_low: columns.pad_low,
            dilation: columns.window_dilation,
        };
        let strips = line.strip_runs::<S, STRIDE>(part.columns.clone());
        // SAFETY: the caller's promise; this is a number.
        let neutral = unsafe { S::splat(&F::NEUTRAL) };
        let init_is_number = !self.init.is_nan();
        // Blocks of as many rows each: the last rows may be computed twice.
        let blocks = part.rows.len().div_ceil(at_once);
        let count = part.rows.len().div_ceil(blocks.max(1));
        let reach = (rows.size - 1) * rows.window_dilation;
        let met = (count - 1) * rows.stride + reach + 1;
        // What rows of the array are folded to along themselves, for a vector of positions.
        let mut lines = [neutral; MOST_MET];
        for plane in part.planes {
            let from = self.from[plane * rows.base * row_base..].as_ptr();
            for row in part.rows.clone().step_by(count) {
                let row = row.min(part.rows.end - count);
                let first = (row * rows.stride) as isize - rows.pad_low as isize;
                let there = within(first, rows.base, met);
                // (Far beyond the array that is no address; no row is there then.)
                let from = from.wrapping_offset(first.wrapping_mul(row_base as isize));
                let place = (plane * rows.positions + row) * row_len;
                lines[..there.start].fill(neutral);
                lines[there.end..met].fill(neutral);
                let block = RowBlock { from, there, count, place };
                for StripRun { strip, count } in &strips {
                    for i in 0..*count {
                        let at = (strip, i * S::LANES);
                        // SAFETY: the caller's promise.
                        unsafe {
                            let are_numbers = init_is_number
                                && self.fold_block::<S, F, STRIDE, true>(&block, at, &mut lines);
                            if !are_numbers {
                                self.fold_block::<S, F, STRIDE, false>(&block, at, &mut lines);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Folds what a vector of positions meets in a block of rows: those of a strip, moved by `behind`. If `NUMBERS`, what
    /// is met is taken for numbers, and the result says whether it is.
    ///
    /// # Safety
    /// As for [`RowFolds::run`]. `lines` has what changes nothing for rows that are not there.
    #[inline(always)]
    unsafe fn fold_block<S: Lanes, F: VectorFold, const STRIDE: usize, const NUMBERS: bool>(
        &self,
        block: &RowBlock,
        (strip, behind): (&Strip<S::Mask, STRIDE>, usize),
        lines: &mut [S::Vec; MOST_MET],
    ) -> bool {
        let RowWindows { rows, columns, .. } = self.windows;
        let (row_base, row_len) = (columns.base, columns.positions);
        let reach = (rows.size - 1) * rows.window_dilation;
        // SAFETY: the caller's promise.
        let mut nan = unsafe { SeenNan::<S>::none() };
        let (many, few) = lines[block.there.clone()].as_chunks_mut::<SIDE_BY_SIDE>();
        let mut line_at = block.from.wrapping_add(block.there.start * row_base + behind * STRIDE);
        for lines in many {
            // SAFETY: the caller's promise; these rows are there.
            *lines =
                unsafe { along::<S, F, STRIDE, _, NUMBERS>(line_at, row_base, strip, &mut nan) };
            line_at = line_at.wrapping_add(SIDE_BY_SIDE * row_base);
        }
        for line in few {
            // SAFETY: the caller's promise; this row is there.
            [*line] =
                unsafe { along::<S, F, STRIDE, _, NUMBERS>(line_at, row_base, strip, &mut nan) };
            line_at = line_at.wrapping_add(row_base);
        }
        // SAFETY: the caller's promise; this is a number.
        let init = unsafe {
            if NUMBERS && nan.is_any() {
                return false;
            }
            S::splat(&self.init)
        };
        let lanes = strip.count;
        for i in 0..block.count {
            let under = &lines[i * rows.stride..][..reach + 1];
            let mut sum = init;
            // (A loop: what an iterator calls may be left a function of its own, without the instructions.)
            for line in under.chunks(rows.window_dilation) {
                // SAFETY: the caller's promise.
                sum = unsafe { F::of::<S, NUMBERS>(sum, line[0]) };
            }
            let place = block.place + i * row_len + strip.x + behind;
            // SAFETY: the caller's promise: nothing else accesses these positions, of which there are
            // as many as lanes.
            unsafe {
                let to = self.to.part(place, lanes).as_mut_ptr();
                match lanes == S::LANES {
                    true => S::store_all(to, sum, false),
                    false => S::store(to, strip.lanes, sum, false),
                }
            }
        }
        true
    }
}

/// Rows of the result that are computed together.
struct RowBlock {
    /// Where the first row of the array would be that their windows meet.
    from: *const f32,
    /// Which of the rows that they meet are there.
    there: Range<usize>,
    /// How many rows of the result they are.
    count: usize,
    /// Where the first of these is in the result.
    place: usize,
}

/// Folds what a vector of positions meets in each of `COUNT` rows of the array, `apart` elements apart. If `NUMBERS`, that
/// is taken for numbers, and looked at for others.
///
/// # Safety
/// The features are there, and the lanes that are there may be read in the rows, the first of which begins at `from`.
#[inline(always)]
unsafe fn along<
    S: Lanes,
    F: VectorFold,
    const STRIDE: usize,
    const COUNT: usize,
    const NUMBERS: bool,
>(
    from: *const f32,
    apart: usize,
    strip: &Strip<S::Mask, STRIDE>,
    nan: &mut SeenNan<S>,
) -> [S::Vec; COUNT] {
    // SAFETY: the caller's promise; this is a number.
    let neutral = unsafe { S::splat(&F::NEUTRAL) };
    let looks = NUMBERS && F::LOSES_NAN;
    let mut folded = [neutral; COUNT];
    for Column { offset, masks, are_two, .. } in &strip.columns {
        let mut from = from.wrapping_offset(*offset);
        for folded in &mut folded {
            // SAFETY: the caller's promise.
            unsafe {
                let low = S::load_or(from, masks[0], neutral);
                if STRIDE == 1 {
                    *folded = F::of::<S, NUMBERS>(*folded, low);
                    if looks {
                        nan.look_at(low);
                    }
                } else {
                    let high = from.wrapping_add(S::LANES);
                    let high = S::load_or(high, masks[STRIDE - 1], neutral);
                    *folded = F::of::<S, NUMBERS>(*folded, S::even(low, high));
                    if *are_two {
                        *folded = F::of::<S, NUMBERS>(*folded, S::odd(low, high));
                    }
                    if looks {
                        nan.look_at(low);
                        nan.look_at(high);
                    }
                }
            }
            from = from.wrapping_add(apart);
        }
        nan.look_at_last();
    }
    folded
}

/// Where vectors had NaN, which are looked at two at a time.
pub(super) struct SeenNan<S: Lanes> {
    lanes: S::Mask,
    /// A vector that was not looked at yet.
    before: Option<S::Vec>,
}

impl<S: Lanes> SeenNan<S> {
    /// None was seen.
    ///
    /// # Safety
    /// The features of `S` are there as long as this is used.
    #[inline(always)]
    pub(super) unsafe fn none() -> Self {
        SeenNan { lanes: S::mask(0), before: None }
    }

    #[inline(always)]
    pub(super) fn look_at(&mut self, words: S::Vec) {
        self.before = match self.before {
            None => Some(words),
            Some(before) => {
                // SAFETY: the promise of who made this.
                self.lanes = unsafe { S::see_nan(self.lanes, before, words) };
                None
            }
        };
    }

    /// Looks at the last vector if it had none to be looked at with. (How many there are is known where this is called, or
    /// it would be asked for each.)
    #[inline(always)]
    pub(super) fn look_at_last(&mut self) {
        if let Some(last) = self.before.take() {
            // SAFETY: the promise of who made this.
            self.lanes = unsafe { S::see_nan(self.lanes, last, last) };
        }
    }

    /// Whether any vector had one, of those that were looked at.
    #[inline(always)]
    pub(super) fn is_any(&self) -> bool {
        // SAFETY: the promise of who made this.
        unsafe { S::is_any(self.lanes) }
    }
}

/// A fold of vectors.
pub(super) trait VectorFold {
    /// What changes no number that it is folded with.
    const NEUTRAL: f32;
    /// Whether the fold of numbers is another, which may lose a NaN.
    const LOSES_NAN: bool;

    /// The folds of each two lanes, which are numbers if `NUMBERS`.
    ///
    /// # Safety
    /// The features are there.
    unsafe fn of<S: Lanes, const NUMBERS: bool>(a: S::Vec, b: S::Vec) -> S::Vec;
}

macro_rules! vector_folds {
    ($($name:ident $neutral:expr, $method:ident $($numbers:ident)?;)*) => { $(
        struct $name;

        impl VectorFold for $name {
            const NEUTRAL: f32 = $neutral;
            const LOSES_NAN: bool = {
                let numbers: &[&str] = &[$(stringify!($numbers))?];
                !numbers.is_empty()
            };

            #[inline(always)]
            unsafe fn of<S: Lanes, const NUMBERS: bool>(a: S::Vec, b: S::Vec) -> S::Vec {
                // SAFETY: the caller's promise.
                unsafe {
                    $(if NUMBERS {
                        return S::$numbers(a, b);
                    })?
                    S::$method(a, b)
                }
            }
        }
    )* };
}
vector_folds! {
    Add -0.0, add;
    Max f32::NEG_INFINITY, max max_of_numbers;
    Min f32::INFINITY, min min_of_numbers;
}
