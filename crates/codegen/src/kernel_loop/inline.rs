//! A kernel written into another, its parameters and its scratch being elsewhere there.

use super::Region;
use super::slots::{Entered, Slots};
use crate::kernel::{Addr, Block, Buf, Builder, Carried, Inst, Kernel, Lane, Ty, Value};

/// Writes a kernel into another.
pub(super) struct Inline<'k> {
    kernel: &'k Kernel,
    /// Where its parameters are.
    params: Vec<Region>,
    /// Where its scratch is.
    scratch: Region,
    /// What its values are there.
    values: Vec<Option<Value>>,
    /// Numbers in scratch that become values.
    slots: Option<&'k mut Slots>,
}

impl<'k> Inline<'k> {
    pub(super) fn new(kernel: &'k Kernel, params: Vec<Region>, scratch: Region) -> Self {
        Inline { kernel, params, scratch, values: vec![None; kernel.types.len()], slots: None }
    }

    /// The same, with values in place of numbers in scratch.
    pub(super) fn with_slots(self, slots: &'k mut Slots) -> Self {
        Inline { slots: Some(slots), ..self }
    }

    /// Writes all of it, over its whole range.
    pub(super) fn run(mut self, b: &mut Builder) {
        let kernel = self.kernel;
        self.block(b, &kernel.body);
    }

    fn get(&self, value: Value) -> Value {
        self.values[value.0 as usize].expect("a checked kernel defines values before their use")
    }

    fn set(&mut self, value: Value, new: Value) {
        self.values[value.0 as usize] = Some(new);
    }

    fn lane(&self, value: Value) -> Lane {
        match self.kernel.ty(value) {
            Ty::Vector(lane) => lane,
            other => unreachable!("a checked kernel has a {other:?} for a vector"),
        }
    }

    fn addr(&self, addr: &Addr) -> Addr {
        let region = match addr.buf {
            Buf::Param(n) => self.params[n as usize],
            Buf::Scratch => self.scratch,
        };
        Addr {
            buf: region.buf,
            offset: region.offset + addr.offset,
            terms: addr.terms.iter().map(|&(value, bytes)| (self.get(value), bytes)).collect(),
            lane_stride: addr.lane_stride,
        }
    }

    fn block(&mut self, b: &mut Builder, block: &Block) {
        block.insts.iter().for_each(|inst| self.inst(b, inst));
    }

