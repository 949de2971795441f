//! The pass that puts called computations in the place of their calls.

use helio_ir::ops::Broadcast;
use helio_ir::{ArrayShape, CompId, Computation, Instr, InstrId, Module, Op, Result, Shape};

use crate::draft::{Draft, is_elementwise, parameter_number};
use crate::growth::Growth;
use crate::pass::PassCx;
use crate::rebuild::{calls, drop_unused, rebuild};

/// Puts what `call` and `fusion` run in the place of the instruction, and what `map` runs as
/// operations on whole arrays: always if nothing else calls it, and else as long as there is room for
/// copies.
pub(crate) fn inline(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::Call(_) | Op::Fusion(_) | Op::Map(_))) {
        return Ok(module);
    }
    // Without what nobody needs, the new module's computations have the numbers of the old ones.
    let module = drop_unused(module, cx.watch)?;
    let callers = callers(&module);
    let mut growth = Growth::of_pass(cx.watch);
    let mut to_reserve = growth.left();
    let module = rebuild(module, cx.watch, |new, computation| {
        let is_inlined = |id: &InstrId| callee(&computation.instr(*id).op).is_some();
        if !computation.callers().iter().any(is_inlined) {
            let (draft, root) = Draft::of(new, computation);
            return draft.finish(root);
        }
        let called =
            computation.callers().iter().filter_map(|id| callee(&computation.instr(*id).op));
        let (mut taken_over, mut copied) = (0, 0);
        for callee in called {
            let only = callers[callee.index()] == 1;
            let sum: &mut usize = if only { &mut taken_over } else { &mut copied };
            *sum = sum.saturating_add(new.computation(callee).instrs().len());
        }
        let (mut draft, old) = Draft::replacing(new, computation);
        // What is copied is limited in all; whether a call is left as it is, is not known yet.
        let copied = copied.min(to_reserve);
        to_reserve -= copied;
        draft.reserve(taken_over + copied);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            draft.stand_for(&instr);
            let mapped = || -> Vec<_> { instr.operands.iter().map(|id| map[id.index()]).collect() };
            let inlined = match callee(&instr.op) {
                Some(callee) => {
                    let size = draft.callees().computation(callee).instrs().len();
                    if callers[callee.index()] > 1 && !growth.take(size) {
                        None
                    } else if let Op::Map(_) = instr.op {
                        insert_map(&mut draft, callee, &mapped(), &instr.shape)?
                    } else if callers[callee.index()] == 1 {
                        let callee = draft.module().take(callee);
                        Some(take_over(&mut draft, callee, &mapped()))
                    } else {
                        Some(insert(&mut draft, callee, &mapped()))
                    }
                }
                None => None,
            };
            map.push(match inlined {
                Some(id) => id,
                None => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })?;
    // The computations that were called are not any more.
    drop_unused(module, cx.watch)
}

fn callee(op: &Op) -> Option<CompId> {
    match op {
        Op::Call(op) => Some(op.to_apply),
        Op::Fusion(op) => Some(op.calls),
        Op::Map(op) => Some(op.to_apply),
        _ => None,
    }
}

/// For each computation, how many instructions call it.
fn callers(module: &Module) -> Vec<usize> {
    let mut callers = vec![0; module.computations().len()];
    for computation in module.computations() {
        for &id in computation.callers() {
            let callees = computation.instr(id).op.callees();
            callees.into_iter().for_each(|callee| callers[callee.index()] += 1);
        }
    }
    callers
}

/// Adds the instructions of a computation, with these arguments for its parameters; gives what its
/// root became.
pub(crate) fn insert(draft: &mut Draft<'_>, callee: CompId, args: &[InstrId]) -> InstrId {
    let ids = draft.module().computation(callee).ids();
    let mut map: Vec<InstrId> = Vec::with_capacity(ids.len());
    for id in ids {
        let instr = draft.module().computation(callee).instr(id);
        map.push(match parameter_number(&instr.op) {
            Some(number) => args[number],
            None => {
                let instr = instr.clone();
                draft.carry(instr, &map)
            }
        });
    }
    map[draft.module().computation(callee).root().index()]
}

/// As [`insert`], of a computation that nothing else needs.
fn take_over(draft: &mut Draft<'_>, callee: Computation, args: &[InstrId]) -> InstrId {
    let root = callee.root();
    let mut map: Vec<InstrId> = Vec::with_capacity(callee.instrs().len());
    for instr in callee.into_instrs() {
        map.push(match parameter_number(&instr.op) {
            Some(number) => args[number],
            None => draft.carry(instr, &map),
        });
    }
    map[root.index()]
}

/// Adds the operations of a scalar computation as operations on arrays; `None` if it has others
/// than elementwise ones.
fn insert_map(
    draft: &mut Draft<'_>,
    callee: CompId,
    args: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let Some(result) = shape.as_array().filter(|array| array.is_static()) else { return Ok(None) };
    let computation = draft.module().computation(callee);
    let is_scalar = |instr: &Instr| instr.shape.as_array().is_some_and(ArrayShape::is_scalar);
    // On scalars these mean the same as for each element of arrays.
    let is_mapped =
        |op: &Op| matches!(op, Op::Parameter(_) | Op::Constant(_)) || is_elementwise(op);
    if !computation.instrs().iter().all(|instr| is_scalar(instr) && is_mapped(&instr.op)) {
        return Ok(None);
    }
    let mut map: Vec<InstrId> = Vec::with_capacity(computation.instrs().len());
    for id in computation.ids() {
        let instr = draft.module().computation(callee).instr(id).clone();
        map.push(match (&instr.op, &instr.shape) {
            (Op::Parameter(op), _) => args[op.number],
            (Op::Constant(_), Shape::Array(scalar)) => {
                let shape = ArrayShape::new(scalar.element(), result.dims())?;
                let scalar = draft.carry(instr, &map);
                draft.add(Broadcast { shape, dimensions: Vec::new() }, &[scalar])?
            }
            _ => {
                let operands: Vec<_> = instr.operands.iter().map(|id| map[id.index()]).collect();
                draft.add(instr.op, &operands)?
            }
        });
    }
    Ok(Some(map[draft.module().computation(callee).root().index()]))
}

#[cfg(test)]
mod tests {
    use crate::testing::{after, check};

    #[test]
    fn calls_that_multiply() {
        let mut text = "f0 { a = f32[] parameter(0)  ROOT b = f32[] negate(a) }".to_owned();
        for i in 1..64 {
            let callee = i - 1;
            text += &format!(
                "f{i} {{ a = f32[] parameter(0)  b = f32[] call(a), to_apply=f{callee}
                 ROOT c = f32[] call(b), to_apply=f{callee} }}"
            );
        }
        text += "ENTRY e { a = f32[] parameter(0)  ROOT b = f32[] call(a), to_apply=f63 }";
        assert!(after("inline", &text).len() < 1 << 22);
    }

    #[test]
    fn maps() {
        check(
            "inline",
            "
            f {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              two = f32[] constant(2)
              c = f32[] multiply(a, two)
              ROOT d = f32[] subtract(c, b)
            }
            ENTRY e {
              x = f32[3] parameter(0)
              y = f32[3] parameter(1)
              ROOT z = f32[3] map(x, y), dimensions={0}, to_apply=f
            }",
            "
            ENTRY e {
              x = f32[3] parameter(0)
              y = f32[3] parameter(1)
              two = f32[] constant(2)
              broadcast = f32[3] broadcast(two), dimensions={}
              multiply = f32[3] multiply(x, broadcast)
              ROOT subtract = f32[3] subtract(multiply, y)
            }",
        );
    }

    #[test]
    fn calls_and_fusions() {
        check(
            "inline",
            "
            f { a = f32[] parameter(1)  b = f32[] parameter(0)  ROOT c = f32[] subtract(a, b) }
            g { a = f32[] parameter(0)  b = f32[] call(a, a), to_apply=f  ROOT c = f32[] negate(b) }
            ENTRY e {
              a = f32[] parameter(0)
              x = f32[] call(a), to_apply=g
              y = f32[] fusion(x), kind=kLoop, calls=g
              ROOT z = f32[] call(y, a), to_apply=f
            }",
            "
            ENTRY e {
              a = f32[] parameter(0)
              c = f32[] subtract(a, a)
              c.1 = f32[] negate(c)
              c.2 = f32[] subtract(c.1, c.1)
              c.3 = f32[] negate(c.2)
              ROOT c.4 = f32[] subtract(a, c.3)
            }",
        );
    }
}
