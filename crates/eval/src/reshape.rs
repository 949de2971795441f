//! Operations that keep the order of elements and see them under other dimensions.

use std::iter::zip;

use helio_ir::{Array, ArrayShape, DimKind, Error, Layout, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::convert::reinterpret;
use crate::dynamic::with_bounded_sizes;
use crate::frame::{array, array_shape};
use crate::index::scalar_integer;
use crate::movement::permuted;
use crate::walk::{Walk, copy, outside, steps};

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
                if others == 0 || !elements.is_multiple_of(others) {
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
///
/// `from` is the shape that the program gives the operand: the layout of the value itself says
/// nothing, because arguments and copies are passed on without being rearranged.
pub(crate) fn bitcast(
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    from: &Shape,
    shape: &Shape,
) -> Result<Literal> {
    let (operand, from, shape) = (array(args, 0)?, array_shape(from)?, array_shape(shape)?);
    // Major to minor is the order in memory; so transposed, logical order is the same.
    let order = major_to_minor(from);
    let dims: Vec<usize> = order.iter().map(|&d| operand.dims()[d]).collect();
    let in_memory = ArrayShape::new(operand.element(), dims)?;
    let in_memory = permuted(evaluator, operand, &order, &in_memory)?;

    let order = major_to_minor(shape);
    let dims: Vec<usize> = order.iter().map(|&d| shape.dims()[d]).collect();
    let recast = ArrayShape::new(shape.element(), dims)?;
    let recast = Array::from_data(recast, reinterpret(&in_memory, shape.element()))?;
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

#[cfg(test)]
mod tests {
    use helio_ir::Code;
    use helio_ir::ElementType::{F32, S4, S32, U8, U16};
    use helio_ir::types::I4;

    use super::*;
    use crate::testing::{Bench, bounded, counting, of, resized, run, shape, values};

    fn reshaped(x: &Array, out: &ArrayShape) -> Result<Array> {
        run(reshape, ops::Reshape { shape: out.clone() }, &[x], out)
    }

    #[test]
    fn reshape_keeps_row_major_order() {
        let x = counting(&[4, 2, 3]);
        for dims in [&[24][..], &[8, 3], &[2, 2, 2, 3, 1], &[1, 24]] {
            let found = reshaped(&x, &shape(S32, dims)).unwrap();
            assert_eq!(values::<i32>(&found), values::<i32>(&x));
        }
        assert_eq!(values::<i32>(&reshaped(&of(&[1, 1], &[7]), &shape(S32, &[])).unwrap()), [7]);
        reshaped(&of::<i32>(&[0, 5], &[]), &shape(S32, &[3, 0, 2])).unwrap();
    }

    #[test]
    fn reshape_keeps_sizes_at_run_time() {
        // Columns 0 and 1 of rows of three; the rest of the dimensions change.
        let x = resized(&counting(&[4, 3]), &[1], &[4, 2]);
        let found = reshaped(&x, &bounded(S32, &[2, 2, 1, 3], &[3])).unwrap();
        assert_eq!(found.sizes(), [2, 2, 1, 2]);
        assert_eq!(values::<i32>(&found)[3..5], [3, 4]);
        // Two dimensions become one: what is there moves together.
        let found = reshaped(&x, &bounded(S32, &[12], &[0])).unwrap();
        assert_eq!(found.sizes(), [8]);
        assert_eq!(values::<i32>(&found)[..8], [0, 1, 3, 4, 6, 7, 9, 10]);
        // One dimension becomes two.
        let x = resized(&counting(&[6]), &[0], &[4]);
        let found = reshaped(&x, &bounded(S32, &[2, 3], &[1])).unwrap();
        assert_eq!(found.sizes(), [2, 2]);
        assert_eq!(values::<i32>(&found)[..5], [0, 1, 0, 2, 3]);
        // Three elements do not make pairs; and nothing says which dimension is shorter.
        let x = resized(&counting(&[6]), &[0], &[3]);
        let error = reshaped(&x, &bounded(S32, &[2, 3], &[1])).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(reshaped(&x, &bounded(S32, &[2, 3], &[0, 1])).is_err());
        // Ones come and go.
        let found = reshaped(&x, &bounded(S32, &[1, 6, 1], &[1])).unwrap();
        assert_eq!(found.sizes(), [1, 3, 1]);
        assert_eq!(reshaped(&found, &bounded(S32, &[6], &[0])).unwrap().sizes(), [3]);
    }

    #[test]
    fn dynamic_reshape_takes_its_sizes() {
        let out = bounded(S32, &[4, 6], &[0, 1]);
        let reshaped = |x: &Array, sizes: [i32; 2]| {
            let [a, b] = sizes.map(Array::scalar);
            let op = ops::DynamicReshape { shape: out.clone() };
            run(dynamic_reshape, op, &[x, &a, &b], &out)
        };
        let x = counting(&[6]);
        let found = reshaped(&x, [2, 3]).unwrap();
        assert_eq!(found.sizes(), [2, 3]);
        let rows = values::<i32>(&found);
        assert_eq!([&rows[..3], &rows[6..9]], [[0, 1, 2], [3, 4, 5]]);
        for sizes in [[2, 2], [-2, -3], [6, 1], [1, 7]] {
            let error = reshaped(&x, sizes).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{sizes:?}");
        }
    }

    fn laid_out(shape: ArrayShape, minor_to_major: &[usize]) -> ArrayShape {
        let layout =
            Layout { minor_to_major: minor_to_major.to_vec(), ..Layout::descending(shape.rank()) };
        shape.with_layout(Some(layout)).unwrap()
    }

    fn cast(x: &Array, out: &ArrayShape) -> Array {
        let [from, to] = [x.shape(), out].map(|shape| Shape::from(shape.clone()));
        let bench = Bench::new();
        let found = bitcast(&bench.evaluator(), &[x.clone().into()], &from, &to).unwrap();
        array(&[found], 0).unwrap().clone()
    }

    #[test]
    fn bitcast_follows_memory() {
        let x = counting(&[2, 3]);
        let found = cast(&x, &shape(S32, &[3, 2]));
        assert_eq!(values::<i32>(&found), [0, 1, 2, 3, 4, 5]);
        // In memory column after column: 0 3 1 4 2 5. Read as rows, it is the transposed array.
        let columns = x.with_shape(laid_out(shape(S32, &[2, 3]), &[0, 1])).unwrap();
        let found = cast(&columns, &shape(S32, &[3, 2]));
        assert_eq!(values::<i32>(&found), [0, 3, 1, 4, 2, 5]);
        let found = cast(&found, &laid_out(shape(S32, &[2, 3]), &[0, 1]));
        assert_eq!(values::<i32>(&found), values::<i32>(&x));
        // Three dimensions, a layout that is not its own inverse: by XLA's own rule, element
        // (i, j, k) of {1,2,0} lies at i * 12 + k * 3 + j.
        let x = counting(&[2, 3, 4]);
        let turned = x.with_shape(laid_out(shape(S32, &[2, 3, 4]), &[1, 2, 0])).unwrap();
        let found = values::<i32>(&cast(&turned, &shape(S32, &[24])));
        let mut expected = [0; 24];
        for (value, place) in (0..24).map(|n| (n, n / 12 * 12 + n % 4 * 3 + n / 4 % 3)) {
            expected[place] = value as i32;
        }
        assert_eq!(found, expected);
        let found = cast(&of(&[24], &found), turned.shape());
        assert_eq!(values::<i32>(&found), values::<i32>(&x));
    }

    #[test]
    fn bitcast_changes_types() {
        let x = of(&[2], &[0x0201u16, 0x0403]);
        assert_eq!(values::<u8>(&cast(&x, &shape(U8, &[4]))), [1, 2, 3, 4]);
        assert_eq!(values::<u16>(&cast(&of(&[2, 1], &[1u8, 2]), &shape(U16, &[]))), [0x0201]);
        assert_eq!(values::<f32>(&cast(&of(&[1], &[0x3f80_0000]), &shape(F32, &[1]))), [1.0]);
        let nibbles = values::<I4>(&cast(&of(&[1], &[0x2fu8]), &shape(S4, &[2])));
        assert_eq!(nibbles.iter().map(|v| v.get()).collect::<Vec<_>>(), [-1, 2]);
    }
}
