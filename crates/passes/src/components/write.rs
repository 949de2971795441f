//! Bodies and conditions of components.

use std::ops::Range;

use helio_ir::ops::{
    Broadcast, Concatenate, Constant, Dot, DynamicSlice, DynamicUpdateSlice, GetTupleElement, Iota,
    Pad, PadDim, Parameter, Reduce, Reshape, Reverse, Slice, Transpose, Tuple,
};
use helio_ir::{
    Array, ArrayShape, BinaryOp, CompId, Computation, Error, Instr, InstrId, Native, Number, Op,
    Result, Shape, dispatch_type,
};

use super::{Parts, Split};
use crate::draft::{Draft, parameter_number};
use crate::recognize::reducer;

/// How the results of instructions are split.
pub(super) type SplitOf<'a> = &'a dyn Fn(InstrId, &ArrayShape) -> Split;

/// Adds the body or the condition of a loop, of a state of this shape in which the parts of each element of the old
/// state are at these places.
pub(super) fn of_components(
    draft: &mut Draft<'_>,
    id: CompId,
    state: &Shape,
    places: &[Range<usize>],
    split: SplitOf<'_>,
) -> Result<CompId> {
    let old = draft.module().computation(id).clone();
    let mut new = Draft::new(draft.module(), old.name.clone());
    let state = new.add(Parameter { number: 0, shape: state.clone() }, &[])?;
    let count = old.instrs().len();
    let (parts, first) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut writer = Writer { draft: new, old: &old, split, places, state, parts, first };
    for (id, instr) in old.ids().zip(old.instrs()) {
        writer.draft.stand_for(instr);
        let parts = writer.write(id, instr)?;
        for &part in &parts {
            if writer.draft.instr(part).name.is_empty() {
                writer.draft.rename(part, instr.name.clone());
            }
        }
        writer.first.push(parts[0]);
        writer.parts.push(parts);
    }
    let Writer { draft: new, first, .. } = writer;
    let new = new.finish(first[old.root().index()])?;
    draft.module().push(new)
}

/// A computation in the making, of components.
struct Writer<'m, 'a> {
    draft: Draft<'m>,
    old: &'a Computation,
    split: SplitOf<'a>,
    places: &'a [Range<usize>],
    state: InstrId,
    /// What stands for the instructions of the old computation so far,
    parts: Vec<Parts>,
    /// and the first of each.
    first: Vec<InstrId>,
}

impl Writer<'_, '_> {
    /// Adds what stands for an instruction.
    fn write(&mut self, id: InstrId, instr: &Instr) -> Result<Parts> {
        let is_state = |id: InstrId| parameter_number(&self.old.instr(id).op).is_some();
        match (&instr.op, &instr.operands[..]) {
            (Op::Parameter(_), _) => Ok(Parts::from_slice(&[self.state])),
            (Op::GetTupleElement(op), &[tuple]) if is_state(tuple) => {
                let places = self.places[op.index].clone();
                let part = |index| self.draft.add(GetTupleElement { index }, &[self.state]);
                places.map(part).collect()
            }
            (Op::Tuple(_), operands) if id == self.old.root() => {
                let next = operands.iter().flat_map(|x| &self.parts[x.index()]);
                let next: Vec<InstrId> = next.copied().collect();
                Ok(Parts::from_slice(&[self.draft.add(Tuple, &next)?]))
            }
            (_, operands) if !operands.iter().chain([&id]).any(|&id| self.is_split(id)) => {
                Ok(Parts::from_slice(&[self.draft.carry(instr.clone(), &self.first)]))
            }
            (Op::Constant(_), _) => {
                let whole = self.draft.push(instr.clone());
                self.split(id)?.parts_of(&mut self.draft, whole)
            }
            (Op::Iota(op), _) => self.iota(op, id),
            (Op::Broadcast(op), &[x]) => self.broadcast(op, x, id),
            (Op::Reshape(_), &[x]) => self.reshape(x, id),
            (Op::Transpose(op), &[x]) => self.transpose(op, x, id),
            (Op::Slice(op), &[x]) => self.slice(op, x, id),
            (Op::Pad(op), &[x, fill]) => self.pad(op, [x, fill], id),
            (Op::Reverse(op), &[x]) => self.reverse(op, x, id),
            (Op::Concatenate(op), operands) => self.concatenate(op, operands, id),
            (Op::DynamicSlice(op), [x, starts @ ..]) => self.dynamic_slice(op, *x, starts),
            (Op::DynamicUpdateSlice(_), [x, update, starts @ ..]) => {
                self.dynamic_update_slice([*x, *update], starts)
            }
            (Op::Reduce(op), &[x, init]) => self.reduce(op, [x, init], id),
            (Op::Dot(op), &[lhs, rhs]) => self.product(op, [lhs, rhs], id),
            // What is left is element-wise: other operations' dimensions stay.
            (op, operands) => {
                let split = self.split(id)?;
                let part = |number: usize| {
                    let operand = |x: &InstrId| match self.parts[x.index()][..] {
                        [scalar] => scalar,
                        ref parts => parts[number],
                    };
                    let operands: Vec<InstrId> = operands.iter().map(operand).collect();
                    self.draft.add(op.clone(), &operands)
                };
                (0..split.count()).map(part).collect()
            }
        }
    }

