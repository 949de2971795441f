//! Running folds of a few elements, as cumulative sums are, as folds: those fuse with what is around them, and a loop
//! around them is code without a step of its own for each.

use helio_ir::ops::{
    Broadcast, Compare, Constant, Direction, Iota, Reduce, ReduceWindow, Select, WindowDim,
};
use helio_ir::types::MAX_RANK;
use helio_ir::{
    Array, ArrayShape, BinaryOp, ElementType, InstrId, Native, Op, Result, dispatch_type,
};

use super::Simplifier;
use crate::recognize::may_repeat;

/// The most elements to fold for all results together. (docs/design/fusion.md.)
const MAX_FOLDED: usize = 48 * 48;

/// reduce-window(x, init), where each window ends or begins at its element and the others leave the array, as
/// reduce(select(is_within, x, neutral), init), the elements of a window going along a new dimension in front.
pub(super) fn as_fold(
    cx: &mut Simplifier<'_, '_>,
    op: &ReduceWindow,
    binary: BinaryOp,
    [x, init]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(x) else { return Ok(None) };
    let (element, sizes) = (array.element(), array.dims().to_vec());
    // Of a few numbers, folds of narrow floats are rounded at each step; those of windows are so once.
    if element.is_float() && element.size_bytes() < 4 {
        return Ok(None);
    }
    let Some((along, direction)) = scanned(op, &sizes) else { return Ok(None) };
    let length = sizes[along];
    let folded = sizes.iter().try_fold(length, |count, &size| count.checked_mul(size));
    let (Some(neutral), Some(1..=MAX_FOLDED)) = (binary.neutral(element), folded) else {
        return Ok(None);
    };
    if sizes.len() >= MAX_RANK {
        return Ok(None);
    }
    if !may_repeat(binary, cx.scalar_of(init).and_then(|id| cx.constant(id))) {
        return Ok(None);
    }
    let all: Vec<usize> = [length].into_iter().chain(sizes.iter().copied()).collect();
    let shape = |ty: ElementType| ArrayShape::new(ty, &all[..]);
    let index = |dimension: usize| -> Result<Op> {
        Ok(Iota { shape: shape(ElementType::S32)?, dimension }.into())
    };
    // The element that is folded, and the one that the window is of.
    let (of, at) = (cx.add(index(0)?, &[])?, cx.add(index(along + 1)?, &[])?);
    let is_within = cx.add(Compare::new(direction), &[of, at])?;
    // Where it lies: along the new dimension, in place of its own.
    let places = (1..=sizes.len()).map(|d| if d == along + 1 { 0 } else { d }).collect();
    let elements = cx.add(Broadcast { shape: shape(element)?, dimensions: places }, &[x])?;
    let neutral = dispatch_type!(element, T => Array::scalar(<T as Native>::from_bits(neutral)));
    let neutral = cx.add(Constant::new(neutral), &[])?;
    let neutral = cx.broadcast_scalar(neutral, &all)?;
    let elements = cx.add(Select, &[is_within, elements, neutral])?;
    cx.add(Reduce { dimensions: vec![0], to_apply: op.to_apply }, &[elements, init]).map(Some)
}

/// The dimension along which windows are all of the elements up to theirs, or from it on, and how the index of one of
/// these compares with that of the window.
fn scanned(op: &ReduceWindow, sizes: &[usize]) -> Option<(usize, Direction)> {
    let is_trivial = |dim: &WindowDim| *dim == WindowDim::default();
    let along = op.window.dims.iter().position(|dim| !is_trivial(dim))?;
    let dim = &op.window.dims[along];
    let before = i64::try_from(sizes[along]).ok()?.checked_sub(1).filter(|&before| before > 0)?;
    let direction = match (dim.pad_low, dim.pad_high) {
        (low, 0) if low == before => Direction::Le,
        (0, high) if high == before => Direction::Ge,
        _ => return None,
    };
    let whole = WindowDim {
        size: sizes[along],
        pad_low: dim.pad_low,
        pad_high: dim.pad_high,
        ..WindowDim::default()
    };
    let is_alone = op.window.dims[along + 1..].iter().all(is_trivial);
    (*dim == whole && is_alone).then_some((along, direction))
}
