//! Processes that are threads here, connected by TCP.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use helio::{
    Backend, Client, ClientOptions, Code, CompileOptions, DeviceAssignment, Error, Literal, Memory,
    Participant, Result, RunOptions,
};
use helio_processes::tcp::{Listener, TcpWire};
use helio_processes::wire::{Message, Wire};
use helio_processes::{Options, Processes};
use support::{numbers, rounds, run_part, sums, sums_of};

const PATIENCE: Duration = Duration::from_secs(60);

fn listeners(count: usize) -> Vec<Listener> {
    // The first ones listen on all addresses, as processes of several machines do.
    let host = |rank| (rank % 2 == 1).then_some("localhost");
    (0..count).map(|rank| Listener::new(host(rank)).unwrap()).collect()
}

/// The wires of as many processes.
fn wires(count: usize) -> Vec<TcpWire> {
    let listeners = listeners(count);
    let contacts: Vec<String> = listeners.iter().map(|l| l.contact().to_owned()).collect();
    thread::scope(|scope| {
        let ranks = listeners.into_iter().enumerate();
        let connect = ranks.map(|(rank, listener)| {
            let contacts = &contacts;
            scope.spawn(move || listener.connect(rank, contacts, PATIENCE))
        });
        let threads: Vec<_> = connect.collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    })
}

