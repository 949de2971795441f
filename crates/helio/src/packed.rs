//! Constants in the order in which products read them.

use std::sync::{Mutex, OnceLock, PoisonError};

use helio_runtime::{Block, Memory, View};

/// A constant that is the right operand of products, packed by the first run that needs it for all that
/// follow, of all programs that have it. Where memory is short, products go on without.
#[derive(Debug)]
pub(crate) struct PackedConstant {
    /// The constant: while it is kept no other one has its address.
    constant: View,
    /// How many bytes it takes packed.
    bytes: usize,
    memory: Memory,
    packed: OnceLock<Block>,
    /// Locked by whoever packs.
    packing: Mutex<()>,
}

impl PackedConstant {
    pub(crate) fn new(constant: View, bytes: usize, memory: Memory) -> Self {
        let (packed, packing) = (OnceLock::new(), Mutex::new(()));
        PackedConstant { constant, bytes, memory, packed, packing }
    }

    /// How many bytes it takes packed.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is packed of these bytes, if they are the constant's. If nothing is yet, `pack` fills what it is
    /// given and says whether it came to its end. Nothing if it did not, or if this would take more than half
    /// of the memory that is free: the rest is for what runs need.
    pub(crate) fn of(&self, bytes: &[u8], pack: impl FnOnce(&mut [u8]) -> bool) -> Option<&[u8]> {
        if !std::ptr::eq(self.constant.as_slice(), bytes) {
            return None;
        }
        if let Some(packed) = self.packed.get() {
            return Some(packed.as_slice());
        }
        let _packing = self.packing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = self.packed.get() {
            return Some(packed.as_slice());
        }
        if self.bytes > self.memory.account().free_bytes() / 2 {
            return None;
        }
        let mut block = self.memory.allocate(self.bytes).ok()?;
        let is_whole = pack(block.as_mut_slice());
        is_whole.then(|| self.packed.get_or_init(|| block).as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 20;

    fn constant(memory: &Memory) -> PackedConstant {
        let view = memory.copy_of(&[1, 2, 3]).expect("memory").into();
        PackedConstant::new(view, BYTES, memory.clone())
    }

    #[test]
    fn it_is_packed_once_and_kept() {
        let memory = Memory::new();
        let constant = constant(&memory);
        let view = constant.constant.clone();
        let bytes = view.as_slice();
        assert!(constant.of(&[1, 2, 3], |_| unreachable!()).is_none(), "other bytes");
        assert!(constant.of(bytes, |_| false).is_none(), "a run that was stopped");
        let fill = |bytes: &mut [u8]| {
            bytes.fill(7);
            true
        };
        assert_eq!(constant.of(bytes, fill), Some(&vec![7; BYTES][..]));
        assert_eq!(constant.of(bytes, |_| unreachable!()), Some(&vec![7; BYTES][..]));
        assert!(memory.live_bytes() >= BYTES);
        drop(constant);
        assert!(memory.live_bytes() < BYTES);
    }

    #[test]
    fn where_memory_is_short_nothing_is_packed() {
        let memory = Memory::with_limits(BYTES / 2 * 3, 0);
        let constant = constant(&memory);
        let view = constant.constant.clone();
        assert!(constant.of(view.as_slice(), |_| unreachable!()).is_none());
    }
}
