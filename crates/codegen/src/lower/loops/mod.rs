//! Writes a kernel: the loops of a nest, the folds in them, and what is stored where.

mod fold;

use std::iter::zip;

use helio_ir::ElementType;

use super::affine::{Affine, Dim};
use super::domain::Domain;
use super::emit::{Contractions, Emit, Kept, Point, lane_memory};
use super::graph::{Node, NodeId, Reduction};
use super::nest::Nest;
use super::segments::{self, Segment};
use super::{Arg, Lanes, Stage};
use crate::Vouched;
use crate::kernel::{Addr, Builder, IndexOp, Value};

/// A store of a value at each point of the loops around it.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// The value, and its type.
    pub node: NodeId,
    pub ty: ElementType,
    /// The element of the buffer that it becomes.
    pub at: Affine,
    /// What is passed for the buffer.
    pub to: Arg,
}

/// One run over the folded loops: what it folds, and what it stores at each point.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// The numbers of the reductions in the graph.
    pub reductions: Vec<usize>,
    pub stores: Vec<Store>,
}

/// A folded loop that is cut into parts, each folded for itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct FoldParts {
    /// The folded loop.
    pub dim: Dim,
    /// The loop over parts, which is not one of the domain's.
    pub part: Dim,
    /// The number of parts.
    pub count: i64,
    /// Iterations of a part; the last one may have fewer.
    pub chunk: i64,
    /// Whether some iterations are folded at all points of the kept loops before the next ones are, the accumulators
    /// being where they go meanwhile: memory is read in order then.
    pub by_rows: bool,
}

/// What is done to the accumulators of all points in a kernel that folds [by rows](FoldParts::by_rows).
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// They are given their first values.
    Start,
    /// This many iterations of the folded loop, from the first one on, are folded into them.
    Fold { first: Value, count: i64 },
}

/// What a kernel does.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// In this order, at each point of the kept loops.
    pub passes: Vec<Pass>,
    /// Stored once for each point of the kept loops, after all passes.
    pub stores: Vec<Store>,
    /// The folded loop that is cut into parts, if one is: the kernel then folds each part for itself.
    pub parts: Option<FoldParts>,
    /// Where accumulators of parts go: reduction, leaf, place.
    pub partial: Vec<(usize, usize, Affine, Arg)>,
}

/// The most bytes of scratch for values kept between passes: it should stay in the second-level cache.
const MAX_SCRATCH: i64 = 256 << 10;
/// The numbers of a range that are enough to share among threads: as many outer loops as it takes
/// are counted by the range.
const ENOUGH: i64 = 1024;
/// The iterations that are folded at a time [by rows](FoldParts::by_rows). Each reads another row of an array, and rows
/// are read ahead by the hardware as long as they are few.
const ROWS: i64 = 8;
/// A number of a range that takes less than this, in processor cycles, is not worth sharing: loops in it are not counted by
/// the range, which takes some cycles for each of its numbers to find the loops' variables.
const LEAST_SHARED: f64 = 4096.0;

/// Makes the kernel.
pub(super) fn kernel(
    domain: &Domain<'_>,
    nest: &Nest,
    work: &Work,
    lanes: Lanes,
    sizes: &dyn Fn(Arg) -> usize,
) -> Stage {
    let mut b = Builder::of(lanes.count, lanes.vector_bytes);
    let segments = segments::of(domain, nest, work, lanes.count as i64);
    let (unroll, abreast) = abreast(domain, nest, work, &segments, lanes.vector_bytes);
    let nest = &Nest { unroll, ..nest.clone() };
    let emit = Emit::new((&domain.graph, Contractions::new(domain)), nest, lanes, abreast, sizes);
    let lanes = lanes.count;
    let mut kernel = Loops {
        domain,
        nest,
        work,
        lanes: lanes as i64,
        segments,
        emit,
        rows: None,
        abreast: abreast as i64,
        beside: Vec::new(),
    };
    kernel.declare(&mut b);
    kernel.keep(&mut b);
    let per_point = domain.cycles() * work.passes.len().max(1) as f64;
    let all = domain.kept.iter().chain(&domain.folded);
    let all: f64 = all.map(|&d| kernel.size(d) as f64).product();
    let Unit { points, counted } = kernel.range(&mut b, all * per_point / lanes as f64);
    let run = if abreast == 1 { kernel.run(&counted) } else { None };
    let args = kernel.emit.args();
    let cost = (points * per_point / lanes as f64).ceil() as u64;
    Stage { kernel: Vouched::new(b.finish()), args, cost: cost.max(1), run }
}

