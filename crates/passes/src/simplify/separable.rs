//! `gather` by index vectors whose components each vary along a dimension of their own, as of `x[i[:, None], j]` or of an
//! image that is enlarged: a gather along each dimension.
//!
//! Each but the last makes an array that is smaller than the result, and what is computed of elements may be computed
//! there ([`sink`](super::sink)). The last one often takes whole rows.

use helio_ir::ops::{Gather, GatherDims, Transpose, indices_dims};
use helio_ir::{ArrayShape, InstrId, Op, Result};

use super::Simplifier;

/// The result has at least this many times the elements of what the last gather takes them from.
const LEAST_GROWTH: u128 = 2;

/// A component of index vectors, which varies along one dimension.
struct Component {
    /// The dimension of the operand that it is for,
    from: usize,
    /// and the one of the result along which it varies.
    to: usize,
    /// The places, an array of one dimension.
    places: InstrId,
    count: usize,
}

/// gather(x, concatenate(broadcast(i), broadcast(j))) → gather(gather(x, j), i)
pub(super) fn gather(
    cx: &mut Simplifier<'_, '_>,
    op: &Gather,
    [x, indices]: [InstrId; 2],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(x).cloned() else { return Ok(None) };
    if !takes_whole_slices(op, &array) {
        return Ok(None);
    }
    let Some(mut components) = components(cx, op, indices, result)? else { return Ok(None) };
    // What shrinks most is first, and of the others what jumps between neighbours.
    let size = |component: &Component| array.dims()[component.from];
    components.sort_by(|a, b| {
        let [a_grows, b_grows] = [(a, b), (b, a)].map(|(a, b)| a.count as u128 * size(b) as u128);
        a_grows.cmp(&b_grows).then(b.from.cmp(&a.from))
    });
    let Some(last) = components.last() else { return Ok(None) };
    if size(last) as u128 * LEAST_GROWTH > last.count as u128 {
        return Ok(None);
    }
    let mut dims = array.dims().to_vec();
    let mut value = x;
    for Component { from, places, count, .. } in &components {
        value = cx.add(along(*from, &dims), &[value, *places])?;
        dims[*from] = *count;
    }
    // The operand's dimensions in the result's order.
    let mut kept = op.dims.offset_operand_dims(array.rank()).into_iter();
    let order = (0..result.rank()).map(|to| match op.dims.offset_dims.contains(&to) {
        true => kept.next(),
        false => components.iter().find(|component| component.to == to).map(|found| found.from),
    });
    let permutation: Vec<usize> = order.flatten().collect();
    if !permutation.is_sorted() {
        value = cx.add(Transpose { permutation }, &[value])?;
    }
    cx.reshape(value, result.dims()).map(Some)
}

/// Whether slices have one element in each dimension that index vectors are for, and all of the others.
fn takes_whole_slices(op: &Gather, array: &ArrayShape) -> bool {
    let dims = &op.dims;
    dims.operand_batching_dims.is_empty()
        && dims.collapsed_slice_dims.len() == dims.start_index_map.len()
        && array.dims().iter().zip(&op.slice_sizes).enumerate().all(|(d, (&size, &slice))| {
            match dims.start_index_map.contains(&d) {
                true => slice == 1 && dims.collapsed_slice_dims.contains(&d),
                false => slice == size,
            }
        })
}

/// The components of index vectors, if these vary along one dimension each, and no two along the same.
fn components(
    cx: &mut Simplifier<'_, '_>,
    op: &Gather,
    indices: InstrId,
    result: &ArrayShape,
) -> Result<Option<Vec<Component>>> {
    let vector_dim = op.dims.index_vector_dim;
    let (Some(shape), Op::Concatenate(columns)) = (cx.draft.array(indices), cx.draft.op(indices))
    else {
        return Ok(None);
    };
    let numbers = indices_dims(shape.rank(), vector_dim);
    let columns_of = cx.draft.operands(indices).to_vec();
    if columns.dimension != vector_dim || columns_of.len() != op.dims.start_index_map.len() {
        return Ok(None);
    }
    let batch_dims = op.dims.batch_dims(result.rank());
    let mut components: Vec<Component> = Vec::with_capacity(columns_of.len());
    for (&column, &from) in columns_of.iter().zip(&op.dims.start_index_map) {
        let Op::Broadcast(broadcast) = cx.draft.op(column) else { return Ok(None) };
        let Some(line) = cx.draft.array(cx.draft.operands(column)[0]) else { return Ok(None) };
        let mut long = (0..line.rank()).filter(|&d| line.dims()[d] != 1);
        let (Some(d), None) = (long.next(), long.next()) else { return Ok(None) };
        let (along, count) = (broadcast.dimensions[d], line.dims()[d]);
        let Some(number) = numbers.iter().position(|&d| d == along) else { return Ok(None) };
        let to = batch_dims[number];
        if components.iter().any(|other| other.to == to) {
            return Ok(None);
        }
        let places = cx.reshape(cx.draft.operands(column)[0], &[count])?;
        components.push(Component { from, to, places, count });
    }
    let is_covered =
        |&d: &usize| result.dims()[d] == 1 || components.iter().any(|found| found.to == d);
    Ok(batch_dims.iter().all(is_covered).then_some(components))
}

/// A gather along a dimension of an array of these sizes, by the elements of an array of one dimension.
fn along(d: usize, sizes: &[usize]) -> Gather {
    let dims = GatherDims {
        offset_dims: (0..sizes.len()).filter(|&other| other != d).collect(),
        collapsed_slice_dims: vec![d],
        start_index_map: vec![d],
        index_vector_dim: 1,
        ..GatherDims::default()
    };
    let mut slice_sizes = sizes.to_vec();
    slice_sizes[d] = 1;
    Gather { dims, slice_sizes, indices_are_sorted: false }
}
