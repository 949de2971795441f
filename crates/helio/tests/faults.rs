//! Faults injected into runs of several participants: whatever is dropped, delayed or killed, every run
//! ends soon, on all devices, and its error names who is to blame.
//!
//! `HELIO_FAULTS=10000` runs as many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use helio::services::{Collectives, Meter, Participant, Rendezvous, Sink, Wait};
use helio::{
    Backend, Client, ClientOptions, Code, CollectivesLayer, CompileOptions, DeviceAssignment,
    Error, Executable, Literal, Result, RunOptions,
};
use oorandom::Rand32;

const REPLICAS: usize = 3;

/// How long a run may wait for others who do not move.
const MAX_WAIT: Duration = Duration::from_millis(400);

/// How long a run may take to its end, whatever happens: machines are busy.
const BOUND: Duration = Duration::from_secs(20);

/// What happens to a participant when it comes to a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It never comes, until the run is stopped.
    Drop,
    /// It comes later than the others would wait for; or in time.
    Delay(Duration),
    /// Its thread panics.
    Kill,
    /// It fails.
    Fail,
    /// It panics while it reads what the others lend.
    KillReading,
}

/// A fault of one participant at the n-th collective that it comes to.
#[derive(Clone, Copy, Debug)]
struct Plan {
    fault: Fault,
    replica: usize,
    at: usize,
}

/// Collectives that carry out a plan.
struct Faulty {
    inner: Arc<dyn Collectives>,
    plan: Plan,
    come: AtomicUsize,
}

impl Collectives for Faulty {
    fn exchange(
        &self,
        at: &Rendezvous<'_>,
        me: Participant,
        mine: &[&[u8]],
        meter: &Meter,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let is_it = me.replica == self.plan.replica
            && self.come.fetch_add(1, Ordering::SeqCst) == self.plan.at;
        if is_it {
            match self.plan.fault {
                Fault::Drop => loop {
                    meter.check()?;
                    thread::sleep(Duration::from_millis(1));
                },
                Fault::Delay(time) => {
                    let begin = Instant::now();
                    while begin.elapsed() < time {
                        meter.check()?;
                        thread::sleep(Duration::from_millis(1));
                    }
                }
                Fault::Kill => panic!("killed"),
                Fault::Fail => return Err(Error::invalid("a planned fault")),
                Fault::KillReading => {
                    return self.inner.exchange(at, me, mine, meter, &mut |_| panic!("killed"));
                }
            }
        }
        self.inner.exchange(at, me, mine, meter, sink)
    }

    fn wait(&self, wait: &Wait<'_>, meter: &Meter) -> Result<()> {
        self.inner.wait(wait, meter)
    }

    fn moved(&self, me: Participant) {
        self.inner.moved(me);
    }

    fn leave(&self, me: Participant, outcome: Result<(), &Error>) {
        self.inner.leave(me, outcome);
    }

    fn failure(&self) -> Option<Error> {
        self.inner.failure()
    }
}

/// Four rounds of a loop with three collectives in each: twelve in all, small ones and one that is cut.
const PROGRAM: &str =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
cond { s = (u32[], f32[3], f32[90000]) parameter(0) i = u32[] get-tuple-element(s), index=0
  z = u32[] constant(4) ROOT p = pred[] compare(i, z), direction=LT }
body { s = (u32[], f32[3], f32[90000]) parameter(0) i = u32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  big = f32[90000] get-tuple-element(s), index=2
  sum = f32[3] all-reduce(x), to_apply=add
  moved = f32[3] collective-permute(sum), source_target_pairs={{0,1},{1,2},{2,0}}
  total = f32[90000] all-reduce(big), to_apply=add
  o = u32[] constant(1) j = u32[] add(i, o)
  ROOT t = (u32[], f32[3], f32[90000]) tuple(j, moved, total) }
ENTRY e { x = f32[3] parameter(0) z = u32[] constant(0) c = f32[] constant(1)
  big = f32[90000] broadcast(c), dimensions={}
  s = (u32[], f32[3], f32[90000]) tuple(z, x, big)
  w = (u32[], f32[3], f32[90000]) while(s), condition=cond, body=body
  y = f32[3] get-tuple-element(w), index=1
  b = f32[90000] get-tuple-element(w), index=2
  last = f32[1] slice(b), slice={[89999:90000]}
  ROOT r = (f32[3], f32[1]) tuple(y, last) }";

/// The program, and how often each participant comes to a meeting: twice for an all-reduce that is cut.
struct Victim {
    program: Executable,
    meetings: usize,
}

