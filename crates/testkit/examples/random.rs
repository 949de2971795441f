//! Random programs on every engine:
//! `cargo run --release -p helio-testkit --example random -- SECONDS [SEED]`.
//!
//! Ends with the first program on which an engine differs from the interpreter, made as small as
//! can be; SEED is where the numbers of programs begin.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use helio_testkit::random;

fn main() -> ExitCode {
    let args: Vec<Option<u64>> = std::env::args().skip(1).map(|arg| arg.parse().ok()).collect();
    let (seconds, first) = match args[..] {
        [Some(seconds)] => (seconds, 0),
        [Some(seconds), Some(seed)] => (seconds, seed),
        _ => {
            eprintln!("usage: random SECONDS [SEED]");
            return ExitCode::from(2);
        }
    };
    let begin = Instant::now();
    let mut seed = first;
    while begin.elapsed() < Duration::from_secs(seconds) {
        // (A panic has said by itself what it was.)
        let outcome = std::panic::catch_unwind(|| random::check(seed))
            .unwrap_or_else(|_| Err(format!("the program of seed {seed} panics")));
        if let Err(report) = outcome {
            println!("{report}");
            return ExitCode::FAILURE;
        }
        seed += 1;
    }
    println!("{} programs agree", seed - first);
    ExitCode::SUCCESS
}
