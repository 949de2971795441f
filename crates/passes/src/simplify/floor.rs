//! Divisions of signed integers that round down, as they are put together from those that round to zero: Python's
//! `//` and `%` by a positive number.

use helio_ir::ops::Direction;
use helio_ir::{ArrayShape, BinaryOp, InstrId, Number, Op, Result, UnaryOp};

use super::Simplifier;

/// r < 0 ? r + c : r, where r = x % c → x & (c - 1) if c is a power of two;
/// x is no more than 0 and r != 0 ? q - 1 : q, where q = x / c → x >> k if c = 2^k, else, without the remainder,
/// ((x ^ s) / c) ^ s with s = x >> (bits - 1): numbers below zero are counted from -1 downwards.
pub(super) fn select(
    cx: &mut Simplifier<'_, '_>,
    pred: InstrId,
    on_true: InstrId,
    on_false: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    if !result.element().is_signed_integer() {
        return Ok(None);
    }
    let Op::Binary(op @ (BinaryOp::Divide | BinaryOp::Remainder)) = *cx.draft.op(on_false) else {
        return Ok(None);
    };
    let &[x, divisor] = cx.draft.operands(on_false) else { return Ok(None) };
    let Some(Number::Int(number)) = cx.splat(divisor).filter(|&c| is_positive(c)) else {
        return Ok(None);
    };
    let is_power = number & (number - 1) == 0;
    match op {
        BinaryOp::Remainder if is_power => {
            let adds = binary_of(cx, on_true, BinaryOp::Add)
                .is_some_and(|[r, more]| r == on_false && cx.splat(more) == cx.splat(divisor));
            if !adds || !compares(cx, pred, Direction::Lt, on_false, 0) {
                return Ok(None);
            }
            let mask = cx.splat_of(result, Number::Int(number - 1))?;
            cx.add(BinaryOp::And, &[x, mask]).map(Some)
        }
        BinaryOp::Divide => {
            let subtracts = binary_of(cx, on_true, BinaryOp::Subtract)
                .is_some_and(|[q, one]| q == on_false && cx.splat(one) == Some(Number::Int(1)));
            let Some([a, b]) = binary_of(cx, pred, BinaryOp::And).filter(|_| subtracts) else {
                return Ok(None);
            };
            let rounds = |sign, rest| {
                is_not_positive(cx, sign, x) && leaves_a_remainder(cx, rest, x, number)
            };
            if !rounds(a, b) && !rounds(b, a) {
                return Ok(None);
            }
            if is_power {
                let by = cx.splat_of(result, Number::Int(number.trailing_zeros().into()))?;
                return cx.add(BinaryOp::ShiftRightArithmetic, &[x, by]).map(Some);
            }
            let last = cx.splat_of(result, Number::Int(result.element().bits() as i128 - 1))?;
            let sign = cx.add(BinaryOp::ShiftRightArithmetic, &[x, last])?;
            let counted = cx.add(BinaryOp::Xor, &[x, sign])?;
            let quotient = cx.add(BinaryOp::Divide, &[counted, divisor])?;
            cx.add(BinaryOp::Xor, &[quotient, sign]).map(Some)
        }
        _ => Ok(None),
    }
}

fn is_positive(number: Number) -> bool {
    matches!(number, Number::Int(number) if number > 0)
}

/// The operands of a binary operation, if `id` is this one.
fn binary_of(cx: &Simplifier<'_, '_>, id: InstrId, op: BinaryOp) -> Option<[InstrId; 2]> {
    match cx.draft.op(id) {
        Op::Binary(found) if *found == op => cx.draft.operands(id).try_into().ok(),
        _ => None,
    }
}

/// Whether `id` compares `x` with this number in this direction.
fn compares(
    cx: &Simplifier<'_, '_>,
    id: InstrId,
    direction: Direction,
    x: InstrId,
    number: i128,
) -> bool {
    let (Op::Compare(op), &[a, b]) = (cx.draft.op(id), cx.draft.operands(id)) else { return false };
    op.direction == direction && a == x && cx.splat(b) == Some(Number::Int(number))
}

/// Whether `id` says of `x` that its sign is not 1.
fn is_not_positive(cx: &Simplifier<'_, '_>, id: InstrId, x: InstrId) -> bool {
    let Some(&sign) = cx.draft.operands(id).first() else { return false };
    matches!(cx.draft.op(sign), Op::Unary(UnaryOp::Sign))
        && cx.draft.operands(sign) == [x]
        && compares(cx, id, Direction::Ne, sign, 1)
}

/// Whether `id` says that `x` is no multiple of this number.
fn leaves_a_remainder(cx: &Simplifier<'_, '_>, id: InstrId, x: InstrId, number: i128) -> bool {
    let Some(&rest) = cx.draft.operands(id).first() else { return false };
    let of_x = binary_of(cx, rest, BinaryOp::Remainder)
        .is_some_and(|[a, b]| a == x && cx.splat(b) == Some(Number::Int(number)));
    of_x && compares(cx, id, Direction::Ne, rest, 0)
}
