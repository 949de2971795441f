//! Case files: HLO text with inputs, expected results or expected errors. `tests/cases/README.md`
//! describes the format.

mod check;
mod convert;
mod directives;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use helio::{Reason, Subnormals};

pub use check::Shown;
pub use convert::Converted;

use crate::tolerance::Tolerance;
use directives::{Directive, directives};

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
    /// Arguments.
    pub inputs: PerReplica,
    /// What the host feeds, in order.
    pub infeed: PerReplica,
    /// What the host is to receive, in order.
    pub outfeed: PerReplica,
    /// Whether printing and parsing again must give the same text.
    pub round_trip: bool,
    /// How many replicas it takes.
    pub replicas: usize,
    /// What arithmetic does with subnormal numbers.
    pub subnormals: Subnormals,
    /// The operations that have no native code where the program is compiled.
    pub interpreted: Vec<(String, Reason)>,
    /// What may go wrong when it communicates: rules, each maybe with words of the message.
    pub warnings: Vec<(String, Option<String>)>,
}

/// What should come of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// One value, as literal text.
    Value(PerReplica),
    /// The verifier names this rule, in a message with these words.
    Error {
        /// `pad.C4`, or empty for an error without number.
        rule: String,
        /// Words of the message.
        words: Option<String>,
    },
    /// It verifies, but there is no value to compare.
    NoRun(NoRun),
    /// It verifies, but may wait for ever when it runs, of which there are warnings.
    Warnings,
}

/// Why there is no value to compare: all reasons that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRun {
    /// The result is that of a function of the host that its source does not show.
    HostFunction,
}

impl NoRun {
    /// All reasons.
    pub const ALL: &[NoRun] = &[NoRun::HostFunction];

    /// As case files say it.
    pub fn name(self) -> &'static str {
        match self {
            NoRun::HostFunction => "host-function",
        }
    }
}

/// Values as literal text, for all replicas or for single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerReplica {
    values: BTreeMap<Option<usize>, Vec<String>>,
}

