//! Solves with tridiagonal matrices.

use num_traits::Float;

use crate::run::Run;
use crate::scalar::{Real, Scalar};

/// The diagonals of a tridiagonal matrix of order `n`, each of at least `n` elements.
#[derive(Debug)]
pub struct Tridiagonal<'m, T> {
    /// Below the diagonal: element `i` is in row `i`, so the first means nothing.
    pub lower: &'m mut [T],
    /// The diagonal.
    pub diagonal: &'m mut [T],
    /// Above the diagonal: element `i` is in row `i`, so the last means nothing.
    pub upper: &'m mut [T],
}

pub(crate) fn gtsv<T: Scalar>(
    run: &dyn Run,
    n: usize,
    columns: usize,
    of: Tridiagonal<'_, T>,
    b: &mut [T],
) -> i32 {
    if n == 0 {
        return 0;
    }
    // LAPACK counts the elements below the diagonal from the second row on.
    let (dl, d, du) = (&mut of.lower[1..], of.diagonal, of.upper);
    for i in 0..n - 1 {
        let is_last = i + 2 == n;
        if d[i].abs1() >= dl[i].abs1() {
            if d[i] == T::zero() {
                return number(i);
            }
            let factor = dl[i].over(d[i]);
            d[i + 1] += -(factor * du[i]);
            for b in b.chunks_mut(n).take(columns) {
                let above = b[i];
                b[i + 1] += -(factor * above);
            }
            if !is_last {
                dl[i] = T::zero();
            }
        } else {
            let factor = d[i].over(dl[i]);
            let below = d[i + 1];
            d[i] = dl[i];
            d[i + 1] = du[i] - factor * below;
            if !is_last {
                dl[i] = du[i + 1];
                du[i + 1] = -(factor * dl[i]);
            }
            du[i] = below;
            for b in b.chunks_mut(n).take(columns) {
                let above = b[i];
                b[i] = b[i + 1];
                b[i + 1] = above - factor * b[i];
            }
        }
    }
    if d[n - 1] == T::zero() {
        return number(n - 1);
    }
    for b in b.chunks_mut(n).take(columns) {
        if run.is_stopped() {
            return 0;
        }
        b[n - 1] = b[n - 1].over(d[n - 1]);
        if n > 1 {
            b[n - 2] = (b[n - 2] - du[n - 2] * b[n - 1]).over(d[n - 2]);
        }
        for i in (0..n.saturating_sub(2)).rev() {
            b[i] = (b[i] - du[i] * b[i + 1] - dl[i] * b[i + 2]).over(d[i]);
        }
    }
    0
}

fn number(i: usize) -> i32 {
    i32::try_from(i + 1).unwrap_or(i32::MAX)
}

/// A tridiagonal matrix that elimination with row exchanges has made upper triangular: its diagonal and
/// the two above, and the greatest magnitude in them.
struct Upper<T: Scalar> {
    rows: Vec<[T; 3]>,
    max: T::Real,
}

/// Eliminates below the diagonal, in the right-hand sides, too; rows are scaled before pivots are
/// compared.
fn eliminate<T: Scalar>(n: usize, of: &Tridiagonal<'_, T>, b: &mut [T]) -> Upper<T> {
    let (zero, real_zero) = (T::zero(), T::Real::default());
    let (dl, d, du) = (&*of.lower, &*of.diagonal, &*of.upper);
    let mut rows = vec![[zero; 3]; n];
    rows[0] = [d[0], du[0], zero];
    let mut max = d[0].magnitude().max(du[0].magnitude());
    let mut scale = d[0].magnitude() + du[0].magnitude();
    for k in 0..n - 1 {
        let is_last = k + 2 == n;
        let beyond = if is_last { zero } else { du[k + 1] };
        let below = dl[k + 1];
        let mut next_scale = below.magnitude() + d[k + 1].magnitude() + beyond.magnitude();
        rows[k + 1] = [d[k + 1], du[k + 1], zero];
        if below != zero {
            let pivot = rows[k][0];
            let this = if pivot == zero { real_zero } else { pivot.magnitude() / scale };
            if below.magnitude() / next_scale <= this {
                let factor = below.over(pivot);
                let beside = rows[k][1];
                rows[k + 1][0] += -(factor * beside);
                for b in b.chunks_mut(n) {
                    let above = b[k];
                    b[k + 1] += -(factor * above);
                }
            } else {
                let factor = pivot.over(below);
                let beside = rows[k][1];
                rows[k] = [below, d[k + 1], beyond];
                rows[k + 1][0] = beside - factor * d[k + 1];
                rows[k + 1][1] = -(factor * beyond);
                for b in b.chunks_mut(n) {
                    let above = b[k];
                    b[k] = b[k + 1];
                    b[k + 1] = above - factor * b[k];
                }
                next_scale = rows[k + 1][0].magnitude() + rows[k + 1][1].magnitude();
            }
        }
        scale = next_scale;
        if !is_last {
            max = rows[k].iter().fold(max, |max, u| max.max(u.magnitude()));
        }
    }
    max = max.max(rows[n - 1][0].magnitude());
    Upper { rows, max }
}

/// As LAPACK's `lagtf` and `lagts` do: pivots that are too small are made larger.
pub(crate) fn solve_perturbed<T: Scalar>(
    run: &dyn Run,
    n: usize,
    columns: usize,
    of: Tridiagonal<'_, T>,
    b: &mut [T],
) {
    if n == 0 {
        return;
    }
    let u = eliminate(n, &of, b);
    let ulp = T::Real::EPS + T::Real::EPS;
    let mut row = vec![T::zero(); columns];
    for k in (0..n).rev() {
        if run.is_stopped() {
            return;
        }
        let [mut pivot, beside, beyond] = u.rows[k];
        for (x, b) in row.iter_mut().zip(b.chunks(n)) {
            *x = b[k];
            if k + 1 < n {
                *x += -(beside * b[k + 1]);
            }
            if k + 2 < n {
                *x += -(beyond * b[k + 2]);
            }
        }
        perturb(ulp * u.max, &mut pivot, &mut row);
        let inverse = T::one().over(pivot);
        row.iter().zip(b.chunks_mut(n)).for_each(|(&x, b)| b[k] = x * inverse);
    }
}

/// Makes a pivot so large that neither its inverse nor a quotient by it overflows, by steps that begin with
/// `by`; or scales it and the row, if that is enough.
fn perturb<T: Scalar>(by: T::Real, pivot: &mut T, row: &mut [T]) {
    let (one, two) = (T::Real::of(1.0), T::Real::of(2.0));
    let least = T::Real::SAFE_MIN;
    let most = one / least;
    let max = row.iter().fold(T::Real::default(), |max, x| max.max(x.magnitude()));
    let mut by = by.abs().max(least).copysign(pivot.re());
    // The steps double, so they come to an end; what is not finite needs none.
    while pivot.magnitude() < one {
        let size = pivot.magnitude();
        if size < least {
            if size == T::Real::default() || max * least > size {
                *pivot += T::real(by);
                by *= two;
            } else {
                *pivot = pivot.scale(most);
                row.iter_mut().for_each(|x| *x = x.scale(most));
                return;
            }
        } else if max > size * most {
            *pivot += T::real(by);
            by *= two;
        } else {
            return;
        }
    }
}
