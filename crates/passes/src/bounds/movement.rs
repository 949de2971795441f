//! Operations that move elements.

use std::iter::zip;

use helio_ir::ops::{
    Broadcast, Clamp, Concatenate, Convert, Direction, DynamicSlice, DynamicUpdateSlice, Iota, Pad,
    PadDim, Reverse, Select, SetDimensionSize, Slice, Transpose,
};
use helio_ir::{ArrayShape, BinaryOp, DimKind, ElementType, Instr, InstrId, Number, Result};

use super::static_shape;
use super::writer::Writer;

/// The same elements with another size, which must be within the bound.
pub(super) fn set_dimension_size(
    w: &mut Writer<'_, '_>,
    op: &SetDimensionSize,
    old: &Instr,
) -> Result<InstrId> {
    let (x, d) = (w.operand(old, 0)?, op.dimension);
    let size = w.map[old.operands[1].index()];
    let mut sizes = x.sizes.clone();
    let is_known = x.sizes[d] == Some(size) || w.is_number_within(size, x.shape.dims()[d]);
    let kind = old.shape.as_array().map(|array| array.kinds()[d]);
    if is_known && kind == Some(DimKind::Bounded) {
        sizes[d] = Some(size);
        return w.result(x.data, &sizes, old);
    }
    let bound = w.number(x.shape.dims()[d])?;
    let least = if kind == Some(DimKind::Bounded) { w.integer(0)? } else { bound };
    let clamped = w.draft.add(Clamp, &[least, size, bound])?;
    let is_within = w.compare(Direction::Eq, clamped, size)?;
    let message = format!("size {{0}} for dimension {d} of {}", old.shape.without_layout());
    sizes[d] = Some(w.assert(is_within, size, &[size], message)?);
    w.result(x.data, &sizes, old)
}

pub(super) fn iota(w: &mut Writer<'_, '_>, op: &Iota, old: &Instr) -> Result<InstrId> {
    let shape = static_shape(&op.shape)?;
    let data = w.draft.add(Iota { shape, dimension: op.dimension }, &[])?;
    w.result(data, &[], old)
}

pub(super) fn broadcast(w: &mut Writer<'_, '_>, op: &Broadcast, old: &Instr) -> Result<InstrId> {
    let (x, shape) = (w.operand(old, 0)?, static_shape(&op.shape)?);
    let mut sizes = vec![None; shape.rank()];
    for (&target, &size) in zip(&op.dimensions, &x.sizes) {
        sizes[target] = size;
    }
    let broadcast = Broadcast { shape, dimensions: op.dimensions.clone() };
    let data = w.draft.add(broadcast, &[x.data])?;
    w.result(data, &sizes, old)
}

pub(super) fn transpose(w: &mut Writer<'_, '_>, op: &Transpose, old: &Instr) -> Result<InstrId> {
    let x = w.operand(old, 0)?;
    let sizes: Vec<_> = op.permutation.iter().map(|&d| x.sizes[d]).collect();
    let data = w.draft.add(op.clone(), &[x.data])?;
    w.result(data, &sizes, old)
}

/// Reversed at the bounds, an array begins with its padding: it is moved by as much.
pub(super) fn reverse(w: &mut Writer<'_, '_>, op: &Reverse, old: &Instr) -> Result<InstrId> {
    let x = w.operand(old, 0)?;
    let data = w.draft.add(op.clone(), &[x.data])?;
    let mut starts = Vec::with_capacity(x.sizes.len());
    let mut room = vec![PadDim::default(); x.sizes.len()];
    for (d, &size) in x.sizes.iter().enumerate() {
        let bound = x.shape.dims()[d];
        starts.push(match size.filter(|_| op.dimensions.contains(&d)) {
            Some(size) => {
                room[d].high = bound as i64;
                let bound = w.number(bound)?;
                w.binary(BinaryOp::Subtract, bound, size)?
            }
            None => w.integer(0)?,
        });
    }
    if room.iter().all(|dim| dim.high == 0) {
        return w.result(data, &x.sizes, old);
    }
    let zero = w.scalar(x.shape.element(), Number::Int(0))?;
    let padded = w.draft.add(Pad { dims: room }, &[data, zero])?;
    let slice = DynamicSlice { sizes: x.shape.dims().to_vec() };
    let operands: Vec<InstrId> = [padded].into_iter().chain(starts).collect();
    let data = w.draft.add(slice, &operands)?;
    w.result(data, &x.sizes, old)
}

