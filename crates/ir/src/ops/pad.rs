//! `pad`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Extends (or crops) each dimension at its edges and between elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pad {
    /// The amounts, for each dimension.
    pub dims: Vec<PadDim>,
}

impl OpDef for Pad {
    const OPCODE: &'static str = "pad";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer pad"))
    }
}

/// How one dimension is extended: interior first, then the edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PadDim {
    /// Elements added before the first; negative to crop.
    pub low: i64,
    /// Elements added after the last; negative to crop.
    pub high: i64,
    /// Elements added between each two neighbours.
    pub interior: usize,
}
