//! `transpose`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Reorders dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    /// For each dimension of the result, the operand's dimension it is.
    pub permutation: Vec<usize>,
}

impl OpDef for Transpose {
    const OPCODE: &'static str = "transpose";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer transpose"))
    }
}
