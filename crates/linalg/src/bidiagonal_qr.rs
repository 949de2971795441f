//! Singular values of bidiagonal matrices by implicit QR steps, after Demmel and Kahan: small ones to
//! high relative accuracy.

use crate::rotations::{Rotations, rotation};
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::two_by_two::{singular_pair, singular_values};
use num_traits::Float;

/// How many sweeps over the whole matrix each value may take.
const SWEEPS_PER_VALUE: usize = 6;

/// A bidiagonal matrix on its way to a diagonal one, and the vectors that go with it.
pub(crate) struct Sweeper<'a, 'm, T: Scalar> {
    pub(crate) d: &'a mut [T::Real],
    /// One element less than `d`.
    pub(crate) e: &'a mut [T::Real],
    pub(crate) left: Rotations<'m, T>,
    pub(crate) right: Rotations<'m, T>,
}

/// In which direction a step goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Down,
    Up,
}

impl<T: Scalar> Sweeper<'_, '_, T> {
    /// Makes `d` the singular values, with signs, in any order. Gives how many elements of `e` did not
    /// vanish.
    pub(crate) fn sweep(&mut self, run: &dyn Run) -> i32 {
        let zero = T::Real::default();
        let n = self.d.len();
        let tolerance = tolerance::<T::Real>();
        let threshold = self.threshold(tolerance);
        let mut left = SWEEPS_PER_VALUE * n * n;
        // The block that the last step was in, and its direction.
        let mut last: Option<(usize, usize, Direction)> = None;
        let mut open = n;
        while open > 1 {
            let m = open - 1;
            if run.is_stopped() {
                return 0;
            }
            if left == 0 {
                let rest = self.e.iter().filter(|&&e| e != zero).count();
                return i32::try_from(rest).unwrap_or(i32::MAX).max(1);
            }
            let mut max = self.d[m].abs();
            let mut ll = m;
            while ll > 0 && self.e[ll - 1].abs() > threshold {
                ll -= 1;
                max = max.max(self.d[ll].abs()).max(self.e[ll].abs());
            }
            if ll > 0 {
                self.e[ll - 1] = zero;
            }
            if ll == m {
                open -= 1;
                continue;
            }
            if ll + 1 == m {
                let pair = singular_pair(self.d[ll], self.e[ll], self.d[m]);
                (self.d[ll], self.e[ll], self.d[m]) = (pair.large, zero, pair.small);
                self.right.push(ll, pair.right.0, pair.right.1);
                self.left.push(ll, pair.left.0, pair.left.1);
                open -= 2;
                continue;
            }
            let direction = match last {
                Some((from, to, direction)) if ll <= to && m >= from => direction,
                _ if self.d[ll].abs() >= self.d[m].abs() => Direction::Down,
                _ => Direction::Up,
            };
            let Some(min) = self.converged(ll, m, direction, tolerance) else { continue };
            last = Some((ll, m, direction));
            left = left.saturating_sub(m - ll);
            let shift = self.shift(ll, m, direction, tolerance, min, max);
            match (direction, shift == zero) {
                (Direction::Down, true) => self.down_without_shift(ll, m),
                (Direction::Up, true) => self.up_without_shift(ll, m),
                (Direction::Down, false) => self.down(ll, m, shift),
                (Direction::Up, false) => self.up(ll, m, shift),
            }
            let end = if direction == Direction::Down { m - 1 } else { ll };
            if self.e[end].abs() <= threshold {
                self.e[end] = zero;
            }
            self.left.settle(run);
            self.right.settle(run);
        }
        0
    }

    /// Below which an element beside the diagonal is none.
    fn threshold(&self, tolerance: T::Real) -> T::Real {
        let zero = T::Real::default();
        let n = self.d.len();
        let mut min = self.d[0].abs();
        let mut mu = min;
        for i in 1..n {
            if min == zero {
                break;
            }
            mu = self.d[i].abs() * (mu / (mu + self.e[i - 1].abs()));
            min = min.min(mu);
        }
        let order = T::Real::of(n as f64);
        let least = T::Real::of(SWEEPS_PER_VALUE as f64) * order * order * T::Real::SAFE_MIN;
        (tolerance * min / order.sqrt()).max(least)
    }

    /// Sets elements to 0 that are small enough: then `None`. Otherwise a lower bound of the singular
    /// values of the block.
    fn converged(
        &mut self,
        ll: usize,
        m: usize,
        direction: Direction,
        tolerance: T::Real,
    ) -> Option<T::Real> {
        let zero = T::Real::default();
        let (d, e) = (&*self.d, &mut *self.e);
        let (end, next) = if direction == Direction::Down { (m - 1, m) } else { (ll, ll) };
        if e[end].abs() <= tolerance * d[next].abs() {
            e[end] = zero;
            return None;
        }
        let mut mu = d[if direction == Direction::Down { ll } else { m }].abs();
        let mut min = mu;
        for step in 0..m - ll {
            let (i, next) = match direction {
                Direction::Down => (ll + step, ll + step + 1),
                Direction::Up => (m - 1 - step, m - 1 - step),
            };
            if e[i].abs() <= tolerance * mu {
                e[i] = zero;
                return None;
            }
            mu = d[next].abs() * (mu / (mu + e[i].abs()));
            min = min.min(mu);
        }
        Some(min)
    }

