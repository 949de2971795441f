//! Logarithms.
//!
//! With `x = 2^e m`, `m` from 3/4 to 3/2 and `f = m - 1`, `ln x = e ln 2 + ln(1 + f)`. For `F32` the second term is
//! `f - f²/2 + f³ P(f)`; for `F64`, where that takes too many coefficients, it is found from `s = f / (2 + f)` as
//! `2 atanh s`.

use super::calc::Calc;
use crate::kernel::{BinOp, Builder, Cmp, Conv, UnOp, Value};

/// Minimax for `(ln(1 + f) - f + f²/2) / f³` on [-1/4, 1/2]; off by 2^-27 of the logarithm.
const P32: &[f64] = &[
    0.333_334_491_136_871_5,
    -0.250_000_958_438_164_83,
    0.199_908_611_937_913_6,
    -0.166_473_120_398_296_65,
    0.144_783_950_896_924_17,
    -0.131_611_950_952_651_55,
    0.104_630_254_941_865_37,
    -0.045_074_824_923_296_19,
];

/// Minimax for `(2 atanh s - 2s) / s³` in `s²`, `|s|` up to 1/5; off by 2^-62.
const P64: &[f64] = &[
    0.666_666_666_666_666,
    0.400_000_000_000_559_8,
    0.285_714_285_559_979_5,
    0.222_222_242_772_369_52,
    0.181_816_670_270_405,
    0.153_910_744_209_336_9,
    0.131_742_285_757_863_84,
    0.138_387_908_410_783_08,
];

/// `e`, as a float, and `m`, of any number: where there are instructions for them, of zero, infinity, and what has no
/// logarithm, those of which [`log_of_parts`] makes what the logarithm is.
pub(super) fn parts(c: &mut Calc<'_>, x: Value) -> (Value, Value) {
    let m = c.b.un(UnOp::Mantissa, x);
    let exponent = c.b.un(UnOp::Exponent, x);
    let exponent_of_m = c.b.un(UnOp::Exponent, m);
    (c.sub(exponent, exponent_of_m), m)
}

/// Cuts `2^e m` from the bits of a positive normal number: `e` in the exponent's place (an integer
/// multiple of its unit).
fn exponent_bits(c: &mut Calc<'_>, x: Value) -> Value {
    let start = c.either(0x3f40_0000, 0x3fe8_0000_0000_0000);
    let mantissa = c.mantissa();
    let bits = c.bits(x);
    let from_start = c.int_k(BinOp::Sub, bits, start);
    c.int_k(BinOp::And, from_start, -1 << mantissa)
}

/// `e` as a float.
fn exponent(c: &mut Calc<'_>, e_bits: Value) -> Value {
    let mantissa = c.mantissa();
    let e = c.int_k(BinOp::ShrA, e_bits, mantissa.into());
    c.b.convert(Conv::Value, c.lane, e)
}

/// `e ln 2 + ln(1 + f)`
pub(super) fn log_of_parts(c: &mut Calc<'_>, e: Value, f: Value) -> Value {
    // The high part ends in zero bits, so that its products with exponents are exact.
    let high = c.either(0.693_145_751_953_125, 0.693_147_180_369_123_8);
    let low = c.either(1.428_606_820_309_417_2e-6, 1.908_214_929_270_587_7e-10);
    if !c.is_wide() {
        let p = c.poly(f, P32);
        let minus_half = c.k(-0.5);
        let t = c.fma(p, f, minus_half);
        let square = c.mul(f, f);
        let rest = c.mul(t, square);
        let rest = c.fma_k(e, low, rest);
        let sum = c.add(f, rest);
        return c.fma_k(e, high, sum);
    }
    let two_and_f = c.add_k(f, 2.0);
    let s = c.div(f, two_and_f);
    let z = c.mul(s, s);
    let p = c.poly(z, P64);
    let r = c.mul(z, p);
    let half = c.mul_k(f, 0.5);
    let half_square = c.mul(half, f);
    // f - (f²/2 - s (f²/2 + r)): f² is small where f is.
    let sum = c.add(half_square, r);
    let low_part = c.mul_k(e, low);
    let inner = c.fma(s, sum, low_part);
    let inner = c.sub(half_square, inner);
    let log = c.sub(f, inner);
    c.fma_k(e, high, log)
}

