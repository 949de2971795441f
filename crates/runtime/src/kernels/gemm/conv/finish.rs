//! Rows of the result that are handed over once they are complete: all outputs of neighbouring positions.

use super::{Convolution, Layout, Route};
use crate::kernels::gemm::Finish;
use crate::kernels::gemm::axis::Axis;
use crate::kernels::gemm::output::Destination;

/// What is done with rows that are complete, and where they are.
pub(super) struct FinishRows<'a, A> {
    pub places: &'a dyn Destination<A>,
    pub finish: Finish<'a, u8>,
}

impl<A> Clone for FinishRows<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A> Copy for FinishRows<'_, A> {}

impl<A> FinishRows<'_, A> {
    /// Hands over `count` elements of neighbouring rows, the first of which is at `start`.
    ///
    /// # Safety
    /// They lie in the result, are complete, and nothing else accesses them.
    pub(super) unsafe fn some(&self, start: usize, count: usize) {
        if count > 0 {
            // SAFETY: the caller's promise.
            let bytes = unsafe { self.places.bytes(start, count) };
            (self.finish)(bytes.len() / count * start, bytes);
        }
    }

    /// Hands over rows of `len` elements, neighbours together.
    ///
    /// # Safety
    /// As for [`FinishRows::some`], for all of them.
    pub(super) unsafe fn rows(&self, start: usize, rows: &Axis, len: usize) {
        let mut row = 0;
        while row < rows.len() {
            let (place, count, stride) = rows.run(row, rows.len() - row);
            let (many, each) = if stride == len { (1, count * len) } else { (count, len) };
            for i in 0..many {
                // SAFETY: the caller's promise.
                unsafe { self.some(start + place + i * stride, each) };
            }
            row += count;
        }
    }
}

impl Convolution {
    /// The elements of a row of the result, the outputs of all groups, if these are neighbours, and so are the rows:
    /// channels are last.
    pub fn row_len(&self) -> Option<usize> {
        let (group, outputs) = (&self.group, &self.outputs);
        let channels = Axis::new([group, outputs].map(|dim| (dim.size, dim.out)));
        let is_dense = self.out.len() > 0 && self.out.last() + 1 == self.out.len();
        (is_dense && channels.stride() == Some(1)).then_some(channels.len())
    }

    /// Whether rows of numbers that are not converted are handed over while others are computed.
    pub fn finishes_rows(&self) -> bool {
        match self.winograd {
            Some(layout) => layout == Layout::ChannelsLast && self.row_len().is_some(),
            None => self.route_finishes_rows(),
        }
    }

    /// Whether what computes each product hands rows over.
    pub(super) fn route_finishes_rows(&self) -> bool {
        let is_one = self.group.size == 1;
        let by_route = match &self.route {
            Route::Product { product, swapped, .. } => {
                !swapped && is_one && product.row_len() == self.row_len()
            }
            Route::Tasks => self.has_whole_rows(),
            Route::Grouped => self.channel_windows().is_some() || self.group_windows().is_some(),
            _ => false,
        };
        by_route && self.row_len().is_some()
    }
}
