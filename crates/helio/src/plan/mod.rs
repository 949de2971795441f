//! From a module to a [`StepProgram`]: which step computes what, in which memory.
//!
//! Values are arrays only: tuples are taken apart, and what only renames elements (`tuple`,
//! `get-tuple-element`, `reshape`, `bitcast`) costs nothing, since all arrays are dense and row-major.
//! Every other instruction becomes
//! a step: generated code, a tuned kernel, a loop or a branch, or, for what none of these covers, a
//! call of the interpreter on that one instruction.
//!
//! Each array has a *storage*. An instruction may take over the storage of an operand that it is
//! the last to use. A loop's state is handed on by exchanging storages ([`flow`]). When all steps
//! are known, storages get their places ([`place`]).

mod ahead;
mod arrays;
mod bind;
mod code;
mod collective;
mod custom_call;
mod emit;
mod flow;
mod fused;
mod host;
mod native;
mod part;
mod place;
mod proof;
mod steps;
mod target;

use std::collections::HashMap;
use std::io;

use helio_ir::{
    CompId, Computation, Error, InstrAt, InstrId, Literal, Module, Op, Shape, Verified,
};
use helio_passes::effects::Effects;
use helio_passes::growth::Growth;
use helio_passes::watch::Watch;
use helio_runtime::program::{self, ArgumentInfo, ProgramParts, StepProgram};
use helio_runtime::{JitBatch, Threads, View};

use crate::client::Client;
use crate::interpreted::{Interpreted, Reason};

pub(crate) use arrays::donated;
pub(crate) use host::{Caller, Calls};
pub(crate) use steps::StepInfos;
pub(crate) use target::Target;

use arrays::Leaves;
use fused::Fused;
use steps::StepLog;
use target::Vectors;

/// A program and what its host calls are.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) program: StepProgram,
    pub(crate) calls: Calls,
    /// What has no native code.
    pub(crate) interpreted: Vec<Interpreted>,
    /// What each step is for.
    pub(crate) steps: StepInfos,
}

/// Why there is no plan.
#[derive(Debug)]
pub(crate) enum NoPlan {
    /// The interpreter must run the whole module, because of this instruction.
    Interpret(Interpreted),
    /// The system does not let generated code be run.
    NoCode,
    /// No memory, a limit of the compilation, or a defect.
    Failed(Error),
}

impl From<Error> for NoPlan {
    fn from(error: Error) -> Self {
        NoPlan::Failed(error)
    }
}

type Planned<T> = Result<T, NoPlan>;

/// Loops and branches nested deeper than this are left to the interpreter, which has the stack.
const MAX_DEPTH: usize = 64;

/// Makes the plan of a module.
pub(crate) fn plan(
    module: &Verified<Module>,
    target: &Target<'_>,
    client: &Client,
    watch: &Watch,
) -> Planned<Plan> {
    let mut planner = Planner {
        module,
        target,
        client,
        threads: client.pool().threads(usize::MAX),
        storages: Vec::new(),
        arguments: Vec::new(),
        constants: Vec::new(),
        calls: Calls::default(),
        effects: Effects::of(module),
        watch,
        growth: Growth::of(module),
        sizes: sizes(module),
        planned: 0,
        fused: Fused::default(),
        frames: 0,
        machine_code: JitBatch::default(),
        loops: Vec::new(),
        compact: None,
        written: Vec::new(),
        inner: Vec::new(),
        in_scratch: HashMap::new(),
        proofs: proof::Proofs::new(target.proofs),
        depth: 0,
        position: 0,
        at: (module.entry_id(), module.entry().root()),
        interpreted: Vec::new(),
        steps: StepLog::default(),
        unused: None,
    };
    planner.make_ahead()?;
    let entry = module.entry_id();
    let params = planner.entry_params(module.entry());
    // Copies of results are for the root.
    planner.steps.begin((entry, module.entry().root()));
    let mut steps = Vec::new();
    let outcome = planner.computation(entry, params?, &mut steps)?;
    let mut results = Vec::with_capacity(outcome.values.len());
    for &value in &outcome.values {
        let storage = planner.owned_result(value, outcome.owner, &mut steps);
        planner.storages[storage.index()].block = true;
        results.push(storage);
    }
    planner.finish(results, steps)
}

/// The memory of an array, as the planner sees it: storages are merged, and then get slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StorageId(u32);

impl StorageId {
    /// The place in [`Planner::storages`].
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A step whose memory has no slots yet.
type Step = program::Step<StorageId>;
/// What such a step does.
type Action = program::Action<StorageId>;

/// What a storage holds when the run begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Argument(usize),
    Constant(usize),
    Nothing,
}

/// Who may write a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The frame of this number.
    Frame(usize),
    /// Nobody: it is a constant, an argument that was not donated, or known by two names.
    Nobody,
}

