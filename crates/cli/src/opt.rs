//! `helio opt`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use helio::CompileOptions;
use helio::passes::watch::Watch;
use helio::passes::{OptLevel, PARTS, PIPELINE, Pass, PassCx, find_pass, run_passes};
use helio::unstable::codegen::tile::Portable;
use serde_json::json;

use crate::engine::{Arithmetic, Bounds};
use crate::failure::Failure;
use crate::{Source, interpreted, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program, of any format.
    #[arg(required_unless_present = "list")]
    module: Option<PathBuf>,

    /// The passes to run, in this order; `--list` names them.
    #[arg(long, value_delimiter = ',', conflicts_with = "level")]
    passes: Vec<String>,

    /// Run the passes of this level of optimisation, 0 to 3.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    level: u32,

    /// What to print.
    #[arg(long, value_enum, default_value_t = Emit::Hlo)]
    emit: Emit,

    #[command(flatten)]
    arithmetic: Arithmetic,
    #[command(flatten)]
    bounds: Bounds,

    /// Print one JSON object: the program, and what of it has no native code.
    #[arg(long, conflicts_with = "list")]
    json: bool,

    /// List all passes.
    #[arg(long)]
    list: bool,
}

/// What is printed of the result.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Emit {
    /// The program, as HLO text.
    Hlo,
}

/// Runs passes on a module and prints what they make of it. Errors: the program is wrong, or there
/// is no such pass.
pub(crate) fn opt(args: Args) -> Result<(), Failure> {
    if args.list {
        return list();
    }
    let Some(path) = args.module else { return Err(Failure::bad_input("no program")) };
    let level = OptLevel::from_number(args.level).unwrap_or_default();
    let passes: Vec<&Pass> = if args.passes.is_empty() {
        PIPELINE.iter().filter(|pass| pass.level <= level).collect()
    } else {
        args.passes.iter().map(|name| pass(name)).collect::<Result<_, _>>()?
    };
    let source = Source::read(path)?;
    let in_program = |errors: helio::Errors| Failure::in_program(&source, &errors);
    let verified = source.verified()?;
    args.bounds.set();
    let limits = args.bounds.of_compilation(&verified);
    // What has no native code is known for the passes that compilation runs, at their level.
    let mut options = CompileOptions::default();
    options.opt_level = level;
    args.arithmetic.set(&mut options);
    options.limits.clone_from(&limits);
    let program = match args.passes.is_empty() {
        true => {
            let module = verified.clone().into_inner();
            Some(helio::compile(module, &options).map_err(in_program)?)
        }
        false => None,
    };
    let watch = Watch::new(&verified, &limits);
    let backend = options.backend.compiler().unwrap_or_else(|| Arc::new(Portable));
    let cx = PassCx { subnormals: options.subnormals, ..PassCx::new(&watch, &*backend) };
    let module = run_passes(verified, passes, &cx).map_err(|e| in_program(e.into()))?;
    let Emit::Hlo = args.emit;
    let hlo = helio::print(&module);
    if let Some(program) = &program {
        interpreted::note(program);
    }
    if args.json {
        let interpreted = program.as_ref().map(interpreted::list);
        return say(json!({ "hlo": hlo, "interpreted": interpreted }));
    }
    say(hlo)
}

fn pass(name: &str) -> Result<&'static Pass, Failure> {
    find_pass(name).ok_or_else(|| {
        Failure::bad_input(format!("no pass is named {name}; helio opt --list names all"))
    })
}

fn list() -> Result<(), Failure> {
    say("passes, in the order in which they run, with the least level that runs them:")?;
    for (i, pass) in PIPELINE.iter().enumerate() {
        let again = PIPELINE[..i].iter().any(|before| before.name == pass.name);
        let summary = if again { "(again)" } else { pass.summary };
        say(format_args!("  {} {:18} {summary}", pass.level as u32, pass.name))?;
    }
    say("passes that are parts of simplify:")?;
    for pass in PARTS {
        say(format_args!("    {:18} {}", pass.name, pass.summary))?;
    }
    Ok(())
}
