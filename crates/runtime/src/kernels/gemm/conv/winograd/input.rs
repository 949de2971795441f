//! The sums of the input's elements, at all points.

use std::ops::Range;

use super::{Block, LANES, Lanes, Layout, POINTS, Sizes, load, of_input};
use crate::Threads;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::conv::{Convolution, Spatial};
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::isa::Isa;
use crate::kernels::scratch;

/// Words of the sums that a task writes.
const TASK_WORDS: usize = 1 << 14;

/// Which elements of a row of the input tiles meet.
struct Columns {
    /// The first element, and how many.
    first: usize,
    count: usize,
    /// How many columns of padding come before it.
    padding: usize,
}

impl Columns {
    /// Those of a row of `tiles`.
    fn new(dim: &Spatial, tiles: usize) -> Self {
        let met = 2 * tiles + 2;
        let first = usize::try_from(-dim.pad_low).unwrap_or(0).min(dim.input);
        let padding = usize::try_from(dim.pad_low).unwrap_or(0).min(met);
        Columns { first, count: (dim.input - first).min(met - padding), padding }
    }
}

/// The row of the input at which a row of tiles begins, and the three below it, as far as they are there.
fn input_rows(dim: &Spatial, tile_row: usize) -> [Option<usize>; 4] {
    let first = 2 * tile_row as i64 - dim.pad_low;
    std::array::from_fn(|i| usize::try_from(first + i as i64).ok().filter(|&row| row < dim.input))
}

impl Convolution {
    /// Writes the sums of a block of the input at all points.
    ///
    /// # Panics
    /// If the input is longer than its slice.
    pub(super) fn input_points(
        &self,
        isa: Isa,
        sizes: &Sizes,
        block: &Block,
        lhs: &[f32],
        points: &mut [f32],
        threads: Threads<'_>,
    ) {
        let spatial = self.spatial.iter().map(|dim| (dim.input, dim.lhs));
        let all = Axis::new([(self.batch.size, self.batch.lhs)].into_iter().chain(spatial));
        check_bounds(lhs.len(), 0, &all, &Axis::new([(self.features.size, self.features.lhs)]));
        let columns = Columns::new(&self.spatial[1], sizes.columns);
        let input = Input { conv: self, isa, sizes, block, columns, lhs };
        let points = Disjoint::new(points);
        match sizes.layout {
            Layout::ChannelsFirst => {
                let grain = TASK_WORDS / (POINTS * block.input_pitch);
                threads.for_ranges(sizes.features, grain, &|features| {
                    // SAFETY: each task writes rows of other features.
                    unsafe { input.of_features(features, points) };
                });
            }
            Layout::ChannelsLast => {
                threads.for_each(block.rows.len(), &|row| {
                    // SAFETY: each task writes rows of other tiles.
                    unsafe { input.of_tiles(row, points) };
                });
            }
        }
    }
}

/// The input of a block.
struct Input<'a> {
    conv: &'a Convolution,
    isa: Isa,
    sizes: &'a Sizes,
    block: &'a Block,
    columns: Columns,
    lhs: &'a [f32],
}

