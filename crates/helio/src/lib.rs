//! A tensor compiler for HLO in pure Rust.
//!
//! A program is HLO text, a file of any format that [`ProgramFile`] reads, or made with
//! [`XlaBuilder`]; [`compile`] checks it and gives an [`Executable`], which runs on [`Literal`]s:
//!
//! ```
//! # fn main() -> Result<(), helio::Errors> {
//! let module = helio::parse(
//!     "HloModule axpy
//!      ENTRY main {
//!        a = f32[] parameter(0)
//!        x = f32[3] parameter(1)
//!        scale = f32[3] broadcast(a), dimensions={}
//!        ROOT y = f32[3] multiply(scale, x)
//!      }",
//! )?;
//! let program = helio::compile(module, &helio::CompileOptions::default())?;
//! let x = helio::Literal::array([3], vec![1f32, 2.0, 3.0])?;
//! let y = program.run(&[helio::Literal::scalar(10f32), x])?;
//! assert_eq!(y.as_array().and_then(|y| y.as_slice::<f32>()), Some(&[10.0, 20.0, 30.0][..]));
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod assignment;
mod backend;
mod bind;
mod buffer;
mod checks;
mod client;
mod compiled;
mod computed;
mod constant;
mod custom_call;
#[cfg(feature = "data")]
pub mod data;
mod device;
mod event;
mod execute;
mod host;
mod interpreted;
pub mod ir;
mod launch;
mod linalg;
mod meetings;
mod memory_plan;
mod observe;
mod packed;
mod plan;
mod program_file;
mod random;
mod transfer;

use std::fmt;
use std::sync::Arc;

pub use assignment::DeviceAssignment;
pub use backend::Backend;
pub use bind::bind;
pub use buffer::{Buffer, Promise};
pub use checks::CheckEngine;
pub use client::{Client, ClientOptions, MemoryStats};
pub use custom_call::CustomCallRegistry;
pub use device::{Device, MemoryKind};
pub use event::{Completer, Event};
pub use execute::{ExecuteOptions, Keep};
pub use helio_eval::{Limits, Stopped, Subnormals};
pub use helio_ir::builder::{self, Padding, XlaBuilder, XlaComputation, XlaOp};
pub use helio_ir::text::print;

pub use helio_eval::services;
pub use helio_eval::services::Participant;
pub use helio_eval::{ArrayView, ArrayViewMut, Call, CallInfo, OperandBytes, Work};
pub use helio_ir::{
    Array, Code, ElementType, Error, Errors, Literal, Location, Module, ProgramShape, Result,
    Shape, memory,
};
pub use helio_passes::OptLevel;
pub use helio_runtime::{
    Block, CArguments, CFailure, CFunction, COperand, CallStatus, Closed, Memory, OutOfMemory,
    Queue, Reclaim, Tree, View, helio_custom_call_status_set_failure,
};
pub use host::{HostQueues, infeed_shapes};
pub use interpreted::{Interpreted, Reason};
pub use launch::{CollectivesLayer, Execution};
pub use memory_plan::MemoryPlan;
pub use observe::{Observer, OutputView, StepInfo};
pub use program_file::{
    Interface, Judged, ParameterInfo, ProgramFile, ProgramFormat, ResultInfo, write_program,
};
pub use random::random_arguments;
pub use transfer::{HostBytes, HostLayout, TypedView};

/// The passes of the compiler, for those who run them by themselves.
pub mod passes {
    pub use helio_ir::Capabilities;
    pub use helio_passes::{
        ConstantEvaluator, Interpreted, OptLevel, PARTS, PIPELINE, Pass, PassCx, PassObserver,
        find_pass, optimize, run_passes, watch,
    };
}

/// Whole crates that helio is made of, for its tools and for back ends of one's own. Any version may
/// change what is in them.
#[doc(hidden)]
pub mod unstable {
    pub use helio_codegen as codegen;
    pub use helio_ir as ir;
}

