//! JAX on helio: the wheel in a virtual environment, our own Python tests, and files of JAX's tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::wheel::Profile;

/// What is installed besides the wheel.
const PACKAGES: &[&str] = &[
    "jax==0.10.2",
    "pytest<9",
    "pytest-xdist",
    "pytest-timeout",
    "hypothesis==6.142.1",
    "mpmath==1.3.0",
    "absl-py",
    "portpicker",
    "cloudpickle",
    "flax==0.12.8",
    "optax==0.2.8",
];

/// How many devices there are for tests of several.
const DEVICES: &str = "8";

/// After the name of a file of JAX's tests: with 64-bit types.
const X64: &str = "+x64";

/// Where the results of JAX's tests are recorded.
const EXPECTED: &str = "python/tests/jax_suite.txt";

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The Python that makes the virtual environment, in `target/jax`.
    #[arg(long, default_value = "python3")]
    python: String,
    /// A checkout of JAX at the tag that is installed, for files of its tests.
    #[arg(long)]
    suite: Option<PathBuf>,
    /// Files of JAX's tests, such as `lax_test`, or `lax_test+x64` with 64-bit types; all that are
    /// recorded if none is named.
    #[arg(long, requires = "suite")]
    file: Vec<String>,
    /// How many cases JAX's tests generate of each kind.
    #[arg(long, default_value_t = 1)]
    cases: usize,
    /// Records the results instead of comparing them.
    #[arg(long)]
    record: bool,
    /// The profile with which the plugin is built.
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
}

/// How many tests of a file ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Errors: what failed, or which files have other results than recorded.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let root = crate::root();
    let wheel = crate::wheel::build(options.profile)?;
    println!("{}", wheel.display());
    let environment = root.join("target/jax");
    let python = environment.join("bin/python");
    if !python.exists() {
        let mut make = Command::new(&options.python);
        command(make.args(["-m", "venv"]).arg(&environment))?;
    }
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    command(pip().args(PACKAGES))?;
    command(pip().args(["--force-reinstall", "--no-deps"]).arg(&wheel))?;
    let mut ours = pytest(&python, options);
    command(ours.env("HELIO_DEVICES", DEVICES).arg(root.join("python/tests")))?;
    match &options.suite {
        Some(suite) => run_suite(&python, suite, options),
        None => Ok(()),
    }
}

fn command(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed")) }
}

fn pytest(python: &Path, options: &Options) -> Command {
    let mut pytest = Command::new(python);
    pytest
        .args(["-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"])
        .env("JAX_PLATFORMS", "helio,cpu")
        .env("JAX_NUM_GENERATED_CASES", options.cases.to_string())
        .env("JAX_SKIP_SLOW_TESTS", "1");
    pytest
}

fn run_suite(python: &Path, suite: &Path, options: &Options) -> Result<(), String> {
    let path = crate::root().join(EXPECTED);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let mut expected = read_counts(&text);
    let files: Vec<String> = match &options.file[..] {
        [] => expected.keys().cloned().collect(),
        files => files.to_vec(),
    };
    let mut wrong = Vec::new();
    println!("{:40} {:>7} {:>7} {:>7}", "file", "passed", "failed", "skipped");
    for file in files {
        let begin = Instant::now();
        let counts = run_file(python, suite, &file, options)?;
        let Counts { passed, failed, skipped } = counts;
        let seconds = begin.elapsed().as_secs();
        let known = expected.insert(file.clone(), counts);
        let note = match known {
            Some(known) if known != counts && !options.record => {
                wrong.push(file.clone());
                format!("expected {} {} {}", known.passed, known.failed, known.skipped)
            }
            _ => String::new(),
        };
        println!("{file:40} {passed:>7} {failed:>7} {skipped:>7}  {seconds} s  {note}");
    }
    if options.record {
        let head = text.lines().take_while(|line| line.starts_with('#'));
        let mut lines: Vec<String> = head.map(str::to_owned).collect();
        lines.extend(expected.iter().map(|(file, counts)| {
            format!("{file} {} {} {}", counts.passed, counts.failed, counts.skipped)
        }));
        return fs::write(&path, lines.join("\n") + "\n").map_err(|e| e.to_string());
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("other results than in {EXPECTED}: {}", wrong.join(", "))),
    }
}

/// Lines of a file's name and its counts; those that begin with `#` are comments.
fn read_counts(text: &str) -> BTreeMap<String, Counts> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let file = words.next()?.to_owned();
        let numbers: Option<Vec<usize>> = words.map(|word| word.parse().ok()).collect();
        let [passed, failed, skipped] = numbers?[..] else { return None };
        Some((file, Counts { passed, failed, skipped }))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// Errors: it ends without a summary.
fn run_file(python: &Path, suite: &Path, file: &str, options: &Options) -> Result<Counts, String> {
    let mut command = pytest(python, options);
    command.args(["-n", "1", "--tb=no", "--timeout=600"]);
    let (name, is_x64) = match file.strip_suffix(X64) {
        Some(name) => (name, true),
        None => (file, false),
    };
    let output = command
        .env("HELIO_DEVICES", if is_for_devices(name) { DEVICES } else { "1" })
        .env("JAX_ENABLE_X64", if is_x64 { "1" } else { "0" })
        .arg(format!("tests/{name}.py"))
        .current_dir(suite)
        .output()
        .map_err(|e| format!("{command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    summary(&text).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{file}: no summary:\n{text}\n{errors}")
    })
}

fn is_for_devices(file: &str) -> bool {
    ["pmap_test", "shard_map_test", "pjit_test", "array_test"].contains(&file)
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
    fn recorded_counts_are_read() {
        let found = read_counts("# file passed failed skipped\nlax_test 552 1 40\n");
        assert_eq!(found["lax_test"], Counts { passed: 552, failed: 1, skipped: 40 });
        assert_eq!(found.len(), 1);
    }
}
