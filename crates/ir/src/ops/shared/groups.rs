//! Who takes part in a collective: groups of participants, in text and expanded.

use std::fmt::{self, Display};

use crate::text::attrs::{AttrReader, AttrWriter, Scan};
use crate::{Error, Module, Result, ensure};

/// The most participants that groups are expanded for.
pub const MAX_PARTICIPANTS: usize = 1 << 20;

/// Which participants of a collective act together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaGroups {
    /// `{{0,1},{2,3}}`; no group at all stands for one of all participants.
    List(Vec<Vec<usize>>),
    /// `[2,2]<=[2,2]T(1,0)`: iota of the product of `reshape`, under those dimensions, transposed,
    /// then cut into `groups` rows of `size`.
    Iota {
        /// The number of groups.
        groups: usize,
        /// The participants in each.
        size: usize,
        /// The dimensions under which participants are numbered.
        reshape: Vec<usize>,
        /// Their permutation; empty for none.
        transpose: Vec<usize>,
    },
    /// `mesh['a'=2,'b'=4] {'b'}`: those that differ only along the axes listed last act together.
    Mesh {
        /// The text as written.
        text: String,
        /// The same as an [`ReplicaGroups::Iota`]: number and size of the groups, the sizes of the
        /// mesh's axes, and these axes in an order that ends with the ones listed. `None` if the
        /// text has a part (device numbers, parts of axes) that helio only keeps.
        iota: Option<(usize, usize, Vec<usize>, Vec<usize>)>,
    },
}

impl Default for ReplicaGroups {
    fn default() -> Self {
        ReplicaGroups::List(Vec::new())
    }
}

/// The product, or an error that it is not a number of participants.
fn product(sizes: &[usize]) -> Result<usize> {
    let product = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    product.ok_or_else(|| {
        Error::rule(
            "groups.C7",
            format!("the product of {sizes:?} is not a number of participants"),
        )
    })
}

/// Iota under the dimensions `reshape`, permuted, cut into rows of `size`.
fn expand(size: usize, reshape: &[usize], transpose: &[usize]) -> Vec<Vec<usize>> {
    let strides = crate::types::strides(reshape);
    let natural: Vec<_> = (0..reshape.len()).collect();
    let order = if transpose.is_empty() { &natural[..] } else { transpose };
    let dims: Vec<_> = order.iter().map(|&d| reshape[d]).collect();
    let strides: Vec<_> = order.iter().map(|&d| strides[d]).collect();
    let mut points = crate::types::IndexIter::new(&dims);
    let mut ids = Vec::new();
    while let Some(point) = points.next_point() {
        ids.push(point.iter().zip(&strides).map(|(i, stride)| i * stride).sum());
    }
    ids.chunks(size.max(1)).map(<[usize]>::to_vec).collect()
}

impl ReplicaGroups {
    /// Errors: `groups.C2` if a participant is listed twice, or is not below `limit`.
    fn check_ids(&self, limit: Option<usize>) -> Result<()> {
        let ReplicaGroups::List(lists) = self else { return Ok(()) };
        let mut ids: Vec<_> = lists.iter().flatten().copied().collect();
        ids.sort_unstable();
        let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
        ensure!(
            twice.is_none(),
            "groups.C2",
            "replica_groups={self}: {} occurs more than once",
            twice.map_or(0, |pair| pair[0])
        );
        let greatest = ids.last().copied().unwrap_or_default();
        ensure!(
            limit.is_none_or(|limit| greatest < limit),
            "groups.C2",
            "replica_groups={self}: the numbers must be below {}, of which {greatest} is not",
            limit.unwrap_or_default()
        );
        Ok(())
    }

    /// Whether nothing is said, so that all participants are one group.
    pub fn is_empty(&self) -> bool {
        matches!(self, ReplicaGroups::List(groups) if groups.is_empty())
    }

