//! The vector instructions that are used, and which of them does what.

use super::asm::Len;
use crate::kernel::{BinOp, Cmp, FmaOp, Lane, Mem, UnOp};

/// How much memory an instruction's memory operand covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Covers {
    /// A vector, or one element for all lanes (EVEX).
    Vector,
    /// A vector; one element cannot be read for all lanes.
    Whole,
    /// A vector divided by a power of two.
    Part(u8),
    /// This many bytes.
    Bytes(u8),
    /// There is none.
    Nothing,
}

/// An instruction: its encoding and what may be done with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Op {
    /// 1: 0F, 2: 0F38, 3: 0F3A.
    pub(super) map: u8,
    /// 0: none, 1: 66, 2: F3, 3: F2.
    pub(super) prefix: u8,
    /// The W bit.
    pub(super) wide: bool,
    /// Whether W is clear in the VEX form in spite of `wide`.
    pub(super) vex_narrow: bool,
    pub(super) code: u8,
    /// Whether the sources may be exchanged.
    pub(super) commutes: bool,
    /// Whether there is only a VEX form.
    pub(super) vex_only: bool,
    covers: Covers,
}

const NP: u8 = 0;
const P66: u8 = 1;
const PF3: u8 = 2;
const PF2: u8 = 3;

impl Op {
    const fn new(map: u8, prefix: u8, wide: bool, code: u8) -> Op {
        Op {
            map,
            prefix,
            wide,
            vex_narrow: false,
            code,
            commutes: false,
            vex_only: false,
            covers: Covers::Vector,
        }
    }

    /// For lanes of 32 bits if `wide` is false, else of 64.
    pub(super) const fn sized(self, wide: bool) -> Op {
        Op { wide, ..self }
    }

    const fn commutes(self) -> Op {
        Op { commutes: true, ..self }
    }

    const fn registers_only(self) -> Op {
        Op { covers: Covers::Nothing, ..self }
    }

    const fn vex_only(self) -> Op {
        Op { vex_only: true, ..self }
    }

    const fn part(self, shift: u8) -> Op {
        Op { covers: Covers::Part(shift), ..self }
    }

    const fn bytes(self, bytes: u8) -> Op {
        Op { covers: Covers::Bytes(bytes), ..self }
    }

    const fn vex_narrow(self) -> Op {
        Op { vex_narrow: true, ..self }
    }

    /// The same, with a memory operand that is always a vector.
    pub(super) const fn whole(self) -> Op {
        Op { covers: Covers::Whole, ..self }
    }

    /// The instruction whose opcode is higher by `by`.
    pub(super) const fn above(self, by: u8) -> Op {
        Op { code: self.code + by, ..self }
    }

