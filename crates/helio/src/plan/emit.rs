//! Steps for single instructions.

use helio_codegen::{lower, x86};
use helio_ir::{InstrId, Op};
use helio_runtime::program::Step;

use super::{Frame, Planned, Planner, StorageId};
use crate::interpreted::Reason;

/// What programs are compiled for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The instructions of machine code; without them, kernels run on the tile machine.
    pub(crate) isa: Option<x86::Isa>,
    /// Why there is no machine code although it was asked for.
    pub(crate) no_isa: Option<Reason>,
    /// Whether the module has not been optimised, so that nothing is in fusions.
    pub(crate) is_level_zero: bool,
    /// Whether machine code checks that its accesses stay inside of its buffers.
    pub(crate) bounds_checks: bool,
}

impl Target {
    /// What kernels are lowered for; `wide` as [`lower::Target`] has it.
    pub(super) fn vectors(&self, wide: bool) -> lower::Target {
        lower::Target { vector_bytes: self.vector_bytes(), wide }
    }

    /// Why a kernel runs on the tile machine although machine code was asked for; `None` if it was not.
    pub(super) fn why_portable(&self) -> Option<Reason> {
        match self.isa {
            Some(_) => Some(Reason::NoMachineCode),
            None => self.no_isa,
        }
    }

    /// Whether a kernel may get one buffer as an operand and as a result.
    pub(super) fn in_place(&self) -> bool {
        self.isa.is_some()
    }

    /// The width of vectors. The tile machine takes any; wide ones cost it the least.
    pub(super) fn vector_bytes(&self) -> usize {
        self.isa.map_or(64, |isa| 4 * isa.lanes(false))
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
        if self.compact.is_some()
            && let Some(values) = self.alone(frame, id, steps)?
        {
            return Ok(values);
        }
        if let Some(values) = self.bound(frame, id, steps)? {
            return Ok(values);
        }
        self.host(frame, id, steps)
    }
}
