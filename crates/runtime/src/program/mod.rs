//! Compiled programs: steps over slots of memory, with loops and branches.
//!
//! A [`StepProgram`] knows bytes, not operations. Its memory is a list of slots: arguments, constants,
//! places in one arena, and blocks of their own (results, and what loops carry). Steps run in order
//! and name the slots they read and write. A loop hands what an iteration has made to the next by
//! exchanging slots' addresses, without copying ([`While::rotate`]).
//!
//! [`StepProgram::new`] checks what the executor relies on: sizes, that no step writes memory that it
//! reads under another name, that constants and borrowed arguments are never written. So a wrong
//! plan is an error when the program is made. What is left to trust is what [`RawKernel`]s say of
//! themselves, which is why those are `unsafe` to implement.

mod check;
mod direct;
mod rename;
mod replay;
mod run;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use helio_limits::Stopped;
use smallvec::SmallVec;

use crate::Threads;
use crate::float_mode::FloatMode;
use crate::jit::CallError;
use crate::memory::{OutOfMemory, View};

#[cfg(target_arch = "x86_64")]
pub(crate) use direct::Entry;
pub use direct::WholeCode;
pub use run::{Argument, Observer, Run};

use direct::Groups;

/// What a step reports when it fails.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A slot of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

impl SlotId {
    /// The place in [`ProgramParts::slots`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a slot's memory is when a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// An argument, by number.
    Argument(usize),
    /// A constant, by number.
    Constant(usize),
    /// In the arena, at this offset in bytes.
    Arena(usize),
    /// A block of its own, by number; each number belongs to one slot.
    Block(usize),
    /// In another slot, which may be written only where this one is not used: where [`Action::Part`] has found
    /// it, and before that, and after a loop has exchanged the other's memory, at its beginning.
    Part(SlotId),
}

/// A piece of memory that steps name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its size.
    pub bytes: usize,
    /// Where it is.
    pub home: Home,
}

/// An argument of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgumentInfo {
    /// Its size.
    pub bytes: usize,
    /// Whether the program may write it. An argument that is lent rather than given is copied
    /// before the run then.
    pub written: bool,
}

/// Code of a step: reads slices and writes slices.
pub trait SliceKernel: Send + Sync {
    /// A short name for listings.
    fn name(&self) -> &str;

    /// Computes `outputs` from `inputs`. Outputs hold whatever was in their memory before; for the
    /// operands that a step updates in place, that is their value.
    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure>;

    /// What it takes besides inputs and outputs, at most.
    fn own_memory(&self) -> OwnMemory {
        OwnMemory::default()
    }

    /// The bytes of a row of its only output, if [`SliceKernel::run_finished`] gives rows away while they
    /// are in cache.
    fn row_bytes(&self) -> Option<usize> {
        None
    }

    /// Computes its only output, as [`SliceKernel::run`] does. Rows that are complete are given to
    /// `finish`, some neighbours at a time, on any of the threads: each once, or, if all have been computed
    /// anew, all at once once more.
    fn run_finished(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        finish: Finish<'_>,
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        self.run(inputs, &mut [&mut *output], threads)?;
        finish(0, output);
        Ok(())
    }
}

/// Bytes that a kernel takes besides its inputs and outputs, from the run's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnMemory {
    /// On each thread that works for it, while it runs.
    pub thread_bytes: usize,
    /// Tables that its first run makes for all runs to come.
    pub table_bytes: usize,
}

/// What is done with bytes of an output that are complete: where in it they begin, and the bytes.
pub type Finish<'a> = &'a (dyn Fn(usize, &mut [u8]) + Sync);

/// A parameter of [`RawKernel`] code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawParam {
    /// It touches no byte from here on.
    pub bytes: usize,
    /// Whether it reads.
    pub read: bool,
    /// Whether it writes.
    pub write: bool,
    /// What its address is a multiple of: a divisor of [`Block::ALIGN`](crate::Block::ALIGN), and
    /// 1 unless it is written.
    pub align: usize,
}

/// What [`RawKernel`] code is called with.
#[derive(Clone, Debug)]
pub struct Signature {
    /// A short name for listings.
    pub name: String,
    /// What it touches of each of its parameters.
    pub params: Vec<RawParam>,
    /// Pairs of parameters, one read and one written, that may have one address: what is read there
    /// is read before it is written, and by the same piece of the range. Others that are written
    /// overlap nothing.
    pub shared: Vec<(usize, usize)>,
    /// The bytes of the only written parameter that one number of the range touches, if number `n`
    /// touches exactly those from `n * unit_bytes` to `(n + 1) * unit_bytes`.
    pub unit_bytes: Option<usize>,
    /// The numbers that it works on: `0..range`.
    pub range: i64,
    /// Pieces of the range begin at multiples of this.
    pub grain: i64,
    /// Memory that it takes on each thread while it runs.
    pub scratch_bytes: usize,
}

