//! Which computations, and so which instructions, do more than compute a value.

use std::collections::HashSet;

use helio_ir::ops::Effect;
use helio_ir::{CompId, Computation, InstrId, Module, Op};

/// For each computation, whether running it does more than compute a value.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    computations: Vec<bool>,
}

impl Effects {
    /// What the computations of a module do.
    pub fn of(module: &Module) -> Self {
        let mut effects = Effects::default();
        for computation in module.computations() {
            effects.push(effects.in_computation(computation));
        }
        effects
    }

    /// Whether running this computation, which calls only those that are known, does more than compute a
    /// value.
    pub(crate) fn in_computation(&self, computation: &Computation) -> bool {
        let has_effect = |id: &InstrId| self.has_effect(&computation.instr(*id).op);
        !computation.effects().is_empty() || computation.callers().iter().any(has_effect)
    }

    /// Adds the next computation.
    pub(crate) fn push(&mut self, has_effect: bool) {
        self.computations.push(has_effect);
    }

    /// Whether running a computation does more than compute a value.
    pub fn computation_has_effect(&self, id: CompId) -> bool {
        // Of a computation that was added to the module later, nothing is known.
        self.computations.get(id.index()).copied().unwrap_or(true)
    }

    /// Whether an instruction must stay even if nobody takes its value, once, and in order with the
    /// others of the kind. What it calls must be among the computations of [`Effects::of`].
    pub fn has_effect(&self, op: &Op) -> bool {
        op.effect() != Effect::None
            || op.callees().into_iter().any(|callee| self.computation_has_effect(callee))
    }
}

/// Whether running one computation of a module does more than compute a value.
pub(crate) fn computation_has_effect(module: &Module, id: CompId) -> bool {
    any_below(module, vec![id], |op| op.effect() != Effect::None)
}

/// Whether an operation, or any of the computations that it calls, is of a kind.
pub(crate) fn any_op(module: &Module, op: &Op, is_wanted: impl Fn(&Op) -> bool) -> bool {
    is_wanted(op) || any_below(module, op.callees().into_iter().collect(), is_wanted)
}

/// Whether an operation of computations, or of what they call, is of a kind.
fn any_below(module: &Module, mut pending: Vec<CompId>, is_wanted: impl Fn(&Op) -> bool) -> bool {
    let mut seen: HashSet<CompId> = pending.iter().copied().collect();
    while let Some(id) = pending.pop() {
        for instr in module.computation(id).instrs() {
            if is_wanted(&instr.op) {
                return true;
            }
            pending.extend(instr.op.callees().into_iter().filter(|&callee| seen.insert(callee)));
        }
    }
    false
}
