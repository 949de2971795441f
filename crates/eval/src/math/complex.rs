//! Complex numbers of either width, carried as `C128`.
//!
//! Textbook formulas overflow, cancel, or lose the sign of zero that says on which side of a branch
//! cut a number lies; each function here says how it avoids that. Branch cuts and limits are those
//! of C99 Annex G. What the comments call z is x + iy.

use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use helio_ir::types::C128;

use super::exact;

fn c(re: f64, im: f64) -> C128 {
    C128::new(re, im)
}

/// i z
fn times_i(z: C128) -> C128 {
    c(-z.im, z.re)
}

/// -i z
fn over_i(z: C128) -> C128 {
    c(z.im, -z.re)
}

/// z 2^n, exact unless it leaves the range.
fn scale(z: C128, n: i32) -> C128 {
    c(libm::ldexp(z.re, n), libm::ldexp(z.im, n))
}

/// The exponent of the larger part; 0 if that is zero or not finite.
fn exponent(z: C128) -> i32 {
    let larger = z.re.abs().max(z.im.abs());
    if larger == 0.0 || !larger.is_finite() { 0 } else { libm::ilogb(larger) }
}

pub(crate) fn abs(z: C128) -> f64 {
    libm::hypot(z.re, z.im)
}

pub(crate) fn real(z: C128) -> f64 {
    z.re
}

pub(crate) fn imag(z: C128) -> f64 {
    z.im
}

pub(crate) fn negate(z: C128) -> C128 {
    -z
}

/// z / |z|; zero stays as it is.
pub(crate) fn sign(z: C128) -> C128 {
    // |z| can overflow and, for subnormal z, is imprecise; the direction does not change by scaling.
    let z = scale(z, -exponent(z));
    let r = abs(z);
    if r == 0.0 { z } else { c(z.re / r, z.im / r) }
}

pub(crate) fn add(x: C128, y: C128) -> C128 {
    x + y
}

pub(crate) fn subtract(x: C128, y: C128) -> C128 {
    x - y
}

