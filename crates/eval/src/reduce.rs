//! Operations that call a computation for each element: `map` and `reduce`.

use std::iter::zip;

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::{least_sizes, shared_sizes, with_bounded_sizes};
use crate::frame::{array, array_shape, only};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, outside, steps, store};

/// The computation's value for each element of the operands.
pub(crate) fn map(
    op: &ops::Map,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let shape = array_shape(shape)?;
    let operands: Vec<&Array> = (0..args.len()).map(|i| array(args, i)).collect::<Result<_>>()?;
    let mut result = Array::zeros(shape.clone())?;
    let sizes = shared_sizes(shape, &operands)?;
    let axes = zip(&sizes, steps(shape.dims())).map(|(&size, step)| (size, [step]));
    let mut walk = Walk::new(evaluator, axes);
    let mut function = ScalarFn::new(evaluator, op.to_apply);
    let (mut arguments, mut values) = (Vec::new(), Vec::new());
    let data = result.data_mut();
    walk.points([0], |[at]| {
        arguments.clear();
        arguments.extend(operands.iter().map(|operand| Scalar::of(operand, at)));
        function.call(&arguments, &mut values)?;
        store(data, at, *values.first().ok_or_else(outside)?)
    })?;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

/// The computation folded over some dimensions: from the initial values, in row-major order,
/// accumulators on the left.
pub(crate) fn reduce(
    op: &ops::Reduce,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operands, mut fold) = fold_of(evaluator, op.to_apply, args)?;
    let first = operands.first().ok_or_else(outside)?;
    let mut results = results_of(shape)?;
    let kept: Vec<usize> = (0..first.dims().len()).filter(|d| !op.dimensions.contains(d)).collect();
    let all = least_sizes(&operands);
    let sizes: Vec<usize> = kept.iter().map(|&d| all[d]).collect();

    let from_steps = steps(first.dims());
    let to_steps = steps(results.first().ok_or_else(outside)?.dims());
    let axes = zip(&kept, to_steps).map(|(&d, step)| (all[d], [from_steps[d], step]));
    let mut outer = Walk::new(evaluator, axes);
    let folded = (0..from_steps.len()).filter(|d| !kept.contains(d));
    let mut inner = Walk::new(evaluator, folded.map(|d| (all[d], [from_steps[d]])));
    outer.points([0, 0], |[from, to]| {
        fold.begin();
        inner.points([from], |[at]| fold.step(&operands, at))?;
        fold.end(&mut results, to)
    })?;
    tuple_of(results, &sizes, shape)
}

/// A left fold of a computation over elements of several arrays at once.
pub(crate) struct Fold<'a> {
    function: ScalarFn<'a>,
    init: Vec<Scalar>,
    /// The accumulators, then room for the elements.
    arguments: Vec<Scalar>,
    values: Vec<Scalar>,
}

/// The arrays among the operands, and the fold that begins with the scalars behind them.
pub(crate) fn fold_of<'a, 'b>(
    evaluator: &'a Evaluator<'a>,
    computation: helio_ir::CompId,
    args: &'b [Literal],
) -> Result<(Vec<&'b Array>, Fold<'a>)> {
    let half = args.len() / 2;
    let operands = (0..half).map(|i| array(args, i)).collect::<Result<_>>()?;
    let init = |i| {
        let scalar = array(args, i)?;
        if scalar.data().is_empty() {
            return Err(Error::internal("an initial value is not a scalar"));
        }
        Ok(Scalar::of(scalar, 0))
    };
    let init: Vec<Scalar> = (half..args.len()).map(init).collect::<Result<_>>()?;
    let function = ScalarFn::new(evaluator, computation);
    Ok((operands, Fold { function, init, arguments: Vec::new(), values: Vec::new() }))
}

impl Fold<'_> {
    /// Starts anew with the initial values.
    pub(crate) fn begin(&mut self) {
        self.values.clone_from(&self.init);
    }

    /// Takes in the element of each operand at this place.
    pub(crate) fn step(&mut self, operands: &[&Array], at: usize) -> Result<()> {
        self.arguments.clone_from(&self.values);
        self.arguments.extend(operands.iter().map(|operand| Scalar::of(operand, at)));
        self.function.call(&self.arguments, &mut self.values)
    }

    /// Writes the accumulators into the results at this place.
    pub(crate) fn end(&self, results: &mut [Array], at: usize) -> Result<()> {
        if results.len() != self.values.len() {
            return Err(Error::internal("as many results as accumulators are expected"));
        }
        zip(results, &self.values)
            .try_for_each(|(result, &value)| store(result.data_mut(), at, value))
    }
}

