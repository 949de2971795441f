//! `concatenate`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Joins arrays along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concatenate {
    /// The dimension along which they are joined.
    pub dimension: usize,
}

impl OpDef for Concatenate {
    const OPCODE: &'static str = "concatenate";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer concatenate"))
    }
}
