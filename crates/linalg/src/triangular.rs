//! Solves with triangular matrices.

use crate::Triangle;
use crate::run::{Run, columns};
use crate::scalar::Scalar;
use crate::vector::{axpy, dot, dot_plain, two_columns};

/// The side of a product on which a matrix stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Left.
    Left,
    /// Right.
    Right,
}

/// `op` of `op(A)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transpose {
    /// `A`.
    None,
    /// `Aᵀ`.
    Transpose,
    /// `Aᴴ`.
    Adjoint,
}

/// What is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solve {
    /// Where the triangular matrix stands.
    pub side: Side,
    /// Which triangle of it is given.
    pub triangle: Triangle,
    /// What is done to it first.
    pub transpose: Transpose,
    /// Whether its diagonal is all ones, and is not looked at.
    pub is_unit: bool,
}

pub(crate) fn trsm<T: Scalar>(run: &dyn Run, how: Solve, m: usize, n: usize, a: &[T], b: &mut [T]) {
    if m == 0 || n == 0 {
        return;
    }
    match how.side {
        Side::Left => columns(run, m, b, m * m / 2, &|_, column| {
            if !run.is_stopped() {
                left(how, m, a, column);
            }
        }),
        Side::Right => right(run, how, m, n, a, b),
    }
}

/// Whether the first unknown is the first to be known.
fn is_forward(how: Solve) -> bool {
    let is_lower = how.triangle == Triangle::Lower;
    let is_plain = how.transpose == Transpose::None;
    (is_lower == is_plain) == (how.side == Side::Left)
}

/// The numbers below `n`, upwards or downwards.
fn numbers(n: usize, is_forward: bool) -> impl Iterator<Item = usize> {
    (0..n).map(move |i| if is_forward { i } else { n - 1 - i })
}

fn left<T: Scalar>(how: Solve, n: usize, a: &[T], b: &mut [T]) {
    for k in numbers(n, is_forward(how)) {
        let column = &a[k * n..][..n];
        let others = match how.triangle {
            Triangle::Lower => k + 1..n,
            Triangle::Upper => 0..k,
        };
        match how.transpose {
            Transpose::None => {
                if !how.is_unit {
                    b[k] = b[k].over(column[k]);
                }
                let x = b[k];
                axpy(-x, &column[others.clone()], &mut b[others]);
            }
            Transpose::Transpose => {
                let rest = b[k] - dot_plain(&column[others.clone()], &b[others]);
                b[k] = if how.is_unit { rest } else { rest.over(column[k]) };
            }
            Transpose::Adjoint => {
                let rest = b[k] - dot(&column[others.clone()], &b[others]);
                b[k] = if how.is_unit { rest } else { rest.over(column[k].conj()) };
            }
        }
    }
}

fn right<T: Scalar>(run: &dyn Run, how: Solve, m: usize, n: usize, a: &[T], b: &mut [T]) {
    let element = |row: usize, column: usize| match how.transpose {
        Transpose::None => a[row + column * n],
        Transpose::Transpose => a[column + row * n],
        Transpose::Adjoint => a[column + row * n].conj(),
    };
    let is_forward = is_forward(how);
    for k in numbers(n, is_forward) {
        if run.is_stopped() {
            return;
        }
        if !how.is_unit {
            let diagonal = element(k, k);
            b[k * m..][..m].iter_mut().for_each(|x| *x = x.over(diagonal));
        }
        let others = if is_forward { k + 1..n } else { 0..k };
        for j in others {
            let factor = element(k, j);
            if j > k {
                let (from, to) = two_columns(b, m, k, j);
                axpy(-factor, from, to);
            } else {
                let (to, from) = two_columns(b, m, j, k);
                axpy(-factor, from, to);
            }
        }
    }
}
