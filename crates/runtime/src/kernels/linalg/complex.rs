//! Complex numbers as matrices hold them.

use std::ops::{Add, Div, Mul, Sub};

use super::super::bytes::Plain;
use super::Field;

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
                if other.re == 0.0 && other.im == 0.0 {
                    let infinity = $part::INFINITY.copysign(other.re);
                    return Complex { re: infinity * self.re, im: infinity * self.im };
                }
                // Sums of large numbers might leave the range, too. (If one number is that large and the
                // other so small that its half is none, the quotient is infinite or zero anyway.)
                let most = |z: Self| z.re.abs().max(z.im.abs());
                let scale = if most(self).max(most(other)) > 1e-8 * $part::MAX { 0.5 } else { 1.0 };
                let [x, y] = [self, other].map(|z| Complex { re: scale * z.re, im: scale * z.im });
                let is_flat = y.re.abs() >= y.im.abs();
                let (large, small) = if is_flat { (y.re, y.im) } else { (y.im, y.re) };
                let ratio = small / large;
                let norm = large + small * ratio;
                match is_flat {
                    true => Complex {
                        re: (x.re + x.im * ratio) / norm,
                        im: (x.im - x.re * ratio) / norm,
                    },
                    false => Complex {
                        re: (x.re * ratio + x.im) / norm,
                        im: (x.im * ratio - x.re) / norm,
                    },
                }
            }
        }

        impl Field for Complex<$part> {
            type Real = $part;
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
