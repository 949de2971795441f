//! AVX2: elements of a few vectors that are read whole and permuted.

use super::Select;
use super::strided::placed;
use crate::kernel::{BinOp, Lane, Mem, Neighbours, neighbours};
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Inst, Reg, Src};
use crate::x86::ops;

impl Select<'_> {
    /// What [`Select::load_blocks`] makes, with AVX2.
    pub(super) fn permuted_blocks(
        &mut self,
        mem: Mem,
        at: Address,
        elements: &[Option<i64>],
    ) -> Option<Reg> {
        if mem.bytes() >= 4 {
            return self.permuted_lanes(mem, at, elements);
        }
        let made = self.permuted_bytes(mem, at, elements)?;
        let to = self.vector(self.len(mem.lane()));
        self.widen(to, mem, made);
        Some(to)
    }

    /// The blocks that elements as wide as lanes are in and where each begins, from an address on, if they are few and
    /// near.
    pub(super) fn lane_blocks(
        &self,
        mem: Mem,
        elements: &[Option<i64>],
    ) -> Option<Vec<(Neighbours, i32)>> {
        let blocks = neighbours(elements, self.kernel.lanes as i64);
        // To insert elements one by one takes about two instructions each.
        let most = if self.kernel.lanes == 8 { 3 } else { 2 };
        if blocks.is_empty() || blocks.len() > most {
            return None;
        }
        placed(blocks, mem)
    }

    /// Elements as wide as lanes.
    fn permuted_lanes(&mut self, mem: Mem, at: Address, elements: &[Option<i64>]) -> Option<Reg> {
        let (lane, lanes) = (mem.lane(), self.kernel.lanes);
        let len = self.len(lane);
        let mut made: Option<Reg> = None;
        for (Neighbours { first, count, lanes: wanted }, start) in
            self.lane_blocks(mem, elements)?
        {
            let from = Src::Mem(at.plus(start));
            let block = match count == lanes as i64 {
                true => from,
                false => {
                    let low = self.vector(len);
                    let mask = self.lanes_of(lane, |l| if (l as i64) < count { -1 } else { 0 });
                    let op = ops::masked(ops::MASKED_LOAD, mem.bytes() == 8);
                    self.op2(op, len, low, mask, from);
                    low.into()
                }
            };
            let order = |l: usize| match elements[l] {
                Some(element) if wanted >> l & 1 == 1 => (element - first) as usize,
                _ => l,
            };
            let permuted = self.permuted(lane, block, order);
            made = Some(match made {
                None => permuted,
                Some(before) => {
                    let next = self.vector(len);
                    let op = ops::blend_fixed(mem.bytes() == 8);
                    self.op2_imm(op, len, next, before, permuted, wanted as u8);
                    next
                }
            });
        }
        if elements.iter().all(Option::is_some) {
            return made;
        }
        let on = self.lanes_of(lane, |l| if elements[l].is_some() { -1 } else { 0 });
        Some(self.bin(BinOp::And, lane, made?, on))
    }

    /// Lanes in an order that is known: which each of them becomes.
    pub(super) fn permuted(
        &mut self,
        lane: Lane,
        from: Src,
        order: impl Fn(usize) -> usize,
    ) -> Reg {
        let len = self.len(lane);
        let made = self.vector(len);
        if (0..self.kernel.lanes).all(|l| order(l) == l) {
            match from {
                Src::Reg(src) => self.push(Inst::Mov { dst: made, src }),
                Src::Mem(_) => self.op1(ops::MOV_LOAD, len, made, from),
            }
            return made;
        }
        if self.kernel.lanes == 4 {
            let imm = (0..4).fold(0, |imm, l| imm | (order(l) as u8) << (2 * l));
            let op = if lane.bytes() == 8 { ops::PERMUTE_FIXED_64 } else { ops::SHUFFLE_32 };
            self.op2_imm(op, len, made, Reg::NONE, from, imm);
        } else {
            // (Eight lanes are of 32 bits with AVX2, and of either size with AVX-512.)
            let order = self.lanes_of(lane, |l| order(l) as i64);
            self.op2(ops::permute(lane.bytes() == 8), len, made, order, from);
        }
        made
    }

    /// Elements narrower than lanes, side by side.
    fn permuted_bytes(&mut self, mem: Mem, at: Address, elements: &[Option<i64>]) -> Option<Reg> {
        let size = mem.bytes();
        let wanted = || elements.iter().flatten();
        let (least, greatest) = (*wanted().min()?, *wanted().max()?);
        let span = usize::try_from(greatest.checked_sub(least)?).ok()?.checked_add(1)? * size;
        // As much at once as there is, so that all is read that is needed and nothing else.
        let block_bytes = [16, 8, 4].into_iter().find(|&bytes| bytes <= span)?;
        let blocks = neighbours(elements, (block_bytes / size) as i64);
        if blocks.len() > self.kernel.lanes / 2 - 1 {
            return None;
        }
        let mut made: Option<Reg> = None;
        for (Neighbours { first, lanes: wanted, .. }, start) in placed(blocks, mem)? {
            let block = self.vector(Len::X);
            let op = match block_bytes {
                16 => ops::MOV_LOAD,
                8 => ops::FROM_GENERAL_64,
                _ => ops::FROM_GENERAL,
            };
            self.op1(op, Len::X, block, Src::Mem(at.plus(start)));
            // A set highest bit makes a zero.
            let byte = |i: usize| match elements.get(i / size) {
                Some(Some(element)) if wanted >> (i / size) & 1 == 1 => {
                    (element - first) as u8 * size as u8 + (i % size) as u8
                }
                _ => 0x80,
            };
            let order = self.table(Len::X, (0..16).map(byte).collect());
            let permuted = self.vector(Len::X);
            self.op2(ops::SHUFFLE_BYTES, Len::X, permuted, block, order);
            made = Some(match made {
                None => permuted,
                Some(before) => {
                    let op = ops::binary(BinOp::Or, Lane::I32)?;
                    let next = self.vector(Len::X);
                    self.op2(op, Len::X, next, before, permuted);
                    next
                }
            });
        }
        made
    }
}
