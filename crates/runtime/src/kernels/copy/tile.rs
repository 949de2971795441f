//! Planes transposed tile by tile, in registers.

use super::super::bytes::{Plain, with_size};

/// A plane of elements: along its lines the source is contiguous, along its columns the target.
pub(super) struct Plane<L, C> {
    pub lines: usize,
    /// Where a line begins in the target.
    pub line: L,
    pub columns: usize,
    /// Where a column begins in the source.
    pub column: C,
    pub element_size: usize,
    pub from: *const u8,
    pub to: *mut u8,
}

/// Transposes a matrix: the element in row `i` and column `j` of `from` gets into row `j` and column `i` of `to`. Both come with
/// the distance of their rows.
///
/// # Panics
///
/// If one of the two does not have all of the matrix.
pub(in crate::kernels) fn transpose<T: Plain>(
    [rows, columns]: [usize; 2],
    (from, from_row): (&[T], usize),
    (to, to_row): (&mut [T], usize),
) {
    if rows == 0 || columns == 0 {
        return;
    }
    // Counted with checks: a sum that wraps around would let a matrix through.
    let reach = |lines: usize, line: usize, elements: usize| {
        (lines - 1).checked_mul(line).and_then(|start| start.checked_add(elements))
    };
    let fits = |reach: Option<usize>, len: usize| reach.is_some_and(|reach| reach <= len);
    assert!(fits(reach(rows, from_row, columns), from.len()), "the matrix leaves its source");
    assert!(fits(reach(columns, to_row, rows), to.len()), "the matrix leaves its target");
    let element_size = size_of::<T>();
    let plane = Plane {
        lines: columns,
        line: |j| (j * to_row * element_size) as isize,
        columns: rows,
        column: |i| (i * from_row * element_size) as isize,
        element_size,
        from: from.as_ptr().cast(),
        to: to.as_mut_ptr().cast(),
    };
    // SAFETY: all of the matrix is inside of both slices, as was checked.
    unsafe { plane.transpose(false) };
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

    /// Whether [`Row::load_first`] and [`Row::store_first`] are there.
    const HAS_MASKS: bool;

    /// The first elements of a row; others are zero. At most `N`.
    ///
    /// # Safety
    /// The processor has these vectors, and `count` elements may be read.
    unsafe fn load_first(from: *const u8, count: usize) -> V;

    /// Writes the first elements of a row; at most `N`.
    ///
    /// # Safety
    /// The processor has these vectors, and `count` elements may be written.
    unsafe fn store_first(to: *mut u8, row: V, count: usize);
}

impl<L: Fn(usize) -> isize, C: Fn(usize) -> isize> Plane<L, C> {
    /// Transposes the plane.
    ///
    /// # Safety
    ///
    /// Elements of the plane may be read at the one end and written at the other, wherever they lie.
    #[inline(always)]
    pub(super) unsafe fn transpose(&self, is_streamed: bool) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's promise, handed on, and the wide vectors are used where the processor has them.
        unsafe {
            use std::arch::x86_64::{__m128i, __m512i};
            match self.element_size {
                1 => self.tiles::<x86::Bytes, __m128i, 16>(is_streamed),
                2 => self.tiles::<x86::Halves, __m128i, 8>(is_streamed),
                4 if super::super::isa::has_avx512() => {
                    self.wide_tiles::<x86::Wide32, __m512i, 16>(is_streamed);
                }
                4 => self.tiles::<x86::Words, __m128i, 4>(is_streamed),
                8 if super::super::isa::has_avx512() => {
                    self.wide_tiles::<x86::Wide64, __m512i, 8>(is_streamed);
                }
                8 => self.tiles::<x86::Doubles, __m128i, 2>(is_streamed),
                _ => self.rest(0, 0),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the caller's promise, handed on.
        unsafe {
            let _ = is_streamed;
            self.rest(0, 0)
        }
    }

    /// # Safety
    ///
    /// As for [`Plane::transpose`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn wide_tiles<R: Row<V, N>, V: Copy, const N: usize>(&self, is_streamed: bool) {
        // SAFETY: the caller's promise, handed on.
        unsafe { self.tiles::<R, V, N>(is_streamed) }
    }

