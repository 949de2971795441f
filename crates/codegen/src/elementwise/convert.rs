//! Recipes of changes of element type (`convert`, `bitcast-convert`) and of `reduce-precision`.

use helio_ir::ElementType;
use helio_ir::ops::ReducePrecision;

use super::kind::{FloatKind, IntKind, Kind};
use super::{Elem, powers, small};
use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, MaskOp, UnOp, Value};
use crate::math::sign_bit;

/// The recipe of `convert`, by value. Integers keep the low bits in a narrower type. A float
/// becomes an integer truncated and saturated, NaN 0. What becomes a float is rounded once. What
/// becomes a `pred` is true unless it is zero.
pub(super) fn convert(b: &mut Builder, from: Kind, x: Elem, to: Kind) -> Elem {
    if from == to {
        return x;
    }
    match (from, to) {
        (Kind::Complex(from), Kind::Complex(to)) => {
            let (re, im) = x.parts();
            Elem::Complex(float_to_float(b, from, re, to), float_to_float(b, from, im, to))
        }
        (_, Kind::Complex(to)) => {
            let re = convert(b, from, x, Kind::Float(to)).vector();
            Elem::Complex(re, b.float(to.lane(), 0.0))
        }
        (Kind::Complex(from), Kind::Pred) => {
            let (re, im) = x.parts();
            let (re, im) = (nonzero(b, from.lane(), re), nonzero(b, from.lane(), im));
            Elem::Mask(b.mask_op(MaskOp::Or, re, im))
        }
        (Kind::Complex(from), _) => convert(b, Kind::Float(from), Elem::Vector(x.parts().0), to),
        (Kind::Pred, Kind::Power) => Elem::Vector(powers::of_mask(b, x.mask())),
        (Kind::Int(from), Kind::Power) => {
            // Rounded to an `F32` lane first, it might be rounded up twice.
            let x = if from.bits <= 16 { x.vector() } else { sticky(b, from, x.vector()) };
            let wide = int_to_float(b, from, x, FloatKind::F32);
            Elem::Vector(powers::of_f32(b, wide))
        }
        (Kind::Float(FloatKind::F64), Kind::Power) => Elem::Vector(powers::of_f64(b, x.vector())),
        (Kind::Float(_), Kind::Power) => Elem::Vector(powers::of_f32(b, x.vector())),
        // None is zero.
        (Kind::Power, Kind::Pred) => Elem::Mask(b.mask_const(true)),
        (Kind::Power, Kind::Float(FloatKind::F64)) => Elem::Vector(powers::to_f64(b, x.vector())),
        (Kind::Power, _) => {
            let wide = powers::to_f32(b, x.vector());
            convert(b, Kind::Float(FloatKind::F32), Elem::Vector(wide), to)
        }
        (Kind::Int(from), Kind::Pred) => Elem::Mask(nonzero(b, from.lane(), x.vector())),
        (Kind::Float(from), Kind::Pred) => Elem::Mask(nonzero(b, from.lane(), x.vector())),
        (Kind::Pred, Kind::Pred) => x,
        (Kind::Pred, Kind::Int(to)) => {
            let (one, zero) = (b.int(to.lane(), 1), b.int(to.lane(), 0));
            Elem::Vector(b.select(x.mask(), one, zero))
        }
        (Kind::Pred, Kind::Float(to)) => {
            let (one, zero) = (b.float(to.lane(), 1.0), b.float(to.lane(), 0.0));
            Elem::Vector(b.select(x.mask(), one, zero))
        }
        (Kind::Int(from), Kind::Int(to)) => Elem::Vector(int_to_int(b, from, x.vector(), to)),
        (Kind::Int(from), Kind::Float(to)) => Elem::Vector(int_to_float(b, from, x.vector(), to)),
        (Kind::Float(from), Kind::Int(to)) => Elem::Vector(float_to_int(b, from, x.vector(), to)),
        (Kind::Float(from), Kind::Float(to)) => {
            Elem::Vector(float_to_float(b, from, x.vector(), to))
        }
    }
}

/// Whether lanes are not zero, as a mask; NaN is not.
fn nonzero(b: &mut Builder, lane: Lane, x: Value) -> Value {
    let zero = b.bits(lane, 0);
    b.compare(Cmp::Ne, x, zero)
}

