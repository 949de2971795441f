//! Loops whose state fits in registers.
//!
//! A `while` whose body is element-wise becomes a kernel that holds its state in registers from the
//! first iteration to the last: a scalar in all lanes of a vector, an array in the lanes of one. Of
//! arrays that are larger, each vector's worth goes through all iterations by itself, if nothing but
//! scalars says how many there are. Arrays of a few elements each may also be moved about and
//! multiplied with each other; their elements are values of their own then. Arrays that stay as they
//! are may be read at any place, and of others a part may be replaced in each iteration, as a scan
//! replaces rows of its results.

mod read;
mod stacked;
mod write;

use std::iter::zip;

use helio_ir::ops::While;
use helio_ir::{ArrayShape, CompId, Module, Op, Shape, Verified};

use crate::Vouched;
use crate::elementwise;
use crate::kernel::{Builder, IndexOp, Kernel};
use crate::lower::Target;
use read::{At, Form, MAX_ELEMENTS};

/// The most iterations of a call, which ends then even if the condition still holds: between calls, a
/// loop without end can be stopped.
const MAX_TRIPS: i64 = 1 << 13;
/// The work after which a call ends, in processor cycles, estimated.
const CALL_CYCLES: i64 = 1 << 24;
/// Fewer iterations would not be worth to read and write all arrays.
const FEW_TRIPS: i64 = 64;
/// More instructions than this in a body would not stay in registers.
const MAX_INSTRS: usize = 400;
/// The most arrays of the state, ...
const MAX_STATE: usize = 24;
/// ... and the most values that hold them.
const MAX_CARRIED: usize = 32;
/// Fusions in the body are looked into this deep.
const MAX_DEPTH: usize = 8;
/// Vector registers that may hold the state where several vectors of each array go through the
/// iterations side by side, to hide the latency of operations.
const SIDE_BY_SIDE: usize = 12;

/// A loop as kernels, to be run one after the other.
#[derive(Clone, Debug)]
pub struct StateLoop {
    /// The kernels. Their parameters are the arrays of the state in order.
    pub kernels: Vec<Vouched<Kernel>>,
    /// The most iterations of a call; it runs the body as long as the condition holds.
    pub most: i64,
    /// The work of an iteration for one number of a kernel's range, in processor cycles, estimated.
    pub cost: u64,
}

/// The kernels of a loop, if it is one of those. They change the arrays of the state in place; those
/// that the body passes on unchanged, as `unchanged` says, are only read.
pub fn state_loop(
    module: &Verified<Module>,
    op: &While,
    unchanged: &[bool],
    target: Target<'_>,
) -> Option<StateLoop> {
    let state = state_of(module, op)?;
    if state.len() > MAX_STATE || state.len() != unchanged.len() {
        return None;
    }
    let mut size = Size { module, target, instrs: 0, widest: if target.wide { 8 } else { 4 } };
    [op.condition, op.body].into_iter().try_for_each(|id| size.computation(id, 0))?;
    let kinds = zip(&state, unchanged).enumerate().map(|(n, (shape, &unchanged))| {
        if unchanged {
            Kind::Unchanged
        } else if shape.element_count() > 1 && stacked::is_stacked(module, op.body, n) {
            Kind::Stacked
        } else {
            Kind::Carried
        }
    });
    let kinds: Vec<Kind> = kinds.collect();
    let lanes = target.vector_bytes / size.widest;
    let plan = StateLoopPlan {
        module,
        target,
        op,
        state: &state,
        kinds: &kinds,
        lanes,
        instrs: size.instrs,
    };
    plan.in_lanes().or_else(|| plan.by_elements())
}

/// What becomes of an array of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It stays as it is.
    Unchanged,
    /// Parts of it are replaced.
    Stacked,
    /// It is computed anew.
    Carried,
}

/// The arrays of the state.
fn state_of<'m>(module: &'m Module, op: &While) -> Option<Vec<&'m ArrayShape>> {
    let body = module.computation(op.body);
    let param = *body.params().get(&0)?;
    body.instr(param).shape.leaves().into_iter().map(Shape::as_array).collect()
}

/// What is computed at all.
struct Size<'m> {
    module: &'m Module,
    target: Target<'m>,
    instrs: usize,
    /// Bytes of the widest lane.
    widest: usize,
}

impl Size<'_> {
    /// Adds a computation; `None` if that is too much, or if there is something in it that kernels
    /// do not hold.
    fn computation(&mut self, id: CompId, depth: usize) -> Option<()> {
        let computation = self.module.computation(id);
        self.instrs += computation.instrs().len();
        if depth > MAX_DEPTH || self.instrs > MAX_INSTRS {
            return None;
        }
        for instr in computation.instrs() {
            for leaf in instr.shape.leaves() {
                let shape = leaf.as_array().filter(|shape| shape.is_static())?;
                (shape.element_count() > 0 && self.target.holds(shape.element())).then_some(())?;
                self.widest = self.widest.max(elementwise::lane_bytes(shape.element())?);
            }
            if matches!(instr.op, Op::Fusion(_) | Op::Call(_) | Op::Reduce(_)) {
                let callees = instr.op.callees();
                callees.into_iter().try_for_each(|id| self.computation(id, depth + 1))?;
            }
        }
        Some(())
    }
}

