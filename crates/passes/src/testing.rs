//! Tests of passes: a module's text before and after.

use helio_codegen::elementwise::Recipes;
use helio_eval::Limits;
use helio_ir::text::{parse, print};
use helio_ir::{Module, Verified, verify};

use crate::watch::Watch;
use crate::{Pass, PassCx, find_pass};

/// The module after passes, for a back end that has all recipes of the code generator.
pub(crate) fn run_passes<'p>(
    module: Verified<Module>,
    passes: impl IntoIterator<Item = &'p Pass>,
) -> Verified<Module> {
    let watch = Watch::new(&module, &Limits::default());
    crate::run_passes(module, passes, &PassCx::new(&watch, &Recipes)).expect("the passes run")
}

/// The text of a module after passes (names, separated by commas), which has to verify.
pub(crate) fn after(passes: &str, text: &str) -> String {
    let module = verify(parse(text).expect("the text parses")).expect("the text verifies");
    let passes = passes
        .split(',')
        .map(|name| find_pass(name).unwrap_or_else(|| panic!("no pass is named {name}")));
    print(&run_passes(module, passes))
}

/// Asserts what passes make of a module; layouts and spaces in the texts do not matter.
#[track_caller]
pub(crate) fn check(passes: &str, before: &str, expected: &str) {
    let found = after(passes, before);
    let expected = print(&parse(expected).expect("the expected text parses"));
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}
