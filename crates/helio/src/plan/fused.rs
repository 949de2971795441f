//! Fusions: kernels of generated code.

use helio_codegen::lower::{Arg, Lowered, Stage, lower};
use helio_ir::{InstrId, ops};
use helio_runtime::kernels::STREAM_BYTES;
use helio_runtime::program::Step;

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
        let Ok(lowered) = lower(self.module, op.calls, self.target.vectors()) else {
            return Ok(None);
        };
        let Lowered { temps, stages, in_place, updates } = lowered;
        let operands = frame.operands(id);
        let origins = frame.leaves.operand_origins(frame.computation, id);
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
            for &(operand, leaf) in &in_place {
                let value = self.find(operands[operand]);
                let is_taken = results.contains(&Some(value));
                let owned = self.storages[value.index()].frame == frame.number;
                if results[leaf].is_none() && !is_taken && owned && dies(operand) {
                    results[leaf] = Some(value);
                }
            }
        }
        self.position += 1;
        let fresh = self.fresh(frame.number, &frame.computation.instr(id).shape)?;
        let results: Vec<StorageId> =
            results.into_iter().zip(fresh).map(|(given, fresh)| given.unwrap_or(fresh)).collect();
        let temps: Vec<StorageId> =
            temps.into_iter().map(|bytes| self.storage(bytes, frame.number)).collect();
        for Stage { mut kernel, args, cost } in stages {
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
        Ok(Some(results))
    }
}
