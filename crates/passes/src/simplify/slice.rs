//! Parts of arrays: `slice`, `concatenate`, `pad`, `reverse`, `dynamic-slice`.

use helio_ir::ops::{
    Broadcast, Concatenate, DynamicSlice, DynamicUpdateSlice, Iota, Pad, Reverse, Slice,
};
use helio_ir::{ArrayShape, InstrId, Number, Op, Result};

use rustc_hash::FxHashSet;

use super::{Simplifier, bits};
use crate::draft::is_elementwise;

/// Concatenations of more pieces are not looked into, so that many of them, or many slices of one,
/// take no more time than there are pieces.
const MAX_PIECES: usize = 64;

pub(super) fn slice(
    cx: &mut Simplifier<'_, '_>,
    op: &Slice,
    operand: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    // slice(x) → x, when it is all of x.
    if array.same_dims(result) {
        return Ok(Some(operand));
    }
    if let Some(scalar) = cx.scalar_of(operand) {
        return cx.broadcast_scalar(scalar, result.dims()).map(Some);
    }
    match cx.draft.op(operand).clone() {
        // slice(slice(x)) → slice(x)
        Op::Slice(inner) => {
            let source = cx.draft.operands(operand)[0];
            cx.add(compose(op, &inner, result), &[source]).map(Some)
        }
        // slice(broadcast(x)) → broadcast(slice(x))
        Op::Broadcast(inner) => {
            let source = cx.draft.operands(operand)[0];
            let of = |all: &[usize]| inner.dimensions.iter().map(|&d| all[d]).collect();
            let part =
                Slice { starts: of(&op.starts), limits: of(&op.limits), strides: of(&op.strides) };
            let part = cx.add(part, &[source])?;
            let shape = result.clone().without_layout();
            cx.add(Broadcast { shape, dimensions: inner.dimensions }, &[part]).map(Some)
        }
        // An iota is cut short where it does not count, or where it counts and stays at its start.
        Op::Iota(inner) => {
            let d = inner.dimension;
            if op.starts[d] != 0 || op.strides[d] != 1 {
                return Ok(None);
            }
            let shape = result.clone().without_layout();
            cx.add(Iota { shape, dimension: d }, &[]).map(Some)
        }
        Op::Concatenate(inner) => slice_of_concatenate(cx, op, operand, inner.dimension),
        _ => Ok(None),
    }
}

/// The slice of a slice as one.
fn compose(outer: &Slice, inner: &Slice, result: &ArrayShape) -> Slice {
    let rank = result.rank();
    let mut composed =
        Slice { starts: vec![0; rank], limits: vec![0; rank], strides: vec![1; rank] };
    for (d, &size) in result.dims().iter().enumerate() {
        let stride = outer.strides[d].saturating_mul(inner.strides[d]);
        // The limit is just past the last element that is taken.
        let extent = if size == 0 { 0 } else { (size - 1) * stride + 1 };
        // (Of no elements, the start may be the end, and a stride be as large as it likes.)
        let passed = if size == 0 { 0 } else { outer.starts[d] * inner.strides[d] };
        composed.starts[d] = inner.starts[d] + passed;
        composed.limits[d] = composed.starts[d] + extent;
        composed.strides[d] = if size > 1 { stride } else { 1 };
    }
    composed
}

/// slice(concatenate(x, y)) → slice(x), when it takes of x only.
fn slice_of_concatenate(
    cx: &mut Simplifier<'_, '_>,
    op: &Slice,
    operand: InstrId,
    dimension: usize,
) -> Result<Option<InstrId>> {
    if cx.draft.operands(operand).len() > MAX_PIECES {
        return Ok(None);
    }
    let (start, limit) = (op.starts[dimension], op.limits[dimension]);
    let mut begin = 0;
    for piece in cx.draft.operands(operand).to_vec() {
        let Some(array) = cx.draft.array(piece) else { return Ok(None) };
        let end = begin + array.dims()[dimension];
        if start >= begin && limit <= end && start < limit {
            let mut part = op.clone();
            part.starts[dimension] = start - begin;
            part.limits[dimension] = limit - begin;
            return cx.add(part, &[piece]).map(Some);
        }
        begin = end;
    }
    Ok(None)
}

