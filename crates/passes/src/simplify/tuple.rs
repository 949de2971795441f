//! Rules for tuples, and for conditionals whose branch is known.

use helio_ir::ops::{Call, Conditional, GetTupleElement};
use helio_ir::{InstrId, Number, Op, Result};

use super::Simplifier;

/// element(tuple(x, y), 0) → x; tuple(element(t, 0), element(t, 1)) → t, when t has two.
pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    match op {
        Op::GetTupleElement(op) => {
            let tuple = cx.draft.instr(operands[0]);
            Ok(match tuple.op {
                Op::Tuple(_) => tuple.operands.get(op.index).copied(),
                _ => None,
            })
        }
        Op::Tuple(_) => Ok(whole_tuple(cx, operands)),
        Op::Conditional(op) => taken_branch(cx, op, operands),
        _ => Ok(None),
    }
}

/// conditional(true, x, y) → call(x), which inlining then takes apart; conditional(i, x) → call(x).
fn taken_branch(
    cx: &mut Simplifier<'_, '_>,
    op: &Conditional,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let last = op.branches.len() - 1;
    let branch = match cx.splat(operands[0]) {
        _ if last == 0 => 0,
        Some(Number::Pred(true)) => 0,
        Some(Number::Pred(false)) => 1,
        // An index outside means the last branch.
        Some(Number::Int(index)) => usize::try_from(index).map_or(last, |index| index.min(last)),
        _ => return Ok(None),
    };
    let Some((&branch, &operand)) = op.branches.get(branch).zip(operands.get(branch + 1)) else {
        return Ok(None);
    };
    cx.add(Call::new(branch), &[operand]).map(Some)
}

fn whole_tuple(cx: &Simplifier<'_, '_>, operands: &[InstrId]) -> Option<InstrId> {
    let element = |id: InstrId| match *cx.draft.op(id) {
        Op::GetTupleElement(GetTupleElement { index }) => Some((cx.draft.operands(id)[0], index)),
        _ => None,
    };
    let (tuple, _) = element(*operands.first()?)?;
    let whole = operands.iter().enumerate().all(|(i, &id)| element(id) == Some((tuple, i)));
    let count = cx.draft.shape(tuple).as_tuple()?.len();
    (whole && count == operands.len()).then_some(tuple)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::time::{Duration, Instant};

    use helio_ir::text::parse;
    use helio_ir::verify;

    use crate::find_pass;
    use crate::testing::run_passes;

    /// The time that it takes to simplify a program that takes a tuple of `elements` elements apart.
    fn shortest(elements: usize) -> Duration {
        let shape = vec!["f32[]"; elements].join(", ");
        let mut text = format!("HloModule m\nENTRY e {{ t = ({shape}) parameter(0)\n");
        for i in 0..elements {
            writeln!(text, "x{i} = f32[] get-tuple-element(t), index={i}").unwrap();
        }
        let all: Vec<String> = (0..elements).rev().map(|i| format!("x{i}")).collect();
        write!(text, "ROOT r = ({shape}) tuple({})\n}}", all.join(", ")).unwrap();
        let module = verify(parse(&text).unwrap()).unwrap();
        let time = || {
            let module = module.clone();
            let begin = Instant::now();
            run_passes(module, [find_pass("simplify").unwrap()]);
            begin.elapsed()
        };
        (0..3).map(|_| time()).min().unwrap()
    }

    #[test]
    fn time_grows_with_the_number_of_elements() {
        // Eight times the work, with room for noise, in one of a few tries beside other programs; sixty-four times would
        // be quadratic.
        assert!((0..5).any(|_| shortest(32_000) < 40 * shortest(4_000)));
    }
}
