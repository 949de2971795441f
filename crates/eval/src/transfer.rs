//! Transfers with the host and between participants: `infeed`, `outfeed`, `send`, `recv` and their
//! `-done`.
//!
//! [`Transfer`] is what is known of one before the run. Both engines perform it: compiled programs on their
//! memory, the interpreter on literals.

use helio_ir::{
    Computation, Error, Instr, InstrAt, InstrId, Literal, Module, Op, Result, Shape, ops,
};
use helio_limits::Meter;

use crate::frame::{array, first};
use crate::services::{Channel, Context, Host, Incoming, Outgoing, Participant, Waiter};
use crate::{Evaluator, control, guarded};

/// Who sends to whom, as numbers of participants: `replica * partitions + partition`.
type Pairs = Vec<(usize, usize)>;

/// An instruction that exchanges a value with the host or over a channel, with all that is known of it
/// before the run.
#[derive(Clone, Debug)]
pub struct Transfer {
    at: InstrAt,
    kind: Kind,
    /// The shape of the value.
    shape: Shape,
    /// How many arrays and tokens the value has.
    leaves: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Infeed,
    Outfeed,
    Send(Route),
    /// Nothing comes yet: waiting at the end and not here lets a program send to itself between the two.
    /// The request is the channel's number, where an end without its own finds it.
    Recv {
        request: u32,
    },
    RecvDone(Route),
}

/// Which way a value goes.
#[derive(Clone, Debug)]
struct Route {
    channel: Option<i64>,
    is_host_transfer: bool,
    pairs: Option<Pairs>,
    /// The pairs of each channel on which the module begins to receive, if only the request says which of
    /// them this is the end of.
    begun: Vec<(i64, Option<Pairs>)>,
}

impl Route {
    fn new(channel: Option<i64>, is_host_transfer: bool, pairs: Option<Pairs>) -> Self {
        Route { channel, is_host_transfer, pairs, begun: Vec::new() }
    }

    /// The channel on which participant `number` stands at an end; `None` if it stands at none.
    fn channel(
        &self,
        number: usize,
        end: impl Fn(&(usize, usize)) -> usize,
        request: Option<u32>,
    ) -> Option<Channel> {
        let id = self.channel.or(request.map(i64::from));
        let begun = self.begun.iter().find(|&&(channel, _)| Some(channel) == id);
        let pairs = self.pairs.as_ref().or(begun.and_then(|(_, pairs)| pairs.as_ref()));
        let pair = match pairs {
            None => None,
            Some(pairs) => Some(*pairs.iter().find(|pair| end(pair) == number)?),
        };
        Some(Channel { id: id.unwrap_or(0), pair, is_host_transfer: self.is_host_transfer })
    }

    /// Finds the pairs of the `recv` that a `recv-done` without pairs ends: its operand, or, if that is an
    /// element of a loop's state, one on the same channel.
    fn find_begun(
        &mut self,
        module: &Module,
        computation: &Computation,
        end: &Instr,
    ) -> Result<()> {
        if self.pairs.is_some() {
            return Ok(());
        }
        let operand = end.operands.first().map(|&id| computation.instr(id));
        if let Some(begun @ Instr { op: Op::Recv(_), .. }) = operand {
            self.pairs = ops::transfer_pairs(begun)?;
            return Ok(());
        }
        for instr in module.computations().iter().flat_map(Computation::instrs) {
            if let Op::Recv(op) = &instr.op
                && let Some(channel) = op.channel_id
                && !op.is_host_transfer
            {
                self.begun.push((channel, ops::transfer_pairs(instr)?));
            }
        }
        Ok(())
    }
}

