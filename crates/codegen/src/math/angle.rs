//! Reduction of angles: `x` as `n` quarter turns and a rest of at most an eighth of a turn either way.
//!
//! Up to a limit the rest is found by subtracting `n` times π/2 in three parts, with fused
//! products: the first difference is exact, because it is a multiple of its operands' last places and
//! less than two. Beyond the limit, `x` is an integer times a power of two; that integer times the bits
//! of 2/π from where they matter on, as integers (Payne and Hanek), gives the rest. Few vectors have
//! such angles, so a loop that runs once or not at all goes around that.

use super::calc::Calc;
use super::wide::mulhi_unsigned;
use crate::kernel::{BinOp, Builder, Cmp, Conv, Value};

/// A reduced angle, `n` quarter turns and `r + rest`.
pub(super) struct Angle {
    /// Integers whose low two bits are those of `n`.
    pub(super) n: Value,
    /// What is left, of at most π/4 or a rounding more.
    pub(super) r: Value,
    /// What rounding `r` has left out.
    pub(super) rest: Value,
}

/// The bits of 2/π after the point, and before them a word of zeros.
const WORDS32: &[u64] = &[
    0,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
];
const WORDS64: &[u64] = &[
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
    0xf0cf_bc20_9af4_361d,
];

/// π/2 in parts, each what the ones before leave out.
const HALF_PI32: [f64; 3] =
    [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_510_005_882e-15];
const HALF_PI64: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33];

/// Reduces any angle; what is infinite leaves NaN.
pub(super) fn reduce(c: &mut Calc<'_>, x: Value) -> Angle {
    let fast = reduce_fast(c, x);
    let (limit, words) = c.either((2f64.powi(17), WORDS32), (2f64.powi(30), WORDS64));
    let (lane, nothing) = (c.lane, c.k(0.0));
    let is_large = |b: &mut Builder, x: Value| {
        let c = &mut Calc { b, lane };
        let abs = c.abs(x);
        c.cmp_k(Cmp::Ge, abs, limit)
    };
    // The angle is carried, so that what is computed from it stays inside.
    let last = c.b.while_loop(
        &[x, fast.n, fast.r, fast.rest],
        |b, state| {
            let large = is_large(b, state[0]);
            b.mask_any(large)
        },
        |b, state| {
            let large = is_large(b, state[0]);
            let slow = reduce_slow(&mut Calc { b, lane }, state[0], words);
            let slow = [slow.n, slow.r, slow.rest];
            let reduced =
                state[1..].iter().zip(slow).map(|(&fast, slow)| b.select(large, slow, fast));
            [nothing].into_iter().chain(reduced).collect()
        },
    );
    Angle { n: last[1], r: last[2], rest: last[3] }
}

fn reduce_fast(c: &mut Calc<'_>, x: Value) -> Angle {
    let [first, second, third] = c.either(HALF_PI32, HALF_PI64).map(|part| -part);
    let rounder = c.k(c.rounder());
    let shifted = c.fma_k(x, std::f64::consts::FRAC_2_PI, rounder);
    let turns = c.sub(shifted, rounder);
    let exact = c.fma_k(turns, first, x);
    let second = c.k(second);
    let second = c.product(turns, second);
    // Exact unless `exact` is less than half of the product, then off by a rounding of the sum.
    let (r, rest) = c.fast_two_sum(exact, second.high);
    let low = c.fma_k(turns, third, second.low);
    Angle { n: c.bits(shifted), r, rest: c.add(rest, low) }
}

