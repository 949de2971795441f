//! Chores of the repository: `cargo xtask docs | ci | corpus DIR | sanitize`.

mod ci;
mod corpus;
mod operations;
mod sanitize;

use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Everything that CI runs.
    Ci,
    /// Parse, print, run and compare every NAME.hlo with NAME.npz of a directory.
    Corpus {
        /// The directory.
        dir: PathBuf,
    },
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
        Chore::Ci => ci::run(),
        Chore::Corpus { dir } => corpus::run(&dir),
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

/// The root of the repository.
fn root() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}
