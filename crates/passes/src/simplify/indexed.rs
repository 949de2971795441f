//! `gather` and `scatter`: index vectors put together from columns become single numbers.
//!
//! `x[i, j]` comes as a concatenation of the columns `i` and `j`. Taken for one dimension, `x` has
//! its elements at `i * size + j`, which needs no array of pairs: it is arithmetic like any other,
//! and fuses with what computes `i` and `j`. A scatter that subtracts becomes one that adds.

use helio_ir::ops::{
    Clamp, Compare, Convert, Direction, Gather, Scatter, Select, Slice, Transpose,
};
use helio_ir::{
    BinaryOp, ElementType, InstrId, Native, Number, Op, Result, Shape, UnaryOp, dispatch_type,
};

use super::progression::progression;
use super::{Simplifier, separable};
use crate::draft::addition;
use crate::recognize;

/// Dimensions of an array that become one.
struct Merged {
    /// The first of them, and their sizes.
    first: usize,
    sizes: Vec<usize>,
    /// For each component of an index vector, its dimension's place among them.
    order: Vec<usize>,
    /// The sizes of the array with one dimension in their place.
    dims: Vec<usize>,
    /// The type of places along it.
    element: ElementType,
}

impl Merged {
    /// The dimensions that index vectors are for, if they are neighbours and windows have one of
    /// their indices.
    fn new(
        dims: &[usize],
        index_map: &[usize],
        left_out: &[usize],
        index: ElementType,
    ) -> Option<Merged> {
        let (&first, &last) = (index_map.iter().min()?, index_map.iter().max()?);
        let range = first..last + 1;
        // (No two components are for one dimension.)
        if range.len() < 2
            || range.len() != index_map.len()
            || !range.clone().all(|d| left_out.contains(&d))
        {
            return None;
        }
        let sizes = dims[range.clone()].to_vec();
        let points = sizes.iter().try_fold(1_usize, |points, &size| points.checked_mul(size))?;
        let element = match index {
            _ if points == 0 => return None,
            ElementType::S32 | ElementType::U32 | ElementType::S64 | ElementType::U64
                if i32::try_from(points).is_ok() =>
            {
                ElementType::S32
            }
            ElementType::S64 => ElementType::S64,
            _ => return None,
        };
        let mut merged = dims[..first].to_vec();
        merged.push(points);
        merged.extend(&dims[range.end..]);
        let order = index_map.iter().map(|d| d - first).collect();
        Some(Merged { first, sizes, order, dims: merged, element })
    }

    /// The dimensions of this list as they are numbered afterwards.
    fn renumber(&self, dims: &[usize]) -> Vec<usize> {
        let last = self.first + self.sizes.len() - 1;
        let renumbered = dims.iter().map(|&d| match d {
            d if d <= self.first => d,
            d if d <= last => self.first,
            d => d - (self.sizes.len() - 1),
        });
        let mut renumbered: Vec<usize> = renumbered.collect();
        renumbered.dedup();
        renumbered
    }

    /// Where along the one dimension index vectors are, and, for each component, whether it is
    /// inside of its dimension, to which it is moved.
    fn places(
        &self,
        cx: &mut Simplifier<'_, '_>,
        indices: InstrId,
        vector_dim: usize,
    ) -> Result<Option<(InstrId, Vec<InstrId>)>> {
        let Some(shape) = cx.draft.array(indices).cloned() else { return Ok(None) };
        let mut dims = shape.dims().to_vec();
        dims.remove(vector_dim);
        let mut places = None;
        let mut inside = Vec::with_capacity(self.order.len());
        for (component, &d) in self.order.iter().enumerate() {
            let mut slice = Slice::dense(vec![0; shape.rank()], shape.dims().to_vec());
            slice.starts[vector_dim] = component;
            slice.limits[vector_dim] = component + 1;
            let column = cx.add(slice, &[indices])?;
            let column = cx.reshape(column, &dims)?;
            let Some(column_shape) = cx.draft.array(column).cloned() else { return Ok(None) };
            let low = cx.splat_of(&column_shape, Number::Int(0))?;
            let high = cx.splat_of(&column_shape, Number::Int(self.sizes[d] as i128 - 1))?;
            let moved = cx.add(Clamp, &[low, column, high])?;
            inside.push(cx.add(Compare::new(Direction::Eq), &[moved, column])?);
            let moved = cx.add(Convert { element: self.element }, &[moved])?;
            let step: usize = self.sizes[d + 1..].iter().product();
            let Some(moved_shape) = cx.draft.array(moved).cloned() else { return Ok(None) };
            let step = cx.splat_of(&moved_shape, Number::Int(step as i128))?;
            let place = cx.add(BinaryOp::Multiply, &[moved, step])?;
            places = Some(match places {
                None => place,
                Some(before) => cx.add(BinaryOp::Add, &[before, place])?,
            });
        }
        Ok(places.map(|places| (places, inside)))
    }
}

