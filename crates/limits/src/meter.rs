//! How much work a run has done, and whether it is to stop.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::OutOfMemory;

/// When a run ends before it is done.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The most steps of work; `None` for no limit.
    ///
    /// A step is an instruction that is performed, each time it is. An instruction with much work
    /// takes more: interpreted, one for each element for which it calls a computation or sums
    /// products; compiled, one for each of the tasks that its work is cut into, by sizes alone, for
    /// threads to share (tens of microseconds and more each), and for each half a million operations
    /// of a task that takes longer.
    pub max_steps: Option<u64>,
    /// Set from outside to stop the run: it looks at least every few milliseconds.
    pub cancel: Option<Arc<AtomicBool>>,
    /// When the run stops at the latest; looked at as often as [`Limits::cancel`].
    pub deadline: Option<Instant>,
    /// Set by others of the same run when it is to stop because of one of them; looked at as often as
    /// [`Limits::cancel`].
    pub abort: Option<Arc<AtomicBool>>,
    /// How long the run may wait for others (participants, the host, other programs) while none of
    /// them moves, that is sends, receives, or comes to a collective operation; `None` for
    /// [`Limits::DEFAULT_MAX_WAIT`].
    pub max_wait: Option<Duration>,
}

crate::with_methods! { Limits {
    with_max_steps(max_steps: impl Into<Option<u64>>);
    with_cancel(cancel: impl Into<Option<Arc<AtomicBool>>>);
    with_deadline(deadline: impl Into<Option<Instant>>);
    with_abort(abort: impl Into<Option<Arc<AtomicBool>>>);
    with_max_wait(max_wait: impl Into<Option<Duration>>);
} }

impl Limits {
    /// How long a run waits for others who do not move unless it is told: ten minutes.
    pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(600);
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It took more steps than this limit.
    Steps(u64),
    /// [`Limits::cancel`] was set.
    Cancelled,
    /// [`Limits::abort`] was set.
    Aborted,
    /// [`Limits::deadline`] had passed.
    Deadline,
    /// A task got no working memory.
    Memory(OutOfMemory),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Steps(max) => write!(f, "the run takes more than {max} steps"),
            Stopped::Cancelled => f.write_str("the run was cancelled"),
            Stopped::Aborted => f.write_str("another participant has ended the run"),
            Stopped::Deadline => f.write_str("the run is not done at its deadline"),
            Stopped::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Stopped {}

/// The work of a run, counted against its [`Limits`] on all of its threads. Once it has stopped, it
/// stays so.
#[derive(Debug, Default)]
pub struct Meter {
    limits: Limits,
    steps: AtomicU64,
    stopped: OnceLock<Stopped>,
}

impl Meter {
    /// A meter of a run that has not begun.
    pub fn new(limits: Limits) -> Self {
        Meter { limits, ..Meter::default() }
    }

    /// The steps counted so far; 0 if they are not limited.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Counts steps that are about to be done. Errors: why the run is to stop.
    #[inline]
    pub fn count(&self, steps: u64) -> Result<(), Stopped> {
        // Programs of small steps take ten nanoseconds for each: an addition that all threads share
        // would be a tenth of that.
        if let Some(max) = self.limits.max_steps {
            let before = self.steps.fetch_add(steps, Ordering::Relaxed);
            if before.saturating_add(steps) > max {
                // So that it cannot wrap.
                self.steps.store(max, Ordering::Relaxed);
                return self.stop(Stopped::Steps(max));
            }
        }
        self.check()
    }

    /// Errors: why the run is to stop.
    #[inline]
    pub fn check(&self) -> Result<(), Stopped> {
        if let Some(&why) = self.stopped.get() {
            return Err(why);
        }
        let Limits { cancel, deadline, abort, .. } = &self.limits;
        let is_set = |flag: &Option<Arc<AtomicBool>>| {
            flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
        };
        if is_set(cancel) {
            return self.stop(Stopped::Cancelled);
        }
        if is_set(abort) {
            return self.stop(Stopped::Aborted);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return self.stop(Stopped::Deadline);
        }
        Ok(())
    }

    /// How long the run may wait for others who do not move.
    pub fn max_wait(&self) -> Duration {
        self.limits.max_wait.unwrap_or(Limits::DEFAULT_MAX_WAIT)
    }

    /// Errors: why the run has stopped, if it has.
    pub fn stopped(&self) -> Result<(), Stopped> {
        self.stopped.get().map_or(Ok(()), |&why| Err(why))
    }

    /// Stops the run, unless it has stopped already. Always an error: why it has stopped first.
    pub fn stop(&self, why: Stopped) -> Result<(), Stopped> {
        Err(*self.stopped.get_or_init(|| why))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_first_reason_to_stop_stays() {
        let cancel = Arc::new(AtomicBool::new(false));
        let limits =
            Limits { max_steps: Some(10), cancel: Some(cancel.clone()), ..Limits::default() };
        let meter = Meter::new(limits);
        assert_eq!(meter.count(10), Ok(()));
        assert_eq!(meter.check(), Ok(()));
        assert_eq!(meter.count(u64::MAX), Err(Stopped::Steps(10)));
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(meter.check(), Err(Stopped::Steps(10)));
        assert_eq!(meter.steps(), 10);
    }

    #[test]
    fn cancellation_and_deadline_stop() {
        let cancel = Some(Arc::new(AtomicBool::new(true)));
        assert_eq!(
            Meter::new(Limits { cancel, ..Limits::default() }).count(1),
            Err(Stopped::Cancelled)
        );
        let abort = Some(Arc::new(AtomicBool::new(true)));
        assert_eq!(
            Meter::new(Limits { abort, ..Limits::default() }).check(),
            Err(Stopped::Aborted)
        );
        let [past, future] = [0, 1000].map(|secs| Some(Instant::now() + Duration::from_secs(secs)));
        let check = |deadline| Meter::new(Limits { deadline, ..Limits::default() }).check();
        assert_eq!([check(past), check(future)], [Err(Stopped::Deadline), Ok(())]);
    }
}
