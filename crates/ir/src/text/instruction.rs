//! Instructions: shape, operation, operands, attributes.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::LazyLock;

use foldhash::HashMap;
use smallvec::SmallVec;

use super::async_sugar::Stage;
use super::attrs::{Attr, AttrReader};
use super::computation::Scope;
use super::extra;
use super::lexer::Cursor;
use super::literal::{literal, pass_literal};
use super::names::Named;
use super::parser::{Failure, MAX_INFERRED_LEAVES, Parser};
use super::shape::{can_be_shape, shape};
use crate::ops::{Constant, GetTupleElement, InferCx, OpInfo, Parameter};
use crate::{
    Error, Extra, Instr, InstrId, Location, Name, Op, Operands, Result, Shape, SourceLine,
};

/// All operations by name.
static OPERATIONS: LazyLock<HashMap<&str, OpInfo>> =
    LazyLock::new(|| Op::table().into_iter().map(|row| (row.name, row)).collect());

/// Attributes whose value is a computation, or a list of some, which may be given without a name.
const COMPUTATION_ATTRIBUTES: &[&str] = &[
    "body",
    "branch_computations",
    "called_computations",
    "calls",
    "condition",
    "false_computation",
    "scatter",
    "select",
    "to_apply",
    "true_computation",
];

/// So many attributes of an instruction are looked for one by one.
const MAX_COMPARED: usize = 8;

/// How large a shape is: its tuples and leaves, and how deep they are nested.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    leaves: usize,
    depth: usize,
}

impl Size {
    /// Recurses as deep as the shape is, which is limited.
    pub(super) fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Tuple(elements) => {
                let inside = elements.iter().map(Size::of).fold(Size::default(), Size::and);
                Size { leaves: inside.leaves + 1, depth: inside.depth + 1 }
            }
            _ => Size { leaves: 1, depth: 0 },
        }
    }

    pub(super) fn and(self, other: Size) -> Self {
        let leaves = self.leaves.saturating_add(other.leaves);
        Size { leaves, depth: self.depth.max(other.depth) }
    }
}

/// The attributes of an instruction: most have one or none.
type RawAttrs<'a> = SmallVec<[RawAttr<'a>; 1]>;

/// An attribute as written.
#[derive(Clone)]
pub(super) struct RawAttr<'a> {
    pub(super) name: &'a str,
    /// The value; for a computation without a name, the name it was given.
    pub(super) value: Cow<'a, str>,
    /// Where the value stands.
    pub(super) at: Location,
    name_at: Location,
    cursor: Cursor<'a>,
}

impl<'a> RawAttr<'a> {
    /// The value once more, to be read.
    pub(super) fn value_cursor(&self) -> Cursor<'a> {
        self.cursor
    }
}

/// What an operation is for, on which its name depends.
#[derive(Clone, Copy)]
pub(super) enum Role<'a> {
    /// It has this name.
    Statement(&'a str),
    /// It stands in the place of an operand, without a name or attributes.
    Operand,
    /// It is the whole text, without a name.
    Alone,
}

/// An instruction as it is written: `shape opcode(operands), attributes`.
struct InstrText<'a> {
    declared: Option<Shape>,
    opcode: &'a str,
    opcode_at: Cursor<'a>,
    /// Which part of an asynchronous operation its opcode names, if it does.
    stage: Option<Stage<'a>>,
    /// The operation, if it has a value in place of operands.
    given: Option<Op>,
    operands: Operands,
    /// What its name, and those of what stands within it, are made of.
    base: Cow<'a, str>,
    attrs: RawAttrs<'a>,
}

impl<'a> Parser<'a> {
    /// `ROOT name = …`
    pub(super) fn statement(&mut self, scope: &mut Scope<'a>) -> Result<InstrId, Failure> {
        self.cursor.eat_word("ROOT");
        let (mut at, place) = (self.cursor, self.cursor.location());
        let name = self.cursor.name("the name of an instruction")?;
        if scope.names.contains(name) {
            let detail = format!("a second instruction `{name}` in this computation");
            return Err(at.broken("computation.C2", detail).into());
        }
        let result = self.cursor.expect("=").map_err(Failure::from);
        let result = result
            .and_then(|()| self.operation(scope, Role::Statement(name), place))
            .map_err(|Failure(e)| Failure(e.map(|e| e.in_instruction(name))));
        let named = result.as_ref().map_or(Named::Bad, |&id| Named::Good(id));
        if let Some(evicted) = scope.names.declare(name, named) {
            scope.computation.instr_mut(evicted).name = scope.names.make_up(name, evicted).into();
        }
        result
    }

