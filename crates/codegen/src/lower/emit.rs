//! Values of a [`Graph`] as instructions of a kernel.

use std::collections::HashMap;
use std::iter::zip;

use helio_ir::ops::Convert;
use helio_ir::{ElementType, Op};

use super::affine::{Affine, Bounds, Dim};
use super::graph::{Cond, Graph, Guard, Node, NodeId, Source};
use super::nest::{Nest, Spread, Woven};
use super::{Arg, Lanes};
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, BinOp, Buf, Builder, Cmp, IndexOp, Lane, MaskOp, Mem, Value};

/// Values of nodes at a point.
pub(super) type Values = HashMap<NodeId, Elem>;

/// Registers that values at points side by side may take.
const MOST_LIVE: usize = 16;
/// Fewer operations than this are near enough to those of the next point as it is.
const FEWEST_APPLIED: usize = 3;

/// Where in the loops values are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    /// Added to the vector loop's variable.
    pub offset: i64,
    /// Lanes that exist; `None` for all.
    pub mask: Option<Value>,
    /// Which of the copies of the loop's body.
    pub copy: usize,
}

/// A value kept in scratch from one pass to the next.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Bytes from the start of the scratch.
    pub base: i64,
    /// Whether the present pass has computed it.
    pub left: bool,
    /// Whether a pass before has.
    pub ready: bool,
}

/// Writes values at points of loops.
pub(super) struct Emit<'g, 'm> {
    pub graph: &'g Graph<'m>,
    /// The loop over lanes.
    vector: Option<Dim>,
    /// The short one within it.
    woven: Option<Woven>,
    /// Both, as bits.
    lane_loops: u64,
    lanes: i64,
    /// The widest integers that a vector has room for.
    index_lane: Lane,
    /// The variables of the loops that are open.
    pub vars: Vec<Option<Value>>,
    /// Where the variables begin in the segments of loops that are being written.
    firsts: Vec<i64>,
    /// How much further they go there.
    spans: Vec<i64>,
    /// The buffers, with what the caller passes for them.
    params: Vec<(Arg, Buf)>,
    /// The type of what each temporary buffer holds, and its size in bytes.
    pub sizes: &'g dyn Fn(Arg) -> usize,
    pub point: Point,
    /// Values at the current point.
    values: Values,
    /// What reductions have given, for each copy.
    pub reduced: Vec<HashMap<(usize, usize), Elem>>,
    pub kept: HashMap<NodeId, Kept>,
    /// The element within a kept array at the current point, and the bytes of a unit of it.
    pub kept_at: Affine,
}

impl<'g, 'm> Emit<'g, 'm> {
    pub fn new(
        graph: &'g Graph<'m>,
        nest: &Nest,
        lanes: Lanes,
        sizes: &'g dyn Fn(Arg) -> usize,
    ) -> Self {
        let copies = if nest.across { 1 } else { nest.unroll };
        Emit {
            graph,
            vector: nest.vector,
            woven: nest.woven,
            lane_loops: nest.lane_loops(),
            lanes: lanes.count as i64,
            index_lane: lanes.index,
            vars: vec![None; 65],
            firsts: vec![0; graph.dim_bounds.len()],
            spans: graph.dim_bounds.clone(),
            params: Vec::new(),
            sizes,
            point: Point::default(),
            values: Values::new(),
            reduced: vec![HashMap::new(); copies],
            kept: HashMap::new(),
            kept_at: Affine::default(),
        }
    }

    /// Declares a buffer.
    pub fn declare(&mut self, b: &mut Builder, arg: Arg, write: bool) {
        let buf = b.param((self.sizes)(arg), !write, write);
        self.params.push((arg, buf));
    }

    /// Goes to a segment of a loop: its variable is at least `first` and below `end`.
    pub fn enter(&mut self, dim: Dim, (first, end): (i64, i64)) {
        self.firsts[usize::from(dim)] = first;
        self.spans[usize::from(dim)] = end - 1 - first;
    }

