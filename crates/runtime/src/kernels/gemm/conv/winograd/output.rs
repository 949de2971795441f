//! Results, from the products at all points.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Block, LANES, Lanes, Layout, Sizes, are_finite, of_products, store};
use crate::Threads;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::gemm::Finish;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::conv::Convolution;
use crate::kernels::gemm::conv::finish::FinishRows;
use crate::kernels::gemm::conv::tasks;
use crate::kernels::gemm::engine::Shared;
use crate::kernels::gemm::output::Destination;
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
        let results = Results { conv: self, isa, sizes, block, products, out };
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
struct Results<'a> {
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
    pub elements: Disjoint<'a, f32>,
    /// Where it begins.
    pub start: &'a Shared<f32>,
    /// What is done with complete rows.
    pub finish: Option<Finish<'a, u8>>,
}

impl Results<'_> {
    /// Writes the positions of a row of tiles, by its number in the block. Returns whether all are finite.
    ///
    /// # Safety
    /// Nothing else accesses them.
    unsafe fn of_tiles(&self, row: usize) -> bool {
        let columns = &self.conv.spatial[1];
        let (start, here, rows_out) = self.place(row);
        let is_finite = self.each_vector(
            row,
            #[inline(always)]
            |(i, x), outputs, lanes| {
                let place = start + i * rows_out + x * columns.out + outputs.start;
                // SAFETY: the caller's promise.
                write(unsafe { self.out.elements.part(place, outputs.len()) }, lanes)
            },
        );
        if let Some(finish) = self.out.finish.filter(|_| is_finite) {
            let finish = FinishRows { places: self.out.start, finish };
            let positions = Axis::new([(here, rows_out), (columns.output, columns.out)]);
            // SAFETY: the caller's promise; the positions are complete, and lie in the result.
            unsafe { finish.rows(start, &positions, self.sizes.outputs) };
        }
        is_finite
    }

    /// Writes the positions of a row of tiles as [`Results::of_tiles`] does, where those of a row are
    /// neighbours: turned around.
    ///
    /// # Safety
    /// Nothing else accesses them.
    unsafe fn of_tiles_turned(&self, row: usize) -> bool {
        let (width, count) = (self.conv.spatial[1].output, self.sizes.outputs);
        let (start, here, rows_out) = self.place(row);
        let mut is_finite = true;
        scratch::with(here * width * count, |sums: &mut [f32]| {
            is_finite = self.each_vector(
                row,
                #[inline(always)]
                |(i, x), outputs, lanes| {
                    write(&mut sums[(i * width + x) * count..][..count][outputs], lanes)
                },
            );
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

    /// Gives each vector of results of a row of tiles to `write`, with its row and column among their positions
    /// and its outputs. Returns whether that says so of all.
    fn each_vector(
        &self,
        row: usize,
        mut write: impl FnMut((usize, usize), Range<usize>, Lanes) -> bool,
    ) -> bool {
        let &Results { sizes, block, products, .. } = self;
        let (width, (_, here, _)) = (self.conv.spatial[1].output, self.place(row));
        let len = sizes.output_len(block);
        let mut are_all = true;
        self.isa.run(
            #[inline(always)]
            || {
                for tile in 0..sizes.columns {
                    for first in (0..sizes.outputs).step_by(LANES) {
                        let at = (row * sizes.columns + tile) * block.output_pitch + first;
                        let tiles = results(
                            #[inline(always)]
                            |point| lanes(&products[point * len + at..]),
                        );
                        let outputs = first..sizes.outputs.min(first + LANES);
                        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                            let x = 2 * tile + j;
                            if i < here && x < width {
                                are_all &= write((i, x), outputs.clone(), tiles[i][j]);
                            }
                        }
                    }
                }
            },
        );
        are_all
    }
}

/// Writes lanes to places, as many as there are. Returns whether they are finite.
#[inline(always)]
fn write(to: &mut [f32], lanes: Lanes) -> bool {
    store(lanes, to);
    match to.len() {
        LANES.. => are_finite(&lanes),
        count => are_finite(&lanes[..count]),
    }
}

/// The results of tiles, in rows of two, from the products at each point.
#[inline(always)]
fn results(products: impl Fn(usize) -> Lanes) -> [[Lanes; 2]; 2] {
    let [mut top, mut bottom] = [[[0.0; LANES]; 4]; 2];
    for (j, (top, bottom)) in top.iter_mut().zip(&mut bottom).enumerate() {
        [*top, *bottom] =
            of_products([products(j), products(4 + j), products(8 + j), products(12 + j)]);
    }
    [of_products(top), of_products(bottom)]
}

#[inline(always)]
fn lanes(from: &[f32]) -> Lanes {
    *from.first_chunk().expect("rows of whole vectors")
}