pub(super) fn concatenate(
    cx: &mut Simplifier<'_, '_>,
    op: &Concatenate,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let d = op.dimension;
    let mut pieces: Vec<InstrId> = Vec::with_capacity(operands.len());
    for &operand in operands {
        // concatenate(concatenate(x, y), z) → concatenate(x, y, z)
        match cx.draft.op(operand) {
            Op::Concatenate(inner)
                if inner.dimension == d && cx.draft.operands(operand).len() <= MAX_PIECES =>
            {
                pieces.extend(cx.draft.operands(operand));
            }
            _ => pieces.push(operand),
        }
    }
    // What adds no element is left out.
    pieces.retain(|&id| cx.draft.array(id).is_none_or(|array| array.dims()[d] != 0));
    let mut merged: Vec<InstrId> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let joined = match merged.last() {
            Some(&last) => adjacent(cx, last, piece, d)?,
            None => None,
        };
        if joined.is_some() {
            merged.pop();
        }
        merged.push(joined.unwrap_or(piece));
    }
    match merged[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ if merged == operands => Ok(None),
        _ => {
            debug_assert!(result.rank() > d);
            cx.add(*op, &merged).map(Some)
        }
    }
}

/// concatenate(slice(x, 0..3), slice(x, 3..5)) → slice(x, 0..5); the same for repeated scalars.
fn adjacent(
    cx: &mut Simplifier<'_, '_>,
    a: InstrId,
    b: InstrId,
    d: usize,
) -> Result<Option<InstrId>> {
    if let (Some(scalar), Some(other)) = (cx.scalar_of(a), cx.scalar_of(b))
        && scalar == other
        && let (Some(first), Some(second)) = (cx.draft.array(a), cx.draft.array(b))
    {
        let mut dims = first.dims().to_vec();
        dims[d] += second.dims()[d];
        return cx.broadcast_scalar(scalar, &dims).map(Some);
    }
    let (Op::Slice(first), Op::Slice(second)) = (cx.draft.op(a), cx.draft.op(b)) else {
        return Ok(None);
    };
    let source = cx.draft.operands(a)[0];
    let fits = source == cx.draft.operands(b)[0]
        && first.strides[d] == 1
        && second.strides[d] == 1
        && first.limits[d] == second.starts[d]
        && (0..first.starts.len()).filter(|&other| other != d).all(|other| {
            first.starts[other] == second.starts[other]
                && first.limits[other] == second.limits[other]
                && first.strides[other] == second.strides[other]
        });
    if !fits {
        return Ok(None);
    }
    let mut joined = first.clone();
    joined.limits[d] = second.limits[d];
    cx.add(*joined, &[source]).map(Some)
}

pub(super) fn pad(
    cx: &mut Simplifier<'_, '_>,
    op: &Pad,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let &[operand, fill] = operands else { return Ok(None) };
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    // Nothing but the fill value is left of an empty operand.
    if array.dims().contains(&0) {
        return cx.broadcast_scalar(fill, result.dims()).map(Some);
    }
    let adds_nothing = |(dim, &size): (&helio_ir::ops::PadDim, &usize)| {
        dim.low == 0 && dim.high == 0 && (dim.interior == 0 || size == 1)
    };
    if op.dims.iter().zip(array.dims()).all(adds_nothing) {
        return Ok(Some(operand));
    }
    // pad(broadcast(s), s) → broadcast(s)
    if cx.scalar_of(operand) == Some(fill) {
        return cx.broadcast_scalar(fill, result.dims()).map(Some);
    }
    Ok(None)
}

