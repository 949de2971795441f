//! Sine, cosine, tangent and their inverses.

use super::angle::{self, Angle};
use super::calc::Calc;
use crate::kernel::{BinOp, Builder, Cmp, Value};

/// Minimax for `(sin r - r) / r³` in `r²` on ±π/4; off by 2^-28 and 2^-57 of the sine.
const SIN32: &[f64] =
    &[-0.166_666_546_095_194_35, 0.008_332_160_759_844_07, -0.000_195_152_829_022_986_77];
const SIN64: &[f64] = &[
    -0.166_666_666_666_666_3,
    0.008_333_333_333_322_118,
    -0.000_198_412_698_295_895_1,
    2.755_731_362_137_400_4e-6,
    -2.505_074_776_088_844_8e-8,
    1.589_623_003_658_893e-10,
];

/// Minimax for `(cos r - 1 + r²/2) / r⁴` in `r²` on ±π/4; off by 2^-32 and 2^-63 of the cosine.
const COS32: &[f64] =
    &[0.041_666_645_519_460_82, -0.001_388_730_812_783_686_6, 2.443_221_061_985_333_4e-5];
const COS64: &[f64] = &[
    0.041_666_666_666_666_595,
    -0.001_388_888_888_887_285_2,
    2.480_158_728_871_990_2e-5,
    -2.755_731_414_024_953e-7,
    2.087_569_540_809_002e-9,
    -1.135_824_890_098_075_7e-11,
];

/// Minimax for `(tan r - r) / r³` in `r²` on ±π/4; off by 2^-29 and 2^-59 of the tangent.
const TAN32: &[f64] = &[
    0.333_333_501_073_504_2,
    0.133_326_507_876_642_6,
    0.054_061_385_701_397_62,
    0.021_274_363_999_172_27,
    0.010_856_686_839_984_616,
    6.234_463_996_971_684e-5,
    0.004_390_036_512_047_409,
];
const TAN64: &[f64] = &[
    0.333_333_333_333_333_8,
    0.133_333_333_333_254_95,
    0.053_968_253_972_819_354,
    0.021_869_488_401_627_103,
    0.008_863_237_884_661_083,
    0.003_592_101_278_972_880_3,
    0.001_456_042_696_102_065_4,
    0.000_588_878_869_095_625_8,
    0.000_243_700_232_123_692_62,
    8.368_840_321_654_237e-5,
    6.698_738_887_853_338e-5,
    -2.533_885_244_408_049_7e-5,
    4.839_116_503_462_909_5e-5,
    -2.415_342_005_371_275e-5,
    9.772_392_373_204_432e-6,
];

/// Minimax for `(atan t - t) / t³` in `t²` on ±1; off by 2^-28 and 2^-60 of the arctangent.
const ATAN32: &[f64] = &[
    -0.333_332_990_885_113_5,
    0.199_985_482_589_781_7,
    -0.142_642_414_346_154_02,
    0.109_521_846_764_646_23,
    -0.084_034_476_037_904_95,
    0.057_957_553_875_741_41,
    -0.031_177_812_208_328_96,
    0.010_914_590_502_772_025,
    -0.001_793_618_880_267_774_1,
];
const ATAN64: &[f64] = &[
    -0.333_333_333_333_332_87,
    0.199_999_999_999_904_48,
    -0.142_857_142_850_366_55,
    0.111_111_110_864_481_28,
    -0.090_909_085_472_696_2,
    0.076_922_997_119_552_57,
    -0.066_665_837_243_913_26,
    0.058_817_161_646_188_62,
    -0.052_594_338_428_767_23,
    0.047_449_263_331_234_06,
    -0.042_863_915_944_516_96,
    0.038_210_080_501_104_92,
    -0.032_785_460_688_891_5,
    0.026_151_716_028_428_914,
    -0.018_614_259_446_013_973,
    0.011_317_708_266_024_204,
    -0.005_612_428_879_920_636,
    0.002_151_609_688_519_856_7,
    -0.000_592_900_957_146_482,
    0.000_103_873_571_577_403_82,
    -8.654_374_002_351_652e-6,
];

/// Minimax for `(asin t - t) / t³` in `t²` on ±1/2; off by 2^-31 and 2^-60 of the arcsine.
const ASIN32: &[f64] = &[
    0.166_666_599_717_426_95,
    0.075_005_054_337_778_07,
    0.044_516_699_863_077_38,
    0.031_809_972_625_546_63,
    0.014_429_641_853_684_134,
    0.037_529_620_289_426_344,
];
const ASIN64: &[f64] = &[
    0.166_666_666_666_667_6,
    0.074_999_999_999_706_4,
    0.044_642_857_174_773_21,
    0.030_381_942_699_651_773,
    0.022_372_215_227_147_78,
    0.017_351_607_534_759_436,
    0.013_980_876_260_552_46,
    0.011_398_440_485_716_421,
    0.010_782_983_031_479_136,
    0.003_695_779_733_429_404,
    0.021_734_058_063_342_873,
    -0.021_037_757_260_522_885,
    0.032_653_456_385_627_91,
];

