//! From nested blocks to a flat list of steps.

use crate::kernel::{Block, Carried, Inst, Kernel, Ty, Value};

/// A step of the machine; jumps go to the index of a step.
#[derive(Debug)]
pub(super) enum Step {
    /// An instruction that is not a loop.
    Inst(Inst),
    /// Copies a value.
    Move(Value, Value),
    /// Starts a loop: `var = lo`; leaves it unless `var < hi`.
    Enter { var: Value, lo: Value, hi: Value, exit: usize },
    /// Ends an iteration: goes back with the next `var` if that is below `hi`.
    Next { var: Value, hi: Value, step: i64, back: usize },
    /// Leaves a loop unless lane 0 of the mask is set.
    Unless { go: Value, exit: usize },
    /// Goes elsewhere.
    Jump(usize),
}

/// The steps of a kernel, and the types of its values and of those that the steps need besides.
pub(super) fn flatten(kernel: &Kernel) -> (Vec<Step>, Vec<Ty>) {
    let mut flat = Flat { steps: Vec::new(), types: kernel.types.clone() };
    flat.block(&kernel.body);
    (flat.steps, flat.types)
}

struct Flat {
    steps: Vec<Step>,
    types: Vec<Ty>,
}

impl Flat {
    fn block(&mut self, block: &Block) {
        block.insts.iter().for_each(|inst| self.inst(inst));
    }

    fn inst(&mut self, inst: &Inst) {
        match inst {
            Inst::Loop { var, lo, hi, step, carried, body } => {
                self.moves(carried.iter().map(|c| (c.init, c.param)));
                let enter = self.steps.len();
                self.steps.push(Step::Enter { var: *var, lo: *lo, hi: *hi, exit: 0 });
                self.block(body);
                self.carry(carried);
                self.steps.push(Step::Next { var: *var, hi: *hi, step: *step, back: enter + 1 });
                self.leave(enter, carried);
            }
            Inst::While { cond, go, carried, body } => {
                self.moves(carried.iter().map(|c| (c.init, c.param)));
                let back = self.steps.len();
                self.block(cond);
                let unless = self.steps.len();
                self.steps.push(Step::Unless { go: *go, exit: 0 });
                self.block(body);
                self.carry(carried);
                self.steps.push(Step::Jump(back));
                self.leave(unless, carried);
            }
            other => self.steps.push(Step::Inst(other.clone())),
        }
    }

    fn moves(&mut self, moves: impl Iterator<Item = (Value, Value)>) {
        self.steps.extend(moves.map(|(from, to)| Step::Move(from, to)));
    }

    /// The moves to the next iteration. All happen at once, so a value that is overwritten while
    /// another move still has to read it is set aside first.
    fn carry(&mut self, carried: &[Carried]) {
        let overwritten = |value: Value| carried.iter().any(|c| c.param == value);
        let mut last = Vec::new();
        for c in carried.iter().filter(|c| c.next != c.param) {
            if overwritten(c.next) {
                self.types.push(self.types[c.param.0 as usize]);
                let aside = Value(self.types.len() as u32 - 1);
                self.steps.push(Step::Move(c.next, aside));
                last.push((aside, c.param));
            } else {
                last.push((c.next, c.param));
            }
        }
        self.moves(last.into_iter());
    }

    /// Ends a loop: where it is left, its values become its results.
    fn leave(&mut self, at: usize, carried: &[Carried]) {
        let here = self.steps.len();
        if let Step::Enter { exit, .. } | Step::Unless { exit, .. } = &mut self.steps[at] {
            *exit = here;
        }
        self.moves(carried.iter().map(|c| (c.param, c.result)));
    }
}
