//! Tests under tools that see what tests cannot: Miri, AddressSanitizer and ThreadSanitizer.
//!
//! What they cover, and what not, is in docs/design/soundness.md.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::ValueEnum;

/// A tool that tests run under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tool {
    /// An interpreter that finds undefined behaviour of Rust.
    Miri,
    /// Finds accesses outside of memory that the program has.
    Address,
    /// Finds accesses of threads that nothing orders.
    Thread,
}

/// Tests, or a program, that run under a tool.
struct Step {
    /// What they cover.
    covers: &'static str,
    /// Arguments of cargo, without those that a tool adds.
    args: &'static [&'static str],
    /// Arguments of the tests or the program.
    run: &'static [&'static str],
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Miri => "Miri",
            Tool::Address => "AddressSanitizer",
            Tool::Thread => "ThreadSanitizer",
        }
    }

    /// The component of rustup that it needs besides nightly, if any.
    fn component(self) -> Option<&'static str> {
        match self {
            Tool::Miri => Some("miri"),
            Tool::Address => None,
            // The standard library has to be built for it, too.
            Tool::Thread => Some("rust-src"),
        }
    }

    fn steps(self) -> &'static [Step] {
        match self {
            Tool::Miri => MIRI,
            Tool::Address => ADDRESS,
            Tool::Thread => THREAD,
        }
    }
}

const RUNTIME: &[&str] = &["test", "--package", "helio-runtime", "--lib"];
const HELIO: &[&str] = &["test", "--package", "helio", "--test", "client", "--test", "services"];
/// For as long as [`RANDOM_SECONDS`] says.
const RANDOM: Step = Step {
    covers: "random programs, and those that overwrite what others read on 1, 2 and 8 threads",
    args: &["test", "--package", "helio-testkit", "--test", "random"],
    run: &[],
};
const RANDOM_SECONDS: &str = "60";

/// Tests that the interpreter finishes in minutes; what is left out takes longer there (or needs
/// machine code), and runs under AddressSanitizer.
const MIRI: &[Step] = &[
    Step {
        covers: "memory, threads, boards, queues, programs, calls across the C ABI",
        args: RUNTIME,
        run: &["memory::", "threads::", "board::", "queue::", "c_call::", "program::"],
    },
    Step {
        covers: "products, convolutions and windows of small arrays",
        args: RUNTIME,
        run: &["small_under_miri"],
    },
    Step {
        covers: "gathers, sorts, factorisations, random bits of small arrays",
        args: RUNTIME,
        run: &[
            "gather_takes_what_is_there",
            "indices_of_all_types",
            "what_nobody_needs_is_not_written",
            "matrices_that_are_not_positive_definite",
            "random::tests::known_answers",
        ],
    },
];

const ADDRESS: &[Step] = &[
    Step {
        covers: "the runtime: kernels on each instruction set, memory, calls of generated code",
        args: RUNTIME,
        run: &[],
    },
    Step {
        covers: "programs: kernels, loops of machine code, finished products, sorts, threads",
        args: &[
            "test",
            "--package",
            "helio-testkit",
            "--test",
            "threads",
            "--test",
            "kernels",
            "--test",
            "native_loops",
            "--test",
            "finished",
            "--test",
            "sorts",
        ],
        run: &[],
    },
    Step { covers: "clients, buffers, events, queues, custom calls", args: HELIO, run: &[] },
    RANDOM,
];

const THREAD: &[Step] = &[
    Step {
        covers: "pools, memory, queues, generated code on several threads",
        args: RUNTIME,
        run: &["threads::", "memory::", "queue::", "jit::tests::threads_share", "program::"],
    },
    Step {
        covers: "programs on several threads, several callers at once",
        args: &["test", "--package", "helio-testkit", "--test", "threads"],
        run: &[],
    },
    Step { covers: "clients, buffers, events, queues, custom calls", args: HELIO, run: &[] },
    RANDOM,
];

