//! Rows and columns cut into tiles, and ranges into pieces.

use std::ops::Range;

/// Rows cut into tiles that are about as high as each other.
#[derive(Clone)]
pub(super) struct Tiles {
    pub rows: Range<usize>,
    next: usize,
    heights: &'static [usize],
    /// Where each number of rows is a height: how high tiles are, and up to which row they are one row higher.
    even: Option<(usize, usize)>,
}

impl Tiles {
    pub(super) fn new(rows: Range<usize>, heights: &'static [usize]) -> Self {
        let most = heights.last().copied().filter(|&most| most == heights.len());
        let even = most.map(|most| {
            let tiles = rows.len().div_ceil(most).max(1);
            let (height, higher) = (rows.len() / tiles, rows.len() % tiles);
            (height, rows.start + higher * (height + 1))
        });
        Tiles { next: rows.start, rows, heights, even }
    }
}

impl Iterator for Tiles {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let (start, rest) = (self.next, self.rows.end - self.next);
        if rest == 0 {
            return None;
        }
        let height = match self.even {
            Some((height, until)) => height + usize::from(start < until),
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
}
