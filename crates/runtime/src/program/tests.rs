//! Programs whose code is Rust, so that Miri sees what the executor does.

use helio_limits::{Limits, Meter};

use super::*;
use crate::{Memory, Pool};

/// Code that adds a number to each byte of a read parameter, and writes the sums to another.
struct Add {
    by: u8,
    signature: Signature,
}

impl Add {
    fn new(bytes: usize, by: u8, shared: bool, unit_bytes: Option<usize>) -> Self {
        let param = |write: bool| RawParam { bytes, read: !write, write, align: 1 };
        let shared = if shared { vec![(0, 1)] } else { Vec::new() };
        let signature = Signature {
            name: "add".to_owned(),
            params: vec![param(false), param(true)],
            shared,
            unit_bytes,
            range: bytes as i64,
            grain: 4,
            scratch_bytes: 0,
        };
        Add { by, signature }
    }
}

// SAFETY: the signature is one value, and `call` reads and writes byte `n` of the two parameters for
// number `n`, reading it before it is written.
unsafe impl RawKernel for Add {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    unsafe fn call(
        &self,
        at: &[*mut u8],
        piece: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        let at = crate::jit::Addresses(at);
        threads.for_ranges((piece.end - piece.start) as usize, 8, &|numbers| {
            for n in numbers {
                let n = piece.start as usize + n;
                let (from, to) = (at.get()[0].wrapping_add(n), at.get()[1].wrapping_add(n));
                // SAFETY: the caller's promise: byte `n` of both may be accessed, by this task alone.
                unsafe { to.write(from.read().wrapping_add(self.by)) };
            }
        });
        Ok(())
    }
}

/// Bytes times two, in rows, as often as it says.
struct Double {
    row_bytes: usize,
    times: usize,
}

impl SliceKernel for Double {
    fn name(&self) -> &str {
        "double"
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        _: Threads<'_>,
    ) -> Result<(), Failure> {
        for (to, from) in outputs[0].iter_mut().zip(inputs[0]) {
            *to = from.wrapping_mul(2);
        }
        Ok(())
    }

    fn row_bytes(&self) -> Option<usize> {
        Some(self.row_bytes)
    }

    fn run_finished(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        finish: Finish<'_>,
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        threads.for_chunks(output, self.row_bytes, &|row, to| {
            let from = &inputs[0][row * self.row_bytes..];
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.wrapping_mul(2));
            finish(row * self.row_bytes, to);
        });
        for _ in 1..self.times {
            self.run(inputs, &mut [&mut *output], threads)?;
            finish(0, output);
        }
        Ok(())
    }
}

/// The host of programs that ask it for nothing but copies.
struct Copies;

impl HostCalls for Copies {
    fn call(
        &mut self,
        _: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        outputs[0].copy_from_slice(inputs[0]);
        Ok(())
    }
}

const BYTES: usize = 64;

fn slots(homes: &[Home]) -> Vec<Slot> {
    homes.iter().map(|&home| Slot { bytes: BYTES, home }).collect()
}

fn step(action: Action) -> Step {
    Step { id: StepId(0), action }
}

fn raw(code: Add, slots: [u32; 2]) -> Step {
    step(Action::Raw { kernel: Arc::new(code), slots: slots.map(SlotId).to_vec() })
}

fn finished(code: Add, (row_bytes, times): (usize, usize), slots: [u32; 2]) -> Step {
    step(Action::Finished(Box::new(Finished {
        kernel: Arc::new(Double { row_bytes, times }),
        inputs: vec![SlotId(0)],
        output: SlotId(1),
        code: Arc::new(code),
        slots: slots.map(SlotId).to_vec(),
    })))
}

/// An argument of 64 bytes and a block that is the result.
fn parts(steps: Vec<Step>) -> ProgramParts {
    ProgramParts {
        arguments: vec![ArgumentInfo { bytes: BYTES, written: false }],
        slots: slots(&[Home::Argument(0), Home::Block(0)]),
        results: vec![SlotId(1)],
        steps,
        ..ProgramParts::default()
    }
}

fn refused(parts: ProgramParts) -> String {
    StepProgram::new(parts).expect_err("it is refused")
}