/// The most vectors of accumulators for iterations of two loops at a time: half of the registers.
const MAX_ABREAST: usize = 16;
/// The most vectors of one iteration then.
const ABREAST_VECTORS: usize = 4;
/// The most processor cycles for a vector of points that is folded of which reading it is a good part.
const ABREAST_CYCLES: f64 = 12.0;
/// The fewest iterations of an outer loop of which several are handled together.
const MIN_ABREAST: i64 = 8;

/// The most iterations of an outer loop that are all handled together, as most of what is folded is the same in each.
const MAX_SHARING: i64 = 4;
/// The most vectors of one iteration then.
const SHARING_VECTORS: usize = 2;

/// How many vectors of the loop over lanes, and how many iterations of the last outer loop, are handled together: where
/// something is folded that is read anew in each iteration of the outer loop, as the second array of what is computed of
/// each two rows, several take it while it is in a register; and where few iterations fold values that are the same in
/// each, as the three parts of a force those of a distance, these are computed once for all.
fn abreast(
    domain: &Domain<'_>,
    nest: &Nest,
    work: &Work,
    segments: &[Vec<Segment>],
    vector_bytes: usize,
) -> (usize, usize) {
    let alone = (nest.unroll, 1);
    let (Some(&outer), Some(vector), [pass]) = (nest.outer.last(), nest.vector, &work.passes[..])
    else {
        return alone;
    };
    let is_plain =
        !nest.across && nest.woven.is_none() && nest.near.is_empty() && !nest.folds_columns;
    let folds = !pass.reductions.is_empty() && pass.stores.is_empty() && work.parts.is_none();
    let is_whole = segments[usize::from(outer)].len() == 1;
    let is_read_again = domain.graph.nodes.iter().any(|node| match node {
        Node::Load { at, .. } => {
            let moves = |dim: Dim| at.factor(dim) != 0;
            at.symbols.is_empty()
                && moves(vector)
                && nest.inner.iter().any(|&dim| moves(dim))
                && !moves(outer)
        }
        _ => false,
    });
    if !is_plain || !folds || !is_whole {
        return alone;
    }
    let iterations = domain.graph.dim_bounds[usize::from(outer)] + 1;
    if (2..=MAX_SHARING).contains(&iterations)
        && domain.folded_cycles_without(outer) > 0.5 * domain.folded_cycles()
    {
        return (nest.unroll.min(SHARING_VECTORS), iterations as usize);
    }
    let takes_long = domain.folded_cycles() > ABREAST_CYCLES;
    if iterations < MIN_ABREAST || !is_read_again || takes_long {
        return alone;
    }
    let leaves = |&i: &usize| domain.graph.reductions[i].types.len();
    let accumulators: usize = pass.reductions.iter().map(leaves).sum();
    let most = if vector_bytes >= 64 { MAX_ABREAST } else { MAX_ABREAST / 2 };
    let unroll = nest.unroll.min(ABREAST_VECTORS);
    match (most / (accumulators.max(1) * unroll)).min(4) {
        0 | 1 => alone,
        3 => (unroll, 2),
        several => (unroll, several),
    }
}

/// The loops of a kernel that is being written.
struct Loops<'g, 'm> {
    domain: &'g Domain<'m>,
    nest: &'g Nest,
    work: &'g Work,
    lanes: i64,
    /// For each loop, the segments that are written one by one.
    segments: Vec<Vec<Segment>>,
    emit: Emit<'g, 'm>,
    /// What is being written of a fold by rows.
    rows: Option<Rows>,
    /// How many iterations of the last outer loop are handled together.
    abreast: i64,
    /// The variables of those that are being written, if they are several.
    beside: Vec<Value>,
}

