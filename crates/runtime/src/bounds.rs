//! What the work of a run is bounded by, known to each thread that works for it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};

use helio_limits::{Meter, Reservation, Stopped};

use crate::memory::{Block, Memory};

/// What the work of a run is bounded by: a meter, and the memory that kernels work in.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// Counts the work, and says when it is to stop.
    pub meter: Arc<Meter>,
    /// Where scratch comes from.
    pub memory: Memory,
}

thread_local! {
    /// [`SMALL`] bytes of this thread.
    static KEPT: Cell<Option<Block>> = const { Cell::new(None) };
    /// Those of the run that this thread works for.
    static CURRENT: RefCell<Option<Arc<Bounds>>> = const { RefCell::new(None) };
}

/// Scratch of kernels that are called outside of a run.
static OUTSIDE: LazyLock<Memory> = LazyLock::new(Memory::new);

impl Bounds {
    /// Those of the run that this thread works for.
    pub fn current() -> Option<Arc<Bounds>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes these the bounds of this thread's work until the guard is dropped.
    pub fn enter(bounds: Option<Arc<Bounds>>) -> Entered {
        Entered { before: CURRENT.replace(bounds) }
    }
}

/// While it lives, bounds are those of its thread.
#[must_use = "the bounds are left when this is dropped"]
pub(crate) struct Entered {
    before: Option<Arc<Bounds>>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

/// Whether the run that this thread works for has stopped or is to stop. Kernels whose work is done
/// in phases ask between them: tasks of a run that has stopped are left out, so what they should
/// have written is not there.
pub(crate) fn is_stopped() -> bool {
    CURRENT.with_borrow(|bounds| bounds.as_ref().is_some_and(|b| b.meter.check().is_err()))
}

/// Counts work that is not cut into tasks, and looks from time to time whether the run has stopped.
#[derive(Default)]
pub(crate) struct Lookout {
    /// Since it last looked.
    work: usize,
    is_stopped: bool,
}

impl Lookout {
    /// Operations that count as one step: a nanosecond or so each, so half a millisecond.
    const INTERVAL: usize = 1 << 19;

    /// Whether to begin this much work, in operations or so. Once the answer is no, it stays so.
    #[inline(always)]
    pub fn goes_on(&mut self, work: usize) -> bool {
        self.work = self.work.saturating_add(work);
        if self.work >= Self::INTERVAL {
            self.work = 0;
            self.is_stopped = !count(1);
        }
        !self.is_stopped
    }
}

/// Counts steps of the run that this thread works for; whether it may go on.
pub(crate) fn count(steps: u64) -> bool {
    CURRENT.with_borrow(|bounds| bounds.as_ref().is_none_or(|b| b.meter.count(steps).is_ok()))
}

/// Counts bytes that a kernel keeps for later runs. `None` if there are none; the run stops then.
pub(crate) fn reserve(bytes: usize) -> Option<Reservation> {
    let bounds = Bounds::current();
    let memory = bounds.as_ref().map_or(&*OUTSIDE, |bounds| &bounds.memory);
    match (memory.account().reserve(bytes), &bounds) {
        (Ok(reservation), _) => Some(reservation),
        (Err(error), Some(bounds)) => {
            // The run reports it.
            let _ = bounds.meter.stop(Stopped::Memory(error));
            None
        }
        (Err(error), None) => panic!("{error}"),
    }
}

/// Calls `body` with a block of `bytes` bytes of unspecified content; large ones lie on whole huge
/// pages where there is room for them. If there is no memory, the run stops, and `body` is not called.
pub(crate) fn with_scratch(bytes: usize, body: impl FnOnce(&mut [u8])) {
    let mut body = Some(body);
    // (What takes the memory is compiled once for all bodies.)
    lend_scratch(bytes, &mut |scratch| {
        if let Some(body) = body.take() {
            body(scratch);
        }
    });
}

/// [`with_scratch`], whose body is called once at most.
fn lend_scratch(bytes: usize, body: &mut dyn FnMut(&mut [u8])) {
    let bounds = Bounds::current();
    let memory = bounds.as_ref().map_or(&*OUTSIDE, |bounds| &bounds.memory);
    if bytes == 0 {
        return body(&mut []);
    }
    if bytes <= SMALL {
        // Taken rather than borrowed, so that a call within a call has its own.
        if let Some(mut block) = KEPT.take().or_else(|| OUTSIDE.allocate(SMALL).ok()) {
            body(&mut block.as_mut_slice()[..bytes]);
            return KEPT.set(Some(block));
        }
    }
    let whole = if bytes < LARGE { bytes } else { bytes.max(HUGE_PAGE) };
    let block = match memory.allocate(whole) {
        Err(_) if whole > bytes => memory.allocate(bytes),
        block => block,
    };
    match (block, &bounds) {
        (Ok(mut block), _) => body(&mut block.as_mut_slice()[..bytes]),
        (Err(error), Some(bounds)) => {
            // The run reports it.
            let _ = bounds.meter.stop(Stopped::Memory(error));
        }
        (Err(error), None) => panic!("{error}"),
    }
}

/// Bytes of the largest scratch that a thread keeps for itself and no run's account counts: asking
/// the pool would take longer than what is computed in them.
const SMALL: usize = 16 << 10;

/// Bytes of the smallest scratch that gets a huge page of its own: tiles of a product read it at more
/// places at once than the processor's translation buffer has entries for small pages.
const LARGE: usize = 64 << 10;
const HUGE_PAGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use helio_limits::{Account, Limits};

    use super::*;
    use crate::Pool;

    #[test]
    fn scratch_is_counted_given_back_and_refused() {
        let memory = Memory::of(Account::alone(1 << 20), usize::MAX);
        let bounds = Bounds { meter: Arc::default(), memory: memory.clone() };
        let entered = Bounds::enter(Some(Arc::new(bounds.clone())));
        let mut called = 0;
        with_scratch(300 << 10, |scratch| {
            assert_eq!([scratch.len(), memory.live_bytes()], [300 << 10; 2]);
            called += 1;
            with_scratch(800 << 10, |_| called += 1);
        });
        assert_eq!((called, memory.live_bytes()), (1, 0));
        assert!(matches!(bounds.meter.check(), Err(Stopped::Memory(_))));
        drop(entered);
        assert!(!is_stopped());
    }

    #[test]
    fn tasks_are_counted_and_left_out_once_stopped() {
        let pool = Pool::new(4);
        for count in [1, 4] {
            let limits = Limits { max_steps: Some(100), ..Limits::default() };
            let meter = Arc::new(Meter::new(limits));
            let bounds = Bounds { meter: meter.clone(), memory: Memory::new() };
            let _entered = Bounds::enter(Some(Arc::new(bounds)));
            let done = std::sync::atomic::AtomicUsize::new(0);
            let count_up = |_| {
                done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            };
            pool.threads(count).for_each(80, &count_up);
            assert_eq!((meter.check(), meter.steps()), (Ok(()), 79));
            pool.threads(count).for_each(usize::MAX, &count_up);
            assert_eq!(meter.check(), Err(Stopped::Steps(100)));
            assert_eq!(done.into_inner(), 80);
        }
    }
}
