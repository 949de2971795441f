//! Failures and how a person sees them.

use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use helio::{Code, Error, Location};

use crate::Source;

/// Why the program does not exit with status 0.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    text: String,
}

impl Failure {
    /// Results differ from those expected: status 1.
    pub(crate) fn differs(text: impl Into<String>) -> Self {
        Failure { status: 1, text: text.into() }
    }

    /// Bad input or usage: status 2.
    pub(crate) fn bad_input(text: impl Into<String>) -> Self {
        Failure { status: 2, text: format!("error: {}", text.into()) }
    }

    /// A defect of helio: status 3.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Failure { status: 3, text: format!("internal error: {}", text.into()) }
    }

    /// Errors in a program, each with an excerpt of its text.
    pub(crate) fn in_program(source: &Source, errors: &[Error]) -> Self {
        let internal = errors.iter().any(|e| e.code() == Code::Internal);
        let lines = LineStarts::of(&source.text);
        let mut text = String::new();
        for error in errors {
            text.push_str(&excerpt(source, &lines, error));
            text.push('\n');
        }
        let count = errors.len();
        let s = if count == 1 { "" } else { "s" };
        text.push_str(&format!("{}: {count} error{s}", source.path.display()));
        Failure { status: if internal { 3 } else { 2 }, text }
    }

    pub(crate) fn print(&self) {
        // Nothing is left to do if standard error is closed.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", self.text));
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = if error.code() == Code::Internal { 3 } else { 2 };
        Failure { status, text: format!("error: {error}") }
    }
}

/// The byte at which each line begins.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(i, _)| i + 1);
        LineStarts(std::iter::once(0).chain(after_newlines).collect())
    }

    /// The bytes of a line, without its end.
    fn line<'t>(&self, text: &'t str, line: u32) -> Option<&'t str> {
        let start = *self.0.get(line.checked_sub(1)? as usize)?;
        text[start..].lines().next().or(Some(""))
    }
}

/// Characters of a line shown around the place of an error: generated programs have long lines.
const SHOWN: usize = 160;

fn excerpt(source: &Source, lines: &LineStarts, error: &Error) -> String {
    let rule = error.rule_id().map(|rule| format!("[{rule}]")).unwrap_or_default();
    let instruction = error.instruction().map(|name| format!("{name}: ")).unwrap_or_default();
    let message = format!("{}{rule}: {instruction}{}", error.code(), error.detail());
    let place = match error.location() {
        Some(&Location::Text { line, column }) => {
            lines.line(&source.text, line).map(|text| (line, column, text))
        }
        _ => None,
    };
    let Some((line, column, text)) = place else { return format!("error: {message}") };
    let column = (column as usize).saturating_sub(1);
    let first = column.saturating_sub(SHOWN / 4);
    let shown: String = text.chars().skip(first).take(SHOWN).collect();
    let byte_of = |chars: usize| shown.char_indices().nth(chars).map_or(shown.len(), |(i, _)| i);
    // Up to the end of the word, so that the mark is seen.
    let rest = shown.chars().skip(column - first);
    let word = rest.take_while(|c| !c.is_whitespace() && !",(){}[]=".contains(*c)).count().max(1);
    let span = byte_of(column - first)..byte_of(column - first + word);
    let path = source.path.display().to_string();
    let snippet = Snippet::source(shown.as_str())
        .line_start(line as usize)
        .path(path)
        .annotation(AnnotationKind::Primary.span(span));
    let report = [Level::ERROR.primary_title(message).element(snippet)];
    Renderer::plain().render(&report)
}
