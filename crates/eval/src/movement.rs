//! Operations whose result has the operands' elements at other places (`broadcast`, `transpose`,
//! `reverse`, `concatenate`), and `iota`: each copies boxes of one array into another.

use std::iter::zip;

use helio_ir::{
    Array, ArrayShape, Literal, Native, Number, Result, Shape, dispatch_type, memory, ops,
};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::walk::{Walk, copy, outside, steps};

/// The index along one dimension.
pub(crate) fn iota(
    op: &ops::Iota,
    evaluator: &Evaluator<'_>,
    _: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let shape = array_shape(shape)?;
    let mut result = Array::zeros(shape.clone())?;
    if shape.element_count() == 0 {
        return Ok(result.into());
    }
    let count = *shape.dims().get(op.dimension).ok_or_else(outside)?;
    let _counted = memory::reserve(count.saturating_mul(shape.element().size_bytes()))?;
    let counted = dispatch_type!(shape.element(), T => {
        T::wrap((0..count).map(|i| T::from_number(Number::Int(i as i128))).collect())
    });
    let axes = zip(shape.dims(), steps(shape.dims())).enumerate();
    let axes = axes.map(|(d, (&dim, step))| (dim, [isize::from(d == op.dimension), step]));
    copy(&mut Walk::new(evaluator, axes), [0, 0], &counted, result.data_mut())?;
    Ok(result.into())
}

