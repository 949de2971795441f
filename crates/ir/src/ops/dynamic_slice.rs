//! `dynamic-slice` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// A box of fixed sizes at a place given at run time, clamped to stay inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicSlice {
    /// The sizes of the box.
    pub sizes: Vec<usize>,
}

impl OpDef for DynamicSlice {
    const OPCODE: &'static str = "dynamic-slice";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer dynamic-slice"))
    }
}

/// The operand with a box of it replaced, at a place given at run time, clamped to stay inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicUpdateSlice;

impl OpDef for DynamicUpdateSlice {
    const OPCODE: &'static str = "dynamic-update-slice";
    const ARITY: Arity = Arity::AtLeast(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer dynamic-update-slice"))
    }
}
