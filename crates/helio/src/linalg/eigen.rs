//! Eigenvalues and singular values.

use helio_eval::Call;
use helio_ir::types::Plain;
use helio_ir::{Error, Result};
use helio_linalg::{Complex, Eig, Schur, Svd, SvdVectors, Vectors};

use super::Element;
use super::arguments::{Batch, letter, operations, square};
use super::factors::triangle;

/// `a[m,n]` → `a[m,n], s[k], u[m,k or m], vh[k or n,n], info`, where `k = min(m,n)`; attribute `mode`. What
/// LAPACK leaves in `a` means nothing; here it is `a`.
pub(super) fn gesdd<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 5..6, 0)?;
    let [m, n] = dims;
    let k = m.min(n);
    let vectors = match letter(call, "mode", "ASN")? {
        'A' => SvdVectors::Full,
        'S' => SvdVectors::Thin,
        _ => SvdVectors::Omitted,
    };
    let (u_dims, vh_dims) = match vectors {
        SvdVectors::Full => ([m, m], [n, n]),
        SvdVectors::Thin => ([m, k], [k, n]),
        // Nothing is written but zeros: both sizes are good. One of the two results has the same in both.
        SvdVectors::Omitted
            if batch.expect::<T>(call, 2, &[m, k]).is_ok()
                && batch.expect::<T>(call, 3, &[k, n]).is_ok() =>
        {
            ([m, k], [k, n])
        }
        SvdVectors::Omitted => ([m, m], [n, n]),
    };
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut s = batch.result::<T::Real>(call, 1, &[k])?;
    let mut u = batch.result::<T>(call, 2, &u_dims)?;
    let mut vh = batch.result::<T>(call, 3, &vh_dims)?;
    let mut info = batch.result::<i32>(call, 4, &[])?;
    let out = batch.split(&mut s).zip(batch.split(&mut u)).zip(batch.split(&mut vh));
    let problems = batch.split(&mut a).zip(out).zip(&mut info);
    batch.each(call, operations(&[10, m, n, k]), problems, |run, ((a, ((s, u), vh)), info)| {
        **info = T::gesdd(run, vectors, m, n, a, Svd { s, u, vh });
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[k], &s)?;
    batch.write(call, 2, &u_dims, &u)?;
    batch.write(call, 3, &vh_dims, &vh)?;
    batch.write(call, 4, &[], &info)
}

/// `a[n,n]` → `vectors[n,n], values[n], info`; attributes `mode` and `uplo`.
pub(super) fn heevd<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 3..4, 0)?;
    let (n, triangle) = (square(dims)?, triangle(call)?);
    let vectors = match letter(call, "mode", "VN")? {
        'V' => Vectors::Wanted,
        _ => Vectors::Omitted,
    };
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut values = batch.result::<T::Real>(call, 1, &[n])?;
    let mut info = batch.result::<i32>(call, 2, &[])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut values)).zip(&mut info);
    batch.each(call, operations(&[9, n, n, n]), problems, |run, ((a, values), info)| {
        **info = T::heevd(run, vectors, triangle, n, a, values);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[n], &values)?;
    batch.write(call, 2, &[], &info)
}

/// `a[n,n]` → `packed[n,n], d[n], e[n-1], tau[n-1], info`; attribute `uplo`.
pub(super) fn hetrd<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 5..6, 0)?;
    let (n, triangle) = (square(dims)?, triangle(call)?);
    let beside = n.saturating_sub(1);
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut d = batch.result::<T::Real>(call, 1, &[n])?;
    let mut e = batch.result::<T::Real>(call, 2, &[beside])?;
    let mut tau = batch.result::<T>(call, 3, &[beside])?;
    let info = batch.result::<i32>(call, 4, &[])?;
    let out = batch.split(&mut d).zip(batch.split(&mut e)).zip(batch.split(&mut tau));
    let problems = batch.split(&mut a).zip(out);
    batch.each(call, operations(&[2, n, n, n]), problems, |run, (a, ((d, e), tau))| {
        T::hetrd(run, triangle, n, a, d, e, tau);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[n], &d)?;
    batch.write(call, 2, &[beside], &e)?;
    batch.write(call, 3, &[beside], &tau)?;
    batch.write(call, 4, &[], &info)
}

/// `a[n,n]` → `packed[n,n], tau[n-1], info`; attributes `low` and `high`, counted from 1.
pub(super) fn gehrd<T: Element>(call: &mut Call<'_>) -> Result<()> {
    let (batch, dims) = Batch::of(call, 1, 3..4, 0)?;
    let n = square(dims)?;
    let attributes = call.info().attributes()?;
    let (low, high) = (attributes.integer("low")?, attributes.integer("high")?);
    let range = usize::try_from(low).ok().zip(usize::try_from(high).ok());
    let range = range.filter(|&(low, high)| {
        if n == 0 { (low, high) == (1, 0) } else { 1 <= low && low <= high && high <= n }
    });
    let Some((low, high)) = range else {
        let detail = format!(
            "attributes `low` and `high` must be a range of the rows 1 to {n}, are {low} and {high}"
        );
        return Err(Error::invalid(detail));
    };
    let beside = n.saturating_sub(1);
    batch.expect::<T>(call, 0, &dims)?;
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut tau = batch.result::<T>(call, 1, &[beside])?;
    let info = batch.result::<i32>(call, 2, &[])?;
    let problems = batch.split(&mut a).zip(batch.split(&mut tau));
    batch.each(call, operations(&[4, n, n, n]), problems, |run, (a, tau)| {
        T::gehrd(run, n, low, high, a, tau);
    })?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &[beside], &tau)?;
    batch.write(call, 2, &[], &info)
}

