//! Functions of complex numbers, given as real and imaginary parts.
//!
//! Squares of parts overflow and underflow where the result does not, so numbers are scaled by the
//! power of two of their larger part first. Limits are those of C99 Annex G.

mod angle;
mod inverse;
mod power;
mod waves;

pub(crate) use angle::atan2;
pub(crate) use inverse::{acos, acosh, asin, asinh, atan, atanh};
pub(crate) use power::power;
pub(crate) use waves::{cos, cosh, expm1, log1p, logistic, sin, sinh, tan, tanh};

use super::calc::{Calc, Pair};
use super::{exp, log, trig};
use crate::kernel::{BinOp, Builder, Cmp, MaskOp, Value};

/// Real and imaginary parts.
pub(crate) type ComplexParts = (Value, Value);

/// A complex number as one near 1 times a power of two.
struct Scaled {
    re: Value,
    im: Value,
    /// The power of two.
    power: Value,
    /// Its exponent with the bias, in the exponent's place.
    exponent: Value,
}

fn scaled(c: &mut Calc<'_>, z: ComplexParts) -> Scaled {
    scaled_by(c, z, false)
}

/// The power of two is bounded, so that both it and its reciprocal are ordinary numbers; an even one
/// has an exact square root.
fn scaled_by(c: &mut Calc<'_>, z: ComplexParts, even: bool) -> Scaled {
    let (re, im) = (c.abs(z.0), c.abs(z.1));
    // Of a NaN and a number either may come out: the result is NaN in any case.
    let larger = c.b.bin(BinOp::Max, re, im);
    let (exponent, inverse) = exponent_of(c, larger, even);
    let (power, inverse) = (c.of_bits(exponent), c.of_bits(inverse));
    Scaled { re: c.mul(z.0, inverse), im: c.mul(z.1, inverse), power, exponent }
}

/// The bits of the power of two of a number that is not negative, and of its reciprocal.
fn exponent_of(c: &mut Calc<'_>, x: Value, even: bool) -> (Value, Value) {
    let mantissa = i64::from(c.mantissa());
    let bias = c.either(127, 1023);
    let most = c.either(100, 900);
    let bits = c.bits(x);
    let mut exponent = c.int_k(BinOp::And, bits, -1 << mantissa);
    if even {
        // The bias is odd.
        exponent = c.int_k(BinOp::Or, exponent, 1 << mantissa);
    }
    let exponent = c.int_k(BinOp::Max, exponent, (bias - most) << mantissa);
    let exponent = c.int_k(BinOp::Min, exponent, (bias + most) << mantissa);
    let twice_bias = c.int((2 * bias) << mantissa);
    (exponent, c.b.sub(twice_bias, exponent))
}

/// The magnitude of a scaled number.
fn magnitude(c: &mut Calc<'_>, re: Value, im: Value) -> Value {
    let square = c.mul(im, im);
    let sum = c.fma(re, re, square);
    c.sqrt(sum)
}

/// Whether a part is infinite.
fn is_infinite(c: &mut Calc<'_>, z: ComplexParts) -> Value {
    let (re, im) = (c.abs(z.0), c.abs(z.1));
    let re = c.cmp_k(Cmp::Eq, re, f64::INFINITY);
    let im = c.cmp_k(Cmp::Eq, im, f64::INFINITY);
    c.b.mask_op(MaskOp::Or, re, im)
}

fn is_finite(c: &mut Calc<'_>, z: ComplexParts) -> Value {
    let (re, im) = (c.abs(z.0), c.abs(z.1));
    let re = c.cmp_k(Cmp::Lt, re, f64::INFINITY);
    let im = c.cmp_k(Cmp::Lt, im, f64::INFINITY);
    c.both(re, im)
}

/// `|z|`; infinite if a part is, even if the other is NaN.
pub(crate) fn abs(b: &mut Builder, z: ComplexParts) -> Value {
    let c = &mut Calc::new(b, z.0);
    let s = scaled(c, z);
    let near = magnitude(c, s.re, s.im);
    let abs = c.mul(near, s.power);
    let infinite = is_infinite(c, z);
    let infinity = c.k(f64::INFINITY);
    c.select(infinite, infinity, abs)
}