/// Whether index vectors are put together from columns.
fn has_columns(cx: &Simplifier<'_, '_>, indices: InstrId, vector_dim: usize) -> bool {
    matches!(cx.draft.op(indices), Op::Concatenate(op) if op.dimension == vector_dim)
}

/// Dimensions of the indices as they are numbered without index vectors.
fn without(vector_dim: usize, dims: &[usize]) -> Vec<usize> {
    dims.iter().map(|&d| d - usize::from(d > vector_dim)).collect()
}

/// gather(x, concatenate(i, j)) → gather(reshape(x), clamp(i) * size + clamp(j))
pub(super) fn gather(
    cx: &mut Simplifier<'_, '_>,
    op: &Gather,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let (&[x, indices], dims) = (operands, &op.dims) else { return Ok(None) };
    // Slices without elements give zeros: their dimensions of size 0 may be left out of the result.
    if op.slice_sizes.contains(&0)
        && let Some(result) = shape.as_array().filter(|result| result.is_static())
    {
        let zero = dispatch_type!(result.element(), T => <T as Native>::from_bits(0).to_number());
        return cx.splat_of(result, zero).map(Some);
    }
    if let Some(slice) = counted(cx, op, [x, indices], shape)? {
        return Ok(Some(slice));
    }
    if let Some(result) = shape.as_array()
        && let Some(gathered) = separable::gather(cx, op, [x, indices], result)?
    {
        return Ok(Some(gathered));
    }
    if !has_columns(cx, indices, dims.index_vector_dim) {
        return Ok(None);
    }
    let (Some(array), Some(index)) = (cx.draft.array(x), cx.draft.array(indices)) else {
        return Ok(None);
    };
    let rank = index.rank();
    let (map, left_out) = (&dims.start_index_map, &dims.collapsed_slice_dims);
    let merged = Merged::new(array.dims(), map, left_out, index.element());
    let Some(merged) = merged.filter(|_| map.iter().all(|&d| op.slice_sizes[d] == 1)) else {
        return Ok(None);
    };
    let places = merged.places(cx, indices, dims.index_vector_dim)?;
    let Some((places, _)) = places else { return Ok(None) };
    let x = cx.reshape(x, &merged.dims)?;
    let mut flattened = op.clone();
    flattened.slice_sizes.drain(merged.first + 1..merged.first + merged.sizes.len());
    flattened.dims.collapsed_slice_dims = merged.renumber(left_out);
    flattened.dims.start_index_map = vec![merged.first];
    flattened.dims.operand_batching_dims = merged.renumber(&dims.operand_batching_dims);
    flattened.dims.start_indices_batching_dims =
        without(dims.index_vector_dim, &dims.start_indices_batching_dims);
    flattened.dims.index_vector_dim = rank - 1;
    // Sorted vectors need not be sorted places, once their components are clamped.
    flattened.indices_are_sorted = false;
    cx.add(flattened, &[x, places]).map(Some)
}

/// gather(x, i) → slice(x), where the indices count along one dimension, within it, and all of the others is taken.
fn counted(
    cx: &mut Simplifier<'_, '_>,
    op: &Gather,
    [x, indices]: [InstrId; 2],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let dims = &op.dims;
    let (&[d], &[left_out]) = (&dims.start_index_map[..], &dims.collapsed_slice_dims[..]) else {
        return Ok(None);
    };
    let (Some(array), Some(result)) = (cx.draft.array(x).cloned(), shape.as_array()) else {
        return Ok(None);
    };
    let takes_all = |other: usize| op.slice_sizes[other] == array.dims()[other];
    let is_whole = d == left_out
        && dims.operand_batching_dims.is_empty()
        && (0..array.rank()).all(|other| other == d || takes_all(other));
    let Some(numbers) = progression(cx, indices).filter(|_| is_whole) else { return Ok(None) };
    let size = array.dims()[d] as i128;
    let is_single = numbers.count == 1;
    if numbers.step < 1 && !is_single || !numbers.lies_in(0, size - 1) {
        return Ok(None);
    }
    let start = numbers.start as usize;
    let stride = if is_single { 1 } else { numbers.step as usize };
    let mut slice = Slice::dense(vec![0; array.rank()], array.dims().to_vec());
    (slice.starts[d], slice.limits[d], slice.strides[d]) =
        (start, numbers.last() as usize + 1, stride);
    let slice = cx.add(slice, &[x])?;
    // The result has the dimension where its indices are, the others in their order.
    let long = (0..result.rank())
        .find(|&to| result.dims()[to] == numbers.count && !dims.offset_dims.contains(&to));
    let before = long.map_or(0, |to| dims.offset_dims.iter().filter(|&&other| other < to).count());
    let mut permutation: Vec<usize> = (0..array.rank()).filter(|&other| other != d).collect();
    permutation.insert(before, d);
    let slice = match permutation.is_sorted() {
        true => slice,
        false => cx.add(Transpose { permutation }, &[slice])?,
    };
    cx.reshape(slice, result.dims()).map(Some)
}

