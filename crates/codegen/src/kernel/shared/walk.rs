//! The accesses of a kernel: when they happen, and where.

use rustc_hash::{FxHashMap, FxHashSet};

use super::form::{AtomId, Atoms, Form};
use crate::kernel::{Addr, Block, Buf, IndexOp, Inst, Kernel, MaskOp, Mem, Value};

/// A loop.
pub(super) struct Loop {
    /// Its variable; of a `While`, a number that no address has.
    pub var: AtomId,
    /// What the variable is not less than.
    pub lowers: Vec<Form>,
    /// What the variable is less than.
    pub uppers: Vec<Form>,
    pub step: i128,
    /// Whether all of `step` numbers from the variable on are below the uppers, always.
    pub whole: bool,
    /// Whether the variable lies in the piece of the range that the call runs.
    pub in_piece: bool,
}

/// Lanes `l` with `index + l < end` are on, for all of the ends, the others off.
#[derive(Clone)]
pub(super) struct Limit {
    pub index: Form,
    /// The first is the one that the mask was made of.
    pub ends: Vec<Form>,
}

/// A load or a store.
pub(super) struct Access {
    pub param: u32,
    pub writes: bool,
    /// The loops around it, outermost first, by their places in [`Walk::loops`].
    pub path: Vec<usize>,
    /// Where lane 0 is, in bytes; `None` for a gather.
    pub at: Option<Form>,
    /// Bytes from a lane to the next, ...
    pub lane_stride: i128,
    /// ... and how many there are.
    pub lanes: i128,
    /// Bytes of a lane.
    pub width: i128,
    pub limits: Vec<Limit>,
}

/// All that a kernel does to its buffers, in the order of the program.
pub(super) struct Walk<'k> {
    kernel: &'k Kernel,
    pub atoms: Atoms,
    pub loops: Vec<Loop>,
    pub accesses: Vec<Access>,
    /// The start and the end of the piece that a call runs.
    begin: AtomId,
    end: AtomId,
    path: Vec<usize>,
    forms: FxHashMap<Value, Form>,
    /// How index values are made.
    made: FxHashMap<Value, (IndexOp, Value, Value)>,
    limits: FxHashMap<Value, Vec<Limit>>,
    /// What may differ from call to call of one step.
    unsteady: FxHashSet<Value>,
}

impl<'k> Walk<'k> {
    pub fn new(kernel: &'k Kernel) -> Self {
        let mut atoms = Atoms::default();
        let range = i128::from(kernel.range);
        let (begin, end) = (atoms.between(0, range, false), atoms.between(0, range, false));
        let mut walk = Walk {
            kernel,
            atoms,
            loops: Vec::new(),
            accesses: Vec::new(),
            begin,
            end,
            path: Vec::new(),
            forms: FxHashMap::default(),
            made: FxHashMap::default(),
            limits: FxHashMap::default(),
            unsteady: FxHashSet::default(),
        };
        walk.block(&kernel.body);
        walk
    }

    fn block(&mut self, block: &Block) {
        block.insts.iter().for_each(|inst| self.inst(inst));
    }

    fn form(&self, value: Value) -> Form {
        self.forms[&value].clone()
    }

    /// An index value of which only its bounds may be known.
    fn opaque(&mut self, dst: Value, bounds: Option<(i128, i128)>) -> Form {
        let fixed = self.path.is_empty() && !self.unsteady.contains(&dst);
        Form::atom(match bounds {
            Some((least, greatest)) => self.atoms.between(least, greatest, fixed),
            None => self.atoms.any(fixed),
        })
    }

