//! Complex numbers as matrices hold them.

use std::ops::{Add, Div, Mul, Sub};

use super::super::bytes::Plain;
use super::Field;
use super::side_by_side::Parts;

/// A complex number: the real, then the imaginary part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub(super) struct Complex<T> {
    pub(super) re: T,
    pub(super) im: T,
}

// SAFETY: two numbers without padding between or behind them, for which any bits are a value.
unsafe impl Plain for Complex<f32> {}
// SAFETY: two numbers without padding between or behind them, for which any bits are a value.
unsafe impl Plain for Complex<f64> {}

macro_rules! complex {
    ($($part:ident)*) => { $(
        impl Add for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Complex { re: self.re + other.re, im: self.im + other.im }
            }
        }

        impl Sub for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Complex { re: self.re - other.re, im: self.im - other.im }
            }
        }

        impl Mul for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Complex {
                    re: self.re * other.re - self.im * other.im,
                    im: self.re * other.im + self.im * other.re,
                }
            }
        }

        impl Div for Complex<$part> {
            type Output = Self;
            /// By a quotient of the parts of `other`, whose squares might leave the range (Smith). Over
            /// zero, parts are infinite or NaN.
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                // Without branches, so that numbers side by side are divided by vector code.
                // Sums of large numbers might leave the range, too. (If one number is that large and the
                // other so small that its half is none, the quotient is infinite or zero anyway.)
                let most = |z: Self| z.re.abs().max(z.im.abs());
                let scale = if most(self).max(most(other)) > 1e-8 * $part::MAX { 0.5 } else { 1.0 };
                let [x, y] = [self, other].map(|z| Complex { re: scale * z.re, im: scale * z.im });
                let is_flat = y.re.abs() >= y.im.abs();
                // The quotient of both times -i is the same.
                let turned = |z: Self| if is_flat { (z.re, z.im) } else { (z.im, -z.re) };
                let ((re, im), (large, small)) = (turned(x), turned(y));
                let ratio = small / large;
                let norm = large + small * ratio;
                let quotient = ((re + im * ratio) / norm, (im - re * ratio) / norm);
                let infinity = $part::INFINITY.copysign(other.re);
                let over_zero = (infinity * self.re, infinity * self.im);
                let is_zero = other.re == 0.0 && other.im == 0.0;
                Complex {
                    re: if is_zero { over_zero.0 } else { quotient.0 },
                    im: if is_zero { over_zero.1 } else { quotient.1 },
                }
            }
        }

        impl Field for Complex<$part> {
            type Real = $part;
            type Side = Parts<$part>;
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            // The inverse has parts of at most that of a real number.
            const LEAST: $part = $part::MIN_POSITIVE;
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            #[inline(always)]
            fn size(self) -> $part {
                self.re.abs() + self.im.abs()
            }
            const NAN: Self = Complex { re: $part::NAN, im: 0.0 };
            #[inline(always)]
            fn conj(self) -> Self {
                Complex { re: self.re, im: -self.im }
            }
            #[inline(always)]
            fn root_of_pivot(self) -> Option<Self> {
                (self.re > 0.0).then(|| Complex { re: self.re.sqrt(), im: 0.0 })
            }
        }
    )* };
}

complex!(f32 f64);
