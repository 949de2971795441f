//! The one error type: what was found, what is required, and where.

use std::fmt;

use crate::SourceLine;

/// The result of anything in helio that can fail on its input.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure it is: the canonical status codes, with their numbers, that PJRT uses.
///
/// ```
/// assert_eq!(helio_ir::Code::DeadlineExceeded as u8, 4);
/// assert_eq!(helio_ir::Code::Aborted.to_string(), "aborted");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Code {
    /// Whoever asked for the work has cancelled it.
    Cancelled = 1,
    /// An error that came from outside of helio without a code.
    Unknown = 2,
    /// The program or the data is wrong, whatever state anything is in.
    InvalidArgument = 3,
    /// The work was not done at its deadline.
    DeadlineExceeded = 4,
    /// Something that was named is not there: a device, a file, a function.
    NotFound = 5,
    /// Something that was to be made is there already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A stated limit was reached. [`Error::rule_id`] is `limit.memory` if it is that of bytes in
    /// use, `limit.steps` if it is that of steps of work; limits on the size of a program have none.
    ResourceExhausted = 8,
    /// What was asked for is right, but not in this state: a buffer has been deleted.
    FailedPrecondition = 9,
    /// Work among several was ended because one of them failed.
    Aborted = 10,
    /// A position lies outside of what is there.
    OutOfRange = 11,
    /// The program is right, but helio cannot do it.
    Unimplemented = 12,
    /// A defect of helio.
    Internal = 13,
    /// A peer or a queue has gone, and may come back.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller has not said who it is.
    Unauthenticated = 16,
}

impl Code {
    /// All codes, in the order of their numbers.
    const ALL: [Code; 16] = [
        Code::Cancelled,
        Code::Unknown,
        Code::InvalidArgument,
        Code::DeadlineExceeded,
        Code::NotFound,
        Code::AlreadyExists,
        Code::PermissionDenied,
        Code::ResourceExhausted,
        Code::FailedPrecondition,
        Code::Aborted,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::Internal,
        Code::Unavailable,
        Code::DataLoss,
        Code::Unauthenticated,
    ];

    /// The code with this number, from 1; `None` if no error has it.
    ///
    /// ```
    /// use helio_ir::Code;
    /// assert_eq!(Code::from_number(10), Some(Code::Aborted));
    /// assert_eq!(Code::from_number(0), None);
    /// ```
    pub fn from_number(number: u64) -> Option<Code> {
        Code::ALL.into_iter().find(|&code| code as u64 == number)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Code::Cancelled => "cancelled",
            Code::Unknown => "unknown error",
            Code::InvalidArgument => "invalid argument",
            Code::DeadlineExceeded => "deadline exceeded",
            Code::NotFound => "not found",
            Code::AlreadyExists => "already exists",
            Code::PermissionDenied => "permission denied",
            Code::ResourceExhausted => "resource exhausted",
            Code::FailedPrecondition => "failed precondition",
            Code::Aborted => "aborted",
            Code::OutOfRange => "out of range",
            Code::Unimplemented => "unimplemented",
            Code::Internal => "internal error",
            Code::Unavailable => "unavailable",
            Code::DataLoss => "data loss",
            Code::Unauthenticated => "unauthenticated",
        })
    }
}

/// Where something stands: in program text or in the Rust source that built it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A position in program text, both counted from 1; the column counts characters.
    Text {
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
    /// The Rust call that made the instruction.
    Rust {
        /// The source file, as the Rust compiler names it.
        file: &'static str,
        /// Line, from 1.
        line: u32,
        /// Column, from 1.
        column: u32,
    },
}

impl Location {
    /// The place of the caller of a `#[track_caller]` function.
    #[track_caller]
    pub fn caller() -> Self {
        let at = std::panic::Location::caller();
        Location::Rust { file: at.file(), line: at.line(), column: at.column() }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Text { line, column } => write!(f, "{line}:{column}"),
            Location::Rust { file, line, column } => write!(f, "{file}:{line}:{column}"),
        }
    }
}

/// A failure: its kind, the rule that was broken, where, and a text for a person.
///
/// Boxed inside, so that a `Result` stays small.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    rule: Option<&'static str>,
    at: Option<Location>,
    instruction: Option<String>,
    source_line: Option<SourceLine>,
    detail: String,
}

