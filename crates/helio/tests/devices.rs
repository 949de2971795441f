//! Programs on several devices: launches, collectives, errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use helio::{
    Array, Backend, Buffer, Client, ClientOptions, Code, CompileOptions, DeviceAssignment, Error,
    Executable, ExecuteOptions, Execution, Literal, RunOptions,
};

fn backends() -> [Backend; 2] {
    [Backend::Cpu, Backend::Interpreter]
}

const ADD: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";

fn client(devices: usize) -> Client {
    let mut options = ClientOptions::default();
    options.devices = devices;
    Client::new(&options)
}

fn compile(client: &Client, backend: Backend, assignment: &[usize], text: &str) -> Executable {
    let module = helio::parse(&format!("{ADD}\n{text}")).expect("a program");
    let mut options = CompileOptions::default();
    options.backend = backend;
    let assignment = DeviceAssignment::new(assignment.len(), 1, assignment.to_vec());
    options.assignment = Some(assignment.expect("devices"));
    client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"))
}

fn floats(client: &Client, device: usize, values: &[f32]) -> Buffer {
    let array = Array::new([values.len()], values.to_vec()).expect("an array");
    let device = client.device(device).expect("a device");
    client.buffer_from_array(&array, device).expect("memory")
}

fn values(buffer: &Buffer) -> Vec<f32> {
    buffer.to_array().expect("a value").values::<f32>().expect("floats").to_vec()
}

fn lists(buffers: &[Buffer]) -> Vec<Vec<&Buffer>> {
    buffers.iter().map(|buffer| vec![buffer]).collect()
}

fn first_line<T>(result: Result<T, Error>) -> (Code, String) {
    let error = result.err().expect("an error");
    (error.code(), error.detail().lines().next().unwrap_or_default().to_owned())
}

fn asynchronous() -> ExecuteOptions {
    let mut options = ExecuteOptions::default();
    options.asynchronous = true;
    options
}

const SUM: &str = "ENTRY e {
  x = f32[2] parameter(0)
  s = f32[2] all-reduce(x), to_apply=add
  ROOT y = f32[2] subtract(s, x)
}";

#[test]
fn replicas_run_on_the_devices_they_are_assigned_to() {
    for backend in backends() {
        let client = client(4);
        let program = compile(&client, backend.clone(), &[3, 1], SUM);
        assert_eq!(program.assignment().devices(), [3, 1]);
        let args = [floats(&client, 3, &[1.0, 2.0]), floats(&client, 1, &[10.0, 20.0])];
        for options in [ExecuteOptions::default(), asynchronous()] {
            let executions = program.execute_all(&lists(&args), &options).expect("it runs");
            let found = executions.iter().map(|Execution { outputs, done }| {
                assert_eq!(done.wait(), Ok(()));
                (outputs[0].device().id(), values(&outputs[0]))
            });
            let found: Vec<_> = found.collect();
            assert_eq!(found, [(3, vec![10.0, 20.0]), (1, vec![1.0, 2.0])]);
        }
        let literals = [[1f32, 2.0], [10.0, 20.0]]
            .map(|x| [Literal::array([2], x.to_vec()).expect("an array")]);
        let args: Vec<&[Literal]> = literals.iter().map(|args| &args[..]).collect();
        let found = program.run_all(&args, &RunOptions::default()).expect("it runs");
        let found = found.iter().map(|l| l.as_array().and_then(Array::as_slice::<f32>));
        assert_eq!(found.collect::<Vec<_>>(), [Some(&[10.0, 20.0][..]), Some(&[1.0, 2.0][..])]);
    }
}

