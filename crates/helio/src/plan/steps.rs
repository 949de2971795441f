//! The instructions that each step of a plan performs, for errors, observers and listings.

use std::collections::{HashMap, HashSet};

use helio_ir::InstrAt;
use helio_runtime::program::{self, SlotId, StepId};
use smallvec::SmallVec;

use super::place::BufferAssignment;
use super::{Action, Step, StorageId};

/// An instruction, each time that it is planned: a computation that several instructions call is
/// planned for each of them. `S` names the memory of values.
#[derive(Clone, Debug)]
pub(crate) struct PlannedInstr<S = SlotId> {
    /// Which, of the optimised module.
    pub(crate) at: InstrAt,
    /// The memory of the arrays of its result.
    pub(crate) values: SmallVec<[S; 1]>,
}

/// The instructions that a step performs, by their places in a list: at least one, and two for a
/// kernel whose result another one changes while it is in cache.
type Performed = SmallVec<[usize; 2]>;

/// The steps of a plan, by number, and the instructions that they perform.
#[derive(Debug, Default)]
pub(crate) struct StepInfos {
    /// For each step, its instructions by their places in `planned`.
    steps: Vec<Performed>,
    planned: Vec<PlannedInstr>,
    /// The steps that perform a part of their instruction, and nothing of the computations that it
    /// calls: loops and branches, whose parts are steps, and copies.
    partial: HashSet<StepId>,
}

impl StepInfos {
    /// All steps.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = StepId> + use<> {
        (0..self.steps.len() as u32).map(StepId)
    }

    /// Whether a step performs its instructions with all that these call.
    pub(crate) fn is_whole(&self, id: StepId) -> bool {
        !self.partial.contains(&id)
    }

    /// The instructions that a step performs.
    pub(crate) fn of(&self, id: StepId) -> impl Iterator<Item = &PlannedInstr> {
        let planned = self.steps.get(id.index()).map_or(&[][..], |planned| &planned[..]);
        planned.iter().filter_map(|&n| self.planned.get(n))
    }
}

/// The steps of a plan that is being made, and the instructions that they perform.
#[derive(Debug, Default)]
pub(super) struct StepLog {
    /// For each step, its instructions by their places in `planned`.
    steps: Vec<Performed>,
    planned: Vec<PlannedInstr<StorageId>>,
    /// The instruction that steps are for which are made now.
    current: usize,
}

impl StepLog {
    /// From here on, steps are made for this instruction. Gives the one before.
    pub(super) fn begin(&mut self, at: InstrAt) -> usize {
        self.planned.push(PlannedInstr { at, values: SmallVec::new() });
        std::mem::replace(&mut self.current, self.planned.len() - 1)
    }

    /// Steps are made for the instruction again for which they were `before`; the last one's values
    /// are these.
    pub(super) fn end(&mut self, before: usize, values: &[StorageId]) {
        let used = self.steps.last().is_some_and(|step| step.contains(&self.current));
        if used {
            self.planned[self.current].values = SmallVec::from_slice(values);
        } else if self.current + 1 == self.planned.len() {
            self.planned.pop();
        }
        self.current = before;
    }

    /// A step for the instruction that is being planned, with a number of its own.
    pub(super) fn step(&mut self, action: Action) -> Step {
        let id = StepId(self.steps.len() as u32);
        self.steps.push(SmallVec::from_slice(&[self.current]));
        Step { id, action }
    }

    /// A step that takes the place of two, one after the other.
    pub(super) fn join(&mut self, action: Action, first: StepId, second: StepId) -> Step {
        let mut joined = self.steps[first.index()].clone();
        for &planned in &self.steps[second.index()] {
            if !joined.contains(&planned) {
                joined.push(planned);
            }
        }
        let id = StepId(self.steps.len() as u32);
        self.steps.push(joined);
        Step { id, action }
    }

    /// The steps of a plan with slots for their memory, numbered in the order of the plan's text, and
    /// what each is for. Steps that are not in the plan are forgotten.
    pub(super) fn finish(
        self,
        steps: Vec<Step>,
        assignment: &BufferAssignment,
    ) -> (Vec<program::Step>, StepInfos) {
        let mut slot = |id| assignment.slot(id);
        let mut steps: Vec<_> = steps.into_iter().map(|step| step.rename(&mut slot)).collect();
        let infos = StepInfos::default();
        let mut kept = Kept { log: self, infos, assignment, planned: HashMap::new() };
        kept.visit(&mut steps);
        (steps, kept.infos)
    }
}

/// Steps that are numbered anew.
struct Kept<'p> {
    log: StepLog,
    infos: StepInfos,
    assignment: &'p BufferAssignment,
    /// Places in `log.planned` → in `infos.planned`.
    planned: HashMap<usize, usize>,
}

impl Kept<'_> {
    fn visit(&mut self, steps: &mut [program::Step]) {
        use program::Action;
        for step in steps {
            let old = std::mem::take(&mut self.log.steps[step.id.index()]);
            step.id = StepId(self.infos.steps.len() as u32);
            let new = old.into_iter().map(|n| self.keep(n)).collect();
            self.infos.steps.push(new);
            match &mut step.action {
                Action::While(each) => {
                    self.infos.partial.insert(step.id);
                    self.visit(&mut each.cond);
                    self.visit(&mut each.body);
                }
                Action::Branch(branch) => {
                    self.infos.partial.insert(step.id);
                    branch.branches.iter_mut().for_each(|steps| self.visit(steps));
                }
                Action::Copy { .. } => {
                    self.infos.partial.insert(step.id);
                }
                Action::Raw { .. }
                | Action::Kernel { .. }
                | Action::Finished(_)
                | Action::Host { .. }
                | Action::Part(_) => {}
            }
        }
    }

    fn keep(&mut self, n: usize) -> usize {
        *self.planned.entry(n).or_insert_with(|| {
            let PlannedInstr { at, values } = &self.log.planned[n];
            let values = values.iter().map(|&id| self.assignment.slot(id)).collect();
            self.infos.planned.push(PlannedInstr { at: *at, values });
            self.infos.planned.len() - 1
        })
    }
}
