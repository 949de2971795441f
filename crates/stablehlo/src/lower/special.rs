//! Special functions of `f32` and `f64` as arithmetic, to a few units in the last place.
//!
//! Sources: Lanczos' approximation (g = 7, n = 9) for the gamma function's kin; M. Giles,
//! "Approximating the erfinv function"; the Cephes library's coefficients for erfc and Bessel
//! functions; Euler–Maclaurin summation for the Hurwitz zeta function.

use std::f64::consts::PI;

use helio_ir::ops::Direction;
use helio_ir::{BinaryOp, ElementType, InstrId, Result, UnaryOp};

use super::body::Body;
use super::coefficients::{
    BESSEL_FAR, BESSEL_NEAR, ERF_INV_F32, ERF_INV_F64, ERFC_FAR, ERFC_NEAR, ERFC_P, ERFC_Q, ERFC_R,
    ERFC_S, LANCZOS, LANCZOS_BASE, LANCZOS_G, LGAMMA_NEAR, Range, ZETA,
};

impl Body<'_, '_> {
    /// A polynomial, the coefficient of the highest power first.
    fn polynomial(&mut self, x: InstrId, coefficients: &[f64]) -> Result<InstrId> {
        let mut sum = self.like(x, 0.0)?;
        for (i, &coefficient) in coefficients.iter().enumerate() {
            let coefficient = self.like(x, coefficient)?;
            sum = if i == 0 {
                coefficient
            } else {
                let scaled = self.mul(sum, x)?;
                self.add(scaled, coefficient)?
            };
        }
        Ok(sum)
    }

    /// A series of Chebyshev polynomials, by Clenshaw's recurrence, as Cephes has it.
    fn chebyshev(&mut self, x: InstrId, coefficients: &[f64]) -> Result<InstrId> {
        let zero = self.like(x, 0.0)?;
        let (mut b0, mut b1, mut b2) = (zero, zero, zero);
        for &coefficient in coefficients {
            (b2, b1) = (b1, b0);
            let scaled = self.mul(x, b1)?;
            let rest = self.sub(scaled, b2)?;
            let coefficient = self.like(x, coefficient)?;
            b0 = self.add(rest, coefficient)?;
        }
        let difference = self.sub(b0, b2)?;
        let half = self.like(x, 0.5)?;
        self.mul(half, difference)
    }

    fn below(&mut self, x: InstrId, bound: f64) -> Result<InstrId> {
        let bound = self.like(x, bound)?;
        self.compare(Direction::Lt, x, bound)
    }

    fn plus(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        let value = self.like(x, value)?;
        self.add(x, value)
    }

    fn times(&mut self, x: InstrId, value: f64) -> Result<InstrId> {
        let value = self.like(x, value)?;
        self.mul(x, value)
    }

    /// What lgamma and digamma begin with: whether to reflect, the argument `z` of the gamma function
    /// of `z + 1`, and the logarithm of `z + g + 1/2`.
    fn lanczos(&mut self, x: InstrId) -> Result<[InstrId; 4]> {
        let reflect = self.below(x, 0.5)?;
        let (negated, less) = (self.unary(UnaryOp::Negate, x)?, self.plus(x, -1.0)?);
        let z = self.select(reflect, negated, less)?;
        let shift = LANCZOS_G + 0.5;
        let t = self.plus(z, shift)?;
        let divisor = self.like(z, shift)?;
        let ratio = self.div(z, divisor)?;
        let log = self.unary(UnaryOp::Log1p, ratio)?;
        let log_t = self.plus(log, shift.ln())?;
        Ok([reflect, z, t, log_t])
    }

