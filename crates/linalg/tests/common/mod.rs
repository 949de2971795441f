//! Matrices at random, their products, and how far two are apart.

#![allow(dead_code, reason = "not every test needs all of it")]

use helio_linalg::{Lapack, Real};
use oorandom::Rand64;

/// A matrix: its columns, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<T>,
}

impl<T: Lapack> Matrix<T> {
    pub fn zero(rows: usize, columns: usize) -> Self {
        Matrix { rows, columns, data: vec![T::zero(); rows * columns] }
    }

    pub fn from_fn(rows: usize, columns: usize, mut of: impl FnMut(usize, usize) -> T) -> Self {
        let mut matrix = Self::zero(rows, columns);
        for j in 0..columns {
            for i in 0..rows {
                matrix.data[i + j * rows] = of(i, j);
            }
        }
        matrix
    }

    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| if i == j { T::one() } else { T::zero() })
    }

    pub fn diagonal(values: &[T]) -> Self {
        let n = values.len();
        Self::from_fn(n, n, |i, j| if i == j { values[i] } else { T::zero() })
    }

    /// Elements between -1 and 1.
    pub fn random(random: &mut Rand64, rows: usize, columns: usize) -> Self {
        let mut part = || T::Real::of(random.rand_float() * 2.0 - 1.0);
        Self::from_fn(rows, columns, |_, _| T::of_parts(part(), part()))
    }

    /// Of this rank at most.
    pub fn of_rank(random: &mut Rand64, rows: usize, columns: usize, rank: usize) -> Self {
        Self::random(random, rows, rank).times(&Self::random(random, rank, columns))
    }

    pub fn at(&self, i: usize, j: usize) -> T {
        self.data[i + j * self.rows]
    }

    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        let mut product = Self::zero(self.rows, other.columns);
        for j in 0..other.columns {
            for k in 0..self.columns {
                let factor = other.at(k, j);
                for i in 0..self.rows {
                    product.data[i + j * self.rows] += self.at(i, k) * factor;
                }
            }
        }
        product
    }

    pub fn adjoint(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i).conj())
    }

    pub fn transpose(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    pub fn plus(&self, other: &Self) -> Self {
        Self::from_fn(self.rows, self.columns, |i, j| self.at(i, j) + other.at(i, j))
    }

    /// The elements on and below the diagonal, or above it; the others are 0.
    pub fn triangle(&self, is_lower: bool) -> Self {
        Self::from_fn(self.rows, self.columns, |i, j| {
            if if is_lower { i >= j } else { i <= j } { self.at(i, j) } else { T::zero() }
        })
    }

    pub fn part(&self, rows: usize, columns: usize) -> Self {
        Self::from_fn(rows, columns, |i, j| self.at(i, j))
    }

    pub fn size(&self) -> f64 {
        self.data.iter().map(|x| x.re().wide().hypot(x.im().wide())).fold(0.0, f64::max)
    }

    /// Fails if an element is further from the other's than `factor` times the order times the rounding
    /// error of the greatest.
    #[track_caller]
    pub fn check(&self, other: &Self, factor: f64) {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        let eps = T::Real::EPS.wide() * 2.0;
        let order = self.rows.max(self.columns).max(1) as f64;
        let bound = factor * eps * order * other.size().max(f64::MIN_POSITIVE);
        for j in 0..self.columns {
            for i in 0..self.rows {
                let d = self.at(i, j) - other.at(i, j);
                let d = d.re().wide().hypot(d.im().wide());
                assert!(
                    d <= bound,
                    "({i}, {j}) of {}×{}: {:?} is {d:e} from {:?}, more than {bound:e}",
                    self.rows,
                    self.columns,
                    self.at(i, j),
                    other.at(i, j)
                );
            }
        }
    }

    #[track_caller]
    pub fn check_orthonormal(&self, factor: f64) {
        self.adjoint().times(self).check(&Self::identity(self.columns), factor);
    }
}

pub fn random() -> Rand64 {
    Rand64::new(0x0068_656c_696f)
}

/// Orders of square matrices: none, one, primes, and around the widths of panels.
pub const ORDERS: &[usize] = &[0, 1, 2, 3, 5, 8, 13, 31, 32, 33, 47, 70];

/// Rows and columns: square, tall, wide, empty.
pub const SHAPES: &[(usize, usize)] = &[
    (0, 0),
    (1, 1),
    (0, 3),
    (3, 0),
    (2, 2),
    (1, 5),
    (5, 1),
    (3, 7),
    (7, 3),
    (13, 13),
    (33, 32),
    (37, 65),
    (65, 37),
    (64, 64),
    (100, 11),
    (11, 100),
];

/// Runs a test with each type of elements.
#[macro_export]
macro_rules! each_type {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[test]
            fn f32() {
                super::check::$name::<f32>();
            }
            #[test]
            fn f64() {
                super::check::$name::<f64>();
            }
            #[test]
            fn c64() {
                super::check::$name::<helio_linalg::Complex<f32>>();
            }
            #[test]
            fn c128() {
                super::check::$name::<helio_linalg::Complex<f64>>();
            }
        }
    )*};
}
