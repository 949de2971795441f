//! The random bit generator Threefry-2x32 of 20 rounds.

use super::super::disjoint::Disjoint;
use super::super::isa::vectorised;
use super::halves;
use crate::Threads;

/// Blocks of random words that are generated side by side, in the lanes of vectors.
const WIDTH: usize = 32;
/// Blocks that a task generates; a multiple of [`WIDTH`].
const TASK: usize = 1 << 13;

/// Elements that are the low bits of a word.
pub(super) trait Element: Copy + Send + Sync {
    fn of(word: u32) -> Self;
}

macro_rules! elements {
    ($($ty:ty)*) => { $(
        impl Element for $ty {
            #[inline(always)]
            fn of(word: u32) -> Self {
                word as $ty
            }
        }
    )* };
}

elements!(u8 u16 u32);

/// Where the words of blocks are in an array of elements of at most 32 bits: the two words of one
/// are neighbours along one dimension, and blocks are numbered through the array of half that size.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordPairs {
    /// Half the size of that dimension, rounded up.
    half: usize,
    size: usize,
    /// The distance of the two words.
    stride: usize,
    blocks: usize,
}

impl WordPairs {
    pub(super) fn new(sizes: &[usize]) -> Self {
        let sizes = if sizes.is_empty() { &[1] } else { sizes };
        // The first dimension of even size, else the first of the largest.
        let largest = sizes.iter().max();
        let even = sizes.iter().position(|size| size % 2 == 0);
        let split = even.or_else(|| sizes.iter().position(|size| Some(size) == largest));
        let (outer, inner) = sizes.split_at(split.unwrap_or(0));
        let (size, stride) = (inner[0], inner[1..].iter().product());
        let half = size.div_ceil(2);
        let blocks =
            if sizes.contains(&0) { 0 } else { outer.iter().product::<usize>() * half * stride };
        WordPairs { half, size, stride, blocks }
    }

    /// Fills `to`; returns how many blocks that took.
    pub(super) fn fill<T: Element>(
        &self,
        key: u64,
        counter: u64,
        to: &mut [T],
        threads: Threads<'_>,
    ) -> usize {
        let to = Disjoint::new(to);
        threads.for_ranges(self.blocks, TASK, &|blocks| {
            vectorised(
                #[inline(always)]
                || {
                    for first in blocks.clone().step_by(WIDTH) {
                        let count = WIDTH.min(blocks.end - first);
                        let words = words(key, counter.wrapping_add(first as u64));
                        self.place(&to, first, count, &words);
                    }
                },
            );
        });
        self.blocks
    }

    /// Writes the words of `count` blocks from number `first` on.
    #[inline(always)]
    fn place<T: Element>(
        &self,
        to: &Disjoint<'_, T>,
        first: usize,
        count: usize,
        words: &[[u32; WIDTH]; 2],
    ) {
        let WordPairs { half, size, stride, .. } = *self;
        if stride == 1 && size == 2 * half {
            // SAFETY: pairs of words lie one after the other; each belongs to one block, and that
            // to one task.
            let to = unsafe { to.part(2 * first, 2 * count) };
            for (i, to) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *to = [T::of(words[0][i]), T::of(words[1][i])];
            }
            return;
        }
        let mut done = 0;
        while done < count {
            let (row, column) = ((first + done) / stride, (first + done) % stride);
            let run = (stride - column).min(count - done);
            let pair = row % half;
            let at = (row / half * size + 2 * pair) * stride + column;
            // A dimension of odd size has no place for the last second words.
            let copies = if 2 * pair + 1 < size { 2 } else { 1 };
            for (copy, words) in words[..copies].iter().enumerate() {
                // SAFETY: runs of words, of different blocks each, and each block is one task's.
                let to = unsafe { to.part(at + copy * stride, run) };
                for (to, &word) in to.iter_mut().zip(&words[done..]) {
                    *to = T::of(word);
                }
            }
            done += run;
        }
    }
}

/// Fills `to` with a block for each element; returns how many.
pub(super) fn fill_wide(key: u64, counter: u64, to: &mut [u64], threads: Threads<'_>) -> usize {
    threads.for_chunks(to, TASK, &|task, to| {
        let counter = counter.wrapping_add((task * TASK) as u64);
        vectorised(
            #[inline(always)]
            || {
                for (chunk, to) in to.chunks_mut(WIDTH).enumerate() {
                    let [low, high] = words(key, counter.wrapping_add((chunk * WIDTH) as u64));
                    for ((to, low), high) in to.iter_mut().zip(low).zip(high) {
                        *to = u64::from(low) | u64::from(high) << 32;
                    }
                }
            },
        );
    });
    to.len()
}

/// The blocks of consecutive counters: all first words, and all second ones.
#[inline(always)]
fn words(key: u64, counter: u64) -> [[u32; WIDTH]; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let [k0, k1] = halves(key);
    let keys = [k0, k1, PARITY ^ k0 ^ k1];
    let mut x0 = [0; WIDTH];
    let mut x1 = [0; WIDTH];
    for i in 0..WIDTH {
        let [low, high] = halves(counter.wrapping_add(i as u64));
        x0[i] = low.wrapping_add(k0);
        x1[i] = high.wrapping_add(k1);
    }
    for injection in 0..5 {
        for rotation in ROTATIONS[injection % 2] {
            for i in 0..WIDTH {
                x0[i] = x0[i].wrapping_add(x1[i]);
                x1[i] = x1[i].rotate_left(rotation) ^ x0[i];
            }
        }
        let (next0, next1) = (keys[(injection + 1) % 3], keys[(injection + 2) % 3]);
        for i in 0..WIDTH {
            x0[i] = x0[i].wrapping_add(next0);
            x1[i] = x1[i].wrapping_add(next1).wrapping_add(injection as u32 + 1);
        }
    }
    [x0, x1]
}
