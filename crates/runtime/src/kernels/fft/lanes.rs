//! Vectors with a number of each of several lines, which are transformed side by side.

use std::ops::{Add, Mul, Sub};

use super::Real;

/// A vector of numbers, one for each line. One that is there proves that the machine has the
/// instructions for it: only [`Lanes`] make the first.
pub(super) trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self>
{
    /// `self * b + c`
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// `c - self * b`
    fn neg_mul_add(self, b: Self, c: Self) -> Self;
}

/// An instruction set. A value proves that the machine has it.
pub(super) trait Lanes: Copy + Send + Sync + 'static {
    /// The number in a lane.
    type Real: Real;
    /// `COUNT` numbers.
    type Vector: Vector;
    /// How many lines are transformed side by side.
    const COUNT: usize;

    /// Calls `body`, compiled for the instructions if it is inlined.
    fn vectorise<R>(self, body: impl FnOnce() -> R) -> R;

    /// One number for all lines.
    fn splat(self, value: Self::Real) -> Self::Vector;

    /// The first `COUNT` numbers of a slice. Panics if there are fewer.
    fn load(self, from: &[Self::Real]) -> Self::Vector;

    /// Writes the first `COUNT` numbers of a slice. Panics if there are fewer.
    fn store(self, vector: Self::Vector, to: &mut [Self::Real]);

    /// Every second of the first `2 * COUNT` numbers of a slice, from the first and from the second on. Panics if there
    /// are fewer.
    fn load_pairs(self, from: &[Self::Real]) -> [Self::Vector; 2];

    /// The reverse of [`Lanes::load_pairs`].
    fn store_pairs(self, vectors: [Self::Vector; 2], to: &mut [Self::Real]);
}

/// A number of each line.
#[inline(always)]
pub(super) fn row<L: Lanes>(lanes: L, data: &[L::Real], i: usize) -> L::Vector {
    lanes.load(&data[i * L::COUNT..])
}

/// What is done for some instruction set.
pub(super) trait LaneWork<T: Real> {
    /// What comes of it.
    type Result;

    /// Does it; to be inlined.
    fn run<L: Lanes<Real = T>>(self, lanes: L) -> Self::Result;
}

macro_rules! with_widest {
    ($($name:ident: $part:ident in $avx512:ident, $avx2:ident;)*) => { $(
        #[doc = concat!("Does `work` with the widest vectors of `", stringify!($part), "` that the machine has.")]
        pub(super) fn $name<W: LaneWork<$part>>(work: W) -> W::Result {
            #[cfg(target_arch = "x86_64")]
            {
                if let Some(lanes) = x86::$avx512::new() {
                    return work.run(lanes);
                }
                if let Some(lanes) = x86::$avx2::new() {
                    return work.run(lanes);
                }
            }
            work.run(Portable(std::marker::PhantomData))
        }
    )* };
}
with_widest! {
    with_f32: f32 in Avx512F32, Avx2F32;
    with_f64: f64 in Avx512F64, Avx2F64;
}

/// Vectors of four numbers without any particular instructions.
#[derive(Clone, Copy)]
pub(super) struct Portable<T>(pub(super) std::marker::PhantomData<T>);

/// Four numbers.
#[derive(Clone, Copy)]
pub(super) struct Four<T>([T; 4]);

macro_rules! each_of_four {
    ($trait:ident, $method:ident) => {
        impl<T: Real> $trait for Four<T> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Four(std::array::from_fn(|i| self.0[i].$method(other.0[i])))
            }
        }
    };
}

each_of_four!(Add, add);
each_of_four!(Sub, sub);
each_of_four!(Mul, mul);

impl<T: Real> Vector for Four<T> {
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn neg_mul_add(self, b: Self, c: Self) -> Self {
        c - self * b
    }
}

impl<T: Real> Lanes for Portable<T> {
    type Real = T;
    type Vector = Four<T>;
    const COUNT: usize = 4;

    fn vectorise<R>(self, body: impl FnOnce() -> R) -> R {
        body()
    }

    #[inline(always)]
    fn splat(self, value: T) -> Four<T> {
        Four([value; 4])
    }

    #[inline(always)]
    fn load(self, from: &[T]) -> Four<T> {
        Four([from[0], from[1], from[2], from[3]])
    }