/// Each operand is written behind the elements of those before it, over their padding.
pub(super) fn concatenate(
    w: &mut Writer<'_, '_>,
    op: &Concatenate,
    old: &Instr,
) -> Result<InstrId> {
    let (operands, along) = (w.operands(old)?, op.dimension);
    let Some((first, others)) = operands.split_first() else {
        return w.draft.add(*op, &[]);
    };
    let mut sizes = first.sizes.clone();
    for x in others {
        for (d, (size, &other)) in zip(&mut sizes, &x.sizes).enumerate() {
            if d != along {
                *size = w.lesser(*size, other)?;
            }
        }
    }
    let mut end = w.size(first, along)?;
    for x in others {
        let size = w.size(x, along)?;
        end = w.binary(BinaryOp::Add, end, size)?;
    }
    let last = operands.len() - 1;
    let has_room = operands[..last].iter().any(|x| x.sizes[along].is_some());
    let data = if has_room {
        let behind: usize = others.iter().map(|x| x.shape.dims()[along]).sum();
        let mut dims = vec![PadDim::default(); sizes.len()];
        dims[along].high = behind as i64;
        let zero = w.scalar(first.shape.element(), Number::Int(0))?;
        let mut data = w.draft.add(Pad { dims }, &[first.data, zero])?;
        let mut end = w.size(first, along)?;
        for x in others {
            let mut starts = vec![w.integer(0)?; sizes.len()];
            starts[along] = end;
            let written: Vec<InstrId> = [data, x.data].into_iter().chain(starts).collect();
            data = w.draft.add(DynamicUpdateSlice, &written)?;
            let size = w.size(x, along)?;
            end = w.binary(BinaryOp::Add, end, size)?;
        }
        data
    } else {
        let data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
        w.draft.add(*op, &data)?
    };
    sizes[along] = Some(end);
    w.result(data, &sizes, old)
}

pub(super) fn slice(w: &mut Writer<'_, '_>, op: &Slice, old: &Instr) -> Result<InstrId> {
    let x = w.operand(old, 0)?;
    let mut sizes = x.sizes.clone();
    for (d, size) in sizes.iter_mut().enumerate() {
        let (start, limit, stride) = (op.starts[d], op.limits[d], op.strides[d].max(1));
        let Some(found) = *size else { continue };
        let mut count = found;
        if limit < x.shape.dims()[d] {
            let limit = w.number(limit)?;
            count = w.binary(BinaryOp::Minimum, count, limit)?;
        }
        if start > 0 {
            let (start, zero) = (w.number(start)?, w.integer(0)?);
            count = w.binary(BinaryOp::Subtract, count, start)?;
            count = w.binary(BinaryOp::Maximum, count, zero)?;
        }
        if stride > 1 {
            // Of the elements 0, stride, 2 stride... those below the count; a stride may be larger than
            // any array.
            let (stride, one, zero) = (w.number(stride)?, w.integer(1)?, w.integer(0)?);
            let before = w.binary(BinaryOp::Subtract, count, one)?;
            let steps = w.binary(BinaryOp::Divide, before, stride)?;
            let steps = w.binary(BinaryOp::Add, steps, one)?;
            let is_empty = w.compare(Direction::Eq, count, zero)?;
            count = w.draft.add(Select, &[is_empty, zero, steps])?;
        }
        *size = Some(count);
    }
    let data = w.draft.add(op.clone(), &[x.data])?;
    w.result(data, &sizes, old)
}

/// Padding of the operand becomes the value that is added: what follows the elements is that value, too.
pub(super) fn pad(w: &mut Writer<'_, '_>, op: &Pad, old: &Instr) -> Result<Option<InstrId>> {
    let (x, value) = (w.operand(old, 0)?, w.operand(old, 1)?);
    let Some(result) = old.shape.as_array() else { return Ok(None) };
    let mut sizes = x.sizes.clone();
    for (d, size) in sizes.iter_mut().enumerate() {
        let Some(found) = *size else { continue };
        let PadDim { low, high, interior } = op.dims[d];
        // (size - 1) * (interior + 1) + 1 elements, or none, and those at the ends.
        let bound = x.shape.dims()[d] as i128;
        let spread = bound * (interior as i128 + 1);
        let most = spread + i128::from(low).abs() + i128::from(high).abs();
        let (Ok(_), Ok(ends)) =
            (i32::try_from(most), i32::try_from(i128::from(low) + i128::from(high)))
        else {
            return Ok(None);
        };
        let zero = w.integer(0)?;
        let mut count = found;
        if interior > 0 {
            let (apart, holes) = (w.number(interior + 1)?, w.number(interior)?);
            count = w.binary(BinaryOp::Multiply, count, apart)?;
            count = w.binary(BinaryOp::Subtract, count, holes)?;
            count = w.binary(BinaryOp::Maximum, count, zero)?;
        }
        if ends != 0 {
            let ends = w.integer(ends)?;
            count = w.binary(BinaryOp::Add, count, ends)?;
            let bound = w.number(result.dims()[d])?;
            count = w.draft.add(Clamp, &[zero, count, bound])?;
        }
        *size = Some(count);
    }
    let data = w.masked(&x, 0..x.shape.rank(), value.data)?;
    let data = w.draft.add(op.clone(), &[data, value.data])?;
    w.result(data, &sizes, old).map(Some)
}

