//! Notation: float arithmetic on vectors of one lane type.

use crate::kernel::{BinOp, Builder, Cmp, Conv, FmaOp, Lane, MaskOp, UnOp, Value};

/// The fewest coefficients of a polynomial that is computed by halves: for a shorter one the powers that join them take
/// longer than what is gained.
const LONG: usize = 13;

/// Writes arithmetic on lanes of one float type, [`Calc::lane`], and integers of that width.
pub(super) struct Calc<'b> {
    pub(super) b: &'b mut Builder,
    pub(super) lane: Lane,
}

/// A rounded value and what rounding it has left out.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) high: Value,
    pub(super) low: Value,
}

impl<'b> Calc<'b> {
    /// For lanes like those of `x`.
    pub(super) fn new(b: &'b mut Builder, x: Value) -> Self {
        let lane = b.lane(x);
        Calc { b, lane }
    }

    pub(super) fn is_wide(&self) -> bool {
        self.lane == Lane::F64
    }

    /// Whether results come from tables and are scaled by an instruction; see [`Builder::holds_tables`].
    pub(super) fn has_tables(&self) -> bool {
        self.b.holds_tables()
    }

    /// The first for 32-bit, the second for 64-bit lanes.
    pub(super) fn either<T>(&self, narrow: T, wide: T) -> T {
        if self.is_wide() { wide } else { narrow }
    }

    /// The integer type of the same width.
    pub(super) fn ints(&self) -> Lane {
        self.either(Lane::I32, Lane::I64)
    }

    /// Explicit bits of the mantissa.
    pub(super) fn mantissa(&self) -> u32 {
        self.either(23, 52)
    }

    /// A constant.
    pub(super) fn k(&mut self, value: f64) -> Value {
        self.b.float(self.lane, value)
    }

