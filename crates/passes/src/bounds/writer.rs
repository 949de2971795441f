//! A computation as it is written at the bounds of its arrays.

use std::collections::{HashMap, HashSet};

use helio_ir::ops::{
    Broadcast, Compare, Constant, Direction, GetTupleElement, Iota, Select, Tuple,
};
use helio_ir::{
    Array, ArrayShape, BinaryOp, DimKind, ElementType, Instr, InstrId, Literal, Name, Native,
    Number, Op, Result, Shape, dispatch_type,
};

use super::{bounded_dims, has_bounded_array, static_shape};
use crate::draft::Draft;

/// The new computation, and what stands in it for the old instructions.
pub(super) struct Writer<'m, 's> {
    pub(super) draft: Draft<'m>,
    /// For each old instruction, its new one.
    pub(super) map: Vec<InstrId>,
    /// The shapes of the old instructions.
    pub(super) shapes: &'s [Shape],
    /// For each old instruction, whether an array of its shape has bounded dimensions.
    pub(super) has_bounds: Vec<bool>,
    /// The name of the old instruction whose place is being filled.
    pub(super) name: Name,
    elements: HashMap<(InstrId, usize), InstrId>,
    numbers: HashMap<i32, InstrId>,
    sums: HashMap<(BinaryOp, InstrId, InstrId), InstrId>,
    /// Pairs of sizes of which it was asserted that they are equal.
    equal: HashSet<(InstrId, InstrId)>,
}

/// An array at its bounds, and its sizes.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    pub(super) data: InstrId,
    /// The shape at the bounds.
    pub(super) shape: ArrayShape,
    /// For each dimension, its size at run time, `s32[]`; `None` for the bound.
    pub(super) sizes: Vec<Option<InstrId>>,
}

impl<'m, 's> Writer<'m, 's> {
    pub(super) fn new(draft: Draft<'m>, shapes: &'s [Shape]) -> Self {
        Writer {
            draft,
            map: Vec::with_capacity(shapes.len()),
            shapes,
            has_bounds: shapes.iter().map(has_bounded_array).collect(),
            name: Name::default(),
            elements: HashMap::new(),
            numbers: HashMap::new(),
            sums: HashMap::new(),
            equal: HashSet::new(),
        }
    }

    /// Goes on to the place of the next old instruction.
    pub(super) fn next(&mut self, old: &Instr) {
        self.draft.stand_for(old);
        self.name = old.name.clone();
    }

    /// An operand of an old instruction.
    pub(super) fn operand(&mut self, old: &Instr, number: usize) -> Result<Sized> {
        let id = old.operands[number];
        let (new, shapes) = (self.map[id.index()], self.shapes);
        let none = ArrayShape::scalar(ElementType::Pred);
        let array = shapes[id.index()].as_array().unwrap_or(&none);
        let shape = static_shape(array)?;
        if array.is_static() {
            let sizes = vec![None; shape.rank()];
            return Ok(Sized { data: new, shape, sizes });
        }
        let mut sizes = vec![None; shape.rank()];
        for (i, d) in bounded_dims(array).enumerate() {
            sizes[d] = Some(self.element(new, i + 1)?);
        }
        Ok(Sized { data: self.element(new, 0)?, shape, sizes })
    }

    /// All operands of an old instruction.
    pub(super) fn operands(&mut self, old: &Instr) -> Result<Vec<Sized>> {
        (0..old.operands.len()).map(|number| self.operand(old, number)).collect()
    }

    /// An array of the old shape, as data and sizes: those of bounded dimensions that are not given are the
    /// bounds, and those of static dimensions say nothing.
    pub(super) fn array(
        &mut self,
        data: InstrId,
        sizes: &[Option<InstrId>],
        old: &ArrayShape,
    ) -> Result<InstrId> {
        if old.is_static() {
            return Ok(data);
        }
        let mut parts = vec![data];
        for d in bounded_dims(old) {
            let size = sizes.get(d).copied().flatten();
            parts.push(match size {
                Some(size) => size,
                None => self.number(old.dims()[d])?,
            });
        }
        self.draft.add(Tuple, &parts)
    }

