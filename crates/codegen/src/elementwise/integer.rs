//! Recipes of element-wise operations on integers. Lanes of 32 and 64 bits hold narrower ones sign-
//! or zero-extended, which `IntKind::wrap` restores after each operation that may leave their
//! range.

use helio_ir::{BinaryOp, UnaryOp};

use super::kind::IntKind;
use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, MaskOp, UnOp, Value};
use crate::math::mulhi_unsigned;

/// Whether [`unary`] takes an operation.
pub(super) fn has_unary(op: UnaryOp) -> bool {
    use UnaryOp::{Abs, Clz, Negate, Not, Popcnt, Sign};
    matches!(op, Abs | Clz | Negate | Not | Popcnt | Sign)
}

/// Whether [`binary`] takes an operation.
pub(super) fn has_binary(op: BinaryOp) -> bool {
    !matches!(op, BinaryOp::Atan2 | BinaryOp::Complex)
}

/// The recipe of an operation of one operand.
///
/// # Panics
/// Unless [`has_unary`] says that there is one.
pub(super) fn unary(b: &mut Builder, op: UnaryOp, int: IntKind, x: Value) -> Value {
    let lane = int.lane();
    let zero = b.int(lane, 0);
    match op {
        UnaryOp::Abs => {
            let negative = b.sub(zero, x);
            let abs = b.bin(BinOp::Max, x, negative);
            // The least number stays as it is, in types narrower than the lane, too.
            int.wrap(b, abs)
        }
        UnaryOp::Negate => {
            let negative = b.sub(zero, x);
            int.wrap(b, negative)
        }
        UnaryOp::Not => {
            let all = b.int(lane, -1);
            let not = b.bin(BinOp::Xor, x, all);
            int.wrap(b, not)
        }
        UnaryOp::Popcnt => {
            let low = int.unsigned(b, x);
            let count = b.un(UnOp::PopCount, low);
            int.wrap(b, count)
        }
        UnaryOp::Clz => {
            let low = int.unsigned(b, x);
            let count = b.un(UnOp::CountLeadingZeros, low);
            let unused = b.int(lane, i64::from(int.lane_bits() - int.bits));
            let count = b.sub(count, unused);
            int.wrap(b, count)
        }
        UnaryOp::Sign => {
            let (one, minus_one) = (b.int(lane, 1), b.int(lane, -1));
            let at_most = b.bin(BinOp::Min, x, one);
            if int.signed { b.bin(BinOp::Max, at_most, minus_one) } else { at_most }
        }
        other => panic!("{} of integers", other.name()),
    }
}

/// The recipe of an operation of two operands.
///
/// # Panics
/// Unless [`has_binary`] says that there is one.
pub(super) fn binary(b: &mut Builder, op: BinaryOp, int: IntKind, x: Value, y: Value) -> Value {
    let unsigned_lane = !int.signed && int.bits == int.lane_bits();
    match op {
        BinaryOp::Add => wrapped(b, BinOp::Add, int, x, y),
        BinaryOp::Subtract => wrapped(b, BinOp::Sub, int, x, y),
        BinaryOp::Multiply => wrapped(b, BinOp::Mul, int, x, y),
        BinaryOp::And => b.bin(BinOp::And, x, y),
        BinaryOp::Or => b.bin(BinOp::Or, x, y),
        BinaryOp::Xor => b.bin(BinOp::Xor, x, y),
        BinaryOp::Maximum => b.bin(if unsigned_lane { BinOp::MaxU } else { BinOp::Max }, x, y),
        BinaryOp::Minimum => b.bin(if unsigned_lane { BinOp::MinU } else { BinOp::Min }, x, y),
        BinaryOp::ShiftLeft => wrapped(b, BinOp::Shl, int, x, y),
        // A distance of the type's width or more stays one when it is extended to the lane. If it
        // is less than the lane's width, it moves all bits of the type out of those that `wrap`
        // keeps.
        BinaryOp::ShiftRightLogical => {
            let low = int.unsigned(b, x);
            wrapped(b, BinOp::ShrL, int, low, y)
        }
        BinaryOp::ShiftRightArithmetic => {
            let x = int.signed(b, x);
            wrapped(b, BinOp::ShrA, int, x, y)
        }
        BinaryOp::Divide => divide(b, int, x, y).0,
        BinaryOp::Remainder => divide(b, int, x, y).1,
        BinaryOp::Mulhi => mulhi(b, int, x, y),
        BinaryOp::Power => power(b, int, x, y),
        BinaryOp::Atan2 | BinaryOp::Complex => panic!("{} of integers", op.name()),
    }
}