/// Code that takes addresses, as generated code does.
///
/// # Safety
/// [`RawKernel::signature`] is the same in every call, and true of [`RawKernel::call`], which touches
/// no memory of its caller but what the signature says: of each parameter the first
/// [`RawParam::bytes`], written only where [`RawParam::write`] says so. Two pieces of the range that do
/// not overlap touch nothing that the other writes, so that they may run at the same time, on several
/// threads. All that is written is initialised. [`RawKernel::whole_code`] does what
/// [`RawKernel::call_whole`] does.
pub unsafe trait RawKernel: Send + Sync {
    /// What it is called with.
    fn signature(&self) -> &Signature;

    /// Runs it on a piece of its range.
    ///
    /// # Safety
    /// `piece` lies in the range, and begins and ends at a multiple of the grain or the range's end.
    /// `at` has an address for each parameter, a multiple of [`RawParam::align`], valid for
    /// reading and, where [`RawParam::write`] says so, writing what the piece touches of the
    /// parameter's bytes; what is written overlaps no other parameter, except that parameters that
    /// [`Signature::shared`] lists may have one address. Meanwhile nothing else writes what is read
    /// or accesses what is written, other pieces of the range aside.
    ///
    /// # Errors
    /// Code that checks its accesses has ended because one lies outside of its buffer.
    unsafe fn call(
        &self,
        at: &[*mut u8],
        piece: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError>;

    /// Runs it on its whole range: one virtual call where asking for the range first would take two.
    ///
    /// # Safety
    /// As for [`RawKernel::call`].
    ///
    /// # Errors
    /// As for [`RawKernel::call`].
    unsafe fn call_whole(&self, at: &[*mut u8], threads: Threads<'_>) -> Result<(), CallError> {
        // SAFETY: the caller's promise; the piece is the range.
        unsafe { self.call(at, 0..self.signature().range, threads) }
    }

    /// The machine code of [`RawKernel::call_whole`], if that is a task of some microseconds on the
    /// caller's thread, without scratch, that cannot fail. It can be called as long as the kernel is
    /// there.
    fn whole_code(&self) -> Option<WholeCode> {
        None
    }
}

/// What the steps of a run ask of whoever runs the program.
pub trait HostCalls {
    /// Performs call number `call`. Slices are as for [`SliceKernel::run`].
    fn call(
        &mut self,
        call: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure>;
}

/// The number of a step: in the order of [`ProgramParts::steps`], a loop before the steps of its condition
/// and its body, a branch before those of its lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u32);

impl StepId {
    /// The place in a list of what is known of each step.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.0)
    }
}

/// A step of a program. `S` names the memory that it accesses: a slot, or whatever a planner calls
/// memory before it has slots ([`Step::rename`]).
#[derive(Clone)]
pub struct Step<S = SlotId> {
    /// What errors and observers call it. Whoever makes the program chooses the numbers.
    pub id: StepId,
    /// What it does.
    pub action: Action<S>,
}

/// What a step does.
#[derive(Clone)]
pub enum Action<S = SlotId> {
    /// Code that takes addresses. `slots` are its parameters in order; a slot may stand twice where
    /// [`Signature::shared`] allows it, or nothing writes it.
    Raw {
        /// The code.
        kernel: Arc<dyn RawKernel>,
        /// Its parameters.
        slots: Vec<S>,
    },
    /// A kernel of this library or of the caller.
    Kernel {
        /// The code.
        kernel: Arc<dyn SliceKernel>,
        /// What it reads.
        inputs: Vec<S>,
        /// What it writes; disjoint from the inputs and from each other.
        outputs: Vec<S>,
    },
    /// A kernel, and code that changes the kernel's only output in place.
    Finished(Box<Finished<S>>),
    /// A call of the run's [`HostCalls`].
    Host {
        /// Which.
        call: usize,
        /// What it reads.
        inputs: Vec<S>,
        /// What it writes; disjoint from the inputs and from each other.
        outputs: Vec<S>,
    },
    /// Copies a slot to another of the same size.
    Copy {
        /// What is read.
        from: S,
        /// What is written.
        to: S,
    },
    /// Finds a part of a slot, which is another slot: nothing is moved.
    Part(Box<Part<S>>),
    /// A loop.
    While(Box<While<S>>),
    /// One of several lists of steps.
    Branch(Box<Branch<S>>),
}

impl<S: Copy> Action<S> {
    /// The slots that get values by it itself, rather than by the steps within it.
    pub fn written(&self) -> SmallVec<[S; 4]> {
        match self {
            Action::Raw { kernel, slots } => {
                let params = kernel.signature().params.iter();
                params.zip(slots).filter(|(param, _)| param.write).map(|(_, &slot)| slot).collect()
            }
            Action::Kernel { outputs, .. } | Action::Host { outputs, .. } => {
                outputs.iter().copied().collect()
            }
            Action::Finished(step) => SmallVec::from_slice(&[step.output]),
            Action::Copy { to, .. } => SmallVec::from_slice(&[*to]),
            Action::Part(part) => SmallVec::from_slice(&[part.part]),
            Action::While(_) | Action::Branch(_) => SmallVec::new(),
        }
    }
}

/// A kernel whose only output is changed in place by code that may run on rows as soon as they are
/// complete, while they are in cache. It means the kernel's step and the code's, one after the other.
/// The code has [`Signature::unit_bytes`]. Where rows that are complete begin or end within a piece of its
/// range that may not be cut, that piece waits until all are.
#[derive(Clone)]
pub struct Finished<S = SlotId> {
    /// The kernel. It has [`SliceKernel::row_bytes`].
    pub kernel: Arc<dyn SliceKernel>,
    /// What the kernel reads.
    pub inputs: Vec<S>,
    /// What both write; disjoint from the inputs.
    pub output: S,
    /// The code.
    pub code: Arc<dyn RawKernel>,
    /// The code's parameters. It writes nothing but the output.
    pub slots: Vec<S>,
}

/// A part of a slot that becomes a slot of its own. It begins `offset` bytes from the other's beginning, and as
/// much further as the indices say.
#[derive(Clone)]
pub struct Part<S = SlotId> {
    /// In which slot it is.
    pub of: S,
    /// The slot that it becomes, whose home is [`Home::Part`] of `of`.
    pub part: S,
    /// Where it begins if all indices are zero, in bytes.
    pub offset: usize,
    /// What else that depends on.
    pub indices: Vec<PartIndex<S>>,
}

/// A number in memory that says where a part begins.
#[derive(Clone, Copy, Debug)]
pub struct PartIndex<S = SlotId> {
    /// The integer.
    pub index: S,
    /// Its bytes: 1, 2, 4 or 8.
    pub bytes: usize,
    /// Whether it may be less than zero, which counts as zero.
    pub is_signed: bool,
    /// More counts as this.
    pub most: usize,
    /// By how many bytes the part begins later for each unit.
    pub stride: usize,
}

/// Runs `body` as long as `cond` leaves a byte other than zero in `go`.
#[derive(Clone)]
pub struct While<S = SlotId> {
    /// Computes `go`.
    pub cond: Vec<Step<S>>,
    /// One byte.
    pub go: S,
    /// How often the body runs, if that is known; `cond` is not run then.
    pub trips: Option<u64>,
    /// An iteration.
    pub body: Vec<Step<S>>,
    /// After each iteration, each of these cycles of slots is rotated: a slot gets the memory of the
    /// next one, and the last that of the first. All are blocks of their own and of one size.
    pub rotate: Vec<Vec<S>>,
}

/// Which branch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector<S = SlotId> {
    /// A byte: branch 0 unless it is zero, else branch 1.
    Pred(S),
    /// A 32-bit integer: that branch, or the last if there is none of that number.
    Index(S),
}

