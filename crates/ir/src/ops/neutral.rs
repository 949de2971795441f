//! What an operation can be folded from without a trace: its neutral elements.

use super::BinaryOp;
use crate::dispatch_type;
use crate::types::{ElementType, Native, Number};

impl BinaryOp {
    /// The bits of the element `e` of this type for which `op(e, x)` and `op(x, e)` are `x` for every
    /// `x`, bit for bit (a NaN may become another NaN). Folds begin with it where the initial value is
    /// taken in at another time, or once instead of many times.
    ///
    /// `None` if there is none: of complex numbers there is no such factor, as infinity times the
    /// imaginary 0 is NaN, and their order is no concern of folds; `f8e8m0fnu` has no zero.
    pub fn neutral(self, ty: ElementType) -> Option<u128> {
        if ty.is_complex() {
            let part = match self {
                BinaryOp::Add => self.neutral(ty.real_part())?,
                _ => return None,
            };
            return Some(part << ty.real_part().bits() | part);
        }
        let bits = ty.bits();
        // Integers as the numbers that they are; `pred` is 0 and 1.
        let (least, greatest): (i128, i128) = match ty {
            ty if ty.is_pred() => (0, 1),
            ty if ty.is_signed_integer() => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
            _ => (0, (1 << bits) - 1),
        };
        let number = match self {
            // The sum of -0 and -0 is -0, that of -0 and 0 is 0.
            BinaryOp::Add if ty.is_float() => Number::Float(-0.0),
            BinaryOp::Add => Number::Int(0),
            BinaryOp::Multiply if ty.is_float() => Number::Float(1.0),
            BinaryOp::Multiply => Number::Int(1),
            BinaryOp::Maximum if ty.is_float() => return extreme(ty, f64::NEG_INFINITY),
            BinaryOp::Minimum if ty.is_float() => return extreme(ty, f64::INFINITY),
            BinaryOp::Maximum => Number::Int(least),
            BinaryOp::Minimum => Number::Int(greatest),
            BinaryOp::Or | BinaryOp::Xor if !ty.is_float() => Number::Int(0),
            BinaryOp::And if ty.is_pred() => Number::Int(1),
            BinaryOp::And if ty.is_integer() => Number::Int(-1),
            _ => return None,
        };
        dispatch_type!(ty, T => {
            let value = <T as Native>::from_number(number);
            // A format without a zero makes something else of it.
            let is_there = !ty.is_float() || value.to_number() == number;
            is_there.then_some(Native::to_bits(value))
        })
    }
}

/// The bits of the least or the greatest number of a float type: an infinity, or, in the types of 8
/// bits and fewer that have none, the finite number next to it.
fn extreme(ty: ElementType, infinity: f64) -> Option<u128> {
    dispatch_type!(ty, T => {
        let is_number = |number: Number| matches!(number, Number::Float(v) if !v.is_nan());
        let of = |number: Number| match number {
            Number::Float(v) if infinity < 0.0 => -v,
            Number::Float(v) => v,
            _ => f64::NAN,
        };
        let value = <T as Native>::from_number(Number::Float(infinity));
        if value.to_number() == Number::Float(infinity) {
            return Some(Native::to_bits(value));
        }
        let all = (0..1_u128 << ty.bits()).map(<T as Native>::from_bits);
        let numbers = all.filter(|value| is_number(value.to_number()));
        let greatest = numbers.max_by(|a, b| of(a.to_number()).total_cmp(&of(b.to_number())))?;
        Some(Native::to_bits(greatest))
    })
}
