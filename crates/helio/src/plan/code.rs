//! How a plan runs generated code: kernels as steps of machine code or of the tile machine, and
//! scalar code that kernels of the runtime call.

use std::iter::zip;
use std::sync::Arc;

use helio_codegen::backend::FunctionArg;
use helio_codegen::lower::{Arg, Stage, lower_scalar};
use helio_codegen::machine::MachineCode;
use helio_codegen::{Code, Function, Vouched, kernel};
use helio_ir::{CompId, Error, Module, Verified};
use helio_runtime::program::{Failure, RawKernel, SliceKernel};
use helio_runtime::{Jit, JitArg, JitBatch, LateFunction, Threads};
use smallvec::SmallVec;

use super::native::Written;
use super::target::KernelCode;
use super::{Action, Planned, Planner, StorageId, Target};
use crate::interpreted::Reason;

/// Processor cycles in a nanosecond, about: kernels state the work of one number of their range in
/// cycles.
const CYCLES_PER_NANO: f64 = 4.0;

impl Planner<'_> {
    /// What runs a kernel: the code of the back end, else the tile machine.
    pub(super) fn kernel_step(
        &mut self,
        kernel: &Vouched<kernel::Kernel>,
        cost: u64,
        slots: Vec<StorageId>,
    ) -> Planned<Action> {
        let made = self.target.code(kernel)?;
        self.code_step(made, kernel, cost, slots)
    }

    /// The same, of which the code is there already.
    pub(super) fn code_step(
        &mut self,
        KernelCode { code, fallback }: KernelCode,
        kernel: &Vouched<kernel::Kernel>,
        cost: u64,
        slots: Vec<StorageId>,
    ) -> Planned<Action> {
        if let Some(reason) = fallback {
            self.note(reason);
        }
        match code {
            Code::Machine(code) => {
                let function: Arc<dyn RawKernel> = add(&mut self.machine_code, code, cost);
                self.proofs.keep(&function, kernel);
                if self.compact.is_some() {
                    self.written.push(Written::new(&function, kernel.clone(), cost));
                }
                Ok(Action::Raw { kernel: function, slots })
            }
            Code::Function(function) => self.function_step(function, kernel, cost, slots),
        }
    }

    /// What runs the function of a kernel.
    fn function_step(
        &self,
        function: Arc<dyn Function>,
        kernel: &kernel::Kernel,
        cost: u64,
        slots: Vec<StorageId>,
    ) -> Planned<Action> {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let slots: Vec<StorageId> = slots.into_iter().map(|id| self.find(id)).collect();
        let written = |id| zip(&slots, &kernel.params).position(|(&s, p)| p.write && s == id);
        let mut passed = Vec::with_capacity(slots.len());
        for (&id, param) in zip(&slots, &kernel.params) {
            passed.push(match (param.write, written(id)) {
                (true, _) => {
                    outputs.push(id);
                    Passed::Output
                }
                // It is changed in place.
                (false, Some(other)) => Passed::Same(other),
                (false, None) => {
                    inputs.push(id);
                    Passed::Input
                }
            });
        }
        let grain = kernel.grain.max(1);
        let units = i64::try_from(PIECE_CYCLES / cost.max(1)).unwrap_or(i64::MAX);
        let piece = (units / grain).max(1).saturating_mul(grain);
        let kernel = Arc::new(FunctionKernel { function, range: kernel.range, piece, passed });
        Ok(Action::Kernel { kernel, inputs, outputs })
    }
}

/// Adds the machine code of a kernel to a batch.
fn add(batch: &mut JitBatch, code: Vouched<MachineCode>, cost: u64) -> Arc<LateFunction> {
    let name = format!("kernel {}", batch.len());
    batch.add(Jit::new(name, code, cost as f64 / CYCLES_PER_NANO))
}

/// Scalar code that runs on many arguments at once, as machine code or on the tile machine.
pub(super) struct ScalarCode {
    engine: Engine,
    fallback: Option<Reason>,
    args: Vec<Arg>,
    range: i64,
    grain: i64,
}

enum Engine {
    Machine(Arc<LateFunction>),
    Function(Arc<dyn Function>),
}

