//! Which dimension of an operation's operands is which of its space.

use helio_ir::ops::{ConvDims, PadDim, Window};
use helio_ir::{ArrayShape, BinaryOp, ElementType, Op, Shape};

use super::{Kind, Local};
use crate::lower::Lowering;
use crate::lower::attrs::Attrs;
use crate::lower::types;
use crate::mlir::{Attribute, Operation, Type};
use crate::table;

/// Element-wise operations with attributes or other element types; those without are in a table.
const ELEMENTWISE: &[&str] = &[
    "stablehlo.bitcast_convert",
    "stablehlo.clamp",
    "stablehlo.compare",
    "stablehlo.convert",
    "stablehlo.reduce_precision",
    "stablehlo.select",
];

/// The dimension of the space that each dimension of an operand is.
pub(super) type Dims = Vec<Option<usize>>;

/// The operands and results of an operation, whose sizes are known.
pub(super) struct Rule<'s, 'm> {
    pub(super) op: &'m Operation,
    attrs: &'s Attrs<'m>,
    pub(super) operands: &'s [ArrayShape],
    pub(super) result: &'s ArrayShape,
}

/// A rule's answer: what is different on tiles, the operands' dimensions, the sizes of the dimensions of the
/// space after those of the result, and how elements are combined along them.
pub(super) struct Answer(
    pub(super) Kind,
    pub(super) Vec<Dims>,
    pub(super) Vec<usize>,
    pub(super) Option<BinaryOp>,
);

impl Local {
    /// How an operation is done on tiles; `None` if it is done on whole arrays only.
    pub(in crate::lower) fn of(op: &Operation, cx: &Lowering<'_>) -> Option<Self> {
        let types = |values: &[_]| -> Option<Vec<ArrayShape>> {
            values.iter().map(|&value| plain(cx.source.type_of(value))).collect()
        };
        let (operands, results) = (types(&op.operands)?, types(&op.results)?);
        let (result, attrs) = (results.first()?, Attrs::new(&op.attributes));
        if results.iter().any(|other| other.dims() != result.dims()) {
            return None;
        }
        let rule = Rule { op, attrs: &attrs, operands: &operands, result };
        let is_elementwise = is_elementwise(op, cx, &operands);
        let answer = if is_elementwise { rule.elementwise() } else { rule.answer() };
        Local::new(answer?, &operands, result)
    }

    pub(super) fn new(
        answer: Answer,
        operands: &[ArrayShape],
        result: &ArrayShape,
    ) -> Option<Self> {
        let Answer(kind, dims, others, combine) = answer;
        let mut cuts = [result.dims(), &others].concat();
        let is_combined = |dim: usize| dim < result.rank() || combine.is_some();
        let mut is_open: Vec<bool> = (0..cuts.len()).map(is_combined).collect();
        if !matches!(kind, Kind::Splat | Kind::Iota(_) | Kind::Broadcast) {
            for (dim, is_open) in is_open.iter_mut().enumerate() {
                *is_open &= dims.iter().flatten().any(|&place| place == Some(dim));
            }
        }
        for (dims, shape) in dims.iter().zip(operands) {
            if dims.len() != shape.rank() {
                return None;
            }
            for (&dim, &size) in dims.iter().zip(shape.dims()) {
                if let Some(dim) = dim {
                    let cut = cuts.get_mut(dim)?;
                    *cut = gcd(*cut, size);
                }
            }
        }
        cuts.iter_mut().zip(is_open).filter(|(_, open)| !open).for_each(|(cut, _)| *cut = 1);
        let fits = dims.len() == operands.len();
        fits.then(|| Local { kind, operands: dims, cuts, rank: result.rank(), combine })
    }
}

impl Rule<'_, '_> {
    fn answer(&self) -> Option<Answer> {
        let of_kind = |kind: Kind, dims: Vec<Dims>| Some(Answer(kind, dims, Vec::new(), None));
        match self.op.name.strip_prefix("stablehlo.")? {
            "constant" => match self.op.attribute("value") {
                Some(Attribute::Dense(dense)) if dense.is_splat => of_kind(Kind::Splat, vec![]),
                _ => None,
            },
            "iota" => {
                let dim = self.attrs.size("iota_dimension").ok();
                let dim = dim.filter(|&dim| dim < self.result.rank())?;
                of_kind(Kind::Iota(dim), vec![])
            }
            "broadcast_in_dim" => self.broadcast(),
            "reshape" => of_kind(Kind::Reshape, vec![self.reshape()?]),
            "reverse" => of_kind(Kind::Reverse, vec![(0..self.result.rank()).map(Some).collect()]),
            "reduce" => self.reduce(),
            "dot_general" => self.dot(),
            "slice" => of_kind(Kind::Slice, vec![self.kept()]),
            "dynamic_slice" => of_kind(Kind::DynamicSlice, self.and_scalars(vec![self.kept()])),
            "reduce_window" | "select_and_scatter" => self.windows(),
            "gather" => self.gather(),
            "scatter" => self.scatter(),
            "convolution" => self.convolution(),
            name => of_kind(Kind::Plain, self.moved(name)?),
        }
    }

