//! The values that instructions and blocks of a kernel read and define.

use super::{Addr, BinOp, Block, Inst, UnOp, Value};

impl Inst {
    /// Calls `f` with every value that the instruction reads, those of blocks within included.
    pub fn for_each_operand(&self, f: &mut dyn FnMut(Value)) {
        let address = |f: &mut dyn FnMut(Value), addr: &Addr| {
            addr.terms.iter().for_each(|&(value, _)| f(value));
        };
        match self {
            Inst::Begin { .. }
            | Inst::End { .. }
            | Inst::IndexConst { .. }
            | Inst::Const { .. }
            | Inst::Numbers { .. }
            | Inst::MaskConst { .. } => {}
            Inst::IndexLoad { addr, .. } => address(f, addr),
            Inst::Extract { src: a, .. }
            | Inst::Splat { src: a, .. }
            | Inst::Lookup { index: a, .. }
            | Inst::Un { a, .. }
            | Inst::Convert { a, .. }
            | Inst::MaskAny { a, .. }
            | Inst::Reduce { a, .. } => f(*a),
            Inst::Index { a, b, .. }
            | Inst::Bin { a, b, .. }
            | Inst::Compare { a, b, .. }
            | Inst::Mask { a, b, .. }
            | Inst::MaskBelow { index: a, end: b, .. }
            | Inst::ShiftUp { a, fill: b, .. } => [*a, *b].into_iter().for_each(f),
            Inst::Fma { a, b, c, .. } | Inst::Select { mask: a, t: b, f: c, .. } => {
                [*a, *b, *c].into_iter().for_each(f);
            }
            Inst::Load { addr, mask, .. } => {
                address(f, addr);
                mask.iter().for_each(|&mask| f(mask));
            }
            Inst::Store { src, addr, mask, .. } => {
                f(*src);
                address(f, addr);
                mask.iter().for_each(|&mask| f(mask));
            }
            Inst::Gather { addr, index, mask, .. } => {
                address(f, addr);
                f(*index);
                mask.iter().for_each(|&mask| f(mask));
            }
            Inst::Loop { lo, hi, carried, body, .. } => {
                f(*lo);
                f(*hi);
                carried.iter().for_each(|c| f(c.init));
                body.for_each_operand(f);
                carried.iter().for_each(|c| f(c.next));
            }
            Inst::While { cond, go, carried, body } => {
                carried.iter().for_each(|c| f(c.init));
                cond.for_each_operand(f);
                f(*go);
                body.for_each_operand(f);
                carried.iter().for_each(|c| f(c.next));
            }
        }
    }

    /// By what it shifts or rotates, where it does.
    pub fn shift_count(&self) -> Option<Value> {
        match self {
            Inst::Bin { op: BinOp::Shl | BinOp::ShrL | BinOp::ShrA | BinOp::RotL, b, .. } => {
                Some(*b)
            }
            _ => None,
        }
    }

    /// Whether the instruction reads a buffer; loops aside.
    pub fn reads_memory(&self) -> bool {
        matches!(self, Inst::Load { .. } | Inst::Gather { .. } | Inst::IndexLoad { .. })
    }

    /// The value that the instruction defines; loops define several or none.
    pub fn defines(&self) -> Option<Value> {
        match self {
            Inst::Begin { dst }
            | Inst::End { dst }
            | Inst::IndexConst { dst, .. }
            | Inst::Index { dst, .. }
            | Inst::IndexLoad { dst, .. }
            | Inst::Extract { dst, .. }
            | Inst::Const { dst, .. }
            | Inst::Splat { dst, .. }
            | Inst::Numbers { dst, .. }
            | Inst::Lookup { dst, .. }
            | Inst::Un { dst, .. }
            | Inst::Bin { dst, .. }
            | Inst::Fma { dst, .. }
            | Inst::Compare { dst, .. }
            | Inst::Select { dst, .. }
            | Inst::Mask { dst, .. }
            | Inst::MaskAny { dst, .. }
            | Inst::MaskConst { dst, .. }
            | Inst::MaskBelow { dst, .. }
            | Inst::Convert { dst, .. }
            | Inst::Load { dst, .. }
            | Inst::Gather { dst, .. }
            | Inst::Reduce { dst, .. }
            | Inst::ShiftUp { dst, .. } => Some(*dst),
            Inst::Store { .. } | Inst::Loop { .. } | Inst::While { .. } => None,
        }
    }
}

impl Block {
    /// Whether all lanes are always alike, whatever is in memory, and only one of them is stored; and there is
    /// nothing that processors with short vectors have no instruction for.
    pub fn is_of_numbers(&self) -> bool {
        let is_number = |addr: &Addr, mask: &Option<Value>| addr.lane_stride == 0 && mask.is_none();
        self.insts.iter().all(|inst| match inst {
            Inst::Load { addr, mask, .. } | Inst::Store { addr, mask, .. } => is_number(addr, mask),
            Inst::Gather { .. }
            | Inst::Numbers { .. }
            | Inst::MaskBelow { .. }
            | Inst::ShiftUp { .. }
            | Inst::Reduce { .. } => false,
            Inst::Loop { body, .. } => body.is_of_numbers(),
            Inst::While { cond, body, .. } => cond.is_of_numbers() && body.is_of_numbers(),
            _ => true,
        })
    }

    /// Whether it has what only recipes for vectors of 64 bytes have: lookups in tables, scaling,
    /// bounds of magnitudes, parts of floats, and estimates.
    pub fn has_tables(&self) -> bool {
        self.insts.iter().any(|inst| match inst {
            Inst::Lookup { .. }
            | Inst::Bin { op: BinOp::Scale | BinOp::Within, .. }
            | Inst::Un {
                op: UnOp::Exponent | UnOp::Mantissa | UnOp::Inverse | UnOp::InverseRoot,
                ..
            } => true,
            Inst::Loop { body, .. } => body.has_tables(),
            Inst::While { cond, body, .. } => cond.has_tables() || body.has_tables(),
            _ => false,
        })
    }

    /// Calls `f` with every value that the instructions read.
    pub fn for_each_operand(&self, f: &mut dyn FnMut(Value)) {
        self.insts.iter().for_each(|inst| inst.for_each_operand(f));
    }
}
