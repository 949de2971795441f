//! Recipes for `f8e8m0fnu`, whose numbers are powers of two: lanes hold their exponents with the bias,
//! which are the bits of an element, as integers.
//!
//! What is no number of the type, among them zero and all negative numbers, is NaN. The nearest power
//! is the greater one from 1.5 times the lesser on.

use helio_ir::ops::{Compare, Direction, Order, ReducePrecision};
use helio_ir::{BinaryOp, UnaryOp};

use super::Elem;
use super::compare::comparison;
use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, MaskOp, UnOp, Value};
use crate::math;

/// NaN.
const NAN: i64 = 255;
/// The exponent of 1.
const ONE: i64 = 127;
/// Numbers below the one of this exponent, 2^-27, have it as their sine, and 1 as their cosine.
const SMALL: i64 = 100;

pub(super) fn has_unary(op: UnaryOp) -> bool {
    !matches!(op, UnaryOp::Clz | UnaryOp::Not | UnaryOp::Popcnt)
}

pub(super) fn has_binary(op: BinaryOp) -> bool {
    use BinaryOp::{Add, Atan2, Divide, Maximum, Minimum, Multiply, Power, Remainder, Subtract};
    matches!(op, Add | Atan2 | Divide | Maximum | Minimum | Multiply | Power | Remainder | Subtract)
}

/// Writes arithmetic on exponents.
struct Exponents<'b> {
    b: &'b mut Builder,
}

impl Exponents<'_> {
    fn int(&mut self, value: i64) -> Value {
        self.b.int(Lane::I32, value)
    }

    fn op(&mut self, op: BinOp, x: Value, y: i64) -> Value {
        let y = self.int(y);
        self.b.bin(op, x, y)
    }

    fn is(&mut self, op: Cmp, x: Value, y: i64) -> Value {
        let y = self.int(y);
        self.b.compare(op, x, y)
    }

    /// `x` where the mask is set, else a constant.
    fn or(&mut self, mask: Value, x: Value, other: i64) -> Value {
        let other = self.int(other);
        self.b.select(mask, x, other)
    }

    fn or_nan(&mut self, mask: Value, x: Value) -> Value {
        self.or(mask, x, NAN)
    }

    fn is_number(&mut self, x: Value) -> Value {
        self.is(Cmp::Ne, x, NAN)
    }

    /// Exponents that are too small are the least, those that are too large NaN.
    fn bounded(&mut self, x: Value) -> Value {
        let x = self.op(BinOp::Max, x, 0);
        self.op(BinOp::Min, x, NAN)
    }
}

pub(super) fn unary(b: &mut Builder, op: UnaryOp, x: Value) -> Elem {
    let e = &mut Exponents { b };
    let number = e.is_number(x);
    Elem::Vector(match op {
        UnaryOp::Abs | UnaryOp::Real => x,
        UnaryOp::Negate | UnaryOp::Imag => e.int(NAN),
        UnaryOp::IsFinite => return Elem::Mask(number),
        UnaryOp::Sign => {
            let one = e.int(ONE);
            e.or_nan(number, one)
        }
        UnaryOp::Ceil => e.op(BinOp::Max, x, ONE),
        UnaryOp::Floor | UnaryOp::RoundNearestEven => {
            let large = e.is(Cmp::Ge, x, ONE);
            e.or_nan(large, x)
        }
        UnaryOp::RoundNearestAfz => {
            let large = e.is(Cmp::Ge, x, ONE - 1);
            let raised = e.op(BinOp::Max, x, ONE);
            e.or_nan(large, raised)
        }
        // The square root of 2 is less than 1.5, the cube root of 4 more.
        UnaryOp::Sqrt => {
            let twice = e.op(BinOp::Add, x, ONE);
            let root = e.op(BinOp::ShrL, twice, 1);
            e.or_nan(number, root)
        }
        UnaryOp::Rsqrt => {
            let three = e.int(3 * ONE);
            let twice = e.b.sub(three, x);
            let root = e.op(BinOp::ShrL, twice, 1);
            e.or_nan(number, root)
        }
        UnaryOp::Cbrt => {
            // A third of the exponent, rounded, from one that is not negative.
            let moved = e.op(BinOp::Add, x, 3 * 64 - ONE + 1);
            let product = e.op(BinOp::Mul, moved, 171);
            let third = e.op(BinOp::ShrL, product, 9);
            let root = e.op(BinOp::Add, third, ONE - 64);
            e.or_nan(number, root)
        }
        other => {
            let raised = e.op(BinOp::Max, x, SMALL - 1);
            let wide = to_f32(e.b, raised);
            let wide = math::unary(e.b, other, wide);
            let result = of_f32(e.b, wide);
            if !is_itself_near_zero(other) {
                return Elem::Vector(result);
            }
            let e = &mut Exponents { b };
            let small = e.is(Cmp::Lt, x, SMALL);
            b.select(small, x, result)
        }
    })
}

