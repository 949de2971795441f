//! Operations that a partition does on its tiles alone: how tiles of the operands give tiles of the result.
//!
//! What is cut up is the space of what an operation computes: the dimensions of its result, and then those
//! along which it combines elements. `rules` says of each operation which dimension of its operands is
//! which of the space; `emit` makes the instructions.

mod batches;
mod emit;
mod indexing;
mod rules;

use helio_ir::BinaryOp;

use super::forms::Spread;
use crate::tiling::Tiling;

/// How an operation is done on tiles.
#[derive(Debug)]
pub(super) struct Local {
    kind: Kind,
    /// For each dimension of each operand, which dimension of the space it is; `None` if all of it is
    /// needed for every element.
    operands: Vec<Vec<Option<usize>>>,
    /// For each dimension of the space, what its number of tiles divides; 1 where it stays whole.
    cuts: Vec<usize>,
    /// How many dimensions the results have, which come first in the space.
    rank: usize,
    /// How elements are combined along the other dimensions of the space.
    combine: Option<BinaryOp>,
}

/// What is different about an operation on tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nothing: the tiles' shapes say all. Each element is made from those at its place; scalars are the
    /// same for all.
    Elementwise,
    /// Nothing: the tiles' shapes say all.
    Plain,
    /// A constant whose elements are the same.
    Splat,
    /// Places along this dimension are those in the whole.
    Iota(usize),
    /// Tiles change places along the dimensions that are turned around.
    Reverse,
    /// Its result has the tile's shape.
    Broadcast,
    /// Its result has the tile's shape.
    Reshape,
    /// Where all of a dimension is taken, all of the tile is.
    Slice,
    /// Where all of a dimension is taken, all of the tile is.
    DynamicSlice,
    /// Where all of a dimension is taken, all of the tile is.
    Gather,
    /// As many operands are reduced as there are first values, with which one of the parts begins.
    Reduce,
    /// A sum of updates begins with the operand in one of the parts.
    Scatter,
}

/// How the space of an operation is cut up.
pub(super) enum Choice {
    Tiles(Tiling),
    /// As its result is needed.
    Any,
    /// Not at all, as far as its operands say.
    Whole,
}

impl Local {
    /// Whether it costs no more to do it again for other tiles than to cut them out.
    fn is_cheap(&self) -> bool {
        matches!(self.kind, Kind::Elementwise | Kind::Splat | Kind::Iota(_) | Kind::Broadcast)
    }

    /// Whether the result is cheap although the operands are known: they have fewer elements.
    fn repeats(&self) -> bool {
        self.kind == Kind::Broadcast
    }

    /// How parts of a result are combined.
    pub(super) fn combine(&self) -> BinaryOp {
        self.combine.unwrap_or(BinaryOp::Add)
    }

    /// How the operand of this number is cut up if the space is cut up so.
    pub(super) fn operand(&self, number: usize, space: &Tiling) -> Tiling {
        // A sum begins with its first value once, in whichever part of it; others may with each part.
        let is_sum = self.combine == Some(BinaryOp::Add);
        match self.kind {
            Kind::Reduce if is_sum && number >= self.operands.len() / 2 => {
                return space.summed_from(self.rank).scalar();
            }
            Kind::Scatter if is_sum && number == 0 => return space.summed_from(self.rank),
            _ => {}
        }
        self.operands.get(number).map_or_else(|| space.along(&[]), |dims| space.along(dims))
    }

    /// How the space is cut up for operands that are spread so.
    pub(super) fn choice(&self, operands: &[&Spread], groups: &[usize]) -> Choice {
        if let Some(space) = self.space(operands, groups) {
            return Choice::Tiles(space);
        }
        let is_known = |(dims, spread): (&Vec<_>, &&Spread)| {
            **spread != Spread::Any && !dims.is_empty() && !self.repeats()
        };
        match self.is_cheap() && !self.operands.iter().zip(operands).any(is_known) {
            true => Choice::Any,
            false => Choice::Whole,
        }
    }

    /// How the space is cut up for operands of which some are in tiles: as each of them is in turn, as far
    /// as those before it and the groups of partitions allow. `None` if it is best not cut up.
    fn space(&self, operands: &[&Spread], groups: &[usize]) -> Option<Tiling> {
        let mut space = Tiling::whole(self.cuts.len(), groups.len());
        // Results that are combined cost an exchange more than operands in tiles.
        for part in [0..self.rank, self.rank..self.cuts.len()] {
            for (dims, spread) in self.operands.iter().zip(operands) {
                let Spread::Tiles(tiling) = spread else { continue };
                for (from, dim) in dims.iter().enumerate() {
                    let Some(dim) = dim.filter(|dim| part.contains(dim)) else { continue };
                    let is_cut = tiling.tiles[from] > 1 && space.tiles[dim] == 1;
                    if is_cut && self.cuts[dim].is_multiple_of(tiling.tiles[from]) {
                        let cut = space.cut_as(dim, tiling, from);
                        space = if cut.is_complete(groups) { cut } else { space };
                    }
                }
            }
        }
        (!space.is_whole()).then_some(space)
    }

    /// How the space is cut up for a result in these tiles. `None` if it is not made in them alone.
    pub(super) fn space_for(&self, result: &Tiling) -> Option<Tiling> {
        if result.tiles.len() != self.rank {
            return None;
        }
        let space = result.of_rank(self.cuts.len());
        let fits = self.cuts.iter().zip(&space.tiles).all(|(n, &tiles)| n.is_multiple_of(tiles));
        (result.summands == 1 && fits).then_some(space)
    }
}
