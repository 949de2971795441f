//! Which dimensions of the arrays of a loop become components.
//!
//! Dimensions that operations match with each other, such as those of the two operands of an addition, are of one class,
//! through the body, the condition and the state. All dimensions of a class become components, or none does.

use helio_ir::ops::{Dot, DotDims, PadDim, While};
use helio_ir::{ArrayShape, CompId, Computation, ElementType, InstrId, Module, Op};

use super::Split;
use crate::draft::{is_elementwise, parameter_number};
use crate::growth::Growth;
use crate::loops::State;
use crate::recognize::reducer;

/// The most elements of a dimension that becomes components.
const MAX_SIZE: usize = 16;
/// The most components of one value.
const MAX_PARTS: usize = 64;
/// The most instructions of a body and its condition, each counted once for each component.
const MAX_INSTRS: usize = 4096;
/// The most times that instructions are gone through until no more dimensions have to stay.
const MAX_ROUNDS: usize = 16;
/// The fewest elements of a component of the state, and how many for each component: fewer do not fill vectors that an
/// array as it was would fill.
const MIN_ELEMENTS: usize = 8;
const MIN_ELEMENTS_EACH: usize = 2;

/// The fewest movements in an iteration for each array of the state of which an iteration takes or gives a part: to split
/// it, and to put it together, takes as long as so many of them.
const MIN_MOVES: usize = 4;
/// The most bytes of such arrays: their components take as much memory again, before the loop or after it.
const MAX_STACKED_BYTES: usize = 64 << 20;

/// The dimensions of a loop's values, in classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    /// For each dimension, one of its class; itself if it stands for the class.
    parents: Vec<usize>,
    /// For the dimensions that stand for classes, what is known of them.
    facts: Vec<Facts>,
    /// The first dimension of each element of the state.
    state: Vec<usize>,
    /// The first dimension of each instruction's result, in the body and in the condition.
    body: Vec<usize>,
    condition: Vec<usize>,
}

/// What is known of a class.
#[derive(Clone, Copy, Debug)]
struct Facts {
    /// The most elements of its dimensions.
    size: usize,
    /// Whether elements are moved along one, or folded.
    is_moved: bool,
    /// Whether one must stay.
    stays: bool,
    /// Whether parts are taken or replaced along one that are somewhere else in each iteration.
    is_stacked: bool,
}

/// A computation, and the first dimension of each of its results.
struct Numbered<'a> {
    computation: &'a Computation,
    first: Vec<usize>,
}

impl Numbered<'_> {
    fn node(&self, id: InstrId, d: usize) -> usize {
        self.first[id.index()] + d
    }

    fn array(&self, id: InstrId) -> Option<&ArrayShape> {
        self.computation.instr(id).shape.as_array()
    }

    fn dims(&self, id: InstrId) -> &[usize] {
        self.array(id).map_or(&[], ArrayShape::dims)
    }
}

impl Classes {
    /// Of a loop that gains by components; `growth` is asked for the room.
    pub fn of_loop(module: &Module, op: While, growth: &mut Growth) -> Option<Self> {
        let (body, condition) = (module.computation(op.body), module.computation(op.condition));
        // (Many loops may have one body, which is gone through for each.)
        if !growth.take(body.instrs().len() + condition.instrs().len()) {
            return None;
        }
        let Op::Tuple(_) = body.instr(body.root()).op else { return None };
        State::of(body)?;
        State::of(condition)?;
        let next = &body.instr(body.root()).operands;
        let all = body.instrs().iter().chain(condition.instrs());
        if !all.filter_map(|instr| instr.shape.as_array()).all(ArrayShape::is_static) {
            return None;
        }
        let mut classes = Classes::default();
        classes.state =
            next.iter().map(|&id| classes.add(body.instr(id).shape.as_array())).collect();
        classes.body = classes.add_all(body);
        classes.condition = classes.add_all(condition);
        let [body, condition] = [(body, &classes.body), (condition, &classes.condition)]
            .map(|(computation, first)| Numbered { computation, first: first.clone() });
        for of in [&body, &condition] {
            for id in of.computation.ids() {
                classes.relate(module, of, id);
            }
        }
        for (i, &id) in next.iter().enumerate() {
            for d in 0..body.dims(id).len() {
                classes.tie(body.node(id, d), classes.state[i] + d);
            }
        }
        // What stays makes other dimensions stay; a program in which that goes on and on is none of vectors.
        let settles = |classes: &mut Classes| {
            ![&body, &condition].map(|of| classes.settle(of)).contains(&true)
        };
        if !(0..MAX_ROUNDS).any(|_| settles(&mut classes)) {
            return None;
        }
        if !classes.gains(&body) {
            return None;
        }
        let work = |of: &Numbered<'_>| of.computation.ids().map(|id| classes.work(of, id)).sum();
        let size: usize = [&body, &condition].map(work).iter().sum::<usize>();
        (size <= MAX_INSTRS && growth.take(size)).then_some(classes)
    }

