//! The steps of a fusion: kernels of generated code, equal fusions sharing theirs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::iter::zip;
use std::sync::Arc;

use helio_codegen::lower::{Arg, Lowered, Stage, lower};
use helio_ir::{CompId, InstrId, Shape, ops};
use helio_runtime::kernels::STREAM_BYTES;
use helio_runtime::program::{Finished, RawKernel};
use smallvec::SmallVec;

use super::ahead::Ready;
use super::arrays::ArrayId;
use super::target::Vectors;
use super::{Action, Frame, Planned, Planner, Step, StorageId};

/// What has been made of fused computations: several fusions may have the same.
#[derive(Default)]
pub(super) struct Fused {
    /// The kernels; `None` if it has none.
    pub(super) lowered: HashMap<Form, Option<Arc<Lowered>>>,
    /// Code that has been made ahead, with the vectors of kernels that are by themselves.
    pub(super) ready: Ready,
    /// The code of stages.
    code: HashMap<StageKey, Arc<dyn RawKernel>>,
}

/// A fused computation, and the vectors of its kernels.
type Form = (CompId, Vectors);

/// A stage of a fused computation, by its number, and which of its parameters are streamed.
type StageKey = (Form, usize, Vec<bool>);

/// The most bytes that code may have to do at once to be run on rows that are complete, if these are shorter:
/// a small part of the rows that a kernel gives away at once.
const MAX_PIECE_BYTES: usize = 4096;

/// The most steps between a kernel and code that finishes its rows, and the bytes that each of them may write: they take
/// next to no time, and leave what the kernel reads in cache.
const MAX_BETWEEN: usize = 8;
const SMALL_BYTES: usize = 16 << 10;

/// For each parameter of a stage, whether it may be stored past the caches: a result too large for them.
pub(super) fn may_stream(stage: &Stage) -> impl Iterator<Item = bool> {
    zip(&stage.kernel.params, &stage.args).map(|(param, arg)| {
        matches!(arg, Arg::Result(_)) && param.write && param.bytes >= STREAM_BYTES
    })
}

impl<'m> Planner<'m> {
    /// Appends the kernels of a fusion, if it can be lowered to kernels.
    pub(super) fn fused(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        op: &ops::Fusion,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let form = (op.calls, self.vectors());
        let lowered = match self.fused.lowered.get(&form) {
            Some(known) => known.clone(),
            None => {
                let count = self.module.computation(op.calls).instrs().len();
                self.watch.count_steps(count)?;
                let lowered = lower(self.module, op.calls, self.target.lowering(form.1));
                let lowered = lowered.ok().map(Arc::new);
                self.fused.lowered.insert(form, lowered.clone());
                lowered
            }
        };
        let Some(lowered) = lowered else { return Ok(None) };
        let operands = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        self.kernels(frame, id, (&lowered, Some(form)), (operands, origins), steps).map(Some)
    }