/// `π/2` and what it leaves out.
fn half_pi(c: &Calc<'_>) -> (f64, f64) {
    c.either(
        (f64::from(std::f32::consts::FRAC_PI_2), -4.371_139_000_186_242_6e-8),
        (std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17),
    )
}

/// The sine of `r + rest`, of at most π/4: `r + (rest cos r + r³ P(r²))`.
fn octant_sine(c: &mut Calc<'_>, angle: &Angle, square: Value) -> Value {
    let p = c.poly(square, c.either(SIN32, SIN64));
    // The rest is below a unit of the last place: 1 - r²/2 is near enough to the cosine.
    let one = c.k(1.0);
    let slope = c.fma_k(square, -0.5, one);
    let rest = c.mul(angle.rest, slope);
    let cube = c.mul(square, angle.r);
    let curved = c.fma(p, cube, rest);
    c.add(angle.r, curved)
}

/// The cosine of `r + rest`, of at most π/4: `1 - r²/2`, rounded, and what that leaves out, less
/// `r rest`, and `r⁴ P(r²)`.
fn octant_cosine(c: &mut Calc<'_>, angle: &Angle, square: Value) -> Value {
    let p = c.poly(square, c.either(COS32, COS64));
    let one = c.k(1.0);
    let near = c.fma_k(square, -0.5, one);
    let missing = c.sub(one, near);
    let missing = c.fma_k(square, -0.5, missing);
    // What rounding the square has left out.
    let square_error = c.fms(angle.r, angle.r, square);
    let missing = c.fma_k(square_error, -0.5, missing);
    let missing = c.fnma(angle.r, angle.rest, missing);
    let fourth = c.mul(square, square);
    let curved = c.fma(p, fourth, missing);
    c.add(near, curved)
}

/// The sine and the cosine of what is left of a reduced angle.
fn octant(c: &mut Calc<'_>, angle: &Angle) -> (Value, Value) {
    let square = c.mul(angle.r, angle.r);
    (octant_sine(c, angle, square), octant_cosine(c, angle, square))
}

/// The sine of `n` quarter turns and an angle of this sine and cosine: `s`, `c`, `-s`, `-c`.
fn turned(c: &mut Calc<'_>, n: Value, sine: Value, cosine: Value) -> Value {
    let zero = c.int(0);
    let last = c.int_k(BinOp::And, n, 1);
    let is_even = c.b.compare(Cmp::Eq, last, zero);
    let part = c.select(is_even, sine, cosine);
    let top = 8 * c.lane.bytes() as i64 - 2;
    let second = c.int_k(BinOp::And, n, 2);
    let signs = c.int_k(BinOp::Shl, second, top);
    let signs = c.of_bits(signs);
    c.flip(part, signs)
}

/// `sin x`
pub(super) fn sin(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let angle = angle::reduce(c, x);
    let (sine, cosine) = octant(c, &angle);
    turned(c, angle.n, sine, cosine)
}

/// `cos x`, a quarter turn ahead of the sine.
pub(super) fn cos(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    sin_cos(c, x).1
}

/// `sin x` and `cos x`, from one reduction.
pub(super) fn sin_cos(c: &mut Calc<'_>, x: Value) -> (Value, Value) {
    let angle = angle::reduce(c, x);
    let (sine, cosine) = octant(c, &angle);
    let ahead = c.int_k(BinOp::Add, angle.n, 1);
    (turned(c, angle.n, sine, cosine), turned(c, ahead, sine, cosine))
}

/// `tan r`, or `-1 / tan r` for odd `n`.
pub(super) fn tan(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let angle = angle::reduce(c, x);
    let r = angle.r;
    let square = c.mul(r, r);
    let p = c.poly(square, c.either(TAN32, TAN64));
    let cube = c.mul(square, r);
    let near = c.fma(p, cube, r);
    // The slope of the tangent is 1 + tan².
    let near_square = c.mul(near, near);
    let moved = c.fma(near_square, angle.rest, angle.rest);
    let curved = c.fma(p, cube, moved);
    let (tangent, error) = c.fast_two_sum(r, curved);
    // -1 / (tangent + error), by a step of Newton's.
    let (one, minus_one) = (c.k(1.0), c.k(-1.0));
    let inverse = c.div(minus_one, tangent);
    let missing = c.fma(inverse, tangent, one);
    let missing = c.fma(inverse, error, missing);
    let corrected = c.fma(inverse, missing, inverse);
    let last = c.int_k(BinOp::And, angle.n, 1);
    let zero = c.int(0);
    let is_even = c.b.compare(Cmp::Eq, last, zero);
    c.select(is_even, tangent, corrected)
}

