//! Which sorts, and `topk`s, the runtime's kernels compute, and how they are called.

use helio_ir::{ArrayShape, ElementType, ops};
use helio_passes::recognize;
use helio_runtime::kernels::bytes::cast_mut;
use helio_runtime::kernels::sort::{KeyOrder, Lanes, MergeSort, PAIRS, Pairs, Sort, SortKey, TopK};

use super::{Bound, Codes, Failed, InstrShapes};
use crate::Subnormals;

/// How elements compare by their bits, in IEEE's total order or as numbers.
fn order(element: ElementType, total: bool, subnormals: Subnormals) -> Option<KeyOrder> {
    if element.is_signed_integer() {
        // Narrower ones have their sign in the middle of a byte.
        return (element.bits() >= 8).then_some(KeyOrder::Signed);
    }
    if element.is_unsigned_integer() || element.is_pred() {
        return Some(KeyOrder::Unsigned);
    }
    // The bits of the least number that is flushed never, and of infinity.
    let (least, largest) = match element {
        ElementType::F64 => (f64::MIN_POSITIVE.to_bits(), f64::INFINITY.to_bits()),
        ElementType::F32 => (f32::MIN_POSITIVE.to_bits().into(), f32::INFINITY.to_bits().into()),
        ElementType::F16 => (1, 0x7c00),
        ElementType::BF16 => (0x0080, 0x7f80),
        _ => return None,
    };
    let least = if subnormals == Subnormals::Keep { 1 } else { least };
    Some(if total { KeyOrder::Total } else { KeyOrder::Numeric { least, largest } })
}

pub(super) fn sort(site: &InstrShapes<'_>, op: &ops::Sort, code: &mut Codes<'_>) -> Option<Bound> {
    // A comparator of floats may have other types than the operands, to which they are converted.
    let params = site.module.computation(op.to_apply).program_shape().params;
    let found = params.iter().map(|param| param.as_array().map(ArrayShape::element));
    if !found.eq(site.operands.iter().flat_map(|shape| [Some(shape.element()); 2])) {
        return None;
    }
    by_keys(site, op, code.target.subnormals).or_else(|| by_comparator(site, op, code))
}

fn lanes(site: &InstrShapes<'_>, op: &ops::Sort) -> Lanes {
    let dims = site.operands[0].dims();
    Lanes {
        outer: dims[..op.dimension].iter().product(),
        count: dims[op.dimension],
        inner: dims[op.dimension + 1..].iter().product(),
    }
}

fn element_sizes(site: &InstrShapes<'_>) -> Vec<usize> {
    site.operands.iter().map(|shape| shape.element().size_bytes()).collect()
}

/// By keys, if the comparator is a lexicographic order of operands.
fn by_keys(site: &InstrShapes<'_>, op: &ops::Sort, subnormals: Subnormals) -> Option<Bound> {
    let keys = recognize::comparator(site.module, op.to_apply)?;
    let key = |key: recognize::SortKey| {
        let element = site.operands.get(key.operand)?.element();
        let order = order(element, key.total_order, subnormals)?;
        Some(SortKey { operand: key.operand, order, descending: key.descending })
    };
    let keys = keys.into_iter().map(key).collect::<Option<Vec<_>>>()?;
    let sort = Sort::new(keys, element_sizes(site), lanes(site, op))?;
    let scratch = sort.scratch_bytes(site.threads.count());
    let arrays = site.operands.len();
    let bound = Bound::new("sort", move |inputs, outputs, threads| {
        let (outputs, scratch) = outputs.split_at_mut(arrays);
        let scratch = scratch.first_mut().map_or(&mut [][..], |scratch| scratch);
        sort.run(inputs, outputs, scratch, threads);
    });
    Some(Bound { skips_unused: true, ..bound.with_scratch(scratch) })
}

/// By merges, whatever the comparator says, if it can be generated code.
fn by_comparator(site: &InstrShapes<'_>, op: &ops::Sort, code: &mut Codes<'_>) -> Option<Bound> {
    let less = code.scalar(site.module, op.to_apply, PAIRS)?;
    // Parameters come in pairs: the left and the right element of each operand.
    let mut compared: Vec<usize> = less.reads().into_iter().map(|param| param / 2).collect();
    compared.dedup();
    let sort = MergeSort::new(&compared, &site.used, element_sizes(site), lanes(site, op))?;
    let scratch = sort.scratch_bytes();
    let arrays = site.operands.len();
    let bound = Bound::fallible("sort by comparator", move |inputs, outputs, threads| {
        let (outputs, scratch) = outputs.split_at_mut(arrays);
        let scratch = scratch.first_mut().map_or(&mut [][..], |scratch| scratch);
        let failure = Failed::default();
        let precedes = |count: usize, pairs: &Pairs<'_>, answers: &mut [u8]| {
            // Whether the right element is less: the code is given it as the left one.
            let operand = |param: usize| {
                let column = compared.iter().position(|&operand| operand == param / 2);
                column.map_or(&[][..], |column| pairs(column)[1 - param % 2])
            };
            failure.note(less.call(count, operand, &mut [answers]));
        };
        sort.run(&precedes, inputs, outputs, scratch, threads);
        failure.outcome()
    });
    Some(Bound { skips_unused: true, ..bound.with_scratch(scratch) })
}

pub(super) fn top_k(site: &InstrShapes<'_>, op: &ops::TopK) -> Option<Bound> {
    let shape = site.operands[0];
    let (&row_size, outer) = shape.dims().split_last()?;
    let rows = outer.iter().product();
    // As the interpreter does: floats in total order, in which no number counts as another.
    let order = order(shape.element(), true, Subnormals::Keep)?;
    let size = shape.element().size_bytes();
    let top = TopK::new((rows, row_size), op.k, size, order, op.largest)?;
    let scratch = top.scratch_bytes(site.threads.count());
    let bound = Bound::new("topk", move |inputs, outputs, threads| {
        let [values, indices, rest @ ..] = outputs else { return };
        let scratch = rest.first_mut().map_or(&mut [][..], |scratch| scratch);
        top.run(inputs[0], values, cast_mut(indices), scratch, threads);
    });
    Some(Bound { skips_unused: true, ..bound.with_scratch(scratch) })
}
