//! Recipes of element-wise operations on floats.

use helio_ir::{BinaryOp, UnaryOp};

use super::Elem;
use super::compare::extremum;
use super::kind::FloatKind;
use crate::kernel::{BinOp, Builder, Cmp, Lane, UnOp, Value};
use crate::math::{self, sign_bit};

pub(super) fn has_unary(op: UnaryOp) -> bool {
    let exact = plain(op).is_some()
        || matches!(
            op,
            UnaryOp::Abs
                | UnaryOp::Imag
                | UnaryOp::IsFinite
                | UnaryOp::Negate
                | UnaryOp::Real
                | UnaryOp::RoundNearestAfz
                | UnaryOp::Rsqrt
                | UnaryOp::Sign
                | UnaryOp::Sqrt
        );
    exact || math::has_unary(op)
}

pub(super) fn has_binary(op: BinaryOp, float: FloatKind) -> bool {
    let plain = match op {
        BinaryOp::Complex => matches!(float, FloatKind::F32 | FloatKind::F64),
        BinaryOp::Maximum | BinaryOp::Minimum => true,
        other => arithmetic(other).is_some(),
    };
    plain || math::has_binary(op)
}

/// Operations that are one instruction, whose results need no rounding.
fn plain(op: UnaryOp) -> Option<UnOp> {
    match op {
        UnaryOp::Ceil => Some(UnOp::Ceil),
        UnaryOp::Floor => Some(UnOp::Floor),
        UnaryOp::RoundNearestEven => Some(UnOp::RoundEven),
        _ => None,
    }
}

fn arithmetic(op: BinaryOp) -> Option<BinOp> {
    match op {
        BinaryOp::Add => Some(BinOp::Add),
        BinaryOp::Subtract => Some(BinOp::Sub),
        BinaryOp::Multiply => Some(BinOp::Mul),
        BinaryOp::Divide => Some(BinOp::Div),
        _ => None,
    }
}

pub(super) fn unary(b: &mut Builder, op: UnaryOp, float: FloatKind, x: Value) -> Elem {
    match (float, in_lanes(b, op, float, x)) {
        // Not even the sign of every number of these formats can change.
        (FloatKind::Small(_), Elem::Vector(result)) => Elem::Vector(float.round(b, result)),
        (_, result) => result,
    }
}

fn in_lanes(b: &mut Builder, op: UnaryOp, float: FloatKind, x: Value) -> Elem {
    let lane = float.lane();
    if let Some(op) = plain(op) {
        return Elem::Vector(b.un(op, x));
    }
    Elem::Vector(match op {
        UnaryOp::Abs => math::abs(b, x),
        UnaryOp::Negate => {
            let sign = sign_bit(b, lane);
            b.bin(BinOp::Xor, x, sign)
        }
        UnaryOp::Real => x,
        UnaryOp::Imag => b.float(lane, 0.0),
        UnaryOp::IsFinite => {
            let (abs, infinity) = (math::abs(b, x), b.float(lane, f64::INFINITY));
            return Elem::Mask(b.compare(Cmp::Lt, abs, infinity));
        }
        UnaryOp::RoundNearestAfz => {
            // The number below one half: half itself would carry what is just below to one.
            let bits = if lane.bytes() == 4 { 0x3eff_ffff } else { 0x3fdf_ffff_ffff_ffff };
            let below_half = b.bits(lane, bits);
            let away = math::copy_sign(b, below_half, x);
            let moved = b.add(x, away);
            b.un(UnOp::Trunc, moved)
        }
        UnaryOp::Sign => {
            let (zero, one) = (b.float(lane, 0.0), b.float(lane, 1.0));
            let abs = math::abs(b, x);
            let unit = math::copy_sign(b, one, x);
            let nonzero = b.compare(Cmp::Gt, abs, zero);
            // Zero or NaN; but where subnormal numbers count as zero, `x` may be one.
            let itself = b.add(x, x);
            b.select(nonzero, unit, itself)
        }
        UnaryOp::Sqrt => {
            let root = b.un(UnOp::Sqrt, x);
            float.round(b, root)
        }
        UnaryOp::Rsqrt => {
            let result = math::rsqrt(b, x);
            float.round(b, result)
        }
        other => {
            let value = math::unary(b, other, x);
            float.round_any(b, value)
        }
    })
}

pub(super) fn binary(b: &mut Builder, op: BinaryOp, float: FloatKind, x: Value, y: Value) -> Elem {
    if op == BinaryOp::Divide
        && !matches!(float, FloatKind::Small(_))
        && let Some(reciprocal) = reciprocal(b, y)
    {
        return binary(b, BinaryOp::Multiply, float, x, reciprocal);
    }
    if let Some(op) = arithmetic(op) {
        let result = b.bin(op, x, y);
        return Elem::Vector(float.round(b, result));
    }
    match op {
        BinaryOp::Maximum | BinaryOp::Minimum => {
            Elem::Vector(extremum(b, op == BinaryOp::Maximum, x, y))
        }
        BinaryOp::Complex => Elem::Complex(x, y),
        other => {
            let value = math::binary(b, other, x, y);
            Elem::Vector(float.round_any(b, value))
        }
    }
}

/// 1/c for a constant, if both are normal numbers of its lane: a product takes an eighth of the time of
/// a quotient. It may be an ulp off the nearest number unless c is a power of two; XLA does likewise.
fn reciprocal(b: &mut Builder, c: Value) -> Option<Value> {
    let (lane, bits) = (b.lane(c), b.constant(c)?);
    match lane {
        Lane::F32 => {
            let c = f32::from_bits(bits as u32);
            let reciprocal = 1.0 / c;
            let normal = c.is_normal() && reciprocal.is_normal();
            normal.then(|| b.float(lane, reciprocal.into()))
        }
        _ => {
            let c = f64::from_bits(bits);
            let reciprocal = 1.0 / c;
            let normal = c.is_normal() && reciprocal.is_normal();
            normal.then(|| b.float(lane, reciprocal))
        }
    }
}
