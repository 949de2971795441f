//! Infeed, outfeed, send and receive.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::frame::{array, first};
use crate::services::{Channel, Host, Participant};
use crate::{Evaluator, control, guarded};

/// What the host answers, whose code may panic.
fn ask<T>(
    evaluator: &Evaluator<'_>,
    what: &str,
    question: impl FnOnce(&dyn Host, Participant) -> Result<T>,
) -> Result<T> {
    let cx = evaluator.cx;
    guarded(|| format!("the host's {what}"), || question(&*cx.host, cx.me))?
}

/// (value, token)
pub(crate) fn infeed(
    op: &ops::Infeed,
    evaluator: &Evaluator<'_>,
    _: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    // An empty tuple reads nothing.
    let value = match &op.shape {
        Shape::Tuple(elements) if elements.is_empty() => Literal::Tuple(Vec::new()),
        shape => ask(evaluator, "infeed", |host, me| host.infeed(me, shape))?,
    };
    Ok(Literal::Tuple(vec![value, Literal::Token]))
}

/// A token.
pub(crate) fn outfeed(
    _: &ops::Outfeed,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let value = first(args)?;
    ask(evaluator, "outfeed", |host, me| host.outfeed(me, value))?;
    Ok(Literal::Token)
}

/// (value, request, token)
pub(crate) fn send(
    op: &ops::Send,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let value = first(args)?;
    let channel = channel(op.channel_id, op.is_host_transfer);
    ask(evaluator, "send", |host, me| host.send(me, channel, value.clone()))?;
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

/// (value, token)
pub(crate) fn recv_done(
    op: &ops::RecvDone,
    evaluator: &Evaluator<'_>,
    args: &[Literal],
    shape: &Shape,
) -> Result<Literal> {
    let ([Literal::Tuple(context)], Shape::Tuple(results)) = (args, shape) else {
        return Err(Error::internal("not the result of a recv"));
    };
    let (Some(value_shape), request) = (results.first(), array(context, 1)?) else {
        return Err(Error::internal("not the shape of a recv-done"));
    };
    let request = request.values::<u32>()?.first().copied().map(i64::from);
    let channel = channel(op.channel_id.or(request), op.is_host_transfer);
    let value = ask(evaluator, "recv", |host, me| host.recv(me, channel, value_shape))?;
    Ok(Literal::Tuple(vec![value, Literal::Token]))
}

fn channel(id: Option<i64>, is_host_transfer: bool) -> Channel {
    Channel { id: id.unwrap_or(0), is_host_transfer }
}
