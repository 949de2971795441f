//! The processes that run programs together, and what comes from the others.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use helio::{
    Code, CollectivesLayer, DeviceAssignment, Error, HostQueues, Memory, Participant, Result,
    RunOptions,
};

use crate::distributed::Distributed;
use crate::farewell::Gone;
use crate::head::{Head, RunId};
use crate::reduce::Folds;
use crate::run::{Begun, News, Places, Run};
use crate::wire::{Message, Wire};

/// How long a participant looks for messages again and again before it sleeps between looks.
const SPIN: Duration = Duration::from_millis(1);

/// How long one sleeps between two looks.
pub(crate) const NAP: Duration = Duration::from_micros(100);

/// How often a process looks for messages while its participants compute.
pub(crate) const WATCH: Duration = Duration::from_millis(5);

/// How processes watch each other, and what they may do.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long another process may be silent before it counts as lost. Each says at least every
    /// twentieth of this that it lives, whatever its participants do.
    pub silence: Duration,
    /// Whether large all-reduces over all processes, one participant in each, may be MPI's own, in whatever
    /// order that is: results may then differ from those of threads, and from run to run, by rounding.
    /// The same in all processes.
    pub own_reduction: bool,
}

helio::unstable::ir::with_methods! { Options {
    with_silence(silence: Duration);
    with_own_reduction(own_reduction: bool);
} }

impl Default for Options {
    /// Ten seconds; the order of reductions is that of the group.
    fn default() -> Self {
        Options { silence: Duration::from_secs(10), own_reduction: false }
    }
}

/// The processes that run programs together, as one of them sees them.
///
/// All do the same in the same order: they begin the same runs, and call the methods that say so
/// together. A message of another process is looked for by whoever waits for one, and otherwise by a
/// thread that also says every now and then that this process lives.
pub struct Processes {
    pub(crate) shared: Arc<Shared>,
    pub(crate) watch: Option<JoinHandle<()>>,
}

/// What participants and the watching thread share.
pub(crate) struct Shared {
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) memory: Memory,
    /// How often participants of this process have moved.
    pub(crate) moves: AtomicU64,
    pub(crate) options: Options,
    core: Mutex<Core>,
    /// Held by who tells runs what has happened, so that they hear it in order.
    telling: Mutex<()>,
    /// Whether there is anything to tell.
    has_news: AtomicBool,
    pub(crate) is_ending: AtomicBool,
}

pub(crate) struct Core {
    pub(crate) wire: Option<Box<dyn Wire>>,
    rank: usize,
    pub(crate) runs: HashMap<RunId, Run>,
    /// How many runs have begun here in which these processes have a part.
    begun: HashMap<u64, u64>,
    pub(crate) next_wait: u64,
    pub(crate) peers: Vec<Peer>,
    /// What other processes have given outside of runs, by its number and theirs.
    pub(crate) parts: HashMap<(u64, usize), Message>,
    pub(crate) next_part: u64,
    /// Reductions of the wire.
    pub(crate) folds: Folds,
    /// Whether this process has said its last message.
    pub(crate) has_said_bye: bool,
}

/// Another process.
pub(crate) struct Peer {
    heard: Instant,
    /// How often its participants have moved, as it last said.
    moves: u64,
    pub(crate) gone: Option<Gone>,
}

/// The participants, by number, of `count` that run in a process: as many in each, or one more or less.
pub(crate) fn participants_of(rank: usize, size: usize, count: usize) -> Range<usize> {
    rank * count / size..(rank + 1) * count / size
}

/// The process that runs a participant, by number, of `count`.
pub(crate) fn process_of(participant: usize, size: usize, count: usize) -> usize {
    ((participant + 1) * size - 1) / count
}

impl Processes {
    /// Those that a wire connects. Errors: the system has no thread left.
    pub fn new(wire: Box<dyn Wire>, options: Options) -> Result<Self> {
        let (rank, size) = (wire.rank(), wire.size());
        let peer = || Peer { heard: Instant::now(), moves: 0, gone: None };
        let core = Core {
            wire: Some(wire),
            rank,
            runs: HashMap::new(),
            begun: HashMap::new(),
            next_wait: 0,
            peers: (0..size).map(|_| peer()).collect(),
            parts: HashMap::new(),
            next_part: 0,
            folds: Folds::default(),
            has_said_bye: false,
        };
        let shared = Arc::new(Shared {
            rank,
            size,
            memory: Memory::new(),
            moves: AtomicU64::new(0),
            options,
            core: Mutex::new(core),
            telling: Mutex::default(),
            has_news: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        });
        let watched = shared.clone();
        let watch = thread::Builder::new().name("helio-messages".to_owned());
        let watch = watch.spawn(move || watched.watch()).map_err(|e| {
            Error::exhausted(format!("no thread that watches for messages of other processes: {e}"))
        })?;
        Ok(Processes { shared, watch: Some(watch) })
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.shared.rank
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.shared.size
    }

