//! The operations of tensors, by families.

mod binary;
mod control;
mod creation;
mod erfc;
mod joining;
mod movement;
mod nonlinear;
mod operators;
mod random;
mod reduce;
mod slicing;
mod unary;

pub use joining::{concat, stack};
pub use nonlinear::Gelu;
pub use random::Random;
pub use reduce::{Axes, keep};
pub use slicing::{Slice, Slices, step};
