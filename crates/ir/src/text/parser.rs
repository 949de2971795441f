//! Modules: the first line, the computations, and what to do after an error.

use super::computation::Scope;
use super::instruction::{Role, Size};
use super::lexer::{Cursor, Lines};
use super::names::{Named, Names};
use super::{header, shape};
use crate::verify::verify_parts;
use crate::{CompId, Computation, Error, Errors, Location, Module, Verified, verify};

/// The most errors that are reported; then reading ends.
pub const MAX_ERRORS: usize = 100;

/// The most tuples and leaves of all shapes together that are inferred, not written. (A tuple of a
/// tuple twice over, often enough, is larger than any memory.)
pub const MAX_INFERRED_LEAVES: usize = 1 << 22;

/// Reads a module, a list of computations without its first line (one marked `ENTRY`, else the last
/// is the entry), or a single instruction whose operands have shapes (they become parameters).
///
/// The module is well formed, but nothing is checked that does not concern its text: that is the
/// verifier's work. Errors: all that were found, at most [`MAX_ERRORS`], each with its place. After
/// an error in an instruction the next line that looks like one is read; what uses something with
/// an error is passed over.
pub fn parse(text: &str) -> Result<Module, Errors> {
    let lines = Lines::new(text)?;
    let parser = Parser::read(&lines);
    if parser.errors.is_empty() { Ok(parser.module) } else { Err(parser.errors.into()) }
}

/// Reads a module and checks it, as [`parse`] and then [`verify()`] do; but what has been read of a text
/// with errors is checked, too. Errors: all that were found by either, in the order of the text, at most
/// [`MAX_ERRORS`].
///
/// ```
/// use helio_ir::text::parse_and_verify;
/// let errors = parse_and_verify(
///     "ENTRY e {
///        x = f32[2] parameter(0)
///        y = f32[3] abs(x)
///        ROOT z = f32[2] noperation(x) }",
/// );
/// let errors = errors.unwrap_err();
/// assert_eq!(errors[0].rule_id(), Some("instruction.C1"));
/// assert!(errors[1].detail().contains("unknown operation"));
/// ```
pub fn parse_and_verify(text: &str) -> Result<Verified<Module>, Errors> {
    let lines = Lines::new(text)?;
    let parser = Parser::read(&lines);
    if parser.errors.is_empty() {
        return verify(parser.module);
    }
    let mut errors = parser.errors;
    errors.extend(verify_parts(&parser.module, &parser.unfinished));
    let place = |error: &Error| match error.location() {
        Some(&Location::Text { line, column }) => (line, column),
        _ => (0, 0),
    };
    errors.sort_by_key(place);
    errors.truncate(MAX_ERRORS);
    Err(errors.into())
}

/// Why something was not read: an error, or nothing new (it has been reported).
pub(super) struct Failure(pub(super) Option<Error>);

impl Failure {
    /// Something is wrong that has been reported.
    pub(super) const REPORTED: Failure = Failure(None);
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure(Some(e))
    }
}

/// The state of reading a module.
pub(super) struct Parser<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) module: Module,
    pub(super) computations: Names<'a, CompId>,
    /// For each computation, the size of the shapes it takes and gives.
    pub(super) sizes: Vec<Size>,
    pub(super) inferred_leaves: usize,
    /// What has been read of computations with an error.
    pub(super) unfinished: Vec<Computation>,
    errors: Vec<Error>,
}

impl<'a> Parser<'a> {
    /// Reads a module as far as it can be read.
    fn read(lines: &'a Lines<'a>) -> Self {
        let mut parser = Parser {
            cursor: Cursor::new(lines),
            module: Module::new("module"),
            computations: Names::new(),
            sizes: Vec::new(),
            inferred_leaves: 0,
            unfinished: Vec::new(),
            errors: Vec::new(),
        };
        parser.module();
        parser
    }

    pub(super) fn report(&mut self, failure: impl Into<Failure>) {
        if let Some(e) = failure.into().0
            && !self.is_full()
        {
            self.errors.push(e);
        }
    }

    /// Whether no more errors are wanted.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    fn module(&mut self) {
        let has_header = self.cursor.eat_word("HloModule");
        if has_header {
            if let Err(e) = header::read(&mut self.cursor, &mut self.module) {
                return self.report(e);
            }
        } else if self.is_single_instruction() {
            return self.single_instruction();
        }
        let mut entry = None;
        while !self.is_full() {
            if self.cursor.at_end() {
                break;
            }
            let mut at = self.cursor;
            let is_entry = self.cursor.eat_word("ENTRY");
            match self.computation() {
                Ok(id) if is_entry && entry.replace(id).is_some() => {
                    let e = at.error("a second ENTRY; a module has one");
                    self.report(e);
                }
                Ok(_) => {}
                Err(failure) => self.report(failure),
            }
        }
        if self.module.computations().is_empty() {
            if self.errors.is_empty() {
                let e = self.cursor.unexpected("a computation");
                self.report(e);
            }
            return;
        }
        if let Some(entry) = entry {
            self.module.set_entry(entry);
        }
        if !has_header {
            self.module.name = format!("module_{}", self.module.entry().name);
        }
    }

    /// `f32[2] add(…)`, `x = …` or `ROOT x = …`; a computation has something else after its name.
    fn is_single_instruction(&mut self) -> bool {
        let mut ahead = self.cursor;
        shape::can_be_shape(&mut ahead)
            || ahead.eat_word("ROOT")
            || (ahead.name("").is_ok() && ahead.peek() == Some(b'='))
    }

    fn single_instruction(&mut self) {
        let at = self.cursor.location();
        let mut scope = Scope::new("entry".to_owned(), Some(at.clone()));
        scope.free_parameters = Some(0);
        let result = if shape::can_be_shape(&mut self.cursor) {
            self.operation(&mut scope, Role::Alone, at)
        } else {
            self.statement(&mut scope)
        };
        let result = result.and_then(|_| Ok(self.cursor.expect_end()?));
        if let Err(failure) = result.and_then(|()| self.push(scope.computation)) {
            self.report(failure);
        }
    }

    /// Appends a computation to the module.
    pub(super) fn push(&mut self, computation: Computation) -> Result<CompId, Failure> {
        let params = computation.params();
        let shapes = params.values().copied().chain([computation.root()]);
        let size = shapes
            .fold(Size::default(), |size, id| size.and(Size::of(&computation.instr(id).shape)));
        let id = self.module.push(computation)?;
        self.sizes.push(size);
        Ok(id)
    }

    /// Records the name of a computation from the text.
    pub(super) fn declare_computation(&mut self, name: &'a str, named: Named<CompId>) {
        if let Some(evicted) = self.computations.declare(name, named) {
            let name = self.computations.make_up(name, evicted);
            self.module.computation_mut(evicted).name = name;
        }
    }
}
