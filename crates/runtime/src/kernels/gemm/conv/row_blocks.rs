//! Rows of the result that are computed together, where windows have a few rows: of each row of the input that several
//! of them meet, vectors are loaded once for all of them.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::finish::FinishRows;
use super::{Convolution, Spatial};
use crate::Threads;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::even_chunks;
use crate::kernels::gemm::simd::Lanes;
use crate::kernels::gemm::strips::within;

/// Rows of the result whose sums are computed together: enough to hide the latency of additions.
pub(super) const ROWS: usize = 7;
/// The same, for windows of three rows that move by one, where there are registers for so many sums: of a row that is
/// loaded, more of them meet three.
pub(super) const MANY_ROWS: usize = 14;
/// Rows of the result together if there are fewer.
pub(super) const FEW_ROWS: usize = 2;
/// Sizes and distances of this kind are so small that sums and products of two do not overflow.
const FAR: usize = 1 << 30;

/// Neighbouring rows of an output that are computed together.
pub(super) struct Block {
    /// The first of them.
    pub row: usize,
    /// Where the first row of the input that they meet would be in an image.
    pub first: isize,
    /// Which of those that they meet are there, a bit for each.
    pub there: u32,
}

impl Block {
    /// The places of rows that are there.
    pub(super) fn places(&self) -> Range<usize> {
        // (They are neighbours.)
        let start = self.there.trailing_zeros().min(u32::BITS - 1) as usize;
        start..start + self.there.count_ones() as usize
    }
}

/// The points of a window at a position of a dimension.
pub(super) struct Points {
    /// Which of them the input has.
    pub points: Range<usize>,
    /// The place in the input of the first of these.
    pub first: isize,
}

impl Spatial {
    /// The places from the first to the last point of a window.
    pub(super) fn reach(&self) -> usize {
        (self.kernel - 1).saturating_mul(self.rhs_dilation).saturating_add(1)
    }

    /// The points of the window at a position, if this dimension [is near](Spatial::is_near).
    pub(super) fn points_at(&self, position: usize) -> Points {
        let first = (position * self.stride) as isize - self.pad_low as isize;
        let dilation = self.rhs_dilation.max(1) as isize;
        // The first point that is not before the input, and the first beyond it.
        let until = |end: isize| ((end - first).max(0) + dilation - 1) / dilation;
        let ends = [0, self.input as isize];
        let [start, end] = ends.map(|place| (until(place) as usize).min(self.kernel));
        Points { points: start..end, first: first + start as isize * dilation }
    }

    /// The places in the input from the first to the last that the windows at these positions meet, of which there is one
    /// at least.
    pub(super) fn met(&self, positions: Range<usize>) -> Range<usize> {
        let inside =
            |place: usize| place.saturating_add_signed(-self.pad_low as isize).min(self.input);
        let end = (positions.end - 1) * self.stride + self.reach();
        inside(positions.start * self.stride)..inside(end)
    }

    /// Whether this dimension has no holes, and numbers so small that they can be multiplied.
    pub(super) fn is_near(&self) -> bool {
        let sizes = [self.input, self.output, self.kernel, self.rhs_dilation];
        let has_holes = self.lhs_dilation > 1 && self.input > 1;
        !has_holes
            && sizes.iter().all(|&size| size < FAR)
            && self.pad_low.unsigned_abs() < FAR as u64
    }

    /// Whether these are rows for [`each_kind!`], some of which can be computed together.
    pub(super) fn are_rows_of_windows(&self) -> bool {
        if self.rhs_dilation != 1
            || self.output < FEW_ROWS
            || !matches!((self.kernel, self.stride), (3 | 5 | 7, 1 | 2) | (9, 1))
        {
            return false;
        }
        // Each window meets a row of the input.
        let last = ((self.output - 1) * self.stride) as i64;
        self.pad_low < self.kernel as i64 && last - self.pad_low < self.input as i64
    }

    /// The blocks of `count` rows that some rows of the result are. The last rows may be in two.
    pub(super) fn row_blocks(&self, rows: Range<usize>, count: usize) -> Vec<Block> {
        let met = (count - 1) * self.stride + self.kernel;
        let block = |row: usize| {
            let first = (row * self.stride) as isize - self.pad_low as isize;
            let there = within(first, self.input, met);
            let there = (1 << there.end) - (1 << there.start);
            Block { row, first: first.wrapping_mul(self.lhs as isize), there }
        };
        let firsts = rows.clone().step_by(count).map(|row| row.min(rows.end - count));
        firsts.map(block).collect()
    }

