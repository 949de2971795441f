//! Memory for arrays: blocks that go back to a pool instead of to the system.
//!
//! A page of fresh memory costs a fault at its first touch, which for an output of many megabytes
//! takes longer than to compute it. So blocks are kept when they are dropped and given out again,
//! and large ones ask the system for huge pages.
//!
//! All bytes of a block are initialised: zeros at first, later whatever its last owner left there.

mod cache;
mod chunk;
mod view;

use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cache::Cache;
pub(crate) use chunk::Chunk;
pub use view::View;

/// A pool of memory; cloning gives another handle to the same pool.
#[derive(Clone)]
pub struct Memory {
    state: Arc<Mutex<State>>,
}

struct State {
    cache: Cache,
    limit: usize,
    live: usize,
    peak: usize,
}

/// Bytes at an address divisible by [`Block::ALIGN`], owned; dropping it gives them back to its
/// pool.
pub struct Block {
    /// `None` only while it is dropped.
    chunk: Option<Chunk>,
    len: usize,
    memory: Memory,
}

/// The error that a pool or the system has no memory left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The bytes that were asked for.
    pub needed: usize,
    /// The bytes of the pool in use.
    pub live: usize,
    /// The pool's limit; `None` if the system had no more before the limit.
    pub limit: Option<usize>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory { needed, live, limit } = self;
        match limit {
            Some(limit) => write!(
                f,
                "{needed} bytes of memory needed, but {live} of the limit of {limit} are in use"
            ),
            None => {
                write!(f, "{needed} bytes of memory needed besides {live}: the system has no more")
            }
        }
    }
}

impl std::error::Error for OutOfMemory {}

impl Memory {
    /// The bytes of dropped blocks that a pool keeps unless [`Memory::with_limits`] says otherwise.
    pub const DEFAULT_CACHE_BYTES: usize = 1 << 30;

    /// A pool without a limit.
    pub fn new() -> Self {
        Self::with_limits(usize::MAX, Self::DEFAULT_CACHE_BYTES)
    }

    /// A pool whose blocks together have at most `limit` bytes, and which keeps at most `cached`
    /// bytes of dropped ones.
    pub fn with_limits(limit: usize, cached: usize) -> Self {
        let state = State { cache: Cache::new(cached), limit, live: 0, peak: 0 };
        Memory { state: Arc::new(Mutex::new(state)) }
    }

    /// A block of `len` bytes with unspecified contents. Errors: the limit is reached, or the
    /// system has no memory left.
    pub fn allocate(&self, len: usize) -> Result<Block, OutOfMemory> {
        let mut state = self.lock();
        let error = OutOfMemory { needed: len, live: state.live, limit: Some(state.limit) };
        if len > state.limit.saturating_sub(state.live) {
            return Err(error);
        }
        let exhausted = OutOfMemory { limit: None, ..error };
        let capacity = Chunk::capacity_for(len).ok_or(exhausted)?;
        state.live += len;
        state.peak = state.peak.max(state.live);
        let found = state.cache.take(capacity);
        // What lies unused must not take the room of what is asked for.
        let room = state.limit - state.live;
        let evicted = state.cache.shrink_to(room);
        drop(state);
        // Unmapping takes long: not under the lock.
        drop(evicted);
        let chunk = match found {
            Some(chunk) => Some(chunk),
            None => Chunk::new(capacity).or_else(|| {
                self.trim();
                Chunk::new(capacity)
            }),
        };
        match chunk {
            Some(chunk) => Ok(Block { chunk: Some(chunk), len, memory: self.clone() }),
            None => {
                self.lock().live -= len;
                Err(exhausted)
            }
        }
    }

    /// A block with these contents. Errors: as for [`Memory::allocate`].
    pub fn copy_of(&self, bytes: &[u8]) -> Result<Block, OutOfMemory> {
        let mut block = self.allocate(bytes.len())?;
        block.as_mut_slice().copy_from_slice(bytes);
        Ok(block)
    }

    /// Gives all memory that is not in use back to the system.
    pub fn trim(&self) {
        let evicted = self.lock().cache.shrink_to(0);
        drop(evicted);
    }

    /// The bytes of all blocks in use.
    pub fn live_bytes(&self) -> usize {
        self.lock().live
    }

    /// The most bytes that were in use at once, since the last [`Memory::reset_peak`].
    pub fn peak_bytes(&self) -> usize {
        self.lock().peak
    }

