//! Tridiagonal form of symmetric matrices: the update by one reflector and the product that the next one
//! needs are one pass over the matrix.

use super::super::isa::vectorised;
use super::qr::reflector;
use super::real::{LANES, Lanes, Real, dot, sum};

/// Rows that are taken together.
const ROWS: usize = 4;

/// Where the form goes: the diagonal, what is beside it, and the factors of reflectors.
pub(super) struct Form<'w, T> {
    /// The diagonal, of the matrix at first.
    pub(super) d: &'w mut [T],
    /// Element `i` is between `d[i]` and `d[i + 1]`.
    pub(super) e: &'w mut [T],
    /// That of row `n - 1` comes first, and there is none for row 0.
    pub(super) tau: &'w mut [T],
}

/// Makes a symmetric matrix of order `n` tridiagonal, from its last row on. Of `a`, whose rows are `stride`
/// groups, only what is below the diagonal is looked at; there must be zeros elsewhere. Row `k` becomes the
/// reflector that made its first elements zeros, of `k` elements, the last of which is one. `work` is for three
/// rows. Gives whether it has not been stopped.
pub(super) fn reduce<T: Real>(
    a: &mut [Lanes<T>],
    (n, stride): (usize, usize),
    form: &mut Form<'_, T>,
    work: &mut [Lanes<T>],
    is_stopped: &dyn Fn() -> bool,
) -> bool {
    work.fill([T::ZERO; LANES]);
    let (v, rest) = work.split_at_mut(stride);
    let (w, y) = rest.split_at_mut(stride);
    for k in (1..n).rev() {
        if is_stopped() {
            return false;
        }
        let (above, row) = a.split_at_mut(k * stride);
        let tau = &mut form.tau[n - 1 - k];
        let (d, beside) = (&mut *form.d, &mut form.e[k - 1]);
        vectorised(
            #[inline(always)]
            || {
                step(
                    above,
                    &mut row[..stride],
                    [&mut *v, &mut *w, &mut y[..stride]],
                    d,
                    beside,
                    tau,
                )
            },
        );
    }
    true
}

/// One step: the reflector of row `k`, where `above` are the rows before it. The reflector `v` and `w` are of
/// the step before, whose update of the matrix by `v wᵀ + w vᵀ` is yet to be done; these become those of this
/// one.
#[inline(always)]
fn step<T: Real>(
    above: &mut [Lanes<T>],
    row: &mut [Lanes<T>],
    [v, w, y]: [&mut [Lanes<T>]; 3],
    d: &mut [T],
    beside: &mut T,
    tau: &mut T,
) {
    let stride = row.len();
    let k = above.len() / stride;
    let groups = k.div_ceil(LANES);
    {
        let (v, w) = (v.as_flattened(), w.as_flattened());
        for ((d, &v), &w) in d[..=k].iter_mut().zip(v).zip(w) {
            *d -= v * w + v * w;
        }
        let (by_w, by_v) = (v[k], w[k]);
        let row = &mut row.as_flattened_mut()[..k];
        for ((x, &v), &w) in row.iter_mut().zip(v).zip(w) {
            *x -= by_w * w + by_v * v;
        }
        let (x, last) = row.split_at_mut(k - 1);
        (*beside, *tau) = reflector(last[0], x);
        last[0] = T::ONE;
    }
    let next = &row[..groups];
    let (v, w, y) = (&mut v[..groups], &mut w[..groups], &mut y[..groups]);
    update_and_multiply(above, stride, [&*v, &*w, next], y);
    let next_flat = next.as_flattened();
    let y_flat = &mut y.as_flattened_mut()[..k];
    for ((y, &x), &d) in y_flat.iter_mut().zip(next_flat).zip(&*d) {
        *y += d * x;
    }
    let factor = *tau * *tau * T::of(-0.5) * dot(y, next);
    for ((w, y), next) in w.iter_mut().zip(&*y).zip(next) {
        for lane in 0..LANES {
            w[lane] = *tau * y[lane] + factor * next[lane];
        }
    }
    v.copy_from_slice(next);
    // What is beyond belongs to no row.
    w.as_flattened_mut()[k..].fill(T::ZERO);
}