/// What one number of a kernel's range stands for.
struct Unit {
    /// The points of the domain that it computes.
    points: f64,
    /// The loops whose iterations the range counts, outermost first.
    counted: Vec<Dim>,
}

/// What is known of the number of iterations of a loop over lanes.
#[derive(Clone, Copy)]
struct Length {
    most: i64,
    /// Whether it is a number of whole steps, whatever the bounds turn out to be.
    whole: bool,
}

impl<'g, 'm> Loops<'g, 'm> {
    fn size(&self, dim: Dim) -> i64 {
        self.domain.graph.dim_bounds[usize::from(dim)] + 1
    }

    fn reduction(&self, i: usize) -> &'g Reduction<'m> {
        &self.domain.graph.reductions[i]
    }

    /// Declares the buffers that are used, those read first.
    fn declare(&mut self, b: &mut Builder) {
        let graph = &self.domain.graph;
        let stores = || self.work.passes.iter().flat_map(|p| &p.stores).chain(&self.work.stores);
        let mut needed = vec![false; graph.nodes.len()];
        let mut roots: Vec<NodeId> = stores().map(|store| store.node).collect();
        for &i in self.work.passes.iter().flat_map(|pass| &pass.reductions) {
            let reduction = self.reduction(i);
            roots.extend(reduction.inputs.iter().chain(&reduction.inits));
        }
        roots.iter().for_each(|&id| needed[id.index()] = true);
        for store in stores() {
            graph.affine_args(&store.at, &mut |id| needed[id.index()] = true);
        }
        for id in graph.ids().rev() {
            if needed[id.index()] {
                graph.args(id, &mut |arg| needed[arg.index()] = true);
            }
        }
        let mut read: Vec<Arg> = Vec::new();
        for (node, _) in zip(&graph.nodes, &needed).filter(|&(_, &needed)| needed) {
            if let Node::Load { source, .. } = node
                && !read.contains(&Arg::from(*source))
            {
                read.push(Arg::from(*source));
            }
        }
        let mut written: Vec<Arg> = Vec::new();
        let targets = stores().map(|store| store.to);
        for to in targets.chain(self.work.partial.iter().map(|partial| partial.3)) {
            if !written.contains(&to) {
                written.push(to);
            }
        }
        // Accumulators of rows are read again.
        let reads_results = self.work.parts.is_some_and(|parts| parts.by_rows);
        read.into_iter().for_each(|arg| self.emit.declare(b, arg, true, false));
        written.into_iter().for_each(|arg| self.emit.declare(b, arg, reads_results, true));
    }

    /// Chooses the values to keep in scratch from one pass to the next.
    fn keep(&mut self, b: &mut Builder) {
        // Where folds are written out, later passes find what earlier ones computed.
        if self.nest.folds_columns {
            return;
        }
        let graph = &self.domain.graph;
        let folded = graph.folded().dims;
        let mut order: Vec<Dim> = self.nest.inner.clone();
        if self.nest.across {
            order.extend(self.nest.vector);
        }
        let mut at = Affine::default();
        let mut elements: i64 = 1;
        for &dim in order.iter().rev() {
            at = at.plus(&Affine::dim(dim), elements);
            elements = elements.saturating_mul(self.size(dim));
        }
        if !self.nest.across {
            let copies = self.nest.unroll as i64 * self.abreast;
            elements = elements.saturating_mul(self.lanes * copies);
        }
        self.emit.kept_at = at;
        let mut before = vec![false; graph.nodes.len()];
        let mut left = MAX_SCRATCH;
        for pass in &self.work.passes {
            let mut seen = vec![false; graph.nodes.len()];
            let mut stack: Vec<NodeId> = pass.stores.iter().map(|store| store.node).collect();
            stack.extend(pass.reductions.iter().flat_map(|&i| &self.reduction(i).inputs));
            while let Some(id) = stack.pop() {
                if std::mem::replace(&mut seen[id.index()], true) {
                    continue;
                }
                if before[id.index()]
                    && graph.info(id).dims & folded != 0
                    && self.domain.is_expensive(id)
                {
                    let bytes = lane_memory(graph.info(id).ty).bytes() as i64 * elements;
                    if self.emit.kept.contains_key(&id) {
                        continue;
                    }
                    if bytes <= left {
                        left -= bytes;
                        let base = b.scratch(bytes as usize);
                        self.emit.kept.insert(id, Kept { base, left: false, ready: false });
                        continue;
                    }
                }
                graph.args(id, &mut |arg| stack.push(arg));
            }
            zip(&mut before, seen).for_each(|(before, seen)| *before |= seen);
        }
    }

