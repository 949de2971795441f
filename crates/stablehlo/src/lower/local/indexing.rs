//! Slices at places that an array lists: which dimension of the operands is which of the result.

use helio_ir::Op;
use helio_ir::ops::{Gather, GatherDims, ScatterDims, indices_dims};

use super::Kind;
use super::rules::{Answer, Dims, Rule, combination};
use crate::table;

impl Rule<'_, '_> {
    /// Dimensions of which slices have all stay what they are; those that number slices are those of the
    /// indices.
    pub(super) fn gather(&self) -> Option<Answer> {
        let Some(Op::Gather(op)) = self.read("gather") else { return None };
        let Gather { dims, slice_sizes, .. } = *op;
        let GatherDims { index_vector_dim, .. } = dims;
        let [operand, indices] = self.operands else { return None };
        let mut slices: Dims = vec![None; operand.rank()];
        for (d, &place) in dims.offset_operand_dims(operand.rank()).iter().zip(&dims.offset_dims) {
            let is_all = slice_sizes.get(*d) == operand.dims().get(*d);
            slices[*d] = Some(place).filter(|_| is_all);
        }
        let mut numbers: Dims = vec![None; indices.rank()];
        let numbering = indices_dims(indices.rank(), index_vector_dim);
        for (&d, place) in numbering.iter().zip(dims.batch_dims(self.result.rank())) {
            numbers[d] = Some(place);
        }
        let batches = dims.operand_batching_dims.iter().zip(&dims.start_indices_batching_dims);
        for (&d, &of) in batches {
            *slices.get_mut(d)? = *numbers.get(of)?;
        }
        Some(Answer(Kind::Gather, vec![slices, numbers], Vec::new(), None))
    }

    /// Dimensions of which updates have all stay what they are, and those that go along with ones of the
    /// indices. Of updates that are summed, or of which the greatest counts, each partition puts its own in
    /// place, and results are combined; else each asks of all updates where they are to be put.
    pub(super) fn scatter(&self) -> Option<Answer> {
        let from = |from: &table::Reading<'_, '_>| {
            table::ScatterDimensions("scatter_dimension_numbers").read(from)
        };
        let dims: ScatterDims = self.reading(from).ok()?;
        let count = self.op.results.len();
        let (operand, indices) = (self.operands.first()?, self.operands.get(count)?);
        let updates = self.operands.get(count + 1)?;
        let (mut slices, mut numbers): (Dims, Dims) =
            (vec![None; operand.rank()], vec![None; indices.rank()]);
        let mut parts: Dims = vec![None; updates.rank()];
        let windows = dims.window_operand_dims(operand.rank());
        for (d, &place) in windows.into_iter().zip(&dims.update_window_dims) {
            let is_all = operand.dims().get(d) == updates.dims().get(place);
            slices[d] = Some(d).filter(|_| is_all);
            *parts.get_mut(place)? = slices[d];
        }
        let is_number = |d: &usize| !dims.update_window_dims.contains(d);
        let of_updates: Vec<usize> = (0..updates.rank()).filter(is_number).collect();
        let of_indices = indices_dims(indices.rank(), dims.index_vector_dim);
        for (&d, of) in dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims) {
            let place = of_indices.iter().position(|dim| dim == of)?;
            *slices.get_mut(d)? = Some(d);
            numbers[*of] = Some(d);
            *parts.get_mut(*of_updates.get(place)?)? = Some(d);
        }
        let (combine, mut sizes) = (combination(self.op, self.result.element()), Vec::new());
        if combine.is_some() {
            for (&dim, &part) in of_indices.iter().zip(&of_updates) {
                if numbers[dim].is_none() {
                    let place = Some(self.result.rank() + sizes.len());
                    (numbers[dim], parts[part]) = (place, place);
                    sizes.push(indices.dims()[dim]);
                }
            }
        }
        let mut all = vec![slices; count];
        all.push(numbers);
        all.extend(vec![parts; count]);
        Some(Answer(Kind::Scatter, all, sizes, combine))
    }
}
