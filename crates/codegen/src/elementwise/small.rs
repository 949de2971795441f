//! Floats of 4 and 8 bits: lanes hold them as `F32`, which has all their values.

use helio_ir::types::{FloatFormat, FloatSpecials};

use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, Value};
use crate::math;

/// Bits of a quiet NaN.
const NAN: i64 = 0x7fc0_0000;
const INFINITY: i64 = 0x7f80_0000;
/// The sign bit of a lane.
const SIGN: i64 = 0x8000_0000;
/// Explicit bits of the mantissa and bias of a lane.
const MANTISSA: u32 = 23;
const BIAS: i32 = 127;

/// A format, and the numbers that its recipes are made of.
struct Recipe<'b> {
    b: &'b mut Builder,
    format: FloatFormat,
}

/// The number whose bits lanes have, the bits above them being anything.
pub(super) fn decode(b: &mut Builder, format: FloatFormat, bits: Value) -> Value {
    let mut r = Recipe { b, format };
    let magnitude = r.int_op(BinOp::And, bits, r.magnitude());
    let sign = r.int_op(BinOp::Shl, bits, i64::from(31 - r.width()));
    let sign = r.int_op(BinOp::And, sign, SIGN);
    let shifted = r.int_op(BinOp::Shl, magnitude, i64::from(MANTISSA - format.mantissa_bits));
    let normal = r.int_op(BinOp::Add, shifted, i64::from(BIAS - format.bias) << MANTISSA);
    // As a fraction of the smallest normal number, to which it is added first.
    let least = r.float(r.least_normal());
    let least_bits = r.bits(least);
    let sum = r.b.bin(BinOp::Or, shifted, least_bits);
    let sum = r.of_bits(sum);
    let subnormal = r.b.sub(sum, least);
    let subnormal = r.bits(subnormal);
    let is_subnormal = r.compare(Cmp::Lt, magnitude, 1 << format.mantissa_bits);
    let mut value = r.b.select(is_subnormal, subnormal, normal);
    match format.specials {
        FloatSpecials::Ieee => {
            let special = r.compare(Cmp::Ge, magnitude, r.highest_exponent());
            let specials = r.int_op(BinOp::Or, shifted, INFINITY);
            value = r.b.select(special, specials, value);
        }
        FloatSpecials::Nan => {
            let special = r.compare(Cmp::Eq, magnitude, r.magnitude());
            let nan = r.int(NAN);
            value = r.b.select(special, nan, value);
        }
        FloatSpecials::NanForNegativeZero => {
            let zero = r.compare(Cmp::Eq, magnitude, 0);
            let negative = r.compare(Cmp::Ne, sign, 0);
            let special = r.b.mask_op(crate::kernel::MaskOp::And, zero, negative);
            let nan = r.int(NAN);
            value = r.b.select(special, nan, value);
        }
        FloatSpecials::NegativeZero | FloatSpecials::PowersOfTwo => {}
    }
    let signed = r.b.bin(BinOp::Or, value, sign);
    r.of_bits(signed)
}

/// The bits of a number of the format, zero-extended.
pub(super) fn encode(b: &mut Builder, format: FloatFormat, x: Value) -> Value {
    let mut r = Recipe { b, format };
    let all = r.bits(x);
    let sign = r.int_op(BinOp::ShrL, all, i64::from(31 - r.width()));
    let sign = r.int_op(BinOp::And, sign, 1 << r.width());
    let abs = math::abs(r.b, x);
    let bits = r.bits(abs);
    let high = r.int_op(BinOp::ShrL, bits, i64::from(MANTISSA - format.mantissa_bits));
    let offset = i64::from(BIAS - format.bias) << format.mantissa_bits;
    let normal = r.int_op(BinOp::Sub, high, offset);
    let shifter = r.float(r.shifter());
    let sum = r.b.add(abs, shifter);
    let (sum, from) = (r.bits(sum), r.bits(shifter));
    let subnormal = r.b.sub(sum, from);
    let least = r.float(r.least_normal());
    let is_subnormal = r.b.compare(Cmp::Lt, abs, least);
    let mut code = r.b.select(is_subnormal, subnormal, normal);
    match format.specials {
        FloatSpecials::Ieee => {
            let special = r.compare(Cmp::Ge, bits, INFINITY);
            let mantissa = r.int_op(BinOp::And, high, (1 << format.mantissa_bits) - 1);
            let specials = r.int_op(BinOp::Or, mantissa, r.highest_exponent());
            code = r.b.select(special, specials, code);
        }
        FloatSpecials::Nan => {
            let ordered = r.b.compare(Cmp::Eq, x, x);
            let nan = r.int(r.magnitude());
            code = r.b.select(ordered, code, nan);
        }
        FloatSpecials::NanForNegativeZero => {
            let signed = r.b.bin(BinOp::Or, code, sign);
            let ordered = r.b.compare(Cmp::Eq, x, x);
            let nan = r.int(1 << r.width());
            return r.b.select(ordered, signed, nan);
        }
        FloatSpecials::NegativeZero | FloatSpecials::PowersOfTwo => {}
    }
    r.b.bin(BinOp::Or, code, sign)
}

