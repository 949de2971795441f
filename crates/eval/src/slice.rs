//! Boxes at regular distances: taken out of an array by `slice`, put into one by `pad`.

use std::iter::zip;

use helio_ir::{Array, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::scalar::Scalar;
use crate::walk::{Walk, copy, filled, steps};

/// Every `strides[d]`-th index from `starts[d]` up to `limits[d]`.
pub(crate) fn slice(
    op: &ops::Slice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let from_steps = steps(operand.dims());
    let mut result = Array::zeros(shape.clone())?;
    let axes = zip(shape.dims(), steps(shape.dims())).enumerate().map(|(d, (&dim, to_step))| {
        // With at most one point on the way, a stride may be larger than any array.
        let stride = if dim > 1 { op.strides[d] as isize } else { 0 };
        (dim, [from_steps[d] * stride, to_step])
    });
    let first = zip(&op.starts, &from_steps).fold(0usize, |first, (&start, &step)| {
        first.wrapping_add(start.wrapping_mul(step as usize))
    });
    copy(&mut Walk::new(evaluator, axes), [first, 0], operand.data(), result.data_mut())?;
    let sizes = zip(operand.sizes(), &op.limits).enumerate().map(|(d, (&size, &limit))| {
        size.min(limit).saturating_sub(op.starts[d]).div_ceil(op.strides[d].max(1))
    });
    let sizes: Vec<usize> = sizes.collect();
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

/// The operand's elements `interior + 1` apart, behind `low` padding values and before `high`.
pub(crate) fn pad(
    op: &ops::Pad,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let value = array(args, 1)?;
    if value.data().is_empty() {
        return Err(Error::internal("the padding value is not a scalar"));
    }
    let mut result = filled(shape, Scalar::of(value, 0))?;
    let (from_steps, to_steps) = (steps(operand.dims()), steps(shape.dims()));
    let mut start = [0usize; 2];
    let mut axes = Vec::with_capacity(shape.rank());
    let mut sizes = Vec::with_capacity(shape.rank());
    for (d, dim) in op.dims.iter().enumerate() {
        let (size, apart) = (operand.sizes()[d], dim.interior as i128 + 1);
        let (low, high) = (i128::from(dim.low), i128::from(dim.high));
        let spread = if size == 0 { 0 } else { (size as i128 - 1) * apart + 1 };
        let to_size = (low + spread + high).clamp(0, shape.dims()[d] as i128);
        // The elements that stay: element `k` comes to lie at `low + k * apart`.
        let first = if low < 0 { (-low + apart - 1) / apart } else { 0 };
        let end =
            (to_size - low + apart - 1).div_euclid(apart).clamp(first, first.max(size as i128));
        let count = (end - first) as usize;
        sizes.push(to_size as usize);
        axes.push(match count {
            0 => (0, [0, 0]),
            // The distance does not matter, and may be larger than any array.
            1 => (1, [0, 0]),
            _ => (count, [from_steps[d], apart as isize * to_steps[d]]),
        });
        if count > 0 {
            start[0] += first as usize * from_steps[d] as usize;
            start[1] += (low + first * apart) as usize * to_steps[d] as usize;
        }
    }
    copy(&mut Walk::new(evaluator, axes), start, operand.data(), result.data_mut())?;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

#[cfg(test)]
mod tests {
    use helio_ir::ElementType::{F32, S32};
    use helio_ir::ops::PadDim;

    use super::*;
    use crate::testing::{
        Random, at, bounded, counting, defined, of, resized, run, same, shape, values,
    };

    fn padded(operand: &Array, value: i32, dims: &[(i64, i64, usize)]) -> Array {
        let dims: Vec<PadDim> =
            dims.iter().map(|&(low, high, interior)| PadDim { low, high, interior }).collect();
        let out = zip(operand.dims(), &dims).map(|(&n, dim)| {
            let spread = n as i64 + n.saturating_sub(1) as i64 * dim.interior as i64;
            (dim.low + spread + dim.high) as usize
        });
        let out = shape(S32, &out.collect::<Vec<_>>());
        run(pad, ops::Pad { dims }, &[operand, &Array::scalar(value)], &out).unwrap()
    }

    #[test]
    fn pad_extends_and_crops() {
        // StableHLO "pad"
        let found = padded(&of(&[2, 3], &[1, 2, 3, 4, 5, 6]), 0, &[(0, 1, 2), (1, 2, 1)]);
        let expected = [[0, 1, 0, 2, 0, 3, 0, 0], [0; 8], [0; 8], [0, 4, 0, 5, 0, 6, 0, 0], [0; 8]];
        assert_eq!(values::<i32>(&found), expected.concat());
        // tests/cases/README.md
        let found = padded(&of(&[4], &[1, 2, 3, 4]), 9, &[(1, -2, 0)]);
        assert_eq!(values::<i32>(&found), [9, 1, 2]);
        // Interior first: 1 9 9 2 9 9 3, then crop 2 left and 1 right.
        let found = padded(&of(&[3], &[1, 2, 3]), 9, &[(-2, -1, 2)]);
        assert_eq!(values::<i32>(&found), [9, 2, 9, 9]);
        assert_eq!(values::<i32>(&padded(&of::<i32>(&[0], &[]), 7, &[(1, 2, 5)])), [7, 7, 7]);
        assert_eq!(values::<i32>(&padded(&of(&[1], &[4]), 7, &[(1, 0, usize::MAX)])), [7, 4]);
        assert_eq!(values::<i32>(&padded(&of(&[3], &[1, 2, 3]), 7, &[(4, -6, 0)])), [7]);
        assert_eq!(values::<i32>(&padded(&of(&[3], &[1, 2, 3]), 7, &[(-6, 4, 0)])), [7]);
    }

    #[test]
    fn pad_agrees_with_its_definition_and_slice_undoes_it() {
        let mut random = Random(4);
        for _ in 0..300 {
            let operand = counting(&random.dims());
            let dims: Vec<(i64, i64, usize)> = (0..operand.dims().len())
                .map(|_| (random.below(3) as i64, random.below(2) as i64, random.below(3)))
                .collect();
            if operand.dims().len() > 6 {
                continue;
            }
            let found = padded(&operand, -1, &dims);
            let expected = defined(found.dims(), |i| {
                let mut index = Vec::new();
                for (d, &(low, _, interior)) in dims.iter().enumerate() {
                    let i = i[d] as i64 - low;
                    let apart = interior as i64 + 1;
                    if i < 0 || i % apart != 0 || (i / apart) as usize >= operand.dims()[d] {
                        return -1;
                    }
                    index.push((i / apart) as usize);
                }
                at(&operand, &index)
            });
            same(&found, &expected);

            let starts: Vec<usize> = dims.iter().map(|&(low, ..)| low as usize).collect();
            let strides: Vec<usize> = dims.iter().map(|&(.., interior)| interior + 1).collect();
            let limits = zip(&starts, zip(operand.dims(), &strides));
            let limits = limits.map(|(&start, (&n, &stride))| match n {
                0 => start,
                n => start + (n - 1) * stride + 1,
            });
            let op = ops::Slice { limits: limits.collect(), starts, strides };
            same(&run(slice, op, &[&found], operand.shape()).unwrap(), &operand);
        }
    }

    #[test]
    fn slice_takes_every_so_many() {
        let op = |starts: &[usize], limits: &[usize], strides: &[usize]| ops::Slice {
            starts: starts.to_vec(),
            limits: limits.to_vec(),
            strides: strides.to_vec(),
        };
        // E4 "Slice"
        let x = of(&[5], &[0f32, 1.0, 2.0, 3.0, 4.0]);
        let found = run(slice, op(&[2], &[4], &[1]), &[&x], &shape(F32, &[2])).unwrap();
        assert_eq!(values::<f32>(&found), [2.0, 3.0]);
        let x = counting(&[4, 3]);
        let found = run(slice, op(&[2, 1], &[4, 3], &[1, 1]), &[&x], &shape(S32, &[2, 2])).unwrap();
        assert_eq!(values::<i32>(&found), [7, 8, 10, 11]);
        let x = counting(&[7]);
        let found = run(slice, op(&[1], &[7], &[3]), &[&x], &shape(S32, &[2])).unwrap();
        assert_eq!(values::<i32>(&found), [1, 4]);
        let found = run(slice, op(&[6], &[7], &[usize::MAX]), &[&x], &shape(S32, &[1])).unwrap();
        assert_eq!(values::<i32>(&found), [6]);
        run(slice, op(&[7], &[7], &[1]), &[&x], &shape(S32, &[0])).unwrap();
    }

    #[test]
    fn sizes_at_run_time_go_along() {
        // Rows 0 1 2, 3 4 5 of which 2 columns count.
        let x = resized(&counting(&[2, 3]), &[1], &[2, 2]);
        let column = PadDim { low: 1, high: 1, interior: 0 };
        let out = bounded(S32, &[2, 5], &[1]);
        let op = ops::Pad { dims: vec![PadDim::default(), column] };
        let found = run(pad, op, &[&x, &Array::scalar(9)], &out).unwrap();
        assert_eq!(found.sizes(), [2, 4]);
        assert_eq!(values::<i32>(&found)[5..9], [9, 3, 4, 9]);

        let op = ops::Slice { starts: vec![0, 1], limits: vec![2, 3], strides: vec![1, 1] };
        let found = run(slice, op, &[&x], &bounded(S32, &[2, 2], &[1])).unwrap();
        assert_eq!(found.sizes(), [2, 1]);
    }
}
