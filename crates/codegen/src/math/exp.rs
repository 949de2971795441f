//! The exponential and its kin.
//!
//! With `n` the integer nearest to `x / ln 2` and `r = x - n ln 2`, `e^x = 2^n e^r`, where `|r|` is
//! at most `ln 2 / 2` and `e^r - 1 = r + r² Q(r)`.

use super::calc::Calc;
use crate::kernel::{BinOp, Builder, Cmp, UnOp, Value};

/// Minimax for `(e^r - 1 - r) / r²` on ±0.3467; relative to `e^r` off by 2^-28 and, for `F64`,
/// relative to `e^r - 1` by 2^-61.
const Q32: &[f64] = &[
    0.499_999_934_450_220_95,
    0.166_665_205_207_309_3,
    0.041_668_388_318_938_9,
    0.008_368_730_304_874_958,
    0.001_381_462_408_205_206_4,
];
const Q64: &[f64] = &[
    0.5,
    0.166_666_666_666_666_77,
    0.041_666_666_666_666_51,
    0.008_333_333_333_321_674,
    0.001_388_888_888_896_245,
    0.000_198_412_698_860_159_33,
    2.480_158_717_243_600_4e-5,
    2.755_724_431_821_733_7e-6,
    2.755_740_268_346_074_7e-7,
    2.510_900_016_368_541_8e-8,
    2.087_533_233_161_315_4e-9,
];

/// `n`, and `e^r - 1` as `r` and `r² Q(r)`.
struct Reduced {
    n: Value,
    r: Value,
    rest: Value,
}

impl Reduced {
    /// `e^r - 1`
    fn less_one(&self, c: &mut Calc<'_>) -> Value {
        c.add(self.r, self.rest)
    }

    /// `e^r`
    fn power(&self, c: &mut Calc<'_>) -> Value {
        let less_one = self.less_one(c);
        c.add_k(less_one, 1.0)
    }
}

/// For `x` whose `n` is an exponent that [`BinOp::Scale`] takes.
fn reduce(c: &mut Calc<'_>, x: Value) -> Reduced {
    let rounder = c.k(c.rounder());
    let shifted = c.fma_k(x, std::f64::consts::LOG2_E, rounder);
    let n = c.sub(shifted, rounder);
    reduce_by(c, x, n)
}

fn reduce_by(c: &mut Calc<'_>, x: Value, n: Value) -> Reduced {
    // The high part is ln 2 rounded, the low part what that leaves out.
    let high = c.either(f64::from(std::f32::consts::LN_2), std::f64::consts::LN_2);
    let low = c.either(-1.904_654_299_957_768e-9, 2.319_046_813_846_299_6e-17);
    let r = c.fma_k(n, -high, x);
    let r = c.fma_k(n, -low, r);
    let q = c.poly(r, c.either(Q32, Q64));
    let square = c.mul(r, r);
    let rest = c.mul(q, square);
    Reduced { n, r, rest }
}

/// `e^x`
pub(super) fn exp(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    // Beyond these the result is zero or infinite anyway.
    let x = c.at_least(x, c.either(-105.0, -746.0));
    let x = c.at_most(x, c.either(89.5, 710.0));
    exp_within(c, x)
}

/// `e^x` for `x` whose power of two is within the bounds of [`BinOp::Scale`].
pub(super) fn exp_within(c: &mut Calc<'_>, x: Value) -> Value {
    let reduced = reduce(c, x);
    let power = reduced.power(c);
    c.b.bin(BinOp::Scale, power, reduced.n)
}

/// `e^(x + low)`, `low` being small, for `x` as in [`exp_within`].
pub(super) fn exp_of_sum(c: &mut Calc<'_>, x: Value, low: Value) -> Value {
    let mut reduced = reduce(c, x);
    // e^(r + low) - 1 is near e^r - 1 + low e^r.
    let power = reduced.power(c);
    reduced.rest = c.fma(low, power, reduced.rest);
    let power = reduced.power(c);
    c.b.bin(BinOp::Scale, power, reduced.n)
}

/// Three factors of `e^x` that are ordinary numbers wherever `e^x` times a float of at most 1 may be
/// one.
pub(super) fn exp_in_factors(c: &mut Calc<'_>, x: Value) -> [Value; 3] {
    let bounded = c.at_least(x, c.either(-110.0, -750.0));
    let bounded = c.at_most(bounded, c.either(195.0, 1460.0));
    let reduced = reduce(c, bounded);
    let power = reduced.power(c);
    let third = c.mul_k(reduced.n, 1.0 / 3.0);
    let third = c.b.un(UnOp::Floor, third);
    let rest = c.sub(reduced.n, third);
    let rest = c.sub(rest, third);
    let scale = power_of_two(c, third);
    [c.b.bin(BinOp::Scale, power, third), scale, power_of_two(c, rest)]
}

/// `2^n` for integers that are exponents of normal numbers.
fn power_of_two(c: &mut Calc<'_>, n: Value) -> Value {
    let one = c.k(1.0);
    c.b.bin(BinOp::Scale, one, n)
}