    /// The loop over the range, and all in it, which takes about this many processor cycles.
    fn range(&mut self, b: &mut Builder, cycles: f64) -> Unit {
        let points = |this: &Self, dims: &mut dyn Iterator<Item = Dim>| -> f64 {
            dims.map(|d| this.size(d) as f64).product()
        };
        let folded = points(self, &mut self.domain.folded.iter().copied());
        let parts = self.work.parts;
        // A single kept loop runs over lanes and is the range itself.
        if let (Some(vector), false, true, None) =
            (self.nest.vector, self.nest.across, self.nest.outer.is_empty(), parts)
        {
            let grain = self.nest.step(self.lanes);
            b.set_range(self.size(vector), grain);
            let (begin, end) = (b.begin(), b.end());
            for segment in self.segments(vector) {
                let (lo, hi) = self.within(b, vector, segment, begin, end);
                // Pieces of the range begin at multiples of the grain.
                let whole = segment.0 == 0 && segment.1 % grain == 0;
                self.columns(b, lo, hi, Length { most: segment.1 - segment.0, whole });
            }
            let near = points(self, &mut self.nest.near.iter().copied());
            let woven = self.nest.woven.map_or(1, |woven| woven.size) as f64;
            return Unit { points: near * woven * folded, counted: vec![vector] };
        }
        // The range counts parts and as many of the outermost loops as it takes to have enough.
        let mut shared = 0;
        let mut count = parts.map_or(1, |parts| parts.count);
        let mut cycles = cycles / count as f64;
        while shared < self.nest.outer.len()
            && count < ENOUGH
            && (count == 1 || cycles >= LEAST_SHARED)
        {
            let size = self.steps(self.nest.outer[shared]);
            count *= size;
            cycles /= size as f64;
            shared += 1;
        }
        b.set_range(count, 1);
        let (begin, end) = (b.begin(), b.end());
        b.for_loop(begin, end, 1, &[], |b, unit, _| {
            let mut rest = unit;
            let mut counted: Vec<(Dim, i64)> =
                self.nest.outer[..shared].iter().map(|&d| (d, self.steps(d))).collect();
            counted.extend(parts.map(|parts| (parts.part, parts.count)));
            for (i, &(dim, size)) in counted.iter().enumerate().rev() {
                if i == 0 {
                    self.emit.vars[usize::from(dim)] = Some(rest);
                    break;
                }
                let by = b.index(size);
                let quotient = b.index_op(IndexOp::Div, rest, by);
                let whole = b.index_op(IndexOp::Mul, quotient, by);
                let index = b.index_op(IndexOp::Sub, rest, whole);
                self.emit.vars[usize::from(dim)] = Some(index);
                rest = quotient;
            }
            match self.nest.outer.last() {
                Some(&last) if self.abreast > 1 && shared == self.nest.outer.len() => {
                    let step = self.emit.vars[usize::from(last)].expect("the loop is open");
                    let (by, size) = (b.index(self.abreast), b.index(self.size(last)));
                    let lo = b.index_op(IndexOp::Mul, step, by);
                    let end = b.index_op(IndexOp::Add, lo, by);
                    let hi = b.index_op(IndexOp::Min, end, size);
                    self.side_by_side(b, last, (lo, hi), &mut |this, b| this.shared(b, shared, 0));
                }
                _ => self.shared(b, shared, 0),
            }
            Vec::new()
        });
        let all =
            self.domain.kept.iter().copied().filter(|d| !self.nest.outer[..shared].contains(d));
        let kept = points(self, &mut all.into_iter());
        let counts_steps = shared > 0 && shared == self.nest.outer.len();
        let kept = if counts_steps { kept * self.abreast as f64 } else { kept };
        let points = kept * folded / parts.map_or(1.0, |parts| parts.count as f64);
        Unit { points, counted: self.nest.outer[..shared].to_vec() }
    }

