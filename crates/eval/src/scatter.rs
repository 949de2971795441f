//! `scatter`: slices combined into arrays at the places that indices list.

use std::iter::zip;

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, only, take_array};
use crate::index::{IndexVectors, without};
use crate::scalar::{Scalar, ScalarFn};
use crate::walk::{Walk, outside, steps, store};

/// The operands with each window of the updates combined into them at its index vector's place; a
/// window that reaches out of the operand is left out as a whole. (`semantics.md` §5) Done in place
/// where nobody else needs an operand.
///
/// Index vectors come in row-major order, then the elements of a window: the order of XLA's
/// evaluator. It is the updates' own row-major order if window dimensions come last, as they
/// usually do.
pub(crate) fn scatter(
    op: &ops::Scatter,
    evaluator: &Evaluator<'_>,
    mut args: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let count = args.len() / 2;
    if count == 0 || args.len() != 2 * count + 1 {
        return Err(Error::internal("as many updates as operands are expected"));
    }
    let operands = (0..count).map(|i| take_array(&mut args, i));
    let operands: Vec<Array> = operands.collect::<Result<_>>()?;
    let indices = array(&args, count)?;
    let updates = (count + 1..args.len()).map(|i| array(&args, i));
    let updates: Vec<&Array> = updates.collect::<Result<_>>()?;
    let mut places = Places::new(op, evaluator, &operands[0], indices, updates[0]);
    let leaves = shape.leaves();
    let results = zip(&operands, leaves).map(|(operand, leaf)| match leaf.as_array() {
        Some(shape) => operand.with_shape(shape.clone()),
        None => Err(outside()),
    });
    let mut results: Vec<Array> = results.collect::<Result<_>>()?;
    let sizes = operands[0].sizes().to_vec();
    drop(operands); // Now the elements are shared with nobody, or with somebody who needs them.
    let mut function = ScalarFn::new(evaluator, op.to_apply);
    let (mut arguments, mut values) = (Vec::new(), Vec::new());
    places.each(|from, to| {
        arguments.clear();
        arguments.extend(results.iter().map(|result| Scalar::of(result, to)));
        arguments.extend(updates.iter().map(|update| Scalar::of(update, from)));
        function.call(&arguments, &mut values)?;
        if values.len() != results.len() {
            return Err(Error::internal("as many values as operands are expected"));
        }
        let mut pairs = zip(&mut results, &values);
        pairs.try_for_each(|(result, &value)| store(result.data_mut(), to, value))
    })?;
    let results = results.into_iter().map(|result| Ok(with_bounded_sizes(result, &sizes)?.into()));
    only(&results.collect::<Result<Vec<Literal>>>()?)
}

/// Where each element of the updates goes.
struct Places<'a> {
    vectors: IndexVectors<'a>,
    /// The box of index vectors: where they lie, and what they contribute to the places in the updates
    /// and in the operand.
    batches: Walk<'a, 3>,
    /// The box of a window, in the updates and in the operand.
    window: Walk<'a, 2>,
    /// For each component of an index vector: the last start, and the distance of two.
    starts: Vec<(i128, usize)>,
    /// Whether the operand has no elements: no window fits, whatever the indices say.
    is_empty: bool,
}

impl<'a> Places<'a> {
    fn new(
        op: &ops::Scatter,
        evaluator: &'a Evaluator<'a>,
        operand: &Array,
        indices: &'a Array,
        update: &Array,
    ) -> Self {
        let dims = &op.dims;
        let vectors = IndexVectors::new(indices, dims.index_vector_dim);
        let to_steps = steps(operand.dims());
        let from_steps = steps(update.dims());

        let scatter_dims = without(update.dims().len(), &[&dims.update_window_dims]);
        let axes = zip(&scatter_dims, &vectors.dims).map(|(&from, &d)| {
            let batching = dims.scatter_indices_batching_dims.iter().position(|&b| b == d);
            let to_step = batching.map_or(0, |i| to_steps[dims.input_batching_dims[i]]);
            // Where there is no index, an update goes nowhere.
            let size = update.sizes()[from].min(indices.sizes()[d]);
            (size, [vectors.steps[d], from_steps[from], to_step])
        });
        let batches = Walk::new(evaluator, axes);

        let left_out: [&[usize]; 2] = [&dims.inserted_window_dims, &dims.input_batching_dims];
        let window_dims = without(operand.dims().len(), &left_out);
        let axes = zip(&window_dims, &dims.update_window_dims);
        let axes = axes.map(|(&d, &from)| (update.sizes()[from], [from_steps[from], to_steps[d]]));
        let window = Walk::new(evaluator, axes);

        let start = |&d: &usize| {
            let from = window_dims.iter().position(|&w| w == d).map(|i| dims.update_window_dims[i]);
            let size = from.map_or(1, |from| update.dims()[from]);
            (operand.dims()[d] as i128 - size as i128, to_steps[d] as usize)
        };
        let starts = dims.scatter_dims_to_operand_dims.iter().map(start).collect();
        Places { vectors, batches, window, starts, is_empty: operand.data().is_empty() }
    }

