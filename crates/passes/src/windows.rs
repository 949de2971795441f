//! Folds of windows of a few points as operations on slices: those fuse with what is around them, and a fusion reads all
//! points of neighbouring windows as vectors where they lie.
//!
//! Of windows with more points, along several dimensions, each dimension is folded after the other; so is one whose elements
//! lie apart, as in the gradient of a sum of windows that move by several: of positions, each as many, those that meet elements in
//! the same way are folded together.
//! (docs/design/pooling.md has the measurements.)

use helio_ir::ops::{
    Broadcast, Concatenate, Pad, PadDim, ReduceWindow, Reshape, Slice, Window, WindowDim,
};
use helio_ir::types::MAX_RANK;
use helio_ir::{
    ArrayShape, BinaryOp, Capabilities, CompId, Computation, ElementType, Error, Instr, InstrId,
    Module, Op, Result,
};

use crate::draft::{Draft, is_elementwise};
use crate::growth::Growth;
use crate::pass::PassCx;
use crate::rebuild::{calls, rebuild};
use crate::recognize::{is_idempotent, may_repeat, reducer};

/// The most points of a window that are slices of one expression, ...
const MOST_POINTS: usize = 32;
/// ... and how many are so whatever folding each dimension by itself would take.
const FEW_POINTS: usize = 9;
/// What it takes to read and write an element of what one dimension is folded to, in points.
const PASSED: usize = 3;
/// The most instructions that are looked at to find out what a value is computed of.
const MAX_LOOKED_AT: usize = 32;

/// Replaces folds of windows of a few points by operations on slices.
pub(crate) fn unfold_windows(module: Module, cx: &PassCx<'_>) -> Result<Module> {
    if !calls(&module, |op| matches!(op, Op::ReduceWindow(_))) {
        return Ok(module);
    }
    let mut growth = Growth::of_pass(cx.watch);
    rebuild(module, cx.watch, |new, computation| {
        new.count_steps(computation.instrs().len())?;
        let plan = |instr| Plan::of(new, &computation, instr, cx.capabilities);
        let plans: Vec<Option<Plan>> = computation
            .instrs()
            .iter()
            .map(|instr| plan(instr).filter(|plan| growth.take(plan.instrs())))
            .collect();
        if plans.iter().all(Option::is_none) {
            return Ok(computation);
        }
        let (mut draft, old) = Draft::replacing(new, computation);
        let mut map: Vec<InstrId> = Vec::with_capacity(old.instrs.len());
        for (instr, plan) in old.instrs.into_iter().zip(plans) {
            draft.stand_for(&instr);
            let new = match plan {
                Some(plan) => {
                    let operands = [0, 1].map(|i| map[instr.operands[i].index()]);
                    let new = plan.write(&mut draft, operands)?;
                    draft.name(new, instr);
                    new
                }
                None => draft.carry(instr, &map),
            };
            map.push(new);
        }
        draft.finish(map[old.root.index()])
    })
}

/// What is folded at once.
enum Turn {
    /// Some dimensions, by a slice for each point.
    Slices(Vec<usize>),
    /// A dimension, by a smaller window.
    Window(usize),
    /// A dimension whose elements lie apart, by slices.
    Phases(usize),
}

/// How a window is folded: one turn after the other.
struct Plan {
    binary: BinaryOp,
    to_apply: CompId,
    window: Window,
    turns: Vec<Turn>,
}

