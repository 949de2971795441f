//! The operations of tensors, by families.

mod binary;
mod movement;
mod nonlinear;
mod operators;
mod reduce;
mod unary;

pub use nonlinear::Gelu;
pub use reduce::{Axes, keep};