    /// Whether a body of components is worth what it takes to split the state and to put it together.
    fn gains(&self, body: &Numbered<'_>) -> bool {
        let (mut fills_vectors, mut stacks, mut stacked_bytes) = (false, 0, 0_usize);
        let root = body.computation.instr(body.computation.root());
        for (i, &id) in root.operands.iter().enumerate() {
            let Some(array) = body.array(id) else { continue };
            let count = self.of_state(i, array).count();
            if count == 1 {
                continue;
            }
            let dims = self.state[i]..self.state[i] + array.rank();
            if dims.into_iter().any(|node| self.facts[self.find(node)].is_stacked) {
                stacks += 1;
                stacked_bytes = stacked_bytes.saturating_add(array.size_bytes());
            } else {
                let least = MIN_ELEMENTS.max(count * MIN_ELEMENTS_EACH);
                fills_vectors |= array.element_count() / count >= least;
            }
        }
        let is_split = |id: InstrId| {
            body.array(id)
                .is_some_and(|array| self.of_body(id, array).components().next().is_some())
        };
        let moves = body.computation.instrs().iter().filter(|instr| {
            let is_move = matches!(
                instr.op,
                Op::Slice(_)
                    | Op::Pad(_)
                    | Op::Concatenate(_)
                    | Op::Reverse(_)
                    | Op::Reduce(_)
                    | Op::Dot(_)
            );
            is_move && is_split(instr.operands[0])
        });
        fills_vectors && stacked_bytes <= MAX_STACKED_BYTES && moves.count() >= stacks * MIN_MOVES
    }

    /// How an element of the state is split.
    pub fn of_state(&self, index: usize, shape: &ArrayShape) -> Split {
        self.split(self.state[index], shape)
    }

    /// How the result of an instruction of the body is split.
    pub fn of_body(&self, id: InstrId, shape: &ArrayShape) -> Split {
        self.split(self.body[id.index()], shape)
    }

    /// How the result of an instruction of the condition is split.
    pub fn of_condition(&self, id: InstrId, shape: &ArrayShape) -> Split {
        self.split(self.condition[id.index()], shape)
    }

    fn split(&self, first: usize, shape: &ArrayShape) -> Split {
        let is_component = (0..shape.rank()).map(|d| self.is_component(first + d)).collect();
        Split { shape: shape.clone(), is_component }
    }

    fn is_component(&self, node: usize) -> bool {
        let facts = self.facts[self.find(node)];
        facts.is_moved && !facts.stays && facts.size <= MAX_SIZE
    }

    /// Adds the dimensions of a value. Gives the first of them.
    fn add(&mut self, shape: Option<&ArrayShape>) -> usize {
        let first = self.parents.len();
        for &size in shape.map_or(&[][..], ArrayShape::dims) {
            self.parents.push(self.parents.len());
            self.facts.push(Facts { size, is_moved: false, stays: size == 0, is_stacked: false });
        }
        first
    }

    fn add_all(&mut self, computation: &Computation) -> Vec<usize> {
        computation.instrs().iter().map(|instr| self.add(instr.shape.as_array())).collect()
    }

    fn find(&self, mut node: usize) -> usize {
        while self.parents[node] != node {
            node = self.parents[node];
        }
        node
    }

    /// As `find`; halves the way there for whoever comes next.
    fn find_shorter(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    /// Makes one class of those of two dimensions.
    fn tie(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find_shorter(a), self.find_shorter(b));
        if a == b {
            return;
        }
        // The older one stands for both: it is what others are matched with.
        let (kept, gone) = (a.min(b), a.max(b));
        let (of_kept, of_gone) = (self.facts[kept], self.facts[gone]);
        self.parents[gone] = kept;
        self.facts[kept] = Facts {
            size: of_kept.size.max(of_gone.size),
            is_moved: of_kept.is_moved || of_gone.is_moved,
            stays: of_kept.stays || of_gone.stays,
            is_stacked: of_kept.is_stacked || of_gone.is_stacked,
        };
    }

    fn moved(&mut self, node: usize) {
        let class = self.find_shorter(node);
        self.facts[class].is_moved = true;
    }

    fn stay(&mut self, node: usize) {
        let class = self.find_shorter(node);
        self.facts[class].stays = true;
    }

    fn stack(&mut self, node: usize) {
        self.stay(node);
        let class = self.find_shorter(node);
        self.facts[class].is_stacked = true;
    }

