//! Loops with little to do in an iteration: their steps become one kernel.
//!
//! Whether a loop may be one is seen beforehand ([`Planner::compact_vectors`]), so that what would
//! otherwise be a copy or a small product is a kernel as well ([`Planner::alone`]). Once its steps
//! are known they are put together ([`Planner::native_loop`]) if they are all kernels and copies; if
//! not, they stay steps.

mod alone;
mod scattered;

use std::collections::{HashMap, HashSet};
use std::iter::zip;
use std::sync::Arc;

use helio_codegen::kernel::Kernel;
use helio_codegen::kernel_loop::{self, Buffer, KernelLoop, LoopStep, Repeat, Role, Until};
use helio_codegen::{Code, Vouched, elementwise};
use helio_ir::ops::Reads;
use helio_ir::{ArrayShape, CompId, Computation, ElementType, Instr, InstrId, Op, ops};
use helio_runtime::program::{Branch, RawKernel, Selector, While};

use super::bind::is_factored;
use super::target::Vectors;
use super::{Action, Owner, Planned, Planner, Source, Step, Storage, StorageId};

/// The most bytes of an array in lanes, or elements of its rows, for which short vectors are long enough. (What there
/// is to gain is the time of masks: docs/design/loops.md, "A few numbers at a time".)
const SHORT_BYTES: usize = 64;
const SHORT_ROW: usize = 4;
/// Elements that an iteration of a compact loop computes at most, operation by operation,
const MAX_ELEMENTS: usize = 1 << 15;
/// and those that it may compute besides for each of its instructions: with more, calls take none of the
/// time to speak of.
const MEAN_ELEMENTS: usize = 512;
/// Products of elements in a product of matrices that a kernel computes as fast as the tuned loop,
/// which has to be called.
const MAX_PRODUCTS: usize = 1 << 12;
/// The deepest nesting of computations in the body of a loop that is measured,
const MAX_NESTED: usize = 8;
/// and the most instructions of all of them together.
const MAX_INSTRS: usize = 1 << 15;
/// The most work of an iteration, in processor cycles, estimated.
const MAX_CYCLES: u64 = 1 << 16;
/// The work of a call, in the same unit: about a millisecond, after which a run can be stopped.
const CALL_CYCLES: u64 = 1 << 22;
/// Arrays of the state up to this size are in scratch while the loop runs.
const MAX_HELD: usize = 4 << 10;

/// A kernel that has become a step of a loop.
pub(super) struct Written {
    /// The step's code.
    kernel: Arc<dyn RawKernel>,
    /// The kernel that it is the machine code of.
    code: Vouched<Kernel>,
    /// The work of one number of its range, in processor cycles, estimated.
    cost: u64,
}

impl Written {
    pub(super) fn new(kernel: &Arc<dyn RawKernel>, code: Vouched<Kernel>, cost: u64) -> Self {
        Written { kernel: Arc::clone(kernel), code, cost }
    }
}

/// A loop in a loop that may become one kernel: it is one itself, which ends after a bounded amount of
/// work, and the steps that it was made of, of which the outer loop may be made.
pub(super) struct Inner {
    kernel: Arc<dyn RawKernel>,
    /// How many steps stand before it for its own kernel alone.
    prelude: usize,
    cond: Vec<Step>,
    go: StorageId,
    body: Vec<Step>,
    /// What an iteration copies at its end, from and to.
    next: Vec<(StorageId, StorageId)>,
}

/// A loop whose steps are known.
pub(super) struct Steps<'s> {
    /// Whether it is in the body of another loop that may become one kernel.
    pub(super) is_inner: bool,
    pub(super) cond: &'s [Step],
    pub(super) go: StorageId,
    /// How often it runs, if that is known.
    pub(super) trips: Option<u64>,
    pub(super) body: &'s [Step],
    pub(super) state: &'s [StorageId],
    /// Where an iteration leaves the next state.
    pub(super) next: &'s [StorageId],
    /// The plan before the loop, ...
    pub(super) before: PlanMark,
    /// ... and before its body.
    pub(super) before_body: PlanMark,
}

/// Code that runs many iterations of a loop in each call, and leaves the state where it was.
pub(super) struct LoopCode {
    /// To be run one after the other.
    pub(super) actions: Vec<Action>,
    /// The storages that they access.
    pub(super) slots: Vec<StorageId>,
    /// Whether a call is the whole loop; if not, calls are repeated as long as the condition holds.
    pub(super) is_whole: bool,
    /// If a call may end in the middle of an iteration: what has to be zero before the first. The
    /// condition is computed then, and by the code after that.
    pub(super) suspended: Option<Vec<StorageId>>,
}

