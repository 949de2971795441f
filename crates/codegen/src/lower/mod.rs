//! From fused computations to kernels.
//!
//! A fused computation is turned into a graph of element values over a nest of loops (`graph`,
//! `moves`): operations that only move elements become index expressions (`affine`). Loops that
//! every access allows to be one are made one (`domain`), one of them is chosen to run over lanes
//! (`nest`), and the rest is written down (`loops`, `emit`). Where a concatenation or a pad takes its
//! elements from somewhere else, loops are cut (`segments`), so that no element is asked for its place.
//!
//! Reductions fold some of the loops. What depends on a reduction's result and again on the folded
//! loops, as in a softmax, is computed in another pass over them, while the elements are in the
//! cache. If there are too few points to fold for, the folded loops are cut into parts, whose number
//! depends on sizes alone, and another stage folds what the parts give.
//!
//! What cannot be lowered is [`Unsupported`], with a reason; there is always another way to run it.

mod affine;
mod domain;
mod emit;
mod graph;
mod ids;
mod known;
mod loops;
mod moves;
mod near;
mod nest;
mod proof;
mod reducer;
mod segments;
#[cfg(test)]
mod tests;

use helio_ir::{Capabilities, CompId, ElementType, Module, Op, Shape, Verified};

use crate::kernel::{Kernel, Lane};
use crate::{Backend, Vouched, elementwise};
use affine::{Affine, Dim};
use domain::{Domain, Output};
use graph::{Guard, Node, Source};
use loops::{FoldParts, Pass, Store, Work};
use nest::Nest;

/// What kernels are made for.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Bytes of a vector: a power of two in [`VECTOR_BYTES`](crate::backend::VECTOR_BYTES).
    pub vector_bytes: usize,
    /// Whether vectors have as many lanes as fit of 64 bits, even if no element is so wide: for
    /// kernels that are put together with others.
    pub wide: bool,
    /// What kernels may have, of what there are recipes for.
    pub capabilities: &'a dyn Capabilities,
}

impl<'a> Target<'a> {
    /// What kernels for a back end are made for; `wide` as the field.
    pub fn of(backend: &'a dyn Backend, wide: bool) -> Self {
        Target { vector_bytes: backend.vector_bytes(), wide, capabilities: backend }
    }

    /// Whether kernels may have values of a type.
    pub fn holds(self, ty: ElementType) -> bool {
        elementwise::holds(ty) && self.capabilities.holds(ty)
    }

    /// Whether kernels may have an element-wise operation.
    pub fn supports(self, op: &Op, operands: &[ElementType], result: ElementType) -> bool {
        elementwise::supports(op, operands, result)
            && self.capabilities.supports(op, operands, result)
    }
}

/// What is passed for a buffer of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arg {
    /// A leaf of the fused computation's parameters.
    Operand(usize),
    /// A leaf of its result.
    Result(usize),
    /// A temporary buffer.
    Temp(usize),
}

/// A kernel to be run over the whole of its range.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The kernel.
    pub kernel: Vouched<Kernel>,
    /// What to pass for its buffers.
    pub args: Vec<Arg>,
    /// The work of one number of the range, in processor cycles, estimated.
    pub cost: u64,
    /// The elements of the only result that one number of the range computes, if number `n` computes
    /// exactly those from `n * run` to `(n + 1) * run`.
    pub run: Option<usize>,
}

/// The kernels of a fused computation.
#[derive(Clone, Debug, Default)]
pub struct Lowered {
    /// The sizes of temporary buffers, in bytes.
    pub temps: Vec<usize>,
    /// To be run one after the other.
    pub stages: Vec<Stage>,
    /// Operands and leaves of the result that may share a buffer.
    pub in_place: Vec<(usize, usize)>,
    /// Operands and leaves of the result that must: only a part of the operand is changed. Either
    /// the buffer is the operand's, or the operand is copied to it first.
    pub updates: Vec<(usize, usize)>,
}

/// A computation that is not lowered to kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What stands in the way.
    pub reason: String,
}

/// Why an attempt at lowering ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stop {
    Unsupported(Unsupported),
    /// The next attempt should make two of a loop, the inner one of this size.
    Split {
        dim: Dim,
        inner: i64,
    },
}

impl Stop {
    fn unsupported(reason: impl Into<String>) -> Stop {
        Stop::Unsupported(Unsupported { reason: reason.into() })
    }

