//! What a run may use before it ends with an error, and how much it has used: memory in an
//! [`Account`], work in a [`Meter`].
//!
//! Every crate that makes arrays or does work for a program counts here, so that a limit is one
//! limit: literals, blocks, scratch and what is cached are in one account, instructions that are
//! interpreted and tasks of compiled kernels on one meter.
#![forbid(unsafe_code)]

mod account;
mod meter;
mod options;

pub use account::{Account, Counted, Entered, OutOfMemory, Reclaim, Reservation};
pub use meter::{Limits, Meter, Stopped};
