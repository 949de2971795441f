//! Boxes at places known only at run time, and sizes known only at run time.

use std::iter::zip;

use helio_ir::{Array, DimKind, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape, take_array};
use crate::index::{clamp_start, scalar_integer, start_indices};
use crate::walk::{Walk, copy, outside, steps};

/// A box of the operand, moved inside where it would reach out.
pub(crate) fn dynamic_slice(
    op: &ops::DynamicSlice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let mut result = Array::zeros(shape.clone())?;
    let starts = clamped_starts(args.get(1..).unwrap_or_default(), operand, &op.sizes)?;
    let from_steps = steps(operand.dims());
    let axes = zip(&op.sizes, zip(&from_steps, steps(shape.dims())));
    let axes = axes.map(|(&size, (&from_step, to_step))| (size, [from_step, to_step]));
    let start = [place(&starts, &from_steps), 0];
    copy(&mut Walk::new(evaluator, axes), start, operand.data(), result.data_mut())?;
    let sizes = zip(&op.sizes, zip(operand.sizes(), &starts));
    let sizes: Vec<usize> =
        sizes.map(|(&size, (&of, start))| size.min(of.saturating_sub(*start))).collect();
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

/// The operand with a box replaced by the update, moved inside where it would reach out; in place
/// if nobody else needs the operand.
pub(crate) fn dynamic_update_slice(
    _: &ops::DynamicUpdateSlice,
    evaluator: &Evaluator<'_>,
    mut args: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    let operand = take_array(&mut args, 0)?;
    let (update, shape) = (array(&args, 1)?, array_shape(shape)?);
    let starts = clamped_starts(args.get(2..).unwrap_or_default(), &operand, update.dims())?;
    let to_steps = steps(operand.dims());
    let axes = zip(update.sizes(), zip(steps(update.dims()), &to_steps));
    let axes = axes.map(|(&size, (from_step, &to_step))| (size, [from_step, to_step]));
    let start = [0, place(&starts, &to_steps)];
    let sizes = operand.sizes().to_vec();
    let mut result = operand.with_shape(shape.clone())?;
    drop(operand); // Now the elements are shared with nobody, or with somebody who needs them.
    copy(&mut Walk::new(evaluator, axes), start, update.data(), result.data_mut())?;
    Ok(with_bounded_sizes(result, &sizes)?.into())
}

fn clamped_starts(indices: &[Literal], operand: &Array, sizes: &[usize]) -> Result<Vec<usize>> {
    let starts = start_indices(indices, operand.dims().len())?;
    let limits = zip(operand.dims(), sizes);
    Ok(zip(starts, limits).map(|(start, (&dim, &size))| clamp_start(start, dim, size)).collect())
}

/// Where a point lies in row-major order.
fn place(point: &[usize], steps: &[isize]) -> usize {
    zip(point, steps).map(|(&index, &step)| index * step as usize).sum()
}

/// The size of a dimension at run time.
pub(crate) fn get_dimension_size(
    op: &ops::GetDimensionSize,
    _: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let size = *array(args, 0)?.sizes().get(op.dimension).ok_or_else(outside)?;
    let size = i32::try_from(size).map_err(|_| {
        Error::invalid(format!("dimension {} has size {size}, too large for s32", op.dimension))
    })?;
    Ok(Literal::scalar(size))
}

/// The operand with another size of a dimension at run time.
pub(crate) fn set_dimension_size(
    op: &ops::SetDimensionSize,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let (size, d) = (scalar_integer(args, 1)?, op.dimension);
    let (bound, kind) = (*shape.dims().get(d).ok_or_else(outside)?, shape.kinds()[d]);
    let least = if kind == DimKind::Bounded { 0 } else { bound };
    let size = usize::try_from(size).ok().filter(|size| (least..=bound).contains(size));
    let size = size.ok_or_else(|| {
        let found = scalar_integer(args, 1).unwrap_or_default();
        Error::invalid(format!("size {found} for dimension {d} of {shape}"))
    })?;
    let mut sizes = operand.sizes().to_vec();
    sizes[d] = size;
    Ok(with_bounded_sizes(operand.with_shape(shape.clone())?, &sizes)?.into())
}

#[cfg(test)]
mod tests {
    use helio_ir::Code;
    use helio_ir::ElementType::{F32, S32};

    use super::*;
    use crate::testing::{bounded, counting, of, on_evaluator, resized, run, shape, values};

    fn sliced(operand: &Array, starts: &[&Array], sizes: &[usize]) -> Array {
        let args = [&[operand][..], starts].concat();
        let op = ops::DynamicSlice { sizes: sizes.to_vec() };
        run(dynamic_slice, op, &args, &shape(operand.element(), sizes)).unwrap()
    }

    #[test]
    fn dynamic_slice_clamps_its_starts() {
        // E4 "DynamicSlice"
        let x = of(&[5], &[0f32, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(values::<f32>(&sliced(&x, &[&Array::scalar(2)], &[2])), [2.0, 3.0]);
        let x = counting(&[4, 3]);
        let starts = [&Array::scalar(2i64), &Array::scalar(1i64)];
        assert_eq!(values::<i32>(&sliced(&x, &starts, &[2, 2])), [7, 8, 10, 11]);
        // Too far up, too far down, in any type of indices.
        let starts = [&Array::scalar(u64::MAX), &Array::scalar(-7i8)];
        assert_eq!(values::<i32>(&sliced(&x, &starts, &[2, 2])), [6, 7, 9, 10]);
        // The older form: a vector.
        assert_eq!(values::<i32>(&sliced(&x, &[&of(&[2], &[3u8, 2])], &[1, 1])), [11]);
        assert_eq!(values::<i32>(&sliced(&counting(&[3]), &[&of(&[1], &[1])], &[2])), [1, 2]);
        assert_eq!(values::<i32>(&sliced(&Array::scalar(5), &[], &[])), [5]);
    }

    #[test]
    fn dynamic_update_slice_clamps_its_starts() {
        let updated = |x: &Array, update: &Array, starts: &[&Array]| {
            let args = [&[x, update][..], starts].concat();
            run(
                |op, evaluator, args, shape| {
                    dynamic_update_slice(op, evaluator, args.to_vec(), shape)
                },
                ops::DynamicUpdateSlice,
                &args,
                x.shape(),
            )
            .unwrap()
        };
        // E4 "DynamicUpdateSlice"
        let x = of(&[5], &[0f32, 1.0, 2.0, 3.0, 4.0]);
        let found = updated(&x, &of(&[2], &[5f32, 6.0]), &[&Array::scalar(2)]);
        assert_eq!(values::<f32>(&found), [0.0, 1.0, 5.0, 6.0, 4.0]);
        let update = of(&[3, 2], &[12, 13, 14, 15, 16, 17]);
        let starts = [&Array::scalar(1), &Array::scalar(1)];
        let found = updated(&counting(&[4, 3]), &update, &starts);
        assert_eq!(values::<i32>(&found), [0, 1, 2, 3, 12, 13, 6, 14, 15, 9, 16, 17]);
        let starts = [&Array::scalar(9), &Array::scalar(-9)];
        let found = updated(&counting(&[2, 3]), &of(&[1, 2], &[7, 8]), &starts);
        assert_eq!(values::<i32>(&found), [0, 1, 2, 7, 8, 5]);
        // Of a bounded update only what is there.
        let update = resized(&of(&[3], &[7, 8, 9]), &[0], &[1]);
        let found = updated(&counting(&[4]), &update, &[&Array::scalar(1)]);
        assert_eq!(values::<i32>(&found), [0, 7, 2, 3]);
    }

    #[test]
    fn dynamic_update_slice_is_done_in_place() {
        let update = |x: Array| {
            let shape = x.shape().clone().into();
            let args = vec![x.into(), of(&[1], &[7]).into(), Literal::scalar(1)];
            let op = ops::DynamicUpdateSlice;
            on_evaluator(|evaluator| dynamic_update_slice(&op, evaluator, args, &shape)).unwrap()
        };
        let place = |x: &Array| x.values::<i32>().unwrap().as_ptr();
        let x = counting(&[3]);
        let first = place(&x);
        let found = update(x);
        let found = found.as_array().unwrap();
        assert_eq!((place(found), values::<i32>(found)), (first, vec![0, 7, 2]));
        // But not if somebody else needs the operand.
        let x = counting(&[3]);
        assert_ne!(place(update(x.clone()).as_array().unwrap()), place(&x));
        assert_eq!(values::<i32>(&x), [0, 1, 2]);
    }

    #[test]
    fn dimension_sizes_are_set_and_read() {
        let set = |x: &Array, size: i32| {
            let out = bounded(F32, &[2, 3], &[1]);
            let op = ops::SetDimensionSize { dimension: 1 };
            run(set_dimension_size, op, &[x, &Array::scalar(size)], &out)
        };
        let x = of(&[2, 3], &[0f32; 6]);
        let found = set(&x, 2).unwrap();
        assert_eq!(found.sizes(), [2, 2]);
        assert_eq!(set(&found, 3).unwrap().sizes(), [2, 3]);
        assert_eq!(set(&x, 0).unwrap().sizes(), [2, 0]);
        assert_eq!(set(&x, -1).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(set(&x, 4).unwrap_err().code(), Code::InvalidArgument);

        let get = |x: &Array, dimension| {
            let op = ops::GetDimensionSize { dimension };
            values::<i32>(&run(get_dimension_size, op, &[x], &shape(S32, &[])).unwrap())[0]
        };
        assert_eq!([get(&found, 0), get(&found, 1), get(&x, 1)], [2, 2, 3]);
    }

    #[test]
    fn a_slice_of_what_is_there() {
        let x = resized(&counting(&[5]), &[0], &[3]);
        let op = ops::DynamicSlice { sizes: vec![5] };
        let found = run(dynamic_slice, op, &[&x, &Array::scalar(2)], &bounded(S32, &[5], &[0]));
        assert_eq!(found.unwrap().sizes(), [3]);
    }
}