impl Owner {
    /// The frame of the entry computation.
    const ENTRY: Owner = Owner::Frame(0);
}

struct Storage {
    bytes: usize,
    source: Source,
    owner: Owner,
    /// How many loops surround its owner.
    loops: usize,
    /// Positions of the first and the last step that touch it.
    first: usize,
    last: usize,
    /// Whether it needs a block of its own.
    block: bool,
    /// The storage it was merged with, if it was.
    merged: Option<StorageId>,
    /// Whether it is a result already.
    taken: bool,
    /// The storage that it is a part of, if it is one: nobody's, and needed as long as this one.
    part_of: Option<StorageId>,
}

/// A loop that is being planned.
struct Loop {
    /// Storages of the outside that its steps touch.
    touched: Vec<StorageId>,
}

struct Planner<'m> {
    module: &'m Verified<Module>,
    target: &'m Target<'m>,
    client: &'m Client,
    /// The threads a run may have.
    threads: Threads<'m>,
    storages: Vec<Storage>,
    arguments: Vec<ArgumentInfo>,
    constants: Vec<View>,
    calls: Calls,
    effects: Effects,
    watch: &'m Watch,
    /// The room that is left for computations of loops and branches.
    growth: Growth,
    /// For each computation, the instructions that its plan takes.
    sizes: Vec<usize>,
    /// The instructions planned so far.
    planned: usize,
    fused: Fused,
    /// Frames made so far: one for each computation that is planned, each time.
    frames: usize,
    /// The code of kernels.
    machine_code: JitBatch,
    loops: Vec<Loop>,
    /// In a loop that may become one kernel: the vectors of its kernels.
    compact: Option<Vectors>,
    /// The kernels of the loops that are being planned.
    written: Vec<native::Written>,
    /// The loops in them that are one kernel each already,
    inner: Vec<native::Inner>,
    /// and the sizes of storages that these have in scratch, which have no bytes any more.
    in_scratch: HashMap<StorageId, usize>,
    /// What is needed to prove that steps may change operands in place.
    proofs: proof::Proofs,
    depth: usize,
    /// The number of the next step, in the order of execution.
    position: usize,
    /// The instruction that is being planned.
    at: InstrAt,
    /// What has no native code, so far.
    interpreted: Vec<Interpreted>,
    /// What each step is for, so far.
    steps: StepLog,
    /// The storage of values that nobody uses, if there are any.
    unused: Option<StorageId>,
}

/// A computation that is being planned.
struct Frame<'m> {
    id: CompId,
    computation: &'m Computation,
    owner: Owner,
    /// For each instruction, the storages of its arrays.
    values: Vec<Vec<StorageId>>,
    leaves: Leaves,
}

impl Frame<'_> {
    /// The storages of an instruction's operands, as its steps read them, one after the other.
    fn operands(&self, instr: InstrId) -> Vec<StorageId> {
        let operands = arrays::read_operands(self.computation, instr);
        operands.iter().flat_map(|o| self.values[o.index()].iter().copied()).collect()
    }
}

/// What a planned computation leaves.
struct Outcome {
    owner: Owner,
    values: Vec<StorageId>,
}

impl<'m> Planner<'m> {
    fn entry_params(&mut self, entry: &Computation) -> Planned<Vec<Vec<StorageId>>> {
        let donated = donated(&self.module.config, entry);
        let mut params = Vec::new();
        for (number, id) in entry.params() {
            let mut leaves = Vec::new();
            self.at = (self.module.entry_id(), id);
            for (leaf, shape) in entry.instr(id).shape.leaves().into_iter().enumerate() {
                let bytes = self.bytes(shape)?;
                let source = Source::Argument(self.arguments.len());
                let written = donated.contains_key(&(number, leaf));
                self.arguments.push(ArgumentInfo { bytes, written });
                let owner = if written { Owner::ENTRY } else { Owner::Nobody };
                let storage = self.storage(bytes, owner);
                self.storages[storage.index()].source = source;
                leaves.push(storage);
            }
            params.push(leaves);
        }
        Ok(params)
    }

    /// The vectors of the kernels that are being planned.
    fn vectors(&self) -> Vectors {
        self.compact.unwrap_or_else(|| self.target.vectors())
    }

    /// The interpreter must run the whole module, because of the instruction that is being planned.
    fn interpret(&self, reason: Reason) -> NoPlan {
        NoPlan::Interpret(Interpreted::new(self.module, self.at, reason))
    }

    /// Notes that the instruction that is being planned has no native code.
    fn note(&mut self, reason: Reason) {
        let interpreted = Interpreted::new(self.module, self.at, reason);
        // An instruction may have several kernels.
        if self.interpreted.last() != Some(&interpreted) {
            self.interpreted.push(interpreted);
        }
    }

