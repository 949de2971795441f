//! Eigenvalues and eigenvectors of any square matrix.

use num_complex::Complex;
use num_traits::Float;

use crate::NOT_FINITE;
use crate::eigenvectors::{Form, normalize};
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::schur::{Iterate, schur_form};
use crate::vector::{max_abs, scal_real, scaling};

/// Where eigenvalues and eigenvectors go.
#[derive(Debug)]
pub struct Eig<'m, T: Scalar> {
    /// The eigenvalues; those of a conjugate pair one after the other, the one above the real axis first.
    pub values: &'m mut [Complex<T::Real>],
    /// Left eigenvectors: `uᴴ A = λ uᴴ`.
    pub left: Option<&'m mut [Complex<T::Real>]>,
    /// Right eigenvectors: `A v = λ v`.
    pub right: Option<&'m mut [Complex<T::Real>]>,
}

pub(crate) fn geev<T: Iterate>(run: &dyn Run, n: usize, a: &[T], out: Eig<'_, T>) -> i32
where
    Complex<T::Real>: Scalar<Real = T::Real>,
{
    if n == 0 {
        return 0;
    }
    let Eig { values, left, right } = out;
    let max = max_abs(a);
    if !max.is_finite() {
        let nan = T::Real::of(f64::NAN);
        let nan = Complex::new(nan, nan);
        values.fill(nan);
        left.into_iter().chain(right).for_each(|vectors| vectors.fill(nan));
        return NOT_FINITE;
    }
    let mut t = a.to_vec();
    let scale = scaling(max);
    if let Some(scale) = scale {
        scal_real(scale, &mut t);
    }
    let is_wanted = left.is_some() || right.is_some();
    let schur = schur_form(run, n, &mut t, true, is_wanted, is_wanted, values);
    if let Some(vectors) = schur.vectors.filter(|_| schur.info == 0 && !run.is_stopped()) {
        let form = Form { order: n, t: &t };
        let finish = |to: &mut [Complex<T::Real>], is_left: bool| {
            schur.balance.undo(n, to, is_left);
            for (column, value) in to.chunks_mut(n).zip(&*values) {
                normalize(column, T::IS_COMPLEX || value.im != T::Real::default());
            }
        };
        if let Some(to) = left {
            form.left(run, values, &vectors, to);
            finish(to, true);
        }
        if let Some(to) = right {
            form.right(run, values, &vectors, to);
            finish(to, false);
        }
    }
    if let Some(scale) = scale {
        let back = T::Real::of(1.0) / scale;
        values.iter_mut().for_each(|x| *x = Complex::new(x.re * back, x.im * back));
    }
    schur.info
}
