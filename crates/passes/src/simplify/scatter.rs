//! `scatter` of few windows: what engines do element by element becomes operations on arrays.
//!
//! `x.at[i].set(v)` comes as a scatter of one window. A window that does not lie wholly inside is left
//! out, where a dynamic-update-slice moves it inside; so one window is a dynamic-update-slice of what is
//! there already, or of what the scatter makes of it, whichever a comparison of the index says. Several
//! windows in a small array, or one for each of a batch, are selections: an element is what it was, or,
//! where its place is the index, what the scatter makes of it.

use std::iter::zip;

use helio_ir::ops::{
    Broadcast, Clamp, Compare, Convert, Direction, DynamicSlice, DynamicUpdateSlice, Iota, Scatter,
    ScatterDims, Select, Slice,
};
use helio_ir::{
    ArrayShape, BinaryOp, CompId, ElementType, Instr, InstrId, Number, Op, Result, Shape,
};

use super::{Simplifier, bits};
use crate::draft::is_elementwise;

/// The most elements of one window: of a larger one, what is there is not read for nothing.
const MAX_WINDOW: usize = 1 << 12;
/// An array of up to this many elements is a vector of lanes, in which a selection changes one as fast as an
/// update of a part would, and it fuses with others.
const MAX_VECTOR: usize = 16;
/// The most selections that one scatter becomes.
const MAX_SELECTIONS: usize = 16;
/// The most elements that all selections of a scatter compute.
const MAX_SELECTED: usize = 1 << 9;

/// What a dimension of the operand is to windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OperandDim {
    /// The size of windows along it.
    window: usize,
    /// The component of index vectors that is for it.
    component: Option<usize>,
    /// The dimension of the updates that runs along windows in it.
    of_updates: Option<usize>,
    /// The dimension of the indices, without index vectors, that it goes along with.
    of_batch: Option<usize>,
}

/// A scatter into one array whose sizes are known.
struct Site {
    x: InstrId,
    indices: InstrId,
    updates: InstrId,
    to_apply: CompId,
    /// The array's.
    dims: Vec<usize>,
    each: Vec<OperandDim>,
    index: ElementType,
    /// The sizes of the indices without index vectors, and the dimension that holds these.
    batch: Vec<usize>,
    vector_dim: usize,
    /// The dimensions of the updates that stand for those of the indices.
    scatter_dims: Vec<usize>,
}

/// scatter(x, i, u) → dynamic-update-slice(x, select(i is inside, f(x[i], u), x[i]), i), or
/// select(iota == i, f(x, u), x).
pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Scatter,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let Some(site) = Site::new(cx, op, operands) else { return Ok(None) };
    let Some(updates) = cx.draft.array(site.updates) else { return Ok(None) };
    if !is_mapped(cx, op.to_apply, updates.element()) {
        return Ok(None);
    }
    let windows: usize = site.batch.iter().product();
    let elements: usize = site.dims.iter().product();
    // What has no elements, or is wider than what it would go into, changes nothing.
    if windows == 0 || updates.element_count() == 0 || elements == 0 || site.is_too_wide() {
        return Ok(Some(site.x));
    }
    let is_one = windows == 1;
    let is_vector = elements <= MAX_VECTOR && updates.element_count() == 1;
    if (!is_one || is_vector)
        && let Some(selected) = site.selected(cx)?
    {
        return Ok(Some(selected));
    }
    if is_one { site.updated(cx) } else { Ok(None) }
}