/// The operand again at each index of the new dimensions.
pub(crate) fn broadcast(
    op: &ops::Broadcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let mut sizes = shape.dims().to_vec();
    let mut from_steps = vec![0; shape.rank()];
    for (d, (&target, step)) in zip(&op.dimensions, steps(operand.dims())).enumerate() {
        *from_steps.get_mut(target).ok_or_else(outside)? = step;
        sizes[target] = operand.sizes()[d];
    }
    let mut result = Array::zeros(shape.clone())?;
    let to_steps = steps(shape.dims());
    let axes = (0..shape.rank()).map(|d| (shape.dims()[d], [from_steps[d], to_steps[d]]));
    copy(&mut Walk::new(evaluator, axes), [0, 0], operand.data(), result.data_mut())?;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

/// Dimension `d` of the result is dimension `permutation[d]` of the operand.
pub(crate) fn transpose(
    op: &ops::Transpose,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let result = permuted(evaluator, operand, &op.permutation, shape)?;
    let sizes: Vec<usize> = op.permutation.iter().map(|&d| operand.sizes()[d]).collect();
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

/// The elements of `operand` (padding included) with its dimensions in another order.
pub(crate) fn permuted(
    evaluator: &Evaluator<'_>,
    operand: &Array,
    permutation: &[usize],
    shape: &ArrayShape,
) -> Result<Array> {
    let mut result = Array::zeros(shape.clone())?;
    let from_steps = steps(operand.dims());
    let axes = zip(permutation, steps(shape.dims()));
    let axes = axes.map(|(&d, to_step)| (operand.dims()[d], [from_steps[d], to_step]));
    copy(&mut Walk::new(evaluator, axes), [0, 0], operand.data(), result.data_mut())?;
    Ok(result)
}

/// The elements from the last to the first along some dimensions.
pub(crate) fn reverse(
    op: &ops::Reverse,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let mut result = Array::zeros(shape.clone())?;
    let to_steps = steps(shape.dims());
    let mut from_steps = to_steps.clone();
    let mut first = 0;
    for &d in &op.dimensions {
        // Padding is not reversed: it stays behind the elements.
        first += operand.sizes()[d].saturating_sub(1) * from_steps[d] as usize;
        from_steps[d] = -from_steps[d];
    }
    let sizes = operand.sizes();
    let axes = (0..shape.rank()).map(|d| (sizes[d], [from_steps[d], to_steps[d]]));
    copy(&mut Walk::new(evaluator, axes), [first, 0], operand.data(), result.data_mut())?;
    Ok(with_bounded_sizes(result, sizes)?.into())
}

/// The operands one after the other along a dimension, their padding left out.
pub(crate) fn concatenate(
    op: &ops::Concatenate,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let shape = array_shape(shape)?;
    let mut result = Array::zeros(shape.clone())?;
    let to_steps = steps(shape.dims());
    // Of the other dimensions only what all operands have.
    let mut sizes = shape.dims().to_vec();
    let mut end = 0;
    for i in 0..args.len() {
        let operand = array(args, i)?;
        let axes = zip(operand.sizes(), zip(steps(operand.dims()), &to_steps));
        let axes = axes.map(|(&size, (from_step, &to_step))| (size, [from_step, to_step]));
        let start = [0, end * to_steps[op.dimension] as usize];
        copy(&mut Walk::new(evaluator, axes), start, operand.data(), result.data_mut())?;
        end += operand.sizes()[op.dimension];
        sizes = zip(sizes, operand.sizes()).map(|(a, &b)| a.min(b)).collect();
    }
    sizes[op.dimension] = end;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

#[cfg(test)]
mod tests {
    use helio_ir::ElementType::{self, BF16, F32, S4, S32};
    use helio_ir::types::{BF16 as Bf16, I4};

    use super::*;
    use crate::testing::{
        Random, at, bounded, counting, defined, of, resized, run, same, shape, values,
    };

    #[test]
    fn iota_counts_along_its_dimension() {
        let op = |shape: &ArrayShape, dimension| ops::Iota { shape: shape.clone(), dimension };
        let out = shape(S32, &[2, 3]);
        let run_iota =
            |out: &ArrayShape, dimension| run(iota, op(out, dimension), &[], out).unwrap();
        // E4 "Iota"
        assert_eq!(values::<i32>(&run_iota(&out, 0)), [0, 0, 0, 1, 1, 1]);
        assert_eq!(values::<i32>(&run_iota(&out, 1)), [0, 1, 2, 0, 1, 2]);
        // 257 is not a bf16: ties to even.
        let bf16 = values::<Bf16>(&run_iota(&shape(BF16, &[260]), 0));
        assert_eq!(bf16[257].to_f32(), 256.0);
        let s4 = values::<I4>(&run_iota(&shape(S4, &[9]), 0));
        assert_eq!(s4[8].get(), -8);
        run_iota(&shape(F32, &[0, usize::MAX >> 3]), 1);
    }

    #[test]
    fn broadcast_repeats_along_new_dimensions() {
        let mut random = Random(1);
        for _ in 0..200 {
            let dims = random.dims();
            let target = [&[2][..], &dims, &[3]].concat();
            let out = shape(S32, &target);
            let dimensions = (1..=dims.len()).collect();
            let op = ops::Broadcast { shape: out.clone(), dimensions };
            let operand = counting(&dims);
            let found = run(broadcast, op, &[&operand], &out).unwrap();
            same(&found, &defined(&target, |i| at(&operand, &i[1..=dims.len()])));
        }
        // Dimensions need not come in order.
        let out = shape(S32, &[3, 2]);
        let op = ops::Broadcast { shape: out.clone(), dimensions: vec![1, 0] };
        let found = run(broadcast, op, &[&counting(&[2, 3])], &out).unwrap();
        assert_eq!(values::<i32>(&found), [0, 3, 1, 4, 2, 5]);
    }

    fn transposed(operand: &Array, permutation: &[usize]) -> Array {
        let dims: Vec<usize> = permutation.iter().map(|&d| operand.dims()[d]).collect();
        let op = ops::Transpose { permutation: permutation.to_vec() };
        run(transpose, op, &[operand], &shape(S32, &dims)).unwrap()
    }

    #[test]
    fn transpose_and_back_changes_nothing() {
        let mut random = Random(2);
        for _ in 0..200 {
            let operand = counting(&random.dims());
            let rank = operand.dims().len();
            let mut permutation: Vec<usize> = (0..rank).collect();
            for d in (1..rank).rev() {
                permutation.swap(d, random.below(d + 1));
            }
            let mut inverse = vec![0; rank];
            permutation.iter().enumerate().for_each(|(i, &d)| inverse[d] = i);
            let found = transposed(&operand, &permutation);
            let expected = defined(found.dims(), |i| {
                at(&operand, &inverse.iter().map(|&d| i[d]).collect::<Vec<_>>())
            });
            same(&found, &expected);
            same(&transposed(&found, &inverse), &operand);
        }
    }

    fn reversed(operand: &Array, dimensions: &[usize]) -> Array {
        let op = ops::Reverse { dimensions: dimensions.to_vec() };
        run(reverse, op, &[operand], operand.shape()).unwrap()
    }

    #[test]
    fn reverse_twice_changes_nothing() {
        let mut random = Random(3);
        for _ in 0..200 {
            let operand = counting(&random.dims());
            let dims = operand.dims();
            let which: Vec<usize> = (0..dims.len()).filter(|_| random.below(2) == 0).collect();
            let found = reversed(&operand, &which);
            let expected = defined(dims, |i| {
                let index = i.iter().enumerate();
                let index =
                    index.map(|(d, &i)| if which.contains(&d) { dims[d] - 1 - i } else { i });
                at(&operand, &index.collect::<Vec<_>>())
            });
            same(&found, &expected);
            same(&reversed(&found, &which), &operand);
        }
    }

    #[test]
    fn concatenate_joins() {
        // E4 "ConcatInDim"
        let (a, b) = (of(&[3, 2], &[1, 2, 3, 4, 5, 6]), of(&[1, 2], &[7, 8]));
        let op = ops::Concatenate { dimension: 0 };
        let found = run(concatenate, op, &[&a, &b], &shape(S32, &[4, 2])).unwrap();
        assert_eq!(values::<i32>(&found), [1, 2, 3, 4, 5, 6, 7, 8]);
        let (a, b, none) = (counting(&[2, 1]), counting(&[2, 2]), counting(&[2, 0]));
        let op = ops::Concatenate { dimension: 1 };
        let found = run(concatenate, op, &[&a, &none, &b], &shape(S32, &[2, 3])).unwrap();
        assert_eq!(values::<i32>(&found), [0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn sizes_at_run_time_go_along() {
        // Rows 0 1 2, 3 4 5 of which 2 columns count.
        let x = resized(&counting(&[2, 3]), &[1], &[2, 2]);
        let out = bounded(S32, &[3, 2], &[0]);
        let op = ops::Transpose { permutation: vec![1, 0] };
        let found = run(transpose, op, &[&x], &out).unwrap();
        assert_eq!(found.sizes(), [2, 2]);
        assert_eq!(values::<i32>(&found)[..4], [0, 3, 1, 4]);

        let found = run(reverse, ops::Reverse { dimensions: vec![1] }, &[&x], x.shape()).unwrap();
        assert_eq!(found.sizes(), [2, 2]);
        assert_eq!([at(&found, &[0, 0]), at(&found, &[0, 1]), at(&found, &[1, 0])], [1, 0, 4]);

        let y = counting(&[2, 1]);
        let out = bounded(S32, &[2, 4], &[1]);
        let op = ops::Concatenate { dimension: 1 };
        let found = run(concatenate, op, &[&x, &y], &out).unwrap();
        assert_eq!(found.sizes(), [2, 3]);
        assert_eq!([at(&found, &[0, 2]), at(&found, &[1, 1]), at(&found, &[1, 2])], [0, 4, 1]);

        let out = bounded(S32, &[4, 2, 3], &[2]);
        let op = ops::Broadcast { shape: out.clone(), dimensions: vec![1, 2] };
        assert_eq!(run(broadcast, op, &[&x], &out).unwrap().sizes(), [4, 2, 2]);
    }

    #[test]
    fn any_element_type_moves() {
        for &element in ElementType::ALL {
            let x = dispatch_type!(element, T => {
                Array::new([2, 2], [0, 1, 0, 0].map(<T as Native>::from_bits).to_vec()).unwrap()
            });
            let op = ops::Transpose { permutation: vec![1, 0] };
            let found = run(transpose, op, &[&x], &shape(element, &[2, 2])).unwrap();
            let bits: Vec<u128> = (0..4).map(|i| found.bits(i)).collect();
            assert_eq!(bits, [0, 0, 1, 0], "{element}");
        }
    }
}
