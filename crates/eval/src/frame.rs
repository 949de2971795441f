//! Running computations: frames of values, calls, limits.

use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;

use helio_ir::{
    Array, CompId, Error, InstrId, Literal, Module, Op, ProgramShape, Result, Shape, Verified,
    memory,
};

use helio_ir::ops::Yield;

use crate::deep_stack::on_deep_stack;
use crate::services::Context;
use crate::values::Values;
use crate::{
    Subnormals, batch_norm, collective, control, convert, convolution, custom_call, dot,
    dynamic_slice, elementwise, fft, gather, linalg, movement, reduce, reshape, rng, scatter,
    slice, sort, transfer, window,
};

pub use helio_limits::{Limits, Meter, Stopped};

/// How deep calls may nest; [`evaluate`] gives its thread the stack for it.
pub(crate) const MAX_CALL_DEPTH: usize = 1000;

/// Runs the module's entry computation. `args` are the parameters by number.
///
/// Errors: `InvalidArgument` if the arguments do not fit the parameters; whatever an operation
/// reports, with the instruction's name and place; `ResourceExhausted` for memory
/// ([`helio_ir::memory`]), call depth and steps; `Cancelled` and `DeadlineExceeded` as [`Limits`] say.
pub fn evaluate(module: &Verified<Module>, args: &[Literal], cx: &Context) -> Result<Literal> {
    check_arguments(&module.entry().program_shape(), args)?;
    on_deep_stack(|| Evaluator::new(module, cx).call(module.entry_id(), args.to_vec()))
}

/// Checks that arguments fit a program's parameters. Errors: `InvalidArgument`.
pub fn check_arguments(program: &ProgramShape, args: &[Literal]) -> Result<()> {
    let params = &program.params;
    if params.len() != args.len() {
        let (want, given) = (listed(params), listed(args.iter().map(Literal::shape)));
        let (count, found) = (params.len(), args.len());
        let s = if count == 1 { "" } else { "s" };
        return Err(Error::invalid(format!(
            "the program takes {count} argument{s}, found {found}\n  takes: {want}\n  found: {given}"
        )));
    }
    for (i, (param, arg)) in params.iter().zip(args).enumerate() {
        if !param.same(&arg.shape()) {
            let found = arg.shape();
            return Err(Error::invalid(format!("argument {i} must be {param}, found {found}")));
        }
        arg.ensure_whole()?;
    }
    Ok(())
}

/// The first 20 shapes, and how many more there are.
fn listed<S: Display>(shapes: impl IntoIterator<Item = S>) -> String {
    const SHOWN: usize = 20;
    let mut shapes = shapes.into_iter().map(|shape| shape.to_string());
    let mut shown: Vec<_> = shapes.by_ref().take(SHOWN).collect();
    match shapes.count() {
        0 if shown.is_empty() => return "none".to_owned(),
        0 => {}
        more => shown.push(format!("and {more} more")),
    }
    shown.join(", ")
}