    /// Whether a condition holds everywhere in the present segments, or nowhere.
    fn known(&self, cond: &Cond) -> Option<bool> {
        let bounds = Bounds { dims: &self.spans, symbols: &self.graph.symbol_bounds };
        let moved: i64 = cond.at.dims.iter().map(|&(d, f)| f * self.firsts[usize::from(d)]).sum();
        let (least, greatest) = cond.at.range(bounds);
        let (least, greatest) = (least + moved, greatest + moved);
        (greatest < cond.below || least >= cond.below)
            .then_some((greatest < cond.below) == cond.holds)
    }

    /// Likewise for a guard.
    fn known_guard(&self, guard: Guard) -> Option<bool> {
        let conds = &self.graph.guards[guard as usize];
        if conds.iter().any(|cond| self.known(cond) == Some(false)) {
            return Some(false);
        }
        conds.iter().all(|cond| self.known(cond).is_some()).then_some(true)
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
        self.point = point;
        self.values.clear();
    }

    fn varies(&self, id: NodeId) -> bool {
        self.graph.info(id).dims & self.lane_loops != 0
    }

    /// How an index goes on from lane to lane, not counting symbols.
    fn spread(&self, at: &Affine) -> Spread {
        let step = self.vector.map_or(0, |vector| at.factor(vector));
        match self.woven {
            Some(woven) => woven.spread(step, at.factor(woven.dim), self.point.copy, self.lanes),
            None => Spread::Even { first: step * self.point.offset, step },
        }
    }

    /// How much more an index is in lane 0 than where the loops are.
    fn first(&self, at: &Affine) -> i64 {
        match self.spread(at) {
            Spread::Even { first, .. } => first,
            Spread::Uneven(_) => 0,
        }
    }