/// For finite `|x|` of at least 2; NaN for others that are not finite.
fn reduce_slow(c: &mut Calc<'_>, x: Value, words: &[u64]) -> Angle {
    let (width, mantissa) = (8 * c.lane.bytes() as i64, i64::from(c.mantissa()));
    let abs = c.abs(x);
    let bits = c.bits(abs);
    // |x| = m 2^e
    let fraction = c.int_k(BinOp::And, bits, (1 << mantissa) - 1);
    let m = c.int_k(BinOp::Or, fraction, 1 << mantissa);
    let biased = c.int_k(BinOp::ShrL, bits, mantissa);
    let bias = c.either(127, 1023);
    // Bits of 2/π worth 4 and more make whole turns; the first two that do not are the top of `t`.
    let skip = c.int_k(BinOp::Sub, biased, bias + mantissa + 2 - width);
    let index = c.int_k(BinOp::ShrL, skip, width.trailing_zeros().into());
    let shift = c.int_k(BinOp::And, skip, width - 1);
    let full = c.int(width);
    let rest = c.b.sub(full, shift);
    let w = window(c, index, words);
    let t = [0, 1, 2].map(|i| {
        let (high, low) = (c.b.bin(BinOp::Shl, w[i], shift), c.b.bin(BinOp::ShrL, w[i + 1], rest));
        c.b.bin(BinOp::Or, high, low)
    });
    // p = m t, of which what is beyond the top are whole turns.
    let p2 = c.b.mul(m, t[2]);
    let (high, low) = (mulhi_unsigned(c.b, m, t[2]), c.b.mul(m, t[1]));
    let p1 = c.b.add(high, low);
    let carries = c.b.compare(Cmp::LtU, p1, low);
    let (one, zero) = (c.int(1), c.int(0));
    let carry = c.select(carries, one, zero);
    let (high, low) = (mulhi_unsigned(c.b, m, t[1]), c.b.mul(m, t[0]));
    let p0 = c.b.add(high, low);
    let p0 = c.b.add(p0, carry);
    // The top two bits count quarter turns; the others, read as a signed number, are the fraction of one.
    let counting = 2;
    let shl = |c: &mut Calc<'_>, high: Value, low: Value| {
        let high = c.int_k(BinOp::Shl, high, counting);
        let low = c.int_k(BinOp::ShrL, low, width - counting);
        c.b.bin(BinOp::Or, high, low)
    };
    let (f0, f1) = (shl(c, p0, p1), shl(c, p1, p2));
    let whole = c.int_k(BinOp::ShrL, p0, width - counting);
    let up = c.int_k(BinOp::ShrL, f0, width - 1);
    let n = c.b.add(whole, up);
    let (r, rest) = fraction_of(c, f0, f1);
    let infinite = c.cmp_k(Cmp::Eq, abs, f64::INFINITY);
    let nan = c.k(f64::NAN);
    let r = c.select(infinite, nan, r);
    let signs = c.sign(x);
    let (r, rest) = (c.flip(r, signs), c.flip(rest, signs));
    let minus = c.b.sub(zero, n);
    let negative = c.cmp_k(Cmp::Lt, x, 0.0);
    Angle { n: c.select(negative, minus, n), r, rest }
}

/// The words `index`, `index + 1`, … of the table in each lane.
fn window(c: &mut Calc<'_>, index: Value, words: &[u64]) -> [Value; 4] {
    let ints = c.ints();
    let mut window = [0, 1, 2, 3].map(|i| c.b.bits(ints, words[i]));
    for start in 1..=words.len() - 4 {
        let at = c.int(start as i64);
        let here = c.b.compare(Cmp::Eq, index, at);
        for (i, word) in window.iter_mut().enumerate() {
            let other = c.b.bits(ints, words[start + i]);
            *word = c.b.select(here, other, *word);
        }
    }
    window
}

/// π/2 times the signed number `f0.f1` as a fraction of 2^width, and what rounding that leaves out.
fn fraction_of(c: &mut Calc<'_>, f0: Value, f1: Value) -> (Value, Value) {
    let width = 8 * c.lane.bytes() as i64;
    let precision = i64::from(c.mantissa()) + 1;
    let signs = c.int_k(BinOp::ShrA, f0, width - 1);
    // As sign and magnitude, a unit of the last place off.
    let [f0, f1] = [f0, f1].map(|word| c.b.bin(BinOp::Xor, word, signs));
    // Three parts of as many bits as a float has.
    let spare = width - precision;
    let first = c.int_k(BinOp::ShrL, f0, spare);
    let (high, low) = (c.int_k(BinOp::Shl, f0, precision), c.int_k(BinOp::ShrL, f1, spare));
    let second = c.b.bin(BinOp::Or, high, low);
    let second = c.int_k(BinOp::ShrL, second, spare);
    let third = c.int_k(BinOp::Shl, f1, precision - spare);
    let third = c.int_k(BinOp::ShrL, third, spare);
    let mut part = |bits: Value, place: i64| {
        let float = c.b.convert(Conv::Value, c.lane, bits);
        c.mul_k(float, 2f64.powi(-(place * precision) as i32))
    };
    let (first, second, third) = (part(first, 1), part(second, 2), part(third, 3));
    let tail = c.add(second, third);
    let (sum, error) = c.fast_two_sum(first, tail);
    let [high_part, low_part, _] = c.either(HALF_PI32, HALF_PI64);
    let low = c.mul_k(error, high_part);
    let low = c.fma_k(sum, low_part, low);
    let r = c.fma_k(sum, high_part, low);
    let high_part = c.k(high_part);
    let rest = c.fms(sum, high_part, r);
    let rest = c.add(rest, low);
    let bits = c.int_k(BinOp::And, signs, i64::MIN >> (64 - width));
    let signs = c.of_bits(bits);
    (c.flip(r, signs), c.flip(rest, signs))
}