/// Runs one of several lists of steps.
#[derive(Clone)]
pub struct Branch<S = SlotId> {
    /// Which.
    pub selector: Selector<S>,
    /// The lists; at least one.
    pub branches: Vec<Vec<Step<S>>>,
}

/// Why a run stopped.
#[derive(Debug)]
pub enum RunError {
    /// The arguments do not fit.
    Arguments(String),
    /// An allocation failed, or would have passed a limit of memory.
    Memory(OutOfMemory),
    /// A limit was reached.
    Stopped {
        /// The step that was to come next, or that was cut short; `None` if all had been begun.
        at: Option<StepId>,
        /// The limit.
        why: Stopped,
    },
    /// A step failed.
    Step {
        /// Which.
        at: StepId,
        /// How.
        failure: Failure,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Arguments(detail) => f.write_str(detail),
            RunError::Memory(error) => error.fmt(f),
            RunError::Stopped { at: Some(at), why } => write!(f, "{at}: {why}"),
            RunError::Stopped { at: None, why } => why.fmt(f),
            RunError::Step { at, failure } => write!(f, "{at}: {failure}"),
        }
    }
}

impl std::error::Error for RunError {}

/// What the address of memory that a program only reads must be divisible by. (A lent argument that
/// lies elsewhere is copied.)
pub const LENT_ALIGN: usize = 16;

