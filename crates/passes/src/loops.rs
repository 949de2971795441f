//! What loops carry from one iteration to the next.

use helio_ir::ops::{Cost, GetTupleElement, Parameter, Tuple, While};
use helio_ir::types::DimKind;
use helio_ir::{CompId, Computation, Instr, InstrId, Module, Op, Result, Shape};

use crate::draft::{Draft, Old, parameter_number};
use crate::rebuild::{contains, drop_unused, rebuild};

/// Takes out of a loop's state what nobody reads and what is the same constant in each iteration,
/// computes before the loop what is the same in each iteration and takes work, and lets users of
/// what does not change have what went in.
pub(crate) fn simplify_loops(module: Module) -> Result<Module> {
    if !contains(&module, |op| matches!(op, Op::While(_))) {
        return Ok(module);
    }
    let module = rebuild(module, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut reads = reads_of_loops(&old);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        // For each loop made anew, what stands for the elements of its old state.
        let mut elements: Vec<Option<Vec<Option<InstrId>>>> = vec![None; old.instrs.len()];
        for (i, instr) in old.instrs.into_iter().enumerate() {
            let id = match (&instr.op, &instr.operands[..]) {
                (Op::While(op), &[init]) => {
                    let init = map[init.index()];
                    match reads[i].take() {
                        Some(read) => {
                            let name = instr.name.clone();
                            elements[i] = smaller_loop(&mut draft, *op, init, &read, name)?;
                        }
                        None => elements[i] = None,
                    }
                    match elements[i] {
                        Some(_) => init, // nobody takes the state as a whole
                        None => draft.carry(instr, &map),
                    }
                }
                (Op::GetTupleElement(op), &[tuple]) => match &elements[tuple.index()] {
                    Some(values) => values.get(op.index).copied().flatten().unwrap_or(InstrId(0)),
                    None => draft.carry(instr, &map),
                },
                _ => draft.carry(instr, &map),
            };
            map.push(id);
        }
        draft.finish(map[old.root.index()])
    })?;
    // The loops' old bodies are called no more.
    drop_unused(module)
}

/// For each loop whose result is only taken apart, which elements are taken.
fn reads_of_loops(old: &Old) -> Vec<Option<Vec<bool>>> {
    let mut reads: Vec<Option<Vec<bool>>> = old
        .instrs
        .iter()
        .map(|instr| match (&instr.op, instr.shape.as_tuple()) {
            (Op::While(_), Some(elements)) => Some(vec![false; elements.len()]),
            _ => None,
        })
        .collect();
    reads[old.root.index()] = None;
    for instr in &old.instrs {
        let index = match instr.op {
            Op::GetTupleElement(GetTupleElement { index }) => Some(index),
            _ => None,
        };
        for operand in &instr.operands {
            match (index, &mut reads[operand.index()]) {
                (Some(index), Some(read)) => read[index] = true,
                (None, read) => *read = None,
                (Some(_), None) => {}
            }
        }
    }
    reads
}

/// How a computation of one tuple uses it.
struct State {
    /// For each instruction that takes an element of the state, which.
    element: Vec<Option<usize>>,
}