    /// Devices for the participants that this process runs of a program of so many replicas and
    /// partitions: in order of their numbers, the first ones in the first process, as many in each (or
    /// one more or less). Errors: as for [`DeviceAssignment::part`]; `InvalidArgument` if there are fewer
    /// participants than processes.
    pub fn assign(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
        let (rank, size) = (self.rank(), self.size());
        let count = DeviceAssignment::iota(replicas, partitions)?.participants();
        if count < size {
            return Err(Error::invalid(format!(
                "{replicas} replicas of {partitions} partitions in {size} processes: each needs at \
                 least one of them"
            )));
        }
        DeviceAssignment::part(replicas, partitions, participants_of(rank, size, count))
    }

    /// Has the participants of runs with these options exchange data with those of the other processes.
    /// `assignment` is that of the program, as [`Processes::assign`] gives it.
    pub fn connect(&self, options: &mut RunOptions, assignment: &DeviceAssignment) {
        let count = assignment.participants();
        let places = (0..count).map(|number| process_of(number, self.size(), count)).collect();
        self.connect_run(options, assignment, Places::new(places));
    }

    /// The same for participants that run anywhere: `places` has the process of each, by number. Only
    /// processes that run some take part, and only these have to begin the same runs in the same order.
    /// Errors: `InvalidArgument` unless the assignment has here what is said to run here.
    pub fn connect_placed(
        &self,
        options: &mut RunOptions,
        assignment: &DeviceAssignment,
        places: Vec<usize>,
    ) -> Result<()> {
        let places = Places::new(places);
        places.check(assignment, self.rank(), self.size())?;
        self.connect_run(options, assignment, places);
        Ok(())
    }

    fn connect_run(&self, options: &mut RunOptions, assignment: &DeviceAssignment, places: Places) {
        let host = options.host.get_or_insert_with(|| Arc::new(HostQueues::new())).clone();
        let (shared, assignment) = (self.shared.clone(), Arc::new(assignment.clone()));
        let places = Arc::new(places);
        options.collectives = Some(CollectivesLayer::new(move |collectives| {
            let (host, assignment, places) = (host.clone(), assignment.clone(), places.clone());
            let begun = Begun { collectives, host, assignment, places, deeds: Arc::default() };
            Arc::new(Distributed::new(shared.clone(), begun))
        }));
    }

    /// The first process that is gone without having ended in order, if one is, and what has become of
    /// it: it is lost, or has given up.
    pub fn lost(&self) -> Option<(usize, String)> {
        let core = self.shared.lock();
        core.others().find_map(|(rank, peer)| match &peer.gone {
            None | Some(Gone::Ended) => None,
            Some(gone) => Some((rank, gone.verb().to_owned())),
        })
    }
}

impl Shared {
    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run here; by what all processes know it.
    pub(crate) fn begin(&self, begun: Begun) -> RunId {
        let mut core = self.lock();
        let processes = begun.places.id;
        let next = core.begun.entry(processes).or_default();
        let id = RunId { processes, number: *next };
        *next += 1;
        core.runs.entry(id).or_default().begun = Some(begun);
        let gone = core.peers.iter().enumerate();
        let gone: Vec<_> = gone.filter_map(|(rank, p)| Some((rank, p.gone.clone()?))).collect();
        gone.into_iter().for_each(|(rank, gone)| core.end_participants(rank, &gone));
        drop(core);
        self.has_news.store(true, Ordering::SeqCst);
        id
    }

    /// Takes what has come from other processes, unless somebody does so at the moment. Runs are told
    /// by [`Shared::tell`].
    pub(crate) fn look(&self) {
        let mut core = match self.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if core.receive(self) {
            self.has_news.store(true, Ordering::SeqCst);
        }
    }

    /// Tells runs what has happened in other processes. Not called with a lock of theirs held.
    pub(crate) fn tell(&self) {
        if !self.has_news.swap(false, Ordering::SeqCst) {
            return;
        }
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news: Vec<(Begun, Vec<News>)> = Vec::new();
        let mut core = self.lock();
        for run in core.runs.values_mut() {
            if let (Some(begun), false) = (&run.begun, run.news.is_empty()) {
                news.push((begun.clone(), std::mem::take(&mut run.news)));
            }
        }
        core.runs.retain(|_, run| !run.is_over());
        drop(core);
        for (begun, news) in news {
            news.into_iter().for_each(|news| begun.tell(self, news));
        }
    }