impl Input<'_> {
    /// Writes the sums of some features, vectors holding tiles.
    ///
    /// # Safety
    /// Nothing else accesses the rows of these features.
    unsafe fn of_features(&self, features: Range<usize>, points: Disjoint<'_, f32>) {
        let &Input { conv, isa, sizes, block, .. } = self;
        let (pitch, len) = (block.input_pitch, sizes.input_len(block));
        let vectors = sizes.columns.div_ceil(LANES);
        // Even and odd columns apart, with those behind the last vector.
        let phase = (vectors + 1) * LANES;
        scratch::with(2 * phase + 16 * vectors * LANES, |words: &mut [f32]| {
            let (elements, sums) = words.split_at_mut(2 * phase);
            elements.fill(0.0);
            // Sums of four rows of the input, row `i` being that of number `i % 4`.
            let sums = sums.as_chunks_mut::<LANES>().0;
            isa.run(
                #[inline(always)]
                || {
                    for feature in features {
                        for (i, row) in block.rows.clone().enumerate() {
                            let (image, tile_row) = (row / sizes.rows, row % sizes.rows);
                            let start = image * conv.batch.lhs + feature * conv.features.lhs;
                            let known = if i == 0 || tile_row == 0 { 0 } else { 2 };
                            let rows = input_rows(&conv.spatial[0], tile_row);
                            for (n, row) in rows.into_iter().enumerate().skip(known) {
                                let to = (2 * tile_row + n) % 4 * 4 * vectors;
                                let to = &mut sums[to..][..4 * vectors];
                                match row {
                                    Some(row) => {
                                        let start = start + row * conv.spatial[0].lhs;
                                        self.columns.split(&self.lhs[start..], elements, phase);
                                        of_row(elements, phase, to);
                                    }
                                    None => to.fill([0.0; LANES]),
                                }
                            }
                            let first = feature * pitch + i * sizes.columns;
                            for (j, v) in (0..4 * vectors).map(|at| (at / vectors, at % vectors)) {
                                let mut column = [[0.0; LANES]; 4];
                                for (n, row) in column.iter_mut().enumerate() {
                                    *row = sums[((2 * tile_row + n) % 4 * 4 + j) * vectors + v];
                                }
                                let column = of_input(column);
                                for (i, sums) in column.iter().enumerate() {
                                    let at = (4 * i + j) * len + first + v * LANES;
                                    // SAFETY: the caller's promise.
                                    unsafe { points.part(at, LANES) }.copy_from_slice(sums);
                                }
                            }
                        }
                    }
                },
            );
        });
    }

    /// Writes the sums of a row of tiles, by its number in the block, vectors holding features.
    ///
    /// # Safety
    /// Nothing else accesses the rows of these tiles.
    unsafe fn of_tiles(&self, row: usize, points: Disjoint<'_, f32>) {
        let &Input { conv, isa, sizes, block, ref columns, .. } = self;
        let (pitch, len) = (block.input_pitch, sizes.input_len(block));
        let number = block.rows.start + row;
        let (image, tile_row) = (number / sizes.rows, number % sizes.rows);
        let start = image * conv.batch.lhs + columns.first * conv.spatial[1].lhs;
        let rows = input_rows(&conv.spatial[0], tile_row)
            .map(|row| row.map(|row| start + row * conv.spatial[0].lhs));
        let vectors = sizes.features.div_ceil(LANES);
        scratch::with(16 * vectors * LANES, |sums: &mut [f32]| {
            // For each vector the sums of four columns of the input, column `q` being that of number `q % 4`.
            let sums =
                sums.as_chunks_mut::<LANES>().0.as_chunks_mut::<4>().0.as_chunks_mut::<4>().0;
            isa.run(
                #[inline(always)]
                || {
                    for q in 0..2 * sizes.columns + 2 {
                        let column = q.checked_sub(columns.padding).filter(|&x| x < columns.count);
                        let column = column.map(|x| x * conv.spatial[1].lhs);
                        for (v, sums) in sums.iter_mut().enumerate() {
                            let first = v * LANES;
                            let count = LANES.min(sizes.features - first);
                            let mut elements = [[0.0; LANES]; 4];
                            for (lanes, row) in elements.iter_mut().zip(rows) {
                                if let (Some(row), Some(column)) = (row, column) {
                                    *lanes = load(&self.lhs[row + column + first..], count);
                                }
                            }
                            sums[q % 4] = of_input(elements);
                            if q % 2 == 0 || q < 3 {
                                continue;
                            }
                            let tile = row * sizes.columns + (q - 3) / 2;
                            for i in 0..4 {
                                let mut row = [[0.0; LANES]; 4];
                                for (n, lanes) in row.iter_mut().enumerate() {
                                    *lanes = sums[(q + 1 + n) % 4][i];
                                }
                                for (j, sums) in of_input(row).iter().enumerate() {
                                    let at = (4 * i + j) * len + tile * pitch + first;
                                    // SAFETY: the caller's promise.
                                    unsafe { points.part(at, LANES) }.copy_from_slice(sums);
                                }
                            }
                        }
                    }
                },
            );
        });
    }
}

impl Columns {
    /// Copies the elements of a row, even and odd columns apart.
    #[inline(always)]
    fn split(&self, row: &[f32], elements: &mut [f32], phase: usize) {
        let row = &row[self.first..][..self.count];
        let (even, odd) = elements.split_at_mut(phase);
        // The first element may be in an odd column.
        let (even, odd, row) = match (self.padding % 2, row) {
            (1, [first, rest @ ..]) => {
                odd[self.padding / 2] = *first;
                (&mut even[self.padding / 2 + 1..], &mut odd[self.padding / 2 + 1..], rest)
            }
            _ => (&mut even[self.padding / 2..], &mut odd[self.padding / 2..], row),
        };
        let (pairs, rest) = row.as_chunks::<2>();
        for ((even, odd), pair) in even.iter_mut().zip(odd).zip(pairs) {
            (*even, *odd) = (pair[0], pair[1]);
        }
        if let ([last], Some(word)) = (rest, even.get_mut(pairs.len())) {
            *word = *last;
        }
    }
}

/// Writes the sums of a row of the input, of which even and odd columns lie apart.
#[inline(always)]
fn of_row(elements: &[f32], phase: usize, to: &mut [Lanes]) {
    let (even, odd) = elements.split_at(phase);
    let vectors = to.len() / 4;
    for v in 0..vectors {
        let (even, odd) = (&even[v * LANES..], &odd[v * LANES..]);
        let next = [load(&even[1..], LANES), load(&odd[1..], LANES)];
        let sums = of_input([load(even, LANES), load(odd, LANES), next[0], next[1]]);
        for (j, sums) in sums.into_iter().enumerate() {
            to[j * vectors + v] = sums;
        }
    }
}