impl Plan {
    fn of(
        module: &Module,
        computation: &Computation,
        instr: &Instr,
        capabilities: &dyn Capabilities,
    ) -> Option<Plan> {
        let (Op::ReduceWindow(op), &[x, init]) = (&instr.op, &instr.operands[..]) else {
            return None;
        };
        let array_of = |id: InstrId| computation.instr(id).shape.as_array();
        let (from, to) = (array_of(x)?, instr.shape.as_array()?);
        let element = to.element();
        let binary = reducer(module, op.to_apply, element)?;
        let dims = &op.window.dims;
        let is_plain = from.is_static()
            && to.is_static()
            && to.element_count() > 0
            && from.element_count() > 0
            && from.element() == element
            && array_of(init)?.element() == element
            && dims.iter().all(|dim| dim.window_dilation < FAR);
        let is_computed = binary.is_associative()
            && capabilities.holds(element)
            && capabilities.supports(&Op::Binary(binary), &[element; 2], element);
        // Of windows, sums of narrow floats are rounded once.
        let is_rounded = element.is_float() && element.size_bytes() < 4 && !is_idempotent(binary);
        let initial = match &computation.instr(init).op {
            Op::Constant(constant) if !constant.elided => constant.literal.as_array(),
            _ => None,
        };
        let repeats = may_repeat(binary, initial);
        let is_padded = dims.iter().any(|dim| dim.pad_low > 0 || dim.pad_high > 0);
        let may_pad = repeats && is_as_large(dims, from, to);
        if !is_plain || !is_computed || is_rounded || is_padded && !may_pad {
            return None;
        }
        // It is part of a product's or a convolution's end.
        let mut left = MAX_LOOKED_AT;
        if is_end_of_product(computation, x, &mut left) {
            return None;
        }
        let (apart, folded): (Vec<usize>, Vec<usize>) = (0..dims.len())
            .filter(|&d| dims[d] != WindowDim::default())
            .partition(|&d| dims[d].base_dilation > 1);
        let has_phases = apart.iter().all(|&d| are_few_phases(&dims[d], to.dims()[d]));
        let may_split = may_pad && has_phases && dims.len() < MAX_RANK;
        if !apart.is_empty() && !may_split {
            return None;
        }
        let points = folded.iter().try_fold(1usize, |all, &d| all.checked_mul(dims[d].size))?;
        let mut turns = match points {
            _ if folded.is_empty() => Vec::new(),
            0..=1 => return None,
            _ if apart.is_empty()
                && has_kernel(element, binary, dims, &folded)
                && (points > FEW_POINTS || is_padded && has_far_neighbours(dims)) =>
            {
                return None;
            }
            _ if points <= MOST_POINTS
                && (points <= FEW_POINTS || points <= in_turns(dims, &folded)) =>
            {
                vec![Turn::Slices(folded)]
            }
            // What shrinks most is first.
            _ if repeats && folded.len() > 1 => {
                let mut folded = folded;
                folded.sort_by_key(|&d| (std::cmp::Reverse(dims[d].stride), d));
                let turn = |d: usize| match dims[d].size <= MOST_POINTS {
                    true => Turn::Slices(vec![d]),
                    false => Turn::Window(d),
                };
                folded.into_iter().map(turn).collect()
            }
            _ => return None,
        };
        turns.extend(apart.into_iter().map(Turn::Phases));
        if turns.is_empty() {
            return None;
        }
        Some(Plan { binary, to_apply: op.to_apply, window: op.window.clone(), turns })
    }

    /// The most instructions that stand for the fold.
    fn instrs(&self) -> usize {
        let dims = &self.window.dims;
        let of_turn = |turn: &Turn| match turn {
            // Two for each point, what pads the array and the initial value.
            Turn::Slices(folded) => 2 + 2 * folded.iter().map(|&d| dims[d].size).product::<usize>(),
            Turn::Window(_) => 1,
            // The points are shared by the phases, which are put beside each other.
            &Turn::Phases(d) => 3 + 3 * dims[d].base_dilation + 2 * dims[d].size,
        };
        self.turns.iter().map(of_turn).sum()
    }

    /// Adds what stands for the fold of `x`.
    fn write(&self, draft: &mut Draft<'_>, [x, init]: [InstrId; 2]) -> Result<InstrId> {
        let mut value = x;
        for turn in &self.turns {
            value = match turn {
                Turn::Slices(folded) => {
                    let op = self.along(|d| folded.contains(&d).then_some(self.window.dims[d]));
                    self.slices(draft, &op, [value, init])?
                }
                &Turn::Window(along) => {
                    let op = self.along(|d| (d == along).then_some(self.window.dims[d]));
                    draft.add(op, &[value, init])?
                }
                &Turn::Phases(along) => self.phases(draft, along, [value, init])?,
            };
        }
        Ok(value)
    }