    /// The number of participants, and of those in each group (`None` if groups differ in size, or
    /// there are none). Errors: `groups.C1`, `groups.C7`; `Unimplemented` for parts of a mesh.
    fn counts(&self) -> Result<(usize, Option<usize>)> {
        match self {
            ReplicaGroups::List(groups) => {
                let empty = groups.iter().position(Vec::is_empty);
                ensure!(
                    empty.is_none(),
                    "groups.C1",
                    "group {} of {self} is empty",
                    empty.unwrap_or_default()
                );
                let first = groups.first().map(Vec::len);
                let uniform = first.filter(|&len| groups.iter().all(|group| group.len() == len));
                Ok((groups.iter().map(Vec::len).sum(), uniform))
            }
            ReplicaGroups::Iota { groups, size, reshape, transpose }
            | ReplicaGroups::Mesh { iota: Some((groups, size, reshape, transpose)), .. } => {
                let count = product(reshape)?;
                ensure!(
                    count > 0 && product(&[*groups, *size])? == count,
                    "groups.C7",
                    "{self}: {groups} groups of {size} must be the {count} participants numbered"
                );
                let mut sorted = transpose.clone();
                sorted.sort_unstable();
                ensure!(
                    sorted.is_empty() || sorted.iter().copied().eq(0..reshape.len()),
                    "groups.C7",
                    "{self}: the transposition must list each of the {} dimensions once",
                    reshape.len()
                );
                Ok((count, Some(*size)))
            }
            ReplicaGroups::Mesh { iota: None, .. } => {
                Err(Error::unimplemented(format!("replica groups {self}")))
            }
        }
    }

    /// The number of participants in each group, if it is the same for all and groups are listed.
    pub fn group_size(&self) -> Option<usize> {
        self.counts().ok()?.1
    }

    /// The groups, each with its participants' numbers in order. Errors: sizes
    /// that do not fit each other; `ResourceExhausted` above [`MAX_PARTICIPANTS`].
    pub fn lists(&self) -> Result<Vec<Vec<usize>>> {
        let (count, _) = self.counts()?;
        if count > MAX_PARTICIPANTS {
            let detail = format!("{count} participants; at most {MAX_PARTICIPANTS} are expanded");
            return Err(Error::exhausted(detail));
        }
        match self {
            ReplicaGroups::List(groups) => Ok(groups.clone()),
            ReplicaGroups::Iota { size, reshape, transpose, .. }
            | ReplicaGroups::Mesh { iota: Some((_, size, reshape, transpose)), .. } => {
                Ok(expand(*size, reshape, transpose))
            }
            ReplicaGroups::Mesh { iota: None, .. } => Ok(Vec::new()), // an error of `counts`
        }
    }

    /// Reads `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2,'b'=2] {'a'}`.
    pub fn read(scan: &mut Scan<'_>) -> Result<Self> {
        if scan.rest().starts_with("mesh") || scan.rest().starts_with("maximal_mesh") {
            let text = scan.remainder().trim_end();
            return Ok(ReplicaGroups::Mesh { text: text.to_owned(), iota: read_mesh(text) });
        }
        if !scan.rest().starts_with('[') {
            let groups = scan.list('{', '}', |scan| scan.list('{', '}', Scan::size))?;
            return Ok(ReplicaGroups::List(groups));
        }
        let tiles = scan.list('[', ']', Scan::size)?;
        let [groups, size] = tiles[..] else {
            return Err(Error::invalid(format!("two sizes are needed, found {tiles:?}")));
        };
        scan.expect("<=")?;
        let reshape = scan.list('[', ']', Scan::size)?;
        let transpose = if scan.eat("T") { scan.list('(', ')', Scan::size)? } else { Vec::new() };
        Ok(ReplicaGroups::Iota { groups, size, reshape, transpose })
    }
}

