//! Random programs on every engine, for a second or two.

use std::time::{Duration, Instant};

use helio_testkit::engines::THREADS;
use helio_testkit::random;
use helio_testkit::tally::{Tally, report};

#[test]
fn random_programs_agree_on_every_engine() {
    let begin = Instant::now();
    let (mut seed, mut tally) = (0, Tally::default());
    while begin.elapsed() < Duration::from_millis(1500) || seed < 20 {
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
    while begin.elapsed() < Duration::from_millis(1500) || seed < 4 {
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