    /// The operands' dimensions of an operation whose result has them where they are, but for some that are
    /// whole.
    fn moved(&self, name: &str) -> Option<Vec<Dims>> {
        let rank = self.result.rank();
        let all = || (0..rank).map(Some).collect::<Dims>();
        let each = |dims: Dims| vec![dims; self.operands.len()];
        Some(match name {
            "transpose" => {
                let permutation = self.sizes("permutation")?;
                let place = |d: usize| permutation.iter().position(|&dim| dim == d).map(Some);
                vec![(0..rank).map(place).collect::<Option<Dims>>()?]
            }
            "concatenate" => {
                let joined = self.attrs.size("dimension").ok()?;
                each(without(all(), |d| d == joined))
            }
            "sort" => {
                let dim = self.attrs.integer("dimension").ok()?.unwrap_or(-1);
                let dim = if dim < 0 { dim + rank as i64 } else { dim };
                each(without(all(), |d| d as i64 == dim))
            }
            "dynamic_update_slice" => {
                let [operand, update, ..] = self.operands else { return None };
                let dims = same(operand, update)?;
                self.and_scalars(vec![dims.clone(), dims])
            }
            "pad" => {
                let Some(Op::Pad(pad)) = self.read("pad") else { return None };
                let is_padded = |dim: &PadDim| (dim.low, dim.high, dim.interior) != (0, 0, 0);
                let is_changed = |d: usize| pad.dims.get(d).is_none_or(is_padded);
                self.and_scalars(vec![without(all(), is_changed)])
            }
            "fft" => {
                let count = self.sizes("fft_length")?.len();
                vec![without(all(), |d| d + count >= rank)]
            }
            // Matrices are whole.
            "cholesky" | "triangular_solve" => each(without(all(), |d| d + 2 >= rank)),
            _ => return None,
        })
    }

    fn sizes(&self, name: &str) -> Option<Vec<usize>> {
        self.attrs.needed_sizes(name).ok()
    }

    /// The operation without regions that has this name in HLO.
    pub(super) fn read(&self, opcode: &str) -> Option<Op> {
        self.reading(|from| table::read(opcode, from))?.ok()
    }

    /// Runs what reads attributes by the table's codecs.
    pub(super) fn reading<T>(&self, read: impl FnOnce(&table::Reading<'_, '_>) -> T) -> T {
        let shapes: Vec<Shape> = self.operands.iter().cloned().map(Shape::Array).collect();
        let operands: Vec<&Shape> = shapes.iter().collect();
        let results = [Some(self.result.clone())];
        let attrs = self.attrs;
        read(&table::Reading { attrs, operands: &operands, results: &results, regions: &[] })
    }

    /// Of every dimension that the result has as the first operand does, that it is that one.
    fn kept(&self) -> Dims {
        let operand = self.operands.first().map_or(&[][..], ArrayShape::dims);
        let pairs = operand.iter().zip(self.result.dims()).enumerate();
        pairs.map(|(d, (from, to))| Some(d).filter(|_| from == to)).collect()
    }

    /// These operands' dimensions, and none of those that follow, if they are scalars.
    fn and_scalars(&self, mut dims: Vec<Dims>) -> Vec<Dims> {
        dims.resize(self.operands.len(), Vec::new());
        dims
    }

    fn elementwise(&self) -> Option<Answer> {
        let dims = self.result.dims();
        let is_like = |shape: &ArrayShape| shape.rank() == 0 || shape.dims() == dims;
        // (An array of the bits of a scalar has elements that no scalar is.)
        let has_all = self.operands.iter().any(|shape| shape.dims() == dims);
        let is_sound = has_all && self.op.results.len() == 1 && self.operands.iter().all(is_like);
        let all = |shape: &ArrayShape| (0..shape.rank()).map(Some).collect();
        let dims = self.operands.iter().map(all).collect();
        is_sound.then_some(Answer(Kind::Elementwise, dims, Vec::new(), None))
    }