    /// An integer constant.
    pub(super) fn int(&mut self, value: i64) -> Value {
        let lane = self.ints();
        self.b.int(lane, value)
    }

    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        self.b.add(a, b)
    }

    pub(super) fn sub(&mut self, a: Value, b: Value) -> Value {
        self.b.sub(a, b)
    }

    pub(super) fn mul(&mut self, a: Value, b: Value) -> Value {
        self.b.mul(a, b)
    }

    pub(super) fn div(&mut self, a: Value, b: Value) -> Value {
        self.b.bin(BinOp::Div, a, b)
    }

    pub(super) fn sqrt(&mut self, a: Value) -> Value {
        self.b.un(UnOp::Sqrt, a)
    }

    /// `a * b + c`
    pub(super) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.b.fma(a, b, c)
    }

    /// `x + k`
    pub(super) fn add_k(&mut self, x: Value, k: f64) -> Value {
        let k = self.k(k);
        self.b.add(x, k)
    }

    /// `x * k`
    pub(super) fn mul_k(&mut self, x: Value, k: f64) -> Value {
        let k = self.k(k);
        self.b.mul(x, k)
    }

    /// `x * k + c`
    pub(super) fn fma_k(&mut self, x: Value, k: f64, c: Value) -> Value {
        let k = self.k(k);
        self.b.fma(x, k, c)
    }

    /// `a * b - c`
    pub(super) fn fms(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.b.fused(FmaOp::Sub, a, b, c)
    }

    /// `c - a * b`
    pub(super) fn fnma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.b.fused(FmaOp::From, a, b, c)
    }

    /// The polynomial with these coefficients, that of the lowest power first. The halves of a [`LONG`] one are computed
    /// side by side and joined by a power of `x`, and so are theirs (Estrin's scheme): a chain of fused products each of
    /// which waits for the one before would be as long as the polynomial.
    pub(super) fn poly(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let mut powers = vec![x];
        while coefficients.len() >= LONG && 1 << powers.len() < coefficients.len() {
            let last = powers[powers.len() - 1];
            powers.push(self.mul(last, last));
        }
        self.poly_by_powers(&powers, coefficients)
    }

    /// The same by `x`, and by `x²`, `x⁴`, … as far as they are given.
    fn poly_by_powers(&mut self, powers: &[Value], coefficients: &[f64]) -> Value {
        if powers.len() > 1 && coefficients.len() > 3 {
            let level = (coefficients.len() - 1).ilog2() as usize;
            let (low, high) = coefficients.split_at(1 << level);
            let low = self.poly_by_powers(powers, low);
            let high = self.poly_by_powers(powers, high);
            return self.fma(high, powers[level], low);
        }
        let (&last, rest) = coefficients.split_last().expect("a coefficient");
        let last = self.k(last);
        rest.iter().rev().fold(last, |sum, &next| {
            let next = self.k(next);
            self.fma(sum, powers[0], next)
        })
    }

    /// `x + x³ P(x²)`
    pub(super) fn odd(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let square = self.mul(x, x);
        let p = self.poly(square, coefficients);
        let cube = self.mul(square, x);
        self.fma(p, cube, x)
    }

    /// The lesser of `x` and a number; NaN if `x` is.
    pub(super) fn at_most(&mut self, x: Value, bound: f64) -> Value {
        let bound = self.k(bound);
        self.b.bin(BinOp::Min, bound, x)
    }

    /// The greater of `x` and a number; NaN if `x` is.
    pub(super) fn at_least(&mut self, x: Value, bound: f64) -> Value {
        let bound = self.k(bound);
        self.b.bin(BinOp::Max, bound, x)
    }

    pub(super) fn neg(&mut self, x: Value) -> Value {
        let sign = super::sign_bit(self.b, self.lane);
        self.b.bin(BinOp::Xor, x, sign)
    }

    pub(super) fn abs(&mut self, x: Value) -> Value {
        super::abs(self.b, x)
    }

    /// The sign bits.
    pub(super) fn sign(&mut self, x: Value) -> Value {
        let sign = super::sign_bit(self.b, self.lane);
        self.b.bin(BinOp::And, x, sign)
    }

    /// `x`, negative where the sign bits of `signs`, which has no others, are set.
    pub(super) fn or_sign(&mut self, x: Value, signs: Value) -> Value {
        self.b.bin(BinOp::Or, x, signs)
    }

    /// `x`, its sign flipped where the sign bits of `signs`, which has no others, are set.
    pub(super) fn flip(&mut self, x: Value, signs: Value) -> Value {
        self.b.bin(BinOp::Xor, x, signs)
    }

    pub(super) fn cmp(&mut self, op: Cmp, a: Value, b: Value) -> Value {
        self.b.compare(op, a, b)
    }

    /// A comparison with a number.
    pub(super) fn cmp_k(&mut self, op: Cmp, a: Value, k: f64) -> Value {
        let k = self.k(k);
        self.b.compare(op, a, k)
    }

    pub(super) fn select(&mut self, mask: Value, t: Value, f: Value) -> Value {
        self.b.select(mask, t, f)
    }

    pub(super) fn both(&mut self, a: Value, b: Value) -> Value {
        self.b.mask_op(MaskOp::And, a, b)
    }

    /// The bits as integers.
    pub(super) fn bits(&mut self, x: Value) -> Value {
        let ints = self.ints();
        self.b.convert(Conv::Bits, ints, x)
    }

    /// The float that has these bits.
    pub(super) fn of_bits(&mut self, x: Value) -> Value {
        self.b.convert(Conv::Bits, self.lane, x)
    }

    /// An operation on integers, the second being a constant.
    pub(super) fn int_k(&mut self, op: BinOp, a: Value, k: i64) -> Value {
        let k = self.int(k);
        self.b.bin(op, a, k)
    }

    /// What to add to a number of magnitude below `2^(mantissa - 2)` to round it to an integer: the
    /// sum's low bits are that integer, and subtracting this again gives it as a float, +0 for zero.
    pub(super) fn rounder(&self) -> f64 {
        self.either(12_582_912.0, 6_755_399_441_055_744.0)
    }

    /// `a + b` for `|a| >= |b|`, as the rounded sum and its error.
    pub(super) fn fast_two_sum(&mut self, a: Value, b: Value) -> (Value, Value) {
        let sum = self.add(a, b);
        let kept = self.sub(sum, a);
        let error = self.sub(b, kept);
        (sum, error)
    }

    /// `a + b`, whichever is larger, as the rounded sum and its error.
    pub(super) fn two_sum(&mut self, a: Value, b: Value) -> (Value, Value) {
        let sum = self.add(a, b);
        let b_part = self.sub(sum, a);
        let a_part = self.sub(sum, b_part);
        let (a_error, b_error) = (self.sub(a, a_part), self.sub(b, b_part));
        (sum, self.add(a_error, b_error))
    }

    /// The product of two floats.
    pub(super) fn product(&mut self, a: Value, b: Value) -> Pair {
        let high = self.mul(a, b);
        Pair { high, low: self.fms(a, b, high) }
    }
}
