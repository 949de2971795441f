//! Machine code from instructions whose registers are allocated.
//!
//! What lies on the stack or behind the code is used there if the instruction allows it, else goes
//! through a scratch register.

use helio_ir::{Error, Result};

mod general;
mod operands;
mod vectors;

use super::Isa;
use super::alloc::{
    Allocation, Allocations, CALLEE_SAVED, CHECKS, SCRATCH_GENERAL, scratch_vectors,
};
use super::asm::{Asm, Fields, Label, Len, RSP, Rm};
use super::mir::{Fixed, Reg, RegClass, VirtualCode};
use super::ops::Op;
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
    let in_masks = [Reg::NONE; 2];
    let mut emit = Emit { asm, code, allocations, isa, vectors, in_masks, checked: Vec::new() };
    emit.prologue();
    for inst in &code.insts {
        if let Some(bounds) = &code.bounds {
            emit.check(inst, bounds)?;
            emit.forget_masks();
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
    /// The values that the scratch masks hold as well as the stack or what is behind the code does: a mask that is
    /// stored and read again at once would be waited for.
    in_masks: [Reg; 2],
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

    /// Code may come here from elsewhere: no scratch mask is known to hold anything.
    fn forget_masks(&mut self) {
        self.in_masks = [Reg::NONE; 2];
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
}
