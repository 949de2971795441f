//! QR factors, and the orthogonal or unitary matrices that their reflectors make: the matrix is taken as
//! panels of columns, each of which is changed by all reflectors of another one at once.

use super::super::bytes::{bytes_of, cast, cast_mut};
use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::super::scratch;
use super::complex::Complex;
use super::panel::{self, ROWS, Row, WIDTH};
use super::real::Real;
use super::side_by_side::{self, MATRICES, MAX_SIZE};
use super::{Field, FieldType, with_field};
use crate::Threads;

/// QR factors of batches of matrices and products of reflectors, in LAPACK's form: a reflector is
/// `h = 1 - tau v adjoint(v)`, where `v` has zeros above the diagonal and a one on it, which are left out.
///
/// All reflectors of a panel together are `1 - v t adjoint(v)` with a triangular matrix `t`, so that
/// other panels are changed by products of matrices.
#[derive(Clone, Debug)]
pub struct Qr {
    ty: FieldType,
    batch: usize,
    m: usize,
    n: usize,
    reflectors: usize,
}

/// Smaller remainders are not worth several threads.
pub(super) const MIN_SHARED: usize = 192;
/// The sums that run side by side.
const LANES: usize = 16;

impl Qr {
    /// A plan for `batch` matrices `m`×`n`, and for so many reflectors of each. `None` if there are more reflectors
    /// than rows or columns, or sizes overflow.
    pub fn new(ty: FieldType, batch: usize, [m, n]: [usize; 2], reflectors: usize) -> Option<Self> {
        let most = m.checked_mul(n.checked_add(3 * WIDTH)?)?;
        isize::try_from(batch.checked_mul(most)?.checked_mul(ty.size())?).ok()?;
        (reflectors <= m.min(n)).then_some(Qr { ty, batch, m, n, reflectors })
    }

    /// Whether matrices are small and many enough to be computed side by side.
    pub fn is_side_by_side(&self) -> bool {
        let is_real = matches!(self.ty, FieldType::F32 | FieldType::F64);
        is_real && side_by_side::are_worth(self.batch, [self.m, self.n])
    }

    /// Writes factors to `to`: `r` to the upper triangle, the reflectors below it; and to `tau` their factors.
    ///
    /// # Panics
    ///
    /// If an array is too short, or is not aligned for its elements.
    pub fn factor(&self, a: &[u8], to: &mut [u8], tau: &mut [u8], threads: Threads<'_>) {
        match self.ty {
            FieldType::F32 if self.is_side_by_side() => {
                let (a, to) = (cast::<f32>(a), cast_mut(to));
                return self.factor_side_by_side(a, to, cast_mut(tau), threads);
            }
            FieldType::F64 if self.is_side_by_side() => {
                let (a, to) = (cast::<f64>(a), cast_mut(to));
                return self.factor_side_by_side(a, to, cast_mut(tau), threads);
            }
            _ => {}
        }
        with_field!(self.ty, T => {
            self.factor_of::<T>(cast(a), cast_mut(to), cast_mut(tau), threads);
        });
    }

    /// Writes the first columns of the product of all reflectors to `to`; there are no more columns than
    /// rows.
    ///
    /// # Panics
    ///
    /// As [`Qr::factor`].
    pub fn product(&self, packed: &[u8], tau: &[u8], to: &mut [u8], threads: Threads<'_>) {
        match self.ty {
            FieldType::F32 if self.is_side_by_side() => {
                let (packed, tau) = (cast::<f32>(packed), cast(tau));
                return self.product_side_by_side(packed, tau, cast_mut(to), threads);
            }
            FieldType::F64 if self.is_side_by_side() => {
                let (packed, tau) = (cast::<f64>(packed), cast(tau));
                return self.product_side_by_side(packed, tau, cast_mut(to), threads);
            }
            _ => {}
        }
        with_field!(self.ty, T => {
            self.product_of::<T>(cast(packed), cast(tau), cast_mut(to), threads);
        });
    }

    fn factor_side_by_side<T: Real>(
        &self,
        a: &[T],
        to: &mut [T],
        tau: &mut [T],
        threads: Threads<'_>,
    ) {
        let Qr { m, n, reflectors, .. } = *self;
        let tau = Disjoint::new(tau);
        let (size, to) = (m * n, &mut to[..self.batch * m * n]);
        side_by_side::for_groups(to, size, size, threads, &|first, to, work| {
            let mut factors = [[T::ZERO; MATRICES]; MAX_SIZE];
            let factors = &mut factors[..reflectors];
            side_by_side::load(&a[first * size..][..to.len()], work);
            side_by_side::qr(work, [m, n], factors);
            side_by_side::store(work, to);
            // SAFETY: each matrix has a number of its own.
            let tau = unsafe { tau.part(first * reflectors, to.len() / size * reflectors) };
            side_by_side::store(factors, tau);
        });
    }

