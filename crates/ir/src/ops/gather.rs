//! `gather`.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

/// Collects slices of the first operand at the places that the second lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Which dimension means what.
    pub dims: GatherDims,
    /// The sizes of each slice.
    pub slice_sizes: Vec<usize>,
    /// A promise; without effect on the value.
    pub indices_are_sorted: bool,
}

impl OpDef for Gather {
    const OPCODE: &'static str = "gather";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer gather"))
    }
}

/// Which dimension of operand, indices and result means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatherDims {
    /// Dimensions of the result that index into a slice.
    pub offset_dims: Vec<usize>,
    /// Dimensions of the operand (slice size 1) that are left out of the result.
    pub collapsed_slice_dims: Vec<usize>,
    /// For each component of an index vector, the operand's dimension it is for.
    pub start_index_map: Vec<usize>,
    /// Dimensions of the operand (slice size 1) that go along with `start_indices_batching_dims`.
    pub operand_batching_dims: Vec<usize>,
    /// Dimensions of the indices that go along with `operand_batching_dims`.
    pub start_indices_batching_dims: Vec<usize>,
    /// The dimension of the indices that holds index vectors; its rank if they are scalars.
    pub index_vector_dim: usize,
}