/// A lane operation whose result may leave the type's range.
fn wrapped(b: &mut Builder, op: BinOp, int: IntKind, x: Value, y: Value) -> Value {
    let result = b.bin(op, x, y);
    int.wrap(b, result)
}

/// Quotient and remainder, truncated. Of a zero divisor the quotient is all ones and the remainder
/// the dividend; the least number divided by -1 wraps.
fn divide(b: &mut Builder, int: IntKind, x: Value, y: Value) -> (Value, Value) {
    let lane = int.lane();
    if let Some(divisor) = b.constant(y).map(|bits| int.number(bits))
        && let Some(divided) = divide_by(b, int, x, divisor)
    {
        return divided;
    }
    let (zero, all) = (b.int(lane, 0), b.int(lane, -1));
    let by_zero = b.compare(Cmp::Eq, y, zero);
    let magnitudes = |b: &mut Builder| [x, y].map(|v| unary(b, UnaryOp::Abs, int, v));
    let [n, d] = if int.signed { magnitudes(b) } else { [x, y] };
    // Abs leaves the least number negative, which is right if read as unsigned.
    let [n, d] = [n, d].map(|v| int.unsigned(b, v));
    let (mut quotient, mut remainder) =
        if int.bits <= 16 { divide_short(b, n, d) } else { divide_unsigned(b, lane, n, d) };
    if int.signed {
        let shift = b.int(lane, i64::from(int.lane_bits() - 1));
        let differ = b.bin(BinOp::Xor, x, y);
        let signs = b.bin(BinOp::ShrA, differ, shift);
        quotient = negate_if(b, quotient, signs);
        let signs = b.bin(BinOp::ShrA, x, shift);
        remainder = negate_if(b, remainder, signs);
    }
    let quotient = b.select(by_zero, all, quotient);
    let remainder = b.select(by_zero, x, remainder);
    (int.wrap(b, quotient), int.wrap(b, remainder))
}

/// Quotient and remainder, as [`divide`] gives them, of a divisor that is known, but for zero and for unsigned
/// numbers of 16 bits.
fn divide_by(b: &mut Builder, int: IntKind, x: Value, divisor: i128) -> Option<(Value, Value)> {
    let magnitude = divisor.unsigned_abs();
    if magnitude == 0 {
        return None;
    }
    let lane = int.lane();
    let last = b.int(lane, i64::from(int.lane_bits() - 1));
    let (quotient, product) = if magnitude.is_power_of_two() {
        let by = magnitude.trailing_zeros();
        let (shift, below) = (b.int(lane, by.into()), b.int(lane, (magnitude - 1) as i64));
        let quotient = if int.signed {
            // Rounded up if negative.
            let sign = b.bin(BinOp::ShrA, x, last);
            let more = b.bin(BinOp::And, sign, below);
            let sum = b.add(x, more);
            b.bin(BinOp::ShrA, sum, shift)
        } else {
            b.bin(BinOp::ShrL, x, shift)
        };
        (quotient, b.bin(BinOp::Shl, quotient, shift))
    } else {
        let signs = int.signed.then(|| b.bin(BinOp::ShrA, x, last));
        let dividend = signs.map_or(x, |signs| negate_if(b, x, signs));
        let quotient = divide_by_multiplying(b, int, dividend, magnitude)?;
        let quotient = signs.map_or(quotient, |signs| negate_if(b, quotient, signs));
        let times = b.int(lane, magnitude as i64);
        (quotient, b.mul(quotient, times))
    };
    let remainder = b.sub(x, product);
    let quotient = if divisor < 0 { unary(b, UnaryOp::Negate, int, quotient) } else { quotient };
    Some((int.wrap(b, quotient), int.wrap(b, remainder)))
}