    /// `shape opcode(operands), attributes`
    pub(super) fn operation(
        &mut self,
        scope: &mut Scope<'a>,
        role: Role<'a>,
        at: Location,
    ) -> Result<InstrId, Failure> {
        self.cursor.enter()?;
        let result = self.operation_here(scope, role, at);
        self.cursor.leave();
        result
    }

    fn operation_here(
        &mut self,
        scope: &mut Scope<'a>,
        role: Role<'a>,
        at: Location,
    ) -> Result<InstrId, Failure> {
        let mut text = self.instr_text(scope, role)?;
        let (op, extra, shape) = match self.meaning(scope, &mut text) {
            Ok(meaning) => meaning,
            Err(Failure(e)) => {
                let line = self.source_line(&text.attrs);
                let at = text.opcode_at.location();
                return Err(Failure(e.map(|e| e.at(Some(at)).from_line(line))));
            }
        };
        let id = InstrId(scope.computation.instrs().len() as u32); // `push` sees that it fits
        let name: Name = match role {
            Role::Statement(name) => name.into(),
            _ => scope.names.make_up(&text.base, id).into(),
        };
        scope.note_async(id, &op, &text.operands);
        let extra = extra.filter(|extra| **extra != Extra::default());
        let instr = Instr::new(op, text.operands, shape).named(name);
        Ok(self.push_instr(scope, Instr { extra, at: Some(at), ..instr })?)
    }

