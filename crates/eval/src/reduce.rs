//! Operations that call a computation for each element: `map` and `reduce`.

use std::iter::zip;

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::frame::{array, array_shape, only};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, outside, steps, store, with_bounded_sizes};

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
    let sizes = operands.first().map_or(shape.dims(), |operand| operand.sizes()).to_vec();
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
    let sizes: Vec<usize> = kept.iter().map(|&d| first.sizes()[d]).collect();

    let from_steps = steps(first.dims());
    let to_steps = steps(results.first().ok_or_else(outside)?.dims());
    let axes = zip(&kept, to_steps).map(|(&d, step)| (first.sizes()[d], [from_steps[d], step]));
    let mut outer = Walk::new(evaluator, axes);
    let folded = (0..from_steps.len()).filter(|d| !kept.contains(d));
    let mut inner = Walk::new(evaluator, folded.map(|d| (first.sizes()[d], [from_steps[d]])));
    outer.points([0, 0], |[from, to]| {
        fold.begin();
        inner.points([from], |[at]| fold.step(&operands, at))?;
        fold.end(&mut results, to)
    })?;
    tuple_of(results, &sizes)
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

/// The only result, or a tuple of all, with these sizes at run time.
pub(crate) fn tuple_of(results: Vec<Array>, sizes: &[usize]) -> Result<Literal> {
    let results = results.into_iter().map(|result| Ok(with_bounded_sizes(result, sizes)?.into()));
    only(&results.collect::<Result<Vec<Literal>>>()?)
}
