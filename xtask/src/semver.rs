//! `cargo semver-checks`: whether programs that were written for an earlier state of what is public still
//! compile. It reads types where `docs/api` has text, but does not look through re-exports.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The version that is installed, one that reads what this workspace's Rust writes.
const VERSION: &str = "0.51.0";

/// The crates that programs depend on.
const PACKAGES: &[&str] = &["-p", "helio", "-p", "helio-graph"];

/// All features of these that need nothing but Rust.
const FEATURES: &[&str] = &["--only-explicit-features", "--features", "default,ndarray,serde"];

/// What is compared with before there is a tag of a release. A commit that breaks programs on purpose says
/// so in `CHANGELOG.md`, and puts the commit before it here.
const UNRELEASED: &str = "5c31e9e79ea0ac9a747cbd42a3616ee227eb9ab5";

/// Compares what is public; with `if_changed`, only if the records of it are others than they were. Errors:
/// programs would break; `cargo semver-checks` cannot be installed, or does not run.
pub(crate) fn run(if_changed: bool) -> Result<(), String> {
    let baseline = baseline();
    if !has(&baseline) {
        // As in a checkout without its history.
        println!("{baseline} is not in this repository: nothing to compare with");
        return Ok(());
    }
    if if_changed && git(&["diff", "--quiet", &baseline, "--", "docs/api"]).is_some() {
        println!("docs/api is as it was at {baseline}: nothing to compare");
        return Ok(());
    }
    let mut check = Command::new(installed()?);
    check.args(["semver-checks", "--baseline-rev", &baseline]).args(PACKAGES).args(FEATURES);
    let status = check.current_dir(crate::root()).status();
    let status = status.map_err(|e| format!("cargo semver-checks: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!(
            "programs that were written for {baseline} may break\nhelp: keep what is gone; or if it has to \
             go, say so in CHANGELOG.md, and raise the version, or before there is a release the revision \
             in xtask/src/semver.rs"
        )),
    }
}

/// The tag of the last release, or before there is one, [`UNRELEASED`].
fn baseline() -> String {
    let tag = git(&["describe", "--tags", "--match", "v*", "--abbrev=0"]);
    tag.unwrap_or_else(|| UNRELEASED.to_owned())
}

/// Whether the repository has this commit.
fn has(revision: &str) -> bool {
    git(&["cat-file", "-e", &format!("{revision}^{{commit}}")]).is_some()
}

/// What git prints, if it succeeds.
fn git(args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let output = git.args(args).current_dir(crate::root()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Where `cargo-semver-checks` is; installs it if it is not there. (Without optimisation: building it takes
/// longer than what it does.) Errors: it cannot be installed.
fn installed() -> Result<PathBuf, String> {
    let root = crate::root().join("target/semver");
    let program = root.join("bin/cargo-semver-checks");
    let version = format!("={VERSION}");
    let mut install = Command::new(env!("CARGO"));
    install.args(["install", "cargo-semver-checks", "--locked", "--debug", "--version", &version]);
    install.arg("--root").arg(&root).env("CARGO_TARGET_DIR", root.join("build"));
    let status = install.status().map_err(|e| format!("cargo install: {e}"))?;
    match status.success() && program.exists() {
        true => Ok(program),
        false => Err(format!("cargo install cargo-semver-checks --version {VERSION} failed")),
    }
}
