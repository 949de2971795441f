//! Modules, computations and instructions, in arenas with typed ids.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::ops::Effect;
use crate::origin::{Origin, OriginId, OriginSet, SourceLine};
use crate::stack_frames::StackFrames;
use crate::{BackendConfig, Error, Location, Name, Op, Operands, Result, Shape, Sharding};

/// A computation of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompId(pub u32);

/// An instruction of a computation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstrId(pub u32);

/// An instruction of a module: its computation, and which of that it is.
pub type InstrAt = (CompId, InstrId);

impl CompId {
    /// The place in [`Module::computations`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl InstrId {
    /// The place in [`Computation::instrs`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The shapes a computation takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramShape {
    /// The parameters, by number.
    pub params: Vec<Shape>,
    /// The result.
    pub result: Shape,
}

/// `(f32[2]{0}, s32[])->f32[2]{0}`
impl fmt::Display for ProgramShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Parameters print exactly as the elements of a tuple do.
        write!(f, "{}->{}", Shape::Tuple(self.params.clone()), self.result)
    }
}

/// Where an instruction comes from in the user's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The framework's operation type.
    pub op_type: Option<String>,
    /// The framework's name of the operation.
    pub op_name: Option<String>,
    /// Source file.
    pub source_file: Option<String>,
    /// Source line.
    pub source_line: Option<i64>,
    /// The calls in progress, as a number in the module's [`StackFrames`].
    pub stack_frame: Option<u32>,
    /// Everything else, `key` and value as written.
    pub other: Vec<(String, String)>,
}

/// What an instruction carries besides its operation: kept and printed, without effect on values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Where it comes from.
    pub metadata: Option<Arc<Metadata>>,
    /// How the value is spread over devices.
    pub sharding: Option<Sharding>,
    /// Free attributes of the front end, in the order written; values as written (a quoted string
    /// with its quotes, or a braced map).
    pub frontend_attributes: Vec<(String, String)>,
    /// The configuration of the back end, or of the function that is called.
    pub backend_config: Option<BackendConfig>,
    /// Instructions that must run before.
    pub control_predecessors: Vec<InstrId>,
    /// Attributes that any instruction may carry and that helio does not interpret (`statistics`,
    /// `origin`, `sparsity`…): name and value as written.
    pub other: Vec<(String, String)>,
}

/// An instruction: an operation applied to operands.
#[derive(Clone, Debug)]
pub struct Instr {
    /// The name, unique in its computation.
    pub name: Name,
    /// The operation and its attributes.
    pub op: Op,
    /// The operands; each precedes this instruction.
    pub operands: Operands,
    /// The shape of the result: apart from layouts, what [`Op::infer`] says.
    pub shape: Shape,
    /// Metadata, sharding and the like; `None` if there is nothing of the kind.
    pub extra: Option<Box<Extra>>,
    /// Where it was written.
    pub at: Option<Location>,
    /// The instructions of the program as it was given that this one computes; none in a program
    /// that no pass has seen ([`Module::record_origins`]).
    pub origins: OriginSet,
}

impl Instr {
    /// An instruction without a name, which nothing else is known of.
    pub fn new(op: impl Into<Op>, operands: impl Into<Operands>, shape: Shape) -> Self {
        Instr {
            name: Name::default(),
            op: op.into(),
            operands: operands.into(),
            shape,
            extra: None,
            at: None,
            origins: OriginSet::default(),
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Name>) -> Self {
        self.name = name.into();
        self
    }

    /// What the framework says of it.
    pub fn metadata(&self) -> Option<&Arc<Metadata>> {
        self.extra.as_ref()?.metadata.as_ref()
    }
}

/// A list of instructions, operands before users, with a root whose value is the result.
#[derive(Clone, Debug)]
pub struct Computation {
    /// The name, unique in the module.
    pub name: String,
    /// Attributes after the closing brace (`execution_thread="…"`), as written.
    pub attributes: Vec<(String, String)>,
    /// Where it was written.
    pub at: Option<Location>,
    instrs: Vec<Instr>,
    root: InstrId,
    /// Which instructions are what, from one look at them all.
    index: OnceLock<Index>,
}

/// Which instructions of a computation are what. Passes ask for it all the time, and few instructions
/// are any of it.
#[derive(Clone, Debug, Default)]
struct Index {
    /// The parameters by number.
    params: BTreeMap<usize, InstrId>,
    /// Those that call computations.
    callers: Vec<InstrId>,
    /// Those whose operations have effects, apart from what computations do that they call.
    effects: Vec<InstrId>,
}

impl Index {
    fn of(instrs: &[Instr]) -> Self {
        let mut index = Index::default();
        for (id, instr) in (0..).map(InstrId).zip(instrs) {
            index.add(id, &instr.op);
        }
        index
    }

