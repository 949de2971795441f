//! Tuned kernels: functions of slices, sizes and strides that know nothing of HLO.
//!
//! Each takes [`Threads`](crate::Threads) and gives the same bits for any number of them. Those that
//! use instructions which not every processor has choose at run time, and are tested against a
//! plain loop.
//!
//! Kernels that only move elements take bytes and the size of an element. A kernel that needs
//! working memory says how much, and is given it: the plan of a program's memory knows all of it,
//! and no kernel can fail for want of memory. (What products pack into has a fixed size, and threads
//! keep it.)

pub mod bytes;
pub mod copy;
mod disjoint;
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
pub use stream::STREAM_BYTES;
