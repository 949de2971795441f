//! The values of a running kernel, and what each instruction does to them.

use std::ops::Range;

use helio_ir::{Error, Result};

use super::lanes::{Bank, Word};
use super::memory::TileMemory;
use crate::kernel::{Addr, BinOp, Conv, Fold, Inst, Kernel, Lane, MaskOp, Mem, Ty, Value};

/// Every value has a slot in the bank of its type.
pub(super) struct State<'k> {
    kernel: &'k Kernel,
    slots: Vec<usize>,
    /// Vectors of 32-bit lanes.
    narrow: Bank<u32>,
    /// Vectors of 64-bit lanes.
    wide: Bank<u64>,
    masks: Bank<bool>,
    indices: Vec<i64>,
}

impl<'k> State<'k> {
    pub(super) fn new(kernel: &'k Kernel, flushes_subnormals: bool) -> Self {
        let [mut narrow, mut wide, mut masks, mut indices] = [0; 4];
        let mut slot = |ty: &Ty| {
            let next = match ty {
                Ty::Vector(Lane::I32 | Lane::F32) => &mut narrow,
                Ty::Vector(Lane::I64 | Lane::F64) => &mut wide,
                Ty::Mask => &mut masks,
                Ty::Index => &mut indices,
            };
            *next += 1;
            *next - 1
        };
        let slots = kernel.types.iter().map(&mut slot).collect();
        State {
            kernel,
            slots,
            narrow: Bank::new(narrow, kernel.lanes, flushes_subnormals),
            wide: Bank::new(wide, kernel.lanes, flushes_subnormals),
            masks: Bank::new(masks, kernel.lanes, flushes_subnormals),
            indices: vec![0; indices],
        }
    }

    fn slot(&self, value: Value) -> usize {
        self.slots[value.0 as usize]
    }

    /// The lane type of what the checker has found to be a vector.
    fn lane(&self, value: Value) -> Lane {
        match self.kernel.ty(value) {
            Ty::Vector(lane) => lane,
            other => unreachable!("a checked kernel has a {other:?} for a vector"),
        }
    }

    pub(super) fn index(&self, value: Value) -> i64 {
        self.indices[self.slot(value)]
    }

    pub(super) fn set_index(&mut self, value: Value, index: i64) {
        let slot = self.slot(value);
        self.indices[slot] = index;
    }

    /// Lane 0 of a mask.
    pub(super) fn first(&self, mask: Value) -> bool {
        self.masks.get(self.slot(mask), 0)
    }

    pub(super) fn copy(&mut self, from: Value, to: Value) {
        let (a, dst) = (self.slot(from), self.slot(to));
        match self.kernel.ty(to) {
            Ty::Vector(lane) if lane.bytes() == 4 => self.narrow.map1(dst, a, |x| x),
            Ty::Vector(_) => self.wide.map1(dst, a, |x| x),
            Ty::Mask => self.masks.map1(dst, a, |x| x),
            Ty::Index => self.indices[dst] = self.indices[a],
        }
    }

    /// A lane of a vector; 32-bit ones are zero-extended.
    fn get(&self, vector: Value, lane: usize) -> u64 {
        let slot = self.slot(vector);
        match self.lane(vector).bytes() {
            4 => self.narrow.get(slot, lane).into(),
            _ => self.wide.get(slot, lane),
        }
    }

    /// A lane of an integer vector as a number.
    fn get_signed(&self, vector: Value, lane: usize) -> i64 {
        let bits = self.get(vector, lane);
        if self.lane(vector) == Lane::I32 { bits as i32 as i64 } else { bits as i64 }
    }

    fn set(&mut self, vector: Value, lane: usize, bits: u64) {
        let slot = self.slot(vector);
        match self.lane(vector).bytes() {
            4 => self.narrow.set(slot, lane, bits as u32),
            _ => self.wide.set(slot, lane, bits),
        }
    }

    fn fill(&mut self, vector: Value, bits: u64) {
        let slot = self.slot(vector);
        match self.lane(vector).bytes() {
            4 => self.narrow.fill(slot, bits as u32),
            _ => self.wide.fill(slot, bits),
        }
    }

    fn is_on(&self, mask: Option<Value>, lane: usize) -> bool {
        mask.is_none_or(|mask| self.masks.get(self.slot(mask), lane))
    }

