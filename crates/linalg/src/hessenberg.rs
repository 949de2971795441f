//! Hessenberg form, and the matrices that reflectors below a diagonal make.

use crate::qr::orgqr;
use crate::reflector::{apply, apply_right, reflector};
use crate::run::{Run, columns};
use crate::scalar::Scalar;

pub(crate) fn gehrd<T: Scalar>(
    run: &dyn Run,
    n: usize,
    low: usize,
    high: usize,
    a: &mut [T],
    tau: &mut [T],
) {
    tau.fill(T::zero());
    let mut work = vec![T::zero(); n];
    for i in low.max(1) - 1..high.saturating_sub(1) {
        if run.is_stopped() {
            return;
        }
        let (left, right) = a.split_at_mut((i + 1) * n);
        let (head, v) = left[i * n + i + 1..i * n + high].split_at_mut(1);
        let (beta, t) = reflector(head[0], v);
        (head[0], tau[i]) = (T::real(beta), t);
        let v = &*v;
        apply_right(t, v, right, n, high, &mut work);
        columns(run, n, right, 2 * (high - i), &|_, column| {
            apply(t.conj(), v, &mut column[i + 1..high]);
        });
    }
}

/// The matrix of order `n` that is the product of reflectors of which number `i` stands in column `i`
/// below the element under the diagonal: of [`gehrd`], and of tridiagonal forms of lower triangles.
pub(crate) fn product_of_offset<T: Scalar>(run: &dyn Run, n: usize, a: &[T], tau: &[T]) -> Vec<T> {
    let mut to = vec![T::zero(); n * n];
    if n == 0 {
        return to;
    }
    to[0] = T::one();
    let inner = n - 1;
    let mut q = vec![T::zero(); inner * inner];
    for i in 0..inner {
        q[i * inner..(i + 1) * inner].copy_from_slice(&a[i * n + 1..(i + 1) * n]);
    }
    orgqr(run, inner, inner, &mut q, &tau[..inner]);
    for i in 0..inner {
        to[(i + 1) * n + 1..(i + 2) * n].copy_from_slice(&q[i * inner..(i + 1) * inner]);
    }
    to
}
