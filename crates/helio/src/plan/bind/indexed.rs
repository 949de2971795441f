//! Which gathers and scatters the runtime's kernels compute, and how they are called.

use helio_ir::{CompId, ElementType, Module, Op, ops};
use helio_runtime::kernels::indexed::{Combine, Gather, IndexedWindows, Scatter, ScatterByCode};
use helio_runtime::kernels::number::Fold;

use super::window::{fold, number_type};
use super::{Bound, Codes, InstrShapes, Reducer};

pub(super) fn gather(site: &InstrShapes<'_>, op: &ops::Gather) -> Option<Bound> {
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
        is_splat: false,
    };
    // Where a slice has no element, though the result has some, there is nothing to take; the
    // interpreter says what happens.
    if op.slice_sizes.contains(&0) {
        return None;
    }
    let gather = Gather::new(&windows, operand.element().size_bytes())?;
    Some(Bound::new("gather", move |inputs, outputs, threads| {
        gather.run(inputs[0], inputs[1], outputs[0], threads);
    }))
}

pub(super) fn scatter(
    site: &InstrShapes<'_>,
    op: &ops::Scatter,
    code: &mut Codes<'_>,
) -> Option<Bound> {
    by_fold(site, op).or_else(|| by_code(site, op, code))
}

/// How the updates of a scatter belong to its arrays, all of which have the sizes of the first.
fn scatter_windows(site: &InstrShapes<'_>, op: &ops::Scatter) -> Option<IndexedWindows> {
    let arrays = site.results.len();
    let [indices, updates, ..] = site.operands.get(arrays..)? else { return None };
    let dims = &op.dims;
    let batching = dims.input_batching_dims.iter().zip(&dims.scatter_indices_batching_dims);
    Some(IndexedWindows {
        array: site.results.first()?.dims().to_vec(),
        indices: indices.dims().to_vec(),
        list: updates.dims().to_vec(),
        index_type: number_type(indices.element())?,
        index_vector_dim: dims.index_vector_dim,
        index_map: dims.scatter_dims_to_operand_dims.clone(),
        window_dims: dims.update_window_dims.clone(),
        left_out: dims.inserted_window_dims.clone(),
        batching: batching.map(|(&operand, &indices)| (operand, indices)).collect(),
        is_splat: site.is_splat,
    })
}

/// By a combiner that is known.
fn by_fold(site: &InstrShapes<'_>, op: &ops::Scatter) -> Option<Bound> {
    let [operand, _, updates] = site.operands[..] else { return None };
    let element = operand.element();
    if updates.element() != element {
        return None;
    }
    let is_complex = element.is_complex();
    let combine = if takes_update(site.module, op.to_apply, element) {
        Combine::Set(element.size_bytes())
    } else {
        let fold = fold(site.module, op.to_apply, element)?;
        if is_complex && fold != Fold::Add {
            return None;
        }
        Combine::Fold(number_type(element.real_part())?, fold)
    };
    let mut windows = scatter_windows(site, op)?;
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
    Some(Bound { updates: 1, copies: true, ..bound.with_scratch(scratch_bytes) })
}

/// By a combiner that can be generated code, into any number of arrays.
fn by_code(site: &InstrShapes<'_>, op: &ops::Scatter, code: &mut Codes<'_>) -> Option<Bound> {
    let arrays = site.results.len();
    let updates = site.operands.get(arrays + 1..)?;
    if !updates.iter().map(|s| s.element()).eq(site.results.iter().map(|s| s.element())) {
        return None;
    }
    let sizes = site.results.iter().map(|shape| shape.element().size_bytes()).collect();
    let plan = ScatterByCode::new(&scatter_windows(site, op)?, sizes)?;
    let reducer = Reducer::new(site.module, op.to_apply, &site.results, code)?;
    let bound = Bound::fallible("scatter by code", move |inputs, outputs, _| {
        let Some((indices, updates)) = inputs.split_first() else { return Ok(()) };
        reducer.run(|fold| plan.run(fold, indices, updates, outputs))
    });
    Some(Bound { updates: arrays, ..bound })
}

/// Whether a reducer gives the update, of this type, as it is.
fn takes_update(module: &Module, id: CompId, element: ElementType) -> bool {
    let computation = module.computation(id);
    let root = computation.instr(computation.root());
    let is_typed = root.shape.as_array().is_some_and(|array| array.element() == element);
    is_typed && matches!(&root.op, Op::Parameter(param) if param.number == 1)
}