/// `z / |z|`; zero stays as it is.
pub(crate) fn sign(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let s = scaled(c, z);
    // Once more, for subnormal parts.
    let s = scaled(c, (s.re, s.im));
    let near = magnitude(c, s.re, s.im);
    let infinite = is_infinite(c, z);
    let infinity = c.k(f64::INFINITY);
    let near = c.select(infinite, infinity, near);
    let (re, im) = (c.div(s.re, near), c.div(s.im, near));
    let zero = c.cmp_k(Cmp::Eq, near, 0.0);
    // Parts that count as zero may be subnormal numbers.
    let (no_re, no_im) = (c.add(z.0, z.0), c.add(z.1, z.1));
    (c.select(zero, no_re, re), c.select(zero, no_im, im))
}

/// `a b + c d`, the error of a product kept (Kahan), but for infinite products, whose error is NaN.
fn sum_of_products(c: &mut Calc<'_>, [a, b]: [Value; 2], [p, q]: [Value; 2]) -> Value {
    let Pair { high, low } = c.product(p, q);
    let sum = c.fma(a, b, high);
    let exact = c.add(sum, low);
    let ordered = c.cmp(Cmp::Eq, exact, exact);
    c.select(ordered, exact, sum)
}

/// `x / y`
pub(crate) fn divide(b: &mut Builder, x: ComplexParts, y: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, x.0);
    if is_real(c, y) {
        return divide_by_real(c, x, y);
    }
    let (n, d) = (scaled(c, x), scaled(c, y));
    let square = c.mul(d.im, d.im);
    let norm = c.fma(d.re, d.re, square);
    let minus_im = c.neg(d.im);
    let re = sum_of_products(c, [n.re, d.re], [n.im, d.im]);
    let im = sum_of_products(c, [n.im, d.re], [n.re, minus_im]);
    let (re, im) = (c.div(re, norm), c.div(im, norm));
    // The quotient of the powers in two factors of its sign, which do not leave the range before
    // the result does.
    let mantissa = i64::from(c.mantissa());
    let one = c.int(c.either(127, 1023) << mantissa);
    let quotient = c.b.sub(n.exponent, d.exponent);
    let half = c.int_k(BinOp::ShrA, quotient, 1);
    let half = c.int_k(BinOp::And, half, -1 << mantissa);
    let rest = c.b.sub(quotient, half);
    let factors = [half, rest].map(|exponent| {
        let biased = c.b.add(exponent, one);
        c.of_bits(biased)
    });
    let mut rescale = |part: Value| factors.iter().fold(part, |part, &factor| c.mul(part, factor));
    let (re, im) = (rescale(re), rescale(im));
    // Annex G.5.1: where both parts are NaN but a limit is known.
    let (re_nan, im_nan) = (c.cmp(Cmp::Ne, re, re), c.cmp(Cmp::Ne, im, im));
    let lost = c.both(re_nan, im_nan);
    let zero = c.k(0.0);
    let infinity = c.k(f64::INFINITY);
    let (x_infinite, x_finite) = (is_infinite(c, x), is_finite(c, x));
    let (y_infinite, y_finite) = (is_infinite(c, y), is_finite(c, y));
    // Something over zero.
    let by_zero = c.cmp_k(Cmp::Eq, norm, 0.0);
    let signs = c.sign(y.0);
    let signed = c.or_sign(infinity, signs);
    let over_zero = (c.mul(signed, x.0), c.mul(signed, x.1));
    // Infinite over finite, and the reverse, by directions.
    let (a, b) = (corner(c, x.0), corner(c, x.1));
    let minus = c.neg(d.im);
    let (p, q) = (plain_sum(c, [a, d.re], [b, d.im]), plain_sum(c, [b, d.re], [a, minus]));
    let large = (c.mul(infinity, p), c.mul(infinity, q));
    let (s, t) = (corner(c, y.0), corner(c, y.1));
    let minus = c.neg(t);
    let (p, q) = (plain_sum(c, [n.re, s], [n.im, t]), plain_sum(c, [n.im, s], [n.re, minus]));
    let small = (c.mul(zero, p), c.mul(zero, q));
    let large_case = c.both(x_infinite, y_finite);
    let small_case = c.both(y_infinite, x_finite);
    let mut pick = |part: Value, over_zero: Value, large: Value, small: Value| {
        let known = c.select(small_case, small, part);
        let known = c.select(large_case, large, known);
        let known = c.select(by_zero, over_zero, known);
        c.select(lost, known, part)
    };
    (pick(re, over_zero.0, large.0, small.0), pick(im, over_zero.1, large.1, small.1))
}

