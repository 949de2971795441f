//! `scatter`.

use super::Arity;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Combines slices into arrays at the places listed; operands: arrays, indices, updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scatter {
    /// Which dimension means what.
    pub dims: ScatterDims,
    /// A promise; without effect on the value.
    pub indices_are_sorted: bool,
    /// A promise; without effect on the value.
    pub unique_indices: bool,
    /// From current values, then updates, to new values.
    pub to_apply: CompId,
}

impl OpDef for Scatter {
    const OPCODE: &'static str = "scatter";
    const ARITY: Arity = Arity::AtLeast(3);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer scatter"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Which dimension of operand, indices and updates means what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScatterDims {
    /// Dimensions of the updates that index into a window.
    pub update_window_dims: Vec<usize>,
    /// Dimensions of the operand (window size 1) that the updates leave out.
    pub inserted_window_dims: Vec<usize>,
    /// For each component of an index vector, the operand's dimension it is for.
    pub scatter_dims_to_operand_dims: Vec<usize>,
    /// Dimensions of the operand (window size 1) that go along with `scatter_indices_batching_dims`.
    pub input_batching_dims: Vec<usize>,
    /// Dimensions of the indices that go along with `input_batching_dims`.
    pub scatter_indices_batching_dims: Vec<usize>,
    /// The dimension of the indices that holds index vectors; its rank if they are scalars.
    pub index_vector_dim: usize,
}