fn run(parts: ProgramParts, argument: &[u8]) -> Vec<u8> {
    let program = StepProgram::new(parts).unwrap();
    program.replay().unwrap();
    let (memory, pool, meter) = (Memory::new(), Pool::new(2), Arc::default());
    let mut results = [Threads::single(), pool.threads(2)].map(|threads| {
        let run =
            Run { memory: &memory, threads, meter: &meter, host: &mut Copies, observer: None };
        let results = program.run(vec![Argument::Lent(argument)], run).unwrap();
        results[0].as_slice().to_vec()
    });
    assert_eq!(results[0], results[1]);
    std::mem::take(&mut results[0])
}

#[test]
fn code_that_finishes_rows_does_so_in_place() {
    let argument: Vec<u8> = (0..BYTES as u8).collect();
    // (The code runs on four bytes at a time: rows begin and end within them.)
    for (row_bytes, times) in [1, 3, 5, 8, 11, 16, 63, BYTES].iter().flat_map(|&n| [(n, 1), (n, 2)])
    {
        // One byte of the argument off, so that it is copied first.
        let lent = [&[0], &argument[..]].concat();
        let step = finished(Add::new(BYTES, 3, true, Some(1)), (row_bytes, times), [1, 1]);
        let expected: Vec<u8> = argument.iter().map(|v| v * 2 + 3).collect();
        assert_eq!(run(parts(vec![step]), &lent[1..]), expected);
    }
    let code = |unit| Add::new(BYTES, 3, true, unit);
    let no_units = refused(parts(vec![finished(code(None), (8, 1), [1, 1])]));
    assert!(no_units.contains("does not go from row to row"), "{no_units}");
    let elsewhere = refused(parts(vec![finished(code(Some(1)), (8, 1), [1, 0])]));
    assert!(elsewhere.contains("written"), "{elsewhere}");
    let others = refused(parts(vec![finished(code(Some(2)), (8, 1), [1, 1])]));
    assert!(others.contains("64 bytes, finished 2 at a time"), "{others}");
}

#[test]
fn one_slot_for_two_parameters_is_what_the_code_allows() {
    let twice = |shared| {
        let first = raw(Add::new(BYTES, 1, false, None), [0, 1]);
        parts(vec![first, raw(Add::new(BYTES, 1, shared, None), [1, 1])])
    };
    assert_eq!(run(twice(true), &[5; BYTES]), [7; BYTES]);
    assert!(refused(twice(false)).contains("overlaps"));
    let constant = parts(vec![raw(Add::new(BYTES, 1, false, None), [1, 0])]);
    assert!(refused(constant).contains("must not be"));
    let mut misaligned = Add::new(BYTES, 1, false, None);
    misaligned.signature.params[0].align = 64;
    assert!(refused(parts(vec![raw(misaligned, [0, 1])])).contains("aligned to 64"));
    let large = raw(Add::new(BYTES + 1, 1, false, None), [0, 1]);
    assert!(refused(parts(vec![large])).contains("smaller than parameter"));
}

#[test]
fn loops_exchange_blocks_and_branches_choose() {
    let add = |by, slots| raw(Add::new(BYTES, by, false, None), slots);
    // Slots: the argument, two blocks that change places, and a place in the arena.
    let body = vec![
        add(1, [1, 3]),
        step(Action::Copy { from: SlotId(3), to: SlotId(2) }),
        step(Action::Branch(Box::new(Branch {
            selector: Selector::Pred(SlotId(0)),
            branches: vec![vec![add(2, [3, 2])], vec![add(9, [3, 2])]],
        }))),
    ];
    let each = While {
        cond: Vec::new(),
        go: SlotId(0),
        trips: Some(3),
        body,
        rotate: vec![vec![SlotId(1), SlotId(2)]],
    };
    let copy = step(Action::Host { call: 0, inputs: vec![SlotId(0)], outputs: vec![SlotId(1)] });
    let parts = ProgramParts {
        slots: slots(&[Home::Argument(0), Home::Block(0), Home::Block(1), Home::Arena(64)]),
        arena_bytes: 128,
        ..parts(vec![copy, step(Action::While(Box::new(each)))])
    };
    assert_eq!(run(parts, &[1; BYTES]), [10; BYTES]);
}

