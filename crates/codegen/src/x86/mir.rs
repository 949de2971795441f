//! Machine instructions before registers are known.
//!
//! A [`Reg`] stands for a register of its class. Most are written once; those that a loop carries
//! are written before it and at its end.

use super::asm::{Cond, Label, Len};
use super::ops::Op;
use crate::kernel::Buf;

/// A register to be allocated; the index of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reg(pub(super) u32);

impl Reg {
    /// No register.
    pub(super) const NONE: Reg = Reg(u32::MAX);
    /// As the base of an address: the kernel's own memory on the stack.
    pub(super) const STACK: Reg = Reg(u32::MAX - 1);

    /// Whether this names a register that the allocator places.
    pub(super) fn is_some(self) -> bool {
        self.0 < Reg::STACK.0
    }
}

/// A set of registers that are interchangeable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegClass {
    Vector,
    Mask,
    General,
}

/// A constant that a register holds, so that it need not be kept in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fixed {
    /// The same 32 bits in all lanes.
    Bits32(u32),
    /// The same 64 bits in all lanes.
    Bits64(u64),
    /// A vector of the list of tables.
    Table(u32),
    /// A mask, by its lanes.
    Mask(u16),
    /// A number in a general register.
    Int(i64),
}

/// What is known of a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegInfo {
    pub(super) class: RegClass,
    /// Of a vector.
    pub(super) len: Len,
    pub(super) fixed: Option<Fixed>,
    /// Whether a loop carries it: waiting for it would be waiting in every iteration.
    pub(super) carried: bool,
}

/// What an address is meant to lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// The kernel's own memory on the stack.
    Stack,
    /// The caller's list of where buffers begin.
    List,
    /// A buffer.
    Buffer(Buf),
}

/// `base + (index << shift) + disp`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) of: Region,
    pub(super) base: Reg,
    pub(super) index: Reg,
    pub(super) shift: u8,
    pub(super) disp: i32,
}

impl Address {
    /// The address `bytes` bytes further on.
    pub(super) fn plus(self, bytes: i32) -> Address {
        Address { disp: self.disp + bytes, ..self }
    }
}

/// The operand that may lie in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Src {
    Reg(Reg),
    Mem(Address),
}

impl From<Reg> for Src {
    fn from(reg: Reg) -> Src {
        Src::Reg(reg)
    }
}

/// Two-operand arithmetic on general registers, by its opcode (`op reg, rm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alu {
    Add,
    Sub,
    Mul,
    And,
    Min,
    Max,
    /// Zero if the divisor is zero.
    Div,
}

/// The second operand of arithmetic on general registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Reg(Reg),
    Imm(i32),
}

/// The size of a scalar in memory, and how it fills a general register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    I64,
}

/// `dst = op(a, b)` on vectors or masks.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorInst {
    pub(super) op: Op,
    pub(super) len: Len,
    pub(super) dst: Reg,
    /// The first source; none for operations of one.
    pub(super) a: Reg,
    pub(super) b: Src,
    /// Which lanes are on; none for all.
    pub(super) mask: Reg,
    /// Whether lanes that are off become zero; otherwise `op` says what they become.
    pub(super) zero: bool,
    pub(super) imm: Option<u8>,
}

