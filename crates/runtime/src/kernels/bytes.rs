//! Bytes taken for elements of a type and back, and working memory of kernels handed out in typed
//! pieces.

#[cfg(feature = "fft")]
use helio_fft::num_complex::Complex;

use crate::Threads;

/// Element types that are nothing but their bits.
///
/// # Safety
///
/// Every sequence of `size_of::<Self>()` initialised bytes is a value, and no byte is padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

macro_rules! plain {
    ($($ty:ty),*) => { $(
        // SAFETY: numbers have no padding and no invalid bits.
        unsafe impl Plain for $ty {}
    )* };
}

#[cfg(feature = "fft")]
plain!(Complex<f32>, Complex<f64>);
plain!(u8, u16, u32, u64, u128, i8, i16, i32, i64, f32, f64);

// SAFETY: elements of an array have nothing between them.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// The elements that these bytes are.
///
/// # Panics
///
/// If the bytes are not aligned for `T`, or are not a whole number of elements.
pub fn cast<T: Plain>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() {
        return &[]; // Wherever it is, so that a result nobody needs can be `&mut []`.
    }
    let count = count_of::<T>(bytes);
    // SAFETY: `count_of` has checked alignment and length, and any bytes are valid elements.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) }
}

/// As [`cast`], to write to.
///
/// # Panics
///
/// As [`cast`].
pub fn cast_mut<T: Plain>(bytes: &mut [u8]) -> &mut [T] {
    if bytes.is_empty() {
        return &mut [];
    }
    let count = count_of::<T>(bytes);
    // SAFETY: `count_of` has checked alignment and length; any bytes are valid elements, and any
    // elements valid bytes, since `Plain` types have no padding.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), count) }
}

/// The bytes that these elements are.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` types have no padding: all of their bytes are initialised.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// As [`bytes_of`], to write to.
pub fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as for `bytes_of`, and any bytes are valid elements.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

fn count_of<T>(bytes: &[u8]) -> usize {
    assert!(
        bytes.as_ptr().cast::<T>().is_aligned() && bytes.len().is_multiple_of(size_of::<T>()),
        "{} bytes at {:p} taken for elements of {} bytes",
        bytes.len(),
        bytes.as_ptr(),
        size_of::<T>()
    );
    bytes.len() / size_of::<T>()
}

/// Bytes for tests that may be taken for elements of any type, wherever the allocator puts others.
#[cfg(test)]
pub(crate) struct Aligned(Vec<u64>, usize);

#[cfg(test)]
impl Aligned {
    pub fn new(bytes: &[u8]) -> Self {
        let mut aligned = Aligned(vec![0; bytes.len().div_ceil(8)], bytes.len());
        aligned.copy_from_slice(bytes);
        aligned
    }

    /// As many bytes as `len` says, of one value.
    pub fn filled(value: u8, len: usize) -> Self {
        Aligned(vec![u64::from_ne_bytes([value; 8]); len.div_ceil(8)], len)
    }
}

#[cfg(test)]
impl std::ops::Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &bytes_of(&self.0)[..self.1]
    }
}

#[cfg(test)]
impl std::ops::DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytes_of_mut(&mut self.0)[..self.1]
    }
}

/// Evaluates an expression with `$T` standing for an unsigned type (or pair) of that many bytes.
/// Panics if elements have no such size.
macro_rules! with_size {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            16 => {
                // Not `u128`: complex numbers are aligned to their parts only.
                type $T = [u64; 2];
                $body
            }
            size => $crate::kernels::bytes::with_word!(size, $T => $body),
        }
    };
}
pub(super) use with_size;

/// As [`with_size`], of elements of at most 8 bytes.
macro_rules! with_word {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            8 => {
                type $T = u64;
                $body
            }
            size => panic!("elements of {size} bytes"),
        }
    };
}
pub(super) use with_word;

/// How many elements an array of these sizes has; `None` if they are more than memory has bytes. What
/// kernels compute from sizes that pass here, offsets of elements, does not overflow: two tasks whose
/// parts are apart by their numbers are apart in memory.
pub(super) fn element_count(sizes: &[usize]) -> Option<usize> {
    if sizes.contains(&0) {
        return Some(0);
    }
    let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
    (count <= isize::MAX as usize).then_some(count)
}

/// The alignment of what [`Scratch`] hands out.
const ALIGNMENT: usize = 64;

/// How many bytes of a [`Scratch`] this many elements take, wherever it begins.
pub(super) const fn scratch_for<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>()).saturating_add(ALIGNMENT)
}

/// As many slots of working memory as there are threads, or as there is room for; at least one.
///
/// # Panics
///
/// If there is no room for one.
pub(super) fn slots<'a>(
    scratch: &'a mut [u8],
    slot_bytes: usize,
    threads: Threads<'_>,
) -> &'a mut [u8] {
    let count = (scratch.len() / slot_bytes).clamp(1, threads.count());
    &mut scratch[..count * slot_bytes]
}

/// Working memory that is handed out piece by piece. What it holds at first is of no meaning.
pub(super) struct Scratch<'a>(&'a mut [u8]);

impl<'a> Scratch<'a> {
    /// All of these bytes, at any alignment.
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Scratch(bytes)
    }

    /// The next elements, aligned to a cache line.
    ///
    /// # Panics
    ///
    /// If fewer are left: the kernel asked for less than it needs.
    pub(super) fn take<T: Plain>(&mut self, count: usize) -> &'a mut [T] {
        let bytes = std::mem::take(&mut self.0);
        let (_, bytes) = bytes.split_at_mut(bytes.as_ptr().align_offset(ALIGNMENT));
        let (taken, rest) = bytes.split_at_mut(count * size_of::<T>());
        self.0 = rest;
        cast_mut(taken)
    }

    /// What is left, lent for a while.
    pub(super) fn again(&mut self) -> Scratch<'_> {
        Scratch(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_is_handed_out_once() {
        for offset in 0..70 {
            let mut memory = vec![0u8; offset + scratch_for::<u64>(3) + scratch_for::<u16>(5)];
            let mut scratch = Scratch::new(&mut memory[offset..]);
            let (words, halves) = (scratch.take::<u64>(3), scratch.take::<u16>(5));
            words.fill(1);
            halves.fill(2);
            assert_eq!((words, halves), (&mut [1, 1, 1][..], &mut [2, 2, 2, 2, 2][..]));
        }
    }

    #[test]
    fn more_elements_than_memory_has_bytes_are_none() {
        assert_eq!(element_count(&[3, 0, usize::MAX, 5]), Some(0));
        assert_eq!(element_count(&[3, 4]), Some(12));
        assert_eq!(element_count(&[1 << 32, 1 << 32]), None);
        assert_eq!(element_count(&[1 << 32, 1 << 31]), None);
    }

    #[test]
    #[should_panic(expected = "taken for elements of 8 bytes")]
    fn part_of_an_element_is_none() {
        cast::<u64>(&bytes_of(&[0u64; 2])[..9]);
    }
}
