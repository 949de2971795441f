//! Fusions: kernels of generated code.

use std::sync::Arc;

use helio_codegen::lower::{Arg, Lowered, Stage, lower};
use helio_ir::{InstrId, Shape, ops};
use helio_runtime::kernels::STREAM_BYTES;
use helio_runtime::program::{Finished, Step};

use super::arrays::Origin;
use super::{Frame, Planned, Planner, StorageId};

impl<'m> Planner<'m> {
    /// Appends the kernels of a fusion, if it can be lowered to kernels.
    pub(super) fn fused(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        op: &ops::Fusion,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let target = self.target.vectors(self.compact == Some(true));
        let Ok(lowered) = lower(self.module, op.calls, target) else {
            return Ok(None);
        };
        let operands = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
        self.kernels(frame, id, lowered, (operands, origins), steps).map(Some)
    }

    /// Appends the kernels that an instruction has been lowered to. `operands` are theirs, with
    /// where they come from.
    pub(super) fn kernels(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        lowered: Lowered,
        operands: (Vec<StorageId>, Vec<Origin>),
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let Lowered { temps, stages, in_place, updates } = lowered;
        let (operands, origins) = operands;
        // An operand that ends here, and is passed only once, may give its storage away.
        let dies = |operand: usize| {
            let others = origins.iter().filter(|&&origin| origin == origins[operand]).count();
            others == 1 && frame.leaves.dies_at(origins[operand], id)
        };
        let mut results: Vec<Option<StorageId>> =
            vec![None; frame.computation.instr(id).shape.leaves().len()];
        for &(operand, leaf) in &updates {
            let value = operands[operand];
            results[leaf] = Some(self.updated(value, frame.number, dies(operand), steps));
        }
        if self.target.in_place() {
            // What the step before has made is best changed in place: see `join`.
            let made = |&(operand, _): &(usize, usize)| {
                matches!(steps.last(), Some(Step::Kernel { outputs, .. })
                    if outputs.contains(&operands[operand]))
            };
            let (first, others): (Vec<_>, Vec<_>) = in_place.into_iter().partition(made);
            for (operand, leaf) in first.into_iter().chain(others) {
                let value = self.find(operands[operand]);
                let is_taken = results.contains(&Some(value));
                let owned = self.storages[value.index()].frame == frame.number;
                if results[leaf].is_none() && !is_taken && owned && dies(operand) {
                    results[leaf] = Some(value);
                }
            }
        }
        self.position += 1;
        let shapes = frame.computation.instr(id).shape.leaves();
        let given = |(given, shape): (Option<StorageId>, &Shape)| match given {
            Some(given) => Ok(given),
            None => Ok(self.storage(self.bytes(shape)?, frame.number)),
        };
        let results = results.into_iter().zip(shapes).map(given);
        let results = results.collect::<Planned<Vec<StorageId>>>()?;
        let temps: Vec<StorageId> =
            temps.into_iter().map(|bytes| self.storage(bytes, frame.number)).collect();
        let run = match &stages[..] {
            [stage] => stage.run,
            _ => None,
        };
        for Stage { mut kernel, args, cost, .. } in stages {
            for (param, arg) in kernel.params.iter_mut().zip(&args) {
                // What shares its buffer with an operand is in the cache.
                param.stream = matches!(arg, Arg::Result(leaf) if !operands.contains(&results[*leaf]))
                    && param.bytes >= STREAM_BYTES;
            }
            let slots = args.iter().map(|arg| match *arg {
                Arg::Operand(i) => operands[i],
                Arg::Result(leaf) => results[leaf],
                Arg::Temp(i) => temps[i],
            });
            let slots: Vec<StorageId> = slots.collect();
            let step = self.kernel_step(kernel, cost, slots.clone())?;
            self.push(steps, step, &slots);
        }
        if let (Some(run), Some(array)) = (run, frame.computation.instr(id).shape.as_array()) {
            self.join(steps, run * array.element().size_bytes());
        }
        Ok(results)
    }

    /// Makes one step of the last two, if the second is code that changes the only output of the
    /// first, so many bytes in a unit, and whole units are rows: they are still in cache then.
    fn join(&self, steps: &mut Vec<Step>, unit_bytes: usize) {
        let [.., Step::Kernel { kernel, inputs, outputs }, Step::Raw { kernel: code, slots }] =
            &steps[..]
        else {
            return;
        };
        let &[output] = &outputs[..] else { return };
        let written = slots.iter().zip(&code.signature().params).filter(|(_, param)| param.write);
        let in_place = written.into_iter().all(|(&id, _)| self.find(id) == self.find(output));
        let Some(row_bytes) = kernel.row_bytes().filter(|&bytes| bytes > 0) else { return };
        let piece_bytes =
            usize::try_from(code.signature().grain).map_or(0, |grain| grain * unit_bytes);
        if !in_place || piece_bytes == 0 || !row_bytes.is_multiple_of(piece_bytes) {
            return;
        }
        let step = Finished {
            kernel: Arc::clone(kernel),
            inputs: inputs.clone(),
            output,
            code: Arc::clone(code),
            slots: slots.clone(),
            unit_bytes,
        };
        steps.truncate(steps.len() - 2);
        steps.push(Step::Finished(Box::new(step)));
    }
}
