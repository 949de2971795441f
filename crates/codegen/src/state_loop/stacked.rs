//! Arrays of which an iteration changes a part.

use helio_ir::{CompId, InstrAt, InstrId, Module, Op};

/// Instructions that are followed before giving up.
const MAX_STEPS: usize = 1000;

/// Whether what a body makes of an array of its state is that array with parts of it replaced, one
/// after the other.
pub(super) fn is_stacked(module: &Module, body: CompId, leaf: usize) -> bool {
    is_updated(module, body, leaf).unwrap_or(false)
}

fn is_updated(module: &Module, body: CompId, wanted: usize) -> Option<bool> {
    let mut is_updated = false;
    let mut at = (body, module.computation(body).root(), wanted);
    // The instructions that call the computation that is being looked at.
    let mut callers: Vec<InstrAt> = Vec::new();
    for _ in 0..MAX_STEPS {
        let (id, instr, mut leaf) = at;
        let computation = module.computation(id);
        let leaves = |id: InstrId| computation.instr(id).shape.leaves().len();
        let instr_id = instr;
        let instr = computation.instr(instr_id);
        at = match &instr.op {
            Op::Parameter(param) => {
                let params = computation.params();
                let before = params.range(..param.number).map(|(_, &id)| leaves(id)).sum::<usize>();
                let Some((caller, call)) = callers.pop() else {
                    return Some(is_updated && before + leaf == wanted);
                };
                let operand = *module.computation(caller).instr(call).operands.get(param.number)?;
                (caller, operand, leaf)
            }
            Op::Tuple(_) => {
                let mut operands = instr.operands.iter();
                let operand = *operands.find(|&&operand| {
                    let count = leaves(operand);
                    let is_here = leaf < count;
                    leaf -= if is_here { 0 } else { count };
                    is_here
                })?;
                (id, operand, leaf)
            }
            Op::GetTupleElement(op) => {
                let tuple = *instr.operands.first()?;
                let elements = computation.instr(tuple).shape.as_tuple()?;
                let before: usize = elements[..op.index].iter().map(|s| s.leaves().len()).sum();
                (id, tuple, before + leaf)
            }
            Op::Fusion(_) | Op::Call(_) => {
                let callee = *instr.op.callees().first()?;
                callers.push((id, instr_id));
                (callee, module.computation(callee).root(), leaf)
            }
            Op::DynamicUpdateSlice(_) => {
                is_updated = true;
                (id, *instr.operands.first()?, 0)
            }
            Op::Reshape(_) | Op::Copy(_) | Op::OptimizationBarrier(_) => {
                (id, *instr.operands.first()?, leaf)
            }
            _ => return None,
        };
    }
    None
}
