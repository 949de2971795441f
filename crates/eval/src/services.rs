//! What an execution shares with the world: other participants, the host, the user's functions.

use std::fmt;
use std::sync::Arc;

use helio_ir::{CompId, Error, InstrId, Literal, Result, Shape};
use helio_limits::Meter;

use crate::{Call, Limits};

/// Which participant of an execution this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Participant {
    /// The replica, from 0.
    pub replica: usize,
    /// The partition, from 0.
    pub partition: usize,
}

/// `replica 1, partition 0`
impl fmt::Display for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {}, partition {}", self.replica, self.partition)
    }
}

/// Where participants of a run meet: all that take part name the same operation and group, and each
/// comes to the rendezvous of one operation as often as the others.
#[derive(Clone, Copy, Debug)]
pub struct Rendezvous<'a> {
    /// The operation: its channel if it has one, else computation and instruction.
    pub operation: RendezvousId,
    /// The participants that meet, in the order of the group.
    pub group: &'a [Participant],
    /// The name of the instruction, for messages.
    pub instruction: &'a str,
}

/// Names a collective operation across participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RendezvousId {
    /// The `channel_id` of the operation.
    Channel(i64),
    /// The place of the operation in the module: computation and instruction.
    Place(u32, u32),
}

/// Takes what a participant has given: its position in the group, and its bytes. They may lie in that
/// participant's own memory, and it waits until this returns.
pub type Sink<'a> = dyn FnMut(usize, &[&[u8]]) -> Result<()> + 'a;

/// Lets the participants of one run exchange bytes: every collective operation is built from this.
pub trait Collectives: Send + Sync {
    /// Gives `mine` to all participants of the group, and passes to `sink` what each of them gives,
    /// this one included, in the group's order. Waits until all have come and have taken; not longer
    /// than `meter` lets the run go on.
    ///
    /// Errors: `Cancelled` and `DeadlineExceeded` as `meter` says; `Aborted` if a participant has
    /// failed; `FailedPrecondition` if one has ended its run without coming, or all wait for each
    /// other; `Unavailable` if one is lost; what `sink` reports. They say who waited for whom.
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()>;

    /// A participant's run has ended. Whoever waits for it, now or later, gets an error; and if it
    /// ended with one, all others do.
    fn leave(&self, me: Participant, outcome: Result<(), &Error>);
}

/// Collectives of an execution with a single participant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Collectives for Alone {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        _: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        if at.group == [me] {
            return sink(0, mine);
        }
        Err(Error::unimplemented(format!(
            "a collective of {} participants in an execution of one",
            at.group.len()
        )))
    }

    fn leave(&self, _: Participant, _: Result<(), &Error>) {}
}

/// A channel of `send` and `recv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Its number, the same on both ends.
    pub id: i64,
    /// Who sends and who receives, as `replica * partitions + partition`, if the program says so.
    pub pair: Option<(usize, usize)>,
    /// Whether the other end is the host; otherwise it is another (or the same) program.
    pub is_host_transfer: bool,
}

/// What is at the other end of infeed, outfeed, and channels.
pub trait Host: Send + Sync {
    /// The next value fed to this participant, of this shape; waits for it. Errors: `Unavailable`
    /// if none can come, `InvalidArgument` if it has another shape.
    fn infeed(&self, me: Participant, shape: &Shape) -> Result<Literal>;
    /// Takes a value written by this participant. Errors: `Unavailable` if nobody takes it.
    fn outfeed(&self, me: Participant, value: Literal) -> Result<()>;
    /// Sends a value into a channel, without waiting for its receiver. Errors: `Unavailable` if
    /// nobody takes it.
    fn send(&self, me: Participant, channel: Channel, value: Literal) -> Result<()>;
    /// The next value from a channel, of this shape; waits for it. Errors: as for `infeed`.
    fn recv(&self, me: Participant, channel: Channel, shape: &Shape) -> Result<Literal>;
}

/// A host that feeds nothing and takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

fn no_host<T>(what: &str) -> Result<T> {
    Err(Error::new(helio_ir::Code::Unavailable, format!("{what}, but no host is connected")))
}

impl Host for NoHost {
    fn infeed(&self, _: Participant, shape: &Shape) -> Result<Literal> {
        no_host(&format!("infeed of {shape}"))
    }
    fn outfeed(&self, _: Participant, value: Literal) -> Result<()> {
        no_host(&format!("outfeed of {}", value.shape()))
    }
    fn send(&self, _: Participant, channel: Channel, value: Literal) -> Result<()> {
        no_host(&format!("send of {} into channel {}", value.shape(), channel.id))
    }
    fn recv(&self, _: Participant, channel: Channel, shape: &Shape) -> Result<Literal> {
        no_host(&format!("receive of {shape} from channel {}", channel.id))
    }
}

/// A function of the user, which writes the results of a call.
pub type CustomFunction = dyn Fn(&mut Call<'_>) -> Result<()> + Send + Sync;

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
    /// What the run may use.
    pub limits: Limits,
}

impl Default for Context {
    /// One replica, one partition, no host, no custom calls, seed 0.
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
            limits: Limits::default(),
        }
    }
}