/// `e^x - 1`: half of it is `2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)`, whose last term is exact unless
/// it is much greater than the first.
pub(super) fn expm1(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    // At these it is -1 and infinite.
    let bounded = c.at_least(x, c.either(-20.0, -40.0));
    let bounded = c.at_most(bounded, c.either(88.8, 709.9));
    let half = half_expm1(c, bounded);
    let result = c.add(half, half);
    itself_if_tiny(c, x, result)
}

/// `x` where it is so small that a function with slope 1 at zero gives it back: sums lose the sign
/// of zero, and halves of subnormal numbers their last bit.
fn itself_if_tiny(c: &mut Calc<'_>, x: Value, result: Value) -> Value {
    let abs = c.abs(x);
    let tiny = c.cmp_k(Cmp::Lt, abs, 1e-30);
    c.select(tiny, x, result)
}

/// `(e^x - 1) / 2` for bounded `x`.
fn half_expm1(c: &mut Calc<'_>, x: Value) -> Value {
    let reduced = reduce(c, x);
    half_expm1_of(c, &reduced)
}

fn half_expm1_of(c: &mut Calc<'_>, reduced: &Reduced) -> Value {
    let less_one = reduced.less_one(c);
    let before = c.add_k(reduced.n, -1.0);
    let scale = power_of_two(c, before);
    let whole = c.add_k(scale, -0.5);
    c.fma(scale, less_one, whole)
}

/// `1 / (1 + e^-x)`, as `e^x / (1 + e^x)` for negative `x`, so that the exponential does not
/// overflow.
pub(super) fn logistic(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, sign) = (c.abs(x), super::sign_bit(c.b, c.lane));
    let minus = c.b.bin(BinOp::Or, abs, sign);
    let bounded = c.at_least(minus, c.either(-105.0, -746.0));
    let e = exp_within(c, bounded);
    let (one, denominator) = (c.k(1.0), c.add_k(e, 1.0));
    let positive = c.cmp_k(Cmp::Ge, x, 0.0);
    let numerator = c.select(positive, one, e);
    c.div(numerator, denominator)
}

/// Minimax for `(tanh x - x) / x³` in `x²`, `x` up to 0.55; off by 2^-29 and 2^-60.
const TANH32: &[f64] = &[
    -0.333_333_172_907_539_3,
    0.133_325_761_164_934_25,
    -0.053_851_171_831_949_98,
    0.021_066_662_213_793_115,
    -0.006_266_706_616_288_413,
];
const TANH64: &[f64] = &[
    -0.333_333_333_333_333,
    0.133_333_333_333_263_9,
    -0.053_968_253_963_622_814,
    0.021_869_488_381_802_984,
    -0.008_863_232_533_251_731,
    0.003_592_091_323_614_75,
    -0.001_455_538_178_675_492_5,
    0.000_588_424_809_992_460_7,
    -0.000_233_330_301_351_267_4,
    8.324_126_464_778_682e-5,
    -1.944_723_017_619_857_2e-5,
];

/// A polynomial near zero; further out `1 - 2 / (e^2|x| + 1)` with the sign of `x`.
pub(super) fn tanh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let near = c.odd(x, c.either(TANH32, TANH64));
    // Beyond, it rounds to 1.
    let bounded = c.at_most(abs, c.either(10.0, 20.0));
    let twice = c.add(bounded, bounded);
    let power = exp_within(c, twice);
    let denominator = c.add_k(power, 1.0);
    let minus_two = c.k(-2.0);
    let less = c.div(minus_two, denominator);
    let far = c.add_k(less, 1.0);
    let far = c.or_sign(far, signs);
    let is_near = c.cmp_k(Cmp::Lt, abs, 0.55);
    c.select(is_near, near, far)
}

/// `h + h / (2h + 1)` of `h = (e^|x| - 1) / 2`, with the sign of `x`.
pub(super) fn sinh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let bounded = c.at_most(abs, c.either(90.0, 711.0));
    let reduced = reduce(c, bounded);
    let half = half_expm1_of(c, &reduced);
    // The sum overflows a little before the result does; for large ones it is e^|x| / 2.
    let power = reduced.power(c);
    let before = c.add_k(reduced.n, -1.0);
    let half_power = c.b.bin(BinOp::Scale, power, before);
    let is_large = c.cmp_k(Cmp::Gt, bounded, 40.0);
    let half = c.select(is_large, half_power, half);
    // For large ones the quotient does not matter, but it must not be one of infinities.
    let finite = c.at_most(half, 1e30);
    let twice = c.add(finite, finite);
    let denominator = c.add_k(twice, 1.0);
    let quotient = c.div(finite, denominator);
    let result = c.add(half, quotient);
    let result = c.or_sign(result, signs);
    itself_if_tiny(c, x, result)
}

/// `h + 1 / 4h` of `h = e^|x| / 2`.
pub(super) fn cosh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let abs = c.abs(x);
    let bounded = c.at_most(abs, c.either(90.0, 711.0));
    let reduced = reduce(c, bounded);
    let power = reduced.power(c);
    let before = c.add_k(reduced.n, -1.0);
    let half = c.b.bin(BinOp::Scale, power, before);
    let quarter = c.k(0.25);
    let quotient = c.div(quarter, half);
    c.add(half, quotient)
}
