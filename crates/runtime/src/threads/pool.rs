//! Worker threads and the jobs they help with.
//!
//! A job lives on its caller's stack. Workers join it under the pool's lock, while it is in the
//! list of jobs; its caller takes it off the list and then waits until those who joined have left.
//! So no worker sees a job that is gone.
//!
//! Each thread begins with a stretch of a job's tasks, the same of each job, and then takes tasks from the others'
//! stretches. Where one job reads what the job before it has written, most of it is in this core's caches then.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::Threads;
use crate::bounds::Bounds;
use crate::float_mode::{Control, FloatModeGuard};

/// How long a thread that waits looks for news before it sleeps: a few times what it costs to be
/// woken (8 µs measured), so that workers stay awake between the kernels of a program.
const SPIN: Duration = Duration::from_micros(50);

/// Worker threads that any number of callers share. They are started when first needed and end
/// with the pool.
pub struct Pool {
    shared: Arc<Shared>,
    size: usize,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// The length of `workers`, to be read without the lock.
    started: AtomicUsize,
}

/// What callers and workers share.
struct Shared {
    state: Mutex<State>,
    /// There is a job to join, or the pool ends.
    work: Condvar,
    /// The last worker has left some job.
    left: Condvar,
    /// Callers that sleep until workers have left, or are about to.
    waiting: AtomicUsize,
    /// Counts the jobs that were ever put on the list, for workers that look for news without the
    /// lock.
    news: AtomicUsize,
}

struct State {
    /// Jobs that workers may join, oldest first.
    jobs: Vec<Listed>,
    /// Workers that sleep.
    sleeping: usize,
    ending: bool,
}

/// A job on the list.
struct Listed {
    job: NonNull<Job<'static>>,
    /// How many more workers may join.
    room: usize,
}

// SAFETY: a `Job` is shared by threads through `&Job` alone, and is `Sync` (its `body` is). That it
// is alive wherever it is used, `Pool::run` sees to.
unsafe impl Send for Listed {}

/// Tasks that several threads work on.
struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    /// Asked before each task; once it says no, no other is begun.
    may_begin: &'a (dyn Fn() -> bool + Sync),
    /// What the work is bounded by, for the threads that help.
    bounds: Option<Arc<Bounds>>,
    /// How its caller computes with floats, for the threads that help.
    float_control: Control,
    tasks: usize,
    /// Stretches of the tasks, one for each thread that may work up to [`MAX_SHARES`]: each thread begins with its own.
    shares: [Share; MAX_SHARES],
    /// How many of `shares` there are.
    share_count: usize,
    /// Workers that have joined and not left. It grows under the pool's lock alone.
    workers: AtomicUsize,
    /// What the first task to panic panicked with.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The most stretches that the tasks of a job are divided into: more threads share them.
const MAX_SHARES: usize = 8;

/// A stretch of tasks: the next one to begin. It has cache lines of its own (two: they are fetched in pairs).
#[repr(align(128))]
#[derive(Default)]
struct Share {
    next: AtomicUsize,
}

thread_local! {
    /// Whether this thread is within a task.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool in which `size` threads may work for one call: its caller and `size - 1` workers.
    pub fn new(size: usize) -> Self {
        let state = State { jobs: Vec::new(), sleeping: 0, ending: false };
        let shared = Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            left: Condvar::new(),
            waiting: AtomicUsize::new(0),
            news: AtomicUsize::new(0),
        };
        Pool {
            shared: Arc::new(shared),
            size: size.max(1),
            workers: Mutex::new(Vec::new()),
            started: AtomicUsize::new(0),
        }
    }

    /// A pool for as many threads as this process may run at once: what its processor affinity and
    /// its cgroup's quota allow.
    pub fn for_this_process() -> Self {
        Self::new(thread::available_parallelism().map_or(1, |count| count.get()))
    }

    /// How many threads may work for one call.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The right to at most `limit` of the threads.
    pub fn threads(&self, limit: usize) -> Threads<'_> {
        Threads::of(self, limit.clamp(1, self.size))
    }

    /// [`Threads::for_each`] on `count` threads, as long as `may_begin` says yes.
    pub(super) fn run(
        &self,
        tasks: usize,
        count: usize,
        may_begin: &(dyn Fn() -> bool + Sync),
        body: &(dyn Fn(usize) + Sync),
    ) {
        let wanted = tasks.min(count).saturating_sub(1);
        let helpers = if IN_TASK.get() || wanted == 0 { 0 } else { self.start_workers(wanted) };
        if helpers == 0 {
            (0..tasks).take_while(|_| may_begin()).for_each(body);
            return;
        }
        let job = Job {
            body,
            may_begin,
            bounds: Bounds::current(),
            float_control: Control::current(),
            tasks,
            shares: Default::default(),
            share_count: (helpers + 1).min(MAX_SHARES),
            workers: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        for share in 0..job.share_count {
            job.shares[share].next.store(job.begin(share), Ordering::Relaxed);
        }
        let listed = NonNull::from(&job).cast::<Job<'static>>();
        self.shared.offer(listed, helpers);
        job.work(0);
        self.shared.withdraw(listed, &job);
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    /// Sees to it that `wanted` workers run, or as many as the system lets start; their number.
    fn start_workers(&self, wanted: usize) -> usize {
        let started = self.started.load(Ordering::Relaxed);
        if started >= wanted {
            return wanted;
        }
        let mut workers = lock(&self.workers);
        while workers.len() < wanted {
            let shared = self.shared.clone();
            let name = format!("helio-worker-{}", workers.len());
            let number = workers.len() + 1; // 0 is the caller
            match thread::Builder::new().name(name).spawn(move || shared.serve(number)) {
                Ok(worker) => workers.push(worker),
                // Fewer threads than wished for are no error: the caller works, too.
                Err(_) => break,
            }
        }
        self.started.store(workers.len(), Ordering::Relaxed);
        workers.len().min(wanted)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).ending = true;
        self.shared.news.fetch_add(1, Ordering::Release);
        self.shared.work.notify_all();
        for worker in lock(&self.workers).drain(..) {
            // Workers catch the panics of tasks and have none of their own.
            let _ = worker.join();
        }
    }
}