/// What each process does with the others.
fn each<T: Send>(
    count: usize,
    work: impl Fn(Processes) -> Result<T> + Sync,
) -> Vec<thread::Result<Result<T>>> {
    thread::scope(|scope| {
        let threads = wires(count).into_iter().map(|wire| {
            let work = &work;
            scope.spawn(move || work(Processes::new(Box::new(wire), Options::default())?))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    })
}

fn all<T>(outcomes: Vec<thread::Result<Result<T>>>) -> Vec<T> {
    outcomes.into_iter().map(|outcome| outcome.unwrap().unwrap()).collect()
}

fn patient() -> RunOptions {
    let mut options = RunOptions::default();
    options.limits.max_wait = Some(PATIENCE);
    options
}

#[test]
fn processes_give_the_bits_of_threads() {
    let args = sums_of(4);
    let part = |processes: Processes| {
        let found = run_part(&processes, &sums(), (4, 1), &args, Backend::Cpu, patient());
        processes.close();
        found
    };
    let [threads, two, four] = [1, 2, 4].map(|count| all(each(count, part)).concat());
    for found in [two, four] {
        assert!(found.len() == 4 && threads.iter().zip(&found).all(|(a, b)| a.same_bits(b)));
    }
}

/// A program that says who its participants are, by sums over all, and over pairs.
const WHO: &str = "add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
    ENTRY e { x = s32[2] parameter(0)
      all = s32[2] all-reduce(x), replica_groups={}, to_apply=add
      ROOT pair = s32[2] all-reduce(all), replica_groups={{0,3},{1,2}}, to_apply=add }";

#[test]
fn participants_run_where_they_are_placed() {
    // Runs of all processes and of some: each process counts those of its own.
    let runs: &[&[usize]] =
        &[&[0, 1, 2, 0], &[2, 0, 0, 2], &[1, 1, 0, 0], &[2, 1, 0, 1], &[0, 2, 2, 0], &[1, 0, 1, 0]];
    let part = |processes: Processes| {
        let mut options = ClientOptions::default();
        (options.devices, options.threads) = (2, Some(1));
        let client = Client::new(&options);
        let mut found = Vec::new();
        for (run, places) in runs.iter().enumerate() {
            let mut free = 0..;
            let rank = processes.rank();
            let device = |&place: &usize| (place == rank).then(|| free.next()).flatten();
            let devices: Vec<Option<usize>> = places.iter().map(device).collect();
            if devices.iter().all(Option::is_none) {
                continue;
            }
            let assignment = DeviceAssignment::placed(4, 1, &devices)?;
            let mut compile = CompileOptions::default();
            compile.assignment = Some(assignment.clone());
            let program = client.compile(helio::parse(WHO)?, &compile)?;
            let mut options = patient();
            processes.connect_placed(&mut options, &assignment, places.to_vec())?;
            let arg = |number: usize| [Literal::array([2], vec![1 << (8 * number), run as i32])];
            let args = assignment.here().map(|number| arg(number).into_iter().collect());
            let args = args.collect::<Result<Vec<Vec<Literal>>>>()?;
            let args: Vec<&[Literal]> = args.iter().map(Vec::as_slice).collect();
            found.extend(program.run_all(&args, &options)?.into_iter().map(|sum| (run, sum)));
        }
        processes.close();
        Ok(found)
    };
    let found = all(each(3, part)).concat();
    assert_eq!(found.len(), 4 * runs.len());
    for (run, sum) in found {
        let expected = Literal::array([2], vec![0x0202_0202, 8 * run as i32]).unwrap();
        assert_eq!(sum, expected, "run {run}");
    }
}

#[test]
fn places_fit_the_assignment() {
    let part = |processes: Processes| {
        let rank = processes.rank();
        let devices = [0, 1].map(|process| (process == rank).then_some(0));
        let assignment = DeviceAssignment::placed(2, 1, &devices)?;
        let connect = |places: &[usize]| {
            let mut options = RunOptions::default();
            let error = processes.connect_placed(&mut options, &assignment, places.to_vec());
            error.err().map(|error| error.detail().to_owned())
        };
        assert_eq!(connect(&[0, 1]), None);
        assert_eq!(connect(&[0]).unwrap(), "places of 1 participants, which are 2");
        assert_eq!(connect(&[0, 2]).unwrap(), "a participant in process 2, of 2 from 0");
        let error = connect(&[1, 0]).unwrap();
        assert!(error.starts_with("participant 0 runs in process 1; the assignment"), "{error}");
        processes.close();
        Ok(())
    };
    all(each(2, part));
}

#[test]
fn a_process_that_ends_ends_the_wait_of_others() {
    let begin = Instant::now();
    let part = |processes: Processes| {
        // As a process that is killed: its connections are closed, and it says nothing.
        assert!(processes.rank() != 2, "this one is gone");
        let args = numbers(&[1000; 3]);
        let outcome = run_part(&processes, &rounds(), (3, 1), &args, Backend::Cpu, patient());
        processes.abandon();
        outcome
    };
    // A panic has the third give up.
    let outcomes = each(3, part);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    for outcome in outcomes.into_iter().take(2) {
        let error = outcome.unwrap().expect_err("a process is gone");
        assert!(error.to_string().contains("replica"), "{error}");
    }
}

#[test]
fn a_connection_that_is_cut_tells_which_process_is_lost() {
    let mut wires = wires(2);
    let (gone, stays) = (wires.pop().unwrap(), wires.pop().unwrap());
    drop(gone);
    let processes = Processes::new(Box::new(stays), Options::default()).unwrap();
    let args = numbers(&[3; 2]);
    let outcome = run_part(&processes, &rounds(), (2, 1), &args, Backend::Cpu, patient());
    let error = outcome.expect_err("a process is gone").to_string();
    // Whether the loss is known before the wait for replica 1 begins, or ends it, is a matter of time.
    assert!(error.contains("replica 0"), "{error}");
    assert!(error.contains("replica 1"), "{error}");
    assert!(error.contains("process 1 has closed"), "{error}");
    assert_eq!(processes.lost().unwrap().0, 1);
    processes.abandon();
}

/// Sends a message of such a body, and looks until it has come.
fn pass(from: &mut TcpWire, to: &mut TcpWire, head: Vec<u8>, body: &[u8]) -> Message {
    let memory = Memory::new();
    let block = (!body.is_empty()).then(|| Arc::new(memory.copy_of(body).unwrap()));
    from.post(to.rank(), &Message { head, body: block }).unwrap();
    let begin = Instant::now();
    loop {
        assert!(from.poll(&memory).unwrap().is_none());
        if let Some((rank, message)) = to.poll(&memory).unwrap() {
            assert_eq!(rank, from.rank());
            return message.unwrap();
        }
        assert!(begin.elapsed() < PATIENCE);
    }
}

#[test]
fn messages_of_all_sizes_arrive_as_they_were_sent() {
    let mut wires = wires(2);
    let (mut b, mut a) = (wires.pop().unwrap(), wires.pop().unwrap());
    let bytes = |count: usize| (0..count).map(|i| ((i * i) >> 3) as u8).collect::<Vec<u8>>();
    // Around the sizes of the reader's buffer, and of what it takes at once.
    let sizes =
        [0, 1, 15, 16, 17, 65_519, 65_520, 65_521, 65_536, 200_000, (8 << 20) + 1, 40 << 20];
    for (i, &size) in sizes.iter().enumerate() {
        let heads = [0, 1, 40, 70_000];
        let (head, body) = (bytes(heads[i % heads.len()]), bytes(size));
        let found = pass(&mut a, &mut b, head.clone(), &body);
        assert_eq!(found.head, head);
        assert!(found.body.map_or(Vec::new(), |block| block.as_slice().to_vec()) == body, "{size}");
        pass(&mut b, &mut a, body[..size.min(1000)].to_vec(), &head);
    }
    assert!(a.has_sent() && b.has_sent());
}

#[test]
fn messages_that_make_no_sense_end_the_connection() {
    for sizes in [[u64::MAX, 0], [1 << 40, 5], [3, u64::MAX], [8, 1 << 60]] {
        let mut wires = wires(2);
        let (b, mut a) = (wires.pop().unwrap(), wires.pop().unwrap());
        let mut bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
        bytes.extend([7; 100]);
        let stream = b.into_stream(0).unwrap();
        (&stream).write_all(&bytes).unwrap();
        let (memory, begin) = (Memory::new(), Instant::now());
        let error = loop {
            match a.poll(&memory) {
                Ok(None) => assert!(begin.elapsed() < PATIENCE),
                Ok(Some((1, Err(error)))) | Err(error) => break error,
                Ok(Some(message)) => panic!("{message:?}"),
            }
        };
        assert!([Code::Unavailable, Code::ResourceExhausted].contains(&error.code()), "{error}");
    }
}

#[test]
fn whoever_else_connects_is_turned_away() {
    let listeners = listeners(2);
    let contacts: Vec<String> = listeners.iter().map(|l| l.contact().to_owned()).collect();
    let port = |rank: usize| -> SocketAddr {
        let address = contacts[rank].split_whitespace().last().unwrap();
        address.replace("[::1]", "127.0.0.1").parse().unwrap()
    };
    // Silent ones, some that talk of something else, and one that greets with a wrong token.
    let silent = TcpStream::connect(port(0)).unwrap();
    let mut other = TcpStream::connect(port(0)).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\nHost: a machine with a long name\r\n\r\n").unwrap();
    let mut wrong = TcpStream::connect(port(0)).unwrap();
    wrong.write_all(&[&b"helio/1\n"[..], &[1; 32], &1u64.to_le_bytes()].concat()).unwrap();
    let wires = thread::scope(|scope| {
        let ranks = listeners.into_iter().enumerate();
        let connect = ranks.map(|(rank, listener)| {
            let contacts = &contacts;
            scope.spawn(move || listener.connect(rank, contacts, PATIENCE))
        });
        let threads: Vec<_> = connect.collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(wires.len(), 2);
    for mut stranger in [silent, other, wrong] {
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        // Closed, in order or not.
        assert!(!matches!(stranger.read(&mut [0; 8]), Ok(1..)));
    }
}

#[test]
fn processes_that_do_not_come_are_named() {
    let connect = |contacts: &[&str], rank: usize| {
        let listener = Listener::new(Some("127.0.0.1")).unwrap();
        let own = listener.contact().to_owned();
        let contacts = contacts.iter().map(|text| match *text {
            "own" => own.clone(),
            "old" => own.replacen("0.", "9.", 1),
            "gone" => {
                let gone = Listener::new(Some("127.0.0.1")).unwrap();
                gone.contact().to_owned()
            }
            text => text.to_owned(),
        });
        let contacts: Vec<String> = contacts.collect();
        let error = listener.connect(rank, &contacts, Duration::from_millis(200)).unwrap_err();
        (error.code(), error.detail().to_owned())
    };
    let (code, detail) = connect(&["own", "gone"], 0);
    assert_eq!((code, &*detail), (Code::DeadlineExceeded, "process 1 has not connected in time"));
    let (code, detail) = connect(&["gone", "own"], 1);
    assert!(
        code == Code::Unavailable && detail.starts_with("process 0: cannot be reached: 127."),
        "{detail}"
    );
    let (code, detail) = connect(&["old", "own"], 1);
    assert!(code == Code::InvalidArgument && detail.contains("this one is of 0."), "{detail}");
    for (contacts, rank) in [(&["", "own"], 1), (&["own", "gone"], 1), (&["own", "gone"], 2)] {
        assert!(connect(contacts, rank).1.contains(['0', '1', '2']));
    }
    assert!(Listener::new(Some("no such host")).is_err());
}

#[test]
fn a_participant_alone_needs_no_other() {
    let part = |processes: Processes| {
        let assignment = DeviceAssignment::placed(1, 1, &[Some(0)])?;
        assert_eq!(assignment.participant(0), Participant::from(0));
        let program = helio::parse("ENTRY e { ROOT x = f32[] parameter(0) }")?;
        let mut compile = CompileOptions::default();
        compile.assignment = Some(assignment);
        let program = Client::default().compile(program, &compile)?;
        let result = program.run_all(&[&[Literal::scalar(2f32)]], &RunOptions::default())?;
        processes.close();
        result.into_iter().next().ok_or_else(|| Error::internal("no result"))
    };
    assert_eq!(all(each(2, part)), vec![Literal::scalar(2f32); 2]);
}