/// `result` where `x` is positive and finite; else what the logarithm of `x` is.
fn special(c: &mut Calc<'_>, x: Value, result: Value) -> Value {
    let (infinity, nan) = (c.k(f64::NEG_INFINITY), c.k(f64::NAN));
    let finite = c.cmp_k(Cmp::Lt, x, f64::INFINITY);
    let result = c.select(finite, result, x);
    let zero = c.cmp_k(Cmp::Eq, x, 0.0);
    let outside = c.select(zero, infinity, nan);
    let positive = c.cmp_k(Cmp::Gt, x, 0.0);
    c.select(positive, result, outside)
}

/// `ln x`
pub(super) fn log(b: &mut Builder, x: Value) -> Value {
    log_of_multiple(&mut Calc::new(b, x), x, 0.0)
}

/// `ln(2^power x)`
pub(super) fn log_of_multiple(c: &mut Calc<'_>, x: Value, power: f64) -> Value {
    if c.has_tables() {
        let (e, m) = parts(c, x);
        let f = c.add_k(m, -1.0);
        let e = if power == 0.0 { e } else { c.add_k(e, power) };
        return log_of_parts(c, e, f);
    }
    let (least, up) = c.either((2f64.powi(-126), 23), (2f64.powi(-1022), 52));
    let subnormal = c.cmp_k(Cmp::Lt, x, least);
    let scaled = c.mul_k(x, 2f64.powi(up));
    let normal = c.select(subnormal, scaled, x);
    let e_bits = exponent_bits(c, normal);
    let bits = c.bits(normal);
    let m = c.b.sub(bits, e_bits);
    let m = c.of_bits(m);
    let f = c.add_k(m, -1.0);
    let e = exponent(c, e_bits);
    let (plain, down) = (c.k(power), c.k(power - f64::from(up)));
    let moved = c.select(subnormal, down, plain);
    let e = c.add(e, moved);
    let result = log_of_parts(c, e, f);
    special(c, x, result)
}

/// `ln(x power)`, where `power` is a power of two with a normal exponent and `x` from 1/2 to 4, or
/// not ordinary.
pub(super) fn log_of_product(c: &mut Calc<'_>, x: Value, power: Value) -> Value {
    if c.has_tables() {
        let (e, m) = parts(c, x);
        let f = c.add_k(m, -1.0);
        let power = c.b.un(UnOp::Exponent, power);
        let e = c.add(e, power);
        return log_of_parts(c, e, f);
    }
    let e_bits = exponent_bits(c, x);
    let bits = c.bits(x);
    let m = c.b.sub(bits, e_bits);
    let m = c.of_bits(m);
    let f = c.add_k(m, -1.0);
    let e = exponent(c, e_bits);
    let (mantissa, bias) = (c.mantissa(), c.either(-127.0, -1023.0));
    let power = c.bits(power);
    let exponent = c.int_k(BinOp::ShrL, power, mantissa.into());
    let exponent = c.b.convert(Conv::Value, c.lane, exponent);
    let exponent = c.add_k(exponent, bias);
    let e = c.add(e, exponent);
    let result = log_of_parts(c, e, f);
    special(c, x, result)
}

/// `ln(1 + x)`
pub(super) fn log1p(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let zero = c.k(0.0);
    log1p_sum(c, x, zero)
}

/// `ln(1 + x + rest)`, where `rest` is small against `x`: the power of two is that of the rounded
/// `1 + x`, but `f = 2^-e (1 + x) - 1` is rounded once.
pub(super) fn log1p_sum(c: &mut Calc<'_>, x: Value, rest: Value) -> Value {
    let one_more = c.add_k(x, 1.0);
    let e_bits = exponent_bits(c, one_more);
    let e = exponent(c, e_bits);
    let (one, minus_e) = (c.k(1.0), c.neg(e));
    let scale = c.b.bin(BinOp::Scale, one, minus_e);
    let less_one = c.add_k(scale, -1.0);
    // Not `x scale`, which is the same unless `scale` is subnormal and taken for zero.
    let moved = c.b.bin(BinOp::Scale, x, minus_e);
    let f = c.add(moved, less_one);
    let f = c.fma(rest, scale, f);
    let result = log_of_parts(c, e, f);
    let result = special(c, one_more, result);
    // The logarithm has the sign of `x`; the sums above lose that of zero.
    let signs = c.sign(x);
    c.or_sign(result, signs)
}
