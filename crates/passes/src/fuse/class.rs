//! What fusion needs to know of each operation.

use helio_ir::ops::Cost;
use helio_ir::{
    ArrayShape, BinaryOp, Computation, ElementType, Instr, InstrId, Op, Shape, UnaryOp,
};

/// What an instruction can be within a fusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Never part of one.
    Boundary,
    /// A few words of the program: constants of one value, iotas, and what only renames elements.
    /// Wherever it is needed, it is made anew.
    Free,
    /// Moves elements in a way that costs comparisons or irregular reads.
    Movement,
    /// Computes an element of its result from an element of each operand, in an instruction or few.
    Cheap,
    /// Likewise, at some expense; or a fold of a few elements.
    Costly,
    /// Folds many elements.
    Reduce,
    /// Changes a part of an array, in place.
    Update,
}

/// Folds over so few elements are written out.
pub(super) const MAX_WRITTEN_OUT: usize = 8;
/// Transposes of more elements that do not keep the last dimension have a kernel of their own.
const MAX_TRANSPOSED: usize = 1 << 12;
/// Elements so far apart are read, and written, as whole vectors.
const MAX_APART: usize = 8;
/// Concatenations of more operands are left alone.
const MAX_JOINED: usize = 8;

/// The class of an instruction.
pub(super) fn class(computation: &Computation, instr: &Instr) -> Class {
    let operand = |i: usize| array(computation, instr.operands[i]);
    let held = |shape: &ArrayShape| shape.is_static() && is_held(shape.element());
    let Some(shape) = instr.shape.as_array() else {
        // Folds of several arrays at once.
        return match &instr.op {
            Op::Reduce(_) if is_plain_reduce(computation, instr) => Class::Reduce,
            _ => Class::Boundary,
        };
    };
    if !held(shape) || shape.element_count() == 0 {
        return Class::Boundary;
    }
    if instr.operands.iter().any(|&id| array(computation, id).is_none_or(|shape| !held(shape))) {
        return Class::Boundary;
    }
    match &instr.op {
        Op::Constant(op) if !op.elided && shape.element_count() == 1 => Class::Free,
        Op::Iota(_) | Op::Broadcast(_) | Op::Reshape(_) | Op::Slice(_) | Op::Reverse(_) => {
            Class::Free
        }
        Op::Transpose(op) => {
            let moved = op.permutation.iter().enumerate().filter(|&(i, _)| shape.dims()[i] != 1);
            let last = moved.clone().next_back().map(|(_, &d)| d);
            let kept = last == moved.map(|(_, &d)| d).max();
            if kept || shape.element_count() <= MAX_TRANSPOSED {
                Class::Free
            } else if operand(0).is_some_and(|from| stays_near(from, shape, &op.permutation)) {
                Class::Movement
            } else {
                Class::Boundary
            }
        }
        Op::Pad(op) if op.dims.iter().all(|dim| dim.interior == 0) => Class::Movement,
        Op::Concatenate(_) if instr.operands.len() <= MAX_JOINED => Class::Movement,
        Op::DynamicSlice(_) => Class::Movement,
        Op::Gather(_) => Class::Movement,
        Op::DynamicUpdateSlice(_) => Class::Update,
        Op::Reduce(op) => {
            let Some(from) = operand(0) else { return Class::Boundary };
            let elements: usize = op.dimensions.iter().map(|&d| from.dims()[d]).product();
            match elements {
                0 => Class::Boundary,
                1..=MAX_WRITTEN_OUT => Class::Costly,
                _ => Class::Reduce,
            }
        }
        // Code has no recipe for the inverse functions of complex numbers,
        Op::Unary(
            UnaryOp::Acos
            | UnaryOp::Acosh
            | UnaryOp::Asin
            | UnaryOp::Asinh
            | UnaryOp::Atan
            | UnaryOp::Atanh
            | UnaryOp::Cbrt,
        ) if shape.element().is_complex() => Class::Boundary,
        Op::Unary(op) => costs(op.cost()),
        // nor for their angles.
        Op::Binary(BinaryOp::Atan2) if shape.element().is_complex() => Class::Boundary,
        Op::Binary(op) => costs(op.cost()),
        Op::Compare(_) | Op::Select(_) | Op::Clamp(_) => Class::Cheap,
        // The subnormal numbers of narrow floats are none where code computes.
        Op::ReducePrecision(op) => {
            let format = shape.element().float_format();
            let keeps = format.is_some_and(|format| {
                op.mantissa_bits >= format.mantissa_bits && op.exponent_bits >= format.exponent_bits
            });
            let cuts = shape.element().size_bytes() >= 4 || shape.element() == ElementType::BF16;
            if keeps || cuts { Class::Cheap } else { Class::Boundary }
        }
        Op::Convert(_) => Class::Cheap,
        Op::BitcastConvert(_) => {
            let of_same_width = |from: &ArrayShape| {
                from.element().bits() == shape.element().bits()
                    && (from.element() != ElementType::F16 || shape.element() == ElementType::F16)
                    && !(from.element().is_complex() || shape.element().is_complex())
            };
            if operand(0).is_some_and(of_same_width) { Class::Cheap } else { Class::Boundary }
        }
        _ => Class::Boundary,
    }
}

/// Whether a transpose leaves neighbours a few elements apart, in the operand or in the result.
fn stays_near(from: &ArrayShape, to: &ArrayShape, permutation: &[usize]) -> bool {
    let behind = |dims: &[usize], dim: usize| dims[dim + 1..].iter().product::<usize>();
    let last = |dims: &[usize]| dims.iter().rposition(|&size| size != 1);
    let (Some(read), Some(written)) = (last(to.dims()), last(from.dims())) else { return true };
    let written = permutation.iter().position(|&dim| dim == written);
    let written = written.map_or(usize::MAX, |dim| behind(to.dims(), dim));
    behind(from.dims(), permutation[read]) <= MAX_APART
        || written <= MAX_APART && from.element().size_bytes() >= 4
}

fn costs(cost: Cost) -> Class {
    match cost {
        Cost::Cheap => Class::Cheap,
        Cost::Division | Cost::Transcendental => Class::Costly,
    }
}

/// Whether generated code holds elements of a type.
fn is_held(ty: ElementType) -> bool {
    ty != ElementType::F8E8M0FNU
}

/// Whether a reduction of several arrays folds more than nothing, of types that code can hold.
fn is_plain_reduce(computation: &Computation, instr: &Instr) -> bool {
    let held = |shape: &ArrayShape| {
        shape.is_static() && is_held(shape.element()) && shape.element_count() > 0
    };
    let leaves = instr.shape.leaves();
    leaves.iter().all(|leaf| leaf.as_array().is_some_and(held))
        && instr.operands.iter().all(|&id| array(computation, id).is_some_and(held))
}

/// The shape of an instruction that is an array.
pub(super) fn array(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    match &computation.instr(id).shape {
        Shape::Array(shape) => Some(shape),
        _ => None,
    }
}
