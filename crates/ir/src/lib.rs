//! The representation of tensor programs: what a module *is*, without running it.
//!
//! - [`types`]: element types, shapes, layouts, and literals (values).
//! - [`ops`]: every operation with its attributes, its constraints and its shape inference.
//! - [`attribute`]: attributes of custom calls and configurations of back ends.
//! - [`sharding`]: how values are spread over devices.
//! - [`Module`], [`Computation`], [`Instr`]: arenas with typed ids.
//! - [`builder`]: programs made by calls.
//! - [`text`]: HLO text, in and out.
//! - [`verify`](mod@verify): the only maker of [`Verified`] modules.
//! - [`communication`]: what participants of a run would wait for in vain.
//! - [`Capabilities`]: what of it the kernels of a back end can compute.
//!
//! Invariants: every instruction's operands precede it in its computation; every called
//! computation precedes its caller in the module (so neither values nor calls can be cyclic);
//! the size in bytes of every [`ArrayShape`] fits `isize`.
#![forbid(unsafe_code)]

pub mod attribute;
pub mod builder;
mod capabilities;
pub mod communication;
pub mod error;
mod errors;
mod few;
pub mod memory;
mod module;
mod name;
mod operands;
pub mod ops;
mod origin;
pub mod sharding;
pub mod stack_frames;
pub mod text;
pub mod types;
pub mod verify;

pub use attribute::{Attribute, BackendConfig, ConfigValue, Dictionary};
pub use builder::{XlaBuilder, XlaComputation, XlaOp};
pub use capabilities::Capabilities;
pub use error::{Code, Error, Location, Result};
pub use errors::Errors;
#[doc(hidden)]
pub use helio_limits::with_methods;
pub use module::{
    AliasKind, CompId, Computation, Extra, InputOutputAlias, Instr, InstrAt, InstrId, Metadata,
    Module, ModuleConfig, ProgramShape,
};
pub use name::Name;
pub use operands::Operands;
pub use ops::{BinaryOp, InferCx, Op, OpDef, UnaryOp};
pub use origin::{Origin, OriginId, OriginSet, OriginUnions, SourceLine};
pub use sharding::Sharding;
#[doc(hidden)]
pub use types::WeakArray;
pub use types::{
    Array, ArrayData, ArrayShape, DimKind, ElementType, Layout, Literal, Native, Number, Shape,
};
pub use verify::{Verified, verify};
