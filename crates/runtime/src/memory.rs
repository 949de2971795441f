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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use helio_limits::{Account, Reclaim};

use cache::Cache;
pub(crate) use chunk::Chunk;
pub use helio_limits::OutOfMemory;
pub use view::View;

/// A pool of memory; cloning gives another handle to the same pool.
#[derive(Clone)]
pub struct Memory {
    pool: Arc<Pool>,
}

struct Pool {
    /// Counts blocks in use, and what is kept.
    account: Account,
    cache: Mutex<Cache>,
}

/// Bytes at an address divisible by [`Block::ALIGN`], owned; dropping it gives them back to its
/// pool.
pub struct Block {
    /// `None` only while it is dropped.
    chunk: Option<Chunk>,
    len: usize,
    memory: Memory,
}

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
        Self::of(Account::alone(limit), cached)
    }

    /// A pool whose blocks are counted in an account, and which keeps at most `cached` bytes of
    /// dropped ones.
    pub fn of(account: Account, cached: usize) -> Self {
        let pool = Arc::new(Pool { account, cache: Mutex::new(Cache::new(cached)) });
        let cache: Weak<Pool> = Arc::downgrade(&pool);
        pool.account.add_cache(cache);
        Memory { pool }
    }

    /// What counts its blocks.
    pub fn account(&self) -> &Account {
        &self.pool.account
    }

    /// A block of `len` bytes with unspecified contents. Errors: a limit is reached, or the system
    /// has no memory left.
    pub fn allocate(&self, len: usize) -> Result<Block, OutOfMemory> {
        let pool = &*self.pool;
        let found = Chunk::capacity_for(len).and_then(|capacity| pool.take(capacity));
        // After the cache has been looked into: what lies there unused may have to make room.
        if let Err(error) = pool.account.charge(len) {
            if let Some(chunk) = found {
                pool.keep(chunk);
            }
            return Err(error);
        }
        let fresh = || {
            let capacity = Chunk::capacity_for(len)?;
            Chunk::new(capacity).or_else(|| {
                self.trim();
                Chunk::new(capacity)
            })
        };
        match found.or_else(fresh) {
            Some(chunk) => Ok(Block { chunk: Some(chunk), len, memory: self.clone() }),
            None => {
                pool.account.release(len);
                let live = pool.account.live_bytes();
                Err(OutOfMemory { needed: len, live, limit: None })
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
        self.pool.reclaim(usize::MAX);
    }

    /// The bytes of all blocks in use.
    pub fn live_bytes(&self) -> usize {
        self.account().live_bytes()
    }

    /// The most bytes that were in use at once, since the last [`Memory::reset_peak`].
    pub fn peak_bytes(&self) -> usize {
        self.account().peak_bytes()
    }

    /// Makes the bytes in use now the peak.
    pub fn reset_peak(&self) {
        self.account().reset_peak();
    }

    /// The bytes kept for blocks to come.
    pub fn cached_bytes(&self) -> usize {
        self.pool.lock().bytes()
    }

    /// The bytes that may be in use.
    pub fn limit_bytes(&self) -> usize {
        self.account().limit_bytes()
    }
}

impl Pool {
    /// What the lock guards is whole whenever it is free, so a panic elsewhere spoils nothing.
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, capacity: usize) -> Option<Chunk> {
        let chunk = self.lock().take(capacity)?;
        self.account.cache(0, chunk.capacity());
        Some(chunk)
    }

    /// Keeps a chunk for what comes, if there is room for it.
    fn keep(&self, chunk: Chunk) {
        let mut cache = self.lock();
        let before = cache.bytes();
        let evicted = cache.put(chunk, before.saturating_add(self.account.room_bytes()));
        let after = cache.bytes();
        self.account.cache(after.saturating_sub(before), before.saturating_sub(after));
        drop(cache);
        // Unmapping takes long: not under the lock.
        drop(evicted);
    }
}

impl Reclaim for Pool {
    fn reclaim(&self, bytes: usize) {
        let mut cache = self.lock();
        let before = cache.bytes();
        let evicted = cache.shrink_to(before.saturating_sub(bytes));
        self.account.cache(0, before - cache.bytes());
        drop(cache);
        drop(evicted);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.reclaim(usize::MAX);
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Memory").field(self.account()).finish()
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
            self.memory.pool.account.release(self.len);
            self.memory.pool.keep(chunk);
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
        // (Miri takes seconds for a thousand bytes.)
        let large = if cfg!(miri) { 1 << 12 } else { MIB };
        let sizes = [0, 1, 63, 64, 65, 4097, large - 1, large, large + 1, 5 * large];
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
    #[cfg_attr(miri, ignore = "Miri takes the memory itself, and ends")]
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
