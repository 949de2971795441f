//! Temporary memory of kernels, kept by each thread from call to call: fresh memory costs a page
//! fault for each 4 KB, which for a small product is as long as the product itself.

use std::cell::RefCell;

use super::bytes::Plain;

/// 64 bytes at an address divisible by 64, so that no vector load crosses a cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// How many blocks a thread keeps, and how many bytes the largest of them may have.
const KEPT_BLOCKS: usize = 6;
const KEPT_BYTES: usize = 16 << 20;

/// Calls `body` with `len` elements of unspecified content, aligned to 64 bytes.
pub(super) fn with<T: Plain, R>(len: usize, body: impl FnOnce(&mut [T]) -> R) -> R {
    let lines = len.checked_mul(size_of::<T>()).expect("scratch fits memory").div_ceil(64);
    let mut block = FREE.with_borrow_mut(|free| {
        let fits = free.iter().position(|block| block.len() >= lines);
        fits.map(|i| free.swap_remove(i)).unwrap_or_default()
    });
    if block.len() < lines {
        block = vec![Line([0; 64]); lines];
    }
    // SAFETY: `block` holds at least `len` elements of initialised bytes, aligned for any `Plain`,
    // all bit patterns of which are values; it is neither moved nor freed while the slice lives.
    let slice = unsafe { std::slice::from_raw_parts_mut(block.as_mut_ptr().cast(), len) };
    let result = body(slice);
    FREE.with_borrow_mut(|free| {
        if block.len() * 64 <= KEPT_BYTES && free.len() < KEPT_BLOCKS {
            free.push(block);
        }
    });
    result
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
