//! What the halves of a problem have in common when they are joined: vectors as rows, some of which are zero
//! in one half.

use helio_linalg::Rotation;

use super::super::gemm::{Contraction, Dim};
use super::super::isa::vectorised;
use super::real::Real;
use crate::Threads;

/// Matrices of this order and less are not halved.
pub(super) const LEAF: usize = 16;

/// What becomes of the rows of two halves.
pub(super) struct Deflated {
    /// Those whose values change, by ascending values.
    pub(super) kept: Vec<(usize, Support)>,
    /// The others.
    pub(super) done: Vec<usize>,
}

/// Where a vector is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// In the columns of the first half.
    First,
    /// In all.
    Both,
    /// In the columns of the second half.
    Second,
}

impl Support {
    /// Of a sum.
    pub(super) fn with(self, other: Support) -> Support {
        if self == other { self } else { Support::Both }
    }

    /// Of vectors that are numbered from the first half's on, of which there are so many.
    pub(super) fn of(row: usize, middle: usize) -> Support {
        if row < middle { Support::First } else { Support::Second }
    }
}

/// Rows of vectors, some elements apart, of which the first part of each belongs to the first half.
pub(super) struct Halves<'h, T> {
    pub(super) rows: &'h mut [T],
    pub(super) stride: usize,
    /// The elements of a row, and those of the first half.
    pub(super) size: [usize; 2],
}

impl<T: Real> Halves<'_, T> {
    /// Rows `x` and `y` become `c x + s y` and `c y − s x`.
    pub(super) fn rotate(&mut self, [x, y]: [usize; 2], c: T, s: T) {
        let [size, _] = self.size;
        let (first, second) = (x.min(y), x.max(y));
        let (before, after) = self.rows.split_at_mut(second * self.stride);
        let (low, high) = (&mut before[first * self.stride..][..size], &mut after[..size]);
        let (left, right) = if x < y { (low, high) } else { (high, low) };
        vectorised(
            #[inline(always)]
            || rotate(left, right, c, s),
        );
    }

    /// Copies rows, by number and support, to `packed`, one after the other, in an order in which those of
    /// the first half come first and those of the second last, and others after them; gives the place of each,
    /// and how many there are of the first half, and of the first and both.
    pub(super) fn pack(
        &self,
        rows: &[(usize, Support)],
        others: &[usize],
        packed: &mut [T],
        places: &mut [usize],
    ) -> [usize; 2] {
        let [size, _] = self.size;
        let mut next = 0;
        let mut counts = [0; 2];
        for (number, support) in [Support::First, Support::Both, Support::Second].iter().enumerate()
        {
            for (place, &(row, of)) in places.iter_mut().zip(rows) {
                if of == *support {
                    *place = next;
                    packed[next * size..][..size]
                        .copy_from_slice(&self.rows[row * self.stride..][..size]);
                    next += 1;
                }
            }
            if let Some(count) = counts.get_mut(number) {
                *count = next;
            }
        }
        for (to, &row) in packed[next * size..].chunks_exact_mut(size).zip(others) {
            to.copy_from_slice(&self.rows[row * self.stride..][..size]);
        }
        counts
    }

    /// Copies packed rows from place `first` to before `end` back, to rows of these numbers.
    pub(super) fn unpack(&mut self, first: usize, end: usize, packed: &[T]) {
        let [size, _] = self.size;
        let rows = self.rows.chunks_mut(self.stride).zip(packed.chunks_exact(size));
        for (to, from) in rows.take(end).skip(first) {
            to[..size].copy_from_slice(from);
        }
    }

    /// Makes the first rows sums of packed ones, as many as there are of these; row `p` of `factors` has the
    /// factor of packed row `p` in each of them.
    pub(super) fn combine(
        &mut self,
        (factors, factor_stride): (&[T], usize),
        packed: &[T],
        count: usize,
        [first, both]: [usize; 2],
        threads: Threads<'_>,
    ) {
        let [size, half] = self.size;
        for (rows, columns) in [(0..both, 0..half), (first..count, half..size)] {
            if rows.is_empty() || columns.is_empty() {
                for row in self.rows.chunks_mut(self.stride).take(count) {
                    row[columns.clone()].fill(T::ZERO);
                }
                continue;
            }
            let of = Contraction::new(
                &[],
                &[Dim { size: count, lhs: 1, rhs: 0, out: self.stride }],
                &[Dim { size: columns.len(), lhs: 0, rhs: 1, out: 1 }],
                &[Dim { size: rows.len(), lhs: factor_stride, rhs: size, out: 0 }],
            );
            let (factors, packed) = (
                &factors[rows.start * factor_stride..],
                &packed[rows.start * size + columns.start..],
            );
            T::product(&of, factors, packed, &mut self.rows[columns.start..], threads);
        }
    }

    /// Puts rows in another order: row `i` becomes the one that was number `order[i]`. `moved` is for as many
    /// rows as there are numbers.
    pub(super) fn reorder(&mut self, order: &[usize], moved: &mut [T]) {
        if order.iter().enumerate().all(|(i, &from)| i == from) {
            return;
        }
        let [size, _] = self.size;
        for (to, &from) in moved.chunks_exact_mut(size).zip(order) {
            to.copy_from_slice(&self.rows[from * self.stride..][..size]);
        }
        let rows = self.rows.chunks_mut(self.stride);
        for (to, from) in rows.zip(moved.chunks_exact(size)).take(order.len()) {
            to[..size].copy_from_slice(from);
        }
    }
}