/// A loop as one kernel.
struct Native {
    code: Vouched<Kernel>,
    slots: Vec<StorageId>,
    /// The work of a call.
    cycles: u64,
    is_whole: bool,
    /// What is in its scratch.
    local: Vec<StorageId>,
    /// If a call may end in the middle of an iteration: what it keeps until the next one.
    suspended: Option<Vec<StorageId>>,
}

/// What is known of a computation.
#[derive(Clone, Copy, Default)]
struct Size {
    instrs: usize,
    elements: usize,
    wide: bool,
    /// Whether there is an array of more than [`SHORT_BYTES`], and of rows with more than [`SHORT_ROW`]
    /// elements, that is computed.
    long: bool,
}

/// The lengths of a plan's lists at some point, to which they can be cut back: what a loop's steps had
/// needed is gone then.
#[derive(Clone, Copy)]
pub(super) struct PlanMark {
    storages: usize,
    functions: usize,
    written: usize,
    interpreted: usize,
}

impl<'m> Planner<'m> {
    /// The point that the plan has reached.
    pub(super) fn mark(&self) -> PlanMark {
        PlanMark {
            storages: self.storages.len(),
            functions: self.machine_code.len(),
            written: self.written.len(),
            interpreted: self.interpreted.len(),
        }
    }

    /// Drops the code that was made since.
    pub(super) fn forget_code(&mut self, since: PlanMark) {
        self.machine_code.truncate(since.functions);
        self.written.truncate(since.written);
        self.interpreted.truncate(since.interpreted);
    }

    /// If the steps of a loop might become one kernel, the vectors that it would have.
    pub(super) fn compact_vectors(&self, op: &ops::While) -> Option<Vectors> {
        self.target.backend.joins_loops().then_some(())?;
        let mut size = Size::default();
        self.measure(op.condition, 0, &mut size)?;
        self.measure(op.body, 0, &mut size)?;
        let most = MAX_ELEMENTS.saturating_add(size.instrs.saturating_mul(MEAN_ELEMENTS));
        let backend = self.target.backend;
        let bytes = if size.long { backend.vector_bytes() } else { backend.short_vector_bytes() };
        (size.elements <= most).then_some(Vectors { bytes, wide: size.wide })
    }

    /// Adds what a computation computes; `None` if that is too much, or has no kernel.
    fn measure(&self, id: CompId, depth: usize, size: &mut Size) -> Option<()> {
        if depth > MAX_NESTED {
            return None;
        }
        let (computation, target) =
            (self.module.computation(id), self.target.lowering(self.target.vectors()));
        size.instrs += computation.instrs().len();
        if size.instrs > MAX_INSTRS {
            return None;
        }
        for instr in computation.instrs() {
            let elements = match &instr.op {
                Op::Parameter(_) | Op::Tuple(_) | Op::GetTupleElement(_) => continue,
                Op::Fusion(op) => {
                    self.measure(op.calls, depth + 1, size)?;
                    continue;
                }
                Op::While(op) => {
                    self.measure(op.condition, depth + 1, size)?;
                    self.measure(op.body, depth + 1, size)?;
                    continue;
                }
                Op::Conditional(op) => {
                    for &branch in &op.branches {
                        self.measure(branch, depth + 1, size)?;
                    }
                    continue;
                }
                Op::Constant(_) => 0,
                Op::Dot(op) => products(op, computation, instr)?,
                Op::Reduce(_) => array(computation, *instr.operands.first()?)?.element_count(),
                Op::DynamicUpdateSlice(_) => array(computation, instr.operands[1])?.element_count(),
                op if is_movement(op) => instr.shape.as_array()?.element_count(),
                Op::Scatter(_) => scattered::updates(self.module, computation, instr)?,
                _ if is_factored(computation, instr) => {
                    let arrays = instr.shape.leaves().into_iter().map(|leaf| leaf.as_array());
                    let sizes = arrays.map(|array| array.map(ArrayShape::element_count));
                    sizes.sum::<Option<usize>>()?
                }
                op => {
                    let operands =
                        instr.operands.iter().map(|&o| Some(array(computation, o)?.element()));
                    let operands = operands.collect::<Option<Vec<_>>>()?;
                    let result = instr.shape.as_array()?;
                    target.supports(op, &operands, result.element()).then_some(())?;
                    result.element_count()
                }
            };
            for leaf in instr.shape.leaves() {
                let shape = leaf.as_array().filter(|shape| shape.is_static())?;
                target.holds(shape.element()).then_some(())?;
                let lane_bytes = elementwise::lane_bytes(shape.element())?;
                size.wide |= lane_bytes == 8;
                let row = shape.dims().last().copied().unwrap_or(1);
                let is_made = !matches!(instr.op, Op::Constant(_) | Op::DynamicUpdateSlice(_));
                let bytes = shape.element_count().saturating_mul(lane_bytes);
                size.long |= is_made && bytes > SHORT_BYTES && row > SHORT_ROW;
            }
            size.elements = size.elements.saturating_add(elements);
        }
        Some(())
    }

