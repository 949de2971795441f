//! Numbers in scratch that become values.
//!
//! Kernels of an iteration leave numbers for each other in scratch: a counter, whether the loop goes on, what
//! one solves for. To store one and load it again takes as long as four or five additions, and in a loop each waits
//! for the one before. Once the kernels stand in one, a load gives the value that was stored; where a loop
//! writes a number, the loop carries it.
//!
//! That two accesses meet where they are the same place and nowhere else is known from the buffers: those
//! that are single numbers to all who name them have places of their own ([`super::KernelLoop`]).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::kernel::{Addr, BinOp, Block, Buf, Builder, Conv, Inst, Kernel, Lane, Mem, Value};

/// The place of a number: its offset in scratch.
pub(super) type Place = i64;

/// How wide a number is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// A byte without sign, in lanes of [`Lane::I32`].
    Byte,
    /// 32 bits, in such lanes.
    Word,
    /// 64 bits, in lanes of [`Lane::I64`].
    Long,
}

impl Width {
    /// That of an element in memory, if a value can stand for it.
    pub(super) fn of(mem: Mem) -> Option<Width> {
        match mem {
            Mem::U8 => Some(Width::Byte),
            Mem::I32 | Mem::F32 => Some(Width::Word),
            Mem::I64 | Mem::F64 => Some(Width::Long),
            Mem::I8 | Mem::U16 | Mem::I16 | Mem::F16 | Mem::BF16 => None,
        }
    }

    /// The type of lanes that its bits are kept in.
    fn lane(self) -> Lane {
        match self {
            Width::Byte | Width::Word => Lane::I32,
            Width::Long => Lane::I64,
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Width::Byte => 1,
            Width::Word => 4,
            Width::Long => 8,
        }
    }
}

/// Whether an instruction accesses a single element.
pub(super) fn is_element(inst: &Inst) -> bool {
    match inst {
        Inst::Load { addr, mask, .. } | Inst::Store { addr, mask, .. } => {
            mask.is_none() && addr.lane_stride == 0
        }
        Inst::IndexLoad { .. } => true,
        _ => false,
    }
}

/// Where an instruction accesses a single element whose place is always the same, and of which type that is.
fn number(inst: &Inst) -> Option<(&Addr, Mem)> {
    let (addr, mem) = match inst {
        Inst::Load { addr, mem, .. }
        | Inst::Store { addr, mem, .. }
        | Inst::IndexLoad { addr, mem, .. } => (addr, mem),
        _ => return None,
    };
    (is_element(inst) && addr.terms.is_empty()).then_some((addr, *mem))
}

/// What a loop does with numbers.
#[derive(Default)]
struct Summary {
    written_by_condition: FxHashSet<Place>,
    written_by_body: FxHashSet<Place>,
    /// Those that an iteration may load before it stores them.
    live_in: FxHashSet<Place>,
    loads: FxHashMap<Place, usize>,
    /// Those that a condition stores, of this loop or of one in it: after that loop, they are as the condition has
    /// left them, which is no value that a loop gives.
    stored_by_conditions: FxHashSet<Place>,
    /// The loops in it.
    inside: usize,
}

/// What is known of a kernel before it is written again.
pub(super) struct Analysis {
    /// Whether each value is the same in all lanes.
    uniform: Vec<bool>,
    /// The loops, in the order in which they begin.
    loops: Vec<Summary>,
    /// How often each number is loaded.
    loads: FxHashMap<Place, usize>,
    widths: FxHashMap<Place, Width>,
}

impl Analysis {
    pub(super) fn new(kernel: &Kernel, widths: FxHashMap<Place, Width>) -> Self {
        let mut this = Analysis {
            uniform: vec![true; kernel.types.len()],
            loops: Vec::new(),
            loads: FxHashMap::default(),
            widths,
        };
        // Taken to be so until something says otherwise: a value that a loop carries, only after its body.
        while this.spread(&kernel.body) {}
        let mut all = Summary::default();
        this.survey(&kernel.body, &mut all, &mut FxHashSet::default(), false);
        this.loads = all.loads;
        this
    }

    /// The number that an instruction accesses, if it is one.
    fn place(&self, inst: &Inst) -> Option<Place> {
        let (addr, _) = number(inst)?;
        (addr.buf == Buf::Scratch && self.widths.contains_key(&addr.offset)).then_some(addr.offset)
    }

