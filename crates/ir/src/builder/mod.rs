//! The builder: programs made by calls, in the vocabulary of XLA's `XlaBuilder`.
//!
//! An [`XlaBuilder`] makes one computation; each call appends instructions to it and returns an
//! [`XlaOp`], a cheap handle of a value. [`XlaBuilder::build`] gives an [`XlaComputation`], which
//! can be run, or passed to operations of other builders (`reduce`, `while_loop`, `map` …).
//!
//! Every operation of the specification is here under its builder name in Rust spelling, older
//! interface variants included (`legacy.rs`), as are the opcodes no edition documents. *Source* in
//! the documentation of a method names the editions E1 (oldest) to E4 (newest) of "Operation
//! Semantics" that have it, or XLA's own builder.
//!
//! Conveniences that HLO itself does not have are lowered here:
//!
//! - Binary operations broadcast scalars, stretch dimensions of size 1, and take
//!   `broadcast_dimensions` for operands of different rank.
//! - Where the element type is known from another operand, a Rust number will do for an operand:
//!   `x.add(1.0)`, `2.0 * &x`, `x.pad(0, …)`. It must be a value of that type.
//! - Operations whose older form has no token operand get one: infeeds and outfeeds of a builder
//!   form one chain, in the order of the calls.
//!
//! Invariants: shapes come from [`Op::infer`] alone; no call panics, whatever its arguments. The
//! first error of a builder is kept, with the place of the call in the Rust program; calls after it
//! do nothing, and `build` reports it.
//!
//! Rules of the builder itself (each operation has its own besides):
//!
//! - `builder.C1`: all operands belong to one builder.
//! - `builder.C2`: parameters are numbered from 0 without gaps, each number once.
//! - `builder.C3`: operands of a broadcasting operation have compatible shapes.
//! - `builder.C4`: a list has one entry for each dimension it is for; dimension numbers are in range.
//! - `builder.C5`: an operand has the rank and element type that the interface variant asks for.
//! - `builder.C6`: a Rust number is a value of the element type it stands for.
//! - `builder.C7`: a computation has a root, which belongs to its builder.
//! - `builder.C8`: text kept as written (shardings, attributes) has balanced brackets; words and
//!   names of attributes have no other characters than those.
//!
//! ```
//! use helio_ir::builder::{Padding, XlaBuilder, XlaComputation};
//! use helio_ir::{BinaryOp, ElementType::F32, Shape};
//!
//! # fn main() -> helio_ir::Result<()> {
//! // E4 "ReduceWindow": the maximum of each window of 2x3.
//! let max = XlaComputation::scalar(BinaryOp::Maximum, F32)?;
//! let b = XlaBuilder::new("reduce_window_2x3");
//! let input = b.parameter(0, Shape::array(F32, [4, 6])?, "input");
//! let lowest = b.min_value(F32);
//! input.reduce_window(&lowest, &max, &[2, 3], &[2, 3], Padding::Valid);
//! let computation = b.build()?;
//! assert_eq!(computation.program_shape().to_string(), "(f32[4,6])->f32[2,2]");
//! # Ok(()) }
//! ```
//!
//! [`Op::infer`]: crate::Op::infer

mod broadcasting;
mod collective;
mod computation;
mod constant;
mod control;
mod convolution;
mod custom_call;
mod elementwise;
mod host;
mod indexing;
mod legacy;
mod linalg;
mod movement;
mod operand;
mod operators;
mod random;
mod reduce;
mod scope;
mod sort;
mod state;
mod window;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::{ArrayShape, CompId, Error, InstrId, Op, Result, Shape};

pub use computation::XlaComputation;
pub use convolution::ConvOptions;
pub use custom_call::{ApiVersion, CustomCallOptions, OutputOperandAlias};
pub use host::{ChannelHandle, ChannelKind};
pub use legacy::LegacyGatherDims;
pub use linalg::DotOptions;
pub use operand::Operand;
pub use window::{Padding, WindowSpec};

use state::State;

/// Makes one computation, instruction by instruction. Cloning gives another handle of the same one.
#[derive(Clone)]
pub struct XlaBuilder {
    state: Rc<RefCell<State>>,
}

/// A value in a computation under construction; cloning is cheap.
///
/// After an error, handles stand for nothing; operations on them do nothing.
#[derive(Clone)]
pub struct XlaOp {
    builder: XlaBuilder,
    /// `None` after an error.
    id: Option<InstrId>,
}

/// Takes the value out of a `Result`, or makes its error the builder's and returns a void handle.
macro_rules! check {
    ($builder:expr, $result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return $builder.report_error(error),
        }
    };
}
use check;

impl XlaBuilder {
    /// A builder of a computation with this name; characters that names cannot have are replaced.
    pub fn new(name: &str) -> Self {
        XlaBuilder { state: Rc::new(RefCell::new(State::new(name))) }
    }

    /// The name of the computation.
    pub fn name(&self) -> String {
        self.state.borrow().name().to_owned()
    }

    /// The first error so far. Source: XLA's `XlaBuilder::first_error`.
    pub fn first_error(&self) -> Option<Error> {
        self.state.borrow().error().cloned()
    }

    /// Makes an error the builder's, unless it has one, and gives a handle that stands for nothing.
    ///
    /// For functions on top of this builder that find their arguments wrong. Source: XLA's
    /// `XlaBuilder::ReportError`.
    #[track_caller]
    pub fn report_error(&self, error: Error) -> XlaOp {
        let at = self.place();
        self.state.borrow_mut().fail(error.at(Some(at)));
        XlaOp { builder: self.clone(), id: None }
    }