    fn add(&mut self, id: InstrId, op: &Op) {
        match op {
            Op::Unary(_) | Op::Binary(_) => {}
            Op::Parameter(op) => {
                self.params.insert(op.number, id);
            }
            op => {
                if !op.callees().is_empty() {
                    self.callers.push(id);
                }
                if op.effect() != Effect::None {
                    self.effects.push(id);
                }
            }
        }
    }
}

impl Computation {
    /// An empty computation; the last instruction pushed is its root unless [`Self::set_root`].
    pub fn new(name: impl Into<String>) -> Self {
        Computation {
            name: name.into(),
            attributes: Vec::new(),
            at: None,
            instrs: Vec::new(),
            root: InstrId(0),
            index: OnceLock::new(),
        }
    }

    /// The same computation with these instructions in the place of its own; the last one is the root
    /// unless [`Self::set_root`]. Errors: `computation.C3` if an operand does not precede its user.
    pub fn with_instrs(mut self, instrs: Vec<Instr>) -> Result<Self> {
        ensure_ids(instrs.len().saturating_sub(1))?;
        let mut index = Index::default();
        for (id, instr) in (0..).map(InstrId).zip(&instrs) {
            ensure_precede(id, instr)?;
            index.add(id, &instr.op);
        }
        self.root = InstrId(instrs.len().saturating_sub(1) as u32);
        self.instrs = instrs;
        self.index = index.into();
        Ok(self)
    }

    /// Appends an instruction, which becomes the root. Errors: `computation.C3` if an operand does
    /// not precede it.
    pub fn push(&mut self, instr: Instr) -> Result<InstrId> {
        let id = ensure_ids(self.instrs.len())?;
        ensure_precede(id, &instr)?;
        self.index.take();
        self.instrs.push(instr);
        self.root = id;
        Ok(id)
    }

    /// Makes room for more instructions.
    pub fn reserve(&mut self, additional: usize) {
        self.instrs.reserve(additional);
    }

    /// Makes an instruction of this computation its root.
    ///
    /// # Panics
    /// If there is no such instruction.
    pub fn set_root(&mut self, root: InstrId) {
        assert!(root.index() < self.instrs.len(), "the root is one of the instructions");
        self.root = root;
    }

    /// The instructions, operands before users.
    #[inline]
    pub fn instrs(&self) -> &[Instr] {
        &self.instrs
    }

    /// The instructions themselves, operands before users.
    pub fn into_instrs(self) -> Vec<Instr> {
        self.instrs
    }

    /// The ids of all instructions, in order.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = InstrId> + ExactSizeIterator + use<> {
        (0..self.instrs.len() as u32).map(InstrId)
    }

    /// An instruction of this computation.
    #[inline]
    pub fn instr(&self, id: InstrId) -> &Instr {
        &self.instrs[id.index()]
    }

    /// An instruction of this computation, to change it; operands must keep preceding users.
    pub fn instr_mut(&mut self, id: InstrId) -> &mut Instr {
        self.index.take();
        &mut self.instrs[id.index()]
    }

    /// The instruction whose value is the result. The computation must not be empty.
    #[inline]
    pub fn root(&self) -> InstrId {
        self.root
    }

    /// The shape of the result. The computation must not be empty.
    pub fn result_shape(&self) -> &Shape {
        &self.instr(self.root).shape
    }

    /// The parameter instructions by number, in whatever order they stand.
    pub fn params(&self) -> BTreeMap<usize, InstrId> {
        self.index().params.clone()
    }

    /// The instructions that call computations, in order.
    #[inline]
    pub fn callers(&self) -> &[InstrId] {
        &self.index().callers
    }

    /// The instructions whose operations have effects, in order; not those that merely call
    /// computations that have.
    #[inline]
    pub fn effects(&self) -> &[InstrId] {
        &self.index().effects
    }

    /// Gives the instructions names, in order; `give` sees what each has and the operation.
    pub fn name_instrs(&mut self, mut give: impl FnMut(&mut Name, &Op)) {
        self.instrs.iter_mut().for_each(|instr| give(&mut instr.name, &instr.op));
    }

