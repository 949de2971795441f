//! Bidiagonal form of square matrices: the update by the reflectors of one step and the first product of the next
//! are one pass over the matrix, and the other product is a second.

use super::super::isa::vectorised;
use super::qr::reflector;
use super::real::{LANES, Lanes, Real, dot, sum};

/// Rows that are taken together.
const ROWS: usize = 4;

/// Where the form goes: element `i` of each is of step `i`.
pub(super) struct Form<'w, T> {
    pub(super) d: &'w mut [T],
    /// What is right of the diagonal.
    pub(super) e: &'w mut [T],
    /// The factors of reflectors of columns, and of rows.
    pub(super) tau: [&'w mut [T]; 2],
}

/// Makes a matrix of order `n` upper bidiagonal that is given with its rows and its columns in reverse, in rows of
/// `stride` groups: its last column and row are worked on first. Row `k` of `a` becomes the reflector of that row,
/// of `k` elements, and row `k` of `left` that of column `k`, of `k + 1`; the last element of each is one. `work`
/// is for five rows. Gives whether it has not been stopped.
pub(super) fn reduce<T: Real>(
    a: &mut [Lanes<T>],
    left: &mut [Lanes<T>],
    (n, stride): (usize, usize),
    form: &mut Form<'_, T>,
    work: &mut [Lanes<T>],
    is_stopped: &dyn Fn() -> bool,
) -> bool {
    work.fill([T::ZERO; LANES]);
    let mut rows = work.chunks_exact_mut(stride);
    let [Some(u), Some(y), Some(x), Some(v), Some(next)] = [(); 5].map(|()| rows.next()) else {
        return false;
    };
    for k in (0..n).rev() {
        if is_stopped() {
            return false;
        }
        let i = n - 1 - k;
        let own = &mut left[k * stride..][..stride];
        let a = &mut a[..(k + 1) * stride];
        vectorised(
            #[inline(always)]
            || {
                let last = [&mut *u, &mut *y, &mut *x, &mut *v];
                (form.d[i], form.tau[0][i]) = reflect_column(a, own, (k, stride), &last);
                if k > 0 {
                    let factor = form.tau[0][i];
                    (form.e[i], form.tau[1][i]) =
                        reflect_row(a, own, (k, stride), last, &mut *next, factor);
                }
            },
        );
    }
    true
}

/// The reflector of the last column, brought up to date; gives the element that it leaves, and its factor.
#[inline(always)]
fn reflect_column<T: Real>(
    a: &[Lanes<T>],
    own: &mut [Lanes<T>],
    (k, stride): (usize, usize),
    [u, y, x, v]: &[&mut [Lanes<T>]; 4],
) -> (T, T) {
    let own = own.as_flattened_mut();
    let [u, y, x, v] = [u, y, x, v].map(|lanes| lanes.as_flattened());
    let (by_u, by_x) = (y[k], v[k]);
    let column = a.as_flattened()[k..].iter().step_by(stride * LANES);
    for (to, &from) in own.iter_mut().zip(column).take(k + 1) {
        *to = from;
    }
    for ((to, &u), &x) in own[..=k].iter_mut().zip(u).zip(x) {
        *to -= u * by_u + x * by_x;
    }
    let (below, diagonal) = own[..=k].split_at_mut(k);
    let (beta, tau) = reflector(diagonal[0], below);
    diagonal[0] = T::ONE;
    (beta, tau)
}

/// The reflector of the last row, after that of the last column; gives the element that it leaves, and its factor.
/// The vectors are those of the step before, whose update is done; they become those of this one.
#[inline(always)]
fn reflect_row<T: Real>(
    a: &mut [Lanes<T>],
    own: &[Lanes<T>],
    (k, stride): (usize, usize),
    [u, y, x, v]: [&mut [Lanes<T>]; 4],
    next: &mut [Lanes<T>],
    factor: T,
) -> (T, T) {
    let groups = k.div_ceil(LANES);
    let (own_flat, next) = (own.as_flattened(), &mut next[..groups]);
    update_and_sum(a, stride, [u.as_flattened(), x.as_flattened(), own_flat], [&*y, &*v], next);
    next.iter_mut().flatten().for_each(|y| *y *= factor);
    next.as_flattened_mut()[k..].fill(T::ZERO);
    y.fill([T::ZERO; LANES]);
    y[..groups].copy_from_slice(next);

    let (rows, row) = a.split_at_mut(k * stride);
    let row = &mut row.as_flattened_mut()[..k];
    for (x, &y) in row.iter_mut().zip(y.as_flattened()) {
        *x -= y;
    }
    let (before, last) = row.split_at_mut(k - 1);
    let (beta, tau) = reflector(last[0], before);
    last[0] = T::ONE;
    v.fill([T::ZERO; LANES]);
    v.as_flattened_mut()[..k].copy_from_slice(row);

    let common = dot(&y[..groups], &v[..groups]);
    let products = &mut x.as_flattened_mut()[..k];
    multiply(rows, stride, &v[..groups], products);
    for (x, &u) in products.iter_mut().zip(own_flat) {
        *x = tau * (*x - u * common);
    }
    u.as_flattened_mut()[..k].copy_from_slice(&own_flat[..k]);
    (beta, tau)
}