impl PerReplica {
    /// The values of a replica: its own, if there are any, else those for all.
    pub fn of(&self, replica: usize) -> &[String] {
        let values = self.values.get(&Some(replica)).or_else(|| self.values.get(&None));
        values.map_or(&[], Vec::as_slice)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn push(&mut self, directive: Directive) {
        self.values.entry(directive.replica).or_default().push(directive.value);
    }
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
    // Folders have files of the same name.
    let name = path.with_extension("");
    let parts: Vec<_> = name.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    let name = parts.into_iter().rev().collect::<Vec<_>>().join("/");
    parse(&name, &text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The programs in the text of a case file. Errors: a directive that is unknown, unfinished, missing
/// or given twice.
pub fn parse(name: &str, text: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    let mut source = String::new();
    for (i, program) in text.split("\n// -----").enumerate() {
        let name = format!("{name}#{}", i + 1);
        let has_program = program.lines().any(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("//")
        });
        let mut directives = directives(program).map_err(|e| format!("{name}: {e}"))?;
        if let Some(at) = directives.iter().position(|directive| directive.key == "source") {
            source = directives.remove(at).value;
        }
        match (has_program, directives.first()) {
            (true, _) if source.is_empty() => {
                return Err(format!("{name}: no `// source:` says where it comes from"));
            }
            (true, _) => {
                let case = case(&name, program, &source, directives);
                cases.push(case.map_err(|e| format!("{name}: {e}"))?);
            }
            (false, Some(stray)) => return Err(format!("{name}: // {}: of no program", stray.key)),
            (false, None) => {}
        }
    }
    Ok(cases)
}

/// A program with what its directives say.
fn case(name: &str, text: &str, source: &str, all: Vec<Directive>) -> Result<Case, String> {
    let mut case = Case {
        name: name.to_owned(),
        text: text.to_owned(),
        source: source.to_owned(),
        expect: Expect::Value(PerReplica::default()),
        tolerance: Tolerance::Exact,
        inputs: PerReplica::default(),
        infeed: PerReplica::default(),
        outfeed: PerReplica::default(),
        round_trip: true,
        replicas: 1,
        subnormals: Subnormals::default(),
        interpreted: Vec::new(),
        warnings: Vec::new(),
    };
    let (mut values, mut other) = (PerReplica::default(), Vec::new());
    let mut once = Vec::new();
    for directive in all {
        let Directive { key, replica, value } = &directive;
        let may_repeat = matches!(*key, "input" | "infeed" | "outfeed" | "interpreted" | "warning");
        if !may_repeat && once.contains(&(*key, *replica)) {
            return Err(format!("// {key}: given twice"));
        }
        once.push((*key, *replica));
        let wrong = |e: String| format!("// {key}: {e}");
        match *key {
            "input" => case.inputs.push(directive),
            "infeed" => case.infeed.push(directive),
            "outfeed" => case.outfeed.push(directive),
            "expect" => values.push(directive),
            "error" => {
                let (rule, words) = rule(value);
                other.push(Expect::Error { rule, words });
            }
            "no-run" => {
                other.push(Expect::NoRun(find(NoRun::ALL, NoRun::name, value).map_err(wrong)?))
            }
            "warning" => case.warnings.push(rule(value)),
            "tolerance" => case.tolerance = tolerance(value).map_err(wrong)?,
            "round-trip" => case.round_trip = find(&[false], |_| "no", value).map_err(wrong)?,
            "subnormals" => {
                case.subnormals = find(&Subnormals::ALL, Subnormals::name, value).map_err(wrong)?;
            }
            "replicas" => case.replicas = count(value).map_err(wrong)?,
            "interpreted" => case.interpreted.push(interpreted(value).map_err(wrong)?),
            // These concern another engine.
            "XLA:CPU differs" | "XLA:CPU crashes" | "XLA rejects" => {}
            key => return Err(format!("// {key}: cannot be here")),
        }
    }
    case.expect = match (values.is_empty(), other.pop(), other.pop()) {
        (false, None, _) => Expect::Value(values),
        (true, Some(expect), None) => expect,
        (true, None, _) if !case.warnings.is_empty() => Expect::Warnings,
        _ => return Err("wants exactly one of expect, error, no-run, or warnings".to_owned()),
    };
    for (replica, of) in once.iter().filter_map(|(key, replica)| Some(((*replica)?, key))) {
        if replica >= case.replicas {
            return Err(format!("// {of}[{replica}]: there are {} replicas", case.replicas));
        }
    }
    case.interpreted.sort();
    Ok(case)
}

/// The item that has this name.
fn find<T: Copy>(items: &[T], name: impl Fn(T) -> &'static str, value: &str) -> Result<T, String> {
    items.iter().copied().find(|&item| name(item) == value).ok_or_else(|| {
        let names: Vec<_> = items.iter().map(|&item| name(item)).collect();
        format!("`{value}` is not one of: {}", names.join(", "))
    })
}

/// A rule, and maybe words of its message: `pad.C4 "dimension 1"`.
fn rule(value: &str) -> (String, Option<String>) {
    let (rule, words) = match value.split_once('"') {
        Some((rule, words)) => (rule, Some(words.trim_end_matches('"').to_owned())),
        None => (value, None),
    };
    (rule.trim().to_owned(), words)
}

/// An operation and why it is interpreted: `custom-call custom-call`.
fn interpreted(value: &str) -> Result<(String, Reason), String> {
    let (operation, reason) = value.split_once(' ').ok_or("wants an operation and a reason")?;
    Ok((operation.to_owned(), find(Reason::ALL, Reason::name, reason)?))
}

fn count(value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("`{value}` is no number of replicas")),
    }
}

fn tolerance(value: &str) -> Result<Tolerance, String> {
    let words: Vec<_> = value.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("`{word}` is no number"));
    match words[..] {
        ["ulp", ulps] => {
            Ok(Tolerance::Ulp(ulps.parse().map_err(|_| format!("`{ulps}` is no number"))?))
        }
        ["rtol", rtol] => Ok(Tolerance::Distance { rtol: number(rtol)?, atol: 0.0 }),
        ["atol", atol] => Ok(Tolerance::Distance { rtol: 0.0, atol: number(atol)? }),
        ["rtol", rtol, "atol", atol] => {
            Ok(Tolerance::Distance { rtol: number(rtol)?, atol: number(atol)? })
        }
        _ => Err(format!("`{value}` is neither `ulp N` nor `rtol R atol A`")),
    }
}
