//! Tridiagonal form of Hermitian matrices.

use crate::Triangle;
use crate::reflector::reflector;
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::vector::{axpy, dot, scal};

pub(crate) fn hetrd<T: Scalar>(
    run: &dyn Run,
    triangle: Triangle,
    n: usize,
    a: &mut [T],
    d: &mut [T::Real],
    e: &mut [T::Real],
    tau: &mut [T],
) {
    if n == 0 {
        return;
    }
    let mut work = vec![T::zero(); n];
    match triangle {
        Triangle::Lower => {
            a[0] = T::real(a[0].re());
            for i in 0..n - 1 {
                if run.is_stopped() {
                    return;
                }
                let (left, right) = a.split_at_mut((i + 1) * n);
                let column = &mut left[i * n + i..];
                let (head, v) = column[1..].split_at_mut(1);
                let (beta, t) = reflector(head[0], v);
                (e[i], tau[i]) = (beta, t);
                head[0] = T::one();
                rank_two_update(triangle, t, &column[1..], &mut right[i + 1..], n, &mut work);
                column[1] = T::real(beta);
                d[i] = column[0].re();
            }
            d[n - 1] = a[n * n - 1].re();
        }
        Triangle::Upper => {
            a[n * n - 1] = T::real(a[n * n - 1].re());
            for i in (0..n - 1).rev() {
                if run.is_stopped() {
                    return;
                }
                let (left, right) = a.split_at_mut((i + 1) * n);
                let column = &mut right[..n];
                let (v, head) = column[..=i].split_at_mut(i);
                let (beta, t) = reflector(head[0], v);
                (e[i], tau[i]) = (beta, t);
                head[0] = T::one();
                rank_two_update(triangle, t, &column[..=i], left, n, &mut work);
                column[i] = T::real(beta);
                d[i + 1] = column[i + 1].re();
            }
            d[0] = a[0].re();
        }
    }
}

/// `A := Hᴴ A H` for the triangle of a matrix whose columns begin every `stride` elements, of the order
/// that `v` has elements.
fn rank_two_update<T: Scalar>(
    triangle: Triangle,
    tau: T,
    v: &[T],
    a: &mut [T],
    stride: usize,
    work: &mut [T],
) {
    let n = v.len();
    let w = &mut work[..n];
    if tau == T::zero() {
        // The diagonal is real all the same.
        a.iter_mut().step_by(stride + 1).take(n).for_each(|d| *d = T::real(d.re()));
        return;
    }
    hermitian_product(triangle, a, stride, v, w);
    scal(tau, w);
    let alpha = (tau * dot(w, v)).scale(T::Real::of(-0.5));
    axpy(alpha, v, w);
    for j in 0..n {
        let rows = match triangle {
            Triangle::Lower => j..n,
            Triangle::Upper => 0..j + 1,
        };
        let column = &mut a[j * stride..][rows.clone()];
        let (by_v, by_w) = (-w[j].conj(), -v[j].conj());
        for ((a, &v), &w) in column.iter_mut().zip(&v[rows.clone()]).zip(&w[rows.clone()]) {
            *a += v * by_v + w * by_w;
        }
        let diagonal = &mut a[j * stride + j];
        *diagonal = T::real(diagonal.re());
    }
}

/// `w = A v` for a Hermitian matrix of which one triangle is given; each column is read once.
fn hermitian_product<T: Scalar>(triangle: Triangle, a: &[T], stride: usize, v: &[T], w: &mut [T]) {
    let n = v.len();
    w.fill(T::zero());
    for j in 0..n {
        let column = &a[j * stride..];
        let rows = match triangle {
            Triangle::Lower => j + 1..n,
            Triangle::Upper => 0..j,
        };
        let part = &column[rows.clone()];
        axpy(v[j], part, &mut w[rows.clone()]);
        let sum = dot(part, &v[rows]) + v[j].scale(column[j].re());
        w[j] += sum;
    }
}
