//! Infeed, outfeed and channels.

use std::sync::Arc;

use helio_ir::{Code, Error, Result};
use helio_limits::Meter;

use super::carried::{Incoming, Outgoing};
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
    /// Puts the next value fed to this participant into `into`; waits for it by `waiter`. Errors:
    /// `Unavailable` if none can come, `InvalidArgument` if it has another shape; those of `waiter`.
    fn infeed(
        &self,
        me: Participant,
        into: &mut Incoming<'_, '_>,
        waiter: &Waiter<'_>,
    ) -> Result<()>;
    /// Takes a value written by this participant. Errors: `Unavailable` if nobody takes it.
    fn outfeed(&self, me: Participant, value: Outgoing<'_>) -> Result<()>;
    /// Sends a value into a channel, without waiting for its receiver. Errors: `Unavailable` if
    /// nobody takes it.
    fn send(&self, me: Participant, channel: Channel, value: Outgoing<'_>) -> Result<()>;
    /// Puts the next value from a channel into `into`; waits for it. Errors: as for `infeed`.
    fn recv(
        &self,
        me: Participant,
        channel: Channel,
        into: &mut Incoming<'_, '_>,
        waiter: &Waiter<'_>,
    ) -> Result<()>;
}

/// How a [`Host`] waits, so that the wait ends when it is in vain or the run is to stop.
pub struct Waiter<'a> {
    cx: &'a Context,
    meter: &'a Meter,
    instruction: &'a str,
}

impl<'a> Waiter<'a> {
    /// For the participant of a run that is counted on `meter`, in an instruction of this name.
    pub fn new(cx: &'a Context, meter: &'a Meter, instruction: &'a str) -> Self {
        Waiter { cx, meter, instruction }
    }

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

fn no_host(what: &str) -> Result<()> {
    Err(Error::new(Code::Unavailable, format!("{what}, but no host is connected")))
}

impl Host for NoHost {
    fn infeed(&self, _: Participant, into: &mut Incoming<'_, '_>, _: &Waiter<'_>) -> Result<()> {
        no_host(&format!("infeed of {}", into.shape()))
    }
    fn outfeed(&self, _: Participant, value: Outgoing<'_>) -> Result<()> {
        no_host(&format!("outfeed of {}", value.shape()))
    }
    fn send(&self, _: Participant, channel: Channel, value: Outgoing<'_>) -> Result<()> {
        no_host(&format!("send of {} into channel {}", value.shape(), channel.id))
    }
    fn recv(
        &self,
        _: Participant,
        channel: Channel,
        into: &mut Incoming<'_, '_>,
        _: &Waiter<'_>,
    ) -> Result<()> {
        no_host(&format!("receive of {} from channel {}", into.shape(), channel.id))
    }
}
