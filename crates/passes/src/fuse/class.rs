//! What fusion needs to know of each operation.

use helio_ir::ops::Cost;
use helio_ir::{
    ArrayShape, Capabilities, CompId, Computation, ElementType, Instr, InstrId, Module, Op, Shape,
};

use crate::draft::is_elementwise;

/// What an instruction can be within a fusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FusionClass {
    /// Never part of one.
    Boundary,
    /// A few words of the program: constants of one value, iotas, and what only renames elements.
    /// Wherever it is needed, it is made anew.
    Free,
    /// Moves elements in a way that costs comparisons or irregular reads.
    Movement,
    /// Computes an element of its result from an element of each operand, in an instruction or few.
    Cheap,
    /// Likewise, at some expense; or a fold of a few elements.
    Costly,
    /// Folds many elements.
    Reduce,
    /// Changes a part of an array, in place.
    Update,
}

/// The most elements of a fold that is written out, rather than be a loop.
pub(crate) const MAX_WRITTEN_OUT: usize = 8;
/// The most elements of a transpose that joins a fusion although it moves the last dimension.
const MAX_TRANSPOSED: usize = 1 << 12;
/// The largest distance of elements, in elements, that are read and written as whole vectors with what is between them.
const MAX_APART: usize = 15;
/// The most operands of a concatenation that joins a fusion,
const MAX_JOINED: usize = 8;
/// or the most elements of the rows that it puts together: each has code of its own then, and all are stored as whole
/// vectors.
pub(super) const MAX_COLUMNS: usize = 32;
/// Element-wise operations have no more operands: those of a `select` or a `clamp`.
const MAX_ELEMENTWISE_OPERANDS: usize = 3;

/// Says of instructions what they can be within a fusion, for one back end.
#[derive(Clone, Copy)]
pub(super) struct Classifier<'a> {
    /// Has the computations that instructions call.
    pub(super) module: &'a Module,
    pub(super) capabilities: &'a dyn Capabilities,
}

impl Classifier<'_> {
    /// Whether kernels can hold an array, and its size is known.
    fn holds(&self, shape: &ArrayShape) -> bool {
        shape.is_static() && self.capabilities.holds(shape.element())
    }

    /// Whether kernels can perform an instruction that is element-wise.
    fn computes(&self, computation: &Computation, instr: &Instr) -> bool {
        let mut types = [ElementType::Pred; MAX_ELEMENTWISE_OPERANDS];
        let (Some(types), Some(result)) =
            (types.get_mut(..instr.operands.len()), instr.shape.as_array())
        else {
            return false;
        };
        for (ty, &operand) in types.iter_mut().zip(&instr.operands) {
            let Some(shape) = array(computation, operand) else { return false };
            *ty = shape.element();
        }
        self.capabilities.supports(&instr.op, types, result.element())
    }

    /// Whether kernels can perform what is element-wise in a reducer.
    fn folds(&self, to_apply: CompId) -> bool {
        let reducer = self.module.computation(to_apply);
        let computes = |instr: &Instr| !is_elementwise(&instr.op) || self.computes(reducer, instr);
        reducer.instrs().iter().all(computes)
    }

    /// The class of an instruction.
    pub(super) fn class(&self, computation: &Computation, instr: &Instr) -> FusionClass {
        let Some(shape) = instr.shape.as_array() else {
            // Folds of several arrays at once.
            return match &instr.op {
                Op::Reduce(op)
                    if self.is_plain_reduce(computation, instr) && self.folds(op.to_apply) =>
                {
                    FusionClass::Reduce
                }
                _ => FusionClass::Boundary,
            };
        };
        let is_held = |&id: &InstrId| array(computation, id).is_some_and(|shape| self.holds(shape));
        if !self.holds(shape) || shape.element_count() == 0 || !instr.operands.iter().all(is_held) {
            return FusionClass::Boundary;
        }
        match &instr.op {
            Op::Reduce(op) if !self.folds(op.to_apply) => FusionClass::Boundary,
            op if is_elementwise(op) && !self.computes(computation, instr) => FusionClass::Boundary,
            _ => of_held(computation, instr, shape),
        }
    }

    /// Whether a reduction of several arrays folds more than nothing, of types that kernels hold.
    fn is_plain_reduce(&self, computation: &Computation, instr: &Instr) -> bool {
        let held = |shape: &ArrayShape| self.holds(shape) && shape.element_count() > 0;
        let leaves = instr.shape.leaves();
        leaves.iter().all(|leaf| leaf.as_array().is_some_and(held))
            && instr.operands.iter().all(|&id| array(computation, id).is_some_and(held))
    }
}

