//! From fusions to machine code.
//!
//! [`kernel`] is a small typed IR of vector loops. Everything that computes element by element is
//! lowered to it; it is then encoded as machine code, or run by the portable tile machine, which
//! serves other processors and checks the encoder. This crate makes bytes; mapping and calling
//! them is the runtime's.
#![forbid(unsafe_code)]

pub mod elementwise;
pub mod kernel;
pub mod kernel_loop;
pub mod lower;
pub mod math;
pub mod state_loop;
pub mod tile;
mod vouched;
pub mod x86;

pub use vouched::Vouched;
