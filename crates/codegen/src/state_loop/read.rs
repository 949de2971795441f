//! What an iteration computes, written down.

use std::iter::zip;

use helio_ir::ops::{self, BinaryOp, Convert};
use helio_ir::types::{IndexIter, strides};
use helio_ir::{
    ArrayShape, CompId, Computation, ElementType, Instr, InstrId, Literal, Module, Op, Shape,
};

use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, BinOp, Buf, Builder, IndexOp, Lane, Value};

/// An array has so many elements at most that are values of their own.
pub(super) const MAX_ELEMENTS: usize = 16;
/// Computations are looked into this deep.
const MAX_DEPTH: usize = 8;
/// More values than this in an iteration would not stay in registers.
const MAX_VALUES: usize = 1500;
/// Rows further apart are on pages of their own, and take longer to find than to pass over all
/// arrays in each iteration.
const MAX_ROW_BYTES: usize = 8 << 10;

/// How arrays are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Scalars in all lanes, arrays in lanes: as many elements as there are lanes, or for loops over
    /// more, those from an element on.
    Lanes {
        /// Elements of each array.
        count: usize,
        /// The first element; where there is no loop over elements, there are no more than lanes.
        at: Option<At>,
        /// Which lanes there are; `None` for all.
        mask: Option<Value>,
    },
    /// Each element in all lanes of a value of its own.
    Elements,
}

/// The element in lane 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// The variable of the loop over elements.
    pub var: Value,
    /// How far it is from there.
    pub offset: i64,
}

/// An array of a computation.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub ty: ElementType,
    pub data: Data,
}

/// Where an array is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// In values: one, or one for each element.
    Values(Vec<Elem>),
    /// In the memory of the state.
    Memory {
        buf: Buf,
        /// How many times parts of it have been replaced before.
        version: usize,
    },
}

/// Writes what computations compute.
pub(super) struct Reader<'m> {
    module: &'m Module,
    pub form: Form,
    /// For each buffer, how many times parts of it have been replaced; `None` if that never happens.
    pub versions: Vec<Option<usize>>,
    /// Whether what is written to memory is: another kernel does it otherwise.
    pub stores: bool,
    /// Whether something has turned up that cannot be written; what has been written is of no use.
    pub failed: bool,
    values: usize,
}

impl<'m> Reader<'m> {
    pub fn new(module: &'m Module, form: Form, versions: Vec<Option<usize>>) -> Self {
        Reader { module, form, versions, stores: true, failed: false, values: 0 }
    }

    /// Writes a computation.
    pub fn computation(&mut self, b: &mut Builder, id: CompId, args: &[Leaf]) -> Vec<Leaf> {
        self.nested(b, id, args, 0)
    }

