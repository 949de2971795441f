//! Eigenvalues of Hermitian matrices: tridiagonal form, then QL and QR steps with implicit shifts.

use crate::hessenberg::product_of_offset;
use crate::rotations::{Rotation, Rotations, rotation};
use crate::run::Run;
use crate::scalar::{Real, Scalar};
use crate::tridiagonal::hetrd;
use crate::two_by_two::symmetric;
use crate::vector::{adjoint_into, max_abs, scal_real, scaling};
use crate::{NOT_FINITE, Triangle};
use num_traits::Float;

/// Whether vectors are wanted besides values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// Values alone.
    Omitted,
    /// Vectors, too.
    Wanted,
}

/// How many steps an eigenvalue may take.
const STEPS_PER_VALUE: usize = 30;

pub(crate) fn heevd<T: Scalar>(
    run: &dyn Run,
    vectors: Vectors,
    triangle: Triangle,
    n: usize,
    a: &mut [T],
    values: &mut [T::Real],
) -> i32 {
    if n == 0 {
        return 0;
    }
    if triangle == Triangle::Upper {
        let upper = a.to_vec();
        adjoint_into(n, n, &upper, a);
    }
    let mut max = T::Real::default();
    for j in 0..n {
        // The other triangle is not looked at.
        let part = max_abs(&a[j * n + j..(j + 1) * n]);
        if !part.is_finite() {
            a.fill(T::real(T::Real::of(f64::NAN)));
            values.fill(T::Real::of(f64::NAN));
            return NOT_FINITE;
        }
        max = max.max(part);
    }
    let scale = scaling(max);
    if let Some(scale) = scale {
        scal_real(scale, a);
    }
    let (mut e, mut tau) = (vec![T::Real::default(); n], vec![T::zero(); n]);
    hetrd(run, Triangle::Lower, n, a, values, &mut e, &mut tau);
    let info = match vectors {
        Vectors::Omitted => {
            tridiagonal_eigen::<T>(run, values, &mut e[..n - 1], &mut Rotations::new(None, n))
        }
        Vectors::Wanted => {
            let mut q = product_of_offset(run, n, a, &tau);
            let mut rotations = Rotations::new(Some(&mut q), n);
            let info = tridiagonal_eigen(run, values, &mut e[..n - 1], &mut rotations);
            rotations.finish(run);
            a.copy_from_slice(&q);
            info
        }
    };
    sort(n, values, (vectors == Vectors::Wanted).then_some(a));
    if let Some(scale) = scale {
        scal_real(T::Real::of(1.0) / scale, values);
    }
    info
}

/// The eigenvalues of a symmetric tridiagonal matrix in the place of its diagonal, and the rotations.
pub(crate) fn steqr<T: Scalar>(
    run: &dyn Run,
    vectors: Vectors,
    d: &mut [T::Real],
    e: &mut [T::Real],
) -> (Vec<Rotation<T::Real>>, i32) {
    let mut rotations = Rotations::<T>::kept(vectors == Vectors::Wanted);
    let info = tridiagonal_eigen(run, d, e, &mut rotations);
    (rotations.into_list(), info)
}

/// Ascending values, with their columns.
fn sort<T: Scalar>(n: usize, values: &mut [T::Real], columns: Option<&mut [T]>) {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| values[i].partial_cmp(&values[j]).unwrap_or(std::cmp::Ordering::Equal));
    let old = values.to_vec();
    values.iter_mut().zip(&order).for_each(|(value, &i)| *value = old[i]);
    if let Some(columns) = columns.filter(|_| !order.is_sorted()) {
        let old = columns.to_vec();
        for (column, i) in columns.chunks_mut(n).zip(order) {
            column.copy_from_slice(&old[i * n..(i + 1) * n]);
        }
    }
}

/// Makes the diagonal `d` of a tridiagonal matrix its eigenvalues; `e`, what is beside it, vanishes. Gives
/// how many elements of `e` did not.
fn tridiagonal_eigen<T: Scalar>(
    run: &dyn Run,
    d: &mut [T::Real],
    e: &mut [T::Real],
    rotations: &mut Rotations<'_, T>,
) -> i32 {
    let n = d.len();
    let mut left = n * STEPS_PER_VALUE;
    let mut start = 0;
    while start < n {
        // A block that nothing ties to what follows.
        let mut end = start;
        while end + 1 < n && !is_small(d[end], e[end], d[end + 1]) {
            end += 1;
        }
        if end + 1 < n {
            e[end] = T::Real::default();
        }
        if run.is_stopped() {
            return 0;
        }
        let is_done = if d[end].abs() < d[start].abs() {
            from_below(run, d, e, start, end, rotations, &mut left)
        } else {
            from_above(run, d, e, start, end, rotations, &mut left)
        };
        if !is_done {
            let rest = e.iter().filter(|&&e| e != T::Real::default()).count();
            return i32::try_from(rest).unwrap_or(i32::MAX);
        }
        start = end + 1;
    }
    0
}