#[test]
fn parts_of_slots_are_slots() {
    let index =
        |bytes, is_signed| PartIndex { index: SlotId(0), bytes, is_signed, most: 3, stride: 16 };
    let find = |offset, indices| {
        step(Action::Part(Box::new(Part { of: SlotId(0), part: SlotId(2), offset, indices })))
    };
    let program = |find| {
        let mut slots = slots(&[Home::Argument(0), Home::Block(0), Home::Part(SlotId(0))]);
        (slots[1].bytes, slots[2].bytes) = (16, 16);
        let copy = step(Action::Copy { from: SlotId(2), to: SlotId(1) });
        ProgramParts { slots, ..parts(vec![find, copy]) }
    };
    let mut argument: Vec<u8> = (0..BYTES as u8).collect();
    let first = |parts, argument: &[u8]| usize::from(run(parts, argument)[0]);
    assert_eq!(first(program(find(48, vec![])), &argument), 48);
    // Indices are clamped: the first bytes of the argument are 0, then 2, then less than zero or many.
    for (begin, signed, unsigned) in
        [([0; 8], 0, 0), ([2, 0, 0, 0, 0, 0, 0, 0], 2, 2), ([255; 8], 0, 3)]
    {
        argument[..8].copy_from_slice(&begin);
        for bytes in [1, 2, 4, 8] {
            for (is_signed, want) in [(true, signed), (false, unsigned)] {
                let found = run(program(find(0, vec![index(bytes, is_signed)])), &argument);
                assert_eq!(found, argument[16 * want..][..16]);
            }
        }
    }
    assert!(refused(program(find(49, vec![]))).contains("reaches beyond"));
    assert!(refused(program(find(16, vec![index(4, true)]))).contains("reaches beyond"));
    assert!(refused(program(find(0, vec![index(3, true)]))).contains("index of 3 bytes"));
    let other = |home| {
        let mut parts = program(find(0, vec![]));
        parts.slots[2].home = home;
        refused(parts)
    };
    assert!(other(Home::Part(SlotId(1))).contains("no part of"));
    assert!(other(Home::Part(SlotId(2))).contains("does not fit its home"));
    // What is a part of a slot overlaps it, and is not written.
    let mut overlapping = program(find(0, vec![]));
    overlapping.steps[1] = step(Action::Copy { from: SlotId(1), to: SlotId(2) });
    assert!(refused(overlapping).contains("must not be"));
}

#[test]
fn parts_follow_blocks_that_are_exchanged() {
    // Slots: the argument, two blocks that change places, and the second half of the first of them.
    let half = BYTES / 2;
    let part = Part { of: SlotId(1), part: SlotId(3), offset: half, indices: Vec::new() };
    let find = || step(Action::Part(Box::new(part.clone())));
    let program = |body| {
        let mut slots = slots(&[Home::Argument(0), Home::Block(0), Home::Block(1)]);
        slots.push(Slot { bytes: half, home: Home::Part(SlotId(1)) });
        slots.push(Slot { bytes: half, home: Home::Block(2) });
        let each = While {
            cond: Vec::new(),
            go: SlotId(0),
            trips: Some(2),
            body,
            rotate: vec![vec![SlotId(1), SlotId(2)]],
        };
        let copy =
            |to| step(Action::Host { call: 0, inputs: vec![SlotId(0)], outputs: vec![SlotId(to)] });
        let steps = vec![copy(1), copy(2), step(Action::While(Box::new(each)))];
        ProgramParts { slots, results: vec![SlotId(4)], ..parts(steps) }
    };
    let add = || raw(Add::new(BYTES, 1, false, None), [1, 2]);
    let read = || step(Action::Copy { from: SlotId(3), to: SlotId(4) });
    assert_eq!(run(program(vec![find(), add(), read()]), &[1; BYTES]), [2; BYTES / 2]);
    // The second iteration reads what was found in the first.
    let stale = StepProgram::new(program(vec![read(), find(), add()])).unwrap();
    assert!(stale.replay().unwrap_err().contains("whose memory is another's"));
    let written = StepProgram::new(program(vec![
        find(),
        step(Action::Copy { from: SlotId(2), to: SlotId(1) }),
        read(),
        add(),
    ]));
    assert!(written.unwrap().replay().unwrap_err().contains("whose memory is another's"));
}

