//! Elementary reflectors, `H = I − τ v vᴴ`.

use num_traits::Float;

use crate::scalar::{Real, Scalar};
use crate::vector::{axpy, dot, norm, scal, scal_real};

/// The reflector with `Hᴴ (α, x) = (β, 0)` for a real `β`: gives `β` and `τ`, and makes `x` the rest of
/// `v`.
pub(crate) fn reflector<T: Scalar>(mut alpha: T, x: &mut [T]) -> (T::Real, T) {
    let zero = T::Real::default();
    let mut length = norm(x);
    if length == zero && alpha.im() == zero {
        return (alpha.re(), T::zero());
    }
    let with_sign = |length: T::Real, alpha: T| {
        let length = alpha.re().hypot(alpha.im()).hypot(length);
        if alpha.re() < zero || alpha.re().is_sign_negative() { length } else { -length }
    };
    let mut beta = with_sign(length, alpha);
    let least = T::Real::SAFE_MIN / T::Real::EPS;
    let mut raised = 0;
    while Float::abs(beta) < least && raised < 20 {
        let up = T::Real::of(1.0) / least;
        scal_real(up, x);
        alpha = alpha.scale(up);
        length = norm(x);
        beta = with_sign(length, alpha);
        raised += 1;
    }
    let tau = T::of_parts((beta - alpha.re()) / beta, -alpha.im() / beta);
    scal(T::one().over(alpha - T::real(beta)), x);
    for _ in 0..raised {
        beta *= least;
    }
    (beta, tau)
}

/// `C := H C` for one column, where `v` is without its 1.
pub(crate) fn apply<T: Scalar>(tau: T, v: &[T], column: &mut [T]) {
    if tau == T::zero() {
        return;
    }
    let Some((first, rest)) = column.split_first_mut() else { return };
    let w = tau * (*first + dot(v, rest));
    *first += -w;
    axpy(-w, v, rest);
}

/// `C := C H` for the matrix whose columns have `rows` elements, in chunks of `stride`; `v` is without
/// its 1, and `work` is for `rows` numbers.
pub(crate) fn apply_right<T: Scalar>(
    tau: T,
    v: &[T],
    c: &mut [T],
    stride: usize,
    rows: usize,
    work: &mut [T],
) {
    if tau == T::zero() || rows == 0 {
        return;
    }
    let work = &mut work[..rows];
    work.copy_from_slice(&c[..rows]);
    for (column, &v) in c.chunks(stride).skip(1).zip(v) {
        axpy(v, &column[..rows], work);
    }
    scal(tau, work);
    axpy(-T::one(), work, &mut c[..rows]);
    for (column, &v) in c.chunks_mut(stride).skip(1).zip(v) {
        axpy(-v.conj(), work, &mut column[..rows]);
    }
}
