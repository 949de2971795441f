//! Gather and its kin.

use helio_ir::ops::{Gather, GatherDims};
use helio_ir::{Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;

impl<'m> Body<'_, 'm> {
    pub(super) fn indexing(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [x, indices] = site.operands()?;
        if name == "gather" {
            let sizes = site.attrs.needed_sizes("slice_sizes")?;
            return self.gather(site, x, indices, sizes);
        }
        self.index_select(site, x, indices)
    }

    pub(super) fn gather(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        indices: InstrId,
        slice_sizes: Vec<usize>,
    ) -> Result<InstrId> {
        let fields = site.attrs.needed_fields("dimension_numbers")?;
        let dims = GatherDims {
            offset_dims: fields.sizes("offset_dims")?,
            collapsed_slice_dims: fields.sizes("collapsed_slice_dims")?,
            start_index_map: fields.sizes("start_index_map")?,
            operand_batching_dims: fields.sizes("operand_batching_dims")?,
            start_indices_batching_dims: fields.sizes("start_indices_batching_dims")?,
            index_vector_dim: fields.size_or("index_vector_dim", 0)?,
        };
        fields.finish()?;
        let indices_are_sorted = site.attrs.flag("indices_are_sorted")?;
        self.push(Gather { dims, slice_sizes, indices_are_sorted }, &[x, indices])
    }

    /// Elements of a dimension by index, after batch dimensions that both operands have.
    fn index_select(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        indices: InstrId,
    ) -> Result<InstrId> {
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
