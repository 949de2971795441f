//! How much a program may grow by copies of computations.
//!
//! A computation that is called twice, by one that is called twice, and so on, stands for a number
//! of instructions that is exponential in the program's text. Whoever puts computations in the place
//! of their callers asks here first, and leaves the call as it is if there is no room.

use helio_ir::Module;

use crate::watch::{Watch, instr_count};

/// The instructions of all copies together may be this many times those of the program,
const FACTOR: usize = 4;

/// or, where that is more, this many: they compile in a fraction of a second.
const MIN_BUDGET: usize = 1 << 15;

/// The room for copies that is left.
#[derive(Debug)]
pub struct Growth {
    left: usize,
}

impl Growth {
    /// The room that one pass of a compilation has: it follows from the program as it was given, not
    /// from what earlier passes have made of it.
    pub fn of_pass(watch: &Watch) -> Self {
        Self::with(watch.given())
    }

    /// The room for copies of a program's parts.
    pub fn of(module: &Module) -> Self {
        Self::with(instr_count(module))
    }

    fn with(instrs: usize) -> Self {
        Growth { left: MIN_BUDGET.max(instrs.saturating_mul(FACTOR)) }
    }

    /// How many more instructions there is room for.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Whether there is room for `instrs` more instructions.
    pub fn fits(&self, instrs: usize) -> bool {
        instrs <= self.left
    }

    /// Takes the room for `instrs` instructions. False, and nothing is taken, if there is less.
    pub fn take(&mut self, instrs: usize) -> bool {
        let left = self.left.checked_sub(instrs);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}
