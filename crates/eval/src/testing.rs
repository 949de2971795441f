//! What the unit tests of operations share.

use std::iter::zip;

use helio_ir::ops::{BinaryOp, Compare, Direction, Order, Parameter};
use helio_ir::types::{IndexIter, strides};
use helio_ir::{
    Array, ArrayShape, CompId, Computation, DimKind, ElementType, Instr, InstrId, Literal, Module,
    Native, Op, Result, Shape,
};

use crate::{Context, Evaluator};

/// A module to run operations in.
pub(crate) struct Bench {
    module: Module,
    cx: Context,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench { module: Module::new("test"), cx: Context::default() }
    }

    pub(crate) fn with_limits(limits: crate::Limits) -> Self {
        Bench { module: Module::new("test"), cx: Context { limits, ..Context::default() } }
    }

    /// Adds the computation of two scalars that applies one operation to two parameters.
    pub(crate) fn binary(&mut self, op: BinaryOp, element: ElementType) -> CompId {
        let result = Shape::scalar(element);
        self.computation(&[element, element], &[(Op::Binary(op), &[0, 1], result)])
    }

    /// Adds the computation that compares two of its parameters.
    pub(crate) fn compare(
        &mut self,
        direction: Direction,
        params: &[ElementType],
        operands: [u32; 2],
    ) -> CompId {
        let op = Compare { direction, order: Order::Default };
        let result = Shape::scalar(ElementType::Pred);
        self.computation(params, &[(op.into(), &operands, result)])
    }

    /// Adds a computation of scalars: parameters, then operations with their operands by number
    /// (first the parameters), the last of which is the root.
    pub(crate) fn computation(
        &mut self,
        params: &[ElementType],
        ops: &[(Op, &[u32], Shape)],
    ) -> CompId {
        let mut computation = Computation::new(format!("f{}", self.module.computations().len()));
        let mut push = |op: Op, operands: &[u32], shape: Shape| {
            let operands: Vec<_> = operands.iter().map(|&i| InstrId(i)).collect();
            let instr =
                Instr::new(op, operands, shape).named(format!("i{}", computation.instrs().len()));
            computation.push(instr).unwrap();
        };
        for (number, &element) in params.iter().enumerate() {
            let shape = Shape::scalar(element);
            push(Parameter { number, shape: shape.clone() }.into(), &[], shape);
        }
        for (op, operands, shape) in ops {
            push(op.clone(), operands, shape.clone());
        }
        self.module.push(computation).unwrap()
    }

    pub(crate) fn evaluator(&self) -> Evaluator<'_> {
        self.evaluator_in(&self.cx)
    }

    /// An evaluator in a context of its own, as each participant of an execution has.
    pub(crate) fn evaluator_in<'a>(&'a self, cx: &'a Context) -> Evaluator<'a> {
        Evaluator::new(&self.module, cx)
    }
}

