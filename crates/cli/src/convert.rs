//! `helio convert`.

use std::path::{Path, PathBuf};

use helio::data::Format;

use crate::Source;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to read: a program (.hlo, .txt) or arrays (.npz, .npy, .safetensors).
    input: PathBuf,
    /// What to write, in the format that its extension names.
    output: PathBuf,
}

/// Errors: the input is bad, the output cannot be written, or one is a program and the other not.
pub(crate) fn convert(args: Args) -> Result<(), Failure> {
    let Args { input, output } = args;
    match (Format::of(&input).is_ok(), Format::of(&output).is_ok()) {
        (true, true) => {
            let tensors = helio::data::read(&input)?;
            Ok(helio::data::write(&output, &tensors)?)
        }
        (false, false) if is_text(&output) => {
            let source = Source::read(input)?;
            let module = helio::parse(&source.text)
                .and_then(helio::ir::verify)
                .map_err(|errors| Failure::in_program(&source, &errors))?;
            std::fs::write(&output, helio::print(&module))
                .map_err(|e| Failure::bad_input(format!("{}: {e}", output.display())))
        }
        (false, false) => Err(Failure::bad_input(format!(
            "{}: the name of a program to write ends in .hlo or .txt",
            output.display()
        ))),
        _ => Err(Failure::bad_input("one of the two files holds a program, the other arrays")),
    }
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "hlo" || extension == "txt")
}
