//! Steps and the instructions that they are for.

use helio_ir::{CompId, InstrId};
use helio_runtime::program::{Action, Step, StepId};
use smallvec::SmallVec;

/// An instruction of the optimised module: its computation, and its place there.
pub(crate) type InstrAt = (CompId, InstrId);

/// What the planner knows of a step while slots are storages.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepInfo {
    /// The instructions that it performs; each of a plan's steps has at least one.
    pub(crate) instrs: SmallVec<[InstrAt; 1]>,
}

/// The steps of a plan by number, and what each is for.
#[derive(Debug, Default)]
pub(crate) struct StepInfos(Vec<StepInfo>);

impl StepInfos {
    /// A step for an instruction, with a number of its own.
    pub(super) fn step(&mut self, action: Action, at: InstrAt) -> Step {
        let id = StepId(self.0.len() as u32);
        self.0.push(StepInfo { instrs: SmallVec::from_slice(&[at]) });
        Step { id, action }
    }

    /// A step that takes the place of two, one after the other.
    pub(super) fn join(&mut self, action: Action, first: StepId, second: StepId) -> Step {
        let [mut first, second] = [first, second].map(|id| self.0[id.index()].clone());
        for at in second.instrs {
            if !first.instrs.contains(&at) {
                first.instrs.push(at);
            }
        }
        let id = StepId(self.0.len() as u32);
        self.0.push(first);
        Step { id, action }
    }

    /// Numbers the steps of a plan in the order of its text, and forgets those that are not in it.
    pub(super) fn renumber(&mut self, steps: &mut [Step]) {
        let mut infos = Vec::with_capacity(self.0.len());
        self.visit(steps, &mut infos);
        self.0 = infos;
    }

    fn visit(&mut self, steps: &mut [Step], infos: &mut Vec<StepInfo>) {
        for step in steps {
            let info = std::mem::take(&mut self.0[step.id.index()]);
            step.id = StepId(infos.len() as u32);
            infos.push(info);
            match &mut step.action {
                Action::While(each) => {
                    self.visit(&mut each.cond, infos);
                    self.visit(&mut each.body, infos);
                }
                Action::Branch(branch) => {
                    branch.branches.iter_mut().for_each(|steps| self.visit(steps, infos));
                }
                Action::Raw { .. }
                | Action::Kernel { .. }
                | Action::Finished(_)
                | Action::Host { .. }
                | Action::Copy { .. } => {}
            }
        }
    }

    /// What is known of a step.
    pub(crate) fn get(&self, id: StepId) -> Option<&StepInfo> {
        self.0.get(id.index())
    }
}
