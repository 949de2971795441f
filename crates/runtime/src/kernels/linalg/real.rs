//! Real numbers.

use helio_linalg::{Alone, Lapack, Rotation, Vectors};

use super::super::gemm::Contraction;
use super::qr::Reflecting;
use crate::Threads;

/// The elements that are worked on side by side.
pub(super) const LANES: usize = 16;

/// A group of elements.
pub(super) type Lanes<T> = [T; LANES];

/// The groups from a row of `n` elements to the next: an odd number, since neighbours that lie a power of two apart
/// would be in each other's way in the cache.
pub(super) fn row_groups(n: usize) -> usize {
    n.div_ceil(LANES) | 1
}

/// A real number.
pub(super) trait Real:
    Reflecting<Real = Self>
    + PartialOrd
    + Default
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + std::ops::SubAssign
    + std::ops::MulAssign
{
    /// Half the distance from 1 to the next greater number.
    const EPSILON: Self;
    fn sqrt(self) -> Self;
    /// Whether it has a minus, as a zero may.
    fn is_negative(self) -> bool;
    /// The number nearest to this one.
    fn of(value: f64) -> Self;
    /// A power of two by which this positive number comes close to 2²⁰, if not to one, and its inverse; both are
    /// normal. (Of what is small beside it squares and even fourth powers do not vanish then.)
    fn scaling(self) -> (Self, Self);
    /// A product of matrices.
    fn product(
        of: &Contraction,
        lhs: &[Self],
        rhs: &[Self],
        out: &mut [Self],
        threads: Threads<'_>,
    );
    /// Eigenvalues of a tridiagonal matrix, as `helio_linalg` has them.
    fn steqr(vectors: Vectors, d: &mut [Self], e: &mut [Self]) -> (Vec<Rotation<Self>>, i32);
    /// Singular values of a bidiagonal matrix, as `helio_linalg` has them.
    fn bdsqr(vectors: Vectors, d: &mut [Self], e: &mut [Self]) -> ([Vec<Rotation<Self>>; 2], i32);

    /// The larger one; of a number and NaN the number.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// With the sign of another.
    #[inline(always)]
    fn with_sign(self, of: Self) -> Self {
        if self.is_negative() == of.is_negative() { self } else { -self }
    }
}

macro_rules! reals {
    ($($ty:ident)*) => { $(
        impl Real for $ty {
            const EPSILON: Self = <$ty>::EPSILON / 2.0;
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn is_negative(self) -> bool {
                self.is_sign_negative()
            }
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $ty
            }
            fn scaling(self) -> (Self, Self) {
                let most = i64::from(<$ty>::MAX_EXP - 2);
                let field = f64::from(self).to_bits() >> 52 & 0x7ff;
                let exponent = (field.cast_signed() - 1023 - 20).clamp(-most, most);
                let power = |exponent: i64| {
                    f64::from_bits((exponent + 1023).cast_unsigned() << 52) as $ty
                };
                (power(-exponent), power(exponent))
            }
            fn product(of: &Contraction, lhs: &[Self], rhs: &[Self], out: &mut [Self], threads: Threads<'_>) {
                of.$ty(lhs, rhs, out, None, threads);
            }
            fn steqr(vectors: Vectors, d: &mut [Self], e: &mut [Self]) -> (Vec<Rotation<Self>>, i32) {
                <$ty as Lapack>::steqr(&Alone, vectors, d, e)
            }
            fn bdsqr(vectors: Vectors, d: &mut [Self], e: &mut [Self]) -> ([Vec<Rotation<Self>>; 2], i32) {
                <$ty as Lapack>::bdsqr(&Alone, vectors, d, e)
            }
        }
    )* };
}

reals!(f32 f64);

/// The product of vectors.
#[inline(always)]
pub(super) fn dot<T: Real>(x: &[Lanes<T>], y: &[Lanes<T>]) -> T {
    let mut sums = [T::ZERO; LANES];
    for (x, y) in x.iter().zip(y) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sum(sums)
}

/// The sum of all.
#[inline(always)]
pub(super) fn sum<T: Real>(mut lanes: Lanes<T>) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}