/// Runs some of the tools, or all if none is named, each of their parts for at most `minutes`
/// minutes, building included. Errors: what has been found, or that nothing could be run.
pub(crate) fn run(tools: &[Tool], minutes: u64) -> Result<(), String> {
    let host = host()?;
    let all = [Tool::Miri, Tool::Address, Tool::Thread];
    let (mut ran, mut found) = (0, Vec::new());
    for tool in all.into_iter().filter(|tool| tools.is_empty() || tools.contains(tool)) {
        if let Some(why) = missing(tool) {
            println!("== {}: skipped: {why}", tool.name());
            continue;
        }
        for step in tool.steps() {
            println!("== {}: {}", tool.name(), step.covers);
            let begin = Instant::now();
            let status = command(tool, step, &host, minutes).status();
            let status = status.map_err(|e| format!("timeout: {e}"))?;
            let outcome = match status.code() {
                Some(0) => "nothing found".to_owned(),
                Some(124) => format!("not finished within {minutes} minutes"),
                _ => status.to_string(),
            };
            println!("== {}: {:.0} s, {outcome}", tool.name(), begin.elapsed().as_secs_f64());
            ran += 1;
            if !status.success() {
                found.push(format!("{}, {}: {outcome}", tool.name(), step.covers));
            }
        }
    }
    match (ran, found.is_empty()) {
        (0, _) => Err("none of the tools can run here".to_owned()),
        (_, true) => Ok(()),
        (_, false) => Err(format!("something was found, or did not end:\n{}", found.join("\n"))),
    }
}

/// Why a tool cannot run on this machine, if it cannot.
fn missing(tool: Tool) -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("it is set up for x86-64 Linux only".to_owned());
    }
    let toolchains = output("rustup", &["toolchain", "list"]).unwrap_or_default();
    if !toolchains.lines().any(|line| line.starts_with("nightly")) {
        return Some("there is no nightly toolchain (rustup toolchain install nightly)".to_owned());
    }
    let component = tool.component()?;
    let there = ["component", "list", "--toolchain", "nightly", "--installed"];
    let there = output("rustup", &there).unwrap_or_default();
    let has = there.lines().any(|line| line.starts_with(component));
    (!has).then(|| {
        format!("{component} is missing (rustup component add --toolchain nightly {component})")
    })
}

/// What runs a step, and ends it, with all that it has started, after `minutes` minutes.
fn command(tool: Tool, step: &Step, host: &str, minutes: u64) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=10").arg(format!("{minutes}m"));
    command.args(["rustup", "run", "nightly", "cargo"]).current_dir(crate::root());
    // What the cargo that runs this says of itself is not true of the other.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    // A directory of its own: flags differ, and nothing else should be built anew for that.
    let dir = target_dir().join("sanitize").join(tool.name().to_lowercase());
    command.env("CARGO_TARGET_DIR", &dir).env("CARGO_INCREMENTAL", "0");
    command.env("HELIO_SECONDS", RANDOM_SECONDS);
    match tool {
        Tool::Miri => {
            // Threads keep scratch for their next call, to the end of the process.
            command.env("MIRIFLAGS", "-Zmiri-ignore-leaks -Zmiri-disable-isolation");
            command.arg("miri");
        }
        Tool::Address => {
            command.env("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes");
            command.env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1");
        }
        Tool::Thread => {
            command.env("RUSTFLAGS", "-Zsanitizer=thread");
            command.env("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1");
        }
    }
    command.args(step.args);
    if tool != Tool::Miri {
        command.args(["--profile", "sanitize", "--target", host, "--locked"]);
    }
    if tool == Tool::Thread {
        command.arg("-Zbuild-std");
    }
    command.arg("--").args(step.run);
    command
}

/// The target that this machine is.
fn host() -> Result<String, String> {
    let version = output("rustc", &["-vV"]).ok_or("rustc does not run")?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}

fn target_dir() -> PathBuf {
    let dir = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    dir.unwrap_or_else(|| crate::root().join("target"))
}

/// What a program writes, if it runs and succeeds.
fn output(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
