//! Fused computations that are equal, as those of the steps of a loop that is written out: they become
//! one, which is compiled once.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::iter::zip;

use helio_ir::{CompId, Computation, Result};

use crate::rebuild::NewModule;
use crate::simplify;

/// The fused computations of a module.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The last one with a hash.
    known: HashMap<u64, CompId>,
}

impl Shared {
    /// Adds a computation, unless there is one that computes the same. Errors: as for
    /// [`NewModule::push`].
    pub fn push(&mut self, module: &mut NewModule, computation: Computation) -> Result<CompId> {
        let mut state = DefaultHasher::new();
        computation.instrs().iter().for_each(|instr| simplify::hash(instr).hash(&mut state));
        let hash = state.finish();
        if let Some(&known) = self.known.get(&hash)
            && are_equal(module.computation(known), &computation)
        {
            return Ok(known);
        }
        let id = module.push(computation)?;
        self.known.insert(hash, id);
        Ok(id)
    }
}

/// Whether computations are the same but for names.
fn are_equal(a: &Computation, b: &Computation) -> bool {
    a.root() == b.root()
        && a.instrs().len() == b.instrs().len()
        && zip(a.instrs(), b.instrs())
            .all(|(a, b)| a.operands == b.operands && a.shape.same(&b.shape) && a.op == b.op)
}
