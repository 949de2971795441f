//! Schur's form of complex Hessenberg matrices: QR steps with one implicit shift.

use num_complex::Complex;

use crate::reflector::reflector;
use crate::run::Run;
use crate::scalar::{Real, Scalar, square_root};
use crate::vector::{scal, two_columns};

/// A complex Hessenberg matrix on its way to Schur's form.
pub(crate) struct ComplexSchur<'m, R> {
    pub(crate) order: usize,
    pub(crate) h: &'m mut [Complex<R>],
    /// Changed as `h` is from the right.
    pub(crate) z: Option<&'m mut [Complex<R>]>,
    /// Whether all of the form is wanted, or eigenvalues alone.
    pub(crate) is_form_wanted: bool,
}

/// After how many steps without success a shift is made up.
const EXCEPTION: usize = 10;

impl<R: Real> ComplexSchur<'_, R>
where
    Complex<R>: Scalar<Real = R>,
{
    fn at(&self, i: usize, j: usize) -> Complex<R> {
        self.h[i + j * self.order]
    }

    fn at_mut(&mut self, i: usize, j: usize) -> &mut Complex<R> {
        &mut self.h[i + j * self.order]
    }

    /// Works on rows and columns `low..high`, outside of which the matrix is triangular, and writes the
    /// eigenvalues. Gives 0, or the number of eigenvalues up to which none was found.
    pub(crate) fn iterate(
        &mut self,
        run: &dyn Run,
        low: usize,
        high: usize,
        values: &mut [Complex<R>],
    ) -> i32 {
        for i in (0..low).chain(high..self.order) {
            values[i] = self.at(i, i);
        }
        for j in low..high {
            for i in j + 2..high {
                *self.at_mut(i, j) = Complex::default();
            }
        }
        self.make_real_below(low, high);
        let most = 30 * (high - low).max(10);
        let mut open = high;
        while open > low {
            let i = open - 1;
            let (mut is_found, mut failures) = (false, 0);
            for _ in 0..=most {
                if run.is_stopped() {
                    return 0;
                }
                let l = self.block_start(low, high, i);
                if l > low {
                    *self.at_mut(l, l - 1) = Complex::default();
                }
                if l == i {
                    is_found = true;
                    break;
                }
                failures += 1;
                let columns = if self.is_form_wanted { 0..self.order } else { l..i + 1 };
                let shift = self.shift(l, i, failures);
                self.step(l, i, columns, shift);
            }
            if !is_found {
                return i32::try_from(open).unwrap_or(i32::MAX);
            }
            values[i] = self.at(i, i);
            open = i;
        }
        0
    }

    /// Multiplies row `i` from column `from.end` on, and column `i` in the rows from `from.start` up to
    /// `below`, by a number of magnitude 1 and its conjugate.
    fn turn(
        &mut self,
        i: usize,
        by: Complex<R>,
        columns: std::ops::Range<usize>,
        rows: std::ops::Range<usize>,
    ) {
        let n = self.order;
        for j in columns {
            let turned = self.at(i, j) * by;
            *self.at_mut(i, j) = turned;
        }
        let back = Scalar::conj(by);
        scal(back, &mut self.h[i * n..][rows]);
        if let Some(z) = self.z.as_deref_mut() {
            scal(back, &mut z[i * n..(i + 1) * n]);
        }
    }

    /// Has real elements below the diagonal.
    fn make_real_below(&mut self, low: usize, high: usize) {
        let (first, last) = if self.is_form_wanted { (0, self.order) } else { (low, high) };
        for i in low + 1..high {
            let below = self.at(i, i - 1);
            if below.im == R::default() {
                continue;
            }
            let unit = below.scale(R::of(1.0) / below.abs1());
            let by = Scalar::conj(unit).scale(R::of(1.0) / unit.magnitude());
            *self.at_mut(i, i - 1) = Complex::real(below.magnitude());
            self.turn(i, by, i..last, first..high.min(i + 2));
        }
    }

    /// Where the block that ends with row `i` begins: below a negligible element.
    fn block_start(&self, low: usize, high: usize, i: usize) -> usize {
        let ulp = R::EPS + R::EPS;
        let small = R::SAFE_MIN * (R::of((high - low) as f64) / ulp);
        for k in (low + 1..=i).rev() {
            let below = self.at(k, k - 1);
            if below.abs1() <= small {
                return k;
            }
            let mut sum = self.at(k - 1, k - 1).abs1() + self.at(k, k).abs1();
            if sum == R::default() {
                if k >= low + 2 {
                    sum += self.at(k - 1, k - 2).re.abs();
                }
                if k + 1 < high {
                    sum += self.at(k + 1, k).re.abs();
                }
            }
            if below.re.abs() <= ulp * sum {
                let (below, above) = (below.abs1(), self.at(k - 1, k).abs1());
                let (ab, ba) = (below.max(above), below.min(above));
                let last = self.at(k, k).abs1();
                let difference = (self.at(k - 1, k - 1) - self.at(k, k)).abs1();
                let (aa, bb) = (last.max(difference), last.min(difference));
                let s = aa + ab;
                if ba * (ab / s) <= small.max(ulp * (bb * (aa / s))) {
                    return k;
                }
            }
        }
        low
    }

    fn shift(&self, l: usize, i: usize, failures: usize) -> Complex<R> {
        let (zero, half) = (R::default(), R::of(0.5));
        if failures.is_multiple_of(2 * EXCEPTION) {
            return self.at(i, i) + Complex::real(R::of(0.75) * self.at(i, i - 1).re.abs());
        }
        if failures.is_multiple_of(EXCEPTION) {
            return self.at(l, l) + Complex::real(R::of(0.75) * self.at(l + 1, l).re.abs());
        }
        let t = self.at(i, i);
        let u = square_root(self.at(i - 1, i)) * square_root(self.at(i, i - 1));
        if u.abs1() == zero {
            return t;
        }
        let x = (self.at(i - 1, i - 1) - t).scale(half);
        let x_size = x.abs1();
        let s = u.abs1().max(x_size);
        let down = R::of(1.0) / s;
        let (x_small, u_small) = (x.scale(down), u.scale(down));
        let mut y = square_root(x_small * x_small + u_small * u_small).scale(s);
        if x_size > zero {
            let unit = x.scale(R::of(1.0) / x_size);
            if unit.re * y.re + unit.im * y.im < zero {
                y = -y;
            }
        }
        t - u * u.over(x + y)
    }

    /// One step on rows `l..=i`.
    fn step(&mut self, l: usize, i: usize, columns: std::ops::Range<usize>, shift: Complex<R>) {
        let ulp = R::EPS + R::EPS;
        let mut m = i - 1;
        let mut v;
        loop {
            let (h11, h22) = (self.at(m, m), self.at(m + 1, m + 1));
            let shifted = h11 - shift;
            let below = self.at(m + 1, m).re;
            let down = R::of(1.0) / (shifted.abs1() + below.abs());
            let (shifted, below) = (shifted.scale(down), below * down);
            v = [shifted, Complex::real(below)];
            if m == l {
                break;
            }
            let before = self.at(m, m - 1).re;
            let beside = h11.abs1() + h22.abs1();
            if before.abs() * below.abs() <= ulp * (shifted.abs1() * beside) {
                break;
            }
            m -= 1;
        }
        for k in m..i {
            if k > m {
                v = [self.at(k, k - 1), self.at(k + 1, k - 1)];
            }
            let (head, tail) = v.split_at_mut(1);
            let (beta, tau) = reflector(head[0], tail);
            if k > m {
                *self.at_mut(k, k - 1) = Complex::real(beta);
                *self.at_mut(k + 1, k - 1) = Complex::default();
            }
            self.reflect(k, tau, v[1], i, &columns);
            if k == m && m > l {
                self.keep_real(m, i, tau, &columns);
            }
        }
        let below = self.at(i, i - 1);
        if below.im != R::default() {
            let size = below.magnitude();
            *self.at_mut(i, i - 1) = Complex::real(size);
            let unit = below.scale(R::of(1.0) / size);
            self.turn(i, Scalar::conj(unit), i + 1..columns.end, columns.start..i);
        }
    }

    /// Applies the reflector of rows `k` and `k + 1` from both sides.
    fn reflect(
        &mut self,
        k: usize,
        tau: Complex<R>,
        v: Complex<R>,
        i: usize,
        columns: &std::ops::Range<usize>,
    ) {
        let n = self.order;
        // τ v is real.
        let t2 = (tau * v).re;
        for column in self.h.chunks_mut(n).take(columns.end).skip(k) {
            let (x, y) = (column[k], column[k + 1]);
            let sum = Scalar::conj(tau) * x + y.scale(t2);
            column[k] = x - sum;
            column[k + 1] = y - sum * v;
        }
        let rows = columns.start..(k + 3).min(i + 1);
        let from_right = |a: &mut [Complex<R>], rows: std::ops::Range<usize>| {
            let (x, y) = two_columns(a, n, k, k + 1);
            for (x, y) in x[rows.clone()].iter_mut().zip(&mut y[rows]) {
                let sum = tau * *x + y.scale(t2);
                *x -= sum;
                *y -= sum * Scalar::conj(v);
            }
        };
        from_right(self.h, rows);
        if let Some(z) = self.z.as_deref_mut() {
            from_right(z, 0..n);
        }
    }

    /// After the first reflector of a step that began in the middle of a block: the element before it
    /// stays real.
    fn keep_real(&mut self, m: usize, i: usize, tau: Complex<R>, columns: &std::ops::Range<usize>) {
        let turn = Complex::real(R::of(1.0)) - tau;
        let turn = turn.scale(R::of(1.0) / turn.magnitude());
        let back = Scalar::conj(turn);
        let below = self.at(m + 1, m) * back;
        *self.at_mut(m + 1, m) = below;
        if m + 2 <= i {
            let below = self.at(m + 2, m + 1) * turn;
            *self.at_mut(m + 2, m + 1) = below;
        }
        for j in (m..=i).filter(|&j| j != m + 1) {
            self.turn(j, turn, j + 1..columns.end, columns.start..j);
        }
    }
}
