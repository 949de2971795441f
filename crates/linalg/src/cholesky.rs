//! Cholesky's factor.

use num_traits::Float;

use crate::Triangle;
use crate::run::{Run, columns};
use crate::scalar::{Real, Scalar};
use crate::vector::{dot, scal_real, subtract_product};

/// How many columns a panel has.
const PANEL: usize = 32;

pub(crate) fn potrf<T: Scalar>(run: &dyn Run, triangle: Triangle, n: usize, a: &mut [T]) -> i32 {
    match triangle {
        Triangle::Lower => lower(run, n, a),
        Triangle::Upper => upper(run, n, a),
    }
}

/// Right-looking: a panel is factored, then each column right of it changed by all of the panel.
fn lower<T: Scalar>(run: &dyn Run, n: usize, a: &mut [T]) -> i32 {
    for start in (0..n).step_by(PANEL) {
        if run.is_stopped() {
            return 0;
        }
        let end = n.min(start + PANEL);
        for j in start..end {
            let (left, right) = a.split_at_mut(j * n);
            let column = &mut right[j..n];
            subtract_panel(n, start, j, left, column);
            let Some(root) = pivot(column[0]) else {
                // LAPACK leaves the pivot as it is.
                return i32::try_from(j + 1).unwrap_or(i32::MAX);
            };
            column[0] = T::real(root);
            scal_real(T::Real::of(1.0) / root, &mut column[1..]);
        }
        let (before, rest) = a.split_at_mut(end * n);
        let before = &*before;
        columns(run, n, rest, (end - start) * (n - start), &|number, column| {
            let j = end + number;
            subtract_panel_of(n, start..end, j, before, &mut column[j..]);
        });
    }
    0
}

fn subtract_panel<T: Scalar>(n: usize, start: usize, j: usize, before: &[T], column: &mut [T]) {
    subtract_panel_of(n, start..j, j, before, column);
}

/// Subtracts from column `j`, of which the elements from the diagonal on are given, what the columns
/// `panel` say.
fn subtract_panel_of<T: Scalar>(
    n: usize,
    panel: std::ops::Range<usize>,
    j: usize,
    before: &[T],
    column: &mut [T],
) {
    let mut factors = [T::zero(); PANEL];
    let count = panel.len();
    for (factor, k) in factors.iter_mut().zip(panel.clone()) {
        *factor = before[k * n + j].conj();
    }
    if count > 0 {
        subtract_product(&before[panel.start * n + j..], n, &factors[..count], column);
    }
}

/// Column by column: `Uᴴ U` has dot products of columns.
fn upper<T: Scalar>(run: &dyn Run, n: usize, a: &mut [T]) -> i32 {
    for j in 0..n {
        if run.is_stopped() {
            return 0;
        }
        let (left, right) = a.split_at_mut(j * n);
        let column = &mut right[..=j];
        for i in 0..j {
            let (above, rest) = column.split_at_mut(i);
            let other = &left[i * n..];
            rest[0] = (rest[0] - dot(&other[..i], above)).scale(T::Real::of(1.0) / other[i].re());
        }
        let (above, last) = column.split_at_mut(j);
        let rest = T::real(last[0].re() - dot(above, above).re());
        let Some(root) = pivot(rest) else {
            last[0] = rest;
            return i32::try_from(j + 1).unwrap_or(i32::MAX);
        };
        last[0] = T::real(root);
    }
    0
}

/// The root of a pivot, if it is positive.
fn pivot<T: Scalar>(x: T) -> Option<T::Real> {
    (x.re() > T::Real::default()).then(|| x.re().sqrt())
}
