//! StableHLO programs: MLIR read, and lowered to helio's representation.
//!
//! - [`mlir`]: MLIR in memory: operations, regions, types, attributes, locations; what a reader of
//!   text or of bytecode produces.
#![forbid(unsafe_code)]

pub mod mlir;
