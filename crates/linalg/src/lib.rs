//! Linear algebra in LAPACK's conventions: factorisations, eigenvalues, singular values and solves of
//! matrices of `f32`, `f64` and complex numbers of these.
//!
//! A matrix is a slice of its columns, one after the other, without gaps. Packed forms are LAPACK's:
//! pivots count from 1, reflectors are `H = I − τ v vᴴ` with `v[0] = 1` left out, and `info` is 0, the
//! number of the pivot that failed, or how much of an iteration did not converge; −4 says that a
//! matrix is not finite. Results do not depend on the number of threads.
//!
//! Routines end early, with results that mean nothing, once [`Run::is_stopped`]; their callers ask
//! afterwards.
//!
//! ```
//! use helio_linalg::{Alone, Lapack};
//! // The matrix with the rows (0, 2) and (3, 4), factored with its rows exchanged.
//! let (mut a, mut pivots) = ([0.0, 3.0, 2.0, 4.0], [0; 2]);
//! assert_eq!(f64::getrf(&Alone, 2, 2, &mut a, &mut pivots), 0);
//! assert_eq!((a, pivots), ([3.0, 0.0, 4.0, 2.0], [2, 2]));
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod balance;
mod bidiagonal;
mod bidiagonal_qr;
mod cholesky;
mod eig;
mod eigenvectors;
mod hessenberg;
mod lu;
mod pivoted_qr;
mod qr;
mod reflector;
mod rotations;
mod run;
mod scalar;
mod schur;
mod schur_complex;
mod schur_real;
mod svd;
mod symmetric_qr;
mod triangular;
mod tridiagonal;
mod tridiagonal_solve;
mod two_by_two;
mod update;
mod vector;

pub use eig::Eig;
pub use num_complex::Complex;
pub use qr::Reflectors;
pub use rotations::Rotation;
pub use run::{Alone, Run};
pub use scalar::{Real, Scalar};
pub use schur::Schur;
pub use svd::{Svd, SvdVectors};
pub use symmetric_qr::Vectors;
pub use triangular::{Side, Solve, Transpose};
pub use tridiagonal_solve::Tridiagonal;

/// Which half of a matrix is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// The diagonal and what is below.
    Lower,
    /// The diagonal and what is above.
    Upper,
}

/// What LAPACK writes for a matrix with an element that is not finite.
const NOT_FINITE: i32 = -4;