    #[inline(always)]
    fn store(self, vector: Four<T>, to: &mut [T]) {
        to[..4].copy_from_slice(&vector.0);
    }

    #[inline(always)]
    fn load_pairs(self, from: &[T]) -> [Four<T>; 2] {
        let from = &from[..8];
        [0, 1].map(|part| Four(std::array::from_fn(|i| from[2 * i + part])))
    }

    #[inline(always)]
    fn store_pairs(self, vectors: [Four<T>; 2], to: &mut [T]) {
        for (i, v) in to[..8].iter_mut().enumerate() {
            *v = vectors[i % 2].0[i / 2];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Vectors of the processor.

    use std::arch::x86_64::*;
    use std::ops::{Add, Mul, Sub};

    use super::super::super::isa::{has_avx512, vectorise};
    use super::{Lanes, Vector};

    macro_rules! operator {
        ($vector:ident, $trait:ident, $method:ident, $instruction:ident) => {
            impl $trait for $vector {
                type Output = Self;

                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    // SAFETY: a vector is there, so the machine has the instructions.
                    $vector(unsafe { $instruction(self.0, other.0) })
                }
            }
        };
    }

    macro_rules! lanes {
        (
            $(#[$doc:meta])* $name:ident if $found:expr, $features:literal,
            $vector:ident = $count:literal of $part:ident in $register:ident,
            $splat:ident $load:ident $store:ident
            $add:ident $sub:ident $mul:ident $mul_add:ident $neg_mul_add:ident
            $apart:ident $in_turn:ident
        ) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(super) struct $name(());

            /// A vector of it.
            #[derive(Clone, Copy)]
            pub(super) struct $vector($register);

            operator!($vector, Add, add, $add);
            operator!($vector, Sub, sub, $sub);
            operator!($vector, Mul, mul, $mul);

            impl Vector for $vector {
                #[inline(always)]
                fn mul_add(self, b: Self, c: Self) -> Self {
                    // SAFETY: a vector is there, so the machine has the instructions.
                    $vector(unsafe { $mul_add(self.0, b.0, c.0) })
                }

                #[inline(always)]
                fn neg_mul_add(self, b: Self, c: Self) -> Self {
                    // SAFETY: a vector is there, so the machine has the instructions.
                    $vector(unsafe { $neg_mul_add(self.0, b.0, c.0) })
                }
            }

            impl $name {
                /// The token, if the machine has the instructions.
                pub(super) fn new() -> Option<Self> {
                    $found.then_some($name(()))
                }
            }

            impl Lanes for $name {
                type Real = $part;
                type Vector = $vector;
                const COUNT: usize = $count;

                vectorise!($features);

                #[inline(always)]
                fn splat(self, value: $part) -> $vector {
                    // SAFETY: the token proves the features.
                    $vector(unsafe { $splat(value) })
                }

                #[inline(always)]
                fn load(self, from: &[$part]) -> $vector {
                    let from = &from[..$count];
                    // SAFETY: the token proves the features, and the slice has a number for each lane.
                    $vector(unsafe { $load(from.as_ptr()) })
                }

                #[inline(always)]
                fn store(self, vector: $vector, to: &mut [$part]) {
                    let to = &mut to[..$count];
                    // SAFETY: the token proves the features, and the slice has a number for each lane.
                    unsafe { $store(to.as_mut_ptr(), vector.0) }
                }

                #[inline(always)]
                fn load_pairs(self, from: &[$part]) -> [$vector; 2] {
                    let (a, b) = (self.load(from), self.load(&from[$count..]));
                    // SAFETY: the token proves the features.
                    unsafe { $apart(a.0, b.0) }.map($vector)
                }

                #[inline(always)]
                fn store_pairs(self, [a, b]: [$vector; 2], to: &mut [$part]) {
                    // SAFETY: the token proves the features.
                    let [low, high] = unsafe { $in_turn(a.0, b.0) }.map($vector);
                    self.store(low, to);
                    self.store(high, &mut to[$count..]);
                }
            }
        };
    }

    macro_rules! pairs {
        (
            $features:literal, $register:ident, $apart:ident, $in_turn:ident:
            |$a:ident, $b:ident| $of_pairs:expr, $to_pairs:expr
        ) => {
            /// Every second element of two vectors, from the first and from the second on.
            #[inline]
            #[target_feature(enable = $features)]
            fn $apart($a: $register, $b: $register) -> [$register; 2] {
                $of_pairs
            }

            /// Elements of two vectors in turn, in two vectors.
            #[inline]
            #[target_feature(enable = $features)]
            fn $in_turn($a: $register, $b: $register) -> [$register; 2] {
                $to_pairs
            }
        };
    }

    pairs!(
        "avx512f", __m512, apart_of_16, in_turn_of_16: |a, b|
        {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
            [_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b)]
        },
        {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
            [_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b)]
        }
    );
    pairs!(
        "avx512f", __m512d, apart_of_8_wide, in_turn_of_8_wide: |a, b|
        {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_add_epi64(even, _mm512_set1_epi64(1));
            [_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b)]
        },
        {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_add_epi64(low, _mm512_set1_epi64(4));
            [_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b)]
        }
    );
    pairs!(
        "avx2", __m256, apart_of_8, in_turn_of_8: |a, b|
        {
            // (Halves of 128 bits are by themselves: what is next to each other in pairs of lanes comes together after.)
            let join = |x: __m256| {
                _mm256_castpd_ps(_mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(x)))
            };
            [join(_mm256_shuffle_ps::<0b10_00_10_00>(a, b)), join(_mm256_shuffle_ps::<0b11_01_11_01>(a, b))]
        },
        {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            [_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high)]
        }
    );
    pairs!(
        "avx2", __m256d, apart_of_4, in_turn_of_4: |a, b|
        {
            let join = |x: __m256d| _mm256_permute4x64_pd::<0b11_01_10_00>(x);
            [join(_mm256_unpacklo_pd(a, b)), join(_mm256_unpackhi_pd(a, b))]
        },
        {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            [_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high)]
        }
    );

    lanes!(
        /// AVX-512 for `f32`.
        Avx512F32 if has_avx512(), "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
        V16 = 16 of f32 in __m512,
        _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps
        _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_fmadd_ps _mm512_fnmadd_ps
        apart_of_16 in_turn_of_16
    );
    lanes!(
        /// AVX-512 for `f64`.
        Avx512F64 if has_avx512(), "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
        W8 = 8 of f64 in __m512d,
        _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd
        _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_fmadd_pd _mm512_fnmadd_pd
        apart_of_8_wide in_turn_of_8_wide
    );
    lanes!(
        /// AVX2 for `f32`.
        Avx2F32 if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        "avx2,fma",
        V8 = 8 of f32 in __m256,
        _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps
        _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_fmadd_ps _mm256_fnmadd_ps
        apart_of_8 in_turn_of_8
    );
    lanes!(
        /// AVX2 for `f64`.
        Avx2F64 if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        "avx2,fma",
        W4 = 4 of f64 in __m256d,
        _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd
        _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_fmadd_pd _mm256_fnmadd_pd
        apart_of_4 in_turn_of_4
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs of numbers, taken apart and put together.
    fn pairs<L: Lanes>(lanes: L) {
        let number = |i: usize| <L::Real as Real>::rounded(i as f64);
        let of = |numbers: &mut dyn Iterator<Item = usize>| -> Vec<L::Real> {
            numbers.map(number).collect()
        };
        let from = of(&mut (0..2 * L::COUNT));
        let [first, second] = lanes.load_pairs(&from);
        let mut to = vec![number(0); 2 * L::COUNT];
        lanes.store(first, &mut to);
        lanes.store(second, &mut to[L::COUNT..]);
        let apart = (0..2 * L::COUNT).step_by(2).chain((1..2 * L::COUNT).step_by(2));
        assert!(to == of(&mut apart.into_iter()));
        lanes.store_pairs([first, second], &mut to);
        assert!(to == from);
    }

    #[test]
    fn pairs_are_taken_apart() {
        pairs(Portable::<f32>(std::marker::PhantomData));
        pairs(Portable::<f64>(std::marker::PhantomData));
        #[cfg(target_arch = "x86_64")]
        {
            x86::Avx512F32::new().into_iter().for_each(pairs);
            x86::Avx512F64::new().into_iter().for_each(pairs);
            x86::Avx2F32::new().into_iter().for_each(pairs);
            x86::Avx2F64::new().into_iter().for_each(pairs);
        }
    }
}