/// The groups of `mesh['a'=2,'b'=4] {'b'}` as iota. `None` if there is more to the text, or if it
/// is wrong.
fn read_mesh(text: &str) -> Option<(usize, usize, Vec<usize>, Vec<usize>)> {
    let mut scan = Scan::new(text);
    scan.expect("mesh").ok()?;
    let name = |scan: &mut Scan<'_>| {
        let quote = if scan.eat("'") { "'" } else { scan.expect("\"").map(|()| "\"")? };
        let name = scan.word()?.to_owned();
        scan.expect(quote).map(|()| name)
    };
    let axes = scan
        .list('[', ']', |scan| {
            let name = name(scan)?;
            scan.expect("=")?;
            Ok((name, scan.size()?))
        })
        .ok()?;
    let listed = scan.list('{', '}', name).ok()?;
    scan.end().ok()?;
    let place = |name: &String| axes.iter().position(|(axis, _)| axis == name);
    let listed: Vec<usize> = listed.iter().map(place).collect::<Option<_>>()?;
    let sizes: Vec<usize> = axes.iter().map(|&(_, size)| size).collect();
    let order = (0..sizes.len()).filter(|d| !listed.contains(d)).chain(listed.iter().copied());
    let order: Vec<usize> = order.collect();
    let group: Vec<_> = listed.iter().map(|&d| sizes[d]).collect();
    let (all, size) = (product(&sizes).ok()?, product(&group).ok()?);
    Some((all.checked_div(size)?, size, sizes, order))
}

impl Display for ReplicaGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comma =
            |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        match self {
            ReplicaGroups::List(groups) => {
                let groups: Vec<_> = groups.iter().map(|g| format!("{{{}}}", comma(g))).collect();
                write!(f, "{{{}}}", groups.join(","))
            }
            ReplicaGroups::Iota { groups, size, reshape, transpose } => {
                write!(f, "[{groups},{size}]<=[{}]", comma(reshape))?;
                if transpose.is_empty() { Ok(()) } else { write!(f, "T({})", comma(transpose)) }
            }
            ReplicaGroups::Mesh { text, .. } => f.write_str(text),
        }
    }
}

/// What the numbers in replica groups stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupMode {
    /// Replicas; those of one partition act together.
    CrossReplica,
    /// Partitions; those of one replica act together.
    CrossPartition,
    /// Replicas; all partitions of all replicas in a group act together.
    CrossReplicaAndPartition,
    /// `replica * partition_count + partition`.
    FlattenedId,
}

impl Display for GroupMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupMode::CrossReplica => "cross-replica",
            GroupMode::CrossPartition => "cross-partition",
            GroupMode::CrossReplicaAndPartition => "cross-replica-and-partition",
            GroupMode::FlattenedId => "flattened-id",
        })
    }
}

/// What a collective requires of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupRule {
    /// Every participant is in one of them, and all have the same size.
    EqualSizes,
    /// Every participant is in one of them.
    Complete,
    /// Nobody is in two of them.
    Disjoint,
}

/// Who takes part in a collective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveAttrs {
    /// The groups that act together.
    pub replica_groups: ReplicaGroups,
    /// Set for communication across partitions (or modules).
    pub channel_id: Option<i64>,
    /// Whether the groups list flattened ids, `replica * num_partitions + partition`.
    pub use_global_device_ids: bool,
    /// Whether layouts must stay as they are; without effect on the value.
    pub constrain_layout: bool,
}

impl CollectiveAttrs {
    /// The mode of a collective that knows `use_global_device_ids` (all-reduce, all-gather,
    /// reduce-scatter). Errors: `groups.C6`.
    pub fn mode(&self) -> Result<GroupMode> {
        match (self.channel_id, self.use_global_device_ids) {
            (None, false) => Ok(GroupMode::CrossReplica),
            (Some(_), false) => Ok(GroupMode::CrossReplicaAndPartition),
            (Some(_), true) => Ok(GroupMode::FlattenedId),
            (None, true) => Err(Error::rule(
                "groups.C6",
                "use_global_device_ids=true requires a channel_id, and there is none",
            )),
        }
    }

    /// The mode of a collective that does not know `use_global_device_ids` (all the others).
    pub fn mode_by_channel(&self) -> GroupMode {
        match self.channel_id {
            None => GroupMode::CrossReplica,
            Some(_) => GroupMode::CrossPartition,
        }
    }

