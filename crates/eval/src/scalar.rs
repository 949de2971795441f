//! Single elements, and computations on them: what reduce, map, sort and scatter call.

use helio_ir::{
    Array, ArrayShape, CompId, ElementType, Error, Literal, Native, Result, dispatch_type,
};

use crate::Evaluator;
use crate::program::ScalarProgram;

/// One element with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) element: ElementType,
    pub(crate) bits: u128,
}

impl Scalar {
    pub(crate) fn new<T: Native>(value: T) -> Self {
        Scalar { element: T::TYPE, bits: Native::to_bits(value) }
    }

    /// The element at a place in row-major order.
    pub(crate) fn of(array: &Array, index: usize) -> Self {
        Scalar { element: array.element(), bits: array.bits(index) }
    }

    /// Errors: `Internal` if it has another type.
    pub(crate) fn get<T: Native>(self) -> Result<T> {
        if self.element == T::TYPE {
            Ok(T::from_bits(self.bits))
        } else {
            Err(Error::internal(format!("a scalar of {} taken for {}", self.element, T::TYPE)))
        }
    }

    /// What it converts to; itself if it has that type.
    pub(crate) fn converted(self, element: ElementType) -> Self {
        if self.element == element {
            return self;
        }
        let number =
            dispatch_type!(self.element, T => <T as Native>::from_bits(self.bits).to_number());
        dispatch_type!(element, T => Scalar::new(T::from_number(number)))
    }

    pub(crate) fn to_literal(self) -> Literal {
        dispatch_type!(self.element, T => Literal::scalar(<T as Native>::from_bits(self.bits)))
    }
}

/// A computation from scalars to a scalar or a tuple of scalars, ready to be called many times.
///
/// One that consists of element-wise operations on scalars is flattened into a [`ScalarProgram`] once,
/// whose calls then allocate nothing; it uses the functions that arrays are mapped with. Any other
/// computation is run by the evaluator.
pub(crate) struct ScalarFn<'a> {
    evaluator: &'a Evaluator<'a>,
    computation: CompId,
    program: Option<ScalarProgram>,
    /// The types of the parameters, if they are scalars.
    params: Vec<Option<ElementType>>,
}

impl<'a> ScalarFn<'a> {
    pub(crate) fn new(evaluator: &'a Evaluator<'a>, computation: CompId) -> Self {
        let program = ScalarProgram::new(evaluator, computation);
        let callee = evaluator.module.computation(computation);
        let element = |&id| callee.instr(id).shape.as_array().map(ArrayShape::element);
        let params = callee.params().values().map(element).collect();
        ScalarFn { evaluator, computation, program, params }
    }

