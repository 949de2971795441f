//! Failures and how a person sees them.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use helio::stablehlo::CheckFailure;
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
        Failure { status: 2, text: format!("{}: {}", paint("error", Colour::Red), text.into()) }
    }

    /// A defect of helio: status 3.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        let label = paint("internal error", Colour::Red);
        Failure { status: 3, text: format!("{label}: {}", text.into()) }
    }

    /// A failure of another process, which has found words for it.
    #[cfg(feature = "mpi")]
    pub(crate) fn of_process(status: u8, text: String) -> Self {
        Failure { status, text }
    }

    /// The exit status, and what is printed.
    #[cfg(feature = "mpi")]
    pub(crate) fn parts(&self) -> (u8, &str) {
        (self.status, &self.text)
    }

    /// Errors in a program, each with an excerpt of its text.
    pub(crate) fn in_program(source: &Source, errors: &[Error]) -> Self {
        let mut text = excerpts(source, errors, Severity::Error);
        let count = errors.len();
        let s = if count == 1 { "" } else { "s" };
        text.push_str(&format!("{}: {count} error{s}", source.path.display()));
        Failure { status: status(errors), text }
    }

    /// A check that a program does not meet: status 1 for a difference.
    pub(crate) fn of_check(source: &Source, failure: &CheckFailure) -> Self {
        let error = std::slice::from_ref(failure.error());
        let text = excerpts(source, error, Severity::Error).trim_end().to_owned();
        let status = match failure {
            CheckFailure::Difference(_) => 1,
            CheckFailure::Program(_) => status(error),
        };
        Failure { status, text }
    }

    pub(crate) fn print(&self) {
        // Nothing is left to do if standard error is closed.
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", self.text));
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

/// The exit status for these errors: 3 if one is a defect of helio, 4 if limits are all that is in
/// the way, else 2.
fn status(errors: &[Error]) -> u8 {
    let is_limit = |error: &Error| {
        matches!(error.code(), Code::ResourceExhausted | Code::DeadlineExceeded | Code::Cancelled)
    };
    match errors {
        errors if errors.iter().any(|error| error.code() == Code::Internal) => 3,
        errors if errors.iter().all(is_limit) => 4,
        _ => 2,
    }
}

/// A colour of words that begin a message.
#[derive(Clone, Copy)]
enum Colour {
    Red,
    Yellow,
}

/// Words in a colour, and bold, where standard error shows colours.
fn paint(words: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Red => 91,
        Colour::Yellow => 33,
    };
    match is_coloured() {
        true => format!("\x1b[1;{code}m{words}\x1b[0m"),
        false => words.to_owned(),
    }
}

/// Whether standard error shows colours: a terminal does, unless `NO_COLOR` is set, or it is a dumb one.
fn is_coloured() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    std::io::stderr().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// How bad something is.
#[derive(Clone, Copy)]
enum Severity {
    Error,
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Severity::Error => Colour::Red,
            Severity::Warning => Colour::Yellow,
        }
    }

    fn level(self) -> Level<'static> {
        match self {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        }
    }
}

/// Prints warnings about a program, each with an excerpt of its text.
pub(crate) fn warn(source: &Source, warnings: &[Error]) {
    let text = excerpts(source, warnings, Severity::Warning);
    // Nothing is left to do if standard error is closed.
    let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{text}"));
}

fn excerpts(source: &Source, errors: &[Error], severity: Severity) -> String {
    let lines = LineStarts::of(source.text());
    let excerpts = errors.iter().map(|error| excerpt(source, &lines, error, severity) + "\n");
    excerpts.collect()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = status(std::slice::from_ref(&error));
        let label = paint("error", Colour::Red);
        Failure { status, text: format!("{label}: {}", shorten(error.to_string())) }
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
const SHOWN: usize = 120;

/// Characters of a message shown; what is quoted (shapes of wide tuples, names) may be long, too.
const SHOWN_MESSAGE: usize = 2000;

/// Room for the number of the line before what is shown of it.
const MARGIN: usize = 20;

/// Leaves out the middle of a text that is long.
fn shorten(text: String) -> String {
    let byte_of = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(i, _)| i);
    let (head, count) = (byte_of(SHOWN_MESSAGE / 2), text.chars().count());
    if count <= SHOWN_MESSAGE {
        return text;
    }
    format!("{} … {}", &text[..head], &text[byte_of(count - SHOWN_MESSAGE / 2)..])
}

fn excerpt(source: &Source, lines: &LineStarts, error: &Error, severity: Severity) -> String {
    let rule = error.rule_id().map(|rule| format!("[{rule}]")).unwrap_or_default();
    let line = error.source_line().map(|line| format!(" ({line})")).unwrap_or_default();
    let instruction = error.instruction().map(|name| format!("{name}{line}: ")).unwrap_or_default();
    let message = shorten(format!("{}{rule}: {instruction}{}", error.code(), error.detail()));
    let place = match error.location() {
        Some(&Location::Text { line, column }) => {
            lines.line(source.text(), line).map(|text| (line, column, text))
        }
        _ => None,
    };
    let Some((line, column, text)) = place else {
        return format!("{}: {message}", paint(severity.name(), severity.colour()));
    };
    let column = (column as usize).saturating_sub(1);
    // From the start of the line, unless that would leave the place out.
    let first = if column < SHOWN / 4 * 3 { 0 } else { column - SHOWN / 2 };
    let mut rest = text.chars().skip(first);
    let mut shown: String = if first > 0 { "…".to_owned() } else { String::new() };
    let place = shown.chars().count() + column - first;
    shown.extend(rest.by_ref().take(SHOWN));
    if rest.next().is_some() {
        shown.push('…');
    }
    let byte_of = |chars: usize| shown.char_indices().nth(chars).map_or(shown.len(), |(i, _)| i);
    // Up to the end of the word, so that the mark is seen.
    let word = shown.chars().skip(place);
    let word = word.take_while(|c| !c.is_whitespace() && !",(){}[]=".contains(*c)).count().max(1);
    let span = byte_of(place)..byte_of(place + word);
    let path = source.path.display().to_string();
    let snippet = Snippet::source(shown.as_str())
        .line_start(line as usize)
        .annotation(AnnotationKind::Primary.span(span));
    let title = severity.level().primary_title(message);
    let report = [match first {
        0 => title.element(snippet.path(path)),
        // Its own origin would count the column in what is shown.
        _ => {
            let origin = Origin::path(path).line(line as usize).char_column(column + 1);
            title.element(origin).element(snippet)
        }
    }];
    let renderer = if is_coloured() { Renderer::styled() } else { Renderer::plain() };
    renderer.term_width(SHOWN + MARGIN).render(&report)
}