impl Site {
    fn new(cx: &Simplifier<'_, '_>, op: &Scatter, operands: &[InstrId]) -> Option<Site> {
        let &[x, indices, updates] = operands else { return None };
        let [array, places, by] =
            [cx.draft.array(x)?, cx.draft.array(indices)?, cx.draft.array(updates)?];
        let ScatterDims { index_vector_dim: vector_dim, .. } = op.dims;
        if array.element() != by.element() {
            return None;
        }
        let mut batch = places.dims().to_vec();
        if vector_dim < batch.len() {
            batch.remove(vector_dim);
        }
        let windows = op.dims.window_operand_dims(array.rank());
        let each = (0..array.rank()).map(|d| {
            let of_updates =
                windows.iter().position(|&w| w == d).map(|i| op.dims.update_window_dims[i]);
            let of_batch = op.dims.input_batching_dims.iter().position(|&b| b == d);
            let of_batch = of_batch.map(|i| {
                let of_indices = op.dims.scatter_indices_batching_dims[i];
                of_indices - usize::from(of_indices > vector_dim)
            });
            let mut components = op.dims.scatter_dims_to_operand_dims.iter();
            OperandDim {
                window: of_updates.map_or(1, |from| by.dims()[from]),
                component: components.position(|&of| of == d),
                of_updates,
                of_batch,
            }
        });
        Some(Site {
            x,
            indices,
            updates,
            to_apply: op.to_apply,
            dims: array.dims().to_vec(),
            each: each.collect(),
            index: places.element(),
            batch,
            vector_dim,
            scatter_dims: op.dims.scatter_dims(by.rank()),
        })
    }

    fn is_too_wide(&self) -> bool {
        zip(&self.each, &self.dims).any(|(each, &dim)| each.window > dim)
    }

    /// A component of the index vectors, in the sizes `batch`; for those that `at` gives, of which other
    /// dimensions are left out, if it is not empty.
    fn component(
        &self,
        cx: &mut Simplifier<'_, '_>,
        component: usize,
        at: &[Option<usize>],
    ) -> Result<InstrId> {
        let Some(shape) = cx.draft.array(self.indices) else { return Ok(self.indices) };
        let mut slice = Slice::dense(vec![0; shape.rank()], shape.dims().to_vec());
        if self.vector_dim < shape.rank() {
            slice.starts[self.vector_dim] = component;
            slice.limits[self.vector_dim] = component + 1;
        }
        let mut kept = Vec::with_capacity(self.batch.len());
        for (d, &at) in at.iter().enumerate() {
            match at {
                Some(at) => {
                    let d = d + usize::from(d >= self.vector_dim);
                    (slice.starts[d], slice.limits[d]) = (at, at + 1);
                }
                None => kept.push(self.batch[d]),
            }
        }
        let part = cx.add(slice, &[self.indices])?;
        cx.reshape(part, &kept)
    }

    /// The array with its only window updated in place.
    fn updated(&self, cx: &mut Simplifier<'_, '_>) -> Result<Option<InstrId>> {
        let sizes: Vec<usize> = self.each.iter().map(|each| each.window).collect();
        let only: Vec<Option<usize>> = self.batch.iter().map(|_| Some(0)).collect();
        // Kernels have no places of type u64.
        let is_narrowed = self.index == ElementType::U64
            && self.dims.iter().all(|&dim| i32::try_from(dim).is_ok());
        let ty = if is_narrowed { ElementType::S32 } else { self.index };
        let mut starts = Vec::with_capacity(sizes.len());
        let mut inside: Option<InstrId> = None;
        for (each, &dim) in zip(&self.each, &self.dims) {
            let Some(component) = each.component else {
                starts.push(cx.scalar(ty, Number::Int(0))?);
                continue;
            };
            let start = self.component(cx, component, &only)?;
            let is_inside = is_within(cx, start, self.index, dim - each.window)?;
            starts.push(if is_narrowed { as_s32(cx, start, self.index, dim)? } else { start });
            inside = match (inside, is_inside) {
                (Some(a), Some(b)) => Some(cx.add(BinaryOp::And, &[a, b])?),
                (a, b) => a.or(b),
            };
        }
        let is_known = inside.is_none_or(|inside| cx.splat(inside).is_some());
        if !is_known && sizes.iter().product::<usize>() > MAX_WINDOW {
            return Ok(None);
        }
        let mut operands = vec![self.x];
        operands.extend(&starts);
        let old = cx.add(DynamicSlice { sizes: sizes.clone() }, &operands)?;
        let update = cx.reshape(self.updates, &sizes)?;
        let mut new = combined(cx, self.to_apply, [old, update], &sizes)?;
        if let Some(inside) = inside {
            let inside = cx.broadcast_scalar(inside, &sizes)?;
            new = cx.add(Select, &[inside, new, old])?;
        }
        // What is not inside at all leaves everything as it was.
        if new == old {
            return Ok(Some(self.x));
        }
        operands.insert(1, new);
        cx.add(DynamicUpdateSlice, &operands).map(Some)
    }

