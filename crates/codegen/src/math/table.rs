//! Functions that are odd and level off, from tables of polynomials.
//!
//! `|x|` up to a bound is cut into 16 intervals of one width around multiples of it. In each, the function
//! is a polynomial of the distance to its middle, whose coefficients are looked up: a permutation of
//! registers each, so that no lane computes what is only another's. Only for 32-bit lanes.

use super::calc::Calc;
use crate::kernel::{BinOp, Conv, Lane, Value};

/// A function by its polynomials.
pub(super) struct OddTable<const N: usize> {
    /// From where on the function is what it is here, as far as rounding shows. It is within the last
    /// interval.
    pub(super) bound: f64,
    /// The width of the intervals; the first is the upper half of one around zero. It has few bits, so
    /// that multiples are exact.
    pub(super) width: f64,
    /// The coefficients of each power of the distance, from the constant one up, for each interval. In the
    /// first, that of the distance itself is less by 1.
    pub(super) coefficients: &'static [[f32; 16]; N],
}

impl<const N: usize> OddTable<N> {
    /// The function of `x`; NaN of NaN, and of a zero that zero.
    pub(super) fn apply(&self, c: &mut Calc<'_>, x: Value) -> Value {
        let (abs, signs) = (c.abs(x), c.sign(x));
        let abs = c.at_most(abs, self.bound);
        // Rounds to an integer, from -8 to 7, whose low bits are those of what it is added to.
        let magic = f64::from(3 << 22);
        let inverse = c.k(1.0 / self.width);
        let base = c.k(magic - 8.0);
        let rounded = c.fma(abs, inverse, base);
        let interval = c.b.convert(Conv::Bits, Lane::I32, rounded);
        let middle = c.sub(rounded, base);
        let distance = c.fma_k(middle, -self.width, abs);
        let mut sum = None;
        for coefficients in self.coefficients[1..].iter().rev() {
            let next = c.b.lookup(Lane::F32, coefficients.map(f32::to_bits), interval);
            sum = Some(sum.map_or(next, |sum| c.fma(sum, distance, next)));
        }
        // The constant is 0 in the first interval, where the distance itself takes its place, and more
        // than any distance in others: near zero nothing but the result is rounded.
        let constant = c.b.lookup(Lane::F32, self.coefficients[0].map(f32::to_bits), interval);
        let constant = c.b.bin(BinOp::Max, constant, distance);
        let sum = sum.expect("a polynomial has coefficients");
        let sum = c.fma(sum, distance, constant);
        c.or_sign(sum, signs)
    }
}

/// The error function; off by at most 1.7 units of the last place.
pub(super) const ERF: OddTable<6> =
    OddTable { bound: 3.95, width: 0.255_859_375, coefficients: &ERF_COEFFICIENTS };

/// The hyperbolic tangent; off by at most 1.1 units of the last place.
pub(super) const TANH: OddTable<8> =
    OddTable { bound: 9.08, width: 0.585_937_5, coefficients: &TANH_COEFFICIENTS };

/// Interpolates at Chebyshev's nodes of each interval.
const ERF_COEFFICIENTS: [[f32; 16]; 6] = [
    [
        0.0,
        0.282_528_25,
        0.530_737_5,
        0.722_308_34,
        0.852_203_67,
        0.929_579_9,
        0.970_071_73,
        0.988_687,
        0.996_205_03,
        0.998_872_3,
        0.999_703_6,
        0.999_931_16,
        0.999_985_9,
        0.999_997_44,
        0.999_999_6,
        0.999_999_94,
    ],
    [
        0.128_379_17,
        1.056_876_9,
        0.868_425_2,
        0.626_006_84,
        0.395_880_82,
        0.219_628_4,
        0.106_893_48,
        0.045_640_73,
        0.017_095_927,
        0.005_617_866_3,
        0.001_619_529_3,
        0.000_409_585_9,
        9.087_405e-5,
        1.768_778_7e-5,
        3.020_271_4e-6,
        4.524_361_5e-7,
    ],
    [
        2.214_178_2e-7,
        -0.270_405_68,
        -0.444_382,
        -0.480_505_47,
        -0.405_160_3,
        -0.280_973_2,
        -0.164_100_92,
        -0.081_744_36,
        -0.034_993_15,
        -0.012_935_992,
        -0.004_143_333,
        -0.001_152_552_1,
        -0.000_278_926_16,
        -5.880_442_8e-5,
        -1.081_105e-5,
        -1.734_659_9e-6,
    ],
    [
        -0.376_139_64,
        -0.306_165,
        -0.137_874_4,
        0.037_213_795,
        0.144_474_39,
        0.166_419_48,
        0.132_313_88,
        0.082_389_59,
        0.042_052_95,
        0.017_986_9,
        0.006_528_122,
        0.002_026_308_6,
        0.000_540_762_56,
        0.000_124_543_24,
        2.482_255_9e-5,
        4.290_404e-6,
    ],
    [
        0.000_262_059_3,
        0.128_298_52,
        0.182_193_8,
        0.145_283_6,
        0.061_291_84,
        -0.012_258_129,
        -0.046_418_13,
        -0.046_353_24,
        -0.031_386_588,
        -0.016_472_528,
        -0.007_032_946,
        -0.002_501_220_4,
        -0.000_751_125_6,
        -0.000_192_122_82,
        -4.210_331e-5,
        -7.938_995e-6,
    ],
    [
        0.111_060_93,
        0.078_232_154,
        0.003_975_603,
        -0.055_499_002,
        -0.068_016_216,
        -0.043_321_807,
        -0.011_048_349,
        0.008_477_901,
        0.013_002_934,
        0.009_700_234,
        0.005_190_7,
        0.002_184_268_3,
        0.000_750_972_7,
        0.000_215_247_96,
        5.206_480_3e-5,
        1.071_355_3e-5,
    ],
];

