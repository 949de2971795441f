//! Temporary memory of kernels, from the pool of the run: fresh memory costs a page fault for each
//! 4 KB, which for a small product is as long as the product itself.

use super::bytes::Plain;
use crate::bounds;

/// Calls `body` with `len` elements of unspecified content, aligned to 64 bytes, so that no vector
/// load crosses a cache line. If the run has no memory for them it stops, and `body` is not called.
pub(super) fn with<T: Plain>(len: usize, body: impl FnOnce(&mut [T])) {
    let bytes = len.checked_mul(size_of::<T>()).expect("scratch fits memory");
    bounds::with_scratch(bytes, |bytes| body(super::bytes::cast_mut(bytes)));
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
