//! The random bit generator Philox-4x32 of 10 rounds.

use super::super::isa::vectorised;
use super::halves;
use crate::Threads;

/// Blocks of random words that are generated side by side, in the lanes of vectors.
const WIDTH: usize = 16;
/// Blocks that a task generates; a multiple of [`WIDTH`].
const TASK: usize = 1 << 13;
/// The size of a block: four words of 32 bits.
const BLOCK_BYTES: usize = 16;

/// Fills `to` with elements of `element_size` bytes, each the low bits of one word or, of 8 bytes, two
/// words. Returns the number of blocks that were generated.
pub(super) fn fill(
    key: u64,
    counter: u128,
    element_size: usize,
    to: &mut [u8],
    threads: Threads<'_>,
) -> usize {
    // Of a word that is wider than an element, the low bytes are taken.
    let per_block = BLOCK_BYTES / element_size.max(4) * element_size;
    let blocks = to.len().div_ceil(per_block);
    threads.for_chunks(to, TASK * per_block, &|task, to| {
        let counter = counter.wrapping_add((task * TASK) as u128);
        vectorised(
            #[inline(always)]
            || fill_task(key, counter, per_block, element_size, to),
        );
    });
    blocks
}

#[inline(always)]
fn fill_task(key: u64, counter: u128, per_block: usize, element_size: usize, to: &mut [u8]) {
    let mut counter = counter;
    let mut generated = [[0; 2]; WIDTH];
    for to in to.chunks_mut(WIDTH * per_block) {
        blocks(key, counter, &mut generated);
        counter = counter.wrapping_add(WIDTH as u128);
        if per_block == BLOCK_BYTES {
            for (to, block) in to.chunks_mut(BLOCK_BYTES).zip(&generated) {
                match to.first_chunk_mut::<BLOCK_BYTES>() {
                    Some(to) => *to = bytes(block),
                    None => to.copy_from_slice(&bytes(block)[..to.len()]),
                }
            }
        } else {
            let words = generated.iter().flat_map(|block| block.iter().copied().flat_map(halves));
            for (to, word) in to.chunks_exact_mut(element_size).zip(words) {
                to.copy_from_slice(&word.to_le_bytes()[..element_size]);
            }
        }
    }
}

fn bytes(block: &[u64; 2]) -> [u8; BLOCK_BYTES] {
    let [low, high] = block.map(u128::from);
    (low | high << 64).to_le_bytes()
}

/// Makes the blocks of consecutive counters: words 0 and 1 in the first half, 2 and 3 in the other.
///
/// Words lie in the low halves of 64 bits, since that is where vectors multiply 32 bits by 32; what
/// is left in the high halves is ignored there.
#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "the lanes of four arrays, side by side")]
fn blocks(key: u64, counter: u128, generated: &mut [[u64; 2]; WIDTH]) {
    const LOW: u64 = u32::MAX as u64;
    let [k0, k1] = halves(key);
    let low = counter as u64;
    let mut words = [[0u64; WIDTH]; 4];
    for i in 0..WIDTH {
        let low = low.wrapping_add(i as u64);
        words[0][i] = low;
        words[1][i] = low >> 32;
    }
    for i in 0..WIDTH {
        let high = counter.wrapping_add(i as u128) >> 64;
        words[2][i] = high as u64;
        words[3][i] = high as u64 >> 32;
    }
    for round in 0..10 {
        let k0 = u64::from(k0.wrapping_add(0x9e37_79b9u32.wrapping_mul(round)));
        let k1 = u64::from(k1.wrapping_add(0xbb67_ae85u32.wrapping_mul(round)));
        for i in 0..WIDTH {
            let product0 = (words[0][i] & LOW) * 0xd251_1f53;
            let product2 = (words[2][i] & LOW) * 0xcd9e_8d57;
            words[0][i] = (product2 >> 32) ^ words[1][i] ^ k0;
            words[1][i] = product2;
            words[2][i] = (product0 >> 32) ^ words[3][i] ^ k1;
            words[3][i] = product0;
        }
    }
    for (i, block) in generated.iter_mut().enumerate() {
        *block = [words[0][i] & LOW | words[1][i] << 32, words[2][i] & LOW | words[3][i] << 32];
    }
}