/// StableHLO: its modules in memory, their readers and writers, programs that check themselves and what
/// runs them.
pub mod stablehlo {
    pub use helio_stablehlo::{CheckFailure, Engine, Process, bytecode, mlir, run_checks, text};
}

use compiled::Compiled;
use execute::Signature;
use helio_eval::Context;
use helio_ir::Verified;
use helio_passes::watch::Watch;
use helio_passes::{PassCx, PassObserver};
use helio_runtime::FloatMode;
use observe::InstrWatcher;

/// Reads HLO text. Errors: all that were found, as [`ir::text::parse`] says; of MLIR,
/// what reads it.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }")?;
/// assert_eq!(module.entry().program_shape().result.to_string(), "f32[2]");
/// let errors = helio::parse("ENTRY e { ROOT y = f32[2] nothing() }").unwrap_err();
/// println!("{errors}"); // what was found, and where
/// # Ok::<(), helio::Errors>(())
/// ```
pub fn parse(text: &str) -> Result<Module, Errors> {
    helio_ir::text::parse(text).map_err(|errors| match helio_stablehlo::text::is_mlir(text) {
        true => {
            let help = "help: helio::ProgramFile::read(text.as_bytes()) reads it";
            Error::invalid(format!("this is MLIR, not HLO text\n  {help}")).into()
        }
        false => errors,
    })
}

/// How to compile.
///
/// ```
/// use helio::{Backend, CompileOptions, Subnormals};
/// let options = CompileOptions::default().with_subnormals(Subnormals::Keep);
/// let text = "ENTRY e { x = f32[] parameter(0) ROOT y = f32[] multiply(x, x) }";
/// let square = helio::compile(helio::parse(text)?, &options)?;
/// let oracle = helio::compile(helio::parse(text)?, &options.with_backend(Backend::Interpreter))?;
/// assert_eq!(square.run(&[1e-20f32.into()])?, oracle.run(&[1e-20f32.into()])?);
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompileOptions {
    /// What the program will run on.
    pub backend: Backend,
    /// How much work to put into making it fast; the interpreter runs programs as they are.
    pub opt_level: OptLevel,
    /// Whether generated code checks each of its accesses to memory, so that one outside of its buffer
    /// is an error of kind `Internal`: for tests, as it takes several times as long.
    pub bounds_checks: bool,
    /// Whether it is proved of each step that changes an operand in place that nobody reads what it
    /// overwrites; where no proof is found, compilation is an error of kind `Internal`: for tests, as
    /// it takes time, and a proof may be missing for a program that is right.
    pub proofs: bool,
    /// What arithmetic does with subnormal numbers, on every back end and where constants are folded.
    pub subnormals: Subnormals,
    /// How many replicas and partitions run, and on which devices of the client; `None` for as many as
    /// the module's first line says, on the first devices.
    pub assignment: Option<DeviceAssignment>,
    /// When to stop; its steps are instructions that passes and planner look at. A compilation takes
    /// some hundred for each instruction of the program.
    pub limits: Limits,
    /// Is shown what each pass makes of the program.
    pub observer: Option<Arc<dyn PassObserver>>,
}

helio_ir::with_methods! { CompileOptions {
    with_backend(backend: Backend);
    with_opt_level(opt_level: OptLevel);
    with_bounds_checks(bounds_checks: bool);
    with_proofs(proofs: bool);
    with_subnormals(subnormals: Subnormals);
    with_assignment(assignment: impl Into<Option<DeviceAssignment>>);
    with_limits(limits: Limits);
    with_observer(observer: impl Into<Option<Arc<dyn PassObserver>>>);
} }

