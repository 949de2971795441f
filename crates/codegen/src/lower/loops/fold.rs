//! Writes the passes of a kernel: runs over the folded loops that fold elements into accumulators.

use std::iter::zip;

use helio_ir::ops::{BinaryOp, Convert};
use helio_ir::{ElementType, Native, Op, dispatch_type};

use super::{Loops, Pass, Rows};
use crate::elementwise::{self, Elem};
use crate::kernel::{Builder, Cmp, IndexOp, MaskOp, Value};
use crate::lower::Arg;
use crate::lower::affine::{Affine, Dim};
use crate::lower::emit::Point;
use crate::lower::graph::{Node, Reduction};
use crate::lower::reducer::Kind;
use crate::lower::segments::Segment;

/// The most whole steps of a folded loop over lanes after which what is left is written out: of more it takes little
/// of the time.
const MAX_WHOLE: i64 = 8;

/// What is folded into an accumulator.
#[derive(Clone, Copy)]
enum Folding {
    Element(Elem),
    /// What is added is a product of two vectors, not rounded before.
    Product([Value; 2]),
}

/// The accumulators of a pass: for each copy of the loop's body, one for each leaf of each
/// reduction.
type Accumulators = Vec<Vec<Elem>>;

impl<'m> Loops<'_, 'm> {
    /// Writes one pass for the points `points` of the kept loops, and leaves what reductions give
    /// there in `Emit::reduced`.
    pub(super) fn pass(&mut self, b: &mut Builder, pass: &Pass, points: &[Point]) {
        let sets = if self.nest.across { self.nest.unroll } else { points.len() };
        let empty = self.domain.folded.iter().any(|&d| self.size(d) == 0);
        let mut accumulators = match self.rows {
            Some(Rows::Start) => self.start(b, pass, points),
            Some(Rows::Fold { first, count }) => self.folded_rows(b, pass, points, first, count),
            None => {
                let start = self.start(b, pass, points);
                let at = |set: usize| if self.nest.across { 0 } else { set };
                let start = (0..sets).map(|set| start[at(set)].clone()).collect();
                if empty { start } else { self.folded(b, pass, points, 0, start) }
            }
        };
        if self.nest.across {
            let all = accumulators.into_iter().reduce(|x, y| self.combine(b, pass, &x, &y));
            let all = all.unwrap_or_default();
            accumulators = vec![if empty { all } else { self.combine_lanes(b, pass, all) }];
        }
        for (set, values) in accumulators.into_iter().enumerate() {
            self.emit.go(points[set]);
            let mut values = values.into_iter();
            for &i in &pass.reductions {
                let reduction = self.reduction(i);
                for leaf in 0..reduction.types.len() {
                    let value = values.next().expect("an accumulator for each leaf");
                    let value = match self.work.parts {
                        Some(_) => value,
                        None => self.finish(b, reduction, leaf, value),
                    };
                    self.emit.reduced[points[set].copy].insert((i, leaf), value);
                }
            }
        }
    }

    /// What accumulators start with, at each point: neutral elements where the reducer is known,
    /// else the initial values.
    fn start(&mut self, b: &mut Builder, pass: &Pass, points: &[Point]) -> Accumulators {
        let mut of = |point: Point| {
            self.emit.go(point);
            let mut values = Vec::new();
            for &i in &pass.reductions {
                let reduction = self.reduction(i);
                for leaf in 0..reduction.types.len() {
                    values.push(match &reduction.reducer.kind {
                        Kind::Simple(ops) => {
                            elementwise::constant(b, ops[leaf].ty, ops[leaf].neutral)
                        }
                        _ => self.emit.value(b, reduction.inits[leaf]),
                    });
                }
            }
            values
        };
        points.iter().map(|&point| of(point)).collect()
    }

    /// The result from its accumulator: with the initial value folded in, unless the accumulator
    /// began with it, and converted to the type of the result.
    fn finish(
        &mut self,
        b: &mut Builder,
        reduction: &Reduction<'m>,
        leaf: usize,
        value: Elem,
    ) -> Elem {
        let Kind::Simple(ops) = &reduction.reducer.kind else { return value };
        let (simple, ty) = (ops[leaf], reduction.types[leaf]);
        // Asked of the type of the accumulators: what is neutral in a narrower one need not be.
        let known = matches!(
            self.domain.graph.node(reduction.inits[leaf]),
            Node::Literal(bits) if converted(*bits, ty, simple.ty) == simple.neutral
        );
        let value = match known {
            true => value,
            false => {
                let init = self.emit.value(b, reduction.inits[leaf]);
                let init = convert(b, ty, init, simple.ty);
                let operands = [(simple.ty, init), (simple.ty, value)];
                elementwise::apply(b, simple.instr, &operands, simple.ty)
            }
        };
        convert(b, simple.ty, value, ty)
    }

    /// The folded loops from the one at `depth` (0 is the outermost) inwards; gives the
    /// accumulators after them.
    fn folded(
        &mut self,
        b: &mut Builder,
        pass: &Pass,
        points: &[Point],
        depth: usize,
        accumulators: Accumulators,
    ) -> Accumulators {
        if let Some(&dim) = self.nest.inner.get(depth).filter(|_| self.nest.folds_columns) {
            return (0..self.size(dim)).fold(accumulators, |accumulators, at| {
                self.emit.enter(dim, (at, at + 1));
                self.emit.vars[usize::from(dim)] = Some(b.index(at));
                self.folded(b, pass, points, depth + 1, accumulators)
            });
        }
        if let Some(&dim) = self.nest.inner.get(depth) {
            return self.segments(dim).into_iter().fold(accumulators, |accumulators, segment| {
                let (lo, hi) = self.bounds(b, dim, segment);
                carry(b, lo, hi, 1, accumulators, |b, var, accumulators| {
                    self.emit.vars[usize::from(dim)] = Some(var);
                    self.folded(b, pass, points, depth + 1, accumulators)
                })
            });
        }
        match self.nest.vector {
            Some(vector) if self.nest.across => {
                let mut accumulators = accumulators;
                for segment in self.segments(vector) {
                    accumulators = self.across(b, pass, vector, segment, accumulators);
                }
                accumulators
            }
            _ => {
                let mut accumulators = accumulators;
                let mut begins = Vec::with_capacity(points.len());
                for (&point, set) in zip(points, &mut accumulators) {
                    begins.push(b.position());
                    self.emit.go(point);
                    *set = self.step(b, pass, set);
                }
                b.weave(&begins);
                accumulators
            }
        }
    }

    /// What `count` iterations of the folded loop, from the first one on, make of the accumulators that were left where
    /// they go.
    fn folded_rows(
        &mut self,
        b: &mut Builder,
        pass: &Pass,
        points: &[Point],
        first: Value,
        count: i64,
    ) -> Accumulators {
        let dim = usize::from(self.nest.inner[0]);
        let work = self.work;
        let mut accumulators: Accumulators = Vec::with_capacity(points.len());
        for &point in points {
            self.emit.go(point);
            let read = |(reduction, leaf, at, to): &(usize, usize, Affine, Arg)| {
                let ty = self.reduction(*reduction).accumulator(*leaf);
                let place = self.emit.place(b, *to, at, ty);
                self.emit.stored(b, place, ty)
            };
            accumulators.push(work.partial.iter().map(read).collect());
        }
        for row in 0..count {
            let row = b.index(row);
            self.emit.vars[dim] = Some(b.index_op(IndexOp::Add, first, row));
            for (&point, set) in zip(points, &mut accumulators) {
                self.emit.go(point);
                *set = self.step(b, pass, set);
            }
        }
        accumulators
    }

    /// Where a folded loop begins and ends in a segment, and in the part that the kernel is at if
    /// the loop is cut into parts. From here on, the segment is the loop's in `Emit`.
    pub(super) fn bounds(&mut self, b: &mut Builder, dim: Dim, segment: Segment) -> (Value, Value) {
        let size = b.index(self.size(dim));
        let (lo, hi) = match self.work.parts {
            Some(parts) if parts.dim == dim => {
                let part =
                    self.emit.vars[usize::from(parts.part)].expect("the part's loop is open");
                let chunk = b.index(parts.chunk);
                let lo = b.index_op(IndexOp::Mul, part, chunk);
                let end = b.index_op(IndexOp::Add, lo, chunk);
                let hi = b.index_op(IndexOp::Min, end, size);
                (lo, hi)
            }
            _ => (b.index(0), size),
        };
        self.within(b, dim, segment, lo, hi)
    }

    /// The loop over lanes where it is folded, in a segment: several full vectors at a time, then
    /// one at a time, the last of them masked.
    fn across(
        &mut self,
        b: &mut Builder,
        pass: &Pass,
        vector: Dim,
        segment: Segment,
        accumulators: Accumulators,
    ) -> Accumulators {
        let (lo, hi) = self.bounds(b, vector, segment);
        let size = segment.1 - segment.0;
        let step = self.lanes * accumulators.len() as i64;
        let (mut from, mut accumulators) = (lo, accumulators);
        if size >= step {
            let end = self.whole(b, lo, hi, step);
            accumulators = carry(b, lo, end, step, accumulators, |b, var, mut sets| {
                self.emit.vars[usize::from(vector)] = Some(var);
                let mut begins = Vec::with_capacity(sets.len());
                for (copy, set) in sets.iter_mut().enumerate() {
                    begins.push(b.position());
                    let offset = copy as i64 * self.lanes;
                    self.emit.go(Point { offset, ..Point::default() });
                    *set = self.step(b, pass, set);
                }
                b.weave(&begins);
                sets
            });
            from = end;
        }
        if self.work.parts.is_none_or(|parts| parts.dim != vector) && size / step <= MAX_WHOLE {
            return self.rest_of_lanes(b, pass, vector, segment, accumulators);
        }
        // Parts may end anywhere in a segment that does not begin where they do.
        let chunk = self.work.parts.filter(|p| p.dim == vector);
        let chunk = chunk.map_or(step, |parts| if segment.0 == 0 { parts.chunk } else { 1 });
        if size % step != 0 || chunk % step != 0 {
            let first = vec![accumulators[0].clone()];
            let rest = carry(b, from, hi, self.lanes, first, |b, var, mut sets| {
                self.emit.vars[usize::from(vector)] = Some(var);
                let mask = b.mask_below(var, hi);
                self.emit.go(Point { mask: Some(mask), ..Point::default() });
                let next = self.step(b, pass, &sets[0]);
                let chosen = |(new, &old)| elementwise::select(b, mask, new, old);
                sets[0] = zip(next, &sets[0]).map(chosen).collect();
                sets
            });
            accumulators[0].clone_from(&rest[0]);
        }
        accumulators
    }

    /// What a segment of the loop over lanes has behind its whole steps, written out: a vector for each of the first
    /// accumulators, the last one masked.
    fn rest_of_lanes(
        &mut self,
        b: &mut Builder,
        pass: &Pass,
        vector: Dim,
        (first, end): Segment,
        mut accumulators: Accumulators,
    ) -> Accumulators {
        let left = (end - first) % (self.lanes * accumulators.len() as i64);
        let from = end - left;
        self.emit.vars[usize::from(vector)] = Some(b.index(from));
        for (copy, set) in accumulators.iter_mut().enumerate() {
            let offset = copy as i64 * self.lanes;
            if offset >= left {
                break;
            }
            let mask = (offset + self.lanes > left).then(|| {
                let (at, end) = (b.index(from + offset), b.index(end));
                b.mask_below(at, end)
            });
            self.emit.go(Point { offset, mask, ..Point::default() });
            let next = self.step(b, pass, set);
            *set = match mask {
                None => next,
                Some(mask) => {
                    let chosen = |(new, &old)| elementwise::select(b, mask, new, old);
                    zip(next, &*set).map(chosen).collect()
                }
            };
        }
        accumulators
    }

    /// The body of the folded loops at one point: stores, and elements folded into `accumulators`.
    /// Gives the new ones.
    fn step(&mut self, b: &mut Builder, pass: &Pass, accumulators: &[Elem]) -> Vec<Elem> {
        let mut elements = Vec::new();
        for &i in &pass.reductions {
            let reduction = self.reduction(i);
            for (leaf, &input) in reduction.inputs.iter().enumerate() {
                let Kind::Simple(ops) = &reduction.reducer.kind else {
                    elements.push(Folding::Element(self.emit.value(b, input)));
                    continue;
                };
                let (simple, ty) = (ops[leaf], self.domain.graph.info(input).ty);
                let is_sum = simple.op == BinaryOp::Add && simple.ty == ty;
                elements.push(match is_sum.then(|| self.emit.product(input)).flatten() {
                    Some(factors) => {
                        Folding::Product(factors.map(|factor| self.emit.value(b, factor).vector()))
                    }
                    None => {
                        let value = self.emit.value(b, input);
                        Folding::Element(convert(b, ty, value, simple.ty))
                    }
                });
            }
        }
        self.store(b, &pass.stores);
        self.emit.keep(b);
        self.fold(b, pass, accumulators, &elements)
    }

    /// Folds an element into each accumulator of one point.
    fn fold(
        &mut self,
        b: &mut Builder,
        pass: &Pass,
        accumulators: &[Elem],
        elements: &[Folding],
    ) -> Vec<Elem> {
        let mut result = Vec::with_capacity(accumulators.len());
        for &i in &pass.reductions {
            let reduction = self.reduction(i);
            let at = result.len()..result.len() + reduction.types.len();
            let (accumulators, elements) = (&accumulators[at.clone()], &elements[at]);
            match &reduction.reducer.kind {
                Kind::Simple(ops) => {
                    for ((simple, &x), &y) in zip(zip(ops, accumulators), elements) {
                        result.push(match y {
                            Folding::Element(y) => {
                                let operands = [(simple.ty, x), (simple.ty, y)];
                                elementwise::apply(b, simple.instr, &operands, simple.ty)
                            }
                            Folding::Product([y, z]) => Elem::Vector(b.fma(y, z, x.vector())),
                        });
                    }
                }
                _ => {
                    let elements = elements.iter().map(|element| match element {
                        Folding::Element(element) => *element,
                        Folding::Product(_) => unreachable!("only sums take products"),
                    });
                    let args: Vec<Elem> = accumulators.iter().copied().chain(elements).collect();
                    result.extend(self.emit.body(b, &reduction.reducer.body, &args));
                }
            }
        }
        result
    }

    /// Combines the accumulators of all lanes; every lane gets the result.
    fn combine_lanes(&mut self, b: &mut Builder, pass: &Pass, mut all: Vec<Elem>) -> Vec<Elem> {
        if let Some(answers) = self.ask_lanes(b, pass, &all) {
            return answers;
        }
        let mut by = self.lanes as usize / 2;
        while by > 0 {
            let moved: Vec<Elem> = all.iter().map(|&elem| rotate(b, elem, by)).collect();
            all = self.combine(b, pass, &all, &moved);
            by /= 2;
        }
        all
    }

    /// As [`Self::combine_lanes`], without going from lane to lane: if all accumulators are masks
    /// of which it is asked whether any or all lanes are set.
    fn ask_lanes(&self, b: &mut Builder, pass: &Pass, all: &[Elem]) -> Option<Vec<Elem>> {
        let mut ops = Vec::with_capacity(all.len());
        for &i in &pass.reductions {
            let Kind::Simple(simple) = &self.reduction(i).reducer.kind else { return None };
            ops.extend(simple.iter().map(|simple| simple.op));
        }
        let ask = |(&elem, op): (&Elem, BinaryOp)| match elem {
            Elem::Mask(mask) => any_or_all(b, op, mask).map(Elem::Mask),
            _ => None,
        };
        zip(all, ops).map(ask).collect()
    }

    /// Combines two sets of accumulators of the same reductions.
    fn combine(&mut self, b: &mut Builder, pass: &Pass, x: &[Elem], y: &[Elem]) -> Vec<Elem> {
        let (mut x, mut y) = (x.to_vec(), y.to_vec());
        let mut at = 0;
        for &i in &pass.reductions {
            let reduction = self.reduction(i);
            let leaves = at..at + reduction.types.len();
            at = leaves.end;
            let Kind::Selection { position: Some(position) } = reduction.reducer.kind else {
                continue;
            };
            // Of equally good elements the reducer keeps its first argument's, which has to be the
            // one that comes first in the array.
            let (first, second) = (x[leaves.start + position], y[leaves.start + position]);
            let unsigned = reduction.types[position].is_unsigned_integer();
            let less = if unsigned { Cmp::LtU } else { Cmp::Lt };
            let swap = b.compare(less, second.vector(), first.vector());
            for leaf in leaves {
                let (first, second) = (x[leaf], y[leaf]);
                x[leaf] = elementwise::select(b, swap, second, first);
                y[leaf] = elementwise::select(b, swap, first, second);
            }
        }
        let y: Vec<Folding> = y.into_iter().map(Folding::Element).collect();
        self.fold(b, pass, &x, &y)
    }
}