    /// The address of lane 0.
    fn address(&self, addr: &Addr) -> i64 {
        let term = |sum: i64, &(value, bytes): &(Value, i64)| {
            sum.wrapping_add(self.index(value).wrapping_mul(bytes))
        };
        addr.terms.iter().fold(addr.offset, term)
    }

    /// Runs an instruction that is not a loop.
    pub(super) fn run(
        &mut self,
        inst: &Inst,
        memory: &mut TileMemory<'_, '_, '_>,
        range: Range<i64>,
    ) -> Result<()> {
        let lanes = self.kernel.lanes;
        match inst {
            Inst::Begin { dst } => self.set_index(*dst, range.start),
            Inst::End { dst } => self.set_index(*dst, range.end),
            Inst::IndexConst { dst, value } => self.set_index(*dst, *value),
            Inst::Index { dst, op, a, b } => {
                self.set_index(*dst, op.apply(self.index(*a), self.index(*b)));
            }
            Inst::IndexLoad { dst, mem, addr } => {
                let bits = mem.decode(memory.read(addr.buf, self.address(addr), mem.bytes())?);
                let wide = mem.lane() == Lane::I64;
                self.set_index(*dst, if wide { bits as i64 } else { bits as i32 as i64 });
            }
            Inst::Extract { dst, src } => self.set_index(*dst, self.get_signed(*src, 0)),
            Inst::Const { dst, bits } => self.fill(*dst, *bits),
            Inst::Splat { dst, src } => self.fill(*dst, self.index(*src) as u64),
            Inst::Numbers { dst, numbers } => {
                (0..lanes).for_each(|l| self.set(*dst, l, numbers[l] as u64));
            }
            Inst::Lookup { dst, table, index } => {
                for l in 0..lanes {
                    let number = table[(self.get_signed(*index, l).wrapping_add(8) & 15) as usize];
                    self.set(*dst, l, number.into());
                }
            }
            Inst::Un { dst, op, a } => {
                let (to, from) = (self.slot(*dst), self.slot(*a));
                match self.lane(*dst).bytes() {
                    4 => self.narrow.un(*op, to, from),
                    _ => self.wide.un(*op, to, from),
                }
            }
            Inst::Bin { dst, op, a, b } => {
                let (to, from) = (self.slot(*dst), [*a, *b].map(|v| self.slot(v)));
                let lane = self.lane(*dst);
                match lane.bytes() {
                    4 => self.narrow.bin(*op, lane.is_float(), to, from),
                    _ => self.wide.bin(*op, lane.is_float(), to, from),
                }
            }
            Inst::Fma { dst, op, a, b, c } => {
                let (to, from) = (self.slot(*dst), [*a, *b, *c].map(|v| self.slot(v)));
                match self.lane(*dst).bytes() {
                    4 => self.narrow.fma(*op, to, from),
                    _ => self.wide.fma(*op, to, from),
                }
            }
            Inst::Compare { dst, op, a, b } => {
                let (to, from) = (self.slot(*dst), [*a, *b].map(|v| self.slot(v)));
                let lane = self.lane(*a);
                match lane.bytes() {
                    4 => self.masks.compare(*op, lane.is_float(), to, &self.narrow, from),
                    _ => self.masks.compare(*op, lane.is_float(), to, &self.wide, from),
                }
            }
            Inst::Select { dst, mask, t, f } => {
                let (to, mask) = (self.slot(*dst), self.slot(*mask));
                let from = [*t, *f].map(|v| self.slot(v));
                match self.lane(*dst).bytes() {
                    4 => self.narrow.select(to, &self.masks, mask, from),
                    _ => self.wide.select(to, &self.masks, mask, from),
                }
            }
            Inst::Mask { dst, op, a, b } => {
                let (to, from) = (self.slot(*dst), [*a, *b].map(|v| self.slot(v)));
                match op {
                    MaskOp::And => self.masks.map2(to, from, |x, y| x & y),
                    MaskOp::Or => self.masks.map2(to, from, |x, y| x | y),
                    MaskOp::Xor => self.masks.map2(to, from, |x, y| x ^ y),
                    MaskOp::AndNot => self.masks.map2(to, from, |x, y| !x & y),
                }
            }
            Inst::MaskAny { dst, a } => {
                let any = (0..lanes).any(|l| self.masks.get(self.slot(*a), l));
                self.masks.fill(self.slots[dst.0 as usize], any);
            }
            Inst::MaskConst { dst, set } => self.masks.fill(self.slots[dst.0 as usize], *set),
            Inst::MaskBelow { dst, index, end } => {
                let (to, index, end) = (self.slot(*dst), self.index(*index), self.index(*end));
                let below = |l: usize| index.checked_add(l as i64).is_some_and(|at| at < end);
                (0..lanes).for_each(|l| self.masks.set(to, l, below(l)));
            }
            Inst::Convert { dst, op, a } => self.convert(*dst, *op, *a),
            Inst::Load { dst, mem, addr, mask } => self.load(*dst, *mem, addr, *mask, memory)?,
            Inst::Store { src, mem, addr, mask } => self.store(*src, *mem, addr, *mask, memory)?,
            Inst::Gather { dst, mem, addr, index, scale, most, mask } => {
                let base = self.address(addr);
                if let Some(most) = *most {
                    // All up to the last may be read, if any lane is on.
                    let last = base.wrapping_add(scale.wrapping_mul(most.into()));
                    let is_any = (0..lanes).any(|l| self.is_on(*mask, l));
                    for at in [base, last].into_iter().filter(|_| is_any) {
                        memory.read(addr.buf, at, mem.bytes())?;
                    }
                }
                for l in 0..lanes {
                    let mut bits = 0;
                    if self.is_on(*mask, l) {
                        let at_lane = self.get_signed(*index, l);
                        if most.is_some_and(|most| !(0..=i64::from(most)).contains(&at_lane)) {
                            return Err(Error::internal(format!(
                                "an index of {at_lane} beyond {most:?}"
                            )));
                        }
                        let at = base.wrapping_add(at_lane.wrapping_mul(*scale));
                        bits = mem.decode(memory.read(addr.buf, at, mem.bytes())?);
                    }
                    self.set(*dst, l, bits);
                }
            }
            Inst::Reduce { dst, op, a } => {
                let (Fold::Bin(op), lane) = (*op, self.lane(*a));
                let (to, a) = (self.slot(*dst), self.slot(*a));
                match lane.bytes() {
                    4 => reduce(&mut self.narrow, lanes, op, lane.is_float(), to, a),
                    _ => reduce(&mut self.wide, lanes, op, lane.is_float(), to, a),
                }
            }
            Inst::ShiftUp { dst, a, fill, by } => {
                for l in 0..lanes {
                    let from = if l < *by { (*fill, lanes - by + l) } else { (*a, l - by) };
                    self.set(*dst, l, self.get(from.0, from.1));
                }
            }
            Inst::Loop { .. } | Inst::While { .. } => {
                return Err(Error::internal("a loop among the steps of a kernel"));
            }
        }
        Ok(())
    }

