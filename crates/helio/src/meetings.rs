//! Exchange among the participants of a run that are threads of this process.
//!
//! A participant lends its bytes to the others where they lie ([`Loan`]), waits until all have come,
//! reads what they lend, and waits until all have read. Waits end with an error as soon as it is known
//! that they would be in vain: a participant has failed, has ended without coming, or all that are
//! left wait for each other.

use std::collections::HashMap;
use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use helio_eval::Meter;
use helio_eval::services::{Collectives, Participant, Rendezvous, RendezvousId, Sink};
use helio_ir::{Code, Error, Result};
use helio_runtime::Loan;

/// How long a participant looks for the others before it sleeps: a few times what it costs to be
/// woken.
const SPIN: Duration = Duration::from_micros(50);

/// How long a participant sleeps before it asks whether its run is to stop.
const NAP: Duration = Duration::from_millis(5);

/// Participants that a message lists at most.
const LISTED: usize = 8;

/// Where the participants of one run meet.
pub(crate) struct Meetings {
    /// How many replicas and partitions the run has.
    counts: (usize, usize),
    state: Mutex<State>,
    changed: Condvar,
    /// Participants that sleep, or are about to.
    sleeping: AtomicUsize,
}

#[derive(Default)]
struct State {
    points: HashMap<(RendezvousId, Vec<Participant>), Arc<Point>>,
    /// Those who sleep until others come.
    waiting: Vec<Waiting>,
    /// Whose run has ended.
    ended: Vec<Participant>,
    /// Why nobody needs to wait any more.
    failure: Option<Error>,
}

/// A participant that sleeps until others come.
struct Waiting {
    who: Participant,
    instruction: String,
    point: Arc<Point>,
    /// What [`Point::come`] has to reach.
    target: usize,
}

/// The rendezvous of one operation and group; its counts grow by the group's size with each visit.
struct Point {
    group: Vec<Participant>,
    /// What each has lent, by position in the group.
    loans: Mutex<Vec<Option<Arc<Loan>>>>,
    come: AtomicUsize,
    gone: AtomicUsize,
    /// How often each has come.
    visits: Vec<AtomicUsize>,
}

