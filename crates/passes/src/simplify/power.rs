//! Rules for `power` with a constant exponent.

use helio_ir::ops::{Compare, Direction, Select};
use helio_ir::{ArrayShape, BinaryOp, InstrId, Number, Result, UnaryOp};

use super::Simplifier;

/// Products and roots in the place of powers. Each is within 2 ulp of the exact power where that is
/// a normal number, and exact wherever the power is (zeros, infinities, NaN).
pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    x: InstrId,
    exponent: Option<Number>,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let number = match exponent {
        Some(Number::Float(v)) => v,
        // Integers wrap in a product as they do in a power.
        Some(Number::Int(v)) if (0..=3).contains(&v) => v as f64,
        _ => return Ok(None),
    };
    let is_float = result.element().is_float();
    let one = if is_float { Number::Float(1.0) } else { Number::Int(1) };
    // Compared as numbers: the exponents below are exact in every type.
    let id = if number == 0.0 {
        // Of anything, NaN included.
        cx.splat_of(result, one)?
    } else if number == 1.0 {
        x
    } else if number == 2.0 {
        cx.add(BinaryOp::Multiply, &[x, x])?
    } else if number == 3.0 {
        let square = cx.add(BinaryOp::Multiply, &[x, x])?;
        cx.add(BinaryOp::Multiply, &[square, x])?
    } else if number == -1.0 {
        let one = cx.splat_of(result, one)?;
        cx.add(BinaryOp::Divide, &[one, x])?
    } else if number == -2.0 {
        // The square of the reciprocal: that of x would overflow where this is a subnormal number.
        let one = cx.splat_of(result, one)?;
        let reciprocal = cx.add(BinaryOp::Divide, &[one, x])?;
        cx.add(BinaryOp::Multiply, &[reciprocal, reciprocal])?
    } else if number == 0.5 {
        let root = unsigned_root(cx, UnaryOp::Sqrt, x, result)?;
        or_at_negative_infinity(cx, x, root, f64::INFINITY, result)?
    } else if number == -0.5 {
        let root = unsigned_root(cx, UnaryOp::Rsqrt, x, result)?;
        or_at_negative_infinity(cx, x, root, 0.0, result)?
    } else if number == 1.5 {
        let root = cx.add(UnaryOp::Sqrt, &[x])?;
        let product = cx.add(BinaryOp::Multiply, &[x, root])?;
        or_at_negative_infinity(cx, x, product, f64::INFINITY, result)?
    } else if number == -1.5 {
        // Zeros: the root has x's sign, so the quotient is +∞.
        let root = cx.add(UnaryOp::Rsqrt, &[x])?;
        let quotient = cx.add(BinaryOp::Divide, &[root, x])?;
        or_at_negative_infinity(cx, x, quotient, 0.0, result)?
    } else {
        return Ok(None);
    };
    Ok(Some(id))
}

/// The root of x, or of 0 when x is -0: a power has no sign there, a root would.
fn unsigned_root(
    cx: &mut Simplifier<'_, '_>,
    op: UnaryOp,
    x: InstrId,
    result: &ArrayShape,
) -> Result<InstrId> {
    let zero = cx.splat_of(result, Number::Float(0.0))?;
    let unsigned = cx.add(BinaryOp::Add, &[x, zero])?;
    cx.add(op, &[unsigned])
}

/// `value`, but `limit` where x is -∞: there a power that is no integer is that of ∞, and a root is
/// NaN.
fn or_at_negative_infinity(
    cx: &mut Simplifier<'_, '_>,
    x: InstrId,
    value: InstrId,
    limit: f64,
    result: &ArrayShape,
) -> Result<InstrId> {
    let infinity = cx.splat_of(result, Number::Float(f64::NEG_INFINITY))?;
    let limit = cx.splat_of(result, Number::Float(limit))?;
    let is_infinite = cx.add(Compare::new(Direction::Eq), &[x, infinity])?;
    cx.add(Select, &[is_infinite, limit, value])
}
