//! Programs that check themselves: `helio run` of StableHLO with `check` operations, or of a text with
//! several modules.

use helio::stablehlo::CheckFailure;
use helio::{Judged, ProgramFile};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::failure::Failure;
use crate::{Source, say};

/// Runs each module of a file and prints how many meet their checks. Errors: the first module that
/// cannot be run; else the first difference that was found. All others are printed before it.
pub(crate) fn judge(
    source: &Source,
    file: &ProgramFile,
    engine: &Engine,
    as_json: bool,
) -> Result<(), Failure> {
    let judged = file.run_checks(&engine.checks()?);
    let (count, passed) =
        (judged.len(), judged.iter().filter(|(_, result)| result.is_ok()).count());
    if as_json {
        let module = |(line, result): &Judged| -> Value {
            let error = result.as_ref().err().map(ToString::to_string);
            json!({ "line": line, "ok": result.is_ok(), "error": error })
        };
        let modules: Vec<Value> = judged.iter().map(module).collect();
        say(json!({ "ok": passed == count, "modules": modules }))?;
    } else {
        let s = if count == 1 { "" } else { "s" };
        say(format_args!("{passed} of {count} module{s} meet their checks"))?;
    }
    let failures = judged.iter().filter_map(|(_, result)| result.as_ref().err());
    let (differing, wrong): (Vec<&CheckFailure>, Vec<&CheckFailure>) =
        failures.partition(|failure| matches!(failure, CheckFailure::Difference(_)));
    let failure = |failure: &&CheckFailure| Failure::of_check(source, failure);
    let mut found = wrong.iter().chain(&differing).map(failure);
    let Some(first) = found.next() else { return Ok(()) };
    found.for_each(|failure| failure.print());
    Err(first)
}