    /// One step for all steps of a loop, if they can be one kernel. What was made for them is gone
    /// then, but for what computes the condition between calls, if there are several.
    pub(super) fn put_together(&mut self, steps: &Steps<'_>) -> Planned<Option<LoopCode>> {
        let places = self.places(steps.body);
        let places: Vec<StorageId> = (0..places).map(|_| self.storage(4, Owner::Nobody)).collect();
        let Some(native) = self.native_loop(steps, &places) else { return Ok(None) };
        let made = self.target.code(&native.code)?;
        if !matches!(made.code, Code::Machine(_)) {
            // It is too large.
            return Ok(None);
        }
        for steps in [steps.cond, steps.body] {
            self.proofs.check(steps, &|id| self.find(id))?;
        }
        let Native { code, slots, cycles, is_whole, local, suspended } = native;
        let kept = if is_whole { steps.before } else { steps.before_body };
        for id in local.into_iter().filter(|id| id.index() >= kept.storages) {
            let bytes = std::mem::take(&mut self.storages[id.index()].bytes);
            if steps.is_inner && bytes > 0 {
                self.in_scratch.insert(id, bytes);
            }
        }
        for &id in suspended.iter().flatten() {
            if let Some(bytes) = self.in_scratch.remove(&id) {
                self.storages[id.index()].bytes = bytes;
            }
            // What a call leaves there the next one takes up.
            if let Some(this) = self.loops.last_mut() {
                this.touched.push(id);
            }
        }
        self.machine_code.truncate(kept.functions);
        if !steps.is_inner {
            self.written.truncate(kept.written);
        }
        self.interpreted.truncate(kept.interpreted);
        let action = self.code_step(made, &code, cycles, slots.clone())?;
        if let (Action::Raw { kernel, .. }, true, false) = (&action, steps.is_inner, is_whole) {
            self.inner.push(Inner {
                kernel: Arc::clone(kernel),
                prelude: 0,
                cond: steps.cond.to_vec(),
                go: steps.go,
                body: steps.body.to_vec(),
                next: self.copied(steps),
            });
        }
        Ok(Some(LoopCode { actions: vec![action], slots, is_whole, suspended }))
    }

    /// Notes how many steps stand before a loop in a loop, whose iterations are `body`, for its own kernel
    /// alone.
    pub(super) fn note_prelude(&mut self, body: &[Step], steps: usize) {
        if let [Step { action: Action::Raw { kernel, .. }, .. }] = body {
            let mut inner = self.inner.iter_mut().rev();
            if let Some(inner) = inner.find(|inner| Arc::ptr_eq(&inner.kernel, kernel)) {
                inner.prelude = steps;
            }
        }
    }

    /// The loop in a loop that has become this step.
    fn inner_loop(&self, each: &While<StorageId>) -> Option<&Inner> {
        let [Step { action: Action::Raw { kernel, .. }, .. }] = &each.body[..] else { return None };
        self.inner.iter().rev().find(|inner| Arc::ptr_eq(&inner.kernel, kernel))
    }

    /// How many places are needed to end a call within these steps: one, if there are loops in them, and those
    /// of their loops and branches.
    fn places(&self, steps: &[Step]) -> usize {
        let has_loops = usize::from(steps.iter().any(has_loops));
        let within = |step: &Step| match &step.action {
            Action::While(each) => {
                self.inner_loop(each).map_or(0, |inner| self.places(&inner.body))
            }
            Action::Branch(branch) => branch.branches.iter().map(|steps| self.places(steps)).sum(),
            _ => 0,
        };
        has_loops + steps.iter().map(within).sum::<usize>()
    }

    /// What an iteration copies at its end, from and to.
    fn copied(&self, steps: &Steps<'_>) -> Vec<(StorageId, StorageId)> {
        let all = zip(steps.next, steps.state).map(|(&from, &to)| (self.find(from), self.find(to)));
        all.filter(|(from, to)| from != to).collect()
    }

