//! Schur's form of real Hessenberg matrices: QR steps with two implicit shifts.

use crate::reflector::reflector;
use crate::rotations::rotate;
use crate::run::Run;
use crate::scalar::Real;
use crate::two_by_two::standard;
use crate::vector::two_columns;

/// A real Hessenberg matrix on its way to Schur's form.
pub(crate) struct RealSchur<'m, R> {
    pub(crate) order: usize,
    pub(crate) h: &'m mut [R],
    /// Changed as `h` is from the right.
    pub(crate) z: Option<&'m mut [R]>,
    /// Whether all of the form is wanted, or eigenvalues alone.
    pub(crate) is_form_wanted: bool,
}

/// After how many steps without success a shift is made up.
const EXCEPTION: usize = 10;

impl<R: Real> RealSchur<'_, R> {
    fn at(&self, i: usize, j: usize) -> R {
        self.h[i + j * self.order]
    }

    fn at_mut(&mut self, i: usize, j: usize) -> &mut R {
        &mut self.h[i + j * self.order]
    }

    /// Works on rows and columns `low..high`, outside of which the matrix is triangular, and writes the
    /// eigenvalues, real parts and imaginary parts. Gives 0, or the number of eigenvalues up to which none
    /// was found.
    pub(crate) fn iterate(
        &mut self,
        run: &dyn Run,
        low: usize,
        high: usize,
        values: (&mut [R], &mut [R]),
    ) -> i32 {
        let zero = R::default();
        let (re, im) = values;
        for i in (0..low).chain(high..self.order) {
            (re[i], im[i]) = (self.at(i, i), zero);
        }
        for j in low..high {
            for i in j + 2..high {
                *self.at_mut(i, j) = zero;
            }
        }
        let most = 30 * (high - low).max(10);
        let mut open = high;
        while open > low {
            let i = open - 1;
            let (mut found, mut failures) = (None, 0);
            for _ in 0..=most {
                if run.is_stopped() {
                    return 0;
                }
                let l = self.block_start(low, high, i);
                if l > low {
                    *self.at_mut(l, l - 1) = zero;
                }
                if l + 1 >= i {
                    found = Some(l);
                    break;
                }
                failures += 1;
                let columns = if self.is_form_wanted { 0..self.order } else { l..i + 1 };
                let shifts = self.shifts(l, i, failures);
                self.step(l, i, columns, shifts);
            }
            let Some(l) = found else { return i32::try_from(open).unwrap_or(i32::MAX) };
            if l == i {
                (re[i], im[i]) = (self.at(i, i), zero);
            } else {
                let pair = self.finish_pair(i);
                ((re[i - 1], im[i - 1]), (re[i], im[i])) = (pair[0], pair[1]);
            }
            open = l;
        }
        0
    }

    /// Where the block that ends with row `i` begins: below a negligible element.
    fn block_start(&self, low: usize, high: usize, i: usize) -> usize {
        let ulp = R::EPS + R::EPS;
        let small = R::SAFE_MIN * (R::of((high - low) as f64) / ulp);
        for k in (low + 1..=i).rev() {
            let below = self.at(k, k - 1).abs();
            if below <= small {
                return k;
            }
            let mut sum = self.at(k - 1, k - 1).abs() + self.at(k, k).abs();
            if sum == R::default() {
                if k >= low + 2 {
                    sum += self.at(k - 1, k - 2).abs();
                }
                if k + 1 < high {
                    sum += self.at(k + 1, k).abs();
                }
            }
            if below <= ulp * sum {
                let above = self.at(k - 1, k).abs();
                let (ab, ba) = (below.max(above), below.min(above));
                let last = self.at(k, k).abs();
                let difference = (self.at(k - 1, k - 1) - self.at(k, k)).abs();
                let (aa, bb) = (last.max(difference), last.min(difference));
                let s = aa + ab;
                if ba * (ab / s) <= small.max(ulp * (bb * (aa / s))) {
                    return k;
                }
            }
        }
        low
    }

    /// The two shifts, as real and imaginary parts.
    fn shifts(&self, l: usize, i: usize, failures: usize) -> [(R, R); 2] {
        let (zero, half) = (R::default(), R::of(0.5));
        let made_up = |s: R, corner: R| {
            (R::of(0.75) * s + corner, R::of(-0.4375) * s, s, R::of(0.75) * s + corner)
        };
        let (h11, h12, h21, h22) = if failures.is_multiple_of(2 * EXCEPTION) {
            let s = self.at(i, i - 1).abs() + self.at(i - 1, i - 2).abs();
            made_up(s, self.at(i, i))
        } else if failures.is_multiple_of(EXCEPTION) {
            let s = self.at(l + 1, l).abs() + self.at(l + 2, l + 1).abs();
            made_up(s, self.at(l, l))
        } else {
            (self.at(i - 1, i - 1), self.at(i - 1, i), self.at(i, i - 1), self.at(i, i))
        };
        let s = h11.abs() + h12.abs() + h21.abs() + h22.abs();
        if s == zero {
            return [(zero, zero); 2];
        }
        let (h11, h12, h21, h22) = (h11 / s, h12 / s, h21 / s, h22 / s);
        let mean = (h11 + h22) * half;
        let determinant = (h11 - mean) * (h22 - mean) - h12 * h21;
        let root = determinant.abs().sqrt();
        if determinant >= zero {
            return [(mean * s, root * s), (mean * s, -root * s)];
        }
        let (first, second) = (mean + root, mean - root);
        let nearer = if (first - h22).abs() <= (second - h22).abs() { first } else { second };
        [(nearer * s, zero); 2]
    }

    /// The first column of the product of the two shifted matrices, for the block that begins with row
    /// `m`.
    fn first_column(&self, m: usize, shifts: [(R, R); 2]) -> [R; 3] {
        let [(re1, im1), (re2, im2)] = shifts;
        let (a, below) = (self.at(m, m), self.at(m + 1, m));
        let s = (a - re2).abs() + im2.abs() + below.abs();
        let below = below / s;
        let v = [
            below * self.at(m, m + 1) + (a - re1) * ((a - re2) / s) - im1 * (im2 / s),
            below * (a + self.at(m + 1, m + 1) - re1 - re2),
            below * self.at(m + 2, m + 1),
        ];
        let s = v[0].abs() + v[1].abs() + v[2].abs();
        v.map(|v| v / s)
    }

    /// One step on rows `l..=i`.
    fn step(&mut self, l: usize, i: usize, columns: std::ops::Range<usize>, shifts: [(R, R); 2]) {
        let ulp = R::EPS + R::EPS;
        let mut m = i - 2;
        let mut v = self.first_column(m, shifts);
        while m > l {
            let beside =
                self.at(m - 1, m - 1).abs() + self.at(m, m).abs() + self.at(m + 1, m + 1).abs();
            if self.at(m, m - 1).abs() * (v[1].abs() + v[2].abs()) <= ulp * v[0].abs() * beside {
                break;
            }
            m -= 1;
            v = self.first_column(m, shifts);
        }
        for k in m..i {
            let count = (i - k + 1).min(3);
            if k > m {
                for (n, v) in v.iter_mut().enumerate().take(count) {
                    *v = self.at(k + n, k - 1);
                }
            }
            let (head, tail) = v[..count].split_at_mut(1);
            let (beta, tau) = reflector(head[0], tail);
            if k > m {
                *self.at_mut(k, k - 1) = beta;
                *self.at_mut(k + 1, k - 1) = R::default();
                if k + 1 < i {
                    *self.at_mut(k + 2, k - 1) = R::default();
                }
            } else if m > l {
                // The reflector may have made β = −α.
                let scaled = self.at(k, k - 1) * (R::of(1.0) - tau);
                *self.at_mut(k, k - 1) = scaled;
            }
            let v = [v[1], if count == 3 { v[2] } else { R::default() }];
            self.reflect(k, count, tau, v, i, &columns);
        }
    }

    /// Applies the reflector of rows `k..k + count` from both sides.
    fn reflect(
        &mut self,
        k: usize,
        count: usize,
        tau: R,
        v: [R; 2],
        i: usize,
        columns: &std::ops::Range<usize>,
    ) {
        let n = self.order;
        let (v1, v2) = (v[0], v[1]);
        let (t1, t2, t3) = (tau, tau * v1, tau * v2);
        for column in self.h.chunks_mut(n).take(columns.end).skip(k) {
            let x = &mut column[k..k + count];
            if count == 3 {
                let sum = x[0] + v1 * x[1] + v2 * x[2];
                x[0] -= sum * t1;
                x[1] -= sum * t2;
                x[2] -= sum * t3;
            } else {
                let sum = x[0] + v1 * x[1];
                x[0] -= sum * t1;
                x[1] -= sum * t2;
            }
        }
        let rows = columns.start..(k + 4).min(i + 1);
        reflect_columns(self.h, n, k, count, rows, [v1, v2], [t1, t2, t3]);
        if let Some(z) = self.z.as_deref_mut() {
            reflect_columns(z, n, k, count, 0..n, [v1, v2], [t1, t2, t3]);
        }
    }

    /// Brings the 2×2 block that ends with row `i` into standard form; gives its eigenvalues.
    fn finish_pair(&mut self, i: usize) -> [(R, R); 2] {
        let n = self.order;
        let block =
            standard(self.at(i - 1, i - 1), self.at(i - 1, i), self.at(i, i - 1), self.at(i, i));
        let (c, s) = (block.cos, block.sin);
        if self.is_form_wanted {
            for column in self.h.chunks_mut(n).skip(i + 1) {
                let (x, y) = (column[i - 1], column[i]);
                column[i - 1] = c * x + s * y;
                column[i] = c * y - s * x;
            }
            let (x, y) = two_columns(self.h, n, i - 1, i);
            rotate(&mut x[..i - 1], &mut y[..i - 1], c, s);
        }
        if let Some(z) = self.z.as_deref_mut() {
            let (x, y) = two_columns(z, n, i - 1, i);
            rotate(x, y, c, s);
        }
        let [a, b, below, d] = block.form;
        *self.at_mut(i - 1, i - 1) = a;
        *self.at_mut(i - 1, i) = b;
        *self.at_mut(i, i - 1) = below;
        *self.at_mut(i, i) = d;
        block.values
    }
}

/// Applies a reflector of two or three columns from `k` on to some rows.
fn reflect_columns<R: Real>(
    a: &mut [R],
    n: usize,
    k: usize,
    count: usize,
    rows: std::ops::Range<usize>,
    v: [R; 2],
    t: [R; 3],
) {
    let (left, rest) = a[k * n..].split_at_mut(n);
    let x = &mut left[rows.clone()];
    if count == 3 {
        let (middle, right) = rest.split_at_mut(n);
        let (y, z) = (&mut middle[rows.clone()], &mut right[rows]);
        for ((x, y), z) in x.iter_mut().zip(y).zip(z) {
            let sum = *x + v[0] * *y + v[1] * *z;
            *x -= sum * t[0];
            *y -= sum * t[1];
            *z -= sum * t[2];
        }
    } else {
        for (x, y) in x.iter_mut().zip(&mut rest[rows]) {
            let sum = *x + v[0] * *y;
            *x -= sum * t[0];
            *y -= sum * t[1];
        }
    }
}
