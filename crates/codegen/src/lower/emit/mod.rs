//! Writes the values of a [`Graph`] as instructions of a kernel, at points of the loops that are
//! open.

mod contract;
mod index;
mod kept;
mod memory;
mod values;

use helio_ir::ops::Convert;
use helio_ir::{ElementType, Op};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::affine::{Affine, Dim};
use super::graph::{Graph, Node, NodeId};
use super::nest::{Nest, Woven};
use super::{Arg, Lanes};
use crate::elementwise::{self, Elem};
use crate::kernel::{Buf, Builder, Lane, MaskOp, Value};
use contract::Contraction;
pub(super) use contract::Contractions;
pub(super) use kept::{Kept, lane_memory};
pub(super) use values::Values;

/// Where in the loops values are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    /// Added to the vector loop's variable.
    pub offset: i64,
    /// The lanes that stand for a point of the loops; `None` for all.
    pub mask: Option<Value>,
    /// Which of the copies of the loop's body it is in, from 0.
    pub copy: usize,
    /// The variable of the last outer loop, if several of its iterations are handled together.
    pub outer: Option<Value>,
}

/// Writes values at points of loops.
pub(super) struct Emit<'g, 'm> {
    pub graph: &'g Graph<'m>,
    contractions: Contractions,
    /// The loop over lanes.
    vector: Option<Dim>,
    /// The short loop within it that runs over lanes, too.
    woven: Option<Woven>,
    /// The last outer loop.
    outer: Option<Dim>,
    /// The loops over lanes, as bits.
    lane_loops: u64,
    lanes: i64,
    /// The lanes of indices in vectors; see [`Lanes::index`].
    index_lane: Lane,
    /// The variables of the loops that are open.
    pub vars: Vec<Option<Value>>,
    /// The least value of each loop variable in the segment of its loop that is being written.
    firsts: Vec<i64>,
    /// The greatest value of each there, less the least.
    spans: Vec<i64>,
    /// The buffers, with what the caller passes for them.
    params: Vec<(Arg, Buf)>,
    /// The size of each buffer, in bytes.
    pub sizes: &'g dyn Fn(Arg) -> usize,
    pub point: Point,
    /// Values at the current point.
    values: Values,
    /// What reductions have given, for each copy.
    pub reduced: Vec<FxHashMap<(usize, usize), Elem>>,
    /// The values that a pass keeps in scratch for the next one.
    pub kept: FxHashMap<NodeId, Kept>,
    /// The element within a kept array at the current point, and the bytes of a unit of it.
    pub kept_at: Affine,
}

impl<'g, 'm> Emit<'g, 'm> {
    pub fn new(
        (graph, contractions): (&'g Graph<'m>, Contractions),
        nest: &Nest,
        lanes: Lanes,
        abreast: usize,
        sizes: &'g dyn Fn(Arg) -> usize,
    ) -> Self {
        let copies = if nest.across { 1 } else { nest.unroll * abreast };
        Emit {
            graph,
            contractions,
            vector: nest.vector,
            woven: nest.woven,
            outer: nest.outer.last().copied(),
            lane_loops: nest.lane_loops(),
            lanes: lanes.count as i64,
            index_lane: lanes.index,
            vars: vec![None; 65],
            firsts: vec![0; graph.dim_bounds.len()],
            spans: graph.dim_bounds.clone(),
            params: Vec::new(),
            sizes,
            point: Point::default(),
            values: Values::default(),
            reduced: vec![FxHashMap::default(); copies],
            kept: FxHashMap::default(),
            kept_at: Affine::default(),
        }
    }

    /// Declares a buffer.
    pub fn declare(&mut self, b: &mut Builder, arg: Arg, read: bool, write: bool) {
        let buf = b.param((self.sizes)(arg), read, write);
        self.params.push((arg, buf));
    }

    /// Goes to a segment of a loop: its variable is at least `first` and below `end`.
    pub fn enter(&mut self, dim: Dim, (first, end): (i64, i64)) {
        self.firsts[usize::from(dim)] = first;
        self.spans[usize::from(dim)] = end - 1 - first;
    }

    /// What the caller passes.
    pub fn args(&self) -> Vec<Arg> {
        self.params.iter().map(|&(arg, _)| arg).collect()
    }

    fn buf(&self, arg: Arg) -> Buf {
        let known = self.params.iter().find(|&&(a, _)| a == arg);
        known.map(|&(_, buf)| buf).expect("every buffer is declared before its use")
    }

    /// Goes to another point.
    pub fn go(&mut self, point: Point) {
        if let (Some(dim), Some(var)) = (self.outer, point.outer) {
            self.vars[usize::from(dim)] = Some(var);
        }
        self.point = point;
        self.values.clear();
    }

    /// The values of several nodes at the current point, computed in the order of the graph: what one step of each
    /// needs of the other's, as the best element so far and its place do, is at hand then.
    pub fn all_values(
        &mut self,
        b: &mut Builder,
        roots: impl Iterator<Item = NodeId>,
    ) -> Vec<Elem> {
        let roots: Vec<NodeId> = roots.collect();
        let mut values = std::mem::take(&mut self.values);
        self.evaluate(b, &roots, &mut values, &[]);
        self.values = values;
        roots.iter().map(|&root| self.values[root]).collect()
    }