macro_rules! routines {
    ($($(#[doc = $doc:literal])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? = $path:path;)*) => {
        /// The element types of matrices, with the routines by LAPACK's names. They are compiled once,
        /// for each type.
        pub trait Lapack: Scalar {
            $($(#[doc = $doc])* fn $name(run: &dyn Run, $($arg: $ty),*) $(-> $out)?;)*
        }

        macro_rules! implement {
            ($scalar:ty, $kind:ident) => {
                impl Lapack for $scalar {
                    $(fn $name(run: &dyn Run, $($arg: $ty),*) $(-> $out)? {
                        $path(run, $($arg),*)
                    })*
                }
            };
        }
    };
}

routines! {
    /// Cholesky's factor of the `n`×`n` matrix of which one triangle is given: `L` of `L Lᴴ` or `U` of
    /// `Uᴴ U`, in its place. Gives `info`: the order of the leading minor that is not positive.
    fn potrf(triangle: Triangle, n: usize, a: &mut [Self]) -> i32 = cholesky::potrf;
    /// `P A = L U` of an `m`×`n` matrix, in its place; row `i` was exchanged with row `pivots[i]`.
    /// Gives `info`: the number of the first pivot that is zero.
    fn getrf(m: usize, n: usize, a: &mut [Self], pivots: &mut [i32]) -> i32 = lu::getrf;
    /// `A = Q R` of an `m`×`n` matrix: `R` in the upper triangle, the reflectors of `Q = H₁ H₂ …` below it.
    fn geqrf(m: usize, n: usize, a: &mut [Self], tau: &mut [Self]) = qr::geqrf;
    /// `A P = Q R` with pivoted columns. Columns whose entry of `pivots` is not 0 come first; at the end
    /// column `i` of `A P` is column `pivots[i]` of `A`.
    fn geqp3(m: usize, n: usize, a: &mut [Self], pivots: &mut [i32], tau: &mut [Self]) = pivoted_qr::geqp3;
    /// The first `n` columns of `H₁ H₂ …`, of `tau.len()` reflectors that lie below the diagonal of the
    /// `m`×`n` matrix, in its place.
    fn orgqr(m: usize, n: usize, a: &mut [Self], tau: &[Self]) = qr::orgqr;
    /// `Q C`, `Qᴴ C` (`is_adjoint`), `C Q` or `C Qᴴ` for the `m`×`n` matrix `C`, in its place, where `Q` is
    /// given by reflectors.
    fn ormqr(side: Side, is_adjoint: bool, m: usize, n: usize, q: Reflectors<'_, Self>, c: &mut [Self]) = qr::ormqr;
    /// Singular values, in descending order, and vectors of the `m`×`n` matrix.
    fn gesdd(vectors: SvdVectors, m: usize, n: usize, a: &[Self], out: Svd<'_, Self>) -> i32 = svd::gesdd;
    /// Eigenvalues, in ascending order, of the Hermitian matrix of which one triangle is given, and
    /// eigenvectors in its place.
    fn heevd(vectors: Vectors, triangle: Triangle, n: usize, a: &mut [Self], values: &mut [Self::Real]) -> i32 = symmetric_qr::heevd;
    /// Eigenvalues, in any order, of the symmetric tridiagonal matrix with the diagonal `d` and `e` beside it;
    /// gives the rotations, in order, that make an identity's columns their vectors, if these are wanted, and
    /// `info`: how many elements of `e` did not vanish.
    fn steqr(vectors: Vectors, d: &mut [Self::Real], e: &mut [Self::Real]) -> (Vec<Rotation<Self::Real>>, i32) = symmetric_qr::steqr::<Self>;
    /// Singular values, with signs and in any order, of the upper bidiagonal matrix with the diagonal `d` and
    /// `e` right of it; gives the rotations of the left and the right vectors, and `info`, as `steqr` does.
    fn bdsqr(vectors: Vectors, d: &mut [Self::Real], e: &mut [Self::Real]) -> ([Vec<Rotation<Self::Real>>; 2], i32) = svd::bdsqr::<Self>;
    /// `A = Q T Qᴴ` with `T` tridiagonal: its diagonals in `d` and `e`, reflectors in the triangle.
    fn hetrd(triangle: Triangle, n: usize, a: &mut [Self], d: &mut [Self::Real], e: &mut [Self::Real], tau: &mut [Self]) = tridiagonal::hetrd;
    /// `A = Q H Qᴴ` with `H` upper Hessenberg in rows and columns `low` to `high`, counted from 1, and
    /// upper triangular elsewhere; reflectors below.
    fn gehrd(n: usize, low: usize, high: usize, a: &mut [Self], tau: &mut [Self]) = hessenberg::gehrd;
    /// Eigenvalues of any square matrix, and its left and right eigenvectors of norm 1.
    fn geev(n: usize, a: &[Self], out: Eig<'_, Self>) -> i32 = eig::geev;
    /// Schur's form of a square matrix in its place, real (with 2×2 blocks on the diagonal) for real
    /// matrices, its eigenvalues and vectors.
    fn gees(n: usize, a: &mut [Self], out: Schur<'_, Self>) -> i32 = schur::gees;
    /// Solves a tridiagonal system by elimination with pivots; the diagonals become those of `U`.
    fn gtsv(n: usize, columns: usize, of: Tridiagonal<'_, Self>, b: &mut [Self]) -> i32 = tridiagonal_solve::gtsv;
    /// Solves a tridiagonal system, whose matrix may be singular: pivots that are too small are made larger,
    /// so that the solution is finite.
    fn solve_perturbed(n: usize, columns: usize, of: Tridiagonal<'_, Self>, b: &mut [Self]) = tridiagonal_solve::solve_perturbed;
    /// `op(A)⁻¹ B` or `B op(A)⁻¹` for triangular `A`, in the place of the `m`×`n` matrix `B`.
    fn trsm(how: Solve, m: usize, n: usize, a: &[Self], b: &mut [Self]) = triangular::trsm;
    /// `U` of `Uᵀ U + w wᵀ`, in the place of the `U` that is given with `w = 0`; `w` is used up.
    fn cholesky_update(n: usize, u: &mut [Self], w: &mut [Self]) = update::cholesky_update;
}

implement!(f32, real);
implement!(f64, real);
implement!(Complex<f32>, complex);
implement!(Complex<f64>, complex);
