//! How a convolution is cut into tasks, and what a task has of each dimension.

use std::ops::Range;

use super::Convolution;
use super::region::{Line, Window};
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::cut::{even_chunks, even_parts};

/// Rows of a product that make a task.
const TASK_ROWS: usize = 384;
/// Multiplications that make a task, if these are more rows: eight microseconds of a core that makes 260 GFLOP/s. A task
/// takes about one besides.
const LEAST_WORK: usize = 1 << 20;
/// Channels of a task of groups, and how many it has where rows are so long that regions of more would not fit.
const TASK_CHANNELS: [usize; 3] = [256, 64, 16];
/// Words of a region that fit the second-level cache beside a block of the kernel.
const REGION_WORDS: usize = 1 << 17;
/// Words of a region that are too many to try.
const MAX_WORDS: usize = 1 << 24;

/// How the result is cut into tasks: sizes of the pieces of each dimension.
pub(super) struct Cut {
    pub batch: usize,
    /// Positions in the first spatial dimension.
    pub strip: usize,
    /// Features that are summed at once.
    pub features: usize,
    /// Extents of a region in the spatial dimensions.
    pub extents: Vec<usize>,
}

impl Cut {
    /// Cuts so that tasks have about [`TASK_ROWS`] rows, or [`LEAST_WORK`], and regions of `minor` words for each position
    /// and feature fit the cache, as far as possible.
    pub(super) fn new(conv: &Convolution, batch_is_minor: bool, minor: usize) -> Option<Cut> {
        let taps = conv.spatial.iter().map(|dim| dim.kernel);
        let row_work = taps.chain([conv.features.size, conv.outputs.size, minor]);
        let row_work = row_work.fold(1, usize::saturating_mul);
        let many = LEAST_WORK / row_work.max(1);
        let large = (many > TASK_ROWS).then(|| Cut::of_rows(conv, batch_is_minor, minor, many));
        // With all features, which would be summed in parts otherwise.
        let is_near = |cut: &Cut| {
            let sizes = cut.extents.iter().chain([&cut.batch, &minor, &conv.features.size]);
            sizes.fold(1, |words: usize, &size| words.saturating_mul(size)) <= REGION_WORDS
        };
        let large = large.flatten().filter(is_near);
        large.or_else(|| Cut::of_rows(conv, batch_is_minor, minor, TASK_ROWS))
    }

    /// Cuts so that tasks have about `rows` rows.
    fn of_rows(conv: &Convolution, batch_is_minor: bool, minor: usize, rows: usize) -> Option<Cut> {
        let (first, rest) = conv.spatial.split_first()?;
        let inner = rest.iter().try_fold(1_usize, |n, dim| n.checked_mul(dim.output))?;
        let image = inner.checked_mul(first.output)?.max(1);
        let most = if batch_is_minor { 64 } else { rows / 2 / image + 1 };
        let batch = even_parts(conv.batch.size, most).1;
        let row = if batch_is_minor { inner.checked_mul(batch)? } else { inner };
        let (strips, strip) = even_parts(first.output, (rows / row.max(1)).max(1));
        // An even number of several, as threads often are.
        let strip = match strips {
            1 => strip,
            several => first.output.div_ceil(several.next_multiple_of(2)).max(1),
        };
        let outputs = std::iter::once(strip).chain(rest.iter().map(|dim| dim.output));
        let extents = conv.spatial.iter().zip(outputs).map(|(dim, n)| Window(dim).extent(n));
        let extents = extents.collect::<Option<Vec<_>>>()?;
        let words = extents.iter().try_fold(minor, |n, &extent| n.checked_mul(extent))?;
        let words = words.checked_mul(batch)?;
        let features = (REGION_WORDS / words.max(1)).max(1);
        let features = if features >= conv.features.size {
            conv.features.size
        } else {
            even_parts(conv.features.size, (features / 16 * 16).max(1)).1
        };
        let fits = words.checked_mul(features)? <= MAX_WORDS;
        fits.then_some(Cut { batch, strip, features, extents })
    }
}

