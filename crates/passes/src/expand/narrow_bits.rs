//! Changes between elements of 2 or 4 bits and wider ones, as shifts of integers: an element of these
//! types has a byte of its own in memory, so that other bits are no view of the same bytes.

use helio_ir::ops::{BitcastConvert, Broadcast, Constant, Convert, Iota, Reduce};
use helio_ir::{
    Array, ArrayShape, BinaryOp, Computation, ElementType, Instr, InstrId, Native, Number, Op,
    Result, dispatch_type,
};

use crate::draft::{Draft, addition};

/// Whether an instruction is such a change.
pub(super) fn is_change(computation: &Computation, instr: &Instr) -> bool {
    let Op::BitcastConvert(op) = &instr.op else { return false };
    let mut operands = instr.operands.iter().map(|&id| &computation.instr(id).shape);
    operands.any(|shape| shape.as_array().is_some_and(|array| changes(array, op.element)))
}

fn changes(from: &ArrayShape, to: ElementType) -> bool {
    let (from_bits, to_bits) = (from.element().bits(), to.bits());
    from_bits != to_bits && from_bits.min(to_bits) < 8 && from.is_static()
}

/// The bits cut out of integers of the wider type, or moved to their places in such and added.
pub(super) fn bitcast(
    draft: &mut Draft<'_>,
    op: &BitcastConvert,
    operands: &[InstrId],
) -> Result<Option<InstrId>> {
    let &[operand] = operands else { return Ok(None) };
    let Some(from) = draft.array(operand).filter(|array| changes(array, op.element)).cloned()
    else {
        return Ok(None);
    };
    let Some((old, new)) = unsigned(from.element()).zip(unsigned(op.element)) else {
        return Ok(None);
    };
    let bits = reinterpreted(draft, operand, old)?;
    let result = if old.bits() > new.bits() {
        let mut dims = from.dims().to_vec();
        dims.push(old.bits() / new.bits());
        let shape = ArrayShape::new(old, dims)?;
        let dimensions = (0..from.rank()).collect();
        let repeated = draft.add(Broadcast { shape: shape.clone(), dimensions }, &[bits])?;
        let places = places(draft, shape, new.bits())?;
        let shifted = draft.add(BinaryOp::ShiftRightLogical, &[repeated, places])?;
        draft.add(Convert { element: new }, &[shifted])?
    } else {
        let widened = draft.add(Convert { element: new }, &[bits])?;
        let places = places(draft, ArrayShape::new(new, from.dims())?, old.bits())?;
        let shifted = draft.add(BinaryOp::ShiftLeft, &[widened, places])?;
        let to_apply = addition(new)?;
        let to_apply = draft.module().push(to_apply)?;
        let zero = scalar(draft, new, 0)?;
        draft.add(Reduce { dimensions: vec![from.rank() - 1], to_apply }, &[shifted, zero])?
    };
    reinterpreted(draft, result, op.element).map(Some)
}

/// For each element along the last dimension, the place of the first of its bits.
fn places(draft: &mut Draft<'_>, shape: ArrayShape, bits: usize) -> Result<InstrId> {
    let dimension = shape.rank() - 1;
    let bits = scalar(draft, shape.element(), bits)?;
    let bits = draft.add(Broadcast { shape: shape.clone(), dimensions: Vec::new() }, &[bits])?;
    let counted = draft.add(Iota { shape, dimension }, &[])?;
    draft.add(BinaryOp::Multiply, &[counted, bits])
}

fn scalar(draft: &mut Draft<'_>, element: ElementType, value: usize) -> Result<InstrId> {
    let value = dispatch_type!(element, T => {
        Array::scalar(T::from_number(Number::Int(value as i128)))
    });
    draft.add(Constant::new(value), &[])
}

/// The same bits as another type of the same width.
fn reinterpreted(draft: &mut Draft<'_>, id: InstrId, element: ElementType) -> Result<InstrId> {
    match draft.array(id) {
        Some(array) if array.element() == element => Ok(id),
        _ => draft.add(BitcastConvert { element }, &[id]),
    }
}

/// The unsigned integers of the width of a type.
fn unsigned(ty: ElementType) -> Option<ElementType> {
    let all = [
        ElementType::U2,
        ElementType::U4,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
    ];
    all.into_iter().find(|of| of.bits() == ty.bits())
}

#[cfg(test)]
mod tests {
    use crate::testing::check;

    #[test]
    fn bits_of_bytes_and_back() {
        check(
            "expand",
            "ENTRY e {
              x = s8[3] parameter(0)
              ROOT r = s4[3,2] bitcast-convert(x)
            }",
            "
            ENTRY e {
              x = s8[3] parameter(0)
              bitcast-convert = u8[3] bitcast-convert(x)
              broadcast = u8[3,2] broadcast(bitcast-convert), dimensions={0}
              constant = u8[] constant(4)
              broadcast.1 = u8[3,2] broadcast(constant), dimensions={}
              iota = u8[3,2] iota(), iota_dimension=1
              multiply = u8[3,2] multiply(iota, broadcast.1)
              shift-right-logical = u8[3,2] shift-right-logical(broadcast, multiply)
              convert = u4[3,2] convert(shift-right-logical)
              ROOT bitcast-convert.1 = s4[3,2] bitcast-convert(convert)
            }",
        );
        check(
            "expand",
            "ENTRY e {
              x = u4[3,8] parameter(0)
              ROOT r = f32[3] bitcast-convert(x)
            }",
            "
            sum {
              a = u32[] parameter(0)
              b = u32[] parameter(1)
              ROOT c = u32[] add(a, b)
            }

            ENTRY e {
              x = u4[3,8] parameter(0)
              convert = u32[3,8] convert(x)
              constant = u32[] constant(4)
              broadcast = u32[3,8] broadcast(constant), dimensions={}
              iota = u32[3,8] iota(), iota_dimension=1
              multiply = u32[3,8] multiply(iota, broadcast)
              shift-left = u32[3,8] shift-left(convert, multiply)
              constant.1 = u32[] constant(0)
              reduce = u32[3] reduce(shift-left, constant.1), dimensions={1}, to_apply=sum
              ROOT bitcast-convert = f32[3] bitcast-convert(reduce)
            }",
        );
    }
}
