//! The vectors of AVX2, 32 bytes long, for products.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Lanes, Loops, Simd, Sums, WindowLoops};
use crate::kernels::gemm::tile::{self, Format, Tile, TileArgs, Tiled, block_steps, tiles};
use crate::kernels::isa::{Isa, Kind, vectorise};

/// # Safety
/// That of [`Tile`].
#[target_feature(enable = "avx2,fma")]
unsafe fn run<S: Simd, const ROWS: usize, const VECS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { tile::run::<S, ROWS, VECS, PACKED>(args) }
}

/// All bits of the lanes that count, then none; a mask is a window into it.
static LANES: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// # Safety
/// That of [`tile::run_whole`].
#[target_feature(enable = "avx2,fma")]
unsafe fn run_whole<S: Simd, const ROWS: usize, const PACKED: bool>(
    args: &TileArgs<'_, S::Word, S::Acc>,
) {
    // SAFETY: the caller's promise.
    unsafe { tile::run_whole::<S, ROWS, 2, PACKED>(args) }
}

/// A [`Simd`] whose words and sums have as many bits, so that vectors have as many of either.
macro_rules! simd {
    (
        $(#[$doc:meta])* $name:ident, tiles [$($height:literal)*], whole [$($whole:literal)*],
        in place $in_place:tt, loops $loops:tt,
        $word:ty => $acc:ty, $lanes:literal, $words:ty => $vec:ty,
        $load:ident, $load_masked:ident, $splat:ident, $fma:ident,
        $load_sums:ident, $load_sums_masked:ident, $add:ident, $store:ident, $store_masked:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate::kernels::gemm) struct $name(());

        impl $name {
            /// The token, if the machine has the instructions.
            pub(in crate::kernels::gemm) fn get(isa: Isa) -> Option<&'static Self> {
                (isa.kind() == Kind::Avx2).then_some(&$name(()))
            }
        }

        impl Tiled<$word, $acc> for $name {
            fn format(&self) -> Format {
                Format {
                    lanes: $lanes,
                    heights: &[$($height),*],
                    vecs: 2,
                    in_place: $in_place,
                    in_blocks: false,
                    most_steps: block_steps::<$word>(),
                }
            }

            fn tile(&self, rows: usize, vecs: usize, packed: bool) -> Tile<$word, $acc> {
                tiles!(run, (rows, vecs, packed), $in_place, [$($height)*], [1 2])
            }

            fn whole_tile(
                &self,
                rows: usize,
                vecs: usize,
                packed: bool,
            ) -> Option<Tile<$word, $acc>> {
                match (rows, vecs, packed) {
                    $(
                        ($whole, 2, true) => Some(run_whole::<Self, $whole, true>),
                        ($whole, 2, false) if $in_place => Some(run_whole::<Self, $whole, false>),
                    )*
                    _ => None,
                }
            }

            simd!(@loops $loops, $word, $acc);
        }

        impl Simd for $name {
            type Word = $word;
            type Acc = $acc;
            type Vec = $vec;
            type Words = $words;
            type Mask = __m256i;

            const LANES: usize = $lanes;

            vectorise!("avx2,fma");

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
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn load_masked(from: *const Self::Word, mask: Self::Mask) -> Self::Words {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe { $load_masked(from.cast(), mask) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const Self::Word) -> Self::Words {
                // SAFETY: the caller's promise.
                unsafe { $splat(from.cast::<$acc>().read()) }
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
                    let sums = if add { $add($load_sums_masked(to, mask), sums) } else { sums };
                    $store_masked(to, mask, sums)
                }
            }

            #[inline(always)]
            unsafe fn store_all(to: *mut Self::Acc, sums: Self::Vec, add: bool) {
                // SAFETY: the caller's promise; no alignment is needed.
                unsafe {
                    let sums = if add { $add($load_sums(to), sums) } else { sums };
                    $store(to, sums)
                }
            }
        }
    };
    (@loops true, $word:ty, $acc:ty) => {
        fn loops(&self) -> Option<&dyn Loops<$word, $acc>> {
            Some(self)
        }
    };
    (@loops windows, $word:ty, $acc:ty) => {
        simd!(@loops true, $word, $acc);

        fn windows(&self) -> Option<&dyn WindowLoops<$word, $acc>> {
            Some(self)
        }
    };
    (@loops false, $word:ty, $acc:ty) => {};
}

simd!(
    /// `f32` with AVX2 and FMA.
    Avx2F32, tiles [1 2 3 4 5 6], whole [4 5 6], in place true, loops windows,
    f32 => f32, 8, __m256 => __m256,
    _mm256_loadu_ps, _mm256_maskload_ps, _mm256_set1_ps, _mm256_fmadd_ps,
    _mm256_loadu_ps, _mm256_maskload_ps, _mm256_add_ps, _mm256_storeu_ps, _mm256_maskstore_ps
);
simd!(
    /// `f64` with AVX2 and FMA.
    Avx2F64, tiles [1 2 4 6], whole [4 6], in place true, loops true,
    f64 => f64, 4, __m256d => __m256d,
    _mm256_loadu_pd, _mm256_maskload_pd, _mm256_set1_pd, _mm256_fmadd_pd,
    _mm256_loadu_pd, _mm256_maskload_pd, _mm256_add_pd, _mm256_storeu_pd, _mm256_maskstore_pd
);
simd!(
    /// `i32`, wrapping, with AVX2.
    Avx2I32, tiles [1 2 4], whole [], in place true, loops true,
    i32 => i32, 8, __m256i => __m256i,
    load_i32, _mm256_maskload_epi32, _mm256_set1_epi32, mul_add_i32,
    load_i32, _mm256_maskload_epi32, _mm256_add_epi32, store_i32, _mm256_maskstore_epi32
);
simd!(
    /// `i64`, wrapping, with AVX2.
    Avx2I64, tiles [1 2 4], whole [], in place true, loops true,
    i64 => i64, 4, __m256i => __m256i,
    load_i64, _mm256_maskload_epi64, _mm256_set1_epi64x, mul_add_i64,
    load_i64, _mm256_maskload_epi64, _mm256_add_epi64, store_i64, _mm256_maskstore_epi64
);
simd!(
    /// Pairs of `i16`, summed in `i32`, wrapping, with AVX2.
    Avx2Pairs, tiles [1 2 4 6], whole [4 6], in place false, loops false,
    u32 => i32, 8, __m256i => __m256i,
    load_i32, _mm256_maskload_epi32, _mm256_set1_epi32, mul_add_pairs,
    load_i32, _mm256_maskload_epi32, _mm256_add_epi32, store_i32, _mm256_maskstore_epi32
);

