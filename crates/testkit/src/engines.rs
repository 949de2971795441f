//! Everything that can run a module. A case file passes when every engine agrees with it.

use helio::ir::{Module, Verified};
use helio::{Backend, CompileOptions, Error, Literal, RunOptions};

/// Runs a module on arguments.
pub type Run = fn(&Verified<Module>, &[Literal], &RunOptions) -> Result<Literal, Error>;

/// Something that runs modules.
pub struct Engine {
    /// For messages.
    pub name: &'static str,
    /// Runs a module on arguments.
    pub run: Run,
}

/// All engines.
pub const ENGINES: &[Engine] = &[
    Engine { name: "interpreter", run: interpret },
    Engine { name: "interpreter after printing and parsing", run: interpret_reparsed },
    Engine { name: "compiled", run: compiled },
];

fn first(errors: Vec<Error>) -> Error {
    errors.into_iter().next().unwrap_or_else(|| Error::internal("no error in a list of errors"))
}

fn interpret(
    module: &Verified<Module>,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    let module = module.clone().into_inner();
    run(module, Backend::Interpreter, args, options)
}

fn interpret_reparsed(
    module: &Verified<Module>,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    let module = helio::parse(&helio::print(module)).map_err(first)?;
    run(module, Backend::Interpreter, args, options)
}

fn compiled(
    module: &Verified<Module>,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    run(module.clone().into_inner(), Backend::Cpu, args, options)
}

fn run(
    module: Module,
    backend: Backend,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    let mut compile = CompileOptions::default();
    compile.backend = backend;
    let program = helio::compile(module, &compile).map_err(first)?;
    if let Some(plan) = program.plan() {
        plan.replay().map_err(Error::internal)?;
    }
    program.run_with(args, options)
}
