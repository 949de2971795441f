//! Runs `tests/cases/errors`: each program there breaks the one rule it names, and no other, or
//! verifies with the warnings that it states.

use std::fs;
use std::path::{Path, PathBuf};

use helio_ir::{Code, Error, communication, text, verify};

/// What a program must be rejected for.
struct Expected<'a> {
    rule: &'a str,
    /// Words of the message.
    words: Option<&'a str>,
}

#[test]
fn each_program_breaks_the_rule_it_names() {
    let mut failures = Vec::new();
    let mut count = 0;
    for path in case_files() {
        let file = fs::read_to_string(&path).expect("a readable file");
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut line = 1;
        for program in file.split_inclusive("// -----\n") {
            if let Err(why) = check(program) {
                failures.push(format!("{name}, program at line {line}: {why}"));
            }
            line += program.lines().count();
            count += 1;
        }
    }
    assert!(count > 100, "only {count} programs found");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

fn case_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/errors");
    let entries = fs::read_dir(&folder).expect("the folder of cases");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "hlo"));
    paths.sort();
    paths
}

fn check(program: &str) -> Result<(), String> {
    let Some(expected) = expected(program)? else {
        let code = program.lines().find(|line| !line.starts_with("//") && !line.trim().is_empty());
        return match code {
            None => Ok(()),
            Some(_) => check_warnings(program),
        };
    };
    let errors = match errors(program) {
        errors if errors.is_empty() => return Err(format!("{}: accepted", expected.rule)),
        errors => errors,
    };
    // What is wrong with both halves of a transfer is said of both.
    if let Some(other) = errors.iter().find(|error| error.rule_id() != Some(expected.rule)) {
        return Err(format!("{}: rejected for another reason: {other}", expected.rule));
    }
    let error = &errors[0];
    if !expected.words.is_none_or(|words| error.detail().contains(words)) {
        let words = expected.words.unwrap_or_default();
        return Err(format!("{}: nothing of \"{words}\" in: {error}", expected.rule));
    }
    if error.location().is_none() {
        return Err(format!("{}: no place in: {error}", expected.rule));
    }
    Ok(())
}

/// A program without an error has the warnings that it states: `// warning: infeed.C3 "words"`, a line
/// for each, in their order.
fn check_warnings(program: &str) -> Result<(), String> {
    let stated = program.lines().filter_map(|line| line.strip_prefix("// warning:"));
    let stated: Vec<&str> = stated.map(str::trim).collect();
    let module = text::parse(program).and_then(verify).map_err(|e| format!("rejected: {e:?}"))?;
    let found = communication::warnings(&module);
    let says = |stated: &str, found: &Error| {
        let (rule, words) = stated.split_once(' ').unwrap_or((stated, ""));
        found.rule_id() == Some(rule) && found.detail().contains(words.trim().trim_matches('"'))
    };
    let agree = stated.len() == found.len() && stated.iter().zip(&found).all(|(s, f)| says(s, f));
    if agree { Ok(()) } else { Err(format!("warnings {stated:?} are stated, found {found:?}")) }
}

/// What the line `// error: pad.C4 "dimension 1"` says, if there is one.
fn expected(program: &str) -> Result<Option<Expected<'_>>, String> {
    let mut directives = program.lines().filter_map(|line| line.strip_prefix("// error:"));
    let Some(directive) = directives.next() else { return Ok(None) };
    if directives.next().is_some() {
        return Err("more than one error directive".to_owned());
    }
    let directive = directive.trim();
    let (rule, words) = directive.split_once(' ').unwrap_or((directive, ""));
    let words = match words.trim() {
        "" => None,
        quoted => Some(
            quoted
                .strip_prefix('"')
                .and_then(|words| words.strip_suffix('"'))
                .ok_or_else(|| format!("words without quotes: {quoted}"))?,
        ),
    };
    Ok(Some(Expected { rule, words }))
}

/// What is wrong with the program; not what helio cannot do, such as run it with unbounded sizes.
fn errors(program: &str) -> Vec<Error> {
    let mut errors = match text::parse(program) {
        Err(errors) => errors.into_vec(),
        Ok(module) => verify(module).err().map(Vec::from).unwrap_or_default(),
    };
    errors.retain(|e| e.code() != Code::Unimplemented);
    errors
}
