//! Random programs on every engine:
//! `cargo run --release -p helio-testkit --example random -- SECONDS [SEED [neighbours]]`.
//!
//! Ends with the first program on which an engine differs from the interpreter, made as small as
//! can be; SEED is where the numbers of programs begin. With `neighbours`, programs are those that
//! may overwrite what others read, on different numbers of threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use helio_testkit::random;
use helio_testkit::tally::Tally;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let neighbours = args.pop_if(|last| last == "neighbours").is_some();
    let check = if neighbours { random::check_neighbours } else { random::check };
    let args: Vec<Option<u64>> = args.iter().map(|arg| arg.parse().ok()).collect();
    let (seconds, first) = match args[..] {
        [Some(seconds)] => (seconds, 0),
        [Some(seconds), Some(seed)] => (seconds, seed),
        _ => {
            eprintln!("usage: random SECONDS [SEED [neighbours]]");
            return ExitCode::from(2);
        }
    };
    let begin = Instant::now();
    let (mut seed, mut tally) = (first, Tally::default());
    while begin.elapsed() < Duration::from_secs(seconds) {
        // (A panic has said by itself what it was.)
        let check = AssertUnwindSafe(|| check(seed, &mut tally));
        let outcome = catch_unwind(check)
            .unwrap_or_else(|_| Err(format!("the program of seed {seed} panics")));
        if let Err(report) = outcome {
            println!("{report}");
            return ExitCode::FAILURE;
        }
        seed += 1;
    }
    match neighbours {
        true => println!("{} programs have the same bits on 1, 2 and 8 threads", seed - first),
        false => println!("{} programs agree with the interpreter:\n{tally}", seed - first),
    }
    ExitCode::SUCCESS
}
