//! Windows sorted by the part of the array that they are in.
//!
//! Parts are changed by different threads, each by its windows in the order of index vectors. The
//! sort counts: every chunk of index vectors how many windows of it each part gets, from which
//! follows where it puts them.

use super::super::bytes::{Scratch, scratch_for};
use super::super::disjoint::Disjoint;
use super::found::{BLOCK, WindowStarts};
use super::places::{IndexVectors, OutOfBounds};
use crate::Threads;

/// Bytes of a part of the array, about: it fits the second-level cache.
const PART_BYTES: usize = 1 << 18;
/// The fewest parts: each thread should get several.
const MIN_PARTS: usize = 8;
/// The most parts: each should get many windows.
const MAX_PARTS: usize = 512;
/// Index vectors of a chunk, unless that makes more than [`MAX_CHUNKS`].
const CHUNK: usize = 1 << 13;
/// The most chunks, each of which has a counter for each part.
const MAX_CHUNKS: usize = 128;

/// How windows are sorted.
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    /// The number of parts of the array.
    parts: usize,
    /// Elements of a part; the last may have fewer.
    part_len: usize,
    /// Elements that no window leaves; a part is whole stretches.
    stretch: usize,
    /// The number of chunks of the list of index vectors.
    chunks: usize,
    /// Index vectors of a chunk; the last may have fewer.
    chunk: usize,
    /// The number of index vectors.
    count: usize,
}

/// Windows in the order of parts.
pub(super) struct Sorted<'a> {
    /// Where the windows of each part begin, and the last part's end.
    starts: Vec<u32>,
    /// Where they begin in the array and in the list.
    windows: &'a [[u32; 2]],
}

impl Buckets {
    /// Parts of an array of `len` elements of `element_size` bytes, each a whole number of stretches
    /// of `stretch` elements. `None` if there is only one stretch, or a number does not fit 32 bits.
    pub(super) fn new(
        count: usize,
        (len, list_len): (usize, usize),
        stretch: usize,
        element_size: usize,
    ) -> Option<Self> {
        if stretch == 0 || len <= stretch || count == 0 {
            return None;
        }
        u32::try_from(len.max(list_len).max(count)).ok()?;
        let stretches = len / stretch;
        let wanted = (len.saturating_mul(element_size) / PART_BYTES).max(MIN_PARTS);
        let part_len = stretches.div_ceil(wanted.min(MAX_PARTS)) * stretch;
        let part_len = part_len.max(2); // The division by multiplication wants it.
        let chunk = CHUNK.max(count.div_ceil(MAX_CHUNKS).next_multiple_of(BLOCK));
        let (parts, chunks) = (len.div_ceil(part_len), count.div_ceil(chunk));
        Some(Buckets { parts, part_len, stretch, chunks, chunk, count })
    }

    pub(super) fn parts(&self) -> usize {
        self.parts
    }

    pub(super) fn part_len(&self) -> usize {
        self.part_len
    }

    /// Elements of a share of an array of `len` elements that is divided into `shares`, all whole stretches.
    pub(super) fn share_len(&self, len: usize, shares: usize) -> usize {
        (len / self.stretch).div_ceil(shares.max(1)) * self.stretch
    }

    /// How much working memory [`Buckets::sort`] needs.
    pub(super) fn scratch_bytes(&self) -> usize {
        let counts = scratch_for::<u32>(self.chunks * self.parts);
        counts.saturating_add(scratch_for::<[u32; 2]>(self.count))
    }

    /// Sorts the windows of all index vectors, without those that reach out. Calls `carry` for
    /// each with its place among the sorted and in the list; places are different for all.
    pub(super) fn sort<'a>(
        &self,
        places: &IndexVectors,
        indices: &[u8],
        scratch: &mut Scratch<'a>,
        threads: Threads<'_>,
        carry: impl Fn(usize, usize) + Sync,
    ) -> Sorted<'a> {
        let counts = scratch.take::<u32>(self.chunks * self.parts);
        threads.for_chunks(counts, self.parts, &|chunk, counts| {
            counts.fill(0);
            self.each(chunk, places, indices, |part, _, _| counts[part] += 1);
        });
        let none = || Sorted { starts: vec![0; self.parts + 1], windows: &mut [] };
        if threads.is_stopped() {
            return none();
        }
        let mut starts = Vec::with_capacity(self.parts + 1);
        let mut next = 0;
        for part in 0..self.parts {
            starts.push(next);
            for count in counts.iter_mut().skip(part).step_by(self.parts) {
                next += std::mem::replace(count, next);
            }
        }
        starts.push(next);
        let windows = scratch.take::<[u32; 2]>(self.count);
        let sorted = Disjoint::new(&mut *windows);
        threads.for_chunks(counts, self.parts, &|chunk, next| {
            self.each(chunk, places, indices, |part, place, list| {
                let at = next[part] as usize;
                next[part] += 1;
                // SAFETY: the counts give each window a place of its own.
                let window = unsafe { sorted.part(at, 1) };
                window[0] = [place, list];
                carry(at, list as usize);
            });
        });
        if threads.is_stopped() { none() } else { Sorted { starts, windows } }
    }

    /// Calls `f` for the windows of a chunk with their parts and places.
    #[inline(always)]
    fn each(
        &self,
        chunk: usize,
        places: &IndexVectors,
        indices: &[u8],
        mut f: impl FnMut(usize, u32, u32),
    ) {
        // Exact for numbers below 2³² (Lemire, Kaser, Kurz 2019, "Faster remainder by direct
        // computation"), and far faster than to divide.
        let inverse = u64::MAX / self.part_len as u64 + 1;
        let part = |place: usize| ((u128::from(inverse) * place as u128) >> 64) as usize;
        let mut found = WindowStarts::new();
        let vectors = chunk * self.chunk..self.count.min((chunk + 1) * self.chunk);
        for first in vectors.clone().step_by(BLOCK) {
            let block = first..vectors.end.min(first + BLOCK);
            places.find(indices, block, OutOfBounds::Skip, &mut found);
            found.each(|place, list| f(part(place), place as u32, list as u32));
        }
    }
}

impl Sorted<'_> {
    /// Calls `f` for the windows of a part, several at a time. Where they are carried along, their
    /// places in the list are those among the sorted.
    #[inline(always)]
    pub(super) fn blocks(
        &self,
        part: usize,
        found: &mut WindowStarts,
        is_carried: bool,
        mut f: impl FnMut(&WindowStarts),
    ) {
        let range = self.starts[part] as usize..self.starts[part + 1] as usize;
        for first in range.clone().step_by(BLOCK) {
            let block = &self.windows[first..range.end.min(first + BLOCK)];
            let windows = block.iter().enumerate().map(|(i, &[place, list])| {
                (place as usize, if is_carried { first + i } else { list as usize })
            });
            found.set(windows);
            f(found);
        }
    }
}
