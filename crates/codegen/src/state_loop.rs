//! Loops whose state fits in registers.
//!
//! A `while` whose state is a few scalars and small arrays, and whose body is element-wise, becomes
//! one kernel: the state stays in registers from the first iteration to the last, a scalar in all
//! lanes of a vector, an array in the first lanes of one.

use helio_ir::ops::{BinaryOp, Convert, While};
use helio_ir::{
    ArrayShape, CompId, Computation, ElementType, Instr, InstrId, Literal, Module, Op, Shape,
    types::DimKind,
};

use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, Cmp, Kernel, Lane, MaskOp, Value};

/// A call ends after so many iterations even if the condition still holds, so that a loop without
/// end can be stopped from outside.
pub const MAX_TRIPS: i64 = 1 << 13;

/// More instructions than this in a body would not stay in registers.
const MAX_INSTRS: usize = 400;
/// The state has at most so many arrays.
const MAX_STATE: usize = 24;
/// Fusions in the body are looked into this deep.
const MAX_DEPTH: usize = 8;

/// The kernel of a loop, if there is one. Its parameters are the arrays of the state in order; it
/// runs the body as long as the condition holds, at most [`MAX_TRIPS`] times, and changes the arrays
/// in place. Those that the body passes on unchanged, as `unchanged` says, are only read.
pub fn state_loop(
    module: &Module,
    op: &While,
    unchanged: &[bool],
    vector_bytes: usize,
) -> Option<Kernel> {
    let state = state_of(module, op)?;
    let computations = [op.condition, op.body];
    let size: usize = computations.iter().map(|&id| module.computation(id).instrs().len()).sum();
    if size > MAX_INSTRS || state.len() > MAX_STATE || state.len() != unchanged.len() {
        return None;
    }
    let mut types = Types { module, widest: 4, count: 1 };
    computations.iter().try_for_each(|&id| types.computation(id, 0))?;
    let lanes = vector_bytes / types.widest;
    (types.count <= lanes).then_some(())?;

    let mut b = Builder::new(lanes);
    let reader = Reader { module, count: types.count };
    let buffers: Vec<Buf> = state
        .iter()
        .zip(unchanged)
        .map(|(shape, &unchanged)| b.param(shape.size_bytes(), true, !unchanged))
        .collect();
    let on = reader.lanes_of_arrays(&mut b);
    let place = |shape: &ArrayShape, buf: Buf| {
        let is_scalar = shape.element_count() == 1;
        let lane_stride = if is_scalar { 0 } else { shape.element().size_bytes() as i64 };
        (Addr { buf, offset: 0, terms: Vec::new(), lane_stride }, if is_scalar { None } else { on })
    };
    let mut initial = Vec::new();
    for (shape, &buf) in state.iter().zip(&buffers) {
        let (addr, mask) = place(shape, buf);
        let elem = elementwise::load(&mut b, shape.element(), addr, mask);
        initial.push(Leaf { elem, ty: shape.element() });
    }
    let one = b.int(Lane::I32, 1);
    let most = b.int(Lane::I32, MAX_TRIPS);
    let mut init = vec![b.int(Lane::I32, 0)];
    for (leaf, _) in initial.iter().zip(unchanged).filter(|(_, unchanged)| !**unchanged) {
        flatten(&mut b, *leaf, &mut init);
    }
    // The values of the state inside of the loop.
    let unpack = |b: &mut Builder, values: &[Value]| -> Vec<Leaf> {
        let mut values = values[1..].iter();
        let leaves = initial.iter().zip(unchanged);
        leaves
            .map(|(&leaf, &unchanged)| if unchanged { leaf } else { restore(b, leaf, &mut values) })
            .collect()
    };
    let results = b.while_loop(
        &init,
        |b, values| {
            let state = unpack(b, values);
            let result = reader.computation(b, op.condition, &state);
            let go = result.first().map(|leaf| leaf.elem.mask());
            let early = b.compare(Cmp::Lt, values[0], most);
            match go {
                Some(go) => b.mask_op(MaskOp::And, go, early),
                None => early,
            }
        },
        |b, values| {
            let state = unpack(b, values);
            let result = reader.computation(b, op.body, &state);
            let mut next = vec![b.add(values[0], one)];
            for (leaf, _) in result.iter().zip(unchanged).filter(|(_, unchanged)| !**unchanged) {
                flatten(b, *leaf, &mut next);
            }
            next
        },
    );
    let last = unpack(&mut b, &results);
    for (i, leaf) in last.into_iter().enumerate().filter(|(i, _)| !unchanged[*i]) {
        let (addr, mask) = place(state[i], buffers[i]);
        elementwise::store(&mut b, leaf.ty, leaf.elem, addr, mask);
    }
    Some(b.finish())
}

