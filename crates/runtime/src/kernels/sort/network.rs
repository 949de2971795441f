//! Sorting lanes side by side, one in each element of vectors: a network compares and exchanges the same places,
//! whatever the elements are.
//!
//! The network is a bitonic one in which the lower of two places always gets the lesser number. So places behind the last
//! one may be thought to hold what nothing is above: they stay as they are, and are left out.

use std::marker::PhantomData;

use super::super::bytes::{Plain, bytes_of_mut, cast_mut};
use super::super::isa::{Isa, Kind};
use super::radix::Record;

/// Bytes of a row, which has a record of each lane.
const ROW_BYTES: usize = 64;

/// How many lanes are sorted at a time; `None` if there are no vectors of these records.
pub(super) const fn width<R: Record>() -> Option<usize> {
    match size_of::<R>() {
        4 | 8 => Some(ROW_BYTES / size_of::<R>()),
        _ => None,
    }
}

/// Sorts the columns of rows of [`width`] records.
///
/// # Panics
///
/// If there are no vectors of these records, or they are no whole rows.
pub(super) fn sort<R: Record>(records: &mut [R]) {
    sort_on(Isa::best(), records);
}

fn sort_on<R: Record>(isa: Isa, records: &mut [R]) {
    let bytes = bytes_of_mut(records);
    assert!(bytes.len().is_multiple_of(ROW_BYTES), "part of a row");
    match size_of::<R>() {
        4 => sort_numbers::<u32>(isa, cast_mut(bytes)),
        8 => sort_numbers::<u64>(isa, cast_mut(bytes)),
        size => panic!("no vectors of records of {size} bytes"),
    }
}

/// Unsigned numbers that there are vectors of.
trait Number: Plain + Ord {
    const LARGEST: Self;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Self>;
}

/// A vector of numbers.
///
/// # Safety
///
/// It has the size of some of them, which are all that is read and written.
unsafe trait Vector<T>: Copy {
    /// # Safety
    /// The processor has the instructions, and the numbers may be read.
    unsafe fn load(from: *const T) -> Self;

    /// # Safety
    /// The processor has the instructions, and the numbers may be written.
    unsafe fn store(self, to: *mut T);

    /// A number in each lane.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(number: T) -> Self;

    /// The lesser of two numbers of each lane, and the greater.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn in_order(a: Self, b: Self) -> (Self, Self);
}

fn sort_numbers<T: Number>(isa: Isa, numbers: &mut [T]) {
    let width = ROW_BYTES / size_of::<T>();
    let rows = numbers.len() / width;
    macro_rules! by {
        ($vector:ty) => {
            isa.run(
                #[inline(always)]
                || {
                    for first in (0..width).step_by(size_of::<$vector>() / size_of::<T>()) {
                        let start = numbers.as_mut_ptr().wrapping_add(first);
                        let columns = Columns::<T, $vector> { start, width, rows, vector: PhantomData };
                        // SAFETY: every row has a vector from this column on, and the processor has the instructions
                        // of the set whose vectors these are.
                        unsafe { columns.sort() };
                    }
                },
            )
        };
    }
    match isa.kind() {
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => by!(T::Avx512),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => by!(T::Avx2),
        Kind::Portable => by!([T; 4]),
    }
}

/// Neighbouring columns that are a vector, to be sorted each.
struct Columns<T, V> {
    /// Where the vector of the first row is.
    start: *mut T,
    /// From a row to the next.
    width: usize,
    rows: usize,
    vector: PhantomData<V>,
}

/// A function that puts pairs of vectors of an array in order, one pair after the other; unsafe as [`Vector::in_order`] is.
macro_rules! exchange {
    ($($a:literal $b:literal),* $(,)?) => {
        #[inline(always)]
        |mut v: [_; _]| {
            $( (v[$a], v[$b]) = V::in_order(v[$a], v[$b]); )*
            v
        }
    };
}