    /// How many of so many rows of the result are computed together.
    #[inline(always)]
    pub(super) fn rows_at_once<S: Lanes>(&self, rows: usize) -> usize {
        // Sums and weights are in registers, of which there are 32 if they are so long.
        let are_many = size_of::<S::Vec>() >= 64 && rows.div_ceil(ROWS).is_multiple_of(2);
        match (rows, self.kernel, self.stride) {
            (MANY_ROWS.., 3, 1) if are_many => MANY_ROWS,
            (ROWS.., ..) => ROWS,
            _ => FEW_ROWS,
        }
    }
}

/// Rows that a strip may have whatever work they are: of fewer than five blocks, one that is not whole shows.
const SOME_ROWS: usize = 5 * ROWS;
/// Strips that are tried besides the fewest: with more there is no other share of a thread, but more to try in each run.
const MOST_MORE: usize = 16;
/// The time of two blocks of rows that are computed as one of [`MANY_ROWS`], in that of one of [`ROWS`].
const OF_TWO: f64 = 1.64;

impl Spatial {
    /// The rows of the result cut into strips: of no more than `most` rows, or [`SOME_ROWS`] if these are more, and of a block
    /// at least; as many as let `threads` be done first, if a strip is `beside` tasks. (A strip of 11 rows takes as long as
    /// one of 14, and rows that are no block are computed by twos.)
    pub(super) fn strips(&self, most: usize, beside: usize, threads: usize) -> Vec<Range<usize>> {
        let all = self.output;
        let rows_of = |count: usize| all.div_ceil(count.max(1)).max(1);
        let has_many = (self.kernel, self.stride) == (3, 1);
        let time = |count: usize| {
            let blocks = rows_of(count).div_ceil(ROWS);
            let strip = match has_many && blocks.is_multiple_of(2) {
                true => blocks as f64 / 2.0 * OF_TWO,
                false => blocks as f64,
            };
            count.saturating_mul(beside).div_ceil(threads) as f64 * strip
        };
        let are_blocks = |&count: &usize| {
            let last = all.saturating_sub((count - 1) * rows_of(count));
            count == 1 || last >= ROWS
        };
        let least = all.div_ceil(most.max(SOME_ROWS)).max(1);
        let most = (all / ROWS).clamp(least, least.saturating_add(MOST_MORE));
        let counts = (least..=most).filter(are_blocks);
        let count = counts.min_by(|&a, &b| time(a).total_cmp(&time(b))).unwrap_or(least);
        even_chunks(all, rows_of(count)).collect()
    }
}

/// What computes a part of the channels in a strip of the rows of an image.
type ComputePart<'a> = &'a (dyn Fn(usize, &Range<usize>, &Range<usize>) + Sync);

impl Convolution {
    /// Computes, with `compute`, each of the `parts` of the channels of the result in each strip of the rows of each image,
    /// and finishes strips all of whose channels are complete.
    ///
    /// # Safety
    /// `compute` writes these elements of the result and no other; channels are last, and nobody else uses what is
    /// handed over to be finished.
    pub(super) unsafe fn each_part<A>(
        &self,
        [rows, columns]: [Spatial; 2],
        (strips, parts): (&[Range<usize>], &[Range<usize>]),
        finish: Option<FinishRows<'_, A>>,
        threads: Threads<'_>,
        compute: ComputePart<'_>,
    ) {
        let count = parts.last().map_or(0, |part| part.end);
        // Of each strip of an image, the channels that are complete.
        let complete: Vec<_> =
            (0..self.batch.size * strips.len()).map(|_| AtomicUsize::new(0)).collect();
        threads.for_each(complete.len() * parts.len(), &|task| {
            let (task, part) = (task / parts.len(), &parts[task % parts.len()]);
            let (image, strip) = (task / strips.len(), &strips[task % strips.len()]);
            compute(image, strip, part);
            let Some(finish) = finish else { return };
            let before = complete[task].fetch_add(part.len(), Ordering::AcqRel);
            if before + part.len() == count {
                let start = image * self.batch.out + strip.start * rows.out;
                let positions = Axis::new([(strip.len(), rows.out), (columns.output, columns.out)]);
                // SAFETY: the caller's promise; all channels of the strip have been computed, by this thread or by
                // others before they counted them.
                unsafe { finish.rows(start, &positions, count) };
            }
        });
    }
}

