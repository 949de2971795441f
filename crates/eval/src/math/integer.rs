//! Integers of any width, carried as `i128`.
//!
//! A function may return any number that is right modulo 2^width: storing it wraps.

use helio_ir::ElementType;

/// Width and signedness of an integer type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntType {
    bits: u32,
    signed: bool,
}

impl IntType {
    pub(crate) fn of(element: ElementType) -> Self {
        // At most 64, so the cast keeps it.
        IntType { bits: element.bits() as u32, signed: element.is_signed_integer() }
    }

    /// The low bits of `x` as an unsigned number.
    fn unsigned(self, x: i128) -> u128 {
        x as u128 & (u128::MAX >> (128 - self.bits))
    }
}

pub(crate) fn abs(x: i128, _: IntType) -> i128 {
    x.abs()
}

pub(crate) fn negate(x: i128, _: IntType) -> i128 {
    -x
}

pub(crate) fn sign(x: i128, _: IntType) -> i128 {
    x.signum()
}

pub(crate) fn not(x: i128, _: IntType) -> i128 {
    !x
}

pub(crate) fn popcnt(x: i128, ty: IntType) -> i128 {
    ty.unsigned(x).count_ones().into()
}

pub(crate) fn clz(x: i128, ty: IntType) -> i128 {
    (ty.unsigned(x).leading_zeros() - (128 - ty.bits)).into()
}

pub(crate) fn add(x: i128, y: i128, _: IntType) -> i128 {
    x + y
}

pub(crate) fn subtract(x: i128, y: i128, _: IntType) -> i128 {
    x - y
}

pub(crate) fn multiply(x: i128, y: i128, _: IntType) -> i128 {
    // The product of two `u64` can pass `i128::MAX`; its low bits are what counts.
    x.wrapping_mul(y)
}

pub(crate) fn mulhi(x: i128, y: i128, ty: IntType) -> i128 {
    if ty.signed { (x * y) >> ty.bits } else { ((x as u128 * y as u128) >> ty.bits) as i128 }
}

/// Truncated toward zero; all bits set for divisor 0. The least integer divided by -1 wraps.
pub(crate) fn divide(x: i128, y: i128, _: IntType) -> i128 {
    if y == 0 { -1 } else { x / y }
}

/// With the sign of the dividend, which is also the result for divisor 0.
pub(crate) fn remainder(x: i128, y: i128, _: IntType) -> i128 {
    if y == 0 { x } else { x % y }
}

pub(crate) fn maximum(x: i128, y: i128, _: IntType) -> i128 {
    x.max(y)
}

pub(crate) fn minimum(x: i128, y: i128, _: IntType) -> i128 {
    x.min(y)
}

pub(crate) fn and(x: i128, y: i128, _: IntType) -> i128 {
    x & y
}

pub(crate) fn or(x: i128, y: i128, _: IntType) -> i128 {
    x | y
}

pub(crate) fn xor(x: i128, y: i128, _: IntType) -> i128 {
    x ^ y
}

/// `amount` as a shift distance, if it is less than the width; negative amounts are large unsigned.
fn distance(amount: i128, ty: IntType) -> Option<u32> {
    u32::try_from(ty.unsigned(amount)).ok().filter(|&distance| distance < ty.bits)
}

pub(crate) fn shift_left(x: i128, amount: i128, ty: IntType) -> i128 {
    distance(amount, ty).map_or(0, |d| x << d)
}

pub(crate) fn shift_right_logical(x: i128, amount: i128, ty: IntType) -> i128 {
    distance(amount, ty).map_or(0, |d| (ty.unsigned(x) >> d) as i128)
}

/// The sign of an unsigned number is its highest bit here.
pub(crate) fn shift_right_arithmetic(x: i128, amount: i128, ty: IntType) -> i128 {
    let unused = 128 - ty.bits;
    let extended = (x << unused) >> unused;
    extended >> distance(amount, ty).unwrap_or(ty.bits - 1)
}

/// By squaring, so that the low bits stay right when it overflows. For a negative exponent the
/// quotient 1 / x^-y, truncated, with 0 for x = 0.
pub(crate) fn power(x: i128, y: i128, _: IntType) -> i128 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 if y % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut exponent) = (1i128, x, y);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent >>= 1;
    }
    result
}
