//! Faults injected into runs of several participants: whatever is dropped, delayed or killed, every run
//! ends soon, on all devices, and its error names who is to blame.
//!
//! `HELIO_FAULTS=10000` runs as many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helio::{
    Backend, Client, ClientOptions, Code, CollectivesLayer, CompileOptions, DeviceAssignment,
    Executable, Literal, RunOptions,
};
use helio_testkit::faults::{Fault, Plan, Planned, Rounds, many};
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
    let mut options = ClientOptions::default();
    options.devices = REPLICAS;
    let client = Client::new(&options);
    let victims = [Backend::Cpu, Backend::Interpreter].map(|backend| compile(&client, backend));
    let mut random = Rand32::new(7);
    many(Duration::from_secs(8), 30, |i| {
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
        run(victim, plan).map_err(|error| format!("{plan:?}: {error}"))
    });
}
