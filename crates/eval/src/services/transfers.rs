//! Infeed, outfeed and channels.

use std::sync::Arc;

use helio_ir::{Code, Error, Literal, Result, Shape};
use helio_limits::Meter;

use super::{Context, Participant, Ready, Wait};

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
    /// The next value fed to this participant, of this shape; waits for it by `waiter`. Errors:
    /// `Unavailable` if none can come, `InvalidArgument` if it has another shape; those of `waiter`.
    fn infeed(&self, me: Participant, shape: &Shape, waiter: &Waiter<'_>) -> Result<Literal>;
    /// Takes a value written by this participant. Errors: `Unavailable` if nobody takes it.
    fn outfeed(&self, me: Participant, value: Literal) -> Result<()>;
    /// Sends a value into a channel, without waiting for its receiver. Errors: `Unavailable` if
    /// nobody takes it.
    fn send(&self, me: Participant, channel: Channel, value: Literal) -> Result<()>;
    /// The next value from a channel, of this shape; waits for it. Errors: as for `infeed`.
    fn recv(
        &self,
        me: Participant,
        channel: Channel,
        shape: &Shape,
        waiter: &Waiter<'_>,
    ) -> Result<Literal>;
}

/// How a [`Host`] waits, so that the wait ends when it is in vain or the run is to stop.
pub struct Waiter<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) meter: &'a Meter,
    pub(crate) instruction: &'a str,
}

impl Waiter<'_> {
    /// The participant whose number is `replica * partitions + partition`.
    pub fn participant(&self, number: usize) -> Participant {
        let partitions = self.cx.partition_count.max(1);
        Participant { replica: number / partitions, partition: number % partitions }
    }

    /// Waits until something is ready. `from` is the participant of this run that makes it so, if it is
    /// known; `is_open` whether somebody outside of the run may. Errors: those of
    /// [`Collectives::wait`](super::Collectives::wait).
    pub fn wait(
        &self,
        from: Option<Participant>,
        is_open: bool,
        ready: &Arc<dyn Ready>,
    ) -> Result<()> {
        let (me, instruction) = (self.cx.me, self.instruction);
        let wait = Wait { me, instruction, from, is_open, ready };
        self.cx.collectives.wait(&wait, self.meter)
    }
}

/// A host that feeds nothing and takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

fn no_host<T>(what: &str) -> Result<T> {
    Err(Error::new(Code::Unavailable, format!("{what}, but no host is connected")))
}

impl Host for NoHost {
    fn infeed(&self, _: Participant, shape: &Shape, _: &Waiter<'_>) -> Result<Literal> {
        no_host(&format!("infeed of {shape}"))
    }
    fn outfeed(&self, _: Participant, value: Literal) -> Result<()> {
        no_host(&format!("outfeed of {}", value.shape()))
    }
    fn send(&self, _: Participant, channel: Channel, value: Literal) -> Result<()> {
        no_host(&format!("send of {} into channel {}", value.shape(), channel.id))
    }
    fn recv(
        &self,
        _: Participant,
        channel: Channel,
        shape: &Shape,
        _: &Waiter<'_>,
    ) -> Result<Literal> {
        no_host(&format!("receive of {shape} from channel {}", channel.id))
    }
}