impl Point {
    fn new(group: &[Participant]) -> Self {
        Point {
            group: group.to_vec(),
            loans: Mutex::new(vec![None; group.len()]),
            come: AtomicUsize::new(0),
            gone: AtomicUsize::new(0),
            visits: group.iter().map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// Those who have come less often than makes up `target`.
    fn missing(&self, target: usize) -> impl Iterator<Item = Participant> {
        let visit = target / self.group.len().max(1);
        let all = self.group.iter().zip(&self.visits);
        let late = all.filter(move |(_, visits)| visits.load(Ordering::SeqCst) < visit);
        late.map(|(&who, _)| who)
    }
}

impl Meetings {
    /// For a run of so many replicas and partitions.
    pub(crate) fn new(counts: (usize, usize)) -> Self {
        Meetings {
            counts,
            state: Mutex::default(),
            changed: Condvar::new(),
            sleeping: AtomicUsize::new(0),
        }
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `replica 1`, `partition 2`: as much as tells the participants of this run apart.
    fn name(&self, who: Participant) -> String {
        match self.counts {
            (_, 1) => format!("replica {}", who.replica),
            (1, _) => format!("partition {}", who.partition),
            _ => who.to_string(),
        }
    }

    fn names(&self, all: impl Iterator<Item = Participant>) -> String {
        let mut all = all.map(|who| self.name(who));
        let mut text = all.by_ref().take(LISTED).collect::<Vec<_>>().join(", ");
        let rest = all.count();
        if rest > 0 {
            text += &format!(" and {rest} more");
        }
        text
    }

    fn point(&self, at: &Rendezvous<'_>) -> Result<Arc<Point>> {
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let key = (at.operation, at.group.to_vec());
        Ok(state.points.entry(key).or_insert_with(|| Arc::new(Point::new(at.group))).clone())
    }

    /// Adds to a count; whoever sleeps until it is `target` wakes up.
    fn add(&self, count: &AtomicUsize, target: usize) {
        let is_reached = count.fetch_add(1, Ordering::SeqCst) + 1 >= target;
        if is_reached && self.sleeping.load(Ordering::SeqCst) > 0 {
            // Who is about to sleep has not looked yet, or sleeps already.
            drop(self.lock());
            self.changed.notify_all();
        }
    }

    /// Waits until all of the group have come. Errors: as for [`Collectives::exchange`].
    fn wait_for_all(&self, waiting: Waiting, meter: &Meter) -> Result<()> {
        let (point, target, who) = (waiting.point.clone(), waiting.target, waiting.who);
        let is_reached = || point.come.load(Ordering::SeqCst) >= target;
        if spin(is_reached) {
            return Ok(());
        }
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        state.waiting.push(waiting);
        let outcome = loop {
            if is_reached() {
                break Ok(());
            }
            self.look_for_vain(&mut state);
            if let Some(failure) = &state.failure {
                break Err(failure.clone());
            }
            if let Err(stopped) = meter.check() {
                let names = self.names(point.missing(target));
                let context = format!("{} waits for {names}", self.name(who));
                break Err(Error::from(stopped).context(context));
            }
            let waited = self.changed.wait_timeout(state, NAP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        state.waiting.retain(|waiting| waiting.who != who);
        drop(state);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Waits until all of the group have read, or cannot any more. They never wait meanwhile, so
    /// that this ends.
    fn wait_until_read(&self, point: &Point, target: usize) {
        let is_reached = || point.gone.load(Ordering::SeqCst) >= target;
        if spin(is_reached) {
            return;
        }
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        while !is_reached() {
            let waited = self.changed.wait_timeout(state, NAP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    /// Notes a failure if somebody waits for who has ended, or all wait for each other.
    fn look_for_vain(&self, state: &mut State) {
        if state.failure.is_some() {
            return;
        }
        let still = |waiting: &&Waiting| waiting.point.come.load(Ordering::SeqCst) < waiting.target;
        let waiting: Vec<&Waiting> = state.waiting.iter().filter(still).collect();
        let has_ended = |who: &Participant| state.ended.contains(who);
        let in_vain = waiting.iter().find(|w| w.point.missing(w.target).any(|who| has_ended(&who)));
        let detail = if let Some(waiting) = in_vain {
            let names = self.names(waiting.point.missing(waiting.target).filter(has_ended));
            let (who, instruction) = (self.name(waiting.who), &waiting.instruction);
            format!("{who} waits in {instruction} for {names}, whose run has ended without it")
        } else if !waiting.is_empty()
            && waiting.len() + state.ended.len() == self.counts.0 * self.counts.1
        {
            let one = |w: &&Waiting| {
                let names = self.names(w.point.missing(w.target));
                format!("{} in {} for {names}", self.name(w.who), w.instruction)
            };
            let all: Vec<String> = waiting.iter().take(LISTED).map(one).collect();
            format!("all participants wait for each other: {}", all.join("; "))
        } else {
            return;
        };
        state.failure = Some(Error::new(Code::FailedPrecondition, detail));
        self.changed.notify_all();
    }
}

/// Whether a condition comes true soon.
fn spin(is_reached: impl Fn() -> bool) -> bool {
    let mut begin = None;
    loop {
        for _ in 0..64 {
            if is_reached() {
                return true;
            }
            hint::spin_loop();
        }
        // Whoever is waited for may need this very processor.
        thread::yield_now();
        if begin.get_or_insert_with(Instant::now).elapsed() > SPIN {
            return false;
        }
    }
}

/// Counts that a participant takes nothing any more, when it is dropped.
struct Going<'a> {
    meetings: &'a Meetings,
    point: &'a Point,
    target: usize,
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.meetings.add(&self.point.gone, self.target);
    }
}

impl Collectives for Meetings {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let position = at.group.iter().position(|&who| who == me);
        let position =
            position.ok_or_else(|| Error::internal("a group without its participant"))?;
        if at.group.len() == 1 {
            return sink(0, mine);
        }
        let point = self.point(at)?;
        let group = point.group.len();
        Loan::lend(mine, |loan| {
            let visit = point.visits[position].load(Ordering::SeqCst) + 1;
            let target = visit * group;
            point.loans.lock().unwrap_or_else(PoisonError::into_inner)[position] =
                Some(loan.clone());
            point.visits[position].store(visit, Ordering::SeqCst);
            // However this ends: who has come is counted among those who are gone.
            let going = Going { meetings: self, point: &point, target };
            self.add(&point.come, target);
            let (instruction, point_of) = (at.instruction.to_owned(), point.clone());
            let waiting = Waiting { who: me, instruction, point: point_of, target };
            self.wait_for_all(waiting, meter)?;
            let loans = point.loans.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (i, theirs) in loans.iter().enumerate() {
                if i == position {
                    sink(i, mine)?;
                    continue;
                }
                let read = theirs.as_ref().and_then(|loan| loan.read(|bytes| sink(i, bytes)));
                read.unwrap_or_else(|| {
                    let who = self.name(at.group[i]);
                    let detail = format!("{who} came, but has gone before {}", self.name(me));
                    Err(Error::new(Code::Aborted, detail))
                })?;
            }
            drop(going);
            self.wait_until_read(&point, target);
            Ok(())
        })
    }

    fn leave(&self, me: Participant, outcome: Result<(), &Error>) {
        let mut state = self.lock();
        state.ended.push(me);
        if let (Err(error), None) = (outcome, &state.failure) {
            let detail = format!("{} has failed: {error}", self.name(me));
            state.failure = Some(Error::new(Code::Aborted, detail));
        }
        self.look_for_vain(&mut state);
        drop(state);
        self.changed.notify_all();
    }
}