    /// The result of an old instruction, of one array.
    pub(super) fn result(
        &mut self,
        data: InstrId,
        sizes: &[Option<InstrId>],
        old: &Instr,
    ) -> Result<InstrId> {
        match old.shape.as_array() {
            Some(shape) => self.array(data, sizes, shape),
            None => Ok(data),
        }
    }

    /// The result of an old instruction of one array, or of a tuple of arrays which all have the same
    /// sizes.
    pub(super) fn results(
        &mut self,
        new: InstrId,
        sizes: &[Option<InstrId>],
        old: &Instr,
    ) -> Result<InstrId> {
        let Shape::Tuple(parts) = &old.shape else { return self.result(new, sizes, old) };
        let mut results = Vec::with_capacity(parts.len());
        for (i, part) in parts.iter().enumerate() {
            let data = self.element(new, i)?;
            results.push(match part.as_array() {
                Some(array) => self.array(data, sizes, array)?,
                None => data,
            });
        }
        self.draft.add(Tuple, &results)
    }

    /// An element of a tuple.
    pub(super) fn element(&mut self, tuple: InstrId, index: usize) -> Result<InstrId> {
        if let Op::Tuple(_) = self.draft.op(tuple) {
            return Ok(self.draft.operands(tuple)[index]);
        }
        if let Some(&known) = self.elements.get(&(tuple, index)) {
            return Ok(known);
        }
        let element = self.draft.add(GetTupleElement { index }, &[tuple])?;
        self.elements.insert((tuple, index), element);
        Ok(element)
    }

    /// A constant of an old array, which may be shorter than its bounds.
    pub(super) fn constant(&mut self, op: &Constant) -> Result<InstrId> {
        let Literal::Array(array) = &op.literal else { return self.draft.add(op.clone(), &[]) };
        let shape = array.shape().clone();
        let data = array.with_shape(static_shape(&shape)?)?;
        let constant = Constant { literal: Literal::Array(data), elided: op.elided };
        let data = self.draft.add(constant, &[])?;
        let mut sizes = vec![None; shape.rank()];
        for d in bounded_dims(&shape) {
            sizes[d] = Some(self.number(array.sizes()[d])?);
        }
        self.array(data, &sizes, &shape)
    }

    /// The size of a dimension at run time.
    pub(super) fn size(&mut self, x: &Sized, d: usize) -> Result<InstrId> {
        match x.sizes[d] {
            Some(size) => Ok(size),
            None => self.number(x.shape.dims()[d]),
        }
    }

    /// A number of elements as `s32[]`. More than that can say is said to be the most: dimensions that
    /// large are not bounded.
    pub(super) fn number(&mut self, number: usize) -> Result<InstrId> {
        self.integer(i32::try_from(number).unwrap_or(i32::MAX))
    }

    /// A constant of `s32[]`.
    pub(super) fn integer(&mut self, number: i32) -> Result<InstrId> {
        if let Some(&known) = self.numbers.get(&number) {
            return Ok(known);
        }
        let id = self.draft.add(Constant::new(Array::scalar(number)), &[])?;
        self.numbers.insert(number, id);
        Ok(id)
    }

    /// An operation of two scalars.
    pub(super) fn binary(&mut self, op: BinaryOp, a: InstrId, b: InstrId) -> Result<InstrId> {
        let key = (op, a, b);
        if let Some(&known) = self.sums.get(&key) {
            return Ok(known);
        }
        let id = self.draft.add(op, &[a, b])?;
        self.sums.insert(key, id);
        Ok(id)
    }

