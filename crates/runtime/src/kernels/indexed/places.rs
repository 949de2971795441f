//! Where the windows of index vectors begin.

use std::ops::Range;

use super::super::bytes::{Plain, cast};
use super::super::isa::vectorised;
use super::super::number::NumberType;
use super::found::{BLOCK, WindowStarts};

/// The index vectors of a gather or scatter: the array of indices that they lie in, and the dimensions
/// that their components select an index of.
#[derive(Clone, Debug)]
pub(super) struct IndexVectors {
    ty: NumberType,
    batches: Vec<Batch>,
    components: Vec<Component>,
    /// The distance of index vectors, if it is the same for all.
    index_step: Option<usize>,
    /// The distance of windows in the list, if it is the same for all.
    even_step: Option<usize>,
    /// Whether nothing but indices moves windows, and places follow from the numbers of vectors.
    is_plain: bool,
}

/// An axis of the box of index vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    pub(super) size: usize,
    /// The distance of neighbours in the indices, in elements.
    pub(super) index: usize,
    /// In the array; zero unless it is a batching dimension.
    pub(super) array: usize,
    /// In the list; zero for all axes if windows share one place in it.
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

/// Windows that reach out of the array…
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutOfBounds {
    /// … are moved inside.
    Clamp,
    /// … are left out.
    Skip,
}

impl IndexVectors {
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
        let even_step = match merged.iter().all(|batch| batch.list == 0) {
            true => Some(0),
            false => even_step(&merged, |batch| batch.list),
        };
        let is_plain = merged.iter().all(|batch| batch.array == 0)
            && even_step.is_some()
            && index_step.is_some();
        IndexVectors { ty, batches: merged, components, index_step, even_step, is_plain }
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

    /// Whether index vectors are neighbouring single indices of 32 or 64 bits with a sign, to which alone windows
    /// move, and windows are neighbours in the list: [`Self::each_place`] may be called.
    pub(super) fn are_indices(&self) -> bool {
        self.is_plain
            && self.components.len() == 1
            && (self.index_step, self.even_step) == (Some(1), Some(1))
            && matches!(self.ty, NumberType::I32 | NumberType::I64)
    }

    /// Calls `f` with the place of each of these windows in the array, its element of the list, and whether that
    /// is known to be such that `is_decided`; but for those that reach out of the array.
    ///
    /// # Panics
    /// Unless [`Self::are_indices`], or if there are fewer indices or elements.
    #[inline(always)]
    pub(super) fn each_place<T: Copy>(
        &self,
        indices: &[u8],
        vectors: Range<usize>,
        list: &[T],
        is_decided: impl Fn(T) -> bool,
        f: impl FnMut(usize, T, bool),
    ) {
        match self.ty {
            NumberType::I32 => {
                self.each_place_of::<i32, T>(cast(indices), vectors, list, is_decided, f)
            }
            NumberType::I64 => {
                self.each_place_of::<i64, T>(cast(indices), vectors, list, is_decided, f)
            }
            ty => unreachable!("indices of {ty:?}"),
        }
    }

    #[inline(always)]
    fn each_place_of<I: Index, T: Copy>(
        &self,
        indices: &[I],
        vectors: Range<usize>,
        list: &[T],
        is_decided: impl Fn(T) -> bool,
        mut f: impl FnMut(usize, T, bool),
    ) {
        let Component { offset, last, step } = self.components[0];
        let Some(last) = last.and_then(I::clipped) else { return };
        let mut one = |index: I, element: T, decided: bool| {
            if index.is_within(last) {
                f(index.place().wrapping_mul(step), element, decided);
            }
        };
        let list = &list[vectors.clone()];
        let indices = &indices[offset + vectors.start..][..list.len()];
        // A processor expects of each instruction by itself that it reads what has just been written, or not.
        let ((indices, rest), (list, rest_of_list)) =
            (indices.as_chunks::<4>(), list.as_chunks::<4>());
        for (&[a, b, c, d], elements) in indices.iter().zip(list) {
            let &[of_a, of_b, of_c, of_d] = elements;
            let mut all = |decided: bool| {
                one(a, of_a, decided);
                one(b, of_b, decided);
                one(c, of_c, decided);
                one(d, of_d, decided);
            };
            match elements.iter().fold(true, |all, &element| all & is_decided(element)) {
                true => all(true),
                false => all(false),
            }
        }
        for (&index, &element) in rest.iter().zip(rest_of_list) {
            one(index, element, false);
        }
    }

    /// Finds the places of these index vectors, at most [`BLOCK`].
    pub(super) fn find(
        &self,
        indices: &[u8],
        vectors: Range<usize>,
        outside: OutOfBounds,
        found: &mut WindowStarts,
    ) {
        vectorised(
            #[inline(always)]
            || self.find_all(indices, vectors, outside, found),
        );
    }

