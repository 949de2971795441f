//! Selection: the machine instructions of a kernel.
//!
//! Blocks are written in order. What does not depend on a loop goes before it, at the end of the
//! block that has what it depends on: every open block is a list of its own, appended to the one
//! around it when it closes.
//!
//! A value has one register. The registers that a loop carries are written at its end, so names of
//! one register must not outlive each other; `carry` sees to that.

mod address;
mod avx2;
mod carry;
mod collect;
mod columns;
mod convert;
mod first;
mod mask;
mod memory;
mod multiple;
mod permuted;
mod strided;
mod table;
mod vector;

use helio_ir::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Isa;
use super::asm::{Cond, Label, Len};
use super::mir::{Alu, Fixed, Inst, Operand, Reg, RegClass, RegInfo, Src, VectorInst, VirtualCode};
use super::ops::{self, Op};
use crate::kernel::{self, BinOp, Block, Carried, IndexOp, Kernel, Lane, Ty, UnOp, Value};

/// The instructions of a kernel, before registers are given out; `is_checked` if checks of accesses will be
/// added.
pub(super) fn select(kernel: &Kernel, isa: Isa, is_checked: bool) -> Result<VirtualCode> {
    let wide = kernel.types.iter().any(|ty| matches!(ty, Ty::Vector(lane) if lane.bytes() == 8));
    let most = isa.lanes(wide);
    if kernel.lanes > most || kernel.lanes < 4 {
        let found = kernel.lanes;
        return Err(Error::unimplemented(format!("{found} lanes where there are {most}")));
    }
    let values = kernel.types.len();
    let mut select = Select {
        kernel,
        isa,
        is_checked,
        wide,
        regs: Vec::with_capacity(2 * values),
        tables: Vec::new(),
        labels: 0,
        stack_bytes: 0,
        of: vec![Reg::NONE; values],
        ints: vec![None; values],
        numbers: FxHashMap::default(),
        depth: vec![0; values],
        target: vec![Reg::NONE; values],
        scopes: vec![Scope::default()],
        constants: FxHashMap::default(),
        any_bits: FxHashMap::default(),
        never_empty: FxHashSet::default(),
        short_masks: FxHashMap::default(),
        all_or_none: FxHashMap::default(),
        params: vec![Reg::NONE; kernel.params.len()],
        arguments: [Reg::NONE; 4],
        read_ahead: FxHashMap::default(),
        multiples: multiple::multiples(kernel),
        streams: false,
    };
    select.arguments();
    select.block(&kernel.body)?;
    let insts = select.scopes.pop().expect("the body").insts;
    Ok(VirtualCode {
        lanes: kernel.lanes,
        insts,
        regs: select.regs,
        tables: select.tables,
        labels: select.labels as usize,
        stack_bytes: select.stack_bytes,
        streams: select.streams,
        bounds: None,
    })
}

/// A block that is being written.
#[derive(Default)]
struct Scope {
    insts: Vec<Inst>,
    /// Parts of addresses: a base, a value and how much a unit of it moves.
    sums: FxHashMap<(Reg, Value, i64), Reg>,
    /// Whether it has loops in it.
    has_loops: bool,
    /// The variable and the bound of the loop that it is the body of.
    loop_of: Option<(Value, Value)>,
}

/// Arguments of the call.
#[derive(Clone, Copy)]
enum EntryArgument {
    Params,
    Begin,
    Scratch,
    End,
}

