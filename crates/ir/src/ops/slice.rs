//! `slice`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// The elements in a box at regular distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The first index, for each dimension.
    pub starts: Vec<usize>,
    /// The end, exclusive, for each dimension.
    pub limits: Vec<usize>,
    /// The distance, at least 1, for each dimension.
    pub strides: Vec<usize>,
}

impl OpDef for Slice {
    const OPCODE: &'static str = "slice";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer slice"))
    }
}
