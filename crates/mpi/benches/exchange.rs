//! Exchange between two processes: how long a small all-reduce takes and how fast a large one is, beside
//! MPI's own calls in the same run.
//!
//! `cargo bench -p helio-mpi --features mpi --bench exchange [-- --json]`, which starts itself by `mpirun`
//! (with the words of `HELIO_MPIRUN`, if there are any, as further options).
//!
//! Times are the least of many, since what disturbs only adds. MPI's calls are the pattern of the OSU
//! benchmarks: an exchange with the other process, and a sum over both. Latency of helio's is that of one
//! of 2000 all-reduces in a loop, without what the loop takes.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, ExecuteOptions, Keep,
    Result,
};
use helio_mpi::{Bare, Options, Processes};

const ROUNDS: usize = 2000;

/// The floats of 64 MiB.
const LARGE: usize = 16 << 20;

/// How often large arrays are exchanged.
const TIMES: usize = 15;

/// The least time of a number of calls.
fn least(times: usize, mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..times {
        let begin = Instant::now();
        f()?;
        least = least.min(begin.elapsed());
    }
    Ok(least)
}

/// The least time of a run on arrays of so many floats.
fn program(processes: &Processes, text: &str, floats: usize, times: usize) -> Result<Duration> {
    let add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";
    let module = helio::parse(&format!("{add}\n{text}"))?;
    let assignment: DeviceAssignment = processes.assign(processes.size(), 1)?;
    let mut client = ClientOptions::default();
    client.devices = assignment.here().len();
    let client = Client::new(&client);
    let mut compile = CompileOptions::default();
    compile.assignment = Some(assignment.clone());
    let program = client.compile(module, &compile)?;
    let array = Array::new([floats], vec![1f32; floats])?;
    let buffer: Buffer = client.buffer_from_array(&array, client.default_device())?;
    let mut options = ExecuteOptions::default();
    options.keep = Keep::All;
    processes.connect(&mut options.run, &assignment);
    least(times, || program.execute_all(&[vec![&buffer]], &options).map(|e| drop(black_box(e))))
}

/// A loop with `step` in each round, which makes `y` of `x`.
fn looped(step: &str) -> String {
    format!(
        "cond {{ s = (s32[], f32[1]) parameter(0) i = s32[] get-tuple-element(s), index=0
           n = s32[] constant({ROUNDS}) ROOT p = pred[] compare(i, n), direction=LT }}
         body {{ s = (s32[], f32[1]) parameter(0) i = s32[] get-tuple-element(s), index=0
           x = f32[1] get-tuple-element(s), index=1 {step}
           o = s32[] constant(1) j = s32[] add(i, o) ROOT t = (s32[], f32[1]) tuple(j, y) }}
         ENTRY e {{ x = f32[1] parameter(0) z = s32[] constant(0)
           s = (s32[], f32[1]) tuple(z, x) w = (s32[], f32[1]) while(s), condition=cond, body=body
           ROOT r = f32[1] get-tuple-element(w), index=1 }}"
    )
}

fn measure(is_json: bool) -> Result<()> {
    let mut bare = Bare::new()?;
    let (rank, size) = bare.place();
    let mut lines: Vec<(&str, f64, &str)> = Vec::new();
    let us = |time: Duration| time.as_secs_f64() * 1e6 / ROUNDS as f64;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (from, mut to) = (vec![1f32; LARGE], vec![0f32; LARGE]);
    let (bytes, mut room) = (vec![1u8; 4 * LARGE], vec![0u8; 4 * LARGE]);
    let other = size - 1 - rank;
    let time = least(20, || {
        (0..ROUNDS).try_for_each(|_| bare.exchange(&bytes[..4], &mut room[..4], other))
    })?;
    lines.push(("MPI: exchange of 4 bytes", us(time), "us"));
    let time = least(20, || (0..ROUNDS).try_for_each(|_| bare.sum(&from[..1], &mut to[..1])))?;
    lines.push(("MPI: all-reduce of 4 bytes", us(time), "us"));
    let time = least(TIMES, || bare.exchange(&bytes, &mut room, other))?;
    lines.push(("MPI: exchange of 64 MiB", ms(time), "ms"));
    let time = least(TIMES, || bare.sum(&from, &mut to))?;
    lines.push(("MPI: all-reduce of 64 MiB", ms(time), "ms"));
    let processes = bare.connect(Options::default())?;
    let empty = program(&processes, &looped("y = f32[1] add(x, x)"), 1, 20)?;
    let all_reduce = looped("y = f32[1] all-reduce(x), to_apply=add");
    let time = program(&processes, &all_reduce, 1, 20)?;
    lines.push(("helio: all-reduce of 4 bytes", us(time.saturating_sub(empty)), "us"));
    for (name, operation) in [
        (
            "helio: collective-permute of 64 MiB",
            "ROOT y = f32[16777216] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
        ),
        ("helio: all-reduce of 64 MiB", "ROOT y = f32[16777216] all-reduce(x), to_apply=add"),
    ] {
        let text = format!("ENTRY e {{ x = f32[16777216] parameter(0) {operation} }}");
        lines.push((name, ms(program(&processes, &text, LARGE, TIMES)?), "ms"));
    }
    processes.close();
    for (name, value, unit) in lines.into_iter().filter(|_| rank == 0) {
        match is_json {
            true => println!("{{\"name\": \"{name}\", \"{unit}\": {value:.4}}}"),
            false => println!("{name:40} {value:10.3} {unit}"),
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let has = |flag: &str| args.iter().any(|arg| arg == flag);
    if has("--worker") {
        return measure(has("--json"));
    }
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", "2"]);
    command.args(std::env::var("HELIO_MPIRUN").unwrap_or_default().split_whitespace());
    command.arg(&args[0]).arg("--worker").args(has("--json").then_some("--json"));
    let status = command.status();
    match status.is_ok_and(|status| status.success()) {
        true => Ok(()),
        false => Err(helio::Error::internal("mpirun failed")),
    }
}
