//! LU factors with exchanged rows: panels of columns, each followed by an update of what is right of it.

use super::super::bytes::{cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::panel::{self, ROWS, Row, WIDTH};
use super::side_by_side::{self, MATRICES, MAX_SIZE};
use super::{Field, FieldType, with_field};
use crate::Threads;

/// Factors batches of matrices as LAPACK's `getrf` does: `p a = l u`, where `l` has ones on its diagonal, which
/// are left out, and `p` exchanges rows so that no element of `l` is larger than one.
///
/// A panel of columns is copied, to be eliminated row by row while it is in the cache. Rows of the whole
/// matrix are exchanged then; those of the panel's pivots become `u` right of it by forward substitution, and
/// their products with the panel's rows are subtracted from the others.
#[derive(Clone, Debug)]
pub struct Lu {
    ty: FieldType,
    batch: usize,
    m: usize,
    n: usize,
}

/// Smaller remainders are not worth several threads.
const MIN_SHARED: usize = 256;
/// The rows of a task: a multiple of [`ROWS`].
const TASK_ROWS: usize = 32;
/// What is compared side by side for the largest element.
const LANES: usize = 16;

impl Lu {
    /// A plan for `batch` matrices `m`×`n`. `None` if sizes overflow.
    pub fn new(ty: FieldType, batch: usize, m: usize, n: usize) -> Option<Self> {
        let most = m.checked_mul(n.checked_add(WIDTH)?)?.checked_add(n.checked_mul(WIDTH)?)?;
        isize::try_from(batch.checked_mul(most)?.checked_mul(ty.size())?).ok()?;
        Some(Lu { ty, batch, m, n })
    }

    /// Writes `l` and `u` to `to`; to `pivots`, for each column that has one, the row, counted from 1, with
    /// which the row of its number was exchanged; and to `info`, for each matrix, 0 or the number of the first
    /// pivot that is zero. Both are of `i32`.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn run(
        &self,
        a: &[u8],
        to: &mut [u8],
        (pivots, info): (&mut [u8], &mut [u8]),
        threads: Threads<'_>,
    ) {
        let (pivots, info) = (cast_mut::<i32>(pivots), cast_mut::<i32>(info));
        if self.m * self.n == 0 {
            return info.fill(0);
        }
        with_field!(self.ty, T => {
            let (a, to) = (cast::<T>(a), cast_mut::<T>(to));
            match side_by_side::are_worth(self.batch, [self.m, self.n]) {
                true => self.side_by_side(a, to, (pivots, info), threads),
                false => self.typed(a, to, (pivots, info), threads),
            }
        });
    }

    fn side_by_side<T: Field>(
        &self,
        a: &[T],
        to: &mut [T],
        (pivots, info): (&mut [i32], &mut [i32]),
        threads: Threads<'_>,
    ) {
        let Lu { batch, m, n, .. } = *self;
        let (size, count) = (m * n, m.min(n));
        let (pivots, info) = (Disjoint::new(pivots), Disjoint::new(info));
        side_by_side::for_groups(
            &mut to[..batch * size],
            size,
            size,
            threads,
            &|first, to, work: &mut [T::Side]| {
                let mut rows = [[0; MATRICES]; MAX_SIZE];
                side_by_side::load(&a[first * size..][..to.len()], work);
                side_by_side::lu::<T>(work, [m, n], &mut rows[..count]);
                side_by_side::store(work, to);
                let matrices = to.len() / size;
                // SAFETY: each matrix has a number of its own.
                let pivots = unsafe { pivots.part(first * count, matrices * count) };
                side_by_side::store(&rows[..count], pivots);
                // SAFETY: as for pivots, of one place for each matrix.
                let info = unsafe { info.part(first, matrices) };
                for (info, matrix) in info.iter_mut().zip(to.chunks_exact(size)) {
                    *info = first_zero(matrix, n, count);
                }
            },
        );
    }

    fn typed<T: Field>(
        &self,
        a: &[T],
        to: &mut [T],
        (pivots, info): (&mut [i32], &mut [i32]),
        threads: Threads<'_>,
    ) {
        let Lu { batch, m, n, .. } = *self;
        let (size, count) = (m * n, m.min(n));
        let (pivots, info) = (Disjoint::new(pivots), Disjoint::new(info));
        threads.for_chunks(&mut to[..batch * size], size, &|number, matrix| {
            matrix.copy_from_slice(&a[number * size..][..size]);
            // SAFETY: each matrix has a number of its own.
            let pivots = unsafe { pivots.part(number * count, count) };
            // Several matrices are shared out; of one, the remainders are.
            let threads = if batch > 1 { Threads::single() } else { threads };
            scratch::with(m.next_multiple_of(WIDTH), |column: &mut [T]| {
                scratch::with((m + n.next_multiple_of(WIDTH)) * WIDTH, |panels: &mut [T]| {
                    let (rows, _) = panels.as_chunks_mut();
                    let (panel, right) = rows.split_at_mut(m);
                    factor(matrix, n, pivots, Work { panel, right, column }, threads);
                });
            });
            // SAFETY: each matrix has a place of its number.
            let info = unsafe { info.part(number, 1) };
            info[0] = first_zero(matrix, n, count);
        });
    }
}