/// `atan t` for `|t|` up to 1.
fn atan_within(c: &mut Calc<'_>, t: Value) -> Value {
    c.odd(t, c.either(ATAN32, ATAN64))
}

/// `π/2 - x`
fn from_half_pi(c: &mut Calc<'_>, x: Value) -> Value {
    let (high, low) = half_pi(c);
    let (high, low) = (c.k(high), c.k(low));
    let rest = c.sub(low, x);
    c.add(high, rest)
}

/// `atan x`, for `|x|` beyond 1 as `π/2 - atan 1/|x|`.
pub(super) fn atan(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let outside = c.cmp_k(Cmp::Gt, abs, 1.0);
    let one = c.k(1.0);
    let inverse = c.div(one, abs);
    let t = c.select(outside, inverse, abs);
    let inner = atan_within(c, t);
    let outer = from_half_pi(c, inner);
    let result = c.select(outside, outer, inner);
    c.or_sign(result, signs)
}

/// The angle of the point (`x`, `y`): of the first octant's, mirrored at the diagonal and the axes.
pub(super) fn atan2(b: &mut Builder, y: Value, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (ax, ay) = (c.abs(x), c.abs(y));
    let (small, large) = (c.b.bin(BinOp::Min, ax, ay), c.b.bin(BinOp::Max, ax, ay));
    let quotient = c.div(small, large);
    // The corners: 0 / 0 is 0, ∞ / ∞ is 1.
    let (zero, one) = (c.k(0.0), c.k(1.0));
    let at_zero = c.cmp_k(Cmp::Eq, large, 0.0);
    let quotient = c.select(at_zero, zero, quotient);
    let infinite = c.cmp_k(Cmp::Eq, small, f64::INFINITY);
    let quotient = c.select(infinite, one, quotient);
    let octant = atan_within(c, quotient);
    let steep = c.cmp(Cmp::Gt, ay, ax);
    let mirrored = from_half_pi(c, octant);
    let quadrant = c.select(steep, mirrored, octant);
    let (high, low) = half_pi(c);
    let (high, low) = (c.k(2.0 * high), c.k(2.0 * low));
    let rest = c.sub(low, quadrant);
    let opposite = c.add(high, rest);
    // The sign bit counts, that of zero, too.
    let bits = c.bits(x);
    let zero_bits = c.int(0);
    let left = c.b.compare(Cmp::Lt, bits, zero_bits);
    let half_plane = c.select(left, opposite, quadrant);
    let signs = c.sign(y);
    let result = c.or_sign(half_plane, signs);
    let sum = c.add(x, y);
    let unordered = c.cmp(Cmp::Ne, x, x);
    let result = c.select(unordered, sum, result);
    let unordered = c.cmp(Cmp::Ne, y, y);
    c.select(unordered, sum, result)
}

/// `t` and `t³ P(t²)`, whose sum is the arcsine of `t`: `|x|` up to 1/2, else
/// `sqrt((1 - |x|) / 2)`, whose arcsine is half of what is missing to π/2; and which of the two.
fn asin_within(c: &mut Calc<'_>, abs: Value) -> (Value, Value, Value) {
    let half = c.k(0.5);
    let outside = c.cmp(Cmp::Gt, abs, half);
    let minus_half = c.k(-0.5);
    let complement = c.fma(abs, minus_half, half);
    let root = c.sqrt(complement);
    let t = c.select(outside, root, abs);
    let square = c.mul(t, t);
    let p = c.poly(square, c.either(ASIN32, ASIN64));
    let cube = c.mul(square, t);
    (t, c.mul(p, cube), outside)
}

/// `asin x`
pub(super) fn asin(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let (t, curved, outside) = asin_within(c, abs);
    let inner = c.add(t, curved);
    // The first difference is exact, or the rest of it small against the sum.
    let (high, low) = half_pi(c);
    let (high, low, minus_two) = (c.k(high), c.k(low), c.k(-2.0));
    let first = c.fma(t, minus_two, high);
    let second = c.fma(curved, minus_two, low);
    let outer = c.add(first, second);
    let result = c.select(outside, outer, inner);
    c.or_sign(result, signs)
}

/// `acos x`: `π/2 - asin x` up to 1/2; beyond, twice the inner arcsine, or what that leaves of π.
pub(super) fn acos(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let (abs, signs) = (c.abs(x), c.sign(x));
    let (t, curved, outside) = asin_within(c, abs);
    let inner = c.add(t, curved);
    let signed = c.or_sign(inner, signs);
    let middle = from_half_pi(c, signed);
    let twice = c.add(inner, inner);
    let (high, low) = half_pi(c);
    let (high, low) = (c.k(2.0 * high), c.k(2.0 * low));
    let rest = c.sub(low, twice);
    let left = c.add(high, rest);
    let negative = c.cmp_k(Cmp::Lt, x, 0.0);
    let outer = c.select(negative, left, twice);
    c.select(outside, outer, middle)
}