    /// The logarithm of the magnitude of the gamma function.
    pub(super) fn lgamma(&mut self, x: InstrId) -> Result<InstrId> {
        let [reflect, z, t, log_t] = self.lanczos(x)?;
        let mut sum = self.like(z, LANCZOS_BASE)?;
        for (i, &coefficient) in LANCZOS.iter().enumerate() {
            let divisor = self.plus(z, i as f64 + 1.0)?;
            let coefficient = self.like(z, coefficient)?;
            let term = self.div(coefficient, divisor)?;
            sum = self.add(sum, term)?;
        }
        // (z + 1/2) log t - t, in a form that does not cancel for large z.
        let ratio = self.div(t, log_t)?;
        let half = self.plus(z, 0.5)?;
        let factor = self.sub(half, ratio)?;
        let product = self.mul(factor, log_t)?;
        let shifted = self.plus(product, (2.0 * PI).ln() / 2.0)?;
        let log_sum = self.unary(UnaryOp::Log, sum)?;
        let log_y = self.add(shifted, log_sum)?;
        // log(π / sin(π |x|)) - log_y, with the sine of the distance to the nearest integer.
        let magnitude = self.unary(UnaryOp::Abs, x)?;
        let whole = self.unary(UnaryOp::Floor, magnitude)?;
        let part = self.sub(magnitude, whole)?;
        let half = self.like(x, 0.5)?;
        let beyond = self.compare(Direction::Gt, part, half)?;
        let one = self.like(x, 1.0)?;
        let rest = self.sub(one, part)?;
        let part = self.select(beyond, rest, part)?;
        let angle = self.times(part, PI)?;
        let sine = self.unary(UnaryOp::Sin, angle)?;
        let log_sine = self.unary(UnaryOp::Log, sine)?;
        let log_pi = self.like(x, PI.ln())?;
        let difference = self.sub(log_pi, log_sine)?;
        let reflected = self.sub(difference, log_y)?;
        let pole = self.unary(UnaryOp::Negate, log_sine)?;
        let finite = self.unary(UnaryOp::IsFinite, log_sine)?;
        let reflected = self.select(finite, reflected, pole)?;
        let result = self.select(reflect, reflected, log_y)?;
        let result = self.lgamma_near_zeros(x, result)?;
        let infinity = self.like(x, f64::INFINITY)?;
        let endless = self.compare(Direction::Eq, magnitude, infinity)?;
        self.select(endless, infinity, result)
    }

    /// log Γ between 1/2 and 5/2, where it vanishes at 1 and at 2, and `elsewhere` outside: the series around
    /// 2, of which log1p takes that around 1, is exact to its last digits at both.
    fn lgamma_near_zeros(&mut self, x: InstrId, elsewhere: InstrId) -> Result<InstrId> {
        let is_lower = self.below(x, 1.5)?;
        let (one, two) = (self.like(x, 1.0)?, self.like(x, 2.0)?);
        let root = self.select(is_lower, one, two)?;
        let z = self.sub(x, root)?;
        // In single precision the last terms do not matter.
        let is_double = self.element(x)? == ElementType::F64;
        let terms = if is_double { &LGAMMA_NEAR[..] } else { &LGAMMA_NEAR[14..] };
        let series = self.polynomial(z, terms)?;
        let upper = self.mul(z, series)?;
        let log = self.unary(UnaryOp::Log1p, z)?;
        let lower = self.sub(upper, log)?;
        let near = self.select(is_lower, lower, upper)?;
        let half = self.like(x, 0.5)?;
        let starts = self.compare(Direction::Ge, x, half)?;
        let ends = self.below(x, 2.5)?;
        let is_near = self.binary(BinaryOp::And, starts, ends)?;
        self.select(is_near, near, elsewhere)
    }