    /// What stands in the way, where there is no other attempt.
    fn reason(self) -> Unsupported {
        match self {
            Stop::Unsupported(unsupported) => unsupported,
            Stop::Split { .. } => Unsupported { reason: "loops split without end".to_owned() },
        }
    }
}

/// The vectors of a kernel.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    /// The lanes of every vector.
    count: usize,
    /// The widest integer lanes, of which a vector has room for `count`: indices in vectors have
    /// them.
    index: Lane,
    /// Bytes of the processor's vectors.
    vector_bytes: usize,
}

/// The fewest independent folds of a reduction that are shared among threads as they are; of fewer,
/// the folded loop is cut into parts.
const MIN_UNITS: i64 = 64;
/// The fewest elements of all folds that are worth one more part: less is not worth waking a
/// thread.
const MIN_PART_ELEMENTS: i64 = 1 << 14;
/// The fewest elements of one fold in a part.
const MIN_PART_ITERATIONS: i64 = 16;
/// The most parts of a fold whose elements are in lanes. (Of folds side by side in lanes, parts are
/// at most [`MIN_UNITS`], unless they would be too long: their partial results take memory.)
const MAX_PARTS: i64 = 1024;
/// The fewest elements that are folded by rows: more than caches hold. From these, a piece of each row comes as fast.
const MIN_ROWS_ELEMENTS: i64 = 1 << 23;
/// The vectors of a row that are folded together by rows.
const ROWS_VECTORS: usize = 4;
/// The most elements that a unit folds, where the loop can be cut: about a millisecond's work,
/// after which a run can be stopped.
const MAX_UNIT_ELEMENTS: i64 = 1 << 22;

/// Lowers a fused computation. Its operands are the leaves of its parameters in order, its results
/// the leaves of its root.
pub fn lower(
    module: &Verified<Module>,
    fused: CompId,
    target: Target<'_>,
) -> Result<Lowered, Unsupported> {
    let mut lowering = Lowering::new(target, Bytes::of(module, fused));
    lowering.all(module, fused).map_err(Stop::reason)?;
    let mut lowered = lowering.lowered;
    lowered.tell_kernels(module, fused);
    Ok(lowered)
}

impl Lowered {
    /// Tells the kernels themselves what they allow whoever calls them.
    fn tell_kernels(&mut self, module: &Module, fused: CompId) {
        let result = &module.computation(fused).result_shape();
        let element_bytes = result.as_array().map(|shape| shape.element().size_bytes());
        let is_alone = self.stages.len() == 1;
        for stage in &mut self.stages {
            let kernel = stage.kernel.get_mut();
            let place = |arg: Arg| stage.args.iter().position(|&a| a == arg);
            for &(operand, leaf) in self.in_place.iter().chain(&self.updates) {
                let pair = (place(Arg::Operand(operand)), place(Arg::Result(leaf)));
                if let (Some(read), Some(written)) = pair {
                    kernel.shared.push((read, written));
                }
            }
            if let (Some(run), Some(bytes), true) = (stage.run, element_bytes, is_alone) {
                kernel.unit_bytes = Some(run * bytes);
            }
        }
    }
}

/// Lowers scalar code to a kernel that runs it on `count` arguments at once: operand `i` is an array
/// of what parameter `i` is given, result `j` one of what leaf `j` of the root is. Pieces of the
/// range count elements.
pub fn lower_scalar(
    module: &Verified<Module>,
    scalar: CompId,
    count: usize,
    target: Target<'_>,
) -> Result<Stage, Unsupported> {
    let domain = Domain::of_scalar(module, scalar, count, target).map_err(Stop::reason)?;
    let of = |ty: ElementType| ty.size_bytes().saturating_mul(count);
    let params = module.computation(scalar).program_shape().params;
    let elements = params.iter().filter_map(|param| param.as_array());
    let bytes = Bytes {
        operands: elements.map(|shape| of(shape.element())).collect(),
        results: domain.outputs.iter().map(|output| of(output.ty)).collect(),
    };
    let mut lowering = Lowering::new(target, bytes);
    lowering.domain(domain).map_err(Stop::reason)?;
    let stage = lowering.lowered.stages.pop();
    stage.ok_or_else(|| Unsupported { reason: "scalar code without a result".to_owned() })
}

/// The sizes of a fusion's buffers, in bytes.
struct Bytes {
    /// Of the leaves of its parameters, in order.
    operands: Vec<usize>,
    /// Of the leaves of its result, in order.
    results: Vec<usize>,
}

