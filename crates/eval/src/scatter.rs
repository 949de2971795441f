//! `scatter`: slices combined into arrays at the places that indices list.

use std::iter::zip;

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, only};
use crate::index::{IndexVectors, without};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, outside, steps, store};

/// The operands with each window of the updates combined into them at its index vector's place; a
/// window that reaches out of the operand is left out as a whole. (`semantics.md` §5)
///
/// Index vectors come in row-major order, then the elements of a window: the order of XLA's
/// evaluator. It is the updates' own row-major order if window dimensions come last, as they
/// usually do.
pub(crate) fn scatter(
    op: &ops::Scatter,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let arrays: Vec<&Array> = (0..args.len()).map(|i| array(args, i)).collect::<Result<_>>()?;
    let count = arrays.len() / 2;
    let (operands, indices, updates) = match &arrays[..] {
        [rest @ ..] if rest.len() == 2 * count + 1 && count > 0 => {
            (&rest[..count], rest[count], &rest[count + 1..])
        }
        _ => return Err(Error::internal("as many updates as operands are expected")),
    };
    let (operand, update) = (operands[0], updates[0]);
    let dims = &op.dims;
    let vectors = IndexVectors::new(indices, dims.index_vector_dim);
    let to_steps = steps(operand.dims());
    let from_steps = steps(update.dims());

    // The box of index vectors: where they lie, and what they contribute to both places.
    let scatter_dims = without(update.dims().len(), &[&dims.update_window_dims]);
    let axes = zip(&scatter_dims, &vectors.dims).map(|(&from, &d)| {
        let batching = dims.scatter_indices_batching_dims.iter().position(|&b| b == d);
        let to_step = batching.map_or(0, |i| to_steps[dims.input_batching_dims[i]]);
        (update.sizes()[from], [vectors.steps[d], from_steps[from], to_step])
    });
    let mut batches = Walk::new(evaluator, axes);

    // The box of a window.
    let window_dims =
        without(operand.dims().len(), &[&dims.inserted_window_dims, &dims.input_batching_dims]);
    let axes = zip(&window_dims, &dims.update_window_dims);
    let axes = axes.map(|(&d, &from)| (update.sizes()[from], [from_steps[from], to_steps[d]]));
    let mut window = Walk::new(evaluator, axes);

    // For each component of an index vector: the last start, and the distance of two.
    let room = |&d: &usize| {
        let from = window_dims.iter().position(|&w| w == d).map(|i| dims.update_window_dims[i]);
        let size = from.map_or(1, |from| update.dims()[from]);
        (operand.dims()[d] as i128 - size as i128, to_steps[d] as usize)
    };
    let starts: Vec<_> = dims.scatter_dims_to_operand_dims.iter().map(room).collect();

    let leaves = shape.leaves();
    let results = zip(operands, leaves).map(|(operand, leaf)| match leaf.as_array() {
        Some(shape) => operand.with_shape(shape.clone()),
        None => Err(outside()),
    });
    let mut results: Vec<Array> = results.collect::<Result<_>>()?;
    let mut function = ScalarFn::new(evaluator, op.to_apply);
    let (mut arguments, mut values) = (Vec::new(), Vec::new());
    batches.points([0, 0, 0], |[vector, from, mut to]| {
        for (i, &(last, step)) in starts.iter().enumerate() {
            let start = vectors.component(vector, i)?;
            if start < 0 || start > last {
                return Ok(());
            }
            to += start as usize * step;
        }
        window.points([from, to], |[from, to]| {
            arguments.clear();
            arguments.extend(results.iter().map(|result| Scalar::of(result, to)));
            arguments.extend(updates.iter().map(|update| Scalar::of(update, from)));
            function.call(&arguments, &mut values)?;
            if values.len() != results.len() {
                return Err(Error::internal("as many values as operands are expected"));
            }
            let mut pairs = zip(&mut results, &values);
            pairs.try_for_each(|(result, &value)| store(result.data_mut(), to, value))
        })
    })?;
    let results = results.into_iter().map(|result| {
        let sizes = operand.sizes();
        Ok(with_bounded_sizes(result, sizes)?.into())
    });
    only(&results.collect::<Result<Vec<Literal>>>()?)
}