/// Interpolates at Chebyshev's nodes of each interval but the last, where it is a square that ends in 1.
const TANH_COEFFICIENTS: [[f32; 16]; 8] = [
    [
        0.0,
        0.526_967_5,
        0.824_872_3,
        0.942_258_2,
        0.981_748_7,
        0.994_310_2,
        0.998_233_9,
        0.999_452_53,
        0.999_830_37,
        0.999_947_4,
        0.999_983_7,
        0.999_994_93,
        0.999_998_45,
        0.999_999_5,
        0.999_999_8,
        1.0,
    ],
    [
        4.482_860_7e-10,
        0.722_305_24,
        0.319_585_65,
        0.112_149_514,
        0.036_169_44,
        0.011_347_265,
        0.003_529_064_4,
        0.001_094_587,
        0.000_339_215_4,
        0.000_105_096_33,
        3.255_850_6e-5,
        1.008_626_8e-5,
        3.124_590_9e-6,
        9.679_542e-7,
        2.998_583e-7,
        1.424_181_7e-7,
    ],
    [
        -1.495_778_3e-7,
        -0.380_631_5,
        -0.263_617_75,
        -0.105_673_66,
        -0.035_509_285,
        -0.011_282_703,
        -0.003_522_833,
        -0.001_093_988_3,
        -0.000_339_158_02,
        -0.000_105_090_86,
        -3.255_799_3e-5,
        -1.008_622_2e-5,
        -3.124_587_7e-6,
        -9.679_542e-7,
        -2.998_584e-7,
        -4.861_207e-7,
    ],
    [
        -0.333_325_27,
        -0.040_189_616,
        0.110_922_486,
        0.062_188_797,
        0.022_804_722,
        0.007_436_082,
        0.002_340_255_5,
        0.000_728_526_7,
        0.000_226_028_57,
        7.005_319e-5,
        2.170_461_4e-5,
        6.724_078e-6,
        2.083_051_2e-6,
        6.453_019_5e-7,
        1.999_054_9e-7,
        0.0,
    ],
    [
        -0.000_160_775_99,
        0.148_061_04,
        -0.003_601_721,
        -0.023_381_162,
        -0.010_553_028,
        -0.003_632_768_5,
        -0.001_161_764_4,
        -0.000_363_435_2,
        -0.000_112_927_8,
        -3.501_615_4e-5,
        -1.085_064_2e-5,
        -3.361_673_9e-6,
        -1.041_426_9e-6,
        -3.226_218e-7,
        -9.994_384e-8,
        0.0,
    ],
    [
        0.134_824_75,
        -0.048_479_87,
        -0.026_904_386,
        0.003_788_091_2,
        0.003_562_224_6,
        0.001_385_693_4,
        0.000_458_118_74,
        0.000_144_741_98,
        4.511_157_4e-5,
        1.400_112_25e-5,
        4.339_862_2e-6,
        1.344_668_1e-6,
        4.165_819_4e-7,
        1.290_532_9e-7,
        3.997_906e-8,
        0.0,
    ],
    [
        -0.006_748_328_5,
        -0.032_355_968,
        0.017_112_039,
        0.002_021_239,
        -0.000_750_912_8,
        -0.000_419_505_46,
        -0.000_149_827_79,
        -4.838_223_3e-5,
        -1.517_879_45e-5,
        -4.720_525e-6,
        -1.464_113_3e-6,
        -4.537_304e-7,
        -1.405_753_7e-7,
        -4.354_977_5e-8,
        -1.349_124e-8,
        0.0,
    ],
    [
        -0.041_129_224,
        0.028_999_746,
        -0.003_300_978_8,
        -0.001_917_740_9,
        -1.270_859e-5,
        9.407_513e-5,
        4.012_988e-5,
        1.353_650_35e-5,
        4.300_976_3e-6,
        1.342_748_8e-6,
        4.169_605_7e-7,
        1.292_640_2e-7,
        4.005_331e-8,
        1.240_881_7e-8,
        3.844_156_5e-9,
        0.0,
    ],
];
