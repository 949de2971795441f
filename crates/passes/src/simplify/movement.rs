//! Where elements come from: the rules by operation.

use helio_ir::{InstrId, Op, Result, Shape};

use super::{
    Simplifier, broadcast, convolution, dot, indexed, reduce, reshape, scatter, sink, slice,
    transpose,
};

pub(super) fn simpler(
    cx: &mut Simplifier<'_, '_>,
    op: &Op,
    operands: &[InstrId],
    shape: &Shape,
) -> Result<Option<InstrId>> {
    let Some(result) = shape.as_array() else {
        return match op {
            Op::Reduce(op) => reduce::simpler(cx, op, operands, shape),
            _ => Ok(None),
        };
    };
    match op {
        // Layouts mean nothing any more.
        Op::Copy(_) => Ok(Some(operands[0])),
        Op::Reshape(_) => reshape::simpler(cx, operands[0], result),
        Op::Broadcast(op) => broadcast::simpler(cx, op, operands[0], result),
        Op::Transpose(op) => transpose::simpler(cx, op, operands[0], result),
        Op::Slice(op) => slice::slice(cx, op, operands[0], result),
        Op::Concatenate(op) => slice::concatenate(cx, op, operands, result),
        Op::Pad(op) => slice::pad(cx, op, operands, result),
        Op::Reverse(op) => slice::reverse(cx, op, operands[0], result),
        Op::DynamicSlice(op) => slice::dynamic_slice(cx, op, operands, result),
        Op::DynamicUpdateSlice(_) => slice::dynamic_update_slice(cx, operands),
        Op::Iota(op) if result.dims()[op.dimension] == 1 => {
            cx.splat_of(result, helio_ir::Number::Int(0)).map(Some)
        }
        Op::Reduce(op) => reduce::simpler(cx, op, operands, shape),
        Op::ReduceWindow(op) => reduce::window(cx, op, operands),
        Op::Gather(op) => indexed::gather(cx, op, operands, shape),
        Op::Scatter(op) => match scatter::simpler(cx, op, operands)? {
            Some(id) => Ok(Some(id)),
            None => indexed::scatter(cx, op, operands),
        },
        Op::Dot(op) => dot::simpler(cx, op, operands),
        Op::Convolution(op) => convolution::simpler(cx, op, operands, result),
        _ => sink::simpler(cx, op, operands, result),
    }
}

/// For each dimension that is not 1, its place; sizes without them.
pub(super) fn without_units(dims: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let kept = dims.iter().enumerate().filter(|&(_, &dim)| dim != 1);
    kept.map(|(d, &dim)| (d, dim)).unzip()
}

/// Whether two lists of sizes are the same but for ones.
pub(super) fn differ_in_units(a: &[usize], b: &[usize]) -> bool {
    let not_one = |dim: &&usize| **dim != 1;
    a.iter().filter(not_one).eq(b.iter().filter(not_one))
}

/// For each dimension of `from` that is not 1, the dimension of `to` that it becomes when ones come
/// and go.
pub(super) fn follow_units(from: &[usize], to: &[usize]) -> Option<Vec<Option<usize>>> {
    if !differ_in_units(from, to) {
        return None;
    }
    let (places, _) = without_units(to);
    let mut places = places.into_iter();
    Some(from.iter().map(|&dim| if dim == 1 { None } else { places.next() }).collect())
}
