//! Where the windows of index vectors begin.

use std::ops::Range;

use super::super::bytes::cast;
use super::super::isa::vectorised;
use super::super::number::NumberType;

/// The index vectors: a box of them, and what their components are for.
#[derive(Clone, Debug)]
pub(super) struct Places {
    ty: NumberType,
    batches: Vec<Batch>,
    components: Vec<Component>,
    /// The distance of index vectors, if it is the same for all.
    index_step: Option<usize>,
    /// The distance of windows in the list, if it is the same for all.
    even_step: Option<usize>,
}

/// An axis of the box of index vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) size: usize,
    /// The distance of neighbours in the indices, in elements.
    pub(super) index: usize,
    /// In the array; zero unless it is a batching dimension.
    pub(super) array: usize,
    /// In the list.
    pub(super) list: usize,
}

/// A component of an index vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component {
    /// How far it is from the vector's first.
    pub(super) offset: usize,
    /// The last index at which the window fits into the array; `None` if it never does.
    pub(super) last: Option<i64>,
    /// The distance of neighbours in the array.
    pub(super) step: usize,
}

/// Where windows begin in both arrays.
pub(super) struct Found {
    /// The index vectors' places, in elements of the indices.
    vectors: [usize; BLOCK],
    array: [usize; BLOCK],
    list: [usize; BLOCK],
    count: usize,
    /// If windows are evenly spaced in the list, the first one's place and their distance; `list`
    /// does not count then.
    even: Option<(usize, usize)>,
}

/// So many windows at a time are looked through for those to leave out.
const LEFT_OUT: usize = 16;

impl Found {
    /// The place in the array of a window that reaches out of it.
    const NOWHERE: usize = usize::MAX;

    pub(super) fn new() -> Self {
        Found { vectors: [0; BLOCK], array: [0; BLOCK], list: [0; BLOCK], count: 0, even: None }
    }

    /// Where each window begins in the array.
    #[inline(always)]
    pub(super) fn array(&self) -> &[usize] {
        &self.array[..self.count]
    }

    /// Where the first window begins in the list, if the others follow at this distance.
    #[inline(always)]
    pub(super) fn first_of_row(&self, distance: usize) -> Option<usize> {
        self.even.filter(|&(_, step)| step == distance).map(|(first, _)| first)
    }

    /// Calls `f` for each window with the places where it begins in the array and in the list.
    #[inline(always)]
    pub(super) fn each(&self, mut f: impl FnMut(usize, usize)) {
        for (i, &array) in self.array().iter().enumerate() {
            f(array, self.in_list(i));
        }
    }

    /// Where a window begins, if there is one of this number.
    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Option<(usize, usize)> {
        let array = self.array().get(i)?;
        Some((*array, self.in_list(i)))
    }

    #[inline(always)]
    fn in_list(&self, i: usize) -> usize {
        match self.even {
            Some((first, step)) => first + i * step,
            None => self.list[i],
        }
    }

    /// Takes these places instead, of which there are at most [`BLOCK`].
    pub(super) fn set(&mut self, places: impl ExactSizeIterator<Item = (usize, usize)>) {
        (self.count, self.even) = (places.len(), None);
        let to = self.array[..self.count].iter_mut().zip(&mut self.list[..self.count]);
        for ((array, list), (array_at, list_at)) in to.zip(places) {
            (*array, *list) = (array_at, list_at);
        }
    }

    /// Leaves out what is nowhere.
    #[inline(always)]
    fn leave_out(&mut self) {
        let is_out = |&place: &usize| place == Self::NOWHERE;
        if !self.array().iter().fold(false, |any, place| any | is_out(place)) {
            return;
        }
        let mut kept = 0;
        for first in (0..self.count).step_by(LEFT_OUT) {
            let group = first..self.count.min(first + LEFT_OUT);
            // Where nearly all are out, most groups are as a whole.
            if self.array[group.clone()].iter().fold(true, |all, place| all & is_out(place)) {
                continue;
            }
            for i in group {
                let (array, list) = (self.array[i], self.in_list(i));
                (self.array[kept], self.list[kept]) = (array, list);
                kept += usize::from(!is_out(&array));
            }
        }
        (self.count, self.even) = (kept, None);
    }
}

/// Windows that reach out of the array…
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outside {
    /// … are moved inside.
    Clamp,
    /// … are left out.
    Skip,
}

/// Places are found for so many index vectors at a time.
pub(super) const BLOCK: usize = 256;

impl Places {
    pub(super) fn new(ty: NumberType, batches: Vec<Batch>, components: Vec<Component>) -> Self {
        // Neighbouring axes that are one in everything become one.
        let mut merged: Vec<Batch> = Vec::with_capacity(batches.len());
        for batch in batches.into_iter().filter(|batch| batch.size != 1) {
            let size = batch.size;
            let follows = |step: fn(&Batch) -> usize, outer: &Batch| {
                step(&batch).checked_mul(size) == Some(step(outer))
            };
            match merged.last_mut() {
                Some(outer)
                    if follows(|b| b.index, outer)
                        && follows(|b| b.array, outer)
                        && follows(|b| b.list, outer) =>
                {
                    *outer = Batch { size: outer.size * size, ..batch };
                }
                _ => merged.push(batch),
            }
        }
        let index_step = even_step(&merged, |batch| batch.index);
        let even_step = even_step(&merged, |batch| batch.list);
        Places { ty, batches: merged, components, index_step, even_step }
    }

    /// How many index vectors there are.
    pub(super) fn count(&self) -> usize {
        self.batches.iter().map(|batch| batch.size).product()
    }

