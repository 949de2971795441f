//! Vectors of 32 bytes.

use std::arch::x86_64::*;

use super::Simd;
use crate::kernels::gemm::isa::{Isa, Kind};
use crate::kernels::gemm::tile::{self, Tile, TileArgs, tiles};

/// # Safety
/// That of [`Tile`].
#[target_feature(enable = "avx2,fma")]
unsafe fn run<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S>,
) {
    // SAFETY: the caller's promise.
    unsafe { tile::run::<S, ROWS, VECS, PACKED>(args) }
}

/// All bits of the lanes that count, then none; a mask is a window into it.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// The parts of a [`Simd`] that are the same for floats of both widths.
macro_rules! floats {
    (
        $(#[$doc:meta])* $name:ident, $float:ty, $lanes:literal, $vec:ty,
        $load:ident, $load_masked:ident, $splat:ident, $fma:ident, $add:ident, $store:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate::kernels::gemm) struct $name(());

        impl $name {
            /// The token, if the machine has the instructions.
            pub(in crate::kernels::gemm) fn new(isa: Isa) -> Option<Self> {
                (isa.kind() == Kind::Avx2).then_some($name(()))
            }
        }

        impl Simd for $name {
            type Word = $float;
            type Acc = $float;
            type Vec = $vec;
            type Words = $vec;
            type Mask = __m256i;

            const LANES: usize = $lanes;
            const ROWS: usize = 6;
            const VECS: usize = 2;

            tiles!(run, [1 2 3 4 5 6], [1 2]);

            #[inline(always)]
            fn zero() -> Self::Vec {
                // SAFETY: all bits zero is a vector.
                unsafe { std::mem::zeroed() }
            }

            #[inline(always)]
            fn mask(lanes: usize) -> Self::Mask {
                let window = &LANES[8 - lanes * (8 / $lanes)..][..8];
                // SAFETY: the window has the 32 bytes of a vector, any of which are a mask.
                unsafe { window.as_ptr().cast::<__m256i>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn load(from: *const Self::Word) -> Self::Words {
                // SAFETY: the caller's promise; no alignment is needed.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn load_masked(from: *const Self::Word, mask: Self::Mask) -> Self::Words {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe { $load_masked(from, mask) }
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
                    let sums = if add { $add($load_masked(to, mask), sums) } else { sums };
                    $store(to, mask, sums)
                }
            }
        }
    };
}

floats!(
    /// `f32` with AVX2 and FMA.
    Avx2F32, f32, 8, __m256, _mm256_loadu_ps, _mm256_maskload_ps, _mm256_set1_ps, _mm256_fmadd_ps,
    _mm256_add_ps, _mm256_maskstore_ps
);
floats!(
    /// `f64` with AVX2 and FMA.
    Avx2F64, f64, 4, __m256d, _mm256_loadu_pd, _mm256_maskload_pd, _mm256_set1_pd,
    _mm256_fmadd_pd, _mm256_add_pd, _mm256_maskstore_pd
);
