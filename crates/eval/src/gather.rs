//! `gather`: slices of an array at the places that indices list.

use std::iter::zip;

use helio_ir::{Array, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::index::{IndexVectors, clamp_start, without};
use crate::walk::{Walk, copy, steps};

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

#[cfg(test)]
pub(crate) mod tests {
    use helio_ir::ElementType::S32;
    use helio_ir::ops::{Gather, GatherDims};
    use helio_ir::types::IndexIter;

    use super::*;
    use crate::testing::{Random, bounded, counting, of, resized, run, shape, values};

    fn gathered(operand: &Array, indices: &Array, op: Gather, out: &[usize]) -> Vec<i32> {
        values(&run(gather, op, &[operand, indices], &shape(S32, out)).unwrap())
    }

    fn op(dims: GatherDims, slice_sizes: &[usize]) -> Gather {
        Gather { dims, slice_sizes: slice_sizes.to_vec(), indices_are_sorted: false }
    }

    #[test]
    fn gather_takes_rows_and_elements() {
        let x = of(&[3, 3], &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let indices = of(&[2], &[0, 2]);
        // NumPy: x[[0, 2]]
        let rows = GatherDims {
            offset_dims: vec![1],
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        let found = gathered(&x, &indices, op(rows.clone(), &[1, 3]), &[2, 3]);
        assert_eq!(found, [1, 2, 3, 7, 8, 9]);
        // NumPy: x[:, [0, 2]]
        let columns = GatherDims {
            offset_dims: vec![0],
            collapsed_slice_dims: vec![1],
            start_index_map: vec![1],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        let found = gathered(&x, &indices, op(columns, &[3, 1]), &[3, 2]);
        assert_eq!(found, [1, 3, 4, 6, 7, 9]);
        // Elements, by vectors of two that lie along dimension 0; starts are clamped (semantics §5).
        let elements = GatherDims {
            collapsed_slice_dims: vec![0, 1],
            start_index_map: vec![0, 1],
            index_vector_dim: 0,
            ..GatherDims::default()
        };
        let indices = of(&[2, 3], &[1i64, 9, -1, 0, 9, -1]);
        assert_eq!(gathered(&x, &indices, op(elements, &[1, 1]), &[3]), [4, 9, 1]);
        let indices = of(&[2], &[u64::MAX, 1]);
        assert_eq!(gathered(&x, &indices, op(rows, &[1, 3]), &[2, 3]), [7, 8, 9, 4, 5, 6]);
    }

    /// A gather of any form, and the dimensions of everything in it.
    #[derive(Debug)]
    pub(crate) struct Form {
        pub(crate) op: Gather,
        pub(crate) operand: Vec<usize>,
        pub(crate) indices: Vec<usize>,
        pub(crate) result: Vec<usize>,
    }

    impl Form {
        pub(crate) fn random(random: &mut Random) -> Form {
            let mut dims = GatherDims::default();
            let (mut operand, mut slice_sizes, mut batch, mut window) =
                (vec![], vec![], vec![], vec![]);
            for d in 0..random.below(5) {
                let dim = 1 + random.below(4);
                operand.push(dim);
                let size = match random.below(4) {
                    0 => {
                        dims.collapsed_slice_dims.push(d);
                        1
                    }
                    1 => {
                        dims.operand_batching_dims.push(d);
                        batch.push((dim, true));
                        1
                    }
                    _ => {
                        window.push(1 + random.below(dim));
                        window[window.len() - 1]
                    }
                };
                slice_sizes.push(size);
                if !dims.operand_batching_dims.contains(&d) && random.below(3) > 0 {
                    let place = random.below(dims.start_index_map.len() + 1);
                    dims.start_index_map.insert(place, d);
                }
            }
            // Further dimensions of the indices, anywhere among those that go along.
            for _ in 0..random.below(3) {
                batch.insert(random.below(batch.len() + 1), (random.below(4), false));
            }
            let scalars = dims.start_index_map.len() == 1 && random.below(2) == 0;
            let mut indices: Vec<usize> = batch.iter().map(|&(dim, _)| dim).collect();
            dims.index_vector_dim =
                if scalars { indices.len() } else { random.below(indices.len() + 1) };
            if !scalars {
                indices.insert(dims.index_vector_dim, dims.start_index_map.len());
            }
            let along = batch.iter().enumerate().filter(|(_, (_, along))| *along);
            dims.start_indices_batching_dims = along
                .map(|(i, _)| if !scalars && i >= dims.index_vector_dim { i + 1 } else { i })
                .collect();
            // The result: window dimensions in order, anywhere among the batch dimensions.
            let mut result: Vec<(usize, bool)> =
                batch.iter().map(|&(dim, _)| (dim, false)).collect();
            let mut place = 0;
            for &size in &window {
                place += random.below(result.len() - place + 1);
                result.insert(place, (size, true));
                place += 1;
            }
            let offset = result.iter().enumerate().filter(|(_, (_, is_offset))| *is_offset);
            dims.offset_dims = offset.map(|(i, _)| i).collect();
            let result = result.iter().map(|&(dim, _)| dim).collect();
            Form { op: op(dims, &slice_sizes), operand, indices, result }
        }

        /// Indices, some of which are out of range.
        pub(crate) fn random_indices(&self, random: &mut Random) -> Array {
            let count = self.indices.iter().product();
            let values: Vec<i32> = (0..count).map(|_| random.below(8) as i32 - 2).collect();
            of(&self.indices, &values)
        }

        /// By the definition of StableHLO "gather": the start index and the index in the slice
        /// that belong to an index of the result, for each dimension of the operand.
        pub(crate) fn origin(&self, indices: &Array, result: &[usize]) -> Vec<(i64, usize)> {
            let dims = &self.op.dims;
            let batch = without(result.len(), &[&dims.offset_dims]);
            let batch: Vec<usize> = batch.iter().map(|&d| result[d]).collect();
            let component = |i: usize| {
                let mut at = batch.clone();
                if dims.index_vector_dim < self.indices.len() {
                    at.insert(dims.index_vector_dim, i);
                }
                let place: usize =
                    zip(&at, steps(&self.indices)).map(|(&i, step)| i * step as usize).sum();
                i64::from(values::<i32>(indices)[place])
            };
            let mut offsets = dims.offset_dims.iter().map(|&d| result[d]);
            let of = |d: usize| {
                let map = dims.start_index_map.iter().position(|&m| m == d);
                if let Some(i) = dims.operand_batching_dims.iter().position(|&b| b == d) {
                    let along = dims.start_indices_batching_dims[i];
                    let along = along - usize::from(along > dims.index_vector_dim);
                    return (batch[along] as i64, 0);
                }
                let collapsed = dims.collapsed_slice_dims.contains(&d);
                let offset = if collapsed { 0 } else { offsets.next().unwrap() };
                (map.map_or(0, component), offset)
            };
            (0..self.operand.len()).map(of).collect()
        }
    }

    #[test]
    fn gather_agrees_with_its_definition() {
        let mut random = Random(11);
        for _ in 0..500 {
            let form = Form::random(&mut random);
            let indices = form.random_indices(&mut random);
            let operand = counting(&form.operand);
            let found = gathered(&operand, &indices, form.op.clone(), &form.result);
            let mut points = IndexIter::new(&form.result);
            let mut expected = Vec::new();
            while let Some(point) = points.next_point() {
                let origin = form.origin(&indices, point).into_iter().enumerate();
                let index = origin.map(|(d, (start, offset))| {
                    let last = form.operand[d] - form.op.slice_sizes[d];
                    start.clamp(0, last as i64) as usize + offset
                });
                let place: usize =
                    zip(index, steps(&form.operand)).map(|(i, step)| i * step as usize).sum();
                expected.push(place as i32);
            }
            assert_eq!(found, expected, "{form:?}");
        }
    }

    #[test]
    fn gather_of_nothing() {
        // A slice of no element, though its dimension is left out: XLA's rules allow it.
        let dims = GatherDims {
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        let found = gathered(&counting(&[0]), &of(&[2], &[0, 1]), op(dims, &[0]), &[2]);
        assert_eq!(found, [0, 0]);
    }

    #[test]
    fn sizes_at_run_time_go_along() {
        let dims = GatherDims {
            offset_dims: vec![1],
            collapsed_slice_dims: vec![0],
            start_index_map: vec![0],
            index_vector_dim: 1,
            ..GatherDims::default()
        };
        let x = resized(&counting(&[2, 3]), &[1], &[2, 2]);
        let indices = resized(&of(&[3], &[1, 0, 0]), &[0], &[1]);
        let out = bounded(S32, &[3, 3], &[0, 1]);
        let found = run(gather, op(dims, &[1, 3]), &[&x, &indices], &out).unwrap();
        assert_eq!(found.sizes(), [1, 2]);
        assert_eq!(values::<i32>(&found)[..2], [3, 4]);
    }
}