    /// The derivative of the logarithm of the gamma function.
    pub(super) fn digamma(&mut self, x: InstrId) -> Result<InstrId> {
        let [reflect, z, t, log_t] = self.lanczos(x)?;
        let (mut numerator, mut denominator) = (self.like(z, 0.0)?, self.like(z, LANCZOS_BASE)?);
        for (i, &coefficient) in LANCZOS.iter().enumerate() {
            let divisor = self.plus(z, i as f64 + 1.0)?;
            let coefficient = self.like(z, coefficient)?;
            let square = self.mul(divisor, divisor)?;
            let term = self.div(coefficient, square)?;
            numerator = self.sub(numerator, term)?;
            let term = self.div(coefficient, divisor)?;
            denominator = self.add(denominator, term)?;
        }
        let ratio = self.div(numerator, denominator)?;
        let g = self.like(z, LANCZOS_G)?;
        let last = self.div(g, t)?;
        let sum = self.add(log_t, ratio)?;
        let y = self.sub(sum, last)?;
        // y - π cot(π x), with x reduced by an integer first.
        let near = self.plus(x, 0.5)?;
        let near = self.unary(UnaryOp::Floor, near)?;
        let near = self.unary(UnaryOp::Abs, near)?;
        let reduced = self.add(x, near)?;
        let angle = self.times(reduced, PI)?;
        let (cosine, sine) = (self.unary(UnaryOp::Cos, angle)?, self.unary(UnaryOp::Sin, angle)?);
        let scaled = self.times(cosine, PI)?;
        let cotangent = self.div(scaled, sine)?;
        let reflected = self.sub(y, cotangent)?;
        let result = self.select(reflect, reflected, y)?;
        let zero = self.like(x, 0.0)?;
        let low = self.compare(Direction::Le, x, zero)?;
        let whole = self.unary(UnaryOp::Floor, x)?;
        let is_whole = self.compare(Direction::Eq, x, whole)?;
        let pole = self.binary(BinaryOp::And, low, is_whole)?;
        let nan = self.like(x, f64::NAN)?;
        self.select(pole, nan, result)
    }

    /// The inverse of the error function.
    pub(super) fn erf_inv(&mut self, x: InstrId) -> Result<InstrId> {
        let negated = self.unary(UnaryOp::Negate, x)?;
        let square = self.mul(x, negated)?;
        let log = self.unary(UnaryOp::Log1p, square)?;
        let w = self.unary(UnaryOp::Negate, log)?;
        let root = self.unary(UnaryOp::Sqrt, w)?;
        let is_double = self.element(x)? == ElementType::F64;
        let ranges: &[Range] = if is_double { &ERF_INV_F64 } else { &ERF_INV_F32 };
        let mut result = self.like(x, 0.0)?;
        for (i, range) in ranges.iter().rev().enumerate() {
            let from = if range.of_root { root } else { w };
            let shifted = self.plus(from, -range.shift)?;
            let value = self.polynomial(shifted, range.coefficients)?;
            result = if i == 0 {
                value
            } else {
                let inside = self.below(w, range.below)?;
                self.select(inside, value, result)?
            };
        }
        let result = self.mul(result, x)?;
        let magnitude = self.unary(UnaryOp::Abs, x)?;
        let one = self.like(x, 1.0)?;
        let at_end = self.compare(Direction::Eq, magnitude, one)?;
        let endless = self.times(x, f64::INFINITY)?;
        self.select(at_end, endless, result)
    }

    /// One minus the error function, without losing digits where that is near one.
    pub(super) fn erfc(&mut self, x: InstrId) -> Result<InstrId> {
        let magnitude = self.unary(UnaryOp::Abs, x)?;
        let square = self.mul(x, x)?;
        let exponent = self.unary(UnaryOp::Negate, square)?;
        let power = self.unary(UnaryOp::Exp, exponent)?;
        let tail = if self.element(x)? == ElementType::F64 {
            let near = self.ratio_of(magnitude, &ERFC_P, &ERFC_Q)?;
            let far = self.ratio_of(magnitude, &ERFC_R, &ERFC_S)?;
            let is_near = self.below(magnitude, 8.0)?;
            let ratio = self.select(is_near, near, far)?;
            self.mul(power, ratio)?
        } else {
            let one = self.like(x, 1.0)?;
            let inverse = self.div(one, magnitude)?;
            let y = self.mul(inverse, inverse)?;
            let (near, far) = (self.polynomial(y, &ERFC_NEAR)?, self.polynomial(y, &ERFC_FAR)?);
            let is_near = self.below(magnitude, 2.0)?;
            let value = self.select(is_near, near, far)?;
            let scaled = self.mul(power, inverse)?;
            self.mul(scaled, value)?
        };
        // Infinity times zero, beyond where the power vanishes.
        let zero = self.like(x, 0.0)?;
        let vanished = self.compare(Direction::Eq, power, zero)?;
        let tail = self.select(vanished, zero, tail)?;
        let two = self.like(x, 2.0)?;
        let other = self.sub(two, tail)?;
        let negative = self.below(x, 0.0)?;
        let outer = self.select(negative, other, tail)?;
        let erf = self.unary(UnaryOp::Erf, x)?;
        let one = self.like(x, 1.0)?;
        let inner = self.sub(one, erf)?;
        let inside = self.below(magnitude, 1.0)?;
        self.select(inside, inner, outer)
    }

