//! The tests that need MPI: installs Open MPI where it is missing, builds with the feature `mpi`, and runs
//! them by `mpirun`.

use std::process::{Command, Stdio};
use std::time::Instant;

/// What the tests need besides MPI: namespaces of the network, and slow links.
const PACKAGES: &[&str] = &["libopenmpi-dev", "openmpi-bin", "iproute2"];

/// The features that need MPI. The whole workspace is named so that the rest of it is built as it is for
/// all other tests.
const FEATURES: &[&str] =
    &["--workspace", "--features", "helio-processes/mpi,helio-cli/mpi,helio-graph/mpi", "--locked"];

/// Errors: MPI is missing and cannot be installed; a test failed.
pub(crate) fn run() -> Result<(), String> {
    install()?;
    let begin = Instant::now();
    crate::cargo(&[&["clippy"], FEATURES, &["--all-targets", "--", "-D", "warnings"]].concat())?;
    println!("== clippy with MPI: {:.0} s", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    let tests = ["--test", "mpirun", "--test", "mpi", "--no-fail-fast"];
    crate::cargo(&[&["test"], FEATURES, &tests, &["--", "--nocapture"]].concat())?;
    println!("== tests by mpirun: {:.0} s", begin.elapsed().as_secs_f64());
    train()
}

/// Installs Open MPI by the system's package manager, if it is not here. Errors: it cannot be.
fn install() -> Result<(), String> {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let missing: Vec<&str> = ["mpirun", "mpicc"].into_iter().filter(|name| !runs(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for args in [&["update"][..], &[&["install", "-y"], PACKAGES].concat()] {
        // Who may not install without a password is not asked for one.
        let (program, before) = match runs("sudo") {
            true => ("sudo", &["-n", "env"][..]),
            false => ("env", &[][..]),
        };
        let mut command = Command::new(program);
        command.args(before).args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(args);
        println!("== apt-get {}", args.join(" "));
        let failure = match command.stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => continue,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        return Err(format!(
            "the tests of several processes need MPI ({} missing), and apt-get {} failed:\n{failure}\n\
             install it as the system's administrator: apt-get update; apt-get install -y {}",
            missing.join(" and "),
            args.join(" "),
            PACKAGES.join(" ")
        ));
    }
    Ok(())
}

/// Trains the example on four replicas in four processes, and in two. Errors: it fails.
fn train() -> Result<(), String> {
    const EXAMPLE: &[&str] = &["--example", "data_parallel", "--message-format", "json"];
    let args = [&["build"], FEATURES, EXAMPLE].concat();
    let output = Command::new(env!("CARGO")).args(&args).current_dir(crate::root()).output();
    let output = output.map_err(|e| format!("cargo: {e}"))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let built = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let program = built
        .filter(|message: &serde_json::Value| message["target"]["name"] == "data_parallel")
        .find_map(|message| message["executable"].as_str().map(str::to_owned));
    let program = program.ok_or_else(|| {
        format!("cargo {} failed:\n{}", args.join(" "), String::from_utf8_lossy(&output.stderr))
    })?;
    let drawing = std::env::temp_dir().join(format!("helio-loss-{}.svg", std::process::id()));
    for processes in ["4", "2"] {
        let mut command = Command::new("timeout");
        command.args(["300", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", processes]);
        let status = command.arg(&program).arg("--mpi").arg(&drawing).status();
        let is_drawn = std::fs::read_to_string(&drawing).is_ok_and(|svg| svg.contains("</svg>"));
        let _ = std::fs::remove_file(&drawing);
        if !status.is_ok_and(|status| status.success()) || !is_drawn {
            return Err(format!("data_parallel --mpi in {processes} processes failed"));
        }
    }
    Ok(())
}
