//! `infeed` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Reads a value from the host; the operand is a token, the result (value, token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Infeed {
    /// The shape of the value.
    pub shape: Shape,
    /// Configuration, as written.
    pub config: Option<String>,
}

impl OpDef for Infeed {
    const OPCODE: &'static str = "infeed";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer infeed"))
    }
}

/// Writes the first operand to the host, after the token; the result is a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outfeed {
    /// The shape of the value as the host sees it.
    pub shape: Shape,
    /// Configuration, as written.
    pub config: Option<String>,
}

impl OpDef for Outfeed {
    const OPCODE: &'static str = "outfeed";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer outfeed"))
    }
}