struct Select<'k> {
    kernel: &'k Kernel,
    isa: Isa,
    /// Whether accesses are going to be checked.
    is_checked: bool,
    /// Whether any vector has 64-bit lanes.
    wide: bool,
    regs: Vec<RegInfo>,
    tables: Vec<Vec<u8>>,
    labels: u32,
    stack_bytes: usize,
    /// The register of each value, unless it is a constant index.
    of: Vec<Reg>,
    /// Constant indices.
    ints: Vec<Option<i64>>,
    /// Numbers in lanes that are constants.
    numbers: FxHashMap<Value, Box<[i64]>>,
    /// The number of open blocks around the one that defines each value.
    depth: Vec<usize>,
    /// The register that a value must be made in, as a loop carries it.
    target: Vec<Reg>,
    scopes: Vec<Scope>,
    constants: FxHashMap<(u8, u64, Option<Len>), Reg>,
    /// Masks of all lanes or none that are also known as a general register.
    any_bits: FxHashMap<Value, Reg>,
    /// Masks with a lane set, whatever happens.
    never_empty: FxHashSet<Reg>,
    /// AVX2's masks of 64-bit lanes that are also known as vectors of 32-bit ones.
    short_masks: FxHashMap<Reg, Reg>,
    /// Masks that have either these lanes, the first as the lowest bit, or none.
    all_or_none: FxHashMap<Reg, u16>,
    /// Where buffers begin; as needed.
    params: Vec<Reg>,
    arguments: [Reg; 4],
    /// Values that were read with their neighbours, before their loads.
    read_ahead: FxHashMap<Value, Reg>,
    /// What each index is a multiple of.
    multiples: Vec<i64>,
    /// Whether anything does.
    streams: bool,
}

