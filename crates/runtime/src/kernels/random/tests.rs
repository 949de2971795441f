//! Bits of XLA:CPU, and of the authors' library Random123.

use super::super::bytes::{bytes_of, bytes_of_mut};
use super::*;
use crate::Pool;

const KEY: u64 = 0x0123_4567_89ab_cdef;
const COUNTER: u64 = 0xffff_ffff_ffff_fffe;

/// The next state and the elements.
fn bits(generator: Generator, state: &[u64], sizes: &[usize], size: usize) -> (Vec<u64>, Vec<u64>) {
    let plan = RandomBits::new(generator, state.len(), sizes, size).unwrap();
    let count: usize = sizes.iter().product();
    let pool = Pool::new(2);
    let [alone, shared] = [Threads::single(), pool.threads(2)].map(|threads| {
        let (mut next, mut to) = (vec![0u64; state.len()], vec![0u64; count]);
        let bytes = &mut bytes_of_mut(&mut to)[..count * size];
        plan.run(bytes_of(state), bytes_of_mut(&mut next), bytes, threads);
        let element = |bytes: &[u8]| bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
        let elements = bytes_of(&to)[..count * size].chunks(size).map(element).collect();
        (next, elements)
    });
    assert_eq!(alone, shared);
    alone
}

#[test]
fn known_answers() {
    let philox = |key, low, high| bits(Generator::Philox, &[key, low, high], &[4], 4).1;
    assert_eq!(philox(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    let max = u64::MAX;
    assert_eq!(philox(max, max, max), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    let threefry = |key, counter| bits(Generator::ThreeFry, &[key, counter], &[2], 4).1;
    assert_eq!(threefry(0, 0), [0x6b20_0159, 0x99ba_4efe]);
    assert_eq!(threefry(0x0370_7344_1319_8a2e, 0x85a3_08d3_243f_6a88), [0xc492_3a9c, 0x483d_f7a0]);
}

#[test]
fn threefry_is_laid_out_as_xla_does() {
    let check = |size, sizes: &[usize], next, expected: &[u64]| {
        let found = bits(Generator::ThreeFry, &[KEY, COUNTER], sizes, size);
        assert_eq!(found, (vec![KEY, next], expected.to_vec()), "{sizes:?}");
    };
    check(8, &[3], 1, &[0xe19a60b4b0f4215b, 0xacf8c4dc0b3d7494, 0x6b35c4f4aaa4d889]);
    let words = [0xb0f4215b, 0x0b3d7494, 0xaaa4d889, 0xe19a60b4, 0xacf8c4dc, 0x6b35c4f4];
    check(4, &[2, 3], 1, &words);
    check(4, &[], u64::MAX, &[0xb0f4215b]);
    check(4, &[5], 1, &[0xb0f4215b, 0xe19a60b4, 0x0b3d7494, 0xacf8c4dc, 0xaaa4d889]);
    let words = [
        0xb0f4215b, 0xe19a60b4, 0x0b3d7494, 0xacf8c4dc, 0xaaa4d889, 0x75a52907, 0xd3dd8613,
        0x35d0e5f1, 0x8ed17fe4, 0x7c2f19d8, 0xde79bbbd, 0x1713fd18, 0xb09d029e, 0x7d84f441,
        0x6ca3e732,
    ];
    check(4, &[3, 5], 7, &words);
    let words = [
        0xb0f4215b, 0x0b3d7494, 0xe19a60b4, 0xacf8c4dc, 0xaaa4d889, 0x75a52907, 0x6b35c4f4,
        0xd3dd8613, 0x35d0e5f1, 0x7c2f19d8, 0x8ed17fe4, 0x0284dbe3, 0xde79bbbd, 0xb09d029e,
        0x1713fd18, 0x7d84f441, 0x6ca3e732, 0xc8124617, 0xa43b6b39, 0x2077496e, 0xb530f815,
        0x95fbb24b, 0xedce8403, 0xa2c8a180,
    ];
    check(4, &[3, 4, 2], 10, &words);
    check(1, &[2, 3], 1, &[0x5b, 0x94, 0x89, 0xb4, 0xdc, 0xf4]);
    check(2, &[3], 0, &[0x215b, 0x60b4, 0x7494]);
    check(4, &[0, 3], COUNTER, &[]);
}

#[test]
fn philox_is_laid_out_as_xla_does() {
    let check = |size, sizes: &[usize], next: [u64; 2], expected: &[u64]| {
        let found = bits(Generator::Philox, &[KEY, COUNTER, 7], sizes, size);
        assert_eq!(found, (vec![KEY, next[0], next[1]], expected.to_vec()), "{sizes:?}");
    };
    let words = [0x6c1e9305, 0xe0c1a0a5, 0x9f05d22f, 0x9c01c61d, 0xd8f2cea1];
    check(4, &[5], [0, 8], &words);
    check(4, &[], [u64::MAX, 7], &words[..1]);
    check(8, &[3], [0, 8], &[0xe0c1a0a56c1e9305, 0x9c01c61d9f05d22f, 0xeffe4af4d8f2cea1]);
    check(1, &[2, 3], [0, 8], &[0x05, 0xa5, 0x2f, 0x1d, 0xa1, 0xf4]);
    check(2, &[3], [u64::MAX, 7], &[0x9305, 0xa0a5, 0xd22f]);
    check(4, &[0, 3], [COUNTER, 7], &[]);
    let (next, found) = bits(Generator::Philox, &[KEY, COUNTER], &[5], 4);
    assert_eq!(next, [KEY, 0]);
    assert_eq!(found, [0x0a485194, 0x41c5f806, 0xd6822fee, 0x3885a3d4, 0x41eb59f3]);
}

/// Whatever is made side by side is what is made alone.
#[test]
fn long_arrays_are_many_short_ones() {
    let start = COUNTER - 20_000;
    for (generator, words) in [(Generator::Philox, 4), (Generator::ThreeFry, 2)] {
        for size in [1, 2, 4, 8] {
            let per_block = if size == 8 { words / 2 } else { words };
            let state = [KEY, start, 3];
            let state = if words == 4 { &state[..] } else { &state[..2] };
            let (_, long) = bits(generator, state, &[20_010 * per_block], size);
            for block in [0, 1, 15, 16, 33, 8191, 8192, 20_001, 20_002, 20_009] {
                let (low, carry) = start.overflowing_add(block as u64);
                let state = [KEY, low, 3 + u64::from(carry)];
                let state = if words == 4 { &state[..] } else { &state[..2] };
                let (_, short) = bits(generator, state, &[per_block], size);
                assert_eq!(long[block * per_block..][..per_block], short, "{generator:?} {block}");
            }
        }
    }
}