    /// The kernel of a loop; `places` are where it keeps its places in its iteration, and in those of its loops,
    /// if there are any.
    fn native_loop(&self, steps: &Steps<'_>, places: &[StorageId]) -> Option<Native> {
        let lanes = self.compact?.lanes();
        let mut buffers = Buffers { places: places.to_vec(), ..Buffers::default() };
        let at = buffers.places.pop();
        let mut cycles = 10;
        let cond = self.parts(steps.cond, &mut buffers, &mut cycles)?;
        let body = self.parts(steps.body, &mut buffers, &mut cycles)?;
        if cycles > MAX_CYCLES {
            return None;
        }
        let go = buffers.number(self.find(steps.go));
        let next = buffers.pairs(self.copied(steps));
        let most = (CALL_CYCLES / cycles).max(1);
        let whole = steps.trips.filter(|&trips| trips <= most && at.is_none());
        let until = match (whole, at) {
            (Some(trips), _) => Until::Count(trips as i64),
            (None, None) => Until::Test { cond, go, most: most as i64 },
            (None, Some(at)) => {
                let (at, cycles) = (buffers.number(at), cycles as i64);
                Until::Suspended { cond, go, at, cycles, most: CALL_CYCLES as i64 }
            }
        };
        let state: HashSet<StorageId> = steps.state.iter().map(|&id| self.find(id)).collect();
        let role = |&id: &StorageId| {
            let Storage { bytes, source, .. } = self.storages[id.index()];
            let bytes = self.in_scratch.get(&id).copied().unwrap_or(bytes);
            let is_own = source == Source::Nothing && id.index() >= steps.before.storages;
            let role = match at {
                _ if state.contains(&id) && bytes <= MAX_HELD => Role::Held,
                None if is_own => Role::Local,
                Some(at) if is_own && id != at && bytes <= MAX_HELD => Role::Kept,
                _ => Role::Param,
            };
            Buffer { bytes, role }
        };
        let all: Vec<Buffer> = buffers.ids.iter().map(role).collect();
        let local =
            |(&id, buffer): (&StorageId, &Buffer)| (buffer.role == Role::Local).then_some(id);
        let local = zip(&buffers.ids, &all).filter_map(local).collect();
        let (code, params) = KernelLoop { lanes, buffers: all, until, body, next }.kernel()?;
        let slots: Vec<StorageId> = params.into_iter().map(|n| buffers.ids[n]).collect();
        let is_kept = |id: &&StorageId| {
            let is_own = self.storages[id.index()].source == Source::Nothing;
            is_own && id.index() >= steps.before.storages && !state.contains(id)
        };
        let suspended = at.map(|_| slots.iter().filter(is_kept).copied().collect());
        let work = if at.is_some() { CALL_CYCLES } else { whole.unwrap_or(most) * cycles };
        Some(Native { code, slots, cycles: work, is_whole: whole.is_some(), local, suspended })
    }

