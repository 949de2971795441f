//! The loops of a kernel: which results it makes, over which dimensions.

use std::iter::zip;

use helio_ir::{CompId, ElementType, InstrId, Module, Op, Shape};

use super::affine::{Affine, Dim, reshape};
use super::graph::{Folded, FrameId, Graph, Guard, MAX_WRITTEN_OUT, Node, NodeId, Source};
use super::loops::{Pass, Store, Work};
use super::moves::LeafElement;
use super::{Arg, Stop, Target};
use crate::elementwise;

/// A result that is stored.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// Which leaf of the fusion's result.
    pub leaf: usize,
    /// The element, counted from the first.
    pub at: Affine,
    pub node: NodeId,
    pub ty: ElementType,
    /// Whether there is an element for each point of all loops, or of the kept ones only.
    pub every_point: bool,
    /// The operand of the fusion of which this result is a changed copy.
    pub updates: Option<usize>,
}

impl Output {
    /// What is stored.
    pub fn store(&self) -> Store {
        Store { node: self.node, ty: self.ty, at: self.at.clone(), to: Arg::Result(self.leaf) }
    }
}

/// The dimensions that results are computed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub sizes: Vec<usize>,
    /// For each, whether it is folded away.
    pub folded: Vec<bool>,
}

/// Results that one nest of loops makes.
#[derive(Clone, Debug)]
pub(super) struct Group {
    space: Space,
    leaves: Vec<usize>,
}

/// The loops of a kernel and what happens in them.
pub(super) struct Domain<'m> {
    pub graph: Graph<'m>,
    pub outputs: Vec<Output>,
    /// The loops whose points results are kept for, from the outermost in row-major order.
    pub kept: Vec<Dim>,
    /// The loops that are folded away, likewise.
    pub folded: Vec<Dim>,
}

/// Each split makes a loop variable two.
const MAX_SPLITS: usize = 32;

impl Space {
    fn count(&self, folded: bool) -> usize {
        let all = zip(&self.sizes, &self.folded);
        all.filter(|&(_, &f)| folded || !f).map(|(&size, _)| size).product()
    }
}

/// Divides the results of a fused computation into groups. Empty results are in none.
pub(super) fn groups(
    module: &Module,
    fused: CompId,
    target: Target<'_>,
) -> Result<Vec<Group>, Stop> {
    let graph = Graph::new((module, target), fused, Vec::new(), Folded::default());
    let computation = module.computation(fused);
    let leaves = computation.result_shape().leaves();
    let mut plain = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for (leaf, shape) in leaves.iter().enumerate() {
        let Shape::Array(shape) = shape else {
            return Err(Stop::unsupported("a result that is not an array"));
        };
        if shape.element_count() == 0 {
            continue;
        }
        match space_of(&graph, fused, graph.source_of(computation.root(), leaf).0)? {
            Some(space) => add(&mut groups, space, leaf),
            None => plain.push((leaf, written(&graph, fused, leaf)?)),
        }
    }
    for (leaf, sizes) in plain {
        let count: usize = sizes.iter().product();
        // Results of equal size go together.
        match groups.iter_mut().find(|group| group.space.count(true) == count) {
            Some(group) => group.leaves.push(leaf),
            None => add(&mut groups, Space { folded: vec![false; sizes.len()], sizes }, leaf),
        }
    }
    Ok(groups)
}

fn add(groups: &mut Vec<Group>, space: Space, leaf: usize) {
    match groups.iter_mut().find(|group| group.space == space) {
        Some(group) => group.leaves.push(leaf),
        None => groups.push(Group { space, leaves: vec![leaf] }),
    }
}

/// The sizes of what is stored for a result: of an update in place, the update's.
fn written(graph: &Graph<'_>, fused: CompId, leaf: usize) -> Result<Vec<usize>, Stop> {
    let computation = graph.module.computation(fused);
    let (id, leaf) = graph.source_of(computation.root(), leaf);
    let of = |id: InstrId, leaf: usize| match computation.instr(id).shape.leaves()[leaf] {
        Shape::Array(shape) => Ok(shape.dims().to_vec()),
        _ => Err(Stop::unsupported("a result that is not an array")),
    };
    match updated(graph, fused, id) {
        Some(_) => of(computation.instr(id).operands[1], 0),
        None => of(id, leaf),
    }
}

