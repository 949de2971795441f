//! MLIR bytecode: portable artifacts of StableHLO, written by any version from 0.9 on.
//!
//! [`read`] gives the module under StableHLO's current names, whatever version wrote it. No input
//! makes it panic; memory and time grow in proportion to the file. [`write()`] writes it for readers of
//! a given version.
//!
//! The container (sections, tables, regions) is MLIR's, in which operations, attributes and types
//! are VHLO's; the module's own operation and all locations are of MLIR's dialect `builtin`. What
//! says how arrays are cut up among devices is Shardy's (`sdy`), in the form of MLIR's text.

mod builtin;
mod container;
mod cursor;
mod dense;
mod ir;
mod sdy;
mod table;
mod vhlo;
mod write;

use helio_ir::{Error, Result};

use crate::mlir::Module;
use container::Container;
use table::Tables;
pub use vhlo::Version;
pub use write::write;

/// What producers write before the version of StableHLO in a portable artifact.
const PRODUCER: &str = "StableHLO_v";

/// Whether a file begins as MLIR bytecode does.
pub fn is_bytecode(file: &[u8]) -> bool {
    file.starts_with(container::MAGIC)
}

/// Reads a module. Errors name the part of the file, the byte, what was found and what is required:
/// `InvalidArgument` for what no writer writes, `Unimplemented` for an operation, an attribute or a
/// version that is not known, `ResourceExhausted` for nesting beyond a limit.
pub fn read(file: &[u8]) -> Result<Module> {
    let container = Container::read(file)?;
    let version = container.producer.strip_prefix(PRODUCER);
    let version: Option<Version> = version.map(str::parse).transpose()?;
    if let Some(version) = version
        && (version < Version::OLDEST || version.major > Version::NEWEST.major)
    {
        let (oldest, newest) = (Version::OLDEST, Version::NEWEST.major);
        return Err(Error::unimplemented(format!(
            "a portable artifact of StableHLO {version}; {oldest} and later versions up to \
             {newest}.x can be read"
        )));
    }
    ir::read(Tables::new(container, file.len()), version)
}
