//! The inverse functions of sine, cosine and tangent, of circle and hyperbola alike.
//!
//! Sine and cosine are those of Hull, Fairgrieve and Tang, "Implementing the complex arcsine and
//! arccosine functions using exception handling", ACM TOMS 23 (1997), with one formula for all numbers
//! whose squares lie within the range.

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::super::calc::Calc;
use super::super::{log, trig};
use super::waves::turned;
use super::{ComplexParts, is_infinite};
use crate::kernel::{BinOp, Builder, Cmp, MaskOp, Value};

/// For the number `|x| + i|y|`.
struct InverseSine {
    /// The real part of its arcsine is the angle of the point `(root, |x|)`, that of its arccosine the
    /// angle of `(|x|, root)`.
    root: Value,
    /// The imaginary part of its arcsine.
    im: Value,
}

/// `a`, the mean of the distances `r` and `s` to the branch points -1 and 1, is the semi-axis of an
/// ellipse with these as foci, through the number; on it, `root` is `sqrt(a² - x²)`, and the imaginary
/// part `ln(a + sqrt(a² - 1))`. The differences `a - 1` and `a - |x|` are sums of positive terms.
fn inverse_sine(c: &mut Calc<'_>, z: ComplexParts) -> InverseSine {
    let (x, y) = (c.abs(z.0), c.abs(z.1));
    // Between these bounds no square over- or underflows.
    let least = c.either(2f64.powi(-60), 2f64.powi(-508));
    let most = c.either(2f64.powi(60), 2f64.powi(508));
    let (one, zero, infinity, nan) = (c.k(1.0), c.k(0.0), c.k(f64::INFINITY), c.k(f64::NAN));
    let (x_less, p) = (c.add_k(x, -1.0), c.add_k(x, 1.0));
    let m = c.abs(x_less);
    let square = c.mul(y, y);
    let (r, s) = (c.fma(p, p, square), c.fma(m, m, square));
    let (r, s) = (c.sqrt(r), c.sqrt(s));
    // Above a branch point, the square of the distance may be nothing.
    let above = c.cmp(Cmp::Eq, m, zero);
    let s = c.select(above, y, s);
    let a = c.add(r, s);
    let a = c.mul_k(a, 0.5);
    let a_and_x = c.add(a, x);
    // r - (x + 1), and the two of s - |x - 1| and s + |x - 1| that make the differences.
    let (r_and_p, s_and_m) = (c.add(r, p), c.add(s, m));
    let low = c.div(square, r_and_p);
    let (inside, within) = (c.cmp(Cmp::Lt, x, one), c.cmp(Cmp::Le, x, one));
    let left = c.select(within, square, a_and_x);
    let left = c.div(left, s_and_m);
    let right = c.div(a_and_x, r_and_p);
    let from_1 = c.select(inside, left, s_and_m);
    let twice_a_less_1 = c.add(low, from_1);
    // sqrt((a + x)(a - x)): beyond 1, y is taken out of the root.
    let twice_a_less_x = c.add(low, s_and_m);
    let near = c.mul(a_and_x, twice_a_less_x);
    let sum = c.add(right, left);
    let radicand = c.select(within, near, sum);
    let radicand = c.mul_k(radicand, 0.5);
    let root = c.sqrt(radicand);
    let beyond = c.mul(root, y);
    let root = c.select(within, root, beyond);
    // u = (a - 1) + sqrt((a - 1)(a + 1))
    let quarter = c.k(0.25);
    let factor = c.fma(twice_a_less_1, quarter, one);
    let product = c.mul(twice_a_less_1, factor);
    let product = c.sqrt(product);
    let half = c.k(0.5);
    let u = c.fma(twice_a_less_1, half, product);
    // Far out, u is 2|z|, and 2^-34 times that still so large that 1 is nothing beside it.
    let (large, small) = (c.b.bin(BinOp::Max, x, y), c.b.bin(BinOp::Min, x, y));
    let ratio = c.div(small, large);
    let stretch = c.fma(ratio, ratio, one);
    let stretch = c.sqrt(stretch);
    let far_u = c.mul_k(large, 2f64.powi(-33));
    let far_u = c.mul(far_u, stretch);
    let (x_far, y_far) = (c.cmp_k(Cmp::Gt, x, most), c.cmp_k(Cmp::Gt, y, most));
    let far = c.b.mask_op(MaskOp::Or, x_far, y_far);
    let u = c.select(far, far_u, u);
    let im = log::log1p(c.b, u);
    let shift = c.k(34.0 * LN_2);
    let shift = c.select(far, shift, zero);
    let im = c.add(im, shift);
    let root = c.select(far, y, root);
    // Next to the real axis, between the branch points.
    let flat = c.cmp_k(Cmp::Lt, y, least);
    let flat = c.both(flat, inside);
    let flat_im = c.div(y, root);
    let im = c.select(flat, flat_im, im);
    // Annex G.6.1 and G.6.2; of a NaN and a number, the larger may be the number.
    let sum = c.add(x, y);
    let ordered = c.cmp(Cmp::Eq, sum, sum);
    let im = c.select(ordered, im, nan);
    let infinite = is_infinite(c, z);
    let im = c.select(infinite, infinity, im);
    let (x_zero, y_nan) = (c.cmp(Cmp::Eq, x, zero), c.cmp(Cmp::Ne, y, y));
    let on_axis = c.both(x_zero, y_nan);
    InverseSine { root: c.select(on_axis, one, root), im }
}

