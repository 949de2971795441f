//! The memory of this process: how many bytes are in use, and how many may be.
//!
//! One account counts all of it once: literals, the blocks of clients, the scratch of kernels, and
//! what the interpreter takes while it computes. A client's account is below that of the process, and
//! counts what its runs make. What is kept to be used again is given up when there would be no room
//! for it. Not counted are programs (text, instructions, machine code), and the stacks of threads.
//!
//! Whoever makes a large array asks first ([`ensure_available`]), or has its bytes counted while it
//! works ([`reserve`]); [`crate::Array`] keeps the count of its own by itself. So a program that asks
//! for more than there is gets an error, not a kill.

use helio_limits::Stopped;
pub use helio_limits::{Account, Counted, Entered, OutOfMemory, Reservation};

use crate::{Code, Error, Result};

/// The bytes of this process in use now.
pub fn live_bytes() -> usize {
    Account::of_process().live_bytes()
}

/// The most bytes that were in use at once since the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    Account::of_process().peak_bytes()
}

/// Makes what is in use now the peak.
pub fn reset_peak() {
    Account::of_process().reset_peak();
}

/// The bytes that may be in use; 16 GiB unless set.
pub fn limit_bytes() -> usize {
    Account::of_process().limit_bytes()
}

/// Sets [`limit_bytes`] for the whole process.
pub fn set_limit_bytes(bytes: usize) {
    Account::of_process().set_limit_bytes(bytes);
}

/// Errors: `ResourceExhausted` if `bytes` more would pass the limit of the process, or of the account
/// that this thread works for.
pub fn ensure_available(bytes: usize) -> Result<()> {
    Ok(Account::current().ensure_available(bytes)?)
}

/// Counts bytes in the account that this thread works for, until what it returns is dropped. Errors:
/// as for [`ensure_available`].
pub fn reserve(bytes: usize) -> Result<Reservation> {
    Ok(Account::current().reserve(bytes)?)
}

impl From<OutOfMemory> for Error {
    fn from(error: OutOfMemory) -> Self {
        Error::limit("limit.memory", error.to_string())
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Steps(_) => Error::limit("limit.steps", stopped.to_string()),
            Stopped::Cancelled => Error::new(Code::Cancelled, stopped.to_string()),
            Stopped::Aborted => Error::new(Code::Aborted, stopped.to_string()),
            Stopped::Deadline => Error::new(Code::DeadlineExceeded, stopped.to_string()),
            Stopped::Memory(error) => error.into(),
        }
    }
}
