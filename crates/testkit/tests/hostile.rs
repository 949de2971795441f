//! The fuzz targets' bodies, for a second each. A failure prints the input.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use helio::data::{Format, Tensor};
use helio_testkit::hostile::Reached;
use helio_testkit::tally::report;
use helio_testkit::{cases, hostile};
use oorandom::Rand32;

const TIME: Duration = Duration::from_secs(1);
/// The longest that one input may take on a busy machine; what takes longer hangs.
const SLOW: Duration = Duration::from_secs(20);

/// Calls `body` on inputs made by `make` until the time is up, at least a thousand times, and prints
/// how far they came. One in `enough` has to come to `goal`, or the mutations test nothing.
fn hammer(
    (name, seed): (&str, u64),
    (goal, enough): (Reached, usize),
    make: impl Fn(&mut Rand32) -> Vec<u8>,
    body: impl Fn(&[u8]) -> Reached,
) {
    helio::memory::set_limit_bytes(1 << 30);
    let mut all: BTreeMap<Reached, usize> = BTreeMap::new();
    let mut rng = Rand32::new(seed);
    let begin = Instant::now();
    let mut count = 0;
    while begin.elapsed() < TIME || count < 1000 {
        let input = make(&mut rng);
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| body(&input)));
        let shown = String::from_utf8_lossy(&input);
        let reached = outcome.unwrap_or_else(|_| panic!("this input fails:\n{shown}"));
        *all.entry(reached).or_default() += 1;
        assert!(start.elapsed() < SLOW, "this input takes {:?}:\n{shown}", start.elapsed());
        count += 1;
    }
    report(format_args!("hostile {name}: {count} inputs, by how far they came: {all:?}"));
    let there: usize = all.range(goal..).map(|(_, count)| count).sum();
    assert!(there * enough >= count, "{name}: only {there} of {count} came to {goal:?}");
}

fn pick<'a, T>(rng: &mut Rand32, items: &'a [T]) -> &'a T {
    &items[rng.rand_range(0..items.len() as u32) as usize]
}

fn programs() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = cases::files_below(&root.join("tests/cases"));
    let cases = files.iter().flat_map(|file| cases::read(file));
    let mut programs: Vec<String> = cases.map(|case| case.text).collect();
    let example = root.join("examples/mandelbrot.hlo");
    programs.push(std::fs::read_to_string(example).expect("the example"));
    programs
}

#[test]
fn mutated_programs() {
    let programs = programs();
    let make = |rng: &mut Rand32| hostile::mutate(pick::<String>(rng, &programs), rng).into_bytes();
    hammer(("mutated programs", 1), (Reached::Ran, 20), make, hostile::hlo_text);
}

#[test]
fn bytes_as_programs() {
    let programs = programs();
    let make =
        |rng: &mut Rand32| hostile::mutate_bytes(pick::<String>(rng, &programs).as_bytes(), rng);
    hammer(("bytes as programs", 2), (Reached::Ran, 20), make, hostile::hlo_text);
}

#[test]
fn mutated_literals() {
    let literals = ["{ {1, 2, 3}, {nan, -inf, -0x1p3} }", "( {1, 0}, {(1, -2)} )", "-nan(0x12)"];
    let make = |rng: &mut Rand32| hostile::mutate(pick::<&str>(rng, &literals), rng).into_bytes();
    hammer(("literals", 3), (Reached::Parsed, 100), make, hostile::literal_text);
}

#[test]
fn mutated_data_files() {
    for (seed, (format, extension)) in
        [(Format::Npz, "npz"), (Format::Npy, "npy"), (Format::Safetensors, "safetensors")]
            .into_iter()
            .enumerate()
    {
        let path =
            std::env::temp_dir().join(format!("helio-hostile-{}.{extension}", std::process::id()));
        let array = helio::Array::new([2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("array");
        let tensors = [("in0".to_owned(), Tensor::from_array(&array))].into();
        helio::data::write(&path, &tensors).expect("a file");
        let whole = std::fs::read(&path).expect("the file");
        std::fs::remove_file(&path).expect("the file");
        assert_eq!(
            helio::data::read_from(format, std::io::Cursor::new(&whole)).map(|t| t.len()),
            Ok(1)
        );
        let make = |rng: &mut Rand32| hostile::mutate_bytes(&whole, rng);
        let body = |bytes: &[u8]| hostile::data_file(format, bytes);
        hammer((extension, 10 + seed as u64), (Reached::Parsed, 200), make, body);
    }
}

/// Deep, long and vast programs, each in a few bytes or by repetition.
#[test]
fn extreme_programs() {
    helio::memory::set_limit_bytes(1 << 30);
    let deep = 10_000;
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(deep), close.repeat(deep));
    let chain: String = (1..deep)
        .map(|i| {
            let callee = i - 1;
            format!(
                "c{i} {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c{callee} }}\n"
            )
        })
        .collect();
    // Opening a wide tuple takes time in proportion to what is taken out.
    let wide = 50_000;
    let elements: String =
        (0..15_000).map(|i| format!("g{i} = f32[] get-tuple-element(p), index={i}\n")).collect();
    let inputs = [
        format!("ENTRY e {{ p = ({}f32[]) parameter(0)\n{elements} ROOT r = f32[] add(g0, g1) }}", "f32[], ".repeat(wide)),
        format!("ENTRY e {{ ROOT p = {} parameter(0) }}", nested("(", ")")),
        format!("ENTRY e {{ ROOT c = f32[1] constant({}) }}", nested("{", "}")),
        format!("ENTRY e {{ ROOT p = f32[] parameter(0), sharding={} }}", nested("{", "}")),
        format!("ENTRY e {{ ROOT p = f32[] parameter(0), backend_config={} }}", nested("{\"a\":", "}")),
        format!("ENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply={} }}", nested("{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=", "}")),
        format!("c0 {{ ROOT p = f32[] parameter(0) }}\n{chain}ENTRY e {{ p = f32[] parameter(0) ROOT r = f32[] call(p), to_apply=c{} }}", deep - 1),
        "ENTRY e { ROOT c = f32[1073741824] constant({...}) }".to_owned(),
        "ENTRY e { ROOT c = f32[1073741824] constant({1}) }".to_owned(),
        "ENTRY e { z = f32[] constant(0) ROOT c = f32[4294967296] broadcast(z), dimensions={} }".to_owned(),
        "ENTRY e { ROOT c = f32[4294967296,4294967296,4294967296] iota(), iota_dimension=0 }".to_owned(),
        "ENTRY e { ROOT c = f32[9223372036854775807,0] iota(), iota_dimension=0 }".to_owned(),
        "ENTRY e { z = f32[1] constant({0}) ROOT c = f32[1] pad(z, z), padding=9223372036854775807_9223372036854775807_9223372036854775807 }".to_owned(),
        "/*".to_owned(),
        "\"".repeat(deep),
        "HloModule m, ".repeat(deep),
    ];
    for input in inputs {
        let begin = Instant::now();
        hostile::hlo_text(input.as_bytes());
        let start = &input[..input.len().min(80)];
        assert!(begin.elapsed() < SLOW, "`{start}…` takes {:?}", begin.elapsed());
    }
}
