//! How many bytes all literals of this process hold, and how many they may.
//!
//! Whoever makes a large literal asks [`ensure_available`] first; [`crate::Array`] keeps the count
//! by itself. So a program that asks for more than the machine has gets an error, not a kill.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, Result};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static LIMIT: AtomicUsize = AtomicUsize::new(16 << 30);

/// The bytes that all literals of this process hold now.
pub fn live_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// The most bytes that all literals held at once since the last [`reset_peak`].
pub fn peak_bytes() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Makes what literals hold now the peak.
pub fn reset_peak() {
    PEAK.store(live_bytes(), Ordering::Relaxed);
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
        let (bytes, live, limit) = (Bytes(bytes), Bytes(live), Bytes(limit));
        return Err(Error::exhausted(format!(
            "{bytes} of memory needed, but {live} of the limit of {limit} are in use"
        )));
    }
    Ok(())
}

/// A number of bytes as a person reads it: `512 bytes`, `4.0 GiB`.
struct Bytes(usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|&(shift, _)| self.0 >> shift > 0) {
            Some((shift, unit)) => {
                write!(f, "{:.1} {unit}", self.0 as f64 / (1u64 << shift) as f64)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

pub(crate) fn add(bytes: usize) {
    let before = LIVE.fetch_add(bytes, Ordering::Relaxed);
    PEAK.fetch_max(before + bytes, Ordering::Relaxed);
}

pub(crate) fn remove(bytes: usize) {
    LIVE.fetch_sub(bytes, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::Bytes;

    #[test]
    fn bytes_are_written_in_the_largest_unit_that_fits() {
        let sizes = [0, 1023, 1024, 3 << 19, 4 << 30, usize::MAX];
        let written = sizes.map(|bytes| Bytes(bytes).to_string());
        let expected = ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 MiB", "4.0 GiB", "16777216.0 TiB"];
        assert_eq!(written, expected);
    }
}