    /// The steps of an outer loop, of which the last takes several iterations at a time.
    fn steps(&self, dim: Dim) -> i64 {
        let is_last = self.nest.outer.last() == Some(&dim);
        let by = if is_last { self.abreast } else { 1 };
        (self.size(dim) + by - 1) / by
    }

    /// The iterations of the last outer loop from `lo` to `hi`: several together, then what is left.
    fn side_by_side(
        &mut self,
        b: &mut Builder,
        dim: Dim,
        (lo, hi): (Value, Value),
        body: &mut dyn FnMut(&mut Self, &mut Builder),
    ) {
        let end = self.whole(b, lo, hi, self.abreast);
        for (lo, hi, count) in [(lo, end, self.abreast), (end, hi, 1)] {
            b.for_loop(lo, hi, count, &[], |b, var, _| {
                self.emit.vars[usize::from(dim)] = Some(var);
                if count > 1 {
                    let next = |at: i64| {
                        let at = b.index(at);
                        b.index_op(IndexOp::Add, var, at)
                    };
                    self.beside = (0..count).map(next).collect();
                }
                body(self, b);
                self.beside.clear();
                Vec::new()
            });
        }
    }

    /// Points of the loop over lanes, for each iteration of the last outer loop that is being written.
    fn beside(&self, points: impl Iterator<Item = Point>) -> Vec<Point> {
        let points: Vec<Point> = points.collect();
        if self.beside.is_empty() {
            return points;
        }
        let of = |(n, &outer): (usize, &Value)| {
            let first = n * points.len();
            points.iter().map(move |point| Point {
                copy: first + point.copy,
                outer: Some(outer),
                ..*point
            })
        };
        self.beside.iter().enumerate().flat_map(of).collect()
    }

    /// The elements of the only result that a unit of the range computes, if they follow those of
    /// the unit before.
    fn run(&self, counted: &[Dim]) -> Option<usize> {
        let [output] = &self.domain.outputs[..] else { return None };
        let at = &output.at;
        let is_plain = output.every_point && output.updates.is_none() && self.work.parts.is_none();
        if !is_plain || at.constant != 0 || !at.symbols.is_empty() {
            return None;
        }
        // The other loops run through the elements of a unit, and those counted through units.
        let all = || self.domain.kept.iter().chain(&self.domain.folded).copied();
        let others = || all().filter(|d| !counted.contains(d));
        let run: i64 = others().map(|d| self.size(d)).product();
        let last: i64 = others().map(|d| at.factor(d) * (self.size(d) - 1)).sum();
        let mut stride = run;
        let in_order = counted.iter().rev().all(|&d| {
            let fits = at.factor(d) == stride;
            stride *= self.size(d);
            fits
        });
        let forward = all().all(|d| at.factor(d) > 0);
        (in_order && forward && last == run - 1).then_some(run as usize)
    }

    /// What is done for one unit of the range, of the first `shared` loops: the segments, from loop
    /// `depth` on, that it lies in.
    fn shared(&mut self, b: &mut Builder, shared: usize, depth: usize) {
        if depth == shared {
            return self.outer(b, shared);
        }
        let dim = self.nest.outer[depth];
        let segments = self.segments(dim);
        if segments.len() == 1 {
            return self.shared(b, shared, depth + 1);
        }
        let point = self.emit.vars[usize::from(dim)].expect("the loop is open");
        let one = b.index(1);
        let next = b.index_op(IndexOp::Add, point, one);
        for segment in segments {
            // A loop of one iteration or none, with a variable of its own: what depends on it is not
            // moved to where the segment may be another.
            let (lo, hi) = self.within(b, dim, segment, point, next);
            b.for_loop(lo, hi, 1, &[], |b, var, _| {
                self.emit.vars[usize::from(dim)] = Some(var);
                self.shared(b, shared, depth + 1);
                Vec::new()
            });
        }
        // For the next segment of a loop around this one.
        self.emit.vars[usize::from(dim)] = Some(point);
    }