    /// Looks for messages again and again until something is there, for at most so long; whether it is.
    pub(crate) fn look_until(&self, is_there: &dyn Fn() -> bool, at_most: Duration) -> bool {
        let begin = Instant::now();
        loop {
            for _ in 0..8 {
                if is_there() {
                    return true;
                }
                self.look();
            }
            self.tell();
            let waited = begin.elapsed();
            match waited {
                _ if is_there() => return true,
                _ if waited >= at_most => return false,
                // Whoever is waited for may need this very processor.
                _ if waited < SPIN => thread::yield_now(),
                _ => thread::sleep(NAP.min(at_most - waited)),
            }
        }
    }

    /// The same for as long as waiting costs less than sleeping.
    pub(crate) fn spin(&self, is_there: &dyn Fn() -> bool) -> bool {
        self.look_until(is_there, SPIN)
    }

    /// What the watching thread does.
    fn watch(&self) {
        // Not more often than all others can read it.
        let least = Duration::from_millis(self.size as u64);
        let between = (self.options.silence / 20).max(least);
        let mut said: Option<Instant> = None;
        while !self.is_ending.load(Ordering::SeqCst) {
            self.look();
            if said.is_none_or(|said| said.elapsed() >= between) {
                said = Some(Instant::now());
                let beat = Head::Beat { moved: self.moves.load(Ordering::SeqCst) };
                let beat = Message { head: beat.write(), body: None };
                let mut core = self.lock();
                core.beat(&beat);
                core.listen(self);
                self.has_news.store(true, Ordering::SeqCst);
            }
            self.tell();
            self.ask();
            thread::sleep(WATCH);
        }
    }
}

impl Core {
    /// The other processes, by rank.
    pub(crate) fn others(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter().enumerate().filter(|&(rank, _)| rank != self.rank)
    }

    /// How often participants of other processes have moved, as far as they have said.
    pub(crate) fn moves(&self) -> u64 {
        self.peers.iter().map(|peer| peer.moves).fold(0, u64::wrapping_add)
    }

    /// Sends a message to a process, unless that is gone.
    pub(crate) fn post(&mut self, to: usize, message: &Message) {
        let Some(wire) = &mut self.wire else { return };
        if self.peers.get(to).is_none_or(|peer| peer.gone.is_some()) {
            return;
        }
        if let Err(error) = wire.post(to, message) {
            self.lose(to, format!("cannot be reached: {}", error.detail()));
        }
    }

    /// Sends a message to all other processes.
    pub(crate) fn post_to_all(&mut self, message: &Message) {
        let all: Vec<usize> = (0..self.peers.len()).collect();
        self.post_to_others(&all, message);
    }

    /// Sends a message to those of these processes that are others.
    pub(crate) fn post_to_others(&mut self, processes: &[usize], message: &Message) {
        let rank = self.rank;
        processes.iter().filter(|&&to| to != rank).for_each(|&to| self.post(to, message));
    }

    /// Says to all who listen that this process lives: also to those that have ended, since they wait
    /// until this one does. Nothing follows what it has said last.
    fn beat(&mut self, beat: &Message) {
        let Some(wire) = &mut self.wire else { return };
        if self.has_said_bye {
            return;
        }
        let (rank, mut failed) = (self.rank, Vec::new());
        for (to, peer) in self.peers.iter().enumerate() {
            if to == rank || !matches!(peer.gone, None | Some(Gone::Ended)) {
                continue;
            }
            if let Err(error) = wire.post(to, beat) {
                failed.push((to, format!("cannot be reached: {}", error.detail())));
            }
        }
        failed.into_iter().for_each(|(to, why)| self.lose(to, why));
    }

    /// Takes what has come; whether runs have to be told of something.
    fn receive(&mut self, shared: &Shared) -> bool {
        let mut has_news = false;
        // Whoever sends without end must not keep this thread for ever.
        for _ in 0..256 {
            let Some(wire) = &mut self.wire else { break };
            match wire.poll(&shared.memory) {
                Ok(Some((from, Ok(message)))) => has_news |= self.take(from, message),
                Ok(Some((from, Err(error)))) => {
                    self.lose(from, error.detail().to_owned());
                    has_news = true;
                }
                Ok(None) => break,
                Err(error) => {
                    let why = format!("cannot be heard any more: {}", error.detail());
                    let others = (0..shared.size).filter(|&rank| rank != shared.rank);
                    others.for_each(|rank| self.lose(rank, why.clone()));
                    return true;
                }
            }
        }
        self.take_folded();
        has_news
    }

