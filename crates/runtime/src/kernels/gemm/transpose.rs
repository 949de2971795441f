//! Copies that turn rows into columns, 16×16 words of 4 bytes or 8×8 of 8 bytes at a time in registers.

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
            Kind::Avx512 if [4, 8].contains(&size_of::<W>()) => {
                for &offset in self.offsets {
                    assert!(
                        offset + self.start + self.steps * per_word <= self.data.len(),
                        "a row lies in its memory"
                    );
                }
                // SAFETY: an `Isa` of this kind proves the features; that the rows may be read was
                // checked above, that the columns may be written is promised; words have 4 or 8 bytes.
                unsafe {
                    match size_of::<W>() {
                        4 => avx512::words(self, self.data.as_ptr(), to.cast()),
                        _ => avx512::wide_words(self, self.data.as_ptr(), to.cast()),
                    }
                }
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

    /// How many bytes ahead of their use rows are asked for.
    const AHEAD: usize = 256;

    /// Vectors of `N` words.
    ///
    /// # Safety
    ///
    /// `load_first` and `store_first` touch the first words alone, as many as they are given.
    unsafe trait Words<const N: usize> {
        /// A word.
        type Word;

        /// # Safety
        /// The features are there, and the words, at most `N`, may be read.
        unsafe fn load_first(from: *const Self::Word, count: usize) -> __m512i;

        /// # Safety
        /// The features are there, and the words, at most `N`, may be written.
        unsafe fn store_first(to: *mut Self::Word, row: __m512i, count: usize);

        /// Row `i`, lane `j` becomes row `j`, lane `i`.
        ///
        /// # Safety
        /// The features are there.
        unsafe fn turn(rows: &mut [__m512i; N]);
    }

    /// Words of 4 bytes.
    enum Single {}

    // SAFETY: masks are of the first words.
    unsafe impl Words<16> for Single {
        type Word = i32;

        #[inline(always)]
        unsafe fn load_first(from: *const i32, count: usize) -> __m512i {
            // SAFETY: the caller's promise.
            unsafe { _mm512_maskz_loadu_epi32(((1_u32 << count) - 1) as __mmask16, from) }
        }

        #[inline(always)]
        unsafe fn store_first(to: *mut i32, row: __m512i, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { _mm512_mask_storeu_epi32(to, ((1_u32 << count) - 1) as __mmask16, row) };
        }

        #[inline(always)]
        unsafe fn turn(rows: &mut [__m512i; 16]) {
            // SAFETY: the caller's promise.
            unsafe { turn(rows) };
        }
    }

    /// Words of 8 bytes.
    enum Double {}

    // SAFETY: masks are of the first words.
    unsafe impl Words<8> for Double {
        type Word = i64;

        #[inline(always)]
        unsafe fn load_first(from: *const i64, count: usize) -> __m512i {
            // SAFETY: the caller's promise.
            unsafe { _mm512_maskz_loadu_epi64(((1_u32 << count) - 1) as __mmask8, from) }
        }

        #[inline(always)]
        unsafe fn store_first(to: *mut i64, row: __m512i, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { _mm512_mask_storeu_epi64(to, ((1_u32 << count) - 1) as __mmask8, row) };
        }

        #[inline(always)]
        unsafe fn turn(rows: &mut [__m512i; 8]) {
            // SAFETY: the caller's promise.
            unsafe { turn_wide(rows) };
        }
    }

    /// Turns words of 4 bytes.
    ///
    /// # Safety
    /// The features are there; the words of `rows` may be read in `data`, and its columns and
    /// padding written in `to`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn words<T>(rows: &Rows<'_, T>, data: *const T, to: *mut i32) {
        // SAFETY: the caller's promise.
        unsafe { transpose::<Single, T, 16>(rows, data, to) };
    }

    /// Turns words of 8 bytes.
    ///
    /// # Safety
    /// As of [`words`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) unsafe fn wide_words<T>(rows: &Rows<'_, T>, data: *const T, to: *mut i64) {
        // SAFETY: the caller's promise.
        unsafe { transpose::<Double, T, 8>(rows, data, to) };
    }

    /// # Safety
    /// As of [`words`].
    #[inline(always)]
    unsafe fn transpose<W: Words<N>, T, const N: usize>(
        rows: &Rows<'_, T>,
        data: *const T,
        to: *mut W::Word,
    ) {
        let width = rows.offsets.len() + rows.padding;
        for step in (0..rows.steps).step_by(N) {
            for first in (0..width).step_by(N) {
                let offsets = rows.offsets.get(first..).unwrap_or_default();
                let to = to.wrapping_add(step * rows.pitch + first);
                match offsets.first_chunk() {
                    // SAFETY: the caller's promise: there are `N` steps of `N` rows.
                    Some(offsets) if step + N <= rows.steps => unsafe {
                        whole_block::<W, T, N>(rows, offsets, data, step, to);
                    },
                    // SAFETY: the caller's promise.
                    _ => unsafe {
                        part_block::<W, T, N>(rows, offsets, data, step, (to, width - first));
                    },
                }
            }
        }
    }

    /// Where the words of a row from `step` on are. Asks for those that come later.
    #[inline(always)]
    fn words_from<W, T>(
        rows: &Rows<'_, T>,
        offset: usize,
        data: *const T,
        step: usize,
    ) -> *const W {
        let from = data.wrapping_add(offset + rows.start).cast::<W>().wrapping_add(step);
        let ahead = const { AHEAD / size_of::<W>() };
        // Rows may be too many for the sets of the first-level cache. What lies beyond the block has
        // perhaps been asked for already.
        if step + ahead < rows.steps {
            prefetch_far(from.wrapping_add(ahead).cast());
        }
        from
    }

    /// Writes `N` steps of `N` rows. (Apart from [`part_block`], so that they stay in registers.)
    ///
    /// # Safety
    /// The features are there; these words may be read in `data`, and their places written in `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn whole_block<W: Words<N>, T, const N: usize>(
        rows: &Rows<'_, T>,
        offsets: &[usize; N],
        data: *const T,
        step: usize,
        to: *mut W::Word,
    ) {
        let mut block = [_mm512_setzero_si512(); N];
        // (Not by `map`, into which nothing is inlined that needs the features.)
        for (row, &offset) in block.iter_mut().zip(offsets) {
            let from = words_from::<W::Word, T>(rows, offset, data, step);
            // SAFETY: the caller's promise.
            *row = unsafe { _mm512_loadu_si512(from.cast()) };
        }
        // SAFETY: the caller's promise.
        unsafe { W::turn(&mut block) };
        for (k, row) in block.iter().enumerate() {
            // A store under a mask, even one of all lanes, reads the line that it writes to.
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_si512(to.wrapping_add(k * rows.pitch).cast(), *row) };
        }
    }

    /// Writes up to `N` steps of up to `N` rows, and zeros for those of `width` columns that have no rows.
    ///
    /// # Safety
    /// The features are there; these words may be read in `data`, and their places written in `to`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn part_block<W: Words<N>, T, const N: usize>(
        rows: &Rows<'_, T>,
        offsets: &[usize],
        data: *const T,
        step: usize,
        (to, width): (*mut W::Word, usize),
    ) {
        let (count, items) = ((rows.steps - step).min(N), width.min(N));
        let mut block = [_mm512_setzero_si512(); N];
        for (row, offset) in block.iter_mut().zip(offsets) {
            let from = words_from::<W::Word, T>(rows, *offset, data, step);
            // SAFETY: `count` words, all within the row, are read.
            *row = unsafe { W::load_first(from, count) };
        }
        // SAFETY: the caller's promise.
        unsafe { W::turn(&mut block) };
        for (k, row) in block.iter().enumerate().take(count) {
            // SAFETY: `items` words within row `step + k` of the result are written.
            unsafe { W::store_first(to.wrapping_add(k * rows.pitch), *row, items) };
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

    /// As [`turn`], of words of 8 bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    fn turn_wide(m: &mut [__m512i; 8]) {
        let mut pairs = *m;
        for i in (0..8).step_by(2) {
            pairs[i] = _mm512_unpacklo_epi64(m[i], m[i + 1]);
            pairs[i + 1] = _mm512_unpackhi_epi64(m[i], m[i + 1]);
        }
        // `pairs[2 * r + c]` holds in lane `l` of 16 bytes column `2 * l + c` of rows 2r and 2r + 1.
        for c in 0..2 {
            let (a, b) = (pairs[c], pairs[2 + c]);
            let (x, y) = (pairs[4 + c], pairs[6 + c]);
            let (ab_even, ab_odd) =
                (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0xdd>(a, b));
            let (xy_even, xy_odd) =
                (_mm512_shuffle_i64x2::<0x88>(x, y), _mm512_shuffle_i64x2::<0xdd>(x, y));
            m[c] = _mm512_shuffle_i64x2::<0x88>(ab_even, xy_even);
            m[2 + c] = _mm512_shuffle_i64x2::<0x88>(ab_odd, xy_odd);
            m[4 + c] = _mm512_shuffle_i64x2::<0xdd>(ab_even, xy_even);
            m[6 + c] = _mm512_shuffle_i64x2::<0xdd>(ab_odd, xy_odd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of words of `PER` elements each, against a loop over words; places beyond the columns stay.
    fn turned<T: Plain + PartialEq, W: Plain + PartialEq, const PER: usize>(
        of: impl Fn(usize) -> T,
        word: impl Fn(&[T]) -> W,
        zero: W,
        other: W,
    ) {
        let data: Vec<T> = (0..4000).map(of).collect();
        for (rows, steps, padding) in
            [(1, 1, 0), (8, 8, 0), (16, 16, 0), (7, 19, 1), (17, 33, 15), (32, 5, 3), (9, 64, 0)]
        {
            let offsets: Vec<usize> =
                (0..rows).map(|i| (i * 71 % rows) * 97 * PER % 1500).collect();
            let pitch = rows + padding + 2;
            let turned = Rows { data: &data, offsets: &offsets, start: 3, steps, padding, pitch };
            let mut to = vec![other; steps * pitch];
            if !turned.transpose(Isa::best(), &mut to) {
                continue;
            }
            for (k, row) in to.chunks_exact(pitch).enumerate() {
                for (i, found) in row.iter().enumerate() {
                    let expected = match offsets.get(i) {
                        Some(offset) => word(&data[offset + 3 + k * PER..][..PER]),
                        None if i < rows + padding => zero,
                        None => other,
                    };
                    assert!(*found == expected, "{rows} rows, step {k} of {steps}, item {i}");
                }
            }
        }
    }

    #[test]
    fn rows_become_columns() {
        turned::<f32, f32, 1>(|i| i as f32, |word| word[0], 0.0, -1.0);
        turned::<f64, f64, 1>(|i| i as f64, |word| word[0], 0.0, -1.0);
        let bytes = |word: &[u8]| u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        turned::<u8, u32, 4>(|i| (i % 251) as u8, bytes, 0, 7);
    }
}