impl Select<'_> {
    // Registers.

    fn fresh(&mut self, about: RegInfo) -> Reg {
        self.regs.push(about);
        Reg(self.regs.len() as u32 - 1)
    }

    fn vector(&mut self, len: Len) -> Reg {
        self.fresh(RegInfo { class: RegClass::Vector, len, fixed: None, carried: false })
    }

    fn general(&mut self) -> Reg {
        self.fresh(RegInfo { class: RegClass::General, len: Len::X, fixed: None, carried: false })
    }

    /// A register for a mask: AVX2 has vectors for them.
    fn mask_reg(&mut self) -> Reg {
        match self.isa {
            Isa::Avx512 => self.fresh(RegInfo {
                class: RegClass::Mask,
                len: Len::X,
                fixed: None,
                carried: false,
            }),
            Isa::Avx2 => self.vector(self.mask_len()),
        }
    }

    fn reg_of_type(&mut self, ty: Ty) -> Reg {
        match ty {
            Ty::Vector(lane) => self.vector(self.len(lane)),
            Ty::Mask => self.mask_reg(),
            Ty::Index => self.general(),
        }
    }

    /// The register to make a value in. Only the last instruction that makes it may write it, as it
    /// may hold an operand until then.
    fn define(&mut self, value: Value) -> Reg {
        let at = value.0 as usize;
        let reg = if self.target[at].is_some() {
            self.target[at]
        } else {
            self.reg_of_type(self.kernel.ty(value))
        };
        self.bind(value, reg);
        reg
    }

    /// Says that a value, of the block that is being written, is in a register.
    fn bind(&mut self, value: Value, reg: Reg) {
        self.of[value.0 as usize] = reg;
        self.depth[value.0 as usize] = self.scopes.len() - 1;
    }

    /// The register that has a value.
    fn reg(&mut self, value: Value) -> Reg {
        match self.ints[value.0 as usize] {
            Some(int) => self.int(int),
            None => self.of[value.0 as usize],
        }
    }

    /// The length of a vector of the kernel's lanes.
    fn len(&self, lane: Lane) -> Len {
        self.len_of(self.kernel.lanes * lane.bytes())
    }

    /// The shortest vector of at least `bytes` bytes.
    fn len_of(&self, bytes: usize) -> Len {
        match bytes {
            ..=16 => Len::X,
            17..=32 => Len::Y,
            _ => Len::Z,
        }
    }

    fn lane(&self, value: Value) -> Lane {
        match self.kernel.ty(value) {
            Ty::Vector(lane) => lane,
            other => unreachable!("a checked kernel has a {other:?} for a vector"),
        }
    }

    // Instructions.

    fn push(&mut self, inst: Inst) {
        self.scopes.last_mut().expect("a block is open").insts.push(inst);
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// `dst = op(a, b)`
    fn op2(&mut self, op: Op, len: Len, dst: Reg, a: Reg, b: impl Into<Src>) {
        let b = b.into();
        self.push(Inst::Vector(VectorInst {
            op,
            len,
            dst,
            a,
            b,
            mask: Reg::NONE,
            zero: false,
            imm: None,
        }));
    }

    /// `dst = op(a, b)` with an immediate operand.
    fn op2_imm(&mut self, op: Op, len: Len, dst: Reg, a: Reg, b: impl Into<Src>, imm: u8) {
        let (b, imm) = (b.into(), Some(imm));
        self.push(Inst::Vector(VectorInst {
            op,
            len,
            dst,
            a,
            b,
            mask: Reg::NONE,
            zero: false,
            imm,
        }));
    }

    /// `dst = op(b)`
    fn op1(&mut self, op: Op, len: Len, dst: Reg, b: impl Into<Src>) {
        self.op2(op, len, dst, Reg::NONE, b);
    }

    // Constants: defined before everything else, in registers if there are enough.

    fn fixed(&mut self, class: RegClass, len: Len, fixed: Fixed) -> Reg {
        let key = match fixed {
            Fixed::Bits32(bits) => (0, bits.into(), Some(len)),
            Fixed::Bits64(bits) => (1, bits, Some(len)),
            Fixed::Table(n) => (2, n.into(), Some(len)),
            Fixed::Mask(lanes) => (3, lanes.into(), None),
            Fixed::Int(int) => (4, int as u64, None),
        };
        if let Some(&reg) = self.constants.get(&key) {
            return reg;
        }
        let dst = self.fresh(RegInfo { class, len, fixed: Some(fixed), carried: false });
        self.scopes[0].insts.push(Inst::Fixed { dst });
        self.constants.insert(key, dst);
        dst
    }

    /// The same bits in all lanes of a vector type.
    fn bits(&mut self, lane: Lane, bits: u64) -> Reg {
        let fixed =
            if lane.bytes() == 8 { Fixed::Bits64(bits) } else { Fixed::Bits32(bits as u32) };
        self.fixed(RegClass::Vector, self.len(lane), fixed)
    }

    /// A vector with these bytes, of the given length.
    fn table(&mut self, len: Len, bytes: Vec<u8>) -> Reg {
        let known = self.tables.iter().position(|table| *table == bytes);
        let n = known.unwrap_or_else(|| {
            self.tables.push(bytes);
            self.tables.len() - 1
        });
        self.fixed(RegClass::Vector, len, Fixed::Table(n as u32))
    }

    /// A vector of the kernel's lanes with these numbers.
    fn lanes_of(&mut self, lane: Lane, number: impl Fn(usize) -> i64) -> Reg {
        let mut bytes = Vec::with_capacity(64);
        for l in 0..self.kernel.lanes {
            bytes.extend_from_slice(&number(l).to_le_bytes()[..lane.bytes()]);
        }
        self.table(self.len(lane), bytes)
    }

    /// A number in a general register.
    fn int(&mut self, int: i64) -> Reg {
        self.fixed(RegClass::General, Len::X, Fixed::Int(int))
    }

    /// The constant that a value is.
    fn constant(&self, value: Value) -> Option<u64> {
        let reg = self.of[value.0 as usize];
        match reg.is_some().then(|| self.regs[reg.0 as usize].fixed)?? {
            Fixed::Bits32(bits) => Some(bits.into()),
            Fixed::Bits64(bits) => Some(bits),
            _ => None,
        }
    }

    // The call.

    fn arguments(&mut self) {
        // In the order that lets the first three stay where they come.
        for (argument, from) in [
            (EntryArgument::Params, 7),
            (EntryArgument::Begin, 6),
            (EntryArgument::Scratch, 1),
            (EntryArgument::End, 2),
        ] {
            let dst = self.general();
            self.arguments[argument as usize] = dst;
            self.push(Inst::Argument { dst, from });
        }
    }

    fn argument(&self, argument: EntryArgument) -> Reg {
        self.arguments[argument as usize]
    }

    // Blocks.

    fn inst(&mut self, inst: &kernel::Inst) -> Result<()> {
        use kernel::Inst as K;
        match inst {
            K::Begin { dst } => self.bind(*dst, self.argument(EntryArgument::Begin)),
            K::End { dst } => self.bind(*dst, self.argument(EntryArgument::End)),
            K::IndexConst { dst, value } => self.ints[dst.0 as usize] = Some(*value),
            K::Index { dst, op, a, b } => self.index(*dst, *op, *a, *b),
            K::IndexLoad { dst, mem, addr } => self.index_load(*dst, *mem, addr),
            K::Extract { dst, src } => self.extract(*dst, *src),
            K::Const { dst, bits } => {
                let reg = self.bits(self.lane(*dst), *bits);
                self.bind(*dst, reg);
            }
            K::Splat { dst, src } => self.splat(*dst, *src),
            K::Numbers { dst, numbers } => {
                let reg = self.lanes_of(self.lane(*dst), |l| numbers[l]);
                self.bind(*dst, reg);
                self.numbers.insert(*dst, numbers.clone());
            }
            K::Lookup { dst, table, index } => self.lookup(*dst, table, *index),
            K::Un {
                op: op @ (UnOp::Exponent | UnOp::Mantissa | UnOp::Inverse | UnOp::InverseRoot),
                ..
            } if self.isa == Isa::Avx2 => {
                return Err(Error::unimplemented(format!("{op:?} without an instruction for it")));
            }
            K::Bin { op: op @ BinOp::Within, .. } if self.isa == Isa::Avx2 => {
                return Err(Error::unimplemented(format!("{op:?} without an instruction for it")));
            }
            K::Un { dst, op, a } => self.unary(*dst, *op, *a),
            K::Bin { dst, op, a, b } => self.binary(*dst, *op, *a, *b),
            K::Fma { dst, op, a, b, c } => self.fma(*dst, *op, [*a, *b, *c]),
            K::Compare { dst, op, a, b } => self.compare(*dst, *op, *a, *b),
            K::Select { dst, mask, t, f } => self.choose(*dst, *mask, *t, *f),
            K::Mask { dst, op, a, b } => self.mask_op(*dst, *op, *a, *b),
            K::MaskAny { dst, a } => self.mask_any(*dst, *a),
            K::MaskConst { dst, set } => {
                let reg = self.mask_const(*set);
                self.bind(*dst, reg);
            }
            K::MaskBelow { dst, index, end } => self.mask_below(*dst, *index, *end),
            K::Convert { dst, op, a } => self.convert(*dst, *op, *a),
            K::Load { dst, mem, addr, mask } => self.load(*dst, *mem, addr, *mask),
            K::Store { src, mem, addr, mask } => self.store(*src, *mem, addr, *mask),
            K::Gather { dst, mem, addr, index, scale, most, mask } => {
                self.gather(*dst, *mem, addr, *index, (*scale, *most), *mask);
            }
            K::Reduce { dst, op: kernel::Fold::Bin(op), a } => self.reduce(*dst, *op, *a)?,
            K::ShiftUp { dst, a, fill, by } => self.shift_up(*dst, *a, *fill, *by),
            K::Loop { var, lo, hi, step, carried, body } => {
                self.for_loop(*var, *lo, *hi, *step, carried, body)?;
            }
            K::While { cond, go, carried, body } => self.while_loop(cond, *go, carried, body)?,
        }
        Ok(())
    }

    fn for_loop(
        &mut self,
        var: Value,
        lo: Value,
        hi: Value,
        step: i64,
        carried: &[Carried],
        body: &Block,
    ) -> Result<()> {
        let counter = self.general();
        self.regs[counter.0 as usize].carried = true;
        let regs = self.enter(carried, &[body], None);
        self.bind(var, counter);
        self.scopes.last_mut().expect("the body").loop_of = Some((var, hi));
        self.block(body)?;
        let (begin, end) = (self.label(), self.label());
        self.next(&regs, carried);
        let by = self.operand(step);
        self.push(Inst::Alu { op: Alu::Add, dst: counter, a: counter, b: by });
        let bound = self.index_operand(hi);
        self.push(Inst::Compare { cond: Cond::Less, a: counter, b: bound, to: begin });
        let body = self.scopes.pop().expect("the body");

        self.init(&regs, carried);
        let lo_reg = self.reg(lo);
        self.push(Inst::Mov { dst: counter, src: lo_reg });
        let runs = matches!(
            (self.ints[lo.0 as usize], self.ints[hi.0 as usize]),
            (Some(lo), Some(hi)) if lo < hi
        );
        if !runs {
            let to = end;
            self.push(Inst::Compare { cond: Cond::GreaterEqual, a: counter, b: bound, to });
        }
        self.append_loop(body, begin, end);
        self.results(&regs, carried);
        Ok(())
    }

    fn while_loop(
        &mut self,
        cond: &Block,
        go: Value,
        carried: &[Carried],
        body: &Block,
    ) -> Result<()> {
        let (begin, end) = (self.label(), self.label());
        let regs = self.enter(carried, &[cond, body], Some(go));
        self.block(cond)?;
        let bits = self.first_bit(go);
        self.push(Inst::UnlessBit { a: bits, bit: 0, to: end });
        self.block(body)?;
        self.next(&regs, carried);
        self.push(Inst::Jump { to: begin });
        let body = self.scopes.pop().expect("the body");

        self.init(&regs, carried);
        self.append_loop(body, begin, end);
        self.results(&regs, carried);
        Ok(())
    }

    fn append_loop(&mut self, body: Scope, begin: Label, end: Label) {
        let inner = !body.has_loops;
        let around = self.scopes.last_mut().expect("a loop is in a block");
        around.has_loops = true;
        around.insts.push(Inst::LoopBegin { at: begin, inner });
        around.insts.extend(body.insts);
        around.insts.push(Inst::LoopEnd);
        around.insts.push(Inst::Label { at: end });
    }

    // Indices.

    /// A number as a second operand.
    fn operand(&mut self, int: i64) -> Operand {
        match i32::try_from(int) {
            Ok(short) => Operand::Imm(short),
            Err(_) => Operand::Reg(self.int(int)),
        }
    }

    fn index_operand(&mut self, value: Value) -> Operand {
        match self.ints[value.0 as usize] {
            Some(int) => self.operand(int),
            None => Operand::Reg(self.of[value.0 as usize]),
        }
    }

    fn index(&mut self, dst: Value, op: IndexOp, mut a: Value, mut b: Value) {
        let known = |this: &Self, value: Value| this.ints[value.0 as usize];
        if let (Some(a), Some(b)) = (known(self, a), known(self, b)) {
            self.ints[dst.0 as usize] = Some(op.apply(a, b));
            return;
        }
        let commutes = !matches!(op, IndexOp::Sub | IndexOp::Div);
        if commutes && known(self, a).is_some() {
            (a, b) = (b, a);
        }
        let power = known(self, b).filter(|b| *b > 0 && b.count_ones() == 1);
        let (left, right) = (self.reg(a), self.index_operand(b));
        let to = self.define(dst);
        let op = match op {
            IndexOp::Add => Alu::Add,
            IndexOp::Sub => Alu::Sub,
            IndexOp::Mul => Alu::Mul,
            IndexOp::And => Alu::And,
            IndexOp::Min => Alu::Min,
            IndexOp::Max => Alu::Max,
            IndexOp::Div => Alu::Div,
        };
        match (op, power) {
            (Alu::Mul | Alu::Div, Some(power)) => {
                let by = power.trailing_zeros() as u8;
                self.push(Inst::ShiftScalar { left: op == Alu::Mul, dst: to, a: left, by });
            }
            _ => self.push(Inst::Alu { op, dst: to, a: left, b: right }),
        }
    }

    fn extract(&mut self, dst: Value, src: Value) {
        let from = self.reg(src);
        let to = self.define(dst);
        if self.lane(src).bytes() == 8 {
            let op = ops::TO_GENERAL_64;
            self.push(Inst::Out { op, len: Len::X, dst: to, src: from, imm: None });
        } else {
            let low = self.general();
            let op = ops::TO_GENERAL;
            self.push(Inst::Out { op, len: Len::X, dst: low, src: from, imm: None });
            self.push(Inst::SignExtend { dst: to, a: low });
        }
    }
}
