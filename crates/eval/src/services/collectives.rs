//! Exchange among the participants of a run, and waits for each other.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use helio_ir::{BinaryOp, Code, ElementType, Error, Literal, Result};
use helio_limits::Meter;

use super::{Channel, Participant};

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
    /// What the exchange keeps for the next one of this participant at this place: the caller has one
    /// for each, or a new one each time.
    pub memo: &'a Memo,
    /// Who reads which slices: means of transport carry no others.
    pub reads: Reads<'a>,
}

/// Which slices of those that participants give each other reads: positions are those of the group.
/// All participants of a rendezvous say the same, each time.
#[derive(Clone, Copy)]
pub enum Reads<'a> {
    /// Everybody reads all that all give.
    All,
    /// `f(from, to, slice)`: whether the participant at `to` reads this slice of the one at `from`.
    These(&'a dyn Fn(usize, usize, usize) -> bool),
}

impl Reads<'_> {
    /// Whether the participant at `to` reads this slice of the one at `from`.
    pub fn includes(&self, from: usize, to: usize, slice: usize) -> bool {
        match self {
            Reads::All => true,
            Reads::These(reads) => reads(from, to, slice),
        }
    }
}

impl fmt::Debug for Reads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reads::All => "All",
            Reads::These(_) => "These",
        })
    }
}

/// What an implementation of [`Collectives`] keeps of a rendezvous from one exchange to the next.
#[derive(Debug, Default)]
pub struct Memo(OnceLock<Box<dyn Any + Send + Sync>>);

impl Memo {
    /// What has been kept, if it is of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// Keeps a value, unless there is one.
    pub fn keep<T: Any + Send + Sync>(&self, value: T) {
        // Whatever was there first serves as well.
        let _ = self.0.set(Box::new(value));
    }
}

/// Names a collective operation across participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RendezvousId {
    /// The `channel_id` of the operation.
    Channel(i64),
    /// The place of the operation in the module: computation and instruction.
    Place(u32, u32),
}

/// What the participants of a group give.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    slices: &'a [&'a [u8]],
    ends: &'a [usize],
}

impl<'a> Given<'a> {
    /// The slices of all in the group's order, and for each participant where its slices end.
    pub fn new(slices: &'a [&'a [u8]], ends: &'a [usize]) -> Self {
        Given { slices, ends }
    }

    /// How many participants there are.
    pub fn participants(&self) -> usize {
        self.ends.len()
    }

    /// The slices of the participant at this position of the group; none if there is no such.
    pub fn of(&self, position: usize) -> &'a [&'a [u8]] {
        let end = self.ends.get(position).copied().unwrap_or(0);
        let begin = position.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.slices.get(begin.unwrap_or(0)..end).unwrap_or_default()
    }
}

/// Takes what the participants have given. It may lie in their own memory, and they wait until this
/// returns.
pub type Sink<'a> = dyn FnMut(Given<'_>) -> Result<()> + 'a;

/// The same, which also gets the room that each participant of the group lends to this one.
pub type SinkWithRoom<'a> = dyn FnMut(Given<'_>, &mut [&mut [u8]]) -> Result<()> + 'a;

/// Something that a participant waits for.
pub trait Ready: Send + Sync {
    /// Whether it is there.
    fn is_ready(&self) -> bool;
    /// Waits until it is there, but not longer than this; whether it is.
    fn wait(&self, at_most: Duration) -> bool;
    /// The participants that have yet to do something for it, where these are others than the one that
    /// [`Wait::from`] names.
    fn missing(&self) -> Option<Vec<Participant>> {
        None
    }
    /// Where other processes run those it waits for: what is known of the waits of the first of these, of
    /// the one for whom that one waits, and so on, for messages.
    fn elsewhere(&self) -> Option<Vec<String>> {
        None
    }
}

/// A wait for something other than an exchange.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    /// Who waits.
    pub me: Participant,
    /// In which instruction.
    pub instruction: &'a str,
    /// The participant of this run that has to do something for it, if it is known.
    pub from: Option<Participant>,
    /// Whether somebody outside of the run may do it.
    pub is_open: bool,
    /// What is waited for.
    pub ready: &'a Arc<dyn Ready>,
}

/// A participant that sleeps until others have done something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    /// Who waits.
    pub who: Participant,
    /// In which instruction.
    pub instruction: String,
    /// For whom: the first of those who have yet to do something before the wait ends; none if it is not
    /// known who they are.
    pub from: Option<Participant>,
}

/// A reduction of numbers, which a means of transport may know how to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// What becomes of two numbers.
    pub op: BinaryOp,
    /// The type of the numbers.
    pub element: ElementType,
}

