//! Faults injected into runs of several processes, which are threads here, with wires that are queues:
//! whatever is cut off, delayed, dropped or killed, every run ends soon in all of them, and its error names
//! who is to blame.
//!
//! `HELIO_FAULTS=10000` runs as many.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use helio::services::{Channel, Collectives, Meter, Participant, Rendezvous, Sink, Sleeper, Wait};
use helio::{
    Client, ClientOptions, CollectivesLayer, CompileOptions, DeviceAssignment, Error, Executable,
    Literal, Result, RunOptions,
};
use helio_mpi::wire::{Faulty, Wire, among_threads};
use helio_mpi::{Options, Processes};
use oorandom::Rand32;

const REPLICAS: usize = 4;

/// How long a run may wait for others who do not move.
const MAX_WAIT: Duration = Duration::from_millis(4000);

/// How long a process may be silent where one is cut off.
const SILENCE: Duration = Duration::from_millis(3000);

/// How long both may last where nothing depends on it: less than [`BOUND`], so that a wait in vain says
/// who waited.
const PATIENT: Duration = Duration::from_secs(45);

/// How long a run may take to its end, whatever happens: machines are busy.
const BOUND: Duration = Duration::from_secs(60);

/// What happens to a replica when it comes to a collective, or to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The replica never comes, until the run is stopped.
    Drop,
    /// It comes later.
    Delay(Duration),
    /// Its thread panics.
    Kill,
    /// It fails.
    Fail,
    /// Nothing comes from its process, nor to it, after so many messages.
    Cut(usize),
    /// Messages to its process are as many looks late.
    Late(usize),
}

/// A fault of one replica at the n-th collective that it comes to.
#[derive(Clone, Copy, Debug)]
struct Plan {
    fault: Fault,
    replica: usize,
    at: usize,
    processes: usize,
}

