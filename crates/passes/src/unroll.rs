//! Loops that run a few times.

use helio_ir::ops::{Parameter, While};
use helio_ir::{ArrayShape, CompId, Instr, InstrId, Literal, Module, Number, Op, Result, Shape};

use crate::draft::Draft;
use crate::inline::insert;
use crate::rebuild::{contains, rebuild};
use crate::recognize::counted_loop;

/// A loop of more iterations is left as it is.
const MAX_TRIPS: u64 = 8;

/// So many instructions a loop may become.
const MAX_INSTRS: u64 = 1024;

/// So many instructions may be added in all: loops may share their bodies.
const MAX_ADDED: u64 = 1 << 17;

/// So many iterations of an elementwise loop may become one.
const MAX_MERGED: u64 = 16;

/// So many instructions the merged iterations may have: what is computed at once should stay in
/// registers.
const MAX_MERGED_INSTRS: u64 = 256;

/// Arrays of so many elements do not stay in the nearest cache from one iteration to the next.
const MIN_ELEMENTS: usize = 4096;

/// Replaces a loop whose number of iterations is known and small by as many copies of its body.
/// What is left of the counter folds away, and the iterations fuse with each other and with what
/// stands around the loop.
///
/// Of a longer loop that only computes element by element, on large arrays, several iterations
/// become one, which reads and writes the arrays once.
pub(crate) fn unroll_loops(module: Module) -> Result<Module> {
    if !contains(&module, |op| matches!(op, Op::While(_))) {
        return Ok(module);
    }
    let mut added = 0;
    rebuild(module, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            let Op::While(op) = instr.op else {
                map.push(draft.carry(instr, &map));
                continue;
            };
            let init = map[instr.operands[0].index()];
            let trips = trips(&mut draft, &op, init).filter(|_| added <= MAX_ADDED);
            map.push(match trips {
                Some(trips) if is_small(&mut draft, &op, trips) => {
                    added += trips * size(&draft, op.body);
                    (0..trips).fold(init, |state, _| insert(&mut draft, op.body, &[state]))
                }
                Some(trips) => {
                    let mut instr = instr;
                    if let Some(body) = merged_iterations(&mut draft, &op, trips)? {
                        added += size(&draft, body);
                        instr.op = While { body, ..op }.into();
                    }
                    draft.carry(instr, &map)
                }
                None => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })
}

fn size(draft: &Draft<'_>, id: CompId) -> u64 {
    draft.callees().computation(id).instrs().len() as u64
}

fn is_small(draft: &mut Draft<'_>, op: &While, trips: u64) -> bool {
    let body = draft.module().computation(op.body).instrs();
    // Loops in the body would multiply with this one.
    let is_flat = body.iter().all(|instr| instr.op.callees().len() < 2);
    is_flat && trips <= MAX_TRIPS && trips * body.len() as u64 <= MAX_INSTRS
}

/// A body that does what several iterations do, if that saves reading and writing: every element
/// goes its own way, and there are many.
fn merged_iterations(draft: &mut Draft<'_>, op: &While, trips: u64) -> Result<Option<CompId>> {
    let body = draft.module().computation(op.body);
    let size = body.instrs().len() as u64;
    let elements = |instr: &Instr| instr.shape.as_array().map_or(0, ArrayShape::element_count);
    let largest = body.instrs().iter().map(elements).max().unwrap_or(0);
    if largest < MIN_ELEMENTS || !body.instrs().iter().all(is_elementwise) {
        return Ok(None);
    }
    let most = MAX_MERGED.min(MAX_MERGED_INSTRS / size.max(1));
    // The condition is asked less often, so the number must divide that of the iterations.
    let Some(merged) = (2..=most).rev().find(|merged| trips.is_multiple_of(*merged)) else {
        return Ok(None);
    };
    let (name, shape) = (body.name.clone(), body.result_shape().clone());
    let mut new = Draft::new(draft.module(), name);
    let state = new.add(Parameter { number: 0, shape }, &[])?;
    let root = (0..merged).fold(state, |state, _| insert(&mut new, op.body, &[state]));
    let body = new.finish(root)?;
    draft.module().push(body).map(Some)
}

/// Whether an instruction computes each element from the same elements of its operands, or makes
/// them from scalars.
fn is_elementwise(instr: &Instr) -> bool {
    let is_array = |shape: &Shape| shape.as_array().is_some_and(ArrayShape::is_static);
    match &instr.op {
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Clamp(_)
        | Op::Convert(_)
        | Op::Constant(_)
        | Op::Iota(_)
        | Op::GetTupleElement(_) => is_array(&instr.shape),
        Op::Broadcast(op) => op.dimensions.is_empty(),
        Op::Parameter(_) | Op::Tuple(_) => true,
        _ => false,
    }
}

/// How often a loop runs, if its counter starts at a constant.
fn trips(draft: &mut Draft<'_>, op: &While, init: InstrId) -> Option<u64> {
    let counter = counted_loop(draft.module(), op.condition, op.body)?;
    let start = match counter.index {
        None => init,
        Some(index) => match draft.op(init) {
            Op::Tuple(_) => *draft.operands(init).get(index)?,
            _ => return None,
        },
    };
    match draft.op(start) {
        Op::Constant(constant) if !constant.elided => match &constant.literal {
            Literal::Array(array) if array.shape().is_scalar() => match array.number(0) {
                Number::Int(start) => counter.trips(start),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{after, check};

    fn counting(start: i32, compare: &str, step: i32) -> String {
        format!(
            "body {{ s = (s32[], f32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0  x = f32[] get-tuple-element(s), index=1
               one = s32[] constant({step})  j = s32[] add(i, one)  y = f32[] negate(x)
               ROOT t = (s32[], f32[]) tuple(j, y) }}
             cond {{ s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
               n = s32[] constant(3)  ROOT p = pred[] {compare} }}
             ENTRY e {{ x = f32[] parameter(0)  i = s32[] constant({start})
               s = (s32[], f32[]) tuple(i, x)
               l = (s32[], f32[]) while(s), condition=cond, body=body
               ROOT r = f32[] get-tuple-element(l), index=1 }}"
        )
    }

    #[test]
    fn three_times() {
        let negations =
            |text: &str| after("unroll-loops,remove-dead-code", text).matches("negate").count();
        assert_eq!(negations(&counting(0, "compare(i, n), direction=LT", 1)), 3);
        assert_eq!(negations(&counting(0, "compare(n, i), direction=GE", 2)), 2);
        assert_eq!(negations(&counting(5, "compare(i, n), direction=GT", -1)), 2);
        assert_eq!(negations(&counting(0, "compare(i, n), direction=NE", 1)), 3);
    }

    #[test]
    fn what_stays() {
        for text in [
            counting(0, "compare(i, n), direction=NE", 2), // It wraps around before it ends.
            counting(-100, "compare(i, n), direction=LT", 1),
            counting(0, "compare(i, n), direction=LT", -1),
            counting(0, "compare(i, i), direction=EQ", 1),
        ] {
            assert!(after("unroll-loops", &text).contains("while("), "{text}");
        }
    }

    #[test]
    fn several_iterations_become_one() {
        let text = |trips: u32, op: &str| {
            format!(
                "body {{ s = (s32[], f32[5000]) parameter(0)
                   i = s32[] get-tuple-element(s), index=0
                   x = f32[5000] get-tuple-element(s), index=1
                   one = s32[] constant(1)  j = s32[] add(i, one)  y = f32[5000] {op}
                   ROOT t = (s32[], f32[5000]) tuple(j, y) }}
                 cond {{ s = (s32[], f32[5000]) parameter(0)
                   i = s32[] get-tuple-element(s), index=0
                   n = s32[] constant({trips})  ROOT p = pred[] compare(i, n), direction=LT }}
                 ENTRY e {{ x = f32[5000] parameter(0)  i = s32[] constant(0)
                   s = (s32[], f32[5000]) tuple(i, x)
                   l = (s32[], f32[5000]) while(s), condition=cond, body=body
                   ROOT r = f32[5000] get-tuple-element(l), index=1 }}"
            )
        };
        let bodies =
            |text: &str, op: &str| after("unroll-loops,remove-dead-code", text).matches(op).count();
        assert_eq!(bodies(&text(50, "negate(x)"), "negate("), 10);
        assert_eq!(bodies(&text(53, "negate(x)"), "negate("), 1);
        assert_eq!(bodies(&text(50, "reverse(x), dimensions={0}"), "reverse("), 1);
    }

    #[test]
    fn never() {
        check(
            "unroll-loops,remove-dead-code",
            &counting(3, "compare(i, n), direction=LT", 1),
            "ENTRY e { x = f32[] parameter(0)  i = s32[] constant(3)
               s = (s32[], f32[]) tuple(i, x)
               ROOT r = f32[] get-tuple-element(s), index=1 }",
        );
    }
}
