//! Batches of small matrices, side by side: each lane of a vector holds an element of another matrix.
//!
//! A small matrix by itself leaves most lanes of a vector empty, and what is decided about it takes longer than
//! its arithmetic. Rows are exchanged, and signs chosen, in each lane for itself.

use super::super::bytes::Plain;
use super::super::isa::vectorised;
use super::super::scratch;
use super::Field;
use super::complex::Complex;
use super::qr::reflector;
use super::real::{LANES, Lanes, Real};
use crate::Threads;

/// Matrices that are computed at once.
pub(super) const MATRICES: usize = LANES;

/// The most rows and columns: of more, a matrix by itself fills vectors.
pub(super) const MAX_SIZE: usize = 16;

/// Whether matrices in batches of so many, with so many rows and columns, are best computed side by side.
pub(super) fn are_worth(batch: usize, sizes: [usize; 2]) -> bool {
    batch >= MATRICES && sizes.iter().all(|size| (1..=MAX_SIZE).contains(size))
}

/// A number of each of [`MATRICES`] matrices.
pub(super) trait Packed<T>: Plain {
    fn get(&self, lane: usize) -> T;
    fn set(&mut self, lane: usize, number: T);
}

impl<T: Plain> Packed<T> for Lanes<T> {
    #[inline(always)]
    fn get(&self, lane: usize) -> T {
        self[lane]
    }
    #[inline(always)]
    fn set(&mut self, lane: usize, number: T) {
        self[lane] = number;
    }
}

/// The arithmetic of numbers side by side, in each lane for itself.
pub(super) trait Side<T: Field>: Packed<T> {
    /// The same number in all lanes.
    fn all(number: T) -> Self;
    /// The sizes of the numbers ([`Field::size`]).
    fn sizes(&self) -> Lanes<T::Real>;
    fn conj(self) -> Self;
    /// `self * b`
    fn times(self, b: Self) -> Self;
    /// `self / b`
    fn over(self, b: Self) -> Self;
    /// `self - b * c`
    fn less_product(self, b: Self, c: Self) -> Self;
    /// `a` in these lanes, else `b`.
    fn chosen(lanes: &Lanes<bool>, a: Self, b: Self) -> Self;
}

/// Complex numbers, their parts apart.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Parts<R> {
    re: Lanes<R>,
    im: Lanes<R>,
}

// SAFETY: two arrays without padding between or behind them, for which any bits are a value.
unsafe impl<R: Plain> Plain for Parts<R> {}

macro_rules! sides {
    ($($real:ident)*) => { $(
        impl Side<$real> for Lanes<$real> {
            #[inline(always)]
            fn all(number: $real) -> Self {
                [number; MATRICES]
            }
            #[inline(always)]
            fn sizes(&self) -> Lanes<$real> {
                self.map(|v| v.size())
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                zipped(self, b, |a, b| a * b)
            }
            #[inline(always)]
            fn over(self, b: Self) -> Self {
                zipped(self, b, |a, b| a / b)
            }
            #[inline(always)]
            fn less_product(self, b: Self, c: Self) -> Self {
                less_product(self, b, c)
            }
            #[inline(always)]
            fn chosen(lanes: &Lanes<bool>, a: Self, b: Self) -> Self {
                std::array::from_fn(|lane| if lanes[lane] { a[lane] } else { b[lane] })
            }
        }

        impl Packed<Complex<$real>> for Parts<$real> {
            #[inline(always)]
            fn get(&self, lane: usize) -> Complex<$real> {
                Complex { re: self.re[lane], im: self.im[lane] }
            }
            #[inline(always)]
            fn set(&mut self, lane: usize, number: Complex<$real>) {
                (self.re[lane], self.im[lane]) = (number.re, number.im);
            }
        }

        impl Side<Complex<$real>> for Parts<$real> {
            #[inline(always)]
            fn all(number: Complex<$real>) -> Self {
                Parts { re: [number.re; MATRICES], im: [number.im; MATRICES] }
            }
            #[inline(always)]
            fn sizes(&self) -> Lanes<$real> {
                zipped(self.re, self.im, |re, im| Complex { re, im }.size())
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Parts { re: self.re, im: self.im.map(|im| -im) }
            }
            #[inline(always)]
            fn times(self, b: Self) -> Self {
                let (x, y) = (&self, &b);
                Parts {
                    re: std::array::from_fn(|i| x.re[i] * y.re[i] - x.im[i] * y.im[i]),
                    im: std::array::from_fn(|i| x.re[i] * y.im[i] + x.im[i] * y.re[i]),
                }
            }
            #[inline(always)]
            fn over(self, b: Self) -> Self {
                let mut quotient = self;
                for lane in 0..MATRICES {
                    quotient.set(lane, self.get(lane) / b.get(lane));
                }
                quotient
            }
            #[inline(always)]
            fn less_product(self, b: Self, c: Self) -> Self {
                let (x, y, z) = (&self, &b, &c);
                Parts {
                    re: std::array::from_fn(|i| x.re[i] - (y.re[i] * z.re[i] - y.im[i] * z.im[i])),
                    im: std::array::from_fn(|i| x.im[i] - (y.re[i] * z.im[i] + y.im[i] * z.re[i])),
                }
            }
            #[inline(always)]
            fn chosen(lanes: &Lanes<bool>, a: Self, b: Self) -> Self {
                Parts {
                    re: Side::chosen(lanes, a.re, b.re),
                    im: Side::chosen(lanes, a.im, b.im),
                }
            }
        }
    )* };
}

