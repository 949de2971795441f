//! Packing of items whose steps are neighbours, 16×16 words of 4 bytes at a time in registers.

use super::isa::{Isa, Kind};
use super::pack::NOWHERE;
use crate::kernels::scratch::Pod;

/// Packs if there are instructions for it; otherwise returns false. `T` and `W` must be the same
/// bits.
pub(super) fn words<T: Pod, W: Pod>(
    isa: Isa,
    data: &[T],
    offsets: &[usize],
    start: usize,
    width: usize,
    panel: &mut [W],
) -> bool {
    debug_assert_eq!(size_of::<T>(), size_of::<W>());
    match isa.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 if size_of::<T>() == 4 => {
            let steps = panel.len() / width;
            for &offset in offsets {
                assert!(
                    offset == NOWHERE || offset + start + steps <= data.len(),
                    "an item's steps lie in its memory"
                );
            }
            assert!(offsets.len() <= width, "items fit the panel");
            let (data, panel) = (data.as_ptr().cast(), panel.as_mut_ptr().cast());
            // SAFETY: an `Isa` of this kind proves the features; the places of each item were
            // checked above, and the panel has `steps` rows of `width` words of 4 bytes.
            unsafe { avx512::pack(data, offsets, start, steps, width, panel) };
            true
        }
        _ => false,
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::NOWHERE;

    /// # Safety
    /// `steps` words from `start + offset` on in `data` may be read for each offset but `NOWHERE`;
    /// `steps * width` words of `panel` may be written; at most `width` offsets.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn pack(
        data: *const i32,
        offsets: &[usize],
        start: usize,
        steps: usize,
        width: usize,
        panel: *mut i32,
    ) {
        for first in (0..width).step_by(16) {
            let items = (width - first).min(16);
            let keep = ((1_u32 << items) - 1) as __mmask16;
            let item = |i: usize| offsets.get(first + i).copied().filter(|&o| o != NOWHERE);
            let places: [Option<usize>; 16] = std::array::from_fn(item);
            for step in (0..steps).step_by(16) {
                let count = (steps - step).min(16);
                let part = ((1_u32 << count) - 1) as __mmask16;
                let mut block = [_mm512_setzero_si512(); 16];
                for i in 0..16 {
                    if let Some(offset) = places[i] {
                        let from = data.wrapping_add(offset + start + step);
                        // SAFETY: `count` words, all within the item's steps, are read.
                        block[i] = unsafe { _mm512_maskz_loadu_epi32(part, from) };
                    }
                }
                transpose(&mut block);
                for (k, row) in block.iter().enumerate().take(count) {
                    let to = panel.wrapping_add((step + k) * width + first);
                    // SAFETY: `items` words within row `step + k` of the panel are written.
                    unsafe { _mm512_mask_storeu_epi32(to, keep, *row) };
                }
            }
        }
    }

    /// Row `i`, lane `j` becomes row `j`, lane `i`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn transpose(m: &mut [__m512i; 16]) {
        // First within the four lanes of 16 bytes, by pairs of rows and pairs of pairs…
        let mut pairs = *m;
        for i in (0..16).step_by(2) {
            pairs[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
        }
        let mut fours = pairs;
        for i in (0..16).step_by(4) {
            fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
            fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
            fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
            fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
        }
        // … then the lanes: `fours[4 * r + c]` holds in lane `l` column `4 * l + c` of rows 4r to
        // 4r + 3.
        for c in 0..4 {
            let (a, b) = (fours[c], fours[4 + c]);
            let (x, y) = (fours[8 + c], fours[12 + c]);
            let (ab_even, ab_odd) =
                (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b));
            let (xy_even, xy_odd) =
                (_mm512_shuffle_i32x4::<0x88>(x, y), _mm512_shuffle_i32x4::<0xdd>(x, y));
            m[c] = _mm512_shuffle_i32x4::<0x88>(ab_even, xy_even);
            m[4 + c] = _mm512_shuffle_i32x4::<0x88>(ab_odd, xy_odd);
            m[8 + c] = _mm512_shuffle_i32x4::<0xdd>(ab_even, xy_even);
            m[12 + c] = _mm512_shuffle_i32x4::<0xdd>(ab_odd, xy_odd);
        }
    }
}