/// What surrounds a run.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let double = helio::compile(module, &helio::CompileOptions::default())?;
/// use std::time::{Duration, Instant};
/// let limits = helio::Limits::default().with_deadline(Instant::now() + Duration::from_secs(60));
/// let options = helio::RunOptions::default().with_threads(1).with_limits(limits);
/// assert_eq!(double.run_with(&[vec![1f32, 2.0].into()], &options)?, vec![2f32, 4.0].into());
/// # Ok::<(), helio::Errors>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Seed of the `rng` operation: the same seed gives the same numbers.
    pub seed: u64,
    /// When to stop.
    pub limits: Limits,
    /// The queues behind infeed, outfeed and channels; without them these operations fail.
    pub host: Option<Arc<HostQueues>>,
    /// How many threads the run may use at most; `None` for all that the process has. Results do not
    /// depend on it.
    pub threads: Option<usize>,
    /// Is told of each step.
    pub observer: Option<Arc<dyn Observer>>,
    /// What stands between the participants and how they exchange data; `None` for nothing. Looked at
    /// by [`Executable::execute_all`] and [`Executable::run_all`] only, for several participants.
    pub collectives: Option<CollectivesLayer>,
}

helio_ir::with_methods! { RunOptions {
    with_seed(seed: u64);
    with_limits(limits: Limits);
    with_host(host: impl Into<Option<Arc<HostQueues>>>);
    with_threads(threads: impl Into<Option<usize>>);
    with_observer(observer: impl Into<Option<Arc<dyn Observer>>>);
    with_collectives(collectives: impl Into<Option<CollectivesLayer>>);
} }

/// Checks a program and makes it ready to run. Errors: everything that is wrong with it.
///
/// ```
/// let module = helio::parse("ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }")?;
/// let double = helio::compile(module, &helio::CompileOptions::default())?;
/// assert_eq!(double.run(&[vec![1f32, 2.0].into()])?, vec![2f32, 4.0].into());
/// # Ok::<(), helio::Errors>(())
/// ```
pub fn compile(module: Module, options: &CompileOptions) -> Result<Executable, Errors> {
    Client::shared().compile(module, options)
}

/// A program ready to run, any number of times, from any number of threads at once.
#[derive(Clone, Debug)]
pub struct Executable {
    client: Client,
    module: Arc<Verified<Module>>,
    program_shape: ProgramShape,
    assignment: Arc<DeviceAssignment>,
    signature: Arc<Signature>,
    subnormals: Subnormals,
    /// The compiled program; without one, it is interpreted as a whole.
    compiled: Result<Arc<Compiled>, Whole>,
}

/// Why a program is interpreted as a whole.
#[derive(Clone, Debug)]
enum Whole {
    /// The interpreter was asked for.
    Requested,
    /// This instruction cannot be compiled, nor called by itself.
    Because(Arc<Interpreted>),
}

impl Executable {
    fn new(client: Client, mut module: Module, options: &CompileOptions) -> Result<Self, Errors> {
        let _account = client.enter_account();
        // What is folded is so by the interpreter, whatever mode the caller has.
        let _mode = FloatMode::Ieee.enter();
        let subnormals = options.subnormals;
        let assignment = assign(&mut module, options)?;
        let module = helio_ir::verify(module)?;
        let program_shape = module.entry().program_shape();
        let compiled = match options.backend.choose() {
            None => Err(Whole::Requested),
            // What has no plan (sizes known only at run time at a collective, say) is interpreted as a
            // whole.
            Some(chosen) => {
                let watch = Watch::new(&module, &options.limits);
                let level = options.opt_level;
                let observer = options.observer.as_deref();
                let constants = &computed::OfConstants { client: &client, options };
                let cx = PassCx::new(&watch, &*chosen.backend);
                let cx = PassCx { observer, subnormals, constants, ..cx };
                let optimized = helio_passes::optimize(module.clone(), level, &cx);
                let compiled = optimized.and_then(|module| {
                    let result = &program_shape.result;
                    Compiled::new(module, result, options, &chosen, client.clone(), &watch)
                });
                let compiled = compiled?;
                compiled.map(Arc::new).map_err(|because| Whole::Because(Arc::new(because)))
            }
        };
        let signature = Arc::new(Signature::of(&module, &program_shape));
        let (module, assignment) = (Arc::new(module), Arc::new(assignment));
        Ok(Executable {
            client,
            module,
            program_shape,
            assignment,
            signature,
            subnormals,
            compiled,
        })
    }

