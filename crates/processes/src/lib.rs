//! Programs whose participants run in several processes, on one machine or many.
//!
//! All processes load the same program, run a part of its participants each, and exchange data by
//! messages ([`wire`]) where participants of one process exchange it in memory. Results are the same bits
//! as those of threads: each participant has what all give in the order of the group, and computes with
//! it as a thread does. A process that dies, fails or waits in vain ends the runs of all others with an
//! error that says who waited for whom.
//!
//! Messages go over TCP ([`tcp`]), or with the feature `mpi` over MPI (`connect`); `docs/distributed.md` has
//! how to run it.
#![cfg_attr(not(feature = "mpi"), forbid(unsafe_code))]
#![deny(unsafe_code)]

#[cfg(feature = "mpi")]
#[allow(unsafe_code)] // Calls of MPI, which reads and writes memory while nobody waits for it.
mod calls;
mod deeds;
mod distributed;
mod farewell;
mod gather;
mod head;
#[cfg(feature = "mpi")]
mod mpi_wire;
mod mutual;
mod processes;
mod reduce;
mod run;
pub mod tcp;
mod value;
mod waits;
pub mod wire;

#[cfg(feature = "mpi")]
pub use mpi_wire::{Bare, connect, on_termination};

pub use processes::{Options, Processes};
pub use value::{read_all, write_all};