/// Subtracts `u yᵀ + x vᵀ` from rows, as far as there are groups of `sums`, which become the sums of all rows
/// times their elements of `by`.
#[inline(always)]
fn update_and_sum<T: Real>(
    rows: &mut [Lanes<T>],
    stride: usize,
    [u, x, by]: [&[T]; 3],
    [y, v]: [&[Lanes<T>]; 2],
    sums: &mut [Lanes<T>],
) {
    let groups = sums.len();
    sums.fill([T::ZERO; LANES]);
    let (y, v) = (&y[..groups], &v[..groups]);
    let n = rows.len() / stride;
    let mut blocks = rows.chunks_exact_mut(ROWS * stride);
    for (number, block) in blocks.by_ref().enumerate() {
        let first = number * ROWS;
        let factors: [[T; 3]; ROWS] =
            std::array::from_fn(|i| [u[first + i], x[first + i], by[first + i]]);
        let [[u0, x0, b0], [u1, x1, b1], [u2, x2, b2], [u3, x3, b3]] = factors;
        let (r0, rest) = block.split_at_mut(stride);
        let (r1, rest) = rest.split_at_mut(stride);
        let (r2, r3) = rest.split_at_mut(stride);
        let (r0, r1) = (&mut r0[..groups], &mut r1[..groups]);
        let (r2, r3) = (&mut r2[..groups], &mut r3[..groups]);
        for c in 0..groups {
            let (y, v, sums) = (&y[c], &v[c], &mut sums[c]);
            let (r0, r1, r2, r3) = (&mut r0[c], &mut r1[c], &mut r2[c], &mut r3[c]);
            for l in 0..LANES {
                let a0 = r0[l] - u0 * y[l] - x0 * v[l];
                let a1 = r1[l] - u1 * y[l] - x1 * v[l];
                let a2 = r2[l] - u2 * y[l] - x2 * v[l];
                let a3 = r3[l] - u3 * y[l] - x3 * v[l];
                (r0[l], r1[l], r2[l], r3[l]) = (a0, a1, a2, a3);
                sums[l] += (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3);
            }
        }
    }
    for (number, row) in blocks.into_remainder().chunks_exact_mut(stride).enumerate() {
        let at = n / ROWS * ROWS + number;
        let (by_y, by_v, by) = (u[at], x[at], by[at]);
        for c in 0..groups {
            for l in 0..LANES {
                let a = row[c][l] - by_y * y[c][l] - by_v * v[c][l];
                row[c][l] = a;
                sums[c][l] += a * by;
            }
        }
    }
}

/// Rows times a vector.
#[inline(always)]
fn multiply<T: Real>(rows: &[Lanes<T>], stride: usize, v: &[Lanes<T>], products: &mut [T]) {
    let groups = v.len();
    let mut blocks = rows.chunks_exact(ROWS * stride);
    let (to_blocks, to_rest) = products.as_chunks_mut::<ROWS>();
    for (block, to) in blocks.by_ref().zip(to_blocks) {
        let row = |i: usize| &block[i * stride..][..groups];
        let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
        let [mut s0, mut s1, mut s2, mut s3] = [[T::ZERO; LANES]; ROWS];
        for c in 0..groups {
            let (v, r0, r1, r2, r3) = (&v[c], &r0[c], &r1[c], &r2[c], &r3[c]);
            for l in 0..LANES {
                s0[l] += r0[l] * v[l];
                s1[l] += r1[l] * v[l];
                s2[l] += r2[l] * v[l];
                s3[l] += r3[l] * v[l];
            }
        }
        *to = [s0, s1, s2, s3].map(sum);
    }
    for (row, to) in blocks.remainder().chunks_exact(stride).zip(to_rest) {
        *to = dot(&row[..groups], v);
    }
}
