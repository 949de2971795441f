//! Processes that are threads here, with a wire that is a queue: what is above wires, without MPI.

mod support;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use helio::ir::text::print_literal;
use helio::{Backend, Code, Error, Literal, Memory, Result, RunOptions};
use helio_processes::wire::{Arrival, Faulty, Message, Wire, among_threads};
use helio_processes::{Options, Processes};
use helio_testkit::collectives::model::Counts;
use helio_testkit::collectives::{Kind, Program, elements, program};
use support::{Known, numbers, rounds, run_part, sums, sums_of, values, values_in_rounds};

/// How processes of these tests watch each other.
fn options(silence: Duration) -> Options {
    let mut options = Options::default();
    options.silence = silence;
    options
}

/// What each process of a run gives.
fn run(
    wires: Vec<Box<dyn Wire>>,
    text: &str,
    counts: (usize, usize),
    args: &[Vec<Literal>],
    backend: Backend,
    (max_wait, silence): (Duration, Duration),
) -> Vec<Result<Vec<Literal>>> {
    thread::scope(|scope| {
        let each = wires.into_iter().map(|wire| {
            let backend = backend.clone();
            scope.spawn(move || {
                let processes = Processes::new(wire, options(silence))?;
                let mut run = RunOptions::default();
                run.limits.max_wait = Some(max_wait);
                let outcome = run_part(&processes, text, counts, args, backend, run);
                match outcome.is_ok() {
                    true => processes.close(),
                    false => processes.abandon(),
                }
                outcome
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn boxed(count: usize) -> Vec<Box<dyn Wire>> {
    among_threads(count).into_iter().map(|wire| Box::new(wire) as Box<dyn Wire>).collect()
}

const PATIENT: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(60));

/// Runs a program of known results in so many processes. Errors: it gives something else.
fn check(program: &Program, processes: usize, backend: Backend) -> std::result::Result<(), String> {
    let known = Known::new(program)?;
    let Counts { replicas, partitions } = program.counts;
    let counts = (replicas, partitions);
    let outcomes = run(boxed(processes), &program.text, counts, &known.args, backend, PATIENT);
    let found = outcomes.into_iter().collect::<Result<Vec<_>>>().map_err(|e| e.to_string())?;
    known.compare(0, &found.concat())
}

#[test]
fn collectives_among_processes_give_what_a_direct_computation_gives() {
    const COUNTS: [(usize, usize); 5] = [(2, 1), (4, 1), (8, 1), (2, 2), (1, 4)];
    let (mut ran, mut failures) = (0, Vec::new());
    for (i, kind) in Kind::ALL.into_iter().enumerate() {
        for (j, element) in elements().into_iter().enumerate() {
            let k = (i + j) % COUNTS.len();
            let (replicas, partitions) = COUNTS[k];
            let program = program(kind, element, Counts { replicas, partitions }, j as u64);
            let processes = [2, 3, replicas * partitions][j % 3].min(replicas * partitions);
            let backend = if j % 4 == 0 { Backend::Interpreter } else { Backend::Cpu };
            ran += 1;
            if let Err(error) = check(&program, processes, backend) {
                failures.push(format!("{processes} processes: {error}\n{}", program.text));
            }
        }
    }
    println!("{ran} collectives among processes");
    assert!(failures.is_empty(), "{} of {ran}:\n{}", failures.len(), failures.join("\n"));
    assert!(ran > 100);
}

#[test]
fn several_processes_give_the_bits_of_threads() {
    let args = sums_of(4);
    let by = |processes, backend| {
        let outcomes = run(boxed(processes), &sums(), (4, 1), &args, backend, PATIENT);
        outcomes.into_iter().collect::<Result<Vec<_>>>().unwrap().concat()
    };
    let threads = by(1, Backend::Cpu);
    for (processes, backend) in
        [(2, Backend::Cpu), (3, Backend::Cpu), (4, Backend::Cpu), (2, Backend::Interpreter)]
    {
        let found = by(processes, backend);
        let same = threads.iter().zip(&found).all(|(a, b)| a.same_bits(b));
        assert!(same && found.len() == 4, "{processes} processes");
    }
}

#[test]
fn channels_lead_to_other_processes() {
    let text = "ENTRY e { x = f32[3] parameter(0) t = token[] after-all()
      s = (f32[3], u32[], token[]) send(x, t), channel_id=1,
        frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
      d = token[] send-done(s), channel_id=1
      r = (f32[3], u32[], token[]) recv(t), channel_id=1,
        frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,0}}}
      w = (f32[3], token[]) recv-done(r), channel_id=1
      ROOT y = f32[3] get-tuple-element(w), index=0 }";
    let args: Vec<Vec<Literal>> =
        (0..3).map(|i| vec![Literal::array([3], vec![i as f32; 3]).unwrap()]).collect();
    for processes in 1..=3 {
        let outcomes = run(boxed(processes), text, (3, 1), &args, Backend::Cpu, PATIENT);
        let found = outcomes.into_iter().collect::<Result<Vec<_>>>().unwrap().concat();
        let found: Vec<String> = found.iter().map(print_literal).collect();
        assert_eq!(found, ["{2, 2, 2}", "{0, 0, 0}", "{1, 1, 1}"], "{processes} processes");
    }
}

/// The errors of all processes, all of which must have one.
#[track_caller]
fn errors(outcomes: Vec<Result<Vec<Literal>>>) -> Vec<Error> {
    let error = |outcome: Result<Vec<Literal>>| outcome.expect_err("an error");
    outcomes.into_iter().map(error).collect()
}

#[test]
fn who_comes_more_often_than_others_is_told_for_whom_it_waits() {
    for processes in [2, 4] {
        let args = numbers(&[5, 5, 9, 5]);
        let (begin, backend) = (Instant::now(), Backend::Cpu);
        let outcomes = run(boxed(processes), &rounds(), (4, 1), &args, backend, PATIENT);
        let errors: Vec<Error> = outcomes.into_iter().filter_map(Result::err).collect();
        assert!(begin.elapsed() < Duration::from_secs(20));
        let cause = errors.iter().find(|e| e.code() != Code::Aborted).expect("a cause").to_string();
        assert!(cause.contains("replica 2 waits in total for replica"), "{cause}");
        assert!(cause.contains("whose run has ended without it"), "{cause}");
    }
}

#[test]
fn who_does_not_come_ends_the_wait_of_others() {
    let wait = Duration::from_millis(700);
    // Replica 3 goes round a loop of its own first, for longer than the others wait.
    let text = rounds().replace(
        "ENTRY e { n = u32[] parameter(0)",
        "c2 { i = u32[] parameter(0) m = u32[] constant(4000000000)
           ROOT p = pred[] compare(i, m), direction=LT }
         b2 { i = u32[] parameter(0) o = u32[] constant(1) ROOT j = u32[] add(i, o) }
         ENTRY e { n0 = u32[] parameter(0) k = u32[] constant(3)
           long = u32[] constant(4000000000) three = pred[] compare(n0, k), direction=EQ
           zero = u32[] constant(0) start = u32[] select(three, zero, long)
           spun = u32[] while(start), condition=c2, body=b2
           less = u32[] subtract(spun, long) n = u32[] add(n0, less)",
    );
    let begin = Instant::now();
    let args = numbers(&[5, 5, 5, 3]);
    let limits = (wait, PATIENT.1);
    let outcomes = run(boxed(2), &text, (4, 1), &args, Backend::Interpreter, limits);
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let errors = errors(outcomes);
    let cause = errors.iter().find(|e| e.code() == Code::DeadlineExceeded).expect("a cause");
    assert!(cause.detail().contains("waits in total for replica"), "{cause}");
    assert!(cause.detail().contains("nobody has moved for 700ms"), "{cause}");
}

#[test]
fn a_replica_that_fails_ends_all_others() {
    // What is fed to nobody fails in replica 3.
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      yes { x = f32[] parameter(0) ROOT y = f32[] custom-call(x), custom_call_target=\"none\" }
      no { x = f32[] parameter(0) ROOT y = f32[] copy(x) }
      ENTRY e { n = u32[] parameter(0) k = u32[] constant(3) x = f32[] constant(1)
        p = pred[] compare(n, k), direction=EQ
        y = f32[] conditional(p, x, x), true_computation=yes, false_computation=no
        ROOT r = f32[] all-reduce(y), to_apply=add }";
    let args = numbers(&[1, 1, 1, 3]);
    let outcomes = run(boxed(4), text, (4, 1), &args, Backend::Cpu, PATIENT);
    let errors = errors(outcomes);
    assert!(errors[3].to_string().contains("none"), "{}", errors[3]);
    for error in &errors[..3] {
        assert_eq!(error.code(), Code::Aborted);
        assert!(error.detail().contains("replica 3 has failed"), "{error}");
    }
}

/// Who waits for each other in this program, in so many processes: `waits`, and no others.
#[track_caller]
fn expect_mutual_waits(text: &str, replicas: u32, processes: usize, waits: &[&str]) {
    let args = numbers(&(0..replicas).collect::<Vec<_>>());
    let counts = (replicas as usize, 1);
    let begin = Instant::now();
    let outcomes = run(boxed(processes), text, counts, &args, Backend::Cpu, PATIENT);
    // It is not the time that ends them.
    assert!(begin.elapsed() < PATIENT.0, "{:?}", begin.elapsed());
    let errors = errors(outcomes);
    let cause = errors.iter().find(|e| e.code() == Code::FailedPrecondition).expect("a cause");
    let found = cause.detail();
    assert!(
        found.contains(&format!("{} participants wait for each other", waits.len())),
        "{found}"
    );
    assert!(waits.iter().all(|wait| found.contains(wait)), "{found}");
}

#[test]
fn who_waits_for_each_other_in_different_operations_is_told_at_once() {
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      one { x = f32[] parameter(0) ROOT y = f32[] all-reduce(x), to_apply=add }
      two { x = f32[] parameter(0) ROOT z = f32[] all-reduce(x), to_apply=add }
      ENTRY e { n = u32[] parameter(0) k = u32[] constant(0) x = f32[] constant(1)
        p = pred[] compare(n, k), direction=EQ
        ROOT r = f32[] conditional(p, x, x), true_computation=one, false_computation=two }";
    let waits = ["replica 0 in y for replica 1", "replica 1 in z for replica 0"];
    expect_mutual_waits(text, 2, 2, &waits);
}

#[test]
fn a_circle_of_waits_is_told_of_wherever_its_participants_run() {
    let pair = |name: &str, groups: &str| {
        format!(
            "{name} {{ x = f32[] parameter(0)
               ROOT in_{name} = f32[] all-reduce(x), replica_groups={groups}, to_apply=add }}"
        )
    };
    let text = format!(
        "add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         {} {} {}
         ENTRY e {{ n = u32[] parameter(0) i = s32[] convert(n) x = f32[] constant(1)
           ROOT r = f32[] conditional(i, x, x, x), branch_computations={{zero, one, two}} }}",
        pair("zero", "{{0,1},{2}}"),
        pair("one", "{{1,2},{0}}"),
        pair("two", "{{2,0},{1}}")
    );
    let waits = [
        "replica 0 in in_zero for replica 1",
        "replica 1 in in_one for replica 2",
        "replica 2 in in_two for replica 0",
    ];
    expect_mutual_waits(&text, 3, 3, &waits);
    expect_mutual_waits(&text, 3, 2, &waits);
}

#[test]
fn who_waits_for_a_value_of_one_that_waits_for_it_is_told_at_once() {
    let waits = ["replica 0 in w for replica 1", "replica 1 in z for replica 0"];
    expect_mutual_waits(&values(), 2, 2, &waits);
}

#[test]
fn who_waits_for_a_value_of_one_that_has_ended_is_told_so() {
    let args = numbers(&[0, 2]);
    let begin = Instant::now();
    let outcomes = run(boxed(2), &values(), (2, 1), &args, Backend::Cpu, PATIENT);
    assert!(begin.elapsed() < PATIENT.0, "{:?}", begin.elapsed());
    let error = outcomes[0].as_ref().expect_err("nothing was sent");
    assert_eq!(error.code(), Code::FailedPrecondition);
    let wait = "replica 0 waits in w for replica 1, whose run has ended without it";
    assert!(error.detail().contains(wait), "{error}");
}

#[test]
fn who_waits_for_a_value_for_too_long_is_told_where_its_wait_leads() {
    // Replica 1 waits for replica 2, which goes round a loop of its own for longer than others wait.
    let text = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
      gets { x = f32[] parameter(0) t = token[] after-all()
        r = (f32[], u32[], token[]) recv(t), channel_id=1,
          frontend_attributes={_xla_send_recv_source_target_pairs={{1,0}}}
        w = (f32[], token[]) recv-done(r), channel_id=1 ROOT v = f32[] get-tuple-element(w), index=0 }
      gives { x = f32[] parameter(0)
        z = f32[] all-reduce(x), replica_groups={{1,2},{0}}, to_apply=add
        t = token[] after-all() s = (f32[], u32[], token[]) send(z, t), channel_id=1,
          frontend_attributes={_xla_send_recv_source_target_pairs={{1,0}}}
        d = token[] send-done(s), channel_id=1 ROOT q = f32[] copy(z) }
      yes { x = f32[] parameter(0) ROOT p = pred[] constant(true) }
      same { x = f32[] parameter(0) y = f32[] cosine(x) ROOT z = f32[] copy(y) }
      spins { x = f32[] parameter(0) ROOT y = f32[] while(x), condition=yes, body=same }
      ENTRY e { n = u32[] parameter(0) i = s32[] convert(n) x = f32[] constant(1)
        ROOT r = f32[] conditional(i, x, x, x), branch_computations={gets, gives, spins} }";
    let args = numbers(&[0, 1, 2]);
    let limits = (Duration::from_millis(1500), PATIENT.1);
    let outcomes = run(boxed(3), text, (3, 1), &args, Backend::Interpreter, limits);
    let errors = errors(outcomes);
    let cause = errors.iter().find(|e| e.code() == Code::DeadlineExceeded).expect("a cause");
    let found = cause.detail();
    assert!(
        found.contains("replica 1 in z for replica 2; replica 2 waits for no other")
            || found.contains("replica 1 waits in z for replica 2; replica 2 waits for no other"),
        "{cause}"
    );
}

#[test]
fn who_waits_for_a_value_of_a_process_that_is_lost_is_told_so() {
    let silence = Duration::from_millis(1500);
    let wires = among_threads(2).into_iter().enumerate().map(|(rank, wire)| {
        let posts = if rank == 1 { 30 } else { usize::MAX };
        Box::new(Faulty::new(wire, posts, 0)) as Box<dyn Wire>
    });
    let args = numbers(&[100_000; 2]);
    let limits = (PATIENT.0, silence);
    let outcomes = run(wires.collect(), &values_in_rounds(), (2, 1), &args, Backend::Cpu, limits);
    let error = errors(outcomes).swap_remove(0).to_string();
    assert!(error.contains("replica 0 waits in w for replica 1"), "{error}");
    assert!(error.contains("process 1 has not been heard of for 1.5s"), "{error}");
}

/// A wire that notes how it is closed.
struct Closing<W>(W, Arc<Mutex<Vec<bool>>>);

impl<W: Wire> Wire for Closing<W> {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn post(&mut self, to: usize, message: &Message) -> Result<()> {
        self.0.post(to, message)
    }

    fn poll(&mut self, memory: &Memory) -> Result<Option<(usize, Arrival)>> {
        self.0.poll(memory)
    }

    fn has_sent(&self) -> bool {
        self.0.has_sent()
    }

    fn close(self: Box<Self>, in_order: bool) {
        self.1.lock().unwrap().push(in_order);
        Box::new(self.0).close(in_order);
    }
}

#[test]
fn nobody_ends_in_order_when_one_has_given_up() {
    for (gives_up, in_order) in [(None, vec![true; 3]), (Some(1), vec![false; 3])] {
        let closed = Arc::default();
        thread::scope(|scope| {
            for (rank, wire) in among_threads(3).into_iter().enumerate() {
                let wire = Closing(wire, Arc::clone(&closed));
                scope.spawn(move || {
                    let processes = Processes::new(Box::new(wire), options(PATIENT.1)).unwrap();
                    match gives_up == Some(rank) {
                        true => processes.abandon(),
                        false => processes.close(),
                    }
                });
            }
        });
        assert_eq!(*closed.lock().unwrap(), in_order, "{gives_up:?}");
    }
}

/// Wires of four processes, of which one is cut after so many messages.
fn cut(victim: usize, posts: usize, delay: usize) -> Vec<Box<dyn Wire>> {
    let wire = |(rank, wire)| {
        let posts = if rank == victim { posts } else { usize::MAX };
        Box::new(Faulty::new(wire, posts, delay)) as Box<dyn Wire>
    };
    among_threads(4).into_iter().enumerate().map(wire).collect()
}

#[test]
fn a_process_that_is_lost_is_named_by_those_who_wait_for_it() {
    let silence = Duration::from_millis(1500);
    for (victim, posts) in [(1, 0), (2, 7), (3, 20), (0, 50)] {
        let begin = Instant::now();
        let args = numbers(&[40; 4]);
        let limits = (Duration::from_secs(30), silence);
        let outcomes = run(cut(victim, posts, 0), &rounds(), (4, 1), &args, Backend::Cpu, limits);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        let errors = errors(outcomes);
        for (rank, error) in errors.iter().enumerate().filter(|&(rank, _)| rank != victim) {
            let text = error.to_string();
            let named = text
                .contains(&format!("replica {rank} waits in total for replica {victim}"))
                && text.contains(&format!("process {victim} has not been heard of for 1.5s"));
            // Or another was faster.
            let aborted = text.contains(&format!("process {victim} has not been heard of"));
            assert!(named || aborted, "{victim} is cut, {rank} says: {text}");
        }
        assert!(errors.iter().any(|e| e.to_string().contains("waits in total for")));
    }
}

#[test]
fn delays_change_nothing() {
    let args = numbers(&[10; 4]);
    for delay in [1, 50] {
        let outcomes =
            run(cut(0, usize::MAX, delay), &rounds(), (4, 1), &args, Backend::Cpu, PATIENT);
        let found = outcomes.into_iter().collect::<Result<Vec<_>>>().unwrap().concat();
        assert!(found.iter().all(|value| print_literal(value) == "1048576"), "{found:?}");
    }
}

#[test]
fn parts_are_gathered_and_given_to_all() {
    let wait = Duration::from_secs(20);
    thread::scope(|scope| {
        for wire in boxed(3) {
            scope.spawn(move || {
                let processes = Processes::new(wire, Options::default()).unwrap();
                let rank = processes.rank() as u8;
                for round in 0..3u8 {
                    let mine = vec![rank; usize::from(rank + round) * 1000];
                    let all = processes.all_gather(&mine, wait).unwrap();
                    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
                    let part = |r: u8| vec![r; usize::from(r + round) * 1000];
                    assert_eq!(all, [part(0), part(1), part(2)]);
                    let gathered = processes.gather(&mine, wait).unwrap();
                    let gathered = gathered.map(|all| all.into_iter().map(Result::unwrap));
                    let all = (rank == 0).then_some(all);
                    assert_eq!(gathered.map(Iterator::collect), all);
                }
                // Who ends is not waited for.
                if rank == 2 {
                    return processes.close();
                }
                let all = processes.all_gather(&[rank], wait).unwrap();
                assert_eq!(all[2].as_ref().unwrap_err().detail(), "process 2 has ended");
                processes.close();
            });
        }
    });
}

#[test]
fn who_ends_waits_for_one_that_is_busy_for_longer_than_it_may_be_silent() {
    let silence = Duration::from_secs(2);
    let closed = Arc::default();
    thread::scope(|scope| {
        for (rank, wire) in among_threads(2).into_iter().enumerate() {
            let wire = Closing(wire, Arc::clone(&closed));
            scope.spawn(move || {
                let processes = Processes::new(Box::new(wire), options(silence)).unwrap();
                if rank == 0 {
                    thread::sleep(3 * silence);
                }
                processes.close();
            });
        }
    });
    assert_eq!(*closed.lock().unwrap(), [true; 2]);
}