    /// Makes one class of each pair of dimensions of two values.
    fn tie_all(&mut self, of: &Numbered<'_>, a: InstrId, b: InstrId) {
        for d in 0..of.dims(a).len() {
            self.tie(of.node(a, d), of.node(b, d));
        }
    }

    fn stay_all(&mut self, of: &Numbered<'_>, id: InstrId) {
        (0..of.dims(id).len()).for_each(|d| self.stay(of.node(id, d)));
    }

    /// Notes what an instruction says about its dimensions and its operands'.
    fn relate(&mut self, module: &Module, of: &Numbered<'_>, id: InstrId) {
        let instr = of.computation.instr(id);
        let rank = of.dims(id).len();
        match (&instr.op, &instr.operands[..]) {
            (Op::Parameter(_) | Op::Constant(_) | Op::Iota(_), _) => {}
            (Op::Tuple(_), _) if id == of.computation.root() => {}
            (Op::GetTupleElement(op), &[tuple])
                if parameter_number(&of.computation.instr(tuple).op).is_some() =>
            {
                for d in 0..rank {
                    self.tie(of.node(id, d), self.state[op.index] + d);
                }
            }
            (Op::Broadcast(op), &[x]) => {
                for (d, &to) in op.dimensions.iter().enumerate() {
                    self.tie(of.node(x, d), of.node(id, to));
                }
            }
            (Op::Transpose(op), &[x]) => {
                for (to, &d) in op.permutation.iter().enumerate() {
                    self.tie(of.node(x, d), of.node(id, to));
                }
            }
            (Op::Reshape(_), &[x]) => self.relate_reshape(of, x, id),
            (Op::Slice(_), &[x]) => {
                self.tie_all(of, x, id);
                for d in (0..rank).filter(|&d| of.dims(x)[d] != of.dims(id)[d]) {
                    self.moved(of.node(id, d));
                }
            }
            (Op::Pad(op), &[x, _]) => {
                self.tie_all(of, x, id);
                let is_padded = |d: &usize| op.dims[*d] != PadDim::edges(0, 0);
                (0..rank).filter(is_padded).for_each(|d| self.moved(of.node(id, d)));
            }
            (Op::Reverse(op), &[x]) => {
                self.tie_all(of, x, id);
                op.dimensions.iter().for_each(|&d| self.moved(of.node(id, d)));
            }
            (Op::Concatenate(op), operands) => {
                operands.iter().for_each(|&x| self.tie_all(of, x, id));
                self.moved(of.node(id, op.dimension));
            }
            // (Of one vector of all indices, an old form, dimensions stay.)
            (Op::DynamicSlice(_), &[x, ref starts @ ..]) if starts.len() == rank => {
                self.tie_all(of, x, id);
                for d in (0..rank).filter(|&d| of.dims(x)[d] != of.dims(id)[d]) {
                    self.stack(of.node(id, d));
                }
            }
            (Op::DynamicUpdateSlice(_), &[x, update, ref starts @ ..]) if starts.len() == rank => {
                self.tie_all(of, x, id);
                self.tie_all(of, update, id);
                for d in (0..rank).filter(|&d| of.dims(update)[d] != of.dims(id)[d]) {
                    self.stack(of.node(id, d));
                }
            }
            (Op::Reduce(op), &[x, _]) if is_simple_fold(module, op.to_apply, of.array(x)) => {
                let mut kept = 0;
                for d in 0..of.dims(x).len() {
                    if op.dimensions.contains(&d) {
                        self.moved(of.node(x, d));
                    } else {
                        self.tie(of.node(x, d), of.node(id, kept));
                        kept += 1;
                    }
                }
            }
            (Op::Dot(op), &[lhs, rhs]) if is_simple_product(op, of.array(lhs), of.array(rhs)) => {
                self.relate_product(of, &op.dims, [lhs, rhs], id);
            }
            (op, operands) if is_elementwise(op) && op.callees().is_empty() => {
                for &x in operands {
                    match of.dims(x) {
                        [] => {}
                        dims if dims == of.dims(id) => self.tie_all(of, x, id),
                        _ => [x, id].iter().for_each(|&id| self.stay_all(of, id)),
                    }
                }
            }
            (_, operands) => {
                self.stay_all(of, id);
                operands.iter().for_each(|&x| self.stay_all(of, x));
            }
        }
    }