/// Whether a divisor is a constant without imaginary part, and neither zero nor infinite.
fn is_real(c: &Calc<'_>, y: ComplexParts) -> bool {
    let number = |part: Value| {
        let bits = c.b.constant(part)?;
        Some(c.either(f64::from(f32::from_bits(bits as u32)), f64::from_bits(bits)))
    };
    let (Some(re), Some(im)) = (number(y.0), number(y.1)) else { return false };
    im == 0.0 && re != 0.0 && re.is_finite()
}

/// `x / y`, where `y` is real: part by part. What is infinite times the imaginary part, zero, makes the other part NaN, as
/// in the definition.
fn divide_by_real(c: &mut Calc<'_>, x: ComplexParts, y: ComplexParts) -> ComplexParts {
    let minus = c.neg(y.1);
    let mut part = |part: Value, other: Value, zero: Value| {
        let quotient = c.div(part, y.0);
        let rest = c.mul(other, zero);
        let sum = c.add(quotient, rest);
        let size = c.abs(part);
        let infinite = c.cmp_k(Cmp::Eq, size, f64::INFINITY);
        c.select(infinite, quotient, sum)
    };
    (part(x.0, x.1, y.1), part(x.1, x.0, minus))
}

/// `a b + c d`
fn plain_sum(c: &mut Calc<'_>, [a, b]: [Value; 2], [p, q]: [Value; 2]) -> Value {
    let first = c.mul(a, b);
    let second = c.mul(p, q);
    c.add(first, second)
}

/// An infinite number as its direction, a finite one as zero.
fn corner(c: &mut Calc<'_>, x: Value) -> Value {
    let (zero, one) = (c.k(0.0), c.k(1.0));
    let abs = c.abs(x);
    let infinite = c.cmp_k(Cmp::Eq, abs, f64::INFINITY);
    let unit = c.select(infinite, one, zero);
    let signs = c.sign(x);
    c.or_sign(unit, signs)
}

/// The root with real part not negative: the part with the larger magnitude, `sqrt((|x| + |z|) / 2)`,
/// has no cancellation, and the other is half of `y` over it: of `y` itself, as that may be nothing
/// beside `x` and have a root's part that is an ordinary number.
pub(crate) fn sqrt(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let (x, y) = z;
    let s = scaled_by(c, z, true);
    // Twice, so that subnormal numbers come near 1, too.
    let t = scaled_by(c, (s.re, s.im), true);
    let near = magnitude(c, t.re, t.im);
    let abs_re = c.abs(t.re);
    let sum = c.add(abs_re, near);
    let half = c.mul_k(sum, 0.5);
    let root = c.sqrt(half);
    let (outer, inner) = (c.sqrt(s.power), c.sqrt(t.power));
    let large = c.mul(root, inner);
    let large = c.mul(large, outer);
    let twice_small = c.div(y, large);
    let small = c.mul_k(twice_small, 0.5);
    let abs_small = c.abs(small);
    let signs = c.sign(y);
    let signed = c.or_sign(large, signs);
    let negative = c.cmp_k(Cmp::Lt, x, 0.0);
    let re = c.select(negative, abs_small, large);
    let im = c.select(negative, signed, small);
    // Zeros and infinities.
    let (zero, infinity, nan) = (c.k(0.0), c.k(f64::INFINITY), c.k(f64::NAN));
    let at_zero = c.cmp_k(Cmp::Eq, near, 0.0);
    // (Not `y`, which may be a subnormal number that counts as zero.)
    let no_im = c.or_sign(zero, signs);
    let (re, im) = (c.select(at_zero, zero, re), c.select(at_zero, no_im, im));
    let x_abs = c.abs(x);
    let x_infinite = c.cmp_k(Cmp::Eq, x_abs, f64::INFINITY);
    let y_ordered = c.cmp(Cmp::Eq, y, y);
    let signed_zero = signs;
    let over_x = c.select(y_ordered, signed_zero, nan);
    let over_x_abs = c.abs(over_x);
    let signed_infinity = c.or_sign(infinity, signs);
    let x_re = c.select(negative, over_x_abs, infinity);
    let x_im = c.select(negative, signed_infinity, over_x);
    let (re, im) = (c.select(x_infinite, x_re, re), c.select(x_infinite, x_im, im));
    let y_abs = c.abs(y);
    let y_infinite = c.cmp_k(Cmp::Eq, y_abs, f64::INFINITY);
    (c.select(y_infinite, infinity, re), c.select(y_infinite, y, im))
}

