//! The recipe of `power` on complex numbers.

use super::super::calc::{Calc, Pair};
use super::super::{exp, pow, trig};
use super::{ComplexParts, exp_of_factors, is_infinite, magnitude, scaled};
use crate::kernel::{BinOp, Builder, Cmp, Conv, Value};

/// `x^y`: the magnitude `e^(y.re ln |x| - y.im arg x)` at the angle `y.re arg x + y.im ln |x|`.
///
/// The logarithms and what they are multiplied to are carried as sums of two floats, as for powers of
/// real numbers; the angle is not, so that the result is about `|y arg x|` units off.
pub(crate) fn power(b: &mut Builder, x: ComplexParts, y: ComplexParts) -> ComplexParts {
    let angle = trig::atan2(b, x.1, x.0);
    let c = &mut Calc::new(b, x.0);
    let log = log_abs(c, x);
    // An exponent that is real takes none of the other products, which may be infinite.
    let (zero, one, nan) = (c.k(0.0), c.k(1.0), c.k(f64::NAN));
    let real = c.cmp(Cmp::Eq, y.1, zero);
    let [turned, high, low] = [angle, log.high, log.low].map(|part| c.select(real, zero, part));
    let kept = c.product(y.0, log.high);
    let kept_low = c.fma(y.0, log.low, kept.low);
    let lost = c.product(y.1, turned);
    let minus = c.neg(lost.high);
    let (exponent, error) = c.two_sum(kept.high, minus);
    let rest = c.sub(kept_low, lost.low);
    let rest = c.add(error, rest);
    let turn = c.mul(y.1, low);
    let turn = c.fma(y.0, angle, turn);
    let turn = c.fma(y.1, high, turn);
    let factors = exp::exp_of_sum_in_factors(c, exponent, rest);
    let power = exp_of_factors(c, (exponent, turn), factors);

    let mut result = power;
    let mut choose = |c: &mut Calc<'_>, mask: Value, (re, im): ComplexParts| {
        result = (c.select(mask, re, result.0), c.select(mask, im, result.1));
    };
    // An infinite exponent leaves no angle, but on the positive real axis at infinity.
    let (x_im_zero, positive) = (c.cmp(Cmp::Eq, x.1, zero), c.cmp(Cmp::Gt, y.0, zero));
    let y_abs = c.abs(y.0);
    let far = c.cmp_k(Cmp::Eq, y_abs, f64::INFINITY);
    let far = c.both(real, far);
    choose(c, far, (nan, nan));
    let infinity = c.k(f64::INFINITY);
    let at_infinity = c.cmp(Cmp::Eq, x.0, infinity);
    let at_infinity = c.both(at_infinity, x_im_zero);
    let at_infinity = c.both(at_infinity, far);
    let limit = c.select(positive, infinity, zero);
    choose(c, at_infinity, (limit, zero));
    // Zero has no angle, but a magnitude.
    let at_zero = c.cmp(Cmp::Eq, x.0, zero);
    let at_zero = c.both(at_zero, x_im_zero);
    let of_zero = c.select(positive, zero, nan);
    choose(c, at_zero, (of_zero, of_zero));
    // 1^y and x^0 are 1, whatever the other is.
    let at_one = c.cmp(Cmp::Eq, x.0, one);
    let at_one = c.both(at_one, x_im_zero);
    choose(c, at_one, (one, zero));
    let no_power = c.cmp(Cmp::Eq, y.0, zero);
    let no_power = c.both(no_power, real);
    choose(c, no_power, (one, zero));
    result
}

/// `ln |x|` of a number other than zero.
fn log_abs(c: &mut Calc<'_>, x: ComplexParts) -> Pair {
    let s = scaled(c, x);
    let near = magnitude(c, s.re, s.im);
    let infinite = is_infinite(c, x);
    let infinity = c.k(f64::INFINITY);
    let near = c.select(infinite, infinity, near);
    let exponent = c.int_k(BinOp::ShrA, s.exponent, c.mantissa().into());
    let exponent = c.int_k(BinOp::Sub, exponent, c.either(127, 1023));
    let exponent = c.b.convert(Conv::Value, c.lane, exponent);
    let log = pow::log_scaled(c, near, exponent);
    let (ordinary, zero) = (c.cmp(Cmp::Lt, near, infinity), c.k(0.0));
    Pair { high: c.select(ordinary, log.high, near), low: c.select(ordinary, log.low, zero) }
}
