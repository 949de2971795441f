//! Read-only bytes with several owners: part of a block of a pool, or memory of the host.

use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use super::Block;

/// Bytes that several owners read: a block of a pool or the host's own memory, or a part of either.
/// Cloning is cheap, and the memory lives as long as the last view of it.
#[derive(Clone)]
pub struct View {
    source: Source,
    start: usize,
    len: usize,
}

#[derive(Clone)]
enum Source {
    Block(Arc<Block>),
    Host(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl View {
    /// A view of memory that the host keeps, without a copy. What it refers to must always be the
    /// same bytes; should it become shorter, what is missing is empty.
    pub fn of_host(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        let len = (*bytes).as_ref().len();
        View { source: Source::Host(bytes), start: 0, len }
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        let all = match &self.source {
            Source::Block(block) => block.as_slice(),
            Source::Host(bytes) => (**bytes).as_ref(),
        };
        all.get(self.start..self.start + self.len).unwrap_or_default()
    }

    /// A part of it; `None` if it has no such part.
    pub fn part(&self, range: impl RangeBounds<usize>) -> Option<View> {
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1)?,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return None;
        }
        Some(View { source: self.source.clone(), start: self.start + start, len: end - start })
    }

    /// The block itself, to be written again. Errors: gives the view back if it is not the only
    /// one, shows only a part, or shows the host's memory.
    pub fn into_block(self) -> Result<Block, View> {
        let View { source, start, len } = self;
        match source {
            Source::Block(block) if block.len() == len => Arc::try_unwrap(block)
                .map_err(|block| View { source: Source::Block(block), start, len }),
            source => Err(View { source, start, len }),
        }
    }
}

impl From<Block> for View {
    fn from(block: Block) -> Self {
        let len = block.len();
        View { source: Source::Block(Arc::new(block)), start: 0, len }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn parts_share_the_memory() {
        let memory = Memory::new();
        let view = View::from(memory.copy_of(b"0123456789").unwrap());
        let part = view.part(2..8).unwrap();
        assert_eq!(part.as_slice(), b"234567");
        assert_eq!(part.part(..=1).map(|p| p.as_slice().to_vec()), Some(b"23".to_vec()));
        assert!(part.part(5..7).is_none());
        assert!(part.part(usize::MAX..).is_none());
        drop(view);
        assert_eq!(memory.live_bytes(), 10);
        drop(part);
        assert_eq!(memory.live_bytes(), 0);
    }

    #[test]
    fn only_a_sole_owner_gets_the_block_back() {
        let memory = Memory::new();
        let view = View::from(memory.copy_of(b"abc").unwrap());
        let other = view.clone();
        let view = view.into_block().unwrap_err();
        drop(other);
        assert_eq!(view.into_block().unwrap().as_slice(), b"abc");
        let host = View::of_host(Arc::new(b"abc".to_vec()));
        assert_eq!(host.into_block().unwrap_err().as_slice(), b"abc");
    }
}
