//! Records of public items: text files, a line for each line of a declaration.

use std::collections::BTreeMap;
use std::fmt;

use super::page::Page;

/// What a crate makes public, as its record says it: the path of each item, and below it its
/// declaration. An item that several modules export is written once.
pub(super) fn written(name: &str, version: &str, pages: &[Page]) -> String {
    let mut text = format!("# Public items of {name} {version}, written by `cargo xtask api`.\n");
    let mut first: BTreeMap<(&str, &[String]), &str> = BTreeMap::new();
    for page in pages {
        let key = (&*page.file, &*page.declared);
        let is_module = page.file == "index.html";
        match first.get(&key).filter(|_| !is_module) {
            Some(same) => text += &format!("{} = {same}\n", page.place),
            None => {
                first.insert(key, &page.place);
                text += &format!("{}\n", page.place);
                page.declared.iter().for_each(|line| text += &format!("    {line}\n"));
            }
        }
    }
    text
}

/// How what is public now differs from a record.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    /// Lines that are not there any more, with the paths of their items.
    pub(super) gone: Vec<String>,
    /// Lines that the record does not have.
    pub(super) new: Vec<String>,
}

impl Changes {
    pub(super) fn between(recorded: &str, now: &str) -> Self {
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        lines(now).for_each(|line| *counts.entry(line).or_default() += 1);
        lines(recorded).for_each(|line| *counts.entry(line).or_default() -= 1);
        let mut changes = Changes::default();
        for (line, count) in counts {
            let side = if count < 0 { &mut changes.gone } else { &mut changes.new };
            side.extend(std::iter::repeat_n(line, count.unsigned_abs() as usize));
        }
        changes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.new.is_empty()
    }
}

/// How many lines of either kind are shown.
const SHOWN: usize = 30;

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (sign, lines) in [("-", &self.gone), ("+", &self.new)] {
            for line in lines.iter().take(SHOWN) {
                writeln!(f, "  {sign} {line}")?;
            }
            if lines.len() > SHOWN {
                writeln!(f, "  {sign} and {} more", lines.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}

/// The lines of a record, each with the path of its item in front.
fn lines(record: &str) -> impl Iterator<Item = String> {
    let mut place = "";
    record.lines().filter(|line| !line.starts_with('#')).map(move |line| {
        match line.strip_prefix("    ") {
            Some(line) => format!("{place}: {line}"),
            None => {
                place = line;
                line.to_owned()
            }
        }
    })
}

/// The version of which a record is.
pub(super) fn version(record: &str) -> Option<&str> {
    record.lines().next()?.split(' ').nth(5)?.strip_suffix(',')
}

/// Whether programs written for one version have to work with another: Cargo's rule.
pub(super) fn is_compatible(recorded: &str, now: &str) -> bool {
    let kept = |version: &str| {
        let mut parts = version.split('.').map(str::to_owned);
        let major = parts.next();
        let minor = if major.as_deref() == Some("0") { parts.next() } else { None };
        (major, minor)
    };
    kept(recorded) == kept(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_and_what_is_new_is_found() {
        let recorded =
            "# Public items of x 0.1.0, written by y.\nx::A\n    a\n    b\nx::B = x::A\n";
        let now = "# Public items of x 0.2.0, written by y.\nx::A\n    a\n    a\nx::C\n    b\n";
        let changes = Changes::between(recorded, now);
        assert_eq!(changes.gone, ["x::A: b", "x::B = x::A"]);
        assert_eq!(changes.new, ["x::A: a", "x::C", "x::C: b"]);
        assert!(Changes::between(now, now).is_empty());
        assert_eq!(version(recorded), Some("0.1.0"));
    }

    #[test]
    fn versions_promise_what_cargo_says() {
        assert!(is_compatible("0.1.0", "0.1.7") && is_compatible("1.2.3", "1.4.0"));
        assert!(!is_compatible("0.1.0", "0.2.0") && !is_compatible("1.2.3", "2.0.0"));
    }
}
