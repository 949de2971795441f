//! Singular values and vectors.

use num_traits::Float;
use std::cmp::Ordering;

use crate::NOT_FINITE;
use crate::bidiagonal::Bidiagonal;
use crate::bidiagonal_qr::Sweeper;
use crate::qr::{Reflectors, geqrf, ormqr};
use crate::rotations::{Rotation, Rotations};
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::symmetric_qr::Vectors;
use crate::triangular::Side;
use crate::vector::{adjoint, adjoint_into, max_abs, scal_real, scaling};

/// Which singular vectors are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvdVectors {
    /// None.
    Omitted,
    /// As many as there are singular values.
    Thin,
    /// Whole bases.
    Full,
}

/// Where the singular value decomposition `A = U S Vᴴ` of an `m`×`n` matrix goes. `k` is the less of the
/// two.
#[derive(Debug)]
pub struct Svd<'m, T: Scalar> {
    /// `k` values.
    pub s: &'m mut [T::Real],
    /// `U`, `m`×`k`, or `m`×`m` if it is full; not touched without vectors.
    pub u: &'m mut [T],
    /// `Vᴴ`, `k`×`n`, or `n`×`n` if it is full; not touched without vectors.
    pub vh: &'m mut [T],
}

pub(crate) fn gesdd<T: Scalar>(
    run: &dyn Run,
    vectors: SvdVectors,
    m: usize,
    n: usize,
    a: &[T],
    out: Svd<'_, T>,
) -> i32 {
    let max = max_abs(a);
    if !max.is_finite() {
        let nan = T::Real::of(f64::NAN);
        out.s.fill(nan);
        if vectors != SvdVectors::Omitted {
            out.u.fill(T::real(nan));
            out.vh.fill(T::real(nan));
        }
        return NOT_FINITE;
    }
    let is_wide = m < n;
    let (rows, columns) = (m.max(n), m.min(n));
    let mut a = if is_wide { adjoint(m, n, a) } else { a.to_vec() };
    let scale = scaling(max);
    if let Some(scale) = scale {
        scal_real(scale, &mut a);
    }
    let (left, right, info) = tall(run, vectors, rows, columns, a, out.s);
    if let Some(scale) = scale {
        scal_real(T::Real::of(1.0) / scale, out.s);
    }
    if vectors != SvdVectors::Omitted {
        let left_columns = if vectors == SvdVectors::Full { rows } else { columns };
        if is_wide {
            out.u.copy_from_slice(&right);
            adjoint_into(rows, left_columns, &left, out.vh);
        } else {
            out.u.copy_from_slice(&left);
            adjoint_into(columns, columns, &right, out.vh);
        }
    }
    info
}

/// Of a matrix that is not wider than high: the left vectors, the right vectors as columns, and `info`.
fn tall<T: Scalar>(
    run: &dyn Run,
    vectors: SvdVectors,
    m: usize,
    n: usize,
    mut a: Vec<T>,
    s: &mut [T::Real],
) -> (Vec<T>, Vec<T>, i32) {
    let mut tau = vec![T::zero(); n];
    let mut square = a.clone();
    if m > n {
        geqrf(run, m, n, &mut a, &mut tau);
        square = vec![T::zero(); n * n];
        for j in 0..n {
            square[j * n..=j * n + j].copy_from_slice(&a[j * m..=j * m + j]);
        }
    }
    let (inner, right, info) = square_svd(run, vectors, n, square, s);
    if vectors == SvdVectors::Omitted || m == n {
        return (inner, right, info);
    }
    let columns = if vectors == SvdVectors::Full { m } else { n };
    let mut left = vec![T::zero(); m * columns];
    for j in 0..n {
        left[j * m..j * m + n].copy_from_slice(&inner[j * n..(j + 1) * n]);
    }
    (n..columns).for_each(|j| left[j * m + j] = T::one());
    let q = Reflectors { packed: &a, tau: &tau };
    ormqr(run, Side::Left, false, m, columns, q, &mut left);
    (left, right, info)
}

/// The singular values, which may have signs and any order, of an upper bidiagonal matrix in the place of its
/// diagonal, and the rotations of its left and of its right vectors.
pub(crate) fn bdsqr<T: Scalar>(
    run: &dyn Run,
    vectors: Vectors,
    d: &mut [T::Real],
    e: &mut [T::Real],
) -> ([Vec<Rotation<T::Real>>; 2], i32) {
    let rotations = || Rotations::<T>::kept(vectors == Vectors::Wanted);
    let mut sweeper = Sweeper { d, e, left: rotations(), right: rotations() };
    let info = sweeper.sweep(run);
    ([sweeper.left.into_list(), sweeper.right.into_list()], info)
}

fn square_svd<T: Scalar>(
    run: &dyn Run,
    vectors: SvdVectors,
    n: usize,
    a: Vec<T>,
    s: &mut [T::Real],
) -> (Vec<T>, Vec<T>, i32) {
    if n == 0 {
        return (Vec::new(), Vec::new(), 0);
    }
    let mut form = Bidiagonal::of(run, n, a);
    let (mut d, mut e) = (std::mem::take(&mut form.d), std::mem::take(&mut form.e));
    let is_wanted = vectors != SvdVectors::Omitted;
    let (mut left, mut right) = if is_wanted { form.vectors(run) } else { Default::default() };
    let info = {
        let mut sweeper = Sweeper {
            d: &mut d,
            e: &mut e[..n - 1],
            left: Rotations::new(is_wanted.then_some(&mut left[..]), n),
            right: Rotations::new(is_wanted.then_some(&mut right[..]), n),
        };
        let info = sweeper.sweep(run);
        sweeper.left.finish(run);
        sweeper.right.finish(run);
        info
    };
    for (i, d) in d.iter_mut().enumerate() {
        if d.is_sign_negative() {
            *d = -*d;
            if is_wanted {
                right[i * n..(i + 1) * n].iter_mut().for_each(|v| *v = -*v);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| d[j].partial_cmp(&d[i]).unwrap_or(Ordering::Equal));
    s.iter_mut().zip(&order).for_each(|(s, &i)| *s = d[i]);
    if is_wanted && !order.is_sorted() {
        for matrix in [&mut left, &mut right] {
            let old = std::mem::take(matrix);
            matrix.reserve_exact(n * n);
            order.iter().for_each(|&i| matrix.extend_from_slice(&old[i * n..(i + 1) * n]));
        }
    }
    (left, right, info)
}
