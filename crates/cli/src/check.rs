//! `helio check`.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::{Source, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The programs, as HLO text.
    #[arg(required = true)]
    modules: Vec<PathBuf>,
}

/// Checks each module and prints `path: ok` or its errors. Errors: the last failure, once all
/// modules have been checked.
pub(crate) fn check(args: Args) -> Result<(), Failure> {
    let mut last = None;
    for path in args.modules {
        match check_one(path) {
            Ok(line) => say(line)?,
            Err(failure) => {
                if let Some(failure) = last.replace(failure) {
                    failure.print();
                }
            }
        }
    }
    last.map_or(Ok(()), Err)
}

fn check_one(path: PathBuf) -> Result<String, Failure> {
    let source = Source::read(path)?;
    helio::parse(&source.text)
        .and_then(helio::ir::verify)
        .map(|_| format!("{}: ok", source.path.display()))
        .map_err(|errors| Failure::in_program(&source, &errors))
}
