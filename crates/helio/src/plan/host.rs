//! Steps that call the host: functions of the user, exchange with the host's queues and with other
//! participants, and what the interpreter performs for want of native code.

use std::sync::{Arc, OnceLock};
use std::thread::Scope;

use helio_eval::{
    CallInfo, Context, DeepStack, Evaluator, Meter, call_depths, needs_deep_stack, perform,
};
use helio_ir::ops::{Effect, Family};
use helio_ir::{
    Array, CompId, Computation, Error, Instr, InstrId, Literal, Module, Op, Result, Shape,
};
use helio_runtime::Memory;
use helio_runtime::program::{Failure, Host};

use super::collective::{Collective, Seat, Surroundings};
use super::{Action, Frame, Planned, Planner, Step, StorageId, arrays};
use crate::interpreted::Reason;

/// What a host step does, resolved as far as it can be before the run.
#[derive(Debug)]
pub(crate) enum HostCall {
    /// The interpreter performs an instruction on literals.
    Interpret {
        /// Which.
        site: Site,
        /// Whether what it calls takes more stack than the run's thread may have left.
        is_deep: bool,
    },
    /// An exchange with other participants, on the bytes of slots.
    Collective(Box<Collective>),
    /// The number of this replica.
    ReplicaId,
    /// The number of this partition.
    PartitionId,
    /// A function of the user runs, on the memory of its operands and results; without one, the
    /// interpreter knows what some targets mean. The operands that share memory with a result are in
    /// the result when the call begins, and not among the inputs.
    CustomCall {
        /// The instruction.
        site: Site,
        /// What the function is told.
        info: Box<CallInfo>,
    },
    /// A value goes to, or comes from, a queue of the host.
    Feed(Site),
}

/// An instruction of the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    computation: CompId,
    instr: InstrId,
}

impl Site {
    fn find(self, module: &Module) -> (&Computation, &Instr) {
        let computation = module.computation(self.computation);
        (computation, computation.instr(self.instr))
    }
}

/// The host calls of a program, by number.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<HostCall>,
    /// For each computation, how deep calls nest in it; made when it is first asked for.
    depths: OnceLock<Vec<usize>>,
}

impl Calls {
    /// Adds the call of an instruction that has no native code; gives its number.
    fn push(&mut self, module: &Module, site: Site) -> Planned<usize> {
        let op = &site.find(module).1.op;
        let depths = self.depths.get_or_init(|| call_depths(module));
        let call = match op.effect() {
            Effect::Foreign => {
                let info = CallInfo::of(module, site.computation, site.instr)?;
                HostCall::CustomCall { site, info: Box::new(info) }
            }
            _ if needs_deep_stack(op, depths) => HostCall::Interpret { site, is_deep: true },
            Effect::Exchange if op.family() == Family::Host => HostCall::Feed(site),
            Effect::Exchange | Effect::None | Effect::Draw => {
                HostCall::Interpret { site, is_deep: false }
            }
        };
        Ok(self.add(call))
    }

    /// Adds a call; gives its number.
    fn add(&mut self, call: HostCall) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Whether some of them are exchanges with other participants.
    fn has_exchange(&self) -> bool {
        self.calls.iter().any(|call| matches!(call, HostCall::Collective(_)))
    }

    /// Whether some of them need a thread with a deep stack.
    pub(crate) fn are_deep(&self) -> bool {
        self.calls.iter().any(|call| matches!(call, HostCall::Interpret { is_deep: true, .. }))
    }
}

impl<'m> Planner<'m> {
    /// A step that calls the host.
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
        let outputs = self.fresh(frame.owner, &frame.computation.instr(id).shape)?;
        self.at = (frame.id, id);
        self.host_step(inputs, outputs, steps)
    }

    /// A step that calls the host for the instruction that is being planned.
    pub(super) fn host_step(
        &mut self,
        inputs: Vec<StorageId>,
        outputs: Vec<StorageId>,
        steps: &mut Vec<Step>,
    ) -> Planned<Vec<StorageId>> {
        let (computation, instr) = self.at;
        let op = &self.module.computation(computation).instr(instr).op;
        let native = match (op, self.collective(self.at)?) {
            (_, Some(collective)) => Some(HostCall::Collective(Box::new(collective))),
            (Op::ReplicaId(_), None) => Some(HostCall::ReplicaId),
            (Op::PartitionId(_), None) => Some(HostCall::PartitionId),
            _ => None,
        };
        let call = match native {
            Some(call) => self.calls.add(call),
            None => {
                self.note(Reason::of(op, self.target.is_level_zero));
                self.calls.push(self.module, Site { computation, instr })?
            }
        };
        let touches: Vec<StorageId> = inputs.iter().chain(&outputs).copied().collect();
        let action = Action::Host { call, inputs, outputs: outputs.clone() };
        self.push(steps, action, &touches);
        Ok(outputs)
    }
}

