//! HLO's element-wise operations on values of kernels.
//!
//! [`supports`] says whether an operation on given types can be put into a kernel, [`apply`] does
//! it. Results equal the interpreter's bit for bit where HLO's meaning leaves no choice (integers,
//! arithmetic, comparisons, conversions); those of [`crate::math`] are within its bounds.
//!
//! Lanes of 64 bits appear only where an operand or the result has elements of 64 bits, so that
//! the types of its values alone say how many lanes a kernel can have ([`lane_bytes`]).

mod access;
mod compare;
mod complex;
mod convert;
mod float;
mod integer;
mod kind;
mod powers;
mod small;

use helio_ir::{BinaryOp, Capabilities, ElementType, Op, UnaryOp};

pub(crate) use access::lane;
pub use access::{constant, gather, lane_bytes, load, store};
use kind::Kind;

use crate::kernel::{Builder, MaskOp, Value};

/// The elements of a type in the lanes of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    /// Integers and floats. Integers of fewer than 32 bits are extended to 32 as their signedness
    /// says, floats of 16 and fewer bits are `F32` lanes rounded to their format; but those of
    /// `f8e8m0fnu` their exponents.
    Vector(Value),
    /// `pred`.
    Mask(Value),
    /// Real and imaginary parts.
    Complex(Value, Value),
}

impl Elem {
    /// The vector of a type that has one.
    ///
    /// # Panics
    /// If it has none.
    pub fn vector(self) -> Value {
        match self {
            Elem::Vector(x) => x,
            other => panic!("{other:?} is not a vector"),
        }
    }

    /// The mask of `pred`.
    ///
    /// # Panics
    /// If it is not of that type.
    pub fn mask(self) -> Value {
        match self {
            Elem::Mask(x) => x,
            other => panic!("{other:?} is not a mask"),
        }
    }

    /// The parts of a complex type.
    ///
    /// # Panics
    /// If it is not of a complex type.
    fn parts(self) -> (Value, Value) {
        match self {
            Elem::Complex(re, im) => (re, im),
            other => panic!("{other:?} is not complex"),
        }
    }
}

/// What there are recipes for: all that a kernel can be made to compute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recipes;

impl Capabilities for Recipes {
    fn holds(&self, ty: ElementType) -> bool {
        holds(ty)
    }

    fn supports(&self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        supports(op, operands, result)
    }
}

/// Whether lanes can hold elements of a type.
pub fn holds(ty: ElementType) -> bool {
    Kind::of(ty).is_some()
}

/// Whether [`apply`] takes this operation on operands of these types.
pub fn supports(op: &Op, operands: &[ElementType], result: ElementType) -> bool {
    let (Some(&first), Some(result)) = (operands.first(), Kind::of(result)) else { return false };
    let Some(first) = Kind::of(first).filter(|_| operands.iter().all(|&ty| holds(ty))) else {
        return false;
    };
    match (op, first) {
        (Op::Unary(op), Kind::Pred) => *op == UnaryOp::Not,
        (Op::Unary(op), Kind::Int(_)) => integer::has_unary(*op),
        (Op::Unary(op), Kind::Float(_)) => float::has_unary(*op),
        (Op::Unary(op), Kind::Power) => powers::has_unary(*op),
        (Op::Unary(op), Kind::Complex(part)) => complex::has_unary(*op, part),
        (Op::Binary(op), Kind::Pred) => mask_op(*op).is_some(),
        (Op::Binary(op), Kind::Int(_)) => integer::has_binary(*op),
        (Op::Binary(op), Kind::Float(float)) => float::has_binary(*op, float),
        (Op::Binary(op), Kind::Power) => powers::has_binary(*op),
        (Op::Binary(op), Kind::Complex(part)) => complex::has_binary(*op, part),
        (Op::Compare(_) | Op::Convert(_) | Op::Copy(_), _) => true,
        (Op::Select(_), _) => operands.len() == 3,
        (Op::Clamp(_), _) => operands.len() == 3 && Kind::of(operands[1]) == Some(result),
        (Op::BitcastConvert(_), from) => convert::has_bitcast(from, result),
        (Op::ReducePrecision(_), Kind::Float(_) | Kind::Power) => true,
        _ => false,
    }
}

