//! A batched product with an operand that is the same for all of the batch is one product.

use helio_ir::ops::{Broadcast, Dot, DotDims};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::Simplifier;
use super::dot::swapped;

/// dot(x, broadcast(y)), where y is repeated along batch dimensions → dot(x, y), in which these are free dimensions of
/// x; likewise dot(broadcast(y), x). Result or x are transposed if the order of dimensions asks for it, unless that
/// moves more elements than the repetition has. (Every framework's `matmul` of a batch with one matrix may come as
/// that: the matrix would be written and packed once for each element of the batch.)
pub(super) fn merged(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    lhs: InstrId,
    rhs: InstrId,
) -> Result<Option<InstrId>> {
    if let Some(product) = with_repeated(cx, op, [lhs, rhs], false)? {
        return Ok(Some(product));
    }
    match cx.draft.op(lhs) {
        Op::Broadcast(_) => with_repeated(cx, &swapped(op), [rhs, lhs], true),
        _ => Ok(None),
    }
}

/// The product of `x` with `y`, if `y` is repeated along a batch dimension. The result's free dimensions are to be y's
/// before x's if the operands are swapped.
fn with_repeated(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    [x, y]: [InstrId; 2],
    are_swapped: bool,
) -> Result<Option<InstrId>> {
    let Op::Broadcast(broadcast) = cx.draft.op(y) else { return Ok(None) };
    let (Some(x_shape), Some(y_shape)) = (cx.draft.array(x), cx.draft.array(y)) else {
        return Ok(None);
    };
    let (dims, own) = (&op.dims, broadcast.dimensions.clone());
    let is_repeated = |d: usize| y_shape.dims()[d] > 1 && !own.contains(&d);
    let (repeated, kept): (Vec<usize>, Vec<usize>) =
        (0..dims.rhs_batch.len()).partition(|&pair| is_repeated(dims.rhs_batch[pair]));
    if repeated.is_empty() {
        return Ok(None);
    }

    // Dimensions of x by their numbers, those of y after them.
    let rank = x_shape.rank();
    let sizes = [x_shape.dims(), y_shape.dims()].concat();
    let x_free = dims.lhs_free(rank);
    let y_free: Vec<usize> = dims.rhs_free(y_shape.rank()).into_iter().map(|d| rank + d).collect();
    let batch: Vec<usize> = kept.iter().map(|&pair| dims.lhs_batch[pair]).collect();
    // What the result's dimensions are if those of x are in this order.
    let result = |order: &[usize]| -> Vec<usize> {
        let is_free = |d: &usize| !dims.lhs_contracting.contains(d) && !batch.contains(d);
        let of_x = order.iter().copied().filter(is_free);
        batch.iter().copied().chain(of_x).chain(y_free.iter().copied()).collect()
    };
    let free = if are_swapped { [&y_free, &x_free] } else { [&x_free, &y_free] };
    let wanted = [&dims.lhs_batch, free[0], free[1]].map(Vec::as_slice).concat();
    let place = |result: &[usize], d: usize| result.iter().position(|&other| other == d);
    // The elements that are moved to have dimensions, ones aside, at ascending places.
    let moved = |dims: &[usize], place: &dyn Fn(usize) -> Option<usize>| -> usize {
        let long = dims.iter().copied().filter(|&d| sizes[d] != 1);
        match long.map(place).is_sorted() {
            true => 0,
            false => dims.iter().fold(1, |count, &d| count.saturating_mul(sizes[d])),
        }
    };
    let cost = |order: &[usize]| {
        let result = result(order);
        moved(order, &Some).saturating_add(moved(&wanted, &|d| place(&result, d)))
    };
    // As x lies, or with its batch dimensions first.
    let as_it_lies: Vec<usize> = (0..rank).collect();
    let in_order = [&dims.lhs_batch, &x_free, &dims.lhs_contracting].map(Vec::as_slice).concat();
    let order = if cost(&in_order) < cost(&as_it_lies) { in_order } else { as_it_lies };
    if cost(&order) > y_shape.element_count() {
        return Ok(None);
    }
    let found = result(&order);
    let back: Option<Vec<usize>> = wanted.iter().map(|&d| place(&found, d)).collect();
    let Some(back) = back else { return Ok(None) };

    // y without the repetition.
    let is_gone = |d: usize| repeated.iter().any(|&pair| dims.rhs_batch[pair] == d);
    let rest: Vec<usize> = (0..y_shape.rank()).filter(|&d| !is_gone(d)).collect();
    let in_y = |d: usize| rest.partition_point(|&other| other < d);
    let in_x = |d: usize| place(&order, d).unwrap_or(d);
    let renumbered = |list: &[usize], to: &dyn Fn(usize) -> usize| -> Vec<usize> {
        list.iter().map(|&d| to(d)).collect()
    };
    let rest_sizes: Vec<usize> = rest.iter().map(|&d| y_shape.dims()[d]).collect();
    let shape = ArrayShape::new(y_shape.element(), rest_sizes)?;
    let new_dims = DotDims {
        lhs_contracting: renumbered(&dims.lhs_contracting, &in_x),
        rhs_contracting: renumbered(&dims.rhs_contracting, &in_y),
        lhs_batch: renumbered(&batch, &in_x),
        rhs_batch: kept.iter().map(|&pair| in_y(dims.rhs_batch[pair])).collect(),
    };
    let dimensions = renumbered(&own, &in_y);
    let source = cx.draft.operands(y)[0];
    let y = cx.add(Broadcast { shape, dimensions }, &[source])?;
    let x = cx.transpose(x, order)?;
    let product = cx.add(Dot { dims: new_dims, ..op.clone() }, &[x, y])?;
    cx.transpose(product, back).map(Some)
}
