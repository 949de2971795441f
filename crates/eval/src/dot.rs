//! `dot` and `ragged-dot`.
//!
//! Operands are laid out as lhs [batch, free, contracting] and rhs [batch, contracting, free]
//! matrices; see [`products`](crate::products) for the types in which sums are formed.

mod ragged;

use helio_ir::memory::Counted;
use helio_ir::ops::DotDims;
use helio_ir::{Array, ArrayShape, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::index::without;
use crate::products::{Algorithm, Packing, Term, dispatch_term, finish_in_order, pack, zeros};

pub(crate) use ragged::ragged_dot;

/// Sum of products over contracting dimensions.
pub(crate) fn dot(
    op: &ops::Dot,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (lhs, rhs, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let plan = DotPlan::new(&op.dims, lhs, rhs, &[]);
    let algorithm = op.algorithm.as_deref().map(Algorithm::from_name).transpose()?;
    let result = dispatch_term!(shape.element(), S => {
        dot_as::<S>(&plan, algorithm.as_ref(), evaluator, (lhs, rhs), shape)
    })?;
    with_bounded_sizes(result, &plan.result_sizes(lhs, rhs)).map(Literal::Array)
}

fn dot_as<S: Term>(
    plan: &DotPlan,
    algorithm: Option<&Algorithm>,
    evaluator: &Evaluator<'_>,
    (lhs, rhs): (&Array, &Array),
    shape: &ArrayShape,
) -> Result<Array> {
    let lhs = plan.pack_lhs::<S>(evaluator, lhs, shape)?;
    let rhs = plan.pack_rhs::<S>(evaluator, rhs, shape)?;
    let mut sums = zeros::<S>(shape.element_count())?;
    if sums.is_empty() {
        return finish_in_order(&sums, shape); // however many empty rows there are
    }
    let add = |lhs: &[S], rhs: &[S], sums: &mut [S]| plan.add_products(evaluator, lhs, rhs, sums);
    match algorithm {
        None => add(&lhs, &rhs, &mut sums)?,
        Some(algorithm) => algorithm.add_products(&lhs, &rhs, &mut sums, add)?,
    }
    finish_in_order(&sums, shape)
}

/// A dot product as products of matrices: what becomes of each dimension, and the sizes of the matrices.
struct DotPlan {
    lhs_order: Vec<usize>,
    rhs_order: Vec<usize>,
    /// For each dimension of an operand how many places count: all, or in contracting dimensions
    /// the size at run time, so that padding counts as zero.
    lhs_sizes: Vec<usize>,
    rhs_sizes: Vec<usize>,
    /// Free dimensions of each operand.
    lhs_free: Vec<usize>,
    rhs_free: Vec<usize>,
    dims: DotDims,
    groups: usize,
    batches: usize,
    rows: usize,
    columns: usize,
    contracted: usize,
}

impl DotPlan {
    /// `rhs_group` are dimensions of rhs that number the groups of a ragged dot.
    fn new(dims: &DotDims, lhs: &Array, rhs: &Array, rhs_group: &[usize]) -> Self {
        let lhs_free = without(lhs.dims().len(), &[&dims.lhs_batch, &dims.lhs_contracting]);
        let rhs_free =
            without(rhs.dims().len(), &[&dims.rhs_batch, &dims.rhs_contracting, rhs_group]);
        let (mut lhs_sizes, mut rhs_sizes) = (lhs.dims().to_vec(), rhs.dims().to_vec());
        for (&l, &r) in dims.lhs_contracting.iter().zip(&dims.rhs_contracting) {
            let size = lhs.sizes()[l].min(rhs.sizes()[r]);
            (lhs_sizes[l], rhs_sizes[r]) = (size, size);
        }
        let count = |array: &Array, dims: &[usize]| dims.iter().map(|&d| array.dims()[d]).product();
        DotPlan {
            lhs_order: [&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat(),
            rhs_order: [rhs_group, &dims.rhs_batch, &dims.rhs_contracting, &rhs_free].concat(),
            lhs_sizes,
            rhs_sizes,
            groups: count(rhs, rhs_group),
            batches: count(lhs, &dims.lhs_batch),
            rows: count(lhs, &lhs_free),
            columns: count(rhs, &rhs_free),
            contracted: count(lhs, &dims.lhs_contracting),
            lhs_free,
            rhs_free,
            dims: dims.clone(),
        }
    }

    fn pack_lhs<S: Term>(
        &self,
        evaluator: &Evaluator<'_>,
        lhs: &Array,
        shape: &ArrayShape,
    ) -> Result<Counted<S>> {
        let layout = Packing { order: &self.lhs_order, sizes: &self.lhs_sizes };
        pack(evaluator, lhs, &layout, shape.element())
    }

    fn pack_rhs<S: Term>(
        &self,
        evaluator: &Evaluator<'_>,
        rhs: &Array,
        shape: &ArrayShape,
    ) -> Result<Counted<S>> {
        let layout = Packing { order: &self.rhs_order, sizes: &self.rhs_sizes };
        pack(evaluator, rhs, &layout, shape.element())
    }

    /// The sizes of the result at run time.
    fn result_sizes(&self, lhs: &Array, rhs: &Array) -> Vec<usize> {
        let batch = self.dims.lhs_batch.iter().zip(&self.dims.rhs_batch);
        let batch = batch.map(|(&l, &r)| lhs.sizes()[l].min(rhs.sizes()[r]));
        let lhs_free = self.lhs_free.iter().map(|&d| lhs.sizes()[d]);
        let rhs_free = self.rhs_free.iter().map(|&d| rhs.sizes()[d]);
        batch.chain(lhs_free).chain(rhs_free).collect()
    }

    /// The row of lhs numbered `row` in this batch.
    fn lhs_row<'a, S>(&self, lhs: &'a [S], batch: usize, row: usize) -> &'a [S] {
        &lhs[(batch * self.rows + row) * self.contracted..][..self.contracted]
    }

    /// The matrix of rhs for this group and batch.
    fn rhs_matrix<'a, S>(&self, rhs: &'a [S], group: usize, batch: usize) -> &'a [S] {
        let size = self.contracted * self.columns;
        &rhs[(group * self.batches + batch) * size..][..size]
    }

    /// The row of the result numbered `row` in this group and batch.
    fn sum_row<'a, S>(
        &self,
        sums: &'a mut [S],
        (group, batch, row): (usize, usize, usize),
    ) -> &'a mut [S] {
        let start = ((group * self.batches + batch) * self.rows + row) * self.columns;
        &mut sums[start..][..self.columns]
    }

    /// Adds the product of the operands to `sums`.
    fn add_products<S: Term>(
        &self,
        evaluator: &Evaluator<'_>,
        lhs: &[S],
        rhs: &[S],
        sums: &mut [S],
    ) -> Result<()> {
        for batch in 0..self.batches {
            let matrix = self.rhs_matrix(rhs, 0, batch);
            for row in 0..self.rows {
                evaluator.count_steps(1)?;
                let sums = self.sum_row(sums, (0, batch, row));
                add_row_products(sums, self.lhs_row(lhs, batch, row), matrix);
            }
        }
        Ok(())
    }
}