impl Bytes {
    fn of(module: &Module, fused: CompId) -> Self {
        fn add(shape: &Shape, bytes: &mut Vec<usize>) {
            match shape {
                Shape::Tuple(elements) => elements.iter().for_each(|element| add(element, bytes)),
                leaf => bytes.push(leaf.size_bytes()),
            }
        }
        let computation = module.computation(fused);
        let mut bytes = Bytes { operands: Vec::new(), results: Vec::new() };
        for param in computation.params().into_values() {
            add(&computation.instr(param).shape, &mut bytes.operands);
        }
        add(computation.result_shape(), &mut bytes.results);
        bytes
    }
}

/// The lowering of a fusion under way.
struct Lowering<'t> {
    target: Target<'t>,
    bytes: Bytes,
    lowered: Lowered,
    when: When,
}

/// When it is decided what of a fusion may be overwritten, and which kernel stores what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// For each kernel, as it is written.
    ByKernel,
    /// For the fusion, before a reduction of it is cut into several kernels. That is wrong, and what
    /// the proof of kernels (`Kernel::check_shared`) is shown in tests.
    #[cfg(test)]
    BeforeTheCut,
}

impl<'t> Lowering<'t> {
    fn new(target: Target<'t>, bytes: Bytes) -> Self {
        Lowering { target, bytes, lowered: Lowered::default(), when: When::ByKernel }
    }

    /// Adds the stages of all results of a fusion, and says which operands they may overwrite.
    fn all(&mut self, module: &Module, fused: CompId) -> Result<(), Stop> {
        let target = self.target;
        let groups = domain::groups(module, fused, target)?;
        let domains = groups.iter().map(|group| Domain::new((module, target), fused, group));
        let domains = domains.collect::<Result<Vec<_>, _>>()?;
        for domain in &domains {
            let updates = domain.outputs.iter().filter_map(|o| Some((o.updates?, o.leaf)));
            self.lowered.updates.extend(updates);
        }
        domains.into_iter().try_for_each(|domain| self.domain(domain))?;
        // What a later kernel reads must not be overwritten.
        let Lowered { stages, in_place, updates, .. } = &mut self.lowered;
        in_place.retain(|&pair| is_last_to_read(stages, pair));
        match updates.iter().all(|&pair| is_last_to_read(stages, pair)) {
            true => Ok(()),
            false => Err(Stop::unsupported("an update of what is read later")),
        }
    }

    /// Adds the stages of a domain.
    fn domain(&mut self, mut domain: Domain<'_>) -> Result<(), Stop> {
        if self.when != When::ByKernel {
            self.in_place(&domain, &work(&domain));
        }
        loop {
            domain.unfold();
            let (mut nest, lanes) = self.arrange(&domain);
            let Some(parts) = parts(&domain, &nest, lanes.count as i64) else {
                let work = work(&domain);
                self.stage(&domain, &nest, &work, lanes);
                return Ok(());
            };
            if parts.by_rows {
                nest.unroll = nest.unroll.min(ROWS_VECTORS);
            }
            let folding = self.partial(&domain, &nest, parts, lanes)?;
            let nest = Nest::new(&folding, lanes.count);
            if domain.is_finished_by_next_level() {
                let work = work(&folding);
                self.stage(&folding, &nest, &work, lanes);
                return Ok(());
            }
            // What is left needs the folded loops again, and reads what they gave.
            let mut work = Work::default();
            let mut pass = Pass::default();
            let kept = domain.kept_linear();
            for i in domain.next_reductions() {
                pass.reductions.push(i);
                for leaf in 0..domain.graph.reductions[i].types.len() {
                    let ty = domain.graph.reductions[i].types[leaf];
                    let temp = self.temp(ty.size_bytes() * domain.kept_points() as usize);
                    let reduced = folding.graph.ids().find(|&id| {
                        matches!(folding.graph.node(id), Node::Reduced { reduction, leaf: l } if (*reduction, *l) == (i, leaf))
                    });
                    // A leaf that nothing uses.
                    let Some(node) = reduced else { continue };
                    let to = Arg::Temp(temp);
                    work.stores.push(Store { node, ty, at: kept.clone(), to });
                    domain.graph.replace_reduced(i, leaf, Source::Temp(temp), &kept);
                }
            }
            // The other results are stored once for each point of the kept loops: now, if they need
            // nothing else, since later all loops may be kept ones.
            if self.when == When::ByKernel {
                work.stores.extend(domain.take_ready().iter().map(Output::store));
            }
            domain.finish_level();
            work.passes.push(pass);
            self.stage(&folding, &nest, &work, lanes);
        }
    }