impl Transfer {
    /// That of an instruction; `None` if it exchanges nothing. (The end of a `send` does not: sending waits
    /// for nobody.) Errors: `channel.C1`.
    pub fn of(module: &Module, at: InstrAt) -> Result<Option<Transfer>> {
        let computation = module.computation(at.0);
        let instr = computation.instr(at.1);
        let operand = |id: Option<&InstrId>| match id {
            Some(&id) => Ok(&computation.instr(id).shape),
            None => Err(Error::internal("a transfer without operands")),
        };
        let pairs = ops::transfer_pairs(instr)?;
        let (kind, shape) = match &instr.op {
            Op::Infeed(op) => (Kind::Infeed, &op.shape),
            Op::Outfeed(_) => (Kind::Outfeed, operand(instr.operands.first())?),
            Op::Send(op) => {
                let route = Route::new(op.channel_id, op.is_host_transfer, pairs);
                (Kind::Send(route), operand(instr.operands.first())?)
            }
            Op::Recv(op) => {
                // Channels are small numbers.
                let request = op.channel_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
                (Kind::Recv { request }, &op.shape)
            }
            Op::RecvDone(op) => {
                let mut route = Route::new(op.channel_id, op.is_host_transfer, pairs);
                route.find_begun(module, computation, instr)?;
                let value = instr.shape.as_tuple().and_then(<[Shape]>::first);
                let value = value.ok_or_else(|| Error::internal("not the shape of a recv-done"))?;
                (Kind::RecvDone(route), value)
            }
            _ => return Ok(None),
        };
        let leaves = shape.leaves().len();
        Ok(Some(Transfer { at, kind, shape: shape.clone(), leaves }))
    }

    /// How many arrays and tokens the value has, tuples taken apart.
    pub fn leaves(&self) -> usize {
        self.leaves
    }

    /// Performs it on memory: the arrays of the operands and of the results, tuples taken apart, tokens
    /// without bytes. Of a `send` only the results beside the value are written, of a `recv-done` only the
    /// request is read. Errors: those of the host.
    pub fn perform(
        &self,
        module: &Module,
        (cx, meter): (&Context, &Meter),
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<()> {
        let asker = Asker { module, at: self.at, cx, meter };
        let missing = || Error::internal("a transfer without its memory");
        match &self.kind {
            Kind::Infeed => {
                let value = outputs.get_mut(..self.leaves).ok_or_else(missing)?;
                self.receive(&asker, None, &mut Incoming::memory(&self.shape, value))?;
            }
            Kind::Outfeed | Kind::Send(_) => {
                let value = inputs.get(..self.leaves).ok_or_else(missing)?;
                self.give(&asker, Outgoing::memory(&self.shape, value))?;
                outputs.iter_mut().for_each(|output| output.fill(0));
            }
            Kind::Recv { request } => {
                outputs.iter_mut().for_each(|output| output.fill(0));
                let to = outputs.get_mut(self.leaves).ok_or_else(missing)?;
                to.copy_from_slice(&request.to_ne_bytes());
            }
            Kind::RecvDone(_) => {
                let request = inputs.first().and_then(|bytes| bytes.first_chunk());
                let request = u32::from_ne_bytes(*request.ok_or_else(missing)?);
                let value = outputs.get_mut(..self.leaves).ok_or_else(missing)?;
                let mut into = Incoming::memory(&self.shape, value);
                if !self.receive(&asker, Some(request), &mut into)? {
                    value.iter_mut().for_each(|output| output.fill(0));
                }
            }
        }
        Ok(())
    }

    /// Puts what comes into `into`; whether anything does: who is no target of the pairs gets nothing.
    fn receive(
        &self,
        asker: &Asker<'_>,
        request: Option<u32>,
        into: &mut Incoming<'_, '_>,
    ) -> Result<bool> {
        match &self.kind {
            // An empty tuple reads nothing.
            Kind::Infeed if self.shape.as_tuple().is_some_and(<[Shape]>::is_empty) => {
                into.put(Literal::Tuple(Vec::new()))?;
            }
            Kind::Infeed => asker.ask(|host, me, waiter| host.infeed(me, into, waiter))?,
            Kind::RecvDone(route) => {
                let channel = route.channel(asker.number()?, |&(_, target)| target, request);
                let Some(channel) = channel else { return Ok(false) };
                asker.ask(|host, me, waiter| host.recv(me, channel, into, waiter))?;
            }
            Kind::Outfeed | Kind::Send(_) | Kind::Recv { .. } => {
                return Err(Error::internal("nothing comes here"));
            }
        }
        Ok(true)
    }

    /// Gives the value away. Who is no source of the pairs sends nothing.
    fn give(&self, asker: &Asker<'_>, value: Outgoing<'_>) -> Result<()> {
        match &self.kind {
            Kind::Outfeed => asker.ask(|host, me, _| host.outfeed(me, value)),
            Kind::Send(route) => {
                match route.channel(asker.number()?, |&(source, _)| source, None) {
                    Some(channel) => {
                        let collectives = &asker.cx.collectives;
                        asker.ask(|host, me, _| match collectives.is_elsewhere(channel) {
                            true => collectives.send(channel, value.into_literal()?),
                            false => host.send(me, channel, value),
                        })
                    }
                    None => Ok(()),
                }
            }
            Kind::Infeed | Kind::Recv { .. } | Kind::RecvDone(_) => {
                Err(Error::internal("nothing goes from here"))
            }
        }
    }
}

/// A participant at a transfer.
struct Asker<'a> {
    module: &'a Module,
    at: InstrAt,
    cx: &'a Context,
    meter: &'a Meter,
}

