//! Collectives that some participants may run and others not.
//!
//! Each value is known by which participants certainly have the same: all of them a constant; nobody
//! the same parameter, number from the host or random number; those of a group what an all-reduce
//! gives. A computation's meaning follows from that of its arguments, and a loop's state from a
//! fixed point. Where a predicate decides whether a collective runs, those that meet in it must have
//! the same predicate.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::classes::{Agreement, Agreements};
use super::meeting::{Collective, Counts, Gives, counts};
use super::{Found, contains, found};
use crate::{CompId, Computation, Instr, InstrAt, InstrId, Module, Op};

/// The most participants for which the question is asked.
const MAX_COUNT: usize = 1 << 12;

/// The most instructions looked at, each as often as its computation has other arguments.
const MAX_STEPS: usize = 1 << 20;

/// The most participants put into classes, all divisions together.
const MAX_WORK: usize = 1 << 25;

/// How deep calls are followed.
const MAX_DEPTH: usize = 64;

/// How often a loop's body is looked at before its state is taken for anything.
const MAX_ROUNDS: usize = 32;

/// `collective.C1`: those that meet in a collective run it equally often.
pub(super) fn warnings(module: &Module) -> Vec<Found> {
    let meets = contains(module, |op| Collective::of(op).is_some());
    let decides = |instr: &Instr| {
        matches!(instr.op, Op::While(_) | Op::Conditional(_))
            && instr.op.callees().iter().any(|callee| meets[callee.index()])
    };
    let mut instrs = module.computations().iter().flat_map(Computation::instrs);
    if !instrs.any(decides) {
        return Vec::new();
    }
    let counts = counts(module);
    let count = counts.0.saturating_mul(counts.1);
    let entry = module.ids().find(|&id| std::ptr::eq(module.computation(id), module.entry()));
    let Some(entry) = entry.filter(|_| (2..=MAX_COUNT).contains(&count)) else { return Vec::new() };
    let mut walk = Walk {
        module,
        counts,
        classes: Agreements::new(count),
        groups: HashMap::new(),
        results: HashMap::new(),
        path: Vec::new(),
        found: BTreeMap::new(),
        steps: 0,
    };
    let args = vec![Value::All(walk.classes.varying); module.entry().params().len()];
    let call = Call { control: walk.classes.uniform, reports: true, depth: 0 };
    walk.computation(entry, args, call);
    if walk.is_spent() {
        return Vec::new();
    }
    walk.found.into_values().collect()
}

/// Who has the same value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    /// Of the whole value, tuple or not.
    All(Agreement),
    /// Of each element of a tuple.
    Tuple(Rc<[Value]>),
}

impl Value {
    fn element(&self, i: usize) -> Value {
        match self {
            Value::All(_) => self.clone(),
            // The verifier has checked that it is there.
            Value::Tuple(elements) => elements.get(i).unwrap_or(self).clone(),
        }
    }
}

/// How a computation is called.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// Who certainly makes the same calls.
    control: Agreement,
    /// Whether findings are noted; not while a loop's state is still being looked for.
    reports: bool,
    depth: usize,
}

/// A computation, its arguments and [`Call::control`] and [`Call::reports`].
type Key = (CompId, Vec<Value>, Agreement, bool);

struct Walk<'m> {
    module: &'m Module,
    counts: Counts,
    classes: Agreements,
    groups: HashMap<InstrAt, Option<Rc<Vec<Vec<usize>>>>>,
    results: HashMap<Key, Value>,
    /// The loops and conditionals that are being looked at, each with its predicate.
    path: Vec<(Agreement, &'m Instr)>,
    found: BTreeMap<InstrAt, Found>,
    steps: usize,
}

impl<'m> Walk<'m> {
    /// Whether the program is too large to be looked at; nothing that was found counts then.
    fn is_spent(&self) -> bool {
        self.steps > MAX_STEPS || self.classes.work > MAX_WORK
    }

    fn join(&mut self, a: &Value, b: &Value) -> Value {
        match (a, b) {
            (Value::All(a), Value::All(b)) => Value::All(self.classes.join(*a, *b)),
            (Value::Tuple(a), Value::Tuple(b)) if a.len() == b.len() => {
                Value::Tuple(a.iter().zip(&**b).map(|(a, b)| self.join(a, b)).collect())
            }
            (Value::Tuple(elements), other) | (other, Value::Tuple(elements)) => {
                Value::Tuple(elements.iter().map(|element| self.join(element, other)).collect())
            }
        }
    }

    /// Who has all of a value the same.
    fn whole(&mut self, value: &Value) -> Agreement {
        match value {
            Value::All(class) => *class,
            Value::Tuple(elements) => self.all(elements),
        }
    }

    fn all(&mut self, values: &[Value]) -> Agreement {
        values.iter().fold(self.classes.uniform, |all, value| {
            let class = self.whole(value);
            self.classes.join(all, class)
        })
    }