/// The arrays of the state.
fn state_of<'m>(module: &'m Module, op: &While) -> Option<Vec<&'m ArrayShape>> {
    let body = module.computation(op.body);
    let param = *body.params().get(&0)?;
    body.instr(param).shape.leaves().into_iter().map(Shape::as_array).collect()
}

/// An array of a computation in lanes.
#[derive(Clone, Copy)]
struct Leaf {
    elem: Elem,
    ty: ElementType,
}

/// The values that a loop carries for a leaf; masks are carried as vectors of 0 and 1.
fn flatten(b: &mut Builder, leaf: Leaf, values: &mut Vec<Value>) {
    match leaf.elem {
        Elem::Vector(x) => values.push(x),
        Elem::Complex(re, im) => values.extend([re, im]),
        Elem::Mask(set) => {
            let (one, zero) = (b.int(Lane::I32, 1), b.int(Lane::I32, 0));
            values.push(b.select(set, one, zero));
        }
    }
}

/// The leaf that these values carry; `like` is another of the same kind.
fn restore<'v>(b: &mut Builder, like: Leaf, values: &mut impl Iterator<Item = &'v Value>) -> Leaf {
    let mut next = || *values.next().expect("as many values as were flattened");
    let elem = match like.elem {
        Elem::Vector(_) => Elem::Vector(next()),
        Elem::Complex(..) => Elem::Complex(next(), next()),
        Elem::Mask(_) => {
            let zero = b.int(Lane::I32, 0);
            Elem::Mask(b.compare(Cmp::Ne, next(), zero))
        }
    };
    Leaf { elem, ..like }
}

/// Checks that everything in a loop is understood, and finds how wide its vectors must be.
struct Types<'m> {
    module: &'m Module,
    /// Bytes of the widest lane.
    widest: usize,
    /// Elements of the arrays that are not scalars; all have as many.
    count: usize,
}

impl Types<'_> {
    fn computation(&mut self, id: CompId, depth: usize) -> Option<()> {
        let computation = self.module.computation(id);
        if depth > MAX_DEPTH || computation.instrs().len() > MAX_INSTRS {
            return None;
        }
        for instr in computation.instrs() {
            for leaf in instr.shape.leaves() {
                self.shape(leaf.as_array()?)?;
            }
            let shape = |&operand: &InstrId| computation.instr(operand).shape.as_array();
            let known = match &instr.op {
                Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) | Op::Copy(_) => true,
                Op::OptimizationBarrier(_) | Op::Reshape(_) => true,
                Op::Constant(constant) => {
                    !constant.elided && constant.literal.leaves().into_iter().all(is_splat)
                }
                Op::Iota(_) => instr.shape.as_array()?.rank() == 1,
                // A scalar, since all arrays have as many elements.
                Op::Broadcast(_) => {
                    let operand = shape(instr.operands.first()?)?.element_count();
                    operand == 1 || operand == instr.shape.as_array()?.element_count()
                }
                Op::Fusion(op) => self.computation(op.calls, depth + 1).is_some(),
                Op::Call(op) => self.computation(op.to_apply, depth + 1).is_some(),
                op => {
                    let operands = instr.operands.iter().map(|o| Some(shape(o)?.element()));
                    let operands = operands.collect::<Option<Vec<_>>>()?;
                    let result = instr.shape.as_array()?.element();
                    elementwise::supports(op, &operands, result)
                }
            };
            known.then_some(())?;
        }
        Some(())
    }

    fn shape(&mut self, shape: &ArrayShape) -> Option<()> {
        self.widest = self.widest.max(elementwise::lane_bytes(shape.element())?);
        let is_static = shape.kinds().iter().all(|&kind| kind == DimKind::Static);
        let count = shape.element_count();
        let fits = is_static && (count == 1 || self.count == 1 || self.count == count) && count > 0;
        self.count = self.count.max(count);
        fits.then_some(())
    }
}

fn is_splat(literal: &Literal) -> bool {
    let Literal::Array(array) = literal else { return false };
    let count = array.data().len();
    count > 0 && (1..count).all(|i| array.bits(i) == array.bits(0))
}

