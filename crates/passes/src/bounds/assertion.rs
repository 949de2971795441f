//! What sizes must be, to be checked in a run.

use helio_eval::ASSERT;
use helio_ir::ops::CustomCall;
use helio_ir::{BackendConfig, ElementType, Extra, InstrId, Result, Shape};

use super::writer::Writer;
use crate::draft::unnamed;

impl Writer<'_, '_> {
    /// The value, where `is_met` is true; else the run ends with the message, with what was `found`.
    pub(super) fn assert(
        &mut self,
        is_met: InstrId,
        value: InstrId,
        found: &[InstrId],
        message: String,
    ) -> Result<InstrId> {
        let operands: Vec<InstrId> = [is_met, value].iter().chain(found).copied().collect();
        let shape = Shape::scalar(ElementType::S32);
        let call = CustomCall::new(ASSERT, shape.clone());
        let mut instr = unnamed(call.into(), &operands, shape);
        instr.name = self.name.clone();
        let config = Some(BackendConfig::of(&message));
        instr.extra = Some(Box::new(Extra { backend_config: config, ..Extra::default() }));
        Ok(self.draft.push(instr))
    }
}
