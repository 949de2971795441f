//! The `helio` program.
//!
//! Programs are files of any format that [`helio::ProgramFile`] reads.
//!
//! Exit status: 0 fine, 1 results differ from those expected, 2 bad input or usage, 3 a defect of
//! helio, 4 a limit was reached (memory, steps, time, sizes of programs), 130 interrupted.
#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod check;
mod compare;
mod convert;
mod engine;
mod failure;
mod feeds;
mod files;
mod interpreted;
mod interrupt;
mod judge;
mod opt;
mod participants;
mod picture;
#[cfg(feature = "mpi")]
mod processes;
mod progress;
mod report;
mod run;
mod shell;
mod show;
mod time;

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;
use helio::ProgramFile;

/// Run, check and convert tensor programs in HLO and StableHLO.
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
    /// Time a program: its compilation and its runs.
    Bench(bench::Args),
    /// Parse and verify programs; print everything that is wrong with them.
    Check(check::Args),
    /// Rewrite a program or a file of arrays in another format, named by the extensions.
    Convert(convert::Args),
    /// Run passes on a program and print what they make of it.
    Opt(opt::Args),
    /// Print what makes a shell complete the program's arguments.
    Completions(shell::Completions),
    /// Print the manual page, or write those of all commands.
    Man(shell::Man),
}

/// The longest program that is read: far beyond any, and what a device without end is cut at.
const MAX_PROGRAM_BYTES: u64 = 1 << 30;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A program's file, wherever it came from.
#[derive(Clone, Debug)]
struct Source {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Source {
    /// Errors: the file cannot be read, or is too long.
    fn read(path: PathBuf) -> Result<Self, Failure> {
        let bytes = files::read(&path, MAX_PROGRAM_BYTES)?;
        let path = if files::is_stdin(&path) { "standard input".into() } else { path };
        Ok(Source { path, bytes })
    }

    /// The file for excerpts; empty if it is not text.
    fn text(&self) -> &str {
        let text = std::str::from_utf8(&self.bytes).unwrap_or_default();
        // Some editors begin UTF-8 with a mark that means nothing.
        text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
    }

    /// The program, of whatever format. Errors: all that is wrong with it.
    fn program(&self) -> Result<ProgramFile, Failure> {
        ProgramFile::read(&self.bytes).map_err(|errors| Failure::in_program(self, &errors))
    }

    /// The program in HLO, whose sizes are all known, checked. Errors: all that is wrong with it.
    fn verified(&self) -> Result<helio::ir::Verified<helio::Module>, Failure> {
        let module = self.program()?.module().and_then(helio::ir::verify);
        module.map_err(|errors| Failure::in_program(self, &errors))
    }
}

fn main() -> ExitCode {
    // Clap answers --help and --version with status 0, wrong usage with 2.
    let args = Args::parse();
    interrupt::install();
    limit_memory();
    // A panic is a defect of helio: say so after its message, and exit with 3 instead of 101.
    let result = std::panic::catch_unwind(|| match args.command {
        Command::Run(args) => run::run(args),
        Command::Bench(args) => bench::bench(args),
        Command::Check(args) => check::check(args),
        Command::Convert(args) => convert::convert(args),
        Command::Opt(args) => opt::opt(args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    });
    let failure = match result {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::internal("helio failed on this input; please report it"),
    };
    failure.print();
    failure.exit_code()
}

/// Prints a line. Errors: there is no room for it; a reader that has gone away (`| head`) is no
/// failure of ours.
fn say(line: impl std::fmt::Display) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::bad_input(format!("standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// Lets arrays take nine tenths of the memory that is free now, where the system says how much.
fn limit_memory() {
    if let Some(bytes) = [free_memory(), free_in_container()].into_iter().flatten().min() {
        helio::memory::set_limit_bytes(bytes / 10 * 9);
    }
}

fn free_memory() -> Option<usize> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib.saturating_mul(1024))
}

/// What a container may still take, which is less than its machine has. What it caches of files is
/// given up for the asking.
fn free_in_container() -> Option<usize> {
    let read = |file| std::fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok();
    let number = |file| read(file)?.trim().parse::<usize>().ok();
    let stat = read("memory.stat")?;
    let cached = ["active_file ", "inactive_file "].into_iter().filter_map(|name| {
        stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok())
    });
    let taken = number("memory.current")?.saturating_sub(cached.sum());
    Some(number("memory.max")?.saturating_sub(taken))
}
