//! The host's ends of infeed, outfeed and channels.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helio_eval::services::{Channel, Host, Incoming, Outgoing, Participant, Ready, Waiter};
use helio_ir::{Code, Error, Literal, Module, Op, Result, Shape};
use helio_runtime::Queue;

type Shared = Arc<Queue<Literal>>;

/// The shapes of what the program reads from its infeed, one for each `infeed` in the order of the
/// text. (An infeed of the empty tuple reads nothing.)
///
/// ```
/// let text = "ENTRY e {
///     t = token[] after-all()  fed = (f32[2], token[]) infeed(t)
///     ROOT x = f32[2] get-tuple-element(fed), index=0
/// }";
/// let shapes = helio::infeed_shapes(&helio::parse(text)?);
/// assert_eq!(shapes, [helio::Shape::array(helio::ElementType::F32, [2])?]);
/// # Ok::<(), helio::Errors>(())
/// ```
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
    by_key: HashMap<Key, Arc<Line>>,
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

/// A queue, and the memory of what was last taken from it: programs that send to each other use it again.
#[derive(Debug)]
struct Line {
    queue: Shared,
    spare: Mutex<Option<Literal>>,
}

impl Line {
    fn take_spare(&self) -> Option<Literal> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep_spare(&self, value: Option<Literal>) {
        if let Some(value) = value {
            *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
    }
}

/// What a participant waits for: that the queue has a value, or never will.
impl Ready for Line {
    fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    fn wait(&self, at_most: Duration) -> bool {
        self.queue.wait_ready(at_most)
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

    /// Puts a value that has come from a participant in another process into a channel between
    /// participants. Errors: `Unavailable` if it is closed.
    pub fn deliver(&self, channel: Channel, value: Literal) -> Result<()> {
        let key = Key::BetweenPrograms(channel.id, channel.pair);
        self.give(key, Outgoing::literal(value), format_args!("send into channel {}", channel.id))
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
        to_close.for_each(|(_, line)| line.queue.close());
    }

    fn queue(&self, key: Key) -> Shared {
        self.line(key).0.queue.clone()
    }

    /// The queue, and whether inputs are closed.
    fn line(&self, key: Key) -> (Arc<Line>, bool) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = key.is_closed(queues.closed);
        let make = || {
            let queue = Queue::unbounded();
            if closed {
                queue.close();
            }
            Arc::new(Line { queue: Arc::new(queue), spare: Mutex::new(None) })
        };
        let inputs_closed = queues.closed != Closed::None;
        (queues.by_key.entry(key).or_insert_with(make).clone(), inputs_closed)
    }

    fn take(
        &self,
        key: Key,
        into: &mut Incoming<'_, '_>,
        what: fmt::Arguments<'_>,
        waiter: &Waiter<'_>,
    ) -> Result<()> {
        let (line, inputs_closed) = self.line(key);
        // Who is named by a channel's pair belongs to the program; without one, another program may
        // send, unless the host has said that nothing comes from outside.
        let (from, is_open) = match key {
            Key::BetweenPrograms(_, Some((source, _))) => (Some(waiter.participant(source)), false),
            Key::BetweenPrograms(_, None) => (None, !inputs_closed),
            _ => (None, true),
        };
        let ready: Arc<dyn Ready> = line.clone();
        let value = loop {
            if let Some(value) = line.queue.try_pop() {
                break value;
            }
            if line.queue.is_closed() {
                let detail = format!("{what}: nothing is there and nothing will come");
                return Err(Error::new(Code::Unavailable, detail));
            }
            waiter.wait(from, is_open, &ready).map_err(|e| e.context(what))?;
        };
        let rest = into.put(value).map_err(|e| e.context(what))?;
        if matches!(key, Key::BetweenPrograms(..)) {
            line.keep_spare(rest);
        }
        Ok(())
    }

    fn give(&self, key: Key, value: Outgoing<'_>, what: fmt::Arguments<'_>) -> Result<()> {
        let line = self.line(key).0;
        let value = match line.take_spare() {
            Some(spare) => value.into_literal_in(spare),
            None => value.into_literal(),
        };
        let closed = |closed| Error::new(Code::Unavailable, format!("{what}: {closed}"));
        line.queue.push(value?).map_err(closed)
    }
}

impl Host for HostQueues {
    fn infeed(
        &self,
        me: Participant,
        into: &mut Incoming<'_, '_>,
        waiter: &Waiter<'_>,
    ) -> Result<()> {
        self.take(Key::Infeed(me), into, format_args!("infeed"), waiter)
    }

    fn outfeed(&self, me: Participant, value: Outgoing<'_>) -> Result<()> {
        self.give(Key::Outfeed(me), value, format_args!("outfeed"))
    }

    fn send(&self, me: Participant, channel: Channel, value: Outgoing<'_>) -> Result<()> {
        let key = if channel.is_host_transfer {
            Key::FromProgram(me, channel.id)
        } else {
            Key::BetweenPrograms(channel.id, channel.pair)
        };
        self.give(key, value, format_args!("send into channel {}", channel.id))
    }