/// The result of an operation.
///
/// # Panics
/// Unless [`supports`] holds, or if an operand is not of its type.
pub fn apply(
    b: &mut Builder,
    op: &Op,
    operands: &[(ElementType, Elem)],
    result: ElementType,
) -> Elem {
    let kind = |ty: ElementType| Kind::of(ty).unwrap_or_else(|| panic!("kernels do not hold {ty}"));
    let (first, x) = (kind(operands[0].0), operands[0].1);
    let result = kind(result);
    match op {
        Op::Copy(_) => x,
        Op::Unary(op) => unary(b, *op, first, x),
        Op::Binary(op) => binary(b, *op, first, x, operands[1].1),
        Op::Compare(op) => Elem::Mask(compare::compare(b, *op, first, x, operands[1].1)),
        Op::Select(_) => select(b, x.mask(), operands[1].1, operands[2].1),
        Op::Clamp(_) => {
            let raised = binary(b, BinaryOp::Maximum, result, operands[1].1, x);
            binary(b, BinaryOp::Minimum, result, raised, operands[2].1)
        }
        Op::Convert(_) => convert::convert(b, first, x, result),
        Op::BitcastConvert(_) => convert::bitcast(b, first, x, result),
        Op::ReducePrecision(op) => match first {
            Kind::Float(float) => Elem::Vector(convert::precision(b, *op, float, x.vector())),
            Kind::Power => Elem::Vector(powers::precision(b, *op, x.vector())),
            other => panic!("reduce-precision of {other:?}"),
        },
        other => panic!("{} is not element-wise", other.opcode()),
    }
}

/// For each lane, `t` where the mask is set, else `f`.
///
/// # Panics
/// If they are not of one type.
pub fn select(b: &mut Builder, mask: Value, t: Elem, f: Elem) -> Elem {
    match (t, f) {
        (Elem::Vector(t), Elem::Vector(f)) => Elem::Vector(b.select(mask, t, f)),
        (Elem::Complex(t, t2), Elem::Complex(f, f2)) => {
            Elem::Complex(b.select(mask, t, f), b.select(mask, t2, f2))
        }
        (Elem::Mask(t), Elem::Mask(f)) => {
            let on = b.mask_op(MaskOp::And, mask, t);
            let off = b.mask_op(MaskOp::AndNot, mask, f);
            Elem::Mask(b.mask_op(MaskOp::Or, on, off))
        }
        _ => panic!("a choice of {t:?} and {f:?}"),
    }
}

fn unary(b: &mut Builder, op: UnaryOp, kind: Kind, x: Elem) -> Elem {
    match kind {
        Kind::Pred => Elem::Mask(b.mask_not(x.mask())),
        Kind::Int(int) => Elem::Vector(integer::unary(b, op, int, x.vector())),
        Kind::Float(float) => float::unary(b, op, float, x.vector()),
        Kind::Power => powers::unary(b, op, x.vector()),
        Kind::Complex(part) => complex::unary(b, op, part, x.parts()),
    }
}

fn binary(b: &mut Builder, op: BinaryOp, kind: Kind, x: Elem, y: Elem) -> Elem {
    match kind {
        Kind::Pred => {
            let op = mask_op(op).unwrap_or_else(|| panic!("{} of pred", op.name()));
            Elem::Mask(b.mask_op(op, x.mask(), y.mask()))
        }
        Kind::Int(int) => Elem::Vector(integer::binary(b, op, int, x.vector(), y.vector())),
        Kind::Float(float) => float::binary(b, op, float, x.vector(), y.vector()),
        Kind::Power => Elem::Vector(powers::binary(b, op, x.vector(), y.vector())),
        Kind::Complex(part) => complex::binary(b, op, part, x.parts(), y.parts()),
    }
}

/// What an operation of two truth values is on masks.
pub(crate) fn mask_op(op: BinaryOp) -> Option<MaskOp> {
    match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Or => Some(MaskOp::Or),
        BinaryOp::Multiply | BinaryOp::Minimum | BinaryOp::And => Some(MaskOp::And),
        BinaryOp::Xor => Some(MaskOp::Xor),
        BinaryOp::Atan2
        | BinaryOp::Complex
        | BinaryOp::Divide
        | BinaryOp::Mulhi
        | BinaryOp::Power
        | BinaryOp::Remainder
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRightArithmetic
        | BinaryOp::ShiftRightLogical
        | BinaryOp::Subtract => None,
    }
}