#[test]
fn a_module_may_say_how_many_replicas_and_partitions_it_is_made_for() {
    let client = client(6);
    let text = "HloModule m, replica_count=3, num_partitions=2
        ENTRY e { r = u32[] replica-id() p = u32[] partition-id()
                  two = u32[] constant(2) m = u32[] multiply(r, two) ROOT i = u32[] add(m, p) }";
    let module = helio::parse(text).expect("a program");
    let program = client.compile(module, &CompileOptions::default()).expect("it compiles");
    let executions = program.execute_all(&vec![vec![]; 6], &ExecuteOptions::default());
    let executions = executions.expect("it runs");
    let ids = executions.iter().map(|e| e.outputs[0].to_array().expect("an id"));
    let ids: Vec<u32> = ids.map(|id| id.values::<u32>().expect("an id")[0]).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_begins() {
    let client = client(4);
    let text = format!(
        "HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}, replica_count=4\n{ADD}\n{SUM}"
    );
    let module = helio::parse(&text).expect("a program");
    for backend in backends() {
        let mut options = CompileOptions::default();
        options.backend = backend.clone();
        let program = client.compile(module.clone(), &options).expect("it compiles");
        let options = ExecuteOptions::default();
        let mut args: Vec<Buffer> = (0..4).map(|i| floats(&client, i, &[1.0, 2.0])).collect();
        let refused = |args: &[Buffer], wanted: &str| {
            for options in [&options, &asynchronous()] {
                let (code, said) = first_line(program.execute_all(&lists(args), options));
                assert_eq!((code, &*said), (Code::InvalidArgument, wanted));
            }
        };
        refused(&args[..3], "the program runs as 4 replicas, found arguments for 3 participants");
        args[3] = floats(&client, 3, &[1.0; 3]);
        refused(&args, "replica 3: array 0 must be f32[2], found f32[3]");
        args[3] = floats(&client, 2, &[1.0; 2]);
        refused(
            &args,
            "replica 3: array 0 is on device 2; the execution is on device 3 of the program's client",
        );
        // All arguments are given away, but none is as long as one cannot be had.
        args[3] = floats(&client, 3, &[3.0, 4.0]);
        args[3].delete();
        let (code, said) = first_line(program.execute_all(&lists(&args), &options));
        let wanted = "replica 3: array 0: the buffer of f32[2] has been deleted";
        assert_eq!((code, &*said), (Code::FailedPrecondition, wanted));
        assert!(args[..3].iter().all(|arg| !arg.is_deleted()));
        args[3] = floats(&client, 3, &[3.0, 4.0]);
        let executions = program.execute_all(&lists(&args), &options).expect("it runs");
        assert_eq!(values(&executions[3].outputs[0]), [3.0, 6.0]);
        assert!(args.iter().all(Buffer::is_deleted), "the module says so, whatever the engine");
        let one = [&args[0]];
        assert_eq!(first_line(program.execute(&one, &options)).0, Code::InvalidArgument);
        assert_eq!(first_line(program.run(&[])).0, Code::InvalidArgument);
    }
    let text = "HloModule m, replica_count=5 ENTRY e { ROOT r = u32[] replica-id() }";
    let program = client.compile(helio::parse(text).expect("text"), &Default::default());
    let program = program.expect("it compiles");
    assert_eq!(
        first_line(program.execute_all(&vec![vec![]; 5], &ExecuteOptions::default())),
        (Code::NotFound, "there is no device 4 of the 5 that the program needs, only 4".to_owned())
    );
}

/// Runs that end badly end everywhere, soon, and say why.
fn ends(
    program: &Executable,
    args: &[Vec<&Buffer>],
    options: &ExecuteOptions,
) -> (Vec<(Code, String)>, Error) {
    let mut options = options.clone();
    let sync = program.execute_all(args, &options).map(drop).expect_err("it fails");
    options.asynchronous = true;
    let executions = program.execute_all(args, &options).expect("accepted");
    let each = executions.iter().map(|execution| {
        let outcome = execution.done.wait();
        if let Some(output) = execution.outputs.first() {
            assert_eq!(output.ready().wait(), outcome);
        }
        first_line(outcome)
    });
    (each.collect(), sync)
}

#[test]
fn a_participant_that_fails_ends_the_others() {
    let options = ExecuteOptions::default();
    for backend in backends() {
        let client = client(3);
        client.custom_calls().register("fails", |_| Err(Error::invalid("as planned")));
        let text = "fail { x = f32[2] parameter(0) ROOT y = f32[2] custom-call(x), custom_call_target=\"fails\" }
            go { ROOT x = f32[2] parameter(0) }
            ENTRY e {
              x = f32[2] parameter(0)
              r = u32[] replica-id()
              one = u32[] constant(1)
              p = pred[] compare(r, one), direction=EQ
              y = f32[2] conditional(p, x, x), true_computation=fail, false_computation=go
              ROOT s = f32[2] all-reduce(y), to_apply=add
            }";
        let program = compile(&client, backend.clone(), &[0, 1, 2], text);
        let args = [0, 1, 2].map(|i| floats(&client, i, &[1.0, 2.0]));
        let (each, error) = ends(&program, &lists(&args), &options);
        assert_eq!(error.code(), Code::InvalidArgument, "{error}");
        assert!(
            error.to_string().contains("replica 1: ") && error.to_string().contains("as planned")
        );
        assert_eq!(each[1].0, Code::InvalidArgument);
        for other in [0, 2] {
            let (code, said) = &each[other];
            assert_eq!(*code, Code::Aborted);
            assert!(
                said.starts_with("replica 1 has failed: ") && said.contains("as planned"),
                "{said}"
            );
        }
    }
}

#[test]
fn participants_that_wait_in_vain_are_told_for_whom() {
    for backend in backends() {
        let client = client(2);
        // Replica 1 goes round once more than replica 0.
        let text = "cond { s = (u32[], f32[2]) parameter(0) i = u32[] get-tuple-element(s), index=0
              z = u32[] constant(0) ROOT p = pred[] compare(i, z), direction=GT }
            body { s = (u32[], f32[2]) parameter(0) i = u32[] get-tuple-element(s), index=0
              x = f32[2] get-tuple-element(s), index=1
              y = f32[2] all-reduce(x), to_apply=add
              o = u32[] constant(1) j = u32[] subtract(i, o)
              ROOT t = (u32[], f32[2]) tuple(j, y) }
            ENTRY e { x = f32[2] parameter(0) r = u32[] replica-id() o = u32[] constant(1)
              n = u32[] add(r, o) s = (u32[], f32[2]) tuple(n, x)
              w = (u32[], f32[2]) while(s), condition=cond, body=body
              ROOT y = f32[2] get-tuple-element(w), index=1 }";
        let program = compile(&client, backend.clone(), &[0, 1], text);
        let args = [0, 1].map(|i| floats(&client, i, &[1.0, 2.0]));
        let error = program.execute_all(&lists(&args), &ExecuteOptions::default());
        let (code, said) = first_line(error.map(drop));
        assert_eq!(code, Code::FailedPrecondition, "{said}");
        let wanted =
            "replica 1: replica 1 waits in y for replica 0, whose run has ended without it";
        assert_eq!(said, wanted);
        // Replicas go to two operations.
        let text = "a { x = f32[2] parameter(0) ROOT first = f32[2] all-reduce(x), to_apply=add }
            b { x = f32[2] parameter(0) ROOT second = f32[2] all-reduce(x), to_apply=add, channel_id=7 }
            ENTRY e { x = f32[2] parameter(0) r = u32[] replica-id() z = u32[] constant(0)
              p = pred[] compare(r, z), direction=EQ
              ROOT y = f32[2] conditional(p, x, x), true_computation=a, false_computation=b }";
        let program = compile(&client, backend.clone(), &[0, 1], text);
        let (each, _) = ends(&program, &lists(&args), &ExecuteOptions::default());
        for (code, said) in each {
            assert_eq!(code, Code::FailedPrecondition);
            assert!(said.starts_with("all participants wait for each other: "), "{said}");
            for part in ["replica 0 in first for replica 1", "replica 1 in second for replica 0"] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}

/// A program in which replica 1 computes for ever before it comes.
const LATE: &str = "yes { s = s32[] parameter(0) ROOT t = pred[] constant(true) }
    same { s = s32[] parameter(0) o = s32[] constant(1) ROOT a = s32[] add(s, o) }
    for-ever { x = f32[2] parameter(0) z = s32[] constant(0)
      w = s32[] while(z), condition=yes, body=same
      c = f32[] convert(w) b = f32[2] broadcast(c), dimensions={} ROOT y = f32[2] add(x, b) }
    go { ROOT x = f32[2] parameter(0) }
    ENTRY e { x = f32[2] parameter(0) r = u32[] replica-id() o = u32[] constant(1)
      p = pred[] compare(r, o), direction=EQ
      y = f32[2] conditional(p, x, x), true_computation=for-ever, false_computation=go
      ROOT s = f32[2] all-reduce(y), to_apply=add }";

#[test]
fn waits_end_when_they_are_cancelled_and_at_deadlines() {
    for backend in backends() {
        let client = client(2);
        let program = compile(&client, backend.clone(), &[0, 1], LATE);
        let args = [0, 1].map(|i| floats(&client, i, &[1.0, 2.0]));
        let begin = Instant::now();
        let mut options = asynchronous();
        options.run.limits.deadline = Some(begin + Duration::from_millis(100));
        let executions = program.execute_all(&lists(&args), &options).expect("accepted");
        let outcomes: Vec<_> = executions.iter().map(|e| first_line(e.done.wait())).collect();
        let is_late = |code| matches!(code, Code::DeadlineExceeded | Code::Aborted);
        assert!(outcomes.iter().all(|&(code, _)| is_late(code)), "{outcomes:?}");
        assert!(outcomes.iter().any(|&(code, _)| code == Code::DeadlineExceeded), "{outcomes:?}");
        let cancel = Arc::new(AtomicBool::new(false));
        let mut options = asynchronous();
        options.run.limits.cancel = Some(cancel.clone());
        let executions = program.execute_all(&lists(&args), &options).expect("accepted");
        thread::sleep(Duration::from_millis(50));
        cancel.store(true, Ordering::Relaxed);
        let outcomes: Vec<_> = executions.iter().map(|e| first_line(e.done.wait())).collect();
        let is_ended = |code| matches!(code, Code::Cancelled | Code::Aborted);
        assert!(outcomes.iter().all(|&(code, _)| is_ended(code)), "{outcomes:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        // The devices are free again.
        let sum = compile(&client, backend.clone(), &[0, 1], SUM);
        let executions = sum.execute_all(&lists(&args), &ExecuteOptions::default());
        assert_eq!(values(&executions.expect("it runs")[0].outputs[0]), [1.0, 2.0]);
    }
}

#[test]
fn a_program_without_results_reports_its_end() {
    let client = client(1);
    client.custom_calls().register("fails", |_| Err(Error::invalid("as planned")));
    for backend in backends() {
        let text = "ENTRY e { x = f32[2] parameter(0)
            c = () custom-call(x), custom_call_target=\"fails\", custom_call_has_side_effect=true
            ROOT t = () tuple() }";
        let program = compile(&client, backend.clone(), &[0], text);
        let args = [floats(&client, 0, &[1.0, 2.0])];
        let options = asynchronous();
        let executions = program.execute_all(&lists(&args), &options).expect("accepted");
        assert!(executions[0].outputs.is_empty());
        let (code, said) = first_line(executions[0].done.wait());
        assert_eq!((code, said.contains("as planned")), (Code::InvalidArgument, true), "{said}");
    }
}

#[test]
fn synchronous_executions_wait_their_turn() {
    let client = client(1);
    let program = compile(
        &client,
        Backend::Cpu,
        &[0],
        "ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] add(x, x) }",
    );
    let x = floats(&client, 0, &[1.0, 2.0]);
    let (promised, promise) =
        client.promised_buffer(x.shape(), client.default_device()).expect("its own device");
    let first = program.execute(&[&promised], &asynchronous()).expect("accepted").remove(0);
    let done = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let (program, x, done) = (&program, &x, done.clone());
        let second = scope.spawn(move || {
            let y = program.execute(&[x], &ExecuteOptions::default()).expect("it runs").remove(0);
            done.store(true, Ordering::SeqCst);
            values(&y)
        });
        thread::sleep(Duration::from_millis(50));
        assert!(!first.ready().is_ready());
        promise.fill(client.memory().copy_of(&[0; 8]).map_err(Error::from)).expect("it fits");
        assert_eq!(values(&first), [0.0, 0.0]);
        assert_eq!(second.join().expect("no panic"), [2.0, 4.0]);
    });
    assert!(done.load(Ordering::SeqCst));
    // Who listens to the end of an execution works as the device, and must not wait for it.
    let (heard, hear) = std::sync::mpsc::channel();
    let (promised, promise) =
        client.promised_buffer(x.shape(), client.default_device()).expect("its own device");
    let first = program.execute(&[&promised], &asynchronous()).expect("accepted").remove(0);
    let (again, x) = (program.clone(), x.clone());
    first.ready().on_ready(move |_| {
        let outcome = again.execute(&[&x], &ExecuteOptions::default());
        heard.send(outcome.map(drop).map_err(|e| e.code())).expect("somebody listens");
    });
    promise.fill(client.memory().copy_of(&[0; 8]).map_err(Error::from)).expect("it fits");
    assert_eq!(hear.recv(), Ok(Err(Code::FailedPrecondition)));
}

