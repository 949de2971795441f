//! Complex numbers as matrices hold them.

use std::ops::{Div, Mul, Sub};

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
            /// By a quotient of the parts of `other`, whose squares might leave the range (Smith).
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                let is_flat = other.re.abs() >= other.im.abs();
                let (large, small) =
                    if is_flat { (other.re, other.im) } else { (other.im, other.re) };
                // 0 over 0 where the divisor is zero: the quotient then has NaN in it.
                let ratio = small / large;
                let norm = large + small * ratio;
                match is_flat {
                    true => Complex {
                        re: (self.re + self.im * ratio) / norm,
                        im: (self.im - self.re * ratio) / norm,
                    },
                    false => Complex {
                        re: (self.re * ratio + self.im) / norm,
                        im: (self.im * ratio - self.re) / norm,
                    },
                }
            }
        }

        impl Field for Complex<$part> {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
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
