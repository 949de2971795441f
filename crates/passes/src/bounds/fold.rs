//! Operations that fold elements: what they fold of the padding changes nothing.

use std::iter::zip;

use helio_ir::ops::{
    Call, Convolution, Direction, Dot, Parameter, Reduce, ReduceWindow, Select, Tuple,
};
use helio_ir::types::C128;
use helio_ir::{BinaryOp, CompId, ElementType, Instr, InstrId, Number, Result, Shape};

use super::writer::{Sized, Writer};
use crate::draft::Draft;
use crate::recognize::reducer;

/// Padding becomes the identity of the fold, if the fold is one operation that has one; else each element
/// comes with whether it is none.
pub(super) fn reduce(w: &mut Writer<'_, '_>, op: &Reduce, old: &Instr) -> Result<Option<InstrId>> {
    let operands = w.operands(old)?;
    let (arrays, inits) = operands.split_at(operands.len() / 2);
    let Some(first) = arrays.first() else { return Ok(None) };
    let sizes = w.least_sizes(arrays)?;
    let folded = op.dimensions.iter().map(|&d| (d, sizes[d]));
    let folded: Vec<_> = folded.filter(|(_, size)| size.is_some()).collect();
    let rank = first.shape.rank();
    let kept: Vec<Option<InstrId>> =
        (0..rank).filter(|d| !op.dimensions.contains(d)).map(|d| sizes[d]).collect();
    let data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
    let Some(within) = w.within(first.shape.dims(), folded)? else {
        let new = w.draft.add(op.clone(), &data)?;
        return w.results(new, &kept, old).map(Some);
    };
    if let ([x], Some(identity)) = (arrays, w.identity(op.to_apply, first.shape.element())?) {
        let identity = w.filled(identity, &x.shape)?;
        let data = w.draft.add(Select, &[within, x.data, identity])?;
        let new = w.draft.add(op.clone(), &[data, inits[0].data])?;
        return w.results(new, &kept, old).map(Some);
    }
    let (array_shapes, init_shapes): (Vec<_>, Vec<_>) = zip(arrays, inits)
        .map(|(array, init)| (array.shape.element(), init.shape.element()))
        .unzip();
    if array_shapes != init_shapes {
        return Ok(None);
    }
    let to_apply = w.flagged(op.to_apply, &init_shapes)?;
    let is_init = w.scalar(ElementType::Pred, Number::Pred(true))?;
    let count = arrays.len();
    let mut flagged = data[..count].to_vec();
    flagged.push(within);
    flagged.extend(&data[count..]);
    flagged.push(is_init);
    let reduce = Reduce { dimensions: op.dimensions.clone(), to_apply };
    let new = w.draft.add(reduce, &flagged)?;
    let parts = (0..count).map(|i| w.element(new, i)).collect::<Result<Vec<_>>>()?;
    let new = match old.shape {
        Shape::Tuple(_) => w.draft.add(Tuple, &parts)?,
        _ => parts[0],
    };
    w.results(new, &kept, old).map(Some)
}

/// Padding becomes the identity of the fold. `None` if the fold has none that is known.
pub(super) fn reduce_window(
    w: &mut Writer<'_, '_>,
    op: &ReduceWindow,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let operands = w.operands(old)?;
    let [x, init] = &operands[..] else { return Ok(None) };
    let mut sizes = x.sizes.clone();
    for (size, dim) in zip(&mut sizes, &op.window.dims) {
        let Some(found) = *size else { continue };
        let Some(padding) = dim.pad_low.checked_add(dim.pad_high) else { return Ok(None) };
        let window = Extent { size: dim.size, dilation: dim.window_dilation };
        *size = w.positions(found, dim.base_dilation, padding, window, dim.stride)?;
        if size.is_none() {
            return Ok(None);
        }
    }
    let Some(identity) = w.identity(op.to_apply, x.shape.element())? else { return Ok(None) };
    let data = w.masked(x, 0..x.shape.rank(), identity)?;
    let new = w.draft.add(op.clone(), &[data, init.data])?;
    w.result(new, &sizes, old).map(Some)
}