    /// Notes values that are not the same in all lanes; whether there was a new one.
    fn spread(&mut self, block: &Block) -> bool {
        let mut changed = false;
        for inst in &block.insts {
            let carried = match inst {
                Inst::Loop { carried, body, .. } => {
                    changed |= self.spread(body);
                    carried
                }
                Inst::While { cond, carried, body, .. } => {
                    changed |= self.spread(cond) | self.spread(body);
                    carried
                }
                inst => {
                    changed |=
                        inst.defines().is_some_and(|dst| self.note(dst, self.gives_one(inst)));
                    continue;
                }
            };
            for c in carried {
                let one = self.uniform[c.init.0 as usize] && self.uniform[c.next.0 as usize];
                changed |= self.note(c.param, one) | self.note(c.result, one);
            }
        }
        changed
    }

    /// Whether an instruction that is no loop gives a value that is the same in all lanes.
    fn gives_one(&self, inst: &Inst) -> bool {
        match inst {
            Inst::Load { addr, mask, .. } => addr.lane_stride == 0 && mask.is_none(),
            Inst::Numbers { .. }
            | Inst::Gather { .. }
            | Inst::MaskBelow { .. }
            | Inst::ShiftUp { .. } => false,
            Inst::Reduce { .. } | Inst::MaskAny { .. } => true,
            inst => {
                let mut one = true;
                inst.for_each_operand(&mut |value| one &= self.uniform[value.0 as usize]);
                one
            }
        }
    }

    /// Notes whether a value is the same in all lanes; whether it was taken to be and is not.
    fn note(&mut self, value: Value, uniform: bool) -> bool {
        let known = &mut self.uniform[value.0 as usize];
        let changed = *known && !uniform;
        *known &= uniform;
        changed
    }

    /// Adds what a block does to `all`; `stored` are the numbers that have been stored before it for certain.
    fn survey(
        &mut self,
        block: &Block,
        all: &mut Summary,
        stored: &mut FxHashSet<Place>,
        is_condition: bool,
    ) {
        for inst in &block.insts {
            if let Some(place) = self.place(inst) {
                if matches!(inst, Inst::Store { .. }) {
                    stored.insert(place);
                    match is_condition {
                        true => all.written_by_condition.insert(place),
                        false => all.written_by_body.insert(place),
                    };
                } else {
                    *all.loads.entry(place).or_default() += 1;
                    if !stored.contains(&place) {
                        all.live_in.insert(place);
                    }
                }
                continue;
            }
            let (cond, body) = match inst {
                Inst::Loop { body, .. } => (None, body),
                Inst::While { cond, body, .. } => (Some(cond), body),
                _ => continue,
            };
            let at = self.loops.len();
            self.loops.push(Summary::default());
            let (mut inner, mut stored_inside) = (Summary::default(), FxHashSet::default());
            if let Some(cond) = cond {
                self.survey(cond, &mut inner, &mut stored_inside, true);
            }
            self.survey(body, &mut inner, &mut stored_inside, false);
            for (&place, count) in &inner.loads {
                *all.loads.entry(place).or_default() += count;
            }
            all.live_in.extend(inner.live_in.iter().filter(|place| !stored.contains(place)));
            let written = inner.written_by_condition.iter().chain(&inner.written_by_body);
            match is_condition {
                true => all.written_by_condition.extend(written),
                false => all.written_by_body.extend(written),
            }
            inner.stored_by_conditions.extend(&inner.written_by_condition);
            all.stored_by_conditions.extend(&inner.stored_by_conditions);
            inner.inside = self.loops.len() - at - 1;
            self.loops[at] = inner;
        }
    }
}

/// What stands for the numbers while a kernel is written again.
pub(super) struct Slots {
    analysis: Analysis,
    /// The values of those that have been stored.
    known: FxHashMap<Place, Value>,
    /// Those of which no value is known: what they are is in memory.
    in_memory: FxHashSet<Place>,
    /// Those that are loaded from memory somewhere, so that their stores stay.
    loaded: FxHashSet<Place>,
    /// The number of the next loop, in the order in which loops begin.
    next_loop: usize,
    /// Whether a loop carries a number that has no value at the end of its body.
    failed: bool,
}

/// A loop that is being written.
pub(super) struct Entered {
    loop_number: usize,
    /// The numbers that it carries.
    carried: Vec<Place>,
}

impl Slots {
    pub(super) fn new(analysis: Analysis) -> Self {
        Slots {
            analysis,
            known: FxHashMap::default(),
            in_memory: FxHashSet::default(),
            loaded: FxHashSet::default(),
            next_loop: 0,
            failed: false,
        }
    }

    /// What a number is that nobody has stored.
    fn zero(&self, b: &mut Builder, place: Place) -> Value {
        b.int(self.lane(place), 0)
    }

    fn lane(&self, place: Place) -> Lane {
        self.analysis.widths[&place].lane()
    }

