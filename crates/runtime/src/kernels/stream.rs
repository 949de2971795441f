//! Stores that go past the cache: what is larger than it would only push out everything else, and
//! a line that is written whole need not be read first.

/// Targets from this size on are written past the cache.
pub const STREAM_BYTES: usize = 1 << 24;

/// Copies bytes past the cache. They are in place for other threads after [`finish`].
///
/// # Safety
///
/// `len` bytes may be read at `from` and written at `to`, and the two do not overlap.
pub(super) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        const LINE: usize = 64;
        let head = to.align_offset(LINE).min(len);
        let lines = (len - head) / LINE;
        // SAFETY: head, lines and tail are parts of the range, which the caller answers for;
        // behind the head, every 16 bytes of the target are aligned.
        unsafe {
            from.copy_to_nonoverlapping(to, head);
            for line in 0..lines {
                let from = from.add(head + line * LINE).cast::<__m128i>();
                let to = to.add(head + line * LINE).cast::<__m128i>();
                let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                for (i, part) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(i), part);
                }
            }
            let done = head + lines * LINE;
            from.add(done).copy_to_nonoverlapping(to.add(done), len - done);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise.
    unsafe {
        from.copy_to_nonoverlapping(to, len)
    }
}

/// Copies bytes past the cache, into which nobody is going to look soon. They are in place for other
/// threads when it returns.
///
/// # Panics
///
/// If the slices have different lengths.
pub fn copy_past_cache(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "as many bytes as there is room for");
    // SAFETY: both slices have this length, and one that may be written overlaps no other.
    unsafe { copy(from.as_ptr(), to.as_mut_ptr(), from.len()) };
    finish();
}

/// Ends a task that has written past the cache.
pub(super) fn finish() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}
