//! The remainder of floats, which is exact.

use super::calc::Calc;
use crate::kernel::{BinOp, Builder, Cmp, UnOp, Value};

/// `x - y trunc(x / y)`, with the sign of `x`.
pub(super) fn rem(b: &mut Builder, x: Value, y: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (ax, ay) = (c.abs(x), c.abs(y));
    let finite = c.cmp_k(Cmp::Lt, ax, f64::INFINITY);
    let divisor = c.cmp_k(Cmp::Gt, ay, 0.0);
    let valid = c.both(finite, divisor);
    let (zero, one, nan) = (c.k(0.0), c.k(1.0), c.k(f64::NAN));
    let r = c.select(valid, ax, zero);
    let d = c.select(valid, ay, one);
    // The exponents of subnormal divisors are not in their bits: first the remainder of a multiple
    // of such a divisor, then both scaled.
    let (least, up) = c.either((2f64.powi(-100), 100), (2f64.powi(-900), 200));
    let small = c.cmp_k(Cmp::Lt, d, least);
    let multiple = c.mul_k(d, 2f64.powi(up));
    let d = c.select(small, multiple, d);
    let first = reduce(c, r, d);
    let scaled = c.mul_k(first, 2f64.powi(up));
    let second = c.select(small, scaled, first);
    let second = reduce(c, second, d);
    let unscaled = c.mul_k(second, 2f64.powi(-up));
    let r = c.select(small, unscaled, second);
    let signs = c.sign(x);
    let r = c.or_sign(r, signs);
    c.select(valid, r, nan)
}

/// The remainder of finite `r` by normal `d`, neither negative.
///
/// Each time a multiple of `d 2^k` is taken away, `k` such that the quotient has fewer bits than a
/// float: that is exact, because the difference is a multiple of the last place of `d 2^k`.
fn reduce(c: &mut Calc<'_>, r: Value, d: Value) -> Value {
    let lane = c.lane;
    let last = c.b.while_loop(
        &[r],
        |b, state| {
            let more = b.compare(Cmp::Ge, state[0], d);
            b.mask_any(more)
        },
        |b, state| {
            let c = &mut Calc { b, lane };
            let r = state[0];
            let mantissa = i64::from(c.mantissa());
            let (r_bits, d_bits) = (c.bits(r), c.bits(d));
            let [r_exponent, d_exponent] =
                [r_bits, d_bits].map(|bits| c.int_k(BinOp::ShrL, bits, mantissa));
            let distance = c.b.sub(r_exponent, d_exponent);
            let excess = c.int_k(BinOp::Sub, distance, mantissa - 2);
            let zero = c.int(0);
            let excess = c.b.bin(BinOp::Max, excess, zero);
            let excess = c.int_k(BinOp::Shl, excess, mantissa);
            let multiple = c.b.add(d_bits, excess);
            let multiple = c.of_bits(multiple);
            let quotient = c.div(r, multiple);
            let whole = c.b.un(UnOp::Trunc, quotient);
            let rest = c.fnma(whole, multiple, r);
            // The rounded quotient may be the next integer.
            let negative = c.cmp_k(Cmp::Lt, rest, 0.0);
            let corrected = c.add(rest, multiple);
            let rest = c.select(negative, corrected, rest);
            let more = c.cmp(Cmp::Ge, r, d);
            vec![c.select(more, rest, r)]
        },
    );
    last[0]
}