/// A fold of masks as a test of all lanes at once, whether any or all of them are on; `None` for other
/// operations.
fn any_or_all(b: &mut Builder, op: BinaryOp, mask: Value) -> Option<Value> {
    match elementwise::mask_op(op)? {
        MaskOp::Or => Some(b.mask_any(mask)),
        MaskOp::And => {
            let missing = b.mask_not(mask);
            let missing = b.mask_any(missing);
            Some(b.mask_not(missing))
        }
        _ => None,
    }
}

impl Reduction<'_> {
    /// The type in which a leaf is accumulated.
    pub(in crate::lower) fn accumulator(&self, leaf: usize) -> ElementType {
        match &self.reducer.kind {
            Kind::Simple(ops) => ops[leaf].ty,
            _ => self.types[leaf],
        }
    }
}

/// A loop that carries accumulators.
fn carry(
    b: &mut Builder,
    lo: Value,
    hi: Value,
    step: i64,
    accumulators: Accumulators,
    body: impl FnOnce(&mut Builder, Value, Accumulators) -> Accumulators,
) -> Accumulators {
    let flat = |sets: &Accumulators| -> Vec<Value> {
        let values = sets.iter().flatten().flat_map(|&elem| match elem {
            Elem::Vector(x) | Elem::Mask(x) => vec![x],
            Elem::Complex(re, im) => vec![re, im],
        });
        values.collect()
    };
    let shaped = |values: &[Value]| -> Accumulators {
        let mut values = values.iter().copied();
        let mut next = || values.next().expect("as many values as before");
        let mut like = |elem: &Elem| match elem {
            Elem::Vector(_) => Elem::Vector(next()),
            Elem::Mask(_) => Elem::Mask(next()),
            Elem::Complex(..) => {
                let re = next();
                Elem::Complex(re, next())
            }
        };
        accumulators.iter().map(|set| set.iter().map(&mut like).collect()).collect()
    };
    let results = b.for_loop(lo, hi, step, &flat(&accumulators), |b, var, values| {
        let next = body(b, var, shaped(values));
        flat(&next)
    });
    shaped(&results)
}

