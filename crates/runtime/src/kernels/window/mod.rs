//! Windows that slide over an array: pooling, its gradient, and cumulative sums.

mod by_code;
mod channels;
mod group;
mod reduce;
mod rows;
mod scan;
mod select;
mod select_by_code;

use std::ops::Range;

use helio_limits::Reservation;

use crate::bounds;

pub use by_code::FoldWindow;
pub use reduce::ReduceWindow;
pub(super) use rows::{RowFolds, RowPart};
pub use scan::Scan;
pub use select::{Select, SelectAndScatter};
pub use select_by_code::{SelectByCode, SelectCode};

use super::bytes::element_count;

/// A window along one dimension. Point `k` of the window at position `p` lies over element
/// `(p * stride + k * window_dilation - pad_low) / base_dilation`, if that is a whole number and
/// there is such an element; nothing else takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// The points of the window.
    pub size: usize,
    /// The distance of positions.
    pub stride: usize,
    /// How far the first position reaches before the first element.
    pub pad_low: i64,
    /// The distance of points.
    pub window_dilation: usize,
    /// The distance of elements.
    pub base_dilation: usize,
    /// The elements.
    pub base: usize,
    /// The positions.
    pub positions: usize,
}

/// Where there is one position over one element.
const POINT: WindowDim = WindowDim {
    size: 1,
    stride: 1,
    pad_low: 0,
    window_dilation: 1,
    base_dilation: 1,
    base: 1,
    positions: 1,
};

/// Windows of more points are none that a list of points pays for.
const MAX_POINTS: usize = 1 << 20;
/// The most lists of elements under windows that are kept: one for each combination of the numbers
/// of elements that windows cover along the dimensions.
const MAX_LISTS: usize = 16;
/// Positions along a dimension, and where windows cover other elements than next to it, of which a list
/// is made.
const MAX_POSITIONS: usize = 1 << 26;
const MAX_RUNS: usize = 1 << 20;
/// Elements that are further apart are looked for one by one.
const MAX_DILATION: usize = 1 << 10;

impl WindowDim {
    /// Whether each position is one element.
    fn is_trivial(&self) -> bool {
        self.size == 1
            && self.stride == 1
            && self.pad_low == 0
            && self.base_dilation == 1
            && self.base == self.positions
    }

    /// The elements that the window covers at a position.
    fn covered(&self, position: usize) -> Covered {
        let (base, dilation) = (self.base_dilation as i128, self.window_dilation as i128);
        let origin = position as i128 * self.stride as i128 - i128::from(self.pad_low);
        let least = ((-origin).max(0) + dilation - 1) / dilation;
        let last = ((self.base as i128 - 1) * base - origin).div_euclid(dilation);
        let last = last.min(self.size as i128 - 1);
        // Of `period` neighbouring points one lies over an element, if any point does.
        let period = base / gcd(base, dilation);
        let mut candidates = least..(least + period).min(last + 1);
        match candidates.find(|k| (origin + k * dilation) % base == 0) {
            Some(k) if self.base > 0 => Covered {
                first: ((origin + k * dilation) / base) as usize,
                count: ((last - k) / period + 1) as usize,
            },
            _ => Covered { first: 0, count: 0 },
        }
    }

    /// If every point of the window lies over an element at this position, as what it covers there says,
    /// and elements are neighbours: the first position behind it of which that is not so. (All these need
    /// not be looked at one by one.)
    fn end_of_whole(&self, position: usize, covered: Covered) -> Option<usize> {
        if self.base_dilation != 1 || covered.count != self.size {
            return None;
        }
        // (The window is inside of the array, so this overflows nothing.)
        let last = covered.first + (self.size - 1) * self.window_dilation;
        let more = (self.base - 1 - last) / self.stride;
        Some(self.positions.min(position.saturating_add(more).saturating_add(1)))
    }

    /// The distance of the elements that a window covers.
    fn apart(&self) -> usize {
        (self.window_dilation as i128
            / gcd(self.base_dilation as i128, self.window_dilation as i128)) as usize
    }
}

