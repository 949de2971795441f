//! A slice whose parts are written by several tasks at once.

use std::marker::PhantomData;

/// A slice that tasks share, each of which writes places that no other touches.
pub(super) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: a `Disjoint` gives nothing but exclusive access to elements, each to one task at a time
// by the contract of its methods; that moves `T`s between threads, which `T: Send` allows.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

// Whoever takes a part vouches for it, through whichever copy. (Loops copy it first: the compiler
// cannot know that what they write is not the `Disjoint` itself.)
impl<T> Clone for Disjoint<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    /// Lends the slice to tasks.
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Disjoint { start: slice.as_mut_ptr(), len: slice.len(), lifetime: PhantomData }
    }

    /// Lends several.
    pub(super) fn all(slices: &'a mut [&mut [T]]) -> Vec<Self> {
        slices.iter_mut().map(|slice| Disjoint::new(slice)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many elements there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Where the slice begins, for who writes elements that no other task accesses.
    pub(super) fn start(&self) -> *mut T {
        self.start
    }

    /// These elements, checked to lie inside.
    ///
    /// # Safety
    ///
    /// While the result lives, no other reference to any of these elements is made or used.
    #[allow(clippy::mut_from_ref)] // The caller vouches for it.
    pub(super) unsafe fn part(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "a part reaches out of its slice");
        // SAFETY: the range is inside the slice that `new` borrowed exclusively for `'a`, and the
        // caller sees to it that the parts in use do not overlap.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
