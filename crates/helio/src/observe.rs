//! Looking at a run while it is under way: which step is executed, for which instructions of the
//! user's program, and what it leaves.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use helio_eval::services;
use helio_ir::{
    Array, ArrayShape, CompId, Computation, Instr, InstrAt, InstrId, Literal, Module, Origin,
    Result, SourceLine, Verified,
};
use helio_runtime::program::{self, SlotId, StepId};

use crate::plan::StepInfos;

/// Is told of each step of a run, in the order of execution, on the thread that runs the program; of
/// a program that is interpreted as a whole, of each instruction.
///
/// A run without an observer takes no time for it.
///
/// ```
/// # use std::sync::{Arc, Mutex};
/// # use helio::{Observer, OutputView, StepInfo};
/// /// The names of instructions whose results have a NaN.
/// #[derive(Debug, Default)]
/// struct NanFinder(Mutex<Vec<String>>);
///
/// impl Observer for NanFinder {
///     fn after(&self, step: &StepInfo<'_>, outputs: &[OutputView<'_>], _: std::time::Duration) {
///         let has_nan = |output: &OutputView<'_>| {
///             let array = output.to_array();
///             array.is_ok_and(|a| a.values::<f32>().is_ok_and(|v| v.iter().any(|v| v.is_nan())))
///         };
///         if outputs.iter().any(has_nan) {
///             self.0.lock().unwrap().push(step.instruction().to_owned());
///         }
///     }
/// }
///
/// # fn main() -> Result<(), helio::Errors> {
/// let text = "ENTRY e { x = f32[2] parameter(0)  ROOT y = f32[2] log(x) }";
/// let program = helio::compile(helio::parse(text)?, &helio::CompileOptions::default())?;
/// let finder = Arc::new(NanFinder::default());
/// let mut options = helio::RunOptions::default();
/// options.observer = Some(finder.clone());
/// program.run_with(&[helio::Literal::array([2], vec![1f32, -1.0])?], &options)?;
/// assert_eq!(*finder.0.lock().unwrap(), ["y"]);
/// # Ok(()) }
/// ```
pub trait Observer: fmt::Debug + Send + Sync {
    /// A step begins.
    fn before(&self, step: &StepInfo<'_>) {
        let _ = step;
    }

    /// A step has ended, after this time, and left these arrays. A loop or a branch has none of its
    /// own: its steps come one by one before it ends. A step that fails has no `after`.
    fn after(&self, step: &StepInfo<'_>, outputs: &[OutputView<'_>], took: Duration);
}

/// What is known of a step: of a compiled program, or an instruction of an interpreted one.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let double = helio::compile(module, &helio::CompileOptions::default())?;
/// let steps: Vec<_> = double.steps().collect();
/// assert_eq!(steps.len(), 1);
/// assert_eq!(steps[0].output_shapes()[0].to_string(), "f32[2]");
/// assert_eq!(steps[0].origins()[0].instruction, "y");
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Copy)]
pub struct StepInfo<'p> {
    id: u32,
    module: &'p Module,
    work: Work<'p>,
}

/// What a step performs.
#[derive(Clone, Copy)]
enum Work<'p> {
    /// What the plan says.
    Planned(&'p StepInfos),
    /// One instruction, interpreted.
    Interpreted(InstrAt),
}

impl<'p> StepInfo<'p> {
    pub(crate) fn planned(id: StepId, module: &'p Module, infos: &'p StepInfos) -> Self {
        StepInfo { id: id.0, module, work: Work::Planned(infos) }
    }