    /// The fold along some dimensions, of which this says how windows are.
    fn along(&self, dim: impl Fn(usize) -> Option<WindowDim>) -> ReduceWindow {
        let dims = (0..self.window.dims.len()).map(|d| dim(d).unwrap_or_default()).collect();
        ReduceWindow { window: Window { dims }, to_apply: self.to_apply }
    }

    /// The fold along a dimension whose elements lie apart: that of each phase, of positions that are as far from each other, one
    /// beside the other.
    fn phases(
        &self,
        draft: &mut Draft<'_>,
        along: usize,
        [x, init]: [InstrId; 2],
    ) -> Result<InstrId> {
        let whole = self.along(|d| (d == along).then_some(self.window.dims[d]));
        let shape = draft.infer(&Op::from(whole), &[x, init])?;
        let (Some(from), Some(to)) = (draft.array(x).cloned(), shape.as_array()) else {
            return Err(Error::internal("windows of what is no array"));
        };
        let dim = self.window.dims[along];
        let (apart, size) = (dim.base_dilation as i64, dim.size as i64);
        let positions = to.dims()[along].div_ceil(dim.base_dilation);
        let mut sizes = to.dims().to_vec();
        sizes[along] = positions;
        let mut parts = Vec::with_capacity(dim.base_dilation);
        for phase in 0..apart {
            // The elements that the first position of the phase meets.
            let first = (phase - dim.pad_low + apart - 1).div_euclid(apart);
            let count = (phase - dim.pad_low + size - 1).div_euclid(apart) + 1 - first;
            let part = match usize::try_from(count) {
                Ok(count @ 1..) => {
                    let end = first + (positions + count - 1) as i64;
                    let dim = WindowDim {
                        size: count,
                        pad_low: -first,
                        pad_high: end - from.dims()[along] as i64,
                        ..WindowDim::default()
                    };
                    let op = self.along(|d| (d == along).then_some(dim));
                    self.slices(draft, &op, [x, init])?
                }
                _ => {
                    let shape = ArrayShape::new(to.element(), &sizes[..])?;
                    draft.add(Broadcast { shape, dimensions: Vec::new() }, &[init])?
                }
            };
            let mut column = sizes.clone();
            column.insert(along + 1, 1);
            let shape = ArrayShape::new(to.element(), column)?;
            parts.push(draft.add(Reshape { shape }, &[part])?);
        }
        let joined = draft.add(Concatenate { dimension: along + 1 }, &parts)?;
        sizes[along] = positions * dim.base_dilation;
        let shape = ArrayShape::new(to.element(), &sizes[..])?;
        let joined = draft.add(Reshape { shape }, &[joined])?;
        if sizes == to.dims() {
            return Ok(joined);
        }
        let slice = Slice {
            starts: vec![0; sizes.len()],
            limits: to.dims().to_vec(),
            strides: vec![1; sizes.len()],
        };
        draft.add(slice, &[joined])
    }

    /// The initial value and all points of windows, one slice for each.
    fn slices(
        &self,
        draft: &mut Draft<'_>,
        op: &ReduceWindow,
        [x, init]: [InstrId; 2],
    ) -> Result<InstrId> {
        let shape = draft.infer(&Op::from(op.clone()), &[x, init])?;
        let (Some(from), Some(to)) = (draft.array(x).cloned(), shape.as_array()) else {
            return Err(Error::internal("windows of what is no array"));
        };
        let dims = &op.window.dims;
        // How far before the first element windows begin, and beyond the last one they end.
        let mut padding = Vec::with_capacity(dims.len());
        for (d, dim) in dims.iter().enumerate() {
            let last = (to.dims()[d] - 1) * dim.stride + (dim.size - 1) * dim.window_dilation;
            let end = last as i64 + 1 - dim.pad_low - from.dims()[d] as i64;
            padding.push(PadDim { low: dim.pad_low.max(0), high: end.max(0), interior: 0 });
        }
        let padded = match padding.iter().all(|pad| (pad.low, pad.high) == (0, 0)) {
            true => x,
            false => draft.add(Pad { dims: padding.clone() }, &[x, init])?,
        };
        let broadcast = Broadcast { shape: to.clone(), dimensions: Vec::new() };
        let mut sum = draft.add(broadcast, &[init])?;
        let mut point = vec![0; dims.len()];
        loop {
            let starts: Vec<usize> = dims
                .iter()
                .zip(&point)
                .zip(&padding)
                .map(|((dim, k), pad)| (k * dim.window_dilation) + (pad.low - dim.pad_low) as usize)
                .collect();
            let limits = starts.iter().zip(dims).zip(to.dims());
            let limits = limits.map(|((start, dim), count)| start + (count - 1) * dim.stride + 1);
            let slice = Slice {
                limits: limits.collect(),
                starts,
                strides: dims.iter().map(|dim| dim.stride).collect(),
            };
            let slice = draft.add(slice, &[padded])?;
            sum = draft.add(self.binary, &[sum, slice])?;
            // The next point, in row-major order.
            let Some(d) = (0..dims.len()).rev().find(|&d| point[d] + 1 < dims[d].size) else {
                return Ok(sum);
            };
            point[d] += 1;
            point[d + 1..].fill(0);
        }
    }
}

