//! Tiles of arrays out of whole ones, and the other way round.

use std::collections::BTreeMap;

use helio_ir::ops::{
    AllGather, AllReduce, CollectiveAttrs, Direction, DynamicSlice, PartitionId, ReplicaGroups,
};
use helio_ir::{Array, BinaryOp, InstrId, Literal, Native, Result};

use super::body::Body;
use crate::tiling::Tiling;

impl Body<'_, '_> {
    /// This partition's part of an array: its tile, of which the first of several summands is the whole
    /// and the others are zero.
    pub(super) fn tile(&mut self, id: InstrId, tiling: &Tiling) -> Result<InstrId> {
        if tiling.is_whole() {
            return Ok(id);
        }
        let sizes = tiling.local_dims(self.array(id)?.dims())?;
        let mut operands = vec![id];
        for (dim, &size) in sizes.iter().enumerate() {
            let starts = tiling.tile_of.iter().map(|tile| (tile[dim] * size) as i32).collect();
            operands.push(self.of_partition(starts)?);
        }
        let tile = match tiling.tiles.iter().all(|&tiles| tiles == 1) {
            true => id,
            false => self.push(DynamicSlice { sizes }, &operands)?,
        };
        if tiling.summands == 1 {
            return Ok(tile);
        }
        let summand = tiling.summand_of.iter().map(|&summand| summand as i32).collect();
        let (summand, zero) = (self.of_partition(summand)?, self.scalar(0i32)?);
        let is_first = self.compare(Direction::Eq, summand, zero)?;
        let (is_first, nothing) = (self.fill(is_first, tile)?, self.like(tile, 0.0)?);
        self.select(is_first, tile, nothing)
    }

    /// The number that a list has for this partition.
    pub(super) fn of_partition<T: Native>(&mut self, list: Vec<T>) -> Result<InstrId> {
        if list.windows(2).all(|pair| pair[0] == pair[1]) {
            return self.scalar(list[0]);
        }
        let table = self.literal(Literal::Array(Array::new([list.len()], list)?))?;
        let me = self.push(PartitionId, &[])?;
        let number = self.push(DynamicSlice { sizes: vec![1] }, &[table, me])?;
        self.reshape(number, &[])
    }

    /// The whole of an array of which each partition has a tile or a summand of one.
    pub(super) fn gather_tiles(&mut self, id: InstrId, tiling: &Tiling) -> Result<InstrId> {
        let mut id = self.sum_tiles(id, tiling)?;
        let mut rest =
            Tiling { summands: 1, summand_of: vec![0; tiling.summand_of.len()], ..tiling.clone() };
        for dimension in 0..tiling.tiles.len() {
            let shard_count = rest.tiles[dimension];
            if shard_count == 1 {
                continue;
            }
            let attrs = self.among(groups(&rest, |partition| {
                let mut others = rest.tile_of[partition].clone();
                let tile = std::mem::take(&mut others[dimension]);
                (others, tile)
            }));
            id = self.push(AllGather { attrs, dimension, shard_count }, &[id])?;
            rest.tiles[dimension] = 1;
            rest.tile_of.iter_mut().for_each(|tile| tile[dimension] = 0);
        }
        Ok(id)
    }

    /// The tile of which each partition has a summand.
    pub(super) fn sum_tiles(&mut self, id: InstrId, tiling: &Tiling) -> Result<InstrId> {
        if tiling.summands == 1 {
            return Ok(id);
        }
        let to_apply = self.reducer(BinaryOp::Add, self.element(id)?)?;
        let attrs = self.among(groups(tiling, |partition| {
            (tiling.tile_of[partition].clone(), tiling.summand_of[partition])
        }));
        self.push(AllReduce { attrs, to_apply }, &[id])
    }

    /// The attributes of a collective among groups of partitions.
    fn among(&mut self, groups: Vec<Vec<usize>>) -> CollectiveAttrs {
        let partitions = &mut self.cx.partitions;
        partitions.last_channel += 1;
        CollectiveAttrs {
            replica_groups: ReplicaGroups::List(groups),
            channel_id: Some(partitions.last_channel),
            use_global_device_ids: true,
            constrain_layout: false,
        }
    }
}

/// Groups of partitions, one for each place in a row: `row_and_place` says of a partition what all of its
/// group have in common, and its place there. Where several have the same place, there are as many groups.
fn groups(
    tiling: &Tiling,
    row_and_place: impl Fn(usize) -> (Vec<usize>, usize),
) -> Vec<Vec<usize>> {
    let mut rows: BTreeMap<Vec<usize>, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for partition in 0..tiling.tile_of.len() {
        let (row, place) = row_and_place(partition);
        rows.entry(row).or_default().entry(place).or_default().push(partition);
    }
    let group = |row: &BTreeMap<usize, Vec<usize>>, n: usize| {
        row.values().filter_map(|having| having.get(n).copied()).collect()
    };
    let count = |row: &BTreeMap<usize, Vec<usize>>| row.values().map(Vec::len).max().unwrap_or(0);
    let each = rows.values().flat_map(|row| (0..count(row)).map(move |n| group(row, n)));
    each.collect()
}