/// Runs computations of one module for one participant.
pub struct Evaluator<'a> {
    /// The module.
    pub module: &'a Module,
    /// What surrounds the run.
    pub cx: &'a Context,
    depth: Cell<usize>,
    pub(crate) meter: Arc<Meter>,
    /// How many times hidden generator state was drawn from; see [`rng`].
    pub(crate) draws: Cell<u64>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator that has not run anything.
    pub fn new(module: &'a Module, cx: &'a Context) -> Self {
        Self::with_meter(module, cx, Arc::new(Meter::new(cx.limits.clone())))
    }

    /// An evaluator that has not run anything, for a part of a run: its work is counted on `meter`,
    /// whose limits hold instead of the context's.
    pub fn with_meter(module: &'a Module, cx: &'a Context, meter: Arc<Meter>) -> Self {
        Evaluator { module, cx, depth: Cell::new(0), meter, draws: Cell::new(0) }
    }

    /// Runs a computation on arguments that fit its parameters.
    pub fn call(&self, id: CompId, args: Vec<Literal>) -> Result<Literal> {
        let depth = self.depth.get();
        if depth >= MAX_CALL_DEPTH {
            return Err(Error::exhausted(format!("calls nested more than {MAX_CALL_DEPTH} deep")));
        }
        self.depth.set(depth + 1);
        let result = self.run(id, args);
        self.depth.set(depth);
        result
    }

    /// Performs one instruction of the module on operands that fit it.
    ///
    /// It runs on the caller's stack: what [`needs_deep_stack`](crate::needs_deep_stack) is for a
    /// [`DeepStack`](crate::DeepStack).
    pub fn instruction(
        &self,
        computation: CompId,
        id: InstrId,
        operands: Vec<Literal>,
    ) -> Result<Literal> {
        let instr = self.module.computation(computation).instr(id);
        let result = self.step(computation, id, &instr.op, operands, &instr.shape);
        result.map_err(|e| self.module.locate(e, instr))
    }

    fn run(&self, id: CompId, mut args: Vec<Literal>) -> Result<Literal> {
        let computation = self.module.computation(id);
        let mut values = Values::new(computation);
        for instr_id in computation.ids() {
            let instr = computation.instr(instr_id);
            let value = match (&instr.op, &instr.operands[..]) {
                (Op::Parameter(param), _) => args
                    .get_mut(param.number)
                    .map(|arg| std::mem::replace(arg, Literal::Token))
                    .ok_or_else(|| Error::internal("a parameter has no argument")),
                (Op::GetTupleElement(op), &[tuple]) => self
                    .count_steps(1)
                    .and_then(|()| values.take_element(instr_id, tuple, op.index)),
                (op, operands) => {
                    let operands = operands.iter().map(|&operand| values.take(operand));
                    let operands = operands.collect::<Result<_>>()?;
                    self.observed_step(id, instr_id, op, operands, &instr.shape)
                }
            };
            let value = value.map_err(|e| self.module.locate(e, instr))?;
            values.put(instr_id, value);
        }
        values.take(computation.root())
    }

    /// [`Self::step`], of which the observer is told, if there is one.
    fn observed_step(
        &self,
        computation: CompId,
        instr: InstrId,
        op: &Op,
        operands: Vec<Literal>,
        shape: &Shape,
    ) -> Result<Literal> {
        let Some(observer) = &self.cx.observer else {
            return self.step(computation, instr, op, operands, shape);
        };
        observer.before(computation, instr);
        let value = self.step(computation, instr, op, operands, shape)?;
        observer.after(computation, instr, &value);
        Ok(value)
    }

    fn step(
        &self,
        computation: CompId,
        instr: InstrId,
        op: &Op,
        operands: Vec<Literal>,
        shape: &Shape,
    ) -> Result<Literal> {
        self.count_steps(1)?;
        if !forwards(op) {
            memory::ensure_available(shape.size_bytes())?;
        }
        let subnormals = self.cx.subnormals;
        if subnormals == Subnormals::Keep || !computes_with_arrays(op) {
            return self.apply(computation, instr, op, operands, shape);
        }
        let operands = operands.into_iter().map(|operand| subnormals.in_arrays(operand));
        let operands = operands.collect::<Result<_>>()?;
        subnormals.in_arrays(self.apply(computation, instr, op, operands, shape)?)
    }

    /// Counts the work of the run, and says when it is to stop.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Counts work against [`Limits`]. Errors: `ResourceExhausted` when a limit is reached,
    /// `Cancelled`, `DeadlineExceeded`.
    pub fn count_steps(&self, steps: u64) -> Result<()> {
        Ok(self.meter.count(steps)?)
    }

    /// Evaluates one operation. (`computation`, `instr`) say where it stands, for collectives.
    fn apply(
        &self,
        computation: CompId,
        instr: InstrId,
        op: &Op,
        operands: Vec<Literal>,
        shape: &Shape,
    ) -> Result<Literal> {
        // Operations that can make use of it get the operands themselves.
        let args = &operands[..];
        match op {
            Op::Unary(op) => elementwise::unary(*op, self, args, shape),
            Op::Binary(op) => elementwise::binary(*op, self, args, shape),
            Op::Compare(op) => elementwise::compare(op, self, args, shape),
            Op::Select(op) => elementwise::select(op, self, args, shape),
            Op::Clamp(op) => elementwise::clamp(op, self, args, shape),
            Op::Convert(op) => convert::convert(op, self, args, shape),
            Op::BitcastConvert(op) => convert::bitcast_convert(op, self, args, shape),
            Op::StochasticConvert(op) => convert::stochastic_convert(op, self, args, shape),
            Op::ReducePrecision(op) => convert::reduce_precision(op, self, args, shape),

            Op::Constant(op) => control::constant(op),
            Op::Parameter(_) => Err(Error::internal("a parameter is not evaluated")),
            Op::Iota(op) => movement::iota(op, self, args, shape),
            Op::Broadcast(op) => movement::broadcast(op, self, args, shape),
            Op::Reshape(op) => reshape::reshape(op, self, args, shape),
            Op::DynamicReshape(op) => reshape::dynamic_reshape(op, self, args, shape),
            Op::Bitcast(_) => {
                let from = self.operand_shape(computation, instr)?;
                reshape::bitcast(self, args, from, shape)
            }
            Op::Copy(_) => only(args),
            Op::Transpose(op) => movement::transpose(op, self, args, shape),
            Op::Reverse(op) => movement::reverse(op, self, args, shape),
            Op::Concatenate(op) => movement::concatenate(op, self, args, shape),
            Op::Slice(op) => slice::slice(op, self, args, shape),
            Op::DynamicSlice(op) => dynamic_slice::dynamic_slice(op, self, args, shape),
            Op::DynamicUpdateSlice(op) => {
                dynamic_slice::dynamic_update_slice(op, self, operands, shape)
            }
            Op::Pad(op) => slice::pad(op, self, args, shape),
            Op::GetDimensionSize(op) => dynamic_slice::get_dimension_size(op, self, args, shape),
            Op::SetDimensionSize(op) => dynamic_slice::set_dimension_size(op, self, args, shape),
            Op::Tuple(_) => Ok(Literal::Tuple(operands)),
            Op::GetTupleElement(_) => Err(Error::internal("an element is not evaluated")),

            Op::Call(op) => control::call(op, self, operands),
            Op::Map(op) => reduce::map(op, self, args, shape),
            Op::Fusion(op) => control::fusion(op, self, operands),
            Op::While(op) => control::while_loop(op, self, operands),
            Op::Conditional(op) => control::conditional(op, self, operands),
            Op::OptimizationBarrier(op) => control::optimization_barrier(op, self, args, shape),
            Op::AfterAll(_) => Ok(Literal::Token),
            Op::AddDependency(_) => first(args),
            Op::Domain(_) => only(args),
            Op::CustomCall(op) => {
                custom_call::custom_call(op, self, args, shape, (computation, instr))
            }

            Op::Infeed(_) | Op::Outfeed(_) | Op::Send(_) | Op::Recv(_) | Op::RecvDone(_) => {
                transfer::transfer(self, args, (computation, instr))
            }
            // Sending waits for nobody, so nothing is left to wait for.
            Op::SendDone(_) => Ok(Literal::Token),

            Op::Dot(op) => dot::dot(op, self, args, shape),
            Op::RaggedDot(op) => dot::ragged_dot(op, self, args, shape),
            Op::Convolution(op) => convolution::convolution(op, self, args, shape),
            Op::BatchNormTraining(op) => batch_norm::training(op, self, args, shape),
            Op::BatchNormInference(op) => batch_norm::inference(op, self, args, shape),
            Op::BatchNormGrad(op) => batch_norm::grad(op, self, args, shape),
            Op::Cholesky(op) => linalg::cholesky(op, self, args, shape),
            Op::TriangularSolve(op) => linalg::triangular_solve(op, self, args, shape),
            Op::Fft(op) => fft::fft(op, self, args, shape),

            Op::Reduce(op) => reduce::reduce(op, self, args, shape),
            Op::ReduceWindow(op) => window::reduce_window(op, self, args, shape),
            Op::SelectAndScatter(op) => window::select_and_scatter(op, self, args, shape),
            Op::Gather(op) => gather::gather(op, self, args, shape),
            Op::Scatter(op) => scatter::scatter(op, self, operands, shape),
            Op::Sort(op) => sort::sort(op, self, args, shape),
            Op::TopK(op) => sort::top_k(op, self, args, shape),
            Op::Rng(op) => rng::rng(op, self, args, shape),
            Op::RngBitGenerator(op) => rng::rng_bit_generator(op, self, args, shape),
            Op::RngGetAndUpdateState(op) => rng::get_and_update_state(op, self, args, shape),

            Op::AllReduce(op) => collective::all_reduce(op, self, args, (computation, instr)),
            Op::AllGather(op) => collective::all_gather(op, self, args, (computation, instr)),
            Op::AllToAll(op) => collective::all_to_all(op, self, args, (computation, instr)),
            Op::CollectivePermute(op) => {
                collective::collective_permute(op, self, args, (computation, instr))
            }
            Op::ReduceScatter(op) => {
                collective::reduce_scatter(op, self, args, (computation, instr))
            }
            Op::CollectiveBroadcast(op) => {
                collective::collective_broadcast(op, self, args, (computation, instr))
            }
            Op::RaggedAllToAll(op) => {
                collective::ragged_all_to_all(op, self, args, (computation, instr))
            }
            Op::ReplicaId(_) => Ok(Literal::scalar(self.cx.me.replica as u32)),
            Op::PartitionId(_) => Ok(Literal::scalar(self.cx.me.partition as u32)),

            Op::AllReduceStart(op) => {
                collective::all_reduce(&op.op, self, args, (computation, instr))
            }
            Op::AllReduceDone(_) => only(args),
            Op::AllGatherStart(op) => {
                collective::all_gather_start(op, self, args, (computation, instr))
            }
            Op::AllGatherDone(_) => control::done(args),
            Op::CollectivePermuteStart(op) => {
                collective::collective_permute_start(op, self, args, (computation, instr))
            }
            Op::CollectivePermuteDone(_) => control::done(args),
            Op::CopyStart(op) => control::copy_start(op, self, args, shape),
            Op::CopyDone(_) => control::copy_done(args),
            Op::AsyncStart(op) => control::async_start(op, self, args, shape),
            Op::AsyncUpdate(_) => only(args),
            Op::AsyncDone(_) => control::done(args),
        }
    }

    /// The shape that the program gives an instruction's first operand, layout and all.
    fn operand_shape(&self, computation: CompId, instr: InstrId) -> Result<&'a Shape> {
        let computation = self.module.computation(computation);
        let operand = computation.instr(instr).operands.first();
        let operand = operand.ok_or_else(|| Error::internal("an operand is missing"))?;
        Ok(&computation.instr(*operand).shape)
    }
}