    fn inst(&mut self, inst: &Inst) {
        self.note_unsteady(inst);
        match inst {
            Inst::Begin { dst } => drop(self.forms.insert(*dst, Form::atom(self.begin))),
            Inst::End { dst } => drop(self.forms.insert(*dst, Form::atom(self.end))),
            Inst::IndexConst { dst, value } => {
                self.forms.insert(*dst, Form::constant(i128::from(*value)));
            }
            Inst::Index { dst, op, a, b } => {
                self.made.insert(*dst, (*op, *a, *b));
                let form = self.index(*dst, *op, *a, *b);
                self.forms.insert(*dst, form);
            }
            Inst::IndexLoad { dst, mem, addr } => {
                self.access(addr, *mem, false, 1, None);
                let form = self.opaque(*dst, None);
                self.forms.insert(*dst, form);
            }
            Inst::Extract { dst, .. } => {
                let form = self.opaque(*dst, None);
                self.forms.insert(*dst, form);
            }
            Inst::MaskBelow { dst, index, end } => {
                let end = self.form(*end);
                // Where a loop runs at all, its end is not beyond what its variable is less than; nor is a
                // multiple of it, where two loops are in lanes.
                let around = self.path.iter().rev().map(|&n| &self.loops[n].uppers);
                let ends = around.into_iter().find_map(|uppers| {
                    let by = end.multiple_of(uppers.first()?)?;
                    Some(uppers.iter().map(|upper| upper.times(by)).collect::<Vec<Form>>())
                });
                let ends = ends.unwrap_or_else(|| vec![end]);
                self.limits.insert(*dst, vec![Limit { index: self.form(*index), ends }]);
            }
            Inst::Mask { dst, op: MaskOp::And, a, b } => {
                let of = |mask| self.limits.get(mask).cloned().unwrap_or_default();
                let both = [of(a), of(b)].concat();
                self.limits.insert(*dst, both);
            }
            Inst::Load { mem, addr, mask, .. } => self.vector(addr, *mem, false, *mask),
            Inst::Store { mem, addr, mask, .. } => self.vector(addr, *mem, true, *mask),
            Inst::Gather { mem, addr, .. } => {
                let lanes = self.kernel.lanes as i128;
                self.access(addr, *mem, false, lanes, None);
                if let (Buf::Param(_), Some(access)) = (addr.buf, self.accesses.last_mut()) {
                    access.at = None;
                }
            }
            Inst::Loop { var, lo, hi, step, carried, body } => {
                let entered = self.enter(*lo, *hi, i128::from(*step));
                self.forms.insert(*var, Form::atom(entered.var));
                self.scope(entered, carried, &[body]);
            }
            Inst::While { cond, carried, body, .. } => {
                let var = self.atoms.any(false);
                let (lowers, uppers) = (Vec::new(), Vec::new());
                let entered = Loop { var, lowers, uppers, step: 1, whole: false, in_piece: false };
                self.scope(entered, carried, &[cond, body]);
            }
            _ => {}
        }
    }

    fn scope(&mut self, entered: Loop, carried: &[crate::kernel::Carried], blocks: &[&Block]) {
        self.loops.push(entered);
        self.path.push(self.loops.len() - 1);
        for value in carried.iter().map(|c| c.param) {
            let atom = self.atoms.any(false);
            self.forms.insert(value, Form::atom(atom));
            self.unsteady.insert(value);
        }
        blocks.iter().for_each(|block| self.block(block));
        self.path.pop();
        for value in carried.iter().map(|c| c.result) {
            let atom = self.atoms.any(false);
            self.forms.insert(value, Form::atom(atom));
            self.unsteady.insert(value);
        }
    }

    /// What is made of the bounds of a call, or read from memory that is written, may differ from
    /// call to call.
    fn note_unsteady(&mut self, inst: &Inst) {
        let written = |buf: Buf| match buf {
            Buf::Param(n) => self.kernel.params[n as usize].write,
            Buf::Scratch => true,
        };
        let mut unsteady = match inst {
            Inst::Begin { .. } | Inst::End { .. } => true,
            Inst::IndexLoad { addr, .. } | Inst::Load { addr, .. } | Inst::Gather { addr, .. } => {
                written(addr.buf)
            }
            _ => false,
        };
        if let Some(dst) = inst.defines() {
            inst.for_each_operand(&mut |value| unsteady |= self.unsteady.contains(&value));
            if unsteady {
                self.unsteady.insert(dst);
            }
        }
    }

    fn index(&mut self, dst: Value, op: IndexOp, a: Value, b: Value) -> Form {
        let (x, y) = (self.form(a), self.form(b));
        let ((x_low, x_high), (y_low, y_high)) = (self.atoms.range(&x), self.atoms.range(&y));
        let bounds = match (op, x.number(), y.number()) {
            (IndexOp::Add, ..) => return x.plus(&y, 1),
            (IndexOp::Sub, ..) => return x.plus(&y, -1),
            (IndexOp::Mul, Some(number), _) => return y.times(number),
            (IndexOp::Mul, _, Some(number)) => return x.times(number),
            (IndexOp::Mul, ..) => None,
            (IndexOp::Min, ..) => Some((x_low.min(y_low), x_high.min(y_high))),
            (IndexOp::Max, ..) => Some((x_low.max(y_low), x_high.max(y_high))),
            (IndexOp::And, ..) if x_low >= 0 => Some((0, x_high)),
            (IndexOp::And, _, Some(number)) if number >= 0 => Some((0, number)),
            (IndexOp::And, ..) => None,
            (IndexOp::Div, _, Some(by)) if by > 0 => match self.atoms.divide(&x, by) {
                Some(quotient) => return quotient,
                None => Some((x_low.min(0), x_high.max(0))),
            },
            (IndexOp::Div, ..) => None,
        };
        self.opaque(dst, bounds)
    }

    fn vector(&mut self, addr: &Addr, mem: Mem, writes: bool, mask: Option<Value>) {
        let lanes = if addr.lane_stride == 0 { 1 } else { self.kernel.lanes as i128 };
        self.access(addr, mem, writes, lanes, mask);
    }