    /// Appends the results to `results`, after clearing it. Arguments are converted to the types of
    /// the parameters: those of a reducer may be other floats than the elements it folds.
    pub(crate) fn call(&mut self, args: &[Scalar], results: &mut Vec<Scalar>) -> Result<()> {
        results.clear();
        if let Some(program) = &mut self.program {
            self.evaluator.count_steps(program.instructions())?;
            return program.run(args, results);
        }
        let params = self.params.iter().copied().chain(std::iter::repeat(None));
        let args = args.iter().zip(params).map(|(arg, param)| match param {
            Some(element) => arg.converted(element).to_literal(),
            None => arg.to_literal(),
        });
        let value = self.evaluator.call(self.computation, args.collect())?;
        for leaf in value.leaves() {
            let array = leaf.as_array().ok_or_else(|| Error::internal("not a scalar"))?;
            results.push(Scalar::of(array, 0));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::ops::{
        BitcastConvert, Call, Clamp, Compare, Constant, Convert, Copy, Direction, GetTupleElement,
        Order, Parameter, ReducePrecision, Select, Tuple,
    };
    use helio_ir::{BinaryOp, Computation, Instr, InstrId, Module, Op, Shape, UnaryOp};

    use super::*;
    use crate::testing::Random;
    use crate::{Context, Limits};

    const F32: ElementType = ElementType::F32;
    const S32: ElementType = ElementType::S32;

    /// A computation in the making.
    struct Builder(Computation);

    impl Builder {
        fn new(name: &str) -> Self {
            Builder(Computation::new(name))
        }

        fn push(&mut self, op: impl Into<Op>, operands: &[u32], shape: Shape) -> u32 {
            let operands: Vec<_> = operands.iter().map(|&i| InstrId(i)).collect();
            let instr =
                Instr::new(op, operands, shape).named(format!("i{}", self.0.instrs().len()));
            self.0.push(instr).unwrap().0
        }

        fn scalar(&mut self, op: impl Into<Op>, operands: &[u32], element: ElementType) -> u32 {
            self.push(op, operands, Shape::scalar(element))
        }

        fn param(&mut self, number: usize, element: ElementType) -> u32 {
            let shape = Shape::scalar(element);
            self.scalar(Parameter { number, shape }, &[], element)
        }

        fn constant<T: Native>(&mut self, value: T) -> u32 {
            self.scalar(Constant::new(Literal::scalar(value)), &[], T::TYPE)
        }

        fn tuple(&mut self, operands: &[u32]) -> u32 {
            let shapes = operands.iter().map(|&i| self.0.instr(InstrId(i)).shape.clone()).collect();
            self.push(Tuple, operands, Shape::Tuple(shapes))
        }

        fn element(&mut self, tuple: u32, index: usize) -> u32 {
            let shape = self.0.instr(InstrId(tuple)).shape.as_tuple().unwrap()[index].clone();
            self.push(GetTupleElement { index }, &[tuple], shape)
        }

        fn call(&mut self, to_apply: CompId, operands: &[u32], shape: Shape) -> u32 {
            self.push(Call { to_apply, is_composite: false }, operands, shape)
        }
    }

    /// Runs a computation as a program and by the evaluator; both must agree on results and steps.
    fn check(module: &Module, computation: CompId, args: &[Scalar]) -> Vec<Scalar> {
        let run = |with_program: bool| {
            let steps = |max_steps: u64| {
                let limits = Limits { max_steps: Some(max_steps), ..Limits::default() };
                let cx = Context { limits, ..Context::default() };
                let evaluator = Evaluator::new(module, &cx);
                let mut function = ScalarFn::new(&evaluator, computation);
                assert!(function.program.is_some());
                if !with_program {
                    function.program = None;
                }
                let mut results = vec![Scalar::new(1u8)];
                function.call(args, &mut results).map(|()| results)
            };
            let needed = (0..).find(|&max| steps(max).is_ok()).unwrap();
            (needed, steps(needed).unwrap())
        };
        let (program, evaluator) = (run(true), run(false));
        assert_eq!(program, evaluator);
        program.1
    }

    fn check_single(builder: Builder, args: &[Scalar]) -> Vec<Scalar> {
        let mut module = Module::new("test");
        let id = module.push(builder.0).unwrap();
        check(&module, id, args)
    }

    #[test]
    fn parameters_in_another_order_and_unused() {
        let mut b = Builder::new("f");
        let y = b.param(1, F32);
        b.param(2, S32);
        let x = b.param(0, F32);
        b.scalar(BinaryOp::Subtract, &[x, y], F32);
        let args = [Scalar::new(5f32), Scalar::new(3f32), Scalar::new(0i32)];
        assert_eq!(check_single(b, &args), [Scalar::new(2f32)]);
    }

    #[test]
    fn the_root_is_a_parameter_or_a_constant() {
        let mut b = Builder::new("f");
        b.param(0, F32);
        b.param(1, F32);
        assert_eq!(check_single(b, &[Scalar::new(1f32), Scalar::new(2f32)]), [Scalar::new(2f32)]);
        let mut b = Builder::new("f");
        b.param(0, F32);
        b.constant(7i32);
        assert_eq!(check_single(b, &[Scalar::new(1f32)]), [Scalar::new(7i32)]);
    }

    #[test]
    fn the_root_need_not_be_last() {
        let mut b = Builder::new("f");
        let x = b.param(0, F32);
        let root = b.scalar(UnaryOp::Negate, &[x], F32);
        b.scalar(UnaryOp::Abs, &[root], F32);
        b.0.set_root(InstrId(root));
        assert_eq!(check_single(b, &[Scalar::new(1f32)]), [Scalar::new(-1f32)]);
    }

    #[test]
    fn tuples_nest_and_open_up() {
        let mut b = Builder::new("f");
        let (x, y) = (b.param(0, F32), b.param(1, S32));
        let inner = b.tuple(&[y, x]);
        let outer = b.tuple(&[inner, y, inner]);
        let again = b.element(outer, 2);
        let y = b.element(again, 0);
        b.tuple(&[outer, y]);
        let (x, y) = (Scalar::new(1f32), Scalar::new(2i32));
        assert_eq!(check_single(b, &[x, y]), [y, x, y, y, x, y]);
    }

    #[test]
    fn calls_are_inlined() {
        let mut module = Module::new("test");
        let mut b = Builder::new("swap");
        let (x, y) = (b.param(0, F32), b.param(1, F32));
        b.tuple(&[y, x]);
        let shape = b.0.result_shape().clone();
        let swap = module.push(b.0).unwrap();
        let mut b = Builder::new("f");
        let (x, y) = (b.param(0, F32), b.param(1, F32));
        let pair = b.call(swap, &[x, y], shape);
        let (y, x) = (b.element(pair, 0), b.element(pair, 1));
        b.scalar(BinaryOp::Divide, &[y, x], F32);
        let id = module.push(b.0).unwrap();
        let args = [Scalar::new(4f32), Scalar::new(1f32)];
        assert_eq!(check(&module, id, &args), [Scalar::new(0.25f32)]);
    }

    #[test]
    fn all_kinds_of_steps() {
        let mut random = Random(1);
        for _ in 0..200 {
            let mut b = Builder::new("f");
            let (x, y) = (b.param(0, F32), b.param(1, F32));
            let compare = Compare { direction: Direction::Lt, order: Order::Total };
            let less = b.scalar(compare, &[x, y], ElementType::Pred);
            let low = b.scalar(Select, &[less, x, y], F32);
            let clamped = b.scalar(Clamp, &[low, x, y], F32);
            let integer = b.scalar(Convert { element: S32 }, &[clamped], S32);
            let one = b.constant(1i32);
            let sum = b.scalar(BinaryOp::Add, &[integer, one], S32);
            let bits = b.scalar(BitcastConvert { element: F32 }, &[sum], F32);
            let root = b.scalar(UnaryOp::Sqrt, &[bits], F32);
            let precision = ReducePrecision { exponent_bits: 5, mantissa_bits: 3 };
            let reduced = b.scalar(precision, &[y], F32);
            let complex = b.scalar(BinaryOp::Complex, &[reduced, x], ElementType::C64);
            let magnitude = b.scalar(UnaryOp::Abs, &[complex], F32);
            let copy = b.scalar(Copy, &[magnitude], F32);
            b.tuple(&[less, low, clamped, sum, root, reduced, complex, copy]);
            let float = |bits: usize| Scalar::new(f32::from_bits(bits as u32));
            let args = [float(random.below(1 << 32)), float(random.below(1 << 32))];
            assert_eq!(check_single(b, &args).len(), 8);
        }
    }

    #[test]
    fn other_computations_are_left_to_the_evaluator() {
        let mut b = Builder::new("f");
        let x = b.param(0, F32);
        let shape = ArrayShape::scalar(F32);
        b.scalar(helio_ir::ops::Broadcast { dimensions: vec![], shape }, &[x], F32);
        let mut module = Module::new("test");
        let id = module.push(b.0).unwrap();
        let cx = Context::default();
        let evaluator = Evaluator::new(&module, &cx);
        let mut function = ScalarFn::new(&evaluator, id);
        assert!(function.program.is_none());
        let mut results = Vec::new();
        function.call(&[Scalar::new(3f32)], &mut results).unwrap();
        assert_eq!(results, [Scalar::new(3f32)]);
    }

    #[test]
    fn calls_that_multiply_do_not_become_a_program() {
        let mut module = Module::new("test");
        let mut b = Builder::new("f0");
        let x = b.param(0, F32);
        b.scalar(UnaryOp::Negate, &[x], F32);
        let mut last = module.push(b.0).unwrap();
        for i in 1..30 {
            let mut b = Builder::new(&format!("f{i}"));
            let x = b.param(0, F32);
            let once = b.call(last, &[x], Shape::scalar(F32));
            b.call(last, &[once], Shape::scalar(F32));
            last = module.push(b.0).unwrap();
        }
        let cx = Context::default();
        let evaluator = Evaluator::new(&module, &cx);
        assert!(ScalarFn::new(&evaluator, last).program.is_none());
    }

    #[test]
    fn missing_arguments_are_errors() {
        let mut b = Builder::new("f");
        let x = b.param(0, F32);
        b.scalar(UnaryOp::Negate, &[x], F32);
        let mut module = Module::new("test");
        let id = module.push(b.0).unwrap();
        let cx = Context::default();
        let evaluator = Evaluator::new(&module, &cx);
        let mut function = ScalarFn::new(&evaluator, id);
        let mut results = Vec::new();
        assert!(function.call(&[], &mut results).is_err());
    }

    #[test]
    fn a_limit_on_steps_ends_the_calls() {
        let mut b = Builder::new("f");
        let (x, y) = (b.param(0, F32), b.param(1, F32));
        b.scalar(BinaryOp::Add, &[x, y], F32);
        let mut module = Module::new("test");
        let id = module.push(b.0).unwrap();
        let limits = Limits { max_steps: Some(10), ..Limits::default() };
        let cx = Context { limits, ..Context::default() };
        let evaluator = Evaluator::new(&module, &cx);
        let mut function = ScalarFn::new(&evaluator, id);
        let mut results = Vec::new();
        let args = [Scalar::new(1f32), Scalar::new(2f32)];
        let calls = (0..100).take_while(|_| function.call(&args, &mut results).is_ok()).count();
        assert_eq!(calls, 10);
    }
}
