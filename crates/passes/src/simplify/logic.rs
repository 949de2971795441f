//! Rules for `compare`, `select` and `clamp`.

use helio_ir::ops::{Clamp, Compare, Direction, Select};
use helio_ir::{ArrayShape, InstrId, Number, Op, Result, UnaryOp};

use super::{Simplifier, bits, floor};

pub(super) fn compare(
    cx: &mut Simplifier<'_, '_>,
    op: Compare,
    a: InstrId,
    b: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(ty) = cx.draft.array(a).map(ArrayShape::element) else { return Ok(None) };
    // Constants stand on the right.
    if cx.splat(a).is_some() && cx.splat(b).is_none() {
        let direction = match op.direction {
            Direction::Eq => Direction::Eq,
            Direction::Ne => Direction::Ne,
            Direction::Ge => Direction::Le,
            Direction::Gt => Direction::Lt,
            Direction::Le => Direction::Ge,
            Direction::Lt => Direction::Gt,
        };
        return cx.add(Compare { direction, ..op }, &[b, a]).map(Some);
    }
    if !(ty.is_integer() || ty.is_pred()) {
        return Ok(None);
    }
    // x == x → true; x < x → false. (NaN differs from itself.)
    if a == b {
        let is = matches!(op.direction, Direction::Eq | Direction::Ge | Direction::Le);
        return cx.splat_of(result, Number::Pred(is)).map(Some);
    }
    match cx.splat(b) {
        // (x == true) → x; (x != true) → !x, and so on.
        Some(Number::Pred(b)) => match op.direction {
            Direction::Eq if b => Ok(Some(a)),
            Direction::Ne if !b => Ok(Some(a)),
            Direction::Eq | Direction::Ne => cx.add(UnaryOp::Not, &[a]).map(Some),
            _ => Ok(None),
        },
        // Beyond the least and the greatest value there is nothing.
        Some(Number::Int(b)) => {
            let (mut least, mut greatest) = bits::range(ty);
            if let Some(known) = bits::greatest(cx, a) {
                (least, greatest) = (0, known);
            }
            let known = match op.direction {
                Direction::Lt if b <= least => Some(false),
                Direction::Lt if b > greatest => Some(true),
                Direction::Le if b < least => Some(false),
                Direction::Le if b >= greatest => Some(true),
                Direction::Gt if b >= greatest => Some(false),
                Direction::Gt if b < least => Some(true),
                Direction::Ge if b > greatest => Some(false),
                Direction::Ge if b <= least => Some(true),
                _ => None,
            };
            known.map(|known| cx.splat_of(result, Number::Pred(known))).transpose()
        }
        _ => Ok(None),
    }
}

pub(super) fn select(
    cx: &mut Simplifier<'_, '_>,
    pred: InstrId,
    on_true: InstrId,
    on_false: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    // select(p, x, x) → x
    if on_true == on_false {
        return Ok(Some(on_true));
    }
    match cx.splat(pred) {
        Some(Number::Pred(true)) => return Ok(Some(on_true)),
        Some(Number::Pred(false)) => return Ok(Some(on_false)),
        _ => {}
    }
    // select(!p, x, y) → select(p, y, x)
    if let Op::Unary(UnaryOp::Not) = cx.draft.op(pred) {
        let pred = cx.draft.operands(pred)[0];
        return cx.add(Select, &[pred, on_false, on_true]).map(Some);
    }
    // One predicate for all elements is repeated, so that all operands have the same sizes.
    let is_scalar = cx.draft.array(pred).is_some_and(ArrayShape::is_scalar);
    if is_scalar && !result.is_scalar() {
        let pred = cx.broadcast_scalar(pred, result.dims())?;
        return cx.add(Select, &[pred, on_true, on_false]).map(Some);
    }
    if let Some(id) = floor::select(cx, pred, on_true, on_false, result)? {
        return Ok(Some(id));
    }
    // Of `pred`, the arms may be the answer: select(p, true, false) → p.
    match (cx.splat(on_true), cx.splat(on_false)) {
        (Some(Number::Pred(true)), Some(Number::Pred(false))) => Ok(Some(pred)),
        (Some(Number::Pred(false)), Some(Number::Pred(true))) => {
            cx.add(UnaryOp::Not, &[pred]).map(Some)
        }
        (_, Some(Number::Pred(false))) => {
            cx.add(helio_ir::BinaryOp::And, &[pred, on_true]).map(Some)
        }
        (Some(Number::Pred(true)), _) => {
            cx.add(helio_ir::BinaryOp::Or, &[pred, on_false]).map(Some)
        }
        _ => Ok(None),
    }
}

/// Scalar bounds are repeated, so that all operands have the same sizes.
pub(super) fn clamp(
    cx: &mut Simplifier<'_, '_>,
    lo: InstrId,
    x: InstrId,
    hi: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let is_scalar = |id: InstrId| cx.draft.array(id).is_some_and(|array| array.is_scalar());
    if result.is_scalar() || !(is_scalar(lo) || is_scalar(hi)) {
        return Ok(None);
    }
    let mut repeated = |id: InstrId| match cx.draft.array(id) {
        Some(array) if array.is_scalar() => cx.broadcast_scalar(id, result.dims()),
        _ => Ok(id),
    };
    let (lo, hi) = (repeated(lo)?, repeated(hi)?);
    cx.add(Clamp, &[lo, x, hi]).map(Some)
}
