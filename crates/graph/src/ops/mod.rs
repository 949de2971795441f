//! The operations of tensors, by families.

mod binary;
mod control;
mod creation;
mod einsum;
mod erfc;
mod indexing;
mod joining;
mod movement;
mod nonlinear;
mod operators;
mod product;
mod random;
mod reduce;
mod slicing;
mod unary;

pub use einsum::einsum;
pub use indexing::embedding;
pub use joining::{concat, stack};
pub use nonlinear::Gelu;
pub use random::Random;
pub use reduce::{Axes, keep};
pub use slicing::{Slice, Slices, step};
