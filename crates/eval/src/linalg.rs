//! `cholesky` and `triangular-solve`, in `f64` or `C128` whatever the element type.

use std::ops::{Mul, Sub};

use helio_ir::ops::TransposeA;
use helio_ir::types::C128;
use helio_ir::{Array, ArrayShape, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::math::complex;
use crate::products::{Term, finish_in_order, terms, zeros};

/// Real or complex numbers.
trait Field: Term + Mul<Output = Self> + Sub<Output = Self> {
    fn real(v: f64) -> Self;
    fn real_part(self) -> f64;
    fn conjugate(self) -> Self;
    fn divided_by(self, other: Self) -> Self;
}

impl Field for f64 {
    fn real(v: f64) -> Self {
        v
    }
    fn real_part(self) -> f64 {
        self
    }
    fn conjugate(self) -> Self {
        self
    }
    fn divided_by(self, other: Self) -> Self {
        self / other
    }
}

impl Field for C128 {
    fn real(v: f64) -> Self {
        C128::new(v, 0.0)
    }
    fn real_part(self) -> f64 {
        self.re
    }
    fn conjugate(self) -> Self {
        self.conj()
    }
    fn divided_by(self, other: Self) -> Self {
        complex::divide(self, other)
    }
}

/// Evaluates an expression with `$F` standing for the [`Field`] of this element type.
macro_rules! dispatch_field {
    ($element:expr, $F:ident => $body:expr) => {
        if $element.is_complex() {
            type $F = C128;
            $body
        } else {
            type $F = f64;
            $body
        }
    };
}

/// Rows and columns of the matrices in the last two dimensions: as they lie, and at run time.
struct Extent {
    rows: usize,
    columns: usize,
    used_rows: usize,
    used_columns: usize,
}

impl Extent {
    fn of(array: &Array) -> Self {
        let last_two = |sizes: &[usize]| match sizes {
            [.., rows, columns] => (*rows, *columns),
            _ => (0, 0),
        };
        let ((rows, columns), (used_rows, used_columns)) =
            (last_two(array.dims()), last_two(array.sizes()));
        Extent { rows, columns, used_rows, used_columns }
    }

    /// The elements of one matrix.
    fn size(&self) -> usize {
        self.rows * self.columns
    }
}

/// The triangular factor of each positive definite matrix; NaN for a matrix that is not.
///
/// Only one triangle is read; the other one of the result is zero.
pub(crate) fn cholesky(
    op: &ops::Cholesky,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (a, shape) = (array(args, 0)?, array_shape(shape)?);
    let result =
        dispatch_field!(a.element(), F => cholesky_in::<F>(op.lower, evaluator, a, shape))?;
    with_bounded_sizes(result, a.sizes()).map(Literal::Array)
}

fn cholesky_in<F: Field>(
    lower: bool,
    evaluator: &Evaluator<'_>,
    a: &Array,
    shape: &ArrayShape,
) -> Result<Array> {
    let extent = Extent::of(a);
    let mut values = terms::<F>(a)?;
    if extent.size() > 0 {
        for matrix in values.chunks_exact_mut(extent.size()) {
            if !lower {
                flip(matrix, extent.rows);
            }
            factor(evaluator, matrix, extent.used_rows.min(extent.used_columns), extent.rows)?;
            if !lower {
                flip(matrix, extent.rows);
            }
        }
    }
    finish_in_order(&values, shape)
}

/// Transposes and conjugates a square matrix.
fn flip<F: Field>(matrix: &mut [F], n: usize) {
    for i in 0..n {
        for j in 0..=i {
            let (below, above) = (matrix[i * n + j], matrix[j * n + i]);
            matrix[i * n + j] = above.conjugate();
            matrix[j * n + i] = below.conjugate();
        }
    }
}

/// Replaces the lower triangle of the leading `n` rows and columns by the factor `l` with
/// `l * adjoint(l)` equal to it, and everything above the diagonal by zero.
fn factor<F: Field>(
    evaluator: &Evaluator<'_>,
    matrix: &mut [F],
    n: usize,
    row_size: usize,
) -> Result<()> {
    for j in 0..n {
        evaluator.count_steps(1)?;
        let (done, rest) = matrix.split_at_mut((j + 1) * row_size);
        let row = &mut done[j * row_size..];
        // The diagonal is real; an imaginary part there is ignored.
        let square: f64 = row[..j].iter().map(|&v| (v * v.conjugate()).real_part()).sum();
        let pivot = row[j].real_part() - square;
        // A pivot that is zero, negative or NaN: the matrix is not positive definite.
        if pivot.is_nan() || pivot <= 0.0 {
            matrix.fill(F::real(f64::NAN));
            return Ok(());
        }
        let root = F::real(pivot.sqrt());
        row[j] = root;
        row[j + 1..].fill(F::ZERO);
        for below in rest.chunks_exact_mut(row_size).take(n - j - 1) {
            let inner = below[..j].iter().zip(&row[..j]);
            let dot = inner.fold(F::ZERO, |sum, (&a, &b)| sum.add_product(a, b.conjugate()));
            below[j] = (below[j] - dot).divided_by(root);
        }
    }
    Ok(())
}

/// Solves `op(a) x = b` or `x op(a) = b` for triangular `a`.
///
/// Only one triangle is read, without its diagonal if that is taken for ones. A zero on the
/// diagonal gives infinities and NaN.
pub(crate) fn triangular_solve(
    op: &ops::TriangularSolve,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (a, b, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let result = dispatch_field!(b.element(), F => solve_in::<F>(op, evaluator, (a, b), shape))?;
    with_bounded_sizes(result, b.sizes()).map(Literal::Array)
}

fn solve_in<F: Field>(
    op: &ops::TriangularSolve,
    evaluator: &Evaluator<'_>,
    (a, b): (&Array, &Array),
    shape: &ArrayShape,
) -> Result<Array> {
    let (a_extent, b_extent) = (Extent::of(a), Extent::of(b));
    let (a, mut x) = (terms::<F>(a)?, terms::<F>(b)?);
    if a_extent.size() == 0 || b_extent.size() == 0 {
        return finish_in_order(&x, shape);
    }
    // x op(a) = b is transpose(op(a)) transpose(x) = transpose(b).
    let transposed = (op.transpose_a != TransposeA::NoTranspose) == op.left_side;
    let system = System {
        n: a_extent.used_rows.min(a_extent.used_columns),
        row_size: a_extent.rows,
        transposed,
        conjugated: op.transpose_a == TransposeA::Adjoint,
        lower: op.lower != transposed,
        unit_diagonal: op.unit_diagonal,
    };
    let mut column = zeros::<F>(system.n)?;
    // How far apart the elements of one solution are, and how many solutions there are.
    let (step, solutions, solution_step) = match op.left_side {
        true => (b_extent.columns, b_extent.columns, 1),
        false => (1, b_extent.rows, b_extent.columns),
    };
    for (a, x) in a.chunks_exact(a_extent.size()).zip(x.chunks_exact_mut(b_extent.size())) {
        for solution in 0..solutions {
            evaluator.count_steps(1)?;
            let first = solution * solution_step;
            for (i, v) in column.iter_mut().enumerate() {
                *v = x[first + i * step];
            }
            system.solve(a, &mut column);
            for (i, v) in column.iter().enumerate() {
                x[first + i * step] = *v;
            }
        }
    }
    finish_in_order(&x, shape)
}

/// How the matrix of a system of equations lies in an array.
struct System {
    n: usize,
    row_size: usize,
    transposed: bool,
    conjugated: bool,
    /// Whether the matrix is lower triangular, after it is transposed.
    lower: bool,
    unit_diagonal: bool,
}

impl System {
    fn element<F: Field>(&self, a: &[F], i: usize, j: usize) -> F {
        let (i, j) = if self.transposed { (j, i) } else { (i, j) };
        let v = a[i * self.row_size + j];
        if self.conjugated { v.conjugate() } else { v }
    }

    /// Replaces the right side by the solution.
    fn solve<F: Field>(&self, a: &[F], x: &mut [F]) {
        for step in 0..self.n {
            let (i, known) = match self.lower {
                true => (step, 0..step),
                false => (self.n - 1 - step, self.n - step..self.n),
            };
            let dot = known.fold(F::ZERO, |sum, j| sum.add_product(self.element(a, i, j), x[j]));
            x[i] = x[i] - dot;
            if !self.unit_diagonal {
                x[i] = x[i].divided_by(self.element(a, i, i));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::Native;
    use helio_ir::types::F16;

    use super::*;
    use crate::testing::{Random, of, pattern, run};

    fn factor_of<T: Native>(dims: &[usize], values: &[T], lower: bool) -> Vec<T> {
        let a = of(dims, values);
        let result = run(cholesky, ops::Cholesky { lower }, &[&a], a.shape()).unwrap();
        result.values::<T>().unwrap().to_vec()
    }

    /// The values of StableHLO's specification, "cholesky"; 99 stands where nothing may be read.
    #[test]
    fn either_triangle() {
        let lower = [1.0f32, 99.0, 99.0, 2.0, 20.0, 99.0, 3.0, 26.0, 70.0];
        let factor = [1.0, 0.0, 0.0, 2.0, 4.0, 0.0, 3.0, 5.0, 6.0];
        assert_eq!(factor_of(&[3, 3], &lower, true), factor);
        let upper = [1.0f32, 2.0, 3.0, 99.0, 20.0, 26.0, 99.0, 99.0, 70.0];
        let factor = [1.0, 2.0, 3.0, 0.0, 4.0, 5.0, 0.0, 0.0, 6.0];
        assert_eq!(factor_of(&[3, 3], &upper, false), factor);
        let narrow = lower.map(|v| F16::from_f64(v.into()));
        assert_eq!(factor_of(&[3, 3], &narrow, true)[8], F16::from_f64(6.0));
    }

    /// Values of XLA:CPU.
    #[test]
    fn hermitian_matrices() {
        let c = C128::new;
        let (zero, other) = (c(0.0, 0.0), c(9.0, 0.0));
        let found = factor_of(&[2, 2], &[c(4.0, 0.0), other, c(2.0, -2.0), c(6.0, 0.0)], true);
        assert_eq!(found, [c(2.0, 0.0), zero, c(1.0, -1.0), c(2.0, 0.0)]);
        let found = factor_of(&[2, 2], &[c(4.0, 0.0), c(2.0, -2.0), other, c(6.0, 0.0)], false);
        assert_eq!(found, [c(2.0, 0.0), c(1.0, -1.0), zero, c(2.0, 0.0)]);
    }

    #[test]
    fn only_matrices_that_are_not_positive_definite_become_nan() {
        let values = [1.0f32, 0.0, 2.0, 1.0, 4.0, 0.0, 0.0, 9.0, 1.0, 0.0, f32::NAN, 1.0];
        let found = factor_of(&[3, 2, 2], &values, true);
        assert!(found[..4].iter().all(|v| v.is_nan()));
        assert_eq!(found[4..8], [2.0, 0.0, 0.0, 3.0]);
        assert!(found[8..].iter().all(|v| v.is_nan()));
        assert!(factor_of(&[1, 1], &[0.0f64], true)[0].is_nan());
    }

    #[test]
    fn empty_matrices() {
        assert!(factor_of::<f32>(&[2, 0, 0], &[], true).is_empty());
        assert!(factor_of::<f32>(&[0, 2, 2], &[], false).is_empty());
        let (a, b) = (of::<f32>(&[0, 0], &[]), of::<f32>(&[0, 3], &[]));
        let op = solve_op(true, true, false, TransposeA::NoTranspose);
        assert!(run(triangular_solve, op, &[&a, &b], b.shape()).is_ok());
    }

    /// `l * transpose(l)` is the matrix again, up to rounding.
    #[test]
    fn the_factor_squared_is_the_matrix() {
        let n = 20;
        let mut random = Random(1);
        let m: Vec<f64> = (0..n * n).map(|_| random.below(1000) as f64 / 500.0 - 1.0).collect();
        let product = |a: &[f64], i: usize, j: usize| -> f64 {
            (0..n).map(|k| a[i * n + k] * a[j * n + k]).sum()
        };
        let a: Vec<f64> = (0..n * n)
            .map(|at| product(&m, at / n, at % n) + if at / n == at % n { 1.0 } else { 0.0 })
            .collect();
        let l = factor_of(&[n, n], &a, true);
        for i in 0..n {
            for j in 0..n {
                assert!((product(&l, i, j) - a[i * n + j]).abs() < 1e-12);
            }
        }
    }

    fn solve_op(
        left_side: bool,
        lower: bool,
        unit_diagonal: bool,
        transpose_a: TransposeA,
    ) -> ops::TriangularSolve {
        ops::TriangularSolve { left_side, lower, unit_diagonal, transpose_a }
    }

    /// Values of XLA:CPU.
    #[test]
    fn every_flag_of_triangular_solve() {
        use TransposeA::{NoTranspose, Transpose};
        let a = of(&[3, 3], &[1.0, 3.0, -2.0, 2.0, -1.0, 1.0, -3.0, 1.0, 2.0]);
        let values: Vec<f64> = pattern(6, 7, 3, 11).into_iter().map(f64::from).collect();
        let cases = [
            (true, true, false, NoTranspose, [-2.0, 5.0, -5.0, 13.0, 1.5, 1.0]),
            (true, true, false, Transpose, [2.0, -1.0, 1.0, 3.0, 2.0, 0.0]),
            (true, true, true, NoTranspose, [-2.0, 5.0, 5.0, -13.0, -7.0, 28.0]),
            (true, true, true, Transpose, [16.0, 11.0, -3.0, -3.0, 4.0, 0.0]),
            (true, false, false, NoTranspose, [-1.0, -4.0, 1.0, 3.0, 2.0, 0.0]),
            (true, false, false, Transpose, [-2.0, 5.0, -7.0, 18.0, 3.5, -4.0]),
            (true, false, true, NoTranspose, [15.0, 14.0, -3.0, -3.0, 4.0, 0.0]),
            (true, false, true, Transpose, [-2.0, 5.0, 7.0, -18.0, -7.0, 28.0]),
            (false, true, false, NoTranspose, [8.5, -4.5, 0.5, 5.0, -4.0, 0.0]),
            (false, true, false, Transpose, [-2.0, -9.0, 2.0, -3.0, -10.0, 0.5]),
            (false, true, true, NoTranspose, [-7.0, 4.0, 1.0, -11.0, 4.0, 0.0]),
            (false, true, true, Transpose, [-2.0, 9.0, -14.0, -3.0, 10.0, -19.0]),
            (false, false, false, NoTranspose, [-2.0, -11.0, 4.0, -3.0, -13.0, 3.5]),
            (false, false, false, Transpose, [12.5, -4.5, 0.5, 9.0, -4.0, 0.0]),
            (false, false, true, NoTranspose, [-2.0, 11.0, -14.0, -3.0, 13.0, -19.0]),
            (false, false, true, Transpose, [-12.0, 4.0, 1.0, -15.0, 4.0, 0.0]),
        ];
        for (left, lower, unit, transpose_a, expected) in cases {
            let b = of(if left { &[3, 2] } else { &[2, 3] }, &values);
            let op = solve_op(left, lower, unit, transpose_a);
            let found = run(triangular_solve, op, &[&a, &b], b.shape()).unwrap();
            assert_eq!(found.values::<f64>().unwrap(), expected, "{op:?}");
        }
    }

    /// Values of XLA:CPU, each system twice.
    #[test]
    fn complex_systems_in_batches() {
        let c = C128::new;
        let a = [c(1.0, 1.0), c(0.0, 0.0), c(2.0, -1.0), c(0.0, 2.0)];
        let a = of(&[2, 2, 2], &[a, a].concat());
        let b = [c(2.0, 0.0), c(1.0, 3.0)];
        let b = of(&[2, 2, 1], &[b, b].concat());
        for (transpose_a, expected) in [
            (TransposeA::NoTranspose, [c(1.0, -1.0), c(3.0, 0.0)]),
            (TransposeA::Transpose, [c(1.0, 1.5), c(1.5, -0.5)]),
            (TransposeA::Adjoint, [c(2.5, 3.0), c(-1.5, 0.5)]),
        ] {
            let op = solve_op(true, true, false, transpose_a);
            let found = run(triangular_solve, op, &[&a, &b], b.shape()).unwrap();
            assert_eq!(found.values::<C128>().unwrap(), [expected, expected].concat());
        }
    }
}
