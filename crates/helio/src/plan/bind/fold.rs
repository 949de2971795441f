//! Arrays folded element by element with generated code.

use std::fmt;

use helio_ir::{ArrayShape, CompId, Error, Module, Result, Verified};
use helio_runtime::{Block, Memory};

use super::super::code::ScalarCode;
use super::super::{Planned, Planner};
use super::Codes;

/// Elements that the code folds at once: what it reads and writes stays in the nearest cache.
const ELEMENTS: usize = 1024;

/// The code of a computation of two scalars, for arrays of its element type.
pub(in crate::plan) struct ScalarFold {
    code: ScalarCode,
    element_bytes: usize,
}

/// Aligned room for what is folded at once: accumulators, elements, and new accumulators.
pub(in crate::plan) struct Room([Block; 3]);

impl Planner<'_> {
    /// Code that folds arrays with a computation; `None` if they are of several element types or others
    /// than its parameters, or it cannot be lowered.
    pub(in crate::plan) fn fold(
        &mut self,
        to_apply: CompId,
        arrays: &[&ArrayShape],
    ) -> Planned<Option<ScalarFold>> {
        let module: &Verified<Module> = self.module;
        let params = module.computation(to_apply).program_shape().params;
        let Some(element) = params.first().and_then(|p| p.as_array()).map(ArrayShape::element)
        else {
            return Ok(None);
        };
        if arrays.iter().any(|array| array.element() != element) {
            return Ok(None);
        }
        let element_bytes = params[0].size_bytes();
        let (target, batch) = (self.target, &mut self.machine_code);
        let mut codes = Codes { target, batch, error: None, fallback: None };
        let code = codes.scalar(module, to_apply, ELEMENTS);
        let Codes { error, fallback, .. } = codes;
        if let Some(error) = error {
            return Err(error.into());
        }
        if let Some(reason) = fallback {
            self.note(reason);
        }
        Ok(code.map(|code| ScalarFold { code, element_bytes }))
    }
}

impl ScalarFold {
    /// Room for [`ScalarFold::fold`]. Errors: `ResourceExhausted`.
    pub(in crate::plan) fn room(&self, memory: &Memory) -> Result<Room> {
        let block = || memory.allocate(ELEMENTS * self.element_bytes);
        Ok(Room([block()?, block()?, block()?]))
    }

    /// Folds elements into accumulators, as many of the one as of the other.
    pub(in crate::plan) fn fold(
        &self,
        accumulators: &mut [u8],
        elements: &[u8],
        Room([before, given, after]): &mut Room,
    ) -> Result<()> {
        let most = ELEMENTS * self.element_bytes;
        for (to, from) in accumulators.chunks_mut(most).zip(elements.chunks(most)) {
            before.as_mut_slice()[..to.len()].copy_from_slice(to);
            given.as_mut_slice()[..from.len()].copy_from_slice(from);
            let operands = [before.as_slice(), given.as_slice()];
            let count = to.len() / self.element_bytes;
            self.code
                .call(count, |param| operands[param], &mut [after.as_mut_slice()])
                .map_err(|failure| Error::internal(failure.to_string()))?;
            to.copy_from_slice(&after.as_slice()[..to.len()]);
        }
        Ok(())
    }
}

impl fmt::Debug for ScalarFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalarFold").field("element_bytes", &self.element_bytes).finish()
    }
}
