//! Running a corpus of programs with inputs and expected results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// The ways in which every program runs.
const WAYS: &[&[&str]] = &[
    &["--backend", "interpreter"],
    &["--opt-level", "0"],
    &["--opt-level", "1"],
    &["--opt-level", "2"],
    &["--opt-level", "2", "--threads", "1"],
    &["--opt-level", "3"],
];

/// What has run of a corpus, for each of [`WAYS`].
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Arrays that were compared.
    arrays: usize,
    /// Programs of which not everything was compiled, as they say themselves.
    interpreted: usize,
}

/// For each `NAME.hlo`: it must verify, its printed form must be a fixpoint, and run on the inputs
/// of `NAME.npz` it must give the results there: interpreted, and compiled at every level; the
/// printed form, too. Prints how many arrays were compared in each way, and how many programs were not
/// compiled as a whole. Errors: the number of programs that fail, or compare nothing.
pub(crate) fn run(dir: &Path) -> Result<(), String> {
    let helio = build()?;
    let scratch = std::env::temp_dir().join(format!("helio-corpus-{}", std::process::id()));
    fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let mut programs: Vec<PathBuf> = fs::read_dir(dir)
        .map_err(|e| format!("{}: {e}", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "hlo"))
        .collect();
    programs.sort();
    let mut failed = 0;
    let mut ran = vec![Tally::default(); WAYS.len()];
    for program in &programs {
        let begin = Instant::now();
        match check(&helio, program, &scratch, &mut ran) {
            Ok(()) if begin.elapsed().as_secs() >= 5 => {
                println!("{}: slow, {:.1?}", program.display(), begin.elapsed());
            }
            Ok(()) => {}
            Err(message) => {
                failed += 1;
                println!("{}: {message}", program.display());
            }
        }
    }
    let _ = fs::remove_dir_all(&scratch);
    for (way, Tally { arrays, interpreted }) in WAYS.iter().zip(&ran) {
        println!(
            "{:28} {arrays:6} arrays compared, {interpreted} programs not all compiled",
            way.join(" ")
        );
    }
    println!("{} passed, {failed} failed", programs.len() - failed);
    match failed {
        0 if programs.is_empty() => Err(format!("{}: no programs", dir.display())),
        0 => Ok(()),
        n => Err(format!("{n} programs of {} fail", dir.display())),
    }
}

fn build() -> Result<PathBuf, String> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--package", "helio-cli"])
        .current_dir(crate::root())
        .status()
        .map_err(|e| format!("cargo build: {e}"))?;
    if !status.success() {
        return Err("cargo build failed".to_owned());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| crate::root().join("target"));
    Ok(target.join("release").join("helio"))
}

fn check(helio: &Path, program: &Path, scratch: &Path, ran: &mut [Tally]) -> Result<(), String> {
    let (once, twice) = (scratch.join("once.hlo"), scratch.join("twice.hlo"));
    call(helio, &[Path::new("convert"), program, &once])?;
    call(helio, &[Path::new("convert"), &once, &twice])?;
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    if read(&once)? != read(&twice)? {
        return Err("printing is no fixpoint".to_owned());
    }
    let data = program.with_extension("npz");
    let run = |text, way: &[&str]| {
        let flags = [Path::new("--inputs"), &data, Path::new("--expect"), &data];
        let options: Vec<&Path> = way.iter().map(Path::new).collect();
        let args = [&[Path::new("run"), text], &flags[..], &options].concat();
        let output = call(helio, &args).map_err(|e| format!("{}: {e}", way.join(" ")))?;
        // A line for each result.
        let text = String::from_utf8_lossy(&output.stdout);
        let arrays = text.lines().filter(|line| line.contains(" elements differ")).count();
        let interpreted = usize::from(output.stderr.starts_with(b"note: "));
        match arrays {
            0 => Err(format!("{}: no result was compared", way.join(" "))),
            _ => Ok(Tally { arrays, interpreted }),
        }
    };
    for (way, ran) in WAYS.iter().zip(ran) {
        let this = run(program, way)?;
        ran.arrays += this.arrays;
        ran.interpreted += this.interpreted;
    }
    run(&once, WAYS[0])?;
    Ok(())
}

fn call(helio: &Path, args: &[&Path]) -> Result<Output, String> {
    let output =
        Command::new(helio).args(args).output().map_err(|e| format!("{}: {e}", helio.display()))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!(
        "helio {} ended with {}\n{}{}",
        args[0].display(),
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    ))
}
