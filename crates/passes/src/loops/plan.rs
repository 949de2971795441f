//! What a loop carries, reads and computes.

use std::iter::zip;

use helio_ir::ops::{Cost, GetTupleElement, Reads, While};
use helio_ir::{ArrayShape, CompId, Computation, Instr, InstrId, Op, Shape};

use crate::draft::{Draft, is_elementwise, parameter_number};
use crate::effects::any_op;

/// What is to become of an element of the state.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// Nobody reads it.
    Dead,
    /// It is a constant, which is put where it is read.
    Constant,
    /// It stays, in this place.
    Kept(usize),
}

/// What a loop carries in vain, and what is the same in each of its iterations.
pub(super) struct LoopAnalysis {
    /// What becomes of each element of the state.
    pub fates: Vec<Fate>,
    /// The elements that no iteration changes.
    pub invariant: Vec<bool>,
    /// The instructions of the body that the next state needs.
    live: Vec<bool>,
    /// The instructions of the body that are the same in each iteration.
    pub same: Vec<bool>,
    /// Those of them that are computed before the loop, and passed on in the state.
    pub hoisted: Vec<InstrId>,
    /// Whether an instruction of the body is among those.
    is_hoisted: Vec<bool>,
}

impl LoopAnalysis {
    /// `None` if body or condition use the state as a whole.
    pub fn new(draft: &mut Draft<'_>, op: While, inits: &[InstrId], read: &[bool]) -> Option<Self> {
        let effects = effects(draft, op.body);
        let (body, condition) =
            (draft.callees().computation(op.body), draft.callees().computation(op.condition));
        let (in_body, in_condition) = (State::of(body)?, State::of(condition)?);
        let root = body.instr(body.root());
        let Op::Tuple(_) = root.op else { return None };
        let invariant: Vec<bool> = (0..inits.len())
            .map(|i| in_body.element[root.operands[i].index()] == Some(i))
            .collect();

        // What is read outside, by the condition or by an effect.
        let mut wanted: Vec<usize> = in_condition.element.into_iter().flatten().collect();
        wanted.extend((0..inits.len()).filter(|&i| read[i] && !invariant[i]));
        let everything = Needs::new(body, &in_body, &wanted, &effects, &[]);
        let stays: Vec<bool> = zip(&effects, endless(draft, op.body))
            .map(|(&effect, endless)| effect || endless)
            .collect();
        let (same, hoisted) = invariants(body, &in_body, &invariant, &everything.live, &stays);
        let needs = Needs::new(body, &in_body, &wanted, &effects, &hoisted);

        let mut count = 0;
        let fates = (0..inits.len()).map(|i| {
            match (needs.elements[i], invariant[i] && is_constant(draft, inits[i])) {
                (false, _) => Fate::Dead,
                (true, true) => Fate::Constant,
                (true, false) => {
                    count += 1;
                    Fate::Kept(count - 1)
                }
            }
        });
        let fates = fates.collect();
        let mut is_hoisted = vec![false; needs.live.len()];
        hoisted.iter().for_each(|id| is_hoisted[id.index()] = true);
        Some(LoopAnalysis { fates, invariant, live: needs.live, same, hoisted, is_hoisted })
    }

    /// How many elements stay.
    pub fn kept(&self) -> usize {
        self.fates.iter().filter(|fate| matches!(fate, Fate::Kept(_))).count()
    }

    /// Whether an instruction of the body is computed in each iteration.
    pub fn is_computed(&self, id: InstrId) -> bool {
        self.live[id.index()] && !self.is_hoisted[id.index()]
    }

    /// Whether something after the loop reads what the loop does not change.
    pub fn has_read_invariant(&self, read: &[bool]) -> bool {
        self.invariant.iter().zip(read).any(|(&invariant, &read)| invariant && read)
    }
}

/// How a computation of one tuple uses it.
pub(crate) struct State {
    /// For each instruction that takes an element of the state, which.
    pub element: Vec<Option<usize>>,
}

impl State {
    /// `None` if the state is used as a whole.
    pub(crate) fn of(computation: &Computation) -> Option<Self> {
        let instrs = computation.instrs();
        let is_state = |id: InstrId| parameter_number(&computation.instr(id).op).is_some();
        if is_state(computation.root()) {
            return None;
        }
        let mut element = vec![None; instrs.len()];
        for (i, instr) in instrs.iter().enumerate() {
            match instr.op {
                Op::GetTupleElement(GetTupleElement { index }) if is_state(instr.operands[0]) => {
                    element[i] = Some(index);
                }
                _ if instr.operands.iter().any(|&id| is_state(id)) => return None,
                _ => {}
            }
        }
        Some(State { element })
    }
}

/// What of a body is needed.
struct Needs {
    /// For each instruction.
    live: Vec<bool>,
    /// For each element of the state.
    elements: Vec<bool>,
}

