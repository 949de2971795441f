//! The virtual environment in which JAX runs: JAX of one version, what tests need, and the wheel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::command;

/// What is installed besides JAX and the wheel. What depends on JAX may be older for an older JAX; the
/// versions of all others are in `CONSTRAINTS`.
const PACKAGES: &[&str] = &[
    "pytest",
    "pytest-xdist",
    "pytest-timeout",
    "hypothesis",
    "mpmath",
    "absl-py",
    "portpicker",
    "cloudpickle",
    "flatbuffers",
    "flax<=0.12.8",
    "optax",
];

/// The versions of packages, and of what they need, as pip reads them.
const CONSTRAINTS: &str = "xtask/src/jax/constraints.txt";

/// In the environment: the packages that have been installed there. It is written last.
const INSTALLED: &str = "installed.txt";

/// Ends without success in a Python that is older than the wheel needs.
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 11))";

/// Makes the environment with this version of JAX in `target/jax`, unless it is there, and installs the
/// wheel; gives the environment's Python. Errors: what is missing, and what is not reachable.
pub(super) fn make(python: &str, jax: &str, wheel: &Path) -> Result<PathBuf, String> {
    let folder = crate::root().join("target/jax").join(jax);
    let inside = folder.join("bin/python");
    let mut packages = vec![format!("jax=={jax}")];
    packages.extend(PACKAGES.iter().map(|&package| package.to_owned()));
    let installed = folder.join(INSTALLED);
    let constraints = crate::root().join(CONSTRAINTS);
    let versions =
        fs::read_to_string(&constraints).map_err(|e| format!("{}: {e}", constraints.display()))?;
    let list = format!("{}\n{versions}", packages.join("\n"));
    if !fs::read_to_string(&installed).is_ok_and(|found| found == list) {
        fill(python, &folder, &packages, &constraints)?;
        fs::write(&installed, list).map_err(|e| format!("{}: {e}", installed.display()))?;
    }
    command(pip(&inside).args(["--no-index", "--no-deps", "--force-reinstall"]).arg(wheel))?;
    Ok(inside)
}

/// Makes the environment anew, with these packages.
fn fill(
    python: &str,
    folder: &Path,
    packages: &[String],
    constraints: &Path,
) -> Result<(), String> {
    command(Command::new(python).args(["-c", IS_NEW_ENOUGH]))
        .map_err(|e| format!("{e}\nPython 3.11 or newer is needed; `--python` says where it is"))?;
    command(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder)).map_err(|e| {
        format!("{e}\nPython's modules `venv` and `ensurepip` are needed (Debian: python3-venv)")
    })?;
    let mut install = pip(&folder.join("bin/python"));
    install.arg("--constraint").arg(constraints).args(packages);
    command(&mut install).map_err(|e| {
        format!(
            "{e}\nthe packages come from the registry that pip is set up for (`pip config list`), \
             which has to be reachable: {}",
            packages.join(", ")
        )
    })
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    // What is imported is compiled then; most is not.
    pip.args(["--no-compile", "--retries", "3"]);
    pip
}
