//! The vectors of AVX-512, 64 bytes long, for products.

use std::arch::asm;
use std::arch::x86_64::*;
use std::hint::black_box;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::{Avx2F32, Halved, Lanes, Loops, Simd, Sums, WindowLoops};
use crate::kernels::gemm::few_steps::{FewSteps, FewStepsKernel};
use crate::kernels::gemm::number::{Bf16, F16};
use crate::kernels::gemm::tile::{self, Format, Tile, TileArgs, Tiled, block_steps, tiles};
use crate::kernels::isa::{Isa, Kind, vectorise};

/// A [`Simd`] whose words and sums have as many bits, so that vectors have as many of either.
macro_rules! simd {
    (
        $(#[$doc:meta])* $name:ident if $found:expr, $features:literal,
        tiles [$($height:literal)*], whole [$($whole:literal)*], single [$($single:literal)*], halves [$($half:literal)*], in place $in_place:tt, loops $loops:tt,
        $word:ty => $acc:ty, $lanes:literal, $words:ty => $vec:ty, $mask:ty,
        $load:ident, $load_masked:ident, $splat:ident, $fma:ident,
        $load_sums:ident, $add:ident, $store:ident, $totals:ident
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(in crate::kernels::gemm) struct $name(());

        impl $name {
            /// The token, if the machine has the instructions.
            pub(in crate::kernels::gemm) fn get(isa: Isa) -> Option<&'static Self> {
                (isa.kind() == Kind::Avx512 && $found).then_some(&$name(()))
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
                /// # Safety
                /// That of [`Tile`].
                #[target_feature(enable = $features)]
                unsafe fn run<
                    S: Simd,
                    const ROWS: usize,
                    const VECS: usize,
                    const PACKED: bool,
                >(
                    args: &TileArgs<'_, S::Word, S::Acc>,
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { tile::run::<S, ROWS, VECS, PACKED>(args) }
                }
                tiles!(run, (rows, vecs, packed), $in_place, [$($height)*], [1 2])
            }

            fn whole_tile(
                &self,
                rows: usize,
                vecs: usize,
                packed: bool,
            ) -> Option<Tile<$word, $acc>> {
                /// # Safety
                /// That of [`tile::run_whole`].
                #[target_feature(enable = $features)]
                unsafe fn run<
                    S: Simd,
                    const ROWS: usize,
                    const VECS: usize,
                    const PACKED: bool,
                >(
                    args: &TileArgs<'_, S::Word, S::Acc>,
                ) {
                    // SAFETY: the caller's promise.
                    unsafe { tile::run_whole::<S, ROWS, VECS, PACKED>(args) }
                }
                match (rows, vecs, packed) {
                    $(
                        ($whole, 2, true) => Some(run::<Self, $whole, 2, true>),
                        ($whole, 2, false) => Some(run::<Self, $whole, 2, false>),
                    )*
                    $(
                        ($single, 1, true) => Some(run::<Self, $single, 1, true>),
                        ($single, 1, false) => Some(run::<Self, $single, 1, false>),
                    )*
                    _ => None,
                }
            }

            simd!(@halves [$($half)*], $features, $word, $acc);
            simd!(@loops $loops, $word, $acc);
        }

        impl Simd for $name {
            type Word = $word;
            type Acc = $acc;
            type Vec = $vec;
            type Words = $words;
            type Mask = $mask;

            const LANES: usize = $lanes;

            vectorise!($features);

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
                unsafe { $load(from.cast()) }
            }

            #[inline(always)]
            unsafe fn load_masked(from: *const Self::Word, mask: Self::Mask) -> Self::Words {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe { $load_masked(mask, from.cast()) }
            }

            #[inline(always)]
            unsafe fn splat(from: *const Self::Word) -> Self::Words {
                // SAFETY: the caller's promise.
                unsafe { $splat(from.read().cast_signed_word()) }
            }

            #[inline(always)]
            unsafe fn mul_add(a: Self::Words, b: Self::Words, sum: Self::Vec) -> Self::Vec {
                // SAFETY: the caller's promise.
                unsafe { $fma(a, b, sum) }
            }

            #[inline(always)]
            unsafe fn totals(vectors: [Self::Vec; 4]) -> [Self::Acc; 4] {
                // SAFETY: the caller's promise.
                unsafe { $totals(vectors) }
            }

            #[inline(always)]
            unsafe fn store(to: *mut Self::Acc, mask: Self::Mask, sums: Self::Vec, add: bool) {
                // SAFETY: the caller's promise; lanes outside the mask are not accessed.
                unsafe {
                    let sums = if add { $add($load_sums(mask, to), sums) } else { sums };
                    $store(to, mask, sums)
                }
            }
        }
    };
    (@halves [], $features:literal, $word:ty, $acc:ty) => {};
    (@halves [$($height:literal)*], $features:literal, $word:ty, $acc:ty) => {
        fn half_tile(&self, rows: usize, whole: usize, packed: bool) -> Option<Tile<$word, $acc>> {
            /// # Safety
            /// That of [`tile::run_half`].
            #[target_feature(enable = $features)]
            unsafe fn run<S: Halved<Word = $word, Acc = $acc>, const ROWS: usize, const WHOLE: usize, const PACKED: bool>(
                args: &TileArgs<'_, $word, $acc>,
            ) {
                // SAFETY: the caller's promise.
                unsafe { tile::run_half::<S, ROWS, WHOLE, PACKED>(args) }
            }
            match (rows, whole, packed) {
                $(
                    ($height, 0, true) => Some(run::<Self, $height, 0, true>),
                    ($height, 0, false) => Some(run::<Self, $height, 0, false>),
                    ($height, 1, true) => Some(run::<Self, $height, 1, true>),
                    ($height, 1, false) => Some(run::<Self, $height, 1, false>),
                )*
                _ => None,
            }
        }

        fn few_steps(&self, whole: usize, is_half: bool) -> Option<FewStepsKernel<$word, $acc>> {
            /// # Safety
            /// That of [`FewStepsKernel`].
            #[target_feature(enable = $features)]
            unsafe fn wholes<S: Simd, const COUNT: usize>(of: &FewSteps<S::Word, S::Acc>) {
                // SAFETY: the caller's promise.
                unsafe { of.wholes::<S, COUNT>() }
            }
            /// # Safety
            /// That of [`FewStepsKernel`].
            #[target_feature(enable = $features)]
            unsafe fn halves<S: Halved, const WHOLE: usize>(of: &FewSteps<S::Word, S::Acc>) {
                // SAFETY: the caller's promise.
                unsafe { of.halves::<S, WHOLE>() }
            }
            match (whole, is_half) {
                (1, false) => Some(wholes::<Self, 1>),
                (2, false) => Some(wholes::<Self, 2>),
                (0, true) => Some(halves::<Self, 0>),
                (1, true) => Some(halves::<Self, 1>),
                _ => None,
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

/// What the functions that fill a vector with a word take.
trait SplatWord {
    type As;
    fn cast_signed_word(self) -> Self::As;
}

macro_rules! splat_words {
    ($($ty:ty => $as:ty),*) => { $(
        impl SplatWord for $ty {
            type As = $as;
            #[inline(always)]
            fn cast_signed_word(self) -> $as {
                self as $as
            }
        }
    )* };
}
splat_words!(f32 => f32, f64 => f64, i32 => i32, i64 => i64, u32 => i32, i8 => i8, u8 => u8, Bf16 => Bf16, F16 => F16);

simd!(
    /// `f32`.
    Avx512F32 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 3 4 5 6 7 8 9 10 11 12 13 14], whole [8 9 10 11 12 13 14],
    single [8 9 10 11 12 13 14], halves [12 13 14], in place true, loops windows,
    f32 => f32, 16, __m512 => __m512, __mmask16,
    _mm512_loadu_ps, _mm512_maskz_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps,
    _mm512_maskz_loadu_ps, _mm512_add_ps, _mm512_mask_storeu_ps,
    totals_ps
);
simd!(
    /// `f64`.
    Avx512F64 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 4 6 8 10 12 14], whole [8 10 12 14], single [8 10 12 14], halves [], in place true, loops true,
    f64 => f64, 8, __m512d => __m512d, __mmask8,
    _mm512_loadu_pd, _mm512_maskz_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd,
    _mm512_maskz_loadu_pd, _mm512_add_pd, _mm512_mask_storeu_pd,
    totals_pd
);
simd!(
    /// `i32`, wrapping.
    Avx512I32 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 4 8], whole [8], single [], halves [], in place true, loops true,
    i32 => i32, 16, __m512i => __m512i, __mmask16,
    _mm512_loadu_epi32, _mm512_maskz_loadu_epi32, _mm512_set1_epi32, mul_add_i32,
    _mm512_maskz_loadu_epi32, _mm512_add_epi32, _mm512_mask_storeu_epi32,
    totals_epi32
);
simd!(
    /// `i64`, wrapping.
    Avx512I64 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 4 8], whole [8], single [], halves [], in place true, loops true,
    i64 => i64, 8, __m512i => __m512i, __mmask8,
    _mm512_loadu_epi64, _mm512_maskz_loadu_epi64, _mm512_set1_epi64, mul_add_i64,
    _mm512_maskz_loadu_epi64, _mm512_add_epi64, _mm512_mask_storeu_epi64,
    totals_epi64
);
simd!(
    /// Pairs of `bf16`, summed in `f32`. Subnormal numbers count as zero.
    Avx512Bf16 if is_x86_feature_detected!("avx512bf16"),
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16",
    tiles [1 2 4 6 8 10 12 14], whole [10 12 14], single [], halves [], in place true, loops false,
    u32 => f32, 16, __m512i => __m512, __mmask16,
    _mm512_loadu_epi32, _mm512_maskz_loadu_epi32, _mm512_set1_epi32, mul_add_bf16,
    _mm512_maskz_loadu_ps, _mm512_add_ps, _mm512_mask_storeu_ps,
    totals_ps
);
simd!(
    /// `bf16` that become `f32` when they are loaded: for operands that are read once.
    Avx512WideBf16 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 4], whole [4], single [], halves [], in place true, loops true,
    Bf16 => f32, 16, __m512 => __m512, __mmask16,
    load_bf16, load_masked_bf16, splat_bf16, _mm512_fmadd_ps,
    _mm512_maskz_loadu_ps, _mm512_add_ps, _mm512_mask_storeu_ps,
    totals_ps
);
simd!(
    /// `f16` that become `f32` when they are loaded: for operands that are read once.
    Avx512WideF16 if true, "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl",
    tiles [1 2 4], whole [4], single [], halves [], in place true, loops true,
    F16 => f32, 16, __m512 => __m512, __mmask16,
    load_f16, load_masked_f16, splat_f16, _mm512_fmadd_ps,
    _mm512_maskz_loadu_ps, _mm512_add_ps, _mm512_mask_storeu_ps,
    totals_ps
);
simd!(
    /// `i8` that become words when they are loaded: for operands that are read once. Sums wrap.
    Avx512WideI8 if is_x86_feature_detected!("avx512vnni"),
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    tiles [1 2 4], whole [4], single [], halves [], in place true, loops true,
    i8 => i32, 16, __m512i => __m512i, __mmask16,
    load_i8, load_masked_i8, splat_i8, mul_add_i16,
    _mm512_maskz_loadu_epi32, _mm512_add_epi32, _mm512_mask_storeu_epi32,
    totals_epi32
);
simd!(
    /// `u8` that become words when they are loaded: for operands that are read once. Sums wrap.
    Avx512WideU8 if is_x86_feature_detected!("avx512vnni"),
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    tiles [1 2 4], whole [4], single [], halves [], in place true, loops true,
    u8 => i32, 16, __m512i => __m512i, __mmask16,
    load_u8, load_masked_u8, splat_u8, mul_add_i16,
    _mm512_maskz_loadu_epi32, _mm512_add_epi32, _mm512_mask_storeu_epi32,
    totals_epi32
);
simd!(
    /// Four `u8` of lhs and four `i8` of rhs, summed in `i32`, wrapping.
    Avx512Vnni if is_x86_feature_detected!("avx512vnni"),
    "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni",
    tiles [1 2 4 6 8 10 12 14], whole [10 12 14], single [], halves [], in place true, loops false,
    u32 => i32, 16, __m512i => __m512i, __mmask16,
    _mm512_loadu_epi32, _mm512_maskz_loadu_epi32, _mm512_set1_epi32, mul_add_bytes,
    _mm512_maskz_loadu_epi32, _mm512_add_epi32, _mm512_mask_storeu_epi32,
    totals_epi32
);