sides!(f32 f64);

/// What is done with the number of a group's first matrix, the group's part of an array, and working memory.
pub(super) type GroupBody<'b, T, P> = dyn Fn(usize, &mut [T], &mut [P]) + Sync + 'b;

/// Calls `body` for groups of matrices of `to`, which have `size` elements each, with working memory for
/// `work` elements of each.
pub(super) fn for_groups<T: Plain, P: Packed<T>>(
    to: &mut [T],
    size: usize,
    work: usize,
    threads: Threads<'_>,
    body: &GroupBody<'_, T, P>,
) {
    threads.for_chunks(to, MATRICES * size, &|group, to| {
        scratch::with(work, |work: &mut [P]| body(group * MATRICES, to, work));
    });
}

/// Lays out matrices of as many elements as `to` has; where there are fewer than lanes, the last again.
pub(super) fn load<T: Plain, P: Packed<T>>(from: &[T], to: &mut [P]) {
    let size = to.len();
    let last = from.len() / size - 1;
    for lane in 0..MATRICES {
        let matrix = &from[lane.min(last) * size..][..size];
        for (to, &v) in to.iter_mut().zip(matrix) {
            to.set(lane, v);
        }
    }
}

/// The reverse of [`load`], of the lanes that have a place.
pub(super) fn store<T: Plain, P: Packed<T>>(from: &[P], to: &mut [T]) {
    for (lane, matrix) in to.chunks_exact_mut(from.len()).enumerate() {
        for (v, lanes) in matrix.iter_mut().zip(from) {
            *v = lanes.get(lane);
        }
    }
}

/// `f` of the lanes of two vectors.
#[inline(always)]
pub(super) fn zipped<T: Copy, R>(a: Lanes<T>, b: Lanes<T>, f: impl Fn(T, T) -> R) -> Lanes<R> {
    std::array::from_fn(|lane| f(a[lane], b[lane]))
}

/// `a - b * c`, in each lane.
#[inline(always)]
pub(super) fn less_product<T: Field>(a: Lanes<T>, b: Lanes<T>, c: Lanes<T>) -> Lanes<T> {
    std::array::from_fn(|lane| a[lane] - b[lane] * c[lane])
}

/// LU factors of `m`×`n` matrices in place. For each pivot, and each lane, `pivots` gets the row that was exchanged
/// with its row, counted from 1.
pub(super) fn lu<T: Field>(a: &mut [T::Side], [m, n]: [usize; 2], pivots: &mut [Lanes<i32>]) {
    vectorised(
        #[inline(always)]
        || {
            for (j, pivots) in pivots.iter_mut().enumerate().take(m.min(n)) {
                // The first of the largest elements; if the first of all is NaN, that.
                let mut most = a[j * n + j].sizes();
                let mut at = [j as i32; MATRICES];
                for i in j + 1..m {
                    let sizes = a[i * n + j].sizes();
                    for lane in 0..MATRICES {
                        let is_larger = sizes[lane] > most[lane];
                        most[lane] = if is_larger { sizes[lane] } else { most[lane] };
                        at[lane] = if is_larger { i as i32 } else { at[lane] };
                    }
                }
                *pivots = at.map(|row| row + 1);
                for i in j + 1..m {
                    exchange::<T>(a, n, (j, i), &at.map(|row| row == i as i32));
                }
                divide_column::<T>(a, [m, n], j, most);
                for i in j + 1..m {
                    let factor = a[i * n + j];
                    for c in j + 1..n {
                        a[i * n + c] = a[i * n + c].less_product(factor, a[j * n + c]);
                    }
                }
            }
        },
    );
}

