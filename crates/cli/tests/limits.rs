//! Programs with too much work, or that need too much memory, end with an error soon, without having
//! taken more memory than they may: compiled and interpreted, on one thread and on two.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

const HELIO: &str = env!("CARGO_BIN_EXE_helio");

const MIB: usize = 1 << 20;

/// What the process takes besides what is counted: its code, its stacks, the program itself.
const BESIDES: usize = 40 * MIB;

/// How long a program may go on after its limit; most of it is for machines that are busy.
const LATE: Duration = Duration::from_secs(20);

/// What errors say where a program needs too much memory: of the interpreter, which holds all of its
/// values, and of compiled code, before it begins.
const MEMORY_NEEDED: &str = "of memory needed";
const RUN_TAKES: &str = "bytes of memory besides";

/// Programs with work for minutes or more, in little memory if they are compiled.
const WORK: &[(&str, &str)] = &[
    (
        "elements",
        "ENTRY e { a = f32[] parameter(0) x = f32[1099511627776] broadcast(a), dimensions={} y = f32[1099511627776] exponential(x) i = f32[1099511627776] iota(), iota_dimension=0 p = f32[1099511627776] multiply(i, y) ROOT r = f32[] reduce(p, a), dimensions={0}, to_apply=add }",
    ),
    (
        "rows",
        "ENTRY e { a = s32[] parameter(0) i = s32[128,8589934592] iota(), iota_dimension=1 x = s32[128,8589934592] broadcast(a), dimensions={} y = s32[128,8589934592] xor(i, x) ROOT r = s32[128] reduce(y, a), dimensions={1}, to_apply=sadd }",
    ),
    (
        "columns",
        "ENTRY e { a = s32[] parameter(0) i = s32[8589934592,128] iota(), iota_dimension=0 x = s32[8589934592,128] broadcast(a), dimensions={} y = s32[8589934592,128] xor(i, x) ROOT r = s32[128] reduce(y, a), dimensions={0}, to_apply=sadd }",
    ),
    (
        "dot",
        "ENTRY e { a = f32[] parameter(0) x = f32[1099511627776] broadcast(a), dimensions={} ROOT d = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0} }",
    ),
    (
        "dots",
        "ENTRY e { a = f32[] parameter(0) x = f32[64,17179869184] broadcast(a), dimensions={} y = f32[17179869184] broadcast(a), dimensions={} ROOT d = f32[64] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    ),
    (
        "product",
        "ENTRY e { x = f32[2000,2000] parameter(0) y = f32[2000,2000] parameter(1) body = f32[2000,2000] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} p = f32[2000,2000] dot(body, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} q = f32[2000,2000] dot(p, y), lhs_contracting_dims={1}, rhs_contracting_dims={1} r = f32[2000,2000] dot(q, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} s = f32[2000,2000] dot(r, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT t = f32[2000,2000] dot(s, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
    ),
    (
        "convolution",
        "ENTRY e { x = f32[1,1,1048576] parameter(0) k = f32[1,1,524288] parameter(1) ROOT c = f32[1,1,524289] convolution(x, k), window={size=524288}, dim_labels=bf0_oi0->bf0 }",
    ),
    (
        "window",
        "ENTRY e { x = f32[1048576] parameter(0) z = f32[] parameter(1) ROOT w = f32[524289] reduce-window(x, z), window={size=524288}, to_apply=add }",
    ),
    (
        "window by code",
        "ENTRY e { x = f32[1048576] parameter(0) z = f32[] parameter(1) ROOT w = f32[524289] reduce-window(x, z), window={size=524288}, to_apply=odd }",
    ),
    (
        "select",
        "ENTRY e { x = f32[1048576] parameter(0) s = f32[524289] parameter(1) z = f32[] parameter(2) ROOT w = f32[1048576] select-and-scatter(x, s, z), window={size=524288}, select=ge, scatter=add }",
    ),
    (
        "select by code",
        "ENTRY e { x = f32[1048576] parameter(0) s = f32[524289] parameter(1) z = f32[] parameter(2) ROOT w = f32[1048576] select-and-scatter(x, s, z), window={size=524288}, select=ge, scatter=odd }",
    ),
    (
        "factors in a loop",
        "c { s = (s32[], f32[2000,64,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], f32[2000,64,64]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) x = f32[2000,64,64] get-tuple-element(s), index=1 y = f32[2000,64,64] cholesky(x), lower=true ROOT t = (s32[], f32[2000,64,64]) tuple(j, y) } ENTRY e { i = s32[] constant(0) x0 = f32[64,64] parameter(0) x = f32[2000,64,64] broadcast(x0), dimensions={1,2} s = (s32[], f32[2000,64,64]) tuple(i, x) w = (s32[], f32[2000,64,64]) while(s), condition=c, body=b ROOT r = f32[2000,64,64] get-tuple-element(w), index=1 }",
    ),
    (
        "solves in a loop",
        "c { s = (s32[], f32[1500,1500], f32[1500,1500]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], f32[1500,1500], f32[1500,1500]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) a = f32[1500,1500] get-tuple-element(s), index=1 x = f32[1500,1500] get-tuple-element(s), index=2 y = f32[1500,1500] triangular-solve(a, x), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE ROOT t = (s32[], f32[1500,1500], f32[1500,1500]) tuple(j, a, y) } ENTRY e { i = s32[] constant(0) a = f32[1500,1500] parameter(0) x = f32[1500,1500] parameter(1) s = (s32[], f32[1500,1500], f32[1500,1500]) tuple(i, a, x) w = (s32[], f32[1500,1500], f32[1500,1500]) while(s), condition=c, body=b ROOT r = f32[1500,1500] get-tuple-element(w), index=2 }",
    ),
    (
        "loop",
        "c { s = (s32[], f32[1000]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(-1) ROOT p = pred[] compare(i, z), direction=GT } b { s = (s32[], f32[1000]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(0) j = s32[] maximum(i, o) x = f32[1000] get-tuple-element(s), index=1 y = f32[1000] sine(x) ROOT t = (s32[], f32[1000]) tuple(j, y) } ENTRY e { i = s32[] constant(0) x = f32[1000] parameter(0) s = (s32[], f32[1000]) tuple(i, x) w = (s32[], f32[1000]) while(s), condition=c, body=b ROOT r = f32[1000] get-tuple-element(w), index=1 }",
    ),
    (
        "sorts in a loop",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) x = f32[] abs(a) y = f32[] abs(b) ROOT p = pred[] compare(x, y), direction=LT } c { s = (s32[], f32[100000]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], f32[100000]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) x = f32[100000] get-tuple-element(s), index=1 n = f32[100000] negate(x) y = f32[100000] sort(n), dimensions={0}, to_apply=lt ROOT t = (s32[], f32[100000]) tuple(j, y) } ENTRY e { i = s32[] constant(0) x = f32[100000] parameter(0) s = (s32[], f32[100000]) tuple(i, x) w = (s32[], f32[100000]) while(s), condition=c, body=b ROOT r = f32[100000] get-tuple-element(w), index=1 }",
    ),
    (
        "scatters in a loop",
        "c { s = (s32[], f32[100000]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], f32[100000]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) x = f32[100000] get-tuple-element(s), index=1 n = s32[100000,1] iota(), iota_dimension=0 y = f32[100000] scatter(x, n, x), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add g = f32[100000] gather(y, n), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1} ROOT t = (s32[], f32[100000]) tuple(j, g) } ENTRY e { i = s32[] constant(0) x = f32[100000] parameter(0) s = (s32[], f32[100000]) tuple(i, x) w = (s32[], f32[100000]) while(s), condition=c, body=b ROOT r = f32[100000] get-tuple-element(w), index=1 }",
    ),
    (
        "transforms in a loop",
        "c { s = (s32[], c64[10007]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], c64[10007]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) x = c64[10007] get-tuple-element(s), index=1 y = c64[10007] fft(x), fft_type=FFT, fft_length={10007} ROOT t = (s32[], c64[10007]) tuple(j, y) } ENTRY e { i = s32[] constant(0) x = c64[10007] parameter(0) s = (s32[], c64[10007]) tuple(i, x) w = (s32[], c64[10007]) while(s), condition=c, body=b ROOT r = c64[10007] get-tuple-element(w), index=1 }",
    ),
    (
        "numbers in a loop",
        "c { s = (s32[], u64[2]) parameter(0) i = s32[] get-tuple-element(s), index=0 z = s32[] constant(1000000) ROOT p = pred[] compare(i, z), direction=LT } b { s = (s32[], u64[2]) parameter(0) i = s32[] get-tuple-element(s), index=0 o = s32[] constant(1) j = s32[] add(i, o) x = u64[2] get-tuple-element(s), index=1 r = (u64[2], u32[1000000]) rng-bit-generator(x), algorithm=rng_three_fry y = u64[2] get-tuple-element(r), index=0 ROOT t = (s32[], u64[2]) tuple(j, y) } ENTRY e { i = s32[] constant(0) x = u64[2] parameter(0) s = (s32[], u64[2]) tuple(i, x) w = (s32[], u64[2]) while(s), condition=c, body=b ROOT r = u64[2] get-tuple-element(w), index=1 }",
    ),
];