impl Halved for Avx512F32 {
    type Half = Avx2F32;

    #[inline(always)]
    unsafe fn splat_both(from: *const f32) -> (__m512, __m256) {
        /// Hides where a vector is from: the compiler would fill half of one first, and the whole from that.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn opaque(mut words: __m512) -> __m512 {
            // SAFETY: no instruction at all.
            unsafe {
                asm!("/* {0} */", inout(zmm_reg) words, options(pure, nomem, nostack, preserves_flags));
            }
            words
        }
        // SAFETY: the caller's promise.
        unsafe {
            let words = opaque(Self::splat(from));
            (words, _mm512_castps512_ps256(words))
        }
    }
}

impl Sums for Avx512F32 {
    #[inline(always)]
    fn mask_of(lanes: Range<usize>) -> __mmask16 {
        Self::mask(lanes.end) & !Self::mask(lanes.start)
    }

    #[inline(always)]
    unsafe fn even(low: __m512, high: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { every_second::<0>(low, high) }
    }

    #[inline(always)]
    unsafe fn odd(low: __m512, high: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { every_second::<1>(low, high) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_sub_ps(a, b) }
    }
}

impl Lanes for Avx512F32 {
    type Choice = __m512i;

    #[inline(always)]
    unsafe fn choice(words: &[i32; 16]) -> __m512i {
        // SAFETY: the caller's promise; the vector is an array's.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }

    #[inline(always)]
    unsafe fn pick(words: __m512, choice: __m512i) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_permutexvar_ps(choice, words) }
    }

    #[inline(always)]
    unsafe fn load_or(from: *const f32, mask: __mmask16, others: __m512) -> __m512 {
        // SAFETY: the caller's promise; other lanes are not accessed.
        unsafe { _mm512_mask_loadu_ps(others, mask, from) }
    }

    #[inline(always)]
    unsafe fn max(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { extremes::<0b0101>(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { extremes::<0b0100>(a, b) }
    }

    #[inline(always)]
    unsafe fn max_of_numbers(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_range_ps::<0b0101>(a, b) }
    }

    #[inline(always)]
    unsafe fn min_of_numbers(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_range_ps::<0b0100>(a, b) }
    }

    #[inline(always)]
    unsafe fn see_nan(seen: __mmask16, a: __m512, b: __m512) -> __mmask16 {
        // SAFETY: the caller's promise.
        seen | unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b) }
    }

    #[inline(always)]
    unsafe fn is_any(lanes: __mmask16) -> bool {
        lanes != 0
    }
}

