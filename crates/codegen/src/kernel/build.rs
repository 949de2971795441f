//! The builder of kernels: a method for each instruction, which gives the value that it defines.
//!
//! It folds constants, makes equal values one, and places each in the outermost block that has its
//! operands, so that what writes kernels need not care what a loop leaves unchanged.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use super::columns::join_stores;
use super::weave::{Class, Need, Registers, weave};
use super::{
    Addr, BinOp, Block, Buf, Carried, Cmp, Conv, FmaOp, Fold, IndexOp, Inst, Kernel, Lane, MaskOp,
    Mem, Param, Ty, UnOp, Value,
};

/// What a value without side effects is made of; equal keys are one value.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Begin,
    End,
    IndexConst(i64),
    Index(IndexOp, Value, Value),
    IndexLoad(Mem, Box<Addr>),
    Extract(Value),
    Const(Lane, u64),
    Splat(Lane, Value),
    Numbers(Lane, Box<[i64]>),
    Lookup(Lane, Box<[u32; 16]>, Value),
    Un(UnOp, Value),
    Bin(BinOp, Value, Value),
    Fma(FmaOp, Value, Value, Value),
    Compare(Cmp, Value, Value),
    Select(Value, Value, Value),
    Mask(MaskOp, Value, Value),
    MaskAny(Value),
    MaskConst(bool),
    MaskBelow(Value, Value),
    Convert(Conv, Lane, Value),
    Load(Mem, Box<Addr>, Option<Value>),
    Gather(Mem, Box<(Addr, i64, Option<u32>)>, Value, Option<Value>),
    Reduce(Fold, Value),
    ShiftUp(Value, Value, usize),
}

/// `of` shifted by the constant `by`.
#[derive(Clone, Copy)]
struct Shift {
    op: BinOp,
    of: Value,
    by: Value,
}

/// A block that is being written.
#[derive(Default)]
struct Open {
    block: Block,
    /// The values without side effects that it defines.
    known: FxHashMap<Key, Value>,
}

/// Writes a kernel instruction by instruction.
///
/// A value without side effects is placed in the outermost block that has its operands, and made
/// only once there. Loads count as such while nothing in the kernel writes their buffer.
pub struct Builder {
    kernel: Kernel,
    /// The depth of the block that defines each value; 0 is the body.
    depth: Vec<usize>,
    /// The body and the blocks in it that are being written, each inside of the one before.
    open: Vec<Open>,
    /// The bits in the lanes of each value that is a constant vector.
    constants: FxHashMap<Value, u64>,
    /// The mask of each value that is 1 where a mask is set, else 0.
    choices: FxHashMap<Value, Value>,
    /// Each value that is another shifted by a constant.
    shifts: FxHashMap<Value, Shift>,
    /// Those of them of which a rotation was made, which are most likely used for nothing else.
    rotated: FxHashSet<Value>,
    /// The number that each constant index is.
    ints: FxHashMap<Value, i64>,
    /// The lanes of each constant mask, the first as the lowest bit.
    masks: FxHashMap<Value, u64>,
    vector_bytes: usize,
}

impl Builder {
    /// An empty kernel over vectors of `lanes` lanes, for a processor whose vectors have as many of 32 bits.
    pub fn new(lanes: usize) -> Self {
        Builder::of(lanes, 4 * lanes)
    }

    /// An empty kernel over vectors of `lanes` lanes, for a processor with vectors of `vector_bytes` bytes.
    pub fn of(lanes: usize, vector_bytes: usize) -> Self {
        let kernel = Kernel {
            lanes,
            params: Vec::new(),
            scratch_bytes: 0,
            range: 1,
            grain: 1,
            shared: Vec::new(),
            unit_bytes: None,
            types: Vec::new(),
            body: Block::default(),
        };
        Builder {
            kernel,
            depth: Vec::new(),
            open: vec![Open::default()],
            constants: FxHashMap::default(),
            choices: FxHashMap::default(),
            shifts: FxHashMap::default(),
            rotated: FxHashSet::default(),
            ints: FxHashMap::default(),
            masks: FxHashMap::default(),
            vector_bytes,
        }
    }

