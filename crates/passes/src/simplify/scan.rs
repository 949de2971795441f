//! Running folds of a few elements, as cumulative sums are, as folds: those fuse with what is around them, and a loop
//! around them is code without a step of its own for each.

use helio_ir::ops::{
    Broadcast, Compare, Direction, Iota, Pad, PadDim, Reduce, ReduceWindow, Select, WindowDim,
};
use helio_ir::types::MAX_RANK;
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Op, Result};

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
    let Some(Scanned { along, direction, low: 0, high: 0 }) = scanned(op, &sizes) else {
        return Ok(None);
    };
    let length = sizes[along];
    let folded = sizes.iter().try_fold(length, |count, &size| count.checked_mul(size));
    if !matches!(folded, Some(1..=MAX_FOLDED)) || sizes.len() >= MAX_RANK {
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
    let Some(neutral) = cx.neutral(binary, element)? else { return Ok(None) };
    let neutral = cx.broadcast_scalar(neutral, &all)?;
    let elements = cx.add(Select, &[is_within, elements, neutral])?;
    cx.add(Reduce { dimensions: vec![0], to_apply: op.to_apply }, &[elements, init]).map(Some)
}

/// reduce-window(x, init), where windows are all of the elements up to some place, or from there on, as a window for
/// each element, padded with `init` where windows have none, as cumulative sums are that begin with zero. (Windows for each
/// element are folded in time in proportion to the elements.)
pub(super) fn as_padded(
    cx: &mut Simplifier<'_, '_>,
    op: &ReduceWindow,
    binary: BinaryOp,
    [x, init]: [InstrId; 2],
) -> Result<Option<InstrId>> {
    let Some(sizes) = cx.draft.array(x).map(|array| array.dims().to_vec()) else { return Ok(None) };
    let scanned = scanned(op, &sizes).filter(Scanned::has_all);
    let Some(Scanned { along, direction, low, high }) = scanned else { return Ok(None) };
    if (low, high) == (0, 0)
        || !may_repeat(binary, cx.scalar_of(init).and_then(|id| cx.constant(id)))
    {
        return Ok(None);
    }
    let before = sizes[along] as i64 - 1;
    let mut op = op.clone();
    let (pad_low, pad_high) = if direction == Direction::Le { (before, 0) } else { (0, before) };
    op.window.dims[along] =
        WindowDim { size: sizes[along], pad_low, pad_high, ..WindowDim::default() };
    let scan = cx.add(op, &[x, init])?;
    let mut dims = vec![PadDim::default(); sizes.len()];
    dims[along] = PadDim { low, high, interior: 0 };
    cx.add(Pad { dims }, &[scan, init]).map(Some)
}

/// Windows that are all of the elements up to a place, or from it on.
pub(super) struct Scanned {
    /// The dimension that they go along.
    along: usize,
    /// How the indices of elements compare with that of the place.
    direction: Direction,
    /// How many windows there are more than elements before the first that has one, and behind the last; less than
    /// zero if fewer.
    low: i64,
    high: i64,
}

impl Scanned {
    /// Whether these are windows for all elements, with others at most around them.
    pub(super) fn has_all(&self) -> bool {
        self.low >= 0 && self.high >= 0
    }
}

/// How windows are all of the elements up to a place or from there on, if they are.
pub(super) fn scanned(op: &ReduceWindow, sizes: &[usize]) -> Option<Scanned> {
    let is_trivial = |dim: &WindowDim| *dim == WindowDim::default();
    let along = op.window.dims.iter().position(|dim| !is_trivial(dim))?;
    let dim = &op.window.dims[along];
    let (length, size) = (i64::try_from(sizes[along]).ok()?, i64::try_from(dim.size).ok()?);
    let plain = WindowDim {
        size: dim.size,
        pad_low: dim.pad_low,
        pad_high: dim.pad_high,
        ..WindowDim::default()
    };
    let is_alone = op.window.dims[along + 1..].iter().all(is_trivial);
    if *dim != plain || !is_alone || length < 2 {
        return None;
    }
    // One window for each element has as many elements, one less of which are padding on one side; what that side
    // has more are windows of none, and what it has less are windows that are not there.
    let empty = |pad: i64| pad.checked_sub(size)?.checked_add(1);
    match (dim.pad_low, dim.pad_high) {
        (low, 0) if size >= length => {
            Some(Scanned { along, direction: Direction::Le, low: empty(low)?, high: 0 })
        }
        (0, high) if size >= length => {
            Some(Scanned { along, direction: Direction::Ge, low: 0, high: empty(high)? })
        }
        _ => None,
    }
}
