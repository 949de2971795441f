//! Plans of Fourier transforms, by `rustfft`.
//!
//! Its planners are generic: whichever crate makes a plan compiles all of its algorithms for all
//! sets of instructions. This crate does it once, for both element types, so that the crate that runs
//! plans need not do it again each time that it changes.
//!
//! ```
//! use helio_fft::{FftDirection, Planned, num_complex::Complex};
//! let mut planner = <f64 as Planned>::Planner::default();
//! let plan = f64::plan(&mut planner, 3, FftDirection::Forward);
//! let mut line = [Complex::new(1.0, 0.0); 3];
//! plan.process(&mut line);
//! assert_eq!(line[0].re, 3.0);
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

pub use rustfft::{Fft, FftDirection, FftNum, num_complex};

/// A type of the parts of complex numbers for which there are plans.
pub trait Planned: FftNum {
    /// What plans share: tables and the plans of parts.
    type Planner: Default;

    /// The plan for lines of `length` complex numbers.
    fn plan(
        planner: &mut Self::Planner,
        length: usize,
        direction: FftDirection,
    ) -> Arc<dyn Fft<Self>>;
}

/// Plans for complex numbers with parts of one type.
pub struct Planner<T: FftNum>(rustfft::FftPlanner<T>);

macro_rules! planned {
    ($($ty:ty),*) => {$(
        impl Default for Planner<$ty> {
            #[inline(never)]
            fn default() -> Self {
                Planner(rustfft::FftPlanner::new())
            }
        }

        impl Planned for $ty {
            type Planner = Planner<$ty>;

            #[inline(never)]
            fn plan(
                planner: &mut Self::Planner,
                length: usize,
                direction: FftDirection,
            ) -> Arc<dyn Fft<$ty>> {
                planner.0.plan_fft(length, direction)
            }
        }
    )*};
}

planned!(f32, f64);
