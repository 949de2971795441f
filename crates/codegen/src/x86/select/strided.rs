//! Elements that lie a few elements apart, as the channels of pixels and the coordinates of points
//! do: whole vectors are read or written and permuted, which takes a fraction of the time of a gather
//! or of scalars. Nothing before the first element or behind the last is touched.

use super::Select;
use super::address::displacement;
use crate::kernel::{BinOp, Lane, Mem, Neighbours, Value, neighbours};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Inst, Reg, Src, VectorInst};
use crate::x86::ops;

/// The most vectors that a vector's elements are spread over: with more, a scatter is as fast.
const MOST_STORES: usize = 8;

/// Where the elements of all lanes are.
#[derive(Clone, Copy)]
struct Span {
    /// The first in memory.
    at: Address,
    /// How many elements from one to the next.
    apart: usize,
    lanes: usize,
    /// Whether the first in memory is the last lane's.
    backwards: bool,
}

impl Span {
    /// Elements `stride` bytes apart, lane 0's at `at`, if they are a few elements apart.
    fn of(mem: Mem, at: Address, stride: i64, lanes: usize) -> Option<Self> {
        let size = mem.bytes() as i64;
        let apart = stride.checked_abs()? / size;
        if stride % size != 0 || apart < 2 {
            return None;
        }
        let backwards = stride < 0;
        let first = if backwards { stride * (lanes as i64 - 1) } else { 0 };
        let at = at.plus(displacement(first)?);
        Some(Span { at, apart: apart as usize, lanes, backwards })
    }

    /// How many elements from the first to the last, both included.
    fn elements(&self) -> usize {
        (self.lanes - 1) * self.apart + 1
    }

    /// The lane of the `n`th of those that are wanted, and the other way round.
    fn turned(&self, n: usize) -> usize {
        if self.backwards { self.lanes - 1 - n } else { n }
    }

    /// How many elements a lane's is from the first.
    fn place(&self, lane: usize) -> usize {
        self.turned(lane) * self.apart
    }
}

/// Blocks with where each begins, in bytes, if that is near enough to be part of an address.
pub(super) fn placed(blocks: Vec<Neighbours>, mem: Mem) -> Option<Vec<(Neighbours, i32)>> {
    let start = |block: &Neighbours| displacement(block.first.checked_mul(mem.bytes() as i64)?);
    blocks.into_iter().map(|block| start(&block).map(|start| (block, start))).collect()
}

/// The most blocks of neighbours that the elements of a vector are permuted from: of more, a gather is
/// as fast, which there is for elements of 32 and 64 bits.
fn most_blocks(mem: Mem) -> usize {
    match mem.bytes() {
        8 => 4,
        4 => 8,
        _ => 16,
    }
}

