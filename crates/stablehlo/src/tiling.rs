//! Tilings: which part of an array each partition of a program has.

use std::collections::HashSet;

use helio_ir::sharding::{Devices, Placement, SubgroupKind, Subgroups, Tiles};
use helio_ir::{Error, Result, Sharding};

/// Which part of an array each partition of a program has: a tile or a summand of one, and several may
/// have the same.
///
/// ```
/// # use helio_stablehlo::tiling::Tiling;
/// let sharding = helio_ir::Sharding::read("devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate")?;
/// let tiling = Tiling::of(&sharding, 2, 4)?;
/// assert_eq!(tiling.tiles, [1, 2]);
/// assert_eq!(tiling.tile_of, [[0, 0], [0, 1], [0, 0], [0, 1]]);
/// # Ok::<(), helio_ir::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// The number of tiles in each dimension.
    pub tiles: Vec<usize>,
    /// For each partition, the position of its tile in each dimension.
    pub tile_of: Vec<Vec<usize>>,
    /// The number of arrays whose sum a tile is; 1 if partitions have the tiles themselves.
    pub summands: usize,
    /// For each partition, which of its tile's summands it has.
    pub summand_of: Vec<usize>,
}

impl Tiling {
    /// Each of the partitions has the whole array of this rank.
    pub fn whole(rank: usize, partitions: usize) -> Self {
        Tiling {
            tiles: vec![1; rank],
            tile_of: vec![vec![0; rank]; partitions],
            summands: 1,
            summand_of: vec![0; partitions],
        }
    }

    /// What a sharding says for an array of this rank. A value that lies on one device is whole on all.
    /// Errors: `Unimplemented` for shardings that say nothing; tiles of another rank, or for devices that
    /// are not there or are named twice.
    pub fn of(sharding: &Sharding, rank: usize, partitions: usize) -> Result<Self> {
        let tiles = match &sharding.placement {
            Placement::Replicated | Placement::Manual | Placement::Maximal { .. } => {
                return Ok(Self::whole(rank, partitions));
            }
            Placement::Unreduced => {
                let summand_of = (0..partitions).collect();
                let whole = Self::whole(rank, partitions);
                return Ok(Tiling { summands: partitions, summand_of, ..whole });
            }
            Placement::Tiled(tiles) => tiles,
            other => return Err(Error::unimplemented(format!("a value that lies as {other:?}"))),
        };
        let (dims, groups) = match (&tiles.subgroups, tiles.dims.len().checked_sub(rank)) {
            (Subgroups::None, Some(0)) => (&tiles.dims[..], vec![]),
            (Subgroups::ReplicateLast, Some(1)) => {
                (&tiles.dims[..rank], vec![(tiles.dims[rank], SubgroupKind::Replicated)])
            }
            (Subgroups::Kinds(kinds), Some(count)) if count == kinds.len() => {
                let sizes = tiles.dims[rank..].iter().copied();
                (&tiles.dims[..rank], sizes.zip(kinds.iter().copied()).collect())
            }
            _ => {
                let detail = format!("{sharding} for an array of {rank} dimensions");
                return Err(Error::invalid(detail));
            }
        };
        let devices = devices(tiles, partitions)?;
        let mut tiling = Tiling { tiles: dims.to_vec(), ..Self::whole(rank, partitions) };
        let summed = groups.iter().filter(|group| group.1 == SubgroupKind::Unreduced);
        tiling.summands = summed.map(|group| group.0).product();
        let mut is_named = vec![false; partitions];
        for (mut place, device) in devices.into_iter().enumerate() {
            let Some(tile) = tiling.tile_of.get_mut(device) else {
                let detail = format!("{sharding} names device {device} of {partitions}");
                return Err(Error::invalid(detail));
            };
            if std::mem::replace(&mut is_named[device], true) {
                return Err(Error::invalid(format!("{sharding} names device {device} twice")));
            }
            let mut summands = 1;
            for &(size, kind) in groups.iter().rev() {
                if kind == SubgroupKind::Unreduced {
                    tiling.summand_of[device] += place % size.max(1) * summands;
                    summands *= size;
                }
                place /= size.max(1);
            }
            for (at, &count) in tile.iter_mut().zip(dims).rev() {
                (*at, place) = (place % count.max(1), place / count.max(1));
            }
        }
        Ok(tiling)
    }

    /// Whether each partition has the whole array.
    pub fn is_whole(&self) -> bool {
        self.summands == 1 && self.tiles.iter().all(|&tiles| tiles == 1)
    }

    /// The sizes of a tile of an array with these sizes. Errors: `Unimplemented` if the tiles would not
    /// all have the same size.
    pub fn local_dims(&self, dims: &[usize]) -> Result<Vec<usize>> {
        if dims.len() != self.tiles.len() {
            let (found, rank) = (self.tiles.len(), dims.len());
            let detail = format!("a sharding of {found} dimensions for an array of {rank}");
            return Err(Error::invalid(detail));
        }
        let each = dims.iter().zip(&self.tiles).map(|(&size, &tiles)| {
            match tiles > 0 && size.is_multiple_of(tiles) {
                true => Ok(size / tiles),
                false => {
                    let detail = format!("a dimension of size {size} in {tiles} tiles");
                    Err(Error::unimplemented(detail))
                }
            }
        });
        each.collect()
    }

