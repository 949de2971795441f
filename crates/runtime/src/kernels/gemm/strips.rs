//! Vectors of neighbouring positions of windows along the last dimension of an array, which read the array
//! where it lies: lanes beyond its edges are left out by masks.

use std::ops::Range;

use smallvec::SmallVec;

use super::simd::Lanes;

/// Windows along the last dimension. All numbers are far less than the largest there are.
#[derive(Clone, Copy, Debug)]
pub(in crate::kernels) struct Line {
    /// Elements that there are.
    pub input: usize,
    /// Points of the window.
    pub points: usize,
    /// How far the first position reaches before the first element.
    pub pad_low: i64,
    /// From a point to the next.
    pub dilation: usize,
}

/// What a vector of positions that are `STRIDE` elements apart meets in a line.
pub(in crate::kernels) struct Strip<M, const STRIDE: usize> {
    /// The first position.
    pub x: usize,
    /// How many lanes are positions, and which.
    pub count: usize,
    pub lanes: M,
    /// What the points of their windows meet, those that meet anything.
    pub columns: SmallVec<[Column<M, STRIDE>; 7]>,
}

/// Vectors of which each is the next one of the same kind.
pub(in crate::kernels) struct StripRun<M, const STRIDE: usize> {
    /// The first.
    pub strip: Strip<M, STRIDE>,
    /// How many they are.
    pub count: usize,
}

/// What a point of windows meets, or two that are in the same vectors of the input.
pub(in crate::kernels) struct Column<M, const STRIDE: usize> {
    /// The point, the first if they are two.
    pub point: usize,
    /// Whether what the next point meets is every second element, too.
    pub are_two: bool,
    /// Where the first lane is in a line, were it there.
    pub offset: isize,
    /// The lanes that are there, of as many vectors as lanes lie elements apart.
    pub masks: [M; STRIDE],
}

impl Line {
    /// The vectors of some positions.
    #[inline(always)]
    pub(in crate::kernels) fn strips<S: Lanes, const STRIDE: usize>(
        self,
        positions: Range<usize>,
    ) -> impl Iterator<Item = Strip<S::Mask, STRIDE>> {
        let end = positions.end;
        positions.step_by(S::LANES).map(move |x| self.strip::<S, STRIDE>(x..end))
    }

    /// The same, those that follow each other without an edge in one.
    #[inline(always)]
    pub(in crate::kernels) fn strip_runs<S: Lanes, const STRIDE: usize>(
        self,
        positions: Range<usize>,
    ) -> Vec<StripRun<S::Mask, STRIDE>> {
        let mut runs = Vec::new();
        let mut x = positions.start;
        while x < positions.end {
            let count = self.whole::<S, STRIDE>(x..positions.end).max(1);
            runs.push(StripRun { strip: self.strip::<S, STRIDE>(x..positions.end), count });
            x += count * S::LANES;
        }
        runs
    }

    /// How many vectors from the first of some positions on have windows without an edge.
    #[inline(always)]
    fn whole<S: Lanes, const STRIDE: usize>(self, positions: Range<usize>) -> usize {
        let first = (positions.start * STRIDE) as isize - self.pad_low as isize;
        let reach = (self.points.max(1) - 1) * self.dilation;
        let Ok(first) = usize::try_from(first) else { return 0 };
        // Vectors that are read whole end so far behind where their first point is.
        let behind = reach + S::LANES * STRIDE + usize::from(STRIDE == 2);
        let Some(more) = self.input.checked_sub(first + behind) else { return 0 };
        (more / (S::LANES * STRIDE) + 1).min(positions.len() / S::LANES)
    }

    /// The vector of the first of some positions.
    #[inline(always)]
    fn strip<S: Lanes, const STRIDE: usize>(
        self,
        positions: Range<usize>,
    ) -> Strip<S::Mask, STRIDE> {
        let x = positions.start;
        let mut columns = SmallVec::new();
        let mut point = 0;
        while point < self.points {
            let offset = (x * STRIDE + point * self.dilation) as isize;
            let offset = offset - self.pad_low as isize;
            // Of windows that move by two, the vectors that have a column have the next one, too. (Where they begin
            // with an even element they more often lie in one cache line.)
            let are_two =
                STRIDE == 2 && self.dilation == 1 && offset % 2 == 0 && point + 1 < self.points;
            let count = (S::LANES - 1) * STRIDE + 1 + are_two as usize;
            let there = within(offset, self.input, count);
            let masks = std::array::from_fn(|i| {
                let lane = |at: usize| at.saturating_sub(i * S::LANES).min(S::LANES);
                S::mask_of(lane(there.start)..lane(there.end))
            });
            if !there.is_empty() {
                columns.push(Column { point, are_two, offset, masks });
            }
            point += 1 + are_two as usize;
        }
        let count = S::LANES.min(positions.len());
        Strip { x, count, lanes: S::mask(count), columns }
    }
}

/// Which of `count` places from `first` on are among `size`.
#[inline(always)]
pub(in crate::kernels) fn within(first: isize, size: usize, count: usize) -> Range<usize> {
    let place = |end: isize| usize::try_from(end - first).unwrap_or(0).min(count);
    place(0)..place(size as isize)
}
