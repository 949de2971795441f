//! `cargo xtask bench`: what became slower.
//!
//! Programs are timed in several rounds, helio and XLA in turn if there is a Python with jax, and of each the
//! least time counts. What is compared with the record of machines of this kind is then how many times
//! as fast as XLA helio is, which depends on the machine's load and age far less than times do.

mod machine;
mod records;
mod side;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use records::{Record, Records};
use side::{Helio, Xla};

#[derive(Args)]
pub(crate) struct Options {
    /// Programs (.hlo, with arguments in an .npz of the same name, or made up), and directories of them
    /// [default: bench, models and corpus in ../shared, as far as they are there].
    programs: Vec<PathBuf>,
    /// A Python with jax, whose XLA is timed in turn; without one, times are compared.
    #[arg(long)]
    python: Option<PathBuf>,
    /// The program to time [default: what cargo build --release makes].
    #[arg(long)]
    binary: Option<PathBuf>,
    /// How many threads each side has.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
    /// How many rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// About how many seconds each side runs a program in a round.
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// How much slower than on record, as a part of it, is never more than noise.
    #[arg(long, default_value_t = 0.1)]
    noise: f64,
    /// Write what was found to the record of machines of this kind.
    #[arg(long)]
    record: bool,
}

/// What the rounds of a program have given.
struct Timed {
    name: String,
    /// The least times of each round, in milliseconds.
    helio: Vec<f64>,
    /// Those of XLA, if it was timed.
    xla: Vec<f64>,
}

impl Timed {
    fn record(&self) -> Record {
        let ms = least(&self.helio);
        let ratio = (!self.xla.is_empty()).then(|| least(&self.xla) / ms);
        Record { ms, ratio }
    }

    /// How far apart the middle and the least round of a side are, as a part of the least: what is seen
    /// of the machine's noise.
    fn noise(&self) -> f64 {
        let of = |times: &[f64]| middle(times) / least(times) - 1.0;
        let xla = if self.xla.is_empty() { 0.0 } else { of(&self.xla) };
        of(&self.helio).max(xla)
    }
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn middle(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Times programs and compares them with the record of machines of this kind. Errors: what fell by more than
/// noise, or could not be timed.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => {
            crate::cargo(&["build", "--release", "-p", "helio-cli"])?;
            crate::root().join("target/release/helio")
        }
    };
    let kind = machine::kind()?;
    let mut records = Records::read()?;
    println!("{kind}, {} threads", options.threads);
    let scratch = std::env::temp_dir().join(format!("helio-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let (mut fallen, mut failed) = (Vec::new(), Vec::new());
    let mut ratios = Vec::new();
    for program in programs(&options.programs)? {
        let timed = match time(options, &binary, &program, &scratch) {
            Ok(timed) => timed,
            Err(message) => {
                println!("{}: {message}", program.display());
                failed.push(name(&program));
                continue;
            }
        };
        let now = timed.record();
        let before = records.find(&kind, options.threads, &timed.name);
        ratios.extend(now.ratio);
        let loss = before.and_then(|before| now.loss_since(before));
        let is_loss = loss.is_some_and(|loss| loss > options.noise.max(timed.noise()));
        println!("{}", line(&timed, now, before, is_loss));
        if is_loss {
            fallen.push(timed.name.clone());
        }
        // Without XLA nothing is known of the ratio, which stays on record.
        let now = Record { ratio: now.ratio.or(before.and_then(|before| before.ratio)), ..now };
        records.set(&kind, options.threads, &timed.name, now);
    }
    let _ = fs::remove_dir_all(&scratch);
    if !ratios.is_empty() {
        let mean = (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("{mean:.2} times as fast as XLA in the geometric mean of {}", ratios.len());
    }
    if options.record {
        records.write()?;
    }
    match (fallen.is_empty(), failed.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("slower than on record: {}", fallen.join(", "))),
        (true, false) => Err(format!("not timed: {}", failed.join(", "))),
    }
}

/// A line of the table.
fn line(timed: &Timed, now: Record, before: Option<Record>, is_loss: bool) -> String {
    let ratio = |record: Record| match record.ratio {
        Some(ratio) => format!("{ratio:7.2} x XLA"),
        None => " ".repeat(13),
    };
    let was = match before {
        Some(before) => format!("on record {:10.4} ms {}", before.ms, ratio(before)),
        None => "not on record".to_owned(),
    };
    let mark = if is_loss { "  SLOWER" } else { "" };
    let noise = 100.0 * timed.noise();
    format!("{:28} {:10.4} ms {}  noise {noise:3.0} %  {was}{mark}", timed.name, now.ms, ratio(now))
}

/// Times a program in rounds. Errors: what a side says.
fn time(options: &Options, binary: &Path, program: &Path, scratch: &Path) -> Result<Timed, String> {
    let name = name(program);
    let beside = program.with_extension("npz");
    let inputs = if beside.exists() {
        beside
    } else {
        scratch.join(format!("{}.npz", name.replace('/', "-")))
    };
    let mut xla = match &options.python {
        Some(python) => {
            Some(Xla::start(python, program, &inputs, options.threads, options.seconds)?)
        }
        None => None,
    };
    let inputs = inputs.exists().then_some(inputs);
    let helio = Helio { binary, program, inputs: inputs.as_deref(), threads: options.threads };
    let runs = helio.runs_in(options.seconds)?;
    let mut timed = Timed { name, helio: Vec::new(), xla: Vec::new() };
    for _ in 0..options.rounds {
        timed.helio.push(helio.time(runs)?);
        if let Some(xla) = &mut xla {
            timed.xla.push(xla.time()?);
        }
    }
    Ok(timed)
}

/// A program's directory and file: sets have programs of one name.
fn name(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    match program.parent().and_then(Path::file_name) {
        Some(set) => format!("{}/{stem}", set.to_string_lossy()),
        None => stem.into_owned(),
    }
}

/// All programs in these places.
fn programs(places: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let shared = crate::root().join("../shared");
    let usual = ["bench", "models", "corpus"].map(|set| shared.join(set));
    let places = match places {
        [] => usual.into_iter().filter(|set| set.is_dir()).collect(),
        given => given.to_vec(),
    };
    let mut programs = Vec::new();
    for place in places {
        if !place.is_dir() {
            programs.push(place);
            continue;
        }
        let entries = fs::read_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut set: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|ext| ext == "hlo")).collect();
        set.sort();
        programs.append(&mut set);
    }
    match programs.is_empty() {
        true => Err("there are no programs; name files or directories".to_owned()),
        false => Ok(programs),
    }
}
