//! Copies that turn rows into columns, 16×16 words of 4 bytes at a time in registers.

use crate::kernels::bytes::Plain;
use crate::kernels::isa::{Isa, Kind};

/// Rows of words to be written as columns: word `k` of row `i` goes to `k * pitch + i`. A word is
/// one or more of the elements.
pub(super) struct Rows<'a, T> {
    /// The memory in which the rows are.
    pub data: &'a [T],
    /// Where each begins.
    pub offsets: &'a [usize],
    /// What to add to each offset.
    pub start: usize,
    /// Words in each row.
    pub steps: usize,
    /// Columns to write zeros to after those of the rows.
    pub padding: usize,
    /// From a row of the result to the next.
    pub pitch: usize,
}

impl<T: Plain> Rows<'_, T> {
    /// Writes the columns to `to` if there are instructions for it; otherwise returns false. A `W`
    /// must be the bits of one or more `T`.
    pub(super) fn transpose<W: Plain>(&self, isa: Isa, to: &mut [W]) -> bool {
        let width = self.offsets.len() + self.padding;
        let needed = if self.steps == 0 { 0 } else { (self.steps - 1) * self.pitch + width };
        assert!(needed <= to.len(), "the columns fit");
        // SAFETY: `to` has room for the columns, as just checked.
        unsafe { self.transpose_to(isa, to.as_mut_ptr()) }
    }

    /// As [`Rows::transpose`].
    ///
    /// # Safety
    /// The columns and their padding may be written in `to`.
    pub(super) unsafe fn transpose_to<W: Plain>(&self, isa: Isa, to: *mut W) -> bool {
        let per_word = size_of::<W>() / size_of::<T>();
        match isa.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if size_of::<W>() == 4 => {
                for &offset in self.offsets {
                    assert!(
                        offset + self.start + self.steps * per_word <= self.data.len(),
                        "a row lies in its memory"
                    );
                }
                // SAFETY: an `Isa` of this kind proves the features; that the rows may be read was
                // checked above, that the columns may be written is promised; words have 4 bytes.
                unsafe { avx512::transpose(self, self.data.as_ptr(), to.cast()) };
                true
            }
            _ => false,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::Rows;
    use crate::kernels::isa::prefetch_far;

    /// How many words ahead of their use rows are asked for.
    const AHEAD: usize = 64;

    /// # Safety
    /// The features are there; the words of `rows` may be read in `data`, and its columns and
    /// padding written in `to`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn transpose<T>(rows: &Rows<'_, T>, data: *const T, to: *mut i32) {
        let width = rows.offsets.len() + rows.padding;
        for step in (0..rows.steps).step_by(16) {
            for first in (0..width).step_by(16) {
                let offsets = rows.offsets.get(first..).unwrap_or_default();
                let to = to.wrapping_add(step * rows.pitch + first);
                match offsets.first_chunk() {
                    // SAFETY: the caller's promise: there are 16 steps of 16 rows.
                    Some(offsets) if step + 16 <= rows.steps => unsafe {
                        whole_block(rows, offsets, data, step, to);
                    },
                    // SAFETY: the caller's promise.
                    _ => unsafe { part_block(rows, offsets, data, step, (to, width - first)) },
                }
            }
        }
    }

    /// Where the words of a row from `step` on are. Asks for those that come later.
    #[inline(always)]
    fn words<T>(rows: &Rows<'_, T>, offset: usize, data: *const T, step: usize) -> *const i32 {
        let from = data.wrapping_add(offset + rows.start).cast::<i32>().wrapping_add(step);
        // Rows may be too many for the sets of the first-level cache. What lies beyond the block has
        // perhaps been asked for already.
        if step + AHEAD < rows.steps {
            prefetch_far(from.wrapping_add(AHEAD).cast());
        }
        from
    }

    /// Writes 16 steps of 16 rows. (Apart from [`part_block`], so that they stay in registers.)
    ///
    /// # Safety
    /// The features are there; these words may be read in `data`, and their places written in `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn whole_block<T>(
        rows: &Rows<'_, T>,
        offsets: &[usize; 16],
        data: *const T,
        step: usize,
        to: *mut i32,
    ) {
        let mut block = [_mm512_setzero_si512(); 16];
        // (Not by `map`, into which nothing is inlined that needs the features.)
        for (row, &offset) in block.iter_mut().zip(offsets) {
            // SAFETY: the caller's promise.
            *row = unsafe { _mm512_loadu_epi32(words(rows, offset, data, step)) };
        }
        turn(&mut block);
        for (k, row) in block.iter().enumerate() {
            // A store under a mask, even one of all lanes, reads the line that it writes to.
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_epi32(to.wrapping_add(k * rows.pitch), *row) };
        }
    }

    /// Writes up to 16 steps of up to 16 rows, and zeros for those of `width` columns that have no rows.
    ///
    /// # Safety
    /// The features are there; these words may be read in `data`, and their places written in `to`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn part_block<T>(
        rows: &Rows<'_, T>,
        offsets: &[usize],
        data: *const T,
        step: usize,
        (to, width): (*mut i32, usize),
    ) {
        let (count, items) = ((rows.steps - step).min(16), width.min(16));
        let [part, keep] = [count, items].map(|lanes| ((1_u32 << lanes) - 1) as __mmask16);
        let mut block = [_mm512_setzero_si512(); 16];
        for (row, offset) in block.iter_mut().zip(offsets) {
            // SAFETY: `count` words, all within the row, are read.
            *row = unsafe { _mm512_maskz_loadu_epi32(part, words(rows, *offset, data, step)) };
        }
        turn(&mut block);
        for (k, row) in block.iter().enumerate().take(count) {
            // SAFETY: `items` words within row `step + k` of the result are written.
            unsafe { _mm512_mask_storeu_epi32(to.wrapping_add(k * rows.pitch), keep, *row) };
        }
    }

    /// Row `i`, lane `j` becomes row `j`, lane `i`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn turn(m: &mut [__m512i; 16]) {
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
