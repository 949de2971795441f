//! Infeed, outfeed, send and receive: with tokens, and in the older forms without.

use super::{XlaBuilder, XlaOp, check};
use crate::ops::{AfterAll, Infeed, Outfeed, Recv, RecvDone, Send, SendDone};
use crate::text::attrs::quote;
use crate::{Error, Result, Shape};

/// Who is at the ends of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelKind {
    /// Two devices.
    #[default]
    DeviceToDevice,
    /// A device sends to the host.
    DeviceToHost,
    /// The host sends to a device.
    HostToDevice,
}

/// Names a channel: one `send` and one `recv` of a program have the same handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelHandle {
    /// The channel's number.
    pub handle: i64,
    /// Who is at its ends.
    pub kind: ChannelKind,
}

impl ChannelHandle {
    /// A channel between two devices.
    pub fn new(handle: i64) -> Self {
        ChannelHandle { handle, kind: ChannelKind::DeviceToDevice }
    }

    fn id_for(self, kind: ChannelKind) -> Result<Option<i64>> {
        if self.kind != kind {
            let found = self.kind;
            return Err(Error::invalid(format!(
                "a channel of kind {kind:?} is needed, found {found:?}"
            )));
        }
        Ok(Some(self.handle))
    }
}

impl XlaBuilder {
    /// Reads a value from the host. All infeeds and outfeeds of this kind happen in the order of
    /// the calls: each takes the token of the one before.
    ///
    /// Shapes: the result is `shape`. Lowered to `infeed` and the first element of its result.
    /// Errors: the rules of `infeed`. Source: E1–E4 "Infeed".
    #[track_caller]
    pub fn infeed(&self, shape: impl Into<Shape>, config: Option<&str>) -> XlaOp {
        let infeed = self.token().infeed_with_token(shape, config);
        let token = infeed.get_tuple_element(1);
        self.set_token(&token);
        infeed.get_tuple_element(0)
    }

    /// Receives a value from the computation that sends on this channel.
    ///
    /// Shapes: the result is `shape`. Lowered to a new token, `recv`, `recv-done` and the first
    /// element of its result. Errors: the rules of `recv`, `InvalidArgument` for a channel to or
    /// from the host. Source: E3–E4 "Recv".
    #[track_caller]
    pub fn recv(&self, shape: impl Into<Shape>, channel: ChannelHandle) -> XlaOp {
        self.create_token().recv_with_token(shape, channel).get_tuple_element(0)
    }

    /// The end of the chain of infeeds and outfeeds.
    #[track_caller]
    fn token(&self) -> XlaOp {
        let last = self.state.borrow().token;
        match last {
            Some(id) => XlaOp { builder: self.clone(), id: Some(id) },
            None => self.apply(AfterAll, &[]),
        }
    }

    fn set_token(&self, token: &XlaOp) {
        self.state.borrow_mut().token = token.id;
    }
}

impl XlaOp {
    /// Reads a value from the host, after this token: `(value, token)`. Errors: the rules of
    /// `infeed`. Source: XLA's `InfeedWithToken`.
    #[track_caller]
    pub fn infeed_with_token(&self, shape: impl Into<Shape>, config: Option<&str>) -> XlaOp {
        let op = Infeed { shape: shape.into(), config: config.map(quote) };
        self.builder.apply(op, &[self])
    }

    /// Writes this value to the host, which sees it as `shape`; ordered as [`XlaBuilder::infeed`]
    /// is. The result is the empty tuple, for a computation that ends here.
    ///
    /// Errors: the rules of `outfeed`. Source: XLA's `Outfeed`.
    #[track_caller]
    pub fn outfeed(&self, shape: impl Into<Shape>, config: Option<&str>) -> XlaOp {
        let token = self.outfeed_with_token(self.builder.token(), shape, config);
        self.builder.set_token(&token);
        self.builder.tuple(XlaOp::NONE)
    }

