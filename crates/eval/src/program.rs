//! Straight-line programs on single elements: computations of scalars, flattened once.
//!
//! A program agrees bit for bit with the evaluator: its steps are the functions that arrays are
//! mapped with.

use std::rc::Rc;

use helio_ir::{
    BinaryOp, CompId, Computation, ElementType, Error, Instr, Native, Number, Op, Result,
    dispatch_type,
};

use crate::element::{self, Use1, Use2};
use crate::scalar::Scalar;
use crate::{Evaluator, Subnormals};

/// A function of the bits of up to three operands; further ones are ignored.
type BitsFn = Box<dyn Fn([u128; 3]) -> u128>;

/// Makes a function of bits from one of elements.
struct OnBits;

impl Use1 for OnBits {
    type Output = BitsFn;
    fn with<A: Native, R: Native>(self, f: impl Fn(A) -> R + 'static) -> Result<BitsFn> {
        Ok(Box::new(move |[x, _, _]| f(A::from_bits(x)).to_bits()))
    }
}

impl Use2 for OnBits {
    type Output = BitsFn;
    fn with<A: Native, R: Native>(self, f: impl Fn(A, A) -> R + 'static) -> Result<BitsFn> {
        Ok(Box::new(move |[x, y, _]| f(A::from_bits(x), A::from_bits(y)).to_bits()))
    }
}

/// Straight-line code on registers, each of which holds the bits of an element.
pub(crate) struct ScalarProgram {
    /// Parameters first, in order; then constants and results of steps, as they came up.
    registers: Vec<u128>,
    params: Vec<ElementType>,
    steps: Vec<Step>,
    results: Vec<(ElementType, usize)>,
    instructions: u64,
}

/// Sets one register from others.
struct Step {
    function: BitsFn,
    operands: [usize; 3],
    result: usize,
}

impl ScalarProgram {
    /// The program for a computation; `None` if it is not of the kind that has one.
    pub(crate) fn new(evaluator: &Evaluator<'_>, computation: CompId) -> Option<ScalarProgram> {
        let params = evaluator.module.computation(computation).params();
        let mut program = ScalarProgram {
            registers: vec![0; params.len()],
            params: Vec::new(),
            steps: Vec::new(),
            results: Vec::new(),
            instructions: 0,
        };
        let mut args = Vec::new();
        for (number, (&claimed, &id)) in params.iter().enumerate() {
            let shape = evaluator.module.computation(computation).instr(id).shape.as_array()?;
            if claimed != number || !shape.is_scalar() {
                return None;
            }
            program.params.push(shape.element());
            args.push(Value::Scalar(shape.element(), number));
        }
        let root = program.inline(evaluator, computation, &args, 0)?;
        program.flatten(&root)?;
        Some(program)
    }

    /// What a run counts as: as many as the evaluator would count.
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Adds the code of a computation for these arguments; the value of its root.
    fn inline(
        &mut self,
        evaluator: &Evaluator<'_>,
        computation: CompId,
        args: &[Value],
        depth: usize,
    ) -> Option<Value> {
        if depth > MAX_INLINE_DEPTH {
            return None;
        }
        let computation: &Computation = evaluator.module.computation(computation);
        let mut values: Vec<Value> = Vec::new();
        for instr in computation.instrs() {
            if self.instructions > MAX_INSTRUCTIONS {
                return None;
            }
            let operand = |i: usize| instr.operands.get(i).map(|id| &values[id.index()]);
            let value = match &instr.op {
                Op::Parameter(param) => args.get(param.number)?.clone(),
                op => {
                    self.instructions += 1;
                    match op {
                        Op::Tuple(_) => {
                            let elements =
                                instr.operands.iter().map(|id| values[id.index()].clone());
                            Value::Tuple(elements.collect())
                        }
                        Op::GetTupleElement(op) => match operand(0)? {
                            Value::Tuple(elements) => elements.get(op.index)?.clone(),
                            Value::Scalar(..) => return None,
                        },
                        Op::Copy(_) => operand(0)?.clone(),
                        Op::Call(op) => {
                            let args = instr.operands.iter().map(|id| values[id.index()].clone());
                            let args: Vec<Value> = args.collect();
                            self.inline(evaluator, op.to_apply, &args, depth + 1)?
                        }
                        Op::Constant(op) if !op.elided => {
                            let constant = op.literal.as_array()?;
                            if !constant.shape().is_scalar() {
                                return None;
                            }
                            self.registers.push(constant.bits(0));
                            Value::Scalar(constant.element(), self.registers.len() - 1)
                        }
                        _ => self.step(evaluator.cx.subnormals, instr, &values)?,
                    }
                }
            };
            values.push(value);
        }
        Some(values[computation.root().index()].clone())
    }