    fn access(&mut self, addr: &Addr, mem: Mem, writes: bool, lanes: i128, mask: Option<Value>) {
        let Buf::Param(param) = addr.buf else { return };
        let start = Form::constant(i128::from(addr.offset));
        let terms = addr.terms.iter();
        let at = terms
            .fold(start, |sum, &(value, bytes)| sum.plus(&self.forms[&value], i128::from(bytes)));
        let limits = mask.and_then(|mask| self.limits.get(&mask).cloned()).unwrap_or_default();
        self.accesses.push(Access {
            param,
            writes,
            path: self.path.clone(),
            at: Some(at),
            lane_stride: i128::from(addr.lane_stride),
            lanes,
            width: mem.bytes() as i128,
            limits,
        });
    }

    /// A loop over `lo, lo + step, …` below `hi`.
    fn enter(&mut self, lo: Value, hi: Value, step: i128) -> Loop {
        let (mut lowers, mut uppers) = (Vec::new(), Vec::new());
        self.lower(lo, &mut lowers);
        let whole = self.whole_steps(lo, hi, step);
        match whole {
            Some(end) => {
                uppers.push(self.form(hi));
                self.upper(end, &lowers, &mut uppers);
            }
            None => self.upper(hi, &lowers, &mut uppers),
        }
        let (first, last) = (self.form(lo), self.form(hi));
        let length = last.plus(&first, -1).number();
        let whole = whole.is_some() || step == 1 || length.is_some_and(|n| n % step == 0);
        let least = lowers.iter().map(|form| self.atoms.range(form).0).max().unwrap_or(0);
        let below = uppers.iter().map(|form| self.atoms.range(form).1).min().unwrap_or(0);
        let greatest = below - if whole { step } else { 1 };
        let (begin, end) = (Form::atom(self.begin), Form::atom(self.end));
        let in_piece = lowers.contains(&begin) && uppers.contains(&end);
        // A loop of at most one iteration is another name for where it begins.
        let is_one = lowers
            .iter()
            .find(|lower| uppers.iter().any(|upper| upper.plus(lower, -1) == Form::constant(1)));
        let var = match is_one {
            Some(lower) => self.atoms.named(lower.clone()),
            None => self.atoms.between(least, greatest, false),
        };
        Loop { var, lowers, uppers, step, whole, in_piece }
    }

    /// All that a value is not less than.
    fn lower(&self, value: Value, all: &mut Vec<Form>) {
        all.push(self.form(value));
        match self.made.get(&value) {
            Some(&(IndexOp::Max, a, b)) => [a, b].into_iter().for_each(|v| self.lower(v, all)),
            // The end of whole steps from `a` on.
            Some(&(IndexOp::Add, a, b)) if self.steps_from(a, b).is_some() => self.lower(a, all),
            _ => {}
        }
    }

    /// All that a number is less than which is less than a value, and none of `lowers` is greater.
    fn upper(&self, value: Value, lowers: &[Form], all: &mut Vec<Form>) {
        all.push(self.form(value));
        match self.made.get(&value) {
            Some(&(IndexOp::Min, a, b)) => {
                [a, b].into_iter().for_each(|v| self.upper(v, lowers, all));
            }
            Some(&(IndexOp::Max, a, b)) if lowers.contains(&self.form(a)) => {
                self.upper(b, lowers, all);
            }
            Some(&(IndexOp::Max, a, b)) if lowers.contains(&self.form(b)) => {
                self.upper(a, lowers, all);
            }
            _ => {}
        }
    }

    /// If `hi` is where whole steps from `lo` on end: what they do not go beyond.
    fn whole_steps(&self, lo: Value, hi: Value, step: i128) -> Option<Value> {
        let &(IndexOp::Add, from, length) = self.made.get(&hi)? else { return None };
        let (end, by) = self.steps_from(from, length)?;
        (self.form(from) == self.form(lo) && by == step).then_some(end)
    }

    /// If `length` is that of whole steps from `from` to an end: the end, and the step.
    fn steps_from(&self, from: Value, length: Value) -> Option<(Value, i128)> {
        let number = |value: Value| self.forms[&value].number();
        let (distance, step) = match *self.made.get(&length)? {
            (IndexOp::And, distance, mask) => {
                let step = -number(mask)?;
                (step > 0 && step.count_ones() == 1).then_some((distance, step))?
            }
            (IndexOp::Mul, steps, step) => {
                let &(IndexOp::Div, distance, by) = self.made.get(&steps)? else { return None };
                (number(by)? == number(step)?).then_some((distance, number(step)?))?
            }
            _ => return None,
        };
        let &(IndexOp::Sub, end, start) = self.made.get(&distance)? else { return None };
        (self.form(start) == self.form(from)).then_some((end, step))
    }
}
