//! helio as a PJRT plugin: the C ABI by which JAX and other frameworks compile and run programs.
//!
//! [`GetPjrtApi`] gives the table of functions. Each function takes a pointer to a struct of its own
//! ([`abi`]), which is a [`Call`](raw::Call) here: a method of safe code, which [`raw::entry`] calls once
//! it has looked at the pointer and the size, and which it keeps from unwinding into C. What a struct
//! points to is read through [`raw::In`], and given through [`raw::Out`]. So the promises of the C header
//! are relied on in one place.
//!
//! Handles are what their names say: a [`client`] has devices and memories, a [`buffer`] is an array, an
//! [`executable`] a compiled program, an [`event`] something that completes.

pub mod abi;
mod api;
pub mod buffer;
mod callback;
pub mod client;
mod cost;
mod element;
pub mod error;
pub mod event;
pub mod executable;
mod execute;
mod extensions;
pub mod ffi;
mod handles;
mod named;
mod options;
mod peers;
mod program;
pub mod raw;
mod store;
mod topology;
mod unimplemented;

pub use api::{GetPjrtApi, api};
pub use callback::{HelioCallback, HelioHold, helio_register_callback, helio_register_hold};
pub use ffi::helio_register_ffi_handler;
