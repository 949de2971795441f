//! Windows that slide over an array: pooling, its gradient, and cumulative sums.

mod by_code;
mod reduce;
mod scan;
mod select;

use std::ops::Range;

pub use by_code::{FoldCode, FoldWindow};
pub use reduce::ReduceWindow;
pub use scan::Scan;
pub use select::{Select, SelectAndScatter};

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

/// Windows of more points are none that a list of points pays for.
const MOST_POINTS: usize = 1 << 20;
/// So many lists of what windows cover are kept.
const MOST_LISTS: usize = 16;
/// Elements that are further apart are looked for one by one.
const MOST_DILATION: usize = 1 << 10;

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
        // Of so many points in a row, one lies over an element, if any does.
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
    /// For each position.
    covered: Vec<Covered>,
    /// The distance of elements in memory.
    step: usize,
    /// The distance in memory of the elements that a window covers.
    apart: usize,
}

impl Windows {
    /// `None` if dilations or windows are too large, or anything is zero that must not be.
    fn new(window: &[WindowDim]) -> Option<Self> {
        let count = window.iter().rposition(|dim| !dim.is_trivial()).map_or(0, |last| last + 1);
        let (windowed, trivial) = window.split_at(count);
        let lanes = trivial.iter().map(|dim| dim.base).product();
        // Where there are no neighbours there are no positions, as a trivial dimension says.
        Self::of_elements(if lanes == 0 { window } else { windowed }, lanes)
    }

    /// Windows over elements of so many neighbours each. `None` as for [`Windows::new`].
    fn of_elements(window: &[WindowDim], lanes: usize) -> Option<Self> {
        let is_possible = |dim: &WindowDim| {
            let nothing = [dim.size, dim.stride, dim.window_dilation, dim.base_dilation];
            !nothing.contains(&0) && dim.base_dilation <= MOST_DILATION
        };
        let points = window.iter().try_fold(1usize, |points, dim| points.checked_mul(dim.size))?;
        if points > MOST_POINTS || !window.iter().all(is_possible) {
            return None;
        }
        if window.iter().any(|dim| dim.positions == 0) {
            let nowhere = Dim { covered: Vec::new(), step: 0, apart: 0 };
            return Some(Windows { dims: vec![nowhere], lanes: 0 });
        }
        let mut step = lanes;
        let mut dims: Vec<Dim> = window
            .iter()
            .rev()
            .map(|dim| {
                let covered = (0..dim.positions).map(|position| dim.covered(position)).collect();
                let steps = Dim { covered, step, apart: dim.apart().saturating_mul(step) };
                step *= dim.base;
                steps
            })
            .collect();
        dims.reverse();
        if dims.is_empty() {
            let whole = Covered { first: 0, count: 1 };
            dims.push(Dim { covered: vec![whole], step: lanes, apart: lanes });
        }
        Some(Windows { dims, lanes })
    }

    /// How many positions there are along the last dimension of a window.
    fn row_size(&self) -> usize {
        self.dims.last().map_or(0, |dim| dim.covered.len())
    }

    /// How many rows of such positions there are.
    fn rows(&self) -> usize {
        self.dims.iter().rev().skip(1).map(|dim| dim.covered.len()).product()
    }

    /// How many rows make a task: some 2¹⁶ elements under windows.
    fn rows_per_task(&self, points: usize) -> usize {
        let work = self.row_size().saturating_mul(self.lanes).saturating_mul(points);
        ((1 << 16) / work.max(1)).max(1)
    }

    /// Calls `f` for each position in these rows: with its number, the place of the first element
    /// under the window, and the places of all elements behind it, in row-major order. There may be
    /// none.
    fn each(&self, rows: Range<usize>, f: &mut dyn FnMut(usize, usize, &[usize])) {
        let Some((last, outer)) = self.dims.split_last() else { return };
        let mut counts = vec![0; self.dims.len()];
        // Most windows cover the same as their neighbours, or as those did before them.
        let mut lists: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
        // In rows like the present one: the list for each number that is covered along the row.
        let most = last.covered.iter().map(|covered| covered.count).max().unwrap_or(0);
        let mut list_of: Vec<Option<usize>> = vec![None; most + 1];
        for row in rows {
            let (mut rest, mut start, mut is_other) = (row, 0, false);
            for (dim, count) in outer.iter().zip(&mut counts).rev() {
                let covered = dim.covered[rest % dim.covered.len()];
                rest /= dim.covered.len();
                start += covered.first * dim.step;
                is_other |= std::mem::replace(count, covered.count) != covered.count;
            }
            if is_other {
                list_of.fill(None);
            }
            for (position, covered) in last.covered.iter().enumerate() {
                let list = list_of[covered.count].unwrap_or_else(|| {
                    counts[outer.len()] = covered.count;
                    let known = lists.iter().position(|(listed, _)| *listed == counts);
                    let list = known.unwrap_or_else(|| {
                        if lists.len() == MOST_LISTS {
                            lists.clear();
                            list_of.fill(None);
                        }
                        lists.push((counts.clone(), self.list(&counts)));
                        lists.len() - 1
                    });
                    list_of[covered.count] = Some(list);
                    list
                });
                let number = row * last.covered.len() + position;
                f(number, start + covered.first * last.step, &lists[list].1);
            }
        }
    }

    /// The elements under a window that covers so many along each dimension.
    fn list(&self, counts: &[usize]) -> Vec<usize> {
        self.dims.iter().zip(counts).fold(vec![0], |outer, (dim, &count)| {
            let inner = |at: usize| (0..count).map(move |i| at + i * dim.apart);
            outer.into_iter().flat_map(inner).collect()
        })
    }
}

#[cfg(test)]
mod tests;
