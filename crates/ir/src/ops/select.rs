//! `select` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// For each element, the second operand where the first is true, else the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select;

impl OpDef for Select {
    const OPCODE: &'static str = "select";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer select"))
    }
}

/// `min(max(x, lo), hi)` for operands `lo, x, hi`; scalar bounds broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp;

impl OpDef for Clamp {
    const OPCODE: &'static str = "clamp";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer clamp"))
    }
}
