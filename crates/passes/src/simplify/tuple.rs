//! Tuples.

use helio_ir::ops::GetTupleElement;
use helio_ir::{InstrId, Op, Result};

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
        _ => Ok(None),
    }
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
