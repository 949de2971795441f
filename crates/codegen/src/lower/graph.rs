//! What a fused computation computes at one point of its loops, as a graph of element values.
//!
//! Each value stands for an instruction at an index: movement operations vanish into the index
//! expressions of the loads behind them. Operands of a value precede it in [`Graph::nodes`].

use helio_ir::ops::Yield;
use helio_ir::{CompId, Computation, ElementType, Instr, InstrId, Literal, Module, Op, Shape};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::affine::{Affine, Dim, DimBounds, SymbolId};
pub(super) use super::ids::{FrameId, Guard, NodeId};
use super::moves::LeafElement;
use super::reducer::Reducer;
use super::{Stop, Target};
use crate::elementwise;
use crate::kernel::Mem;

/// Where a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// An operand of the fusion: a leaf of the parameters.
    Operand(usize),
    /// What an earlier stage left.
    Temp(usize),
}

/// The condition that an index is below a bound, or that it is not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cond {
    /// The index.
    pub at: Affine,
    /// The bound.
    pub below: i64,
    /// Whether the index has to be below the bound.
    pub holds: bool,
}

/// How a value is made.
#[derive(Clone, Debug)]
pub(super) enum Node<'m> {
    /// An element; not read where the guard does not hold.
    Load { source: Source, at: Affine, guard: Guard },
    /// A constant, as the bits of an element.
    Literal(u128),
    /// An index expression as a number.
    Index(Affine),
    /// An element-wise operation.
    Apply { op: &'m Op, args: Vec<NodeId> },
    /// One of two values.
    Choose { when: Guard, yes: NodeId, no: NodeId },
    /// An argument of a reducer's body.
    Argument(usize),
    /// What a reduction gives.
    Reduced { reduction: usize, leaf: usize },
}

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info {
    pub ty: ElementType,
    /// The loop variables it depends on, as bits.
    pub dims: u64,
    /// How many reductions, one after the other, come before it.
    pub level: u32,
}

/// Values folded over the reduced loops.
#[derive(Clone, Debug)]
pub(super) struct Reduction<'m> {
    /// The elements to fold; as many as accumulators.
    pub inputs: Vec<NodeId>,
    /// The initial values.
    pub inits: Vec<NodeId>,
    /// The computation that folds an element into the accumulators.
    pub to_apply: CompId,
    /// What that computation does.
    pub reducer: Reducer<'m>,
    /// The accumulators' types.
    pub types: Vec<ElementType>,
    /// How many reductions, one after the other, come before it.
    pub level: u32,
    /// Whether an earlier stage has done it.
    pub done: bool,
}

/// Scalar code with its arguments, or the fused computation itself.
#[derive(Clone)]
struct CallFrame {
    computation: CompId,
    args: Option<Vec<NodeId>>,
}

/// The reduced dimensions: their sizes and the index of the loops in each.
#[derive(Clone, Debug, Default)]
pub(super) struct Folded {
    pub sizes: Vec<usize>,
    pub exprs: Vec<Affine>,
    /// The loop variables, as bits.
    pub dims: u64,
}

/// An index that has been taken apart by division at run time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Digits {
    /// Symbols, and by what each is multiplied in the index, which is their sum.
    pub places: SmallVec<[(SymbolId, i64); 4]>,
    pub index: Affine,
}

impl Digits {
    /// The same expression, with the index in the place of all digits if they are multiplied as they are in it.
    fn joined(&self, at: Affine) -> Affine {
        let factor_of =
            |symbol| at.symbols.iter().find(|term| term.0 == symbol).map_or(0, |term| term.1);
        let Some(&(first, place)) = self.places.first() else { return at };
        let factor = factor_of(first) / place;
        let are_digits = factor != 0
            && self.places.iter().all(|&(symbol, place)| factor_of(symbol) == factor * place);
        if !are_digits {
            return at;
        }
        let mut others = at;
        others.symbols.retain(|term| self.places.iter().all(|place| place.0 != term.0));
        others.plus(&self.index, factor)
    }
}

type Key = (FrameId, InstrId, usize, Vec<Affine>, Guard);

