//! Random programs on every engine, for a second or two; `HELIO_SECONDS=60` says for how long.

use std::time::{Duration, Instant};

use helio_testkit::engines::THREADS;
use helio_testkit::random;
use helio_testkit::tally::{Tally, report};

/// How long each test goes on.
fn duration() -> Duration {
    let seconds = std::env::var("HELIO_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(1.5))
}

#[test]
fn random_programs_agree_on_every_engine() {
    let begin = Instant::now();
    let (mut seed, mut tally) = (0, Tally::default());
    while begin.elapsed() < duration() || seed < 20 {
        if let Err(report) = random::check(seed, &mut tally) {
            panic!("{report}");
        }
        seed += 1;
    }
    report(format_args!("{seed} random programs, compared with the interpreter:\n{tally}"));
}

#[test]
fn neighbours_do_not_overwrite_what_others_read() {
    let begin = Instant::now();
    let (mut seed, mut tally) = (0, Tally::default());
    while begin.elapsed() < duration() || seed < 4 {
        if let Err(report) = random::check_neighbours(seed, &mut tally) {
            panic!("{report}");
        }
        seed += 1;
    }
    report(format_args!(
        "{} random programs of neighbours on 1, 2 and 8 threads",
        tally.programs(&THREADS)
    ));
}

#[test]
fn what_lies_behind_run_time_sizes_is_never_seen() {
    let begin = Instant::now();
    let (mut seed, mut tally) = (0, Tally::default());
    while begin.elapsed() < duration() || seed < 20 {
        if let Err(report) = random::check_bounded(seed, &mut tally) {
            panic!("{report}");
        }
        seed += 1;
    }
    report(format_args!("{seed} programs of bounded dimensions:\n{tally}"));
}
