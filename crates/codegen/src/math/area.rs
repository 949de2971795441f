//! The inverse hyperbolic functions, as logarithms of sums whose rounding errors are kept.

use super::calc::Calc;
use super::log::{log_of_multiple, log1p_sum};
use crate::kernel::{Builder, Cmp, Value};

/// A quotient and what its rounding leaves out.
fn quotient(c: &mut Calc<'_>, a: Value, b: Value) -> (Value, Value) {
    let q = c.div(a, b);
    let rest = c.fnma(q, b, a);
    (q, c.div(rest, b))
}

/// `ln(|x| + sqrt(x² + 1))` with the sign of `x`, as `ln(1 + u)` of
/// `u = |x| + x² / (1 + sqrt(x² + 1))`; for large `x`, whose square overflows, as `ln 2|x|`.
pub(super) fn asinh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let limit = c.either(2f64.powi(14), 2f64.powi(30));
    let one = c.k(1.0);
    let bounded = c.at_most(abs, limit);
    let square = c.mul(bounded, bounded);
    let sum = c.add(square, one);
    let root = c.sqrt(sum);
    let denominator = c.add(root, one);
    let q = c.div(square, denominator);
    let (u, rest) = c.two_sum(bounded, q);
    let near = log1p_sum(c, u, rest);
    let far = log_of_multiple(c, abs, 1.0);
    let is_large = c.cmp_k(Cmp::Ge, abs, limit);
    let result = c.select(is_large, far, near);
    c.or_sign(result, signs)
}

/// `ln(x + sqrt(x² - 1))`, as `ln(1 + u)` of `u = t + sqrt(t (t + 2))`, `t = x - 1`.
pub(super) fn acosh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let limit = c.either(2f64.powi(14), 2f64.powi(30));
    let t = c.add_k(x, -1.0);
    let t = c.at_most(t, limit);
    let two = c.k(2.0);
    let (more, more_error) = c.two_sum(two, t);
    let square = c.product(t, more);
    let root = c.sqrt(square.high);
    // What rounding has taken from the square is, over twice the root, what the root lacks.
    let missing = c.fnma(root, root, square.high);
    let missing = c.add(missing, square.low);
    let missing = c.fma(t, more_error, missing);
    let twice = c.add(root, root);
    let twice = c.at_least(twice, 1e-30);
    let missing = c.div(missing, twice);
    let (u, rest) = c.two_sum(t, root);
    let rest = c.add(rest, missing);
    let near = log1p_sum(c, u, rest);
    let far = log_of_multiple(c, x, 1.0);
    let is_large = c.cmp_k(Cmp::Ge, x, limit);
    let result = c.select(is_large, far, near);
    // The root of a negative number times another is one.
    let inside = c.cmp_k(Cmp::Ge, x, 1.0);
    let nan = c.k(f64::NAN);
    c.select(inside, result, nan)
}

/// Minimax for `(atanh x - x) / x³` in `x²`, `x` up to 0.36; off by 2^-31 and 2^-71.
const ATANH32: &[f64] = &[
    0.333_333_434_169_468_15,
    0.199_989_146_704_425_89,
    0.143_233_963_891_607_78,
    0.105_480_030_748_785_91,
    0.127_777_868_914_701_75,
];
const ATANH64: &[f64] = &[
    0.333_333_333_333_333_3,
    0.199_999_999_999_999_7,
    0.142_857_142_857_205_9,
    0.111_111_111_104_395_92,
    0.090_909_091_330_386_34,
    0.076_923_059_970_536_3,
    0.066_667_126_249_842_63,
    0.058_814_905_892_303_156,
    0.052_744_700_679_506_894,
    0.046_588_279_504_967_81,
    0.049_826_166_359_300_435,
    0.015_201_232_243_276_156,
    0.089_867_887_202_328_95,
];

/// A polynomial near zero; further out `ln((1 + |x|) / (1 - |x|)) / 2`, as `ln(1 + u) / 2` of `u = 2|x| / (1 - |x|)`.
pub(super) fn atanh(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let (one, twice) = (c.k(1.0), c.add(abs, abs));
    let denominator = c.sub(one, abs);
    let (u, rest) = quotient(c, twice, denominator);
    // What the difference from one was rounded by, if |x| is small.
    let kept = c.sub(one, denominator);
    let error = c.sub(abs, kept);
    let share = c.mul(u, error);
    let share = c.div(share, denominator);
    let rest = c.add(rest, share);
    // At 1 both are infinite, and their error is not a number.
    let inside = c.cmp_k(Cmp::Lt, abs, 1.0);
    let zero = c.k(0.0);
    let rest = c.select(inside, rest, zero);
    let log = log1p_sum(c, u, rest);
    let half = c.mul_k(log, 0.5);
    let far = c.or_sign(half, signs);
    let near = c.odd(x, c.either(ATANH32, ATANH64));
    let is_near = c.cmp_k(Cmp::Lt, abs, 0.35);
    c.select(is_near, near, far)
}