    fn is_split(&self, id: InstrId) -> bool {
        let array = self.old.instr(id).shape.as_array();
        array.is_some_and(|array| (self.split)(id, array).components().next().is_some())
    }

    fn split(&self, id: InstrId) -> Result<Split> {
        Ok((self.split)(id, array(self.old, id)?))
    }

    /// A component of the operand for each one of the result, as indices say, changed by an operation on the dimensions
    /// that it has, if there is one to do.
    fn moved(
        &mut self,
        x: InstrId,
        id: InstrId,
        op: Option<Op>,
        from: impl Fn(&[usize]) -> Vec<usize>,
    ) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let part = |point: Vec<usize>| {
            let part = self.parts[x.index()][of.number(&from(&point))];
            match &op {
                Some(op) => self.draft.add(op.clone(), &[part]),
                None => Ok(part),
            }
        };
        to.points().map(part).collect()
    }

    fn iota(&mut self, op: &Iota, id: InstrId) -> Result<Parts> {
        let split = self.split(id)?;
        let (d, element) = (op.dimension, split.shape.element());
        if split.is_component[d] {
            // A number for each component.
            let shape = split.part_shape()?;
            let part = |point: Vec<usize>| {
                let number = Number::Int(point[d] as i128);
                let number = dispatch_type!(element, T => Array::scalar(T::from_number(number)));
                let number = self.draft.add(Constant::new(number), &[])?;
                let op = Broadcast { shape: shape.clone(), dimensions: Vec::new() };
                self.draft.add(op, &[number])
            };
            return split.points().map(part).collect();
        }
        let part = Iota { shape: split.part_shape()?, dimension: split.place(d) };
        let part = self.draft.add(part, &[])?;
        Ok(Parts::from_elem(part, split.count()))
    }

    fn broadcast(&mut self, op: &Broadcast, x: InstrId, id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let dimensions: Vec<usize> = of.kept().map(|d| to.place(op.dimensions[d])).collect();
        let is_new = of.sizes() != to.sizes() || !dimensions.is_sorted();
        let repeated = Broadcast { shape: to.part_shape()?, dimensions };
        self.moved(x, id, is_new.then(|| repeated.into()), |point| {
            op.dimensions.iter().map(|&to| point[to]).collect()
        })
    }

    fn reshape(&mut self, x: InstrId, id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        if of.sizes() == to.sizes() {
            return Ok(self.parts[x.index()].clone());
        }
        // Components keep their order.
        let shape = to.part_shape()?;
        let part = |&part: &InstrId| self.draft.add(Reshape { shape: shape.clone() }, &[part]);
        self.parts[x.index()].iter().map(part).collect()
    }

    fn transpose(&mut self, op: &Transpose, x: InstrId, id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let permutation: Vec<usize> = to.kept().map(|d| of.place(op.permutation[d])).collect();
        let is_moved = !permutation.is_sorted();
        let transposed = is_moved.then(|| Transpose { permutation }.into());
        self.moved(x, id, transposed, |point| {
            let mut from = vec![0; point.len()];
            op.permutation.iter().zip(point).for_each(|(&d, &at)| from[d] = at);
            from
        })
    }

    fn slice(&mut self, op: &Slice, x: InstrId, id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let part = Slice {
            starts: of.kept_of(&op.starts),
            limits: of.kept_of(&op.limits),
            strides: of.kept_of(&op.strides),
        };
        let is_less = of.sizes() != to.sizes();
        self.moved(x, id, is_less.then(|| part.into()), |point| {
            let ends = op.starts.iter().zip(&op.strides).zip(point);
            ends.map(|((start, stride), at)| start + at * stride).collect()
        })
    }

    fn reverse(&mut self, op: &Reverse, x: InstrId, id: InstrId) -> Result<Parts> {
        let of = self.split(x)?;
        let kept = op.dimensions.iter().filter(|&&d| !of.is_component[d]);
        let dimensions: Vec<usize> = kept.map(|&d| of.place(d)).collect();
        let reversed = (!dimensions.is_empty()).then(|| Reverse { dimensions }.into());
        self.moved(x, id, reversed, |point| {
            let mut from = point.to_vec();
            let turned = op.dimensions.iter().filter(|&&d| of.is_component[d]);
            turned.for_each(|&d| from[d] = of.shape.dims()[d] - 1 - point[d]);
            from
        })
    }

    fn pad(&mut self, op: &Pad, [x, fill]: [InstrId; 2], id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let fill = self.first[fill.index()];
        let padding = of.kept_of(&op.dims);
        let is_padded = padding.iter().any(|dim| *dim != PadDim::edges(0, 0));
        let shape = to.part_shape()?;
        let part = |point: Vec<usize>| {
            let mut from = point.clone();
            for d in to.components() {
                let PadDim { low, interior, .. } = op.dims[d];
                let at = point[d] as i128 - i128::from(low);
                let step = interior as i128 + 1;
                if at < 0 || at % step != 0 || at / step >= of.shape.dims()[d] as i128 {
                    let op = Broadcast { shape: shape.clone(), dimensions: Vec::new() };
                    return self.draft.add(op, &[fill]);
                }
                from[d] = (at / step) as usize;
            }
            let part = self.parts[x.index()][of.number(&from)];
            match is_padded {
                true => self.draft.add(Pad { dims: padding.clone() }, &[part, fill]),
                false => Ok(part),
            }
        };
        to.points().map(part).collect()
    }

    fn concatenate(
        &mut self,
        op: &Concatenate,
        operands: &[InstrId],
        id: InstrId,
    ) -> Result<Parts> {
        let (to, d) = (self.split(id)?, op.dimension);
        let splits: Vec<Split> = operands.iter().map(|&x| self.split(x)).collect::<Result<_>>()?;
        let part = |mut point: Vec<usize>| {
            if !to.is_component[d] {
                let pieces = operands.iter().zip(&splits);
                let pieces = pieces.map(|(x, of)| self.parts[x.index()][of.number(&point)]);
                let pieces: Vec<InstrId> = pieces.collect();
                return self.draft.add(Concatenate { dimension: to.place(d) }, &pieces);
            }
            for (x, of) in operands.iter().zip(&splits) {
                let size = of.shape.dims()[d];
                if point[d] < size {
                    return Ok(self.parts[x.index()][of.number(&point)]);
                }
                point[d] -= size;
            }
            Err(Error::internal("the pieces are less than the whole"))
        };
        to.points().map(part).collect()
    }

    fn dynamic_slice(
        &mut self,
        op: &DynamicSlice,
        x: InstrId,
        starts: &[InstrId],
    ) -> Result<Parts> {
        let of = self.split(x)?;
        let sizes = of.kept_of(&op.sizes);
        if sizes.is_empty() {
            return Ok(self.parts[x.index()].clone());
        }
        let starts = of.kept_of(starts);
        let part = |&part: &InstrId| {
            let starts = starts.iter().map(|start| self.first[start.index()]);
            let operands: Vec<InstrId> = [part].into_iter().chain(starts).collect();
            self.draft.add(DynamicSlice { sizes: sizes.clone() }, &operands)
        };
        self.parts[x.index()].iter().map(part).collect()
    }

    fn dynamic_update_slice(
        &mut self,
        [x, update]: [InstrId; 2],
        starts: &[InstrId],
    ) -> Result<Parts> {
        let of = self.split(x)?;
        if of.sizes().is_empty() {
            return Ok(self.parts[update.index()].clone());
        }
        let starts = of.kept_of(starts);
        let pairs = self.parts[x.index()].iter().zip(&self.parts[update.index()]);
        let part = |(&part, &update): (&InstrId, &InstrId)| {
            let starts = starts.iter().map(|start| self.first[start.index()]);
            let operands: Vec<InstrId> = [part, update].into_iter().chain(starts).collect();
            self.draft.add(DynamicUpdateSlice, &operands)
        };
        pairs.map(part).collect()
    }

    fn reduce(&mut self, op: &Reduce, [x, init]: [InstrId; 2], id: InstrId) -> Result<Parts> {
        let (of, to) = (self.split(x)?, self.split(id)?);
        let fold = reducer(self.draft.callees(), op.to_apply, of.shape.element());
        let fold = fold.ok_or_else(|| Error::internal("folds that are split are one operation"))?;
        let init = self.first[init.index()];
        let kept = op.dimensions.iter().filter(|&&d| !of.is_component[d]);
        let dimensions: Vec<usize> = kept.map(|&d| of.place(d)).collect();
        let mut groups: Vec<Parts> = vec![Parts::new(); to.count()];
        for (point, &part) in of.points().zip(&self.parts[x.index()]) {
            let dims = (0..point.len()).filter(|d| !op.dimensions.contains(d));
            let point: Vec<usize> = dims.map(|d| point[d]).collect();
            groups[to.number(&point)].push(part);
        }
        let fold = |group: Parts| {
            let mut group = group.into_iter();
            let first = match dimensions.is_empty() {
                true => {
                    let shape = to.part_shape()?;
                    Some(self.draft.add(Broadcast { shape, dimensions: Vec::new() }, &[init])?)
                }
                false => group.next(),
            };
            let first = first.ok_or_else(|| Error::internal("a fold of no component"))?;
            let all = group.try_fold(first, |sum, part| self.draft.add(fold, &[sum, part]))?;
            match dimensions.is_empty() {
                true => Ok(all),
                false => self
                    .draft
                    .add(Reduce { dimensions: dimensions.clone(), ..op.clone() }, &[all, init]),
            }
        };
        groups.into_iter().map(fold).collect()
    }

    /// A sum of products of components, each repeated along the other one's free dimensions.
    fn product(&mut self, op: &Dot, operands: [InstrId; 2], id: InstrId) -> Result<Parts> {
        let to = self.split(id)?;
        let dims = &op.dims;
        let of = [self.split(operands[0])?, self.split(operands[1])?];
        let batch = dims.lhs_batch.len();
        let lhs_free = dims.lhs_free(of[0].shape.rank());
        let rhs_free = dims.rhs_free(of[1].shape.rank());
        // For each operand, the dimension of the result that one of its dimensions is.
        let sides = [
            (&dims.lhs_batch, &lhs_free, batch, &dims.lhs_contracting),
            (&dims.rhs_batch, &rhs_free, batch + lhs_free.len(), &dims.rhs_contracting),
        ];
        let sizes = dims.lhs_contracting.iter().map(|&d| of[0].shape.dims()[d]);
        let contracted: Vec<usize> = sizes.collect();
        let terms: usize = contracted.iter().product();
        let shape = to.part_shape()?;
        let term = |this: &mut Self, point: &[usize], term: usize| {
            let mut factors = [InstrId(0); 2];
            for (side, (batch_dims, free, first_free, contracting)) in sides.iter().enumerate() {
                let of = &of[side];
                let mut from = vec![0; of.shape.rank()];
                let mut result_of = vec![0; of.shape.rank()];
                let pairs = batch_dims.iter().enumerate().map(|(i, &d)| (i, d));
                let free = free.iter().enumerate().map(|(i, &d)| (first_free + i, d));
                for (result, d) in pairs.chain(free) {
                    (from[d], result_of[d]) = (point[result], result);
                }
                let mut number = term;
                for (&d, size) in contracting.iter().zip(&contracted).rev() {
                    from[d] = number % size;
                    number /= size;
                }
                let part = this.parts[operands[side].index()][of.number(&from)];
                let dimensions: Vec<usize> = of.kept().map(|d| to.place(result_of[d])).collect();
                let is_whole = dimensions.len() == shape.rank() && dimensions.is_sorted();
                factors[side] = match is_whole {
                    true => part,
                    false => {
                        this.draft.add(Broadcast { shape: shape.clone(), dimensions }, &[part])?
                    }
                };
            }
            this.draft.add(BinaryOp::Multiply, &factors)
        };
        let sum = |point: Vec<usize>| {
            let first = term(self, &point, 0)?;
            (1..terms).try_fold(first, |sum, i| {
                let product = term(self, &point, i)?;
                self.draft.add(BinaryOp::Add, &[sum, product])
            })
        };
        to.points().map(sum).collect()
    }
}

fn array(computation: &Computation, id: InstrId) -> Result<&ArrayShape> {
    let array = computation.instr(id).shape.as_array();
    array.ok_or_else(|| Error::internal("what is split must be an array"))
}
