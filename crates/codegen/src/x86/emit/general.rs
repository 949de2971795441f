//! Instructions on general registers.

use super::super::alloc::Allocation;
use super::super::asm::{Cond, Len, Rm};
use super::super::mir::{Address, Alu, Inst, Operand, Reg, Scalar};
use super::super::ops;
use super::{Emit, RAX, RDX};

/// The opcode that reads a scalar into a general register, and whether it fills all 64 bits by itself.
fn load_opcode(scalar: Scalar) -> (&'static [u8], bool) {
    match scalar {
        Scalar::U8 => (&[0x0f, 0xb6], false),
        Scalar::I8 => (&[0x0f, 0xbe], true),
        Scalar::U16 => (&[0x0f, 0xb7], false),
        Scalar::I16 => (&[0x0f, 0xbf], true),
        Scalar::U32 => (&[0x8b], false),
        Scalar::I32 => (&[0x63], true),
        Scalar::I64 => (&[0x8b], true),
    }
}

impl Emit<'_> {
    /// An instruction on general registers.
    pub(super) fn general_inst(&mut self, inst: &Inst) {
        match *inst {
            Inst::Lea { dst, mem } => {
                let rm = self.address(mem);
                let to = self.general_dst(dst);
                self.asm.general(&[0x8d], true, to, rm, 0);
                self.general_done(dst, to);
            }
            Inst::Load { dst, mem, scalar } => {
                let rm = self.address(mem);
                let to = self.general_dst(dst);
                let (opcode, is_wide) = load_opcode(scalar);
                self.asm.general(opcode, is_wide, to, rm, 0);
                self.general_done(dst, to);
            }
            Inst::StoreScalar { src, mem, scalar } => self.store_scalar(src, mem, scalar),
            Inst::Alu { op, dst, a, b } => self.alu(op, dst, a, b),
            Inst::ShiftScalar { left, dst, a, by } => {
                let to = self.general_dst(dst);
                let from = self.general(a, to);
                if from != to {
                    self.asm.general(&[0x8b], true, to, Rm::Reg(from), 0);
                }
                self.asm.general(&[0xc1], true, if left { 4 } else { 5 }, Rm::Reg(to), 1);
                self.asm.raw(&[by]);
                self.general_done(dst, to);
            }
            Inst::SignExtend { dst, a } => {
                let from = self.general(a, RAX);
                let to = self.general_dst(dst);
                self.asm.general(&[0x63], true, to, Rm::Reg(from), 0);
                self.general_done(dst, to);
            }
            Inst::Below { dst, index, end, lanes, positive } => {
                self.lanes_below(index, end, lanes.into(), positive);
                self.general_done(dst, RAX);
            }
            Inst::AnyBit { dst, a, of } => {
                self.load_general(RAX, a);
                self.alu_with(0x23, 4, RAX, Operand::Imm(of));
                // neg sets the carry if the number is not zero; sbb spreads it.
                self.asm.general(&[0xf7], true, 3, Rm::Reg(RAX), 0);
                self.asm.general(&[0x1b], true, RAX, Rm::Reg(RAX), 0);
                self.general_done(dst, RAX);
            }
            Inst::LowBits { dst, count } => {
                let count = self.general(count, RAX);
                self.set_int(RDX, -1);
                self.vex(ops::LOW_BITS, Len::X, RDX, count, Rm::Reg(RDX));
                let to = self.dst(dst);
                self.vex(ops::MASK_FROM_GENERAL, Len::X, to, 0, Rm::Reg(RDX));
                self.done(dst, to);
            }
            Inst::Compare { cond, a, b, to } => {
                let a = self.general(a, RAX);
                self.alu_with(0x3b, 7, a, b);
                self.asm.jump(Some(cond), to);
            }
            Inst::UnlessBit { a, bit, to } => {
                let a = self.general(a, RAX);
                self.asm.general(&[0x0f, 0xba], false, 4, Rm::Reg(a), 1);
                self.asm.raw(&[bit]);
                self.asm.jump(Some(Cond::NotCarry), to);
            }
            _ => unreachable!("an instruction on vectors"),
        }
    }

    /// Puts into `rax` how many of a step's lanes, from `index` on, lie before `end`.
    fn lanes_below(&mut self, index: Reg, end: Reg, lanes: i64, is_positive: bool) {
        self.load_general(RAX, end);
        let index = self.general_rm(index);
        self.asm.general(&[0x2b], true, RAX, index, 0);
        self.set_int(RDX, lanes);
        self.asm.general(&[0x3b], true, RAX, Rm::Reg(RDX), 0);
        self.move_if(Cond::Greater, RAX, Rm::Reg(RDX));
        if !is_positive {
            self.set_int(RDX, 0);
            self.asm.general(&[0x85], true, RAX, Rm::Reg(RAX), 0);
            self.move_if(Cond::Sign, RAX, Rm::Reg(RDX));
        }
    }

    fn load_general(&mut self, to: u8, reg: Reg) {
        let from = self.general(reg, to);
        if from != to {
            self.asm.general(&[0x8b], true, to, Rm::Reg(from), 0);
        }
    }

    fn move_if(&mut self, cond: Cond, to: u8, from: Rm) {
        self.asm.general(&[0x0f, 0x40 | cond as u8], true, to, from, 0);
    }

    fn store_scalar(&mut self, src: Reg, mem: Address, scalar: Scalar) {
        // Both scratch registers may be needed for the address; a spilled source is reached by
        // computing the address first.
        let placed = match self.allocation(src) {
            Allocation::Machine(n) => Some(n),
            _ => None,
        };
        let rm = self.address(mem);
        // The low bytes of rsi and rdi need a prefix that the encoder does not write.
        let byte = matches!(scalar, Scalar::U8 | Scalar::I8);
        let (rm, src) = match placed {
            Some(n) if !byte || !(4..8).contains(&n) => (rm, n),
            _ => {
                self.asm.general(&[0x8d], true, RDX, rm, 0);
                self.load_general(RAX, src);
                (Rm::Mem { base: RDX, index: None, shift: 0, disp: 0 }, RAX)
            }
        };
        match scalar {
            Scalar::U8 | Scalar::I8 => self.asm.general(&[0x88], false, src, rm, 0),
            Scalar::U16 | Scalar::I16 => self.asm.general(&[0x66, 0x89], false, src, rm, 0),
            Scalar::U32 | Scalar::I32 => self.asm.general(&[0x89], false, src, rm, 0),
            Scalar::I64 => self.asm.general(&[0x89], true, src, rm, 0),
        }
    }

    /// `op reg, b`, by the opcode for a register and by the extension for a number.
    fn alu_with(&mut self, opcode: u8, ext: u8, reg: u8, b: Operand) {
        match b {
            Operand::Reg(b) => {
                let rm = self.general_rm(b);
                self.asm.general(&[opcode], true, reg, rm, 0);
            }
            Operand::Imm(value) => match i8::try_from(value) {
                Ok(short) => {
                    self.asm.general(&[0x83], true, ext, Rm::Reg(reg), 1);
                    self.asm.raw(&[short as u8]);
                }
                Err(_) => {
                    self.asm.general(&[0x81], true, ext, Rm::Reg(reg), 4);
                    self.asm.raw(&value.to_le_bytes());
                }
            },
        }
    }

    fn alu(&mut self, op: Alu, dst: Reg, a: Reg, b: Operand) {
        // Results are made in `rax` where writing the destination would destroy the second source.
        let to = self.general_dst(dst);
        let clobbers =
            matches!(b, Operand::Reg(b) if self.allocation(b) == Allocation::Machine(to));
        let at = if clobbers { RAX } else { to };
        match op {
            Alu::Add => match (self.allocation(a), b) {
                (Allocation::Machine(base), Operand::Imm(disp)) if base != to => {
                    let rm = Rm::Mem { base, index: None, shift: 0, disp };
                    self.asm.general(&[0x8d], true, to, rm, 0);
                    return self.general_done(dst, to);
                }
                (Allocation::Machine(base), Operand::Reg(second)) if base != to => {
                    if let Allocation::Machine(index) = self.allocation(second) {
                        let rm = Rm::Mem { base, index: Some(index), shift: 0, disp: 0 };
                        self.asm.general(&[0x8d], true, to, rm, 0);
                        return self.general_done(dst, to);
                    }
                    self.load_general(at, a);
                    self.alu_with(0x03, 0, at, b);
                }
                _ => {
                    self.load_general(at, a);
                    self.alu_with(0x03, 0, at, b);
                }
            },
            Alu::Sub => {
                self.load_general(at, a);
                self.alu_with(0x2b, 5, at, b);
            }
            Alu::And => {
                self.load_general(at, a);
                self.alu_with(0x23, 4, at, b);
            }
            Alu::Mul => self.product(at, a, b),
            Alu::Min | Alu::Max => return self.extreme(op, dst, a, b),
            Alu::Div => return self.quotient(dst, a, b),
        }
        self.general_done(dst, at);
    }

    fn product(&mut self, to: u8, a: Reg, b: Operand) {
        match b {
            Operand::Reg(b) => {
                self.load_general(to, a);
                let rm = self.general_rm(b);
                self.asm.general(&[0x0f, 0xaf], true, to, rm, 0);
            }
            Operand::Imm(value) => {
                let rm = self.general_rm(a);
                match i8::try_from(value) {
                    Ok(short) => {
                        self.asm.general(&[0x6b], true, to, rm, 1);
                        self.asm.raw(&[short as u8]);
                    }
                    Err(_) => {
                        self.asm.general(&[0x69], true, to, rm, 4);
                        self.asm.raw(&value.to_le_bytes());
                    }
                }
            }
        }
    }

    /// The lesser or the greater number.
    fn extreme(&mut self, op: Alu, dst: Reg, a: Reg, b: Operand) {
        self.load_general(RAX, a);
        let other = match b {
            Operand::Reg(b) => self.general_rm(b),
            Operand::Imm(value) => {
                self.set_int(RDX, value.into());
                Rm::Reg(RDX)
            }
        };
        self.asm.general(&[0x3b], true, RAX, other, 0);
        let cond = if op == Alu::Min { Cond::Greater } else { Cond::Less };
        self.move_if(cond, RAX, other);
        self.general_done(dst, RAX);
    }

    /// The quotient of numbers that are not negative; 0 for the divisor 0.
    fn quotient(&mut self, dst: Reg, a: Reg, b: Operand) {
        let by = match b {
            Operand::Reg(b) => self.general_rm(b),
            Operand::Imm(value) if value > 1 => return self.quotient_by(dst, a, value as u64),
            Operand::Imm(value) => {
                let at = self.asm.constant(&i64::from(value).to_le_bytes());
                Rm::Pool { at, splat: false }
            }
        };
        let end = self.asm.label();
        self.set_int(RAX, 0);
        self.asm.general(&[0x83], true, 7, by, 1);
        self.asm.raw(&[0]);
        self.asm.jump(Some(Cond::Equal), end);
        self.load_general(RAX, a);
        self.set_int(RDX, 0);
        self.asm.general(&[0xf7], true, 6, by, 0);
        self.asm.bind(end);
        self.general_done(dst, RAX);
    }

    /// The quotient of a number that is not negative by a constant of at least 2: the upper half of a product with
    /// the divisor's reciprocal, which takes a quarter of the time of a division.
    fn quotient_by(&mut self, dst: Reg, a: Reg, by: u64) {
        let (reciprocal, shift) = reciprocal(by);
        self.set_int(RAX, reciprocal as i64);
        let rm = self.general_rm(a);
        self.asm.general(&[0xf7], true, 4, rm, 0);
        self.asm.general(&[0xc1], true, 5, Rm::Reg(RDX), 1);
        self.asm.raw(&[shift]);
        self.general_done(dst, RDX);
    }
}

