//! Operations that only move elements, for what no fusion has taken in.

use helio_ir::{ArrayShape, ElementType, ops};
use helio_runtime::Threads;
use helio_runtime::kernels::copy::{Axis, Copy, Rows, dense_steps};

use super::{Bound, InstrShapes};

/// A box to move, and where it begins on either side, in bytes.
struct Move {
    copy: Copy,
    from: usize,
    to: usize,
}

impl Move {
    /// `None` if there is no copy for elements of this size.
    fn new(axes: &[Axis], element_size: usize, from: isize, to: isize) -> Option<Self> {
        let bytes = |elements: isize| usize::try_from(elements).ok()?.checked_mul(element_size);
        // The beginning of an empty box may lie anywhere.
        let is_empty = axes.iter().any(|axis| axis.size == 0);
        let start = |elements| if is_empty { Some(0) } else { bytes(elements) };
        Some(Move { copy: Copy::new(axes, element_size)?, from: start(from)?, to: start(to)? })
    }

    fn run(&self, from: &[u8], to: &mut [u8], threads: Threads<'_>) {
        self.copy.run((from, self.from), (to, self.to), threads);
    }
}

/// The one move that an operation is.
fn single(name: &'static str, single: Option<Move>) -> Option<Bound> {
    let single = single?;
    Some(Bound::new(name, move |inputs, outputs, threads| {
        single.run(inputs[0], outputs[0], threads);
    }))
}

fn element_size(shape: &ArrayShape) -> usize {
    shape.element().size_bytes()
}

pub(super) fn transpose(site: &InstrShapes<'_>, op: &ops::Transpose) -> Option<Bound> {
    let [operand] = site.operands[..] else { return None };
    let copy = Copy::transpose(operand.dims(), &op.permutation, element_size(operand))?;
    single("transpose", Some(Move { copy, from: 0, to: 0 }))
}

pub(super) fn broadcast(site: &InstrShapes<'_>, op: &ops::Broadcast) -> Option<Bound> {
    let ([operand], [result]) = (&site.operands[..], &site.results[..]) else { return None };
    let steps = dense_steps(operand.dims());
    let to = dense_steps(result.dims());
    let axes = result.dims().iter().zip(to).enumerate().map(|(d, (&size, to))| {
        let from = op.dimensions.iter().position(|&dim| dim == d);
        let from = from.filter(|&o| operand.dims()[o] == size).map_or(0, |o| steps[o]);
        Axis { size, from, to }
    });
    let axes: Vec<Axis> = axes.collect();
    single("broadcast", Move::new(&axes, element_size(operand), 0, 0))
}

pub(super) fn reverse(site: &InstrShapes<'_>, op: &ops::Reverse) -> Option<Bound> {
    let [operand] = site.operands[..] else { return None };
    let mut first = 0;
    let steps = dense_steps(operand.dims()).into_iter().zip(operand.dims()).enumerate();
    let axes: Vec<Axis> = steps
        .map(|(d, (step, &size))| {
            let reversed = op.dimensions.contains(&d);
            first += if reversed { step * (size as isize - 1) } else { 0 };
            Axis { size, from: if reversed { -step } else { step }, to: step }
        })
        .collect();
    single("reverse", Move::new(&axes, element_size(operand), first, 0))
}

pub(super) fn slice(site: &InstrShapes<'_>, op: &ops::Slice) -> Option<Bound> {
    let ([operand], [result]) = (&site.operands[..], &site.results[..]) else { return None };
    let mut first = 0;
    let steps = dense_steps(operand.dims()).into_iter().zip(dense_steps(result.dims()));
    let axes: Vec<Axis> = steps
        .enumerate()
        .map(|(d, (from, to))| {
            first += from * op.starts[d] as isize;
            // The stride of a dimension with one element may be anything.
            let stride = if result.dims()[d] > 1 { op.strides[d] } else { 1 };
            Axis { size: result.dims()[d], from: from * stride as isize, to }
        })
        .collect();
    single("slice", Move::new(&axes, element_size(operand), first, 0))
}

pub(super) fn concatenate(site: &InstrShapes<'_>, op: &ops::Concatenate) -> Option<Bound> {
    let result = *site.results.first()?;
    if let Some(rows) = short_rows(site, op, result) {
        return Some(Bound::new("concatenate", move |inputs, outputs, threads| {
            rows.run(inputs, outputs[0], threads);
        }));
    }
    let to = dense_steps(result.dims());
    let mut first = 0;
    let mut moves = Vec::with_capacity(site.operands.len());
    for operand in &site.operands {
        let steps = dense_steps(operand.dims()).into_iter().zip(&to).zip(operand.dims());
        let axes: Vec<Axis> = steps.map(|((from, &to), &size)| Axis { size, from, to }).collect();
        moves.push(Move::new(&axes, element_size(operand), 0, first)?);
        first += to[op.dimension] * operand.dims()[op.dimension] as isize;
    }
    Some(Bound::new("concatenate", move |inputs, outputs, threads| {
        for (part, input) in moves.iter().zip(inputs) {
            part.run(input, outputs[0], threads);
        }
    }))
}

/// A concatenation as rows of pieces, if there are several rows and they are short.
fn short_rows(site: &InstrShapes<'_>, op: &ops::Concatenate, result: &ArrayShape) -> Option<Rows> {
    let row = |shape: &ArrayShape| {
        let elements: usize = shape.dims()[op.dimension..].iter().product();
        elements * element_size(shape)
    };
    let pieces: Vec<usize> = site.operands.iter().map(|operand| row(operand)).collect();
    let is_single = result.dims()[..op.dimension].iter().all(|&size| size == 1);
    if is_single || row(result) > Rows::MAX_ROW {
        return None;
    }
    Rows::new(&pieces)
}

