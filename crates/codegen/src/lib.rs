//! From fusions to machine code.
//!
//! [`kernel`] is a small typed IR of vector loops. Everything that computes element by element is
//! lowered to it; a [`backend`] then makes it run: as machine code, or on the portable tile machine,
//! which serves other processors and checks the encoder. This crate makes bytes; mapping and calling
//! them is the runtime's.
#![forbid(unsafe_code)]

pub mod backend;
pub mod elementwise;
pub mod kernel;
pub mod kernel_loop;
pub mod linalg;
pub mod lower;
pub mod machine;
pub mod math;
pub mod scatter;
pub mod state_loop;
pub mod tile;
mod vouched;
pub mod x86;

pub use backend::{Backend, Code, CodeOptions, Function};
pub use vouched::Vouched;
