//! The order in which a program reads its infeed and writes its outfeed.

use super::{Found, contains, found};
use crate::{Computation, InstrId, Module, Op, Shape};

/// `infeed.C3`, `outfeed.C3`: of two instructions of a computation that read the infeed, or call
/// what does, one depends on the other; likewise for the outfeed. (The branches of a conditional are
/// one instruction, and so are a loop's condition and body, which take turns.)
pub(super) fn warnings(module: &Module) -> Vec<Found> {
    let reads = |op: &Op| match op {
        // An empty tuple reads nothing.
        Op::Infeed(op) => !matches!(&op.shape, Shape::Tuple(parts) if parts.is_empty()),
        _ => false,
    };
    let writes = |op: &Op| matches!(op, Op::Outfeed(_));
    let mut warnings = unordered(module, "infeed.C3", "read the infeed", reads);
    warnings.extend(unordered(module, "outfeed.C3", "write the outfeed", writes));
    warnings
}

fn unordered(
    module: &Module,
    rule: &'static str,
    what: &str,
    is_kind: impl Fn(&Op) -> bool,
) -> Vec<Found> {
    let contains = contains(module, &is_kind);
    let mut warnings = Vec::new();
    for id in module.ids().filter(|id| contains[id.index()]) {
        let computation = module.computation(id);
        let is_one =
            |op: &Op| is_kind(op) || op.callees().iter().any(|callee| contains[callee.index()]);
        for (first, second) in unordered_in(computation, is_one) {
            let (first, instr) = (computation.instr(first), computation.instr(second));
            let detail = format!(
                "`{}` and `{}` both {what}, and neither depends on the other; helio runs them in the \
                 order of the text, `{}` first",
                first.name, instr.name, first.name
            );
            warnings.push(found((id, second), instr, rule, detail));
        }
    }
    warnings
}

/// Of the instructions that are such, those next to each other of which the later does not depend
/// on the earlier. Since operands precede users, all are in order if there are none.
fn unordered_in(
    computation: &Computation,
    is_one: impl Fn(&Op) -> bool,
) -> Vec<(InstrId, InstrId)> {
    // For each instruction, which of them it depends on or is, the last in the text.
    let mut last: Vec<Option<InstrId>> = Vec::with_capacity(computation.instrs().len());
    let (mut previous, mut pairs) = (None, Vec::new());
    for id in computation.ids() {
        let instr = computation.instr(id);
        let control = instr.extra.iter().flat_map(|extra| &extra.control_predecessors);
        let before = instr.operands.iter().chain(control);
        let mut depends = before.filter_map(|id| last[id.index()]).max();
        if is_one(&instr.op) {
            if let Some(previous) = previous
                && depends != Some(previous)
            {
                pairs.push((previous, id));
            }
            previous = Some(id);
            depends = Some(id);
        }
        last.push(depends);
    }
    pairs
}
