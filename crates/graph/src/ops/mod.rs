//! The operations of tensors, by families.

mod binary;
mod control;
mod erfc;
mod movement;
mod nonlinear;
mod operators;
mod random;
mod reduce;
mod unary;

pub use nonlinear::Gelu;
pub use random::Random;
pub use reduce::{Axes, keep};