impl State {
    /// `None` if the state is used as a whole.
    fn of(computation: &Computation) -> Option<Self> {
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

/// What is to become of an element of the state.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    /// Nobody reads it.
    Dead,
    /// It is a constant, which is put where it is read.
    Constant,
    /// It stays, in this place.
    Kept(usize),
}

/// Adds the loop with less state, if there is less. Gives what stands for each element after it,
/// where it is read.
fn smaller_loop(
    draft: &mut Draft<'_>,
    op: While,
    init: InstrId,
    read: &[bool],
    name: String,
) -> Result<Option<Vec<Option<InstrId>>>> {
    let Op::Tuple(_) = draft.op(init) else { return Ok(None) };
    let inits = draft.operands(init).to_vec();
    let Some(plan) = Plan::new(draft, op, &inits, read) else { return Ok(None) };
    let changes = plan.fates.iter().any(|fate| !matches!(fate, Fate::Kept(_)));
    if !changes && plan.hoisted.is_empty() && !plan.has_read_invariant(read) {
        return Ok(None);
    }
    // Before the loop: the new state.
    let mut state: Vec<InstrId> = (0..inits.len())
        .filter(|&i| matches!(plan.fates[i], Fate::Kept(_)))
        .map(|i| inits[i])
        .collect();
    state.extend(hoist(draft, op.body, &plan, &inits));
    let state = draft.add(Tuple, &state)?;
    let shape = draft.shape(state).clone();

    let constants: Vec<Option<Vec<Instr>>> = (0..inits.len())
        .map(|i| (plan.fates[i] == Fate::Constant).then(|| constant_chain(draft, inits[i])))
        .collect();
    let body = rewrite(draft, op.body, &plan, &constants, &shape, true)?;
    let condition = rewrite(draft, op.condition, &plan, &constants, &shape, false)?;
    let looped = draft.add(While { condition, body }, &[state])?;
    draft.rename(looped, name);

    // After the loop.
    let mut values = vec![None; inits.len()];
    for i in (0..inits.len()).filter(|&i| read[i]) {
        values[i] = Some(match plan.fates[i] {
            _ if plan.invariant[i] => inits[i],
            Fate::Kept(index) => draft.add(GetTupleElement { index }, &[looped])?,
            Fate::Dead | Fate::Constant => inits[i],
        });
    }
    Ok(Some(values))
}

/// What is known of a loop.
struct Plan {
    fates: Vec<Fate>,
    /// The elements that no iteration changes.
    invariant: Vec<bool>,
    /// The instructions of the body that its result needs.
    live: Vec<bool>,
    /// Those of them that are the same in each iteration.
    same: Vec<bool>,
    /// Those of them that are computed before the loop.
    hoisted: Vec<InstrId>,
}

impl Plan {
    /// `None` if body or condition use the state as a whole.
    fn new(draft: &mut Draft<'_>, op: While, inits: &[InstrId], read: &[bool]) -> Option<Self> {
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
        let (same, hoisted) = invariants(body, &in_body, &invariant, &everything.live, &effects);
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
        Some(Plan { fates, invariant, live: needs.live, same, hoisted })
    }

