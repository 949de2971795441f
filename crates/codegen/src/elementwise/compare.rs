//! Comparisons, and the greater and the lesser of two floats.

use helio_ir::ops::{Compare, Direction, Order};

use super::kind::{FloatKind, Kind};
use super::{Elem, powers};
use crate::kernel::{BinOp, Builder, Cmp, Conv, MaskOp, Value};
use crate::math::sign_bit;

/// The mask of the lanes for which a comparison holds.
pub(super) fn compare(b: &mut Builder, op: Compare, kind: Kind, x: Elem, y: Elem) -> Value {
    let direction = op.direction;
    match kind {
        Kind::Pred => masks(b, direction, x.mask(), y.mask()),
        Kind::Int(int) => {
            let unsigned = !int.signed && int.bits == int.lane_bits();
            b.compare(comparison(direction, unsigned), x.vector(), y.vector())
        }
        Kind::Float(float) => floats(b, op, float, x.vector(), y.vector()),
        Kind::Power => powers::compare(b, op, x.vector(), y.vector()),
        Kind::Complex(part) => complex(b, op, part, x.parts(), y.parts()),
    }
}

pub(super) fn comparison(direction: Direction, unsigned: bool) -> Cmp {
    match (direction, unsigned) {
        (Direction::Eq, _) => Cmp::Eq,
        (Direction::Ne, _) => Cmp::Ne,
        (Direction::Ge, false) => Cmp::Ge,
        (Direction::Gt, false) => Cmp::Gt,
        (Direction::Le, false) => Cmp::Le,
        (Direction::Lt, false) => Cmp::Lt,
        (Direction::Ge, true) => Cmp::GeU,
        (Direction::Gt, true) => Cmp::GtU,
        (Direction::Le, true) => Cmp::LeU,
        (Direction::Lt, true) => Cmp::LtU,
    }
}

fn masks(b: &mut Builder, direction: Direction, x: Value, y: Value) -> Value {
    match direction {
        Direction::Ne => b.mask_op(MaskOp::Xor, x, y),
        Direction::Eq => {
            let differ = b.mask_op(MaskOp::Xor, x, y);
            b.mask_not(differ)
        }
        Direction::Lt => b.mask_op(MaskOp::AndNot, x, y),
        Direction::Gt => b.mask_op(MaskOp::AndNot, y, x),
        Direction::Ge => {
            let less = b.mask_op(MaskOp::AndNot, x, y);
            b.mask_not(less)
        }
        Direction::Le => {
            let greater = b.mask_op(MaskOp::AndNot, y, x);
            b.mask_not(greater)
        }
    }
}

fn floats(b: &mut Builder, op: Compare, float: FloatKind, x: Value, y: Value) -> Value {
    let cmp = comparison(op.direction, false);
    if op.order == Order::Default {
        return b.compare(cmp, x, y);
    }
    let (x, y) = (total_rank(b, float, x), total_rank(b, float, y));
    b.compare(cmp, x, y)
}

/// By the real, then by the imaginary part.
fn complex(
    b: &mut Builder,
    op: Compare,
    part: FloatKind,
    x: (Value, Value),
    y: (Value, Value),
) -> Value {
    let mut with = |direction, x, y| floats(b, Compare { direction, ..op }, part, x, y);
    match op.direction {
        Direction::Eq | Direction::Ne => {
            let (re, im) = (with(op.direction, x.0, y.0), with(op.direction, x.1, y.1));
            let join = if op.direction == Direction::Eq { MaskOp::And } else { MaskOp::Or };
            b.mask_op(join, re, im)
        }
        Direction::Ge | Direction::Gt | Direction::Le | Direction::Lt => {
            let up = matches!(op.direction, Direction::Ge | Direction::Gt);
            let strict = with(if up { Direction::Gt } else { Direction::Lt }, x.0, y.0);
            let equal = with(Direction::Eq, x.0, y.0);
            let second = with(op.direction, x.1, y.1);
            let second = b.mask_op(MaskOp::And, equal, second);
            b.mask_op(MaskOp::Or, strict, second)
        }
    }
}

/// Integers that grow along the total order: the bits, all but the sign flipped if it is set.
fn total_rank(b: &mut Builder, float: FloatKind, x: Value) -> Value {
    let lane = float.bits_lane();
    let bits = b.convert(Conv::Bits, lane, x);
    let (shift, one) = (b.int(lane, 8 * lane.bytes() as i64 - 1), b.int(lane, 1));
    let signs = b.bin(BinOp::ShrA, bits, shift);
    let flips = b.bin(BinOp::ShrL, signs, one);
    b.bin(BinOp::Xor, bits, flips)
}

/// IEEE 754-2019 `maximum` or `minimum`: NaN if either is (the first one's payload), and +0 above
/// -0. `Max` and `Min` give their second operand if the two are equal or one is NaN.
pub(super) fn extremum(b: &mut Builder, maximum: bool, x: Value, y: Value) -> Value {
    let op = if maximum { BinOp::Max } else { BinOp::Min };
    for (constant, other) in [(x, y), (y, x)] {
        match b.constant(constant).map(|bits| limit(b, constant, bits)) {
            // Nothing but a number equal to it is equal to it.
            Some(Limit::Plain) => return b.bin(op, constant, other),
            Some(Limit::Zero { negative }) => {
                let chosen = b.bin(op, constant, other);
                // The other zero, which is what it gives for a zero, is right if it is the one
                // further out; `+0 + -0` is +0.
                return match (maximum, negative) {
                    (true, true) | (false, false) => chosen,
                    // (Many processors compare and add in the same units, and multiply in others.)
                    (true, false) => {
                        let one = b.float(b.lane(other), 1.0);
                        b.fma(chosen, one, constant)
                    }
                    (false, true) => {
                        let lane = b.lane(other);
                        let sign = sign_bit(b, lane);
                        let equal = b.compare(Cmp::Eq, chosen, constant);
                        b.select(equal, sign, chosen)
                    }
                };
            }
            Some(Limit::Nan) | None => {}
        }
    }
    b.bin(if maximum { BinOp::Maximum } else { BinOp::Minimum }, x, y)
}

/// What a constant operand is.
enum Limit {
    Nan,
    Zero { negative: bool },
    Plain,
}

fn limit(b: &Builder, constant: Value, bits: u64) -> Limit {
    let value = match b.lane(constant).bytes() {
        4 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    };
    if value.is_nan() {
        Limit::Nan
    } else if value == 0.0 {
        Limit::Zero { negative: value.is_sign_negative() }
    } else {
        Limit::Plain
    }
}
