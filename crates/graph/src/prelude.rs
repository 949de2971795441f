//! What programs with graphs are written with: `use helio_graph::prelude::*`.
//!
//! ```
//! use helio_graph::prelude::*;
//!
//! let g = Graph::new("double");
//! let x = g.input("x", F32, "n");
//! let double = g.compile(2.0 * x)?;
//! assert_eq!(double.run(&[Array::from([1f32, 2.0])])?, [Array::from([2f32, 4.0])]);
//! # Ok::<(), Error>(())
//! ```

pub use crate::ElementType::*;
#[cfg(feature = "data")]
pub use crate::Weights;
pub use crate::{
    Array, Buffer, Client, Dim, ElementType, Error, Errors, ExecuteOptions, Graph, Literal, Native,
    Number, Operand, Program, ProgramOptions, Random, Replicas, Result, RunOptions, Shape, Tensor,
    TensorList, concat, einsum, embedding, keep, stack, step,
};
