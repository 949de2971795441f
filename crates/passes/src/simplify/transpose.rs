//! Rules for `transpose`.

use helio_ir::ops::{Broadcast, Iota, Transpose};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::{Simplifier, dot};
use crate::transposes::inverse;

impl Simplifier<'_, '_> {
    /// An array with its dimensions in another order.
    pub(super) fn transpose(&mut self, id: InstrId, permutation: Vec<usize>) -> Result<InstrId> {
        self.add(Transpose { permutation }, &[id])
    }
}

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Transpose,
    operand: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let permutation = &op.permutation;
    if permutation.is_sorted() {
        return Ok(Some(operand));
    }
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    // transpose(x) → reshape(x), when only ones change places.
    if permutation.iter().filter(|&&d| array.dims()[d] != 1).is_sorted() {
        return cx.reshape(operand, result.dims()).map(Some);
    }
    if let Some(scalar) = cx.scalar_of(operand) {
        return cx.broadcast_scalar(scalar, result.dims()).map(Some);
    }
    // For each dimension of the operand, where it goes.
    let places = inverse(permutation);
    match cx.draft.op(operand) {
        // transpose(transpose(x)) → transpose(x)
        Op::Transpose(inner) => {
            let permutation = permutation.iter().map(|&d| inner.permutation[d]).collect();
            let source = cx.draft.operands(operand)[0];
            cx.transpose(source, permutation).map(Some)
        }
        // transpose(broadcast(x)) → broadcast(x)
        Op::Broadcast(inner) => {
            let dimensions = inner.dimensions.iter().map(|&d| places[d]).collect();
            let source = cx.draft.operands(operand)[0];
            let shape = result.clone().without_layout();
            cx.add(Broadcast { shape, dimensions }, &[source]).map(Some)
        }
        Op::Iota(inner) => {
            let dimension = places[inner.dimension];
            cx.add(Iota { shape: result.clone().without_layout(), dimension }, &[]).map(Some)
        }
        Op::Dot(_) => dot::transposed(cx, operand, permutation),
        _ => Ok(None),
    }
}