/// Two programs with collectives, launched from two threads on the same devices at once.
fn race(devices: usize, launches: usize) {
    let client = client(devices);
    let ids: Vec<usize> = (0..devices).collect();
    let backwards: Vec<usize> = ids.iter().rev().copied().collect();
    let twice = "ENTRY e { x = f32[2] parameter(0) a = f32[2] all-reduce(x), to_apply=add
        b = f32[2] multiply(a, x) ROOT c = f32[2] all-reduce(b), to_apply=add }";
    let gather = "ENTRY e { x = f32[2] parameter(0)
        g = f32[COUNT] all-gather(x), dimensions={0}
        z = f32[] constant(0) ROOT s = f32[] reduce(g, z), dimensions={0}, to_apply=add }"
        .replace("COUNT", &(2 * devices).to_string());
    let programs = [
        compile(&client, Backend::Cpu, &ids, twice),
        compile(&client, Backend::Cpu, &backwards, &gather),
    ];
    thread::scope(|scope| {
        for (program, asynchronous) in programs.iter().zip([true, false]) {
            let client = &client;
            scope.spawn(move || {
                let assigned = program.assignment().devices();
                let given = assigned.iter().enumerate();
                let args = given.map(|(i, &id)| floats(client, id, &[i as f32, 1.0]));
                let args: Vec<Buffer> = args.collect();
                let mut options = ExecuteOptions::default();
                options.asynchronous = asynchronous;
                options.run.limits.deadline = Some(Instant::now() + Duration::from_secs(500));
                let mut expected: Option<Vec<Vec<f32>>> = None;
                for _ in 0..launches {
                    let executions = program.execute_all(&lists(&args), &options);
                    let executions = executions.unwrap_or_else(|e| panic!("{e}"));
                    let found = executions.iter().map(|e| values(&e.outputs[0])).collect();
                    let expected = expected.get_or_insert_with(|| Clone::clone(&found));
                    assert_eq!(*expected, found);
                }
                let count = devices as f32;
                let sum = count * (count - 1.0) / 2.0;
                let expected = expected.expect("some launches");
                let wanted =
                    if asynchronous { vec![sum * sum, count * count] } else { vec![sum + count] };
                assert_eq!(expected, vec![wanted; devices]);
            });
        }
    });
}

