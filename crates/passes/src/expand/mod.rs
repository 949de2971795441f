//! Operations that stand for several simpler ones.

mod batch_norm;
mod mixed_reduce;
mod narrow_bits;
mod small_floats;

use helio_ir::{Computation, InstrId, Module, Op, Result};

use crate::draft::Draft;
use crate::pass::PassCx;
use crate::rebuild::rebuild;

/// Replaces operations that no kernel exists for by simpler ones: `batch-norm-training`,
/// `batch-norm-inference`, `batch-norm-grad`, products of floats of 8 bits, reductions in other
/// float types than those of the operands, and `bitcast-convert` between elements of 2 or 4 bits and
/// wider ones.
pub(crate) fn expand(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    let is_wanted = |computation: &Computation| {
        computation.instrs().iter().any(|instr| {
            is_batch_norm(&instr.op)
                || small_floats::is_product(computation, instr)
                || narrow_bits::is_change(computation, instr)
                || mixed_reduce::is_mixed(&module, computation, instr)
        })
    };
    if !module.computations().iter().any(is_wanted) {
        return Ok(module);
    }
    rebuild(module, cx.watch, |new, computation| {
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for instr in old.instrs {
            draft.stand_for(&instr);
            let operands: Vec<InstrId> = match may_be_expanded(&instr.op) {
                true => instr.operands.iter().map(|id| map[id.index()]).collect(),
                false => Vec::new(),
            };
            let expanded = match &instr.op {
                Op::BatchNormTraining(op) => batch_norm::training(&mut draft, op, &operands)?,
                Op::BatchNormInference(op) => batch_norm::inference(&mut draft, op, &operands)?,
                Op::BatchNormGrad(op) => batch_norm::grad(&mut draft, op, &operands)?,
                Op::Reduce(op) => mixed_reduce::reduce(&mut draft, op, &operands)?,
                Op::BitcastConvert(op) => narrow_bits::bitcast(&mut draft, op, &operands)?,
                op => small_floats::product(&mut draft, op, &operands)?,
            };
            map.push(match expanded {
                Some(id) => id,
                None => draft.carry(instr, &map),
            });
        }
        draft.finish(map[old.root.index()])
    })
}

fn may_be_expanded(op: &Op) -> bool {
    is_batch_norm(op)
        || matches!(op, Op::BitcastConvert(_) | Op::Convolution(_) | Op::Dot(_) | Op::Reduce(_))
}

fn is_batch_norm(op: &Op) -> bool {
    matches!(op, Op::BatchNormTraining(_) | Op::BatchNormInference(_) | Op::BatchNormGrad(_))
}
