//! Folds of windows of a few points as operations on slices: those fuse with what is around them, and a fusion reads all
//! points of neighbouring windows as vectors where they lie.
//!
//! Of windows with more points, along several dimensions, each dimension is folded after the other.
//! (docs/design/pooling.md has the measurements.)

use helio_ir::ops::{Broadcast, Pad, PadDim, ReduceWindow, Slice, Window, WindowDim};
use helio_ir::{
    ArrayShape, BinaryOp, Capabilities, CompId, Computation, ElementType, Error, Instr, InstrId,
    Module, Op, Result,
};

use crate::draft::{Draft, is_elementwise};
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
    rebuild(module, cx.watch, |new, computation| {
        new.count_steps(computation.instrs().len())?;
        let plans: Vec<Option<Plan>> = computation
            .instrs()
            .iter()
            .map(|instr| Plan::of(new, &computation, instr, cx.capabilities))
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

/// How a window is folded: along groups of dimensions, one group after the other.
struct Plan {
    binary: BinaryOp,
    to_apply: CompId,
    window: Window,
    /// The dimensions that are folded together, and whether by slices.
    turns: Vec<(Vec<usize>, bool)>,
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
            && dims.iter().all(|dim| dim.base_dilation == 1 && dim.window_dilation < FAR);
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
        let folded: Vec<usize> =
            (0..dims.len()).filter(|&d| dims[d] != WindowDim::default()).collect();
        let points = folded.iter().try_fold(1usize, |all, &d| all.checked_mul(dims[d].size))?;
        let turns = match points {
            0..=1 => return None,
            _ if has_kernel(element, binary, dims, &folded)
                && (points > FEW_POINTS || is_padded && has_far_neighbours(dims)) =>
            {
                return None;
            }
            _ if points <= MOST_POINTS
                && (points <= FEW_POINTS || points <= in_turns(dims, &folded)) =>
            {
                vec![(folded, true)]
            }
            // What shrinks most is first.
            _ if repeats && folded.len() > 1 => {
                let mut folded = folded;
                folded.sort_by_key(|&d| (std::cmp::Reverse(dims[d].stride), d));
                folded.into_iter().map(|d| (vec![d], dims[d].size <= MOST_POINTS)).collect()
            }
            _ => return None,
        };
        Some(Plan { binary, to_apply: op.to_apply, window: op.window.clone(), turns })
    }

    /// Adds what stands for the fold of `x`.
    fn write(&self, draft: &mut Draft<'_>, [x, init]: [InstrId; 2]) -> Result<InstrId> {
        let mut value = x;
        for (folded, by_slices) in &self.turns {
            let mut window = self.window.clone();
            for (d, dim) in window.dims.iter_mut().enumerate() {
                if !folded.contains(&d) {
                    *dim = WindowDim::default();
                }
            }
            let op = ReduceWindow { window, to_apply: self.to_apply };
            value = match by_slices {
                true => self.slices(draft, &op, [value, init])?,
                false => draft.add(op, &[value, init])?,
            };
        }
        Ok(value)
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
