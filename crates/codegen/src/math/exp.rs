//! Recipes of the exponential and of functions made of it.
//!
//! With `n` the integer nearest to `x / ln 2` and `r = x - n ln 2`, `e^x = 2^n e^r`, where `|r|` is
//! at most `ln 2 / 2` and `e^r - 1 = r + r² Q(r)`.

use super::calc::Calc;
use super::table;
use crate::kernel::{BinOp, Builder, Cmp, Lane, UnOp, Value};

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

/// `n` and `r`.
struct Reduced {
    /// What has `n` in its low bits.
    shifted: Value,
    n: Value,
    r: Value,
}

impl Reduced {
    /// `Q(r)`
    fn q(&self, c: &mut Calc<'_>) -> Value {
        c.poly(self.r, c.either(Q32, Q64))
    }

    /// `e^r - 1`, accurate relative to itself.
    fn less_one(&self, c: &mut Calc<'_>) -> Value {
        let q = self.q(c);
        let square = c.mul(self.r, self.r);
        c.fma(q, square, self.r)
    }

    /// `e^r`
    fn power(&self, c: &mut Calc<'_>) -> Value {
        let (one, q) = (c.k(1.0), self.q(c));
        let slope = c.fma(q, self.r, one);
        c.fma(slope, self.r, one)
    }

    /// `x 2^n`, for an `n` that [`BinOp::Scale`] takes.
    fn scaled(&self, c: &mut Calc<'_>, x: Value) -> Value {
        if c.has_tables() {
            return c.b.bin(BinOp::Scale, x, self.n);
        }
        // By two factors whose exponents add up to n.
        let bits = c.bits(self.shifted);
        let half = c.int_k(BinOp::ShrL, bits, 1);
        let rest = c.b.sub(bits, half);
        [half, rest].into_iter().fold(x, |product, exponent| {
            let factor = power_by_bits(c, exponent, 1.0);
            c.mul(product, factor)
        })
    }
}

/// `k 2^n` where the low bits of an integer are `n`, the exponent of a normal number after that of `k`.
fn power_by_bits(c: &mut Calc<'_>, n: Value, k: f64) -> Value {
    let exponent = c.int_k(BinOp::Shl, n, c.mantissa().into());
    let k = c.either(i64::from((k as f32).to_bits()), k.to_bits() as i64);
    let bits = c.int_k(BinOp::Add, exponent, k);
    c.of_bits(bits)
}

/// For `x` whose `n` is an exponent that [`BinOp::Scale`] takes.
fn reduce(c: &mut Calc<'_>, x: Value) -> Reduced {
    let rounder = c.k(c.rounder());
    reduce_by(c, x, rounder)
}

/// The same where what is added to round a number to `n` is `rounder`.
fn reduce_by(c: &mut Calc<'_>, x: Value, rounder: Value) -> Reduced {
    let Reduced { shifted, n, r } = reduce_roughly_by(c, x, rounder);
    // What ln 2 has beyond the digits of a float.
    let low = c.either(-1.904_654_299_957_768e-9, 2.319_046_813_846_299_6e-17);
    let r = c.fma_k(n, -low, r);
    Reduced { shifted, n, r }
}

/// The same with ln 2 rounded.
fn reduce_roughly(c: &mut Calc<'_>, x: Value) -> Reduced {
    let rounder = c.k(c.rounder());
    reduce_roughly_by(c, x, rounder)
}

fn reduce_roughly_by(c: &mut Calc<'_>, x: Value, rounder: Value) -> Reduced {
    let shifted = c.fma_k(x, std::f64::consts::LOG2_E, rounder);
    let n = c.sub(shifted, rounder);
    let ln_2 = c.either(f64::from(std::f32::consts::LN_2), std::f64::consts::LN_2);
    let r = c.fma_k(n, -ln_2, x);
    Reduced { shifted, n, r }
}

/// `e^x`
pub(super) fn exp(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    if has_table(c) {
        return exp_by_table(c, x, Exactness::Result);
    }
    // Beyond these the result is zero or infinite anyway.
    let x = c.at_least(x, c.either(-105.0, -746.0));
    let x = c.at_most(x, c.either(89.5, 710.0));
    exp_within(c, x)
}

/// Whether the exponential is that of [`exp_by_table`].
fn has_table(c: &Calc<'_>) -> bool {
    c.has_tables() && !c.is_wide()
}

/// Minimax for `(e^r - 1 - r) / r²` on ±0.0217; off by 2^-29 of `e^r`.
const NEAR32: [f64; 2] = [0.500_016_2, 0.166_667_7];

/// How near the nearest number a result has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// Off by at most 1 unit of the last place.
    Result,
    /// Off by little more than the half unit of rounding once: what is made of it may be off by twice as many of its own.
    Intermediate,
}

