//! Powers and roots.
//!
//! `|x|^y = e^(y ln |x|)`, where the logarithm and its product with `y` are carried as sums of two
//! floats: of a product of 88 (or 709) an error of one float would be one of 2^6 (or 2^9) units.

use super::calc::{Calc, Pair};
use super::exp::exp_of_sum;
use super::log::parts;
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

/// Minimax for `(ln(1 + r) - r + r²/2) / r³` on [-1/32, 1/16]; off by 2^-33 of the logarithm.
const NEAR_ONE: &[f64] = &[
    0.333_333_416_819_159_1,
    -0.250_011_163_781_029_8,
    0.199_972_875_240_511_83,
    -0.155_332_739_634_061_4,
];
/// The inverse of the middle of each eighth from 3/4 to 1 and from 1 to 3/2; 1 on both sides of 1.
const INVERSES: [f32; 16] = [
    1.306_122_4,
    1.254_902,
    1.207_547_2,
    1.163_636_3,
    1.122_807,
    1.084_745_8,
    1.049_180_3,
    1.0,
    1.0,
    0.914_285_7,
    0.864_864_9,
    0.820_512_83,
    0.780_487_8,
    0.744_186_04,
    0.711_111_1,
    0.680_851_04,
];
/// The logarithms of the inverses of [`INVERSES`], as multiples of 2^-16.
const LOGS: [f32; 16] = [
    -0.267_059_33,
    -0.227_050_78,
    -0.188_598_63,
    -0.151_550_3,
    -0.115_829_47,
    -0.081_344_604,
    -0.048_004_15,
    0.0,
    0.0,
    0.089_614_87,
    0.145_187_38,
    0.197_830_2,
    0.247_833_25,
    0.295_471_2,
    0.340_927_12,
    0.384_414_67,
];
/// What [`LOGS`] leave out.
const LOW_LOGS: [f32; 16] = [
    -3.438_588e-6,
    -6.704_775_4e-6,
    7.448_103_6e-6,
    4.265_065_2e-7,
    -2.355_202_2e-6,
    -1.036_824_4e-6,
    -5.012_916_5e-6,
    0.0,
    0.0,
    -2.715_062_2e-6,
    -5.392_299_5e-6,
    -4.469_904e-6,
    2.949_204_4e-6,
    -6.974_787e-6,
    -5.612_672_6e-7,
    -2.942_276_3e-6,
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

/// The exponent `e` of a number that is not negative, infinite of zero and infinity, and unless it is, `ln x`; for 32-bit
/// lanes.
///
/// With `x = 2^e m`, `m` from 3/4 to 3/2, and the inverse of a number near `m`, `m` times that inverse is `1 + r`, where `r`
/// is between -1/32 and 1/16. The logarithm is the sum of those of `2^e`, of the number near `m`, and of `1 + r`.
fn log_by_table(c: &mut Calc<'_>, x: Value) -> (Value, Pair) {
    let (e, m) = parts(c, x);
    let bits = c.bits(m);
    let from_one = c.int_k(BinOp::Sub, bits, 1f32.to_bits().into());
    let eighth = c.int_k(BinOp::ShrA, from_one, 19);
    let [inverse, high, low] =
        [INVERSES, LOGS, LOW_LOGS].map(|table| c.b.lookup(c.lane, table.map(f32::to_bits), eighth));
    let multiple = c.product(m, inverse);
    let (r, r_low) = (c.add_k(multiple.high, -1.0), multiple.low);
    let square = c.product(r, r);
    // The high parts of ln 2 and of the table end in zero bits, so that their sum is exact.
    let whole = c.fma_k(e, 0.693_145_751_953_125, high);
    let low = c.fma_k(e, 1.428_606_820_309_417_3e-6, low);
    let (sum, error) = c.fast_two_sum(whole, r);
    let low = c.add(low, error);
    // Less half of the square: the difference, and what rounding has left out of it.
    let minus_half = c.k(-0.5);
    let difference = c.fma(square.high, minus_half, sum);
    let taken = c.sub(difference, sum);
    let missing = c.fms(square.high, minus_half, taken);
    let low = c.add(low, missing);
    let low = c.fma(square.low, minus_half, low);
    // Of r's low part, times the slope of the logarithm.
    let low = c.add(low, r_low);
    let low = c.fnma(r, r_low, low);
    let p = c.poly(r, NEAR_ONE);
    let cube = c.mul(square.high, r);
    let low = c.fma(p, cube, low);
    let (high, low) = c.fast_two_sum(difference, low);
    (e, Pair { high, low })
}

/// `e^(high + low)`; where that leaves the range of floats, its limit, whatever the low part is.
fn exp_of_pair(c: &mut Calc<'_>, exponent: Pair) -> Value {
    let zero = c.k(0.0);
    let high = c.at_least(exponent.high, c.either(-105.0, -746.0));
    let high = c.at_most(high, c.either(89.5, 710.0));
    let within = c.cmp(Cmp::Eq, high, exponent.high);
    let low = c.select(within, exponent.low, zero);
    exp_of_sum(c, high, low)
}

/// `|x|^y`, and where `|x|` is neither zero nor infinite; NaN where either number is, and for `y = 0` anything.
fn magnitude_by_table(c: &mut Calc<'_>, abs: Value, y: Value) -> (Value, Value) {
    let (e, log) = log_by_table(c, abs);
    // An infinite exponent times the logarithm of 1 would be NaN.
    let largest = f64::from(f32::MAX);
    let finite = c.at_least(y, -largest);
    let finite = c.at_most(finite, largest);
    let exponent = c.product(finite, log.high);
    let low = c.fma(finite, log.low, exponent.low);
    let power = exp_of_pair(c, Pair { high: exponent.high, low });
    let limit = c.mul(e, y);
    let limit = c.at_least(limit, 0.0);
    let exponent = c.abs(e);
    let ordinary = c.cmp_k(Cmp::Lt, exponent, f64::INFINITY);
    (c.select(ordinary, power, limit), ordinary)
}

/// `|x|^y`, and where `|x|` is neither zero, infinite, nor NaN; anything where a number is NaN, and for `y = 0`.
fn magnitude_by_quotient(c: &mut Calc<'_>, abs: Value, y: Value) -> (Value, Value) {
    let (zero, one, infinity) = (c.k(0.0), c.k(1.0), c.k(f64::INFINITY));
    let log = log(c, abs);
    let exponent = c.product(y, log.high);
    let low = c.fma(y, log.low, exponent.low);
    let power = exp_of_pair(c, Pair { high: exponent.high, low });
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
    (c.select(is_unit, one, magnitude), ordinary)
}

/// `x^y` as C defines it: `1^y` and `x^0` are 1 for NaN, too.
pub(super) fn pow(b: &mut Builder, x: Value, y: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let abs = c.abs(x);
    let (zero, one, nan) = (c.k(0.0), c.k(1.0), c.k(f64::NAN));
    let by_table = c.has_tables() && !c.is_wide();
    let magnitude = if by_table { magnitude_by_table } else { magnitude_by_quotient };
    let (magnitude, ordinary) = magnitude(c, abs, y);
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
    let root = c.both(root, ordinary);
    let mut result = c.select(root, nan, result);
    if !by_table {
        for number in [x, y] {
            let ordered = c.cmp(Cmp::Eq, number, number);
            result = c.select(ordered, result, nan);
        }
    }
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