    /// Reads an instruction's text.
    fn instr_text(
        &mut self,
        scope: &mut Scope<'a>,
        role: Role<'a>,
    ) -> Result<InstrText<'a>, Failure> {
        let declared = match can_be_shape(&mut self.cursor) {
            true => Some(shape(&mut self.cursor)?),
            false => None,
        };
        let mut opcode_at = self.cursor;
        let opcode = self.cursor.word("an operation")?;
        let stage = self.async_stage(opcode, &mut opcode_at)?;
        let wanted = stage.as_ref().map_or(opcode, |stage| stage.opcode());
        let needs_shape = OPERATIONS.get(wanted).is_some_and(|row| row.needs_shape);
        if declared.is_none() && needs_shape {
            return Err(opcode_at.error(format!("{opcode} needs its shape before it")).into());
        }
        let given = self.immediate(wanted, declared.as_ref())?;
        let operands = match given {
            Some(_) => Operands::default(),
            None => self.operands(scope)?,
        };
        let base = match role {
            Role::Statement(name) => Cow::Borrowed(name),
            Role::Operand => Cow::Owned(format!("{opcode}.anon")),
            Role::Alone => Cow::Borrowed("root"),
        };
        let attrs = match role {
            Role::Operand => RawAttrs::new(),
            _ => self.attributes(&base)?,
        };
        Ok(InstrText { declared, opcode, opcode_at, stage, given, operands, base, attrs })
    }

    /// The operation that an instruction's text describes, what else its attributes say, and its shape.
    fn meaning(
        &mut self,
        scope: &mut Scope<'a>,
        text: &mut InstrText<'a>,
    ) -> Result<(Op, Option<Box<Extra>>, Shape), Failure> {
        let InstrText { declared, opcode, stage, given, operands, attrs, .. } = text;
        let (op, extra) = match (given.take(), stage) {
            (Some(op), _) => (op, self.leftovers(scope, opcode, attrs.iter(), false)?),
            (None, None) => {
                let shapes = scope.shapes(operands);
                // The type of a product is free; one that is not written is that of the operands.
                let product = shapes.first().and_then(|shape| shape.as_array());
                let product = product.map_or(Shape::Token, |array| Shape::scalar(array.element()));
                let result = declared.as_ref().unwrap_or(&product);
                self.read_op(scope, opcode, &shapes, result, attrs)?
            }
            (None, Some(stage)) => {
                self.async_op(scope, stage, operands, declared.as_ref(), attrs)?
            }
        };
        let shape = match declared.take() {
            Some(shape) => shape,
            None => self.infer(scope, &op, operands)?,
        };
        Ok((op, extra, shape))
    }

    /// The line of the framework's program that an instruction's attributes tell of.
    fn source_line(&self, attrs: &[RawAttr<'a>]) -> Option<SourceLine> {
        let told = attrs.iter().find(|attr| attr.name == "metadata")?;
        self.module.source_line(&extra::metadata(&mut told.value_cursor()).ok()?)
    }

    /// A constant or a parameter, which have a value in place of operands; `None` for another opcode.
    fn immediate(&mut self, opcode: &str, declared: Option<&Shape>) -> Result<Option<Op>, Failure> {
        Ok(match (opcode, declared) {
            ("constant", Some(shape)) => {
                self.cursor.expect("(")?;
                self.cursor.elided = false;
                let literal = literal(&mut self.cursor, shape)?;
                self.cursor.expect(")")?;
                Some(Op::from(Constant { literal, elided: self.cursor.elided }))
            }
            ("parameter", Some(shape)) => {
                self.cursor.expect("(")?;
                let number = self.cursor.size()?;
                self.cursor.expect(")")?;
                Some(Op::from(Parameter { number, shape: shape.without_layout() }))
            }
            _ => None,
        })
    }

    /// Appends an instruction.
    pub(super) fn push_instr(&mut self, scope: &mut Scope<'a>, instr: Instr) -> Result<InstrId> {
        scope.sizes.push(Size::of(&instr.shape));
        scope.computation.push(instr)
    }

    /// `(operand, operand)`
    fn operands(&mut self, scope: &mut Scope<'a>) -> Result<Operands, Failure> {
        let mut operands = Operands::default();
        self.cursor.expect("(")?;
        if self.cursor.eat(")") {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(scope)?);
            if !self.cursor.eat(",") {
                break;
            }
        }
        self.cursor.expect(")")?;
        Ok(operands)
    }

    /// `name`, `shape name`, `name#1#0` for elements of a tuple, or an operation without attributes.
    fn operand(&mut self, scope: &mut Scope<'a>) -> Result<InstrId, Failure> {
        let mut at = self.cursor;
        let declared = match can_be_shape(&mut self.cursor) {
            true => Some(shape(&mut self.cursor)?),
            false => None,
        };
        if let Some(shape) = &declared
            && scope.free_parameters.is_some()
            && matches!(self.cursor.peek(), Some(b',' | b')'))
        {
            return self.free_parameter(scope, None, shape.clone(), at.location());
        }
        let name = self.cursor.name("an operand")?;
        if self.cursor.peek() == Some(b'(') {
            self.cursor = at;
            return self.operation(scope, Role::Operand, at.location());
        }
        let mut id = match (scope.names.get(name), &declared) {
            (Some(Named::Good(id)), _) => id,
            (Some(Named::Bad), _) => return Err(Failure::REPORTED),
            (None, Some(shape)) if scope.free_parameters.is_some() => {
                return self.free_parameter(scope, Some(name), shape.clone(), at.location());
            }
            (None, _) => {
                let detail = format!("no instruction `{name}` stands before this one");
                return Err(at.broken("computation.C3", detail).into());
            }
        };
        let mut path = Cow::Borrowed(name);
        while self.cursor.eat("#") {
            let index = self.cursor.size()?;
            path = Cow::Owned(format!("{path}#{index}"));
            id = self.tuple_element(scope, id, index, &path, &at.location())?;
        }
        let found = &scope.computation.instr(id).shape;
        if let Some(shape) = declared.filter(|shape| !shape.same(found)) {
            return Err(at.error(format!("`{path}` is {shape} here, but {found} above")).into());
        }
        Ok(id)
    }

    /// An operand of a single instruction, which becomes a parameter.
    fn free_parameter(
        &mut self,
        scope: &mut Scope<'a>,
        name: Option<&'a str>,
        shape: Shape,
        at: Location,
    ) -> Result<InstrId, Failure> {
        let number = scope.free_parameters.unwrap_or(0);
        scope.free_parameters = Some(number + 1);
        let id = InstrId(scope.computation.instrs().len() as u32); // `push` sees that it fits
        let name = match name {
            Some(name) => {
                if let Some(evicted) = scope.names.declare(name, Named::Good(id)) {
                    scope.computation.instr_mut(evicted).name =
                        scope.names.make_up(name, evicted).into();
                }
                name.to_owned()
            }
            None => scope.names.make_up("operand", id),
        };
        let op = Op::from(Parameter { number, shape: shape.without_layout() });
        let instr = Instr { at: Some(at), ..Instr::new(op, [], shape).named(name) };
        Ok(self.push_instr(scope, instr)?)
    }

    /// The element that `path` means, once for all its uses.
    fn tuple_element(
        &mut self,
        scope: &mut Scope<'a>,
        operand: InstrId,
        index: usize,
        path: &str,
        at: &Location,
    ) -> Result<InstrId, Failure> {
        if let Some(Named::Good(id)) = scope.names.get(path) {
            return Ok(id);
        }
        let op = Op::GetTupleElement(GetTupleElement { index });
        let shape = self.infer(scope, &op, &[operand]).map_err(|e| e.at(Some(at.clone())))?;
        let id = InstrId(scope.computation.instrs().len() as u32); // `push` sees that it fits
        let name = scope.names.make_up(&path.replace('#', "_"), id);
        scope.names.alias(path.to_owned(), id);
        let at = Some(at.clone());
        let instr = Instr { at, ..Instr::new(op, [operand], shape).named(name) };
        Ok(self.push_instr(scope, instr)?)
    }

    /// `, name=value, name=value`
    fn attributes(&mut self, instruction: &str) -> Result<RawAttrs<'a>, Failure> {
        let mut attrs = RawAttrs::new();
        // Of many: few are compared faster than hashed.
        let mut seen = HashSet::new();
        while self.cursor.eat(",") {
            let name_at = self.cursor.location();
            let name = self.cursor.word("the name of an attribute")?;
            if attrs.len() == MAX_COMPARED {
                seen.extend(attrs.iter().map(|attr| attr.name));
            }
            let is_new = match attrs.len() {
                ..MAX_COMPARED => attrs.iter().all(|attr| attr.name != name),
                _ => seen.insert(name),
            };
            if !is_new {
                let e = Error::invalid(format!("a second attribute `{name}`"));
                return Err(e.at(Some(name_at)).into());
            }
            self.cursor.expect("=")?;
            let cursor = self.cursor;
            let at = self.cursor.location();
            let value = match self.cursor.peek() {
                Some(b'{') if COMPUTATION_ATTRIBUTES.contains(&name) => {
                    Cow::Owned(self.computation_value(&format!("{instruction}.{name}"))?)
                }
                // `f32[2] {1, 2}`: the one value with a space before its last part.
                _ if name == "literal" => {
                    let start = self.cursor.pos();
                    pass_literal(&mut self.cursor)?;
                    Cow::Borrowed(self.cursor.since(start))
                }
                _ => Cow::Borrowed(self.cursor.value()?),
            };
            let cursor = match &value {
                Cow::Borrowed(value) => cursor.limited_to(value),
                Cow::Owned(_) => cursor,
            };
            attrs.push(RawAttr { name, value, at, name_at, cursor });
        }
        Ok(attrs)
    }

    /// An attribute that the text does not have.
    pub(super) fn made_up_attr(&mut self, name: &'a str, value: String) -> RawAttr<'a> {
        let at = self.cursor.location();
        RawAttr { name, value: Cow::Owned(value), at: at.clone(), name_at: at, cursor: self.cursor }
    }

    /// `{ ROOT … }` or `{name, { ROOT … }}`: with names in place of computations.
    fn computation_value(&mut self, base: &str) -> Result<String, Failure> {
        let mut ahead = self.cursor;
        ahead.expect("{")?;
        // A list begins with a brace or with a name that is not defined here.
        let is_list = match ahead.peek() {
            Some(b'{' | b'}') => true,
            _ => ahead.name("").is_ok() && matches!(ahead.peek(), Some(b',' | b'}')),
        };
        if !is_list {
            return self.inline_computation(base);
        }
        self.cursor.expect("{")?;
        let mut names = Vec::new();
        if !self.cursor.eat("}") {
            loop {
                names.push(match self.cursor.peek() {
                    Some(b'{') => self.inline_computation(base)?,
                    _ => self.cursor.name("the name of a computation")?.to_owned(),
                });
                if !self.cursor.eat(",") {
                    break;
                }
            }
            self.cursor.expect("}")?;
        }
        Ok(format!("{{{}}}", names.join(",")))
    }

    /// The operation that these attributes describe, and what else they say.
    pub(super) fn read_op(
        &self,
        scope: &Scope<'a>,
        opcode: &str,
        operands: &[&Shape],
        result: &Shape,
        attrs: &[RawAttr<'a>],
    ) -> Result<(Op, Option<Box<Extra>>), Failure> {
        let uses_failed = Cell::new(false);
        let find_computation = |name: &str| match self.computations.get(name) {
            Some(Named::Good(id)) => Some(id),
            Some(Named::Bad) => {
                uses_failed.set(true);
                None
            }
            None => None,
        };
        let mut reader = AttrReader {
            opcode,
            operands,
            result,
            attrs: attrs
                .iter()
                .map(|raw| Attr {
                    name: raw.name,
                    value: &raw.value,
                    at: raw.at.clone(),
                    taken: false,
                })
                .collect(),
            find_computation: &find_computation,
        };
        let op = Op::read(&mut reader)
            .unwrap_or_else(|| Err(Error::internal(format!("{opcode} is no operation"))));
        if uses_failed.get() {
            return Err(Failure::REPORTED);
        }
        let op = op?;
        let left = attrs.iter().zip(&reader.attrs).filter(|(_, attr)| !attr.taken);
        let is_unary = matches!(op, Op::Unary(_));
        let extra = self.leftovers(scope, opcode, left.map(|(raw, _)| raw), is_unary)?;
        Ok((op, extra))
    }

    /// The attributes that the operation has not taken.
    fn leftovers<'b>(
        &self,
        scope: &Scope<'a>,
        opcode: &str,
        attrs: impl Iterator<Item = &'b RawAttr<'a>>,
        is_unary: bool,
    ) -> Result<Option<Box<Extra>>, Failure>
    where
        'a: 'b,
    {
        let mut all: Option<Box<Extra>> = None;
        for attr in attrs {
            let extra = all.get_or_insert_default();
            if is_unary && attr.name == "result_accuracy" {
                // How exact the user wants it; every value here is as exact as it gets.
                extra.other.push((attr.name.to_owned(), attr.value.clone().into_owned()));
            } else if !extra::take(extra, attr, &scope.names)? {
                let e = Error::invalid(format!("{opcode} has no attribute `{}`", attr.name));
                return Err(e.at(Some(attr.name_at.clone())).into());
            }
        }
        Ok(all)
    }

    /// The shape that is not written. Errors: those of the operation, and `ResourceExhausted` beyond
    /// [`MAX_INFERRED_LEAVES`].
    fn infer(&mut self, scope: &Scope<'a>, op: &Op, operands: &[InstrId]) -> Result<Shape> {
        let given = operands.iter().map(|id| scope.sizes[id.index()]);
        let called = op.callees().into_iter().map(|id| self.sizes[id.index()]);
        let size = given.chain(called).fold(Size::default(), Size::and);
        self.inferred_leaves = self.inferred_leaves.saturating_add(size.leaves);
        if self.inferred_leaves > MAX_INFERRED_LEAVES || size.depth >= super::MAX_DEPTH {
            return Err(Error::exhausted(format!(
                "shapes that are not written have more than {MAX_INFERRED_LEAVES} leaves, or nest \
                 more than {} deep",
                super::MAX_DEPTH
            )));
        }
        let shapes = scope.shapes(operands);
        op.infer(&InferCx { operands: &shapes, module: &self.module })
    }

    pub(super) fn is_opcode(opcode: &str) -> bool {
        OPERATIONS.contains_key(opcode)
    }
}
