//! Scatters as kernels, in a loop that may become one.

use helio_codegen::elementwise;
use helio_codegen::scatter::Scatter;
use helio_ir::{ArrayShape, Computation, Instr, InstrId, Module, Op};

use crate::plan::{Frame, Planned, Planner, Step, StorageId, arrays};

/// The scatter that an instruction is, if it is into one array.
fn scatter_of<'m>(
    module: &'m Module,
    computation: &'m Computation,
    instr: &'m Instr,
    is_splat: bool,
) -> Option<Scatter<'m>> {
    let Op::Scatter(op) = &instr.op else { return None };
    let &[operand, indices, updates] = &instr.operands[..] else { return None };
    let array =
        |id: InstrId| computation.instr(id).shape.as_array().filter(|array| array.is_static());
    Some(Scatter {
        module,
        to_apply: op.to_apply,
        dims: &op.dims,
        operand: array(operand)?,
        indices: array(indices)?,
        updates: array(updates)?,
        is_splat,
    })
}

/// The elements that a scatter computes; `None` if it has no kernel.
pub(super) fn updates(module: &Module, computation: &Computation, instr: &Instr) -> Option<usize> {
    let scatter = scatter_of(module, computation, instr, false)?;
    scatter.is_supported().then(|| scatter.updates.element_count())
}

impl<'m> Planner<'m> {
    /// Appends the kernel of a scatter, if it has one.
    pub(in crate::plan) fn scattered(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let (module, instr) = (self.module, frame.computation.instr(id));
        let is_splat = arrays::splat_updates(frame.computation, id).is_some();
        let Some(scatter) = scatter_of(module, frame.computation, instr, is_splat) else {
            return Ok(None);
        };
        let is_wide =
            |array: &ArrayShape| elementwise::lane_bytes(array.element()).is_some_and(|n| n == 8);
        let mut vectors = self.vectors();
        vectors.wide |= is_wide(scatter.operand) || is_wide(scatter.indices);
        let Some((kernel, cost)) = scatter.kernel(vectors.lanes()) else { return Ok(None) };
        let operands = frame.operands(id);
        let &[array, indices, updates] = &operands[..] else { return Ok(None) };
        let origins = frame.leaves.operand_origins(frame.computation, id);
        let alone = origins.iter().filter(|&&origin| origin == origins[0]).count() == 1;
        let dies = alone && frame.leaves.dies_at(origins[0], id);
        let array = self.updated(array, frame.owner, dies, steps);
        self.position += 1;
        let slots = vec![indices, updates, array];
        let action = self.kernel_step(&kernel, cost, slots.clone())?;
        self.push(steps, action, &slots);
        Ok(Some(vec![array]))
    }
}
