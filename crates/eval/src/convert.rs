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
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let operand = array(args, 0)?;
    let data = if operand.element() == op.element {
        // Not through a number, which has no place for the payload of a NaN.
        operand.data().clone()
    } else {
        let flush = evaluator.cx.subnormals.of_conversion(operand.element(), op.element);
        let numbers = numbers(operand).map(|number| flush.number(number));
        dispatch_type!(op.element, T => T::wrap(numbers.map(T::from_number).collect()))
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
    let len = operand.data().len();
    if from >= to {
        let ratio = from / to;
        let parts = bits(operand).flat_map(|bits| (0..ratio).map(move |i| bits >> (i * to)));
        return from_bits(element, len * ratio, parts);
    }
    let ratio = to / from;
    let mut parts = bits(operand);
    let join = || {
        let first = parts.next()?;
        let rest = parts.by_ref().take(ratio - 1).enumerate();
        Some(rest.fold(first, |bits, (i, part)| bits | part << ((i + 1) * from)))
    };
    from_bits(element, len / ratio, std::iter::from_fn(join))
}

/// `count` elements with these bits.
fn from_bits(element: ElementType, count: usize, bits: impl Iterator<Item = u128>) -> ArrayData {
    // Erased, so that there is one copy of the loop for each type, not one for each caller, too.
    let bits: Box<dyn Iterator<Item = u128> + '_> = Box::new(bits);
    dispatch_type!(element, T => {
        // The iterator does not know its length; growing would take twice the memory asked for.
        let mut values = Vec::with_capacity(count);
        values.extend(bits.map(<T as Native>::from_bits));
        T::wrap(values)
    })
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

#[cfg(test)]
mod tests {
    use helio_ir::types::{BF16, C64, F8E4M3FN, F8E5M2, F16, I4, U2, U4};

    use super::*;
    use crate::testing::{bounded, of, on_evaluator, resized, run, shape, values};

    fn convert_to<A: Native, R: Native>(operand: &[A]) -> Vec<R> {
        let operand = of(&[operand.len()], operand);
        let op = ops::Convert { element: R::TYPE };
        values(&run(convert, op, &[&operand], &shape(R::TYPE, operand.dims())).unwrap())
    }

    #[test]
    fn convert_by_value() {
        // semantics §3; the rest is tested where `Native` is.
        assert_eq!(convert_to::<f32, i8>(&[-1.9, 300.0, f32::NAN]), [-1, 127, 0]);
        assert_eq!(convert_to::<i32, i8>(&[300, -1]), [44, -1]);
        assert_eq!(convert_to::<i8, u32>(&[-1]), [u32::MAX]);
        assert_eq!(convert_to::<i32, f32>(&[16_777_219]), [16_777_220.0]);
        assert_eq!(
            convert_to::<f32, bool>(&[0.0, -0.0, 0.1, f32::NAN]),
            [false, false, true, true]
        );
        assert_eq!(convert_to::<C64, f64>(&[C64::new(1.5, 2.0)]), [1.5]);
        assert_eq!(convert_to::<bool, C64>(&[true]), [C64::new(1.0, 0.0)]);
        assert!(convert_to::<f32, F8E4M3FN>(&[1e9])[0].is_nan());
        assert_eq!(convert_to::<f64, F8E5M2>(&[1e9])[0].to_f64(), f64::INFINITY);
    }

    #[test]
    fn convert_to_the_same_type_keeps_all_bits() {
        let signaling = f32::from_bits(0x7f80_0001);
        assert_eq!(convert_to::<f32, f32>(&[signaling])[0].to_bits(), 0x7f80_0001);
    }

    fn bitcast<A: Native, R: Native>(dims: &[usize], operand: &[A], result: &[usize]) -> Vec<R> {
        let op = ops::BitcastConvert { element: R::TYPE };
        let shape = shape(R::TYPE, result);
        values(&run(bitcast_convert, op, &[&of(dims, operand)], &shape).unwrap())
    }

    #[test]
    fn bitcast_between_equal_widths() {
        assert_eq!(bitcast::<f32, u32>(&[2], &[1.0, -0.0], &[2]), [0x3f80_0000, 0x8000_0000]);
        assert_eq!(bitcast::<u16, BF16>(&[1], &[0x3f80], &[1]), [BF16::ONE]);
        assert_eq!(bitcast::<i8, u8>(&[], &[-1], &[]), [255]);
        assert_eq!(bitcast::<I4, U4>(&[1], &[I4::wrapping(-1)], &[1]), [U4::wrapping(15)]);
    }

    #[test]
    fn bitcast_to_narrower_and_wider() {
        // Element 0 has the low bits: semantics §3.
        let halves = [0x5678, 0x1234, 0xdef0, 0x9abc];
        assert_eq!(bitcast::<u32, u16>(&[2], &[0x1234_5678, 0x9abc_def0], &[2, 2]), halves);
        assert_eq!(bitcast::<u16, u32>(&[2, 2], &halves, &[2]), [0x1234_5678, 0x9abc_def0]);
        let nibbles: Vec<U4> = bitcast(&[1], &[0x21i8], &[1, 2]);
        assert_eq!(nibbles, [U4::wrapping(1), U4::wrapping(2)]);
        assert_eq!(bitcast::<U4, i8>(&[1, 2], &nibbles, &[1]), [0x21]);
        let pairs: Vec<U2> = bitcast(&[], &[U4::wrapping(0b0110)], &[2]);
        assert_eq!(pairs, [U2::wrapping(2), U2::wrapping(1)]);
        let bytes: Vec<u8> = bitcast(&[], &[1.0f64], &[8]);
        assert_eq!(bytes, 1f64.to_le_bytes());
        assert_eq!(bitcast::<u8, f64>(&[8], &bytes, &[]), [1.0]);
        assert!(bitcast::<u32, u16>(&[0], &[], &[0, 2]).is_empty());
    }

    fn stochastic<R: Native>(x: f32, random: u32) -> R {
        let op = ops::StochasticConvert { element: R::TYPE };
        let args = [&Array::scalar(x), &Array::scalar(random)];
        values(&run(stochastic_convert, op, &args, &shape(R::TYPE, &[])).unwrap())[0]
    }

    #[test]
    fn stochastic_convert_to_integers() {
        // 1.25: up for random numbers below a quarter of the range.
        assert_eq!(stochastic::<i32>(1.25, (1 << 30) - 1), 2);
        assert_eq!(stochastic::<i32>(1.25, 1 << 30), 1);
        assert_eq!(stochastic::<i32>(-1.25, 0), -2);
        assert_eq!(stochastic::<i32>(-1.25, u32::MAX), -1);
        assert_eq!(stochastic::<i32>(3.0, 0), 3);
        assert_eq!(stochastic::<i8>(1000.5, 0), 127);
        assert_eq!(stochastic::<i8>(-127.5, 0), -128);
        assert_eq!(stochastic::<i8>(f32::NEG_INFINITY, 0), -128);
        assert_eq!(stochastic::<i8>(f32::NAN, 0), 0);
        assert_eq!(stochastic::<u8>(-0.5, 0), 0);
    }

    #[test]
    fn stochastic_convert_to_floats() {
        // Half way between two neighbours of bf16, then of subnormal f16.
        let between = f32::from_bits(0x3f80_8000);
        assert_eq!(stochastic::<BF16>(between, (1 << 31) - 1).to_bits(), 0x3f81);
        assert_eq!(stochastic::<BF16>(between, 1 << 31).to_bits(), 0x3f80);
        assert_eq!(stochastic::<BF16>(-between, 0).to_bits(), 0xbf81);
        assert_eq!(stochastic::<F16>(2f32.powi(-25), 0).to_bits(), 1);
        assert_eq!(stochastic::<F16>(2f32.powi(-25), u32::MAX).to_bits(), 0);
        assert!(stochastic::<BF16>(f32::NAN, 0).is_nan());
    }

    fn reduce<T: Native>(exponent_bits: u32, mantissa_bits: u32, operand: &[T]) -> Vec<T> {
        let op = ops::ReducePrecision { exponent_bits, mantissa_bits };
        let operand = of(&[operand.len()], operand);
        values(&run(reduce_precision, op, &[&operand], operand.shape()).unwrap())
    }

    #[test]
    fn reduce_precision_to_half() {
        // semantics §2, measured on XLA:CPU.
        let found =
            reduce(5, 10, &[65519f32, 65520.0, 6.1e-5, -6.1e-5, -70000.0, 1.0 + 2f32.powi(-11)]);
        assert_eq!(found[..5], [65504.0, f32::INFINITY, 0.0, 0.0, f32::NEG_INFINITY]);
        assert!(found[3].is_sign_negative());
        assert_eq!(found[5], 1.0);
        let found = reduce(5, 10, &[f32::NAN, f32::INFINITY, -0.0]);
        assert!(found[0].is_nan());
        assert_eq!(found[1], f32::INFINITY);
        assert!(found[2].is_sign_negative());
        // Just below the smallest normal number, but rounded up to it: kept.
        assert_eq!(reduce(5, 10, &[2f32.powi(-14) * (1.0 - 2f32.powi(-20))]), [2f32.powi(-14)]);
    }

    #[test]
    fn reduce_precision_agrees_with_bf16() {
        for i in 0..2000u32 {
            let x = f32::from_bits(i.wrapping_mul(0x9e37_79b9));
            if !x.is_nan() {
                let expected = BF16::from_f32(x).to_f32();
                assert_eq!(reduce(8, 7, &[x])[0].to_bits(), expected.to_bits(), "{x:e}");
            }
        }
    }

    #[test]
    fn reduce_precision_of_every_width() {
        assert_eq!(reduce(11, 52, &[f64::MIN_POSITIVE / 3.0]), [f64::MIN_POSITIVE / 3.0]);
        // Subnormal numbers are rounded to what the shorter mantissa has of them.
        assert_eq!(
            reduce(11, 0, &[f64::from_bits(1), f64::MIN_POSITIVE * 0.75]),
            [0.0, f64::MIN_POSITIVE]
        );
        assert_eq!(
            reduce(8, 23, &[1e300f64, 1e-300, 0.1]),
            [f64::INFINITY, 0.0, f64::from(0.1f32)]
        );
        assert_eq!(reduce(1, 0, &[1f32, 3.0]), [0.0, f32::INFINITY]);
        assert_eq!(reduce(64, 99, &[1.1f32]), [1.1]);
        assert_eq!(
            reduce(5, 1, &[F16::from_f32(1.25), F16::from_f32(1.75)]),
            [F16::ONE, F16::from_f32(2.0)]
        );
        assert_eq!(reduce(4, 2, &[F8E4M3FN::from_f32(448.0)])[0].to_f32(), 448.0);
        assert!(reduce(4, 0, &[F8E4M3FN::from_f32(448.0)])[0].is_nan());
    }

    #[test]
    fn results_have_the_sizes_of_their_operands() {
        let x = resized(&of(&[2, 2], &[1u16, 2, 3, 4]), &[0], &[1, 2]);
        let found = on_evaluator(|evaluator| {
            let op = ops::BitcastConvert { element: ElementType::U32 };
            let shape = bounded(ElementType::U32, &[2], &[0]);
            bitcast_convert(&op, evaluator, &[x.into()], &shape.into())
        });
        assert_eq!(found.unwrap().as_array().unwrap().sizes(), [1]);
    }
}
