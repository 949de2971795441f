//! The value of each instruction at an index, from the values of its operands. Operations that only
//! move elements add no value of their own: they turn the index into one of their operand's.

use std::iter::zip;

use helio_ir::ops::{self, indices_dims};
use helio_ir::{ArrayShape, BinaryOp, ElementType, Instr, InstrId, Op};
use smallvec::SmallVec;

use super::Stop;
use super::affine::{Affine, divide, linear_parts, reshape, split};
use super::graph::{
    Digits, Folded, FrameId, Graph, Guard, MAX_ELEMENTS, MAX_WRITTEN_OUT, Node, NodeId, Reduction,
    Source,
};
use super::reducer::{Reducer, ensure_params};

/// The element at an index of an instruction's result, or of a leaf of it if that is a tuple.
#[derive(Clone, Copy)]
pub(super) struct LeafElement<'m, 'a> {
    pub frame: FrameId,
    pub id: InstrId,
    pub instr: &'m Instr,
    /// The leaf's shape.
    pub shape: &'a ArrayShape,
    pub leaf: usize,
    /// The index, one expression for each dimension.
    pub map: &'a [Affine],
    /// Where the element is used: elsewhere it may be anything, and is not read from memory.
    pub guard: Guard,
}

/// The most elements that `pad` adds or crops in front in an index expression, which with more could
/// leave `i64`. More leave nothing of an array that a kernel may have.
const MAX_OFFSET: u64 = MAX_ELEMENTS as u64;
/// The most operands of a concatenation whose elements a kernel chooses from: each of them costs
/// every element a comparison.
const MAX_JOINED: usize = 32;

/// What takes indices apart.
static DIVIDE: Op = Op::Binary(BinaryOp::Divide);
static REMAINDER: Op = Op::Binary(BinaryOp::Remainder);
static SHIFT: Op = Op::Binary(BinaryOp::ShiftRightLogical);
static AND: Op = Op::Binary(BinaryOp::And);

type NodeResult = Result<NodeId, Stop>;

