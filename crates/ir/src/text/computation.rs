//! Computations: signature, body, trailing attributes.

use std::collections::HashMap;

use smallvec::SmallVec;

use super::attrs::quote;
use super::instruction::Size;
use super::names::{Named, Names};
use super::parser::{Failure, Parser};
use super::shape::shape;
use crate::{CompId, Computation, Error, InstrId, Location, Op, Result, Shape};

/// A computation as it is read.
pub(super) struct Scope<'a> {
    pub(super) computation: Computation,
    pub(super) names: Names<'a, InstrId>,
    /// For each instruction, the size of its shape.
    pub(super) sizes: Vec<Size>,
    /// In the text of a single instruction: the number of the next parameter that an operand
    /// becomes.
    pub(super) free_parameters: Option<usize>,
    /// For each `async-start` and `async-update`, the computation that was begun.
    pub(super) async_calls: HashMap<InstrId, CompId>,
    root: Option<InstrId>,
    /// Whether an instruction has an error.
    failed: bool,
}

impl Scope<'_> {
    pub(super) fn new(name: String, at: Option<Location>) -> Self {
        let mut computation = Computation::new(name);
        computation.at = at;
        Scope {
            computation,
            names: Names::new(),
            sizes: Vec::new(),
            free_parameters: None,
            async_calls: HashMap::new(),
            root: None,
            failed: false,
        }
    }

    /// Notes which computation an instruction that begins or updates an asynchronous call stands for.
    pub(super) fn note_async(&mut self, id: InstrId, op: &Op, operands: &[InstrId]) {
        let calls = match op {
            Op::AsyncStart(start) => Some(start.calls),
            Op::AsyncUpdate(_) => operands.first().and_then(|id| self.async_calls.get(id).copied()),
            _ => None,
        };
        self.async_calls.extend(calls.map(|calls| (id, calls)));
    }

    /// The shapes of these instructions.
    pub(super) fn shapes(&self, ids: &[InstrId]) -> SmallVec<[&Shape; 4]> {
        ids.iter().map(|&id| &self.computation.instr(id).shape).collect()
    }
}

/// `(p: f32[], q: s32[]) -> f32[]`, and where its parts stand.
struct Signature {
    at: Location,
    params: Vec<Shape>,
    result_at: Location,
    result: Shape,
}

impl<'a> Parser<'a> {
    /// A computation without the word `ENTRY`. After an error the next computation is read next.
    pub(super) fn computation(&mut self) -> Result<CompId, Failure> {
        let (mut at, place) = (self.cursor, self.cursor.location());
        let name = self.cursor.name("the name of a computation");
        let name = self.or_next_computation(name)?;
        if self.computations.contains(name) {
            let detail = format!("a second computation `{name}`; their names must differ");
            let e = at.broken("module.C2", detail);
            self.report(e);
        }
        let result = self.signed_body(name, place);
        let named = result.as_ref().map_or(Named::Bad, |&id| Named::Good(id));
        self.declare_computation(name, named);
        result
    }

