//! Steps for single instructions.

use helio_ir::InstrId;
use helio_runtime::program::Step;

use super::{Frame, Planned, Planner, StorageId};

/// What programs are compiled for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {}

impl Target {
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
        if let Some(values) = self.bound(frame, id, steps)? {
            return Ok(values);
        }
        self.host(frame, id, steps)
    }
}
