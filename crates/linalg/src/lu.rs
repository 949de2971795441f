//! LU factors: panels of columns, and each of the other columns changed by a whole panel at once.

use num_traits::Float;

use crate::run::{Run, columns};
use crate::scalar::{Real, Scalar};
use crate::vector::{axpy, subtract_product};

/// How many columns a panel has.
const PANEL: usize = 32;

pub(crate) fn getrf<T: Scalar>(
    run: &dyn Run,
    m: usize,
    n: usize,
    a: &mut [T],
    pivots: &mut [i32],
) -> i32 {
    let count = m.min(n);
    let mut info = 0;
    for start in (0..count).step_by(PANEL) {
        if run.is_stopped() {
            return info;
        }
        let end = count.min(start + PANEL);
        for j in start..end {
            // What the columns before it in the panel do to this one.
            let (left, right) = a.split_at_mut(j * m);
            change(m, start..j, left, pivots, &mut right[..m]);
            let column = &mut right[..m];
            let pivot = j + largest(&column[j..]);
            pivots[j] = i32::try_from(pivot + 1).unwrap_or(i32::MAX);
            if column[pivot] == T::zero() {
                if info == 0 {
                    info = i32::try_from(j + 1).unwrap_or(i32::MAX);
                }
                continue;
            }
            column.swap(j, pivot);
            for other in left[start * m..].chunks_mut(m) {
                other.swap(j, pivot);
            }
            divide(column[j], &mut column[j + 1..]);
        }
        let (before, rest) = a.split_at_mut(end * m);
        for column in before[..start * m].chunks_mut(m) {
            exchange(start..end, pivots, column);
        }
        let (before, pivots) = (&*before, &*pivots);
        columns(run, m, rest, (end - start) * (m - start), &|_, column| {
            exchange(start..end, pivots, column);
            eliminate(m, start..end, before, column);
        });
    }
    info
}

/// What the columns `panel` do to a column right of them in the same panel: its rows are exchanged
/// already.
fn change<T: Scalar>(
    m: usize,
    panel: std::ops::Range<usize>,
    before: &[T],
    pivots: &[i32],
    column: &mut [T],
) {
    exchange(panel.clone(), pivots, column);
    eliminate(m, panel, before, column);
}

/// Exchanges the rows of a column as the pivots say.
fn exchange<T>(rows: std::ops::Range<usize>, pivots: &[i32], column: &mut [T]) {
    for row in rows {
        column.swap(row, pivots[row] as usize - 1);
    }
}

/// Solves with the unit lower triangle of a panel, and subtracts what is below it.
fn eliminate<T: Scalar>(m: usize, panel: std::ops::Range<usize>, before: &[T], column: &mut [T]) {
    let (start, end) = (panel.start, panel.end);
    for k in panel {
        let (top, rest) = column[..end].split_at_mut(k + 1);
        axpy(-top[k], &before[k * m + k + 1..k * m + end], rest);
    }
    let (top, rest) = column.split_at_mut(end);
    if end > start && !rest.is_empty() {
        subtract_product(&before[start * m + end..], m, &top[start..], rest);
    }
}

/// The number of the first of the largest elements.
fn largest<T: Scalar>(x: &[T]) -> usize {
    let mut at = 0;
    let mut max = x[0].abs1();
    for (i, &x) in x.iter().enumerate().skip(1) {
        if x.abs1() > max {
            (at, max) = (i, x.abs1());
        }
    }
    at
}

fn divide<T: Scalar>(pivot: T, x: &mut [T]) {
    if pivot.magnitude() >= T::Real::SAFE_MIN {
        let inverse = T::one().over(pivot);
        if inverse.is_finite_number() || !Float::is_finite(pivot.magnitude()) {
            x.iter_mut().for_each(|x| *x *= inverse);
            return;
        }
    }
    x.iter_mut().for_each(|x| *x = x.over(pivot));
}
