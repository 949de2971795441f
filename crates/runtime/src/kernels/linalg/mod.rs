//! Triangular systems, Cholesky's, LU and QR factors of real and complex matrices; eigenvalues and singular values of
//! real ones.
//!
//! Factors come down to the loops of `panel`: forward substitution for as many right sides at once as vectors hold,
//! products of a few rows with a panel, and elimination of one column of a panel. Few right sides are another
//! matter (`few`), and so are many small matrices (`side_by_side`). Eigenvalues and singular values are in
//! docs/design/spectra.md.

mod back;
mod bidiagonal;
mod cholesky;
mod complex;
mod eigh;
mod eigh_halves;
mod few;
mod halves;
mod lu;
mod many;
mod multiply;
mod panel;
mod qr;
mod real;
mod secular;
mod side_by_side;
mod svd;
mod svd_halves;
mod triangular;
mod tridiagonal;
mod tridiagonal_solve;

pub use cholesky::Cholesky;
pub use eigh::Eigh;
pub use lu::Lu;
pub use multiply::{MultiplyFlags, QrMultiply};
pub use qr::Qr;
pub use svd::{Svd, SvdResults, SvdVectors};
pub use triangular::{TriangularFlags, TriangularSolve};
pub use tridiagonal_solve::{TridiagonalResults, TridiagonalSolve};

use super::bytes::Plain;

/// The types of matrices that can be factored and solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// Real numbers of 32 bits.
    F32,
    /// Real numbers of 64 bits.
    F64,
    /// Complex numbers of two parts of 32 bits.
    C64,
    /// Complex numbers of two parts of 64 bits.
    C128,
}

impl FieldType {
    /// The bytes of a number.
    fn size(self) -> usize {
        with_field!(self, T => size_of::<T>())
    }
}

/// Evaluates an expression with `$T` standing for the [`Field`] of this type.
macro_rules! with_field {
    ($ty:expr, $T:ident => $body:expr) => {
        match $ty {
            $crate::kernels::linalg::FieldType::F32 => {
                type $T = f32;
                $body
            }
            $crate::kernels::linalg::FieldType::F64 => {
                type $T = f64;
                $body
            }
            $crate::kernels::linalg::FieldType::C64 => {
                type $T = $crate::kernels::linalg::complex::Complex<f32>;
                $body
            }
            $crate::kernels::linalg::FieldType::C128 => {
                type $T = $crate::kernels::linalg::complex::Complex<f64>;
                $body
            }
        }
    };
}
use with_field;

/// A real or complex number.
trait Field:
    Plain
    + PartialEq
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    /// The type of its parts.
    type Real: Plain + PartialOrd;
    /// Numbers side by side.
    type Side: side_by_side::Side<Self>;
    const ZERO: Self;
    const ONE: Self;
    const NAN: Self;
    /// The least positive number whose inverse is finite, or above it.
    const LEAST: Self::Real;
    /// Whether no part is infinite or NaN.
    fn is_finite(self) -> bool;
    /// The sum of the magnitudes of its parts.
    fn size(self) -> Self::Real;
    /// The conjugate: of a real number the number itself.
    fn conj(self) -> Self;
    /// The root of the real part, if that is positive.
    fn root_of_pivot(self) -> Option<Self>;
}

macro_rules! reals {
    ($($ty:ty)*) => { $(
        impl Field for $ty {
            type Real = $ty;
            type Side = real::Lanes<$ty>;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NAN: Self = <$ty>::NAN;
            const LEAST: $ty = <$ty>::MIN_POSITIVE;
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            #[inline(always)]
            fn size(self) -> $ty {
                self.abs()
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn root_of_pivot(self) -> Option<Self> {
                (self > 0.0).then(|| self.sqrt())
            }
        }
    )* };
}

reals!(f32 f64);

#[cfg(test)]
mod tests;
