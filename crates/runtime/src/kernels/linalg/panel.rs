//! Panels: a few columns of a matrix, row by row.

use super::Field;

/// The columns of a panel.
pub(super) const WIDTH: usize = 32;
/// Rows that are computed together: the sums of all their columns fit in registers.
pub(super) const ROWS: usize = 4;

/// A row of a panel.
pub(super) type Row<T> = [T; WIDTH];

/// Solves `l x = b` in place for the lower triangle of a matrix whose rows are `row_size` apart:
/// `x` is `b` at first. The diagonal may be taken for ones.
#[inline(always)]
pub(super) fn solve<T: Field>(l: &[T], row_size: usize, unit_diagonal: bool, x: &mut [Row<T>]) {
    for first in (0..x.len()).step_by(ROWS) {
        let (known, rest) = x.split_at_mut(first);
        let rows = rest.len().min(ROWS);
        let l_row = |i: usize| &l[(first + i) * row_size..];
        if let Some(group) = rest.first_chunk_mut::<ROWS>() {
            let l: [&[T]; ROWS] = std::array::from_fn(|i| &l_row(i)[..first]);
            subtract_product(group, known, |i, p| l[i][p]);
        } else {
            for (i, row) in rest.iter_mut().enumerate() {
                for (p, known) in known.iter().enumerate() {
                    subtract(row, known, l_row(i)[p]);
                }
            }
        }
        for i in 0..rows {
            let (known, rest) = rest.split_at_mut(i);
            let (row, l) = (&mut rest[0], &l_row(i)[first..]);
            for (known, &factor) in known.iter().zip(l) {
                subtract(row, known, factor);
            }
            if !unit_diagonal {
                for v in row {
                    *v = *v / l[i];
                }
            }
        }
    }
}

/// `sums[i] -= Σ factor(i, p) * rows[p]`, in order of `p`.
#[inline(always)]
pub(super) fn subtract_product<T: Field>(
    sums: &mut [Row<T>; ROWS],
    rows: &[Row<T>],
    factor: impl Fn(usize, usize) -> T,
) {
    let [mut s0, mut s1, mut s2, mut s3] = *sums;
    for (p, row) in rows.iter().enumerate() {
        let [f0, f1, f2, f3] = [factor(0, p), factor(1, p), factor(2, p), factor(3, p)];
        // One loop for all sums: short ones are unrolled before they can become vectors.
        for c in 0..WIDTH {
            s0[c] = s0[c] - f0 * row[c];
            s1[c] = s1[c] - f1 * row[c];
            s2[c] = s2[c] - f2 * row[c];
            s3[c] = s3[c] - f3 * row[c];
        }
    }
    *sums = [s0, s1, s2, s3];
}

/// Subtracts a row times a number.
#[inline(always)]
pub(super) fn subtract<T: Field>(row: &mut Row<T>, known: &Row<T>, factor: T) {
    for (v, &known) in row.iter_mut().zip(known) {
        *v = *v - factor * known;
    }
}

/// Subtracts from rows their factors times a row, right of column `j`, which becomes the factors; these become
/// the column after it.
#[inline(always)]
pub(super) fn subtract_outer<T: Field>(
    rows: &mut [Row<T>],
    factors: &mut [T],
    row: &Row<T>,
    j: usize,
) {
    let next = (j + 1).min(WIDTH - 1);
    let mut right = *row;
    right[..=j].fill(T::ZERO);
    for (row, factor) in rows.iter_mut().zip(factors) {
        // It is computed twice: what has just been written as part of a vector is slow to read.
        let ahead = row[next] - *factor * right[next];
        if factor.is_finite() {
            subtract(row, &right, *factor);
        } else {
            // Zeros times this are not zero.
            for (v, &right) in row[next..].iter_mut().zip(&right[next..]) {
                *v = *v - *factor * right;
            }
        }
        row[j] = *factor;
        *factor = ahead;
    }
}
