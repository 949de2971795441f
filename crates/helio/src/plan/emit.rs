//! Steps for single instructions.

use helio_codegen::lower;
use helio_ir::{InstrId, Op};
use helio_runtime::program::Step;

use super::{Frame, Planned, Planner, StorageId};

/// What programs are compiled for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {}

impl Target {
    /// What kernels are lowered for.
    pub(super) fn vectors(&self) -> lower::Target {
        lower::Target { vector_bytes: self.vector_bytes() }
    }

    /// Whether a kernel may get one buffer as an operand and as a result.
    pub(super) fn in_place(&self) -> bool {
        false
    }

    /// The width of vectors.
    pub(super) fn vector_bytes(&self) -> usize {
        64
    }
}

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
        if let Some(values) = self.bound(frame, id, steps)? {
            return Ok(values);
        }
        self.host(frame, id, steps)
    }
}
