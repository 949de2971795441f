//! `constant` and its kin.

use super::Arity;
use crate::{ArrayShape, Error, InferCx, Literal, OpDef, Result, Shape};

/// A value known beforehand.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The value.
    pub literal: Literal,
}

impl OpDef for Constant {
    const OPCODE: &'static str = "constant";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer constant"))
    }
}

/// An argument of the computation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its number, from 0.
    pub number: usize,
    /// Its shape.
    pub shape: Shape,
}

impl OpDef for Parameter {
    const OPCODE: &'static str = "parameter";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer parameter"))
    }
}

/// Counts up from zero along a dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iota {
    /// The shape of the result.
    pub shape: ArrayShape,
    /// The dimension that counts.
    pub dimension: usize,
}

impl OpDef for Iota {
    const OPCODE: &'static str = "iota";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer iota"))
    }
}