/// `e^x` in 32-bit lanes, by a table: with `n` the multiple of 1/16 nearest to `x / ln 2`, it is a power of two times one of
/// 16 numbers times `e^r`, where `|r|` is at most `ln 2 / 32`.
fn exp_by_table(c: &mut Calc<'_>, x: Value, exactness: Exactness) -> Value {
    let rounder = c.k(786_432.0);
    let Reduced { shifted, n, r } = reduce_by(c, x, rounder);
    // So it is already unless `x` is far out, where only `n` counts.
    let bound = c.k(0.022);
    let r = c.b.bin(BinOp::Within, r, bound);
    // The last four bits of the sum count sixteenths.
    let sixteenths = c.bits(shifted);
    let power = c.b.lookup(Lane::F32, power_table(|power| power as f32), sixteenths);
    let (one, by_r) = (c.k(1.0), c.mul(power, r));
    let near = c.poly(r, &NEAR32);
    let slope = c.fma(near, r, one);
    let power = match exactness {
        Exactness::Result => c.fma(slope, by_r, power),
        Exactness::Intermediate => {
            let left_out = power_table(|power| (power - f64::from(power as f32)) as f32);
            let low = c.b.lookup(Lane::F32, left_out, sixteenths);
            let rest = c.fma(slope, by_r, low);
            c.add(power, rest)
        }
    };
    c.b.bin(BinOp::Scale, power, n)
}

/// Something of the powers `2^(j/16)`, in the order in which [`Builder::lookup`] has them: those of `j` from 8 on first.
fn power_table(of: impl Fn(f64) -> f32) -> [u32; 16] {
    std::array::from_fn(|i| of((((i + 8) % 16) as f64 / 16.0).exp2()).to_bits())
}

/// `e^x` for `x` whose power of two is within the bounds of [`BinOp::Scale`].
pub(super) fn exp_within(c: &mut Calc<'_>, x: Value) -> Value {
    if has_table(c) {
        return exp_by_table(c, x, Exactness::Result);
    }
    let reduced = reduce(c, x);
    let power = reduced.power(c);
    reduced.scaled(c, power)
}

/// `e^(x + low)`, `low` being small, for `x` as in [`exp_within`].
pub(super) fn exp_of_sum(c: &mut Calc<'_>, x: Value, low: Value) -> Value {
    // `r` is less than `x`, so that it has room for the low part.
    let mut reduced = reduce(c, x);
    reduced.r = c.add(reduced.r, low);
    let power = reduced.power(c);
    reduced.scaled(c, power)
}

/// Three factors of `e^x` that are ordinary numbers wherever `e^x` times a float of at most 1 may be
/// one.
pub(super) fn exp_in_factors(c: &mut Calc<'_>, x: Value) -> [Value; 3] {
    let bounded = bounded_for_factors(c, x);
    let reduced = reduce(c, bounded);
    factors(c, &reduced)
}

/// The same for `e^(x + low)`, `low` being small; where `x` is far out, it may be anything.
pub(super) fn exp_of_sum_in_factors(c: &mut Calc<'_>, x: Value, low: Value) -> [Value; 3] {
    let bounded = bounded_for_factors(c, x);
    let (within, zero) = (c.cmp(Cmp::Eq, bounded, x), c.k(0.0));
    let low = c.select(within, low, zero);
    let mut reduced = reduce(c, bounded);
    reduced.r = c.add(reduced.r, low);
    factors(c, &reduced)
}

/// `x`, or where factors are 0 or infinite in any case, what makes them so.
fn bounded_for_factors(c: &mut Calc<'_>, x: Value) -> Value {
    let bounded = c.at_least(x, c.either(-110.0, -750.0));
    c.at_most(bounded, c.either(195.0, 1460.0))
}

fn factors(c: &mut Calc<'_>, reduced: &Reduced) -> [Value; 3] {
    let power = reduced.power(c);
    let third = c.mul_k(reduced.n, 1.0 / 3.0);
    let third = c.b.un(UnOp::Floor, third);
    let rest = c.sub(reduced.n, third);
    let rest = c.sub(rest, third);
    let scale = power_of_two(c, third);
    [c.b.bin(BinOp::Scale, power, third), scale, power_of_two(c, rest)]
}

