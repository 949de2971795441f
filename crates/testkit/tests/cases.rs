//! Runs every case file on every engine.

use std::path::Path;

use helio_testkit::cases;

#[test]
fn every_case_holds_on_every_engine() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let mut failures = Vec::new();
    let mut count = 0;
    for file in cases::files_below(&dir) {
        for case in cases::read(&file) {
            count += 1;
            // Cases for several replicas wait for an engine that has them.
            if case.replicas == 1 {
                failures.extend(case.check().err());
            }
        }
    }
    assert!(count > 0, "no case files below {}", dir.display());
    assert!(
        failures.is_empty(),
        "{} of {count} cases fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
