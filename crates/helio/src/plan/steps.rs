//! What each step of a plan is for.

use std::collections::{HashMap, HashSet};

use helio_ir::{CompId, InstrId};
use helio_runtime::program::{Action, SlotId, Step, StepId};
use smallvec::SmallVec;

use super::StorageId;
use super::place::Placement;

/// An instruction of the optimised module: its computation, and its place there.
pub(crate) type InstrAt = (CompId, InstrId);

/// An instruction, each time that it is planned: a computation that several instructions call is
/// planned for each of them.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Which.
    pub(crate) at: InstrAt,
    /// The slots of the arrays of its result (storages, until these have their slots).
    pub(crate) values: SmallVec<[SlotId; 1]>,
}

/// The steps of a plan, by number, and the instructions that they perform.
#[derive(Debug, Default)]
pub(crate) struct StepInfos {
    /// For each step, its instructions by their places in `planned`: at least one, and two for a
    /// kernel whose result another one changes while it is in cache.
    steps: Vec<SmallVec<[usize; 2]>>,
    planned: Vec<Planned>,
    /// The steps that perform a part of their instruction, and nothing of the computations that it
    /// calls: loops and branches, whose parts are steps, and copies.
    partial: HashSet<StepId>,
    /// The instruction that steps are for which are made now.
    current: usize,
}

impl StepInfos {
    /// From here on, steps are made for this instruction. Gives the one before.
    pub(super) fn begin(&mut self, at: InstrAt) -> usize {
        self.planned.push(Planned { at, values: SmallVec::new() });
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

    /// Numbers the steps of a plan in the order of its text, and forgets those that are not in it.
    pub(super) fn renumber(&mut self, steps: &mut [Step], places: &Placement) {
        let mut kept = Kept { old: std::mem::take(self), ..Kept::default() };
        kept.visit(steps);
        *self = kept.new;
        for planned in &mut self.planned {
            planned.values.iter_mut().for_each(|id| *id = places.slot_if_any(*id));
        }
    }

    /// All steps.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = StepId> + use<> {
        (0..self.steps.len() as u32).map(StepId)
    }

    /// Whether a step performs its instructions with all that these call.
    pub(crate) fn is_whole(&self, id: StepId) -> bool {
        !self.partial.contains(&id)
    }

    /// The instructions that a step performs.
    pub(crate) fn of(&self, id: StepId) -> impl Iterator<Item = &Planned> {
        let planned = self.steps.get(id.index()).map_or(&[][..], |planned| &planned[..]);
        planned.iter().filter_map(|&n| self.planned.get(n))
    }
}

/// Steps that are numbered anew.
#[derive(Default)]
struct Kept {
    old: StepInfos,
    new: StepInfos,
    /// Places in `old.planned` → in `new.planned`.
    planned: HashMap<usize, usize>,
}

impl Kept {
    fn visit(&mut self, steps: &mut [Step]) {
        for step in steps {
            let old = std::mem::take(&mut self.old.steps[step.id.index()]);
            step.id = StepId(self.new.steps.len() as u32);
            let new = old.into_iter().map(|n| self.keep(n)).collect();
            self.new.steps.push(new);
            match &mut step.action {
                Action::While(each) => {
                    self.new.partial.insert(step.id);
                    self.visit(&mut each.cond);
                    self.visit(&mut each.body);
                }
                Action::Branch(branch) => {
                    self.new.partial.insert(step.id);
                    branch.branches.iter_mut().for_each(|steps| self.visit(steps));
                }
                Action::Copy { .. } => {
                    self.new.partial.insert(step.id);
                }
                Action::Raw { .. }
                | Action::Kernel { .. }
                | Action::Finished(_)
                | Action::Host { .. } => {}
            }
        }
    }

    fn keep(&mut self, n: usize) -> usize {
        *self.planned.entry(n).or_insert_with(|| {
            self.new.planned.push(self.old.planned[n].clone());
            self.new.planned.len() - 1
        })
    }
}