impl Needs {
    /// What is needed for elements that are wanted and for effects, when the values of some
    /// instructions come from elsewhere.
    fn new(
        body: &Computation,
        state: &State,
        wanted: &[usize],
        effects: &[bool],
        given: &[InstrId],
    ) -> Self {
        let next = &body.instr(body.root()).operands;
        let (mut live, mut elements) = (vec![false; body.instrs().len()], vec![false; next.len()]);
        let mut is_given = vec![false; live.len()];
        given.iter().for_each(|id| is_given[id.index()] = true);
        let mut pending: Vec<InstrId> = body.ids().filter(|id| effects[id.index()]).collect();
        let mut need = |element: usize, pending: &mut Vec<InstrId>| {
            if !std::mem::replace(&mut elements[element], true) {
                pending.push(next[element]);
            }
        };
        wanted.iter().for_each(|&element| need(element, &mut pending));
        while let Some(id) = pending.pop() {
            if std::mem::replace(&mut live[id.index()], true) || is_given[id.index()] {
                continue;
            }
            match state.element[id.index()] {
                Some(element) => need(element, &mut pending),
                None => pending.extend(&body.instr(id).operands),
            }
        }
        Needs { live, elements }
    }
}

/// For each instruction of a computation, whether it must run whoever takes its value.
fn effects(draft: &mut Draft<'_>, id: CompId) -> Vec<bool> {
    let module = draft.module();
    let instrs = module.computation(id).instrs();
    instrs.iter().map(|instr| module.has_effect(&instr.op)).collect()
}

/// For each instruction of a computation, whether it may run for ever, so that it must not run where
/// the loop would not have run.
fn endless(draft: &Draft<'_>, id: CompId) -> Vec<bool> {
    let module = draft.callees();
    let instrs = module.computation(id).instrs();
    let is_loop = |op: &Op| matches!(op, Op::While(_));
    instrs.iter().map(|instr| any_op(module, &instr.op, is_loop)).collect()
}

/// A scalar constant, or one repeated: what is better made anew in each iteration than carried.
fn is_constant(draft: &Draft<'_>, id: InstrId) -> bool {
    let is_small = |id: InstrId| match draft.op(id) {
        Op::Constant(op) => {
            !op.elided && op.literal.as_array().is_some_and(|array| array.data().len() <= 64)
        }
        _ => false,
    };
    match draft.op(id) {
        Op::Constant(_) => is_small(id),
        Op::Broadcast(_) => is_small(draft.operands(id)[0]),
        _ => false,
    }
}

/// For each live instruction of a body, whether it is the same in each iteration and does not have to
/// stay there; and those of them
/// to be computed before the loop: what takes work, or depends on what does, and is used by
/// something that changes; and what would be written to memory in each iteration, for something that
/// no fusion takes in.
fn invariants(
    body: &Computation,
    state: &State,
    invariant: &[bool],
    live: &[bool],
    stays: &[bool],
) -> (Vec<bool>, Vec<InstrId>) {
    let count = body.instrs().len();
    let (mut same, mut takes_work) = (vec![false; count], vec![false; count]);
    for id in body.ids().filter(|id| live[id.index()]) {
        let instr = body.instr(id);
        let operands = || instr.operands.iter().map(|operand| operand.index());
        same[id.index()] = match state.element[id.index()] {
            Some(element) => invariant[element],
            None => {
                !matches!(instr.op, Op::Parameter(_) | Op::Tuple(_))
                    && !stays[id.index()]
                    && is_static(&instr.shape)
                    && operands().all(|operand| same[operand])
            }
        };
        takes_work[id.index()] = same[id.index()]
            && state.element[id.index()].is_none()
            && (is_work(instr) || operands().any(|operand| takes_work[operand]));
    }
    let mut hoisted: Vec<InstrId> = Vec::new();
    let mut is_hoisted = vec![false; count];
    for id in body.ids().filter(|id| live[id.index()] && !same[id.index()]) {
        let instr = body.instr(id);
        for &operand in &instr.operands {
            let i = operand.index();
            let is_made = || same[i] && reads_memory(&instr.op) && is_computed(body.instr(operand));
            if (takes_work[i] || is_made()) && !std::mem::replace(&mut is_hoisted[i], true) {
                hoisted.push(operand);
            }
        }
    }
    (same, hoisted)
}

fn is_static(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => array.is_static(),
        _ => false,
    }
}

/// Of fewer elements, a result is not worth an element of the state.
pub(super) const ENOUGH: usize = 64;

fn element_count(instr: &Instr) -> usize {
    instr.shape.as_array().map_or(0, ArrayShape::element_count)
}

/// Whether a result of many elements is computed, however cheaply.
fn is_computed(instr: &Instr) -> bool {
    is_elementwise(&instr.op) && element_count(instr) >= ENOUGH
}

/// Whether an operation takes its operands from memory: computing them in place of that is no choice.
fn reads_memory(op: &Op) -> bool {
    op.reads() == Reads::Memory
}

/// Whether an operation takes more than reading its result from memory would.
fn is_work(instr: &Instr) -> bool {
    let count = element_count(instr);
    match &instr.op {
        op if reads_memory(op) => true,
        Op::Reduce(_) | Op::Gather(_) => true,
        Op::Transpose(_) | Op::Convert(_) => count >= ENOUGH,
        Op::Unary(op) => count >= ENOUGH && op.cost() > Cost::Cheap,
        Op::Binary(op) => count >= ENOUGH && op.cost() > Cost::Cheap,
        _ => false,
    }
}
