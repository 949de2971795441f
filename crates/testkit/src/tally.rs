//! What tests have run, counted, and printed where `cargo test` shows it.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;

use helio::{Executable, Reason};

use crate::engines::{ENGINES, Engine};

/// How many programs have run on each engine, and how many of them were compiled.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By the place of the engine in [`ENGINES`].
    engines: BTreeMap<usize, Count>,
}

/// What has run on one engine.
#[derive(Clone, Debug, Default)]
struct Count {
    programs: usize,
    /// Programs that were interpreted as a whole although the engine compiles, by reason.
    whole: BTreeMap<Reason, usize>,
    /// Programs of which some instructions have no native code.
    partly: usize,
}

impl Tally {
    /// Notes that a program has run on an engine, and its results were compared.
    pub fn ran(&mut self, engine: &Engine, program: &Executable) {
        let count = self.engines.entry(place(engine)).or_default();
        count.programs += 1;
        match program.interpreted_because() {
            Some(reason) if engine.is_compiled() => *count.whole.entry(reason).or_default() += 1,
            None if !program.interpreted().is_empty() => count.partly += 1,
            _ => {}
        }
    }

    /// How many programs have run on an engine.
    pub fn programs(&self, engine: &Engine) -> usize {
        self.engines.get(&place(engine)).map_or(0, |count| count.programs)
    }
}

/// The place of an engine in [`ENGINES`], or behind them.
fn place(engine: &Engine) -> usize {
    ENGINES.iter().position(|e| e.name == engine.name).unwrap_or(ENGINES.len())
}

/// A line for each engine of [`ENGINES`], those on which nothing has run included.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, engine) in ENGINES.iter().enumerate() {
            let nothing = Count::default();
            let Count { programs, whole, partly } = self.engines.get(&place).unwrap_or(&nothing);
            let end = if place == 0 { "" } else { "\n" };
            write!(f, "{end}  {:38} {programs:6}", engine.name)?;
            let mut notes: Vec<String> = Vec::new();
            if *partly > 0 {
                notes.push(format!("{partly} with interpreted instructions"));
            }
            for (reason, count) in whole {
                notes.push(format!("{count} interpreted as a whole ({})", reason.name()));
            }
            if !notes.is_empty() {
                write!(f, "  of which {}", notes.join(", "))?;
            }
        }
        Ok(())
    }
}

/// Prints what a test has run. The harness of tests keeps what is printed otherwise of tests that
/// pass; what is written to standard error by itself is seen.
pub fn report(text: impl fmt::Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
