//! Masks: mask registers, or with AVX2 vectors whose lanes are all ones or zero.
//!
//! Those vectors have 64-bit lanes if the kernel has any, else 32-bit ones.

use super::Select;
use crate::kernel::{Cmp, Lane, MaskOp, Value};
use crate::x86::Isa;
use crate::x86::asm::{Label, Len};
use crate::x86::mir::{Fixed, Inst, Reg, RegClass, VectorInst};
use crate::x86::ops;

impl Select<'_> {
    /// The integer lanes that AVX2's masks have.
    pub(super) fn mask_lane(&self) -> Lane {
        if self.wide { Lane::I64 } else { Lane::I32 }
    }

    pub(super) fn mask_len(&self) -> Len {
        self.len(self.mask_lane())
    }

    pub(super) fn mask_const(&mut self, set: bool) -> Reg {
        match self.isa {
            Isa::Avx512 => self.mask_of(if set { u16::MAX } else { 0 }),
            Isa::Avx2 => self.bits(self.mask_lane(), if set { u64::MAX } else { 0 }),
        }
    }

    /// A constant in a mask register.
    pub(super) fn mask_of(&mut self, lanes: u16) -> Reg {
        self.fixed(RegClass::Mask, Len::X, Fixed::Mask(lanes))
    }

    /// The mask of an access, unless it has all lanes set.
    pub(super) fn access_mask(&self, mask: Option<Value>) -> Option<Reg> {
        let reg = self.of[mask?.0 as usize];
        let all = match self.regs[reg.0 as usize].fixed {
            Some(Fixed::Mask(lanes)) => lanes == u16::MAX,
            Some(Fixed::Bits32(bits)) => bits == u32::MAX,
            Some(Fixed::Bits64(bits)) => bits == u64::MAX,
            _ => false,
        };
        (!all).then_some(reg)
    }

    /// The lanes that a mask has on, as bits, if they are known; without a mask, all.
    pub(super) fn known_lanes(&self, mask: Option<Reg>) -> Option<u16> {
        let all = u16::MAX >> (16 - self.kernel.lanes.min(16));
        match mask.map(|mask| self.regs[mask.0 as usize].fixed) {
            None => Some(all),
            Some(Some(Fixed::Mask(lanes))) => Some(lanes & all),
            Some(Some(Fixed::Bits32(0) | Fixed::Bits64(0))) => Some(0),
            Some(Some(Fixed::Table(n))) => {
                let lanes = self.tables[n as usize].chunks(self.mask_lane().bytes()).enumerate();
                Some(lanes.fold(0, |on, (l, bytes)| on | u16::from(bytes[0] != 0) << l))
            }
            Some(_) => None,
        }
    }

    /// The lanes that a mask has on if it has any, if that is known, and the mask if it may have none.
    pub(super) fn lanes_if_any(&self, mask: Option<Reg>) -> Option<(u16, Option<Reg>)> {
        match (self.known_lanes(mask), mask) {
            (Some(lanes), _) => Some((lanes, None)),
            (None, Some(mask)) => self.all_or_none.get(&mask).map(|&lanes| (lanes, Some(mask))),
            (None, None) => None,
        }
    }

    /// Notes which lanes a mask has if any. (What a loop carries becomes another.)
    fn note_all_or_none(&mut self, mask: Reg, lanes: u16) {
        if !self.regs[mask.0 as usize].carried {
            self.all_or_none.insert(mask, lanes);
        }
    }

    pub(super) fn mask_op(&mut self, dst: Value, op: MaskOp, a: Value, b: Value) {
        let (left, right) = (self.reg(a), self.reg(b));
        let to = self.define(dst);
        let lanes = [left, right].map(|mask| self.lanes_if_any(Some(mask)));
        match (op, lanes) {
            (MaskOp::And, [Some((a, _)), Some((b, _))]) => self.note_all_or_none(to, a & b),
            (MaskOp::AndNot, [Some((a, None)), Some((b, _))]) => self.note_all_or_none(to, !a & b),
            // The others of all lanes or none are that, too.
            (MaskOp::AndNot | MaskOp::Xor, [Some((a, _)), Some((b, _))])
                if Some(a) == self.known_lanes(None) && (op == MaskOp::AndNot || a == b) =>
            {
                self.note_all_or_none(to, b);
            }
            _ => {}
        }
        if self.isa == Isa::Avx2 {
            let op = match op {
                MaskOp::And => crate::kernel::BinOp::And,
                MaskOp::Or => crate::kernel::BinOp::Or,
                MaskOp::Xor => crate::kernel::BinOp::Xor,
                MaskOp::AndNot => crate::kernel::BinOp::AndNot,
            };
            let bitwise = |lane| ops::binary(op, lane).expect("bitwise operations are vectors'");
            if self.wide
                && let (Some(a), Some(b)) = (self.short_mask(left), self.short_mask(right))
            {
                let short = self.vector(self.len(Lane::I32));
                self.op2(bitwise(Lane::I32), self.len(Lane::I32), short, a, b);
                self.note_short_mask(to, short);
            }
            return self.op2(bitwise(self.mask_lane()), self.mask_len(), to, left, right);
        }
        let all = Some(Fixed::Mask(u16::MAX));
        if op == MaskOp::Xor && self.regs[right.0 as usize].fixed == all {
            return self.op1(ops::MASK_NOT, Len::X, to, left);
        }
        let op = match op {
            MaskOp::And => ops::MASK_AND,
            MaskOp::Or => ops::MASK_OR,
            MaskOp::Xor => ops::MASK_XOR,
            MaskOp::AndNot => ops::MASK_AND_NOT,
        };
        self.op2(op, Len::Y, to, left, right);
    }

    /// Opens what is done only if a mask has a lane set; `end_if_any` closes it. Nothing that is used
    /// elsewhere may be made within.
    ///
    /// Lanes that are off are not accessed, but where that keeps an access from failing, as where all
    /// of a vector lies outside of mapped memory, it takes the processor hundreds of cycles.
    pub(super) fn if_any(&mut self, mask: Reg) -> Option<Label> {
        if self.never_empty.contains(&mask) {
            return None;
        }
        let to = self.label();
        self.push(Inst::UnlessAny { mask, to });
        Some(to)
    }

    pub(super) fn end_if_any(&mut self, open: Option<Label>) {
        if let Some(at) = open {
            self.push(Inst::Label { at });
        }
    }

    /// The lanes of a mask as bits of a general register; AVX-512 leaves bits above them undefined.
    pub(super) fn mask_bits(&mut self, mask: Reg) -> Reg {
        let bits = self.general();
        match self.isa {
            Isa::Avx512 => self.op1(ops::MASK_TO_GENERAL, Len::X, bits, mask),
            Isa::Avx2 => match self.short_mask(mask).filter(|_| self.wide) {
                Some(short) => self.op1(ops::SIGNS, self.len(Lane::I32), bits, short),
                None => {
                    let op = if self.wide { ops::SIGNS_64 } else { ops::SIGNS };
                    self.op1(op, self.mask_len(), bits, mask);
                }
            },
        }
        bits
    }

    /// A general register whose lowest bit is lane 0 of a mask.
    pub(super) fn first_bit(&mut self, mask: Value) -> Reg {
        if let Some(&bits) = self.any_bits.get(&mask) {
            return bits;
        }
        let reg = self.reg(mask);
        self.mask_bits(reg)
    }

    pub(super) fn mask_any(&mut self, dst: Value, a: Value) {
        let mask = self.reg(a);
        let a = self.mask_bits(mask);
        let all = self.general();
        let of = (1 << self.kernel.lanes) - 1;
        self.push(Inst::AnyBit { dst: all, a, of });
        let to = self.define(dst);
        self.any_bits.insert(dst, all);
        match self.isa {
            Isa::Avx512 => self.op1(ops::MASK_FROM_GENERAL, Len::X, to, all),
            Isa::Avx2 => self.splat_to(to, self.mask_lane(), all),
        }
    }

    pub(super) fn mask_below(&mut self, dst: Value, index: Value, end: Value) {
        if let (Some(index), Some(end)) = (self.ints[index.0 as usize], self.ints[end.0 as usize]) {
            let count = end.saturating_sub(index).clamp(0, self.kernel.lanes as i64) as u32;
            let mask = self.first_lanes(count);
            if count > 0 {
                self.never_empty.insert(mask);
            }
            return self.bind(dst, mask);
        }
        // A loop's variable is below its bound.
        let around = self.scopes.last().and_then(|scope| scope.loop_of);
        let positive = around == Some((index, end));
        let lanes = self.kernel.lanes as u8;
        let whole = |value: Value| self.multiples[value.0 as usize] % i64::from(lanes) == 0;
        let is_all_or_none = whole(index) && whole(end);
        let (index, end) = (self.reg(index), self.reg(end));
        let count = self.general();
        self.push(Inst::Below { dst: count, index, end, lanes, positive });
        let mask = self.define(dst);
        self.below_to(mask, count);
        if is_all_or_none {
            let all = self.known_lanes(None).unwrap_or(0);
            self.note_all_or_none(mask, all);
        }
        if positive && !self.regs[mask.0 as usize].carried {
            self.never_empty.insert(mask);
        }
    }

    /// A constant mask in which the first `count` lanes are on.
    fn first_lanes(&mut self, count: u32) -> Reg {
        match self.isa {
            Isa::Avx512 if count as usize == self.kernel.lanes => self.mask_const(true),
            Isa::Avx512 => self.mask_of(((1_u32 << count) - 1) as u16),
            Isa::Avx2 => {
                self.lanes_of(self.mask_lane(), |l| if (l as u32) < count { -1 } else { 0 })
            }
        }
    }

    /// The first lanes, as many as a general register says.
    fn below_to(&mut self, to: Reg, count: Reg) {
        match self.isa {
            Isa::Avx512 => self.push(Inst::LowBits { dst: to, count }),
            Isa::Avx2 => {
                let lane = self.mask_lane();
                let counts = self.vector(self.len(lane));
                self.splat_to(counts, lane, count);
                let ids = self.lanes_of(lane, |l| l as i64);
                let op = if self.wide { ops::GREATER_64 } else { ops::GREATER_32 };
                self.op2(op, self.mask_len(), to, counts, ids);
            }
        }
    }

    pub(super) fn compare(&mut self, dst: Value, op: Cmp, a: Value, b: Value) {
        // Constants can be read from memory as the second source only.
        let (op, a, b) = match self.constant(a) {
            Some(_) if self.constant(b).is_none() => (mirrored(op), b, a),
            _ => (op, a, b),
        };
        let lane = self.lane(a);
        let (wide, len) = (lane.bytes() == 8, self.len(lane));
        let (left, right) = (self.reg(a), self.reg(b));
        if self.isa == Isa::Avx2 {
            return self.compare_vectors(dst, op, lane, left, right);
        }
        let to = self.define(dst);
        if lane.is_float() {
            let imm = ops::float_condition(op);
            self.op2_imm(ops::compare_floats(wide), len, to, left, right, imm);
        } else if matches!(op, Cmp::Eq | Cmp::Ne) && self.constant(b) == Some(0) {
            self.op2(ops::test(op == Cmp::Ne, wide), len, to, left, left);
        } else {
            let (op, imm) = ops::compare_ints(op, wide);
            self.op2_imm(op, len, to, left, right, imm);
        }
    }

    /// For each lane, `t` where the mask is set, else `f`.
    pub(super) fn choose(&mut self, dst: Value, mask: Value, t: Value, f: Value) {
        let lane = self.lane(t);
        let (wide, len) = (lane.bytes() == 8, self.len(lane));
        let [mask, t_reg, f_reg] = [mask, t, f].map(|value| self.reg(value));
        if self.isa == Isa::Avx2 {
            let mask = self.mask_for(mask, lane);
            let to = self.define(dst);
            return self.push(Inst::Blend { len, dst: to, mask, t: t_reg, f: f_reg });
        }
        let zero = self.constant(f) == Some(0);
        let (op, a) = if zero { (ops::mov(wide), Reg::NONE) } else { (ops::blend(wide), f_reg) };
        let dst = self.define(dst);
        self.push(Inst::Vector(VectorInst {
            op,
            len,
            dst,
            a,
            b: t_reg.into(),
            mask,
            zero,
            imm: None,
        }));
    }
}

/// The comparison with its operands exchanged.
fn mirrored(op: Cmp) -> Cmp {
    match op {
        Cmp::Eq | Cmp::Ne => op,
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
        Cmp::LtU => Cmp::GtU,
        Cmp::LeU => Cmp::GeU,
        Cmp::GtU => Cmp::LtU,
        Cmp::GeU => Cmp::LeU,
    }
}
