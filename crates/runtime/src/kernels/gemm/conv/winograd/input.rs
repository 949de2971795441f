//! The sums of the input's elements, at all points.

use std::ops::Range;

use super::{Block, Layout, POINTS, Sizes, load, of_input, vectors};
use crate::Threads;
use crate::kernels::disjoint::Disjoint;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::conv::{Convolution, Spatial};
use crate::kernels::gemm::pack::check_bounds;
use crate::kernels::gemm::simd::{Sums, sum_loops};
use crate::kernels::isa::Isa;

/// Words of the sums that a task writes.
const TASK_WORDS: usize = 1 << 14;

/// Which elements of a row of the input a vector of tiles meets.
struct Columns<S: Sums> {
    /// The first, which may be one of padding.
    first: isize,
    /// Which lanes of four vectors are elements: two from the first on, and two from two elements later on.
    lanes: [S::Mask; 4],
}

impl<S: Sums> Columns<S> {
    /// Those from a column of the padded input on.
    #[inline(always)]
    fn new(dim: &Spatial, column: usize) -> Self {
        let first = column as i64 - dim.pad_low;
        let mut lanes = [S::mask(0); 4];
        for (lanes, after) in lanes.iter_mut().zip([0, S::LANES, 2, S::LANES + 2]) {
            let lane_of = |column: i64| (column - first - after as i64).clamp(0, S::LANES as i64);
            *lanes = S::mask_of(lane_of(0) as usize..lane_of(dim.input as i64) as usize);
        }
        Columns { first: first as isize, lanes }
    }

    /// The sums of a row.
    ///
    /// # Safety
    /// The row begins there, and its elements may be read; the features are there.
    #[inline(always)]
    unsafe fn sums(&self, row: *const f32) -> [S::Vec; 4] {
        let at = row.wrapping_offset(self.first);
        // SAFETY: the caller's promise; other lanes are not accessed.
        unsafe {
            let low = S::load_masked(at, self.lanes[0]);
            let high = S::load_masked(at.wrapping_add(S::LANES), self.lanes[1]);
            let next_low = S::load_masked(at.wrapping_add(2), self.lanes[2]);
            let next_high = S::load_masked(at.wrapping_add(S::LANES + 2), self.lanes[3]);
            of_input::<S>([
                S::even(low, high),
                S::odd(low, high),
                S::even(next_low, next_high),
                S::odd(next_low, next_high),
            ])
        }
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
        let input = TileInput { conv: self, sizes, block, lhs };
        let (loops, points) = (sum_loops(isa), Disjoint::new(points));
        match sizes.layout {
            Layout::ChannelsFirst => {
                let grain = TASK_WORDS / (POINTS * block.input_pitch);
                threads.for_ranges(sizes.features, grain, &|features| {
                    // SAFETY: each task writes rows of other features.
                    unsafe { loops.of_features(&input, features, points) };
                });
            }
            Layout::ChannelsLast => {
                threads.for_each(block.rows.len(), &|row| {
                    // SAFETY: each task writes rows of other tiles.
                    unsafe { loops.of_tiles(&input, row, points) };
                });
            }
        }
    }
}

/// The input of a block.
pub(in crate::kernels::gemm) struct TileInput<'a> {
    conv: &'a Convolution,
    sizes: &'a Sizes,
    block: &'a Block,
    lhs: &'a [f32],
}