/// scatter(x, concatenate(i, j), u) → reshape(scatter(reshape(x), i * size + j, u)), where the place
/// is -1 if `i` or `j` is outside.
pub(super) fn scatter(
    cx: &mut Simplifier<'_, '_>,
    op: &Scatter,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let (&[x, indices, updates], dims) = (operands, &op.dims) else { return Ok(None) };
    if let Some(added) = added(cx, op, [x, indices, updates])? {
        return Ok(Some(added));
    }
    if !has_columns(cx, indices, dims.index_vector_dim) {
        return Ok(None);
    }
    let (Some(array), Some(index)) = (cx.draft.array(x), cx.draft.array(indices)) else {
        return Ok(None);
    };
    let (sizes, rank) = (array.dims().to_vec(), index.rank());
    let (map, left_out) = (&dims.scatter_dims_to_operand_dims, &dims.inserted_window_dims);
    let Some(merged) = Merged::new(&sizes, map, left_out, index.element()) else {
        return Ok(None);
    };
    let places = merged.places(cx, indices, dims.index_vector_dim)?;
    let Some((places, inside)) = places else { return Ok(None) };
    let mut is_inside = inside[0];
    for &other in &inside[1..] {
        is_inside = cx.add(BinaryOp::And, &[is_inside, other])?;
    }
    let Some(shape) = cx.draft.array(places).cloned() else { return Ok(None) };
    let nowhere = cx.splat_of(&shape, Number::Int(-1))?;
    let places = cx.add(Select, &[is_inside, places, nowhere])?;
    let x = cx.reshape(x, &merged.dims)?;
    let mut flattened = op.clone();
    flattened.dims.inserted_window_dims = merged.renumber(left_out);
    flattened.dims.scatter_dims_to_operand_dims = vec![merged.first];
    flattened.dims.input_batching_dims = merged.renumber(&dims.input_batching_dims);
    flattened.dims.scatter_indices_batching_dims =
        without(dims.index_vector_dim, &dims.scatter_indices_batching_dims);
    flattened.dims.index_vector_dim = rank - 1;
    // Not all are where they were: some are nowhere now.
    flattened.indices_are_sorted = false;
    let flattened = cx.add(flattened, &[x, places, updates])?;
    cx.reshape(flattened, &sizes).map(Some)
}

/// scatter(x, i, u) that subtracts → scatter(x, i, -u) that adds: what adds is known to engines, and
/// to negate is exact.
fn added(
    cx: &mut Simplifier<'_, '_>,
    op: &Scatter,
    [x, indices, updates]: [InstrId; 3],
) -> Result<Option<InstrId>> {
    use ElementType::{BF16, F16, F32, F64, S8, S16, S32, S64};
    let element = |id: InstrId| cx.draft.array(id).map(|array| array.element());
    let Some(ty @ (BF16 | F16 | F32 | F64 | S8 | S16 | S32 | S64)) = element(x) else {
        return Ok(None);
    };
    let combines_by = recognize::reducer(cx.draft.callees(), op.to_apply, ty);
    if element(updates) != Some(ty) || combines_by != Some(BinaryOp::Subtract) {
        return Ok(None);
    }
    let sum = addition(ty)?;
    let to_apply = cx.draft.module().push(sum)?;
    let negative = cx.add(UnaryOp::Negate, &[updates])?;
    cx.add(Scatter { to_apply, ..op.clone() }, &[x, indices, negative]).map(Some)
}