    fn ratio_of(&mut self, x: InstrId, above: &[f64], below: &[f64]) -> Result<InstrId> {
        let (above, below) = (self.polynomial(x, above)?, self.polynomial(x, below)?);
        self.div(above, below)
    }

    /// `exp(-|x|) I1(x)`, the modified Bessel function of order one, scaled.
    pub(super) fn bessel_i1e(&mut self, x: InstrId) -> Result<InstrId> {
        let is_double = self.element(x)? == ElementType::F64;
        // In single precision the first coefficients do not matter.
        let (near, far) = match is_double {
            true => (&BESSEL_NEAR[..], &BESSEL_FAR[..]),
            false => (&BESSEL_NEAR[12..], &BESSEL_FAR[18..]),
        };
        let magnitude = self.unary(UnaryOp::Abs, x)?;
        let half = self.times(magnitude, 0.5)?;
        let argument = self.plus(half, -2.0)?;
        let series = self.chebyshev(argument, near)?;
        let inner = self.mul(magnitude, series)?;
        let scale = self.like(x, 32.0)?;
        let inverse = self.div(scale, magnitude)?;
        let argument = self.plus(inverse, -2.0)?;
        let series = self.chebyshev(argument, far)?;
        let root = self.unary(UnaryOp::Sqrt, magnitude)?;
        let outer = self.div(series, root)?;
        let eight = self.like(x, 8.0)?;
        let inside = self.compare(Direction::Le, magnitude, eight)?;
        let result = self.select(inside, inner, outer)?;
        // An odd function, also at -0.
        let sign = self.unary(UnaryOp::Sign, x)?;
        self.mul(sign, result)
    }

    /// The Hurwitz zeta function: the sum of `(q + k)^-s` for all k.
    pub(super) fn zeta(&mut self, s: InstrId, q: InstrId) -> Result<InstrId> {
        const TERMS: usize = 9;
        let negated = self.unary(UnaryOp::Negate, s)?;
        let mut sum = self.binary(BinaryOp::Power, q, negated)?;
        let mut a = q;
        for _ in 0..TERMS {
            a = self.plus(a, 1.0)?;
            let term = self.binary(BinaryOp::Power, a, negated)?;
            sum = self.add(sum, term)?;
        }
        let term = self.binary(BinaryOp::Power, a, negated)?;
        let less = self.plus(s, -1.0)?;
        let scaled = self.mul(term, a)?;
        let integral = self.div(scaled, less)?;
        let whole = self.add(sum, integral)?;
        let half = self.times(term, 0.5)?;
        let whole = self.sub(whole, half)?;
        // The powers of 1 / a grow with those of s from the inside out: apart, either would overflow.
        let one = self.like(s, 1.0)?;
        let inverse = self.div(one, a)?;
        let square = self.mul(inverse, inverse)?;
        let mut inner = self.like(s, 0.0)?;
        for (i, divisor) in ZETA.iter().enumerate().rev() {
            let k = 2.0 * i as f64;
            let (first, second) = (self.plus(s, k + 1.0)?, self.plus(s, k + 2.0)?);
            let product = self.mul(first, second)?;
            let factor = self.mul(product, square)?;
            inner = self.mul(factor, inner)?;
            inner = self.plus(inner, 1.0 / divisor)?;
        }
        let scaled = self.mul(s, term)?;
        let scaled = self.mul(scaled, inverse)?;
        let correction = self.mul(scaled, inner)?;
        let whole = self.add(whole, correction)?;
        // Where the last term and all that follow it do not matter, factors of corrections may overflow.
        let (last, rest) = (self.unary(UnaryOp::Abs, term)?, self.unary(UnaryOp::Abs, integral)?);
        let (size, size_of_sum) = (self.add(last, rest)?, self.unary(UnaryOp::Abs, sum)?);
        let epsilon = if self.element(s)? == ElementType::F64 { f64::EPSILON } else { 1e-7 };
        let least = self.times(size_of_sum, epsilon)?;
        let is_enough = self.compare(Direction::Le, size, least)?;
        sum = self.select(is_enough, sum, whole)?;
        self.zeta_domain(s, q, sum)
    }