    fn nested(&mut self, b: &mut Builder, id: CompId, args: &[Leaf], depth: usize) -> Vec<Leaf> {
        let computation = self.module.computation(id);
        let uses = uses(computation);
        let mut values: Vec<Vec<Leaf>> = Vec::with_capacity(computation.instrs().len());
        // Where the arrays of each parameter begin among the arguments.
        let mut begins = vec![0];
        for id in computation.params().values() {
            let before = begins.last().copied().unwrap_or(0);
            begins.push(before + computation.instr(*id).shape.leaves().len());
        }
        for id in computation.ids() {
            let instr = computation.instr(id);
            let all = || instr.operands.iter().flat_map(|o| values[o.index()].iter().cloned());
            let value: Option<Vec<Leaf>> = match &instr.op {
                _ if self.failed || depth > MAX_DEPTH => None,
                Op::Parameter(param) => {
                    Some(args[begins[param.number]..begins[param.number + 1]].to_vec())
                }
                Op::GetTupleElement(op) => {
                    let tuple = instr.operands[0];
                    let shape = &computation.instr(tuple).shape;
                    let elements = shape.as_tuple().unwrap_or_default();
                    let before: usize = elements[..op.index].iter().map(|s| s.leaves().len()).sum();
                    let count = instr.shape.leaves().len();
                    Some(values[tuple.index()][before..before + count].to_vec())
                }
                Op::Tuple(_) | Op::Copy(_) | Op::OptimizationBarrier(_) | Op::Reshape(_) => {
                    Some(all().collect())
                }
                Op::Fusion(op) => {
                    let args: Vec<Leaf> = all().collect();
                    Some(self.nested(b, op.calls, &args, depth + 1))
                }
                Op::Call(op) => {
                    let args: Vec<Leaf> = all().collect();
                    Some(self.nested(b, op.to_apply, &args, depth + 1))
                }
                Op::Constant(op) if !op.elided => {
                    let leaves = op.literal.leaves().into_iter();
                    leaves.map(|leaf| self.constant(b, leaf)).collect()
                }
                Op::Reduce(op) => self.reduce(b, computation, instr, op, &values, depth),
                Op::DynamicUpdateSlice(_) => {
                    self.update(b, computation, instr, &values).map(|leaf| vec![leaf])
                }
                _ => {
                    let site = Site { computation, instr, values: &values, uses: &uses };
                    self.array(b, site).map(|leaf| vec![leaf])
                }
            };
            values.push(value.unwrap_or_else(|| {
                self.failed = true;
                let leaves = instr.shape.leaves().into_iter().filter_map(Shape::as_array);
                let nothing = |shape: &ArrayShape| {
                    let ty = shape.element();
                    Leaf { ty, data: Data::Values(vec![elementwise::constant(b, ty, 0)]) }
                };
                leaves.map(nothing).collect()
            }));
        }
        values.swap_remove(computation.root().index())
    }

    /// How many values an array is.
    fn values_of(&self, shape: &ArrayShape) -> Option<usize> {
        let elements = shape.element_count();
        match self.form {
            Form::Lanes { count, .. } => (elements == 1 || elements == count).then_some(1),
            Form::Elements => (1..=MAX_ELEMENTS).contains(&elements).then_some(elements),
        }
    }

    fn constant(&self, b: &mut Builder, literal: &Literal) -> Option<Leaf> {
        let array = literal.as_array()?;
        let (ty, shape) = (array.element(), array.shape());
        let count = self.values_of(shape)?;
        let is_splat = (1..shape.element_count()).all(|i| array.bits(i) == array.bits(0));
        if count == 1 && !is_splat {
            return None;
        }
        let values = (0..count).map(|i| elementwise::constant(b, ty, array.bits(i))).collect();
        Some(Leaf { ty, data: Data::Values(values) })
    }

    /// The values of an array, read if it is in memory.
    pub fn values(
        &mut self,
        b: &mut Builder,
        leaf: &Leaf,
        shape: &ArrayShape,
    ) -> Option<Vec<Elem>> {
        match &leaf.data {
            Data::Values(values) => Some(values.clone()),
            &Data::Memory { buf, version } => {
                self.is_current(buf, version).then_some(())?;
                self.read(b, shape, buf, &[], shape.dims(), shape.dims())
            }
        }
    }

    fn is_current(&self, buf: Buf, version: usize) -> bool {
        let Buf::Param(n) = buf else { return false };
        self.versions[n as usize].unwrap_or(0) == version
    }