    /// Steps as parts of a loop, if they are all kernels and copies, or branches and loops of such;
    /// adds up their work, without that of loops.
    fn parts<'s>(
        &'s self,
        steps: &[Step],
        buffers: &mut Buffers,
        cycles: &mut u64,
    ) -> Option<Vec<LoopStep<'s>>> {
        let mut parts = Vec::with_capacity(steps.len());
        for step in steps {
            let part = match &step.action {
                Action::Raw { kernel, slots } => {
                    let mut written = self.written.iter().rev();
                    let written = written.find(|w| Arc::ptr_eq(&w.kernel, kernel))?;
                    let work = written.cost.saturating_mul(written.code.range.unsigned_abs());
                    *cycles = cycles.saturating_add(work);
                    let of = |&slot: &StorageId| buffers.number(self.find(slot));
                    LoopStep::Kernel(&written.code, slots.iter().map(of).collect())
                }
                Action::Copy { from, to } => {
                    let [from, to] = [from, to].map(|&id| self.find(id));
                    let bytes = self.storages[from.index()].bytes as u64;
                    *cycles = cycles.saturating_add(bytes / 16);
                    LoopStep::Copy { from: buffers.number(from), to: buffers.number(to) }
                }
                Action::Branch(branch) => self.branch(branch, buffers, cycles)?,
                Action::While(each) => {
                    let inner = self.inner_loop(each)?;
                    parts.truncate(parts.len().saturating_sub(inner.prelude));
                    self.repeat(inner, buffers)?
                }
                Action::Kernel { .. }
                | Action::Finished(_)
                | Action::Host { .. }
                | Action::Part(_) => return None,
            };
            parts.push(part);
        }
        Some(parts)
    }

    /// A branch as a part of a loop; adds the work of the longest.
    fn branch<'s>(
        &'s self,
        branch: &Branch<StorageId>,
        buffers: &mut Buffers,
        cycles: &mut u64,
    ) -> Option<LoopStep<'s>> {
        let (selector, is_pred) = match branch.selector {
            Selector::Pred(id) => (id, true),
            Selector::Index(id) => (id, false),
        };
        let selector = buffers.number(self.find(selector));
        let at = match branch.branches.iter().flatten().any(has_loops) {
            true => Some(buffers.place()?),
            false => None,
        };
        let (mut branches, mut longest) = (Vec::with_capacity(branch.branches.len()), 0);
        for steps in &branch.branches {
            let mut work = 0;
            branches.push(self.parts(steps, buffers, &mut work)?);
            longest = longest.max(work);
        }
        *cycles = cycles.saturating_add(longest).saturating_add(10);
        Some(LoopStep::Branch(kernel_loop::Branch { selector, is_pred, branches, at }))
    }

    /// A loop in a loop as a part of that.
    fn repeat<'s>(&'s self, inner: &'s Inner, buffers: &mut Buffers) -> Option<LoopStep<'s>> {
        let at = match inner.body.iter().any(has_loops) {
            true => Some(buffers.place()?),
            false => None,
        };
        let mut cycles = 10;
        let cond = self.parts(&inner.cond, buffers, &mut cycles)?;
        let body = self.parts(&inner.body, buffers, &mut cycles)?;
        if cycles > MAX_CYCLES {
            return None;
        }
        let go = buffers.number(self.find(inner.go));
        let next = inner.next.iter().map(|&(from, to)| (self.find(from), self.find(to)));
        let next = buffers.pairs(next.collect());
        Some(LoopStep::Repeat(Repeat { cond, go, body, next, cycles: cycles as i64, at }))
    }
}

/// The storages of a loop, numbered as they are met.
#[derive(Default)]
struct Buffers {
    ids: Vec<StorageId>,
    numbers: HashMap<StorageId, usize>,
    /// Where lists of steps with loops may keep what comes next, as far as they are not taken.
    places: Vec<StorageId>,
}

impl Buffers {
    fn place(&mut self) -> Option<usize> {
        let place = self.places.pop()?;
        Some(self.number(place))
    }

    fn number(&mut self, id: StorageId) -> usize {
        *self.numbers.entry(id).or_insert_with(|| {
            self.ids.push(id);
            self.ids.len() - 1
        })
    }

    fn pairs(&mut self, pairs: Vec<(StorageId, StorageId)>) -> Vec<(usize, usize)> {
        pairs.into_iter().map(|(from, to)| (self.number(from), self.number(to))).collect()
    }
}

/// Whether a step is a loop, or has some in its branches.
fn has_loops(step: &Step) -> bool {
    match &step.action {
        Action::While(_) => true,
        Action::Branch(branch) => branch.branches.iter().flatten().any(has_loops),
        _ => false,
    }
}

/// An operand, if it is an array.
fn array(computation: &Computation, id: InstrId) -> Option<&ArrayShape> {
    computation.instr(id).shape.as_array()
}

/// Operations that move elements, and are lowered to kernels without further ado: an update is counted
/// by its part.
fn is_movement(op: &Op) -> bool {
    match op {
        Op::Iota(_) | Op::OptimizationBarrier(_) => true,
        Op::Bitcast(_) | Op::DynamicReshape(_) | Op::DynamicUpdateSlice(_) => false,
        op => op.reads() == Reads::Placed,
    }
}

/// The products of elements in a product of matrices; `None` if it is better left to the tuned loop.
fn products(op: &ops::Dot, computation: &Computation, instr: &Instr) -> Option<usize> {
    let [lhs, rhs] = instr.operands[..] else { return None };
    let (lhs, rhs, result) =
        (array(computation, lhs)?, array(computation, rhs)?, instr.shape.as_array()?);
    let ty = result.element();
    let is_plain = matches!(ty, ElementType::F32 | ElementType::F64 | ElementType::S32)
        && lhs.element() == ty
        && rhs.element() == ty;
    let folded: usize = op.dims.lhs_contracting.iter().map(|&d| lhs.dims()[d]).product();
    let count = result.element_count().checked_mul(folded)?;
    // Of a vector's product with a matrix, each element is needed once.
    let is_vector = [lhs, rhs].iter().any(|side| side.element_count() == folded);
    let most = if is_vector { MAX_ELEMENTS } else { MAX_PRODUCTS };
    (is_plain && count <= most).then_some(count)
}
