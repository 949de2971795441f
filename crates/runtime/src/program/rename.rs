//! Other names for the memory that steps access: a planner's own become slots.

use super::{Action, Branch, Finished, Part, PartIndex, Selector, Step, While};

impl<S> Step<S> {
    /// The step with other names for the memory that it accesses: `name` gives each one's. Its number
    /// stays, and those of the steps within it.
    pub fn rename<T>(self, name: &mut impl FnMut(S) -> T) -> Step<T> {
        Step { id: self.id, action: self.action.rename(name) }
    }
}

impl<S> Action<S> {
    fn rename<T>(self, name: &mut impl FnMut(S) -> T) -> Action<T> {
        match self {
            Action::Raw { kernel, slots } => Action::Raw { kernel, slots: all(slots, name) },
            Action::Kernel { kernel, inputs, outputs } => {
                Action::Kernel { kernel, inputs: all(inputs, name), outputs: all(outputs, name) }
            }
            Action::Finished(step) => {
                let Finished { kernel, inputs, output, code, slots } = *step;
                let (inputs, output) = (all(inputs, name), name(output));
                let slots = all(slots, name);
                Action::Finished(Box::new(Finished { kernel, inputs, output, code, slots }))
            }
            Action::Host { call, inputs, outputs } => {
                Action::Host { call, inputs: all(inputs, name), outputs: all(outputs, name) }
            }
            Action::Copy { from, to } => Action::Copy { from: name(from), to: name(to) },
            Action::Part(step) => {
                let Part { of, part, offset, indices } = *step;
                let (of, part) = (name(of), name(part));
                let indices = indices.into_iter().map(|index| {
                    let PartIndex { index, bytes, is_signed, most, stride } = index;
                    PartIndex { index: name(index), bytes, is_signed, most, stride }
                });
                let indices = indices.collect();
                Action::Part(Box::new(Part { of, part, offset, indices }))
            }
            Action::While(step) => {
                let While { cond, go, trips, body, rotate } = *step;
                let (cond, go, body) = (steps(cond, name), name(go), steps(body, name));
                let rotate = rotate.into_iter().map(|cycle| all(cycle, name)).collect();
                Action::While(Box::new(While { cond, go, trips, body, rotate }))
            }
            Action::Branch(step) => {
                let Branch { selector, branches } = *step;
                let selector = match selector {
                    Selector::Pred(slot) => Selector::Pred(name(slot)),
                    Selector::Index(slot) => Selector::Index(name(slot)),
                };
                let branches = branches.into_iter().map(|branch| steps(branch, name)).collect();
                Action::Branch(Box::new(Branch { selector, branches }))
            }
        }
    }
}

fn all<S, T>(slots: Vec<S>, name: &mut impl FnMut(S) -> T) -> Vec<T> {
    slots.into_iter().map(name).collect()
}

fn steps<S, T>(steps: Vec<Step<S>>, name: &mut impl FnMut(S) -> T) -> Vec<Step<T>> {
    steps.into_iter().map(|step| step.rename(name)).collect()
}
