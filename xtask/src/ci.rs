//! What CI runs, in order, up to the first failure.

use std::process::Command;
use std::time::Instant;

const STEPS: &[(&str, &[&str])] = &[
    ("formatting", &["fmt", "--all", "--check"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("documentation and what is public", &["xtask", "api", "--check"]),
    // Where what is public is recorded as it was there is nothing to find, and the tool takes eight minutes.
    ("programs written before", &["xtask", "semver", "--if-changed"]),
    ("generated pages", &["xtask", "docs", "--check"]),
    // Packed, not built once more: what is packed is what the tests have built.
    (
        "packages",
        &["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty", "--locked"],
    ),
    // Last what needs more of a machine than Rust.
    ("tests of several processes", &["xtask", "mpi"]),
    ("JAX", &["xtask", "jax", "--profile", "dev"]),
];

/// Errors: the name of the step that failed.
pub(crate) fn run() -> Result<(), String> {
    for (name, args) in STEPS {
        println!("== {name}: cargo {}", args.join(" "));
        // What is built once needs neither records for the next build nor tables of lines: they are
        // most of what a build takes of the disk.
        let begin = Instant::now();
        let status = Command::new(env!("CARGO"))
            .args(*args)
            .env("RUSTDOCFLAGS", "-D warnings")
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .current_dir(crate::root())
            .status()
            .map_err(|e| format!("{name}: {e}"))?;
        if !status.success() {
            return Err(format!("{name} failed"));
        }
        println!("== {name}: {:.0} s", begin.elapsed().as_secs_f64());
    }
    Ok(())
}