/// The operand of the fusion that an instruction changes a part of.
fn updated(graph: &Graph<'_>, fused: CompId, id: InstrId) -> Option<usize> {
    let computation = graph.module.computation(fused);
    let instr = computation.instr(id);
    let Op::DynamicUpdateSlice(_) = instr.op else { return None };
    let (base, leaf) = graph.source_of(instr.operands[0], 0);
    match &computation.instr(base).op {
        Op::Parameter(param) => Some(graph.operand_leaf(param.number, leaf)),
        _ => None,
    }
}

/// The largest space that anything an instruction needs is folded over.
fn space_of(graph: &Graph<'_>, fused: CompId, id: InstrId) -> Result<Option<Space>, Stop> {
    let computation = graph.module.computation(fused);
    let mut needed = vec![false; id.index() + 1];
    needed[id.index()] = true;
    let mut largest: Option<Space> = None;
    for id in (0..=id.0).rev().map(InstrId) {
        if !needed[id.index()] {
            continue;
        }
        let instr = computation.instr(id);
        instr.operands.iter().for_each(|o| needed[o.index()] = true);
        let Op::Reduce(op) = &instr.op else { continue };
        let Some(shape) = computation.instr(instr.operands[0]).shape.as_array() else {
            return Err(Stop::unsupported("a reduction of no array"));
        };
        let folded = (0..shape.rank()).map(|d| op.dimensions.contains(&d)).collect();
        let space = Space { sizes: shape.dims().to_vec(), folded };
        let elements: usize = op.dimensions.iter().map(|&d| shape.dims()[d]).product();
        let larger = largest.as_ref().is_none_or(|l| l.count(true) < space.count(true));
        if elements > MAX_WRITTEN_OUT && larger {
            largest = Some(space);
        }
    }
    Ok(largest)
}

impl<'m> Domain<'m> {
    /// A loop that runs scalar code on the elements of arrays of `count`.
    pub fn of_scalar(
        module: &'m Module,
        scalar: CompId,
        count: usize,
        target: Target<'m>,
    ) -> Result<Self, Stop> {
        let last = i64::try_from(count).ok().and_then(|count| count.checked_sub(1));
        let last = last.filter(|&last| last > 0);
        let last = last.ok_or_else(|| Stop::unsupported("no loop to run scalar code in"))?;
        let mut graph = Graph::new((module, target), scalar, vec![last], Folded::default());
        let at = Affine::dim(0);
        let mut args = Vec::new();
        for (operand, param) in module.computation(scalar).program_shape().params.iter().enumerate()
        {
            let scalar = param.as_array().filter(|shape| shape.is_scalar());
            let scalar = scalar.ok_or_else(|| Stop::unsupported("code that is not scalar"))?;
            let source = Source::Operand(operand);
            let load = Node::Load { source, at: at.clone(), guard: Guard::ALWAYS };
            args.push(graph.push(load, scalar.element())?);
        }
        let nodes = graph.inline(scalar, args)?;
        if !graph.reductions.is_empty() {
            return Err(Stop::unsupported("scalar code that folds"));
        }
        let output = |(leaf, node): (usize, NodeId)| {
            let ty = graph.info(node).ty;
            Output { leaf, at: at.clone(), node, ty, every_point: true, updates: None }
        };
        let outputs = nodes.into_iter().enumerate().map(output).collect();
        Ok(Domain { graph, outputs, kept: vec![0], folded: Vec::new() })
    }

    /// The loops for a group of results.
    pub fn new(
        (module, target): (&'m Module, Target<'m>),
        fused: CompId,
        group: &Group,
    ) -> Result<Self, Stop> {
        let space = &group.space;
        let mut factors: Vec<Vec<usize>> = space.sizes.iter().map(|&size| vec![size]).collect();
        for _ in 0..MAX_SPLITS {
            match Self::over((module, target), fused, group, &factors) {
                Err(Stop::Split { dim, inner }) => {
                    let loops = factors.iter().enumerate().flat_map(|(d, of)| {
                        let sizes = of.iter().enumerate().filter(|&(_, &size)| size != 1);
                        sizes.map(move |(i, _)| (d, i))
                    });
                    let Some((d, i)) = loops.clone().nth(usize::from(dim)) else { break };
                    let outer = factors[d][i] / inner as usize;
                    factors[d].splice(i..=i, [outer, inner as usize]);
                }
                done => {
                    let mut domain = done?;
                    domain.collapse();
                    return Ok(domain);
                }
            }
        }
        Err(Stop::unsupported("index expressions that split loops again and again"))
    }

