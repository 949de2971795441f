//! Temporary memory of kernels, kept by each thread from call to call: fresh memory costs a page
//! fault for each 4 KB, which for a small product is as long as the product itself. What is large
//! lies on huge pages, since tiles of a product read it from more places at once than a processor
//! knows the addresses of small pages.

use std::cell::RefCell;

use super::bytes::Plain;
use crate::memory::Chunk;

thread_local! {
    static FREE: RefCell<Vec<Chunk>> = const { RefCell::new(Vec::new()) };
}

/// How many chunks a thread keeps, and how many bytes the largest of them may have.
const KEPT: usize = 6;
const KEPT_BYTES: usize = 16 << 20;
/// From so many bytes on a chunk is a huge page at least.
const LARGE: usize = 64 << 10;
const HUGE_PAGE: usize = 2 << 20;

/// Calls `body` with `len` elements of unspecified content, aligned to 64 bytes, so that no vector
/// load crosses a cache line.
///
/// # Panics
/// If the system has no memory left.
pub(super) fn with<T: Plain, R>(len: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    let bytes = len.checked_mul(size_of::<T>()).expect("scratch fits memory");
    let chunk = take(bytes);
    // SAFETY: the chunk holds at least `len` elements of initialised bytes, aligned for any `Plain`,
    // all bit patterns of which are values; it is neither moved nor freed while the slice lives.
    let slice = unsafe { std::slice::from_raw_parts_mut(chunk.start().cast().as_ptr(), len) };
    let result = body(slice);
    keep(chunk);
    result
}

/// The smallest chunk of this thread that has so many bytes, or a new one.
fn take(bytes: usize) -> Chunk {
    let kept = FREE.with_borrow_mut(|free| {
        let fits = free.iter().enumerate().filter(|(_, chunk)| chunk.capacity() >= bytes);
        let best = fits.min_by_key(|(_, chunk)| chunk.capacity())?.0;
        Some(free.swap_remove(best))
    });
    kept.unwrap_or_else(|| {
        let bytes = if bytes < LARGE { bytes } else { bytes.max(HUGE_PAGE) };
        Chunk::capacity_for(bytes).and_then(Chunk::new).expect("memory for a kernel's scratch")
    })
}

/// Keeps a chunk for the next call, rather than the smallest of those there are if they are many.
fn keep(chunk: Chunk) {
    if chunk.capacity() > KEPT_BYTES {
        return;
    }
    let dropped = FREE.with_borrow_mut(|free| {
        free.push(chunk);
        let smallest = free.iter().enumerate().min_by_key(|(_, chunk)| chunk.capacity())?.0;
        (free.len() > KEPT).then(|| free.swap_remove(smallest))
    });
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_blocks_are_apart_and_aligned() {
        with(100, |a: &mut [f32]| {
            a.fill(1.0);
            with(100, |b: &mut [f64]| {
                b.fill(2.0);
                assert_eq!(b.as_ptr() as usize % 64, 0);
            });
            assert_eq!(a, [1.0; 100]);
        });
        with(0, |a: &mut [u8]| assert!(a.is_empty()));
    }
}