    /// Where a box of an array in memory begins, if its elements lie as values want them: for each of
    /// the values, an address.
    fn places(
        &self,
        shape: &ArrayShape,
        buf: Buf,
        starts: &[(Value, i64)],
        dims: &[usize],
        sizes: &[usize],
    ) -> Option<(Vec<Addr>, bool)> {
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

    fn mask(&self) -> Option<Value> {
        match self.form {
            Form::Lanes { mask, .. } => mask,
            Form::Elements => None,
        }
    }

    /// Reads a box of an array in memory that begins where `starts` say: numbers, and how many
    /// elements each counts.
    fn read(
        &mut self,
        b: &mut Builder,
        shape: &ArrayShape,
        buf: Buf,
        starts: &[(Value, i64)],
        dims: &[usize],
        sizes: &[usize],
    ) -> Option<Vec<Elem>> {
        let (places, is_row) = self.places(shape, buf, starts, dims, sizes)?;
        self.is_apart(buf, is_row).then_some(())?;
        let mask = self.mask().filter(|_| is_row);
        self.count(places.len())?;
        let load = |addr| elementwise::load(b, shape.element(), addr, mask);
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

    /// Counts values; `None` if there are too many.
    fn count(&mut self, values: usize) -> Option<()> {
        self.values += values;
        (self.values <= MAX_VALUES).then_some(())
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
    fn starts(
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
    fn update(
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
        let (places, is_row) = self.places(shape, buf, &starts, shape.dims(), part.dims())?;
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

    /// The value of an instruction that gives one array.
    fn array(&mut self, b: &mut Builder, site: Site<'_>) -> Option<Leaf> {
        let Site { computation, instr, values, uses } = site;
        let shape = instr.shape.as_array()?;
        let ty = shape.element();
        let count = self.values_of(shape)?;
        self.count(count)?;
        let operand = |i: usize| -> Option<(&Leaf, &ArrayShape)> {
            let id = *instr.operands.get(i)?;
            Some((values[id.index()].first()?, array(computation, id)?))
        };
        let is_whole = matches!(self.form, Form::Elements);
        let elems = match &instr.op {
            Op::Iota(op) => self.iota(b, shape, op.dimension)?,
            Op::Broadcast(op) => {
                let (leaf, from) = operand(0)?;
                let elems = self.values(b, leaf, from)?;
                if is_whole {
                    let strides = strides(from.dims());
                    let of = |point: &[usize]| {
                        zip(&op.dimensions, &strides).map(|(&d, stride)| point[d] * stride).sum()
                    };
                    moved(shape.dims(), &elems, of)
                } else {
                    let is_ordered = op.dimensions.is_sorted();
                    let is_same = from.element_count() == shape.element_count() && is_ordered;
                    (from.element_count() == 1 || is_same).then_some(elems)?
                }
            }
            Op::Slice(op) => {
                let (leaf, from) = operand(0)?;
                let strides = strides(from.dims());
                let first: usize =
                    zip(&op.starts, &strides).map(|(start, stride)| start * stride).sum();
                match leaf.data {
                    Data::Memory { buf, version } if op.strides.iter().all(|&by| by == 1) => {
                        self.is_current(buf, version).then_some(())?;
                        let first = b.index(first as i64);
                        self.read(b, from, buf, &[(first, 1)], from.dims(), shape.dims())?
                    }
                    _ if is_whole => {
                        let elems = self.values(b, leaf, from)?;
                        let of = |point: &[usize]| {
                            let steps = zip(zip(point, &op.strides), &strides);
                            first + steps.map(|((i, by), stride)| i * by * stride).sum::<usize>()
                        };
                        moved(shape.dims(), &elems, of)
                    }
                    _ => return None,
                }
            }
            Op::Reverse(op) if is_whole => {
                let (leaf, from) = operand(0)?;
                let (elems, strides) = (self.values(b, leaf, from)?, strides(from.dims()));
                let of = |point: &[usize]| {
                    let turned = |d: usize| match op.dimensions.contains(&d) {
                        true => from.dims()[d] - 1 - point[d],
                        false => point[d],
                    };
                    strides.iter().enumerate().map(|(d, stride)| turned(d) * stride).sum()
                };
                moved(shape.dims(), &elems, of)
            }
            Op::Transpose(op) if is_whole => {
                let (leaf, from) = operand(0)?;
                let (elems, strides) = (self.values(b, leaf, from)?, strides(from.dims()));
                let of = |point: &[usize]| {
                    zip(&op.permutation, point).map(|(&d, i)| i * strides[d]).sum()
                };
                moved(shape.dims(), &elems, of)
            }
            Op::Concatenate(op) if is_whole => {
                let mut parts = Vec::with_capacity(instr.operands.len());
                for i in 0..instr.operands.len() {
                    let (leaf, from) = operand(i)?;
                    parts.push((self.values(b, leaf, from)?, from.dims()));
                }
                joined(shape.dims(), &parts, op.dimension)?
            }
            Op::Dot(op) if is_whole => {
                let sides = [operand(0)?, operand(1)?];
                self.product(b, sides, shape, op)?
            }
            Op::DynamicSlice(op) => {
                let (leaf, from) = operand(0)?;
                let &Data::Memory { buf, version } = &leaf.data else { return None };
                self.is_current(buf, version).then_some(())?;
                let starts = self.starts(b, (instr, values), 1, from.dims(), &op.sizes)?;
                self.read(b, from, buf, &starts, from.dims(), &op.sizes)?
            }
            Op::Gather(op) => {
                let [table, indices] = [operand(0)?, operand(1)?];
                vec![self.gather(b, table, indices, op)?]
            }
            Op::Binary(BinaryOp::Add) if matches!(ty, ElementType::F32 | ElementType::F64) => {
                let contracted = product_of(computation, instr, uses);
                let of = |this: &mut Self, b: &mut Builder, id: InstrId| {
                    this.values(b, values[id.index()].first()?, array(computation, id)?)
                };
                match contracted {
                    Some((&[x, y], other)) => {
                        let [x, y, other] = [x, y, other].map(|id| of(self, b, id));
                        let (x, y, other) = (x?, y?, other?);
                        let fma = |i: usize| {
                            let [x, y, z] = [&x, &y, &other].map(|of| pick(of, i).vector());
                            Elem::Vector(b.fma(x, y, z))
                        };
                        (0..count).map(fma).collect()
                    }
                    _ => self.elementwise(b, site, ty, count)?,
                }
            }
            _ => self.elementwise(b, site, ty, count)?,
        };
        Some(Leaf { ty, data: Data::Values(elems) })
    }

    fn elementwise(
        &mut self,
        b: &mut Builder,
        site: Site<'_>,
        ty: ElementType,
        count: usize,
    ) -> Option<Vec<Elem>> {
        let Site { computation, instr, values, .. } = site;
        let mut operands = Vec::with_capacity(instr.operands.len());
        let mut types = Vec::with_capacity(instr.operands.len());
        for &id in &instr.operands {
            let shape = array(computation, id)?;
            types.push(shape.element());
            operands.push(self.values(b, values[id.index()].first()?, shape)?);
        }
        elementwise::supports(&instr.op, &types, ty).then_some(())?;
        let apply = |i: usize| {
            let args: Vec<_> = zip(&types, &operands).map(|(&ty, of)| (ty, pick(of, i))).collect();
            elementwise::apply(b, &instr.op, &args, ty)
        };
        Some((0..count).map(apply).collect())
    }

    fn iota(&mut self, b: &mut Builder, shape: &ArrayShape, dimension: usize) -> Option<Vec<Elem>> {
        let ty = shape.element();
        let convert = Op::Convert(Convert { element: ty });
        let of = |b: &mut Builder, number: Value| {
            elementwise::apply(b, &convert, &[(ElementType::S32, Elem::Vector(number))], ty)
        };
        let Form::Lanes { at, .. } = self.form else {
            let mut points = IndexIter::new(shape.dims());
            let mut elems = Vec::new();
            while let Some(point) = points.next_point() {
                let number = b.int(Lane::I32, point[dimension] as i64);
                elems.push(of(b, number));
            }
            return Some(elems);
        };
        // Along the only dimension there is.
        let is_line = shape.dims()[dimension] == shape.element_count();
        (is_line && i32::try_from(shape.element_count()).is_ok()).then_some(())?;
        let mut number = b.lane_ids(Lane::I32);
        if shape.element_count() == 1 {
            number = b.int(Lane::I32, 0);
        } else if let Some(At { var, offset }) = at {
            let offset = b.index(offset);
            let first = b.index_op(IndexOp::Add, var, offset);
            let first = b.splat(Lane::I32, first);
            number = b.add(number, first);
        }
        Some(vec![of(b, number)])
    }

    /// An element of an array in memory for each index.
    fn gather(
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
        Some(elementwise::gather(b, from.element(), addr, index, bytes, self.mask()))
    }

    /// A product of small matrices.
    fn product(
        &mut self,
        b: &mut Builder,
        [(lhs, lhs_shape), (rhs, rhs_shape)]: [(&Leaf, &ArrayShape); 2],
        shape: &ArrayShape,
        op: &ops::Dot,
    ) -> Option<Vec<Elem>> {
        let ty = shape.element();
        let is_plain =
            matches!(ty, ElementType::F32 | ElementType::F64) && lhs.ty == ty && rhs.ty == ty;
        is_plain.then_some(())?;
        let dims = &op.dims;
        let (x, y) = (self.values(b, lhs, lhs_shape)?, self.values(b, rhs, rhs_shape)?);
        let (x_strides, y_strides) = (strides(lhs_shape.dims()), strides(rhs_shape.dims()));
        let folded: Vec<usize> =
            dims.lhs_contracting.iter().map(|&d| lhs_shape.dims()[d]).collect();
        let steps: usize = folded.iter().product();
        self.count(shape.element_count().saturating_mul(steps))?;
        let (lhs_free, rhs_free) =
            (dims.lhs_free(lhs_shape.rank()), dims.rhs_free(rhs_shape.rank()));
        let at = |strides: &[usize], of: &[usize], point: &[usize]| -> usize {
            zip(of, point).map(|(&d, i)| strides[d] * i).sum()
        };
        let mut result = Vec::with_capacity(shape.element_count());
        let mut points = IndexIter::new(shape.dims());
        while let Some(point) = points.next_point() {
            let (batch, free) = point.split_at(dims.lhs_batch.len());
            let (first, second) = free.split_at(lhs_free.len());
            let x_at = at(&x_strides, &dims.lhs_batch, batch) + at(&x_strides, &lhs_free, first);
            let y_at = at(&y_strides, &dims.rhs_batch, batch) + at(&y_strides, &rhs_free, second);
            let mut sum: Option<Value> = None;
            let mut inner = IndexIter::new(&folded);
            while let Some(step) = inner.next_point() {
                let x = x[x_at + at(&x_strides, &dims.lhs_contracting, step)].vector();
                let y = y[y_at + at(&y_strides, &dims.rhs_contracting, step)].vector();
                sum = Some(match sum {
                    Some(sum) => b.fma(x, y, sum),
                    None => b.mul(x, y),
                });
            }
            result.push(match sum {
                Some(sum) => Elem::Vector(sum),
                None => elementwise::constant(b, ty, 0),
            });
        }
        Some(result)
    }

    /// A fold of small arrays, one element after the other.
    fn reduce(
        &mut self,
        b: &mut Builder,
        computation: &Computation,
        instr: &Instr,
        op: &ops::Reduce,
        values: &[Vec<Leaf>],
        depth: usize,
    ) -> Option<Vec<Leaf>> {
        matches!(self.form, Form::Elements).then_some(())?;
        let (arrays, inits) = instr.operands.split_at(instr.operands.len() / 2);
        let shape = array(computation, *arrays.first()?)?;
        let kept: Vec<usize> = (0..shape.rank()).filter(|d| !op.dimensions.contains(d)).collect();
        let mut folded: Vec<Leaf> = Vec::new();
        let mut elements = Vec::new();
        for &id in arrays {
            let leaf = values[id.index()].first()?;
            elements.push((leaf.ty, self.values(b, leaf, array(computation, id)?)?));
        }
        for &id in inits {
            folded.push(values[id.index()].first()?.clone());
        }
        let kept_sizes: Vec<usize> = kept.iter().map(|&d| shape.dims()[d]).collect();
        let kept_strides = strides(&kept_sizes);
        let results: usize = kept_sizes.iter().product();
        let mut all = vec![folded; results];
        let mut points = IndexIter::new(shape.dims());
        let mut at = 0;
        while let Some(point) = points.next_point() {
            let to: usize = zip(&kept, &kept_strides).map(|(&d, stride)| point[d] * stride).sum();
            let element = |(ty, elems): &(ElementType, Vec<Elem>)| Leaf {
                ty: *ty,
                data: Data::Values(vec![pick(elems, at)]),
            };
            let args: Vec<Leaf> =
                all[to].iter().cloned().chain(elements.iter().map(element)).collect();
            all[to] = self.nested(b, op.to_apply, &args, depth + 1);
            at += 1;
            (!self.failed).then_some(())?;
        }
        let leaf = |n: usize| {
            let mut elems = Vec::with_capacity(results);
            for of in &all {
                let Data::Values(values) = &of.get(n)?.data else { return None };
                elems.push(*values.first()?);
            }
            Some(Leaf { ty: elements[n].0, data: Data::Values(elems) })
        };
        (0..arrays.len()).map(leaf).collect()
    }
}

/// An instruction, and the values before it.
#[derive(Clone, Copy)]
struct Site<'s> {
    computation: &'s Computation,
    instr: &'s Instr,
    values: &'s [Vec<Leaf>],
    uses: &'s [usize],
}

fn array(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    computation.instr(id).shape.as_array()
}

/// The value of an element; a scalar's is everybody's.
fn pick(elems: &[Elem], i: usize) -> Elem {
    elems[if elems.len() == 1 { 0 } else { i }]
}

/// An array of these sizes whose elements are those of another at the places that `of` says.
fn moved(sizes: &[usize], elems: &[Elem], of: impl Fn(&[usize]) -> usize) -> Vec<Elem> {
    let mut points = IndexIter::new(sizes);
    let mut result = Vec::new();
    while let Some(point) = points.next_point() {
        result.push(elems[of(point)]);
    }
    result
}

/// Arrays side by side.
fn joined(sizes: &[usize], parts: &[(Vec<Elem>, &[usize])], dimension: usize) -> Option<Vec<Elem>> {
    let mut points = IndexIter::new(sizes);
    let mut result = Vec::new();
    while let Some(point) = points.next_point() {
        let mut point = point.to_vec();
        let part = parts.iter().find(|(_, dims)| {
            let is_here = point[dimension] < dims[dimension];
            point[dimension] -= if is_here { 0 } else { dims[dimension] };
            is_here
        });
        let (elems, dims) = part?;
        let at: usize = zip(&point, strides(dims)).map(|(i, stride)| i * stride).sum();
        result.push(elems[at]);
    }
    Some(result)
}

/// How often each instruction is used.
fn uses(computation: &Computation) -> Vec<usize> {
    let mut uses = vec![0; computation.instrs().len()];
    uses[computation.root().index()] += 1;
    for operand in computation.instrs().iter().flat_map(|instr| &instr.operands) {
        uses[operand.index()] += 1;
    }
    uses
}

/// The factors of a product that is used for this sum alone, and what it is added to.
///
/// Such a product is not rounded before it is added: XLA:CPU contracts them likewise, and in a long
/// loop the two would drift apart.
fn product_of<'c>(
    computation: &'c Computation,
    sum: &Instr,
    uses: &[usize],
) -> Option<(&'c [InstrId; 2], InstrId)> {
    let &[a, b] = &sum.operands[..] else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(product, other)| {
        let instr = computation.instr(product);
        let is_alone = uses[product.index()] == 1 && product != other;
        let is_product = matches!(instr.op, Op::Binary(BinaryOp::Multiply));
        let factors = instr.operands.first_chunk::<2>()?;
        (is_alone && is_product).then_some((factors, other))
    })
}
