//! Scatter by code that may compute anything, of one array or several.

use super::super::fold_code::{FoldCode, with_updates};
use super::found::{BLOCK, WindowStarts};
use super::gather::{each, points};
use super::places::OutOfBounds;
use super::{IndexedPlan, IndexedWindows};

/// Combines windows into arrays of the same sizes, one index vector after the other; windows that
/// reach out are left out as a whole.
#[derive(Clone, Debug)]
pub struct ScatterByCode {
    plan: IndexedPlan,
    /// Bytes of an element of each array.
    sizes: Vec<usize>,
    is_splat: bool,
}

impl ScatterByCode {
    /// A plan for arrays whose elements have these sizes. `None` if the description is not
    /// consistent, or elements have no size that types have.
    pub fn new(windows: &IndexedWindows, sizes: Vec<usize>) -> Option<Self> {
        if !sizes.iter().all(|size| [1, 2, 4, 8, 16].contains(size)) {
            return None;
        }
        let is_splat = windows.is_splat;
        Some(ScatterByCode { plan: windows.plan()?, sizes, is_splat })
    }

    /// Combines the windows of `updates` (or the one number that all updates are) into `to`.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(
        &self,
        code: &FoldCode<'_>,
        indices: &[u8],
        updates: &[&[u8]],
        to: &mut [&mut [u8]],
    ) {
        // No window fits into arrays without elements, even where no index says so.
        if to.iter().any(|to| to.is_empty()) {
            return;
        }
        let IndexedPlan { places, window, row, .. } = &self.plan;
        with_updates(&self.sizes, |all| {
            let mut found = WindowStarts::new();
            for first in (0..places.count()).step_by(BLOCK) {
                let block = first..places.count().min(first + BLOCK);
                places.find(indices, block, OutOfBounds::Skip, &mut found);
                found.each(|place, list| {
                    each(window, 0..points(window), |array_at, list_at| {
                        for i in 0..*row {
                            if all.is_full() {
                                all.fold(code, updates, to);
                            }
                            let list = if self.is_splat { 0 } else { list + list_at + i };
                            all.push(place + array_at + i, list);
                        }
                    });
                });
            }
            all.fold(code, updates, to);
        });
    }
}
