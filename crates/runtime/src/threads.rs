//! Threads that a call may use.
//!
//! A [`Pool`] owns worker threads; [`Threads`] is the right of one call to some of them. Each thread
//! begins with a share of the tasks and helps the others when it is done, so that uneven tasks even
//! out, and the caller works too: a pool whose workers are all busy elsewhere only makes a call slower.
//!
//! Which thread runs a task is left to chance in the end. Results do not depend on it because work is cut
//! into tasks by size alone, never by the number of threads.
//!
//! Within a run, tasks are counted as its work, and once the run is to stop, tasks not yet begun are
//! left out: what they should have written is not there then. Code whose work is done in phases that
//! rely on each other asks between them ([`Threads::is_stopped`]).

mod pool;

use std::ops::Range;

pub use pool::Pool;

use crate::bounds::{self, Bounds};

/// The threads that a call may use: a pool and a limit.
#[derive(Clone, Copy, Debug)]
pub struct Threads<'p> {
    pool: Option<&'p Pool>,
    count: usize,
}

impl Threads<'static> {
    /// Only the caller's thread.
    pub fn single() -> Self {
        Threads { pool: None, count: 1 }
    }
}

impl<'p> Threads<'p> {
    /// `count` threads: the caller's, and the others from a pool.
    pub(super) fn of(pool: &'p Pool, count: usize) -> Self {
        Threads { pool: (count > 1).then_some(pool), count }
    }

    /// How many threads may work at once; at least one. Not for deciding how to cut work up.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Calls `body` once for each number below `tasks`, in any order, on any of the threads, and
    /// returns when all calls have returned. Within a task it runs on the caller's thread alone.
    ///
    /// All but the first count as steps of the run; see [`Limits`](helio_limits::Limits).
    ///
    /// # Panics
    /// If a task panics, with what it panicked with; tasks that were not yet begun are dropped.
    pub fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 {
            return (0..tasks).for_each(body);
        }
        let Some(bounds) = Bounds::current() else { return self.run(tasks, body) };
        if bounds.meter.count(tasks as u64 - 1).is_ok() {
            self.run_bounded(tasks, &bounds, body);
        }
    }

    /// As [`Threads::for_each`], of tasks that are counted elsewhere.
    pub(crate) fn for_each_uncounted(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        match Bounds::current() {
            Some(bounds) => self.run_bounded(tasks, &bounds, body),
            None => self.run(tasks, body),
        }
    }

    fn run_bounded(&self, tasks: usize, bounds: &Bounds, body: &(dyn Fn(usize) + Sync)) {
        let may_begin = || bounds.meter.check().is_ok();
        match self.pool {
            Some(pool) => pool.run(tasks, self.count, &may_begin, body),
            None => (0..tasks).take_while(|_| may_begin()).for_each(body),
        }
    }

    fn run(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        match self.pool {
            Some(pool) => pool.run(tasks, self.count, &|| true, body),
            None => (0..tasks).for_each(body),
        }
    }

    /// Whether the run that this thread works for has stopped or is to stop.
    pub fn is_stopped(&self) -> bool {
        bounds::is_stopped()
    }

    /// Calls `body` with consecutive ranges that together are `0..len`, each of `grain` numbers
    /// except the last.
    pub fn for_ranges(&self, len: usize, grain: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
        let grain = grain.max(1);
        self.for_each(len.div_ceil(grain), &|task| {
            let start = task * grain;
            body(start..len.min(start.saturating_add(grain)));
        });
    }

    /// Calls `body` with the number and contents of each chunk of `data`; the last may be shorter.
    pub fn for_chunks<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        body: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        let chunk = chunk.max(1);
        let (len, start) = (data.len(), Start(data.as_mut_ptr()));
        self.for_ranges(len, chunk, &|range| {
            // SAFETY: `range` lies within `data`, which is borrowed mutably until all tasks have
            // returned; each range is given to one task and no two overlap. `T: Send`, so that
            // another thread may hold the `&mut [T]`.
            let part = unsafe {
                std::slice::from_raw_parts_mut(start.get().add(range.start), range.len())
            };
            body(range.start / chunk, part);
        });
    }
}

/// Where a slice begins, to be known by several threads.
struct Start<T>(*mut T);

impl<T> Start<T> {
    /// The pointer. (A method, so that closures capture all of `Start`, not the pointer in it.)
    fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: it is only an address; whoever reads or writes there answers for it.
unsafe impl<T: Send> Sync for Start<T> {}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn each_task_runs_once() {
        let pool = Pool::new(4);
        for threads in [Threads::single(), pool.threads(1), pool.threads(2), pool.threads(9)] {
            for tasks in [0, 1, 2, 3, 1000] {
                let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                threads.for_each(tasks, &|i| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn chunks_are_disjoint_and_cover_all() {
        let pool = Pool::new(3);
        for (len, chunk) in [(0, 4), (1, 4), (1000, 7), (8, 0), (5, usize::MAX)] {
            let mut data = vec![0; len];
            pool.threads(3).for_chunks(&mut data, chunk, &|i, part| {
                for (j, value) in part.iter_mut().enumerate() {
                    *value += i * chunk.clamp(1, len.max(1)) + j + 1;
                }
            });
            assert_eq!(data, (1..=len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_limit_holds() {
        let pool = Pool::new(8);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        pool.threads(2).for_each(64, &|_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_micros(100));
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert!(most.into_inner() <= 2);
    }

    #[test]
    fn tasks_run_on_several_threads_at_once() {
        let pool = Pool::new(2);
        let arrived = AtomicUsize::new(0);
        let begin = Instant::now();
        // Neither task ends before both have begun.
        pool.threads(2).for_each(2, &|_| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                assert!(begin.elapsed() < Duration::from_secs(20), "the other task never began");
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn tasks_may_cut_their_own_work_up() {
        let pool = Pool::new(3);
        let threads = pool.threads(3);
        let sum = AtomicUsize::new(0);
        threads.for_each(10, &|i| {
            threads.for_each(10, &|j| {
                sum.fetch_add(i * 10 + j, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.into_inner(), 4950);
    }

    #[test]
    fn many_callers_share_a_pool() {
        let pool = Pool::new(3);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let sum = AtomicUsize::new(0);
                        pool.threads(3).for_each(5, &|i| {
                            sum.fetch_add(i, Ordering::Relaxed);
                        });
                        assert_eq!(sum.into_inner(), 10);
                    }
                });
            }
        });
    }

    /// The first payload is the caller's; the others are not dropped, since that might panic again.
    #[test]
    fn payloads_that_panic_when_dropped_leave_the_pool_whole() {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                panic!("a payload is dropped");
            }
        }
        let pool = Pool::new(3);
        for _ in 0..20 {
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.threads(3).for_each(50, &|_| {
                    std::thread::yield_now();
                    std::panic::resume_unwind(Box::new(Payload));
                });
            }));
            assert!(outcome.is_err());
            std::mem::forget(outcome);
        }
        pool.threads(3).for_each(2, &|_| {});
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_pool_whole() {
        let pool = Pool::new(3);
        let threads = pool.threads(3);
        for _ in 0..20 {
            let finished = Mutex::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                threads.for_each(50, &|i| {
                    // `resume_unwind` prints nothing.
                    if i == 7 {
                        std::panic::resume_unwind(Box::new("seven"));
                    }
                    *finished.lock().unwrap() += 1;
                });
            }));
            assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"seven"));
            assert!(*finished.lock().unwrap() < 50);
        }
        threads.for_each(2, &|_| {});
    }
}