    fn product_side_by_side<T: Real>(
        &self,
        packed: &[T],
        tau: &[T],
        to: &mut [T],
        threads: Threads<'_>,
    ) {
        let Qr { m, n, reflectors, .. } = *self;
        let (size, to) = (m * n, &mut to[..self.batch * m * n]);
        side_by_side::for_groups(to, size, size, threads, &|first, to, work| {
            let mut factors = [[T::ZERO; MATRICES]; MAX_SIZE];
            let factors = &mut factors[..reflectors];
            side_by_side::load(&packed[first * size..][..to.len()], work);
            let count = to.len() / size * reflectors;
            side_by_side::load(&tau[first * reflectors..][..count], factors);
            side_by_side::product(work, [m, n], factors);
            side_by_side::store(work, to);
        });
    }

    fn factor_of<T: Reflecting>(&self, a: &[T], to: &mut [T], tau: &mut [T], threads: Threads<'_>) {
        let Qr { m, n, reflectors, .. } = *self;
        let tau = Disjoint::new(tau);
        self.each(to, threads, &|number, matrix, work, threads| {
            // SAFETY: each matrix has a number of its own.
            let tau = unsafe { tau.part(number * reflectors, reflectors) };
            let Work { panels, v, t, column } = work;
            load(&a[number * m * n..][..m * n], n, panels, m);
            for (number, tau) in tau.chunks_mut(WIDTH).enumerate() {
                if threads.is_stopped() {
                    return;
                }
                let first = number * WIDTH;
                let (own, others) = panels[number * m..].split_at_mut(m);
                let (own, v) = (&mut own[first..], &mut v[..m - first]);
                vectorised(
                    #[inline(always)]
                    || {
                        reflect(own, tau, &mut column[..m - first], n - first <= WIDTH / 2);
                        if !others.is_empty() {
                            unpack(own, v, tau.len());
                            triangle(v, tau, t);
                        }
                    },
                );
                let (v, t) = (&*v, &*t);
                let threads = if v.len() < MIN_SHARED { Threads::single() } else { threads };
                threads.for_chunks(others, m, &|_, panel| {
                    vectorised(
                        #[inline(always)]
                        || apply(v, t, true, tau.len(), &mut panel[first..]),
                    );
                });
            }
            store(panels, m, matrix, n);
        });
    }

    fn product_of<T: Reflecting>(
        &self,
        packed: &[T],
        tau: &[T],
        to: &mut [T],
        threads: Threads<'_>,
    ) {
        let Qr { m, n, reflectors, .. } = *self;
        self.each(to, threads, &|number, matrix, work, threads| {
            let packed = &packed[number * m * n..][..m * n];
            let tau = &tau[number * reflectors..][..reflectors];
            let Work { panels, v, t, .. } = work;
            panels.as_flattened_mut().fill(T::ZERO);
            for (number, panel) in panels.chunks_exact_mut(m).enumerate() {
                let rows = panel.iter_mut().skip(number * WIDTH).take(WIDTH);
                rows.enumerate().for_each(|(i, row)| row[i] = T::ONE);
            }
            for (number, tau) in tau.chunks(WIDTH).enumerate().rev() {
                if threads.is_stopped() {
                    return;
                }
                let first = number * WIDTH;
                let (v, width) = (&mut v[..m - first], tau.len());
                for (v, row) in v.iter_mut().zip(packed.chunks_exact(n).skip(first)) {
                    v[..width].copy_from_slice(&row[first..first + width]);
                }
                vectorised(
                    #[inline(always)]
                    || {
                        clear(v, width);
                        triangle(v, tau, t);
                    },
                );
                let (v, t) = (&*v, &*t);
                let threads = if v.len() < MIN_SHARED { Threads::single() } else { threads };
                // Columns before are still those of ones, which have zeros here.
                threads.for_chunks(&mut panels[number * m..], m, &|_, panel| {
                    vectorised(
                        #[inline(always)]
                        || apply(v, t, false, width, &mut panel[first..]),
                    );
                });
            }
            store(panels, m, matrix, n);
        });
    }