impl Select<'_> {
    /// Reads elements `stride` bytes apart of some lanes, or of none if a mask has none, the others being zero; whether
    /// it was done.
    pub(super) fn strided_load(
        &mut self,
        dst: Value,
        mem: Mem,
        at: Address,
        stride: i64,
        (on, any): (u16, Option<Reg>),
    ) -> bool {
        if let Some(span) = Span::of(mem, at, stride, self.kernel.lanes)
            && any.is_none()
            && self.known_lanes(None) == Some(on)
            && mem.bytes() < 4
            && self.isa == Isa::Avx512
            && self.strided_parts(dst, mem, span)
        {
            return true;
        }
        let size = mem.bytes() as i64;
        let element = |l: i64| (on >> l & 1 == 1).then(|| (stride / size).wrapping_mul(l));
        let elements: Vec<_> = (0..self.kernel.lanes as i64).map(element).collect();
        stride % size == 0 && self.load_blocks(dst, mem, at, &elements, any)
    }

    /// An element for each lane that has one, counted in elements from an address, from blocks of
    /// neighbours, and zero for the others; whether it was done: not if that takes too many of them. With a mask, all of
    /// them are zero if it has no lane.
    pub(super) fn load_blocks(
        &mut self,
        dst: Value,
        mem: Mem,
        at: Address,
        elements: &[Option<i64>],
        any: Option<Reg>,
    ) -> bool {
        let made = match any {
            None => self.blocks(mem, at, elements),
            Some(mask) => self.blocks_if_any(mem, at, elements, mask),
        };
        let Some(src) = made else { return false };
        let dst = self.define(dst);
        self.push(Inst::Mov { dst, src });
        true
    }

    /// [`Select::blocks`], or zero if a mask has no lane.
    fn blocks_if_any(
        &mut self,
        mem: Mem,
        at: Address,
        elements: &[Option<i64>],
        mask: Reg,
    ) -> Option<Reg> {
        let has_blocks = match self.isa {
            Isa::Avx512 => self.blocks_of(mem, elements).is_some(),
            Isa::Avx2 => mem.bytes() >= 4 && self.lane_blocks(mem, elements).is_some(),
        };
        if !has_blocks {
            return None;
        }
        let len = self.len(mem.lane());
        let (dst, zero) = (self.vector(len), self.fixed_zero(len));
        self.push(Inst::Mov { dst, src: zero });
        let open = self.if_any(mask);
        if let Some(src) = self.blocks(mem, at, elements) {
            self.push(Inst::Mov { dst, src });
        }
        self.end_if_any(open);
        Some(dst)
    }

    /// The blocks that elements are in and where each begins, from an address on, if they are few and near.
    fn blocks_of(&self, mem: Mem, elements: &[Option<i64>]) -> Option<Vec<(Neighbours, i32)>> {
        let blocks = neighbours(elements, self.kernel.lanes as i64);
        // There are no permutations of 128 bits.
        if self.len(mem.lane()) == Len::X || blocks.len() > most_blocks(mem) {
            return None;
        }
        placed(blocks, mem)
    }

    /// An element for each lane that has one, and zero for the others; `None` if that takes too many blocks.
    fn blocks(&mut self, mem: Mem, at: Address, elements: &[Option<i64>]) -> Option<Reg> {
        if self.isa == Isa::Avx2 {
            return self.permuted_blocks(mem, at, elements);
        }
        let lane = mem.lane();
        let (len, wide) = (self.len(lane), lane.bytes() == 8);
        let lanes = self.kernel.lanes as i64;
        let mut made: Option<Reg> = None;
        for (Neighbours { first, count, lanes: wanted }, start) in self.blocks_of(mem, elements)? {
            let from = at.plus(start);
            let block = if count == lanes {
                let block = self.vector(len);
                self.load_to(block, mem, from);
                block
            } else {
                let mask = self.mask_of((1 << count) - 1);
                self.load_some(mem, from, mask)
            };
            // Lanes of the block join those that are there already.
            let element = |l: usize| elements[l].filter(|_| wanted >> l & 1 == 1);
            let order = |l: usize| match (element(l), made) {
                (Some(element), None) => element - first,
                (Some(element), Some(_)) => lanes + element - first,
                (None, None) => 0,
                (None, Some(_)) => l as i64,
            };
            let order = self.lanes_of(lane, order);
            let next = self.vector(len);
            match made {
                Some(tied) => {
                    let op = ops::permute_pair(wide);
                    let (dst, imm) = (next, None);
                    self.push(Inst::Tied { op, len, dst, tied, a: order, b: block, imm });
                }
                None if elements.iter().all(Option::is_some) => {
                    self.op2(ops::permute(wide), len, next, order, block);
                }
                None => {
                    let mask = self.mask_of(wanted as u16);
                    let (op, b, imm) = (ops::permute(wide), Src::Reg(block), None);
                    let all = VectorInst { op, len, dst: next, a: order, b, mask, zero: true, imm };
                    self.push(Inst::Vector(all));
                }
            }
            made = Some(next);
        }
        made
    }

    /// Elements narrower than lanes, if two vectors have them all: the 32 bits around each are brought
    /// into its lane, and what is not the element is shifted out.
    fn strided_parts(&mut self, dst: Value, mem: Mem, span: Span) -> bool {
        let (lanes, size) = (self.kernel.lanes, mem.bytes());
        let bytes = span.elements() * size;
        let len = self.len_of(4 * lanes);
        let fits = |part: &Len| part.bytes() <= bytes.min(4 * lanes);
        let Some(part_len) = [Len::Z, Len::Y, Len::X].into_iter().find(fits) else { return false };
        let part_bytes = part_len.bytes();
        if bytes > 2 * part_bytes {
            return false;
        }
        // The second ends where the last element does.
        let starts = [0, bytes - part_bytes];
        let [low, high] = starts.map(|start| {
            let part = self.vector(len);
            self.op1(ops::load(Mem::I32), part_len, part, Src::Mem(span.at.plus(start as i32)));
            part
        });
        // The part that a lane's element is in, and where.
        let find = |l: usize| {
            let place = span.place(l) * size;
            let part = usize::from(place >= part_bytes);
            (part, place - starts[part])
        };
        let order = self.lanes_of(Lane::I32, |l| {
            let (part, place) = find(l);
            (part * lanes + place / 4) as i64
        });
        let words = self.vector(len);
        let op = ops::permute_pair(false);
        self.push(Inst::Tied { op, len, dst: words, tied: low, a: order, b: high, imm: None });
        // Bits below the element, and above it.
        let below = |l: usize| (find(l).1 % 4 * 8) as i64;
        let above = |l: usize| 32 - below(l) - 8 * size as i64;
        let lane = Lane::I32;
        let made = match mem {
            Mem::U8 | Mem::U16 => {
                let by = self.lanes_of(lane, below);
                let moved = self.bin(BinOp::ShrL, lane, words, by);
                let kept = self.bits(lane, (1 << (8 * size)) - 1);
                self.bin(BinOp::And, lane, moved, kept)
            }
            Mem::I8 | Mem::I16 => {
                let by = self.lanes_of(lane, above);
                let moved = self.bin(BinOp::Shl, lane, words, by);
                self.shifted(BinOp::ShrA, lane, moved, 32 - 8 * size as u8)
            }
            Mem::BF16 => {
                let by = self.lanes_of(lane, above);
                let moved = self.bin(BinOp::Shl, lane, words, by);
                let kept = self.bits(lane, 0xffff_0000);
                self.bin(BinOp::And, lane, moved, kept)
            }
            Mem::F16 => {
                let by = self.lanes_of(lane, below);
                let moved = self.bin(BinOp::ShrL, lane, words, by);
                let halves = self.vector(self.len_of(2 * lanes));
                let (op, imm) = (ops::NARROW_16, None);
                self.push(Inst::Out { op, len, dst: halves, src: moved, imm });
                let wide = self.vector(len);
                self.op1(ops::load(mem), len, wide, halves);
                wide
            }
            Mem::I32 | Mem::I64 | Mem::F32 | Mem::F64 => {
                unreachable!("an element as wide as a lane")
            }
        };
        let to = self.define(dst);
        self.push(Inst::Mov { dst: to, src: made });
        true
    }

    /// Writes the lanes in `on` `stride` bytes apart (AVX-512, no lanes of 128 bits in all); whether it
    /// was done.
    pub(super) fn strided_store(
        &mut self,
        src: Reg,
        mem: Mem,
        at: Address,
        stride: i64,
        on: u16,
    ) -> bool {
        let lanes = self.kernel.lanes;
        let span = Span::of(mem, at, stride, lanes);
        let span = span.filter(|_| mem.bytes() >= 4 && self.isa == Isa::Avx512);
        let Some(span) = span else { return false };
        let lane = mem.lane();
        let (len, wide) = (self.len(lane), lane.bytes() == 8);
        let is_on = |l: usize| on >> l & 1 == 1;
        let places = (0..lanes).filter(|&l| is_on(l)).map(|l| span.place(l));
        let Some((first, last)) = places.clone().min().zip(places.max()) else { return true };
        let starts = (first..last + 1).step_by(lanes);
        let end = i64::try_from((last + lanes) * lane.bytes());
        if starts.len() > MOST_STORES || end.ok().and_then(displacement).is_none() {
            return false;
        }
        for start in starts {
            let lane_at = |l: usize| {
                let (n, rest) = ((start + l) / span.apart, (start + l) % span.apart);
                (rest == 0 && n < lanes).then(|| span.turned(n)).filter(|&l| is_on(l))
            };
            let there = (0..lanes).filter(|&l| lane_at(l).is_some());
            let there = there.fold(0, |bits, l| bits | 1 << l);
            if there == 0 {
                continue;
            }
            let mask = self.mask_of(there);
            let order = self.lanes_of(lane, |l| lane_at(l).unwrap_or(0) as i64);
            let spread = self.vector(len);
            self.op2(ops::permute(wide), len, spread, order, src);
            let mem = span.at.plus((start * lane.bytes()) as i32);
            self.push(Inst::Store { op: ops::store(wide), len, src: spread, mem, mask, imm: None });
        }
        true
    }
}
