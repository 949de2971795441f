//! `dot` and its kin.

use super::Arity;
use super::shared::{DotDims, Precision};
use crate::{ElementType, Error, InferCx, OpDef, Result, Shape};

/// Sum of products over contracting dimensions; result: batch, lhs free, rhs free dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dot {
    /// Contracting and batch dimensions.
    pub dims: DotDims,
    /// The type of the result, in which sums are formed.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// The algorithm prescribed (`dot_bf16_bf16_f32`).
    pub algorithm: Option<String>,
}

impl OpDef for Dot {
    const OPCODE: &'static str = "dot";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer dot"))
    }
}

/// Dot whose lhs, contracting or batch dimension falls into groups of sizes given at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaggedDot {
    /// Contracting and batch dimensions.
    pub dims: DotDims,
    /// The dimension of lhs that falls into groups (just one).
    pub lhs_ragged: Vec<usize>,
    /// The dimension of rhs that numbers the groups, if any.
    pub rhs_group: Vec<usize>,
    /// The type of the result.
    pub element: ElementType,
    /// Precision wished for each operand; empty for the default.
    pub precision: Vec<Precision>,
}

impl OpDef for RaggedDot {
    const OPCODE: &'static str = "ragged-dot";
    const ARITY: Arity = Arity::Exactly(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer ragged-dot"))
    }
}