/// Exchanges two rows of `n` elements in these lanes.
#[inline(always)]
fn exchange<T: Field>(a: &mut [T::Side], n: usize, (i, k): (usize, usize), lanes: &Lanes<bool>) {
    let (above, below) = a.split_at_mut(k * n);
    for (x, y) in above[i * n..][..n].iter_mut().zip(&mut below[..n]) {
        (*x, *y) = (Side::chosen(lanes, *y, *x), Side::chosen(lanes, *x, *y));
    }
}

/// Divides what is below the diagonal in column `j` by what is on it, which has this size: by way of its inverse
/// where that is finite, and not at all where it is zero.
#[inline(always)]
fn divide_column<T: Field>(a: &mut [T::Side], [m, n]: [usize; 2], j: usize, size: Lanes<T::Real>) {
    let pivot = a[j * n + j];
    // (NaN is not less.)
    let are_small = size.iter().any(|&size| size < T::LEAST);
    if !are_small {
        let inverse = T::Side::all(T::ONE).over(pivot);
        for i in j + 1..m {
            a[i * n + j] = a[i * n + j].times(inverse);
        }
        return;
    }
    for i in j + 1..m {
        let mut divided = a[i * n + j];
        for lane in 0..MATRICES {
            let (v, pivot) = (divided.get(lane), pivot.get(lane));
            divided.set(
                lane,
                match () {
                    () if pivot == T::ZERO => v,
                    () if pivot.size() >= T::LEAST => v * (T::ONE / pivot),
                    () => v / pivot,
                },
            );
        }
        a[i * n + j] = divided;
    }
}

/// Replaces the lower triangles of `n`×`n` matrices by Cholesky's factors. Gives for each lane 0, or the order of
/// the first leading minor that is not positive; columns from that on are anything.
pub(super) fn cholesky<T: Field>(a: &mut [T::Side], n: usize) -> Lanes<i32> {
    let mut info = [0; MATRICES];
    vectorised(
        #[inline(always)]
        || {
            for j in 0..n {
                for i in j..n {
                    let mut sum = a[i * n + j];
                    for k in 0..j {
                        sum = sum.less_product(a[i * n + k], a[j * n + k].conj());
                    }
                    a[i * n + j] = sum;
                }
                let pivot = &mut a[j * n + j];
                for (lane, info) in info.iter_mut().enumerate() {
                    let root = pivot.get(lane).root_of_pivot();
                    *info = if *info == 0 && root.is_none() { j as i32 + 1 } else { *info };
                    pivot.set(lane, root.unwrap_or(T::NAN));
                }
                let root = *pivot;
                for i in j + 1..n {
                    a[i * n + j] = a[i * n + j].over(root);
                }
            }
        },
    );
    info
}

/// A triangular system: how its coefficients lie in a matrix, and its unknowns among the right sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    pub(super) n: usize,
    /// How many right sides there are.
    pub(super) columns: usize,
    /// Whether an equation's right sides are neighbours, rather than a right side's equations.
    pub(super) by_equations: bool,
    /// Whether columns of the matrix are the equations.
    pub(super) transposed: bool,
    /// Whether the last unknown is known first.
    pub(super) is_reversed: bool,
    pub(super) unit_diagonal: bool,
    /// Whether coefficients are the conjugates of what is in the matrix.
    pub(super) conjugate: bool,
}

impl System {
    /// Solves for `x`, the right sides at first.
    pub(super) fn solve<T: Field>(&self, a: &[T::Side], x: &mut [T::Side]) {
        let System { n, columns, by_equations, transposed, is_reversed, unit_diagonal, .. } = *self;
        let number = |i: usize| if is_reversed { n - 1 - i } else { i };
        let coefficient = |i: usize, k: usize| {
            let (row, column) = if transposed { (k, i) } else { (i, k) };
            let coefficient = a[number(row) * n + number(column)];
            if self.conjugate { coefficient.conj() } else { coefficient }
        };
        let place = |i: usize, c: usize| match by_equations {
            true => number(i) * columns + c,
            false => c * n + number(i),
        };
        vectorised(
            #[inline(always)]
            || {
                for i in 0..n {
                    for c in 0..columns {
                        let mut sum = x[place(i, c)];
                        for k in 0..i {
                            sum = sum.less_product(coefficient(i, k), x[place(k, c)]);
                        }
                        if !unit_diagonal {
                            sum = sum.over(coefficient(i, i));
                        }
                        x[place(i, c)] = sum;
                    }
                }
            },
        );
    }
}