fn int_to_int(b: &mut Builder, from: IntKind, x: Value, to: IntKind) -> Value {
    match (from.lane(), to.lane()) {
        (Lane::I32, Lane::I64) => {
            let op = if from.signed { Conv::Extend } else { Conv::ExtendU };
            b.convert(op, Lane::I64, x)
        }
        (Lane::I64, Lane::I32) => {
            let low = b.convert(Conv::Narrow, Lane::I32, x);
            to.wrap(b, low)
        }
        // Bits above those of both types follow from the sign.
        _ if from.signed == to.signed && from.bits <= to.bits => x,
        _ if !from.signed && from.bits < to.bits => x,
        _ => to.wrap(b, x),
    }
}

fn int_to_float(b: &mut Builder, from: IntKind, x: Value, to: FloatKind) -> Value {
    let unsigned = !from.signed && from.bits == from.lane_bits();
    let op = if unsigned { Conv::ValueU } else { Conv::Value };
    // Lanes are `F32`, and a number of more bits than that has would be rounded twice: there, and
    // to the type. (In `F16` all these numbers are infinite, either way.)
    let exact = from.bits <= 16 || matches!(to, FloatKind::F32 | FloatKind::F64);
    let x = if exact || to == FloatKind::F16 { x } else { sticky(b, from, x) };
    let wide = b.convert(op, to.lane(), x);
    to.round(b, wide)
}

/// `x` cut to its first 24 bits, of which the last is set if anything is cut off: rounded to fewer
/// bits, it gives what `x` would.
fn sticky(b: &mut Builder, int: IntKind, x: Value) -> Value {
    let lane = int.lane();
    let (zero, one) = (b.int(lane, 0), b.int(lane, 1));
    let shift = b.int(lane, i64::from(int.lane_bits() - 1));
    let signs = if int.signed { b.bin(BinOp::ShrA, x, shift) } else { zero };
    let flipped = b.bin(BinOp::Xor, x, signs);
    let magnitude = b.sub(flipped, signs);
    let zeros = b.un(UnOp::CountLeadingZeros, magnitude);
    let cut = b.int(lane, i64::from(int.lane_bits()) - 24);
    let cut = b.sub(cut, zeros);
    let cut = b.bin(BinOp::Max, cut, zero);
    let high = b.bin(BinOp::ShrL, magnitude, cut);
    let kept = b.bin(BinOp::Shl, high, cut);
    let inexact = b.compare(Cmp::Ne, kept, magnitude);
    let odd = b.bin(BinOp::Or, high, one);
    let high = b.select(inexact, odd, high);
    let magnitude = b.bin(BinOp::Shl, high, cut);
    let flipped = b.bin(BinOp::Xor, magnitude, signs);
    b.sub(flipped, signs)
}

fn float_to_float(b: &mut Builder, from: FloatKind, x: Value, to: FloatKind) -> Value {
    match (from, to) {
        (FloatKind::F64, FloatKind::Small(_) | FloatKind::F16 | FloatKind::BF16) => {
            let odd = narrow_to_odd(b, x);
            to.round_any(b, odd)
        }
        _ if from.lane() == to.lane() => to.round_any(b, x),
        _ => b.convert(Conv::Value, to.lane(), x),
    }
}

/// `F64` as an `F32` that, if it is inexact, has its last bit set: rounded to fewer bits, it gives
/// what `x` would.
fn narrow_to_odd(b: &mut Builder, x: Value) -> Value {
    let (zero, one) = (b.int(Lane::I32, 0), b.int(Lane::I32, 1));
    let nearest = b.convert(Conv::Value, Lane::F32, x);
    let back = b.convert(Conv::Value, Lane::F64, nearest);
    let bits = b.convert(Conv::Bits, Lane::I32, nearest);
    let last = b.bin(BinOp::And, bits, one);
    let even = b.compare(Cmp::Eq, last, zero);
    // Neither holds for NaN.
    let (above, below) = (b.compare(Cmp::Gt, x, back), b.compare(Cmp::Lt, x, back));
    let zero64 = b.float(Lane::F64, 0.0);
    let positive = b.compare(Cmp::Gt, x, zero64);
    // Bits grow away from zero.
    let same = b.mask_op(MaskOp::Xor, below, positive);
    let inexact = b.mask_op(MaskOp::Or, above, below);
    let moves = b.mask_op(MaskOp::And, inexact, even);
    let (out, inward) = (b.add(bits, one), b.sub(bits, one));
    let moved = b.select(same, out, inward);
    let odd = b.select(moves, moved, bits);
    b.convert(Conv::Bits, Lane::F32, odd)
}

