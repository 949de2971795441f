//! Gather and scatter.

use helio_ir::{CompId, Module, Op, ops};
use helio_runtime::kernels::indexed::{Combine, Gather, IndexedWindows, Scatter};

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
    let combine = if takes_update(site.module, op.to_apply) {
        Combine::Set(element.size_bytes())
    } else {
        Combine::Fold(number_type(element)?, fold(site.module, op.to_apply, element)?)
    };
    let batching = dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims);
    let windows = IndexedWindows {
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
    let scatter = Scatter::new(&windows, combine)?;
    let bound = Bound::new("scatter", move |inputs, outputs, threads| {
        scatter.run(inputs[0], inputs[1], outputs[0], threads);
    });
    Some(Bound { updates: Some(0), ..bound })
}

/// Whether a reducer gives the update as it is.
fn takes_update(module: &Module, id: CompId) -> bool {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    matches!(&root.op, Op::Parameter(param) if param.number == 1)
}
