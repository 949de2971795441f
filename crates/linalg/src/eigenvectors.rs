//! Eigenvectors of Schur forms.

use num_complex::Complex;
use num_traits::Float;

use crate::run::{Run, columns};
use crate::scalar::{Real, Scalar};
use crate::vector::max_abs;

/// A Schur form: triangular, but for 2×2 blocks on the diagonal if it is real.
pub(crate) struct Form<'m, T> {
    pub(crate) order: usize,
    pub(crate) t: &'m [T],
}

/// Makes a vector that of the eigenvalue of a number.
type Solve<'s, R> = dyn Fn(usize, &mut [Complex<R>]) + Sync + 's;

impl<T: Scalar> Form<'_, T>
where
    Complex<T::Real>: Scalar<Real = T::Real>,
{
    fn at(&self, i: usize, j: usize) -> T {
        self.t[i + j * self.order]
    }

    /// Whether rows `i` and `i + 1` are a block.
    fn is_block(&self, i: usize) -> bool {
        !T::IS_COMPLEX && i + 1 < self.order && self.at(i + 1, i) != T::zero()
    }

    /// The least that a pivot counts as.
    fn least(&self) -> T::Real {
        let ulp = T::Real::EPS + T::Real::EPS;
        let small = T::Real::SAFE_MIN * (T::Real::of(self.order as f64) / ulp);
        small.max(ulp * max_abs(self.t))
    }

    /// `V x` for the right eigenvectors `x` of the form, one for each value, where the columns of `vectors`
    /// are `V`. Of pairs of conjugate eigenvalues, the second vector is the conjugate of the first.
    pub(crate) fn right(
        &self,
        run: &dyn Run,
        values: &[Complex<T::Real>],
        vectors: &[T],
        to: &mut [Complex<T::Real>],
    ) {
        let least = self.least();
        self.each(run, values, vectors, to, &|j, x| self.solve_right(j, values[j], least, x));
    }

    /// As [`Form::right`], left eigenvectors.
    pub(crate) fn left(
        &self,
        run: &dyn Run,
        values: &[Complex<T::Real>],
        vectors: &[T],
        to: &mut [Complex<T::Real>],
    ) {
        let least = self.least();
        self.each(run, values, vectors, to, &|j, x| self.solve_left(j, values[j], least, x));
    }

    fn each(
        &self,
        run: &dyn Run,
        values: &[Complex<T::Real>],
        vectors: &[T],
        to: &mut [Complex<T::Real>],
        solve: &Solve<'_, T::Real>,
    ) {
        let n = self.order;
        let is_second = |j: usize| !T::IS_COMPLEX && values[j].im < T::Real::default();
        columns(run, n, to, n * n, &|j, column| {
            if run.is_stopped() || is_second(j) {
                return;
            }
            let mut x = vec![Complex::default(); n];
            solve(j, &mut x);
            column.fill(Complex::default());
            for (&x, vector) in x.iter().zip(vectors.chunks(n)) {
                if x == Complex::default() {
                    continue;
                }
                for (to, &v) in column.iter_mut().zip(vector) {
                    *to += product(x, v);
                }
            }
            normalize(column, !T::IS_COMPLEX && values[j].im > T::Real::default());
        });
        for j in (1..n).filter(|&j| is_second(j)) {
            let (first, second) = to[(j - 1) * n..(j + 1) * n].split_at_mut(n);
            second.iter_mut().zip(first).for_each(|(y, x)| *y = Scalar::conj(*x));
        }
    }

    /// `(T − λ) x = 0` from the row of the eigenvalue upwards.
    fn solve_right(
        &self,
        j: usize,
        value: Complex<T::Real>,
        least: T::Real,
        x: &mut [Complex<T::Real>],
    ) {
        let mut end = j;
        if self.is_block(j) {
            let (above, below) = (self.at(j, j + 1).re(), self.at(j + 1, j).re());
            let imaginary = |im: T::Real| Complex::new(T::Real::default(), im);
            (x[j], x[j + 1]) = if Float::abs(above) >= Float::abs(below) {
                (Complex::one(), imaginary(value.im / above))
            } else {
                (Complex::real(-value.im / below), imaginary(T::Real::of(1.0)))
            };
            self.subtract_column(j + 1, j, x);
        } else {
            x[j] = Complex::one();
        }
        self.subtract_column(j, j, x);
        while end > 0 {
            let is_pair = end >= 2 && self.is_block(end - 2);
            let i = if is_pair { end - 2 } else { end - 1 };
            if is_pair {
                self.solve_pair(i, value, least, false, x);
                self.shrink(i, x);
                self.subtract_column(i + 1, i, x);
            } else {
                x[i] = x[i].over(pivot(complex(self.at(i, i)) - value, least));
                self.shrink(i, x);
            }
            self.subtract_column(i, i, x);
            end = i;
        }
    }

    /// Subtracts what the unknown `column` contributes to the rows below `rows`.
    fn subtract_column(&self, column: usize, rows: usize, x: &mut [Complex<T::Real>]) {
        let factor = -x[column];
        for (x, &t) in x[..rows].iter_mut().zip(&self.t[column * self.order..]) {
            *x += product(factor, t);
        }
    }

    /// `(Tᴴ − conj λ) x = 0` from the row of the eigenvalue downwards.
    fn solve_left(
        &self,
        j: usize,
        value: Complex<T::Real>,
        least: T::Real,
        x: &mut [Complex<T::Real>],
    ) {
        let n = self.order;
        let value = Scalar::conj(value);
        let mut start = j + 1;
        if self.is_block(j) {
            let (above, below) = (self.at(j, j + 1).re(), self.at(j + 1, j).re());
            let imaginary = |im: T::Real| Complex::new(T::Real::default(), im);
            // The imaginary part of `value` has changed its sign.
            (x[j], x[j + 1]) = if Float::abs(above) >= Float::abs(below) {
                (Complex::real(-value.im / above), imaginary(T::Real::of(1.0)))
            } else {
                (Complex::one(), imaginary(value.im / below))
            };
            start = j + 2;
        } else {
            x[j] = Complex::one();
        }
        while start < n {
            let i = start;
            let width = if self.is_block(i) { 2 } else { 1 };
            for row in i..i + width {
                let mut sum = Complex::default();
                for (&x, &t) in x[j..i].iter().zip(&self.t[row * n + j..]) {
                    sum += product(x, t.conj());
                }
                x[row] = -sum;
            }
            if width == 2 {
                self.solve_pair(i, value, least, true, x);
                self.shrink(i, x);
            } else {
                x[i] = x[i].over(pivot(complex(self.at(i, i).conj()) - value, least));
                self.shrink(i, x);
            }
            start += width;
        }
    }

    /// Solves with a block, or its transpose, minus the value.
    fn solve_pair(
        &self,
        i: usize,
        value: Complex<T::Real>,
        least: T::Real,
        is_transposed: bool,
        x: &mut [Complex<T::Real>],
    ) {
        let (a, d) = (complex(self.at(i, i)) - value, complex(self.at(i + 1, i + 1)) - value);
        let (mut b, mut c) = (complex(self.at(i, i + 1)), complex(self.at(i + 1, i)));
        if is_transposed {
            (b, c) = (c, b);
        }
        let (f, g) = (x[i], x[i + 1]);
        // By elimination with the larger of the pivots in the first column.
        if a.abs1() >= c.abs1() {
            let a = pivot(a, least);
            let factor = c.over(a);
            let second = (g - factor * f).over(pivot(d - factor * b, least));
            (x[i], x[i + 1]) = ((f - b * second).over(a), second);
        } else {
            let c = pivot(c, least);
            let factor = a.over(c);
            let second = (f - factor * g).over(pivot(b - factor * d, least));
            (x[i], x[i + 1]) = ((g - d * second).over(c), second);
        }
    }

    /// Makes a vector smaller that might overflow, after its element `i` has become known.
    fn shrink(&self, i: usize, x: &mut [Complex<T::Real>]) {
        let size = x[i..].iter().take(2).fold(T::Real::default(), |max, x| max.max(x.abs1()));
        let most = T::Real::of(1.0) / (T::Real::SAFE_MIN.sqrt() * T::Real::of(1e6));
        if size > most && size.is_finite() {
            let down = T::Real::of(1.0) / size;
            x.iter_mut().for_each(|x| *x = Scalar::scale(*x, down));
        }
    }
}