    /// Its number, the same in each run and each time that the step is executed: steps are numbered in
    /// the order of the plan's text, instructions in the order of the module's.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The name of the instruction that it performs, in the module after all passes; of the first, if
    /// it performs several.
    pub fn instruction(&self) -> &'p str {
        self.instrs().next().map_or("", |instr| &instr.name)
    }

    /// The operation of that instruction, as HLO text names it: `dot`, `fusion`, `while`.
    pub fn operation(&self) -> &'static str {
        self.instrs().next().map_or("", |instr| instr.op.opcode())
    }

    /// The instructions of the program as it was given that the step computes, each once: first the
    /// one whose value it gives. None for an instruction of a program that is interpreted, which is as
    /// it was given.
    pub fn origins(&self) -> Vec<&'p Origin> {
        let mut ids = Vec::new();
        let mut seen = HashSet::new();
        let mut computations = Vec::new();
        for instr in self.instrs() {
            ids.extend(instr.origins.iter().filter(|&id| seen.insert(id)));
            computations.extend(instr.op.callees());
        }
        // A loop that is one kernel computes all that is in it. One that is made of steps has no arrays
        // of its own, and what is in it has steps of its own.
        let is_whole = match self.work {
            Work::Planned(infos) => infos.is_whole(StepId(self.id)),
            Work::Interpreted(_) => false,
        };
        let mut visited = HashSet::new();
        while let Some(computation) = computations.pop().filter(|_| is_whole) {
            if !visited.insert(computation) {
                continue;
            }
            for instr in self.module.computation(computation).instrs() {
                ids.extend(instr.origins.iter().filter(|&id| seen.insert(id)));
                computations.extend(instr.op.callees());
            }
        }
        ids.into_iter().filter_map(|id| self.module.origins.get(id.index())).collect()
    }

    /// The lines of the framework's program that the step computes, each once.
    pub fn source_lines(&self) -> Vec<SourceLine> {
        let of_origins = self.origins().into_iter().filter_map(|origin| origin.metadata.as_ref());
        // What no pass has seen has no origins, and says itself where it is from.
        let own = self.instrs().filter(|instr| instr.origins.is_empty());
        let mut lines = Vec::new();
        for metadata in of_origins.chain(own.filter_map(|instr| instr.metadata())) {
            let line = self.module.source_line(metadata);
            lines.extend(line.filter(|line| !lines.contains(line)));
        }
        lines
    }

    /// The shapes of the arrays that its instructions give.
    pub fn output_shapes(&self) -> Vec<&'p ArrayShape> {
        let leaves = self.instrs().flat_map(|instr| instr.shape.leaves());
        leaves.filter_map(|leaf| leaf.as_array()).collect()
    }

    fn instrs(&self) -> impl Iterator<Item = &'p Instr> {
        let module = self.module;
        let (infos, alone) = match self.work {
            Work::Planned(infos) => (Some(infos), None),
            Work::Interpreted(at) => (None, Some(at)),
        };
        let id = StepId(self.id);
        let planned = infos.into_iter().flat_map(move |infos| infos.of(id)).map(|p| p.at);
        planned.chain(alone).map(move |(id, instr)| module.computation(id).instr(instr))
    }
}

/// `step 3: dot.7 (dot; model.py:31, transformer/attention)`
impl fmt::Display for StepInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {} ({}", self.id, self.instruction(), self.operation())?;
        if let Some(line) = self.source_lines().first() {
            write!(f, "; {line}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Debug for StepInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An array that a step has left, where it lies.
///
/// ```
/// use helio::{Observer, OutputView, StepInfo};
/// #[derive(Debug)]
/// struct Printer;
///
/// impl Observer for Printer {
///     fn after(&self, step: &StepInfo<'_>, outputs: &[OutputView<'_>], _: std::time::Duration) {
///         for output in outputs {
///             println!("{}: {} bytes of {}", step.instruction(), output.bytes().len(), output.shape());
///         }
///     }
/// }
/// # let _ = Printer;
/// ```
#[derive(Clone, Debug)]
pub struct OutputView<'a> {
    shape: &'a ArrayShape,
    bytes: Cow<'a, [u8]>,
}

impl OutputView<'_> {
    /// Its shape.
    pub fn shape(&self) -> &ArrayShape {
        self.shape
    }

    /// Its elements, row-major, as [`Array::from_bytes`] takes them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A copy of it. Errors: memory.
    pub fn to_array(&self) -> Result<Array> {
        Array::from_bytes(self.shape.clone(), &self.bytes)
    }
}

/// Tells an observer what the executor tells.
pub(crate) struct StepWatcher<'a> {
    observer: &'a dyn Observer,
    module: &'a Module,
    infos: &'a StepInfos,
    /// When each of the steps began that are under way.
    begun: Vec<Instant>,
}