/// Whether a function of a small number is that number, or next to it.
fn is_itself_near_zero(op: UnaryOp) -> bool {
    use UnaryOp::{Asin, Asinh, Atan, Atanh, Erf, Expm1, Log1p, Sin, Sinh, Tan, Tanh};
    matches!(op, Asin | Asinh | Atan | Atanh | Erf | Expm1 | Log1p | Sin | Sinh | Tan | Tanh)
}

pub(super) fn binary(b: &mut Builder, op: BinaryOp, x: Value, y: Value) -> Value {
    let e = &mut Exponents { b };
    let (lesser, greater) = (e.b.bin(BinOp::Min, x, y), e.b.bin(BinOp::Max, x, y));
    let numbers = e.is_number(greater);
    let difference = e.b.sub(x, y);
    let result = match op {
        BinaryOp::Add => {
            // A half more is rounded up.
            let apart = e.b.sub(greater, lesser);
            let near = e.is(Cmp::Le, apart, 1);
            let more = e.op(BinOp::Add, greater, 1);
            e.b.select(near, more, greater)
        }
        BinaryOp::Subtract => {
            // Twice a number less the number is that; less a quarter, it is rounded up.
            let twice = e.is(Cmp::Eq, difference, 1);
            let result = e.b.select(twice, y, x);
            let positive = e.is(Cmp::Gt, difference, 0);
            e.or_nan(positive, result)
        }
        BinaryOp::Multiply => {
            let sum = e.b.add(x, y);
            let sum = e.op(BinOp::Sub, sum, ONE);
            e.bounded(sum)
        }
        BinaryOp::Divide => {
            let moved = e.op(BinOp::Add, difference, ONE);
            e.bounded(moved)
        }
        BinaryOp::Maximum => return greater,
        BinaryOp::Minimum => lesser,
        BinaryOp::Remainder => {
            let below = e.is(Cmp::Lt, difference, 0);
            e.or_nan(below, x)
        }
        // That of 1 is π/4, more than 3/4, and that of 16 and more is above 1.5.
        BinaryOp::Atan2 => {
            let angle = e.op(BinOp::Min, difference, 0);
            let angle = e.op(BinOp::Add, angle, ONE);
            let angle = e.op(BinOp::Max, angle, 0);
            let steep = e.is(Cmp::Ge, difference, 4);
            let most = e.int(ONE + 1);
            e.b.select(steep, most, angle)
        }
        BinaryOp::Power => return power(e, x, y),
        other => panic!("{} of f8e8m0fnu", other.name()),
    };
    e.or_nan(numbers, result)
}

/// The power has the product of the first one's exponent and the second as its exponent.
fn power(e: &mut Exponents<'_>, x: Value, y: Value) -> Value {
    let exponent = e.op(BinOp::Sub, x, ONE);
    let exponent = e.b.convert(Conv::Value, Lane::F32, exponent);
    // (The least number is none that lanes compute with; no power tells it from the next.)
    let y_raised = e.op(BinOp::Max, y, 1);
    let wide = to_f32(e.b, y_raised);
    let product = e.b.mul(exponent, wide);
    let whole = e.b.un(UnOp::Floor, product);
    let part = e.b.sub(product, whole);
    // Where two to the power of the rest is 1.5.
    let half = e.b.float(Lane::F32, 0.584_962_5);
    let up = e.b.compare(Cmp::Ge, part, half);
    let (zero, one) = (e.b.float(Lane::F32, 0.0), e.b.float(Lane::F32, 1.0));
    let carry = e.b.select(up, one, zero);
    let rounded = e.b.add(whole, carry);
    let bias = e.b.float(Lane::F32, ONE as f64);
    let biased = e.b.add(rounded, bias);
    let (least, most) = (e.b.float(Lane::F32, 0.0), e.b.float(Lane::F32, NAN as f64));
    let bounded = e.b.bin(BinOp::Max, biased, least);
    let bounded = e.b.bin(BinOp::Min, bounded, most);
    let result = e.b.convert(Conv::Trunc, Lane::I32, bounded);
    // In f64, in which the interpreter computes it, the power is zero here.
    let zero_from = e.b.float(Lane::F32, -1075.0);
    let nonzero = e.b.compare(Cmp::Gt, product, zero_from);
    let (x_number, y_number) = (e.is_number(x), e.is_number(y));
    let kept = e.b.mask_op(MaskOp::And, x_number, y_number);
    let kept = e.b.mask_op(MaskOp::And, kept, nonzero);
    let result = e.or_nan(kept, result);
    // 1 to any power, NaN included.
    let of_one = e.is(Cmp::Ne, x, ONE);
    e.or(of_one, result, ONE)
}