/// An operation's implementation.
type Function<O> = fn(&O, &Evaluator<'_>, &[Literal], &Shape) -> Result<Literal>;

/// Runs an operation that calls no computation.
pub(crate) fn run<O>(
    function: Function<O>,
    op: O,
    args: &[&Array],
    shape: &ArrayShape,
) -> Result<Array> {
    let bench = Bench::new();
    run_on(&bench.evaluator(), function, op, args, shape)
}

/// Runs an operation with a single result.
pub(crate) fn run_on<O>(
    evaluator: &Evaluator<'_>,
    function: Function<O>,
    op: O,
    args: &[&Array],
    shape: &ArrayShape,
) -> Result<Array> {
    let results = run_all(evaluator, function, op, args, &shape.clone().into())?;
    let [result] = <[Array; 1]>::try_from(results).unwrap();
    Ok(result)
}

/// Runs an operation; all the arrays of its result.
pub(crate) fn run_all<O>(
    evaluator: &Evaluator<'_>,
    function: Function<O>,
    op: O,
    args: &[&Array],
    shape: &Shape,
) -> Result<Vec<Array>> {
    let args: Vec<Literal> = args.iter().map(|&arg| arg.clone().into()).collect();
    let result = function(&op, evaluator, &args, shape)?;
    assert!(result.shape().same(shape), "{} instead of {shape}", result.shape());
    Ok(result.leaves().into_iter().map(|leaf| leaf.as_array().unwrap().clone()).collect())
}

/// An array.
pub(crate) fn of<T: Native>(dims: &[usize], values: &[T]) -> Array {
    Array::new(dims, values.to_vec()).unwrap()
}

/// The `s32` array that counts from 0.
pub(crate) fn counting(dims: &[usize]) -> Array {
    let count = dims.iter().product::<usize>();
    Array::new(dims, (0..count as i32).collect()).unwrap()
}

/// The shape of static sizes.
pub(crate) fn shape(element: ElementType, dims: &[usize]) -> ArrayShape {
    ArrayShape::new(element, dims).unwrap()
}

/// The shape in which the dimensions listed are bounded.
pub(crate) fn bounded(element: ElementType, dims: &[usize], which: &[usize]) -> ArrayShape {
    let kind = |d| if which.contains(&d) { DimKind::Bounded } else { DimKind::Static };
    let kinds = (0..dims.len()).map(kind).collect();
    ArrayShape::with_kinds(element, dims.to_vec(), kinds).unwrap()
}

/// The array with these bounded dimensions and these sizes at run time.
pub(crate) fn resized(array: &Array, which: &[usize], sizes: &[usize]) -> Array {
    let shape = bounded(array.element(), array.dims(), which);
    array.with_shape(shape).unwrap().with_sizes(sizes.to_vec()).unwrap()
}

/// The values.
pub(crate) fn values<T: Native>(array: &Array) -> Vec<T> {
    array.values::<T>().unwrap().to_vec()
}

/// An array by its definition: the value at each index.
pub(crate) fn defined(dims: &[usize], mut value: impl FnMut(&[usize]) -> i32) -> Array {
    let mut points = IndexIter::new(dims);
    let mut result = Vec::new();
    while let Some(point) = points.next_point() {
        result.push(value(point));
    }
    of(dims, &result)
}

/// The element at an index.
pub(crate) fn at(array: &Array, index: &[usize]) -> i32 {
    let place: usize = zip(index, strides(array.dims())).map(|(i, s)| i * s).sum();
    array.values::<i32>().unwrap()[place]
}

/// Asserts that shape, sizes and elements agree.
pub(crate) fn same(found: &Array, expected: &Array) {
    assert!(found.same_bits(expected), "{found:?} instead of {expected:?}");
}

/// Numbers that look random, the same on every run (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    /// Dimensions of an array of a few elements: any rank from 0 to 8, sizes 0, 1 and primes.
    pub(crate) fn dims(&mut self) -> Vec<usize> {
        let rank = self.below(9);
        let mut room = 500;
        let mut dim = || {
            let dim = [0, 1, 1, 2, 2, 3, 5, 7, 13][self.below(9)];
            let dim = if dim > room { 1 } else { dim };
            room /= dim.max(1);
            dim
        };
        (0..rank).map(|_| dim()).collect()
    }
}

/// Runs `f` on an evaluator of an empty module with one participant.
pub(crate) fn on_evaluator<R>(f: impl FnOnce(&Evaluator<'_>) -> R) -> R {
    on_evaluator_in(&Context::default(), f)
}

/// Runs `f` on an evaluator of an empty module in this context.
pub(crate) fn on_evaluator_in<R>(cx: &Context, f: impl FnOnce(&Evaluator<'_>) -> R) -> R {
    f(&Evaluator::new(&Module::new("test"), cx))
}

/// Small integers without a visible order, `(a * i + b) % m - m / 2`: simple enough to be made
/// again by whatever computes the expected values.
pub(crate) fn pattern(count: usize, a: usize, b: usize, m: usize) -> Vec<i32> {
    (0..count).map(|i| ((a * i + b) % m) as i32 - (m / 2) as i32).collect()
}
