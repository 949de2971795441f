//! Machine code from instructions whose registers are allocated.
//!
//! What lies on the stack or behind the code is used there if the instruction allows it, else goes
//! through a scratch register.

use helio_ir::{Error, Result};

use super::Isa;
use super::alloc::{
    Allocation, Allocations, CALLEE_SAVED, CHECKS, SCRATCH_GENERAL, SCRATCH_MASKS, scratch_vectors,
};
use super::asm::{Asm, Cond, Fields, Label, Len, RSP, Rm};
use super::mir::{Address, Alu, Fixed, Inst, Operand, Reg, RegClass, Scalar, Src, VirtualCode};
use super::ops::{self, Op};
use crate::machine::Access;

/// The largest stack frame: threads of the runtime have room for it.
const MAX_FRAME_BYTES: usize = 1 << 16;

pub(super) const RAX: u8 = SCRATCH_GENERAL[0];
pub(super) const RDX: u8 = SCRATCH_GENERAL[1];

/// The machine code, and the accesses that it checks.
pub(super) fn emit(
    code: &VirtualCode,
    allocations: &Allocations,
    isa: Isa,
) -> Result<(Vec<u8>, Vec<Access>)> {
    if allocations.frame_bytes > MAX_FRAME_BYTES {
        let bytes = allocations.frame_bytes;
        return Err(Error::unimplemented(format!("a kernel needs {bytes} bytes of stack")));
    }
    let asm = Asm::new(code.labels, 16 * code.insts.len() + 256);
    let vectors = scratch_vectors(isa);
    let mut emit = Emit { asm, code, allocations, isa, vectors, checked: Vec::new() };
    emit.prologue();
    for inst in &code.insts {
        if let Some(bounds) = &code.bounds {
            emit.check(inst, bounds)?;
        }
        emit.inst(inst);
    }
    let accesses = emit.end();
    Ok((emit.asm.finish(), accesses))
}

pub(super) struct Emit<'p> {
    pub(super) asm: Asm,
    pub(super) code: &'p VirtualCode,
    pub(super) allocations: &'p Allocations,
    isa: Isa,
    /// Scratch registers.
    vectors: [u8; 2],
    /// Accesses that are checked, and where it goes on if one lies outside.
    pub(super) checked: Vec<(Access, Label)>,
}

pub(super) fn stack(disp: i32) -> Rm {
    Rm::Mem { base: RSP, index: None, shift: 0, disp }
}

pub(super) fn fields(len: Len, reg: u8, vvvv: u8, rm: Rm) -> Fields {
    Fields { len, reg, vvvv, rm, mask: 0, zero: false, imm: None }
}