/// Writes complex values, as real and imaginary parts where matrices are real; gives the number of the
/// next result.
fn write_values<T: Element>(
    batch: &Batch,
    call: &mut Call<'_>,
    first: usize,
    n: usize,
    values: &[Complex<T::Real>],
) -> Result<usize>
where
    Complex<T::Real>: Plain,
{
    if T::IS_COMPLEX {
        batch.write(call, first, &[n], values)?;
        return Ok(first + 1);
    }
    let re: Vec<T::Real> = values.iter().map(|value| value.re).collect();
    let im: Vec<T::Real> = values.iter().map(|value| value.im).collect();
    batch.write(call, first, &[n], &re)?;
    batch.write(call, first + 1, &[n], &im)?;
    Ok(first + 2)
}

/// How many results eigenvalues are.
fn value_count<T: Element>() -> usize {
    if T::IS_COMPLEX { 1 } else { 2 }
}

/// `a[n,n]` → `values[n], left[n,n], right[n,n], info`, of which the first is two for real matrices;
/// attributes `compute_left` and `compute_right`.
pub(super) fn geev<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Complex<T::Real>: Plain,
{
    let first = value_count::<T>();
    let (batch, dims) = Batch::of(call, 1, first + 3..first + 4, 0)?;
    let n = square(dims)?;
    let is_left = letter(call, "compute_left", "VN")? == 'V';
    let is_right = letter(call, "compute_right", "VN")? == 'V';
    for number in 0..first {
        batch.expect::<T>(call, number, &[n])?;
    }
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut values = vec![Complex::default(); batch.count * n];
    let mut left = batch.result::<Complex<T::Real>>(call, first, &dims)?;
    let mut right = batch.result::<Complex<T::Real>>(call, first + 1, &dims)?;
    let mut info = batch.result::<i32>(call, first + 2, &[])?;
    let out = batch.split(&mut values).zip(batch.split(&mut left)).zip(batch.split(&mut right));
    let problems = batch.split(&mut a).zip(out).zip(&mut info);
    let work = operations(&[20, n, n, n]);
    batch.each(call, work, problems, |run, ((a, ((values, left), right)), info)| {
        let out = Eig {
            values,
            left: is_left.then_some(&mut **left),
            right: is_right.then_some(&mut **right),
        };
        **info = T::geev(run, n, a, out);
    })?;
    write_values::<T>(&batch, call, 0, n, &values)?;
    batch.write(call, first, &dims, &left)?;
    batch.write(call, first + 1, &dims, &right)?;
    batch.write(call, first + 2, &[], &info)
}

/// `a[n,n]` → `form[n,n], vectors[n,n], values[n], selected, info`, of which the third is two for real
/// matrices; attributes `mode` and `sort`, which must be `N`.
pub(super) fn gees<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Complex<T::Real>: Plain,
{
    let after = 2 + value_count::<T>();
    let (batch, dims) = Batch::of(call, 1, after + 2..after + 3, 0)?;
    let n = square(dims)?;
    letter(call, "sort", "N")?;
    let is_wanted = letter(call, "mode", "VN")? == 'V';
    batch.expect::<T>(call, 0, &dims)?;
    for number in 2..after {
        batch.expect::<T>(call, number, &[n])?;
    }
    let mut a = batch.operand::<T>(call, 0, &dims)?;
    let mut vectors = batch.result::<T>(call, 1, &dims)?;
    let mut values = vec![Complex::default(); batch.count * n];
    let selected = batch.result::<i32>(call, after, &[])?;
    let mut info = batch.result::<i32>(call, after + 1, &[])?;
    let out = batch.split(&mut vectors).zip(batch.split(&mut values));
    let problems = batch.split(&mut a).zip(out).zip(&mut info);
    batch.each(
        call,
        operations(&[20, n, n, n]),
        problems,
        |run, ((a, (vectors, values)), info)| {
            let out = Schur { values, vectors: is_wanted.then_some(&mut **vectors) };
            **info = T::gees(run, n, a, out);
        },
    )?;
    batch.write(call, 0, &dims, &a)?;
    batch.write(call, 1, &dims, &vectors)?;
    write_values::<T>(&batch, call, 2, n, &values)?;
    batch.write(call, after, &[], &selected)?;
    batch.write(call, after + 1, &[], &info)
}
