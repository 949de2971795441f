//! Addresses: each part is computed in the outermost block that has its values, once.

use super::{EntryArgument, Select};
use crate::kernel::{Addr, Buf, Mem, Value};
use crate::x86::mir::{Address, Alu, Inst, Operand, Reg, Region, Scalar};

/// The largest displacement in an instruction; sums of two still fit.
const MAX_DISP: i64 = 1 << 30;

/// A distance in bytes as a displacement that any address may be moved by ([`Address::plus`]); `None`
/// if it is too large.
pub(super) fn displacement(bytes: i64) -> Option<i32> {
    (-MAX_DISP < bytes && bytes < MAX_DISP).then_some(bytes as i32)
}

/// The shift that multiplies an index by `bytes`, if addresses have it.
pub(super) fn shift_of(bytes: i64) -> Option<u8> {
    matches!(bytes, 1 | 2 | 4 | 8).then(|| bytes.trailing_zeros() as u8)
}

impl Select<'_> {
    /// The address of lane 0.
    pub(super) fn address(&mut self, addr: &Addr) -> Address {
        let mut disp = addr.offset;
        let mut terms: Vec<(usize, Value, i64)> = Vec::with_capacity(addr.terms.len());
        for &(value, bytes) in &addr.terms {
            match self.ints[value.0 as usize] {
                Some(int) => disp = disp.wrapping_add(int.wrapping_mul(bytes)),
                None if bytes != 0 => terms.push((self.depth[value.0 as usize], value, bytes)),
                None => {}
            }
        }
        // The innermost last, and of these one that an address can scale.
        terms.sort_by_key(|&(depth, _, bytes)| (depth, shift_of(bytes).is_some()));
        let mut base = self.buffer(addr.buf);
        if disp.abs() >= MAX_DISP {
            let far = self.general();
            let by = Operand::Reg(self.int(disp));
            self.scopes[0].insts.push(Inst::Alu { op: Alu::Add, dst: far, a: base, b: by });
            (base, disp) = (far, 0);
        }
        let last = terms.pop();
        for (_, value, bytes) in terms {
            base = self.sum(base, value, bytes);
        }
        let (index, shift) = match last {
            None => (Reg::NONE, 0),
            Some((_, value, bytes)) => match shift_of(bytes) {
                Some(shift) => (self.of[value.0 as usize], shift),
                None => (self.product(value, bytes), 0),
            },
        };
        Address { of: Region::Buffer(addr.buf), base, index, shift, disp: disp as i32 }
    }

    /// Where a buffer begins.
    pub(super) fn buffer(&mut self, buf: Buf) -> Reg {
        let Buf::Param(n) = buf else { return self.argument(EntryArgument::Scratch) };
        let known = self.params[n as usize];
        if known.is_some() {
            return known;
        }
        let dst = self.general();
        let base = self.argument(EntryArgument::Params);
        let disp = 8 * n as i32;
        let mem = Address { of: Region::List, base, index: Reg::NONE, shift: 0, disp };
        self.scopes[0].insts.push(Inst::Load { dst, mem, scalar: Scalar::I64 });
        self.params[n as usize] = dst;
        dst
    }

    /// `base + value * bytes`, in the block of `value`.
    fn sum(&mut self, base: Reg, value: Value, bytes: i64) -> Reg {
        let level = self.depth[value.0 as usize];
        if let Some(&known) = self.scopes[level].sums.get(&(base, value, bytes)) {
            return known;
        }
        let (index, shift) = match shift_of(bytes) {
            Some(shift) => (self.of[value.0 as usize], shift),
            None => (self.product(value, bytes), 0),
        };
        let dst = self.general();
        // (No access.)
        let mem = Address { of: Region::List, base, index, shift, disp: 0 };
        self.scopes[level].insts.push(Inst::Lea { dst, mem });
        self.scopes[level].sums.insert((base, value, bytes), dst);
        dst
    }

    /// `value * bytes`, in the block of `value`.
    fn product(&mut self, value: Value, bytes: i64) -> Reg {
        let level = self.depth[value.0 as usize];
        if let Some(&known) = self.scopes[level].sums.get(&(Reg::NONE, value, bytes)) {
            return known;
        }
        let a = self.of[value.0 as usize];
        let dst = self.general();
        let inst = if bytes > 0 && bytes.count_ones() == 1 {
            Inst::ShiftScalar { left: true, dst, a, by: bytes.trailing_zeros() as u8 }
        } else {
            let b = self.operand(bytes);
            Inst::Alu { op: Alu::Mul, dst, a, b }
        };
        self.scopes[level].insts.push(inst);
        self.scopes[level].sums.insert((Reg::NONE, value, bytes), dst);
        dst
    }

    pub(super) fn index_load(&mut self, dst: Value, mem: Mem, addr: &Addr) {
        let at = self.address(addr);
        let to = self.define(dst);
        let scalar = match mem {
            Mem::U8 => Scalar::U8,
            Mem::I8 => Scalar::I8,
            Mem::U16 | Mem::F16 | Mem::BF16 => Scalar::U16,
            Mem::I16 => Scalar::I16,
            Mem::I32 | Mem::F32 => Scalar::I32,
            Mem::I64 | Mem::F64 => Scalar::I64,
        };
        self.push(Inst::Load { dst: to, mem: at, scalar });
    }
}
