//! Operations between replicas and partitions.

use super::broadcasting::ensure_below;
use super::{XlaBuilder, XlaComputation, XlaOp, check, refs};
use crate::ops::shared::MAX_PARTICIPANTS;
use crate::ops::{
    AllGather, AllGatherDone, AllGatherStart, AllReduce, AllReduceDone, AllReduceStart, AllToAll,
    CollectiveAttrs, CollectiveBroadcast, CollectivePermute, CollectivePermuteDone,
    CollectivePermuteStart, PartitionId, RaggedAllToAll, ReduceScatter, ReplicaGroups, ReplicaId,
};
use crate::{Error, Op, Result, Shape};

impl XlaBuilder {
    /// The number of this replica, `u32[]`. Source: E4 "ReplicaId".
    #[track_caller]
    pub fn replica_id(&self) -> XlaOp {
        self.apply(ReplicaId, &[])
    }

    /// The number of this partition, `u32[]`. Source: the opcode `partition-id`, which no edition
    /// documents.
    #[track_caller]
    pub fn partition_id(&self) -> XlaOp {
        self.apply(PartitionId, &[])
    }

    /// Gives operand `i` to participant `i` of the group: a tuple of what the others gave. Errors:
    /// the rules of `all-to-all`. Source: XLA's `AllToAllTuple`.
    #[track_caller]
    pub fn all_to_all_tuple(
        &self,
        operands: &[impl AsRef<XlaOp>],
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        self.apply(AllToAll { attrs: attrs.clone(), dimension: None }, &refs(operands))
    }

    /// Sends rows of `operand` to others and puts what they send into `output`; offsets and sizes
    /// say which rows, one each for a participant. Errors: the rules of `ragged-all-to-all`. Source:
    /// XLA's `RaggedAllToAll`.
    #[expect(clippy::too_many_arguments, reason = "the arguments are XLA's")]
    #[track_caller]
    pub fn ragged_all_to_all(
        &self,
        operand: impl AsRef<XlaOp>,
        output: impl AsRef<XlaOp>,
        input_offsets: impl AsRef<XlaOp>,
        send_sizes: impl AsRef<XlaOp>,
        output_offsets: impl AsRef<XlaOp>,
        recv_sizes: impl AsRef<XlaOp>,
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        let operands = [
            operand.as_ref(),
            output.as_ref(),
            input_offsets.as_ref(),
            send_sizes.as_ref(),
            output_offsets.as_ref(),
            recv_sizes.as_ref(),
        ];
        self.apply(RaggedAllToAll { attrs: attrs.clone() }, &operands)
    }
}

impl XlaOp {
    /// Folds the operands of all participants of a group, for each of them; no groups stand for one
    /// of all.
    ///
    /// Shapes: an array or a tuple of arrays, result the same. Errors: the rules of `all-reduce`.
    /// Source: E4 "AllReduce" (the signature says `replica_group_ids`, the table `replica_groups`).
    #[track_caller]
    pub fn all_reduce(&self, computation: &XlaComputation, attrs: &CollectiveAttrs) -> XlaOp {
        let to_apply = check!(self.builder, self.builder.import(computation));
        self.collective(AllReduce { attrs: attrs.clone(), to_apply })
    }

    /// Joins the operands of all participants of a group along a dimension, for each of them.
    ///
    /// Shapes: an array, or a tuple of arrays, whose `dimension` becomes `shard_count` times as
    /// large. `shard_count` is the size of each group; without groups, of the one group of all.
    /// Errors: the rules of `all-gather`. Source: E4 "AllGather".
    #[track_caller]
    pub fn all_gather(
        &self,
        dimension: usize,
        shard_count: usize,
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        self.collective(AllGather { attrs: attrs.clone(), dimension, shard_count })
    }

