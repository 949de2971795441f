//! Runs every case file on every engine, and says how many ran on which.

use std::collections::BTreeMap;
use std::path::Path;

use helio_testkit::cases::{self, Shown};
use helio_testkit::engines::ENGINES;
use helio_testkit::tally::{Tally, report};

#[test]
fn every_case_holds_on_every_engine() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let (mut failures, mut tally, mut count) = (Vec::new(), Tally::default(), 0);
    let (mut rejected, mut compared, mut replicated) = (0, 0, 0);
    let mut not_run: BTreeMap<&str, usize> = BTreeMap::new();
    for file in cases::files_below(&dir) {
        for case in cases::read(&file) {
            count += 1;
            match case.check(&mut |engine, program| tally.ran(engine, program)) {
                Ok(Shown::Rejected) => rejected += 1,
                Ok(Shown::Results { replicas: 1 }) => compared += 1,
                Ok(Shown::Results { .. }) => replicated += 1,
                Ok(Shown::NoRun(why)) => *not_run.entry(why.name()).or_default() += 1,
                Ok(Shown::Warned) => *not_run.entry("warning").or_default() += 1,
                Err(failure) => failures.push(failure),
            }
        }
    }
    report(format_args!(
        "{count} cases: {rejected} rejected as they should be, {compared} with results, \
         {replicated} with results of several replicas, {} not run {not_run:?}\n\
         cases whose results were compared, by engine:\n{tally}",
        not_run.values().sum::<usize>(),
    ));
    assert!(
        failures.is_empty(),
        "{} of {count} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
    // What is printed is what ran.
    for engine in ENGINES {
        assert_eq!(tally.programs(engine), compared + replicated, "{}", engine.name);
    }
    assert!(rejected > 300 && compared > 900 && replicated > 20, "cases are missing");
}
