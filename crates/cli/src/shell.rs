//! What installers put beside the program: completions for shells, and manual pages.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell that is to complete the program's arguments.
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct Man {
    /// Write helio.1, and a page for each command, to this directory, instead of printing helio.1.
    dir: Option<PathBuf>,
}

/// Prints the completions of a shell. Errors: standard output cannot be written.
pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Args::command(), "helio", &mut script);
    print(&script)
}

/// Prints or writes manual pages. Errors: they cannot be written.
pub(crate) fn man(args: &Man) -> Result<(), Failure> {
    let command = crate::Args::command();
    match &args.dir {
        Some(dir) => {
            clap_mangen::generate_to(command, dir).map_err(|e| failure(dir, &e))?;
            Ok(())
        }
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(command).render(&mut page);
            rendered.map_err(|e| failure(Path::new("helio.1"), &e))?;
            print(&page)
        }
    }
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("{}: {error}", path.display()))
}

fn print(text: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(text) {
        // A reader that has gone away is no failure of ours.
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(failure(Path::new("standard output"), &e))
        }
        _ => Ok(()),
    }
}
