//! Sums of products that are a matrix product written out, as `(a[:, None] * b[None]).sum(-1)` is.

use helio_ir::ops::{Broadcast, Dot, DotDims, Transpose};
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Op, Result};

use super::Simplifier;
use super::value::is;
use crate::draft::is_elementwise;

/// The fewest products to add for each result of a product of arrays that are there. Fewer are computed as fast where they
/// stand, together with what is made of them (of 1000 by 1000 results with 32 products each 0.90 of the time that a product
/// takes, with 128 0.98, with 256 2.5; 200 by 200 0.87, 1.0 and 2.0; AMD Zen 4), one operand being transposed before
/// ([`crate::turn_operands`]).
const MANY_ADDED: usize = 129;
/// The same where an operand is computed, which a fusion with the sum would do again for each row or column: normalised rows
/// of 24 numbers, 400 by 300 pairs, take 82 µs as a product and 287 without it.
const MIN_ADDED: usize = 8;
/// The fewest rows and columns.
const MIN_SIDE: usize = 16;
/// The fewest products in all: there is a kernel to be called, and the results are in memory after it.
const MIN_PRODUCTS: usize = 1 << 14;

/// reduce(multiply(broadcast(x), broadcast(y))) → dot(x, y), if each has dimensions that the other has not, and there is much
/// to multiply: a kernel of products reads an element for many results at once.
pub(super) fn as_dot(
    cx: &mut Simplifier<'_, '_>,
    (product, init): (InstrId, InstrId),
    folded: &[usize],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    if !matches!(result.element(), ElementType::F32 | ElementType::F64)
        || *cx.draft.op(product) != Op::Binary(BinaryOp::Multiply)
        || !cx.splat(init).is_some_and(|number| is(number, 0))
    {
        return Ok(None);
    }
    let (Some(dims), &[lhs, rhs]) =
        (cx.draft.array(product).map(|array| array.dims().to_vec()), cx.draft.operands(product))
    else {
        return Ok(None);
    };
    let (Some(lhs), Some(rhs)) = (repeated(cx, lhs), repeated(cx, rhs)) else { return Ok(None) };
    let is_kept = |d: &usize| !folded.contains(d);
    let (in_lhs, in_rhs) = (|d: &usize| lhs.1.contains(d), |d: &usize| rhs.1.contains(d));
    let all = || 0..dims.len();
    let batch: Vec<usize> = all().filter(|d| is_kept(d) && in_lhs(d) && in_rhs(d)).collect();
    let rows: Vec<usize> = all().filter(|d| is_kept(d) && in_lhs(d) && !in_rhs(d)).collect();
    let columns: Vec<usize> = all().filter(|d| is_kept(d) && in_rhs(d) && !in_lhs(d)).collect();
    let size = |list: &[usize]| list.iter().map(|&d| dims[d]).product::<usize>();
    let is_product = folded.iter().all(|d| in_lhs(d) && in_rhs(d))
        && batch.len() + rows.len() + columns.len() + folded.len() == dims.len();
    let products = dims.iter().product::<usize>();
    let is_computed = |id: InstrId| is_elementwise(cx.draft.op(id));
    let least = if is_computed(lhs.0) || is_computed(rhs.0) { MIN_ADDED } else { MANY_ADDED };
    let pays = size(&rows).min(size(&columns)) >= MIN_SIDE
        && size(folded) >= least
        && products / size(&batch).max(1) >= MIN_PRODUCTS;
    if !is_product || !pays {
        return Ok(None);
    }

    let places = |of: &[usize], list: &[usize]| -> Vec<usize> {
        list.iter().filter_map(|d| of.iter().position(|place| place == d)).collect()
    };
    let dot = Dot {
        dims: DotDims {
            lhs_contracting: places(&lhs.1, folded),
            rhs_contracting: places(&rhs.1, folded),
            lhs_batch: places(&lhs.1, &batch),
            rhs_batch: places(&rhs.1, &batch),
        },
        element: result.element(),
        precision: Vec::new(),
        algorithm: None,
    };
    // Free dimensions come in the order in which operands have them.
    let own = |of: &[usize], list: &[usize]| -> Vec<usize> {
        of.iter().copied().filter(|d| list.contains(d)).collect()
    };
    let order = [batch.clone(), own(&lhs.1, &rows), own(&rhs.1, &columns)].concat();
    let mut dot = cx.add(dot, &[lhs.0, rhs.0])?;
    let kept = all().filter(is_kept);
    let permutation: Vec<usize> =
        kept.filter_map(|d| order.iter().position(|&place| place == d)).collect();
    if !permutation.is_sorted() {
        dot = cx.add(Transpose { permutation }, &[dot])?;
    }
    Ok(Some(dot))
}

/// The array that is repeated along some dimensions, and the dimension that each of its own becomes.
fn repeated(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<(InstrId, Vec<usize>)> {
    let Op::Broadcast(broadcast) = cx.draft.op(id) else { return None };
    let Broadcast { dimensions, .. } = &**broadcast;
    let &[source] = cx.draft.operands(id) else { return None };
    Some((source, dimensions.clone()))
}
