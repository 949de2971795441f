//! `stablehlo.torch_index_select` lowered to a gather.

use helio_ir::ops::{Gather, GatherDims};
use helio_ir::{Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;

impl<'m> Body<'_, 'm> {
    /// Elements of a dimension by index, after batch dimensions that both operands have.
    pub(super) fn index_select(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [x, indices] = site.operands()?;
        let (dim, batch) = (site.attrs.size("dim")?, site.attrs.size_or("batch_dims", 0)?);
        let (from, index) = (self.array(x)?, self.array(indices)?);
        if batch > dim || dim >= from.rank() || batch > index.rank() {
            let detail = format!("dim {dim} and batch_dims {batch} for {from} and {index}");
            return Err(Error::invalid(detail));
        }
        // The result: dimensions before `dim`, those of the indices after the batch, the others.
        let new = index.rank() - batch;
        let offset_dims: Vec<usize> =
            (batch..dim).chain(dim + new..from.rank() - 1 + new).collect();
        let batching: Vec<usize> = (0..batch).collect();
        let mut slice_sizes = from.dims().to_vec();
        slice_sizes[..batch].fill(1);
        slice_sizes[dim] = 1;
        let dims = GatherDims {
            offset_dims,
            collapsed_slice_dims: vec![dim],
            start_index_map: vec![dim],
            operand_batching_dims: batching.clone(),
            start_indices_batching_dims: batching,
            index_vector_dim: index.rank(),
        };
        self.push(Gather { dims, slice_sizes, indices_are_sorted: false }, &[x, indices])
    }
}
