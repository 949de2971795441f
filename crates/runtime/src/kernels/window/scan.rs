//! Cumulative sums, products, maxima and minima.

use super::super::bytes::{cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::number::{Fold, FoldOp, Folding, NumberType, with_fold, with_folding};
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
/// Neighbouring lanes that are folded together.
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
        with_folding!(self.ty, self.fold, folding => {
            self.typed(folding, cast(from), cast(init)[0], cast_mut(to), threads);
        });
    }

    fn typed<G: Folding>(
        &self,
        folding: G,
        from: &[G::Element],
        init: G::Element,
        to: &mut [G::Element],
        threads: Threads<'_>,
    ) {
        let Lanes { outer, count, inner } = self.lanes;
        let len = self.lanes.len().expect("lanes whose elements are those of an array");
        let (from, to, init) = (&from[..len], &mut to[..len], folding.widen(init));
        if len == 0 {
            return;
        }
        if inner == 1 {
            let rows = (TASK_ELEMENTS / count).max(1);
            threads.for_chunks(to, rows * count, &|task, to| {
                let from = &from[task * rows * count..][..to.len()];
                for (from, to) in from.chunks_exact(count).zip(to.chunks_exact_mut(count)) {
                    match self.is_reversed {
                        true => row::<G, true>(folding, from, init, to),
                        false => row::<G, false>(folding, from, init, to),
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
                self.band(folding, from, init, &to, start, width);
            }
        });
    }

    /// Folds `width` neighbouring lanes.
    fn band<G: Folding>(
        &self,
        folding: G,
        from: &[G::Element],
        init: G::Wide,
        to: &Disjoint<'_, G::Element>,
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
            for ((sum, &from), to) in sums.iter_mut().zip(from).zip(to) {
                *sum = G::Op::apply(*sum, folding.widen(from));
                *to = folding.narrow(*sum);
            }
        }
    }
}

/// Folds one contiguous lane, from its end if it is `REVERSED`.
fn row<G: Folding, const REVERSED: bool>(
    folding: G,
    from: &[G::Element],
    init: G::Wide,
    to: &mut [G::Element],
) {
    const BLOCK: usize = SEGMENTS * LENGTH;
    const WHOLE: &str = "a whole block";
    let mut before = init;
    let whole = from.len() / BLOCK * BLOCK;
    let place = |i: usize, len: usize| if REVERSED { len - 1 - i } else { i };
    for start in (0..whole).step_by(BLOCK) {
        // All in order of memory: the elements of the block, its segments, and what these become.
        let first = if REVERSED { from.len() - start - BLOCK } else { start };
        let from = from[first..].as_chunks::<LENGTH>().0;
        let to = to[first..].as_chunks_mut::<LENGTH>().0;
        let (from, to): (&[_; SEGMENTS], &mut [_; SEGMENTS]) =
            (from.first_chunk().expect(WHOLE), to.first_chunk_mut().expect(WHOLE));
        let mut local = [[init; LENGTH]; SEGMENTS];
        let first = place(0, LENGTH);
        let mut sums = from.each_ref().map(|from| folding.widen(from[first]));
        local.iter_mut().zip(sums).for_each(|(local, sum)| local[first] = sum);
        for at in (1..LENGTH).map(|i| place(i, LENGTH)) {
            for segment in 0..SEGMENTS {
                let v = folding.widen(from[segment][at]);
                sums[segment] = G::Op::apply(sums[segment], v);
                local[segment][at] = sums[segment];
            }
        }
        for segment in (0..SEGMENTS).map(|i| place(i, SEGMENTS)) {
            for (to, &local) in to[segment].iter_mut().zip(&local[segment]) {
                *to = folding.narrow(G::Op::apply(before, local));
            }
            before = G::Op::apply(before, sums[segment]);
        }
    }
    for i in whole..from.len() {
        let at = place(i, from.len());
        before = G::Op::apply(before, folding.widen(from[at]));
        to[at] = folding.narrow(before);
    }
}