/// The defining formula: each part is rounded, and may cancel, but infinities are not recovered.
pub(crate) fn multiply(x: C128, y: C128) -> C128 {
    c(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
}

/// Scaled so that |y|² neither overflows nor underflows; infinities as in Annex G.5.1.
pub(crate) fn divide(x: C128, y: C128) -> C128 {
    let n = exponent(y);
    let d = scale(y, -n);
    let norm = d.re * d.re + d.im * d.im;
    // The dividend is scaled, too: its products must not overflow. Both scales are undone at once,
    // as one of them alone may leave the range.
    let m = exponent(x);
    let scaled = scale(x, -m);
    let re = (scaled.re * d.re + scaled.im * d.im) / norm;
    let im = (scaled.im * d.re - scaled.re * d.im) / norm;
    let result = scale(c(re, im), m - n);
    if !(result.re.is_nan() && result.im.is_nan()) {
        return result;
    }
    let is_infinite = |z: C128| z.re.is_infinite() || z.im.is_infinite();
    // An infinite number as its direction, a finite one as zero.
    let corner = |part: f64| (if part.is_infinite() { 1f64 } else { 0.0 }).copysign(part);
    if norm == 0.0 && !(x.re.is_nan() && x.im.is_nan()) {
        let infinity = f64::INFINITY.copysign(y.re);
        c(infinity * x.re, infinity * x.im)
    } else if is_infinite(x) && y.re.is_finite() && y.im.is_finite() {
        let (a, b) = (corner(x.re), corner(x.im));
        c(f64::INFINITY * (a * d.re + b * d.im), f64::INFINITY * (b * d.re - a * d.im))
    } else if is_infinite(y) && x.re.is_finite() && x.im.is_finite() {
        let (p, q) = (corner(y.re), corner(y.im));
        c(0.0 * (x.re * p + x.im * q), 0.0 * (x.im * p - x.re * q))
    } else {
        result
    }
}

/// By real, then by imaginary part; a number with a NaN in it wins, the first one if both have.
pub(crate) fn maximum(x: C128, y: C128) -> C128 {
    if is_nan(x) || (!is_nan(y) && lexicographic(x, y).is_gt()) { x } else { y }
}

/// By real, then by imaginary part; a number with a NaN in it wins, the first one if both have.
pub(crate) fn minimum(x: C128, y: C128) -> C128 {
    if is_nan(x) || (!is_nan(y) && lexicographic(x, y).is_lt()) { x } else { y }
}

fn is_nan(z: C128) -> bool {
    z.re.is_nan() || z.im.is_nan()
}

fn lexicographic(x: C128, y: C128) -> std::cmp::Ordering {
    let parts = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(std::cmp::Ordering::Equal);
    parts(x.re, y.re).then(parts(x.im, y.im))
}

/// The root with real part not negative; the cut is the negative real axis.
///
/// The part with the larger magnitude, sqrt((|x| + |z|) / 2), has no cancellation; the other one is
/// half of y over it.
pub(crate) fn sqrt(z: C128) -> C128 {
    if z.re == 0.0 && z.im == 0.0 {
        return c(0.0, z.im);
    }
    if z.im.is_infinite() {
        return c(f64::INFINITY, z.im);
    }
    if z.re.is_infinite() {
        let other = if z.im.is_nan() { f64::NAN } else { 0f64.copysign(z.im) };
        return if z.re > 0.0 { c(z.re, other) } else { c(other.abs(), z.re.abs().copysign(z.im)) };
    }
    // An even scale brings |z| near 1 and is undone exactly by its half.
    let n = exponent(z) / 2;
    let scaled = scale(z, -2 * n);
    let large = libm::ldexp(((scaled.re.abs() + abs(scaled)) / 2.0).sqrt(), n);
    let small = z.im / (2.0 * large);
    if z.re >= 0.0 || z.re.is_nan() {
        c(large, small)
    } else {
        c(small.abs(), large.copysign(z.im))
    }
}

/// The reciprocal of the square root.
pub(crate) fn rsqrt(z: C128) -> C128 {
    divide(c(1.0, 0.0), sqrt(z))
}

/// The root with the argument nearest to zero (unlike the real function, for negative reals).
pub(crate) fn cbrt(z: C128) -> C128 {
    let n = exponent(z) / 3;
    let r = libm::ldexp(libm::cbrt(abs(scale(z, -3 * n))), n);
    if z.re > 0.0 && z.im.abs() < 1e-20 * z.re {
        // The angle y / x might underflow, the root's imaginary part does not.
        return c(r, z.im / r / r / 3.0);
    }
    polar(r, libm::atan2(z.im, z.re) / 3.0)
}

/// r e^(i angle), where a zero angle stays zero even for infinite r.
fn polar(r: f64, angle: f64) -> C128 {
    if angle == 0.0 {
        return c(r, angle);
    }
    c(r * libm::cos(angle), r * libm::sin(angle))
}

/// ln |z|, accurate relative to itself also where |z| is near 1.
fn log_abs(z: C128) -> f64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let (large, small) = (x.max(y), x.min(y));
    if large > 0.5 && large < 2.0 && !is_nan(z) {
        // |z|² - 1 without rounding errors: ln |z| is nothing else as it nears zero.
        let ((a, a_error), (b, b_error)) = (exact::two_square(large), exact::two_square(small));
        let excess = exact::sum([a_error, b_error, b, a, -1.0]);
        // Only there; ln of the magnitude itself is better further off.
        if excess.abs() < 0.5 {
            return 0.5 * libm::log1p(excess);
        }
    }
    let n = exponent(z);
    // n ln 2 does not cancel ln of what remains, which lies in [0, ln 3).
    if n.abs() > 500 {
        libm::log(abs(scale(z, -n))) + f64::from(n) * LN_2
    } else {
        libm::log(abs(z))
    }
}

pub(crate) fn log(z: C128) -> C128 {
    c(log_abs(z), libm::atan2(z.im, z.re))
}