/// A piece of the result: some of the batch and a strip of positions.
pub(super) struct Piece {
    pub batch: Range<usize>,
    pub strip: Range<usize>,
}

impl Convolution {
    /// Whether the regions of tasks fit memory, and are not mostly holes.
    pub(super) fn regions_are_small(&self) -> bool {
        let has_groups = self.vectors_of_groups() || self.group_windows().is_some();
        let has_products = !self.vectors_of_groups();
        (!has_groups || self.grouped_cut().is_some())
            && (!has_products || Cut::new(self, self.batch_is_minor(), 1).is_some())
    }

    /// The cut for vectors of groups, and of how many channels a task's region is: as many as it has room for.
    pub(super) fn grouped_cut(&self) -> Option<(Cut, usize)> {
        let count = self.group.size.saturating_mul(self.outputs.size);
        TASK_CHANNELS.into_iter().find_map(|most| {
            let channels = count.min(most);
            Some((Cut::new(self, false, channels)?, channels))
        })
    }

    /// Whether there is nothing to compute, or nothing to sum.
    pub(super) fn is_empty(&self) -> bool {
        let sizes = [self.group, self.batch, self.features, self.outputs].map(|dim| dim.size);
        let taps = self.spatial.iter().flat_map(|dim| [dim.output, dim.kernel]);
        sizes.into_iter().chain(taps).any(|size| size == 0)
    }

    /// Whether the batch, not the features, varies fastest in regions, as in the input.
    pub(super) fn batch_is_minor(&self) -> bool {
        let others = self.spatial.iter().filter(|dim| dim.input > 1).map(|dim| dim.lhs);
        self.batch.size >= 2
            && self.batch.lhs < self.features.lhs
            && others.min().is_none_or(|stride| self.batch.lhs < stride)
    }

    /// The pieces that this cut makes.
    pub(super) fn pieces(&self, cut: &Cut) -> Vec<Piece> {
        let strips = self.spatial.first().map_or(1, |dim| dim.output);
        let batches = even_chunks(self.batch.size, cut.batch);
        batches
            .flat_map(|batch| {
                let strips = even_chunks(strips, cut.strip);
                strips.map(move |strip| Piece { batch: batch.clone(), strip })
            })
            .collect()
    }

    /// The lines of a piece's spatial dimensions.
    pub(super) fn lines(&self, piece: &Piece, cut: &Cut) -> impl Iterator<Item = Line> {
        let first = Some(piece.strip.clone());
        let strips = first.into_iter().chain(std::iter::repeat(0..0));
        self.spatial.iter().zip(strips).zip(&cut.extents).map(|((dim, strip), &extent)| {
            let extent =
                if strip.is_empty() { Some(extent) } else { Window(dim).extent(strip.len()) };
            Line::of(Window(dim), strip.start, extent.unwrap_or(0))
        })
    }

    /// How many positions of the result a piece has in each spatial dimension.
    pub(super) fn positions(&self, piece: &Piece) -> impl Iterator<Item = usize> {
        let rest = self.spatial.iter().skip(1).map(|dim| dim.output);
        std::iter::once(piece.strip.len()).chain(rest)
    }

    /// The rows of the result in a piece.
    pub(super) fn out_rows(&self, piece: &Piece, batch_is_minor: bool) -> Axis {
        let batch = (piece.batch.len(), self.batch.out);
        let positions = self.positions(piece).zip(self.spatial.iter().map(|dim| dim.out));
        let (before, after) =
            if batch_is_minor { (None, Some(batch)) } else { (Some(batch), None) };
        Axis::new(before.into_iter().chain(positions).chain(after))
    }

    /// Where a piece of the result begins.
    pub(super) fn out_start(&self, piece: &Piece) -> usize {
        let strip = self.spatial.first().map_or(0, |dim| piece.strip.start * dim.out);
        piece.batch.start * self.batch.out + strip
    }
}
