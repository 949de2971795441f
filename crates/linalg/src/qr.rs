//! QR factors and their products: reflectors are made in panels, and each of the other columns is
//! changed by a whole panel while it is in the cache.

use crate::reflector::{apply, apply_right, reflector};
use crate::run::{Run, columns};
use crate::scalar::Scalar;
use crate::triangular::Side;
use crate::vector::scal;

/// A product of reflectors, as [`Lapack::geqrf`](crate::Lapack::geqrf) packs them.
#[derive(Clone, Copy, Debug)]
pub struct Reflectors<'m, T> {
    /// A matrix with a reflector in each column, below the diagonal.
    pub packed: &'m [T],
    /// Their factors: as many as there are reflectors.
    pub tau: &'m [T],
}

/// How many reflectors a panel has.
const PANEL: usize = 32;

pub(crate) fn geqrf<T: Scalar>(run: &dyn Run, m: usize, n: usize, a: &mut [T], tau: &mut [T]) {
    let count = m.min(n);
    for start in (0..count).step_by(PANEL) {
        if run.is_stopped() {
            return;
        }
        let end = count.min(start + PANEL);
        for i in start..end {
            let (left, right) = a.split_at_mut((i + 1) * m);
            let (head, v) = left[i * m + i..].split_at_mut(1);
            let (beta, t) = reflector(head[0], v);
            (head[0], tau[i]) = (T::real(beta), t);
            for column in right.chunks_mut(m).take(end - i - 1) {
                apply(t.conj(), v, &mut column[i..]);
            }
        }
        let (panel, rest) = a.split_at_mut(end * m);
        let (panel, tau) = (&*panel, &*tau);
        columns(run, m, rest, (end - start) * (m - start), &|_, column| {
            for i in start..end {
                apply(tau[i].conj(), &panel[i * m + i + 1..(i + 1) * m], &mut column[i..]);
            }
        });
    }
}

pub(crate) fn orgqr<T: Scalar>(run: &dyn Run, m: usize, n: usize, a: &mut [T], tau: &[T]) {
    let count = tau.len();
    for (j, column) in a.chunks_mut(m.max(1)).enumerate().take(n).skip(count) {
        column.fill(T::zero());
        column[j] = T::one();
    }
    for start in (0..count).step_by(PANEL).rev() {
        if run.is_stopped() {
            return;
        }
        let end = count.min(start + PANEL);
        let (panel, rest) = a.split_at_mut(end * m);
        let reflectors = &*panel;
        columns(run, m, rest, (end - start) * (m - start), &|_, column| {
            for i in (start..end).rev() {
                apply(tau[i], &reflectors[i * m + i + 1..(i + 1) * m], &mut column[i..]);
            }
        });
        for i in (start..end).rev() {
            let (left, right) = panel.split_at_mut((i + 1) * m);
            let column = &mut left[i * m..];
            for other in right.chunks_mut(m) {
                apply(tau[i], &column[i + 1..], &mut other[i..]);
            }
            column[..i].fill(T::zero());
            column[i] = T::one() - tau[i];
            scal(-tau[i], &mut column[i + 1..]);
        }
    }
}

pub(crate) fn ormqr<T: Scalar>(
    run: &dyn Run,
    side: Side,
    is_adjoint: bool,
    m: usize,
    n: usize,
    q: Reflectors<'_, T>,
    c: &mut [T],
) {
    let Reflectors { packed: a, tau } = q;
    let order = match side {
        Side::Left => m,
        Side::Right => n,
    };
    if m == 0 || n == 0 {
        return;
    }
    let factor = |i: usize| if is_adjoint { tau[i].conj() } else { tau[i] };
    let v = |i: usize| &a[i * order + i + 1..(i + 1) * order];
    // The first reflector is the leftmost of `Q`.
    let is_forward = (side == Side::Left) == is_adjoint;
    let numbers = |range: std::ops::Range<usize>| {
        let last = range.end.wrapping_sub(1);
        let start = range.start;
        range.map(move |i| if is_forward { i } else { last - (i - start) })
    };
    match side {
        Side::Left => {
            let panels = tau.len().div_ceil(PANEL);
            for panel in numbers(0..panels) {
                let (start, end) = (panel * PANEL, tau.len().min((panel + 1) * PANEL));
                if run.is_stopped() {
                    return;
                }
                columns(run, m, c, (end - start) * (m - start), &|_, column| {
                    for i in numbers(start..end) {
                        apply(factor(i), v(i), &mut column[i..]);
                    }
                });
            }
        }
        Side::Right => {
            let mut work = vec![T::zero(); m];
            for i in numbers(0..tau.len()) {
                if run.is_stopped() {
                    return;
                }
                apply_right(factor(i), v(i), &mut c[i * m..], m, m, &mut work);
            }
        }
    }
}
