//! Operations on vectors.

use num_traits::Float;

use crate::scalar::{Real, Scalar};

/// How many sums run side by side, so that they are vectors of the machine.
const LANES: usize = 8;

/// `y += α x`.
pub(crate) fn axpy<T: Scalar>(alpha: T, x: &[T], y: &mut [T]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// `x *= α`.
pub(crate) fn scal<T: Scalar>(alpha: T, x: &mut [T]) {
    for x in x {
        *x *= alpha;
    }
}

/// `x *= α` with a real `α`.
pub(crate) fn scal_real<T: Scalar>(alpha: T::Real, x: &mut [T]) {
    for x in x {
        *x = x.scale(alpha);
    }
}

/// `xᴴ y`.
pub(crate) fn dot<T: Scalar>(x: &[T], y: &[T]) -> T {
    sum_of_products(x, y, T::conj)
}

/// `xᵀ y`.
pub(crate) fn dot_plain<T: Scalar>(x: &[T], y: &[T]) -> T {
    sum_of_products(x, y, |x| x)
}

fn sum_of_products<T: Scalar>(x: &[T], y: &[T], of: impl Fn(T) -> T) -> T {
    let len = x.len().min(y.len());
    let (x, y) = (&x[..len], &y[..len]);
    let mut sums = [T::zero(); LANES];
    let (xs, ys) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let (x_rest, y_rest) = (xs.remainder(), ys.remainder());
    for (x, y) in xs.zip(ys) {
        for lane in 0..LANES {
            sums[lane] += of(x[lane]) * y[lane];
        }
    }
    let mut sum = T::zero();
    for (&x, &y) in x_rest.iter().zip(y_rest) {
        sum += of(x) * y;
    }
    sums.into_iter().fold(sum, |sum, lane| sum + lane)
}

/// The Euclidean norm, without overflow or underflow on the way.
pub(crate) fn norm<T: Scalar>(x: &[T]) -> T::Real {
    let square = |x: T, scale: T::Real| {
        let (re, im) = (x.re() * scale, x.im() * scale);
        re * re + im * im
    };
    let one = T::Real::of(1.0);
    let sum = x.iter().fold(T::Real::default(), |sum, &x| sum + square(x, one));
    let small = T::Real::SAFE_MIN / T::Real::EPS;
    if sum.is_finite() && sum > small {
        return sum.sqrt();
    }
    let max = max_abs(x);
    if !max.is_finite() || max == T::Real::default() {
        return max;
    }
    let sum = |scale: T::Real| x.iter().fold(T::Real::default(), |sum, &x| sum + square(x, scale));
    if max < T::Real::SAFE_MIN {
        // 1 / max may be infinite.
        let up = one / T::Real::SAFE_MIN;
        return sum(up).sqrt() * T::Real::SAFE_MIN;
    }
    sum(one / max).sqrt() * max
}

/// The greatest magnitude of a part; NaN if there is one.
pub(crate) fn max_abs<T: Scalar>(x: &[T]) -> T::Real {
    let mut max = T::Real::default();
    for &x in x {
        for part in [Float::abs(x.re()), Float::abs(x.im())] {
            if part > max || part.is_nan() {
                max = part;
            }
            if max.is_nan() {
                return max;
            }
        }
    }
    max
}

/// `y −= A w` for the matrix whose columns are the first elements of chunks of `stride` of `a`; four
/// columns at a time.
pub(crate) fn subtract_product<T: Scalar>(a: &[T], stride: usize, w: &[T], y: &mut [T]) {
    let rows = y.len();
    if rows == 0 {
        return;
    }
    let mut k = 0;
    while k + 4 <= w.len() {
        let column = |i: usize| &a[(k + i) * stride..][..rows];
        let (a0, a1, a2, a3) = (column(0), column(1), column(2), column(3));
        let (w0, w1, w2, w3) = (w[k], w[k + 1], w[k + 2], w[k + 3]);
        for i in 0..rows {
            let sum = (a0[i] * w0 + a1[i] * w1) + (a2[i] * w2 + a3[i] * w3);
            y[i] -= sum;
        }
        k += 4;
    }
    for (k, &w) in w.iter().enumerate().skip(k) {
        axpy(-w, &a[k * stride..][..rows], y);
    }
}

/// Two columns of a matrix of `rows` rows, the first left of the second.
pub(crate) fn two_columns<T>(
    a: &mut [T],
    rows: usize,
    first: usize,
    second: usize,
) -> (&mut [T], &mut [T]) {
    let (left, right) = a.split_at_mut(second * rows);
    (&mut left[first * rows..][..rows], &mut right[..rows])
}

/// The conjugate transpose of an `m`×`n` matrix.
pub(crate) fn adjoint<T: Scalar>(m: usize, n: usize, a: &[T]) -> Vec<T> {
    let mut to = vec![T::zero(); m * n];
    adjoint_into(m, n, a, &mut to);
    to
}

/// Writes the conjugate transpose of an `m`×`n` matrix, block by block.
pub(crate) fn adjoint_into<T: Scalar>(m: usize, n: usize, a: &[T], to: &mut [T]) {
    const BLOCK: usize = 16;
    for j0 in (0..n).step_by(BLOCK) {
        for i0 in (0..m).step_by(BLOCK) {
            for j in j0..n.min(j0 + BLOCK) {
                for i in i0..m.min(i0 + BLOCK) {
                    to[j + i * n] = a[i + j * m].conj();
                }
            }
        }
    }
}

/// The power of two by which a matrix is multiplied so that its squares neither overflow nor vanish;
/// `None` if it need not be. `max` is its greatest element.
pub(crate) fn scaling<R: Real>(max: R) -> Option<R> {
    let small = R::SAFE_MIN.sqrt() / R::EPS;
    if max == R::default() || max >= small && max <= R::of(1.0) / small {
        return None;
    }
    let mut scale = R::of(1.0);
    let (half, two) = (R::of(0.5), R::of(2.0));
    // At most as many steps as there are exponents; never beyond what is finite.
    while max * scale > R::of(1.0) {
        scale *= half;
    }
    while max * scale < half && scale < R::of(1.0) / R::SAFE_MIN {
        scale *= two;
    }
    Some(scale)
}
