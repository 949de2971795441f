//! Devices: what is asked of each is done in order.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use helio_ir::{Code, Error, Result};

use crate::client::Client;

/// How often a thread looks whether a device has become free, before it has the device's own thread
/// do the work; and how long it spins after each look. Together some microseconds, as long as it
/// takes to wake that thread.
const LOOKS: usize = 16;
const SPINS: usize = 32;

/// A device of a client.
///
/// ```
/// let client = helio::Client::new(&helio::ClientOptions::default().with_devices(2));
/// let device = client.device(1).expect("the second");
/// let x = client.buffer_from_array(&[1f32, 2.0].into(), device.clone())?;
/// assert_eq!((x.device(), device.id(), device.kind()), (&device, 1, "cpu"));
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone)]
pub struct Device {
    client: Client,
    id: usize,
}

/// A memory of a device. All of them are the machine's own: programs read and write buffers in any.
///
/// ```
/// use helio::MemoryKind;
/// assert_eq!(MemoryKind::from_name("pinned_host"), Some(MemoryKind::PinnedHost));
/// let client = helio::Client::default();
/// let x = client.buffer(&[1f32, 2.0].into())?;
/// let x = x.copy_to_memory(&client.default_device(), MemoryKind::PinnedHost)?;
/// assert_eq!(x.memory_kind().name(), "pinned_host");
/// # Ok::<(), helio::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Where arrays are, and results go, unless another is asked for.
    #[default]
    Device,
    /// Memory of the host that transfers reach directly.
    PinnedHost,
    /// Any other memory of the host.
    UnpinnedHost,
}

impl MemoryKind {
    /// All kinds; every device has them.
    pub const ALL: &[MemoryKind] =
        &[MemoryKind::Device, MemoryKind::PinnedHost, MemoryKind::UnpinnedHost];

    /// The name that PJRT and JAX use: `pinned_host`.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Device => "device",
            MemoryKind::PinnedHost => "pinned_host",
            MemoryKind::UnpinnedHost => "unpinned_host",
        }
    }

    /// The kind of this [name](MemoryKind::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// What a device does in its turn.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// What a device has yet to do, and the thread that does it, which starts with the first job.
#[derive(Default)]
pub(crate) struct Line {
    shared: Arc<Shared>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Whether something is being done, by the worker or by who has a [`Turn`].
    is_busy: bool,
    is_closed: bool,
}

/// The right to work as a device on one's own thread; the device is free again when it is dropped.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    was_within: bool,
}

thread_local! {
    /// Whether this thread works as a device.
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };
}

impl Device {
    pub(crate) fn new(client: Client, id: usize) -> Self {
        Device { client, id }
    }

    /// Its number, from 0.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Whose it is.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What kind of device it is.
    pub fn kind(&self) -> &'static str {
        "cpu"
    }

    /// Has a thread for the device's jobs. Errors: the system has none.
    pub(crate) fn start(&self) -> Result<()> {
        self.client.line(self.id).start(self.id)
    }

    /// Has `job` done after all that was asked of this device before, on its own thread, which
    /// [`Device::start`] has started.
    pub(crate) fn enqueue(&self, job: Job) {
        let shared = &self.client.line(self.id).shared;
        shared.lock().jobs.push_back(job);
        shared.changed.notify_all();
    }

    /// The right to work as this device, if it has nothing to do.
    pub(crate) fn turn(&self) -> Option<Turn> {
        let shared = &self.client.line(self.id).shared;
        // Whoever has told that the last job is done may not have gone yet.
        for _ in 0..LOOKS {
            let mut state = shared.lock();
            if !state.jobs.is_empty() {
                return None;
            }
            if !state.is_busy {
                state.is_busy = true;
                return Some(Turn { shared: shared.clone(), was_within: IS_WITHIN.replace(true) });
            }
            drop(state);
            (0..SPINS).for_each(|_| hint::spin_loop());
        }
        None
    }
}

/// Errors: this thread works as a device, which must not wait for what another, or it itself, has yet
/// to do.
pub(crate) fn ensure_may_wait() -> Result<()> {
    if !IS_WITHIN.get() {
        return Ok(());
    }
    let detail = "an execution, or what listens to its end, waits for another execution that has to \
                  wait for it\n  help: ExecuteOptions::asynchronous does not wait";
    Err(Error::new(Code::FailedPrecondition, detail))
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.client.is(&other.client)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} {})", self.kind(), self.id)
    }
}

impl Shared {
    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs in order until there will be no more.
    fn work(&self) {
        IS_WITHIN.set(true);
        let mut state = self.lock();
        loop {
            if !state.is_busy
                && let Some(job) = state.jobs.pop_front()
            {
                state.is_busy = true;
                drop(state);
                // A job reports its panics by itself; the next one must run in any case.
                let _ = catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                state.is_busy = false;
            } else if state.is_closed && state.jobs.is_empty() {
                return;
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

impl Line {
    fn start(&self, device: usize) -> Result<()> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if worker.is_some() {
            return Ok(());
        }
        let shared = self.shared.clone();
        let thread = thread::Builder::new()
            .name(format!("helio-device-{device}"))
            .spawn(move || shared.work())
            .map_err(|e| Error::exhausted(format!("no thread for device {device}: {e}")))?;
        *worker = Some(thread);
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        IS_WITHIN.set(self.was_within);
        let mut state = self.shared.lock();
        state.is_busy = false;
        let is_wanted = !state.jobs.is_empty() || state.is_closed;
        drop(state);
        if is_wanted {
            self.shared.changed.notify_all();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        let worker = self.worker.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle to a client may go with the last job, on this very thread.
        if let Some(thread) = worker.filter(|t| t.thread().id() != thread::current().id()) {
            // Jobs' panics are caught.
            let _ = thread.join();
        }
    }
}
