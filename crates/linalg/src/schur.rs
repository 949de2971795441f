//! Schur's form of any square matrix.

use num_complex::Complex;
use num_traits::Float;

use crate::NOT_FINITE;
use crate::balance::Balance;
use crate::hessenberg::{gehrd, product_of_offset};
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::schur_complex::ComplexSchur;
use crate::schur_real::RealSchur;
use crate::vector::{max_abs, scal_real, scaling};

/// Where Schur's decomposition `A = Z T Zᴴ` goes; `T` takes the place of `A`.
#[derive(Debug)]
pub struct Schur<'m, T: Scalar> {
    /// The eigenvalues, in the order of the diagonal of `T`.
    pub values: &'m mut [Complex<T::Real>],
    /// `Z`.
    pub vectors: Option<&'m mut [T]>,
}

/// A Hessenberg matrix, of which rows and columns `low..high` are yet to become triangular.
pub(crate) struct Hessenberg<'m, T> {
    n: usize,
    low: usize,
    high: usize,
    h: &'m mut [T],
    /// Changed as `h` is from the right.
    z: Option<&'m mut [T]>,
    /// Whether all of Schur's form is wanted, or eigenvalues alone.
    is_form_wanted: bool,
}

/// Numbers of which Hessenberg matrices are brought into Schur's form, each kind in its way.
pub(crate) trait Iterate: Scalar {
    fn iterate(run: &dyn Run, of: Hessenberg<'_, Self>, values: &mut [Complex<Self::Real>]) -> i32;
}

macro_rules! real {
    ($ty:ty) => {
        impl Iterate for $ty {
            fn iterate(
                run: &dyn Run,
                of: Hessenberg<'_, Self>,
                values: &mut [Complex<Self>],
            ) -> i32 {
                let Hessenberg { n, low, high, h, z, is_form_wanted } = of;
                let (mut re, mut im) = (vec![0.0; n], vec![0.0; n]);
                let mut schur = RealSchur { order: n, h, z, is_form_wanted };
                let info = schur.iterate(run, low, high, (&mut re, &mut im));
                for (value, (re, im)) in values.iter_mut().zip(re.into_iter().zip(im)) {
                    *value = Complex::new(re, im);
                }
                info
            }
        }

        impl Iterate for Complex<$ty> {
            fn iterate(
                run: &dyn Run,
                of: Hessenberg<'_, Self>,
                values: &mut [Complex<$ty>],
            ) -> i32 {
                let Hessenberg { n, low, high, h, z, is_form_wanted } = of;
                ComplexSchur { order: n, h, z, is_form_wanted }.iterate(run, low, high, values)
            }
        }
    };
}

real!(f32);
real!(f64);

/// A matrix that is balanced and in Schur's form, with what led there.
pub(crate) struct Balanced<T: Scalar> {
    pub(crate) balance: Balance<T::Real>,
    /// Schur's vectors of the balanced matrix, if they are wanted.
    pub(crate) vectors: Option<Vec<T>>,
    pub(crate) info: i32,
}

/// Brings a finite matrix of order `n` into Schur's form, in its place. `is_scaled` has its norms made
/// equal before, so that the form is that of a similar matrix. Without vectors, only the eigenvalues mean
/// something unless `is_form_wanted`.
pub(crate) fn schur_form<T: Iterate>(
    run: &dyn Run,
    n: usize,
    a: &mut [T],
    is_scaled: bool,
    is_form_wanted: bool,
    are_vectors_wanted: bool,
    values: &mut [Complex<T::Real>],
) -> Balanced<T> {
    let balance = Balance::of(n, a, is_scaled);
    let mut tau = vec![T::zero(); n];
    gehrd(run, n, balance.low + 1, balance.high, a, &mut tau);
    let mut vectors = are_vectors_wanted.then(|| product_of_offset(run, n, a, &tau));
    for j in 0..n {
        a[j * n + n.min(j + 2)..(j + 1) * n].fill(T::zero());
    }
    let (low, high) = (balance.low, balance.high);
    let of = Hessenberg { n, low, high, h: a, z: vectors.as_deref_mut(), is_form_wanted };
    let info = T::iterate(run, of, values);
    Balanced { balance, vectors, info }
}

pub(crate) fn gees<T: Iterate>(run: &dyn Run, n: usize, a: &mut [T], out: Schur<'_, T>) -> i32 {
    if n == 0 {
        return 0;
    }
    let max = max_abs(a);
    if !max.is_finite() {
        let nan = T::Real::of(f64::NAN);
        a.fill(T::real(nan));
        out.values.fill(Complex::new(nan, nan));
        if let Some(vectors) = out.vectors {
            vectors.fill(T::real(nan));
        }
        return NOT_FINITE;
    }
    let scale = scaling(max);
    if let Some(scale) = scale {
        scal_real(scale, a);
    }
    let is_wanted = out.vectors.is_some();
    let form = schur_form(run, n, a, false, true, is_wanted, out.values);
    if let (Some(mut from), Some(to)) = (form.vectors, out.vectors) {
        form.balance.undo(n, &mut from, false);
        to.copy_from_slice(&from);
    }
    if let Some(scale) = scale {
        let back = T::Real::of(1.0) / scale;
        scal_real(back, a);
        out.values.iter_mut().for_each(|x| *x = Complex::new(x.re * back, x.im * back));
    }
    form.info
}