    /// The kept loops from `depth` on, and all in them.
    fn outer(&mut self, b: &mut Builder, depth: usize) {
        if let Some(&dim) = self.nest.outer.get(depth) {
            for segment in self.segments(dim) {
                self.emit.enter(dim, segment);
                let (lo, hi) = (b.index(segment.0), b.index(segment.1));
                if self.abreast > 1 && depth + 1 == self.nest.outer.len() {
                    self.side_by_side(b, dim, (lo, hi), &mut |this, b| this.outer(b, depth + 1));
                    continue;
                }
                b.for_loop(lo, hi, 1, &[], |b, var, _| {
                    self.emit.vars[usize::from(dim)] = Some(var);
                    self.outer(b, depth + 1);
                    Vec::new()
                });
            }
            return;
        }
        match (self.nest.vector, self.work.parts) {
            (Some(vector), Some(parts)) if parts.by_rows => self.by_rows(b, vector, parts.dim),
            (Some(vector), _) if !self.nest.across => self.all_columns(b, vector),
            _ => self.passes(b, &[Point::default()]),
        }
    }

    /// The whole loop over lanes, which is a kept one.
    fn all_columns(&mut self, b: &mut Builder, vector: Dim) {
        let step = self.nest.step(self.lanes);
        for segment in self.segments(vector) {
            self.emit.enter(vector, segment);
            let (lo, hi) = (b.index(segment.0), b.index(segment.1));
            let most = segment.1 - segment.0;
            self.columns(b, lo, hi, Length { most, whole: most % step == 0 });
        }
    }

    /// The loop over lanes once for some iterations of the folded loop after the other.
    fn by_rows(&mut self, b: &mut Builder, vector: Dim, folded: Dim) {
        self.rows = Some(Rows::Start);
        self.all_columns(b, vector);
        for segment in self.segments(folded) {
            let (lo, hi) = self.bounds(b, folded, segment);
            let whole = self.whole(b, lo, hi, ROWS);
            for (lo, hi, count) in [(lo, whole, ROWS), (whole, hi, 1)] {
                b.for_loop(lo, hi, count, &[], |b, first, _| {
                    self.rows = Some(Rows::Fold { first, count });
                    self.all_columns(b, vector);
                    Vec::new()
                });
            }
        }
        self.rows = None;
    }

    fn segments(&self, dim: Dim) -> Vec<Segment> {
        self.segments[usize::from(dim)].clone()
    }

    /// Enters a segment of a loop; gives the part of it from `lo` to `hi`, if only an empty one.
    fn within(
        &mut self,
        b: &mut Builder,
        dim: Dim,
        segment: Segment,
        lo: Value,
        hi: Value,
    ) -> (Value, Value) {
        self.emit.enter(dim, segment);
        if segment == (0, self.size(dim)) {
            return (lo, hi);
        }
        let (first, end) = (b.index(segment.0), b.index(segment.1));
        let lo = b.index_op(IndexOp::Max, lo, first);
        let hi = b.index_op(IndexOp::Min, hi, end);
        (lo, b.index_op(IndexOp::Max, lo, hi))
    }