/// NaN where a format with fewer exponents has infinity or zero.
pub(super) fn precision(b: &mut Builder, op: ReducePrecision, x: Value) -> Value {
    if op.exponent_bits >= 8 {
        return x;
    }
    let bias = (1 << (op.exponent_bits - 1)) - 1;
    let e = &mut Exponents { b };
    let (above, below) = (e.is(Cmp::Gt, x, ONE - bias), e.is(Cmp::Le, x, ONE + bias));
    let within = e.b.mask_op(MaskOp::And, above, below);
    e.or_nan(within, x)
}

/// The mask of the lanes for which a comparison holds.
pub(super) fn compare(b: &mut Builder, op: Compare, x: Value, y: Value) -> Value {
    let holds = b.compare(comparison(op.direction, false), x, y);
    if op.order == Order::Total {
        return holds;
    }
    let e = &mut Exponents { b };
    let greater = e.b.bin(BinOp::Max, x, y);
    let (numbers, lost) = (e.is_number(greater), e.is(Cmp::Eq, greater, NAN));
    match op.direction {
        Direction::Ne => b.mask_op(MaskOp::Or, holds, lost),
        _ => b.mask_op(MaskOp::And, holds, numbers),
    }
}

/// The power in an `F32` lane. The least one is subnormal there: only its bits are right where
/// subnormal numbers count as zeros.
pub(super) fn to_f32(b: &mut Builder, x: Value) -> Value {
    let e = &mut Exponents { b };
    let normal = e.op(BinOp::Shl, x, 23);
    let least = e.is(Cmp::Ne, x, 0);
    let bits = e.or(least, normal, 0x0040_0000);
    let number = e.is_number(x);
    let bits = e.or(number, bits, 0x7fc0_0000);
    b.convert(Conv::Bits, Lane::F32, bits)
}

/// The power in an `F64` lane.
pub(super) fn to_f64(b: &mut Builder, x: Value) -> Value {
    let wide = b.convert(Conv::ExtendU, Lane::I64, x);
    let (bias, place) = (b.int(Lane::I64, 1023 - ONE), b.int(Lane::I64, 52));
    let biased = b.add(wide, bias);
    let bits = b.bin(BinOp::Shl, biased, place);
    let value = b.convert(Conv::Bits, Lane::F64, bits);
    let (least, nan) = (b.int(Lane::I64, NAN), b.float(Lane::F64, f64::NAN));
    let number = b.compare(Cmp::Ne, wide, least);
    b.select(number, value, nan)
}

/// The nearest power to an `F32` lane, whose subnormal numbers are numbers.
pub(super) fn of_f32(b: &mut Builder, x: Value) -> Value {
    let e = &mut Exponents { b };
    let bits = e.b.convert(Conv::Bits, Lane::I32, x);
    // Half a unit carries into the exponent where the fraction is at least a half.
    let sum = e.op(BinOp::Add, bits, 1 << 22);
    let rounded = e.op(BinOp::ShrL, sum, 23);
    let rounded = e.op(BinOp::Min, rounded, NAN);
    // 2^-127 is half of the least normal number, and 1.5 times that the next to be rounded up.
    let normal = e.is(Cmp::Ge, bits, 0x0060_0000);
    let rounded = e.or(normal, rounded, 0);
    let positive = e.is(Cmp::Gt, bits, 0);
    e.or_nan(positive, rounded)
}

/// The nearest power to an `F64` lane.
pub(super) fn of_f64(b: &mut Builder, x: Value) -> Value {
    let (half, place) = (b.int(Lane::I64, 1 << 51), b.int(Lane::I64, 52));
    let (least, most) = (b.int(Lane::I64, 1023 - ONE), b.int(Lane::I64, 1023 - ONE + NAN));
    let bits = b.convert(Conv::Bits, Lane::I64, x);
    let sum = b.add(bits, half);
    let exponent = b.bin(BinOp::ShrL, sum, place);
    let exponent = b.bin(BinOp::Max, exponent, least);
    let exponent = b.bin(BinOp::Min, exponent, most);
    let biased = b.sub(exponent, least);
    // Neither of NaN, nor of what counts as zero.
    let zero = b.float(Lane::F64, 0.0);
    let positive = b.compare(Cmp::Gt, x, zero);
    let nan = b.int(Lane::I64, NAN);
    let biased = b.select(positive, biased, nan);
    b.convert(Conv::Narrow, Lane::I32, biased)
}

/// The exponent for lowest bits that are those of an element.
pub(super) fn of_bits(b: &mut Builder, bits: Value) -> Value {
    let mask = b.int(Lane::I32, 255);
    b.bin(BinOp::And, bits, mask)
}

/// 1 or NaN.
pub(super) fn of_mask(b: &mut Builder, set: Value) -> Value {
    let one = b.int(Lane::I32, ONE);
    Exponents { b }.or_nan(set, one)
}
