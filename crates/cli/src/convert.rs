//! `helio convert`.

use std::path::{Path, PathBuf};

use helio::ProgramFormat;
use helio::data::Format;

use crate::Source;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to read: a program of any format, or arrays (.npz, .npy, .safetensors).
    input: PathBuf,
    /// What to write, in the format that its extension names: .hlo or .txt for HLO text, .pb for HLO
    /// in protocol buffers, .mlir for StableHLO text, .mlirbc for StableHLO bytecode; .npz, .npy,
    /// .safetensors for arrays.
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
        (false, false) => match format(&output) {
            Some(format) => {
                let module = Source::read(input)?.verified()?;
                let bytes = helio::write_program(&module, format)?;
                std::fs::write(&output, bytes)
                    .map_err(|e| Failure::bad_input(format!("{}: {e}", output.display())))
            }
            None => Err(Failure::bad_input(format!(
                "{}: the name of a program to write ends in .hlo, .txt, .pb, .mlir or .mlirbc",
                output.display()
            ))),
        },
        _ => Err(Failure::bad_input("one of the two files holds a program, the other arrays")),
    }
}

/// The format that the extension of a program's file names.
fn format(path: &Path) -> Option<ProgramFormat> {
    match path.extension()?.to_str()? {
        "hlo" | "txt" => Some(ProgramFormat::HloText),
        "pb" => Some(ProgramFormat::HloProto),
        "mlir" => Some(ProgramFormat::StableHloText),
        "mlirbc" => Some(ProgramFormat::StableHloBytecode),
        _ => None,
    }
}