pub(super) fn reverse(
    cx: &mut Simplifier<'_, '_>,
    op: &Reverse,
    operand: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let repeats = |d: usize| match cx.draft.op(operand) {
        Op::Broadcast(inner) => !inner.dimensions.contains(&d),
        _ => false,
    };
    let matters = |&&d: &&usize| result.dims()[d] != 1 && !repeats(d);
    let dimensions: Vec<usize> = op.dimensions.iter().filter(matters).copied().collect();
    if dimensions.is_empty() {
        return Ok(Some(operand));
    }
    // reverse(reverse(x)) → reverse(x) along what one of them turns
    if let Op::Reverse(inner) = cx.draft.op(operand) {
        let mut once: Vec<usize> =
            dimensions.iter().filter(|d| !inner.dimensions.contains(d)).copied().collect();
        once.extend(inner.dimensions.iter().filter(|d| !dimensions.contains(d)));
        let source = cx.draft.operands(operand)[0];
        return cx.add(Reverse { dimensions: once }, &[source]).map(Some);
    }
    if dimensions.len() < op.dimensions.len() {
        return cx.add(Reverse { dimensions }, &[operand]).map(Some);
    }
    Ok(None)
}

pub(super) fn dynamic_slice(
    cx: &mut Simplifier<'_, '_>,
    op: &DynamicSlice,
    operands: &[InstrId],
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let operand = operands[0];
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    // All of it can only be taken at 0.
    if array.same_dims(result) {
        return Ok(Some(operand));
    }
    if let Some(narrow) = narrow_starts(cx, operands, 1)? {
        return cx.add(op.clone(), &narrow).map(Some);
    }
    let Some(array) = cx.draft.array(operand) else { return Ok(None) };
    let dims = array.dims().to_vec();
    if operands.len() != dims.len() + 1 {
        return Ok(None); // the legacy form with one vector of starts
    }
    let mut starts = Vec::with_capacity(dims.len());
    for (d, &start) in operands[1..].iter().enumerate() {
        // Starts are clamped so that the slice stays inside.
        let last = dims[d] - op.sizes[d];
        match cx.splat(start) {
            _ if last == 0 => starts.push(0),
            Some(Number::Int(start)) => starts.push(start.clamp(0, last as i128) as usize),
            _ => return Ok(None),
        }
    }
    let limits = starts.iter().zip(&op.sizes).map(|(start, size)| start + size).collect();
    cx.add(Slice::dense(starts, limits), &[operand]).map(Some)
}

/// dynamic-update-slice(x, y, …) → y, when y has x's sizes; → x, when y has no elements; and [`around_neighbours`].
pub(super) fn dynamic_update_slice(
    cx: &mut Simplifier<'_, '_>,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let (operand, update) = (operands[0], operands[1]);
    match (cx.draft.array(operand), cx.draft.array(update)) {
        (Some(of), Some(by)) if of.same_dims(by) => return Ok(Some(update)),
        (Some(_), Some(by)) if by.element_count() == 0 => return Ok(Some(operand)),
        _ => {}
    }
    if let Some(narrow) = narrow_starts(cx, operands, 2)? {
        return cx.add(DynamicUpdateSlice, &narrow).map(Some);
    }
    around_neighbours(cx, operands)
}

/// An update of less than one in so many elements stays one.
const MOSTLY: usize = 2;
/// The most instructions of which an update is made that are looked at.
const MAX_LOOKED_AT: usize = 256;

