//! Boxes at places known only at run time, and sizes known only at run time.

use std::iter::zip;

use helio_ir::{Array, DimKind, Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::frame::{array, array_shape};
use crate::index::{clamp_start, scalar_integer, start_indices};
use crate::walk::{Walk, copy, outside, steps, with_bounded_sizes};

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

/// The operand with a box replaced by the update, moved inside where it would reach out.
pub(crate) fn dynamic_update_slice(
    _: &ops::DynamicUpdateSlice,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, update, shape) = (array(args, 0)?, array(args, 1)?, array_shape(shape)?);
    let sizes = operand.sizes();
    let mut result = operand.with_shape(shape.clone())?;
    let starts = clamped_starts(args.get(2..).unwrap_or_default(), operand, update.dims())?;
    let to_steps = steps(operand.dims());
    let axes = zip(update.sizes(), zip(steps(update.dims()), &to_steps));
    let axes = axes.map(|(&size, (from_step, &to_step))| (size, [from_step, to_step]));
    let start = [0, place(&starts, &to_steps)];
    copy(&mut Walk::new(evaluator, axes), start, update.data(), result.data_mut())?;
    Ok(with_bounded_sizes(result, sizes)?.into())
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
