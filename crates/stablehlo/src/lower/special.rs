//! Special functions of `f32` and `f64` as arithmetic, to a few units in the last place.
//!
//! Sources: Lanczos' approximation (g = 7, n = 9) for the gamma function's kin; M. Giles,
//! "Approximating the erfinv function"; the Cephes library's coefficients for erfc and Bessel
//! functions; Euler–Maclaurin summation for the Hurwitz zeta function.

use std::f64::consts::PI;

use helio_ir::ops::Direction;
use helio_ir::{BinaryOp, ElementType, InstrId, Result, UnaryOp};

use super::body::Body;

const LANCZOS_G: f64 = 7.0;
const LANCZOS_BASE: f64 = 0.999_999_999_999_809_9;
const LANCZOS: [f64; 8] = [
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];

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
        let infinity = self.like(x, f64::INFINITY)?;
        let endless = self.compare(Direction::Eq, magnitude, infinity)?;
        self.select(endless, infinity, result)
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
        let negated = self.unary(UnaryOp::Negate, result)?;
        let negative = self.below(x, 0.0)?;
        self.select(negative, negated, result)
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
        sum = self.add(sum, integral)?;
        let half = self.times(term, 0.5)?;
        sum = self.sub(sum, half)?;
        let (mut factor, mut power) = (self.like(s, 1.0)?, self.div(term, a)?);
        let mut k = 0.0;
        for coefficient in ZETA {
            let next = self.plus(s, k)?;
            factor = self.mul(factor, next)?;
            let product = self.mul(factor, power)?;
            let coefficient = self.like(s, coefficient)?;
            let part = self.div(product, coefficient)?;
            sum = self.add(sum, part)?;
            let next = self.plus(s, k + 1.0)?;
            factor = self.mul(factor, next)?;
            let square = self.mul(a, a)?;
            power = self.div(power, square)?;
            k += 2.0;
        }
        self.zeta_domain(s, q, sum)
    }

    /// Where the sum is not the function: at its pole, and where it has no real value.
    fn zeta_domain(&mut self, s: InstrId, q: InstrId, sum: InstrId) -> Result<InstrId> {
        let nan = self.like(s, f64::NAN)?;
        let infinity = self.like(s, f64::INFINITY)?;
        let zero = self.like(q, 0.0)?;
        let low = self.compare(Direction::Le, q, zero)?;
        let (whole_q, whole_s) = (self.unary(UnaryOp::Floor, q)?, self.unary(UnaryOp::Floor, s)?);
        let is_whole = self.compare(Direction::Eq, q, whole_q)?;
        let at_pole = self.binary(BinaryOp::And, low, is_whole)?;
        let part = self.compare(Direction::Ne, s, whole_s)?;
        let negative = self.below(q, 0.0)?;
        let not_real = self.binary(BinaryOp::And, negative, part)?;
        let sum = self.select(at_pole, infinity, sum)?;
        let sum = self.select(not_real, nan, sum)?;
        let below = self.below(s, 1.0)?;
        let sum = self.select(below, nan, sum)?;
        let one = self.like(s, 1.0)?;
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

/// A polynomial for part of the range of `w = -log(1 - x²)`: of `w - shift`, or of its root.
struct Range {
    below: f64,
    of_root: bool,
    shift: f64,
    coefficients: &'static [f64],
}

const ERF_INV_F32: [Range; 2] = [
    Range {
        below: 5.0,
        of_root: false,
        shift: 2.5,
        coefficients: &[
            2.81022636e-08,
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ],
    },
    Range {
        below: f64::INFINITY,
        of_root: true,
        shift: 3.0,
        coefficients: &[
            -0.000200214257,
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ],
    },
];

const ERF_INV_F64: [Range; 3] = [
    Range {
        below: 6.25,
        of_root: false,
        shift: 3.125,
        coefficients: &[
            -3.64441206401782e-21,
            -1.6850591381820166e-19,
            1.28584807152564e-18,
            1.1157877678025181e-17,
            -1.333171662854621e-16,
            2.0972767875968562e-17,
            6.637638134358324e-15,
            -4.054566272975207e-14,
            -8.151934197605472e-14,
            2.6335093153082323e-12,
            -1.2975133253453532e-11,
            -5.415412054294628e-11,
            1.0512122733215323e-09,
            -4.112633980346984e-09,
            -2.9070369957882005e-08,
            4.2347877827932404e-07,
            -1.3654692000834679e-06,
            -1.3882523362786469e-05,
            0.00018673420803405714,
            -0.000740702534166267,
            -0.006033670871430149,
            0.24015818242558962,
            1.6536545626831027,
        ],
    },
    Range {
        below: 16.0,
        of_root: true,
        shift: 3.25,
        coefficients: &[
            2.2137376921775787e-09,
            9.075656193888539e-08,
            -2.7517406297064545e-07,
            1.8239629214389228e-08,
            1.5027403968909828e-06,
            -4.013867526981546e-06,
            2.9234449089955446e-06,
            1.2475304481671779e-05,
            -4.7318229009055734e-05,
            6.828485145957318e-05,
            2.4031110387097894e-05,
            -0.0003550375203628475,
            0.0009532893797373805,
            -0.0016882755560235047,
            0.002491442096107851,
            -0.003751208507569241,
            0.005370914553590064,
            1.0052589676941592,
            3.0838856104922208,
        ],
    },
    Range {
        below: f64::INFINITY,
        of_root: true,
        shift: 5.0,
        coefficients: &[
            -2.7109920616438573e-11,
            -2.555641816996525e-10,
            1.5076572693500548e-09,
            -3.789465440126737e-09,
            7.61570120807834e-09,
            -1.496002662714924e-08,
            2.914795345090108e-08,
            -6.771199775845234e-08,
            2.2900482228026655e-07,
            -9.9298272942317e-07,
            4.526062597223154e-06,
            -1.968177810553167e-05,
            7.599527703001776e-05,
            -0.00021503011930044477,
            -0.00013871931833623122,
            1.0103004648645344,
            4.849906401408584,
        ],
    },
];

/// erfc of 1 to 2, as a polynomial of 1/x²; in single precision.
const ERFC_NEAR: [f64; 9] = [
    0.02326819970068386,
    -0.1387039388740657,
    0.3687424674597105,
    -0.5824733027278666,
    0.6210004621745983,
    -0.4944515323274145,
    0.3404879937665872,
    -0.2741127028184656,
    0.5638259427386472,
];

/// erfc beyond 2; in single precision.
const ERFC_FAR: [f64; 8] = [
    -10.47766399936249,
    12.97719955372516,
    -7.495518717768503,
    2.921019019210786,
    -1.0152652792027,
    0.4218463358204948,
    -0.2820767439740514,
    0.5641895067754075,
];

/// erfc of 1 to 8, the numerator; in double precision.
const ERFC_P: [f64; 9] = [
    2.461969814735305e-10,
    0.5641895648310689,
    7.463210564422699,
    48.63719709856814,
    196.5208329560771,
    526.4451949954773,
    934.5285271719576,
    1027.5518868951572,
    557.5353353693994,
];

/// erfc of 1 to 8, the denominator.
const ERFC_Q: [f64; 9] = [
    1.0,
    13.228195115474499,
    86.70721408859897,
    354.9377788878199,
    975.7085017432055,
    1823.9091668790973,
    2246.3376081871097,
    1656.6630919416134,
    557.5353408177277,
];

/// erfc beyond 8, the numerator.
const ERFC_R: [f64; 6] = [
    0.5641895835477551,
    1.275366707599781,
    5.019050422511805,
    6.160210979930536,
    7.4097426995044895,
    2.9788666537210022,
];

/// erfc beyond 8, the denominator.
const ERFC_S: [f64; 7] = [
    1.0,
    2.2605286322011726,
    9.396035249380015,
    12.048953980809666,
    17.08144507475659,
    9.608968090632859,
    3.369076451000815,
];

/// The Bessel function up to 8.
const BESSEL_NEAR: [f64; 29] = [
    2.7779141127610464e-18,
    -2.111421214358166e-17,
    1.5536319577362005e-16,
    -1.1055969477353862e-15,
    7.600684294735408e-15,
    -5.042185504727912e-14,
    3.223793365945575e-13,
    -1.9839743977649436e-12,
    1.1736186298890901e-11,
    -6.663489723502027e-11,
    3.625590281552117e-10,
    -1.8872497517228294e-09,
    9.381537386495773e-09,
    -4.445059128796328e-08,
    2.0032947535521353e-07,
    -8.568720264695455e-07,
    3.4702513081376785e-06,
    -1.3273163656039436e-05,
    4.781565107550054e-05,
    -0.00016176081582589674,
    0.0005122859561685758,
    -0.0015135724506312532,
    0.004156422944312888,
    -0.010564084894626197,
    0.024726449030626516,
    -0.05294598120809499,
    0.1026436586898471,
    -0.17641651835783406,
    0.25258718644363365,
];

/// The Bessel function beyond 8.
const BESSEL_FAR: [f64; 25] = [
    7.517296310842105e-18,
    4.414348323071708e-18,
    -4.6503053684893586e-17,
    -3.209525921993424e-17,
    2.96262899764595e-16,
    3.3082023109209285e-16,
    -1.8803547755107825e-15,
    -3.8144030724370075e-15,
    1.0420276984128802e-14,
    4.272440016711951e-14,
    -2.1015418427726643e-14,
    -4.0835511110921974e-13,
    -7.198551776245908e-13,
    2.0356285441470896e-12,
    1.4125807436613782e-11,
    3.2526035830154884e-11,
    -1.8974958123505413e-11,
    -5.589743462196584e-10,
    -3.835380385964237e-09,
    -2.6314688468895196e-08,
    -2.512236237870209e-07,
    -3.882564808877691e-06,
    -0.00011058893876262371,
    -0.009761097491361469,
    0.7785762350182801,
];

/// (2k)! over the Bernoulli number 2k.
const ZETA: [f64; 12] = [
    12.0,
    -720.0,
    30240.0,
    -1209600.0,
    47900160.0,
    -1892437580.3183792,
    74724249600.0,
    -2950130727918.164,
    116467828143500.67,
    -4597978722407473.0,
    1.8152105401943546e+17,
    -7.166165256175667e+18,
];