impl Error {
    /// An error of kind `code`; `detail` says what was found and what is required.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            code,
            rule: None,
            at: None,
            instruction: None,
            source_line: None,
            detail: detail.into(),
        }))
    }

    /// The program or the data is wrong.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, detail)
    }

    /// The input breaks the rule with this identifier (`pad.C2`).
    pub fn rule(rule: &'static str, detail: impl Into<String>) -> Self {
        let mut e = Self::invalid(detail);
        e.0.rule = Some(rule);
        e
    }

    /// The program is right, but helio cannot do it.
    pub fn unimplemented(detail: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, detail)
    }

    /// A stated limit was reached; `detail` names it.
    pub fn exhausted(detail: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, detail)
    }

    /// The limit with this identifier (`limit.memory`) was reached.
    pub fn limit(rule: &'static str, detail: impl Into<String>) -> Self {
        let mut e = Self::exhausted(detail);
        e.0.rule = Some(rule);
        e
    }

    /// A defect of helio.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(Code::Internal, detail)
    }

    /// Adds a place, unless one is known already (the innermost is the most precise).
    #[must_use]
    pub fn at(mut self, at: Option<Location>) -> Self {
        if self.0.at.is_none() {
            self.0.at = at;
        }
        self
    }

    /// Puts it at this place, whatever place it had.
    #[must_use]
    pub fn moved_to(mut self, at: Location) -> Self {
        self.0.at = Some(at);
        self
    }

    /// Adds the instruction concerned, unless one is known already.
    #[must_use]
    pub fn in_instruction(mut self, name: &str) -> Self {
        if self.0.instruction.is_none() {
            self.0.instruction = Some(name.to_owned());
        }
        self
    }

    /// Adds the line of the framework's program that the instruction stands for, unless one is known
    /// already.
    #[must_use]
    pub fn from_line(mut self, line: Option<SourceLine>) -> Self {
        if self.0.source_line.is_none() {
            self.0.source_line = line;
        }
        self
    }

    /// Puts `context` and a colon before the text.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.detail = format!("{context}: {}", self.0.detail);
        self
    }

    /// Puts a space and `words` behind the text.
    #[must_use]
    pub(crate) fn followed_by(mut self, words: &str) -> Self {
        self.0.detail = format!("{} {words}", self.0.detail);
        self
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The identifier of the broken rule (`pad.C2`) or of the limit that was reached
    /// (`limit.memory`), if it has one.
    pub fn rule_id(&self) -> Option<&'static str> {
        self.0.rule
    }

    /// Where it stands.
    pub fn location(&self) -> Option<&Location> {
        self.0.at.as_ref()
    }

    /// The name of the instruction concerned.
    pub fn instruction(&self) -> Option<&str> {
        self.0.instruction.as_deref()
    }

    /// The line of the framework's program that the instruction stands for.
    pub fn source_line(&self) -> Option<&SourceLine> {
        self.0.source_line.as_ref()
    }

    /// The text for a person.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

/// `place: code[rule]: instruction (source line): detail`, leaving out what is not known.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, rule, at, instruction, source_line, detail } = &*self.0;
        if let Some(at) = at {
            write!(f, "{at}: ")?;
        }
        write!(f, "{code}")?;
        if let Some(rule) = rule {
            write!(f, "[{rule}]")?;
        }
        f.write_str(": ")?;
        match (instruction, source_line) {
            (Some(instruction), Some(line)) => write!(f, "{instruction} ({line}): ")?,
            (Some(name), None) => write!(f, "{name}: ")?,
            (None, Some(line)) => write!(f, "{line}: ")?,
            (None, None) => {}
        }
        f.write_str(detail)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

/// Returns an [`Error::rule`] unless the condition holds.
///
/// ```
/// # fn check(rank: usize, dimension: usize) -> helio_ir::Result<()> {
/// helio_ir::ensure!(dimension < rank, "iota.C1", "dimension {dimension} of rank {rank}");
/// # Ok(()) }
/// # assert_eq!(check(1, 2).unwrap_err().rule_id(), Some("iota.C1"));
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $rule:expr, $($detail:tt)+) => {
        if !$condition {
            return Err($crate::Error::rule($rule, format!($($detail)+)));
        }
    };
}