    /// Makes the bytes in use now the peak.
    pub fn reset_peak(&self) {
        let mut state = self.lock();
        state.peak = state.live;
    }

    /// The bytes kept for blocks to come.
    pub fn cached_bytes(&self) -> usize {
        self.lock().cache.bytes()
    }

    /// The bytes that all blocks may have together.
    pub fn limit_bytes(&self) -> usize {
        self.lock().limit
    }

    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recycle(&self, chunk: Chunk, len: usize) {
        let mut state = self.lock();
        state.live -= len;
        let room = state.limit - state.live;
        let evicted = state.cache.put(chunk, room);
        drop(state);
        drop(evicted);
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Memory")
            .field("live", &state.live)
            .field("peak", &state.peak)
            .field("cached", &state.cache.bytes())
            .field("limit", &state.limit)
            .finish()
    }
}

impl Block {
    /// What the address of a block is divisible by: a cache line, and the widest vector register.
    pub const ALIGN: usize = 64;

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the bytes begin; they stay there as long as the block lives.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.chunk.as_ref().map_or(NonNull::dangling(), Chunk::start)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: a chunk has as many bytes as the block (`allocate` asked for as many), all
        // initialised (`Chunk` sees to that), and nobody else knows of them while `self` lives.
        unsafe { std::slice::from_raw_parts(self.as_ptr().as_ptr(), self.len) }
    }

    /// The bytes, to change them.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`; `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr().as_ptr(), self.len) }
    }

    /// The pool that the block came from.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(chunk) = self.chunk.take() {
            self.memory.recycle(chunk, self.len);
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn blocks_are_aligned_initialised_and_apart() {
        let memory = Memory::new();
        let sizes = [0, 1, 63, 64, 65, 4097, MIB - 1, MIB, MIB + 1, 5 * MIB];
        let mut blocks: Vec<Block> = sizes.map(|len| memory.allocate(len).unwrap()).into();
        for (i, block) in blocks.iter_mut().enumerate() {
            assert_eq!(block.as_ptr().as_ptr() as usize % Block::ALIGN, 0);
            assert!(block.as_slice().iter().all(|&byte| byte == 0));
            block.as_mut_slice().fill(i as u8);
        }
        for (i, (block, len)) in blocks.iter().zip(sizes).enumerate() {
            assert_eq!(block.len(), len);
            assert!(block.as_slice().iter().all(|&byte| byte == i as u8));
        }
        assert_eq!(memory.live_bytes(), sizes.iter().sum::<usize>());
        drop(blocks);
        assert_eq!(memory.live_bytes(), 0);
        assert_eq!(memory.peak_bytes(), sizes.iter().sum::<usize>());
    }

    #[test]
    fn dropped_blocks_are_given_out_again() {
        let memory = Memory::new();
        for len in [100, 3 * MIB] {
            let first = memory.allocate(len).unwrap();
            let address = first.as_ptr();
            drop(first);
            assert_eq!(memory.allocate(len - 10).unwrap().as_ptr(), address);
        }
        assert!(memory.cached_bytes() >= 3 * MIB);
        memory.trim();
        assert_eq!(memory.cached_bytes(), 0);
    }

    #[test]
    fn the_limit_counts_live_blocks_and_bounds_the_cache() {
        let memory = Memory::with_limits(10 * MIB, usize::MAX);
        let first = memory.allocate(6 * MIB).unwrap();
        let error = memory.allocate(5 * MIB).unwrap_err();
        let expected = OutOfMemory { needed: 5 * MIB, live: 6 * MIB, limit: Some(10 * MIB) };
        assert_eq!(error, expected);
        drop(first);
        assert_eq!(memory.cached_bytes(), 6 * MIB);
        let second = memory.allocate(9 * MIB).unwrap();
        assert_eq!(memory.cached_bytes(), 0);
        drop(second);
        assert_eq!(memory.live_bytes(), 0);
    }

    #[test]
    fn what_no_machine_has_is_an_error() {
        let memory = Memory::new();
        for len in [usize::MAX, isize::MAX as usize, 1 << 60] {
            let error = memory.allocate(len).unwrap_err();
            assert_eq!(error, OutOfMemory { needed: len, live: 0, limit: None });
        }
    }

    #[test]
    fn a_copy_has_the_contents() {
        let block = Memory::new().copy_of(b"helio").unwrap();
        assert_eq!(block.as_slice(), b"helio");
    }
}