/// Minimax for `(2^r - 1) / r` on ±1/2; off by 2^-29 and 2^-58 of the power.
const EXP2_32: &[f64] = &[
    0.693_147_202_881_508_4,
    0.240_226_479_106_235_65,
    0.055_503_324_094_912_44,
    0.009_618_437_563_395_888,
    0.001_339_890_009_315_555_5,
    0.000_153_533_525_352_248_5,
];
const EXP2_64: &[f64] = &[
    std::f64::consts::LN_2,
    0.240_226_506_959_101_3,
    0.055_504_108_664_820_08,
    0.009_618_129_107_594_067,
    0.001_333_355_814_677_51,
    0.000_154_035_304_571_866_1,
    1.525_273_349_282_340_2e-05,
    1.321_543_524_205_914e-06,
    1.017_819_963_590_605_4e-07,
    7.073_790_634_852_487e-09,
    4.434_770_689_416_809_6e-10,
];

/// `2^(k x)`, of moderate size.
fn exp2_of_multiple(c: &mut Calc<'_>, x: Value, k: f64) -> Value {
    let rounder = c.k(c.rounder());
    let shifted = c.fma_k(x, k, rounder);
    let (n, minus_n) = (c.sub(shifted, rounder), c.sub(rounder, shifted));
    let r = c.fma_k(x, k, minus_n);
    exp2_of_sum(c, shifted, n, r)
}

/// `2^x`, of moderate size.
pub(super) fn exp2(c: &mut Calc<'_>, x: Value) -> Value {
    let rounder = c.k(c.rounder());
    let shifted = c.add(x, rounder);
    let n = c.sub(shifted, rounder);
    let r = c.sub(x, n);
    exp2_of_sum(c, shifted, n, r)
}

/// `2^(n + r)`; `shifted` has `n` in its low bits.
fn exp2_of_sum(c: &mut Calc<'_>, shifted: Value, n: Value, r: Value) -> Value {
    let one = c.k(1.0);
    let slope = c.poly(r, c.either(EXP2_32, EXP2_64));
    let power = c.fma(slope, r, one);
    if c.has_tables() {
        return c.b.bin(BinOp::Scale, power, n);
    }
    let bits = c.bits(shifted);
    let factor = power_by_bits(c, bits, 1.0);
    c.mul(power, factor)
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
    let less_one = reduced.less_one(c);
    let scale = if c.has_tables() {
        let before = c.add_k(reduced.n, -1.0);
        power_of_two(c, before)
    } else {
        let bits = c.bits(reduced.shifted);
        power_by_bits(c, bits, 0.5)
    };
    let whole = c.add_k(scale, -0.5);
    c.fma(scale, less_one, whole)
}

/// `1 / (1 + e^-x)`, as `e^x / (1 + e^x)` for negative `x`, so that the exponential does not
/// overflow.
pub(super) fn logistic(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, sign) = (c.abs(x), super::sign_bit(c.b, c.lane));
    let minus = c.b.bin(BinOp::Or, abs, sign);
    if has_table(c) {
        return logistic_by_estimate(c, x, minus);
    }
    let bounded = c.at_least(minus, c.either(-105.0, -746.0));
    let e = exp_within(c, bounded);
    let (one, denominator) = (c.k(1.0), c.add_k(e, 1.0));
    let positive = c.cmp_k(Cmp::Ge, x, 0.0);
    let numerator = c.select(positive, one, e);
    let quotient = c.div(numerator, denominator);
    // What rounding the denominator has added to it; over it, that is what the quotient lacks. The
    // quotient and its complement are 1 and e over the denominator, or the other way round.
    let kept = c.add_k(denominator, -1.0);
    let added = c.sub(kept, e);
    let complement = c.sub(one, quotient);
    let inverse = c.select(positive, quotient, complement);
    let missing = c.mul(added, inverse);
    c.fma(quotient, missing, quotient)
}

/// The same of `x` and `-|x|` in 32-bit lanes, with one step of Newton's for the inverse of `1 + e`: off by at most 1.5
/// units of the last place.
fn logistic_by_estimate(c: &mut Calc<'_>, x: Value, minus_abs: Value) -> Value {
    let e = exp_by_table(c, minus_abs, Exactness::Intermediate);
    let (one, denominator) = (c.k(1.0), c.add_k(e, 1.0));
    // Of 1, which the denominator is for most of what is below -17, it is exact: nothing is missing where `e` is so small
    // that a part of it is no number.
    let inverse = c.b.un(UnOp::Inverse, denominator);
    // What the inverse lacks of itself, by the denominator as it is before it is rounded.
    let left = c.sub(one, inverse);
    let missing = c.fnma(e, inverse, left);
    let positive = c.cmp_k(Cmp::Ge, x, 0.0);
    let numerator = c.select(positive, one, e);
    let quotient = c.product(numerator, inverse);
    let rest = c.fma(quotient.high, missing, quotient.low);
    c.add(quotient.high, rest)
}