    /// Appends the kernels that an instruction has been lowered to, and what of, if others may be the
    /// same. `operands` are theirs, with where they come from.
    pub(super) fn kernels(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        (lowered, form): (&Lowered, Option<Form>),
        operands: (Vec<StorageId>, Vec<ArrayId>),
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let Lowered { temps, stages, in_place, updates } = lowered;
        let shared = self.results_in_place(frame, id, lowered, (&operands.0, &operands.1), steps);
        let operands = operands.0;
        let shares = |&&(operand, leaf): &&(usize, usize)| {
            shared[leaf].is_some_and(|result| result == self.find(operands[operand]))
        };
        let pairs: Vec<_> = in_place.iter().chain(updates).filter(shares).copied().collect();
        self.proofs.check_lowered(lowered, &pairs)?;
        self.position += 1;
        let shapes = frame.computation.instr(id).shape.leaves();
        let given = |(given, shape): (Option<StorageId>, &Shape)| match given {
            Some(given) => Ok(given),
            None => Ok(self.storage(self.bytes(shape)?, frame.owner)),
        };
        let results = shared.into_iter().zip(shapes).map(given);
        let results = results.collect::<Planned<Vec<StorageId>>>()?;
        let temps: Vec<StorageId> =
            temps.iter().map(|&bytes| self.storage(bytes, frame.owner)).collect();
        for (number, stage) in stages.iter().enumerate() {
            // What shares its buffer with an operand is in the cache.
            let streams = zip(may_stream(stage), &stage.args).map(|(may, arg)| {
                may && matches!(arg, Arg::Result(leaf) if !operands.contains(&results[*leaf]))
            });
            let streams: Vec<bool> = streams.collect();
            let slots = stage.args.iter().map(|arg| match *arg {
                Arg::Operand(i) => operands[i],
                Arg::Result(leaf) => results[leaf],
                Arg::Temp(i) => temps[i],
            });
            let slots: Vec<StorageId> = slots.collect();
            let action = self.stage(stage, form.map(|form| (form, number)), streams, &slots)?;
            self.push(steps, action, &slots);
        }
        self.join(steps);
        Ok(results)
    }

    /// The results of a fusion that take over the storage of an operand: one that ends here, and is
    /// passed only once, else what has to be updated is copied.
    fn results_in_place(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        lowered: &Lowered,
        (operands, origins): (&[StorageId], &[ArrayId]),
        steps: &mut Vec<Step>,
    ) -> Vec<Option<StorageId>> {
        let dies = |operand: usize| {
            let others = origins.iter().filter(|&&origin| origin == origins[operand]).count();
            others == 1 && frame.leaves.dies_at(origins[operand], id)
        };
        let leaves = frame.computation.instr(id).shape.leaves().len();
        let mut results: Vec<Option<StorageId>> = vec![None; leaves];
        for &(operand, leaf) in &lowered.updates {
            let value = operands[operand];
            results[leaf] = Some(self.updated(value, frame.owner, dies(operand), steps));
        }
        if self.target.backend.shares_buffers() {
            // What the step before has made is best changed in place: see `join`.
            let made = |&(operand, _): &(usize, usize)| {
                matches!(steps.last().map(|step| &step.action), Some(Action::Kernel { outputs, .. })
                    if outputs.contains(&operands[operand]))
            };
            let (first, others): (Vec<_>, Vec<_>) =
                lowered.in_place.iter().copied().partition(made);
            for (operand, leaf) in first.into_iter().chain(others) {
                let value = self.find(operands[operand]);
                let is_taken = results.contains(&Some(value));
                let owned = self.storages[value.index()].owner == frame.owner;
                if results[leaf].is_none() && !is_taken && owned && dies(operand) {
                    results[leaf] = Some(value);
                }
            }
        }
        results
    }

    /// What runs a stage of a fusion, some of whose parameters are streamed; `of` says which stage it is
    /// of which computation, if others may have the same.
    fn stage(
        &mut self,
        stage: &Stage,
        of: Option<(Form, usize)>,
        streams: Vec<bool>,
        slots: &[StorageId],
    ) -> Planned<Action> {
        // In a loop that may become one kernel, each has code of its own.
        let of = of.filter(|_| self.compact.is_none());
        let key = of.map(|(form, number)| (form, number, streams.clone()));
        if let Some(kernel) = key.as_ref().and_then(|key| self.fused.code.get(key)) {
            return Ok(Action::Raw { kernel: Arc::clone(kernel), slots: slots.to_vec() });
        }
        if let Some(((id, vectors), number)) = of
            && vectors == self.target.vectors()
            && !streams.contains(&true)
            && let Some(made) = self.fused.ready.remove(&(id, number))
        {
            let action = self.code_step(made?, &stage.kernel, stage.cost, slots.to_vec())?;
            self.keep_code(key, &action);
            return Ok(action);
        }
        let mut kernel = Cow::Borrowed(&stage.kernel);
        for (param, &stream) in streams.iter().enumerate() {
            if stage.kernel.params[param].stream != stream {
                kernel.to_mut().set_stream(param, stream);
            }
        }
        let action = self.kernel_step(&kernel, stage.cost, slots.to_vec())?;
        self.keep_code(key, &action);
        Ok(action)
    }