    /// The bytes of an array (or token). Errors: sizes that are known only at run time.
    fn bytes(&self, shape: &Shape) -> Planned<usize> {
        match shape {
            Shape::Array(array) if array.is_static() => Ok(array.size_bytes()),
            Shape::Token => Ok(0),
            _ => Err(self.interpret(Reason::RunTimeSizes)),
        }
    }

    /// A new storage.
    fn storage(&mut self, bytes: usize, owner: Owner) -> StorageId {
        let position = self.position;
        self.storages.push(Storage {
            bytes,
            source: Source::Nothing,
            owner,
            loops: self.loops.len(),
            first: position,
            last: position,
            block: false,
            merged: None,
            taken: false,
            part_of: None,
        });
        StorageId(self.storages.len() as u32 - 1)
    }

    /// The storage of values that nobody uses: it has no bytes.
    fn unused(&mut self) -> StorageId {
        if let Some(known) = self.unused {
            return known;
        }
        let storage = self.storage(0, Owner::Nobody);
        self.unused = Some(storage);
        storage
    }

    /// Where merged storages lead.
    fn find(&self, mut id: StorageId) -> StorageId {
        while let Some(next) = self.storages[id.index()].merged {
            id = next;
        }
        id
    }

    /// Makes two storages one. They must be of one size, and never needed at once.
    fn merge(&mut self, from: StorageId, into: StorageId) {
        let (from, into) = (self.find(from), self.find(into));
        if from == into {
            return;
        }
        let Storage { first, last, block, source, .. } = self.storages[from.index()];
        let target = &mut self.storages[into.index()];
        target.first = target.first.min(first);
        target.last = target.last.max(last);
        target.block |= block;
        if target.source == Source::Nothing {
            target.source = source;
        }
        self.storages[from.index()].merged = Some(into);
    }

    /// Notes that the step at the current position touches a storage.
    fn touch(&mut self, id: StorageId) {
        let id = self.find(id);
        let position = self.position;
        let storage = &mut self.storages[id.index()];
        storage.first = storage.first.min(position);
        storage.last = storage.last.max(position);
        let part_of = storage.part_of;
        if storage.loops < self.loops.len() {
            self.loops.last_mut().expect("a loop").touched.push(id);
        }
        if let Some(whole) = part_of {
            self.touch(whole);
        }
    }

    /// Appends a step that touches these storages.
    fn push(&mut self, steps: &mut Vec<Step>, action: Action, touches: &[StorageId]) {
        self.position += 1;
        touches.iter().for_each(|&id| self.touch(id));
        steps.push(self.steps.step(action));
    }

    fn copy(&mut self, from: StorageId, to: StorageId, steps: &mut Vec<Step>) {
        self.push(steps, Action::Copy { from, to }, &[from, to]);
    }

    fn constant(&mut self, literal: &Literal) -> Planned<StorageId> {
        let bytes = match literal.as_array() {
            Some(array) => self.client.constant(array)?,
            None => self.client.memory().allocate(0).map_err(Error::from)?.into(),
        };
        let storage = self.storage(bytes.len(), Owner::Nobody);
        self.constants.push(bytes);
        self.storages[storage.index()].source = Source::Constant(self.constants.len() - 1);
        Ok(storage)
    }

    /// Plans a computation whose parameters have these storages; gives those of its result.
    fn computation(
        &mut self,
        id: CompId,
        params: Vec<Vec<StorageId>>,
        steps: &mut Vec<Step>,
    ) -> Planned<Outcome> {
        if self.depth >= MAX_DEPTH {
            return Err(self.interpret(Reason::Nesting));
        }
        let computation = self.module.computation(id);
        let owner = Owner::Frame(self.frames);
        self.frames += 1;
        let count = computation.instrs().len();
        self.planned += count;
        self.watch.ensure_memory(self.planned)?;
        // Kernels that are whole loops take parts of arrays for arrays of their own.
        let leaves = Leaves::of(computation, &self.effects, self.compact.is_none());
        let mut frame = Frame { id, computation, owner, values: Vec::with_capacity(count), leaves };
        self.depth += 1;
        let at = self.at;
        for instr in computation.ids() {
            let values = match &computation.instr(instr).op {
                Op::Parameter(param) => params
                    .get(param.number)
                    .cloned()
                    .ok_or_else(|| Error::internal("a parameter has no argument"))?,
                _ => {
                    let before = self.steps.begin((id, instr));
                    let values = self.instruction(&frame, instr, steps)?;
                    self.steps.end(before, &values);
                    values
                }
            };
            frame.values.push(values);
        }
        self.depth -= 1;
        self.at = at;
        let values = std::mem::take(&mut frame.values[computation.root().index()]);
        Ok(Outcome { owner, values })
    }

