//! Whether a program's memory plan is right, found by running it on names instead of bytes.

use std::iter::zip;

use super::{Action, Finished, Home, ProgramParts, RawKernel, Selector, SlotId, Step, StepProgram};

impl StepProgram {
    /// Replays the steps symbolically and checks that whoever reads a slot finds what was written to
    /// that slot, not what another slot left in the same memory. Loops are replayed twice, branches
    /// each in turn. Errors: the first step that reads something else.
    ///
    /// It takes time in proportion to steps × live slots: a check for tests.
    pub fn replay(&self) -> Result<(), String> {
        let parts = &self.parts;
        let in_block = vec![false; parts.slots.len()];
        let mut replay = Replay { parts, arena: Vec::new(), in_block };
        replay.steps(&parts.steps)?;
        parts.results.iter().try_for_each(|&id| replay.read(id, "the result"))
    }
}

/// The state of a replay: who wrote what last.
#[derive(Clone)]
struct Replay<'p> {
    parts: &'p ProgramParts,
    /// Ranges of the arena and the slots that wrote them last; they do not overlap.
    arena: Vec<(usize, usize, SlotId)>,
    /// By slot, whether its block holds its value (no two slots have one block, whichever blocks
    /// loops have exchanged), or, of a part, whether it was found.
    in_block: Vec<bool>,
}

impl Replay<'_> {
    fn bytes(&self, id: SlotId) -> usize {
        self.parts.slots[id.index()].bytes
    }

    /// Forgets where parts of a slot are, since it has another value now, or is elsewhere.
    fn forget_parts(&mut self, of: SlotId) {
        let mut lost = vec![false; self.parts.slots.len()];
        lost[of.index()] = true;
        // (What a part is a part of, if a part itself, comes before it.)
        for (i, slot) in self.parts.slots.iter().enumerate() {
            if let Home::Part(of) = slot.home
                && lost[of.index()]
            {
                lost[i] = true;
                self.in_block[i] = false;
            }
        }
    }

    fn write(&mut self, id: SlotId) {
        self.forget_parts(id);
        match self.parts.slots[id.index()].home {
            Home::Arena(offset) => {
                let end = offset + self.bytes(id);
                // Whatever overlaps is lost as a whole: nobody may read part of it any more.
                self.arena
                    .retain(|&(from, to, owner)| owner != id && (to <= offset || end <= from));
                self.arena.push((offset, end, id));
            }
            Home::Block(_) => self.in_block[id.index()] = true,
            Home::Argument(_) | Home::Constant(_) | Home::Part(_) => {}
        }
    }

    fn read(&self, id: SlotId, who: &str) -> Result<(), String> {
        let found = match self.parts.slots[id.index()].home {
            _ if self.bytes(id) == 0 => return Ok(()),
            Home::Argument(_) | Home::Constant(_) => return Ok(()),
            Home::Arena(_) => self.arena.iter().any(|&(_, _, owner)| owner == id),
            Home::Block(_) => self.in_block[id.index()],
            Home::Part(of) => self.in_block[id.index()] && self.read(of, who).is_ok(),
        };
        if found { Ok(()) } else { Err(format!("{who} reads {id:?}, whose memory is another's")) }
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), String> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn raw(&mut self, code: &dyn RawKernel, slots: &[SlotId]) -> Result<(), String> {
        for (&slot, param) in slots.iter().zip(&code.signature().params) {
            if param.read {
                self.read(slot, &code.signature().name)?;
            }
        }
        for (&slot, param) in slots.iter().zip(&code.signature().params) {
            if param.write {
                self.write(slot);
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match &step.action {
            Action::Raw { kernel, slots } => self.raw(&**kernel, slots),
            Action::Kernel { kernel, inputs, outputs } => {
                inputs.iter().try_for_each(|&id| self.read(id, kernel.name()))?;
                outputs.iter().for_each(|&id| self.write(id));
                Ok(())
            }
            Action::Finished(step) => {
                let Finished { kernel, inputs, output, code, slots } = &**step;
                inputs.iter().try_for_each(|&id| self.read(id, kernel.name()))?;
                self.write(*output);
                self.raw(&**code, slots)
            }
            Action::Host { inputs, outputs, .. } => {
                inputs.iter().try_for_each(|&id| self.read(id, "a host call"))?;
                outputs.iter().for_each(|&id| self.write(id));
                Ok(())
            }
            Action::Copy { from, to } => {
                self.read(*from, "a copy")?;
                self.write(*to);
                Ok(())
            }
            Action::Part(part) => {
                self.read(part.of, "a part")?;
                part.indices.iter().try_for_each(|index| self.read(index.index, "a part"))?;
                self.in_block[part.part.index()] = true;
                Ok(())
            }
            Action::While(step) => {
                for _ in 0..2 {
                    if step.trips.is_none() {
                        self.steps(&step.cond)?;
                        self.read(step.go, "a loop's condition")?;
                    }
                    self.steps(&step.body)?;
                    for cycle in &step.rotate {
                        self.rotate(cycle)?;
                    }
                }
                if step.trips.is_none() {
                    self.steps(&step.cond)?;
                }
                Ok(())
            }
            Action::Branch(step) => {
                let (Selector::Pred(selector) | Selector::Index(selector)) = step.selector;
                self.read(selector, "a branch")?;
                // What one branch leaves in memory, another may overwrite; what follows may read
                // only what all have left in the same slots.
                let before = self.clone();
                let mut after: Option<Self> = None;
                for branch in &step.branches {
                    let mut replay = before.clone();
                    replay.steps(branch)?;
                    after = Some(match after {
                        None => replay,
                        Some(mut both) => {
                            both.arena.retain(|range| replay.arena.contains(range));
                            zip(&mut both.in_block, replay.in_block).for_each(|(a, b)| *a &= b);
                            both
                        }
                    });
                }
                *self = after.unwrap_or(before);
                Ok(())
            }
        }
    }

    /// Moves values from slot to slot, with the memory that they are in.
    fn rotate(&mut self, cycle: &[SlotId]) -> Result<(), String> {
        for &id in cycle.iter().skip(1) {
            self.read(id, "a rotation")?;
        }
        // The last slot of a cycle that is not closed gets old memory, which nobody reads before it is
        // written; in a closed cycle it gets the first one's value.
        cycle.iter().for_each(|&id| self.write(id));
        Ok(())
    }
}