fn is_small<R: Real>(above: R, beside: R, below: R) -> bool {
    let beside = beside.abs();
    beside == R::default() || beside <= above.abs().sqrt() * below.abs().sqrt() * R::EPS
}

fn is_negligible<R: Real>(above: R, beside: R, below: R) -> bool {
    let product = (R::EPS * R::EPS * above.abs()) * below.abs();
    beside * beside <= product + R::SAFE_MIN
}

/// QL steps: eigenvalues are found from the top of the block on. Gives whether all were found.
fn from_above<T: Scalar>(
    run: &dyn Run,
    d: &mut [T::Real],
    e: &mut [T::Real],
    start: usize,
    end: usize,
    rotations: &mut Rotations<'_, T>,
    left: &mut usize,
) -> bool {
    let (zero, one, two) = (T::Real::default(), T::Real::of(1.0), T::Real::of(2.0));
    let mut l = start;
    while l <= end {
        let m = (l..end).find(|&m| is_negligible(d[m], e[m], d[m + 1])).unwrap_or(end);
        if m < end {
            e[m] = zero;
        }
        if m == l {
            l += 1;
            continue;
        }
        if m == l + 1 {
            let (first, second, c, s) = symmetric(d[l], e[l], d[l + 1]);
            rotations.push(l, c, s);
            (d[l], d[l + 1], e[l]) = (first, second, zero);
            l += 2;
            continue;
        }
        if *left == 0 || run.is_stopped() {
            return false;
        }
        *left -= 1;
        let shift = (d[l + 1] - d[l]) / (two * e[l]);
        let mut g = d[m] - d[l] + e[l] / (shift + shift.hypot(one).copysign(shift));
        let (mut s, mut c, mut p) = (one, one, zero);
        for i in (l..m).rev() {
            let (f, b) = (s * e[i], c * e[i]);
            let r;
            (c, s, r) = rotation(g, f);
            if i + 1 != m {
                e[i + 1] = r;
            }
            g = d[i + 1] - p;
            let r = (d[i] - g) * s + two * c * b;
            p = s * r;
            d[i + 1] = g + p;
            g = c * r - b;
            rotations.push(i, c, -s);
        }
        rotations.settle(run);
        d[l] -= p;
        e[l] = g;
    }
    true
}

/// QR steps: eigenvalues are found from the bottom of the block on. Gives whether all were found.
fn from_below<T: Scalar>(
    run: &dyn Run,
    d: &mut [T::Real],
    e: &mut [T::Real],
    start: usize,
    end: usize,
    rotations: &mut Rotations<'_, T>,
    left: &mut usize,
) -> bool {
    let (zero, one, two) = (T::Real::default(), T::Real::of(1.0), T::Real::of(2.0));
    // How many elements are not yet eigenvalues.
    let mut open = end - start + 1;
    while open > 0 {
        let l = start + open - 1;
        let m = (start + 1..=l)
            .rev()
            .find(|&m| is_negligible(d[m], e[m - 1], d[m - 1]))
            .unwrap_or(start);
        if m > start {
            e[m - 1] = zero;
        }
        if m == l {
            open -= 1;
            continue;
        }
        if m + 1 == l {
            let (first, second, c, s) = symmetric(d[l - 1], e[l - 1], d[l]);
            rotations.push(m, c, s);
            (d[l - 1], d[l], e[l - 1]) = (first, second, zero);
            open -= 2;
            continue;
        }
        if *left == 0 || run.is_stopped() {
            return false;
        }
        *left -= 1;
        let shift = (d[l - 1] - d[l]) / (two * e[l - 1]);
        let mut g = d[m] - d[l] + e[l - 1] / (shift + shift.hypot(one).copysign(shift));
        let (mut s, mut c, mut p) = (one, one, zero);
        for i in m..l {
            let (f, b) = (s * e[i], c * e[i]);
            let r;
            (c, s, r) = rotation(g, f);
            if i != m {
                e[i - 1] = r;
            }
            g = d[i] - p;
            let r = (d[i + 1] - g) * s + two * c * b;
            p = s * r;
            d[i] = g + p;
            g = c * r - b;
            rotations.push(i, c, s);
        }
        rotations.settle(run);
        d[l] -= p;
        e[l - 1] = g;
    }
    true
}