/// Lane `l` of the result is lane `l - by`, around the end.
fn rotate(b: &mut Builder, elem: Elem, by: usize) -> Elem {
    match elem {
        Elem::Vector(x) => Elem::Vector(b.shift_up(x, x, by)),
        Elem::Complex(re, im) => Elem::Complex(b.shift_up(re, re, by), b.shift_up(im, im, by)),
        Elem::Mask(x) => {
            let (one, zero) =
                (b.int(crate::kernel::Lane::I32, 1), b.int(crate::kernel::Lane::I32, 0));
            let lanes = b.select(x, one, zero);
            let moved = b.shift_up(lanes, lanes, by);
            Elem::Mask(b.compare(Cmp::Ne, moved, zero))
        }
    }
}

/// The bits of a constant in another type.
fn converted(bits: u128, from: ElementType, to: ElementType) -> u128 {
    if from == to {
        return bits;
    }
    let number = dispatch_type!(from, T => <T as Native>::from_bits(bits).to_number());
    dispatch_type!(to, T => Native::to_bits(<T as Native>::from_number(number)))
}

/// The recipe of `convert`, also from a type to itself.
fn convert(b: &mut Builder, from: ElementType, elem: Elem, to: ElementType) -> Elem {
    if from == to {
        return elem;
    }
    elementwise::apply(b, &Op::Convert(Convert { element: to }), &[(from, elem)], to)
}
