//! `all-reduce` and its kin.

use super::Arity;
use super::shared::CollectiveAttrs;
use crate::{CompId, Error, InferCx, OpDef, Result, Shape};

/// Folds the operands of all participants, for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllReduce {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
    /// The fold.
    pub to_apply: CompId,
}

impl OpDef for AllReduce {
    const OPCODE: &'static str = "all-reduce";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-reduce"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Joins the operands of all participants, for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllGather {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
    /// Along which dimension.
    pub dimension: usize,
    /// How many operands are joined: the size of each group.
    pub shard_count: usize,
}

impl OpDef for AllGather {
    const OPCODE: &'static str = "all-gather";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-gather"))
    }
}

/// Gives each participant a part of each other's operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllToAll {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
    /// The dimension that is split and joined; without one, operand `i` goes to participant `i`.
    pub dimension: Option<usize>,
}

impl OpDef for AllToAll {
    const OPCODE: &'static str = "all-to-all";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer all-to-all"))
    }
}

/// Sends operands along pairs of participants; who receives nothing gets zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectivePermute {
    /// From, to.
    pub pairs: Vec<(usize, usize)>,
    /// Set if participants are partitions.
    pub channel_id: Option<i64>,
}

impl OpDef for CollectivePermute {
    const OPCODE: &'static str = "collective-permute";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer collective-permute"))
    }
}

/// Folds the operands of all participants and gives each its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceScatter {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
    /// The dimension that is split.
    pub dimension: usize,
    /// Into how many parts it is split: the size of each group.
    pub shard_count: usize,
    /// The fold.
    pub to_apply: CompId,
}

impl OpDef for ReduceScatter {
    const OPCODE: &'static str = "reduce-scatter";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer reduce-scatter"))
    }

    fn callees(&self) -> Vec<CompId> {
        vec![self.to_apply]
    }

    fn callees_mut(&mut self) -> Vec<&mut CompId> {
        vec![&mut self.to_apply]
    }
}

/// Gives the first participant's operand to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveBroadcast {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
}

impl OpDef for CollectiveBroadcast {
    const OPCODE: &'static str = "collective-broadcast";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer collective-broadcast"))
    }
}

/// All-to-all of slices with sizes and places given at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaggedAllToAll {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
}

impl OpDef for RaggedAllToAll {
    const OPCODE: &'static str = "ragged-all-to-all";
    const ARITY: Arity = Arity::Exactly(6);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer ragged-all-to-all"))
    }
}

/// The number of this replica, as `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaId;

impl OpDef for ReplicaId {
    const OPCODE: &'static str = "replica-id";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer replica-id"))
    }
}

/// The number of this partition, as `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionId;

impl OpDef for PartitionId {
    const OPCODE: &'static str = "partition-id";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let _ = cx;
        Err(Error::unimplemented("infer partition-id"))
    }
}
