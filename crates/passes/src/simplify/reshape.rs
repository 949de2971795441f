//! Rules for `reshape`.

use helio_ir::ops::{Broadcast, Iota, Reshape};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::Simplifier;
use super::movement::follow_units;

impl Simplifier<'_, '_> {
    /// An array under other sizes with as many elements.
    pub(super) fn reshape(&mut self, id: InstrId, dims: &[usize]) -> Result<InstrId> {
        let Some(array) = self.draft.array(id) else { return Ok(id) };
        if array.dims() == dims {
            return Ok(id);
        }
        let shape = ArrayShape::of_sizes(array.element(), dims)?;
        self.add(Reshape { shape }, &[id])
    }
}

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    operand: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    // reshape(x) → x, when sizes stay.
    if array.same_dims(result) {
        return Ok(Some(operand));
    }
    // reshape(broadcast(s)) → broadcast(s), for a scalar s; reshape(s) → broadcast(s).
    if let Some(scalar) = cx.scalar_of(operand) {
        return cx.broadcast_scalar(scalar, result.dims()).map(Some);
    }
    let source = cx.draft.operands(operand).first().copied();
    match (cx.draft.op(operand), source) {
        // reshape(reshape(x)) → reshape(x)
        (Op::Reshape(_), Some(source)) => cx.reshape(source, result.dims()).map(Some),
        // Where only ones come and go, broadcasts and iotas have the result's sizes at once.
        (Op::Broadcast(op), Some(source)) => {
            let followed = follow_units(array.dims(), result.dims());
            let Some(followed) = followed else { return Ok(None) };
            let to: Option<Vec<usize>> = op.dimensions.iter().map(|&d| followed[d]).collect();
            let Some(dimensions) = to else { return Ok(None) };
            let shape = result.clone().without_layout();
            cx.add(Broadcast { shape, dimensions }, &[source]).map(Some)
        }
        (Op::Iota(op), _) => {
            let followed = follow_units(array.dims(), result.dims());
            let Some(dimension) = followed.and_then(|followed| followed[op.dimension]) else {
                return Ok(None);
            };
            cx.add(Iota { shape: result.clone().without_layout(), dimension }, &[]).map(Some)
        }
        _ => Ok(None),
    }
}