/// Padding of contracting dimensions becomes zero on both sides; what has fewer elements on one side has
/// as few on the other. `None` if a type has no zero.
pub(super) fn dot(w: &mut Writer<'_, '_>, op: &Dot, old: &Instr) -> Result<Option<InstrId>> {
    let (mut lhs, mut rhs) = (w.operand(old, 0)?, w.operand(old, 1)?);
    let dims = &op.dims;
    for (&l, &r) in zip(&dims.lhs_contracting, &dims.rhs_contracting) {
        let size = w.lesser(lhs.sizes[l], rhs.sizes[r])?;
        (lhs.sizes[l], rhs.sizes[r]) = (size, size);
    }
    let mut sizes = Vec::new();
    for (&l, &r) in zip(&dims.lhs_batch, &dims.rhs_batch) {
        sizes.push(w.lesser(lhs.sizes[l], rhs.sizes[r])?);
    }
    sizes.extend(dims.lhs_free(lhs.sizes.len()).into_iter().map(|d| lhs.sizes[d]));
    sizes.extend(dims.rhs_free(rhs.sizes.len()).into_iter().map(|d| rhs.sizes[d]));
    let lhs = w.with_zeros(&lhs, &dims.lhs_contracting)?;
    let rhs = w.with_zeros(&rhs, &dims.rhs_contracting)?;
    let (Some(lhs), Some(rhs)) = (lhs, rhs) else { return Ok(None) };
    let new = w.draft.add(op.clone(), &[lhs, rhs])?;
    w.result(new, &sizes, old).map(Some)
}

/// Padding of the input becomes zero. `None` if the kernel's window, or features that are summed, are
/// bounded, or a type has no zero.
pub(super) fn convolution(
    w: &mut Writer<'_, '_>,
    op: &Convolution,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let (lhs, rhs) = (w.operand(old, 0)?, w.operand(old, 1)?);
    let dims = &op.dims;
    let summed = rhs.sizes[dims.kernel_input_feature].or(lhs.sizes[dims.input_feature]);
    let is_bounded = |d: &usize| rhs.sizes[*d].is_some();
    let batch = lhs.sizes[dims.input_batch];
    let is_grouped = op.feature_group_count > 1 || op.batch_group_count > 1;
    if summed.is_some()
        || dims.kernel_spatial.iter().any(is_bounded)
        || is_grouped && (batch.is_some() || rhs.sizes[dims.kernel_output_feature].is_some())
    {
        return Ok(None);
    }
    let mut sizes = vec![None; lhs.sizes.len()];
    sizes[dims.output_batch] = batch;
    sizes[dims.output_feature] = rhs.sizes[dims.kernel_output_feature];
    for (i, dim) in op.window.dims.iter().enumerate() {
        let Some(found) = lhs.sizes[dims.input_spatial[i]] else { continue };
        let Some(padding) = dim.pad_low.checked_add(dim.pad_high) else { return Ok(None) };
        let kernel = rhs.shape.dims()[dims.kernel_spatial[i]];
        let window = Extent { size: kernel, dilation: dim.window_dilation };
        let size = w.positions(found, dim.base_dilation, padding, window, dim.stride)?;
        if size.is_none() {
            return Ok(None);
        }
        sizes[dims.output_spatial[i]] = size;
    }
    let Some(data) = w.with_zeros(&lhs, &dims.input_spatial)? else { return Ok(None) };
    let new = w.draft.add(op.clone(), &[data, rhs.data])?;
    w.result(new, &sizes, old).map(Some)
}

/// An operation along the last dimensions of its operands, for all others at once. `None` if one of those
/// is bounded.
pub(super) fn of_last_dims(w: &mut Writer<'_, '_>, old: &Instr) -> Result<Option<InstrId>> {
    let operands = w.operands(old)?;
    let last = match &old.op {
        helio_ir::Op::Fft(op) => op.lengths.len(),
        _ => 2,
    };
    let is_bounded = |x: &Sized| x.sizes.iter().rev().take(last).any(Option::is_some);
    if operands.iter().any(is_bounded) {
        return Ok(None);
    }
    let sizes = w.least_sizes(&operands)?;
    let data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
    let new = w.draft.add(old.op.clone(), &data)?;
    w.result(new, &sizes, old).map(Some)
}

/// How far a window reaches.
#[derive(Clone, Copy)]
struct Extent {
    size: usize,
    dilation: usize,
}

impl Writer<'_, '_> {
    /// The array with zeros in the place of its padding along some dimensions; `None` if its type has no
    /// zero.
    fn with_zeros(&mut self, x: &Sized, dims: &[usize]) -> Result<Option<InstrId>> {
        if dims.iter().all(|&d| x.sizes[d].is_none()) {
            return Ok(Some(x.data));
        }
        if x.shape.element() == ElementType::F8E8M0FNU {
            return Ok(None);
        }
        let zero = self.scalar(x.shape.element(), Number::Int(0))?;
        self.masked(x, dims.iter().copied(), zero).map(Some)
    }

