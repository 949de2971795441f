//! MLIR in memory: what the readers of text and of bytecode produce, and the lowering takes.
//!
//! Operations, types and attributes stand here under the names and in the form of StableHLO's
//! current text, whatever they were read from: a reader of portable artifacts upgrades
//! `vhlo.add_v1` to `stablehlo.add`, and its flat attributes to the structured ones
//! (`dot_dimension_numbers = #stablehlo.dot<…>`). Attributes that equal their default may be absent.
//!
//! Values are numbered through a whole module ([`ValueId`]); their types are kept in
//! [`Module::values`]. Locations are kept likewise in [`Module::locations`].

mod attribute;
mod location;
mod operation;
mod types;

pub use attribute::{Attribute, Dense, Field};
pub use location::{LocId, Location};
pub use operation::{Block, Module, Operation, Region, ValueId};
pub use types::{FloatType, Quantized, Signedness, TensorType, Type};