    /// Calls `body` with the number of each matrix, the matrix, and working memory.
    fn each<T: Reflecting>(&self, to: &mut [T], threads: Threads<'_>, body: &Body<'_, T>) {
        let Qr { batch, m, n, .. } = *self;
        let columns = n.div_ceil(WIDTH) * m;
        threads.for_chunks(&mut to[..batch * m * n], m * n, &|number, matrix| {
            // Several matrices are shared out; of one, the panels are.
            let threads = if batch > 1 { Threads::single() } else { threads };
            let rows = columns + m + WIDTH + m.div_ceil(WIDTH);
            scratch::with(rows * WIDTH, |rows: &mut [T]| {
                let (panels, rest) = rows.as_chunks_mut().0.split_at_mut(columns);
                let (v, rest) = rest.split_at_mut(m);
                let (t, rest) = rest.split_at_mut(WIDTH);
                let column = rest.as_flattened_mut();
                if let Some(t) = t.first_chunk_mut() {
                    body(number, matrix, Work { panels, v, t, column }, threads);
                }
            });
        });
    }
}

/// What is done with the number of a matrix, the matrix, working memory and threads.
type Body<'b, T> = dyn Fn(usize, &mut [T], Work<'_, T>, Threads<'_>) + Sync + 'b;

/// A square block.
pub(super) type Block<T> = [Row<T>; WIDTH];

/// Working memory for a matrix.
struct Work<'w, T> {
    /// Its columns in whole panels, each with all rows.
    panels: &'w mut [Row<T>],
    /// Reflectors: as many rows as the matrix has.
    v: &'w mut [Row<T>],
    t: &'w mut Block<T>,
    /// As many elements as it has rows.
    column: &'w mut [T],
}

/// Copies a matrix of `n` columns to panels of `m` rows, with zeros for the columns that it does not have.
fn load<T: Reflecting>(matrix: &[T], n: usize, panels: &mut [Row<T>], m: usize) {
    for (number, panel) in panels.chunks_exact_mut(m).enumerate() {
        let columns = number * WIDTH..n.min((number + 1) * WIDTH);
        for (to, row) in panel.iter_mut().zip(matrix.chunks_exact(n)) {
            to[..columns.len()].copy_from_slice(&row[columns.clone()]);
            to[columns.len()..].fill(T::ZERO);
        }
    }
}

/// The reverse of [`load`].
fn store<T: Reflecting>(panels: &[Row<T>], m: usize, matrix: &mut [T], n: usize) {
    for (number, panel) in panels.chunks_exact(m).enumerate() {
        let columns = number * WIDTH..n.min((number + 1) * WIDTH);
        for (from, row) in panel.iter().zip(matrix.chunks_exact_mut(n)) {
            row[columns.clone()].copy_from_slice(&from[..columns.len()]);
        }
    }
}

/// Makes reflectors of the first columns of a panel, as many as there are factors, and changes those right of
/// them; if it is narrow, its second half holds zeros only. `column` is working memory, of an element for each
/// row.
#[inline(always)]
fn reflect<T: Reflecting>(panel: &mut [Row<T>], tau: &mut [T], column: &mut [T], is_narrow: bool) {
    for (v, row) in column.iter_mut().zip(&*panel) {
        *v = row[0];
    }
    // `column` has a copy of that column which is next, where elements are neighbours.
    for (j, tau) in tau.iter_mut().enumerate() {
        let v = &mut column[j..];
        let (first, rest) = v.split_at_mut(1);
        let beta;
        (beta, *tau) = T::reflector(first[0], rest);
        first[0] = T::ONE;
        let rows = &mut panel[j..];
        match is_narrow {
            true => reflect_rows::<T, { WIDTH / 2 }>(rows, v, *tau, j),
            false => reflect_rows::<T, WIDTH>(rows, v, *tau, j),
        }
        rows[0][j] = beta;
    }
}

/// Applies a reflector's adjoint to the rows of a panel, of which only the first `COLUMNS` are not zero, right of column
/// `j`, which becomes `v`; that becomes the next column.
#[inline(always)]
fn reflect_rows<T: Reflecting, const COLUMNS: usize>(
    rows: &mut [Row<T>],
    v: &mut [T],
    tau: T,
    j: usize,
) {
    let mut sums = [T::ZERO; WIDTH];
    let (groups, rest) = rows.as_chunks::<ROWS>();
    let (of_groups, of_rest) = v.as_chunks::<ROWS>();
    for ([r0, r1, r2, r3], v) in groups.iter().zip(of_groups) {
        let [v0, v1, v2, v3] = v.map(T::conj);
        for c in 0..COLUMNS {
            sums[c] = sums[c] + ((v0 * r0[c] + v1 * r1[c]) + (v2 * r2[c] + v3 * r3[c]));
        }
    }
    for (row, v) in rest.iter().zip(of_rest) {
        let v = v.conj();
        for c in 0..COLUMNS {
            sums[c] = sums[c] + v * row[c];
        }
    }
    let w = sums.map(|sum| tau.conj() * sum);
    panel::subtract_outer(rows, v, &w, j);
}