impl<'a> Asker<'a> {
    fn of(evaluator: &'a Evaluator<'_>, at: InstrAt) -> Self {
        Asker { module: evaluator.module, at, cx: evaluator.cx, meter: evaluator.meter() }
    }

    /// What the host answers, whose code may panic.
    fn ask<T>(
        &self,
        question: impl FnOnce(&dyn Host, Participant, &Waiter<'_>) -> Result<T>,
    ) -> Result<T> {
        let Asker { module, at, cx, meter } = *self;
        let instr = module.computation(at.0).instr(at.1);
        let waiter = Waiter::new(cx, meter, &instr.name);
        let question = || question(&*cx.host, cx.me, &waiter);
        let answer = guarded(|| format!("the host's {}", instr.op.opcode()), question)??;
        cx.collectives.moved(cx.me);
        Ok(answer)
    }

    /// The participant's number.
    fn number(&self) -> Result<usize> {
        let (me, partitions) = (self.cx.me, self.cx.partition_count);
        let number = me.replica.checked_mul(partitions).and_then(|n| n.checked_add(me.partition));
        number.ok_or_else(|| Error::exhausted("more participants than memory has addresses"))
    }
}

/// The value of an instruction that exchanges something, on literals.
pub(crate) fn transfer(
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let transfer = Transfer::of(evaluator.module, at)?;
    let transfer = transfer.ok_or_else(|| Error::internal("this exchanges nothing"))?;
    let asker = Asker::of(evaluator, at);
    let received = |request| {
        let mut value = None;
        let came = transfer.receive(
            &asker,
            request,
            &mut Incoming::literal(&transfer.shape, &mut value),
        )?;
        match value {
            Some(value) => Ok(value),
            None if came => Err(Error::internal("the host gave no value")),
            None => control::zero(&transfer.shape),
        }
    };
    match &transfer.kind {
        Kind::Infeed => Ok(Literal::Tuple(vec![received(None)?, Literal::Token])),
        Kind::Outfeed => {
            transfer.give(&asker, Outgoing::literal(first(args)?))?;
            Ok(Literal::Token)
        }
        Kind::Send(_) => {
            let value = first(args)?;
            transfer.give(&asker, Outgoing::literal(value.clone()))?;
            Ok(Literal::Tuple(vec![value, Literal::scalar(0u32), Literal::Token]))
        }
        Kind::Recv { request } => {
            let buffer = control::zero(&transfer.shape)?;
            Ok(Literal::Tuple(vec![buffer, Literal::scalar(*request), Literal::Token]))
        }
        Kind::RecvDone(_) => {
            let [Literal::Tuple(context)] = args else {
                return Err(Error::internal("not the result of a recv"));
            };
            let request = array(context, 1)?.values::<u32>()?.first().copied();
            Ok(Literal::Tuple(vec![received(request)?, Literal::Token]))
        }
    }
}