/// A pivot that is not too small.
fn pivot<R: Real>(x: Complex<R>, least: R) -> Complex<R>
where
    Complex<R>: Scalar<Real = R>,
{
    if x.abs1() < least { Complex::real(least) } else { x }
}

fn complex<T: Scalar>(x: T) -> Complex<T::Real> {
    Complex::new(x.re(), x.im())
}

/// The product of a complex number and one that may be real.
fn product<T: Scalar>(x: Complex<T::Real>, t: T) -> Complex<T::Real> {
    if T::IS_COMPLEX {
        Complex::new(x.re * t.re() - x.im * t.im(), x.re * t.im() + x.im * t.re())
    } else {
        Complex::new(x.re * t.re(), x.im * t.re())
    }
}

/// Makes the norm 1 and, if asked, the largest element real.
pub(crate) fn normalize<R: Real>(x: &mut [Complex<R>], is_turned: bool)
where
    Complex<R>: Scalar<Real = R>,
{
    let length = crate::vector::norm(x);
    if length > R::default() && length.is_finite() {
        let down = R::of(1.0) / length;
        x.iter_mut().for_each(|x| *x = Complex::new(x.re * down, x.im * down));
    }
    if !is_turned {
        return;
    }
    let Some(largest) = (0..x.len()).reduce(|best, i| {
        let size = |i: usize| x[i].re * x[i].re + x[i].im * x[i].im;
        if size(i) > size(best) { i } else { best }
    }) else {
        return;
    };
    let turn = Scalar::conj(x[largest]);
    let size = turn.magnitude();
    if size > R::default() {
        let turn = Complex::new(turn.re / size, turn.im / size);
        x.iter_mut().for_each(|x| *x *= turn);
        x[largest].im = R::default();
    }
}
