//! Rules for operations on the bits of integers and on `pred`.

use helio_ir::ops::{Compare, Direction, Order};
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Number, Op, Result, UnaryOp};

use super::Simplifier;
use super::value::is;

/// The least and the greatest value of an integer type.
pub(crate) fn range(ty: ElementType) -> (i128, i128) {
    let bits = ty.bits() as u32;
    match ty.is_signed_integer() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    }
}

/// !(a == b) → a != b, and back. (The other comparisons have no opposite where NaN is.)
pub(super) fn unary(
    cx: &mut Simplifier<'_, '_>,
    op: UnaryOp,
    x: InstrId,
) -> Result<Option<InstrId>> {
    let (UnaryOp::Not, &Op::Compare(compare)) = (op, cx.draft.op(x)) else { return Ok(None) };
    let operands = cx.draft.operands(x).to_vec();
    let is_exact = cx.draft.array(operands[0]).is_some_and(|array| {
        let ty = array.element();
        ty.is_integer() || ty.is_pred() || compare.order == Order::Total
    });
    let direction = match compare.direction {
        Direction::Eq => Direction::Ne,
        Direction::Ne => Direction::Eq,
        Direction::Lt if is_exact => Direction::Ge,
        Direction::Ge if is_exact => Direction::Lt,
        Direction::Gt if is_exact => Direction::Le,
        Direction::Le if is_exact => Direction::Gt,
        _ => return Ok(None),
    };
    cx.add(Compare { direction, ..compare }, &operands).map(Some)
}

/// The rules of `and`, `or`, `xor`, shifts, and of division by powers of two. (`add` and
/// `multiply` of `pred` mean `or` and `and`, and are rare.)
pub(super) fn binary(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    a: InstrId,
    b: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let ty = result.element();
    if ty.is_float() {
        return Ok(None);
    }
    let same = a == b;
    let constant = cx.splat(b);
    let zero = match constant {
        Some(Number::Pred(v)) => !v,
        Some(number) => is(number, 0),
        None => false,
    };
    // All bits set.
    let ones = match constant {
        Some(Number::Pred(v)) => v,
        Some(Number::Int(v)) => v == if ty.is_signed_integer() { -1 } else { range(ty).1 },
        _ => false,
    };
    match op {
        BinaryOp::And if same || ones => Ok(Some(a)),
        BinaryOp::And if zero => Ok(Some(b)),
        // a < b && a != b → a < b
        BinaryOp::And if implies(cx, a, b) => Ok(Some(a)),
        BinaryOp::And if implies(cx, b, a) => Ok(Some(b)),
        BinaryOp::Or if same || zero => Ok(Some(a)),
        BinaryOp::Or if ones => Ok(Some(b)),
        BinaryOp::Xor if zero => Ok(Some(a)),
        BinaryOp::Xor if same => {
            let zero = if ty.is_pred() { Number::Pred(false) } else { Number::Int(0) };
            cx.splat_of(result, zero).map(Some)
        }
        BinaryOp::Xor if ones => cx.add(UnaryOp::Not, &[a]).map(Some),
        BinaryOp::ShiftLeft | BinaryOp::ShiftRightArithmetic | BinaryOp::ShiftRightLogical
            if zero =>
        {
            Ok(Some(a))
        }
        BinaryOp::ShiftLeft | BinaryOp::ShiftRightLogical => shift(cx, op, a, constant, result),
        BinaryOp::Divide | BinaryOp::Remainder if ty.is_unsigned_integer() => {
            unsigned_division(cx, op, a, constant, result)
        }
        _ => Ok(None),
    }
}

/// Whether `a` says that of two values one is less, and `b` that they differ.
fn implies(cx: &Simplifier<'_, '_>, a: InstrId, b: InstrId) -> bool {
    let (Op::Compare(less), Op::Compare(differ)) = (cx.draft.op(a), cx.draft.op(b)) else {
        return false;
    };
    matches!(less.direction, Direction::Lt | Direction::Gt)
        && differ.direction == Direction::Ne
        && less.order == differ.order
        && cx.draft.operands(a) == cx.draft.operands(b)
}

/// A shift by the width or more → 0; the same for numbers known to have no bits so far up.
fn shift(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    a: InstrId,
    amount: Option<Number>,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(Number::Int(amount)) = amount else { return Ok(None) };
    let width = result.element().bits() as i128;
    // The amount is unsigned whatever its type: negative ones are large.
    let is_out = !(0..width).contains(&amount);
    let is_used_up = op == BinaryOp::ShiftRightLogical
        && greatest(cx, a).is_some_and(|greatest| !is_out && greatest >> amount == 0);
    if is_out || is_used_up {
        return cx.splat_of(result, Number::Int(0)).map(Some);
    }
    Ok(None)
}

/// The greatest value of something known to be no less than 0.
pub(super) fn greatest(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<i128> {
    let array = cx.draft.array(id)?;
    match cx.draft.op(id) {
        // Where a type is too narrow for it, an iota wraps.
        Op::Iota(op) => {
            let last = array.dims()[op.dimension].checked_sub(1)? as i128;
            (last <= range(array.element()).1).then_some(last)
        }
        Op::Broadcast(_) | Op::Reshape(_) => greatest_of_source(cx, id),
        _ => None,
    }
}

/// [`greatest`] of what an iota became on its way: at most one broadcast and one reshape, which is
/// what simplification leaves.
fn greatest_of_source(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<i128> {
    let mut source = id;
    for _ in 0..2 {
        source = match cx.draft.op(source) {
            Op::Broadcast(_) | Op::Reshape(_) => *cx.draft.operands(source).first()?,
            _ => break,
        };
    }
    matches!(cx.draft.op(source), Op::Iota(_)).then(|| greatest(cx, source)).flatten()
}

/// x / 2^k → x >> k; x % 2^k → x & (2^k - 1), of unsigned integers.
fn unsigned_division(
    cx: &mut Simplifier<'_, '_>,
    op: BinaryOp,
    x: InstrId,
    divisor: Option<Number>,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(Number::Int(divisor)) = divisor else { return Ok(None) };
    if divisor <= 0 || divisor & (divisor - 1) != 0 {
        return Ok(None);
    }
    let (op, number) = match op {
        BinaryOp::Divide => (BinaryOp::ShiftRightLogical, i128::from(divisor.trailing_zeros())),
        _ => (BinaryOp::And, divisor - 1),
    };
    let number = cx.splat_of(result, Number::Int(number))?;
    cx.add(op, &[x, number]).map(Some)
}
