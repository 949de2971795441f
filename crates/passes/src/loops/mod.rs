//! What loops carry from one iteration to the next.

mod plan;
mod ranges;
mod rewrite;
mod turn;

use std::iter::zip;

use helio_ir::ops::{Constant, Convert, GetTupleElement, Tuple, While};
use helio_ir::{Array, ArrayShape, CompId, InstrId, Module, Name, Op, Result};

use crate::draft::{Draft, Original};
use crate::growth::Growth;
use crate::pass::PassCx;
use crate::rebuild::{calls, drop_unused, rebuild};
pub(crate) use plan::State;
use plan::{Fate, LoopAnalysis};
use ranges::{known_comparisons, narrowed};
use rewrite::{NewState, constant_chain};
use turn::with_turned_matrices;

/// Takes out of a loop's state what nobody reads and what is the same constant in each iteration,
/// computes before the loop what is the same in each iteration and takes work, transposes matrices there whose rows
/// each iteration multiplies with a vector, puts the answer in the place of comparisons of what counts with what it
/// never reaches, counts in 32 bits where nothing else has 64, and lets users of what does not change have what went in.
pub(crate) fn simplify_loops(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::While(_))) {
        return Ok(module);
    }
    let mut growth = Growth::of_pass(cx.watch);
    let module = rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut reads = reads_of_loops(&old);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        // For each loop made anew, what stands for the elements of its old state.
        let mut elements: Vec<Option<Vec<Option<InstrId>>>> = vec![None; old.instrs.len()];
        for (i, instr) in old.instrs.into_iter().enumerate() {
            draft.stand_for(&instr);
            let id = match (&instr.op, &instr.operands[..]) {
                (Op::While(op), &[init]) => {
                    let init = map[init.index()];
                    let size = |id| draft.callees().computation(id).instrs().len();
                    let size = size(op.body) + size(op.condition);
                    if let Some(read) = reads[i].take().filter(|_| growth.take(size)) {
                        let name = instr.name.clone();
                        elements[i] = smaller_loop(&mut draft, *op, init, &read, name)?;
                    }
                    match elements[i] {
                        Some(_) => init, // nobody takes the state as a whole
                        None => draft.carry(instr, &map),
                    }
                }
                (Op::GetTupleElement(op), &[tuple]) => match &elements[tuple.index()] {
                    Some(values) => values[op.index].unwrap_or(map[tuple.index()]),
                    None => draft.carry(instr, &map),
                },
                _ => draft.carry(instr, &map),
            };
            map.push(id);
        }
        draft.finish(map[old.root.index()])
    })?;
    // The loops' old bodies are called no more.
    drop_unused(module, cx.watch)
}

/// For each loop whose result is only taken apart, which elements are taken.
fn reads_of_loops(old: &Original) -> Vec<Option<Vec<bool>>> {
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

/// Adds the loop with less state, if there is less. Gives what stands for each element after it,
/// where it is read.
fn smaller_loop(
    draft: &mut Draft<'_>,
    op: While,
    init: InstrId,
    read: &[bool],
    name: Name,
) -> Result<Option<Vec<Option<InstrId>>>> {
    let Op::Tuple(_) = draft.op(init) else { return Ok(None) };
    let inits = draft.operands(init).to_vec();
    let body = with_turned_matrices(draft, op.body)?.unwrap_or(op.body);
    let op = While { body, ..op };
    let Some(plan) = LoopAnalysis::new(draft, op, &inits, read) else { return Ok(None) };
    let changes = plan.fates.iter().any(|fate| !matches!(fate, Fate::Kept(_)));
    let known = known_comparisons(draft, op, &inits);
    let mut narrowed = narrowed(draft, op, &inits);
    let is_kept = |fate: &Fate| matches!(fate, Fate::Kept(_));
    zip(&mut narrowed, &plan.fates)
        .filter(|(_, fate)| !is_kept(fate))
        .for_each(|(count, _)| *count = None);
    let changes =
        changes || known.iter().any(Option::is_some) || narrowed.iter().any(Option::is_some);
    if !changes && plan.hoisted.is_empty() && !plan.has_read_invariant(read) {
        return Ok(None);
    }
    // Before the loop: the new state.
    let mut state: Vec<InstrId> = Vec::with_capacity(plan.kept());
    for ((&id, fate), count) in zip(zip(&inits, &plan.fates), &narrowed) {
        match (fate, count) {
            (Fate::Kept(_), Some(count)) => {
                state.push(draft.add(Constant::new(Array::scalar(count.start as i32)), &[])?);
            }
            (Fate::Kept(_), None) => state.push(id),
            (Fate::Dead | Fate::Constant, _) => {}
        }
    }
    state.extend(hoist(draft, op.body, &plan, &inits));
    let state = draft.add(Tuple, &state)?;
    let constants = inits.iter().zip(&plan.fates);
    let constants = constants
        .map(|(&id, fate)| (*fate == Fate::Constant).then(|| constant_chain(draft, id)))
        .collect();
    let shape = draft.shape(state).clone();
    let new_state = NewState { plan: &plan, constants, known, narrowed, shape };
    let (body, condition) = (new_state.body(draft, op.body)?, new_state.condition(draft, op)?);
    let looped = draft.add(While { condition, body }, &[state])?;
    draft.rename(looped, name);

    // After the loop.
    let mut values = vec![None; inits.len()];
    for i in (0..inits.len()).filter(|&i| read[i]) {
        values[i] = Some(match plan.fates[i] {
            _ if plan.invariant[i] => inits[i],
            Fate::Kept(index) => {
                let element = draft.add(GetTupleElement { index }, &[looped])?;
                match (&new_state.narrowed[i], draft.array(inits[i]).map(ArrayShape::element)) {
                    (Some(_), Some(to)) => draft.add(Convert { element: to }, &[element])?,
                    _ => element,
                }
            }
            Fate::Dead | Fate::Constant => inits[i],
        });
    }
    Ok(Some(values))
}

/// Adds what is hoisted, before the loop.
fn hoist(
    draft: &mut Draft<'_>,
    body: CompId,
    plan: &LoopAnalysis,
    inits: &[InstrId],
) -> Vec<InstrId> {
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
            _ => draft.carry(instr, &map),
        };
    }
    plan.hoisted.iter().map(|id| map[id.index()]).collect()
}