/// The lesser or the greater of each two lanes, by the operation and the sign that `_mm512_range_ps` takes:
/// -0 is less than 0; NaN if either is.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn extremes<const WHICH: i32>(a: __m512, b: __m512) -> __m512 {
    // (Of a number and NaN it is the number.)
    let number = _mm512_range_ps::<WHICH>(a, b);
    _mm512_mask_add_ps(number, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b), a, b)
}

/// Every second lane of two vectors, from the first or from the second on.
#[inline]
#[target_feature(enable = "avx512f")]
fn every_second<const FIRST: i32>(low: __m512, high: __m512) -> __m512 {
    let even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    _mm512_permutex2var_ps(low, _mm512_add_epi32(even, _mm512_set1_epi32(FIRST)), high)
}

/// Functions that add up the lanes of each of four vectors, one by one.
macro_rules! totals {
    ($($name:ident $total:ident $vec:ty => $acc:ty;)*) => { $(
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $name(vectors: [$vec; 4]) -> [$acc; 4] {
            // (Not by `map`, into which nothing is inlined that needs the features.)
            let [a, b, c, d] = vectors;
            [$total(a), $total(b), $total(c), $total(d)]
        }
    )* };
}
totals! {
    totals_pd _mm512_reduce_add_pd __m512d => f64;
    totals_epi64 _mm512_reduce_add_epi64 __m512i => i64;
}

