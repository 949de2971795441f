//! Functions of `z = x + iy` that are made of `e^x` and of the sine and cosine of `y`.

use super::super::calc::Calc;
use super::super::{exp, log, trig};
use super::{ComplexParts, exp as complex_exp, log as complex_log};
use crate::kernel::{Builder, Cmp, MaskOp, Value};

/// Both hyperbolic functions of `x`, and sine and cosine of `y`.
struct Waves {
    sinh: Value,
    cosh: Value,
    sin: Value,
    cos: Value,
}

fn waves(c: &mut Calc<'_>, (x, y): ComplexParts) -> Waves {
    let (sin, cos) = trig::sin_cos(c, y);
    Waves { sinh: exp::sinh(c.b, x), cosh: exp::cosh(c.b, x), sin, cos }
}

/// Whether `|x|` is so large that `e^-2|x|` is nothing beside 1.
fn is_far(c: &mut Calc<'_>, x: Value) -> Value {
    let abs = c.abs(x);
    c.cmp_k(Cmp::Gt, abs, 20.0)
}

/// Products of waves where `x` is far: both hyperbolic functions are `e^|x| / 2`, which may be
/// infinite where the product is not.
fn far_products(c: &mut Calc<'_>, x: Value, parts: [Value; 2]) -> [Value; 2] {
    let abs = c.abs(x);
    let [first, second, third] = exp::exp_in_factors(c, abs);
    parts.map(|part| {
        // Half of a subnormal number may be nothing: it is halved once it has grown.
        let grown = c.mul(part, first);
        let half = c.mul_k(grown, 0.5);
        let more = c.mul(half, second);
        c.mul(more, third)
    })
}

/// Whether `x` is infinite and `y` no number that says where the result lies.
fn is_lost(c: &mut Calc<'_>, (x, y): ComplexParts) -> Value {
    let (x_abs, y_abs) = (c.abs(x), c.abs(y));
    let infinite = c.cmp_k(Cmp::Eq, x_abs, f64::INFINITY);
    let finite = c.cmp_k(Cmp::Lt, y_abs, f64::INFINITY);
    c.b.mask_op(MaskOp::AndNot, finite, infinite)
}

/// `sinh x cos y + i cosh x sin y`
pub(crate) fn sinh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let (x, y) = z;
    let w = waves(c, z);
    let (re, im) = (c.mul(w.sinh, w.cos), c.mul(w.cosh, w.sin));
    let [far_re, far_im] = far_products(c, x, [w.cos, w.sin]);
    let signs = c.sign(x);
    let far_re = c.flip(far_re, signs);
    let far = is_far(c, x);
    let (re, im) = (c.select(far, far_re, re), c.select(far, far_im, im));
    let (lost, nan) = (is_lost(c, z), c.k(f64::NAN));
    let (re, im) = (c.select(lost, x, re), c.select(lost, nan, im));
    // On the axes.
    let (x_zero, y_zero) = (c.cmp_k(Cmp::Eq, x, 0.0), c.cmp_k(Cmp::Eq, y, 0.0));
    let (re, im) = (c.select(x_zero, x, re), c.select(x_zero, w.sin, im));
    (re, c.select(y_zero, y, im))
}

/// `cosh x cos y + i sinh x sin y`
pub(crate) fn cosh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let (x, y) = z;
    let w = waves(c, z);
    let (re, im) = (c.mul(w.cosh, w.cos), c.mul(w.sinh, w.sin));
    let [far_re, far_im] = far_products(c, x, [w.cos, w.sin]);
    let (x_sign, y_sign) = (c.sign(x), c.sign(y));
    let far_im = c.flip(far_im, x_sign);
    let far = is_far(c, x);
    let (re, im) = (c.select(far, far_re, re), c.select(far, far_im, im));
    let (lost, nan, infinity) = (is_lost(c, z), c.k(f64::NAN), c.k(f64::INFINITY));
    // Annex G leaves the sign of the infinity open where y is infinite.
    let unordered = c.cmp(Cmp::Ne, y, y);
    let lost_re = c.select(unordered, infinity, nan);
    let (re, im) = (c.select(lost, lost_re, re), c.select(lost, nan, im));
    // On the axes, the product of the two signs is the sign of the imaginary part.
    let (x_zero, y_zero) = (c.cmp_k(Cmp::Eq, x, 0.0), c.cmp_k(Cmp::Eq, y, 0.0));
    let on_axis = c.b.mask_op(MaskOp::Or, x_zero, y_zero);
    let zero = c.flip(x_sign, y_sign);
    (re, c.select(on_axis, zero, im))
}

