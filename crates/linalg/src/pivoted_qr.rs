//! QR factors with pivoted columns.

use num_traits::Float;

use crate::reflector::{apply, reflector};
use crate::run::{Run, columns};
use crate::scalar::{Real, Scalar};
use crate::vector::{norm, two_columns};

pub(crate) fn geqp3<T: Scalar>(
    run: &dyn Run,
    m: usize,
    n: usize,
    a: &mut [T],
    pivots: &mut [i32],
    tau: &mut [T],
) {
    let fixed = take_to_front(m, n, a, pivots);
    let mut norms: Vec<Norm<T::Real>> = Vec::new();
    for i in 0..m.min(n) {
        if run.is_stopped() {
            return;
        }
        if i >= fixed {
            if norms.is_empty() {
                norms = (0..n).map(|j| Norm::of(&a[j * m + i..(j + 1) * m])).collect();
            }
            let pivot = largest(&norms, i);
            if pivot != i {
                let (left, right) = two_columns(a, m, i, pivot);
                left.swap_with_slice(right);
                pivots.swap(i, pivot);
                norms[pivot] = norms[i];
            }
        }
        let (left, right) = a.split_at_mut((i + 1) * m);
        let (head, v) = left[i * m + i..].split_at_mut(1);
        let (beta, t) = reflector(head[0], v);
        (head[0], tau[i]) = (T::real(beta), t);
        let v = &*v;
        columns(run, m, right, 2 * (m - i), &|_, column| apply(t.conj(), v, &mut column[i..]));
        if i >= fixed {
            for (norm, column) in norms[i + 1..].iter_mut().zip(right.chunks(m)) {
                norm.without(column[i].magnitude(), &column[i + 1..]);
            }
        }
    }
}

/// Exchanges columns so that those whose pivot is not 0 come first, and numbers all; gives how many
/// those are.
fn take_to_front<T: Scalar>(m: usize, n: usize, a: &mut [T], pivots: &mut [i32]) -> usize {
    let mut fixed = 0;
    for j in 0..n {
        let number = i32::try_from(j + 1).unwrap_or(i32::MAX);
        if pivots[j] == 0 {
            pivots[j] = number;
            continue;
        }
        if j != fixed {
            let (left, right) = two_columns(a, m, fixed, j);
            left.swap_with_slice(right);
            pivots[j] = pivots[fixed];
        }
        pivots[fixed] = number;
        fixed += 1;
    }
    fixed
}

fn largest<R: Real>(norms: &[Norm<R>], from: usize) -> usize {
    (from..norms.len()).fold(from, |best, j| if norms[j].now > norms[best].now { j } else { best })
}

/// The norm of what is left of a column, kept up to date.
#[derive(Clone, Copy)]
struct Norm<R> {
    now: R,
    /// When it was last computed from the elements.
    exact: R,
}

impl<R: Real> Norm<R> {
    fn of<T: Scalar<Real = R>>(column: &[T]) -> Self {
        let norm = norm(column);
        Norm { now: norm, exact: norm }
    }

    /// Without the first element, of this magnitude; computed anew where too many digits are lost.
    fn without<T: Scalar<Real = R>>(&mut self, first: R, rest: &[T]) {
        if self.now == R::default() {
            return;
        }
        let ratio = first / self.now;
        let left = Float::max(R::of(1.0) - ratio * ratio, R::default());
        let ratio = self.now / self.exact;
        if left * ratio * ratio <= R::EPS.sqrt() {
            *self = Norm::of(rest);
        } else {
            self.now *= left.sqrt();
        }
    }
}
