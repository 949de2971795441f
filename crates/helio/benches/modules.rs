//! Whole programs: the time to compile one and the time of a run, on one thread and on all.
//!
//! `cargo bench -p helio --bench modules [FILTER | MODULE.hlo …]`

use std::time::{Duration, Instant};

use helio::ir::AliasKind;
use helio::{
    Buffer, Client, ClientOptions, CompileOptions, ExecuteOptions, Keep, Literal, random_arguments,
};

/// Programs of a few kinds: bound by dispatch, by memory, by arithmetic, by a loop.
const MODULES: &[(&str, &str)] = &[
    ("scalar", "ENTRY e { x = f32[] parameter(0) ROOT y = f32[] add(x, x) }"),
    (
        "axpy_1M",
        "ENTRY e { a = f32[] parameter(0) x = f32[1048576] parameter(1) y = f32[1048576] parameter(2)
         s = f32[1048576] broadcast(a), dimensions={} t = f32[1048576] multiply(s, x)
         ROOT r = f32[1048576] add(t, y) }",
    ),
    (
        "tanh_1M",
        "ENTRY e { x = f32[1048576] parameter(0) ROOT y = f32[1048576] tanh(x) }",
    ),
    (
        "sort_by_magnitude_1M",
        "less { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] abs(a) d = f32[] abs(b)
         ROOT r = pred[] compare(c, d), direction=LT }
         ENTRY e { x = f32[1048576] parameter(0)
         ROOT s = f32[1048576] sort(x), dimensions={0}, to_apply=less }",
    ),
    (
        "softmax_1024x1024",
        "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }
         add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
         ENTRY e { x = f32[1024,1024] parameter(0) l = f32[] constant(-inf) z = f32[] constant(0)
         m = f32[1024] reduce(x, l), dimensions={1}, to_apply=max
         n = f32[1024,1024] broadcast(m), dimensions={0} d = f32[1024,1024] subtract(x, n)
         e = f32[1024,1024] exponential(d)
         s = f32[1024] reduce(e, z), dimensions={1}, to_apply=add
         t = f32[1024,1024] broadcast(s), dimensions={0} ROOT r = f32[1024,1024] divide(e, t) }",
    ),
    (
        "mlp_128x512",
        "ENTRY e { x = f32[128,512] parameter(0) w = f32[512,512] parameter(1)
         v = f32[512,512] parameter(2) z = f32[] constant(0)
         a = f32[128,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
         o = f32[128,512] broadcast(z), dimensions={} r = f32[128,512] maximum(a, o)
         ROOT b = f32[128,512] dot(r, v), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    ),
    (
        "loop_100k",
        "cond { p = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
         n = s32[] constant(100000) ROOT r = pred[] compare(i, n), direction=LT }
         body { p = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(p), index=0
         x = f32[] get-tuple-element(p), index=1 o = s32[] constant(1) h = f32[] constant(0.5)
         j = s32[] add(i, o) y = f32[] multiply(x, h) k = f32[] add(y, h)
         ROOT r = (s32[], f32[]) tuple(j, k) }
         ENTRY e { z = s32[] constant(0) x = f32[] parameter(0) t = (s32[], f32[]) tuple(z, x)
         ROOT w = (s32[], f32[]) while(t), condition=cond, body=body }",
    ),
];

/// Each figure is the median of what fits into this time.
const TIME: Duration = Duration::from_millis(300);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let (files, filters): (Vec<_>, Vec<_>) = args.iter().partition(|arg| arg.ends_with(".hlo"));
    println!("{:24} {:>12} {:>12} {:>12}", "", "compile µs", "1 thread µs", "all µs");
    let wanted = |name: &str| filters.iter().all(|filter| name.contains(filter.as_str()));
    if files.is_empty() {
        for (name, text) in MODULES.iter().filter(|(name, _)| wanted(name)) {
            report(name, text);
        }
    }
    for file in files {
        match std::fs::read_to_string(file) {
            Ok(text) => report(file.rsplit('/').next().unwrap_or(file), &text),
            Err(error) => eprintln!("{file}: {error}"),
        }
    }
}

fn report(name: &str, text: &str) {
    match measure(text) {
        Ok(times) => {
            let [compile, one, all] = times.map(|time| time.as_secs_f64() * 1e6);
            println!("{name:24} {compile:12.2} {one:12.2} {all:12.2}");
        }
        Err(errors) => println!("{name:24} {}", errors[0]),
    }
}

/// The times of a compilation, a run on one thread, and a run on all.
fn measure(text: &str) -> Result<[Duration; 3], helio::Errors> {
    let client = Client::new(&ClientOptions::default());
    let mut module = helio::parse(text)?;
    // Each run needs the arguments again, so those are copied that a program would take over.
    for alias in &mut module.config.input_output_alias {
        alias.kind = AliasKind::May;
    }
    let options = CompileOptions::default();
    let program = client.compile(module.clone(), &options)?;
    let compile = median(|| {
        let module = module.clone();
        let begin = Instant::now();
        client.compile(module, &options)?;
        Ok(begin.elapsed())
    });
    let arguments = random_arguments(&program.program_shape().params, 0)?;
    let arrays = arguments.iter().flat_map(Literal::leaves).filter_map(Literal::as_array);
    let buffers: helio::Result<Vec<Buffer>> =
        arrays.map(|array| client.buffer_from_array(array, client.default_device())).collect();
    let buffers = buffers?;
    let buffers: Vec<&Buffer> = buffers.iter().collect();
    let run = |threads| {
        let mut options = ExecuteOptions::default();
        options.keep = Keep::All;
        options.run.threads = threads;
        median(|| {
            let begin = Instant::now();
            program.execute(&buffers, &options)?;
            Ok(begin.elapsed())
        })
    };
    Ok([compile?, run(Some(1))?, run(None)?])
}

fn median(mut run: impl FnMut() -> helio::Result<Duration>) -> helio::Result<Duration> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || begin.elapsed() < TIME && times.len() < 1_000_000 {
        times.push(run()?);
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
