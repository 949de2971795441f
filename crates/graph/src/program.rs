//! Compiled graphs.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use helio::ir::ArrayShape;
use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, Error, Executable,
    ExecuteOptions, Literal, Module, Result, RunOptions,
};

use crate::Arguments;
use crate::graph::{Input, Source};
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
    /// The same with this [`client`](Self::client).
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self
    }

    /// The same with this way to [`compile`](Self::compile).
    #[must_use]
    pub fn with_compile(mut self, compile: CompileOptions) -> Self {
        self.compile = compile;
        self
    }

    /// The same with this number of [`cached_sizes`](Self::cached_sizes).
    #[must_use]
    pub fn with_cached_sizes(mut self, cached_sizes: usize) -> Self {
        self.cached_sizes = cached_sizes;
        self
    }

    /// For a program that `count` replicas run, each on a device of a new client. Errors: 0 or too many.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// assert_eq!(ProgramOptions::replicas(4)?.client.devices().len(), 4);
    /// assert!(ProgramOptions::replicas(0).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn replicas(count: usize) -> Result<Self> {
        DeviceAssignment::iota(count, 1).map(Self::assigned)
    }

    /// For a program whose participants run on these devices of a new client: those of this process, if
    /// others run in other processes.
    pub fn assigned(assignment: DeviceAssignment) -> Self {
        let mut client = ClientOptions::default();
        client.devices = assignment.devices().iter().max().map_or(1, |&last| last + 1);
        let mut options = ProgramOptions { client: Client::new(&client), ..Self::default() };
        options.compile.assignment = Some(assignment);
        options
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
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let (x, y) = (g.input("x", F32, "n"), g.input("y", F32, ()));
    /// let axpy = g.compile(x * y)?;
    /// assert_eq!(axpy.run(&[Array::from([1f32, 2.0]), 10f32.into()])?, [[10f32, 20.0].into()]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn run(&self, arguments: impl Arguments) -> Result<Vec<Array>> {
        self.run_with(arguments, &RunOptions::default())
    }

    /// Calls the program with arrays under the names of its inputs, in any order:
    ///
    /// ```
    /// use helio_graph::prelude::*;
    /// let g = Graph::new("scale");
    /// let (x, by) = (g.input("x", F32, "n"), g.input("by", F32, ()));
    /// let scale = g.compile(x * by)?;
    /// let results = scale.run_named([("by", Array::from(10f32)), ("x", [1f32, 2.0].into())])?;
    /// assert_eq!(results, [[10f32, 20.0].into()]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// Errors: `call.C4` if a name is not one of an input, is there twice, or an input has no array; as
    /// for [`Program::run`].
    pub fn run_named<N: AsRef<str>, A: Borrow<Array>>(
        &self,
        arguments: impl IntoIterator<Item = (N, A)>,
    ) -> Result<Vec<Array>> {
        let inputs = &self.shared.source.inputs;
        let mut arrays: Vec<Option<Array>> = vec![None; inputs.len()];
        for (name, array) in arguments {
            let name = name.as_ref();
            let Some(number) = inputs.iter().position(|input| input.name == name) else {
                let names: Vec<_> = inputs.iter().map(|input| input.name.as_str()).collect();
                let detail =
                    format!("no input is named {name:?}; the inputs are {}", names.join(", "));
                return Err(Error::rule("call.C4", detail));
            };
            if arrays[number].replace(array.borrow().clone()).is_some() {
                return Err(Error::rule("call.C4", format!("input {name:?} is given twice")));
            }
        }
        let missing = |(array, input): (Option<Array>, &Input)| {
            array.ok_or_else(|| {
                let detail = format!("input {:?} ({}) is not given", input.name, input.ty);
                Error::rule("call.C4", detail)
            })
        };
        let arrays = arrays.into_iter().zip(inputs).map(missing);
        self.run(&arrays.collect::<Result<Vec<_>>>()?)
    }

    /// The same with options. Errors: as for [`Program::run`].
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// let double = g.compile(2 * x)?;
    /// let options = RunOptions::default().with_threads(1);
    /// assert_eq!(double.run_with(&[Array::from([1f32])], &options)?, [[2f32].into()]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn run_with(&self, arguments: impl Arguments, options: &RunOptions) -> Result<Vec<Array>> {
        let arguments = arguments.into_arrays();
        let shapes: Vec<&ArrayShape> = arguments.iter().map(Array::shape).collect();
        let executable = self.specialize(&shapes)?;
        let literals: Vec<Literal> = arguments.into_iter().map(Literal::Array).collect();
        arrays(executable.run_with(&literals, options)?)
    }

    /// Calls the program on all of its replicas: for each of them one array for each input; gives for
    /// each one for each output. All have arguments of the same shapes. See
    /// [`ProgramOptions::replicas`].
    ///
    /// Errors: as for [`Program::run`]; `InvalidArgument` for another number of lists than replicas;
    /// what ends a wait for others (see [`Executable::run_all`]).
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, ());
    /// let total = g.compile_with(x.replica_sum(&Replicas::all(2)), &ProgramOptions::replicas(2)?)?;
    /// let results = total.run_all(&[vec![Array::from(1f32)], vec![2f32.into()]], &Default::default())?;
    /// assert_eq!(results, [[Array::from(3f32)], [3f32.into()]]);
    /// # Ok::<(), Error>(())
    /// ```
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
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// let double = g.compile(2 * x)?;
    /// let options = ExecuteOptions::default().with_asynchronous(true);
    /// let once = double.execute(&[&double.client().buffer(&[1f32, 2.0].into())?], &options)?;
    /// let twice = double.execute(&[&once[0]], &options)?; // does not wait
    /// assert_eq!(twice[0].to_array()?, [4f32, 8.0].into());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn execute(&self, arguments: &[&Buffer], options: &ExecuteOptions) -> Result<Vec<Buffer>> {
        let shapes: Vec<&ArrayShape> = arguments.iter().map(|buffer| buffer.shape()).collect();
        self.specialize(&shapes)?.execute(arguments, options)
    }

    /// The program for arguments of these shapes, compiled if it is not yet. Errors: as for
    /// [`Program::run`].
    ///
    /// ```
    /// # use helio_graph::{ArrayShape, prelude::*};
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// let double = g.compile(2 * x)?;
    /// let of_three = double.specialize(&[&ArrayShape::new(F32, [3])?])?;
    /// assert_eq!(of_three.to_string(), "example(x: f32[3]) -> f32[3]");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn specialize(&self, arguments: &[&ArrayShape]) -> Result<Executable> {
        self.executable(self.sizes(arguments)?)
    }

    /// The program for arguments of these shapes in HLO, before any optimisation. Errors: as for
    /// [`Program::run`].
    ///
    /// ```
    /// # use helio_graph::{ArrayShape, prelude::*};
    /// # let g = Graph::new("example");
    /// let x = g.input("x", F32, "n");
    /// let text = helio::print(&g.compile(x.exp())?.hlo(&[&ArrayShape::new(F32, [3])?])?);
    /// assert!(text.contains("f32[3] exponential(x"), "{text}");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn hlo(&self, arguments: &[&ArrayShape]) -> Result<Module> {
        lower(&self.shared.source, &self.sizes(arguments)?)
    }

    /// The client whose memory, threads and devices it uses.
    ///
    /// ```
    /// # use helio_graph::prelude::*;
    /// # let g = Graph::new("example");
    /// let program = g.compile(g.zeros(F32, 2))?;
    /// assert_eq!(program.client().buffer(&[1, 2].into())?.to_array()?, [1, 2].into());
    /// # Ok::<(), Error>(())
    /// ```
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
        let executable = options.client.compile(module, &options.compile)?;
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

/// `mlp(x: f32[batch, 784]) -> (f32[batch, 10])`, and on lines of their own what is interpreted in any of
/// the sizes that it has been compiled for.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Source { name, inputs, outputs, .. } = &self.shared.source;
        let inputs: Vec<_> =
            inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
        let outputs: Vec<_> =
            outputs.iter().map(|&output| self.shared.source.ty(output).to_string()).collect();
        write!(f, "{name}({}) -> ({})", inputs.join(", "), outputs.join(", "))?;
        let compiled = self.shared.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let interpreted = compiled.iter().flat_map(|(_, executable)| executable.interpreted());
        let interpreted: BTreeSet<String> = interpreted.map(ToString::to_string).collect();
        drop(compiled);
        interpreted.iter().try_for_each(|what| write!(f, "\n  interpreted: {what}"))
    }
}

/// Its name, inputs and outputs.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        f.write_str(text.lines().next().unwrap_or_default())
    }
}