    /// The array as selections, one for each window, or for one window of each of a batch; `None` if
    /// windows are neither single elements nor all of the array along each dimension, or are too many.
    fn selected(&self, cx: &mut Simplifier<'_, '_>) -> Result<Option<InstrId>> {
        let is_batch = |d: usize| self.each.iter().any(|each| each.of_batch == Some(d));
        let numbered: Vec<usize> = (0..self.batch.len()).filter(|&d| !is_batch(d)).collect();
        let count = numbered.iter().map(|&d| self.batch[d]).product::<usize>();
        let elements = self.dims.iter().product::<usize>().saturating_mul(count);
        let is_whole = |(each, &dim): (&OperandDim, &usize)| match each.component {
            Some(_) => each.window == 1 && i32::try_from(dim).is_ok(),
            None => each.window == dim || each.of_batch.is_some(),
        };
        if count > MAX_SELECTIONS
            || elements > MAX_SELECTED
            || !zip(&self.each, &self.dims).all(is_whole)
        {
            return Ok(None);
        }
        let mut array = self.x;
        for number in 0..count {
            let (mut at, mut rest) = (vec![None; self.batch.len()], number);
            for &d in numbered.iter().rev() {
                at[d] = Some(rest % self.batch[d]);
                rest /= self.batch[d];
            }
            let Some(is_there) = self.is_there(cx, &at)? else { return Ok(None) };
            let Some(update) = self.spread_update(cx, &at)? else { return Ok(None) };
            let mut new = combined(cx, self.to_apply, [array, update], &self.dims)?;
            if let Some(is_there) = is_there {
                new = cx.add(Select, &[is_there, new, array])?;
            }
            array = new;
        }
        Ok(Some(array))
    }

    /// For each element of the array, whether it is in the windows with these numbers; `None` within if
    /// all are.
    fn is_there(
        &self,
        cx: &mut Simplifier<'_, '_>,
        at: &[Option<usize>],
    ) -> Result<Option<Option<InstrId>>> {
        let kept: Vec<usize> = (0..at.len()).filter(|&d| at[d].is_none()).collect();
        let along = |d: &usize| self.each.iter().position(|each| each.of_batch == Some(*d));
        let Some(along) = kept.iter().map(along).collect::<Option<Vec<usize>>>() else {
            return Ok(None);
        };
        let mut all: Option<InstrId> = None;
        for (d, each) in self.each.iter().enumerate() {
            let Some(component) = each.component else { continue };
            let index = self.component(cx, component, at)?;
            let index = as_s32(cx, index, self.index, self.dims[d])?;
            let Some(index) = spread(cx, index, &along, &self.dims)? else { return Ok(None) };
            let shape = ArrayShape::new(ElementType::S32, self.dims.as_slice())?;
            let place = cx.add(Iota { shape, dimension: d }, &[])?;
            let is_there = cx.add(Compare::new(Direction::Eq), &[place, index])?;
            all = Some(match all {
                Some(before) => cx.add(BinaryOp::And, &[before, is_there])?,
                None => is_there,
            });
        }
        Ok(Some(all))
    }

    /// The updates of the windows with these numbers at all places of the array.
    fn spread_update(
        &self,
        cx: &mut Simplifier<'_, '_>,
        at: &[Option<usize>],
    ) -> Result<Option<InstrId>> {
        let Some(shape) = cx.draft.array(self.updates) else { return Ok(None) };
        let sizes = shape.dims().to_vec();
        let mut slice = Slice::dense(vec![0; sizes.len()], sizes.clone());
        // For each dimension that is kept, the array's.
        let mut along = vec![None; sizes.len()];
        for (d, each) in self.each.iter().enumerate() {
            if let (Some(from), None) = (each.of_updates, each.component) {
                along[from] = Some(d);
            }
            if let Some(batch) = each.of_batch {
                along[self.scatter_dims[batch]] = Some(d);
            }
        }
        for (&from, &at) in zip(&self.scatter_dims, at) {
            if let Some(at) = at {
                (slice.starts[from], slice.limits[from]) = (at, at + 1);
            }
        }
        let part = cx.add(slice, &[self.updates])?;
        let kept: Vec<usize> =
            zip(&along, &sizes).filter_map(|(along, &size)| along.map(|_| size)).collect();
        let part = cx.reshape(part, &kept)?;
        let along: Vec<usize> = along.into_iter().flatten().collect();
        spread(cx, part, &along, &self.dims)
    }
}

