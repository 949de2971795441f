//! Steps that call the host: functions of the user, exchange with the host's queues and with other
//! participants, and what the interpreter performs for want of native code.

use std::sync::{Arc, OnceLock};
use std::thread::Scope;

use helio_eval::{
    Assertion, CallInfo, Context, DeepStack, Evaluator, Meter, Transfer, Work, call_depths,
    needs_deep_stack, perform, services::Workers,
};
use helio_ir::ops::{Effect, Yield};
use helio_ir::{Computation, Error, Instr, InstrAt, InstrId, Literal, Module, Op, Result, Shape};
use helio_runtime::program::{Failure, HostCalls};
use helio_runtime::{FloatMode, Memory, Threads};

use super::collective::{Collective, Seat, Surroundings};
use super::{Action, Frame, Planned, Planner, Step, StorageId, arrays};
use crate::interpreted::Reason;

/// What a host step does, resolved as far as it can be before the run.
#[derive(Debug)]
pub(crate) enum HostCall {
    /// The interpreter performs an instruction on literals.
    Interpret {
        /// Which.
        at: InstrAt,
        /// Whether what it calls takes more stack than the run's thread may have left.
        is_deep: bool,
    },
    /// An exchange with other participants, on the bytes of slots.
    Collective(Box<Collective>),
    /// The number of this replica.
    ReplicaId,
    /// The number of this partition.
    PartitionId,
    /// A condition on sizes that the compiler could not prove.
    Assert {
        /// The instruction.
        at: InstrAt,
        /// The condition.
        assertion: Assertion,
    },
    /// A function of the user runs, on the memory of its operands and results; without one, the
    /// interpreter knows what some targets mean. The operands that share memory with a result are in
    /// the result when the call begins, and not among the inputs.
    CustomCall {
        /// The instruction.
        at: InstrAt,
        /// What the function is told.
        info: Box<CallInfo>,
    },
    /// A value goes to, or comes from, the host or a channel.
    Transfer(Box<Transfer>),
}

/// An instruction and the computation that it stands in.
fn find(module: &Module, at: InstrAt) -> (&Computation, &Instr) {
    let computation = module.computation(at.0);
    (computation, computation.instr(at.1))
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
    fn push(&mut self, module: &Module, at: InstrAt) -> Planned<usize> {
        let op = &find(module, at).1.op;
        let depths = self.depths.get_or_init(|| call_depths(module));
        let call = match op.effect() {
            Effect::Foreign => {
                let info = CallInfo::of(module, at.0, at.1)?;
                HostCall::CustomCall { at, info: Box::new(info) }
            }
            _ if needs_deep_stack(op, depths) => HostCall::Interpret { at, is_deep: true },
            Effect::Exchange | Effect::None | Effect::Draw => {
                HostCall::Interpret { at, is_deep: false }
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

/// Whether an instruction does nothing but give arrays without elements.
fn gives_nothing(instr: &Instr) -> bool {
    let is_empty = |shape: &Shape| {
        shape.as_array().is_some_and(|array| array.is_static() && array.element_count() == 0)
    };
    instr.op.effect() == Effect::None
        && instr.op.gives() != Yield::Passed
        && instr.shape.leaves().into_iter().all(is_empty)
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
        if gives_nothing(frame.computation.instr(id)) {
            return Ok(outputs);
        }
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
            (Op::CustomCall(_), None) => {
                let assertion = Assertion::of(self.module.computation(computation), instr);
                assertion.map(|assertion| HostCall::Assert { at: self.at, assertion })
            }
            _ => None,
        };
        let call = match native {
            Some(call) => self.calls.add(call),
            None => {
                self.note(Reason::of(op, self.target.is_level_zero));
                self.calls.push(self.module, self.at)?
            }
        };
        self.call_step(call, inputs, &outputs, steps);
        Ok(outputs)
    }

    /// A step for a call that was added.
    fn call_step(
        &mut self,
        call: usize,
        inputs: Vec<StorageId>,
        outputs: &[StorageId],
        steps: &mut Vec<Step>,
    ) {
        let touches: Vec<StorageId> = inputs.iter().chain(outputs).copied().collect();
        self.push(steps, Action::Host { call, inputs, outputs: outputs.to_vec() }, &touches);
    }

    /// The step of an instruction that exchanges a value with the host or over a channel; `None` if it is
    /// none. What a `send` sends is the operand itself, and nothing reads what a `recv` begins with but its
    /// request.
    pub(super) fn transfer(
        &mut self,
        frame: &Frame<'m>,
        id: InstrId,
        steps: &mut Vec<Step>,
    ) -> Planned<Option<Vec<StorageId>>> {
        let instr = frame.computation.instr(id);
        if let Op::SendDone(_) = instr.op {
            // Sending waits for nobody, so nothing is left to wait for.
            return self.fresh(frame.owner, &instr.shape).map(Some);
        }
        let Some(transfer) = Transfer::of(self.module, (frame.id, id))? else { return Ok(None) };
        let mut inputs = frame.operands(id);
        if let Op::RecvDone(_) = instr.op {
            inputs.drain(..transfer.leaves());
        }
        self.position += 1;
        let given = arrays::passed_along(frame.computation, id);
        let mut values = inputs[..given].to_vec();
        for shape in instr.shape.leaves().into_iter().skip(given) {
            values.push(self.storage(self.bytes(shape)?, frame.owner));
        }
        let call = self.calls.add(HostCall::Transfer(Box::new(transfer)));
        self.call_step(call, inputs, &values[given..], steps);
        Ok(Some(values))
    }
}

/// The threads of a run, for functions of the user.
struct PoolWorkers<'a>(Threads<'a>);

impl Workers for PoolWorkers<'_> {
    fn for_each(&self, tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.for_each(tasks, body);
    }
}

