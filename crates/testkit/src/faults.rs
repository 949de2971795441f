//! Faults injected into runs of several replicas: one of them is dropped, delayed or killed when it comes to
//! a collective for the n-th time. And a program to inject them into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use helio::services::{
    Channel, Collectives, Fold, Given, Meter, Participant, Rendezvous, Sink, SinkWithRoom, Sleeper,
    Wait,
};
use helio::{Error, Literal, Result};

/// What happens to a replica when it comes to a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It never comes, until the run is stopped.
    Drop,
    /// It comes so much later.
    Delay(Duration),
    /// Its thread panics.
    Kill,
    /// Its thread panics while it reads what the others lend.
    KillReading,
    /// It fails.
    Fail,
}

/// A fault of one replica at the n-th meeting that it comes to, counted from 0.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What happens.
    pub fault: Fault,
    /// The replica to which it happens, in each of its partitions.
    pub replica: usize,
    /// How often it has come before.
    pub at: usize,
}

impl Plan {
    /// Whether an error says what has happened, and to whom.
    pub fn is_told(&self, error: &str) -> bool {
        let who = format!("replica {}", self.replica);
        match self.fault {
            // A busy machine may delay it for longer than was planned.
            Fault::Drop | Fault::Delay(_) => {
                error.contains(&format!("{who} waits for no other"))
                    && error.contains("nobody has moved")
            }
            Fault::Kill | Fault::KillReading => {
                error.contains(&who) && error.contains("panicked: killed")
            }
            Fault::Fail => error.contains(&who) && error.contains("a planned fault"),
        }
    }
}

/// Collectives that carry out a plan, and otherwise leave everything to others.
pub struct Planned {
    inner: Arc<dyn Collectives>,
    plan: Plan,
    come: AtomicUsize,
}

impl Planned {
    /// Those of a run whose collectives are `inner`.
    pub fn new(inner: Arc<dyn Collectives>, plan: Plan) -> Self {
        Planned { inner, plan, come: AtomicUsize::new(0) }
    }

    /// What happens to a participant that comes to a meeting, before it does; whether it is to panic once it
    /// is there. Errors: a planned one; it has been told to stop.
    fn come(&self, me: Participant, meter: &Meter) -> Result<bool> {
        let is_due = me.replica == self.plan.replica
            && self.come.fetch_add(1, Ordering::SeqCst) == self.plan.at;
        let wait = |time: Duration| {
            let begin = Instant::now();
            while begin.elapsed() < time {
                meter.check()?;
                thread::sleep(Duration::from_millis(1));
            }
            Ok(false)
        };
        match self.plan.fault {
            _ if !is_due => Ok(false),
            Fault::Drop => wait(Duration::MAX),
            Fault::Delay(time) => wait(time),
            Fault::Kill => panic!("killed"),
            Fault::KillReading => Ok(true),
            Fault::Fail => Err(Error::invalid("a planned fault")),
        }
    }
}

impl Collectives for Planned {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let is_killed = self.come(me, meter)?;
        self.inner.exchange(at, me, mine, meter, &mut |given| match is_killed {
            true => panic!("killed"),
            false => sink(given),
        })
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
        let is_killed = self.come(me, meter)?;
        let mut sink = |given: Given<'_>, room: &mut [&mut [u8]]| match is_killed {
            true => panic!("killed"),
            false => sink(given, room),
        };
        self.inner.exchange_with_room(at, me, mine, room, meter, &mut sink)
    }

    fn fold(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        folds: &[Fold],
        mine: &[&[u8]],
        outputs: &mut [&mut [u8]],
        meter: &Meter,
    ) -> Result<bool> {
        self.inner.fold(at, me, folds, mine, outputs, meter)
    }

    fn wait(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        self.inner.wait(wait, meter)
    }

    fn is_elsewhere(&self, channel: Channel) -> bool {
        self.inner.is_elsewhere(channel)
    }

    fn send(&self, channel: Channel, value: Literal) -> Result<()> {
        self.inner.send(channel, value)
    }

    fn moved(&self, me: Participant) {
        self.inner.moved(me);
    }

    fn leave(&self, me: Participant, outcome: Result<(), &Error>) {
        self.inner.leave(me, outcome);
    }

    fn sleepers(&self, who: Participant) -> Vec<Sleeper> {
        self.inner.sleepers(who)
    }

    fn failure(&self) -> Option<Error> {
        self.inner.failure()
    }
}

/// A loop with three collectives in each round: a small sum, a permutation in a circle, and a sum of an
/// array of any size.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// How many replicas take part.
    pub replicas: usize,
    /// How often they go round.
    pub rounds: usize,
    /// The size of the array, as floats of 32 bits.
    pub elements: usize,
}