    fn over(
        (module, target): (&'m Module, Target<'m>),
        fused: CompId,
        group: &Group,
        factors: &[Vec<usize>],
    ) -> Result<Self, Stop> {
        let space = &group.space;
        let (mut kept, mut folded) = (Vec::new(), Vec::new());
        let mut bounds = Vec::new();
        let mut exprs = Vec::with_capacity(factors.len());
        for (factors, &is_folded) in zip(factors, &space.folded) {
            let mut loops = Vec::with_capacity(factors.len());
            for &size in factors {
                if size == 1 {
                    loops.push(Affine::default());
                    continue;
                }
                let dim = Dim::try_from(bounds.len()).ok().filter(|&dim| dim < 64);
                let dim = dim.ok_or_else(|| Stop::unsupported("more than 64 loops"))?;
                bounds.push(size as i64 - 1);
                if is_folded {
                    folded.push(dim)
                } else {
                    kept.push(dim)
                };
                loops.push(Affine::dim(dim));
            }
            exprs.push(Affine::linear(&loops, factors));
        }
        let part = |want: bool| {
            let all = exprs.iter().zip(&space.sizes).zip(&space.folded);
            all.filter(|&(_, &f)| f == want).map(|((e, &s), _)| (e.clone(), s)).unzip()
        };
        let (kept_exprs, kept_sizes): (Vec<_>, Vec<_>) = part(false);
        let (folded_exprs, folded_sizes): (Vec<_>, Vec<_>) = part(true);
        let dims = folded.iter().fold(0, |bits, &d| bits | 1 << d);
        let of = Folded { sizes: folded_sizes, exprs: folded_exprs, dims };
        let mut graph = Graph::new((module, target), fused, bounds, of);
        graph.reserve(module.computation(fused).instrs().len());
        let mut domain = Domain { graph, outputs: Vec::new(), kept, folded };
        for &leaf in &group.leaves {
            let sizes = written(&domain.graph, fused, leaf)?;
            let count: usize = sizes.iter().product();
            let every_point = space.count(true) == count;
            let map = match every_point {
                true => reshape(&exprs, &space.sizes, &sizes, domain.graph.bounds())?,
                false => reshape(&kept_exprs, &kept_sizes, &sizes, domain.graph.bounds())?,
            };
            domain.output(fused, leaf, map, every_point)?;
        }
        domain.check_updates()?;
        Ok(domain)
    }

    fn output(
        &mut self,
        fused: CompId,
        leaf: usize,
        map: Vec<Affine>,
        every_point: bool,
    ) -> Result<(), Stop> {
        let graph = &mut self.graph;
        let computation = graph.module.computation(fused);
        let (id, inner) = graph.source_of(computation.root(), leaf);
        let instr = computation.instr(id);
        let updates = updated(graph, fused, id);
        let Shape::Array(shape) = instr.shape.leaves()[inner] else {
            return Err(Stop::unsupported("a result that is not an array"));
        };
        let (node, at) = match updates {
            Some(_) => {
                let place = LeafElement {
                    frame: FrameId::FUSED,
                    id,
                    instr,
                    shape,
                    leaf: inner,
                    map: &[],
                    guard: Guard::ALWAYS,
                };
                let update = instr.operands[1];
                let sizes = computation.instr(update).shape.as_array().map(|s| s.dims());
                let starts = graph.starts(place, 2, shape.dims(), sizes.unwrap_or_default())?;
                let node = graph.at(update, 0, map.clone())?;
                let moved: Vec<Affine> =
                    zip(&map, &starts).map(|(at, start)| at.plus(start, 1)).collect();
                (node, Affine::linear(&moved, shape.dims()))
            }
            None => (graph.at(id, inner, map.clone())?, Affine::linear(&map, shape.dims())),
        };
        let folded = graph.folded().dims;
        if !every_point && graph.info(node).dims & folded != 0 {
            return Err(Stop::unsupported("a result over other dimensions than are folded"));
        }
        if graph.affine_info(&at).1 > 0 {
            return Err(Stop::unsupported("a place that depends on a reduction"));
        }
        let ty = self.graph.held_as(shape.element());
        self.outputs.push(Output { leaf, at, node, ty, every_point, updates });
        Ok(())
    }

    /// An update in place may read what it updates at the very element that it writes only.
    fn check_updates(&self) -> Result<(), Stop> {
        for output in &self.outputs {
            if let Some(operand) = output.updates
                && !self.reads_only_at(operand, &output.at)
            {
                return Err(Stop::unsupported("an update of what is read elsewhere"));
            }
        }
        Ok(())
    }

    /// Whether all reads of an operand are of one element.
    pub fn reads_only_at(&self, operand: usize, place: &Affine) -> bool {
        self.graph.nodes.iter().all(|node| match node {
            Node::Load { source: Source::Operand(of), at, guard } if *of == operand => {
                at == place && *guard == Guard::ALWAYS
            }
            _ => true,
        })
    }

