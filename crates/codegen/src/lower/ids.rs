//! Numbers of what the values of a fused computation are made of, a type for each kind.

/// A value, by its place in [`Graph::nodes`](super::graph::Graph::nodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub fn new(index: usize) -> Self {
        NodeId(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A conjunction of conditions, by its place in [`Graph::guards`](super::graph::Graph::guards).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Guard(u32);

impl Guard {
    /// The empty one.
    pub const ALWAYS: Guard = Guard(0);

    pub fn new(index: usize) -> Self {
        Guard(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The fused computation, or a call of scalar code in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FrameId(u32);

impl FrameId {
    /// The fused computation.
    pub const FUSED: FrameId = FrameId(0);

    pub fn new(index: usize) -> Self {
        FrameId(index as u32)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}
