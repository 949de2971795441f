//! The host's ends of infeed, outfeed and channels.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helio_eval::services::{Channel, Host, Participant, Ready, Waiter};
use helio_ir::{Code, Error, Literal, Module, Op, Result, Shape};
use helio_runtime::Queue;

type Shared = Arc<Queue<Literal>>;

/// The shapes of what the program reads from its infeed, one for each `infeed` in the order of the
/// text. (An infeed of the empty tuple reads nothing.)
pub fn infeed_shapes(module: &Module) -> Vec<Shape> {
    let instrs = module.computations().iter().flat_map(|computation| computation.instrs());
    let shapes = instrs.filter_map(|instr| match &instr.op {
        Op::Infeed(infeed) => Some(infeed.shape.clone()),
        _ => None,
    });
    shapes.filter(|shape| !matches!(shape, Shape::Tuple(parts) if parts.is_empty())).collect()
}

/// Queues of literals between a running program and its host, made when first asked for.
///
/// A program that reads from an empty queue waits until a value comes or the queue is closed.
///
/// ```
/// # fn main() -> Result<(), helio::Error> {
/// let queues = helio::HostQueues::new();
/// queues.infeed(0).push(helio::Literal::scalar(1f32)).expect("open");
/// queues.close(); // whatever else the program asks for is an error, not a wait
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct HostQueues {
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    by_key: HashMap<Key, Shared>,
    closed: Closed,
}

/// Which queues are closed, those not yet made included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Closed {
    #[default]
    None,
    Inputs,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Infeed(Participant),
    Outfeed(Participant),
    ToProgram(Participant, i64),
    FromProgram(Participant, i64),
    /// The channel, and its source and target if the program names them.
    BetweenPrograms(i64, Option<(usize, usize)>),
}

impl Key {
    fn is_closed(self, closed: Closed) -> bool {
        match closed {
            Closed::None => false,
            Closed::Inputs => matches!(self, Key::Infeed(_) | Key::ToProgram(..)),
            Closed::All => true,
        }
    }
}

/// What a participant waits for: that a queue has a value, or never will.
struct Inbox(Shared);

impl Ready for Inbox {
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn wait(&self, at_most: Duration) -> bool {
        self.0.wait_ready(at_most)
    }
}

impl HostQueues {
    /// Open, empty queues.
    pub fn new() -> Self {
        Self::default()
    }

    /// What `infeed` of a participant reads; a number is a replica's first partition.
    pub fn infeed(&self, of: impl Into<Participant>) -> Shared {
        self.queue(Key::Infeed(of.into()))
    }

    /// What `outfeed` of a participant writes.
    pub fn outfeed(&self, of: impl Into<Participant>) -> Shared {
        self.queue(Key::Outfeed(of.into()))
    }

    /// What `recv` of a participant reads from a host channel.
    pub fn to_program(&self, of: impl Into<Participant>, channel: i64) -> Shared {
        self.queue(Key::ToProgram(of.into(), channel))
    }

    /// What `send` of a participant writes to a host channel.
    pub fn from_program(&self, of: impl Into<Participant>, channel: i64) -> Shared {
        self.queue(Key::FromProgram(of.into(), channel))
    }

    /// Closes all queues, those not yet made, too.
    pub fn close(&self) {
        self.close_some(Closed::All);
    }

    /// Closes what programs read from the host: what is not there yet will not come.
    pub fn close_inputs(&self) {
        self.close_some(Closed::Inputs);
    }

    fn close_some(&self, closed: Closed) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if queues.closed != Closed::All {
            queues.closed = closed;
        }
        let to_close = queues.by_key.iter().filter(|(key, _)| key.is_closed(closed));
        to_close.for_each(|(_, queue)| queue.close());
    }

    fn queue(&self, key: Key) -> Shared {
        self.queue_and_state(key).0
    }

    /// The queue, and whether inputs are closed.
    fn queue_and_state(&self, key: Key) -> (Shared, bool) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = key.is_closed(queues.closed);
        let make = || {
            let queue = Queue::unbounded();
            if closed {
                queue.close();
            }
            Arc::new(queue)
        };
        let inputs_closed = queues.closed != Closed::None;
        (queues.by_key.entry(key).or_insert_with(make).clone(), inputs_closed)
    }

    fn take(&self, key: Key, shape: &Shape, what: &str, waiter: &Waiter<'_>) -> Result<Literal> {
        let (queue, inputs_closed) = self.queue_and_state(key);
        // Who is named by a channel's pair belongs to the program; without one, another program may
        // send, unless the host has said that nothing comes from outside.
        let (from, is_open) = match key {
            Key::BetweenPrograms(_, Some((source, _))) => (Some(waiter.participant(source)), false),
            Key::BetweenPrograms(_, None) => (None, !inputs_closed),
            _ => (None, true),
        };
        let ready: Arc<dyn Ready> = Arc::new(Inbox(queue.clone()));
        let value = loop {
            if let Some(value) = queue.try_pop() {
                break value;
            }
            if queue.is_closed() {
                let detail = format!("{what}: nothing is there and nothing will come");
                return Err(Error::new(Code::Unavailable, detail));
            }
            waiter.wait(from, is_open, &ready).map_err(|e| e.context(what))?;
        };
        if !value.shape().same(shape) {
            let found = value.shape();
            return Err(Error::invalid(format!("{what}: expected {shape}, found {found}")));
        }
        value.ensure_whole().map_err(|e| e.context(what))?;
        Ok(value)
    }

    fn give(&self, key: Key, value: Literal, what: &str) -> Result<()> {
        let closed = |closed| Error::new(Code::Unavailable, format!("{what}: {closed}"));
        self.queue(key).push(value).map_err(closed)
    }
}

impl Host for HostQueues {
    fn infeed(&self, me: Participant, shape: &Shape, waiter: &Waiter<'_>) -> Result<Literal> {
        self.take(Key::Infeed(me), shape, "infeed", waiter)
    }

    fn outfeed(&self, me: Participant, value: Literal) -> Result<()> {
        self.give(Key::Outfeed(me), value, "outfeed")
    }

    fn send(&self, me: Participant, channel: Channel, value: Literal) -> Result<()> {
        let key = if channel.is_host_transfer {
            Key::FromProgram(me, channel.id)
        } else {
            Key::BetweenPrograms(channel.id, channel.pair)
        };
        self.give(key, value, &format!("send into channel {}", channel.id))
    }

    fn recv(
        &self,
        me: Participant,
        channel: Channel,
        shape: &Shape,
        waiter: &Waiter<'_>,
    ) -> Result<Literal> {
        let key = if channel.is_host_transfer {
            Key::ToProgram(me, channel.id)
        } else {
            Key::BetweenPrograms(channel.id, channel.pair)
        };
        self.take(key, shape, &format!("receive from channel {}", channel.id), waiter)
    }
}
