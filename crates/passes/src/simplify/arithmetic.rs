//! The laws of arithmetic: the rules by operation. Rules of floats hold for every value, the
//! infinities, NaN and both zeros included.

use helio_ir::types::FloatSpecials;
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Number, Op, Result, Shape, UnaryOp};

use super::value::{is, is_positive_zero};
use super::{Simplifier, bits, convert, interleaved, logic, power};
use crate::recognize::commutes;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let Some(result) = shape.as_array() else { return Ok(None) };
    match (op, operands) {
        (Op::Unary(op), &[x]) => unary(cx, *op, x),
        (Op::Binary(op), &[a, b]) => binary(cx, *op, a, b, result),
        (Op::Compare(op), &[a, b]) => logic::compare(cx, *op, a, b, result),
        (Op::Select(_), &[pred, a, b]) => logic::select(cx, pred, a, b, result),
        (Op::Clamp(_), &[lo, x, hi]) => logic::clamp(cx, lo, x, hi, result),
        (Op::Convert(_), &[x]) => convert::convert(cx, x, result),
        (Op::BitcastConvert(_), &[x]) => convert::bitcast_convert(cx, x, result),
        (Op::ReducePrecision(op), &[x]) => convert::reduce_precision(cx, *op, x),
        _ => Ok(None),
    }
}

fn unary(cx: &mut Simplifier<'_, '_>, op: UnaryOp, x: InstrId) -> Result<Option<InstrId>> {
    let inner = cx.draft.operands(x);
    let found = match (op, cx.draft.op(x), inner) {
        // -(-x) → x; !!x → x
        (UnaryOp::Negate, Op::Unary(UnaryOp::Negate), &[x]) if has_two_signs(cx, x) => Some(x),
        (UnaryOp::Not, Op::Unary(UnaryOp::Not), &[x]) => Some(x),
        // |-x| → |x|; ||x|| → |x|
        (UnaryOp::Abs, Op::Unary(UnaryOp::Negate), &[x]) if has_two_signs(cx, x) => {
            return cx.add(UnaryOp::Abs, &[x]).map(Some);
        }
        (UnaryOp::Abs, Op::Unary(UnaryOp::Abs), _) => Some(x),
        // What rounds gives what the same rounding keeps.
        (
            UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::RoundNearestAfz
            | UnaryOp::RoundNearestEven
            | UnaryOp::Sign,
            Op::Unary(inner),
            _,
        ) if *inner == op => Some(x),
        // The parts of complex(a, b) are a and b; a real is its own real part.
        (UnaryOp::Real, Op::Binary(BinaryOp::Complex), &[a, _]) => Some(a),
        (UnaryOp::Imag, Op::Binary(BinaryOp::Complex), &[_, b]) => Some(b),
        (UnaryOp::Real, _, _) if !element(cx, x).is_some_and(ElementType::is_complex) => Some(x),
        _ => return bits::unary(cx, op, x),
    };
    Ok(found)
}

fn binary(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    a: InstrId,
    b: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    // Constants stand on the right, where all other rules look for them, and so do repeated scalars.
    if commutes(op, result.element()) && weight(cx, a) > weight(cx, b) {
        return cx.add(op, &[b, a]).map(Some);
    }
    if op == BinaryOp::Complex {
        return Ok(whole_complex(cx, a, b));
    }
    let ty = result.element();
    if !(ty.is_integer() || ty.is_pred() || is_ieee(ty)) {
        return Ok(None);
    }
    if op == BinaryOp::Add
        && let Some(id) = interleaved::sum(cx, a, b, result)?
    {
        return Ok(Some(id));
    }
    if let Some(id) = bits::binary(cx, op, a, b, result)? {
        return Ok(Some(id));
    }
    let same = a == b;
    let constant = cx.splat(b);
    let zero = constant.is_some_and(is_positive_zero);
    let one = constant.is_some_and(|b| is(b, 1));
    match op {
        // x + 0 → x. Of floats, -0.0 + 0.0 is 0.0; only -0.0 changes nothing.
        BinaryOp::Add if zero && (ty.is_integer() || cx.is_never_negative_zero(a)) => Ok(Some(a)),
        BinaryOp::Add if constant.is_some_and(is_negative_zero) => Ok(Some(a)),
        // x + -y → x - y: the same for every float.
        BinaryOp::Add if is_negation(cx, b) => {
            let b = cx.draft.operands(b)[0];
            cx.add(BinaryOp::Subtract, &[a, b]).map(Some)
        }
        BinaryOp::Subtract if is_negation(cx, b) => {
            let b = cx.draft.operands(b)[0];
            cx.add(BinaryOp::Add, &[a, b]).map(Some)
        }
        // x - 0 → x
        BinaryOp::Subtract if zero => Ok(Some(a)),
        // x - x → 0, of integers. (Infinities and NaN have no difference.)
        BinaryOp::Subtract if same && ty.is_integer() => {
            cx.splat_of(result, Number::Int(0)).map(Some)
        }
        // x * 1 → x; x / 1 → x
        BinaryOp::Multiply | BinaryOp::Divide if one => Ok(Some(a)),
        // x * 0 → 0, of integers. (Of floats, infinities and NaN give NaN, and signs matter.)
        BinaryOp::Multiply if zero && ty.is_integer() => Ok(Some(b)),
        // x * -1 → -x
        BinaryOp::Multiply if constant.is_some_and(|b| is(b, -1)) => {
            cx.add(UnaryOp::Negate, &[a]).map(Some)
        }
        BinaryOp::Multiply | BinaryOp::Add if ty.is_integer() => reassociate(cx, op, a, b),
        BinaryOp::Divide => divide(cx, a, constant, result),
        BinaryOp::Maximum | BinaryOp::Minimum => extremum(cx, op, a, b, ty),
        BinaryOp::Power => power::simpler(cx, a, constant, result),
        _ => Ok(None),
    }
}