/// What a program is made of.
#[derive(Default)]
pub struct ProgramParts {
    /// The arguments, by number.
    pub arguments: Vec<ArgumentInfo>,
    /// The constants, by number. Their addresses must be divisible by [`LENT_ALIGN`].
    pub constants: Vec<View>,
    /// All memory that steps name.
    pub slots: Vec<Slot>,
    /// The slots whose memory the results are, each once: blocks of their own, or arguments that the
    /// program may write.
    pub results: Vec<SlotId>,
    /// The size of the arena.
    pub arena_bytes: usize,
    /// How its code computes with floats; calls of the host and observers have the caller's mode.
    pub float_mode: FloatMode,
    /// What is done.
    pub steps: Vec<Step>,
}

/// A program that can be run any number of times, from any number of threads at once.
pub struct StepProgram {
    parts: ProgramParts,
    /// Block number → its size.
    block_bytes: Vec<usize>,
    /// Slots that loops exchange, each with a part of it, in order.
    moving_parts: Vec<(SlotId, SlotId)>,
    /// Which of its steps are called as groups.
    groups: Groups,
}

impl StepProgram {
    /// The program of these parts. Errors: what is wrong with them.
    pub fn new(parts: ProgramParts) -> Result<Self, String> {
        let block_bytes = check::check(&parts)?;
        let groups = Groups::of(&parts.steps);
        let moving_parts = moving_parts(&parts);
        Ok(StepProgram { parts, block_bytes, moving_parts, groups })
    }

    /// What it is made of.
    pub fn parts(&self) -> &ProgramParts {
        &self.parts
    }

    /// The bytes that a run takes from memory: arena, results and what loops carry; not the
    /// arguments, nor constants, which the program holds.
    pub fn run_bytes(&self) -> usize {
        self.block_bytes.iter().fold(self.parts.arena_bytes, |sum, b| sum.saturating_add(*b))
    }

    /// The most that a step takes on each thread while it runs.
    pub fn scratch_bytes(&self) -> usize {
        self.own_memories().map(|own| own.thread_bytes).max().unwrap_or(0)
    }

    /// The most that the tables take which the first run of each kernel makes for all to come.
    pub fn table_bytes(&self) -> usize {
        self.own_memories().fold(0, |sum, own| sum.saturating_add(own.table_bytes))
    }

    fn own_memories(&self) -> impl Iterator<Item = OwnMemory> {
        let mut all = Vec::new();
        each_own_memory(&self.parts.steps, &mut |own| all.push(own));
        all.into_iter()
    }

    /// The bytes of all constants.
    pub fn constant_bytes(&self) -> usize {
        self.parts.constants.iter().map(|c| c.len()).sum()
    }
}

/// Slots that loops exchange, each with a slot that is a part of it, directly or not.
fn moving_parts(parts: &ProgramParts) -> Vec<(SlotId, SlotId)> {
    // For each slot, the one that loops exchange which it is, or is a part of.
    let mut moving = vec![None; parts.slots.len()];
    rotated(&parts.steps, &mut |id| moving[id.index()] = Some(id));
    let mut found = Vec::new();
    // (What a part is a part of, if a part itself, comes before it.)
    for (i, slot) in parts.slots.iter().enumerate() {
        if let Home::Part(of) = slot.home
            && let Some(whole) = moving[of.index()]
        {
            moving[i] = Some(whole);
            found.push((whole, SlotId(i as u32)));
        }
    }
    found.sort_unstable();
    found
}

/// Visits the slots whose memory loops exchange.
fn rotated(steps: &[Step], visit: &mut impl FnMut(SlotId)) {
    for step in steps {
        match &step.action {
            Action::While(each) => {
                each.rotate.iter().flatten().for_each(|&id| visit(id));
                rotated(&each.cond, visit);
                rotated(&each.body, visit);
            }
            Action::Branch(branch) => {
                branch.branches.iter().for_each(|steps| rotated(steps, visit));
            }
            _ => {}
        }
    }
}

fn each_own_memory(steps: &[Step], visit: &mut impl FnMut(OwnMemory)) {
    for step in steps {
        match &step.action {
            Action::Raw { kernel, .. } => visit(scratch_of(&**kernel)),
            Action::Finished(step) => {
                visit(scratch_of(&*step.code));
                visit(step.kernel.own_memory());
            }
            Action::Kernel { kernel, .. } => visit(kernel.own_memory()),
            Action::Host { .. } | Action::Copy { .. } | Action::Part(_) => {}
            Action::While(step) => {
                each_own_memory(&step.cond, visit);
                each_own_memory(&step.body, visit);
            }
            Action::Branch(step) => {
                step.branches.iter().for_each(|steps| each_own_memory(steps, visit));
            }
        }
    }
}

fn scratch_of(kernel: &dyn RawKernel) -> OwnMemory {
    OwnMemory { thread_bytes: kernel.signature().scratch_bytes, table_bytes: 0 }
}

impl fmt::Debug for StepProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepProgram")
            .field("slots", &self.parts.slots.len())
            .field("steps", &self.parts.steps.len())
            .field("run_bytes", &self.run_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