/// Programs that need more than 64 MiB, whatever way they are run.
const MEMORY: &[(&str, &str)] = &[
    (
        "transform of prime length",
        "ENTRY e { x = c64[1999993] parameter(0) f = c64[1999993] fft(x), fft_type=FFT, fft_length={1999993} ROOT s = c64[1] slice(f), slice={[0:1]} }",
    ),
    (
        "real transform of prime length",
        "ENTRY e { x = f32[2999999] parameter(0) f = c64[1500000] fft(x), fft_type=RFFT, fft_length={2999999} ROOT s = c64[1] slice(f), slice={[0:1]} }",
    ),
    (
        "iota",
        "ENTRY e { i = s32[1000000000] iota(), iota_dimension=0 ROOT r = s32[1000000000] negate(i) }",
    ),
    (
        "random",
        "ENTRY e { s = u64[2] parameter(0) ROOT r = (u64[2], u32[1000000000]) rng-bit-generator(s), algorithm=rng_three_fry }",
    ),
    (
        "sort",
        "lt { a = f32[] parameter(0) b = f32[] parameter(1) x = f32[] abs(a) y = f32[] abs(b) ROOT p = pred[] compare(x, y), direction=LT } ENTRY e { x = f32[4000000] parameter(0) n = f32[4000000] cosine(x) y = f32[4000000] sort(n), dimensions={0}, to_apply=lt z = f32[4000000] sine(y) w = f32[4000000] sort(z), dimensions={0}, to_apply=lt t = (f32[4000000], f32[4000000], f32[4000000]) tuple(w, y, n) ROOT u = (f32[4000000], f32[4000000], f32[4000000]) copy(t) }",
    ),
    (
        "gather",
        "ENTRY e { x = f32[1000] parameter(0) j = s32[1000,1000,100,1] iota(), iota_dimension=0 ROOT g = f32[1000,1000,100] gather(x, j), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=3, slice_sizes={1} }",
    ),
];

