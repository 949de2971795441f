//! Operations that keep the order of elements and see them under other dimensions.

use std::iter::zip;

use helio_ir::{
    Array, ArrayData, ArrayShape, DimKind, ElementType, Error, Layout, Literal, Native, Result,
    Shape, dispatch_type, memory, ops,
};

use crate::Evaluator;
use crate::frame::{array, array_shape};
use crate::index::scalar_integer;
use crate::movement::permuted;
use crate::walk::{Walk, copy, outside, steps, with_bounded_sizes};

/// The same elements in row-major order under other dimensions.
pub(crate) fn reshape(
    _: &ops::Reshape,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let sizes = reshaped_sizes(operand, shape)?;
    Ok(repacked(evaluator, operand, shape, &sizes)?.into())
}

/// Reshape to the sizes that the operands behind the first give.
pub(crate) fn dynamic_reshape(
    _: &ops::DynamicReshape,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    let size = |d: usize| {
        let (bound, kind) = shape.dim(d);
        let size = scalar_integer(args, d + 1)?;
        let least = if kind == DimKind::Bounded { 0 } else { bound };
        let fits = usize::try_from(size).ok().filter(|size| (least..=bound).contains(size));
        fits.ok_or_else(|| Error::invalid(format!("size {size} for dimension {d} of {shape}")))
    };
    let sizes: Vec<usize> = (0..shape.rank()).map(size).collect::<Result<_>>()?;
    let (from, to) = (count(operand.sizes()), count(&sizes));
    if from != to {
        let detail = format!(
            "sizes {sizes:?} call for {to} elements, but the operand has {from} ({:?})",
            operand.sizes()
        );
        return Err(Error::invalid(detail));
    }
    Ok(repacked(evaluator, operand, shape, &sizes)?.into())
}

fn count(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// The sizes at run time after a reshape: dimensions are taken together in the smallest groups that
/// have as many elements (at the bounds) on both sides; in each, the number of elements at run time
/// decides the size of the one bounded dimension of the result.
fn reshaped_sizes(operand: &Array, shape: &ArrayShape) -> Result<Vec<usize>> {
    let (dims, sizes) = (shape.dims(), operand.sizes());
    let mut result = dims.to_vec();
    if sizes == operand.dims() {
        return Ok(result);
    }
    let undecided = || {
        let detail =
            format!("sizes {sizes:?} of {} do not decide those of {shape}", operand.shape());
        Error::invalid(detail)
    };
    let (mut from, mut to) = (0, 0);
    while from < sizes.len() || to < dims.len() {
        let (first_from, first_to) = (from, to);
        let (mut from_count, mut to_count) = (1, 1);
        loop {
            let takes_from = from < sizes.len() && (from_count <= to_count || to == dims.len());
            if takes_from {
                from_count *= operand.dims()[from];
                from += 1;
            } else if to < dims.len() {
                to_count *= dims[to];
                to += 1;
            } else {
                break;
            }
            if from_count == to_count && from > first_from && to > first_to {
                break;
            }
        }
        let elements = count(&sizes[first_from..from]);
        let mut bounded = (first_to..to).filter(|&d| shape.kinds()[d] == DimKind::Bounded);
        match (bounded.next(), bounded.next()) {
            _ if elements == from_count => {}
            (Some(d), None) => {
                let others: usize = (first_to..to).filter(|&o| o != d).map(|o| dims[o]).product();
                if others == 0 || elements % others != 0 {
                    return Err(undecided());
                }
                result[d] = elements / others;
            }
            _ => return Err(undecided()),
        }
    }
    Ok(result)
}

/// The operand's elements at run time, in row-major order, as those of an array of these sizes.
fn repacked(
    evaluator: &Evaluator<'_>,
    operand: &Array,
    shape: &ArrayShape,
    sizes: &[usize],
) -> Result<Array> {
    if operand.sizes() == operand.dims() && sizes == shape.dims() {
        return operand.with_shape(shape.clone());
    }
    let packed_steps = steps(operand.sizes());
    let mut packed = Array::zeros(ArrayShape::new(operand.element(), vec![count(sizes)])?)?;
    let axes = zip(operand.sizes(), zip(steps(operand.dims()), packed_steps));
    let axes = axes.map(|(&size, (from_step, to_step))| (size, [from_step, to_step]));
    copy(&mut Walk::new(evaluator, axes), [0, 0], operand.data(), packed.data_mut())?;

    let mut result = Array::zeros(shape.clone())?;
    let axes = zip(sizes, zip(steps(sizes), steps(shape.dims())));
    let axes = axes.map(|(&size, (from_step, to_step))| (size, [from_step, to_step]));
    copy(&mut Walk::new(evaluator, axes), [0, 0], packed.data(), result.data_mut())?;
    with_bounded_sizes(result, sizes)
}

/// The operand's bits in the order in which they lie in memory, read as another array.
pub(crate) fn bitcast(
    _: &ops::Bitcast,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, shape) = (array(args, 0)?, array_shape(shape)?);
    // Major to minor is the order in memory; so transposed, logical order is the same.
    let order = major_to_minor(operand.shape());
    let dims: Vec<usize> = order.iter().map(|&d| operand.dims()[d]).collect();
    let in_memory = ArrayShape::new(operand.element(), dims)?;
    let in_memory = permuted(evaluator, operand, &order, &in_memory)?;

    let order = major_to_minor(shape);
    let dims: Vec<usize> = order.iter().map(|&d| shape.dims()[d]).collect();
    let recast = ArrayShape::new(shape.element(), dims)?;
    let recast = Array::from_data(recast, reinterpret(&in_memory, shape.element())?)?;
    let mut inverse = vec![0; order.len()];
    for (i, &d) in order.iter().enumerate() {
        *inverse.get_mut(d).ok_or_else(outside)? = i;
    }
    let result = permuted(evaluator, &recast, &inverse, shape)?;
    let sizes = if operand.dims() == shape.dims() { operand.sizes() } else { shape.dims() };
    Ok(with_bounded_sizes(result, sizes)?.into())
}

fn major_to_minor(shape: &ArrayShape) -> Vec<usize> {
    let descending = Layout::descending(shape.rank());
    let layout = shape.layout().unwrap_or(&descending);
    layout.minor_to_major.iter().rev().copied().collect()
}

/// The same bits, cut into elements of another type: the first element is the lowest bits.
fn reinterpret(array: &Array, element: ElementType) -> Result<ArrayData> {
    let (from_bits, to_bits) = (array.element().bits(), element.bits());
    let count = array.data().len();
    let bits = |i: usize| {
        if from_bits >= to_bits {
            let parts = from_bits / to_bits;
            array.bits(i / parts) >> (i % parts * to_bits)
        } else {
            let parts = to_bits / from_bits;
            let bits = (0..parts).map(|part| array.bits(i * parts + part) << (part * from_bits));
            bits.fold(0, |a, b| a | b)
        }
    };
    // Widths are powers of two.
    let count = if from_bits >= to_bits {
        count * (from_bits / to_bits)
    } else {
        count / (to_bits / from_bits)
    };
    memory::ensure_available(count.saturating_mul(element.size_bytes()))?;
    Ok(dispatch_type!(element, T => {
        T::wrap((0..count).map(|i| <T as Native>::from_bits(bits(i))).collect())
    }))
}
