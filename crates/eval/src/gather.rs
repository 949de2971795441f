//! `gather`: slices of an array at the places that indices list.

use std::iter::zip;

use helio_ir::{Array, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::index::{IndexVectors, clamp_start, without};
use crate::walk::{Walk, copy, outside, steps};

/// For each index vector, a slice of the operand, moved inside where it would reach out.
pub(crate) fn gather(
    op: &ops::Gather,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, indices, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let dims = &op.dims;
    let vectors = IndexVectors::new(indices, dims.index_vector_dim);
    let from_steps = steps(operand.dims());
    let to_steps = steps(shape.dims());

    // The box of index vectors: where they lie, and what they contribute to both places.
    let batch_dims = without(shape.rank(), &[&dims.offset_dims]);
    let mut sizes = shape.dims().to_vec();
    let mut axes = Vec::with_capacity(batch_dims.len());
    for (&to, &d) in zip(&batch_dims, &vectors.dims) {
        sizes[to] = indices.sizes()[d];
        let batching = dims.start_indices_batching_dims.iter().position(|&b| b == d);
        let from_step = batching.map_or(0, |i| from_steps[dims.operand_batching_dims[i]]);
        axes.push((sizes[to], [vectors.steps[d], from_step, to_steps[to]]));
    }
    let mut batches = Walk::new(evaluator, axes);

    // The box of a slice, without the dimensions that the result leaves out.
    let window_dims =
        without(operand.dims().len(), &[&dims.collapsed_slice_dims, &dims.operand_batching_dims]);
    for (&d, &to) in zip(&window_dims, &dims.offset_dims) {
        // A slice of the whole dimension has as many elements as that at run time.
        let whole = op.slice_sizes[d] == operand.dims()[d];
        sizes[to] = if whole { operand.sizes()[d] } else { op.slice_sizes[d] };
    }
    let axes = zip(&window_dims, &dims.offset_dims);
    let axes = axes.map(|(&d, &to)| (op.slice_sizes[d], [from_steps[d], to_steps[to]]));
    let mut window = Walk::new(evaluator, axes);

    // For each component of an index vector: the last start, and the distance of two.
    let room = |&d: &usize| (operand.dims()[d], op.slice_sizes[d], from_steps[d] as usize);
    let starts: Vec<_> = dims.start_index_map.iter().map(room).collect();
    let mut result = Array::zeros(shape.clone())?;
    if op.slice_sizes.contains(&0) {
        // There is nothing to take, even if the dimension with no element is one left out.
        return Ok(with_bounded_sizes(result, &sizes)?.into());
    }
    let data = result.data_mut();
    batches.points([0, 0, 0], |[vector, mut from, to]| {
        for (i, &(dim, size, step)) in starts.iter().enumerate() {
            from += clamp_start(vectors.component(vector, i)?, dim, size) * step;
        }
        copy(&mut window, [from, to], operand.data(), data)
    })?;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}
