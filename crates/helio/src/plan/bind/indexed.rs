//! Gather and scatter.

use helio_ir::{CompId, Module, Op, ops};
use helio_runtime::kernels::indexed::{Combine, Gather, IndexedWindows, Scatter};
use helio_runtime::kernels::number::Fold;

use super::window::{fold, number_type};
use super::{Bound, Site};

pub(super) fn gather(site: &Site<'_>, op: &ops::Gather) -> Option<Bound> {
    let ([operand, indices], [result]) = (&site.operands[..], &site.results[..]) else {
        return None;
    };
    let dims = &op.dims;
    let batching = dims.operand_batching_dims.iter().zip(&dims.start_indices_batching_dims);
    let windows = IndexedWindows {
        array: operand.dims().to_vec(),
        indices: indices.dims().to_vec(),
        list: result.dims().to_vec(),
        index_type: number_type(indices.element())?,
        index_vector_dim: dims.index_vector_dim,
        index_map: dims.start_index_map.clone(),
        window_dims: dims.offset_dims.clone(),
        left_out: dims.collapsed_slice_dims.clone(),
        batching: batching.map(|(&operand, &indices)| (operand, indices)).collect(),
    };
    // A collapsed dimension of size 0 has nothing to take; the interpreter says what happens.
    if dims.collapsed_slice_dims.iter().any(|&d| op.slice_sizes[d] != 1) {
        return None;
    }
    let gather = Gather::new(&windows, operand.element().size_bytes())?;
    Some(Bound::new("gather", move |inputs, outputs, threads| {
        gather.run(inputs[0], inputs[1], outputs[0], threads);
    }))
}

pub(super) fn scatter(site: &Site<'_>, op: &ops::Scatter) -> Option<Bound> {
    let [operand, indices, updates] = site.operands[..] else { return None };
    let dims = &op.dims;
    let element = operand.element();
    if updates.element() != element {
        return None;
    }
    let is_complex = element.is_complex();
    let combine = if takes_update(site.module, op.to_apply) {
        Combine::Set(element.size_bytes())
    } else {
        let fold = fold(site.module, op.to_apply, element)?;
        if is_complex && fold != Fold::Add {
            return None;
        }
        Combine::Fold(number_type(element.real_part())?, fold)
    };
    let batching = dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims);
    let mut windows = IndexedWindows {
        array: operand.dims().to_vec(),
        indices: indices.dims().to_vec(),
        list: updates.dims().to_vec(),
        index_type: number_type(indices.element())?,
        index_vector_dim: dims.index_vector_dim,
        index_map: dims.scatter_dims_to_operand_dims.clone(),
        window_dims: dims.update_window_dims.clone(),
        left_out: dims.inserted_window_dims.clone(),
        batching: batching.map(|(&operand, &indices)| (operand, indices)).collect(),
    };
    if is_complex && combine != Combine::Set(element.size_bytes()) {
        // Sums of complex numbers are those of their parts: windows are two parts wide.
        windows.window_dims.push(windows.list.len());
        windows.array.push(2);
        windows.list.push(2);
    }
    let scatter = Scatter::new(&windows, combine)?;
    let scratch_bytes = scatter.scratch_bytes(site.threads.count());
    let bound = Bound::new("scatter", move |inputs, outputs, threads| {
        let [array @ .., indices, updates] = inputs else { return };
        let [to, rest @ ..] = outputs else { return };
        let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
        scatter.run(array.first().copied(), (indices, updates), to, scratch, threads);
    });
    Some(Bound { updates: Some(0), copies: true, ..bound.with_scratch(scratch_bytes) })
}

/// Whether a reducer gives the update as it is.
fn takes_update(module: &Module, id: CompId) -> bool {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    matches!(&root.op, Op::Parameter(param) if param.number == 1)
}
