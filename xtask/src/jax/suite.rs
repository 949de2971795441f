//! JAX's own tests on helio, and what is recorded of them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::{DEVICES, Options, pytest};

/// After the name of a file of JAX's tests: with 64-bit types.
const X64: &str = "+x64";

/// After the name of a file of JAX's tests: they take helio for a CPU, and run what they skip on platforms
/// that they do not know.
const CPU: &str = "+cpu";

/// The plugin of pytest by which they do, and its folder.
const AS_CPU: (&str, &str) = ("as_cpu", "python/tests");

/// Where the results of JAX's tests are recorded.
const EXPECTED: &str = "python/tests/jax_suite.txt";

/// Which tests: a file of JAX's, and how many cases it generates of each kind.
type Tests = (String, usize);

/// How many tests of a file ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7} {:>7} {:>7}", self.passed, self.failed, self.skipped)
    }
}

/// Runs files of the tests in a checkout, and prints what passed, failed and was skipped in each, and the
/// names of what failed. Errors: files whose results are not the recorded ones.
pub(super) fn run(python: &Path, checkout: &Path, options: &Options) -> Result<(), String> {
    let path = crate::root().join(EXPECTED);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let recorded = read(&text);
    let tests: Vec<Tests> = match &options.file[..] {
        [] => {
            let is_meant = |tests: &&Tests| options.cases.is_none_or(|cases| cases == tests.1);
            recorded.keys().filter(is_meant).cloned().collect()
        }
        files => files.iter().map(|file| (file.clone(), options.cases.unwrap_or(1))).collect(),
    };
    let mut wrong = Vec::new();
    println!("{:40} {:>5} {:>7} {:>7} {:>7}", "file", "cases", "passed", "failed", "skipped");
    for tests in tests {
        let begin = Instant::now();
        let (counts, failures) = run_file(python, checkout, &tests)?;
        let (file, cases) = &tests;
        let known = recorded.get(&tests).copied();
        let note = match known {
            Some(known) if known != counts => format!("recorded: {known}"),
            None if !options.record => "not recorded".to_owned(),
            _ => String::new(),
        };
        println!("{file:40} {cases:>5} {counts}  {} s  {note}", begin.elapsed().as_secs());
        failures.iter().for_each(|line| println!("    {line}"));
        if options.record {
            // At once, so that an hour's results are there if the next file ends the process; and to what
            // is there now, which another process may have recorded.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let mut recorded = read(&text);
            recorded.insert(tests, counts);
            fs::write(&path, write(&text, &recorded)).map_err(|e| e.to_string())?;
        } else if known != Some(counts) {
            wrong.push(file.clone());
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("other results than in {EXPECTED}: {}", wrong.join(", "))),
    }
}

/// Reads lines of a file's name, its number of cases and its counts; those that begin with `#` are
/// comments.
fn read(text: &str) -> BTreeMap<Tests, Counts> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let file = words.next()?.to_owned();
        let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
        let [cases, passed, failed, skipped] = numbers?[..] else { return None };
        Some(((file, cases), Counts { passed, failed, skipped }))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// The comments at the beginning of what was recorded, and a line for each file.
fn write(before: &str, recorded: &BTreeMap<Tests, Counts>) -> String {
    let head = before.lines().take_while(|line| line.starts_with('#'));
    let mut lines: Vec<String> = head.map(str::to_owned).collect();
    lines.extend(recorded.iter().map(|((file, cases), counts)| {
        format!("{file} {cases} {} {} {}", counts.passed, counts.failed, counts.skipped)
    }));
    lines.join("\n") + "\n"
}

/// Runs a file; gives its counts and pytest's line about each failure. Errors: it ends without a summary.
fn run_file(
    python: &Path,
    checkout: &Path,
    (file, cases): &Tests,
) -> Result<(Counts, Vec<String>), String> {
    let (name, is_x64) = without(file, X64);
    let (name, is_cpu) = without(name, CPU);
    let mut command = pytest(python);
    if is_cpu {
        let (plugin, folder) = AS_CPU;
        command.env("PYTHONPATH", crate::root().join(folder)).args(["-p", plugin]);
    }
    command
        .env("JAX_NUM_GENERATED_CASES", cases.to_string())
        .env("JAX_SKIP_SLOW_TESTS", "1")
        .env("HELIO_DEVICES", if is_for_devices(name) { DEVICES } else { "1" })
        .env("JAX_ENABLE_X64", if is_x64 { "1" } else { "0" })
        .args(["--tb=no", "-rfE"])
        .arg(format!("tests/{name}.py"))
        .current_dir(checkout);
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_failure = |line: &&str| line.starts_with("FAILED") || line.starts_with("ERROR");
    let failures = text.lines().filter(is_failure).map(str::to_owned).collect();
    let counts = summary(&text).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{file}: no summary:\n{text}\n{errors}")
    })?;
    Ok((counts, failures))
}

/// The name without the suffix, and whether it had it.
fn without<'a>(name: &'a str, suffix: &str) -> (&'a str, bool) {
    match name.strip_suffix(suffix) {
        Some(rest) => (rest, true),
        None => (name, false),
    }
}

/// Whether the tests of a file ask for several devices.
fn is_for_devices(file: &str) -> bool {
    [
        "array_test",
        "debugging_primitives_test",
        "export_test",
        "pjit_test",
        "pmap_test",
        "python_callback_test",
        "shard_map_test",
    ]
    .contains(&file)
}

/// The counts of pytest's last line: `3 failed, 541 passed, 49 skipped in 55.12s`.
fn summary(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| line.contains(" in ") && line.contains('s'))?;
    let mut counts = Counts::default();
    let mut found = false;
    let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    for pair in words.windows(2) {
        let Ok(number) = pair[0].parse::<usize>() else { continue };
        found = true;
        match pair[1] {
            "passed" | "xpassed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" | "xfailed" | "deselected" => counts.skipped += number,
            _ => {}
        }
    }
    found.then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_read() {
        let counts = |passed, failed, skipped| Some(Counts { passed, failed, skipped });
        assert_eq!(
            summary("...\n1 failed, 552 passed, 40 skipped in 55.12s\n"),
            counts(552, 1, 40)
        );
        assert_eq!(summary("== 98 passed, 2 warnings in 3.1s (0:00:03) =="), counts(98, 0, 0));
        assert_eq!(summary("nothing"), None);
    }

    #[test]
    fn what_is_recorded_is_read_and_written() {
        let text = "# file cases passed failed skipped\nlax_test 1 552 1 40\nlax_test 10 9 0 0\n";
        let found = read(text);
        let counts = Counts { passed: 552, failed: 1, skipped: 40 };
        assert_eq!(found[&("lax_test".to_owned(), 1)], counts);
        assert_eq!(found.len(), 2);
        assert_eq!(write(text, &found), text);
    }
}
