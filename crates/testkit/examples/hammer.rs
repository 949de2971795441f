//! Mutates programs at random and gives them to the parser, the verifier, the printer and the
//! interpreter: `cargo run --release -p helio-testkit --example hammer -- COUNT SEED DIR…`.
//!
//! Ends with the first input that panics, or takes longer than ten seconds, and prints it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use helio_testkit::hostile::Reached;
use helio_testkit::{cases, hostile};
use oorandom::Rand32;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [count, seed, dirs @ ..] = args.as_slice() else {
        eprintln!("usage: hammer COUNT SEED DIR…");
        return ExitCode::from(2);
    };
    let (Ok(count), Ok(seed)) = (count.parse::<u64>(), seed.parse::<u64>()) else {
        eprintln!("COUNT and SEED are numbers");
        return ExitCode::from(2);
    };
    helio::memory::set_limit_bytes(1 << 30);
    let files = dirs.iter().flat_map(|dir| cases::files_below(Path::new(dir)));
    let programs: Vec<String> =
        files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    // Case files hold many programs; each is mutated by itself.
    let programs: Vec<&str> = programs.iter().flat_map(|text| text.split("\n// -----")).collect();
    println!("{} programs", programs.len());
    let mut rng = Rand32::new(seed);
    let mut slowest = Duration::ZERO;
    let mut all: BTreeMap<Reached, u64> = BTreeMap::new();
    for n in 0..count {
        let program = programs[rng.rand_range(0..programs.len() as u32) as usize];
        let input = hostile::mutate(program, &mut rng);
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| hostile::hlo_text(input.as_bytes())));
        let time = begin.elapsed();
        match outcome {
            Ok(reached) if time <= Duration::from_secs(10) => *all.entry(reached).or_default() += 1,
            _ => {
                println!("mutation {n} fails or takes long ({time:?}):\n{input}");
                return ExitCode::FAILURE;
            }
        }
        if time > slowest {
            slowest = time;
            println!("{n}: slowest so far {time:?}");
        }
    }
    println!("{count} mutations, no panic; the slowest took {slowest:?}");
    println!("by how far they came: {all:?}");
    ExitCode::SUCCESS
}