impl<'m> Graph<'m> {
    fn operand_shape(&self, place: LeafElement<'m, '_>, i: usize) -> Result<&'m ArrayShape, Stop> {
        let id = place.instr.operands[i];
        let shape = &self.frame_computation(place.frame).instr(id).shape;
        shape.as_array().ok_or_else(|| Stop::unsupported("an operand that is not an array"))
    }

    /// Operand `i` at the index `map`, used wherever the instruction is.
    fn operand(&mut self, place: LeafElement<'m, '_>, i: usize, map: Vec<Affine>) -> NodeResult {
        self.guarded(place, i, map, place.guard)
    }

    /// Operand `i` at the index `map`, used where `guard` holds.
    fn guarded(
        &mut self,
        place: LeafElement<'m, '_>,
        i: usize,
        map: Vec<Affine>,
        guard: Guard,
    ) -> NodeResult {
        self.value(place.frame, place.instr.operands[i], 0, map, guard)
    }

    /// The number of the fusion's parameter that is an instruction's first operand; `None` if that
    /// is something else.
    fn parameter(&self, place: LeafElement<'m, '_>) -> Option<usize> {
        let operand = self.frame_computation(place.frame).instr(place.instr.operands[0]);
        match &operand.op {
            Op::Parameter(op) if self.is_outermost(place.frame) => Some(op.number),
            _ => None,
        }
    }

    /// The value of an instruction other than `tuple`, `get-tuple-element` and `constant`.
    pub(super) fn instruction(&mut self, place: LeafElement<'m, '_>) -> NodeResult {
        match &place.instr.op {
            Op::Parameter(op) => {
                let source = Source::Operand(self.operand_leaf(op.number, place.leaf));
                let at = self.place_of(place.map, place.shape.dims());
                let load = Node::Load { source, at, guard: place.guard };
                self.push(load, place.shape.element())
            }
            Op::Iota(op) => {
                let at = place.map[op.dimension].clone();
                self.push(Node::Index(at), place.shape.element())
            }
            Op::Broadcast(op) => {
                let operand = self.operand_shape(place, 0)?;
                // Some of the operand's dimensions of size 1 become larger ones.
                let index = |(&d, &size): (&usize, &usize)| match size {
                    1 => Affine::default(),
                    _ => place.map[d].clone(),
                };
                let map = zip(&op.dimensions, operand.dims()).map(index).collect();
                self.operand(place, 0, map)
            }
            // Arrays are dense, so a reshape's elements lie where its operand's do.
            Op::Reshape(_) if let Some(number) = self.parameter(place) => {
                let source = Source::Operand(self.operand_leaf(number, 0));
                let at = self.place_of(place.map, place.shape.dims());
                let load = Node::Load { source, at, guard: place.guard };
                self.push(load, place.shape.element())
            }
            Op::Reshape(_) => {
                let map = self.reshaped(place, self.operand_shape(place, 0)?.dims())?;
                self.operand(place, 0, map)
            }
            Op::Bitcast(_) => {
                let from = self.operand_shape(place, 0)?;
                if from.element() != place.shape.element()
                    || !row_major(from)
                    || !row_major(place.shape)
                {
                    return Err(Stop::unsupported("a bitcast that is more than a reshape"));
                }
                let map = self.reshaped(place, from.dims())?;
                self.operand(place, 0, map)
            }
            Op::Copy(_) => self.operand(place, 0, place.map.to_vec()),
            Op::Transpose(op) => {
                let mut map = vec![Affine::default(); place.map.len()];
                zip(&op.permutation, place.map).for_each(|(&d, at)| map[d] = at.clone());
                self.operand(place, 0, map)
            }
            Op::Reverse(op) => {
                let mut map = place.map.to_vec();
                for &d in &op.dimensions {
                    map[d] = map[d].times(-1).offset(place.shape.dims()[d] as i64 - 1);
                }
                self.operand(place, 0, map)
            }
            Op::Slice(op) => {
                let index = |d: usize| {
                    // The stride of a dimension with one element may be anything.
                    let stride = if place.shape.dims()[d] == 1 { 0 } else { op.strides[d] };
                    place.map[d].times(stride as i64).offset(op.starts[d] as i64)
                };
                let map = (0..place.map.len()).map(index).collect();
                self.operand(place, 0, map)
            }
            Op::DynamicSlice(op) => {
                let sizes = self.operand_shape(place, 0)?.dims();
                let starts = self.starts(place, 1, sizes, &op.sizes)?;
                let map = zip(place.map, &starts).map(|(at, start)| at.plus(start, 1)).collect();
                self.operand(place, 0, map)
            }
            Op::DynamicUpdateSlice(_) => self.update(place),
            Op::Pad(op) => self.pad(place, op),
            Op::Concatenate(op) => self.concatenate(place, op.dimension),
            Op::Gather(op) => self.gather(place, op),
            Op::Reduce(op) => self.reduce(place, op),
            Op::Map(op) => {
                let operands = 0..place.instr.operands.len();
                let args = operands.map(|i| self.operand(place, i, place.map.to_vec()));
                let args = args.collect::<Result<_, _>>()?;
                self.inline(op.to_apply, args).map(|leaves| leaves[0])
            }
            op => self.elementwise(place, op),
        }
    }

    /// The index under the sizes `to` of the element that `place` names under its own. Where that is no
    /// affine expression, and no loop can be split to make it one, it is computed by division.
    fn reshaped(&mut self, place: LeafElement<'m, '_>, to: &[usize]) -> Result<Vec<Affine>, Stop> {
        let from = place.shape.dims();
        if from == to || from.contains(&0) {
            return reshape(place.map, from, to, self.bounds());
        }
        let mut map = Vec::with_capacity(to.len());
        for (index, sizes) in linear_parts(place.map, from, to)? {
            map.extend(match split(index.clone(), sizes, self.bounds()) {
                Err(Stop::Unsupported(_)) => self.divided(index, sizes)?,
                split => split?,
            });
        }
        Ok(map)
    }

    /// A row-major index taken apart into one index for each of `sizes`: by division at run time, but for the last ones that
    /// are affine expressions.
    fn divided(&mut self, mut index: Affine, sizes: &[usize]) -> Result<Vec<Affine>, Stop> {
        const TY: ElementType = ElementType::U32;
        if i32::try_from(sizes.iter().product::<usize>()).is_err() {
            return Err(Stop::unsupported("division of an index of more than 32 bits"));
        }
        let leading = sizes.iter().take_while(|&&size| size == 1).count();
        let mut map = vec![Affine::default(); sizes.len()];
        let mut count = sizes.len();
        while count > leading + 1
            && let Ok((quotient, rest)) = divide(&index, sizes[count - 1] as i64, self.bounds())
        {
            (index, map[count - 1]) = (quotient, rest);
            count -= 1;
        }
        let whole = index.clone();
        let mut index = self.push(Node::Index(index), TY)?;
        for d in (leading..count).rev().filter(|&d| sizes[d] > 1) {
            let (quotient, rest) = match sizes[d].is_power_of_two() {
                true => {
                    ((&SHIFT, u128::from(sizes[d].trailing_zeros())), (&AND, sizes[d] as u128 - 1))
                }
                false => ((&DIVIDE, sizes[d] as u128), (&REMAINDER, sizes[d] as u128)),
            };
            let mut apply = |(op, by): (&'static Op, u128)| {
                if !self.target.supports(op, &[TY, TY], TY) {
                    return Err(Stop::unsupported("a reshape that is not affine"));
                }
                let args = vec![index, self.literal(by, TY)?];
                self.push(Node::Apply { op, args }, TY)
            };
            if d > leading {
                let (rest, quotient) = (apply(rest)?, apply(quotient)?);
                map[d] = self.symbol(rest, sizes[d] - 1)?;
                index = quotient;
            } else {
                map[d] = self.symbol(index, sizes[d] - 1)?;
            }
        }
        let strides = helio_ir::types::strides(&sizes[..count]);
        let digits = (leading..count).filter(|&d| sizes[d] > 1);
        let places = digits.map(|d| match (&map[d].dims[..], &map[d].symbols[..]) {
            ([], &[(symbol, 1)]) if map[d].constant == 0 => Some((symbol, strides[d] as i64)),
            _ => None,
        });
        let digits = places.collect::<Option<_>>().map(|places| Digits { places, index: whole });
        if let Some(digits) = digits.filter(|digits| !self.digits.contains(digits)) {
            self.digits.push(digits);
        }
        Ok(map)
    }

    fn elementwise(&mut self, place: LeafElement<'m, '_>, op: &'m Op) -> NodeResult {
        let count = place.instr.operands.len();
        let types: SmallVec<[_; 3]> = (0..count)
            .map(|i| self.operand_shape(place, i).map(|shape| shape.element()))
            .collect::<Result<_, _>>()?;
        if !self.target.supports(op, &types, place.shape.element()) {
            return Err(Stop::unsupported(format!("{} of {types:?}", op.opcode())));
        }
        let mut args = Vec::with_capacity(count);
        for i in 0..count {
            // Scalar bounds and predicates hold for every element.
            let scalar = self.operand_shape(place, i)?.is_scalar();
            let map = if scalar { Vec::new() } else { place.map.to_vec() };
            args.push(self.operand(place, i, map)?);
        }
        if let Some(known) = self.of_indices(op, &args, place.shape.element())? {
            return Ok(known);
        }
        self.push(Node::Apply { op, args }, place.shape.element())
    }

    /// Where a box of `sizes` begins in an array of `dims`, an index for each dimension, clamped so
    /// that the box fits: the operands from number `first` on, or their elements, as known at run
    /// time.
    pub(super) fn starts(
        &mut self,
        place: LeafElement<'m, '_>,
        first: usize,
        dims: &[usize],
        sizes: &[usize],
    ) -> Result<Vec<Affine>, Stop> {
        // Either a scalar for each dimension, or all of them in one array.
        let together =
            dims.len() + first != place.instr.operands.len() || self.is_vector(place, first);
        zip(dims, sizes)
            .enumerate()
            .map(|(d, (&dim, &size))| {
                let start = match together {
                    true => self.operand(place, first, vec![Affine::constant(d as i64)])?,
                    false => self.operand(place, first + d, Vec::new())?,
                };
                self.symbol(start, dim - size)
            })
            .collect()
    }

    fn is_vector(&self, place: LeafElement<'m, '_>, i: usize) -> bool {
        i < place.instr.operands.len()
            && self.operand_shape(place, i).is_ok_and(|shape| shape.rank() == 1)
    }

    fn update(&mut self, place: LeafElement<'m, '_>) -> NodeResult {
        let sizes = self.operand_shape(place, 1)?.dims();
        let starts = self.starts(place, 2, place.shape.dims(), sizes)?;
        let map: Vec<Affine> =
            zip(place.map, &starts).map(|(at, start)| at.plus(start, -1)).collect();
        let when = zip(&map, sizes).try_fold(Guard::ALWAYS, |when, (at, &size)| {
            let when = self.and(when, at, 0, false)?;
            self.and(when, at, size as i64, true)
        });
        let whole = self.operand(place, 0, place.map.to_vec());
        self.choose(place, when, |this, guard| this.guarded(place, 1, map, guard), whole?)
    }

    /// `yes` where `when` holds, else `no`; `when` is `None` if it holds nowhere.
    fn choose(
        &mut self,
        place: LeafElement<'m, '_>,
        when: Option<Guard>,
        yes: impl FnOnce(&mut Self, Guard) -> NodeResult,
        no: NodeId,
    ) -> NodeResult {
        let Some(when) = when else { return Ok(no) };
        let Some(guard) = self.both(place.guard, when) else { return Ok(no) };
        let yes = yes(self, guard)?;
        if when == Guard::ALWAYS {
            return Ok(yes);
        }
        self.push(Node::Choose { when, yes, no }, place.shape.element())
    }

    fn pad(&mut self, place: LeafElement<'m, '_>, op: &ops::Pad) -> NodeResult {
        let sizes = self.operand_shape(place, 0)?.dims();
        let mut map = Vec::with_capacity(sizes.len());
        let mut when = Some(Guard::ALWAYS);
        for (d, (pad, &size)) in zip(&op.dims, sizes).enumerate() {
            if pad.interior > 0 && size > 1 {
                return Err(Stop::unsupported("padding between elements"));
            }
            if pad.low.unsigned_abs() > MAX_OFFSET {
                if size > MAX_ELEMENTS {
                    return Err(Stop::unsupported("padding of a huge array"));
                }
                // The result has no element of the operand.
                when = None;
                map.push(Affine::default());
                continue;
            }
            let at = place.map[d].offset(-pad.low);
            when = when
                .and_then(|when| self.and(when, &at, 0, false))
                .and_then(|when| self.and(when, &at, size as i64, true));
            map.push(at);
        }
        let fill = self.operand(place, 1, Vec::new())?;
        self.choose(place, when, |this, guard| this.guarded(place, 0, map, guard), fill)
    }

    fn concatenate(&mut self, place: LeafElement<'m, '_>, dimension: usize) -> NodeResult {
        let count = place.instr.operands.len();
        let sizes = (0..count)
            .map(|i| self.operand_shape(place, i).map(|shape| shape.dims()[dimension] as i64))
            .collect::<Result<Vec<_>, _>>()?;
        let begins = sizes.iter().scan(0, |end, &size| Some(std::mem::replace(end, *end + size)));
        let begins: Vec<i64> = begins.collect();
        let at = &place.map[dimension];
        // The operands that the index can reach, from the last to the first: `value` is right from
        // where the one that was looked at last begins.
        let (least, greatest) = at.range(self.bounds());
        let reach = |i: &usize| begins[*i] <= greatest && begins[*i] + sizes[*i] > least;
        let parts: Vec<usize> = (0..count).filter(|&i| sizes[i] > 0).filter(reach).collect();
        if parts.len() > MAX_JOINED {
            return Err(Stop::unsupported(format!(
                "a concatenation of more than {MAX_JOINED} arrays"
            )));
        }
        let part = |this: &mut Self, i: usize, guard: Guard| {
            let mut map = place.map.to_vec();
            map[dimension] = map[dimension].offset(-begins[i]);
            this.guarded(place, i, map, guard)
        };
        let mut value = None;
        for &i in parts.iter().rev() {
            let end = begins[i] + sizes[i];
            let within = self.and(place.guard, at, end, true);
            let within = within.and_then(|guard| self.and(guard, at, begins[i], false));
            let Some(within) = within else { continue };
            let this_part = part(self, i, within)?;
            value = Some(match value {
                None => this_part,
                Some(later) => {
                    let when = self.and(Guard::ALWAYS, at, end, true).unwrap_or(Guard::ALWAYS);
                    let choose = Node::Choose { when, yes: this_part, no: later };
                    self.push(choose, place.shape.element())?
                }
            });
        }
        match value {
            Some(value) => Ok(value),
            // Nowhere is the value needed: any will do.
            None => self.literal(0, place.shape.element()),
        }
    }

    fn gather(&mut self, place: LeafElement<'m, '_>, op: &ops::Gather) -> NodeResult {
        let operand = self.operand_shape(place, 0)?;
        let indices = self.operand_shape(place, 1)?;
        let dims = &op.dims;
        // Slices without elements, of which the result nevertheless has some: dimensions of size 0
        // are collapsed like those of size 1.
        if op.slice_sizes.contains(&0) {
            return self.literal(0, place.shape.element());
        }
        let mut map = vec![Affine::default(); operand.rank()];
        for (d, &at) in zip(dims.offset_operand_dims(operand.rank()), &dims.offset_dims) {
            map[d] = place.map[at].clone();
        }
        let batch: Vec<&Affine> =
            dims.batch_dims(place.map.len()).into_iter().map(|d| &place.map[d]).collect();
        let mut index = vec![Affine::default(); indices.rank()];
        for (d, &at) in zip(indices_dims(indices.rank(), dims.index_vector_dim), &batch) {
            index[d] = at.clone();
        }
        for (&d, &from) in zip(&dims.operand_batching_dims, &dims.start_indices_batching_dims) {
            map[d] = index[from].clone();
        }
        for (component, &d) in dims.start_index_map.iter().enumerate() {
            let mut index = index.clone();
            if dims.index_vector_dim < index.len() {
                index[dims.index_vector_dim] = Affine::constant(component as i64);
            }
            let start = self.operand(place, 1, index)?;
            let start = self.symbol(start, operand.dims()[d] - op.slice_sizes[d])?;
            map[d] = map[d].plus(&start, 1);
        }
        self.operand(place, 0, map)
    }

    fn reduce(&mut self, place: LeafElement<'m, '_>, op: &ops::Reduce) -> NodeResult {
        let count = place.instr.operands.len() / 2;
        let shape = self.operand_shape(place, 0)?;
        let dims: Vec<usize> = (0..shape.rank()).filter(|d| op.dimensions.contains(d)).collect();
        let sizes: Vec<usize> = dims.iter().map(|&d| shape.dims()[d]).collect();
        let mut map = vec![Affine::default(); shape.rank()];
        let kept = (0..shape.rank()).filter(|d| !op.dimensions.contains(d));
        zip(kept, place.map).for_each(|(d, at)| map[d] = at.clone());

        let inits: Vec<NodeId> = (count..2 * count)
            .map(|i| self.operand(place, i, Vec::new()))
            .collect::<Result<_, _>>()?;
        let elements: usize = sizes.iter().product();
        let Folded { sizes: folded, exprs, dims: loops } = self.folded().clone();
        if elements <= MAX_WRITTEN_OUT && (loops == 0 || sizes != folded) {
            let types = inits.iter().map(|&id| Ok(self.info(id).ty));
            let arrays = (0..count).map(|i| Ok(self.operand_shape(place, i)?.element()));
            let types = types.chain(arrays).collect::<Result<Vec<_>, Stop>>()?;
            ensure_params(self, op.to_apply, &types)?;
            let mut values = inits;
            let mut points = helio_ir::types::IndexIter::new(&sizes);
            while let Some(point) = points.next_point() {
                zip(&dims, point).for_each(|(&d, &at)| map[d] = Affine::constant(at as i64));
                let elements = (0..count).map(|i| self.operand(place, i, map.clone()));
                let elements = elements.collect::<Result<Vec<_>, _>>()?;
                values.extend(elements);
                values = self.inline(op.to_apply, values)?;
            }
            // All leaves are made together: asked for one after the other, each would fold all of them anew.
            for (leaf, &value) in values.iter().enumerate() {
                self.note_leaf(place, leaf, value);
            }
            return Ok(values[place.leaf]);
        }
        if folded.iter().product::<usize>() != elements {
            return Err(Stop::unsupported("reductions over different numbers of elements"));
        }
        let inner = reshape(&exprs, &folded, &sizes, self.bounds())?;
        if place.guard != Guard::ALWAYS || map.iter().any(|at| self.affine_info(at).0 & loops != 0)
        {
            return Err(Stop::unsupported("a reduction inside of another"));
        }
        zip(&dims, inner).for_each(|(&d, at)| map[d] = at);
        let inputs: Vec<NodeId> =
            (0..count).map(|i| self.operand(place, i, map.clone())).collect::<Result<_, _>>()?;
        let leaves = place.instr.shape.leaves();
        let types: Vec<_> =
            leaves.iter().filter_map(|leaf| leaf.as_array()).map(|leaf| leaf.element()).collect();
        let reducer = Reducer::new(self, op.to_apply, &types, &inputs)?;
        let same =
            |r: &Reduction<'_>| (&r.inputs, &r.inits, r.to_apply) == (&inputs, &inits, op.to_apply);
        let known = self.reductions.iter().position(same);
        let reduction = known.unwrap_or(self.reductions.len());
        if known.is_none() {
            let levels = inputs.iter().chain(&inits).map(|&id| self.info(id).level);
            let level = levels.max().unwrap_or(0);
            self.reductions.push(Reduction {
                inputs,
                inits,
                to_apply: op.to_apply,
                reducer,
                types,
                level,
                done: false,
            });
        }
        self.push(Node::Reduced { reduction, leaf: place.leaf }, place.shape.element())
    }
}

/// Whether the elements lie in row-major order, as far as the program says.
fn row_major(shape: &ArrayShape) -> bool {
    let default = |layout: &helio_ir::Layout| {
        layout.minor_to_major.iter().copied().eq((0..shape.rank()).rev())
    };
    shape.layout().is_none_or(default)
}
