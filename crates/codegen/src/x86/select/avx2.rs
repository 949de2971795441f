//! Instruction selection for AVX2, where one AVX-512 instruction becomes several.

use super::Select;
use crate::kernel::{BinOp, Cmp, Conv, FmaOp, Lane, Mem, Value};
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Fixed, Inst, Reg, RegClass, Src};
use crate::x86::ops::{self, Op};

impl Select<'_> {
    /// The low half of each 64-bit lane.
    fn low_halves(&mut self, x: Reg, len: Len) -> Reg {
        let high = self.vector(Len::X);
        self.push(Inst::Out { op: ops::EXTRACT_128, len, dst: high, src: x, imm: Some(1) });
        let low = self.vector(Len::X);
        self.op2_imm(ops::SHUFFLE_PAIR, Len::X, low, x, high, 0x88);
        low
    }

    /// A mask as a vector of lanes like these.
    pub(super) fn mask_for(&mut self, mask: Reg, lane: Lane) -> Reg {
        if !self.wide || lane.bytes() != 4 {
            return mask;
        }
        self.short_mask(mask).unwrap_or_else(|| self.low_halves(mask, Len::Y))
    }

    /// A mask of 64-bit lanes in 32-bit ones, if that is there already.
    pub(super) fn short_mask(&mut self, mask: Reg) -> Option<Reg> {
        match self.regs[mask.0 as usize].fixed {
            Some(Fixed::Bits64(bits @ (0 | u64::MAX))) => Some(self.bits(Lane::I32, bits)),
            _ => self.short_masks.get(&mask).copied(),
        }
    }

    /// Notes what a mask of 64-bit lanes is in 32-bit ones.
    pub(super) fn note_short_mask(&mut self, mask: Reg, short: Reg) {
        // What a loop carries becomes another.
        if !self.regs[mask.0 as usize].carried {
            self.short_masks.insert(mask, short);
        }
    }

    pub(super) fn compare_vectors(&mut self, dst: Value, op: Cmp, lane: Lane, a: Reg, b: Reg) {
        let len = self.len(lane);
        let made = if lane.is_float() {
            let made = self.vector(len);
            let op_code = ops::compare_floats(lane.bytes() == 8);
            self.op2_imm(op_code, len, made, a, b, ops::float_condition(op));
            made
        } else {
            self.compare_ints(op, lane, len, a, b)
        };
        let to = self.define(dst);
        if self.wide && lane.bytes() == 4 {
            self.op1(ops::WIDEN_I32, Len::Y, to, made);
            self.note_short_mask(to, made);
        } else {
            self.push(Inst::Mov { dst: to, src: made });
        }
    }

    /// Lanes of ones where the comparison holds.
    fn compare_ints(&mut self, op: Cmp, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        let wide = lane.bytes() == 8;
        let equal = if wide { ops::EQUAL_64 } else { ops::EQUAL_32 };
        let greater = if wide { ops::GREATER_64 } else { ops::GREATER_32 };
        let unsigned = matches!(op, Cmp::LtU | Cmp::LeU | Cmp::GtU | Cmp::GeU);
        let (a, b) = if unsigned {
            // Without the sign bit's weight, the order is that of signed numbers.
            let sign = self.sign_bit(lane, len);
            (self.xor(len, a, sign), self.xor(len, b, sign))
        } else {
            (a, b)
        };
        let (op, left, right, negated) = match op {
            Cmp::Eq => (equal, a, b, false),
            Cmp::Ne => (equal, a, b, true),
            Cmp::Gt | Cmp::GtU => (greater, a, b, false),
            Cmp::Le | Cmp::LeU => (greater, a, b, true),
            Cmp::Lt | Cmp::LtU => (greater, b, a, false),
            Cmp::Ge | Cmp::GeU => (greater, b, a, true),
        };
        let made = self.vector(len);
        self.op2(op, len, made, left, right);
        if !negated {
            return made;
        }
        let ones = self.bits_of(lane, len, u64::MAX);
        self.xor(len, made, ones)
    }

    fn bits_of(&mut self, lane: Lane, len: Len, bits: u64) -> Reg {
        let fixed =
            if lane.bytes() == 8 { Fixed::Bits64(bits) } else { Fixed::Bits32(bits as u32) };
        self.fixed(RegClass::Vector, len, fixed)
    }

    fn sign_bit(&mut self, lane: Lane, len: Len) -> Reg {
        self.bits_of(lane, len, 1 << (8 * lane.bytes() - 1))
    }

    fn xor(&mut self, len: Len, a: Reg, b: Reg) -> Reg {
        let dst = self.vector(len);
        self.op2(ops::XOR, len, dst, a, b);
        dst
    }

    /// An operation that takes several instructions; none if one does it.
    pub(super) fn binary_avx2(&mut self, op: BinOp, lane: Lane, a: Reg, b: Reg) -> Option<Reg> {
        self.binary_avx2_of(op, lane, self.len(lane), a, b)
    }

    /// The same for vectors of any length.
    pub(super) fn binary_avx2_of(
        &mut self,
        op: BinOp,
        lane: Lane,
        len: Len,
        a: Reg,
        b: Reg,
    ) -> Option<Reg> {
        if op == BinOp::Scale {
            return Some(self.scale(lane, len, a, b));
        }
        if matches!(op, BinOp::Minimum | BinOp::Maximum) {
            return Some(self.extremum_avx2(op == BinOp::Maximum, lane, len, a, b));
        }
        if op == BinOp::RotL {
            return Some(self.rotate(lane, len, a, b));
        }
        if lane != Lane::I64 {
            return None;
        }
        let pick = match op {
            BinOp::Mul => return Some(self.product_64(len, a, b)),
            BinOp::ShrA => {
                // What is shifted in are copies of the sign: zeros, once it is taken off.
                let zero = self.bits_of(lane, len, 0);
                let sign = self.vector(len);
                self.op2(ops::GREATER_64, len, sign, zero, a);
                let positive = self.xor(len, a, sign);
                let moved = self.op(BinOp::ShrL, lane, len, positive, b);
                return Some(self.xor(len, moved, sign));
            }
            BinOp::Min => Cmp::Lt,
            BinOp::Max => Cmp::Gt,
            BinOp::MinU => Cmp::LtU,
            BinOp::MaxU => Cmp::GtU,
            _ => return None,
        };
        let mask = self.compare_ints(pick, lane, len, a, b);
        let dst = self.vector(len);
        self.push(Inst::Blend { len, dst, mask, t: a, f: b });
        Some(dst)
    }

    /// What the processor's instruction gives, which is the second of two zeros or where either is
    /// NaN; equal numbers that are not the same are zeros, whose sign bits decide.
    fn extremum_avx2(&mut self, maximum: bool, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        let (plain, zeros) = match maximum {
            true => (BinOp::Max, BinOp::And),
            false => (BinOp::Min, BinOp::Or),
        };
        let compare = |this: &mut Self, a: Reg, b: Reg, op: Cmp| {
            let made = this.vector(len);
            let code = ops::compare_floats(lane.bytes() == 8);
            this.op2_imm(code, len, made, a, b, ops::float_condition(op));
            made
        };
        let chosen = self.op(plain, lane, len, a, b);
        let both = self.op(zeros, lane, len, a, b);
        let equal = compare(self, a, b, Cmp::Eq);
        let ordered = self.vector(len);
        self.push(Inst::Blend { len, dst: ordered, mask: equal, t: both, f: chosen });
        let nan = compare(self, a, a, Cmp::Ne);
        let made = self.vector(len);
        self.push(Inst::Blend { len, dst: made, mask: nan, t: a, f: ordered });
        made
    }

    fn op(&mut self, op: BinOp, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        let op = ops::binary(op, lane).expect("an instruction of both sets");
        let dst = self.vector(len);
        self.op2(op, len, dst, a, b);
        dst
    }

    fn shift_right_32(&mut self, len: Len, a: Reg) -> Reg {
        let (op, ext) = ops::shift(BinOp::ShrL, true).expect("a shift");
        let dst = self.vector(len);
        self.push(Inst::Shift { op, ext, len, dst, a, imm: 32 });
        dst
    }

    /// The low half of the product: three of 32 bits.
    fn product_64(&mut self, len: Len, a: Reg, b: Reg) -> Reg {
        let lane = Lane::I64;
        let (high_a, high_b) = (self.shift_right_32(len, a), self.shift_right_32(len, b));
        let low = self.op(BinOp::MulWide, lane, len, a, b);
        let left = self.op(BinOp::MulWide, lane, len, high_a, b);
        let right = self.op(BinOp::MulWide, lane, len, a, high_b);
        let cross = self.op(BinOp::Add, lane, len, left, right);
        let (op, ext) = ops::shift(BinOp::Shl, true).expect("a shift");
        let high = self.vector(len);
        self.push(Inst::Shift { op, ext, len, dst: high, a: cross, imm: 32 });
        self.op(BinOp::Add, lane, len, low, high)
    }

    /// `a` rotated by `b` modulo the width, by two shifts of which that by the width gives zero.
    fn rotate(&mut self, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        let width = 8 * lane.bytes() as u64;
        let (low, width) = (self.bits_of(lane, len, width - 1), self.bits_of(lane, len, width));
        let left = self.op(BinOp::And, lane, len, b, low);
        let right = self.op(BinOp::Sub, lane, len, width, left);
        let (high, low) =
            (self.op(BinOp::Shl, lane, len, a, left), self.op(BinOp::ShrL, lane, len, a, right));
        self.op(BinOp::Or, lane, len, high, low)
    }

    /// `a * 2^b`, by two factors with exponents that add up to `b`.
    fn scale(&mut self, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        // Adding 1.5 * 2^(digits - 1) leaves an integer in the low bits.
        let (int, digits, magic, bias) = match lane.bytes() {
            8 => (Lane::I64, 52, 0x4338_0000_0000_0000, 1023),
            _ => (Lane::I32, 23, 0x4b40_0000, 127),
        };
        let magic = self.bits_of(lane, len, magic);
        let half =
            self.bits_of(lane, len, if lane.bytes() == 8 { 0x3fe0 << 48 } else { 0x3f00 << 16 });
        let halved = self.op(BinOp::Mul, lane, len, b, half);
        let first = self.op(BinOp::Add, lane, len, halved, magic);
        // The first exponent as a number, and what is left of b.
        let taken = self.op(BinOp::Sub, lane, len, first, magic);
        let rest = self.op(BinOp::Sub, lane, len, b, taken);
        let second = self.op(BinOp::Add, lane, len, rest, magic);
        let bias = self.bits_of(lane, len, bias);
        let mut product = a;
        for exponent in [first, second] {
            let biased = self.op(BinOp::Add, int, len, exponent, bias);
            let (op, ext) = ops::shift(BinOp::Shl, lane.bytes() == 8).expect("a shift");
            let factor = self.vector(len);
            self.push(Inst::Shift { op, ext, len, dst: factor, a: biased, imm: digits });
            product = self.op(BinOp::Mul, lane, len, product, factor);
        }
        product
    }

    /// A conversion that takes several instructions; none if one does it.
    pub(super) fn convert_avx2(&mut self, op: Conv, from: Lane, to: Lane, src: Reg) -> Option<Reg> {
        let wide = Lane::I64;
        match (op, from, to) {
            (Conv::Narrow, _, _) => Some(self.low_halves(src, Len::Y)),
            (Conv::Value, Lane::I64, Lane::F64) => Some(self.doubles(src, true)),
            (Conv::ValueU, Lane::I64, Lane::F64) => Some(self.doubles(src, false)),
            (Conv::ValueU, Lane::I32, Lane::F64) => {
                let extended = self.vector(self.len(wide));
                self.op1(ops::WIDEN_U32, self.len(wide), extended, src);
                Some(self.doubles(extended, false))
            }
            (Conv::ValueU, Lane::I32, _) => {
                // Both halves are exact, and so is the first product: the sum rounds once.
                let high = self.shifted(BinOp::ShrL, Lane::I32, src, 16);
                let mask = self.bits(Lane::I32, 0xffff);
                let low = self.bin(BinOp::And, Lane::I32, src, mask);
                let len = self.len(Lane::F32);
                let [a, c, dst] = [(); 3].map(|()| self.vector(len));
                self.op1(ops::I32_TO_F32, len, a, high);
                self.op1(ops::I32_TO_F32, len, c, low);
                let b = self.bits(Lane::F32, 65536f32.to_bits().into());
                self.push(Inst::Fma { op: ops::fma(FmaOp::Add, Lane::F32), len, dst, a, b, c });
                Some(dst)
            }
            (Conv::Value, Lane::I64, _) => Some(self.singles(src)),
            (Conv::ValueU, _, Lane::F32) => Some(self.unsigned_singles(src)),
            (Conv::Trunc, Lane::F32, Lane::I64) => {
                Some(self.lanewise(ops::F32_TO_GENERAL, src, from, to))
            }
            (Conv::Trunc, Lane::F64, Lane::I64) => {
                Some(self.lanewise(ops::F64_TO_GENERAL, src, from, to))
            }
            _ => None,
        }
    }

    /// 64-bit integers as doubles: the halves are put into the digits of 2^52 and 2^84, and their sum
    /// without these rounds once.
    fn doubles(&mut self, x: Reg, signed: bool) -> Reg {
        let (int, float) = (Lane::I64, Lane::F64);
        let len = self.len(int);
        // The sign bit is added to the upper half, which makes it positive, and taken off again.
        let (exponent, both) = match signed {
            true => (0x4530_0000_8000_0000, 0x4530_0000_8010_0000),
            false => (0x4530_0000_0000_0000, 0x4530_0000_0010_0000),
        };
        let mask = self.bits(int, 0xffff_ffff);
        let low = self.bin(BinOp::And, int, x, mask);
        let digits = self.bits(int, 0x4330_0000_0000_0000);
        let low = self.bin(BinOp::Or, int, low, digits);
        let high = self.shift_right_32(len, x);
        let exponent = self.bits(int, exponent);
        let high = self.bin(BinOp::Xor, int, high, exponent);
        let both = self.bits(float, both);
        let high = self.bin(BinOp::Sub, float, high, both);
        self.bin(BinOp::Add, float, high, low)
    }

    /// 64-bit signed integers as single precision: one by one, as by way of doubles it would round
    /// twice.
    fn singles(&mut self, x: Reg) -> Reg {
        self.lanewise(ops::GENERAL_TO_F32, x, Lane::I64, Lane::F32)
    }

    fn unsigned_singles(&mut self, x: Reg) -> Reg {
        let (int, float) = (Lane::I64, Lane::F32);
        let len = self.len(int);
        // Half of a large number, with the digit that is lost kept for rounding, then doubled.
        let one = self.bits(int, 1);
        let half = self.shifted(BinOp::ShrL, int, x, 1);
        let odd = self.bin(BinOp::And, int, x, one);
        let half = self.bin(BinOp::Or, int, half, odd);
        let fitting = self.vector(len);
        let large = self.large(x);
        self.push(Inst::Blend { len, dst: fitting, mask: large, t: half, f: x });
        let rounded = self.singles(fitting);
        let twice = self.bin(BinOp::Add, float, rounded, rounded);
        let mask = self.low_halves(large, len);
        let dst = self.vector(self.len(float));
        self.push(Inst::Blend { len: self.len(float), dst, mask, t: twice, f: rounded });
        dst
    }

    /// Ones in the lanes whose highest bit is set.
    fn large(&mut self, x: Reg) -> Reg {
        let len = self.len(Lane::I64);
        let zero = self.bits(Lane::I64, 0);
        let dst = self.vector(len);
        self.op2(ops::GREATER_64, len, dst, zero, x);
        dst
    }

    /// A conversion between lanes and general registers, lane by lane.
    fn lanewise(&mut self, op: Op, src: Reg, from: Lane, to: Lane) -> Reg {
        let buffer = self.stack(128);
        self.spill_to(buffer, self.len(from), src);
        let per_part = 16 / to.bytes();
        let zero = self.fixed_zero(Len::X);
        let mut parts = vec![zero; self.kernel.lanes.div_ceil(per_part)];
        for l in 0..self.kernel.lanes {
            let one = Src::Mem(buffer.plus((l * from.bytes()) as i32));
            let (part, place) = (&mut parts[l / per_part], l % per_part);
            let number = if to.is_float() { self.vector(Len::X) } else { self.general() };
            let a = if to.is_float() { zero } else { Reg::NONE };
            self.op2(op, Len::X, number, a, one);
            let before = *part;
            *part = match (place, to.is_float()) {
                (0, true) => number,
                _ => self.vector(Len::X),
            };
            match (place, to.is_float()) {
                (0, true) => {}
                (0, false) => self.op1(ops::FROM_GENERAL_64, Len::X, *part, number),
                _ => self.insert(*part, before, to.bytes(), place, number.into()),
            }
        }
        self.joined(&parts)
    }

    /// A contiguous store of lanes, whose low bits are the elements of a narrow format but for `F16`.
    pub(super) fn contiguous_store_avx2(
        &mut self,
        src: Reg,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
    ) {
        let len = self.len(mem.lane());
        let full = mem.bytes() >= 4;
        match mask {
            Some(mask) if full => {
                let lane_mask = self.mask_for(mask, mem.lane());
                let op = ops::masked(ops::MASKED_STORE, mem.bytes() == 8);
                let open = self.if_any(mask);
                let mask = lane_mask;
                self.push(Inst::Store { op, len, src, mem: at, mask, imm: None });
                self.end_if_any(open);
            }
            Some(_) => {
                let elements = self.packed(src, mem, len);
                let buffer = self.stack(128);
                self.spill_to(buffer, Len::X, elements);
                self.spread_from(buffer, mem, at, mask, mem.bytes() as i64);
            }
            None if full => self.spill_to(at, len, src),
            None => {
                let elements = self.packed(src, mem, len);
                let op = match mem.bytes() * self.kernel.lanes {
                    16 => ops::MOV_STORE,
                    8 => ops::STORE_64,
                    _ => ops::STORE_LANE_32,
                };
                let (src, mask, len) = (elements, Reg::NONE, Len::X);
                self.push(Inst::Store { op, len, src, mem: at, mask, imm: None });
            }
        }
    }

    /// The narrow elements of lanes side by side in a short vector.
    fn packed(&mut self, src: Reg, mem: Mem, len: Len) -> Reg {
        let dst = self.vector(Len::X);
        if mem == Mem::F16 {
            self.push(Inst::Out { op: ops::NARROW_F16, len, dst, src, imm: Some(0) });
            return dst;
        }
        // Within each 16 bytes; a set highest bit makes a zero.
        let size = mem.bytes();
        let byte = |i: usize| if i < 4 * size { (i / size * 4 + i % size) as u8 } else { 0x80 };
        let order = (0..len.bytes()).map(|i| byte(i % 16)).collect();
        let order = self.table(len, order);
        let halves = self.vector(len);
        self.op2(ops::SHUFFLE_BYTES, len, halves, src, order);
        if len == Len::X {
            return halves;
        }
        let high = self.vector(Len::X);
        self.push(Inst::Out { op: ops::EXTRACT_128, len, dst: high, src: halves, imm: Some(1) });
        let op = if size == 1 { ops::INTERLEAVE_32 } else { ops::INTERLEAVE_64 };
        self.op2(op, Len::X, dst, halves, high);
        dst
    }
}
