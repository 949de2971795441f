//! Exchange between two processes: how long a permutation and an all-reduce of arrays of several sizes take,
//! beside MPI's own calls in the same run.
//!
//! `cargo bench -p helio-processes --features mpi --bench exchange [-- --json]`, which starts itself by `mpirun`
//! (with the words of `HELIO_MPIRUN`, if there are any, as further options).
//!
//! Times are the least of many, since what disturbs only adds; each is that of one of a number of rounds.
//! MPI's calls are the pattern of the OSU benchmarks: an exchange with the other process, and a sum over
//! both. Helio's are a loop in a program, without what the loop takes by itself.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, ExecuteOptions, Keep,
    Result,
};
use helio_processes::{Bare, Options, Processes};

/// What is exchanged.
struct Size {
    name: &'static str,
    floats: usize,
    /// How often in one run.
    rounds: usize,
    /// How many runs.
    times: usize,
}

const SIZES: [Size; 4] = [
    Size { name: "4 bytes", floats: 1, rounds: 2000, times: 20 },
    Size { name: "64 KiB", floats: 16 << 10, rounds: 400, times: 20 },
    Size { name: "1 MiB", floats: 256 << 10, rounds: 50, times: 20 },
    Size { name: "64 MiB", floats: 16 << 20, rounds: 2, times: 10 },
];

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

/// The least time of a run of a loop with `step` in each round, which makes `y` of `x`.
fn program(processes: &Processes, size: &Size, step: &str) -> Result<Duration> {
    let Size { floats, rounds, times, .. } = *size;
    let text = format!(
        "add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
         cond {{ s = (s32[], f32[{floats}]) parameter(0) i = s32[] get-tuple-element(s), index=0
           n = s32[] constant({rounds}) ROOT p = pred[] compare(i, n), direction=LT }}
         body {{ s = (s32[], f32[{floats}]) parameter(0) i = s32[] get-tuple-element(s), index=0
           x = f32[{floats}] get-tuple-element(s), index=1 y = f32[{floats}] {step}
           o = s32[] constant(1) j = s32[] add(i, o)
           ROOT t = (s32[], f32[{floats}]) tuple(j, y) }}
         ENTRY e {{ x = f32[{floats}] parameter(0) z = s32[] constant(0)
           s = (s32[], f32[{floats}]) tuple(z, x)
           w = (s32[], f32[{floats}]) while(s), condition=cond, body=body
           ROOT r = f32[{floats}] get-tuple-element(w), index=1 }}"
    );
    let module = helio::parse(&text)?;
    let assignment: DeviceAssignment = processes.assign(processes.size(), 1)?;
    let mut client = ClientOptions::default();
    client.devices = assignment.here().len();
    let client = Client::new(&client);
    let mut compile = CompileOptions::default();
    compile.assignment = Some(assignment.clone());
    let program = client.compile(module, &compile)?;
    let array = Array::new([floats], vec![0f32; floats])?;
    let buffer: Buffer = client.buffer_from_array(&array, client.default_device())?;
    let mut options = ExecuteOptions::default();
    options.keep = Keep::All;
    processes.connect(&mut options.run, &assignment);
    least(times, || program.execute_all(&[vec![&buffer]], &options).map(|e| drop(black_box(e))))
}

/// The microseconds of each of so many rounds.
fn each(time: Duration, rounds: usize) -> f64 {
    time.as_secs_f64() * 1e6 / rounds as f64
}

/// For each size, an exchange and a sum over both processes by MPI's own calls.
fn bare(bare: &mut Bare) -> Result<Vec<[f64; 2]>> {
    let (rank, size) = bare.place();
    let other = size - 1 - rank;
    let most = SIZES.iter().map(|size| size.floats).max().unwrap_or(0);
    let (from, mut to) = (vec![0f32; most], vec![0f32; most]);
    let (bytes, mut room) = (vec![1u8; 4 * most], vec![0u8; 4 * most]);
    let measured = SIZES.iter().map(|&Size { floats, rounds, times, .. }| {
        let range = ..4 * floats;
        let exchange = least(times, || {
            (0..rounds).try_for_each(|_| bare.exchange(&bytes[range], &mut room[range], other))
        })?;
        let sum = least(times, || {
            (0..rounds).try_for_each(|_| bare.sum(&from[..floats], &mut to[..floats]))
        })?;
        Ok([exchange, sum].map(|time| each(time, rounds)))
    });
    measured.collect()
}

fn measure(is_json: bool) -> Result<()> {
    let mut own = Bare::new()?;
    let rank = own.place().0;
    let bare = bare(&mut own)?;
    let processes = own.connect(Options::default())?;
    let empty = program(&processes, &SIZES[0], "add(x, x)")?;
    let permute = "collective-permute(x), source_target_pairs={{0,1},{1,0}}";
    let mut lines = Vec::new();
    for (size, bare) in SIZES.iter().zip(bare) {
        let alone = empty * size.rounds as u32 / SIZES[0].rounds as u32;
        for ((name, step), bare) in
            [("exchange", permute), ("all-reduce", "all-reduce(x), to_apply=add")]
                .into_iter()
                .zip(bare)
        {
            let time = program(&processes, size, step)?.saturating_sub(alone);
            lines.push((format!("{name} of {}", size.name), bare, each(time, size.rounds)));
        }
    }
    processes.close();
    for (name, bare, helio) in lines.into_iter().filter(|_| rank == 0) {
        match is_json {
            true => println!(
                "{{\"name\": \"{name}\", \"mpi_us\": {bare:.4}, \"helio_us\": {helio:.4}}}"
            ),
            false => println!("{name:25} MPI {bare:12.2} us   helio {helio:12.2} us"),
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
