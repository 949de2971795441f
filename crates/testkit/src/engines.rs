//! Everything that can run a module. A case file passes when every engine agrees with it.

use std::sync::OnceLock;

use helio::ir::{Module, Verified};
use helio::{
    Backend, Client, ClientOptions, CompileOptions, Error, Errors, Executable, Interpreted,
    Literal, OptLevel, RunOptions, Subnormals,
};

/// Something that runs modules.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// For messages.
    pub name: &'static str,
    way: EngineKind,
}

#[derive(Clone, Copy, Debug)]
enum EngineKind {
    Interpret,
    /// As it is after printing and parsing.
    InterpretReparsed,
    Compile {
        level: OptLevel,
        backend: &'static str,
        threads: usize,
        bounds_checks: bool,
    },
    /// On one, two and eight threads, one after the other, with the same bits each time.
    Threads,
}

const fn compiled(
    name: &'static str,
    level: OptLevel,
    backend: &'static str,
    threads: usize,
) -> Engine {
    Engine { name, way: EngineKind::Compile { level, backend, threads, bounds_checks: false } }
}

/// Machine code each of whose accesses is compared with the size of its buffer.
const fn checked(name: &'static str, level: OptLevel, backend: &'static str) -> Engine {
    Engine { name, way: EngineKind::Compile { level, backend, threads: 2, bounds_checks: true } }
}

/// All engines; the first one is the oracle.
pub const ENGINES: &[Engine] = &[
    Engine { name: "interpreter", way: EngineKind::Interpret },
    Engine { name: "interpreter after printing and parsing", way: EngineKind::InterpretReparsed },
    compiled("compiled", OptLevel::Default, "cpu", 2),
    compiled("compiled, for one thread", OptLevel::Default, "cpu", 1),
    compiled("compiled, for x86-64-v3", OptLevel::Default, "x86-64-v3", 1),
    compiled("compiled, for the tile machine", OptLevel::Default, "portable", 2),
    compiled("compiled at level 0", OptLevel::None, "cpu", 1),
    compiled("compiled at level 1", OptLevel::Less, "cpu", 1),
    compiled("compiled at level 3", OptLevel::More, "cpu", 2),
    checked("compiled, accesses checked", OptLevel::Default, "cpu"),
    checked("compiled at level 3 for x86-64-v3, accesses checked", OptLevel::More, "x86-64-v3"),
];

/// Compiled once and run on different numbers of threads, which must give the same bits.
pub const THREADS: Engine =
    Engine { name: "compiled, on 1, 2 and 8 threads", way: EngineKind::Threads };

impl Engine {
    /// Whether it compiles programs.
    pub fn is_compiled(&self) -> bool {
        matches!(self.way, EngineKind::Compile { .. } | EngineKind::Threads)
    }

    /// Whether it compiles programs at a level that leaves nothing to the interpreter that could be
    /// compiled.
    pub fn compiles_all(&self) -> bool {
        match self.way {
            EngineKind::Compile { level, .. } => level > OptLevel::None,
            EngineKind::Threads => true,
            EngineKind::Interpret | EngineKind::InterpretReparsed => false,
        }
    }

    /// Makes a module ready to run. The plan of a compiled program has been replayed. Subnormal numbers are
    /// kept, so that what is left out because it changes nothing changes nothing in them, either.
    pub fn compile(&self, module: &Verified<Module>) -> Result<Executable, Error> {
        self.compile_with(module, Subnormals::Keep)
    }

    /// As [`Engine::compile`], with this said of subnormal numbers.
    pub fn compile_with(
        &self,
        module: &Verified<Module>,
        subnormals: Subnormals,
    ) -> Result<Executable, Error> {
        let mut compile = CompileOptions::default();
        compile.subnormals = subnormals;
        compile.proofs = true;
        let module = match self.way {
            EngineKind::InterpretReparsed => helio::parse(&helio::print(module)).map_err(first)?,
            _ => module.clone().into_inner(),
        };
        match self.way {
            EngineKind::Interpret | EngineKind::InterpretReparsed => {
                compile.backend = Backend::Interpreter
            }
            EngineKind::Compile { level, backend, bounds_checks, .. } => {
                compile.backend = Backend::named(backend)?;
                compile.opt_level = level;
                compile.bounds_checks = bounds_checks;
            }
            EngineKind::Threads => compile.backend = Backend::Cpu,
        }
        let count = |stated: Option<usize>| stated.unwrap_or(1);
        let participants = count(module.config.replica_count) * count(module.config.num_partitions);
        let program = match self.way {
            EngineKind::Threads => wide_client().compile(module, &compile),
            _ if participants > 1 => devices().compile(module, &compile),
            _ => helio::compile(module, &compile),
        };
        let program = program.map_err(first)?;
        if let Some(plan) = program.plan() {
            plan.replay().map_err(Error::internal)?;
        }
        Ok(program)
    }

    /// Runs a program that this engine has compiled, on as many threads as the engine has.
    pub fn run_program(
        &self,
        program: &Executable,
        args: &[Literal],
        options: &RunOptions,
    ) -> Result<Literal, Error> {
        let mut options = options.clone();
        match self.way {
            EngineKind::Compile { threads, .. } => options.threads = Some(threads),
            EngineKind::Threads => return on_threads(program, args, &options),
            EngineKind::Interpret | EngineKind::InterpretReparsed => {}
        }
        program.run_with(args, &options)
    }

    /// Runs a program that this engine has compiled, with arguments for each replica.
    pub fn run_replicas(
        &self,
        program: &Executable,
        args: &[&[Literal]],
        options: &RunOptions,
    ) -> Result<Vec<Literal>, Error> {
        match args {
            [args] => self.run_program(program, args, options).map(|result| vec![result]),
            _ => program.run_all(args, options),
        }
    }

    /// Runs a module on arguments.
    pub fn run(
        &self,
        module: &Verified<Module>,
        args: &[Literal],
        options: &RunOptions,
    ) -> Result<Literal, Error> {
        self.run_program(&self.compile(module)?, args, options)
    }
}

/// What of a program has no native code, but for what is due to the machine that tests run on.
pub fn not_compiled(program: &Executable) -> Vec<&Interpreted> {
    program.interpreted().iter().filter(|i| !i.reason.concerns_machine()).collect()
}

/// A client of eight threads, which the machine need not have.
fn wide_client() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let mut options = ClientOptions::default();
        options.threads = Some(8);
        Client::new(&options)
    })
}

/// A client of as many devices as participants that any case has.
fn devices() -> &'static Client {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    CLIENT.get_or_init(|| {
        let mut options = ClientOptions::default();
        options.devices = 64;
        Client::new(&options)
    })
}

fn on_threads(
    program: &Executable,
    args: &[Literal],
    options: &RunOptions,
) -> Result<Literal, Error> {
    let run = |threads: usize| {
        let mut options = options.clone();
        options.threads = Some(threads);
        program.run_with(args, &options)
    };
    let bytes = |result: &Literal| -> Vec<Vec<u8>> {
        let arrays = result.leaves().into_iter().filter_map(Literal::as_array);
        arrays.map(|array| array.to_bytes().into_owned()).collect()
    };
    let expected = run(1)?;
    for threads in [2, 8, 8] {
        if bytes(&run(threads)?) != bytes(&expected) {
            return Err(Error::internal(format!("other bits on {threads} threads than on one")));
        }
    }
    Ok(expected)
}

fn first(errors: Errors) -> Error {
    errors.first().clone()
}
