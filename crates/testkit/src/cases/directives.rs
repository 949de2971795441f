//! The directives of a program: comments of a fixed form.
//!
//! A comment line that begins with one word, maybe with a number in brackets, and a colon is a
//! directive (`// expect[1]: 3`), and must be known; all other comment lines are prose. So a
//! directive that is mistyped is an error, or, if it no longer has that form, leaves the program
//! without what every program must state.

/// A directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directive {
    /// What it is: `expect`.
    pub(super) key: &'static str,
    /// The replica that it is about; `None` for all.
    pub(super) replica: Option<usize>,
    /// What it says; never empty.
    pub(super) value: String,
}

/// Whether a directive may be about one replica.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Program,
    Replica,
}

/// All directives. Those of XLA have a form of their own and are for `check_with_xla.py`.
const KNOWN: &[(&str, About)] = &[
    ("source", About::Program),
    ("input", About::Replica),
    ("expect", About::Replica),
    ("error", About::Program),
    ("no-run", About::Program),
    ("warning", About::Program),
    ("tolerance", About::Program),
    ("round-trip", About::Program),
    ("replicas", About::Program),
    ("subnormals", About::Program),
    ("infeed", About::Replica),
    ("outfeed", About::Replica),
    ("interpreted", About::Program),
    ("XLA:CPU differs", About::Program),
    ("XLA:CPU crashes", About::Program),
    ("XLA rejects", About::Program),
];

/// The directives of a program, in order. Errors: one that is unknown, says nothing, or does not end.
pub(super) fn directives(program: &str) -> Result<Vec<Directive>, String> {
    let mut found: Vec<Directive> = Vec::new();
    let mut is_open = false;
    for line in program.lines() {
        let comment = line.trim().strip_prefix("//").map(str::trim);
        match (comment, found.last_mut()) {
            (Some(comment), Some(last)) if is_open => {
                last.value.push(' ');
                last.value.push_str(comment);
            }
            (None, Some(last)) if is_open => {
                return Err(format!("// {}: its brackets stay open", last.key));
            }
            (Some(comment), _) => match directive(comment)? {
                Some(directive) => found.push(directive),
                None => continue,
            },
            (None, _) => continue,
        }
        is_open = found.last().is_some_and(|last| has_open_bracket(&last.value));
    }
    match found.last() {
        Some(last) if is_open => Err(format!("// {}: its brackets stay open", last.key)),
        _ => Ok(found),
    }
}

/// The directive that a comment is, if it has the form of one.
fn directive(comment: &str) -> Result<Option<Directive>, String> {
    let of_xla = KNOWN.iter().map(|(key, _)| *key).filter(|key| key.starts_with("XLA"));
    let of_xla = of_xla.filter_map(|key| Some((key, "", comment.strip_prefix(key)?)));
    let Some((key, index, rest)) = of_xla.into_iter().next().or_else(|| word(comment)) else {
        return Ok(None);
    };
    let Some(value) = rest.strip_prefix(':').map(str::trim) else { return Ok(None) };
    let Some(&(key, about)) = KNOWN.iter().find(|(known, _)| *known == key) else {
        return Err(format!(
            "// {key}: no directive (prose does not begin with a word and a colon)"
        ));
    };
    let replica = match (index, about) {
        ("", _) => None,
        (index, About::Replica) => {
            Some(index.parse().map_err(|_| format!("// {key}[{index}]: no number of a replica"))?)
        }
        (index, About::Program) => return Err(format!("// {key}[{index}]: is about all replicas")),
    };
    if value.is_empty() {
        return Err(format!("// {key}: says nothing"));
    }
    Ok(Some(Directive { key, replica, value: value.to_owned() }))
}

/// A word, what is in the brackets that follow it, and what comes then.
fn word(text: &str) -> Option<(&str, &str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        return None;
    }
    match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((index, rest)) if !index.is_empty() => Some((word, index, rest)),
        _ => Some((word, "", rest)),
    }
}

fn has_open_bracket(value: &str) -> bool {
    let count = |c| value.matches(c).count();
    count('{') + count('(') > count('}') + count(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Option<Directive>, String> {
        let found = directives(text)?;
        assert!(found.len() <= 1, "{found:?}");
        Ok(found.into_iter().next())
    }

    #[test]
    fn directives_have_a_form() {
        let of = |key, replica, value: &str| Directive { key, replica, value: value.to_owned() };
        assert_eq!(one("// expect[1]: {1, 2}"), Ok(Some(of("expect", Some(1), "{1, 2}"))));
        assert_eq!(one("//input: (\n//   1, 2)"), Ok(Some(of("input", None, "( 1, 2)"))));
        let reason = of("XLA:CPU differs", None, "rounds: twice");
        assert_eq!(one("// XLA:CPU differs: rounds: twice"), Ok(Some(reason)));
    }

    #[test]
    fn prose_has_another() {
        for text in ["// `clamp`: the bounds", "// [0, 5): five", "// two words: prose", "x: y"] {
            assert_eq!(one(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_directive_must_be_one() {
        for text in [
            "// expects: 1",
            "// Expect: 1",
            "// inputs[0]: 1",
            "// expect[one]: 1",
            "// source[0]: E4",
            "// XLA:CPU difers: why",
            "// expect:",
            "// expect: {1, 2\nENTRY e { }",
            "// expect: {1, 2",
        ] {
            assert!(one(text).is_err(), "{text}");
        }
    }
}