/// `1 / sqrt(z)`
pub(crate) fn rsqrt(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let root = sqrt(b, z);
    let lane = b.lane(z.0);
    let one = (b.float(lane, 1.0), b.float(lane, 0.0));
    divide(b, one, root)
}

/// `ln |z| + i arg z`
///
/// Where `|z|` is near 1, its logarithm is that of `1 + (|z|² - 1)`, whose last term is summed with
/// all rounding errors: the logarithm is nothing else there.
pub(crate) fn log(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let angle = trig::atan2(b, z.1, z.0);
    let c = &mut Calc::new(b, z.0);
    let (re, im) = (c.abs(z.0), c.abs(z.1));
    let (large, small) = (c.b.bin(BinOp::Max, re, im), c.b.bin(BinOp::Min, re, im));
    let (less, more) = (c.add_k(large, -1.0), c.add_k(large, 1.0));
    let kept = c.add_k(more, -1.0);
    let more_error = c.sub(large, kept);
    let Pair { high, low } = c.product(less, more);
    let low = c.fma(less, more_error, low);
    let square = c.product(small, small);
    let (sum, error) = c.two_sum(high, square.high);
    let rest = c.add(low, square.low);
    let rest = c.add(error, rest);
    let (excess, rest) = c.fast_two_sum(sum, rest);
    let near = log::log1p_sum(c, excess, rest);
    let near = c.mul_k(near, 0.5);
    let s = scaled(c, z);
    let magnitude = magnitude(c, s.re, s.im);
    let infinite = is_infinite(c, z);
    let infinity = c.k(f64::INFINITY);
    let magnitude = c.select(infinite, infinity, magnitude);
    let far = log::log_of_product(c, magnitude, s.power);
    let excess = c.abs(excess);
    let is_near = c.cmp_k(Cmp::Lt, excess, 0.5);
    // The larger of a NaN and a number may be the number.
    let sum = c.add(re, im);
    let ordered = c.cmp(Cmp::Eq, sum, sum);
    let is_near = c.both(is_near, ordered);
    (c.select(is_near, near, far), angle)
}

/// `e^x (cos y + i sin y)`, the power in factors: the product may be finite where it is not.
pub(crate) fn exp(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let factors = exp::exp_in_factors(c, z.0);
    exp_of_factors(c, z, factors)
}

/// The same, where factors of `e^x` are known.
fn exp_of_factors(c: &mut Calc<'_>, (x, y): ComplexParts, factors: [Value; 3]) -> ComplexParts {
    let (sin, cos) = trig::sin_cos(c, y);
    let mut scale = |part: Value| factors.iter().fold(part, |part, &factor| c.mul(part, factor));
    let (re, im) = (scale(cos), scale(sin));
    // On the real axis; and where no direction is known (Annex G.6.3.1).
    let one = c.k(1.0);
    let power = factors.iter().fold(one, |part, &factor| c.mul(part, factor));
    let real = c.cmp_k(Cmp::Eq, y, 0.0);
    let (re, im) = (c.select(real, power, re), c.select(real, y, im));
    let (x_abs, y_abs) = (c.abs(x), c.abs(y));
    let x_infinite = c.cmp_k(Cmp::Eq, x_abs, f64::INFINITY);
    let y_finite = c.cmp_k(Cmp::Lt, y_abs, f64::INFINITY);
    let lost = c.b.mask_op(MaskOp::AndNot, y_finite, x_infinite);
    let positive = c.cmp_k(Cmp::Gt, x, 0.0);
    let (zero, nan) = (c.k(0.0), c.k(f64::NAN));
    let lost_re = c.select(positive, x, zero);
    let lost_im = c.select(positive, nan, zero);
    (c.select(lost, lost_re, re), c.select(lost, lost_im, im))
}