    /// Adds the step for an element-wise operation.
    fn step(&mut self, subnormals: Subnormals, instr: &Instr, values: &[Value]) -> Option<Value> {
        let shape = instr.shape.as_array().filter(|shape| shape.is_scalar())?;
        let mut operands = [0; 3];
        let mut element = shape.element();
        if instr.operands.len() > operands.len() {
            return None;
        }
        // Their last operand has the type that decides which function it is.
        for (operand, id) in operands.iter_mut().zip(&instr.operands) {
            let Value::Scalar(ty, register) = values[id.index()] else { return None };
            (*operand, element) = (register, ty);
        }
        let function = bits_fn(&instr.op, element, subnormals)?;
        self.registers.push(0);
        let result = self.registers.len() - 1;
        self.steps.push(Step { function, operands, result });
        Some(Value::Scalar(shape.element(), result))
    }

    fn flatten(&mut self, value: &Value) -> Option<()> {
        match value {
            Value::Scalar(element, register) => self.results.push((*element, *register)),
            Value::Tuple(elements) => {
                for element in elements.iter() {
                    self.flatten(element)?;
                }
            }
        }
        (self.results.len() as u64 <= MAX_INSTRUCTIONS).then_some(())
    }

    /// Appends the results for these arguments to `results`.
    pub(crate) fn run(&mut self, args: &[Scalar], results: &mut Vec<Scalar>) -> Result<()> {
        if args.len() != self.params.len() {
            return Err(Error::internal("wrong number of arguments"));
        }
        for ((register, arg), &element) in self.registers.iter_mut().zip(args).zip(&self.params) {
            *register = arg.converted(element).bits;
        }
        for step in &self.steps {
            let result = (step.function)(step.operands.map(|operand| self.registers[operand]));
            self.registers[step.result] = result;
        }
        for &(element, register) in &self.results {
            results.push(Scalar { element, bits: self.registers[register] });
        }
        Ok(())
    }
}

/// Where the value of an instruction is.
#[derive(Clone)]
enum Value {
    Scalar(ElementType, usize),
    Tuple(Rc<[Value]>),
}

/// Nested calls that are inlined; a computation with deeper ones is left to the evaluator.
const MAX_INLINE_DEPTH: usize = 32;

/// Instructions (and results) of a program: calls inlined in calls must not multiply without end.
const MAX_INSTRUCTIONS: u64 = 4096;

/// The function of bits that an operation is, on operands of this type; `None` if it is not one
/// of scalars.
fn bits_fn(op: &Op, element: ElementType, subnormals: Subnormals) -> Option<BitsFn> {
    match op {
        Op::Unary(op) => element::unary(*op, element, subnormals, OnBits).ok(),
        Op::Binary(op) => element::binary(*op, element, subnormals, OnBits).ok(),
        Op::Compare(op) => element::compare(*op, element, subnormals, OnBits).ok(),
        Op::ReducePrecision(op) => element::reduce_precision(*op, element, OnBits).ok(),
        Op::Select(_) => {
            Some(Box::new(
                |[pred, on_true, on_false]| {
                    if <bool as Native>::from_bits(pred) { on_true } else { on_false }
                },
            ))
        }
        Op::Clamp(_) => {
            let maximum = element::binary(BinaryOp::Maximum, element, subnormals, OnBits).ok()?;
            let minimum = element::binary(BinaryOp::Minimum, element, subnormals, OnBits).ok()?;
            Some(Box::new(move |[lo, x, hi]| minimum([maximum([x, lo, 0]), hi, 0])))
        }
        Op::Convert(op) if op.element == element => Some(Box::new(|[x, _, _]| x)),
        Op::Convert(op) => {
            let to_number = dispatch_type!(element, T => {
                |bits| <T as Native>::from_bits(bits).to_number()
            } as fn(u128) -> Number);
            let from_number = dispatch_type!(op.element, T => {
                |number| Native::to_bits(T::from_number(number))
            } as fn(Number) -> u128);
            let flush = subnormals.of_conversion(element, op.element);
            Some(Box::new(move |[x, _, _]| from_number(flush.number(to_number(x)))))
        }
        Op::BitcastConvert(op) if op.element.bits() == element.bits() => {
            // Through the type: `pred` has fewer values than its bits.
            let normalize = dispatch_type!(op.element, T => {
                |bits| Native::to_bits(<T as Native>::from_bits(bits))
            } as fn(u128) -> u128);
            Some(Box::new(move |[x, _, _]| normalize(x)))
        }
        _ => None,
    }
}
