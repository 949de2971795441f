//! How the loops of a kernel are arranged: which one runs over lanes, which around the others.
//!
//! A last dimension that is shorter than a vector, such as the channels of pixels, goes one of two
//! ways. Its loop is *near*: it is written out inside of the loop over pixels, whose lanes hold one
//! channel of several pixels, which are a few elements apart in memory. Each channel has code of its
//! own, and what several are made of is computed once: best for cross products and stacks. Or its loop
//! is *woven* into the lanes, which hold pixels as they lie in memory. All channels have the same code,
//! and lanes choose where they differ: best for a bias of each channel. Costs decide. A last dimension that is longer
//! than a vector, but no whole number of them, may be woven, too: no lane is empty then, and no store under a mask.

use std::iter::zip;

use helio_ir::{BinaryOp, Op, UnaryOp, ops};
use rustc_hash::FxHashMap;

use super::affine::{Affine, Dim, SymbolId};
use super::domain::{Domain, Output};
use super::graph::{Node, NodeId, Reduction, Source};
use super::near::Near;
use crate::elementwise;
use crate::kernel::{MAX_COLUMNS, neighbours};

/// An arrangement of loops.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// The loop over lanes; none if there is but one point, or if elements that are folded in order
    /// leave no other loop.
    pub vector: Option<Dim>,
    /// Whether that loop is folded: lanes are then combined at its end.
    pub across: bool,
    /// The other kept loops, outermost first.
    pub outer: Vec<Dim>,
    /// Kept loops of a few iterations, written out inside of the loop over lanes: what they touch lies
    /// between what the lanes touch, and so is touched while it is in cache.
    pub near: Vec<Dim>,
    /// The other folded loops, outermost first.
    pub inner: Vec<Dim>,
    /// Whether these are written out, as what they fold are columns of the rows in lanes; see [`Domain::folds_columns`].
    pub folds_columns: bool,
    /// A short kept loop whose points are in lanes, too, those of several iterations of the one over lanes.
    pub woven: Option<Woven>,
    /// Vectors that one iteration handles.
    pub unroll: usize,
}

/// A short loop that runs over lanes together with the loop around it: lanes go through all of its
/// points, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Woven {
    pub dim: Dim,
    pub size: i64,
}

/// How an index expression goes on from lane to lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// By the same amount each time, from where it is in the first lane.
    Even { first: i64, step: i64 },
    /// By what it is in each lane more than at the start of the loops.
    Uneven(Vec<i64>),
}

impl Woven {
    /// Iterations of the loop around it that fill whole vectors, and the number of these vectors.
    fn period(self, lanes: i64) -> (i64, i64) {
        let common = 1 << self.size.trailing_zeros().min(lanes.trailing_zeros());
        (lanes / common, self.size / common)
    }

    /// Whether its loop leaves lanes of its last vector empty, or of the only one, and is short.
    fn fits_lanes(self, lanes: i64) -> bool {
        self.size > 0
            && self.size % lanes != 0
            && (self.size < lanes || self.period(lanes).1 <= MAX_COPIES)
    }

    /// How an expression that goes on by `outer` from one iteration of the loop around it to the next,
    /// and by `inner` in this one, goes on in vector number `copy` of a period.
    pub fn spread(self, outer: i64, inner: i64, copy: usize, lanes: i64) -> Spread {
        let at = |lane: i64| {
            let point = copy as i64 * lanes + lane;
            outer * (point / self.size) + inner * (point % self.size)
        };
        let (first, step) = (at(0), at(1) - at(0));
        match (0..lanes).all(|lane| at(lane) == first + step * lane) {
            true => Spread::Even { first, step },
            false => Spread::Uneven((0..lanes).map(at).collect()),
        }
    }
}

