//! The steps of an instruction that is no control flow: a fusion's kernels, a tuned loop, or a call
//! of the interpreter or of a user's function.

use helio_ir::{InstrId, Op};

use super::{Frame, Planned, Planner, Step, StorageId};

impl<'m> Planner<'m> {
    /// Appends the steps of an instruction; gives the storages of its results.
    pub(super) fn emit(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        if let Op::Fusion(op) = &frame.computation.instr(id).op
            && let Some(values) = self.fused(frame, id, op, steps)?
        {
            return Ok(values);
        }
        if self.compact.is_some()
            && let Some(values) = self.alone(frame, id, steps)?
        {
            return Ok(values);
        }
        if self.compact.is_some()
            && let Some(values) = self.factored(frame, id, steps)?
        {
            return Ok(values);
        }
        if self.compact.is_some()
            && let Some(values) = self.scattered(frame, id, steps)?
        {
            return Ok(values);
        }
        if let Some(values) = self.bound(frame, id, steps)? {
            return Ok(values);
        }
        if let Some(values) = self.transfer(frame, id, steps)? {
            return Ok(values);
        }
        if let Op::CustomCall(op) = &frame.computation.instr(id).op
            && !op.output_to_operand_aliasing.is_empty()
        {
            return self.sharing_call(frame, id, steps);
        }
        self.host(frame, id, steps)
    }
}
