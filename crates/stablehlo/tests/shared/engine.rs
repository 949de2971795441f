//! The interpreter as an engine, also of several processes, each on a thread of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use helio_eval::services::{
    Channel, Collectives, Given, Host, Participant, Rendezvous, RendezvousId, Sink, Waiter,
};
use helio_eval::{Context, Meter, evaluate};
use helio_ir::{Code, Error, Literal, Module, Result, Shape, Verified};
use helio_stablehlo::{Engine, Process};

/// How long a process waits for others: far longer than any of them computes.
const WAIT: Duration = Duration::from_secs(20);

pub struct Interpreter;

impl Engine for Interpreter {
    fn run(&self, module: &Module, arguments: Vec<Literal>) -> Result<Literal> {
        evaluate(&verified(module)?, &arguments, &Context::default())
    }

    fn run_parallel(&self, processes: Vec<Process>, infeed: Vec<Literal>) -> Result<Vec<Literal>> {
        let world = Arc::new(World::default());
        world.lock().infeed = infeed.into();
        std::thread::scope(|scope| {
            let threads: Vec<_> = processes
                .into_iter()
                .map(|process| {
                    let world = world.clone();
                    scope.spawn(move || {
                        let result = run_one(process, &world);
                        if result.is_err() {
                            world.lock().is_lost = true;
                            world.changed.notify_all();
                        }
                        result
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }
}

fn run_one(process: Process, world: &Arc<World>) -> Result<Literal> {
    let config = &process.module.config;
    let cx = Context {
        me: Participant { replica: process.replica, partition: process.partition },
        replica_count: config.replica_count.unwrap_or(1),
        partition_count: config.num_partitions.unwrap_or(1),
        collectives: world.clone(),
        host: world.clone(),
        ..Context::default()
    };
    evaluate(&verified(&process.module)?, &process.arguments, &cx)
}

pub fn verified(module: &Module) -> Result<Verified<Module>> {
    helio_ir::verify(module.clone()).map_err(Error::from)
}

/// An operation and the group that meets at it.
type Meeting = (RendezvousId, Vec<Participant>);

/// What processes share: the values they have given at each meeting, and queues.
#[derive(Default)]
struct World {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What each participant has given at each meeting, visit by visit.
    given: HashMap<(Meeting, Participant), Vec<Vec<Vec<u8>>>>,
    channels: HashMap<i64, VecDeque<Literal>>,
    infeed: VecDeque<Literal>,
    is_lost: bool,
}

impl World {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to take.
    fn wait<T>(&self, mut take: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let begin = Instant::now();
        let mut state = self.lock();
        loop {
            if let Some(value) = take(&mut state) {
                return Ok(value);
            }
            let left = WAIT.saturating_sub(begin.elapsed());
            if state.is_lost || left.is_zero() {
                return Err(Error::new(Code::Unavailable, "another process does not come"));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Collectives for World {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        _: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let meeting: Meeting = (at.operation, at.group.to_vec());
        let visit = {
            let mut state = self.lock();
            let given = state.given.entry((meeting.clone(), me)).or_default();
            given.push(mine.iter().map(|bytes| bytes.to_vec()).collect());
            given.len() - 1
        };
        self.changed.notify_all();
        let all = self.wait(|state| {
            let of = |&peer: &Participant| {
                state.given.get(&(meeting.clone(), peer))?.get(visit).cloned()
            };
            at.group.iter().map(of).collect::<Option<Vec<_>>>()
        })?;
        let slices: Vec<&[u8]> = all.iter().flatten().map(Vec::as_slice).collect();
        let ends: Vec<usize> = (1..=all.len()).map(|count| count * mine.len()).collect();
        sink(Given::new(&slices, &ends))
    }

    fn leave(&self, _: Participant, outcome: Result<(), &Error>) {
        if outcome.is_err() {
            self.lock().is_lost = true;
            self.changed.notify_all();
        }
    }
}

impl Host for World {
    fn infeed(&self, _: Participant, _: &Shape, _: &Waiter<'_>) -> Result<Literal> {
        self.wait(|state| state.infeed.pop_front())
    }

    fn outfeed(&self, _: Participant, _: Literal) -> Result<()> {
        Ok(())
    }

    fn send(&self, _: Participant, channel: Channel, value: Literal) -> Result<()> {
        self.lock().channels.entry(channel.id).or_default().push_back(value);
        self.changed.notify_all();
        Ok(())
    }

    fn recv(&self, _: Participant, channel: Channel, _: &Shape, _: &Waiter<'_>) -> Result<Literal> {
        self.wait(|state| state.channels.get_mut(&channel.id)?.pop_front())
    }
}
