//! Tuned kernels for single instructions: what an operation's attributes and shapes mean in sizes
//! and strides.

mod convolution;
mod fold;
mod indexed;
mod lapack;
mod linalg;
mod matrix;
mod movement;
mod order;
mod product;
mod random;
#[cfg(feature = "fft")]
mod transform;
mod window;

use std::sync::{Arc, Mutex, PoisonError};

pub(super) use fold::{Room, ScalarFolds};
use helio_ir::{ArrayShape, CompId, Error, Instr, InstrId, Module, Op, Verified};
use helio_runtime::kernels::FoldCode;
use helio_runtime::kernels::sort::{PAIRS, Pairs};
use helio_runtime::program::{Failure, Finish, OwnMemory, SliceKernel};
use helio_runtime::{JitBatch, Threads, View};
pub(super) use matrix::is_factored;

use super::code::ScalarCode;
use super::{Action, Frame, Owner, Planned, Planner, Source, Step, StorageId, Target, arrays};
use crate::Client;
use crate::interpreted::Reason;
use crate::packed::PackedConstant;

/// An instruction and the shapes around it.
struct InstrShapes<'s> {
    module: &'s Verified<Module>,
    instr: &'s Instr,
    /// The arrays of the operands, and of the result, tuples taken apart.
    operands: Vec<&'s ArrayShape>,
    results: Vec<&'s ArrayShape>,
    /// Whether anything uses each array of the result.
    used: Vec<bool>,
    /// Whether updates of a scatter are given as the one number that all of them are.
    is_splat: bool,
    /// How many threads a run may have.
    threads: Threads<'s>,
    /// The client, for its functions that custom calls find and for what it keeps of constants.
    client: &'s Client,
    /// The elements of the operands that are constants.
    constants: Vec<Option<View>>,
}

/// Where generated code goes that kernels call.
struct Codes<'c> {
    target: &'c Target<'c>,
    batch: &'c mut JitBatch,
    /// What is wrong with code that was made: a defect.
    error: Option<Error>,
    /// Why some of it runs on the tile machine although another back end was asked for.
    fallback: Option<Reason>,
}

impl Codes<'_> {
    /// Scalar code for `count` arguments at once, if the computation can be lowered.
    fn scalar(
        &mut self,
        module: &Verified<Module>,
        scalar: CompId,
        count: usize,
    ) -> Option<ScalarCode> {
        let code = ScalarCode::new(module, scalar, count, self.target, self.batch);
        let code = code.unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })?;
        self.fallback = self.fallback.or(code.fallback());
        Some(code)
    }
}

/// Generated code that folds elements of several arrays with accumulators.
struct Reducer {
    code: ScalarCode,
    arrays: usize,
}

impl Reducer {
    /// The code of a computation of accumulators and then elements, all of the types of the arrays.
    /// `None` if it has others, or cannot be lowered.
    fn new(
        module: &Verified<Module>,
        id: CompId,
        arrays: &[&ArrayShape],
        codes: &mut Codes<'_>,
    ) -> Option<Self> {
        let types = arrays.iter().map(|shape| shape.element());
        let params = module.computation(id).program_shape().params;
        let params = params.iter().map(|param| param.as_array().map(|shape| shape.element()));
        if !params.eq(types.clone().chain(types).map(Some)) {
            return None;
        }
        let code = codes.scalar(module, id, PAIRS)?;
        Some(Reducer { code, arrays: arrays.len() })
    }

    /// Runs a kernel that calls the code.
    fn run(&self, kernel: impl FnOnce(&FoldCode<'_>)) -> Result<(), Failure> {
        let failed = Failed::default();
        let fold = |count: usize, pairs: &Pairs<'_>, to: &mut [&mut [u8]]| {
            let operand = |param: usize| pairs(param % self.arrays)[param / self.arrays];
            failed.note(self.code.call(count, operand, to));
        };
        kernel(&fold);
        failed.outcome()
    }
}

/// The failure of generated code that a kernel calls from several threads.
#[derive(Default)]
struct Failed(Mutex<Option<Failure>>);

impl Failed {
    fn note(&self, outcome: Result<(), Failure>) {
        if let Err(failure) = outcome {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        }
    }