/// With large arrays, or the same with small ones.
fn compile(client: &Client, backend: Backend) -> Victim {
    let is_small = matches!(backend, Backend::Interpreter);
    let text = match is_small {
        true => PROGRAM.replace("90000", "9").replace("89999", "8"),
        false => PROGRAM.to_owned(),
    };
    let mut options = CompileOptions::default();
    options.backend = backend;
    options.assignment = Some(DeviceAssignment::iota(REPLICAS, 1).expect("a few devices"));
    let module = helio::parse(&text).expect("a program");
    let program = client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"));
    Victim { program, meetings: if is_small { 12 } else { 16 } }
}

/// How many threads this process has.
fn threads() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count())
}

/// How many threads this process has, once there are no more than `most`, or after a while: the system
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

/// Runs with a fault. Errors: it did not end as it should.
fn run(Victim { program, meetings }: &Victim, plan: Plan) -> std::result::Result<(), String> {
    let mut options = RunOptions::default();
    options.limits.max_wait = Some(MAX_WAIT);
    options.collectives = Some(CollectivesLayer::new(move |inner| {
        Arc::new(Faulty { inner, plan, come: AtomicUsize::new(0) })
    }));
    let args = [1f32, 2.0, 3.0].map(|x| [Literal::array([3], vec![x; 3]).expect("three")]);
    let args: Vec<&[Literal]> = args.iter().map(|args| &args[..]).collect();
    let begin = Instant::now();
    let outcome = program.run_all(&args, &options);
    if begin.elapsed() > BOUND {
        return Err(format!("it took {:?}", begin.elapsed()));
    }
    let who = format!("replica {}", plan.replica);
    let waits =
        |error: &str| error.contains(&format!("for {who}")) && error.contains("nobody has moved");
    let fine = match (plan.fault, &outcome) {
        // 1 + 2 + 3 four times over, thrice as much each time.
        (_, Ok(results)) => {
            let sums = format!("{:?}", helio::ir::text::print_literal(&results[0]));
            let may_end = matches!(plan.fault, Fault::Delay(_)) || plan.at >= *meetings;
            may_end && sums.contains("162") && sums.contains("81")
        }
        (Fault::Drop, Err(e)) => e.code() == Code::DeadlineExceeded && waits(e.detail()),
        // A busy machine may delay it more than was planned.
        (Fault::Delay(_), Err(e)) => e.code() == Code::DeadlineExceeded && waits(e.detail()),
        (Fault::Kill | Fault::KillReading, Err(e)) => {
            e.detail().starts_with(&format!("{who}: ")) && e.detail().contains("panicked: killed")
        }
        (Fault::Fail, Err(e)) => {
            e.detail().starts_with(&format!("{who}: ")) && e.detail().contains("a planned fault")
        }
    };
    match fine {
        true => Ok(()),
        false => Err(format!("{outcome:?}")),
    }
}

#[test]
fn every_run_with_a_fault_ends_and_names_who_is_to_blame() {
    let runs = std::env::var("HELIO_FAULTS").map_or(300, |n| n.parse().expect("a number"));
    let seconds = if runs > 300 { u64::MAX } else { 8 };
    // What participants that are killed say is no news here.
    std::panic::set_hook(Box::new(|_| {}));
    let mut options = ClientOptions::default();
    options.devices = REPLICAS;
    let client = Client::new(&options);
    let victims = [Backend::Cpu, Backend::Interpreter].map(|backend| compile(&client, backend));
    let (mut random, begin) = (Rand32::new(7), Instant::now());
    let (mut done, mut before, mut failures) = (0, None, Vec::new());
    for i in 0..runs {
        if begin.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        // Waits take their time, so they are fewer.
        let fault = match random.rand_range(0..48) {
            0 => Fault::Drop,
            1 => Fault::Delay(MAX_WAIT * 3),
            2..16 => Fault::Delay(Duration::from_millis(random.rand_range(0..10).into())),
            16..26 => Fault::Kill,
            26..36 => Fault::KillReading,
            _ => Fault::Fail,
        };
        let replica = random.rand_range(0..REPLICAS as u32) as usize;
        let at = random.rand_range(0..18) as usize;
        let plan = Plan { fault, replica, at };
        // The interpreter takes its time, too.
        let victim = &victims[usize::from(i % 8 == 7)];
        if let Err(error) = run(victim, plan) {
            failures.push(format!("{plan:?}: {error}"));
        }
        done += 1;
        // The first runs start threads of the client.
        if i == 20 {
            thread::sleep(Duration::from_millis(100));
            before = threads();
        }
    }
    let _ = std::panic::take_hook();
    println!("{done} runs with faults in {:?}", begin.elapsed());
    assert!(
        failures.is_empty(),
        "{} of {done}: {}",
        failures.len(),
        failures[..failures.len().min(9)].join("\n")
    );
    assert!(done > 30, "{done} runs");
    // Threads of other tests of this process come and go; there are none in this file.
    let left = threads_at_most(before);
    assert!(left <= before, "threads were left: {left:?} after {before:?}");
}
