//! What rules ask about values: whether they are constant, splats, zero with a sign; and how they
//! make constants.

use helio_ir::ops::{Broadcast, Constant, Yield};
use helio_ir::{
    Array, ArrayShape, BinaryOp, ElementType, InstrId, Native, Number, Op, Result, UnaryOp,
    dispatch_type,
};

use super::Simplifier;

/// The most instructions, each an operand of the one before, that are looked at to show a property
/// of a value.
const MAX_REASONS: usize = 8;

impl Simplifier<'_, '_> {
    /// The literal of a constant array whose value is known.
    pub(super) fn constant(&self, id: InstrId) -> Option<&Array> {
        match self.draft.op(id) {
            Op::Constant(op) if !op.elided => op.literal.as_array(),
            _ => None,
        }
    }

    /// The instruction of the scalar that all elements of a value are equal to.
    pub(super) fn scalar_of(&self, id: InstrId) -> Option<InstrId> {
        if self.draft.array(id)?.is_scalar() {
            return Some(id);
        }
        match self.draft.op(id) {
            Op::Broadcast(op) if op.dimensions.is_empty() => Some(self.draft.operands(id)[0]),
            _ => None,
        }
    }

    /// The number that all elements of a value are equal to, if it is known.
    pub(super) fn splat(&self, id: InstrId) -> Option<Number> {
        Some(self.constant(self.scalar_of(id)?)?.number(0))
    }

    /// A constant of this number in all elements.
    pub(super) fn splat_of(&mut self, shape: &ArrayShape, number: Number) -> Result<InstrId> {
        let scalar = self.scalar(shape.element(), number)?;
        self.broadcast_scalar(scalar, shape.dims())
    }

    /// A scalar constant.
    pub(super) fn scalar(&mut self, element: ElementType, number: Number) -> Result<InstrId> {
        let scalar = dispatch_type!(element, T => Array::scalar(T::from_number(number)));
        self.add(Constant::new(scalar), &[])
    }

    /// The scalar that changes no number with which it is combined, if there is one.
    pub(super) fn neutral(
        &mut self,
        op: BinaryOp,
        element: ElementType,
    ) -> Result<Option<InstrId>> {
        let Some(bits) = op.neutral(element) else { return Ok(None) };
        let scalar = dispatch_type!(element, T => Array::scalar(<T as Native>::from_bits(bits)));
        self.add(Constant::new(scalar), &[]).map(Some)
    }

    /// A scalar in all elements of an array of these sizes.
    pub(super) fn broadcast_scalar(&mut self, scalar: InstrId, dims: &[usize]) -> Result<InstrId> {
        let element = match self.draft.array(scalar) {
            Some(array) if !dims.is_empty() => array.element(),
            _ => return Ok(scalar),
        };
        let shape = ArrayShape::of_sizes(element, dims)?;
        self.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar])
    }

    /// Whether no element can be the negative zero. (NaN is allowed.)
    pub(super) fn is_never_negative_zero(&self, id: InstrId) -> bool {
        self.is_never_negative_zero_within(id, MAX_REASONS)
    }

    fn is_never_negative_zero_within(&self, id: InstrId, reasons: usize) -> bool {
        let instr = self.draft.instr(id);
        let is_never =
            |id: InstrId| reasons > 0 && self.is_never_negative_zero_within(id, reasons - 1);
        match (&instr.op, &instr.operands[..]) {
            (Op::Constant(_), _) => match self.splat(id) {
                Some(Number::Float(v)) => !(v == 0.0 && v.is_sign_negative()),
                _ => false,
            },
            (Op::Iota(_), _) => true,
            // All elements are elements of the only operand.
            (op, &[x]) if matches!(op.gives(), Yield::Moved | Yield::Same | Yield::Itself) => {
                is_never(x)
            }
            (Op::Unary(UnaryOp::Abs | UnaryOp::Exp | UnaryOp::Logistic), _) => true,
            // -0 + -0 is the only sum that is -0.
            (Op::Binary(BinaryOp::Add), &[a, b]) => is_never(a) || is_never(b),
            // A square has the sign +.
            (Op::Binary(BinaryOp::Multiply), &[a, b]) => a == b,
            // Neither is -0, or one is at least +0, which is above -0.
            (Op::Binary(BinaryOp::Maximum), &[a, b]) => {
                let is_positive = |id: InstrId| {
                    let number = self.splat(id);
                    matches!(number, Some(Number::Float(v)) if v >= 0.0 && v.is_sign_positive())
                };
                is_positive(a) || is_positive(b) || is_never(a) && is_never(b)
            }
            // A sum that begins with +0 is never -0, in whatever order it is taken.
            (Op::Reduce(_), &[_, init]) => {
                self.is_sum(id) && self.splat(init).is_some() && is_never(init)
            }
            _ => false,
        }
    }
}

/// Whether a number is zero with the sign `+`, or the integer zero.
pub(super) fn is_positive_zero(number: Number) -> bool {
    match number {
        Number::Int(v) => v == 0,
        Number::Float(v) => v == 0.0 && v.is_sign_positive(),
        _ => false,
    }
}

/// Whether a number is the integer or the float `value`.
pub(super) fn is(number: Number, value: i32) -> bool {
    match number {
        Number::Int(v) => v == i128::from(value),
        Number::Float(v) => v == f64::from(value),
        _ => false,
    }
}