impl<T: Number, V: Vector<T>> Columns<T, V> {
    /// # Safety
    ///
    /// Each row has a vector that may be read and written, and the processor has the instructions.
    #[inline(always)]
    unsafe fn sort(&self) {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            for base in (0..self.rows).step_by(16) {
                self.sort_16(base);
            }
            let mut sorted = 16;
            while sorted < self.rows {
                for base in (0..self.rows - sorted).step_by(2 * sorted) {
                    self.merge(base, sorted);
                }
                sorted *= 2;
            }
        }
    }

    /// Merges `half` rows in order from `base` on, at least 16 and a power of two, with as many behind them.
    ///
    /// # Safety
    ///
    /// As for [`Columns::sort`].
    #[inline(always)]
    unsafe fn merge(&self, base: usize, half: usize) {
        // The last place of the two is compared with the first one, and so on towards the middle; then places
        // are compared that are a half apart, a quarter, an eighth ...
        let (last, step) = (base + 2 * half - 1, half / 4);
        for i in 0..step {
            let places = [
                base + i,
                base + i + step,
                base + i + 2 * step,
                base + i + 3 * step,
                last - i - 3 * step,
                last - i - 2 * step,
                last - i - step,
                last - i,
            ];
            // SAFETY: the caller's promise, handed on.
            unsafe {
                self.at(
                    places,
                    exchange!(0 7, 1 6, 2 5, 3 4, 0 2, 1 3, 4 6, 5 7, 0 1, 2 3, 4 5, 6 7),
                );
            }
        }
        let end = self.rows.min(base + 2 * half);
        let mut block = step;
        while block > 1 {
            // Three comparisons at a time, and two first where they are not a multiple of three.
            let parts = if block.ilog2().is_multiple_of(3) { 8 } else { 4 };
            let step = block / parts;
            for first in (base..end).step_by(block) {
                for i in first..first + step {
                    // SAFETY: the caller's promise, handed on.
                    unsafe {
                        if parts == 8 {
                            let places: [usize; 8] = std::array::from_fn(|k| i + k * step);
                            self.at(places, exchange!(0 4, 1 5, 2 6, 3 7, 0 2, 1 3, 4 6, 5 7, 0 1, 2 3, 4 5, 6 7));
                        } else {
                            let places: [usize; 4] = std::array::from_fn(|k| i + k * step);
                            self.at(places, exchange!(0 2, 1 3, 0 1, 2 3));
                        }
                    }
                }
            }
            block = step;
        }
    }

    /// Sorts 16 rows from `base` on by 60 comparisons, the fewest that are known for 16 (Green, 1969).
    ///
    /// # Safety
    ///
    /// As for [`Columns::sort`].
    #[inline(always)]
    unsafe fn sort_16(&self, base: usize) {
        // SAFETY: the caller's promise, handed on.
        unsafe {
            let places: [usize; 16] = std::array::from_fn(|k| base + k);
            self.at(
                places,
                exchange!(
                    0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15,
                    0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15,
                    0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15,
                    0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15,
                    1 2, 3 12, 4 8, 5 10, 6 9, 7 11, 13 14,
                    1 4, 2 8, 7 13, 11 14,
                    2 4, 3 8, 5 6, 7 12, 9 10, 11 13,
                    3 5, 6 8, 7 9, 10 12,
                    3 4, 5 6, 7 8, 9 10, 11 12,
                    6 7, 8 9,
                ),
            );
        }
    }

    /// Changes the rows at some places, the last the highest. Rows behind the last one are as if they held the
    /// largest number, and stay so.
    ///
    /// # Safety
    ///
    /// As for [`Columns::sort`].
    #[inline(always)]
    unsafe fn at<const N: usize>(&self, places: [usize; N], network: impl Fn([V; N]) -> [V; N]) {
        let at = |place: usize| self.start.wrapping_add(place * self.width);
        let are_all_there = places[N - 1] < self.rows;
        // (Loops, since `map` of an array may be a function of its own, without the instructions.)
        // SAFETY: the caller's promise for rows that there are; others are not touched.
        unsafe {
            let mut rows = [V::splat(T::LARGEST); N];
            if are_all_there {
                for (row, place) in rows.iter_mut().zip(places) {
                    *row = V::load(at(place));
                }
                for (row, place) in network(rows).into_iter().zip(places) {
                    row.store(at(place));
                }
                return;
            }
            for (row, place) in rows.iter_mut().zip(places) {
                if place < self.rows {
                    *row = V::load(at(place));
                }
            }
            for (row, place) in network(rows).into_iter().zip(places) {
                if place < self.rows {
                    row.store(at(place));
                }
            }
        }
    }
}

