//! The `helio` program.
//!
//! Exit status: 0 fine, 1 results differ from those expected, 2 bad input or usage, 3 a defect of
//! helio.
#![forbid(unsafe_code)]

mod check;
mod compare;
mod convert;
mod failure;
mod progress;
mod run;
mod show;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use failure::Failure;

/// Run, check and convert tensor programs in HLO.
#[derive(Parser)]
#[command(name = "helio", version, arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program and print, save or compare its results.
    Run(run::Args),
    /// Parse and verify programs; print everything that is wrong with them.
    Check(check::Args),
    /// Rewrite a program or a file of arrays in another format, named by the extensions.
    Convert(convert::Args),
}

/// What turns a program into results.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Backend {
    /// The reference interpreter: slow, obvious.
    Interpreter,
}

/// A program's text, wherever it came from.
#[derive(Clone, Debug)]
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// Errors: the file cannot be read or is not text.
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let bytes = std::fs::read(&path)
            .map_err(|e| Failure::bad_input(format!("{}: {e}", path.display())))?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Failure::bad_input(format!("{}: not text (byte {at} is not UTF-8)", path.display()))
        })?;
        Ok(Source { path, text })
    }
}

fn main() -> ExitCode {
    // Clap answers --help and --version with status 0, wrong usage with 2.
    let args = Args::parse();
    limit_memory();
    // A panic is a defect of helio: say so after its message, and exit with 3 instead of 101.
    let result = std::panic::catch_unwind(|| match args.command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check::check(args),
        Command::Convert(args) => convert::convert(args),
    });
    let failure = match result {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::internal("helio failed on this input; please report it"),
    };
    failure.print();
    failure.exit_code()
}

/// Prints a line. A reader that has gone away (`| head`) is no failure of ours.
fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Lets arrays take nine tenths of the memory that is free now, where the system says how much.
fn limit_memory() {
    let Ok(meminfo) = std::fs::read_to_string("/proc/meminfo") else { return };
    let available_kib = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<usize>().ok());
    if let Some(kib) = available_kib {
        helio::memory::set_limit_bytes(kib.saturating_mul(1024) / 10 * 9);
    }
}