/// Writes what computations compute; [`Types`] has seen that all of it is understood.
struct Reader<'m> {
    module: &'m Module,
    count: usize,
}

impl Reader<'_> {
    /// The lanes of an array that is not a scalar; `None` for all.
    fn lanes_of_arrays(&self, b: &mut Builder) -> Option<Value> {
        if self.count == 1 || self.count == b.lanes() {
            return None;
        }
        let (zero, end) = (b.index(0), b.index(self.count as i64));
        Some(b.mask_below(zero, end))
    }

    /// Writes a computation. ([`Types`] has bounded how deep calls nest.)
    fn computation(&self, b: &mut Builder, id: CompId, args: &[Leaf]) -> Vec<Leaf> {
        let computation = self.module.computation(id);
        let uses = uses(computation);
        let mut values: Vec<Vec<Leaf>> = Vec::with_capacity(computation.instrs().len());
        // Where the arrays of each parameter begin among the arguments.
        let mut begins = vec![0];
        for id in computation.params().values() {
            let before = begins.last().copied().unwrap_or(0);
            begins.push(before + computation.instr(*id).shape.leaves().len());
        }
        for instr in computation.instrs() {
            let all = || instr.operands.iter().flat_map(|o| values[o.index()].iter().copied());
            let ty = instr.shape.as_array().map(ArrayShape::element);
            let value: Vec<Leaf> = match (&instr.op, ty) {
                (Op::Parameter(param), _) => {
                    args[begins[param.number]..begins[param.number + 1]].to_vec()
                }
                (Op::GetTupleElement(op), _) => {
                    let tuple = instr.operands[0];
                    let shape = &computation.instr(tuple).shape;
                    let elements = shape.as_tuple().unwrap_or_default();
                    let before: usize = elements[..op.index].iter().map(|s| s.leaves().len()).sum();
                    let count = instr.shape.leaves().len();
                    values[tuple.index()][before..before + count].to_vec()
                }
                (Op::Fusion(op), _) => {
                    let args: Vec<Leaf> = all().collect();
                    self.computation(b, op.calls, &args)
                }
                (Op::Call(op), _) => {
                    let args: Vec<Leaf> = all().collect();
                    self.computation(b, op.to_apply, &args)
                }
                (Op::Constant(constant), _) => {
                    let leaves = constant.literal.leaves().into_iter();
                    let leaf = |literal: &Literal| match literal {
                        Literal::Array(array) => {
                            let ty = array.element();
                            Some(Leaf { elem: elementwise::constant(b, ty, array.bits(0)), ty })
                        }
                        _ => None,
                    };
                    leaves.filter_map(leaf).collect()
                }
                (Op::Iota(_), Some(ty)) => {
                    let ids = Elem::Vector(b.lane_ids(Lane::I32));
                    let convert = Op::Convert(Convert { element: ty });
                    let ids = [(ElementType::S32, ids)];
                    vec![Leaf { elem: elementwise::apply(b, &convert, &ids, ty), ty }]
                }
                (
                    Op::Tuple(_)
                    | Op::Copy(_)
                    | Op::OptimizationBarrier(_)
                    | Op::Reshape(_)
                    | Op::Broadcast(_),
                    _,
                ) => all().collect(),
                (Op::Binary(BinaryOp::Add), Some(ty @ (ElementType::F32 | ElementType::F64)))
                    if let Some((product, other)) = product_of(computation, instr, &uses) =>
                {
                    let vector = |id: InstrId| values[id.index()][0].elem.vector();
                    let [x, y] = [product[0], product[1]].map(vector);
                    let sum = b.fma(x, y, vector(other));
                    vec![Leaf { elem: Elem::Vector(sum), ty }]
                }
                (op, Some(ty)) => {
                    let operands: Vec<_> = all().map(|leaf| (leaf.ty, leaf.elem)).collect();
                    vec![Leaf { elem: elementwise::apply(b, op, &operands, ty), ty }]
                }
                (_, None) => Vec::new(),
            };
            values.push(value);
        }
        values.swap_remove(computation.root().index())
    }
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
) -> Option<(&'c [InstrId], InstrId)> {
    let &[a, b] = &sum.operands[..] else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(product, other)| {
        let instr = computation.instr(product);
        let is_alone = uses[product.index()] == 1 && product != other;
        (is_alone && matches!(instr.op, Op::Binary(BinaryOp::Multiply)))
            .then_some((&instr.operands[..], other))
    })
}