/// Subtracts `v wᵀ + w vᵀ` below the diagonal, and multiplies what comes of it, and of the same above, with
/// `x`.
#[inline(always)]
fn update_and_multiply<T: Real>(
    rows: &mut [Lanes<T>],
    stride: usize,
    [v, w, x]: [&[Lanes<T>]; 3],
    y: &mut [Lanes<T>],
) {
    y.fill([T::ZERO; LANES]);
    let n = rows.len() / stride;
    let of = |lanes: &[Lanes<T>], row: usize| lanes[row / LANES][row % LANES];
    let mut blocks = rows.chunks_exact_mut(ROWS * stride);
    for (number, block) in blocks.by_ref().enumerate() {
        let first = number * ROWS;
        let full = first / LANES;
        let factors: [[T; 3]; ROWS] =
            std::array::from_fn(|i| [of(v, first + i), of(w, first + i), of(x, first + i)]);
        let [[v0, w0, x0], [v1, w1, x1], [v2, w2, x2], [v3, w3, x3]] = factors;
        let (r0, rest) = block.split_at_mut(stride);
        let (r1, rest) = rest.split_at_mut(stride);
        let (r2, r3) = rest.split_at_mut(stride);
        let [mut s0, mut s1, mut s2, mut s3] = [[T::ZERO; LANES]; ROWS];
        let (r0, r1, r2, r3) =
            (&mut r0[..=full], &mut r1[..=full], &mut r2[..=full], &mut r3[..=full]);
        let (v, w, x, y) = (&v[..=full], &w[..=full], &x[..=full], &mut y[..=full]);
        for c in 0..full {
            let (v, w, x, y) = (&v[c], &w[c], &x[c], &mut y[c]);
            let (r0, r1, r2, r3) = (&mut r0[c], &mut r1[c], &mut r2[c], &mut r3[c]);
            for l in 0..LANES {
                let a0 = r0[l] - v0 * w[l] - w0 * v[l];
                let a1 = r1[l] - v1 * w[l] - w1 * v[l];
                let a2 = r2[l] - v2 * w[l] - w2 * v[l];
                let a3 = r3[l] - v3 * w[l] - w3 * v[l];
                (r0[l], r1[l], r2[l], r3[l]) = (a0, a1, a2, a3);
                s0[l] += a0 * x[l];
                s1[l] += a1 * x[l];
                s2[l] += a2 * x[l];
                s3[l] += a3 * x[l];
                y[l] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3);
            }
        }
        // The group that the diagonal goes through: zeros from there on.
        let (v, w, x, y_last) = (&v[full], &w[full], &x[full], &mut y[full]);
        let (r0, r1, r2, r3) = (&mut r0[full], &mut r1[full], &mut r2[full], &mut r3[full]);
        let below = first - full * LANES;
        for l in 0..LANES {
            let only = |is_below: bool, a: T| if is_below { a } else { T::ZERO };
            let a0 = only(l < below, r0[l] - v0 * w[l] - w0 * v[l]);
            let a1 = only(l < below + 1, r1[l] - v1 * w[l] - w1 * v[l]);
            let a2 = only(l < below + 2, r2[l] - v2 * w[l] - w2 * v[l]);
            let a3 = only(l < below + 3, r3[l] - v3 * w[l] - w3 * v[l]);
            (r0[l], r1[l], r2[l], r3[l]) = (a0, a1, a2, a3);
            s0[l] += a0 * x[l];
            s1[l] += a1 * x[l];
            s2[l] += a2 * x[l];
            s3[l] += a3 * x[l];
            y_last[l] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3);
        }
        let sums = [s0, s1, s2, s3].map(sum);
        let y_last = &mut y_last[below..below + ROWS];
        y_last.iter_mut().zip(sums).for_each(|(y, sum)| *y += sum);
    }
    for (number, row) in blocks.into_remainder().chunks_exact_mut(stride).enumerate() {
        let at = n / ROWS * ROWS + number;
        let [by_w, by_v, by_x] = [of(v, at), of(w, at), of(x, at)];
        let row = &mut row.as_flattened_mut()[..at];
        let (v, w, x) = (v.as_flattened(), w.as_flattened(), x.as_flattened());
        let y = y.as_flattened_mut();
        let mut sum = T::ZERO;
        for i in 0..at {
            let a = row[i] - by_w * w[i] - by_v * v[i];
            row[i] = a;
            sum += a * x[i];
            y[i] += a * by_x;
        }
        y[at] += sum;
    }
}
