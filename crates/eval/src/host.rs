//! Transfers with the host and between participants: `infeed`, `outfeed`, `send`, `recv` and their
//! `-done`.

use helio_ir::{Computation, Error, Instr, InstrAt, Literal, Op, Result, Shape, ops};

use crate::frame::{array, first};
use crate::services::{Channel, Host, Participant, Waiter};
use crate::{Evaluator, control, guarded};

/// What the host answers, whose code may panic.
fn ask<T>(
    evaluator: &Evaluator<'_>,
    at: InstrAt,
    question: impl FnOnce(&dyn Host, Participant, &Waiter<'_>) -> Result<T>,
) -> Result<T> {
    let cx = evaluator.cx;
    let instr = evaluator.module.computation(at.0).instr(at.1);
    let waiter = Waiter { cx, meter: evaluator.meter(), instruction: &instr.name };
    let question = || question(&*cx.host, cx.me, &waiter);
    let answer = guarded(|| format!("the host's {}", instr.op.opcode()), question)??;
    cx.collectives.moved(cx.me);
    Ok(answer)
}

/// (value, token)
pub(crate) fn infeed(op: &ops::Infeed, evaluator: &Evaluator<'_>, at: InstrAt) -> Result<Literal> {
    // An empty tuple reads nothing.
    let value = match &op.shape {
        Shape::Tuple(elements) if elements.is_empty() => Literal::Tuple(Vec::new()),
        shape => ask(evaluator, at, |host, me, waiter| host.infeed(me, shape, waiter))?,
    };
    Ok(Literal::Tuple(vec![value, Literal::Token]))
}

/// A token.
pub(crate) fn outfeed(
    _: &ops::Outfeed,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let value = first(args)?;
    ask(evaluator, at, |host, me, _| host.outfeed(me, value))?;
    Ok(Literal::Token)
}

/// (value, request, token). Who is no source of the pairs sends nothing.
pub(crate) fn send(
    op: &ops::Send,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let value = first(args)?;
    let instr = evaluator.module.computation(at.0).instr(at.1);
    let pairs = ops::transfer_pairs(instr)?;
    let me = number(evaluator)?;
    let pair = pairs.iter().flatten().copied().find(|&(source, _)| source == me);
    if pairs.is_none() || pair.is_some() {
        let channel = channel(op.channel_id, op.is_host_transfer, pair);
        ask(evaluator, at, |host, me, _| host.send(me, channel, value.clone()))?;
    }
    Ok(Literal::Tuple(vec![value, Literal::scalar(0u32), Literal::Token]))
}

/// A token. Sending waits for nobody, so nothing is left to wait for.
pub(crate) fn send_done(
    _: &ops::SendDone,
    _: &Evaluator<'_>,
    _: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    Ok(Literal::Token)
}

/// (buffer, request, token). The buffer stays empty until [`recv_done`]: waiting there and not here
/// lets a program send to itself between the two.
pub(crate) fn recv(op: &ops::Recv, _: &Evaluator<'_>, _: &[Literal], _: &Shape) -> Result<Literal> {
    let buffer = control::zero(&op.shape)?;
    // Channels are small numbers; a done without its own id finds it here.
    let request = op.channel_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
    Ok(Literal::Tuple(vec![buffer, Literal::scalar(request), Literal::Token]))
}

/// (value, token). Who is no target of the pairs gets zeros.
pub(crate) fn recv_done(
    op: &ops::RecvDone,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    at: InstrAt,
) -> Result<Literal> {
    let computation = evaluator.module.computation(at.0);
    let instr = computation.instr(at.1);
    let ([Literal::Tuple(context)], Some(results)) = (args, instr.shape.as_tuple()) else {
        return Err(Error::internal("not the result of a recv"));
    };
    let (Some(value_shape), request) = (results.first(), array(context, 1)?) else {
        return Err(Error::internal("not the shape of a recv-done"));
    };
    let request = request.values::<u32>()?.first().copied().map(i64::from);
    let id = op.channel_id.or(request);
    let pairs = match ops::transfer_pairs(instr)? {
        None => pairs_of_begun(evaluator, at, id)?,
        pairs => pairs,
    };
    let me = number(evaluator)?;
    let pair = pairs.iter().flatten().copied().find(|&(_, target)| target == me);
    let value = if pairs.is_none() || pair.is_some() {
        let channel = channel(id, op.is_host_transfer, pair);
        ask(evaluator, at, |host, me, waiter| host.recv(me, channel, value_shape, waiter))?
    } else {
        control::zero(value_shape)?
    };
    Ok(Literal::Tuple(vec![value, Literal::Token]))
}

/// The pairs of the `recv` that a `recv-done` ends: its operand, or, if that is an element of a loop's
/// state, one on the same channel.
fn pairs_of_begun(
    evaluator: &Evaluator<'_>,
    at: InstrAt,
    channel: Option<i64>,
) -> Result<Option<Vec<(usize, usize)>>> {
    let computation = evaluator.module.computation(at.0);
    let operand = computation.instr(at.1).operands.first().map(|&id| computation.instr(id));
    if let Some(begun @ Instr { op: Op::Recv(_), .. }) = operand {
        return ops::transfer_pairs(begun);
    }
    let is_it = |instr: &&Instr| match &instr.op {
        Op::Recv(op) => op.channel_id == channel && !op.is_host_transfer,
        _ => false,
    };
    let mut instrs = evaluator.module.computations().iter().flat_map(Computation::instrs);
    instrs.find(is_it).map_or(Ok(None), ops::transfer_pairs)
}

/// This participant's number: `replica * partitions + partition`.
fn number(evaluator: &Evaluator<'_>) -> Result<usize> {
    let (me, partitions) = (evaluator.cx.me, evaluator.cx.partition_count);
    let number = me.replica.checked_mul(partitions).and_then(|n| n.checked_add(me.partition));
    number.ok_or_else(|| Error::exhausted("more participants than memory has addresses"))
}

fn channel(id: Option<i64>, is_host_transfer: bool, pair: Option<(usize, usize)>) -> Channel {
    Channel { id: id.unwrap_or(0), pair, is_host_transfer }
}
