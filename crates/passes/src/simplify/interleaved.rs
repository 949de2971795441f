//! Sums of two arrays that are padded between their elements, so that each has zeros where the other has elements.

use helio_ir::ops::{Concatenate, Pad, PadDim, Slice};
use helio_ir::{ArrayShape, BinaryOp, InstrId, Number, Op, Result};

use super::Simplifier;
use super::value::is_positive_zero;

/// The fewest elements that lie side by side in either array: rows of them are copied. Of fewer, vectors are put together, which
/// takes longer than to add zeros, unless an array is a few vectors altogether.
const MIN_INNER: usize = 64;
const SHORT_BYTES: usize = 256;

/// pad(x, 0, interior) + pad(y, 0, interior), one element further → the elements in turn: a concatenation along a
/// dimension of two. (A sum with zero is left of floats, for which -0 becomes +0.)
pub(super) fn sum(
    cx: &mut Simplifier<'_, '_>,
    a: InstrId,
    b: InstrId,
    result: &ArrayShape,
) -> Result<Option<InstrId>> {
    let (Some(of_a), Some(of_b)) = (padded(cx, a), padded(cx, b)) else { return Ok(None) };
    let (even, odd) = match (of_a.dim.low, of_b.dim.low) {
        (0, 1) => (of_a, of_b),
        (1, 0) => (of_b, of_a),
        _ => return Ok(None),
    };
    let d = even.d;
    let (total, of_even, of_odd) = (result.dims()[d], even.size, odd.size);
    let is_in_turn = of_even == of_odd || of_even == of_odd + 1;
    if d != odd.d || of_even + of_odd != total || !is_in_turn {
        return Ok(None);
    }
    let inner: usize = result.dims()[d + 1..].iter().product();
    if inner < MIN_INNER && result.size_bytes() > SHORT_BYTES {
        return Ok(None);
    }
    let single = |of: usize| {
        let mut dims = result.dims().to_vec();
        dims[d] = of;
        dims.insert(d + 1, 1);
        dims
    };
    let mut second = odd.operand;
    if of_odd < of_even {
        let mut dims = vec![PadDim::edges(0, 0); result.rank()];
        dims[d] = PadDim::edges(0, 1);
        second = cx.add(Pad { dims }, &[second, odd.fill])?;
    }
    let pieces =
        [cx.reshape(even.operand, &single(of_even))?, cx.reshape(second, &single(of_even))?];
    let mut all = cx.add(Concatenate { dimension: d + 1 }, &pieces)?;
    let mut dims = result.dims().to_vec();
    dims[d] = 2 * of_even;
    all = cx.reshape(all, &dims)?;
    if 2 * of_even > total {
        all = cx.add(Slice::dense(vec![0; dims.len()], result.dims().to_vec()), &[all])?;
    }
    if result.element().is_integer() {
        return Ok(Some(all));
    }
    let zero = cx.splat_of(result, Number::Float(0.0))?;
    cx.add(BinaryOp::Add, &[all, zero]).map(Some)
}

/// What has zeros between its elements along a dimension.
#[derive(Clone, Copy)]
struct Padded {
    operand: InstrId,
    fill: InstrId,
    d: usize,
    dim: PadDim,
    size: usize,
}

fn padded(cx: &Simplifier<'_, '_>, id: InstrId) -> Option<Padded> {
    let (Op::Pad(op), &[operand, fill]) = (cx.draft.op(id), cx.draft.operands(id)) else {
        return None;
    };
    let mut changed = (0..op.dims.len()).filter(|&d| op.dims[d] != PadDim::edges(0, 0));
    let (d, None) = (changed.next()?, changed.next()) else { return None };
    let size = cx.draft.array(operand)?.dims()[d];
    let is_zero = cx.splat(fill).is_some_and(is_positive_zero);
    (op.dims[d].interior == 1 && is_zero && size > 0).then_some(Padded {
        operand,
        fill,
        d,
        dim: op.dims[d],
        size,
    })
}
