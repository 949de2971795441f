//! Everything that can run a module. A case file passes when every engine agrees with it.

use helio::ir::{Module, Verified};
use helio::{CompileOptions, Error, Literal, RunOptions};

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
    helio::compile(module, &CompileOptions::default()).map_err(first)?.run_with(args, options)
}

fn interpret_reparsed(
    module: &Verified<Module>,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    let module = helio::parse(&helio::print(module)).map_err(first)?;
    helio::compile(module, &CompileOptions::default()).map_err(first)?.run_with(args, options)
}