/// An array of these sizes in which the dimensions of a value run along others, `along`; `None` if they are
/// not in their order.
fn spread(
    cx: &mut Simplifier<'_, '_>,
    value: InstrId,
    along: &[usize],
    dims: &[usize],
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(value) else { return Ok(None) };
    if !along.is_sorted() {
        return Ok(None);
    }
    let shape = ArrayShape::new(array.element(), dims)?;
    cx.add(Broadcast { shape, dimensions: along.to_vec() }, &[value]).map(Some)
}

/// Whether an index is from 0 to `last`; `None` if any of its type is.
fn is_within(
    cx: &mut Simplifier<'_, '_>,
    index: InstrId,
    ty: ElementType,
    last: usize,
) -> Result<Option<InstrId>> {
    let (least, greatest) = bits::range(ty);
    let mut all = None;
    if least < 0 {
        let zero = cx.scalar(ty, Number::Int(0))?;
        all = Some(cx.add(Compare::new(Direction::Ge), &[index, zero])?);
    }
    if greatest > last as i128 {
        let last = cx.scalar(ty, Number::Int(last as i128))?;
        let is_low = cx.add(Compare::new(Direction::Le), &[index, last])?;
        all = Some(match all {
            Some(all) => cx.add(BinaryOp::And, &[all, is_low])?,
            None => is_low,
        });
    }
    Ok(all)
}

/// Indices of a dimension as s32, which has all of its places; what is beyond stays beyond.
fn as_s32(
    cx: &mut Simplifier<'_, '_>,
    index: InstrId,
    ty: ElementType,
    size: usize,
) -> Result<InstrId> {
    let Some(shape) = cx.draft.array(index).cloned().filter(|_| ty != ElementType::S32) else {
        return Ok(index);
    };
    let (least, greatest) = bits::range(ty);
    let mut index = index;
    if greatest > i128::from(i32::MAX) {
        let low = cx.splat_of(&shape, Number::Int(least.max(-1)))?;
        let high = cx.splat_of(&shape, Number::Int(size as i128))?;
        index = cx.add(Clamp, &[low, index, high])?;
    }
    cx.add(Convert { element: ElementType::S32 }, &[index])
}

/// Whether a scatter's function from two elements of a type to one is operations on single elements, which
/// mean the same for each element of arrays.
fn is_mapped(cx: &Simplifier<'_, '_>, to_apply: CompId, element: ElementType) -> bool {
    let is_scalar = |instr: &Instr| instr.shape.as_array().is_some_and(ArrayShape::is_scalar);
    let is_known = |op: &Op| matches!(op, Op::Parameter(_) | Op::Constant(_)) || is_elementwise(op);
    let computation = cx.draft.callees().computation(to_apply);
    let is_typed = |id: &InstrId| {
        computation.instr(*id).shape.as_array().is_some_and(|array| array.element() == element)
    };
    let mut all = computation.instrs().iter();
    all.all(|instr| is_scalar(instr) && is_known(&instr.op))
        && computation.params().values().chain([&computation.root()]).all(is_typed)
}

/// What a scatter's function makes of arrays of these sizes.
fn combined(
    cx: &mut Simplifier<'_, '_>,
    to_apply: CompId,
    args: [InstrId; 2],
    dims: &[usize],
) -> Result<InstrId> {
    let ids = cx.draft.callees().computation(to_apply).ids();
    let mut map: Vec<InstrId> = Vec::with_capacity(ids.len());
    for id in ids {
        let Instr { op, operands, shape, .. } =
            cx.draft.callees().computation(to_apply).instr(id).clone();
        map.push(match (&op, &shape) {
            (Op::Parameter(op), _) => args[op.number],
            (Op::Constant(_), Shape::Array(_)) => {
                let scalar = cx.add(op, &[])?;
                cx.broadcast_scalar(scalar, dims)?
            }
            _ => {
                let operands: Vec<_> = operands.iter().map(|id| map[id.index()]).collect();
                cx.add(op, &operands)?
            }
        });
    }
    Ok(map[cx.draft.callees().computation(to_apply).root().index()])
}