impl ScalarCode {
    /// Code for `count` arguments at once, if the computation can be lowered. Errors: what it was
    /// lowered to is not well formed.
    pub(super) fn new(
        module: &Verified<Module>,
        scalar: CompId,
        count: usize,
        target: &Target<'_>,
        batch: &mut JitBatch,
    ) -> Result<Option<Self>, Error> {
        let lowered = lower_scalar(module, scalar, count, target.lowering(target.vectors()));
        let Ok(Stage { kernel, args, cost, .. }) = lowered else { return Ok(None) };
        let (range, grain) = (kernel.range, kernel.grain.max(1));
        let KernelCode { code, fallback } = target.code(&kernel)?;
        let engine = match code {
            Code::Machine(code) => Engine::Machine(add(batch, code, cost)),
            Code::Function(function) => Engine::Function(function),
        };
        Ok(Some(ScalarCode { engine, fallback, args, range, grain }))
    }

    /// Why it runs on the tile machine although another back end was asked for.
    pub(super) fn fallback(&self) -> Option<Reason> {
        self.fallback
    }

    /// The parameters that the code reads, in ascending order.
    pub(super) fn reads(&self) -> Vec<usize> {
        let operand = |arg: &Arg| match arg {
            Arg::Operand(i) => Some(*i),
            _ => None,
        };
        let mut reads: Vec<usize> = self.args.iter().filter_map(operand).collect();
        reads.sort_unstable();
        reads
    }

    /// Runs the code, whose results go to `to`, for the first `count` arguments and maybe more.
    /// `operand` gives the arguments for a parameter.
    pub(super) fn call<'a>(
        &self,
        count: usize,
        operand: impl Fn(usize) -> &'a [u8],
        to: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let end = count.saturating_add(self.grain - 1) / self.grain * self.grain;
        let end = end.min(self.range);
        match &self.engine {
            Engine::Machine(function) => {
                let mut args = SmallVec::<[JitArg<'_>; 8]>::new();
                let mut to = to.iter_mut();
                for arg in &self.args {
                    args.push(match arg {
                        Arg::Operand(i) => JitArg::Read(operand(*i)),
                        // Results are stored in order.
                        _ => to.next().map_or(JitArg::Read(&[]), |to| JitArg::Write(to)),
                    });
                }
                Ok(function.call(&mut args, 0..end)?)
            }
            Engine::Function(code) => {
                let mut to = to.iter_mut();
                let arg = |arg: &Arg| match arg {
                    Arg::Operand(i) => FunctionArg::Read(operand(*i)),
                    _ => to.next().map_or(FunctionArg::Read(&[]), |to| FunctionArg::Write(to)),
                };
                let mut args: Vec<FunctionArg<'_>> = self.args.iter().map(arg).collect();
                Ok(code.run(&mut args, 0..end)?)
            }
        }
    }
}

/// The work of a piece of the range that a function runs between two questions whether the run has
/// stopped, in processor cycles of machine code. (The tile machine takes some ten times as long for
/// it: about a millisecond.)
const PIECE_CYCLES: u64 = 1 << 18;

/// What a function gets for a buffer of its kernel.
enum Passed {
    /// The next operand.
    Input,
    /// The next result.
    Output,
    /// What the buffer of this number gets: an operand that is changed in place.
    Same(usize),
}

/// A kernel that is a function in safe Rust.
struct FunctionKernel {
    function: Arc<dyn Function>,
    range: i64,
    /// The numbers of the range in a piece; a multiple of the grain.
    piece: i64,
    /// For each buffer of the kernel.
    passed: Vec<Passed>,
}

impl SliceKernel for FunctionKernel {
    fn name(&self) -> &str {
        "function"
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        let (mut inputs, mut outputs) = (inputs.iter(), outputs.iter_mut());
        let arg = |passed: &Passed| match *passed {
            Passed::Input => inputs.next().map(|bytes| FunctionArg::Read(bytes)),
            Passed::Output => outputs.next().map(|bytes| FunctionArg::Write(bytes)),
            Passed::Same(other) => Some(FunctionArg::Same(other)),
        };
        let args: Option<Vec<FunctionArg<'_>>> = self.passed.iter().map(arg).collect();
        let mut args = args.ok_or("a buffer is missing")?;
        let mut begin = 0;
        while begin < self.range && !threads.is_stopped() {
            let end = self.range.min(begin.saturating_add(self.piece));
            self.function.run(&mut args, begin..end)?;
            begin = end;
        }
        Ok(())
    }
}
