//! The recipe of `atan2` of complex numbers.

use std::f64::consts::{FRAC_PI_2, LN_2, PI};

use super::super::calc::Calc;
use super::super::{log, trig};
use super::{ComplexParts, exponent_of, is_finite, plain_sum, scaled, sum_of_products};
use crate::kernel::{BinOp, Builder, Cmp, Conv, MaskOp, Value};

/// `-i ln(p / sqrt(p q))`, where `p = x + iy` and `q = x - iy`, so that `p q = x² + y²`.
///
/// The imaginary part is `ln(|q| / |p|) / 2`, where `|q|² = |p|² + 4 d`; the real part, but for a half
/// turn, half the angle of `p` times the conjugate of `q`, whose imaginary part is `2 s`. Both `d` and
/// `s` are sums of two products of the operands' parts. The difference of the angles of `p` and of the
/// root, in which small results cancel, says whether there is that half turn.
pub(crate) fn atan2(b: &mut Builder, y: ComplexParts, x: ComplexParts) -> ComplexParts {
    let c = &mut Calc::new(b, x.0);
    let (x_finite, y_finite) = (is_finite(c, x), is_finite(c, y));
    let finite = c.both(x_finite, y_finite);
    let (zero, infinity, nan) = (c.k(0.0), c.k(f64::INFINITY), c.k(f64::NAN));
    // The angle of a point is that of its multiples.
    let mut parts = [x.0, x.1, y.0, y.1];
    // Twice, so that subnormal numbers come near 1, too.
    for _ in 0..2 {
        let magnitudes = parts.map(|part| c.abs(part)).into_iter();
        let larger = magnitudes.reduce(|a, b| c.b.bin(BinOp::Max, a, b)).expect("four parts");
        let (_, inverse) = exponent_of(c, larger, false);
        let inverse = c.of_bits(inverse);
        parts = parts.map(|part| c.mul(part, inverse));
    }
    let [xr, xi, yr, yi] = parts;
    let (pr, pi) = (c.sub(xr, yi), c.add(xi, yr));
    let (qr, qi) = (c.add(xr, yi), c.sub(xi, yr));
    let (minus_xi, minus_pi) = (c.neg(xi), c.neg(pi));
    let d = signed_sum(c, [xr, yi], [minus_xi, yr]);
    // With y near 1, as its sign counts where it is nothing beside |x|².
    let unit = scaled(c, (yr, yi));
    let s = signed_sum(c, [xr, unit.re], [xi, unit.im]);
    let half_n_im = signed_sum(c, [xr, xi], [yr, yi]);
    let (n_re, n_im) = (sum_of_products(c, [pr, qr], [minus_pi, qi]), c.add(half_n_im, half_n_im));

    // The logarithm of 1 + 4 |d| / |p|² or its inverse: 1 + 4 |d| / |q|², in which nothing cancels.
    let d_negative = c.cmp(Cmp::Lt, d, zero);
    let nearer = (c.select(d_negative, qr, pr), c.select(d_negative, qi, pi));
    let near = scaled(c, nearer);
    let exponent = c.int_k(BinOp::ShrA, near.exponent, c.mantissa().into());
    let exponent = c.int_k(BinOp::Sub, exponent, c.either(127, 1023));
    let exponent = c.b.convert(Conv::Value, c.lane, exponent);
    // Next to a pole the square may be nothing; there, 1 is nothing beside the quotient.
    let at_pole = c.cmp_k(Cmp::Lt, exponent, c.either(-30.0, -60.0));
    let (re, im) = (c.select(at_pole, near.re, nearer.0), c.select(at_pole, near.im, nearer.1));
    let square = c.mul(im, im);
    let square = c.fma(re, re, square);
    let d_abs = c.abs(d);
    let four_d = c.mul_k(d_abs, 4.0);
    let quotient = c.div(four_d, square);
    let less_one = c.add_k(quotient, -1.0);
    let argument = c.select(at_pole, less_one, quotient);
    let log = log::log1p(c.b, argument);
    let minus_twice = c.mul_k(exponent, -2.0);
    let moved = c.fma_k(minus_twice, LN_2, log);
    let log = c.select(at_pole, moved, log);
    let im = c.mul_k(log, 0.25);
    let d_signs = c.sign(d);
    let im = c.or_sign(im, d_signs);

    let product_re = sum_of_products(c, [pr, qr], [pi, qi]);
    let product_im = c.mul(s, unit.power);
    let product_im = c.add(product_im, product_im);
    let half_angle = |c: &mut Calc<'_>, y: Value, x: Value| {
        let angle = trig::atan2(c.b, y, x);
        c.mul_k(angle, 0.5)
    };
    let base = half_angle(c, product_im, product_re);
    let (p_angle, root_angle) = (trig::atan2(c.b, pi, pr), half_angle(c, n_im, n_re));
    let difference = c.sub(p_angle, root_angle);
    let turned = c.sub(difference, base);
    let turned = c.abs(turned);
    let above = c.cmp_k(Cmp::Gt, turned, FRAC_PI_2);
    let below = c.cmp_k(Cmp::Lt, turned, 3.0 * FRAC_PI_2);
    let odd = c.both(above, below);
    let base_signs = c.sign(base);
    let half_turn = c.k(PI);
    let signed_turn = c.or_sign(half_turn, base_signs);
    let opposite = c.sub(base, signed_turn);
    let re = c.select(odd, opposite, base);
    // The cut belongs to its upper side.
    let on_axis = c.select(odd, half_turn, zero);
    let (no_angle, no_side) = (c.cmp(Cmp::Eq, base, zero), c.cmp(Cmp::Eq, s, zero));
    let is_on_axis = c.both(no_angle, no_side);
    let re = c.select(is_on_axis, on_axis, re);

    // At the poles: where q is zero, the angle is that of p divided by zero.
    let is_zero = |c: &mut Calc<'_>, z: ComplexParts| {
        let (re, im) = (c.cmp(Cmp::Eq, z.0, zero), c.cmp(Cmp::Eq, z.1, zero));
        c.both(re, im)
    };
    let (p_zero, q_zero) = (is_zero(c, (pr, pi)), is_zero(c, (qr, qi)));
    let (far_re, far_im) = (c.mul(pr, infinity), c.mul(pi, infinity));
    let far_angle = trig::atan2(c.b, far_im, far_re);
    let re = c.select(q_zero, far_angle, re);
    let known = c.b.mask_op(MaskOp::AndNot, p_zero, finite);
    (c.select(known, re, nan), c.select(known, im, nan))
}

/// `a b + c d`, which as a zero has the sign that rounded products give it.
fn signed_sum(c: &mut Calc<'_>, first: [Value; 2], second: [Value; 2]) -> Value {
    let exact = sum_of_products(c, first, second);
    let plain = plain_sum(c, first, second);
    let zero = c.cmp_k(Cmp::Eq, exact, 0.0);
    c.select(zero, plain, exact)
}