/// The angle of the point `(x, y)`, both of which are not negative, with the signs of another number.
fn signed_angle(c: &mut Calc<'_>, y: Value, x: Value, of: Value) -> Value {
    let angle = trig::atan2(c.b, y, x);
    let signs = c.sign(of);
    c.or_sign(angle, signs)
}

/// The cuts are the real axis beyond -1 and 1.
pub(crate) fn asin(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let inverse = inverse_sine(c, z);
    let x = c.abs(z.0);
    let re = signed_angle(c, x, inverse.root, z.0);
    let signs = c.sign(z.1);
    (re, c.or_sign(inverse.im, signs))
}

pub(crate) fn acos(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let inverse = inverse_sine(c, z);
    let re = trig::atan2(c.b, inverse.root, z.0);
    let minus_y = c.neg(z.1);
    let signs = c.sign(minus_y);
    (re, c.or_sign(inverse.im, signs))
}

/// `i acos z` or `-i acos z`, whichever has a real part that is not negative.
pub(crate) fn acosh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let inverse = inverse_sine(c, z);
    let angle = trig::atan2(c.b, inverse.root, z.0);
    let signs = c.sign(z.1);
    (inverse.im, c.or_sign(angle, signs))
}

/// `asin(i z) / i`
pub(crate) fn asinh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    turned(b, asin, z)
}

/// `ln((1 + z) / (1 - z)) / 2`, from `|x|` and `|y|`, to which the signs are given back.
///
/// The real part is `log1p(4x / ((1 - x)² + y²)) / 4`, without cancellation for positive `x`; the
/// imaginary part half the angle of the point `(1 - x² - y², 2y)`.
pub(crate) fn atanh(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, z.0);
    let (x, y) = (c.abs(z.0), c.abs(z.1));
    let (x_signs, y_signs) = (c.sign(z.0), c.sign(z.1));
    let (one, zero, nan) = (c.k(1.0), c.k(0.0), c.k(f64::NAN));
    // Beyond the second, 1 is nothing beside the square; squares below that of the first may be lost.
    let least = c.either(2f64.powi(-60), 2f64.powi(-508));
    let most = c.either(2f64.powi(60), 2f64.powi(508));
    let (less, more) = (c.sub(one, x), c.add(one, x));
    let square = c.mul(y, y);
    let norm = c.fma(less, less, square);
    let four_x = c.mul_k(x, 4.0);
    let near = c.div(four_x, norm);
    // Above the branch point, the logarithm of 4 / y² is twice that of 2 / y.
    let shift = c.either(26, 60);
    let (at_1, low) = (c.cmp(Cmp::Eq, x, one), c.cmp_k(Cmp::Lt, y, least));
    let tip = c.both(at_1, low);
    let grown = c.mul_k(y, 2f64.powi(shift - 1));
    let above = c.div(one, grown);
    let argument = c.select(tip, above, near);
    let log = log::log1p(c.b, argument);
    let quarter = c.mul_k(log, 0.25);
    let (half, rest) = (c.k(0.5), c.k(0.5 * f64::from(shift) * LN_2));
    let tip_re = c.fma(log, half, rest);
    let re = c.select(tip, tip_re, quarter);
    // Far out: the real part of 1 / z, x / (x² + y²), from the parts' ratio and the larger one, halved
    // as the sum may be twice that.
    let (large, small) = (c.b.bin(BinOp::Max, x, y), c.b.bin(BinOp::Min, x, y));
    let ratio = c.div(small, large);
    let (half_large, half_small) = (c.mul_k(large, 0.5), c.mul_k(small, 0.5));
    let sum = c.fma(half_small, ratio, half_large);
    let flat = c.cmp(Cmp::Ge, x, y);
    let numerator = c.select(flat, one, ratio);
    let far_re = c.div(numerator, sum);
    let far_re = c.mul_k(far_re, 0.5);
    let (x_far, y_far) = (c.cmp_k(Cmp::Gt, x, most), c.cmp_k(Cmp::Gt, y, most));
    let far = c.b.mask_op(MaskOp::Or, x_far, y_far);
    let re = c.select(far, far_re, re);
    let (twice_y, inward) = (c.add(y, y), c.fms(less, more, square));
    let angle = trig::atan2(c.b, twice_y, inward);
    let im = c.mul_k(angle, 0.5);
    let quarter_turn = c.k(FRAC_PI_2);
    let im = c.select(far, quarter_turn, im);
    // Of a NaN and a number, the larger may be the number. Infinity has a limit, whatever the other
    // part is, and the imaginary axis is kept.
    let sum = c.add(x, y);
    let ordered = c.cmp(Cmp::Eq, sum, sum);
    let re = c.select(ordered, re, nan);
    let infinite = is_infinite(c, z);
    let re = c.select(infinite, zero, re);
    let x_zero = c.cmp(Cmp::Eq, x, zero);
    let re = c.select(x_zero, zero, re);
    let im = c.select(ordered, im, nan);
    let y_infinite = c.cmp_k(Cmp::Eq, y, f64::INFINITY);
    let im = c.select(y_infinite, quarter_turn, im);
    (c.or_sign(re, x_signs), c.or_sign(im, y_signs))
}

/// `atanh(i z) / i`
pub(crate) fn atan(b: &mut Builder, z: ComplexParts) -> ComplexParts {
    turned(b, atanh, z)
}
