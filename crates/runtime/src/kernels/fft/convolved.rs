//! Transforms of prime lengths, several lines side by side.
//!
//! Points but the first are, in the order of powers of a generator, convolved with roots of one in
//! that order, which is a product of spectra (Rader 1968).

use helio_fft::num_complex::Complex;
use helio_fft::{FftDirection, Planned};

use super::Real;
use super::lanes::Lanes;
use super::stages::{Stages, View};

/// A transform of several lines of one length, side by side.
pub(super) enum Line<T> {
    /// By its radices.
    Staged(Stages<T>),
    /// As a convolution.
    Convolved(Convolved<T>),
}

/// A transform as a convolution.
pub(super) struct Convolved<T> {
    stages: Stages<T>,
    /// The spectrum of what points are convolved with, divided by its length.
    spectrum: Vec<[T; 2]>,
    /// The places of points, and of results, that follow the first.
    from: Vec<usize>,
    to: Vec<usize>,
}

impl<T: Real> Line<T> {
    /// A plan; `None` if the length has large factors and is no prime that follows a number
    /// without.
    pub(super) fn new(len: usize) -> Option<Self> {
        Some(match Stages::new(len) {
            Some(stages) => Line::Staged(stages),
            None => Line::Convolved(Convolved::new(len)?),
        })
    }

    /// How many points each of the two arrays has room for.
    pub(super) fn room(&self) -> usize {
        match self {
            Line::Staged(stages) => stages.len,
            Line::Convolved(convolved) => convolved.stages.len + 1,
        }
    }

    /// As [`Stages::run`].
    pub(super) fn run<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        a: &'s mut [T],
        b: &'s mut [T],
    ) -> (&'s mut [T], &'s mut [T]) {
        match self {
            Line::Staged(stages) => stages.run(view, a, b),
            Line::Convolved(convolved) => convolved.run(view, a, b),
        }
    }
}

impl<T: Real> Convolved<T> {
    fn new(len: usize) -> Option<Self> {
        let stages = Stages::new(len.checked_sub(1)?)?;
        let generator = generator(len)?;
        let next = |&at: &usize| Some(at * generator % len);
        let from: Vec<usize> = std::iter::successors(Some(1), next).take(len - 1).collect();
        // The inverses of the powers, in the same order.
        let mut to = from.clone();
        to[1..].reverse();
        let turn = |&power: &usize| {
            Complex::from_polar(1.0, -std::f64::consts::TAU * power as f64 / len as f64)
        };
        let mut spectrum: Vec<_> = to.iter().map(turn).collect();
        let mut planner = <f64 as Planned>::Planner::default();
        f64::plan(&mut planner, spectrum.len(), FftDirection::Forward).process(&mut spectrum);
        let scale = 1.0 / spectrum.len() as f64;
        let spectrum = spectrum.into_iter().map(|v| rounded(v * scale)).collect();
        Some(Convolved { stages, spectrum, from, to })
    }

    fn run<'s, L: Lanes<Real = T>>(
        &self,
        view: View<L>,
        a: &'s mut [T],
        b: &'s mut [T],
    ) -> (&'s mut [T], &'s mut [T]) {
        // (All that is about vectors is in `vectorise`: elsewhere each operation is a call.)
        let first = view.lanes.vectorise(
            #[inline(always)]
            || {
                for (i, &at) in self.from.iter().enumerate() {
                    view.set(b, i, view.get(a, at));
                }
                view.get(a, 0)
            },
        );
        let (made, free) = self.stages.run(view, b, a);
        let total = view.lanes.vectorise(
            #[inline(always)]
            || {
                let total = first.plus(view.get(made, 0));
                for (i, &factor) in self.spectrum.iter().enumerate() {
                    view.set(made, i, view.get(made, i).times(view.splat(factor)));
                }
                total
            },
        );
        // With the parts exchanged, back from the spectrum.
        let (made, to) = self.stages.run(view.swapped(), made, free);
        view.lanes.vectorise(
            #[inline(always)]
            || {
                view.set(to, 0, total);
                for (i, &at) in self.to.iter().enumerate() {
                    view.set(to, at, first.plus(view.get(made, i)));
                }
            },
        );
        (to, made)
    }
}

fn rounded<T: Real>(v: Complex<f64>) -> [T; 2] {
    [T::rounded(v.re), T::rounded(v.im)]
}

/// A number whose powers are all those below a prime; `None` if it is not a prime.
fn generator(prime: usize) -> Option<usize> {
    if prime < 3 || (2..).take_while(|d| d * d <= prime).any(|d| prime.is_multiple_of(d)) {
        return None;
    }
    let order = |g: usize| {
        std::iter::successors(Some(g), |&at| Some(at * g % prime)).take_while(|&at| at != 1).count()
            + 1
    };
    (2..prime).find(|&g| order(g) == prime - 1)
}