impl TileInput<'_> {
    /// Writes the sums of some features, vectors holding tiles.
    ///
    /// # Safety
    /// Nothing else accesses the rows of these features; those of the processor are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn of_features<S: Sums>(
        &self,
        features: Range<usize>,
        points: Disjoint<'_, f32>,
    ) {
        let &TileInput { conv, sizes, block, .. } = self;
        let (pitch, len) = (block.input_pitch, sizes.input_len(block));
        assert!(features.end <= sizes.features && POINTS * len <= points.len());
        // (One vector of fewer tiles than lanes ends in the next row, which is written later.)
        for Range { start: first, .. } in vectors::<S>(sizes.columns) {
            let columns = Columns::<S>::new(&conv.spatial[1], 2 * first);
            for feature in features.clone() {
                let mut last = [[S::zero(); 4]; 2];
                for (i, row) in block.rows.clone().enumerate() {
                    let (image, tile_row) = (row / sizes.rows, row % sizes.rows);
                    let start = image * conv.batch.lhs + feature * conv.features.lhs;
                    let mut rows = [[S::zero(); 4]; 4];
                    [rows[0], rows[1]] = last;
                    // A row of tiles shares two rows of the input with the one above.
                    let known = if i == 0 || tile_row == 0 { 0 } else { 2 };
                    let there = input_rows(&conv.spatial[0], tile_row);
                    for (sums, row) in rows.iter_mut().zip(there).skip(known) {
                        *sums = [S::zero(); 4];
                        if let Some(row) = row {
                            let row = start + row * conv.spatial[0].lhs;
                            // SAFETY: this row is in the input, whose bounds were checked.
                            *sums = unsafe { columns.sums(self.lhs.as_ptr().wrapping_add(row)) };
                        }
                    }
                    last = [rows[2], rows[3]];
                    let to = feature * pitch + i * sizes.columns + first;
                    let to = points.start().wrapping_add(to);
                    for j in 0..4 {
                        let mut column = [S::zero(); 4];
                        for (lanes, row) in column.iter_mut().zip(&rows) {
                            *lanes = row[j];
                        }
                        // SAFETY: the features are there; the caller's promise, of each point for the row of this
                        // feature, in which vectors end that begin with a row of tiles.
                        unsafe {
                            for (i, sums) in of_input::<S>(column).into_iter().enumerate() {
                                S::store_all(to.wrapping_add((4 * i + j) * len), sums, false);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Writes the sums of a row of tiles, by its number in the block, vectors holding features.
    ///
    /// # Safety
    /// Nothing else accesses the rows of these tiles; the features of the processor are there.
    #[inline(always)]
    pub(in crate::kernels::gemm) unsafe fn of_tiles<S: Sums>(
        &self,
        row: usize,
        points: Disjoint<'_, f32>,
    ) {
        let &TileInput { conv, sizes, block, .. } = self;
        let (pitch, len) = (block.input_pitch, sizes.input_len(block));
        let number = block.rows.start + row;
        let (image, tile_row) = (number / sizes.rows, number % sizes.rows);
        let start = image * conv.batch.lhs;
        let rows = input_rows(&conv.spatial[0], tile_row)
            .map(|row| row.map(|row| start + row * conv.spatial[0].lhs));
        assert!(number < block.rows.end && POINTS * len <= points.len());
        let to = points.start().wrapping_add(row * sizes.columns * pitch);
        for channels in vectors::<S>(sizes.features) {
            // SAFETY: the features are there.
            let mut left = unsafe {
                let first = self.column::<S>(rows, 0, channels.clone());
                [first, self.column::<S>(rows, 1, channels.clone())]
            };
            for tile in 0..sizes.columns {
                // SAFETY: the features are there.
                let right = unsafe {
                    let first = self.column::<S>(rows, 2 * tile + 2, channels.clone());
                    [first, self.column::<S>(rows, 2 * tile + 3, channels.clone())]
                };
                let to = to.wrapping_add(tile * pitch + channels.start);
                for i in 0..4 {
                    // SAFETY: the features are there; the caller's promise, for the row of this tile at each point,
                    // which has a place for whole vectors.
                    unsafe {
                        let row = [left[0][i], left[1][i], right[0][i], right[1][i]];
                        for (j, sums) in of_input::<S>(row).into_iter().enumerate() {
                            S::store_all(to.wrapping_add((4 * i + j) * len), sums, false);
                        }
                    }
                }
                left = right;
            }
        }
    }

    /// The sums of some channels, a vector at most, of a column of the padded input, in four rows, which begin there.
    ///
    /// # Safety
    /// The features of the processor are there.
    #[inline(always)]
    unsafe fn column<S: Sums>(
        &self,
        rows: [Option<usize>; 4],
        column: usize,
        channels: Range<usize>,
    ) -> [S::Vec; 4] {
        let columns = &self.conv.spatial[1];
        let column = usize::try_from(column as i64 - columns.pad_low).unwrap_or(usize::MAX);
        let mut elements = [S::zero(); 4];
        if column < columns.input {
            let first = column * columns.lhs + channels.start;
            for (lanes, row) in elements.iter_mut().zip(rows) {
                if let Some(row) = row {
                    let from = self.lhs.as_ptr().wrapping_add(row + first);
                    // SAFETY: these rows and columns are in the input, whose bounds were checked.
                    *lanes = unsafe { load::<S>(from, channels.len()) };
                }
            }
        }
        // SAFETY: the features are there.
        unsafe { of_input::<S>(elements) }
    }
}
