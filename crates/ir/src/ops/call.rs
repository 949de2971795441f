//! `call` and its kin.

use super::Arity;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Runs a computation on the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The computation.
    pub to_apply: CompId,
    /// Whether it stands for a named composite (`frontend_attributes` has the name).
    pub is_composite: bool,
}

impl OpDef for Call {
    const OPCODE: &'static str = "call";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer call"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Applies a scalar computation to each element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// All dimensions, in order.
    pub dimensions: Vec<usize>,
    /// The computation.
    pub to_apply: CompId,
}

impl OpDef for Map {
    const OPCODE: &'static str = "map";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer map"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Runs a computation that a compiler has put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fusion {
    /// XLA's fusion kind (`kLoop`); without effect on the value.
    pub kind: String,
    /// The computation.
    pub calls: CompId,
    /// Buffers shared by result and operands, as written.
    pub output_to_operand_aliasing: Option<String>,
}

impl OpDef for Fusion {
    const OPCODE: &'static str = "fusion";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer fusion"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.calls]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.calls]
    }
}