impl Job<'_> {
    /// The first task of a stretch, or the end of the one before.
    fn begin(&self, share: usize) -> usize {
        self.tasks / self.share_count * share + (self.tasks % self.share_count).min(share)
    }

    /// No task that has not begun is to begin.
    fn stop(&self) {
        for share in &self.shares {
            share.next.store(self.tasks, Ordering::Relaxed);
        }
    }

    /// Runs tasks until none is left to begin: first those of the thread's own share, then others.
    fn work(&self, thread: usize) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _in_task = InTask::enter();
            let _bounds = Bounds::enter(self.bounds.clone());
            let _mode = FloatModeGuard::enter(self.float_control);
            for i in 0..self.share_count {
                let share = (thread + i) % self.share_count;
                let end = self.begin(share + 1);
                loop {
                    let task = self.shares[share].next.fetch_add(1, Ordering::Relaxed);
                    if task >= end {
                        break;
                    }
                    if !(self.may_begin)() {
                        return self.stop();
                    }
                    (self.body)(task);
                }
            }
        }));
        if let Err(panic) = outcome {
            // Nobody begins another task. Counters cannot wrap: each passes the end of its stretch at most once
            // for each thread.
            self.stop();
            let mut first = lock(&self.panic);
            if first.is_none() {
                *first = Some(panic);
            } else {
                // What is dropped may panic again, and nothing here may: the caller would leave
                // `Pool::run` while others work on the job.
                std::mem::forget(panic);
            }
        }
    }
}

/// Marks the thread as being within a task while it lives, also while a panic unwinds.
struct InTask;

impl InTask {
    fn enter() -> Self {
        IN_TASK.set(true);
        InTask
    }
}

impl Drop for InTask {
    fn drop(&mut self) {
        IN_TASK.set(false);
    }
}

impl Shared {
    /// Puts a job on the list and wakes as many sleepers as may join.
    fn offer(&self, job: NonNull<Job<'static>>, room: usize) {
        let mut state = lock(&self.state);
        state.jobs.push(Listed { job, room });
        self.news.fetch_add(1, Ordering::Release);
        let wake = state.sleeping.min(room);
        drop(state);
        (0..wake).for_each(|_| self.work.notify_one());
    }

    /// Takes a job off the list and waits until all who joined have left.
    fn withdraw(&self, listed: NonNull<Job<'static>>, job: &Job<'_>) {
        lock(&self.state).jobs.retain(|other| other.job != listed);
        // In one order with what workers do in [`Shared::tell_of_leaving`]: either they are found to have left, or they find somebody
        // waiting.
        let left = || job.workers.load(Ordering::SeqCst) == 0;
        if spin_until(left) {
            return;
        }
        let mut state = lock(&self.state);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while !left() {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// What the last worker does that has left a job, which may be gone. Neither the lock nor the system is asked unless a
    /// caller sleeps: it may offer the next job a microsecond later.
    fn tell_of_leaving(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            // Whoever has looked for workers under the lock sleeps by now.
            drop(lock(&self.state));
            self.left.notify_all();
        }
    }

    /// What a worker does: joins jobs until the pool ends.
    fn serve(&self, number: usize) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.join() {
                drop(state);
                // SAFETY: the job was on the list, so its caller is within `Pool::run`, and stays
                // there until `workers`, which `join` has raised, falls to zero.
                unsafe { job.as_ref() }.work(number);
                // SAFETY: `workers` still counts this thread, so the job is alive; it is not touched
                // after this.
                let others = unsafe { job.as_ref() }.workers.fetch_sub(1, Ordering::SeqCst) - 1;
                if others == 0 {
                    self.tell_of_leaving();
                }
                state = lock(&self.state);
                continue;
            }
            if state.ending {
                return;
            }
            let seen = self.news.load(Ordering::Relaxed);
            drop(state);
            let news = spin_until(|| self.news.load(Ordering::Acquire) != seen);
            state = lock(&self.state);
            // News between the spin and the lock would not wake a sleeper.
            if !news && self.news.load(Ordering::Relaxed) == seen {
                state.sleeping += 1;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.sleeping -= 1;
            }
        }
    }
}

impl State {
    /// Joins the oldest job; it leaves the list when nobody else may.
    fn join(&mut self) -> Option<NonNull<Job<'static>>> {
        let listed = self.jobs.first_mut()?;
        let job = listed.job;
        listed.room -= 1;
        if listed.room == 0 {
            self.jobs.remove(0);
        }
        // SAFETY: the job is on the list, and its caller, who takes it off before it goes, needs
        // the lock that this thread holds.
        unsafe { job.as_ref() }.workers.fetch_add(1, Ordering::Relaxed);
        Some(job)
    }
}

/// Waits for a condition without sleeping; whether it came true before [`SPIN`] was over.
fn spin_until(condition: impl Fn() -> bool) -> bool {
    let begin = Instant::now();
    loop {
        for _ in 0..16 {
            if condition() {
                return true;
            }
            hint::spin_loop();
        }
        if begin.elapsed() >= SPIN {
            return false;
        }
    }
}

/// What the locks here guard is whole whenever they are free, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