/// Calls a method with the rows of windows and by how many rows they move as constants.
macro_rules! each_kind {
    ($rows:expr, $this:ident.$method:ident::<$simd:ident>($($arg:expr),*)) => {
        match ($rows.kernel, $rows.stride) {
            (3, 1) => $this.$method::<$simd, 3, 1>($($arg),*),
            (3, 2) => $this.$method::<$simd, 3, 2>($($arg),*),
            (5, 1) => $this.$method::<$simd, 5, 1>($($arg),*),
            (5, 2) => $this.$method::<$simd, 5, 2>($($arg),*),
            (7, 1) => $this.$method::<$simd, 7, 1>($($arg),*),
            (7, 2) => $this.$method::<$simd, 7, 2>($($arg),*),
            (9, 1) => $this.$method::<$simd, 9, 1>($($arg),*),
            _ => unreachable!("checked when the route was chosen"),
        }
    };
}
pub(super) use each_kind;

/// Calls a method with how many rows are computed together, and the constants of [`each_kind!`].
macro_rules! each_count {
    ($count:expr, $this:ident.$method:ident::<$simd:ident, $window:ident, $stride:ident>($($arg:expr),*)) => {
        match $count {
            14 => $this.$method::<$simd, 14, $window, $stride>($($arg),*),
            7 => $this.$method::<$simd, 7, $window, $stride>($($arg),*),
            _ => $this.$method::<$simd, 2, $window, $stride>($($arg),*),
        }
    };
}
pub(super) use each_count;

const _: () = assert!(MANY_ROWS == 14 && ROWS == 7 && FEW_ROWS == 2);

/// Calls `meet` with the place of each row that is `there`, of those that `COUNT` windows of `WINDOW` rows meet which move
/// by `STRIDE`.
#[inline(always)]
pub(super) fn each_place<const COUNT: usize, const WINDOW: usize, const STRIDE: usize>(
    there: u32,
    mut meet: impl FnMut(usize),
) {
    // (Written out, or sums would be in memory: the compiler does not unroll loops of so many instructions.)
    macro_rules! each {
        ($($place:literal)*) => { $(
            let met = (COUNT - 1) * STRIDE + WINDOW;
            // In between, all rows are there.
            let is_edge = $place < WINDOW - 1 || $place + WINDOW > met;
            if $place < met && (!is_edge || there & 1 << $place != 0) {
                meet($place);
            }
        )* };
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18);
}

/// Adds what windows that move by `STRIDE` rows make of a row that the first of them has at `place`.
///
/// # Safety
/// The features are there.
#[inline(always)]
pub(super) unsafe fn meet<
    S: Lanes,
    const COUNT: usize,
    const WINDOW: usize,
    const STRIDE: usize,
>(
    place: usize,
    words: S::Words,
    weights: &[S::Words; WINDOW],
    sums: &mut [S::Vec; COUNT],
) {
    for (k, &weight) in weights.iter().enumerate() {
        if place >= k && (place - k).is_multiple_of(STRIDE) && (place - k) / STRIDE < COUNT {
            let sum = &mut sums[(place - k) / STRIDE];
            // SAFETY: the caller's promise.
            *sum = unsafe { S::mul_add(words, weight, *sum) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::POINT;
    use super::*;

    #[test]
    fn strips_are_all_rows_and_hold_blocks() {
        for output in (0..70).chain([112, 113, 1000, 1 << 20]) {
            for (kernel, most, beside, threads) in
                [(3, 1, 1, 1), (9, 1, 1, 2), (3, 40, 3, 4), (7, usize::MAX, 1, 16), (5, 9, 0, 3)]
            {
                let rows = Spatial { output, kernel, ..POINT };
                let strips = rows.strips(most, beside, threads);
                let all: Vec<usize> = strips.iter().cloned().flatten().collect();
                assert_eq!(all, (0..output).collect::<Vec<_>>(), "{output} {kernel}");
                let are_blocks = strips.iter().all(|strip| strip.len() >= ROWS);
                assert!(strips.len() <= 1 || are_blocks, "{strips:?}");
            }
        }
    }

    #[test]
    fn threads_share_strips_evenly() {
        let count = |output, kernel, beside, threads| {
            let rows = Spatial { output, kernel, ..POINT };
            rows.strips(1, beside, threads).len()
        };
        // Five blocks of seven rows, or three for each of two threads.
        assert_eq!([count(32, 9, 1, 1), count(32, 9, 1, 2)], [1, 2]);
        // Where there are images enough, none of them is cut.
        assert_eq!(count(32, 9, 8, 2), 1);
        // Blocks of fourteen rows stay together.
        assert_eq!([count(56, 3, 1, 1), count(56, 3, 1, 2)], [2, 2]);
    }
}