/// `n / divisor` as a product with the reciprocal and a shift (Granlund and Montgomery, 1994), of numbers without
/// sign; `None` for those of 16 bits. If `int` is signed they are at most the magnitude of its least number.
///
/// With p bits, l = ⌈log₂ divisor⌉ and m = ⌊2^(p+l) / divisor⌋ + 1, m × divisor is more than 2^(p+l) by less than
/// 2^l, so ⌊n × m / 2^(p+l)⌋ is the quotient for all n up to 2^p. The divisor is no power of two.
fn divide_by_multiplying(b: &mut Builder, int: IntKind, n: Value, divisor: u128) -> Option<Value> {
    let lane = int.lane();
    let lane_bits = int.lane_bits();
    let precision = int.bits - u32::from(int.signed);
    let log = divisor.ilog2() + 1;
    if 2 * precision < lane_bits {
        let factor = (1 << (precision + log)) / divisor + 1;
        let (factor, shift) = (b.int(lane, factor as i64), b.int(lane, (precision + log).into()));
        let product = b.mul(n, factor);
        return Some(b.bin(BinOp::ShrL, product, shift));
    }
    if int.bits < lane_bits {
        return None;
    }
    let shift = b.int(lane, (log - 1).into());
    if int.signed {
        let factor = (1 << (precision + log)) / divisor + 1;
        let factor = b.int(lane, factor as i64);
        let high = mulhi_unsigned(b, n, factor);
        return Some(b.bin(BinOp::ShrL, high, shift));
    }
    // The factor has a bit more than the lane: it is n × (m - 2^p) / 2^p + n, halved before it overflows.
    let factor = (((1 << log) - divisor) << precision) / divisor + 1;
    let factor = b.int(lane, factor as i64);
    let high = mulhi_unsigned(b, n, factor);
    let one = b.int(lane, 1);
    let rest = b.sub(n, high);
    let half = b.bin(BinOp::ShrL, rest, one);
    let sum = b.add(half, high);
    Some(b.bin(BinOp::ShrL, sum, shift))
}

/// `-x` where `signs` is all ones, `x` where it is zero.
fn negate_if(b: &mut Builder, x: Value, signs: Value) -> Value {
    let flipped = b.bin(BinOp::Xor, x, signs);
    b.sub(flipped, signs)
}

/// Quotient and remainder of numbers of up to 16 bits: `F32`, with its 24 bits, rounds no quotient
/// of two of them up to the next integer.
fn divide_short(b: &mut Builder, n: Value, d: Value) -> (Value, Value) {
    let [nf, df] = [n, d].map(|v| b.convert(Conv::Value, Lane::F32, v));
    let ratio = b.bin(BinOp::Div, nf, df);
    let quotient = b.convert(Conv::Trunc, Lane::I32, ratio);
    let product = b.mul(quotient, d);
    (quotient, b.sub(n, product))
}

