//! Where a product's sums are written, and how they are converted to the result's type.

use super::engine::Shared;
use super::number::Output;
use crate::kernels::isa::Isa;

/// The elements of a result, of any type, and how sums are converted to them.
pub(super) trait Destination<A>: Sync {
    /// The same elements, if they are sums.
    fn sums(&self) -> Option<Shared<A>>;

    /// Writes sums to places `stride` apart.
    ///
    /// # Safety
    /// From `at` on they may be written, and nothing else accesses them.
    unsafe fn write(&self, isa: Isa, at: usize, stride: usize, sums: &[A]);

    /// The bytes of neighbouring elements.
    ///
    /// # Safety
    /// They may be written, and nothing else accesses them while the result lives.
    #[allow(clippy::mut_from_ref)] // The caller vouches for it.
    unsafe fn bytes(&self, at: usize, count: usize) -> &mut [u8];
}

impl<A: Copy, O: Output<A>> Destination<A> for Shared<O> {
    fn sums(&self) -> Option<Shared<A>> {
        O::SAME.then(|| Shared(self.get().cast()))
    }

    unsafe fn write(&self, isa: Isa, at: usize, stride: usize, sums: &[A]) {
        let start = self.get().wrapping_add(at);
        if stride == 1 {
            // SAFETY: the caller's promise; elements are `Plain`, so whatever is there is one.
            let places = unsafe { std::slice::from_raw_parts_mut(start, sums.len()) };
            return isa.run(
                #[inline(always)]
                || {
                    let pairs = places.iter_mut().zip(sums);
                    pairs.for_each(|(place, sum)| *place = O::from_sum(*sum));
                },
            );
        }
        for (i, sum) in sums.iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { start.add(i * stride).write(O::from_sum(*sum)) };
        }
    }

    unsafe fn bytes(&self, at: usize, count: usize) -> &mut [u8] {
        let start = self.get().wrapping_add(at).cast();
        // SAFETY: the caller's promise; elements are `Plain`, all of whose bytes are initialised
        // and may be anything.
        unsafe { std::slice::from_raw_parts_mut(start, count * size_of::<O>()) }
    }
}
