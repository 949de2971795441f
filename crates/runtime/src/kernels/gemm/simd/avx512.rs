//! Vectors of 64 bytes.

use std::arch::x86_64::*;

use super::Simd;
use crate::kernels::gemm::isa::{Isa, Kind};
use crate::kernels::gemm::tile::{self, Tile, TileArgs, tiles};

/// # Safety
/// That of [`Tile`].
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S>,
) {
    // SAFETY: the caller's promise.
    unsafe { tile::run::<S, ROWS, VECS, PACKED>(args) }
}

/// The parts of a [`Simd`] that are the same for floats of both widths.
macro_rules! floats {
    (
        $(#[$doc:meta])* $name:ident, $float:ty, $lanes:literal, $vec:ty, $mask:ty,
        $load:ident, $load_masked:ident, $splat:ident, $fma:ident, $add:ident,
        $store:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate::kernels::gemm) struct $name(());

        impl $name {
            /// The token, if the machine has the instructions.
            pub(in crate::kernels::gemm) fn new(isa: Isa) -> Option<Self> {
                (isa.kind() == Kind::Avx512).then_some($name(()))
            }
        }

        impl Simd for $name {
            type Word = $float;
            type Acc = $float;
            type Vec = $vec;
            type Words = $vec;
            type Mask = $mask;

            const LANES: usize = $lanes;
            const ROWS: usize = 14;
            const VECS: usize = 2;

            tiles!(run, [1 2 3 4 5 6 7 8 9 10 11 12 13 14], [1 2]);

            #[inline(always)]
            fn zero() -> Self::Vec {
                // SAFETY: all bits zero is a vector.
                unsafe { std::mem::zeroed() }
            }

            #[inline(always)]
            fn mask(lanes: usize) -> Self::Mask {
                ((1_u32 << lanes) - 1) as $mask
            }

            #[inline(always)]
            unsafe fn load(from: *const Self::Word) -> Self::Words {
                // SAFETY: the caller's promise; no alignment is needed.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn load_masked(from: *const Self::Word, mask: Self::Mask) -> Self::Words {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe { $load_masked(mask, from) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const Self::Word) -> Self::Words {
                // SAFETY: the caller's promise.
                unsafe { $splat(from.read()) }
            }

            #[inline(always)]
            unsafe fn mul_add(a: Self::Words, b: Self::Words, sum: Self::Vec) -> Self::Vec {
                // SAFETY: the caller's promise.
                unsafe { $fma(a, b, sum) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut Self::Acc, mask: Self::Mask, sums: Self::Vec, add: bool) {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe {
                    let sums = if add { $add($load_masked(mask, to), sums) } else { sums };
                    $store(to, mask, sums)
                }
            }
        }
    };
}

floats!(
    /// `f32` with AVX-512.
    Avx512F32, f32, 16, __m512, __mmask16, _mm512_loadu_ps,
    _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_mask_storeu_ps
);
floats!(
    /// `f64` with AVX-512.
    Avx512F64, f64, 8, __m512d, __mmask8, _mm512_loadu_pd,
    _mm512_maskz_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_mask_storeu_pd
);
