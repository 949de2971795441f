//! StableHLO programs: MLIR read, and lowered to helio's representation.
//!
//! - [`mlir`]: MLIR in memory: operations, regions, types, attributes, locations; what a reader of
//!   text or of bytecode produces.
//! - [`text`]: the reader of text.
//! - [`bytecode`]: the reader of MLIR bytecode.
//! - [`lower()`]: from MLIR to an HLO module.
//! - [`run_checks`]: programs that compare their own values with those expected.
#![forbid(unsafe_code)]

pub mod bytecode;
mod checks;
mod lower;
pub mod mlir;
pub mod text;

pub use checks::{Engine, Process, check_module, run_checks};
pub use lower::{lower, lower_for};
