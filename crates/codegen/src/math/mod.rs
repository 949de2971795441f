//! Recipes for what processors have no instruction for.
//!
//! Each is a sequence without branches that is good over the whole range of its type: at most 2
//! units of the last place off, exact at zeros, infinities and NaN, with subnormal numbers kept.
//! They work in lanes of their operands' width alone.

use helio_ir::{BinaryOp, UnaryOp};

use crate::kernel::{BinOp, Builder, Lane, Value};

/// Whether [`unary`] takes an operation on such lanes.
pub fn has_unary(op: UnaryOp, lane: Lane) -> bool {
    let _ = (op, lane);
    false
}

/// Whether [`binary`] takes an operation on such lanes.
pub fn has_binary(op: BinaryOp, lane: Lane) -> bool {
    let _ = (op, lane);
    false
}

/// A function of a float.
///
/// # Panics
/// Unless [`has_unary`] holds.
pub fn unary(b: &mut Builder, op: UnaryOp, x: Value) -> Value {
    panic!("{} of {:?}", op.name(), b.ty(x))
}

/// A function of two floats.
///
/// # Panics
/// Unless [`has_binary`] holds.
pub fn binary(b: &mut Builder, op: BinaryOp, x: Value, _: Value) -> Value {
    panic!("{} of {:?}", op.name(), b.ty(x))
}

/// The sign bit alone.
pub(crate) fn sign_bit(b: &mut Builder, lane: Lane) -> Value {
    b.bits(lane, 1 << (8 * lane.bytes() - 1))
}

/// `|x|`
pub(crate) fn abs(b: &mut Builder, x: Value) -> Value {
    let lane = b.lane(x);
    let sign = sign_bit(b, lane);
    b.bin(BinOp::AndNot, sign, x)
}

/// A number that is not negative, with the sign of another.
pub(crate) fn copy_sign(b: &mut Builder, magnitude: Value, of: Value) -> Value {
    let lane = b.lane(of);
    let sign = sign_bit(b, lane);
    let sign = b.bin(BinOp::And, of, sign);
    b.bin(BinOp::Or, magnitude, sign)
}