    /// The shape of a value. Errors: the builder's first error, `builder.C1`.
    pub fn shape(&self, op: impl AsRef<XlaOp>) -> Result<Shape> {
        let id = self.id(op.as_ref())?;
        Ok(self.state.borrow().instr(id).shape.clone())
    }

    /// The computation with the last instruction as its root, everything so far; the builder can go
    /// on. Errors: the first error of any call, `builder.C2`, `builder.C7`.
    #[track_caller]
    pub fn build(&self) -> Result<XlaComputation> {
        let at = self.place();
        self.state.borrow().build(None).map_err(|e| e.at(Some(at)))
    }

    /// The same with another root. Errors: as for [`XlaBuilder::build`], `builder.C1`.
    #[track_caller]
    pub fn build_with_root(&self, root: impl AsRef<XlaOp>) -> Result<XlaComputation> {
        let at = self.place();
        let built = self.id(root.as_ref()).and_then(|id| self.state.borrow().build(Some(id)));
        built.map_err(|e| e.at(Some(at)))
    }

    /// Appends an operation. This is the door for all others; use it for operations that have no
    /// method, or none with the attributes wanted. Computations that the operation calls must come
    /// from [`XlaBuilder::import`]. Errors: the operation's rules, `builder.C1`.
    ///
    /// ```
    /// # use helio_ir::builder::XlaBuilder;
    /// # use helio_ir::{ElementType::F32, Shape, UnaryOp};
    /// let b = XlaBuilder::new("b");
    /// let x = b.parameter(0, Shape::scalar(F32), "x");
    /// b.add_instruction(UnaryOp::Tanh, &[x]);
    /// assert_eq!(b.build()?.program_shape().to_string(), "(f32[])->f32[]");
    /// # Ok::<(), helio_ir::Error>(())
    /// ```
    #[track_caller]
    pub fn add_instruction(&self, op: impl Into<Op>, operands: &[impl AsRef<XlaOp>]) -> XlaOp {
        let operands: Vec<_> = operands.iter().map(AsRef::as_ref).collect();
        self.apply(op, &operands)
    }

    /// Copies a computation, and those it calls, into this builder's module, once. Errors:
    /// `ResourceExhausted`.
    pub fn import(&self, computation: &XlaComputation) -> Result<CompId> {
        self.state.borrow_mut().import(computation)
    }

    #[track_caller]
    fn apply(&self, op: impl Into<Op>, operands: &[&XlaOp]) -> XlaOp {
        self.apply_named(op, operands, None, None)
    }

    /// [`XlaBuilder::apply`] with a name other than the opcode's, or a shape with a layout.
    #[track_caller]
    fn apply_named(
        &self,
        op: impl Into<Op>,
        operands: &[&XlaOp],
        name: Option<&str>,
        shape: Option<Shape>,
    ) -> XlaOp {
        let ids = operands.iter().map(|operand| self.id(operand)).collect::<Result<_>>();
        let ids = check!(self, ids);
        let at = self.place();
        let added = self.state.borrow_mut().add(op.into(), ids, name, shape, at);
        let id = check!(self, added);
        XlaOp { builder: self.clone(), id: Some(id) }
    }

    /// The instruction that a handle stands for. Errors: `builder.C1`, the builder's first error.
    fn id(&self, op: &XlaOp) -> Result<InstrId> {
        if !Rc::ptr_eq(&self.state, &op.builder.state) {
            let (mine, other) = (self.name(), op.builder.name());
            return Err(Error::rule(
                "builder.C1",
                format!("an operand of builder {mine} belongs to builder {other}"),
            ));
        }
        op.id.ok_or_else(|| {
            self.first_error().unwrap_or_else(|| Error::internal("a void handle without an error"))
        })
    }
}

impl fmt::Debug for XlaBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XlaBuilder({})", self.name())
    }
}

impl XlaOp {
    /// No operands at all, where a list of them is asked for.
    pub const NONE: &'static [XlaOp] = &[];

    /// The builder of the computation that the value is in.
    pub fn builder(&self) -> &XlaBuilder {
        &self.builder
    }

    /// The shape of the value. Errors: the builder's first error.
    pub fn shape(&self) -> Result<Shape> {
        self.builder.shape(self)
    }

    /// The shape of the value, which must be an array. Errors: `builder.C5`, the first error.
    pub fn array_shape(&self) -> Result<ArrayShape> {
        array(self.shape()?)
    }
}

impl AsRef<XlaOp> for XlaOp {
    fn as_ref(&self) -> &XlaOp {
        self
    }
}

impl fmt::Debug for XlaOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "XlaOp({})", self.builder.state.borrow().instr(id).name),
            None => f.write_str("XlaOp(void)"),
        }
    }
}

/// The shape as that of an array. Errors: `builder.C5`.
fn array(shape: impl Into<Shape>) -> Result<ArrayShape> {
    match shape.into() {
        Shape::Array(array) => Ok(array),
        other => Err(Error::rule("builder.C5", format!("an array is needed, found {other}"))),
    }
}

/// References to all operands of a list.
fn refs(operands: &[impl AsRef<XlaOp>]) -> Vec<&XlaOp> {
    operands.iter().map(AsRef::as_ref).collect()
}