/// A machine instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst {
    /// The argument of the call that comes in a machine register.
    Argument { dst: Reg, from: u8 },
    /// Puts the constant that `dst` is there.
    Fixed { dst: Reg },
    /// The same bits.
    Mov { dst: Reg, src: Reg },
    /// An operation of two sources.
    Vector(VectorInst),
    /// A shift of all lanes by `imm`.
    Shift { op: Op, ext: u8, len: Len, dst: Reg, a: Reg, imm: u8 },
    /// `dst = op(src)` with the destination where others have a source.
    Out { op: Op, len: Len, dst: Reg, src: Reg, imm: Option<u8> },
    /// Writes memory.
    Store { op: Op, len: Len, src: Reg, mem: Address, mask: Reg, imm: Option<u8> },
    /// A fused product of `a` and `b` and sum with `c`; `op` is the 132 form.
    Fma { op: Op, len: Len, dst: Reg, a: Reg, b: Reg, c: Reg },
    /// `dst = op(tied, a, b)`, where the destination is the first source. `dst` is written by this
    /// instruction alone.
    Tied { op: Op, len: Len, dst: Reg, tied: Reg, a: Reg, b: Reg, imm: Option<u8> },
    /// AVX2's choice by a vector: lanes of `t` where the sign of `mask` is set.
    Blend { len: Len, dst: Reg, mask: Reg, t: Reg, f: Reg },
    /// Lanes of memory at `mem + (index << shift)`; clears `mask`. `dst` is written by this
    /// instruction alone and was zero.
    Gather { op: Op, len: Len, dst: Reg, zero: Reg, mem: Address, mask: Reg },
    /// Writes lanes to `mem + (index << shift)`; clears `mask`.
    Scatter { op: Op, len: Len, src: Reg, mem: Address, mask: Reg },
    /// An address as a number.
    Lea { dst: Reg, mem: Address },
    /// Reads a scalar.
    Load { dst: Reg, mem: Address, scalar: Scalar },
    /// Writes a scalar.
    StoreScalar { src: Reg, mem: Address, scalar: Scalar },
    /// `dst = op(a, b)`.
    Alu { op: Alu, dst: Reg, a: Reg, b: Operand },
    /// `dst = a << by`, or right, filling with zeros.
    ShiftScalar { left: bool, dst: Reg, a: Reg, by: u8 },
    /// The low 32 bits, sign-extended.
    SignExtend { dst: Reg, a: Reg },
    /// `min(max(end - index, 0), lanes)`.
    Below { dst: Reg, index: Reg, end: Reg, lanes: u8, positive: bool },
    /// All bits set if any of the bits `of` is set in `a`, else none.
    AnyBit { dst: Reg, a: Reg, of: i32 },
    /// `(1 << count) - 1`.
    LowBits { dst: Reg, count: Reg },
    /// Jumps if `a cond b`.
    Compare { cond: Cond, a: Reg, b: Operand, to: Label },
    /// Jumps if a bit of a general register is clear.
    UnlessBit { a: Reg, bit: u8, to: Label },
    /// Jumps if no lane of a mask, or of a vector that stands for one, is set.
    UnlessAny { mask: Reg, to: Label },
    /// Jumps.
    Jump { to: Label },
    /// A place that jumps ahead lead to.
    Label { at: Label },
    /// The place that the jump at a loop's end leads to; `inner` if no loop is within.
    LoopBegin { at: Label, inner: bool },
    /// The end of the innermost open loop, behind its jump.
    LoopEnd,
}

/// What an instruction does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Reads it before anything is written.
    Use,
    /// Reads it after something was written: the destination must be another register.
    LateUse,
    /// Writes it.
    Def,
}