    /// The number of points of the kept loops.
    pub fn kept_points(&self) -> i64 {
        self.points(&self.kept)
    }

    /// The number of points of the folded loops.
    pub fn folded_points(&self) -> i64 {
        self.points(&self.folded)
    }

    fn points(&self, dims: &[Dim]) -> i64 {
        dims.iter().map(|&d| self.graph.dim_bounds[usize::from(d)] + 1).product()
    }

    /// The number of a point of the kept loops.
    pub fn kept_linear(&self) -> Affine {
        let mut stride = 1;
        let mut sum = Affine::default();
        for &dim in self.kept.iter().rev() {
            sum = sum.plus(&Affine::dim(dim), stride);
            stride *= self.graph.dim_bounds[usize::from(dim)] + 1;
        }
        sum
    }

    /// The reductions that need no other.
    pub fn next_reductions(&self) -> Vec<usize> {
        let all = self.graph.reductions.iter().enumerate();
        all.filter(|(_, r)| !r.done && r.level == 0).map(|(i, _)| i).collect()
    }

    /// Whether all that remains after [`Domain::next_reductions`] is over the kept loops.
    pub fn is_finished_by_next_level(&self) -> bool {
        self.graph.reductions.iter().all(|r| r.done || r.level == 0)
            && self.outputs.iter().all(|output| !output.every_point)
    }

    /// Takes note that [`Domain::next_reductions`] are done, and read from memory.
    pub fn finish_level(&mut self) {
        for reduction in &mut self.graph.reductions {
            match reduction.level {
                0 => reduction.done = true,
                _ => reduction.level -= 1,
            }
        }
        self.graph.refresh();
    }

