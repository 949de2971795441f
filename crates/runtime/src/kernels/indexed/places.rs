//! Where the windows of index vectors begin.

use std::ops::Range;

use super::super::bytes::cast;
use super::super::number::NumberType;

/// The index vectors: a box of them, and what their components are for.
#[derive(Clone, Debug)]
pub(super) struct Places {
    ty: NumberType,
    batches: Vec<Batch>,
    components: Vec<Component>,
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
}

impl Found {
    /// The place in the array of a window that reaches out of it.
    pub(super) const NOWHERE: usize = usize::MAX;

    pub(super) fn new() -> Self {
        Found { vectors: [0; BLOCK], array: [0; BLOCK], list: [0; BLOCK], count: 0 }
    }

    /// Where each window begins: in the array and in the list.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> + Clone {
        self.array[..self.count].iter().copied().zip(self.list[..self.count].iter().copied())
    }

    /// Where a window begins in the array, if there is one of this number.
    pub(super) fn array(&self, i: usize) -> Option<usize> {
        self.array[..self.count].get(i).copied()
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
        Places { ty, batches: merged, components }
    }

    /// How many index vectors there are.
    pub(super) fn count(&self) -> usize {
        self.batches.iter().map(|batch| batch.size).product()
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
        self.begin(vectors, found);
        for component in &self.components {
            macro_rules! of_type {
                ($($variant:ident $ty:ty),*) => {
                    match self.ty {
                        $(NumberType::$variant => {
                            let indices = &cast::<$ty>(indices)[component.offset..];
                            // An index too large for `i64` is as far outside as any.
                            let index = |i: usize| i64::try_from(indices[i]).unwrap_or(i64::MAX);
                            component.add(index, outside, found);
                        })*
                        // `IndexedWindows::plan` lets no floats pass.
                        _ => unreachable!("indices of {:?}", self.ty),
                    }
                };
            }
            of_type!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        }
    }

    /// Where windows would begin if all indices were zero.
    fn begin(&self, vectors: Range<usize>, found: &mut Found) {
        let Found { vectors: vector, array, list, count } = found;
        *count = vectors.len();
        let places = vector[..*count].iter_mut().zip(&mut array[..*count]).zip(&mut list[..*count]);
        if let [batch] = self.batches[..] {
            for (number, ((vector, array), list)) in vectors.zip(places) {
                *vector = number * batch.index;
                *array = number * batch.array;
                *list = number * batch.list;
            }
            return;
        }
        for (number, ((vector, array), list)) in vectors.zip(places) {
            (*vector, *array, *list) = (0, 0, 0);
            let mut rest = number;
            for batch in self.batches.iter().rev() {
                let at = rest % batch.size;
                rest /= batch.size;
                *vector += at * batch.index;
                *array += at * batch.array;
                *list += at * batch.list;
            }
        }
    }
}

impl Component {
    /// Moves windows by this component of their index vectors.
    fn add(&self, index: impl Fn(usize) -> i64, outside: Outside, found: &mut Found) {
        let Found { vectors, array, count, .. } = found;
        let places = vectors[..*count].iter().zip(&mut array[..*count]);
        let last = self.last;
        match outside {
            Outside::Clamp => {
                let last = last.unwrap_or(0);
                for (&vector, array) in places {
                    *array += index(vector).clamp(0, last) as usize * self.step;
                }
            }
            Outside::Skip => {
                let last = last.unwrap_or(-1);
                for (&vector, array) in places {
                    let start = index(vector);
                    let is_inside = (0..=last).contains(&start);
                    // What is nowhere stays there.
                    *array = match is_inside {
                        true => array.saturating_add(start as usize * self.step),
                        false => Found::NOWHERE,
                    };
                }
            }
        }
    }
}