    fn or_next_computation<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.cursor.next_computation();
        }
        result
    }

    fn signed_body(&mut self, name: &str, at: Location) -> Result<CompId, Failure> {
        let signature = match self.cursor.peek() {
            Some(b'(') => {
                let signature = self.signature();
                Some(self.or_next_computation(signature)?)
            }
            _ => None,
        };
        if !self.cursor.peek_token("{") {
            let e = self.cursor.unexpected("`{`");
            self.or_next_computation(Err(e))?;
        }
        let body = self.body(Scope::new(name.to_owned(), Some(at)));
        // Even after an error in the body: these belong to it.
        let attributes = self.trailing_attributes();
        let mut computation = body?;
        computation.attributes = attributes?;
        if let Some(signature) = signature {
            signature.check(&computation)?;
        }
        self.push(computation)
    }

    fn signature(&mut self) -> Result<Signature> {
        let at = self.cursor.location();
        let mut params = Vec::new();
        self.cursor.expect("(")?;
        if !self.cursor.eat(")") {
            loop {
                self.cursor.name("the name of a parameter")?;
                // The colon is the end of a name in XLA's grammar, which none needs.
                self.cursor.eat(":");
                params.push(shape(&mut self.cursor)?);
                if !self.cursor.eat(",") {
                    break;
                }
            }
            self.cursor.expect(")")?;
        }
        self.cursor.expect("->")?;
        let result_at = self.cursor.location();
        let result = shape(&mut self.cursor)?;
        Ok(Signature { at, params, result_at, result })
    }

    /// `{ instruction … }`
    pub(super) fn body(&mut self, mut scope: Scope<'a>) -> Result<Computation, Failure> {
        self.cursor.expect("{")?;
        self.cursor.enter()?;
        let result = self.statements(&mut scope);
        self.cursor.leave();
        if result.is_err() || scope.failed {
            self.unfinished.push(scope.computation);
            return Err(result.err().unwrap_or(Failure::REPORTED));
        }
        if let Some(root) = scope.root {
            scope.computation.set_root(root);
        }
        Ok(scope.computation)
    }

    fn statements(&mut self, scope: &mut Scope<'a>) -> Result<(), Failure> {
        if self.cursor.peek() == Some(b'}') {
            let e = self.cursor.broken("module.C1", "a computation without instructions");
            self.report(e);
            scope.failed = true;
        }
        while !self.cursor.eat("}") {
            if self.cursor.at_end() {
                let e = self.cursor.unexpected("an instruction or `}`");
                // After an error it is likely that the end was passed over.
                return Err(if scope.failed { Failure::REPORTED } else { e.into() });
            }
            let at = self.cursor.location();
            let is_root = self.cursor.peek_word() == Some("ROOT");
            match self.statement(scope) {
                Ok(id) if is_root && scope.root.replace(id).is_some() => {
                    let e = Error::invalid("a second ROOT; a computation has one");
                    self.report(e.at(Some(at)));
                    scope.failed = true;
                }
                Ok(_) => {}
                Err(failure) => {
                    scope.failed = true;
                    self.report(failure);
                    self.cursor.next_instruction();
                }
            }
            if self.is_full() {
                return Err(Failure::REPORTED);
            }
        }
        Ok(())
    }

    /// `, execution_thread="host"` after a computation.
    fn trailing_attributes(&mut self) -> Result<Vec<(String, String)>, Failure> {
        let mut attributes: Vec<(String, String)> = Vec::new();
        while self.cursor.eat(",") {
            let mut at = self.cursor;
            let name = self.cursor.word("the name of an attribute")?;
            self.cursor.expect("=")?;
            let value = self.cursor.value()?;
            // XLA knows just this one, so there is at most one.
            if name != "execution_thread" {
                return Err(at.error(format!("a computation has no attribute `{name}`")).into());
            }
            if !attributes.is_empty() {
                return Err(at.error(format!("a second attribute `{name}`")).into());
            }
            attributes.push((name.to_owned(), value.to_owned()));
        }
        Ok(attributes)
    }

    /// The value of an attribute that names a computation: a computation without a name is read,
    /// and its new name returned.
    pub(super) fn inline_computation(&mut self, base: &str) -> Result<String, Failure> {
        let at = self.cursor.location();
        let computation = self.body(Scope::new(String::new(), Some(at)))?;
        self.push_unnamed(computation, base)
    }

    /// Appends a computation under a new name.
    pub(super) fn push_unnamed(
        &mut self,
        computation: Computation,
        base: &str,
    ) -> Result<String, Failure> {
        let id = self.push(computation)?;
        let name = self.computations.make_up(base, id);
        self.module.computation_mut(id).name.clone_from(&name);
        Ok(name)
    }
}

impl Signature {
    fn check(&self, computation: &Computation) -> Result<()> {
        let Signature { at, params, result_at, result } = self;
        let (root, shape) = (computation.instr(computation.root()), computation.result_shape());
        if !shape.same(result) {
            let detail =
                format!("the result is {result} here, but {shape} at its ROOT {}", root.name);
            return Err(Error::invalid(detail).at(Some(result_at.clone())));
        }
        let found = computation.params();
        if found.len() != params.len() {
            let (here, there) = (params.len(), found.len());
            let detail = format!("{here} parameters here, but {there} in the computation");
            return Err(Error::invalid(detail).at(Some(at.clone())));
        }
        for (&number, &id) in &found {
            let shape = &computation.instr(id).shape;
            // The verifier sees to it that numbers are dense.
            if let Some(param) = params.get(number).filter(|param| !param.same(shape)) {
                let detail = format!("parameter {number} is {param} here, but {shape} below");
                return Err(Error::invalid(detail).at(Some(at.clone())));
            }
        }
        Ok(())
    }
}

/// `execution_thread`'s value, unless it is XLA's default.
pub(super) fn thread_attribute(thread: Option<&str>) -> Vec<(String, String)> {
    match thread {
        None | Some("main") => Vec::new(),
        Some(thread) => vec![("execution_thread".to_owned(), quote(thread))],
    }
}
