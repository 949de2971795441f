//! `dot`: transposes of operands and results become part of its dimension numbers, conversions of operands
//! part of it; what is no more than a sum becomes one; a batch with the same matrix is one product.

use helio_ir::ops::{Dot, DotDims, Transpose};
use helio_ir::{ArrayShape, ElementType, InstrId, Op, Result};

use super::{Simplifier, dot_sums, shared};

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[lhs, rhs] = operands else { return Ok(None) };
    if let Some(merged) = shared::merged(cx, op, lhs, rhs)? {
        return Ok(Some(merged));
    }
    if let Some(sums) = dot_sums::simpler(cx, op, lhs, rhs)? {
        return Ok(Some(sums));
    }
    if let Some(product) = with_batch_outside(cx, op, lhs, rhs)? {
        return Ok(Some(product));
    }
    if let Some(sorted) = sorted(cx, op, lhs, rhs) {
        return cx.add(sorted, operands).map(Some);
    }
    let (mut folded, mut sources) = (op.clone(), [lhs, rhs]);
    let dims = &mut folded.dims;
    if let Some(source) = fold_transpose(cx, lhs, &mut dims.lhs_contracting, &mut dims.lhs_batch) {
        sources[0] = source;
    }
    if let Some(source) = fold_transpose(cx, rhs, &mut dims.rhs_contracting, &mut dims.rhs_batch) {
        sources[1] = source;
    }
    sources = sources.map(|operand| fold_convert(cx, op, operand).unwrap_or(operand));
    if sources == [lhs, rhs] {
        return Ok(None);
    }
    cx.add(folded, &sources).map(Some)
}

/// The product with its contracting dimensions in the order in which they lie in an operand, if they are not: in the one that has
/// neighbours along them, lhs before rhs. Dimensions that follow each other are one then, whose elements are read one after
/// the other.
fn sorted(cx: &Simplifier<'_, '_>, op: &Dot, lhs: InstrId, rhs: InstrId) -> Option<Dot> {
    let dims = &op.dims;
    let is_innermost = |operand: InstrId, contracting: &[usize]| {
        let array = cx.draft.array(operand)?;
        Some(innermost(array.dims()).is_some_and(|d| contracting.contains(&d)))
    };
    let by_rhs =
        !is_innermost(lhs, &dims.lhs_contracting)? && is_innermost(rhs, &dims.rhs_contracting)?;
    let pairs = || dims.lhs_contracting.iter().copied().zip(dims.rhs_contracting.iter().copied());
    let mut in_order: Vec<(usize, usize)> = pairs().collect();
    in_order.sort_unstable_by_key(|&(l, r)| if by_rhs { r } else { l });
    if pairs().eq(in_order.iter().copied()) {
        return None;
    }
    let mut sorted = op.clone();
    (sorted.dims.lhs_contracting, sorted.dims.rhs_contracting) = in_order.into_iter().unzip();
    Some(sorted)
}

/// Elements from which on to write a converted operand to memory, and to read it there, takes longer than to convert
/// it whenever it is read. (Small products have kernels that take operands as they are.)
const MANY_ELEMENTS: usize = 1 << 15;

/// What is converted to the type in which sums are formed, if that changes no value: kernels of products take
/// numbers of 8 and 16 bits beside those of sums.
fn fold_convert(cx: &Simplifier<'_, '_>, op: &Dot, operand: InstrId) -> Option<InstrId> {
    let Op::Convert(_) = cx.draft.op(operand) else { return None };
    let source = cx.draft.operands(operand)[0];
    let (array, narrow) = (cx.draft.array(operand)?, cx.draft.array(source)?);
    let types = (narrow.element(), array.element());
    use ElementType::{BF16, F16, F32, S8, S16, S32, U8, U16};
    let is_taken = matches!(types, (BF16 | F16, F32) | (S8 | U8 | S16 | U16, S32));
    let is_plain = op.algorithm.is_none() && op.element == types.1;
    (is_taken && is_plain && array.element_count() >= MANY_ELEMENTS).then_some(source)
}

/// dot(x, y) → dot(transpose(x), transpose(y)), each if its innermost dimension is one of the batch: rows of its matrices are
/// neighbours then; or, if there is nothing to add, if its dimensions come in another order than the result's.
fn with_batch_outside(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    let (Some(x), Some(y)) = (cx.draft.array(lhs), cx.draft.array(rhs)) else { return Ok(None) };
    let dims = &op.dims;
    let (lhs_free, rhs_free) = (dims.lhs_free(x.rank()), dims.rhs_free(y.rank()));
    let batches = dims.lhs_batch.len();
    // (With nothing to add, the product is element by element, once dimensions are in the result's order.)
    let is_lone = dims.lhs_contracting.iter().all(|&d| x.dims()[d] == 1);
    let is_inside = |of: &ArrayShape, batch: &[usize], free: &[usize]| {
        let long = |d: &usize| of.dims()[*d] != 1;
        let in_order = batch.iter().chain(free).copied().filter(long).is_sorted();
        innermost(of.dims()).is_some_and(|d| batch.contains(&d)) || is_lone && !in_order
    };
    let of_lhs = is_inside(x, &dims.lhs_batch, &lhs_free);
    let of_rhs = is_inside(y, &dims.rhs_batch, &rhs_free);
    if !of_lhs && !of_rhs {
        return Ok(None);
    }
    let (lhs_rank, rhs_rank) = (x.rank(), y.rank());
    let (mut turned, mut operands) = (op.clone(), [lhs, rhs]);
    if of_lhs {
        let permutation = [&dims.lhs_batch[..], &lhs_free, &dims.lhs_contracting].concat();
        operands[0] = cx.add(Transpose { permutation }, &[lhs])?;
        turned.dims.lhs_batch = (0..batches).collect();
        turned.dims.lhs_contracting = (batches + lhs_free.len()..lhs_rank).collect();
    }
    if of_rhs {
        let permutation = [&dims.rhs_batch[..], &dims.rhs_contracting, &rhs_free].concat();
        operands[1] = cx.add(Transpose { permutation }, &[rhs])?;
        turned.dims.rhs_batch = (0..batches).collect();
        turned.dims.rhs_contracting = (batches..rhs_rank - rhs_free.len()).collect();
    }
    cx.add(turned, &operands).map(Some)
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
    let swapped_free = (batches + lhs_free..all).chain(batches..batches + lhs_free);
    if new_batches.iter().any(|&d| d >= batches) {
        return Ok(None);
    }
    let batch = |list: &[usize]| new_batches.iter().map(|&d| list[d]).collect();
    let (lhs_batch, rhs_batch) = (batch(&op.dims.lhs_batch), batch(&op.dims.rhs_batch));
    let dims = DotDims { lhs_batch, rhs_batch, ..op.dims.clone() };
    let ordered = Dot { dims, ..(**op).clone() };
    if free.iter().copied().eq(in_order) {
        return cx.add(ordered, &[lhs, rhs]).map(Some);
    }
    if free.iter().copied().eq(swapped_free) {
        return cx.add(swapped(&ordered), &[rhs, lhs]).map(Some);
    }
    Ok(None)
}

/// The product with its operands the other way round.
pub(super) fn swapped(op: &Dot) -> Dot {
    let mut new = op.clone();
    std::mem::swap(&mut new.dims.lhs_contracting, &mut new.dims.rhs_contracting);
    std::mem::swap(&mut new.dims.lhs_batch, &mut new.dims.rhs_batch);
    new.precision.reverse();
    new
}
