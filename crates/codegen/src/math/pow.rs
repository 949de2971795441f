//! Powers and roots.
//!
//! `|x|^y = e^(y ln |x|)`, where the logarithm and its product with `y` are carried as sums of two
//! floats: of a product of 88 (or 709) an error of one float would be one of 2^6 (or 2^9) units.

use super::calc::{Calc, Pair};
use super::exp::exp_of_sum;
use crate::kernel::{BinOp, Builder, Cmp, Conv, MaskOp, UnOp, Value};

/// Minimax for `(2 atanh s - 2s - 2s³/3) / s⁵` in `s²`, `|s|` up to 0.1716; off by 2^-44 and 2^-73 of
/// the logarithm.
const P32: &[f64] = &[
    0.399_999_981_781_044_4,
    0.285_718_733_207_938_2,
    0.221_850_381_524_347_52,
    0.194_674_790_312_202_14,
];
const P64: &[f64] = &[
    0.399_999_999_999_999_8,
    0.285_714_285_714_450_7,
    0.222_222_222_175_464_03,
    0.181_818_188_691_917_15,
    0.153_845_569_420_031_14,
    0.133_363_148_735_154_34,
    0.116_748_668_756_618_67,
    0.119_886_346_059_979_36,
];

/// The product of two sums.
fn product_of_pairs(c: &mut Calc<'_>, a: Pair, b: Pair) -> Pair {
    let Pair { high, low } = c.product(a.high, b.high);
    let low = c.fma(a.high, b.low, low);
    Pair { high, low: c.fma(a.low, b.high, low) }
}

/// `ln x` of a positive finite number.
fn log(c: &mut Calc<'_>, x: Value) -> Pair {
    let none = c.k(0.0);
    log_scaled(c, x, none)
}

/// `ln (2^n x)` for a positive finite `x` and an integer `n`.
pub(super) fn log_scaled(c: &mut Calc<'_>, x: Value, n: Value) -> Pair {
    let (least, up) = c.either((2f64.powi(-126), 23), (2f64.powi(-1022), 52));
    let subnormal = c.cmp_k(Cmp::Lt, x, least);
    let scaled = c.mul_k(x, 2f64.powi(up));
    let normal = c.select(subnormal, scaled, x);
    // x = 2^e m, m from √½ to √2.
    let mantissa = i64::from(c.mantissa());
    let bits = c.bits(normal);
    let from_start = c.int_k(BinOp::Sub, bits, c.either(0x3f35_04f3, 0x3fe6_a09e_667f_3bcd));
    let e_bits = c.int_k(BinOp::And, from_start, -1 << mantissa);
    let m = c.b.sub(bits, e_bits);
    let m = c.of_bits(m);
    let e = c.int_k(BinOp::ShrA, e_bits, mantissa);
    let e = c.b.convert(Conv::Value, c.lane, e);
    let down = c.add_k(n, f64::from(-up));
    let moved = c.select(subnormal, down, n);
    let e = c.add(e, moved);
    // s = f / (2 + f), with the rounding errors of sum and quotient.
    let f = c.add_k(m, -1.0);
    let two = c.k(2.0);
    let (sum, sum_error) = c.fast_two_sum(two, f);
    let one = c.k(1.0);
    let reciprocal = c.div(one, sum);
    let s = c.mul(f, reciprocal);
    let rest = c.fnma(s, sum, f);
    let rest = c.fnma(s, sum_error, rest);
    let s = Pair { high: s, low: c.mul(rest, reciprocal) };
    // ln m = 2s + s z (2/3 + z P(z)), z = s².
    let z = product_of_pairs(c, s, s);
    let p = c.poly(z.high, c.either(P32, P64));
    let q = c.mul(p, z.high);
    let (third, missing) = c.either(
        (0.666_666_686_534_881_6, -1.986_821_492_513_020_7e-8),
        (2.0 / 3.0, 3.700_743_415_417_188e-17),
    );
    let third = c.k(third);
    let (factor, factor_error) = c.fast_two_sum(third, q);
    let factor = Pair { high: factor, low: c.add_k(factor_error, missing) };
    let cube = product_of_pairs(c, z, s);
    let curved = product_of_pairs(c, cube, factor);
    let straight = Pair { high: c.add(s.high, s.high), low: c.add(s.low, s.low) };
    let (log, error) = c.fast_two_sum(straight.high, curved.high);
    let low = c.add(straight.low, curved.low);
    let low = c.add(error, low);
    // e ln 2, whose high part is exact.
    let (ln2, ln2_low) = c.either(
        (0.693_145_751_953_125, 1.428_606_820_309_417_3e-6),
        (0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10),
    );
    let whole = c.mul_k(e, ln2);
    let (high, error) = c.fast_two_sum(whole, log);
    let low = c.add(error, low);
    let low = c.fma_k(e, ln2_low, low);
    let (high, low) = c.fast_two_sum(high, low);
    Pair { high, low }
}

