//! What an execution shares with the world: other participants, the host, the user's functions.

mod carried;
mod collectives;
mod transfers;

use std::fmt;
use std::sync::Arc;

use helio_ir::{CompId, InstrId, Literal, Result};
pub use helio_limits::Meter;

pub use carried::{Incoming, Outgoing};
pub use collectives::{
    Alone, Collectives, Fold, Given, Memo, Reads, Ready, Rendezvous, RendezvousId, Sink,
    SinkWithRoom, Sleeper, Wait, waited_too_long,
};
pub use transfers::{Channel, Host, NoHost, Waiter};

use crate::{Call, Limits, Subnormals};

/// Which participant of an execution this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Participant {
    /// The replica, from 0.
    pub replica: usize,
    /// The partition, from 0.
    pub partition: usize,
}

/// The first partition of a replica: its only one, in programs of one partition.
impl From<usize> for Participant {
    fn from(replica: usize) -> Self {
        Participant { replica, partition: 0 }
    }
}

/// `replica 1, partition 0`
impl fmt::Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {}, partition {}", self.replica, self.partition)
    }
}

/// A function of the user, which writes the results of a call.
pub type CustomFunction = dyn Fn(&mut Call<'_>) -> Result<()> + Send + Sync;

/// Threads that functions may use besides the one that calls them.
pub trait Workers: Sync {
    /// Calls `body` once for each number below `tasks`, in any order, on any of the threads, and returns
    /// when all calls have returned. Once the run is to stop, tasks not yet begun are left out.
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync));
}

/// No other threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWorkers;

impl Workers for NoWorkers {
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(body);
    }
}

/// Finds functions for custom calls.
pub trait CustomCalls: Send + Sync {
    /// The function registered as `target`, if there is one.
    fn find(&self, target: &str) -> Option<Arc<CustomFunction>>;
}

/// No custom calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCustomCalls;

impl CustomCalls for NoCustomCalls {
    fn find(&self, _: &str) -> Option<Arc<CustomFunction>> {
        None
    }
}

/// Is told of each instruction of a run. Those of computations that are called for single elements
/// (the reducer of a sum, say) may be left out.
pub trait Observer: Send + Sync {
    /// An instruction is about to be performed.
    fn before(&self, computation: CompId, instr: InstrId);
    /// An instruction has this value.
    fn after(&self, computation: CompId, instr: InstrId, value: &Literal);
}

/// Everything around one participant's run.
#[derive(Clone)]
pub struct Context {
    /// Which participant runs.
    pub me: Participant,
    /// The number of the device on which it runs.
    pub device: usize,
    /// How many replicas run.
    pub replica_count: usize,
    /// How many partitions run.
    pub partition_count: usize,
    /// Exchange with other participants.
    pub collectives: Arc<dyn Collectives>,
    /// The host's queues.
    pub host: Arc<dyn Host>,
    /// The user's functions.
    pub custom_calls: Arc<dyn CustomCalls>,
    /// Is told of each instruction.
    pub observer: Option<Arc<dyn Observer>>,
    /// Seed of `rng`: the same seed gives the same numbers.
    pub seed: u64,
    /// What arithmetic does with subnormal numbers.
    pub subnormals: Subnormals,
    /// What the run may use.
    pub limits: Limits,
}

impl Default for Context {
    /// One replica, one partition, no host, no custom calls, seed 0; subnormal numbers are kept.
    fn default() -> Self {
        Context {
            me: Participant { replica: 0, partition: 0 },
            device: 0,
            replica_count: 1,
            partition_count: 1,
            collectives: Arc::new(Alone),
            host: Arc::new(NoHost),
            custom_calls: Arc::new(NoCustomCalls),
            observer: None,
            seed: 0,
            subnormals: Subnormals::Keep,
            limits: Limits::default(),
        }
    }
}