    /// The lesser of two sizes; `None` is what neither is greater than.
    pub(super) fn lesser(
        &mut self,
        a: Option<InstrId>,
        b: Option<InstrId>,
    ) -> Result<Option<InstrId>> {
        match (a, b) {
            (Some(a), Some(b)) if a != b => self.binary(BinaryOp::Minimum, a, b).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    }

    /// The least sizes of arrays that are gone through together, whose leading dimensions correspond.
    pub(super) fn least_sizes(&mut self, operands: &[Sized]) -> Result<Vec<Option<InstrId>>> {
        let Some((first, others)) = operands.split_first() else { return Ok(Vec::new()) };
        let mut sizes = first.sizes.clone();
        for other in others {
            for (size, &other) in sizes.iter_mut().zip(&other.sizes) {
                *size = self.lesser(*size, other)?;
            }
        }
        Ok(sizes)
    }

    /// A comparison of two scalars.
    pub(super) fn compare(
        &mut self,
        direction: Direction,
        a: InstrId,
        b: InstrId,
    ) -> Result<InstrId> {
        self.draft.add(Compare::new(direction), &[a, b])
    }

    /// A size that two operands of an old instruction must share in a dimension.
    fn same_size(&mut self, d: usize, a: InstrId, b: InstrId) -> Result<InstrId> {
        if a == b {
            return Ok(a);
        }
        if self.equal.insert((a.min(b), a.max(b))) {
            let is_same = self.compare(Direction::Eq, a, b)?;
            let message =
                format!("dimension {d} has size {{0}} in one operand and {{1}} in another");
            self.assert(is_same, a, &[a, b], message)?;
        }
        // The assertion, which has an effect, stays whether its value is used or not.
        Ok(a)
    }

    /// An element-wise operation: bounded dimensions have the size that all bounded ones of the operands
    /// have. `None` if bits are read as another number of elements along a bounded dimension.
    pub(super) fn elementwise(&mut self, old: &Instr) -> Result<Option<InstrId>> {
        let operands = self.operands(old)?;
        let shapes = self.shapes;
        let result = old.shape.as_array().cloned();
        let mut sizes: Vec<Option<InstrId>> = Vec::new();
        if let Some(result) = &result {
            sizes.resize(result.rank(), None);
            for d in bounded_dims(result) {
                for (x, id) in operands.iter().zip(&old.operands) {
                    let array = shapes[id.index()].as_array();
                    let kinds = array.map_or(&[][..], ArrayShape::kinds);
                    if kinds.get(d).is_none_or(|&kind| kind == DimKind::Static) {
                        continue;
                    }
                    if x.shape.dims()[d] != result.dims()[d] {
                        return Ok(None);
                    }
                    let size = self.size(x, d)?;
                    sizes[d] = Some(match sizes[d] {
                        Some(first) => self.same_size(d, first, size)?,
                        None => size,
                    });
                }
            }
        }
        let data: Vec<InstrId> = operands.iter().map(|x| x.data).collect();
        let data = self.draft.add(old.op.clone(), &data)?;
        self.result(data, &sizes, old).map(Some)
    }

    /// A scalar in each element.
    pub(super) fn filled(&mut self, scalar: InstrId, shape: &ArrayShape) -> Result<InstrId> {
        let broadcast = Broadcast { shape: shape.clone(), dimensions: Vec::new() };
        self.draft.add(broadcast, &[scalar])
    }

    /// A scalar constant.
    pub(super) fn scalar(&mut self, element: ElementType, number: Number) -> Result<InstrId> {
        let scalar = dispatch_type!(element, T => Array::scalar(T::from_number(number)));
        self.draft.add(Constant::new(scalar), &[])
    }

    /// For each element of a shape, whether it lies below these sizes; `None` if that is known of all.
    pub(super) fn within(
        &mut self,
        dims: &[usize],
        sizes: impl IntoIterator<Item = (usize, Option<InstrId>)>,
    ) -> Result<Option<InstrId>> {
        let shape = ArrayShape::of_sizes(ElementType::S32, dims)?;
        let mut all: Option<InstrId> = None;
        for (d, size) in sizes {
            let Some(size) = size else { continue };
            let place = self.draft.add(Iota { shape: shape.clone(), dimension: d }, &[])?;
            let size = self.filled(size, &shape)?;
            let below = self.compare(Direction::Lt, place, size)?;
            all = Some(match all {
                Some(all) => self.draft.add(BinaryOp::And, &[all, below])?,
                None => below,
            });
        }
        Ok(all)
    }

    /// The array with a scalar in the place of its padding along some dimensions.
    pub(super) fn masked(
        &mut self,
        x: &Sized,
        dims: impl IntoIterator<Item = usize>,
        fill: InstrId,
    ) -> Result<InstrId> {
        let sizes: Vec<_> = dims.into_iter().map(|d| (d, x.sizes[d])).collect();
        let Some(within) = self.within(x.shape.dims(), sizes)? else { return Ok(x.data) };
        let fill = self.filled(fill, &x.shape)?;
        self.draft.add(Select, &[within, x.data, fill])
    }
}
