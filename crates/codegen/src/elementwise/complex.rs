//! Recipes of element-wise operations on complex numbers, which are pairs of vectors.

use helio_ir::{BinaryOp, UnaryOp};

use super::Elem;
use super::kind::FloatKind;
use crate::kernel::{BinOp, Builder, Cmp, MaskOp};
use crate::math::complex::{self, ComplexParts};
use crate::math::sign_bit;

pub(super) fn has_unary(op: UnaryOp, _: FloatKind) -> bool {
    let plain = matches!(op, UnaryOp::Abs | UnaryOp::Imag | UnaryOp::Negate | UnaryOp::Real);
    plain || recipe(op).is_some()
}

pub(super) fn has_binary(op: BinaryOp, _: FloatKind) -> bool {
    use BinaryOp::{Add, Atan2, Divide, Maximum, Minimum, Multiply, Power, Subtract};
    matches!(op, Add | Atan2 | Divide | Maximum | Minimum | Multiply | Power | Subtract)
}

pub(super) fn unary(b: &mut Builder, op: UnaryOp, part: FloatKind, z: ComplexParts) -> Elem {
    match op {
        UnaryOp::Real => Elem::Vector(z.0),
        UnaryOp::Imag => Elem::Vector(z.1),
        UnaryOp::Negate => {
            let sign = sign_bit(b, part.lane());
            Elem::Complex(b.bin(BinOp::Xor, z.0, sign), b.bin(BinOp::Xor, z.1, sign))
        }
        UnaryOp::Abs => Elem::Vector(complex::abs(b, z)),
        other => {
            let recipe =
                recipe(other).unwrap_or_else(|| panic!("{} of complex numbers", other.name()));
            let (re, im) = recipe(b, z);
            Elem::Complex(re, im)
        }
    }
}

fn recipe(op: UnaryOp) -> Option<fn(&mut Builder, ComplexParts) -> ComplexParts> {
    match op {
        UnaryOp::Acos => Some(complex::acos),
        UnaryOp::Acosh => Some(complex::acosh),
        UnaryOp::Asin => Some(complex::asin),
        UnaryOp::Asinh => Some(complex::asinh),
        UnaryOp::Atan => Some(complex::atan),
        UnaryOp::Atanh => Some(complex::atanh),
        UnaryOp::Cos => Some(complex::cos),
        UnaryOp::Cosh => Some(complex::cosh),
        UnaryOp::Exp => Some(complex::exp),
        UnaryOp::Expm1 => Some(complex::expm1),
        UnaryOp::Log => Some(complex::log),
        UnaryOp::Log1p => Some(complex::log1p),
        UnaryOp::Logistic => Some(complex::logistic),
        UnaryOp::Rsqrt => Some(complex::rsqrt),
        UnaryOp::Sign => Some(complex::sign),
        UnaryOp::Sin => Some(complex::sin),
        UnaryOp::Sinh => Some(complex::sinh),
        UnaryOp::Sqrt => Some(complex::sqrt),
        UnaryOp::Tan => Some(complex::tan),
        UnaryOp::Tanh => Some(complex::tanh),
        _ => None,
    }
}

pub(super) fn binary(
    b: &mut Builder,
    op: BinaryOp,
    _: FloatKind,
    x: ComplexParts,
    y: ComplexParts,
) -> Elem {
    let (re, im) = match op {
        BinaryOp::Add => (b.add(x.0, y.0), b.add(x.1, y.1)),
        BinaryOp::Subtract => (b.sub(x.0, y.0), b.sub(x.1, y.1)),
        BinaryOp::Multiply => multiply(b, x, y),
        BinaryOp::Divide => complex::divide(b, x, y),
        BinaryOp::Maximum => extremum(b, Cmp::Gt, x, y),
        BinaryOp::Minimum => extremum(b, Cmp::Lt, x, y),
        BinaryOp::Power => complex::power(b, x, y),
        BinaryOp::Atan2 => complex::atan2(b, x, y),
        other => panic!("{} of complex numbers", other.name()),
    };
    Elem::Complex(re, im)
}

/// The defining formula, each product rounded: with fused ones, `z` times its conjugate would not be
/// real.
fn multiply(b: &mut Builder, x: ComplexParts, y: ComplexParts) -> ComplexParts {
    let (re, im2) = (b.mul(x.0, y.0), b.mul(x.1, y.1));
    let (re_im, im_re) = (b.mul(x.0, y.1), b.mul(x.1, y.0));
    (b.sub(re, im2), b.add(re_im, im_re))
}

/// By real, then by imaginary part; a number with a NaN in it wins, the first one if both have.
fn extremum(b: &mut Builder, wins: Cmp, x: ComplexParts, y: ComplexParts) -> ComplexParts {
    let strict = b.compare(wins, x.0, y.0);
    let equal = b.compare(Cmp::Eq, x.0, y.0);
    let second = b.compare(wins, x.1, y.1);
    let second = b.mask_op(MaskOp::And, equal, second);
    let first = b.mask_op(MaskOp::Or, strict, second);
    let [x_nan, y_nan] = [x, y].map(|z| {
        let (re, im) = (b.compare(Cmp::Ne, z.0, z.0), b.compare(Cmp::Ne, z.1, z.1));
        b.mask_op(MaskOp::Or, re, im)
    });
    let first = b.mask_op(MaskOp::AndNot, y_nan, first);
    let first = b.mask_op(MaskOp::Or, x_nan, first);
    (b.select(first, x.0, y.0), b.select(first, x.1, y.1))
}