/// Numbers of which reflectors are made.
pub(super) trait Reflecting: Field {
    /// The reflector whose adjoint makes the column `alpha`, `x` the column `beta`, zeros, where `beta` is real:
    /// gives `beta` and `tau`, and makes `x` the rest of `v`.
    fn reflector(alpha: Self, x: &mut [Self]) -> (Self, Self);
}

macro_rules! reflecting {
    ($($part:ident)*) => { $(
        impl Reflecting for $part {
            #[inline(always)]
            fn reflector(alpha: Self, x: &mut [Self]) -> (Self, Self) {
                reflector(alpha, x)
            }
        }

        impl Reflecting for Complex<$part> {
            fn reflector(alpha: Self, x: &mut [Self]) -> (Self, Self) {
                let length = norm::<$part>(cast(bytes_of(x)));
                if length == 0.0 && alpha.im == 0.0 {
                    return (alpha, Self::ZERO);
                }
                let least = $part::LEAST / <$part as Real>::EPSILON;
                // Not if it is NaN.
                let part = alpha.re.abs().max(alpha.im.abs());
                if part < least && length < least {
                    // As for real numbers: small ones are made larger.
                    let up = Complex { re: 1.0 / least, im: 0.0 };
                    x.iter_mut().for_each(|v| *v = *v * up);
                    let (beta, tau) = Self::reflector(alpha * up, x);
                    return (Complex { re: beta.re * least, im: 0.0 }, tau);
                }
                let most = alpha.re.abs().max(alpha.im.abs()).max(length);
                let [re, im, rest] = [alpha.re, alpha.im, length].map(|x| x / most);
                let length = most * (re * re + im * im + rest * rest).sqrt();
                let beta = if alpha.re.is_sign_negative() { length } else { -length };
                let tau = Complex { re: (beta - alpha.re) / beta, im: -alpha.im / beta };
                let below = alpha - Complex { re: beta, im: 0.0 };
                let by = Self::ONE / below;
                x.iter_mut().for_each(|v| *v = *v * by);
                (Complex { re: beta, im: 0.0 }, tau)
            }
        }
    )* };
}

reflecting!(f32 f64);

/// The reflector that makes the column `alpha`, `x` the column `beta`, zeros: gives `beta` and `tau`, and makes
/// `x` the rest of `v`.
#[inline(always)]
pub(super) fn reflector<T: Real>(alpha: T, x: &mut [T]) -> (T, T) {
    let length = norm(x);
    if length == T::ZERO {
        return (alpha, T::ZERO);
    }
    // Squares may leave the range: those of quotients by the larger one do not.
    let large = if alpha.size() > length { alpha.size() } else { length };
    if large < T::LEAST / T::EPSILON {
        // Results would have few digits: `x` is made larger, which is exact.
        let up = T::EPSILON / T::LEAST;
        x.iter_mut().for_each(|v| *v *= up);
        let (beta, tau) = reflector_of(alpha * up, x, norm(x));
        return (beta / up, tau);
    }
    reflector_of(alpha, x, length)
}

/// The same for `x` of a length that is known, when the result is no small number.
#[inline(always)]
fn reflector_of<T: Real>(alpha: T, x: &mut [T], length: T) -> (T, T) {
    let large = if alpha.size() > length { alpha.size() } else { length };
    let (a, b) = (alpha / large, length / large);
    let length = large * (a * a + b * b).sqrt();
    // A sum that does not cancel.
    let beta = if alpha.is_negative() { length } else { T::ZERO - length };
    let tau = (beta - alpha) / beta;
    let below = alpha - beta;
    if below.size() > T::LEAST / T::EPSILON {
        let inverse = T::ONE / below;
        x.iter_mut().for_each(|v| *v *= inverse);
    } else {
        x.iter_mut().for_each(|v| *v = *v / below);
    }
    (beta, tau)
}

/// The Euclidean norm, without overflow or underflow on the way.
#[inline(always)]
fn norm<T: Real>(x: &[T]) -> T {
    let sum = sum_of_squares(x);
    // Not if it is infinite or NaN.
    if sum > T::LEAST / T::EPSILON && sum.is_finite() {
        return sum.sqrt();
    }
    let mut most = T::ZERO;
    for v in x {
        most = if v.size() > most || !v.is_finite() { v.size() } else { most };
        if !most.is_finite() {
            return most;
        }
    }
    if most == T::ZERO {
        return most;
    }
    let mut sum = T::ZERO;
    for &v in x {
        let quotient = v / most;
        sum += quotient * quotient;
    }
    most * sum.sqrt()
}

