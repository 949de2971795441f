//! Runs `tests/cases/errors`: each program there breaks the one rule it names, and no other.

use std::fs;
use std::path::{Path, PathBuf};

use helio_ir::{Code, Error, text, verify};

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
            Some(line) => Err(format!("`{line}` without an error directive")),
        };
    };
    let errors = match errors(program) {
        errors if errors.is_empty() => return Err(format!("{}: accepted", expected.rule)),
        errors => errors,
    };
    let [error] = &errors[..] else {
        return Err(format!("{}: more than one error: {errors:?}", expected.rule));
    };
    if error.rule_id() != Some(expected.rule) {
        return Err(format!("{}: rejected for another reason: {error}", expected.rule));
    }
    if !expected.words.is_none_or(|words| error.detail().contains(words)) {
        let words = expected.words.unwrap_or_default();
        return Err(format!("{}: nothing of \"{words}\" in: {error}", expected.rule));
    }
    if error.location().is_none() {
        return Err(format!("{}: no place in: {error}", expected.rule));
    }
    Ok(())
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
        Err(errors) => errors,
        Ok(module) => verify(module).err().unwrap_or_default(),
    };
    errors.retain(|e| e.code() != Code::Unimplemented);
    errors
}