/// ln(1 + z), where 1 + z must not be rounded: |1 + z|² - 1 = 2x + x² + y² is summed exactly.
pub(crate) fn log1p(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    let im = libm::atan2(y, 1.0 + x);
    if x.abs() < 4.0 && y.abs() < 4.0 {
        let ((a, a_error), (b, b_error)) = (exact::two_square(x), exact::two_square(y));
        let excess = exact::sum([a_error, b_error, a, b, 2.0 * x]);
        if excess.abs() < 0.5 {
            return c(0.5 * libm::log1p(excess), im);
        }
    }
    c(log_abs(c(1.0 + x, y)), im)
}

/// a e^x for |a| up to 1, without the overflow of e^x alone.
fn times_exp(a: f64, x: f64) -> f64 {
    // Three factors, so that neither the first product nor the power of two overflows.
    if x > 700.0 && x.is_finite() {
        let half = libm::exp(x / 2.0);
        a * half * half
    } else {
        a * libm::exp(x)
    }
}

pub(crate) fn exp(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(libm::exp(x), y);
    }
    if x.is_infinite() && !y.is_finite() {
        // Annex G.6.3.1: no direction is known.
        return if x > 0.0 { c(x, f64::NAN) } else { c(0.0, 0.0) };
    }
    c(times_exp(libm::cos(y), x), times_exp(libm::sin(y), x))
}

/// e^z - 1, whose real part e^x cos y - 1 is put together from two small terms.
pub(crate) fn expm1(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(libm::expm1(x), y);
    }
    if x.is_infinite() && !y.is_finite() {
        return c(f64::NAN, f64::NAN);
    }
    let whole = exp(z);
    if x.abs() > 1.0 || !y.is_finite() {
        return c(whole.re - 1.0, whole.im);
    }
    let half_sine = libm::sin(y / 2.0);
    c(libm::expm1(x) * libm::cos(y) - 2.0 * half_sine * half_sine, whole.im)
}

/// 1 / (1 + e^-z) = (e^x + e^iy) / (2 cosh x + 2 cos y), where the denominator is put together
/// without cancellation from the half angles.
pub(crate) fn logistic(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if x > 40.0 {
        // 1 - e^-z to full precision.
        return c(1.0, imag(exp(c(-x, y))));
    }
    if x < -40.0 {
        return exp(z);
    }
    let (sinh, cos) = (libm::sinh(x / 2.0), libm::cos(y / 2.0));
    let norm = 4.0 * (sinh * sinh + cos * cos);
    // Next to the poles, x = 0 and cos y = -1, one is taken from both terms.
    let re = if x > -1.0 { libm::expm1(x) + 2.0 * cos * cos } else { libm::exp(x) + libm::cos(y) };
    c(re / norm, libm::sin(y) / norm)
}

pub(crate) fn sinh(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(libm::sinh(x), y);
    }
    if x == 0.0 {
        return c(x, libm::sin(y));
    }
    if x.is_infinite() && !y.is_finite() {
        return c(x, f64::NAN);
    }
    if x.abs() > 40.0 {
        // Both hyperbolic functions are e^|x| / 2, which may overflow where the product does not.
        let (re, im) = (libm::cos(y) / 2.0, libm::sin(y) / 2.0);
        return c(times_exp(re, x.abs()).copysign(re * x), times_exp(im, x.abs()));
    }
    c(libm::sinh(x) * libm::cos(y), libm::cosh(x) * libm::sin(y))
}

pub(crate) fn cosh(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 || x == 0.0 {
        // The product of the two signs is the sign of the imaginary part.
        let re = if y == 0.0 { libm::cosh(x) } else { libm::cos(y) };
        let zero = 0f64.copysign(x) * 1f64.copysign(y);
        return c(re, if x.is_nan() && y == 0.0 { y } else { zero });
    }
    if x.is_infinite() && !y.is_finite() {
        // Annex G leaves the sign of the infinity open where y is infinite.
        return c(if y.is_nan() { f64::INFINITY } else { f64::NAN }, f64::NAN);
    }
    if x.abs() > 40.0 {
        let (re, im) = (libm::cos(y) / 2.0, libm::sin(y) / 2.0);
        return c(times_exp(re, x.abs()), times_exp(im, x.abs()).copysign(im * x));
    }
    c(libm::cosh(x) * libm::cos(y), libm::sinh(x) * libm::sin(y))
}