    /// The arrangement of a domain's loops, with as many lanes as the values that are in vectors
    /// allow.
    fn arrange(&self, domain: &Domain<'_>) -> (Nest, Lanes) {
        let bytes = self.target.vector_bytes;
        let nest = Nest::new(domain, bytes / 4);
        if domain.widest(nest.lane_loops()) <= 4 && !self.target.wide {
            return (nest, Lanes { count: bytes / 4, index: Lane::I32, vector_bytes: bytes });
        }
        let nest = Nest::new(domain, bytes / 8);
        (nest, Lanes { count: bytes / 8, index: Lane::I64, vector_bytes: bytes })
    }

    /// Adds a temporary buffer; gives its number.
    fn temp(&mut self, bytes: usize) -> usize {
        self.lowered.temps.push(bytes);
        self.lowered.temps.len() - 1
    }

    /// Adds the kernel that does `work`.
    fn stage(&mut self, domain: &Domain<'_>, nest: &Nest, work: &Work, lanes: Lanes) {
        let sizes = |arg: Arg| match arg {
            Arg::Operand(i) => self.bytes.operands[i],
            Arg::Result(i) => self.bytes.results[i],
            Arg::Temp(i) => self.lowered.temps[i],
        };
        let stage = loops::kernel(domain, nest, work, lanes, &sizes);
        self.lowered.stages.push(stage);
        if self.when == When::ByKernel {
            self.in_place(domain, work);
        }
    }

    /// A stage that folds the parts of a cut loop; gives the domain in which their results are
    /// folded.
    fn partial<'m>(
        &mut self,
        domain: &Domain<'m>,
        nest: &Nest,
        parts: FoldParts,
        lanes: Lanes,
    ) -> Result<Domain<'m>, Stop> {
        let mut work = Work { parts: Some(parts), ..Work::default() };
        let mut pass = Pass::default();
        let points = domain.kept_points();
        // Results that are neighbours in lanes are neighbours in memory, too.
        let (kept, part) = (domain.kept_linear(), Affine::dim(parts.part));
        let at = match nest.across {
            true => kept.times(parts.count).plus(&part, 1),
            false => kept.plus(&part, points),
        };
        let mut folding = domain.clone_over(parts.part, parts.count);
        for i in domain.next_reductions() {
            pass.reductions.push(i);
            let mut inputs = Vec::new();
            for leaf in 0..domain.graph.reductions[i].types.len() {
                let ty = domain.graph.reductions[i].accumulator(leaf);
                let temp = self.temp(ty.size_bytes() * (points * parts.count) as usize);
                work.partial.push((i, leaf, at.clone(), Arg::Temp(temp)));
                let load =
                    Node::Load { source: Source::Temp(temp), at: at.clone(), guard: Guard::ALWAYS };
                inputs.push(folding.graph.push(load, ty)?);
            }
            folding.graph.reductions[i].inputs = inputs;
        }
        work.passes.push(pass);
        self.stage(domain, nest, &work, lanes);
        Ok(folding)
    }

    /// Notes which operands may share their buffers with results that a kernel stores, as far as that
    /// kernel goes: those read for the last time in the pass that stores the result, at the very
    /// element that is written.
    fn in_place(&mut self, domain: &Domain<'_>, work: &Work) {
        // Passes are numbered from 0; what happens after all of them has the next number.
        let end = work.passes.len();
        let stored = |output: &Output| {
            let to = |stores: &[Store]| stores.iter().any(|s| s.to == Arg::Result(output.leaf));
            let pass = work.passes.iter().position(|pass| to(&pass.stores));
            pass.or_else(|| to(&work.stores).then_some(end))
        };
        let outputs = domain.outputs.iter().filter(|output| output.updates.is_none());
        let outputs = outputs.filter_map(|output| Some((output, stored(output)?)));
        let outputs: Vec<(&Output, usize)> = outputs.collect();
        if outputs.is_empty() {
            return;
        }
        let last = domain.last_reads(work, self.bytes.operands.len());
        for (operand, &bytes) in self.bytes.operands.iter().enumerate() {
            let Some(element_bytes) = domain.element_bytes(operand) else { continue };
            let fits = |&&(output, stored): &&(&Output, usize)| {
                self.bytes.results[output.leaf] == bytes
                    && element_bytes == output.ty.size_bytes()
                    && domain.reads_only_at(operand, &output.at)
                    && last[operand].is_none_or(|last| last <= stored)
            };
            let fitting = outputs.iter().filter(fits);
            self.lowered.in_place.extend(fitting.map(|(output, _)| (operand, output.leaf)));
        }
    }
}

