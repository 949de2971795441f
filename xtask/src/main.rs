//! Chores of the repository: `cargo xtask docs | api | ci | mpi | corpus DIR | semver | bench | sanitize | abi FILE | wheel | jax`.

mod abi;
mod api;
mod bench;
mod ci;
mod corpus;
mod jax;
mod mpi;
mod operations;
mod sanitize;
mod semver;
mod wheel;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

/// Chores of the repository.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write docs/operations.md from the table of operations.
    Docs {
        /// Write nothing; fail if it is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Record the public items of the crates that programs depend on, in docs/api.
    Api {
        /// Write no records; fail if one is not what is public.
        #[arg(long)]
        check: bool,
    },
    /// Compare the public items with those of the last release, by `cargo semver-checks`.
    Semver {
        /// Only if the records in docs/api are others than those of that release.
        #[arg(long)]
        if_changed: bool,
    },
    /// Everything that CI runs.
    Ci,
    /// Install Open MPI if it is missing, and run the tests that need it.
    Mpi,
    /// Parse, print, run and compare every NAME.hlo with NAME.npz of a directory.
    Corpus {
        /// The directory.
        dir: PathBuf,
    },
    /// Write crates/pjrt/src/abi.rs from a description of the PJRT C API.
    Abi {
        /// The description, in JSON.
        file: PathBuf,
    },
    /// Time programs, beside XLA where there is a Python with jax, and say what became slower.
    Bench(bench::Options),
    /// Build the wheel of JAX's plugin.
    Wheel,
    /// Run JAX on helio: our Python tests, and files of JAX's own.
    Jax(jax::Options),
    /// Run tests under Miri, AddressSanitizer and ThreadSanitizer, as far as they are here.
    Sanitize {
        /// These only; all if none is named.
        #[arg(value_enum)]
        tools: Vec<sanitize::Tool>,
        /// How long a part may take, in minutes, building included.
        #[arg(long, value_name = "N", default_value_t = 60)]
        minutes: u64,
    },
}

fn main() -> ExitCode {
    let result = match Args::parse().chore {
        Chore::Docs { check } => operations::write(check),
        Chore::Api { check } => api::run(check),
        Chore::Semver { if_changed } => semver::run(if_changed),
        Chore::Ci => ci::run(),
        Chore::Mpi => mpi::run(),
        Chore::Corpus { dir } => corpus::run(&dir),
        Chore::Abi { file } => abi::write(&file),
        Chore::Bench(options) => bench::run(&options),
        Chore::Wheel => {
            wheel::build(wheel::Profile::Release).map(|path| println!("{}", path.display()))
        }
        Chore::Jax(options) => jax::run(&options),
        Chore::Sanitize { tools, minutes } => sanitize::run(&tools, minutes),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs cargo in the repository. Errors: it failed.
fn cargo(args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    let status = command.args(args).current_dir(root()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("cargo {} failed", args.join(" "))),
        Err(e) => Err(format!("cargo: {e}")),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}