#[inline(always)]
fn sum_of_squares<T: Real>(x: &[T]) -> T {
    let (groups, rest) = x.as_chunks::<{ 4 * LANES }>();
    let mut sums = [T::ZERO; LANES];
    for group in groups {
        for lane in 0..LANES {
            let [a, b, c, d] = [0, 1, 2, 3].map(|part| group[part * LANES + lane]);
            sums[lane] += (a * a + b * b) + (c * c + d * d);
        }
    }
    let sums = sums.into_iter().chain(rest.iter().map(|&v| v * v));
    sums.fold(T::ZERO, |sum, v| sum + v)
}

/// Copies the reflectors of a panel, with what is left out of them.
#[inline(always)]
fn unpack<T: Reflecting>(panel: &[Row<T>], v: &mut [Row<T>], width: usize) {
    v.copy_from_slice(panel);
    clear(v, width);
}

/// Writes what reflectors have above and on the diagonal, and zeros for those that are not there.
#[inline(always)]
pub(super) fn clear<T: Reflecting>(v: &mut [Row<T>], width: usize) {
    for (i, row) in v.iter_mut().enumerate() {
        row[width.min(i)..].fill(T::ZERO);
        if i < width {
            row[i] = T::ONE;
        }
    }
}

/// Writes the triangular matrix by which the product of these reflectors is `1 - v t adjoint(v)`.
#[inline(always)]
pub(super) fn triangle<T: Reflecting>(v: &[Row<T>], tau: &[T], t: &mut Block<T>) {
    let mut products = [[T::ZERO; WIDTH]; WIDTH];
    subtract_from_all(v, tau.len(), v, &mut products);
    *t = [[T::ZERO; WIDTH]; WIDTH];
    for (j, &tau) in tau.iter().enumerate() {
        let mut column = [T::ZERO; WIDTH];
        for l in 0..j {
            // These are the products with the other sign.
            let factor = tau * products[l][j];
            for (i, sum) in column[..=l].iter_mut().enumerate() {
                *sum = *sum + t[i][l] * factor;
            }
        }
        for (row, v) in t.iter_mut().zip(column) {
            row[j] = v;
        }
        t[j][j] = tau;
    }
}

/// `sums -= adjoint(v) rows`, for the first columns of `v`.
#[inline(always)]
fn subtract_from_all<T: Reflecting>(
    v: &[Row<T>],
    width: usize,
    rows: &[Row<T>],
    sums: &mut Block<T>,
) {
    let v = &v[..rows.len()];
    let (groups, _) = sums.as_chunks_mut::<ROWS>();
    for (group, sums) in groups.iter_mut().enumerate().take(width.div_ceil(ROWS)) {
        panel::subtract_product(sums, rows, |r, i| v[i][group * ROWS + r].conj());
    }
}

/// Applies reflectors, or the adjoint of their product, to a panel.
#[inline(always)]
pub(super) fn apply<T: Reflecting>(
    v: &[Row<T>],
    t: &Block<T>,
    transposed: bool,
    width: usize,
    panel: &mut [Row<T>],
) {
    let mut products = [[T::ZERO; WIDTH]; WIDTH];
    subtract_from_all(v, width, panel, &mut products);
    // Their sign and that of this product cancel.
    let mut factors = [[T::ZERO; WIDTH]; WIDTH];
    let (groups, _) = factors.as_chunks_mut::<ROWS>();
    for (group, sums) in groups.iter_mut().enumerate().take(width.div_ceil(ROWS)) {
        let at = group * ROWS;
        match transposed {
            true => {
                panel::subtract_product(sums, &products[..width], |r, p| t[p][at + r].conj());
            }
            false => panel::subtract_product(sums, &products[..width], |r, p| t[at + r][p]),
        }
    }
    let factors = &factors[..width];
    let (groups, rest) = panel.as_chunks_mut::<ROWS>();
    let (of_groups, of_rest) = v.as_chunks::<ROWS>();
    for (group, v) in groups.iter_mut().zip(of_groups) {
        panel::subtract_product(group, factors, |r, p| v[r][p]);
    }
    for (row, v) in rest.iter_mut().zip(of_rest) {
        for (factors, &v) in factors.iter().zip(v) {
            for (sum, &factor) in row.iter_mut().zip(factors) {
                *sum = *sum - v * factor;
            }
        }
    }
}
