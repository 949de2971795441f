//! Lines of elements, and of short rows: loops whose distances are constants where they are common
//! ones, so that the compiler makes vectors of them.

use std::ops::Range;

use super::super::bytes::{with_size, with_word};
use super::Step;

/// Copies these elements along an axis.
///
/// # Safety
///
/// Each element of `range` has `element_size` bytes and may be read, counted from `from`, and written,
/// counted from `to`, aligned or not; what is written is not read.
#[inline(always)]
pub(super) unsafe fn elements(
    step: Step,
    element_size: usize,
    range: Range<usize>,
    (from, to): (*const u8, *mut u8),
) {
    let (size, count) = (element_size as isize, range.len());
    let from = from.wrapping_offset(range.start as isize * step.from);
    let to = to.wrapping_offset(range.start as isize * step.to);
    // SAFETY: the caller's promise, handed on; distances are what they are called.
    unsafe {
        if step.to != size || element_size > 8 {
            return with_size!(element_size, T => apart::<T>(step, count, from, to));
        }
        with_word!(element_size, T => match step.from / size {
            0 if step.from == 0 => line::<T, 0>(count, from, to),
            -1 if step.from == -size => line::<T, -1>(count, from, to),
            2 if step.from == 2 * size => {
                let done = every_second(element_size, count, (from, to));
                let from = from.wrapping_add(2 * done * element_size);
                line::<T, 2>(count - done, from, to.wrapping_add(done * element_size));
            }
            3 if step.from == 3 * size => line::<T, 3>(count, from, to),
            4 if step.from == 4 * size => line::<T, 4>(count, from, to),
            _ => apart::<T>(step, count, from, to),
        });
    }
}

/// Elements that are anywhere. Not for wide vectors, which would be put together lane by lane.
///
/// # Safety
///
/// As for [`elements`].
#[inline(never)]
unsafe fn apart<T: Copy>(step: Step, count: usize, from: *const u8, to: *mut u8) {
    for i in 0..count as isize {
        // SAFETY: the caller's promise, for element `i`.
        unsafe {
            let v = from.offset(i * step.from).cast::<T>().read_unaligned();
            to.offset(i * step.to).cast::<T>().write_unaligned(v);
        }
    }
}

/// Copies elements from places to where they are neighbours.
///
/// # Safety
///
/// An element of `element_size` bytes may be read at each place, in bytes from `from`, and so many elements
/// may be written from `to` on, aligned or not; what is written is not read.
#[inline(always)]
pub(super) unsafe fn places(
    places: &[isize],
    element_size: usize,
    (from, to): (*const u8, *mut u8),
) {
    with_size!(element_size, T => for (i, &place) in places.iter().enumerate() {
        // SAFETY: the caller's promise, for element `i`.
        unsafe {
            let element = from.offset(place).cast::<T>().read_unaligned();
            to.cast::<T>().add(i).write_unaligned(element);
        }
    });
}

/// Copies every `EVERY`-th element to where elements lie side by side.
///
/// # Safety
///
/// As for [`elements`].
#[inline(always)]
unsafe fn line<T: Copy, const EVERY: isize>(count: usize, from: *const u8, to: *mut u8) {
    let (from, to) = (from.cast::<T>(), to.cast::<T>());
    for i in 0..count as isize {
        // SAFETY: the caller's promise, for element `i`.
        unsafe { to.offset(i).write_unaligned(from.offset(i * EVERY).read_unaligned()) };
    }
}

/// Copies every second element in whole vectors, if there are instructions for it; gives how many.
///
/// # Safety
///
/// As for [`elements`], of elements that are two apart.
#[inline(always)]
unsafe fn every_second(
    element_size: usize,
    count: usize,
    (from, to): (*const u8, *mut u8),
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if super::super::isa::has_avx512() {
        // SAFETY: the caller's promise; the processor has the instructions.
        return unsafe {
            match element_size {
                4 => x86::every_second_of_words(count, from, to),
                8 => x86::every_second_of_doubles(count, from, to),
                _ => 0,
            }
        };
    }
    let _ = (element_size, count, from, to);
    0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Compilers make vectors only of lines of several of them, as they read behind the last element.

    use std::arch::x86_64::*;

    macro_rules! every_second {
        ($name:ident, $lanes:literal, $element:literal, $permute:ident, $order:expr) => {
            /// # Safety
            ///
            /// As for [`super::every_second`]; the processor has AVX-512.
            #[inline]
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn $name(count: usize, from: *const u8, to: *mut u8) -> usize {
                let order = $order;
                let whole = count / $lanes * $lanes;
                for done in (0..whole).step_by($lanes) {
                    // SAFETY: the caller's promise: the second half ends with the last element that is read.
                    unsafe {
                        let from = from.add(2 * done * $element);
                        let low = _mm512_loadu_si512(from.cast());
                        let high = _mm512_loadu_si512(from.add(($lanes - 1) * $element).cast());
                        let elements = $permute(low, order, high);
                        _mm512_storeu_si512(to.add(done * $element).cast(), elements);
                    }
                }
                whole
            }
        };
    }

    every_second!(
        every_second_of_words,
        16,
        4,
        _mm512_permutex2var_epi32,
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31)
    );
    every_second!(
        every_second_of_doubles,
        8,
        8,
        _mm512_permutex2var_epi64,
        _mm512_setr_epi64(0, 2, 4, 6, 9, 11, 13, 15)
    );
}

