//! Symbolic tensors: the comfortable way to write tensor programs in Rust.
//!
//! A [`Graph`] records operations on [`Tensor`]s; element types are promoted and shapes broadcast as
//! in NumPy, but nothing is ever lost silently. Dimensions may be names, which get their sizes when
//! the program is called:
//!
//! ```
//! use helio_graph::{Array, DType, Graph};
//! let g = Graph::new("standardize");
//! let x = g.input("x", DType::F32, ("batch", 2));
//! let spread = x.var(0, 0).sqrt();
//! let standardize = g.compile((&x - x.mean(0)) / spread)?;
//!
//! let x = Array::new([2, 2], vec![1f32, 10.0, 3.0, 30.0])?;
//! let results = standardize.run(&[x])?;
//! assert_eq!(results[0].as_slice::<f32>(), Some(&[-1.0, -1.0, 1.0, 1.0][..]));
//! # Ok::<(), helio_graph::Error>(())
//! ```
#![forbid(unsafe_code)]

mod call;
mod data;
mod dim;
mod graph;
mod lower;
mod operand;
mod ops;
mod program;
mod promotion;
mod shape;
mod sizes;
mod tensor;

pub use data::Weights;
pub use dim::Dim;
pub use graph::Graph;
pub use helio::{Array, ElementType as DType, Error, Result};
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
pub use tensor::{Tensor, TensorList};

/// The code in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/graph.md")]
struct Guide;