    /// Folds the operands of all participants of a group and gives each its part along a dimension.
    ///
    /// Shapes: an array, or a tuple of arrays, whose `dimension` becomes `shard_count` times
    /// smaller; `shard_count` as for [`XlaOp::all_gather`]. Errors: the rules of
    /// `reduce-scatter`. Source: E4 "ReduceScatter".
    #[track_caller]
    pub fn reduce_scatter(
        &self,
        computation: &XlaComputation,
        dimension: usize,
        shard_count: usize,
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        let to_apply = check!(self.builder, self.builder.import(computation));
        self.collective(ReduceScatter { attrs: attrs.clone(), dimension, shard_count, to_apply })
    }

    /// Splits the operand into `split_count` blocks along a dimension, gives block `i` to
    /// participant `i` of the group, and joins what comes along another dimension.
    ///
    /// Shapes: `T[…]` with `split_dimension` divided and `concat_dimension` multiplied by
    /// `split_count`. HLO's `all-to-all` splits and joins along one dimension: a reshape, a
    /// transpose and a reshape follow if they differ. Errors: `builder.C4`, the rules of
    /// `all-to-all`. Source: E4 "AllToAll".
    #[track_caller]
    pub fn all_to_all(
        &self,
        split_dimension: usize,
        concat_dimension: usize,
        split_count: usize,
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        let shape = check!(self.builder, self.array_shape());
        let dimensions = [split_dimension, concat_dimension];
        check!(self.builder, ensure_below("all-to-all", &dimensions, shape.rank()));
        let attrs = check!(self.builder, with_groups_of(split_count, attrs));
        let size = shape.dims()[split_dimension];
        if size % split_count != 0 {
            let detail =
                format!("dimension {split_dimension} of {shape} cannot be split by {split_count}");
            return self.builder.report_error(Error::rule("builder.C4", detail));
        }
        let op = AllToAll { attrs, dimension: Some(split_dimension) };
        let exchanged = self.builder.apply(op, &[self]);
        if split_dimension == concat_dimension {
            return exchanged;
        }
        // The blocks lie one after the other along the split dimension: their number becomes a
        // dimension of its own, moves before the other dimension, and is merged into it.
        let mut sizes = shape.dims().to_vec();
        sizes.splice(split_dimension..=split_dimension, [split_count, size / split_count]);
        let place = |d: usize| if d >= split_dimension { d + 1 } else { d };
        let mut permutation: Vec<usize> = (0..shape.rank()).map(place).collect();
        permutation.insert(concat_dimension, split_dimension);
        let mut joined = shape.dims().to_vec();
        joined[split_dimension] = size / split_count;
        joined[concat_dimension] = joined[concat_dimension].saturating_mul(split_count);
        exchanged.reshape(&sizes).transpose(&permutation).reshape(&joined)
    }

    /// Sends the operand along pairs (from, to) of participants; who receives nothing gets zeros.
    ///
    /// Shapes: the operand's. No participant may send, or receive, twice. Errors: the rules of
    /// `collective-permute`. Source: E4 "CollectivePermute".
    #[track_caller]
    pub fn collective_permute(
        &self,
        source_target_pairs: &[(usize, usize)],
        channel_id: Option<i64>,
    ) -> XlaOp {
        let op = CollectivePermute { pairs: source_target_pairs.to_vec(), channel_id };
        self.builder.apply(op, &[self])
    }

    /// Gives the operand of the first participant of each group to all of it. Errors: the rules of
    /// `collective-broadcast`. Source: XLA's `CollectiveBroadcast`.
    #[track_caller]
    pub fn collective_broadcast(&self, attrs: &CollectiveAttrs) -> XlaOp {
        self.collective(CollectiveBroadcast { attrs: attrs.clone() })
    }

    /// The first half of [`XlaOp::all_reduce`]. Source: the opcode `all-reduce-start`, which no
    /// edition documents.
    #[track_caller]
    pub fn all_reduce_start(&self, computation: &XlaComputation, attrs: &CollectiveAttrs) -> XlaOp {
        let to_apply = check!(self.builder, self.builder.import(computation));
        let op = AllReduce { attrs: attrs.clone(), to_apply };
        let operands = check!(self.builder, self.elements());
        self.builder.apply(AllReduceStart { op }, &operands.iter().collect::<Vec<_>>())
    }

