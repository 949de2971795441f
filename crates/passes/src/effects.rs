//! What an instruction does besides computing its value.

use helio_ir::{CompId, Module, Op};

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
            let has_effect = computation.instrs().iter().any(|instr| effects.has_effect(&instr.op));
            effects.push(has_effect);
        }
        effects
    }

    pub(crate) fn push(&mut self, has_effect: bool) {
        self.computations.push(has_effect);
    }

    /// Whether running a computation does more than compute a value.
    pub fn computation_has_effect(&self, id: CompId) -> bool {
        // A computation made since then is taken for the worst.
        self.computations.get(id.index()).copied().unwrap_or(true)
    }

    /// Whether an instruction must stay even if nobody takes its value, once, and in order with the
    /// others of the kind. What it calls must be among the computations of [`Effects::of`].
    pub fn has_effect(&self, op: &Op) -> bool {
        match op {
            // Exchange with the host or with other participants.
            Op::Infeed(_)
            | Op::Outfeed(_)
            | Op::Send(_)
            | Op::SendDone(_)
            | Op::Recv(_)
            | Op::RecvDone(_)
            | Op::AllReduce(_)
            | Op::AllGather(_)
            | Op::AllToAll(_)
            | Op::CollectivePermute(_)
            | Op::ReduceScatter(_)
            | Op::CollectiveBroadcast(_)
            | Op::RaggedAllToAll(_)
            | Op::AllReduceStart(_)
            | Op::AllReduceDone(_)
            | Op::AllGatherStart(_)
            | Op::AllGatherDone(_)
            | Op::CollectivePermuteStart(_)
            | Op::CollectivePermuteDone(_) => true,
            // What is drawn depends on how often was drawn before.
            Op::Rng(_) | Op::RngGetAndUpdateState(_) => true,
            // A function of the user may do anything.
            Op::CustomCall(_) => true,
            _ => op.callees().into_iter().any(|callee| self.computation_has_effect(callee)),
        }
    }
}
