//! Exchange among the participants of a run that are threads of this process.
//!
//! A participant lends its bytes to the others where they lie ([`Board`]), waits until all have come,
//! reads what they lend, and waits until all have read. Waits end with an error as soon as it is known
//! that they would be in vain ([`vain`]): a participant has failed, has ended without coming, or those
//! that are left wait for each other; or when nobody has moved for too long.

mod vain;

use std::collections::HashMap;
use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use helio_eval::Meter;
use helio_eval::services::{
    Collectives, Given, Participant, Ready, Rendezvous, RendezvousId, Sink, SinkWithRoom, Sleeper,
    Wait, waited_too_long,
};
use helio_ir::{Code, Error, Result};
use helio_runtime::{Board, NotMet, Waits};

use crate::assignment::name_among;

/// How long a participant looks for the others before it sleeps: a few times what it costs to be
/// woken.
const SPIN: Duration = Duration::from_micros(50);

/// How long a participant sleeps before it asks whether its run is to stop.
const NAP: Duration = Duration::from_millis(5);

/// Where the participants of one run meet.
pub(crate) struct Meetings {
    /// How many replicas and partitions the run has.
    counts: (usize, usize),
    state: Mutex<State>,
    changed: Condvar,
    /// Participants that sleep, or are about to.
    sleeping: AtomicUsize,
    /// Values that went through channels and queues of the host.
    transfers: AtomicU64,
    /// Set once there is a failure: whoever computes stops.
    abort: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    points: HashMap<(RendezvousId, Vec<Participant>), Arc<Point>>,
    /// Those who sleep until others come, the first of them first.
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
    awaited: Awaited,
}

/// What a participant waits for.
enum Awaited {
    /// That all of a group have come this number of times.
    Meeting(Arc<Point>, u64),
    /// Something else.
    Value { from: Option<Participant>, is_open: bool, ready: Arc<dyn Ready> },
}

/// The rendezvous of one operation and group.
struct Point {
    group: Vec<Participant>,
    board: Board,
}

impl Meetings {
    /// For a run of `counts` (replicas, partitions), which `abort` stops.
    pub(crate) fn new(counts: (usize, usize), abort: Arc<AtomicBool>) -> Self {
        Meetings {
            counts,
            state: Mutex::default(),
            changed: Condvar::new(),
            sleeping: AtomicUsize::new(0),
            transfers: AtomicU64::new(0),
            abort,
        }
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, who: Participant) -> String {
        name_among(self.counts, who)
    }

    /// Notes why all are to stop, unless there is a reason already.
    fn fail(&self, state: &mut State, failure: Error) {
        if state.failure.is_none() {
            state.failure = Some(failure);
            self.abort.store(true, Ordering::SeqCst);
            self.changed.notify_all();
        }
    }

    fn point(&self, at: &Rendezvous<'_>) -> Arc<Point> {
        let mut state = self.lock();
        let key = (at.operation, at.group.to_vec());
        let point = state.points.entry(key).or_insert_with(|| {
            Arc::new(Point { group: at.group.to_vec(), board: Board::new(at.group.len()) })
        });
        point.clone()
    }

    /// Sleeps until what is waited for is there; `nap` sleeps for a while. Errors: as for
    /// [`Collectives::exchange`].
    fn sleep(
        &self,
        waiting: Waiting,
        meter: &Meter,
        is_over: &dyn Fn() -> bool,
        mut nap: impl for<'s> FnMut(MutexGuard<'s, State>, &'s Self) -> MutexGuard<'s, State>,
    ) -> Result<()> {
        let who = waiting.who;
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let mut state = self.lock();
        state.waiting.push(waiting);
        let mut patience = Patience::new(meter.max_wait());
        let outcome = loop {
            if is_over() {
                break Ok(());
            }
            if let Some(failure) = self.vain(&state, who) {
                self.fail(&mut state, failure);
            }
            if let Some(failure) = &state.failure {
                break Err(failure.clone());
            }
            if let Err(stopped) = meter.check() {
                break Err(Error::from(stopped).context(self.what_awaits(&state, who)));
            }
            if let Err(most) = patience.look(|| self.progress(&state)) {
                let failure = waited_too_long(self.what_awaits(&state, who), most);
                self.fail(&mut state, failure.clone());
                break Err(failure);
            }
            state = nap(state, self);
        };
        state.waiting.retain(|waiting| waiting.who != who);
        drop(state);
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// A number that grows whenever a participant moves.
    fn progress(&self, state: &State) -> u64 {
        let boards = state.points.values().map(|point| point.board.progress());
        let ended = state.ended.len() as u64;
        boards.fold(ended + self.transfers.load(Ordering::SeqCst), u64::wrapping_add)
    }
}

/// How long a participant has seen nobody move.
struct Patience {
    most: Duration,
    seen: Option<(u64, Instant)>,
}

impl Patience {
    fn new(most: Duration) -> Self {
        Patience { most, seen: None }
    }