impl<'a> StepWatcher<'a> {
    pub(crate) fn new(
        observer: &'a dyn Observer,
        module: &'a Module,
        infos: &'a StepInfos,
    ) -> Self {
        StepWatcher { observer, module, infos, begun: Vec::new() }
    }

    fn info(&self, id: StepId) -> StepInfo<'a> {
        StepInfo::planned(id, self.module, self.infos)
    }

    /// The shape of the array that a slot holds after a step, if it is a value of one of its
    /// instructions and not an intermediate one.
    fn shape_in(&self, slot: SlotId, step: StepId) -> Option<&'a ArrayShape> {
        self.infos.of(step).find_map(|planned| {
            let leaf = planned.values.iter().position(|&value| value == slot)?;
            let instr = self.module.computation(planned.at.0).instr(planned.at.1);
            instr.shape.leaves().get(leaf)?.as_array()
        })
    }
}

impl program::Observer for StepWatcher<'_> {
    fn before(&mut self, step: StepId) {
        self.observer.before(&self.info(step));
        self.begun.push(Instant::now());
    }

    fn after(&mut self, step: StepId, written: &[(SlotId, &[u8])]) {
        let took = self.begun.pop().map_or(Duration::ZERO, |begun| begun.elapsed());
        let mut outputs = Vec::with_capacity(written.len());
        for &(slot, bytes) in written {
            let Some(shape) = self.shape_in(slot, step) else { continue };
            let bytes = bytes.get(..shape.size_bytes()).map(Cow::Borrowed);
            outputs.extend(bytes.map(|bytes| OutputView { shape, bytes }));
        }
        self.observer.after(&self.info(step), &outputs, took);
    }
}

/// Tells an observer what the interpreter tells.
pub(crate) struct InstrWatcher {
    observer: Arc<dyn Observer>,
    module: Arc<Verified<Module>>,
    /// For each computation, how many instructions stand before its first.
    first: Vec<u32>,
    /// When each of the instructions began that are under way. (One run has one thread.)
    begun: Mutex<Vec<Instant>>,
}

impl InstrWatcher {
    pub(crate) fn new(observer: Arc<dyn Observer>, module: Arc<Verified<Module>>) -> Self {
        let mut count = 0_u32;
        let first = |computation: &Computation| {
            let first = count;
            count = count.saturating_add(computation.instrs().len() as u32);
            first
        };
        let first = module.computations().iter().map(first).collect();
        InstrWatcher { observer, module, first, begun: Mutex::default() }
    }

    fn info(&self, at: InstrAt) -> StepInfo<'_> {
        let id = self.first[at.0.index()].saturating_add(at.1.0);
        StepInfo { id, module: &self.module, work: Work::Interpreted(at) }
    }

    fn begun(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl services::Observer for InstrWatcher {
    fn before(&self, computation: CompId, instr: InstrId) {
        self.observer.before(&self.info((computation, instr)));
        self.begun().push(Instant::now());
    }

    fn after(&self, computation: CompId, instr: InstrId, value: &Literal) {
        let took = self.begun().pop().map_or(Duration::ZERO, |begun| begun.elapsed());
        let arrays = value.leaves().into_iter().filter_map(Literal::as_array);
        let view = |array| OutputView { shape: Array::shape(array), bytes: array.to_bytes() };
        let outputs: Vec<OutputView<'_>> = arrays.map(view).collect();
        self.observer.after(&self.info((computation, instr)), &outputs, took);
    }
}
