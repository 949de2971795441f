//! Instruction sets, and plain loops compiled for each of them.

/// A set of instructions that this machine was found to have: only [`Isa::all`] makes values, so a
/// value proves that code for it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Isa(Kind);

/// What an [`Isa`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// AVX-512 F, BW, DQ, VL and CD, with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the compiler was told that all machines have.
    Portable,
}

impl Kind {
    fn is_here(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Kind::Portable => true,
        }
    }
}

impl Isa {
    /// The sets that this machine has, the best one first.
    pub(super) fn all() -> impl Iterator<Item = Isa> {
        let kinds = [
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2,
            Kind::Portable,
        ];
        kinds.into_iter().filter(|kind| kind.is_here()).map(Isa)
    }

    /// The best set that this machine has.
    pub(super) fn best() -> Isa {
        Isa::all().next().unwrap_or(Isa(Kind::Portable))
    }

    /// Which it is.
    pub(super) fn kind(self) -> Kind {
        self.0
    }

    /// Calls `body`, which the compiler translates once for each set, for this one. Works for what is
    /// inlined into `body` only, so mark it `#[inline(always)]`, the closure included.
    #[inline(always)]
    pub(super) fn run<R>(self, body: impl FnOnce() -> R) -> R {
        match self.0 {
            // SAFETY: an `Isa` of this kind exists only where `all` found the features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { with_avx512(body) },
            // SAFETY: an `Isa` of this kind exists only where `all` found the features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { with_avx2(body) },
            Kind::Portable => body(),
        }
    }
}

/// [`Isa::run`] with the best set. In a loop, rather ask for that once.
#[inline]
pub(super) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    Isa::best().run(body)
}

/// The method `vectorise` of a token that proves these features: calls `body`, compiled for them if it
/// is inlined.
#[cfg(target_arch = "x86_64")]
macro_rules! vectorise {
    ($features:literal) => {
        #[inline(always)]
        fn vectorise<R>(self, body: impl FnOnce() -> R) -> R {
            #[target_feature(enable = $features)]
            fn with<R>(body: impl FnOnce() -> R) -> R {
                body()
            }
            // SAFETY: the token proves the features.
            unsafe { with(body) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use vectorise;

/// Asks for the first cache lines of a slice ahead of their use.
#[inline(always)]
pub(super) fn prefetch<T>(slice: &[T]) {
    // More than these the processor fetches by itself, once it sees what is going on.
    const MAX_BYTES: usize = 1024;
    for offset in (0..size_of_val(slice).min(MAX_BYTES)).step_by(64) {
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
    // SAFETY: a hint, which accesses nothing; SSE is part of the architecture.
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
        && is_x86_feature_detected!("avx2")
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
