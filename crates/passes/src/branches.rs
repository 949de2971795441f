//! Conditionals whose branches are next to nothing.

use helio_ir::ops::{Compare, Constant, Cost, Direction, GetTupleElement, Order, Select, Tuple};
use helio_ir::{Array, CompId, InstrId, Module, Op, Result, Shape};

use crate::draft::{Draft, is_elementwise};
use crate::growth::Growth;
use crate::inline::insert;
use crate::pass::PassCx;
use crate::rebuild::{calls, drop_unused, rebuild};

/// A branch of more instructions is left where it is.
const MAX_INSTRS: usize = 64;

/// What both branches may cost, in cheap operations on one element: about as much as deciding
/// between them.
const MAX_WORK: usize = 1 << 14;

/// Computes both branches of a conditional, where they are a few element-wise operations, and
/// selects: that fuses with what stands around it, and lets a loop around it be one kernel.
pub(crate) fn select_branches(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::Conditional(_))) {
        return Ok(module);
    }
    let mut growth = Growth::of_pass(cx.watch);
    let module = rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            draft.stand_for(&instr);
            let selected = match &instr.op {
                Op::Conditional(op) => {
                    let operands: Vec<_> =
                        instr.operands.iter().map(|id| map[id.index()]).collect();
                    selected(&mut draft, &op.branches, &operands, &instr.shape, &mut growth)?
                }
                _ => None,
            };
            map.push(match selected {
                Some(id) => {
                    draft.name(id, instr);
                    id
                }
                None => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })?;
    drop_unused(module, cx.watch)
}

/// The result of a conditional of two branches, selected.
fn selected(
    draft: &mut Draft<'_>,
    branches: &[CompId],
    operands: &[InstrId],
    shape: &Shape,
    growth: &mut Growth,
) -> Result<Option<InstrId>> {
    let (&[first, second], &[selector, x, y]) = (branches, operands) else { return Ok(None) };
    let (Some(a), Some(b)) = (work(draft.callees(), first), work(draft.callees(), second)) else {
        return Ok(None);
    };
    let leaves = match shape {
        Shape::Tuple(elements) => elements.as_slice(),
        array => std::slice::from_ref(array),
    };
    let sizes: Option<usize> =
        leaves.iter().map(|leaf| Some(leaf.as_array()?.element_count())).sum();
    if sizes.is_none_or(|size| a.saturating_add(b).saturating_add(size) > MAX_WORK) {
        return Ok(None);
    }
    let instrs = branches.iter().map(|&id| draft.callees().computation(id).instrs().len());
    if !growth.take(instrs.sum()) {
        return Ok(None);
    }
    let is_pred = draft.array(selector).is_some_and(|array| array.element().is_pred());
    let when = if is_pred {
        selector
    } else {
        // Every other index means the last branch.
        let zero = draft.add(Constant::new(Array::scalar(0_i32)), &[])?;
        let op = Compare { direction: Direction::Eq, order: Order::Default };
        draft.add(op, &[selector, zero])?
    };
    let (yes, no) = (insert(draft, first, &[x]), insert(draft, second, &[y]));
    let Shape::Tuple(elements) = shape else {
        return draft.add(Select, &[when, yes, no]).map(Some);
    };
    let mut results = Vec::with_capacity(elements.len());
    for index in 0..elements.len() {
        let element = GetTupleElement { index };
        let (yes, no) = (draft.add(element, &[yes])?, draft.add(element, &[no])?);
        results.push(draft.add(Select, &[when, yes, no])?);
    }
    draft.add(Tuple, &results).map(Some)
}

/// What it costs to compute a branch, in cheap operations on one element; `None` if it is long, or
/// has other than element-wise operations.
fn work(module: &Module, id: CompId) -> Option<usize> {
    let computation = module.computation(id);
    if computation.instrs().len() > MAX_INSTRS {
        return None;
    }
    computation.instrs().iter().try_fold(0_usize, |sum, instr| {
        let weight = match &instr.op {
            Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) => return Some(sum),
            Op::Constant(op) if !op.elided => 1,
            Op::Iota(_) | Op::Broadcast(_) | Op::Reshape(_) => 1,
            Op::Unary(op) => weight(op.cost()),
            Op::Binary(op) => weight(op.cost()),
            op if is_elementwise(op) => 1,
            _ => return None,
        };
        let array = instr.shape.as_array().filter(|array| array.is_static())?;
        Some(sum.saturating_add(array.element_count().saturating_mul(weight)))
    })
}

fn weight(cost: Cost) -> usize {
    match cost {
        Cost::Cheap => 1,
        Cost::Division => 8,
        Cost::Transcendental => 25,
    }
}