/// Arrays of zeros for each part of the result.
pub(crate) fn results_of(shape: &Shape) -> Result<Vec<Array>> {
    shape.leaves().into_iter().map(|leaf| Array::zeros(array_shape(leaf)?.clone())).collect()
}

/// The results with these sizes at run time, in a tuple if `shape` is one: a computation may give
/// a single accumulator in a tuple.
pub(crate) fn tuple_of(results: Vec<Array>, sizes: &[usize], shape: &Shape) -> Result<Literal> {
    let results = results.into_iter().map(|result| Ok(with_bounded_sizes(result, sizes)?.into()));
    let results = results.collect::<Result<Vec<Literal>>>()?;
    if shape.as_tuple().is_some() { Ok(Literal::Tuple(results)) } else { only(&results) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use helio_ir::ElementType::{F32, Pred, S32};
    use helio_ir::ops::BinaryOp::{Add, Multiply, Subtract};
    use helio_ir::ops::{Compare, Direction, Order, Select, Tuple};
    use helio_ir::types::BF16 as Bf16;
    use helio_ir::{Code, CompId};

    use super::*;
    use crate::Limits;
    use crate::testing::{
        Bench, Random, bounded, counting, of, resized, run_all, run_on, shape, values,
    };

    fn reduced(
        bench: &Bench,
        f: CompId,
        x: &Array,
        dimensions: &[usize],
        out: &[usize],
    ) -> Vec<i32> {
        let op = ops::Reduce { dimensions: dimensions.to_vec(), to_apply: f };
        let args = [x, &Array::scalar(0)];
        values(&run_on(&bench.evaluator(), reduce, op, &args, &shape(S32, out)).unwrap())
    }

    #[test]
    fn reduce_folds_dimensions() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, S32);
        // E4 "Reduce": two rows of three; then four copies of them.
        let x = of(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        assert_eq!(reduced(&bench, add, &x, &[0], &[3]), [5, 7, 9]);
        assert_eq!(reduced(&bench, add, &x, &[1], &[2]), [6, 15]);
        assert_eq!(reduced(&bench, add, &x, &[0, 1], &[]), [21]);
        assert_eq!(reduced(&bench, add, &x, &[], &[2, 3]), [1, 2, 3, 4, 5, 6]);
        let x = of(&[4, 2, 3], &[1, 2, 3, 4, 5, 6].repeat(4));
        assert_eq!(reduced(&bench, add, &x, &[0], &[2, 3]), [4, 8, 12, 16, 20, 24]);
        assert_eq!(reduced(&bench, add, &x, &[0, 2], &[2]), [24, 60]);
        assert_eq!(reduced(&bench, add, &x, &[1, 2], &[4]), [21, 21, 21, 21]);
        assert_eq!(reduced(&bench, add, &counting(&[2, 0]), &[1], &[2]), [0, 0]);
        assert_eq!(reduced(&bench, add, &counting(&[0, 2]), &[1], &[0]), [0; 0]);
    }

    #[test]
    fn reduce_goes_from_the_left_in_row_major_order() {
        let mut bench = Bench::new();
        // (a, x) → 10 a + x writes the elements down as digits.
        let scalar = || Shape::scalar(S32);
        let ten = ops::Constant::new(Literal::scalar(10));
        let ops = [
            (ten.into(), &[][..], scalar()),
            (Multiply.into(), &[0, 2], scalar()),
            (Add.into(), &[3, 1], scalar()),
        ];
        let digits = bench.computation(&[S32, S32], &ops);
        let x = of(&[2, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(reduced(&bench, digits, &x, &[0, 1, 2], &[]), [12_345_678]);
        assert_eq!(reduced(&bench, digits, &x, &[2, 0], &[2]), [1256, 3478]);
        assert_eq!(reduced(&bench, digits, &x, &[1], &[2, 2]), [13, 24, 57, 68]);
    }

    #[test]
    fn reduce_takes_several_arrays() {
        let mut bench = Bench::new();
        // Of (value, index) the larger value, as JAX writes argmax.
        let greater = Compare { direction: Direction::Ge, order: Order::Default };
        let both = Shape::Tuple(vec![Shape::scalar(F32), Shape::scalar(S32)]);
        let ops = [
            (greater.into(), &[0, 2][..], Shape::scalar(Pred)),
            (Select.into(), &[4, 0, 2], Shape::scalar(F32)),
            (Select.into(), &[4, 1, 3], Shape::scalar(S32)),
            (Tuple.into(), &[5, 6], both),
        ];
        let argmax = bench.computation(&[F32, S32, F32, S32], &ops);
        let x = of(&[2, 3], &[1f32, 9.0, 9.0, 4.0, -1.0, 5.0]);
        let i = of(&[2, 3], &[0, 1, 2, 0, 1, 2]);
        let op = ops::Reduce { dimensions: vec![1], to_apply: argmax };
        let out = Shape::Tuple(vec![shape(F32, &[2]).into(), shape(S32, &[2]).into()]);
        let args = [&x, &i, &Array::scalar(f32::NEG_INFINITY), &Array::scalar(0)];
        let found = run_all(&bench.evaluator(), reduce, op, &args, &out).unwrap();
        assert_eq!(values::<f32>(&found[0]), [9.0, 5.0]);
        assert_eq!(values::<i32>(&found[1]), [1, 2]);
    }

    #[test]
    fn reduce_of_random_shapes_sums_all() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, S32);
        let mut random = Random(7);
        for _ in 0..100 {
            let x = counting(&random.dims());
            let (mut folded, mut kept) = (Vec::new(), Vec::new());
            for (d, &dim) in x.dims().iter().enumerate() {
                if random.below(2) == 0 { folded.push(d) } else { kept.push(dim) }
            }
            let sums = reduced(&bench, add, &x, &folded, &kept);
            assert_eq!(sums.iter().sum::<i32>(), values::<i32>(&x).iter().sum::<i32>());
        }
    }

    #[test]
    fn a_computation_may_work_in_another_float_type() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, F32);
        let x = of(&[2, 2], &[1.0, 1.0 / 128.0, 1.0, 1.0].map(Bf16::from_f32));
        let zero = Array::scalar(Bf16::from_f32(0.0));
        for (dimensions, out, expected) in [
            (vec![1], vec![2], vec![1.0078125, 2.0]),
            (vec![], vec![2, 2], vec![1.0, 0.0078125, 1.0, 1.0]),
        ] {
            let op = ops::Reduce { dimensions, to_apply: add };
            let out = shape(F32, &out);
            let found = run_on(&bench.evaluator(), reduce, op, &[&x, &zero], &out).unwrap();
            assert_eq!(values::<f32>(&found), expected);
        }
        // Nothing to fold: the initial value is still in its own type.
        let none = of::<Bf16>(&[0], &[]);
        let op = ops::Reduce { dimensions: vec![0], to_apply: add };
        let out = shape(F32, &[]);
        let found = run_on(&bench.evaluator(), reduce, op, &[&none, &zero], &out).unwrap();
        assert_eq!(values::<f32>(&found), [0.0]);
    }

    #[test]
    fn padding_takes_no_part() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, S32);
        // semantics §10: 1 to 10, cut to 5
        let x = resized(&of(&[10], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), &[0], &[5]);
        assert_eq!(reduced(&bench, add, &x, &[0], &[]), [15]);
        let x = resized(&counting(&[2, 3]), &[1], &[2, 2]);
        let op = ops::Reduce { dimensions: vec![0], to_apply: add };
        let out = bounded(S32, &[3], &[0]);
        let args = [&x, &Array::scalar(0)];
        let found = run_on(&bench.evaluator(), reduce, op, &args, &out).unwrap();
        assert_eq!(found.sizes(), [2]);
        assert_eq!(values::<i32>(&found)[..2], [3, 5]);
    }

    #[test]
    fn map_applies_to_each_element() {
        let mut bench = Bench::new();
        let subtract = bench.binary(Subtract, S32);
        let op = || ops::Map { dimensions: vec![0], to_apply: subtract };
        let (x, y) = (counting(&[3]), of(&[3], &[5, 7, 9]));
        let out = shape(S32, &[3]);
        let found = run_on(&bench.evaluator(), map, op(), &[&x, &y], &out).unwrap();
        assert_eq!(values::<i32>(&found), [-5, -6, -7]);
        let none = counting(&[0]);
        run_on(&bench.evaluator(), map, op(), &[&none, &none], &shape(S32, &[0])).unwrap();
    }

    #[test]
    fn limits_stop_a_reduction() {
        let cancel = Some(Arc::new(AtomicBool::new(true)));
        for (limits, code) in [
            (Limits { max_steps: Some(100), ..Limits::default() }, Code::ResourceExhausted),
            (Limits { cancel, ..Limits::default() }, Code::Cancelled),
        ] {
            let mut bench = Bench::with_limits(limits);
            let add = bench.binary(Add, S32);
            let op = ops::Reduce { dimensions: vec![0], to_apply: add };
            let args = [&counting(&[1000]), &Array::scalar(0)];
            let error =
                run_on(&bench.evaluator(), reduce, op, &args, &shape(S32, &[])).unwrap_err();
            assert_eq!(error.code(), code);
        }
    }
}
