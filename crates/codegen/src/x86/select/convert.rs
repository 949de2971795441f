//! Instruction selection for conversions between lane types.

use super::Select;
use crate::kernel::{BinOp, Conv, Lane, Mem, Value};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Inst, Reg, VectorInst};
use crate::x86::ops::{self, Op};

impl Select<'_> {
    pub(super) fn convert(&mut self, dst: Value, op: Conv, a: Value) {
        let (from, to) = (self.lane(a), self.lane(dst));
        let src = self.reg(a);
        if op == Conv::Bits {
            // Another name for the register, unless a loop will write it.
            if self.regs[src.0 as usize].carried || self.target[dst.0 as usize].is_some() {
                let to = self.define(dst);
                return self.push(Inst::Mov { dst: to, src });
            }
            return self.bind(dst, src);
        }
        if self.isa == Isa::Avx2
            && let Some(made) = self.convert_avx2(op, from, to, src)
        {
            let to = self.define(dst);
            return self.push(Inst::Mov { dst: to, src: made });
        }
        // Instructions are as long as the longer of their vectors.
        let len = self.len(from).max(self.len(to));
        if op == Conv::Narrow {
            let to = self.define(dst);
            return self.push(Inst::Out { op: ops::NARROW_64, len, dst: to, src, imm: None });
        }
        let op = instruction(op, from, to);
        let to = self.define(dst);
        self.op1(op, len, to, src);
    }

    /// An index in every lane.
    pub(super) fn splat(&mut self, dst: Value, src: Value) {
        let lane = self.lane(dst);
        if let Some(int) = self.ints[src.0 as usize] {
            let reg = self.bits(lane, int as u64);
            return self.bind(dst, reg);
        }
        let from = self.reg(src);
        let to = self.define(dst);
        self.splat_to(to, lane, from);
    }

    pub(super) fn splat_to(&mut self, dst: Reg, lane: Lane, src: Reg) {
        let (wide, len) = (lane.bytes() == 8, self.len(lane));
        if self.isa == Isa::Avx512 {
            return self.op1(ops::splat_general(wide), len, dst, src);
        }
        let low = self.vector(Len::X);
        let op = if wide { ops::FROM_GENERAL_64 } else { ops::FROM_GENERAL };
        self.op1(op, Len::X, low, src);
        let op = if wide && len == Len::X { ops::LOAD_PAIR } else { ops::splat(wide) };
        self.op1(op, len, dst, low);
    }

    /// bfloat16 in the low halves of 32-bit lanes, rounded to nearest, ties to even.
    ///
    /// There is an instruction for it, but it flushes subnormal numbers to zero.
    pub(super) fn bf16_bits(&mut self, x: Reg) -> Reg {
        let lane = Lane::I32;
        let high = self.shifted(BinOp::ShrL, lane, x, 16);
        let one = self.bits(lane, 1);
        let odd = self.bin(BinOp::And, lane, high, one);
        let half = self.bits(lane, 0x7fff);
        let sum = self.bin(BinOp::Add, lane, x, half);
        let rounded = self.bin(BinOp::Add, lane, sum, odd);
        // Rounding could carry a NaN into infinity; a quiet one is the same number with a bit set.
        let quiet = self.bits(lane, 0x0040_0000);
        let nan = self.bin(BinOp::Or, lane, x, quiet);
        let len = self.len(lane);
        let mask = self.mask_like(lane);
        self.op2_imm(ops::compare_floats(false), len, mask, x, x, UNORDERED);
        let all = self.vector(len);
        match self.isa {
            Isa::Avx512 => {
                let (op, b, zero) = (ops::blend(false), nan.into(), false);
                self.push(Inst::Vector(VectorInst {
                    op,
                    len,
                    dst: all,
                    a: rounded,
                    b,
                    mask,
                    zero,
                    imm: None,
                }));
            }
            Isa::Avx2 => self.push(Inst::Blend { len, dst: all, mask, t: nan, f: rounded }),
        }
        self.shifted(BinOp::ShrL, lane, all, 16)
    }

    /// A register for the comparison of lanes: a mask, or a vector whose lanes are all ones or zeros.
    pub(super) fn mask_like(&mut self, lane: Lane) -> Reg {
        match self.isa {
            Isa::Avx512 => self.mask_reg(),
            Isa::Avx2 => self.vector(self.len(lane)),
        }
    }

    /// The elements of a narrow format, in the low bits of the lanes.
    pub(super) fn narrowed(&mut self, mem: Mem, src: Reg) -> Reg {
        if mem == Mem::BF16 { self.bf16_bits(src) } else { src }
    }
}

/// The condition of `vcmpps` that holds if either is NaN.
const UNORDERED: u8 = 3;

fn instruction(op: Conv, from: Lane, to: Lane) -> Op {
    match (op, from, to) {
        (Conv::Value, Lane::I32, Lane::F32) => ops::I32_TO_F32,
        (Conv::Value, Lane::I32, _) => ops::I32_TO_F64,
        (Conv::Value, Lane::I64, Lane::F32) => ops::I64_TO_F32,
        (Conv::Value, Lane::I64, _) => ops::I64_TO_F64,
        (Conv::Value, Lane::F32, _) => ops::F32_TO_F64,
        (Conv::Value, Lane::F64, _) => ops::F64_TO_F32,
        (Conv::ValueU, Lane::I32, Lane::F32) => ops::U32_TO_F32,
        (Conv::ValueU, Lane::I32, _) => ops::U32_TO_F64,
        (Conv::ValueU, _, Lane::F32) => ops::U64_TO_F32,
        (Conv::ValueU, _, _) => ops::U64_TO_F64,
        (Conv::Trunc, Lane::F32, Lane::I32) => ops::F32_TO_I32,
        (Conv::Trunc, Lane::F32, _) => ops::F32_TO_I64,
        (Conv::Trunc, _, Lane::I32) => ops::F64_TO_I32,
        (Conv::Trunc, _, _) => ops::F64_TO_I64,
        (Conv::ExtendU, _, _) => ops::WIDEN_U32,
        (Conv::Extend | Conv::Bits | Conv::Narrow, _, _) => ops::WIDEN_I32,
    }
}