#[test]
fn parts_stay_where_they_were_found_when_another_loop_exchanges_blocks() {
    // Slots: the argument, two pairs of blocks that change places, and the second half of one of them.
    let half = BYTES / 2;
    let mut slots =
        slots(&[Home::Argument(0), Home::Block(0), Home::Block(1), Home::Block(2), Home::Block(3)]);
    slots.push(Slot { bytes: half, home: Home::Part(SlotId(1)) });
    slots.push(Slot { bytes: half, home: Home::Block(4) });
    let exchange = |a, b| {
        let each = While {
            cond: Vec::new(),
            go: SlotId(0),
            trips: Some(2),
            body: vec![raw(Add::new(BYTES, 1, false, None), [a, b])],
            rotate: vec![vec![SlotId(a), SlotId(b)]],
        };
        step(Action::While(Box::new(each)))
    };
    let copy = |from, to| step(Action::Copy { from: SlotId(from), to: SlotId(to) });
    let part = Part { of: SlotId(1), part: SlotId(5), offset: half, indices: Vec::new() };
    let find = step(Action::Part(Box::new(part)));
    let steps = vec![copy(0, 1), copy(0, 3), exchange(1, 2), find, exchange(3, 4), copy(5, 6)];
    let argument: Vec<u8> = (0..BYTES as u8).collect();
    let want: Vec<u8> = argument[half..].iter().map(|x| x + 2).collect();
    assert_eq!(
        run(ProgramParts { slots, results: vec![SlotId(6)], ..parts(steps) }, &argument),
        want
    );
}

#[test]
fn a_replay_follows_values_through_branches_that_exchange_blocks() {
    let copy = |from, to| step(Action::Copy { from: SlotId(from), to: SlotId(to) });
    let exchange = |body| While {
        cond: Vec::new(),
        go: SlotId(0),
        trips: Some(3),
        body,
        rotate: vec![vec![SlotId(1), SlotId(2)]],
    };
    // Either branch leaves its result in slot 1, one of them in the block that was slot 2's.
    let branch = |second: Vec<Step>| {
        step(Action::Branch(Box::new(Branch {
            selector: Selector::Pred(SlotId(0)),
            branches: vec![vec![copy(0, 1)], second],
        })))
    };
    let program = |second| {
        let slots = slots(&[Home::Argument(0), Home::Block(0), Home::Block(1)]);
        let parts = ProgramParts { slots, ..parts(vec![branch(second)]) };
        StepProgram::new(parts).unwrap()
    };
    let each = exchange(vec![copy(0, 2)]);
    let right = program(vec![copy(0, 1), step(Action::While(Box::new(each)))]);
    right.replay().unwrap();
    // The result is not written in one branch.
    assert!(program(vec![copy(0, 2)]).replay().unwrap_err().contains("the result reads SlotId(1)"));
    // What is exchanged was not written.
    let each = exchange(vec![copy(0, 1)]);
    let early = program(vec![step(Action::While(Box::new(each)))]);
    assert!(early.replay().unwrap_err().contains("a rotation reads SlotId(2)"));
}

#[test]
fn observers_see_every_step_and_errors_say_which() {
    struct Log(Vec<(u32, Vec<u8>)>);
    impl Observer for Log {
        fn before(&mut self, step: StepId) {
            self.0.push((step.0, Vec::new()));
        }
        fn after(&mut self, step: StepId, written: &[(SlotId, &[u8])]) {
            let firsts = written.iter().map(|(_, bytes)| bytes[0]);
            self.0.push((100 + step.0, firsts.collect()));
        }
    }
    let number = |id, step: Step| Step { id: StepId(id), ..step };
    let each = While {
        cond: Vec::new(),
        go: SlotId(0),
        trips: Some(2),
        body: vec![number(2, raw(Add::new(BYTES, 1, true, None), [1, 1]))],
        rotate: Vec::new(),
    };
    let steps = vec![
        number(0, raw(Add::new(BYTES, 3, false, None), [0, 1])),
        number(1, step(Action::While(Box::new(each)))),
    ];
    let program = StepProgram::new(parts(steps)).unwrap();
    let (memory, mut log) = (Memory::new(), Log(Vec::new()));
    let mut observed = |meter: &Arc<Meter>| {
        let run = Run {
            memory: &memory,
            threads: Threads::single(),
            meter,
            host: &mut Copies,
            observer: Some(&mut log),
        };
        program.run(vec![Argument::Lent(&[1; BYTES])], run).map(drop)
    };
    observed(&Arc::default()).unwrap();
    let stopped =
        observed(&Arc::new(Meter::new(Limits { max_steps: Some(10), ..Limits::default() })));
    assert!(matches!(stopped, Err(RunError::Stopped { at: Some(StepId(2)), .. })), "{stopped:?}");
    let all: Vec<(u32, &[u8])> = log.0.iter().map(|(id, bytes)| (*id, &bytes[..])).collect();
    let none: &[u8] = &[];
    assert_eq!(all[..4], [(0, none), (100, &[4]), (1, none), (2, none)]);
    assert_eq!(all[4..8], [(102, &[5][..]), (2, none), (102, &[6]), (101, none)]);
    assert_eq!(all[8..], [(0, none), (100, &[4]), (1, none)]);
}