    /// Where the sum is not the function: at its poles, and where it has no real value. At a pole of
    /// `q`, an even power has infinity on both sides, others differ by the side.
    fn zeta_domain(&mut self, s: InstrId, q: InstrId, sum: InstrId) -> Result<InstrId> {
        let nan = self.like(s, f64::NAN)?;
        let infinity = self.like(s, f64::INFINITY)?;
        let (zero, one, two) = (self.like(s, 0.0)?, self.like(s, 1.0)?, self.like(s, 2.0)?);
        let low = self.compare(Direction::Le, q, zero)?;
        let (whole_q, whole_s) = (self.unary(UnaryOp::Floor, q)?, self.unary(UnaryOp::Floor, s)?);
        let is_whole = self.compare(Direction::Eq, q, whole_q)?;
        let at_pole = self.binary(BinaryOp::And, low, is_whole)?;
        let odd = self.binary(BinaryOp::Remainder, s, two)?;
        let is_even = self.compare(Direction::Eq, odd, zero)?;
        let pole = self.select(is_even, infinity, nan)?;
        let part = self.compare(Direction::Ne, s, whole_s)?;
        let not_real = self.binary(BinaryOp::And, low, part)?;
        let below = self.below(s, 1.0)?;
        let undefined = self.binary(BinaryOp::Or, not_real, below)?;
        let sum = self.select(undefined, nan, sum)?;
        let sum = self.select(at_pole, pole, sum)?;
        let at_one = self.compare(Direction::Eq, s, one)?;
        self.select(at_one, infinity, sum)
    }

    /// The n-th derivative of the digamma function.
    pub(super) fn polygamma(&mut self, n: InstrId, x: InstrId) -> Result<InstrId> {
        let next = self.plus(n, 1.0)?;
        let log = self.lgamma(next)?;
        let factorial = self.unary(UnaryOp::Exp, log)?;
        let zeta = self.zeta(next, x)?;
        let product = self.mul(factorial, zeta)?;
        let two = self.like(n, 2.0)?;
        let odd = self.binary(BinaryOp::Remainder, n, two)?;
        let one = self.like(n, 1.0)?;
        let is_odd = self.compare(Direction::Eq, odd, one)?;
        let negated = self.unary(UnaryOp::Negate, product)?;
        let result = self.select(is_odd, product, negated)?;
        let digamma = self.digamma(x)?;
        let zero = self.like(n, 0.0)?;
        let is_zero = self.compare(Direction::Eq, n, zero)?;
        let result = self.select(is_zero, digamma, result)?;
        let whole = self.unary(UnaryOp::Floor, n)?;
        let part = self.compare(Direction::Ne, n, whole)?;
        let negative = self.below(n, 0.0)?;
        let bad = self.binary(BinaryOp::Or, part, negative)?;
        let nan = self.like(n, f64::NAN)?;
        self.select(bad, nan, result)
    }
}