    /// Changes which computations are called. Errors: the first one of `change`.
    pub fn change_callees(
        &mut self,
        mut change: impl FnMut(&mut CompId) -> Result<()>,
    ) -> Result<()> {
        self.index();
        let callers = self.index.get().map_or(&[][..], |index| &index.callers);
        for id in callers {
            self.instrs[id.index()].op.callees_mut().into_iter().try_for_each(&mut change)?;
        }
        Ok(())
    }

    #[inline]
    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::of(&self.instrs))
    }

    /// What it takes and gives. The computation must not be empty.
    pub fn program_shape(&self) -> ProgramShape {
        ProgramShape {
            params: self.index().params.values().map(|&id| self.instr(id).shape.clone()).collect(),
            result: self.result_shape().clone(),
        }
    }
}

/// The id of the instruction that follows `before` others. Errors: ids end before that.
fn ensure_ids(before: usize) -> Result<InstrId> {
    let id = u32::try_from(before)
        .map_err(|_| Error::exhausted("more than 2^32 instructions in one computation"))?;
    Ok(InstrId(id))
}

/// Errors: `computation.C3` if an operand does not precede the instruction.
fn ensure_precede(id: InstrId, instr: &Instr) -> Result<()> {
    if instr.operands.iter().any(|&operand| operand >= id) {
        return Err(Error::rule("computation.C3", "an operand does not precede its user")
            .in_instruction(&instr.name)
            .at(instr.at.clone()));
    }
    Ok(())
}

/// Whether an aliased input must, or only may, share its buffer with the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasKind {
    /// `may-alias`: the runtime may copy instead.
    May,
    /// `must-alias`.
    Must,
}

/// One entry of `input_output_alias`: an output that reuses the buffer of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputOutputAlias {
    /// Path to the output through nested tuples.
    pub output: Vec<usize>,
    /// Parameter number.
    pub parameter: usize,
    /// Path into the parameter through nested tuples.
    pub parameter_index: Vec<usize>,
    /// Whether it must.
    pub kind: AliasKind,
}

/// The attributes of a module's first line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleConfig {
    /// The layouts that the caller of the entry computation sees.
    pub entry_layout: Option<ProgramShape>,
    /// Outputs that reuse the buffers of inputs.
    pub input_output_alias: Vec<InputOutputAlias>,
    /// `buffer_donor`: parameters (number, path) that may be reused for any output.
    pub buffer_donors: Vec<(usize, Vec<usize>)>,
    /// The number of replicas.
    pub replica_count: Option<usize>,
    /// The number of partitions.
    pub num_partitions: Option<usize>,
    /// Whether instructions stand in the order of execution.
    pub is_scheduled: bool,
    /// Free attributes of the front end; values as written.
    pub frontend_attributes: Vec<(String, String)>,
    /// All other attributes, name and value as written.
    pub other: Vec<(String, String)>,
    /// The tables of source places after the first line (`FileNames` and so on).
    pub stack_frames: Option<Arc<StackFrames>>,
}

/// A program: computations, one of which is the entry.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name.
    pub name: String,
    /// The attributes of the first line.
    pub config: ModuleConfig,
    /// The instructions of the program as it was given; empty unless [`Module::record_origins`].
    pub origins: Vec<Origin>,
    computations: Vec<Computation>,
    entry: CompId,
}

impl Module {
    /// A module without computations; the last one added is the entry unless [`Self::set_entry`].
    pub fn new(name: impl Into<String>) -> Self {
        Module {
            name: name.into(),
            config: ModuleConfig::default(),
            origins: Vec::new(),
            computations: Vec::new(),
            entry: CompId(0),
        }
    }

    /// Appends a computation, which becomes the entry. Errors: `module.C1` if it is empty,
    /// `module.C3` if it calls a computation that does not precede it.
    pub fn push(&mut self, computation: Computation) -> Result<CompId> {
        let id = CompId(
            u32::try_from(self.computations.len())
                .map_err(|_| Error::exhausted("more than 2^32 computations in one module"))?,
        );
        if computation.instrs.is_empty() {
            let detail = format!("computation {} has no instructions", computation.name);
            return Err(Error::rule("module.C1", detail).at(computation.at));
        }
        for &caller in computation.callers() {
            let instr = computation.instr(caller);
            if instr.op.callees().iter().any(|&callee| callee >= id) {
                return Err(Error::rule(
                    "module.C3",
                    "a called computation does not precede its caller",
                )
                .in_instruction(&instr.name)
                .at(instr.at.clone()));
            }
        }
        self.computations.push(computation);
        self.entry = id;
        Ok(id)
    }