    fn convert(&mut self, dst: Value, op: Conv, a: Value) {
        let (from, to) = (self.lane(a), self.lane(dst));
        let (dst, a) = (self.slot(dst), self.slot(a));
        let State { narrow, wide, .. } = self;
        match (op, from, to) {
            (Conv::Bits, _, _) if to.bytes() == 4 => narrow.map1(dst, a, |x| x),
            (Conv::Bits, _, _) => wide.map1(dst, a, |x| x),
            (Conv::Value, Lane::I32, Lane::F64) => {
                wide.from1(dst, narrow, a, |x| (x as i32 as f64).to_bits())
            }
            (Conv::Value, Lane::I32, _) => narrow.map1(dst, a, |x| (x as i32 as f32).to_bits()),
            (Conv::Value, Lane::I64, Lane::F32) => {
                narrow.from1(dst, wide, a, |x| (x as i64 as f32).to_bits())
            }
            (Conv::Value, Lane::I64, _) => wide.map1(dst, a, |x| (x as i64 as f64).to_bits()),
            (Conv::Value, Lane::F32, _) => {
                wide.from1(dst, narrow, a, |x| f64::from(f32::from_bits(narrow.taken(x))).to_bits())
            }
            (Conv::Value, Lane::F64, _) => {
                let flushes = narrow.flushes;
                narrow.from1(dst, wide, a, |x| {
                    let bits = (f64::from_bits(wide.taken(x)) as f32).to_bits();
                    if flushes { bits.flushed() } else { bits }
                });
            }
            (Conv::ValueU, Lane::I32, Lane::F64) => {
                wide.from1(dst, narrow, a, |x| f64::from(x).to_bits())
            }
            (Conv::ValueU, Lane::I32 | Lane::F32, _) => {
                narrow.map1(dst, a, |x| (x as f32).to_bits())
            }
            (Conv::ValueU, _, Lane::F32) => narrow.from1(dst, wide, a, |x| (x as f32).to_bits()),
            (Conv::ValueU, _, _) => wide.map1(dst, a, |x| (x as f64).to_bits()),
            (Conv::Trunc, Lane::F32, Lane::I64) => {
                wide.from1(dst, narrow, a, |x| trunc64(f32::from_bits(x).into()))
            }
            (Conv::Trunc, Lane::F64, Lane::I64) => {
                wide.map1(dst, a, |x| trunc64(f64::from_bits(x)))
            }
            (Conv::Trunc, Lane::F64, _) => {
                narrow.from1(dst, wide, a, |x| trunc32(f64::from_bits(x)))
            }
            (Conv::Trunc, _, _) => narrow.map1(dst, a, |x| trunc32(f32::from_bits(x).into())),
            (Conv::Extend, _, _) => wide.from1(dst, narrow, a, |x| x as i32 as i64 as u64),
            (Conv::ExtendU, _, _) => wide.from1(dst, narrow, a, u64::from),
            (Conv::Narrow, _, _) => narrow.from1(dst, wide, a, |x| x as u32),
        }
    }

