//! The error function.
//!
//! Near zero it is `x + x P(x²)`; further out `1 - e^g(|x|)`, where the polynomial `g` is near the
//! logarithm of its complement. The complement is small there, and so is what an error of it does.

use super::calc::Calc;
use super::exp::exp_within;
use crate::kernel::{Builder, Cmp, Value};

/// Minimax for `erf x / x - 1` in `x²` up to 0.93 and to 1; off by 2^-26 and 2^-63 of the function.
const NEAR32: &[f64] = &[
    0.128_379_147_689_794_28,
    -0.376_124_811_004_083_57,
    0.112_816_825_554_610_85,
    -0.026_761_720_524_898_017,
    0.004_985_941_619_230_509,
    -0.000_595_374_687_997_373_2,
];
const NEAR64: &[f64] = &[
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

/// Minimax for `ln(1 - erf x)` from 0.92 to 4 and from 0.98 to 6; the function is then off by 2^-29
/// and 2^-60.
const FAR32: &[f64] = &[
    -0.000_195_698_442_600_483_32,
    -1.127_675_527_635_797_7,
    -0.637_182_422_023_648,
    -0.103_931_434_974_718_13,
    0.022_226_837_552_094_883,
    -0.003_043_195_268_160_113_3,
    0.000_195_934_825_014_307_3,
];
const FAR64: &[f64] = &[
    -4.828_355_429_934_649e-8,
    -1.128_378_711_240_192_6,
    -0.636_621_678_381_667_3,
    -0.102_768_144_493_138_72,
    0.019_122_879_520_575_3,
    0.000_209_501_830_299_524_6,
    -0.001_682_361_004_325_584_7,
    0.000_557_952_797_863_183_6,
    1.903_151_431_526_863_5e-5,
    -0.000_109_864_463_498_234_26,
    6.482_617_589_339_876e-5,
    -2.455_095_572_193_573e-5,
    6.965_575_485_996_243_5e-6,
    -1.546_014_795_347_428_2e-6,
    2.711_710_306_100_436e-7,
    -3.734_700_301_215_226_4e-8,
    3.960_880_724_380_698_5e-9,
    -3.123_535_045_627_441e-10,
    1.724_297_364_979_255_5e-11,
    -5.942_150_626_643_467e-13,
    9.612_927_211_696_45e-15,
];

/// `erf x`
pub(super) fn erf(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let square = c.mul(x, x);
    let p = c.poly(square, c.either(NEAR32, NEAR64));
    let near = c.fma(p, x, x);
    // Where it rounds to 1.
    let bounded = c.at_most(abs, c.either(4.0, 6.0));
    let g = c.poly(bounded, c.either(FAR32, FAR64));
    let complement = exp_within(c, g);
    let one = c.k(1.0);
    let far = c.sub(one, complement);
    let far = c.or_sign(far, signs);
    let is_near = c.cmp_k(Cmp::Le, abs, c.either(0.925, 0.99));
    c.select(is_near, near, far)
}
