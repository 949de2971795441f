//! A scatter into one array as a kernel: loops over the windows, each combined with what is there already
//! if it lies inside.

use std::iter::zip;

use helio_ir::ops::ScatterDims;
use helio_ir::types::strides;
use helio_ir::{ArrayShape, CompId, ElementType, Module, Op};

use crate::Vouched;
use crate::elementwise::{self, Elem};
use crate::kernel::{Addr, Buf, Builder, Cmp, Kernel, MaskOp, Mem, Value};

/// Scatters windows of updates into an array.
///
/// Parameters of the kernel: the indices; the updates; the array, which has the operand's elements before
/// and the result's after it.
#[derive(Clone, Copy, Debug)]
pub struct Scatter<'m> {
    /// The computation's module.
    pub module: &'m Module,
    /// From an element that is there and an update's to the new one.
    pub to_apply: CompId,
    /// What each dimension is.
    pub dims: &'m ScatterDims,
    /// The array.
    pub operand: &'m ArrayShape,
    /// The indices.
    pub indices: &'m ArrayShape,
    /// The updates.
    pub updates: &'m ArrayShape,
    /// Whether all updates are one number, and that alone is given.
    pub is_splat: bool,
}

/// What a step along a dimension moves, in elements.
#[derive(Clone, Copy, Default)]
struct Dim {
    count: usize,
    of_indices: usize,
    of_updates: usize,
    of_operand: usize,
}

/// Windows of no more neighbours are combined element by element: four of them take as long as a vector.
const FEW: usize = 2;

/// What is written in loops: it gets the indices, and what a step of each moves.
type Body<'b> = dyn FnMut(&mut Builder, &[(Value, Dim)]) + 'b;

/// What the windows of a scatter are.
struct Plan {
    mem: Mem,
    /// The dimensions that number the windows,
    windows: Vec<Dim>,
    /// and those of a window; the last is in lanes.
    window: Vec<Dim>,
    /// For each component of index vectors: where it is among the indices, what it moves in the operand, and
    /// the greatest that leaves a window inside.
    components: Vec<(usize, usize, usize)>,
}

/// The kernel's buffers.
#[derive(Clone, Copy)]
struct Buffers {
    indices: Buf,
    updates: Buf,
    array: Buf,
}