/// Functions that the programs name.
const FUNCTIONS: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n\
     sadd { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n\
     odd { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] sine(a) ROOT r = f32[] add(c, b) }\n\
     ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }\n";

/// What a run of the program has come to.
struct Outcome {
    status: Option<i32>,
    text: String,
    peak: usize,
    time: Duration,
}

fn run(file: &Path, arguments: &[&str]) -> Outcome {
    let begin = Instant::now();
    let mut command = Command::new(HELIO);
    command.arg("run").arg(file).args(["--random", "1"]).args(arguments);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("helio starts");
    let mut peak = 0;
    let status = loop {
        // The most so far, while the process is there.
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
        peak = kib.map_or(peak, |kib| kib * 1024);
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begin.elapsed() > LATE + LATE {
            child.kill().expect("the child is ours");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let mut text = String::new();
    let stderr = child.stderr.as_mut().expect("piped");
    std::io::Read::read_to_string(stderr, &mut text).expect("text");
    Outcome { status: status.code(), text, peak, time: begin.elapsed() }
}

fn check(programs: &[(&str, &str)], limit: &str, arguments: &[&str], reasons: &[&str]) {
    let dir = std::env::temp_dir().join(format!("helio-limits-{}-{limit}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let limit_bytes = limit.trim_end_matches('M').parse::<usize>().expect("a number") * MIB;
    let mut failures = Vec::new();
    for (name, text) in programs {
        let file = dir.join("program.hlo");
        fs::write(&file, format!("{FUNCTIONS}{text}\n")).expect("a file");
        for engine in [["cpu", "1"], ["cpu", "2"], ["interpreter", "1"]] {
            let [backend, threads] = engine;
            let all = ["--backend", backend, "--threads", threads, "--memory-limit", limit];
            let outcome = run(&file, &[&all[..], arguments].concat());
            let Outcome { status, text, peak, time } = outcome;
            let why = reasons.iter().any(|reason| text.contains(reason));
            if status != Some(4) || !why || peak > limit_bytes + BESIDES || time > LATE {
                failures.push(format!(
                    "{name} {engine:?}: status {status:?}, {} MiB, {time:?}\n{text}",
                    peak / MIB
                ));
            }
        }
    }
    fs::remove_dir_all(&dir).expect("the directory is ours");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn work_ends_at_its_deadline() {
    check(
        WORK,
        "200M",
        &["--time-limit", "0.2"],
        &["not done at its deadline", MEMORY_NEEDED, RUN_TAKES],
    );
}

#[test]
fn work_ends_after_its_steps() {
    check(
        WORK,
        "199M",
        &["--max-steps", "20"],
        &["takes more than 20 steps", MEMORY_NEEDED, RUN_TAKES],
    );
}

#[test]
fn memory_is_refused_before_it_is_taken() {
    check(MEMORY, "64M", &[], &[MEMORY_NEEDED, RUN_TAKES]);
}
