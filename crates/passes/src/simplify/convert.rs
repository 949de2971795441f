//! Rules for changes of element type, and for `reduce-precision`.

use helio_ir::ops::{BitcastConvert, Convert, Iota, ReducePrecision};
use helio_ir::{ArrayShape, BinaryOp, ElementType, InstrId, Op, Result};

use super::arithmetic::is_ieee;
use super::{Simplifier, bits};

pub(super) fn convert(
    cx: &mut Simplifier<'_, '_>,
    x: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(x) else { return Ok(None) };
    let (from, to) = (array.element(), result.element());
    if from == to {
        return Ok(Some(x));
    }
    match cx.draft.op(x) {
        // convert(convert(x)) → convert(x), when the first loses nothing.
        Op::Convert(_) => {
            let source = cx.draft.operands(x)[0];
            let Some(first) = cx.draft.array(source).map(ArrayShape::element) else {
                return Ok(None);
            };
            // (What is out of range becomes the nearest integer if it comes from a float, but is cut
            // off if it comes from an integer.)
            let same_range = !from.is_float() || !to.is_integer() || first.is_float();
            if !is_lossless(first, from) || !(same_range || is_lossless(first, to)) {
                return Ok(None);
            }
            cx.add(Convert { element: to }, &[source]).map(Some)
        }
        // Of an integer, the low bits of a sum or product need no more than those of the operands. (Of an
        // array, the high bits may be wanted as well, and both are had at once.)
        &Op::Binary(op) if keeps_low_bits(op) && is_narrower(to, from) && result.is_scalar() => {
            let [a, b] = [cx.draft.operands(x)[0], cx.draft.operands(x)[1]];
            if !(cx.is_narrow(a, to) && cx.is_narrow(b, to)) {
                return Ok(None);
            }
            let a = cx.add(Convert { element: to }, &[a])?;
            let b = cx.add(Convert { element: to }, &[b])?;
            cx.add(op, &[a, b]).map(Some)
        }
        // An iota can count in the other type, when both count so far.
        Op::Iota(iota) => {
            let dimension = iota.dimension;
            if !(from.is_integer() && to.is_integer()) {
                return Ok(None);
            }
            if bits::greatest(cx, x).is_none_or(|last| last > bits::range(to).1) {
                return Ok(None);
            }
            cx.add(Iota { shape: result.clone().without_layout(), dimension }, &[]).map(Some)
        }
        _ => Ok(None),
    }
}

impl Simplifier<'_, '_> {
    /// Whether integers are constants, or come from a type that has no more bits than this one.
    fn is_narrow(&self, id: InstrId, to: ElementType) -> bool {
        if let Op::Convert(_) = self.draft.op(id) {
            let source = self.draft.array(self.draft.operands(id)[0]).map(ArrayShape::element);
            return source.is_some_and(|source| source.is_integer() && source.bits() <= to.bits());
        }
        self.splat(id).is_some()
    }
}

/// Whether the low bits of a result follow from those of the operands.
fn keeps_low_bits(op: BinaryOp) -> bool {
    use BinaryOp::{Add, And, Multiply, Or, Subtract, Xor};
    matches!(op, Add | And | Multiply | Or | Subtract | Xor)
}

/// Whether both are integers, and the first has fewer bits.
fn is_narrower(to: ElementType, from: ElementType) -> bool {
    to.is_integer() && from.is_integer() && to.bits() < from.bits()
}

/// Whether every value of one type is one of the other.
fn is_lossless(from: ElementType, to: ElementType) -> bool {
    if from.is_pred() {
        return is_ieee(to) || to.is_integer() && bits::range(to).1 > 0;
    }
    if from.is_integer() && to.is_integer() {
        let ((low, high), (least, greatest)) = (bits::range(from), bits::range(to));
        return least <= low && high <= greatest;
    }
    let Some(wide) = to.float_format().filter(|_| is_ieee(to)) else { return false };
    if from.is_integer() {
        // Integers up to 2^(mantissa + 1) are exact; so large are exponents of all these types.
        let magnitude_bits = from.bits() as u32 - u32::from(from.is_signed_integer());
        return magnitude_bits <= wide.mantissa_bits + 1 && magnitude_bits < 16;
    }
    let Some(narrow) = from.float_format().filter(|_| is_ieee(from)) else { return false };
    narrow.exponent_bits <= wide.exponent_bits && narrow.mantissa_bits <= wide.mantissa_bits
}

pub(super) fn bitcast_convert(
    cx: &mut Simplifier<'_, '_>,
    x: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let Some(array) = cx.draft.array(x) else { return Ok(None) };
    if array.same(result) {
        return Ok(Some(x));
    }
    // bitcast-convert(bitcast-convert(x)) → bitcast-convert(x), between types of one width. (`pred`
    // has fewer values than bits.)
    let Op::BitcastConvert(_) = cx.draft.op(x) else { return Ok(None) };
    let source = cx.draft.operands(x)[0];
    let Some(first) = cx.draft.array(source) else { return Ok(None) };
    let types = [first.element(), array.element(), result.element()];
    let fits = types.iter().all(|ty| ty.bits() == types[0].bits() && !ty.is_pred());
    if !fits {
        return Ok(None);
    }
    cx.add(BitcastConvert { element: result.element() }, &[source]).map(Some)
}

/// To at least as many bits as the type has, nothing is rounded.
pub(super) fn reduce_precision(
    cx: &mut Simplifier<'_, '_>,
    op: ReducePrecision,
    x: InstrId,
) -> Result<Option<InstrId>> {
    let format = cx.draft.array(x).map(ArrayShape::element).filter(|&ty| is_ieee(ty));
    let Some(format) = format.and_then(ElementType::float_format) else { return Ok(None) };
    let keeps_all =
        op.exponent_bits >= format.exponent_bits && op.mantissa_bits >= format.mantissa_bits;
    Ok(keeps_all.then_some(x))
}
