//! Calls of machine code one after the other.
//!
//! Most steps of most programs are short kernels. Asking of each what it is, where its code is, whether to
//! cut it and whether to stop takes longer than many of them do; so does following the pointers from a
//! step to its code, which are in no cache when a program has thousands of steps. Neighbouring
//! short kernels are a group: what their calls need lies in two lists, in the order of the calls.

use super::{Action, Step};

/// Code that checks nothing: addresses, where its piece of the range begins and ends, and scratch.
#[cfg(target_arch = "x86_64")]
pub(crate) type Entry = unsafe extern "sysv64" fn(*const *mut u8, i64, i64, *mut u8);
#[cfg(not(target_arch = "x86_64"))]
pub(crate) type Entry = unsafe extern "C" fn(*const *mut u8, i64, i64, *mut u8);

/// The code of a kernel, which works on `0..range` when it is called.
#[derive(Clone, Copy)]
pub struct WholeCode {
    pub(crate) entry: Entry,
    pub(crate) range: i64,
}

/// Steps that are called as a group.
pub(super) struct Group {
    pub(super) calls: Box<[Call]>,
    /// The slots of all calls, one after the other.
    pub(super) slots: Box<[u32]>,
}

/// A call of a group.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) code: WholeCode,
    /// How many slots it has: the next ones of the group.
    pub(super) slots: u32,
}

/// The groups of a program, by the number of their first step.
#[derive(Default)]
pub(super) struct Groups {
    groups: Vec<Option<Group>>,
}

/// The most kernels of a group, each of at most some microseconds: after a group the run can be stopped.
const MAX_CALLS: usize = 64;

/// The most parameters of a kernel in a group: those of nearly all.
pub(super) const MAX_SLOTS: usize = 32;

impl Groups {
    /// The groups of a program's steps. None if its steps are not numbered from 0 on, each once.
    pub(super) fn of(steps: &[Step]) -> Self {
        let mut groups = Groups::default();
        groups.groups.resize_with(count(steps), || None);
        let mut seen = vec![false; groups.groups.len()];
        match groups.visit(steps, &mut seen) {
            Some(()) => groups,
            None => Groups::default(),
        }
    }

    /// The group that begins with a step.
    #[inline]
    pub(super) fn of_first(&self, step: &Step) -> Option<&Group> {
        self.groups.get(step.id.index())?.as_ref()
    }

    fn visit(&mut self, steps: &[Step], seen: &mut [bool]) -> Option<()> {
        for step in steps {
            let seen_before = std::mem::replace(seen.get_mut(step.id.index())?, true);
            (!seen_before).then_some(())?;
            match &step.action {
                Action::While(each) => {
                    self.visit(&each.cond, seen)?;
                    self.visit(&each.body, seen)?;
                }
                Action::Branch(branch) => {
                    branch.branches.iter().try_for_each(|steps| self.visit(steps, seen))?;
                }
                Action::Raw { .. }
                | Action::Kernel { .. }
                | Action::Finished(_)
                | Action::Host { .. }
                | Action::Copy { .. }
                | Action::Part(_) => {}
            }
        }
        let mut rest = steps;
        while let [first, others @ ..] = rest {
            let (mut calls, mut slots) = (Vec::new(), Vec::new());
            for step in rest.iter().take(MAX_CALLS) {
                let Some((code, of)) = code(step) else { break };
                calls.push(Call { code, slots: of.len() as u32 });
                slots.extend(of);
            }
            rest = rest.get(calls.len().max(1)..).unwrap_or(others);
            if !calls.is_empty() {
                let group = Group { calls: calls.into(), slots: slots.into() };
                self.groups[first.id.index()] = Some(group);
            }
        }
        Some(())
    }
}

/// How many steps there are, those of loops and branches included.
fn count(steps: &[Step]) -> usize {
    let inner = |step: &Step| match &step.action {
        Action::While(each) => count(&each.cond) + count(&each.body),
        Action::Branch(branch) => branch.branches.iter().map(|steps| count(steps)).sum(),
        _ => 0,
    };
    steps.iter().map(|step| 1 + inner(step)).sum()
}

/// The code of a step, and its slots, if it can be one of a group.
fn code(step: &Step) -> Option<(WholeCode, impl ExactSizeIterator<Item = u32> + '_)> {
    let Action::Raw { kernel, slots } = &step.action else { return None };
    let fits = slots.len() <= MAX_SLOTS;
    let code = kernel.whole_code().filter(|_| fits)?;
    Some((code, slots.iter().map(|slot| slot.0)))
}