    fn outcome(self) -> Result<(), Failure> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A kernel and the memory it wants.
struct Bound {
    kernel: Arc<dyn SliceKernel>,
    /// Working memory, which it gets as its last output; none if zero.
    scratch_bytes: usize,
    /// How many operands, the first, become the first results by being changed in place; the kernel
    /// does not get them as inputs.
    updates: usize,
    /// If there is one operand to be changed in place: whether the kernel copies it itself where it must
    /// not be changed; it is an input then as others are.
    copies: bool,
    /// Whether it takes an empty slice for a result that nobody uses.
    skips_unused: bool,
}

/// Inputs, outputs, threads.
type Code = dyn Fn(&[&[u8]], &mut [&mut [u8]], Threads<'_>) -> Result<(), Failure> + Send + Sync;

/// A kernel made of a function.
struct Function {
    name: &'static str,
    own_memory: OwnMemory,
    code: Box<Code>,
}

impl SliceKernel for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn own_memory(&self) -> OwnMemory {
        self.own_memory
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        (self.code)(inputs, outputs, threads)
    }
}

/// Inputs, the output, what is done with complete rows of it, threads.
type RowCode = dyn Fn(&[&[u8]], &mut [u8], Option<Finish<'_>>, Threads<'_>) + Send + Sync;

/// A kernel made of a function that hands over rows of its only output when they are complete.
struct RowFunction {
    name: &'static str,
    own_memory: OwnMemory,
    /// The bytes of a row, if that is better than to change the output afterwards.
    row_bytes: Option<usize>,
    code: Box<RowCode>,
}

impl SliceKernel for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn own_memory(&self) -> OwnMemory {
        self.own_memory
    }

    fn run(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        (self.code)(inputs, outputs[0], None, threads);
        Ok(())
    }

    fn row_bytes(&self) -> Option<usize> {
        self.row_bytes
    }

    fn run_finished(
        &self,
        inputs: &[&[u8]],
        output: &mut [u8],
        finish: Finish<'_>,
        threads: Threads<'_>,
    ) -> Result<(), Failure> {
        (self.code)(inputs, output, Some(finish), threads);
        Ok(())
    }
}

impl Bound {
    /// A function that hands over rows of `row_bytes` when they are complete, and may have an operand `packed`.
    fn by_rows(
        name: &'static str,
        row_bytes: Option<usize>,
        packed: Option<Arc<PackedConstant>>,
        code: impl Fn(&[&[u8]], &mut [u8], Option<&PackedConstant>, Option<Finish<'_>>, Threads<'_>)
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let table_bytes = packed.as_ref().map_or(0, |constant| constant.bytes());
        let own_memory = OwnMemory { thread_bytes: 0, table_bytes };
        let code: Box<RowCode> = Box::new(move |inputs, output, finish, threads| {
            code(inputs, output, packed.as_deref(), finish, threads);
        });
        Bound::of(Arc::new(RowFunction { name, own_memory, row_bytes, code }))
    }

