//! Case files: HLO text with inputs, expected results or expected errors. `tests/cases/README.md`
//! describes the format.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helio::ir::text::parse_literal;
use helio::ir::{Module, Verified};
use helio::{HostQueues, Literal, RunOptions};

use crate::engines::{ENGINES, Engine};
use crate::tolerance::Tolerance;

/// One program of a case file.
#[derive(Clone, Debug)]
pub struct Case {
    /// File and place in it, for messages.
    pub name: String,
    /// The HLO text, directives included (they are comments).
    pub text: String,
    /// Where the expected value comes from.
    pub source: String,
    /// What should come of it.
    pub expect: Expect,
    /// How closely.
    pub tolerance: Tolerance,
    /// Arguments, as literal text.
    pub inputs: Vec<String>,
    /// What the host feeds, in order, as literal text.
    pub infeed: Vec<String>,
    /// What the host is to receive, in order, as literal text.
    pub outfeed: Vec<String>,
    /// Whether printing and parsing again must give the same text.
    pub round_trip: bool,
    /// How many replicas it takes.
    pub replicas: usize,
}

/// What should come of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// This value, as literal text.
    Value(String),
    /// The verifier names this rule, in a message with these words.
    Error {
        /// `pad.C4`, or empty for an error without number.
        rule: String,
        /// Words of the message.
        words: Option<String>,
    },
    /// Nothing is said: it has to verify.
    Verifies,
}

/// All `.hlo` files below `dir`, in order of their names.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        for path in entries.map(|entry| entry.expect("a directory entry").path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "hlo") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The programs of a case file.
pub fn read(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(&name, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The programs in the text of a case file. Errors: a directive that is unknown or unfinished.
pub fn parse(name: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    let mut source = String::new();
    for (i, program) in text.split("\n// -----").enumerate() {
        let mut case = Case {
            name: format!("{name}#{}", i + 1),
            text: program.to_owned(),
            source: String::new(),
            expect: Expect::Verifies,
            tolerance: Tolerance::Exact,
            inputs: Vec::new(),
            infeed: Vec::new(),
            outfeed: Vec::new(),
            round_trip: true,
            replicas: 1,
        };
        for (key, value) in directives(program) {
            apply(&mut case, &mut source, &key, value.trim())
                .map_err(|e| format!("{}: // {key}: {e}", case.name))?;
        }
        case.source.clone_from(&source);
        let has_program = program.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("//")
        });
        if has_program {
            if case.source.is_empty() {
                return Err(format!("{}: no `// source:` says where it comes from", case.name));
            }
            cases.push(case);
        }
    }
    Ok(cases)
}

const KEYS: &[&str] = &[
    "source",
    "input",
    "expect",
    "tolerance",
    "error",
    "round-trip",
    "replicas",
    "infeed",
    "outfeed",
];

/// Keys and values; a value goes on over further comment lines while its brackets are open.
fn directives(program: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in program.lines() {
        let Some(comment) = line.trim().strip_prefix("//") else {
            open = false;
            continue;
        };
        if open {
            if let Some((_, value)) = found.last_mut() {
                value.push(' ');
                value.push_str(comment.trim());
                open = has_open_bracket(value);
            }
            continue;
        }
        let Some((key, value)) = comment.trim().split_once(':') else { continue };
        let base = key.split('[').next().unwrap_or_default();
        if KEYS.contains(&base) {
            open = has_open_bracket(value);
            found.push((key.to_owned(), value.to_owned()));
        }
    }
    found
}

fn has_open_bracket(value: &str) -> bool {
    let count = |c| value.matches(c).count();
    count('{') + count('(') > count('}') + count(')')
}

fn apply(case: &mut Case, source: &mut String, key: &str, value: &str) -> Result<(), String> {
    match key {
        "source" => *source = value.to_owned(),
        "input" => case.inputs.push(value.to_owned()),
        "infeed" => case.infeed.push(value.to_owned()),
        "outfeed" => case.outfeed.push(value.to_owned()),
        "expect" => case.expect = Expect::Value(value.to_owned()),
        "error" => {
            let (rule, words) = match value.split_once('"') {
                Some((rule, words)) => (rule, Some(words.trim_end_matches('"').to_owned())),
                None => (value, None),
            };
            case.expect = Expect::Error { rule: rule.trim().to_owned(), words };
        }
        "tolerance" => case.tolerance = parse_tolerance(value)?,
        "round-trip" => case.round_trip = value != "no",
        "replicas" => case.replicas = value.parse().map_err(|_| "not a number".to_owned())?,
        _ => {} // `input[1]`, `expect[1]`: for engines with several replicas
    }
    Ok(())
}

