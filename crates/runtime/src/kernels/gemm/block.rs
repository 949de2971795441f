//! The tiles of a block of rows: where each finds its rows of lhs and of the result.

use std::any::Any;
use std::ops::Range;

use smallvec::SmallVec;

use super::axis::Axis;
use super::cut::Tiles;
use super::engine::{ProductBlock, Shared};
use super::tile::{Ahead, MAX_ROWS, Run, TileArgs, Tiled};

/// The rows of memory that sums are accumulated in.
#[derive(Clone, Copy)]
pub(super) struct SumRows<'a, T> {
    /// Of row 0 and column 0, which need not be there.
    pub origin: Shared<T>,
    pub rows: &'a Axis,
}

/// The rows of a tile.
struct TileRows {
    /// How far each is from where the tile begins.
    from: [usize; MAX_ROWS],
    /// Whether all are as far from each other.
    is_even: bool,
}

/// How far rows are from where their tiles begin.
pub(super) struct Offsets {
    /// From row to row, if all neighbours are equally far apart.
    stride: Option<usize>,
    /// If they are, the rows of any tile from its first; otherwise those of each tile from the first row of
    /// all.
    tiles: SmallVec<[TileRows; 1]>,
}

impl Offsets {
    pub(super) fn even(stride: usize) -> Self {
        let rows = TileRows { from: std::array::from_fn(|i| i * stride), is_even: true };
        Offsets { stride: Some(stride), tiles: SmallVec::from_buf([rows]) }
    }

    pub(super) fn of(axis: &Axis, tiles: Tiles) -> Self {
        if let Some(stride) = axis.stride() {
            return Offsets::even(stride);
        }
        // The rows of tiles follow each other: those of the axis that are equally far apart are taken to their end.
        let (mut place, mut left, mut stride) = (0, 0, 0);
        let rows = |tile: Range<usize>| {
            let mut from = [0; MAX_ROWS];
            let of_tile = &mut from[..tile.len()];
            let is_one_run = left >= tile.len();
            for (row, offset) in tile.zip(&mut *of_tile) {
                if left == 0 {
                    (place, left, stride) = axis.run(row, usize::MAX);
                }
                *offset = place;
                (place, left) = (place.wrapping_add(stride), left - 1);
            }
            let apart = |w: &[usize]| w[1].wrapping_sub(w[0]);
            let is_even = is_one_run || of_tile.windows(3).all(|w| apart(&w[1..]) == apart(w));
            TileRows { from, is_even }
        };
        Offsets { stride: None, tiles: tiles.map(rows).collect() }
    }

    /// Where a tile begins, by its number and first row, and its rows from there.
    fn tile(&self, number: usize, first: usize) -> (usize, &TileRows) {
        match self.stride {
            Some(stride) => (first * stride, &self.tiles[0]),
            None => (0, &self.tiles[number]),
        }
    }
}

/// lhs for a block of steps and rows.
pub(super) struct Lhs<'a, W> {
    pub packed: bool,
    /// The first step of row 0, which need not be there.
    pub start: *const W,
    /// Where tiles find their rows, or their panels.
    pub offsets: Offsets,
    pub runs: &'a [Run],
    /// From step to step in a run.
    pub step: usize,
}

/// The tiles of some rows and a block of steps, to be computed for one panel of rhs after the other.
pub(super) struct TileBlock<'a, W, A> {
    tiled: &'a dyn Tiled<W, A>,
    session: Box<dyn Any>,
    /// The rows of each tile.
    pub tiles: SmallVec<[Range<usize>; 16]>,
    lhs: Lhs<'a, W>,
    out: Offsets,
    origin: Shared<A>,
    add: bool,
}

