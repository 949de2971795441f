//! Elements that are collected lane by lane, and lanes that are spread over memory.
//!
//! Elements are inserted into registers of 128 bits, which are then joined. Memory on the stack would do
//! as well, but what is written there by elements must have left the processor's queue of stores before
//! a vector can be read that holds more than one of them. The other way round there is no such wait:
//! elements are read from the stack as soon as the vector around them is written.

use super::Select;
use super::address::{displacement, shift_of};
use crate::kernel::{Lane, Mem};
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Alu, Fixed, Inst, Operand, Reg, RegClass, Scalar, Src};
use crate::x86::ops;

/// Where the elements of a vector are.
#[derive(Clone, Copy)]
pub(super) enum Elements {
    /// At a fixed distance in bytes from lane to lane.
    Strided(i64),
    /// At indices times a scale.
    Indexed { index: Reg, wide_index: bool, scale: i64 },
}

/// How many bytes an element is from the first.
#[derive(Clone, Copy)]
enum Apart {
    Near(i32),
    /// As a register says.
    Far(Reg),
}

/// The scalar that copies an element.
pub(super) fn scalar(bytes: usize) -> Scalar {
    match bytes {
        1 => Scalar::U8,
        2 => Scalar::U16,
        4 => Scalar::U32,
        _ => Scalar::I64,
    }
}

