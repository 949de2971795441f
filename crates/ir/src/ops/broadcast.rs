//! `broadcast`.

use super::Arity;
use crate::{ArrayShape, Error, InferCx, OpDef, Result, Shape};

/// Repeats the operand along new dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: ArrayShape,
    /// For each dimension of the operand, the dimension of the result it becomes.
    pub dimensions: Vec<usize>,
}

impl OpDef for Broadcast {
    const OPCODE: &'static str = "broadcast";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer broadcast"))
    }
}
