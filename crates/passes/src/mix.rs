//! Hashes of ids, and of what instructions are made of.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids, which no program chooses: they count instructions.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<Mixer>>;
/// A set of ids.
pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<Mixer>>;

/// A fast hash, the same in each run. Who chooses what is hashed can make it collide: where that is
/// a program, collisions must cost nothing but what is missed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        // An odd number with bits all over, from the digits of the golden ratio.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.mix(u64::from_ne_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    fn finish(&self) -> u64 {
        // Tables look at the lowest and the highest bits; of a product the lowest are the poorest.
        self.0 ^ (self.0 >> 32)
    }
}