impl Rounds {
    /// The program.
    pub fn text(&self) -> String {
        let Rounds { replicas, rounds, elements } = *self;
        let pairs = (0..replicas).map(|from| format!("{{{from},{}}}", (from + 1) % replicas));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        let last = elements - 1;
        let state = format!("(u32[], f32[3], f32[{elements}])");
        format!(
            "add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
             cond {{ s = {state} parameter(0) i = u32[] get-tuple-element(s), index=0
               z = u32[] constant({rounds}) ROOT p = pred[] compare(i, z), direction=LT }}
             body {{ s = {state} parameter(0) i = u32[] get-tuple-element(s), index=0
               x = f32[3] get-tuple-element(s), index=1
               big = f32[{elements}] get-tuple-element(s), index=2
               sum = f32[3] all-reduce(x), to_apply=add
               moved = f32[3] collective-permute(sum), source_target_pairs={{{pairs}}}
               total = f32[{elements}] all-reduce(big), to_apply=add
               o = u32[] constant(1) j = u32[] add(i, o)
               ROOT t = {state} tuple(j, moved, total) }}
             ENTRY e {{ x = f32[3] parameter(0) z = u32[] constant(0) c = f32[] constant(1)
               big = f32[{elements}] broadcast(c), dimensions={{}}
               s = {state} tuple(z, x, big)
               w = {state} while(s), condition=cond, body=body
               y = f32[3] get-tuple-element(w), index=1
               b = f32[{elements}] get-tuple-element(w), index=2
               last = f32[1] slice(b), slice={{[{last}:{elements}]}}
               ROOT r = (f32[3], f32[1]) tuple(y, last) }}"
        )
    }

    /// How often each replica comes to a meeting: twice for an array that is cut.
    pub fn meetings(&self) -> usize {
        let is_cut = self.elements * 4 >= 256 << 10;
        self.rounds * (3 + usize::from(is_cut))
    }

    /// The argument of a replica: its number, from 1.
    pub fn arg(&self, replica: usize) -> Literal {
        Literal::array([3], vec![replica as f32 + 1.0; 3]).expect("three numbers")
    }

    /// What each replica gives: the sum of all arguments, and in each further round as many times as much
    /// as there are replicas; and so 1 of the array.
    pub fn result(&self) -> Literal {
        let times = (0..self.rounds).map(|_| self.replicas as f32).product::<f32>();
        let sum = (1..=self.replicas).sum::<usize>() as f32 * times / self.replicas as f32;
        let sums = Literal::array([3], vec![sum; 3]).expect("three numbers");
        Literal::Tuple(vec![sums, Literal::array([1], vec![times]).expect("one number")])
    }
}

/// The number of runs after which clients have started the threads that they keep.
const FIRST_RUNS: usize = 20;

/// Does many runs with faults, by their numbers: as many as the environment variable `HELIO_FAULTS` says,
/// else up to 300 in `time`. `run` says what was not as it should be. No other test of the process may run
/// meanwhile: threads are counted, and panics are not reported.
///
/// # Panics
/// If a run was not as it should be, if no more than `least` were done, or if threads are left.
pub fn many(time: Duration, least: usize, mut run: impl FnMut(usize) -> Result<(), String>) {
    let runs = std::env::var("HELIO_FAULTS").map_or(300, |n| n.parse().expect("a number"));
    let time = if runs > 300 { Duration::MAX } else { time };
    // What participants that are killed say is no news here.
    std::panic::set_hook(Box::new(|_| {}));
    let begin = Instant::now();
    let (mut done, mut before, mut failures) = (0, None, Vec::new());
    while done < runs && begin.elapsed() <= time {
        failures.extend(run(done).err());
        // The first runs start threads of the clients.
        if done == FIRST_RUNS {
            thread::sleep(Duration::from_millis(100));
            before = threads();
        }
        done += 1;
    }
    drop(std::panic::take_hook());
    println!("{done} runs with faults in {:?}", begin.elapsed());
    let shown = failures[..failures.len().min(9)].join("\n");
    assert!(failures.is_empty(), "{} of {done}: {shown}", failures.len());
    assert!(done > least.max(FIRST_RUNS), "{done} runs");
    let left = threads_at_most(before);
    assert!(left <= before, "threads were left: {left:?} after {before:?}");
}

/// How many threads this process has, if the system says so.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// How many threads this process has, once there are no more than `most`, or after ten seconds: the system
/// lists a thread that has been joined until it has put it away.
fn threads_at_most(most: Option<usize>) -> Option<usize> {
    let begin = Instant::now();
    loop {
        let found = threads();
        if found <= most || begin.elapsed() > Duration::from_secs(10) {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