    /// The loop over lanes where it is a kept one: full vectors, then what is left.
    fn columns(&mut self, b: &mut Builder, lo: Value, hi: Value, length: Length) {
        let vector = self.nest.vector.expect("a loop over lanes");
        let (step, woven) = (self.nest.step(self.lanes), self.nest.woven);
        let mut from = lo;
        if length.most >= step {
            let offset = |copy: usize| if woven.is_some() { 0 } else { copy as i64 * self.lanes };
            let point = |copy: usize| Point { offset: offset(copy), copy, ..Point::default() };
            let points = self.beside((0..self.nest.unroll).map(point));
            let end = self.whole(b, lo, hi, step);
            b.for_loop(lo, end, step, &[], |b, var, _| {
                self.emit.vars[usize::from(vector)] = Some(var);
                self.near(b, 0, &points);
                Vec::new()
            });
            from = end;
        }
        if length.whole {
            return;
        }
        if let Some(woven) = woven {
            b.for_loop(from, hi, step, &[], |b, var, _| {
                self.emit.vars[usize::from(vector)] = Some(var);
                let size = b.index(woven.size);
                let [first, end] = [var, hi].map(|at| b.index_op(IndexOp::Mul, at, size));
                let point = |copy: usize| {
                    let before = b.index(copy as i64 * self.lanes);
                    let at = b.index_op(IndexOp::Add, first, before);
                    Point { mask: Some(b.mask_below(at, end)), copy, ..Point::default() }
                };
                let points: Vec<Point> = (0..self.nest.unroll).map(point).collect();
                self.passes(b, &points);
                Vec::new()
            });
        } else {
            // Whole vectors first, so that it is known how many lanes the last has.
            if let Some([first, end]) = constants(b, [from, hi])
                && end - first > self.lanes
            {
                let whole = b.index(first + (end - first) / self.lanes * self.lanes);
                b.for_loop(from, whole, self.lanes, &[], |b, var, _| {
                    self.emit.vars[usize::from(vector)] = Some(var);
                    let points = self.beside([Point::default()].into_iter());
                    self.near(b, 0, &points);
                    Vec::new()
                });
                from = whole;
            }
            b.for_loop(from, hi, self.lanes, &[], |b, var, _| {
                self.emit.vars[usize::from(vector)] = Some(var);
                let mask = Some(b.mask_below(var, hi));
                let points = self.beside([Point { mask, ..Point::default() }].into_iter());
                self.near(b, 0, &points);
                Vec::new()
            });
        }
    }

    /// The loops that are written out, from `depth` on.
    fn near(&mut self, b: &mut Builder, depth: usize, points: &[Point]) {
        let Some(&dim) = self.nest.near.get(depth) else { return self.passes(b, points) };
        for at in 0..self.size(dim) {
            self.emit.enter(dim, (at, at + 1));
            self.emit.vars[usize::from(dim)] = Some(b.index(at));
            self.near(b, depth + 1, points);
        }
    }

    /// The end of the whole steps from `lo` to `hi`.
    fn whole(&mut self, b: &mut Builder, lo: Value, hi: Value, step: i64) -> Value {
        let length = b.index_op(IndexOp::Sub, hi, lo);
        // Steps are powers of two but for odd numbers of copies.
        let whole = if step.count_ones() == 1 {
            let mask = b.index(-step);
            b.index_op(IndexOp::And, length, mask)
        } else {
            let step = b.index(step);
            let steps = b.index_op(IndexOp::Div, length, step);
            b.index_op(IndexOp::Mul, steps, step)
        };
        b.index_op(IndexOp::Add, lo, whole)
    }

    /// All that happens at points of the kept loops.
    fn passes(&mut self, b: &mut Builder, points: &[Point]) {
        self.emit.forget();
        for pass in &self.work.passes {
            self.pass(b, pass, points);
            self.emit.next_pass();
        }
        let mut begins = Vec::with_capacity(points.len());
        for &point in points {
            begins.push(b.position());
            self.emit.go(point);
            self.store(b, &self.work.stores);
            for (reduction, leaf, at, to) in &self.work.partial {
                let elem = self.emit.reduced[point.copy][&(*reduction, *leaf)];
                let ty = self.reduction(*reduction).accumulator(*leaf);
                let place = self.emit.place(b, *to, at, ty);
                self.emit.store(b, place, ty, elem);
            }
        }
        // Elements are computed from what was there before the kernel: read earlier, they are the same.
        b.weave(&begins);
    }

    /// Stores values of the current point: all values and places are computed before anything is
    /// stored, which may lie where an element was that the others need.
    fn store(&mut self, b: &mut Builder, stores: &[Store]) {
        let elems = self.emit.all_values(b, stores.iter().map(|store| store.node));
        let of = |store: &Store| self.emit.place(b, store.to, &store.at, store.ty);
        let places: Vec<Addr> = stores.iter().map(of).collect();
        for ((store, elem), place) in zip(zip(stores, elems), places) {
            self.emit.store(b, place, store.ty, elem);
        }
    }
}

/// The numbers that two indices are, if both are constant.
fn constants(b: &Builder, [a, z]: [Value; 2]) -> Option<[i64; 2]> {
    Some([b.constant_index(a)?, b.constant_index(z)?])
}