    /// # Safety
    ///
    /// As for [`Plane::transpose`], and the processor has the vectors of `R`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn tiles<R: Row<V, N>, V: Copy, const N: usize>(&self, is_streamed: bool) {
        let (lines, columns) = (self.lines / N * N, self.columns / N * N);
        let is_aligned =
            |offset: isize| self.to.wrapping_offset(offset).align_offset(size_of::<V>()) == 0;
        let is_streamed = is_streamed && (0..self.lines.min(2)).all(|i| is_aligned((self.line)(i)));
        for column in (0..columns).step_by(N) {
            for line in (0..lines).step_by(N) {
                // SAFETY: a tile of N × N elements of the plane; N neighbours along the source's
                // axis are a row of the source, and N along the target's a row of the target.
                unsafe { self.tile::<R, V, N>(line, column, is_streamed) };
            }
        }
        if !R::HAS_MASKS {
            // SAFETY: the caller's promise, handed on.
            unsafe { self.rest(lines, columns) };
            return;
        }
        for column in (0..self.columns).step_by(N) {
            let first = if column < columns { lines } else { 0 };
            for line in (first..self.lines).step_by(N) {
                let (most_lines, most_columns) = (self.lines - line, self.columns - column);
                // SAFETY: the caller's promise: what is outside of the plane is not accessed.
                unsafe { self.part_of_tile::<R, V, N>((line, most_lines), (column, most_columns)) };
            }
        }
    }

    /// Transposes `N` lines by `N` columns.
    ///
    /// # Safety
    ///
    /// As for [`Plane::tiles`]; the plane has all of these.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn tile<R: Row<V, N>, V: Copy, const N: usize>(
        &self,
        line: usize,
        column: usize,
        is_streamed: bool,
    ) {
        let from = self.from.wrapping_add(line * self.element_size);
        let to = self.to.wrapping_add(column * self.element_size);
        // SAFETY: the caller's promise.
        unsafe {
            let mut rows = [R::load(from.wrapping_offset((self.column)(column))); N];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = R::load(from.wrapping_offset((self.column)(column + i)));
            }
            for (i, row) in transposed::<R, V, N>(rows).into_iter().enumerate() {
                let to = to.wrapping_offset((self.line)(line + i));
                match is_streamed {
                    true => R::stream(to, row),
                    false => R::store(to, row),
                }
            }
        }
    }

    /// Transposes at most `N` lines by `N` columns.
    ///
    /// # Safety
    ///
    /// As for [`Plane::tiles`]; the plane has as many lines from `line`, and columns from `column`, as is said with
    /// them.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn part_of_tile<R: Row<V, N>, V: Copy, const N: usize>(
        &self,
        (line, lines): (usize, usize),
        (column, columns): (usize, usize),
    ) {
        let from = self.from.wrapping_add(line * self.element_size);
        let to = self.to.wrapping_add(column * self.element_size);
        // SAFETY: the caller's promise; elements outside of the plane are not accessed.
        unsafe {
            let mut rows = [R::load_first(from, 0); N];
            for (i, row) in rows.iter_mut().enumerate().take(columns) {
                let from = from.wrapping_offset((self.column)(column + i));
                *row = R::load_first(from, lines.min(N));
            }
            for (i, row) in transposed::<R, V, N>(rows).into_iter().enumerate().take(lines) {
                let to = to.wrapping_offset((self.line)(line + i));
                R::store_first(to, row, columns.min(N));
            }
        }
    }

    /// Moves the elements that are not both in the first `lines` lines and `columns` columns.
    ///
    /// # Safety
    ///
    /// As for [`Plane::transpose`].
    unsafe fn rest(&self, lines: usize, columns: usize) {
        with_size!(self.element_size, T => for line in 0..self.lines {
            let first = if line < lines { columns } else { 0 };
            let from = self.from.wrapping_add(line * size_of::<T>());
            let to = self.to.wrapping_offset((self.line)(line)).cast::<T>();
            for column in first..self.columns {
                // SAFETY: an element of the plane.
                unsafe {
                    let v = from.wrapping_offset((self.column)(column)).cast::<T>().read_unaligned();
                    to.wrapping_add(column).write_unaligned(v);
                }
            }
        });
    }
}