    /// Errors: the progress is that of `most` ago, which is returned.
    fn look(&mut self, progress: impl FnOnce() -> u64) -> Result<(), Duration> {
        let progress = progress();
        match self.seen {
            Some((before, since)) if before == progress => {
                if since.elapsed() >= self.most {
                    Err(self.most)
                } else {
                    Ok(())
                }
            }
            _ => {
                self.seen = Some((progress, Instant::now()));
                Ok(())
            }
        }
    }
}

/// A participant's visit of a point.
struct Visit<'a> {
    meetings: &'a Meetings,
    point: &'a Arc<Point>,
    me: Participant,
    instruction: &'a str,
    /// How often it has come before.
    before: u64,
    meter: &'a Meter,
}

impl Waits for Visit<'_> {
    type Error = Error;

    fn until_come(&self, have_come: &dyn Fn() -> bool) -> Result<()> {
        if spin(have_come) {
            return Ok(());
        }
        let awaited = Awaited::Meeting(self.point.clone(), self.before + 1);
        let instruction = self.instruction.to_owned();
        let waiting = Waiting { who: self.me, instruction, awaited };
        self.meetings.sleep(waiting, self.meter, have_come, |state, meetings| {
            let waited = meetings.changed.wait_timeout(state, NAP);
            waited.unwrap_or_else(PoisonError::into_inner).0
        })
    }

    fn until_read(&self, have_read: &dyn Fn() -> bool) {
        if spin(have_read) {
            return;
        }
        let meetings = self.meetings;
        meetings.sleeping.fetch_add(1, Ordering::SeqCst);
        let mut state = meetings.lock();
        while !have_read() {
            let waited = meetings.changed.wait_timeout(state, NAP);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        meetings.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    fn moved(&self, are_all: &dyn Fn() -> bool) {
        if self.meetings.sleeping.load(Ordering::SeqCst) > 0 && are_all() {
            // Who is about to sleep has not looked yet, or sleeps already.
            drop(self.meetings.lock());
            self.meetings.changed.notify_all();
        }
    }
}

/// Whether a condition comes true soon.
fn spin(is_reached: &dyn Fn() -> bool) -> bool {
    let mut begin = None;
    loop {
        for _ in 0..128 {
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

/// What an exchange keeps from one time to the next.
struct Seat {
    point: Arc<Point>,
    position: usize,
}

impl Meetings {
    /// [`Collectives::exchange_with_room`], with room or without.
    fn meet(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        room: &mut [&mut [u8]],
        meter: &Meter,
        sink: &mut SinkWithRoom<'_>,
    ) -> Result<()> {
        if self.abort.load(Ordering::SeqCst)
            && let Some(failure) = self.failure()
        {
            return Err(failure);
        }
        if at.memo.get::<Seat>().is_none() {
            let position = at.group.iter().position(|&who| who == me);
            let position =
                position.ok_or_else(|| Error::internal("a group without its participant"))?;
            at.memo.keep(Seat { point: self.point(at), position });
        }
        let seat: Option<&Seat> = at.memo.get();
        let Seat { point, position } = seat.ok_or_else(|| Error::internal("another's memo"))?;
        let before = point.board.visits(*position);
        let visit = Visit { meetings: self, point, me, instruction: at.instruction, before, meter };
        let met =
            point.board.meet_with_room(*position, mine, room, &visit, |slices, ends, rooms| {
                sink(Given::new(slices, ends), rooms)
            });
        met.map_err(|error| match error {
            NotMet::Failed(error) => error,
            NotMet::Taken => Error::internal(format!("{} is in two places", self.name(me))),
            NotMet::Gone(who) => self.failure().unwrap_or_else(|| {
                let who = self.name(point.group[who]);
                let detail = format!("{who} came, but has gone before {}", self.name(me));
                Error::new(Code::Aborted, detail)
            }),
        })
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
        if at.group == [me] {
            return sink(Given::new(mine, &[mine.len()]));
        }
        self.meet(at, me, mine, &mut [], meter, &mut |given, _| sink(given))
    }

    fn exchange_with_room(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        room: &mut [&mut [u8]],
        meter: &Meter,
        sink: &mut SinkWithRoom<'_>,
    ) -> Result<bool> {
        self.meet(at, me, mine, room, meter, sink).map(|()| true)
    }

    fn wait(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        if spin(&|| wait.ready.is_ready()) {
            return Ok(());
        }
        let ready = wait.ready.clone();
        let awaited = Awaited::Value { from: wait.from, is_open: wait.is_open, ready };
        let waiting = Waiting { who: wait.me, instruction: wait.instruction.to_owned(), awaited };
        self.sleep(waiting, meter, &|| wait.ready.is_ready(), |state, meetings| {
            // What is waited for wakes this thread by itself.
            drop(state);
            wait.ready.wait(NAP);
            meetings.lock()
        })
    }

    fn moved(&self, _: Participant) {
        self.transfers.fetch_add(1, Ordering::SeqCst);
    }

    fn leave(&self, me: Participant, outcome: Result<(), &Error>) {
        let mut state = self.lock();
        state.ended.push(me);
        if let Err(error) = outcome {
            let detail = match error.code() {
                // It was ended because of another.
                Code::Aborted => error.detail().to_owned(),
                _ => format!("{} has failed: {error}", self.name(me)),
            };
            self.fail(&mut state, Error::new(Code::Aborted, detail));
        }
        if let Some(failure) = self.vain(&state, me) {
            self.fail(&mut state, failure);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn sleepers(&self, who: Participant) -> Vec<Sleeper> {
        self.sleepers_from(who)
    }

    fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }
}
