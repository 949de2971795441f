//! Collectives among threads: how long a small all-reduce takes, and how fast a large one is beside the
//! memory traffic that it needs.
//!
//! `cargo bench -p helio --bench collectives [-- --json]`
//!
//! Times are the least of many, since what disturbs only adds. Latency is that of one of 2000 all-reduces
//! in a loop, without what the loop takes. A large all-reduce of two reads and writes as many bytes as two
//! threads that copy an array of the same size each: that is what it is compared with.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use helio::{
    Array, Buffer, Client, ClientOptions, CompileOptions, DeviceAssignment, Executable,
    ExecuteOptions, Keep,
};

/// All-reduces in a loop.
const ROUNDS: usize = 2000;

const MIB: usize = 1 << 20;

fn program(client: &Client, replicas: usize, text: &str) -> Executable {
    let add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";
    let module = helio::parse(&format!("{add}\n{text}")).expect("a program");
    let mut options = CompileOptions::default();
    options.assignment = Some(DeviceAssignment::iota(replicas, 1).expect("a few devices"));
    client.compile(module, &options).unwrap_or_else(|e| panic!("{e:?}"))
}

/// The least time of a run on an array of `size` floats for each replica.
fn least(client: &Client, program: &Executable, size: usize, budget: Duration) -> Duration {
    let buffers = (0..program.assignment().replicas()).map(|replica| {
        let array = Array::new([size], vec![replica as f32; size]).expect("an array");
        let device = client.device(replica).expect("a device");
        client.buffer_from_array(&array, device).expect("memory")
    });
    let buffers: Vec<Buffer> = buffers.collect();
    let args: Vec<Vec<&Buffer>> = buffers.iter().map(|buffer| vec![buffer]).collect();
    let mut options = ExecuteOptions::default();
    options.keep = Keep::All;
    repeated(budget, || {
        let executions = program.execute_all(&args, &options).expect("it runs");
        black_box(executions);
    })
}

fn repeated(budget: Duration, mut f: impl FnMut()) -> Duration {
    let (mut least, begin) = (Duration::MAX, Instant::now());
    while begin.elapsed() < budget || least == Duration::MAX {
        let start = Instant::now();
        f();
        least = least.min(start.elapsed());
    }
    least
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

/// The least time in which two threads copy an array of these bytes each.
fn copies(bytes: usize, budget: Duration) -> Duration {
    let mut arrays: Vec<[Vec<u8>; 2]> = (0..2).map(|i| [vec![i; bytes], vec![1; bytes]]).collect();
    repeated(budget, || {
        thread::scope(|scope| {
            for [from, to] in &mut arrays {
                scope.spawn(|| to.copy_from_slice(black_box(from)));
            }
        });
    })
}

fn main() {
    let is_json = std::env::args().any(|arg| arg == "--json");
    let mut options = ClientOptions::default();
    options.devices = 8;
    let client = Client::new(&options);
    let second = Duration::from_secs(1);
    let mut lines: Vec<(String, f64, &str)> = Vec::new();
    let empty =
        least(&client, &program(&client, 2, &looped("y = f32[1] add(x, x)")), 1, second / 2);
    for replicas in [2, 4, 8] {
        let text = looped("y = f32[1] all-reduce(x), to_apply=add");
        let time = least(&client, &program(&client, replicas, &text), 1, second * 2);
        let each = time.saturating_sub(empty).as_secs_f64() / ROUNDS as f64 * 1e6;
        lines.push((format!("all-reduce of 4 bytes, {replicas} replicas"), each, "us"));
    }
    for (name, operation) in [
        ("all-reduce", "ROOT y = f32[16777216] all-reduce(x), to_apply=add"),
        ("all-gather", "ROOT y = f32[33554432] all-gather(x), dimensions={0}"),
        (
            "collective-permute",
            "ROOT y = f32[16777216] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
        ),
    ] {
        let text = format!("ENTRY e {{ x = f32[16777216] parameter(0) {operation} }}");
        let time = least(&client, &program(&client, 2, &text), 16 * MIB, second * 3);
        lines.push((format!("{name} of 64 MiB, 2 replicas"), time.as_secs_f64() * 1e3, "ms"));
    }
    let copied = copies(64 * MIB, second * 2).as_secs_f64() * 1e3;
    lines.push(("two threads copy 64 MiB each".to_owned(), copied, "ms"));
    for (name, value, unit) in lines {
        match is_json {
            true => println!("{{\"name\": \"{name}\", \"{unit}\": {value:.4}}}"),
            false => println!("{name:40} {value:10.3} {unit}"),
        }
    }
}
