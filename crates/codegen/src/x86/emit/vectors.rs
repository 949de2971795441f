//! Instructions on vectors and masks, and where control goes.

use super::super::alloc::Allocation;
use super::super::asm::{Cond, Fields, Len, Rm};
use super::super::mir::{Inst, Reg, RegClass, Src, VectorInst};
use super::super::ops::{self, Op};
use super::{Emit, RAX, fields};

impl Emit<'_> {
    pub(super) fn inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Argument { dst, from } => self.general_done(dst, from),
            Inst::Fixed { dst } => {
                if let Allocation::Machine(n) = self.allocation(dst) {
                    self.set_fixed(dst, n);
                }
            }
            Inst::Mov { dst, src } => self.mov(dst, src),
            Inst::Vector(inst) => self.vector_inst(inst),
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
            Inst::Jump { to } => self.asm.jump(None, to),
            Inst::Label { at } => {
                self.forget_masks();
                self.asm.bind(at);
            }
            Inst::LoopBegin { at, inner } => {
                if inner {
                    self.asm.align(32);
                }
                self.forget_masks();
                self.asm.bind(at);
            }
            Inst::LoopEnd => {}
            _ => self.special_inst(inst),
        }
    }

    /// An instruction on vectors and masks with operands of its own kind, or one on general registers.
    fn special_inst(&mut self, inst: &Inst) {
        match *inst {
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
                // It clears its mask lane by lane.
                self.forget_masks();
                self.done(dst, to);
            }
            Inst::Scatter { op, len, src, mem, mask } => {
                let src = self.vector_in(src, 0);
                let rm = self.address(mem);
                let mask = self.mask_of(mask);
                self.vector(op, Fields { mask, ..fields(len, src, 0, rm) });
                self.forget_masks();
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
            _ => self.general_inst(inst),
        }
    }

    fn vector_inst(&mut self, inst: VectorInst) {
        let VectorInst { op, len, dst, mut a, mut b, mask, zero, imm } = inst;
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
        // What the destination holds first: a source that is there, or a copy of one, for which processors take no time,
        // so that what has no register is read by the instruction; of two of those, one is loaded.
        let tied = if in_c == Some(to) {
            c
        } else if in_a == Some(to) {
            a
        } else if in_b == Some(to) {
            b
        } else {
            let are_there = [in_a, in_b, in_c].map(|at| at.is_some());
            if matches!(are_there, [true, true, false] | [false, false, true]) { a } else { c }
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
}
