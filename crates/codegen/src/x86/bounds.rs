//! Bounds checks in machine code.
//!
//! Before each instruction that touches memory stands code that computes what it will touch, from the
//! same registers, and compares it with the buffer that the address was made for. Lanes that are off
//! are not touched, so of vectors with a mask the first and the last lane that is on are looked at, and
//! of gathers and scatters every lane that is on. What lies outside ends the call before it is touched.

use helio_ir::{Error, Result};

use super::alloc::CHECKS;
use super::asm::{Cond, Label, Len, Rm};
use super::emit::{Emit, RAX, RDX, fields, stack};
use super::mir::{
    Address, BufferSizes, Inst, Reg, RegClass, Region, Scalar, Src, VectorInst, VirtualCode,
};
use super::ops::{self, Op};
use crate::kernel::{Buf, Kernel};
use crate::machine::Access;

/// Where the list of buffers is.
const LIST: u8 = CHECKS[0];
/// Where scratch begins.
const SCRATCH: u8 = CHECKS[1];
/// The lanes that are on.
const LANES: u8 = CHECKS[2];
/// The distance of an address from its buffer's begin.
const OFFSET: u8 = CHECKS[3];

/// Lets the accesses of a kernel's code be checked.
pub(super) fn add(code: &mut VirtualCode, kernel: &Kernel) {
    let spare = code.stack_bytes.next_multiple_of(64);
    code.stack_bytes = spare + 64;
    code.bounds = Some(BufferSizes {
        params: kernel.params.iter().map(|param| param.bytes).collect(),
        scratch: kernel.scratch_bytes,
        spare: spare as i32,
    });
}

/// Which bytes an instruction touches.
#[derive(Clone, Copy)]
enum Touched {
    /// This many bytes from the address on.
    All(usize),
    /// This many bytes for each lane that is on; those of all lanes lie side by side.
    Lanes(Reg, usize),
    /// This many bytes from the address on, if any lane is on.
    Any(Reg, usize),
    /// For each lane that is on, `bytes` bytes where its index says.
    Indexed { mask: Reg, bytes: usize, wide: bool },
}

/// What of memory an instruction touches, and whether it writes; `None` if nothing.
fn touched(inst: &Inst, lanes: usize) -> Option<(Address, Touched, bool)> {
    // With a mask, memory holds an element for each lane, or one for all of them.
    let masked = |op: Op, len: Len, mask: Reg| {
        let bytes = op.memory_bytes(len);
        match mask.is_some() {
            false => Touched::All(bytes),
            true if op.covers_one() => Touched::Any(mask, bytes),
            true => Touched::Lanes(mask, bytes / lanes),
        }
    };
    Some(match *inst {
        Inst::Vector(VectorInst { op, len, a, b: Src::Mem(mem), .. })
            if op.sized(false) == ops::MASKED_LOAD =>
        {
            (mem, masked(op, len, a), false)
        }
        Inst::Vector(VectorInst { op, len, b: Src::Mem(mem), mask, .. }) => {
            (mem, masked(op, len, mask), false)
        }
        Inst::Store { op, len, mem, mask, .. } => (mem, masked(op, len, mask), true),
        Inst::Gather { op, mem, mask, .. } => {
            let (bytes, wide) = (op.memory_bytes(Len::X), op.has_wide_indices());
            (mem, Touched::Indexed { mask, bytes, wide }, false)
        }
        Inst::Scatter { op, mem, mask, .. } => {
            let (bytes, wide) = (op.memory_bytes(Len::X), op.has_wide_indices());
            (mem, Touched::Indexed { mask, bytes, wide }, true)
        }
        Inst::Load { mem, scalar, .. } => (mem, Touched::All(bytes(scalar)), false),
        Inst::StoreScalar { mem, scalar, .. } => (mem, Touched::All(bytes(scalar)), true),
        _ => return None,
    })
}

fn bytes(scalar: Scalar) -> usize {
    match scalar {
        Scalar::U8 | Scalar::I8 => 1,
        Scalar::U16 | Scalar::I16 => 2,
        Scalar::U32 | Scalar::I32 => 4,
        Scalar::I64 => 8,
    }
}