    /// The tiling of an array whose dimension `d` is cut up as dimension `dims[d]` of this one is, or is
    /// whole; summands are forgotten.
    pub(crate) fn along(&self, dims: &[Option<usize>]) -> Self {
        let pick = |list: &[usize], whole: usize| {
            dims.iter().map(|dim| dim.map_or(whole, |dim| list[dim])).collect::<Vec<_>>()
        };
        Tiling {
            tiles: pick(&self.tiles, 1),
            tile_of: self.tile_of.iter().map(|tile| pick(tile, 0)).collect(),
            summands: 1,
            summand_of: vec![0; self.summand_of.len()],
        }
    }

    /// The tiling of an array of this rank that is cut up so along its first dimensions, or as far as it has
    /// them; summands are forgotten.
    pub(crate) fn of_rank(&self, rank: usize) -> Self {
        let dims = (0..rank).map(|dim| Some(dim).filter(|&dim| dim < self.tiles.len()));
        self.along(&dims.collect::<Vec<_>>())
    }

    /// The same, but along this dimension cut up as another tiling is along its dimension `from`.
    pub(crate) fn cut_as(&self, dim: usize, other: &Tiling, from: usize) -> Self {
        let mut cut = self.clone();
        cut.tiles[dim] = other.tiles[from];
        for (tile, other) in cut.tile_of.iter_mut().zip(&other.tile_of) {
            tile[dim] = other[from];
        }
        cut
    }

    /// The same, but whole along this dimension.
    pub(crate) fn joined(&self, dim: usize) -> Self {
        let mut joined = self.clone();
        joined.tiles[dim] = 1;
        joined.tile_of.iter_mut().for_each(|tile| tile[dim] = 0);
        joined
    }

    /// How the tiles of `parts`, along this dimension, are cut up to become those of this tiling: in how
    /// many, and of each partition the place of its own. `None` if they do not consist of these.
    pub(crate) fn within(&self, parts: &Tiling, dim: usize) -> Option<(usize, Vec<usize>)> {
        let (fine, coarse) = (self.tiles[dim], parts.tiles[dim]);
        let count = fine.checked_div(coarse).filter(|count| count * coarse == fine)?;
        let pairs = || self.tile_of.iter().zip(&parts.tile_of);
        let is_part = |(of, part): (&Vec<usize>, &Vec<usize>)| of[dim] / count.max(1) == part[dim];
        let places = || pairs().map(|(of, _)| of[dim] % count.max(1)).collect();
        pairs().all(is_part).then(|| (count, places()))
    }

    /// Whether tiles in another tiling can be made of these without gathering all of them.
    pub(crate) fn is_kept_by(&self, other: &Tiling) -> bool {
        let is_kept = |dim: usize| self.tiles[dim] > 1 && other.within(self, dim).is_some();
        (0..self.tiles.len()).any(is_kept)
    }

    /// The tiling of an array whose tiles in `self` are cut up so.
    pub(crate) fn cut_further(&self, inner: &Tiling) -> Self {
        let place = |(outer, inner_of): (&Vec<usize>, &Vec<usize>)| {
            let dims = outer.iter().zip(inner_of).zip(&inner.tiles);
            dims.map(|((outer, place), tiles)| outer * tiles + place).collect()
        };
        Tiling {
            tiles: self.tiles.iter().zip(&inner.tiles).map(|(a, b)| a * b).collect(),
            tile_of: self.tile_of.iter().zip(&inner.tile_of).map(place).collect(),
            ..self.clone()
        }
    }

    /// The tiling of the first `rank` dimensions, whose tiles have a summand for each tile along the
    /// others.
    pub(crate) fn summed_from(&self, rank: usize) -> Self {
        let first: Vec<Option<usize>> = (0..rank).map(Some).collect();
        let place = |tile: &Vec<usize>| {
            let others = tile[rank..].iter().zip(&self.tiles[rank..]);
            others.fold(0, |place, (&at, &tiles)| place * tiles + at)
        };
        Tiling {
            summands: self.tiles[rank..].iter().product(),
            summand_of: self.tile_of.iter().map(place).collect(),
            ..self.along(&first)
        }
    }

    /// The tiling of a scalar with the same summands.
    pub(crate) fn scalar(self) -> Self {
        Tiling { tiles: Vec::new(), tile_of: vec![Vec::new(); self.tile_of.len()], ..self }
    }

    /// Whether in each group of partitions, whose numbers these are, some partition has each tile.
    pub(crate) fn is_complete(&self, groups: &[usize]) -> bool {
        let count = self.tiles.iter().try_fold(1_usize, |count, &n| count.checked_mul(n));
        let Some(count) = count.filter(|&count| count <= self.tile_of.len()) else { return false };
        let number = |tile: &Vec<usize>| {
            tile.iter().zip(&self.tiles).fold(0, |n, (&at, &tiles)| n * tiles + at)
        };
        let tiles = self.tile_of.iter().zip(groups);
        let found: HashSet<_> = tiles.map(|(tile, &group)| (group, number(tile))).collect();
        let groups: HashSet<_> = groups.iter().collect();
        found.len() == groups.len() * count
    }

