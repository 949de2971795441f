//! Mutants on every engine:
//! `cargo run --release -p helio-testkit --example mutants -- SECONDS SEED DIR…`.
//!
//! Mutates the programs below the directories, runs what still is a program on every engine, and
//! prints each mutant on which an engine differs from the interpreter, panics, or takes longer than
//! [`SLOW`]. The mutant that is being run lies in the file `mutant-SEED.hlo` of the temporary
//! directory, for what ends the process.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use helio_testkit::{cases, mutants};
use oorandom::Rand32;

/// A run takes a second at most on each of the engines, and compilation next to nothing.
const SLOW: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, seed, dirs @ ..] = args.as_slice() else {
        eprintln!("usage: mutants SECONDS SEED DIR…");
        return ExitCode::from(2);
    };
    let (Ok(seconds), Ok(seed)) = (seconds.parse::<u64>(), seed.parse::<u64>()) else {
        eprintln!("SECONDS and SEED are numbers");
        return ExitCode::from(2);
    };
    helio::memory::set_limit_bytes(1 << 30);
    let files = dirs.iter().flat_map(|dir| cases::files_below(Path::new(dir)));
    let texts: Vec<String> = files.filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    // Case files hold many programs.
    let programs = texts.iter().flat_map(|text| text.split("\n// -----"));
    let programs: Vec<String> = programs.filter_map(|p| mutants::normal_form(p).ok()).collect();
    println!("{} programs", programs.len());
    let current = std::env::temp_dir().join(format!("mutant-{seed}.hlo"));
    let mut rng = Rand32::new(seed);
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        let program = &programs[rng.rand_range(0..programs.len() as u32) as usize];
        let mutant = mutants::mutate(program, &mut rng);
        if let Err(e) = std::fs::write(&current, &mutant) {
            eprintln!("{}: {e}", current.display());
        }
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| mutants::check(&mutant, seed)));
        let outcome = outcome.unwrap_or_else(|_| Err("panics".to_owned()));
        let time = start.elapsed();
        if time > SLOW {
            println!("// takes {time:?}\n{mutant}\n// -----");
        }
        let key = match outcome {
            Ok(outcome) => format!("{outcome:?}"),
            Err(error) => {
                println!("// {error}\n{mutant}\n// -----");
                "Differs".to_owned()
            }
        };
        *outcomes.entry(key).or_default() += 1;
    }
    println!("{outcomes:?}");
    if outcomes.contains_key("Differs") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