/// Whether elements lie a few positions apart, and windows of a few points move by one position.
fn are_few_phases(dim: &WindowDim, positions: usize) -> bool {
    dim.base_dilation <= MOST_PHASES.min(positions)
        && dim.size <= MOST_POINTS
        && (dim.stride, dim.window_dilation) == (1, 1)
}

/// The most positions from an element to the next, of those that are slices.
const MOST_PHASES: usize = 4;

/// Distances that are no further overflow nothing.
const FAR: usize = 1 << 20;

/// Whether an array with what windows pad it with is no more than a few times as large as it, or as the result.
fn is_as_large(dims: &[WindowDim], from: &ArrayShape, to: &ArrayShape) -> bool {
    let padded = dims.iter().zip(from.dims()).try_fold(1usize, |all, (dim, &size)| {
        let pads = [dim.pad_low, dim.pad_high].map(|pad| usize::try_from(pad).unwrap_or(0));
        all.checked_mul(size.checked_add(pads[0])?.checked_add(pads[1])?)
    });
    let most = from.element_count().saturating_add(to.element_count()).saturating_mul(2);
    padded.is_some_and(|padded| padded <= most)
}

/// Whether a value is computed, element by element, from a product or a convolution, at whose end it is computed best.
fn is_end_of_product(computation: &Computation, id: InstrId, left: &mut usize) -> bool {
    *left = left.saturating_sub(1);
    let instr = computation.instr(id);
    match &instr.op {
        Op::Dot(_) | Op::Convolution(_) => true,
        op if *left > 0 && is_elementwise(op) => {
            instr.operands.iter().any(|&id| is_end_of_product(computation, id, left))
        }
        _ => false,
    }
}

/// Whether windows are of two neighbouring dimensions of numbers of which kernels fold rows along themselves once.
fn has_kernel(
    element: ElementType,
    binary: BinaryOp,
    dims: &[WindowDim],
    folded: &[usize],
) -> bool {
    let is_fold = matches!(binary, BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Minimum);
    let is_near = |&d: &usize| dims[d].window_dilation == 1;
    let are_near = matches!(folded, &[a, b] if a + 1 == b) && folded.iter().all(is_near);
    element == ElementType::F32 && is_fold && are_near
}

/// Whether windows move by several neighbours in memory.
fn has_far_neighbours(dims: &[WindowDim]) -> bool {
    dims.last().is_some_and(|dim| dim.stride > 1)
}

/// The points that are folded for each result if one dimension is folded after the other.
fn in_turns(dims: &[WindowDim], folded: &[usize]) -> usize {
    let mut strides: Vec<(usize, usize)> =
        folded.iter().map(|&d| (dims[d].stride, dims[d].size)).collect();
    strides.sort_unstable();
    // From the last one, which makes the results, to the first, whose results are as many as the others leave.
    let (mut all, mut elements) = (0usize, 1usize);
    for (stride, size) in strides {
        all = all.saturating_add(elements.saturating_mul(size + PASSED));
        elements = elements.saturating_mul(stride);
    }
    all
}
