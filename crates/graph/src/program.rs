//! Compiled graphs.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use helio::ir::ArrayShape;
use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, Error, Executable,
    ExecuteOptions, Literal, Module, Result, RunOptions,
};

use crate::graph::Source;
use crate::lower::lower;
use crate::sizes::{Resolution, Sizes};

/// How to compile a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProgramOptions {
    /// Whose memory, threads and devices the program uses.
    pub client: Client,
    /// How each size is compiled.
    pub compile: CompileOptions,
    /// For how many distinct sizes compiled programs are kept, at least 1; the one that was not
    /// used for longest goes first.
    pub cached_sizes: usize,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        ProgramOptions {
            client: Client::shared().clone(),
            compile: CompileOptions::default(),
            cached_sizes: 64,
        }
    }
}

impl ProgramOptions {
    /// For a program that so many replicas run, each on a device of a new client. Errors: 0 or too many.
    pub fn replicas(count: usize) -> Result<Self> {
        let assignment = DeviceAssignment::iota(count, 1)?;
        let mut client = ClientOptions::default();
        client.devices = count;
        let mut options = ProgramOptions { client: Client::new(&client), ..Self::default() };
        options.compile.assignment = Some(assignment);
        Ok(options)
    }
}

/// A compiled graph, to be called any number of times, from any number of threads at once.
///
/// One with symbolic dimensions compiles once for each distinct set of sizes, when these first
/// occur. Cloning is cheap.
#[derive(Clone)]
pub struct Program {
    shared: Arc<Shared>,
}

struct Shared {
    source: Source,
    resolution: Resolution,
    options: ProgramOptions,
    /// The most recently used last.
    compiled: Mutex<Vec<(Sizes, Executable)>>,
}

impl Program {
    pub(crate) fn new(source: Source, options: &ProgramOptions) -> Result<Self> {
        let resolution = Resolution::of(&source)?;
        let is_static =
            source.inputs.iter().all(|input| input.ty.shape.iter().all(|dim| dim.size().is_some()));
        let shared =
            Shared { source, resolution, options: options.clone(), compiled: Mutex::default() };
        let program = Program { shared: Arc::new(shared) };
        if is_static && program.shared.source.equations.is_empty() {
            program.executable(Sizes::default())?;
        }
        Ok(program)
    }

    /// Calls the program: one array for each input, in their order; gives one for each output.
    ///
    /// Errors: `call.C1` to `call.C3` if the arguments do not fit the inputs or each other, and
    /// those of compiling and running.
    pub fn run(&self, arguments: &[impl Borrow<Array>]) -> Result<Vec<Array>> {
        self.run_with(arguments, &RunOptions::default())
    }

    /// The same with options. Errors: as for [`Program::run`].
    pub fn run_with(
        &self,
        arguments: &[impl Borrow<Array>],
        options: &RunOptions,
    ) -> Result<Vec<Array>> {
        let arguments: Vec<&Array> = arguments.iter().map(Borrow::borrow).collect();
        let shapes: Vec<&ArrayShape> = arguments.iter().map(|array| array.shape()).collect();
        let executable = self.specialize(&shapes)?;
        let literals: Vec<Literal> =
            arguments.into_iter().map(|array| Literal::Array(array.clone())).collect();
        arrays(executable.run_with(&literals, options)?)
    }

    /// Calls the program on all of its replicas: for each of them one array for each input; gives for
    /// each one for each output. All have arguments of the same shapes. See
    /// [`ProgramOptions::replicas`].
    ///
    /// Errors: as for [`Program::run`]; `InvalidArgument` for another number of lists than replicas;
    /// what ends a wait for others (see [`Executable::run_all`]).
    pub fn run_all(
        &self,
        arguments: &[Vec<impl Borrow<Array>>],
        options: &RunOptions,
    ) -> Result<Vec<Vec<Array>>> {
        let first = arguments.first().map(Vec::as_slice).unwrap_or_default();
        let shapes: Vec<&ArrayShape> = first.iter().map(|array| array.borrow().shape()).collect();
        let executable = self.specialize(&shapes)?;
        let literals: Vec<Vec<Literal>> = arguments
            .iter()
            .map(|own| own.iter().map(|array| Literal::Array(array.borrow().clone())).collect())
            .collect();
        let literals: Vec<&[Literal]> = literals.iter().map(Vec::as_slice).collect();
        executable.run_all(&literals, options)?.into_iter().map(arrays).collect()
    }

    /// Calls the program on buffers of its client's devices; nothing is copied. Errors: as for
    /// [`Program::run`]; see [`Executable::execute`] for those of asynchronous calls.
    pub fn execute(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        let shapes: Vec<&ArrayShape> = arguments.iter().map(|buffer| buffer.shape()).collect();
        self.specialize(&shapes)?.execute(arguments, options)
    }

    /// The program for arguments of these shapes, compiled if it is not yet. Errors: as for
    /// [`Program::run`].
    pub fn specialize(&self, arguments: &[&ArrayShape]) -> Result<Executable> {
        self.executable(self.sizes(arguments)?)
    }

    /// The program for arguments of these shapes in HLO, before any optimisation. Errors: as for
    /// [`Program::run`].
    pub fn hlo(&self, arguments: &[&ArrayShape]) -> Result<Module> {
        lower(&self.shared.source, &self.sizes(arguments)?)
    }

    /// The client whose memory, threads and devices it uses.
    pub fn client(&self) -> &Client {
        &self.shared.options.client
    }

    fn sizes(&self, arguments: &[&ArrayShape]) -> Result<Sizes> {
        self.shared.resolution.sizes(&self.shared.source, arguments)
    }

    fn executable(&self, sizes: Sizes) -> Result<Executable> {
        let Shared { source, options, compiled, .. } = &*self.shared;
        let lock = || compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |compiled: &mut Vec<(Sizes, Executable)>| {
            let at = compiled.iter().rposition(|(of, _)| *of == sizes)?;
            compiled[at..].rotate_left(1);
            compiled.last().map(|(_, executable)| executable.clone())
        };
        if let Some(executable) = find(&mut lock()) {
            return Ok(executable);
        }
        // Other threads go on meanwhile; two may compile the same, and one result is kept.
        let module = lower(source, &sizes)?;
        let executable = options.client.compile(module, &options.compile);
        let executable = executable.map_err(|mut errors| match errors.is_empty() {
            true => Error::internal("a program failed to compile without an error"),
            false => errors.swap_remove(0),
        })?;
        let mut compiled = lock();
        if let Some(executable) = find(&mut compiled) {
            return Ok(executable);
        }
        if compiled.len() >= options.cached_sizes.max(1) {
            compiled.remove(0);
        }
        compiled.push((sizes, executable.clone()));
        Ok(executable)
    }
}

/// The arrays of a result. Errors: it has something else, which is a defect.
fn arrays(result: Literal) -> Result<Vec<Array>> {
    match result {
        Literal::Array(array) => Ok(vec![array]),
        other => {
            let leaves = other.leaves().into_iter();
            let arrays = leaves.map(|leaf| leaf.as_array().cloned());
            let arrays: Option<Vec<_>> = arrays.collect();
            arrays.ok_or_else(|| Error::internal("a result is no array"))
        }
    }
}

/// `mlp(x: f32[batch, 784]) -> (f32[batch, 10])`
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { name, inputs, outputs, .. } = &self.shared.source;
        let inputs: Vec<_> =
            inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
        let outputs: Vec<_> =
            outputs.iter().map(|&output| self.shared.source.ty(output).to_string()).collect();
        write!(f, "{name}({}) -> ({})", inputs.join(", "), outputs.join(", "))
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
