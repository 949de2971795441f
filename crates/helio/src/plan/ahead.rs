//! Code that several threads make before the planner needs it.
//!
//! Half of the time that a large program takes to compile is for the code of its fusions, each of which is by
//! itself. Which memory they get does not matter for it, but for what is stored past the caches, which is left to
//! the planner. So are fusions in loops and branches: whether they become kernels of their own is not known yet.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use helio_codegen::lower::{Lowered, lower};
use helio_ir::{CompId, Error, Module, Op, Verified};
use helio_runtime::FloatMode;

use super::fused::may_stream;
use super::target::{KernelCode, Target};
use super::{Planned, Planner};

/// The fewest instructions of all fusions together: two milliseconds' work, of which other threads wake up
/// in some fifty microseconds.
const MIN_INSTRS: usize = 1 << 10;
/// The most instructions of a fusion: longer ones, which only programs have that come with fusions, may need
/// the planner's stack.
const MAX_INSTRS: usize = 1 << 9;
/// How many fusions are compiled between two looks at the compilation's limits.
const BATCH: usize = 64;

/// Code of stages that are there already, by computation and the number of the stage.
pub(super) type Ready = HashMap<(CompId, usize), Result<KernelCode, Error>>;

/// What has been made of a fused computation: its kernels, if it has any, and the code of each that does not
/// depend on the plan.
struct Made {
    lowered: Option<Lowered>,
    code: Vec<(usize, Result<KernelCode, Error>)>,
}

impl Made {
    fn new(module: &Verified<Module>, fused: CompId, target: &Target<'_>) -> Self {
        let lowered = lower(module, fused, target.lowering(target.vectors())).ok();
        let stages = lowered.iter().flat_map(|lowered| lowered.stages.iter().enumerate());
        let code = stages
            .filter(|(_, stage)| !may_stream(stage).any(|may| may))
            .map(|(number, stage)| (number, target.code(&stage.kernel)))
            .collect();
        Made { lowered, code }
    }
}

impl Planner<'_> {
    /// Makes the code of the entry computation's fusions, if that is enough work for several threads. Errors:
    /// a limit of the compilation.
    pub(super) fn make_ahead(&mut self) -> Planned<()> {
        if self.threads.count() == 1 {
            return Ok(());
        }
        let (module, target, client) = (self.module, self.target, self.client);
        let length = |id: CompId| module.computation(id).instrs().len();
        let mut seen = HashSet::new();
        let calls = module.entry().instrs().iter().filter_map(|instr| match &instr.op {
            Op::Fusion(fusion) => Some(fusion.calls),
            _ => None,
        });
        let calls: Vec<CompId> =
            calls.filter(|&id| length(id) <= MAX_INSTRS && seen.insert(id)).collect();
        if calls.iter().map(|&id| length(id)).sum::<usize>() < MIN_INSTRS {
            return Ok(());
        }
        for batch in calls.chunks(BATCH) {
            self.watch.count_steps(batch.iter().map(|&id| length(id)).sum())?;
            let made: Vec<OnceLock<Made>> = batch.iter().map(|_| OnceLock::new()).collect();
            self.threads.for_each(batch.len(), &|i| {
                // As the caller of the compilation has them.
                let (_account, _mode) = (client.enter_account(), FloatMode::Ieee.enter());
                made[i].get_or_init(|| Made::new(module, batch[i], target));
            });
            for (&id, made) in batch.iter().zip(made) {
                let Some(Made { lowered, code }) = made.into_inner() else { continue };
                self.fused.lowered.insert((id, target.vectors()), lowered.map(Arc::new));
                let code = code.into_iter().map(|(stage, code)| ((id, stage), code));
                self.fused.ready.extend(code);
            }
        }
        Ok(())
    }
}
