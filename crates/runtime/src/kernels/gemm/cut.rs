//! Rows and columns cut into tiles, and ranges into pieces.

use std::ops::Range;

use super::axis::Axis;

/// Rows cut into tiles that are about as high as each other.
#[derive(Clone)]
pub(super) struct Tiles {
    pub rows: Range<usize>,
    next: usize,
    heights: &'static [usize],
    /// How high they are where each number of rows is a height.
    even: Option<Even>,
    /// Whether rows are cut where [`Tiles::in_runs`] says.
    pub are_in_runs: bool,
}

/// Rows in as few tiles as can be, one after the other.
#[derive(Clone)]
struct Even {
    /// The first row, and how many they are.
    start: usize,
    rows: usize,
    /// How high tiles are,
    height: usize,
    /// and how many of the rows are in tiles that are one row higher: the first.
    higher: usize,
}

impl Even {
    fn new(rows: Range<usize>, most: usize) -> Self {
        let tiles = rows.len().div_ceil(most).max(1);
        let (height, higher) = (rows.len() / tiles, rows.len() % tiles);
        Even { start: rows.start, rows: rows.len(), height, higher: higher * (height + 1) }
    }
}

impl Tiles {
    pub(super) fn new(rows: Range<usize>, heights: &'static [usize]) -> Self {
        let most = heights.last().copied().filter(|&most| most == heights.len());
        let even = most.map(|most| Even::new(rows.clone(), most));
        Tiles { next: rows.start, rows, heights, even, are_in_runs: false }
    }

    /// Tiles that end where these rows are no longer equally far apart, if that leaves tiles more than half as high as can be. (What
    /// reads rows that are takes less than what has a pointer for each; with fewer rows, sums wait for each other.)
    pub(super) fn in_runs(self, rows: &Axis) -> Self {
        let most = self.heights.last().copied().unwrap_or(1);
        let (start, (_, run, _)) = (self.rows.start, rows.run(0, usize::MAX));
        if run >= self.rows.len() || !start.is_multiple_of(run) || self.even.is_none() {
            return self;
        }
        let even = Even::new(start..start + run, most);
        match even.height > most / 2 {
            true => Tiles { even: Some(even), are_in_runs: true, ..self },
            false => self,
        }
    }

    /// The rows after which tiles end, if that is where these are no longer equally far apart.
    pub(super) fn run_rows(&self) -> Option<usize> {
        self.even.as_ref().filter(|_| self.are_in_runs).map(|even| even.rows)
    }

    /// The tiles of so many rows. (They are the fewest that hold them.)
    pub(super) fn tiles_of_run(&self) -> usize {
        self.even
            .as_ref()
            .map_or(1, |even| even.rows.div_ceil(even.height + usize::from(even.higher > 0)))
    }
}

impl Iterator for Tiles {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let (start, rest) = (self.next, self.rows.end - self.next);
        if rest == 0 {
            return None;
        }
        let height = match &mut self.even {
            Some(even) => {
                if start == even.start + even.rows {
                    even.start = start;
                }
                (even.height + usize::from(start < even.start + even.higher)).min(rest)
            }
            None => {
                let &most = self.heights.last()?;
                let even = rest.div_ceil(rest.div_ceil(most));
                // The next height above the even one, unless that is more than the rows that remain.
                let above = self.heights.iter().find(|&&height| height >= even && height <= rest);
                *above.or(self.heights.iter().rfind(|&&height| height <= rest))?
            }
        };
        self.next += height;
        Some(start..self.next)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.rows.end - self.next;
        (rest.div_ceil(self.heights.last().copied().unwrap_or(1)), Some(rest))
    }
}

/// Numbers below `total` cut into as few pieces of at most `most` as possible, all of one size but
/// the last; one empty piece if there are none.
pub(in crate::kernels) fn even_chunks(
    total: usize,
    most: usize,
) -> impl Iterator<Item = Range<usize>> {
    let (parts, size) = even_parts(total, most);
    (0..parts).map(move |part| (part * size).min(total)..total.min((part + 1) * size))
}

/// A range cut into pieces of `size`, the last shorter.
pub(super) fn chunks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(size).map(move |first| first..range.end.min(first + size))
}

/// How many pieces of at most `most` hold `total`, and how many each holds if they are even.
pub(super) fn even_parts(total: usize, most: usize) -> (usize, usize) {
    let parts = total.div_ceil(most.max(1)).max(1);
    (parts, total.div_ceil(parts).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even() {
        assert_eq!(even_parts(100, 40), (3, 34));
        assert_eq!(even_parts(0, 40), (1, 1));
    }

    #[test]
    fn tiles_are_about_as_high_as_each_other() {
        let heights = |rows: usize| Tiles::new(3..3 + rows, &[1, 2, 4, 6]).map(|tile| tile.len());
        assert_eq!(heights(13).collect::<Vec<_>>(), [6, 4, 2, 1]);
        assert_eq!(heights(8).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(heights(0).count(), 0);
        assert_eq!(heights(13).size_hint(), (3, Some(13)));
        let any = |rows: usize| Tiles::new(3..3 + rows, &[1, 2, 3, 4, 5]).map(|tile| tile.len());
        assert_eq!(any(13).collect::<Vec<_>>(), [5, 4, 4]);
        assert_eq!(any(15).collect::<Vec<_>>(), [5, 5, 5]);
        assert_eq!(any(6).collect::<Vec<_>>(), [3, 3]);
        assert_eq!(any(4).collect::<Vec<_>>(), [4]);
        assert_eq!(any(0).count(), 0);
    }

    #[test]
    fn tiles_end_where_runs_do() {
        const HEIGHTS: &[usize] = &[1, 2, 3, 4, 5];
        // Five runs; the last tiles end where the rows do.
        let heights = |rows: Range<usize>, run: usize| -> Vec<usize> {
            let axis = Axis::new([(5, 100), (run, 3)]);
            Tiles::new(rows, HEIGHTS).in_runs(&axis).map(|tile| tile.len()).collect()
        };
        assert_eq!(heights(0..32, 8), [4, 4, 4, 4, 4, 4, 4, 4]);
        assert_eq!(heights(7..30, 7), [4, 3, 4, 3, 4, 3, 2]);
        assert_eq!(heights(0..12, 4), [4, 4, 4]);
        // Tiles would be too low; they do not begin with a run; there is one.
        assert_eq!(heights(0..10, 2), [5, 5]);
        assert_eq!(heights(3..13, 8), [5, 5]);
        assert_eq!(heights(0..10, 10), [5, 5]);
    }
}
