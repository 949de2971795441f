//! StableHLO's collectives lowered to HLO's.

use std::iter::zip;

use helio_ir::ops::{
    AllGather, AllReduce, AllToAll, CollectiveAttrs, Direction, DynamicSlice, PartitionId,
    ReduceScatter, ReplicaGroups, ReplicaId,
};
use helio_ir::{BinaryOp, ElementType, Error, InstrId, Result};

use super::body::Body;
use super::operation::Site;
use super::types;
use crate::mlir::Type;
use crate::table::Collective;

impl<'m> Body<'_, 'm> {
    pub(super) fn collective(&mut self, name: &str, site: &Site<'_, 'm>) -> Result<Vec<InstrId>> {
        let attrs = site.attrs;
        let operands = &site.operands;
        let mut shared = self.reading(site, &[], |from| Collective.read(from))?;
        // The size of a group.
        let count = shared.replica_groups.lists()?.first().map_or(1, Vec::len);
        if matches!(name, "all_gather" | "reduce_scatter") {
            self.order_by_partition(&mut shared);
        }
        let result = match name {
            "all_gather" => {
                let dimension = attrs.size("all_gather_dim")?;
                // Flattened over partitions, a group may be larger than its list.
                let shard_count = self.ratio(site, dimension)?.unwrap_or(count);
                self.push(AllGather { attrs: shared, dimension, shard_count }, operands)?
            }
            "reduce_scatter" => {
                let to_apply = self.element_region(site, 0, name)?;
                let dimension = attrs.size("scatter_dimension")?;
                let shard_count = self.ratio(site, dimension)?.unwrap_or(count);
                self.push(
                    ReduceScatter { attrs: shared, dimension, shard_count, to_apply },
                    operands,
                )?
            }
            "all_to_all" => {
                let parts = operands.iter().map(|&x| self.all_to_all(site, x, &shared));
                return parts.collect::<Vec<_>>().into_iter().collect();
            }
            "collective_reduce" => return self.reduce_to_first(site, shared),
            _ => return self.broadcast_from(site, &shared, count),
        };
        self.unpack(result, operands.len())
    }

    /// Groups of replicas act together with all their partitions: in StableHLO all replicas of the
    /// first partition come first, in HLO all partitions of the first replica. Flattened numbers say
    /// which is meant.
    fn order_by_partition(&self, shared: &mut CollectiveAttrs) {
        let config = &self.cx.output.config;
        let partitions = config.num_partitions.unwrap_or(1);
        if shared.channel_id.is_none() || shared.use_global_device_ids || partitions < 2 {
            return;
        }
        let all = vec![(0..config.replica_count.unwrap_or(1)).collect()];
        let groups = match &shared.replica_groups {
            ReplicaGroups::List(groups) if groups.is_empty() => &all,
            ReplicaGroups::List(groups) => groups,
            _ => return,
        };
        let flat = |group: &Vec<usize>| {
            let of = |partition: usize| {
                group.iter().map(move |&replica| {
                    replica.saturating_mul(partitions).saturating_add(partition)
                })
            };
            (0..partitions).flat_map(of).collect()
        };
        shared.replica_groups = ReplicaGroups::List(groups.iter().map(flat).collect());
        shared.use_global_device_ids = true;
    }

    /// The last operand says from which member of the group each of the others comes.
    fn broadcast_from(
        &mut self,
        site: &Site<'_, 'm>,
        shared: &CollectiveAttrs,
        count: usize,
    ) -> Result<Vec<InstrId>> {
        let Some((&roots, values)) = site.operands.split_last() else {
            return Err(Error::invalid("the roots are needed"));
        };
        let mut results = Vec::new();
        for (i, &x) in values.iter().enumerate() {
            let dims = self.array(x)?.dims().to_vec();
            let mut one = dims.clone();
            one.insert(0, 1);
            let row = self.reshape(x, &one)?;
            let op = AllGather { attrs: shared.clone(), dimension: 0, shard_count: count };
            let rows = self.push(op, &[row])?;
            let root = self.slice_in(roots, 0, i, i + 1)?;
            let root = self.reshape(root, &[])?;
            let zero = self.number(self.element(root)?, 0.0)?;
            let mut operands = vec![rows, root];
            operands.extend(dims.iter().map(|_| zero));
            let picked = self.push(DynamicSlice { sizes: one }, &operands)?;
            results.push(self.reshape(picked, &dims)?);
        }
        Ok(results)
    }

    /// The fold of a group's operands for its first member, zeros for all others.
    fn reduce_to_first(
        &mut self,
        site: &Site<'_, 'm>,
        shared: CollectiveAttrs,
    ) -> Result<Vec<InstrId>> {
        let is_flat = shared.use_global_device_ids;
        let firsts: Vec<usize> = match (&shared.replica_groups, shared.channel_id) {
            (ReplicaGroups::List(groups), None) => {
                groups.iter().filter_map(|group| group.first().copied()).collect()
            }
            (ReplicaGroups::List(groups), Some(_)) if is_flat => {
                groups.iter().filter_map(|group| group.first().copied()).collect()
            }
            _ => return Err(Error::unimplemented("a reduction to one of several partitions")),
        };
        let firsts = if firsts.is_empty() { vec![0] } else { firsts };
        let mut me = self.push(ReplicaId, &[])?;
        if is_flat {
            let partitions = self.cx.output.config.num_partitions.unwrap_or(1);
            let count = self.scalar(partitions as u32)?;
            let scaled = self.mul(me, count)?;
            let partition = self.push(PartitionId, &[])?;
            me = self.add(scaled, partition)?;
        }
        let mut is_first = self.scalar(false)?;
        for first in firsts {
            let first = self.scalar(first as u32)?;
            let same = self.compare(Direction::Eq, me, first)?;
            is_first = self.binary(BinaryOp::Or, is_first, same)?;
        }
        let to_apply = self.element_region(site, 0, "reduce")?;
        let all = self.push(AllReduce { attrs: shared, to_apply }, &site.operands)?;
        let folds = self.unpack(all, site.operands.len())?;
        let mut results = Vec::new();
        for fold in folds {
            let zero = match self.element(fold)? {
                ElementType::Pred => self.scalar(false)?,
                element => self.number(element, 0.0)?,
            };
            let (zeros, here) = (self.fill(zero, fold)?, self.fill(is_first, fold)?);
            results.push(self.select(here, fold, zeros)?);
        }
        Ok(results)
    }

    /// How many times longer a dimension of the larger of operand and result is than of the other, as
    /// the first of them show in which it is not empty.
    fn ratio(&self, site: &Site<'_, 'm>, dimension: usize) -> Result<Option<usize>> {
        for (&x, ty) in zip(&site.operands, &site.result_types) {
            let Type::Tensor(tensor) = &**ty else { continue };
            let (from, to) = (self.array(x)?, types::array(tensor)?);
            let sizes = from.dims().get(dimension).zip(to.dims().get(dimension));
            if let Some((&a, &b)) = sizes.filter(|&(&a, &b)| a > 0 && b > 0 && to.is_static()) {
                return Ok(Some(a.max(b) / a.min(b)));
            }
        }
        Ok(None)
    }

    /// HLO splits and joins the same dimension; what is joined along another is moved there.
    fn all_to_all(
        &mut self,
        site: &Site<'_, 'm>,
        x: InstrId,
        shared: &CollectiveAttrs,
    ) -> Result<InstrId> {
        let attrs = site.attrs;
        let split = attrs.size("split_dimension")?;
        let join = attrs.size("concat_dimension")?;
        let count = attrs.size("split_count")?;
        let op = AllToAll { attrs: shared.clone(), dimension: Some(split) };
        let result = self.push(op, &[x])?;
        if split == join || count == 0 {
            return Ok(result);
        }
        let shape = self.array(result)?;
        let rank = shape.rank();
        if split >= rank || join >= rank || shape.dims()[split] % count != 0 {
            let detail = format!("{shape} cannot be split {count} times along {split}");
            return Err(Error::invalid(detail));
        }
        // [.. count * part ..] -> [.. count, part ..] -> the count goes before `join`.
        let mut dims = shape.dims().to_vec();
        dims[split] /= count;
        dims.insert(split, count);
        let apart = self.reshape(result, &dims)?;
        let mut order: Vec<usize> = (0..=rank).filter(|&d| d != split).collect();
        order.insert(join, split);
        let moved = self.transpose(apart, order)?;
        let mut dims = shape.dims().to_vec();
        dims[split] /= count;
        dims[join] = dims[join].saturating_mul(count);
        self.reshape(moved, &dims)
    }
}
