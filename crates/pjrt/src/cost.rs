//! What a program costs, by counting: floating-point operations, and bytes read and written.

use helio::ir::{CompId, Computation, Instr, Op};
use helio::{Module, Shape};

use crate::named::NamedValues;

/// A program of at most this much work takes less time than waking a thread does.
const BRIEF_OPERATIONS: f64 = 20_000.0;

/// What a run of a program costs. A loop counts as one iteration, a conditional as its dearest branch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost {
    /// Operations on numbers other than transcendental functions.
    flops: f64,
    /// Transcendental functions.
    transcendentals: f64,
    /// The bytes of all operands and results.
    bytes: f64,
    /// Whether the time depends on more than sizes: loops, other participants, functions of the user.
    is_open: bool,
}

/// How many transcendental functions take as long as one operation.
const TRANSCENDENTAL_WEIGHT: f64 = 10.0;

impl Cost {
    /// Of a module's entry.
    pub(crate) fn of(module: &Module) -> Self {
        let mut of: Vec<Cost> = Vec::with_capacity(module.computations().len());
        let mut entry = Cost::default();
        for id in module.ids() {
            let computation = module.computation(id);
            let cost = Self::of_computation(computation, &of);
            if std::ptr::eq(computation, module.entry()) {
                entry = cost;
            }
            of.push(cost);
        }
        entry
    }

    /// Callees precede their callers.
    fn of_computation(computation: &Computation, of: &[Cost]) -> Self {
        let mut cost = Cost::default();
        for instr in computation.instrs() {
            cost.add(Self::of_instr(computation, instr, of));
        }
        cost
    }

    fn of_instr(computation: &Computation, instr: &Instr, of: &[Cost]) -> Self {
        let operand = |i: usize| instr.operands.get(i).map(|&id| &computation.instr(id).shape);
        let count = elements(&instr.shape);
        let read: usize =
            instr.operands.iter().map(|&id| computation.instr(id).shape.size_bytes()).sum();
        let mut cost = Cost { bytes: (read + instr.shape.size_bytes()) as f64, ..Cost::default() };
        let callee = |id: CompId| of.get(id.index()).copied().unwrap_or_default();
        let callees = instr.op.callees();
        match &instr.op {
            Op::Parameter(_) | Op::Constant(_) | Op::Tuple(_) | Op::GetTupleElement(_) => {
                return Cost::default();
            }
            Op::Unary(op) if op.cost() == helio::unstable::ir::ops::Cost::Transcendental => {
                cost.transcendentals = count;
            }
            Op::Binary(op) if op.cost() == helio::unstable::ir::ops::Cost::Transcendental => {
                cost.transcendentals = count;
            }
            Op::Unary(_)
            | Op::Binary(_)
            | Op::Compare(_)
            | Op::Select(_)
            | Op::Clamp(_)
            | Op::Convert(_) => cost.flops = count,
            Op::Dot(dot) => {
                let lhs = operand(0).and_then(Shape::as_array);
                let depth = lhs.map_or(1, |lhs| {
                    dot.dims.lhs_contracting.iter().map(|&dim| lhs.dims()[dim]).product::<usize>()
                });
                cost.flops = 2.0 * count * depth as f64;
            }
            Op::Convolution(op) => {
                let kernel = operand(1).and_then(Shape::as_array);
                let each = kernel.map_or(1, |kernel| {
                    let features = kernel.dims()[op.dims.kernel_output_feature].max(1);
                    kernel.element_count() / features
                });
                cost.flops = 2.0 * count * each as f64;
            }
            Op::Call(_) | Op::Fusion(_) => callees.iter().for_each(|&id| cost.add(callee(id))),
            Op::Conditional(_) => {
                let dearest = callees
                    .iter()
                    .map(|&id| callee(id))
                    .max_by(|a, b| a.weight().total_cmp(&b.weight()));
                cost.add(dearest.unwrap_or_default());
                cost.is_open |= callees.iter().any(|&id| callee(id).is_open);
            }
            Op::While(_) => {
                callees.iter().for_each(|&id| cost.add(callee(id)));
                cost.is_open = true;
            }
            // Applied to each element of what they read.
            Op::Reduce(_)
            | Op::ReduceWindow(_)
            | Op::Map(_)
            | Op::Scatter(_)
            | Op::SelectAndScatter(_) => {
                let applied = operand(0).map_or(count, elements).max(count);
                cost.flops = applied;
            }
            Op::Sort(_) | Op::TopK(_) | Op::Fft(_) => {
                let applied = operand(0).map_or(count, elements);
                cost.flops = applied * applied.max(2.0).log2();
            }
            Op::Broadcast(_)
            | Op::Reshape(_)
            | Op::Transpose(_)
            | Op::Slice(_)
            | Op::Iota(_)
            | Op::Concatenate(_)
            | Op::Pad(_)
            | Op::Reverse(_)
            | Op::Copy(_)
            | Op::Bitcast(_)
            | Op::DynamicSlice(_)
            | Op::DynamicUpdateSlice(_)
            | Op::Gather(_)
            | Op::BitcastConvert(_)
            | Op::RngBitGenerator(_) => {}
            _ => {
                cost.flops = count;
                cost.is_open = true;
            }
        }
        cost
    }

    fn add(&mut self, other: Cost) {
        self.flops += other.flops;
        self.transcendentals += other.transcendentals;
        self.bytes += other.bytes;
        self.is_open |= other.is_open;
    }

    /// The time that it takes, in operations.
    fn weight(&self) -> f64 {
        self.flops + TRANSCENDENTAL_WEIGHT * self.transcendentals + self.bytes / 8.0
    }

    /// Whether a run takes less time than waking a thread does.
    pub(crate) fn is_brief(&self) -> bool {
        !self.is_open && self.weight() <= BRIEF_OPERATIONS
    }

    /// Under the names that XLA gives them.
    pub(crate) fn named(&self) -> NamedValues {
        NamedValues::default()
            .float("flops", self.flops as f32)
            .float("transcendentals", self.transcendentals as f32)
            .float("bytes accessed", self.bytes as f32)
    }
}

/// How many elements a value has.
fn elements(shape: &Shape) -> f64 {
    let arrays = shape.leaves().into_iter().filter_map(Shape::as_array);
    arrays.map(|array| array.element_count() as f64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(text: &str) -> Cost {
        Cost::of(&helio::parse(text).unwrap())
    }

    #[test]
    fn operations_are_counted() {
        let product = cost(
            "ENTRY e { a = f32[2,3] parameter(0) b = f32[3,5] parameter(1)
               c = f32[2,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
               ROOT d = f32[2,5] exponential(c) }",
        );
        assert_eq!((product.flops, product.transcendentals), (60.0, 10.0));
        assert_eq!(product.bytes, 4.0 * (6 + 15 + 10 + 10 + 10) as f64);
        assert!(product.is_brief());
    }

    #[test]
    fn loops_and_large_arrays_are_not_brief() {
        let looped = cost(
            "c { x = f32[] parameter(0) ROOT p = pred[] compare(x, x), direction=LT }
             b { x = f32[] parameter(0) ROOT y = f32[] add(x, x) }
             ENTRY e { x = f32[] parameter(0) ROOT y = f32[] while(x), condition=c, body=b }",
        );
        assert!(looped.is_open && !looped.is_brief());
        let large = cost("ENTRY e { x = f32[100000] parameter(0) ROOT y = f32[100000] add(x, x) }");
        assert!(!large.is_brief());
    }
}