/// Who performs the host calls of one run.
pub(crate) struct Caller<'a, 'e> {
    module: &'a Module,
    calls: &'a Calls,
    cx: &'a Context,
    meter: &'a Meter,
    memory: &'a Memory,
    evaluator: Evaluator<'a>,
    /// Where a thread for what needs a deep stack may run; there is one if anything does.
    scope: Option<&'a Scope<'a, 'e>>,
    deep: Option<DeepStack>,
    /// For each call, the participant's place at it if it is a collective.
    seats: Vec<Option<Seat>>,
}

impl<'a, 'e> Caller<'a, 'e> {
    /// For a run that is counted on `meter`.
    pub(crate) fn new(
        module: &'a Module,
        calls: &'a Calls,
        cx: &'a Context,
        meter: &'a Arc<Meter>,
        memory: &'a Memory,
        scope: Option<&'a Scope<'a, 'e>>,
    ) -> Self {
        let evaluator = Evaluator::with_meter(module, cx, meter.clone());
        let mut seats = Vec::new();
        if calls.has_exchange() {
            seats.resize_with(calls.calls.len(), || None);
        }
        Caller { module, calls, cx, meter, memory, evaluator, scope, deep: None, seats }
    }

    /// Has the interpreter perform an instruction, on this thread or on that with the deep stack.
    fn interpret(
        &mut self,
        site: Site,
        is_deep: bool,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let (instrs, instr) = site.find(self.module);
        let mut inputs = inputs.iter();
        let operands = instr.operands.iter();
        let operands = operands.map(|&operand| literal(&instrs.instr(operand).shape, &mut inputs));
        let operands = operands.collect::<Result<Vec<Literal>>>()?;
        let Site { computation, instr } = site;
        let result = if is_deep {
            let deep = match &mut self.deep {
                Some(deep) => deep,
                none => {
                    let scope =
                        self.scope.ok_or_else(|| Error::internal("no room for a thread"))?;
                    none.insert(DeepStack::new(scope, &self.evaluator)?)
                }
            };
            deep.instruction(&self.evaluator, (computation, instr), operands)
        } else {
            self.evaluator.instruction(computation, instr, operands)
        };
        write(&result?, outputs)
    }

    /// Calls a function of the user.
    fn custom_call(
        &mut self,
        site: Site,
        info: &CallInfo,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let mut inputs = inputs.iter().copied();
        let count: usize = info.operands.iter().map(|shape| shape.leaves().len()).sum();
        let own = |n| if info.is_shared(n) { Some(&[][..]) } else { inputs.next() };
        let operands: Option<Vec<&[u8]>> = (0..count).map(own).collect();
        let mut operands = operands.ok_or_else(|| Error::internal("an operand is missing"))?;
        let Some(function) = self.cx.custom_calls.find(&info.target) else {
            // The interpreter wants operands and results apart.
            let copy = |&(result, operand): &(usize, usize)| (operand, outputs[result].to_vec());
            let copies: Vec<(usize, Vec<u8>)> = info.aliases.iter().map(copy).collect();
            copies.iter().for_each(|(operand, copy)| operands[*operand] = copy);
            return self.interpret(site, false, &operands, outputs);
        };
        let outcome = perform(&*function, info, self.cx, self.meter, &operands, outputs);
        outcome.map_err(|error| self.module.locate(error, site.find(self.module).1))
    }
}

impl Host for Caller<'_, '_> {
    fn call(
        &mut self,
        call: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let calls = self.calls;
        let number = |number: usize| (number as u32).to_ne_bytes();
        match &calls.calls[call] {
            &HostCall::Interpret { site, is_deep } => {
                self.interpret(site, is_deep, inputs, outputs)?;
            }
            &HostCall::Feed(site) => self.interpret(site, false, inputs, outputs)?,
            HostCall::Collective(collective) => {
                let Caller { module, cx, meter, memory, .. } = *self;
                let run = Surroundings { module, cx, meter, memory };
                collective.perform(&run, &mut self.seats[call], inputs, outputs)?;
            }
            HostCall::ReplicaId => outputs[0].copy_from_slice(&number(self.cx.me.replica)),
            HostCall::PartitionId => outputs[0].copy_from_slice(&number(self.cx.me.partition)),
            HostCall::CustomCall { site, info } => {
                self.custom_call(*site, info, inputs, outputs)?
            }
        }
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