/// More values than this are not worth one kernel.
const MAX_NODES: usize = 4096;
/// Calls of scalar code, which may call others in turn without computing anything.
const MAX_FRAMES: usize = 4096;
/// Instructions that wait for each other's operands while the graph is built.
const MAX_DEPTH: usize = 256;
/// The most elements of a fold that is written out, rather than be a loop.
pub(super) const MAX_WRITTEN_OUT: usize = 8;
/// The most elements of an array in a kernel: index expressions stay far from the ends of `i64`.
pub(super) const MAX_ELEMENTS: usize = 1 << 44;

/// The values of a fused computation.
#[derive(Clone)]
pub(super) struct Graph<'m> {
    pub module: &'m Module,
    pub target: Target<'m>,
    pub nodes: Vec<Node<'m>>,
    pub infos: Vec<Info>,
    pub guards: Vec<Vec<Cond>>,
    /// The value behind each symbol.
    pub symbols: Vec<NodeId>,
    pub reductions: Vec<Reduction<'m>>,
    /// The greatest value of each loop variable.
    pub dim_bounds: Vec<i64>,
    /// The greatest value of each symbol; the least is 0.
    pub symbol_bounds: Vec<i64>,
    /// What some symbols are digits of.
    pub digits: Vec<Digits>,
    folded: Folded,
    frames: Vec<CallFrame>,
    /// The first leaf of each parameter.
    leaves: Vec<usize>,
    /// Whether `f16` is held as its bits: a lane that holds the number makes every NaN a quiet one.
    holds_f16_bits: bool,
    known: FxHashMap<Key, NodeId>,
    literals: FxHashMap<(u128, ElementType), NodeId>,
    depth: usize,
}

impl<'m> Graph<'m> {
    /// An empty graph over loops whose variables go up to `dim_bounds`.
    pub fn new(
        (module, target): (&'m Module, Target<'m>),
        computation: CompId,
        dim_bounds: Vec<i64>,
        folded: Folded,
    ) -> Self {
        let of = module.computation(computation);
        let mut leaves = vec![0];
        for param in of.params().into_values() {
            leaves.push(leaves[leaves.len() - 1] + leaf_count(&of.instr(param).shape));
        }
        Graph {
            module,
            target,
            nodes: Vec::new(),
            infos: Vec::new(),
            guards: vec![Vec::new()],
            symbols: Vec::new(),
            reductions: Vec::new(),
            dim_bounds,
            symbol_bounds: Vec::new(),
            digits: Vec::new(),
            folded,
            frames: vec![CallFrame { computation, args: None }],
            leaves,
            holds_f16_bits: target.holds(ElementType::U16)
                && moves_alone(module, computation, ElementType::F16),
            known: FxHashMap::default(),
            literals: FxHashMap::default(),
            depth: 0,
        }
    }

    /// Makes room for about this many values.
    pub fn reserve(&mut self, values: usize) {
        self.nodes.reserve(values);
        self.infos.reserve(values);
        self.known.reserve(values);
    }