    /// Bytes of an element that is read for all lanes.
    pub(super) fn element(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Whether the memory operand may be one element for all lanes (EVEX).
    pub(super) fn splats(self) -> bool {
        self.covers == Covers::Vector
    }

    /// Whether an operand may be in memory.
    pub(super) fn takes_memory(self) -> bool {
        self.covers != Covers::Nothing
    }

    /// Whether the memory operand is one element, whatever the vector.
    pub(super) fn covers_one(self) -> bool {
        matches!(self.covers, Covers::Bytes(_))
    }

    /// Of gathers and scatters, whether indices have 64 bits.
    pub(super) fn has_wide_indices(self) -> bool {
        self.code & 1 == 1
    }

    /// Bytes that the memory operand covers.
    pub(super) fn memory_bytes(self, len: Len) -> usize {
        match self.covers {
            Covers::Vector | Covers::Whole => len.bytes(),
            Covers::Part(shift) => len.bytes() >> shift,
            Covers::Bytes(bytes) => bytes.into(),
            Covers::Nothing => 0,
        }
    }
}

pub(super) const MOV_LOAD: Op = Op::new(1, NP, false, 0x10).whole();
pub(super) const MOV_STORE: Op = Op::new(1, NP, false, 0x11).whole();
const MOV_LOAD_PD: Op = Op::new(1, P66, true, 0x10).whole();
/// A store past the caches, to an aligned address.
pub(super) const STREAM: Op = Op::new(1, NP, false, 0x2b).whole();
const MOV_STORE_PD: Op = Op::new(1, P66, true, 0x11).whole();
pub(super) const MOV_REG: Op = Op::new(1, NP, false, 0x28).whole();
const MOV_REG_PD: Op = Op::new(1, P66, true, 0x28).whole();

pub(super) const XOR: Op = Op::new(1, P66, false, 0xef).commutes();
pub(super) const TERNARY: Op = Op::new(3, P66, false, 0x25);
pub(super) const SHUFFLE_32: Op = Op::new(1, P66, false, 0x70);
pub(super) const SPLAT_32: Op = Op::new(2, P66, false, 0x18).bytes(4);
pub(super) const SPLAT_64: Op = Op::new(2, P66, true, 0x19).vex_narrow().bytes(8);
/// `vmovddup`: 64 bits for both lanes of a short vector.
pub(super) const LOAD_PAIR: Op = Op::new(1, PF2, true, 0x12).bytes(8);
pub(super) const SPLAT_BYTE: Op = Op::new(2, P66, false, 0x78).bytes(1);
pub(super) const SPLAT_WORD: Op = Op::new(2, P66, false, 0x79).bytes(2);
const SPLAT_GENERAL: Op = Op::new(2, P66, false, 0x7c);
pub(super) const FROM_GENERAL: Op = Op::new(1, P66, false, 0x6e).bytes(4);
pub(super) const FROM_GENERAL_64: Op = Op::new(1, P66, true, 0x6e).bytes(8);
pub(super) const TO_GENERAL: Op = Op::new(1, P66, false, 0x7e).bytes(4);
pub(super) const TO_GENERAL_64: Op = Op::new(1, P66, true, 0x7e).bytes(8);
pub(super) const EXTRACT_256: Op = Op::new(3, P66, true, 0x1b).part(1);
pub(super) const EXTRACT_128: Op = Op::new(3, P66, false, 0x19).bytes(16);
/// 128 bits of the second source in place of the first's upper ones.
pub(super) const INSERT_128: Op = Op::new(3, P66, false, 0x18).bytes(16);
/// Likewise 256 bits (EVEX).
pub(super) const INSERT_256: Op = Op::new(3, P66, true, 0x1a).part(1);
/// One element in place of another of 128 bits.
pub(super) const INSERT_8: Op = Op::new(3, P66, false, 0x20).bytes(1);
pub(super) const INSERT_16: Op = Op::new(1, P66, false, 0xc4).bytes(2);
/// The place is in bits 4 and 5 of the immediate operand; a source in a register is its lane 0.
pub(super) const INSERT_32: Op = Op::new(3, P66, false, 0x21).bytes(4);
pub(super) const INSERT_64: Op = Op::new(3, P66, true, 0x22).bytes(8);
/// An element of 128 bits whose number is the immediate operand.
pub(super) const STORE_ELEMENT_32: Op = Op::new(3, P66, false, 0x17).bytes(4);
/// Into the first lane, the others becoming zero.
pub(super) const LOAD_LANE_32: Op = Op::new(1, PF3, false, 0x10).bytes(4);
pub(super) const LOAD_LANE_64: Op = Op::new(1, PF2, true, 0x10).bytes(8);
pub(super) const STORE_64: Op = Op::new(1, P66, true, 0xd6).bytes(8);
pub(super) const STORE_LANE_32: Op = Op::new(1, PF3, false, 0x11).bytes(4);
pub(super) const STORE_LANE_64: Op = Op::new(1, PF2, true, 0x11).bytes(8);

const WIDEN_U8: Op = Op::new(2, P66, false, 0x31).part(2);
const WIDEN_I8: Op = Op::new(2, P66, false, 0x21).part(2);
pub(super) const WIDEN_U16: Op = Op::new(2, P66, false, 0x33).part(1);
const WIDEN_I16: Op = Op::new(2, P66, false, 0x23).part(1);
pub(super) const WIDEN_I32: Op = Op::new(2, P66, false, 0x25).part(1);
pub(super) const WIDEN_U32: Op = Op::new(2, P66, false, 0x35).part(1);
const WIDEN_F16: Op = Op::new(2, P66, false, 0x13).part(1);
pub(super) const NARROW_F16: Op = Op::new(3, P66, false, 0x1d).part(1);
pub(super) const NARROW_8: Op = Op::new(2, PF3, false, 0x31).part(2);
pub(super) const NARROW_16: Op = Op::new(2, PF3, false, 0x33).part(1);
pub(super) const NARROW_64: Op = Op::new(2, PF3, false, 0x35).part(1);

pub(super) const I32_TO_F32: Op = Op::new(1, NP, false, 0x5b);
pub(super) const U32_TO_F32: Op = Op::new(1, PF2, false, 0x7a);
pub(super) const I32_TO_F64: Op = Op::new(1, PF3, false, 0xe6).part(1);
pub(super) const U32_TO_F64: Op = Op::new(1, PF3, false, 0x7a).part(1);
pub(super) const I64_TO_F32: Op = Op::new(1, NP, true, 0x5b);
pub(super) const U64_TO_F32: Op = Op::new(1, PF2, true, 0x7a);
pub(super) const I64_TO_F64: Op = Op::new(1, PF3, true, 0xe6);
pub(super) const U64_TO_F64: Op = Op::new(1, PF3, true, 0x7a);
pub(super) const F32_TO_F64: Op = Op::new(1, NP, false, 0x5a).part(1);
pub(super) const F64_TO_F32: Op = Op::new(1, P66, true, 0x5a);
pub(super) const F32_TO_I32: Op = Op::new(1, PF3, false, 0x5b);
pub(super) const F64_TO_I32: Op = Op::new(1, P66, true, 0xe6);
pub(super) const F32_TO_I64: Op = Op::new(1, P66, false, 0x7a).part(1);
pub(super) const F64_TO_I64: Op = Op::new(1, P66, true, 0x7a);

/// Conversions of a scalar from and to a 64-bit general register.
pub(super) const GENERAL_TO_F32: Op = Op::new(1, PF3, true, 0x2a);
pub(super) const F32_TO_GENERAL: Op = Op::new(1, PF3, true, 0x2c);
pub(super) const F64_TO_GENERAL: Op = Op::new(1, PF2, true, 0x2c);

/// The low bits of the operand, as many as the second source says.
pub(super) const LOW_BITS: Op = Op::new(2, NP, false, 0xf5).vex_only();

pub(super) const MASK_MOV: Op = Op::new(1, NP, false, 0x90).vex_only();
pub(super) const MASK_STORE: Op = Op::new(1, NP, false, 0x91).vex_only();
pub(super) const MASK_FROM_GENERAL: Op = Op::new(1, NP, false, 0x92).vex_only();
pub(super) const MASK_TO_GENERAL: Op = Op::new(1, NP, false, 0x93).vex_only();
/// Sets flags by the union of its operands: of 8 lanes, or of 16.
pub(super) const MASK_ANY_8: Op = Op::new(1, P66, false, 0x98).vex_only();
pub(super) const MASK_ANY_16: Op = Op::new(1, NP, false, 0x98).vex_only();
pub(super) const MASK_AND: Op = Op::new(1, NP, false, 0x41).vex_only().commutes();
pub(super) const MASK_AND_NOT: Op = Op::new(1, NP, false, 0x42).vex_only();
pub(super) const MASK_NOT: Op = Op::new(1, NP, false, 0x44).vex_only();
pub(super) const MASK_OR: Op = Op::new(1, NP, false, 0x45).vex_only().commutes();
pub(super) const MASK_XNOR: Op = Op::new(1, NP, false, 0x46).vex_only().commutes();
pub(super) const MASK_XOR: Op = Op::new(1, NP, false, 0x47).vex_only().commutes();

// What AVX2 has in place of masks and of instructions that it lacks.
/// Sets flags by the intersection of its operands.
pub(super) const VECTOR_ANY: Op = Op::new(2, P66, false, 0x17);
pub(super) const BLEND_BYTES: Op = Op::new(3, P66, false, 0x4c);
pub(super) const MASKED_LOAD: Op = Op::new(2, P66, false, 0x8c);
pub(super) const MASKED_STORE: Op = Op::new(2, P66, false, 0x8e);
pub(super) const SIGNS: Op = Op::new(1, NP, false, 0x50).registers_only();
pub(super) const SIGNS_64: Op = Op::new(1, P66, false, 0x50).registers_only();
pub(super) const EQUAL_32: Op = Op::new(1, P66, false, 0x76).commutes();
pub(super) const EQUAL_64: Op = Op::new(2, P66, false, 0x29).commutes();
pub(super) const GREATER_32: Op = Op::new(1, P66, false, 0x66);
pub(super) const GREATER_64: Op = Op::new(2, P66, false, 0x37);
pub(super) const SHUFFLE_BYTES: Op = Op::new(2, P66, false, 0x00);
/// Halves of two vectors of 256 bits (VEX).
pub(super) const PERMUTE_128: Op = Op::new(3, P66, false, 0x06);
/// Of each 128 bits, those of both sources, the first's above, moved down by bytes.
pub(super) const ALIGN_BYTES: Op = Op::new(3, P66, false, 0x0f);
pub(super) const SHUFFLE_PAIR: Op = Op::new(1, NP, false, 0xc6);
/// 64-bit lanes in the order that the immediate operand says (VEX).
pub(super) const PERMUTE_FIXED_64: Op = Op::new(3, P66, true, 0x00);
pub(super) const INTERLEAVE_32: Op = Op::new(1, P66, false, 0x62);
pub(super) const INTERLEAVE_64: Op = Op::new(1, P66, true, 0x6c);
pub(super) const SUM_BYTES: Op = Op::new(1, P66, false, 0xf6);

/// The widening load of a format, or the plain one.
pub(super) fn load(mem: Mem) -> Op {
    match mem {
        Mem::U8 => WIDEN_U8,
        Mem::I8 => WIDEN_I8,
        Mem::U16 | Mem::BF16 => WIDEN_U16,
        Mem::I16 => WIDEN_I16,
        Mem::F16 => WIDEN_F16,
        Mem::I32 | Mem::F32 => MOV_LOAD,
        Mem::I64 | Mem::F64 => MOV_LOAD_PD,
    }
}

/// The plain store of 32-bit or 64-bit lanes.
pub(super) fn store(wide: bool) -> Op {
    if wide { MOV_STORE_PD } else { MOV_STORE }
}

/// The move between registers that masks lanes of 32 or 64 bits.
pub(super) fn mov(wide: bool) -> Op {
    if wide { MOV_REG_PD } else { MOV_REG }
}

/// One element for all lanes.
pub(super) fn splat(wide: bool) -> Op {
    if wide { SPLAT_64 } else { SPLAT_32 }
}

/// A general register for all lanes (EVEX).
pub(super) fn splat_general(wide: bool) -> Op {
    SPLAT_GENERAL.sized(wide)
}

/// Lanes of the second source where bits of the immediate operand are set (VEX).
pub(super) fn blend_fixed(wide: bool) -> Op {
    Op::new(3, P66, false, 0x0c | u8::from(wide)).vex_only()
}

/// Reads an element into the first lane of a vector; narrow ones into all.
pub(super) fn splat_first(bytes: usize) -> Op {
    match bytes {
        1 => SPLAT_BYTE,
        2 => SPLAT_WORD,
        4 => FROM_GENERAL,
        _ => FROM_GENERAL_64,
    }
}

/// Lanes of the second source where the mask is set (EVEX).
pub(super) fn blend(wide: bool) -> Op {
    Op::new(2, P66, wide, 0x65)
}

/// Lanes of the second source in the order of the first.
pub(super) fn permute(wide: bool) -> Op {
    Op::new(2, P66, wide, 0x36)
}

/// Lanes of two vectors, one of which is the destination, in the order of the first source (EVEX).
pub(super) fn permute_pair(wide: bool) -> Op {
    Op::new(2, P66, wide, 0x7e)
}

/// The two sources as one vector, moved down by lanes (EVEX).
pub(super) fn align(wide: bool) -> Op {
    Op::new(3, P66, wide, 0x03)
}

/// Sums of products of two bytes, unsigned ones of the first source and signed ones of the second.
pub(super) const MULTIPLY_BYTES: Op = Op::new(2, P66, false, 0x04);
/// Sums of products of two 16-bit numbers.
pub(super) const MULTIPLY_16: Op = Op::new(1, P66, false, 0xf5);

/// Bits set (EVEX); see [`super::Isa::counts_bits`].
pub(super) fn population_count(wide: bool) -> Op {
    Op::new(2, P66, wide, 0x55)
}

/// Leading zero bits (EVEX).
pub(super) fn leading_zeros(wide: bool) -> Op {
    Op::new(2, P66, wide, 0x44)
}

/// A gather of lanes by indices, each narrow or wide.
pub(super) fn gather(wide: bool, wide_index: bool) -> Op {
    let bytes = if wide { 8 } else { 4 };
    Op::new(2, P66, wide, 0x90 | u8::from(wide_index)).bytes(bytes)
}

/// A scatter of lanes by indices, each narrow or wide (EVEX).
pub(super) fn scatter(wide: bool, wide_index: bool) -> Op {
    let bytes = if wide { 8 } else { 4 };
    Op::new(2, P66, wide, 0xa0 | u8::from(wide_index)).bytes(bytes)
}

/// The 132 form of a fused operation; 213 and 231 are 16 and 32 above.
pub(super) fn fma(op: FmaOp, lane: Lane) -> Op {
    let code = match op {
        FmaOp::Add => 0x98,
        FmaOp::Sub => 0x9a,
        FmaOp::From => 0x9c,
    };
    Op::new(2, P66, lane.bytes() == 8, code)
}

/// An operation of one float vector, and its immediate operand if it has one.
pub(super) fn unary(op: UnOp, lane: Lane) -> Option<(Op, Option<u8>)> {
    let wide = lane.bytes() == 8;
    let sqrt = Op::new(1, if wide { P66 } else { NP }, wide, 0x51);
    let round = Op::new(3, P66, wide, 0x08 | u8::from(wide));
    Some(match op {
        UnOp::Sqrt => (sqrt, None),
        // Bit 3 keeps "inexact" from being signalled.
        UnOp::RoundEven => (round, Some(8)),
        UnOp::Floor => (round, Some(9)),
        UnOp::Ceil => (round, Some(10)),
        UnOp::Trunc => (round, Some(11)),
        UnOp::Exponent => (Op::new(2, P66, wide, 0x42), None),
        // From 3/4 on, zeros counting as positive, and NaN of what is negative.
        UnOp::Mantissa => (Op::new(3, P66, wide, 0x26), Some(0b1111)),
        UnOp::Inverse => (Op::new(2, P66, wide, 0x4c), None),
        UnOp::InverseRoot => (Op::new(2, P66, wide, 0x4e), None),
        UnOp::RoundF16 | UnOp::PopCount | UnOp::CountLeadingZeros => return None,
    })
}

/// The instruction of an operation, if AVX-512 has one.
pub(super) fn binary(op: BinOp, lane: Lane) -> Option<Op> {
    let wide = lane.bytes() == 8;
    let float = |code| Op::new(1, if wide { P66 } else { NP }, wide, code);
    let int = |map, code| Op::new(map, P66, wide, code);
    Some(match (op, lane.is_float()) {
        (BinOp::Add, true) => float(0x58).commutes(),
        (BinOp::Sub, true) => float(0x5c),
        (BinOp::Mul, true) => float(0x59).commutes(),
        (BinOp::Div, true) => float(0x5e),
        (BinOp::Scale, true) => Op::new(2, P66, wide, 0x2c),
        (BinOp::Min, true) => float(0x5d),
        (BinOp::Max, true) => float(0x5f),
        (BinOp::Add, false) => int(1, if wide { 0xd4 } else { 0xfe }).commutes(),
        (BinOp::Sub, false) => int(1, if wide { 0xfb } else { 0xfa }),
        (BinOp::Mul, false) => int(2, 0x40).commutes(),
        (BinOp::Min, false) => int(2, 0x39).commutes(),
        (BinOp::Max, false) => int(2, 0x3d).commutes(),
        (BinOp::MinU, false) => int(2, 0x3b).commutes(),
        (BinOp::MaxU, false) => int(2, 0x3f).commutes(),
        (BinOp::MulWide, false) if wide => int(1, 0xf4).commutes(),
        (BinOp::And, _) => int(1, 0xdb).commutes(),
        (BinOp::AndNot, _) => int(1, 0xdf),
        (BinOp::Or, _) => int(1, 0xeb).commutes(),
        (BinOp::Xor, _) => int(1, 0xef).commutes(),
        (BinOp::Shl, false) => int(2, 0x47),
        (BinOp::ShrL, false) => int(2, 0x45),
        (BinOp::ShrA, false) => int(2, 0x46),
        (BinOp::RotL, false) => int(2, 0x15),
        _ => return None,
    })
}

/// A shift by a constant, or a rotation (EVEX): the instruction and its opcode's extension.
pub(super) fn shift(op: BinOp, wide: bool) -> Option<(Op, u8)> {
    let logical = Op::new(1, P66, wide, 0x72 | u8::from(wide));
    Some(match op {
        BinOp::Shl => (logical, 6),
        BinOp::ShrL => (logical, 2),
        BinOp::ShrA => (Op::new(1, P66, wide, 0x72), 4),
        BinOp::RotL => (Op::new(1, P66, wide, 0x72), 1),
        _ => return None,
    })
}

/// The immediate operand of a comparison of floats: never signalling.
pub(super) fn float_condition(op: Cmp) -> u8 {
    match op {
        Cmp::Eq => 0,
        Cmp::Ne => 4,
        Cmp::Lt | Cmp::LtU => 0x11,
        Cmp::Le | Cmp::LeU => 0x12,
        Cmp::Gt | Cmp::GtU => 0x1e,
        Cmp::Ge | Cmp::GeU => 0x1d,
    }
}

/// A comparison of floats.
pub(super) fn compare_floats(wide: bool) -> Op {
    Op::new(1, if wide { P66 } else { NP }, wide, 0xc2)
}

/// The immediate operand of a comparison of floats that holds where either is NaN.
pub(super) const UNORDERED: u8 = 3;

/// The smaller or the larger of two floats, zeros being ordered by their signs; of a number and NaN,
/// the number (EVEX). With its immediate operand.
pub(super) fn range(maximum: bool, wide: bool) -> (Op, u8) {
    // Bit 2 asks for the sign of what is chosen.
    (Op::new(3, P66, wide, 0x50), 4 | u8::from(maximum))
}

/// The first of two floats with no more than the magnitude of the second (EVEX). With its immediate operand.
pub(super) fn within(wide: bool) -> (Op, u8) {
    // The lesser magnitude, and the sign of the first.
    (Op::new(3, P66, wide, 0x50), 2)
}

/// A comparison of integers to a mask (EVEX), and its immediate operand.
pub(super) fn compare_ints(op: Cmp, wide: bool) -> (Op, u8) {
    let unsigned = matches!(op, Cmp::LtU | Cmp::LeU | Cmp::GtU | Cmp::GeU);
    let imm = match op {
        Cmp::Eq => 0,
        Cmp::Lt | Cmp::LtU => 1,
        Cmp::Le | Cmp::LeU => 2,
        Cmp::Ne => 4,
        Cmp::Ge | Cmp::GeU => 5,
        Cmp::Gt | Cmp::GtU => 6,
    };
    (Op::new(3, P66, wide, if unsigned { 0x1e } else { 0x1f }), imm)
}

/// Lanes in which the sources have a common bit, or none, to a mask (EVEX).
pub(super) fn test(any: bool, wide: bool) -> Op {
    Op::new(2, if any { P66 } else { PF3 }, wide, 0x27)
}

/// AVX2's masked load and store, of 32-bit or 64-bit lanes.
pub(super) fn masked(op: Op, wide: bool) -> Op {
    op.sized(wide)
}
