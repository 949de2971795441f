//! Random programs on every engine, for a second or two.

use std::time::{Duration, Instant};

use helio_testkit::random;

#[test]
fn random_programs_agree_on_every_engine() {
    let begin = Instant::now();
    let mut seed = 0;
    while begin.elapsed() < Duration::from_millis(1500) || seed < 20 {
        if let Err(report) = random::check(seed) {
            panic!("{report}");
        }
        seed += 1;
    }
}
