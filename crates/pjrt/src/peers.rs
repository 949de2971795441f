//! The processes of a client: how they find each other, whose devices are whose, and how programs on
//! devices of several of them exchange data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helio::{DeviceAssignment, Error, Result, RunOptions};
use helio_processes::tcp::Listener;
use helio_processes::{Options, Processes};

use crate::client::MAX_DEVICES;
use crate::store::Store;

/// How long the processes wait for each other when a client is made.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a process may be silent before it counts as lost, if its connection stays open. When a
/// process ends, its connections are closed, which is noticed at once.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a participant waits for those of other processes without any of them moving. They may read
/// data or compile meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(30 * 60);

/// The most processes of a client.
pub(crate) const MAX_PROCESSES: usize = 4096;

/// The part of a program that a process has.
pub(crate) struct Part {
    /// Its participants, on devices of this process.
    pub(crate) assignment: DeviceAssignment,
    /// What surrounds its runs, if other processes have participants, too.
    pub(crate) run: Option<RunOptions>,
    /// Whether it has any. If not, the program is compiled for what can be asked of it, as for its first
    /// participant, and never runs.
    pub(crate) is_here: bool,
}

impl Part {
    /// All of a program.
    pub(crate) fn whole(assignment: DeviceAssignment) -> Self {
        Part { assignment, run: None, is_here: true }
    }
}

/// A process of a client that has several.
pub(crate) struct Peers {
    processes: Processes,
    /// For each process, the id of its first device, and at the end how many devices there are.
    first_devices: Vec<usize>,
}

impl Peers {
    /// Connects the processes, of which this is number `rank` of `size`, with so many devices here.
    /// Errors: as the store says; as for [`Listener::connect`].
    pub(crate) fn join(store: &Store, rank: usize, size: usize, devices: usize) -> Result<Self> {
        // Clients are made in the same order in all processes.
        static CLIENTS: AtomicU64 = AtomicU64::new(0);
        let client = CLIENTS.fetch_add(1, Ordering::Relaxed);
        let key = |process: usize| format!("helio/{client}/{process}");
        let host = std::env::var("HELIO_HOST").ok();
        let listener = Listener::new(host.as_deref())?;
        store.put(&key(rank), &format!("{devices} {}", listener.contact()))?;
        let (mut contacts, mut first_devices) = (Vec::with_capacity(size), vec![0]);
        for process in 0..size {
            let said = store.get(&key(process), PATIENCE);
            let said = said.map_err(|e| e.context(format_args!("process {process}")))?;
            let (count, contact) = said.split_once(' ').unwrap_or_default();
            let number = count.parse().ok().filter(|number| (1..=MAX_DEVICES).contains(number));
            let number = number.ok_or_else(|| {
                let detail =
                    format!("process {process} has {count:?} devices, not 1 to {MAX_DEVICES}");
                Error::invalid(detail)
            })?;
            first_devices.push(last(&first_devices) + number);
            contacts.push(contact.to_owned());
        }
        let wire = listener.connect(rank, &contacts, PATIENCE)?;
        let options = Options::default().with_silence(SILENCE);
        let processes = Processes::new(Box::new(wire), options)?;
        Ok(Peers { processes, first_devices })
    }

    /// The number of this process.
    pub(crate) fn rank(&self) -> usize {
        self.processes.rank()
    }

    /// The id of the first device of this process.
    pub(crate) fn first_device(&self) -> usize {
        self.first_devices[self.rank()]
    }

    /// How many devices all processes have.
    pub(crate) fn device_count(&self) -> usize {
        last(&self.first_devices)
    }

    /// The process that has a device, by its id.
    pub(crate) fn process_of(&self, device: usize) -> usize {
        self.first_devices.partition_point(|&first| first <= device) - 1
    }

    /// The part of an assignment that this process has. Errors: as for
    /// [`Processes::connect_placed`].
    pub(crate) fn part(&self, assignment: &DeviceAssignment) -> Result<Part> {
        let (rank, first) = (self.rank(), self.first_device());
        let places: Vec<usize> =
            assignment.devices().iter().map(|&device| self.process_of(device)).collect();
        let own = places.iter().zip(assignment.devices());
        let own: Vec<Option<usize>> =
            own.map(|(&place, &device)| (place == rank).then(|| device - first)).collect();
        let (replicas, partitions) = (assignment.replicas(), assignment.partitions());
        if own.iter().all(Option::is_none) {
            let assignment = DeviceAssignment::part(replicas, partitions, 0..1)?;
            return Ok(Part { assignment, run: None, is_here: false });
        }
        let part = DeviceAssignment::placed(replicas, partitions, &own)?;
        if own.iter().all(Option::is_some) {
            return Ok(Part::whole(part));
        }
        let mut run = RunOptions::default();
        run.limits.max_wait = Some(MAX_WAIT);
        self.processes.connect_placed(&mut run, &part, places)?;
        Ok(Part { assignment: part, run: Some(run), is_here: true })
    }
}

fn last(first_devices: &[usize]) -> usize {
    first_devices.last().copied().unwrap_or(0)
}
