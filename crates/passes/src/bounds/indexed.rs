//! Operations that sort elements, or say by indices where they are.

use std::iter::zip;

use helio_ir::ops::{
    Call, Compare, Direction, Gather, Parameter, Scatter, Select, Sort, TopK, Tuple,
};
use helio_ir::{CompId, ElementType, Instr, InstrId, Number, Result, Shape};

use super::writer::Writer;
use crate::draft::Draft;

/// Padding comes after all elements: whether an element is padding is compared first.
pub(super) fn sort(w: &mut Writer<'_, '_>, op: &Sort, old: &Instr) -> Result<InstrId> {
    let operands = w.operands(old)?;
    let mut data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
    let sizes = w.least_sizes(&operands)?;
    let dims = operands.first().map(|x| x.shape.dims().to_vec()).unwrap_or_default();
    let along = sizes.get(op.dimension).copied().flatten();
    let new = match w.within(&dims, [(op.dimension, along)])? {
        None => w.draft.add(*op, &data)?,
        Some(within) => {
            let is_padding = w.draft.add(helio_ir::UnaryOp::Not, &[within])?;
            let elements: Vec<ElementType> = operands.iter().map(|x| x.shape.element()).collect();
            let to_apply = w.padding_last(op.to_apply, &elements)?;
            data.push(is_padding);
            let sort = Sort { to_apply, ..*op };
            let sorted = w.draft.add(sort, &data)?;
            let parts =
                (0..operands.len()).map(|i| w.element(sorted, i)).collect::<Result<Vec<_>>>()?;
            match parts[..] {
                [one] => one,
                _ => w.draft.add(Tuple, &parts)?,
            }
        }
    };
    w.results(new, &sizes, old)
}

/// Padding becomes what comes last. `None` if that is not known of the type.
pub(super) fn top_k(w: &mut Writer<'_, '_>, op: &TopK, old: &Instr) -> Result<Option<InstrId>> {
    let mut x = w.operand(old, 0)?;
    let Some(last) = x.shape.rank().checked_sub(1) else { return Ok(None) };
    let mut sizes = x.sizes.clone();
    if let Some(size) = x.sizes[last] {
        let element = x.shape.element();
        let bits = element.bits();
        let is_float = [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64]
            .contains(&element);
        // In the total order of floats, what has all bits set is the least, and but for the sign the
        // greatest. Indices of padding are greater than those of elements, which so come before it.
        let fill = match (element.is_integer(), is_float, op.largest) {
            (true, _, true) if element.is_signed_integer() => 1 << (bits - 1),
            (true, _, true) => 0,
            (true, _, false) if element.is_signed_integer() => (1 << (bits - 1)) - 1,
            (_, true, true) | (true, _, false) => u128::MAX >> (128 - bits),
            (_, true, false) => (1 << (bits - 1)) - 1,
            _ => return Ok(None),
        };
        let fill = helio_ir::dispatch_type!(element, T => {
            helio_ir::Array::scalar(<T as helio_ir::Native>::from_bits(fill))
        });
        let fill = w.draft.add(helio_ir::ops::Constant::new(fill), &[])?;
        x.data = w.masked(&x, [last], fill)?;
        let most = w.number(op.k)?;
        sizes[last] = w.lesser(Some(size), Some(most))?;
    }
    let new = w.draft.add(*op, &[x.data])?;
    w.results(new, &sizes, old).map(Some)
}