/// Whether an operation does arithmetic of its own on whole arrays, rather than by functions of elements or
/// computations that it calls.
fn computes_with_arrays(op: &Op) -> bool {
    matches!(
        op,
        Op::Dot(_)
            | Op::RaggedDot(_)
            | Op::Convolution(_)
            | Op::BatchNormTraining(_)
            | Op::BatchNormInference(_)
            | Op::BatchNormGrad(_)
            | Op::Cholesky(_)
            | Op::TriangularSolve(_)
            | Op::Fft(_)
    )
}

/// Whether the result is made of operands, so that it needs no memory of its own.
fn forwards(op: &Op) -> bool {
    match op.gives() {
        Yield::Same | Yield::Itself | Yield::Passed => true,
        Yield::New | Yield::Moved | Yield::Recast => false,
    }
}

/// The array that operand `i` is. Errors: `Internal` (the verifier has seen to it).
pub(crate) fn array(args: &[Literal], i: usize) -> Result<&Array> {
    args.get(i)
        .and_then(Literal::as_array)
        .ok_or_else(|| Error::internal(format!("operand {i} is not an array")))
}

/// The array that operand `i` is, taken from its place. Errors: as for [`array`].
pub(crate) fn take_array(args: &mut [Literal], i: usize) -> Result<Array> {
    match args.get_mut(i).map(|arg| std::mem::replace(arg, Literal::Token)) {
        Some(Literal::Array(array)) => Ok(array),
        _ => Err(Error::internal(format!("operand {i} is not an array"))),
    }
}

/// The array shape that `shape` is. Errors: `Internal` (the verifier has seen to it).
pub(crate) fn array_shape(shape: &Shape) -> Result<&helio_ir::ArrayShape> {
    shape.as_array().ok_or_else(|| Error::internal(format!("{shape} is not an array")))
}

/// The first operand.
pub(crate) fn first(args: &[Literal]) -> Result<Literal> {
    args.first().cloned().ok_or_else(|| Error::internal("an operand is missing"))
}

/// The only operand, or a tuple of all.
pub(crate) fn only(args: &[Literal]) -> Result<Literal> {
    match args {
        [one] => Ok(one.clone()),
        many => Ok(Literal::Tuple(many.to_vec())),
    }
}
