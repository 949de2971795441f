//! Movement of operands becomes movement of the result: `f(move(x), move(y))` → `move(f(x, y))`.
//!
//! Broadcasts then repeat results instead of work, and reshapes and transposes meet others to
//! cancel with, or a dot that takes them in.

use helio_ir::ops::{Broadcast, Gather, Transpose};
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

/// What is computed of gathered elements is computed before they are gathered if these are at least so many times as many
/// as those that they are taken from.
const LEAST_GROWTH: usize = 2;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    if result.is_scalar() || !is_same_element(cx, op, operands) {
        return Ok(None);
    }
    let Some((movement, dims)) = common_move(cx, operands) else {
        return above_gather(cx, op, operands, result);
    };
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

/// f(gather(x, i), gather(y, i), broadcast(z)) → gather(f(x, y, broadcast(z)), i), if that is less work.
fn above_gather(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let gathers = operands.iter().find_map(|&operand| match cx.draft.op(operand) {
        Op::Gather(op) => Some((op, cx.draft.operands(operand))),
        _ => None,
    });
    let Some((gather, &[x, indices])) = gathers else { return Ok(None) };
    let gather = Gather::clone(gather);
    let Some(array) = cx.draft.array(x) else { return Ok(None) };
    let dims = array.dims().to_vec();
    if array.element_count().saturating_mul(LEAST_GROWTH) > result.element_count() {
        return Ok(None);
    }
    let mut sources = SmallVec::<[Source; 4]>::new();
    for &operand in operands {
        let source = match cx.scalar_of(operand) {
            Some(scalar) => Some(Source::Scalar(scalar)),
            None => source_of(cx, operand, (&gather, indices), &dims),
        };
        let Some(source) = source else { return Ok(None) };
        sources.push(source);
    }
    let mut placed = SmallVec::<[InstrId; 4]>::new();
    for source in sources {
        placed.push(match source {
            Source::Scalar(scalar) => cx.broadcast_scalar(scalar, &dims)?,
            Source::Array(id) => id,
            Source::Repeated(op, id) => cx.add(op, &[id])?,
        });
    }
    let value = cx.add(op.clone(), &placed)?;
    cx.add(gather, &[value, indices]).map(Some)
}

/// What stands for an operand before a gather.
enum Source {
    Scalar(InstrId),
    Array(InstrId),
    Repeated(Broadcast, InstrId),
}

/// What a gather by these indices from an array of these sizes would make an operand of.
fn source_of(
    cx: &Simplifier<'_, '_>,
    operand: InstrId,
    (gather, indices): (&Gather, InstrId),
    sizes: &[usize],
) -> Option<Source> {
    let &from = cx.draft.operands(operand).first()?;
    match cx.draft.op(operand) {
        Op::Gather(op) => {
            let is_same = op.dims == gather.dims
                && op.slice_sizes == gather.slice_sizes
                && cx.draft.operands(operand)[1] == indices
                && cx.draft.array(from)?.dims() == sizes;
            is_same.then_some(Source::Array(from))
        }
        Op::Broadcast(op) => {
            // It says the same for all places that are gathered, and slices have all of what it goes along.
            let kept = gather.dims.offset_operand_dims(sizes.len());
            let dimension = |d: &usize| {
                let place = gather.dims.offset_dims.iter().position(|to| to == d)?;
                let d = kept[place];
                (gather.slice_sizes[d] == sizes[d]).then_some(d)
            };
            let dimensions: Vec<usize> =
                op.dimensions.iter().map(dimension).collect::<Option<_>>()?;
            let shape = ArrayShape::new(op.shape.element(), sizes.to_vec()).ok()?;
            Some(Source::Repeated(Broadcast { shape, dimensions }, from))
        }
        _ => None,
    }
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
