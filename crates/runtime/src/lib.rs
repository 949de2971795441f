//! What a running program needs of the machine: memory, threads, queues to and from the host, and
//! calls of the user's functions across the C ABI. It knows bytes, not operations.
//!
//! This is one of two crates with `unsafe` code (the other is `pjrt`); every block states why its
//! obligations hold.
#![deny(unsafe_op_in_unsafe_fn)]

mod board;
mod bounds;
mod c_call;
mod exec;
mod float_mode;
mod jit;
pub mod kernels;
mod memory;
pub mod program;
mod queue;
mod threads;

pub use board::{Board, NotMet, Waits};
pub use c_call::{
    CArguments, CFailure, CFunction, COperand, CallStatus, Tree,
    helio_custom_call_status_set_failure,
};
pub use float_mode::{FloatMode, FloatModeGuard};
pub use helio_limits::Reclaim;
pub use jit::{CallError, Jit, JitArg, JitBatch, JitFunction, LateFunction};
pub use memory::{Block, Memory, OutOfMemory, View};
pub use queue::{Closed, Queue};
pub use threads::{Pool, Threads};