/// (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y), in which nothing cancels.
pub(crate) fn tanh(z: C128) -> C128 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return c(libm::tanh(x), y);
    }
    if x == 0.0 && y.is_finite() {
        return c(x, libm::tan(y));
    }
    if x.is_finite() && !y.is_finite() {
        return c(f64::NAN, f64::NAN);
    }
    if x.abs() > 40.0 {
        // The denominator is e^2|x| / 4; at infinity, sines of infinity are taken for zero.
        let sine = if y.is_finite() { libm::sin(y) * libm::cos(y) } else { 0f64.copysign(y) };
        return c(1f64.copysign(x), 4.0 * sine * libm::exp(-2.0 * x.abs()));
    }
    let (sinh, cosh, sin, cos) = (libm::sinh(x), libm::cosh(x), libm::sin(y), libm::cos(y));
    let norm = sinh * sinh + cos * cos;
    c(sinh * cosh / norm, sin * cos / norm)
}

pub(crate) fn sin(z: C128) -> C128 {
    over_i(sinh(times_i(z)))
}

pub(crate) fn cos(z: C128) -> C128 {
    cosh(times_i(z))
}

pub(crate) fn tan(z: C128) -> C128 {
    over_i(tanh(times_i(z)))
}

/// ln((1 + z) / (1 - z)) / 2, from real functions of |x| and |y|, to which the signs are given back.
///
/// The real part is log1p(4x / ((1 - x)² + y²)) / 4, without cancellation for positive x; the
/// imaginary part half the angle of the point (1 - x² - y², 2y).
pub(crate) fn atanh(z: C128) -> C128 {
    let (x, y) = (z.re.abs(), z.im.abs());
    let signed = |re: f64, im: f64| c(re.copysign(z.re), im.copysign(z.im));
    // Beyond this, 1 is lost against x² + y², which might overflow.
    const LARGE: f64 = 1e100;
    if is_nan(z) {
        let re =
            if z.re.is_infinite() || z.im.is_infinite() { 0f64.copysign(z.re) } else { f64::NAN };
        let re = if z.re == 0.0 { z.re } else { re };
        let im = if z.im.is_infinite() { FRAC_PI_2.copysign(z.im) } else { f64::NAN };
        return c(re, im);
    }
    if x > LARGE || y > LARGE {
        let re =
            if x.is_infinite() || y.is_infinite() { 0.0 } else { divide(c(1.0, 0.0), c(x, y)).re };
        return signed(re, FRAC_PI_2);
    }
    if x == 1.0 && y < 1e-100 {
        // y² would underflow: the logarithm of 4 / y² taken apart.
        let im = if y == 0.0 { y } else { libm::atan2(2.0, -y) / 2.0 };
        return signed((LN_2 - libm::log(y)) / 2.0, im);
    }
    let re = libm::log1p(4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)) / 4.0;
    let im = libm::atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y) / 2.0;
    signed(re, im)
}

pub(crate) fn atan(z: C128) -> C128 {
    over_i(atanh(times_i(z)))
}

pub(crate) fn asin(z: C128) -> C128 {
    let inverse = inverse_sine(z);
    c(inverse.asin.copysign(z.re), inverse.im.copysign(z.im))
}

pub(crate) fn acos(z: C128) -> C128 {
    let inverse = inverse_sine(z);
    let re = if z.re.is_sign_negative() { PI - inverse.acos } else { inverse.acos };
    c(re, inverse.im.copysign(-z.im))
}

pub(crate) fn asinh(z: C128) -> C128 {
    over_i(asin(times_i(z)))
}

/// i acos z or -i acos z, whichever has a real part that is not negative.
pub(crate) fn acosh(z: C128) -> C128 {
    let w = acos(z);
    if w.im.is_sign_negative() { times_i(w) } else { over_i(w) }
}

/// For the number |x| + i|y|: the real parts of asin and acos, and the imaginary part of asin.
struct InverseSine {
    asin: f64,
    acos: f64,
    im: f64,
}