fn float_to_int(b: &mut Builder, from: FloatKind, x: Value, to: IntKind) -> Value {
    let lane = to.lane();
    // The bounds of 64 bits need the wider float only to be compared; conversion to it is exact.
    let (x, float) = match (from.lane(), lane) {
        (Lane::F32, Lane::I64) => (b.convert(Conv::Value, Lane::F64, x), Lane::F64),
        (float, _) => (x, float),
    };
    let zero = b.int(lane, 0);
    let precision = if float == Lane::F64 { 53 } else { 24 };
    let (least, most) = to.bounds();
    if to.bits < precision && (to.signed || to.bits < 32) {
        // The bounds are floats, too.
        let (least, most) = (b.float(float, least as f64), b.float(float, most as f64));
        // Where one operand is NaN, both give the second.
        let low = b.bin(BinOp::Max, x, least);
        let within = b.bin(BinOp::Min, low, most);
        let result = b.convert(Conv::Trunc, lane, within);
        if !to.signed {
            return result;
        }
        let ordered = b.compare(Cmp::Eq, x, x);
        return b.select(ordered, result, zero);
    }
    let limit = b.float(float, 2f64.powi(to.bits as i32 - i32::from(to.signed)));
    let most = b.int(lane, most as i64);
    if to.signed {
        // Below the bounds, truncation gives the least number by itself.
        let result = b.convert(Conv::Trunc, lane, x);
        let above = b.compare(Cmp::Ge, x, limit);
        let result = b.select(above, most, result);
        let ordered = b.compare(Cmp::Eq, x, x);
        return b.select(ordered, result, zero);
    }
    // Truncation gives signed numbers only: from what is above the greatest of them half the type's
    // range is taken away, for which the sign bit then stands.
    let zero_float = b.float(float, 0.0);
    let half = b.float(float, 2f64.powi(to.bits as i32 - 1));
    let sign = b.bits(lane, 1 << (to.bits - 1));
    let x = b.bin(BinOp::Max, x, zero_float);
    let above_half = b.compare(Cmp::Ge, x, half);
    let rest = b.sub(x, half);
    let rest = b.select(above_half, rest, x);
    let low = b.convert(Conv::Trunc, lane, rest);
    let high = b.bin(BinOp::Xor, low, sign);
    let result = b.select(above_half, high, low);
    let above = b.compare(Cmp::Ge, x, limit);
    b.select(above, most, result)
}

/// Whether [`bitcast`] takes these types: two of one width. But not from `f16`: its elements become
/// `F32` in lanes, which makes every NaN a quiet one.
pub(super) fn has_bitcast(from: Kind, to: Kind) -> bool {
    if from == to {
        return true;
    }
    let bits = |kind| match kind {
        Kind::Pred | Kind::Power => Some(8),
        Kind::Int(int) => Some(int.bits),
        Kind::Complex(_) => None,
        Kind::Float(FloatKind::Small(format)) => {
            Some(1 + format.exponent_bits + format.mantissa_bits)
        }
        Kind::Float(FloatKind::F16 | FloatKind::BF16) => Some(16),
        Kind::Float(float) => Some(8 * float.lane().bytes() as u32),
    };
    from != Kind::Float(FloatKind::F16) && bits(from).is_some() && bits(from) == bits(to)
}

/// The same bits as another type.
pub(super) fn bitcast(b: &mut Builder, from: Kind, x: Elem, to: Kind) -> Elem {
    if from == to {
        return x;
    }
    let sixteen = b.int(Lane::I32, 16);
    let bits = match (from, x) {
        (Kind::Pred, Elem::Mask(set)) => {
            let (one, zero) = (b.int(Lane::I32, 1), b.int(Lane::I32, 0));
            b.select(set, one, zero)
        }
        (Kind::Float(FloatKind::Small(format)), Elem::Vector(x)) => small::encode(b, format, x),
        (Kind::Float(float), Elem::Vector(x)) => {
            let bits = b.convert(Conv::Bits, float.bits_lane(), x);
            if float == FloatKind::BF16 { b.bin(BinOp::ShrL, bits, sixteen) } else { bits }
        }
        (_, x) => x.vector(),
    };
    match to {
        Kind::Pred => Elem::Mask(nonzero(b, Lane::I32, bits)),
        Kind::Int(int) => Elem::Vector(int.wrap(b, bits)),
        Kind::Power => Elem::Vector(powers::of_bits(b, bits)),
        Kind::Float(FloatKind::Small(format)) => Elem::Vector(small::decode(b, format, bits)),
        Kind::Float(FloatKind::F16) => {
            let format = ElementType::F16.float_format().expect("a float has a format");
            Elem::Vector(small::decode(b, format, bits))
        }
        Kind::Float(FloatKind::BF16) => {
            let high = b.bin(BinOp::Shl, bits, sixteen);
            Elem::Vector(b.convert(Conv::Bits, Lane::F32, high))
        }
        Kind::Float(float) | Kind::Complex(float) => {
            Elem::Vector(b.convert(Conv::Bits, float.lane(), bits))
        }
    }
}

