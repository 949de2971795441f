//! Infeed, outfeed, send and receive.

use helio_ir::{Error, Literal, Result, Shape, ops};

use crate::Evaluator;
use crate::frame::first;

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
        shape => evaluator.cx.host.infeed(evaluator.cx.me, shape)?,
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
    evaluator.cx.host.outfeed(evaluator.cx.me, first(args)?)?;
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
    evaluator.cx.host.send(evaluator.cx.me, op.channel_id.unwrap_or(0), value.clone())?;
    Ok(Literal::Tuple(vec![value, Literal::scalar(0u32), Literal::Token]))
}

/// A token.
pub(crate) fn send_done(
    _: &ops::SendDone,
    _: &Evaluator<'_>,
    _: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    Ok(Literal::Token)
}

/// (value, request, token): the value is waited for here, so that an order of instructions that
/// the program allows never matters to the peer.
pub(crate) fn recv(
    op: &ops::Recv,
    evaluator: &Evaluator<'_>,
    _: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    let channel = op.channel_id.unwrap_or(0);
    let value = evaluator.cx.host.recv(evaluator.cx.me, channel, &op.shape)?;
    Ok(Literal::Tuple(vec![value, Literal::scalar(0u32), Literal::Token]))
}

/// (value, token)
pub(crate) fn recv_done(
    _: &ops::RecvDone,
    _: &Evaluator<'_>,
    args: &[Literal],
    _: &Shape,
) -> Result<Literal> {
    match args {
        [Literal::Tuple(parts)] if parts.len() == 3 => {
            Ok(Literal::Tuple(vec![parts[0].clone(), parts[2].clone()]))
        }
        _ => Err(Error::internal("not the result of a recv")),
    }
}