    /// The operand's dimension `d` is the result's dimension `dims[d]`, or has one element that is
    /// repeated.
    fn broadcast(&self) -> Option<Answer> {
        let (dims, [operand]) = (self.sizes("broadcast_dimensions")?, self.operands) else {
            return None;
        };
        let place = |(&dim, &size): (&usize, &usize)| match size {
            1 => Some(None),
            _ => (self.result.dims().get(dim) == Some(&size)).then_some(Some(dim)),
        };
        let places = dims.iter().zip(operand.dims()).map(place).collect::<Option<Dims>>()?;
        Some(Answer(Kind::Broadcast, vec![places], Vec::new(), None))
    }

    /// Dimensions that stay, and the first ones of those that are put together or taken apart: elements
    /// are in the order of these. (The sizes of both say in how many tiles they may be.)
    fn reshape(&self) -> Option<Dims> {
        let [operand] = self.operands else { return None };
        let (from, to) = (operand.dims(), self.result.dims());
        let mut places = vec![None; from.len()];
        if from.contains(&0) {
            return Some(places);
        }
        let (mut i, mut j) = (0, 0);
        while i < from.len() && j < to.len() {
            // Dimensions of one element come and go.
            if from[i] == 1 || to[j] == 1 {
                (i, j) = if from[i] == 1 { (i + 1, j) } else { (i, j + 1) };
                continue;
            }
            places[i] = Some(j);
            // Up to where as many elements follow on either side.
            let (mut left, mut right) = (from[i], to[j]);
            (i, j) = (i + 1, j + 1);
            while left != right {
                let side =
                    if left < right { (&mut left, &mut i, from) } else { (&mut right, &mut j, to) };
                let (product, next, sizes) = side;
                *product = product.checked_mul(*sizes.get(*next)?)?;
                *next += 1;
            }
        }
        Some(places)
    }

    fn reduce(&self) -> Option<Answer> {
        let reduced = self.sizes("dimensions")?;
        let count = self.operands.len() / 2;
        let first = self.operands.first()?;
        let is_even = count == self.op.results.len() && 2 * count == self.operands.len();
        let inputs = &self.operands[..count];
        if !is_even || inputs.iter().any(|shape| shape.dims() != first.dims()) {
            return None;
        }
        let kept: Vec<usize> = (0..first.rank()).filter(|d| !reduced.contains(d)).collect();
        let position = |list: &[usize], d: usize| list.iter().position(|&dim| dim == d);
        let place = |d: usize| {
            let place = position(&kept, d);
            place.or_else(|| Some(kept.len() + position(&reduced, d)?))
        };
        let dims: Dims = (0..first.rank()).map(place).collect();
        let sizes = reduced.iter().map(|&d| first.dims().get(d).copied());
        let dims = self.and_scalars(vec![dims; count]);
        let combine = combination(self.op, self.result.element());
        Some(Answer(Kind::Reduce, dims, sizes.collect::<Option<_>>()?, combine))
    }

    fn dot(&self) -> Option<Answer> {
        let [lhs, rhs] = self.operands else { return None };
        let dims = self.attrs.needed_fields("dot_dimension_numbers").ok()?;
        let sizes = |name: &str| dims.sizes(name).ok();
        let batch = [sizes("lhs_batching_dimensions")?, sizes("rhs_batching_dimensions")?];
        let summed = [sizes("lhs_contracting_dimensions")?, sizes("rhs_contracting_dimensions")?];
        let free = |side: usize, rank: usize| -> Vec<usize> {
            let is_free = |d: &usize| !batch[side].contains(d) && !summed[side].contains(d);
            (0..rank).filter(is_free).collect()
        };
        let free = [free(0, lhs.rank()), free(1, rhs.rank())];
        let right = batch[0].len() + free[0].len();
        let end = right + free[1].len();
        let is_even = batch[0].len() == batch[1].len() && summed[0].len() == summed[1].len();
        if !is_even || end != self.result.rank() {
            return None;
        }
        let places = |side: usize, rank: usize| -> Dims {
            let begin = [0, [batch[0].len(), right][side], end];
            let lists = [&batch[side], &free[side], &summed[side]];
            let of = |d: usize| {
                let mut all = lists.iter().zip(begin);
                all.find_map(|(list, begin)| Some(begin + list.iter().position(|&at| at == d)?))
            };
            (0..rank).map(of).collect()
        };
        let sizes = summed[0].iter().map(|&d| lhs.dims().get(d).copied());
        let dims = vec![places(0, lhs.rank()), places(1, rhs.rank())];
        Some(Answer(Kind::Plain, dims, sizes.collect::<Option<_>>()?, Some(BinaryOp::Add)))
    }

