//! `dot`: transposes of operands and results become part of its dimension numbers.

use helio_ir::ops::{Dot, DotDims};
use helio_ir::{InstrId, Op, Result};

use super::Simplifier;

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[lhs, rhs] = operands else { return Ok(None) };
    let (mut folded, mut sources) = (op.clone(), [lhs, rhs]);
    let dims = &mut folded.dims;
    if let Some(source) = fold_transpose(cx, lhs, &mut dims.lhs_contracting, &mut dims.lhs_batch) {
        sources[0] = source;
    }
    if let Some(source) = fold_transpose(cx, rhs, &mut dims.rhs_contracting, &mut dims.rhs_batch) {
        sources[1] = source;
    }
    if sources == [lhs, rhs] {
        return Ok(None);
    }
    cx.add(folded, &sources).map(Some)
}

/// What is transposed, with contracting and batch dimensions numbered as there, if the product can
/// be taken there as well as here: contracting and free dimensions each must lie like a single one,
/// and one of them must be the innermost.
fn fold_transpose(
    cx: &Simplifier<'_, '_>,
    operand: InstrId,
    contracting: &mut Vec<usize>,
    batch: &mut Vec<usize>,
) -> Option<InstrId> {
    let Op::Transpose(transpose) = cx.draft.op(operand) else { return None };
    let source = cx.draft.operands(operand)[0];
    let dims = cx.draft.array(source)?.dims();
    let renamed =
        |list: &[usize]| -> Vec<usize> { list.iter().map(|&d| transpose.permutation[d]).collect() };
    let is_free = |d: &usize| !contracting.contains(d) && !batch.contains(d);
    let free: Vec<usize> = (0..dims.len()).filter(is_free).collect();
    let free = renamed(&free);
    let (new_contracting, new_batch) = (renamed(contracting), renamed(batch));
    // The result's dimensions are the free ones in order, so that order must stay.
    let fits = free.is_sorted()
        && lies_like_one(dims, &free)
        && lies_like_one(dims, &new_contracting)
        && innermost(dims).is_none_or(|d| !new_batch.contains(&d));
    if !fits {
        return None;
    }
    (*contracting, *batch) = (new_contracting, new_batch);
    Some(source)
}

/// The last dimension that is not 1.
fn innermost(dims: &[usize]) -> Option<usize> {
    (0..dims.len()).rev().find(|&d| dims[d] != 1)
}

/// Whether dimensions, ones aside, follow each other in an array of these sizes.
fn lies_like_one(dims: &[usize], list: &[usize]) -> bool {
    let list: Vec<usize> = list.iter().copied().filter(|&d| dims[d] != 1).collect();
    list.windows(2)
        .all(|pair| pair[0] < pair[1] && dims[pair[0] + 1..pair[1]].iter().all(|&size| size == 1))
}

/// transpose(dot(x, y)) → dot(y, x), when it makes the free dimensions change sides; batch
/// dimensions may be in any order.
pub(super) fn transposed(
    cx: &mut Simplifier<'_, '_>,
    dot: InstrId,
    permutation: &[usize],
) -> Result<Option<InstrId>> {
    let (Op::Dot(op), &[lhs, rhs]) = (cx.draft.op(dot), cx.draft.operands(dot)) else {
        return Ok(None);
    };
    let Some(rank) = cx.draft.array(lhs).map(|array| array.rank()) else { return Ok(None) };
    let batches = op.dims.lhs_batch.len();
    let lhs_free = rank - batches - op.dims.lhs_contracting.len();
    let all = permutation.len();
    let (new_batches, free) = permutation.split_at(batches);
    let in_order = batches..all;
    let swapped = (batches + lhs_free..all).chain(batches..batches + lhs_free);
    if new_batches.iter().any(|&d| d >= batches) {
        return Ok(None);
    }
    let batch = |list: &[usize]| new_batches.iter().map(|&d| list[d]).collect();
    let (lhs_batch, rhs_batch) = (batch(&op.dims.lhs_batch), batch(&op.dims.rhs_batch));
    let mut new = op.clone();
    let dims = op.dims.clone();
    if free.iter().copied().eq(in_order) {
        new.dims = DotDims { lhs_batch, rhs_batch, ..dims };
        return cx.add(new, &[lhs, rhs]).map(Some);
    }
    if free.iter().copied().eq(swapped) {
        new.dims = DotDims {
            lhs_contracting: dims.rhs_contracting,
            rhs_contracting: dims.lhs_contracting,
            lhs_batch: rhs_batch,
            rhs_batch: lhs_batch,
        };
        new.precision.reverse();
        return cx.add(new, &[rhs, lhs]).map(Some);
    }
    Ok(None)
}
