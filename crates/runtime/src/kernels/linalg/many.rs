//! Eigenvalues and singular values of many small matrices, side by side, by Jacobi's rotations: each takes one pair
//! of rows in all matrices, by an angle of its own, or not at all where that is done.

use super::super::isa::vectorised;
use super::real::{LANES, Lanes, Real};

/// How many matrices are worked on at once.
pub(super) const GROUP: usize = LANES;
/// The largest order.
pub(super) const MAX_ORDER: usize = 16;
/// The most rows of a matrix that is higher than wide.
pub(super) const MAX_ROWS: usize = 32;
/// For fewer matrices it is not worth while.
pub(super) const MIN_BATCH: usize = 8;
/// After so many rounds, which are more than it takes, some matrix is given up.
const MAX_ROUNDS: usize = 40;

/// Symmetric matrices of order `n`: element `(i, j)` of all, where `j ≤ i`, is at `i (i + 1) / 2 + j`. Their
/// diagonals become eigenvalues; `v`, of `n` rows of vectors, which is an identity at first, gets what is done to
/// it, unless it is empty. Gives which are not done.
pub(super) fn eigen<T: Real>(
    a: &mut [Lanes<T>],
    v: &mut [Lanes<T>],
    n: usize,
    largest: &Lanes<T>,
) -> [bool; LANES] {
    let mut is_open = [true; LANES];
    for _ in 0..MAX_ROUNDS {
        vectorised(
            #[inline(always)]
            || is_open = eigen_round(a, v, n, largest),
        );
        if !is_open.contains(&true) {
            break;
        }
    }
    is_open
}

#[inline(always)]
fn eigen_round<T: Real>(
    a: &mut [Lanes<T>],
    v: &mut [Lanes<T>],
    n: usize,
    largest: &Lanes<T>,
) -> [bool; LANES] {
    let at = |i: usize, j: usize| i.max(j) * (i.max(j) + 1) / 2 + i.min(j);
    let mut moved = [T::ZERO; LANES];
    for q in 1..n {
        for p in 0..q {
            let (beside, first, second) = (a[at(q, p)], a[at(p, p)], a[at(q, q)]);
            let [mut c, mut s, mut t] = [[T::ZERO; LANES]; 3];
            let mut is_any = false;
            for l in 0..LANES {
                let is_turned = beside[l].size() > T::EPSILON * largest[l];
                (c[l], s[l], t[l]) = angle(is_turned, second[l] - first[l], beside[l]);
                moved[l] = if is_turned { T::ONE } else { moved[l] };
                is_any |= is_turned;
            }
            if !is_any {
                continue;
            }
            for l in 0..LANES {
                let by = t[l] * beside[l];
                a[at(p, p)][l] = first[l] - by;
                a[at(q, q)][l] = second[l] + by;
                a[at(q, p)][l] = if t[l] == T::ZERO { beside[l] } else { T::ZERO };
            }
            for k in (0..n).filter(|&k| k != p && k != q) {
                let (x, y) = (a[at(k, p)], a[at(k, q)]);
                let (to_x, to_y) = rotated(&x, &y, &c, &s);
                (a[at(k, p)], a[at(k, q)]) = (to_x, to_y);
            }
            rotate_rows(v, n, [p, q], &c, &s);
        }
    }
    moved.map(|moved| moved != T::ZERO)
}

/// Matrices of `n` columns of `m` elements, each at a row of `w`, which become orthogonal to each other; `v`, as for
/// [`eigen`], gets the same rotations. Gives which are not done.
pub(super) fn orthogonal<T: Real>(
    w: &mut [Lanes<T>],
    v: &mut [Lanes<T>],
    [m, n]: [usize; 2],
) -> [bool; LANES] {
    let mut is_open = [true; LANES];
    for _ in 0..MAX_ROUNDS {
        vectorised(
            #[inline(always)]
            || is_open = orthogonal_round(w, v, [m, n]),
        );
        if !is_open.contains(&true) {
            break;
        }
    }
    is_open
}

#[inline(always)]
fn orthogonal_round<T: Real>(
    w: &mut [Lanes<T>],
    v: &mut [Lanes<T>],
    [m, n]: [usize; 2],
) -> [bool; LANES] {
    // As much as sums of so many products may be wrong.
    let tolerance = T::EPSILON * T::of((m + 4) as f64);
    let mut moved = [T::ZERO; LANES];
    for q in 1..n {
        for p in 0..q {
            let [mut first, mut second, mut product] = [[T::ZERO; LANES]; 3];
            for (x, y) in w[p * m..][..m].iter().zip(&w[q * m..][..m]) {
                for l in 0..LANES {
                    first[l] += x[l] * x[l];
                    second[l] += y[l] * y[l];
                    product[l] += x[l] * y[l];
                }
            }
            let [mut c, mut s] = [[T::ZERO; LANES]; 2];
            let mut is_any = false;
            for l in 0..LANES {
                let most = tolerance * tolerance * (first[l] * second[l]);
                let is_turned = product[l] * product[l] > most;
                (c[l], s[l], _) = angle(is_turned, second[l] - first[l], product[l]);
                moved[l] = if is_turned { T::ONE } else { moved[l] };
                is_any |= is_turned;
            }
            if is_any {
                rotate_rows(w, m, [p, q], &c, &s);
                rotate_rows(v, n, [p, q], &c, &s);
            }
        }
    }
    moved.map(|moved| moved != T::ZERO)
}

/// Cosine, sine and tangent of the smaller angle that makes the element beside the diagonal of a matrix of order 2
/// vanish, whose diagonal has this difference; of none where none is wanted.
#[inline(always)]
fn angle<T: Real>(is_wanted: bool, difference: T, beside: T) -> (T, T, T) {
    let twice = beside + beside;
    let theta = difference / if is_wanted { twice } else { T::ONE };
    let size = theta.size();
    let tangent = T::ONE / (size + (theta * theta + T::ONE).sqrt());
    let tangent = if theta < T::ZERO { -tangent } else { tangent };
    let tangent = if is_wanted { tangent } else { T::ZERO };
    let cosine = T::ONE / (tangent * tangent + T::ONE).sqrt();
    (cosine, tangent * cosine, tangent)
}

/// `c x − s y` and `s x + c y`.
#[inline(always)]
fn rotated<T: Real>(
    x: &Lanes<T>,
    y: &Lanes<T>,
    c: &Lanes<T>,
    s: &Lanes<T>,
) -> (Lanes<T>, Lanes<T>) {
    let [mut to_x, mut to_y] = [[T::ZERO; LANES]; 2];
    for l in 0..LANES {
        to_x[l] = c[l] * x[l] - s[l] * y[l];
        to_y[l] = s[l] * x[l] + c[l] * y[l];
    }
    (to_x, to_y)
}

/// Rotates two of the rows of `size` elements, `p` before `q`, if there are any.
#[inline(always)]
fn rotate_rows<T: Real>(
    rows: &mut [Lanes<T>],
    size: usize,
    [p, q]: [usize; 2],
    c: &Lanes<T>,
    s: &Lanes<T>,
) {
    if rows.is_empty() {
        return;
    }
    let (before, after) = rows.split_at_mut(q * size);
    for (x, y) in before[p * size..][..size].iter_mut().zip(&mut after[..size]) {
        (*x, *y) = rotated(x, y, c, s);
    }
}

/// Makes identities.
pub(super) fn identity<T: Real>(v: &mut [Lanes<T>], n: usize) {
    v.fill([T::ZERO; LANES]);
    v.iter_mut().step_by(n + 1).for_each(|x| *x = [T::ONE; LANES]);
}
