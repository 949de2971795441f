//! Faults injected into runs of several participants: whatever is dropped, delayed or killed, every run
//! ends soon, on all devices, and its error names who is to blame.
//!
//! `HELIO_FAULTS=10000` runs as many.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use helio::{
    Backend, Client, ClientOptions, Code, CollectivesLayer, CompileOptions, DeviceAssignment,
    Executable, Literal, RunOptions,
};
use helio_testkit::faults::{Fault, Plan, Planned, Rounds, threads, threads_at_most};
use oorandom::Rand32;

const REPLICAS: usize = 3;

/// How long a run may wait for others who do not move.
const MAX_WAIT: Duration = Duration::from_millis(400);

/// How long a run may take to its end, whatever happens: machines are busy.
const BOUND: Duration = Duration::from_secs(20);

/// Four rounds: with large arrays when compiled, and with small ones when interpreted.
fn compile(client: &Client, backend: Backend) -> (Rounds, Executable) {
    let elements = if matches!(backend, Backend::Interpreter) { 9 } else { 90000 };
    let rounds = Rounds { replicas: REPLICAS, rounds: 4, elements };
    let mut options = CompileOptions::default();
    options.backend = backend;
    options.assignment = Some(DeviceAssignment::iota(REPLICAS, 1).expect("a few devices"));
    let module = helio::parse(&rounds.text()).expect("a program");
    let program = client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"));
    (rounds, program)
}

/// Runs with a fault. Errors: it did not end as it should.
fn run((rounds, program): &(Rounds, Executable), plan: Plan) -> Result<(), String> {
    let mut options = RunOptions::default();
    options.limits.max_wait = Some(MAX_WAIT);
    options.collectives =
        Some(CollectivesLayer::new(move |inner| Arc::new(Planned::new(inner, plan))));
    let args: Vec<[Literal; 1]> = (0..REPLICAS).map(|replica| [rounds.arg(replica)]).collect();
    let args: Vec<&[Literal]> = args.iter().map(|args| &args[..]).collect();
    let begin = Instant::now();
    let outcome = program.run_all(&args, &options);
    if begin.elapsed() > BOUND {
        return Err(format!("it took {:?}", begin.elapsed()));
    }
    let fine = match (plan.fault, &outcome) {
        (_, Ok(results)) => {
            let may_end = matches!(plan.fault, Fault::Delay(_)) || plan.at >= rounds.meetings();
            may_end && results.iter().all(|result| result.same_bits(&rounds.result()))
        }
        (Fault::Drop | Fault::Delay(_), Err(e)) => {
            e.code() == Code::DeadlineExceeded && plan.is_told(e.detail())
        }
        (_, Err(e)) => {
            e.detail().starts_with(&format!("replica {}: ", plan.replica))
                && plan.is_told(e.detail())
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