/// How much an operand tends to the right.
fn weight(cx: &Simplifier<'_, '_>, id: InstrId) -> u32 {
    match cx.scalar_of(id) {
        Some(scalar) if cx.constant(scalar).is_some() => 2,
        Some(scalar) if scalar != id => 1,
        _ => 0,
    }
}

/// Whether this is a float type with both zeros, infinities and NaN.
pub(super) fn is_ieee(ty: ElementType) -> bool {
    ty.float_format().is_some_and(|format| format.specials == FloatSpecials::Ieee)
}

fn element(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<ElementType> {
    cx.draft.array(id).map(ArrayShape::element)
}

/// Whether negation is its own inverse: not in a format without a sign.
fn has_two_signs(cx: &Simplifier<'_, '_>, id: InstrId) -> bool {
    element(cx, id).is_some_and(|ty| ty.is_integer() || ty.is_complex() || is_ieee(ty))
}

fn is_negation(cx: &Simplifier<'_, '_>, id: InstrId) -> bool {
    matches!(cx.draft.op(id), Op::Unary(UnaryOp::Negate)) && cx.splat(id).is_none()
}

fn is_negative_zero(number: Number) -> bool {
    matches!(number, Number::Float(v) if v == 0.0 && v.is_sign_negative())
}

/// complex(real(z), imag(z)) → z
fn whole_complex(cx: &Simplifier<'_, '_>, a: InstrId, b: InstrId) -> Option<InstrId> {
    let part = |id, part| match cx.draft.op(id) {
        Op::Unary(op) if *op == part => cx.draft.operands(id).first().copied(),
        _ => None,
    };
    let z = part(a, UnaryOp::Real)?;
    let is_complex = element(cx, z).is_some_and(ElementType::is_complex);
    (is_complex && part(b, UnaryOp::Imag) == Some(z)).then_some(z)
}

/// (x + 1) + 2 → x + 3, and the same for products and for scalars that are not known. Only
/// integers, which wrap in either order.
fn reassociate(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    a: InstrId,
    b: InstrId,
) -> Result<Option<InstrId>> {
    let (Op::Binary(inner), &[x, c]) = (cx.draft.op(a), cx.draft.operands(a)) else {
        return Ok(None);
    };
    // One operation on scalars in the place of one on arrays; on scalars, one on constants.
    let saves = |id| match cx.draft.array(a) {
        Some(array) if array.is_scalar() => cx.splat(id).is_some(),
        _ => cx.scalar_of(id).is_some(),
    };
    if *inner != op || !saves(b) || !saves(c) {
        return Ok(None);
    }
    let constant = cx.add(op, &[c, b])?;
    cx.add(op, &[x, constant]).map(Some)
}

/// x / 2^k → x * 2^-k, when both are normal numbers: both are exact, or round the same value once.
fn divide(
    cx: &mut Simplifier<'_, '_>,
    x: InstrId,
    divisor: Option<Number>,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let (Some(Number::Float(divisor)), Some(format)) = (divisor, result.element().float_format())
    else {
        return Ok(None);
    };
    const MANTISSA: u64 = (1 << 52) - 1;
    let is_power = divisor.is_normal() && divisor.to_bits() & MANTISSA == 0;
    // 2^-k is a normal number of the type if k is at most the negated least exponent.
    let exponent = ((divisor.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    if !is_power || exponent > -format.min_exponent() || exponent < format.min_exponent() {
        return Ok(None);
    }
    let factor = cx.splat_of(result, Number::Float(1.0 / divisor))?;
    cx.add(BinaryOp::Multiply, &[x, factor]).map(Some)
}

/// max(x, x) → x; max(x, -∞) → x; max(x, ∞) stays, as NaN is the greater; the same for min and for
/// the least and greatest integers.
fn extremum(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    a: InstrId,
    b: InstrId,
    ty: ElementType,
) -> Result<Option<InstrId>> {
    if a == b {
        return Ok(Some(a));
    }
    let is_max = op == BinaryOp::Maximum;
    let neutral = match cx.splat(b) {
        Some(Number::Float(v)) => v == if is_max { f64::NEG_INFINITY } else { f64::INFINITY },
        Some(Number::Int(v)) => {
            let (least, greatest) = bits::range(ty);
            v == if is_max { least } else { greatest }
        }
        _ => false,
    };
    Ok(neutral.then_some(a))
}