    /// The value of a node at the current point.
    pub fn value(&mut self, b: &mut Builder, root: NodeId) -> Elem {
        if let Some(value) = self.values.get(root) {
            return value;
        }
        let mut values = std::mem::take(&mut self.values);
        self.evaluate(b, &[root], &mut values, &[]);
        self.values = values;
        self.values[root]
    }

    /// What a reducer's body gives for arguments.
    pub fn body(&mut self, b: &mut Builder, body: &[NodeId], args: &[Elem]) -> Vec<Elem> {
        let mut values = Values::default();
        self.evaluate(b, body, &mut values, args);
        body.iter().map(|&id| values[id]).collect()
    }

    /// Which nodes have to be computed for others, where some are known.
    fn needed(&self, roots: &[NodeId], known: &Values) -> Vec<bool> {
        let mut needed = vec![false; roots.iter().max().map_or(0, |&last| last.index() + 1)];
        roots.iter().for_each(|&root| needed[root.index()] = true);
        for id in self.graph.ids().take(needed.len()).rev() {
            if !needed[id.index()] || known.contains(id) {
                needed[id.index()] = false;
            } else if self.kept.get(&id).is_none_or(|kept| !kept.ready) {
                self.needs(id, &mut |arg| needed[arg.index()] = true);
            }
        }
        needed
    }

    /// Computes nodes at the current point, operands first: the order in which they stand in the graph.
    fn evaluate(&mut self, b: &mut Builder, roots: &[NodeId], values: &mut Values, args: &[Elem]) {
        let needed = self.needed(roots, values);
        values.reserve(needed.len());
        for id in self.graph.ids().take(needed.len()).filter(|&id| needed[id.index()]) {
            let value = match self.kept.get(&id).cloned() {
                Some(kept) if kept.ready => self.restore(b, id, &kept),
                _ => self.node(b, id, values, args),
            };
            values.insert(id, value);
        }
    }

    /// How a node is contracted; not with a product that is kept.
    fn contraction(&self, id: NodeId) -> Option<&Contraction> {
        let contraction = self.contractions.get(id)?;
        (!self.kept.contains_key(&contraction.product)).then_some(contraction)
    }

    /// The factors of a value that is a product, if nothing else needs it.
    pub fn product(&self, id: NodeId) -> Option<[NodeId; 2]> {
        let is_kept = self.kept.contains_key(&id);
        self.contractions.product(self.graph, id).filter(|_| !is_kept)
    }

    /// The values that a value is made of in the present segments.
    fn needs(&self, id: NodeId, visit: &mut impl FnMut(NodeId)) {
        if let Some(&Contraction { factors: [x, y], other, .. }) = self.contraction(id) {
            return [x, y, other].into_iter().for_each(visit);
        }
        match self.graph.node(id) {
            Node::Choose { when, yes, no } => match self.known_guard(*when) {
                Some(true) => visit(*yes),
                Some(false) => visit(*no),
                None => self.graph.needs(id, self.lane_loops, visit),
            },
            _ => self.graph.needs(id, self.lane_loops, visit),
        }
    }

    fn node(&mut self, b: &mut Builder, id: NodeId, values: &Values, args: &[Elem]) -> Elem {
        if let Some(&Contraction { op, factors: [x, y], other, .. }) = self.contraction(id) {
            let [x, y, other] = [x, y, other].map(|id| values[id].vector());
            return Elem::Vector(b.fused(op, x, y, other));
        }
        let ty = self.graph.info(id).ty;
        match self.graph.node(id) {
            Node::Load { source, at, guard } => self.load(b, ty, *source, at, *guard, values),
            Node::Literal(bits) => elementwise::constant(b, ty, *bits),
            Node::Index(at) => {
                // Counted in the lanes of the result, then converted.
                let (lane, count) = match self.graph.counts_wide(at, ty) {
                    true => (Lane::I64, ElementType::S64),
                    false => (Lane::I32, ElementType::S32),
                };
                let index = Elem::Vector(self.index_vector(b, at, lane, values));
                let convert = Op::Convert(Convert { element: ty });
                if ty == count {
                    index
                } else {
                    elementwise::apply(b, &convert, &[(count, index)], ty)
                }
            }
            Node::Apply { op, args } => {
                let of = |&arg: &NodeId| (self.graph.info(arg).ty, values[arg]);
                let operands: SmallVec<[_; 3]> = args.iter().map(of).collect();
                elementwise::apply(b, op, &operands, ty)
            }
            Node::Choose { when, yes, no } => match self.known_guard(*when) {
                Some(true) => values[*yes],
                Some(false) => values[*no],
                None => match self.guard(b, *when, values) {
                    Some(mask) => elementwise::select(b, mask, values[*yes], values[*no]),
                    None => values[*yes],
                },
            },
            Node::Argument(i) => args[*i],
            Node::Reduced { reduction, leaf } => {
                let copies = &self.reduced;
                copies[self.point.copy.min(copies.len() - 1)][&(*reduction, *leaf)]
            }
        }
    }
}

/// Both masks, where `None` is all lanes.
fn both(b: &mut Builder, x: Option<Value>, y: Option<Value>) -> Option<Value> {
    match (x, y) {
        (Some(x), Some(y)) => Some(b.mask_op(MaskOp::And, x, y)),
        (x, y) => x.or(y),
    }
}