/// Who performs the host calls of one run.
pub(crate) struct Caller<'a, 'e> {
    module: &'a Module,
    calls: &'a Calls,
    cx: &'a Context,
    meter: &'a Meter,
    memory: &'a Memory,
    workers: PoolWorkers<'a>,
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
        (memory, threads): (&'a Memory, Threads<'a>),
        scope: Option<&'a Scope<'a, 'e>>,
    ) -> Self {
        let evaluator = Evaluator::with_meter(module, cx, meter.clone());
        let mut seats = Vec::new();
        if calls.has_exchange() {
            seats.resize_with(calls.calls.len(), || None);
        }
        let workers = PoolWorkers(threads);
        Caller { module, calls, cx, meter, memory, workers, evaluator, scope, deep: None, seats }
    }

    /// Has the interpreter perform an instruction, on this thread or on that with the deep stack.
    fn interpret(
        &mut self,
        at: InstrAt,
        is_deep: bool,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let (instrs, instr) = find(self.module, at);
        let mut inputs = inputs.iter().copied();
        let operands = instr.operands.iter().map(|&operand| &instrs.instr(operand).shape);
        let operands = operands.map(|shape| Literal::from_leaves(shape, &mut inputs));
        let operands = operands.collect::<Result<Vec<Literal>>>()?;
        let (computation, instr) = at;
        let _mode = FloatMode::Ieee.enter();
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
        at: InstrAt,
        info: &CallInfo,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let mut inputs = inputs.iter().copied();
        let own = |n| if info.is_shared(n) { Some(&[][..]) } else { inputs.next() };
        let operands: Option<Vec<&[u8]>> = (0..info.operand_count()).map(own).collect();
        let mut operands = operands.ok_or_else(|| Error::internal("an operand is missing"))?;
        let Some(function) = self.cx.custom_calls.find(&info.target) else {
            // The interpreter wants operands and results apart.
            let copy = |&(result, operand): &(usize, usize)| (operand, outputs[result].to_vec());
            let copies: Vec<(usize, Vec<u8>)> = info.aliases.iter().map(copy).collect();
            copies.iter().for_each(|(operand, copy)| operands[*operand] = copy);
            return self.interpret(at, false, &operands, outputs);
        };
        let work = Work::new(&self.workers, self.meter);
        let outcome = perform(&*function, info, self.cx, work, &operands, outputs);
        outcome.map_err(|error| self.module.locate(error, find(self.module, at).1))
    }
}

impl HostCalls for Caller<'_, '_> {
    fn call(
        &mut self,
        call: usize,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        let calls = self.calls;
        let number = |number: usize| (number as u32).to_ne_bytes();
        match &calls.calls[call] {
            &HostCall::Interpret { at, is_deep } => {
                self.interpret(at, is_deep, inputs, outputs)?;
            }
            HostCall::Transfer(transfer) => {
                transfer.perform(self.module, (self.cx, self.meter), inputs, outputs)?;
            }
            HostCall::Collective(collective) => {
                let Caller { module, cx, meter, memory, .. } = *self;
                let run = Surroundings { module, cx, meter, memory };
                collective.perform(&run, &mut self.seats[call], inputs, outputs)?;
            }
            HostCall::ReplicaId => outputs[0].copy_from_slice(&number(self.cx.me.replica)),
            HostCall::PartitionId => outputs[0].copy_from_slice(&number(self.cx.me.partition)),
            HostCall::Assert { at, assertion } => {
                let value = assertion.check(inputs);
                let value = value.map_err(|e| self.module.locate(e, find(self.module, *at).1))?;
                outputs[0].copy_from_slice(value);
            }
            HostCall::CustomCall { at, info } => self.custom_call(*at, info, inputs, outputs)?,
        }
        Ok(())
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