    /// Checks the groups against each other and against the module's counts, and gives the number
    /// of participants in each group: `None` if groups differ or the module does not say.
    /// Errors: `groups.C1` to `groups.C7`.
    pub(crate) fn check(
        &self,
        mode: GroupMode,
        rule: GroupRule,
        module: &Module,
    ) -> Result<Option<usize>> {
        let groups = &self.replica_groups;
        // A count of 1 is what modules say that were made for any number.
        let known = |count: Option<usize>| count.filter(|&count| count != 1);
        let replicas = known(module.config.replica_count);
        let partitions = known(module.config.num_partitions);
        let all = match (replicas, partitions) {
            (Some(r), Some(p)) => r.checked_mul(p),
            (r, p) => r.or(p),
        };
        if groups.is_empty() {
            ensure!(
                mode != GroupMode::FlattenedId,
                "groups.C5",
                "replica_groups={groups}: with use_global_device_ids=true, groups must be listed"
            );
            return Ok(match mode {
                GroupMode::CrossReplica => replicas,
                GroupMode::CrossPartition => partitions,
                GroupMode::CrossReplicaAndPartition | GroupMode::FlattenedId => all,
            });
        }
        if let ReplicaGroups::Mesh { iota: None, .. } = groups {
            return Ok(None); // kept only
        }
        let (count, size) = groups.counts()?;
        let (stated, what) = match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => (replicas, "replicas"),
            GroupMode::CrossPartition => (partitions, "partitions"),
            GroupMode::FlattenedId => (all, "participants"),
        };
        let limit = match rule {
            GroupRule::EqualSizes | GroupRule::Complete => Some(count),
            GroupRule::Disjoint => stated,
        };
        groups.check_ids(limit)?;
        ensure!(
            rule == GroupRule::Disjoint || stated.is_none_or(|stated| stated == count),
            "groups.C3",
            "replica_groups={groups} lists {count} {what} ({mode}), the module has {}",
            stated.unwrap_or_default()
        );
        ensure!(
            size.is_some() || rule != GroupRule::EqualSizes,
            "groups.C4",
            "replica_groups={groups}: the groups must have equal sizes"
        );
        // All partitions of the listed replicas are in the group.
        Ok(match mode {
            GroupMode::CrossReplicaAndPartition => {
                size.and_then(|size| size.checked_mul(partitions.unwrap_or(1)))
            }
            _ => size,
        })
    }

    /// The participants, as (replica, partition), that act together with participant `me`, in the
    /// order of the group; `me` is one of them. `None` if `me` is in no group. `counts` are the
    /// numbers of replicas and partitions. Errors: as for [`ReplicaGroups::lists`];
    /// `InvalidArgument` if somebody in the group is not below `counts`.
    pub fn group_of(
        &self,
        mode: GroupMode,
        me: (usize, usize),
        counts: (usize, usize),
    ) -> Result<Option<Vec<(usize, usize)>>> {
        let (replicas, partitions) = counts;
        let too_many = || Error::exhausted("more participants than memory has addresses");
        let all = replicas.checked_mul(partitions).ok_or_else(too_many)?;
        let (number, count) = match mode {
            GroupMode::CrossReplica | GroupMode::CrossReplicaAndPartition => (me.0, replicas),
            GroupMode::CrossPartition => (me.1, partitions),
            GroupMode::FlattenedId => {
                let replica = me.0.checked_mul(partitions).ok_or_else(too_many)?;
                (replica.checked_add(me.1).ok_or_else(too_many)?, all)
            }
        };
        let group = if self.replica_groups.is_empty() {
            (0..count).collect()
        } else {
            let groups = self.replica_groups.lists()?;
            let mine = groups.into_iter().find(|group| group.contains(&number));
            let Some(mine) = mine else { return Ok(None) };
            mine
        };
        if let Some(id) = group.iter().find(|&&id| id >= count) {
            let groups = &self.replica_groups;
            let detail = format!("replica_groups={groups}: {id} is not below {count} ({mode})");
            return Err(Error::invalid(detail));
        }
        Ok(Some(match mode {
            GroupMode::CrossReplica => group.into_iter().map(|id| (id, me.1)).collect(),
            GroupMode::CrossPartition => group.into_iter().map(|id| (me.0, id)).collect(),
            GroupMode::CrossReplicaAndPartition => {
                let partitions = |replica| (0..partitions).map(move |p| (replica, p));
                group.into_iter().flat_map(partitions).collect()
            }
            // `count` is above `id`, so `partitions` is not 0.
            GroupMode::FlattenedId => {
                group.into_iter().map(|id| (id / partitions, id % partitions)).collect()
            }
        }))
    }

    /// Reads `channel_id`, `replica_groups` and `constrain_layout`, each of which may be missing.
    pub fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(CollectiveAttrs {
            replica_groups: attrs.parse("replica_groups", ReplicaGroups::read)?.unwrap_or_default(),
            channel_id: attrs.int("channel_id")?,
            use_global_device_ids: false,
            constrain_layout: attrs.flag("constrain_layout")?.unwrap_or(false),
        })
    }

    /// Reads `use_global_device_ids`, too.
    pub fn read_with_ids(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let use_global_device_ids = attrs.flag("use_global_device_ids")?.unwrap_or(false);
        Ok(CollectiveAttrs { use_global_device_ids, ..Self::read(attrs)? })
    }

    /// Writes what [`Self::read`] reads.
    pub fn write(&self, attrs: &mut AttrWriter<'_>) {
        if let Some(channel) = self.channel_id {
            attrs.put("channel_id", channel);
        }
        attrs.put("replica_groups", &self.replica_groups);
        attrs.flag("constrain_layout", self.constrain_layout);
    }

    /// Writes `use_global_device_ids`, which stands apart from the others.
    pub fn write_ids(&self, attrs: &mut AttrWriter<'_>) {
        attrs.flag("use_global_device_ids", self.use_global_device_ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ReplicaGroups> {
        let mut scan = Scan::new(text);
        let groups = ReplicaGroups::read(&mut scan)?;
        scan.end()?;
        Ok(groups)
    }

    fn attrs(groups: &str) -> CollectiveAttrs {
        CollectiveAttrs { replica_groups: read(groups).unwrap(), ..Default::default() }
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "{}",
            "{{0,1},{2,3}}",
            "[2,2]<=[4]",
            "[4,2]<=[2,2,2]T(1,0,2)",
            "mesh['a'=2,'b'=2] {'a'}",
            "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b':(1)2}",
        ] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for text in ["", "{0,1}", "[2]<=[2]", "[2,1]", "[1,2]<=[2]T", "{{0}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn expansion() {
        // The iota forms: XLA's own examples in the comments of its IotaReplicaGroupList tests,
        // recomputed with numpy: arange(8).reshape(2,2,2).transpose(1,0,2).reshape(4,2).
        let lists = |text: &str| read(text).unwrap().lists().unwrap();
        assert_eq!(lists("{{0,2},{1,3}}"), [[0, 2], [1, 3]]);
        assert_eq!(lists("[2,2]<=[4]"), [[0, 1], [2, 3]]);
        assert_eq!(lists("[2,2]<=[2,2]T(1,0)"), [[0, 2], [1, 3]]);
        assert_eq!(lists("[4,2]<=[2,2,2]T(1,0,2)"), [[0, 1], [4, 5], [2, 3], [6, 7]]);
        assert_eq!(lists("mesh['a'=2,'b'=2] {'a'}"), [[0, 2], [1, 3]]);
        assert_eq!(lists("mesh['a'=2,'b'=2] {'b'}"), [[0, 1], [2, 3]]);
        let kept = read("mesh['a'=4] {'a':(1)2}").unwrap();
        assert_eq!(kept.lists().unwrap_err().code(), crate::Code::Unimplemented);
        let huge = read("[1,99999999]<=[99999999]").unwrap();
        assert_eq!(huge.lists().unwrap_err().code(), crate::Code::ResourceExhausted);
        let overflow = read("[1,1]<=[9999999999,9999999999]").unwrap();
        assert_eq!(overflow.lists().unwrap_err().rule_id(), Some("groups.C7"));
    }

    #[test]
    fn modes() {
        let mut attrs = CollectiveAttrs::default();
        assert_eq!(attrs.mode().unwrap(), GroupMode::CrossReplica);
        assert_eq!(attrs.mode_by_channel(), GroupMode::CrossReplica);
        attrs.use_global_device_ids = true;
        assert_eq!(attrs.mode().unwrap_err().rule_id(), Some("groups.C6"));
        attrs.channel_id = Some(1);
        assert_eq!(attrs.mode().unwrap(), GroupMode::FlattenedId);
        assert_eq!(attrs.mode_by_channel(), GroupMode::CrossPartition);
        attrs.use_global_device_ids = false;
        assert_eq!(attrs.mode().unwrap(), GroupMode::CrossReplicaAndPartition);
    }

    #[test]
    fn groups_of_participants() {
        // The StableHLO specification's examples: 2 replicas and 2 partitions.
        let group =
            |groups: &str, mode, me| attrs(groups).group_of(mode, me, (2, 2)).unwrap().unwrap();
        assert_eq!(group("{{0,1}}", GroupMode::CrossReplica, (1, 1)), [(0, 1), (1, 1)]);
        assert_eq!(group("{}", GroupMode::CrossReplica, (1, 0)), [(0, 0), (1, 0)]);
        assert_eq!(group("{{1,0}}", GroupMode::CrossPartition, (1, 0)), [(1, 1), (1, 0)]);
        assert_eq!(
            group("{{0},{1}}", GroupMode::CrossReplicaAndPartition, (1, 0)),
            [(1, 0), (1, 1)]
        );
        assert_eq!(group("{{0,3},{1,2}}", GroupMode::FlattenedId, (1, 1)), [(0, 0), (1, 1)]);
        assert_eq!(attrs("{{0}}").group_of(GroupMode::CrossReplica, (1, 0), (2, 1)), Ok(None));
        assert!(attrs("{{0,5}}").group_of(GroupMode::CrossReplica, (0, 0), (2, 1)).is_err());
    }

    #[test]
    fn checks() {
        let mut module = Module::new("m");
        let mode = GroupMode::CrossReplica;
        let rule = |groups: &str, module: &Module| {
            attrs(groups).check(mode, GroupRule::EqualSizes, module).unwrap_err().rule_id()
        };
        assert_eq!(rule("{{}}", &module), Some("groups.C1"));
        assert_eq!(rule("{{0,1},{1}}", &module), Some("groups.C2"));
        assert_eq!(rule("{{0},{2}}", &module), Some("groups.C2"));
        assert_eq!(rule("{{0,1},{2}}", &module), Some("groups.C4"));
        assert_eq!(rule("[2,2]<=[3]", &module), Some("groups.C7"));
        assert_eq!(rule("[2,2]<=[2,2]T(0,0)", &module), Some("groups.C7"));
        assert_eq!(rule("[0,0]<=[0]", &module), Some("groups.C7"));
        assert_eq!(attrs("{{0,1},{2}}").check(mode, GroupRule::Complete, &module).unwrap(), None);
        assert_eq!(attrs("{{7,1}}").check(mode, GroupRule::Disjoint, &module).unwrap(), Some(2));
        assert_eq!(
            attrs("[2,3]<=[6]").check(mode, GroupRule::EqualSizes, &module).unwrap(),
            Some(3)
        );
        module.config.replica_count = Some(4);
        assert_eq!(rule("{{0,1}}", &module), Some("groups.C3"));
        assert_eq!(attrs("{}").check(mode, GroupRule::EqualSizes, &module).unwrap(), Some(4));
        let flat = attrs("{}").check(GroupMode::FlattenedId, GroupRule::EqualSizes, &module);
        assert_eq!(flat.unwrap_err().rule_id(), Some("groups.C5"));
    }
}
