//! Collectives, `all-reduce` to `ragged-all-to-all`: exchange of arrays in groups of participants;
//! and `replica-id` and `partition-id`, which say which participant this is.

use super::Arity;
use super::check::{ensure_dim, merge_dim};
use super::reducer::fits;
use super::shared::{CollectiveAttrs, GroupRule, ensure_once, read_pairs};
use crate::text::attrs::{AttrReader, AttrWriter};
use crate::types::DimKind;
use crate::{ArrayShape, CompId, ElementType, Error, InferCx, OpDef, Result, Shape, ensure};

/// One array as it is, several as a tuple.
fn one_or_tuple(arrays: Vec<ArrayShape>) -> Shape {
    let mut shapes: Vec<Shape> =
        arrays.into_iter().map(|array| Shape::Array(array.without_layout())).collect();
    if shapes.len() == 1 { shapes.remove(0) } else { Shape::Tuple(shapes) }
}

/// The operands' shapes. Errors: `rule` unless all are arrays.
fn same_as_operands(cx: &InferCx<'_>, rule: &'static str) -> Result<Shape> {
    Ok(one_or_tuple(cx.arrays(rule)?.into_iter().cloned().collect()))
}

/// Checks that `callee` folds scalars of the operands' type. Errors: `all-reduce.C2` and
/// `all-reduce.C3`.
fn ensure_fold(cx: &InferCx<'_>, callee: CompId, arrays: &[&ArrayShape]) -> Result<()> {
    let callee = cx.callee(callee);
    let params = callee.params();
    let result = callee.result_shape();
    let scalar = result.as_array().filter(|array| array.is_scalar()).map(ArrayShape::element);
    let same = params.values().all(|&id| callee.instr(id).shape.same(result));
    let Some(element) = scalar.filter(|_| same && params.len() == 2) else {
        return Err(Error::rule(
            "all-reduce.C2",
            format!(
                "{} must take 2 scalars and give a scalar of the same type, is {}",
                callee.name,
                callee.program_shape()
            ),
        ));
    };
    for (i, array) in arrays.iter().enumerate() {
        ensure!(
            fits(array.element(), element),
            "all-reduce.C3",
            "{} folds {element}[], but operand {i} is {array}",
            callee.name
        );
    }
    Ok(())
}

/// `dimensions={3}`, which may be missing.
fn read_dimension(attrs: &mut AttrReader<'_>) -> Result<Option<usize>> {
    attrs.one_size("dimensions")
}

/// How many parts there are, of the sizes of a dimension before and after it is split: what the first
/// arrays show in which it is not empty; `otherwise` if it is empty in all. XLA rounds up, so that a
/// size that does not fit shows as a wrong shape rather than a wrong number of parts.
fn shards(whole: &[usize], part: &[usize], otherwise: Option<usize>) -> usize {
    let shown = whole.iter().zip(part).find(|&(&whole, &part)| whole > 0 && part > 0);
    shown.map_or(otherwise.unwrap_or(1), |(whole, part)| whole.div_ceil(*part))
}

/// The size of a dimension of each array in these shapes; 0 where there is no such dimension.
fn sizes(shapes: &[&Shape], d: usize) -> Vec<usize> {
    let arrays = shapes.iter().flat_map(|shape| shape.leaves()).filter_map(Shape::as_array);
    arrays.map(|array| array.dims().get(d).copied().unwrap_or(0)).collect()
}

