//! The tiles of a block of rows: where each finds its rows of lhs and of the result.

use std::any::Any;
use std::cell::OnceCell;
use std::ops::Range;

use smallvec::SmallVec;

use super::axis::Axis;
use super::cut::{Tiles, chunks};
use super::engine::{ProductBlock, Shared};
use super::few_steps::{FewSteps, FewStepsKernel, LEAST_ROWS, MOST_STEPS, fill_tiles};
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
    /// If they are, or are so within tiles, the rows of any tile from its first; otherwise those of each tile from the first
    /// row of all.
    tiles: SmallVec<[TileRows; 1]>,
    /// How far the first row of each tile is from the first row of all, if they are equally far apart within tiles.
    firsts: SmallVec<[usize; 16]>,
}

impl Offsets {
    pub(super) fn even(stride: usize) -> Self {
        let rows = TileRows { from: std::array::from_fn(|i| i * stride), is_even: true };
        Offsets { stride: Some(stride), tiles: SmallVec::from_buf([rows]), firsts: SmallVec::new() }
    }

    pub(super) fn of(axis: &Axis, tiles: Tiles) -> Self {
        if let Some(stride) = axis.stride() {
            return Offsets::even(stride);
        }
        if let Some((stride, firsts)) = firsts(axis, &tiles) {
            return Offsets { stride: None, firsts, ..Offsets::even(stride) };
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
        Offsets { stride: None, tiles: tiles.map(rows).collect(), firsts: SmallVec::new() }
    }

    /// Where a tile begins, by its number and first row, and its rows from there.
    fn tile(&self, number: usize, first: usize) -> (usize, &TileRows) {
        match self.stride {
            Some(stride) => (first * stride, &self.tiles[0]),
            None => match self.firsts.get(number) {
                Some(&place) => (place, &self.tiles[0]),
                None => (0, &self.tiles[number]),
            },
        }
    }
}

/// How far rows of an axis are apart, and where each tile begins, if tiles are cut so that the rows of each are equally far
/// apart.
fn firsts(axis: &Axis, tiles: &Tiles) -> Option<(usize, SmallVec<[usize; 16]>)> {
    if !tiles.are_in_runs {
        return None;
    }
    let (mut place, mut left, mut stride) = (0, 0, 0);
    let first = |tile: Range<usize>| {
        if left == 0 {
            (place, left, stride) = axis.run(tile.start, usize::MAX);
        }
        let first = place;
        // (Rows of another axis than that which tiles are cut for may end within one.)
        left = left.checked_sub(tile.len())?;
        place += tile.len() * stride;
        Some(first)
    };
    let firsts = tiles.clone().map(first).collect::<Option<_>>()?;
    Some((stride, firsts))
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
    /// How rows are cut into tiles,
    cut: Tiles,
    /// and the rows of each, once somebody asks. (Kernels for few steps do not.)
    tiles: OnceCell<SmallVec<[Range<usize>; 16]>>,
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
            cut: tiles,
            tiles: OnceCell::new(),
            origin: part.place.origin,
            add: part.add,
        }
    }

    /// Some columns, at most as many as a tile has, for which rhs begins at `start`, its rows being `step` apart: as many
    /// words as a tile has columns may be read of each if it is `packed`.
    pub(super) fn panel(
        &self,
        cols: Range<usize>,
        (start, step): (*const W, usize),
        packed: bool,
    ) -> Panel<W> {
        let format = self.tiled.format();
        let vecs = cols.len().div_ceil(format.lanes);
        let last_lanes = cols.len() - (vecs - 1) * format.lanes;
        Panel {
            first: cols.start,
            vecs,
            last_lanes,
            has_vectors: packed || last_lanes == format.lanes,
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
        for number in 0..self.tiles().len() {
            // SAFETY: the caller's promise.
            unsafe { self.run_tile(number, panel, ahead(number)) };
        }
    }

    /// The kernel for `steps` that are few, if it computes a panel.
    pub(super) fn few_steps(&self, panel: &Panel<W>, steps: usize) -> Option<FewStepsKernel<W, A>> {
        let lhs = &self.lhs;
        let are_neighbours = !lhs.packed && lhs.step == 1;
        let are_few = (1..=MOST_STEPS).contains(&steps) && self.rows().len() >= LEAST_ROWS;
        let are_even = match self.cut.run_rows() {
            Some(run) => {
                let last = self.rows().len() % run;
                let are_firsts =
                    |offsets: &Offsets| offsets.stride.is_some() || !offsets.firsts.is_empty();
                are_firsts(&lhs.offsets)
                    && are_firsts(&self.out)
                    && fill_tiles(run)
                    && (last == 0 || fill_tiles(last))
            }
            None => lhs.offsets.stride.is_some() && self.out.stride.is_some(),
        };
        let are_read = panel.is_half || panel.has_vectors;
        let whole = panel.vecs - usize::from(panel.is_half);
        (are_few && are_neighbours && are_even && are_read && !self.add)
            .then(|| self.tiled.few_steps(whole, panel.is_half))?
    }

    /// How many rows are equally far apart, if not all.
    pub(super) fn run_rows(&self) -> Option<usize> {
        self.cut.run_rows()
    }

    /// The rows of each tile.
    pub(super) fn tiles(&self) -> &[Range<usize>] {
        self.tiles.get_or_init(|| self.cut.clone().collect())
    }

    /// The rows of all tiles.
    pub(super) fn rows(&self) -> Range<usize> {
        self.cut.rows.clone()
    }

    /// Computes some rows of the columns of a panel, at least as many as a tile of `kernel` has, and whole runs if rows are
    /// in such; asks for what is `ahead`.
    ///
    /// # Safety
    /// As for [`Self::run`]; [`Self::few_steps`] has given the kernel for this panel.
    pub(super) unsafe fn run_few_steps(
        &self,
        kernel: FewStepsKernel<W, A>,
        panel: &Panel<W>,
        rows: Range<usize>,
        ahead: Range<*const u8>,
    ) {
        let run = self.cut.run_rows();
        let mut ahead = ahead;
        for rows in chunks(rows.clone(), run.unwrap_or(rows.len()).max(1)) {
            let number = match run {
                Some(run) => (rows.start - self.rows().start) / run * self.cut.tiles_of_run(),
                None => 0,
            };
            let (lhs, lhs_rows) = self.lhs.offsets.tile(number, rows.start);
            let (out, out_rows) = self.out.tile(number, rows.start);
            let of = FewSteps {
                rows: rows.len(),
                cols: (panel.vecs - 1) * self.tiled.format().lanes + panel.last_lanes,
                runs: self.lhs.runs,
                lhs: self.lhs.start.wrapping_add(lhs),
                lhs_row: lhs_rows.from[1],
                rhs: panel.rhs,
                rhs_step: panel.rhs_step,
                out: self.origin.get().wrapping_add(out + panel.first),
                out_row: out_rows.from[1],
                ahead: std::mem::replace(&mut ahead, panel.bytes(0)),
            };
            // SAFETY: the caller's promise; `self.tiled` proves the features.
            unsafe { kernel(&of) };
        }
    }

    /// Computes the columns of a panel, of the rows of one tile, by its number, which asks for what is `ahead`.
    ///
    /// # Safety
    /// As for [`Self::run`], of these rows.
    #[inline(always)]
    pub(super) unsafe fn run_tile(&self, number: usize, panel: &Panel<W>, ahead: Ahead) {
        let tile = &self.tiles()[number];
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
        let rows = tile.len();
        let half = (suits && panel.is_half)
            .then(|| self.tiled.half_tile(rows, panel.vecs - 1, packed))
            .flatten();
        let whole = (suits && panel.has_vectors)
            .then(|| self.tiled.whole_tile(rows, panel.vecs, packed))
            .flatten();
        let compute = half.or(whole).unwrap_or_else(|| self.tiled.tile(rows, panel.vecs, packed));
        // SAFETY: the caller's promise; `self.tiled` proves the features; what whole tiles take for granted was
        // just looked at.
        unsafe { compute(&args) };
    }
}

impl<W> Panel<W> {
    /// Where so many steps of it lie, if it is packed.
    pub(super) fn bytes(&self, steps: usize) -> Range<*const u8> {
        self.rhs.cast()..self.rhs.wrapping_add(self.rhs_step * steps).cast()
    }
}

/// Some columns, at most as many as a tile has.
pub(super) struct Panel<W> {
    /// The first of them.
    first: usize,
    /// The vectors of a row, and how many lanes of the last of them count.
    vecs: usize,
    last_lanes: usize,
    /// Whether all lanes of the last vector may be read.
    has_vectors: bool,
    /// Whether no more than half of the last vector counts.
    is_half: bool,
    /// The bytes of a row of a whole tile.
    row_bytes: usize,
    /// Where rhs begins, and how far its rows are apart.
    rhs: *const W,
    rhs_step: usize,
}
