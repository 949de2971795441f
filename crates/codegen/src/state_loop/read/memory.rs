//! Arrays in memory: read at any place, and changed a part at a time.

use std::iter::zip;

use helio_ir::types::{IndexIter, strides};
use helio_ir::{ArrayShape, Computation, ElementType, Instr, ops};

use super::{Data, Form, Leaf, MAX_ELEMENTS, Reader, array};
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, BinOp, Buf, Builder, IndexOp, Value};

/// Rows further apart are on pages of their own, and take longer to find than to pass over all
/// arrays in each iteration.
const MAX_ROW_BYTES: usize = 8 << 10;

/// A box of an array in memory.
pub(super) struct ArrayBox<'p> {
    pub buf: Buf,
    pub shape: &'p ArrayShape,
    /// Where it begins: numbers, and how many elements each counts.
    pub starts: &'p [(Value, i64)],
    pub sizes: &'p [usize],
}

impl Reader<'_> {
    pub(super) fn is_current(&self, buf: Buf, version: usize) -> bool {
        let Buf::Param(n) = buf else { return false };
        self.versions[n as usize].unwrap_or(0) == version
    }

    /// Where a box is, if its elements lie as values want them: for each of the values, an address;
    /// and whether that is a row, with an element in each lane.
    fn places(&self, part: &ArrayBox<'_>) -> Option<(Vec<Addr>, bool)> {
        let &ArrayBox { buf, shape, starts, sizes } = part;
        let dims = shape.dims();
        let bytes = shape.element().size_bytes() as i64;
        let terms: Vec<(Value, i64)> =
            starts.iter().map(|&(value, stride)| (value, stride * bytes)).collect();
        let elements: usize = sizes.iter().product();
        let Form::Lanes { count, at, .. } = self.form else {
            (elements <= MAX_ELEMENTS).then_some(())?;
            let strides = strides(dims);
            let mut points = IndexIter::new(sizes);
            let mut all = Vec::with_capacity(elements);
            while let Some(point) = points.next_point() {
                let at: usize = zip(point, &strides).map(|(&i, stride)| i * stride).sum();
                let offset = at as i64 * bytes;
                all.push(Addr { buf, offset, terms: terms.clone(), lane_stride: 0 });
            }
            return Some((all, false));
        };
        if elements == 1 {
            return Some((vec![Addr { buf, offset: 0, terms, lane_stride: 0 }], false));
        }
        // One element after the other: whole dimensions within one of which there is a part.
        let first = sizes.iter().position(|&size| size != 1).unwrap_or(sizes.len());
        let is_dense = zip(&dims[first + 1..], &sizes[first + 1..]).all(|(dim, size)| dim == size);
        (elements == count && is_dense).then_some(())?;
        let row_bytes = elements * bytes as usize;
        let is_far = !terms.is_empty() && row_bytes > MAX_ROW_BYTES;
        let (mut terms, mut offset) = (terms, 0);
        if let Some(at) = at {
            (!is_far).then_some(())?;
            terms.push((at.var, bytes));
            offset = at.offset * bytes;
        }
        Some((vec![Addr { buf, offset, terms, lane_stride: bytes }], true))
    }

    /// Reads a box of an array.
    pub(super) fn read(&mut self, b: &mut Builder, part: &ArrayBox<'_>) -> Option<Vec<Elem>> {
        let (places, is_row) = self.places(part)?;
        self.is_apart(part.buf, is_row).then_some(())?;
        let mask = self.mask().filter(|_| is_row);
        self.count(places.len())?;
        let load = |addr| elementwise::load(b, part.shape.element(), addr, mask);
        Some(places.into_iter().map(load).collect())
    }

    /// Whether what is written there is seen by nobody else: in a loop over elements, others may
    /// have written, or have yet to read, what is not in a column of their own.
    fn is_apart(&self, buf: Buf, is_row: bool) -> bool {
        let Buf::Param(n) = buf else { return false };
        let is_written = self.versions[n as usize].is_some();
        let is_shared = matches!(self.form, Form::Lanes { at: Some(_), .. }) || !self.stores;
        !is_written || !is_shared || is_row
    }

    /// The number that a scalar is, made to lie in `0..=max`.
    fn start(&self, b: &mut Builder, leaf: &Leaf, max: usize) -> Option<Value> {
        let Data::Values(values) = &leaf.data else { return None };
        let (&[Elem::Vector(value)], true) = (&values[..], leaf.ty.is_integer()) else {
            return None;
        };
        // As a 64-bit signed number it would not be clamped to the same end.
        (leaf.ty != ElementType::U64).then_some(())?;
        let mut index = b.extract(value);
        if leaf.ty == ElementType::U32 {
            let low = b.index(0xffff_ffff);
            index = b.index_op(IndexOp::And, index, low);
        }
        let (zero, max) = (b.index(0), b.index(max as i64));
        let raised = b.index_op(IndexOp::Max, index, zero);
        Some(b.index_op(IndexOp::Min, raised, max))
    }

    /// Where a box of these sizes begins: the numbers that the operands from `first` on say.
    pub(super) fn starts(
        &mut self,
        b: &mut Builder,
        site: (&Instr, &[Vec<Leaf>]),
        first: usize,
        dims: &[usize],
        sizes: &[usize],
    ) -> Option<Vec<(Value, i64)>> {
        let (instr, values) = site;
        let strides = strides(dims);
        let mut starts = Vec::with_capacity(dims.len());
        for (d, (&dim, &size)) in zip(dims, sizes).enumerate() {
            if dim == size {
                continue;
            }
            let operand = *instr.operands.get(first + d)?;
            let start = self.start(b, values[operand.index()].first()?, dim - size)?;
            starts.push((start, strides[d] as i64));
        }
        Some(starts)
    }

    /// An array in memory with a box of it replaced.
    pub(super) fn update(
        &mut self,
        b: &mut Builder,
        computation: &Computation,
        instr: &Instr,
        values: &[Vec<Leaf>],
    ) -> Option<Leaf> {
        let &[base, update, ..] = &instr.operands[..] else { return None };
        let (shape, part) = (array(computation, base)?, array(computation, update)?);
        let &Data::Memory { buf, version } = &values[base.index()].first()?.data else {
            return None;
        };
        let Buf::Param(n) = buf else { return None };
        self.versions[n as usize].filter(|&current| current == version)?;
        let starts = self.starts(b, (instr, values), 2, shape.dims(), part.dims())?;
        let elems = self.values(b, values[update.index()].first()?, part)?;
        let sizes = part.dims();
        let (places, is_row) = self.places(&ArrayBox { buf, shape, starts: &starts, sizes })?;
        self.is_apart(buf, is_row).then_some(())?;
        self.count(places.len())?;
        if self.stores {
            let mask = self.mask().filter(|_| is_row);
            for (addr, &elem) in zip(places, &elems) {
                elementwise::store(b, shape.element(), elem, addr, mask);
            }
        }
        self.versions[n as usize] = Some(version + 1);
        Some(Leaf { ty: shape.element(), data: Data::Memory { buf, version: version + 1 } })
    }

    /// An element of an array in memory for each index.
    pub(super) fn gather(
        &mut self,
        b: &mut Builder,
        (table, from): (&Leaf, &ArrayShape),
        (indices, shape): (&Leaf, &ArrayShape),
        op: &ops::Gather,
    ) -> Option<Elem> {
        let &Data::Memory { buf, version } = &table.data else { return None };
        let Buf::Param(n) = buf else { return None };
        let is_read_only = self.versions[n as usize].is_none() && version == 0;
        // Single elements along a dimension that is all there is.
        let &[dim] = &op.dims.start_index_map[..] else { return None };
        let is_line = from.dims()[dim] == from.element_count()
            && op.slice_sizes.iter().all(|&size| size == 1)
            && op.dims.operand_batching_dims.is_empty()
            && matches!(self.form, Form::Lanes { .. });
        let max = i32::try_from(from.element_count().checked_sub(1)?).ok()?;
        (is_read_only && is_line && indices.ty != ElementType::U64).then_some(())?;
        let &[Elem::Vector(index)] = &self.values(b, indices, shape)?[..] else { return None };
        let lane = b.lane(index);
        let max = b.int(lane, max.into());
        let index = match indices.ty.is_unsigned_integer() {
            true => b.bin(BinOp::MinU, index, max),
            false => {
                let zero = b.int(lane, 0);
                let raised = b.bin(BinOp::Max, index, zero);
                b.bin(BinOp::Min, raised, max)
            }
        };
        let addr = Addr { buf, offset: 0, terms: Vec::new(), lane_stride: 0 };
        let bytes = from.element().size_bytes() as i64;
        Some(elementwise::gather(b, from.element(), addr, index, (bytes, None), self.mask()))
    }
}
