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
    ("helio-fft", &[]),
    ("helio-limits", &[]),
    ("helio-linalg", &[]),
    ("helio-ir", &["helio-limits"]),
    ("helio-eval", &["helio-ir", "helio-limits"]),
    ("helio-passes", &["helio-eval", "helio-ir"]),
    ("helio-stablehlo", &["helio-eval", "helio-ir"]),
    ("helio-proto", &["helio-ir"]),
    ("helio-codegen", &["helio-ir"]),
    // It runs what the code generator vouches for, and nothing else.
    ("helio-runtime", &["helio-codegen", "helio-fft", "helio-limits", "helio-linalg"]),
    (
        "helio",
        &[
            "helio-codegen",
            "helio-eval",
            "helio-ir",
            "helio-linalg",
            "helio-passes",
            "helio-proto",
            "helio-runtime",
            "helio-stablehlo",
        ],
    ),
    ("helio-graph", &["helio"]),
    ("helio-processes", &["helio"]),
    ("helio-pjrt", &["helio", "helio-processes", "helio-proto", "helio-stablehlo"]),
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

/// What begins with `unsafe` in a line of code, if anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unsafe {
    /// A block: whoever wrote it states why its obligations hold.
    Block,
    /// A function or trait: it states what its callers or implementors owe it, below `# Safety`.
    Contract,
    /// An implementation of a trait: as for a block.
    Impl,
    /// Functions or statics of other languages: as for a block, why they are what they are said to be.
    Extern,
}

impl Unsafe {
    /// What `line` begins; code that is quoted in a comment begins nothing.
    fn of(line: &str) -> Option<Unsafe> {
        let code = line.split("//").next().unwrap_or_default();
        let at = code.find("unsafe")?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (before, rest) = (&code[..at], &code[at + "unsafe".len()..]);
        if before.ends_with(is_word) || before.ends_with('"') || rest.starts_with(is_word) {
            return None;
        }
        let rest = rest.trim_start();
        // A type or a signature in a trait's implementation has no contract of its own, and a
        // macro's pattern is none.
        let is_type = before.trim_end().ends_with(['(', ':', '=', '<', ',', '&', '>']);
        match rest {
            _ if rest.starts_with('{') || rest.is_empty() => Some(Unsafe::Block),
            _ if rest.starts_with("impl") => Some(Unsafe::Impl),
            _ if rest.starts_with("extern") && rest.contains("fn") && is_type => None,
            _ if rest.starts_with("extern") && rest.contains(" fn ") => Some(Unsafe::Contract),
            _ if rest.starts_with("extern") => Some(Unsafe::Extern),
            _ if rest.starts_with("fn ") && !is_type => Some(Unsafe::Contract),
            _ if rest.starts_with("trait ") => Some(Unsafe::Contract),
            _ => None,
        }
    }
}

/// The comments and attributes just above a line, or above the statement that it ends; and, if the
/// line is a method of a trait's implementation, nothing is said there but by the trait.
fn words_above(lines: &[&str], at: usize) -> String {
    let mut first = at;
    while first > 0 {
        let above = lines[first - 1].trim();
        let is_note = above.starts_with("//") || above.starts_with("#[") || above.starts_with("#!");
        // A statement goes on, or an attribute does: `ends_item` ends what came before.
        let ends_item = above.is_empty() || above.ends_with([';', '}']);
        if is_note || !ends_item && at - first < 5 && !said(&lines[first..at]) {
            first -= 1;
        } else {
            break;
        }
    }
    lines[first..at].iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n")
}

fn said(lines: &[&str]) -> bool {
    lines.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

/// The text of the note in these comments: what follows `SAFETY:`, or `# Safety`, in one line.
fn note(words: &str) -> Option<String> {
    let marker = ["SAFETY:", "# Safety"].into_iter().find(|marker| words.contains(marker))?;
    let text = words.split(marker).last().unwrap_or_default();
    let comments = text.lines().enumerate().filter(|(i, line)| *i == 0 || line.starts_with("//"));
    let words = comments.map(|(_, line)| line.trim_start_matches(['/', ' ']));
    Some(words.collect::<Vec<_>>().join(" ").trim().to_owned())
}

/// Whether a note says something, rather than that something has been said.
fn says_something(note: &str) -> bool {
    const ELSEWHERE: [&str; 9] = [
        "as above",
        "see above",
        "as before",
        "as below",
        "see below",
        "ditto",
        "handed on",
        "the same",
        "the caller's",
    ];
    let lower = note.to_lowercase();
    let first = lower.split(['.', ';', ',', ':']).next().unwrap_or_default().trim();
    note.len() > 12 && !ELSEWHERE.contains(&first)
}

/// Whether line `at` lies in an `impl` of a trait, whose docs state what its methods' callers owe.
fn is_in_trait_impl(lines: &[&str], at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut depth = indent(lines[at]);
    for line in lines[..at].iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < depth {
            depth = indent(line);
            let line = line.trim();
            // (A long head has its brace in a line of its own.)
            if line.starts_with("impl") || line.starts_with("unsafe impl") {
                return line.contains(" for ");
            }
            if line.starts_with("mod ") || line.starts_with("pub") || depth == 0 && line != "{" {
                return false;
            }
        }
    }
    false
}