/// Adds up the lanes of each of four vectors, all together: a third of the instructions of one after the other.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn totals_ps([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
    // Pairs of lanes, then fours: within each 16 bytes one lane of each vector.
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    let [ab, cd] = [_mm512_castps_pd(ab), _mm512_castps_pd(cd)];
    let [low, high] = [_mm512_unpacklo_pd(ab, cd), _mm512_unpackhi_pd(ab, cd)];
    let all = _mm512_add_ps(_mm512_castpd_ps(low), _mm512_castpd_ps(high));
    let halves = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
    let total = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
    let mut totals = [0.0; 4];
    // SAFETY: there is room for four.
    unsafe { _mm_storeu_ps(totals.as_mut_ptr(), total) };
    totals
}

/// Likewise, of integers.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn totals_epi32([a, b, c, d]: [__m512i; 4]) -> [i32; 4] {
    let ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    let all = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    let halves = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
    let (low, high) = (_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
    let mut totals = [0; 4];
    // SAFETY: there is room for four.
    unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), _mm_add_epi32(low, high)) };
    totals
}

impl Avx512Bf16 {
    /// The token, if the machine has the instructions and they are faster than products of the same numbers
    /// as `f32`: some processors take four times as long for one as for a product of `f32`, which it should
    /// replace two of.
    pub(in crate::kernels::gemm) fn if_faster(isa: Isa) -> Option<&'static Self> {
        static IS_FASTER: OnceLock<bool> = OnceLock::new();
        let token = Self::get(isa)?;
        // (Tests compute with them wherever they are there.)
        IS_FASTER.get_or_init(|| cfg!(test) || token.is_faster()).then_some(token)
    }

    /// Measures it, in some 30 microseconds.
    fn is_faster(self) -> bool {
        const TRIALS: usize = 16;
        let mut least = [Duration::MAX; 2];
        for _ in 0..TRIALS {
            // SAFETY: the token proves the features.
            let times = unsafe { [time::<false>(), time::<true>()] };
            least = std::array::from_fn(|i| least[i].min(times[i]));
        }
        let [f32, bf16] = least;
        bf16 < f32 * 2
    }
}

