//! Factorisations.

use helio_eval::Call;
use helio_ir::{Error, Result};
use helio_linalg::{Reflectors, Side, Triangle};

use super::Element;
use super::arguments::{Batch, letter, operations, square};

/// The attribute `uplo`.
pub(super) fn triangle(call: &Call<'_>) -> Result<Triangle> {
    Ok(match letter(call, "uplo", "LU")? {
        'L' => Triangle::Lower,
        _ => Triangle::Upper,
    })
}

/// `a[n,n]` → `factor[n,n], info`; attribute `uplo`.
pub(super) fn potrf<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 2..3, 0)?;
    let (n, triangle) = (square(dims)?, triangle(call)?);
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut info = batch.result::<i32>(call, 1, &[])?;
    let problems = batch.split(&mut a).zip(&mut info);
    batch.each(call, operations(&[n, n, n]) / 3, problems, |run, (a, info)| {
        **info = T::potrf(run, triangle, n, a);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[], &info)
}

/// `a[m,n]` → `lu[m,n], pivots[min(m,n)], info`.
pub(super) fn getrf<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 3..4, 0)?;
    let [m, n] = dims;
    let k = m.min(n);
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut pivots = batch.result::<i32>(call, 1, &[k])?;
    let mut info = batch.result::<i32>(call, 2, &[])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut pivots)).zip(&mut info);
    batch.each(call, operations(&[m, n, k]), problems, |run, ((a, pivots), info)| {
        **info = T::getrf(run, m, n, a, pivots);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[k], &pivots)?;
    batch.write(call, 2, &[], &info)
}

/// `a[m,n]` → `packed[m,n], tau[min(m,n)]`.
pub(super) fn geqrf<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 2..3, 0)?;
    let [m, n] = dims;
    let k = m.min(n);
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut tau = batch.result::<T>(call, 1, &[k])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut tau));
    batch.each(call, operations(&[2, m, n, k]), problems, |run, (a, tau)| {
        T::geqrf(run, m, n, a, tau);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[k], &tau)
}

/// `a[m,n], pivots[n]` → `packed[m,n], pivots[n], tau[min(m,n)]`.
pub(super) fn geqp3<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 2, 3..4, 0)?;
    let [m, n] = dims;
    let k = m.min(n);
    batch.expect::<T>(call, 0, &dims)?;
    batch.expect::<i32>(call, 1, &[n])?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut pivots = batch.operand::<i32>(call, 1, &[n])?;
    let mut tau = batch.result::<T>(call, 2, &[k])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut pivots)).zip(batch.split(&mut tau));
    batch.each(call, operations(&[2, m, n, k]), problems, |run, ((a, pivots), tau)| {
        T::geqp3(run, m, n, a, pivots, tau);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[n], &pivots)?;
    batch.write(call, 2, &[k], &tau)
}

/// Errors: there are more reflectors than rows or columns.
fn ensure_fewer(reflectors: usize, limit: usize) -> Result<()> {
    if reflectors <= limit {
        return Ok(());
    }
    let detail = format!("operand 1 must have at most {limit} reflectors, has {reflectors}");
    Err(Error::invalid(detail))
}

/// `packed[m,n], tau[k]` → `q[m,n]`.
pub(super) fn orgqr<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 2, 1..2, 0)?;
    let (_, [k]) = Batch::of(call, 2, 1..2, 1)?;
    let [m, n] = dims;
    if m < n {
        let detail = format!("operand 0 must have no more columns than rows, has {m}×{n}");
        return Err(Error::invalid(detail));
    }
    ensure_fewer(k, n)?;
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut tau = batch.operand::<T>(call, 1, &[k])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut tau));
    batch.each(call, operations(&[4, m, n, k]), problems, |run, (a, tau)| {
        T::orgqr(run, m, n, a, tau);
    })?;
    batch.write(call, 0, &dims, &a)
}

/// `packed[r,c], tau[k], c[m,n]` → `product[m,n]`; attributes `left`, `transpose`. `r` is `m`, or `n` on
/// the right side.
pub(super) fn ormqr<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 3, 1..2, 2)?;
    let (_, packed @ [rows, columns]) = Batch::of(call, 3, 1..2, 0)?;
    let (_, [k]) = Batch::of(call, 3, 1..2, 1)?;
    let [m, n] = dims;
    let attributes = call.info().attributes()?;
    let (is_left, is_adjoint) = (attributes.bool("left")?, attributes.bool("transpose")?);
    let (side, order) = if is_left { (Side::Left, m) } else { (Side::Right, n) };
    if rows != order {
        let detail = format!("operand 0 must have {order} rows, has {rows}");
        return Err(Error::invalid(detail));
    }
    ensure_fewer(k, rows.min(columns))?;
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &packed)?;
    let mut tau = batch.operand::<T>(call, 1, &[k])?;
    let mut c = batch.operand::<T>(call, 2, &dims)?;
    let problems = batch.split(&mut a).zip(batch.split(&mut tau)).zip(batch.split(&mut c));
    batch.each(call, operations(&[4, m, n, k]), problems, |run, ((a, tau), c)| {
        T::ormqr(run, side, is_adjoint, m, n, Reflectors { packed: a, tau }, c);
    })?;
    batch.write(call, 0, &dims, &c)
}

/// `u[n,n], w[n]` → `updated[n,n], w[n]`.
pub(super) fn cholesky_update<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 2, 2..3, 0)?;
    let n = square(dims)?;
    batch.expect::<T>(call, 0, &dims)?;
    batch.expect::<T>(call, 1, &[n])?;
    let mut u = batch.operand::<T>(call, 0, &dims)?;
    let mut w = batch.operand::<T>(call, 1, &[n])?;
    let problems = batch.split(&mut u).zip(batch.split(&mut w));
    batch.each(call, operations(&[6, n, n]), problems, |run, (u, w)| {
        T::cholesky_update(run, n, u, w);
    })?;
    batch.write(call, 0, &dims, &u)?;
    batch.write(call, 1, &[n], &w)
}