    /// At how many positions a window lies within `size` elements and their padding; `None` if that takes
    /// more than `s32`.
    fn positions(
        &mut self,
        size: InstrId,
        base_dilation: usize,
        padding: i64,
        window: Extent,
        stride: usize,
    ) -> Result<Option<InstrId>> {
        let numbers = [base_dilation, window.size, window.dilation, stride];
        let is_small = |&number: &usize| number < 1 << 15;
        if !numbers.iter().all(is_small) || padding.unsigned_abs() >= 1 << 30 {
            return Ok(None);
        }
        let (zero, one) = (self.integer(0)?, self.integer(1)?);
        let mut base = size;
        if base_dilation > 1 {
            let (apart, holes) = (self.number(base_dilation)?, self.number(base_dilation - 1)?);
            base = self.binary(BinaryOp::Multiply, base, apart)?;
            base = self.binary(BinaryOp::Subtract, base, holes)?;
            base = self.binary(BinaryOp::Maximum, base, zero)?;
        }
        let padding = self.integer(padding as i32)?;
        let base = self.binary(BinaryOp::Add, base, padding)?;
        let reach = match window.size {
            0 => 0,
            size => (size - 1) * window.dilation.max(1) + 1,
        };
        let reach = self.number(reach)?;
        let room = self.binary(BinaryOp::Subtract, base, reach)?;
        let stride = self.number(stride.max(1))?;
        let steps = self.binary(BinaryOp::Divide, room, stride)?;
        let count = self.binary(BinaryOp::Add, steps, one)?;
        let fits = self.compare(Direction::Ge, room, zero)?;
        let has_base = self.compare(Direction::Gt, base, zero)?;
        let is_some = self.draft.add(BinaryOp::And, &[fits, has_base])?;
        self.draft.add(Select, &[is_some, count, zero]).map(Some)
    }

    /// What a fold of elements of this type leaves as it is, if that is known.
    fn identity(&mut self, fold: CompId, element: ElementType) -> Result<Option<InstrId>> {
        let Some(op) = reducer(self.draft.callees(), fold, element) else { return Ok(None) };
        let bits = element.bits().min(64);
        let is_signed = element.is_signed_integer();
        let (least, most) = match is_signed {
            true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            false => (0, (1i128 << bits) - 1),
        };
        let has_infinity =
            [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64]
                .contains(&element);
        let has_zero = has_infinity || element.is_complex();
        let number = match op {
            _ if element.is_pred() => match op {
                BinaryOp::Multiply | BinaryOp::And | BinaryOp::Minimum => Number::Pred(true),
                BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Maximum => {
                    Number::Pred(false)
                }
                _ => return Ok(None),
            },
            _ if element.is_integer() => Number::Int(match op {
                BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor => 0,
                BinaryOp::Multiply => 1,
                BinaryOp::And => {
                    if is_signed {
                        -1
                    } else {
                        most
                    }
                }
                BinaryOp::Minimum => most,
                BinaryOp::Maximum => least,
                _ => return Ok(None),
            }),
            // Adding 0 would make 0 of -0.
            BinaryOp::Add if element.is_complex() => Number::Complex(C128::new(-0.0, -0.0)),
            BinaryOp::Add if has_zero => Number::Float(-0.0),
            BinaryOp::Multiply if has_infinity => Number::Float(1.0),
            BinaryOp::Minimum if has_infinity => Number::Float(f64::INFINITY),
            BinaryOp::Maximum if has_infinity => Number::Float(f64::NEG_INFINITY),
            _ => return Ok(None),
        };
        self.scalar(element, number).map(Some)
    }

    /// A fold of values that come with whether they are any: of two that are, what `fold` gives; else the
    /// one that is.
    fn flagged(&mut self, fold: CompId, elements: &[ElementType]) -> Result<CompId> {
        let count = elements.len();
        let name = self.draft.callees().computation(fold).name.clone();
        let computation = {
            let mut draft = Draft::new(self.draft.module(), name);
            let mut params = Vec::with_capacity(2 * (count + 1));
            for number in 0..2 * (count + 1) {
                let element = elements.get(number % (count + 1)).copied();
                let shape = Shape::scalar(element.unwrap_or(ElementType::Pred));
                params.push(draft.add(Parameter { number, shape }, &[])?);
            }
            let (before, next) = params.split_at(count + 1);
            let (values, others) = (&before[..count], &next[..count]);
            let both: Vec<InstrId> = values.iter().chain(others).copied().collect();
            let folded = draft.add(Call::new(fold), &both)?;
            let are_both = draft.add(BinaryOp::And, &[before[count], next[count]])?;
            let mut results = Vec::with_capacity(count + 1);
            for i in 0..count {
                let folded = match draft.shape(folded) {
                    Shape::Tuple(_) => {
                        let element = helio_ir::ops::GetTupleElement { index: i };
                        draft.add(element, &[folded])?
                    }
                    _ => folded,
                };
                let one = draft.add(Select, &[before[count], values[i], others[i]])?;
                results.push(draft.add(Select, &[are_both, folded, one])?);
            }
            results.push(draft.add(BinaryOp::Or, &[before[count], next[count]])?);
            let root = draft.add(Tuple, &results)?;
            draft.finish(root)?
        };
        self.draft.module().push(computation)
    }
}