impl Scatter<'_> {
    /// Whether [`Scatter::kernel`] has a kernel.
    pub fn is_supported(&self) -> bool {
        self.plan().is_some() && self.combines()
    }

    /// The kernel for vectors of `lanes` lanes, and its work in processor cycles, estimated.
    pub fn kernel(&self, lanes: usize) -> Option<(Vouched<Kernel>, u64)> {
        let plan = self.plan().filter(|_| self.combines())?;
        let mut b = Builder::new(lanes);
        let updates = if self.is_splat {
            self.updates.element().size_bytes()
        } else {
            self.updates.size_bytes()
        };
        let buffers = Buffers {
            indices: b.param(self.indices.size_bytes(), true, false),
            updates: b.param(updates, true, false),
            array: b.param(self.operand.size_bytes(), true, true),
        };
        self.each(&mut b, &plan.windows, &[], &mut |b, at| self.window(b, &plan, buffers, at));
        let count = |dims: &[Dim]| dims.iter().map(|dim| dim.count).product::<usize>();
        let vectors = match &plan.window[..] {
            [outer @ .., last] => count(outer) * last.count.div_ceil(lanes),
            [] => 1,
        };
        let work = count(&plan.windows) * (4 * plan.components.len() + 8 * vectors);
        Some((Vouched::new(b.finish()), work as u64))
    }

    fn plan(&self) -> Option<Plan> {
        let Scatter { dims, operand, indices, updates, .. } = *self;
        let mem = match indices.element() {
            ElementType::S32 | ElementType::U32 => Mem::I32,
            ElementType::S64 | ElementType::U64 => Mem::I64,
            _ => return None,
        };
        let [of_operand, of_indices, of_updates] =
            [operand, indices, updates].map(|shape| strides(shape.dims()));
        let of_updates = if self.is_splat { vec![0; updates.rank()] } else { of_updates };
        let numbered = (0..indices.rank()).filter(|&d| d != dims.index_vector_dim);
        let windows = zip(numbered, dims.scatter_dims(updates.rank())).map(|(of, update)| {
            let batch = dims.scatter_indices_batching_dims.iter().position(|&d| d == of);
            Dim {
                count: indices.dims()[of],
                of_indices: of_indices[of],
                of_updates: of_updates[update],
                of_operand: batch.map_or(0, |n| of_operand[dims.input_batching_dims[n]]),
            }
        });
        let mut sizes = vec![1; operand.rank()];
        let mut window: Vec<Dim> = Vec::new();
        let window_dims = dims.window_operand_dims(operand.rank());
        for (of, &update) in zip(window_dims, &dims.update_window_dims) {
            let count = updates.dims()[update];
            sizes[of] = count;
            let dim = Dim {
                count,
                of_indices: 0,
                of_updates: of_updates[update],
                of_operand: of_operand[of],
            };
            match window.last_mut() {
                _ if count == 1 => {}
                // The elements of both go on where a step along the one before begins.
                Some(last)
                    if last.of_updates == count * dim.of_updates
                        && last.of_operand == count * dim.of_operand =>
                {
                    *last = Dim { count: last.count * count, ..dim };
                }
                _ => window.push(dim),
            }
        }
        let step = of_indices.get(dims.index_vector_dim).copied().unwrap_or_default();
        let component = |(n, &of): (usize, &usize)| {
            let last = operand.dims()[of].checked_sub(sizes[of])?;
            Some((n * step, of_operand[of], last))
        };
        let components = dims.scatter_dims_to_operand_dims.iter().enumerate().map(component);
        Some(Plan {
            mem,
            windows: windows.collect(),
            window,
            components: components.collect::<Option<_>>()?,
        })
    }

    /// Whether the computation is operations on single elements that kernels have.
    fn combines(&self) -> bool {
        let ty = self.operand.element();
        if self.updates.element() != ty || !elementwise::holds(ty) || ty.is_complex() {
            return false;
        }
        let computation = self.module.computation(self.to_apply);
        let element = |id| {
            let array: Option<&ArrayShape> = computation.instr(id).shape.as_array();
            array.filter(|array| array.is_scalar()).map(ArrayShape::element)
        };
        let is_known = |id| {
            let (instr, Some(result)) = (computation.instr(id), element(id)) else { return false };
            let operands: Option<Vec<_>> = instr.operands.iter().map(|&id| element(id)).collect();
            match &instr.op {
                Op::Parameter(param) => param.number < 2 && result == ty,
                Op::Constant(op) => {
                    !op.elided && elementwise::holds(result) && !result.is_complex()
                }
                op => operands.is_some_and(|types| elementwise::supports(op, &types, result)),
            }
        };
        computation.ids().into_iter().all(is_known) && element(computation.root()) == Some(ty)
    }

    /// Writes the computation.
    fn combined(&self, b: &mut Builder, args: [Elem; 2]) -> Option<Elem> {
        let computation = self.module.computation(self.to_apply);
        let mut values: Vec<(ElementType, Elem)> = Vec::new();
        for id in computation.ids() {
            let instr = computation.instr(id);
            let ty = instr.shape.as_array()?.element();
            let value = match &instr.op {
                Op::Parameter(param) => *args.get(param.number)?,
                Op::Constant(op) => elementwise::constant(b, ty, op.literal.as_array()?.bits(0)),
                op => {
                    let operands: Vec<_> =
                        instr.operands.iter().map(|id| values[id.index()]).collect();
                    elementwise::apply(b, op, &operands, ty)
                }
            };
            values.push((ty, value));
        }
        Some(values[computation.root().index()].1)
    }

    /// Writes loops over dimensions: `body` gets the index along each, besides those in `at`.
    fn each(&self, b: &mut Builder, dims: &[Dim], at: &[(Value, Dim)], body: &mut Body<'_>) {
        let [dim, rest @ ..] = dims else { return body(b, at) };
        let (zero, end) = (b.index(0), b.index(dim.count as i64));
        b.for_loop(zero, end, 1, &[], |b, index, _| {
            self.each(b, rest, &[at, &[(index, *dim)]].concat(), body);
            Vec::new()
        });
    }

    /// Writes what is done with the window with these numbers.
    fn window(&self, b: &mut Builder, plan: &Plan, buffers: Buffers, at: &[(Value, Dim)]) {
        let of_index = plan.mem.bytes();
        let (mut inside, mut places) = (None, Vec::new());
        for &(offset, step, last) in &plan.components {
            let addr = Addr {
                buf: buffers.indices,
                offset: (offset * of_index) as i64,
                terms: terms(at, of_index, |dim| dim.of_indices),
                lane_stride: 0,
            };
            // (An index below zero is large without its sign.)
            let index = b.load(plan.mem, addr.clone(), None);
            let last = b.int(plan.mem.lane(), last as i64);
            let is_inside = b.compare(Cmp::LeU, index, last);
            inside = Some(match inside {
                Some(others) => b.mask_op(MaskOp::And, others, is_inside),
                None => is_inside,
            });
            let place = b.index_load(plan.mem, addr);
            places.push((place, Dim { of_operand: step, ..Dim::default() }));
        }
        let (outer, lane_dim) = match plan.window.split_last() {
            Some((last, outer)) if last.count > FEW => (outer, *last),
            // What a store under a mask has written, the next load has to wait for until it is in the cache.
            _ => {
                return self.each(b, &plan.window, &[at, &places].concat(), &mut |b, at| {
                    self.vector(b, buffers, at, Dim::default(), inside);
                });
            }
        };
        let lanes = b.lanes() as i64;
        self.each(b, outer, &[at, &places].concat(), &mut |b, at| {
            let (zero, end) = (b.index(0), b.index(lane_dim.count as i64));
            b.for_loop(zero, end, lanes, &[], |b, first, _| {
                let there = b.mask_below(first, end);
                let mask = inside.map_or(there, |inside| b.mask_op(MaskOp::And, inside, there));
                let at = &[at, &[(first, lane_dim)]].concat();
                self.vector(b, buffers, at, lane_dim, Some(mask));
                Vec::new()
            });
        });
    }

    /// Writes what is done with a vector of a window, or, if lanes move nothing, with an element.
    fn vector(
        &self,
        b: &mut Builder,
        buffers: Buffers,
        at: &[(Value, Dim)],
        lane_dim: Dim,
        mask: Option<Value>,
    ) {
        let ty = self.operand.element();
        let size = ty.size_bytes();
        let addr = |buf, of: fn(&Dim) -> usize| Addr {
            buf,
            offset: 0,
            terms: terms(at, size, of),
            lane_stride: (of(&lane_dim) * size) as i64,
        };
        let array = addr(buffers.array, |dim| dim.of_operand);
        let old = elementwise::load(b, ty, array.clone(), mask);
        let update = elementwise::load(b, ty, addr(buffers.updates, |dim| dim.of_updates), mask);
        if let Some(new) = self.combined(b, [old, update]) {
            elementwise::store(b, ty, new, array, mask);
        }
    }
}

/// The terms of an address: indices, and the bytes that a step of each moves.
fn terms(at: &[(Value, Dim)], size: usize, of: impl Fn(&Dim) -> usize) -> Vec<(Value, i64)> {
    let all = at.iter().map(|(index, dim)| (*index, (of(dim) * size) as i64));
    all.filter(|&(_, bytes)| bytes != 0).collect()
}