/// Whether no kernel reads an operand after the one that stores a leaf of the result.
fn is_last_to_read(stages: &[Stage], (operand, leaf): (usize, usize)) -> bool {
    let Some(stored) = stages.iter().rposition(|stage| stage.args.contains(&Arg::Result(leaf)))
    else {
        return true;
    };
    stages[stored + 1..].iter().all(|stage| !stage.args.contains(&Arg::Operand(operand)))
}

/// The passes over a domain's folded loops.
fn work(domain: &Domain<'_>) -> Work {
    let graph = &domain.graph;
    let mut work = Work::default();
    let levels = graph.reductions.iter().filter(|r| !r.done).map(|r| r.level);
    let outputs = domain.outputs.iter().filter(|o| o.every_point);
    let levels = levels.chain(outputs.map(|o| graph.info(o.node).level)).max();
    for level in 0..=levels.unwrap_or(0) {
        let reductions = graph.reductions.iter().enumerate();
        let reductions = reductions.filter(|(_, r)| !r.done && r.level == level);
        let at_level = |o: &&Output| o.every_point && graph.info(o.node).level == level;
        let stores = domain.outputs.iter().filter(at_level);
        let pass = Pass {
            reductions: reductions.map(|(i, _)| i).collect(),
            stores: stores.map(Output::store).collect(),
        };
        if !pass.reductions.is_empty() || !pass.stores.is_empty() {
            work.passes.push(pass);
        }
    }
    work.stores = domain.outputs.iter().filter(|o| !o.every_point).map(Output::store).collect();
    work
}

/// How to cut a folded loop, if there are too few points to fold for.
fn parts(domain: &Domain<'_>, nest: &Nest, lanes: i64) -> Option<FoldParts> {
    let reductions = &domain.graph.reductions;
    let mut pending = reductions.iter().filter(|r| !r.done).peekable();
    pending.peek()?;
    if nest.folds_columns || pending.any(|r| r.reducer.is_ordered()) {
        return None;
    }
    let step = lanes * nest.unroll as i64;
    let kept = domain.kept_points();
    let units = if nest.across { kept } else { kept / step };
    let &dim = nest.inner.first().or(nest.vector.as_ref().filter(|_| nest.across))?;
    let size = domain.graph.dim_bounds[usize::from(dim)] + 1;
    let folded: i64 = domain.folded_points();
    let long = kept.min(step).saturating_mul(folded) / MAX_UNIT_ELEMENTS;
    if units >= MIN_UNITS && long <= 1 {
        return None;
    }
    let most = if nest.across { MAX_PARTS } else { MIN_UNITS }.max(long);
    let wanted = kept.saturating_mul(folded) / MIN_PART_ELEMENTS;
    let wanted = wanted.min(size).min(folded / MIN_PART_ITERATIONS).min(most);
    if wanted <= 1 {
        return None;
    }
    let mut chunk = (size + wanted - 1) / wanted;
    if nest.vector == Some(dim) {
        chunk = (chunk as u64).next_multiple_of(step as u64) as i64;
    }
    let count = (size + chunk - 1) / chunk;
    let part = Dim::try_from(domain.graph.dim_bounds.len()).ok().filter(|&part| part < 64)?;
    (count > 1).then_some(FoldParts {
        dim,
        part,
        count,
        chunk,
        by_rows: by_rows(domain, nest, lanes),
    })
}

/// Whether to fold some iterations of the folded loop at all points before the next ones. Columns side by side are
/// folded in registers otherwise, which reads a piece of each row: of a long array, the hardware then reads too little
/// ahead.
fn by_rows(domain: &Domain<'_>, nest: &Nest, lanes: i64) -> bool {
    let [_] = nest.inner[..] else { return false };
    let Some(vector) = nest.vector.filter(|_| !nest.across) else { return false };
    let columns = domain.graph.dim_bounds[usize::from(vector)] + 1;
    nest.near.is_empty()
        && nest.woven.is_none()
        && columns > lanes * nest.unroll as i64
        && domain.kept_points().saturating_mul(domain.folded_points()) >= MIN_ROWS_ELEMENTS
}

impl From<Source> for Arg {
    fn from(source: Source) -> Arg {
        match source {
            Source::Operand(i) => Arg::Operand(i),
            Source::Temp(i) => Arg::Temp(i),
        }
    }
}