    pub fn bounds(&self) -> DimBounds<'_> {
        DimBounds { dims: &self.dim_bounds, symbols: &self.symbol_bounds }
    }

    /// The place in memory of an element of a row-major array of these sizes.
    pub fn place_of(&self, map: &[Affine], sizes: &[usize]) -> Affine {
        let at = Affine::linear(map, sizes);
        self.digits.iter().fold(at, |at, digits| digits.joined(at))
    }

    pub fn folded(&self) -> &Folded {
        &self.folded
    }

    /// All values, operands before users.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    pub fn info(&self, id: NodeId) -> Info {
        self.infos[id.index()]
    }

    pub fn node(&self, id: NodeId) -> &Node<'m> {
        &self.nodes[id.index()]
    }

    /// The loop variables an index depends on, as bits, and the level of what it needs.
    pub fn affine_info(&self, at: &Affine) -> (u64, u32) {
        let dims = at.dims.iter().fold(0, |bits, &(d, _)| bits | 1 << d);
        at.symbols.iter().fold((dims, 0), |(dims, level), &(s, _)| {
            let info = self.info(self.symbols[s.index()]);
            (dims | info.dims, level.max(info.level))
        })
    }

    fn guard_info(&self, guard: Guard) -> (u64, u32) {
        self.guards[guard.index()].iter().fold((0, 0), |(dims, level), cond| {
            let (d, l) = self.affine_info(&cond.at);
            (dims | d, level.max(l))
        })
    }

    /// Adds a value.
    pub fn push(&mut self, node: Node<'m>, ty: ElementType) -> Result<NodeId, Stop> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Stop::unsupported("too many values"));
        }
        if !self.target.holds(ty) {
            return Err(Stop::unsupported(format!("values of {ty}")));
        }
        let ty = self.held_as(ty);
        let (dims, level) = self.dependencies(&node);
        self.nodes.push(node);
        self.infos.push(Info { ty, dims, level });
        Ok(NodeId::new(self.nodes.len() - 1))
    }

    /// The type as which kernels have values of a type.
    pub fn held_as(&self, ty: ElementType) -> ElementType {
        if ty == ElementType::F16 && self.holds_f16_bits { ElementType::U16 } else { ty }
    }

    /// The loops that a value depends on, and its level.
    fn dependencies(&self, node: &Node<'m>) -> (u64, u32) {
        let join = |a: (u64, u32), b: (u64, u32)| (a.0 | b.0, a.1.max(b.1));
        let of = |this: &Self, ids: &[NodeId]| {
            ids.iter().map(|&id| this.info(id)).fold((0, 0), |a, i| join(a, (i.dims, i.level)))
        };
        match node {
            Node::Load { at, guard, .. } => join(self.affine_info(at), self.guard_info(*guard)),
            Node::Index(at) => self.affine_info(at),
            Node::Literal(_) | Node::Argument(_) => (0, 0),
            Node::Apply { args, .. } => of(self, args),
            Node::Choose { when, yes, no } => join(self.guard_info(*when), of(self, &[*yes, *no])),
            Node::Reduced { reduction, .. } => {
                let reduction = &self.reductions[*reduction];
                let (dims, _) = join(of(self, &reduction.inputs), of(self, &reduction.inits));
                (dims & !self.folded.dims, reduction.level + 1)
            }
        }
    }

    /// Computes anew what values depend on.
    pub fn refresh(&mut self) {
        for id in 0..self.nodes.len() {
            let (dims, level) = self.dependencies(&self.nodes[id]);
            let ty = self.infos[id].ty;
            self.infos[id] = Info { ty, dims, level };
        }
    }

    /// Lets a reduction's result be read from memory, where an earlier stage has left it.
    pub fn replace_reduced(&mut self, reduction: usize, leaf: usize, source: Source, at: &Affine) {
        for node in &mut self.nodes {
            if matches!(node, Node::Reduced { reduction: r, leaf: l } if (*r, *l) == (reduction, leaf))
            {
                *node = Node::Load { source, at: at.clone(), guard: Guard::ALWAYS };
            }
        }
    }

    /// Says over which loops reductions fold.
    pub fn set_folded(&mut self, dims: u64) {
        self.folded.dims = dims;
    }

    /// The values that a value is made of.
    pub fn args(&self, id: NodeId, visit: &mut impl FnMut(NodeId)) {
        self.operands(id, visit);
        self.affines(id, &mut |at| self.affine_args(at, visit));
    }

    /// Whether a condition holds, or does not, wherever each loop variable is at least what `firsts` says and exceeds that by
    /// at most what `spans` does; `None` if that depends.
    pub fn known(&self, cond: &Cond, firsts: &[i64], spans: &[i64]) -> Option<bool> {
        let bounds = DimBounds { dims: spans, symbols: &self.symbol_bounds };
        let moved: i64 = cond.at.dims.iter().map(|&(d, f)| f * firsts[usize::from(d)]).sum();
        let (least, greatest) = cond.at.range(bounds);
        let (least, greatest) = (least + moved, greatest + moved);
        (greatest < cond.below || least >= cond.below)
            .then_some((greatest < cond.below) == cond.holds)
    }

    /// As [`Self::known`], for all conditions of a guard together.
    pub fn known_guard(&self, guard: Guard, firsts: &[i64], spans: &[i64]) -> Option<bool> {
        let conds = &self.guards[guard.index()];
        if conds.iter().any(|cond| self.known(cond, firsts, spans) == Some(false)) {
            return Some(false);
        }
        conds.iter().all(|cond| self.known(cond, firsts, spans).is_some()).then_some(true)
    }

    /// The values that a value is made of, but for those that are read as indices. `lanes` are the
    /// loops that run over lanes, as bits.
    pub fn needs(&self, id: NodeId, lanes: u64, visit: &mut impl FnMut(NodeId)) {
        self.operands(id, visit);
        self.affines(id, &mut |at| self.affine_needs(at, lanes, visit));
    }

    fn operands(&self, id: NodeId, visit: &mut impl FnMut(NodeId)) {
        match self.node(id) {
            Node::Apply { args, .. } => args.iter().for_each(|&arg| visit(arg)),
            Node::Choose { yes, no, .. } => {
                visit(*yes);
                visit(*no);
            }
            Node::Load { .. }
            | Node::Index(_)
            | Node::Literal(_)
            | Node::Argument(_)
            | Node::Reduced { .. } => {}
        }
    }

    /// The index expressions of a value.
    fn affines(&self, id: NodeId, visit: &mut impl FnMut(&Affine)) {
        let guard = match self.node(id) {
            Node::Load { at, guard, .. } => {
                visit(at);
                *guard
            }
            Node::Index(at) => {
                visit(at);
                Guard::ALWAYS
            }
            Node::Choose { when, .. } => *when,
            Node::Literal(_) | Node::Apply { .. } | Node::Argument(_) | Node::Reduced { .. } => {
                Guard::ALWAYS
            }
        };
        self.guards[guard.index()].iter().for_each(|cond| visit(&cond.at));
    }

    /// Whether an index that is to be in vectors needs more than 32 bits, for which it depends on
    /// values or is asked whether it is below a bound. (An index without is computed apart, as an
    /// integer of 64 bits, and only what the lanes differ by is in a vector.) Of values that are not `needed`
    /// it does not count.
    pub fn has_wide_index(&self, needed: &[bool]) -> bool {
        let by_values = |at: &Affine| !at.symbols.is_empty() && self.is_wide(at);
        let nodes = self.nodes.iter().zip(&self.infos).zip(needed).filter(|&(_, &needed)| needed);
        let nodes = nodes.map(|(node, _)| node).any(|(node, info)| match node {
            Node::Load { at, .. } => by_values(at),
            Node::Index(at) => by_values(at) || self.counts_wide(at, info.ty),
            _ => false,
        });
        nodes || self.guards.iter().flatten().any(|cond| self.is_wide(&cond.at))
    }

    /// Whether an index expression as a number of this type is counted in 64 bits. (Integers of fewer
    /// wrap.)
    pub fn counts_wide(&self, at: &Affine, ty: ElementType) -> bool {
        elementwise::lane_bytes(ty) == Some(8) || !ty.is_integer() && self.is_wide(at)
    }

    /// Whether an index expression has values beyond 32 bits.
    pub fn is_wide(&self, at: &Affine) -> bool {
        let (least, most) = at.range(self.bounds());
        i32::try_from(least).is_err() || i32::try_from(most).is_err()
    }

    /// The values in an index expression.
    pub fn affine_args(&self, at: &Affine, visit: &mut impl FnMut(NodeId)) {
        at.symbols.iter().for_each(|&(s, _)| visit(self.symbols[s.index()]));
    }

    /// The values in an index expression, but for those that are read as indices.
    pub fn affine_needs(&self, at: &Affine, lanes: u64, visit: &mut impl FnMut(NodeId)) {
        if at.symbols.is_empty() {
            return;
        }
        let mut affines = vec![at];
        while let Some(at) = affines.pop() {
            for &(s, _) in &at.symbols {
                let id = self.symbols[s.index()];
                match self.index_load(id, lanes) {
                    Some((_, _, at)) => affines.push(at),
                    None => visit(id),
                }
            }
        }
    }

    /// An integer in memory that is the same in all lanes: it is read as an index, without a detour
    /// through vectors.
    pub fn index_load(&self, id: NodeId, lanes: u64) -> Option<(Mem, Source, &Affine)> {
        let Node::Load { source, at, guard: Guard::ALWAYS } = self.node(id) else { return None };
        let info = self.info(id);
        if info.dims & lanes != 0 {
            return None;
        }
        let mem = match info.ty {
            ElementType::S8 => Mem::I8,
            ElementType::S16 => Mem::I16,
            ElementType::S32 | ElementType::U32 => Mem::I32,
            ElementType::S64 => Mem::I64,
            ElementType::U8 => Mem::U8,
            ElementType::U16 => Mem::U16,
            _ => return None,
        };
        Some((mem, *source, at))
    }

    /// Every index expression.
    pub fn each_affine(&mut self, mut visit: impl FnMut(&mut Affine)) {
        for node in &mut self.nodes {
            if let Node::Load { at, .. } | Node::Index(at) = node {
                visit(at);
            }
        }
        self.guards.iter_mut().flatten().for_each(|cond| visit(&mut cond.at));
    }

    /// Makes two loop variables one: see [`Affine::collapse`]. `inner` then goes up to `bound`.
    pub fn collapse(&mut self, outer: Dim, inner: Dim, bound: i64) {
        self.each_affine(|at| at.collapse(outer));
        self.dim_bounds[usize::from(inner)] = bound;
        self.dim_bounds[usize::from(outer)] = 0;
        // What depends on the one depends on both, or does not say so.
        for info in &mut self.infos {
            if info.dims >> outer & 1 == 1 {
                info.dims = info.dims & !(1 << outer) | 1 << inner;
            }
        }
        if self.folded.dims >> outer & 1 == 1 {
            self.folded.dims &= !(1 << outer);
        }
    }

    /// A number known at run time that indices are made of: the value, made to lie in `0..=max`.
    pub fn symbol(&mut self, node: NodeId, max: usize) -> Result<Affine, Stop> {
        if max == 0 {
            return Ok(Affine::default());
        }
        // As a 64-bit signed number it would not be clamped to the same end.
        if self.info(node).ty == ElementType::U64 {
            return Err(Stop::unsupported("a u64 index"));
        }
        let max = max as i64;
        if let Some(at) = self.index_of(node) {
            let (least, greatest) = at.range(self.bounds());
            if 0 <= least && greatest <= max {
                return Ok(at);
            }
        }
        let same = |&s: &usize| self.symbols[s] == node && self.symbol_bounds[s] == max;
        let symbol = (0..self.symbols.len()).find(same).unwrap_or_else(|| {
            self.symbols.push(node);
            self.symbol_bounds.push(max);
            self.symbols.len() - 1
        });
        Ok(Affine::symbol(SymbolId(symbol as u32)))
    }

    /// A guard and one more condition; `None` if it cannot hold.
    pub fn and(&mut self, guard: Guard, at: &Affine, below: i64, holds: bool) -> Option<Guard> {
        let (least, greatest) = at.range(self.bounds());
        if greatest < below || least >= below {
            return ((greatest < below) == holds).then_some(guard);
        }
        let mut conds = self.guards[guard.index()].clone();
        let cond = Cond { at: at.clone(), below, holds };
        if !conds.contains(&cond) {
            conds.push(cond);
        }
        let known = self.guards.iter().position(|known| *known == conds);
        let place = known.unwrap_or_else(|| {
            self.guards.push(conds);
            self.guards.len() - 1
        });
        Some(Guard::new(place))
    }

    /// Both guards.
    pub fn both(&mut self, a: Guard, b: Guard) -> Option<Guard> {
        let conds = self.guards[b.index()].clone();
        conds.iter().try_fold(a, |guard, cond| self.and(guard, &cond.at, cond.below, cond.holds))
    }

    /// The computation that a frame is in.
    pub fn frame_computation(&self, frame: FrameId) -> &'m Computation {
        self.module.computation(self.frames[frame.index()].computation)
    }

    /// Enters scalar code.
    fn enter(&mut self, computation: CompId, args: Vec<NodeId>) -> Result<FrameId, Stop> {
        if self.frames.len() >= MAX_FRAMES {
            return Err(Stop::unsupported("too many calls"));
        }
        self.frames.push(CallFrame { computation, args: Some(args) });
        Ok(FrameId::new(self.frames.len() - 1))
    }

    /// What scalar code gives for arguments.
    pub fn inline(&mut self, computation: CompId, args: Vec<NodeId>) -> Result<Vec<NodeId>, Stop> {
        let frame = self.enter(computation, args)?;
        let callee = self.module.computation(computation);
        let leaves = callee.result_shape().leaves().len();
        (0..leaves)
            .map(|leaf| self.value(frame, callee.root(), leaf, Vec::new(), Guard::ALWAYS))
            .collect()
    }

    /// Looks through tuples: the instruction that makes a leaf, and which of its leaves.
    fn source(&self, frame: FrameId, mut id: InstrId, mut leaf: usize) -> (InstrId, usize) {
        let computation = self.frame_computation(frame);
        let count = |id: InstrId| leaf_count(&computation.instr(id).shape);
        loop {
            let instr = computation.instr(id);
            match &instr.op {
                Op::GetTupleElement(op) => {
                    id = instr.operands[0];
                    let tuple = computation.instr(id).shape.as_tuple().unwrap_or_default();
                    leaf += tuple[..op.index].iter().map(leaf_count).sum::<usize>();
                }
                Op::Tuple(_) => {
                    for &operand in &instr.operands {
                        id = operand;
                        if leaf < count(operand) {
                            break;
                        }
                        leaf -= count(operand);
                    }
                }
                _ => return (id, leaf),
            }
        }
    }

    /// A leaf of the fused computation's own instruction, and which leaf of which.
    pub fn source_of(&self, id: InstrId, leaf: usize) -> (InstrId, usize) {
        self.source(FrameId::FUSED, id, leaf)
    }

    /// The operand of the fusion that a leaf of a parameter is.
    pub fn operand_leaf(&self, param: usize, leaf: usize) -> usize {
        self.leaves[param] + leaf
    }

    /// A leaf of an instruction of the fused computation at an index.
    pub fn at(&mut self, id: InstrId, leaf: usize, map: Vec<Affine>) -> Result<NodeId, Stop> {
        self.value(FrameId::FUSED, id, leaf, map, Guard::ALWAYS)
    }

    /// Whether a frame's parameters are the operands of the whole.
    pub(super) fn is_outermost(&self, frame: FrameId) -> bool {
        self.frames[frame.index()].args.is_none()
    }

    /// A leaf of an instruction at an index, to be valid where the guard holds.
    pub(super) fn value(
        &mut self,
        frame: FrameId,
        id: InstrId,
        leaf: usize,
        map: Vec<Affine>,
        guard: Guard,
    ) -> Result<NodeId, Stop> {
        let (id, leaf) = self.source(frame, id, leaf);
        let computation = self.frame_computation(frame);
        let instr = computation.instr(id);
        let of_leaf = match &instr.shape {
            Shape::Tuple(_) => instr.shape.leaves().get(leaf).copied(),
            shape => (leaf == 0).then_some(shape),
        };
        let Some(Shape::Array(shape)) = of_leaf else {
            return Err(Stop::unsupported("a value that is not an array"));
        };
        if !shape.is_static() || shape.element_count() > MAX_ELEMENTS {
            return Err(Stop::unsupported("a shape with dynamic or huge dimensions"));
        }
        let ty = shape.element();
        // There is no element to be read, wherever the index maps lead: nobody uses the value.
        if shape.element_count() == 0 {
            return self.literal(0, ty);
        }
        let args = self.frames[frame.index()].args.as_ref();
        match (&instr.op, args) {
            (Op::Parameter(param), Some(args)) => return Ok(args[param.number]),
            (Op::Constant(op), _) => {
                let bits = splat(&op.literal)
                    .filter(|_| !op.elided)
                    .ok_or_else(|| Stop::unsupported("an array constant"))?;
                return self.literal(bits, ty);
            }
            _ => {}
        }
        // What is read at a place known beforehand is there.
        let fixed = map.iter().all(|at| at.dims.is_empty() && at.symbols.is_empty());
        let key = (frame, id, leaf, map, if fixed { Guard::ALWAYS } else { guard });
        if let Some(&node) = self.known.get(&key) {
            return Ok(node);
        }
        if self.depth >= MAX_DEPTH {
            return Err(Stop::unsupported("too deep a computation"));
        }
        self.depth += 1;
        let place = LeafElement { frame, id, instr, shape, leaf, map: &key.3, guard: key.4 };
        let node = self.instruction(place);
        self.depth -= 1;
        let node = node?;
        self.known.insert(key, node);
        Ok(node)
    }

    /// Notes an element of another leaf of the same result, at the same index.
    pub(super) fn note_leaf(&mut self, place: LeafElement<'m, '_>, leaf: usize, node: NodeId) {
        let key = (place.frame, place.id, leaf, place.map.to_vec(), place.guard);
        self.known.insert(key, node);
    }

    /// A constant.
    pub fn literal(&mut self, bits: u128, ty: ElementType) -> Result<NodeId, Stop> {
        if let Some(&known) = self.literals.get(&(bits, ty)) {
            return Ok(known);
        }
        let node = self.push(Node::Literal(bits), ty)?;
        self.literals.insert((bits, ty), node);
        Ok(node)
    }
}