    /// The loops of an index that have a variable, with their factors.
    fn counted<'a>(&self, at: &'a Affine) -> impl Iterator<Item = (Dim, i64)> + 'a {
        let woven = self.woven.map(|woven| woven.dim);
        at.dims.iter().copied().filter(move |&(dim, _)| Some(dim) != woven)
    }

    /// The value of a node at the current point.
    pub fn value(&mut self, b: &mut Builder, root: NodeId) -> Elem {
        if let Some(&value) = self.values.get(&root) {
            return value;
        }
        let mut places = [(self.point, std::mem::take(&mut self.values))];
        self.evaluate(b, &[root], &mut places, &[]);
        let [(_, values)] = places;
        self.values = values;
        self.values[&root]
    }

    /// What a reducer's body gives for arguments.
    pub fn body(&mut self, b: &mut Builder, body: &[NodeId], args: &[Elem]) -> Vec<Elem> {
        let mut places = [(self.point, HashMap::new())];
        self.evaluate(b, body, &mut places, args);
        let [(_, values)] = places;
        body.iter().map(|id| values[id]).collect()
    }

    /// Computes nodes at several points side by side, so that a processor need not look far for
    /// work that does not wait for other work. Where that takes too many registers, as many being
    /// taken at each point already, or there is hardly any work, nothing is done.
    pub fn side_by_side(
        &mut self,
        b: &mut Builder,
        points: &[Point],
        roots: &[NodeId],
        taken: usize,
    ) -> Vec<Values> {
        let mut places: Vec<(Point, Values)> =
            points.iter().map(|&point| (point, Values::new())).collect();
        let pays = points.len() > 1 && {
            let needed = self.needed(roots, &Values::new());
            let nodes = zip(&self.graph.nodes, &needed).filter(|&(_, &needed)| needed);
            let applied = nodes.filter(|(node, _)| matches!(node, Node::Apply { .. })).count();
            let live = self.most_live(roots, &needed) + taken;
            applied >= FEWEST_APPLIED && live * points.len() <= MOST_LIVE
        };
        if pays {
            self.evaluate(b, roots, &mut places, &[]);
        }
        places.into_iter().map(|(_, values)| values).collect()
    }

    /// Goes to a point at which values are known.
    pub fn resume(&mut self, point: Point, values: Values) {
        self.point = point;
        self.values = values;
    }

    /// How many values that nodes are made of are needed later, at the most.
    fn most_live(&self, roots: &[NodeId], needed: &[bool]) -> usize {
        let mut live = vec![false; needed.len()];
        let (mut count, mut most) = (0, 0);
        let is_kept = |id: NodeId| !matches!(self.graph.node(id), Node::Literal(_));
        for id in roots.iter().copied().filter(|&id| is_kept(id)) {
            count += usize::from(!std::mem::replace(&mut live[id as usize], true));
        }
        for id in (0..needed.len() as NodeId).rev().filter(|&id| needed[id as usize]) {
            most = most.max(count);
            count -= usize::from(std::mem::replace(&mut live[id as usize], false));
            self.needs(id, &mut |arg| {
                if is_kept(arg) {
                    count += usize::from(!std::mem::replace(&mut live[arg as usize], true));
                }
            });
        }
        most
    }

    /// Which nodes have to be computed for others, where some are known.
    fn needed(&self, roots: &[NodeId], known: &Values) -> Vec<bool> {
        let mut needed = vec![false; roots.iter().max().map_or(0, |&last| last as usize + 1)];
        roots.iter().for_each(|&root| needed[root as usize] = true);
        for id in (0..needed.len() as NodeId).rev() {
            if !needed[id as usize] || known.contains_key(&id) {
                needed[id as usize] = false;
            } else if self.kept.get(&id).is_none_or(|kept| !kept.ready) {
                self.needs(id, &mut |arg| needed[arg as usize] = true);
            }
        }
        needed
    }

    /// Computes nodes at each of some places, operands first: the order in which they stand in the
    /// graph. What is known at one place is known at all.
    fn evaluate(
        &mut self,
        b: &mut Builder,
        roots: &[NodeId],
        places: &mut [(Point, Values)],
        args: &[Elem],
    ) {
        let Some((_, known)) = places.first() else { return };
        let needed = self.needed(roots, known);
        let here = self.point;
        for id in (0..needed.len() as NodeId).filter(|&id| needed[id as usize]) {
            for (point, values) in &mut *places {
                self.point = *point;
                let value = match self.kept.get(&id).cloned() {
                    Some(kept) if kept.ready => self.restore(b, id, &kept),
                    _ => self.node(b, id, values, args),
                };
                values.insert(id, value);
            }
        }
        self.point = here;
    }

    /// The values that a value is made of in the present segments.
    fn needs(&self, id: NodeId, visit: &mut impl FnMut(NodeId)) {
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
        let ty = self.graph.info(id).ty;
        match self.graph.node(id) {
            Node::Load { source, at, guard } => self.load(b, ty, *source, at, *guard, values),
            Node::Literal(bits) => elementwise::constant(b, ty, *bits),
            Node::Index(at) => {
                // Counted in the lanes of the result, then converted.
                let (lane, count) = match elementwise::lane_bytes(ty) {
                    Some(8) => (Lane::I64, ElementType::S64),
                    _ => (Lane::I32, ElementType::S32),
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
                let of = |&arg: &NodeId| (self.graph.info(arg).ty, values[&arg]);
                let operands: Vec<_> = args.iter().map(of).collect();
                elementwise::apply(b, op, &operands, ty)
            }
            Node::Choose { when, yes, no } => match self.known_guard(*when) {
                Some(true) => values[yes],
                Some(false) => values[no],
                None => match self.guard(b, *when, values) {
                    Some(mask) => elementwise::select(b, mask, values[yes], values[no]),
                    None => values[yes],
                },
            },
            Node::Argument(i) => args[*i],
            Node::Reduced { reduction, leaf } => {
                let copies = &self.reduced;
                copies[self.point.copy.min(copies.len() - 1)][&(*reduction, *leaf)]
            }
        }
    }

    fn load(
        &mut self,
        b: &mut Builder,
        ty: ElementType,
        source: Source,
        at: &Affine,
        guard: Guard,
        values: &Values,
    ) -> Elem {
        if self.known_guard(guard) == Some(false) {
            // Whatever it is, nobody asks.
            return elementwise::constant(b, ty, 0);
        }
        let buf = self.buf(source.into());
        let mut addr = self.addr(b, at, ty.size_bytes() as i64, buf, values);
        self.stay_near(b, at, guard, values, &mut addr, ty.size_bytes() as i64);
        let jumps = at.symbols.iter().any(|&(s, _)| self.varies(self.graph.symbols[s as usize]));
        let spread = self.spread(at);
        if let (Spread::Uneven(elements), false) = (&spread, jumps) {
            return self.load_uneven(b, ty, addr, at, elements, guard, values);
        }
        let guard = self.guard(b, guard, values);
        if !jumps && matches!(spread, Spread::Even { step: 0, .. }) {
            return elementwise::load(b, ty, addr, guard);
        }
        let mask = both(b, self.point.mask, guard);
        if !jumps {
            return elementwise::load(b, ty, addr, mask);
        }
        let lane = self.index_lane;
        let index = self.lanes_of(b, at, lane, values);
        elementwise::gather(b, ty, addr, index, ty.size_bytes() as i64, mask)
    }

    /// Reads an element for each lane, of which it is known how far from the first it is.
    #[expect(clippy::too_many_arguments, reason = "what is known of a load")]
    fn load_uneven(
        &mut self,
        b: &mut Builder,
        ty: ElementType,
        addr: Addr,
        at: &Affine,
        elements: &[i64],
        guard: Guard,
        values: &Values,
    ) -> Elem {
        let mut elements = elements.to_vec();
        let mut guard_mask = None;
        match self.fixed_lanes(guard) {
            Some(wanted) if !wanted.contains(&true) => {
                return elementwise::constant(b, ty, 0);
            }
            // Lanes that nobody asks for read what others do, if those are there.
            Some(wanted) if self.point.mask.is_none() => {
                let asked = zip(&elements, &wanted).find(|&(_, &wanted)| wanted);
                let some = asked.map_or(0, |(&element, _)| element);
                let free = zip(&mut elements, &wanted).filter(|&(_, &wanted)| !wanted);
                free.for_each(|(element, _)| *element = some);
            }
            _ => guard_mask = self.guard(b, guard, values),
        }
        // What the loop around the short one does not change is there in all lanes.
        let stays = self.vector.is_some_and(|vector| at.factor(vector) == 0);
        let mask = both(b, self.point.mask.filter(|_| !stays), guard_mask);
        let index = b.numbers(self.index_lane, &elements);
        elementwise::gather(b, ty, addr, index, ty.size_bytes() as i64, mask)
    }

    /// For each lane whether a guard holds, if that depends on nothing but the lane.
    fn fixed_lanes(&self, guard: Guard) -> Option<Vec<bool>> {
        let woven = self.woven?;
        let mut lanes = vec![true; self.lanes as usize];
        for cond in &self.graph.guards[guard as usize] {
            if self.known(cond).is_some() {
                continue;
            }
            let &[(dim, factor)] = &cond.at.dims[..] else { return None };
            if dim != woven.dim || !cond.at.symbols.is_empty() {
                return None;
            }
            for (lane, wanted) in lanes.iter_mut().enumerate() {
                let point = self.point.copy as i64 * self.lanes + lane as i64;
                let index = cond.at.constant + factor * (point % woven.size);
                *wanted &= (index < cond.below) == cond.holds;
            }
        }
        Some(lanes)
    }

    /// Moves an address whose guard holds in no lane to where it would. What is masked off is not
    /// read, but processors take hundreds of cycles to find out that a page is not there.
    fn stay_near(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        guard: Guard,
        values: &Values,
        addr: &mut Addr,
        bytes: i64,
    ) {
        let graph = self.graph;
        let conds = &graph.guards[guard as usize];
        for (i, cond) in conds.iter().enumerate() {
            let Some(&(dim, unit)) = cond.at.dims.first() else { continue };
            let (dims, _) = graph.affine_info(&cond.at);
            let varies = dims & self.lane_loops != 0;
            let seen = conds[..i].iter().any(|other| other.at == cond.at);
            let factor = at.factor(dim);
            if varies || seen || factor == 0 || factor % unit != 0 || self.known(cond).is_some() {
                continue;
            }
            let index = self.index(b, &cond.at, values);
            let mut near = index;
            for cond in conds.iter().filter(|other| other.at == cond.at) {
                let (op, limit) = match cond.holds {
                    true => (IndexOp::Min, cond.below - 1),
                    false => (IndexOp::Max, cond.below),
                };
                let limit = b.index(limit);
                near = b.index_op(op, near, limit);
            }
            let moved = b.index_op(IndexOp::Sub, near, index);
            addr.terms.push((moved, factor / unit * bytes));
        }
    }

    /// The address of an element; what symbols add that differ between lanes is left out, and so is how
    /// an index goes on if that is uneven.
    pub fn addr(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        bytes: i64,
        buf: Buf,
        values: &Values,
    ) -> Addr {
        let mut terms = Vec::new();
        for (d, factor) in self.counted(at) {
            let var = self.vars[usize::from(d)].expect("the loop is open");
            terms.push((var, factor * bytes));
        }
        for &(s, factor) in &at.symbols {
            if !self.varies(self.graph.symbols[s as usize]) {
                terms.push((self.symbol(b, s, values), factor * bytes));
            }
        }
        let step = match self.spread(at) {
            Spread::Even { step, .. } => step,
            Spread::Uneven(_) => 1,
        };
        let offset = (at.constant + self.first(at)) * bytes;
        Addr { buf, offset, terms, lane_stride: step * bytes }
    }

    /// Writes a value.
    pub fn store(&mut self, b: &mut Builder, to: Arg, at: &Affine, ty: ElementType, elem: Elem) {
        let buf = self.buf(to);
        self.affine_values(b, at);
        let values = std::mem::take(&mut self.values);
        let addr = self.addr(b, at, ty.size_bytes() as i64, buf, &values);
        self.values = values;
        let mask = self.point.mask.filter(|_| addr.lane_stride != 0);
        elementwise::store(b, ty, elem, addr, mask);
    }

    /// Computes what an index expression is made of.
    fn affine_values(&mut self, b: &mut Builder, at: &Affine) {
        let mut needed = Vec::new();
        self.graph.affine_needs(at, self.lane_loops, &mut |id| needed.push(id));
        needed.into_iter().for_each(|id| {
            self.value(b, id);
        });
    }

    /// A symbol that is the same in all lanes.
    fn symbol(&mut self, b: &mut Builder, symbol: u32, values: &Values) -> Value {
        let id = self.graph.symbols[symbol as usize];
        let ty = self.graph.info(id).ty;
        let index = match self.graph.index_load(id, self.lane_loops) {
            Some((mem, source, at)) => {
                let buf = self.buf(source.into());
                let addr = self.addr(b, at, mem.bytes() as i64, buf, values);
                b.index_load(mem, addr)
            }
            None => b.extract(values[&id].vector()),
        };
        // Neither way knows of unsigned numbers of 32 bits.
        let index = match ty {
            ElementType::U32 => {
                let low = b.index(0xffff_ffff);
                b.index_op(IndexOp::And, index, low)
            }
            _ => index,
        };
        let (zero, max) = (b.index(0), b.index(self.graph.symbol_bounds[symbol as usize]));
        let raised = b.index_op(IndexOp::Max, index, zero);
        b.index_op(IndexOp::Min, raised, max)
    }

    /// An index expression in lane 0, without the symbols that differ between lanes; where it goes on
    /// unevenly, at the start of the loops.
    fn index(&mut self, b: &mut Builder, at: &Affine, values: &Values) -> Value {
        let mut sum = b.index(at.constant + self.first(at));
        let mut add = |b: &mut Builder, term: Value, factor: i64| {
            let factor = b.index(factor);
            let product = b.index_op(IndexOp::Mul, term, factor);
            sum = b.index_op(IndexOp::Add, sum, product);
        };
        for (d, factor) in self.counted(at) {
            let var = self.vars[usize::from(d)].expect("the loop is open");
            add(b, var, factor);
        }
        for &(s, factor) in &at.symbols {
            if !self.varies(self.graph.symbols[s as usize]) {
                let symbol = self.symbol(b, s, values);
                add(b, symbol, factor);
            }
        }
        sum
    }

    /// An index expression in each lane.
    fn index_vector(&mut self, b: &mut Builder, at: &Affine, lane: Lane, values: &Values) -> Value {
        let first = self.index(b, at, values);
        let first = b.splat(lane, first);
        let rest = self.lanes_of(b, at, lane, values);
        b.add(first, rest)
    }

    /// By how much an index expression in each lane exceeds what it is without the lane's number
    /// and without the symbols that differ between lanes.
    fn lanes_of(&mut self, b: &mut Builder, at: &Affine, lane: Lane, values: &Values) -> Value {
        let mut sum = match self.spread(at) {
            Spread::Even { step: 1, .. } => b.lane_ids(lane),
            Spread::Even { step, .. } => {
                let (ids, step) = (b.lane_ids(lane), b.int(lane, step));
                b.mul(ids, step)
            }
            Spread::Uneven(elements) => b.numbers(lane, &elements),
        };
        for &(s, factor) in &at.symbols {
            let id = self.graph.symbols[s as usize];
            if !self.varies(id) {
                continue;
            }
            let clamped = self.clamped(b, s, values[&id].vector());
            let clamped = match (b.lane(clamped), lane) {
                (Lane::I32, Lane::I64) => b.convert(crate::kernel::Conv::Extend, lane, clamped),
                (Lane::I64, Lane::I32) => b.convert(crate::kernel::Conv::Narrow, lane, clamped),
                _ => clamped,
            };
            let factor = b.int(lane, factor);
            let product = b.mul(clamped, factor);
            sum = b.add(sum, product);
        }
        sum
    }

    /// A symbol in each lane, in the lanes of its own type.
    fn clamped(&mut self, b: &mut Builder, symbol: u32, index: Value) -> Value {
        let id = self.graph.symbols[symbol as usize];
        let lane = b.lane(index);
        let max = self.graph.symbol_bounds[symbol as usize];
        if self.graph.info(id).ty.is_unsigned_integer() {
            let max = b.int(lane, max.min(i64::from(u32::MAX)));
            return b.bin(BinOp::MinU, index, max);
        }
        let max = if lane == Lane::I32 { max.min(i64::from(i32::MAX)) } else { max };
        let (zero, max) = (b.int(lane, 0), b.int(lane, max));
        let raised = b.bin(BinOp::Max, index, zero);
        b.bin(BinOp::Min, raised, max)
    }

    /// The lanes where a guard holds; `None` if it holds in all.
    fn guard(&mut self, b: &mut Builder, guard: Guard, values: &Values) -> Option<Value> {
        let graph = self.graph;
        let unknown = graph.guards[guard as usize].iter().filter(|cond| self.known(cond).is_none());
        let unknown: Vec<&Cond> = unknown.collect();
        unknown.into_iter().fold(None, |mask, cond| {
            let below = self.below(b, &cond.at, cond.below, values);
            let lanes = if cond.holds { below } else { b.mask_not(below) };
            both(b, mask, Some(lanes))
        })
    }

    /// The lanes where an index is below a bound.
    fn below(&mut self, b: &mut Builder, at: &Affine, bound: i64, values: &Values) -> Value {
        let jumps = at.symbols.iter().any(|&(s, _)| self.varies(self.graph.symbols[s as usize]));
        let step = match self.spread(at) {
            Spread::Even { step, .. } if !jumps => step,
            _ => {
                let lane = self.index_lane;
                let index = self.index_vector(b, at, lane, values);
                let bound = b.int(lane, bound);
                return b.compare(Cmp::Lt, index, bound);
            }
        };
        let zero = b.index(0);
        if step == 1 {
            let (first, end) = (self.index(b, at, values), b.index(bound));
            return b.mask_below(first, end);
        }
        if step == 0 {
            // All lanes or none.
            let distance = self.index(b, &at.offset(-bound), values);
            let lanes = b.index(b.lanes() as i64);
            let scaled = b.index_op(IndexOp::Mul, distance, lanes);
            return b.mask_below(scaled, zero);
        }
        // Rising, the first lanes are below, up to (bound - first) / step rounded up; falling, those
        // after the first (first - bound) / -step + 1.
        let count = step.abs();
        let distance = match step > 0 {
            true => self.index(b, &at.times(-1).offset(bound + count - 1), values),
            false => self.index(b, &at.offset(-bound + count), values),
        };
        let distance = b.index_op(IndexOp::Max, distance, zero);
        let count = b.index(count);
        let lanes = b.index_op(IndexOp::Div, distance, count);
        let first = b.mask_below(zero, lanes);
        if step > 0 { first } else { b.mask_not(first) }
    }

    fn kept_addr(&mut self, b: &mut Builder, base: i64, bytes: i64) -> Addr {
        let at = self.kept_at.clone();
        let none = HashMap::new();
        let addr = self.addr(b, &at, bytes, Buf::Scratch, &none);
        let lanes = b.lanes() as i64;
        match addr.lane_stride {
            // Each copy of a column has its own.
            0 => Addr {
                offset: base
                    + (addr.offset * self.reduced.len() as i64 + self.point.copy as i64 * bytes)
                        * lanes,
                terms: addr
                    .terms
                    .iter()
                    .map(|&(v, f)| (v, f * lanes * self.reduced.len() as i64))
                    .collect(),
                lane_stride: bytes,
                ..addr
            },
            _ => Addr { offset: base + addr.offset, ..addr },
        }
    }

    /// Leaves values of the current point in scratch for later passes.
    pub fn keep(&mut self, b: &mut Builder) {
        let mut pending: Vec<(NodeId, i64)> = self
            .kept
            .iter()
            .filter(|(id, kept)| !kept.ready && self.values.contains_key(id))
            .map(|(&id, kept)| (id, kept.base))
            .collect();
        pending.sort_unstable();
        for (id, base) in pending {
            let Elem::Vector(value) = self.values[&id] else { continue };
            let mem = memory(b.lane(value));
            let addr = self.kept_addr(b, base, mem.bytes() as i64);
            b.store(value, mem, addr, self.point.mask);
            self.kept.get_mut(&id).expect("it is kept").left = true;
        }
    }

    /// Begins with the first pass; what was kept is stale.
    pub fn forget(&mut self) {
        self.reduced.iter_mut().for_each(HashMap::clear);
        self.kept.values_mut().for_each(|kept| (kept.left, kept.ready) = (false, false));
    }

    /// Goes on to the next pass.
    pub fn next_pass(&mut self) {
        self.kept.values_mut().for_each(|kept| kept.ready = kept.left);
    }

    fn restore(&mut self, b: &mut Builder, id: NodeId, kept: &Kept) -> Elem {
        let mem = lane_memory(self.graph.info(id).ty);
        let addr = self.kept_addr(b, kept.base, mem.bytes() as i64);
        Elem::Vector(b.load(mem, addr, self.point.mask))
    }
}

/// How lanes lie in memory unchanged.
fn memory(lane: Lane) -> Mem {
    match lane {
        Lane::I32 => Mem::I32,
        Lane::I64 => Mem::I64,
        Lane::F32 => Mem::F32,
        Lane::F64 => Mem::F64,
    }
}

/// How the lanes of a type that has one vector lie in memory unchanged.
pub(super) fn lane_memory(ty: ElementType) -> Mem {
    match (elementwise::lane_bytes(ty), ty.is_float()) {
        (Some(8), true) => Mem::F64,
        (Some(8), false) => Mem::I64,
        (_, true) => Mem::F32,
        (_, false) => Mem::I32,
    }
}

/// Both masks, where `None` is all lanes.
fn both(b: &mut Builder, x: Option<Value>, y: Option<Value>) -> Option<Value> {
    match (x, y) {
        (Some(x), Some(y)) => Some(b.mask_op(MaskOp::And, x, y)),
        (x, y) => x.or(y),
    }
}