    /// How many replicas and partitions of it run, and on which devices.
    pub fn assignment(&self) -> &DeviceAssignment {
        &self.assignment
    }

    /// The client whose memory, threads and devices it uses.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The program.
    pub fn module(&self) -> &Verified<Module> {
        &self.module
    }

    /// The shapes of arguments and result.
    pub fn program_shape(&self) -> &ProgramShape {
        &self.program_shape
    }

    /// The steps of the compiled program and their memory; `None` if it is interpreted. For tools, as
    /// [`unstable`] is.
    #[doc(hidden)]
    pub fn plan(&self) -> Option<&helio_runtime::program::StepProgram> {
        self.compiled.as_deref().ok().map(Compiled::program)
    }

    /// What is known of each step of the compiled program, by number: which instructions of the user's
    /// program it computes. Nothing if it is interpreted.
    pub fn steps(&self) -> impl Iterator<Item = StepInfo<'_>> {
        self.compiled.as_deref().ok().into_iter().flat_map(Compiled::steps)
    }

    /// Why it is interpreted as a whole; `None` if it is compiled.
    pub fn interpreted_because(&self) -> Option<Reason> {
        match &self.compiled {
            Ok(_) => None,
            Err(Whole::Requested) => Some(Reason::Requested),
            Err(Whole::Because(because)) => Some(because.reason),
        }
    }

    /// What has no native code although the backend is [`Backend::Cpu`]: the instructions that a run
    /// asks the interpreter for; or, if the program is interpreted as a whole, the one that is the
    /// reason. Empty if everything is compiled.
    ///
    /// ```
    /// # fn main() -> Result<(), helio::Errors> {
    /// let module = helio::parse(
    ///     "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target=\"f\" }",
    /// )?;
    /// let program = helio::compile(module, &helio::CompileOptions::default())?;
    /// let [call] = program.interpreted() else { panic!("one instruction") };
    /// assert_eq!((&*call.instruction, call.operation), ("y", "custom-call"));
    /// assert_eq!(call.reason, helio::Reason::CustomCall);
    /// # Ok(()) }
    /// ```
    pub fn interpreted(&self) -> &[Interpreted] {
        match &self.compiled {
            Ok(compiled) => compiled.interpreted(),
            Err(Whole::Requested) => &[],
            Err(Whole::Because(because)) => std::slice::from_ref(because),
        }
    }

    /// What of the program a run will fail at, if it comes to it: custom calls that are not registered
    /// with the client, an error for each target, in the order of their names; then where it may wait
    /// for what never comes ([`communication::warnings`](helio_ir::communication::warnings)).
    pub fn warnings(&self) -> Vec<Error> {
        warnings(&self.module, self.client.custom_calls())
    }

    /// What surrounds a run on a device.
    fn context(&self, options: &RunOptions, device: usize) -> Context {
        let mut context = Context {
            device,
            seed: options.seed,
            subnormals: self.subnormals,
            limits: options.limits.clone(),
            custom_calls: self.client.custom_calls().clone(),
            ..Context::default()
        };
        if let Some(host) = &options.host {
            context.host = host.clone();
        }
        context
    }

    /// What surrounds a run by the interpreter.
    fn observed(&self, cx: Context, options: &RunOptions) -> Context {
        let Some(observer) = &options.observer else { return cx };
        let watcher = InstrWatcher::new(Arc::clone(observer), Arc::clone(&self.module));
        Context { observer: Some(Arc::new(watcher)), ..cx }
    }

    /// Runs it once, with default options. Errors: as for [`Executable::run_with`].
    pub fn run(&self, args: &[Literal]) -> Result<Literal> {
        self.run_with(args, &RunOptions::default())
    }

    /// Runs it once.
    ///
    /// Errors: `InvalidArgument` if the program runs as several participants
    /// ([`Executable::run_all`]), the arguments do not fit the parameters or a custom call is not
    /// registered; `ResourceExhausted` at a limit of memory or steps; `Cancelled` and
    /// `DeadlineExceeded` as [`Limits`] say; `Unavailable` if a queue is closed.
    pub fn run_with(&self, args: &[Literal], options: &RunOptions) -> Result<Literal> {
        self.ensure_participants(1)?;
        if self.assignment.participants() > 1 {
            return Ok(self.run_all(&[args], options)?.remove(0));
        }
        let device = self.assignment.devices()[0];
        self.run_in(args, &self.context(options, device), options)
    }

    /// Runs it once as one participant.
    fn run_in(&self, args: &[Literal], cx: &Context, options: &RunOptions) -> Result<Literal> {
        let _account = self.client.enter_account();
        match &self.compiled {
            Ok(compiled) => {
                helio_eval::check_arguments(&self.program_shape, args)?;
                let threads = options.threads.unwrap_or(usize::MAX);
                compiled.run(args, cx, threads, options.observer.as_deref())
            }
            Err(_) => {
                let cx = self.observed(cx.clone(), options);
                let _mode = FloatMode::Ieee.enter();
                helio_eval::evaluate(&self.module, args, &cx)
            }
        }
    }
}