/// Minimax for `(tanh x - x) / x³` in `x²`, `x` up to 0.55; off by 2^-60.
const TANH: &[f64] = &[
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

/// `e^x - 1` of `x` that is not positive, nor so far below zero that `e^x` is no normal number. (The farther
/// `x` is from zero, the less its power counts beside 1: ln 2 need have no more digits than a float.)
pub(super) fn expm1_within(c: &mut Calc<'_>, x: Value) -> Value {
    let reduced = reduce_roughly(c, x);
    let (less_one, bits) = (reduced.less_one(c), c.bits(reduced.shifted));
    let scale = power_by_bits(c, bits, 1.0);
    let whole = c.add_k(scale, -1.0);
    c.fma(scale, less_one, whole)
}

/// `-t / (t + 2)` of `t = e^-2|x| - 1`, with the sign of `x`, for 32-bit lanes; off by at most 2 units of
/// the last place.
fn tanh_by_quotient(c: &mut Calc<'_>, x: Value) -> Value {
    let (abs, signs) = (c.abs(x), c.sign(x));
    // Beyond, it rounds to 1.
    let bounded = c.at_most(abs, 9.1);
    let power = c.mul_k(bounded, -2.0);
    let t = expm1_within(c, power);
    let minus_two = c.k(-2.0);
    let denominator = c.sub(minus_two, t);
    let quotient = c.div(t, denominator);
    // What the quotient lacks is what it leaves of t, and what rounding has taken from the denominator,
    // over the denominator; the inverse of that is near half of the quotient's distance from -1.
    let kept = c.sub(minus_two, denominator);
    let taken = c.sub(t, kept);
    let left = c.fnma(quotient, denominator, t);
    let left = c.fma(quotient, taken, left);
    let minus_half = c.k(-0.5);
    let inverse = c.fma(quotient, minus_half, minus_half);
    let result = c.fma(left, inverse, quotient);
    c.or_sign(result, signs)
}

/// In 32-bit lanes from a table or by one quotient. In 64-bit lanes a polynomial near zero; further out
/// `1 - 2 / (e^2|x| + 1)` with the sign of `x`.
pub(super) fn tanh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    if !c.is_wide() {
        return if c.has_tables() { table::TANH.apply(c, x) } else { tanh_by_quotient(c, x) };
    }
    let (abs, signs) = (c.abs(x), c.sign(x));
    let near = c.odd(x, TANH);
    // Beyond, it rounds to 1.
    let bounded = c.at_most(abs, 20.0);
    let power = exp2_of_multiple(c, bounded, 2.0 * std::f64::consts::LOG2_E);
    let denominator = c.add_k(power, 1.0);
    let minus_two = c.k(-2.0);
    let less = c.div(minus_two, denominator);
    let far = c.add_k(less, 1.0);
    let far = c.or_sign(far, signs);
    let is_near = c.cmp_k(Cmp::Lt, abs, 0.55);
    c.select(is_near, near, far)
}

/// Minimax for `(sinh x - x) / x³` in `x²`, `x` up to 1; off by 2^-34 and 2^-63.
const SINH32: &[f64] = &[
    0.166_666_664_975_607_5,
    0.008_333_350_058_147_258,
    0.000_198_361_597_864_505_66,
    2.816_951_164_245_181e-06,
];
const SINH64: &[f64] = &[
    0.166_666_666_666_666_69,
    0.008_333_333_333_333_148,
    0.000_198_412_698_414_318_67,
    2.755_731_915_707_381_3e-06,
    2.505_212_313_641_886e-08,
    1.605_725_979_217_501e-10,
    7.758_748_099_117_297e-13,
];

/// A polynomial near zero; further out `h - 1 / 4h` of `h = e^|x| / 2`, with the sign of `x`.
pub(super) fn sinh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let near = c.odd(x, c.either(SINH32, SINH64));
    let (half, quarter) = half_power(c, abs);
    let far = c.sub(half, quarter);
    let far = c.or_sign(far, signs);
    let is_near = c.cmp_k(Cmp::Lt, abs, 1.0);
    c.select(is_near, near, far)
}

/// `h = e^x / 2`, which does not overflow before it must, and `1 / 4h`.
fn half_power(c: &mut Calc<'_>, x: Value) -> (Value, Value) {
    let bounded = c.at_most(x, c.either(90.0, 711.0));
    let reduced = reduce(c, bounded);
    let power = reduced.power(c);
    let before = c.add_k(reduced.n, -1.0);
    let half = c.b.bin(BinOp::Scale, power, before);
    let quarter = c.k(0.25);
    (half, c.div(quarter, half))
}

/// `h + 1 / 4h` of `h = e^|x| / 2`.
pub(super) fn cosh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let abs = c.abs(x);
    let (half, quarter) = half_power(c, abs);
    c.add(half, quarter)
}