impl Inst {
    /// Calls `f` with each register of the instruction: first what it reads, then what it writes.
    pub(super) fn registers(&self, mut f: impl FnMut(Reg, Role)) {
        let mut see = |reg: Reg, role| {
            if reg.is_some() {
                f(reg, role);
            }
        };
        use Role::{Def, LateUse, Use};
        let address = |see: &mut dyn FnMut(Reg, Role), mem: &Address, role| {
            see(mem.base, role);
            see(mem.index, role);
        };
        match self {
            Inst::Argument { dst, .. } | Inst::Fixed { dst } => see(*dst, Def),
            Inst::Mov { dst, src } | Inst::Out { dst, src, .. } => {
                see(*src, Use);
                see(*dst, Def);
            }
            Inst::Vector(VectorInst { dst, a, b, mask, .. }) => {
                see(*a, Use);
                match b {
                    Src::Reg(b) => see(*b, Use),
                    Src::Mem(mem) => address(&mut see, mem, Use),
                }
                see(*mask, Use);
                see(*dst, Def);
            }
            Inst::Shift { dst, a, .. }
            | Inst::ShiftScalar { dst, a, .. }
            | Inst::AnyBit { dst, a, .. }
            | Inst::SignExtend { dst, a } => {
                see(*a, Use);
                see(*dst, Def);
            }
            Inst::Store { src, mem, mask, .. } => {
                see(*src, Use);
                address(&mut see, mem, Use);
                see(*mask, Use);
            }
            Inst::Fma { dst, a, b, c, .. } => {
                see(*a, Use);
                see(*b, Use);
                see(*c, Use);
                see(*dst, Def);
            }
            Inst::Tied { dst, tied, a, b, .. } => {
                see(*tied, Use);
                see(*a, LateUse);
                see(*b, LateUse);
                see(*dst, Def);
            }
            Inst::Blend { dst, mask, t, f, .. } => {
                see(*mask, Use);
                see(*t, Use);
                see(*f, Use);
                see(*dst, Def);
            }
            Inst::Gather { dst, zero, mem, mask, .. } => {
                see(*zero, Use);
                address(&mut see, mem, LateUse);
                see(*mask, LateUse);
                see(*dst, Def);
            }
            Inst::Scatter { src, mem, mask, .. } => {
                see(*src, Use);
                address(&mut see, mem, Use);
                see(*mask, Use);
            }
            Inst::Lea { dst, mem } | Inst::Load { dst, mem, .. } => {
                address(&mut see, mem, Use);
                see(*dst, Def);
            }
            Inst::StoreScalar { src, mem, .. } => {
                see(*src, Use);
                address(&mut see, mem, Use);
            }
            Inst::Alu { dst, a, b, .. } => {
                see(*a, Use);
                if let Operand::Reg(b) = b {
                    see(*b, Use);
                }
                see(*dst, Def);
            }
            Inst::Below { dst, index, end, .. } => {
                see(*index, Use);
                see(*end, Use);
                see(*dst, Def);
            }
            Inst::LowBits { dst, count } => {
                see(*count, Use);
                see(*dst, Def);
            }
            Inst::Compare { a, b, .. } => {
                see(*a, Use);
                if let Operand::Reg(b) = b {
                    see(*b, Use);
                }
            }
            Inst::UnlessBit { a, .. } | Inst::UnlessAny { mask: a, .. } => see(*a, Use),
            Inst::Jump { .. } | Inst::Label { .. } | Inst::LoopBegin { .. } | Inst::LoopEnd => {}
        }
    }

    /// Whether the instruction does nothing but write its destination.
    pub(super) fn is_pure(&self) -> bool {
        !matches!(
            self,
            Inst::Store { .. }
                | Inst::StoreScalar { .. }
                | Inst::Scatter { .. }
                | Inst::Compare { .. }
                | Inst::UnlessBit { .. }
                | Inst::UnlessAny { .. }
                | Inst::Jump { .. }
                | Inst::Label { .. }
                | Inst::LoopBegin { .. }
                | Inst::LoopEnd
        )
    }

    /// The source whose register the destination had better take.
    pub(super) fn hint(&self) -> Option<(Reg, Reg)> {
        match *self {
            Inst::Mov { dst, src } => Some((dst, src)),
            Inst::Fma { dst, c, .. } => Some((dst, c)),
            Inst::Tied { dst, tied, .. } => Some((dst, tied)),
            Inst::Gather { dst, zero, .. } => Some((dst, zero)),
            Inst::Alu { dst, a, .. } | Inst::ShiftScalar { dst, a, .. } => Some((dst, a)),
            _ => None,
        }
    }
}

/// A kernel's instructions over virtual registers: what selection makes, and registers are allocated
/// for.
pub(super) struct VirtualCode {
    pub(super) lanes: usize,
    pub(super) insts: Vec<Inst>,
    pub(super) regs: Vec<RegInfo>,
    pub(super) tables: Vec<Vec<u8>>,
    pub(super) labels: usize,
    /// Bytes of the kernel's own memory on the stack, beside what is spilled.
    pub(super) stack_bytes: usize,
    /// Whether anything is written past the caches.
    pub(super) streams: bool,
    /// What accesses are checked against; without it, they are not.
    pub(super) bounds: Option<BufferSizes>,
}

/// The sizes of what a kernel touches, in bytes.
pub(super) struct BufferSizes {
    /// The buffers of the caller, by number.
    pub(super) params: Vec<usize>,
    pub(super) scratch: usize,
    /// Where on the stack checks have a vector to themselves.
    pub(super) spare: i32,
}

impl BufferSizes {
    pub(super) fn size(&self, buf: Buf) -> usize {
        match buf {
            Buf::Param(n) => self.params[n as usize],
            Buf::Scratch => self.scratch,
        }
    }
}
