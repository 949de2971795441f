//! Changes of element type, by value and by bits.

use helio_ir::{
    Array, ArrayData, ElementType, Literal, Native, Number, Result, Shape, dispatch, dispatch_type,
    ops,
};

use crate::elementwise::Map;
use crate::frame::{array, array_shape};
use crate::math::real;
use crate::{Evaluator, dynamic, element};

/// The elements as numbers. (A pair of types would otherwise need code of its own.)
fn numbers(array: &Array) -> Box<dyn Iterator<Item = Number> + '_> {
    dispatch!(array.data(), values => Box::new(values.iter().map(|&x| x.to_number())))
}

/// The bits of the elements.
fn bits(array: &Array) -> Box<dyn Iterator<Item = u128> + '_> {
    dispatch!(array.data(), values => Box::new(values.iter().map(|&x| Native::to_bits(x))))
}

/// By value: see [`Native::from_number`].
pub(crate) fn convert(
    op: &ops::Convert,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    let data = if operand.element() == op.element {
        // Not through a number, which has no place for the payload of a NaN.
        operand.data().clone()
    } else {
        dispatch_type!(op.element, T => T::wrap(numbers(operand).map(T::from_number).collect()))
    };
    dynamic::like(array_shape(shape)?, data, &[operand])
}

/// By bits. A narrower result has one more dimension, of the parts of an element from the low bits
/// up; a wider one lacks that dimension.
pub(crate) fn bitcast_convert(
    op: &ops::BitcastConvert,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    dynamic::like(array_shape(shape)?, reinterpret(operand, op.element), &[operand])
}

/// The bits of all elements in row-major order, cut into elements of another type: the first of
/// several is the lowest bits.
pub(crate) fn reinterpret(operand: &Array, element: ElementType) -> ArrayData {
    let (from, to) = (operand.element().bits(), element.bits());
    if from >= to {
        let parts = bits(operand).flat_map(|bits| (0..from / to).map(move |i| bits >> (i * to)));
        return from_bits(element, parts);
    }
    let ratio = to / from;
    let mut parts = bits(operand);
    let join = || {
        let first = parts.next()?;
        let rest = parts.by_ref().take(ratio - 1).enumerate();
        Some(rest.fold(first, |bits, (i, part)| bits | part << ((i + 1) * from)))
    };
    from_bits(element, std::iter::from_fn(join))
}

fn from_bits(element: ElementType, bits: impl Iterator<Item = u128>) -> ArrayData {
    // Erased, so that there is one copy of the loop for each type, not one for each caller, too.
    let bits: Box<dyn Iterator<Item = u128> + '_> = Box::new(bits);
    dispatch_type!(element, T => T::wrap(bits.map(<T as Native>::from_bits).collect()))
}

/// To an integer or a float, rounded away from zero with the probability that the fraction gives:
/// where the random number, as a fraction of its range, is below it. Saturates as `convert` does.
pub(crate) fn stochastic_convert(
    op: &ops::StochasticConvert,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let (operand, random) = (array(args, 0)?, array(args, 1)?);
    let random_bits = random.element().bits();
    let format = op.element.float_format();
    let rounded = numbers(operand).zip(bits(random)).map(|(x, random)| {
        Number::Float(real::round_stochastic(x.to_f64(), format, random, random_bits))
    });
    let data = dispatch_type!(op.element, T => T::wrap(rounded.map(T::from_number).collect()));
    dynamic::like(array_shape(shape)?, data, &[operand, random])
}

/// Rounds to fewer bits, keeping the type.
pub(crate) fn reduce_precision(
    op: &ops::ReducePrecision,
    _: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    let data = element::reduce_precision(*op, operand.element(), Map(operand))?;
    dynamic::like(array_shape(shape)?, data, &[operand])
}
