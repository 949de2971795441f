//! What an iteration computes, written down.

mod memory;
mod movement;
mod tiny;

use std::iter::zip;

use helio_ir::ops::{BinaryOp, Convert};
use helio_ir::types::IndexIter;
use helio_ir::{
    ArrayShape, CompId, Computation, ElementType, Instr, InstrId, Literal, Module, Op, Shape,
};

use crate::elementwise::{self, Elem};
use crate::kernel::{Buf, Builder, FmaOp, IndexOp, Lane, Value};
use crate::lower::Target;
use memory::ArrayBox;

/// The most elements of an array whose elements are values of their own.
pub(super) const MAX_ELEMENTS: usize = 16;
/// Computations are looked into this deep.
const MAX_DEPTH: usize = 8;
/// More values than this in an iteration would not stay in registers.
const MAX_VALUES: usize = 1500;

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
    target: Target<'m>,
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
    pub fn new(
        (module, target): (&'m Module, Target<'m>),
        form: Form,
        versions: Vec<Option<usize>>,
    ) -> Self {
        Reader { module, target, form, versions, stores: true, failed: false, values: 0 }
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
                    let site = InstrValues { computation, instr, values: &values, uses: &uses };
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
                self.read(b, &ArrayBox { buf, shape, starts: &[], sizes: shape.dims() })
            }
        }
    }

    fn mask(&self) -> Option<Value> {
        match self.form {
            Form::Lanes { mask, .. } => mask,
            Form::Elements => None,
        }
    }

    /// Counts values; `None` if there are too many.
    fn count(&mut self, values: usize) -> Option<()> {
        self.values += values;
        (self.values <= MAX_VALUES).then_some(())
    }

    /// The value of an instruction that gives one array.
    fn array(&mut self, b: &mut Builder, site: InstrValues<'_>) -> Option<Leaf> {
        let InstrValues { instr, values, .. } = site;
        let shape = instr.shape.as_array()?;
        let ty = shape.element();
        let count = self.values_of(shape)?;
        self.count(count)?;
        let is_whole = matches!(self.form, Form::Elements);
        let elems = match &instr.op {
            Op::Iota(op) => self.iota(b, shape, op.dimension)?,
            Op::Broadcast(op) => self.broadcast(b, site, shape, op)?,
            Op::Slice(op) => self.slice(b, site, shape, op)?,
            Op::Reverse(_) | Op::Transpose(_) | Op::Concatenate(_) if is_whole => {
                self.rearranged(b, site, shape)?
            }
            Op::Dot(op) if is_whole && self.adds_products(ty) => {
                let sides = [site.operand(0)?, site.operand(1)?];
                self.product(b, sides, shape, op)?
            }
            Op::DynamicSlice(op) => {
                let (leaf, from) = site.operand(0)?;
                let &Data::Memory { buf, version } = &leaf.data else { return None };
                self.is_current(buf, version).then_some(())?;
                let starts = self.starts(b, (instr, values), 1, from.dims(), &op.sizes)?;
                self.read(b, &ArrayBox { buf, shape: from, starts: &starts, sizes: &op.sizes })?
            }
            Op::Gather(op) => {
                let [table, indices] = [site.operand(0)?, site.operand(1)?];
                vec![self.gather(b, table, indices, op)?]
            }
            Op::Binary(BinaryOp::Add | BinaryOp::Subtract)
                if matches!(ty, ElementType::F32 | ElementType::F64) && self.adds_products(ty) =>
            {
                self.sum(b, site, ty, count)?
            }
            _ => self.elementwise(b, site, ty, count)?,
        };
        Some(Leaf { ty, data: Data::Values(elems) })
    }

    /// Whether kernels may multiply and add numbers of a type.
    fn adds_products(&self, ty: ElementType) -> bool {
        let supports = |op| self.target.supports(&Op::Binary(op), &[ty, ty], ty);
        supports(BinaryOp::Add) && supports(BinaryOp::Multiply)
    }

    /// A sum or a difference of floats; contracted with a product that is used for it alone.
    fn sum(
        &mut self,
        b: &mut Builder,
        site: InstrValues<'_>,
        ty: ElementType,
        count: usize,
    ) -> Option<Vec<Elem>> {
        let InstrValues { computation, instr, values, uses } = site;
        let Some((op, &[x, y], other)) = product_of(computation, instr, uses) else {
            return self.elementwise(b, site, ty, count);
        };
        let mut of =
            |id: InstrId| self.values(b, values[id.index()].first()?, array(computation, id)?);
        let (x, y, other) = (of(x), of(y), of(other));
        let (x, y, other) = (x?, y?, other?);
        let fma = |i: usize| {
            let [x, y, z] = [&x, &y, &other].map(|of| pick(of, i).vector());
            Elem::Vector(b.fused(op, x, y, z))
        };
        Some((0..count).map(fma).collect())
    }

    fn elementwise(
        &mut self,
        b: &mut Builder,
        site: InstrValues<'_>,
        ty: ElementType,
        count: usize,
    ) -> Option<Vec<Elem>> {
        let InstrValues { computation, instr, values, .. } = site;
        let mut operands = Vec::with_capacity(instr.operands.len());
        let mut types = Vec::with_capacity(instr.operands.len());
        for &id in &instr.operands {
            let shape = array(computation, id)?;
            types.push(shape.element());
            operands.push(self.values(b, values[id.index()].first()?, shape)?);
        }
        self.target.supports(&instr.op, &types, ty).then_some(())?;
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
}

/// An instruction, and the values before it.
#[derive(Clone, Copy)]
struct InstrValues<'s> {
    computation: &'s Computation,
    instr: &'s Instr,
    values: &'s [Vec<Leaf>],
    uses: &'s [usize],
}

impl<'s> InstrValues<'s> {
    /// The value of an operand that is an array, and its shape.
    fn operand(&self, i: usize) -> Option<(&'s Leaf, &'s ArrayShape)> {
        let id = *self.instr.operands.get(i)?;
        Some((self.values[id.index()].first()?, array(self.computation, id)?))
    }
}

fn array(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    computation.instr(id).shape.as_array()
}

/// The value of an element; a scalar's is everybody's.
fn pick(elems: &[Elem], i: usize) -> Elem {
    elems[if elems.len() == 1 { 0 } else { i }]
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

/// The factors of a product that is used for this sum or difference alone, and what it is added to, subtracted from, or
/// less by.
///
/// Such a product is not rounded before it is added: XLA:CPU contracts them likewise, and in a long
/// loop the two would drift apart.
fn product_of<'c>(
    computation: &'c Computation,
    sum: &Instr,
    uses: &[usize],
) -> Option<(FmaOp, &'c [InstrId; 2], InstrId)> {
    let &[a, b] = &sum.operands[..] else { return None };
    let [first, second] = match sum.op {
        Op::Binary(BinaryOp::Subtract) => [FmaOp::Sub, FmaOp::From],
        _ => [FmaOp::Add; 2],
    };
    [(first, a, b), (second, b, a)].into_iter().find_map(|(op, product, other)| {
        let instr = computation.instr(product);
        let is_alone = uses[product.index()] == 1 && product != other;
        let is_product = matches!(instr.op, Op::Binary(BinaryOp::Multiply));
        let factors = instr.operands.first_chunk::<2>()?;
        (is_alone && is_product).then_some((op, factors, other))
    })
}