/// How long a participant waits before it asks whether its run is to stop.
pub(super) const NAP: Duration = Duration::from_millis(5);

/// Lets the participants of one run exchange bytes: every collective operation is built from this.
pub trait Collectives: Send + Sync {
    /// Gives `mine` to all participants of the group, and passes to `sink`, in one call, what all of
    /// them give, this one included. Waits until all have come and have taken, or at least those from
    /// whom it reads and those who read from it; not longer than `meter` lets the run go on, nor than
    /// its [`max_wait`](Meter::max_wait) without anybody moving. Slices that this participant does not
    /// read ([`Rendezvous::reads`]) may be empty.
    ///
    /// Errors: `Cancelled` and `DeadlineExceeded` as `meter` says; `Aborted` if a participant has
    /// failed; `FailedPrecondition` if one has ended its run without coming, or participants wait for
    /// each other; `Unavailable` if one is lost; what `sink` reports. They say who waited for whom.
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()>;

    /// [`Collectives::exchange`] where participants also lend each other room to write to, if they are
    /// where they can; whether they are, which is the same for all of a group. `room` is a slice for each
    /// of the group, in order; `sink` writes to all of what the participants lend to this one. Errors: as
    /// for [`Collectives::exchange`].
    fn exchange_with_room(
        &self,
        _at: &Rendezvous<'_>,
        _me: Participant,
        _mine: &[&[u8]],
        _room: &mut [&mut [u8]],
        _meter: &Meter,
        _sink: &mut SinkWithRoom<'_>,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Folds arrays over all participants of the group, each its own way, in an order that is not that of
    /// the group, if the user has allowed this and the means of transport knows how; whether it has.
    /// `mine` and `outputs` have an array for each fold, of the same sizes for all participants. Whether
    /// all get the same bits is up to the means of transport. Errors: as for [`Collectives::exchange`].
    fn fold(
        &self,
        _at: &Rendezvous<'_>,
        _me: Participant,
        _folds: &[Fold],
        _mine: &[&[u8]],
        _outputs: &mut [&mut [u8]],
        _meter: &Meter,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Waits until something is ready that is no exchange. Errors: as for
    /// [`Collectives::exchange`].
    fn wait(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        wait_alone(wait, meter)
    }

    /// Whether the receiver of a channel is a participant of this run that runs in another process:
    /// [`Collectives::send`] takes what is sent there.
    fn is_elsewhere(&self, _: Channel) -> bool {
        false
    }

    /// Takes a value on its way to a participant in another process. Errors: `Unavailable` if nothing
    /// carries it.
    fn send(&self, _: Channel, _: Literal) -> Result<()> {
        Err(Error::new(Code::Unavailable, "nothing carries values to other processes"))
    }

    /// A participant has sent or received something outside of an exchange: it moves.
    fn moved(&self, _: Participant) {}

    /// A participant's run has ended. Whoever waits for it, now or later, gets an error; and if it
    /// ended with one, all others do.
    fn leave(&self, me: Participant, outcome: Result<(), &Error>);

    /// `who`, the first for whom it waits, the first for whom that one waits, and so on: those who sleep at
    /// this moment, as far as they run in this process. None if `who` does not sleep, or may be woken by
    /// somebody outside of the run.
    fn sleepers(&self, _who: Participant) -> Vec<Sleeper> {
        Vec::new()
    }

    /// Why all participants are to stop, if they are.
    fn failure(&self) -> Option<Error> {
        None
    }
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
            return sink(Given::new(mine, &[mine.len()]));
        }
        Err(Error::unimplemented(format!(
            "a collective of {} participants in an execution of one",
            at.group.len()
        )))
    }

    fn leave(&self, _: Participant, _: Result<(), &Error>) {}
}

/// A wait for the outside only.
fn wait_alone(wait: &Wait<'_>, meter: &Meter) -> Result<()> {
    let begin = Instant::now();
    while !wait.ready.is_ready() {
        if !wait.is_open {
            let detail = "nothing is there and nothing will come";
            return Err(Error::new(Code::Unavailable, detail));
        }
        meter.check().map_err(Error::from)?;
        let (waited, most) = (begin.elapsed(), meter.max_wait());
        if waited >= most {
            return Err(waited_too_long("this program waits", most));
        }
        wait.ready.wait(NAP.min(most - waited));
    }
    Ok(())
}

/// The error that a wait has taken so long without anybody moving.
pub fn waited_too_long(who: impl fmt::Display, most: Duration) -> Error {
    let detail = format!(
        "{who}, and nobody has moved for {most:?}\n  help: Limits::max_wait (--max-wait) says how long \
         that may be"
    );
    Error::new(Code::DeadlineExceeded, detail)
}
