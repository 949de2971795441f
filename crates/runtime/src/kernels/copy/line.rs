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
            2 if step.from == 2 * size => line::<T, 2>(count, from, to),
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