    fn recv(
        &self,
        me: Participant,
        channel: Channel,
        into: &mut Incoming<'_, '_>,
        waiter: &Waiter<'_>,
    ) -> Result<()> {
        let key = if channel.is_host_transfer {
            Key::ToProgram(me, channel.id)
        } else {
            Key::BetweenPrograms(channel.id, channel.pair)
        };
        self.take(key, into, format_args!("receive from channel {}", channel.id), waiter)
    }
}

#[cfg(test)]
mod tests {
    use helio_eval::Context;
    use helio_runtime::Block;
    use helio_runtime::program::Argument;

    use super::*;
    use crate::{CompileOptions, compile};

    /// A host that writes down where programs have what they give and get; what it feeds counts up.
    #[derive(Default)]
    struct Watching(Mutex<Vec<usize>>);

    impl Watching {
        fn given(&self, value: &Outgoing<'_>) -> Result<()> {
            let leaves = value.leaves().expect("memory, not a literal");
            self.0.lock().unwrap().extend(leaves.iter().map(|leaf| leaf.as_ptr().addr()));
            Ok(())
        }

        fn fed(&self, into: &mut Incoming<'_, '_>) -> Result<()> {
            let leaves = into.leaves().expect("memory, not a literal");
            let mut seen = self.0.lock().unwrap();
            for leaf in leaves {
                leaf.fill(seen.len() as u8);
                seen.push(leaf.as_ptr().addr());
            }
            Ok(())
        }
    }

    impl Host for Watching {
        fn infeed(
            &self,
            _: Participant,
            into: &mut Incoming<'_, '_>,
            _: &Waiter<'_>,
        ) -> Result<()> {
            self.fed(into)
        }

        fn outfeed(&self, _: Participant, value: Outgoing<'_>) -> Result<()> {
            self.given(&value)
        }

        fn send(&self, _: Participant, _: Channel, value: Outgoing<'_>) -> Result<()> {
            self.given(&value)
        }

        fn recv(
            &self,
            _: Participant,
            _: Channel,
            into: &mut Incoming<'_, '_>,
            _: &Waiter<'_>,
        ) -> Result<()> {
            self.fed(into)
        }
    }

    #[test]
    fn transfers_are_done_where_compiled_programs_have_their_arrays() {
        let text = "ENTRY e { x = u8[64] parameter(0)
          t = token[] after-all()
          o = token[] outfeed(x, t), outfeed_shape=u8[64]
          s = (u8[64], u32[], token[]) send(x, o), channel_id=1
          sd = token[] send-done(s), channel_id=1
          i = (u8[64], token[]) infeed(sd)
          y = u8[64] get-tuple-element(i), index=0
          t2 = token[] get-tuple-element(i), index=1
          r = (u8[64], u32[], token[]) recv(t2), channel_id=2
          rd = (u8[64], token[]) recv-done(r), channel_id=2
          z = u8[64] get-tuple-element(rd), index=0
          ROOT both = (u8[64], u8[64]) tuple(y, z) }";
        let module = crate::parse(text).unwrap();
        let program = compile(module, &CompileOptions::default()).unwrap();
        assert_eq!(program.interpreted(), []);
        let compiled = program.compiled.as_ref().expect("compiled");
        let host = Arc::new(Watching::default());
        let cx = Context { host: host.clone(), ..Context::default() };
        let mut x = program.client.memory().allocate(64).unwrap();
        x.as_mut_slice().fill(9);
        let results =
            compiled.execute(vec![Argument::Lent(x.as_slice())], &cx, usize::MAX, None).unwrap();
        let at = |block: &Block| block.as_slice().as_ptr().addr();
        let [y, z] = &results[..] else { panic!("two results") };
        assert_eq!(*host.0.lock().unwrap(), [at(&x), at(&x), at(y), at(z)]);
        assert_eq!((y.as_slice()[63], z.as_slice()[63]), (2, 3));
    }

    #[test]
    fn values_between_programs_use_the_same_memory_again() {
        let (queues, me) = (HostQueues::new(), Participant::from(0));
        let channel = Channel { id: 1, pair: None, is_host_transfer: false };
        let line = queues.line(Key::BetweenPrograms(1, None)).0;
        let shape = helio_ir::text::parse_shape("(f32[4], s8[3])").unwrap();
        let mut seen = Vec::new();
        for round in 0..3u8 {
            let (x, y) = ([round; 16], [round + 1; 3]);
            queues.send(me, channel, Outgoing::memory(&shape, &[&x, &y])).unwrap();
            let value = line.queue.try_pop().unwrap();
            let bytes: Vec<&[u8]> = value
                .leaves()
                .iter()
                .map(|leaf| leaf.as_array().unwrap().as_bytes().unwrap())
                .collect();
            assert_eq!(bytes, [&x[..], &y[..]]);
            seen.push(bytes.iter().map(|bytes| bytes.as_ptr().addr()).collect::<Vec<_>>());
            line.queue.push(value).unwrap();
            let (mut to_x, mut to_y) = ([0; 16], [0; 3]);
            let cx = Context::default();
            let meter = helio_eval::Meter::new(cx.limits.clone());
            let waiter = Waiter::new(&cx, &meter, "recv");
            let mut leaves = [&mut to_x[..], &mut to_y[..]];
            let mut into = Incoming::memory(&shape, &mut leaves);
            queues.recv(me, channel, &mut into, &waiter).unwrap();
            assert_eq!((to_x, to_y), (x, y));
        }
        assert!(seen.iter().all(|places| *places == seen[0]));
    }
}
