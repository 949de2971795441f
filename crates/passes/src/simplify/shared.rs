//! A batched product with an operand that is the same for all of the batch is one product.

use helio_ir::ops::{Broadcast, Dot, DotDims};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::Simplifier;

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
    let dims = &op.dims;
    let of_lhs = Side { id: lhs, batch: &dims.lhs_batch, contracting: &dims.lhs_contracting };
    let of_rhs = Side { id: rhs, batch: &dims.rhs_batch, contracting: &dims.rhs_contracting };
    if let Some(product) = with_repeated(cx, op, &of_lhs, &of_rhs, false)? {
        return Ok(Some(product));
    }
    with_repeated(cx, op, &of_rhs, &of_lhs, true)
}

/// An operand and the roles of its dimensions.
struct Side<'a> {
    id: InstrId,
    batch: &'a [usize],
    contracting: &'a [usize],
}

impl Side<'_> {
    fn free(&self, rank: usize) -> Vec<usize> {
        (0..rank).filter(|d| !self.batch.contains(d) && !self.contracting.contains(d)).collect()
    }
}

/// A dimension of the result, by where it comes from.
#[derive(Clone, Copy, PartialEq)]
enum Origin {
    /// A pair of batch dimensions.
    Batch(usize),
    /// A free dimension of x.
    X(usize),
    /// A free dimension of the repeated operand.
    Y(usize),
}

/// The product of `x` with `y`, if `y` is repeated along a batch dimension; `y` is the lhs if `swapped`.
fn with_repeated(
    cx: &mut Simplifier<'_, '_>,
    op: &Dot,
    x: &Side<'_>,
    y: &Side<'_>,
    swapped: bool,
) -> Result<Option<InstrId>> {
    let Op::Broadcast(broadcast) = cx.draft.op(y.id) else { return Ok(None) };
    // The dimensions of y that what is broadcast has.
    let source_dims = broadcast.dimensions.clone();
    let (Some(x_shape), Some(y_shape)) = (cx.draft.array(x.id), cx.draft.array(y.id)) else {
        return Ok(None);
    };
    let is_repeated = |&d: &usize| y_shape.dims()[d] > 1 && !source_dims.contains(&d);
    if !y.batch.iter().any(is_repeated) {
        return Ok(None);
    }
    let (x_shape, y_shape) = (x_shape.clone(), y_shape.clone());
    let batches = 0..y.batch.len();
    let (repeated, kept): (Vec<usize>, Vec<usize>) =
        batches.partition(|&pair| is_repeated(&y.batch[pair]));
    let is_gone = |d: usize| repeated.iter().any(|&pair| y.batch[pair] == d);

    let (x_free, y_free) = (x.free(x_shape.rank()), y.free(y_shape.rank()));
    let of_x = |dims: &[usize]| dims.iter().map(|&d| Origin::X(d)).collect::<Vec<Origin>>();
    let of_y = y_free.iter().map(|&d| Origin::Y(d)).collect::<Vec<Origin>>();
    let batch = |pairs: &[usize]| pairs.iter().map(|&pair| Origin::Batch(pair)).collect();
    let pair_of = |d: usize| x.batch.iter().position(|&other| other == d);
    // Pairs that are not repeated stay batch dimensions; the others are free dimensions of x.
    let merged = |order: &[usize]| -> Vec<Origin> {
        let free = order.iter().filter(|&&d| !x.contracting.contains(&d));
        let own = free.filter_map(|&d| match pair_of(d) {
            Some(pair) if repeated.contains(&pair) => Some(Origin::Batch(pair)),
            Some(_) => None,
            None => Some(Origin::X(d)),
        });
        let kept: Vec<Origin> = batch(&kept);
        kept.into_iter().chain(own).chain(of_y.iter().copied()).collect()
    };
    let all: Vec<usize> = (0..y.batch.len()).collect();
    let all: Vec<Origin> = batch(&all);
    let wanted: Vec<Origin> = if swapped {
        [all, of_y.clone(), of_x(&x_free)]
    } else {
        [all, of_x(&x_free), of_y.clone()]
    }
    .concat();

    let size = |from: Origin| match from {
        Origin::Batch(pair) => x_shape.dims()[x.batch[pair]],
        Origin::X(d) => x_shape.dims()[d],
        Origin::Y(d) => y_shape.dims()[d],
    };
    let elements =
        wanted.iter().try_fold(1_usize, |product, &from| product.checked_mul(size(from)));
    let Some(elements) = elements else { return Ok(None) };
    let place = |merged: &[Origin], from: Origin| merged.iter().position(|&other| other == from);
    let permutation = |merged: &[Origin]| -> Option<Vec<usize>> {
        wanted.iter().map(|&from| place(merged, from)).collect()
    };
    let moves = |merged: &[Origin]| {
        let long = wanted.iter().filter(|&&from| size(from) != 1);
        !long.map(|&from| place(merged, from)).is_sorted()
    };
    // As x lies, or with its batch dimensions first.
    let as_it_lies: Vec<usize> = (0..x_shape.rank()).collect();
    let in_order = [x.batch, &x_free[..], x.contracting].concat();
    let cost = |order: &[usize]| {
        let long = order.iter().filter(|&&d| x_shape.dims()[d] != 1);
        let turned = if long.is_sorted() { 0 } else { x_shape.element_count() };
        turned.saturating_add(if moves(&merged(order)) { elements } else { 0 })
    };
    let order = if cost(&in_order) < cost(&as_it_lies) { in_order } else { as_it_lies };
    if cost(&order) > y_shape.element_count() {
        return Ok(None);
    }
    let Some(back) = permutation(&merged(&order)) else { return Ok(None) };

    // What y has without the repetition.
    let rest: Vec<usize> = (0..y_shape.rank()).filter(|&d| !is_gone(d)).collect();
    let renumber = |d: usize| rest.partition_point(|&other| other < d);
    let sizes: Vec<usize> = rest.iter().map(|&d| y_shape.dims()[d]).collect();
    let shape = ArrayShape::new(y_shape.element(), sizes)?;
    let dimensions = source_dims.iter().map(|&d| renumber(d)).collect();
    let source = cx.draft.operands(y.id)[0];
    let new_y = cx.add(Broadcast { shape, dimensions }, &[source])?;
    let place_in_x = |d: usize| order.iter().position(|&other| other == d).unwrap_or(d);
    let dims = DotDims {
        lhs_contracting: x.contracting.iter().map(|&d| place_in_x(d)).collect(),
        rhs_contracting: y.contracting.iter().map(|&d| renumber(d)).collect(),
        lhs_batch: kept.iter().map(|&pair| place_in_x(x.batch[pair])).collect(),
        rhs_batch: kept.iter().map(|&pair| renumber(y.batch[pair])).collect(),
    };
    let new_x = cx.transpose(x.id, order)?;
    let mut product = Dot { dims, ..op.clone() };
    if swapped {
        product.precision.reverse();
    }
    let product = cx.add(product, &[new_x, new_y])?;
    cx.transpose(product, back).map(Some)
}
