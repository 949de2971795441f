//! Balancing: eigenvalues that can be read off are moved to the corners, and rows and columns get norms
//! of about the same size.

use crate::scalar::{Real, Scalar};
use crate::vector::{max_abs, norm, scal_real, two_columns};

/// What was done to a matrix.
pub(crate) struct Balance<R> {
    /// Rows and columns `low..high` are the part that is not triangular.
    pub(crate) low: usize,
    pub(crate) high: usize,
    /// Rows that were exchanged, with columns of these numbers, in order.
    exchanges: Vec<(usize, usize)>,
    /// By what each column was multiplied, and each row divided.
    scales: Vec<R>,
}

impl<R: Real> Balance<R> {
    /// Balances a matrix of order `n`; `is_scaled` says whether norms are made equal, too.
    pub(crate) fn of<T: Scalar<Real = R>>(n: usize, a: &mut [T], is_scaled: bool) -> Self {
        let mut balance =
            Balance { low: 0, high: n, exchanges: Vec::new(), scales: vec![R::of(1.0); n] };
        balance.permute(n, a);
        if is_scaled {
            balance.scale(n, a);
        }
        balance
    }

    fn permute<T: Scalar>(&mut self, n: usize, a: &mut [T]) {
        let is_zero = |x: T| x == T::zero();
        // Rows that are zero but for the diagonal go to the bottom.
        'rows: while self.high > 0 {
            let high = self.high;
            for i in (0..high).rev() {
                if (0..high).all(|j| j == i || is_zero(a[i + j * n])) {
                    self.exchange(n, a, i, high - 1, high);
                    self.high -= 1;
                    continue 'rows;
                }
            }
            break;
        }
        // Columns that are zero but for the diagonal go to the left.
        'columns: while self.low < self.high {
            let (low, high) = (self.low, self.high);
            for j in low..high {
                if (low..high).all(|i| i == j || is_zero(a[i + j * n])) {
                    self.exchange(n, a, j, low, high);
                    self.low += 1;
                    continue 'columns;
                }
            }
            break;
        }
        if self.high == 0 {
            // All of it is triangular; what is left is one element.
            self.high = n.min(1);
        }
    }

    fn exchange<T: Scalar>(&mut self, n: usize, a: &mut [T], from: usize, to: usize, high: usize) {
        if from == to {
            return;
        }
        let (first, second) = (from.min(to), from.max(to));
        let (left, right) = two_columns(a, n, first, second);
        left[..high].swap_with_slice(&mut right[..high]);
        for column in a.chunks_mut(n).skip(self.low) {
            column.swap(first, second);
        }
        self.exchanges.push((first, second));
    }

    fn scale<T: Scalar<Real = R>>(&mut self, n: usize, a: &mut [T]) {
        let (zero, one, radix) = (R::default(), R::of(1.0), R::of(2.0));
        let least = R::SAFE_MIN / (R::EPS + R::EPS);
        let (small, large) = (least * radix, one / (least * radix));
        let (low, high) = (self.low, self.high);
        // Each round makes the matrix smaller by a twentieth; more rounds than exponents gain nothing.
        for _ in 0..64 {
            let mut is_converged = true;
            for i in low..high {
                let row: Vec<T> = (low..high).map(|j| a[i + j * n]).collect();
                let mut c = norm(&a[i * n + low..i * n + high]);
                let mut r = norm(&row);
                let mut column_max = max_abs(&a[i * n..i * n + high]);
                let mut row_max =
                    a[i..].iter().step_by(n).skip(low).fold(zero, |max, x| max.max(x.abs1()));
                if c == zero || r == zero {
                    continue;
                }
                let mut g = r / radix;
                let mut f = one;
                let sum = c + r;
                while c < g && f.max(c).max(column_max) < large && r.min(g).min(row_max) > small {
                    f *= radix;
                    c *= radix;
                    column_max *= radix;
                    r = r / radix;
                    g = g / radix;
                    row_max = row_max / radix;
                }
                g = c / radix;
                while g >= r && r.max(row_max) < large && f.min(c).min(g).min(column_max) > small {
                    f = f / radix;
                    c = c / radix;
                    g = g / radix;
                    column_max = column_max / radix;
                    r *= radix;
                    row_max *= radix;
                }
                // What is not a number changes nothing, either.
                let is_better = c + r < R::of(0.95) * sum;
                if !is_better {
                    continue;
                }
                if f < one && self.scales[i] < one && f * self.scales[i] <= small {
                    continue;
                }
                if f > one && self.scales[i] > one && self.scales[i] >= large / f {
                    continue;
                }
                self.scales[i] *= f;
                is_converged = false;
                a[i..].iter_mut().step_by(n).skip(low).for_each(|x| *x = x.scale(one / f));
                scal_real(f, &mut a[i * n..i * n + high]);
            }
            if is_converged {
                return;
            }
        }
    }

    /// Makes right eigenvectors (or Schur vectors) of the balanced matrix those of the matrix; left ones
    /// if `is_left`.
    pub(crate) fn undo<T: Scalar<Real = R>>(&self, n: usize, vectors: &mut [T], is_left: bool) {
        if n == 0 {
            return;
        }
        for column in vectors.chunks_mut(n) {
            for (x, &scale) in column.iter_mut().zip(&self.scales) {
                *x = x.scale(if is_left { R::of(1.0) / scale } else { scale });
            }
            for &(first, second) in self.exchanges.iter().rev() {
                column.swap(first, second);
            }
        }
    }
}