    #[inline(always)]
    fn find_all(
        &self,
        indices: &[u8],
        vectors: Range<usize>,
        outside: OutOfBounds,
        found: &mut WindowStarts,
    ) {
        let first = vectors.start;
        self.begin(vectors, found);
        macro_rules! of_type {
            ($($variant:ident $ty:ty),*) => {
                match self.ty {
                    $(NumberType::$variant => {
                        let indices: &[$ty] = cast(indices);
                        match outside {
                            OutOfBounds::Clamp => self.clamp(indices, first, found),
                            OutOfBounds::Skip => self.skip(indices, first, found),
                        }
                    })*
                    // `IndexedWindows::plan` lets no floats pass.
                    _ => unreachable!("indices of {:?}", self.ty),
                }
            };
        }
        of_type!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
    }

    /// Moves windows by their index vectors, but not out of the array.
    #[inline(always)]
    fn clamp<I: Index>(&self, indices: &[I], first: usize, found: &mut WindowStarts) {
        let mut room = [I::ZERO; BLOCK];
        for (n, component) in self.components.iter().enumerate() {
            let last = component.last.and_then(I::clipped).unwrap_or(I::ZERO);
            let indices = self.of_component(component, indices, first, found, &mut room);
            self.add(n, indices.iter().map(|index| index.clamp_to(last)), found);
        }
    }

    /// Moves windows by their index vectors, and leaves out those that reach out of the array.
    #[inline(always)]
    fn skip<I: Index>(&self, indices: &[I], first: usize, found: &mut WindowStarts) {
        let mut room = [I::ZERO; BLOCK];
        let mut flags = [0; BLOCK];
        flags[..found.count].fill(1);
        for component in &self.components {
            let Some(last) = component.last.and_then(I::clipped) else {
                found.count = 0;
                return;
            };
            let indices = self.of_component(component, indices, first, found, &mut room);
            for (flag, index) in flags.iter_mut().zip(indices) {
                *flag &= u8::from(index.is_within(last));
            }
        }
        for (n, component) in self.components.iter().enumerate() {
            let indices = self.of_component(component, indices, first, found, &mut room);
            self.add(n, indices.iter().map(|index| index.place()), found);
        }
        if !flags[..found.count].iter().fold(true, |all, &flag| all & (flag != 0)) {
            found.keep(&flags);
        }
    }

    /// Moves windows by a component of index vectors; by any numbers, where windows are left out.
    #[inline(always)]
    fn add(&self, n: usize, indices: impl Iterator<Item = usize>, found: &mut WindowStarts) {
        let step = self.components[n].step;
        let places = found.array[..found.count].iter_mut().zip(indices);
        if self.is_plain && n == 0 {
            places.for_each(|(place, index)| *place = index.wrapping_mul(step));
        } else {
            places.for_each(|(place, index)| {
                *place = place.wrapping_add(index.wrapping_mul(step));
            });
        }
    }

    /// This component of index vectors; `room` is for those that do not lie side by side.
    #[inline(always)]
    fn of_component<'i, I: Index>(
        &self,
        component: &Component,
        indices: &'i [I],
        first: usize,
        found: &WindowStarts,
        room: &'i mut [I; BLOCK],
    ) -> &'i [I] {
        let count = found.count;
        if count == 0 {
            return &[];
        }
        let indices = &indices[component.offset..];
        let room = &mut room[..count];
        match self.index_step {
            Some(1) => return &indices[first..][..count],
            Some(step) => {
                let indices = indices[first * step..].iter().step_by(step);
                room.iter_mut().zip(indices).for_each(|(to, &index)| *to = index);
            }
            None => {
                let vectors = &found.vectors[..count];
                room.iter_mut().zip(vectors).for_each(|(to, &vector)| *to = indices[vector]);
            }
        }
        room
    }

    /// Where windows would begin if all indices were zero; what the first component writes is left
    /// to it.
    #[inline(always)]
    fn begin(&self, vectors: Range<usize>, found: &mut WindowStarts) {
        let WindowStarts { vectors: vector, array, list, count, even } = found;
        *count = vectors.len();
        *even = self.even_step.map(|step| (vectors.start * step, step));
        if self.is_plain {
            if self.components.is_empty() {
                array[..*count].fill(0);
            }
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

/// A number that an index may be.
trait Index: Plain {
    const ZERO: Self;
    /// As a place in an array, if it is one.
    fn place(self) -> usize;
    /// The place that is nearest to it of those up to `last`, which is not negative.
    fn clamp_to(self, last: Self) -> usize;
    /// This number, or the largest that there is; none if it is negative.
    fn clipped(number: i64) -> Option<Self>;
    /// Whether it is neither negative nor above `last`, which is not negative.
    fn is_within(self, last: Self) -> bool;
}

macro_rules! index {
    ($($ty:ty as $unsigned:ty),*) => { $(
        impl Index for $ty {
            const ZERO: Self = 0;
            #[inline(always)]
            fn place(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn clamp_to(self, last: Self) -> usize {
                self.max(0).min(last) as usize
            }
            #[inline(always)]
            fn clipped(number: i64) -> Option<Self> {
                (number >= 0).then(|| Self::try_from(number).unwrap_or(Self::MAX))
            }
            #[inline(always)]
            fn is_within(self, last: Self) -> bool {
                self as $unsigned <= last as $unsigned
            }
        }
    )* };
}

index!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, u8 as u8, u16 as u16, u32 as u32, u64 as u64);