/// Collectives that carry out a plan.
struct Planned {
    inner: Arc<dyn Collectives>,
    plan: Plan,
    come: AtomicUsize,
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
        let is_it = me.replica == self.plan.replica
            && self.come.fetch_add(1, Ordering::SeqCst) == self.plan.at;
        match self.plan.fault {
            Fault::Drop if is_it => loop {
                meter.check()?;
                thread::sleep(Duration::from_millis(1));
            },
            Fault::Delay(time) if is_it => thread::sleep(time),
            Fault::Kill if is_it => panic!("killed"),
            Fault::Fail if is_it => return Err(Error::invalid("a planned fault")),
            _ => {}
        }
        self.inner.exchange(at, me, mine, meter, sink)
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

/// Three rounds of a loop with three collectives in each: twelve meetings, as the large all-reduce is cut
/// and so takes two.
const PROGRAM: &str =
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
cond { s = (u32[], f32[3], f32[66000]) parameter(0) i = u32[] get-tuple-element(s), index=0
  z = u32[] constant(3) ROOT p = pred[] compare(i, z), direction=LT }
body { s = (u32[], f32[3], f32[66000]) parameter(0) i = u32[] get-tuple-element(s), index=0
  x = f32[3] get-tuple-element(s), index=1
  big = f32[66000] get-tuple-element(s), index=2
  sum = f32[3] all-reduce(x), to_apply=add
  moved = f32[3] collective-permute(sum), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  total = f32[66000] all-reduce(big), to_apply=add
  o = u32[] constant(1) j = u32[] add(i, o)
  ROOT t = (u32[], f32[3], f32[66000]) tuple(j, moved, total) }
ENTRY e { x = f32[3] parameter(0) z = u32[] constant(0) c = f32[] constant(1)
  big = f32[66000] broadcast(c), dimensions={}
  s = (u32[], f32[3], f32[66000]) tuple(z, x, big)
  w = (u32[], f32[3], f32[66000]) while(s), condition=cond, body=body
  y = f32[3] get-tuple-element(w), index=1
  b = f32[66000] get-tuple-element(w), index=2
  last = f32[1] slice(b), slice={[65999:66000]}
  ROOT r = (f32[3], f32[1]) tuple(y, last) }";

/// What each replica gives: 1 + 2 + 3 + 4, four times as much in each further round; 1, four times as much
/// in each round.
const RESULT: (f32, f32) = (160.0, 64.0);

/// The program in each of so many processes.
fn compile(processes: usize) -> Vec<Executable> {
    let part = |rank: usize| {
        let here = rank * REPLICAS / processes..(rank + 1) * REPLICAS / processes;
        let mut options = ClientOptions::default();
        (options.devices, options.threads) = (here.len(), Some(1));
        let client = Client::new(&options);
        let mut options = CompileOptions::default();
        options.assignment = Some(DeviceAssignment::part(REPLICAS, 1, here).expect("a part"));
        let module = helio::parse(PROGRAM).expect("a program");
        client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"))
    };
    (0..processes).map(part).collect()
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

/// The process that runs a replica.
fn process_of(replica: usize, processes: usize) -> usize {
    ((replica + 1) * processes - 1) / REPLICAS
}

/// What the process of a wire gives.
fn run_part(program: &Executable, wire: Box<dyn Wire>, plan: Plan) -> Result<Vec<Literal>> {
    let mut options = Options::default();
    options.silence = if matches!(plan.fault, Fault::Cut(_)) { SILENCE } else { PATIENT };
    let processes = Processes::new(wire, options)?;
    let mut options = RunOptions::default();
    options.limits.max_wait = Some(if plan.fault == Fault::Drop { MAX_WAIT } else { PATIENT });
    processes.connect(&mut options, program.assignment());
    let distributed = options.collectives.take().expect("what connects processes");
    options.collectives = Some(CollectivesLayer::new(move |inner| {
        let inner = distributed.over(inner);
        Arc::new(Planned { inner, plan, come: AtomicUsize::new(0) })
    }));
    let args = program.assignment().here().map(|replica| {
        [Literal::array([3], vec![replica as f32 + 1.0; 3]).expect("three numbers")]
    });
    let args: Vec<[Literal; 1]> = args.collect();
    let args: Vec<&[Literal]> = args.iter().map(|args| &args[..]).collect();
    let outcome = program.run_all(&args, &options);
    match outcome.is_ok() {
        true => processes.close(),
        false => processes.abandon(),
    }
    outcome
}

/// What each process gives in a run with a fault.
fn outcomes(programs: &[Executable], plan: Plan) -> Vec<Result<Vec<Literal>>> {
    let victim = process_of(plan.replica, plan.processes);
    let wires = among_threads(plan.processes).into_iter().enumerate().map(|(rank, wire)| {
        let (mut posts, mut delay) = (usize::MAX, 0);
        match plan.fault {
            Fault::Cut(after) if rank == victim => posts = after,
            Fault::Late(looks) if rank == victim => delay = looks,
            _ => {}
        }
        Box::new(Faulty::new(wire, posts, delay)) as Box<dyn Wire>
    });
    thread::scope(|scope| {
        let run = |(wire, program)| scope.spawn(move || run_part(program, wire, plan));
        let threads: Vec<_> = wires.zip(programs).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn is_right(results: &[Literal]) -> bool {
    let sums = Literal::array([3], vec![RESULT.0; 3]).expect("three numbers");
    let last = Literal::array([1], vec![RESULT.1]).expect("one number");
    let all = Literal::Tuple(vec![sums, last]);
    results.iter().all(|result| result.same_bits(&all))
}

/// Runs with a fault. Errors: it did not end as it should.
fn run(programs: &[Executable], plan: Plan) -> std::result::Result<(), String> {
    let begin = Instant::now();
    let outcomes = outcomes(programs, plan);
    if begin.elapsed() > BOUND {
        return Err(format!("it took {:?}", begin.elapsed()));
    }
    let victim = process_of(plan.replica, plan.processes);
    let who = format!("replica {}", plan.replica);
    let fine = |(rank, outcome): (usize, &Result<Vec<Literal>>)| {
        let text = match outcome {
            Err(error) => error.to_string(),
            // The fault came too late, or was none in the end.
            Ok(results) => return is_right(results),
        };
        let waits = text.contains(&format!("for {who}")) && text.contains("nobody has moved");
        match plan.fault {
            // At the permutation (the second of four meetings of a round), who has no business with it
            // goes on, and may be the first to find that nobody moves: it names whom it waits for itself.
            Fault::Drop => waits || plan.at % 4 == 1 && text.contains("nobody has moved"),
            // It may be delayed for longer than was planned: machines are busy.
            Fault::Delay(_) => waits,
            Fault::Kill => text.contains(&who) && text.contains("panicked: killed"),
            Fault::Fail => text.contains(&who) && text.contains("a planned fault"),
            Fault::Cut(_) if rank == victim => text.contains("has not been heard of"),
            Fault::Cut(_) => text.contains(&format!("process {victim} has not been heard of")),
            Fault::Late(_) => false,
        }
    };
    let must_fail = matches!(plan.fault, Fault::Drop | Fault::Kill | Fault::Fail) && plan.at < 12;
    let has_failed = outcomes.iter().any(Result::is_err);
    match outcomes.iter().enumerate().all(fine) && (has_failed || !must_fail) {
        true => Ok(()),
        false => Err(format!("{outcomes:?}")),
    }
}

#[test]
fn every_run_of_several_processes_with_a_fault_ends_and_names_who_is_to_blame() {
    let runs = std::env::var("HELIO_FAULTS").map_or(300, |n| n.parse().expect("a number"));
    let seconds = if runs > 300 { u64::MAX } else { 20 };
    // What participants that are killed say is no news here.
    std::panic::set_hook(Box::new(|_| {}));
    let programs: Vec<Vec<Executable>> = (2..=4).map(compile).collect();
    let mut failures = Vec::new();
    // Among the first few hundred random plans there is next to none of these.
    for (processes, at) in [(2, 0), (4, 7)] {
        let plan = Plan { fault: Fault::Drop, replica: 1, at, processes };
        if let Err(error) = run(&programs[processes - 2], plan) {
            failures.push(format!("{plan:?}: {error}"));
        }
    }
    let (mut random, begin) = (Rand32::new(12), Instant::now());
    let (mut done, mut before) = (0, None);
    for i in 0..runs {
        if begin.elapsed() > Duration::from_secs(seconds) {
            break;
        }
        // Waits take their time, so they are fewer.
        let fault = match random.rand_range(0..192) {
            0 => Fault::Drop,
            1 | 2 => Fault::Cut(random.rand_range(0..60) as usize),
            3..50 => Fault::Delay(Duration::from_millis(random.rand_range(0..10).into())),
            50..90 => Fault::Late(random.rand_range(1..20) as usize),
            90..130 => Fault::Kill,
            _ => Fault::Fail,
        };
        let replica = random.rand_range(0..REPLICAS as u32) as usize;
        let at = random.rand_range(0..14) as usize;
        let processes = 2 + i % programs.len();
        let plan = Plan { fault, replica, at, processes };
        if let Err(error) = run(&programs[processes - 2], plan) {
            failures.push(format!("{plan:?}: {error}"));
        }
        done += 1;
        // The first runs start threads of the clients.
        if i == 20 {
            thread::sleep(Duration::from_millis(100));
            before = threads();
        }
    }
    let _ = std::panic::take_hook();
    println!("{done} runs of several processes with faults in {:?}", begin.elapsed());
    assert!(
        failures.is_empty(),
        "{} of {done}: {}",
        failures.len(),
        failures[..failures.len().min(9)].join("\n")
    );
    assert!(done > 20, "{done} runs");
    // Threads of other tests of this process come and go; there are none in this file.
    if done > 20 {
        let left = threads_at_most(before);
        assert!(left <= before, "threads were left: {left:?} after {before:?}");
    }
}
