//! Tuned kernels: functions of slices, sizes and strides that know nothing of HLO.
//!
//! Each takes [`Threads`](crate::Threads) and gives the same bits for any number of them. Those that
//! use instructions which not every processor has choose at run time, and are tested against a
//! plain loop.
//!
//! Kernels that only move elements take bytes and the size of an element. A kernel that needs
//! working memory for all of its work says how much, and is given it: the plan of a program's memory
//! knows it. What its tasks need each for itself they take from the run's memory (`scratch`), which
//! counts it; if there is none, the run stops.

pub mod bytes;
mod cache;
pub mod copy;
mod disjoint;
#[cfg(feature = "fft")]
pub mod fft;
mod fold_code;
pub mod gemm;
pub mod indexed;
mod isa;
pub mod linalg;
pub mod number;
pub mod random;
mod scratch;
pub mod sort;
mod stream;
pub mod window;

pub use fold_code::FoldCode;
pub use stream::{STREAM_BYTES, copy_past_cache};