fn parse_tolerance(value: &str) -> Result<Tolerance, String> {
    let words: Vec<_> = value.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("`{word}` is no number"));
    match words[..] {
        ["ulp", ulps] => Ok(Tolerance::Ulp(number(ulps)? as u64)),
        ["rtol", rtol] => Ok(Tolerance::Distance { rtol: number(rtol)?, atol: 0.0 }),
        ["atol", atol] => Ok(Tolerance::Distance { rtol: 0.0, atol: number(atol)? }),
        ["rtol", rtol, "atol", atol] => {
            Ok(Tolerance::Distance { rtol: number(rtol)?, atol: number(atol)? })
        }
        _ => Err(format!("`{value}` is neither `ulp N` nor `rtol R atol A`")),
    }
}

impl Case {
    /// Runs the program on every engine. Errors: what went wrong, with the case's name.
    pub fn check(&self) -> Result<(), String> {
        self.check_unnamed().map_err(|e| format!("{} ({}): {e}", self.name, self.source))
    }

    fn check_unnamed(&self) -> Result<(), String> {
        let verified = helio::parse(&self.text).and_then(helio::ir::verify);
        let module = match (&self.expect, verified) {
            (Expect::Error { rule, words }, Err(errors)) => {
                return expect_error(rule, words.as_deref(), &errors);
            }
            (Expect::Error { rule, .. }, Ok(_)) => {
                return Err(format!("accepted, but breaks {rule}"));
            }
            (_, Err(errors)) => return Err(format!("rejected: {errors:?}")),
            (_, Ok(module)) => module,
        };
        let printed = helio::print(&module);
        if self.round_trip {
            let again = helio::parse(&printed).map_err(|e| format!("reparsing: {e:?}"))?;
            let reprinted = helio::print(&again);
            if printed != reprinted {
                return Err(format!("printing is no fixpoint:\n{printed}\n{reprinted}"));
            }
        }
        let Expect::Value(expected) = &self.expect else { return Ok(()) };
        let shape = module.entry().program_shape();
        let expected = literal(expected, &shape.result)?;
        if self.inputs.len() != shape.params.len() {
            return Err(format!("{} inputs for {shape}", self.inputs.len()));
        }
        let args: Vec<Literal> = self
            .inputs
            .iter()
            .zip(&shape.params)
            .map(|(text, shape)| literal(text, shape))
            .collect::<Result<_, _>>()?;
        for engine in ENGINES {
            self.run(engine, &module, &args, &expected)
                .map_err(|e| format!("{}: {e}", engine.name))?;
        }
        Ok(())
    }

    fn run(
        &self,
        engine: &Engine,
        module: &Verified<Module>,
        args: &[Literal],
        expected: &Literal,
    ) -> Result<(), String> {
        let queues = Arc::new(HostQueues::new());
        let shapes = helio::infeed_shapes(module);
        // Infeeds in loops read again and again: go round their shapes.
        for (item, shape) in self.infeed.iter().zip(shapes.iter().cycle()) {
            queues.infeed(0).push(literal(item, shape)?).map_err(|e| e.to_string())?;
        }
        queues.close_inputs();
        let mut options = RunOptions::default();
        options.host = Some(queues.clone());
        let found = engine.run(module, args, &options).map_err(|e| e.to_string())?;
        self.tolerance.compare(&found, expected)?;
        for item in &self.outfeed {
            let found = queues.outfeed(0).try_pop().ok_or("the host received too little")?;
            self.tolerance.compare(&found, &literal(item, &found.shape())?)?;
        }
        match queues.outfeed(0).try_pop() {
            Some(_) if !self.outfeed.is_empty() => Err("the host received too much".to_owned()),
            _ => Ok(()),
        }
    }
}

fn literal(text: &str, shape: &helio::Shape) -> Result<Literal, String> {
    parse_literal(text, shape).map_err(|e| format!("`{text}` as {shape}: {e}"))
}

fn expect_error(rule: &str, words: Option<&str>, errors: &[helio::Error]) -> Result<(), String> {
    let ids: Vec<_> = errors.iter().map(|e| e.rule_id().unwrap_or_default()).collect();
    if ids.iter().any(|id| *id != rule) || ids.is_empty() {
        return Err(format!("expected {rule} and nothing else, found {errors:?}"));
    }
    if errors.iter().any(|e| e.location().is_none()) {
        return Err(format!("an error does not say where it stands: {errors:?}"));
    }
    match words {
        Some(words) if !errors.iter().any(|e| e.detail().contains(words)) => {
            Err(format!("no message contains \"{words}\": {errors:?}"))
        }
        _ => Ok(()),
    }
}
