//! Parts of the input with their padding and holes, as products read them.

use std::ops::Range;

use super::{Spatial, advance};
use crate::Threads;
use crate::kernels::bytes::Plain;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::pack::{Block, Elements, Items};
use crate::kernels::isa::Isa;

/// Words of a region that a task copies.
const TASK_WORDS: usize = 1 << 15;

/// Where the window of a spatial dimension goes, in positions of the dilated input.
#[derive(Clone, Copy)]
pub(super) struct Window<'a>(pub &'a Spatial);

impl Window<'_> {
    /// The position that the first tap meets for this position of the result.
    pub(super) fn start(self, output: usize) -> i128 {
        output as i128 * self.0.stride as i128 - i128::from(self.0.pad_low)
    }

    /// The number of input positions from the first to the last that the taps of `outputs` neighbouring
    /// positions of the result read. `None` if it overflows.
    pub(super) fn extent(self, outputs: usize) -> Option<usize> {
        let taps = (self.0.kernel.checked_sub(1)?).checked_mul(self.0.rhs_dilation)?;
        let moves = (outputs.checked_sub(1)?).checked_mul(self.0.stride)?;
        taps.checked_add(moves)?.checked_add(1)
    }

    /// The element of the input at a position.
    pub(super) fn element(self, position: i128) -> Option<usize> {
        Line::of(self, 0, 0).element(position)
    }

    /// If every tap of every position of the result meets the input: the element that the first
    /// meets.
    pub(super) fn whole(self) -> Option<usize> {
        let first = usize::try_from(self.start(0)).ok()?;
        let end = first.checked_add(self.extent(self.0.output)?)?;
        let dilated = self.0.lhs_dilation > 1 && self.0.input > 1;
        (end <= self.0.input && !dilated).then_some(first)
    }
}

/// Positions of one dimension in a region.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// How many.
    pub extent: usize,
    /// The position in the dilated input of the first.
    pub start: i128,
    /// The elements that there are in the input.
    pub input: usize,
    /// From one of them to the next.
    pub dilation: usize,
    /// How far apart they are in memory.
    pub stride: usize,
}

impl Line {
    /// For `extent` positions, from the first tap of position `output` of the result on.
    pub(super) fn of(window: Window<'_>, output: usize, extent: usize) -> Self {
        let Spatial { input, lhs_dilation, lhs, .. } = *window.0;
        let dilation = lhs_dilation.max(1);
        Line { extent, start: window.start(output), input, dilation, stride: lhs }
    }

    /// For indices of a dimension that is not spatial.
    pub(super) fn plain(indices: Range<usize>, stride: usize) -> Self {
        let (extent, start) = (indices.len(), indices.start as i128);
        Line { extent, start, input: indices.end, dilation: 1, stride }
    }

    /// The element of the input at a position of the dilated input.
    fn element(&self, position: i128) -> Option<usize> {
        if position < 0 || position % self.dilation as i128 != 0 {
            return None;
        }
        let element = position / self.dilation as i128;
        usize::try_from(element).ok().filter(|&element| element < self.input)
    }

    /// The elements that are met, and at which position of the region the first is.
    fn elements(&self) -> (Range<usize>, usize) {
        let dilation = self.dilation as i128;
        let first = (self.start.max(0) + dilation - 1) / dilation;
        let end = (self.start + self.extent as i128 - 1).div_euclid(dilation) + 1;
        let end = end.min(self.input as i128);
        if first >= end {
            return (0..0, 0);
        }
        // Both lie between 0 and `input`; the position between 0 and `extent`.
        (first as usize..end as usize, (first * dilation - self.start) as usize)
    }
}

/// A part of the input: some dimensions, the last of them spatial, and one that varies fastest.
pub(super) struct Region<'a> {
    /// The dimensions but the fastest, the slowest first; at least one.
    pub lines: &'a [Line],
    /// The fastest.
    pub minor: &'a Axis,
    /// Which of its indices.
    pub indices: Range<usize>,
}

impl Region<'_> {
    /// Copies the region, dense, from the input that begins at `start`.
    pub(super) fn fill<W: Plain>(
        &self,
        isa: Isa,
        input: &dyn Elements<W>,
        start: usize,
        region: &mut [W],
        threads: Threads<'_>,
    ) {
        let Some((line, outer)) = self.lines.split_last() else { return };
        let len = (line.extent * self.indices.len()).max(1);
        let lines = (TASK_WORDS / len).max(1);
        threads.for_chunks(region, lines * len, &|task, region| {
            let mut place = vec![0; outer.len()];
            let mut rest = task * lines;
            for (at, line) in place.iter_mut().zip(outer).rev() {
                *at = rest % line.extent;
                rest /= line.extent;
            }
            for to in region.chunks_exact_mut(len) {
                let offset = outer.iter().zip(&place).try_fold(start, |offset, (line, &at)| {
                    Some(offset + line.element(line.start + at as i128)? * line.stride)
                });
                match offset {
                    Some(offset) => self.fill_line(isa, line, input, offset, to),
                    None => to.fill(input.hole()),
                }
                advance(&mut place, outer.iter().map(|line| line.extent));
            }
        });
    }

    /// Copies a line of the last dimension that is not the fastest.
    fn fill_line<W: Plain>(
        &self,
        isa: Isa,
        line: &Line,
        input: &dyn Elements<W>,
        start: usize,
        to: &mut [W],
    ) {
        let width = self.indices.len();
        let (elements, first) = line.elements();
        if elements.is_empty() {
            to.fill(input.hole());
            return;
        }
        // From here on `to` begins at an element. After the last there are no more holes.
        let (before, to) = to.split_at_mut(first * width);
        before.fill(input.hole());
        let (steps, stride, pitch) = (elements.len(), line.stride, line.dilation * width);
        let (to, after) = to.split_at_mut((steps - 1) * pitch + width);
        after.fill(input.hole());
        if line.dilation > 1 {
            to.fill(input.hole());
        }
        let start = start + elements.start * stride;
        if self.minor.stride() == Some(1) {
            let (start, items) = (start + self.indices.start, Items::Row(width));
            input.copy(isa, &Block { start, items, steps, stride, pitch, padding: 0 }, to);
            return;
        }
        let mut offsets = [0; 64];
        for done in (0..width).step_by(offsets.len()) {
            let offsets = &mut offsets[..(width - done).min(64)];
            self.minor.offsets(self.indices.start + done, offsets);
            let items = Items::Scattered(offsets);
            let block = Block { start, items, steps, stride, pitch, padding: 0 };
            input.copy(isa, &block, &mut to[done..]);
        }
    }
}
