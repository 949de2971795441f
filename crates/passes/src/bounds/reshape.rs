//! The same elements under other dimensions.
//!
//! Elements are counted without the padding. Where the first dimension of more than one element is the only
//! bounded one, on both sides, they lie at the beginning either way; otherwise each is looked up where the
//! elements before it, counted with the sizes at run time, say that it is.

use helio_ir::ops::{Broadcast, Clamp, Direction, Gather, GatherDims, Iota, Reshape};
use helio_ir::{ArrayShape, BinaryOp, DimKind, ElementType, Instr, InstrId, Result};

use super::static_shape;
use super::writer::{Sized, Writer};

/// Dimensions of the operand and of the result that have as many elements, at the bounds.
struct Group {
    from: std::ops::Range<usize>,
    to: std::ops::Range<usize>,
    /// The elements at the bounds.
    count: usize,
}

/// A reshape whose sizes follow from those of the operand: in each group, the number of elements decides
/// the size of the one bounded dimension of the result. `None` if it has too many elements to be counted
/// in `s32`.
pub(super) fn reshape(
    w: &mut Writer<'_, '_>,
    shape: &ArrayShape,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let x = w.operand(old, 0)?;
    if i32::try_from(shape.element_count()).is_err() {
        return Ok(None);
    }
    let mut sizes: Vec<Option<InstrId>> = vec![None; shape.rank()];
    for group in groups(x.shape.dims(), shape.dims()) {
        let bounded: Vec<usize> =
            group.to.clone().filter(|&d| shape.kinds()[d] == DimKind::Bounded).collect();
        let mut runtime = group.from.clone().filter(|&d| x.sizes[d].is_some());
        let Some(first) = runtime.next() else { continue };
        if let (&[d], None) = (&bounded[..], runtime.next())
            && shape.dims()[d] == x.shape.dims()[first]
        {
            // The other dimensions have as many elements on both sides.
            sizes[d] = x.sizes[first];
            continue;
        }
        let elements = w.product(&x, group.from.clone())?;
        let all = w.number(group.count)?;
        let message =
            format!("{{0}} elements do not decide the sizes of {}", old.shape.without_layout());
        if let &[d] = &bounded[..] {
            let others: usize =
                group.to.clone().filter(|&other| other != d).map(|d| shape.dims()[d]).product();
            if others == 0 {
                // There are no elements, whatever the size is.
                continue;
            }
            let (others, zero) = (w.number(others)?, w.integer(0)?);
            let size = w.binary(BinaryOp::Divide, elements, others)?;
            let rest = w.binary(BinaryOp::Remainder, elements, others)?;
            let is_whole = w.compare(Direction::Eq, rest, zero)?;
            sizes[d] = Some(match w.shapes_divide(&x, &group, shape.dims()[d]) {
                true => size,
                false => w.assert(is_whole, size, &[elements], message)?,
            });
        } else {
            let is_all = w.compare(Direction::Eq, elements, all)?;
            // All sizes are the bounds, then.
            w.assert(is_all, all, &[elements], message)?;
        }
    }
    let data = repacked(w, &x, shape, &sizes)?;
    w.result(data, &sizes, old).map(Some)
}

/// A reshape to sizes that are operands. `None` as for [`reshape`].
pub(super) fn dynamic_reshape(
    w: &mut Writer<'_, '_>,
    shape: &ArrayShape,
    old: &Instr,
) -> Result<Option<InstrId>> {
    let x = w.operand(old, 0)?;
    if i32::try_from(shape.element_count()).is_err() {
        return Ok(None);
    }
    let mut sizes: Vec<Option<InstrId>> = vec![None; shape.rank()];
    for (d, size) in sizes.iter_mut().enumerate() {
        let given = w.map[old.operands[d + 1].index()];
        let bound = w.number(shape.dims()[d])?;
        let is_bounded = shape.kinds()[d] == DimKind::Bounded;
        let least = if is_bounded { w.integer(0)? } else { bound };
        let clamped = w.draft.add(Clamp, &[least, given, bound])?;
        let is_within = w.compare(Direction::Eq, clamped, given)?;
        let message = format!("size {{0}} for dimension {d} of {}", shape.clone().without_layout());
        let given = w.assert(is_within, given, &[given], message)?;
        *size = Some(given).filter(|_| is_bounded);
    }
    let result = Sized { data: x.data, shape: static_shape(shape)?, sizes: sizes.clone() };
    let (from, to) = (w.product(&x, 0..x.sizes.len())?, w.product(&result, 0..sizes.len())?);
    let is_same = w.compare(Direction::Eq, from, to)?;
    let message = "sizes call for {1} elements, but the operand has {0}".to_owned();
    w.assert(is_same, to, &[from, to], message)?;
    let data = repacked(w, &x, shape, &sizes)?;
    w.result(data, &sizes, old).map(Some)
}

