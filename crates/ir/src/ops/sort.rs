//! `sort` and its kin.

use super::Arity;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Sorts arrays together along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The dimension.
    pub dimension: usize,
    /// Whether equal elements keep their order; here they always do.
    pub is_stable: bool,
    /// Whether the left of (left 0, right 0, left 1, …) comes first.
    pub to_apply: CompId,
}

impl OpDef for Sort {
    const OPCODE: &'static str = "sort";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer sort"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// The largest (or smallest) elements of the last dimension and their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    /// How many.
    pub k: usize,
    /// Whether the largest.
    pub largest: bool,
}

impl OpDef for TopK {
    const OPCODE: &'static str = "topk";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer topk"))
    }
}