    /// Writes this value to the host, which sees it as `shape`, after a token: another token.
    /// Errors: the rules of `outfeed`. Source: XLA's `OutfeedWithToken`.
    #[track_caller]
    pub fn outfeed_with_token(
        &self,
        token: impl AsRef<XlaOp>,
        shape: impl Into<Shape>,
        config: Option<&str>,
    ) -> XlaOp {
        let op = Outfeed { shape: shape.into(), config: config.map(quote) };
        self.builder.apply(op, &[self, token.as_ref()])
    }

    /// Sends this value to the computation that receives on this channel: a new token, `send` and
    /// `send-done`, whose token is the result.
    ///
    /// Errors: the rules of `send`, `InvalidArgument` for a channel to or from the host. Source:
    /// E3–E4 "Send".
    #[track_caller]
    pub fn send(&self, channel: ChannelHandle) -> XlaOp {
        self.send_with_token(self.builder.create_token(), channel)
    }

    /// Sends this value, after a token: another token. Errors: as for [`XlaOp::send`]. Source: XLA's
    /// `SendWithToken`.
    #[track_caller]
    pub fn send_with_token(&self, token: impl AsRef<XlaOp>, channel: ChannelHandle) -> XlaOp {
        let channel_id = check!(self.builder, channel.id_for(ChannelKind::DeviceToDevice));
        self.send_start(token, channel_id, false).send_done(channel_id, false)
    }

    /// Sends this array to the host, after a token: another token. Errors: the rules of `send`,
    /// `InvalidArgument` for another kind of channel. Source: XLA's `SendToHost`.
    #[track_caller]
    pub fn send_to_host(&self, token: impl AsRef<XlaOp>, channel: ChannelHandle) -> XlaOp {
        let channel_id = check!(self.builder, channel.id_for(ChannelKind::DeviceToHost));
        self.send_start(token, channel_id, true).send_done(channel_id, true)
    }

    /// Receives a value, after this token: `(value, token)`. Errors: as for [`XlaBuilder::recv`].
    /// Source: XLA's `RecvWithToken`.
    #[track_caller]
    pub fn recv_with_token(&self, shape: impl Into<Shape>, channel: ChannelHandle) -> XlaOp {
        let channel_id = check!(self.builder, channel.id_for(ChannelKind::DeviceToDevice));
        self.recv_start(shape, channel_id, false).recv_done(channel_id, false)
    }

    /// Receives an array from the host, after this token: `(value, token)`. Errors: the rules of
    /// `recv`, `InvalidArgument` for another kind of channel. Source: XLA's `RecvFromHost`.
    #[track_caller]
    pub fn recv_from_host(&self, shape: impl Into<Shape>, channel: ChannelHandle) -> XlaOp {
        let channel_id = check!(self.builder, channel.id_for(ChannelKind::HostToDevice));
        self.recv_start(shape, channel_id, true).recv_done(channel_id, true)
    }

    /// The first half of a send: `(value, u32[], token)`. Source: E3–E4 "Send", the HLO instruction.
    #[track_caller]
    pub fn send_start(
        &self,
        token: impl AsRef<XlaOp>,
        channel_id: Option<i64>,
        is_host_transfer: bool,
    ) -> XlaOp {
        self.builder.apply(Send { channel_id, is_host_transfer }, &[self, token.as_ref()])
    }

    /// The second half of a send: a token. Source: E3–E4 "SendDone".
    #[track_caller]
    pub fn send_done(&self, channel_id: Option<i64>, is_host_transfer: bool) -> XlaOp {
        self.builder.apply(SendDone { channel_id, is_host_transfer }, &[self])
    }

    /// The first half of a receive, after this token: `(value, u32[], token)`. Source: E3–E4
    /// "Recv", the HLO instruction.
    #[track_caller]
    pub fn recv_start(
        &self,
        shape: impl Into<Shape>,
        channel_id: Option<i64>,
        is_host_transfer: bool,
    ) -> XlaOp {
        let shape = shape.into();
        self.builder.apply(Recv { shape, channel_id, is_host_transfer }, &[self])
    }

    /// The second half of a receive: `(value, token)`. Source: E3–E4 "RecvDone".
    #[track_caller]
    pub fn recv_done(&self, channel_id: Option<i64>, is_host_transfer: bool) -> XlaOp {
        self.builder.apply(RecvDone { channel_id, is_host_transfer }, &[self])
    }
}