/// A factor and a shift for which `x / by` is `x * factor >> 64 + shift`, rounded down, for all `x` below 2^63, `by` being
/// from 2 to 2^32.
///
/// With `l` the least number with `by <= 2^l`, the factor is `2^(63 + l) / by` rounded up, which is below 2^64 and less than 1
/// above that quotient. The product divided by `2^(63 + l)` then exceeds `x / by` by less than `x / 2^(63 + l)`, which is less
/// than `1 / by`, and so has the same integral part.
fn reciprocal(by: u64) -> (u64, u8) {
    let l = by.next_power_of_two().trailing_zeros();
    let factor = (1u128 << (63 + l)).div_ceil(by.into());
    (factor as u64, (l - 1) as u8)
}

#[cfg(test)]
mod tests {
    use super::reciprocal;

    #[test]
    fn reciprocals_divide_exactly() {
        let divisors = (2..2000).chain((0..31).flat_map(|n| {
            let power = 2u64 << n;
            [power - 1, power, power + 1].map(|by| by.max(2))
        }));
        for by in divisors {
            let (factor, shift) = reciprocal(by);
            let near = |x: u64| [x.saturating_sub(1), x, x + 1];
            let most = (1 << 63) - 1;
            let multiples =
                [1, 2, 3, 1000, most / by / 2, most / by - 1, most / by].map(|n| n * by);
            for x in multiples.into_iter().flat_map(near).chain([0, most - 1, most]) {
                let x = x.min(most);
                let quotient = ((u128::from(x) * u128::from(factor)) >> 64) as u64 >> shift;
                assert_eq!(quotient, x / by, "{x} / {by}");
            }
        }
    }
}