/// How many bits of a float format are its mantissa, without the implicit one, and its exponent.
fn format(float: FloatKind) -> (u32, u32) {
    match float {
        FloatKind::Small(format) => (format.mantissa_bits, format.exponent_bits),
        FloatKind::F16 => (10, 5),
        FloatKind::BF16 => (7, 8),
        FloatKind::F32 => (23, 8),
        FloatKind::F64 => (52, 11),
    }
}

/// Rounded to fewer bits, ties to even; overflow gives infinity. With fewer exponent bits, what is
/// below the smallest normal number becomes zero.
///
/// Numbers that are subnormal in a narrow float are normal in lanes, but have fewer bits than others.
pub(super) fn precision(b: &mut Builder, op: ReducePrecision, float: FloatKind, x: Value) -> Value {
    let (lane, bits_lane) = (float.lane(), float.bits_lane());
    let (mantissa, exponent) = format(float);
    let lane_mantissa = if lane == Lane::F64 { 52 } else { 23 };
    let least_normal = match float {
        FloatKind::Small(format) => Some(2f64.powi(format.min_exponent())),
        FloatKind::F16 => Some(2f64.powi(-14)),
        FloatKind::BF16 | FloatKind::F32 | FloatKind::F64 => None,
    };
    let mut rounded = x;
    if op.mantissa_bits < mantissa {
        // The carry of the sum goes into the exponent, where it belongs.
        let cut = lane_mantissa - op.mantissa_bits;
        let bits = b.convert(Conv::Bits, bits_lane, x);
        let (one, by) = (b.int(bits_lane, 1), b.int(bits_lane, cut.into()));
        let last = b.bin(BinOp::ShrL, bits, by);
        let odd = b.bin(BinOp::And, last, one);
        let half = b.int(bits_lane, (1 << (cut - 1)) - 1);
        let up = b.add(bits, half);
        let sum = b.add(up, odd);
        let keep = b.int(bits_lane, -1 << cut);
        let kept = b.bin(BinOp::And, sum, keep);
        rounded = b.convert(Conv::Bits, lane, kept);
        if let Some(least) = least_normal {
            let shifter = b.float(lane, least * 2f64.powi(cut as i32));
            let sign = sign_bit(b, lane);
            let (abs, signs) = (b.bin(BinOp::AndNot, sign, x), b.bin(BinOp::And, x, sign));
            let sum = b.add(abs, shifter);
            let multiple = b.sub(sum, shifter);
            let subnormal = b.bin(BinOp::Or, multiple, signs);
            let least = b.float(lane, least);
            let is_subnormal = b.compare(Cmp::Lt, abs, least);
            rounded = b.select(is_subnormal, subnormal, rounded);
        }
    }
    if op.exponent_bits < exponent {
        let bias = (1i32 << (op.exponent_bits - 1)) - 1;
        let (least, most) = (2f64.powi(1 - bias), 2f64.powi(bias + 1));
        let sign = sign_bit(b, lane);
        let signs = b.bin(BinOp::And, x, sign);
        let abs = b.bin(BinOp::AndNot, sign, rounded);
        let (least, most) = (b.float(lane, least), b.float(lane, most));
        let infinity = b.float(lane, f64::INFINITY);
        let infinite = b.bin(BinOp::Or, infinity, signs);
        let small = b.compare(Cmp::Lt, abs, least);
        let large = b.compare(Cmp::Ge, abs, most);
        rounded = b.select(large, infinite, rounded);
        rounded = b.select(small, signs, rounded);
    }
    if least_normal.is_some() {
        // The format may have neither a number so large nor an infinity.
        rounded = float.round(b, rounded);
    }
    // Rounding the bits of a NaN can make it anything.
    let ordered = b.compare(Cmp::Eq, x, x);
    b.select(ordered, rounded, x)
}
