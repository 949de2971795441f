//! Element-wise operations on floats of every format, computed in `f64` before they are rounded.

use helio_ir::types::FloatFormat;

pub(crate) fn add(x: f64, y: f64) -> f64 {
    x + y
}

pub(crate) fn subtract(x: f64, y: f64) -> f64 {
    x - y
}

pub(crate) fn multiply(x: f64, y: f64) -> f64 {
    x * y
}

pub(crate) fn divide(x: f64, y: f64) -> f64 {
    x / y
}

/// Of the truncated quotient: C's `fmod`, which is exact.
pub(crate) fn remainder(x: f64, y: f64) -> f64 {
    x % y
}

/// IEEE 754-2019 `maximum`: NaN if either is (the first one's payload), and +0 above -0.
pub(crate) fn maximum(x: f64, y: f64) -> f64 {
    if x.is_nan() || (!y.is_nan() && is_above(x, y)) { x } else { y }
}

/// IEEE 754-2019 `minimum`: NaN if either is (the first one's payload), and -0 below +0.
pub(crate) fn minimum(x: f64, y: f64) -> f64 {
    if x.is_nan() || (!y.is_nan() && is_above(y, x)) { x } else { y }
}

fn is_above(x: f64, y: f64) -> bool {
    x > y || (x == y && y.is_sign_negative())
}

/// NaN if `x` is, -1 or 1, or the zero that `x` is.
pub(crate) fn sign(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 { x } else { 1f64.copysign(x) }
}

/// `libm` forgets that large negative numbers are outside the domain, too.
pub(crate) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

pub(crate) fn rsqrt(x: f64) -> f64 {
    1.0 / x.sqrt()
}

pub(crate) fn logistic(x: f64) -> f64 {
    // Both forms are the same function; neither lets the exponential overflow.
    if x >= 0.0 {
        1.0 / (1.0 + libm::exp(-x))
    } else {
        let e = libm::exp(x);
        e / (1.0 + e)
    }
}

/// C's `pow`, in which 1^x = 1 and x^0 = 1 for NaN, too.
pub(crate) fn power(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// `x`, which is of format `from`, rounded to a format with exponents of `exponent_bits` bits and
/// mantissas of `mantissa_bits` bits, ties to even.
///
/// Overflow gives infinity. If the exponent gets narrower, results below the smallest normal number
/// become zero; else they are rounded like `from`'s own subnormal numbers.
pub(crate) fn reduce_precision(
    x: f64,
    from: FloatFormat,
    exponent_bits: u32,
    mantissa_bits: u32,
) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    // The exponent of the last mantissa bit to keep. Scaling by a power of two is exact here.
    let exponent = libm::ilogb(x).max(from.min_exponent());
    let last = exponent - mantissa_bits.min(from.mantissa_bits) as i32;
    let scaled = libm::ldexp(x, -last);
    // Without mantissa bits the last bit of the result is the exponent's: it decides a tie. It counts
    // with IEEE's bias, which is odd, whatever the bias of `from`.
    let even_exponent = exponent % 2 != 0;
    let rounded = if mantissa_bits == 0 && scaled.abs() == 1.5 && even_exponent {
        1f64.copysign(x)
    } else {
        scaled.round_ties_even()
    };
    let rounded = libm::ldexp(rounded, last);
    if exponent_bits >= from.exponent_bits {
        return rounded;
    }
    let bias = (1 << exponent_bits.saturating_sub(1)) - 1;
    if rounded.abs() < libm::ldexp(1.0, 1 - bias) {
        0f64.copysign(x)
    } else if rounded.abs() >= libm::ldexp(1.0, bias + 1) {
        f64::INFINITY.copysign(x)
    } else {
        rounded
    }
}

/// `x` rounded to a multiple of the last place of the format, or to an integer if there is none:
/// away from zero if `random` is less than the fraction times 2^`random_bits`, else toward zero.
pub(crate) fn round_stochastic(
    x: f64,
    to: Option<FloatFormat>,
    random: u128,
    random_bits: usize,
) -> f64 {
    if !x.is_finite() || x == 0.0 {
        return x;
    }
    let last = to.map_or(0, |format| {
        libm::ilogb(x).max(format.min_exponent()) - format.mantissa_bits as i32
    });
    let scaled = libm::ldexp(x.abs(), -last);
    let whole = scaled.floor();
    let threshold = libm::ldexp(scaled - whole, random_bits as i32) as u128;
    let rounded = if random < threshold { whole + 1.0 } else { whole };
    libm::ldexp(rounded, last).copysign(x)
}
