//! How elements of each type are held in lanes.

use helio_ir::ElementType;
use helio_ir::types::{FloatFormat, FloatSpecials};

use super::small;
use crate::kernel::{BinOp, Builder, Cmp, Conv, Lane, Mem, UnOp, Value};

/// What the lanes of an element type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A mask.
    Pred,
    /// An integer, always extended to the lane as its signedness says.
    Int(IntKind),
    /// A float, always rounded to its format.
    Float(FloatKind),
    /// The exponent, with the bias, of a number of `f8e8m0fnu`; see [`super::powers`].
    Power,
    /// Two vectors of floats of this format.
    Complex(FloatKind),
}

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntKind {
    pub(super) bits: u32,
    pub(super) signed: bool,
}

/// A float type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatKind {
    /// One of 4 or 8 bits.
    Small(FloatFormat),
    F16,
    BF16,
    F32,
    F64,
}

impl Kind {
    /// `None` for a type that is neither of integers nor of numbers with a float format.
    pub(super) fn of(ty: ElementType) -> Option<Kind> {
        Some(match ty {
            ElementType::Pred => Kind::Pred,
            ElementType::F16 => Kind::Float(FloatKind::F16),
            ElementType::BF16 => Kind::Float(FloatKind::BF16),
            ElementType::F32 => Kind::Float(FloatKind::F32),
            ElementType::F64 => Kind::Float(FloatKind::F64),
            ElementType::C64 => Kind::Complex(FloatKind::F32),
            ElementType::C128 => Kind::Complex(FloatKind::F64),
            ty if ty.is_integer() => {
                let signed = ty.is_signed_integer();
                Kind::Int(IntKind { bits: ty.bits() as u32, signed })
            }
            _ => {
                let format = ty.float_format()?;
                match format.specials {
                    FloatSpecials::PowersOfTwo => Kind::Power,
                    _ => Kind::Float(FloatKind::Small(format)),
                }
            }
        })
    }

    /// The lanes of a vector of the type, or of a part of a complex one; `pred` has masks instead, which
    /// become `I32` lanes.
    pub(super) fn lane(self) -> Lane {
        match self {
            Kind::Pred | Kind::Power => Lane::I32,
            Kind::Int(int) => int.lane(),
            Kind::Float(float) | Kind::Complex(float) => float.lane(),
        }
    }

    /// The format in memory of an element, or of a part of a complex one.
    pub(super) fn mem(self) -> Mem {
        match self {
            Kind::Pred | Kind::Power => Mem::U8,
            Kind::Int(int) => int.mem(),
            Kind::Float(float) | Kind::Complex(float) => match float {
                FloatKind::Small(_) => Mem::U8,
                FloatKind::F16 => Mem::F16,
                FloatKind::BF16 => Mem::BF16,
                FloatKind::F32 => Mem::F32,
                FloatKind::F64 => Mem::F64,
            },
        }
    }
}

impl IntKind {
    pub(super) fn lane(self) -> Lane {
        if self.bits == 64 { Lane::I64 } else { Lane::I32 }
    }

    pub(super) fn lane_bits(self) -> u32 {
        8 * self.lane().bytes() as u32
    }

    /// Types narrower than a byte take one.
    fn mem(self) -> Mem {
        match (self.bits, self.signed) {
            (64, _) => Mem::I64,
            (32, _) => Mem::I32,
            (16, true) => Mem::I16,
            (16, false) => Mem::U16,
            (_, true) => Mem::I8,
            (_, false) => Mem::U8,
        }
    }

    /// All lanes extended from the low bits, which alone are right.
    pub(super) fn wrap(self, b: &mut Builder, x: Value) -> Value {
        if self.signed { self.signed(b, x) } else { self.unsigned(b, x) }
    }

    /// The low bits, zero-extended.
    pub(super) fn unsigned(self, b: &mut Builder, x: Value) -> Value {
        if self.bits >= 32 {
            return x;
        }
        let mask = b.int(Lane::I32, (1 << self.bits) - 1);
        b.bin(BinOp::And, x, mask)
    }

    /// The low bits, sign-extended.
    pub(super) fn signed(self, b: &mut Builder, x: Value) -> Value {
        if self.bits >= 32 {
            return x;
        }
        let by = b.int(Lane::I32, i64::from(32 - self.bits));
        let high = b.bin(BinOp::Shl, x, by);
        b.bin(BinOp::ShrA, high, by)
    }

    /// The number that a lane with these bits holds.
    pub(super) fn number(self, bits: u64) -> i128 {
        match (self.lane(), self.signed) {
            (Lane::I64, true) => (bits as i64).into(),
            (Lane::I64, false) => bits.into(),
            (_, true) => (bits as i32).into(),
            (_, false) => (bits as u32).into(),
        }
    }

    /// The bounds, as numbers.
    pub(super) fn bounds(self) -> (i128, i128) {
        let values = 1i128 << self.bits;
        if self.signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) }
    }
}

impl FloatKind {
    pub(super) fn lane(self) -> Lane {
        if self == FloatKind::F64 { Lane::F64 } else { Lane::F32 }
    }

    /// The integer lanes of the same width.
    pub(super) fn bits_lane(self) -> Lane {
        if self == FloatKind::F64 { Lane::I64 } else { Lane::I32 }
    }

    /// Rounds the result of arithmetic on operands of this format. The NaN of such a result has an
    /// operand's payload or none, so that no bits of it are lost.
    pub(super) fn round(self, b: &mut Builder, x: Value) -> Value {
        match self {
            FloatKind::F32 | FloatKind::F64 => x,
            FloatKind::Small(format) => small::round(b, format, x),
            FloatKind::F16 => b.un(UnOp::RoundF16, x),
            FloatKind::BF16 => {
                // Half a unit less one, and one more if the last bit kept is odd.
                let bits = b.convert(Conv::Bits, Lane::I32, x);
                let (one, sixteen) = (b.int(Lane::I32, 1), b.int(Lane::I32, 16));
                let last = b.bin(BinOp::ShrL, bits, sixteen);
                let odd = b.bin(BinOp::And, last, one);
                let half = b.int(Lane::I32, 0x7fff);
                let up = b.add(bits, half);
                let sum = b.add(up, odd);
                let keep = b.int(Lane::I32, 0xffff_0000);
                let kept = b.bin(BinOp::And, sum, keep);
                b.convert(Conv::Bits, Lane::F32, kept)
            }
        }
    }

    /// Rounds any number, NaN with any payload included.
    pub(super) fn round_any(self, b: &mut Builder, x: Value) -> Value {
        let rounded = self.round(b, x);
        if self != FloatKind::BF16 {
            return rounded;
        }
        let ordered = b.compare(Cmp::Eq, x, x);
        let nan = b.float(Lane::F32, f64::NAN);
        b.select(ordered, rounded, nan)
    }
}
