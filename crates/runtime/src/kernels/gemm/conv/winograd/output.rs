//! Results, from the products at all points.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Block, LINE, Layout, POINTS, Sizes, load, of_products, vectors};
use crate::Threads;
use crate::kernels::gemm::Finish;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::conv::Convolution;
use crate::kernels::gemm::conv::finish::FinishRows;
use crate::kernels::gemm::conv::tasks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::output::Destination;
use crate::kernels::gemm::simd::{Sums, sum_loops};
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

impl Convolution {
    /// Writes the positions of a block. Returns whether all are finite.
    ///
    /// # Safety
    /// Nothing else accesses these positions of the result.
    pub(super) unsafe fn results(
        &self,
        isa: Isa,
        sizes: &Sizes,
        block: &Block,
        products: &[f32],
        out: Out<'_>,
        threads: Threads<'_>,
    ) -> bool {
        let results = TileResults { conv: self, isa, sizes, block, products, out };
        let is_finite = AtomicBool::new(true);
        threads.for_each(block.rows.len(), &|row| {
            // SAFETY: the caller's promise; each task has other positions.
            let is = unsafe {
                match sizes.layout {
                    Layout::ChannelsFirst => results.of_tiles_turned(row),
                    Layout::ChannelsLast => results.of_tiles(row),
                }
            };
            if !is {
                is_finite.store(false, Ordering::Relaxed);
            }
        });
        is_finite.into_inner()
    }
}

/// The results of a block.
pub(in crate::kernels::gemm) struct TileResults<'a> {
    conv: &'a Convolution,
    isa: Isa,
    sizes: &'a Sizes,
    block: &'a Block,
    products: &'a [f32],
    out: Out<'a>,
}

/// The whole result.
#[derive(Clone, Copy)]
pub(super) struct Out<'a> {
    /// Where it begins.
    pub start: &'a Shared<f32>,
    /// What is done with complete rows.
    pub finish: Option<Finish<'a, u8>>,
}

impl TileResults<'_> {
    /// Writes the positions of a row of tiles, by its number in the block. Returns whether all are finite.
    ///
    /// # Safety
    /// Nothing else accesses them.
    unsafe fn of_tiles(&self, row: usize) -> bool {
        let columns = &self.conv.spatial[1];
        let (start, here, rows_out) = self.place(row);
        let to = self.out.start.get().wrapping_add(start);
        let to = Places { start: to, rows: rows_out, columns: columns.out };
        // SAFETY: the caller's promise; the result lies in its memory.
        let is_finite = unsafe { sum_loops(self.isa).results(self, row, to) };
        if let Some(finish) = self.out.finish.filter(|_| is_finite) {
            let finish = FinishRows { places: self.out.start, finish };
            let positions = Axis::new([(here, rows_out), (columns.output, columns.out)]);
            // SAFETY: the caller's promise; the positions are complete, and lie in the result.
            unsafe { finish.rows(start, &positions, self.sizes.outputs) };
        }
        is_finite
    }

    /// Writes the positions of a row of tiles as [`TileResults::of_tiles`] does, where those of a row are
    /// neighbours: turned around.
    ///
    /// # Safety
    /// Nothing else accesses them.
    unsafe fn of_tiles_turned(&self, row: usize) -> bool {
        let (width, count) = (self.conv.spatial[1].output, self.sizes.outputs);
        let (start, here, rows_out) = self.place(row);
        let mut is_finite = true;
        scratch::with(here * width * count, |sums: &mut [f32]| {
            let to = Places { start: sums.as_mut_ptr(), rows: width * count, columns: count };
            // SAFETY: there is a place for each position of the row.
            is_finite = unsafe { sum_loops(self.isa).results(self, row, to) };
            let positions = Axis::new([(here, rows_out), (width, 1)]);
            let cols = Axis::new([(count, self.conv.outputs.out)]);
            let to = (self.out.start as &dyn Destination<f32>, start);
            // SAFETY: the caller's promise; the result lies in its memory.
            unsafe { tasks::store(self.isa, sums, to, &positions, (&cols, 0..count)) };
        });
        is_finite
    }

    /// Where in the result a row of tiles begins, how many rows of positions it has there, and how far they are
    /// apart.
    fn place(&self, row: usize) -> (usize, usize, usize) {
        let (number, rows) = (self.block.rows.start + row, &self.conv.spatial[0]);
        let (image, tile_row) = (number / self.sizes.rows, number % self.sizes.rows);
        let start = image * self.conv.batch.out + 2 * tile_row * rows.out;
        (start, 2.min(rows.output - 2 * tile_row), rows.out)
    }

    /// Computes the results of a row of tiles, by its number in the block. Returns whether all are finite.
    ///
    /// # Safety
    /// The places of the row's positions, each with all outputs, may be written, and nothing else accesses them. The
    /// features of the processor are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn run<S: Sums>(&self, row: usize, to: Places) -> bool {
        let &TileResults { sizes, block, products, .. } = self;
        let (width, (_, here, _)) = (self.conv.spatial[1].output, self.place(row));
        let (len, pitch) = (sizes.output_len(block), block.output_pitch);
        assert!(row < block.rows.len() && POINTS * len <= products.len(), "there are all products");
        let Places { start, rows, columns } = to;
        // Zeros, and NaN where a result was not finite.
        let mut seen = S::zero();
        for tile in 0..sizes.columns {
            let tile_products =
                products.as_ptr().wrapping_add((row * sizes.columns + tile) * pitch);
            let to = start.wrapping_add(2 * tile * columns);
            for outputs in vectors::<S>(sizes.outputs) {
                let at = tile_products.wrapping_add(outputs.start);
                let to = to.wrapping_add(outputs.start);
                // SAFETY: the features are there; the products of a tile have a place for each output at each point.
                let tiles = unsafe {
                    of_tile::<S>(
                        #[inline(always)]
                        |point| load::<S>(at.wrapping_add(point * len), outputs.len()),
                    )
                };
                for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    if i >= here || 2 * tile + j >= width {
                        continue;
                    }
                    let to = to.wrapping_add(i * rows + j * columns);
                    // SAFETY: the caller's promise, for the outputs of this vector.
                    unsafe {
                        seen = S::mul_add(tiles[i][j], S::zero(), seen);
                        match outputs.len() == S::LANES {
                            true => S::store_all(to, tiles[i][j], false),
                            false => S::store(to, S::mask(outputs.len()), tiles[i][j], false),
                        }
                    }
                }
            }
        }
        let mut lanes = [0.0; LINE];
        // SAFETY: no vector has more lanes.
        unsafe { S::store_all(lanes.as_mut_ptr(), seen, false) };
        lanes == [0.0; LINE]
    }
}

/// Where the results of a row of tiles go.
#[derive(Clone, Copy)]
pub(in crate::kernels::gemm) struct Places {
    /// The first position, the first of its outputs.
    start: *mut f32,
    /// Elements from a row of positions to the next.
    rows: usize,
    /// Elements from a position of a row to the next.
    columns: usize,
}

/// The results of a tile, in rows of two, from the products at each point.
///
/// # Safety
/// The features are there.
#[inline(always)]
unsafe fn of_tile<S: Sums>(products: impl Fn(usize) -> S::Vec) -> [[S::Vec; 2]; 2] {
    let [mut top, mut bottom] = [[S::zero(); 4]; 2];
    // SAFETY: the caller's promise.
    unsafe {
        for j in 0..4 {
            let column = [products(j), products(4 + j), products(8 + j), products(12 + j)];
            [top[j], bottom[j]] = of_products::<S>(column);
        }
        [of_products::<S>(top), of_products::<S>(bottom)]
    }
}
