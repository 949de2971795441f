//! The two sides that are timed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// helio, a process for each round.
pub(super) struct Helio<'a> {
    pub(super) binary: &'a Path,
    pub(super) program: &'a Path,
    /// The arguments; made up if there are none.
    pub(super) inputs: Option<&'a Path>,
    pub(super) threads: u64,
}

/// The most runs of a round.
const MAX_RUNS: u64 = 100_000;

impl Helio<'_> {
    /// How many runs take about so long.
    pub(super) fn runs_in(&self, seconds: f64) -> Result<u64, String> {
        let ms = self.time(1)?;
        Ok(((seconds * 1e3 / ms.max(1e-4)) as u64).clamp(3, MAX_RUNS))
    }

    /// The least time of a run, of so many, in milliseconds. Errors: what helio says.
    pub(super) fn time(&self, runs: u64) -> Result<f64, String> {
        let mut command = Command::new(self.binary);
        command.arg("bench").arg(self.program).args(["--json", "--runs", &runs.to_string()]);
        command.args(["--threads", &self.threads.to_string()]);
        match self.inputs {
            Some(inputs) => command.arg("--inputs").arg(inputs),
            None => command.args(["--random", "1"]),
        };
        let output = command.output();
        let output = output.map_err(|e| format!("{}: {e}", self.binary.display()))?;
        if !output.status.success() {
            return Err(last_line(&output.stderr));
        }
        let found: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
        let ms = found["run_ms_min"].as_f64();
        ms.ok_or_else(|| "helio bench gives no run_ms_min".to_owned())
    }
}

fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().last().unwrap_or("it failed without a word").to_owned()
}

/// XLA, one process for all rounds, since compiling takes it long. It ends when this is dropped.
pub(super) struct Xla {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Xla {
    /// Compiles a program. Makes up the inputs unless they are there. Errors: what Python says.
    pub(super) fn start(
        python: &Path,
        program: &Path,
        inputs: &Path,
        threads: u64,
        seconds: f64,
    ) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.args(["-c", include_str!("xla.py")]).args([program, inputs]);
        command.args([threads.to_string(), seconds.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|e| format!("{}: {e}", python.display()))?;
        let (orders, answers) = (process.stdin.take(), process.stdout.take());
        let (Some(orders), Some(answers)) = (orders, answers) else {
            return Err("a process without pipes".to_owned());
        };
        let mut xla = Xla { process, orders, answers: BufReader::new(answers) };
        xla.answer()?;
        Ok(xla)
    }

    /// The least time of a run, in milliseconds. Errors: the process is gone.
    pub(super) fn time(&mut self) -> Result<f64, String> {
        writeln!(self.orders).map_err(|e| format!("XLA: {e}"))?;
        let answer = self.answer()?;
        answer.parse().map_err(|_| format!("XLA says `{answer}`"))
    }

    fn answer(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => Ok(line.trim().to_owned()),
            _ => Err("XLA cannot run it".to_owned()),
        }
    }
}

impl Drop for Xla {
    fn drop(&mut self) {
        // Whether it still runs or not, it is not needed any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
