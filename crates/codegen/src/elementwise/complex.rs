//! Complex numbers, as pairs of vectors.

use helio_ir::{BinaryOp, UnaryOp};

use super::Elem;
use super::kind::FloatKind;
use crate::kernel::{BinOp, Builder, Value};
use crate::math::sign_bit;

/// Real and imaginary parts.
type Parts = (Value, Value);

pub(super) fn has_unary(op: UnaryOp, _: FloatKind) -> bool {
    matches!(op, UnaryOp::Imag | UnaryOp::Negate | UnaryOp::Real)
}

pub(super) fn has_binary(op: BinaryOp, _: FloatKind) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Multiply | BinaryOp::Subtract)
}

pub(super) fn unary(b: &mut Builder, op: UnaryOp, part: FloatKind, z: Parts) -> Elem {
    match op {
        UnaryOp::Real => Elem::Vector(z.0),
        UnaryOp::Imag => Elem::Vector(z.1),
        UnaryOp::Negate => {
            let sign = sign_bit(b, part.lane());
            Elem::Complex(b.bin(BinOp::Xor, z.0, sign), b.bin(BinOp::Xor, z.1, sign))
        }
        other => panic!("{} of complex numbers", other.name()),
    }
}

pub(super) fn binary(b: &mut Builder, op: BinaryOp, _: FloatKind, x: Parts, y: Parts) -> Elem {
    let (re, im) = match op {
        BinaryOp::Add => (b.add(x.0, y.0), b.add(x.1, y.1)),
        BinaryOp::Subtract => (b.sub(x.0, y.0), b.sub(x.1, y.1)),
        BinaryOp::Multiply => multiply(b, x, y),
        other => panic!("{} of complex numbers", other.name()),
    };
    Elem::Complex(re, im)
}

/// The defining formula, each product rounded: with fused ones, `z` times its conjugate would not be
/// real.
fn multiply(b: &mut Builder, x: Parts, y: Parts) -> Parts {
    let (re, im2) = (b.mul(x.0, y.0), b.mul(x.1, y.1));
    let (re_im, im_re) = (b.mul(x.0, y.1), b.mul(x.1, y.0));
    (b.sub(re, im2), b.add(re_im, im_re))
}
