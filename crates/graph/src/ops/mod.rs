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
mod pooling;
mod product;
mod random;
mod reduce;
mod scan;
mod scatter;
mod slicing;
mod statistics;
mod unary;
mod window;

pub use convolution::Conv;
pub use einsum::einsum;
pub use indexing::embedding;
pub use joining::{concat, stack};
pub use nn::{Mask, attention};
pub use nonlinear::Gelu;
pub use pooling::Pool;
pub use random::Random;
pub use reduce::{Axes, keep};
pub use scan::Scan;
pub use slicing::{Slice, Slices, step};
pub use window::{Channels, Edges};