    /// Dimensions of more than one element become others of as many together.
    fn relate_reshape(&mut self, of: &Numbered<'_>, x: InstrId, id: InstrId) {
        let long = |id: InstrId| {
            let dims = of.dims(id).iter().enumerate().filter(|(_, size)| **size != 1);
            dims.map(|(d, &size)| (of.node(id, d), size)).collect::<Vec<_>>()
        };
        let (from, to) = (long(x), long(id));
        if of.dims(x).contains(&0) {
            return from.iter().chain(&to).for_each(|&(node, _)| self.stay(node));
        }
        let (mut i, mut j) = (0, 0);
        while i < from.len() && j < to.len() {
            let first = from[i].0;
            let (mut of_from, mut of_to) = (from[i].1, to[j].1);
            self.tie(first, to[j].0);
            (i, j) = (i + 1, j + 1);
            while of_from != of_to {
                let next = if of_from < of_to { &from[i] } else { &to[j] };
                match of_from < of_to {
                    true => (of_from, i) = (of_from * next.1, i + 1),
                    false => (of_to, j) = (of_to * next.1, j + 1),
                }
                self.tie(first, next.0);
            }
        }
    }

    fn relate_product(
        &mut self,
        of: &Numbered<'_>,
        dims: &DotDims,
        [lhs, rhs]: [InstrId; 2],
        id: InstrId,
    ) {
        let batch = dims.lhs_batch.iter().zip(&dims.rhs_batch);
        for (to, (&l, &r)) in batch.enumerate() {
            self.tie(of.node(lhs, l), of.node(id, to));
            self.tie(of.node(rhs, r), of.node(id, to));
        }
        let free =
            [(lhs, dims.lhs_free(of.dims(lhs).len())), (rhs, dims.rhs_free(of.dims(rhs).len()))];
        let free = free.iter().flat_map(|(x, free)| free.iter().map(|&d| (*x, d)));
        for (to, (x, d)) in free.enumerate() {
            self.tie(of.node(x, d), of.node(id, dims.lhs_batch.len() + to));
        }
        // One sum is taken over all of them, of components or of elements.
        let contracting = dims.lhs_contracting.iter().map(|&d| of.node(lhs, d));
        let contracting = contracting.chain(dims.rhs_contracting.iter().map(|&d| of.node(rhs, d)));
        let contracting: Vec<usize> = contracting.collect();
        for &node in &contracting {
            self.tie(contracting[0], node);
            if !dims.lhs_batch.is_empty() {
                self.moved(node);
            }
        }
    }

    /// Keeps dimensions that would make too many components of a value, or many products of one. Whether there were any.
    fn settle(&mut self, of: &Numbered<'_>) -> bool {
        let mut changes = false;
        for id in of.computation.ids() {
            let Some(array) = of.array(id) else { continue };
            let split = self.split(of.first[id.index()], array);
            if split.count() > MAX_PARTS {
                split.components().for_each(|d| self.stay(of.node(id, d)));
                changes = true;
            }
            let instr = of.computation.instr(id);
            if let Op::Dot(op) = &instr.op
                && let Some(&contracting) = op.dims.lhs_contracting.first()
                && !self.is_component(of.node(instr.operands[0], contracting))
            {
                for &x in &instr.operands {
                    for node in (0..of.dims(x).len()).map(|d| of.node(x, d)) {
                        changes |= self.is_component(node);
                        self.stay(node);
                    }
                }
            }
        }
        changes
    }

    /// How many instructions an instruction becomes, at most.
    fn work(&self, of: &Numbered<'_>, id: InstrId) -> usize {
        let parts = |id: InstrId| {
            of.array(id).map_or(1, |array| self.split(of.first[id.index()], array).count())
        };
        let instr = of.computation.instr(id);
        match &instr.op {
            Op::Dot(op) => {
                let lhs = instr.operands[0];
                let contracted = op.dims.lhs_contracting.iter();
                let contracted = contracted.filter(|&&d| self.is_component(of.node(lhs, d)));
                // A product and a sum for each.
                2 * parts(id) * contracted.map(|&d| of.dims(lhs)[d]).product::<usize>()
            }
            _ => instr.operands.iter().map(|&x| parts(x)).max().unwrap_or(1).max(parts(id)),
        }
    }
}

/// Whether a fold of an array is one operation, which loses nothing if it is done in parts.
fn is_simple_fold(module: &Module, to_apply: CompId, array: Option<&ArrayShape>) -> bool {
    let Some(array) = array else { return false };
    let is_small = array.element().is_float() && array.element().bits() < 32;
    let op = reducer(module, to_apply, array.element());
    !is_small && op.is_some_and(|op| op.is_associative() && op.is_commutative())
}

/// Whether a product is a sum of products of elements of its type.
fn is_simple_product(op: &Dot, lhs: Option<&ArrayShape>, rhs: Option<&ArrayShape>) -> bool {
    let is_of_type =
        |array: Option<&ArrayShape>| array.is_some_and(|array| array.element() == op.element);
    op.algorithm.is_none()
        && matches!(op.element, ElementType::F32 | ElementType::F64)
        && is_of_type(lhs)
        && is_of_type(rhs)
}
