//! Steps that the interpreter performs, one instruction each.

use helio_eval::Evaluator;
use helio_ir::{Array, CompId, Error, InstrId, Literal, Module, Result, Shape};
use helio_runtime::program::{Action, Failure, Host, Step};

use super::{Frame, Planned, Planner, StorageId, arrays};
use crate::interpreted::Reason;

/// The instructions that the interpreter performs, by the number of the call.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<(CompId, InstrId)>);

impl<'m> Planner<'m> {
    /// A step that asks the interpreter.
    pub(super) fn host(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let mut inputs = frame.operands(id);
        if let Some((broadcast, _)) = arrays::splat_updates(frame.computation, id) {
            // The interpreter wants them all.
            inputs.truncate(inputs.len() - 1);
            inputs.extend(self.emit(frame, broadcast, steps)?);
        }
        self.position += 1;
        let outputs = self.fresh(frame.number, &frame.computation.instr(id).shape)?;
        let op = &frame.computation.instr(id).op;
        self.at = (frame.id, id);
        self.note(Reason::of(op, self.target.is_level_zero));
        self.calls.0.push(self.at);
        let call = self.calls.0.len() - 1;
        let touches: Vec<StorageId> = inputs.iter().chain(&outputs).copied().collect();
        let action = Action::Host { call, inputs, outputs: outputs.clone() };
        self.push(steps, action, &touches);
        Ok(outputs)
    }
}

/// The interpreter as a program's host.
pub(crate) struct Interpreter<'a> {
    pub(crate) module: &'a Module,
    pub(crate) calls: &'a Calls,
    pub(crate) evaluator: Evaluator<'a>,
}

impl Host for Interpreter<'_> {
    fn call(
        &mut self,
        call: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let (computation, id) = self.calls.0[call];
        let instrs = self.module.computation(computation);
        let instr = instrs.instr(id);
        let mut inputs = inputs.iter();
        let operands = instr.operands.iter().map(|&o| literal(&instrs.instr(o).shape, &mut inputs));
        let operands = operands.collect::<Result<Vec<Literal>>>()?;
        let result = self.evaluator.instruction(computation, id, operands)?;
        write(&result, outputs)?;
        Ok(())
    }
}

/// A value of this shape from the bytes of its arrays.
pub(crate) fn literal<'b>(
    shape: &Shape,
    leaves: &mut impl Iterator<Item = &'b &'b [u8]>,
) -> Result<Literal> {
    match shape {
        Shape::Tuple(elements) => {
            let elements = elements.iter().map(|shape| literal(shape, leaves));
            elements.collect::<Result<_>>().map(Literal::Tuple)
        }
        Shape::Array(array) => {
            let bytes = leaves.next().ok_or_else(|| Error::internal("an array is missing"))?;
            Array::from_bytes(array.clone(), bytes).map(Literal::Array)
        }
        Shape::Token | Shape::Opaque => {
            leaves.next();
            Ok(Literal::Token)
        }
    }
}

/// Writes the bytes of all arrays of a value.
fn write(value: &Literal, leaves: &mut [&mut [u8]]) -> Result<()> {
    for (leaf, bytes) in value.leaves().into_iter().zip(leaves) {
        if let Literal::Array(array) = leaf {
            array.write_to(bytes)?;
        }
    }
    Ok(())
}
