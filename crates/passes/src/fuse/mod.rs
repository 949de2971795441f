//! Fusion: instructions that are computed together, element by element, without their values going
//! through memory.
//!
//! Instructions are visited from the last to the first. One that can be fused and belongs nowhere
//! yet begins a fusion, which then grows towards its operands: an operand joins if all its users are
//! there already; if not, it is computed in each place (if that is cheap) or becomes another result
//! of the fusion (if it has an element for each of its loops' points, and nothing outside lies
//! between). Reductions join where they fit the fusion's loops ([`space`]), so that a softmax, or a
//! layer norm with its gradient, becomes one fusion. What would be computed at many places for each
//! point, as a stencil of a stencil, stays outside ([`paths`]). What has effects, or control
//! predecessors, is part of no fusion, and stays in the order of the program ([`order`]).

mod class;
mod grow;
mod ids;
mod line;
mod order;
mod paths;
mod shared;
mod space;

use std::collections::HashSet;

use helio_ir::ops::{Fusion, GetTupleElement, Yield};
use helio_ir::{Computation, Error, Instr, InstrId, Module, Op, Result};

use crate::draft::{Draft, Original, unnamed};
use crate::pass::PassCx;
use crate::rebuild::rebuild;
use class::FusionClass;
pub(crate) use class::MAX_WRITTEN_OUT;
use grow::{Group, Groups};
use order::Unit;
use shared::{Outline, Shared};

/// Puts instructions that can be computed together into fusions.
pub(crate) fn fuse(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let run = run_as_a_whole(&module);
    let mut shared = Shared::default();
    rebuild(module, cx.watch, |new, computation| {
        if !run.contains(&computation.name) {
            return Ok(computation);
        }
        let groups = Groups::of(new, &computation, cx)?;
        match groups.order(&computation) {
            Some(order) if !groups.groups.is_empty() => {
                let (draft, old) = Draft::replacing(new, computation);
                replace(draft, old, &groups, &order, &mut shared)
            }
            _ => Ok(computation),
        }
    })
}

/// The names of the computations that run on whole arrays, rather than for each element.
fn run_as_a_whole(module: &Module) -> HashSet<String> {
    let mut run = HashSet::from([module.entry_id()]);
    for id in module.ids().rev().filter(|id| *id <= module.entry_id()) {
        if !run.contains(&id) {
            continue;
        }
        for instr in module.computation(id).instrs() {
            if matches!(
                instr.op,
                Op::While(_) | Op::Conditional(_) | Op::Call(_) | Op::AsyncStart(_)
            ) {
                run.extend(instr.op.callees());
            }
        }
    }
    run.into_iter().map(|id| module.computation(id).name.clone()).collect()
}

/// The computation with fusions.
fn replace(
    mut draft: Draft<'_>,
    old: Original,
    groups: &Groups,
    order: &[Unit],
    shared: &mut Shared,
) -> Result<Computation> {
    let mut map: Vec<Option<InstrId>> = vec![None; old.instrs.len()];
    for unit in order {
        match *unit {
            Unit::Single(id) => {
                let mut instr = old.instrs[id.index()].clone();
                for operand in &mut instr.operands {
                    *operand = made(&map, *operand)?;
                }
                if let Some(extra) = &mut instr.extra {
                    let before = std::mem::take(&mut extra.control_predecessors);
                    let kept = before.into_iter().filter_map(|id| map[id.index()]);
                    extra.control_predecessors = kept.collect();
                }
                map[id.index()] = Some(draft.push(instr));
            }
            Unit::Group(number) => {
                let group = &groups.groups[number];
                fusion(&mut draft, &old.instrs, group, &mut map, shared)?;
            }
        }
    }
    let root = made(&map, old.root)?;
    draft.finish(root)
}

fn made(map: &[Option<InstrId>], id: InstrId) -> Result<InstrId> {
    map[id.index()].ok_or_else(|| Error::internal("an operand is not made before its user"))
}

/// Adds a fusion, and notes what stands for its results.
fn fusion(
    draft: &mut Draft<'_>,
    instrs: &[Instr],
    group: &Group,
    map: &mut [Option<InstrId>],
    shared: &mut Shared,
) -> Result<()> {
    draft.stand_for(&instrs[group.root.index()]);
    let outline = Outline::new(instrs, group);
    let operands = outline.operands.iter().map(|&operand| made(map, operand));
    let operands = operands.collect::<Result<Vec<_>>>()?;
    let calls = shared.push(draft.module(), &outline)?;
    let shape = draft.callees().computation(calls).result_shape().without_layout();
    let kind = if group.folds { "kInput" } else { "kLoop" };
    let op = Fusion { kind: kind.to_owned(), calls, output_to_operand_aliasing: None };
    let mut instr = unnamed(Op::from(op), &operands, shape);
    // (Its own, since equal fusions share one computation.)
    let members = group.members.iter().map(|id| &instrs[id.index()].origins);
    instr.origins =
        shared.origins.of([&instrs[group.root.index()].origins].into_iter().chain(members));
    if let [only] = group.outputs[..] {
        instr.name.clone_from(&instrs[only.index()].name);
        map[only.index()] = Some(draft.push(instr));
        return Ok(());
    }
    let fusion = draft.push(instr);
    for (index, id) in group.outputs.iter().enumerate() {
        let old = &instrs[id.index()];
        let element = Op::GetTupleElement(GetTupleElement { index });
        let mut instr = unnamed(element, &[fusion], old.shape.without_layout());
        instr.name.clone_from(&old.name);
        instr.origins.clone_from(&old.origins);
        map[id.index()] = Some(draft.push(instr));
    }
    Ok(())
}

/// Whether instructions of a class do anything that a kernel of its own is worth.
fn computes(class: FusionClass, op: &Op) -> bool {
    match class {
        FusionClass::Cheap | FusionClass::Costly | FusionClass::Reduce => true,
        FusionClass::Free => matches!(op, Op::Iota(_)),
        FusionClass::Boundary | FusionClass::Movement | FusionClass::Update => false,
    }
}

/// Whether an instruction that is made anew wherever it is needed would be a copy by itself.
fn copies(op: &Op) -> bool {
    op.gives() == Yield::Moved
}

#[cfg(test)]
mod tests;