#[test]
fn unsafe_code_is_confined_and_explained() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for dir in fs::read_dir(root().join("crates")).expect("crates") {
        let dir = dir.expect("an entry").path();
        let name = dir.file_name().expect("a name").to_string_lossy().into_owned();
        let may = matches!(name.as_str(), "runtime" | "pjrt" | "processes");
        let forbids = ["lib.rs", "main.rs"].iter().any(|file| {
            fs::read_to_string(dir.join("src").join(file))
                .is_ok_and(|text| text.contains("#![forbid(unsafe_code)]"))
        });
        assert!(may || forbids, "{name} must forbid unsafe code");
        for path in ["src", "tests", "benches", "examples"].map(|part| dir.join(part)) {
            let paths = if path.is_dir() { files(&path, "rs") } else { Vec::new() };
            for path in paths.iter().filter(|path| !path.ends_with("tests/hygiene.rs")) {
                let text = text(path);
                let lines: Vec<&str> = text.lines().collect();
                for (i, line) in lines.iter().enumerate() {
                    let Some(kind) = Unsafe::of(line) else { continue };
                    seen += 1;
                    let words = words_above(&lines, i);
                    let marker = if kind == Unsafe::Contract { "# Safety" } else { "SAFETY:" };
                    let problem = match note(&words).filter(|_| words.contains(marker)) {
                        // What a method owes and is owed, its trait says; what a function of C's kind
                        // is given, whoever passes it on.
                        None if kind == Unsafe::Contract && is_in_trait_impl(&lines, i) => continue,
                        None => format!("no {marker} note"),
                        Some(note) if !says_something(&note) => format!("says nothing: {note}"),
                        Some(_) => continue,
                    };
                    wrong.push(format!("{}:{}: {kind:?}: {problem}", path.display(), i + 1));
                }
            }
        }
    }
    assert!(seen > 200, "found only {seen} places");
    assert!(wrong.is_empty(), "{} places:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn notes_that_say_nothing_are_found() {
    let of = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| Unsafe::of(line).is_some())?;
        note(&words_above(&lines, at))
    };
    let block = "// SAFETY: the slice has\n// `n` elements.\nlet x =\n    unsafe { f(y) };";
    assert_eq!(of(block).as_deref(), Some("the slice has `n` elements."));
    assert_eq!(of("// SAFETY: it is.\nf(x);\nunsafe { f(y) };"), None);
    assert_eq!(
        of("/// # Safety\n/// `x` is valid.\n#[inline]\nunsafe fn f(x: *const u8)").as_deref(),
        Some("`x` is valid.")
    );
    assert!(says_something("the caller's promise."));
    for nothing in ["as above.", "As above; it is there.", "see above", "", "ditto."] {
        assert!(!says_something(nothing), "{nothing}");
    }
    assert_eq!(Unsafe::of("unsafe impl Send for X {}"), Some(Unsafe::Impl));
    assert_eq!(Unsafe::of("pub(super) unsafe fn f("), Some(Unsafe::Contract));
    assert_eq!(Unsafe::of("unsafe extern \"C\" {"), Some(Unsafe::Extern));
    assert_eq!(Unsafe::of("type F = unsafe extern \"C\" fn(i32);"), None);
    assert_eq!(Unsafe::of("#![deny(unsafe_op_in_unsafe_fn)]"), None);
    assert_eq!(Unsafe::of("// not unsafe { here }"), None);
}

/// Words that name a processor or its instructions.
const PROCESSORS: [&str; 9] = [
    "avx",
    "simd",
    "x86::",
    "aarch64",
    "neon",
    "Isa",
    "target_arch",
    "target_feature",
    "is_x86_feature_detected",
];

/// Which processor it is, a back end knows (`crates/codegen/src/x86`), and tuned loops, which choose
/// among their variants; nobody else does.
#[test]
fn nobody_but_back_ends_knows_the_processor() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for name in ["ir", "eval", "passes", "helio", "graph", "cli", "testkit"] {
        for path in files(&root().join("crates").join(name).join("src"), "rs") {
            seen += 1;
            for (i, line) in text(&path).lines().enumerate() {
                let has = |word: &&&str| match word.chars().next() {
                    Some('A'..='Z') => line.contains(**word),
                    _ => line.to_lowercase().contains(**word),
                };
                if let Some(word) = PROCESSORS.iter().find(has) {
                    wrong.push(format!("{}:{}: {word}", path.display(), i + 1));
                }
            }
        }
    }
    assert!(seen > 200, "found only {seen} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