/// Makes reflectors of the first columns of `m`×`n` matrices, as many as there are factors, and changes the columns
/// right of each: `r` is above them then.
pub(super) fn qr<T: Real>(a: &mut [Lanes<T>], [m, n]: [usize; 2], tau: &mut [Lanes<T>]) {
    vectorised(
        #[inline(always)]
        || {
            for (j, tau) in tau.iter_mut().enumerate() {
                let beta;
                (beta, *tau) = reflectors(a, [m, n], j);
                a[j * n + j] = beta;
                for c in j + 1..n {
                    let mut sum = a[j * n + c];
                    for i in j + 1..m {
                        let (v, x) = (a[i * n + j], a[i * n + c]);
                        for lane in 0..MATRICES {
                            sum[lane] += v[lane] * x[lane];
                        }
                    }
                    let w = zipped(sum, *tau, |sum, tau| sum * tau);
                    a[j * n + c] = zipped(a[j * n + c], w, |v, w| v - w);
                    for i in j + 1..m {
                        a[i * n + c] = less_product(a[i * n + c], a[i * n + j], w);
                    }
                }
            }
        },
    );
}

/// The reflectors that make column `j` zero below the diagonal, of which that becomes `v`: what is on the diagonal
/// then, and the factors.
#[inline(always)]
fn reflectors<T: Real>(a: &mut [Lanes<T>], [m, n]: [usize; 2], j: usize) -> (Lanes<T>, Lanes<T>) {
    let alpha = a[j * n + j];
    let mut sum = [T::ZERO; MATRICES];
    for i in j + 1..m {
        let x = a[i * n + j];
        for lane in 0..MATRICES {
            sum[lane] += x[lane] * x[lane];
        }
    }
    let all = zipped(sum, alpha, |sum, alpha| sum + alpha * alpha);
    // Where squares leave the range, or there is nothing to reflect, each lane goes by itself.
    let least = T::LEAST / T::EPSILON;
    let is_usual = |lane: usize| sum[lane] > least && all[lane].is_finite();
    if !(0..MATRICES).all(is_usual) {
        let (mut beta, mut tau) = (alpha, alpha);
        for lane in 0..MATRICES {
            let mut column = [T::ZERO; MAX_SIZE];
            let column = &mut column[..m - j - 1];
            for (v, i) in column.iter_mut().zip(j + 1..) {
                *v = a[i * n + j][lane];
            }
            (beta[lane], tau[lane]) = reflector(alpha[lane], column);
            for (&v, i) in column.iter().zip(j + 1..) {
                a[i * n + j][lane] = v;
            }
        }
        return (beta, tau);
    }
    let beta = zipped(all, alpha, |all, alpha| {
        let length = all.sqrt();
        if alpha.is_negative() { length } else { T::ZERO - length }
    });
    let tau = zipped(beta, alpha, |beta, alpha| (beta - alpha) / beta);
    let inverse = zipped(beta, alpha, |beta, alpha| T::ONE / (alpha - beta));
    for i in j + 1..m {
        a[i * n + j] = zipped(a[i * n + j], inverse, |v, inverse| v * inverse);
    }
    (beta, tau)
}

/// Replaces reflectors, packed as [`qr`] leaves them, by the first `n` columns of their product; there are no more
/// of them than columns.
pub(super) fn product<T: Real>(a: &mut [Lanes<T>], [m, n]: [usize; 2], tau: &[Lanes<T>]) {
    vectorised(
        #[inline(always)]
        || {
            // Columns without reflectors are those of ones.
            for c in tau.len()..n {
                for i in 0..m {
                    a[i * n + c] = [if i == c { T::ONE } else { T::ZERO }; MATRICES];
                }
            }
            for (j, tau) in tau.iter().enumerate().rev() {
                for c in j + 1..n {
                    // Row `j` is still zero right of the diagonal.
                    let mut sum = [T::ZERO; MATRICES];
                    for i in j + 1..m {
                        let (v, x) = (a[i * n + j], a[i * n + c]);
                        for lane in 0..MATRICES {
                            sum[lane] += v[lane] * x[lane];
                        }
                    }
                    let w = zipped(sum, *tau, |sum, tau| sum * tau);
                    a[j * n + c] = w.map(|w| T::ZERO - w);
                    for i in j + 1..m {
                        a[i * n + c] = less_product(a[i * n + c], a[i * n + j], w);
                    }
                }
                a[j * n + j] = tau.map(|tau| T::ONE - tau);
                for i in 0..j {
                    a[i * n + j] = [T::ZERO; MATRICES];
                }
                for i in j + 1..m {
                    a[i * n + j] = zipped(a[i * n + j], *tau, |v, tau| T::ZERO - v * tau);
                }
            }
        },
    );
}