    /// A function that cannot fail, without working memory.
    fn new(
        name: &'static str,
        code: impl Fn(&[&[u8]], &mut [&mut [u8]], Threads<'_>) + Send + Sync + 'static,
    ) -> Self {
        Bound::fallible(name, move |inputs, outputs, threads| {
            code(inputs, outputs, threads);
            Ok(())
        })
    }

    /// A function without working memory.
    fn fallible(
        name: &'static str,
        code: impl Fn(&[&[u8]], &mut [&mut [u8]], Threads<'_>) -> Result<(), Failure>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let own_memory = OwnMemory::default();
        Bound::of(Arc::new(Function { name, own_memory, code: Box::new(code) }))
    }

    /// A function that cannot fail and takes memory of its own.
    fn with_own_memory(
        name: &'static str,
        own_memory: OwnMemory,
        code: impl Fn(&[&[u8]], &mut [&mut [u8]], Threads<'_>) + Send + Sync + 'static,
    ) -> Self {
        let code: Box<Code> = Box::new(move |inputs, outputs, threads| {
            code(inputs, outputs, threads);
            Ok(())
        });
        Bound::of(Arc::new(Function { name, own_memory, code }))
    }

    /// A kernel without working memory.
    fn of(kernel: Arc<dyn SliceKernel>) -> Self {
        Bound { kernel, scratch_bytes: 0, updates: 0, copies: false, skips_unused: false }
    }

    fn with_scratch(mut self, bytes: usize) -> Self {
        self.scratch_bytes = bytes;
        self
    }
}

/// The kernel for an instruction, if there is one.
fn bind(site: &InstrShapes<'_>, code: &mut Codes<'_>) -> Option<Bound> {
    match &site.instr.op {
        Op::Sort(op) => order::sort(site, op, code),
        Op::TopK(op) => order::top_k(site, op),
        Op::Gather(op) => indexed::gather(site, op),
        Op::Scatter(op) => indexed::scatter(site, op, code),
        Op::RngBitGenerator(op) => random::rng_bit_generator(site, op),
        Op::Cholesky(op) => linalg::cholesky(site, op),
        Op::TriangularSolve(op) => linalg::triangular_solve(site, op),
        Op::CustomCall(op) => lapack::custom_call(site, op),
        #[cfg(feature = "fft")]
        Op::Fft(op) => transform::fft(site, op),
        Op::Dot(op) => product::dot(site, op),
        Op::ReduceWindow(op) => window::reduce_window(site, op, code),
        Op::SelectAndScatter(op) => window::select_and_scatter(site, op, code),
        Op::Convolution(op) => convolution::convolution(site, op),
        Op::Transpose(op) => movement::transpose(site, op),
        Op::Broadcast(op) => movement::broadcast(site, op),
        Op::Reverse(op) => movement::reverse(site, op),
        Op::Slice(op) => movement::slice(site, op),
        Op::Concatenate(op) => movement::concatenate(site, op),
        Op::Pad(op) => movement::pad(site, op),
        Op::DynamicSlice(op) => movement::dynamic_slice(site, op),
        Op::DynamicUpdateSlice(_) => movement::dynamic_update_slice(site),
        _ => None,
    }
}

impl<'m> Planner<'m> {
    /// An instruction and the shapes around it; `None` if some are no arrays.
    fn site<'f>(&self, frame: &'f Frame<'m>, id: InstrId) -> Option<InstrShapes<'f>>
    where
        'm: 'f,
    {
        let (module, client) = (self.module, self.client);
        let instr = frame.computation.instr(id);
        let shape = |&operand: &InstrId| &frame.computation.instr(operand).shape;
        let operands = instr.operands.iter().flat_map(|o| shape(o).leaves());
        let operands = operands.map(|s| s.as_array()).collect::<Option<Vec<_>>>()?;
        let results = instr.shape.leaves().into_iter().map(|s| s.as_array());
        let results = results.collect::<Option<Vec<_>>>()?;
        Some(InstrShapes {
            module,
            instr,
            operands,
            used: (0..results.len()).map(|leaf| frame.leaves.is_leaf_used((id, leaf))).collect(),
            results,
            is_splat: arrays::splat_updates(frame.computation, id).is_some(),
            threads: self.threads,
            client,
            constants: frame.operands(id).into_iter().map(|operand| self.known(operand)).collect(),
        })
    }

    /// Appends a tuned kernel's step, if there is one for this instruction.
    pub(super) fn bound(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let Some(site) = self.site(frame, id) else { return Ok(None) };
        let (target, batch) = (self.target, &mut self.machine_code);
        let mut codes = Codes { target, batch, error: None, fallback: None };
        let bound = bind(&site, &mut codes);
        let Codes { error, fallback, .. } = codes;
        if let Some(error) = error {
            return Err(error.into());
        }
        let Some(bound) = bound else { return Ok(None) };
        if let Some(reason) = fallback {
            self.note(reason);
        }
        let Bound { kernel, scratch_bytes, updates, copies, skips_unused } = bound;

        let mut inputs = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let mut updated = Vec::with_capacity(updates);
        for (&value, origin) in inputs.iter().zip(&origins).take(updates) {
            let alone = origins.iter().filter(|&other| other == origin).count() == 1;
            let dies = alone && frame.leaves.dies_at(*origin, id);
            match self.in_place(value, frame.owner, dies) {
                Some(value) => updated.push(value),
                None if copies => break,
                None => updated.push(self.updated(value, frame.owner, false, steps)),
            }
        }
        inputs.drain(..updated.len());
        self.position += 1;
        let mut values = Vec::with_capacity(site.results.len());
        for (leaf, shape) in site.results.iter().enumerate() {
            let is_skipped = skips_unused && !site.used[leaf];
            let bytes = if is_skipped { 0 } else { shape.size_bytes() };
            values.push(match updated.get(leaf) {
                Some(&storage) => storage,
                None => self.storage(bytes, frame.owner),
            });
        }
        let mut outputs = values.clone();
        if scratch_bytes > 0 {
            outputs.push(self.storage(scratch_bytes, frame.owner));
        }
        let touches: Vec<StorageId> = inputs.iter().chain(&outputs).copied().collect();
        self.push(steps, Action::Kernel { kernel, inputs, outputs }, &touches);
        Ok(Some(values))
    }

    /// A storage that holds `value` and may be written: its own, if it dies here and the frame owns
    /// it, else a copy.
    pub(super) fn updated(
        &mut self,
        value: StorageId,
        owner: Owner,
        dies: bool,
        steps: &mut Vec<Step>,
    ) -> StorageId {
        if let Some(value) = self.in_place(value, owner, dies) {
            return value;
        }
        let value = self.find(value);
        let copy = self.storage(self.storages[value.index()].bytes, owner);
        self.copy(value, copy, steps);
        copy
    }

    /// The elements of a constant.
    fn known(&self, value: StorageId) -> Option<View> {
        match self.storages[self.find(value).index()].source {
            Source::Constant(n) => self.constants.get(n).cloned(),
            Source::Argument(_) | Source::Nothing => None,
        }
    }

    /// The storage of `value`, if it may be written: if it dies here and the frame owns it.
    fn in_place(&self, value: StorageId, owner: Owner, dies: bool) -> Option<StorageId> {
        let value = self.find(value);
        (dies && self.storages[value.index()].owner == owner).then_some(value)
    }
}