/// The smallest groups of dimensions that have as many elements on both sides.
fn groups(from: &[usize], to: &[usize]) -> Vec<Group> {
    let mut groups = Vec::new();
    let (mut f, mut t) = (0, 0);
    while f < from.len() || t < to.len() {
        let (first_from, first_to) = (f, t);
        let (mut from_count, mut to_count) = (1usize, 1usize);
        loop {
            if f < from.len() && (from_count <= to_count || t == to.len()) {
                from_count = from_count.saturating_mul(from[f]);
                f += 1;
            } else if t < to.len() {
                to_count = to_count.saturating_mul(to[t]);
                t += 1;
            } else {
                break;
            }
            if from_count == to_count && f > first_from && t > first_to {
                break;
            }
        }
        groups.push(Group { from: first_from..f, to: first_to..t, count: from_count });
    }
    groups
}

/// The operand's elements, without padding, in row-major order as those of an array of these sizes.
fn repacked(
    w: &mut Writer<'_, '_>,
    x: &Sized,
    shape: &ArrayShape,
    sizes: &[Option<InstrId>],
) -> Result<InstrId> {
    let shape = static_shape(shape)?;
    let leads = |range: &std::ops::Range<usize>, dims: &[usize], sizes: &[Option<InstrId>]| {
        let first = range.clone().find(|&d| dims[d] != 1);
        range.clone().all(|d| sizes[d].is_none() || Some(d) == first || first.is_none())
    };
    let plain = groups(x.shape.dims(), shape.dims()).iter().all(|group| {
        leads(&group.from, x.shape.dims(), &x.sizes) && leads(&group.to, shape.dims(), sizes)
    });
    if plain || shape.element_count() == 0 {
        return w.draft.add(Reshape { shape }, &[x.data]);
    }
    // How many elements come before each one of the result.
    let indices = shape.with_element(ElementType::S32)?;
    let result = Sized { data: x.data, shape: shape.clone(), sizes: sizes.to_vec() };
    let mut count: Option<InstrId> = None;
    for d in 0..shape.rank() {
        let step = w.product(&result, d + 1..shape.rank())?;
        let place = w.draft.add(Iota { shape: indices.clone(), dimension: d }, &[])?;
        let step = w.filled(step, &indices)?;
        let before = w.draft.add(BinaryOp::Multiply, &[place, step])?;
        count = Some(match count {
            Some(count) => w.draft.add(BinaryOp::Add, &[count, before])?,
            None => before,
        });
    }
    let mut left = match count {
        Some(count) => count,
        None => w.integer(0)?,
    };
    // Where the operand has it.
    let strides = helio_ir::types::strides(x.shape.dims());
    let mut at: Option<InstrId> = None;
    for (d, &stride) in strides.iter().enumerate() {
        let step = w.product(x, d + 1..strides.len())?;
        let one = w.integer(1)?;
        let step = w.binary(BinaryOp::Maximum, step, one)?;
        let step = w.filled(step, &indices)?;
        let place = w.draft.add(BinaryOp::Divide, &[left, step])?;
        left = w.draft.add(BinaryOp::Remainder, &[left, step])?;
        let stride = w.number(stride)?;
        let stride = w.filled(stride, &indices)?;
        let part = w.draft.add(BinaryOp::Multiply, &[place, stride])?;
        at = Some(match at {
            Some(at) => w.draft.add(BinaryOp::Add, &[at, part])?,
            None => part,
        });
    }
    let line = ArrayShape::of_sizes(shape.element(), &[x.shape.element_count()])?;
    let line = w.draft.add(Reshape { shape: line }, &[x.data])?;
    let at = match at {
        Some(at) => at,
        None => {
            let zero = w.integer(0)?;
            let dimensions = Vec::new();
            w.draft.add(Broadcast { shape: indices, dimensions }, &[zero])?
        }
    };
    let dims = GatherDims {
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: shape.rank(),
        ..GatherDims::default()
    };
    let gather = Gather { dims, slice_sizes: vec![1], indices_are_sorted: false };
    w.draft.add(gather, &[line, at])
}

impl Writer<'_, '_> {
    /// The number of elements along some dimensions, at run time.
    fn product(&mut self, x: &Sized, dims: std::ops::Range<usize>) -> Result<InstrId> {
        let known = dims.clone().filter(|&d| x.sizes[d].is_none());
        let known: usize = known.map(|d| x.shape.dims()[d]).product();
        let mut product: Option<InstrId> = None;
        for size in dims.filter_map(|d| x.sizes[d]) {
            product = Some(match product {
                Some(product) => self.binary(BinaryOp::Multiply, product, size)?,
                None => size,
            });
        }
        match product {
            Some(product) if known == 1 => Ok(product),
            Some(product) => {
                let known = self.number(known)?;
                self.binary(BinaryOp::Multiply, product, known)
            }
            None => self.number(known),
        }
    }

    /// Whether the elements of a group are, whatever the sizes, a multiple of what all dimensions of the result
    /// but one of this bound have: the static dimensions of the operand see to it.
    fn shapes_divide(&self, x: &Sized, group: &Group, bound: usize) -> bool {
        let known = group.from.clone().filter(|&d| x.sizes[d].is_none());
        let known: usize = known.map(|d| x.shape.dims()[d]).product();
        let others = group.count.checked_div(bound).unwrap_or(0);
        others > 0 && known.is_multiple_of(others)
    }
}
