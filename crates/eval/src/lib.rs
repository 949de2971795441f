//! The reference interpreter: what each operation means, written plainly.
//!
//! [`evaluate`] runs a verified module on one participant of an execution; whatever reaches beyond
//! it (other replicas, the host, the user's functions) goes through the traits of [`services`].
//! One file for a family of operations and one function for an operation, which takes the operation,
//! the evaluator, the operands, and the shape of the result.
//!
//! Invariants: the module is verified, so operands have the shapes that inference asked for; an
//! evaluator function never recurses on the size of its input, only on calls, whose depth is
//! limited; every result's memory is asked for before it is made.
#![forbid(unsafe_code)]

mod class;
mod deep_stack;
mod dynamic;
mod element;
mod frame;
mod math;
mod program;
mod scalar;
pub mod services;
mod subnormals;
mod user;
mod values;

mod batch_norm;
mod collective;
mod control;
mod convert;
mod convolution;
mod custom_call;
mod dot;
mod dynamic_slice;
mod elementwise;
mod fft;
mod gather;
mod index;
mod linalg;
mod movement;
mod products;
mod reduce;
mod reshape;
mod rng;
mod scatter;
mod slice;
mod sort;
#[cfg(test)]
mod testing;
mod transfer;
mod walk;
mod window;

pub use custom_call::{
    ASSERT, ArrayView, ArrayViewMut, Assertion, Call, CallInfo, OperandBytes, Work, is_defined,
    perform,
};
pub use deep_stack::{DeepStack, call_depths, needs_deep_stack};
pub use frame::{Evaluator, Limits, Meter, Stopped, check_arguments, evaluate};
pub use services::Context;
pub use subnormals::Subnormals;
pub use transfer::Transfer;
pub use user::guarded;