impl Sums for Avx2F32 {
    #[inline(always)]
    fn mask_of(lanes: Range<usize>) -> __m256i {
        // SAFETY: who has the token, for which masks are made, has the features.
        unsafe { _mm256_andnot_si256(Self::mask(lanes.start), Self::mask(lanes.end)) }
    }

    #[inline(always)]
    unsafe fn even(low: __m256, high: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { every_second::<0b10_00_10_00>(low, high) }
    }

    #[inline(always)]
    unsafe fn odd(low: __m256, high: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { every_second::<0b11_01_11_01>(low, high) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_sub_ps(a, b) }
    }
}

impl Lanes for Avx2F32 {
    type Choice = __m256i;

    #[inline(always)]
    unsafe fn choice(words: &[i32; 16]) -> __m256i {
        // SAFETY: the caller's promise; the vector is half of an array's.
        unsafe { load_i32(words.as_ptr()) }
    }

    #[inline(always)]
    unsafe fn pick(words: __m256, choice: __m256i) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { _mm256_permutevar8x32_ps(words, choice) }
    }

    #[inline(always)]
    unsafe fn load_or(from: *const f32, mask: __m256i, others: __m256) -> __m256 {
        // SAFETY: the caller's promise; other lanes are not accessed.
        unsafe {
            _mm256_blendv_ps(others, _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask))
        }
    }

    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { number_or_nan(a, b, _mm256_max_ps(a, b), _mm256_and_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { number_or_nan(a, b, _mm256_min_ps(a, b), _mm256_or_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn max_of_numbers(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { unless_equal(a, b, _mm256_max_ps(a, b), _mm256_and_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn min_of_numbers(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller's promise.
        unsafe { unless_equal(a, b, _mm256_min_ps(a, b), _mm256_or_ps(a, b)) }
    }

    #[inline(always)]
    unsafe fn see_nan(seen: __m256i, a: __m256, b: __m256) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let unordered = _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b);
            _mm256_or_si256(seen, _mm256_castps_si256(unordered))
        }
    }

    #[inline(always)]
    unsafe fn is_any(lanes: __m256i) -> bool {
        // SAFETY: the caller's promise.
        unsafe { _mm256_movemask_epi8(lanes) != 0 }
    }
}

/// `equal` where `a` and `b` are; else `other`.
#[inline]
#[target_feature(enable = "avx2")]
fn unless_equal(a: __m256, b: __m256, other: __m256, equal: __m256) -> __m256 {
    _mm256_blendv_ps(other, equal, _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b))
}

/// `equal` where `a` and `b` are; else `a` if it is NaN; else `other`.
#[inline]
#[target_feature(enable = "avx2")]
fn number_or_nan(a: __m256, b: __m256, other: __m256, equal: __m256) -> __m256 {
    let number = unless_equal(a, b, other, equal);
    _mm256_blendv_ps(number, a, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a))
}

/// Two lanes of each half of two vectors, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn every_second<const CHOICE: i32>(low: __m256, high: __m256) -> __m256 {
    // (Those of the low halves of both come first.)
    let lanes = _mm256_castps_pd(_mm256_shuffle_ps::<CHOICE>(low, high));
    _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(lanes))
}

/// # Safety
/// The features are there, and 8 numbers may be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_i32(from: *const i32) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
/// The features are there, and 4 numbers may be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_i64(from: *const i64) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
/// The features are there, and 8 numbers may be written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_i32(to: *mut i32, numbers: __m256i) {
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), numbers) }
}

/// # Safety
/// The features are there, and 4 numbers may be written.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store_i64(to: *mut i64, numbers: __m256i) {
    // SAFETY: the caller's promise.
    unsafe { _mm256_storeu_si256(to.cast(), numbers) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn mul_add_pairs(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
    _mm256_add_epi32(_mm256_madd_epi16(a, b), sum)
}

#[inline]
#[target_feature(enable = "avx2")]
fn mul_add_i32(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
    _mm256_add_epi32(_mm256_mullo_epi32(a, b), sum)
}

/// There is no product of 64 bits: a product of the low halves, and those of each low with the other
/// high half, whose low bits count for the high half of the sum.
#[inline]
#[target_feature(enable = "avx2")]
fn mul_add_i64(a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
    let cross = _mm256_mullo_epi32(a, _mm256_shuffle_epi32::<0b10_11_00_01>(b));
    let cross = _mm256_add_epi32(cross, _mm256_srli_epi64::<32>(cross));
    let product = _mm256_add_epi64(_mm256_mul_epu32(a, b), _mm256_slli_epi64::<32>(cross));
    _mm256_add_epi64(product, sum)
}
