//! Recipes for what processors have no instruction for.
//!
//! Each is a sequence without branches that is good over the whole range of its type: at most 2
//! units of the last place off, exact at zeros, infinities and NaN, with subnormal numbers kept.
//! They work in lanes of their operands' width alone.

mod angle;
mod area;
mod calc;
pub(crate) mod complex;
mod erf;
mod exp;
mod log;
mod pow;
mod rem;
mod table;
#[cfg(test)]
mod tests;
mod trig;
mod wide;

use helio_ir::{BinaryOp, UnaryOp};

use crate::kernel::{BinOp, Builder, Cmp, Lane, UnOp, Value};
use calc::Calc;
pub(crate) use wide::mulhi_unsigned;

type Unary = fn(&mut Builder, Value) -> Value;
type Binary = fn(&mut Builder, Value, Value) -> Value;

fn unary_recipe(op: UnaryOp) -> Option<Unary> {
    Some(match op {
        UnaryOp::Acos => trig::acos,
        UnaryOp::Acosh => area::acosh,
        UnaryOp::Asin => trig::asin,
        UnaryOp::Asinh => area::asinh,
        UnaryOp::Atan => trig::atan,
        UnaryOp::Atanh => area::atanh,
        UnaryOp::Cbrt => pow::cbrt,
        UnaryOp::Cos => trig::cos,
        UnaryOp::Cosh => exp::cosh,
        UnaryOp::Erf => erf::erf,
        UnaryOp::Exp => exp::exp,
        UnaryOp::Expm1 => exp::expm1,
        UnaryOp::Log => log::log,
        UnaryOp::Log1p => log::log1p,
        UnaryOp::Logistic => exp::logistic,
        UnaryOp::Sin => trig::sin,
        UnaryOp::Sinh => exp::sinh,
        UnaryOp::Tan => trig::tan,
        UnaryOp::Tanh => exp::tanh,
        UnaryOp::Abs
        | UnaryOp::Ceil
        | UnaryOp::Clz
        | UnaryOp::Floor
        | UnaryOp::Imag
        | UnaryOp::IsFinite
        | UnaryOp::Negate
        | UnaryOp::Not
        | UnaryOp::Popcnt
        | UnaryOp::Real
        | UnaryOp::RoundNearestAfz
        | UnaryOp::RoundNearestEven
        | UnaryOp::Rsqrt
        | UnaryOp::Sign
        | UnaryOp::Sqrt => return None,
    })
}

fn binary_recipe(op: BinaryOp) -> Option<Binary> {
    match op {
        BinaryOp::Atan2 => Some(trig::atan2),
        BinaryOp::Power => Some(pow::pow),
        BinaryOp::Remainder => Some(rem::rem),
        _ => None,
    }
}

/// Whether [`unary`] takes an operation.
pub fn has_unary(op: UnaryOp) -> bool {
    unary_recipe(op).is_some()
}

/// Whether [`binary`] takes an operation.
pub fn has_binary(op: BinaryOp) -> bool {
    binary_recipe(op).is_some()
}

/// A function of a float.
///
/// # Panics
/// Unless [`has_unary`] holds.
pub fn unary(b: &mut Builder, op: UnaryOp, x: Value) -> Value {
    let recipe = unary_recipe(op).unwrap_or_else(|| panic!("no recipe for {}", op.name()));
    let result = recipe(b, x);
    let is_signed = b.holds_tables() && b.lane(x) == Lane::F32;
    if !matches!(op, UnaryOp::Sin | UnaryOp::Tan | UnaryOp::Tanh)
        || (op == UnaryOp::Tanh && is_signed)
    {
        return result;
    }
    // Zero plus a negative multiple of -0 is +0, but these functions keep the sign of zero.
    let lane = b.lane(x);
    let zero = b.float(lane, 0.0);
    let is_zero = b.compare(Cmp::Eq, x, zero);
    b.select(is_zero, x, result)
}

/// A function of two floats.
///
/// # Panics
/// Unless [`has_binary`] holds.
pub fn binary(b: &mut Builder, op: BinaryOp, x: Value, y: Value) -> Value {
    let recipe = binary_recipe(op).unwrap_or_else(|| panic!("no recipe for {}", op.name()));
    recipe(b, x, y)
}

/// `1 / √x`; in 32-bit lanes with [`UnOp::InverseRoot`] and a step of Newton's, off by at most 1.1 units of the last place.
pub(crate) fn rsqrt(b: &mut Builder, x: Value) -> Value {
    let c = &mut Calc::new(b, x);
    let one = c.k(1.0);
    if c.is_wide() || !c.has_tables() {
        let root = c.sqrt(x);
        return c.div(one, root);
    }
    let estimate = c.b.un(UnOp::InverseRoot, x);
    let root = c.mul(x, estimate);
    let missing = c.fnma(root, estimate, one);
    let half = c.mul_k(missing, 0.5);
    // Of zero and infinity the root is NaN, and the estimate exact.
    let any = c.k(0.25);
    let half = c.b.bin(BinOp::Min, half, any);
    c.fma(estimate, half, estimate)
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