/// The greatest common divisor.
pub(super) fn gcd(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Elements along a dimension that a window covers: the first, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Covered {
    first: usize,
    count: usize,
}

/// All positions of a window, and the elements under it at each.
#[derive(Clone, Debug)]
struct Windows {
    /// At least one.
    dims: Vec<Dim>,
    /// How many neighbours share each position and each element.
    lanes: usize,
}

#[derive(Clone, Debug)]
struct Dim {
    positions: usize,
    /// All positions in order.
    runs: Vec<Run>,
    /// The distance of elements in memory.
    step: usize,
    /// The distance in memory of the elements that a window covers.
    apart: usize,
}

/// Neighbouring positions that cover as many elements.
#[derive(Clone, Debug)]
struct Run {
    positions: Range<usize>,
    /// What the first covers.
    covered: Covered,
    /// From what a position covers to what the next does.
    apart: usize,
}

impl Dim {
    /// `None` if positions are too many, or differ too much.
    fn new(dim: &WindowDim, step: usize) -> Option<Self> {
        if dim.positions > MAX_POSITIONS {
            return None;
        }
        let mut runs: Vec<Run> = Vec::new();
        let mut position = 0;
        while position < dim.positions {
            let covered = dim.covered(position);
            if let Some(end) = dim.end_of_whole(position, covered) {
                let positions = position..end;
                runs.push(Run { positions, covered, apart: dim.stride });
                position = end;
                continue;
            }
            if !runs.last_mut().is_some_and(|run| run.goes_on(covered)) {
                if runs.len() >= MAX_RUNS {
                    return None;
                }
                runs.push(Run { positions: position..position + 1, covered, apart: 0 });
            }
            position += 1;
        }
        let apart = dim.apart().saturating_mul(step);
        Some(Dim { positions: dim.positions, runs, step, apart })
    }

    /// What is covered at a position.
    fn covered(&self, position: usize) -> Covered {
        let run = &self.runs[self.runs.partition_point(|run| run.positions.end <= position)];
        let first = run.covered.first + (position - run.positions.start) * run.apart;
        Covered { first, ..run.covered }
    }
}

impl Run {
    /// Takes the next position if it fits.
    fn goes_on(&mut self, next: Covered) -> bool {
        let Range { start, end } = self.positions;
        let distance = next.first.checked_sub(self.covered.first);
        let apart = match (end - start, distance) {
            (1, Some(distance)) => distance,
            (len, Some(distance)) if len * self.apart == distance => self.apart,
            _ => return false,
        };
        let fits = next.count == self.covered.count;
        if fits {
            (self.positions.end, self.apart) = (end + 1, apart);
        }
        fits
    }
}

/// Neighbouring positions that cover as many elements and are evenly apart.
#[derive(Clone, Copy, Debug)]
struct Positions {
    /// The first one's number; those of the others follow.
    number: usize,
    count: usize,
    /// The place of the first element that the first one covers.
    start: usize,
    /// From a position's first element to that of the next.
    apart: usize,
}

impl Positions {
    /// Where each position's first element is.
    #[inline(always)]
    fn starts(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |i| self.start + i * self.apart)
    }
}

/// A window without its last dimensions that are neighbours only, and how many neighbours these are.
fn split_lanes(window: &[WindowDim]) -> (&[WindowDim], usize) {
    let count = window.iter().rposition(|dim| !dim.is_trivial()).map_or(0, |last| last + 1);
    let (windowed, trivial) = window.split_at(count);
    (windowed, trivial.iter().fold(1, |lanes, dim| lanes.saturating_mul(dim.base)))
}

/// Whether dilations and windows are not too large, elements and positions not more than fit memory,
/// and nothing is zero that must not be.
fn are_possible(window: &[WindowDim], lanes: usize) -> bool {
    let count = |of: fn(&WindowDim) -> usize| {
        let sizes: Vec<usize> = window.iter().map(of).chain([lanes]).collect();
        element_count(&sizes)
    };
    if count(|dim| dim.base).is_none() || count(|dim| dim.positions).is_none() {
        return false;
    }
    let is_possible = |dim: &WindowDim| {
        let nothing = [dim.size, dim.stride, dim.window_dilation, dim.base_dilation];
        !nothing.contains(&0) && dim.base_dilation <= MAX_DILATION
    };
    let points = window.iter().try_fold(1usize, |points, dim| points.checked_mul(dim.size));
    points.is_some_and(|points| points <= MAX_POINTS) && window.iter().all(is_possible)
}

