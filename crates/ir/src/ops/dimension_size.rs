//! `get-dimension-size` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// The size of a dimension at run time, as `s32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetDimensionSize {
    /// Which dimension.
    pub dimension: usize,
}

impl OpDef for GetDimensionSize {
    const OPCODE: &'static str = "get-dimension-size";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer get-dimension-size"))
    }
}

/// The operand with a dimension's size at run time set to the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetDimensionSize {
    /// Which dimension.
    pub dimension: usize,
}

impl OpDef for SetDimensionSize {
    const OPCODE: &'static str = "set-dimension-size";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer set-dimension-size"))
    }
}
