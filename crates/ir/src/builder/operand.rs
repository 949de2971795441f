//! What can stand for an operand whose element type another operand determines.

use super::{XlaBuilder, XlaOp, check};
use crate::types::Array;
use crate::{ElementType, Error, Literal, Native, Number, Result, dispatch_type};

/// An [`XlaOp`], a reference to one, or a Rust number.
///
/// A number becomes a scalar constant of the element type that the other operand has. It must be a
/// value of that type, or of the nearest one for floats: `x.add(1)` is right for any number type,
/// `x.add(0.5)` for floats and complex numbers, `x.add(300)` wrong for `u8`.
pub trait Operand {
    /// The value, in the element type of `like` if it is a number. Errors: `builder.C6`.
    #[doc(hidden)]
    #[track_caller]
    fn into_op(self, like: &XlaOp) -> XlaOp;
}

impl Operand for XlaOp {
    #[track_caller]
    fn into_op(self, _: &XlaOp) -> XlaOp {
        self
    }
}

impl Operand for &XlaOp {
    #[track_caller]
    fn into_op(self, _: &XlaOp) -> XlaOp {
        self.clone()
    }
}

impl<T: Native> Operand for T {
    #[track_caller]
    fn into_op(self, like: &XlaOp) -> XlaOp {
        let builder: &XlaBuilder = like.builder();
        let shape = check!(builder, like.array_shape());
        let literal = check!(builder, scalar(self.to_number(), shape.element()));
        builder.constant_literal(literal)
    }
}

/// A scalar of this type. Errors: `builder.C6` unless the number is a value of it.
pub(super) fn scalar(number: Number, element: ElementType) -> Result<Literal> {
    let literal = dispatch_type!(element, T => Array::scalar(T::from_number(number)));
    let converted = literal.number(0);
    let fits = match (number, converted) {
        (Number::Pred(_), Number::Pred(_)) => true,
        (Number::Int(from), Number::Int(to)) => from == to,
        (Number::Float(from), Number::Int(to)) => from == to as f64,
        // Rounding is what floats are for; losing a finite number altogether is not.
        (Number::Int(_), Number::Float(to)) => to.is_finite(),
        (Number::Float(from), Number::Float(to)) => from.is_finite() == to.is_finite(),
        (Number::Int(_), Number::Complex(to)) => to.re.is_finite(),
        (Number::Float(from), Number::Complex(to)) => from.is_finite() == to.re.is_finite(),
        (Number::Complex(from), Number::Complex(to)) => from.is_finite() == to.is_finite(),
        _ => false,
    };
    if !fits {
        let number = match number {
            Number::Pred(v) => v.to_string(),
            Number::Int(v) => v.to_string(),
            Number::Float(v) => v.to_string(),
            Number::Complex(v) => v.to_string(),
        };
        let detail = format!("{number} is not a value of {element}");
        return Err(Error::rule("builder.C6", detail));
    }
    Ok(Literal::Array(literal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_be_values_of_the_type() {
        let good = |number, element| scalar(number, element).is_ok();
        assert!(good(Number::Int(255), ElementType::U8));
        assert!(!good(Number::Int(256), ElementType::U8));
        assert!(!good(Number::Int(-1), ElementType::U8));
        assert!(good(Number::Float(2.0), ElementType::S32));
        assert!(!good(Number::Float(2.5), ElementType::S32));
        assert!(!good(Number::Float(f64::NAN), ElementType::S32));
        assert!(!good(Number::Float(1e30), ElementType::S64));
        assert!(good(Number::Float(0.1), ElementType::F32));
        assert!(!good(Number::Float(1e39), ElementType::F32));
        assert!(good(Number::Float(f64::INFINITY), ElementType::BF16));
        assert!(!good(Number::Int(70000), ElementType::F16));
        assert!(!good(Number::Float(0.0), ElementType::F8E8M0FNU));
        assert!(good(Number::Int(1), ElementType::C64));
        assert!(!good(Number::Int(1), ElementType::Pred));
        assert!(good(Number::Pred(true), ElementType::Pred));
        assert!(!good(Number::Pred(true), ElementType::F32));
    }
}