    fn load(
        &mut self,
        dst: Value,
        mem: Mem,
        addr: &Addr,
        mask: Option<Value>,
        memory: &TileMemory<'_, '_, '_>,
    ) -> Result<()> {
        let (lanes, size, base) = (self.kernel.lanes, mem.bytes(), self.address(addr));
        if mask.is_none() && addr.lane_stride == 0 {
            self.fill(dst, mem.decode(memory.read(addr.buf, base, size)?));
        } else if mask.is_none() && addr.lane_stride == size as i64 {
            let elements = memory.read(addr.buf, base, lanes * size)?.chunks_exact(size);
            elements.enumerate().for_each(|(l, element)| self.set(dst, l, mem.decode(element)));
        } else {
            for l in 0..lanes {
                let mut bits = 0;
                if self.is_on(mask, l) {
                    let at = base.wrapping_add(addr.lane_stride.wrapping_mul(l as i64));
                    bits = mem.decode(memory.read(addr.buf, at, size)?);
                }
                self.set(dst, l, bits);
            }
        }
        Ok(())
    }

    fn store(
        &self,
        src: Value,
        mem: Mem,
        addr: &Addr,
        mask: Option<Value>,
        memory: &mut TileMemory<'_, '_, '_>,
    ) -> Result<()> {
        let (size, base) = (mem.bytes(), self.address(addr));
        // Into one element goes lane 0.
        let lanes = if addr.lane_stride == 0 { 1 } else { self.kernel.lanes };
        if mask.is_none() && addr.lane_stride == size as i64 {
            let elements = memory.write(addr.buf, base, lanes * size)?.chunks_exact_mut(size);
            elements.enumerate().for_each(|(l, element)| mem.encode(self.get(src, l), element));
            return Ok(());
        }
        for l in (0..lanes).filter(|&l| self.is_on(mask, l)) {
            let at = base.wrapping_add(addr.lane_stride.wrapping_mul(l as i64));
            mem.encode(self.get(src, l), memory.write(addr.buf, at, size)?);
        }
        Ok(())
    }
}

/// Lane `i` with lane `i + n/2`, and so on.
fn reduce<W: Word>(bank: &mut Bank<W>, lanes: usize, op: BinOp, float: bool, dst: usize, a: usize) {
    bank.map1(dst, a, |x| x);
    let mut half = lanes / 2;
    let mut pair: Bank<W> = Bank::new(2, 1, bank.flushes);
    while half > 0 {
        for l in 0..half {
            pair.set(0, 0, bank.get(dst, l));
            pair.set(1, 0, bank.get(dst, l + half));
            pair.bin(op, float, 0, [0, 1]);
            bank.set(dst, l, pair.get(0, 0));
        }
        half /= 2;
    }
    bank.fill(dst, bank.get(dst, 0));
}

/// Towards zero; NaN and what is out of range gives the least integer.
fn trunc32(x: f64) -> u32 {
    let fits = x > -2_147_483_649.0 && x < 2_147_483_648.0;
    if fits { x as i32 as u32 } else { i32::MIN as u32 }
}

/// Towards zero; NaN and what is out of range gives the least integer.
fn trunc64(x: f64) -> u64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    if fits { x as i64 as u64 } else { i64::MIN as u64 }
}