/// The nearest number of the format, ties to even; what there is for what is too large.
pub(super) fn round(b: &mut Builder, format: FloatFormat, x: Value) -> Value {
    let mut r = Recipe { b, format };
    let abs = math::abs(r.b, x);
    let bits = r.bits(abs);
    // Half a unit less one, and one more if the last bit kept is odd.
    let cut = i64::from(MANTISSA - format.mantissa_bits);
    let last = r.int_op(BinOp::ShrL, bits, cut);
    let odd = r.int_op(BinOp::And, last, 1);
    let up = r.int_op(BinOp::Add, bits, (1 << (cut - 1)) - 1);
    let sum = r.b.add(up, odd);
    let kept = r.int_op(BinOp::And, sum, -1 << cut);
    let normal = r.of_bits(kept);
    // The place of the last bit of the sum is that of the format's subnormal numbers.
    let shifter = r.float(r.shifter());
    let sum = r.b.add(abs, shifter);
    let subnormal = r.b.sub(sum, shifter);
    let least = r.float(r.least_normal());
    let is_subnormal = r.b.compare(Cmp::Lt, abs, least);
    let rounded = r.b.select(is_subnormal, subnormal, normal);
    let greatest = r.float(r.greatest());
    let (beyond, nan) = match format.specials {
        FloatSpecials::Ieee => (r.float(f64::INFINITY), r.float(f64::NAN)),
        FloatSpecials::Nan => (r.float(f64::NAN), r.float(f64::NAN)),
        // Its sign bit is set, which the total order sees.
        FloatSpecials::NanForNegativeZero => (r.float(-f64::NAN), r.float(-f64::NAN)),
        FloatSpecials::NegativeZero | FloatSpecials::PowersOfTwo => (greatest, r.float(-0.0)),
    };
    let overflows = r.b.compare(Cmp::Gt, rounded, greatest);
    let rounded = r.b.select(overflows, beyond, rounded);
    let mut signed = math::copy_sign(r.b, rounded, x);
    if format.specials == FloatSpecials::NanForNegativeZero {
        let zero = r.float(0.0);
        let is_zero = r.b.compare(Cmp::Eq, rounded, zero);
        signed = r.b.select(is_zero, zero, signed);
    }
    let ordered = r.b.compare(Cmp::Eq, x, x);
    r.b.select(ordered, signed, nan)
}

impl Recipe<'_> {
    /// Bits other than the sign.
    fn width(&self) -> u32 {
        self.format.exponent_bits + self.format.mantissa_bits
    }

    /// The bits of the exponent and the mantissa.
    fn magnitude(&self) -> i64 {
        (1 << self.width()) - 1
    }

    /// The bits of the exponent.
    fn highest_exponent(&self) -> i64 {
        ((1 << self.format.exponent_bits) - 1) << self.format.mantissa_bits
    }

    fn least_normal(&self) -> f64 {
        2f64.powi(self.format.min_exponent())
    }

    /// A number whose last bit in a lane has the place of the format's last subnormal one.
    fn shifter(&self) -> f64 {
        let last = self.format.min_exponent() - self.format.mantissa_bits as i32;
        2f64.powi(MANTISSA as i32 + last)
    }

    fn greatest(&self) -> f64 {
        let unit = 2f64.powi(-(self.format.mantissa_bits as i32));
        let highest = (1 << self.format.exponent_bits) - 1 - self.format.bias;
        match self.format.specials {
            FloatSpecials::Ieee => (2.0 - unit) * 2f64.powi(highest - 1),
            FloatSpecials::Nan => (2.0 - 2.0 * unit) * 2f64.powi(highest),
            _ => (2.0 - unit) * 2f64.powi(highest),
        }
    }

    fn float(&mut self, value: f64) -> Value {
        self.b.float(Lane::F32, value)
    }

    fn int(&mut self, value: i64) -> Value {
        self.b.int(Lane::I32, value)
    }

    fn int_op(&mut self, op: BinOp, x: Value, y: i64) -> Value {
        let y = self.int(y);
        self.b.bin(op, x, y)
    }

    fn compare(&mut self, op: Cmp, x: Value, y: i64) -> Value {
        let y = self.int(y);
        self.b.compare(op, x, y)
    }

    fn bits(&mut self, x: Value) -> Value {
        self.b.convert(Conv::Bits, Lane::I32, x)
    }

    fn of_bits(&mut self, x: Value) -> Value {
        self.b.convert(Conv::Bits, Lane::F32, x)
    }
}