/// The class of an instruction whose operands and result kernels can hold, and which they can perform
/// if it is element-wise.
fn of_held(computation: &Computation, instr: &Instr, shape: &ArrayShape) -> FusionClass {
    let operand = |i: usize| array(computation, instr.operands[i]);
    match &instr.op {
        Op::Constant(op) if !op.elided && shape.element_count() == 1 => FusionClass::Free,
        Op::Iota(_) | Op::Broadcast(_) | Op::Reshape(_) | Op::Slice(_) | Op::Reverse(_) => {
            FusionClass::Free
        }
        Op::Transpose(op) => {
            let moved = op.permutation.iter().enumerate().filter(|&(i, _)| shape.dims()[i] != 1);
            let last = moved.clone().next_back().map(|(_, &d)| d);
            let kept = last == moved.map(|(_, &d)| d).max();
            if kept || shape.element_count() <= MAX_TRANSPOSED {
                FusionClass::Free
            } else if operand(0).is_some_and(|from| {
                Apart::of(from, shape, &op.permutation).is_near(shape.element().size_bytes())
            }) {
                FusionClass::Movement
            } else {
                FusionClass::Boundary
            }
        }
        Op::Pad(op) if op.dims.iter().all(|dim| dim.interior == 0) => FusionClass::Movement,
        Op::Concatenate(op) => {
            let row: usize = shape.dims()[op.dimension..].iter().product();
            match instr.operands.len() <= MAX_JOINED || row <= MAX_COLUMNS {
                true => FusionClass::Movement,
                false => FusionClass::Boundary,
            }
        }
        Op::DynamicSlice(_) => FusionClass::Movement,
        Op::Gather(_) => FusionClass::Movement,
        Op::DynamicUpdateSlice(_) => FusionClass::Update,
        Op::Reduce(op) => {
            let Some(from) = operand(0) else { return FusionClass::Boundary };
            let elements: usize = op.dimensions.iter().map(|&d| from.dims()[d]).product();
            match elements {
                0 => FusionClass::Boundary,
                1..=MAX_WRITTEN_OUT => FusionClass::Costly,
                _ => FusionClass::Reduce,
            }
        }
        Op::Unary(op) => costs(op.cost()),
        Op::Binary(op) => costs(op.cost()),
        op if is_elementwise(op) => FusionClass::Cheap,
        _ => FusionClass::Boundary,
    }
}

/// How many elements neighbours are apart that a transpose separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// In the operand those that come to be neighbours.
    pub read: usize,
    /// In the result those that were neighbours.
    pub written: usize,
}

impl Apart {
    pub fn of(from: &ArrayShape, to: &ArrayShape, permutation: &[usize]) -> Self {
        let behind = |dims: &[usize], dim: usize| dims[dim + 1..].iter().product::<usize>();
        let last = |dims: &[usize]| dims.iter().rposition(|&size| size != 1);
        let (Some(read), Some(written)) = (last(to.dims()), last(from.dims())) else {
            return Apart { read: 1, written: 1 };
        };
        let written = permutation.iter().position(|&dim| dim == written);
        Apart {
            read: behind(from.dims(), permutation[read]),
            written: written.map_or(usize::MAX, |dim| behind(to.dims(), dim)),
        }
    }

    /// Whether elements of so many bytes are a few apart, in the operand or in the result.
    fn is_near(self, size: usize) -> bool {
        self.read <= MAX_APART || self.written <= MAX_APART && (size >= 4 || self.writes(size))
    }

    /// Whether a kernel that does nothing else reads columns, or writes them, faster than they are copied, if elements have
    /// so many bytes.
    pub fn suits_kernel(self, size: usize) -> bool {
        let least_read = if size < 4 { 5 } else { 2 };
        (least_read..=MAX_APART).contains(&self.read)
            || self.written <= MAX_APART && self.writes(size)
    }

    /// Whether so many columns take less time by permutations than one by one: powers of two are few instructions.
    fn writes(self, size: usize) -> bool {
        self.written >= 5 || self.written == 3 && size < 4
    }
}

fn costs(cost: Cost) -> FusionClass {
    match cost {
        Cost::Cheap => FusionClass::Cheap,
        Cost::Division | Cost::Transcendental => FusionClass::Costly,
    }
}

/// The shape of an instruction that is an array.
pub(super) fn array(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    match &computation.instr(id).shape {
        Shape::Array(shape) => Some(shape),
        _ => None,
    }
}
