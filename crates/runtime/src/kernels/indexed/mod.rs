//! Gather and scatter: windows of an array at places that index vectors give.
//!
//! Both run through pairs of an index vector and a window: a box of the array, whose elements lie
//! in a list of windows (gather's result, scatter's updates) one after the other in some order.

mod buckets;
mod by_code;
mod found;
mod gather;
mod places;
mod scatter;

pub use by_code::ScatterByCode;
pub use gather::Gather;
pub use scatter::{Combine, Scatter};

use super::copy::dense_steps;
use super::number::NumberType;
use places::{Batch, Component, IndexVectors};

/// How index vectors, windows and arrays belong together, in the terms of XLA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedWindows {
    /// The sizes of the array that windows are in.
    pub array: Vec<usize>,
    /// The sizes of the index vectors' array.
    pub indices: Vec<usize>,
    /// The sizes of the list of windows: gather's result, scatter's updates.
    pub list: Vec<usize>,
    /// The type of indices, an integer.
    pub index_type: NumberType,
    /// The dimension along which the components of an index vector lie; the rank of the indices if
    /// each is a vector of one.
    pub index_vector_dim: usize,
    /// The dimension of the array that each component of an index vector is for (gather's
    /// `start_index_map`, scatter's `scatter_dims_to_operand_dims`).
    pub index_map: Vec<usize>,
    /// The dimensions of the list that run through a window (`offset_dims`, `update_window_dims`).
    pub window_dims: Vec<usize>,
    /// Dimensions of the array in which windows have size 1 and that the list leaves out
    /// (`collapsed_slice_dims`, `inserted_window_dims`).
    pub left_out: Vec<usize>,
    /// Dimensions of the array whose index is that of a dimension of the indices: pairs of both.
    pub batching: Vec<(usize, usize)>,
    /// Whether all elements of the list are one number, which is given instead.
    pub is_splat: bool,
}

/// An axis of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    size: usize,
    /// The distance of neighbours in the array, in elements.
    array: usize,
    /// In the list.
    list: usize,
    /// Whether no index moves windows along it.
    is_fixed: bool,
}

/// What gather and scatter go through: the index vectors, and the rows of the window of each.
#[derive(Clone, Debug)]
struct IndexedPlan {
    places: IndexVectors,
    /// The axes of a window around its rows.
    window: Vec<Axis>,
    /// How many neighbours a window has in both the array and the list (of one number, if that is all
    /// there is, as many are made).
    row: usize,
    /// Whether no index moves windows within a row.
    is_row_fixed: bool,
}

impl IndexedWindows {
    /// `None` if the description is not consistent, or for indices that are no integers.
    fn plan(&self) -> Option<IndexedPlan> {
        use NumberType::{BF16, F16, F32, F64};
        if [F16, BF16, F32, F64].contains(&self.index_type) {
            return None;
        }
        let array_steps = steps(&self.array)?;
        let list_steps = match self.is_splat {
            // All windows are where the first is, whose rows are one row.
            true => vec![0; self.list.len()],
            false => steps(&self.list)?,
        };
        let (mut window, window_sizes) = self.window(&array_steps, &list_steps)?;
        let in_row = if self.is_splat { 0 } else { 1 };
        let row = window.pop_if(|last| (last.array, last.list) == (1, in_row));
        let (row, is_row_fixed) = row.map_or((1, true), |row| (row.size, row.is_fixed));

        let index_steps = steps(&self.indices)?;
        let component_step = index_steps.get(self.index_vector_dim).copied().unwrap_or(0);
        let components = self.index_map.iter().enumerate().map(|(i, &d)| {
            let last = (*self.array.get(d)?).checked_sub(window_sizes[d]);
            let step = array_steps[d];
            Some(Component { offset: i * component_step, last: last.map(|v| v as i64), step })
        });
        let batches = self.batches(&array_steps, &index_steps, &list_steps)?;
        let components = components.collect::<Option<_>>()?;
        let places = IndexVectors::new(self.index_type, batches, components);
        Some(IndexedPlan { places, window, row, is_row_fixed })
    }

    /// The axes of a window, neighbours joined where both the array and the list have them as one, and
    /// its size along each dimension of the array.
    fn window(&self, array: &[usize], list: &[usize]) -> Option<(Vec<Axis>, Vec<usize>)> {
        let is_left_out = |d: &usize| {
            self.left_out.contains(d) || self.batching.iter().any(|(array, _)| array == d)
        };
        let in_window: Vec<usize> = (0..self.array.len()).filter(|d| !is_left_out(d)).collect();
        let is_ascending = self.window_dims.is_sorted_by(|a, b| a < b);
        if in_window.len() != self.window_dims.len() || !is_ascending {
            return None;
        }
        let mut window: Vec<Axis> = Vec::new();
        let mut sizes = vec![1; self.array.len()];
        for (&d, &at) in in_window.iter().zip(&self.window_dims) {
            sizes[d] = *self.list.get(at)?;
            let is_fixed = !self.index_map.contains(&d);
            let axis = Axis { size: sizes[d], array: array[d], list: list[at], is_fixed };
            match window.last_mut() {
                _ if axis.size == 1 => {}
                Some(outer)
                    if outer.array == axis.array * axis.size
                        && outer.list == axis.list * axis.size =>
                {
                    let is_fixed = outer.is_fixed && axis.is_fixed;
                    *outer = Axis { size: outer.size * axis.size, is_fixed, ..axis };
                }
                _ => window.push(axis),
            }
        }
        Some((window, sizes))
    }

    /// The dimensions that number index vectors, with their steps in the array, the indices and the
    /// list.
    fn batches(&self, array: &[usize], indices: &[usize], list: &[usize]) -> Option<Vec<Batch>> {
        let batch_dims = (0..self.indices.len()).filter(|&d| d != self.index_vector_dim);
        let batch_dims: Vec<usize> = batch_dims.collect();
        let list_dims = (0..self.list.len()).filter(|d| !self.window_dims.contains(d));
        let list_dims: Vec<usize> = list_dims.collect();
        if batch_dims.len() != list_dims.len() {
            return None;
        }
        let batches = batch_dims.into_iter().zip(list_dims).map(|(d, at)| {
            if self.indices[d] != self.list[at] {
                return None;
            }
            let batching = self.batching.iter().find(|(_, indices)| *indices == d);
            Some(Batch {
                size: self.indices[d],
                index: indices[d],
                array: batching.map_or(Some(&0), |&(dim, _)| array.get(dim)).copied()?,
                list: list[at],
            })
        });
        batches.collect()
    }
}

/// The steps of a dense array, in elements; `None` if they overflow.
fn steps(sizes: &[usize]) -> Option<Vec<usize>> {
    let total = sizes.iter().try_fold(1usize, |total, &size| total.checked_mul(size.max(1)))?;
    isize::try_from(total).ok()?;
    Some(dense_steps(sizes).into_iter().map(|step| step as usize).collect())
}

#[cfg(test)]
mod tests;