impl Emit<'_> {
    /// Writes what checks an instruction that is about to be written. An error means that it leaves
    /// the kernel's own memory on the stack, which is known by now.
    pub(super) fn check(&mut self, inst: &Inst, bounds: &BufferSizes) -> Result<()> {
        let lanes = self.code.lanes;
        let Some((mem, touched, write)) = touched(inst, lanes) else { return Ok(()) };
        let buf = match mem.of {
            Region::Buffer(buf) => buf,
            Region::List => {
                let is_there = matches!(touched, Touched::All(8)) && mem.disp % 8 == 0;
                let n = usize::try_from(mem.disp / 8).ok();
                let is_there = is_there && n.is_some_and(|n| n < bounds.params.len());
                return known(is_there, inst);
            }
            Region::Stack => {
                let Touched::All(bytes) = touched else { return known(false, inst) };
                let end = usize::try_from(mem.disp).map(|at| at + bytes);
                let is_flat = mem.base == Reg::STACK && !mem.index.is_some();
                return known(is_flat && end.is_ok_and(|end| end <= bounds.spare as usize), inst);
            }
        };
        let (Touched::All(bytes)
        | Touched::Lanes(_, bytes)
        | Touched::Any(_, bytes)
        | Touched::Indexed { bytes, .. }) = touched;
        let buffer_bytes = bounds.size(buf);
        let outside = self.asm.label();
        self.checked.push((Access { buf, buffer_bytes, bytes, write }, outside));
        // The greatest offset; without one, nothing may be touched.
        let last = buffer_bytes.checked_sub(bytes).map(|last| last as i64);

        let done = self.asm.label();
        if let Touched::Lanes(mask, _) | Touched::Any(mask, _) | Touched::Indexed { mask, .. } =
            touched
        {
            self.lanes_on(mask, bytes);
            self.asm.jump(Some(Cond::Equal), done);
        }
        self.offset(mem, buf);
        match touched {
            Touched::All(_) | Touched::Any(..) => {
                self.asm.general(&[0x8b], true, RDX, Rm::Reg(OFFSET), 0);
                self.within(last, outside);
            }
            Touched::Lanes(_, bytes) => {
                // bsf and bsr: the first and the last.
                for code in [0xbc, 0xbd] {
                    self.asm.general(&[0x0f, code], true, RAX, Rm::Reg(LANES), 0);
                    self.further(bytes.trailing_zeros() as u8);
                    self.within(last, outside);
                }
            }
            Touched::Indexed { wide, .. } => {
                let index = self.vector_in(mem.index, 1);
                let len = self.len(mem.index);
                self.vector(ops::MOV_STORE, fields(len, index, 0, stack(bounds.spare)));
                for lane in 0..lanes {
                    let next = self.asm.label();
                    self.indexed_lane(lane, next, (wide, bounds.spare));
                    self.further(mem.shift);
                    self.within(last, outside);
                    self.asm.bind(next);
                }
            }
        }
        self.asm.bind(done);
        Ok(())
    }

    /// Reads the index of a lane, of which all are at `spare` on the stack; jumps to `next` if the lane
    /// is not on.
    fn indexed_lane(&mut self, lane: usize, next: Label, (wide, spare): (bool, i32)) {
        // bt
        self.asm.general(&[0x0f, 0xba], true, 4, Rm::Reg(LANES), 1);
        self.asm.raw(&[lane as u8]);
        self.asm.jump(Some(Cond::NotCarry), next);
        let (opcode, size) = if wide { (0x8b, 8) } else { (0x63, 4) };
        let at = stack(spare + size * lane as i32);
        self.asm.general(&[opcode], true, RAX, at, 0);
    }

    /// Puts the lanes of a mask that are on into [`LANES`]; "equal" means that there are none. A vector
    /// that stands for a mask has lanes of as many bytes as are touched.
    fn lanes_on(&mut self, mask: Reg, bytes: usize) {
        match self.class(mask) {
            RegClass::Vector => {
                let signs = if bytes == 8 { ops::SIGNS_64 } else { ops::SIGNS };
                let len = if bytes * self.code.lanes > 16 { Len::Y } else { Len::X };
                let mask = self.vector_in(mask, 1);
                self.vector(signs, fields(len, LANES, 0, Rm::Reg(mask)));
            }
            _ => {
                let mask = self.mask_in(mask, 0);
                self.vex(ops::MASK_TO_GENERAL, Len::X, LANES, 0, Rm::Reg(mask));
            }
        }
        // and
        self.asm.general(&[0x81], true, 4, Rm::Reg(LANES), 4);
        self.asm.raw(&((1_i32 << self.code.lanes) - 1).to_le_bytes());
    }

    /// Puts the distance of an address, vectors of indices aside, from its buffer's begin into
    /// [`OFFSET`].
    fn offset(&mut self, mem: Address, buf: Buf) {
        let is_vector = mem.index.is_some() && self.class(mem.index) == RegClass::Vector;
        let index = if is_vector { Reg::NONE } else { mem.index };
        let rm = self.address(Address { index, ..mem });
        self.asm.general(&[0x8d], true, OFFSET, rm, 0);
        let begin = match buf {
            Buf::Param(n) => Rm::Mem { base: LIST, index: None, shift: 0, disp: 8 * n as i32 },
            Buf::Scratch => Rm::Reg(SCRATCH),
        };
        self.asm.general(&[0x2b], true, OFFSET, begin, 0);
    }

    /// `rdx = offset + (rax << shift)`
    fn further(&mut self, shift: u8) {
        let rm = Rm::Mem { base: OFFSET, index: Some(RAX), shift, disp: 0 };
        self.asm.general(&[0x8d], true, RDX, rm, 0);
    }

    /// Goes on if `rdx`, unsigned, is at most `last`.
    fn within(&mut self, last: Option<i64>, outside: Label) {
        let Some(last) = last else { return self.asm.jump(None, outside) };
        self.set_int(RAX, last);
        self.asm.general(&[0x3b], true, RDX, Rm::Reg(RAX), 0);
        self.asm.jump(Some(Cond::Above), outside);
    }

    /// The end of the code, and of that where an access lies outside; gives those accesses.
    pub(super) fn end(&mut self) -> Vec<Access> {
        let is_checked = self.code.bounds.is_some();
        if is_checked {
            self.set_int(RAX, 0);
        }
        self.epilogue();
        if self.checked.is_empty() {
            return Vec::new();
        }
        let fails = self.asm.label();
        let mut accesses = Vec::with_capacity(self.checked.len());
        for (access, outside) in std::mem::take(&mut self.checked) {
            accesses.push(access);
            self.asm.bind(outside);
            self.set_int(RAX, accesses.len() as i64);
            self.asm.jump(None, fails);
        }
        self.asm.bind(fails);
        self.epilogue();
        accesses
    }
}

fn known(holds: bool, inst: &Inst) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::internal(format!("{inst:?} leaves the memory of the call"))),
    }
}
