//! Solves with matrices of special forms.

use helio_eval::Call;
use helio_ir::Result;
use helio_linalg::{Side, Solve, Transpose, Tridiagonal};

use super::Element;
use super::arguments::{Batch, letter, operations};
use super::factors::triangle;

/// `a[k,k], b[m,n]` → `x[m,n]`, where `k` is `m`, or `n` on the right side; attributes `side`, `uplo`,
/// `trans_x`, `diag`.
pub(super) fn trsm<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 2, 1..2, 1)?;
    let [m, n] = dims;
    let how = Solve {
        side: if letter(call, "side", "LR")? == 'L' { Side::Left } else { Side::Right },
        triangle: triangle(call)?,
        transpose: match letter(call, "trans_x", "NTC")? {
            'N' => Transpose::None,
            'T' => Transpose::Transpose,
            _ => Transpose::Adjoint,
        },
        is_unit: letter(call, "diag", "NU")? == 'U',
    };
    let order = if how.side == Side::Left { m } else { n };
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &[order, order])?;
    let mut b = batch.operand::<T>(call, 1, &dims)?;
    let problems = batch.split(&mut a).zip(batch.split(&mut b));
    batch.each(call, operations(&[m, n, order]), problems, |run, (a, b)| {
        T::trsm(run, how, m, n, a, b);
    })?;
    batch.write(call, 0, &dims, &b)
}

/// `lower[n], diagonal[n], upper[n], b[n,k]` → these, with the diagonals of `U` and the solution, and
/// `info`.
pub(super) fn gtsv<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 4, 5..6, 3)?;
    let [n, k] = dims;
    for number in 0..3 {
        batch.expect::<T>(call, number, &[n])?;
    }
    batch.expect::<T>(call, 3, &dims)?;
    let mut lower = batch.operand::<T>(call, 0, &[n])?;
    let mut diagonal = batch.operand::<T>(call, 1, &[n])?;
    let mut upper = batch.operand::<T>(call, 2, &[n])?;
    let mut b = batch.operand::<T>(call, 3, &dims)?;
    let mut info = batch.result::<i32>(call, 4, &[])?;
    let of = batch.split(&mut lower).zip(batch.split(&mut diagonal)).zip(batch.split(&mut upper));
    let problems = of.zip(batch.split(&mut b)).zip(&mut info);
    let work = operations(&[5, n, k]);
    batch.each(call, work, problems, |run, ((((lower, diagonal), upper), b), info)| {
        **info = T::gtsv(run, n, k, Tridiagonal { lower, diagonal, upper }, b);
    })?;
    batch.write(call, 0, &[n], &lower)?;
    batch.write(call, 1, &[n], &diagonal)?;
    batch.write(call, 2, &[n], &upper)?;
    batch.write(call, 3, &dims, &b)?;
    batch.write(call, 4, &[], &info)
}

/// `lower[n], diagonal[n], upper[n], b[n,k]` → `x[n,k]`, which is finite even if the matrix is singular.
pub(super) fn perturbed<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 4, 1..2, 3)?;
    let [n, k] = dims;
    batch.expect::<T>(call, 0, &dims)?;
    let mut lower = batch.operand::<T>(call, 0, &[n])?;
    let mut diagonal = batch.operand::<T>(call, 1, &[n])?;
    let mut upper = batch.operand::<T>(call, 2, &[n])?;
    let mut b = batch.operand::<T>(call, 3, &dims)?;
    let of = batch.split(&mut lower).zip(batch.split(&mut diagonal)).zip(batch.split(&mut upper));
    let problems = of.zip(batch.split(&mut b));
    let work = operations(&[8, n, k]);
    batch.each(call, work, problems, |run, (((lower, diagonal), upper), b)| {
        T::solve_perturbed(run, n, k, Tridiagonal { lower, diagonal, upper }, b);
    })?;
    batch.write(call, 0, &dims, &b)
}