/// dynamic-update-slice(x, y, …) → concatenate(…, y, …) of `y` and what `x` has around it, where the place is known, `y` is most
/// of `x` and made of other parts of it, as all points but those of the border are of their neighbours. (Changed in place, `x`
/// would be overwritten while it is read: each of these parts would be copied before.)
fn around_neighbours(cx: &mut Simplifier<'_, '_>, operands: &[InstrId]) -> Result<Option<InstrId>> {
    let &[whole, update, ref starts @ ..] = operands else { return Ok(None) };
    let (Some(of), Some(by)) = (cx.draft.array(whole), cx.draft.array(update)) else {
        return Ok(None);
    };
    let is_known = of.is_static() && starts.len() == of.rank();
    if !is_known || by.element_count().saturating_mul(MOSTLY) < of.element_count() {
        return Ok(None);
    }
    let (sizes, changed) = (of.dims().to_vec(), by.dims().to_vec());
    let mut first = Vec::with_capacity(starts.len());
    for (d, &start) in starts.iter().enumerate() {
        let Some(Number::Int(start)) = cx.splat(start) else { return Ok(None) };
        first.push(start.clamp(0, (sizes[d] - changed[d]) as i128) as usize);
    }
    if !reads_elsewhere(cx, update, whole, &first) {
        return Ok(None);
    }
    let mut value = update;
    for d in (0..sizes.len()).rev() {
        let end = first[d] + changed[d];
        let mut pieces = Vec::with_capacity(3);
        for (from, to) in [(0, first[d]), (first[d], end), (end, sizes[d])] {
            if (from, to) == (first[d], end) {
                pieces.push(value);
            } else if from < to {
                // As the update in the dimensions before this one, as all in those after it.
                let (mut begins, mut ends) = (first.clone(), sizes.clone());
                begins[d + 1..].fill(0);
                ends[..d].iter_mut().enumerate().for_each(|(k, end)| *end = first[k] + changed[k]);
                (begins[d], ends[d]) = (from, to);
                pieces.push(cx.add(Slice::dense(begins, ends), &[whole])?);
            }
        }
        if pieces.len() > 1 {
            value = cx.add(Concatenate { dimension: d }, &pieces)?;
        }
    }
    Ok(Some(value))
}

/// Whether a value is made, in what may be one fusion, of a part of `whole` as large as it that does not begin at `first`.
fn reads_elsewhere(
    cx: &Simplifier<'_, '_>,
    value: InstrId,
    whole: InstrId,
    first: &[usize],
) -> bool {
    let mut pending = vec![value];
    let mut seen: FxHashSet<InstrId> = FxHashSet::default();
    while let Some(id) = pending.pop() {
        if id == whole || !seen.insert(id) {
            continue;
        }
        if seen.len() > MAX_LOOKED_AT {
            return false;
        }
        match cx.draft.op(id) {
            Op::Slice(slice) if cx.draft.operands(id)[0] == whole && slice.starts != first => {
                return true;
            }
            op if is_elementwise(op) => pending.extend(cx.draft.operands(id)),
            Op::Slice(_) | Op::Concatenate(_) | Op::Pad(_) => {
                pending.extend(cx.draft.operands(id));
            }
            _ => {}
        }
    }
    false
}

/// The operands with starts, of which there are arrays before, in the type from which they were widened; constants
/// among them become numbers of that type. `None` if they are not all from one type, or constants it has not.
fn narrow_starts(
    cx: &mut Simplifier<'_, '_>,
    operands: &[InstrId],
    arrays: usize,
) -> Result<Option<Vec<InstrId>>> {
    let starts = &operands[arrays..];
    let element = |cx: &Simplifier<'_, '_>, id: InstrId| {
        let array = cx.draft.array(id).filter(|array| array.is_scalar());
        array.map(ArrayShape::element).filter(|ty| ty.is_integer())
    };
    let source = |cx: &Simplifier<'_, '_>, id: InstrId| match cx.draft.op(id) {
        Op::Convert(_) => Some(cx.draft.operands(id)[0]),
        _ => None,
    };
    let widened = starts.iter().find_map(|&id| element(cx, source(cx, id)?));
    let (Some(from), Some(to)) = (widened, starts.first().and_then(|&id| element(cx, id))) else {
        return Ok(None);
    };
    let ((low, high), (least, greatest)) = (bits::range(from), bits::range(to));
    if low < least || high > greatest {
        return Ok(None);
    }
    let mut narrow = operands[..arrays].to_vec();
    for &start in starts {
        narrow.push(match (source(cx, start), cx.splat(start)) {
            (Some(source), _) if element(cx, source) == Some(from) => source,
            (_, Some(Number::Int(value))) if (low..=high).contains(&value) => {
                cx.scalar(from, Number::Int(value))?
            }
            _ => return Ok(None),
        });
    }
    Ok(Some(narrow))
}