    /// Keeps the code of a stage for others that are the same.
    fn keep_code(&mut self, key: Option<StageKey>, action: &Action) {
        if let (Some(key), Action::Raw { kernel, .. }) = (key, action) {
            self.fused.code.insert(key, Arc::clone(kernel));
        }
    }

    /// Makes one step of the last one and a kernel before it, if the last is code that changes the kernel's
    /// only output: its rows are still in cache then. Between the two there may be small steps that have
    /// nothing to do with the kernel: they come first then.
    fn join(&mut self, steps: &mut Vec<Step>) {
        let Some((last, before)) = steps.split_last() else { return };
        let Action::Raw { kernel: code, slots } = &last.action else { return };
        let Some(unit_bytes) = code.signature().unit_bytes else { return };
        let [output] = self.written(code, slots)[..] else { return };
        let is_between = |step: &Step| match &step.action {
            Action::Raw { kernel, slots } => {
                let bytes = |id: &StorageId| self.storages[id.index()].bytes;
                slots.iter().all(|&id| self.are_apart(id, output))
                    && self.written(kernel, slots).iter().map(bytes).sum::<usize>() <= SMALL_BYTES
            }
            _ => false,
        };
        let near = before.iter().rev().take(MAX_BETWEEN + 1);
        let between = near.take_while(|&step| is_between(step)).count();
        let Some(at) = before.len().checked_sub(between + 1) else { return };
        let Action::Kernel { kernel, inputs, outputs } = &before[at].action else { return };
        let keeps_inputs = before[at + 1..].iter().all(|step| match &step.action {
            Action::Raw { kernel, slots } => {
                let written = self.written(kernel, slots);
                inputs.iter().all(|&input| written.iter().all(|&id| self.are_apart(id, input)))
            }
            _ => false,
        });
        let Some(row_bytes) = kernel.row_bytes().filter(|&bytes| bytes > 0) else { return };
        let grain = usize::try_from(code.signature().grain).unwrap_or(usize::MAX);
        let piece_bytes = grain.saturating_mul(unit_bytes);
        // (What is cut by the ends of blocks of rows waits until all of them are complete.)
        let is_small = piece_bytes > 0 && piece_bytes <= row_bytes.max(MAX_PIECE_BYTES);
        if outputs.len() != 1 || self.find(outputs[0]) != output || !is_small || !keeps_inputs {
            return;
        }
        let finished = Finished {
            kernel: Arc::clone(kernel),
            inputs: inputs.clone(),
            output: outputs[0],
            code: Arc::clone(code),
            slots: slots.clone(),
        };
        let (first, second) = (before[at].id, last.id);
        // The memory of what the kernel reads is in use until now.
        finished.inputs.iter().for_each(|&input| self.touch(input));
        let action = Action::Finished(Box::new(finished));
        let step = self.steps.join(action, first, second);
        steps.pop();
        steps.remove(at);
        steps.push(step);
    }

    /// What code writes of its slots.
    fn written(&self, code: &Arc<dyn RawKernel>, slots: &[StorageId]) -> SmallVec<[StorageId; 4]> {
        let written = zip(slots, &code.signature().params).filter(|(_, param)| param.write);
        written.map(|(&id, _)| self.find(id)).collect()
    }

    /// Whether two storages are neither the same nor parts of one.
    fn are_apart(&self, one: StorageId, other: StorageId) -> bool {
        let whole = |id| {
            let mut id = self.find(id);
            while let Some(of) = self.storages[id.index()].part_of {
                id = self.find(of);
            }
            id
        };
        whole(one) != whole(other)
    }
}
