//! Planes transposed tile by tile, in registers.

use super::super::bytes::with_size;
use super::Step;

/// Transposes a plane: along `source` the source is contiguous, along `target` the target.
///
/// # Safety
///
/// Elements of the plane may be read at the one end and written at the other, wherever they lie.
pub(super) unsafe fn plane(
    source: Step,
    target: Step,
    element_size: usize,
    (from, to): (*const u8, *mut u8),
    is_streamed: bool,
) {
    let plane = Plane { source, target, from, to };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise, handed on, and the wide vectors are used where the processor has them.
    unsafe {
        use std::arch::x86_64::{__m128i, __m512i};
        match element_size {
            1 => plane.tiles::<x86::Bytes, __m128i, 16>(is_streamed),
            2 => plane.tiles::<x86::Halves, __m128i, 8>(is_streamed),
            4 if super::super::isa::has_avx512() => {
                plane.wide_tiles::<x86::Wide32, __m512i, 16>(is_streamed);
            }
            4 => plane.tiles::<x86::Words, __m128i, 4>(is_streamed),
            8 if super::super::isa::has_avx512() => {
                plane.wide_tiles::<x86::Wide64, __m512i, 8>(is_streamed);
            }
            8 => plane.tiles::<x86::Doubles, __m128i, 2>(is_streamed),
            _ => plane.rest(0, 0, element_size),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's promise, handed on.
    unsafe {
        let _ = is_streamed;
        plane.rest(0, 0, element_size)
    }
}

struct Plane {
    source: Step,
    target: Step,
    from: *const u8,
    to: *mut u8,
}

/// Rows of `N` elements in vectors `V`.
///
/// # Safety
///
/// `V` has `N` elements; `load` and `store` touch as many bytes as it has, at any address, and
/// `stream` at addresses aligned to that.
#[cfg(target_arch = "x86_64")]
unsafe trait Row<V: Copy, const N: usize> {
    /// # Safety
    /// The processor has these vectors, and the bytes of one may be read.
    unsafe fn load(from: *const u8) -> V;

    /// # Safety
    /// The processor has these vectors, and the bytes of one may be written.
    unsafe fn store(to: *mut u8, row: V);

    /// As [`Row::store`], past the cache.
    ///
    /// # Safety
    /// As for [`Row::store`]; the address is a multiple of the vector's size.
    unsafe fn stream(to: *mut u8, row: V);

    /// Elements of the lower halves, and of the upper halves, in turn from `a` and `b`.
    ///
    /// # Safety
    /// The processor has these vectors.
    unsafe fn interleave(a: V, b: V) -> [V; 2];
}

impl Plane {
    /// # Safety
    ///
    /// As for [`plane`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_tiles<R: Row<V, N>, V: Copy, const N: usize>(&self, is_streamed: bool) {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.tiles::<R, V, N>(is_streamed) }
    }

    /// # Safety
    ///
    /// As for [`plane`], and the processor has the vectors of `R`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn tiles<R: Row<V, N>, V: Copy, const N: usize>(&self, is_streamed: bool) {
        let Plane { source, target, from, to } = *self;
        let element_size = size_of::<V>() / N;
        let (lines, columns) = (source.size / N * N, target.size / N * N);
        let is_aligned = to.align_offset(size_of::<V>()) == 0
            && source.to.unsigned_abs().is_multiple_of(size_of::<V>());
        let is_streamed = is_streamed && is_aligned;
        for column in (0..columns).step_by(N) {
            for line in (0..lines).step_by(N) {
                // SAFETY: a tile of N × N elements of the plane; N neighbours along the source's
                // axis are a row of the source, and N along the target's a row of the target.
                unsafe {
                    let from = from.offset(column as isize * target.from).add(line * element_size);
                    let to = to.offset(line as isize * source.to).add(column * element_size);
                    let mut rows = [R::load(from); N];
                    for (i, row) in rows.iter_mut().enumerate() {
                        *row = R::load(from.offset(i as isize * target.from));
                    }
                    // To interleave row `i` with row `i + N / 2` for all `i` moves the top bit of
                    // an element's row to the bottom of its column; after all bits, rows are
                    // columns.
                    for _ in 0..N.ilog2() {
                        let halves = rows;
                        for i in 0..N / 2 {
                            [rows[2 * i], rows[2 * i + 1]] =
                                R::interleave(halves[i], halves[i + N / 2]);
                        }
                    }
                    for (i, row) in rows.into_iter().enumerate() {
                        let to = to.offset(i as isize * source.to);
                        match is_streamed {
                            true => R::stream(to, row),
                            false => R::store(to, row),
                        }
                    }
                }
            }
        }
        // SAFETY: the caller's promise, handed on.
        unsafe { self.rest(lines, columns, element_size) }
    }

    /// Moves the elements that are not both in the first `lines` lines and `columns` columns.
    ///
    /// # Safety
    ///
    /// As for [`plane`].
    unsafe fn rest(&self, lines: usize, columns: usize, element_size: usize) {
        let Plane { source, target, from, to } = *self;
        with_size!(element_size, T => for line in 0..source.size {
            let first = if line < lines { columns } else { 0 };
            for column in first..target.size {
                // SAFETY: an element of the plane.
                unsafe {
                    let from = from.offset(line as isize * source.from);
                    let to = to.offset(line as isize * source.to);
                    let v = from.offset(column as isize * target.from).cast::<T>().read_unaligned();
                    to.offset(column as isize * target.to).cast::<T>().write_unaligned(v);
                }
            }
        });
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Rows in vectors of the processor.

    use std::arch::x86_64::*;

    use super::Row;

    macro_rules! rows {
        (
            $(#[$doc:meta])* $name:ident, $vector:ty, $count:literal,
            $load:ident, $store:ident, $stream:ident, |$a:ident, $b:ident| $interleave:expr
        ) => {
            $(#[$doc])*
            pub(super) struct $name;

            // SAFETY: the instructions are those of this vector and this element.
            unsafe impl Row<$vector, $count> for $name {
                #[inline(always)]
                unsafe fn load(from: *const u8) -> $vector {
                    // SAFETY: the caller's promise.
                    unsafe { $load(from.cast()) }
                }
                #[inline(always)]
                unsafe fn store(to: *mut u8, row: $vector) {
                    // SAFETY: the caller's promise.
                    unsafe { $store(to.cast(), row) }
                }
                #[inline(always)]
                unsafe fn stream(to: *mut u8, row: $vector) {
                    // SAFETY: the caller's promise.
                    unsafe { $stream(to.cast(), row) }
                }
                #[inline(always)]
                unsafe fn interleave($a: $vector, $b: $vector) -> [$vector; 2] {
                    // SAFETY: the caller's processor has these vectors.
                    unsafe { $interleave }
                }
            }
        };
    }

    macro_rules! narrow {
        ($(#[$doc:meta])* $name:ident, $count:literal, $low:ident, $high:ident) => {
            rows!(
                $(#[$doc])* $name, __m128i, $count,
                _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128, |a, b| [$low(a, b), $high(a, b)]
            );
        };
    }

    narrow!(
        /// 16 elements of 1 byte.
        Bytes, 16, _mm_unpacklo_epi8, _mm_unpackhi_epi8
    );
    narrow!(
        /// 8 elements of 2 bytes.
        Halves, 8, _mm_unpacklo_epi16, _mm_unpackhi_epi16
    );
    narrow!(
        /// 4 elements of 4 bytes.
        Words, 4, _mm_unpacklo_epi32, _mm_unpackhi_epi32
    );
    narrow!(
        /// 2 elements of 8 bytes.
        Doubles, 2, _mm_unpacklo_epi64, _mm_unpackhi_epi64
    );

    rows!(
        /// 16 elements of 4 bytes.
        Wide32, __m512i, 16,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, |a, b| {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            [low, high].map(|order| _mm512_permutex2var_epi32(a, order, b))
        }
    );
    rows!(
        /// 8 elements of 8 bytes.
        Wide64, __m512i, 8,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, |a, b| {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            [low, high].map(|order| _mm512_permutex2var_epi64(a, order, b))
        }
    );
}
