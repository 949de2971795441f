//! What carries messages among processes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use helio::services::Fold;
use helio::{Block, Code, Error, Memory, Result};

/// A message from one process to another.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it says: some hundred bytes, which are copied.
    pub head: Vec<u8>,
    /// What it brings, which is sent from where it lies.
    pub body: Option<Arc<Block>>,
}

/// A message that has come whole, whose body lies in the memory that [`Wire::poll`] was given; or why
/// nothing comes from that process any more.
pub type Arrival = Result<Message>;

/// Carries messages among processes, which have numbers from 0. Those from one process to another
/// arrive in the order in which they were posted. Nothing here waits.
pub trait Wire: Send {
    /// The number of this process.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn size(&self) -> usize;

    /// Begins to send a message. Errors: `Unavailable` if the other process cannot be reached.
    fn post(&mut self, to: usize, message: &Message) -> Result<()>;

    /// Moves what is under way. What has come, and from whom. Errors: `Unavailable` if nothing can be
    /// received any more from anybody; `ResourceExhausted`.
    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>>;

    /// Whether all that was posted has left this process.
    fn has_sent(&self) -> bool;

    /// Whether it can do a reduction over all processes itself.
    fn can_fold(&self, _: Fold) -> bool {
        false
    }

    /// Begins a reduction over all processes, of a block of each; all begin the same ones in the same
    /// order. Errors: `Unimplemented` unless [`Wire::can_fold`] says that it can;
    /// `FailedPrecondition` if one is under way.
    fn begin_fold(&mut self, _: Fold, _: Block) -> Result<()> {
        Err(Error::unimplemented("this wire does no reductions"))
    }

    /// The result of the reduction that is under way, if it is there. Errors: `Unavailable`.
    fn folded(&mut self) -> Result<Option<Arc<Block>>> {
        Ok(None)
    }

    /// Whether all processes have to end the connection together, as MPI demands; otherwise what a
    /// process has sent arrives although it has ended.
    fn ends_together(&self) -> bool {
        true
    }

    /// Ends the connection. With `in_order`, all processes do so and have received all that was sent;
    /// it may wait for them. Otherwise, some may be gone, and nothing is waited for.
    fn close(self: Box<Self>, in_order: bool);
}

/// A wire for each of so many threads that stand for processes: for tests of what is above wires.
pub fn among_threads(count: usize) -> Vec<ThreadWire> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let wire = |(rank, receiver)| ThreadWire { rank, senders: senders.clone(), receiver };
    receivers.into_iter().enumerate().map(wire).collect()
}

/// One end of [`among_threads`].
pub struct ThreadWire {
    rank: usize,
    senders: Vec<Sender<(usize, Message)>>,
    receiver: Receiver<(usize, Message)>,
}

impl Wire for ThreadWire {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.senders.len()
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        let sender = self.senders.get(to).ok_or_else(|| no_process(to))?;
        // Who has ended hears nothing; that shows in its silence, as with any other wire.
        let _ = sender.send((self.rank, message.clone()));
        Ok(())
    }

    fn poll(&mut self, _: &Memory) -> Result<Option<(usize, Arrival)>> {
        match self.receiver.try_recv() {
            Ok((from, message)) => Ok(Some((from, Ok(message)))),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                Err(Error::new(Code::Unavailable, "all other processes are gone"))
            }
        }
    }

    fn has_sent(&self) -> bool {
        true
    }

    fn close(self: Box<Self>, _: bool) {}
}

/// The error that there is no such process.
pub(crate) fn no_process(rank: usize) -> Error {
    Error::new(Code::NotFound, format!("there is no process {rank}"))
}

/// A wire between tests and another one that delays, and can be cut.
pub struct Faulty<W> {
    inner: W,
    /// How many more messages it posts before it is cut: then nothing goes either way.
    posts_left: usize,
    /// How many polls pass before a message that has come is handed out.
    delay_polls: usize,
    late: VecDeque<(usize, (usize, Arrival))>,
    polls: usize,
}

impl<W: Wire> Faulty<W> {
    /// A wire that is cut after so many posts, and delays each message by so many polls.
    pub fn new(inner: W, posts: usize, delay_polls: usize) -> Self {
        Faulty { inner, posts_left: posts, delay_polls, late: VecDeque::new(), polls: 0 }
    }
}

impl<W: Wire> Wire for Faulty<W> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        match self.posts_left.checked_sub(1) {
            None => Ok(()),
            Some(left) => {
                self.posts_left = left;
                self.inner.post(to, message)
            }
        }
    }

    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>> {
        self.polls += 1;
        if let Some(message) = self.inner.poll(memory)? {
            self.late.push_back((self.polls + self.delay_polls, message));
        }
        let is_due = self.late.front().is_some_and(|(due, _)| *due <= self.polls);
        let next = if is_due && self.posts_left > 0 { self.late.pop_front() } else { None };
        Ok(next.map(|(_, message)| message))
    }

    fn has_sent(&self) -> bool {
        self.inner.has_sent()
    }

    fn close(self: Box<Self>, in_order: bool) {
        Box::new(self.inner).close(in_order);
    }
}
