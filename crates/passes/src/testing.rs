//! Before and after.

use helio_ir::text::{parse, print};
use helio_ir::verify;

use crate::{find_pass, run_passes};

/// The text of a module after passes (names, separated by commas), which has to verify.
pub(crate) fn after(passes: &str, text: &str) -> String {
    let module = verify(parse(text).expect("the text parses")).expect("the text verifies");
    let passes = passes
        .split(',')
        .map(|name| find_pass(name).unwrap_or_else(|| panic!("no pass is named {name}")));
    print(&run_passes(module, passes).expect("the passes run"))
}

/// Asserts what passes make of a module; layouts and spaces in the texts do not matter.
#[track_caller]
pub(crate) fn check(passes: &str, before: &str, expected: &str) {
    let found = after(passes, before);
    let expected = print(&parse(expected).expect("the expected text parses"));
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}