/// A slice of a whole dimension has as many elements as that at run time. `None` if the vectors of indices
/// have a bounded length.
pub(super) fn gather(w: &mut Writer<'_, '_>, op: &Gather, old: &Instr) -> Result<Option<InstrId>> {
    let (x, indices) = (w.operand(old, 0)?, w.operand(old, 1)?);
    let Some(result) = old.shape.as_array() else { return Ok(None) };
    let dims = &op.dims;
    if indices.sizes.get(dims.index_vector_dim).copied().flatten().is_some() {
        return Ok(None);
    }
    let mut sizes = vec![None; result.rank()];
    let batch = (0..indices.sizes.len()).filter(|&d| d != dims.index_vector_dim);
    let places = (0..result.rank()).filter(|d| !dims.offset_dims.contains(d));
    for (to, d) in zip(places, batch) {
        sizes[to] = indices.sizes[d];
    }
    let is_left_out =
        |d: &usize| dims.collapsed_slice_dims.contains(d) || dims.operand_batching_dims.contains(d);
    let window = (0..x.sizes.len()).filter(|d| !is_left_out(d));
    for (d, &to) in zip(window, &dims.offset_dims) {
        sizes[to] = x.sizes[d].filter(|_| op.slice_sizes[d] == x.shape.dims()[d]);
    }
    let data = w.draft.add(op.clone(), &[x.data, indices.data])?;
    w.result(data, &sizes, old).map(Some)
}

/// Updates that are padding go nowhere: their indices lie outside. `None` if windows have bounded sizes, or
/// no index says where they go.
pub(super) fn scatter(
    w: &mut Writer<'_, '_>,
    op: &Scatter,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let operands = w.operands(old)?;
    let count = operands.len() / 2;
    let (arrays, indices, updates) = (&operands[..count], &operands[count], &operands[count + 1..]);
    let (Some(first), Some(update)) = (arrays.first(), updates.first()) else { return Ok(None) };
    let dims = &op.dims;
    if dims.update_window_dims.iter().any(|&d| update.sizes[d].is_some())
        || indices.sizes.get(dims.index_vector_dim).copied().flatten().is_some()
    {
        return Ok(None);
    }
    let places = (0..update.sizes.len()).filter(|d| !dims.update_window_dims.contains(d));
    let batch = (0..indices.sizes.len()).filter(|&d| d != dims.index_vector_dim);
    let mut sizes = Vec::new();
    for (d, from) in zip(batch, places) {
        sizes.push((d, w.lesser(update.sizes[from], indices.sizes[d])?));
    }
    let mut op = op.clone();
    let mut data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
    if let Some(within) = w.within(indices.shape.dims(), sizes)? {
        if dims.scatter_dims_to_operand_dims.is_empty() {
            return Ok(None);
        }
        // Below zero, or above any size: of types that say no such number, nothing lies outside.
        let element = indices.shape.element();
        let bits = element.bits().min(64);
        let outside = match element.is_signed_integer() {
            true => -1,
            false => (1i128 << bits) - 1,
        };
        let reaches = |&d: &usize| first.shape.dims()[d] as i128 > outside;
        if !element.is_signed_integer() && dims.scatter_dims_to_operand_dims.iter().any(reaches) {
            return Ok(None);
        }
        let outside = w.scalar(element, Number::Int(outside))?;
        let outside = w.filled(outside, &indices.shape)?;
        data[count] = w.draft.add(Select, &[within, indices.data, outside])?;
        op.indices_are_sorted = false;
        op.unique_indices = false;
    }
    let new = w.draft.add(op, &data)?;
    let sizes = first.sizes.clone();
    w.results(new, &sizes, old).map(Some)
}

impl Writer<'_, '_> {
    /// A comparator of elements with, behind them, whether they are padding, which comes last.
    fn padding_last(&mut self, comparator: CompId, elements: &[ElementType]) -> Result<CompId> {
        let name = self.draft.callees().computation(comparator).name.clone();
        let computation = {
            let mut draft = Draft::new(self.draft.module(), name);
            let mut params = Vec::with_capacity(2 * (elements.len() + 1));
            let pred = ElementType::Pred;
            for &element in elements.iter().chain([&pred]) {
                for _ in 0..2 {
                    let shape = Shape::scalar(element);
                    let number = params.len();
                    params.push(draft.add(Parameter { number, shape }, &[])?);
                }
            }
            let (compared, padding) = params.split_at(2 * elements.len());
            let less = draft.add(Call::new(comparator), compared)?;
            let is_equal = draft.add(Compare::new(Direction::Eq), padding)?;
            let is_first = draft.add(Compare::new(Direction::Lt), padding)?;
            let root = draft.add(Select, &[is_equal, less, is_first])?;
            draft.finish(root)?
        };
        self.draft.module().push(computation)
    }
}