    /// Whether a vector of the processor holds a table ([`Builder::lookup`]), so that a number of it takes
    /// one permutation. Where it does not, recipes go without tables, and without [`BinOp::Scale`]:
    /// processors with such short vectors have no instruction for that either.
    pub(crate) fn holds_tables(&self) -> bool {
        self.vector_bytes >= 64
    }

    /// Takes over the parameters, the range and the scratch of another kernel.
    pub(crate) fn take_interface(&mut self, of: &Kernel) {
        let Kernel { params, scratch_bytes, range, grain, shared, unit_bytes, .. } = of;
        self.kernel.params.clone_from(params);
        self.kernel.scratch_bytes = *scratch_bytes;
        (self.kernel.range, self.kernel.grain) = (*range, *grain);
        self.kernel.shared.clone_from(shared);
        self.kernel.unit_bytes = *unit_bytes;
    }

    /// Lanes of every vector.
    pub fn lanes(&self) -> usize {
        self.kernel.lanes
    }

    /// Sets the range, `0..range`, of which each call runs a piece; pieces begin at multiples of `grain`.
    pub fn set_range(&mut self, range: i64, grain: i64) {
        self.kernel.range = range;
        self.kernel.grain = grain;
    }

    /// Adds a parameter: a buffer of `bytes` bytes, and whether the kernel reads and writes it.
    pub fn param(&mut self, bytes: usize, read: bool, write: bool) -> Buf {
        self.kernel.params.push(Param { bytes, read, write, stream: false });
        Buf::Param(self.kernel.params.len() as u32 - 1)
    }

    /// Reserves scratch; gives its offset, a multiple of 64.
    pub fn scratch(&mut self, bytes: usize) -> i64 {
        let offset = self.kernel.scratch_bytes;
        self.kernel.scratch_bytes = offset + bytes.next_multiple_of(64);
        offset as i64
    }