    /// Along dimensions in which a window has one element and moves by one, each is by itself.
    fn windows(&self) -> Option<Answer> {
        let Window { dims } = self.reading(|from| table::ArrayWindow.read(from)).ok()?;
        let is_moved = |d: usize| {
            dims.get(d).is_none_or(|dim| {
                let ones = [dim.size, dim.stride, dim.base_dilation];
                ones != [1; 3] || (dim.pad_low, dim.pad_high) != (0, 0)
            })
        };
        let rank = self.result.rank();
        let arrays = match self.op.name.as_str() {
            // Of the operand, what windows choose from, and the source, where they are.
            "stablehlo.select_and_scatter" => 2,
            _ => self.op.results.len(),
        };
        let dims = without((0..rank).map(Some).collect(), is_moved);
        let dims = self.and_scalars(vec![dims; arrays]);
        Some(Answer(Kind::Plain, dims, Vec::new(), None))
    }

    fn convolution(&self) -> Option<Answer> {
        let Some(Op::Convolution(op)) = self.read("convolution") else { return None };
        let dims = &op.dims;
        let &ConvDims { input_batch, input_feature, output_batch, output_feature, .. } = dims;
        let groups = ["feature_group_count", "batch_group_count"];
        let groups = groups.map(|name| self.attrs.size_or(name, 1).ok());
        let [lhs, rhs] = self.operands else { return None };
        let (mut left, mut right) = (vec![None; lhs.rank()], vec![None; rhs.rank()]);
        let rank = self.result.rank();
        let [feature, batch] = groups.map(|count| count == Some(1));
        if batch {
            *left.get_mut(input_batch)? = Some(output_batch);
        }
        if batch && feature {
            *left.get_mut(input_feature)? = Some(rank);
            *right.get_mut(dims.kernel_input_feature)? = Some(rank);
            *right.get_mut(dims.kernel_output_feature)? = Some(output_feature);
        }
        let sizes = vec![*lhs.dims().get(input_feature)?];
        Some(Answer(Kind::Plain, vec![left, right], sizes, Some(BinaryOp::Add)))
    }
}

/// The same dimensions, but those for which this holds are whole.
fn without(dims: Dims, is_whole: impl Fn(usize) -> bool) -> Dims {
    dims.into_iter().enumerate().map(|(d, dim)| dim.filter(|_| !is_whole(d))).collect()
}

/// The dimensions in which two arrays of the same rank have the same size. `None` for other arrays.
fn same(operand: &ArrayShape, other: &ArrayShape) -> Option<Dims> {
    let pairs = operand.dims().iter().zip(other.dims()).enumerate();
    let dims = pairs.map(|(d, (a, b))| Some(d).filter(|_| a == b)).collect();
    (operand.rank() == other.rank()).then_some(dims)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What a reduction does with two values, if parts of it can be combined so: a sum, or what gives the same
/// however often a value is taken.
pub(super) fn combination(op: &Operation, element: ElementType) -> Option<BinaryOp> {
    let blocks: Vec<_> = op.regions.iter().flat_map(|region| &region.blocks).collect();
    let [block] = blocks[..] else { return None };
    let [combine, end] = &block.operations[..] else { return None };
    let is_all = combine.operands == block.arguments && end.operands == combine.results;
    let combination = match combine.name.as_str() {
        "stablehlo.add" if !element.is_pred() => BinaryOp::Add,
        "stablehlo.maximum" => BinaryOp::Maximum,
        "stablehlo.minimum" => BinaryOp::Minimum,
        "stablehlo.and" => BinaryOp::And,
        "stablehlo.or" => BinaryOp::Or,
        _ => return None,
    };
    (is_all && op.results.len() == 1).then_some(combination)
}

/// The shape of an array whose elements are what they seem and whose sizes are known.
pub(super) fn plain(ty: &Type) -> Option<ArrayShape> {
    let tensor = ty.as_tensor()?;
    let is_plain = types::quantized(ty).is_none() && !types::is_carried(ty);
    types::array(tensor).ok().filter(|shape| is_plain && shape.is_static())
}

fn is_elementwise(op: &Operation, cx: &Lowering<'_>, operands: &[ArrayShape]) -> bool {
    match op.name.as_str() {
        "stablehlo.composite" => {
            let Some(Attribute::String(name)) = op.attribute("name") else { return false };
            // Else its decomposition is called, which is for whole arrays.
            let is_native = |op: &Op| match (op, operands) {
                (Op::Unary(op), [x]) => {
                    op.accepts().includes(x.element()) && !x.element().is_complex()
                }
                _ => false,
            };
            name.starts_with("chlo.") && cx.elementwise.get(name.as_str()).is_some_and(is_native)
        }
        name => {
            op.regions.is_empty()
                && (cx.elementwise.contains_key(name) || ELEMENTWISE.contains(&name))
        }
    }
}
