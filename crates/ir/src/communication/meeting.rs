//! Who meets in a collective, and whose operands the result depends on.

use std::borrow::Cow;

use super::{Found, found, places};
use crate::ops::{CollectiveAttrs, GroupMode, ReplicaGroups};
use crate::{InstrAt, Module, Op};

/// The numbers of replicas and partitions.
pub(super) type Counts = (usize, usize);

/// A collective operation.
pub(super) struct Collective<'a> {
    pub(super) attrs: Cow<'a, CollectiveAttrs>,
    pub(super) mode: GroupMode,
    pub(super) gives: Gives<'a>,
}

/// What a participant gets of what its group gives.
#[derive(Clone, Copy)]
pub(super) enum Gives<'a> {
    /// All get the same.
    Same,
    /// Each gets another part.
    Part,
    /// What the group's first gives.
    First,
    /// What the source gives whose target it is: numbers within the group of all.
    Source(&'a [(usize, usize)]),
}

impl<'a> Collective<'a> {
    /// The collective that an operation is, or begins.
    pub(super) fn of(op: &'a Op) -> Option<Self> {
        let listed = |attrs: &'a CollectiveAttrs, gives| {
            // The verifier has checked that there is one.
            let mode = attrs.mode().ok()?;
            Some(Collective { attrs: Cow::Borrowed(attrs), mode, gives })
        };
        let by_channel = |attrs: &'a CollectiveAttrs, gives| {
            let mode = attrs.mode_by_channel();
            Some(Collective { attrs: Cow::Borrowed(attrs), mode, gives })
        };
        let permute = |op: &'a crate::ops::CollectivePermute| {
            let attrs = CollectiveAttrs { channel_id: op.channel_id, ..Default::default() };
            let (mode, gives) = (attrs.mode_by_channel(), Gives::Source(&op.pairs));
            Some(Collective { attrs: Cow::Owned(attrs), mode, gives })
        };
        match op {
            Op::AllReduce(op) => listed(&op.attrs, Gives::Same),
            Op::AllReduceStart(op) => listed(&op.op.attrs, Gives::Same),
            Op::AllGather(op) => listed(&op.attrs, Gives::Same),
            Op::AllGatherStart(op) => listed(&op.op.attrs, Gives::Same),
            Op::ReduceScatter(op) => listed(&op.attrs, Gives::Part),
            Op::AllToAll(op) => by_channel(&op.attrs, Gives::Part),
            Op::RaggedAllToAll(op) => by_channel(&op.attrs, Gives::Part),
            Op::CollectiveBroadcast(op) => by_channel(&op.attrs, Gives::First),
            Op::CollectivePermute(op) => permute(op),
            Op::CollectivePermuteStart(op) => permute(&op.op),
            _ => None,
        }
    }

    /// The greatest number that its groups or pairs list.
    fn greatest(&self) -> Option<usize> {
        let of_groups = match &self.attrs.replica_groups {
            ReplicaGroups::List(lists) => lists.iter().flatten().copied().max(),
            ReplicaGroups::Iota { reshape, .. }
            | ReplicaGroups::Mesh { iota: Some((_, _, reshape, _)), .. } => {
                let count = reshape.iter().copied().fold(1, usize::saturating_mul);
                count.checked_sub(1)
            }
            ReplicaGroups::Mesh { iota: None, .. } => None,
        };
        let pairs = match self.gives {
            Gives::Source(pairs) => pairs,
            _ => &[],
        };
        let paired = pairs.iter().map(|&(source, target)| source.max(target)).max();
        of_groups.max(paired)
    }

    /// What its numbers are of.
    fn whose(&self, counts: Counts) -> (&'static str, usize) {
        match self.mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => ("replicas", counts.0),
            GroupMode::CrossPartition => ("partitions", counts.1),
            GroupMode::FlattenedId => ("participants", counts.0.saturating_mul(counts.1)),
        }
    }

    /// The groups, of participants as `replica * partitions + partition`; `None` if they do not fit
    /// these counts, or are not known.
    pub(super) fn groups(&self, counts: Counts) -> Option<Vec<Vec<usize>>> {
        let (replicas, partitions) = counts;
        let count = self.whose(counts).1;
        if self.greatest().is_some_and(|greatest| greatest >= count) {
            return None;
        }
        let lists = if self.attrs.replica_groups.is_empty() {
            vec![(0..count).collect()]
        } else {
            self.attrs.replica_groups.lists().ok()?
        };
        let each = |ids: &Vec<usize>, number: &dyn Fn(usize) -> usize| -> Vec<usize> {
            ids.iter().map(|&id| number(id)).collect()
        };
        Some(match self.mode {
            GroupMode::CrossReplica => (0..partitions)
                .flat_map(|p| lists.iter().map(move |ids| each(ids, &|r| r * partitions + p)))
                .collect(),
            GroupMode::CrossPartition => (0..replicas)
                .flat_map(|r| lists.iter().map(move |ids| each(ids, &|p| r * partitions + p)))
                .collect(),
            GroupMode::CrossReplicaAndPartition => {
                let all = |r: &usize| (0..partitions).map(move |p| r * partitions + p).collect();
                let all = |ids: &Vec<usize>| ids.iter().flat_map::<Vec<usize>, _>(all).collect();
                lists.iter().map(all).collect()
            }
            GroupMode::FlattenedId => lists,
        })
    }
}

/// How many replicas and partitions the module says there are; `None` if it was made for any number.
fn stated(module: &Module) -> Option<Counts> {
    let config = &module.config;
    let counts = (config.replica_count.unwrap_or(1), config.num_partitions.unwrap_or(1));
    (counts != (1, 1)).then_some(counts)
}

/// How many replicas and partitions there are: as the module says, or else the fewest with which its
/// groups make sense and participants differ.
pub(super) fn counts(module: &Module) -> Counts {
    if let Some(counts) = stated(module) {
        return counts;
    }
    let (mut replicas, mut partitions) = (2, 1);
    for (_, instr) in places(module) {
        if let Some(collective) = Collective::of(&instr.op) {
            let listed = collective.greatest().map_or(0, |id| id.saturating_add(1));
            if collective.mode == GroupMode::CrossPartition {
                partitions = partitions.max(listed).max(2);
            } else {
                replicas = replicas.max(listed);
            }
        }
        if matches!(instr.op, Op::PartitionId(_)) {
            partitions = partitions.max(2);
        }
    }
    (replicas, partitions)
}

/// `collective.C2`: what groups and pairs number is there, if the module says how many there are.
pub(super) fn warnings(module: &Module) -> Vec<Found> {
    let Some(counts) = stated(module) else { return Vec::new() };
    let check = |(place, instr): (InstrAt, &_)| {
        let instr: &crate::Instr = instr;
        let collective = Collective::of(&instr.op)?;
        let (whose, count) = collective.whose(counts);
        let greatest = collective.greatest().filter(|&greatest| greatest >= count)?;
        let mode = collective.mode;
        let detail = format!(
            "numbers {whose} up to {greatest} ({mode}), of which there are {count}; whether numbers \
             are of replicas or partitions follows from channel_id and use_global_device_ids"
        );
        Some(found(place, instr, "collective.C2", detail))
    };
    places(module).filter_map(check).collect()
}