/// A box of the array at its bounds: as much of it is there as lies below the sizes.
pub(super) fn dynamic_slice(
    w: &mut Writer<'_, '_>,
    op: &DynamicSlice,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let x = w.operand(old, 0)?;
    let indices: Vec<InstrId> = old.operands[1..].iter().map(|id| w.map[id.index()]).collect();
    let mut sizes = vec![None; op.sizes.len()];
    for (d, size) in sizes.iter_mut().enumerate() {
        let Some(found) = x.sizes[d] else { continue };
        let Some(start) = w.clamped_start(&indices, d, x.shape.dims()[d], op.sizes[d])? else {
            return Ok(None);
        };
        let (zero, most) = (w.integer(0)?, w.number(op.sizes[d])?);
        let left = w.binary(BinaryOp::Subtract, found, start)?;
        *size = Some(w.draft.add(Clamp, &[zero, left, most])?);
    }
    let operands: Vec<InstrId> = [x.data].into_iter().chain(indices).collect();
    let data = w.draft.add(op.clone(), &operands)?;
    w.result(data, &sizes, old).map(Some)
}

/// What is written over the padding of the update is what was there.
pub(super) fn dynamic_update_slice(
    w: &mut Writer<'_, '_>,
    op: &DynamicUpdateSlice,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let (x, update) = (w.operand(old, 0)?, w.operand(old, 1)?);
    let indices: Vec<InstrId> = old.operands[2..].iter().map(|id| w.map[id.index()]).collect();
    let with =
        |first: &[InstrId]| -> Vec<InstrId> { first.iter().chain(&indices).copied().collect() };
    let update = match w.within(update.shape.dims(), update.sizes.iter().copied().enumerate())? {
        Some(within) => {
            let slice = DynamicSlice { sizes: update.shape.dims().to_vec() };
            let there = w.draft.add(slice, &with(&[x.data]))?;
            w.draft.add(Select, &[within, update.data, there])?
        }
        None => update.data,
    };
    let data = w.draft.add(*op, &with(&[x.data, update]))?;
    w.result(data, &x.sizes, old).map(Some)
}

impl Writer<'_, '_> {
    /// Whether a size is a constant within a bound.
    fn is_number_within(&self, size: InstrId, bound: usize) -> bool {
        let helio_ir::Op::Constant(op) = self.draft.op(size) else { return false };
        let number =
            op.literal.as_array().and_then(|array| array.as_slice::<i32>()?.first().copied());
        number.is_some_and(|number| usize::try_from(number).is_ok_and(|number| number <= bound))
    }

    /// Where a box of `size` elements begins along dimension `d` of `bound`, as `s32[]`, moved inside where
    /// it would reach out; `None` if its starts are a vector.
    fn clamped_start(
        &mut self,
        indices: &[InstrId],
        d: usize,
        bound: usize,
        size: usize,
    ) -> Result<Option<InstrId>> {
        let last = bound.saturating_sub(size);
        if last == 0 {
            return self.integer(0).map(Some);
        }
        let Some(&start) = indices.get(d) else { return Ok(None) };
        let Some(element) =
            self.draft.array(start).filter(|a| a.is_scalar()).map(ArrayShape::element)
        else {
            return Ok(None);
        };
        // A type too narrow for the last place needs no clamping from above.
        let bits = element.bits() - usize::from(element.is_signed_integer());
        let last = if bits < 63 { last.min((1 << bits) - 1) } else { last };
        let zero = self.scalar(element, Number::Int(0))?;
        let last = self.scalar(element, Number::Int(last as i128))?;
        let start = self.draft.add(Clamp, &[zero, start, last])?;
        if element == ElementType::S32 {
            return Ok(Some(start));
        }
        self.draft.add(Convert { element: ElementType::S32 }, &[start]).map(Some)
    }
}