    /// The same values, to be folded over another loop.
    pub fn clone_over(&self, dim: Dim, count: i64) -> Domain<'m> {
        let mut graph = self.graph.clone();
        graph.dim_bounds.resize(usize::from(dim) + 1, 0);
        graph.dim_bounds[usize::from(dim)] = count - 1;
        graph.set_folded(1 << dim);
        Domain { graph, outputs: self.outputs.clone(), kept: self.kept.clone(), folded: vec![dim] }
    }

    /// Where nothing is folded any more, all loops are kept.
    pub fn unfold(&mut self) {
        if !self.folded.is_empty() && self.graph.reductions.iter().all(|r| r.done) {
            self.kept.append(&mut self.folded);
            self.kept.sort_unstable();
            self.graph.set_folded(0);
            self.collapse();
        }
    }

    /// The values that results are made of, those of indices among them.
    fn needed(&self) -> Vec<bool> {
        let graph = &self.graph;
        let mut needed = vec![false; graph.nodes.len()];
        for output in &self.outputs {
            needed[output.node.index()] = true;
            graph.affine_args(&output.at, &mut |id| needed[id.index()] = true);
        }
        for reduction in &graph.reductions {
            let values = reduction.inputs.iter().chain(&reduction.inits);
            let values = values.chain(&reduction.reducer.body);
            values.for_each(|&id| needed[id.index()] = true);
        }
        for id in graph.ids().rev() {
            if needed[id.index()] {
                graph.args(id, &mut |arg| needed[arg.index()] = true);
            }
        }
        needed
    }

    /// The most bytes of a lane that any value takes, if these loops, as bits, run over lanes.
    pub fn widest(&self, lanes: u64) -> usize {
        let graph = &self.graph;
        let by_values = |at: &Affine| !at.symbols.is_empty() && graph.is_wide(at);
        if graph.has_wide_index(&self.needed())
            || self.outputs.iter().any(|output| by_values(&output.at))
        {
            return 8;
        }
        let mut needed = vec![false; graph.nodes.len()];
        let mut mark = |id: NodeId| needed[id.index()] = true;
        for output in &self.outputs {
            mark(output.node);
            graph.affine_needs(&output.at, lanes, &mut mark);
        }
        let reductions = || graph.reductions.iter();
        for reduction in reductions() {
            reduction.inputs.iter().chain(&reduction.inits).for_each(|&id| mark(id));
            reduction.reducer.body.iter().for_each(|&id| mark(id));
        }
        for id in graph.ids().rev() {
            if needed[id.index()] {
                graph.needs(id, lanes, &mut |arg| needed[arg.index()] = true);
            }
        }
        let values = zip(&graph.infos, needed).filter(|&(_, needed)| needed).map(|(i, _)| i.ty);
        let accumulators = reductions().flat_map(|r| r.types.iter().copied());
        values.chain(accumulators).filter_map(elementwise::lane_bytes).max().unwrap_or(4)
    }

    /// For each of so many operands, the last pass of a kernel in which it is read, the number of passes
    /// standing for what happens after them; `None` if it is not read at all.
    pub fn last_reads(&self, work: &Work, operands: usize) -> Vec<Option<usize>> {
        let mut last = vec![None; operands];
        let mut read = |roots: Vec<NodeId>, at: usize| {
            for operand in self.operands_read(roots) {
                last[operand].get_or_insert(at);
            }
        };
        let stored = |stores: &[Store]| {
            let mut roots: Vec<NodeId> = stores.iter().map(|store| store.node).collect();
            for store in stores {
                self.graph.affine_args(&store.at, &mut |id| roots.push(id));
            }
            roots
        };
        read(stored(&work.stores), work.passes.len());
        for (number, Pass { reductions, stores }) in work.passes.iter().enumerate().rev() {
            let reductions = || reductions.iter().map(|&i| &self.graph.reductions[i]);
            // Initial values are taken in at the end of a pass.
            read(reductions().flat_map(|r| &r.inits).copied().collect(), number + 1);
            let inputs = reductions().flat_map(|r| &r.inputs).copied();
            read(stored(stores).into_iter().chain(inputs).collect(), number);
        }
        last
    }

    /// The operands of whose elements some values are made.
    fn operands_read(&self, roots: Vec<NodeId>) -> impl Iterator<Item = usize> {
        let graph = &self.graph;
        let mut needed = vec![false; if roots.is_empty() { 0 } else { graph.nodes.len() }];
        roots.into_iter().for_each(|id| needed[id.index()] = true);
        for id in graph.ids().rev() {
            if needed.get(id.index()) == Some(&true) {
                graph.args(id, &mut |arg| needed[arg.index()] = true);
            }
        }
        zip(&graph.nodes, needed).filter_map(|(node, needed)| match *node {
            Node::Load { source: Source::Operand(of), .. } if needed => Some(of),
            _ => None,
        })
    }

    /// Takes out the results that are stored once for each point of the kept loops, and need no
    /// reduction but [`Domain::next_reductions`].
    pub fn take_ready(&mut self) -> Vec<Output> {
        let graph = &self.graph;
        let is_ready =
            |output: &mut Output| !output.every_point && graph.info(output.node).level <= 1;
        self.outputs.extract_if(.., is_ready).collect()
    }

    /// The bytes of an operand's elements, if any is read.
    pub fn element_bytes(&self, operand: usize) -> Option<usize> {
        let reads = |node: &Node<'_>| matches!(node, Node::Load { source: Source::Operand(of), .. } if *of == operand);
        let load = self.graph.nodes.iter().position(reads)?;
        Some(self.graph.infos[load].ty.size_bytes())
    }

    /// Makes one loop of two wherever every index expression allows.
    fn collapse(&mut self) {
        let ordered = self.graph.reductions.iter().any(|r| r.reducer.is_ordered());
        while let Some((outer, inner)) = self.collapsible(ordered) {
            let size = |d: Dim| self.graph.dim_bounds[usize::from(d)] + 1;
            let bound = size(outer) * size(inner) - 1;
            self.graph.collapse(outer, inner, bound);
            self.outputs.iter_mut().for_each(|output| output.at.collapse(outer));
            self.kept.retain(|&d| d != outer);
            self.folded.retain(|&d| d != outer);
        }
    }

    fn collapsible(&mut self, ordered: bool) -> Option<(Dim, Dim)> {
        let all = |dims: &[Dim], adjacent: bool| -> Vec<(Dim, Dim)> {
            let pairs = dims.iter().enumerate().flat_map(|(i, &outer)| {
                let inner = dims.iter().enumerate().filter(move |&(j, _)| j != i);
                inner
                    .filter(move |&(j, _)| !adjacent || j == i + 1)
                    .map(move |(_, &inner)| (outer, inner))
            });
            pairs.collect()
        };
        let mut pairs = all(&self.kept, false);
        pairs.extend(all(&self.folded, ordered));
        let bounds = self.graph.dim_bounds.clone();
        let mut check = |at: &Affine| {
            pairs.retain(|&(outer, inner)| {
                at.factor(outer) == at.factor(inner) * (bounds[usize::from(inner)] + 1)
            });
        };
        self.graph.each_affine(|at| check(at));
        self.outputs.iter().for_each(|output| check(&output.at));
        pairs.first().copied()
    }
}
