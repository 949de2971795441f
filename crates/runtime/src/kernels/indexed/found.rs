//! The places of some windows.

use std::ops::Range;

/// Index vectors whose places are computed together, before their windows are moved.
pub(super) const BLOCK: usize = 256;

/// Where windows begin in both arrays.
pub(super) struct WindowStarts {
    /// The index vectors' places, in elements of the indices.
    pub(super) vectors: [usize; BLOCK],
    pub(super) array: [usize; BLOCK],
    pub(super) list: [usize; BLOCK],
    pub(super) count: usize,
    /// If windows are evenly spaced in the list, the first one's place and their distance; `list`
    /// does not count then.
    pub(super) even: Option<(usize, usize)>,
}

impl WindowStarts {
    pub(super) fn new() -> Self {
        WindowStarts {
            vectors: [0; BLOCK],
            array: [0; BLOCK],
            list: [0; BLOCK],
            count: 0,
            even: None,
        }
    }

    /// Where each window begins in the array.
    #[inline(always)]
    pub(super) fn array(&self) -> &[usize] {
        &self.array[..self.count]
    }

    /// Where the first window begins in the list, and at which distance the others follow, if that is
    /// the same for all.
    #[inline(always)]
    pub(super) fn even(&self) -> Option<(usize, usize)> {
        self.even
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

    /// Leaves out the windows that begin elsewhere in the array.
    #[inline(always)]
    pub(super) fn keep_within(&mut self, array: &Range<usize>) {
        let mut flags = [0; BLOCK];
        for (flag, at) in flags.iter_mut().zip(self.array()) {
            *flag = u8::from(array.contains(at));
        }
        self.keep(&flags);
    }

    /// Leaves out the windows whose flag is 0; flags behind the last window are.
    #[inline(always)]
    pub(super) fn keep(&mut self, flags: &[u8; BLOCK]) {
        let mut kept = 0;
        for (group, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
            // Where nearly all are left out, most groups are as a whole.
            if u64::from_ne_bytes(*flags) == 0 {
                continue;
            }
            for (number, &flag) in (8 * group..).zip(flags) {
                let (array, list) = (self.array[number], self.in_list(number));
                (self.array[kept], self.list[kept]) = (array, list);
                kept += usize::from(flag);
            }
        }
        (self.count, self.even) = (kept, None);
    }
}