/// The columns of a square tile as rows.
///
/// # Safety
///
/// The processor has the vectors of `R`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transposed<R: Row<V, N>, V: Copy, const N: usize>(mut rows: [V; N]) -> [V; N] {
    // To interleave row `i` with row `i + N / 2` for all `i` moves the top bit of an element's row to the
    // bottom of its column; after all bits, rows are columns.
    for _ in 0..N.ilog2() {
        let halves = rows;
        for i in 0..N / 2 {
            // SAFETY: the caller's promise.
            [rows[2 * i], rows[2 * i + 1]] = unsafe { R::interleave(halves[i], halves[i + N / 2]) };
        }
    }
    rows
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Rows in vectors of the processor.

    use std::arch::x86_64::*;

    use super::Row;

    macro_rules! rows {
        (
            $(#[$doc:meta])* $name:ident, $vector:ty, $count:literal,
            $load:ident, $store:ident, $stream:ident, |$a:ident, $b:ident| $interleave:expr,
            $masks:tt
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
                first!($vector, $masks);
            }
        };
    }

    macro_rules! first {
        ($vector:ty, ($mask:ty, $load:ident, $store:ident)) => {
            const HAS_MASKS: bool = true;
            /// # Safety
            /// The processor has these vectors, and `count` elements may be read.
            #[inline(always)]
            unsafe fn load_first(from: *const u8, count: usize) -> $vector {
                // SAFETY: the caller's promise; other elements are not read.
                unsafe { $load(!(<$mask>::MAX.unbounded_shl(count as u32)), from.cast()) }
            }
            /// # Safety
            /// The processor has these vectors, and `count` elements may be written.
            #[inline(always)]
            unsafe fn store_first(to: *mut u8, row: $vector, count: usize) {
                // SAFETY: the caller's promise; other elements are not written.
                unsafe { $store(to.cast(), !(<$mask>::MAX.unbounded_shl(count as u32)), row) };
            }
        };
        ($vector:ty, ()) => {
            const HAS_MASKS: bool = false;
            /// # Safety
            /// It is never called, and would end the program.
            unsafe fn load_first(_: *const u8, _: usize) -> $vector {
                unreachable!("there are no masks")
            }
            /// # Safety
            /// It is never called, and would end the program.
            unsafe fn store_first(_: *mut u8, _: $vector, _: usize) {
                unreachable!("there are no masks")
            }
        };
    }

    macro_rules! narrow {
        ($(#[$doc:meta])* $name:ident, $count:literal, $low:ident, $high:ident) => {
            rows!(
                $(#[$doc])* $name, __m128i, $count,
                _mm_loadu_si128, _mm_storeu_si128, _mm_stream_si128, |a, b| [$low(a, b), $high(a, b)],
                ()
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
        },
        (u16, _mm512_maskz_loadu_epi32, _mm512_mask_storeu_epi32)
    );
    rows!(
        /// 8 elements of 8 bytes.
        Wide64, __m512i, 8,
        _mm512_loadu_si512, _mm512_storeu_si512, _mm512_stream_si512, |a, b| {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            [low, high].map(|order| _mm512_permutex2var_epi64(a, order, b))
        },
        (u8, _mm512_maskz_loadu_epi64, _mm512_mask_storeu_epi64)
    );
}
