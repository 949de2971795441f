//! Rules for `reduce` and `reduce-window`.

use helio_ir::ops::{Broadcast, Reduce, ReduceWindow, Reshape, Tuple, WindowDim};
use helio_ir::types::MAX_RANK;
use helio_ir::{ArrayShape, BinaryOp, CompId, ElementType, InstrId, Op, Result, Shape};

use super::Simplifier;
use super::movement::follow_units;
use super::{scan, sum_products};
use crate::fuse::MAX_WRITTEN_OUT;
use crate::recognize::{commutes, is_idempotent, may_repeat, reducer};

impl Simplifier<'_, '_> {
    /// Whether an instruction is a `reduce` by addition.
    pub(super) fn is_sum(&self, id: InstrId) -> bool {
        match self.draft.op(id) {
            Op::Reduce(op) => {
                let array = self.draft.array(id);
                let fold = array.and_then(|array| self.fold_op(op.to_apply, array.element()));
                fold == Some(BinaryOp::Add)
            }
            _ => false,
        }
    }

    /// The operation by which a reducer folds elements of this type, if it is one.
    fn fold_op(&self, id: CompId, element: ElementType) -> Option<BinaryOp> {
        reducer(self.draft.callees(), id, element)
    }
}

/// What folds of no elements give: their initial values; `None` if results have other types.
fn of_nothing(
    cx: &mut Simplifier<'_, '_>,
    inits: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let leaves = shape.leaves();
    let mut results = Vec::with_capacity(inits.len());
    for (&init, leaf) in inits.iter().zip(leaves) {
        let (Some(scalar), Some(result)) = (cx.draft.array(init), leaf.as_array()) else {
            return Ok(None);
        };
        if scalar.element() != result.element() {
            return Ok(None);
        }
        let broadcast = Broadcast { shape: result.clone(), dimensions: Vec::new() };
        results.push(cx.add(broadcast, &[init])?);
    }
    match shape {
        Shape::Tuple(_) => cx.add(Tuple, &results).map(Some),
        _ => Ok(results.first().copied()),
    }
}

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Reduce,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let Some(dims) = cx.draft.array(arrays[0]).map(|array| array.dims().to_vec()) else {
        return Ok(None);
    };
    if op.dimensions.iter().any(|&d| dims[d] == 0)
        && let Some(inits) = of_nothing(cx, inits, shape)?
    {
        return Ok(Some(inits));
    }
    let (units, others): (Vec<usize>, Vec<usize>) =
        op.dimensions.iter().partition(|&&d| dims[d] == 1);
    // Dimensions of 1 fold nothing as long as others are folded.
    if !units.is_empty() && !others.is_empty() {
        let kept: Vec<usize> = (0..dims.len()).filter(|d| !units.contains(d)).collect();
        let sizes: Vec<usize> = kept.iter().map(|&d| dims[d]).collect();
        let mut operands = Vec::with_capacity(operands.len());
        for &array in arrays {
            operands.push(cx.reshape(array, &sizes)?);
        }
        operands.extend(inits);
        let place = |d: &usize| kept.iter().filter(|&&k| k < *d).count();
        let dimensions = others.iter().map(place).collect();
        return cx.add(Reduce { dimensions, to_apply: op.to_apply }, &operands).map(Some);
    }
    let (&[x], &[init], Some(result)) = (arrays, inits, shape.as_array()) else { return Ok(None) };
    let element = |id: InstrId| cx.draft.array(id).map(|array| array.element());
    if element(x) != element(init) || element(x) != Some(result.element()) {
        return Ok(None); // converts on the way
    }
    let Some(binary) = cx.fold_op(op.to_apply, result.element()) else { return Ok(None) };
    // One element is combined with the initial value only.
    if others.is_empty() {
        let x = cx.reshape(x, result.dims())?;
        let init = cx.broadcast_scalar(init, result.dims())?;
        return cx.add(binary, &[init, x]).map(Some);
    }
    // No element at all leaves the initial value.
    if others.iter().any(|&d| dims[d] == 0) {
        return cx.broadcast_scalar(init, result.dims()).map(Some);
    }
    if binary == BinaryOp::Add
        && let Some(dot) = sum_products::as_dot(cx, (x, init), &others, result)?
    {
        return Ok(Some(dot));
    }
    if let Some(reduced) = rows_last(cx, op, (x, init), &dims, binary)? {
        return Ok(Some(reduced));
    }
    through_source(cx, op, (x, init), &others, (binary, result))
}

