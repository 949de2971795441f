//! Symbolic tensors: the comfortable way to write tensor programs in Rust.
//!
//! A [`Graph`] records operations on [`Tensor`]s; element types are promoted and shapes broadcast as
//! in NumPy, but nothing is ever lost silently. Dimensions may be names, which get their sizes when
//! the program is called:
//!
//! ```
//! use helio_graph::prelude::*;
//! let g = Graph::new("standardize");
//! let x = g.input("x", F32, ("batch", 2));
//! let spread = x.var(0, 0).sqrt();
//! let standardize = g.compile((&x - x.mean(0)) / spread)?;
//!
//! let results = standardize.run(&[Array::from([[1f32, 10.0], [3.0, 30.0]])])?;
//! assert_eq!(results[0], [[-1f32, -1.0], [1.0, 1.0]].into());
//! # Ok::<(), helio_graph::Error>(())
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod axis;
mod call;
#[cfg(feature = "data")]
mod data;
mod dim;
mod graph;
mod lower;
mod operand;
mod ops;
pub mod prelude;
mod program;
mod promotion;
mod shape;
mod sizes;
mod tensor;

pub use arguments::Arguments;
pub use axis::Axis;
#[cfg(feature = "data")]
pub use data::Weights;
pub use dim::Dim;
pub use graph::Graph;
/// The compiler, for all that programs made with graphs have to do with it beyond what is here.
pub use helio;
pub use helio::ir::{ArrayShape, Native, Number};
pub use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, ElementType, Error,
    Errors, Executable, ExecuteOptions, Keep, Limits, Literal, Module, OptLevel, Result,
    RunOptions, Subnormals,
};
pub use operand::Operand;
#[doc(hidden)]
pub use operand::OperandKind;
pub use ops::{
    Axes, Channels, Conv, Edges, Gelu, Mask, Pool, Random, Replicas, Scan, Slice, Slices,
    attention, concat, einsum, embedding, keep, stack, step,
};
pub use program::{Program, ProgramOptions};
pub use promotion::promote;
pub use shape::Shape;
pub use tensor::{Tensor, TensorList, Tensors};

/// The code in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/graph.md")]
struct Guide;

/// The tasks beside other libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;
