//! Random bits: Philox-4x32 and Threefry-2x32, as XLA lays out their blocks.
//!
//! Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Both are
//! counter-based: block `i` depends on key and counter alone, so blocks are made side by side.

mod philox;
mod threefry;

use super::bytes::{cast, cast_mut, element_count};
use crate::Threads;

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Threefry-2x32 of 20 rounds. Its state is a key and a counter.
    ThreeFry,
    /// Philox-4x32 of 10 rounds. Its state is a key and a counter of one or two words.
    Philox,
}

/// An array filled with random bits.
#[derive(Clone, Debug)]
pub struct RandomBits {
    generator: Generator,
    /// The state's length in words of 64 bits.
    state_words: usize,
    element_size: usize,
    layout: threefry::WordPairs,
    count: usize,
}

impl RandomBits {
    /// A plan for arrays of dimensions `sizes`, of elements of 1, 2, 4 or 8 bytes, all of whose bits
    /// are random, from a state of `state_words` words of 64 bits. `None` for other sizes of elements
    /// and states, and for more elements than fit memory.
    pub fn new(
        generator: Generator,
        state_words: usize,
        sizes: &[usize],
        element_size: usize,
    ) -> Option<Self> {
        let fits = match generator {
            Generator::ThreeFry => state_words == 2,
            Generator::Philox => state_words == 2 || state_words == 3,
        };
        let is_possible = fits && [1, 2, 4, 8].contains(&element_size);
        let count = element_count(sizes)?;
        element_count(&[count, element_size])?;
        is_possible.then(|| RandomBits {
            generator,
            state_words,
            element_size,
            layout: threefry::WordPairs::new(sizes),
            count,
        })
    }

    /// Fills `to`, and `next` with the state behind.
    ///
    /// # Panics
    ///
    /// If an array is too short or not aligned for its elements.
    pub fn run(&self, state: &[u8], next: &mut [u8], to: &mut [u8], threads: Threads<'_>) {
        let state = &cast::<u64>(state)[..self.state_words];
        let next = &mut cast_mut::<u64>(next)[..self.state_words];
        let to = &mut to[..self.count * self.element_size];
        next.copy_from_slice(state);
        match self.generator {
            Generator::ThreeFry => {
                let blocks = match self.element_size {
                    1 => self.layout.fill::<u8>(state[0], state[1], cast_mut(to), threads),
                    2 => self.layout.fill::<u16>(state[0], state[1], cast_mut(to), threads),
                    4 => self.layout.fill::<u32>(state[0], state[1], cast_mut(to), threads),
                    _ => threefry::fill_wide(state[0], state[1], cast_mut(to), threads),
                };
                next[1] = state[1].wrapping_add(blocks as u64);
            }
            Generator::Philox => {
                // Where the state has no room for the counter's high half, the key stands in.
                let high = state.get(2).copied().unwrap_or(state[0]);
                let counter = u128::from(high) << 64 | u128::from(state[1]);
                let blocks = philox::fill(state[0], counter, self.element_size, to, threads);
                let counter = counter.wrapping_add(blocks as u128);
                next[1] = counter as u64;
                if let Some(high) = next.get_mut(2) {
                    *high = (counter >> 64) as u64;
                }
            }
        }
    }
}

/// The low and the high half.
fn halves(v: u64) -> [u32; 2] {
    [v as u32, (v >> 32) as u32]
}

#[cfg(test)]
mod tests;
