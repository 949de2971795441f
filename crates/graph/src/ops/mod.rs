//! The operations of tensors, by families.

mod binary;
mod control;
mod convolution;
mod creation;
mod einsum;
mod erfc;
mod indexing;
mod joining;
mod movement;
mod nn;
mod nonlinear;
mod operators;
mod order;
mod product;
mod random;
mod reduce;
mod scan;
mod slicing;
mod statistics;
mod unary;

pub use convolution::{Channels, Conv, Edges, Pool};
pub use einsum::einsum;
pub use indexing::embedding;
pub use joining::{concat, stack};
pub use nn::{Mask, attention};
pub use nonlinear::Gelu;
pub use random::Random;
pub use reduce::{Axes, keep};
pub use scan::Scan;
pub use slicing::{Slice, Slices, step};