/// Whether a computation, with those that it calls, computes nothing of elements of a type, or from
/// them, but where they go.
fn moves_alone(module: &Module, id: CompId, ty: ElementType) -> bool {
    fn is_of(shape: &Shape, ty: ElementType) -> bool {
        match shape {
            Shape::Array(array) => array.element() == ty,
            Shape::Tuple(elements) => elements.iter().any(|element| is_of(element, ty)),
            Shape::Token | Shape::Opaque => false,
        }
    }
    let moves = |op: &Op| match op {
        Op::Select(_) | Op::DynamicSlice(_) | Op::DynamicUpdateSlice(_) | Op::Gather(_) => true,
        op => match op.gives() {
            Yield::Moved | Yield::Same | Yield::Passed | Yield::Recast => op.callees().is_empty(),
            _ => false,
        },
    };
    let (mut pending, mut seen) = (vec![id], FxHashSet::from_iter([id]));
    while let Some(id) = pending.pop() {
        let computation = module.computation(id);
        let is_about = |instr: &Instr| {
            let mut operands = instr.operands.iter().map(|&id| &computation.instr(id).shape);
            is_of(&instr.shape, ty) || operands.any(|shape| is_of(shape, ty))
        };
        // Operands are instructions of the computation, too, and few computations have any of the type.
        let mut instrs = computation.instrs().iter();
        if instrs.any(|instr| is_of(&instr.shape, ty))
            && !computation.instrs().iter().all(|instr| !is_about(instr) || moves(&instr.op))
        {
            return false;
        }
        for &caller in computation.callers() {
            let callees = computation.instr(caller).op.callees().into_iter();
            pending.extend(callees.filter(|&callee| seen.insert(callee)));
        }
    }
    true
}

/// How many leaves a shape has.
fn leaf_count(shape: &Shape) -> usize {
    match shape {
        Shape::Tuple(elements) => elements.iter().map(leaf_count).sum(),
        _ => 1,
    }
}

/// The bits of every element, if all elements are the same.
pub(super) fn splat(literal: &Literal) -> Option<u128> {
    let array = literal.as_array()?;
    helio_ir::dispatch!(array.data(), values => {
        let mut bits = values.iter().map(|&value| helio_ir::Native::to_bits(value));
        let first = bits.next()?;
        bits.all(|other| other == first).then_some(first)
    })
}