impl<'a, W, A> TileBlock<'a, W, A> {
    pub(super) fn new(
        tiled: &'a dyn Tiled<W, A>,
        part: &ProductBlock<'_, A>,
        tiles: Tiles,
        lhs: Lhs<'a, W>,
    ) -> Self {
        TileBlock {
            tiled,
            session: tiled.session(),
            lhs,
            out: Offsets::of(part.place.rows, tiles.clone()),
            tiles: tiles.collect(),
            origin: part.place.origin,
            add: part.add,
        }
    }

    /// Some columns, at most as many as a tile has, for which rhs begins at `start`, its rows being `step` apart.
    pub(super) fn panel(&self, cols: Range<usize>, (start, step): (*const W, usize)) -> Panel<W> {
        let format = self.tiled.format();
        let vecs = cols.len().div_ceil(format.lanes);
        let last_lanes = cols.len() - (vecs - 1) * format.lanes;
        Panel {
            first: cols.start,
            vecs,
            last_lanes,
            is_whole: last_lanes == format.lanes,
            is_half: last_lanes * 2 <= format.lanes,
            row_bytes: format.width() * size_of::<W>(),
            rhs: start,
            rhs_step: step,
        }
    }

    /// Computes the columns of a panel, of all rows. `ahead` is called before each tile, by its number, and says what the
    /// tile asks for.
    ///
    /// # Safety
    /// What lhs and the panel tell may be read, and the sums of these rows and columns read and written, which
    /// nothing else accesses.
    pub(super) unsafe fn run(&self, panel: &Panel<W>, mut ahead: impl FnMut(usize) -> Ahead) {
        for number in 0..self.tiles.len() {
            // SAFETY: the caller's promise.
            unsafe { self.run_tile(number, panel, ahead(number)) };
        }
    }

    /// Computes the columns of a panel, of the rows of one tile, by its number, which asks for what is `ahead`.
    ///
    /// # Safety
    /// As for [`Self::run`], of these rows.
    #[inline(always)]
    pub(super) unsafe fn run_tile(&self, number: usize, panel: &Panel<W>, ahead: Ahead) {
        let tile = &self.tiles[number];
        let (lhs_start, lhs_rows) = self.lhs.offsets.tile(number, tile.start);
        let (out, out_rows) = self.out.tile(number, tile.start);
        let args = TileArgs {
            session: &*self.session,
            rows: tile.len(),
            vecs: panel.vecs,
            lhs: self.lhs.start.wrapping_add(lhs_start),
            lhs_rows: &lhs_rows.from,
            runs: self.lhs.runs,
            lhs_step: self.lhs.step,
            rhs: panel.rhs,
            rhs_step: panel.rhs_step,
            out: self.origin.get().wrapping_add(out + panel.first),
            out_rows: &out_rows.from,
            out_is_even: out_rows.is_even,
            last_lanes: panel.last_lanes,
            add: self.add,
            ahead,
        };
        let packed = self.lhs.packed;
        let suits = (packed || lhs_rows.is_even) && args.ahead.suits_pairs(panel.row_bytes);
        let whole = match suits {
            true if panel.is_whole => self.tiled.whole_tile(tile.len(), panel.vecs, packed),
            true if panel.is_half => self.tiled.half_tile(tile.len(), panel.vecs - 1, packed),
            _ => None,
        };
        let compute = whole.unwrap_or_else(|| self.tiled.tile(tile.len(), panel.vecs, packed));
        // SAFETY: the caller's promise; `self.tiled` proves the features; what whole tiles take for granted was
        // just looked at.
        unsafe { compute(&args) };
    }
}

/// Some columns, at most as many as a tile has.
pub(super) struct Panel<W> {
    /// The first of them.
    first: usize,
    /// The vectors of a row, and how many lanes of the last of them count.
    vecs: usize,
    last_lanes: usize,
    /// Whether all lanes of the last vector count.
    is_whole: bool,
    /// Whether no more than half of the last vector counts.
    is_half: bool,
    /// The bytes of a row of a whole tile.
    row_bytes: usize,
    /// Where rhs begins, and how far its rows are apart.
    rhs: *const W,
    rhs_step: usize,
}