/// Rows that are folded last, if other dimensions are, have fewer bytes than these, and at least as many with those next
/// to them; ...
const SHORT_ROW: usize = 64;
/// ... and at least as many elements. (Of two, both can be read by one permutation.)
const MIN_ROW: usize = 3;
/// The fewest elements for which a fold becomes two: they take longer to compile.
const MIN_ELEMENTS: usize = 1 << 10;

/// reduce(x) → reduce(reduce(x)), where short rows are folded together with other dimensions, as the points of blocks of
/// an image are: the others first, along rows next to each other, in whole vectors.
fn rows_last(
    cx: &mut Simplifier<'_, '_>,
    op: &Reduce,
    (x, init): (InstrId, InstrId),
    dims: &[usize],
    binary: BinaryOp,
) -> Result<Option<InstrId>> {
    let Some(element) = cx.draft.array(x).map(|array| array.element()) else { return Ok(None) };
    // Narrow floats would be rounded in between.
    let is_narrow = element.is_float() && element.size_bytes() < 4;
    let reorders = binary != BinaryOp::Subtract && may_reorder(binary, element);
    if is_narrow || element.is_complex() || !reorders {
        return Ok(None);
    }
    let is_folded = |d: &usize| op.dimensions.contains(d);
    let size = |range: std::ops::Range<usize>| dims[range].iter().product::<usize>();
    let row = (0..dims.len()).rposition(|d| !is_folded(&d)).map_or(0, |d| d + 1);
    let side = (0..row).rposition(|d| is_folded(&d)).map_or(0, |d| d + 1);
    let length = size(row..dims.len());
    let others: usize = (0..side).filter(is_folded).map(|d| dims[d]).product();
    let bytes = |elements: usize| elements.saturating_mul(element.size_bytes().max(4));
    let pays = length >= MIN_ROW
        && bytes(length) < SHORT_ROW
        && bytes(size(side..dims.len())) >= SHORT_ROW
        && others > 1
        && others.saturating_mul(length) > MAX_WRITTEN_OUT
        && size(0..dims.len()) >= MIN_ELEMENTS;
    if !pays {
        return Ok(None);
    }
    let Some(neutral) = cx.neutral(binary, element)? else { return Ok(None) };
    let (first, last): (Vec<usize>, Vec<usize>) = op.dimensions.iter().partition(|&&d| d < row);
    let last = last.into_iter().map(|d| d - first.len()).collect();
    let to_apply = op.to_apply;
    let folded = cx.add(Reduce { dimensions: first, to_apply }, &[x, neutral])?;
    cx.add(Reduce { dimensions: last, to_apply }, &[folded, init]).map(Some)
}