    /// The finished kernel.
    ///
    /// # Panics
    /// If a loop is still open.
    pub fn finish(mut self) -> Kernel {
        assert_eq!(self.open.len(), 1, "a loop is open");
        self.kernel.body = self.close();
        self.kernel
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> Ty {
        self.kernel.ty(value)
    }

    /// The lane type of a vector.
    ///
    /// # Panics
    /// If it is none.
    pub fn lane(&self, value: Value) -> Lane {
        match self.ty(value) {
            Ty::Vector(lane) => lane,
            other => panic!("{value:?} is a {other:?}, not a vector"),
        }
    }

    /// A new value, defined in the block at `depth`.
    fn fresh(&mut self, ty: Ty, depth: usize) -> Value {
        self.kernel.types.push(ty);
        self.depth.push(depth);
        Value(self.kernel.types.len() as u32 - 1)
    }

    /// A value without side effects, in the outermost block that has `operands`.
    fn pure(
        &mut self,
        ty: Ty,
        operands: &[Value],
        key: Key,
        make: impl FnOnce(Value) -> Inst,
    ) -> Value {
        let level = operands.iter().map(|v| self.depth[v.0 as usize]).max().unwrap_or(0);
        self.placed(level, ty, key, make)
    }

    /// A value without side effects in the block at depth `level`: the one that it has for `key`,
    /// or what `make` makes.
    fn placed(
        &mut self,
        level: usize,
        ty: Ty,
        key: Key,
        make: impl FnOnce(Value) -> Inst,
    ) -> Value {
        let Open { block, known } = &mut self.open[level];
        match known.entry(key) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.kernel.types.push(ty);
                self.depth.push(level);
                let dst = Value(self.kernel.types.len() as u32 - 1);
                block.insts.push(make(dst));
                *new.insert(dst)
            }
        }
    }

    /// The depth of the innermost block.
    fn here(&self) -> usize {
        self.open.len() - 1
    }

    /// Adds an instruction to the innermost block.
    fn push(&mut self, inst: Inst) {
        let here = self.here();
        self.open[here].block.insts.push(inst);
    }

    /// Where the innermost block ends so far.
    pub(crate) fn position(&self) -> usize {
        self.open[self.here()].block.insts.len()
    }

    /// Weaves runs of instructions at the end of the innermost block into each other; see [`weave`]. Each
    /// begins at a [`Builder::position`] and ends where the next one begins.
    pub(crate) fn weave(&mut self, begins: &[usize]) {
        let (here, constants, rotated) = (self.here(), &self.constants, &self.rotated);
        let registers = Registers::of(self.vector_bytes);
        let need = |value: Value| {
            let class = match self.kernel.types[value.0 as usize] {
                Ty::Index => return Need::None,
                Ty::Vector(_) => Class::Vector,
                Ty::Mask => registers.class_of_masks(),
            };
            match self.depth[value.0 as usize] {
                _ if constants.contains_key(&value) => Need::Constant,
                _ if rotated.contains(&value) => Need::None,
                depth if depth == here => Need::Iteration(class),
                _ => Need::Loop(class),
            }
        };
        weave(&mut self.open[here].block.insts, begins, need, registers);
    }

    /// The start of the range of a call.
    pub fn begin(&mut self) -> Value {
        self.pure(Ty::Index, &[], Key::Begin, |dst| Inst::Begin { dst })
    }

    /// The end of the range of a call.
    pub fn end(&mut self) -> Value {
        self.pure(Ty::Index, &[], Key::End, |dst| Inst::End { dst })
    }

    /// A constant as an index.
    pub fn index(&mut self, value: i64) -> Value {
        let key = Key::IndexConst(value);
        let dst = self.pure(Ty::Index, &[], key, |dst| Inst::IndexConst { dst, value });
        self.ints.insert(dst, value);
        dst
    }

    /// The number that an index is, if it is constant.
    pub(crate) fn constant_index(&self, index: Value) -> Option<i64> {
        self.ints.get(&index).copied()
    }

    /// An operation on indices.
    pub fn index_op(&mut self, op: IndexOp, a: Value, b: Value) -> Value {
        if let (Some(&a), Some(&b)) = (self.ints.get(&a), self.ints.get(&b)) {
            return self.index(op.apply(a, b));
        }
        self.pure(Ty::Index, &[a, b], Key::Index(op, a, b), |dst| Inst::Index { dst, op, a, b })
    }

    /// An integer element as an index.
    pub fn index_load(&mut self, mem: Mem, addr: Addr) -> Value {
        let addr = self.settled(addr);
        match self.load_level(&addr, &[]) {
            Some(level) => {
                let key = Key::IndexLoad(mem, Box::new(addr.clone()));
                self.placed(level, Ty::Index, key, |dst| Inst::IndexLoad { dst, mem, addr })
            }
            None => {
                let dst = self.fresh(Ty::Index, self.here());
                self.push(Inst::IndexLoad { dst, mem, addr });
                dst
            }
        }
    }

    /// Lane 0 of an integer vector as an index.
    pub fn extract(&mut self, src: Value) -> Value {
        self.pure(Ty::Index, &[src], Key::Extract(src), |dst| Inst::Extract { dst, src })
    }

    /// The same bits in every lane.
    pub fn bits(&mut self, lane: Lane, bits: u64) -> Value {
        let bits = if lane.bytes() == 4 { bits & 0xffff_ffff } else { bits };
        let key = Key::Const(lane, bits);
        let value = self.pure(Ty::Vector(lane), &[], key, |dst| Inst::Const { dst, bits });
        self.constants.insert(value, bits);
        value
    }

    /// The bits of the lanes of what [`Builder::bits`] made.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.constants.get(&value).copied()
    }

    /// A number in every lane, rounded to the lane type if that is a float type.
    pub fn float(&mut self, lane: Lane, value: f64) -> Value {
        let bits = match lane {
            Lane::F32 => u64::from((value as f32).to_bits()),
            Lane::F64 => value.to_bits(),
            Lane::I32 | Lane::I64 => value as i64 as u64,
        };
        self.bits(lane, bits)
    }

    /// An integer in every lane, of an integer type.
    pub fn int(&mut self, lane: Lane, value: i64) -> Value {
        self.bits(lane, value as u64)
    }

    /// An index in every lane, as an integer.
    pub fn splat(&mut self, lane: Lane, src: Value) -> Value {
        self.pure(Ty::Vector(lane), &[src], Key::Splat(lane, src), |dst| Inst::Splat { dst, src })
    }

    /// 0, 1, 2, … in the lanes.
    pub fn lane_ids(&mut self, lane: Lane) -> Value {
        let ids: Vec<i64> = (0..self.lanes() as i64).collect();
        self.numbers(lane, &ids)
    }

    /// These numbers in the lanes.
    pub fn numbers(&mut self, lane: Lane, numbers: &[i64]) -> Value {
        let numbers: Box<[i64]> = numbers.into();
        let key = Key::Numbers(lane, numbers.clone());
        self.pure(Ty::Vector(lane), &[], key, |dst| Inst::Numbers { dst, numbers })
    }

    /// For each lane, number `8 + index` of a table of bits; see [`Inst::Lookup`].
    pub fn lookup(&mut self, lane: Lane, table: [u32; 16], index: Value) -> Value {
        let table = Box::new(table);
        let key = Key::Lookup(lane, table.clone(), index);
        let make = |dst| Inst::Lookup { dst, table, index };
        self.pure(Ty::Vector(lane), &[index], key, make)
    }

    /// An operation of one vector.
    pub fn un(&mut self, op: UnOp, a: Value) -> Value {
        self.pure(self.ty(a), &[a], Key::Un(op, a), |dst| Inst::Un { dst, op, a })
    }

    /// An operation of two vectors. A number's bits that constants shift to both sides, joined, are a rotation
    /// ([`BinOp::RotL`]): one instruction for three.
    pub fn bin(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        if matches!(op, BinOp::Or | BinOp::Xor | BinOp::Add)
            && let Some((of, by)) = self.rotation(a, b)
        {
            return self.bin(BinOp::RotL, of, by);
        }
        let value =
            self.pure(self.ty(a), &[a, b], Key::Bin(op, a, b), |dst| Inst::Bin { dst, op, a, b });
        if matches!(op, BinOp::Shl | BinOp::ShrL) && self.constants.contains_key(&b) {
            self.shifts.insert(value, Shift { op, of: a, by: b });
        }
        value
    }

    /// What two shifts by constants whose counts add up to the width rotate, and by how much.
    fn rotation(&mut self, a: Value, b: Value) -> Option<(Value, Value)> {
        let (left, right) = match (self.shifts.get(&a)?, self.shifts.get(&b)?) {
            (&left @ Shift { op: BinOp::Shl, .. }, &right @ Shift { op: BinOp::ShrL, .. })
            | (&right @ Shift { op: BinOp::ShrL, .. }, &left @ Shift { op: BinOp::Shl, .. }) => {
                (left, right)
            }
            _ => return None,
        };
        let width = 8 * self.lane(a).bytes() as u64;
        let [to_left, to_right] = [left, right].map(|shift| self.constants[&shift.by]);
        let is_rotation =
            left.of == right.of && (1..width).contains(&to_left) && to_right == width - to_left;
        if !is_rotation {
            return None;
        }
        self.rotated.extend([a, b]);
        Some((left.of, left.by))
    }

    /// `a + b`
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Add, a, b)
    }

    /// `a - b`
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Sub, a, b)
    }

    /// `a * b`
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.bin(BinOp::Mul, a, b)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.fused(FmaOp::Add, a, b, c)
    }

    /// A product of `a` and `b` and a sum with `c`, rounded once.
    pub fn fused(&mut self, op: FmaOp, a: Value, b: Value, c: Value) -> Value {
        let make = |dst| Inst::Fma { dst, op, a, b, c };
        self.pure(self.ty(a), &[a, b, c], Key::Fma(op, a, b, c), make)
    }

    /// A comparison.
    pub fn compare(&mut self, op: Cmp, a: Value, b: Value) -> Value {
        if let (Some(&mask), Some(0)) = (self.choices.get(&a), self.constant(b)) {
            match op {
                Cmp::Ne => return mask,
                Cmp::Eq => return self.mask_not(mask),
                _ => {}
            }
        }
        self.pure(Ty::Mask, &[a, b], Key::Compare(op, a, b), |dst| Inst::Compare { dst, op, a, b })
    }

    /// For each lane, `t` where the mask is set, else `f`.
    pub fn select(&mut self, mask: Value, t: Value, f: Value) -> Value {
        match self.known_mask(mask) {
            _ if t == f => return t,
            Some(lanes) if lanes == self.all_lanes() => return t,
            Some(0) => return f,
            _ => {}
        }
        let make = |dst| Inst::Select { dst, mask, t, f };
        let value = self.pure(self.ty(t), &[mask, t, f], Key::Select(mask, t, f), make);
        let is_int = !matches!(self.ty(t), Ty::Vector(Lane::F32 | Lane::F64));
        if is_int && [t, f].map(|value| self.constant(value)) == [Some(1), Some(0)] {
            self.choices.insert(value, mask);
        }
        value
    }

    /// Whether a value is 0 or 1 in each lane, chosen by a mask.
    pub(crate) fn is_choice_of_bits(&self, value: Value) -> bool {
        self.choices.contains_key(&value)
    }

    /// An operation of two masks.
    pub fn mask_op(&mut self, op: MaskOp, a: Value, b: Value) -> Value {
        let all = self.all_lanes();
        let known = match (op, self.known_mask(a), self.known_mask(b)) {
            (MaskOp::And, Some(a), Some(b)) => Some(a & b),
            (MaskOp::Or, Some(a), Some(b)) => Some(a | b),
            (MaskOp::Xor, Some(a), Some(b)) => Some(a ^ b),
            (MaskOp::AndNot, Some(a), Some(b)) => Some(!a & b),
            (MaskOp::And, Some(0), _) | (MaskOp::And | MaskOp::AndNot, _, Some(0)) => Some(0),
            (MaskOp::Or, Some(lanes), _) | (MaskOp::Or, _, Some(lanes)) if lanes == all => {
                Some(all)
            }
            (MaskOp::AndNot, Some(lanes), _) if lanes == all => Some(0),
            (MaskOp::And, Some(lanes), _) if lanes == all => return b,
            (MaskOp::And, _, Some(lanes)) if lanes == all => return a,
            (MaskOp::Or | MaskOp::Xor | MaskOp::AndNot, Some(0), _) => return b,
            (MaskOp::Or | MaskOp::Xor, _, Some(0)) => return a,
            _ => None,
        };
        let make = |dst| Inst::Mask { dst, op, a, b };
        self.mask(known, &[a, b], Key::Mask(op, a, b), make)
    }

    /// The lanes of a mask of which they are known.
    fn known_mask(&self, mask: Value) -> Option<u64> {
        self.masks.get(&mask).copied()
    }

    /// All lanes.
    fn all_lanes(&self) -> u64 {
        u64::MAX >> (64 - self.lanes())
    }

    /// A mask, of which it may be known which lanes it has.
    fn mask(
        &mut self,
        known: Option<u64>,
        operands: &[Value],
        key: Key,
        make: impl FnOnce(Value) -> Inst,
    ) -> Value {
        match known {
            Some(0) => self.mask_const(false),
            Some(lanes) if lanes == self.all_lanes() => self.mask_const(true),
            _ => {
                let mask = self.pure(Ty::Mask, operands, key, make);
                self.masks.extend(known.map(|lanes| (mask, lanes)));
                mask
            }
        }
    }

    /// A mask of an access: none where it has all lanes.
    fn mask_of_access(&self, mask: Option<Value>) -> Option<Value> {
        mask.filter(|&mask| self.known_mask(mask) != Some(self.all_lanes()))
    }

    /// Whether an access with this mask is of no lane.
    fn is_of_none(&self, mask: Option<Value>) -> bool {
        mask.is_some_and(|mask| self.known_mask(mask) == Some(0))
    }

    /// All lanes if any lane of `a` is set, else none.
    pub fn mask_any(&mut self, a: Value) -> Value {
        self.pure(Ty::Mask, &[a], Key::MaskAny(a), |dst| Inst::MaskAny { dst, a })
    }

    /// A mask of all lanes, or none.
    pub fn mask_const(&mut self, set: bool) -> Value {
        let make = |dst| Inst::MaskConst { dst, set };
        let mask = self.pure(Ty::Mask, &[], Key::MaskConst(set), make);
        self.masks.insert(mask, if set { self.all_lanes() } else { 0 });
        mask
    }

    /// The other lanes.
    pub fn mask_not(&mut self, a: Value) -> Value {
        let all = self.mask_const(true);
        self.mask_op(MaskOp::Xor, a, all)
    }

    /// The lanes `l` with `index + l < end`.
    pub fn mask_below(&mut self, index: Value, end: Value) -> Value {
        let known = match (self.ints.get(&index), self.ints.get(&end)) {
            (Some(&index), Some(&end)) => {
                let count = end.saturating_sub(index).clamp(0, self.lanes() as i64) as u32;
                Some(!u64::MAX.unbounded_shl(count))
            }
            _ => None,
        };
        let make = |dst| Inst::MaskBelow { dst, index, end };
        self.mask(known, &[index, end], Key::MaskBelow(index, end), make)
    }

    /// A conversion to another lane type.
    pub fn convert(&mut self, op: Conv, to: Lane, a: Value) -> Value {
        if op == Conv::Bits && self.lane(a) == to {
            return a;
        }
        self.pure(Ty::Vector(to), &[a], Key::Convert(op, to, a), |dst| Inst::Convert { dst, op, a })
    }

    /// All lanes combined, in every lane.
    pub fn reduce(&mut self, op: Fold, a: Value) -> Value {
        self.pure(self.ty(a), &[a], Key::Reduce(op, a), |dst| Inst::Reduce { dst, op, a })
    }

    /// Lanes moved up; see [`Inst::ShiftUp`].
    pub fn shift_up(&mut self, a: Value, fill: Value, by: usize) -> Value {
        self.pure(self.ty(a), &[a, fill], Key::ShiftUp(a, fill, by), |dst| Inst::ShiftUp {
            dst,
            a,
            fill,
            by,
        })
    }

    /// The depth of the outermost block that has what a load needs; `None` if the kernel writes its
    /// buffer, so that it has to stand where it is.
    fn load_level(&self, addr: &Addr, others: &[Value]) -> Option<usize> {
        let Buf::Param(param) = addr.buf else { return None };
        if self.kernel.params[param as usize].write {
            return None;
        }
        let values = addr.terms.iter().map(|(value, _)| value).chain(others);
        Some(values.map(|v| self.depth[v.0 as usize]).max().unwrap_or(0))
    }

    /// An address whose constant terms are part of its constant, so that those of neighbours differ in nothing else.
    fn settled(&self, mut addr: Addr) -> Addr {
        let Addr { offset, terms, .. } = &mut addr;
        terms.retain(|(value, bytes)| {
            let moved = self.ints.get(value).and_then(|int| int.checked_mul(*bytes));
            match moved.and_then(|moved| offset.checked_add(moved)) {
                Some(settled) => {
                    *offset = settled;
                    false
                }
                None => true,
            }
        });
        addr
    }

    /// Reads a vector.
    pub fn load(&mut self, mem: Mem, addr: Addr, mask: Option<Value>) -> Value {
        if self.is_of_none(mask) {
            return self.bits(mem.lane(), 0);
        }
        let (addr, mask) = (self.settled(addr), self.mask_of_access(mask));
        let ty = Ty::Vector(mem.lane());
        match self.load_level(&addr, mask.as_slice()) {
            Some(level) => {
                let key = Key::Load(mem, Box::new(addr.clone()), mask);
                self.placed(level, ty, key, |dst| Inst::Load { dst, mem, addr, mask })
            }
            None => {
                let dst = self.fresh(ty, self.here());
                self.push(Inst::Load { dst, mem, addr, mask });
                dst
            }
        }
    }

    /// Reads each lane at its own index; see [`Inst::Gather`].
    pub fn gather(
        &mut self,
        mem: Mem,
        addr: Addr,
        index: Value,
        scale: i64,
        mask: Option<Value>,
    ) -> Value {
        self.gather_up_to(mem, addr, index, (scale, None), mask)
    }

    /// As [`Builder::gather`], by indices whose greatest may be known; see [`Inst::Gather`].
    pub fn gather_up_to(
        &mut self,
        mem: Mem,
        addr: Addr,
        index: Value,
        (scale, most): (i64, Option<u32>),
        mask: Option<Value>,
    ) -> Value {
        if self.is_of_none(mask) {
            return self.bits(mem.lane(), 0);
        }
        let (addr, mask) = (self.settled(addr), self.mask_of_access(mask));
        let ty = Ty::Vector(mem.lane());
        let others: Vec<Value> = std::iter::once(index).chain(mask).collect();
        match self.load_level(&addr, &others) {
            Some(level) => {
                let key = Key::Gather(mem, Box::new((addr.clone(), scale, most)), index, mask);
                self.placed(level, ty, key, |dst| Inst::Gather {
                    dst,
                    mem,
                    addr,
                    index,
                    scale,
                    most,
                    mask,
                })
            }
            None => {
                let dst = self.fresh(ty, self.here());
                self.push(Inst::Gather { dst, mem, addr, index, scale, most, mask });
                dst
            }
        }
    }

    /// Writes a vector.
    pub fn store(&mut self, src: Value, mem: Mem, addr: Addr, mask: Option<Value>) {
        if self.is_of_none(mask) {
            return;
        }
        let (addr, mask) = (self.settled(addr), self.mask_of_access(mask));
        self.push(Inst::Store { src, mem, addr, mask });
    }

    /// A loop over `lo, lo + step, …` below `hi`. `body` gets the loop variable and the carried
    /// values and gives their next values; the values after the loop are returned. Where the bounds are
    /// constants and there is one iteration, there is no loop; what is made in it can be of use later.
    pub fn for_loop(
        &mut self,
        lo: Value,
        hi: Value,
        step: i64,
        init: &[Value],
        body: impl FnOnce(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        if let (Some(&first), Some(&end)) = (self.ints.get(&lo), self.ints.get(&hi)) {
            if first >= end {
                return init.to_vec();
            }
            if step >= end - first {
                return body(self, lo, init);
            }
        }
        self.open.push(Open::default());
        let here = self.here();
        let var = self.fresh(Ty::Index, here);
        let params: Vec<Value> = init.iter().map(|&v| self.fresh(self.ty(v), here)).collect();
        let next = body(self, var, &params);
        let block = self.close();
        let carried = self.carried(init, &params, &next);
        let results = carried.iter().map(|c| c.result).collect();
        self.push(Inst::Loop { var, lo, hi, step, carried, body: block });
        results
    }

    /// A loop that runs as long as lane 0 of the mask that `cond` gives is set.
    pub fn while_loop(
        &mut self,
        init: &[Value],
        cond: impl FnOnce(&mut Self, &[Value]) -> Value,
        body: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        self.open.push(Open::default());
        let here = self.here();
        let params: Vec<Value> = init.iter().map(|&v| self.fresh(self.ty(v), here)).collect();
        // What the condition computes stays valid in the body of the same iteration.
        let go = cond(self, &params);
        let cond_block = std::mem::take(&mut self.open[here].block);
        let next = body(self, &params);
        let block = self.close();
        let carried = self.carried(init, &params, &next);
        let results = carried.iter().map(|c| c.result).collect();
        self.push(Inst::While { cond: cond_block, go, carried, body: block });
        results
    }

    /// Closes the innermost block.
    fn close(&mut self) -> Block {
        let mut block = self.open.pop().expect("a block is open").block;
        join_stores(&mut block.insts, self.kernel.lanes);
        block
    }

    /// What a loop carries: initial values, parameters of its body, next values, and new values for
    /// the results.
    fn carried(&mut self, init: &[Value], params: &[Value], next: &[Value]) -> Vec<Carried> {
        assert_eq!(init.len(), next.len(), "a loop's body gives every carried value");
        let here = self.here();
        let of = |((&init, &param), &next)| (init, param, next);
        let triples: Vec<_> = init.iter().zip(params).zip(next).map(of).collect();
        let carry = |(init, param, next)| Carried {
            init,
            param,
            next,
            result: self.fresh(self.ty(init), here),
        };
        triples.into_iter().map(carry).collect()
    }
}
