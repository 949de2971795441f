//! Rules for operations on constants: their value is computed now.

use helio_eval::{ASSERT, Context, Evaluator};
use helio_ir::ops::{Broadcast, Constant, Parameter, Reads, Slice};
use helio_ir::{
    Array, ArrayShape, Computation, InstrId, Literal, Module, Number, Op, Result, Shape,
};

use super::Simplifier;
use crate::draft::unnamed;

/// Neither operands nor result of what is folded have more elements: large constants cost memory
/// and time that computing them again does not.
pub(crate) const MAX_ELEMENTS: usize = 4096;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    match op {
        Op::Constant(op) if !op.elided => splat(cx, &op.literal),
        // An iota of one element is 0; longer ones are cheap to compute.
        Op::GetDimensionSize(op) => {
            let size = cx.draft.array(operands[0]).map(|array| array.dims()[op.dimension] as i32);
            let size = size.map(|size| Constant::new(Array::scalar(size)));
            size.map(|size| cx.add(size, &[])).transpose()
        }
        // What is met needs no check in the run.
        Op::CustomCall(op) if op.target == ASSERT => match operands {
            &[is_met, value, ..]
                if cx.splat(is_met) == Some(Number::Pred(true))
                    && cx.draft.shape(value) == shape =>
            {
                Ok(Some(value))
            }
            _ => Ok(None),
        },
        _ => evaluated(cx, op, operands, shape),
    }
}

/// A constant whose elements are all the same → broadcast of a scalar: the one form in which rules
/// and kernels look for it.
fn splat(cx: &mut Simplifier<'_, '_>, literal: &Literal) -> Result<Option<InstrId>> {
    let Some(array) = literal.as_array() else { return Ok(None) };
    let count = array.data().len();
    if array.shape().is_scalar() || count == 0 {
        return Ok(None);
    }
    if !array.is_uniform() {
        return Ok(None);
    }
    let scalar = element(array, 0)?;
    let scalar = cx.add(Constant::new(scalar), &[])?;
    let shape = array.shape().clone().without_layout();
    cx.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar]).map(Some)
}

/// One element of an array.
fn element(array: &Array, index: usize) -> Result<Array> {
    let size = array.element().size_bytes();
    let bits = array.bits(index).to_le_bytes();
    Array::from_bytes(ArrayShape::scalar(array.element()), &bits[..size])
}

/// What an operation gives on constants, if it is one of elements or movement.
fn evaluated(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    if operands.is_empty() || !may_fold(op) {
        return Ok(None);
    }
    let Some(result) = shape.as_array().filter(|array| array.element_count() <= MAX_ELEMENTS)
    else {
        return Ok(None);
    };
    // (An array of equal elements is small as it is: with others alone, operations move behind its broadcast.)
    let is_small =
        |id: &InstrId| cx.draft.array(*id).is_some_and(|a| a.element_count() <= MAX_ELEMENTS);
    let is_known = |id: &InstrId| is_small(id) && known(cx, *id).is_some();
    if !operands.iter().all(is_known) || !operands.iter().any(|&id| cx.constant(id).is_some()) {
        return Ok(None);
    }
    let surroundings = Context { subnormals: cx.subnormals, ..Context::default() };
    let literal = |&id: &InstrId| {
        let value = Literal::Array(known(cx, id)?.clone());
        if cx.constant(id).is_some() {
            return Some(value);
        }
        let shape = cx.draft.array(id)?.clone().without_layout();
        let repeat = Broadcast { shape: shape.clone(), dimensions: Vec::new() };
        evaluate(&repeat.into(), vec![value], &shape.into(), &surroundings).ok()
    };
    // What the interpreter cannot compute is left for the run to report.
    let Some(literals) = operands.iter().map(literal).collect() else { return Ok(None) };
    let value = evaluate(op, literals, shape, &surroundings);
    let Ok(Literal::Array(value)) = value else { return Ok(None) };
    let value = value.with_shape(result.clone().without_layout())?;
    cx.add(Constant::new(value), &[]).map(Some)
}

/// A part of an array: of a constant a constant, however large it is. (For parts that take no more memory together than the
/// constant does.)
pub(super) fn part(cx: &mut Simplifier<'_, '_>, part: Slice, operand: InstrId) -> Result<InstrId> {
    let op = part.into();
    let Some(constant) = cx.constant(operand).cloned() else { return cx.add(op, &[operand]) };
    let shape = cx.draft.infer(&op, &[operand])?;
    let surroundings = Context { subnormals: cx.subnormals, ..Context::default() };
    let value = evaluate(&op, vec![Literal::Array(constant)], &shape, &surroundings);
    match value {
        Ok(Literal::Array(value)) => cx.add(Constant::new(value), &[]),
        _ => cx.add(op, &[operand]),
    }
}

/// The elements of a constant, or the one that all elements are equal to.
fn known<'a>(cx: &'a Simplifier<'_, '_>, id: InstrId) -> Option<&'a Array> {
    cx.constant(id).or_else(|| cx.constant(cx.scalar_of(id)?))
}

/// Broadcasts and gathers make constants large, and what calls computations may take long.
pub(crate) fn may_fold(op: &Op) -> bool {
    match op.reads() {
        Reads::Aligned => op.callees().is_empty(),
        Reads::Placed => !matches!(op, Op::Broadcast(_) | Op::Gather(_) | Op::DynamicReshape(_)),
        Reads::Nothing | Reads::Folded | Reads::Memory | Reads::Whole => false,
    }
}

fn evaluate(op: &Op, args: Vec<Literal>, shape: &Shape, cx: &Context) -> Result<Literal> {
    let mut computation = Computation::new("fold");
    let mut operands = Vec::with_capacity(args.len());
    for (number, arg) in args.iter().enumerate() {
        let shape = arg.shape();
        let parameter = Parameter { number, shape: shape.clone() };
        operands.push(computation.push(unnamed(parameter.into(), &[], shape))?);
    }
    computation.push(unnamed(op.clone(), &operands, shape.clone()))?;
    let mut module = Module::new("fold");
    let id = module.push(computation)?;
    Evaluator::new(&module, cx).call(id, args)
}
