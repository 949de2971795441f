//! Rows put together from pieces of several arrays: concatenation.

use super::super::isa::vectorised;
use super::{Step, line};
use crate::Threads;

/// A plan to put rows together, each from a piece of every source.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The bytes of the pieces of a row.
    pieces: Box<[usize]>,
    /// The bytes of a row.
    row: usize,
}

/// Bytes of rows that are put together before the next: they stay in the first-level cache, whose lines
/// are written once for each piece.
const BLOCK_BYTES: usize = 1 << 14;
/// Bytes that a task writes, about.
const TASK_BYTES: usize = 1 << 18;

impl Rows {
    /// The most bytes of a row for which this is faster than source after source.
    pub const MAX_ROW: usize = 1 << 12;

    /// Rows of pieces of these numbers of bytes. `None` if these are more than an address can hold.
    pub fn new(pieces: &[usize]) -> Option<Self> {
        let row = pieces.iter().try_fold(0usize, |row, &piece| row.checked_add(piece))?;
        Some(Rows { pieces: pieces.into(), row })
    }

    /// Puts all rows of the target together.
    ///
    /// # Panics
    ///
    /// If the target is not some rows, or there is not a source for each piece, with a piece for
    /// each row.
    pub fn run(&self, sources: &[&[u8]], target: &mut [u8], threads: Threads<'_>) {
        if self.row == 0 {
            return assert!(target.is_empty(), "rows without bytes");
        }
        assert_eq!(target.len() % self.row, 0, "the target is rows");
        assert_eq!(sources.len(), self.pieces.len(), "a source for each piece");
        let rows = target.len() / self.row;
        for (source, piece) in sources.iter().zip(&self.pieces) {
            assert_eq!(source.len(), rows * piece, "a piece for each row");
        }
        let block = (BLOCK_BYTES / self.row).max(1);
        let of_a_task = (TASK_BYTES / BLOCK_BYTES) * block;
        threads.for_chunks(target, of_a_task * self.row, &|task, target| {
            vectorised(
                #[inline(always)]
                || {
                    let mut first = task * of_a_task;
                    for target in target.chunks_mut(block * self.row) {
                        self.block(first, sources, target);
                        first += block;
                    }
                },
            );
        });
    }

    /// Puts rows from `first` on together.
    #[inline(always)]
    fn block(&self, first: usize, sources: &[&[u8]], target: &mut [u8]) {
        let rows = target.len() / self.row;
        let mut at = 0;
        for (source, &piece) in sources.iter().zip(&self.pieces) {
            let source = &source[first * piece..][..rows * piece];
            let step = Step { size: rows, from: piece as isize, to: self.row as isize };
            let ends = (source.as_ptr(), target.as_mut_ptr().wrapping_add(at));
            at += piece;
            // SAFETY: the source has `rows` pieces one after the other, and the target as many rows, of each of which
            // this is a part; the target is borrowed mutably, so that the source is no part of it.
            unsafe {
                match piece {
                    0 => {}
                    1 | 2 | 4 | 8 | 16 => line::elements(step, piece, 0..rows, ends),
                    _ => line::rows(step, piece, 0..rows, ends),
                }
            }
        }
    }
}