/// Copies elements along a line whose every element is a short axis, dense in the target.
///
/// # Safety
///
/// As for [`elements`], of all in the range of the line; the line and the short axis are dense in the
/// target.
#[inline(always)]
pub(super) unsafe fn interleaved(
    (line, short): (Step, Step),
    element_size: usize,
    range: Range<usize>,
    (from, to): (*const u8, *mut u8),
) {
    let size = element_size as isize;
    let from = from.wrapping_offset(range.start as isize * line.from);
    let to = to.wrapping_offset(range.start as isize * line.to);
    let count = range.len();
    // SAFETY: the caller's promise, handed on.
    unsafe {
        if line.from != size || element_size > 8 {
            let short_to_line = Step { size: count, ..line };
            for i in 0..short.size as isize {
                let (from, to) = (from.offset(i * short.from), to.offset(i * short.to));
                with_size!(element_size, T => apart::<T>(short_to_line, count, from, to));
            }
            return;
        }
        with_word!(element_size, T => match short.size {
            2 => woven::<T, 2>(short.from, count, from, to),
            3 => woven::<T, 3>(short.from, count, from, to),
            4 => woven::<T, 4>(short.from, count, from, to),
            _ => {
                for i in 0..short.size as isize {
                    let (from, to) = (from.offset(i * short.from), to.offset(i * short.to));
                    apart::<T>(line, count, from, to);
                }
            }
        });
    }
}

/// Interleaves the elements of `LINES` dense lines.
///
/// # Safety
///
/// As for [`interleaved`].
#[inline(always)]
unsafe fn woven<T: Copy, const LINES: usize>(
    between: isize,
    count: usize,
    from: *const u8,
    to: *mut u8,
) {
    let to = to.cast::<[T; LINES]>();
    for i in 0..count {
        // SAFETY: the caller's promise, for element `i` of each line.
        unsafe {
            let element = |line: usize| {
                let from = from.offset(line as isize * between).cast::<T>();
                from.add(i).read_unaligned()
            };
            to.add(i).write_unaligned(std::array::from_fn(element));
        }
    }
}

/// Copies rows of `bytes` bytes, at most [`MAX_ROW`].
///
/// # Safety
///
/// As for [`elements`], rows for elements.
#[inline(always)]
pub(super) unsafe fn rows(
    step: Step,
    bytes: usize,
    range: Range<usize>,
    (from, to): (*const u8, *mut u8),
) {
    let each = |row: usize| {
        let row = row as isize;
        (from.wrapping_offset(row * step.from), to.wrapping_offset(row * step.to))
    };
    // SAFETY: the caller's promise for rows of `bytes` bytes; parts are no longer than a row.
    unsafe {
        match bytes {
            64.. => range.for_each(|row| in_parts::<64>(bytes, each(row))),
            32.. => range.for_each(|row| in_parts::<32>(bytes, each(row))),
            16.. => range.for_each(|row| in_parts::<16>(bytes, each(row))),
            8.. => range.for_each(|row| in_parts::<8>(bytes, each(row))),
            4.. => range.for_each(|row| in_parts::<4>(bytes, each(row))),
            2.. => range.for_each(|row| in_parts::<2>(bytes, each(row))),
            _ => range.for_each(|row| in_parts::<1>(bytes, each(row))),
        }
    }
}

/// Longer rows are copied as a whole.
pub(super) const MAX_ROW: usize = 512;

/// Copies bytes part by part; the last part may overlap the one before.
///
/// # Safety
///
/// `bytes` bytes, at least `PART`, may be read at `from` and written at `to`, and the two do not
/// overlap.
#[inline(always)]
unsafe fn in_parts<const PART: usize>(bytes: usize, (from, to): (*const u8, *mut u8)) {
    let part = |at: usize| {
        // SAFETY: a part of the bytes.
        unsafe {
            let part = from.add(at).cast::<[u8; PART]>().read_unaligned();
            to.add(at).cast::<[u8; PART]>().write_unaligned(part);
        }
    };
    let mut at = 0;
    while at + PART < bytes {
        part(at);
        at += PART;
    }
    part(bytes - PART);
}