/// The size that groups must have for arrays to have `shard_count` parts along a dimension; `None` if
/// it is empty in all of them, so that any number of parts is none.
fn group_size(shard_count: usize, dimension: usize, arrays: &[&ArrayShape]) -> Option<usize> {
    let is_empty = |array: &&ArrayShape| {
        array.dims().get(dimension) == Some(&0) && array.kinds()[dimension] != DimKind::Unbounded
    };
    (!arrays.iter().all(is_empty)).then_some(shard_count)
}

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
        let arrays = cx.arrays("all-reduce.C1")?;
        ensure_fold(cx, self.to_apply, &arrays)?;
        self.attrs.check(self.attrs.mode()?, GroupRule::Complete, cx.module)?;
        same_as_operands(cx, "all-reduce.C1")
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // Some versions of XLA wrote the mode, which the other attributes imply.
        attrs.take("mode");
        Ok(AllReduce {
            attrs: CollectiveAttrs::read_with_ids(attrs)?,
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
        self.attrs.write_ids(attrs);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
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

impl AllGather {
    /// Reads the attributes of an all-gather (or its beginning) with this result.
    pub(super) fn read_with(attrs: &mut AttrReader<'_>, result: Option<&Shape>) -> Result<Self> {
        let collective = CollectiveAttrs::read_with_ids(attrs)?;
        let dimension = read_dimension(attrs)?;
        let dimension = attrs.require("dimensions", dimension)?;
        let results = result.map_or(Vec::new(), |result| sizes(&[result], dimension));
        let operands = sizes(attrs.operands, dimension);
        let shard_count = shards(&results, &operands, collective.replica_groups.group_size());
        Ok(AllGather { attrs: collective, dimension, shard_count })
    }

    /// How many participants a group must have for operands of these shapes; `None` if any number
    /// gives the same.
    pub fn group_size(&self, operands: &[&ArrayShape]) -> Option<usize> {
        group_size(self.shard_count, self.dimension, operands)
    }
}

impl OpDef for AllGather {
    const OPCODE: &'static str = "all-gather";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let arrays = cx.arrays("all-gather.C1")?;
        let size = self.attrs.check(self.attrs.mode()?, GroupRule::EqualSizes, cx.module)?;
        let size = size.filter(|_| self.group_size(&arrays).is_some());
        ensure_shard_count("all-gather.C3", self.shard_count, size)?;
        let result = |array: &ArrayShape| {
            ensure_dim("all-gather.C2", "dimensions", self.dimension, array)?;
            let (mut dims, mut kinds) = (array.dims().to_vec(), array.kinds().to_vec());
            let (size, kind) = (&mut dims[self.dimension], &mut kinds[self.dimension]);
            *size = size.checked_mul(self.shard_count).ok_or_else(|| {
                let detail = format!(
                    "{} times dimension {} of {array} is more than memory has addresses",
                    self.shard_count, self.dimension
                );
                Error::rule("all-gather.C4", detail)
            })?;
            if *kind == DimKind::Bounded {
                // All of each part is joined, whatever its size at run time.
                *kind = DimKind::Static;
            }
            ArrayShape::with_kinds(array.element(), dims, kinds)
        };
        Ok(one_or_tuple(arrays.into_iter().map(result).collect::<Result<_>>()?))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        let result = attrs.result;
        Self::read_with(attrs, Some(result))
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
        attrs.one_size("dimensions", self.dimension);
        self.attrs.write_ids(attrs);
    }
}

/// Errors: `rule` unless the number of parts is positive and, if known, that of the participants.
fn ensure_shard_count(rule: &'static str, count: usize, group: Option<usize>) -> Result<()> {
    ensure!(
        count > 0 && group.is_none_or(|group| group == count),
        rule,
        "the shapes show {count} parts, the groups have {} participants",
        group.map_or("any number of".to_owned(), |group| group.to_string())
    );
    Ok(())
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
        let arrays = cx.arrays("all-to-all.C1")?;
        let mode = self.attrs.mode_by_channel();
        let group = self.attrs.check(mode, GroupRule::EqualSizes, cx.module)?;
        let (first, count) = (arrays[0], arrays.len());
        let Some(dimension) = self.dimension else {
            ensure!(
                group.is_none_or(|group| group == count),
                "all-to-all.C5",
                "without dimensions, there must be an operand for each of the {} participants of \
                 a group, are {count}",
                group.unwrap_or_default()
            );
            for (i, array) in arrays.iter().enumerate() {
                ensure!(
                    array.same(first),
                    "all-to-all.C6",
                    "operand {i} must be {first} as operand 0, is {array}"
                );
            }
            let arrays = arrays.into_iter().map(|array| array.clone().without_layout().into());
            return Ok(Shape::Tuple(arrays.collect()));
        };
        ensure!(
            count == 1,
            "all-to-all.C2",
            "with dimensions={{{dimension}}}, there must be one operand, are {count}"
        );
        ensure_dim("all-to-all.C3", "dimensions", dimension, first)?;
        let (size, kind) = first.dim(dimension);
        ensure!(
            kind == DimKind::Unbounded || group.is_none_or(|group| size.is_multiple_of(group)),
            "all-to-all.C4",
            "dimension {dimension} of {first} must be a multiple of {}, the participants of a \
             group",
            group.unwrap_or_default()
        );
        ensure!(
            !first.kinds().contains(&DimKind::Bounded),
            "all-to-all.C7",
            "the operand must not have bounded dimensions, is {first}"
        );
        same_as_operands(cx, "all-to-all.C1")
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        Ok(AllToAll { attrs: CollectiveAttrs::read(attrs)?, dimension: read_dimension(attrs)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
        if let Some(dimension) = self.dimension {
            attrs.one_size("dimensions", dimension);
        }
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

impl CollectivePermute {
    /// Errors: `collective-permute.C2` and `collective-permute.C3`.
    pub(super) fn check(&self, cx: &InferCx<'_>) -> Result<()> {
        ensure_once("collective-permute.C2", &self.pairs)?;
        let config = &cx.module.config;
        let (count, whose) = match self.channel_id {
            None => (config.replica_count, "replicas"),
            Some(_) => (config.num_partitions, "partitions"),
        };
        // A count of 1 is what modules say that were made for any number.
        let Some(count) = count.filter(|&count| count != 1) else { return Ok(()) };
        let sources = self.pairs.iter().map(|&(source, _)| ("source", source));
        let targets = self.pairs.iter().map(|&(_, target)| ("target", target));
        if let Some((what, id)) = sources.chain(targets).find(|&(_, id)| id >= count) {
            return Err(Error::rule(
                "collective-permute.C3",
                format!("source_target_pairs: {what} {id}, but the module has {count} {whose}"),
            ));
        }
        Ok(())
    }
}

impl OpDef for CollectivePermute {
    const OPCODE: &'static str = "collective-permute";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let shape = same_as_operands(cx, "collective-permute.C1")?;
        self.check(cx)?;
        Ok(shape)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        if attrs.take("slice_sizes").is_some() {
            return Err(Error::unimplemented(format!("{} with slice_sizes", attrs.opcode)));
        }
        let pairs =
            attrs.needed("source_target_pairs", |attrs, name| attrs.parse(name, read_pairs))?;
        Ok(CollectivePermute { pairs, channel_id: attrs.int("channel_id")? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        if let Some(channel) = self.channel_id {
            attrs.put("channel_id", channel);
        }
        let pairs: Vec<_> = self.pairs.iter().map(|(s, t)| format!("{{{s},{t}}}")).collect();
        attrs.list("source_target_pairs", &pairs);
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

impl ReduceScatter {
    /// How many participants a group must have for operands of these shapes; `None` if any number
    /// gives the same.
    pub fn group_size(&self, operands: &[&ArrayShape]) -> Option<usize> {
        group_size(self.shard_count, self.dimension, operands)
    }
}

impl OpDef for ReduceScatter {
    const OPCODE: &'static str = "reduce-scatter";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let arrays = cx.arrays("reduce-scatter.C1")?;
        ensure_fold(cx, self.to_apply, &arrays)?;
        let size = self.attrs.check(self.attrs.mode()?, GroupRule::EqualSizes, cx.module)?;
        let size = size.filter(|_| self.group_size(&arrays).is_some());
        ensure_shard_count("reduce-scatter.C3", self.shard_count, size)?;
        let result = |array: &ArrayShape| {
            ensure_dim("reduce-scatter.C2", "dimensions", self.dimension, array)?;
            let (mut dims, kinds) = (array.dims().to_vec(), array.kinds().to_vec());
            let size = &mut dims[self.dimension];
            // `reduce-scatter.C3`: the number of parts is positive.
            ensure!(
                size.is_multiple_of(self.shard_count),
                "reduce-scatter.C4",
                "dimension {} of {array} must be a multiple of {}, the participants of a group",
                self.dimension,
                self.shard_count
            );
            *size /= self.shard_count;
            ArrayShape::with_kinds(array.element(), dims, kinds)
        };
        Ok(one_or_tuple(arrays.into_iter().map(result).collect::<Result<_>>()?))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        attrs.take("mode"); // as for all-reduce
        let collective = CollectiveAttrs::read_with_ids(attrs)?;
        let dimension = read_dimension(attrs)?;
        let dimension = attrs.require("dimensions", dimension)?;
        let (operands, results) =
            (sizes(attrs.operands, dimension), sizes(&[attrs.result], dimension));
        Ok(ReduceScatter {
            shard_count: shards(&operands, &results, collective.replica_groups.group_size()),
            attrs: collective,
            dimension,
            to_apply: attrs.needed("to_apply", AttrReader::computation)?,
        })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
        self.attrs.write_ids(attrs);
        attrs.one_size("dimensions", self.dimension);
        attrs.computation("to_apply", self.to_apply);
    }

    calls!(to_apply);
}

/// Gives the first participant's operand to all of its group; who is in no group gets zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveBroadcast {
    /// Who takes part.
    pub attrs: CollectiveAttrs,
}

impl OpDef for CollectiveBroadcast {
    const OPCODE: &'static str = "collective-broadcast";
    const ARITY: Arity = Arity::AtLeast(1);

    fn infer(&self, cx: &InferCx<'_>) -> Result<Shape> {
        let shape = same_as_operands(cx, "collective-broadcast.C1")?;
        self.attrs.check(self.attrs.mode_by_channel(), GroupRule::Disjoint, cx.module)?;
        Ok(shape)
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        if attrs.flag("has_dynamic_root")? == Some(true) {
            return Err(Error::unimplemented("collective-broadcast with has_dynamic_root=true"));
        }
        Ok(CollectiveBroadcast { attrs: CollectiveAttrs::read(attrs)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
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
        let arrays = cx.arrays("ragged-all-to-all.C1")?;
        let mode = self.attrs.mode_by_channel();
        let group = self.attrs.check(mode, GroupRule::EqualSizes, cx.module)?;
        let (input, output, offsets) = (arrays[0], arrays[1], arrays[2]);
        for (i, array) in arrays.iter().enumerate().skip(2) {
            ensure!(
                array.same(offsets),
                "ragged-all-to-all.C2",
                "operand {i} must be {offsets} as operand 2, is {array}"
            );
        }
        ensure!(
            offsets.element().is_integer() && matches!(offsets.rank(), 1 | 2),
            "ragged-all-to-all.C3",
            "operand 2 must hold integers in 1 or 2 dimensions, is {offsets}"
        );
        let (slots, kind) = offsets.dim(0);
        ensure!(
            kind == DimKind::Unbounded || group.is_none_or(|group| slots.is_multiple_of(group)),
            "ragged-all-to-all.C4",
            "dimension 0 of operand 2, {offsets}, must be a multiple of {}, the participants of a \
             group",
            group.unwrap_or_default()
        );
        let rows = |array: &ArrayShape| (1..array.rank()).map(|d| array.dim(d)).collect::<Vec<_>>();
        let (a, b) = (rows(input), rows(output));
        ensure!(
            input.rank() > 0
                && input.rank() == output.rank()
                && input.element() == output.element()
                && a.iter().zip(&b).all(|(&a, &b)| merge_dim(a, b).is_some()),
            "ragged-all-to-all.C5",
            "operands 0 and 1 must agree but for the size of dimension 0, are {input} and {output}"
        );
        Ok(Shape::Array(output.clone().without_layout()))
    }

    fn read(attrs: &mut AttrReader<'_>) -> Result<Self> {
        // XLA knows this attribute, but makes nothing of it.
        read_dimension(attrs)?;
        Ok(RaggedAllToAll { attrs: CollectiveAttrs::read(attrs)? })
    }

    fn write(&self, attrs: &mut AttrWriter<'_>) {
        self.attrs.write(attrs);
    }
}

/// The number of this replica, as `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaId;

impl OpDef for ReplicaId {
    const OPCODE: &'static str = "replica-id";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        Ok(Shape::scalar(ElementType::U32))
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(ReplicaId)
    }
}

/// The number of this partition, as `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionId;

impl OpDef for PartitionId {
    const OPCODE: &'static str = "partition-id";
    const ARITY: Arity = Arity::Exactly(0);

    fn infer(&self, _: &InferCx<'_>) -> Result<Shape> {
        Ok(Shape::scalar(ElementType::U32))
    }

    fn read(_: &mut AttrReader<'_>) -> Result<Self> {
        Ok(PartitionId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;
    use crate::ops::shared::ReplicaGroups;
    use crate::ops::testing::{C0, infer, infer_in, module};

    fn groups(lists: &[&[usize]]) -> CollectiveAttrs {
        let lists = lists.iter().map(|list| list.to_vec()).collect();
        CollectiveAttrs { replica_groups: ReplicaGroups::List(lists), ..Default::default() }
    }

    #[test]
    fn folds() {
        let f32s = module(&[(&["f32[]", "f32[]"], "f32[]")]);
        let all_reduce = AllReduce { attrs: groups(&[&[0, 1], &[2]]), to_apply: C0 };
        assert_eq!(infer_in(&f32s, all_reduce.clone(), &["f32[<=4]"]), "f32[<=4]");
        assert_eq!(infer_in(&f32s, all_reduce, &["f32[4]", "bf16[2]"]), "(f32[4], bf16[2])");
        let scatter = |shard_count| ReduceScatter {
            attrs: groups(&[&[0, 1]]),
            dimension: 1,
            shard_count,
            to_apply: C0,
        };
        assert_eq!(infer_in(&f32s, scatter(2), &["f32[3,4]"]), "f32[3,2]");
        assert_eq!(infer_in(&f32s, scatter(0), &["f32[3,4]"]), "reduce-scatter.C3");
        assert_eq!(infer_in(&f32s, scatter(4), &["f32[3,4]"]), "reduce-scatter.C3");
    }

    #[test]
    fn gathers() {
        let gather = |attrs, shard_count| AllGather { attrs, dimension: 0, shard_count };
        let pair = groups(&[&[0, 1]]);
        assert_eq!(infer(gather(pair.clone(), 2), &["f32[3,<=4]"]), "f32[6,<=4]");
        assert_eq!(infer(gather(pair.clone(), 2), &["f32[3]", "s8[1]"]), "(f32[6], s8[2])");
        assert_eq!(infer(gather(pair.clone(), 2), &["f32[?]"]), "f32[?]");
        assert_eq!(infer(gather(pair, 3), &["f32[3]"]), "all-gather.C3");
        // Without groups, the number of parts is whatever the shapes show…
        assert_eq!(infer(gather(groups(&[]), 7), &["f32[3]"]), "f32[21]");
        assert_eq!(infer(gather(groups(&[]), 0), &["f32[3]"]), "all-gather.C3");
        assert_eq!(infer(gather(groups(&[]), usize::MAX), &["f32[3]"]), "all-gather.C4");
        assert_eq!(infer(gather(groups(&[]), 1 << 62), &["f32[1]"]), "shape.C2");
        // … unless the module knows it.
        let mut module = Module::new("m");
        module.config.replica_count = Some(4);
        assert_eq!(infer_in(&module, gather(groups(&[]), 7), &["f32[3]"]), "all-gather.C3");
        module.config.num_partitions = Some(2);
        let both = CollectiveAttrs { channel_id: Some(1), ..groups(&[]) };
        assert_eq!(infer_in(&module, gather(both, 8), &["f32[3]"]), "f32[24]");
    }

    #[test]
    fn exchanges() {
        let all_to_all = |dimension| AllToAll { attrs: groups(&[&[0, 1]]), dimension };
        assert_eq!(infer(all_to_all(Some(0)), &["f32[4,3]"]), "f32[4,3]");
        assert_eq!(infer(all_to_all(Some(1)), &["f32[4,3]"]), "all-to-all.C4");
        assert_eq!(infer(all_to_all(None), &["f32[3]", "f32[3]"]), "(f32[3], f32[3])");
        let ragged = RaggedAllToAll { attrs: groups(&[&[0, 1]]) };
        let operands = ["f32[9,3]", "f32[7,3]", "s32[4]", "s32[4]", "s32[4]", "s32[4]"];
        assert_eq!(infer(ragged, &operands), "f32[7,3]");
        let permute = |pairs: &[(usize, usize)]| CollectivePermute {
            pairs: pairs.to_vec(),
            channel_id: None,
        };
        assert_eq!(infer(permute(&[]), &["f32[3]"]), "f32[3]");
        assert_eq!(infer(permute(&[(0, usize::MAX)]), &["f32[3]"]), "f32[3]");
        assert_eq!(infer(permute(&[(0, 1), (0, 2)]), &["f32[3]"]), "collective-permute.C2");
        // Not everybody needs to be in a group of a broadcast.
        let broadcast = CollectiveBroadcast { attrs: groups(&[&[5, 1]]) };
        assert_eq!(infer(broadcast, &["f32[3]"]), "f32[3]");
        assert_eq!(infer(ReplicaId, &[]), "u32[]");
        assert_eq!(infer(PartitionId, &[]), "u32[]");
    }
}
