//! Checks of the repository itself: who may depend on whom, where `unsafe` may stand, and that
//! every constraint is documented and has a failing case.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The project's crates that each crate may depend on, directly; tests may use `testkit`, too.
const EDGES: &[(&str, &[&str])] = &[
    ("helio-limits", &[]),
    ("helio-ir", &["helio-limits"]),
    ("helio-eval", &["helio-ir", "helio-limits"]),
    ("helio-passes", &["helio-eval", "helio-ir"]),
    ("helio-runtime", &["helio-limits"]),
    ("helio-codegen", &["helio-ir"]),
    ("helio", &["helio-codegen", "helio-eval", "helio-ir", "helio-passes", "helio-runtime"]),
    ("helio-graph", &["helio"]),
    ("helio-cli", &["helio"]),
    ("helio-testkit", &["helio", "helio-eval"]),
    ("xtask", &["helio-ir"]),
];

#[test]
fn crates_depend_on_each_other_one_way() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--workspace",
            "--depth",
            "1",
            "--edges",
            "normal,build",
            "--prefix",
            "depth",
        ])
        .args(["--format", "{p}", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    let ours = |name: &str| EDGES.iter().any(|(crate_name, _)| *crate_name == name);
    let mut of = String::new();
    let mut seen = 0;
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let name = line[1..].split(' ').next().expect("a name");
        if line.starts_with('0') {
            assert!(ours(name), "{name} is not in the list of crates");
            of = name.to_owned();
            seen += 1;
        } else if ours(name) {
            let (_, allowed) = EDGES.iter().find(|(c, _)| *c == of).expect("listed above");
            assert!(allowed.contains(&name), "{of} must not depend on {name}");
        }
    }
    assert_eq!(seen, EDGES.len(), "every crate was seen:\n{tree}");
}

#[test]
fn unsafe_code_is_confined_and_explained() {
    for dir in fs::read_dir(root().join("crates")).expect("crates") {
        let dir = dir.expect("an entry").path();
        let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
        let may = matches!(name.as_str(), "runtime" | "pjrt");
        let forbids = ["lib.rs", "main.rs"].iter().any(|file| {
            fs::read_to_string(dir.join("src").join(file))
                .is_ok_and(|text| text.contains("#![forbid(unsafe_code)]"))
        });
        assert!(may || forbids, "{name} must forbid unsafe code");
        for path in files(&dir.join("src"), "rs") {
            let text = text(&path);
            let lines: Vec<&str> = text.lines().collect();
            for (i, line) in lines.iter().enumerate() {
                if line.contains("unsafe {") {
                    let above = lines[i.saturating_sub(5)..i].join("\n");
                    assert!(
                        above.contains("SAFETY"),
                        "{}:{}: no SAFETY note",
                        path.display(),
                        i + 1
                    );
                }
            }
        }
    }
}

/// All `name.C12` in a text.
fn rule_ids(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.split(|c| !is_part(c))
        .filter_map(|word| {
            let word = word.trim_end_matches('.');
            let (name, number) = word.rsplit_once(".C")?;
            let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
            let named = name.starts_with(|c: char| c.is_ascii_lowercase());
            (digits && named).then(|| word.to_owned())
        })
        .collect()
}

fn rule_ids_below(dir: &str, extension: &str, skip_tests: bool) -> BTreeSet<String> {
    files(&root().join(dir), extension)
        .iter()
        .flat_map(|path| {
            let text = text(path);
            let end = if skip_tests { text.find("#[cfg(test)]") } else { None };
            rule_ids(&text[..end.unwrap_or(text.len())])
        })
        .collect()
}

#[test]
fn every_constraint_is_documented_and_has_a_failing_case() {
    let code = rule_ids_below("crates/ir/src", "rs", true);
    let docs = rule_ids_below("docs/spec", "md", false);
    let cases = rule_ids_below("tests/cases/errors", "hlo", false);
    let missing = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        a.difference(b).cloned().collect::<Vec<_>>().join(" ")
    };
    assert!(code.len() > 100, "found only {} constraints in the code", code.len());
    assert_eq!(missing(&code, &docs), "", "in the code, not in docs/spec");
    assert_eq!(missing(&docs, &code), "", "in docs/spec, not in the code");
    assert_eq!(missing(&code, &cases), "", "in the code, without a failing case");
    assert_eq!(missing(&cases, &code), "", "a failing case, but not in the code");
}

#[test]
fn every_rule_of_graphs_is_documented_and_tested() {
    let code = rule_ids_below("crates/graph/src", "rs", true);
    let docs = rule_ids(&text(&root().join("docs/graph.md")));
    let mut tests = rule_ids_below("crates/graph/tests", "rs", false);
    tests.extend(rule_ids_below("crates/graph/tests", "txt", false));
    let missing = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        a.difference(b).cloned().collect::<Vec<_>>().join(" ")
    };
    assert!(code.len() > 20, "found only {} rules in the code", code.len());
    assert_eq!(missing(&code, &docs), "", "in the code, not in docs/graph.md");
    assert_eq!(missing(&docs, &code), "", "in docs/graph.md, not in the code");
    assert_eq!(missing(&code, &tests), "", "in the code, in no test");
}
