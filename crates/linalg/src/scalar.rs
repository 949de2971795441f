//! The numbers that matrices have.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use num_complex::Complex;
use num_traits::Float;

/// `f32` and `f64`.
pub trait Real: Scalar<Real = Self> + Float {
    /// The distance from 1 to the next greater number, halved: LAPACK's `eps`.
    const EPS: Self;
    /// The least normal number.
    const SAFE_MIN: Self;
    /// The number nearest to this one.
    fn of(x: f64) -> Self;
    /// The same number.
    fn wide(self) -> f64;
}

/// Real or complex numbers.
pub trait Scalar:
    Copy
    + Debug
    + Default
    + PartialEq
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + 'static
{
    /// The type of the real part.
    type Real: Real;
    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part; 0 of real numbers.
    fn im(self) -> Self::Real;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The number with these parts; real numbers have no imaginary one.
    fn of_parts(re: Self::Real, im: Self::Real) -> Self;
    /// The number times a real one.
    fn scale(self, by: Self::Real) -> Self;
    /// The quotient, without overflow on the way.
    fn over(self, by: Self) -> Self;

    /// The real number.
    fn real(re: Self::Real) -> Self {
        Self::of_parts(re, Self::Real::default())
    }

    /// 0.
    fn zero() -> Self {
        Self::default()
    }

    /// 1.
    fn one() -> Self {
        Self::real(<Self::Real as num_traits::One>::one())
    }

    /// The magnitude.
    fn magnitude(self) -> Self::Real {
        if Self::IS_COMPLEX { self.re().hypot(self.im()) } else { Float::abs(self.re()) }
    }

    /// The sum of the magnitudes of the parts: as good as the magnitude for comparing, and cheaper.
    fn abs1(self) -> Self::Real {
        Float::abs(self.re()) + Float::abs(self.im())
    }

    /// Whether both parts are finite.
    fn is_finite_number(self) -> bool {
        self.re().is_finite() && self.im().is_finite()
    }
}

macro_rules! real {
    ($ty:ident) => {
        impl Real for $ty {
            const EPS: Self = $ty::EPSILON / 2.0;
            const SAFE_MIN: Self = $ty::MIN_POSITIVE;
            fn of(x: f64) -> Self {
                x as $ty
            }
            fn wide(self) -> f64 {
                self.into()
            }
        }

        impl Scalar for $ty {
            type Real = $ty;
            const IS_COMPLEX: bool = false;
            fn re(self) -> $ty {
                self
            }
            fn im(self) -> $ty {
                0.0
            }
            fn conj(self) -> Self {
                self
            }
            fn of_parts(re: $ty, _: $ty) -> Self {
                re
            }
            fn scale(self, by: $ty) -> Self {
                self * by
            }
            fn over(self, by: Self) -> Self {
                self / by
            }
        }

        impl Scalar for Complex<$ty> {
            type Real = $ty;
            const IS_COMPLEX: bool = true;
            fn re(self) -> $ty {
                self.re
            }
            fn im(self) -> $ty {
                self.im
            }
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            fn of_parts(re: $ty, im: $ty) -> Self {
                Complex::new(re, im)
            }
            fn scale(self, by: $ty) -> Self {
                Complex::new(self.re * by, self.im * by)
            }
            /// By Smith's method.
            fn over(self, by: Self) -> Self {
                if by.im.abs() <= by.re.abs() {
                    let ratio = by.im / by.re;
                    let norm = by.re + by.im * ratio;
                    Complex::new(
                        (self.re + self.im * ratio) / norm,
                        (self.im - self.re * ratio) / norm,
                    )
                } else {
                    let ratio = by.re / by.im;
                    let norm = by.im + by.re * ratio;
                    Complex::new(
                        (self.re * ratio + self.im) / norm,
                        (self.im * ratio - self.re) / norm,
                    )
                }
            }
        }
    };
}

real!(f32);
real!(f64);

/// The square root with a real part that is not negative, without overflow on the way.
pub(crate) fn square_root<R: Real>(z: Complex<R>) -> Complex<R> {
    let (zero, half) = (R::default(), R::of(0.5));
    if z.re == zero && z.im == zero {
        return z;
    }
    let (re, im) = (Float::abs(z.re), Float::abs(z.im));
    let root = if re >= im {
        let ratio = im / re;
        re.sqrt() * (half * (R::of(1.0) + (R::of(1.0) + ratio * ratio).sqrt())).sqrt()
    } else {
        let ratio = re / im;
        im.sqrt() * (half * (ratio + (R::of(1.0) + ratio * ratio).sqrt())).sqrt()
    };
    let other = z.im / (root + root);
    if z.re >= zero {
        Complex::new(root, other)
    } else {
        Complex::new(Float::abs(other), if z.im < zero { -root } else { root })
    }
}