    fn computation(&mut self, id: CompId, args: Vec<Value>, call: Call) -> Value {
        let computation = self.module.computation(id);
        let anything = Value::All(self.classes.varying);
        self.steps = self.steps.saturating_add(computation.instrs().len());
        if call.depth > MAX_DEPTH {
            self.steps = MAX_STEPS + 1;
        }
        let key = (id, args, call.control, call.reports);
        if let Some(result) = self.results.get(&key) {
            return result.clone();
        }
        let mut values: Vec<Value> = Vec::with_capacity(computation.instrs().len());
        for at in computation.ids() {
            let instr = computation.instr(at);
            if self.is_spent() {
                return anything;
            }
            let operands: Vec<Value> =
                instr.operands.iter().map(|id| values[id.index()].clone()).collect();
            let value = match &instr.op {
                Op::Parameter(op) => key.1.get(op.number).unwrap_or(&anything).clone(),
                _ => self.instruction((id, at), instr, operands, call),
            };
            values.push(value);
        }
        let result = values[computation.root().index()].clone();
        self.results.insert(key, result.clone());
        result
    }

    fn instruction(
        &mut self,
        place: InstrAt,
        instr: &'m Instr,
        operands: Vec<Value>,
        call: Call,
    ) -> Value {
        if let Some(collective) = Collective::of(&instr.op) {
            return self.collective(place, instr, &collective, &operands, call);
        }
        let inner = Call { depth: call.depth + 1, ..call };
        let partitions = self.counts.1;
        let first = |operands: &[Value]| operands[0].clone();
        match &instr.op {
            Op::ReplicaId(_) => Value::All(self.classes.by(|p| p / partitions)),
            Op::PartitionId(_) => Value::All(self.classes.by(|p| p % partitions)),
            Op::Infeed(_) | Op::Recv(_) | Op::RecvDone(_) | Op::Rng(_) => {
                Value::All(self.classes.varying)
            }
            Op::RngGetAndUpdateState(_) => Value::All(self.classes.varying),
            Op::Tuple(_) => Value::Tuple(operands.into()),
            Op::GetTupleElement(op) => operands[0].element(op.index),
            Op::OptimizationBarrier(_) | Op::Domain(_) | Op::AddDependency(_) => first(&operands),
            Op::Copy(_) | Op::AsyncUpdate(_) | Op::AllReduceDone(_) => first(&operands),
            Op::CopyStart(_) => Value::Tuple([0, 0].map(|_| operands[0].clone()).into()),
            Op::CopyDone(_) => operands[0].element(0),
            Op::AsyncDone(_) | Op::AllGatherDone(_) | Op::CollectivePermuteDone(_) => {
                operands[0].element(1)
            }
            Op::AsyncStart(op) => {
                let result = self.computation(op.calls, operands.clone(), inner);
                Value::Tuple([Value::Tuple(operands.into()), result].into())
            }
            Op::Call(op) => self.computation(op.to_apply, operands, inner),
            Op::Fusion(op) => self.computation(op.calls, operands, inner),
            Op::While(op) => self.repeat(op, instr, first(&operands), inner),
            Op::Conditional(op) => self.choose(&op.branches, instr, &operands, inner),
            _ => Value::All(self.all(&operands)),
        }
    }

    fn choose(
        &mut self,
        branches: &[CompId],
        instr: &'m Instr,
        operands: &[Value],
        call: Call,
    ) -> Value {
        let predicate = self.whole(&operands[0]);
        let inner = Call { control: self.classes.join(call.control, predicate), ..call };
        self.path.push((predicate, instr));
        let mut result = Value::All(predicate);
        for (branch, operand) in branches.iter().zip(&operands[1..]) {
            let value = self.computation(*branch, vec![operand.clone()], inner);
            result = self.join(&value, &result);
        }
        self.path.pop();
        result
    }

    fn repeat(
        &mut self,
        op: &crate::ops::While,
        instr: &'m Instr,
        mut state: Value,
        call: Call,
    ) -> Value {
        let kept = kept(self.module.computation(op.body));
        for round in 0.. {
            let quiet = Call { reports: false, ..call };
            let predicate = self.computation(op.condition, vec![state.clone()], quiet);
            let predicate = self.whole(&predicate);
            let quiet = Call { control: self.classes.join(call.control, predicate), ..quiet };
            let next = self.computation(op.body, vec![state.clone()], quiet);
            let joined = self.joined(&state, &next, predicate, &kept);
            if joined == state || self.is_spent() {
                break;
            }
            state = if round < MAX_ROUNDS { joined } else { Value::All(self.classes.varying) };
        }
        if call.reports {
            let quiet = Call { reports: false, ..call };
            let predicate = self.computation(op.condition, vec![state.clone()], quiet);
            let predicate = self.whole(&predicate);
            let inner = Call { control: self.classes.join(call.control, predicate), ..call };
            self.path.push((predicate, instr));
            self.computation(op.condition, vec![state.clone()], inner);
            self.computation(op.body, vec![state.clone()], inner);
            self.path.pop();
        }
        state
    }

