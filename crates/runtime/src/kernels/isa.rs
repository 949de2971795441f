//! Plain loops compiled for the widest vectors that the processor has.

/// Runs `body`, which the compiler translates once for each instruction set; the processor decides
/// which of them runs. Works for what is inlined into `body` only, so mark it `#[inline(always)]`,
/// the closure included.
#[inline]
pub(super) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        if has_avx512() {
            // SAFETY: the processor has just been found to have these instructions.
            return unsafe { with_avx512(body) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the processor has just been found to have these instructions.
            return unsafe { with_avx2(body) };
        }
    }
    body()
}

/// Asks for the first cache lines of a slice ahead of their use.
#[inline(always)]
pub(super) fn prefetch<T>(slice: &[T]) {
    // More than these the processor fetches by itself, once it sees what is going on.
    const MOST_BYTES: usize = 1024;
    for offset in (0..size_of_val(slice).min(MOST_BYTES)).step_by(64) {
        prefetch_line(slice.as_ptr().cast::<u8>().wrapping_add(offset));
    }
}

/// Asks for the cache line at an address, which may be any.
#[inline(always)]
pub(super) fn prefetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which accesses nothing; SSE is part of the architecture.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// As [`prefetch_line`], but only into the second-level cache.
#[inline(always)]
pub(super) fn prefetch_far(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Whether the processor has the parts of AVX-512 that kernels use.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma")]
fn with_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}