    fn inst(&mut self, b: &mut Builder, inst: &Inst) {
        if let (Some(slots), Some(dst)) = (&mut self.slots, inst.defines())
            && let Some(number) = slots.load(b, inst)
        {
            let is_index = matches!(inst, Inst::IndexLoad { .. });
            return self.set(dst, if is_index { b.extract(number) } else { number });
        }
        let new = match inst {
            Inst::Begin { .. } => b.index(0),
            Inst::End { .. } => b.index(self.kernel.range),
            Inst::IndexConst { value, .. } => b.index(*value),
            Inst::Index { op, a, b: other, .. } => b.index_op(*op, self.get(*a), self.get(*other)),
            Inst::IndexLoad { mem, addr, .. } => b.index_load(*mem, self.addr(addr)),
            Inst::Extract { src, .. } => b.extract(self.get(*src)),
            Inst::Const { dst, bits } => b.bits(self.lane(*dst), *bits),
            Inst::Splat { dst, src } => b.splat(self.lane(*dst), self.get(*src)),
            Inst::Numbers { dst, numbers } => b.numbers(self.lane(*dst), numbers),
            Inst::Lookup { dst, table, index } => {
                b.lookup(self.lane(*dst), **table, self.get(*index))
            }
            Inst::Un { op, a, .. } => b.un(*op, self.get(*a)),
            Inst::Bin { op, a, b: other, .. } => b.bin(*op, self.get(*a), self.get(*other)),
            Inst::Fma { op, a, b: by, c, .. } => {
                b.fused(*op, self.get(*a), self.get(*by), self.get(*c))
            }
            Inst::Compare { op, a, b: other, .. } => b.compare(*op, self.get(*a), self.get(*other)),
            Inst::Select { mask, t, f, .. } => {
                b.select(self.get(*mask), self.get(*t), self.get(*f))
            }
            Inst::Mask { op, a, b: other, .. } => b.mask_op(*op, self.get(*a), self.get(*other)),
            Inst::MaskAny { a, .. } => b.mask_any(self.get(*a)),
            Inst::MaskConst { set, .. } => b.mask_const(*set),
            Inst::MaskBelow { index, end, .. } => b.mask_below(self.get(*index), self.get(*end)),
            Inst::Convert { dst, op, a } => b.convert(*op, self.lane(*dst), self.get(*a)),
            Inst::Load { mem, addr, mask, .. } => {
                b.load(*mem, self.addr(addr), mask.map(|mask| self.get(mask)))
            }
            Inst::Gather { mem, addr, index, scale, most, mask, .. } => {
                let mask = mask.map(|mask| self.get(mask));
                b.gather_up_to(*mem, self.addr(addr), self.get(*index), (*scale, *most), mask)
            }
            Inst::Reduce { op, a, .. } => b.reduce(*op, self.get(*a)),
            Inst::ShiftUp { a, fill, by, .. } => b.shift_up(self.get(*a), self.get(*fill), *by),
            Inst::Store { src, mem, addr, mask } => {
                let mask = mask.map(|mask| self.get(mask));
                let new = self.get(*src);
                if let Some(slots) = &mut self.slots {
                    slots.store(b, inst, *src, new);
                }
                return b.store(new, *mem, self.addr(addr), mask);
            }
            Inst::Loop { var, lo, hi, step, carried, body } => {
                let (entered, init) = self.initial(b, carried);
                let (lo, hi) = (self.get(*lo), self.get(*hi));
                let results = b.for_loop(lo, hi, *step, &init, |b, new, params| {
                    self.set(*var, new);
                    self.enter(carried, &entered, params);
                    self.block(b, body);
                    self.next(b, carried, &entered)
                });
                return self.leave(carried, &entered, &results);
            }
            Inst::While { cond, go, carried, body } => {
                let (entered, init) = self.initial(b, carried);
                // Both closures write values, one after the other.
                let this = std::cell::RefCell::new(&mut *self);
                let results = b.while_loop(
                    &init,
                    |b, params| {
                        let this = &mut **this.borrow_mut();
                        this.enter(carried, &entered, params);
                        this.block(b, cond);
                        this.get(*go)
                    },
                    |b, _| {
                        let this = &mut **this.borrow_mut();
                        this.block(b, body);
                        this.next(b, carried, &entered)
                    },
                );
                return self.leave(carried, &entered, &results);
            }
        };
        if let Some(dst) = inst.defines() {
            self.set(dst, new);
        }
    }

    /// What a loop carries, before it: its own values, then numbers.
    fn initial(&mut self, b: &mut Builder, carried: &[Carried]) -> (Option<Entered>, Vec<Value>) {
        let mut init: Vec<Value> = carried.iter().map(|c| self.get(c.init)).collect();
        let entered = self.slots.as_mut().map(|slots| {
            let (entered, numbers) = slots.enter(b);
            init.extend(numbers);
            entered
        });
        (entered, init)
    }

    fn enter(&mut self, carried: &[Carried], entered: &Option<Entered>, params: &[Value]) {
        let (own, numbers) = params.split_at(carried.len());
        carried.iter().zip(own).for_each(|(c, &param)| self.set(c.param, param));
        if let (Some(slots), Some(entered)) = (&mut self.slots, entered) {
            slots.set(entered, numbers);
        }
    }

    fn next(
        &mut self,
        b: &mut Builder,
        carried: &[Carried],
        entered: &Option<Entered>,
    ) -> Vec<Value> {
        let mut next: Vec<Value> = carried.iter().map(|c| self.get(c.next)).collect();
        if let (Some(slots), Some(entered)) = (&mut self.slots, entered) {
            next.extend(slots.get(b, entered));
        }
        next
    }

    fn leave(&mut self, carried: &[Carried], entered: &Option<Entered>, results: &[Value]) {
        let (own, numbers) = results.split_at(carried.len());
        carried.iter().zip(own).for_each(|(c, &result)| self.set(c.result, result));
        if let (Some(slots), Some(entered)) = (&mut self.slots, entered) {
            slots.leave(entered, numbers);
        }
    }
}
