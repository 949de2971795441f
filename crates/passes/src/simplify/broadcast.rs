//! Rules for `broadcast`.

use helio_ir::ops::{Broadcast, Transpose};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::Simplifier;
use super::movement::without_units;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Broadcast,
    operand: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    let is_increasing = op.dimensions.is_sorted();
    if array.rank() == result.rank() {
        // broadcast(x) → x or transpose(x), when there is no new dimension.
        if is_increasing {
            return Ok(Some(operand));
        }
        let mut permutation = vec![0; result.rank()];
        for (from, &to) in op.dimensions.iter().enumerate() {
            permutation[to] = from;
        }
        return cx.add(Transpose { permutation }, &[operand]).map(Some);
    }
    // broadcast(x) → broadcast(reshape(x)), where the reshape takes ones away: what is broadcast
    // has none, so that equal broadcasts look alike.
    let (kept, dims) = without_units(array.dims());
    if kept.len() < array.rank() {
        let dimensions = kept.iter().map(|&d| op.dimensions[d]).collect();
        let source = cx.reshape(operand, &dims)?;
        let shape = result.clone().without_layout();
        return cx.add(Broadcast { shape, dimensions }, &[source]).map(Some);
    }
    // broadcast(x) → reshape(x), when all new dimensions are 1.
    if !array.is_scalar() && is_increasing && array.element_count() == result.element_count() {
        return cx.reshape(operand, result.dims()).map(Some);
    }
    let dimensions = match cx.draft.op(operand) {
        // broadcast(broadcast(x)) → broadcast(x)
        Op::Broadcast(inner) => inner.dimensions.iter().map(|&d| op.dimensions[d]).collect(),
        // broadcast(transpose(x)) → broadcast(x)
        Op::Transpose(inner) => {
            let mut dimensions = vec![0; op.dimensions.len()];
            for (to, &from) in inner.permutation.iter().enumerate() {
                dimensions[from] = op.dimensions[to];
            }
            dimensions
        }
        _ => return Ok(None),
    };
    let source = cx.draft.operands(operand)[0];
    let shape = result.clone().without_layout();
    cx.add(Broadcast { shape, dimensions }, &[source]).map(Some)
}
