//! The error function.
//!
//! In 32-bit lanes it comes from a table, or is `1 - e^(-x G(x))` of `|x|`, `G` being a polynomial: that has
//! `erf` from zero on, as `e^y - 1` of a small `y` loses no digits. In 64-bit lanes, near zero it is `x + x P(x²)`; further out
//! `1 - 2^g(|x|)`, where the polynomial `g` is near the binary logarithm of its complement. The complement is
//! small there, and so is what an error of it does.

use super::calc::Calc;
use super::exp::{exp2, expm1_within};
use super::table;
use crate::kernel::{Builder, Cmp, Value};

/// Minimax for `erf x / x - 1` in `x²` up to 1; off by 2^-63 of the function.
const NEAR: &[f64] = &[
    0.128_379_167_095_512_6,
    -0.376_126_389_031_837_5,
    0.112_837_916_709_548_57,
    -0.026_866_170_645_072_893,
    0.005_223_977_624_780_838,
    -0.000_854_832_697_874_062_2,
    0.000_120_553_310_368_449,
    -1.492_559_350_564_505_5e-5,
    1.646_097_279_815_070_8e-6,
    -1.635_002_503_408_705_5e-7,
    1.465_787_865_032_755_5e-8,
    -1.136_566_164_437_458_4e-9,
    5.945_254_923_289_818e-11,
];

/// Minimax for `log₂(1 - erf x)` from 0.98 to 6; the function is then off by 2^-59.
const FAR: &[f64] = &[
    -7.612_489_110_994_524e-08,
    -1.627_906_303_852_679_5,
    -0.918_451_263_764_222_7,
    -0.148_262_111_786_781_36,
    0.027_586_425_398_911_85,
    0.000_305_443_755_908_12,
    -0.002_430_944_797_232_184_8,
    0.000_808_525_688_446_380_9,
    2.478_885_240_588_6e-05,
    -0.000_156_895_346_122_945_62,
    9.274_220_737_059_072e-05,
    -3.511_062_032_115_686e-05,
    9.950_492_805_403_98e-06,
    -2.205_055_492_815_851e-06,
    3.860_228_817_593_324e-07,
    -5.304_660_363_550_263e-08,
    5.611_889_035_005_081e-09,
    -4.413_418_880_622_413e-10,
    2.429_181_343_809_433e-11,
    -8.345_055_291_429_626e-13,
    1.345_577_946_959_212_4e-14,
];

/// `-log(1 - erf x) / x` up to 3.94 is minus this number and a polynomial, which is fitted so that the
/// function is off by no more than 2^-27.
const SLOPE: f64 = -1.128_379_225_730_896;
const FURTHER: &[f64] = &[
    5.408_151_726_449_262e-8,
    -0.636_619_380_958_671_7,
    -0.102_777_838_080_939_57,
    0.019_153_088_711_010_957,
    0.000_160_354_233_851_328_63,
    -0.001_666_988_596_253_554_7,
    0.000_632_816_862_858_376_3,
    -0.000_117_635_960_776_268_92,
    9.255_699_303_489_795e-6,
];

/// For 32-bit lanes; off by at most 1.8 units of the last place.
fn erf_by_power(c: &mut Calc<'_>, x: Value) -> Value {
    let (abs, signs) = (c.abs(x), c.sign(x));
    // Beyond, it rounds to 1.
    let bounded = c.at_most(abs, 3.94);
    // The slope comes last and with what rounding it leaves out, so that the exponent is rounded but once.
    let further = c.poly(bounded, FURTHER);
    let further = c.mul(further, bounded);
    let exponent = c.fma_k(bounded, SLOPE, further);
    let less = expm1_within(c, exponent);
    let result = c.abs(less);
    c.or_sign(result, signs)
}

/// `erf x`
pub(super) fn erf(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    if !c.is_wide() {
        return if c.has_tables() { table::ERF.apply(c, x) } else { erf_by_power(c, x) };
    }
    let (abs, signs) = (c.abs(x), c.sign(x));
    let square = c.mul(x, x);
    let p = c.poly(square, NEAR);
    let near = c.fma(p, x, x);
    // Where it rounds to 1.
    let bounded = c.at_most(abs, 6.0);
    let g = c.poly(bounded, FAR);
    let complement = exp2(c, g);
    let one = c.k(1.0);
    let far = c.sub(one, complement);
    let far = c.or_sign(far, signs);
    let is_near = c.cmp_k(Cmp::Le, abs, 0.99);
    c.select(is_near, near, far)
}