/// The number, from 1, of the first pivot that is zero in the factors of a matrix of `n` columns, or 0: a pivot
/// that is not zero stays on the diagonal.
fn first_zero<T: Field>(factors: &[T], n: usize, count: usize) -> i32 {
    let zero = factors.iter().step_by(n + 1).take(count).position(|&v| v == T::ZERO);
    zero.map_or(0, |at| i32::try_from(at + 1).unwrap_or(i32::MAX))
}

/// Working memory for a matrix.
struct Work<'w, T> {
    /// As many rows as the matrix has.
    panel: &'w mut [Row<T>],
    /// As many as it has columns, in whole panels.
    right: &'w mut [Row<T>],
    /// As many elements as it has rows.
    column: &'w mut [T],
}

/// Replaces a matrix of `n` columns by its factors.
fn factor<T: Field>(
    matrix: &mut [T],
    n: usize,
    pivots: &mut [i32],
    work: Work<'_, T>,
    threads: Threads<'_>,
) {
    let Work { panel, right, column } = work;
    let m = matrix.len() / n;
    let count = pivots.len();
    for first in (0..count).step_by(WIDTH) {
        if threads.is_stopped() {
            return;
        }
        let width = WIDTH.min(count - first);
        let (_, rows) = matrix.split_at_mut(first * n);
        let panel = &mut panel[..m - first];
        for (panel, row) in panel.iter_mut().zip(rows.chunks_exact(n)) {
            panel[..width].copy_from_slice(&row[first..first + width]);
            panel[width..].fill(T::ZERO);
        }
        let pivots = &mut pivots[first..first + width];
        vectorised(
            #[inline(always)]
            || eliminate(panel, pivots, &mut column[..m - first]),
        );
        for (j, pivot) in pivots.iter_mut().enumerate() {
            let other = *pivot as usize;
            if other != j {
                let (above, below) = rows.split_at_mut(other * n);
                above[j * n..][..n].swap_with_slice(&mut below[..n]);
            }
            *pivot = i32::try_from(first + other + 1).unwrap_or(i32::MAX);
        }
        for (panel, row) in panel.iter().zip(rows.chunks_exact_mut(n)) {
            row[first..first + width].copy_from_slice(&panel[..width]);
        }

        let start = first + width;
        if start == n {
            break;
        }
        let (top, below) = rows.split_at_mut(width * n);
        let lower = panel.as_flattened();
        let right = &mut right[..(n - start).div_ceil(WIDTH) * width];
        let threads = if below.len() / n < MIN_SHARED { Threads::single() } else { threads };
        threads.for_chunks(right, width, &|number, right| {
            let first = start + number * WIDTH;
            let columns = first..n.min(first + WIDTH);
            for (right, row) in right.iter_mut().zip(top.chunks_exact(n)) {
                right[..columns.len()].copy_from_slice(&row[columns.clone()]);
                right[columns.len()..].fill(T::ZERO);
            }
            vectorised(
                #[inline(always)]
                || panel::solve(lower, WIDTH, true, right),
            );
        });
        for (number, right) in right.chunks_exact(width).enumerate() {
            let first = start + number * WIDTH;
            let columns = first..n.min(first + WIDTH);
            for (right, row) in right.iter().zip(top.chunks_exact_mut(n)) {
                row[columns.clone()].copy_from_slice(&right[..columns.len()]);
            }
        }
        let (panel, right) = (&panel[width..], &*right);
        threads.for_chunks(below, TASK_ROWS * n, &|number, rows| {
            let panel = &panel[number * TASK_ROWS..][..rows.len() / n];
            vectorised(
                #[inline(always)]
                || update(rows, (n, start), panel, right, width),
            );
        });
    }
}

