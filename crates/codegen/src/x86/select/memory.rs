//! Loads and stores.
//!
//! What no instruction does is done lane by lane (`collect`). No access touches what it should not, so
//! nothing is read "to the next multiple" either.

use super::Select;
use super::address::shift_of;
use super::collect::{Elements, scalar};
use crate::kernel::{Addr, BinOp, Buf, Lane, Mem, Value};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Inst, Reg, Region, Src, VectorInst};
use crate::x86::ops::{self, Op};

impl Select<'_> {
    /// Memory on the stack, for use within one instruction of the kernel.
    pub(super) fn stack(&mut self, bytes: usize) -> Address {
        self.stack_bytes = self.stack_bytes.max(bytes);
        Address { of: Region::Stack, base: Reg::STACK, index: Reg::NONE, shift: 0, disp: 0 }
    }

    /// Writes a whole vector.
    pub(super) fn spill_to(&mut self, mem: Address, len: Len, src: Reg) {
        let (op, mask, imm) = (ops::MOV_STORE, Reg::NONE, None);
        self.push(Inst::Store { op, len, src, mem, mask, imm });
    }

    pub(super) fn load(&mut self, dst: Value, mem: Mem, addr: &Addr, mask: Option<Value>) {
        if let Some(made) = self.read_ahead.remove(&dst) {
            return self.put(dst, made);
        }
        let at = self.address(addr);
        let mask = self.access_mask(mask);
        let (size, stride) = (mem.bytes() as i64, addr.lane_stride);
        let lanes = self.kernel.lanes as i64;
        let full = size >= 4;
        let done = (stride == size && self.contiguous_load(dst, mem, at, mask))
            || (stride == 0 && self.splat_load(dst, mem, at, mask))
            || self
                .lanes_if_any(mask)
                .is_some_and(|on| self.strided_load(dst, mem, at, stride, on));
        if done {
            return;
        }
        if full && self.isa == Isa::Avx512 && i32::try_from(stride * lanes).is_ok() {
            let index_lane = Lane::I32;
            let index = self.lanes_of(index_lane, |l| l as i64 * stride);
            self.gather_by(dst, mem, at, index, false, 0, mask);
        } else {
            self.load_collected(dst, mem, at, mask, Elements::Strided(stride));
        }
    }

    /// An unmasked contiguous load into a register.
    pub(super) fn load_to(&mut self, to: Reg, mem: Mem, at: Address) {
        let len = self.len(mem.lane());
        if mem == Mem::BF16 {
            let low = self.vector(len);
            self.op1(ops::WIDEN_U16, len, low, Src::Mem(at));
            self.move_to_high_half(to, low);
        } else {
            self.op1(ops::load(mem), len, to, Src::Mem(at));
        }
    }

    /// Elements side by side of the lanes of a mask, others being zero (AVX-512).
    pub(super) fn load_some(&mut self, mem: Mem, at: Address, mask: Reg) -> Reg {
        let len = self.len(mem.lane());
        let (op, low) = (ops::load(mem), self.vector(len));
        let (a, b, zero, imm) = (Reg::NONE, Src::Mem(at), true, None);
        self.push(Inst::Vector(VectorInst { op, len, dst: low, a, b, mask, zero, imm }));
        if mem != Mem::BF16 {
            return low;
        }
        let to = self.vector(len);
        self.move_to_high_half(to, low);
        to
    }

    /// Elements side by side; whether it was done.
    fn contiguous_load(&mut self, dst: Value, mem: Mem, at: Address, mask: Option<Reg>) -> bool {
        let Some(mask) = mask else {
            let to = self.define(dst);
            self.load_to(to, mem, at);
            return true;
        };
        if self.isa == Isa::Avx2 && mem.bytes() < 4 {
            return false;
        }
        if let Some(low) = self.first_load(mem, at, mask) {
            self.put(dst, low);
            return true;
        }
        let len = self.len(mem.lane());
        let lane_mask = match self.isa {
            Isa::Avx512 => mask,
            Isa::Avx2 => self.mask_for(mask, mem.lane()),
        };
        // Zero in any case, then overwritten.
        let low = self.vector(len);
        let zero = self.fixed_zero(len);
        if !self.never_empty.contains(&mask) {
            self.push(Inst::Mov { dst: low, src: zero });
        }
        let open = self.if_any(mask);
        let b = Src::Mem(at);
        match self.isa {
            Isa::Avx512 => {
                let (op, a, mask, zero) = (ops::load(mem), Reg::NONE, lane_mask, true);
                self.push(Inst::Vector(VectorInst {
                    op,
                    len,
                    dst: low,
                    a,
                    b,
                    mask,
                    zero,
                    imm: None,
                }));
            }
            Isa::Avx2 => {
                let op = ops::masked(ops::MASKED_LOAD, mem.bytes() == 8);
                self.op2(op, len, low, lane_mask, b);
            }
        }
        self.end_if_any(open);
        if mem == Mem::BF16 {
            let to = self.define(dst);
            self.move_to_high_half(to, low);
        } else {
            self.put(dst, low);
        }
        true
    }

    /// Makes a register the value's, or moves it to the one that is.
    fn put(&mut self, dst: Value, made: Reg) {
        if self.target[dst.0 as usize].is_some() {
            let to = self.define(dst);
            self.push(Inst::Mov { dst: to, src: made });
        } else {
            self.bind(dst, made);
        }
    }

    /// One element in every lane; whether it was done.
    fn splat_load(&mut self, dst: Value, mem: Mem, at: Address, mask: Option<Reg>) -> bool {
        if let Some(mask) = mask
            && self.isa == Isa::Avx2
        {
            self.masked_splat(dst, mem, at, mask);
            return true;
        }
        let len = self.len(mem.lane());
        let mask = mask.unwrap_or(Reg::NONE);
        let zero = mask.is_some();
        let (op, narrow) = match mem.bytes() {
            1 => (ops::SPLAT_BYTE, self.len_of(self.kernel.lanes)),
            2 => (ops::SPLAT_WORD, self.len_of(2 * self.kernel.lanes)),
            4 => (ops::SPLAT_32, len),
            _ if len == Len::X => (ops::LOAD_PAIR, len),
            _ => (ops::SPLAT_64, len),
        };
        let one = if mem.bytes() < 4 { self.vector(narrow) } else { self.define(dst) };
        let (a, b) = (Reg::NONE, Src::Mem(at));
        self.push(Inst::Vector(VectorInst {
            op,
            len: narrow,
            dst: one,
            a,
            b,
            mask,
            zero,
            imm: None,
        }));
        if mem.bytes() < 4 {
            let to = self.define(dst);
            self.widen(to, mem, one);
        }
        true
    }

    /// One element in the lanes that are on (AVX2), zero in the others.
    fn masked_splat(&mut self, dst: Value, mem: Mem, at: Address, mask: Reg) {
        let lane = mem.lane();
        let (lane_mask, zero) = (self.mask_for(mask, lane), self.fixed_zero(Len::X));
        // Zero in any case, then overwritten.
        let one = self.vector(Len::X);
        if !self.never_empty.contains(&mask) {
            self.push(Inst::Mov { dst: one, src: zero });
        }
        let open = self.if_any(mask);
        let (op, b) = (ops::splat_first(mem.bytes()), Src::Mem(at));
        self.op1(op, Len::X, one, b);
        self.end_if_any(open);
        let all = match mem.bytes() {
            4 | 8 => {
                let all = self.vector(self.len(lane));
                let op = if mem.bytes() == 8 { ops::SPLAT_64 } else { ops::SPLAT_32 };
                self.op1(op, self.len(lane), all, one);
                all
            }
            _ => {
                let all = self.vector(self.len(lane));
                self.widen(all, mem, one);
                all
            }
        };
        let made = self.bin(BinOp::And, lane, all, lane_mask);
        let to = self.define(dst);
        self.push(Inst::Mov { dst: to, src: made });
    }

    /// The elements of a narrow vector, as a contiguous load would give them.
    pub(super) fn widen(&mut self, to: Reg, mem: Mem, from: Reg) {
        let len = self.len(mem.lane());
        if mem == Mem::BF16 {
            let low = self.vector(len);
            self.op1(ops::WIDEN_U16, len, low, from);
            self.move_to_high_half(to, low);
        } else {
            self.op1(ops::load(mem), len, to, from);
        }
    }

    /// 16-bit elements in 32-bit lanes moved to the high halves, which are `f32` of `bf16`.
    pub(super) fn move_to_high_half(&mut self, to: Reg, low: Reg) {
        let (op, ext) = ops::shift(BinOp::Shl, false).expect("a shift");
        let len = self.len(Lane::F32);
        self.push(Inst::Shift { op, ext, len, dst: to, a: low, imm: 16 });
    }

    pub(super) fn gather(
        &mut self,
        dst: Value,
        mem: Mem,
        addr: &Addr,
        index: Value,
        (scale, most): (i64, Option<u32>),
        mask: Option<Value>,
    ) {
        let at = self.address(addr);
        let mask = self.access_mask(mask);
        if let Some((numbers, (on, any))) = self.numbers.get(&index).zip(self.lanes_if_any(mask)) {
            let size = mem.bytes() as i64;
            let element = |(l, &n): (usize, &i64)| match on >> l & 1 {
                0 => Some(None),
                _ => (n * scale % size == 0).then_some(Some(n * scale / size)),
            };
            let elements: Option<Vec<_>> = numbers.iter().enumerate().map(element).collect();
            if elements.is_some_and(|elements| self.load_blocks(dst, mem, at, &elements, any)) {
                return;
            }
        }
        let wide_index = self.lane(index).bytes() == 8;
        let index = self.reg(index);
        if self.table_gather(dst, mem, addr, (index, wide_index), (scale, most), mask) {
            return;
        }
        if !wide_index && self.narrow_gather(dst, mem, addr, (index, scale), mask) {
            return;
        }
        match shift_of(scale) {
            Some(shift) if mem.bytes() >= 4 && self.isa == Isa::Avx512 => {
                self.gather_by(dst, mem, at, index, wide_index, shift, mask);
            }
            _ => {
                let elements = Elements::Indexed { index, wide_index, scale };
                self.load_collected(dst, mem, at, mask, elements);
            }
        }
    }

    /// A load of elements one by one.
    fn load_collected(
        &mut self,
        dst: Value,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
        elements: Elements,
    ) {
        let made = self.collect(mem, at, mask, elements);
        let to = self.define(dst);
        match mem.bytes() {
            1 | 2 => self.widen(to, mem, made),
            _ => self.push(Inst::Mov { dst: to, src: made }),
        }
    }

    /// A gather of elements of 32 or 64 bits at `at + (index << shift)`.
    #[expect(clippy::too_many_arguments, reason = "the fields of an instruction")]
    fn gather_by(
        &mut self,
        dst: Value,
        mem: Mem,
        at: Address,
        index: Reg,
        wide_index: bool,
        shift: u8,
        mask: Option<Reg>,
    ) {
        let base = self.flat(at);
        let at = Address { index, shift, ..base };
        let made = self.gathered(mem.lane(), at, wide_index, mask);
        let to = self.define(dst);
        self.push(Inst::Mov { dst: to, src: made });
    }

    /// Lanes from an address whose index is a vector; zero where the mask is not set.
    fn gathered(&mut self, lane: Lane, mem: Address, wide_index: bool, mask: Option<Reg>) -> Reg {
        let wide = lane.bytes() == 8;
        let index_lane = if wide_index { Lane::I64 } else { Lane::I32 };
        let len = self.len(lane).max(self.len(index_lane));
        // The instruction clears its mask as it goes.
        let all = mask.unwrap_or_else(|| self.mask_const(true));
        let mask = self.mask_reg();
        self.push(Inst::Mov { dst: mask, src: all });
        let zero = self.bits(lane, 0);
        let made = self.vector(self.len(lane));
        let op = ops::gather(wide, wide_index);
        self.push(Inst::Gather { op, len, dst: made, zero, mem, mask });
        made
    }

    /// A gather of elements of 8 or 16 bits (AVX-512), by 32-bit indices; whether it was done. What is
    /// gathered are the 32 bits that begin with the element or, at the buffer's end, end with the buffer.
    fn narrow_gather(
        &mut self,
        dst: Value,
        mem: Mem,
        addr: &Addr,
        (index, scale): (Reg, i64),
        mask: Option<Reg>,
    ) -> bool {
        let bytes = match addr.buf {
            Buf::Param(n) => self.kernel.params[n as usize].bytes,
            Buf::Scratch => self.kernel.scratch_bytes,
        };
        let is_narrow =
            matches!(mem, Mem::U8 | Mem::I8 | Mem::U16 | Mem::I16 | Mem::BF16 if bytes >= 4);
        let (Ok(bytes), Ok(scale)) = (i32::try_from(bytes), i32::try_from(scale)) else {
            return false;
        };
        // (It is always within the buffer, wherever the element is said to be, so that checks see nothing.)
        if !is_narrow || self.is_checked || self.isa != Isa::Avx512 {
            return false;
        }
        let lane = Lane::I32;
        let base = self.buffer(addr.buf);
        let place = self.place_in_buffer(addr, lane, index, scale);
        let last = self.bits(lane, (bytes - 4) as u64);
        let begin = self.bin(BinOp::MinU, lane, place, last);
        let of = Region::Buffer(addr.buf);
        let words = Address { of, base, index: begin, shift: 0, disp: 0 };
        let words = self.gathered(lane, words, false, mask);
        let before = self.bin(BinOp::Sub, lane, place, begin);
        let before = self.shifted(BinOp::Shl, lane, before, 3);
        let low = self.bin(BinOp::ShrL, lane, words, before);
        let made = self.low_element(mem, low);
        let to = self.define(dst);
        self.push(Inst::Mov { dst: to, src: made });
        true
    }

    pub(super) fn store(&mut self, src: Value, mem: Mem, addr: &Addr, mask: Option<Value>) {
        let at = self.address(addr);
        let mask = self.access_mask(mask);
        let (size, stride) = (mem.bytes() as i64, addr.lane_stride);
        let lanes = self.kernel.lanes as i64;
        let lane = mem.lane();
        let on = self.known_lanes(mask).filter(|_| self.len(lane) > Len::X);
        let from = self.reg(src);
        if stride == size {
            let past = mask.is_none() && self.goes_past(addr, mem.bytes() * self.kernel.lanes);
            self.contiguous_store(from, mem, at, mask, past);
        } else if stride == 0 {
            self.store_first(from, mem, at, mask);
        } else if stride == -size && mask.is_none() && (on.is_some() || self.isa == Isa::Avx2) {
            let back = self.permuted(lane, from.into(), |l| self.kernel.lanes - 1 - l);
            self.contiguous_store(back, mem, at.plus((-size * (lanes - 1)) as i32), None, false);
        } else if on.is_some_and(|on| self.strided_store(from, mem, at, stride, on)) {
            // Written.
        } else if let Some(mask) = mask
            && size >= 4
            && self.isa == Isa::Avx512
            && i32::try_from(stride * lanes).is_ok()
        {
            let index = self.lanes_of(Lane::I32, |l| l as i64 * stride);
            let mem = Address { index, shift: 0, ..self.flat(at) };
            let copy = self.mask_reg();
            self.push(Inst::Mov { dst: copy, src: mask });
            let (op, len) = (ops::scatter(size == 8, false), self.len(lane));
            self.push(Inst::Scatter { op, len, src: from, mem, mask: copy });
        } else {
            self.spread(from, mem, at, mask, stride);
        }
    }

    /// Whether a vector of `bytes` bytes should be written past the caches, and can be.
    pub(super) fn goes_past(&mut self, addr: &Addr, bytes: usize) -> bool {
        let Buf::Param(param) = addr.buf else { return false };
        if !self.kernel.params[param as usize].stream || bytes < 16 {
            return false;
        }
        let multiple = |&(value, unit): &(Value, i64)| {
            self.multiples[value.0 as usize].wrapping_mul(unit) % bytes as i64 == 0
        };
        let aligned = addr.offset % bytes as i64 == 0 && addr.terms.iter().all(multiple);
        self.streams |= aligned;
        aligned
    }

    /// A store of elements side by side; with `past`, past the caches, to an aligned address.
    pub(super) fn contiguous_store(
        &mut self,
        src: Reg,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
        past: bool,
    ) {
        let len = self.len(mem.lane());
        let src = self.narrowed(mem, src);
        if past && mem.bytes() >= 4 {
            return self.masked_store(ops::STREAM, len, src, at, None, None);
        }
        if mask.is_some_and(|mask| self.first_store(src, mem, at, mask)) {
            return;
        }
        if self.isa == Isa::Avx2 {
            return self.contiguous_store_avx2(src, mem, at, mask);
        }
        let (narrow, imm) = match mem {
            Mem::I32 | Mem::F32 | Mem::I64 | Mem::F64 => {
                let op = ops::store(mem.bytes() == 8);
                return self.masked_store(op, len, src, at, mask, None);
            }
            Mem::U8 | Mem::I8 => (ops::NARROW_8, None),
            Mem::U16 | Mem::I16 | Mem::BF16 => (ops::NARROW_16, None),
            Mem::F16 => (ops::NARROW_F16, Some(0)),
        };
        let bytes = mem.bytes() * self.kernel.lanes;
        // To a register first: the instruction is slow with memory. There is no plain store of less
        // than 16 bytes.
        if mask.is_none() && bytes >= 16 {
            let part = self.len_of(bytes);
            let low = self.vector(part);
            self.push(Inst::Out { op: narrow, len, dst: low, src, imm });
            let op = if past { ops::STREAM } else { ops::MOV_STORE };
            return self.masked_store(op, part, low, at, None, None);
        }
        self.masked_store(narrow, len, src, at, mask, imm);
    }

    /// A store of the lanes that are on; without a mask, of all.
    pub(super) fn masked_store(
        &mut self,
        op: Op,
        len: Len,
        src: Reg,
        mem: Address,
        mask: Option<Reg>,
        imm: Option<u8>,
    ) {
        let open = mask.and_then(|mask| self.if_any(mask));
        let mask = mask.unwrap_or(Reg::NONE);
        self.push(Inst::Store { op, len, src, mem, mask, imm });
        self.end_if_any(open);
    }

    /// Writes lane 0.
    fn store_first(&mut self, src: Reg, mem: Mem, at: Address, mask: Option<Reg>) {
        // Everything but the store comes before the branch: what is made behind it, constants among
        // them, could be missing later.
        let src = match mem {
            Mem::F16 => {
                let half = self.vector(Len::X);
                let (op, imm) = (ops::NARROW_F16, Some(0));
                self.push(Inst::Out { op, len: Len::X, dst: half, src, imm });
                half
            }
            _ => self.narrowed(mem, src),
        };
        let bits = mask.map(|mask| self.mask_bits(mask));
        let one = self.general();
        let (op, len) = (ops::TO_GENERAL, Len::X);
        if mem.bytes() < 4 {
            self.push(Inst::Out { op, len, dst: one, src, imm: None });
        }
        let next = bits.map(|a| {
            let to = self.label();
            self.push(Inst::UnlessBit { a, bit: 0, to });
            to
        });
        let mask = Reg::NONE;
        match mem.bytes() {
            4 => self.push(Inst::Store {
                op: ops::STORE_LANE_32,
                len,
                src,
                mem: at,
                mask,
                imm: None,
            }),
            8 => self.push(Inst::Store {
                op: ops::STORE_LANE_64,
                len,
                src,
                mem: at,
                mask,
                imm: None,
            }),
            size => self.push(Inst::StoreScalar { src: one, mem: at, scalar: scalar(size) }),
        }
        if let Some(at) = next {
            self.push(Inst::Label { at });
        }
    }
}