/// `(sinh x cosh x + i sin y cos y) / (sinh² x + cos² y)`, in which nothing cancels.
pub(crate) fn tanh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let (x, y) = z;
    let w = waves(c, z);
    let square = c.mul(w.cos, w.cos);
    let norm = c.fma(w.sinh, w.sinh, square);
    let product = c.mul(w.sinh, w.cosh);
    let wave = c.mul(w.sin, w.cos);
    let (re, im) = (c.div(product, norm), c.div(wave, norm));
    // Far away the denominator is e^2|x| / 4; at infinity, sines of infinity are taken for zero.
    let (one, x_sign, y_sign) = (c.k(1.0), c.sign(x), c.sign(y));
    let far_re = c.or_sign(one, x_sign);
    let x_abs = c.abs(x);
    let minus_twice = c.mul_k(x_abs, -2.0);
    let shrunk = exp::exp(c.b, minus_twice);
    let lost = is_lost(c, z);
    let wave = c.select(lost, y_sign, wave);
    let wave = c.mul_k(wave, 4.0);
    let far_im = c.mul(wave, shrunk);
    let far = is_far(c, x);
    let (re, im) = (c.select(far, far_re, re), c.select(far, far_im, im));
    // The sine is NaN where y is not finite.
    let (unordered, nan) = (c.cmp(Cmp::Ne, wave, wave), c.k(f64::NAN));
    let re = c.select(unordered, nan, re);
    let y_zero = c.cmp_k(Cmp::Eq, y, 0.0);
    (re, c.select(y_zero, y, im))
}

/// `f(i z) / i` of an odd function: the trigonometric one of a hyperbolic one, and the reverse.
pub(super) fn turned(
    b: &mut Builder,
    f: fn(&mut Builder, ComplexParts) -> ComplexParts,
    z: ComplexParts,
) -> ComplexParts {
    let minus_y = Calc::new(b, z.1).neg(z.1);
    let (re, im) = f(b, (minus_y, z.0));
    (im, Calc::new(b, re).neg(re))
}

pub(crate) fn sin(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    turned(b, sinh, z)
}

/// `cosh(i z)`
pub(crate) fn cos(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let minus_y = Calc::new(b, z.1).neg(z.1);
    cosh(b, (minus_y, z.0))
}

pub(crate) fn tan(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    turned(b, tanh, z)
}

/// `e^z - 1`, whose real part `e^x cos y - 1` is put together from two small terms.
pub(crate) fn expm1(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let (x, y) = z;
    let (whole, im) = complex_exp(b, z);
    let real = exp::expm1(b, x);
    let c = &mut Calc::new(b, x);
    let far = c.add_k(whole, -1.0);
    let half = c.mul_k(y, 0.5);
    let (_, cos) = trig::sin_cos(c, y);
    let (half_sine, _) = trig::sin_cos(c, half);
    let double = c.mul_k(half_sine, -2.0);
    let grown = c.mul(real, cos);
    let near = c.fma(double, half_sine, grown);
    let (x_abs, y_abs) = (c.abs(x), c.abs(y));
    let small = c.cmp_k(Cmp::Le, x_abs, 1.0);
    let finite = c.cmp_k(Cmp::Lt, y_abs, f64::INFINITY);
    let is_near = c.both(small, finite);
    let re = c.select(is_near, near, far);
    let (lost, nan) = (is_lost(c, z), c.k(f64::NAN));
    (c.select(lost, nan, re), c.select(lost, nan, im))
}

/// `ln(1 + z)`. Near zero the real part is half of the logarithm of `1 + (2x + x² + y²)`, where terms
/// that cancel are small against the imaginary part.
pub(crate) fn log1p(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let (x, y) = z;
    let one_more = Calc::new(b, x).add_k(x, 1.0);
    let (far, im) = complex_log(b, (one_more, y));
    let c = &mut Calc::new(b, x);
    let two_more = c.add_k(x, 2.0);
    let square = c.mul(y, y);
    let excess = c.fma(x, two_more, square);
    let near = log::log1p(c.b, excess);
    let near = c.mul_k(near, 0.5);
    let abs = c.abs(excess);
    let is_near = c.cmp_k(Cmp::Lt, abs, 0.5);
    (c.select(is_near, near, far), im)
}

/// `1 / (1 + e^-z) = (e^x + e^iy) / (2 cosh x + 2 cos y)`, where the denominator is put together
/// without cancellation from the half angles.
pub(crate) fn logistic(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let (x, y) = z;
    let c = &mut Calc::new(b, x);
    let (half_x, half_y) = (c.mul_k(x, 0.5), c.mul_k(y, 0.5));
    let (sin, cos) = trig::sin_cos(c, y);
    let (_, half_cos) = trig::sin_cos(c, half_y);
    let half_sinh = exp::sinh(c.b, half_x);
    let square = c.mul(half_cos, half_cos);
    let norm = c.fma(half_sinh, half_sinh, square);
    let norm = c.mul_k(norm, 4.0);
    // Next to the poles, x = 0 and cos y = -1, one is taken from both terms.
    let (less_one, power) = (exp::expm1(c.b, x), exp::exp(c.b, x));
    let two = c.k(2.0);
    let (right, left) = (c.fma(square, two, less_one), c.add(power, cos));
    let is_right = c.cmp_k(Cmp::Gt, x, -1.0);
    let sum = c.select(is_right, right, left);
    let (re, im) = (c.div(sum, norm), c.div(sin, norm));
    // Far away it is 1 - e^-z, or e^z.
    let (abs, one) = (c.abs(x), c.k(1.0));
    let positive = c.cmp_k(Cmp::Gt, x, 0.0);
    let far = c.cmp_k(Cmp::Gt, abs, c.either(20.0, 40.0));
    let minus_abs = c.neg(abs);
    let (far_re, far_im) = complex_exp(c.b, (minus_abs, y));
    let far_re = c.select(positive, one, far_re);
    (c.select(far, far_re, re), c.select(far, far_im, im))
}
