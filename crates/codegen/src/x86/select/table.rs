//! Gathers from small tables: whole vectors of the table are read and permuted by the indices, which
//! takes a fraction of the time of an access for each lane.

use super::Select;
use crate::kernel::{Addr, BinOp, Buf, Cmp, Lane, Mem, Value};
use crate::x86::Isa;
use crate::x86::asm::Len;
use crate::x86::mir::{Address, Alu, Inst, Operand, Reg, Region, Src, VectorInst};
use crate::x86::ops;

/// The most bytes of a table that is permuted: two vectors for each permutation, and a choice between
/// permutations. `docs/design/movement.md` has the measurements.
const MAX_BYTES: usize = 512;

/// A vector of the table.
const VECTOR_BYTES: usize = 64;

/// Where a table is.
struct Table {
    at: Address,
    /// A multiple of a word's.
    bytes: usize,
    /// How many bytes each lane's element is from its beginning.
    place: Reg,
}

impl Select<'_> {
    /// Reads each lane at its own index from a few vectors (AVX-512) that the kernel does not write: a whole buffer, or a
    /// part of one if the greatest index is known; whether it was done.
    pub(super) fn table_gather(
        &mut self,
        dst: Value,
        mem: Mem,
        addr: &Addr,
        (index, wide_index): (Reg, bool),
        (scale, most): (i64, Option<u32>),
        mask: Option<Reg>,
    ) -> bool {
        let Buf::Param(n) = addr.buf else { return false };
        let param = &self.kernel.params[n as usize];
        let (buffer, size) = (param.bytes, mem.bytes());
        // What narrow elements are taken from, and elements of 32 or 64 bits themselves.
        let word = if size == 8 { Lane::I64 } else { Lane::I32 };
        let is_whole = |bytes: i64| bytes % size as i64 == 0;
        let is_table = self.isa == Isa::Avx512
            && !param.write
            // (Every lane is within the buffer, wherever it is said to be, so that checks see nothing.)
            && !self.is_checked
            && is_whole(scale)
            && is_whole(addr.offset)
            && addr.terms.iter().all(|&(_, bytes)| is_whole(bytes));
        let Ok(scale) = i32::try_from(scale) else { return false };
        // Of the part that lanes read, whole words.
        let part = most.filter(|_| scale > 0).map(|most| most as usize * scale as usize + size);
        let part = part.map(|bytes| (bytes, bytes.next_multiple_of(word.bytes())));
        let is_few = |bytes: usize| (1..=MAX_BYTES).contains(&bytes);
        let part = part.filter(|&(_, bytes)| is_few(bytes) && bytes < buffer);
        if !is_table || part.is_none() && !(is_few(buffer) && buffer % word.bytes() == 0) {
            return false;
        }
        let index = match (wide_index, size == 8) {
            (true, false) => {
                let low = self.vector(self.len(word));
                let (op, len, imm) = (ops::NARROW_64, self.len(Lane::I64), None);
                self.push(Inst::Out { op, len, dst: low, src: index, imm });
                low
            }
            (false, true) => {
                let wide = self.vector(self.len(word));
                self.op1(ops::WIDEN_I32, self.len(word), wide, index);
                wide
            }
            _ => index,
        };
        let table = match part {
            Some(part) => self.table_part(addr, (buffer, part), word, (index, scale)),
            None => {
                let (of, base) = (Region::Buffer(addr.buf), self.buffer(addr.buf));
                let at = Address { of, base, index: Reg::NONE, shift: 0, disp: 0 };
                Table { at, bytes: buffer, place: self.place_in_buffer(addr, word, index, scale) }
            }
        };
        let place = table.place;
        let number = self.shifted(BinOp::ShrL, word, place, word.bytes().trailing_zeros() as u8);
        let words = self.permuted_words(&table, word, number);
        let made = if size < 4 { self.element_of_words(mem, words, place) } else { words };
        let (op, b, lane) = (ops::mov(size == 8), Src::Reg(made), mem.lane());
        let (len, to) = (self.len(lane), self.define(dst));
        match mask {
            None => self.push(Inst::Mov { dst: to, src: made }),
            Some(mask) => self.push(Inst::Vector(VectorInst {
                op,
                len,
                dst: to,
                a: Reg::NONE,
                b,
                mask,
                zero: true,
                imm: None,
            })),
        }
        true
    }

    /// The part of a buffer that begins where lanes of index 0 read, of which lanes read the first `read` bytes: those, in
    /// whole words, of `bytes` bytes. It begins earlier if they end beyond the buffer.
    fn table_part(
        &mut self,
        addr: &Addr,
        (buffer, (read, bytes)): (usize, (usize, usize)),
        word: Lane,
        (index, scale): (Reg, i32),
    ) -> Table {
        let scaled = self.scaled(word, index, scale);
        if read == bytes {
            return Table { at: self.address(addr), bytes, place: scaled };
        }
        let (base, from) = (self.buffer(addr.buf), self.distance_from_begin(addr));
        let [begin, before] = [(); 2].map(|()| self.general());
        let last = self.operand((buffer - bytes) as i64);
        self.push(Inst::Alu { op: Alu::Min, dst: begin, a: from, b: last });
        self.push(Inst::Alu { op: Alu::Sub, dst: before, a: from, b: Operand::Reg(begin) });
        let by = self.vector(self.len(word));
        self.splat_to(by, word, before);
        let of = Region::Buffer(addr.buf);
        let at = Address { of, base, index: begin, shift: 0, disp: 0 };
        Table { at, bytes, place: self.bin(BinOp::Add, word, scaled, by) }
    }

    /// Each lane's index in bytes.
    fn scaled(&mut self, lane: Lane, index: Reg, scale: i32) -> Reg {
        match scale {
            1 => index,
            2 | 4 | 8 => self.shifted(BinOp::Shl, lane, index, scale.trailing_zeros() as u8),
            _ => {
                let by = self.bits(lane, i64::from(scale) as u64);
                self.bin(BinOp::Mul, lane, index, by)
            }
        }
    }

    /// How many bytes an address is from the beginning of its buffer, without what lanes add.
    fn distance_from_begin(&mut self, addr: &Addr) -> Reg {
        let (at, base) = (self.address(addr), self.buffer(addr.buf));
        let (first, from) = (self.general(), self.general());
        self.push(Inst::Lea { dst: first, mem: at });
        self.push(Inst::Alu { op: Alu::Sub, dst: from, a: first, b: Operand::Reg(base) });
        from
    }

    /// How many bytes each lane's element is from the beginning of its buffer: `index` has lanes of type
    /// `lane`, a unit of which moves by `scale` bytes.
    pub(super) fn place_in_buffer(
        &mut self,
        addr: &Addr,
        lane: Lane,
        index: Reg,
        scale: i32,
    ) -> Reg {
        let scaled = self.scaled(lane, index, scale);
        if addr.offset == 0 && addr.terms.is_empty() {
            return scaled;
        }
        let from = self.distance_from_begin(addr);
        let from_all = self.vector(self.len(lane));
        self.splat_to(from_all, lane, from);
        self.bin(BinOp::Add, lane, scaled, from_all)
    }

    /// Words of a table by their numbers, whatever numbers there are beyond its end.
    fn permuted_words(&mut self, table: &Table, word: Lane, number: Reg) -> Reg {
        let &Table { at, bytes, .. } = table;
        let wide = word == Lane::I64;
        // (Permutations are of whole vectors, however few lanes there are.)
        let (len, lanes_len) = (Len::Z, self.len(word));
        let mut vectors = (0..bytes).step_by(VECTOR_BYTES).map(|start| (start, bytes - start));
        let mut made = None;
        while let Some(low) = vectors.next() {
            let low_words = self.words_from(at, low, wide);
            let found = self.vector(len);
            match vectors.next() {
                None => self.op2(ops::permute(wide), len, found, number, low_words),
                Some(high) => {
                    let b = self.words_from(at, high, wide);
                    let (op, tied) = (ops::permute_pair(wide), low_words);
                    self.push(Inst::Tied { op, len, dst: found, tied, a: number, b, imm: None });
                }
            }
            made = Some(match made {
                None => found,
                Some(before) => {
                    // (Numbers are not negative where anyone asks.)
                    let first = self.bits(word, (low.0 / word.bytes()) as u64);
                    let (op, imm) = ops::compare_ints(Cmp::Ge, wide);
                    let is_here = self.mask_reg();
                    self.op2_imm(op, lanes_len, is_here, number, first, imm);
                    let all = self.vector(len);
                    self.push(Inst::Vector(VectorInst {
                        op: ops::blend(wide),
                        len: lanes_len,
                        dst: all,
                        a: before,
                        b: found.into(),
                        mask: is_here,
                        zero: false,
                        imm: None,
                    }));
                    all
                }
            });
        }
        made.expect("a buffer of one byte or more")
    }

    /// A vector of a table's words from byte `start` on, of which there are `bytes` to the table's end.
    fn words_from(&mut self, at: Address, (start, bytes): (usize, usize), wide: bool) -> Reg {
        let at = at.plus(start as i32);
        let size = if wide { 8 } else { 4 };
        let len = [Len::X, Len::Y].into_iter().find(|len| len.bytes() == bytes).unwrap_or(Len::Z);
        let mask = match bytes >= VECTOR_BYTES || len != Len::Z {
            true => Reg::NONE,
            false => self.mask_of((1 << (bytes / size)) - 1),
        };
        let dst = self.vector(Len::Z);
        let op = if wide { ops::load(Mem::I64) } else { ops::load(Mem::I32) };
        let (a, b, zero) = (Reg::NONE, Src::Mem(at), mask.is_some());
        self.push(Inst::Vector(VectorInst { op, len, dst, a, b, mask, zero, imm: None }));
        dst
    }

    /// The elements of fewer than 32 bits, `place` bytes from a buffer's beginning, of which the words
    /// around them are there, in a lane each.
    fn element_of_words(&mut self, mem: Mem, words: Reg, place: Reg) -> Reg {
        let lane = Lane::I32;
        let three = self.bits(lane, 3);
        let before = self.bin(BinOp::And, lane, place, three);
        let before = self.shifted(BinOp::Shl, lane, before, 3);
        let low = self.bin(BinOp::ShrL, lane, words, before);
        self.low_element(mem, low)
    }

    /// The elements that lie in the low bits of 32-bit lanes, as a load would give them.
    pub(super) fn low_element(&mut self, mem: Mem, low: Reg) -> Reg {
        let lane = Lane::I32;
        let unused = 32 - 8 * mem.bytes() as u8;
        match mem {
            Mem::BF16 => self.shifted(BinOp::Shl, lane, low, unused),
            Mem::I8 | Mem::I16 => {
                let high = self.shifted(BinOp::Shl, lane, low, unused);
                self.shifted(BinOp::ShrA, lane, high, unused)
            }
            Mem::F16 => {
                let len = self.len(lane);
                let halves = self.vector(self.len_of(2 * self.kernel.lanes));
                let (op, imm) = (ops::NARROW_16, None);
                self.push(Inst::Out { op, len, dst: halves, src: low, imm });
                let wide = self.vector(len);
                self.op1(ops::load(mem), len, wide, halves);
                wide
            }
            _ => {
                let kept = self.bits(lane, u64::from(u32::MAX >> unused));
                self.bin(BinOp::And, lane, low, kept)
            }
        }
    }
}
