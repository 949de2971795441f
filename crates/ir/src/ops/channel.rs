//! `send` and its kin.

use super::Arity;
use crate::{Error, InferCx, OpDef, Result, Shape};

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
        let _ = cx;
        Err(Error::unimplemented("infer send"))
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
        let _ = cx;
        Err(Error::unimplemented("infer send-done"))
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

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer recv"))
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
        let _ = cx;
        Err(Error::unimplemented("infer recv-done"))
    }
}