/// Hull, Fairgrieve and Tang, "Implementing the complex arcsine and arccosine functions using
/// exception handling", ACM TOMS 23 (1997).
fn inverse_sine(z: C128) -> InverseSine {
    let (x, y) = (z.re.abs(), z.im.abs());
    if is_nan(z) || x.is_infinite() || y.is_infinite() {
        return inverse_sine_at_infinity(x, y);
    }
    // Between these bounds no square over- or underflows.
    const SMALL: f64 = 4.0 * 1.5e-154;
    const LARGE: f64 = 1e154 / 8.0;
    if x > LARGE || !(SMALL..=LARGE).contains(&y) {
        return inverse_sine_at_bounds(x, y);
    }
    // Distances to the branch points -1 and 1: foci of an ellipse with semi-axis a through z, and of
    // a hyperbola with semi-axis b.
    let (r, s) = (libm::hypot(x + 1.0, y), libm::hypot(x - 1.0, y));
    let a = (r + s) / 2.0;
    let b = x / a;
    // a - x, each as a sum of positive terms.
    let (asin, acos) = if b <= 0.6417 {
        (libm::asin(b), libm::acos(b))
    } else {
        let root = if x <= 1.0 {
            ((a + x) / 2.0 * (y * y / (r + (x + 1.0)) + (s + (1.0 - x)))).sqrt()
        } else {
            y * (((a + x) / (r + (x + 1.0)) + (a + x) / (s + (x - 1.0))) / 2.0).sqrt()
        };
        (libm::atan2(x, root), libm::atan2(root, x))
    };
    let im = if a <= 1.5 {
        let beyond = if x < 1.0 { y * y / (s + (1.0 - x)) } else { s + (x - 1.0) };
        let a_less_1 = (y * y / (r + (x + 1.0)) + beyond) / 2.0;
        libm::log1p(a_less_1 + (a_less_1 * (a + 1.0)).sqrt())
    } else {
        libm::log(a + ((a - 1.0) * (a + 1.0)).sqrt())
    };
    InverseSine { asin, acos, im }
}

/// Where squares would leave the range: the leading terms are exact enough.
fn inverse_sine_at_bounds(x: f64, y: f64) -> InverseSine {
    let x_from_1 = (x - 1.0).abs();
    if x_from_1 > 0.0 && y <= f64::EPSILON * x_from_1 {
        // Next to the real axis.
        let root = (x_from_1 * (x + 1.0)).sqrt();
        if x < 1.0 {
            return InverseSine { asin: libm::asin(x), acos: libm::acos(x), im: y / root };
        }
        let root = if x > 1e150 { x } else { root };
        let im = if x > 1e150 { LN_2 + libm::log(x) } else { libm::log1p(x_from_1 + root) };
        let acos = y / root;
        return InverseSine { asin: FRAC_PI_2 - acos, acos, im };
    }
    if y < 1.0 {
        // Next to the branch point: x is 1, or one of its neighbours and y much smaller.
        let root = y.sqrt();
        return InverseSine { asin: FRAC_PI_2 - root, acos: root, im: root };
    }
    // Far out: asin z = -i ln(2iz).
    let im = LN_2 + log_abs(c(x, y));
    InverseSine { asin: libm::atan2(x, y), acos: libm::atan2(y, x), im }
}

/// Annex G.6.1 and G.6.2: directions, and what is known when a part is NaN.
fn inverse_sine_at_infinity(x: f64, y: f64) -> InverseSine {
    if x.is_nan() || y.is_nan() {
        let im = if x.is_infinite() || y.is_infinite() { f64::INFINITY } else { f64::NAN };
        if x == 0.0 {
            return InverseSine { asin: 0.0, acos: FRAC_PI_2, im };
        }
        return InverseSine { asin: f64::NAN, acos: f64::NAN, im };
    }
    let (asin, acos) = (libm::atan2(x, y), libm::atan2(y, x));
    InverseSine { asin, acos, im: f64::INFINITY }
}