/// `sums += row * matrix`, in the order of the row's elements.
fn add_row_products<S: Term>(sums: &mut [S], row: &[S], matrix: &[S]) {
    if sums.is_empty() {
        return;
    }
    for (&a, column) in row.iter().zip(matrix.chunks_exact(sums.len())) {
        add_scaled(sums, a, column);
    }
}

/// `sums += a * values`
fn add_scaled<S: Term>(sums: &mut [S], a: S, values: &[S]) {
    for (sum, &b) in sums.iter_mut().zip(values) {
        *sum = sum.add_product(a, b);
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::types::{BF16, C64, F16};
    use helio_ir::{DimKind, ElementType, Native};

    use super::*;
    use crate::testing::{on_evaluator, pattern};

    fn dims(lhs: [&[usize]; 2], rhs: [&[usize]; 2]) -> DotDims {
        DotDims {
            lhs_contracting: lhs[0].to_vec(),
            rhs_contracting: rhs[0].to_vec(),
            lhs_batch: lhs[1].to_vec(),
            rhs_batch: rhs[1].to_vec(),
        }
    }

    fn matrix_dims() -> DotDims {
        dims([&[1], &[]], [&[0], &[]])
    }

    fn run(lhs: Array, rhs: Array, dims: DotDims, algorithm: Option<&str>, result: Shape) -> Array {
        let element = array_shape(&result).unwrap().element();
        let algorithm = algorithm.map(str::to_owned);
        let op = ops::Dot { dims, element, precision: Vec::new(), algorithm };
        let value = on_evaluator(|ev| dot(&op, ev, &[lhs.into(), rhs.into()], &result)).unwrap();
        value.as_array().unwrap().clone()
    }

    /// Product of two matrices whose elements are given row by row.
    fn multiply<A: Native, R: Native>(
        lhs: [usize; 2],
        lhs_values: &[A],
        rhs: [usize; 2],
        rhs_values: &[A],
        algorithm: Option<&str>,
    ) -> Vec<R> {
        let result = Shape::array(R::TYPE, [lhs[0], rhs[1]]).unwrap();
        let lhs = Array::new(lhs, lhs_values.to_vec()).unwrap();
        let rhs = Array::new(rhs, rhs_values.to_vec()).unwrap();
        let value = run(lhs, rhs, matrix_dims(), algorithm, result);
        value.values::<R>().unwrap().to_vec()
    }

    /// The values of StableHLO's specification, "dot_general".
    #[test]
    fn batches_of_matrices() {
        let lhs = Array::new([2, 2, 2], vec![1i64, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        let rhs = Array::new([2, 2, 2], vec![1i64, 0, 0, 1, 1, 0, 0, 1]).unwrap();
        let result = Shape::array(ElementType::S64, [2, 2, 2]).unwrap();
        let value = run(lhs, rhs, dims([&[2], &[0]], [&[1], &[0]]), None, result);
        assert_eq!(value.values::<i64>().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// Two contracting dimensions in another order and a batch dimension at the end (values from
    /// `jax.lax.dot_general`).
    #[test]
    fn dimensions_in_any_order() {
        let lhs = Array::new([2, 3, 2, 2], pattern(24, 7, 3, 11)).unwrap();
        let rhs = Array::new([2, 2, 3, 2], pattern(24, 5, 2, 7)).unwrap();
        let result = Shape::array(ElementType::S32, [2, 2, 2]).unwrap();
        let value = run(lhs, rhs, dims([&[1, 3], &[0]], [&[2, 0], &[3]]), None, result);
        assert_eq!(value.values::<i32>().unwrap(), [17, -9, -29, 28, -17, 16, 10, 36]);
    }

    #[test]
    fn empty_contraction_is_zero() {
        assert_eq!(multiply::<f32, f32>([2, 0], &[], [0, 1], &[], None), [0.0, 0.0]);
        assert_eq!(multiply::<f32, f32>([0, 2], &[], [2, 1], &[1.0, 2.0], None), [0.0; 0]);
        assert_eq!(multiply::<f32, f32>([1 << 50, 0], &[], [0, 0], &[], None), [0.0; 0]);
        let scalar = run(
            Array::scalar(3i32),
            Array::scalar(4i32),
            DotDims::default(),
            None,
            Shape::scalar(ElementType::S32),
        );
        assert_eq!(scalar.values::<i32>().unwrap(), [12]);
    }

    #[test]
    fn integers_wrap_at_the_type_of_the_result() {
        assert_eq!(multiply::<i8, i8>([1, 2], &[100, 100], [2, 1], &[2, 1], None), [44]);
        assert_eq!(multiply::<i8, i32>([1, 2], &[100, 100], [2, 1], &[2, 1], None), [300]);
        let big = 0xffff_ffff_ffff_ffffu64;
        assert_eq!(multiply::<u64, u64>([1, 1], &[big], [1, 1], &[big], None), [1]);
    }

    #[test]
    fn pred_is_or_of_ands() {
        let (lhs, rhs) = ([true, false, true, true], [true, false, false, false]);
        let value = multiply::<bool, bool>([2, 2], &lhs, [2, 2], &rhs, None);
        assert_eq!(value, [true, false, true, false]);
    }

    #[test]
    fn complex_products() {
        let (a, b) = (C64::new(1.0, 2.0), C64::new(3.0, -1.0));
        assert_eq!(multiply::<C64, C64>([1, 1], &[a], [1, 1], &[b], None), [C64::new(5.0, 5.0)]);
    }

    /// The sum 2048 + 1 + 1 is 2048 if each step is rounded to f16, 2050 exactly.
    #[test]
    fn sums_are_rounded_once() {
        let lhs = [2048.0, 1.0, 1.0].map(F16::from_f64);
        let rhs = [F16::from_f64(1.0); 3];
        let value = multiply::<F16, F16>([1, 3], &lhs, [3, 1], &rhs, None);
        assert_eq!(value, [F16::from_f64(2050.0)]);
        let value = multiply::<f32, f32>([1, 3], &[1e30, 1.0, -1e30], [3, 1], &[1.0; 3], None);
        assert_eq!(value, [0.0]); // 1 is below the rounding of f64 at 1e30
        let value = multiply::<f32, f32>([1, 3], &[1e8, 1.0, -1e8], [3, 1], &[1.0; 3], None);
        assert_eq!(value, [1.0]);
    }

    /// 1 + 2^-9 has 9 bits after the point: too many for bf16, few enough for its parts.
    #[test]
    fn algorithms_round_operands() {
        let v = 1.0 + 2f32.powi(-9);
        let square = |algorithm| multiply::<f32, f32>([1, 1], &[v], [1, 1], &[v], Some(algorithm));
        assert_eq!(square("dot_bf16_bf16_f32"), [1.0]);
        // Without the product of the lower parts, 2^-18.
        assert_eq!(square("dot_bf16_bf16_f32_x3"), [1.0 + 2f32.powi(-8)]);
        assert_eq!(square("dot_bf16_bf16_f32_x6"), [v * v]);
        assert_eq!(square("dot_bf16_bf16_f32_x9"), [v * v]);
        assert_eq!(square("dot_tf32_tf32_f32"), [v * v]);
        assert_eq!(square("dot_f32_f32_f32"), [v * v]);
        assert_eq!(square("dot_f16_f16_f16"), [1.0 + 2f32.powi(-8)]);
        let third = [BF16::from_f64(3.0), BF16::from_f64(0.0078125)];
        let value = multiply::<BF16, f32>(
            [1, 2],
            &third,
            [2, 1],
            &[BF16::from_f64(1.0); 2],
            Some("dot_bf16_bf16_bf16"),
        );
        assert_eq!(value, [3.0]); // 3 + 2^-7 is a tie in bf16
        let infinite = [f32::INFINITY];
        let value =
            multiply::<f32, f32>([1, 1], &infinite, [1, 1], &[1.0], Some("dot_bf16_bf16_f32_x6"));
        assert_eq!(value, infinite);
    }

    #[test]
    fn padding_of_bounded_dimensions_counts_as_zero() {
        let bounded = |dims: [usize; 2], d: usize, size: usize, values: Vec<f32>| {
            let mut kinds = vec![DimKind::Static; 2];
            kinds[d] = DimKind::Bounded;
            let shape = ArrayShape::with_kinds(ElementType::F32, dims.to_vec(), kinds).unwrap();
            let mut sizes = dims.to_vec();
            sizes[d] = size;
            Array::from_data(shape, f32::wrap(values)).unwrap().with_sizes(sizes).unwrap()
        };
        let lhs = bounded([1, 3], 1, 2, vec![1.0, 2.0, f32::NAN]);
        let rhs = Array::new([3, 1], vec![3.0f32, 4.0, f32::INFINITY]).unwrap();
        let result = Shape::array(ElementType::F32, [1, 1]).unwrap();
        let value = run(lhs, rhs.clone(), matrix_dims(), None, result);
        assert_eq!(value.values::<f32>().unwrap(), [11.0]);

        let lhs = bounded([2, 3], 0, 1, vec![1.0; 6]);
        let kinds = vec![DimKind::Bounded, DimKind::Static];
        let result = ArrayShape::with_kinds(ElementType::F32, vec![2, 1], kinds).unwrap();
        assert_eq!(run(lhs, rhs, matrix_dims(), None, result.into()).sizes(), [1, 1]);
    }
}
