//! The first lanes of a vector, where it is known how many are on.
//!
//! What has been stored with a mask does not reach a load that follows before it is in the cache: from one to the
//! other take 20 cycles and more, where stores and loads of 4, 8, 16 or 32 bytes take 7. A state of a few
//! numbers, as loops carry it, is therefore stored and loaded in up to two of those. What the kernel does not
//! write is loaded in one, or with a mask, which is one instruction.

use super::Select;
use crate::kernel::{Buf, Mem};
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Inst, Reg, Region, Src, VectorInst};
use crate::x86::ops::{self, Op};

/// The first bytes of a vector as up to two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    /// 4, 8, 16 or 32 bytes.
    first: usize,
    /// What follows it: fewer bytes, of the same numbers, or none.
    second: usize,
}

impl Parts {
    fn of(bytes: usize) -> Option<Parts> {
        let first = (bytes.checked_ilog2()? < 6).then(|| 1 << bytes.ilog2())?;
        let second = bytes - first;
        let is_part = first >= 4 && (second == 0 || second >= 4 && second.is_power_of_two());
        is_part.then_some(Parts { first, second })
    }

    /// The number of the second part's 16 bytes, or if the first has 8 bytes, of its 4.
    fn place(self) -> u8 {
        if self.first == 32 || self.first == 8 { 2 } else { 1 }
    }

    /// The vector that both are in.
    fn len(self) -> Len {
        match self.first {
            32 => Len::Z,
            16 => Len::Y,
            _ => Len::X,
        }
    }
}

/// The load of a part into the first lanes of a vector, its store from there, and how long a vector they are
/// instructions of.
fn accesses(bytes: usize) -> (Op, Op, Len) {
    match bytes {
        4 => (ops::LOAD_LANE_32, ops::STORE_LANE_32, Len::X),
        8 => (ops::LOAD_LANE_64, ops::STORE_LANE_64, Len::X),
        16 => (ops::MOV_LOAD, ops::MOV_STORE, Len::X),
        _ => (ops::MOV_LOAD, ops::MOV_STORE, Len::Y),
    }
}

impl Select<'_> {
    /// The parts that the lanes which are on consist of, if these are the first ones and not all, of 32 or
    /// 64 bits.
    fn parts(&self, mem: Mem, mask: Reg) -> Option<Parts> {
        let on = self.known_lanes(Some(mask))?;
        let count = on.trailing_ones() as usize;
        let is_prefix = on.checked_shr(count as u32).unwrap_or(0) == 0;
        let is_some = is_prefix && count < self.kernel.lanes && mem.bytes() >= 4;
        is_some.then(|| Parts::of(count * mem.bytes())).flatten()
    }

    /// Whether the kernel may write what an address lies in.
    fn is_written(&self, region: Region) -> bool {
        match region {
            Region::Buffer(Buf::Param(n)) => self.kernel.params[n as usize].write,
            Region::Buffer(Buf::Scratch) | Region::Stack => true,
            Region::List => false,
        }
    }

    /// Reads the lanes that are on, the others being zero; `None` if that takes a mask.
    pub(super) fn first_load(&mut self, mem: Mem, at: Address, mask: Reg) -> Option<Reg> {
        let parts = self.parts(mem, mask)?;
        if parts.second > 0 && !self.is_written(at.of) {
            return None;
        }
        let whole = self.len(mem.lane());
        let read = |this: &mut Self, bytes, at: Address| {
            let (op, _, len) = accesses(bytes);
            let low = this.vector(whole);
            this.op1(op, len, low, Src::Mem(at));
            low
        };
        let low = read(self, parts.first, at);
        if parts.second == 0 {
            return Some(low);
        }
        let at = at.plus(parts.first as i32);
        let both = self.vector(whole);
        let (op, b, imm) = match (parts.first, parts.second) {
            (8, _) => (ops::INSERT_32, Src::Mem(at), parts.place() << 4),
            (_, 16) => (ops::INSERT_128, Src::Mem(at), parts.place()),
            (_, bytes) => (ops::INSERT_128, read(self, bytes, at).into(), parts.place()),
        };
        self.push(Inst::Vector(VectorInst {
            op,
            len: parts.len(),
            dst: both,
            a: low,
            b,
            mask: Reg::NONE,
            zero: false,
            imm: Some(imm),
        }));
        Some(both)
    }

    /// Writes the lanes that are on; whether it was done: not if that takes a mask.
    pub(super) fn first_store(&mut self, src: Reg, mem: Mem, at: Address, mask: Reg) -> bool {
        let Some(parts) = self.parts(mem, mask) else { return false };
        let mask = Reg::NONE;
        let (_, op, len) = accesses(parts.first);
        self.push(Inst::Store { op, len, src, mem: at, mask, imm: None });
        if parts.second == 0 {
            return true;
        }
        let mem = at.plus(parts.first as i32);
        let (len, imm) = (parts.len(), Some(parts.place()));
        let second = match (parts.first, parts.second) {
            (8, _) => Inst::Store { op: ops::STORE_ELEMENT_32, len, src, mem, mask, imm },
            (_, 16) => Inst::Store { op: ops::EXTRACT_128, len, src, mem, mask, imm },
            (_, bytes) => {
                let high = self.vector(Len::X);
                self.push(Inst::Out { op: ops::EXTRACT_128, len, dst: high, src, imm });
                let (_, op, len) = accesses(bytes);
                Inst::Store { op, len, src: high, mem, mask, imm: None }
            }
        };
        self.push(second);
        true
    }
}
