//! Custom calls some of whose results share the memory of operands.

use helio_eval::CallInfo;
use helio_ir::InstrId;

use super::{Frame, Planned, Planner, Step, StorageId};

impl<'m> Planner<'m> {
    /// A step that calls a function of the user, where results share the memory of operands: each such
    /// result is the operand, changed in place if nothing else needs it, else a copy. The call gets
    /// the other operands as inputs.
    pub(super) fn sharing_call(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let info = CallInfo::of(self.module, frame.id, id)?;
        let operands = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let shapes = frame.computation.instr(id).shape.leaves();
        let mut results: Vec<Option<StorageId>> = vec![None; shapes.len()];
        for &(result, operand) in &info.aliases {
            let passed = origins.iter().filter(|&&other| other == origins[operand]).count();
            let shared = info.aliases.iter().filter(|&&(_, other)| other == operand).count();
            let is_alone = passed == 1 && shared == 1;
            let dies = is_alone && frame.leaves.dies_at(origins[operand], id);
            results[result] = Some(self.updated(operands[operand], frame.owner, dies, steps));
        }
        self.position += 1;
        let mut outputs = Vec::with_capacity(results.len());
        for (result, shape) in results.into_iter().zip(shapes) {
            outputs.push(match result {
                Some(shared) => shared,
                None => self.storage(self.bytes(shape)?, frame.owner),
            });
        }
        let inputs = operands.into_iter().enumerate().filter(|&(n, _)| !info.is_shared(n));
        let inputs = inputs.map(|(_, operand)| operand).collect();
        self.at = (frame.id, id);
        self.host_step(inputs, outputs, steps)
    }
}
