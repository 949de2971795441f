//! `helio check`.

use std::path::PathBuf;

use helio::{CustomCallRegistry, ProgramFile, ProgramFormat};

use crate::failure::{self, Failure};
use crate::participants::Participants;
use crate::{Source, say};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The programs, of any format.
    #[arg(required = true)]
    modules: Vec<PathBuf>,
    #[command(flatten)]
    participants: Participants,
}

/// Checks each module and prints `path: ok` or its errors. Custom calls that nothing defines are
/// warnings: a program that uses helio as a library may register them; so is communication that may
/// wait for what never comes. Errors: the last failure, once all modules have been checked.
pub(crate) fn check(args: Args) -> Result<(), Failure> {
    let mut last = None;
    for path in args.modules {
        match check_one(path, &args.participants) {
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

/// The program. Errors: all that is wrong with it; of HLO text that cannot be read, also with what of it
/// could.
fn read(source: &Source) -> Result<ProgramFile, Failure> {
    let is_text = ProgramFormat::of(&source.bytes) == ProgramFormat::HloText;
    source.program().map_err(|failure| {
        let verified = is_text.then(|| helio::ir::text::parse_and_verify(source.text()));
        match verified {
            Some(Err(errors)) => Failure::in_program(source, &errors),
            _ => failure,
        }
    })
}

fn check_one(path: PathBuf, participants: &Participants) -> Result<String, Failure> {
    let source = Source::read(path)?;
    let in_program = |errors: helio::Errors| Failure::in_program(&source, &errors);
    let mut module = read(&source)?.module().map_err(in_program)?;
    participants
        .assign(&module)
        .and_then(|assignment| assignment.state_in(&mut module.config))
        .map_err(|error| in_program(error.into()))?;
    let module = helio::ir::verify(module).map_err(in_program)?;
    let warnings = helio::warnings(&module, &CustomCallRegistry::new());
    failure::warn(&source, &warnings);
    let path = source.path.display();
    Ok(match warnings.len() {
        0 => format!("{path}: ok"),
        1 => format!("{path}: ok, with a warning"),
        count => format!("{path}: ok, with {count} warnings"),
    })
}
