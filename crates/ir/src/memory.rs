//! How many bytes all literals of this process hold, and how many they may.
//!
//! Whoever makes a large literal asks [`ensure_available`] first; [`crate::Array`] keeps the count
//! by itself. So a program that asks for more than the machine has gets an error, not a kill.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, Result};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(16 << 30);

/// The bytes that all literals of this process hold now.
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The bytes that literals may hold together; 16 GiB unless set.
pub fn limit_bytes() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets [`limit_bytes`] for the whole process.
pub fn set_limit_bytes(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Errors: `ResourceExhausted` if `bytes` more would pass the limit.
pub fn ensure_available(bytes: usize) -> Result<()> {
    let (live, limit) = (live_bytes(), limit_bytes());
    if bytes > limit.saturating_sub(live) {
        return Err(Error::exhausted(format!(
            "{bytes} bytes of memory needed, but {live} of the limit of {limit} bytes are in use"
        )));
    }
    Ok(())
}

pub(crate) fn add(bytes: usize) {
    LIVE.fetch_add(bytes, Ordering::Relaxed);
}

pub(crate) fn remove(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}
