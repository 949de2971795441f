//! Faults injected into runs of several processes, which are threads here, with wires that are queues:
//! whatever is cut off, delayed, dropped or killed, every run ends soon in all of them, and its error names
//! who is to blame.
//!
//! `HELIO_FAULTS=10000` runs as many.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use helio::{
    Client, ClientOptions, CollectivesLayer, CompileOptions, DeviceAssignment, Executable, Literal,
    Result, RunOptions,
};
use helio_processes::wire::{Faulty, Wire, among_threads};
use helio_processes::{Options, Processes};
use helio_testkit::faults::Fault::{Delay, Drop, Fail, Kill, KillReading};
use helio_testkit::faults::{self, Planned, Rounds, many};
use oorandom::Rand32;

const REPLICAS: usize = 4;

/// The large all-reduce is cut.
const ROUNDS: Rounds = Rounds { replicas: REPLICAS, rounds: 3, elements: 66000 };

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
    /// To the replica.
    Of(faults::Fault),
    /// Nothing comes from its process, nor to it, after so many messages.
    Cut(usize),
    /// Messages to its process are as many looks late.
    Late(usize),
}

/// A fault of one replica at the n-th meeting that it comes to, or of its process.
#[derive(Clone, Copy, Debug)]
struct Plan {
    fault: Fault,
    replica: usize,
    at: usize,
    processes: usize,
}

impl Plan {
    /// What happens to the replica, if it is the replica to which something happens.
    fn of_replica(&self) -> Option<faults::Plan> {
        match self.fault {
            Fault::Of(fault) => Some(faults::Plan { fault, replica: self.replica, at: self.at }),
            Fault::Cut(_) | Fault::Late(_) => None,
        }
    }
}

/// The program in each of so many processes.
fn compile(processes: usize) -> Vec<Executable> {
    let part = |rank: usize| {
        let here = rank * REPLICAS / processes..(rank + 1) * REPLICAS / processes;
        let mut options = ClientOptions::default();
        (options.devices, options.threads) = (here.len(), Some(1));
        let client = Client::new(&options);
        let mut options = CompileOptions::default();
        options.assignment = Some(DeviceAssignment::part(REPLICAS, 1, here).expect("a part"));
        let module = helio::parse(&ROUNDS.text()).expect("a program");
        client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"))
    };
    (0..processes).map(part).collect()
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
    let is_dropped = plan.fault == Fault::Of(Drop);
    options.limits.max_wait = Some(if is_dropped { MAX_WAIT } else { PATIENT });
    processes.connect(&mut options, program.assignment());
    if let Some(plan) = plan.of_replica() {
        let distributed = options.collectives.take().expect("what connects processes");
        options.collectives = Some(CollectivesLayer::new(move |inner| {
            Arc::new(Planned::new(distributed.over(inner), plan))
        }));
    }
    let args = program.assignment().here().map(|replica| [ROUNDS.arg(replica)]);
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

/// Runs with a fault. Errors: it did not end as it should.
fn run(programs: &[Executable], plan: Plan) -> std::result::Result<(), String> {
    let begin = Instant::now();
    let outcomes = outcomes(programs, plan);
    if begin.elapsed() > BOUND {
        return Err(format!("it took {:?}", begin.elapsed()));
    }
    let victim = process_of(plan.replica, plan.processes);
    let fine = |(rank, outcome): (usize, &Result<Vec<Literal>>)| {
        let text = match outcome {
            Err(error) => error.to_string(),
            // The fault came too late, or was none in the end.
            Ok(results) => return results.iter().all(|r| r.same_bits(&ROUNDS.result())),
        };
        match plan.fault {
            Fault::Of(_) => plan.of_replica().is_some_and(|plan| plan.is_told(&text)),
            Fault::Cut(_) if rank == victim => text.contains("has not been heard of"),
            Fault::Cut(_) => text.contains(&format!("process {victim} has not been heard of")),
            Fault::Late(_) => false,
        }
    };
    let may_end = !matches!(plan.fault, Fault::Of(fault) if !matches!(fault, Delay(_)));
    let must_fail = !may_end && plan.at < ROUNDS.meetings();
    let has_failed = outcomes.iter().any(Result::is_err);
    match outcomes.iter().enumerate().all(fine) && (has_failed || !must_fail) {
        true => Ok(()),
        false => Err(format!("{outcomes:?}")),
    }
}

#[test]
fn every_run_of_several_processes_with_a_fault_ends_and_names_who_is_to_blame() {
    let programs: Vec<Vec<Executable>> = (2..=4).map(compile).collect();
    // Among the first few hundred random plans there is next to none of these.
    let drops = [(2, 0), (4, 7), (4, 5)];
    let drop = |&(processes, at): &(usize, usize)| Plan {
        fault: Fault::Of(Drop),
        replica: 1,
        at,
        processes,
    };
    let mut random = Rand32::new(12);
    let mut plan = |i: usize| {
        // Waits take their time, so they are fewer.
        let fault = match random.rand_range(0..192) {
            0 => Fault::Of(Drop),
            1 | 2 => Fault::Cut(random.rand_range(0..60) as usize),
            3..50 => Fault::Of(Delay(Duration::from_millis(random.rand_range(0..10).into()))),
            50..90 => Fault::Late(random.rand_range(1..20) as usize),
            90..120 => Fault::Of(Kill),
            120..135 => Fault::Of(KillReading),
            _ => Fault::Of(Fail),
        };
        let replica = random.rand_range(0..REPLICAS as u32) as usize;
        let at = random.rand_range(0..14) as usize;
        Plan { fault, replica, at, processes: 2 + i % programs.len() }
    };
    many(Duration::from_secs(20), 20, |i| {
        let plan = drops.get(i).map_or_else(|| plan(i), drop);
        run(&programs[plan.processes - 2], plan).map_err(|error| format!("{plan:?}: {error}"))
    });
}