    /// Whether something after the loop reads what the loop does not change.
    fn has_read_invariant(&self, read: &[bool]) -> bool {
        self.invariant.iter().zip(read).any(|(&invariant, &read)| invariant && read)
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
        effects: &[InstrId],
        given: &[InstrId],
    ) -> Self {
        let next = &body.instr(body.root()).operands;
        let (mut live, mut elements) = (vec![false; body.instrs().len()], vec![false; next.len()]);
        let mut is_given = vec![false; live.len()];
        given.iter().for_each(|id| is_given[id.index()] = true);
        let mut pending = effects.to_vec();
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

/// The instructions of a computation that must run whoever takes their values.
fn effects(draft: &mut Draft<'_>, id: CompId) -> Vec<InstrId> {
    let module = draft.module();
    let computation = module.computation(id);
    computation.ids().filter(|&id| module.has_effect(&computation.instr(id).op)).collect()
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

/// The instructions that make a constant of [`is_constant`]: operands are the ones before.
fn constant_chain(draft: &Draft<'_>, id: InstrId) -> Vec<Instr> {
    let mut chain: Vec<Instr> =
        draft.operands(id).iter().map(|&id| draft.instr(id).clone()).collect();
    chain.push(draft.instr(id).clone());
    chain
}

/// For each live instruction of a body, whether it is the same in each iteration; and those of them
/// to be computed before the loop: what takes work, or depends on what does, and is used by
/// something that changes.
fn invariants(
    body: &Computation,
    state: &State,
    invariant: &[bool],
    live: &[bool],
    effects: &[InstrId],
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
                    && !effects.contains(&id)
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
        for &operand in &body.instr(id).operands {
            let i = operand.index();
            if takes_work[i] && !std::mem::replace(&mut is_hoisted[i], true) {
                hoisted.push(operand);
            }
        }
    }
    (same, hoisted)
}

fn is_static(shape: &Shape) -> bool {
    match shape {
        Shape::Array(array) => array.kinds().iter().all(|&kind| kind == DimKind::Static),
        _ => false,
    }
}

/// Whether an operation takes more than reading its result from memory would.
fn is_work(instr: &Instr) -> bool {
    let count = instr.shape.as_array().map_or(0, |array| array.element_count());
    match &instr.op {
        Op::Dot(_)
        | Op::Convolution(_)
        | Op::Reduce(_)
        | Op::ReduceWindow(_)
        | Op::Sort(_)
        | Op::TopK(_)
        | Op::Gather(_)
        | Op::Scatter(_)
        | Op::Fft(_)
        | Op::Cholesky(_)
        | Op::TriangularSolve(_) => true,
        // Of few elements, not worth an element of the state.
        Op::Transpose(_) | Op::Convert(_) => count >= 64,
        Op::Unary(op) => count >= 64 && op.cost() > Cost::Cheap,
        Op::Binary(op) => count >= 64 && op.cost() > Cost::Cheap,
        _ => false,
    }
}

/// Adds what is hoisted, before the loop.
fn hoist(draft: &mut Draft<'_>, body: CompId, plan: &Plan, inits: &[InstrId]) -> Vec<InstrId> {
    if plan.hoisted.is_empty() {
        return Vec::new();
    }
    let ids = draft.module().computation(body).ids();
    let mut map = vec![InstrId(0); ids.len()];
    for id in ids.filter(|id| plan.same[id.index()]) {
        let instr = draft.module().computation(body).instr(id).clone();
        map[id.index()] = match instr.op {
            // All that is the same takes elements of the state, and nothing else of it.
            Op::GetTupleElement(GetTupleElement { index }) => inits[index],
            _ => draft.insert(instr, &map),
        };
    }
    plan.hoisted.iter().map(|id| map[id.index()]).collect()
}

/// The body or the condition of the new loop.
fn rewrite(
    draft: &mut Draft<'_>,
    id: CompId,
    plan: &Plan,
    constants: &[Option<Vec<Instr>>],
    shape: &Shape,
    is_body: bool,
) -> Result<CompId> {
    let module = draft.module();
    let old = module.computation(id).clone();
    let mut new = Draft::new(module, old.name.clone());
    let parameter = Parameter { number: 0, shape: shape.clone() };
    let state = new.add(parameter, &[])?;
    let kept = plan.fates.iter().filter(|fate| matches!(fate, Fate::Kept(_))).count();
    let mut map = vec![InstrId(0); old.instrs().len()];
    for id in old.ids() {
        let instr = old.instr(id);
        if is_body && !(plan.live[id.index()] || id == old.root()) {
            continue;
        }
        if is_body && let Some(place) = plan.hoisted.iter().position(|&hoisted| hoisted == id) {
            map[id.index()] = new.add(GetTupleElement { index: kept + place }, &[state])?;
            continue;
        }
        map[id.index()] = match instr.op {
            Op::Parameter(_) => state,
            Op::GetTupleElement(GetTupleElement { index })
                if is_parameter(&old, instr.operands[0]) =>
            {
                match (&plan.fates[index], &constants[index]) {
                    (Fate::Kept(index), _) => {
                        let element = GetTupleElement { index: *index };
                        let element = new.add(element, &[state])?;
                        new.rename(element, instr.name.clone());
                        element
                    }
                    (_, Some(chain)) => {
                        let mut last = state;
                        for instr in chain {
                            let operands = vec![last; instr.operands.len()];
                            last = new.push(Instr { operands, ..instr.clone() });
                            new.rename(last, instr.name.clone());
                        }
                        last
                    }
                    (_, None) => state, // dead: what would read it is dead as well
                }
            }
            Op::Tuple(_) if is_body && id == old.root() => {
                let next = instr.operands.iter().zip(&plan.fates);
                let next = next.filter(|(_, fate)| matches!(fate, Fate::Kept(_)));
                let mut next: Vec<InstrId> = next.map(|(id, _)| map[id.index()]).collect();
                for place in 0..plan.hoisted.len() {
                    next.push(new.add(GetTupleElement { index: kept + place }, &[state])?);
                }
                new.add(Tuple, &next)?
            }
            _ => new.carry(instr.clone(), &map),
        };
    }
    let root = map[old.root().index()];
    let computation = new.finish(root)?;
    draft.module().push(computation)
}

fn is_parameter(computation: &Computation, id: InstrId) -> bool {
    parameter_number(&computation.instr(id).op).is_some()
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn state_that_is_dead_or_constant() {
        check(
            "simplify-loops",
            "
            body {
              s = (s32[], s32[], f32[], f32[2], f32[]) parameter(0)
              i = s32[] get-tuple-element(s), index=0
              one = s32[] constant(1)
              next = s32[] add(i, one)
              dead = s32[] get-tuple-element(s), index=1
              dead_next = s32[] add(dead, next)
              step = f32[] get-tuple-element(s), index=2
              steps = f32[2] broadcast(step), dimensions={}
              x = f32[2] get-tuple-element(s), index=3
              y = f32[2] add(x, steps)
              passed = f32[] get-tuple-element(s), index=4
              ROOT t = (s32[], s32[], f32[], f32[2], f32[]) tuple(next, dead_next, step, y, passed)
            }
            condition {
              s = (s32[], s32[], f32[], f32[2], f32[]) parameter(0)
              i = s32[] get-tuple-element(s), index=0
              n = s32[] constant(10)
              ROOT go = pred[] compare(i, n), direction=LT
            }
            ENTRY e {
              x = f32[2] parameter(0)
              p = f32[] parameter(1)
              zero = s32[] constant(0)
              step = f32[] constant(0.5)
              init = (s32[], s32[], f32[], f32[2], f32[]) tuple(zero, zero, step, x, p)
              loop = (s32[], s32[], f32[], f32[2], f32[]) while(init), condition=condition, body=body
              y = f32[2] get-tuple-element(loop), index=3
              q = f32[] get-tuple-element(loop), index=4
              ROOT r = (f32[2], f32[]) tuple(y, q)
            }",
            "
            body.1 {
              parameter = (s32[], f32[2]) parameter(0)
              i = s32[] get-tuple-element(parameter), index=0
              one = s32[] constant(1)
              next = s32[] add(i, one)
              step = f32[] constant(0.5)
              steps = f32[2] broadcast(step), dimensions={}
              x = f32[2] get-tuple-element(parameter), index=1
              y = f32[2] add(x, steps)
              ROOT tuple = (s32[], f32[2]) tuple(next, y)
            }
            condition.1 {
              parameter = (s32[], f32[2]) parameter(0)
              i = s32[] get-tuple-element(parameter), index=0
              n = s32[] constant(10)
              ROOT go = pred[] compare(i, n), direction=LT
            }
            ENTRY e {
              x = f32[2] parameter(0)
              p = f32[] parameter(1)
              zero = s32[] constant(0)
              tuple = (s32[], f32[2]) tuple(zero, x)
              loop = (s32[], f32[2]) while(tuple), condition=condition.1, body=body.1
              get-tuple-element = f32[2] get-tuple-element(loop), index=1
              ROOT r = (f32[2], f32[]) tuple(get-tuple-element, p)
            }",
        );
    }

    #[test]
    fn work_that_is_the_same_each_time() {
        check(
            "simplify-loops",
            "
            body {
              s = (s32[], f32[8,8], f32[8,8]) parameter(0)
              i = s32[] get-tuple-element(s), index=0
              one = s32[] constant(1)
              next = s32[] add(i, one)
              w = f32[8,8] get-tuple-element(s), index=1
              turned = f32[8,8] transpose(w), dimensions={1,0}
              negated = f32[8,8] negate(turned)
              x = f32[8,8] get-tuple-element(s), index=2
              y = f32[8,8] add(x, negated)
              ROOT t = (s32[], f32[8,8], f32[8,8]) tuple(next, w, y)
            }
            condition {
              s = (s32[], f32[8,8], f32[8,8]) parameter(0)
              i = s32[] get-tuple-element(s), index=0
              n = s32[] constant(10)
              ROOT go = pred[] compare(i, n), direction=LT
            }
            ENTRY e {
              w = f32[8,8] parameter(0)
              x = f32[8,8] parameter(1)
              zero = s32[] constant(0)
              init = (s32[], f32[8,8], f32[8,8]) tuple(zero, w, x)
              loop = (s32[], f32[8,8], f32[8,8]) while(init), condition=condition, body=body
              ROOT y = f32[8,8] get-tuple-element(loop), index=2
            }",
            "
            body.1 {
              parameter = (s32[], f32[8,8], f32[8,8]) parameter(0)
              i = s32[] get-tuple-element(parameter), index=0
              one = s32[] constant(1)
              next = s32[] add(i, one)
              get-tuple-element = f32[8,8] get-tuple-element(parameter), index=2
              x = f32[8,8] get-tuple-element(parameter), index=1
              y = f32[8,8] add(x, get-tuple-element)
              get-tuple-element.1 = f32[8,8] get-tuple-element(parameter), index=2
              ROOT tuple = (s32[], f32[8,8], f32[8,8]) tuple(next, y, get-tuple-element.1)
            }
            condition.1 {
              parameter = (s32[], f32[8,8], f32[8,8]) parameter(0)
              i = s32[] get-tuple-element(parameter), index=0
              n = s32[] constant(10)
              ROOT go = pred[] compare(i, n), direction=LT
            }
            ENTRY e {
              w = f32[8,8] parameter(0)
              x = f32[8,8] parameter(1)
              zero = s32[] constant(0)
              turned = f32[8,8] transpose(w), dimensions={1,0}
              negated = f32[8,8] negate(turned)
              tuple = (s32[], f32[8,8], f32[8,8]) tuple(zero, x, negated)
              loop = (s32[], f32[8,8], f32[8,8]) while(tuple), condition=condition.1, body=body.1
              ROOT get-tuple-element = f32[8,8] get-tuple-element(loop), index=1
            }",
        );
    }
}
