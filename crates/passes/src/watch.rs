//! What compilation may take: its limits, looked at while it works.

use std::rc::Rc;

use helio_eval::{Limits, Meter, Stopped};
use helio_ir::{Code, Computation, Error, Instr, Module, Result, memory};

/// What an instruction takes in memory, about: itself, its name, operands and dimensions.
const INSTR_BYTES: usize = size_of::<Instr>() + 128;

/// Counts what one compilation does, and ends it at its limits. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Watch(Rc<State>);

#[derive(Debug, Default)]
struct State {
    /// Counts the instructions looked at.
    meter: Meter,
    /// Instructions of the program as it was given.
    given: usize,
}

impl Watch {
    /// A watch for the compilation of a program; a step is an instruction that a pass, or the
    /// planner, looks at.
    pub fn new(module: &Module, limits: &Limits) -> Self {
        let given = instr_count(module);
        Watch(Rc::new(State { meter: Meter::new(limits.clone()), given }))
    }

    /// Instructions of the program as it was given.
    pub(crate) fn given(&self) -> usize {
        self.0.given
    }

    /// Counts instructions looked at. Errors: `ResourceExhausted` when a limit is reached,
    /// `Cancelled`, `DeadlineExceeded`.
    pub fn count_steps(&self, steps: usize) -> Result<()> {
        self.0.meter.count(steps as u64).map_err(|stopped| match stopped {
            Stopped::Steps(max) => {
                Error::limit("limit.steps", format!("compilation takes more than {max} steps"))
            }
            Stopped::Cancelled => Error::new(Code::Cancelled, "compilation was cancelled"),
            Stopped::Aborted => Error::new(Code::Aborted, "compilation was ended by others"),
            Stopped::Deadline => {
                let detail = "compilation is not done at its deadline";
                Error::new(Code::DeadlineExceeded, detail)
            }
            Stopped::Memory(error) => Error::from(error).context("compilation"),
        })
    }

    /// Makes sure that there is memory for what the program has become. Errors:
    /// `ResourceExhausted` if it has grown by more than [`memory`] has.
    pub fn ensure_memory(&self, instrs: usize) -> Result<()> {
        let grown = instrs.saturating_sub(self.0.given);
        memory::ensure_available(grown.saturating_mul(INSTR_BYTES))
            .map_err(|e| e.context("compilation"))
    }
}

/// How many instructions all computations of a module have together.
pub(crate) fn instr_count(module: &Module) -> usize {
    module.computations().iter().map(Computation::instrs).map(<[Instr]>::len).sum()
}
