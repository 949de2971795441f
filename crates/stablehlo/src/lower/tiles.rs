//! Tiles of arrays out of whole ones, and the other way round.

use std::collections::BTreeMap;

use helio_ir::ops::{
    AllGather, AllReduce, CollectiveAttrs, CollectivePermute, Direction, DynamicSlice, PartitionId,
    ReplicaGroups, Reverse,
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
        let whole = Tiling::whole(tiling.tiles.len(), tiling.tile_of.len());
        self.other_tiles(id, tiling, &whole)
    }

    /// The tiles of an array of which each partition has other tiles or a summand of one. Gathered is what
    /// is cut up otherwise.
    pub(super) fn other_tiles(
        &mut self,
        id: InstrId,
        from: &Tiling,
        to: &Tiling,
    ) -> Result<InstrId> {
        let mut id = self.combine_tiles(id, from, BinaryOp::Add)?;
        let mut rest =
            Tiling { summands: 1, summand_of: vec![0; from.summand_of.len()], ..from.clone() };
        // Each partition's tile within what it has then.
        let mut within = to.clone();
        for dimension in 0..from.tiles.len() {
            let (tiles, places) = match to.within(&rest, dimension) {
                Some(part) => part,
                None => {
                    id = self.gather_along(id, &rest, dimension)?;
                    rest = rest.joined(dimension);
                    continue;
                }
            };
            within.tiles[dimension] = tiles;
            for (tile, place) in within.tile_of.iter_mut().zip(places) {
                tile[dimension] = place;
            }
        }
        self.tile(id, &within)
    }

    fn gather_along(&mut self, id: InstrId, tiling: &Tiling, dimension: usize) -> Result<InstrId> {
        let attrs = self.among(tiling, |partition| {
            let mut others = tiling.tile_of[partition].clone();
            let tile = std::mem::take(&mut others[dimension]);
            (others, tile)
        });
        let shard_count = tiling.tiles[dimension];
        self.push(AllGather { attrs, dimension, shard_count }, &[id])
    }

    /// The tiles of an array that is turned around along these dimensions: those of the tile at the opposite
    /// place, turned around. Where these are not on as many devices, what is turned is gathered.
    pub(super) fn turned_tiles(
        &mut self,
        id: InstrId,
        tiling: &Tiling,
        dims: &[usize],
    ) -> Result<InstrId> {
        let turned = Reverse { dimensions: dims.to_vec() };
        let is_cut = |&dim: &usize| tiling.tiles.get(dim).is_some_and(|&tiles| tiles > 1);
        if !dims.iter().any(is_cut) || dims.iter().any(|&dim| dim >= tiling.tiles.len()) {
            return self.push(turned, &[id]);
        }
        let Some(pairs) = opposite_tiles(tiling, dims, &self.cx.partitions.groups) else {
            let joined = dims.iter().fold(tiling.clone(), |tiling, &dim| tiling.joined(dim));
            let id = self.other_tiles(id, tiling, &joined)?;
            let id = self.push(turned, &[id])?;
            return self.other_tiles(id, &joined, tiling);
        };
        let id = self.push(turned, &[id])?;
        self.cx.partitions.last_channel += 1;
        let channel_id = Some(self.cx.partitions.last_channel);
        self.push(CollectivePermute { pairs, channel_id }, &[id])
    }

    /// The tile of which each partition has a part, which are combined so.
    pub(super) fn combine_tiles(
        &mut self,
        id: InstrId,
        tiling: &Tiling,
        combine: BinaryOp,
    ) -> Result<InstrId> {
        if tiling.summands == 1 {
            return Ok(id);
        }
        let to_apply = self.reducer(combine, self.element(id)?)?;
        let attrs = self.among(tiling, |partition| {
            (tiling.tile_of[partition].clone(), tiling.summand_of[partition])
        });
        self.push(AllReduce { attrs, to_apply }, &[id])
    }

    /// The attributes of a collective among groups of partitions, one for each place in a row:
    /// `row_and_place` says of a partition what all of its group have in common, and its place there. Where
    /// several have the same place, there are as many groups.
    fn among(
        &mut self,
        tiling: &Tiling,
        row_and_place: impl Fn(usize) -> (Vec<usize>, usize),
    ) -> CollectiveAttrs {
        let partitions = &mut self.cx.partitions;
        partitions.last_channel += 1;
        let mut rows: BTreeMap<_, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for partition in 0..tiling.tile_of.len() {
            let (row, place) = row_and_place(partition);
            let row = rows.entry((partitions.groups[partition], row)).or_default();
            row.entry(place).or_default().push(partition);
        }
        let group = |row: &BTreeMap<usize, Vec<usize>>, n: usize| {
            row.values().filter_map(|having| having.get(n).copied()).collect()
        };
        let count =
            |row: &BTreeMap<usize, Vec<usize>>| row.values().map(Vec::len).max().unwrap_or(0);
        let each = rows.values().flat_map(|row| (0..count(row)).map(move |n| group(row, n)));
        CollectiveAttrs {
            replica_groups: ReplicaGroups::List(each.collect()),
            channel_id: Some(partitions.last_channel),
            use_global_device_ids: true,
            constrain_layout: false,
        }
    }
}

/// From which partition each gets the tile at the place that is opposite along these dimensions: pairs of a
/// source and a target. `None` if opposite tiles are not on as many partitions of each group.
fn opposite_tiles(
    tiling: &Tiling,
    dims: &[usize],
    groups: &[usize],
) -> Option<Vec<(usize, usize)>> {
    let mut having: BTreeMap<(usize, &[usize]), Vec<usize>> = BTreeMap::new();
    for (partition, tile) in tiling.tile_of.iter().enumerate() {
        having.entry((groups[partition], tile)).or_default().push(partition);
    }
    let mut pairs = Vec::new();
    for ((group, tile), targets) in &having {
        let mut opposite = tile.to_vec();
        for &dim in dims {
            opposite[dim] = tiling.tiles[dim] - 1 - tile[dim];
        }
        let sources = having.get(&(*group, &opposite[..]))?;
        if sources.len() != targets.len() {
            return None;
        }
        pairs.extend(sources.iter().copied().zip(targets.iter().copied()));
    }
    Some(pairs)
}
