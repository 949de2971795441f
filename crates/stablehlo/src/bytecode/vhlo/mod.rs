//! VHLO: StableHLO's operations, types and attributes under names that carry a version, so that
//! what was written once can always be read.

mod attributes;
mod convert;
mod enums;
mod ops;
mod to_vhlo;
mod types;
mod version;

pub(super) use attributes::{attribute, code as attribute_code};
pub(super) use convert::to_stablehlo;
pub(super) use enums::ENUMERATIONS;
pub(super) use ops::OpRow;
pub(super) use to_vhlo::to_vhlo;
pub(super) use types::{PLAIN as PLAIN_TYPES, code as type_code, ty};
pub use version::Version;