    /// Visits the elements of the updates whose windows lie in the operand: where each is, and where it
    /// goes. Errors: those of the visitor, and of the walks.
    fn each(&mut self, mut visit: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let Places { vectors, batches, window, starts, is_empty } = self;
        if *is_empty {
            return Ok(());
        }
        batches.points([0, 0, 0], |[vector, from, mut to]| {
            for (i, &(last, step)) in starts.iter().enumerate() {
                let start = vectors.component(vector, i)?;
                if start < 0 || start > last {
                    return Ok(());
                }
                to += start as usize * step;
            }
            window.points([from, to], |[from, to]| visit(from, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use helio_ir::CompId;
    use helio_ir::ElementType::{F32, S32};
    use helio_ir::ops::BinaryOp::{Add, Multiply};
    use helio_ir::ops::{Scatter, ScatterDims, Tuple};
    use helio_ir::types::IndexIter;

    use super::*;
    use crate::gather::tests::Form;
    use crate::testing::{Bench, Random, counting, of, run_all, run_on, shape, values};

    /// [`super::scatter`], in the form in which [`run_on`] takes operations.
    fn scatter(
        op: &Scatter,
        evaluator: &Evaluator<'_>,
        args: &[Literal],
        shape: &Shape,
    ) -> Result<Literal> {
        super::scatter(op, evaluator, args.to_vec(), shape)
    }

    fn op(dims: ScatterDims, to_apply: CompId) -> Scatter {
        Scatter { dims, indices_are_sorted: false, unique_indices: false, to_apply }
    }

    fn scattered(
        bench: &Bench,
        op: Scatter,
        x: &Array,
        indices: &Array,
        updates: &Array,
    ) -> Vec<i32> {
        let out = shape(S32, x.dims());
        values(&run_on(&bench.evaluator(), scatter, op, &[x, indices, updates], &out).unwrap())
    }

    #[test]
    fn scatter_agrees_with_its_definition() {
        let mut bench = Bench::new();
        let add = bench.binary(Add, S32);
        let mut random = Random(13);
        for _ in 0..500 {
            // Scatter's dimensions mirror those of gather.
            let form = Form::random(&mut random);
            let indices = form.random_indices(&mut random);
            let (operand, updates) = (counting(&form.operand), counting(&form.result));
            let mut expected = values::<i32>(&operand);
            let mut points = IndexIter::new(&form.result);
            let mut update = 0;
            while let Some(point) = points.next_point() {
                let origin = form.origin(&indices, point);
                let fits = origin.iter().enumerate().all(|(d, &(start, _))| {
                    start >= 0 && start as usize + form.op.slice_sizes[d] <= form.operand[d]
                });
                if fits {
                    let places = zip(&origin, steps(&form.operand));
                    let place = places
                        .map(|(&(start, offset), step)| (start as usize + offset) * step as usize);
                    expected[place.sum::<usize>()] += update;
                }
                update += 1;
            }
            let dims = form.op.dims.clone();
            let dims = ScatterDims {
                update_window_dims: dims.offset_dims,
                inserted_window_dims: dims.collapsed_slice_dims,
                scatter_dims_to_operand_dims: dims.start_index_map,
                input_batching_dims: dims.operand_batching_dims,
                scatter_indices_batching_dims: dims.start_indices_batching_dims,
                index_vector_dim: dims.index_vector_dim,
            };
            let found = scattered(&bench, op(dims, add), &operand, &indices, &updates);
            assert_eq!(found, expected, "{form:?}");
        }
    }

    #[test]
    fn scatter_goes_through_index_vectors_first() {
        let mut bench = Bench::new();
        let scalar = || Shape::scalar(S32);
        let ten = ops::Constant::new(Literal::scalar(10));
        let ops = [
            (ten.into(), &[][..], scalar()),
            (Multiply.into(), &[0, 2], scalar()),
            (Add.into(), &[3, 1], scalar()),
        ];
        let digits = bench.computation(&[S32, S32], &ops);
        let dims = ScatterDims {
            update_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: 1,
            ..ScatterDims::default()
        };
        // XLA:CPU, for both.
        let updates = of(&[2, 2], &[1, 2, 3, 4]);
        let zeros = of(&[4], &[0; 4]);
        let run = |indices: &[i32]| {
            scattered(&bench, op(dims.clone(), digits), &zeros, &of(&[2], indices), &updates)
        };
        assert_eq!(run(&[1, 0]), [2, 14, 3, 0]);
        assert_eq!(run(&[0, 1]), [1, 32, 4, 0]);
        // A window that reaches out is left out as a whole, wherever it does.
        assert_eq!(run(&[3, 0]), [2, 4, 0, 0]);
        assert_eq!(run(&[-1, 2]), [0, 0, 2, 4]);
    }

    #[test]
    fn scatter_takes_several_arrays() {
        let mut bench = Bench::new();
        let both = Shape::Tuple(vec![Shape::scalar(S32), Shape::scalar(F32)]);
        let ops = [
            (Add.into(), &[0, 2][..], Shape::scalar(S32)),
            (Multiply.into(), &[1, 3], Shape::scalar(F32)),
            (Tuple.into(), &[4, 5], both),
        ];
        let f = bench.computation(&[S32, F32, S32, F32], &ops);
        let dims = ScatterDims {
            inserted_window_dims: vec![0],
            scatter_dims_to_operand_dims: vec![0],
            index_vector_dim: 1,
            ..ScatterDims::default()
        };
        let (x, y) = (counting(&[3]), of(&[3], &[1f32, 2.0, 3.0]));
        let (u, v) = (of(&[3], &[10, 20, 30]), of(&[3], &[2f32, 3.0, 5.0]));
        let indices = of(&[3], &[2u8, 0, 2]);
        let out = Shape::Tuple(vec![x.shape().clone().into(), y.shape().clone().into()]);
        let args = [&x, &y, &indices, &u, &v];
        let found = run_all(&bench.evaluator(), scatter, op(dims, f), &args, &out).unwrap();
        assert_eq!(values::<i32>(&found[0]), [20, 1, 42]);
        assert_eq!(values::<f32>(&found[1]), [3.0, 2.0, 30.0]);
    }
}