    /// For each tile, the last dimension's fastest, the partitions that have it, and of copies of the
    /// tile, each one's summands in order.
    pub fn partitions(&self) -> Vec<Vec<usize>> {
        let count = self.tiles.iter().product();
        let mut having = vec![vec![Vec::new(); self.summands]; count];
        for (partition, tile) in self.tile_of.iter().enumerate() {
            let number = tile.iter().zip(&self.tiles).fold(0, |n, (&at, &tiles)| n * tiles + at);
            having[number][self.summand_of[partition]].push(partition);
        }
        let in_order = |summands: Vec<Vec<usize>>| {
            let copies = summands.iter().map(Vec::len).max().unwrap_or(0);
            let copy = |copy: usize| summands.iter().filter_map(move |of| of.get(copy).copied());
            (0..copies).flat_map(copy).collect()
        };
        having.into_iter().map(in_order).collect()
    }
}

/// The devices in the order of their tiles. Errors: there are not as many as partitions.
fn devices(tiles: &Tiles, partitions: usize) -> Result<Vec<usize>> {
    let count = tiles.devices.count().filter(|&count| count == partitions);
    let count = count.ok_or_else(|| {
        Error::invalid(format!("tiles for other than the {partitions} devices of the program"))
    })?;
    let (dims, transpose) = match &tiles.devices {
        Devices::List(list) => return Ok(list.clone()),
        Devices::Iota { transpose: None, .. } => return Ok((0..count).collect()),
        Devices::Iota { dims, transpose: Some(transpose) } => (dims, transpose),
    };
    let mut strides = vec![1; dims.len()];
    for dim in (1..dims.len()).rev() {
        strides[dim - 1] = strides[dim] * dims[dim];
    }
    let device = |mut place: usize| {
        let mut device = 0;
        for &dim in transpose.iter().rev() {
            device += place % dims[dim].max(1) * strides[dim];
            place /= dims[dim].max(1);
        }
        device
    };
    Ok((0..count).map(device).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiling(text: &str, rank: usize, partitions: usize) -> Result<Tiling> {
        Tiling::of(&Sharding::read(text)?, rank, partitions)
    }

    #[test]
    fn a_sharding_says_which_tile_a_partition_has() {
        let tiles = |text, partitions| tiling(text, 2, partitions).unwrap().tile_of;
        assert_eq!(tiles("devices=[2,2]<=[4]", 4), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        assert_eq!(tiles("devices=[2,2]3,2,1,0", 4), [[1, 1], [1, 0], [0, 1], [0, 0]]);
        // Devices 0, 2, 1, 3 in order of tiles.
        assert_eq!(tiles("devices=[4,1]<=[2,2]T(1,0)", 4), [[0, 0], [2, 0], [1, 0], [3, 0]]);
        let copied = tiles("devices=[2,1,3]<=[6] last_tile_dim_replicate", 6);
        assert_eq!(copied, [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0], [1, 0]]);
        assert!(tiling("replicated", 2, 3).unwrap().is_whole());
        assert!(tiling("maximal device=1", 2, 3).unwrap().is_whole());
    }

    #[test]
    fn a_sharding_says_which_summand_a_partition_has() {
        let text = "devices=[2,2,2]<=[2,2,2]T(1,0,2) last_tile_dims={replicated, unreduced}";
        let tiling = tiling(text, 1, 8).unwrap();
        assert_eq!(tiling.tiles, [2]);
        assert_eq!(tiling.tile_of.concat(), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!((tiling.summands, &tiling.summand_of[..]), (2, &[0, 1, 0, 1, 0, 1, 0, 1][..]));
        assert_eq!(tiling.partitions(), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        let all = Tiling::of(&Sharding::read("unreduced").unwrap(), 1, 3).unwrap();
        assert_eq!((all.summands, &all.summand_of[..]), (3, &[0, 1, 2][..]));
        assert!(!all.is_whole());
    }

    #[test]
    fn shardings_that_do_not_fit_are_errors() {
        for (text, rank) in [("devices=[2,2]<=[4]", 1), ("devices=[2]<=[2]", 1), ("unknown", 1)] {
            assert!(tiling(text, rank, 4).is_err(), "{text}");
        }
        for devices in ["[4]0,1,2,7", "[4]0,1,2,2", "[2,2]0,0,0,0 last_tile_dims={unreduced}"] {
            assert!(tiling(&format!("devices={devices}"), 1, 4).is_err(), "{devices}");
        }
    }

    #[test]
    fn tiles_have_sizes_and_partitions() {
        let tiling = tiling("devices=[2,1,2]<=[4] last_tile_dim_replicate", 2, 4).unwrap();
        assert_eq!(tiling.local_dims(&[6, 5]), Ok(vec![3, 5]));
        assert!(tiling.local_dims(&[5, 5]).is_err() && tiling.local_dims(&[6]).is_err());
        assert_eq!(tiling.partitions(), [[0, 1], [2, 3]]);
    }
}
