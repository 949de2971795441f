//! What memory a program takes, known before it runs.

use std::fmt;

use helio_runtime::program::{Home, StepProgram};

use crate::Executable;

/// The memory that a compiled program takes, in bytes.
///
/// What steps hand on to each other lies in one arena, where values that are never needed at once
/// share places; results and what loops carry have blocks of their own. All of it is allocated
/// when a run begins, and fails then if it fails. What steps take besides is taken while they run, from
/// the same account; it is stated for generated code and transforms, and for others counted only then
/// (products pack some hundred kilobytes on each thread). Instructions that are interpreted take memory
/// besides.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let double = helio::compile(module, &helio::CompileOptions::default())?;
/// let plan = double.memory_plan().expect("it is compiled");
/// assert_eq!((plan.arguments, plan.blocks, plan.arena_bytes), (vec![8], vec![8], 0));
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlan {
    /// Each argument, tuples taken apart.
    pub arguments: Vec<usize>,
    /// Each constant; the program holds them between runs, too.
    pub constants: Vec<usize>,
    /// The places in the arena: where they begin, and how many bytes they have.
    pub arena: Vec<(usize, usize)>,
    /// The size of the arena.
    pub arena_bytes: usize,
    /// Each block: results, and what loops carry.
    pub blocks: Vec<usize>,
    /// What steps take besides on each thread while they run, at most.
    pub scratch_bytes: usize,
    /// What tables take, at most, that the first run makes and the program keeps.
    pub table_bytes: usize,
}

impl MemoryPlan {
    fn of(program: &StepProgram) -> Self {
        let parts = program.parts();
        let (mut arena, mut blocks) = (Vec::new(), Vec::new());
        for slot in &parts.slots {
            match slot.home {
                Home::Arena(offset) => arena.push((offset, slot.bytes)),
                Home::Block(_) => blocks.push(slot.bytes),
                Home::Argument(_) | Home::Constant(_) | Home::Part(_) => {}
            }
        }
        arena.sort_unstable();
        MemoryPlan {
            arguments: parts.arguments.iter().map(|argument| argument.bytes).collect(),
            constants: parts.constants.iter().map(|constant| constant.len()).collect(),
            arena,
            arena_bytes: parts.arena_bytes,
            blocks,
            scratch_bytes: program.scratch_bytes(),
            table_bytes: program.table_bytes(),
        }
    }

    /// What a run on one thread takes besides arguments and constants.
    pub fn run_bytes(&self) -> usize {
        let own = self.scratch_bytes.saturating_add(self.table_bytes);
        (self.blocks.iter().sum::<usize>() + self.arena_bytes).saturating_add(own)
    }

    /// The most that is in use at once: arguments, constants, and all that a run takes.
    pub fn peak_bytes(&self) -> usize {
        let held = self.arguments.iter().chain(&self.constants).sum::<usize>();
        held.saturating_add(self.run_bytes())
    }
}

impl Executable {
    /// The memory that it takes; `None` if it is interpreted.
    pub fn memory_plan(&self) -> Option<MemoryPlan> {
        self.plan().map(MemoryPlan::of)
    }
}

/// A line for each kind of memory and, indented, for each of its pieces.
impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "peak       {:>12} bytes", self.peak_bytes())?;
        for (what, pieces) in [
            ("arguments", &self.arguments),
            ("constants", &self.constants),
            ("blocks", &self.blocks),
        ] {
            writeln!(
                f,
                "{what:10} {:>12} bytes in {}",
                pieces.iter().sum::<usize>(),
                pieces.len()
            )?;
            for (i, bytes) in pieces.iter().enumerate() {
                writeln!(f, "  {i:<8} {bytes:>12}")?;
            }
        }
        writeln!(f, "scratch    {:>12} bytes on each thread", self.scratch_bytes)?;
        writeln!(f, "tables     {:>12} bytes kept from the first run on", self.table_bytes)?;
        write!(f, "arena      {:>12} bytes for {} values", self.arena_bytes, self.arena.len())?;
        for (offset, bytes) in &self.arena {
            write!(f, "\n  {offset:<8} {bytes:>12}")?;
        }
        Ok(())
    }
}
