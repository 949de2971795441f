//! Memory from the system: small chunks from the global allocator, large ones mapped, with huge
//! pages where the system has them.

use std::ptr::NonNull;

use super::Block;

/// The size of a huge page on the processors that have one between a page and a gigabyte.
const HUGE_PAGE: usize = 2 << 20;

/// From here on a chunk is whole huge pages.
const LARGE: usize = HUGE_PAGE / 2;

/// Memory that is owned and initialised, at an address divisible by [`Block::ALIGN`].
pub(crate) struct Chunk {
    start: NonNull<u8>,
    /// What [`Chunk::capacity_for`] gave.
    capacity: usize,
}

// SAFETY: a chunk owns its memory, like a `Box<[u8]>`, and gives no access to it but its address.
unsafe impl Send for Chunk {}
// SAFETY: a shared `Chunk` gives no access to its memory but its address.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// The capacity of a chunk for `len` bytes: not just any, so that chunks can be used again.
    /// `None` if there can be no such chunk.
    pub(crate) fn capacity_for(len: usize) -> Option<usize> {
        // The most that an object of Rust may have, less what aligning takes.
        const MAX_BYTES: usize = isize::MAX as usize - HUGE_PAGE;
        if len > MAX_BYTES {
            return None;
        }
        // Four capacities from each power of two to the next: at most a quarter is wasted.
        let power = 1 << len.max(2).ilog2();
        let capacity = len.max(1).next_multiple_of((power / 4).max(Block::ALIGN));
        Some(if capacity < LARGE { capacity } else { len.next_multiple_of(HUGE_PAGE) })
    }

    /// A chunk of zeros; `None` if the system has no memory left. `capacity` is one that
    /// [`Chunk::capacity_for`] gives.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let start = if is_mapped(capacity) { map::map(capacity) } else { heap::allocate(capacity) };
        Some(Chunk { start: start?, capacity })
    }

    /// Whether it is one of those that are worth keeping singly.
    pub(super) fn is_large(&self) -> bool {
        self.capacity >= LARGE
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Chunk { start, capacity } = *self;
        // SAFETY: `new` got the memory in the same way from the same capacity, and the chunk, its
        // only owner, is gone.
        unsafe {
            if is_mapped(capacity) {
                map::unmap(start, capacity);
            } else {
                heap::free(start, capacity);
            }
        }
    }
}

/// (Miri has no mappings of which a part can be given back.)
fn is_mapped(capacity: usize) -> bool {
    cfg!(target_os = "linux") && !cfg!(miri) && capacity >= LARGE
}

/// Chunks from the global allocator.
mod heap {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    use super::Block;

    pub(super) fn allocate(capacity: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(capacity, Block::ALIGN).ok()?;
        // SAFETY: a capacity is not zero.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    /// # Safety
    /// `start` came from `allocate(capacity)` and is not used any more.
    pub(super) unsafe fn free(start: NonNull<u8>, capacity: usize) {
        if let Ok(layout) = Layout::from_size_align(capacity, Block::ALIGN) {
            // SAFETY: the caller's promise; the layout is the one it was allocated with.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }
}

/// Chunks mapped by Linux, on huge pages if it can.
#[cfg(target_os = "linux")]
mod map {
    use std::ptr::{NonNull, null_mut};

    use super::HUGE_PAGE;

    /// Zeros at an address divisible by the size of a huge page; `capacity` is divisible by it.
    pub(super) fn map(capacity: usize) -> Option<NonNull<u8>> {
        // The system aligns to small pages: map a huge page more, and give back what is too much.
        let total = capacity.checked_add(HUGE_PAGE)?;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at whatever address is free, touches nothing that exists.
        let mapped = unsafe { libc::mmap(null_mut(), total, access, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return None;
        }
        let mapped = mapped.cast::<u8>();
        let before = mapped.align_offset(HUGE_PAGE).min(HUGE_PAGE);
        // SAFETY: `before + capacity <= total`, so all three parts lie within the mapping just
        // made, which nobody else knows of. Advice has no effect on contents, and a system that
        // does not follow it is fine.
        unsafe {
            let start = mapped.add(before);
            if before > 0 {
                libc::munmap(mapped.cast(), before);
            }
            if before < HUGE_PAGE {
                libc::munmap(start.add(capacity).cast(), HUGE_PAGE - before);
            }
            libc::madvise(start.cast(), capacity, libc::MADV_HUGEPAGE);
            NonNull::new(start)
        }
    }

    /// # Safety
    /// `start` came from `map(capacity)` and is not used any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, capacity: usize) {
        // SAFETY: the caller's promise: the range is a mapping of ours that nobody uses.
        unsafe { libc::munmap(start.as_ptr().cast(), capacity) };
    }
}

/// Elsewhere all chunks come from the global allocator: see [`is_mapped`].
#[cfg(not(target_os = "linux"))]
mod map {
    pub(super) use super::heap::{allocate as map, free as unmap};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_few_and_little_is_wasted() {
        let mut seen = std::collections::BTreeSet::new();
        // (Miri takes a minute for ten thousand.)
        let step = if cfg!(miri) { 4001 } else { 1 };
        for len in (0..LARGE * 7 / 8).step_by(step) {
            let capacity = Chunk::capacity_for(len).unwrap();
            assert!(capacity >= len && capacity - len <= (len / 4).max(Block::ALIGN), "{len}");
            assert_eq!(Chunk::capacity_for(capacity), Some(capacity), "{len}");
            seen.insert(capacity);
        }
        assert!(seen.len() < 64, "{}", seen.len());
        assert_eq!(Chunk::capacity_for(LARGE - 1), Some(HUGE_PAGE));
        assert_eq!(Chunk::capacity_for(HUGE_PAGE + 1), Some(2 * HUGE_PAGE));
        assert_eq!(Chunk::capacity_for(usize::MAX), None);
    }

    #[test]
    fn large_chunks_begin_at_huge_pages() {
        if is_mapped(HUGE_PAGE) {
            for pages in 1..4 {
                let chunk = Chunk::new(pages * HUGE_PAGE).unwrap();
                assert_eq!(chunk.start().as_ptr() as usize % HUGE_PAGE, 0);
            }
        }
    }
}