impl Windows {
    /// `None` if dilations or windows are too large, positions too many, or anything is zero that must
    /// not be.
    fn new(window: &[WindowDim]) -> Option<Self> {
        let (windowed, lanes) = split_lanes(window);
        // Where there are no neighbours there are no positions, as a trivial dimension says.
        Self::of_elements(if lanes == 0 { window } else { windowed }, lanes)
    }

    /// Windows over elements of `lanes` numbers each. `None` as for [`Windows::new`].
    fn of_elements(window: &[WindowDim], lanes: usize) -> Option<Self> {
        if !are_possible(window, lanes) {
            return None;
        }
        if window.iter().any(|dim| dim.positions == 0) {
            let nowhere = Dim { positions: 0, runs: Vec::new(), step: 0, apart: 0 };
            return Some(Windows { dims: vec![nowhere], lanes: 0 });
        }
        // Where there are no elements none is covered.
        let mut step = if window.iter().any(|dim| dim.base == 0) { 0 } else { lanes };
        let mut dims = Vec::with_capacity(window.len().max(1));
        for dim in window.iter().rev() {
            dims.push(Dim::new(dim, step)?);
            step *= dim.base;
        }
        dims.reverse();
        if dims.is_empty() {
            dims.push(Dim::new(&POINT, lanes)?);
        }
        Some(Windows { dims, lanes })
    }

    /// How many positions there are along the last dimension of a window.
    fn row_size(&self) -> usize {
        self.dims.last().map_or(0, |dim| dim.positions)
    }

    /// The number of rows: of combinations of positions along all dimensions but the last.
    fn rows(&self) -> usize {
        self.dims.iter().rev().skip(1).map(|dim| dim.positions).product()
    }

    /// How many rows make a task: some 2¹⁶ elements under windows.
    fn rows_per_task(&self, points: usize) -> usize {
        let work = self.row_size().saturating_mul(self.lanes).saturating_mul(points);
        ((1 << 16) / work.max(1)).max(1)
    }

    /// Calls `f` for all positions in these rows, some neighbours at a time: with them, and the places
    /// of the elements under each behind its first, in row-major order. There may be none.
    fn each(&self, rows: Range<usize>, f: &mut dyn FnMut(Positions, &[usize])) {
        let Some((last, outer)) = self.dims.split_last() else { return };
        let mut counts = vec![0; self.dims.len()];
        // Most windows cover the same as their neighbours, or as those did before them.
        let mut lists: Vec<(Vec<usize>, Vec<usize>, Reservation)> = Vec::new();
        let mut list = 0;
        for row in rows {
            let (mut rest, mut start) = (row, 0);
            for (dim, count) in outer.iter().zip(&mut counts).rev() {
                let covered = dim.covered(rest % dim.positions);
                rest /= dim.positions;
                start += covered.first * dim.step;
                *count = covered.count;
            }
            for run in &last.runs {
                counts[outer.len()] = run.covered.count;
                if lists.get(list).is_none_or(|(listed, ..)| *listed != counts) {
                    list = match lists.iter().position(|(listed, ..)| *listed == counts) {
                        Some(list) => list,
                        None => {
                            if lists.len() == MAX_LISTS {
                                lists.clear();
                            }
                            let points = counts.iter().product::<usize>();
                            let bytes = points.saturating_mul(2 * size_of::<usize>());
                            let Some(counted) = bounds::reserve(bytes) else { return };
                            lists.push((counts.clone(), self.list(&counts), counted));
                            lists.len() - 1
                        }
                    };
                }
                let positions = Positions {
                    number: row * last.positions + run.positions.start,
                    count: run.positions.len(),
                    start: start + run.covered.first * last.step,
                    apart: run.apart * last.step,
                };
                f(positions, &lists[list].1);
            }
        }
    }

    /// The distances from the first element under a window to all that it covers, of which `counts` says
    /// how many there are along each dimension.
    fn list(&self, counts: &[usize]) -> Vec<usize> {
        self.dims.iter().zip(counts).fold(vec![0], |outer, (dim, &count)| {
            let inner = |at: usize| (0..count).map(move |i| at + i * dim.apart);
            outer.into_iter().flat_map(inner).collect()
        })
    }
}

#[cfg(test)]
mod tests;