    /// A loop's state before or after one more round, which those run for whom the predicate holds.
    fn joined(
        &mut self,
        state: &Value,
        next: &Value,
        predicate: Agreement,
        kept: &[bool],
    ) -> Value {
        let predicate = Value::All(predicate);
        if kept.is_empty() {
            let joined = self.join(state, next);
            return self.join(&joined, &predicate);
        }
        let elements = kept.iter().enumerate().map(|(i, &is_kept)| {
            let element = state.element(i);
            if is_kept {
                return element;
            }
            let joined = self.join(&element, &next.element(i));
            self.join(&joined, &predicate)
        });
        Value::Tuple(elements.collect())
    }

    fn collective(
        &mut self,
        place: InstrAt,
        instr: &'m Instr,
        collective: &Collective<'_>,
        operands: &[Value],
        call: Call,
    ) -> Value {
        let counts = self.counts;
        let groups = self.groups.entry(place);
        let groups = groups.or_insert_with(|| collective.groups(counts).map(Rc::new)).clone();
        let Some(groups) = groups else { return Value::All(self.classes.varying) };
        if call.reports {
            self.check(place, instr, &groups);
        }
        let operands: Vec<Agreement> = operands.iter().map(|value| self.whole(value)).collect();
        let several = matches!(instr.op, Op::RaggedAllToAll(_)) || {
            // Without a dimension, what one gets depends on all operands of the others.
            matches!(&instr.op, Op::AllToAll(op) if op.dimension.is_none())
        };
        let result = if several || operands.len() == 1 {
            let all = operands.iter().fold(self.classes.uniform, |a, &b| self.classes.join(a, b));
            Value::All(self.met(collective, &groups, all))
        } else {
            let met = operands.iter().map(|&class| self.met(collective, &groups, class));
            Value::Tuple(met.map(Value::All).collect())
        };
        match &instr.op {
            Op::AllGatherStart(_) | Op::CollectivePermuteStart(_) => {
                let all =
                    operands.iter().fold(self.classes.uniform, |a, &b| self.classes.join(a, b));
                Value::Tuple([Value::All(all), result].into())
            }
            _ => result,
        }
    }

    /// Who gets the same, if operands are the same for those of a class.
    fn met(
        &mut self,
        collective: &Collective<'_>,
        groups: &[Vec<usize>],
        operand: Agreement,
    ) -> Agreement {
        let count = self.counts.0 * self.counts.1;
        // For each participant what decides on its result: the classes of what it gets, and which
        // part. Whoever is in no group gets zeros.
        let mut gets: Vec<(Rc<[u32]>, usize)> = vec![(Rc::from([]), 0); count];
        let sources: HashMap<usize, usize> = match collective.gives {
            Gives::Source(pairs) => {
                pairs.iter().map(|&(source, target)| (target, source)).collect()
            }
            _ => HashMap::new(),
        };
        for group in groups {
            let given: Rc<[u32]> = group.iter().map(|&p| self.classes.number(operand, p)).collect();
            for (position, &participant) in group.iter().enumerate() {
                gets[participant] = match collective.gives {
                    Gives::Same => (given.clone(), 0),
                    Gives::Part => (given.clone(), position),
                    Gives::First => (given[..1].into(), 0),
                    Gives::Source(_) => {
                        let source = sources.get(&position);
                        let given = source.and_then(|&source| given.get(source..=source));
                        (given.unwrap_or_default().into(), 0)
                    }
                };
            }
        }
        self.classes.by(|participant| &gets[participant])
    }

    /// Notes whether some of a group may come to a collective, and others not.
    fn check(&mut self, place: InstrAt, instr: &Instr, groups: &[Vec<usize>]) {
        for (predicate, by) in self.path.iter().rev() {
            let split = groups.iter().find_map(|group| self.classes.split(*predicate, group));
            let Some((one, other)) = split else { continue };
            let name = |participant: usize| match self.counts {
                (_, 1) => format!("replica {participant}"),
                (1, _) => format!("partition {participant}"),
                (_, p) => format!("replica {}, partition {}", participant / p, participant % p),
            };
            let detail = format!(
                "{} and {} meet here, but the predicate of `{}` ({}) may differ between them; then \
                 one waits for the other in vain",
                name(one),
                name(other),
                by.name,
                by.op.opcode()
            );
            self.found.entry(place).or_insert_with(|| found(place, instr, "collective.C1", detail));
            return;
        }
    }
}

/// For each element of a loop's state whether the body hands it on as it is; empty if its result is
/// no tuple made of elements.
fn kept(body: &Computation) -> Vec<bool> {
    let root = body.instr(body.root());
    let Op::Tuple(_) = root.op else { return Vec::new() };
    let is_kept = |(i, id): (usize, &InstrId)| {
        let instr = body.instr(*id);
        let is_param = |id: &InstrId| matches!(body.instr(*id).op, Op::Parameter(_));
        matches!(&instr.op, Op::GetTupleElement(op) if op.index == i)
            && instr.operands.first().is_some_and(is_param)
    };
    root.operands.iter().enumerate().map(is_kept).collect()
}