    /// The axes of the box of index vectors, outermost first.
    pub(super) fn batches(&self) -> &[Batch] {
        &self.batches
    }

    /// How far the last window begins behind the array's first element, whatever the indices, if
    /// all but the vectors' outermost axis count.
    pub(super) fn reach_inside(&self) -> usize {
        let component = |c: &Component| c.last.unwrap_or(0).max(0) as usize * c.step;
        let batch = |b: &Batch| b.size.saturating_sub(1) * b.array;
        let batches = self.batches.iter().skip(1).map(batch);
        batches.chain(self.components.iter().map(component)).sum()
    }

    /// The smallest distance of index vectors in the list; none if there is one vector.
    pub(super) fn list_step(&self) -> Option<usize> {
        self.batches.iter().map(|batch| batch.list).min()
    }

    /// Finds the places of these index vectors, at most [`BLOCK`].
    pub(super) fn find(
        &self,
        indices: &[u8],
        vectors: Range<usize>,
        outside: Outside,
        found: &mut Found,
    ) {
        vectorised(
            #[inline(always)]
            || self.find_all(indices, vectors, outside, found),
        );
    }

    #[inline(always)]
    fn find_all(&self, indices: &[u8], vectors: Range<usize>, outside: Outside, found: &mut Found) {
        let first = vectors.start;
        self.begin(vectors, found);
        for component in &self.components {
            macro_rules! of_type {
                ($($variant:ident $ty:ty),*) => {
                    match self.ty {
                        $(NumberType::$variant => {
                            let indices = &cast::<$ty>(indices)[component.offset..];
                            // An index too large for `i64` is as far outside as any.
                            let wide = |&index: &$ty| i64::try_from(index).unwrap_or(i64::MAX);
                            let count = found.count;
                            match self.index_step {
                                // Loops over slices are vector code.
                                Some(1) => {
                                    let indices = indices[first..][..count].iter();
                                    component.add(indices.map(wide), outside, found);
                                }
                                Some(step) if count > 0 => {
                                    let indices = indices[first * step..].iter().step_by(step);
                                    component.add(indices.map(wide), outside, found);
                                }
                                _ => {
                                    let vectors = found.vectors;
                                    let indices = vectors[..count].iter().map(|&i| &indices[i]);
                                    component.add(indices.map(wide), outside, found);
                                }
                            }
                        })*
                        // `IndexedWindows::plan` lets no floats pass.
                        _ => unreachable!("indices of {:?}", self.ty),
                    }
                };
            }
            of_type!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        }
        if outside == Outside::Skip {
            found.leave_out();
        }
    }

    /// Where windows would begin if all indices were zero.
    #[inline(always)]
    fn begin(&self, vectors: Range<usize>, found: &mut Found) {
        let Found { vectors: vector, array, list, count, even } = found;
        *count = vectors.len();
        *even = self.even_step.map(|step| (vectors.start * step, step));
        let is_fixed = self.batches.iter().all(|batch| batch.array == 0);
        if is_fixed && even.is_some() && self.index_step.is_some() {
            array[..*count].fill(0);
            return;
        }
        let mut done = 0;
        while done < *count {
            // A run along the innermost axis, behind which the others are the same.
            let number = vectors.start + done;
            let (inner, outer) = match self.batches.split_last() {
                Some((inner, outer)) => (*inner, outer),
                None => (Batch { size: 1, index: 0, array: 0, list: 0 }, &[][..]),
            };
            let (first, mut rest) = (number % inner.size, number / inner.size);
            let mut start = [first * inner.index, first * inner.array, first * inner.list];
            for batch in outer.iter().rev() {
                let at = rest % batch.size;
                rest /= batch.size;
                start[0] += at * batch.index;
                start[1] += at * batch.array;
                start[2] += at * batch.list;
            }
            let run = done..(done + inner.size - first).min(*count);
            done = run.end;
            let places = array[run.clone()].iter_mut().zip(&mut list[run.clone()]);
            for (i, ((array, list), vector)) in places.zip(&mut vector[run]).enumerate() {
                *vector = start[0] + i * inner.index;
                *array = start[1] + i * inner.array;
                *list = start[2] + i * inner.list;
            }
        }
    }
}

/// The distance of neighbours, if it is the same from each index vector to the next.
fn even_step(batches: &[Batch], step: impl Fn(&Batch) -> usize) -> Option<usize> {
    let first = batches.last().map_or(1, &step);
    let mut next = first;
    let is_even = batches.iter().rev().all(|batch| {
        let is_next = step(batch) == next;
        next = step(batch).saturating_mul(batch.size);
        is_next && step(batch) > 0
    });
    is_even.then_some(first)
}

impl Component {
    /// Moves windows by this component of their index vectors.
    #[inline(always)]
    fn add(&self, indices: impl Iterator<Item = i64>, outside: Outside, found: &mut Found) {
        let places = found.array[..found.count].iter_mut().zip(indices);
        let last = self.last;
        match outside {
            Outside::Clamp => {
                let last = last.unwrap_or(0);
                for (array, index) in places {
                    *array += index.clamp(0, last) as usize * self.step;
                }
            }
            Outside::Skip => {
                let last = last.unwrap_or(-1);
                for (array, start) in places {
                    let is_inside = (start >= 0) & (start <= last);
                    let place = array.wrapping_add((start as usize).wrapping_mul(self.step));
                    // What is nowhere stays there.
                    let is_nowhere = *array == Found::NOWHERE;
                    *array = if is_inside & !is_nowhere { place } else { Found::NOWHERE };
                }
            }
        }
    }
}
