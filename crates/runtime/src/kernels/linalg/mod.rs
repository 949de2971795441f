//! Triangular systems and Cholesky's factors, of real matrices.
//!
//! Both come down to one loop, `panel::solve`: forward substitution for as many right sides at
//! once as vectors hold.

mod cholesky;
mod panel;
mod triangular;

pub use cholesky::Cholesky;
pub use triangular::{TriangularFlags, TriangularSolve};

use super::bytes::Plain;

/// The types of matrices that can be factored and solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealType {
    /// 32 bits.
    F32,
    /// 64 bits.
    F64,
}

/// A real number.
trait Real:
    Plain
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
{
    const ZERO: Self;
    const NAN: Self;
    fn sqrt(self) -> Self;
}

macro_rules! reals {
    ($($ty:ty)*) => { $(
        impl Real for $ty {
            const ZERO: Self = 0.0;
            const NAN: Self = <$ty>::NAN;
            fn sqrt(self) -> Self {
                self.sqrt()
            }
        }
    )* };
}

reals!(f32 f64);

#[cfg(test)]
mod tests;
