//! Recipes that turn floats of 4 and 8 bits into `F32` lanes, which have all their values, and
//! back; and that round lanes to one of these formats after each operation.

use helio_ir::types::{FloatFormat, FloatSpecials};

use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, Value};
use crate::math;

/// The bits of a quiet NaN in a lane.
const NAN: i64 = 0x7fc0_0000;
/// The bits of infinity in a lane.
const INFINITY: i64 = 0x7f80_0000;
/// The sign bit of a lane.
const SIGN: i64 = 0x8000_0000;
/// The explicit bits of a lane's mantissa.
const MANTISSA: u32 = 23;
/// The bias of a lane's exponent.
const BIAS: i32 = 127;

/// A format whose recipe is being written to a kernel.
struct Recipe<'b> {
    b: &'b mut Builder,
    format: FloatFormat,
}

/// The number whose bits are the lowest of each lane; those above may be anything. (For `f16`,
/// too.)
pub(super) fn decode(b: &mut Builder, format: FloatFormat, bits: Value) -> Value {
    let mut r = Recipe { b, format };
    let magnitude = r.int_op(BinOp::And, bits, r.magnitude());
    let sign = r.int_op(BinOp::Shl, bits, i64::from(31 - r.width()));
    let sign = r.int_op(BinOp::And, sign, SIGN);
    let shifted = r.int_op(BinOp::Shl, magnitude, i64::from(MANTISSA - format.mantissa_bits));
    let normal = r.int_op(BinOp::Add, shifted, i64::from(BIAS - format.bias) << MANTISSA);
    // A subnormal number: its bits make the mantissa of a number next to the smallest normal one,
    // which is then subtracted.
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

/// The bits of a number of the format, zero-extended: the inverse of [`decode`]. What is no number
/// of the format has been rounded to one.
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

/// The nearest number of the format, ties to even. Numbers that are too large become what the
/// format has for them: infinity, NaN or the greatest number.
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
    // Subnormal numbers are rounded by a sum: see `shifter`.
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
        // The format's only NaN has the sign bit set, which the total order sees.
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
    /// How many bits the format has besides the sign.
    fn width(&self) -> u32 {
        self.format.exponent_bits + self.format.mantissa_bits
    }

    /// The mask of the bits of exponent and mantissa.
    fn magnitude(&self) -> i64 {
        (1 << self.width()) - 1
    }

    /// The mask of the bits of the exponent.
    fn highest_exponent(&self) -> i64 {
        ((1 << self.format.exponent_bits) - 1) << self.format.mantissa_bits
    }

    /// The smallest positive normal number.
    fn least_normal(&self) -> f64 {
        2f64.powi(self.format.min_exponent())
    }

    /// A power of two that, added to a number in a lane, rounds it to a multiple of the format's
    /// smallest subnormal number.
    fn shifter(&self) -> f64 {
        let last = self.format.min_exponent() - self.format.mantissa_bits as i32;
        2f64.powi(MANTISSA as i32 + last)
    }

    /// The greatest finite number.
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
