//! `reverse`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Reverses the order of elements along dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// The dimensions to reverse.
    pub dimensions: Vec<usize>,
}

impl OpDef for Reverse {
    const OPCODE: &'static str = "reverse";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reverse"))
    }
}
