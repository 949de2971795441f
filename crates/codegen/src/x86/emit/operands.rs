//! Operands: a register of an instruction is a machine register, lies on the stack or behind the code.

use std::iter::zip;

use super::super::alloc::{Allocation, SCRATCH_GENERAL, SCRATCH_MASKS};
use super::super::asm::{Fields, Len, RSP, Rm};
use super::super::mir::{Address, Fixed, Reg, RegClass};
use super::super::ops::{self, Op};
use super::{Emit, RAX, RDX, fields, stack};

impl Emit<'_> {
    /// A general register with the value.
    pub(super) fn general(&mut self, reg: Reg, scratch: u8) -> u8 {
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
    pub(super) fn general_rm(&mut self, reg: Reg) -> Rm {
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
    pub(super) fn general_dst(&self, reg: Reg) -> u8 {
        match self.allocation(reg) {
            Allocation::Machine(n) => n,
            _ => RAX,
        }
    }

    /// Writes a result to the stack if it belongs there.
    pub(super) fn general_done(&mut self, reg: Reg, from: u8) {
        match self.allocation(reg) {
            Allocation::Machine(n) if n != from => {
                self.asm.general(&[0x8b], true, n, Rm::Reg(from), 0)
            }
            Allocation::Stack(at) => self.asm.general(&[0x89], true, from, stack(at), 0),
            _ => {}
        }
    }

    pub(in crate::x86) fn set_int(&mut self, reg: u8, value: i64) {
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
    pub(in crate::x86) fn address(&mut self, mem: Address) -> Rm {
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
    pub(super) fn constant_bytes(&self, fixed: Fixed, size: usize) -> Vec<u8> {
        match fixed {
            Fixed::Bits32(bits) => bits.to_le_bytes().repeat(size.div_ceil(4)),
            Fixed::Bits64(bits) => bits.to_le_bytes().repeat(size.div_ceil(8)),
            Fixed::Table(n) => self.code.tables[n as usize].clone(),
            Fixed::Mask(_) | Fixed::Int(_) => unreachable!("not a vector"),
        }
    }

    /// A vector register with the value.
    pub(in crate::x86) fn vector_in(&mut self, reg: Reg, scratch: usize) -> u8 {
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
    pub(super) fn set_constant(&mut self, n: u8, reg: Reg) {
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
    pub(super) fn vector_rm(&mut self, reg: Reg, op: Op, len: Len) -> Rm {
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
    pub(in crate::x86) fn mask_in(&mut self, reg: Reg, scratch: usize) -> u8 {
        let n = SCRATCH_MASKS[scratch];
        match self.allocation(reg) {
            Allocation::Machine(n) => return n,
            _ if self.in_masks[scratch] == reg => return n,
            _ if self.in_masks[1 - scratch] == reg => {
                self.vex(ops::MASK_MOV, Len::X, n, 0, Rm::Reg(SCRATCH_MASKS[1 - scratch]));
            }
            Allocation::Stack(at) => self.vex(ops::MASK_MOV, Len::X, n, 0, stack(at)),
            Allocation::Constant | Allocation::None => self.set_mask(n, reg),
        }
        self.in_masks[scratch] = reg;
        n
    }

    pub(super) fn set_mask(&mut self, n: u8, reg: Reg) {
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
    pub(super) fn reg_in(&mut self, reg: Reg, scratch: usize) -> u8 {
        match self.class(reg) {
            RegClass::Vector => self.vector_in(reg, scratch),
            RegClass::Mask => self.mask_in(reg, scratch),
            RegClass::General => self.general(reg, SCRATCH_GENERAL[scratch]),
        }
    }

    /// The machine register that an instruction writes in place of `reg`.
    pub(super) fn dst(&self, reg: Reg) -> u8 {
        match (self.allocation(reg), self.class(reg)) {
            (Allocation::Machine(n), _) => n,
            (_, RegClass::Vector) => self.vectors[0],
            (_, RegClass::Mask) => SCRATCH_MASKS[0],
            (_, RegClass::General) => RAX,
        }
    }

    /// Writes a result to the stack if it belongs there.
    pub(super) fn done(&mut self, reg: Reg, from: u8) {
        if self.class(reg) == RegClass::Mask {
            let is_stored = matches!(self.allocation(reg), Allocation::Stack(_));
            for (held, scratch) in zip(&mut self.in_masks, SCRATCH_MASKS) {
                if scratch == from {
                    *held = if is_stored { reg } else { Reg::NONE };
                } else if *held == reg {
                    *held = Reg::NONE;
                }
            }
        }
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
    pub(super) fn mask_of(&mut self, mask: Reg) -> u8 {
        if mask.is_some() { self.mask_in(mask, 0) } else { 0 }
    }

    pub(super) fn set_fixed(&mut self, reg: Reg, n: u8) {
        match self.fixed(reg) {
            Fixed::Int(value) => self.set_int(n, value),
            Fixed::Mask(_) => self.set_mask(n, reg),
            _ => self.set_constant(n, reg),
        }
    }

    /// Copies a vector to a machine register.
    pub(super) fn vector_to(&mut self, reg: Reg, to: u8) {
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

    pub(super) fn mov(&mut self, dst: Reg, src: Reg) {
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
}