impl Select<'_> {
    /// Elements that are anywhere, side by side as in memory; zeros where the mask is not set. Narrow ones
    /// are still to be widened.
    pub(super) fn collect(
        &mut self,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
        elements: Elements,
    ) -> Reg {
        let size = mem.bytes();
        let per_part = 16 / size;
        let zero = self.fixed_zero(Len::X);
        let mut parts = vec![zero; self.kernel.lanes.div_ceil(per_part)];
        if mask.is_some() {
            // Written again and again, in branches.
            for part in &mut parts {
                *part = self.vector(Len::X);
                self.push(Inst::Mov { dst: *part, src: zero });
            }
        }
        self.each_lane(at, mask, elements, |this, l, at| {
            let (part, place) = (&mut parts[l / per_part], l % per_part);
            let before = *part;
            if mask.is_none() {
                *part = this.vector(Len::X);
            }
            if mask.is_none() && place == 0 && size >= 4 {
                let op = if size == 8 { ops::FROM_GENERAL_64 } else { ops::FROM_GENERAL };
                this.op1(op, Len::X, *part, Src::Mem(at));
            } else {
                this.insert(*part, before, size, place, Src::Mem(at));
            }
        });
        self.joined(&parts)
    }

    /// `before` with an element at a place.
    pub(super) fn insert(&mut self, dst: Reg, before: Reg, size: usize, place: usize, from: Src) {
        let (op, imm) = match size {
            1 => (ops::INSERT_8, place),
            2 => (ops::INSERT_16, place),
            4 => (ops::INSERT_32, place << 4),
            _ => (ops::INSERT_64, place),
        };
        self.op2_imm(op, Len::X, dst, before, from, imm as u8);
    }

    /// Vectors of 128 bits as one, the first lowest.
    pub(super) fn joined(&mut self, parts: &[Reg]) -> Reg {
        let mut join = |op, len, low, high| {
            let dst = self.vector(len);
            self.op2_imm(op, len, dst, low, high, 1);
            dst
        };
        match *parts {
            [all] => all,
            [low, high] => join(ops::INSERT_128, Len::Y, low, high),
            [a, b, c, d] => {
                let low = join(ops::INSERT_128, Len::Y, a, b);
                let high = join(ops::INSERT_128, Len::Y, c, d);
                join(ops::INSERT_256, Len::Z, low, high)
            }
            _ => unreachable!("a vector has one, two or four times 128 bits"),
        }
    }

    /// Calls `f` with the number and address of each lane, where the mask is set.
    pub(super) fn each_lane(
        &mut self,
        at: Address,
        mask: Option<Reg>,
        elements: Elements,
        mut f: impl FnMut(&mut Self, usize, Address),
    ) {
        let at = self.flat(at);
        let bits = mask.map(|mask| self.mask_bits(mask));
        let lanes = self.kernel.lanes;
        let spare = match elements {
            Elements::Indexed { index, wide_index, .. } => {
                let spare = self.stack(128).plus(64);
                let lane = if wide_index { Lane::I64 } else { Lane::I32 };
                self.spill_to(spare, self.len(lane), index);
                spare
            }
            Elements::Strided(_) => at,
        };
        // Constants are made before any branch, as in `store_first`.
        let apart: Vec<Apart> = match elements {
            Elements::Strided(stride) => {
                let apart = |l: usize| {
                    let bytes = stride.wrapping_mul(l as i64);
                    displacement(bytes).map_or_else(|| Apart::Far(self.int(bytes)), Apart::Near)
                };
                (0..lanes).map(apart).collect()
            }
            Elements::Indexed { .. } => vec![Apart::Near(0); lanes],
        };
        let scale = match elements {
            Elements::Indexed { scale, .. } => self.operand(scale),
            Elements::Strided(_) => Operand::Imm(1),
        };
        for (l, apart) in apart.into_iter().enumerate() {
            let next = bits.map(|a| {
                let to = self.label();
                self.push(Inst::UnlessBit { a, bit: l as u8, to });
                to
            });
            let at = match (elements, apart) {
                (Elements::Strided(_), Apart::Far(bytes)) => {
                    let dst = self.general();
                    let b = Operand::Reg(bytes);
                    self.push(Inst::Alu { op: Alu::Add, dst, a: at.base, b });
                    Address { base: dst, ..at }
                }
                (Elements::Strided(_), Apart::Near(bytes)) => at.plus(bytes),
                (Elements::Indexed { wide_index, scale: bytes, .. }, _) => {
                    let (size, scalar) =
                        if wide_index { (8, Scalar::I64) } else { (4, Scalar::I32) };
                    let index = self.general();
                    let mem = spare.plus(l as i32 * size);
                    self.push(Inst::Load { dst: index, mem, scalar });
                    match shift_of(bytes) {
                        Some(shift) => Address { index, shift, ..at },
                        None => {
                            let dst = self.general();
                            self.push(Inst::Alu { op: Alu::Mul, dst, a: index, b: scale });
                            Address { index: dst, ..at }
                        }
                    }
                }
            };
            f(self, l, at);
            if let Some(at) = next {
                self.push(Inst::Label { at });
            }
        }
    }

    /// Stores a contiguous vector to the stack and copies its elements to where they belong.
    pub(super) fn spread(
        &mut self,
        src: Reg,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
        stride: i64,
    ) {
        let buffer = self.stack(64);
        self.contiguous_store(src, mem, buffer, None, false);
        self.spread_from(buffer, mem, at, mask, stride);
    }

    /// Copies the elements of a contiguous vector on the stack to where they belong.
    pub(super) fn spread_from(
        &mut self,
        buffer: Address,
        mem: Mem,
        at: Address,
        mask: Option<Reg>,
        stride: i64,
    ) {
        let size = mem.bytes();
        self.each_lane(at, mask, Elements::Strided(stride), |this, l, at| {
            let one = this.general();
            let mem = buffer.plus((l * size) as i32);
            this.push(Inst::Load { dst: one, mem, scalar: scalar(size) });
            this.push(Inst::StoreScalar { src: one, mem: at, scalar: scalar(size) });
        });
    }

    /// An address without an index.
    pub(super) fn flat(&mut self, at: Address) -> Address {
        if !at.index.is_some() {
            return at;
        }
        let base = self.general();
        self.push(Inst::Lea { dst: base, mem: Address { disp: 0, ..at } });
        Address { base, index: Reg::NONE, shift: 0, ..at }
    }

    pub(super) fn fixed_zero(&mut self, len: Len) -> Reg {
        self.fixed(RegClass::Vector, len, Fixed::Bits32(0))
    }
}
