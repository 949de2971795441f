//! `reshape` and its kin.

use super::Arity;
use crate::{ArrayShape, Error, InferCx, OpDef, Result, Shape};

/// The same elements in row-major order under other dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl OpDef for Reshape {
    const OPCODE: &'static str = "reshape";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reshape"))
    }
}

/// Reshape to sizes given at run time, one scalar operand for each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicReshape {
    /// The shape of the result, with bounds.
    pub shape: ArrayShape,
}

impl OpDef for DynamicReshape {
    const OPCODE: &'static str = "dynamic-reshape";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer dynamic-reshape"))
    }
}

/// The same bytes under another shape and layout; what XLA's layout passes leave behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitcast {
    /// The shape of the result.
    pub shape: ArrayShape,
}

impl OpDef for Bitcast {
    const OPCODE: &'static str = "bitcast";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer bitcast"))
    }
}

/// The operand itself, possibly in another layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy;

impl OpDef for Copy {
    const OPCODE: &'static str = "copy";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer copy"))
    }
}