    /// The value that a load gives in lanes of the type that `mem` has, or `None` if it has to be loaded.
    pub(super) fn load(&mut self, b: &mut Builder, inst: &Inst) -> Option<Value> {
        let place = self.analysis.place(inst)?;
        let (_, mem) = number(inst)?;
        if self.in_memory.contains(&place) {
            self.loaded.insert(place);
            return None;
        }
        let value = match self.known.get(&place) {
            Some(&value) => value,
            None => self.zero(b, place),
        };
        Some(b.convert(Conv::Bits, mem.lane(), value))
    }

    /// Notes what a store stores, `new` being the value that is `src` now.
    pub(super) fn store(&mut self, b: &mut Builder, inst: &Inst, src: Value, new: Value) {
        let Some(place) = self.analysis.place(inst) else { return };
        let lane = self.lane(place);
        let mut value = b.convert(Conv::Bits, lane, new);
        if !self.analysis.uniform[src.0 as usize] {
            let first = b.extract(value);
            value = b.splat(lane, first);
        }
        if self.analysis.widths[&place] == Width::Byte && !b.is_choice_of_bits(value) {
            let byte = b.int(lane, 0xff);
            value = b.bin(BinOp::And, value, byte);
        }
        self.in_memory.remove(&place);
        self.known.insert(place, value);
    }

    /// Begins the next loop: the numbers that it carries, with what they are before it.
    pub(super) fn enter(&mut self, b: &mut Builder) -> (Entered, Vec<Value>) {
        let summary = &self.analysis.loops[self.next_loop];
        self.next_loop += 1;
        let by_conditions = &summary.stored_by_conditions;
        let is_needed = |place: &Place| {
            let inside = summary.loads.get(place).copied().unwrap_or_default();
            let all = self.analysis.loads.get(place).copied().unwrap_or_default();
            summary.live_in.contains(place) || all > inside
        };
        let mut carried: Vec<Place> = Vec::new();
        for &place in &summary.written_by_body {
            let is_known = !self.in_memory.contains(&place);
            if is_known && !by_conditions.contains(&place) && is_needed(&place) {
                carried.push(place);
            }
        }
        carried.sort_unstable();
        let loop_number = self.next_loop - 1;
        self.forget(loop_number, &carried);
        let before = carried.iter().map(|&place| match self.known.get(&place) {
            Some(&value) => value,
            None => self.zero(b, place),
        });
        let before = before.collect();
        (Entered { loop_number, carried }, before)
    }

    /// Sets numbers that a loop carries, at the beginning of an iteration.
    pub(super) fn set(&mut self, entered: &Entered, values: &[Value]) {
        self.known.extend(entered.carried.iter().copied().zip(values.iter().copied()));
    }

    /// What numbers that a loop carries are at the end of an iteration.
    pub(super) fn get(&mut self, b: &mut Builder, entered: &Entered) -> Vec<Value> {
        let mut at_end = Vec::with_capacity(entered.carried.len());
        for &place in &entered.carried {
            let known = self.known.get(&place).copied();
            self.failed |= known.is_none();
            at_end.push(known.unwrap_or_else(|| self.zero(b, place)));
        }
        at_end
    }

    /// Goes on after a loop, which has given numbers that it carries these values.
    pub(super) fn leave(&mut self, entered: &Entered, values: &[Value]) {
        self.forget(entered.loop_number, &entered.carried);
        self.set(entered, values);
        // (What runs no iteration is not written.)
        self.next_loop = entered.loop_number + 1 + self.analysis.loops[entered.loop_number].inside;
    }

    /// What a loop writes and does not carry is in memory, before an iteration and after the last one.
    fn forget(&mut self, loop_number: usize, carried: &[Place]) {
        let summary = &self.analysis.loops[loop_number];
        for &place in summary.written_by_condition.iter().chain(&summary.written_by_body) {
            if !carried.contains(&place) {
                self.known.remove(&place);
                self.in_memory.insert(place);
            }
        }
    }

    /// Whether numbers were not where they had to be: what was written is of no use.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Removes the stores of numbers that nothing loads.
    pub(super) fn remove_stores(&self, block: &mut Block) {
        block.insts.retain(|inst| {
            !matches!(inst, Inst::Store { .. })
                || self.analysis.place(inst).is_none_or(|place| self.loaded.contains(&place))
        });
        for inst in &mut block.insts {
            match inst {
                Inst::Loop { body, .. } => self.remove_stores(body),
                Inst::While { cond, body, .. } => {
                    self.remove_stores(cond);
                    self.remove_stores(body);
                }
                _ => {}
            }
        }
    }
}
