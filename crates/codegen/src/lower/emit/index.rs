//! Index expressions, and conditions on them: once for all lanes, or in each.

use helio_ir::ElementType;

use super::{Emit, Values, both};
use crate::kernel::{BinOp, Builder, Cmp, Conv, IndexOp, Lane, Value};
use crate::lower::affine::{Affine, Dim, SymbolId};
use crate::lower::graph::{Cond, Guard, NodeId};
use crate::lower::nest::Spread;

impl Emit<'_, '_> {
    /// Whether a condition holds everywhere in the segments of loops that are being written
    /// (`true`) or nowhere (`false`); `None` if that depends on the point.
    pub(super) fn known(&self, cond: &Cond) -> Option<bool> {
        self.graph.known(cond, &self.firsts, &self.spans)
    }

    /// As [`Self::known`], for all conditions of a guard together.
    pub(super) fn known_guard(&self, guard: Guard) -> Option<bool> {
        self.graph.known_guard(guard, &self.firsts, &self.spans)
    }

    /// Whether a value may differ from lane to lane.
    pub(super) fn varies(&self, id: NodeId) -> bool {
        self.graph.info(id).dims & self.lane_loops != 0
    }

    /// How an index goes on from lane to lane, not counting symbols.
    pub(super) fn spread(&self, at: &Affine) -> Spread {
        let step = self.vector.map_or(0, |vector| at.factor(vector));
        match self.woven {
            Some(woven) => woven.spread(step, at.factor(woven.dim), self.point.copy, self.lanes),
            None => Spread::Even { first: step * self.point.offset, step },
        }
    }

    /// How much more an index is in lane 0 than where the loops are.
    pub(super) fn first(&self, at: &Affine) -> i64 {
        match self.spread(at) {
            Spread::Even { first, .. } => first,
            Spread::Uneven(_) => 0,
        }
    }

    /// The loops of an index that have a variable in the kernel, with their factors: all but the
    /// woven one, whose points are in lanes.
    pub(super) fn counted<'a>(&self, at: &'a Affine) -> impl Iterator<Item = (Dim, i64)> + 'a {
        let woven = self.woven.map(|woven| woven.dim);
        at.dims.iter().copied().filter(move |&(dim, _)| Some(dim) != woven)
    }

    /// Computes the values that an index expression is made of.
    pub(super) fn affine_values(&mut self, b: &mut Builder, at: &Affine) {
        let mut needed = Vec::new();
        self.graph.affine_needs(at, self.lane_loops, &mut |id| needed.push(id));
        needed.into_iter().for_each(|id| {
            self.value(b, id);
        });
    }

    /// A symbol that is the same in all lanes, clamped to its bounds.
    pub(super) fn symbol(&mut self, b: &mut Builder, symbol: SymbolId, values: &Values) -> Value {
        let id = self.graph.symbols[symbol.index()];
        let ty = self.graph.info(id).ty;
        let index = match self.graph.index_load(id, self.lane_loops) {
            Some((mem, source, at)) => {
                let buf = self.buf(source.into());
                let addr = self.addr(b, at, mem.bytes() as i64, buf, values);
                b.index_load(mem, addr)
            }
            None => b.extract(values[id].vector()),
        };
        // Both take 32 bits for a signed number.
        let index = match ty {
            ElementType::U32 => {
                let low = b.index(0xffff_ffff);
                b.index_op(IndexOp::And, index, low)
            }
            _ => index,
        };
        let (zero, max) = (b.index(0), b.index(self.graph.symbol_bounds[symbol.index()]));
        let raised = b.index_op(IndexOp::Max, index, zero);
        b.index_op(IndexOp::Min, raised, max)
    }

    /// An index expression in lane 0, without the symbols that differ between lanes; where it goes on
    /// unevenly, at the start of the loops.
    pub(super) fn index(&mut self, b: &mut Builder, at: &Affine, values: &Values) -> Value {
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
            if !self.varies(self.graph.symbols[s.index()]) {
                let symbol = self.symbol(b, s, values);
                add(b, symbol, factor);
            }
        }
        sum
    }

    /// An index expression in each lane.
    pub(super) fn index_vector(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        lane: Lane,
        values: &Values,
    ) -> Value {
        let first = self.index(b, at, values);
        let first = b.splat(lane, first);
        let rest = self.lanes_of(b, at, lane, values);
        b.add(first, rest)
    }

    /// By how much an index expression in each lane exceeds what it is without the lane's number
    /// and without the symbols that differ between lanes.
    pub(super) fn lanes_of(
        &mut self,
        b: &mut Builder,
        at: &Affine,
        lane: Lane,
        values: &Values,
    ) -> Value {
        let mut sum = match self.spread(at) {
            Spread::Even { step: 1, .. } => b.lane_ids(lane),
            Spread::Even { step, .. } => {
                let (ids, step) = (b.lane_ids(lane), b.int(lane, step));
                b.mul(ids, step)
            }
            Spread::Uneven(elements) => b.numbers(lane, &elements),
        };
        for &(s, factor) in &at.symbols {
            let id = self.graph.symbols[s.index()];
            if !self.varies(id) {
                continue;
            }
            let clamped = self.clamped(b, s, values[id].vector());
            // Clamped values are not negative, but may have the highest bit set.
            let clamped = match (b.lane(clamped), lane) {
                (Lane::I32, Lane::I64) => b.convert(Conv::ExtendU, lane, clamped),
                (Lane::I64, Lane::I32) => b.convert(Conv::Narrow, lane, clamped),
                _ => clamped,
            };
            let factor = b.int(lane, factor);
            let product = b.mul(clamped, factor);
            sum = b.add(sum, product);
        }
        sum
    }

    /// A symbol in each lane, clamped to its bounds, in the lanes of its own type. (Where that is
    /// 32 bits wide and unsigned, clamped values may have the highest bit set.)
    fn clamped(&mut self, b: &mut Builder, symbol: SymbolId, index: Value) -> Value {
        let id = self.graph.symbols[symbol.index()];
        let lane = b.lane(index);
        let max = self.graph.symbol_bounds[symbol.index()];
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
    pub(super) fn guard(
        &mut self,
        b: &mut Builder,
        guard: Guard,
        values: &Values,
    ) -> Option<Value> {
        let graph = self.graph;
        let unknown = graph.guards[guard.index()].iter().filter(|cond| self.known(cond).is_none());
        let unknown: Vec<&Cond> = unknown.collect();
        unknown.into_iter().fold(None, |mask, cond| {
            let below = self.below(b, &cond.at, cond.below, values);
            let lanes = if cond.holds { below } else { b.mask_not(below) };
            both(b, mask, Some(lanes))
        })
    }

    /// The lanes where an index is below a bound.
    fn below(&mut self, b: &mut Builder, at: &Affine, bound: i64, values: &Values) -> Value {
        let jumps = at.symbols.iter().any(|&(s, _)| self.varies(self.graph.symbols[s.index()]));
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
}
