//! Files that may be standard input, which is called `-`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use helio::data::{self, Format, Tensor};

use crate::failure::Failure;

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// All of a file. Errors: it cannot be read, or is longer than this.
pub(crate) fn read(path: &Path, most_bytes: u64) -> Result<Vec<u8>, Failure> {
    let failure = |e: String| Failure::bad_input(format!("{}: {e}", path.display()));
    let file: Box<dyn Read> = match is_stdin(path) {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(File::open(path).map_err(|e| failure(e.to_string()))?),
    };
    // Not what the system says of the length: pipes and devices have none.
    let mut bytes = Vec::new();
    let mut file = file.take(most_bytes.saturating_add(1));
    file.read_to_end(&mut bytes).map_err(|e| failure(e.to_string()))?;
    if bytes.len() as u64 > most_bytes {
        return Err(failure(format!("a file is read of at most {most_bytes} bytes")));
    }
    Ok(bytes)
}

/// The arrays of a file; of standard input in the format that its first bytes show. Errors: as for
/// [`data::read`].
pub(crate) fn read_arrays(path: &Path) -> Result<BTreeMap<String, Tensor>, Failure> {
    if !is_stdin(path) {
        return Ok(data::read(path)?);
    }
    let bytes = read(path, helio::memory::limit_bytes() as u64)?;
    let arrays = data::read_from(format(&bytes), Cursor::new(bytes));
    Ok(arrays.map_err(|e| e.context("standard input"))?)
}

fn format(bytes: &[u8]) -> Format {
    match bytes {
        [b'P', b'K', ..] => Format::Npz,
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Format::Npy,
        _ => Format::Safetensors,
    }
}