/// How many replicas and partitions of a module run where; it is checked and compiled for as many.
/// Errors: it is made for others.
fn assign(module: &mut Module, options: &CompileOptions) -> Result<DeviceAssignment> {
    let Some(assignment) = &options.assignment else {
        return DeviceAssignment::of(&module.config);
    };
    assignment.state_in(&mut module.config)?;
    Ok(assignment.clone())
}

/// What it takes and gives, what runs it, and what of it is interpreted:
///
/// ```
/// # fn main() -> Result<(), helio::Errors> {
/// let module = helio::parse(
///     "HloModule pair
///      ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target=\"f\" }",
/// )?;
/// let program = helio::compile(module, &helio::CompileOptions::default())?;
/// assert_eq!(
///     program.to_string(),
///     "pair(x: f32[2]) -> f32[2]\n  interpreted: y (custom-call): it calls a function of the host"
/// );
/// # Ok(()) }
/// ```
impl fmt::Display for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.module.entry();
        let parameters = entry.params();
        let parameters = parameters.values().map(|&id| entry.instr(id));
        let parameters = parameters.map(|instr| {
            // Builders number names behind a point.
            let name = instr.name.rsplit_once('.').filter(|(_, end)| end.parse::<u64>().is_ok());
            let name = name.map_or(instr.name.as_str(), |(name, _)| name);
            format!("{name}: {}", instr.shape.without_layout())
        });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let result = self.program_shape.result.without_layout();
        write!(f, "{}({parameters}) -> {result}", self.module.name)?;
        let (replicas, partitions) = (self.assignment.replicas(), self.assignment.partitions());
        if replicas * partitions > 1 {
            write!(f, "\n  on {replicas} replicas of {partitions} partitions")?;
        }
        if let Some(reason) = self.interpreted_because() {
            write!(f, "\n  interpreted as a whole: {reason}")?;
        }
        for interpreted in self.interpreted() {
            write!(f, "\n  interpreted: {interpreted}")?;
        }
        Ok(())
    }
}

/// What [`Executable::warnings`] gives for the executable of a module, with these functions.
///
/// ```
/// let text = "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target=\"f\" }";
/// let module = helio::ir::verify(helio::parse(text)?)?;
/// let warnings = helio::warnings(&module, &helio::CustomCallRegistry::new());
/// assert_eq!(warnings.len(), 1); // nobody defines `f`
/// # Ok::<(), helio::Errors>(())
/// ```
pub fn warnings(module: &Verified<Module>, functions: &CustomCallRegistry) -> Vec<Error> {
    let mut warnings = functions.missing(module);
    warnings.extend(helio_ir::communication::warnings(module));
    warnings
}

/// The code in the page about devices.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/devices.md")]
struct Devices;
