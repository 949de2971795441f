//! `stablehlo.rng` lowered to `rng`, and random bits on tiles.

use helio_ir::ops::{Direction, Distribution, Rng, RngAlgorithm, RngBitGenerator};
use helio_ir::{ArrayShape, ElementType, InstrId, Result};

use super::attrs::Attrs;
use super::body::Body;
use super::forms::Forms;
use super::operation::Site;
use super::types;
use crate::front_end;
use crate::mlir::Operation;
use crate::tiling::Tiling;

/// How bits are made in tiles, each of which is what a generator gives from a later counter on.
struct Tiled {
    algorithm: RngAlgorithm,
    tiling: Tiling,
    /// The shape of a tile.
    tile: ArrayShape,
    /// By how much the counter goes on for a tile.
    blocks: u64,
}

impl Tiled {
    /// Of an operation whose bits are wanted in these tiles. `None` if they are not consecutive blocks.
    fn of(op: &Operation, state: &ArrayShape, bits: &ArrayShape, tiling: &Tiling) -> Option<Self> {
        let word = Attrs::new(&op.attributes).needed_word("rng_algorithm").ok()?;
        let word = format!("rng_{}", word.to_ascii_lowercase());
        let algorithm = RngAlgorithm::from_word(&word).ok()?;
        let is_known = match algorithm {
            RngAlgorithm::ThreeFry => state.dims() == [2],
            RngAlgorithm::Philox | RngAlgorithm::Default => matches!(state.dims(), [2 | 3]),
        };
        if !is_known || state.element() != ElementType::U64 {
            return None;
        }
        let inner = tiling.tiles.get(1..)?;
        if tiling.summands > 1 || inner.iter().any(|&tiles| tiles > 1) {
            return None;
        }
        let tile = ArrayShape::new(bits.element(), tiling.local_dims(bits.dims()).ok()?).ok()?;
        let is_wide = bits.element().bits() > 32;
        let per_block = match algorithm {
            RngAlgorithm::ThreeFry if is_wide => 1,
            // A block fills two neighbours along the first dimension of even size.
            RngAlgorithm::ThreeFry if tile.dims()[0].is_multiple_of(2) => 2,
            RngAlgorithm::ThreeFry => return None,
            RngAlgorithm::Philox | RngAlgorithm::Default if is_wide => 2,
            RngAlgorithm::Philox | RngAlgorithm::Default => 4,
        };
        let elements = tile.element_count();
        if !elements.is_multiple_of(per_block) {
            return None;
        }
        let blocks = u64::try_from(elements / per_block).ok()?;
        Some(Tiled { algorithm, tiling: tiling.clone(), tile, blocks })
    }
}

impl<'m> Forms<'m> {
    /// Random bits and the next state: each partition makes the tile that is wanted of it, if that is known.
    pub(super) fn random_bits(&mut self, body: &mut Body<'_, 'm>, op: &'m Operation) -> Result<()> {
        let ([state], [next, bits]) = (&op.operands[..], &op.results[..]) else {
            return self.replicate(body, op);
        };
        let shape = types::shape(body.cx.source.type_of(*bits))?;
        let wish = self.wishes.of_value(*bits);
        let of = types::shape(body.cx.source.type_of(*state))?;
        let tiled = wish.zip(shape.as_array()).zip(of.as_array());
        let tiled = tiled.and_then(|((wish, bits), state)| Tiled::of(op, state, bits, wish));
        let Some(tiled) = tiled else { return self.replicate(body, op) };
        self.whole(body, *state)?;
        let state = body.value(*state)?;
        body.comes_from(op.at.clone(), op.location);
        let around = body.has_attributes(front_end::attributes(&op.attributes));
        let ids = body.tile_of_bits(state, &tiled);
        body.has_attributes(around);
        let (after, tile) = ids.map_err(|e| e.in_instruction(&op.name).at(op.at.clone()))?;
        self.give(body, *next, Tiling::whole(1, body.cx.partitions.count), after)?;
        self.give(body, *bits, tiled.tiling, tile)
    }
}

impl Body<'_, '_> {
    /// The state after all tiles, and this partition's tile.
    fn tile_of_bits(&mut self, state: InstrId, tiled: &Tiled) -> Result<(InstrId, InstrId)> {
        let Tiled { algorithm, tiling, tile, blocks } = tiled;
        let words = self.array(state)?.element_count();
        let before = tiling.tile_of.iter().map(|tile| tile[0] as u64 * blocks).collect();
        let before = self.of_partition(before)?;
        // Of a state of two words, the key doubles as the counter's high half, which is not kept.
        let counted = if *algorithm == RngAlgorithm::ThreeFry { 2 } else { 3 };
        let here = self.state_after(state, before, counted)?;
        let op = RngBitGenerator { algorithm: *algorithm, shape: tile.clone() };
        let results = self.push(op, &[here])?;
        let bits = self.element_of(results, 1)?;
        let all = self.scalar(tiling.tiles[0] as u64 * blocks)?;
        Ok((self.state_after(state, all, words)?, bits))
    }

    /// A generator's state after so many blocks, in two words or three.
    fn state_after(&mut self, state: InstrId, blocks: InstrId, words: usize) -> Result<InstrId> {
        let known = self.array(state)?.element_count();
        let (key, low) = (self.slice_in(state, 0, 0, 1)?, self.slice_in(state, 0, 1, 2)?);
        let blocks = self.reshape(blocks, &[1])?;
        let sum = self.add(low, blocks)?;
        if words == 2 {
            return self.concatenate(&[key, sum], 0);
        }
        let high = if known > 2 { self.slice_in(state, 0, 2, 3)? } else { key };
        let carries = self.compare(Direction::Lt, sum, low)?;
        let carry = self.convert(carries, ElementType::U64)?;
        let high = self.add(high, carry)?;
        self.concatenate(&[key, sum, high], 0)
    }
}

impl<'m> Body<'_, 'm> {
    pub(super) fn rng(&mut self, site: &Site<'_, 'm>) -> Result<InstrId> {
        let [a, b, sizes] = site.operands()?;
        let word = site.attrs.needed_word("rng_distribution")?;
        let word = format!("rng_{}", word.to_ascii_lowercase());
        let mut shape = site.result_array()?;
        if !shape.is_static() {
            let sizes = self.known_sizes(sizes, "the size of a dimension")?;
            shape = ArrayShape::new(shape.element(), sizes)?;
        }
        self.push(Rng { distribution: Distribution::from_word(&word)?, shape }, &[a, b])
    }
}