/// What an element takes that is read far from the other lanes' elements, in cycles,
const GATHER_CYCLES: f64 = 1.5;
/// and one that is written there.
const SCATTER_CYCLES: f64 = 2.5;
/// What it takes to combine the lanes of a folded vector, in cycles.
const COMBINE_CYCLES: f64 = 20.0;
/// What it takes to begin and end a loop over lanes, masks included, in cycles.
const LOOP_CYCLES: f64 = 8.0;
/// The most vectors of a period in which a loop is woven that is longer than one. (So a row of 136 elements may have 17
/// vectors with its neighbour; one of 33 would have 33 vectors with 15.)
const MAX_COPIES: i64 = 17;
/// The most values of a loop's body, all copies counted, in which a short loop is woven.
const MAX_WOVEN: i64 = 1024;

/// The most values of a loop's body, all copies counted, that are written out where a loop has few vectors.
const MAX_WHOLE: usize = 1024;
/// The least vectors of a loop whose body is copied four times although it has many values: copies take memory for code
/// that has to be read, which a loop of few iterations does not earn back.
const MANY_VECTORS: usize = 64;

/// The most registers for accumulators, those of all copies of a loop's body.
const MAX_ACCUMULATORS: usize = 16;

impl Nest {
    /// Chooses an arrangement.
    pub fn new(domain: &Domain<'_>, lanes: usize) -> Nest {
        let ordered = domain.graph.reductions.iter().any(|r| r.reducer.is_ordered());
        let mut candidates: Vec<(Dim, bool)> = domain.kept.iter().map(|&d| (d, false)).collect();
        if !ordered {
            // In a lane, elements come in the order of the array, which says what is the first of equals,
            // if all other folded loops are around the one over lanes.
            let first =
                if domain.keeps_first() { domain.folded.len().saturating_sub(1) } else { 0 };
            candidates.extend(domain.folded[first..].iter().map(|&d| (d, true)));
        }
        let cost = |&(dim, across): &(Dim, bool)| domain.vector_cost(dim, across, lanes);
        // Of equally good loops, the innermost.
        let best = candidates.into_iter().rev().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let (vector, across) = best.map_or((None, false), |(dim, across)| (Some(dim), across));
        let plain = best.as_ref().map_or(f64::INFINITY, cost);
        let woven = domain.woven(lanes as i64).filter(|&(cost, ..)| cost < plain);
        let (vector, across, woven) = match woven {
            Some((_, vector, woven)) => (Some(vector), false, Some(woven)),
            None => (vector, across, None),
        };
        let near = if woven.is_some() { Near::default() } else { domain.near(vector) };
        let (near, written_out) = (near.dims, near.points.max(1));
        let elsewhere = |d: &Dim| {
            Some(*d) == vector || near.contains(d) || woven.is_some_and(|woven| woven.dim == *d)
        };
        let others = |dims: &[Dim]| dims.iter().copied().filter(|d| !elsewhere(d)).collect();
        let (outer, inner) = (others(&domain.kept), others(&domain.folded));
        let folds_columns = !across && woven.is_none() && domain.folds_columns(vector);
        let unroll = match woven {
            _ if folds_columns => 1,
            Some(woven) => woven.period(lanes as i64).1 as usize,
            None => (domain.unroll(vector, across, lanes) / written_out as usize).max(1),
        };
        Nest { vector, across, outer, near, inner, folds_columns, woven, unroll }
    }

    /// The loops that run over lanes, as bits.
    pub fn lane_loops(&self) -> u64 {
        let woven = self.woven.map(|woven| woven.dim);
        self.vector.into_iter().chain(woven).fold(0, |bits, dim| bits | 1 << dim)
    }

    /// How many iterations of the loop over lanes are handled at a time.
    pub fn step(&self, lanes: i64) -> i64 {
        match self.woven {
            Some(woven) => woven.period(lanes).0,
            None => lanes * self.unroll as i64,
        }
    }
}