    /// The storages of an instruction's result, whose steps are appended.
    fn instruction(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        self.watch.count_steps(1)?;
        let instr = frame.computation.instr(id);
        self.at = (frame.id, id);
        if !frame.leaves.is_used(id) && !self.effects.has_effect(&instr.op) {
            return Ok(vec![self.unused(); instr.shape.leaves().len()]);
        }
        match &instr.op {
            Op::Tuple(_) => Ok(frame.operands(id)),
            op if arrays::element_given(op).is_some() => {
                let tuple = instr.operands[0];
                let element = arrays::element_given(op).unwrap_or_default();
                let before = frame.leaves.start(tuple, element);
                let count = instr.shape.leaves().len();
                Ok(frame.values[tuple.index()][before..before + count].to_vec())
            }
            op if arrays::forwards(op, frame.computation, id) => {
                let mut values = frame.operands(id);
                values.truncate(instr.shape.leaves().len());
                Ok(values)
            }
            Op::Slice(_) | Op::DynamicSlice(_) if frame.leaves.has_parts() => {
                match part::of(frame.computation, id) {
                    Some(part) => Ok(self.part(frame, id, part, steps)),
                    None => self.emit(frame, id, steps),
                }
            }
            Op::Constant(op) => {
                if op.elided {
                    return Err(self.interpret(Reason::ElidedConstant));
                }
                op.literal.leaves().into_iter().map(|leaf| self.constant(leaf)).collect()
            }
            // Steps run in the order of the program, so a token is nothing.
            Op::AfterAll(_) => self.fresh(frame.owner, &instr.shape),
            Op::While(_) | Op::Conditional(_) if !self.has_room(&instr.op) => {
                self.host(frame, id, steps)
            }
            Op::While(op) => self.while_loop(frame, id, op, steps),
            Op::Conditional(op) => self.conditional(frame, id, op, steps),
            _ => self.emit(frame, id, steps),
        }
    }

    /// Takes the room for what a loop or a branch runs. False if there is too little: computations may
    /// use each other without end.
    fn has_room(&mut self, op: &Op) -> bool {
        let sizes = op.callees().into_iter().map(|id| self.module.computation(id).instrs().len());
        let expanded = op.callees().into_iter().map(|id| self.sizes[id.index()]);
        self.growth.fits(expanded.fold(0, usize::saturating_add)) && self.growth.take(sizes.sum())
    }

    /// A fresh storage for each array of a shape.
    fn fresh(&mut self, owner: Owner, shape: &Shape) -> Planned<Vec<StorageId>> {
        let of = |shape| self.bytes(shape).map(|bytes| self.storage(bytes, owner));
        shape.leaves().into_iter().map(of).collect()
    }

    /// A storage for a result of a frame: the value's own, if `owner` owns it and it is no result yet,
    /// else a copy.
    fn owned_result(&mut self, value: StorageId, owner: Owner, steps: &mut Vec<Step>) -> StorageId {
        let value = self.find(value);
        let storage = &mut self.storages[value.index()];
        // A frame owns an argument if the caller may have given it away.
        if storage.owner == owner && !storage.taken {
            storage.taken = true;
            return value;
        }
        let bytes = storage.bytes;
        let copy = self.storage(bytes, owner);
        self.storages[copy.index()].taken = true;
        self.copy(value, copy, steps);
        copy
    }

    fn finish(self, results: Vec<StorageId>, steps: Vec<Step>) -> Planned<Plan> {
        self.proofs.check(&steps, &|id| self.find(id))?;
        let assignment = place::place(&self);
        let results = results.into_iter().map(|id| assignment.slot(id)).collect();
        let Planner {
            target,
            arguments,
            constants,
            calls,
            machine_code,
            interpreted,
            steps: log,
            ..
        } = self;
        let (steps, infos) = log.finish(steps, &assignment);
        machine_code.install().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => NoPlan::NoCode,
            _ => Error::exhausted(format!("no pages for generated code: {error}")).into(),
        })?;
        let place::BufferAssignment { slots, arena_bytes, .. } = assignment;
        let float_mode = target.float_mode();
        let parts =
            ProgramParts { arguments, constants, slots, results, arena_bytes, float_mode, steps };
        let program = StepProgram::new(parts);
        let program = program.map_err(|e| Error::internal(format!("a plan is wrong: {e}")))?;
        Ok(Plan { program, calls, interpreted, steps: infos })
    }
}

/// For each computation, its instructions with those of all that its loops and branches run.
fn sizes(module: &Module) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::with_capacity(module.computations().len());
    for computation in module.computations() {
        let mut size = computation.instrs().len();
        for instr in computation.instrs() {
            if let Op::While(_) | Op::Conditional(_) = instr.op {
                let callees = instr.op.callees().into_iter().map(|id| sizes[id.index()]);
                size = callees.fold(size, usize::saturating_add);
            }
        }
        sizes.push(size);
    }
    sizes
}