/// Replaces a panel by its factors; pivots are numbers of rows, from 0. `column` is working memory, of an
/// element for each row.
#[inline(always)]
fn eliminate<T: Field>(panel: &mut [Row<T>], pivots: &mut [i32], column: &mut [T]) {
    for (v, row) in column.iter_mut().zip(&*panel) {
        *v = row[0];
    }
    // `column` has a copy of that column which is next, where elements are neighbours.
    for (j, pivot) in pivots.iter_mut().enumerate() {
        let other = j + largest(&column[j..]);
        *pivot = i32::try_from(other).unwrap_or(i32::MAX);
        panel.swap(j, other);
        column.swap(j, other);
        let value = column[j];
        let factors = &mut column[j + 1..];
        if value != T::ZERO {
            divide(factors, value);
        }
        let (top, rest) = panel.split_at_mut(j + 1);
        panel::subtract_outer(rest, factors, &top[j], j);
    }
}

/// The number of the first of the largest elements: of the first element, if that is NaN; others that are
/// count for nothing.
#[inline(always)]
fn largest<T: Field>(x: &[T]) -> usize {
    let first = x[0].size();
    let mut most = [first; LANES];
    let greater = |a: T::Real, b: T::Real| if a > b { a } else { b };
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for (most, v) in most.iter_mut().zip(chunk) {
            *most = greater(v.size(), *most);
        }
    }
    let most = rest.iter().map(|v| v.size()).chain(most).fold(first, |most, v| greater(v, most));
    // None equals NaN.
    x.iter().position(|v| v.size() == most).unwrap_or(0)
}

/// Divides by a pivot, by way of its inverse if that is finite.
#[inline(always)]
fn divide<T: Field>(x: &mut [T], pivot: T) {
    if pivot.size() >= T::LEAST {
        let inverse = T::ONE / pivot;
        x.iter_mut().for_each(|v| *v = *v * inverse);
    } else {
        x.iter_mut().for_each(|v| *v = *v / pivot);
    }
}

/// Subtracts from rows of `n` elements, from column `start` on, the products of a panel's first columns with
/// panels that have a row for each.
#[inline(always)]
fn update<T: Field>(
    rows: &mut [T],
    (n, start): (usize, usize),
    panel: &[Row<T>],
    right: &[Row<T>],
    width: usize,
) {
    for (number, right) in right.chunks_exact(width).enumerate() {
        let first = start + number * WIDTH;
        let columns = first..n.min(first + WIDTH);
        for (rows, panel) in rows.chunks_mut(ROWS * n).zip(panel.chunks(ROWS)) {
            let mut sums = [[T::ZERO; WIDTH]; ROWS];
            for (sums, row) in sums.iter_mut().zip(rows.chunks_exact(n)) {
                sums[..columns.len()].copy_from_slice(&row[columns.clone()]);
            }
            // A row is clamped where there are fewer; what becomes of it is not kept.
            let factors: [&[T]; ROWS] =
                std::array::from_fn(|i| &panel[i.min(panel.len() - 1)][..width]);
            panel::subtract_product(&mut sums, right, |i, p| factors[i][p]);
            for (sums, row) in sums.iter().zip(rows.chunks_exact_mut(n)) {
                row[columns.clone()].copy_from_slice(&sums[..columns.len()]);
            }
        }
    }
}