/// What it takes to compute a value for one vector of points, in processor cycles, estimated: only
/// how values compare with each other and with the costs of memory matters.
fn cycles(node: &Node<'_>) -> f64 {
    let op = match node {
        Node::Apply { op, .. } => op,
        Node::Choose { .. } => return 1.0,
        Node::Load { .. } | Node::Index(_) => return 0.5,
        Node::Literal(_) | Node::Argument(_) | Node::Reduced { .. } => return 0.0,
    };
    let cost = match op {
        Op::Unary(UnaryOp::Exp | UnaryOp::Expm1 | UnaryOp::Log | UnaryOp::Tanh) => return 10.0,
        Op::Unary(op) => op.cost(),
        Op::Binary(op) => op.cost(),
        _ => ops::Cost::Cheap,
    };
    match cost {
        ops::Cost::Cheap => 1.0,
        ops::Cost::Division => 8.0,
        ops::Cost::Transcendental => 25.0,
    }
}

impl<'m> Domain<'m> {
    /// Whether of elements that are equally good the first has to be kept.
    fn keeps_first(&self) -> bool {
        let keeps_first = |r: &Reduction<'_>| r.reducer.kind.keeps_first();
        self.graph.reductions.iter().any(keeps_first)
    }

    /// The iterations of a loop.
    fn size(&self, dim: Dim) -> i64 {
        self.graph.dim_bounds[usize::from(dim)] + 1
    }