// SAFETY: an array of numbers has their size.
unsafe impl<T: Number> Vector<T> for [T; 4] {
    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's promise.
        unsafe { from.cast::<Self>().read() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<Self>().write(self) }
    }
    #[inline(always)]
    unsafe fn splat(number: T) -> Self {
        [number; 4]
    }
    #[inline(always)]
    unsafe fn in_order(a: Self, b: Self) -> (Self, Self) {
        (std::array::from_fn(|i| a[i].min(b[i])), std::array::from_fn(|i| a[i].max(b[i])))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Vectors of the processor.

    use std::arch::x86_64::*;

    use super::{Number, Vector};

    macro_rules! vectors {
        ($number:ty, $wide:ident, $narrow:ident) => {
            impl Number for $number {
                const LARGEST: Self = <$number>::MAX;
                type Avx512 = $wide;
                type Avx2 = $narrow;
            }
        };
    }

    macro_rules! vector {
        (
            $name:ident: $number:ty, $vector:ty, $load:ident, $store:ident, $splat:ident $scalar:ty,
            |$a:ident, $b:ident| $in_order:expr
        ) => {
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub(super) struct $name($vector);

            // SAFETY: the instructions are those of this vector.
            unsafe impl Vector<$number> for $name {
                #[inline(always)]
                unsafe fn load(from: *const $number) -> Self {
                    // SAFETY: the caller's promise.
                    $name(unsafe { $load(from.cast()) })
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    // SAFETY: the caller's promise.
                    unsafe { $store(to.cast(), self.0) }
                }
                #[inline(always)]
                unsafe fn splat(number: $number) -> Self {
                    // SAFETY: the caller's processor has the instructions.
                    $name(unsafe { $splat(number as $scalar) })
                }
                #[inline(always)]
                unsafe fn in_order($name($a): Self, $name($b): Self) -> (Self, Self) {
                    // SAFETY: the caller's processor has the instructions.
                    let (least, most) = unsafe { $in_order };
                    ($name(least), $name(most))
                }
            }
        };
    }

    vectors!(u32, Wide32, Narrow32);
    vectors!(u64, Wide64, Narrow64);
    vector!(
        Wide32: u32, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi32 i32,
        |a, b| (_mm512_min_epu32(a, b), _mm512_max_epu32(a, b))
    );
    vector!(
        Wide64: u64, __m512i, _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi64 i64,
        |a, b| (_mm512_min_epu64(a, b), _mm512_max_epu64(a, b))
    );
    vector!(
        Narrow32: u32, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32 i32,
        |a, b| (_mm256_min_epu32(a, b), _mm256_max_epu32(a, b))
    );
    vector!(
        Narrow64: u64, __m256i, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi64x i64,
        |a, b| {
            // There are comparisons of signed numbers only, which have the order of unsigned ones whose highest
            // bits are flipped.
            let flip = _mm256_set1_epi64x(i64::MIN);
            let is_above = _mm256_cmpgt_epi64(_mm256_xor_si256(a, flip), _mm256_xor_si256(b, flip));
            (_mm256_blendv_epi8(a, b, is_above), _mm256_blendv_epi8(b, a, is_above))
        }
    );
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! numbers {
    ($($number:ty),*) => { $(
        impl Number for $number {
            const LARGEST: Self = <$number>::MAX;
        }
    )* };
}
#[cfg(not(target_arch = "x86_64"))]
numbers!(u32, u64);

#[cfg(test)]
mod tests {
    use super::super::radix::{Rank32, Rank64};
    use super::*;

    /// Sorts columns of numbers on every instruction set and compares them with what the standard library makes of them.
    fn check<R: Record>(rows: usize, number: impl Fn(usize) -> u64) {
        let width = width::<R>().unwrap();
        let records: Vec<R> = (0..rows * width).map(|i| R::new(number(i), 0)).collect();
        let mut expected = records.clone();
        for column in 0..width {
            let mut sorted: Vec<R> = records[column..].iter().step_by(width).copied().collect();
            sorted.sort_unstable();
            expected[column..].iter_mut().step_by(width).zip(sorted).for_each(|(to, v)| *to = v);
        }
        for isa in Isa::all() {
            let mut found = records.clone();
            sort_on(isa, &mut found);
            assert!(found == expected, "{rows} rows on {isa:?}");
        }
    }

    fn scattered(i: usize) -> u64 {
        let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }

    #[test]
    fn columns_of_all_lengths_get_in_order() {
        let lengths = if cfg!(miri) { 30..34 } else { 1..300 };
        for rows in lengths.chain(if cfg!(miri) { None } else { Some(1000) }) {
            check::<Rank32>(rows, scattered);
            check::<Rank64>(rows, scattered);
            // The largest number is like what is behind the last row.
            check::<Rank64>(rows, |i| {
                if scattered(i).is_multiple_of(3) { u64::MAX } else { scattered(i) % 5 }
            });
        }
    }

    /// A network that sorts all columns of zeros and ones sorts all columns (Knuth's principle).
    #[test]
    #[cfg_attr(miri, ignore = "too many columns")]
    fn all_16_zeros_and_ones_get_in_order() {
        for first in (0..1 << 16).step_by(16) {
            check::<Rank32>(16, |i| (first + i % 16) as u64 >> (i / 16) & 1);
        }
    }
}