    /// Takes a message; whether runs have to be told of it.
    fn take(&mut self, from: usize, message: Message) -> bool {
        let Some(peer) = self.peers.get_mut(from) else { return false };
        peer.heard = Instant::now();
        let (head, rest) = match Head::read(&message.head) {
            Ok((head, rest)) => (head, message.head.len() - rest.len()),
            Err(error) => {
                self.lose(from, format!("sends what it should not: {}", error.detail()));
                return true;
            }
        };
        match head {
            Head::Give(give) => {
                if let Some(run) = self.run(give.run) {
                    let who = run.begun.as_ref().map(|b| (b.collectives.clone(), b.first_of(from)));
                    run.keep(give, message, rest);
                    who.into_iter().for_each(|(collectives, who)| collectives.moved(who));
                }
                false
            }
            Head::Leave { run, who, error } => {
                let outcome = error.map_or(Ok(()), |(code, text)| Err(Error::new(code, text)));
                self.left(run, who, outcome);
                true
            }
            Head::Send { run, channel, shape, sizes } => {
                let value = News::Value { channel, shape, sizes, body: message.body };
                if let Some(run) = self.run(run) {
                    run.news.push(value);
                }
                true
            }
            Head::Ask(question) => {
                // A run that has not begun here has nobody who waits.
                if let Some(run) = self.runs.get_mut(&question.run) {
                    run.news.push(News::Asked(question));
                }
                true
            }
            Head::Answer(answer) => {
                self.answered(answer);
                false
            }
            Head::Beat { moved } => {
                if std::mem::replace(&mut self.peers[from].moves, moved) != moved {
                    let begun = self.runs.values().filter_map(|run| run.begun.as_ref());
                    begun.for_each(|begun| begun.collectives.moved(begun.first_of(from)));
                }
                false
            }
            Head::Part { sequence } => {
                self.parts.insert((sequence, from), message);
                false
            }
            Head::Bye { in_order } => {
                self.gone(from, if in_order { Gone::Ended } else { Gone::GaveUp });
                true
            }
        }
    }

    /// A run that is under way, or will be.
    fn run(&mut self, id: RunId) -> Option<&mut Run> {
        match id.number < self.begun.get(&id.processes).copied().unwrap_or(0) {
            true => self.runs.get_mut(&id),
            false => Some(self.runs.entry(id).or_default()),
        }
    }

    fn left(&mut self, run: RunId, who: Participant, outcome: Result<()>) {
        if let Some(run) = self.run(run)
            && run.leave(who)
        {
            run.news.push(News::Left(who, outcome));
        }
    }

    /// Notes who has been silent for too long.
    fn listen(&mut self, shared: &Shared) {
        let silence = shared.options.silence;
        let is_silent = |peer: &Peer| peer.gone.is_none() && peer.heard.elapsed() > silence;
        let silent: Vec<usize> =
            self.others().filter(|(_, p)| is_silent(p)).map(|(rank, _)| rank).collect();
        let why = format!("has not been heard of for {silence:?}");
        silent.into_iter().for_each(|rank| self.lose(rank, why.clone()));
    }

    /// Notes that a process is lost.
    pub(crate) fn lose(&mut self, rank: usize, why: String) {
        self.gone(rank, Gone::Lost(why));
    }

    fn gone(&mut self, rank: usize, gone: Gone) {
        let Some(peer) = self.peers.get_mut(rank).filter(|peer| peer.gone.is_none()) else {
            return;
        };
        peer.gone = Some(gone.clone());
        self.end_participants(rank, &gone);
    }

    /// The runs of a process's participants have ended with it.
    fn end_participants(&mut self, rank: usize, gone: &Gone) {
        for run in self.runs.values_mut() {
            let Some(begun) = &run.begun else { continue };
            let (assignment, places) = (begun.assignment.clone(), begun.places.clone());
            for (number, _) in places.of.iter().enumerate().filter(|&(_, &of)| of == rank) {
                let who = assignment.participant(number);
                let why = format!("process {rank} {}", gone.verb());
                if run.leave(who) {
                    run.news.push(News::Left(who, Err(Error::new(Code::Unavailable, why))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_participant_has_a_process() {
        for size in 1..9 {
            for count in size..30 {
                let mut next = 0;
                for rank in 0..size {
                    let here = participants_of(rank, size, count);
                    assert_eq!(here.start, next);
                    assert!(here.len() == count / size || here.len() == count / size + 1);
                    here.clone().for_each(|i| assert_eq!(process_of(i, size, count), rank));
                    next = here.end;
                }
                assert_eq!(next, count);
            }
        }
    }
}