    /// What memory accesses and arithmetic take for each vector of elements if `dim` is the loop
    /// over lanes, in cycles.
    fn vector_cost(&self, dim: Dim, across: bool, lanes: usize) -> f64 {
        let lanes = lanes as f64;
        let near = if across { Near::default() } else { self.near(Some(dim)) };
        let folds_columns = !across && self.folds_columns(Some(dim));
        let are_columns = |apart| near.fills(apart) || folds_columns && apart <= MAX_COLUMNS;
        let access = |at: &Affine| match at.factor(dim).abs() {
            0 => 0.3,
            1 => 1.0,
            // As many vectors, whose elements change places.
            apart if are_columns(apart) => 1.0 + (apart as f64).log2(),
            // A few elements apart: as many vectors, and a permutation for each.
            apart @ 2..=8 => apart as f64,
            _ => GATHER_CYCLES * lanes,
        };
        let jumps = |at: &Affine| {
            let varies = |&(s, _): &(SymbolId, i64)| {
                self.graph.info(self.graph.symbols[s.index()]).dims >> dim & 1 == 1
            };
            at.symbols.iter().any(varies)
        };
        // Of an array of which several columns are read, these are read together.
        let mut columns: FxHashMap<(Source, i64), f64> = FxHashMap::default();
        for node in &self.graph.nodes {
            if let Node::Load { source, at, .. } = node {
                *columns.entry((*source, at.factor(dim).abs())).or_default() += 1.0;
            }
        }
        let read = |source: Source, at: &Affine| {
            let apart = at.factor(dim).abs();
            let alone = access(at);
            match columns.get(&(source, apart)) {
                Some(&count) if count > 1.0 && (2..=MAX_COLUMNS).contains(&apart) => {
                    alone.min(apart as f64 * (1.0 + count.log2()) / count)
                }
                _ => alone,
            }
        };
        let points: f64 = self.folded.iter().map(|&d| self.size(d) as f64).product();
        let points = points.max(1.0);
        // What the folded loops do not change is computed before them, if they are within the loop over lanes.
        let folded = self.graph.folded().dims;
        let once = |id: NodeId| {
            let is_before = !across && self.graph.info(id).dims & folded == 0;
            if is_before { points } else { 1.0 }
        };
        let (mut loads, mut arithmetic) = (0.0, 0.5 * self.cycles_besides());
        for (id, node) in zip(self.graph.ids(), &self.graph.nodes) {
            let share = near.share(id) / once(id);
            let load = match node {
                Node::Load { at, .. } if jumps(at) => lanes,
                Node::Load { source, at, .. } => read(*source, at),
                _ => 0.0,
            };
            loads += load * share;
            arithmetic += 0.5 * cycles(node) * share;
        }
        let stored = |output: &Output| {
            let store = match output.at.factor(dim).abs() {
                0 | 1 => 2.0 * access(&output.at),
                apart if are_columns(apart) => 1.0 + access(&output.at),
                2..=8 if output.ty.size_bytes() >= 4 => 2.0 * access(&output.at),
                _ => SCATTER_CYCLES * lanes,
            };
            store / if output.every_point { 1.0 } else { points }
        };
        let stores: f64 =
            self.outputs.iter().filter(|o| o.every_point || !across).map(stored).sum();
        let size = self.size(dim) as f64;
        // Lanes that stay empty.
        let vectors = (size / lanes).ceil().max(1.0);
        let arithmetic = arithmetic.max(1.0);
        // What is folded is within a kept loop over lanes.
        let begin = if across { 0.0 } else { LOOP_CYCLES / points };
        let spread = ((loads + stores + arithmetic) * vectors + begin) * lanes / size.max(1.0);
        // At the end of a folded loop, lanes are combined step by step.
        let combine = |reduction: &Reduction<'_>| {
            // Of masks, at once.
            if reduction.types.iter().all(|ty| ty.is_pred()) { 5.0 } else { COMBINE_CYCLES }
        };
        let combined: f64 = self.graph.reductions.iter().map(combine).sum();
        let combined = combined * lanes / points;
        spread + if across { combined } else { 0.0 }
    }

    /// The best two loops to run over lanes together, the inner one being short: their elements are
    /// neighbours in every result. Gives what it takes, as [`Self::woven_cost`], the outer and the
    /// inner.
    fn woven(&self, lanes: i64) -> Option<(f64, Dim, Woven)> {
        if self.graph.reductions.iter().any(|reduction| !reduction.done) {
            return None;
        }
        let pairs = self.kept.iter().flat_map(|&o| self.kept.iter().map(move |&i| (o, i)));
        let woven = pairs.filter_map(|(outer, inner)| {
            let woven = Woven { dim: inner, size: self.size(inner) };
            let (period, copies) = woven.period(lanes);
            let fits = outer != inner
                && woven.fits_lanes(lanes)
                && self.size(outer) >= period
                && copies * self.graph.nodes.len() as i64 <= MAX_WOVEN;
            let cost = if fits { self.woven_cost(outer, woven, lanes)? } else { return None };
            Some((cost, outer, woven))
        });
        woven.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// As [`Self::vector_cost`], if `woven` runs over lanes together with `outer`; `None` if
    /// results or loads do not allow it.
    fn woven_cost(&self, outer: Dim, woven: Woven, lanes: i64) -> Option<f64> {
        let in_lanes: u64 = 1 << outer | 1 << woven.dim;
        let jumps = |at: &Affine| {
            let varies = |&(s, _): &(SymbolId, i64)| {
                self.graph.info(self.graph.symbols[s.index()]).dims & in_lanes != 0
            };
            at.symbols.iter().any(varies)
        };
        let dense =
            |at: &Affine| at.factor(woven.dim) == 1 && at.factor(outer) == woven.size && !jumps(at);
        if !self.outputs.iter().all(|output| dense(&output.at)) {
            return None;
        }
        // Where a choice depends on the short loop, each lane computes what it chooses from.
        let chooses = self.graph.guards.iter().flatten().any(|c| c.at.factor(woven.dim) != 0);
        let arithmetic = if chooses { self.cycles() } else { 0.5 * self.cycles() };
        let mut cost = arithmetic.max(1.0) + 2.0 * self.outputs.len() as f64;
        for node in &self.graph.nodes {
            let Node::Load { at, .. } = node else { continue };
            if jumps(at) {
                return None;
            }
            // What the loop around does not change is read before it.
            cost += match woven.spread(at.factor(outer), at.factor(woven.dim), 0, lanes) {
                _ if at.factor(outer) == 0 => 0.1,
                Spread::Even { step: 0, .. } => 0.3,
                Spread::Even { step, .. } => (step.unsigned_abs() as f64).min(lanes as f64),
                Spread::Uneven(elements) => {
                    let elements: Vec<_> = elements.into_iter().map(Some).collect();
                    1.0 + neighbours(&elements, lanes).len() as f64
                }
            };
        }
        Some(cost)
    }

    /// What it takes to compute one vector of points, in cycles, but for access to memory.
    pub fn cycles(&self) -> f64 {
        self.graph.nodes.iter().map(cycles).sum::<f64>() + self.cycles_besides()
    }

    /// The same of what is folded alone: not of what comes before the folded loops, or is made of their results.
    pub fn folded_cycles(&self) -> f64 {
        let folded = self.graph.folded().dims;
        let is_folded = |&id: &NodeId| self.graph.info(id).dims & folded != 0;
        let nodes = self.graph.ids().filter(is_folded).map(|id| cycles(self.graph.node(id)));
        nodes.sum::<f64>() + self.cycles_besides()
    }

    /// The part of [`Self::folded_cycles`] that is for values which a loop does not change.
    pub fn folded_cycles_without(&self, dim: Dim) -> f64 {
        let folded = self.graph.folded().dims;
        let is_shared = |&id: &NodeId| {
            let dims = self.graph.info(id).dims;
            dims & folded != 0 && dims >> dim & 1 == 0
        };
        let nodes = self.graph.ids().filter(is_shared).map(|id| cycles(self.graph.node(id)));
        nodes.sum()
    }

    /// The cycles, per vector of points, of folding and of handing results to stores.
    fn cycles_besides(&self) -> f64 {
        let fold = |r: &Reduction<'_>| r.reducer.body.len().max(1) as f64;
        let folds: f64 = self.graph.reductions.iter().map(fold).sum();
        folds + self.outputs.len() as f64
    }

    /// The cycles of the longest chain of values of which each needs the one before.
    fn longest_chain(&self) -> f64 {
        let mut depths: Vec<f64> = Vec::with_capacity(self.graph.nodes.len());
        for (id, node) in self.graph.ids().zip(&self.graph.nodes) {
            let mut before: f64 = 0.0;
            self.graph.args(id, &mut |arg| before = before.max(depths[arg.index()]));
            depths.push(before + cycles(node));
        }
        depths.into_iter().fold(0.0, f64::max)
    }

    /// How many vectors one iteration of the loop over lanes handles: few values leave registers
    /// for more, whose instructions need not wait for each other.
    fn unroll(&self, vector: Option<Dim>, across: bool, lanes: usize) -> usize {
        let Some(vector) = vector else { return 1 };
        let vectors = (self.size(vector) / lanes as i64).max(1) as usize;
        let jumps = |node: &Node| matches!(node, Node::Load { at, .. } if !at.symbols.is_empty());
        let (gathers, values) = (self.graph.nodes.iter().any(jumps), self.graph.nodes.len());
        let is_whole = self.size(vector) % lanes as i64 == 0;
        let cycles = self.cycles();
        let waits = cycles <= 50.0 || cycles < 3.0 * self.longest_chain();
        let accumulators: usize = self.graph.reductions.iter().map(|r| r.types.len()).sum();
        let wanted = match accumulators {
            0 if cycles <= 12.0 => 4,
            // What gathers waits for memory: without a loop.
            0 if vectors <= 4 && is_whole && gathers && vectors * values <= MAX_WHOLE => 4,
            0 if waits && vectors >= MANY_VECTORS => 4,
            0 if waits => 2,
            0 => 1,
            // Columns side by side make for long runs in memory.
            n if !across && cycles <= 8.0 => MAX_ACCUMULATORS / n.min(MAX_ACCUMULATORS),
            n if cycles <= 30.0 => (8 / n).clamp(1, 4),
            _ => 2,
        };
        wanted.min(vectors).max(1)
    }

    /// Whether a value is better kept than computed again.
    pub fn is_expensive(&self, id: NodeId) -> bool {
        let ty = self.graph.info(id).ty;
        let fits = !ty.is_pred() && !ty.is_complex() && elementwise::lane_bytes(ty).is_some();
        let division = |op: &Op| matches!(op, Op::Binary(BinaryOp::Divide | BinaryOp::Remainder));
        let costly = match self.graph.node(id) {
            Node::Apply { op, .. } => division(op) || cycles(self.graph.node(id)) >= 8.0,
            _ => false,
        };
        fits && costly
    }
}