#[test]
fn programs_launched_at_once_do_not_lock_each_other() {
    race(2, 10_000);
    race(4, 200);
}

/// Reductions of large arrays, in pieces that each participant folds for all: what each gives is in the
/// order of the group, 2, 0, 1, for every size and for several operands.
#[test]
fn large_reductions_are_folded_in_pieces_in_the_order_of_the_group() {
    // 16 MiB and more are written past the cache.
    for sizes in [[3, 70_001], [65_536, 131_073], [300_000, 4_200_001]] {
        let client = client(3);
        let [a, b] = sizes;
        let text = format!(
            "sub {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] subtract(a, b) }}
             ENTRY e {{ x = f32[{a}] parameter(0) y = f32[{b}] parameter(1)
               ROOT r = (f32[{a}], f32[{b}]) all-reduce(x, y), to_apply=sub, replica_groups={{{{2,0,1}}}} }}"
        );
        let program = compile(&client, Backend::Cpu, &[0, 1, 2], &text);
        assert!(program.interpreted().is_empty(), "{:?}", program.interpreted());
        let value =
            |replica: usize, i: usize| ((i % 1000 + 1) * [10_000, 3, 100_000][replica]) as f32;
        let given = |replica: usize| {
            sizes.map(|size| {
                let values: Vec<f32> = (0..size).map(|i| value(replica, i)).collect();
                floats(&client, replica, &values)
            })
        };
        let buffers = [0, 1, 2].map(given);
        let args: Vec<Vec<&Buffer>> = buffers.iter().map(|own| own.iter().collect()).collect();
        // Twice: what is kept from the first time serves the second.
        for _ in 0..2 {
            let executions = program.execute_all(&args, &ExecuteOptions::default());
            for execution in executions.expect("it runs") {
                for (output, size) in execution.outputs.iter().zip(sizes) {
                    let found = values(output);
                    assert_eq!(found.len(), size);
                    let wrong = found
                        .iter()
                        .enumerate()
                        .find(|&(i, &found)| found != value(2, i) - value(0, i) - value(1, i));
                    assert_eq!(wrong, None, "of {size}");
                }
            }
        }
    }
}
