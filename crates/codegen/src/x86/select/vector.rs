//! Instruction selection for arithmetic on vectors.

use helio_ir::{Error, Result};

use super::Select;
use crate::kernel::{BinOp, FmaOp, Lane, UnOp, Value};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Inst, Reg, VectorInst};
use crate::x86::ops;

impl Select<'_> {
    pub(super) fn fma(&mut self, dst: Value, op: FmaOp, operands: [Value; 3]) {
        let lane = self.lane(dst);
        let [a, b, c] = operands.map(|value| self.reg(value));
        let dst = self.define(dst);
        self.push(Inst::Fma { op: ops::fma(op, lane), len: self.len(lane), dst, a, b, c });
    }

    /// Numbers of a table: a permutation of it, however few lanes there are. Permutations look at the low
    /// bits of an index, so the numbers for negative ones come last; where registers hold eight numbers,
    /// there are two permutations, between which a bit of the index chooses.
    pub(super) fn lookup(&mut self, dst: Value, table: &[u32; 16], index: Value) {
        let lane = self.lane(dst);
        let (len, index, permute) = (self.len(lane), self.reg(index), ops::permute(false));
        let bytes = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let (negative, positive) = table.split_at(8);
        match self.isa {
            Isa::Avx512 => {
                let table = self.table(Len::Z, bytes(&[positive, negative].concat()));
                let to = self.define(dst);
                self.op2(permute, Len::Z, to, index, table);
            }
            Isa::Avx2 => {
                let [t, f] = [negative, positive].map(|half| {
                    let half = self.table(Len::Y, bytes(half));
                    let found = self.vector(Len::Y);
                    self.op2(permute, Len::Y, found, index, half);
                    found
                });
                // Bit 3 says which half; a blend looks at the sign of each byte.
                let high = self.shifted(BinOp::Shl, Lane::I32, index, 28);
                let mask = self.shifted(BinOp::ShrA, Lane::I32, high, 31);
                let to = self.define(dst);
                self.push(Inst::Blend { len, dst: to, mask, t, f });
            }
        }
    }

    pub(super) fn unary(&mut self, dst: Value, op: UnOp, a: Value) {
        let lane = self.lane(a);
        let (len, from) = (self.len(lane), self.reg(a));
        let wide = lane.bytes() == 8;
        match (op, ops::unary(op, lane)) {
            (_, Some((op, imm))) => {
                let (dst, b) = (self.define(dst), from.into());
                let (a, mask) = (Reg::NONE, Reg::NONE);
                self.push(Inst::Vector(VectorInst { op, len, dst, a, b, mask, zero: false, imm }));
            }
            (UnOp::RoundF16, _) => {
                let half = self.vector(len);
                self.push(Inst::Out {
                    op: ops::NARROW_F16,
                    len,
                    dst: half,
                    src: from,
                    imm: Some(0),
                });
                let to = self.define(dst);
                self.op1(ops::load(crate::kernel::Mem::F16), len, to, half);
            }
            (UnOp::CountLeadingZeros, _) if self.isa == Isa::Avx512 => {
                let to = self.define(dst);
                self.op1(ops::leading_zeros(wide), len, to, from);
            }
            (UnOp::CountLeadingZeros, _) => {
                // With all bits below the highest set, the others are the leading zeros.
                let mut smeared = from;
                for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|by| *by < 8 * lane.bytes() as u8)
                {
                    let moved = self.shifted(BinOp::ShrL, lane, smeared, by);
                    smeared = self.bin(BinOp::Or, lane, smeared, moved);
                }
                let ones = self.bits(lane, u64::MAX);
                let rest = self.bin(BinOp::Xor, lane, smeared, ones);
                self.count_bits(dst, lane, rest);
            }
            (_, None) => self.count_bits(dst, lane, from),
        }
    }

    /// The number of bits set: without an instruction for it, each half of a byte is looked up, and bytes are summed.
    fn count_bits(&mut self, dst: Value, lane: Lane, x: Reg) {
        let (len, wide) = (self.len(lane), lane.bytes() == 8);
        if self.isa.counts_bits() {
            let to = self.define(dst);
            return self.op1(ops::population_count(wide), len, to, x);
        }
        let counts = (0..len.bytes()).map(|i| (i as u8 % 16).count_ones() as u8).collect();
        let (counts, half) = (self.table(len, counts), self.bits(lane, 0x0f0f_0f0f_0f0f_0f0f));
        let high = self.shifted(BinOp::ShrL, lane, x, 4);
        let [low, high] = [x, high].map(|bits| {
            let place = self.bin(BinOp::And, lane, bits, half);
            let found = self.vector(len);
            self.op2(ops::SHUFFLE_BYTES, len, found, counts, place);
            found
        });
        let bytes = self.bin(BinOp::Add, lane, low, high);
        if wide {
            let zero = self.bits(lane, 0);
            let to = self.define(dst);
            return self.op2(ops::SUM_BYTES, len, to, bytes, zero);
        }
        let (ones, ones_16) = (self.bits(lane, 0x0101_0101), self.bits(lane, 0x0001_0001));
        let pairs = self.vector(len);
        self.op2(ops::MULTIPLY_BYTES, len, pairs, bytes, ones);
        let to = self.define(dst);
        self.op2(ops::MULTIPLY_16, len, to, pairs, ones_16);
    }

    pub(super) fn binary(&mut self, dst: Value, op: BinOp, a: Value, b: Value) {
        let lane = self.lane(a);
        let (left, right) = (self.reg(a), self.reg(b));
        if matches!(op, BinOp::Shl | BinOp::ShrL | BinOp::ShrA | BinOp::RotL)
            && let Some(by) = self.constant(b)
            && let Some(inst) = self.shift(op, lane, left, by)
        {
            let to = self.define(dst);
            return self.push(inst(to));
        }
        if op == BinOp::RotL
            && let Some(by) = self.constant(b)
        {
            let width = 8 * lane.bytes() as u64;
            let by = by % width;
            let high = self.shifted(BinOp::Shl, lane, left, by as u8);
            let low = self.shifted(BinOp::ShrL, lane, left, (width - by) as u8);
            let or = ops::binary(BinOp::Or, lane).expect("bitwise operations are vectors'");
            let to = self.define(dst);
            return self.op2(or, self.len(lane), to, high, low);
        }
        if self.isa == Isa::Avx2
            && let Some(made) = self.binary_avx2(op, lane, left, right)
        {
            // What takes several instructions makes its result in a register of its own.
            let to = self.define(dst);
            return self.push(Inst::Mov { dst: to, src: made });
        }
        if matches!(op, BinOp::Minimum | BinOp::Maximum) {
            let made = self.extremum(op == BinOp::Maximum, lane, self.len(lane), left, right);
            let to = self.define(dst);
            return self.push(Inst::Mov { dst: to, src: made });
        }
        if op == BinOp::Within {
            let (op, imm) = ops::within(lane.bytes() == 8);
            let to = self.define(dst);
            return self.op2_imm(op, self.len(lane), to, left, right, imm);
        }
        let op = ops::binary(op, lane).expect("the checker has seen the operand types");
        let to = self.define(dst);
        self.op2(op, self.len(lane), to, left, right);
    }

    /// The smaller or the larger of two floats, or their sum where either is NaN.
    fn extremum(&mut self, maximum: bool, lane: Lane, len: Len, a: Reg, b: Reg) -> Reg {
        let wide = lane.bytes() == 8;
        let [chosen, sum, made] = [(); 3].map(|()| self.vector(len));
        let (range, imm) = ops::range(maximum, wide);
        self.op2_imm(range, len, chosen, a, b, imm);
        let add = ops::binary(BinOp::Add, lane).expect("floats are added");
        self.op2(add, len, sum, a, b);
        let mask = self.mask_reg();
        self.op2_imm(ops::compare_floats(wide), len, mask, a, b, ops::UNORDERED);
        let (op, b) = (ops::blend(wide), sum.into());
        self.push(Inst::Vector(VectorInst {
            op,
            len,
            dst: made,
            a: chosen,
            b,
            mask,
            zero: false,
            imm: None,
        }));
        made
    }

    /// An operation whose result is no value of the kernel.
    pub(super) fn bin(&mut self, op: BinOp, lane: Lane, a: Reg, b: impl Into<Option<Reg>>) -> Reg {
        let b = b.into().unwrap_or(a);
        let op = ops::binary(op, lane).expect("an operation of both instruction sets");
        let dst = self.vector(self.len(lane));
        self.op2(op, self.len(lane), dst, a, b);
        dst
    }

    /// The instruction for a shift or a rotation by a constant, if there is one.
    fn shift(
        &mut self,
        op: BinOp,
        lane: Lane,
        a: Reg,
        by: u64,
    ) -> Option<impl FnOnce(Reg) -> Inst + use<>> {
        let wide = lane.bytes() == 8;
        if self.isa == Isa::Avx2 && (op == BinOp::RotL || wide && op == BinOp::ShrA) {
            return None;
        }
        let (code, ext) = ops::shift(op, wide)?;
        // Counts have a byte. Those from the width on shift everything out, as instructions have it; rotations go on
        // round.
        let imm =
            if op == BinOp::RotL { by % (8 * lane.bytes() as u64) } else { by.min(255) } as u8;
        let len = self.len(lane);
        Some(move |dst| Inst::Shift { op: code, ext, len, dst, a, imm })
    }

    /// A shift by a constant whose result is no value of the kernel.
    pub(super) fn shifted(&mut self, op: BinOp, lane: Lane, a: Reg, by: u8) -> Reg {
        let inst = self.shift(op, lane, a, by.into()).expect("a shift of both instruction sets");
        let dst = self.vector(self.len(lane));
        self.push(inst(dst));
        dst
    }

    /// All lanes combined, by halves.
    pub(super) fn reduce(&mut self, dst: Value, op: BinOp, a: Value) -> Result<()> {
        let lane = self.lane(a);
        let wide = lane.bytes() == 8;
        let mut len = self.len(lane);
        let mut all = self.reg(a);
        let full = len;
        while len > Len::X {
            let (extract, half) = match len {
                Len::Z => (ops::EXTRACT_256, Len::Y),
                _ => (ops::EXTRACT_128, Len::X),
            };
            let high = self.vector(half);
            self.push(Inst::Out { op: extract, len, dst: high, src: all, imm: Some(1) });
            all = self.combine(op, lane, half, all, high)?;
            len = half;
        }
        // Then within 128 bits: the upper half, and the second quarter.
        let orders: &[u8] = if wide { &[0xee] } else { &[0xee, 0x55] };
        for &order in orders {
            let high = self.vector(Len::X);
            self.op2_imm(ops::SHUFFLE_32, Len::X, high, Reg::NONE, all, order);
            all = self.combine(op, lane, Len::X, all, high)?;
        }
        let to = self.define(dst);
        let splat = match (wide, full) {
            (true, Len::X) => ops::LOAD_PAIR,
            _ => ops::splat(wide),
        };
        self.op1(splat, full, to, all);
        Ok(())
    }

    fn combine(&mut self, op: BinOp, lane: Lane, len: Len, a: Reg, b: Reg) -> Result<Reg> {
        if self.isa == Isa::Avx2
            && let Some(made) = self.binary_avx2_of(op, lane, len, a, b)
        {
            return Ok(made);
        }
        if matches!(op, BinOp::Minimum | BinOp::Maximum) {
            return Ok(self.extremum(op == BinOp::Maximum, lane, len, a, b));
        }
        let code = ops::binary(op, lane)
            .ok_or_else(|| Error::internal(format!("a reduction by {op:?} of {lane:?}")))?;
        let dst = self.vector(len);
        self.op2(code, len, dst, a, b);
        Ok(dst)
    }

    pub(super) fn shift_up(&mut self, dst: Value, a: Value, fill: Value, by: usize) {
        let lane = self.lane(a);
        let (len, wide) = (self.len(lane), lane.bytes() == 8);
        let (a, fill) = (self.reg(a), self.reg(fill));
        match self.isa {
            Isa::Avx512 => {
                let imm = (self.kernel.lanes - by) as u8;
                let to = self.define(dst);
                self.op2_imm(ops::align(wide), len, to, a, fill, imm);
            }
            Isa::Avx2 => {
                // Both vectors as one, moved down by bytes within each 128 bits, whose upper neighbours
                // are the vector that starts 128 bits further up.
                let down = len.bytes() - by * lane.bytes();
                let (low, high) = match len {
                    Len::X => (fill, a),
                    _ => {
                        let middle = self.vector(len);
                        self.op2_imm(ops::PERMUTE_128, len, middle, fill, a, 0x21);
                        if down < 16 { (fill, middle) } else { (middle, a) }
                    }
                };
                let to = self.define(dst);
                self.op2_imm(ops::ALIGN_BYTES, len, to, high, low, (down % 16) as u8);
            }
        }
    }
}