/// Code that adds 3, and can be entered as machine code is.
#[cfg(target_arch = "x86_64")]
struct Entered(Add);

/// # Safety
/// There are two addresses, of as many bytes as the range has numbers, to be read and written.
#[cfg(target_arch = "x86_64")]
unsafe extern "sysv64" fn add_three(at: *const *mut u8, begin: i64, end: i64, _: *mut u8) {
    for n in begin as usize..end as usize {
        // SAFETY: the caller gives two addresses of as many bytes as the range has numbers.
        unsafe { (*at.add(1)).add(n).write((*at).add(n).read().wrapping_add(3)) };
    }
}

// SAFETY: as for `Add`, which adds 3, and `add_three` does the same.
#[cfg(target_arch = "x86_64")]
unsafe impl RawKernel for Entered {
    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    unsafe fn call(
        &self,
        at: &[*mut u8],
        piece: Range<i64>,
        threads: Threads<'_>,
    ) -> Result<(), CallError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.call(at, piece, threads) }
    }

    fn whole_code(&self) -> Option<WholeCode> {
        Some(WholeCode { entry: add_three, range: BYTES as i64 })
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn neighbouring_kernels_are_called_as_a_group() {
    let add = |id, slots: [u32; 2]| {
        let kernel = Arc::new(Entered(Add::new(BYTES, 3, false, None)));
        let slots = slots.map(SlotId).to_vec();
        Step { id: StepId(id), action: Action::Raw { kernel, slots } }
    };
    let each = While {
        cond: Vec::new(),
        go: SlotId(0),
        trips: Some(3),
        body: vec![add(3, [1, 2])],
        rotate: vec![vec![SlotId(1), SlotId(2)]],
    };
    let each = Step { id: StepId(2), action: Action::While(Box::new(each)) };
    let parts = ProgramParts {
        slots: slots(&[Home::Argument(0), Home::Block(0), Home::Block(1)]),
        ..parts(vec![add(0, [0, 1]), add(1, [1, 2]), each])
    };
    let program = StepProgram::new(parts).unwrap();
    let calls = |step: &Step| program.groups.of_first(step).map(|group| group.calls.len());
    let Action::While(each) = &program.parts.steps[2].action else { panic!("the loop") };
    let all: Vec<_> = program.parts.steps.iter().chain(&each.body).map(calls).collect();
    assert_eq!(all, [Some(2), None, None, Some(1)]);
    let run = |max_steps: Option<u64>| {
        let meter = Arc::new(Meter::new(Limits { max_steps, ..Limits::default() }));
        let (memory, threads, host) = (Memory::new(), Threads::single(), &mut Copies);
        let run = Run { memory: &memory, threads, meter: &meter, host, observer: None };
        let results = program.run(vec![Argument::Lent(&[5; BYTES])], run);
        results.map(|results| results[0].as_slice().to_vec())
    };
    // Where steps are limited they are taken one by one, and their tasks count as well.
    for max_steps in [None, Some(1000)] {
        assert_eq!(run(max_steps).unwrap(), [5 + 12; BYTES]);
    }
    assert!(matches!(run(Some(1)), Err(RunError::Stopped { at: Some(StepId(1)), .. })));
}