impl Emit<'_> {
    fn allocation(&self, reg: Reg) -> Allocation {
        self.allocations.of[reg.0 as usize]
    }

    pub(super) fn class(&self, reg: Reg) -> RegClass {
        self.code.regs[reg.0 as usize].class
    }

    pub(super) fn len(&self, reg: Reg) -> Len {
        self.code.regs[reg.0 as usize].len
    }

    fn fixed(&self, reg: Reg) -> Fixed {
        self.code.regs[reg.0 as usize].fixed.expect("only constants are placed behind the code")
    }

    fn evex(&self) -> bool {
        self.isa == Isa::Avx512
    }

    pub(super) fn vector(&mut self, op: Op, fields: Fields) {
        self.asm.vector(self.evex() && !op.vex_only, op, fields);
    }

    /// An instruction on mask registers.
    pub(super) fn vex(&mut self, op: Op, len: Len, reg: u8, vvvv: u8, rm: Rm) {
        self.asm.vector(false, op, fields(len, reg, vvvv, rm));
    }

    fn prologue(&mut self) {
        for reg in CALLEE_SAVED {
            if self.allocations.general_used >> reg & 1 != 0 {
                self.push_or_pop(0x50, reg);
            }
        }
        let frame = self.allocations.frame_bytes as i32;
        if frame > 0 {
            // The frame is aligned; where the stack was is kept behind it.
            self.asm.general(&[0x8b], true, RAX, Rm::Reg(RSP), 0);
            // A frame of several pages is touched page by page, so that the guard page is met.
            for page in 1..=frame / 4096 {
                self.asm.general(&[0x84], false, RAX, stack(-4096 * page), 0);
            }
            self.asm.general(&[0x81], true, 5, Rm::Reg(RSP), 4);
            self.asm.raw(&(frame + 8).to_le_bytes());
            self.asm.general(&[0x83], true, 4, Rm::Reg(RSP), 1);
            self.asm.raw(&[-64i8 as u8]);
            self.asm.general(&[0x89], true, RAX, stack(frame), 0);
        }
        if self.code.bounds.is_some() {
            // Arguments, where the calling convention puts them.
            const RDI: u8 = 7;
            const RCX: u8 = 1;
            let [list, scratch, ..] = CHECKS;
            self.asm.general(&[0x8b], true, list, Rm::Reg(RDI), 0);
            self.asm.general(&[0x8b], true, scratch, Rm::Reg(RCX), 0);
        }
    }

    pub(super) fn epilogue(&mut self) {
        if self.code.streams {
            // sfence: what went past the caches is in place before anybody is told so.
            self.asm.raw(&[0x0f, 0xae, 0xf8]);
        }
        // vzeroupper
        self.asm.raw(&[0xc5, 0xf8, 0x77]);
        let frame = self.allocations.frame_bytes as i32;
        if frame > 0 {
            self.asm.general(&[0x8b], true, RSP, stack(frame), 0);
        }
        for reg in CALLEE_SAVED.into_iter().rev() {
            if self.allocations.general_used >> reg & 1 != 0 {
                self.push_or_pop(0x58, reg);
            }
        }
        self.asm.raw(&[0xc3]);
    }

    fn push_or_pop(&mut self, code: u8, reg: u8) {
        if reg >= 8 {
            self.asm.raw(&[0x41]);
        }
        self.asm.raw(&[code | reg & 7]);
    }

    // Operands.

    /// A general register with the value.
    fn general(&mut self, reg: Reg, scratch: u8) -> u8 {
        match self.allocation(reg) {
            Allocation::Machine(n) => n,
            Allocation::Stack(at) => {
                self.asm.general(&[0x8b], true, scratch, stack(at), 0);
                scratch
            }
            Allocation::Constant | Allocation::None => {
                if let Fixed::Int(value) = self.fixed(reg) {
                    self.set_int(scratch, value);
                }
                scratch
            }
        }
    }

    /// A value of a general register wherever it lies.
    fn general_rm(&mut self, reg: Reg) -> Rm {
        match (self.allocation(reg), self.code.regs[reg.0 as usize].fixed) {
            (Allocation::Machine(n), _) => Rm::Reg(n),
            (Allocation::Stack(at), _) => stack(at),
            (_, Some(Fixed::Int(value))) => {
                Rm::Pool { at: self.asm.constant(&value.to_le_bytes()), splat: false }
            }
            _ => unreachable!("a general register is placed or a number"),
        }
    }

    /// The machine register that an instruction writes in place of `reg`.
    fn general_dst(&self, reg: Reg) -> u8 {
        match self.allocation(reg) {
            Allocation::Machine(n) => n,
            _ => RAX,
        }
    }

    /// Writes a result to the stack if it belongs there.
    fn general_done(&mut self, reg: Reg, from: u8) {
        match self.allocation(reg) {
            Allocation::Machine(n) if n != from => {
                self.asm.general(&[0x8b], true, n, Rm::Reg(from), 0)
            }
            Allocation::Stack(at) => self.asm.general(&[0x89], true, from, stack(at), 0),
            _ => {}
        }
    }

    pub(super) fn set_int(&mut self, reg: u8, value: i64) {
        let low = Rm::Reg(reg);
        if value == 0 {
            self.asm.general(&[0x31], false, reg, low, 0);
        } else if let Ok(short) = i32::try_from(value) {
            // The short form zero-extends.
            if short > 0 {
                self.asm.general(&[0xc7], false, 0, low, 4);
            } else {
                self.asm.general(&[0xc7], true, 0, low, 4);
            }
            self.asm.raw(&short.to_le_bytes());
        } else {
            self.asm.raw(&[0x48 | reg >> 3, 0xb8 | reg & 7]);
            self.asm.raw(&value.to_le_bytes());
        }
    }

    /// An address, with general registers from the stack in scratch registers.
    pub(super) fn address(&mut self, mem: Address) -> Rm {
        let (base, disp) = if mem.base == Reg::STACK {
            (RSP, mem.disp)
        } else {
            (self.general(mem.base, RAX), mem.disp)
        };
        let index = mem.index.is_some().then(|| match self.class(mem.index) {
            RegClass::Vector => self.vector_in(mem.index, 1),
            _ => self.general(mem.index, RDX),
        });
        Rm::Mem { base, index, shift: mem.shift, disp }
    }

    /// The bytes of a constant vector.
    fn constant_bytes(&self, fixed: Fixed, size: usize) -> Vec<u8> {
        match fixed {
            Fixed::Bits32(bits) => bits.to_le_bytes().repeat(size.div_ceil(4)),
            Fixed::Bits64(bits) => bits.to_le_bytes().repeat(size.div_ceil(8)),
            Fixed::Table(n) => self.code.tables[n as usize].clone(),
            Fixed::Mask(_) | Fixed::Int(_) => unreachable!("not a vector"),
        }
    }

    /// A vector register with the value.
    pub(super) fn vector_in(&mut self, reg: Reg, scratch: usize) -> u8 {
        let n = self.vectors[scratch];
        match self.allocation(reg) {
            Allocation::Machine(n) => return n,
            Allocation::Stack(at) => {
                self.vector(ops::MOV_LOAD, fields(self.len(reg), n, 0, stack(at)));
            }
            Allocation::Constant | Allocation::None => self.set_constant(n, reg),
        }
        n
    }

    /// Puts a constant into a vector register.
    fn set_constant(&mut self, n: u8, reg: Reg) {
        let len = self.len(reg);
        match self.fixed(reg) {
            // Writing a short vector clears the rest.
            Fixed::Bits32(0) | Fixed::Bits64(0) => {
                self.vector(ops::XOR, fields(Len::X, n, n, Rm::Reg(n)));
            }
            Fixed::Bits32(u32::MAX) | Fixed::Bits64(u64::MAX) => {
                if self.evex() {
                    let all = Fields { imm: Some(0xff), ..fields(len, n, n, Rm::Reg(n)) };
                    self.vector(ops::TERNARY, all);
                } else {
                    self.vector(ops::EQUAL_32, fields(len, n, n, Rm::Reg(n)));
                }
            }
            Fixed::Bits32(bits) => {
                let at = self.asm.constant(&bits.to_le_bytes());
                self.vector(ops::SPLAT_32, fields(len, n, 0, Rm::Pool { at, splat: false }));
            }
            Fixed::Bits64(bits) => {
                let at = self.asm.constant(&bits.to_le_bytes());
                // vbroadcastsd has no 128-bit form.
                let op = if len == Len::X { ops::LOAD_PAIR } else { ops::SPLAT_64 };
                self.vector(op, fields(len, n, 0, Rm::Pool { at, splat: false }));
            }
            fixed => {
                let at = self.asm.constant(&self.constant_bytes(fixed, len.bytes()));
                self.vector(ops::MOV_LOAD, fields(len, n, 0, Rm::Pool { at, splat: false }));
            }
        }
    }

    /// A vector wherever `op` can read it.
    fn vector_rm(&mut self, reg: Reg, op: Op, len: Len) -> Rm {
        if !op.takes_memory() {
            return Rm::Reg(self.vector_in(reg, 1));
        }
        match self.allocation(reg) {
            Allocation::Machine(n) => Rm::Reg(n),
            Allocation::Stack(at) => stack(at),
            Allocation::Constant | Allocation::None => {
                let fixed = self.fixed(reg);
                let splat = match fixed {
                    _ if !self.evex() || !op.splats() => None,
                    Fixed::Bits32(bits) if op.element() == 4 => {
                        Some(self.asm.constant(&bits.to_le_bytes()))
                    }
                    Fixed::Bits64(bits) if op.element() == 8 => {
                        Some(self.asm.constant(&bits.to_le_bytes()))
                    }
                    _ => None,
                };
                match splat {
                    Some(at) => Rm::Pool { at, splat: true },
                    None => {
                        let bytes = self.constant_bytes(fixed, op.memory_bytes(len));
                        Rm::Pool { at: self.asm.constant(&bytes), splat: false }
                    }
                }
            }
        }
    }

    /// A mask register with the value.
    pub(super) fn mask_in(&mut self, reg: Reg, scratch: usize) -> u8 {
        let n = SCRATCH_MASKS[scratch];
        match self.allocation(reg) {
            Allocation::Machine(n) => return n,
            Allocation::Stack(at) => self.vex(ops::MASK_MOV, Len::X, n, 0, stack(at)),
            Allocation::Constant | Allocation::None => self.set_mask(n, reg),
        }
        n
    }

    fn set_mask(&mut self, n: u8, reg: Reg) {
        match self.fixed(reg) {
            Fixed::Mask(0) => self.vex(ops::MASK_XOR, Len::Y, n, n, Rm::Reg(n)),
            Fixed::Mask(u16::MAX) => self.vex(ops::MASK_XNOR, Len::Y, n, n, Rm::Reg(n)),
            Fixed::Mask(lanes) => {
                let at = self.asm.constant(&lanes.to_le_bytes());
                self.vex(ops::MASK_MOV, Len::X, n, 0, Rm::Pool { at, splat: false });
            }
            _ => unreachable!("only masks are in mask registers"),
        }
    }

    /// An operand in a register of its class.
    fn reg_in(&mut self, reg: Reg, scratch: usize) -> u8 {
        match self.class(reg) {
            RegClass::Vector => self.vector_in(reg, scratch),
            RegClass::Mask => self.mask_in(reg, scratch),
            RegClass::General => self.general(reg, SCRATCH_GENERAL[scratch]),
        }
    }

    /// The machine register that an instruction writes in place of `reg`.
    fn dst(&self, reg: Reg) -> u8 {
        match (self.allocation(reg), self.class(reg)) {
            (Allocation::Machine(n), _) => n,
            (_, RegClass::Vector) => self.vectors[0],
            (_, RegClass::Mask) => SCRATCH_MASKS[0],
            (_, RegClass::General) => RAX,
        }
    }

    /// Writes a result to the stack if it belongs there.
    fn done(&mut self, reg: Reg, from: u8) {
        let Allocation::Stack(at) = self.allocation(reg) else { return };
        match self.class(reg) {
            RegClass::Vector => {
                self.vector(ops::MOV_STORE, fields(self.len(reg), from, 0, stack(at)));
            }
            RegClass::Mask => self.vex(ops::MASK_STORE, Len::X, from, 0, stack(at)),
            RegClass::General => self.asm.general(&[0x89], true, from, stack(at), 0),
        }
    }

    /// The mask of an instruction; 0 if it has none.
    fn mask_of(&mut self, mask: Reg) -> u8 {
        if mask.is_some() { self.mask_in(mask, 0) } else { 0 }
    }

    // Instructions.

    fn inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Argument { dst, from } => self.general_done(dst, from),
            Inst::Fixed { dst } => {
                if let Allocation::Machine(n) = self.allocation(dst) {
                    self.set_fixed(dst, n);
                }
            }
            Inst::Mov { dst, src } => self.mov(dst, src),
            Inst::Vector { op, len, dst, a, b, mask, zero, imm } => {
                self.vector_op(op, len, dst, a, b, mask, zero, imm);
            }
            Inst::Shift { op, ext, len, dst, a, imm } => {
                let a = self.vector_in(a, 0);
                let to = self.dst(dst);
                let shift = Fields { imm: Some(imm), ..fields(len, ext, to, Rm::Reg(a)) };
                self.vector(op, shift);
                self.done(dst, to);
            }
            Inst::Out { op, len, dst, src, imm } => {
                let src = self.reg_in(src, 1);
                let to = self.dst(dst);
                self.vector(op, Fields { imm, ..fields(len, src, 0, Rm::Reg(to)) });
                self.done(dst, to);
            }
            Inst::Store { op, len, src, mem, mask, imm } => {
                let src = self.vector_in(src, 0);
                let rm = self.address(mem);
                let mut store = Fields { imm, ..fields(len, src, 0, rm) };
                if mask.is_some() && self.class(mask) == RegClass::Vector {
                    store.vvvv = self.vector_in(mask, 1);
                } else {
                    store.mask = self.mask_of(mask);
                }
                self.vector(op, store);
            }
            Inst::Fma { op, len, dst, a, b, c } => self.fma(op, len, dst, a, b, c),
            Inst::Tied { op, len, dst, tied, a, b, imm } => {
                let to = self.dst(dst);
                self.vector_to(tied, to);
                let a = self.vector_in(a, 1);
                let rm = self.vector_rm(b, op, len);
                self.vector(op, Fields { imm, ..fields(len, to, a, rm) });
                self.done(dst, to);
            }
            Inst::Blend { len, dst, mask, t, f } => {
                let f = self.vector_in(f, 0);
                let mask = self.vector_in(mask, 1);
                let rm = self.vector_rm(t, ops::BLEND_BYTES, len);
                let to = self.dst(dst);
                let blend = Fields { imm: Some(mask << 4), ..fields(len, to, f, rm) };
                self.vector(ops::BLEND_BYTES, blend);
                self.done(dst, to);
            }
            Inst::Gather { op, len, dst, zero, mem, mask } => {
                let to = self.dst(dst);
                self.vector_to(zero, to);
                let rm = self.address(mem);
                let mask = self.mask_of(mask);
                self.vector(op, Fields { mask, ..fields(len, to, 0, rm) });
                self.done(dst, to);
            }
            Inst::Scatter { op, len, src, mem, mask } => {
                let src = self.vector_in(src, 0);
                let rm = self.address(mem);
                let mask = self.mask_of(mask);
                self.vector(op, Fields { mask, ..fields(len, src, 0, rm) });
            }
            Inst::UnlessAny { mask, to } => {
                let n = self.reg_in(mask, 0);
                match self.class(mask) {
                    RegClass::Vector => {
                        self.vector(ops::VECTOR_ANY, fields(self.len(mask), n, 0, Rm::Reg(n)));
                    }
                    _ => {
                        let op =
                            if self.code.lanes > 8 { ops::MASK_ANY_16 } else { ops::MASK_ANY_8 };
                        self.vex(op, Len::X, n, 0, Rm::Reg(n));
                    }
                }
                self.asm.jump(Some(Cond::Equal), to);
            }
            Inst::Jump { to } => self.asm.jump(None, to),
            Inst::Label { at } => self.asm.bind(at),
            Inst::LoopBegin { at, inner } => {
                if inner {
                    self.asm.align(32);
                }
                self.asm.bind(at);
            }
            Inst::LoopEnd => {}
            _ => self.general_inst(inst),
        }
    }

    fn set_fixed(&mut self, reg: Reg, n: u8) {
        match self.fixed(reg) {
            Fixed::Int(value) => self.set_int(n, value),
            Fixed::Mask(_) => self.set_mask(n, reg),
            _ => self.set_constant(n, reg),
        }
    }

    /// Copies a vector to a machine register.
    fn vector_to(&mut self, reg: Reg, to: u8) {
        match self.allocation(reg) {
            Allocation::Machine(n) if n == to => {}
            Allocation::Machine(n) => {
                self.vector(ops::MOV_REG, fields(self.len(reg), to, 0, Rm::Reg(n)));
            }
            Allocation::Stack(at) => {
                self.vector(ops::MOV_LOAD, fields(self.len(reg), to, 0, stack(at)));
            }
            Allocation::Constant | Allocation::None => self.set_constant(to, reg),
        }
    }

    fn mov(&mut self, dst: Reg, src: Reg) {
        let (to, from) = (self.allocation(dst), self.allocation(src));
        if to == from || to == Allocation::None {
            return;
        }
        match (self.class(dst), to) {
            (RegClass::Vector, Allocation::Machine(to)) => self.vector_to(src, to),
            (RegClass::Mask, Allocation::Machine(to)) => match from {
                Allocation::Machine(n) => self.vex(ops::MASK_MOV, Len::X, to, 0, Rm::Reg(n)),
                Allocation::Stack(at) => self.vex(ops::MASK_MOV, Len::X, to, 0, stack(at)),
                _ => self.set_mask(to, src),
            },
            (RegClass::General, Allocation::Machine(to)) => {
                let from = self.general(src, to);
                if from != to {
                    self.asm.general(&[0x8b], true, to, Rm::Reg(from), 0);
                }
            }
            _ => {
                let from = self.reg_in(src, 0);
                self.done(dst, from);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an instruction")]
    fn vector_op(
        &mut self,
        op: Op,
        len: Len,
        dst: Reg,
        mut a: Reg,
        mut b: Src,
        mask: Reg,
        zero: bool,
        imm: Option<u8>,
    ) {
        if let Src::Reg(second) = b
            && op.commutes
            && a.is_some()
            && !matches!(self.allocation(a), Allocation::Machine(_))
            && matches!(self.allocation(second), Allocation::Machine(_))
        {
            (a, b) = (second, a.into());
        }
        let vvvv = if a.is_some() { self.reg_in(a, 0) } else { 0 };
        let rm = match b {
            Src::Mem(mem) => self.address(mem),
            Src::Reg(b) => match self.class(b) {
                RegClass::Vector => self.vector_rm(b, op, len),
                RegClass::Mask => Rm::Reg(self.mask_in(b, 1)),
                RegClass::General => Rm::Reg(self.general(b, RAX)),
            },
        };
        let to = self.dst(dst);
        let mask = self.mask_of(mask);
        self.vector(op, Fields { mask, zero, imm, ..fields(len, to, vvvv, rm) });
        self.done(dst, to);
    }

    /// A fused product, in the form that needs no move.
    fn fma(&mut self, op: Op, len: Len, dst: Reg, a: Reg, b: Reg, c: Reg) {
        let to = self.dst(dst);
        let at = |this: &Self, reg| match this.allocation(reg) {
            Allocation::Machine(n) => Some(n),
            _ => None,
        };
        let [in_a, in_b, in_c] = [a, b, c].map(|reg| at(self, reg));
        // What the destination holds first: a source that is there, or one that must be loaded.
        let tied = if in_c == Some(to) {
            c
        } else if in_a == Some(to) {
            a
        } else if in_b == Some(to) {
            b
        } else if in_c.is_none() {
            c
        } else if in_a.is_none() {
            a
        } else if in_b.is_none() {
            b
        } else {
            c
        };
        self.vector_to(tied, to);
        if tied == c {
            // 231: to = vvvv * rm + to
            let (vvvv, rm) = if in_a.is_some() { (a, b) } else { (b, a) };
            self.fma_form(op, 0x20, len, to, vvvv, rm);
        } else {
            let other = if tied == a { b } else { a };
            let in_other = at(self, other);
            if in_other.is_some() || in_c.is_none() {
                // 213: to = vvvv * to + rm
                self.fma_form(op, 0x10, len, to, other, c);
            } else {
                // 132: to = to * rm + vvvv
                self.fma_form(op, 0, len, to, c, other);
            }
        }
        self.done(dst, to);
    }

    fn fma_form(&mut self, op: Op, form: u8, len: Len, to: u8, vvvv: Reg, rm: Reg) {
        let vvvv = self.vector_in(vvvv, 1);
        let rm = self.vector_rm(rm, op, len);
        self.vector(op.above(form), fields(len, to, vvvv, rm));
    }

    /// An instruction on general registers.
    fn general_inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Lea { dst, mem } => {
                let rm = self.address(mem);
                let to = self.general_dst(dst);
                self.asm.general(&[0x8d], true, to, rm, 0);
                self.general_done(dst, to);
            }
            Inst::Load { dst, mem, scalar } => {
                let rm = self.address(mem);
                let to = self.general_dst(dst);
                let (opcode, wide): (&[u8], bool) = match scalar {
                    Scalar::U8 => (&[0x0f, 0xb6], false),
                    Scalar::I8 => (&[0x0f, 0xbe], true),
                    Scalar::U16 => (&[0x0f, 0xb7], false),
                    Scalar::I16 => (&[0x0f, 0xbf], true),
                    Scalar::U32 => (&[0x8b], false),
                    Scalar::I32 => (&[0x63], true),
                    Scalar::I64 => (&[0x8b], true),
                };
                self.asm.general(opcode, wide, to, rm, 0);
                self.general_done(dst, to);
            }
            Inst::StoreScalar { src, mem, scalar } => self.store_scalar(src, mem, scalar),
            Inst::Alu { op, dst, a, b } => self.alu(op, dst, a, b),
            Inst::ShiftScalar { left, dst, a, by } => {
                let to = self.general_dst(dst);
                let from = self.general(a, to);
                if from != to {
                    self.asm.general(&[0x8b], true, to, Rm::Reg(from), 0);
                }
                self.asm.general(&[0xc1], true, if left { 4 } else { 5 }, Rm::Reg(to), 1);
                self.asm.raw(&[by]);
                self.general_done(dst, to);
            }
            Inst::SignExtend { dst, a } => {
                let from = self.general(a, RAX);
                let to = self.general_dst(dst);
                self.asm.general(&[0x63], true, to, Rm::Reg(from), 0);
                self.general_done(dst, to);
            }
            Inst::Below { dst, index, end, lanes, positive } => {
                self.load_general(RAX, end);
                let index = self.general_rm(index);
                self.asm.general(&[0x2b], true, RAX, index, 0);
                self.set_int(RDX, lanes.into());
                self.asm.general(&[0x3b], true, RAX, Rm::Reg(RDX), 0);
                self.move_if(Cond::Greater, RAX, Rm::Reg(RDX));
                if !positive {
                    self.set_int(RDX, 0);
                    self.asm.general(&[0x85], true, RAX, Rm::Reg(RAX), 0);
                    self.move_if(Cond::Sign, RAX, Rm::Reg(RDX));
                }
                self.general_done(dst, RAX);
            }
            Inst::AnyBit { dst, a, of } => {
                self.load_general(RAX, a);
                self.alu_with(0x23, 4, RAX, Operand::Imm(of));
                // neg sets the carry if the number is not zero; sbb spreads it.
                self.asm.general(&[0xf7], true, 3, Rm::Reg(RAX), 0);
                self.asm.general(&[0x1b], true, RAX, Rm::Reg(RAX), 0);
                self.general_done(dst, RAX);
            }
            Inst::LowBits { dst, count } => {
                let count = self.general(count, RAX);
                self.set_int(RDX, -1);
                self.vex(ops::LOW_BITS, Len::X, RDX, count, Rm::Reg(RDX));
                let to = self.dst(dst);
                self.vex(ops::MASK_FROM_GENERAL, Len::X, to, 0, Rm::Reg(RDX));
                self.done(dst, to);
            }
            Inst::Compare { cond, a, b, to } => {
                let a = self.general(a, RAX);
                self.alu_with(0x3b, 7, a, b);
                self.asm.jump(Some(cond), to);
            }
            Inst::UnlessBit { a, bit, to } => {
                let a = self.general(a, RAX);
                self.asm.general(&[0x0f, 0xba], false, 4, Rm::Reg(a), 1);
                self.asm.raw(&[bit]);
                self.asm.jump(Some(Cond::NotCarry), to);
            }
            _ => unreachable!("an instruction on vectors"),
        }
    }

    fn load_general(&mut self, to: u8, reg: Reg) {
        let from = self.general(reg, to);
        if from != to {
            self.asm.general(&[0x8b], true, to, Rm::Reg(from), 0);
        }
    }

    fn move_if(&mut self, cond: Cond, to: u8, from: Rm) {
        self.asm.general(&[0x0f, 0x40 | cond as u8], true, to, from, 0);
    }

    fn store_scalar(&mut self, src: Reg, mem: Address, scalar: Scalar) {
        // Both scratch registers may be needed for the address; a spilled source is reached by
        // computing the address first.
        let placed = match self.allocation(src) {
            Allocation::Machine(n) => Some(n),
            _ => None,
        };
        let rm = self.address(mem);
        // The low bytes of rsi and rdi need a prefix that the encoder does not write.
        let byte = matches!(scalar, Scalar::U8 | Scalar::I8);
        let (rm, src) = match placed {
            Some(n) if !byte || !(4..8).contains(&n) => (rm, n),
            _ => {
                self.asm.general(&[0x8d], true, RDX, rm, 0);
                self.load_general(RAX, src);
                (Rm::Mem { base: RDX, index: None, shift: 0, disp: 0 }, RAX)
            }
        };
        match scalar {
            Scalar::U8 | Scalar::I8 => self.asm.general(&[0x88], false, src, rm, 0),
            Scalar::U16 | Scalar::I16 => self.asm.general(&[0x66, 0x89], false, src, rm, 0),
            Scalar::U32 | Scalar::I32 => self.asm.general(&[0x89], false, src, rm, 0),
            Scalar::I64 => self.asm.general(&[0x89], true, src, rm, 0),
        }
    }

    /// `op reg, b`, by the opcode for a register and by the extension for a number.
    fn alu_with(&mut self, opcode: u8, ext: u8, reg: u8, b: Operand) {
        match b {
            Operand::Reg(b) => {
                let rm = self.general_rm(b);
                self.asm.general(&[opcode], true, reg, rm, 0);
            }
            Operand::Imm(value) => match i8::try_from(value) {
                Ok(short) => {
                    self.asm.general(&[0x83], true, ext, Rm::Reg(reg), 1);
                    self.asm.raw(&[short as u8]);
                }
                Err(_) => {
                    self.asm.general(&[0x81], true, ext, Rm::Reg(reg), 4);
                    self.asm.raw(&value.to_le_bytes());
                }
            },
        }
    }

    fn alu(&mut self, op: Alu, dst: Reg, a: Reg, b: Operand) {
        // Results are made in `rax` where writing the destination would destroy the second source.
        let to = self.general_dst(dst);
        let clobbers =
            matches!(b, Operand::Reg(b) if self.allocation(b) == Allocation::Machine(to));
        let at = if clobbers { RAX } else { to };
        match op {
            Alu::Add => match (self.allocation(a), b) {
                (Allocation::Machine(base), Operand::Imm(disp)) if base != to => {
                    let rm = Rm::Mem { base, index: None, shift: 0, disp };
                    self.asm.general(&[0x8d], true, to, rm, 0);
                    return self.general_done(dst, to);
                }
                (Allocation::Machine(base), Operand::Reg(second)) if base != to => {
                    if let Allocation::Machine(index) = self.allocation(second) {
                        let rm = Rm::Mem { base, index: Some(index), shift: 0, disp: 0 };
                        self.asm.general(&[0x8d], true, to, rm, 0);
                        return self.general_done(dst, to);
                    }
                    self.load_general(at, a);
                    self.alu_with(0x03, 0, at, b);
                }
                _ => {
                    self.load_general(at, a);
                    self.alu_with(0x03, 0, at, b);
                }
            },
            Alu::Sub => {
                self.load_general(at, a);
                self.alu_with(0x2b, 5, at, b);
            }
            Alu::And => {
                self.load_general(at, a);
                self.alu_with(0x23, 4, at, b);
            }
            Alu::Mul => match b {
                Operand::Reg(b) => {
                    self.load_general(at, a);
                    let rm = self.general_rm(b);
                    self.asm.general(&[0x0f, 0xaf], true, at, rm, 0);
                }
                Operand::Imm(value) => {
                    let rm = self.general_rm(a);
                    match i8::try_from(value) {
                        Ok(short) => {
                            self.asm.general(&[0x6b], true, at, rm, 1);
                            self.asm.raw(&[short as u8]);
                        }
                        Err(_) => {
                            self.asm.general(&[0x69], true, at, rm, 4);
                            self.asm.raw(&value.to_le_bytes());
                        }
                    }
                }
            },
            Alu::Min | Alu::Max => {
                self.load_general(RAX, a);
                let other = match b {
                    Operand::Reg(b) => self.general_rm(b),
                    Operand::Imm(value) => {
                        self.set_int(RDX, value.into());
                        Rm::Reg(RDX)
                    }
                };
                self.asm.general(&[0x3b], true, RAX, other, 0);
                let cond = if op == Alu::Min { Cond::Greater } else { Cond::Less };
                self.move_if(cond, RAX, other);
                return self.general_done(dst, RAX);
            }
            Alu::Div => {
                let by = match b {
                    Operand::Reg(b) => self.general_rm(b),
                    Operand::Imm(value) => {
                        let at = self.asm.constant(&i64::from(value).to_le_bytes());
                        Rm::Pool { at, splat: false }
                    }
                };
                let end = self.asm.label();
                self.set_int(RAX, 0);
                self.asm.general(&[0x83], true, 7, by, 1);
                self.asm.raw(&[0]);
                self.asm.jump(Some(Cond::Equal), end);
                self.load_general(RAX, a);
                self.set_int(RDX, 0);
                self.asm.general(&[0xf7], true, 6, by, 0);
                self.asm.bind(end);
                return self.general_done(dst, RAX);
            }
        }
        self.general_done(dst, at);
    }
}
