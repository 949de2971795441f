//! The two generators of random bits, counter-based: block `i` depends on key and counter alone.
//!
//! Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

/// The low and the high half.
fn halves(v: u64) -> [u32; 2] {
    [v as u32, (v >> 32) as u32]
}

/// The block of random bits that Threefry-2x32 of 20 rounds makes of a key and a counter. All are
/// pairs of 32-bit words, of which the first is the low half.
pub(super) fn threefry(key: u64, counter: u64) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1bd1_1bda;
    let [k0, k1] = halves(key);
    let keys = [k0, k1, PARITY ^ k0 ^ k1];
    let [mut x0, mut x1] = halves(counter);
    x0 = x0.wrapping_add(k0);
    x1 = x1.wrapping_add(k1);
    for injection in 0..5 {
        for rotation in ROTATIONS[injection % 2] {
            x0 = x0.wrapping_add(x1);
            x1 = x1.rotate_left(rotation) ^ x0;
        }
        x0 = x0.wrapping_add(keys[(injection + 1) % 3]);
        x1 = x1.wrapping_add(keys[(injection + 2) % 3]).wrapping_add(injection as u32 + 1);
    }
    [x0, x1]
}

/// The block of random bits that Philox-4x32 of 10 rounds makes of a key of two 32-bit words and a
/// counter of four, the lowest first.
pub(super) fn philox(key: u64, counter: u128) -> [u32; 4] {
    let [mut k0, mut k1] = halves(key);
    let ([c0, c1], [c2, c3]) = (halves(counter as u64), halves((counter >> 64) as u64));
    let mut words = [c0, c1, c2, c3];
    for _ in 0..10 {
        let [low0, high0] = halves(u64::from(words[0]) * 0xd251_1f53);
        let [low2, high2] = halves(u64::from(words[2]) * 0xcd9e_8d57);
        words = [high2 ^ words[1] ^ k0, low2, high0 ^ words[3] ^ k1, low0];
        k0 = k0.wrapping_add(0x9e37_79b9);
        k1 = k1.wrapping_add(0xbb67_ae85);
    }
    words
}

/// The block that [`philox`] makes, as two 64-bit words.
pub(super) fn philox_pair(key: u64, counter: u128) -> [u64; 2] {
    let [w0, w1, w2, w3] = philox(key, counter).map(u64::from);
    [w0 | w1 << 32, w2 | w3 << 32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that come with the authors' library Random123.
    #[test]
    fn known_answers() {
        assert_eq!(threefry(0, 0), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry(u64::MAX, u64::MAX), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(
            threefry(0x0370_7344_1319_8a2e, 0x85a3_08d3_243f_6a88),
            [0xc492_3a9c, 0x483d_f7a0]
        );
        assert_eq!(philox(0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox(u64::MAX, u128::MAX),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