/// What the kernels of a loop are written from: the loop, its state, and the lanes of a vector.
struct StateLoopPlan<'p> {
    module: &'p Module,
    target: Target<'p>,
    op: &'p While,
    state: &'p [&'p ArrayShape],
    kinds: &'p [Kind],
    lanes: usize,
    instrs: usize,
}

/// Which of the values that the loop carries a kernel computes and stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CarriedValues {
    All,
    /// Those of arrays; scalars besides, without being written.
    Arrays,
    Scalars,
}

impl StateLoopPlan<'_> {
    /// Arrays in lanes.
    fn in_lanes(&self) -> Option<StateLoop> {
        let carried = || zip(self.state, self.kinds).filter(|(_, kind)| **kind == Kind::Carried);
        let counts = || carried().map(|(shape, _)| shape.element_count()).filter(|&n| n > 1);
        let count = counts().next().unwrap_or(1);
        if counts().any(|other| other != count) {
            return None;
        }
        let mask = |b: &mut Builder| {
            let (zero, end) = (b.index(0), b.index(count as i64));
            (count > 1 && count < self.lanes).then(|| b.mask_below(zero, end))
        };
        if count <= self.lanes {
            let mut b = Builder::of(self.lanes, self.target.vector_bytes);
            let buffers = self.params(&mut b, CarriedValues::All);
            let mask = mask(&mut b);
            let form = Form::Lanes { count, at: None, mask };
            self.write(&mut b, &buffers, &[form], CarriedValues::All, MAX_TRIPS)?;
            let cost = self.instrs as u64;
            return Some(StateLoop {
                kernels: vec![Vouched::new(b.finish())],
                most: MAX_TRIPS,
                cost,
            });
        }

        let vectors = count.div_ceil(self.lanes) as i64;
        let work = vectors.saturating_mul(self.instrs as i64).max(1);
        let most = (CALL_CYCLES / work).clamp(FEW_TRIPS, MAX_TRIPS);
        let arrays = zip(self.state, self.kinds)
            .filter(|(shape, kind)| **kind != Kind::Stacked && shape.element_count() == count)
            .map(|(shape, _)| 1 + usize::from(shape.element().is_complex()))
            .sum::<usize>();
        let copies = match self.instrs {
            ..=40 => SIDE_BY_SIDE / arrays.max(1),
            41..=80 => 2,
            _ => 1,
        };
        let copies = 1 << copies.clamp(1, 4).ilog2();

        let mut b = Builder::of(self.lanes, self.target.vector_bytes);
        let buffers = self.params(&mut b, CarriedValues::Arrays);
        let lanes = self.lanes as i64;
        let step = lanes * copies;
        b.set_range(count as i64, step);
        let (begin, end) = (b.begin(), b.end());
        let length = b.index_op(IndexOp::Sub, end, begin);
        let whole = b.index(-step);
        let whole = b.index_op(IndexOp::And, length, whole);
        let whole = b.index_op(IndexOp::Add, begin, whole);
        let mut done = Some(());
        b.for_loop(begin, whole, step, &[], |b, var, _| {
            let at = |n: i64| Some(At { var, offset: n * lanes });
            let form = |n: i64| Form::Lanes { count, at: at(n), mask: None };
            let forms: Vec<Form> = (0..copies).map(form).collect();
            done = self.write(b, &buffers, &forms, CarriedValues::Arrays, most);
            Vec::new()
        });
        done?;
        if count as i64 % step != 0 {
            b.for_loop(whole, end, lanes, &[], |b, var, _| {
                let mask = Some(b.mask_below(var, end));
                let form = Form::Lanes { count, at: Some(At { var, offset: 0 }), mask };
                done = self.write(b, &buffers, &[form], CarriedValues::Arrays, most);
                Vec::new()
            });
            done?;
        }
        let mut kernels = vec![Vouched::new(b.finish())];
        if carried().any(|(shape, _)| shape.element_count() == 1) {
            let mut b = Builder::of(self.lanes, self.target.vector_bytes);
            let buffers = self.params(&mut b, CarriedValues::Scalars);
            let form = Form::Lanes { count, at: None, mask: None };
            self.write(&mut b, &buffers, &[form], CarriedValues::Scalars, most)?;
            kernels.push(Vouched::new(b.finish()));
        }
        let cost = (self.instrs as u64).div_ceil(self.lanes as u64);
        Some(StateLoop { kernels, most, cost })
    }

    /// Elements as values of their own.
    fn by_elements(&self) -> Option<StateLoop> {
        let carried = zip(self.state, self.kinds).filter(|(_, kind)| **kind == Kind::Carried);
        let counts: Vec<usize> = carried.map(|(shape, _)| shape.element_count()).collect();
        let fits = counts.iter().all(|&count| count <= MAX_ELEMENTS);
        if !fits || counts.iter().sum::<usize>() > MAX_CARRIED {
            return None;
        }
        let mut b = Builder::of(self.lanes, self.target.vector_bytes);
        let buffers = self.params(&mut b, CarriedValues::All);
        self.write(&mut b, &buffers, &[Form::Elements], CarriedValues::All, MAX_TRIPS)?;
        let cost = 4 * self.instrs as u64;
        Some(StateLoop { kernels: vec![Vouched::new(b.finish())], most: MAX_TRIPS, cost })
    }
}
