//! The public items of the crates that programs depend on, recorded in `docs/api`: CI fails if something
//! is gone, differs or is new and the record does not say so; and what is recorded of a released version
//! is not given up in those that must work with it.
//!
//! The items are read from the pages that rustdoc writes, which CI makes anyway, with the features that are
//! on by default. What a crate re-exports from its parts stands there beside its own items; `cargo
//! semver-checks`, which looks at one crate by itself, does not see it, and most of what `helio` makes public
//! is re-exported.

mod page;
mod record;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use page::Page;
use record::Changes;

/// The crates, by the names of their pages. All others are parts of these, and promise nothing.
const CRATES: [&str; 2] = ["helio", "helio_graph"];

/// Types of which each public method has an example, which tests run.
const WITH_EXAMPLES: &[&str] = &[
    "helio_graph::Dim",
    "helio_graph::Graph",
    "helio_graph::Program",
    "helio_graph::Random",
    "helio_graph::Shape",
    "helio_graph::Tensor",
];

/// What back ends of one's own are made of, in `helio::unstable`: declarations may name it.
const UNSTABLE: &str = "helio_codegen::";

/// The version of all crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Writes the pages of `cargo doc`, and the records of them, or with `check` compares these.
///
/// Errors: as `cargo doc`; a declaration names a type that programs cannot name; an item of the crate itself, or a method
/// of some, has no example; with `check`, a record differs; without, something is gone that a released
/// version has.
pub(crate) fn run(check: bool) -> Result<(), String> {
    let doc = target().join("doc");
    // Rustdoc links to crates whose pages it finds, and writes those of all crates at once.
    for name in packages()? {
        let dir = doc.join(name.replace('-', "_"));
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    crate::cargo(&["doc", "--workspace", "--no-deps", "--locked"])?;
    let mut wrong = Vec::new();
    // `helio_graph::helio` is all of `helio`.
    let mut below = BTreeSet::new();
    for name in CRATES {
        let pages = page::all(&doc, name)?;
        wrong.extend(pages.iter().flat_map(|page| unnamed(page, &below)));
        wrong.extend(pages.iter().flat_map(without_example));
        wrong.extend(compare(name, &pages, check)?);
        below.extend(pages.into_iter().map(|page| page.file));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n")),
    }
}

/// What is wrong with a crate's record; or, without `check`, writes it. Errors: it must not be written.
fn compare(name: &str, pages: &[Page], check: bool) -> Result<Option<String>, String> {
    let path = crate::root().join(format!("docs/api/{name}.txt"));
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    let recorded =
        if path.exists() { fs::read_to_string(&path).map_err(failed)? } else { String::new() };
    let now = record::written(name, VERSION, pages);
    let changes = Changes::between(&recorded, &now);
    if check {
        let differs = format!(
            "docs/api/{name}.txt is not what {name} makes public:\n{changes}help: `cargo xtask api` records \
             it; what is gone or differs breaks programs, so say it in CHANGELOG.md"
        );
        return Ok((!changes.is_empty()).then_some(differs));
    }
    if let Some(version) = record::version(&recorded)
        && !changes.gone.is_empty()
        && record::is_compatible(version, VERSION)
        && is_released(version)?
    {
        return Err(format!(
            "{name} {VERSION} has to work for programs that were written for {version}, and does not:\n\
             {changes}help: keep what is gone, or raise the version in Cargo.toml to one that promises nothing \
             to {version}"
        ));
    }
    fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
    fs::write(&path, now).map_err(failed)?;
    print!("{changes}");
    Ok(None)
}

/// Whether the changelog has a section for a version. Errors: it cannot be read.
fn is_released(version: &str) -> Result<bool, String> {
    let log = fs::read_to_string(crate::root().join("CHANGELOG.md")).map_err(|e| e.to_string())?;
    let mut titles = log.lines().filter_map(|line| line.strip_prefix("## "));
    Ok(titles.any(|title| title.split_whitespace().next() == Some(version)))
}

/// Types that a page names and that nobody can who depends on its crate alone, `below` being the pages of
/// the crates that it exports as a whole.
fn unnamed(page: &Page, below: &BTreeSet<String>) -> Vec<String> {
    let is_unstable = |path: &str| path.starts_with(UNSTABLE);
    let unnamed = page.foreign.iter();
    let unnamed = unnamed.filter(|(path, file)| !below.contains(file) && !is_unstable(path));
    let said = |(path, _): &(String, String)| {
        format!("{}: names {path}, which its crate does not export", page.place)
    };
    unnamed.map(said).collect()
}

fn without_example(page: &Page) -> Vec<String> {
    let is_asked = WITH_EXAMPLES.contains(&page.place.as_str());
    let methods = page.without_example.iter().filter(|_| is_asked);
    let methods = methods.map(|method| format!("{}::{method}: no example", page.place));
    let itself = (page.is_own && !page.has_example).then(|| format!("{}: no example", page.place));
    methods.chain(itself).collect()
}

/// The names of the workspace's packages. Errors: a manifest cannot be read.
fn packages() -> Result<Vec<String>, String> {
    let dir = crate::root().join("crates");
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).map_err(failed)? {
        let manifest = entry.map_err(failed)?.path().join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(failed)?;
        let name = text.lines().find_map(|line| line.strip_prefix("name = \""));
        names.extend(name.and_then(|name| name.strip_suffix('"')).map(str::to_owned));
    }
    Ok(names)
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from)
}