/// How long some thousand multiplications of vectors take that do not wait for each other: of pairs of `bf16`, or
/// of `f32`.
#[target_feature(enable = "avx512f,avx512bf16")]
fn time<const BF16: bool>() -> Duration {
    const SUMS: usize = 12;
    const ROUNDS: usize = 256;
    let factors = black_box([_mm512_setzero_si512(); 2]);
    let mut sums = black_box([_mm512_setzero_ps(); SUMS]);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        for sum in &mut sums {
            let [a, b] = factors;
            *sum = match BF16 {
                true => mul_add_bf16(a, b, *sum),
                false => _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), *sum),
            };
        }
    }
    black_box(sums);
    begin.elapsed()
}

/// Functions that make `f32` of numbers of 16 bits.
macro_rules! wide {
    ($number:ty, $load:ident, $load_masked:ident, $splat:ident, $widen:ident) => {
        /// # Safety
        /// The features are there, and 16 numbers may be read.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn $load(from: *const __m256i) -> __m512 {
            // SAFETY: the caller's promise.
            $widen(unsafe { _mm256_loadu_si256(from) })
        }

        /// # Safety
        /// The features are there, and the numbers of these lanes may be read.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn $load_masked(mask: __mmask16, from: *const i16) -> __m512 {
            // SAFETY: the caller's promise; lanes outside the mask are not accessed.
            $widen(unsafe { _mm256_maskz_loadu_epi16(mask, from) })
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn $splat(number: $number) -> __m512 {
            _mm512_set1_ps(number.to_f32())
        }
    };
}
wide!(Bf16, load_bf16, load_masked_bf16, splat_bf16, widen_bf16);
wide!(F16, load_f16, load_masked_f16, splat_f16, _mm512_cvtph_ps);

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_bf16(numbers: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(numbers)))
}

/// Functions that make words of bytes: numbers of 16 bits in lower halves, and zeros in upper ones.
macro_rules! wide_bytes {
    ($number:ty, $load:ident, $load_masked:ident, $splat:ident, $widen:ident) => {
        /// # Safety
        /// The features are there, and 16 numbers may be read.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn $load(from: *const __m128i) -> __m512i {
            // SAFETY: the caller's promise.
            $widen(unsafe { _mm_loadu_si128(from) })
        }

        /// # Safety
        /// The features are there, and the numbers of these lanes may be read.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn $load_masked(mask: __mmask16, from: *const i8) -> __m512i {
            // SAFETY: the caller's promise; lanes outside the mask are not accessed.
            $widen(unsafe { _mm_maskz_loadu_epi8(mask, from) })
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn $splat(number: $number) -> __m512i {
            _mm512_set1_epi32(i32::from(i16::from(number).cast_unsigned()))
        }
    };
}
wide_bytes!(i8, load_i8, load_masked_i8, splat_i8, widen_i8);
wide_bytes!(u8, load_u8, load_masked_u8, splat_u8, _mm512_cvtepu8_epi32);

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_i8(numbers: __m128i) -> __m512i {
    _mm512_cvtepu16_epi32(_mm256_cvtepi8_epi16(numbers))
}

/// Of words with numbers of 16 bits in lower halves, and zeros in upper ones.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn mul_add_i16(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
    _mm512_dpwssd_epi32(sum, a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn mul_add_i32(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
    _mm512_add_epi32(_mm512_mullo_epi32(a, b), sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mul_add_i64(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
    _mm512_add_epi64(_mm512_mullo_epi64(a, b), sum)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bf16")]
fn mul_add_bf16(a: __m512i, b: __m512i, sum: __m512) -> __m512 {
    // SAFETY: the same bits: a pair is in the halves of its word.
    let [a, b] = unsafe { std::mem::transmute::<[__m512i; 2], [__m512bh; 2]>([a, b]) };
    _mm512_dpbf16_ps(sum, a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn mul_add_bytes(a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
    _mm512_dpbusd_epi32(sum, a, b)
}
