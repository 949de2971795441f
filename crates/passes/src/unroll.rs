//! The pass that replaces loops of a few iterations by copies of their bodies.

use helio_ir::ops::While;
use helio_ir::{CompId, InstrId, Literal, Module, Number, Op, Result};

use crate::draft::Draft;
use crate::growth::Growth;
use crate::inline::insert;
use crate::pass::PassCx;
use crate::rebuild::{calls, rebuild};
use crate::recognize::counted_loop;

/// The most iterations of a loop that is unrolled.
const MAX_TRIPS: u64 = 8;

/// The most instructions that unrolling makes of a loop.
const MAX_INSTRS: u64 = 1024;

/// Replaces a loop whose number of iterations is known and small by as many copies of its body.
/// What is left of the counter folds away, and the iterations fuse with each other and with what
/// stands around the loop.
pub(crate) fn unroll_loops(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::While(_))) {
        return Ok(module);
    }
    let mut growth = Growth::of_pass(cx.watch);
    rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            draft.stand_for(&instr);
            let Op::While(op) = instr.op else {
                map.push(draft.carry(instr, &map));
                continue;
            };
            let init = map[instr.operands[0].index()];
            map.push(match trips(&mut draft, &op, init) {
                Some(trips)
                    if is_small(&mut draft, &op, trips)
                        && growth.take(trips as usize * size(&draft, op.body)) =>
                {
                    (0..trips).fold(init, |state, _| insert(&mut draft, op.body, &[state]))
                }
                _ => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })
}

fn size(draft: &Draft<'_>, id: CompId) -> usize {
    draft.callees().computation(id).instrs().len()
}

fn is_small(draft: &mut Draft<'_>, op: &While, trips: u64) -> bool {
    let body = draft.module().computation(op.body).instrs();
    // Loops in the body would multiply with this one.
    let is_flat = body.iter().all(|instr| instr.op.callees().len() < 2);
    is_flat && trips <= MAX_TRIPS && trips * body.len() as u64 <= MAX_INSTRS
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
    fn conditions_with_effects_run() {
        let text = counting(0, "compare(i, n), direction=LT", 1).replace(
            "n = s32[] constant(3)",
            "n = s32[] constant(3)  t = token[] after-all()
             sent = token[] outfeed(i, t), outfeed_shape=s32[]",
        );
        assert!(after("unroll-loops", &text).contains("while("), "{text}");
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