/// `x` and `y` become `c x + s y` and `c y − s x`.
#[inline(always)]
pub(super) fn rotate<T: Real>(x: &mut [T], y: &mut [T], c: T, s: T) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}

/// `sqrt(x² + y²)` of numbers whose squares do not leave the range by much.
pub(super) fn length<T: Real>(x: T, y: T) -> T {
    let large = x.size().larger(y.size());
    if large == T::ZERO {
        return large;
    }
    let (x, y) = (x / large, y / large);
    large * (x * x + y * y).sqrt()
}

/// Divides factors by the lengths of the vectors that they make, column by column. `sums` is for as many numbers
/// as there are columns.
pub(super) fn normalise<T: Real>(factors: &mut [T], stride: usize, count: usize, sums: &mut [T]) {
    vectorised(
        #[inline(always)]
        || {
            let sums = &mut sums[..count];
            sums.fill(T::ZERO);
            for row in factors.chunks(stride).take(count) {
                for (sum, &factor) in sums.iter_mut().zip(row) {
                    *sum += factor * factor;
                }
            }
            sums.iter_mut().for_each(|sum| *sum = T::ONE / sum.sqrt());
            for row in factors.chunks_mut(stride).take(count) {
                for (factor, &by) in row.iter_mut().zip(&*sums) {
                    *factor *= by;
                }
            }
        },
    );
}

/// The largest magnitude.
pub(super) fn largest<T: Real>(x: &[T]) -> T {
    x.iter().fold(T::ZERO, |most, x| most.larger(x.size()))
}

/// Sorts numbers of values by these.
pub(super) fn sorted_by<'o, T: Real>(values: &[T], order: &'o mut [usize]) -> &'o [usize] {
    order.sort_by(|&i, &j| values[i].partial_cmp(&values[j]).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// Applies rotations of neighbouring rows.
#[inline(always)]
pub(super) fn rotate_all<T: Real, const N: usize>(rows: &mut [[T; N]], rotations: &[Rotation<T>]) {
    for &Rotation { first, cosine, sine } in rotations {
        if let [x, y, ..] = &mut rows[first..] {
            rotate(x, y, cosine, sine);
        }
    }
}

/// Makes distances from a pole factors of its vector.
pub(super) fn divide<T: Real>(z: T, row: &mut [T]) {
    vectorised(
        #[inline(always)]
        || row.iter_mut().for_each(|x| *x = z / *x),
    );
}

/// Makes zeros of numbers that have few digits or are near those, beside others that are about one or more.
pub(super) fn clear_least<T: Real>(x: &mut [T]) {
    for x in x {
        if x.size() < T::LEAST / T::EPSILON {
            *x = T::ZERO;
        }
    }
}
