//! The builder's methods for gather and scatter.

use super::{XlaBuilder, XlaComputation, XlaOp, check, refs};
use crate::ops::{Gather, GatherDims, Scatter, ScatterDims};

impl XlaOp {
    /// Slices of the array at the places that `start_indices` lists, each moved to lie inside if it
    /// does not.
    ///
    /// Shapes: `T[D], I[S]`, result `T[R]`: batch dimensions from `S` without `index_vector_dim`,
    /// offset dimensions from `slice_sizes` without collapsed ones, at the places that
    /// `offset_dims` says. Errors: the rules of `gather`. Source: E4 "Gather"; batching dimensions
    /// are later; for E3's names see [`XlaOp::gather_legacy`].
    #[track_caller]
    pub fn gather(
        &self,
        start_indices: impl AsRef<XlaOp>,
        dims: GatherDims,
        slice_sizes: &[usize],
        indices_are_sorted: bool,
    ) -> XlaOp {
        let op = Gather { dims, slice_sizes: slice_sizes.to_vec(), indices_are_sorted };
        self.builder.apply(op, &[self, start_indices.as_ref()])
    }

    /// The array with slices combined into it at the places that `scatter_indices` lists; what does
    /// not lie inside is left out. See [`XlaBuilder::scatter`].
    #[track_caller]
    pub fn scatter(
        &self,
        scatter_indices: impl AsRef<XlaOp>,
        updates: impl AsRef<XlaOp>,
        update_computation: &XlaComputation,
        dims: ScatterDims,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> XlaOp {
        self.builder.scatter(
            &[self],
            scatter_indices,
            &[updates],
            update_computation,
            dims,
            indices_are_sorted,
            unique_indices,
        )
    }
}

impl XlaBuilder {
    /// Arrays with slices combined into them at the places that `scatter_indices` lists.
    ///
    /// Shapes: `N` operands `T_i[D]`, `I[S]`, `N` updates `T_i[U]`; the computation goes from `N`
    /// current values and `N` updates to `N` new values. The result is an array, or a tuple if `N`
    /// is not 1. Errors: the rules of `scatter`. Source: E4 "Scatter"; batching dimensions are
    /// later.
    #[expect(clippy::too_many_arguments, reason = "the arguments are the specification's")]
    #[track_caller]
    pub fn scatter(
        &self,
        operands: &[impl AsRef<XlaOp>],
        scatter_indices: impl AsRef<XlaOp>,
        updates: &[impl AsRef<XlaOp>],
        update_computation: &XlaComputation,
        dims: ScatterDims,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> XlaOp {
        let to_apply = check!(self, self.import(update_computation));
        let mut all = refs(operands);
        all.push(scatter_indices.as_ref());
        all.extend(refs(updates));
        self.apply(Scatter { dims, indices_are_sorted, unique_indices, to_apply }, &all)
    }
}