pub(super) fn pad(site: &InstrShapes<'_>, op: &ops::Pad) -> Option<Bound> {
    let ([operand, _], [result]) = (&site.operands[..], &site.results[..]) else { return None };
    let size = element_size(operand);
    let to = dense_steps(result.dims());
    let fill: Vec<Axis> =
        result.dims().iter().zip(&to).map(|(&size, &to)| Axis { size, from: 0, to }).collect();
    let fill = Move::new(&fill, size, 0, 0)?;
    let (mut from_first, mut to_first) = (0, 0);
    let from = dense_steps(operand.dims());
    let mut axes = Vec::with_capacity(to.len());
    for (d, dim) in op.dims.iter().enumerate() {
        // Element i goes to low + i * every, if that is inside.
        let (low, every) = (i128::from(dim.low), dim.interior as i128 + 1);
        let (count, end) = (operand.dims()[d] as i128, result.dims()[d] as i128);
        let begin = if low < 0 { (-low).div_euclid(every) } else { 0 };
        let begin = begin + i128::from(low + begin * every < 0);
        let limit = if low >= end { 0 } else { (end - 1 - low).div_euclid(every) + 1 };
        let kept = count.min(limit) - begin;
        axes.push(Axis {
            size: usize::try_from(kept).unwrap_or(0),
            from: from[d],
            to: to[d].checked_mul(isize::try_from(every).ok()?)?,
        });
        if kept > 0 {
            from_first += from[d] * begin as isize;
            to_first += to[d] * (low + begin * every) as isize;
        }
    }
    let inside = Move::new(&axes, size, from_first, to_first)?;
    Some(Bound::new("pad", move |inputs, outputs, threads| {
        fill.run(inputs[1], outputs[0], threads);
        inside.run(inputs[0], outputs[0], threads);
    }))
}

/// Where a box of run-time position begins in an array.
struct Position {
    /// For each dimension, the bytes from an index to the next, and the largest index at which the
    /// box is inside.
    dims: Vec<(usize, usize)>,
    /// The types of the index operands.
    types: Vec<ElementType>,
}

impl Position {
    fn new(array: &ArrayShape, sizes: &[usize], indices: &[&ArrayShape]) -> Self {
        let steps = dense_steps(array.dims()).into_iter().zip(array.dims()).zip(sizes);
        let dims = steps.map(|((step, &dim), &size)| {
            (step.unsigned_abs() * element_size(array), dim.saturating_sub(size))
        });
        Position { dims: dims.collect(), types: indices.iter().map(|s| s.element()).collect() }
    }

    /// The byte at which the box begins; positions are clamped so that it is inside.
    fn bytes(&self, indices: &[&[u8]]) -> usize {
        // Scalars, one for each dimension, or one vector of all.
        let values = indices.iter().zip(&self.types).flat_map(|(bytes, &element)| {
            bytes.chunks_exact(element.size_bytes()).map(move |bytes| integer(element, bytes))
        });
        self.dims.iter().zip(values).map(|(&(step, last), at)| at.min(last) * step).sum()
    }
}

/// An integer as an index; a negative one is 0.
fn integer(element: ElementType, bytes: &[u8]) -> usize {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u128::from_le_bytes(word);
    // Of a type narrower than a byte, the sign is in the middle of one.
    let unused = 128 - element.bits() as u32;
    if element.is_signed_integer() {
        let number = (bits << unused) as i128 >> unused;
        usize::try_from(number).unwrap_or(if number < 0 { 0 } else { usize::MAX })
    } else {
        usize::try_from(bits).unwrap_or(usize::MAX)
    }
}

pub(super) fn dynamic_slice(site: &InstrShapes<'_>, op: &ops::DynamicSlice) -> Option<Bound> {
    let (operand, indices) = site.operands.split_first()?;
    let from = dense_steps(operand.dims()).into_iter();
    let steps = from.zip(dense_steps(&op.sizes)).zip(&op.sizes);
    let axes: Vec<Axis> = steps.map(|((from, to), &size)| Axis { size, from, to }).collect();
    let copy = Copy::new(&axes, element_size(operand))?;
    let position = Position::new(operand, &op.sizes, indices);
    Some(Bound::new("dynamic-slice", move |inputs, outputs, threads| {
        copy.run((inputs[0], position.bytes(&inputs[1..])), (outputs[0], 0), threads);
    }))
}

pub(super) fn dynamic_update_slice(site: &InstrShapes<'_>) -> Option<Bound> {
    let [operand, update, indices @ ..] = &site.operands[..] else { return None };
    let sizes = update.dims();
    let steps = dense_steps(sizes).into_iter().zip(dense_steps(operand.dims())).zip(sizes);
    let axes: Vec<Axis> = steps.map(|((from, to), &size)| Axis { size, from, to }).collect();
    let copy = Copy::new(&axes, element_size(operand))?;
    let position = Position::new(operand, sizes, indices);
    let bound = Bound::new("dynamic-update-slice", move |inputs, outputs, threads| {
        copy.run((inputs[0], 0), (outputs[0], position.bytes(&inputs[1..])), threads);
    });
    Some(Bound { updates: 1, ..bound })
}