/// x^y = |x|^y.re e^(-y.im arg x) at the angle y.re arg x + y.im ln |x|.
///
/// 1^y = 1 and x^0 = 1, whatever the other is; so XLA has it (Kahan, "Branch cuts for complex
/// elementary functions", section 10).
pub(crate) fn power(x: C128, y: C128) -> C128 {
    if x == c(1.0, 0.0) || y == c(0.0, 0.0) {
        return c(1.0, 0.0);
    }
    if x == c(0.0, 0.0) {
        // No angle is known, but the magnitude is.
        return if y.re > 0.0 { c(0.0, 0.0) } else { c(f64::NAN, f64::NAN) };
    }
    if x == c(f64::INFINITY, 0.0) && y.im == 0.0 && !y.re.is_nan() {
        return if y.re > 0.0 { x } else { c(0.0, 0.0) };
    }
    let (log_abs, angle) = (log_abs(x), libm::atan2(x.im, x.re));
    if y.im == 0.0 {
        return polar(libm::pow(abs(x), y.re), y.re * angle);
    }
    exp(multiply(y, c(log_abs, angle)))
}

/// -i ln(p / sqrt(p q)) where p = x + iy and q = x - iy, which is XLA's definition, as p q = x² + y².
///
/// The imaginary part is ln(|q| / |p|) / 2, the real part half of the angle from the conjugate of q to
/// p, or that and a half turn: small results would cancel in the quotient, which says only which of the
/// two it is.
pub(crate) fn atan2(y: C128, x: C128) -> C128 {
    // The angle of a point is that of its multiples, of which squares neither over- nor underflow.
    let n = exponent(c(abs_larger(x), abs_larger(y)));
    let (x, y) = (scale(x, -n), scale(y, -n));
    let (p, q) = (add(x, times_i(y)), add(x, over_i(y)));
    let squares = multiply(p, q);
    let norm = sqrt(c(squares.re, sum_of_products([x.re, x.im], [y.re, y.im]) * 2.0));
    let quotient = log(divide(p, norm));
    let finite = [x.re, x.im, y.re, y.im].iter().all(|part| part.is_finite());
    let zero = c(0.0, 0.0);
    if p == zero || q == zero || !finite {
        return over_i(quotient);
    }
    // |q|² = |p|² + 4 d
    let d = sum_of_products([x.re, y.im], [-x.im, y.re]);
    let nearer = if d < 0.0 { q } else { p };
    let (direction, m) = (scale(nearer, -exponent(nearer)), exponent(nearer));
    let quotient_less_1 =
        4.0 * d.abs() / (direction.re * direction.re + direction.im * direction.im);
    let log = if m < -100 {
        libm::log(quotient_less_1) - 2.0 * f64::from(m) * LN_2
    } else {
        libm::log1p(libm::ldexp(quotient_less_1, -2 * m))
    };
    let im = (0.25 * log).copysign(d);
    // The imaginary part with y near 1, as its sign counts where it is nothing beside |x|².
    let (n, unit) = (exponent(y), scale(y, -exponent(y)));
    let side = sum_of_products([x.re, unit.re], [x.im, unit.im]);
    let turn = c(sum_of_products([p.re, q.re], [p.im, q.im]), libm::ldexp(side, n + 1));
    let half = 0.5 * libm::atan2(turn.im, turn.re);
    let re = if (quotient.im - half).abs() < FRAC_PI_2 || (quotient.im - half).abs() > 1.5 * PI {
        half
    } else {
        half - PI.copysign(half)
    };
    // The cut belongs to its upper side.
    c(if half == 0.0 && side == 0.0 { re.abs() } else { re }, im)
}

/// The larger magnitude of the parts.
fn abs_larger(z: C128) -> f64 {
    z.re.abs().max(z.im.abs())
}

/// a b + c d of two pairs, rounded hardly more than once, whatever cancels; of products that are zero or
/// cancel exactly, with the sign that their plain sum has.
fn sum_of_products([a, b]: [f64; 2], [p, q]: [f64; 2]) -> f64 {
    let ((first, first_error), (second, second_error)) =
        (exact::two_product(a, b), exact::two_product(p, q));
    let sum = exact::sum([first_error, second_error, first, second]);
    if sum == 0.0 || !sum.is_finite() { a * b + p * q } else { sum }
}
