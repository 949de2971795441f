//! `send`, `recv` and their `-done`: transfers over a channel, between participants or with the
//! host.

use super::Arity;
use super::check::tuple_of;
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::{ElementType, Error, InferCx, OpDef, Result, Shape};

/// Begins to send the first operand, after the token; the result is (value, u32, token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Which channel.
    pub channel_id: Option<i64>,
    /// Whether the peer is the host.
    pub is_host_transfer: bool,
}

impl OpDef for Send {
    const OPCODE: &'static str = "send";
    const ARITY: Arity = Arity::Exactly(2);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.ensure_token("send.C1", 1)?;
        in_flight(cx.operand(0)?)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (channel_id, is_host_transfer) = read_channel(attrs)?;
        Ok(Send { channel_id, is_host_transfer })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write_channel(attrs, self.channel_id, self.is_host_transfer);
    }
}

/// Waits until a send is over; the result is a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendDone {
    /// Which channel.
    pub channel_id: Option<i64>,
    /// Whether the peer is the host.
    pub is_host_transfer: bool,
}

impl OpDef for SendDone {
    const OPCODE: &'static str = "send-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        value_in_flight("send-done.C1", cx.operand(0)?)?;
        Ok(Shape::Token)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (channel_id, is_host_transfer) = read_channel(attrs)?;
        Ok(SendDone { channel_id, is_host_transfer })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write_channel(attrs, self.channel_id, self.is_host_transfer);
    }
}

/// Begins to receive, after the token; the result is (value, u32, token).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recv {
    /// The shape of the value.
    pub shape: Shape,
    /// Which channel.
    pub channel_id: Option<i64>,
    /// Whether the peer is the host.
    pub is_host_transfer: bool,
}

impl OpDef for Recv {
    const OPCODE: &'static str = "recv";
    const ARITY: Arity = Arity::Exactly(1);
    const NEEDS_SHAPE: bool = true;

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        cx.ensure_token("recv.C1", 0)?;
        in_flight(&self.shape)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (channel_id, is_host_transfer) = read_channel(attrs)?;
        Ok(Recv { shape: attrs.result_element()?, channel_id, is_host_transfer })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write_channel(attrs, self.channel_id, self.is_host_transfer);
    }
}

/// Waits for what is received; the result is (value, token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvDone {
    /// Which channel.
    pub channel_id: Option<i64>,
    /// Whether the peer is the host.
    pub is_host_transfer: bool,
}

impl OpDef for RecvDone {
    const OPCODE: &'static str = "recv-done";
    const ARITY: Arity = Arity::Exactly(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let value = value_in_flight("recv-done.C1", cx.operand(0)?)?;
        tuple_of(&[value, &Shape::Token])
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let (channel_id, is_host_transfer) = read_channel(attrs)?;
        Ok(RecvDone { channel_id, is_host_transfer })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        write_channel(attrs, self.channel_id, self.is_host_transfer);
    }
}

/// The attributes that all four have.
fn read_channel(attrs: &mut AttrReader<'_>) -> Result<(Option<i64>, bool)> {
    Ok((attrs.int("channel_id")?, attrs.flag("is_host_transfer")?.unwrap_or(false)))
}

fn write_channel(attrs: &mut AttrWriter<'_>, channel_id: Option<i64>, is_host_transfer: bool) {
    if let Some(channel_id) = channel_id {
        attrs.put("channel_id", channel_id);
    }
    attrs.flag("is_host_transfer", is_host_transfer);
}

/// What stands for a value on its way: (value, u32, token).
fn in_flight(value: &Shape) -> Result<Shape> {
    tuple_of(&[value, &Shape::scalar(ElementType::U32), &Shape::Token])
}

/// The value of [`in_flight`]. Errors: `shape` is not of that form.
fn value_in_flight<'a>(rule: &'static str, shape: &'a Shape) -> Result<&'a Shape> {
    match shape.as_tuple() {
        Some([value, id, Shape::Token]) if id.same(&Shape::scalar(ElementType::U32)) => Ok(value),
        _ => {
            Err(Error::rule(rule, format!("operand 0 must be (value, u32[], token[]), is {shape}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{infer, shape};

    #[test]
    fn channels() {
        let (channel_id, is_host_transfer) = (Some(1), false);
        let send = Send { channel_id, is_host_transfer };
        let recv = Recv { shape: shape("f32[2]"), channel_id, is_host_transfer };
        let (sent, received) =
            (SendDone { channel_id, is_host_transfer }, RecvDone { channel_id, is_host_transfer });
        let moving = "(f32[2], u32[], token[])";
        assert_eq!(infer(send, &["f32[2]", "token[]"]), moving);
        assert_eq!(infer(recv.clone(), &["token[]"]), moving);
        assert_eq!(infer(sent, &[moving]), "token[]");
        assert_eq!(infer(received, &[moving]), "(f32[2], token[])");
        assert_eq!(infer(send, &["f32[2]", "f32[2]"]), "send.C1");
        assert_eq!(infer(recv, &["f32[2]"]), "recv.C1");
        assert_eq!(infer(sent, &["(f32[2], s32[], token[])"]), "send-done.C1");
        assert_eq!(infer(received, &["token[]"]), "recv-done.C1");
    }
}
