//! Sorting and top-k.

use helio_ir::{ElementType, ops};
use helio_passes::recognize;
use helio_runtime::kernels::bytes::cast_mut;
use helio_runtime::kernels::sort::{KeyOrder, Lanes, Sort, SortKey, TopK};

use super::{Bound, Site};

/// How elements compare by their bits, in IEEE's total order or as numbers.
fn order(element: ElementType, total: bool) -> Option<KeyOrder> {
    if element.is_signed_integer() {
        // Narrower ones have their sign in the middle of a byte.
        return (element.bits() >= 8).then_some(KeyOrder::Signed);
    }
    if element.is_unsigned_integer() || element.is_pred() {
        return Some(KeyOrder::Unsigned);
    }
    let largest = match element {
        ElementType::F64 => f64::INFINITY.to_bits(),
        ElementType::F32 => f32::INFINITY.to_bits().into(),
        ElementType::F16 => 0x7c00,
        ElementType::BF16 => 0x7f80,
        _ => return None,
    };
    Some(if total { KeyOrder::Total } else { KeyOrder::Numeric { largest } })
}

pub(super) fn sort(site: &Site<'_>, op: &ops::Sort) -> Option<Bound> {
    let keys = recognize::comparator(site.module, op.to_apply)?;
    let key = |key: recognize::SortKey| {
        let element = site.operands.get(key.operand)?.element();
        let order = order(element, key.total_order)?;
        Some(SortKey { operand: key.operand, order, descending: key.descending })
    };
    let keys = keys.into_iter().map(key).collect::<Option<Vec<_>>>()?;
    let dims = site.operands[0].dims();
    let lanes = Lanes {
        outer: dims[..op.dimension].iter().product(),
        count: dims[op.dimension],
        inner: dims[op.dimension + 1..].iter().product(),
    };
    let sizes = site.operands.iter().map(|shape| shape.element().size_bytes()).collect();
    let sort = Sort::new(keys, sizes, lanes)?;
    let scratch = sort.scratch_bytes(site.threads.count());
    let arrays = site.operands.len();
    let bound = Bound::new("sort", move |inputs, outputs, threads| {
        let (outputs, scratch) = outputs.split_at_mut(arrays);
        let scratch = scratch.first_mut().map_or(&mut [][..], |scratch| scratch);
        sort.run(inputs, outputs, scratch, threads);
    });
    Some(Bound { skips_unused: true, ..bound.with_scratch(scratch) })
}

pub(super) fn top_k(site: &Site<'_>, op: &ops::TopK) -> Option<Bound> {
    let shape = site.operands[0];
    let (&row_size, outer) = shape.dims().split_last()?;
    let rows = outer.iter().product();
    // As the interpreter does: floats in total order.
    let order = order(shape.element(), true)?;
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
