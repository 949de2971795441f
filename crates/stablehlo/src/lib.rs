//! StableHLO programs: MLIR read, and lowered to helio's representation.
//!
//! - [`mlir`]: MLIR in memory: operations, regions, types, attributes, locations; what a reader of
//!   text or of bytecode produces.
//! - [`text`]: the reader of text.
//! - [`bytecode`]: the reader of MLIR bytecode.
//! - [`export`]: the files of `jax.export`, which hold bytecode and how it is called.
//! - [`Interface`]: what a caller must know of a program besides its shapes.
//! - [`lower()`]: from MLIR to an HLO module.
//! - [`raise()`]: from an HLO module to MLIR, which [`text::print`] and [`bytecode::write()`] write.
//! - [`lower_partitioned`]: from MLIR to an HLO module for one of several partitions, by how Shardy's
//!   attributes cut up arrays ([`tiling`]).
//! - [`run_checks`]: programs that compare their own values with those expected.
#![forbid(unsafe_code)]

pub mod bytecode;
mod checks;
pub mod export;
mod front_end;
mod interface;
mod lower;
pub mod mlir;
mod names;
mod raise;
mod sharding;
mod table;
pub mod text;
pub mod tiling;

pub use checks::{CheckFailure, Engine, Process, check_module, has_checks, run_checks};
pub use interface::{Interface, ParameterInfo, ResultInfo};
pub use lower::{Argument, Partitioned, argument_shapes, lower, lower_for, lower_partitioned};
pub use raise::raise;
