//! Bidiagonal form of square matrices.

use crate::hessenberg::product_of_offset;
use crate::qr::orgqr;
use crate::reflector::{apply, apply_right, reflector};
use crate::run::{Run, columns};
use crate::scalar::Scalar;

/// `A = Q B Pᴴ` with `B` upper bidiagonal and real.
pub(crate) struct Bidiagonal<T: Scalar> {
    /// The diagonal of `B`.
    pub(crate) d: Vec<T::Real>,
    /// What is right of it.
    pub(crate) e: Vec<T::Real>,
    order: usize,
    left: (Vec<T>, Vec<T>),
    right: (Vec<T>, Vec<T>),
}

impl<T: Scalar> Bidiagonal<T> {
    /// Of a matrix of order `n`.
    pub(crate) fn of(run: &dyn Run, n: usize, mut a: Vec<T>) -> Self {
        let real = || vec![T::Real::default(); n];
        let (mut d, mut e) = (real(), real());
        let (mut tau_left, mut tau_right) = (vec![T::zero(); n], vec![T::zero(); n]);
        let (mut p, mut row, mut work) =
            (vec![T::zero(); n * n], vec![T::zero(); n], vec![T::zero(); n]);
        for i in 0..n {
            if run.is_stopped() {
                break;
            }
            let (left, rest) = a.split_at_mut((i + 1) * n);
            let (head, v) = left[i * n + i..].split_at_mut(1);
            let (beta, tau) = reflector(head[0], v);
            (d[i], tau_left[i]) = (beta, tau);
            let v = &*v;
            columns(run, n, rest, 2 * (n - i), &|_, column| apply(tau.conj(), v, &mut column[i..]));
            if i + 1 == n {
                break;
            }
            let row = &mut row[i + 1..];
            row.iter_mut().zip(rest.chunks(n)).for_each(|(to, column)| *to = column[i].conj());
            let (head, v) = row.split_at_mut(1);
            let (beta, tau) = reflector(head[0], v);
            (e[i], tau_right[i]) = (beta, tau);
            p[i * n + i + 2..(i + 1) * n].copy_from_slice(v);
            apply_right(tau, v, &mut rest[i + 1..], n, n - i - 1, &mut work);
        }
        Bidiagonal { d, e, order: n, left: (a, tau_left), right: (p, tau_right) }
    }

    /// `Q` and `P`.
    pub(crate) fn vectors(self, run: &dyn Run) -> (Vec<T>, Vec<T>) {
        let n = self.order;
        let (mut q, tau) = self.left;
        orgqr(run, n, n, &mut q, &tau);
        let (p, tau) = self.right;
        (q, product_of_offset(run, n, &p, &tau))
    }
}