/// `x^y` as C defines it: `1^y` and `x^0` are 1 for NaN, too.
pub(super) fn pow(b: &mut Builder, x: Value, y: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let abs = c.abs(x);
    let (zero, one) = (c.k(0.0), c.k(1.0));
    let (infinity, nan) = (c.k(f64::INFINITY), c.k(f64::NAN));
    let log = log(c, abs);
    let exponent = c.product(y, log.high);
    let low = c.fma(y, log.low, exponent.low);
    // Where the result leaves the range, or `y` is infinite, the low part may be anything.
    let high = c.at_least(exponent.high, c.either(-105.0, -746.0));
    let high = c.at_most(high, c.either(89.5, 710.0));
    let within = c.cmp(Cmp::Eq, high, exponent.high);
    let low = c.select(within, low, zero);
    let power = exp_of_sum(c, high, low);
    let to_zero = {
        let vanishes = c.cmp(Cmp::Eq, abs, zero);
        let negative = c.cmp(Cmp::Lt, y, zero);
        c.b.mask_op(MaskOp::Xor, vanishes, negative)
    };
    let limit = c.select(to_zero, zero, infinity);
    let positive = c.cmp(Cmp::Gt, abs, zero);
    let finite = c.cmp(Cmp::Lt, abs, infinity);
    let ordinary = c.both(positive, finite);
    let magnitude = c.select(ordinary, power, limit);
    let is_unit = c.cmp(Cmp::Eq, abs, one);
    let magnitude = c.select(is_unit, one, magnitude);
    // The sign: of odd powers of what has a sign bit.
    let half = c.mul_k(y, 0.5);
    let (whole, whole_half) = (c.b.un(UnOp::Trunc, y), c.b.un(UnOp::Trunc, half));
    let is_integer = c.cmp(Cmp::Eq, whole, y);
    let is_halved = c.cmp(Cmp::Eq, whole_half, half);
    let is_odd = c.b.mask_op(MaskOp::AndNot, is_halved, is_integer);
    let signs = c.sign(x);
    let odd_power = c.or_sign(magnitude, signs);
    let result = c.select(is_odd, odd_power, magnitude);
    // A root of a negative number.
    let negative = c.cmp(Cmp::Lt, x, zero);
    let root = c.b.mask_op(MaskOp::AndNot, is_integer, negative);
    let root = c.both(root, finite);
    let result = c.select(root, nan, result);
    let ordered = c.cmp(Cmp::Eq, x, x);
    let result = c.select(ordered, result, nan);
    let ordered = c.cmp(Cmp::Eq, y, y);
    let result = c.select(ordered, result, nan);
    let is_one = c.cmp(Cmp::Eq, x, one);
    let result = c.select(is_one, one, result);
    let no_power = c.cmp(Cmp::Eq, y, zero);
    c.select(no_power, one, result)
}

/// The cube root: the reciprocal of it by Newton's iteration, which needs no division, from an
/// estimate by a third of the exponent; then a correction of the root itself.
pub(super) fn cbrt(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    // Away from subnormal numbers, by the cube of a power of two.
    let (least, up) = c.either((2f64.powi(-100), 8), (2f64.powi(-900), 40));
    let small = c.cmp_k(Cmp::Lt, abs, least);
    let scaled = c.mul_k(abs, 2f64.powi(3 * up));
    let a = c.select(small, scaled, abs);
    let bits = c.bits(a);
    let bits = c.b.convert(Conv::Value, c.lane, bits);
    let third = c.mul_k(bits, 1.0 / 3.0);
    let ints = c.ints();
    let third = c.b.convert(Conv::Trunc, ints, third);
    let start = c.int(c.either(0x54a2_fa8c, 0x553e_f0ff_289d_d796));
    let start = c.b.sub(start, third);
    let mut r = c.of_bits(start);
    let one = c.k(1.0);
    // The error, of 2^-5 first, is squared each time.
    for _ in 0..c.either(3, 4) {
        let square = c.mul(r, r);
        let product = c.mul(a, r);
        let missing = c.fnma(product, square, one);
        let step = c.mul_k(r, 1.0 / 3.0);
        r = c.fma(step, missing, r);
    }
    let square = c.mul(r, r);
    let root = c.mul(a, square);
    // (a - root³) / (3 root²), with 1 / root² = r².
    let root2 = c.product(root, root);
    let missing = c.fnma(root2.high, root, a);
    let missing = c.fnma(root2.low, root, missing);
    let step = c.mul_k(square, 1.0 / 3.0);
    let root = c.fma(missing, step, root);
    let unscaled = c.mul_k(root, 2f64.powi(-up));
    let root = c.select(small, unscaled, root);
    let root = c.or_sign(root, signs);
    // Zeros, infinities and NaN are their own; but where subnormal numbers count as zero, `x` may be one.
    let positive = c.cmp_k(Cmp::Gt, abs, 0.0);
    let finite = c.cmp_k(Cmp::Lt, abs, f64::INFINITY);
    let ordinary = c.both(positive, finite);
    let itself = c.add(x, x);
    c.select(ordinary, root, itself)
}
