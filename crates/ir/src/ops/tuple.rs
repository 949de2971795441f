//! `tuple` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// A tuple of the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple;

impl OpDef for Tuple {
    const OPCODE: &'static str = "tuple";
    const ARITY: Arity = Arity::AtLeast(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer tuple"))
    }
}

/// An element of a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetTupleElement {
    /// Which element, from 0.
    pub index: usize,
}

impl OpDef for GetTupleElement {
    const OPCODE: &'static str = "get-tuple-element";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer get-tuple-element"))
    }
}
