//! Instruction sets that kernels are written for.

#[cfg(target_arch = "x86_64")]
use crate::kernels::isa::has_avx512;

/// A set of instructions that this machine was found to have: only [`Isa::all`] makes values, so a
/// value proves that code for it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Kind);

/// What an [`Isa`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// AVX-512 F, BW, DQ and VL, with FMA.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Whatever the compiler was told that all machines have.
    Portable,
}

impl Isa {
    /// The sets that this machine has, the best one first.
    pub(crate) fn all() -> impl Iterator<Item = Isa> {
        let mut sets = [None; 3];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            sets[0] = (avx2 && has_avx512()).then_some(Kind::Avx512);
            sets[1] = avx2.then_some(Kind::Avx2);
        }
        sets[2] = Some(Kind::Portable);
        sets.into_iter().flatten().map(Isa)
    }

    /// The best set that this machine has.
    pub(crate) fn best() -> Isa {
        Isa::all().next().unwrap_or(Isa(Kind::Portable))
    }

    /// Which it is.
    pub(crate) fn kind(self) -> Kind {
        self.0
    }

    /// Calls `body`, compiled for this set if it is inlined: its loops use these instructions.
    #[inline(always)]
    pub(crate) fn run<R>(self, body: impl FnOnce() -> R) -> R {
        match self.0 {
            // SAFETY: an `Isa` of this kind exists only where `all` found the features.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { run_avx512(body) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { run_avx2(body) },
            Kind::Portable => body(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_avx512<R>(body: impl FnOnce() -> R) -> R {
    body()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<R>(body: impl FnOnce() -> R) -> R {
    body()
}