    /// The second half of [`XlaOp::all_reduce`]. Source: the opcode `all-reduce-done`.
    #[track_caller]
    pub fn all_reduce_done(&self) -> XlaOp {
        self.builder.apply(AllReduceDone, &[self])
    }

    /// The first half of [`XlaOp::all_gather`]. Source: the opcode `all-gather-start`, which no
    /// edition documents.
    #[track_caller]
    pub fn all_gather_start(
        &self,
        dimension: usize,
        shard_count: usize,
        attrs: &CollectiveAttrs,
    ) -> XlaOp {
        let operands = check!(self.builder, self.elements());
        let op = AllGatherStart { op: AllGather { attrs: attrs.clone(), dimension, shard_count } };
        self.builder.apply(op, &operands.iter().collect::<Vec<_>>())
    }

    /// The second half of [`XlaOp::all_gather`]. Source: the opcode `all-gather-done`.
    #[track_caller]
    pub fn all_gather_done(&self) -> XlaOp {
        self.builder.apply(AllGatherDone, &[self])
    }

    /// The first half of [`XlaOp::collective_permute`]. Source: the opcode
    /// `collective-permute-start`, which no edition documents.
    #[track_caller]
    pub fn collective_permute_start(
        &self,
        source_target_pairs: &[(usize, usize)],
        channel_id: Option<i64>,
    ) -> XlaOp {
        let op = CollectivePermute { pairs: source_target_pairs.to_vec(), channel_id };
        self.builder.apply(CollectivePermuteStart { op, contexts: Vec::new() }, &[self])
    }

    /// The second half of [`XlaOp::collective_permute`]. Source: the opcode
    /// `collective-permute-done`.
    #[track_caller]
    pub fn collective_permute_done(&self) -> XlaOp {
        self.builder.apply(CollectivePermuteDone, &[self])
    }

    /// A collective of an array, or of the elements of a tuple; then the result is a tuple, too.
    #[track_caller]
    fn collective(&self, op: impl Into<Op>) -> XlaOp {
        let operands = check!(self.builder, self.elements());
        let result = self.builder.apply(op, &operands.iter().collect::<Vec<_>>());
        let was_tuple = matches!(self.shape(), Ok(Shape::Tuple(_)));
        // A collective of one operand gives an array: what came as a tuple leaves as one.
        match was_tuple && operands.len() == 1 {
            true => self.builder.tuple(&[result]),
            false => result,
        }
    }

    /// The elements of a tuple; anything else by itself.
    #[track_caller]
    fn elements(&self) -> Result<Vec<XlaOp>> {
        let Shape::Tuple(shapes) = self.shape()? else { return Ok(vec![self.clone()]) };
        let mut elements = Vec::with_capacity(shapes.len());
        for index in 0..shapes.len() {
            elements.push(self.get_tuple_element(index));
        }
        Ok(elements)
    }
}

/// The same groups, or if there are none that of the first `count` participants. Errors:
/// `builder.C4`, `ResourceExhausted` above [`MAX_PARTICIPANTS`].
fn with_groups_of(count: usize, attrs: &CollectiveAttrs) -> Result<CollectiveAttrs> {
    crate::ensure!(count > 0, "builder.C4", "a split into 0 blocks");
    let mut attrs = attrs.clone();
    if attrs.replica_groups.is_empty() {
        if count > MAX_PARTICIPANTS {
            let detail = format!("{count} participants; at most {MAX_PARTICIPANTS} are listed");
            return Err(Error::exhausted(detail));
        }
        attrs.replica_groups = ReplicaGroups::List(vec![(0..count).collect()]);
    }
    let size = attrs.replica_groups.group_size();
    crate::ensure!(
        size.is_none_or(|size| size == count),
        "builder.C4",
        "a split into {count} blocks for groups of {} participants",
        size.unwrap_or_default()
    );
    Ok(attrs)
}