/// Quotient and remainder of unsigned numbers as wide as the lane.
///
/// The quotient is put together from two estimates by a rounded reciprocal, each too small by no
/// more than a few units of its last place, and a correction by one.
fn divide_unsigned(b: &mut Builder, lane: Lane, n: Value, d: Value) -> (Value, Value) {
    let float = if lane == Lane::I64 { Lane::F64 } else { Lane::F32 };
    // Explicit bits of the mantissa.
    let precision = if lane == Lane::I64 { 52 } else { 23 };
    let df = b.convert(Conv::ValueU, float, d);
    // A little less than the reciprocal, so that no estimate is too large.
    let shrunk = b.float(float, 1.0 - 2f64.powi(2 - precision));
    let reciprocal = b.bin(BinOp::Div, shrunk, df);
    let estimate = |b: &mut Builder, n: Value| {
        let nf = b.convert(Conv::ValueU, float, n);
        b.mul(nf, reciprocal)
    };
    // Halved, because quotients that use the sign bit cannot be converted.
    let first = estimate(b, n);
    let half = b.float(float, 0.5);
    let halved = b.mul(first, half);
    let truncated = b.convert(Conv::Trunc, lane, halved);
    let one = b.int(lane, 1);
    let first = b.bin(BinOp::Shl, truncated, one);
    let product = b.mul(first, d);
    let rest = b.sub(n, product);
    let second = estimate(b, rest);
    let second = b.convert(Conv::Trunc, lane, second);
    let product = b.mul(second, d);
    let rest = b.sub(rest, product);
    let quotient = b.add(first, second);
    let more = b.compare(Cmp::GeU, rest, d);
    let (next, less) = (b.add(quotient, one), b.sub(rest, d));
    (b.select(more, next, quotient), b.select(more, less, rest))
}

/// The high half of the product of two numbers.
fn mulhi(b: &mut Builder, int: IntKind, x: Value, y: Value) -> Value {
    let lane = int.lane();
    if int.bits <= 16 {
        let product = b.mul(x, y);
        let by = b.int(lane, int.bits.into());
        let high = b.bin(if int.signed { BinOp::ShrA } else { BinOp::ShrL }, product, by);
        return int.wrap(b, high);
    }
    let high = mulhi_unsigned(b, x, y);
    if !int.signed {
        return high;
    }
    // A negative number is read as one that is too large by 2^bits.
    let shift = b.int(lane, i64::from(int.bits - 1));
    let [x_sign, y_sign] = [x, y].map(|v| b.bin(BinOp::ShrA, v, shift));
    let excess_x = b.bin(BinOp::And, x_sign, y);
    let excess_y = b.bin(BinOp::And, y_sign, x);
    let high = b.sub(high, excess_x);
    b.sub(high, excess_y)
}

/// By squaring, a bit of the exponent at a time. A negative exponent gives the truncated quotient
/// 1 / x^-y, which is zero but for 1 and -1, and zero for x = 0, too.
fn power(b: &mut Builder, int: IntKind, x: Value, y: Value) -> Value {
    let lane = int.lane();
    let (zero, one, minus_one) = (b.int(lane, 0), b.int(lane, 1), b.int(lane, -1));
    let exponent = int.unsigned(b, y);
    let init = [one, x, exponent];
    let left = |b: &mut Builder, state: &[Value]| {
        let rest = b.compare(Cmp::Ne, state[2], zero);
        b.mask_any(rest)
    };
    let last = b.while_loop(&init, left, |b, state| {
        let (result, square, rest) = (state[0], state[1], state[2]);
        let bit = b.bin(BinOp::And, rest, one);
        let odd = b.compare(Cmp::Ne, bit, zero);
        let product = b.mul(result, square);
        vec![b.select(odd, product, result), b.mul(square, square), b.bin(BinOp::ShrL, rest, one)]
    });
    let result = int.wrap(b, last[0]);
    if !int.signed {
        return result;
    }
    // Powers of -1 go by the last bit of the exponent, which the loop has used; those of 1 are 1.
    let negative = b.compare(Cmp::Lt, y, zero);
    let is_one = b.compare(Cmp::Eq, x, one);
    let is_minus_one = b.compare(Cmp::Eq, x, minus_one);
    let unit = b.mask_op(MaskOp::Or, is_one, is_minus_one);
    let vanishes = b.mask_op(MaskOp::AndNot, unit, negative);
    b.select(vanishes, zero, result)
}
