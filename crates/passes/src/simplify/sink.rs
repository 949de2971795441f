//! Movement of operands becomes movement of the result: `f(move(x), move(y))` → `move(f(x, y))`.
//!
//! Broadcasts then repeat results instead of work, and reshapes and transposes meet others to
//! cancel with, or a dot that takes them in.

use helio_ir::ops::{Broadcast, Transpose};
use helio_ir::{ArrayShape, InstrId, Op, Result};
use smallvec::SmallVec;

use super::Simplifier;
use super::movement::differ_in_units;

/// How an operand is made of a smaller or differently shaped one.
#[derive(Clone, Debug, PartialEq)]
enum Move {
    /// Repeated; the operand's dimensions go there.
    Broadcast(Vec<usize>),
    /// Ones added or taken away. (Other reshapes stay where they are: their operand is often
    /// something in memory, of which they are free, while between two loops they are not.)
    Reshape,
    /// Dimensions reordered.
    Transpose(Vec<usize>),
}

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    if result.is_scalar() || !is_same_element(cx, op, operands) {
        return Ok(None);
    }
    let Some((movement, dims)) = common_move(cx, operands) else { return Ok(None) };
    let mut sources = SmallVec::<[InstrId; 4]>::new();
    for &operand in operands {
        sources.push(match cx.scalar_of(operand) {
            Some(scalar) => cx.broadcast_scalar(scalar, &dims)?,
            None => cx.draft.operands(operand)[0],
        });
    }
    let value = cx.add(op.clone(), &sources)?;
    let shape = result.clone().without_layout();
    let moved = match movement {
        Move::Broadcast(dimensions) => cx.add(Broadcast { shape, dimensions }, &[value])?,
        Move::Reshape => cx.reshape(value, result.dims())?,
        Move::Transpose(permutation) => cx.add(Transpose { permutation }, &[value])?,
    };
    Ok(Some(moved))
}

/// What all operands have in common, scalars aside, and the sizes of what is moved.
fn common_move(cx: &Simplifier<'_, '_>, operands: &[InstrId]) -> Option<(Move, Vec<usize>)> {
    let mut common: Option<(Move, Vec<usize>)> = None;
    for &operand in operands {
        if cx.scalar_of(operand).is_some() {
            continue;
        }
        let source = cx.draft.array(*cx.draft.operands(operand).first()?)?.dims();
        let movement = match cx.draft.op(operand) {
            Op::Broadcast(op) => Move::Broadcast(op.dimensions.clone()),
            Op::Reshape(op) if differ_in_units(op.shape.dims(), source) => Move::Reshape,
            Op::Transpose(op) => Move::Transpose(op.permutation.clone()),
            _ => return None,
        };
        match &common {
            None => common = Some((movement, source.to_vec())),
            Some((other, dims)) if *other == movement && dims == source => {}
            Some(_) => return None,
        }
    }
    // Of scalars alone, the result is one.
    common.or(Some((Move::Broadcast(Vec::new()), Vec::new())))
}

/// Whether each element of the result depends on the same element of the operands only.
fn is_same_element(cx: &Simplifier<'_, '_>, op: &Op, operands: &[InstrId]) -> bool {
    match op {
        // Between types of different widths, elements come apart or together.
        Op::BitcastConvert(op) => {
            let operand = cx.draft.array(operands[0]);
            operand.is_some_and(|array| array.element().bits() == op.element.bits())
        }
        op => crate::draft::is_elementwise(op),
    }
}
