//! `dot-start`, `dot-update` and `dot-done`: any operation begun here and done there.
//!
//! Only a few such pairs are operations of their own. The others stand for `async-start`,
//! `async-update` and `async-done` around a computation that holds nothing but the operation.

use super::attrs::Scan;
use super::computation::{Scope, thread_attribute};
use super::instruction::RawAttr;
use super::lexer::Cursor;
use super::parser::{Failure, Parser};
use crate::ops::Parameter;
use crate::{CompId, Error, Extra, Instr, InstrId, Op, Result, Shape};

/// Attributes of `async-start` itself.
const START_ATTRIBUTES: &[&str] = &["async_execution_thread", "output_to_operand_aliasing"];

/// Attributes of `async-start` that the later stages may repeat.
const REPEATED: &[&str] = &["async_execution_thread", "calls"];

/// A stage of an asynchronous operation.
pub(super) enum Stage<'a> {
    /// `async-start` around this operation.
    Start(&'a str),
    /// `async-update` of this operation; without one, of any.
    Update(Option<&'a str>),
    /// `async-done` of this operation; without one, of any.
    Done(Option<&'a str>),
}

impl Stage<'_> {
    pub(super) fn opcode(&self) -> &'static str {
        match self {
            Stage::Start(_) => "async-start",
            Stage::Update(_) => "async-update",
            Stage::Done(_) => "async-done",
        }
    }
}

impl<'a> Parser<'a> {
    /// Whether the asynchronous forms of an operation are operations of their own.
    fn has_own_stages(opcode: &str) -> bool {
        ["-start", "-done"].iter().any(|stage| Self::is_opcode(&format!("{opcode}{stage}")))
    }

    /// The stage that an opcode is; `None` if it is an ordinary operation. Errors: it is neither.
    pub(super) fn async_stage(
        &self,
        opcode: &'a str,
        at: &mut Cursor<'a>,
    ) -> Result<Option<Stage<'a>>> {
        let wraps = |suffix: &str| {
            let wrapped = opcode.strip_suffix(suffix)?;
            (Self::is_opcode(wrapped)
                && !Self::has_own_stages(wrapped)
                && !matches!(wrapped, "constant" | "parameter")
                && !wrapped.starts_with("async-"))
            .then_some(wrapped)
        };
        match opcode {
            "async-update" => Ok(Some(Stage::Update(None))),
            "async-done" => Ok(Some(Stage::Done(None))),
            _ if Self::is_opcode(opcode) => Ok(None),
            _ => wraps("-start")
                .map(Stage::Start)
                .or_else(|| wraps("-update").map(|wrapped| Stage::Update(Some(wrapped))))
                .or_else(|| wraps("-done").map(|wrapped| Stage::Done(Some(wrapped))))
                .map(Some)
                .ok_or_else(|| at.error(format!("unknown operation `{opcode}`"))),
        }
    }

    /// The operation of a stage.
    pub(super) fn async_op(
        &mut self,
        scope: &Scope<'a>,
        stage: &Stage<'a>,
        operands: &[InstrId],
        declared: Option<&Shape>,
        attrs: &[RawAttr<'a>],
    ) -> Result<(Op, Option<Box<Extra>>), Failure> {
        let result = declared.unwrap_or(&Shape::Token);
        match *stage {
            Stage::Start(wrapped) => self.async_start(scope, wrapped, operands, result, attrs),
            Stage::Update(wrapped) | Stage::Done(wrapped) => {
                let calls = operands.first().and_then(|id| scope.async_calls.get(id).copied());
                let Some(calls) = calls else {
                    let detail = "the operand must be an async-start or an async-update";
                    return Err(Error::rule("instruction.C2", detail).into());
                };
                let (repeated, attrs): (Vec<_>, Vec<_>) =
                    attrs.iter().cloned().partition(|attr| REPEATED.contains(&attr.name));
                self.check_repeated(wrapped, calls, &repeated)?;
                let shapes = scope.shapes(operands);
                self.read_op(scope, stage.opcode(), &shapes, result, &attrs)
            }
        }
    }

    /// `name-start(operands)`: makes the computation and begins it.
    fn async_start(
        &mut self,
        scope: &Scope<'a>,
        wrapped: &str,
        operands: &[InstrId],
        result: &Shape,
        attrs: &[RawAttr<'a>],
    ) -> Result<(Op, Option<Box<Extra>>), Failure> {
        let (params, wrapped_result) = match result.as_tuple() {
            Some([Shape::Tuple(params), result, ..]) => (params, result),
            _ => {
                let detail = format!("the shape must be ((operands), result, …), found {result}");
                return Err(Error::invalid(detail).into());
            }
        };
        let (own, inner): (Vec<_>, Vec<_>) =
            attrs.iter().cloned().partition(|attr| START_ATTRIBUTES.contains(&attr.name));
        let param_shapes: Vec<_> = params.iter().collect();
        let (op, extra) = self.read_op(scope, wrapped, &param_shapes, wrapped_result, &inner)?;

        let at = scope.computation.at.clone();
        let mut inside = Scope::new(String::new(), at.clone());
        for (number, shape) in params.iter().enumerate() {
            let op = Op::from(Parameter { number, shape: shape.without_layout() });
            let name = format!("async_param.{number}");
            let (shape, at) = (shape.clone(), at.clone());
            let instr = Instr { at, ..Instr::new(op, [], shape).named(name) };
            self.push_instr(&mut inside, instr)?;
        }
        // XLA repeats what has no names of other instructions in it.
        let mut repeated = extra.clone();
        if let Some(repeated) = &mut repeated {
            repeated.sharding = None;
            repeated.control_predecessors.clear();
        }
        let all: Vec<_> = inside.computation.ids().collect();
        let root = Instr {
            extra: repeated.filter(|extra| **extra != Extra::default()),
            at,
            ..Instr::new(op, all, wrapped_result.clone()).named("async_op")
        };
        self.push_instr(&mut inside, root)?;
        let thread = own.iter().find(|attr| attr.name == "async_execution_thread");
        let thread = thread.map(|attr| Scan::new(&attr.value).string()).transpose()?;
        inside.computation.attributes = thread_attribute(thread.as_deref());
        let name = self.push_unnamed(inside.computation, "async_wrapped")?;

        let own: Vec<_> = own.into_iter().chain([self.made_up_attr("calls", name)]).collect();
        let shapes = scope.shapes(operands);
        let (op, _) = self.read_op(scope, "async-start", &shapes, result, &own)?;
        Ok((op, extra))
    }

    /// `async-done` may repeat what its `async-start` says, if it says the same.
    fn check_repeated(
        &self,
        wrapped: Option<&str>,
        calls: CompId,
        repeated: &[RawAttr<'a>],
    ) -> Result<()> {
        let computation = self.module.computation(calls);
        let opcode = computation.instr(computation.root()).op.opcode();
        if let Some(wrapped) = wrapped.filter(|&wrapped| wrapped != opcode) {
            let detail = format!("the operand began {opcode}, not {wrapped}");
            return Err(Error::invalid(detail));
        }
        for attr in repeated {
            let same = match attr.name {
                "calls" => {
                    let name: &str = &attr.value;
                    name.strip_prefix('%').unwrap_or(name) == computation.name
                }
                _ => {
                    let thread = Scan::new(&attr.value).string()?;
                    thread_attribute(Some(&thread)) == computation.attributes
                }
            };
            if !same {
                let detail = format!("{} differs from that of the async-start", attr.name);
                return Err(Error::invalid(detail).at(Some(attr.at.clone())));
            }
        }
        Ok(())
    }
}
