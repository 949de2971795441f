//! Cumulative sums, products, maxima and minima.

use super::super::bytes::{cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::number::{Fold, FoldOp, Number, NumberType, with_fold, with_number};
use super::super::sort::Lanes;
use crate::Threads;

/// Replaces each element along a dimension by the fold of all elements up to it, or from it on.
///
/// Floats are folded in segments of fixed length, and segments then: closer to the exact sum than
/// one after the other, and many at a time. (Wider vectors would gain nothing: sums wait for sums.)
#[derive(Clone, Copy, Debug)]
pub struct Scan {
    /// How the dimension lies in memory.
    pub lanes: Lanes,
    /// The type of the elements.
    pub ty: NumberType,
    /// What they are folded with.
    pub fold: Fold,
    /// Whether an element is folded with all that are behind it, rather than before.
    pub is_reversed: bool,
}

/// Segments that are folded side by side, each in order.
const SEGMENTS: usize = 8;
/// The length of a segment.
const LENGTH: usize = 64;
/// Neighbouring lanes are folded so many at a time.
const WIDTH: usize = 64;
/// Tasks are this large or a single lane.
const TASK_ELEMENTS: usize = 1 << 15;

impl Scan {
    /// Folds `init` and the elements of `from`. All are bytes of elements of [`Scan::ty`].
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(&self, from: &[u8], init: &[u8], to: &mut [u8], threads: Threads<'_>) {
        with_number!(self.ty, T => with_fold!(self.fold, F => {
            self.typed::<T, F>(cast(from), cast(init)[0], cast_mut(to), threads);
        }));
    }

    fn typed<T: Number, F: FoldOp>(&self, from: &[T], init: T, to: &mut [T], threads: Threads<'_>) {
        let Lanes { outer, count, inner } = self.lanes;
        let len = outer * count * inner;
        let (from, to, init) = (&from[..len], &mut to[..len], init.widen());
        if len == 0 {
            return;
        }
        if inner == 1 {
            let rows = (TASK_ELEMENTS / count).max(1);
            threads.for_chunks(to, rows * count, &|task, to| {
                let from = &from[task * rows * count..][..to.len()];
                for (from, to) in from.chunks_exact(count).zip(to.chunks_exact_mut(count)) {
                    match self.is_reversed {
                        true => row::<T, F, true>(from, init, to),
                        false => row::<T, F, false>(from, init, to),
                    }
                }
            });
            return;
        }
        let bands = inner.div_ceil(WIDTH);
        let to = Disjoint::new(to);
        threads.for_ranges(outer * bands, (TASK_ELEMENTS / (count * WIDTH)).max(1), &|tasks| {
            for task in tasks {
                let first = task % bands * WIDTH;
                let start = task / bands * count * inner + first;
                let width = WIDTH.min(inner - first);
                self.band::<T, F>(from, init, &to, start, width);
            }
        });
    }

    /// Folds `width` neighbouring lanes.
    fn band<T: Number, F: FoldOp>(
        &self,
        from: &[T],
        init: T::Wide,
        to: &Disjoint<'_, T>,
        start: usize,
        width: usize,
    ) {
        let Lanes { count, inner, .. } = self.lanes;
        let mut sums = [init; WIDTH];
        for i in 0..count {
            let i = if self.is_reversed { count - 1 - i } else { i };
            let from = &from[start + i * inner..][..width];
            // SAFETY: these columns of this row belong to this band, and the band to one task.
            let to = unsafe { to.part(start + i * inner, width) };
            for ((sum, from), to) in sums.iter_mut().zip(from).zip(to) {
                *sum = F::apply(*sum, from.widen());
                *to = T::narrow(*sum);
            }
        }
    }
}

/// Folds one contiguous lane. A lane that is `REVERSED` is read and written from its end.
fn row<T: Number, F: FoldOp, const REVERSED: bool>(from: &[T], init: T::Wide, to: &mut [T]) {
    const BLOCK: usize = SEGMENTS * LENGTH;
    let mut before = init;
    let whole = from.len() / BLOCK * BLOCK;
    let at = |i: usize| if REVERSED { from.len() - 1 - i } else { i };
    for start in (0..whole).step_by(BLOCK) {
        // The elements of the block, in order of memory.
        let first = if REVERSED { from.len() - start - BLOCK } else { start };
        let (from, to) = (&from[first..][..BLOCK], &mut to[first..][..BLOCK]);
        let at = |i: usize| if REVERSED { BLOCK - 1 - i } else { i };
        let mut local = [[init; LENGTH]; SEGMENTS];
        let mut sums: [T::Wide; SEGMENTS] =
            std::array::from_fn(|segment| from[at(segment * LENGTH)].widen());
        for i in 0..LENGTH {
            for segment in 0..SEGMENTS {
                if i > 0 {
                    let v = from[at(segment * LENGTH + i)].widen();
                    sums[segment] = F::apply(sums[segment], v);
                }
                local[segment][i] = sums[segment];
            }
        }
        for segment in 0..SEGMENTS {
            for i in 0..LENGTH {
                to[at(segment * LENGTH + i)] = T::narrow(F::apply(before, local[segment][i]));
            }
            before = F::apply(before, sums[segment]);
        }
    }
    for i in whole..from.len() {
        before = F::apply(before, from[at(i)].widen());
        to[at(i)] = T::narrow(before);
    }
}