    fn shift(
        &self,
        ll: usize,
        m: usize,
        direction: Direction,
        tolerance: T::Real,
        min: T::Real,
        max: T::Real,
    ) -> T::Real {
        let zero = T::Real::default();
        let order = T::Real::of(self.d.len() as f64);
        let limit = T::Real::EPS.max(T::Real::of(0.01) * tolerance);
        if order * tolerance * (min / max) <= limit {
            return zero;
        }
        let (start, (shift, _)) = match direction {
            Direction::Down => {
                (self.d[ll].abs(), singular_values(self.d[m - 1], self.e[m - 1], self.d[m]))
            }
            Direction::Up => {
                (self.d[m].abs(), singular_values(self.d[ll], self.e[ll], self.d[ll + 1]))
            }
        };
        let ratio = shift / start;
        if start > zero && ratio * ratio < T::Real::EPS { zero } else { shift }
    }

    fn down_without_shift(&mut self, ll: usize, m: usize) {
        let one = T::Real::of(1.0);
        let (mut c, mut old_c, mut old_s) = (one, one, T::Real::default());
        for i in ll..m {
            let (s, r);
            (c, s, r) = rotation(self.d[i] * c, self.e[i]);
            if i > ll {
                self.e[i - 1] = old_s * r;
            }
            (old_c, old_s, self.d[i]) = rotation(old_c * r, self.d[i + 1] * s);
            self.right.push(i, c, s);
            self.left.push(i, old_c, old_s);
        }
        let h = self.d[m] * c;
        (self.d[m], self.e[m - 1]) = (h * old_c, h * old_s);
    }

    fn up_without_shift(&mut self, ll: usize, m: usize) {
        let one = T::Real::of(1.0);
        let (mut c, mut old_c, mut old_s) = (one, one, T::Real::default());
        for i in (ll + 1..=m).rev() {
            let (s, r);
            (c, s, r) = rotation(self.d[i] * c, self.e[i - 1]);
            if i < m {
                self.e[i] = old_s * r;
            }
            (old_c, old_s, self.d[i]) = rotation(old_c * r, self.d[i - 1] * s);
            self.left.push(i - 1, c, -s);
            self.right.push(i - 1, old_c, -old_s);
        }
        let h = self.d[ll] * c;
        (self.d[ll], self.e[ll]) = (h * old_c, h * old_s);
    }

    fn down(&mut self, ll: usize, m: usize, shift: T::Real) {
        let (d, e) = (&mut *self.d, &mut *self.e);
        let one = T::Real::of(1.0);
        let mut f = (d[ll].abs() - shift) * (one.copysign(d[ll]) + shift / d[ll]);
        let mut g = e[ll];
        for i in ll..m {
            let (c, s, r) = rotation(f, g);
            if i > ll {
                e[i - 1] = r;
            }
            f = c * d[i] + s * e[i];
            e[i] = c * e[i] - s * d[i];
            g = s * d[i + 1];
            d[i + 1] = c * d[i + 1];
            self.right.push(i, c, s);
            let (c, s, r) = rotation(f, g);
            d[i] = r;
            f = c * e[i] + s * d[i + 1];
            d[i + 1] = c * d[i + 1] - s * e[i];
            if i + 1 < m {
                g = s * e[i + 1];
                e[i + 1] = c * e[i + 1];
            }
            self.left.push(i, c, s);
        }
        e[m - 1] = f;
    }

    fn up(&mut self, ll: usize, m: usize, shift: T::Real) {
        let (d, e) = (&mut *self.d, &mut *self.e);
        let one = T::Real::of(1.0);
        let mut f = (d[m].abs() - shift) * (one.copysign(d[m]) + shift / d[m]);
        let mut g = e[m - 1];
        for i in (ll + 1..=m).rev() {
            let (c, s, r) = rotation(f, g);
            if i < m {
                e[i] = r;
            }
            f = c * d[i] + s * e[i - 1];
            e[i - 1] = c * e[i - 1] - s * d[i];
            g = s * d[i - 1];
            d[i - 1] = c * d[i - 1];
            self.left.push(i - 1, c, -s);
            let (c, s, r) = rotation(f, g);
            d[i] = r;
            f = c * e[i - 1] + s * d[i - 1];
            d[i - 1] = c * d[i - 1] - s * e[i - 1];
            if i > ll + 1 {
                g = s * e[i - 2];
                e[i - 2] = c * e[i - 2];
            }
            self.right.push(i - 1, c, -s);
        }
        e[ll] = f;
    }
}

/// The relative error that singular values may have.
fn tolerance<R: Real>() -> R {
    let factor = R::EPS.powf(R::of(-0.125));
    factor.max(R::of(10.0)).min(R::of(100.0)) * R::EPS
}
