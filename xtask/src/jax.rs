//! JAX on helio: the wheel in a virtual environment, our own Python tests, and files of JAX's tests.

mod environment;
mod suite;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::wheel::Profile;

/// How many devices there are for tests of several.
const DEVICES: &str = "8";

/// How many seconds a test may take, on a machine that does other things, too.
const TEST_SECONDS: u32 = 600;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The Python that makes the virtual environment, in `target/jax`.
    #[arg(long, default_value = "python3")]
    python: String,
    /// The version of JAX that is installed.
    #[arg(long, default_value = "0.10.2")]
    jax: String,
    /// A checkout of JAX at the tag of that version, for files of its tests.
    #[arg(long)]
    suite: Option<PathBuf>,
    /// Files of JAX's tests, such as `lax_test`, or `lax_test+x64` with 64-bit types, or `lax_test+cpu`
    /// (or `+cpu+x64`) with what they skip on platforms that they do not know; all that are recorded if
    /// none is named.
    #[arg(long, requires = "suite")]
    file: Vec<String>,
    /// How many cases JAX's tests generate of each kind; without files that are named, only what is
    /// recorded of as many is run.
    #[arg(long)]
    cases: Option<usize>,
    /// Records the results instead of comparing them.
    #[arg(long)]
    record: bool,
    /// The profile with which the plugin is built.
    #[arg(long, value_enum, default_value_t = Profile::Release)]
    profile: Profile,
}

/// Errors: what failed, or which files have other results than recorded.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let wheel = timed("wheel", || crate::wheel::build(options.profile))?;
    println!("{}", wheel.display());
    let python = timed("environment", || environment::make(&options.python, &options.jax, &wheel))?;
    if let Some(checkout) = &options.suite {
        return suite::run(&python, checkout, options);
    }
    let mut tests = pytest(&python);
    tests.env("HELIO_DEVICES", DEVICES).args(["--tb=short", "--durations=5"]);
    timed("tests", || command(tests.arg(crate::root().join("python/tests"))))
}

/// Does it, and prints how long it took.
fn timed<T>(what: &str, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let begin = Instant::now();
    let result = act()?;
    println!("== {what}: {:.0} s", begin.elapsed().as_secs_f64());
    Ok(result)
}

fn command(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed")) }
}

/// pytest in the virtual environment, on helio. A test that ends the process is a failure like others,
/// since another process runs the tests. JAX is the one installed, whatever is in the current folder.
fn pytest(python: &Path) -> Command {
    let mut pytest = Command::new(python);
    pytest
        .args(["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1"])
        .arg(format!("--timeout={TEST_SECONDS}"))
        .env("JAX_PLATFORMS", "helio,cpu");
    pytest
}