/// The reduction of the array that `x` only rearranges or repeats.
fn through_source(
    cx: &mut Simplifier<'_, '_>,
    op: &Reduce,
    (x, init): (InstrId, InstrId),
    others: &[usize],
    (binary, result): (BinaryOp, &ArrayShape),
) -> Result<Option<InstrId>> {
    let Some(dims) = cx.draft.array(x).map(|array| array.dims().to_vec()) else {
        return Ok(None);
    };
    let source = cx.draft.operands(x).first().copied();
    let Some(source_dims) = source.and_then(|id| cx.draft.array(id)).map(|a| a.dims().to_vec())
    else {
        return Ok(None);
    };
    match (cx.draft.op(x), source) {
        // reduce(reshape(x)) → reshape(reduce(x)), when the reshape adds or takes ones.
        (Op::Reshape(_), Some(source)) => {
            let Some(followed) = follow_units(&dims, &source_dims) else { return Ok(None) };
            let dimensions: Option<Vec<usize>> = others.iter().map(|&d| followed[d]).collect();
            let Some(dimensions) = dimensions else { return Ok(None) };
            let reduced = Reduce { dimensions, to_apply: op.to_apply };
            let reduced = cx.add(reduced, &[source, init])?;
            cx.reshape(reduced, result.dims()).map(Some)
        }
        // reduce(transpose(x)) → reduce(x), when what is kept is in order, and the order in which elements
        // are combined makes no difference but for rounding.
        (Op::Transpose(transpose), Some(source)) if may_reorder(binary, result.element()) => {
            let kept: Vec<usize> = (0..dims.len())
                .filter(|d| !others.contains(d))
                .map(|d| transpose.permutation[d])
                .collect();
            let mut dimensions: Vec<usize> =
                others.iter().map(|&d| transpose.permutation[d]).collect();
            dimensions.sort_unstable();
            if !kept.is_sorted() {
                return Ok(None);
            }
            let reduced = Reduce { dimensions, to_apply: op.to_apply };
            cx.add(reduced, &[source, init]).map(Some)
        }
        // The greatest of equal elements is any of them.
        (Op::Broadcast(broadcast), Some(source)) if is_idempotent(binary) => {
            if others.iter().any(|d| broadcast.dimensions.contains(d)) {
                return Ok(None);
            }
            let mut inner = broadcast.clone();
            for d in &mut inner.dimensions {
                *d -= others.iter().filter(|&other| other < d).count();
            }
            inner.shape = result.clone().without_layout();
            let x = cx.add(*inner, &[source])?;
            let init = cx.broadcast_scalar(init, result.dims())?;
            cx.add(binary, &[init, x]).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether elements may be combined with a value in any order, but for rounding.
fn may_reorder(op: BinaryOp, element: ElementType) -> bool {
    commutes(op, element) && op.is_associative() || op == BinaryOp::Subtract
}

/// A window of one element combines it with the initial value only; what an array is padded with may
/// be left to the window.
pub(super) fn window(
    cx: &mut Simplifier<'_, '_>,
    op: &ReduceWindow,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[x, init] = operands else { return Ok(None) };
    let is_one = op.window.dims.iter().all(|dim| {
        dim.size == 1
            && dim.stride == 1
            && dim.pad_low == 0
            && dim.pad_high == 0
            && dim.base_dilation == 1
    });
    let (Some(array), Some(start)) = (cx.draft.array(x), cx.draft.array(init)) else {
        return Ok(None);
    };
    let same = array.element() == start.element();
    let dims = array.dims().to_vec();
    match cx.fold_op(op.to_apply, array.element()) {
        Some(binary) if is_one && same => {
            let init = cx.broadcast_scalar(init, &dims)?;
            cx.add(binary, &[init, x]).map(Some)
        }
        Some(binary) if same => {
            for rule in [of_single_elements, of_padded, scan::as_padded, scan::as_fold] {
                if let Some(id) = rule(cx, op, binary, [x, init])? {
                    return Ok(Some(id));
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}

/// Windows as wide as elements are apart, each over one of them: elements are repeated, each combined with the
/// initial value, as where the gradient of an average goes to all that it was made of.
fn of_single_elements(
    cx: &mut Simplifier<'_, '_>,
    op: &ReduceWindow,
    binary: BinaryOp,
    [x, init]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(x) else { return Ok(None) };
    let (element, sizes) = (array.element(), array.dims().to_vec());
    let is_one = |dim: &WindowDim| {
        let edge = dim.size as i64 - 1;
        dim.base_dilation == dim.size
            && dim.stride == 1
            && (dim.window_dilation == 1 || dim.size == 1)
            && (dim.pad_low, dim.pad_high) == (edge, edge)
    };
    let is_plain = array.is_static() && op.window.dims.iter().all(is_one);
    let repetitions = op.window.dims.iter().filter(|dim| dim.size > 1).count();
    if !is_plain || sizes.contains(&0) || sizes.len() + repetitions > MAX_RANK {
        return Ok(None);
    }
    let start = cx.broadcast_scalar(init, &sizes)?;
    let combined = cx.add(binary, &[start, x])?;
    // Each dimension is followed by one for the repetitions, if it has any.
    let (mut repeated, mut dimensions) = (Vec::new(), Vec::new());
    for (&size, dim) in sizes.iter().zip(&op.window.dims) {
        dimensions.push(repeated.len());
        repeated.push(size);
        repeated.extend((dim.size > 1).then_some(dim.size));
    }
    let shape = ArrayShape::new(element, repeated)?;
    let repeated = cx.add(Broadcast { shape, dimensions }, &[combined])?;
    let dims: Vec<usize> =
        sizes.iter().zip(&op.window.dims).map(|(size, dim)| size * dim.size).collect();
    let shape = ArrayShape::new(element, dims)?;
    cx.add(Reshape { shape }, &[repeated]).map(Some)
}

/// The fewest elements that share each position of a window for which holes between positions cost
/// little.
const ENOUGH_NEIGHBOURS: usize = 16;

/// reduce-window(pad(x, init), init) → reduce-window(x, init), with the padding in the window, when
/// it makes no difference how often `init` is combined: the window leaves out what is padding to it.
fn of_padded(
    cx: &mut Simplifier<'_, '_>,
    op: &ReduceWindow,
    binary: BinaryOp,
    [padded, init]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let (Op::Pad(pad), &[x, fill]) = (cx.draft.op(padded), cx.draft.operands(padded)) else {
        return Ok(None);
    };
    let repeats = may_repeat(binary, cx.scalar_of(init).and_then(|id| cx.constant(id)));
    let scalar = |id: InstrId| cx.constant(cx.scalar_of(id)?);
    let is_init = fill == init
        || scalar(fill).zip(scalar(init)).is_some_and(|(fill, init)| fill.same_bits(init));
    if !repeats || !is_init {
        return Ok(None);
    }
    let is_scan = |op: &ReduceWindow, sizes: &[usize]| {
        scan::scanned(op, sizes).is_some_and(|scanned| scanned.has_all())
    };
    let was_scan = cx.draft.array(padded).is_some_and(|padded| is_scan(op, padded.dims()));
    let mut op = op.clone();
    for (dim, pad) in op.window.dims.iter_mut().zip(&pad.dims) {
        // Cropping could leave no element, or one that is no multiple of the dilation away.
        let (Some(low), Some(high), Some(dilation)) = (
            dim.pad_low.checked_add(pad.low).filter(|_| pad.low >= 0),
            dim.pad_high.checked_add(pad.high).filter(|_| pad.high >= 0),
            pad.interior.checked_add(1).filter(|_| dim.base_dilation == 1),
        ) else {
            return Ok(None);
        };
        (dim.pad_low, dim.pad_high, dim.base_dilation) = (low, high, dilation);
    }
    let Some(sizes) = cx.draft.array(x).map(|array| array.dims()) else { return Ok(None) };
    // What folds all elements up to each remains that.
    if was_scan && !is_scan(&op, sizes) {
        return Ok(None);
    }
    let dims = &op.window.dims;
    let last = dims.iter().rposition(|dim| *dim != WindowDim::default());
    let neighbours: usize = sizes[last.map_or(0, |last| last + 1)..].iter().product();
    let has_holes = pad.dims.iter().any(|dim| dim.interior > 0);
    if has_holes && neighbours < ENOUGH_NEIGHBOURS {
        return Ok(None);
    }
    cx.add(op, &[x, init]).map(Some)
}