    /// Makes a computation of this module its entry.
    ///
    /// # Panics
    /// If there is no such computation.
    pub fn set_entry(&mut self, entry: CompId) {
        assert!(entry.index() < self.computations.len(), "the entry is one of the computations");
        self.entry = entry;
    }

    /// The computations, callees before callers.
    #[inline]
    pub fn computations(&self) -> &[Computation] {
        &self.computations
    }

    /// The computations themselves, callees before callers.
    pub fn into_computations(self) -> Vec<Computation> {
        self.computations
    }

    /// The ids of all computations, in order.
    #[inline]
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = CompId> + ExactSizeIterator + use<> {
        (0..self.computations.len() as u32).map(CompId)
    }

    /// A computation of this module.
    #[inline]
    pub fn computation(&self, id: CompId) -> &Computation {
        &self.computations[id.index()]
    }

    /// A computation of this module, to change it; callees must keep preceding callers.
    pub fn computation_mut(&mut self, id: CompId) -> &mut Computation {
        &mut self.computations[id.index()]
    }

    /// Remembers the instructions as they are now: whatever passes make of them will say from which
    /// it comes. Does nothing if they are remembered already. A module has fewer than 2^32
    /// instructions, or those beyond have no origin.
    pub fn record_origins(&mut self) {
        if !self.origins.is_empty() {
            return;
        }
        let count = self.computations.iter().map(|computation| computation.instrs.len()).sum();
        self.origins.reserve(count);
        for computation in &mut self.computations {
            let name: Arc<str> = computation.name.as_str().into();
            for instr in &mut computation.instrs {
                let Ok(id) = u32::try_from(self.origins.len()) else { return };
                instr.origins.insert(OriginId(id));
                self.origins.push(Origin {
                    computation: Arc::clone(&name),
                    instruction: instr.name.clone(),
                    metadata: instr.metadata().cloned(),
                    at: instr.at.clone(),
                });
            }
        }
    }

    /// What is remembered of the instructions that an instruction computes; nothing of those that are
    /// not this module's.
    pub fn origins_of(&self, set: &OriginSet) -> impl Iterator<Item = &Origin> {
        set.iter().filter_map(|id| self.origins.get(id.index()))
    }

    /// The line of the framework's program that metadata tells of, if it tells of one.
    pub fn source_line(&self, metadata: &Metadata) -> Option<SourceLine> {
        let call = || {
            let frames = self.config.stack_frames.as_ref()?;
            let call = frames.calls(metadata.stack_frame?).next()?;
            Some((call.file.to_owned(), i64::from(call.location.line)))
        };
        let (file, line) = match (&metadata.source_file, metadata.source_line) {
            (None, None) => call().unzip(),
            (file, line) => (file.clone(), line),
        };
        let source = SourceLine { file, line, op_name: metadata.op_name.clone() };
        (!source.is_empty()).then_some(source)
    }

    /// An error with the instruction that it is about, as the given program has it: its name, where
    /// it was written, and the line of the framework's program. What the error knows already stays.
    #[must_use]
    pub fn locate(&self, error: Error, instr: &Instr) -> Error {
        let (name, at, metadata) = match self.origins_of(&instr.origins).next() {
            Some(origin) => (&origin.instruction, &origin.at, origin.metadata.as_ref()),
            None => (&instr.name, &instr.at, instr.metadata()),
        };
        let line = metadata.and_then(|metadata| self.source_line(metadata));
        error.in_instruction(name).at(at.clone()).from_line(line)
    }

    /// An error with the instruction that it is about, as this module has it: its name, where it was
    /// written, and the line of the framework's program. What the error knows already stays.
    #[must_use]
    pub fn place(&self, error: Error, instr: &Instr) -> Error {
        let origin = || self.origins_of(&instr.origins).find_map(|origin| origin.metadata.as_ref());
        let line = instr.metadata().or_else(origin).and_then(|told| self.source_line(told));
        error.in_instruction(&instr.name).at(instr.at.clone()).from_line(line)
    }

    /// The id of the computation where execution begins.
    pub fn entry_id(&self) -> CompId {
        self.entry
    }

    /// The computation where execution begins. The module must not be empty.
    pub fn entry(&self) -> &Computation {
        self.computation(self.entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes move and copy instructions all the time: what is rare is apart.
    #[test]
    fn instructions_are_small() {
        assert_eq!(size_of::<Op>(), 32);
        assert_eq!(size_of::<Shape>(), 48);
        assert_eq!(size_of::<Instr>(), 168);
    }
}
